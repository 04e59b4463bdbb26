"""Checks of `offloading`: gradients, and which files are there, how large, and how long."""

import pytest
import torch
from torch.autograd.graph import saved_tensors_hooks

from grader import (
    Mismatch,
    about,
    assert_close,
    assert_equal,
    assert_holds,
    claimed,
    compared,
    points,
)
from grader.ch05_autograd.probes.offloads import as_text, compute

ROUNDING = "the same operations in float64, on tensors of another layout"
AT_LEAST = 1000
MANY = ["product", "rows", "mask", "half", "index", "constant", "row", "square", "product"]
HEADER = 4096
FILES = "How many files there are at the end of the `with`."


@pytest.fixture
def kinds():
    return ["product", "square"]


@pytest.fixture
def x(rng):
    return torch.randn(32, 32, generator=rng, dtype=torch.float64)


@pytest.fixture
def w(rng):
    return torch.randn(32, 32, generator=rng, dtype=torch.float64) / 6


@pytest.fixture
def at_least():
    return AT_LEAST


@pytest.fixture
def turns():
    return 1


@pytest.fixture
def inside():
    return False


def expected(kinds, x, w, at_least, turns=1):
    """Return gradients, and the bytes of own elements of each tensor that has to be moved."""
    x, w = x.clone().requires_grad_(), w.clone().requires_grad_()
    moved = []

    def pack(tensor):
        large = tensor.untyped_storage().nbytes() >= at_least
        if large and not (tensor.is_leaf and tensor.requires_grad):
            moved.append(tensor.numel() * tensor.element_size())
        return tensor

    with saved_tensors_hooks(pack, lambda tensor: tensor):
        total = compute(kinds, x, w, [])
    for _ in range(turns):
        total.backward(retain_graph=True)
    return [x.grad, w.grad], sorted(moved)


def compare(offloaded, kinds, x, w, at_least, turns=1, inside=False):
    got = offloaded.ask(kinds, x, w, at_least, turns, inside).value
    program = as_text(kinds, at_least)
    if turns != 1 or inside:
        program += f"\n{'    ' * inside}total.backward()  # {turns} times, with retain_graph=True"
    with about(("program", program)):
        what = "What is computed in the `with` is not recorded: its result does not require grad."
        assert_holds(got["recorded"], what)
        grads, moved = expected(kinds, x, w, at_least, turns)
        for name, mine, theirs in zip("xw", got["grads"], grads, strict=True):
            if theirs is None:
                assert_holds(mine is None, f"`{name}` has a gradient, and is not used.")
            else:
                close(mine, theirs, f"The gradient of `{name}`")
    return got, moved


def close(mine, theirs, what):
    with about(of=f"{what}: "):
        assert_close(mine, theirs, rtol=1e-10, atol=1e-12, because=ROUNDING)


def test_a_context_manager(offloaded, kinds, x, w):
    """Backward after a `with offloading(folder, at_least)` gives the gradients of a plain run."""
    compare(offloaded, kinds, x, w, AT_LEAST)


def test_which_tensors(offloaded, x, w):
    """One file for each saved tensor of a large storage, none for parameters and small ones."""
    for kinds in (["product"], ["square", "row"], ["rows"], ["constant", "mask"], MANY):
        for at_least in (AT_LEAST, 8192, 8193):
            got, moved = compare(offloaded, kinds, x, w, at_least)
            with about(("program", as_text(kinds, at_least))):
                assert_equal(got["files"][0], len(moved), FILES)


def test_dtypes_and_turns(offloaded, x, w):
    """Any dtype and layout; backward in the `with` or after it, once or several times."""
    for kinds in (["half"], ["mask", "index"], MANY):
        for turns in (1, 3):
            for inside in (True, False):
                compare(offloaded, kinds, x, w, AT_LEAST, turns, inside)


def test_sizes(offloaded, offloaded_misfit, x, w):
    """A file holds the tensor's own elements, and at most 4096 bytes beside them."""
    for kinds in (["rows"], ["rows", "square", "half"]):
        got, moved = compare(offloaded, kinds, x, w, AT_LEAST)
        with about(("program", as_text(kinds, AT_LEAST))):
            assert_equal(got["files"][0], len(moved), FILES)
            misfit = offloaded_misfit.ask(kinds, x, w, AT_LEAST, moved, HEADER).value
            if misfit is not None:
                compared(misfit)
                own, size = misfit
                raise Mismatch(
                    f"A file is too {'large' if size > own else 'small'}.",
                    (("the tensor's elements", f"{own} bytes"), ("the file", f"{size} bytes")),
                )


def test_files_go(offloaded, offloaded_after_error, x, w):
    """Files are there until the graph is gone; others stay; after the `with` none is written."""
    # small results that nodes save themselves come before and after large ones
    cases = [(turns, kinds) for turns in (0, 1, 2) for kinds in (["rows", "product"], MANY)]
    found = [offloaded.ask(kinds, x, w, AT_LEAST, turns, False).value for turns, kinds in cases]
    compared([got["left"] for got in found])
    for (turns, kinds), got in zip(cases, found, strict=True):
        count = len(expected(kinds, x, w, AT_LEAST)[1])
        with about(("program", as_text(kinds, AT_LEAST))):
            for when, there in zip(
                ("at the end of the `with`", "after it"), got["files"], strict=True
            ):
                assert_equal(there, count, f"How many files there are {when}.")
            after = f"after {turns} backward passes" if turns else "without a backward"
            what = f"How many files are left when the graph is gone, {after}."
            assert_equal(got["left"], 0, what)
        what = "The content of a file of another program, `notes.txt`."
        assert_equal(got["others"], "somebody else's", what)
        assert_holds(got["outside"], "A graph that was made after the `with` is not as usual.")
    got = offloaded_after_error.ask(x, AT_LEAST).value
    what = "The body raised a KeyError. What came out of the `with`:"
    assert_equal(got["came"], "KeyError", what)
    what = "How many files there are of a graph made after a `with` whose body raised."
    assert_equal(got["files"], 0, what)


def test_two_at_once(offloaded_twice, x, w):
    """Two graphs in one folder: neither takes the other's files."""
    kinds = ["product", "mask", "square"]
    got = offloaded_twice.ask(kinds, x, w, AT_LEAST).value
    one, moved = expected(kinds, x, w, AT_LEAST)
    two, _ = expected(kinds, 2 * x, w, AT_LEAST)
    program = as_text(kinds, AT_LEAST)
    steps = "the same twice, then `backward` and `del` of the first total, then of the second"
    with about(("program", program), ("and", steps)):
        for name, mine, theirs in zip(
            ("x` of the first", "w` of the first", "x` of the second", "w` of the second"),
            got["grads"],
            [*one, *two],
            strict=True,
        ):
            close(mine, theirs, f"The gradient of `{name}")
        count = len(moved)
        what = "How many files there are after each of the four steps."
        assert_equal(got["counts"], [count, 2 * count, count, 0], what)


@claimed
@points(4)
def test_memory(offloaded, offloaded_kept, x, w):
    """Before a backward, and after one that keeps the graph, no large saved tensor is in memory."""
    for kinds in (["product", "square"], ["square", "rows", "mask"]):
        got, _ = compare(offloaded, kinds, x, w, AT_LEAST)
        with about(("program", as_text(kinds, AT_LEAST))):
            what = "How many of the large tensors computed inside are in memory at the end of the `with`."
            assert_equal(got["alive"], 0, what)
    kinds = ["product", "square"]
    got = offloaded_kept.ask(kinds, x, w, AT_LEAST).value
    program = f"{as_text(kinds, AT_LEAST)}\ntotal.backward(retain_graph=True)"
    with about(("program", program)):
        what = "How many more large tensors are in memory after that backward than before it."
        assert_equal(got, 0, what)
