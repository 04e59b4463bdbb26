"""The course checks itself: every known answer of every exercise gets the verdict it must get."""

import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest

from grader.course.course import Course
from grader.proving.trial import equivalents, try_exercise
from grader.proving.validate import orphans, prove
from tests import ROOT

SEED = 7
CHAPTERS = Course(ROOT).chapters()
# An exercise is a group of its own: no fixture is shared. The long ones first, so that the workers end
# at the same time.
EXERCISES = [
    pytest.param(chapter, exercise, id=exercise.id, marks=pytest.mark.xdist_group(exercise.id))
    for chapter, exercise in sorted(
        ((chapter, exercise) for chapter in CHAPTERS for exercise in chapter.exercises),
        key=lambda pair: -pair[1].minutes,
    )
]


TASKS = 12
"""Proofs that one process makes."""


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[Callable[..., Any]]:
    """Call a function in a young process: what forks all the time must be small.

    A fork's cost grows with the memory of the process, and this one's grows with each test it ran.
    """
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn, max_tasks_per_child=TASKS) as pool:
        yield lambda function, *args, **kwargs: pool.submit(function, *args, **kwargs).result()


@pytest.mark.parametrize(("chapter", "exercise"), EXERCISES)
def test_known_answers_get_their_verdicts(elsewhere, chapter, exercise):
    proof = elsewhere(prove, chapter, exercise, SEED)
    assert not proof.problems, "\n".join(map(str, proof.problems))


@pytest.mark.parametrize(("chapter", "exercise"), EXERCISES)
def test_a_sample_of_mutants_dies(elsewhere, chapter, exercise):
    """Every eighth mutant here; all of them in `make trial`."""
    trial = elsewhere(try_exercise, chapter, exercise, SEED, every=8)
    assert not trial.survivors, "\n".join(mutant.id for mutant in trial.survivors)
    assert not trial.stale


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.id)
def test_no_file_belongs_to_nothing(chapter):
    assert not list(orphans(chapter))
    assert set(equivalents(chapter)) <= {exercise.id for exercise in chapter.exercises}


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.id)
def test_no_reference_answer_is_put_before_a_person(chapter):
    """The first grade cell of a kernel imports much; none of that may look like tampering."""
    assert "A person will look" not in chapter.reference.read_text(encoding="utf-8")
