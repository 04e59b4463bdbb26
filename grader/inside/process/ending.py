"""How a child ended: what the keeper writes on the leash."""

from __future__ import annotations

import json
import signal
from dataclasses import asdict, dataclass

EXITED = "exited"
SIGNALLED = "signalled"
CPU = "cpu"
MEMORY = "memory"
PROCESSES = "processes"
SOCKETS = "sockets"
"""What was sent through them, and nobody read, was more than they may hold."""
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
