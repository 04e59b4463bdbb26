"""Checks of `replace_linears`: what is replaced, under which names, and what is left alone."""

import pytest
import torch

from grader import (
    Mismatch,
    about,
    assert_close,
    assert_equal,
    assert_holds,
    compared,
    gate,
    points,
    python_random,
)
from grader.ch04_modules.graphs import first_difference, random_graph, tree, written
from grader.ch04_modules.probes.surgery import WRITTEN

COUNT = 40
LINEAR = ("linear", "own")


@pytest.fixture
def random(rng):
    return python_random(rng)


def expected_of(graph, kinds):
    """Return the calls of `wrap` and every name afterwards, from the graph alone."""
    calls, numbers, names = [], {}, []
    seen = set()

    def first(path, number):
        if number in seen:
            return
        seen.add(number)
        if kinds[number] in LINEAR:
            numbers[number] = len(calls)
            calls.append((path, number))
            return
        for name, child in graph["modules"][number]["children"]:
            if child is not None:
                first(f"{path}.{name}" if path else name, child)

    def every(path, number, wrapped=False):
        if kinds[number] in LINEAR and not wrapped:
            names.append((path, f"wrapper {numbers[number]}"))
            every(f"{path}.inner" if path else "inner", number, wrapped=True)
            return
        names.append((path, f"module {number}"))
        for name, child in graph["modules"][number]["children"]:
            if child is not None:
                every(f"{path}.{name}" if path else name, child, wrapped)

    first("", 0)
    every("", 0)
    return calls, names


def compare(replaced, graph, kinds):
    """Compare what stands where afterwards, what `wrap` was called with, and what came back."""
    got = replaced.ask(graph, kinds, -1).value
    calls, names = expected_of(graph, kinds)
    found = [tuple(pair) for pair in got["names"]], [tuple(one) for one in got["calls"]]
    compared((*found, got["result"]))
    rows = (("model", model_of(graph, kinds)), ("call", "replace_linears(m[0], wrap)"))
    if found[0] != names:
        differ = first_difference(
            *([f"{path!r}: {what}" for path, what in n] for n in (names, found[0]))
        )
        what = "Afterwards the model holds other modules, or in another order."
        raise Mismatch(what, (*rows, *differ))
    if found[1] != calls:
        differ = first_difference(
            *([f"wrap({path!r}, m[{n}])" for path, n in c] for c in (calls, found[1]))
        )
        raise Mismatch("`wrap` was called otherwise.", (*rows, *differ))
    with about(*rows):
        assert_equal(got["result"], names[0][1], "The result is not the model, or its wrapper.")


def model_of(graph, kinds):
    """Return the code that builds the model, and what its odd classes are."""
    odd = {"own": "class Own(nn.Linear): …", "called linear": "class LinearLike(nn.Module): …"}
    classes = [line for kind, line in odd.items() if kind in kinds]
    return "\n".join([*classes, written(graph, [WRITTEN[kind] for kind in kinds])])


def kinds_for(random, graph, leaves):
    """Return a kind for each module: a container, or one of `leaves` where it has no children."""
    inner = [bool(module["children"]) for module in graph["modules"]]
    return ["module" if one or not n else random.choice(leaves) for n, one in enumerate(inner)]


@gate
def test_one_layer(replaced):
    """A layer in a model is replaced, and the model comes back."""
    compare(replaced, tree([("a", 1)], []), ["module", "linear"])


def test_trees(replaced, random):
    """Every linear layer of a tree, at any depth; all else stays where and what it is."""
    for _ in range(COUNT):
        graph = random_graph(random, shared=False)
        compare(replaced, graph, kinds_for(random, graph, ("linear", "linear", "module")))


@points(3)
def test_shared(replaced, random):
    """A layer with several names is wrapped once, with its first name, and replaced everywhere."""
    for _ in range(COUNT):
        graph = random_graph(random)
        compare(replaced, graph, kinds_for(random, graph, ("linear", "linear", "module")))
    twice = tree([("a", 1), ("b", 1), ("c", 2)], [], [("d", 1)])
    compare(replaced, twice, ["module", "linear", "module"])


def test_root(replaced):
    """A model that is itself a linear layer: its wrapper comes back."""
    for kind in LINEAR:
        compare(replaced, tree([]), [kind])


def test_kinds(replaced, random):
    """Subclasses count; layers with a similar name do not."""
    compare(replaced, tree([("a", 1), ("b", 2)], [], []), ["module", "bilinear", "linear"])
    compare(replaced, tree([("a", 1), ("b", 2)], [], []), ["module", "called linear", "linear"])
    for _ in range(COUNT):
        graph = random_graph(random, none=False)
        compare(replaced, graph, kinds_for(random, graph, ("own", "linear", "bilinear")))


def test_inside(replaced):
    """What a linear layer holds is left alone."""
    held = tree([("a", 1), ("c", 3)], [("inner", 2), ("other", 4)], [], [], [("deep", 5)], [])
    compare(replaced, held, ["module", "own", "linear", "linear", "module", "linear"])
    compare(replaced, tree([("a", 1)], []), ["own", "linear"])


def test_error(replaced, random):
    """An error of `wrap` reaches the caller, and the model is as it was."""
    graph = tree([("a", 1), ("b", 2)], [("c", 3), ("d", 4)], [], [], [])
    kinds = ["module", "module", "linear", "linear", "linear"]
    before = [
        (name, f"module {n}")
        for name, n in zip(["", "a", "a.c", "a.d", "b"], [0, 1, 3, 4, 2], strict=True)
    ]
    for number in range(3):
        got = replaced.ask(graph, kinds, number).value
        error = got["error"] or "no error"
        wrap = ("wrap", f"raises a LookupError at call number {number}, counted from 0")
        with about(("model", model_of(graph, kinds)), wrap):
            assert_equal(error, "LookupError", "The error did not reach the caller.")
            found = [tuple(pair) for pair in got["names"]]
            compared(found)
            if found != before:
                words = ([f"{path!r}: {what}" for path, what in n] for n in (before, found))
                raise Mismatch("After the error the model has changed.", first_difference(*words))
    compare(replaced, graph, kinds)


def test_forward(replaced_forward, rng):
    """A model with skip connections computes with the wrappers, and has the same parameters."""
    got = replaced_forward.ask(torch.randn(3, 2, generator=rng)).value
    assert_equal(got["bare"], [], "These names still lead to a layer that was not replaced.")
    assert_holds(got["same"], "The two names of one layer lead to two wrappers.")
    assert_equal(got["parameters"], 6, "The number of parameters has changed.")
    assert_close(got["got"], got["expected"], rtol=1e-4, atol=1e-4, because="order of float sums")
