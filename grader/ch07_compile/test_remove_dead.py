"""Checks of `remove_dead`: what goes, what stays, and that the rest computes what it did."""

import pytest
import torch

from grader import assert_equal, gate, points
from grader.ch07_compile.probes.fx_steps import call_named
from grader.ch07_compile.random_graphs import (
    as_text,
    assert_equivalent,
    call,
    gives,
    random_inputs,
    random_steps,
    reads,
)


@pytest.fixture
def inputs(rng):
    return random_inputs(rng)


@pytest.fixture
def steps():
    return [*reads("x0", "x1"), call("a", "sin", "%x0"), call("b", "cos", "%x0"), gives("%b")]


@pytest.fixture
def attributes():
    return {}


def has_effect(step):
    _, op, target, _, _ = step
    if op == "call_function" and target.startswith("aten"):
        schema = call_named(target)._schema
        drawn = torch.Tag.nondeterministic_seeded in call_named(target).tags
        return schema.is_mutable or drawn or not schema.returns
    return target != "operator.getitem" and op != "get_attr"


def kept(steps):
    """Return the names of the nodes that must stay: those with an effect, and what they need."""
    needed, names = set(), []
    for step in reversed(steps):
        if has_effect(step) or f"%{step[0]}" in needed:
            names.insert(0, step[0])
            needed |= set(_values([step[3], step[4]]))
    return names


def _values(nest):
    if isinstance(nest, dict):
        nest = list(nest.values())
    if isinstance(nest, list | tuple):
        return [value for part in nest for value in _values(part)]
    return [nest] if isinstance(nest, str) and nest.startswith("%") else []


def compare(dead_removed, steps, inputs, attributes=None):
    got = dead_removed.ask(steps, inputs, attributes or {}).value
    here = [step[0] for step in got["once"]]
    assert_equal(here, kept(steps), f"Nodes that are left of: {as_text(steps)}.")
    assert_equivalent(got, steps, inputs, attributes)


@gate
def test_result_stays(dead_removed, steps, inputs):
    """One dead call goes, and the result stays."""
    compare(dead_removed, steps, inputs)


def test_chains(dead_removed, rng):
    """Calls that only dead calls use are dead too, through tuples and views."""
    for length in (3, 6, 12, 24):
        steps = random_steps(rng, ["unary", "binary", "sort", "view"], length, outputs=1)
        dead = [call("d0", "sort", "%x0"), call("d1", "operator.getitem", "%d0", 1)]
        steps[2:2] = [*dead, call("d2", "t", "%d1"), call("d3", "neg", "%d2")]
        compare(dead_removed, steps, random_inputs(rng))


@points(3)
def test_writes(dead_removed, inputs, rng):
    """A call that writes to a tensor stays, whoever owns the tensor, and so does what it takes."""
    out = [call("b", "empty_like", "%x0"), call("o", "add.out", "%x0", "%x1", out="%b")]
    for tail in ([call("s", "sin", "%b")], [call("s", "mul.out", "%x1", 2, out="%x0")]):
        steps = [*reads("x0", "x1"), call("d", "sin", "%x0"), *out, *tail, gives("%s")]
        compare(dead_removed, steps, inputs)
    for length in (4, 8, 16):
        steps = random_steps(rng, ["unary", "write", "view"], length, outputs=1)
        steps.insert(2, call("d", "sin", "%x0"))
        compare(dead_removed, steps, random_inputs(rng))


def test_random_numbers(dead_removed, inputs, rng):
    """A call that draws random numbers stays, so that the draws after it are the same."""
    drawn = [call("r", "rand_like", "%x0"), call("m", "native_dropout", "%x0", 0.5, True)]
    used = [call("u", "randn_like", "%x0"), call("d", "neg", "%u")]
    compare(dead_removed, [*reads("x0", "x1"), *drawn, *used, gives("%u")], inputs)
    for length in (4, 8, 16):
        steps = random_steps(rng, ["unary", "random", "random"], length)
        steps.insert(2, call("d", "sin", "%x0"))
        compare(dead_removed, steps, random_inputs(rng))


def test_assertions(dead_removed, inputs):
    """A call that returns nothing is there for its effect: it stays, with what it takes."""
    steps = [
        *reads("x0", "x1"),
        call("n", "isfinite", "%x0"),
        call("a", "all", "%n"),
        call("q", "_assert_async.msg", "%a", "x0 must be finite"),
        call("s", "neg", "%x0"),
        call("d", "neg", "%s"),
        call("t", "_assert_tensor_metadata", "%x1", [4, 4]),
        gives("%s"),
    ]
    compare(dead_removed, steps, inputs)


def test_what_has_no_schema(dead_removed, inputs):
    """Of functions and methods without a schema nothing is known: they stay, but for getitem."""
    steps = [
        *reads("x0", "x1"),
        call("a", "sin", "%x0"),
        ("w", "call_function", "operator.setitem", ("%a", 0, 1.0), {}),
        ("m", "call_method", "add_", ("%x1", 1), {}),
        ("p", "call_function", "torch.rand_like", ("%x0",), {}),
        call("g", "operator.getitem", "%x0", 0),
        ("k", "call_method", "dim", ("%g",), {}),
        call("h", "operator.getitem", "%x0", 1),
        gives("%a"),
    ]
    compare(dead_removed, steps, inputs)


def test_arguments_and_attributes(dead_removed, inputs):
    """Placeholders stay, used or not: they are the signature. Attributes that nobody reads go."""
    steps = [
        *reads("x0", "x1"),
        ("c", "get_attr", "c", (), {}),
        ("e", "get_attr", "e", (), {}),
        call("a", "add.Tensor", "%x1", "%e"),
        call("d", "mul.Tensor", "%c", "%e"),
        gives("%a"),
    ]
    attributes = {"c": torch.ones(4), "e": torch.full((4, 1), 2.0)}
    compare(dead_removed, steps, inputs, attributes)
