"""Checks of `interpret`: random graphs, every kind of node, and what is alive meanwhile."""

import pytest
import torch

from grader import about, assert_equal, assert_holds, assert_same_bits, claimed, gate, points
from grader.ch07_compile.random_graphs import (
    SIDE,
    call,
    gives,
    random_inputs,
    random_steps,
    reads,
    run_steps,
)


@pytest.fixture
def steps():
    return [*reads("x"), call("a", "add.Tensor", "%x", 1.0), gives("%a")]


@pytest.fixture
def weight(rng):
    return torch.randint(2, 9, (SIDE, SIDE), generator=rng) / 4


@pytest.fixture
def inputs(rng):
    return random_inputs(rng)


@pytest.fixture
def x(inputs):
    return inputs[0]


def compare(got, expected, what):
    """Compare nested results bit by bit."""
    if isinstance(expected, torch.Tensor):
        with about(of=f"{what} "):
            assert_same_bits(got, expected)
    elif isinstance(expected, tuple | list):
        assert_equal(type(got).__name__, type(expected).__name__, what)
        assert_equal(len(got), len(expected), what)
        for one, other in zip(got, expected, strict=True):
            compare(one, other, what)
    elif isinstance(expected, dict):
        assert_equal(list(got), list(expected), what)
        for key in expected:
            compare(got[key], expected[key], what)
    else:
        assert_equal(got, expected, what)


@gate
def test_one_call(interpreted, steps, weight, x):
    """Runs a graph of one call."""
    compare(interpreted.ask(steps, weight, [x]).value["result"], (x + 1.0,), "x + 1.0.")


def test_calls(interpreted, weight, rng):
    """Graphs of up to 20 calls: every value reaches the calls that use it."""
    for length in (1, 2, 5, 10, 20):
        steps = random_steps(rng, ["unary", "binary", "scalar", "sort"], length)
        inputs = random_inputs(rng)
        expected = run_steps(steps, inputs)[0]["outputs"]
        got = interpreted.ask(steps, weight, inputs).value
        compare(got["result"], expected, f"A graph of {length} calls.")


def test_nested_arguments(interpreted, weight, x):
    """Nodes inside lists, tuples, dicts, slices and keyword arguments."""
    steps = [
        *reads("x"),
        call("a", "add.Tensor", "%x", "%x", alpha=2),
        call("b", "cat", ["%x", "%a", "%x"], 1),
        call("s", "sym_size.int", "%x", 0),
        call("c", "operator.getitem", "%b", (("slice", None, 2, None), ("slice", "%s", None, 3))),
        ("d", "call_function", "dict", ([("k", "%a")],), {"other": "%c"}),
        call("e", "operator.getitem", "%d", "other"),
        ("f", "call_method", "transpose", ("%e", 0), {"dim1": 1}),
        call("g", "clamp", "%f", None, max=1.5),
        gives("%g", "%d"),
    ]
    a = x + 2 * x
    c = torch.cat([x, a, x], 1)[:2, 4::3]
    expected = (c.T.clamp(max=1.5), {"k": a, "other": c})
    compare(interpreted.ask(steps, weight, [x]).value["result"], expected, "Nested arguments.")


def test_attributes_and_modules(interpreted, weight, x):
    """Parameters and submodules, at any depth; a module is called, not its `forward` rebuilt."""
    steps = [
        *reads("x"),
        ("w", "get_attr", "block.inner.layer.weight", (), {}),
        ("b", "get_attr", "bias", (), {}),
        ("m", "call_module", "block.inner.layer", ("%x",), {"plus": "%b"}),
        ("n", "call_module", "layer", ("%m",), {}),
        ("l", "call_module", "layer", ("%n",), {}),
        ("unused", "call_module", "layer", ("%x",), {}),
        call("d", "sub.Tensor", "%l", "%w"),
        gives("%d", "%w"),
    ]
    got = interpreted.ask(steps, weight, [x]).value
    twice = weight * 2
    d = (x * twice + (weight + 1)) * weight * weight - twice
    compare(got["result"], (d, twice), "Attributes and modules.")
    assert_equal(got["calls"], (3, 1), "Calls of the two modules, one of them for nobody.")


def test_output_structure(interpreted, weight, inputs):
    """The output keeps its structure: a tensor alone, tuples, lists, dicts, numbers, None."""
    x, y = inputs
    for shape, expected in (
        ("%a", x.sin()),
        (("%a",), (x.sin(),)),
        (["%a", ("%x1", None)], [x.sin(), (y, None)]),
        ({"k": ("%a", 3), "x": "%x0"}, {"k": (x.sin(), 3), "x": x}),
        (None, None),
    ):
        steps = [
            *reads("x0", "x1"),
            call("a", "sin", "%x0"),
            ("output", "output", "output", (shape,), {}),
        ]
        compare(interpreted.ask(steps, weight, inputs).value["result"], expected, f"Of {shape}.")


def test_every_node_once_in_order(interpreted, weight, rng):
    """Every node runs once and in order, used or not: writes and random numbers prove it."""
    for length in (3, 6, 12):
        steps = random_steps(rng, ["unary", "write", "write", "random", "view"], length)
        inputs = random_inputs(rng)
        expected = run_steps(steps, inputs)[0]
        evidence = interpreted.ask(steps, weight, inputs)
        got = evidence.value
        compare(got["result"], expected["outputs"], "Writes and random numbers.")
        compare(evidence.inputs_after["inputs"], expected["inputs"], "Inputs after the run.")
        assert_holds(got["unchanged"], "The graph is another after the run.")
        assert_equal(got["notes"], [], "What is in the nodes' `meta` after the run, and was not.")


@claimed
@points(3)
def test_values_are_let_go(interpreted_memory, rng):
    """A value is let go after its last use: 30 calls in a row hold two results at a time."""
    x = torch.rand(64, 64, generator=rng)
    size = x.numel() * x.element_size()
    chain = [call(f"a{n}", "sin", f"%a{n - 1}" if n else "%x") for n in range(30)]
    got = interpreted_memory.ask([*reads("x"), *chain, gives("%a29")], x).value
    most_alive(got["peak bytes"], 2 * size, "30 calls, each of the one before")

    # a first result that is used again at the end lives all the while; dead ones do not
    wide = [
        call("a", "cos", "%x"),
        *[call(f"d{n}", "mul.Tensor", "%a", 2) for n in range(10)],
        call("b", "add.Tensor", "%a", "%d9"),
        call("c", "neg", "%b"),
    ]
    got = interpreted_memory.ask([*reads("x"), *wide, gives("%c")], x).value
    most_alive(got["peak bytes"], 3 * size, "one value that is used by ten calls")

    for nobody in ([call("d", "sin", "%x")], [("d", "call_method", "sin", ("%x",), {})]):
        steps = [*reads("x"), *nobody, call("c", "neg", "%x"), gives("%c")]
        got = interpreted_memory.ask(steps, x).value
        most_alive(got["peak bytes"], size, "a call that nobody uses, then another")

    method = [("b", "call_method", "sin", ("%a",), {})]
    steps = [call("a", "cos", "%x"), *method, call("c", "neg", "%b"), call("d", "neg", "%c")]
    got = interpreted_memory.ask([*reads("x"), *steps, gives("%d")], x).value
    most_alive(got["peak bytes"], 2 * size, "a method between three functions")


def most_alive(peak, allowed, what):
    rows = ("expected", f"{allowed} bytes at most"), ("got", f"{peak} bytes")
    assert_holds(peak <= allowed, f"Bytes of results that are alive at once: {what}.", *rows)
