"""The course checks itself: every known answer of every exercise gets the verdict it must get.

A proof stands in the ledger while nothing that it rests on has changed (`grader.proving.ledger`).
Here is proved what the ledger does not vouch for, and by turns what it does: with every commit
another tenth, with a seed of that commit, and another notebook. Where the code that judges has
changed, by turns a fifth; then `make prove` is due. The run says at its end what it proved
(`tests/account.py`).
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest

from grader.course.course import Course
from grader.course.tried import Kind, read_tried
from grader.proving.chance import found_by_chance, refused_by_chance
from grader.proving.digest import notebook_digest
from grader.proving.ledger import State, read_ledger, read_notebook_digest, state_of, turn
from grader.proving.notebooks import run_again
from grader.proving.processes import spawned
from grader.proving.prove import settle
from grader.proving.trial import equivalents, try_exercise
from grader.proving.tried import grade_tried, task_of
from grader.proving.validate import orphans, pacing, prove
from grader.verdict.known import marks_digest
from tests import ROOT, passed
from tests.account import PROOF
from tests.proving.commit import HOLDS, JUDGED_ANEW, commit

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
NAMES = [exercise.id for chapter in CHAPTERS for exercise in chapter.exercises]

COUNT, SEED = commit()
SECONDS = {
    name: row.seconds
    for chapter in CHAPTERS
    for name, row in read_ledger(chapter).items()
    if row.seconds
}
TURNS = {
    State.HOLDS: turn(NAMES, COUNT, HOLDS, SECONDS),
    State.JUDGED_ANEW: turn(NAMES, COUNT, JUDGED_ANEW, SECONDS),
    State.OTHER_PYTHON: turn(NAMES, COUNT, HOLDS, SECONDS),
    State.CHANGED: set(NAMES),
}
"""Which exercises are proved here, by how their rows stand."""

NOTEBOOKS = turn(
    [chapter.id for chapter in CHAPTERS], COUNT + 5, len(CHAPTERS), passed.seconds("notebooks")
)
"""Which notebook runs again though nothing has changed; another one than runs as a student's (`passed`)."""

MUTANTS = {State.CHANGED: 4, State.JUDGED_ANEW: 8}
"""One mutant in so many is tried, by how the row stands; else none. Another Python makes no run longer."""

TASKS = 12
"""Proofs that one process makes."""


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[Callable[..., Any]]:
    """Call a function of a chapter in a young process: what forks all the time must be small.

    A fork's cost grows with the memory of the process, and this one's grows with each test it ran.
    """
    with spawned(1, TASKS) as pool:
        yield lambda *args, **kwargs: pool.submit(_settled, *args, **kwargs).result()


def _settled(function, chapter, *args, **kwargs):
    settle(chapter)
    return function(chapter, *args, **kwargs)


@cache
def state(chapter, exercise_id):
    exercise = chapter.exercise(exercise_id)
    return state_of(chapter, exercise, read_ledger(chapter).get(exercise_id))


@pytest.mark.parametrize(("chapter", "exercise"), EXERCISES)
def test_known_answers_get_their_verdicts(elsewhere, record_property, chapter, exercise):
    how = state(chapter, exercise.id)
    proved = exercise.id in TURNS[how]
    record_property(PROOF, (exercise.id, how.value, proved))
    if not proved:
        return  # the ledger vouches for it
    proof = elsewhere(prove, chapter, exercise, SEED)
    problems = list(proof.problems)
    if how is State.CHANGED:
        problems += elsewhere(found_by_chance, chapter, exercise, proof.marks, SEED)
        problems += elsewhere(refused_by_chance, chapter, exercise, SEED)
    assert not problems, f"seed {SEED}\n" + "\n".join(map(str, problems))
    if how is State.HOLDS:
        row = read_ledger(chapter)[exercise.id]
        found = proof.checks, proof.mistakes, proof.alternates
        assert found == (row.checks, row.mistakes, row.alternates), "run: make prove"


@pytest.mark.parametrize(("chapter", "exercise"), EXERCISES)
def test_right_answers_that_somebody_tried_are_accepted(elsewhere, chapter, exercise):
    """All that were tried are graded in `make prove`; a right one that is refused is not to wait for it."""
    if exercise.id not in TURNS[state(chapter, exercise.id)]:
        return
    right = [one for one in read_tried(chapter, exercise) if one.kind is Kind.RIGHT]
    found = elsewhere(_graded, chapter, exercise, right)
    refused = [f"{one.answer.name} is {one.outcome}" for one in found if not one.full]
    assert not refused, f"seed {SEED}\n" + "\n".join(refused)


def _graded(chapter, exercise, answers):
    ((_, found),) = grade_tried([task_of(chapter, exercise, answers)], SEED, 1, boxed=False)
    return found


@pytest.mark.parametrize(("chapter", "exercise"), EXERCISES)
def test_a_sample_of_mutants_dies(elsewhere, chapter, exercise):
    """All of them die in `make prove`."""
    how = state(chapter, exercise.id)
    if how not in MUTANTS or exercise.id not in TURNS[how]:
        return
    trial = elsewhere(try_exercise, chapter, exercise, SEED, every=MUTANTS[how], first=COUNT)
    assert not trial.survivors, f"seed {SEED}\n" + "\n".join(m.id for m in trial.survivors)
    assert not trial.broken, f"seed {SEED}\n" + "\n".join(trial.broken)
    assert not trial.stale


@pytest.mark.parametrize(
    "chapter",
    [pytest.param(c, marks=pytest.mark.xdist_group(c.id), id=c.id) for c in CHAPTERS],
)
def test_the_reference_notebook_runs_again(record_property, chapter):
    """All of them run in `make prove`."""
    holds = read_notebook_digest(chapter) == notebook_digest(chapter)
    proved = not holds or chapter.id in NOTEBOOKS
    how = State.HOLDS if holds else State.CHANGED
    record_property(PROOF, (chapter.id, how.value, proved))
    if proved:
        trouble = run_again(chapter)
        assert not trouble, trouble


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.id)
def test_no_file_belongs_to_nothing(chapter):
    known = {exercise.id for exercise in chapter.exercises}
    assert not [*orphans(chapter), *pacing(chapter)]
    assert set(equivalents(chapter)) <= known
    assert set(read_ledger(chapter)) <= known


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.id)
def test_marks_of_mistakes_are_what_a_proof_wrote(chapter):
    """To run them again would not tell: unwritten memory and what ranks say leave others in some."""
    rows = read_ledger(chapter)
    edited = [name for name, row in rows.items() if row.known != marks_digest(chapter, name)]
    assert not edited, f"known.json is not what a proof wrote; run: undertorch prove {edited[0]}"


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.id)
def test_no_reference_answer_is_put_before_a_person(chapter):
    """The first grade cell of a kernel imports much; none of that may look like tampering."""
    assert "A person will look" not in chapter.reference.read_text(encoding="utf-8")
