"""A student's notebook, read without trust, and the programs that follow from it."""
