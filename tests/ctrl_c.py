"""Ctrl-C, as in a terminal, wherever the suite runs: what a shell starts in the background ignores it."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interrupts() -> Iterator[None]:
    """Let SIGINT raise KeyboardInterrupt in this process meanwhile."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
