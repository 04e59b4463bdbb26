"""Predictions: a student writes one down, then the cell reveals what happens. Never graded."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Any

CLOSE = 1e-9
"""How near a number must be to count as the same: a guess is not rounded as a computer rounds. All
differences that chapters ask about are larger: the rounding to float32 is 6e-8."""


@dataclass(frozen=True)
class Prediction:
    """A guess beside what really came out; `truth` is None until there is a guess."""

    guess: str | None
    truth: str | None
    right: bool = False

    def __repr__(self) -> str:
        if self.guess is None:
            return "Write your prediction where the dots are, then run this cell."
        if self.truth is None:
            return "Give it a guess, and what to run: predict(12, lambda: x.nbytes)"
        if self.right:
            also = "" if self.guess == self.truth else f": {self.truth}"
            return f"You predicted {self.guess}, and so it is{also}."
        return f"You predicted {self.guess}. It is {self.truth}."

    def _repr_html_(self) -> str:
        return f'<p class="ut-prediction"><em>{escape(repr(self))}</em></p>'


def predict(guess: Any = ..., reveal: Callable[[], Any] | None = None) -> Prediction:
    """Compare a guess with what `reveal()` returns. With `...` for a guess nothing is revealed.

    What one would say is the same is the same: a list and a tuple, "float32" and `torch.float32`,
    0.3 and `0.1 + 0.2`.
    """
    if not callable(reveal):
        return Prediction(str(guess), None)
    if guess is ...:
        return Prediction(None, None)
    truth = reveal()
    return Prediction(str(guess), str(truth), _same(guess, truth))


def _same(guess: Any, truth: Any) -> bool:
    if isinstance(guess, list | tuple) and isinstance(truth, list | tuple):
        return len(guess) == len(truth) and all(map(_same, guess, truth))
    if (isinstance(guess, float) and _is_number(truth)) or (
        isinstance(truth, float) and _is_number(guess)
    ):
        return math.isclose(guess, truth, rel_tol=CLOSE) or (guess != guess and truth != truth)
    return _said(guess) == _said(truth)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _said(value: Any) -> str:
    """Return a value as one would say it: no matter the case, blanks, or where a dtype lives."""
    return "".join(str(value).split()).casefold().removeprefix("torch.")
