"""A tensor in each of its layouts, and what a way from one to another may say."""

from __future__ import annotations

import math
from typing import Any

import torch

from grader import Mismatch, about, assert_equal, assert_holds, assert_same_bits, assert_tensor
from grader.ch10_sharding.shards import parts

KINDS = {
    "all_gather": ("all_gather", "all_gather_into_tensor", "all_gather_coalesced"),
    "reduce_scatter": ("reduce_scatter", "reduce_scatter_tensor"),
    "all_to_all": ("all_to_all", "all_to_all_single"),
    "all_reduce": ("all_reduce", "all_reduce_coalesced"),
}
"""The collectives of this chapter, and the names that each has."""

Placement = str | tuple[str, int]


def kind_of(name: str) -> str:
    """Return the collective that a call of this name is."""
    return next((kind for kind, names in KINDS.items() if name in names), name)


def laid_out(
    x: torch.Tensor, placement: Placement, ranks: int, rng: torch.Generator
) -> list[torch.Tensor]:
    """Return what each rank has of `x`, whole numbers; partial ones are drawn."""
    if placement == "replicate":
        return [x.clone() for _ in range(ranks)]
    if placement == "partial":
        terms = [
            torch.randint(-50, 51, x.shape, generator=rng).to(x.dtype) for _ in range(ranks - 1)
        ]
        return [*terms, x - sum(terms, torch.zeros_like(x))]
    return [part.clone() for part in parts(x, ranks, placement[1])]


def way(
    shape: tuple[int, ...], source: Placement, target: Placement, ranks: int, itemsize: int
) -> tuple[str, int]:
    """Return the one collective from layout to layout, and the most bytes that a rank brings."""

    def padded(*dims: int) -> int:
        sizes = [-(-n // ranks) if dim in dims else n for dim, n in enumerate(shape)]
        return math.prod(sizes) * itemsize

    if source in ("replicate", target) or (source != "partial" and target == "partial"):
        return "", 0
    if source == "partial":
        if target == "replicate":
            return "all_reduce", padded()
        return "reduce_scatter", padded(target[1]) * ranks  # type: ignore[arg-type]
    if target == "replicate":
        return "all_gather", padded(source[1])  # type: ignore[arg-type]
    return "all_to_all", padded(source[1], target[1]) * ranks  # type: ignore[arg-type]


def case_rows(case: tuple[Any, ...], rank: int) -> tuple[tuple[str, str], ...]:
    """Return the row that names a call."""
    of_ranks, shape, source, target = case
    mine = f"<size {tuple(of_ranks[rank].shape)}, stride {of_ranks[rank].stride()}>"
    return (
        ("on", f"rank {rank} of {len(of_ranks)}"),
        ("call", f"redistribute({mine}, {tuple(shape)}, {source!r}, {target!r})"),
    )


def assert_laid_out(found: list[Any], number: int, case: tuple[Any, ...], x: torch.Tensor) -> None:
    """Fail unless all ranks have what they must have of `x` after the case of this number."""
    of_ranks, _, _, target = case
    ranks = len(of_ranks)
    if target == "partial":
        total = torch.zeros_like(x)
        for rank, mine in enumerate(found):
            with about(*case_rows(case, rank)):
                assert_tensor(mine[number]["part"], dtype=x.dtype, shape=x.shape)
            total = total + mine[number]["part"]
        with about(case_rows(case, 0)[1], of="The sum of what the ranks have. "):
            assert_same_bits(total, x)
    else:
        expected = [x] * ranks if target == "replicate" else parts(x, ranks, target[1])
        for rank, mine in enumerate(found):
            with about(*case_rows(case, rank)):
                right = expected[rank]
                assert_tensor(mine[number]["part"], dtype=x.dtype, shape=right.shape)
                assert_same_bits(mine[number]["part"], right.contiguous())


def assert_said(found: list[Any], number: int, case: tuple[Any, ...], itemsize: int) -> None:
    """Fail unless each rank made the one call of the case, and brought no more than it must."""
    of_ranks, shape, source, target = case
    kind, most = way(tuple(shape), source, target, len(of_ranks), itemsize)
    for rank, mine in enumerate(found):
        with about(*case_rows(case, rank)):
            said = mine[number]["said"]
            kinds = [kind_of(name) for name, _ in said]
            assert_equal(kinds, [kind] if kind else [], "What the rank called.")
            size = sum(size for _, size in said)
            rows = ("expected", f"{most} bytes at most"), ("got", f"{size} bytes")
            assert_holds(size <= most, "The rank brings more than its part, padded.", *rows)


def assert_apart(found: list[Any], number: int, case: tuple[Any, ...]) -> None:
    """Fail unless the results are new tensors, and the ranks' own stayed as they were."""
    for rank, mine in enumerate(found):
        rows = case_rows(case, rank)
        if not mine[number]["new"]:
            raise Mismatch("What comes back shares memory with `local`.", rows)
        if not mine[number]["untouched"]:
            raise Mismatch("`local` was changed.", rows)
