"""Checks of `merge_matmuls`: no two products that could be one, no multiplication more, same results."""

from itertools import combinations

import pytest
import torch

from grader import about, assert_close, assert_equal, assert_holds, draw_one, gate, points
from grader.ch07_compile.probes.fx_steps import module_from_steps, with_values
from grader.ch07_compile.random_graphs import as_text, call, gives, reads, run_steps

SIDE = 4
MM = torch.ops.aten.mm.default


@pytest.fixture
def inputs(rng):
    return matrices(rng, 4)


@pytest.fixture
def steps():
    products = [call("a", "mm", "%x0", "%x1"), call("b", "mm", "%x0", "%x2")]
    return [*reads("x0", "x1", "x2", "x3"), *products, gives("%a", "%b")]


def matrices(rng, count):
    return [torch.randn(SIDE, SIDE, dtype=torch.float64, generator=rng) for _ in range(count)]


def nodes_of(steps, inputs):
    return list(with_values(module_from_steps(steps, {}), inputs).graph.nodes)


def mergeable(nodes):
    """Return pairs of products of one matrix, of which neither needs the other."""
    needs = {}
    for node in nodes:
        sources = node.all_input_nodes
        needs[node] = set(sources).union(*(needs[source] for source in sources))
    return [
        f"{one.name} and {other.name}"
        for one, other in combinations([n for n in nodes if n.target is MM], 2)
        if one.args[0] is other.args[0] and one not in needs[other] and other not in needs[one]
    ]


def multiplications(nodes):
    """Return the numbers that all products multiply, added up."""
    return sum(
        node.args[0].meta["val"].numel() * node.args[1].meta["val"].shape[1]
        for node in nodes
        if node.target is MM
    )


def compare(matmuls_merged, steps, inputs, count=None):
    got = matmuls_merged.ask(steps, inputs).value
    where = as_text(steps)
    assert_holds(not got["early"], f"A node comes before one that it takes. {where}")
    assert_holds(
        got["recompiled"], "The module's code is not that of its new graph: `recompile()`."
    )
    expected = run_steps(steps, inputs)
    for runs in (got["runs"], run_steps(got["once"], inputs)):
        for mine, theirs in zip(runs[0]["outputs"], expected[0]["outputs"], strict=True):
            with about(("graph", where)):
                assert_close(mine, theirs, rtol=1e-9, atol=1e-9, because="the same sums in float64")
    before, after = nodes_of(steps, inputs), nodes_of(got["once"], inputs)
    left = mergeable(after)
    assert_equal(left[:1], [], f"Products that could still be one, in: {as_text(got['once'])}")
    more = multiplications(after) - multiplications(before)
    assert_equal(more, 0, f"Multiplications that were not there. {where}")
    if count is not None:
        products = sum(node.target is MM for node in after)
        assert_equal(products, count, f"Products that are left of: {where}")
    assert_equal(
        as_text(got["twice"]), as_text(got["once"]), "A second run changed the graph again."
    )


@gate
def test_two_products(matmuls_merged, steps, inputs):
    """Two products of one matrix become one."""
    compare(matmuls_merged, steps, inputs, 1)


def test_many_of_any_width(matmuls_merged, rng):
    """Any number of products, of weights of any width, of a matrix that is not square."""
    for widths in ([1, 2], [5, 3, 4], [2, 2, 7, 1, 3]):
        x = torch.randn(3, 6, dtype=torch.float64, generator=rng)
        weights = [torch.randn(6, w, dtype=torch.float64, generator=rng) for w in widths]
        names = [f"x{n + 1}" for n in range(len(widths))]
        products = [call(f"m{name}", "mm", "%x0", f"%{name}") for name in names]
        used = [call(f"s{name}", "sin", f"%m{name}") for name in names]
        mixed = [step for pair in zip(products, used, strict=True) for step in pair]
        steps = [*reads("x0", *names), *mixed, gives(*[f"%s{name}" for name in names], "%mx1")]
        compare(matmuls_merged, steps, [x, *weights], 1)


def test_other_products(matmuls_merged, inputs):
    """Products of different matrices stay, also where they share the other operand."""
    steps = [
        *reads("x0", "x1", "x2", "x3"),
        call("a", "mm", "%x0", "%x2"),
        call("b", "mm", "%x1", "%x2"),
        call("c", "mm", "%x2", "%x0"),
        call("d", "mm", "%x0", "%x3"),
        call("e", "mm", "%x3", "%x0"),
        call("f", "mm", "%x0", "%x0"),
        gives("%a", "%b", "%c", "%d", "%e", "%f"),
    ]
    compare(matmuls_merged, steps, inputs, 4)


def test_dependent_products(matmuls_merged, inputs):
    """A product whose weight was computed from another's result cannot join that one."""
    steps = [
        *reads("x0", "x1", "x2", "x3"),
        call("a", "mm", "%x0", "%x1"),
        call("s", "sin", "%a"),
        call("t", "t", "%s"),
        call("b", "mm", "%x0", "%t"),
        call("c", "mm", "%x0", "%x2"),
        call("u", "add.Tensor", "%c", "%x3"),
        call("d", "mm", "%x0", "%u"),
        gives("%a", "%b", "%d"),
    ]
    # two are left of (a, c) and (b, d); three of c, (a, d) and b, which is right as well
    compare(matmuls_merged, steps, inputs)


@points(3)
def test_late_weights(matmuls_merged, inputs):
    """A weight may be computed long after the first product, whose result is used before that."""
    steps = [
        *reads("x0", "x1", "x2", "x3"),
        call("a", "mm", "%x0", "%x1"),
        call("b", "sin", "%a"),
        call("s", "neg", "%x2"),
        call("t", "t", "%s"),
        call("c", "mm", "%x0", "%t"),
        call("d", "add.Tensor", "%b", "%c"),
        call("w", "cos", "%x3"),
        call("v", "mul.Tensor", "%w", "%t"),
        call("e", "mm", "%x0", "%v"),
        gives("%d", "%e", "%b"),
    ]
    compare(matmuls_merged, steps, inputs, 1)


def test_groups_that_cross(matmuls_merged, inputs):
    """Merging one pair may make another pair dependent: both at once would wait for each other."""
    steps = [
        *reads("x0", "x1", "x2", "x3"),
        call("a", "mm", "%x0", "%x2"),
        call("p", "mm", "%x1", "%x3"),
        call("s", "sin", "%a"),
        call("q", "mm", "%x1", "%s"),
        call("t", "cos", "%p"),
        call("b", "mm", "%x0", "%t"),
        gives("%q", "%b"),
    ]
    compare(matmuls_merged, steps, inputs, 3)


def test_random_graphs(matmuls_merged, rng):
    """Random graphs, in which products feed products."""
    for length in (6, 10, 14, 18, 18):
        steps = [*reads("x0", "x1", "x2"), call("h", "mm", "%x0", "%x1")]
        steps.append(call("i", "mm", "%x0", "%x2"))
        pool = ["%x0", "%x1", "%x2", "%h", "%i"]
        for n in range(length):
            one, two = draw_one(rng, pool[:3]), draw_one(rng, pool)
            kind = draw_one(rng, ["mm", "mm", "sin", "t", "add"])
            if kind == "mm":
                steps.append(call(f"v{n}", "mm", one, two))
            elif kind == "add":
                steps.append(call(f"v{n}", "add.Tensor", two, draw_one(rng, pool)))
            else:
                steps.append(call(f"v{n}", kind, two))
            pool.append(f"%v{n}")
        compare(matmuls_merged, [*steps, gives("%h", "%i", *pool[5:])], matrices(rng, 3))
