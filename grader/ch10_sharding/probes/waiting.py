"""How long ranks may take."""

SECONDS = 3.0
"""Longest life of ranks here: what a program that waits for ever costs, once per probe. A right one
is done in 0.3 s, and in 1 s at load 17; time in which it stands in line does not count."""
