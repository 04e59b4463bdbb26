"""Calls of an operator with several overloads, and which of them runs."""

import re
from dataclasses import dataclass
from random import Random
from typing import Any

import torch

TYPES = [
    *("Tensor", "int", "float", "bool", "Scalar", "str"),
    *("int[]", "int[2]", "float[]", "float[2]", "Tensor[]"),
]
NUMBERS = ["True", "1", "1.5"]
TENSORS = ["torch.ones(2)", "torch.ones(1)", "torch.tensor(2.5)", "torch.ones(1, 1)"]
ITEMS = [*NUMBERS, *TENSORS[:2], "None", "'a'"]
DEFAULTS = {"int": "2", "float": "0.5", "bool": "False", "Scalar": "1", "str": "'a'", "int[]": "[]"}
DEFAULTS |= {"int[2]": "1"}


@dataclass(frozen=True)
class Call:
    """Schemas of `pick` and a call of it, both as text: "pick(1, n=torch.ones(2))"."""

    schemas: list[str]
    text: str

    @property
    def values(self) -> tuple[list[Any], dict[str, Any]]:
        """Return what the call gives by position and by keyword."""
        kept = {"pick": lambda *arguments, **keywords: (list(arguments), keywords), "torch": torch}
        return eval(self.text, kept)

    def rows(self) -> list[tuple[str, str]]:
        """Return what a message says of the call."""
        return [("schemas", "\n".join(self.schemas)), ("call", self.text)]


def fits(type_: str, value: Any) -> bool:
    """Say whether the dispatcher takes `value` for an argument of this type."""
    if type_.endswith("?"):
        return value is None or fits(type_[:-1], value)
    word, listed, length = type_.partition("[")
    if listed and isinstance(value, list | tuple):
        return all(one is not None and fits(word, one) for one in value)
    if listed:
        return length != "]" and isinstance(value, {"int": int, "float": float}[word])
    takes: dict[str, tuple[type, ...]] = {"str": (str,), "int": (int,), "Tensor": (torch.Tensor,)}
    if isinstance(value, takes.get(word, (int, float))):
        return True
    if value is None:
        return word in ("Tensor", "bool")
    return (
        isinstance(value, torch.Tensor) and value.numel() == 1 and word in ("int", "float", "bool")
    )


PART = re.compile(r"(\*)|([\w]+[][\d]*\??) (\w+)(=)?")


def takes(schema: str, arguments: list[Any], keywords: dict[str, Any]) -> bool:
    """Say whether a call fits one schema of `random_schema`'s or a check's."""
    types, required, positional, only = {}, set(), [], False
    for star, type_, name, default in PART.findall(schema.partition("(")[2]):
        only = only or bool(star)
        if star:
            continue
        types[name] = type_
        positional += [] if only else [name]
        required |= set() if default else {name}
    given = list(zip(positional, arguments, strict=False)) + list(keywords.items())
    names = [name for name, _ in given]
    if len(arguments) > len(positional) or len(set(names)) < len(names):
        return False
    return required <= set(names) <= set(types) and all(fits(types[n], v) for n, v in given)


def choice(call: Call) -> str | None:
    """Return the overload that PyTorch runs, None where it finds none.

    A rule of our own, which a test holds against the dispatcher. Nobody defines operators here: torch
    2.13 ends the process where three overloads are taken away of which two differ in `[2]` alone.
    """
    for schema in call.schemas:
        if takes(schema, *call.values):
            return schema.partition("(")[0].partition(".")[2] or "default"
    return None


def random_value(random: Random) -> str:
    """Return a value as code."""
    kind = random.random()
    if kind < 0.25:
        items = [random.choice(ITEMS) for _ in range(random.randint(0, 3))]
        if random.random() < 0.6:
            items = items[:1] * len(items)  # most lists are of one kind
        inside = ", ".join(items)
        return f"[{inside}]" if random.random() < 0.6 else f"({inside}{',' * (len(items) == 1)})"
    return random.choice([*NUMBERS, *NUMBERS, *TENSORS, "None", "'a'"])


def random_schema(random: Random, overload: str) -> str:
    """Return an overload of `pick` with up to three arguments."""
    parts, star, optional = [], random.choice([1, 2, 3, 9]), False
    for place, name in enumerate("xyz"[: random.randint(1, 3)]):
        if place == star:
            parts.append("*")
        type_ = random.choice(TYPES) + random.choice(["", "", "?"])
        default = "None" if type_.endswith("?") else DEFAULTS.get(type_)
        optional = (optional and place < star) or (default is not None and random.random() < 0.4)
        if optional and default is None:
            type_, default = "int", "0"
        parts.append(f"{type_} {name}" + (f"={default}" if optional else ""))
    return f"pick{overload}({', '.join(parts)}) -> ()"


def random_call(random: Random) -> Call:
    """Return up to four overloads and a call that may or may not fit one of them."""
    names = random.sample([".a", ".b", ".c", ".d", ""], random.randint(1, 4))
    schemas = [random_schema(random, name) for name in names]
    values = [random_value(random) for _ in range(random.randint(1, 3))]
    first_keyword = random.randint(0, 3)
    given = [
        value if place < first_keyword else f"{'xyz'[place]}={value}"
        for place, value in enumerate(values)
    ]
    return Call(schemas, f"pick({', '.join(given)})")
