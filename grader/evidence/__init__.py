"""Data that crossed from beside the student's code: replies, layouts, what is kept of them."""
