"""Checks of `min_cut`: random graphs, whose cheapest cut is known, and functions that were traced."""

import pytest
import torch

from grader import about, assert_equal, assert_holds, gate, kept, points
from grader.ch07_compile.joint_graphs import (
    as_cut_program,
    as_program,
    cheapest_cut,
    cut_problem,
    cut_rules,
    draw_cut_graph,
    draw_joint_program,
)
from grader.ch07_compile.probes.cut_graphs import CUT_TARGETS, build_cut_graph
from grader.ch07_compile.probes.joint_programs import (
    capture_joint,
    joint_leaves,
    joint_program,
    joint_record,
)

HEAVY = ["mm"]

SINE = {
    "nodes": [
        ("p0", "primal", [], 8, "f32"),
        ("t0", "tangent", [], 8, "f32"),
        ("n0", "sin", ["p0"], 8, "f32"),
        ("n1", "sin", ["p0"], 8, "f32"),
        ("n2", "add", ["t0", "n1"], 8, "f32"),
    ],
    "outputs": ["n0"],
    "gradients": ["n2"],
}


@pytest.fixture
def graphs():
    return [SINE]


@pytest.fixture
def heavy():
    return HEAVY


def verdict(names, nodes, returned, count, primals, heavy, words):
    rules = cut_rules(nodes, returned, count, primals, heavy)
    problem = cut_problem(names, nodes, rules)
    on = (("graph", words), ("heavy", ", ".join(heavy)))
    assert_holds(not problem, problem, *on, ("saved", ", ".join(names)))
    sizes = {node["name"]: node["bytes"] for node in nodes}
    (least, cut), spent = cheapest_cut(nodes, rules), sum(sizes[name] for name in names)

    def shown(chosen):
        return ", ".join(f"{name} ({sizes[name]})" for name in chosen) or "nothing"

    with about(*on, ("bytes saved", shown(names)), ("bytes that are enough", shown(cut))):
        assert_equal(spent, least, "More bytes are saved than must be.")


def compare(joint_min_cut, graphs, heavy):
    """Judge the answers, those of small graphs first."""
    graphs = sorted(graphs, key=lambda graph: len(graph["nodes"]))
    targets = [str(CUT_TARGETS[kind]) for kind in heavy]
    answers = joint_min_cut.ask(graphs, heavy).value
    for graph, (own, names, unchanged) in zip(graphs, answers, strict=True):
        assert_holds(
            own, "What you return is not a list of nodes of the joint graph that was given."
        )
        assert_holds(unchanged, "The joint graph was changed.")
        joint, joint_inputs, count = build_cut_graph(graph)
        nodes, returned = joint_record(joint.graph)
        verdict(names, nodes, returned, count, len(joint_inputs[0]), targets, as_cut_program(graph))


def several(rng, kinds, dtypes, count=12, **sizes):
    return [draw_cut_graph(rng, kinds, dtypes, **sizes) for _ in range(count)]


@gate
def test_enough_is_saved(joint_min_cut):
    """Returns a list of nodes; of a sine, what its backward needs is saved."""
    ((own, names, _),) = joint_min_cut.value
    assert_holds(own, "What you return is not a list of nodes of the joint graph that was given.")
    enough = not {"p0", "n1"}.isdisjoint(names)
    assert_holds(enough, "The backward cannot be computed.", ("saved", ", ".join(names)))


@points(3)
def test_pointwise(joint_min_cut, rng):
    """Of pointwise operators as few bytes as can be are saved."""
    graphs = several(rng, ["sin", "add"], ["f32"], forward=2, either=1, backward=2)
    compare(joint_min_cut, graphs + several(rng, ["sin", "add"], ["f32"], forward=8), HEAVY)


def test_dtypes(joint_min_cut, rng):
    """Bytes count, whatever the dtype: not elements, and not tensors."""
    graphs = several(rng, ["sin", "add"], ["f64", "b8", "bf16"], forward=4)
    # of one value 40 elements in 320 bytes, of the other 100 in 100
    nodes = [("p0", "primal", [], 40, "f64"), ("t0", "tangent", [], 100, "b8")]
    nodes += [("n0", "sin", ["p0"], 100, "b8"), ("n1", "add", ["t0", "n0"], 100, "b8")]
    graphs.append({"nodes": nodes, "outputs": ["n0"], "gradients": ["n1"]})
    compare(joint_min_cut, graphs, HEAVY)


def test_heavy(joint_min_cut, rng):
    """The backward never repeats a heavy operator of the forward."""
    compare(joint_min_cut, several(rng, ["sin", "mm", "add"], ["f32"], either=0), HEAVY)
    compare(joint_min_cut, several(rng, ["sin", "mm", "add"], ["f32"], either=0), ["sin"])


def test_random(joint_min_cut, rng):
    """The backward never repeats a random operator of the forward."""
    graphs = several(rng, ["sin", "bernoulli", "add"], ["f32", "b8"], either=0)
    compare(joint_min_cut, graphs, HEAVY)


def test_either(joint_min_cut, rng):
    """What only the backward needs may be saved as well; and if it is heavy, may be computed there."""
    graphs = several(rng, ["sin", "mm"], ["f32"], forward=2, either=5)
    # a large product of a small input, which only the backward reads
    nodes = [("p0", "primal", [], 8, "f32"), ("t0", "tangent", [], 100, "f32")]
    nodes += [("n0", "sin", ["p0"], 8, "f32"), ("n1", "mm", ["p0", "p0"], 100, "f32")]
    nodes += [("n2", "add", ["t0", "n1"], 100, "f32")]
    graphs.append({"nodes": nodes, "outputs": ["n0"], "gradients": ["n2"]})
    compare(joint_min_cut, graphs, HEAVY)


def test_lists_and_constants(joint_min_cut, rng):
    """Lists of inputs count as inputs, and what has no input need not be saved."""
    compare(
        joint_min_cut, several(rng, ["cat", "full", "sin"], ["f32"], forward=4, either=4), HEAVY
    )
    plain = [("p0", "primal", [], 8, "f32"), ("t0", "tangent", [], 8, "f32")]
    plain += [("n0", "sin", ["p0"], 8, "f32"), ("n1", "sin", ["t0"], 8, "f32")]
    nothing = {"nodes": plain, "outputs": ["n0"], "gradients": ["n1"]}
    compare(joint_min_cut, [nothing, {**nothing, "gradients": ["n0"]}], HEAVY)


@kept
def traced(steps, outputs, flags, numbers):
    """Return the record of a program's joint graph: nodes, what it returns, outputs, primals."""
    function = joint_program(steps, outputs)
    joint, joint_inputs, count = capture_joint(function, joint_leaves(numbers, flags))
    return *joint_record(joint.graph), count, len(joint_inputs[0])


def test_traced(joint_min_cut_traced, rng):
    """Of traced functions too, with matrix products for heavy operators."""
    numbers = [torch.rand(4, 4, generator=rng) for _ in range(3)]
    layers = [("mm", 0, 1), ("sigmoid", 3), ("exp", 4), ("mm", 5, 2), ("sin", 6), ("sin", 7)]
    drawn = draw_joint_program(rng, ["sin", "mul", "rows", "exp"], 7)
    for steps, flags in ((layers, [True] * 3), (layers, [False, True, True]), (drawn, [True] * 3)):
        outputs = [2 + len(steps)]
        names = joint_min_cut_traced.ask(steps, outputs, flags, numbers).value
        nodes, returned, count, primals = traced(steps, outputs, flags, numbers)
        words = f"the joint graph of\n{as_program(steps, outputs)}"
        verdict(names, nodes, returned, count, primals, ["aten.mm.default"], words)
