"""Checks of `named_modules`: trees, shared modules, every path, the memo, and how far it looks."""

import pytest

from grader import (
    Mismatch,
    about,
    assert_equal,
    assert_holds,
    compared,
    gate,
    points,
    python_random,
)
from grader.ch04_modules.graphs import first_difference, modules_of, random_graph, tree, written

COUNT = 24


@pytest.fixture
def random(rng):
    return python_random(rng)


def compare(walked, graphs, memo=None, **options):
    """Compare graph by graph; of those that differ the one with the shortest walk is shown."""
    got = walked.ask(graphs, options, memo).value
    due = [modules_of(graph, memo, **options) for graph in graphs]
    compared(got, due)
    wrong = [
        (len(expected[0]), graph, expected, found)
        for graph, expected, found in zip(graphs, due, got, strict=True)
        if expected != tuple(found)
    ]
    if wrong:
        _, graph, (pairs, after), (found, memo_found) = min(wrong, key=lambda one: one[0])
        rows = [("model", written(graph)), ("call", call(memo, options))]
        if pairs != found:
            rows += first_difference(_names(pairs), _names(found))
        else:
            rows += [("memo expected", _memo(after)), ("memo got", _memo(memo_found))]
        what = f"{len(wrong)} of {len(graphs)} models differ. The smallest:"
        raise Mismatch(what, tuple(rows))


def call(memo, options):
    """Return the call as one writes it."""
    named = [] if memo is None else [f"memo={_memo(memo)}"]
    named += [f"{name}={value!r}" for name, value in options.items()]
    return f"list(named_modules({', '.join(['m[0]', *named])}))"


def _memo(numbers):
    return f"{{{', '.join(f'm[{n}]' for n in numbers)}}}" if numbers else "set()"


def _names(pairs):
    return [f"({name!r}, m[{module}])" for name, module in pairs]


@gate
def test_itself_first(walked):
    """A module without children gives one pair: its prefix and itself."""
    for prefix in ("", "a"):
        got = walked.ask([tree([])], {"prefix": prefix}, None).value
        said = f"list(named_modules(nn.Module(), prefix={prefix!r})), the module as 0."
        assert_equal(got[0][0], [(prefix, 0)], said)


def test_trees(walked, random):
    """In a tree: depth first, in the order of registration, with dotted names."""
    compare(walked, [random_graph(random, shared=False, none=False) for _ in range(COUNT)])


def test_none(walked, walked_containers, random):
    """Entries that are `None` are passed over, and no others."""
    compare(walked, [tree([("0", None), ("1", 1)], [("a", None)])])
    compare(walked, [random_graph(random, shared=False) for _ in range(COUNT)])
    names = ["", "empty", "block", "block.waiting", "last"]
    assert_equal(walked_containers.value, names, "A container that holds nothing is a module, too.")


@points(3)
def test_shared_once(walked, random):
    """A module with several names comes once, under the first; also if it contains itself."""
    compare(walked, [random_graph(random, none=False) for _ in range(COUNT)])
    compare(walked, [tree([("a", 1)], [("b", 2), ("up", 0)], [("self", 2), ("up", 0)])])


def test_every_path(walked, random):
    """With `remove_duplicate=False` a shared module comes under each of its names."""
    graphs = [random_graph(random, none=False) for _ in range(COUNT)]
    compare(walked, graphs, remove_duplicate=False)


def test_prefix(walked, random):
    """Names begin with the prefix, whatever it is."""
    graphs = [random_graph(random, shared=False, none=False) for _ in range(20)]
    for prefix in ("net", "a.b", "0"):
        compare(walked, graphs, prefix=prefix)


def test_memo(walked, walked_twice, random):
    """What is in `memo` is passed over with all below it; what is found goes into it, or not."""
    graphs = [random_graph(random, none=False) for _ in range(12)]
    for memo in ([1, 2], [0], [], [3]):
        compare(walked, graphs, memo)
        compare(walked, graphs, memo, remove_duplicate=False)
    two = walked_twice.ask(tree([("a", 1)], [])).value
    assert_equal(two, [[("", 0), ("a", 1)]] * 2, "A second walk over the same model differs.")


def test_lazy(walked_at_first, walked):
    """Whoever stops early has not paid for the rest, even where there is no end."""
    chain = tree(*([("next", number + 1)] for number in range(50)), [])
    got = walked_at_first.ask(chain, {}, 3).value
    said = "The first three pairs of a chain of modules, each as its name and number."
    assert_equal(got["pairs"], [("", 0), ("next", 1), ("next.next", 2)], said)
    assert_holds(got["looked into"] <= 4, "The walk went on after the third pair.")
    endless = tree([("me", 0), ("other", 1)], [])
    got = walked_at_first.ask(endless, {"remove_duplicate": False}, 5).value
    with about(
        ("model", written(endless)), ("call", "named_modules(m[0], remove_duplicate=False)")
    ):
        said = "The first five pairs, each as its name and the module's number."
        assert_equal(got["pairs"], [(".".join(["me"] * depth), 0) for depth in range(5)], said)
    # a walk that ends for good, so that this check stands on something that was found
    compare(walked, [chain])
