"""A trace that breaks off somewhere says nothing against a right answer."""

import random
import re
import sys

import pytest

from grader.box.fork import Fork
from grader.building.graders import ready_probes
from grader.course.course import find_course
from grader.course.reference import public_answer
from grader.evidence import record
from grader.evidence.wire.trace import FORK, JOIN
from grader.verdict.grading import ExerciseGrader

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a second witness needs Linux")


@pytest.fixture(scope="module")
def trace():
    """What ran for a question to the reference of `redistribute`: four ranks, and gloo's threads."""
    seen = []
    chapter = find_course().chapter("ch10_sharding")
    exercise = chapter.exercise("redistribute")
    probes = ready_probes(chapter)
    grader = ExerciseGrader(chapter, exercise, probes)
    attempt = grader.attempt_with(public_answer(chapter, exercise.id))
    with pytest.MonkeyPatch.context() as patch:
        read = record.read_trace
        patch.setattr(record, "read_trace", lambda *all_: seen.append(all_[0]) or read(*all_))
        grader.interview(attempt, lambda: Fork(probes), 0, lambda: Fork(probes))
    text = max(seen, key=len)
    assert FORK in text and b'"gloo:' in text  # of the latter nobody can tell what called it
    return text


def test_the_whole_is_quiet(trace):
    assert not record.read_trace(trace).trouble


def test_wherever_it_is_cut(trace, monkeypatch):
    monkeypatch.setattr(record, "_LAST", 10)  # so that a call is soon one that is judged
    calls = list(re.finditer(rb'"id": \d+, "name": "(?:c10d::)?', trace))
    talks = [number for number, call in enumerate(calls) if call[0].endswith(b"c10d::")]
    for number in talks[:4]:
        for after in calls[number : number + 20]:
            place = after.start()
            assert not record.read_trace(trace[:place], True, True).trouble, place


def test_whenever_a_fork_is_killed(trace):
    first = trace.index(FORK) + len(FORK)
    for place in random.Random(0).sample(range(first, len(trace)), 60):
        end = trace.find(JOIN, place)
        assert not record.read_trace(trace[:place] + trace[end:]).trouble, place


def test_what_a_killed_fork_ran_counts(trace):
    """Else whatever is off limits could be done there."""
    end = trace.index(JOIN)
    killed = record.read_trace(trace[: end - 20_000] + trace[end:])
    assert any(call[0] == "alltoall_base_" for call in killed.calls), killed.calls
