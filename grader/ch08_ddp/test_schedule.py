"""Checks of `schedule`: what a clock makes of the plans, and what the stages hold."""

import pytest

from grader import Mismatch, assert_equal, compared, gate, points
from grader.ch08_ddp.pipeline import Plan, ends, most_held, waiting


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
        assert_nobody_waits_for_ever(plans, where)
        assert_equal(ends(plans), 3 * (micro_batches + stages - 1), f"{where}: units of time.")


def assert_nobody_waits_for_ever(plans: list[Plan], where: str) -> None:
    stuck = waiting(plans)
    compared(stuck)
    if stuck:
        rows = ((f"stage {stage} waits at", str((kind, n))) for stage, kind, n in stuck)
        raise Mismatch(f"{where}: stages wait for each other for ever.", tuple(rows))


def assert_few_held(plans: list[Plan], where: str) -> None:
    """Fail if stage `s` holds the activations of more than `stages - s` micro-batches at once."""
    held = [most_held(plan) for plan in plans]
    compared(held)
    for stage, most in enumerate(held):
        if most > len(plans) - stage:
            rows = (
                ("expected", f"{len(plans) - stage} at most"),
                ("got", str(most)),
                ("its plan", " ".join(f"{kind}{n}" for kind, n in plans[stage])),
            )
            raise Mismatch(f"{where}: micro-batches that stage {stage} holds at once.", rows)


@gate
def test_every_action_once(scheduled, sizes):
    """Each stage has each forward and each backward once."""
    for kind in ("gpipe", "1f1b"):
        for plans, stages, micro_batches in asked(scheduled, kind, sizes):
            where = f"{kind}, {stages} stages, {micro_batches} micro-batches"
            assert_equal(len(plans), stages, f"{where}: the number of plans.")
            right = sorted((k, n) for k in "FB" for n in range(micro_batches))
            for stage, plan in enumerate(plans):
                assert_equal(sorted(plan), right, f"{where}: the actions of stage {stage}, sorted.")


def test_gpipe(scheduled, sizes):
    """GPipe: all forwards first, and no stage waits longer than it must."""
    for plans, _, micro_batches in asked(scheduled, "gpipe", sizes):
        for plan in plans:
            kinds = "".join(kind for kind, _ in plan)
            right = "F" * micro_batches + "B" * micro_batches
            assert_equal(kinds, right, "gpipe: forwards and backwards of a stage, in order.")
    finish(scheduled, "gpipe", sizes)


def test_ends(scheduled, sizes):
    """1F1B: nobody waits for ever."""
    for plans, stages, micro_batches in asked(scheduled, "1f1b", sizes):
        where = f"{stages} stages, {micro_batches} micro-batches"
        assert_nobody_waits_for_ever(plans, where)


def test_time(scheduled, sizes):
    """1F1B: all is done as early as with GPipe."""
    finish(scheduled, "1f1b", sizes)


@points(2)
def test_activations(scheduled, sizes):
    """1F1B: stage `s` holds no more than `stages - s` micro-batches."""
    for plans, stages, micro_batches in asked(scheduled, "1f1b", sizes):
        assert_few_held(plans, f"{stages} stages, {micro_batches} micro-batches")


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
                assert_few_held(plans, where)
        finish(scheduled, kind, SMALL)
