"""Checks of `distributed_indices`: all ranks' parts of many epochs, against lists cut by hand."""

from itertools import cycle, islice

import pytest
import torch
from torch.utils.data import DistributedSampler

from grader import (
    about,
    assert_equal,
    assert_holds,
    assert_raises,
    compared,
    draw_int,
    gate,
    points,
)

IN_ORDER = {"shuffle": False}


@pytest.fixture
def n():
    return 10


@pytest.fixture
def world_size():
    return 3


@pytest.fixture
def options():
    return {}


@pytest.fixture
def elsewhere():
    return 1


@pytest.fixture
def seed(rng):
    """A seed that is not 0."""
    return draw_int(rng, 1, 2**40 - 1)


def order_of(n, epoch=0, seed=0, shuffle=True):
    if not shuffle:
        return list(range(n))
    generator = torch.Generator()
    generator.manual_seed(seed + epoch)
    return torch.randperm(n, generator=generator).tolist()


def parts_of(n, world_size, *, uneven="pad", consumed=0, **order):
    """Return each rank's (indices, real)."""
    rest = order_of(n, **order)[consumed:]
    dealt = [(index, True) for index in rest]
    over = len(rest) % world_size
    if over and uneven == "pad":
        more = cycle(index for index, _ in dealt)
        dealt = dealt + [(index, False) for index in islice(more, world_size - over)]
    if over and uneven == "drop":
        dealt = dealt[:-over]
    hands = [dealt[rank::world_size] for rank in range(world_size)]
    return [([i for i, _ in hand], [real for _, real in hand]) for hand in hands]


def compare(shared_epoch, n, world_size, *, real=False, **options):
    """Compare all ranks' indices, and with `real` what each says of them."""
    got = shared_epoch.ask(n, world_size, options, 1).value["parts"]
    which = int(real)
    what = "whether each entry is real" if real else "the indices"
    mine = [part[which] for part in got]
    same(mine, [part[which] for part in parts_of(n, world_size, **options)], what, n, options)


def same(got, expected, what, n, options):
    """Compare all ranks; show the first that differs."""
    compared(got)
    more = "".join(f", {name}={value!r}" for name, value in options.items())
    for rank, (mine, theirs) in enumerate(zip(got, expected, strict=True)):
        with about(("call", f"distributed_indices({n}, {rank}, {len(expected)}{more})")):
            assert_equal(mine, theirs, f"Rank {rank} of {len(expected)}: {what}.")


@gate
def test_two_lists(shared_epoch):
    """Returns two lists of equal length, one of whole numbers and one of booleans."""
    for part in shared_epoch.value["parts"]:
        assert_holds(isinstance(part, tuple | list), "What is returned is no pair.")
        assert_equal(len(part), 2, "How many things are returned.")
        kinds = [type(one).__name__ for one in part]
        assert_equal(kinds, ["list", "list"], "The types of what is returned.")
        indices, real = part
        assert_equal(
            len(real), len(indices), "The length of the second list, beside that of the first."
        )
        kinds = [sorted({type(item).__name__ for item in one}) for one in part]
        assert_equal(kinds, [["int"], ["bool"]], "The types of what is in the two lists.")


def test_padded(shared_epoch):
    """In order, padded: every rank has as many, and the padding comes from the beginning."""
    for n, world_size in ((10, 3), (12, 3), (7, 2), (9, 4), (11, 1)):
        compare(shared_epoch, n, world_size, **IN_ORDER)


@points(5)
def test_shuffled(shared_epoch, seed):
    """Shuffled: what torch's sampler gives, in any epoch and with any seed."""
    for epoch, start in ((0, 0), (1, 0), (7, 0), (0, seed), (5, seed)):
        options = {"epoch": epoch, "seed": start}
        got = shared_epoch.ask(23, 4, options, 1).value["parts"]
        samplers = [DistributedSampler(range(23), 4, rank, seed=start) for rank in range(4)]
        for sampler in samplers:
            sampler.set_epoch(epoch)
        mine = [part[0] for part in got]
        same(mine, [list(sampler) for sampler in samplers], "the indices", 23, options)
    compare(shared_epoch, 23, 4)


def test_few_samples(shared_epoch, seed):
    """Fewer samples than ranks, one, and none."""
    for n, world_size in ((2, 5), (1, 4), (3, 8), (4, 5), (0, 3), (0, 1)):
        compare(shared_epoch, n, world_size, **IN_ORDER)
        compare(shared_epoch, n, world_size, seed=seed)
        compare(shared_epoch, n, world_size, uneven="drop", **IN_ORDER)
        compare(shared_epoch, n, world_size, uneven="keep", **IN_ORDER)


def test_dropped(shared_epoch, seed):
    """With `"drop"` as few as possible go, off the end, and every rank has as many."""
    for n, world_size in ((10, 3), (12, 3), (11, 3), (9, 4)):
        compare(shared_epoch, n, world_size, uneven="drop", **IN_ORDER)
        compare(shared_epoch, n, world_size, uneven="drop", seed=seed)


def test_kept(shared_epoch, seed):
    """With `"keep"` every sample comes once on one rank."""
    for n, world_size in ((10, 3), (12, 3), (11, 3), (9, 4)):
        compare(shared_epoch, n, world_size, uneven="keep", **IN_ORDER)
        compare(shared_epoch, n, world_size, uneven="keep", seed=seed)


def test_real(shared_epoch, seed):
    """The booleans of all ranks mark each sample once, whatever happens to an uneven rest."""
    for n, world_size in ((10, 3), (12, 3), (2, 5), (1, 4), (3, 8), (0, 2)):
        for uneven in ("pad", "drop", "keep"):
            compare(shared_epoch, n, world_size, real=True, uneven=uneven, seed=seed)
    compare(shared_epoch, 20, 3, real=True, consumed=9, seed=seed)


def test_resumed(shared_epoch, seed):
    """What was consumed stays out, and the rest is shared among any number of ranks."""
    for consumed, world_size in ((9, 4), (4, 2), (10, 4), (22, 2), (23, 3), (19, 8)):
        for uneven in ("pad", "drop", "keep"):
            options = {"uneven": uneven, "consumed": consumed, "epoch": 3}
            compare(shared_epoch, 23, world_size, seed=seed, **options)
            compare(shared_epoch, 23, world_size, shuffle=False, **options)


def test_streams(shared_epoch, seed):
    """The order depends on seed and epoch alone; no global stream is moved."""
    one, two = (shared_epoch.ask(40, 2, {"seed": seed}, other).value for other in (1, 2))
    assert_holds(one["parts"] == two["parts"], "The same seed and epoch gave another order.")
    assert_holds(one["global streams"], "A global stream of random numbers was moved.")
    later = shared_epoch.ask(40, 2, {"seed": seed, "epoch": 1}, 1).value
    assert_holds(later["parts"] != one["parts"], "Another epoch has the same order.")


def test_refuses(refused_rank):
    """A rank or a word for `uneven` that there is not raises `ValueError`."""
    for rank, options in ((3, {}), (-1, {}), (7, {"uneven": "keep"}), (0, {"uneven": "wrap"})):
        for n in (10, 12):
            more = "".join(f", {name}={value!r}" for name, value in options.items())
            call = ("call", f"distributed_indices({n}, {rank}, 3{more})")
            what = "A rank or a word that there is not."
            assert_raises(refused_rank.ask(n, rank, 3, options), "ValueError", what, call)
    got = refused_rank.ask(10, 2, 3, IN_ORDER).value
    what = "distributed_indices(10, 2, 3, shuffle=False): indices, and which are real."
    assert_equal(list(got), list(parts_of(10, 3, **IN_ORDER)[2]), what)
