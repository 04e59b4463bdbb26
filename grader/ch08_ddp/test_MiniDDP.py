"""Checks of `MiniDDP`: gradients against their means, and the order in which things happened."""

import pytest
import torch

from grader import (
    Mismatch,
    about,
    assert_close,
    assert_equal,
    assert_holds,
    assert_same_bits,
    claimed,
    gate,
    points,
    whole_numbers,
)
from grader.ch08_ddp.averaging import buckets_of, mean_gradients, trained

ROUNDING = "the same sums in float64, in another order"

SYNC = {"clear"}

FLAGS = 72
"""Bytes of nine flags at most: every bucket here is larger."""


@pytest.fixture
def values():
    """Parameters of several layouts and dtypes, largest 96 bytes; buckets of 160 hold one or two."""
    wide, half = torch.float64, torch.float32
    return [
        torch.zeros(4, 3, dtype=wide).t(),
        torch.zeros(9, dtype=wide),
        torch.zeros((), dtype=wide),
        torch.zeros(20, dtype=half),
        torch.zeros(5, 2, dtype=half),
        torch.zeros(1, 30, dtype=half),
        torch.zeros(20, dtype=half),
        torch.zeros(70, dtype=half),
        torch.zeros(12, dtype=wide),
    ]


@pytest.fixture
def bucket_bytes():
    return 160


@pytest.fixture
def frozen():
    return [4]


def whole(rng, like):
    """Whole numbers, so that sums and halves are exact in any order."""
    return whole_numbers(rng, like.shape, -64, 63, dtype=like.dtype) * 4


@pytest.fixture
def modes():
    return [SYNC]


@pytest.fixture
def factors(rng, values):
    return [[[whole(rng, v) for v in values]] for _ in range(2)]


def some(rng, values, ranks, steps, missing=lambda rank, step: ()):
    """Return factors per rank and step, without those that `missing` names."""
    return [
        [
            [None if n in missing(rank, step) else whole(rng, v) for n, v in enumerate(values)]
            for step in range(steps)
        ]
        for rank in range(ranks)
    ]


def compare(ddp_steps, values, frozen, bucket_bytes, factors, modes):
    """Compare every rank's gradients after every step with the means, bit by bit."""
    evidence = ddp_steps.ask(values, frozen, bucket_bytes, factors, modes)
    found = evidence.value
    expected = mean_gradients(values, frozen, factors, modes)
    for rank, steps in enumerate(found):
        for step, (got, right) in enumerate(zip(steps, expected[rank], strict=True)):
            there = [None if g is None else "gradient" for g in got["gradients"]]
            assert_equal(
                there,
                [None if g is None else "gradient" for g in right],
                f"Which parameters have a `.grad` on rank {rank} after backward {step + 1}.",
            )
            for at, (mine, theirs) in enumerate(zip(got["gradients"], right, strict=True)):
                if theirs is not None:
                    where = f"Rank {rank}, after backward {step + 1}, `.grad` of parameter {at}. "
                    with about(of=where):
                        assert_same_bits(mine + 0.0, theirs + 0.0)
    return found


@gate
def test_wraps(ddp_start, rng):
    """`module` is the module, and a forward gives its output."""
    for found in ddp_start.ask(starts(rng), []).value:
        assert_holds(found["child"], "`.module` is not the module that was given.")
        assert_same_bits(found["output"], found["expected"])


def starts(rng, ranks=3):
    return [
        [torch.randn(*shape, generator=rng, dtype=torch.float64) for shape in ((4, 4), (4,), (4,))]
        for _ in range(ranks)
    ]


def test_start(ddp_start, rng):
    """All ranks start with rank 0's parameters and buffers, in their own tensors, of any layout."""
    values = starts(rng)
    for by_columns in ([], [1]):
        found = ddp_start.ask(values, by_columns).value
        for name, right in found[0]["state"].items():
            for number, rank in enumerate(found):
                with about(
                    ("`odd` by columns", f"on ranks {by_columns}"),
                    of=f"`{name}` on rank {number}. ",
                ):
                    assert_same_bits(rank["state"][name], right)
        for rank in found:
            same = all(rank["same tensors"])
            assert_holds(same, "A parameter or a buffer is another tensor now.")


def test_means(ddp_steps, values, frozen, bucket_bytes, rng):
    """Gradients are the means over 2 and 4 ranks, whatever the layout and the dtype."""
    for ranks in (2, 4):
        factors = some(rng, values, ranks, 2)
        compare(ddp_steps, values, frozen, bucket_bytes, factors, [SYNC, SYNC])


def test_large_bucket(ddp_large):
    """When `backward` returns, a bucket of 16 MiB has arrived as a whole."""
    bounds = ddp_large.ask(4 << 20).value
    assert_equal(bounds, [[1.5, 1.5]] * 2, "Least and greatest element of the mean, by rank.")


def test_training(ddp_trained, rng):
    """Three steps with momentum, a shared weight and a BatchNorm: all ranks stay together."""
    values = starts(rng)[0]
    batches = [
        [torch.randn(5, 4, generator=rng, dtype=torch.float64) for _ in range(3)] for _ in range(2)
    ]
    found = ddp_trained.ask(values, batches, 64).value
    for rank, states in enumerate(found):
        for got, right in zip(states, trained(values, batches)[rank], strict=True):
            for name, tensor in right.items():
                with about(of=f"`{name}` on rank {rank}. "):
                    assert_close(got[name], tensor, rtol=1e-9, atol=1e-12, because=ROUNDING)


def test_unused(ddp_steps, values, frozen, bucket_bytes, rng):
    """What some ranks do not use gets zeros from them; what no rank uses keeps `None`."""

    def missing(rank, step):
        return [{0, 3, 7, 8}, {1, 3, 5, 6, 8}][rank] if step == 0 else {8, 2 * rank + 1}

    factors = some(rng, values, 2, 3, missing)
    compare(ddp_steps, values, frozen, bucket_bytes, factors, [SYNC, SYNC, set()])


def test_order_of_arrival(ddp_steps, values, frozen, bucket_bytes, rng):
    """Ranks whose gradients come in different orders still reduce the same buckets together."""
    factors = some(rng, values, 2, 2)
    compare(ddp_steps, values, frozen, bucket_bytes, factors, [SYNC | {"other order"}] * 2)


def test_accumulation(ddp_steps, values, frozen, bucket_bytes, rng):
    """Under `no_sync` gradients add up on each rank without a word; then their sums are averaged."""
    quiet = {"forward", "backward"}
    modes = [SYNC | quiet, quiet, set(), SYNC | quiet, SYNC | {"raise"}, SYNC]

    def missing(rank, step):
        return {1: {0, 2}, 2: {3, 5}}.get(step, ())

    factors = some(rng, values, 2, len(modes), missing)
    found = compare(ddp_steps, values, frozen, bucket_bytes, factors, modes)
    said = [[len(step["said"]) > 0 for step in rank] for rank in found]
    assert_equal(
        said, [["forward" not in mode for mode in modes]] * 2, "In which backwards ranks talked."
    )


def test_forward_decides(ddp_steps, values, frozen, bucket_bytes, rng):
    """Where the forward ran decides whether a backward is averaged; `no_grad` forwards do not."""
    modes = [SYNC | {"forward"}, SYNC | {"backward"}, SYNC | {"look"}]
    factors = some(rng, values, 2, len(modes))
    compare(ddp_steps, values, frozen, bucket_bytes, factors, modes)


def test_past_the_wrapper(ddp_steps, values, frozen, bucket_bytes, rng):
    """A backward of the module's own forward stays on its rank."""
    modes = [SYNC | {"bypass"}, SYNC, SYNC | {"bypass"}]
    factors = some(rng, values, 2, len(modes))
    compare(ddp_steps, values, frozen, bucket_bytes, factors, modes)


def test_buffers(ddp_buffers, rng):
    """Buffers come from rank 0 before forwards that will be averaged, and before no others."""
    found = ddp_buffers.ask(starts(rng)).value
    for rank, forwards in enumerate(found):
        own = {name: 0 if name.startswith("averaged") else rank for name in forwards}
        got = {name: int(forward["mean"][0]) for name, forward in forwards.items()}
        assert_equal(got, own, f"Whose running mean rank {rank} has in each forward.")
        quiet = {name: forward["said"] for name, forward in forwards.items() if "no" in name}
        assert_equal(quiet, {"no grad": 0, "no_sync": 0}, "Messages in forwards that stay here.")


@claimed
def test_buckets(ddp_overlap, values, bucket_bytes):
    """Each bucket is one all-reduce, in the order of the buckets; one small collective more."""
    buckets = buckets_of(values, bucket_bytes)
    for number, rank in enumerate(ddp_overlap.ask(values, bucket_bytes).value):
        sizes = [sum(values[n].nbytes for n in bucket) for bucket in buckets]
        expected = [("all_reduce", size) for size in sizes]
        what = f"What rank {number} sends in a backward, in order: name and bytes."
        assert_equal(large(rank["said"]), expected, what)
        small = [
            event
            for event in rank["said"]
            if event[1] <= FLAGS and not event[0].startswith("gradient")
        ]
        if len(small) > 1:
            raise Mismatch("More than one further collective.", (("they are", repr(small)),))


def large(said):
    """Return what was sent that is larger than flags, as (name, bytes)."""
    return [(name, size) for name, size in said if size > FLAGS]


@claimed
@points(6)
def test_overlap(ddp_overlap, values, bucket_bytes):
    """A bucket leaves before the next one's first gradient, and nothing in backward waits."""
    found = ddp_overlap.ask(values, bucket_bytes).value
    buckets = buckets_of(values, bucket_bytes)
    for number, rank in enumerate(found):
        names = [name for name, _ in rank["said"]]
        sent = [at for at, (_, size) in enumerate(rank["said"]) if size > FLAGS]
        # how many had left by the first gradient of each bucket but the first
        firsts = [min(names.index(f"gradient {n}") for n in bucket) for bucket in buckets[1:]]
        got = [min(sum(at < first for at in sent), n) for n, first in enumerate(firsts, 1)]
        what = f"Buckets that have left on rank {number} when the next one's first gradient comes"
        with about(("in order", ", ".join(names))):
            assert_equal(got, list(range(1, len(buckets))), f"{what}, from the second bucket on.")
    assert_equal(
        found[1]["came"], len(values), "Gradients that rank 0 computed before rank 1 began."
    )
    for number, rank in enumerate(found):
        for at, (got, value) in enumerate(zip(rank["gradients"], values, strict=True)):
            with about(of=f"Rank {number}, `.grad` of parameter {at}. "):
                assert_same_bits(got, torch.full_like(value, 1.5))
