"""A second witness of what ran: PyTorch's own execution trace, which no plain Python can switch off.

The instruments and the tripwire are Python modes: each watches one thread, and code may leave them.
The execution trace is written by a callback in C++ that PyTorch calls at every operator, in every
thread, under every mode. It goes into a file of the grader's, which reads it on its own side (see
`grader.evidence.record`). Once it is on, what could switch it off is taken out of the process.
"""

from __future__ import annotations

import itertools
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import BinaryIO, NoReturn

import torch
import torch.profiler.profiler

from grader.evidence.wire.trace import (
    FLUSH,
    FORK,
    JOIN,
    NOTED,
    SWITCH,
    TOLD,
    WATCHES,
    fingerprint,
)

_ROOM = "." * 2**13
"""A mark as long as the buffer of the trace's file leaves nothing in that buffer."""

_SWITCHES = {
    "_add_execution_trace_observer": "_profiler",
    "_remove_execution_trace_observer": "_profiler",
    "_enable_execution_trace_observer": "_profiler",
    "_disable_execution_trace_observer": "_profiler",
    "_enable_record_function": "_autograd",
}
"""What starts and stops the trace, and the parts of `torch._C` that they belong to."""

_numbers = itertools.count()
_enter = torch._C._autograd._record_function_with_args_enter
_exit = torch._C._autograd._record_function_with_args_exit
_exit_now = os._exit
_file: int | None = None
"""The descriptor of the trace's file, once there is one."""

_forks: list[BinaryIO] = []
"""Files for the traces of forks: two processes in one file would be told apart by nobody."""

_MOST_FORKS = 64


def begin(descriptor: int) -> None:
    """Write a trace into the file from now on: of all threads, and of forks. There is no end."""
    global _file
    with _silent():  # it says on stderr that it begins
        path = f"/proc/self/fd/{descriptor}"
        _file = os.dup(descriptor)  # the lowest number that is free, which the trace gets next
        os.close(_file)
        torch._C._profiler._add_execution_trace_observer(path)
        torch._C._profiler._enable_execution_trace_observer()
    os.close(descriptor)
    os.register_at_fork(before=_before_fork, after_in_child=_in_fork)
    os._exit = _exit_flushed
    for name, part in _SWITCHES.items():
        _take_out(name, getattr(torch._C, part), torch.profiler.profiler, torch.autograd)


def is_on() -> bool:
    """Say whether a trace is being written."""
    return _file is not None


def mark(words: str) -> None:
    """Put words of ours into the trace."""
    if _file is not None:
        _exit(_enter(words))


class Account:
    """What an instrument tells the second witness as it sees it, and once more at its end.

    Told is told: code that clears what an instrument has noted does not reach the trace. Whoever
    reads it compares the two.

    sees_all: whether the instrument is a dispatch mode, which sees all that runs till its end: what does
        not go by a mode is hidden from it
    """

    def __init__(self, *, sees_all: bool = True) -> None:
        self._key = f"{os.getpid()}.{next(_numbers)}"
        if sees_all:
            mark(f"{WATCHES} {self._key}")

    def tell(self, *what: object) -> None:
        """Tell what was just seen."""
        if _file is not None:
            mark(f"{TOLD} {self._key} {' '.join(map(str, what))}")

    def close(self, all_told: Iterable[object]) -> None:
        """Say what was told in all, by the instrument's own notes."""
        if _file is not None:
            mark(f"{NOTED} {self._key} {fingerprint(map(str, all_told))}")


def flush() -> None:
    """Hand over all that ran so far, in forks too, to whoever reads the file."""
    mark(FLUSH + _ROOM)
    _gather()


def _exit_flushed(status: int) -> NoReturn:
    """End the process as `os._exit` does: so forks end, and what they ran last stands in a buffer."""
    try:
        flush()
    finally:
        _exit_now(status)


def _before_fork() -> None:
    if len(_forks) == _MOST_FORKS:
        _gather()
    mark(_ROOM)  # the fork has a copy of the buffer, and would write it once more
    _forks.append(tempfile.TemporaryFile())  # noqa: SIM115 (as long as the fork lives)


def _in_fork() -> None:
    if _file is not None:
        os.dup2(_forks[-1].fileno(), _file)
    for file in _forks:
        file.close()
    _forks.clear()


def _gather() -> None:
    """Put what forks have written behind what this process has."""
    if _file is None:
        return
    for file in _forks:
        file.seek(0)
        text = file.read()
        file.close()
        if text:
            with suppress(OSError):  # no room is left
                os.write(_file, FORK + text + JOIN)
    _forks.clear()


def _take_out(name: str, *homes: ModuleType) -> None:
    stub = _stub(name)
    for home in homes:
        if hasattr(home, name):
            setattr(home, name, stub)


def _stub(name: str) -> Callable[..., bool]:
    def switch(*arguments: object) -> bool:
        mark(SWITCH)
        return False

    switch.__name__ = switch.__qualname__ = name
    return switch


@contextmanager
def _silent() -> Iterator[None]:
    """Keep what C++ writes on stderr from everybody."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
