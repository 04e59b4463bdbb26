"""Checks of `attention`: each kind of mask, large scores, and what flows back through empty rows."""

import torch

from grader import Mismatch, about, assert_close, assert_tensor, gate, points
from grader.ch03_matmul.attended import (
    DOUBLE,
    LARGE,
    additive,
    boolean,
    compare,
    eighths,
    exact,
    question,
)
from grader.ch03_matmul.operands import assert_unchanged


@gate
def test_shape(attended, rng):
    """Returns `(..., L, V)` in the dtype of `q`."""
    q, k, v = question(rng, (2, 3), 4, 5, 6, 7)
    assert_tensor(attended.ask(q, k, v, None).value, dtype=torch.float32, shape=(2, 3, 4, 7))


def test_plain(attended, rng):
    """No mask: a weighted mean of the values, scores divided by the root of E."""
    for lead, queries, keys, size, values in (
        ((), 3, 3, 16, 2),
        ((2,), 4, 9, 16, 5),
        ((2, 3), 7, 6, 5, 8),
        ((2, 1, 3), 1, 40, 16, 1),
        ((1, 1), 5, 1, 1, 3),
    ):
        q, k, v = question(rng, lead, queries, keys, size, values)
        compare(attended.ask(q, k, v, None).value, q, k, v, None, "no mask")


@points(0.5)
def test_no_queries(attended, rng):
    """No queries, no batch, values of size 0: an empty result."""
    for lead, queries, values in (((2,), 0, 2), ((0, 2), 3, 2), ((2,), 3, 0)):
        q, k, v = question(rng, lead, queries, 3, 4, values)
        compare(attended.ask(q, k, v, None).value, q, k, v, None, "an empty result")


def test_float64(attended, rng):
    """Keeps the digits of `float64`, under every kind of mask."""
    q, k, v = (tensor.double() for tensor in question(rng, (2,), 4, 6, 5, 3))
    mask = boolean(rng, 4, 6)
    for name, chosen in (
        ("no mask", None),
        ("boolean", mask),
        ("additive", additive(mask, rng).double() / 3),
    ):
        compare(attended.ask(q, k, v, chosen).value, q, k, v, chosen, f"float64, {name}", DOUBLE)


def test_boolean_mask(attended, rng):
    """`True` means may look; masks broadcast over heads, queries or nothing."""
    q, k, v = question(rng, (2, 3), 6, 8, 16, 4)
    padding = torch.arange(8) < torch.tensor([5, 8])[:, None]
    masks = {
        "one per query and key": boolean(rng, 6, 8),
        "causal": torch.ones(6, 8, dtype=torch.bool).tril(),
        "padding of each sample": padding[:, None, None, :],
        "one per head": boolean(rng, 3, 6, 8),
        "everything": boolean(rng, 2, 3, 6, 8),
        "all allowed": torch.ones(1, dtype=torch.bool),
    }
    for name, mask in masks.items():
        compare(attended.ask(q, k, v, mask).value, q, k, v, mask, name)


def test_additive_mask(attended, rng):
    """Floats are added to the divided scores; `-inf` forbids."""
    q, k, v = question(rng, (2, 3), 6, 8, 16, 4)
    distance = (torch.arange(6)[:, None] - torch.arange(8)).abs()
    masks = {
        "a preference": eighths(rng, 6, 8),
        "the nearer the better": -0.5
        * distance[None]
        * torch.tensor([1.0, 0.5, 0.25])[:, None, None],
        "with -inf": additive(boolean(rng, 2, 1, 6, 8), rng),
        "one row for all": additive(boolean(rng, 8), rng),
        "the same for every key": eighths(rng, 6, 1),
    }
    for name, mask in masks.items():
        compare(attended.ask(q, k, v, mask).value, q, k, v, mask, name)


def test_empty_rows(attended, rng):
    """A row in which everything is forbidden gives zeros; the others are as ever."""
    q, k, v = question(rng, (2, 3), 6, 8, 16, 4)
    mask = boolean(rng, 2, 1, 6, 8)
    mask[0, 0, 2], mask[1, 0, 5], mask[1, 0, 0] = False, False, False
    for name, chosen in (
        ("boolean", mask),
        ("additive", additive(mask, rng)),
        ("nothing allowed at all", torch.zeros(1, 1, dtype=torch.bool)),
    ):
        compare(attended.ask(q, k, v, chosen).value, q, k, v, chosen, f"empty rows, {name}")


def test_large_scores(attended, rng):
    """Scores in the thousands, of either sign: no overflow, no underflow."""
    q, k, v = question(rng, (2,), 6, 9, 16, 4)
    mask = boolean(rng, 6, 9)
    for name, large_q, chosen in (
        ("large of either sign", q * 512, None),
        ("large and negative", -(q.abs() + 0.125) * 512, None),
        ("large with a mask", q * 512, mask),
        ("large with -inf", q * 512, additive(mask, rng)),
    ):
        keys = k.abs() + 0.125 if "negative" in name else k
        got = attended.ask(large_q, keys, v, chosen).value
        compare(got, large_q, keys, v, chosen, name, LARGE)


@points(4.5)
def test_gradients(attention_grads, rng):
    """Gradients of q, k and v; none flows through an empty row, and none is NaN."""
    q, k, v = question(rng, (2, 3), 5, 7, 16, 4)
    mask = boolean(rng, 2, 1, 5, 7)
    mask[0, 0, 2], mask[1, 0, 4] = False, False
    cotangent = eighths(rng, 2, 3, 5, 4)
    for name, chosen in (
        ("no mask", None),
        ("boolean", mask),
        ("additive", additive(mask, rng)),
    ):
        leaves = [tensor.double().requires_grad_() for tensor in (q, k, v)]
        expected = torch.autograd.grad(exact(*leaves, chosen), leaves, cotangent.double())
        got = attention_grads.ask(q, k, v, chosen, cotangent).value
        for which, mine, truth in zip("qkv", got, expected, strict=True):
            shapes = f"{tuple(q.shape)}, {tuple(k.shape)}, {tuple(v.shape)}"
            with about(("case", name), ("q, k, v", shapes), ("gradient of", which)):
                if mine is None:
                    raise Mismatch("No gradient arrives: on its way the result left the graph.")
                assert_close(
                    mine, truth.float(), rtol=0.0, atol=5e-4, because="float32 against float64"
                )


def test_inputs_stay(attended, rng):
    """The inputs are as they were."""
    q, k, v = question(rng, (2, 3), 4, 6, 5, 3)
    mask = boolean(rng, 4, 6)
    for chosen in (None, mask, additive(mask, rng)):
        evidence = attended.ask(q, k, v, chosen)
        assert_tensor(evidence.value, dtype=torch.float32)
        assert_unchanged(evidence, q=q, k=k, v=v, mask=chosen)


def test_any_layout(attended, rng):
    """Heads as views, keys shared by expansion, transposed and offset inputs."""
    hidden = eighths(rng, 2, 6, 3, 16)
    by_head = hidden.transpose(1, 2)
    k, v = eighths(rng, 2, 1, 16, 9).transpose(-2, -1), eighths(rng, 2, 1, 12, 9)
    v = v.transpose(-2, -1)[..., 3::2]
    k, v = k.expand(2, 3, 9, 16), v.expand(2, 3, 9, 5)
    mask = boolean(rng, 9, 6).t()
    mask = mask | ~mask.any(-1, keepdim=True)
    for chosen in (None, mask, torch.where(mask, 0.0, -torch.inf)[None].expand(3, 6, 9)):
        compare(attended.ask(by_head, k, v, chosen).value, by_head, k, v, chosen, "views")
    whole = eighths(rng, 9, 40)
    q, k, v = whole[1:5, 2:18], whole[:, 20:36], whole[:, ::8]
    compare(attended.ask(q, k, v, None).value, q, k, v, None, "cut out of one tensor")
