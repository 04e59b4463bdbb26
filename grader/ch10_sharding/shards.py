"""Which part of a tensor each rank holds: worked out in one process, without ranks."""

from __future__ import annotations

import torch


def bounds(length: int, ranks: int) -> list[tuple[int, int]]:
    """Return each rank's offset and size by the rule of `torch.chunk`, empty ones at the end."""
    rows = -(-length // ranks)
    found = []
    for rank in range(ranks):
        offset = min(rank * rows, length)
        found.append((offset, min(rows, length - offset)))
    return found


def parts(x: torch.Tensor, ranks: int, dim: int = 0) -> list[torch.Tensor]:
    """Return each rank's part of `x` along `dim`, views."""
    return [x.narrow(dim, offset, size) for offset, size in bounds(x.shape[dim], ranks)]
