"""Tensors laid over a mesh: what each rank holds of a whole one, as the checks work it out."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from grader.ch10_sharding.shards import parts

Placement = str | tuple[str, int]

REPLICATE, PARTIAL = "replicate", "partial"


def shares(
    rng: torch.Generator | None,
    whole: torch.Tensor,
    where: Sequence[Placement],
    shape: Sequence[int],
) -> list[torch.Tensor]:
    """Return what each rank of a mesh holds of a tensor; a partial one is cut into random summands."""
    held = [whole]
    for placement, ranks in zip(where, shape, strict=True):
        held = [part for tensor in held for part in along(rng, tensor, placement, ranks)]
    return held


def along(
    rng: torch.Generator | None, tensor: torch.Tensor, placement: Placement, ranks: int
) -> list[torch.Tensor]:
    """Return what the ranks along one dimension hold of a tensor."""
    if placement == REPLICATE:
        return [tensor] * ranks
    if placement == PARTIAL:
        summands = [
            torch.randint(-9, 10, tensor.shape, generator=rng).to(tensor.dtype)
            for _ in range(ranks - 1)
        ]
        return [*summands, tensor - sum(summands)]
    return parts(tensor, ranks, int(placement[1]))


def by_rank(
    rng: torch.Generator | None,
    wholes: Sequence[torch.Tensor],
    placements: Sequence[Sequence[Placement]],
    shape: Sequence[int],
) -> list[list[torch.Tensor]]:
    """Return for each rank its tensors, of all the whole ones."""
    held = [
        shares(rng, whole, where, shape) for whole, where in zip(wholes, placements, strict=True)
    ]
    return [[one[rank] for one in held] for rank in range(math.prod(shape))]


def summed(where: Sequence[Placement]) -> tuple[Placement, ...]:
    """Return a placement as it is once partial sums were summed."""
    return tuple(REPLICATE if placement == PARTIAL else placement for placement in where)
