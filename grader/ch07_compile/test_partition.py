"""Checks of `partition`: which operators each graph runs, what is saved, and the joint's own values."""

import pytest
import torch

from grader import (
    Mismatch,
    about,
    assert_close,
    assert_equal,
    assert_holds,
    claimed,
    gate,
    kept,
    points,
)
from grader.ch07_compile.joint_graphs import as_program, draw_joint_program, joint_origins
from grader.ch07_compile.probes.joint_programs import (
    SEED,
    capture_joint,
    joint_leaves,
    joint_program,
    joint_record,
    joint_tangents,
)

ALL = [True, True, True]
EVERYTHING = [
    "<built-in function getitem>",
    *[
        f"aten.{name}"
        for name in (
            "sin.default", "cos.default", "exp.default", "sigmoid.default", "mm.default",
            "mul.Tensor", "add.Tensor", "neg.default", "sum.dim_IntList", "t.default",
            "detach.default", "expand.default", "max.dim", "native_dropout.default",
        )
    ],
]  # fmt: skip
CHAIN = [("sin", 0), ("exp", 3), ("mul", 4, 1), ("cos", 5)]


@pytest.fixture
def steps():
    return CHAIN


@pytest.fixture
def outputs():
    return [6]


@pytest.fixture
def needs_grad():
    return ALL


@pytest.fixture
def savable():
    return EVERYTHING


@pytest.fixture
def numbers(rng):
    """The inputs' values, three of (4, 4), each with a layout of its own."""
    wide = torch.rand(4, 8, generator=rng, dtype=torch.float64)
    square = torch.rand(2, 4, 4, generator=rng, dtype=torch.float64)
    return [square[0], square[1].t(), wide[:, 1:5]]


@kept
def expected(steps, outputs, needs_grad, numbers, savable):
    """Return what a right partition runs, saves and returns."""
    joint, joint_inputs, count = capture_joint(
        joint_program(steps, outputs), joint_leaves(numbers, needs_grad)
    )
    nodes, returned = joint_record(joint.graph)
    by_name = {node["name"]: node for node in nodes}
    places = [node["name"] for node in nodes if node["op"] == "placeholder"]
    tangents = places[len(joint_inputs[0]) :]
    runs = joint_origins(nodes, returned[:count])
    runs |= {n["name"] for n in nodes if n["getitem"] and n["inputs"][0] in runs}

    def random(node):
        return node["random"] or (node["getitem"] and random(by_name[node["inputs"][0]]))

    def taken(node):
        if node["op"] == "placeholder":
            return True
        if node["name"] not in runs or node["tuple"]:
            return False
        return random(node) or node["target"] in savable

    met, waiting = set(), [name for name in returned[count:] if name]
    while waiting:
        name = waiting.pop()
        if name not in met:
            met.add(name)
            waiting += [] if taken(by_name[name]) else by_name[name]["inputs"]
    saved = [
        n["name"] for n in nodes if n["name"] in met and taken(n) and n["name"] not in tangents
    ]
    first = joint_origins(nodes, [*returned[:count], *saved])
    torch.manual_seed(SEED)
    given = [one.detach().clone() for one in numbers]
    values = joint(given, joint_tangents(joint_inputs))  # two lists in, two out
    return {
        "forward": targets(nodes, first),
        "backward": targets(nodes, met - set(saved)),
        "saved": len(saved),
        "saved bytes": sum(by_name[name]["bytes"] for name in saved),
        "outputs": list(values[0]),
        "gradients": list(values[1]),
    }


def targets(nodes, names):
    return sorted(n["target"] for n in nodes if n["name"] in names and n["op"] == "call_function")


def close(mine, theirs):
    assert_close(mine, theirs, rtol=1e-9, atol=1e-9, because="the same operators in float64")


def compare(joint_cut, keys, *inputs):
    got, right = joint_cut.ask(*inputs).value, expected(*inputs)
    steps, outputs, needs_grad, _, savable = inputs
    may = "everything" if savable == EVERYTHING else ", ".join(savable) or "nothing but primals"
    grads = ", ".join(name for name, needs in zip("abc", needs_grad, strict=True) if needs)
    with about(("on", as_program(steps, outputs)), ("require grad", grads), ("may be saved", may)):
        for key in keys:
            if key in ("outputs", "gradients"):
                have = [[one is not None for one in side[key]] for side in (got, right)]
                assert_equal(*have, f"Which {key} there are.")
                for at, (mine, theirs) in enumerate(zip(got[key], right[key], strict=True)):
                    if theirs is not None:
                        with about(of=f"Number {at} of the {key}. "):
                            close(mine, theirs)
            else:
                assert_equal(got[key], right[key], COUNTED[key])


COUNTED = {
    "forward": "The operators that the forward graph runs.",
    "backward": "The operators that the backward graph runs.",
    "saved": "The number of tensors that are saved.",
    "saved bytes": "The bytes that are saved.",
}
"""What the numbers of a partition are."""


VALUES = ["outputs", "gradients"]
GRAPHS = ["forward", "backward", "saved", "saved bytes"]


@gate
def test_two_graphs(joint_cut, steps, outputs, needs_grad, numbers, savable):
    """Returns two graph modules; the first returns the outputs."""
    got = joint_cut.value
    for which, is_module in zip(("first", "second"), got["graphs"], strict=True):
        assert_holds(is_module, f"The {which} of the pair is no torch.fx.GraphModule.")
    if not got["gradients"]:
        raise Mismatch("The backward graph returns no gradients.")
    compare(joint_cut, ["outputs"], steps, outputs, needs_grad, numbers, savable)


def test_values(joint_cut, rng, numbers):
    """Outputs and gradients are those of the joint graph, `None` where it has none."""
    for savable in (EVERYTHING, [], ["aten.exp.default", "aten.mul.Tensor"]):
        steps = draw_joint_program(rng, ["sin", "exp", "mul"], 4)
        compare(joint_cut, VALUES, steps, [6, 4], [True, False, True], numbers, savable)


def test_save_everything(joint_cut, rng, numbers):
    """Where everything may be saved, the backward recomputes nothing."""
    compare(joint_cut, GRAPHS, CHAIN, [6], ALL, numbers, EVERYTHING)
    steps = draw_joint_program(rng, ["sin", "mul", "exp", "rows", "sigmoid"], 6)
    compare(joint_cut, GRAPHS, steps, [8], ALL, numbers, EVERYTHING)


def test_save_nothing(joint_cut, rng, numbers):
    """Where nothing may be saved, primals are, and the backward recomputes the rest."""
    compare(joint_cut, GRAPHS, CHAIN, [6], ALL, numbers, [])
    steps = draw_joint_program(rng, ["sin", "mul", "exp", "rows", "sigmoid"], 6)
    compare(joint_cut, GRAPHS, steps, [8], ALL, numbers, [])


@points(4)
def test_save_some(joint_cut, rng, numbers):
    """Where some values may be saved, recomputation starts from them and from primals."""
    for savable in (["aten.sin.default"], ["aten.mul.Tensor", "aten.mm.default"]):
        steps = [
            *draw_joint_program(rng, ["sin", "mul", "exp", "cos"], 5),
            ("mm", 7, 1),
            ("sin", 8),
        ]
        compare(joint_cut, GRAPHS, steps, [9], ALL, numbers, savable)


def test_each_once(joint_cut, numbers):
    """A value is saved once, read how often it may be; an output may be saved too."""
    squares = [("exp", 0), ("mul", 3, 3), ("mul", 4, 3)]
    compare(joint_cut, GRAPHS + VALUES, squares, [5, 3], ALL, numbers, EVERYTHING)
    compare(joint_cut, GRAPHS + VALUES, [("mul", 0, 0), ("mul", 3, 0)], [4, 0], ALL, numbers, [])


def test_random_once(joint_cut, numbers):
    """A random operator runs once: what the backward needs of it is saved in any case."""
    dropped = [("sin", 0), ("dropout", 3), ("exp", 4)]
    for savable in ([], EVERYTHING):
        compare(joint_cut, VALUES + GRAPHS, dropped, [5], ALL, numbers, savable)


def test_tuples(joint_cut, numbers):
    """Of an operator that returns a tuple, items are saved, or the operator runs again."""
    peaked = [("sin", 0), ("peak", 3), ("mul", 4, 1)]
    for savable in ([], EVERYTHING, ["aten.max.dim"]):
        compare(joint_cut, VALUES + GRAPHS, peaked, [5], ALL, numbers, savable)


def test_all_tangents(joint_cut, numbers):
    """The backward takes every tangent in its place, also one that nothing reads."""
    # the tangent of what was detached has nowhere to go
    ended = [("sin", 0), ("restarted", 3), ("exp", 3)]
    for outputs in ([4, 5], [5, 4]):
        compare(joint_cut, VALUES, ended, outputs, ALL, numbers, EVERYTHING)


@claimed
def test_in_autograd(joint_trained, joint_cut, numbers):
    """`aot_function` takes your partition; the joint graph is left as it was."""
    for savable in (EVERYTHING, ["aten.sin.default"]):
        got = joint_trained.ask(CHAIN, [6, 3], [True, True, False], numbers, savable).value
        leaves = joint_leaves(numbers, [True, True, False])
        results = joint_program(CHAIN, [6, 3])(*leaves)
        sum(result.sum() for result in results).backward()
        for mine, theirs in zip(got["outputs"], results, strict=True):
            close(mine, theirs.detach())
        for mine, leaf in zip(got["gradients"], leaves, strict=True):
            if leaf.grad is None:
                assert_holds(mine is None, "The third input requires no grad, and got a gradient.")
            else:
                close(mine, leaf.grad)
    assert_holds(joint_cut.value["joint graph unchanged"], "The joint graph was changed.")
