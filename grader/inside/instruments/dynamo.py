"""A fresh Dynamo for each measurement: what one function compiled is not found by the next."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import torch._dynamo
from torch._dynamo import guards
from torch._dynamo.utils import counters

# The first compilation in a process imports every backend there is, 0.5 s and more. Do it here,
# once, rather than in each fork that runs a probe.
torch._dynamo.list_backends()


@contextmanager
def fresh_dynamo() -> Iterator[None]:
    """Forget compiled code, guards and counters, before and after.

    Without it a second `torch.compile` of the same function finds the first one's code in the
    cache, and its backend is never called.

    Meanwhile Dynamo does not time its guards. For that it flushes the processor's caches once per
    compilation, which is half the work of compiling a small function.
    """
    torch._dynamo.reset()
    counters.clear()
    try:
        with mock.patch.object(guards, "profile_guard_manager", _untimed):
            yield
    finally:
        torch._dynamo.reset()
        counters.clear()


def _untimed(*arguments: object) -> float:
    """Return a guard latency in µs: none."""
    return 0.0
