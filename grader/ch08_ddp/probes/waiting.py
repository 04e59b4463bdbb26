"""How long ranks may take, and how one waits for a sign of another."""

import os

from grader import wait_for

SECONDS = 5.0
"""Longest life of ranks here. A right program is done in 0.3 s, and in 1 s at load 17."""

PATIENCE = 2.5
"""Seconds that one rank waits for a signal of another's backward, which takes 10 ms."""


def signals(descriptor, count):
    """Return how many bytes another rank wrote to the pipe; stop at `count`, or at a silence."""
    came = 0
    while came < count and wait_for(descriptor, PATIENCE):
        came += len(os.read(descriptor, count - came))
    return came
