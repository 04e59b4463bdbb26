"""A check that failed is run once more for the rest of its evidence; nothing new is asked, nothing else changes."""

from types import SimpleNamespace

import torch

from grader.inside.probe import Probe
from grader.verdict.checks import Suite
from grader.verdict.marks import mark_of
from tests.verdict.check_files import written

CHECKS = '''
import torch
from grader import about, assert_equal, assert_raises, assert_same_bits, free_choice

ONES = torch.ones(2)

def test_streams():
    """All three."""
    for name in ("python", "numpy", "torch"):
        with about(("stream", name)):
            assert_equal(GOT[name], 0, f"After {name}.")

def test_straight():
    """Both."""
    assert_equal(GOT["python"], 0, "The first.")
    assert_same_bits(ONES * GOT["torch"], 0 * ONES)

def test_asks(answers):
    """Two questions."""
    for n in (1, 2):
        assert_equal(answers.ask(n).value, 0)

def test_order():
    """Any order."""
    with free_choice():
        assert_equal(GOT["order"], [1, 2, 3], "Not a permutation.")
'''


def runs_of(tmp_path, **got):
    """Return the runs of all checks, and what was asked for."""
    asked = []

    def ask(probe, inputs):
        asked.append(inputs["n"])
        return SimpleNamespace(value=inputs["n"])

    def answered(probe, inputs):
        if inputs["n"] not in asked:
            raise LookupError(inputs["n"])
        return SimpleNamespace(value=inputs["n"])

    probe = Probe("answers", lambda student, n: n, ("n",), frozenset())
    text = CHECKS.replace("GOT", "_GOT").replace("ONES = ", f"_GOT = {got!r}\nONES = ")
    suite = Suite(written(tmp_path, text, "test_thing.py"), {"answers": probe}, {})
    return suite.run(SimpleNamespace(ask=ask, answered=answered), 0), asked


def test_all_comparisons_are_evidence_and_the_message_is_of_the_first(tmp_path):
    runs, asked = runs_of(tmp_path, python=1, numpy=0, torch=2, order=[1])
    streams, straight, asks, _ = runs
    assert str(streams.error) == "After python.\nstream: python\nexpected: 0\ngot: 1"
    assert len(streams.comparisons) == 1
    assert [one.passed for one in streams.evidence] == [False, True, False]
    assert str(straight.error).startswith("The first.")
    assert [one.passed for one in straight.evidence if one.kind != "kind"] == [False, False]
    assert asked == [1]
    assert [(one.got, one.given) for one in asks.evidence] == [(1, {"n": 1})]


def test_what_else_differs_tells_causes_apart(tmp_path):
    one, other, same = (
        mark_of(runs_of(tmp_path, python=1, numpy=n, torch=t, order=[1])[0][0])
        for n, t in ((0, 0), (1, 1), (0, 0))
    )
    assert one.same_failure(same)
    assert not one.same_failure(other)


def test_a_free_choice_is_no_evidence(tmp_path):
    one, other, right = (
        mark_of(runs_of(tmp_path, python=0, numpy=0, torch=0, order=order)[0][3])
        for order in ([2, 1], [3], [1, 2, 3])
    )
    assert one.same_failure(other)
    assert not one.same_failure(right)


def test_a_check_that_passed_is_not_run_again(tmp_path):
    runs, _ = runs_of(tmp_path, python=0, numpy=0, torch=0, order=[1, 2, 3])
    assert all(run.evidence == run.comparisons for run in runs if run.error is None)
    assert torch.get_num_threads()
