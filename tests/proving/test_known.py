"""A notebook runs no known mistake: what each of them does there is kept, and is of today."""

import pytest

from grader.building.graders import ready_probes
from grader.course.course import Course
from grader.verdict.grading import ExerciseGrader
from grader.verdict.known import read_known
from tests import ROOT


@pytest.mark.parametrize("chapter", Course(ROOT).chapters(), ids=lambda chapter: chapter.id)
def test_every_mistake_has_its_line(chapter):
    probes = ready_probes(chapter)
    stale = [
        exercise.id
        for exercise in chapter.exercises
        if set(ExerciseGrader(chapter, exercise, probes).mistake_keys().values())
        != read_known(chapter, exercise.id)[1].keys()
    ]
    assert not stale, f"run: undertorch prove {' '.join(stale)}"


@pytest.mark.parametrize("chapter", Course(ROOT).chapters(), ids=lambda chapter: chapter.id)
def test_every_scored_check_is_failed_by_a_mistake(chapter):
    """A check that was loosened until it rejects nothing known proves nothing."""
    probes = ready_probes(chapter)
    unfailed = {}
    for exercise in chapter.exercises:
        checks = ExerciseGrader(chapter, exercise, probes).suite.checks
        lines = read_known(chapter, exercise.id)[1].values()
        failed = {n for line in lines for n, mark in enumerate(line) if mark.failure is not None}
        scored = {check.name: number for number, check in enumerate(checks) if check.weight}
        never = {name for name, number in scored.items() if number not in failed}
        if never:
            unfailed[exercise.id] = never
    assert not unfailed
