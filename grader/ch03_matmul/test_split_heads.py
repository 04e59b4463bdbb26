"""Checks of `split_heads` and `merge_heads`: values, and whose bytes they are."""

import torch

from grader import (
    about,
    assert_equal,
    assert_holds,
    assert_raises,
    assert_tensor,
    claimed,
    facts,
    gate,
    points,
)
from grader.ch03_matmul.operands import assert_exact, labelled, shown


def layouts(rng):
    """Inputs (..., seq, hidden) with the number of heads to split them into."""
    big = labelled(rng, 4, 7, 24)
    return {
        "contiguous": (big, 4),
        "two dimensions": (big[0], 3),
        "five dimensions": (big.unflatten(0, (2, 1, 2)), 2),
        "an offset": (big[1:, 2:, 4:16], 6),
        "a step in hidden": (big[..., ::2], 4),
        "sequence first": (big.transpose(0, 1), 8),
        "hidden first": (big.transpose(1, 2), 7),
        "expanded": (big[:, :1].expand(4, 5, 24), 4),
        "one head": (big, 1),
        "heads of one": (big, 24),
        "an empty batch": (big[:0], 4),
        "whole numbers": (torch.arange(48, dtype=torch.int16).reshape(2, 3, 8), 2),
    }


def called(name, x, heads):
    """Return the rows that say what was split."""
    return ("call", f"split_heads(x, {heads})"), (f"x, {name}", shown(x))


def by_head(x, heads):
    return x.reshape(*x.shape[:-1], heads, x.shape[-1] // heads).transpose(-3, -2)


@gate
def test_shapes(heads_split, heads_there_and_back, rng):
    """Shapes are right, there and back."""
    x, heads = layouts(rng)["contiguous"]
    assert_tensor(heads_split.ask(x, heads).value, dtype=x.dtype, shape=by_head(x, heads).shape)
    assert_tensor(heads_there_and_back.ask(x, heads).value, dtype=x.dtype, shape=x.shape)


def test_split(heads_split, rng):
    """Head `h` holds the numbers from `h * size` on, of every position."""
    for name, (x, heads) in layouts(rng).items():
        with about(*called(name, x, heads)):
            assert_exact(heads_split.ask(x, heads).value, by_head(x, heads))


@points(2)
def test_split_is_a_view(heads_split, rng):
    """Splitting copies nothing, whatever the layout."""
    for name, (x, heads) in layouts(rng).items():
        with about(*called(name, x, heads)):
            got = heads_split.ask(x, heads).value
            assert_exact(got, by_head(x, heads))
            if x.numel():
                shared = facts(got).aliases is not None
                assert_holds(shared, "The result has a storage of its own.")


def test_merge(heads_merged, rng):
    """Merging puts each position's heads side by side, in order."""
    for x, heads in layouts(rng).values():
        dense = by_head(x, heads).contiguous()
        with about(("call", "merge_heads(y)"), ("y", shown(dense))):
            assert_exact(heads_merged.ask(dense).value["result"], x)


@claimed
def test_copies(heads_merged, heads_there_and_back, rng):
    """Merging what was split copies nothing; merging what lies by head copies once."""
    for name, (x, heads) in layouts(rng).items():
        if not x.numel() or name == "expanded":
            continue  # no bytes to share; fewer bytes than elements
        with about(("call", f"merge_heads(split_heads(x, {heads}))"), (name, shown(x))):
            got = heads_there_and_back.ask(x, heads).value
            assert_exact(got, x)
            assert_holds(facts(got).aliases is not None, "Splitting and merging made a copy.")
        dense = by_head(x, heads).contiguous()
        with about(("call", "merge_heads(y)"), ("y", shown(dense))):
            found = heads_merged.ask(dense).value
            assert_exact(found["result"], x)
            most = dense.numel() * dense.element_size()
            what = "Merging allocated more than one copy, in bytes."
            assert_equal(found["new"], min(found["new"], most), what)


def test_uneven(heads_split, rng):
    """A number of heads that does not divide `hidden` raises `ValueError`."""
    for heads in (5, 9, 48):
        evidence = heads_split.ask(torch.randn(2, 3, 24, generator=rng), heads)
        what = "24 numbers cannot be split evenly: a ValueError was expected."
        rows = ("call", f"split_heads(x, {heads})"), ("x", "shape (2, 3, 24)")
        assert_raises(evidence, "ValueError", what, *rows)
