"""Random einsum equations with operands that fit, or nearly."""

from __future__ import annotations

import torch

from grader import awkward_tensor, draw_int, draw_one, draw_order, whole_numbers
from grader.ch03_matmul.shapes import Shape

LETTERS = "bdaZc"
"""Not in order, and one in upper case: the order of an implicit output shows."""


def pick(rng: torch.Generator, items: list[str], most: int) -> list[str]:
    """Return at most `most` of the items, at random, each as often as it comes."""
    return [draw_one(rng, items) for _ in range(draw_int(rng, 0, most))]


def any_equation(rng: torch.Generator, dtype: torch.dtype) -> tuple[str, list[torch.Tensor]]:
    """Return an equation of one to three terms and operands for it.

    Letters repeat, sizes are 0 to 3 and sometimes 1 where another operand has more, dimensions hide
    in an ellipsis, the output is left out or names some letters in any order.
    """
    sizes = {letter: draw_int(rng, 0 if draw_int(rng, 0, 9) == 0 else 1, 3) for letter in LETTERS}
    hidden = tuple(draw_int(rng, 1, 3) for _ in range(2))
    dots = draw_int(rng, 0, 2) == 0
    terms, shapes = [], []
    for _ in range(draw_int(rng, 1, 3)):
        letters = pick(rng, list(LETTERS), most=4)
        shrunk = {letter for letter in letters if draw_int(rng, 0, 7) == 0}
        shape: Shape = tuple(1 if letter in shrunk else sizes[letter] for letter in letters)
        if dots and draw_int(rng, 0, 3):
            where, kept = draw_int(rng, 0, len(letters)), draw_int(rng, 0, 2)
            letters.insert(where, "...")
            inside = tuple(
                1 if draw_int(rng, 0, 3) == 0 else n for n in hidden[len(hidden) - kept :]
            )
            shape = (*shape[:where], *inside, *shape[where:])
        terms.append("".join(letters))
        shapes.append(shape)
    equation = ",".join(terms)
    if draw_int(rng, 0, 2):
        equation += "->" + any_output(rng, equation, dots)
    operands = [whole_numbers(rng, shape, dtype=dtype) for shape in shapes]
    if dtype is torch.float32 and draw_int(rng, 0, 1):
        operands = [awkward_tensor(rng, shape) for shape in shapes]
    return equation, operands


def any_output(rng: torch.Generator, inputs: str, dots: bool) -> str:
    """Return an output that names some of the letters of the inputs, each once."""
    there = sorted(set(inputs) - set(",."))
    order = draw_order(rng, len(there))
    output = [there[i] for i in order if draw_int(rng, 0, 1)]
    if dots and draw_int(rng, 0, 4):
        output.insert(draw_int(rng, 0, len(output)), "...")
    return "".join(output)
