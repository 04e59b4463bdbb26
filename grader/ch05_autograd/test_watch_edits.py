"""Checks of `watch_edits`: edits by every road, and what the words for them must be."""

import re

import pytest
import torch

from grader import about, assert_equal, assert_holds, compared, gate, points
from grader.ch05_autograd.probes.edits import EDITS

COUNTED = ["add_", "add_ zero", "view", "detach", "foreach", "both"]
SILENT = ["data", "storage"]
SMALL = ["data, one element", "data, swapped", "data, minus zero"]
SWAPPED = ["other memory", "other shape", "other dtype"]


@pytest.fixture
def values(rng):
    return torch.rand(3, 4, generator=rng) + 1


@pytest.fixture
def edits():
    return ["add_", "nothing"]


def compare(edited, rng, edits, word, fill=None):
    """Ask of each edit beside a tensor that nothing happens to, in either order."""
    values = torch.rand(3, 4, generator=rng) + 1
    if fill is not None:
        values[1, 1], values[2, 0] = fill, 0.0
    orders = [order for edit in edits for order in ([edit, "nothing"], ["nothing", edit, edit])]
    found = [edited.ask([values] * len(order), order).value for order in orders]
    compared([got["words"] for got in found])
    for order, got in zip(orders, found, strict=True):
        expected = ["unchanged" if one == "nothing" else word for one in order]
        with about(("program", as_text(order))):
            assert_equal(got["words"], expected, "The words.")
            assert_equal(len(got["calls"]), 1, "How often `run` was called.")


def as_text(order):
    """Return the call for tensors of which each is edited in its way, as a program."""
    names = "tuvw"[: len(order)]
    lines = [re.sub(r"\bt\b", name, EDITS[edit]) for name, edit in zip(names, order, strict=True)]
    body = "".join(f"        {line}\n" for line in lines)
    return f"def run():\n    with torch.no_grad():\n{body}watch_edits([{', '.join(names)}], run)"


@gate
def test_a_word_each(edited, values, edits):
    """Returns one of three words for each tensor."""
    got = edited.ask([values, values], edits).value["words"]
    assert_holds(isinstance(got, list), "What is returned is no list.", ("got", repr(got)))
    assert_equal(len(got), 2, "How many words, for two tensors.")
    known = all(word in ("counted", "silent", "unchanged") for word in got)
    assert_holds(known, "A word is none of the three.", ("got", repr(got)))


def test_counted(edited, rng):
    """Edits that move the counter: in place, through a view, through `detach`, adding zero too."""
    compare(edited, rng, COUNTED, "counted")


@points(3)
def test_silent(edited, rng):
    """Edits that do not: through `.data` and through the storage."""
    compare(edited, rng, SILENT, "silent")


def test_small_edits(edited, rng):
    """One bit of one element, two elements that change places, 0.0 that becomes -0.0, a NaN another."""
    compare(edited, rng, SMALL, "silent", fill=2.0)
    compare(edited, rng, ["data, another NaN"], "silent", fill=torch.nan)


def test_other_content(edited, rng):
    """Another memory, another shape, another dtype."""
    compare(edited, rng, SWAPPED, "silent")


def test_unchanged(edited, rng):
    """Tensors that were only read or are what they were, NaN included; no counter was moved by you."""
    compare(edited, rng, ["read", "data, back again"], "unchanged", fill=torch.nan)
    values = torch.full((3, 4), torch.nan)
    got = edited.ask([values, values], ["nothing", "read"]).value
    with about(("program", as_text(["nothing", "read"])), ("tensors", "full of NaN")):
        assert_equal(got["words"], ["unchanged"] * 2, "The words.")
        assert_equal(got["versions"], [0, 0], "`_version` of the tensors afterwards.")
    got = edited.ask([values, values[:0]], ["data", "nothing"]).value
    assert_equal(got["calls"], [True], "Grad mode when `run` is called: it was on for your caller.")


RELATED = {
    "`whole`, of which `run` changes an element": "counted",
    "`whole[1:]`": "counted",
    "`whole.detach()`": "counted",
    "`whole.data`, which has a counter of its own": "silent",
    "`whole.t()`": "counted",
    "another tensor's row, expanded": "unchanged",
    "a leaf that requires grad, changed through `.data`": "silent",
    "an empty tensor": "unchanged",
    "a boolean tensor, changed through `.data`": "silent",
    "`around[:1]`, where `run` changes `around.data[1:]`": "unchanged",
}
"""Tensors of one memory and other special ones, in the order of the probe, and their words."""


def test_related(edited_related, edited_in_inference, edits_that_raise, values):
    """Views, leaves, expanded, empty, boolean, inference tensors; an error of `run` comes out."""
    got = edited_related.ask(values).value
    assert_equal(len(got["words"]), len(RELATED), "How many words.")
    compared(got["words"])
    for word, (tensor, expected) in zip(got["words"], RELATED.items(), strict=True):
        assert_equal(word, expected, f"The word for {tensor}.")
    flags = [name for name, flag in zip(RELATED, got["flags"], strict=True) if flag]
    leaf = [name for name in RELATED if name.startswith("a leaf")]
    assert_equal(flags, leaf, "The tensors that require grad afterwards.")
    words = edited_in_inference.ask(values).value
    what = "The words for two inference tensors, the second changed through its storage."
    assert_equal(words, ["unchanged", "silent"], what)
    what = "The words of the error that comes out where `run` raises."
    assert_equal(edits_that_raise.ask(values).value, "run's own", what)
