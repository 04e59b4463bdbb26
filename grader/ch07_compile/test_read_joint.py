"""Checks of `read_joint`: random programs, whose joint graphs are sorted by reachability here."""

import pytest
import torch

from grader import Mismatch, about, assert_equal, assert_holds, assert_same_bits, gate, kept, points
from grader.ch07_compile.joint_graphs import (
    as_program,
    draw_joint_program,
    joint_origins,
    joint_results,
)
from grader.ch07_compile.probes.joint_programs import (
    capture_joint,
    joint_leaves,
    joint_program,
    joint_record,
)

ALL = [True, True, True]


@pytest.fixture
def steps():
    return [("sin", 0)]


@pytest.fixture
def outputs():
    return [3]


@pytest.fixture
def needs_grad():
    return ALL


@pytest.fixture
def numbers(rng):
    """The inputs' values, (3, 4, 4), each with a layout of its own."""
    drawn = torch.rand(3, 4, 4, generator=rng) + 0.5
    wide = torch.rand(4, 8, generator=rng) + 0.5
    return [drawn[0], drawn[1].t(), wide[:, 1:5]]


@kept
def expected(steps, outputs, needs_grad, numbers):
    """Return what a right answer says."""
    leaves = [
        leaf.clone() if not leaf.requires_grad else leaf
        for leaf in joint_leaves(numbers, needs_grad)
    ]
    joint, joint_inputs, count = capture_joint(joint_program(steps, outputs), leaves)
    nodes, returned = joint_record(joint.graph)
    places = [node["name"] for node in nodes if node["op"] == "placeholder"]
    primals = len(joint_inputs[0])
    forward = joint_origins(nodes, returned[:count])
    backward = joint_results(nodes, places[primals:])
    calls = [node for node in nodes if node["op"] == "call_function"]
    return {
        "primals": primals,
        "tangents": len(places) - primals,
        "outputs": count,
        "gradients": [name is not None for name in returned[count:]],
        "forward": sorted(n["target"] for n in calls if n["name"] in forward),
        "backward": sorted(n["target"] for n in calls if n["name"] in backward),
        "either": sorted(n["target"] for n in calls if n["name"] not in forward | backward),
    }


def compare(joint_read, keys, *inputs):
    got = joint_read.ask(*inputs).value
    right = expected(*inputs)
    steps, outputs, needs_grad, _ = inputs
    grads = ", ".join(name for name, needs in zip("abc", needs_grad, strict=True) if needs)
    with about(("on", as_program(steps, outputs)), ("require grad", grads)):
        for key in keys:
            found = got[key]
            if isinstance(right[key], list) and key != "gradients":
                found = sorted(found)
            assert_equal(found, right[key], f'`read_joint(f, a, b, c)["{key}"]`.')


@gate
def test_seven_keys(joint_read):
    """Returns a dict with the seven keys, and sees the sine in the forward part."""
    got = joint_read.value
    keys = ["primals", "tangents", "outputs", "gradients", "forward", "backward", "either"]
    if not isinstance(got, dict):
        assert_equal(got, {}, "Not a dict.")
    missing = [key for key in keys if key not in got]
    if missing:
        raise Mismatch("Keys are missing.", (("missing", ", ".join(missing)),))
    there = "aten.sin.default" in got["forward"]
    rows = ("on", as_program([("sin", 0)], [3])), ("got", repr(got["forward"]))
    assert_holds(there, "`forward` does not name the sine.", *rows)


def test_forward(joint_read, rng, numbers):
    """`forward` names what the forward's outputs need, and nothing else."""
    for count in (2, 6):
        steps = draw_joint_program(rng, ["sin", "mul", "add", "exp", "sigmoid"], count)
        compare(joint_read, ["forward"], steps, [2 + count], ALL, numbers)
    compare(joint_read, ["forward"], [("peak", 0), ("mul", 3, 1)], [4], ALL, numbers)


def test_backward(joint_read, rng, numbers):
    """`backward` names what depends on a tangent."""
    steps = draw_joint_program(rng, ["sin", "mul", "rows", "exp", "cos"], 5)
    compare(joint_read, ["backward"], steps, [7], ALL, numbers)
    compare(joint_read, ["backward"], [("sin", 0), ("cos", 1)], [3, 4], ALL, numbers)


@points(3)
def test_either(joint_read, rng, numbers):
    """`either` names what only the backward needs and no tangent takes part in."""
    compare(joint_read, ["either"], [("sin", 0), ("mul", 3, 1), ("sin", 4)], [5], ALL, numbers)
    steps = draw_joint_program(rng, ["sin", "mul", "cos"], 5)
    compare(joint_read, ["either"], steps, [7], ALL, numbers)
    compare(joint_read, ["either"], [("dropout", 0), ("sin", 3)], [4], ALL, numbers)


def test_tangents(joint_read, numbers):
    """There is a tangent for each output that has a gradient, and for no other."""
    keys = ["primals", "tangents", "outputs"]
    compare(joint_read, keys, [("positive", 0), ("sin", 1)], [3, 4], ALL, numbers)
    compare(joint_read, keys, [("sin", 0), ("detached", 1), ("sin", 4)], [3, 5, 3], ALL, numbers)


def test_gradients(joint_read, numbers):
    """`gradients` says of each primal whether the joint graph computes its gradient."""
    keys = ["gradients"]
    compare(joint_read, keys, [("mul", 0, 1), ("mul", 3, 2)], [4], [True, False, True], numbers)
    compare(joint_read, keys, [("detached", 0), ("mul", 3, 1)], [4], ALL, numbers)


def test_changed_inputs(joint_read, numbers):
    """An input that the program changes is one more output of the forward; it comes first."""
    flags = [False, True, True]
    keys = ["outputs", "gradients", "tangents", "forward", "backward"]
    compare(joint_read, keys, [("grow", 0), ("mul", 3, 1)], [4], flags, numbers)


def test_inputs_left_alone(joint_read, numbers):
    """Your inputs are as they were, whatever the program does to its own."""
    answer = joint_read.ask([("grow", 0), ("mul", 3, 1)], [4], [False, True, True], numbers)
    assert_equal(answer.value["outputs"], 2, "`outputs`.")
    after = answer.inputs_after
    for mine, was in zip(after["numbers"], numbers, strict=True):
        assert_same_bits(mine, was)
