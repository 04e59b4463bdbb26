"""Checks of `zero_copy`: each batch is held until the workers can do no more harm."""

import pytest
import torch

from grader import assert_equal, assert_holds, assert_same_bits, claimed, gate


@pytest.fixture
def batches(rng):
    """Batches of different sizes, of indices below 100."""
    sizes = (3, 1, 4, 2, 4, 1, 2, 3)
    return [torch.randint(100, (size,), generator=rng).tolist() for size in sizes]


def compare(slots_copied, batches, shape, dtype):
    got = slots_copied.ask(batches, list(shape), dtype).value
    assert_equal(len(got), len(batches), "How many batches came.")
    for batch, indices in zip(got, batches, strict=True):
        expected = torch.empty(len(indices), *shape, dtype=dtype)
        for place, index in enumerate(indices):
            expected[place] = index
        assert_same_bits(batch, expected)


@gate
def test_one_batch(slots_copied):
    """A single batch comes as it should."""
    compare(slots_copied, [[4, 1, 7]], (2,), torch.float32)


def test_values(slots_copied, batches):
    """Batches of any sizes, samples of any shape, in order."""
    compare(slots_copied, batches, (2, 3), torch.float32)
    compare(slots_copied, batches, (), torch.int64)
    compare(slots_copied, [], (2,), torch.float32)


def test_in_hand(slots_held):
    """A batch stays as it is while the workers run ahead."""
    for workers, factor in ((1, 3), (2, None)):
        for number, one in enumerate(slots_held.ask(workers, factor, 8).value["batches"]):
            expected = [[2 * number] * 3, [2 * number + 1] * 3]
            case = f"{workers} workers, prefetch_factor {factor}. Batch {number}, "
            assert_equal(one["numbers"], expected, case + "when the workers were ahead.")


def test_memory(slots_held):
    """All batches lie in one shared tensor that has room for the lead and one batch more."""
    for workers, factor in ((1, 3), (2, None)):
        got = slots_held.ask(workers, factor, 8).value
        case = f"{workers} workers, prefetch_factor {factor}. "
        shared = [one["shared"] for one in got["batches"]]
        assert_equal(shared, [True] * 8, f"{case}Of which batches `is_shared()` is true.")
        assert_equal(got["storages"], 1, f"{case}Storages in which the batches lie.")
        most = workers * (factor or 2) + 1
        room = max(one["batches"] for one in got["batches"])
        rows = ("expected", f"{most} batches at most"), ("got", f"{room:g}")
        assert_holds(room <= most, f"{case}The shared tensor has room for too many.", *rows)


@claimed
def test_ahead(slots_held):
    """Workers fetch, and are ahead by the whole lead while a batch is in hand."""
    for workers, factor in ((1, 3), (2, None)):
        got = slots_held.ask(workers, factor, 8).value
        assert_holds(not got["main fetched"], "The main process fetched a sample itself.")
        ahead = [one["ahead"] for one in got["batches"]]
        assert_equal(ahead, [True] * 8, "Was the whole lead fetched, and no more?")


@claimed
def test_no_copies(slots_held):
    """The main process copies no batch."""
    for workers, factor in ((1, 3), (2, None)):
        copies = [one["copies"] for one in slots_held.ask(workers, factor, 8).value["batches"]]
        assert_equal(copies, [0] * 8, "Operators that copy, for each batch.")
