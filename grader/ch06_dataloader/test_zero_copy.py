"""Checks of `zero_copy`: each batch is held until the workers can do no more harm."""

import pytest
import torch

from grader import Mismatch, about, assert_equal, assert_holds, claimed, compared, points


@pytest.fixture
def batches(rng):
    """Batches of different sizes, of indices below 100."""
    sizes = (3, 1, 4, 2, 4, 1, 2, 3)
    return [torch.randint(100, (size,), generator=rng).tolist() for size in sizes]


def compare(slots_copied, batches, shape, dtype):
    """Compare all batches. Wrong numbers may be of memory that nobody has written: they are shown alone."""
    got = slots_copied.ask(batches, list(shape), dtype).value
    expected = [filled(indices, shape, dtype) for indices in batches]
    compared([outcome(*pair) for pair in zip(got, expected, strict=False)])
    with about(("call", f"zero_copy(dataset, {batches}, {shape}, {dtype}, num_workers=1)")):
        assert_equal(len(got), len(batches), "How many batches came.")
        for number, (mine, theirs) in enumerate(zip(got, expected, strict=True)):
            if (wrong := outcome(mine, theirs)) != "right":
                rows = (("expected", short(theirs)), ("got", short(mine)))
                raise Mismatch(f"Batch {number} has another {wrong}.", rows)


def filled(indices, shape, dtype):
    """Return the batch of samples that are full of their index."""
    expected = torch.empty(len(indices), *shape, dtype=dtype)
    for place, index in enumerate(indices):
        expected[place] = index
    return expected


def outcome(mine, theirs):
    """Return in what two batches differ, or "right"."""
    if not isinstance(mine, torch.Tensor):
        return "type"
    if mine.dtype != theirs.dtype:
        return "dtype"
    if mine.shape != theirs.shape:
        return "shape"
    return "right" if torch.equal(mine, theirs) else "content"


def short(batch):
    """Return a batch's dtype, shape and numbers; of each sample the first."""
    if not isinstance(batch, torch.Tensor):
        return repr(batch)
    firsts = [sample.reshape(-1)[0].item() for sample in batch] if batch.numel() else []
    return f"{tuple(batch.shape)} {batch.dtype}, the samples begin with {firsts}"


def test_values(slots_copied, batches):
    """Batches of any sizes, samples of any shape, in order."""
    compare(slots_copied, [[4, 1, 7]], (2,), torch.float32)
    compare(slots_copied, batches, (2, 3), torch.float32)
    compare(slots_copied, batches, (), torch.int64)


def test_no_batches(slots_copied):
    """A single small batch, and no batches at all."""
    compare(slots_copied, [[5]], (2,), torch.float32)
    compare(slots_copied, [], (2,), torch.float32)


def numbers_of(batch):
    return [[2 * batch] * 3, [2 * batch + 1] * 3]


def test_in_hand(slots_held):
    """A batch stays as it is while the workers run ahead."""
    for workers, factor in LEADS:
        found = slots_held.ask(workers, factor, 8).value["batches"]
        whose = [
            next((f"batch {k}" for k in range(8) if one["numbers"] == numbers_of(k)), "no batch")
            for one in found
        ]
        with about(("call", call(workers, factor))):
            for number, (mine, one) in enumerate(zip(whose, found, strict=True)):
                what = f"Whose numbers batch {number} holds once the workers have run ahead."
                with about(("its numbers", str(one["numbers"]))):
                    assert_equal(mine, f"batch {number}", what)


LEADS = ((1, 3), (2, None))


def call(workers, factor):
    more = f", prefetch_factor={factor}" if factor else ""
    given = "[[0, 1], [2, 3], … [14, 15]], (3,), torch.int64"
    return f"zero_copy(dataset, {given}, num_workers={workers}{more})"


@points(4)
def test_memory(slots_held):
    """All batches lie in one shared tensor that has room for the lead and one batch more."""
    for workers, factor in LEADS:
        got = slots_held.ask(workers, factor, 8).value
        with about(("call", call(workers, factor))):
            shared = sum(one["shared"] for one in got["batches"])
            assert_equal(shared, 8, "Of how many of 8 batches `is_shared()` is true.")
            assert_equal(got["storages"], 1, "In how many storages the batches lie.")
            most = workers * (factor or 2) + 1
            room = max(one["batches"] for one in got["batches"])
            rows = ("expected", f"{most} batches at most"), ("got", f"{room:g}")
            assert_holds(room <= most, "The shared tensor has room for too many.", *rows)


@claimed
def test_ahead(slots_held):
    """Workers fetch, and are ahead by the whole lead while a batch is in hand."""
    for workers, factor in LEADS:
        got = slots_held.ask(workers, factor, 8).value
        with about(("call", call(workers, factor))):
            assert_holds(not got["main fetched"], "The main process fetched a sample itself.")
            ahead = sum(one["ahead"] for one in got["batches"])
            what = "With how many of 8 batches in hand the whole lead was fetched, and no more."
            assert_equal(ahead, 8, what)


@claimed
def test_no_copies(slots_held):
    """The main process copies no batch."""
    for workers, factor in LEADS:
        got = slots_held.ask(workers, factor, 8).value
        copies = [one["copies"] for one in got["batches"]]
        with about(("call", call(workers, factor))):
            assert_holds(not got["main fetched"], "The main process fetched a sample itself.")
            what = "How many operators that copy ran in the main process for each batch."
            assert_equal(copies, [0] * 8, what)
