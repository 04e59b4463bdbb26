"""Checks of `graph_report`: random graphs, whose saved tensors a hook saw being saved."""

import pytest
import torch

from grader import (
    Mismatch,
    about,
    assert_equal,
    assert_holds,
    draw_int,
    draw_one,
    gate,
    points,
    watch_saved,
)
from grader.ch05_autograd.probes.graphs import as_text, build_graph, name_of

LEAVES = 4
ACCUMULATE = "torch::autograd::AccumulateGrad"


@pytest.fixture
def recipe():
    return [("mul", 0, 1), ("sigmoid", 4)]


@pytest.fixture
def numbers(rng):
    """The leaves' values, (4, 4, 4); each leaf has a storage of its own."""
    return torch.rand(LEAVES, 4, 4, generator=rng) + 0.5


def random_recipe(rng, kinds, steps):
    """Draw a recipe each of whose steps takes the result before, so that all of it is reached."""
    recipe = []
    for step in range(steps):
        kind = draw_one(rng, kinds)
        last = LEAVES + step - 1 if step else draw_int(rng, 0, 1)
        other = draw_int(rng, 0, LEAVES + step - 1)
        recipe.append((kind, last, other) if kind in ("mul", "add", "matmul") else (kind, last))
    return recipe


def expected(recipe, numbers):
    """Return counts, leaves and saved bytes: what a hook saw being saved, and a walk by recursion."""
    with watch_saved() as saved:
        output, leaves = build_graph(recipe, numbers)
    names, reached = {}, set()

    def visit(node):
        if node is None or node in names:
            return
        names[node] = node.name()
        reached.update(at for at, leaf in leaves.items() if getattr(node, "variable", None) is leaf)
        for after, _ in node.next_functions:
            visit(after)

    visit(output.grad_fn)
    counts = {name: list(names.values()).count(name) for name in names.values()}
    return counts, sorted(reached), saved.bytes


def compare(reported, recipe, numbers):
    got = reported.ask(recipe, numbers).value
    counts, leaves, saved = expected(recipe, numbers)
    output = name_of(LEAVES + len(recipe) - 1, LEAVES)
    with about(("program", f"{as_text(recipe, numbers)}\ngraph_report({output})")):
        assert_equal(got["nodes"], counts, f"The nodes of the graph of `{output}`.")
        assert_holds(all(got["leaves"]), "`leaves` holds what is no leaf of this graph.")
        found = sorted(name_of(one, LEAVES) for (one,) in got["leaves"])
        listed = [name_of(at, LEAVES) for at in leaves]
        assert_equal(found, listed, f"The leaves of the graph of `{output}`, sorted.")
        assert_equal(got["saved_bytes"], saved, f"The bytes that the graph of `{output}` saves.")


@gate
def test_three_keys(reported):
    """Returns a dict with `nodes`, `leaves` and `saved_bytes`."""
    got = reported.value
    if not all((got["nodes"], got["leaves"], got["saved_bytes"])):
        raise Mismatch(
            "A part of the report of `(a * b).sigmoid()` is empty.", (("got", repr(got)),)
        )


def several(reported, rng, numbers, kinds):
    for steps in (1, 1, 2, 2, 3, 4, 6, 9):
        compare(reported, random_recipe(rng, kinds, steps), numbers)


@points(3)
def test_nodes(reported, rng, numbers):
    """Nodes by name, each once, and leaves, each once, where roads part and meet again."""
    compare(reported, [("double", 0), ("add", 4, 4), ("add", 5, 0), ("add", 6, 4)], numbers)
    several(reported, rng, numbers, ["add", "double", "sum"])


def test_saved(reported, rng, numbers):
    """Saved bytes of products, exponentials and sigmoids; a tensor saved twice counts once."""
    compare(reported, [("mul", 0, 0), ("mul", 4, 4), ("mul", 5, 4)], numbers)
    several(reported, rng, numbers, ["mul", "exp", "sigmoid", "matmul"])


def test_saved_views(reported, rng, numbers):
    """Slices, transposes and expanded tensors count as the storage that they keep alive."""
    compare(reported, [("rows", 0)], numbers)
    compare(reported, [("expand", 0), ("mul", 4, 1)], numbers)
    compare(reported, [("sigmoid", 0), ("expand", 4), ("mul", 5, 4), ("mul", 6, 5)], numbers)
    several(reported, rng, numbers, ["mul", "sigmoid", "expand", "slice", "view", "rows", "one_of"])


def test_saved_in_tuples(reported, rng, numbers):
    """Nodes that save lists of tensors, and nodes of a custom Function."""
    compare(reported, [("index", 0)], numbers)
    compare(reported, [("cubed", 0), ("cubed", 4)], numbers)
    several(reported, rng, numbers, ["index", "cubed", "norm", "max", "chunk", "detach"])


def test_deep(reported, numbers):
    """3,000 nodes in a row, and two roads from each to the next."""
    deep = [("double", 0), *[("double", LEAVES + step) for step in range(2999)]]
    got = reported.ask(deep, numbers).value
    program = (
        "a = h = torch.rand(4, 4, requires_grad=True)\n"
        "for _ in range(3000):\n    h = h + h\ngraph_report(h)"
    )
    with about(("program", program)):
        nodes = {"AddBackward0": 3000, ACCUMULATE: 1}
        assert_equal(got["nodes"], nodes, "The nodes of the graph of `h`.")
        assert_equal(len(got["leaves"]), 1, "How many leaves.")
        assert_equal(
            got["saved_bytes"], 0, "The bytes that the graph of `h` saves: sums need none."
        )


def test_not_recorded(reported, numbers):
    """A result that was not recorded has an empty report."""
    got = reported.ask([("mul", 2, 2)], numbers).value
    program = "c = torch.rand(4, 4)  # requires no grad\ngraph_report(c * c)"
    with about(("program", program)):
        assert_equal(got, {"nodes": {}, "leaves": [], "saved_bytes": 0}, "The report.")


def test_leaves_the_graph_alone(report_left, recipe, numbers):
    """Backward works after the report, no `.grad` was touched, and the graph goes with its result."""
    for one in (recipe, [("cubed", 0), ("exp", 4), ("mul", 5, 1), ("index", 6)]):
        got = report_left.ask(one, numbers).value
        output = name_of(LEAVES + len(one) - 1, LEAVES)
        with about(("program", f"{as_text(one, numbers)}\ngraph_report({output})")):
            nodes = expected(one, numbers)[0]
            assert_equal(got["nodes"], nodes, f"The nodes of the graph of `{output}`.")
            assert_holds(got["untouched"], "Your report changed a leaf's `.grad`.")
            what = f"After `del {output}` something still keeps the graph alive."
            assert_holds(not got["graph is alive"], what)
