"""Schemas with what they say: made at random, picked by hand, and those of the build."""

import re
from random import Random
from typing import Any

import torch

Said = dict[str, Any]
"""A schema as plain data: the fields of the notebook's `Schema`, sets as sorted lists."""

WORDS = ["Tensor", "int", "SymInt", "float", "bool", "Scalar", "str", "ScalarType", "Device"]
SUFFIXES = ["", "", "", "?", "[]", "[2]", "[]?"]
NAMES = [
    "self",
    "other",
    "x",
    "y",
    "weight",
    "dim",
    "size",
    "out",
    "indices",
    "mode",
    "p",
    "a",
    "b",
]
STRINGS = ["none", "mean", "linear"]


def letters(before: str, after: str, written: bool) -> str:
    """Return an annotation as text: "(a!)", "(a -> *)", "" for none."""
    if not before:
        return ""
    mark = "!" if written else ""
    arrow = f" -> {'|'.join(after)}" if after != before else ""
    return f"({'|'.join(before)}{mark}{arrow})"


def argument(
    type_: str = "Tensor",
    name: str = "",
    sets: str = "",
    after: str | None = None,
    *,
    written: bool = False,
    keyword_only: bool = False,
    **default: Any,
) -> Said:
    """Return an argument as plain data; `default=...` makes it one that may be left out."""
    return {
        "name": name,
        "type": type_,
        "before": sorted(sets),
        "after": sorted(sets if after is None else after),
        "written": written,
        "keyword_only": keyword_only,
        "required": "default" not in default,
        "default": default.get("default"),
    }


def schema(name: str, overload: str, arguments: list[Said], results: list[Said]) -> Said:
    """Return a schema as plain data, with what follows from its letters."""
    return {
        "name": name,
        "overload": overload,
        "arguments": arguments,
        "results": results,
        "writes": sorted(one["name"] for one in arguments if one["written"]),
        "shares": sorted(
            (number, one["name"])
            for number, result in enumerate(results)
            for one in arguments
            if {*result["before"]} & {*one["before"], *one["after"]}
        ),
    }


def part_as_text(part: Said, quote: str = '"') -> str:
    """Return one argument or result as a schema has it."""
    word, suffix = re.fullmatch(r"([\w.]+)(.*)", part["type"]).groups()
    text = word + letters("".join(part["before"]), "".join(part["after"]), part["written"]) + suffix
    text += f" {part['name']}" if part["name"] else ""
    if part["required"]:
        return text
    value = part["default"]
    if isinstance(value, str):
        kept = value.replace("\\", "\\\\").replace(quote, "\\" + quote)
        return f"{text}={quote}{kept}{quote}"
    return f"{text}={value}"


def as_text(said: Said, quote: str = '"') -> str:
    """Return the line that says all of `said`."""
    name = said["name"] + (f".{said['overload']}" if said["overload"] else "")
    parts, keyword_only = [], False
    for one in said["arguments"]:
        if one["keyword_only"] and not keyword_only:
            parts.append("*")
        keyword_only = one["keyword_only"]
        parts.append(part_as_text(one, quote))
    results = [part_as_text(one, quote) for one in said["results"]]
    given = results[0] if len(results) == 1 else f"({', '.join(results)})"
    return f"{name}({', '.join(parts)}) -> {given}"


def random_default(random: Random, type_: str) -> dict[str, Any]:
    """Return {"default": …} for an argument of this type, or nothing."""
    if type_.endswith("?"):
        return {"default": None}
    numbers = {"int": random.randint(-3, 9), "SymInt": random.randint(-3, 9)}
    numbers |= {"float": random.choice([0.5, 1e-05, -2.0]), "bool": random.random() < 0.5}
    numbers |= {"Scalar": random.choice([1, 0.25, -1, True]), "str": random.choice(STRINGS)}
    word = type_.split("[")[0]
    if word not in numbers or (word in ("str", "Scalar") and type_ != word):
        return {}
    if type_.endswith("[2]"):
        return {"default": [numbers[word]] * 2}
    return {"default": [] if type_.endswith("[]") else numbers[word]}


def random_schema(random: Random) -> Said:
    """Return a schema of up to six arguments and up to three results."""
    count = random.randint(0, 6)
    names, only_from = random.sample(NAMES, count), random.randint(0, count + 2)
    arguments, free = [], list("abcdef")
    for place, name in enumerate(names):
        type_ = random.choice(WORDS[:1] * 4 + WORDS) + random.choice(SUFFIXES)
        marks: dict[str, Any] = {}
        if type_.startswith("Tensor") and not type_.endswith("[2]") and random.random() < 0.6:
            marks = {"sets": free.pop(0), "written": random.random() < 0.5}
            if not marks["written"] and random.random() < 0.4:
                marks["after"] = "*"
        default = random_default(random, type_) if random.random() < 0.5 else {}
        if any(not one["required"] for one in arguments) and not default:
            only_from = min(only_from, place)  # behind a default, only keywords may be required
        keyword_only = place >= only_from
        arguments.append(argument(type_, name, keyword_only=keyword_only, **marks, **default))
    used = ["".join(one["before"]) for one in arguments if one["before"]]
    results = []
    for name in random.sample(["", "", "r0", "r1"], random.randint(0, 3)):
        sets = "".join(random.sample(used, min(len(used), random.choice([0, 1, 1, 2]))))
        written = any(one["written"] and set(one["before"]) & set(sets) for one in arguments)
        results.append(
            argument("Tensor" + random.choice(["", "", "[]"]), name, sets, written=written)
        )
    name = random.choice(["aten::", "mine::", ""]) + random.choice(
        ["f", "_g_", "to_copy", "__or__"]
    )
    return schema(name, random.choice(["", "Tensor", "int_out"]), arguments, results)


def of_build(random: Random, count: int) -> list[str]:
    """Return `count` schemas of the dispatcher's own operators, as PyTorch prints them.

    One of them returns a `Dict`, which is no type of kernels; it is left out.
    """
    known = set(torch._C._dispatch_get_all_op_names())
    texts = []
    for one in torch._C._jit_get_all_schemas():
        full_name = f"{one.name}.{one.overload_name}".rstrip(".")
        if full_name in known and one.name.startswith("aten::") and "Dict(" not in str(one):
            texts.append(str(one))
    return random.sample(sorted(texts), count)


PART = re.compile(r"(?P<word>[\w.]+)(\((?P<letters>[^)]*)\))?(?P<suffix>[][?\d]*)")


def told_by_torch(text: str) -> Said:
    """Return what PyTorch's own parser says of `text`, whose strings hold nothing odd.

    Types are taken from the text: the parser shows `SymInt[2]` as `List[int]`, and no letters of lists.
    """
    parsed = torch._C.parse_schema(text)
    inside, after = re.split(r"\) -> ", text, maxsplit=1)
    inside = inside.split("(", 1)[1]

    def part(place: int, one: Any, text: str) -> Said:
        named = rf" {re.escape(one.name)}(?=[,)=]|$)" if one.name else ""
        found = re.findall(rf"{PART.pattern}{named}", text)
        word, _, marks, suffix = found[0 if one.name else place]
        before, arrow, behind = marks.partition(" -> ")
        sets = before.replace("!", "").replace("|", "")
        default = {"default": one.default_value} if one.has_default_value() else {}
        return argument(
            word + suffix,
            one.name,
            sets,
            behind.replace("|", "") if arrow else None,
            written="!" in before,
            keyword_only=one.kwarg_only,
            **default,
        )

    return schema(
        parsed.name,
        parsed.overload_name,
        [part(place, one, inside) for place, one in enumerate(parsed.arguments)],
        [part(place, one, after) for place, one in enumerate(parsed.returns)],
    )
