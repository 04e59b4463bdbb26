"""A verdict and its pictures, for people."""
