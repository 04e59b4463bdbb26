"""What a student reads where a check fails: sentences, with what shows them."""

import pytest

from grader import about, assert_holds, assert_raises
from grader.evidence.wire.codec import encode
from grader.evidence.wire.raised import report
from grader.inside.instruments.ranks import RanksHung
from grader.inside.probe import Probe
from grader.verdict.compare import Mismatch, Record, recording
from grader.verdict.interview import Evidence, Raised
from grader.verdict.verdict import raised_message


def test_a_condition_that_holds_says_nothing():
    assert_holds(True, "Nobody reads this.")


def test_a_condition_that_does_not_is_told_by_its_own_words():
    with pytest.raises(Mismatch) as caught:
        assert_holds(False, "Too much was sent.", ("expected", "8 bytes"), ("got", "16 bytes"))
    assert caught.value.what == "Too much was sent."
    assert caught.value.rows == (("expected", "8 bytes"), ("got", "16 bytes"))


def test_a_condition_is_recorded_so_that_a_diagnosis_can_match_it():
    record = Record()
    token = recording.set(record)
    try:
        assert_holds(True, "")
    finally:
        recording.reset(token)
    assert [comparison.got for comparison in record.comparisons] == [True]


def test_what_a_tool_of_ours_explains_is_shown_as_it_is():
    hung = RanksHung("The ranks wait for each other: rank 1 waited at all_reduce #2.")
    assert raised_message(Raised.from_data(report(hung))).what == str(hung)


def test_what_a_comparison_is_about_stands_before_its_own_words():
    with pytest.raises(Mismatch) as caught, about(("on", "3 ranks"), of="Rank 1: "):
        assert_holds(False, "too much was sent.", ("got", "16 bytes"))
    assert caught.value.what == "Rank 1: too much was sent."
    assert caught.value.rows == (("on", "3 ranks"), ("got", "16 bytes"))
    assert str(caught.value) == "Rank 1: too much was sent.\non: 3 ranks\ngot: 16 bytes"


def evidence(raised):
    """What comes of a probe in which this was raised."""
    return Evidence(
        Probe("moved", lambda student: None, (), frozenset()),
        encode({}),
        {"value": None, "refused": None, "raised": raised and report(raised), "changed": {}},
    )


def test_an_error_of_the_kind_that_is_asked_for_is_right():
    assert_raises(evidence(KeyError("w")), "LookupError", "An unknown name was taken.")
    assert_raises(evidence(KeyError("w")), ("TypeError", "KeyError"), "An unknown name was taken.")


@pytest.mark.parametrize(
    ("raised", "got"),
    [
        (None, "nothing was raised"),
        (ValueError("no w"), "ValueError: no w"),
        (TypeError(), "TypeError"),
    ],
)
def test_another_error_or_none_is_told(raised, got):
    with pytest.raises(Mismatch) as caught:
        assert_raises(evidence(raised), "KeyError", "An unknown name was taken.", ("on", "w"))
    assert caught.value.what == "An unknown name was taken."
    assert caught.value.rows == (("on", "w"), ("expected", "KeyError"), ("got", got))
