"""Proves exercises and notebooks, several at a time: every known answer and mutant, every output."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from dataclasses import replace
from functools import cache

from grader.box.fork import Fork
from grader.building.graders import ready_probes
from grader.course.course import Chapter, Exercise
from grader.inside.process import pages
from grader.inside.process.budget import Budget, changed
from grader.proving.chance import found_by_chance, refused_by_chance
from grader.proving.digest import exercise_digest, judges_digest, python_version
from grader.proving.ledger import Row, State, read_ledger, state_of
from grader.proving.notebooks import run_again
from grader.proving.processes import spawned
from grader.proving.trial import Trial, try_exercise
from grader.proving.validate import Proof, prove
from grader.verdict.grading import ExerciseGrader
from grader.verdict.known import PRACTICE_SEED, marks_digest
from grader.verdict.marks import Mark

Known = dict[str, list[Mark]]
"""The marks of an exercise's mistakes, by the keys of their lines in `known.json`."""


def prove_exercises(
    exercises: Sequence[tuple[Chapter, Exercise]], seed: int, jobs: int
) -> Iterator[tuple[Proof, Trial, Known]]:
    """Yield proof, trial and known mistakes' marks of each exercise as it ends; `jobs` processes take one at a time.

    The chapter with the longest proof begins first, with that one.
    """
    provers = _Provers(seed)
    threads = ThreadPoolExecutor(max(1, jobs))
    try:
        begun = [threads.submit(provers.prove, *pair) for pair in _longest_first(exercises)]
        for ended in as_completed(begun):
            yield ended.result()
    finally:
        threads.shutdown(cancel_futures=True)
        provers.close()


def _longest_first(
    exercises: Sequence[tuple[Chapter, Exercise]],
) -> list[tuple[Chapter, Exercise]]:
    """Return them by how long they took, chapter by chapter: else the longest ends alone."""
    chapters: dict[str, list[tuple[float, Chapter, Exercise]]] = {}
    for chapter, exercise in exercises:
        one = _length(chapter, exercise), chapter, exercise
        chapters.setdefault(chapter.id, []).append(one)
    for each in chapters.values():
        each.sort(key=lambda one: one[0], reverse=True)
    begun = sorted(chapters.values(), key=lambda each: each[0][0], reverse=True)
    return [(chapter, exercise) for each in begun for _, chapter, exercise in each]


def _length(chapter: Chapter, exercise: Exercise) -> float:
    """Return how long a proof takes, in a unit of its own. What takes students long does so here, too."""
    row = read_ledger(chapter).get(exercise.id)
    if row is None:
        return exercise.minutes
    known = row.mistakes + row.alternates + 1
    return (row.seconds or exercise.minutes) * (known + row.mutants) / known


class _Provers:
    """A process for each thread that asks. It serves one chapter: it grows with what it loads, and a
    fork's cost with its memory.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._own = threading.local()
        self._begun: list[ProcessPoolExecutor] = []

    def prove(self, chapter: Chapter, exercise: Exercise) -> tuple[Proof, Trial, Known]:
        """Prove an exercise in this thread's process."""
        if getattr(self._own, "chapter", "") != chapter.id:
            self._begin(chapter)
        process: ProcessPoolExecutor = self._own.process
        return process.submit(_prove_and_try, chapter, exercise, self._seed).result()

    def _begin(self, chapter: Chapter) -> None:
        if hasattr(self._own, "process"):
            self._own.process.shutdown()
        self._own.process = spawned(1)
        self._own.chapter = chapter.id
        self._begun.append(self._own.process)

    def close(self) -> None:
        """End the processes."""
        for process in self._begun:
            process.shutdown()


def _prove_and_try(chapter: Chapter, exercise: Exercise, seed: int) -> tuple[Proof, Trial, Known]:
    settle(chapter)
    proof = prove(chapter, exercise, seed)
    chance = found_by_chance(chapter, exercise, proof.marks, seed)
    if state_of(chapter, exercise, read_ledger(chapter).get(exercise.id)) is State.CHANGED:
        # those of a row were asked when it was written, and are with each turn that they have
        chance += refused_by_chance(chapter, exercise, seed)
    proof = replace(proof, problems=(*proof.problems, *chance))
    trial = try_exercise(chapter, exercise, seed)
    marks = proof.marks if seed == PRACTICE_SEED else None
    return proof, trial, known_marks(chapter, exercise, marks)


@cache
def settle(chapter: Chapter) -> None:
    """Make forks of this process cheap, with all that a chapter's probes need in it: it forks all the time."""
    ready_probes(chapter)
    gc.collect()
    gc.freeze()
    pages.gather()


def known_marks(
    chapter: Chapter, exercise: Exercise, marks: Mapping[str, Sequence[Mark]] | None = None
) -> Known:
    """Return what an exercise's known mistakes do in a notebook, for `write_known`.

    `marks` are those of a proof with a notebook's seed, by the mistakes' names; else they are made.
    """
    probes = ready_probes(chapter)
    grader = ExerciseGrader(chapter, exercise, probes)
    if marks is None:
        budget = changed(Budget(), exercise.budget)
        marks = grader.know_mistakes(PRACTICE_SEED, lambda: Fork(probes, budget))
    keys = grader.mistake_keys()
    return {keys[name]: list(known) for name, known in marks.items()}


def run_notebooks(chapters: Sequence[Chapter], jobs: int) -> Iterator[tuple[Chapter, str]]:
    """Yield chapters as their reference notebooks have run again, with "" or what went wrong."""
    with ThreadPoolExecutor(max(1, jobs)) as pool:
        begun = {pool.submit(run_again, chapter): chapter for chapter in chapters}
        for ended in as_completed(begun):
            yield begun[ended], ended.result()


def row_of(proof: Proof, trial: Trial, seed: int) -> Row:
    """Return what the ledger keeps of a proof without problems and a trial without survivors.

    The marks of its mistakes are to be written before.
    """
    return Row(
        exercise_digest(trial.chapter, proof.exercise),
        judges_digest(),
        marks_digest(trial.chapter, proof.exercise.id),
        python_version(),
        seed,
        proof.checks,
        proof.mistakes,
        proof.alternates,
        trial.made,
        trial.equivalent,
        round(proof.seconds),
    )
