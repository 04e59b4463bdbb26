"""How long ranks may take."""

SECONDS = 3.0
"""Longest life of ranks here. A right program is done in 0.3 s, and in 1 s at load 17; time in which it
stands in line does not count."""
