"""Inputs in awkward layouts: the same values, elsewhere in memory."""

from collections.abc import Sequence
from itertools import product

import torch

from grader import draw_order, whole_numbers


def values(
    rng: torch.Generator, shape: Sequence[int], dtype: torch.dtype = torch.float32
) -> torch.Tensor:
    """Return random numbers of that shape, row-major."""
    return whole_numbers(rng, shape, -100, 99, dtype=dtype)


def permuted(x: torch.Tensor, rng: torch.Generator) -> torch.Tensor:
    """Return `x` with its dimensions in another order of memory."""
    order = draw_order(rng, x.dim())
    inverse = [order.index(dim) for dim in range(x.dim())]
    return x.permute(order).contiguous().permute(inverse)


def with_gaps(x: torch.Tensor, rng: torch.Generator) -> torch.Tensor:
    """Return `x` as a view of a larger tensor: an offset, and steps of two."""
    whole = values(rng, [2 * size + 1 for size in x.shape], x.dtype)
    view = whole[tuple(slice(1, None, 2) for _ in x.shape)]
    return view.copy_(x)


def later(x: torch.Tensor) -> torch.Tensor:
    """Return `x` at the end of a longer storage, densely laid out as it is."""
    whole = torch.zeros(7 + x.numel(), dtype=x.dtype)
    return whole.as_strided(x.shape, x.stride(), 7).copy_(x)


def layouts(x: torch.Tensor, rng: torch.Generator) -> list[tuple[str, torch.Tensor]]:
    """Return pairs of a name and a tensor with the elements of row-major `x`, one of them expanded."""
    found = [
        ("row-major", x),
        ("permuted", permuted(x, rng)),
        ("permuted", permuted(x, rng)),
        ("with gaps", with_gaps(x, rng)),
    ]
    if x.dim():
        found.append(("expanded", x[:1].expand(x.shape)))
        found.append(("expanded", x[..., :1].expand(x.shape)))
    return found


def reached(x: torch.Tensor) -> set[int]:
    """Return the bytes of its storage that `x` reaches, index by index."""
    width = x.element_size()
    return {
        (x.storage_offset() + sum(i * s for i, s in zip(index, x.stride(), strict=True))) * width
        + k
        for index in product(*map(range, x.shape))
        for k in range(width)
    }
