"""Predictions: a student writes one down, then the cell reveals what happens. Never graded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Any


@dataclass(frozen=True)
class Prediction:
    """A guess beside what really came out; `truth` is None until there is a guess."""

    guess: str | None
    truth: str | None

    def __repr__(self) -> str:
        if self.guess is None:
            return "Write your prediction where the dots are, then run this cell."
        if self.guess == self.truth:
            return f"You predicted {self.guess}, and so it is."
        return f"You predicted {self.guess}. It is {self.truth}."

    def _repr_html_(self) -> str:
        return f'<p class="ut-prediction"><em>{escape(repr(self))}</em></p>'


def predict(guess: Any, reveal: Callable[[], Any]) -> Prediction:
    """Compare a guess with what `reveal()` returns. With `...` for a guess nothing is revealed."""
    if guess is ...:
        return Prediction(None, None)
    return Prediction(str(guess), str(reveal()))
