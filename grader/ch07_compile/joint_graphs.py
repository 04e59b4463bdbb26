"""Random programs and random joint graphs, both as data; and the fewest bytes that a cut may have."""

import string
from collections.abc import Iterable

import networkx
import torch

from grader import draw_int, draw_one


def draw_joint_program(
    rng: torch.Generator, kinds: list[str], steps: int, inputs: int = 3
) -> list[tuple]:
    """Draw steps each of which takes the result before; the values are all (n, n) or broadcast."""
    drawn = []
    for step in range(steps):
        kind = draw_one(rng, kinds)
        last = inputs + step - 1 if step else 0
        other = draw_int(rng, 0, inputs + step - 1)
        drawn.append((kind, last, other) if kind in ("mul", "add") else (kind, last))
    return drawn


WRITTEN = {
    "mul": "{} * {}",
    "add": "{} + {}",
    "mm": "{} @ {}",
    "rows": "{}.sum(0, keepdim=True)",
    "transposed": "{}.t()",
    "peak": "{}.max(1, keepdim=True).values",
    "dropout": "torch.nn.functional.dropout({}, 0.5)",
    "positive": "{} > 0",
    "detached": "{}.detach()",
    "restarted": "{}.detach().requires_grad_()",
    "grow": "{}.add_(1)",
}
"""How a step of `probes.joint_programs.JOINT_STEPS` is written; the others are functions of torch."""


def as_program(steps: list[tuple], outputs: list[int], inputs: int = 3) -> str:
    """Return a program as Python text: inputs a, b, c, then a letter for each step's result."""
    names = string.ascii_lowercase
    lines = [f"def f({', '.join(names[:inputs])}):"]
    for at, (kind, *sources) in enumerate(steps, inputs):
        written = WRITTEN.get(kind, f"torch.{kind}({{}})")
        lines.append(f"    {names[at]} = {written.format(*[names[one] for one in sources])}")
    returned = ", ".join(names[one] for one in outputs)
    return "\n".join([*lines, f"    return {returned}{',' if len(outputs) == 1 else ''}"])


def as_cut_program(graph: dict) -> str:
    """Return a drawn joint graph as text, a line for each node with its size, and what it returns."""
    lines = []
    for name, kind, inputs, elements, dtype in graph["nodes"]:
        made = kind if kind in ("primal", "tangent") else f"{kind}({', '.join(inputs)})"
        lines.append(f"{name} = {made}  # {elements} of {DTYPE_NAMES[dtype]}")
    gradients = ", ".join(str(one) for one in graph["gradients"])
    outputs = ", ".join(graph["outputs"])
    return "\n".join([*lines, f"# forward outputs: {outputs}; gradients: {gradients}"])


DTYPE_NAMES = {"f32": "float32", "f64": "float64", "bf16": "bfloat16", "b8": "bool"}
"""The dtypes of drawn graphs, as torch calls them."""


def draw_cut_graph(
    rng: torch.Generator,
    kinds: list[str],
    dtypes: list[str],
    forward: int = 5,
    either: int = 2,
    backward: int = 4,
) -> dict:
    """Return a joint graph: its nodes, each (name, kind, inputs, elements, dtype), and what it returns.

    The graph is never run, so shapes need not fit together.
    """

    def size() -> tuple:
        return draw_one(rng, [1, 3, 16, 40, 100]), draw_one(rng, dtypes)

    nodes = [(f"p{at}", "primal", [], *size()) for at in range(3)]
    nodes += [("t0", "tangent", [], *size())]
    early, late = ["p0", "p1", "p2"], ["t0"]
    for at in range(forward + either + backward):
        name = f"n{at}"
        kind = draw_one(rng, kinds) if at < forward + either else draw_one(rng, ["sin", "add"])
        count = {"full": 0, "add": 2, "mm": 2, "cat": 3}.get(kind, 1)
        if at < forward:
            inputs = [early[-1], *[draw_one(rng, early) for _ in range(count)]][:count]
        elif at < forward + either:
            inputs = [draw_one(rng, early) for _ in range(count)]
        else:
            kind, inputs = "add", [late[-1], draw_one(rng, early)]
        nodes.append((name, kind, inputs, *size()))
        (early if at < forward + either else late).append(name)
    return {
        "nodes": nodes,
        "outputs": [f"n{forward - 1}"],
        "gradients": [late[-1], None, late[-2] if len(late) > 2 else None],
    }


def cut_rules(
    nodes: list[dict], returned: list, outputs: int, primals: int, heavy: list[str]
) -> tuple[set[str], set[str], set[str]]:
    """Return the names that depend on a tangent, that may not be computed late, that must be there.

    The last are what the nodes that depend on a tangent read, and gradients that depend on none.
    """
    places = [node["name"] for node in nodes if node["op"] == "placeholder"]
    late = joint_results(nodes, places[primals:])
    forward = joint_origins(nodes, returned[:outputs])
    banned = set(places[:primals])
    banned |= {
        n["name"] for n in nodes if n["name"] in forward and (n["random"] or n["target"] in heavy)
    }
    wanted = {one for n in nodes if n["name"] in late for one in n["inputs"]} - late
    wanted |= {name for name in returned[outputs:] if name and name not in late}
    return late, banned, wanted


def cut_problem(names: list[str], nodes: list[dict], rules: tuple) -> str:
    """Return what is wrong with a choice of what to save; empty if the backward can be computed."""
    late, banned, wanted = rules
    by_name = {node["name"]: node for node in nodes}
    if len(names) != len(set(names)):
        return "A node is named twice."
    for name in names:
        if name not in by_name:
            return f"The graph has no node {name}."
        if name in late:
            return f"{name} depends on a tangent: the forward cannot save it."
    met, waiting = set(names), list(wanted)
    while waiting:
        name = waiting.pop()
        if name not in met:
            if name in banned:
                return (
                    f"The backward needs {name}, which is not saved and may not be computed again."
                )
            met.add(name)
            waiting += by_name[name]["inputs"]
    return ""


def cheapest_cut(nodes: list[dict], rules: tuple) -> tuple[int, list[str]]:
    """Return the fewest bytes that a cut may have, and the names in one that has so few."""
    late, banned, wanted = rules
    network = networkx.DiGraph()
    network.add_nodes_from(["source", "sink"])
    for node in nodes:
        name = node["name"]
        if name in late:
            continue
        network.add_edge(("before", name), ("after", name), capacity=node["bytes"])
        for one in node["inputs"]:
            network.add_edge(("after", one), ("before", name))
        if name in banned:
            network.add_edge("source", ("before", name))
        if name in wanted:
            network.add_edge(("after", name), "sink")
    fewest, (upper, lower) = networkx.minimum_cut(network, "source", "sink")
    names = [node["name"] for node in nodes]
    cut = [n for n in names if ("before", n) in upper and ("after", n) in lower]
    return fewest, cut


def joint_origins(record: list[dict], targets: Iterable[str | None]) -> set[str]:
    """Return the names of all nodes that those in `targets` are computed from, themselves included."""
    inputs = {node["name"]: node["inputs"] for node in record}
    met, waiting = set(), [name for name in targets if name is not None]
    while waiting:
        name = waiting.pop()
        if name not in met:
            met.add(name)
            waiting += inputs[name]
    return met


def joint_results(record: list[dict], sources: Iterable[str]) -> set[str]:
    """Return the names of all nodes that are computed from those in `sources`, themselves included."""
    found = set(sources)
    for node in record:
        if found.intersection(node["inputs"]):
            found.add(node["name"])
    return found
