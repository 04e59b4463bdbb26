"""Recognises which variant of its exercises a notebook is of, by what the notebook itself says.

The grade cell says it, as `grade("loss_scale_step", grow=4)`: so a live notebook knows, and one
that lost its metadata. A submission is judged by what its course asks for, whatever it says.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from typing import Any

from grader.course.cells import grade_id_of
from grader.course.course import Chapter
from grader.course.parameters import Values, as_keywords, phrase

SHOWN = 200
"""Characters of what a submission says of its variant that anyone is shown."""


def other_variants(chapter: Chapter, cells: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Say of which exercises a submitted notebook holds another variant than the course's."""
    said = {}
    for exercise in chapter.exercises:
        theirs = variant_in(cells, exercise.id)
        if theirs is None or not exercise.parameters or dict(exercise.variant) == theirs:
            continue
        asks = phrase(exercise.parameters, exercise.values)
        said[exercise.id] = (
            f"This notebook holds another variant of the exercise ({as_keywords(theirs)[:SHOWN] or 'public'}). "
            f"It was judged by what this course asks for: {asks}."
        )
    return said


def variant_in(cells: Sequence[Mapping[str, Any]], exercise: str) -> dict[str, Any] | None:
    """Return the variant that a submitted notebook's cells say they are of: {} for the public one.

    The grade cell decides, then the solution cell's metadata; None if both are gone.
    """
    calls = [read_call(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    for call in calls:
        if call and call[0] == exercise:
            return call[1]
    for cell in cells:
        card = cell["metadata"].get("undertorch")
        if isinstance(card, dict) and grade_id_of(cell) == exercise:
            variant = card.get("variant", {})
            named = isinstance(variant, dict) and all(name.isidentifier() for name in variant)
            return variant if named else None
    return None


def grade_call(exercise: str, variant: Values | None) -> str:
    """Return a grade cell's text. It names a private variant, so that a live notebook knows it."""
    return f'grade("{exercise}"{"".join(", " + as_keywords({n: v}) for n, v in (variant or {}).items())})'


_CALL = re.compile(r"\s*grade\(")


def read_call(source: str) -> tuple[str, dict[str, Any]] | None:
    """Return the exercise and the variant that a grade cell names; None if it is no such cell."""
    if not _CALL.match(source) or len(source) > 2000:
        return None
    try:
        call = ast.parse(source.strip().rstrip(";"), mode="eval").body
        if not isinstance(call, ast.Call) or ast.unparse(call.func) != "grade":
            return None
        names = [ast.literal_eval(argument) for argument in call.args]
        values = {str(word.arg): ast.literal_eval(word.value) for word in call.keywords if word.arg}
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return None
    plain = len(names) == 1 and isinstance(names[0], str) and names[0].isidentifier()
    return (names[0], values) if plain and len(values) == len(call.keywords) else None
