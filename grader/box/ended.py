"""The sentence a student reads of how the process with their code ended."""

from __future__ import annotations

import signal

from grader.evidence.outcome import Ended, Outcome
from grader.inside.process.budget import MIB, SOCKET_BYTES, Budget
from grader.inside.process.ending import (
    CPU,
    EXITED,
    MEMORY,
    PROCESSES,
    SIGNALLED,
    SOCKETS,
    Ending,
)


def explain(ending: Ending, budget: Budget) -> Ended:
    """Return the exception that tells a student how their process ended."""
    if ending.how == EXITED:
        return Ended(
            Outcome.CRASHED,
            f"Your code ended the Python process (exit code {ending.number}) before it gave an answer.",
        )
    if ending.how == SIGNALLED:
        return _signalled(ending.number)
    if ending.how == CPU:
        return Ended(
            Outcome.TIMED_OUT,
            f"Your code used more than {budget.cpu_seconds:g} s of processor time.",
        )
    if ending.how == MEMORY:
        return Ended(
            Outcome.OUT_OF_MEMORY,
            f"Your code, with every process it started, used more than {budget.memory_bytes // MIB} MiB of memory.",
        )
    if ending.how == SOCKETS:
        return Ended(
            Outcome.OUT_OF_MEMORY,
            f"Your code sent more than {SOCKET_BYTES // MIB} MiB through sockets that nobody read.",
        )
    if ending.how == PROCESSES:
        return Ended(
            Outcome.KILLED,
            f"Your code ran more than {budget.processes} processes and threads at once.",
        )
    return Ended(Outcome.KILLED, "The process that ran your code was ended by the grader.")


def out_of_time(budget: Budget, patience: float) -> Ended:
    """Return the exception for a reply that did not come; `patience` is what was left for all."""
    if patience <= 0:
        seconds = f"{budget.waiting_seconds:g} s"
        return Ended(Outcome.TIMED_OUT, f"Your code's answers took more than {seconds} in all.")
    return Ended(Outcome.TIMED_OUT, f"Your code gave no answer within {budget.wall_seconds:g} s.")


def _signalled(number: int) -> Ended:
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    if number == signal.SIGKILL:
        return Ended(Outcome.KILLED, "The process that ran your code was killed (SIGKILL).")
    if number in (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGABRT):
        return Ended(
            Outcome.CRASHED,
            f"Your code crashed the Python process ({name}): it touched memory that it may not, "
            "or native code gave up.",
        )
    return Ended(Outcome.CRASHED, f"Your code ended the Python process by a signal ({name}).")
