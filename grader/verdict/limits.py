"""What judging one attempt may cost. What came as evidence may be made to be slow or large to judge.

Whoever grades for others sets these; in a notebook of one's own nothing is limited. What a check
exceeds is said in its message, and the other checks go on.
"""

from __future__ import annotations

import resource
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from grader.inside.process.budget import MIB
from grader.inside.process.watch import memory_of_self

LEAST_SECONDS = 0.5
"""What a check has in any case: another that was slow must not cost its points."""


class OverLimit(BaseException):
    """Judging took too long. No `Exception`: nothing on the way is to take it for its own."""


@dataclass(frozen=True)
class JudgeLimits:
    """What judging one attempt may take."""

    cpu_seconds: float = 20.0
    """Of all checks together; they take a second where they take long. When nothing is left, each of
    the others still has `LEAST_SECONDS`."""

    memory_bytes: int = 1536 * MIB
    """Beyond what the process has when it begins: as much as the answer itself may have."""


class Judging:
    """The limits of one run of an attempt's checks."""

    def __init__(self, limits: JudgeLimits) -> None:
        self._left = limits.cpu_seconds
        self._armed = False

    @contextmanager
    def check(self) -> Iterator[None]:
        """Run one check. Raises `OverLimit` in it, as soon as Python has the word again.

        A thread that is not the first cannot be stopped, and is not.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.signal(signal.SIGPROF, self._stop)
        start = time.process_time()
        self._armed = True
        try:
            signal.setitimer(signal.ITIMER_PROF, max(self._left, LEAST_SECONDS))
            yield
        finally:
            self._armed = False
            signal.setitimer(signal.ITIMER_PROF, 0.0)
            signal.signal(signal.SIGPROF, before)
            self._left -= time.process_time() - start

    def _stop(self, number: int, frame: FrameType | None) -> None:
        if self._armed:
            self._armed = False
            raise OverLimit


@contextmanager
def within_memory(limits: JudgeLimits) -> Iterator[None]:
    """Refuse this process more memory than the limit, until the end. Where there is no /proc, do nothing."""
    now = memory_of_self().get("VmSize")
    if now is None:
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = now + limits.memory_bytes
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def exceeded(error: BaseException) -> str:
    """Return what an error says that judging went over, in words; empty if it is another error."""
    if isinstance(error, OverLimit):
        return "takes too long to compare"
    if isinstance(error, MemoryError):
        return "takes too much memory to compare"
    if isinstance(error, RuntimeError) and "DefaultCPUAllocator" in str(error):
        return "takes too much memory to compare"
    return ""
