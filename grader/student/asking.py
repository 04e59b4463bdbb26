"""Asks about the names that a kernel holds, so that no answer can harm the kernel.

On Linux a fork of the kernel answers: it has every variable, and what becomes of it, or of them in
it, the kernel never knows. Elsewhere, and where a fork would not do, the kernel itself answers, and
an answer that takes too long is interrupted.
"""

from __future__ import annotations

import builtins
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from grader.box.here import Here
from grader.evidence.wire.channel import Transport
from grader.inside.probe import Probe
from grader.inside.process.budget import Budget
from grader.student.preparing import kernel_here
from grader.verdict.grading import Clock

AUTOGRAD_THREADS = "pt_autograd_"
"""How torch names the threads of its autograd engine. It starts them where there is another device
than a CPU, at the first backward, and then refuses every backward in a fork (torch/csrc/autograd/engine.cpp)."""

PATIENCE = 1.5
"""Seconds that a student waits, at most, while known mistakes are run to see whether one explains."""


def ask_kernel(probes: dict[str, Probe], names: dict[str, Any], budget: Budget) -> Transport:
    """Return a transport that asks about `names`, those of this kernel."""
    if sys.platform == "linux" and may_fork():
        from grader.box.fork import Fork  # what it needs is not everywhere

        return Fork(probes, budget, names, cut_off)
    return Here(probes, names, budget)


def known_mistakes(
    probes: dict[str, Probe], budget: Budget
) -> tuple[Callable[[], Transport], Clock]:
    """Return what opens a process for a known mistake, and the clock that ends the search among them.

    Only those whose marks were not made beforehand are run. Where nothing forks, none can be.
    """
    clock = Clock(PATIENCE if hasattr(os, "fork") else 0.0)

    def open_known() -> Transport:
        from grader.box.fork import Fork

        left = max(clock.left(), 0.001)
        return Fork(probes, replace(budget, wall_seconds=min(left, budget.wall_seconds)))

    return open_known, clock


def may_fork() -> bool:
    """Say whether a fork of this process can do all that an answer may ask of torch."""
    tasks = Path("/proc/self/task").glob("*/comm")
    return not any(task.read_text().startswith(AUTOGRAD_THREADS) for task in tasks)


def cut_off() -> None:
    """Keep a fork from talking to the notebook: the kernel's sockets are the kernel's.

    What an answer prints is kept by who asks it; what else it shows goes nowhere, as in a box.
    """
    for stream in {sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__} - {None}:
        stream.write = len  # type: ignore[union-attr, method-assign]
        stream.flush = lambda: None  # type: ignore[union-attr, method-assign]
    builtins.input = _nobody_types
    kernel = kernel_here()
    if kernel is not None:
        kernel.session.send = lambda *args, **kwargs: None  # all that a kernel says goes this way


def _nobody_types(prompt: object = "") -> str:
    raise EOFError("nobody types while an answer is graded")
