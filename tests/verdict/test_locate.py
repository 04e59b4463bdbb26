"""A line is named only if a variant there gets full marks; nothing else is."""

from dataclasses import replace

import pytest

from grader.box.fork import Fork
from grader.building.graders import ready_probes
from grader.course.course import find_course
from grader.inside.process.budget import Budget
from grader.student.search import in_forks
from grader.submission.variants import Variant
from grader.verdict import locate as module
from grader.verdict.grading import ExerciseGrader
from grader.verdict.locate import locate

READ = """
def read_element(memory, size, stride, offset, itemsize, index):
    if len(index) != len(size):
        raise IndexError
    at = offset
    for n, s, i in zip(size, stride, index):
        if not -n <= i {} n:
            raise IndexError
        at += (i % n) * s
    return memory[at * itemsize : (at + {}) * itemsize]
"""


PATIENCE = 600
"""Seconds for a search that finds what it looks for, or is stopped, on a machine however busy."""


def stop_at(count):
    """Return what interrupts a search after so many variants."""

    def stop(tried, left):
        if tried == count:
            raise KeyboardInterrupt

    return stop


@pytest.fixture(scope="module")
def search():
    """Look for the wrong line of an answer to read_element; return what was found."""
    chapter = find_course().chapter("ch02_strides")
    probes = ready_probes(chapter)
    grader = ExerciseGrader(chapter, chapter.exercise("read_element"), probes)

    def run(text, alone=False, **how):
        attempt = grader.attempt_with(text)
        subject = in_forks(attempt, "read_element", grader.attempt_with, probes, Budget())
        if alone:
            subject = replace(subject, aside=None)
        return locate(grader, subject, 0, **how)

    run.grader, run.probes = grader, probes
    return run


def test_the_line_and_the_change(search):
    found = search(READ.format("<=", 1), seconds=PATIENCE)
    one = found.variants[0]
    assert (one.line, one.now.strip()) == (7, "if not -n <= i < n:")
    attempt = search.grader.attempt_with(one.source)
    verdict = search.grader.grade(
        attempt, lambda: Fork(search.probes), 3, lambda: Fork(search.probes)
    )
    assert verdict.points == verdict.max_points


def test_a_copy_finds_what_one_process_finds(search, monkeypatch):
    monkeypatch.setattr(module, "AFTER", 0.0)  # how many more are found depends on the time
    text = READ.format("<=", 1)
    both, alone = search(text, seconds=PATIENCE), search(text, seconds=PATIENCE, alone=True)
    assert both.variants == alone.variants and both.tried == alone.tried


def test_what_is_only_added_before_a_line_names_none_beside_others():
    changed, added = Variant(2, "<", "", "", ""), Variant(7, "", "", "", "")
    elsewhere = replace(added, line=5)
    assert module._named([added, changed]) == [changed]
    assert module._named([added, elsewhere]) == [added]
    assert module._named([]) == []


def test_two_mistakes_are_no_one_line(search):
    found = search(READ.format("<=", 2), seconds=PATIENCE, progress=stop_at(9))
    assert (found.variants, found.why, found.tried) == ((), "", 9)


def test_a_right_answer_has_no_wrong_line(search):
    assert search(READ.format("<", 1), seconds=PATIENCE).why == "Every check passes."


def test_what_breaks_a_rule_is_no_candidate(search):
    found = search("def read_element(*given):\n    import ctypes\n", seconds=30)
    assert found.variants == ()


def test_the_time_is_kept_for_the_whole(search):
    found = search(READ.format("<=", 2), seconds=1)
    assert found.seconds < 30 and not found.all_tried


def test_an_interrupt_leaves_what_was_found(search):
    found = search(READ.format("<=", 2), seconds=PATIENCE, progress=stop_at(2))
    assert found.interrupted and found.tried == 2


def test_lines_that_ran_where_it_failed_are_suspected(search, monkeypatch):
    seen = []
    real = module.variants

    def spy(source, right, wrong, suspicion):
        seen.append(suspicion)
        return real(source, right, wrong, suspicion)

    monkeypatch.setattr(module, "variants", spy)
    search(READ.format("<=", 1), seconds=PATIENCE, progress=stop_at(1))
    (suspicion,) = seen
    assert set(suspicion) <= set(range(2, 10))  # a definition is no part of a run
    assert 0 < suspicion[6] <= 1 and suspicion.get(7, 0) <= suspicion[6]
