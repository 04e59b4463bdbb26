"""Checks of `fuse`: kernels that can run, and no two of them that could still be one."""

from graphlib import CycleError, TopologicalSorter
from itertools import combinations

import pytest
import torch

from grader import about, assert_equal, assert_holds, compared, draw_one, gate, points
from grader.ch07_compile.probes.fx_steps import module_from_steps, with_values
from grader.ch07_compile.random_graphs import as_text, call, gives, random_inputs, reads


@pytest.fixture
def inputs(rng):
    return random_inputs(rng)


@pytest.fixture
def steps():
    return [*reads("x0", "x1"), call("a", "sin", "%x0"), call("b", "neg", "%a"), gives("%b")]


def facts_of(steps, inputs):
    """Return {name of a call: (its shape if it is pointwise, names of the calls it takes)}."""
    nodes = with_values(module_from_steps(steps, {}), inputs).graph.nodes
    calls = {node for node in nodes if node.op == "call_function"}
    return {
        node.name: (
            tuple(node.meta["val"].shape) if torch.Tag.pointwise in node.target.tags else None,
            {source.name for source in node.all_input_nodes if source in calls},
        )
        for node in nodes
        if node in calls
    }


def runs(kernels, facts):
    """Say whether there is an order in which the kernels can run."""
    home = {name: number for number, kernel in enumerate(kernels) for name in kernel}
    needs = {
        number: {home[source] for name in kernel for source in facts[name][1]} - {number}
        for number, kernel in enumerate(kernels)
    }
    try:
        return bool(list(TopologicalSorter(needs).static_order()) or True)
    except CycleError:
        return False


def compare(kernels_fused, steps, inputs, count=None):
    got = kernels_fused.ask(steps, inputs).value
    kernels, facts = got["kernels"], facts_of(steps, inputs)
    names = sorted(name for kernel in kernels for name in kernel)
    shown = ", ".join(f"[{', '.join(kernel)}]" for kernel in kernels)
    with about(("graph", as_text(steps)), ("your kernels", shown)):
        assert_equal(names, sorted(facts), "The calls in all kernels, each once.")
        assert_equal([kernel for kernel in kernels if not kernel], [], "Empty kernels.")
        mixed = [k for k in kernels if len(k) > 1 and not alike(k, facts)]
        assert_equal(mixed, [], "Kernels of calls that cannot share one.")
        what = "The kernels wait for each other: there is no order in which they can run."
        assert_holds(runs(kernels, facts), what)
        done, early = set(), []
        for name in (name for kernel in kernels for name in kernel):
            early += [name] if not facts[name][1] <= done else []
            done.add(name)
        assert_equal(early, [], "Calls that come before one that they take.")
        assert_none_joinable(kernels, facts)
        if count is not None:
            assert_equal(len(kernels), count, "The number of kernels.")
        assert_holds(got["unchanged"], "The graph was changed.")


def assert_none_joinable(kernels, facts):
    """Fail if two kernels could be one. What is compared is how such pairs depend on each other."""
    joinable = [
        (one, other)
        for one, other in combinations(kernels, 2)
        if alike([*one, *other], facts)
        and runs([[*one, *other], *(k for k in kernels if k not in (one, other))], facts)
    ]
    depend = [
        any(facts[name][1] & set(other) for name in one)
        or any(facts[name][1] & set(one) for name in other)
        for one, other in joinable
    ]
    kinds = [any(depend), not all(depend)]
    smallest = min(joinable, key=lambda pair: len(pair[0]) + len(pair[1]), default=((), ()))
    first, second = (f"[{', '.join(kernel)}]" for kernel in smallest)
    what = f"The kernels {first} and {second} could be one."
    compared(kinds)
    assert_holds(not joinable, what)


def alike(kernel, facts):
    shapes = {facts[name][0] for name in kernel}
    return len(shapes) == 1 and None not in shapes


@gate
def test_two_calls(kernels_fused, steps, inputs):
    """Two pointwise calls in a row are one kernel."""
    compare(kernels_fused, steps, inputs, 1)


def test_chains(kernels_fused, inputs):
    """Vertical: a chain of pointwise calls is one kernel, also where it parts and meets again."""
    steps = [
        *reads("x0", "x1"),
        call("a", "sin", "%x0"),
        call("b", "mul.Tensor", "%a", 2),
        call("c", "add.Tensor", "%b", "%x1"),
        call("d", "neg", "%a"),
        call("e", "where.self", "%x0", "%c", "%d"),
        gives("%e", "%b"),
    ]
    steps[-2] = call("e", "maximum", "%c", "%d")
    compare(kernels_fused, steps, inputs, 1)
    steps[-2:] = [
        call("m", "mm", "%c", "%d"),
        call("f", "relu", "%m"),
        call("g", "add.Tensor", "%f", "%x1"),
        gives("%g"),
    ]
    compare(kernels_fused, steps, inputs, 3)
    # the first kernel by its first call runs last: its second call takes the product
    waiting = [
        *reads("x0", "x1"),
        call("a", "sin", "%x0"),
        call("m", "mm", "%x0", "%x1"),
        call("b", "add.Tensor", "%a", "%m"),
        gives("%b"),
    ]
    compare(kernels_fused, waiting, inputs, 2)


def test_siblings(kernels_fused, inputs):
    """Horizontal: pointwise calls that do not depend on each other, whatever they read."""
    steps = [
        *reads("x0", "x1"),
        call("a", "sin", "%x0"),
        call("b", "cos", "%x0"),
        call("c", "neg", "%x1"),
        gives("%a", "%b", "%c"),
    ]
    compare(kernels_fused, steps, inputs, 1)
    # results of several dtypes and one shape
    mixed = [
        *reads("x0", "x1"),
        call("a", "gt.Scalar", "%x0", 0),
        call("b", "sin", "%x1"),
        call("c", "where.self", "%a", "%x0", "%x1"),
        call("d", "logical_not", "%x1"),
        gives("%a", "%b", "%c", "%d"),
    ]
    compare(kernels_fused, mixed, inputs, 1)
    # behind two products that do not depend on each other: c may join a and b, or else e
    steps[-1:] = [
        call("m", "mm", "%a", "%c"),
        call("n", "mm", "%b", "%x1"),
        call("d", "relu", "%m"),
        call("e", "tanh", "%n"),
        gives("%d", "%e"),
    ]
    compare(kernels_fused, steps, inputs)


@points(3)
def test_ways_round(kernels_fused, inputs):
    """Two calls stay apart where a way from one to the other leads through a third kernel."""
    softmax = [
        *reads("x0", "x1"),
        call("a", "exp", "%x0"),
        call("s", "sum.dim_IntList", "%a", [1], True),
        call("b", "div.Tensor", "%a", "%s"),
        gives("%b"),
    ]
    compare(kernels_fused, softmax, inputs, 3)
    far = [
        *reads("x0", "x1"),
        call("a", "sin", "%x0"),
        call("m", "mm", "%a", "%x1"),
        call("t", "t", "%m"),
        call("n", "mm", "%t", "%x1"),
        call("b", "add.Tensor", "%a", "%n"),
        call("c", "neg", "%x1"),
        gives("%b", "%c"),
    ]
    compare(kernels_fused, far, inputs, 5)
    # each of four pairs could be one kernel; a kernel (a, d) and one (b, c) would wait for each other
    crossed = [
        *reads("x0", "x1"),
        call("a", "sin", "%x0"),
        call("b", "cos", "%x1"),
        call("m", "mm", "%a", "%x1"),
        call("n", "mm", "%b", "%x0"),
        call("c", "neg", "%m"),
        call("d", "abs", "%n"),
        gives("%c", "%d"),
    ]
    compare(kernels_fused, crossed, inputs)


def test_shapes(kernels_fused, inputs):
    """One kernel has one shape: what broadcasts an input may join, what has another result may not."""
    steps = [
        *reads("x0", "x1"),
        call("r", "slice.Tensor", "%x0", 0, 0, 1),
        call("a", "sin", "%r"),
        call("b", "cos", "%r"),
        call("c", "add.Tensor", "%x1", "%r"),
        call("d", "mul.Tensor", "%c", "%a"),
        call("t", "t", "%b"),
        call("e", "neg", "%t"),
        call("f", "abs", "%x0"),
        call("u", "t", "%r"),
        call("g", "neg", "%u"),  # a column, which needs neither of the rows a and b
        gives("%d", "%e", "%f", "%g"),
    ]
    compare(kernels_fused, steps, inputs, 6)
    # as many elements, and other shapes: (4, 4), (2, 8), (16,), (1, 4, 4)
    reshaped = [*reads("x0", "x1"), call("a", "sin", "%x0")]
    for name, shape in (("b", [2, 8]), ("c", [16]), ("d", [1, 4, 4])):
        reshaped += [call(f"v{name}", "view", "%x1", shape), call(name, "cos", f"%v{name}")]
    compare(kernels_fused, [*reshaped, gives("%a", "%b", "%c", "%d")], inputs, 7)


def test_what_is_not_pointwise(kernels_fused, inputs):
    """Products, sums, views and sorts are alone, side by side as well."""
    steps = [
        *reads("x0", "x1"),
        call("a", "mm", "%x0", "%x1"),
        call("b", "mm", "%x1", "%x0"),
        call("c", "t", "%x0"),
        call("d", "t", "%x1"),
        call("e", "cumsum", "%x1", 0),
        call("f", "cumsum", "%x1", 1),
        call("g", "neg", "%a"),
        call("h", "neg", "%f"),
        gives("%b", "%c", "%d", "%e", "%g", "%h"),
    ]
    compare(kernels_fused, steps, inputs, 7)


def test_random_graphs(kernels_fused, rng):
    """Random graphs of pointwise calls, sums, products and broadcasts."""
    for length in (4, 8, 8, 12, 12, 14):
        compare(kernels_fused, barriers(rng, length), random_inputs(rng))


def barriers(rng, length):
    steps, pool, wide = reads("x0", "x1"), ["%x0", "%x1"], ["%x0", "%x1"]
    for n in range(length):
        name, one, two = f"v{n}", draw_one(rng, pool), draw_one(rng, pool)
        kind = draw_one(rng, ["sin", "neg", "add", "mul", "add", "sum", "mm", "cumsum"])
        if kind == "sum":
            steps.append(call(name, "sum.dim_IntList", one, [1], True))
        elif kind == "mm":
            steps.append(call(name, "mm", draw_one(rng, wide), draw_one(rng, wide)))
        elif kind in ("add", "mul"):
            steps.append(call(name, f"{kind}.Tensor", one, two))
        else:
            steps.append(
                call(name, kind, *([draw_one(rng, wide), 0] if kind == "cumsum" else [one]))
            )
        pool.append(f"%{name}")
        is_wide = kind in ("mm", "cumsum") or (
            kind != "sum" and {one, two if kind in ("add", "mul") else one} & set(wide)
        )
        wide += [f"%{name}"] if is_wide else []
    return [*steps, gives(pool[-1], *pool[2:])]
