"""Checks of `count_ops`: names and numbers of nodes, graph after graph."""

import pytest
import torch

from grader import Mismatch, about, assert_close, assert_equal, claimed, gate, points, python_random
from grader.ch07_compile.captured_programs import BREAKS, LINES, counted, random_lines


@pytest.fixture
def random(rng):
    return python_random(rng)


@pytest.fixture
def inputs(rng):
    """A call's arguments: x (3, 4) and w (4, 4)."""
    return [torch.randn(3, 4, generator=rng), torch.randn(4, 4, generator=rng)]


@pytest.fixture
def lines():
    return ["x = torch.sin(x)", "x = x + 1"]


@pytest.fixture
def calls(inputs):
    return [inputs]


def compare(got, expected, lines):
    text = "\n".join(lines)
    assert_equal(got, expected, f"The counts, for a function of these lines:\n{text}")


def compare_results(got):
    assert_equal(len(got["results"]), len(got["expected"]), "How many results came back.")
    for at, (one, other) in enumerate(zip(got["results"], got["expected"], strict=True), 1):
        with about(of=f"The result of call {at}. "):
            assert_close(one, other, rtol=1e-6, atol=1e-6, because="the same kernels run")


@gate
def test_results(ops_counted, ops_counted_in_module, lines, inputs, rng):
    """The calls' results come back, in order; functions and modules."""
    x, w = inputs
    got = ops_counted.ask(lines, [[x, w], [x + 1, w], [x.double(), w]]).value
    compare_results(got)
    if not isinstance(got["counts"], list):
        raise Mismatch("Expected a list of dicts.", (("got", repr(got["counts"])),))
    compare_results(ops_counted_in_module.ask(torch.randn(2, 3, generator=rng)).value)


@claimed
@points(3)
def test_one_graph(ops_counted, random, calls):
    """Functions, methods and operators are counted under their names."""
    for program in (list(LINES)[:2], list(LINES), random_lines(random, 9, False)):
        compare(ops_counted.ask(program, calls).value["counts"], counted(program), program)


@claimed
def test_breaks(ops_counted, random, calls):
    """A graph break begins a new dict; stretches without operations have none."""
    programs = [[BREAKS[0], "x = x.cos()", *BREAKS, "x = x + 1", BREAKS[1]]]
    programs.append(random_lines(random, 7, True))
    for program in programs:
        compare(ops_counted.ask(program, calls).value["counts"], counted(program), program)


@claimed
def test_several_calls(ops_counted, inputs):
    """A call that finds compiled code adds no graphs, others do; the function runs once a call."""
    x, w = inputs
    program = ["x = x.sin() + w[0]", BREAKS[0], "x = x.cos()"]
    once = [{"sin": 1, "getitem": 1, "add": 1}, {"cos": 1}]
    calls = [[x, w], [x * 2, w], [x.double(), w.double()], [x, w]]
    got = ops_counted.ask(program, calls).value
    compare_results(got)
    compare(got["counts"], once + once, program)
    compare(ops_counted.ask(program, []).value["counts"], [], program)
    # a function that changes its argument shows how often it ran
    compare_results(ops_counted.ask(["w.mul_(2)", "x = x + w[0]"], [inputs, inputs]).value)


@claimed
def test_arms(ops_counted, inputs):
    """The arms of a `cond` count, one inside another too."""
    arms = "lambda x: x.sin().sin(), lambda x: x.cos() + 1"
    nested = f"lambda x: torch.cond(x.sum() > 9, {arms}, (x,)), lambda x: x.exp()"
    for inner, expected in (
        (arms, {"sin": 2, "cos": 1, "add": 1, "cond": 1}),
        (nested, {"sin": 2, "cos": 1, "add": 1, "cond": 2, "exp": 1}),
    ):
        program = [f"x = torch.cond(x.sum() > 0, {inner}, (x,))"]
        got = ops_counted.ask(program, [inputs]).value
        compare_results(got)
        assert_equal(len(got["counts"]), 1, "How many graphs.")
        # what Dynamo needs around a cond (sum, gt, getitem) is its own business
        named = {name: n for name, n in got["counts"][0].items() if name in expected}
        compare(named, expected, program)


@claimed
def test_modules(ops_counted_in_module, rng):
    """A module's inside is in the graph, not its modules."""
    got = ops_counted_in_module.ask(torch.randn(2, 3, generator=rng)).value["counts"]
    assert_equal(got, [{"linear": 2, "relu": 2}], "The counts of nested modules.")


@claimed
def test_again(ops_counted_again, rng):
    """The same function, compiled for the tenth time, gives the same counts."""
    got = ops_counted_again.ask(torch.randn(2, generator=rng), 14).value
    first, second = [{"sin": 1, "add": 1, "cos": 1}], [{"exp": 1}]
    expected = [[first, first, second][i % 3] for i in range(14)]
    for number, (one, other) in enumerate(zip(got, expected, strict=True), 1):
        assert_equal(one, other, f"The counts of call {number} of `count_ops`.")
