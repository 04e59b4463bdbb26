"""Checks of `vocab_loss`: against cross-entropy in one process, and the numbers that were sent."""

import pytest
import torch
import torch.nn.functional as F

from grader import (
    about,
    assert_close,
    assert_equal,
    assert_holds,
    assert_tensor,
    claimed,
    gate,
    points,
)
from grader.ch10_sharding.layers import SUMS, assert_gradients, normal
from grader.ch10_sharding.layouts import kind_of
from grader.ch10_sharding.shards import bounds, parts

RANKS, FEATURES, WORDS = 3, 4, 8


def draw_targets(rng, tokens, words, ranks, ignored=0):
    """Return targets of which each rank has one at each end of its part; some at last are -100."""
    found = torch.randint(words, (tokens,), generator=rng)
    ends = [end for at, size in bounds(words, ranks) if size for end in (at, at + size - 1)]
    found[: len(ends)] = torch.tensor(ends)[:tokens]
    if ignored:
        found[-ignored:] = -100
    return found


@pytest.fixture
def hidden(rng):
    return normal(rng, 9, FEATURES)


@pytest.fixture
def table(rng):
    return normal(rng, WORDS, FEATURES)


@pytest.fixture
def tables(table):
    return [part.clone() for part in parts(table, RANKS)]


@pytest.fixture
def targets(rng):
    return draw_targets(rng, 9, WORDS, RANKS)


@pytest.fixture
def scale():
    return 1.0


@pytest.fixture
def ranks():
    return RANKS


@pytest.fixture
def members():
    return list(range(RANKS))


def alone(hidden, table, targets, scale):
    """Return the loss and both gradients of one process."""
    leaves = [t.clone().requires_grad_() for t in (hidden, table)]
    loss = F.cross_entropy(leaves[0] @ leaves[1].T, targets)
    return loss.detach(), torch.autograd.grad(loss * scale, leaves)


def assert_losses(found, right, rows=()):
    for rank, mine in enumerate(found):
        with about(*rows, of=f"The loss on rank {rank}. "):
            assert_close(mine["loss"], right, rtol=1e-9, atol=1e-9, because=SUMS)


def assert_all(found, hidden, table, targets, scale=1.0, rows=()):
    loss, (of_hidden, of_table) = alone(hidden, table, targets, scale)
    assert_losses(found, loss, rows)
    expected = [{"hidden": of_hidden, "table": part} for part in parts(of_table, len(found))]
    assert_gradients(found, expected, ["hidden", "table"], rows)


@gate
def test_a_number(vocab_losses):
    """Returns a tensor without dims on every rank, and leaves `hidden` as it is."""
    for rank, mine in enumerate(vocab_losses.value):
        assert_tensor(mine["loss"], dtype=torch.float64, shape=())
        assert_holds(mine["untouched"], f"The `hidden` of rank {rank} was changed.")


@points(2)
def test_loss(vocab_losses, hidden, table, targets, scale):
    """Every rank has the loss of one process."""
    assert_losses(vocab_losses.value, alone(hidden, table, targets, scale)[0])


@points(2)
def test_gradients(vocab_losses, hidden, table, targets, scale):
    """The gradient of `hidden` is whole, that of `table` is the rank's part."""
    _, (of_hidden, of_table) = alone(hidden, table, targets, scale)
    expected = [{"hidden": of_hidden, "table": part} for part in parts(of_table, RANKS)]
    assert_gradients(vocab_losses.value, expected, ["hidden", "table"], ())


def test_ignored(vocab_losses, hidden, table, tables, ranks, members, rng):
    """Tokens whose target is -100 are not counted; the loss is one term of several."""
    targets = draw_targets(rng, 9, WORDS, RANKS, ignored=3)
    found = vocab_losses.ask(hidden, tables, targets, 0.5, ranks, members).value
    assert_all(found, hidden, table, targets, 0.5, (("targets", repr(targets.tolist())),))


def test_uneven(vocab_losses, rng):
    """Words that do not come out even, and a rank without any."""
    for words, ranks in ((5, 4), (1, 2)):
        hidden, table = normal(rng, 6, FEATURES), normal(rng, words, FEATURES)
        targets = draw_targets(rng, 6, words, ranks, ignored=1)
        tables = [part.clone() for part in parts(table, ranks)]
        asked = vocab_losses.ask(hidden, tables, targets, 1.0, ranks, list(range(ranks)))
        rows = (("words by rank", repr([len(mine) for mine in tables])),)
        assert_all(asked.value, hidden, table, targets, 1.0, rows)


def test_large_logits(vocab_losses, hidden, table, tables, targets, scale, ranks, members):
    """Logits of a size of thousands."""
    for factor in (4000.0, -4000.0):
        large = hidden * factor
        found = vocab_losses.ask(large, tables, targets, scale, ranks, members).value
        assert_all(found, large, table, targets, scale, (("logits", "some thousands"),))


def test_groups(vocab_losses, hidden, table, targets, scale):
    """A group of ranks 1 and 2 alone."""
    tables = [part.clone() for part in parts(table, 2)]
    found = vocab_losses.ask(hidden, tables, targets, scale, 3, [1, 2]).value
    assert_all(found, hidden, table, targets, scale, (("group", "ranks 1 and 2"),))


@claimed
def test_messages(vocab_losses, hidden, table, targets, scale):
    """Forward: two all-reduces of three numbers for each token. Backward: one, of `hidden`'s bytes."""
    assert_all(vocab_losses.value, hidden, table, targets, scale)
    most = 3 * len(hidden) * 8
    for rank, mine in enumerate(vocab_losses.value):
        kinds = [kind_of(name) for name, _ in mine["forward"]]
        assert_equal(kinds, ["all_reduce"] * 2, f"What rank {rank} called in forward.")
        size = sum(size for _, size in mine["forward"])
        shown = ("expected", f"{most} bytes at most"), ("got", f"{size} bytes")
        assert_holds(size <= most, f"Rank {rank} brings too much in forward.", *shown)
        said = [(kind_of(name), size) for name, size in mine["backward"]]
        wanted = [("all_reduce", hidden.nbytes)]
        assert_equal(said, wanted, f"What rank {rank} called in backward.")
