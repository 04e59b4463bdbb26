"""Plans of loops as PyTorch makes them, and operands in layouts drawn at random."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from grader import draw_int, draw_order

Stride = tuple[int, ...]
Case = tuple[Stride, list[Stride]]
Plan = tuple[Stride, list[tuple[int, Stride]]]


def plan(size: Stride, strides: Sequence[Stride], *, keep_ones: bool = False) -> Plan:
    """Return the result's strides, 0 where the size is 1, and the loops, the innermost first.

    `keep_ones`: let dimensions of size 1 take part while the order is found, as TensorIterator does.
    """
    order = [dim for dim in range(len(size) - 1, -1, -1) if keep_ones or size[dim] != 1]
    for i in range(1, len(order)):
        here = i
        for j in range(i - 1, -1, -1):
            wanted = _swap(order[j], order[here], size, strides)
            if wanted > 0:
                order[j], order[here] = order[here], order[j]
                here = j
            elif wanted < 0:
                break
    order = [dim for dim in order if size[dim] != 1]
    result, step = [0] * len(size), 1
    loops: list[tuple[int, Stride]] = []
    for dim in order:
        result[dim] = step
        step *= size[dim]
        steps = (result[dim], *(stride[dim] for stride in strides))
        if loops and all(s * loops[-1][0] == t for s, t in zip(loops[-1][1], steps, strict=True)):
            loops[-1] = (loops[-1][0] * size[dim], loops[-1][1])
        else:
            loops.append((size[dim], steps))
    return tuple(result), loops


def _swap(inner: int, outer: int, size: Stride, strides: Sequence[Stride]) -> int:
    """TensorIterator's `should_swap`: above 0 if the two must change places, below if they must not."""
    for stride in strides:
        low, high = stride[inner], stride[outer]
        if low == 0 or high == 0:
            continue
        if low != high:
            return 1 if low > high else -1
        if size[inner] > size[outer]:
            return 1
    return 0


def draw_operand(rng: torch.Generator, size: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return the size and strides of a permuted tensor that can be read with `size`."""
    own = [1 if draw_int(rng, 0, 9) < 3 else n for n in size]
    if draw_int(rng, 0, 3) == 0:
        own = own[draw_int(rng, 0, len(own)) :]
    stride, reach = [0] * len(own), 1
    gaps = draw_int(rng, 0, 2) == 0
    for dim in draw_order(rng, len(own)):
        stride[dim] = reach
        reach *= own[dim] * (2 if gaps and draw_int(rng, 0, 1) else 1)
    return own, stride


def read_with(size: Sequence[int], own: Sequence[int], stride: Sequence[int]) -> Stride:
    """Return the strides of a tensor that is read with the common size."""
    new = len(size) - len(own)
    filled = zip([1] * new + list(own), [0] * new + list(stride), size, strict=True)
    return tuple(0 if n == 1 and m != 1 else s for n, s, m in filled)


def draw_case(rng: torch.Generator, most: int = 3) -> Case:
    """Return a common size and the strides of one to `most` operands."""
    size = [draw_int(rng, 1, 4) for _ in range(draw_int(rng, 1, 5))]
    operands = [draw_operand(rng, size) for _ in range(draw_int(rng, 1, most))]
    common = torch.broadcast_shapes(*(own for own, _ in operands))
    return tuple(common), [read_with(common, *operand) for operand in operands]


def is_plain(case: Case) -> bool:
    """Say whether dimensions of size 1 make no difference, left out early or late."""
    return plan(*case) == plan(*case, keep_ones=True)
