"""Operators that keep or break their promises: a schema, a kernel, arguments, and what is broken."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import torch

from grader.ch09_dispatch.schemas import argument, as_text
from grader.ch09_dispatch.schemas import schema as schema_of

Broken = list[list[Any]]


@dataclass(frozen=True)
class Case:
    """One call of an operator `op`, with the text of its kernel's body.

    schema: "(Tensor x) -> Tensor", without the name
    kernel: statements, separated by "; "
    broken: what `broken_promises` is to say, as sorted lists
    of: words about the arguments, where the schema and the kernel do not tell
    """

    schema: str
    kernel: str
    arguments: list[Any]
    broken: Broken = field(default_factory=list)
    keywords: dict[str, Any] = field(default_factory=dict)
    of: str = ""

    @property
    def names(self) -> list[str]:
        """Return the names of the arguments, in order."""
        inside = self.schema.split(") -> ")[0].removeprefix("(")
        return [part.split()[-1].split("=")[0] for part in inside.split(", ") if part != "*"]


def numbers(random: Random, *size: int) -> torch.Tensor:
    """Return a tensor of small whole numbers, none of them zero, of this size."""
    count = torch.Size(size).numel()
    return torch.tensor([float(random.randint(1, 9)) for _ in range(count)]).view(size)


def random_case(random: Random) -> Case:
    """Return an operator of two or three tensors that does a few things, promised or not."""
    names = ["x", "y", "z"][: random.randint(2, 3)]
    kinds = [random.choice(["Tensor", "Tensor", "Tensor[]"]) for _ in names]
    lists = {name: kind == "Tensor[]" for name, kind in zip(names, kinds, strict=True)}
    letter = {name: "abc"[place] for place, name in enumerate(names) if random.random() < 0.7}
    marked = {name for name in letter if random.random() < 0.5}
    writes = {name for name in names if random.random() < 0.4}
    lines = [f"{name}{'[-1]' if lists[name] else ''}.add_(1)" for name in sorted(writes)]
    results, given, broken = [], [], [["writes", name] for name in sorted(writes - marked)]
    for number in range(random.randint(1, 3)):
        source = random.choice([None, *names])
        # a result with "!" is told by its own case; here letters stand for views
        free = [name for name in letter if name not in marked]
        sets = random.sample(free, random.randint(0, min(2, len(free))))
        results.append(argument(sets="".join(letter[name] for name in sets)))
        if source is None:
            given.append("torch.ones(2)")
            continue
        given.append(
            f"{source}{'[0]' if lists[source] else ''}{random.choice(['[1:]', '.t()', ''])}"
        )
        if source not in sets:
            broken.append(["shares", number, source])
    arguments = [
        argument(kind, name, letter.get(name, ""), written=name in marked)
        for name, kind in zip(names, kinds, strict=True)
    ]
    text = as_text(schema_of("op", "", arguments, results)).removeprefix("op")
    # the same tensor must not come back twice as one object from a kernel's tuple: views of it do
    body = "; ".join([*lines, f"return {', '.join(given)}"])
    values = [
        [numbers(random, 3), numbers(random, 2)] if lists[name] else numbers(random, 3)
        for name in names
    ]
    return Case(text, body, values, sorted(broken, key=str))


AtenCall = tuple[str, str, Callable[[], list[Any]], Broken]


def normalized() -> list[Any]:
    """Arguments of a batch norm in training: two statistics that it is to keep up."""
    x = torch.tensor([[1.0, 2.0], [3.0, 5.0]])
    return [x, None, None, torch.zeros(2), torch.ones(2), True, 0.1, 1e-5]


ATEN: list[AtenCall] = [
    (
        "native_batch_norm",
        "default",
        normalized,
        [["writes", "running_mean"], ["writes", "running_var"]],
    ),
    (
        "_native_batch_norm_legit",
        "default",
        normalized,
        [],
    ),
    ("dropout", "default", lambda: [torch.ones(3), 0.5, False], [["shares", 0, "input"]]),
    ("type_as", "default", lambda: [torch.ones(3), torch.zeros(2)], [["shares", 0, "self"]]),
    ("atleast_2d", "default", lambda: [torch.ones(3)], [["shares", 0, "self"]]),
    ("einsum", "default", lambda: ["ij->ji", [torch.ones(2, 3)]], [["shares", 0, "tensors"]]),
    ("split", "Tensor", lambda: [torch.ones(4), 2], []),
    ("sort", "default", lambda: [torch.ones(4)], []),
    ("_foreach_add_", "Scalar", lambda: [[torch.ones(2)], 1], []),
]
"""Calls of PyTorch's own operators and what each breaks, as torch 2.13 does it."""
