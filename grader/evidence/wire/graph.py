"""A computation graph as plain data: what a probe returns, what a check reads, what a verdict draws.

    graph_facts(gm)      # a list with one dict for each node, in the graph's own order

Nothing here draws; `grader.feedback.graph_picture` does.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

TEXT = 120
"""Most characters of a name, a target or the arguments that are kept."""


@dataclass(frozen=True)
class Node:
    """One node. `op` is FX's: placeholder, get_attr, call_function, call_method, call_module, output.

    `inputs` are the names of the nodes it reads, in order, one twice if it is read twice.
    `arguments` is what stands between the brackets, nodes as "%name". `size` holds numbers, or text
    where a size is a symbol. `dtype`, `size` and `bytes` are "", None and None where nobody knows.
    """

    name: str
    op: str
    target: str
    inputs: tuple[str, ...] = ()
    arguments: str = ""
    dtype: str = ""
    size: tuple[int | str, ...] | None = None
    bytes: int | None = None

    def to_data(self) -> dict[str, Any]:
        """Return the node as JSON data."""
        return asdict(self)


def graph_facts(graph: Any) -> list[dict[str, Any]]:
    """Return an FX Graph, or a GraphModule's, as plain data: for each node a dict of `Node`'s fields.

    Sizes and bytes come from `node.meta`: "val" (AOTAutograd, export), "example_value" (Dynamo) or
    "tensor_meta" (ShapeProp). `bytes` are those of the tensor's elements. Raises TypeError for
    anything that has no FX graph.
    """
    held = getattr(graph, "graph", graph)
    if not hasattr(held, "nodes") or not hasattr(held, "find_nodes"):
        raise TypeError(f"This is no FX graph and has none: {type(graph).__name__}.")
    return [_node(node).to_data() for node in held.nodes]


def nodes_of(data: object) -> tuple[Node, ...]:
    """Return the nodes that `graph_facts` gave, after any way through JSON or a box.

    What came out of a box may be anything: raises ValueError where it is no such data.
    """
    if isinstance(data, str) or not isinstance(data, Sequence):
        raise ValueError("a graph is a list of nodes")
    return tuple(map(_from_data, data))


def _from_data(data: object) -> Node:
    if isinstance(data, Node):
        return data
    if not isinstance(data, Mapping):
        raise ValueError("a node of a graph is a dict")
    inputs, size, nbytes = data.get("inputs", ()), data.get("size"), data.get("bytes")
    if not _is_list(inputs) or not (size is None or _is_list(size)):
        raise ValueError("a node's inputs and its size are lists")
    return Node(
        _cut(data.get("name", "")),
        _cut(data.get("op", "")),
        _cut(data.get("target", "")),
        tuple(map(_cut, inputs)),
        _cut(data.get("arguments", "")),
        _cut(data.get("dtype", "")),
        None if size is None else tuple(n if type(n) is int else _cut(n) for n in size[:16]),
        nbytes if type(nbytes) is int else None,
    )


def _is_list(data: object) -> bool:
    return isinstance(data, Sequence) and not isinstance(data, str)


def _cut(text: object) -> str:
    said = str(text)
    return said if len(said) <= TEXT else said[: TEXT - 1] + "…"


def _node(node: Any) -> Node:
    dtype, size, nbytes = _tensor(node.meta)
    arguments = [_said(value) for value in node.args]
    arguments += [f"{key}={_said(value)}" for key, value in node.kwargs.items()]
    return Node(
        name=_cut(node.name),
        op=_cut(node.op),
        target=_cut(_target(node.target)),
        inputs=tuple(_cut(name) for value in (node.args, node.kwargs) for name in _read(value)),
        arguments=_cut(", ".join(arguments)),
        dtype=dtype,
        size=size,
        bytes=nbytes,
    )


def _target(target: Any) -> str:
    """Return what a node calls, e.g. "aten.mm.default", "operator.getitem", "relu"."""
    if isinstance(target, str):
        return target
    if hasattr(target, "_schema"):  # an overload of an operator
        return str(target)
    name = getattr(target, "__name__", None) or type(target).__name__
    home = getattr(target, "__module__", None) or ""
    home = {"_operator": "operator", "builtins": "", "__main__": ""}.get(home, home)
    return f"{home}.{name}" if home and not home.startswith("torch") else str(name)


def _is_node(value: Any) -> bool:
    return hasattr(value, "all_input_nodes")


def _read(value: Any) -> list[str]:
    """Return the names of the nodes in an argument, however deep."""
    if _is_node(value):
        return [value.name]
    if isinstance(value, slice):
        value = (value.start, value.stop, value.step)
    elif isinstance(value, Mapping):
        value = tuple(value.values())
    if isinstance(value, list | tuple):
        return [name for part in value for name in _read(part)]
    return []


def _said(value: Any) -> str:
    if _is_node(value):
        return f"%{value.name}"
    if isinstance(value, slice):
        return f"{_part(value.start)}:{_part(value.stop)}" + (
            "" if value.step is None else f":{_said(value.step)}"
        )
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_said(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_said, value)) + "]"
    if isinstance(value, str | int | float | complex | bool | type(None)):
        return _cut(repr(value))
    if value is ...:
        return "..."
    name = getattr(value, "__name__", None)
    return str(name) if name else _cut(value).removeprefix("torch.")


def _part(value: Any) -> str:
    return "" if value is None else _said(value)


def _tensor(meta: Mapping[str, Any]) -> tuple[str, tuple[int | str, ...] | None, int | None]:
    """Return dtype, size and bytes of what a node gives, if it gives one tensor and that is known."""
    for key in ("val", "example_value", "tensor_meta"):
        value = meta.get(key)
        dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
        if dtype is None or shape is None:
            continue
        # A symbol is not asked for its number: that would be a guard.
        size = tuple(n if type(n) is int else str(n) for n in shape)
        known = all(type(n) is int for n in shape)
        nbytes = math.prod(shape) * dtype.itemsize if known else None
        return str(dtype).removeprefix("torch."), size, nbytes
    return "", None, None
