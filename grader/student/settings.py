"""How PyTorch is set in a kernel while it judges: as in a box, whatever a cell has set and left so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def as_in_a_box() -> Iterator[None]:
    """Set PyTorch as it begins, with one thread, and put back what was set. Forks begin so, too.

    What is set are those settings under which right answers fail. Not how exact a matrix product is:
    PyTorch has two ways to set that, and refuses to tell by the one what was set by the other.
    """
    threads, grad = torch.get_num_threads(), torch.is_grad_enabled()
    dtype, device = torch.get_default_dtype(), torch.get_default_device()
    autocast = torch.is_autocast_enabled("cpu")
    deterministic = torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    flushing = _flushes_subnormals()
    try:
        # on a busy machine two threads wait for each other, 8 ms per operation
        torch.set_num_threads(1)
        torch.set_grad_enabled(True)
        torch.set_default_dtype(torch.float32)
        torch.set_default_device(None)
        torch.set_autocast_enabled("cpu", False)
        torch.use_deterministic_algorithms(False)
        torch.set_flush_denormal(False)
        # checks seed torch; the cells below draw as if none had
        with torch.random.fork_rng(devices=[]):
            yield
    finally:
        torch.set_num_threads(threads)
        torch.set_grad_enabled(grad)
        torch.set_default_dtype(dtype)
        torch.set_default_device(None if device.type == "cpu" else device)
        torch.set_autocast_enabled("cpu", autocast)
        torch.use_deterministic_algorithms(deterministic, warn_only=warn_only)
        torch.set_flush_denormal(flushing)


def _flushes_subnormals() -> bool:
    """Say whether subnormal numbers become zero here: PyTorch sets that and does not tell."""
    least = torch.tensor(2.0**-149, dtype=torch.float32, device="cpu")
    return not least.mul(1).item()
