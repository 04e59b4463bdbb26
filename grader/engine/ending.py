"""How a child ended: what the keeper writes on the leash, and the sentence a student reads."""

from __future__ import annotations

import json
import signal
from dataclasses import asdict, dataclass

from grader.core.outcome import Ended, Outcome
from grader.engine.budget import MIB, Budget

EXITED = "exited"
SIGNALLED = "signalled"
CPU = "cpu"
MEMORY = "memory"
PROCESSES = "processes"
ASKED = "asked"
"""The host let go of the leash."""
SETUP = "setup"
"""The isolation could not be built: the grader's trouble, never the student's."""


@dataclass(frozen=True)
class Ending:
    """`how` is one of the words above; `number` the exit code or signal; `detail` for the instructor."""

    how: str
    number: int = 0
    detail: str = ""

    def encode(self) -> bytes:
        """Return the ending as one JSON object."""
        return json.dumps(asdict(self)).encode()

    @staticmethod
    def decode(payload: bytes) -> Ending:
        """Return the ending that `encode` wrote."""
        return Ending(**json.loads(payload))


def from_wait_status(code: int, killed_by_kernel: bool) -> Ending:
    """Turn an exit code (negative for a signal, as `os.waitstatus_to_exitcode` gives it) into an ending."""
    if code >= 0:
        return Ending(EXITED, code)
    if -code == signal.SIGXCPU:
        return Ending(CPU)
    if -code == signal.SIGKILL and killed_by_kernel:
        return Ending(MEMORY, detail="the kernel's out-of-memory killer")
    return Ending(SIGNALLED, -code)


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
