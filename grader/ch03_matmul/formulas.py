"""What a recorded program means: an interpreter, slow and plain, and programs to ask about."""

import itertools
import operator
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch

from grader import Mismatch, draw_int, draw_one, whole_numbers

_OPERATORS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

Node = tuple[Any, ...]
Reads = list[tuple[str, tuple[int, ...]]]
Buffers = Mapping[str, torch.Tensor]


def evaluate(program: Mapping[str, Any], buffers: Buffers) -> torch.Tensor:
    """Return what a program says, float64. Raises `Mismatch` for what is no program."""
    names, extents = zip(*program["axes"], strict=True) if program["axes"] else ((), ())
    values = [
        _value(program["body"], dict(zip(names, point, strict=True)), buffers, [])
        for point in itertools.product(*map(range, extents))
    ]
    return torch.tensor(values, dtype=torch.float64).reshape(extents)


def reads_in_order(program: Mapping[str, Any], order: tuple[str, ...], buffers: Buffers) -> Reads:
    """Return what a loop nest in this order reads: the body evaluated at each point."""
    extents, body = dict(program["axes"]), program["body"]
    while body[0] == "sum":
        _, name, extent, body = body
        extents[name] = extent
    reads: Reads = []
    for point in itertools.product(*(range(extents[name]) for name in order)):
        _value(body, dict(zip(order, point, strict=True)), buffers, reads)
    return reads


def _value(node: object, at: dict[str, int], buffers: Buffers, reads: Reads) -> Any:
    match node:
        case ("number", int() | float() as number):
            return number
        case ("index", str() as name) if name in at:
            return at[name]
        case ("read", str() as name, tuple() as indices) if name in buffers:
            place = tuple(_value(index, at, buffers, reads) for index in indices)
            return _read(name, place, buffers[name], reads)
        case ("where", condition, yes, no):
            chosen = yes if _value(condition, at, buffers, reads) else no
            return _value(chosen, at, buffers, reads)
        case ("&", left, right):  # as Python's `and`: the second side may rely on the first
            return bool(_value(left, at, buffers, reads)) and bool(
                _value(right, at, buffers, reads)
            )
        case ("sum", str() as name, int() as extent, body):
            return sum(_value(body, {**at, name: i}, buffers, reads) for i in range(extent))
        case (str() as op, left, right) if op in _OPERATORS:
            sides = _value(left, at, buffers, reads), _value(right, at, buffers, reads)
            return _OPERATORS[op](*sides)
    text = repr(node)
    raise Mismatch("This is no node of the table.", (("got", text[:200]), ("known", str(set(at)))))


def _read(name: str, place: tuple[Any, ...], tensor: torch.Tensor, reads: Reads) -> float:
    fits = len(place) == tensor.dim() and all(
        isinstance(i, int) and 0 <= i < n for i, n in zip(place, tensor.shape, strict=True)
    )
    if not fits:
        where = f"{name}[{', '.join(map(str, place))}]"
        what = "The program reads outside of a buffer."
        if not all(isinstance(i, int) for i in place):
            what = "The program reads at a place that is no whole number."
        raise Mismatch(
            what,
            (("read", where), ("shape", str(tuple(tensor.shape)))),
        )
    reads.append((name, place))
    return float(tensor[place])


def whole(rng: torch.Generator, *shape: int) -> torch.Tensor:
    """Whole numbers from -9 to 9 as float64: all sums of products of them are exact."""
    return whole_numbers(rng, shape, -9, 9, dtype=torch.float64)


def written(program: Mapping[str, Any]) -> str:
    """Return the call of `compute` that records a program, as one writes it."""
    names, extents = zip(*program["axes"], strict=True) if program["axes"] else ((), ())
    return f"compute({_tuple(extents)}, {_function(names, program['body'])})"


def _tuple(items: Iterable[object]) -> str:
    return repr(tuple(items))


def _function(names: Iterable[str], body: object) -> str:
    listed = ", ".join(names)
    text = _text(body)
    inner = text[1:-1] if isinstance(body, tuple) and body[0] in (*_OPERATORS, "&") else text
    return f"lambda {listed}: {inner}" if listed else f"lambda: {inner}"


def _text(node: object) -> str:
    """Return a node as one writes the formula; whatever is no node as Python shows it."""
    match node:
        case ("number", number):
            return repr(number)
        case ("index", str() as name):
            return name
        case ("minus", inner):
            return f"-{_text(inner)}"
        case ("read", str() as name, tuple() as indices):
            return f"{name}[{', '.join(map(_text, indices)) or '()'}]"
        case ("where", condition, yes, no):
            return f"where({_text(condition)}, {_text(yes)}, {_text(no)})"
        case ("sum", _, _, _):
            names, extents = [], []
            while isinstance(node, tuple) and node[0] == "sum":
                _, name, extent, node = node
                names.append(name)
                extents.append(extent)
            return f"total({_tuple(extents)}, {_function(names, node)})"
        case (str() as op, left, right):
            return f"({_text(left)} {op} {_text(right)})"
    return repr(node)


def any_formula(rng: torch.Generator, depth: int) -> Node:
    """Return a random body for axes i (below 3) and j (below 4), which reads M[i, j] and N[j, i].

    Beside the language's nodes it may hold ("minus", node), for a minus sign in front; see `plain`.
    Whole divisions have whole numbers on the left and 1 to 4 on the right.
    """
    if depth == 0:
        reads = (
            read("M", "i", "j"),
            read("N", "j", "i"),
            read("M", ("-", _index(2), _index("i")), 1),
        )
        leaves = (*reads, _index("i"), _index("j"), _index(draw_int(rng, 0, 9)))
        return draw_one(rng, leaves)
    deeper = [any_formula(rng, draw_int(rng, 0, depth - 1)) for _ in range(3)]
    kind = draw_one(rng, ("minus", "+", "-", "*", "+", "-", "*", "where", "//", "%", "sum"))
    if kind == "minus":
        return ("minus", deeper[0])
    if kind == "where":
        op = draw_one(rng, ("<", "<=", ">", ">="))
        left = (
            "+",
            deeper[0],
            _index("i"),
        )  # not a plain number, which Python would compare by itself
        condition: Node = (op, left, draw_one(rng, (_index("i"), _index(2), deeper[1])))
        if draw_int(rng, 0, 1):
            condition = ("&", condition, ("<", _index("j"), _index(3)))
        return ("where", condition, deeper[1], deeper[2])
    if kind in ("//", "%"):
        return (kind, ("+", deeper[0], _index("i")), ("+", _index("j"), _index(1)))
    if kind == "sum":
        return ("sum", "r", 2, ("*", deeper[0], ("+", _index("r"), deeper[1])))
    return (kind, deeper[0], deeper[1])


def plain(node: Any) -> Any:
    """Return a formula with nodes of the language alone: a minus sign in front is 0 less what follows."""
    if not isinstance(node, tuple):
        return node
    if node and node[0] == "minus":
        return ("-", ("number", 0), plain(node[1]))
    return tuple(plain(part) for part in node)


def read(name: str, *indices: str | int | Node) -> Node:
    """Return a node that reads; text stands for an index, a number for itself."""
    return ("read", name, tuple(_index(index) for index in indices))


def _index(index: str | int | Node) -> Node:
    if isinstance(index, str):
        return ("index", index)
    return ("number", index) if isinstance(index, int) else index


def add(left: str | int | Node, right: str | int | Node) -> Node:
    """Return the sum of two nodes; text stands for an index, a number for itself."""
    return ("+", _index(left), _index(right))


def inside(index: Node, extent: int) -> Node:
    """Return the condition that an index lies in a dimension."""
    return ("&", (">=", index, ("number", 0)), ("<", index, ("number", extent)))


def program(axes: Mapping[str, int], sums: Mapping[str, int], body: Node) -> dict[str, Any]:
    """Return a program as `compute` would."""
    for name, extent in reversed(list(sums.items())):
        body = ("sum", name, extent, body)
    return {"axes": tuple(axes.items()), "body": body}


def orders(names: Iterator[str] | tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return every order of these loops."""
    return list(itertools.permutations(names))
