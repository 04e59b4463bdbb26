"""Checks of `streaming_attention`: values at every block size, and memory that knows no S."""

import math

import torch

from grader import Mismatch, assert_tensor, claimed, compared, gate, points
from grader.ch03_matmul.attended import (
    ATOL,
    LARGE,
    additive,
    boolean,
    compare,
    eighths,
    exact,
    question,
)
from grader.ch03_matmul.operands import assert_unchanged

BLOCKS = (1, 3, 8, 100)


@gate
def test_shape(streamed, rng):
    """Returns `float32` of shape `(..., L, V)`, whatever the block."""
    for block in BLOCKS:
        q, k, v = question(rng, (2, 3), 4, 8, 6, 7)
        got = streamed.ask(q, k, v, None, block).value
        assert_tensor(got, dtype=torch.float32, shape=(2, 3, 4, 7))


def each_block(streamed, q, k, v, mask, name, atol=ATOL):
    for block in BLOCKS:
        got = streamed.ask(q, k, v, mask, block).value
        compare(got, q, k, v, mask, f"{name}, blocks of {block}", atol)


def test_plain(streamed, rng):
    """No mask, blocks that divide S and blocks that do not."""
    each_block(streamed, *question(rng, (2, 3), 5, 16, 16, 4), None, "no mask")
    each_block(streamed, *question(rng, (), 3, 13, 5, 2), None, "no leading dimensions")
    each_block(streamed, *question(rng, (2,), 1, 1, 4, 3), None, "one key")


def test_masks(streamed, rng):
    """Boolean and additive masks, each block with its own columns."""
    q, k, v = question(rng, (2, 3), 6, 14, 16, 4)
    padding = torch.arange(14) < torch.tensor([5, 14])[:, None]
    each_block(streamed, q, k, v, boolean(rng, 6, 14), "boolean")
    each_block(streamed, q, k, v, torch.ones(6, 14, dtype=torch.bool).tril(), "causal")
    each_block(streamed, q, k, v, padding[:, None, None, :], "padding")
    each_block(streamed, q, k, v, additive(boolean(rng, 3, 6, 14), rng), "additive")


def test_masks_of_size_one(streamed, rng):
    """A mask with one column stands for all columns."""
    q, k, v = question(rng, (2,), 6, 14, 16, 4)
    column = torch.tensor([True, True, False, True, False, True])[:, None]
    each_block(streamed, q, k, v, column, "one column")
    each_block(streamed, q, k, v, torch.where(column, 0.5, -torch.inf), "one additive column")
    each_block(streamed, q, k, v, torch.ones(1, dtype=torch.bool), "one element")


def test_forbidden_blocks(streamed, rng):
    """Whole blocks are forbidden: at the beginning, in between, at the end, everywhere."""
    q, k, v = question(rng, (2,), 5, 24, 16, 4)
    mask = torch.ones(5, 24, dtype=torch.bool)
    mask[0, :17], mask[1, 5:20], mask[2, 3:], mask[3] = False, False, False, False
    each_block(streamed, q, k, v, mask, "boolean")
    each_block(streamed, q, k, v, additive(mask, rng), "additive")


def test_large_scores(streamed, rng):
    """The maximum grows, and falls, by thousands from block to block."""
    q, k, v = question(rng, (2,), 6, 24, 16, 4)
    order = (q[..., :1, :] @ k.transpose(-2, -1)).argsort(-1).squeeze(-2)
    for name, by in (("growing", order), ("falling", order.flip(-1))):
        keys = k.gather(-2, by[..., None].expand(k.shape))
        each_block(streamed, q * 512, keys, v, None, f"large, {name}", LARGE)
    low = -(q.abs() + 0.125) * 512
    each_block(streamed, low, k.abs() + 0.125, v, None, "large and negative", LARGE)


def test_inputs_stay(streamed, rng):
    """The inputs are as they were."""
    q, k, v = question(rng, (2, 3), 4, 6, 5, 3)
    mask = boolean(rng, 4, 6)
    for chosen in (None, mask, additive(mask, rng)):
        evidence = streamed.ask(q, k, v, chosen, 4)
        assert_tensor(evidence.value, dtype=torch.float32)
        assert_unchanged(evidence, q=q, k=k, v=v, mask=chosen)


LONG = 512


def costs(streaming_cost, rng):
    """Yield what long sequences took: found, sizes, and the rows that say what was called."""
    block = 8
    for lead, queries, size, values, mask in (
        ((), 16, 8, 8, boolean(rng, 16, LONG)),
        ((2, 2), 4, 8, 8, eighths(rng, LONG)),
    ):
        q, k, v = question(rng, lead, queries, LONG, size, values)
        k = k.transpose(-2, -1).contiguous().transpose(-2, -1)
        found = streaming_cost.ask(q, k, v, mask, block).value
        truth = exact(q, k, v, mask).float()
        assert_tensor(found["result"], dtype=torch.float32, shape=truth.shape)
        # sums of 512 terms round more often than those that ATOL is made for
        if not torch.allclose(found["result"], truth, atol=20 * ATOL):
            what = "The result is wrong, so what it costs does not count."
            raise Mismatch(what, called(q, k, v, mask, block))
        heads = q.shape[:-2].numel()
        yield found, (heads, queries, size, values, block), called(q, k, v, mask, block)


def called(q, k, v, mask, block):
    """Return the rows that say what was called."""
    return (
        ("call", f"streaming_attention(q, k, v, mask, {block})"),
        ("q, k, v", f"{tuple(q.shape)}, {tuple(k.shape)}, {tuple(v.shape)}"),
        ("mask", f"{tuple(mask.shape)} {mask.dtype}"),
    )


def at_most(measured, what):
    """Fail if a cost is above its budget; `measured` are (got, allowed, rows).

    To a diagnosis two costs that are equal to a power of two are alike.
    """
    compared([(got > allowed, round(math.log2(max(got, 1)))) for got, allowed, _ in measured])
    for got, allowed, rows in measured:
        if got > allowed:
            raise Mismatch(what, (*rows, ("allowed", f"{allowed:,}"), ("got", f"{got:,}")))


@claimed
@points(3.5)
def test_memory(streaming_cost, rng):
    """New bytes alive at once are bounded by the block, not by the sequence."""
    measured = []
    for found, (heads, queries, size, values, block), rows in costs(streaming_cost, rng):
        numbers = queries * block + block * (size + values) + queries * (size + values)
        measured.append((found["peak"], 8 * 4 * heads * numbers, rows))
    at_most(measured, "Too many bytes of new storage are alive at once.")


@claimed
def test_one_pass(streaming_cost, rng):
    """Every key is multiplied once."""
    measured = []
    for found, (heads, queries, size, values, _), rows in costs(streaming_cost, rng):
        measured.append((found["flops"], 2 * heads * queries * LONG * (size + values), rows))
    at_most(measured, "The products take more FLOPs than one pass.")
