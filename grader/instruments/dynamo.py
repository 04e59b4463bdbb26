"""A fresh Dynamo for each measurement: what one function compiled is not found by the next."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch._dynamo
from torch._dynamo.utils import counters

# The first compilation in a process imports every backend there is, 0.5 s and more. Do it here,
# once, rather than in each fork that runs a probe.
torch._dynamo.list_backends()


@contextmanager
def fresh_dynamo() -> Iterator[None]:
    """Forget compiled code, guards and counters, before and after.

    Without it a second `torch.compile` of the same function finds the first one's code in the
    cache, and its backend is never called.
    """
    torch._dynamo.reset()
    counters.clear()
    try:
        yield
    finally:
        torch._dynamo.reset()
        counters.clear()
