"""Checks of `relative_shift`: values for any layout, and a view wherever strides allow one."""

import torch

from grader import (
    Mismatch,
    about,
    assert_raises,
    assert_tensor,
    compared,
    facts,
    gate,
    points,
)
from grader.ch03_matmul.operands import assert_exact, labelled


def layouts(rng):
    """Scores with the number of keys; the name says whether strides can express the result."""
    big, grid = labelled(rng, 3, 8, 14), labelled(rng, 3, 2, 8, 14)
    return {
        "two dimensions": (big[0, :5, :9], 5),
        "a batch": (big, 7),
        "more keys than queries": (big[:, :3], 12),
        "more queries than keys": (big[:, :, :9], 2),
        "one key": (big[:, :, :8], 1),
        "one query": (big[:, :1], 14),
        "one query, transposed": (big[:, :, :1].transpose(1, 2), 8),
        "one of each": (big[:1, :1, :1], 1),
        "an offset": (big[1:, 2:7, 3:12], 5),
        "a step in the columns": (big[:, :3, ::2], 5),
        "a step in the rows": (big[:, ::2, :11], 8),
        "leading dimensions exchanged": (grid.transpose(0, 1), 7),
        "an expanded batch": (big[:1].expand(4, 8, 14), 7),
        "rows as far as columns": (torch.arange(40.0).as_strided((4, 7), (3, 3)), 4),
        "an empty batch": (big[:0], 7),
        "whole numbers": (torch.arange(30, dtype=torch.int16).reshape(3, 10), 8),
        "one query, expanded": (labelled(rng, 4, 1)[:1].expand(1, 6), 6),
    }


def backwards(rng):
    """Layouts for which a stride would have to be negative."""
    big = labelled(rng, 3, 14, 8)
    return {
        "transposed": (big.transpose(1, 2), 7),
        "rows expanded": (big[:, :1, :7].expand(3, 4, 7), 4),
        "transposed, with an offset": (big[1:, 2:11, 3:].transpose(1, 2), 5),
        "transposed, two dimensions": (big[0, :9, :2].t(), 8),
    }


def exact(scores, keys):
    queries = scores.shape[-2]
    rows = [scores[..., i, queries - 1 - i : queries - 1 - i + keys] for i in range(queries)]
    return torch.stack(rows, -2)


def compare(shifted, name, scores, keys):
    got = shifted.ask(scores, keys).value
    with about(*called(name, scores, keys)):
        assert_exact(got, exact(scores, keys))
    return got


def called(name, scores, keys):
    """Return the rows that say what was shifted."""
    layout = f"shape {tuple(scores.shape)}, strides {scores.stride()}"
    return ("call", f"relative_shift(scores, {keys})"), (f"scores, {name}", layout)


@gate
def test_shape(shifted, rng):
    """Returns `(..., L, S)` in the dtype of `scores`."""
    got = shifted.ask(torch.randn(3, 8, 14, generator=rng), 7).value
    assert_tensor(got, dtype=torch.float32, shape=(3, 8, 7))


def test_values(shifted, rng):
    """Each score is where its distance says; contiguous input."""
    for name, (scores, keys) in layouts(rng).items():
        compare(shifted, name, scores.contiguous(), keys)


def test_any_layout(shifted, rng):
    """The same for views of every kind."""
    for name, (scores, keys) in layouts(rng).items():
        compare(shifted, name, scores, keys)


@points(2)
def test_view(shifted, rng):
    """Where strides can express it, the result lives in the storage of `scores`."""
    copied = []
    for name, (scores, keys) in layouts(rng).items():
        got = compare(shifted, name, scores, keys)
        if scores.numel() and facts(got).aliases is None:
            copied.append((name, scores, keys))
    compared([name for name, _, _ in copied])
    if copied:
        names = ("layouts that were copied", ", ".join(name for name, _, _ in copied))
        what = "Results have a storage of their own, where strides can express them. One of these:"
        raise Mismatch(what, (*called(*copied[0]), names))


def test_negative_strides(shifted, rng):
    """Where a stride would be negative, the values are right all the same."""
    for name, (scores, keys) in backwards(rng).items():
        compare(shifted, name, scores, keys)


def test_wrong_size(shifted, rng):
    """A last dimension that is not `L + S - 1` raises `ValueError`."""
    for keys in (1, 6, 8, 15):
        evidence = shifted.ask(torch.randn(2, 8, 14, generator=rng), keys)
        rows = ("call", f"relative_shift(scores, {keys})"), ("scores", "shape (2, 8, 14)")
        what = "Sizes that do not fit: a ValueError was expected."
        assert_raises(evidence, "ValueError", what, *rows)
