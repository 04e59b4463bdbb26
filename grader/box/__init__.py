"""The walls around student code, seen from outside, and the plain fork for code that is your own."""
