"""What is kept of proofs is of today: what each known mistake does in a notebook, and what rows count."""

from functools import cache

import pytest

from grader.building.graders import ready_probes
from grader.course.answers import Role
from grader.course.course import Course
from grader.proving.ledger import read_ledger
from grader.verdict.grading import ExerciseGrader
from grader.verdict.known import read_known
from tests import ROOT

SAYS = {"Mismatch", "StudentRaised"}
"""What a check that failed ends with: words of its own, or what the student's code raised."""

every_chapter = pytest.mark.parametrize("chapter", Course(ROOT).chapters(), ids=lambda c: c.id)


@cache
def graders(chapter):
    """Return the grader of each exercise of a chapter."""
    probes = ready_probes(chapter)
    return [ExerciseGrader(chapter, exercise, probes) for exercise in chapter.exercises]


@every_chapter
def test_every_mistake_has_its_line(chapter):
    """A notebook runs no known mistake."""
    stale = [
        grader.exercise.id
        for grader in graders(chapter)
        if set(grader.mistake_keys().values()) != read_known(chapter, grader.exercise.id)[1].keys()
    ]
    assert not stale, f"run: undertorch prove {' '.join(stale)}"


@every_chapter
def test_every_scored_check_is_failed_by_a_mistake(chapter):
    """A check that was loosened until it rejects nothing known proves nothing."""
    unfailed = {}
    for grader in graders(chapter):
        lines = read_known(chapter, grader.exercise.id)[1].values()
        failed = {n for line in lines for n, mark in enumerate(line) if mark.failure is not None}
        scored = {c.name: number for number, c in enumerate(grader.suite.checks) if c.weight}
        never = {name for name, number in scored.items() if number not in failed}
        if never:
            unfailed[grader.exercise.id] = never
    assert not unfailed


@every_chapter
def test_no_check_breaks_by_itself(chapter):
    """A check says what is wrong with an answer. One that ends with an error of its own rejects, too."""
    broken = {
        grader.exercise.id: mark.failure
        for grader in graders(chapter)
        for line in read_known(chapter, grader.exercise.id)[1].values()
        for mark in line
        if mark.failure is not None and mark.failure.kind not in SAYS
    }
    assert not broken


@every_chapter
def test_the_ledger_counts_what_there_is(chapter):
    """Whoever writes a row by hand has to count; the proofs by turns do the rest."""
    wrong = {}
    rows = read_ledger(chapter)
    for grader in graders(chapter):
        roles = [answer.role for answer in grader.answers]
        scored = sum(1 for check in grader.suite.checks if check.weight)
        there = scored, roles.count(Role.MISTAKE), roles.count(Role.ALTERNATE)
        row = rows.get(grader.exercise.id)
        if row is None or there != (row.checks, row.mistakes, row.alternates):
            wrong[grader.exercise.id] = there, row
    assert not wrong, f"run: undertorch prove {' '.join(wrong)}"
