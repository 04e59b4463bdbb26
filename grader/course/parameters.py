"""Private variants: parameters of an exercise, drawn per course from a secret.

A card declares parameters; texts name their values as `{{name}}`, an expression of Jinja's, and
choose between lines with `#: if name == 3`, `#: else`, `#: endif`. Both are Python, so that sources
can be linted and formatted. The public course has the public values, a private one others, and all
follows from them: statement, stub, checks, known answers, reference.
"""

from __future__ import annotations

import hmac
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

Values = Mapping[str, Any]
"""The values of one exercise's parameters, by name."""


@dataclass(frozen=True)
class Parameter:
    """What may differ between courses. `says` tells a student what a value asks for, as a template.

    `among` are the values of private courses; the public one is not among them.
    """

    name: str
    public: Any
    among: tuple[Any, ...]
    says: str


def read_parameters(declared: object) -> tuple[Parameter, ...]:
    """Return the parameters that a card declares. Raises `ValueError` that says what is wrong.

    `declared` is the card's `parameters`: {name: {public: …, among: […], says: "…"}}.
    """
    if not isinstance(declared, Mapping):
        raise ValueError("they are no mapping of names")
    return tuple(_parameter(str(name), parts) for name, parts in declared.items())


def _parameter(name: str, parts: object) -> Parameter:
    if not name.isidentifier():
        raise ValueError(f"{name!r} is no Python name")
    if not isinstance(parts, Mapping) or set(parts) != {"public", "among", "says"}:
        raise ValueError(f"{name} needs `public`, `among` and `says`, and nothing else")
    among = parts["among"]
    if not isinstance(among, list) or not among:
        raise ValueError(f"`among` of {name} needs a list of one or more private values")
    if parts["public"] in among:
        raise ValueError(f"`among` of {name} holds the public value: a draw would change nothing")
    return Parameter(name, parts["public"], tuple(among), str(parts["says"]))


def public_values(parameters: Sequence[Parameter]) -> dict[str, Any]:
    """Return the values of the public course."""
    return {parameter.name: parameter.public for parameter in parameters}


def draw(secret: bytes, exercise: str, parameters: Sequence[Parameter]) -> dict[str, Any]:
    """Return the private values that a secret stands for: the same for the same secret.

    By HMAC-SHA256 (RFC 2104) of exercise and parameter, so that values tell nothing of the secret.
    """
    return {
        parameter.name: parameter.among[
            int(hmac.new(secret, f"{exercise}/{parameter.name}".encode(), "sha256").hexdigest(), 16)
            % len(parameter.among)
        ]
        for parameter in parameters
    }


def all_values(parameters: Sequence[Parameter]) -> Iterator[dict[str, Any]]:
    """Yield every combination of private values that a draw can give."""
    names = [parameter.name for parameter in parameters]
    for chosen in itertools.product(*(parameter.among for parameter in parameters)):
        yield dict(zip(names, chosen, strict=True))


def checked_values(parameters: Sequence[Parameter], values: Values) -> dict[str, Any]:
    """Return values that a notebook names. Raises `ValueError` if the card knows no such variant."""
    for known in (public_values(parameters), *all_values(parameters)):
        if known == dict(values):
            return known
    raise ValueError(f"no variant has {as_keywords(values)}")


_CHOICE = re.compile(r"^[ \t]*#: (.+)(?:\n|\Z)", re.MULTILINE)
"""A line that chooses. It goes with its end: Jinja's own line statements take blank lines along."""


def render(text: str, values: Values) -> str:
    """Return a text with its `{{expressions}}` replaced. Raises `ValueError` with the reason.

    Text of an exercise without parameters is left as it is, whatever it holds.
    """
    if not values or not any(mark in text for mark in ("{{", "{%", "#:")):
        return text
    from jinja2 import TemplateError

    try:
        return str(_jinja().from_string(_CHOICE.sub(r"{% \1 %}", text)).render(values))
    except (TemplateError, ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise ValueError(f"a {{{{…}}}} cannot be filled in: {error}") from None


def holds(condition: str, values: Values) -> bool:
    """Say whether a condition on values is true. Raises `ValueError` if it cannot be told."""
    from jinja2 import TemplateError

    try:
        return bool(_jinja().compile_expression(condition, undefined_to_none=False)(**values))
    except (TemplateError, ArithmeticError, TypeError) as error:
        raise ValueError(f"`if {condition}` cannot be told: {error}") from None


@cache
def _jinja() -> Any:
    from jinja2 import Environment, StrictUndefined

    # no HTML here; LaTeX and Python hold `{#`, which would begin a comment
    return Environment(
        undefined=StrictUndefined,
        autoescape=False,
        keep_trailing_newline=True,
        comment_start_string="{###",
        comment_end_string="###}",
    )


def phrase(parameters: Sequence[Parameter], values: Values) -> str:
    """Say what values ask for, in the words of the card."""
    return ", ".join(render(parameter.says, values) for parameter in parameters)


def as_keywords(values: Values) -> str:
    """Return values as Python writes keyword arguments."""
    return ", ".join(f"{name}={value!r}" for name, value in values.items())
