"""Pictures of computation graphs: inputs, operators, outputs in levels, and what is kept for backward.

    show_graph(gm)                              # one FX GraphModule, Graph, or what graph_facts gave
    show_graph(forward=fw, backward=bw)         # a partition: what lies between them is marked

SVG in the page's colours, dark and light; a terminal gets the same as text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from grader.evidence.wire.graph import Node, graph_facts, nodes_of
from grader.feedback.graph_drawing import (
    Drawn,
    edges_of,
    graph_drawing,
    kept_text,
    size_text,
    summary,
    unread,
)
from grader.feedback.style import style_of
from grader.files import as_utf8

NOTEBOOK, VERDICT = 120, 40
"""Most nodes that a drawing shows in a notebook, and in a verdict. The first are shown."""


@dataclass(frozen=True)
class GraphPicture:
    """What `show_graph` returns. Shows itself in a notebook, and as text anywhere else."""

    graphs: tuple[Drawn, ...]

    def __repr__(self) -> str:
        return to_text(self)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/plain": to_text(self), "text/html": to_html(self)}


def show_graph(*graphs: Any, **named: Any) -> GraphPicture:
    """Draw each graph: inputs above, outputs below, an arrow from each node to those that read it.

    A graph is an FX GraphModule or Graph, or what `graph_facts` gave. Of a forward and a backward
    graph, in this order, the tensors that lead from one to the other are marked as saved, with
    their bytes. In a joint graph (one whose inputs have names like "tangents_1") those are marked
    that lie between what needs a tangent and what does not. Raises TypeError for anything else.
    """
    given = [("", graph) for graph in graphs] + list(named.items())
    if len(graphs) > 1 or (graphs and named):
        given = [(label or f"graph {i}", graph) for i, (label, graph) in enumerate(given, 1)]
    return picture_of([(label, _nodes(graph)) for label, graph in given])


def _nodes(graph: Any) -> tuple[Node, ...]:
    return nodes_of(graph if isinstance(graph, list | tuple) else graph_facts(graph))


def picture_of(given: Sequence[tuple[str, tuple[Node, ...]]]) -> GraphPicture:
    """Return the picture of labelled graphs, with what is saved for backward found out."""
    drawn = []
    for i, (label, nodes) in enumerate(given):
        saved, late = _joint(nodes)
        for _, other in given[i + 1 :]:
            saved |= _between(nodes, other)
        for _, other in given[:i]:
            saved |= _between(other, nodes)
        drawn.append(Drawn(label, nodes, saved, late))
    return GraphPicture(tuple(drawn))


def _returned(nodes: Sequence[Node]) -> set[str]:
    return {name for node in nodes if node.op == "output" for name in node.inputs}


def _between(forward: Sequence[Node], backward: Sequence[Node]) -> frozenset[str]:
    """Return what `forward` hands to `backward`, if they are the halves of one graph.

    They are if `backward` has inputs of its own (tangents), and the others all come from `forward`.
    """
    own = {node.name for node in forward}
    taken = {node.name for node in backward if node.op == "placeholder"}
    shared = taken & own
    return frozenset(shared if shared != taken and shared <= _returned(forward) else ())


def _joint(nodes: Sequence[Node]) -> tuple[frozenset[str], frozenset[str]]:
    """Return what a joint graph must keep if nothing is computed twice, and what needs a tangent.

    A backward graph alone has nothing to return before the tangents: then all other inputs were kept.
    """
    inputs = {node.name for node in nodes if node.op == "placeholder"}
    late = {name for name in inputs if name.startswith("tangents")}
    if not late:
        return frozenset(), frozenset()
    for node in nodes:
        if node.op != "output" and late.intersection(node.inputs):
            late.add(node.name)
    forward = _returned(nodes) - late
    if not forward:
        return frozenset(inputs - late), frozenset(late)
    forward |= inputs - late
    for node in reversed(nodes):
        if node.name in forward:
            forward.update(node.inputs)
    # One of an operator's several results goes with them, whoever reads it.
    forward |= {n.name for n in nodes if n.target == "operator.getitem" and n.name not in late}
    kept = {
        name
        for node in nodes
        if node.op != "output" and node.name not in forward
        for name in node.inputs
        if name in forward
    }
    return frozenset(kept), frozenset(late)


def to_html(picture: GraphPicture, most: int = NOTEBOOK) -> str:
    """Return the picture as one self-contained element, on one line."""
    parts = [style_of("storage.css", "graph.css")]
    for one in picture.graphs:
        shown, left_out = _part(one.nodes, most)
        head = f"<strong>{escape(one.label)}</strong>: " if one.label else ""
        parts.append(f"<p>{head}{escape(summary(one))}</p>")
        parts.append(f'<div class="ut-pic-drawing ut-graph">{graph_drawing(one, shown)}</div>')
        if left_out:
            nodes = "node" if left_out == 1 else "nodes"
            parts.append(f"<p>… and {left_out} more {nodes}, not drawn.</p>")
    marks = _legend(picture)
    parts.append(f'<p class="ut-pic-why">{escape(marks)}</p>' if marks else "")
    html = f'<div class="ut-pic">{"".join(parts)}</div>'
    return as_utf8(html)


def graphs_html(graphs: Sequence[tuple[str, tuple[Node, ...]]]) -> str:
    """Return labelled graphs as a verdict shows them: fewer nodes."""
    return to_html(picture_of(graphs), VERDICT)


def to_text(picture: GraphPicture) -> str:
    """Return the picture as lines for a terminal, one for each node."""
    blocks = []
    for one in picture.graphs:
        rows = [_row(node, one) for node in one.nodes[:NOTEBOOK]]
        wide = [max((len(row[i]) for row in rows), default=0) for i in range(3)]
        lines = [f"{one.label}: {summary(one)}" if one.label else summary(one)]
        for row in rows:
            cells = [text.ljust(width) for text, width in zip(row, wide, strict=True)]
            lines.append("  ".join(["", *cells]).rstrip())
        if len(one.nodes) > NOTEBOOK:
            lines.append(f"  … and {len(one.nodes) - NOTEBOOK} more")
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def _row(node: Node, one: Drawn) -> tuple[str, str, str]:
    dot = "." if node.op == "call_method" else ""
    call = f"{dot}{node.target if node.op != 'output' else ''}({node.arguments})"
    tensor = " ".join(part for part in (node.dtype, size_text(node)) if part)
    marks = [tensor, kept_text(node) if node.name in one.saved else ""]
    return (
        "output" if node.op == "output" else f"%{node.name}",
        "input" if node.op == "placeholder" else call,
        ", ".join(mark for mark in marks if mark),
    )


def _legend(picture: GraphPicture) -> str:
    """Return what the marks mean, of those that the picture has."""
    nodes = [(node, one) for one in picture.graphs for node in one.nodes]
    marks = [
        ("round: an input", any(node.op == "placeholder" for node, _ in nodes)),
        ("double frame: saved for backward", any(one.saved for _, one in nodes)),
        ("cut corners: needs a tangent", any(one.late for _, one in nodes)),
        ("dashed: nobody reads it", any(unread(one.nodes) for one in picture.graphs)),
    ]
    return " · ".join(text for text, is_there in marks if is_there)


def _part(nodes: Sequence[Node], most: int) -> tuple[tuple[Node, ...], int]:
    """Return the nodes to draw, and how many are left out: too many, or too many long edges."""
    shown = tuple(nodes[:most])
    while len(shown) > 1 and sum(len(set(read)) for read in edges_of(shown).values()) > 4 * most:
        shown = shown[: len(shown) // 2]
    return shown, len(nodes) - len(shown)
