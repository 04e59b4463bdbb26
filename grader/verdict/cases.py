"""The cases of a parametrised check, with the names that pytest gives them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Any

import pytest

from grader.course.course import AuthorError

Given = dict[str, object]
"""The values that a case has for its check's arguments, by name."""

_Param = type(pytest.param())


class MalformedChecks(AuthorError):
    """A check file cannot be run, or not as pytest would run it. Says what to do instead."""


def cases_of(
    name: str, function: Callable[..., object], needs: Sequence[str]
) -> list[tuple[str, Given]]:
    """Return the name and the values of each case of a check that takes the arguments `needs`.

    Without `pytest.mark.parametrize` that is one case. Several marks give all combinations, and the
    top one's cases vary first. Raises `MalformedChecks`.
    """
    marks = [mark for mark in getattr(function, "pytestmark", ()) if mark.name == "parametrize"]
    cases: list[tuple[list[str], Given]] = [([], {})]
    for mark in marks:
        try:
            sets = _sets(*mark.args, **mark.kwargs)
        except MalformedChecks as problem:
            raise MalformedChecks(f"the parametrisation of {name} {problem}") from None
        for argument in sets[0][1]:
            if argument not in needs or argument in cases[0][1]:
                raise MalformedChecks(
                    f"the parametrisation of {name} names `{argument}`: "
                    "name arguments of the check, each once"
                )
        cases = [([*ids, one], {**given, **more}) for ids, given in cases for one, more in sets]
    return [(f"{name}[{'-'.join(ids)}]" if marks else name, given) for ids, given in cases]


def _sets(
    argnames: str | Sequence[str],
    argvalues: Iterable[Any],
    indirect: object = False,
    ids: Any = None,
    scope: object = None,
) -> list[tuple[str, Given]]:
    """Return the id and the values of each case of one mark, whose arguments these are."""
    if indirect or scope is not None:
        raise MalformedChecks(
            "has `indirect` or `scope`: leave it out, call a helper with the value"
        )
    names, alone = list(argnames), False
    if isinstance(argnames, str):
        names = [name.strip() for name in argnames.split(",") if name.strip()]
        alone = "," not in argnames  # then a value is the value, not a tuple that holds it
    params = [_param(value, alone) for value in argvalues]
    if not params or any(len(param.values) != len(names) for param in params):
        raise MalformedChecks(f"needs cases, and in each a value for {', '.join(names)}")
    if any(param.marks for param in params):
        raise MalformedChecks(
            "marks single cases: a mark is for a whole check, so write another check"
        )
    own = [None] * len(params) if ids is None else ids
    if not isinstance(own, list | tuple) or len(own) != len(params):
        raise MalformedChecks("has `ids` that are not a list with a text for each case: write that")
    texts = [_id(param, text, names, n) for n, (param, text) in enumerate(zip(params, own))]  # noqa: B905
    if len(set(texts)) < len(texts):
        raise MalformedChecks(f"gives two cases one name: {_HOW}")
    return [(text, dict(zip(names, p.values, strict=True))) for text, p in zip(texts, params)]  # noqa: B905


def _param(value: Any, alone: bool) -> Any:
    if isinstance(value, _Param):
        return value
    return pytest.param(value) if alone else pytest.param(*value)


def _id(param: Any, own: object, names: Sequence[str], number: int) -> str:
    """Return the id of case `number`: its own, the mark's, or what pytest makes of the values."""
    for text in (param.id, own):
        if text is not None:
            return _text(text)
    return "-".join(
        _text(value) if _names_itself(value) else f"{name}{number}"
        for name, value in zip(names, param.values, strict=True)
    )


_HOW = 'name each, `pytest.param(..., id="...")`'


def _names_itself(value: object) -> bool:
    """Say whether pytest makes a name of a value, and not of its argument and number."""
    if isinstance(value, bytes | re.Pattern | Enum) or hasattr(value, "__name__"):
        return True
    return value is None or isinstance(value, str | int | float | complex)


def _text(value: object) -> str:
    plain = isinstance(value, int | float | complex | None) and not isinstance(value, Enum)
    if plain or (isinstance(value, str) and value.isascii() and value.isprintable()):
        return str(value)
    raise MalformedChecks(f"has {value!r} for a name: {_HOW}, in letters and digits")
