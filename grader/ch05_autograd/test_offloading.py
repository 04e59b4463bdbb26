"""Checks of `offloading`: gradients, and which files are there, how large, and how long."""

import pytest
import torch
from torch.autograd.graph import saved_tensors_hooks

from grader import Mismatch, assert_close, assert_equal, assert_holds, claimed, gate
from grader.ch05_autograd.probes.offloads import compute

ROUNDING = "the same operations in float64, on tensors of another layout"
AT_LEAST = 1000
MANY = ["product", "rows", "mask", "half", "index", "constant", "row", "square", "product"]
HEADER = 4096


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
    what = "What is computed in the `with` is not recorded: its result does not require grad."
    assert_holds(got["recorded"], what)
    grads, moved = expected(kinds, x, w, at_least, turns)
    for mine, theirs in zip(got["grads"], grads, strict=True):
        if theirs is None:
            assert_holds(mine is None, f"A parameter that {kinds} do not use has a gradient.")
        else:
            assert_close(mine, theirs, rtol=1e-10, atol=1e-12, because=ROUNDING)
    return got, moved


@gate
def test_a_context_manager(offloaded, kinds, x, w):
    """Backward after a `with offloading(folder, at_least)` gives the gradients of a plain run."""
    compare(offloaded, kinds, x, w, AT_LEAST)


def test_which_tensors(offloaded, x, w):
    """One file for each saved tensor of a large storage, none for parameters and small ones."""
    for kinds in (["product"], ["square", "row"], ["rows"], ["constant", "mask"], MANY):
        for at_least in (AT_LEAST, 8192, 8193):
            got, moved = compare(offloaded, kinds, x, w, at_least)
            what = f"How many files there are after {kinds}, from {at_least} bytes on."
            assert_equal(len(got["files"][0]), len(moved), what)


def test_dtypes_and_turns(offloaded, x, w):
    """Any dtype and layout; backward in the `with` or after it, once or several times."""
    for kinds in (["half"], ["mask", "index"], MANY):
        for turns in (1, 3):
            for inside in (True, False):
                compare(offloaded, kinds, x, w, AT_LEAST, turns, inside)


def test_sizes(offloaded, x, w):
    """A file holds the tensor's own elements, and at most 4096 bytes beside them."""
    for kinds in (["rows"], ["rows", "square", "half"]):
        got, moved = compare(offloaded, kinds, x, w, AT_LEAST)
        sizes = got["files"][0]
        assert_equal(len(sizes), len(moved), f"How many files there are after {kinds}.")
        for size, own in zip(sizes, moved, strict=True):
            if not own <= size <= own + HEADER:
                raise Mismatch(
                    f"A file is too large or too small (after {kinds}).",
                    (("elements", f"{own} bytes"), ("file", f"{size} bytes")),
                )


def test_files_go(offloaded, offloaded_after_error, x, w):
    """Files are there until the graph is gone; others stay; after the `with` none is written."""
    for turns in (0, 1, 2):
        for kinds in (["product", "rows"], MANY):
            got = offloaded.ask(kinds, x, w, AT_LEAST, turns, False).value
            count = len(expected(kinds, x, w, AT_LEAST)[1])
            assert_equal(
                [len(sizes) for sizes in got["files"]],
                [count, count],
                "Files inside of the `with`, and after it.",
            )
            assert_equal(got["left"], [], f"Files after the graph is gone ({turns} backward).")
            assert_equal(got["others"], "somebody else's", "A file that was there before.")
            assert_holds(got["outside"], "A graph that was made after the `with` is not as usual.")
    got = offloaded_after_error.ask(x, AT_LEAST).value
    assert_equal(
        got["came"], "KeyError", "The body raised a KeyError. What came out of the `with`."
    )
    assert_equal(got["files"], [], "Files of a graph made after a `with` whose body raised.")


def test_two_at_once(offloaded_twice, x, w):
    """Two graphs in one folder: neither takes the other's files."""
    kinds = ["product", "mask", "square"]
    got = offloaded_twice.ask(kinds, x, w, AT_LEAST).value
    one, moved = expected(kinds, x, w, AT_LEAST)
    two, _ = expected(kinds, 2 * x, w, AT_LEAST)
    for mine, theirs in zip(got["grads"], [*one, *two], strict=True):
        assert_close(mine, theirs, rtol=1e-10, atol=1e-12, because=ROUNDING)
    count = len(moved)
    assert_equal(got["counts"], [count, 2 * count, count, 0], "Files after each step.")


@claimed
def test_memory(offloaded, x, w):
    """Between forward and backward no large tensor that was computed inside is in memory."""
    for kinds in (["product", "square"], ["square", "rows", "mask"]):
        got, _ = compare(offloaded, kinds, x, w, AT_LEAST)
        assert_equal(got["alive"], 0, f"Large tensors that are alive after {kinds}.")
