"""Checks of `watch_edits`: edits by every road, and what the words for them must be."""

import pytest
import torch

from grader import assert_equal, assert_holds, gate

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
    for edit in edits:
        for order in ([edit, "nothing"], ["nothing", edit, edit]):
            got = edited.ask([values] * len(order), order).value
            expected = ["unchanged" if one == "nothing" else word for one in order]
            assert_equal(got["words"], expected, f"The words for the edits {order}.")
            assert_equal(len(got["calls"]), 1, "How often `run` was called.")
    return values


@gate
def test_a_word_each(edited, values, edits):
    """Returns one of three words for each tensor."""
    got = edited.ask([values, values], edits).value["words"]
    assert_equal(isinstance(got, list) and len(got), 2, "How many words, in a list.")
    known = all(word in ("counted", "silent", "unchanged") for word in got)
    assert_holds(known, "A word is none of the three.", ("got", repr(got)))


def test_counted(edited, rng):
    """Edits that move the counter: in place, through a view, through `detach`, adding zero too."""
    compare(edited, rng, COUNTED, "counted")


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
    assert_equal(got["words"], ["unchanged"] * 2, "The words for NaN that were only read.")
    assert_equal(got["versions"], [0, 0], "Version counters afterwards.")
    got = edited.ask([values, values[:0]], ["data", "nothing"]).value
    assert_equal(got["calls"], [True], "Grad mode at each call of `run`.")


def test_related(edited_related, edited_in_inference, edits_that_raise, values):
    """Views, leaves, expanded, empty, boolean, inference tensors; an error of `run` comes out."""
    got = edited_related.ask(values).value
    # whole, slice, detached, data (a counter of its own, and changed content), transposed, another
    expected = ["counted", "counted", "counted", "silent", "counted", "unchanged"]
    expected += ["silent", "unchanged", "silent", "unchanged"]
    what = (
        "A tensor, its views, .data; a leaf, empty, boolean, and a slice beside which is an edit."
    )
    assert_equal(got["words"], expected, what)
    flags = [False] * 6 + [True, False, False, False]
    assert_equal(got["flags"], flags, "Which require grad afterwards.")
    words = edited_in_inference.ask(values).value
    assert_equal(words, ["unchanged", "silent"], "Two inference tensors, the second changed.")
    assert_equal(edits_that_raise.ask(values).value, "run's own", "The error that `run` raised.")
