"""Checks of `ring_attention`: against attention over the whole sequence, and what each rank spent."""

import math

import pytest
import torch

from grader import (
    Mismatch,
    about,
    assert_close,
    assert_equal,
    assert_holds,
    assert_tensor,
    claimed,
    gate,
    points,
)
from grader.ch10_sharding.probes.ring import zigzag

HEADS, FEATURES = 2, 4
ROUNDING = "the same sums in float64, in another order"


def drawn(rng, length, groups=1):
    """Return for each group q, k, v and what the output is multiplied by, each (H, S, D)."""
    shape = (HEADS, length, FEATURES)
    return [
        [torch.randn(shape, generator=rng, dtype=torch.float64) for _ in range(4)]
        for _ in range(groups)
    ]


@pytest.fixture
def sequences(rng):
    return drawn(rng, 64)


@pytest.fixture
def causal():
    return True


@pytest.fixture
def members():
    return [[0, 1, 2, 3]]


@pytest.fixture
def layout():
    return "as it comes"


def whole(sequence, causal):
    """Return output and gradients of attention in one process."""
    *inputs, factor = sequence
    q, k, v = (x.clone().requires_grad_() for x in inputs)
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if causal:
        future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(future, -math.inf)
    out = scores.softmax(-1) @ v
    return [out.detach(), *torch.autograd.grad((out * factor).sum(), (q, k, v))]


def compare(found, sequences, causal, members, names):
    for sequence, ranks in zip(sequences, members, strict=True):
        right = dict(zip(("output", "q", "k", "v"), whole(sequence, causal), strict=True))
        rows = (("on", f"{size(sequence)}, {len(ranks)} ranks, causal={causal}"),)
        for me, rank in enumerate(ranks):
            got = dict(zip(("q", "k", "v"), found[rank]["grads"], strict=True))
            got["output"] = found[rank]["out"]
            for name in names:
                what = "The output" if name == "output" else f"The gradient of `{name}`"
                if got[name] is None:
                    raise Mismatch(f"{what} on rank {rank} is None.", rows)
                with about(*rows, of=f"{what} on rank {rank}. "):
                    mine = zigzag(right[name], len(ranks), me)
                    assert_close(got[name], mine, rtol=1e-9, atol=1e-9, because=ROUNDING)


def size(sequence):
    return f"a sequence {tuple(sequence[0].shape)}"


@gate
def test_shape(attended, sequences):
    """Returns a tensor of the shape and dtype of `q`."""
    for got in attended.value:
        assert_tensor(got["out"], dtype=torch.float64, shape=(HEADS, 16, FEATURES))


@gate
@claimed
def test_no_collective(attended):
    """Calls no collective: nothing but sends and receives."""
    for rank, got in enumerate(attended.value):
        assert_equal(got["others"], [], f"What rank {rank} called besides send and recv.")


@points(2)
def test_output(attended, sequences, causal, members):
    """Causal attention on four ranks; `q`, `k` and `v` stay as they are."""
    found = attended.value
    compare(found, sequences, causal, members, ["output"])
    for rank, got in enumerate(found):
        assert_holds(got["untouched"], f"An input of rank {rank} was changed.")


@points(2)
def test_gradients(attended, sequences, causal, members):
    """Gradients of `q`, `k` and `v` arrive on the rank that they belong to."""
    compare(attended.value, sequences, causal, members, ["q", "k", "v"])


def test_not_causal(attended, members, layout, rng):
    """Without `causal` every query sees every key, also a key far from all others."""
    [[q, k, v, factor]] = drawn(rng, 24)
    k = k * torch.tensor([1.0, 100.0]).repeat(12).view(1, 24, 1)  # scores of some hundreds
    sequences, members = [[q, k, v, factor]], [[0, 1, 2]]
    found = attended.ask(sequences, False, members, layout).value
    compare(found, sequences, False, members, ["output", "q", "k", "v"])


def test_groups(attended, rng):
    """Groups that are a part of the world, one rank alone, chunks of one token, another layout."""
    members = [[0], [1, 3], [2]]
    sequences = drawn(rng, 4, groups=3)
    found = attended.ask(sequences, True, members, "by token").value
    compare(found, sequences, True, members, ["output", "q", "k", "v"])


@claimed
@points(2)
def test_work(attended, sequences, members, causal, layout):
    """All ranks do the same work: no forbidden block of scores is computed."""
    [ranks], [[q, *_]] = members, sequences
    n, chunk = len(ranks), q.shape[1] // (2 * len(ranks))
    product = 2 * chunk * chunk * FEATURES * HEADS
    for masked, most in ((True, 2 * n + 1), (False, 4 * n)):
        found = (attended if masked else attended.ask(sequences, False, members, layout)).value
        compare(found, sequences, masked, members, ["output"])
        for rank, got in enumerate(found):
            for times, spent, way in zip(
                (2, 6), got["flops"], ("forward", "backward"), strict=True
            ):
                rows = (
                    ("on", f"{size(sequences[0])}, {n} ranks, causal={masked}"),
                    ("expected", f"{most * times} products of a block at most"),
                    ("got", f"{spent / product:g}"),
                )
                what = f"What rank {rank} computed in {way}."
                assert_holds(spent <= most * times * product, what, *rows)


@claimed
def test_traffic(attended, sequences, members, causal):
    """Keys and values make n - 1 hops in forward; in backward 2 n - 1 at most, gradients among them."""
    [ranks], [[q, *_]] = members, sequences
    n, both = len(ranks), 2 * q.nbytes // len(ranks)
    compare(attended.value, sequences, causal, members, ["output"])
    for rank, got in enumerate(attended.value):
        for hops, sent, way in zip(
            (n - 1, 2 * n - 1), got["sent"], ("forward", "backward"), strict=True
        ):
            rows = (
                ("on", f"{size(sequences[0])}, {n} ranks"),
                ("expected", f"{hops} times `k` and `v` at most, {hops * both} bytes"),
                ("got", f"{sent} bytes"),
            )
            assert_holds(sent <= hops * both, f"What rank {rank} sent in {way}.", *rows)


@claimed
def test_memory(attended, sequences, members, causal):
    """Neither scores nor keys of the whole sequence: not for a moment, and not kept for backward."""
    [ranks], [[q, *_]] = members, sequences
    part = q.nbytes // len(ranks)
    most = HEADS * (q.shape[1] // len(ranks)) ** 2 * q.itemsize
    compare(attended.value, sequences, causal, members, ["output"])
    for rank, got in enumerate(attended.value):
        of = ("on", f"{size(sequences[0])}, {len(ranks)} ranks")
        for largest, way in zip(got["largest"], ("forward", "backward"), strict=True):
            rows = (of, ("expected", f"{most} bytes at most"), ("got", f"{largest} bytes"))
            assert_holds(largest <= most, f"The largest storage of rank {rank} in {way}.", *rows)
        rows = (of, ("expected", f"{4 * part} bytes at most"), ("got", f"{got['left']} bytes"))
        what = f"What forward left behind on rank {rank}, the output among it."
        assert_holds(got["left"] <= 4 * part, what, *rows)
