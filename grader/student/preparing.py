"""What a kernel needs before its first verdict, imported while it has nothing else to do.

A chapter may need modules of torch's that take seconds to import, such as its compiler. The kernel's
own thread does it between two cells, in steps, so that a cell never waits for more than one. A thread
of our own could meet the student's imports in half-made modules.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from grader.inside import interrupts, serve
from grader.student.showing import someone_reads

_SOON = 0.1
"""Seconds until the first step: the cell that asked for it shall be done."""

SAID = "Preparing to grade: the first verdict of a kernel takes a moment longer."

Step = Callable[[], object]

_left: list[Step] = [serve.warm_up]
"""The steps that were not taken yet."""


def begin(step: Step) -> None:
    """Have the steps taken as soon as the cell that runs now is done; this is one more."""
    also(step)
    kernel = kernel_here()
    if kernel is not None:
        kernel.io_loop.call_later(_SOON, _go_on, kernel.io_loop)


def also(step: Step) -> None:
    """Have one more step taken, after those that are left."""
    _left.append(step)


def _go_on(loop: Any) -> None:
    if _left:
        _take_one()
        loop.call_later(0, _go_on, loop)


def _take_one() -> None:
    # what fails here fails again, and is told, where it is needed
    with interrupts.held(), suppress(Exception):
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
