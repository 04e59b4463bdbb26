"""Ctrl-C, as in a terminal, wherever the suite runs: what a shell starts in the background ignores it."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


def as_in_a_shell() -> None:
    """Let SIGINT do in a process that is being started what it does in a terminal. For `preexec_fn`."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def interrupts() -> Iterator[None]:
    """Let SIGINT raise KeyboardInterrupt in this process meanwhile."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
