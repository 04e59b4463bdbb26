"""Tests of what a student does in a terminal."""
