"""What one child may spend, every default in one place with its reason beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

MIB = 2**20

SOCKET_BYTES = 256 * MIB
"""Most bytes in the buffers of all sockets of a child: a sixth of what it may have as memory."""


@dataclass(frozen=True)
class Budget:
    """Limits of one child: the student's process and everything it starts.

    `wall_seconds` is for one `ask`; everything else is for the child's whole life.
    """

    cpu_seconds: float = 20.0
    """Processor time of the whole tree. An exercise takes well under a second; the slowest honest
    answer seen (a Python loop where a vectorised line was meant) stays under ten."""

    wall_seconds: float = 60.0
    """Waiting for one reply. Three times `cpu_seconds`: where three processes share each core,
    spinning code is still told from sleeping code, and slow right code still gets its points."""

    waiting_seconds: float = 120.0
    """Waiting for all replies together: code that sleeps through every question would else hold the
    class up for `wall_seconds` times the number of questions, which comes to hours."""

    memory_bytes: int = 1536 * MIB
    """Memory of the whole tree beyond the pages it shares with the warm process, files in /tmp and
    /dev/shm included. The largest chapter needs 300 MiB; two of these fit on a 4 GiB machine."""

    processes: int = 64
    """Processes and threads. Two ranks with two loader workers each, and gloo's threads, need 30."""

    file_bytes: int = 64 * MIB
    """One file. A checkpoint of the course's largest model is 5 MiB."""

    scratch_bytes: int = 256 * MIB
    """All files in /tmp, and again in /dev/shm, where loader workers put their batches."""

    open_files: int = 1024
    """Descriptors of one process: the usual soft limit, which loader workers are tuned for."""


def changed(budget: Budget, limits: Mapping[str, float]) -> Budget:
    """Return the budget with other limits. Raises ValueError for one that is none."""
    kinds = {field.name: type(getattr(budget, field.name)) for field in fields(Budget)}
    for name, value in limits.items():
        if name not in kinds:
            raise ValueError(f"there is no limit {name!r}; there are {', '.join(kinds)}")
        if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
            raise ValueError(f"{name} is {value!r}, not a number above 0")
    return replace(budget, **{name: kinds[name](value) for name, value in limits.items()})
