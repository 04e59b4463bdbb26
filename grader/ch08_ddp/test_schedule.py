"""Checks of `schedule`: what a clock makes of the plans, and what the stages hold."""

import pytest

from grader import Mismatch, assert_equal, compared, gate
from grader.ch08_ddp.pipeline import ends, most_held


@pytest.fixture
def sizes():
    """Pairs of stages and micro-batches, fewer and more of one than of the other."""
    return [(4, 9), (2, 2), (3, 4), (4, 4), (3, 12), (6, 7)]


@pytest.fixture
def kind():
    return "1f1b"


SMALL = [(1, 1), (1, 5), (5, 1), (4, 2), (7, 3), (4, 3)]


def as_plans(value):
    """Return plans as lists of tuples, or fail where they are none."""
    try:
        return [[(str(kind), int(number)) for kind, number in plan] for plan in value]
    except (TypeError, ValueError):
        raise Mismatch(
            "Expected a list of plans of actions.", (("got", repr(value)[:100]),)
        ) from None


def asked(scheduled, kind, sizes):
    got = scheduled.ask(kind, sizes).value
    return [(as_plans(plans), *size) for plans, size in zip(got, sizes, strict=True)]


def finish(scheduled, kind, sizes):
    """Fail unless the plans end, and as early as can be."""
    for plans, stages, micro_batches in asked(scheduled, kind, sizes):
        where = f"{kind}, {stages} stages, {micro_batches} micro-batches"
        end = ends(plans)
        assert_equal(end is not None, True, f"{where}: whether every stage comes to its end.")
        assert_equal(end, 3 * (micro_batches + stages - 1), f"{where}: units of time.")


@gate
def test_every_action_once(scheduled, sizes):
    """Each stage has each forward and each backward once."""
    for kind in ("gpipe", "1f1b"):
        for plans, stages, micro_batches in asked(scheduled, kind, sizes):
            assert_equal(len(plans), stages, "The number of plans.")
            right = sorted((k, n) for k in "FB" for n in range(micro_batches))
            for plan in plans:
                assert_equal(sorted(plan), right, "The actions of a stage, sorted.")


def test_gpipe(scheduled, sizes):
    """GPipe: all forwards first, and no stage waits longer than it must."""
    for plans, _, micro_batches in asked(scheduled, "gpipe", sizes):
        for plan in plans:
            kinds = [kind for kind, _ in plan]
            assert_equal(kinds, ["F"] * micro_batches + ["B"] * micro_batches, "The order.")
    finish(scheduled, "gpipe", sizes)


def test_ends(scheduled, sizes):
    """1F1B: nobody waits for ever."""
    for plans, stages, micro_batches in asked(scheduled, "1f1b", sizes):
        where = f"{stages} stages, {micro_batches} micro-batches"
        assert_equal(
            ends(plans) is not None, True, f"{where}: whether every stage comes to its end."
        )


def test_time(scheduled, sizes):
    """1F1B: all is done as early as with GPipe."""
    finish(scheduled, "1f1b", sizes)


def test_activations(scheduled, sizes):
    """1F1B: stage `s` holds no more than `stages - s` micro-batches."""
    for plans, stages, micro_batches in asked(scheduled, "1f1b", sizes):
        compared([most_held(plan) for plan in plans])
        for stage, plan in enumerate(plans):
            assert_equal(
                most_held(plan) <= stages - stage,
                True,
                f"{stages} stages, {micro_batches} micro-batches: whether stage {stage} keeps to it.",
            )


def test_few_micro_batches(scheduled):
    """Single stages, single micro-batches, and fewer micro-batches than stages."""
    for kind in ("gpipe", "1f1b"):
        for plans, stages, micro_batches in asked(scheduled, kind, SMALL):
            where = f"{kind}, {stages} stages, {micro_batches} micro-batches"
            right = sorted((k, n) for k in "FB" for n in range(micro_batches))
            assert_equal(len(plans), stages, f"{where}: the number of plans.")
            for stage, plan in enumerate(plans):
                assert_equal(sorted(plan), right, f"{where}: the actions of stage {stage}, sorted.")
            if kind == "1f1b":
                held = [most_held(plan) <= stages - stage for stage, plan in enumerate(plans)]
                assert_equal(
                    held, [True] * stages, f"{where}: which stages hold no more than they may."
                )
        finish(scheduled, kind, SMALL)
