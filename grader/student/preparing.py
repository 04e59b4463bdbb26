"""What a kernel needs before its first verdict, imported while it has nothing else to do.

torch imports its compiler when an operation is watched for the first time: a second of processor time.
The kernel's own thread does it between two cells, in steps, so that a cell never waits for more than
one. A thread of our own could meet the student's imports in half-made modules.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

from grader.inside import interrupts, serve
from grader.student.showing import someone_reads

_SOON = 0.1
"""Seconds until the first step: the cell that asked for it shall be done."""

SAID = "Preparing to grade: the first verdict of a kernel takes a moment longer."

_left: list[Callable[[], object]] = [
    partial(import_module, "sympy"),
    partial(import_module, "torch._dynamo"),
    serve.warm_up,
]
"""The steps that were not taken yet."""


def begin(last: Callable[[], object]) -> None:
    """Have the steps taken as soon as the cell that runs now is done; `last` is one more."""
    _left.append(last)
    kernel = kernel_here()
    if kernel is not None:
        kernel.io_loop.call_later(_SOON, _go_on, kernel.io_loop)


def _go_on(loop: Any) -> None:
    if _left:
        _take_one()
        loop.call_later(0, _go_on, loop)


def _take_one() -> None:
    with interrupts.held():
        _left.pop(0)()


def finish() -> None:
    """Take the steps that are left, and say so; what is said goes when something else is shown."""
    if not _left:
        return
    # programs that read what cells show do not all know that something is taken back
    kernel = kernel_here() if someone_reads() else None
    if kernel is not None:
        kernel.shell.display_pub.publish({"text/plain": SAID})
    while _left:
        _take_one()
    if kernel is not None:
        kernel.shell.display_pub.clear_output(wait=True)


def kernel_here() -> Any:
    """Return the Jupyter kernel that this process is, None if it is none."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return getattr(shell, "kernel", None)
