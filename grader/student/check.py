"""Gives a student's work the verdicts that its notebook would give, from the saved files."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from grader.box.fork import Fork
from grader.course.course import Chapter
from grader.course.parameters import as_keywords
from grader.inside import serve
from grader.inside.probe import Probe
from grader.inside.process.budget import Budget, changed
from grader.student import journal
from grader.student.practice import for_practice
from grader.student.work import Work
from grader.verdict.grading import ExerciseGrader
from grader.verdict.known import PRACTICE_SEED
from grader.verdict.other_answers import naming, other_answers
from grader.verdict.verdict import Verdict


@dataclass(frozen=True)
class Checked:
    """A verdict, and the file it was given on."""

    chapter: Chapter
    judged: Path
    verdict: Verdict
    seconds: float


class Checker:
    """Checks work, each exercise in a fork of this process; keeps what it learned of mistakes."""

    def __init__(self) -> None:
        # as in a notebook and in the box: a fork of a process that used more threads hangs
        torch.set_num_threads(1)
        self._probes: dict[str, dict[str, Probe]] = {}
        self._graders: dict[str, ExerciseGrader] = {}

    def check(self, work: Work, exercises: Iterable[str]) -> Iterator[Checked]:
        """Yield the verdict on each exercise, and write it into the journal around the notebook."""
        folder = journal.folder_around(work.notebook.parent)
        log = journal.read(folder) if folder else []
        for exercise in exercises:
            start = time.monotonic()
            program = work.attempts[exercise].program
            verdict = self._verdict(work, exercise)
            verdict = naming(verdict, other_answers(program, work.attempts))
            notes = (*verdict.notes, *work.notes.get(exercise, ()), *_unsaved(work, exercise, log))
            verdict = for_practice(replace(verdict, notes=notes))
            if folder and work.written(exercise):
                source = work.attempts[exercise].source
                journal.write(
                    folder, [journal.verdict_entry(work.chapter.id, verdict, source, "check")]
                )
            yield Checked(work.chapter, work.judged(exercise), verdict, time.monotonic() - start)

    def _verdict(self, work: Work, exercise: str) -> Verdict:
        probes = self._probes_of(work.chapter)
        variant = work.variants[exercise]
        key = f"{exercise}({as_keywords(variant)})"
        if key not in self._graders:
            found = work.chapter.exercise(exercise, variant)
            self._graders[key] = ExerciseGrader(work.chapter, found, probes)
        grader = self._graders[key]
        budget = changed(Budget(), grader.exercise.budget)

        def fork() -> Fork:
            return Fork(probes, budget)

        return grader.grade(work.attempts[exercise], fork, PRACTICE_SEED, fork)

    def _probes_of(self, chapter: Chapter) -> dict[str, Probe]:
        if chapter.id not in self._probes:
            self._probes[chapter.id] = serve.prepare(chapter.probes, chapter.preload)
        return self._probes[chapter.id]


def _unsaved(work: Work, exercise: str, log: list[journal.Entry]) -> tuple[str, ...]:
    """Warn if the notebook graded another answer after its file was saved."""
    graded = [
        entry
        for entry in log
        if entry.kind == "verdict" and entry.by == "notebook" and entry.exercise == exercise
    ]
    path = work.judged(exercise)
    if not graded or path != work.notebook or not path.exists():
        return ()
    same = graded[-1].answer == journal.answer_digest(work.attempts[exercise].source)
    if same or graded[-1].when <= path.stat().st_mtime:
        return ()
    return (
        "In the notebook you graded another answer after this file was saved. "
        "Save the notebook and check again.",
    )
