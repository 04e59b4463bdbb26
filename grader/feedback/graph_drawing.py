"""Draws a computation graph as SVG: boxes in levels, arrows that run through none of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from grader.evidence.wire.graph import Node
from grader.feedback.canvas import Canvas
from grader.feedback.graph_placement import place

_TOLD = 64
"""Most nodes that the text in place of a drawing tells."""

_FITS, _LINE, _RISE = 24, 14, 34
"""Most characters of a line in a box; pixels of a line, and between two levels."""


@dataclass(frozen=True)
class Drawn:
    """One graph of a picture. `saved` are the nodes kept for backward, `late` those that need a tangent."""

    label: str
    nodes: tuple[Node, ...]
    saved: frozenset[str] = frozenset()
    late: frozenset[str] = frozenset()


def size_text(node: Node) -> str:
    return "" if node.size is None else "×".join(map(str, node.size)) or "scalar"


def kept_text(node: Node) -> str:
    return "saved" if node.bytes is None else f"saved, {_bytes(node.bytes)}"


def _bytes(number: int) -> str:
    return f"{number:,} byte{'' if number == 1 else 's'}"


def summary(one: Drawn) -> str:
    """Return how many nodes there are, and what is kept for backward."""
    ops = sum(node.op.startswith("call") for node in one.nodes)
    inputs = sum(node.op == "placeholder" for node in one.nodes)
    said = f"{_count(inputs, 'input')}, {_count(ops, 'operator')}."
    kept = [node for node in one.nodes if node.name in one.saved]
    if kept:
        known = [node.bytes for node in kept if node.bytes is not None]
        total = f", {_bytes(sum(known))}" if len(known) == len(kept) else ""
        said += f" Saved for backward: {_count(len(kept), 'tensor')}{total}."
    return said


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def unread(nodes: Sequence[Node]) -> set[str]:
    read = {name for node in nodes for name in node.inputs}
    return {node.name for node in nodes if node.op != "output"} - read


def edges_of(nodes: Sequence[Node]) -> dict[str, list[str]]:
    """Return for each node, by its number, those before it that it reads.

    Names are not trusted to be different, nor to stand for nodes that came before.
    """
    known: dict[str, str] = {}
    edges: dict[str, list[str]] = {}
    for i, node in enumerate(nodes):
        edges[str(i)] = list(dict.fromkeys(known[n] for n in node.inputs if n in known))
        known[node.name] = str(i)
    return edges


def _lines(node: Node, one: Drawn) -> list[tuple[str, str]]:
    """Return what stands in a node's box: style and text of each line."""
    if node.op == "output":
        returned = list(dict.fromkeys(node.inputs))
        kept = [name for name in returned if name in one.saved]
        rest = len(returned) - len(kept)
        said = f"returns {rest}, saves {len(kept)}" if kept else f"returns {len(returned)}"
        return [("b", "output"), ("n", said)]
    lines = [("b", _fit(node.name))]
    call = _call(node)
    if call:
        lines.append(("", _fit(call)))
    if node.size is not None:
        kind = "" if node.dtype == "float32" else f" {node.dtype}"
        lines.append(("n", _fit(f"{size_text(node)}{kind}")))
    if node.name in one.saved:
        lines.append(("n m", f"▾ {kept_text(node)}"))
    return lines


def _call(node: Node) -> str:
    """Return what a node calls and with which constants; empty where its name says it all."""
    if node.op == "placeholder":
        return ""
    target = re.sub(r"^aten\.|\.default$", "", node.target).removeprefix("operator.")
    said = re.sub(r"%\w+", "·", node.arguments)
    constants = re.sub(r"[·,\s\[\]]", "", said)
    if re.sub(r"_\d+$", "", node.name) == target:  # the name says it already
        return f"({said})" if constants else ""
    return f"{target}({said})" if constants else target


def _fit(text: str) -> str:
    return text if len(text) <= _FITS else text[: _FITS - 1] + "…"


def graph_drawing(one: Drawn, nodes: Sequence[Node]) -> str:
    lines = {str(i): _lines(node, one) for i, node in enumerate(nodes)}
    widths = {i: max(_wide(*line) for line in box) + 20 for i, box in lines.items()}
    edges = edges_of(nodes)
    placed = place(edges, widths, [i for i in edges if nodes[int(i)].op == "output"])
    canvas, dead = Canvas(), unread(one.nodes)
    tops, bottoms, y = [], [], 6
    for row in placed.rows:
        tops.append(y)
        y += max((_height(lines[i]) for i in row), default=0)
        bottoms.append(y)
        y += _RISE
    heights = {i: _height(lines[i]) for i in lines}
    level = {i: number for number, row in enumerate(placed.rows) for i in row}
    for (source, _), route in placed.routes.items():
        start = level[source]
        _draw_edge(canvas, route, start, tops[start] + heights[source], tops, bottoms)
    for i, node in enumerate(nodes):
        key = str(i)
        x = round(placed.middle[key] - widths[key] / 2) + 4
        style = "u" if node.name in dead else "r2" if node.name in one.late else "r0"
        style = {"placeholder": "r1", "output": "k"}.get(node.op, style)
        corner = _corner(node, one, heights[key])
        _draw_box(canvas, x, tops[level[key]], widths[key], heights[key], corner, style)
        if node.name in one.saved and node.op != "output":
            top = tops[level[key]]
            inner = _corner(node, one, heights[key] - 6)
            _draw_box(canvas, x + 3, top + 3, widths[key] - 6, heights[key] - 6, inner, "d")
        for line, (kind, text) in enumerate(lines[key]):
            at = tops[level[key]] + 17 + _LINE * line
            canvas.text(x + widths[key] // 2, at, text, kind)
    return canvas.to_svg(f"Graph: {summary(one)}", _reading(nodes))


def _wide(style: str, text: str) -> int:
    return (6 if style.startswith("n") else 8) * len(text)


def _height(box: Sequence[tuple[str, str]]) -> int:
    return 10 + _LINE * len(box)


def _corner(node: Node, one: Drawn, height: int) -> str:
    """Return a corner's shape: round for inputs, cut for what needs a tangent, else none."""
    if node.op == "placeholder":
        return f"a{min(height // 2, 16)}"
    return "l7" if node.name in one.late else ""


def _draw_box(
    canvas: Canvas, x: int, y: int, width: int, height: int, corner: str, style: str
) -> None:
    if not corner:
        canvas.box(x, y, width, height, style)
        return
    r = int(corner[1:])
    across, down = width - 2 * r, height - 2 * r
    turns = [(r, r), (-r, r), (-r, -r), (r, -r)]
    bend = [f"a{r} {r} 0 0 1 {dx} {dy}" if corner[0] == "a" else f"l{dx} {dy}" for dx, dy in turns]
    canvas.path(
        f"M{x + r}.5 {y}.5h{across}{bend[0]}v{down}{bend[1]}h-{across}{bend[2]}v-{down}{bend[3]}z",
        style,
    )
    canvas.reach(x + width, y + height)


def _draw_edge(
    canvas: Canvas,
    route: Sequence[float],
    start: int,
    bottom: int,
    tops: Sequence[int],
    bottoms: Sequence[int],
) -> None:
    """Draw an edge from a box's bottom: straight through levels, bent only between them."""
    xs = [round(x) + 4 for x in route]
    steps = [f"M{xs[0]} {bottom}"]
    for i, (x, to) in enumerate(pairwise(xs), start):
        steps.append(f"V{bottoms[i]}")
        end = tops[i + 1] - (5 if i - start == len(xs) - 2 else 0)
        middle = (bottoms[i] + end) // 2
        steps.append(f"V{end}" if x == to else f"C{x} {middle} {to} {middle} {to} {end}")
    canvas.path("".join(steps), "w")
    tip = tops[start + len(xs) - 1]
    canvas.path(f"M{xs[-1]} {tip}l-4 -7h8z", "t")


def _reading(nodes: Sequence[Node]) -> str:
    """Return who reads whom: the picture for those who do not see it."""
    said = [
        f"{node.name} reads {', '.join(dict.fromkeys(node.inputs))}."
        for node in nodes[:_TOLD]
        if node.inputs
    ]
    return " ".join(said) or "No node reads another."
