"""What a student reads where a check fails: sentences, with what shows them."""

import pytest

from grader import assert_holds
from grader.core.compare import Mismatch, Record, recording
from grader.core.evidence import Raised
from grader.core.verdict import raised_message


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


def test_ranks_that_hang_raised_nothing():
    where = "no answer: rank 1 waited at all_reduce #2, rank 0 had left after all_reduce #1"
    message = raised_message(Raised("RanksHung", (), where, ()))
    assert message.what == f"The ranks wait for each other: {where}"
