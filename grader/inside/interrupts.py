"""Ctrl-C at a safe moment: held back while half a step would last, raised where nothing is half done.

Half an import stays half for the life of a process. `held` keeps an interrupt until its end;
`let_through`, within it, raises it at once: around waiting, and around code that is not ours.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

_APART = 0.5
"""Seconds after an interrupt was raised in which no other is: what ends on its way ends undisturbed."""


@dataclass
class _Held:
    """What one `held` knows: whether an interrupt came, whether it may be raised now, when one was."""

    came: bool = False
    through: bool = False
    raised: float = -_APART


_now: _Held | None = None
"""Of the outermost `held` of the main thread; None outside of one."""


@contextmanager
def held() -> Iterator[None]:
    """Hold an interrupt back until the end, or until `let_through`. One within another adds nothing."""
    global _now
    before = signal.getsignal(signal.SIGINT)
    # only the main thread is interrupted; and a handler from outside Python cannot be put back
    if _now is not None or before is None or not _in_main_thread():
        yield
        return
    state = _Held()
    try:
        _now = state
        signal.signal(signal.SIGINT, partial(_take, state))
        yield
    finally:
        _now = None  # before others may raise again
        signal.signal(signal.SIGINT, before)
        if state.came:
            signal.raise_signal(signal.SIGINT)


@contextmanager
def let_through() -> Iterator[None]:
    """Raise an interrupt at once, one that was held back too. Without `held` around it, no change."""
    state = _now
    if state is None or not _in_main_thread():
        yield
        return
    state.through = True
    try:
        _raise_what_came(state)
        yield
    finally:
        state.through = False


def drop() -> None:
    """Forget an interrupt that was held back: what it was to end has ended."""
    if _now is not None and _in_main_thread():
        _now.came = False


def start_anew() -> None:
    """Take interrupts as a fresh Python does. For a fork, which may come from within `held`."""
    global _now
    _now = None
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _take(state: _Held, number: int, frame: object) -> None:
    state.came = True
    _raise_what_came(state)


def _raise_what_came(state: _Held) -> None:
    if state.came and state.through and time.monotonic() > state.raised + _APART:
        state.came, state.raised = False, time.monotonic()
        raise KeyboardInterrupt


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
