"""What a student does in a terminal: check, watch, progress, hint, solution, reset, update, learn."""
