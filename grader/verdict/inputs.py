"""What checks draw their inputs with: numbers, choices, and tensors in layouts that assume nothing.

Every function takes the fixture `rng`, a run's generator: the same seed draws the same inputs. A range
named by `low` and `high` is closed: both ends can be drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

import torch

Item = TypeVar("Item")

Shape = Sequence[int]


def draw_int(rng: torch.Generator, low: int, high: int) -> int:
    """Return a whole number from `low` to `high`, both included."""
    return int(torch.randint(low, high + 1, (), generator=rng))


def draw_one(rng: torch.Generator, items: Sequence[Item]) -> Item:
    """Return one of `items`, each as likely as any other."""
    return items[draw_int(rng, 0, len(items) - 1)]


def draw_order(rng: torch.Generator, count: int) -> list[int]:
    """Return the numbers 0 to `count` - 1 in an order drawn at random."""
    order: list[int] = torch.randperm(count, generator=rng).tolist()
    return order


def python_random(rng: torch.Generator) -> Random:
    """Return Python's kind of generator with a seed drawn from `rng`: for `sample`, `choices`, `shuffle`."""
    return Random(draw_int(rng, 0, 2**31 - 1))


def whole_numbers(
    rng: torch.Generator,
    shape: Shape,
    low: int = -4,
    high: int = 4,
    *,
    dtype: torch.dtype = torch.float32,
) -> torch.Tensor:
    """Return whole numbers from `low` to `high`, both included, contiguous.

    Sums of products of small ones are exact in any order of work, so that results can be compared
    bit for bit: in float32 while no sum is above 2**24, in float64 while none is above 2**53.
    """
    return torch.randint(low, high + 1, tuple(shape), generator=rng).to(dtype)


def draw_layout(
    rng: torch.Generator, dims: int, *, ones: bool = True, zeros: bool = False
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return sizes (at most 4) and strides of a tensor as slicing, permuting and expanding leave them.

    ones, zeros: whether sizes of 1 (with any stride) and of 0 may occur
    """
    low = 0 if zeros else 1 if ones else 2
    size = [draw_int(rng, low, 4) for _ in range(dims)]
    order = draw_order(rng, dims)
    if draw_int(rng, 0, 1):
        order = list(range(dims))
    stride, step = [0] * dims, draw_int(rng, 1, 2)
    for dim in reversed(order):
        stride[dim] = step
        step *= max(size[dim], 1) + (draw_int(rng, 0, 3) == 3)
    for dim in range(dims):
        if size[dim] == 1 or draw_int(rng, 0, 9) == 0:
            stride[dim] = draw_int(rng, 0, 13) if size[dim] == 1 else 0
    return tuple(size), tuple(stride)


def odd_tensors(rng: torch.Generator) -> dict[str, torch.Tensor]:
    """Return int32 tensors of three dimensions by the name of their layout: all that one may meet.

    Contiguous, with an offset and gaps, permuted, expanded, of odd strides, with a size of 1, empty.
    """
    base = whole_numbers(rng, (4, 5, 6), -(2**31), 2**31 - 1, dtype=torch.int32)
    return {
        "contiguous": base,
        "with an offset and gaps": base[1:, 1:4, ::2],
        "permuted": base.permute(2, 0, 1)[1:],
        "expanded": base[1:2, :, 2:].expand(3, 5, 4),
        "of odd strides": base.reshape(-1).as_strided((3, 4, 2), (7, 2, 9), 5),
        "with a size of 1": base[2:, 3:4, 1:],
        "empty": base[:, :, 2:2],
    }


def awkward_tensor(rng: torch.Generator, shape: Shape) -> torch.Tensor:
    """Return whole numbers from -4 to 4 of that shape, float32, in a layout drawn at random.

    Contiguous, permuted, with an offset and steps of two, expanded, or its last dimension outermost.
    """
    layouts = (whole_numbers, permuted_tensor, _sliced, _expanded, _rolled)
    return draw_one(rng, layouts)(rng, shape)


def permuted_tensor(rng: torch.Generator, shape: Shape) -> torch.Tensor:
    """Return whole numbers from -4 to 4, float32, whose dimensions lie in memory in reverse order."""
    return whole_numbers(rng, shape[::-1]).permute(tuple(range(len(shape)))[::-1])


def _sliced(rng: torch.Generator, shape: Shape) -> torch.Tensor:
    """Every second element of a larger tensor, from the second on."""
    large = whole_numbers(rng, [2 * size + 1 for size in shape])
    return large[(slice(1, None, 2),) * len(shape)]


def _expanded(rng: torch.Generator, shape: Shape) -> torch.Tensor:
    """A tensor whose first dimension repeats one part."""
    if not shape:
        return whole_numbers(rng, shape)
    return whole_numbers(rng, (1, *shape[1:])).expand(tuple(shape))


def _rolled(rng: torch.Generator, shape: Shape) -> torch.Tensor:
    """A tensor whose last dimension lies outermost in memory."""
    if not shape:
        return whole_numbers(rng, shape)
    return whole_numbers(rng, (shape[-1], *shape[:-1])).movedim(0, -1)
