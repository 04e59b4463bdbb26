"""Pairs of shapes for products: such as fit, and such as nearly fit."""

from __future__ import annotations

import torch

from grader import draw_int

Shape = tuple[int, ...]


def fitting_batches(rng: torch.Generator, most: int, smallest: int = 1) -> tuple[Shape, Shape]:
    """Return two lists of at most `most` batch dimensions that broadcast against each other."""
    whole = [draw_int(rng, smallest, 4) for _ in range(draw_int(rng, 0, most))]

    def one_side() -> Shape:
        side = [1 if draw_int(rng, 0, 2) == 0 else size for size in whole]
        return tuple(side[draw_int(rng, 0, len(side)) if draw_int(rng, 0, 1) else 0 :])

    return one_side(), one_side()


def any_pair(rng: torch.Generator) -> tuple[Shape, Shape]:
    """Return two shapes of any rank; about one pair in ten does not fit."""
    batch_a, batch_b = fitting_batches(rng, most=4, smallest=0)
    m, k, n = (draw_int(rng, 0, 5) for _ in range(3))
    a: Shape = (*batch_a, m, k) if draw_int(rng, 0, 4) else (k,)
    b: Shape = (*batch_b, k, n) if draw_int(rng, 0, 4) else (k,)
    if draw_int(rng, 0, 4) == 0:
        a = spoiled(rng, a)
    return a, b


def spoiled(rng: torch.Generator, shape: Shape) -> Shape:
    """Return a shape of which one size, or all dimensions, went wrong."""
    if draw_int(rng, 0, 9) == 0:
        return ()
    where = draw_int(rng, 0, len(shape) - 1)
    return (*shape[:where], draw_int(rng, 0, 4), *shape[where + 1 :])


def true_shape(a: Shape, b: Shape) -> Shape | str:
    """Return what torch.matmul makes of zeros of these shapes, or "ValueError"."""
    try:
        return tuple(torch.matmul(torch.zeros(a), torch.zeros(b)).shape)
    except RuntimeError:
        return "ValueError"
