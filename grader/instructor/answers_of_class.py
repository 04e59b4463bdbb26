"""The answers that a class handed in for a chapter, from the autograded notebooks, with verdicts."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

import nbformat

from grader.course.cells import source_of
from grader.course.course import Chapter, CourseError
from grader.evidence.store import OtherSchema, Store
from grader.instructor.fingerprint import text_of
from grader.instructor.similar import (
    Likeness,
    Pair,
    StudentAnswer,
    alike,
    common_runs,
    crowds,
    ranked,
)
from grader.nbgrader.run import attempts_in

Track = Callable[[Sequence[str], str], Iterable[str]]


def read_answers_of_class(chapter: Chapter, track: Track) -> dict[str, list[StudentAnswer]]:
    """Return by exercise what each student wrote: the solution cell, and helpers that it names.

    Who did not attempt an exercise is left out. Raises `CourseError` if nothing is graded.
    """
    paths = (chapter.root / "autograded").glob(f"*/{chapter.id}/{chapter.name}.ipynb")
    students = sorted(path.parent.parent.name for path in paths)
    if not students:
        raise CourseError(f"Nothing is graded yet. Run: undertorch grade {chapter.id}")
    found: dict[str, list[StudentAnswer]] = defaultdict(list)
    for student in track(students, f"reading {chapter.id}"):
        for exercise, attempt in _of_student(chapter, student):
            found[exercise].append(attempt)
    return found


def _of_student(chapter: Chapter, student: str) -> Iterable[tuple[str, StudentAnswer]]:
    try:
        record = Store(chapter.root, student, chapter.id).read()
    except (OtherSchema, ValueError, KeyError):
        record = None
    verdicts = {verdict["exercise"]: verdict for verdict in record["verdicts"]} if record else {}
    path = chapter.root / "autograded" / student / chapter.id / f"{chapter.name}.ipynb"
    # not nbformat.read: it validates, which takes longer than all the rest
    notebook = nbformat.from_dict(json.loads(path.read_text(encoding="utf-8")))
    for cell in notebook.cells:
        cell.source = source_of(cell)
    for exercise, attempt in attempts_in(chapter, notebook).items():
        verdict = verdicts.get(exercise, {"outcome": "unknown", "mistake": ""})
        if verdict["outcome"] in ("not attempted", "needs review"):
            continue
        parts = [
            text for label, text in attempt.program.parts if label not in attempt.program.given
        ]
        # parts keep the lines that they stood on; the gaps are of no use here
        text = re.sub(r"\n{3,}", "\n\n", "\n\n".join(part.strip("\n") for part in parts))
        passed = verdict["outcome"] == "passed"
        yield exercise, StudentAnswer(student, text_of(text), passed, verdict["mistake"])


def similar_in(chapter: Chapter, track: Track) -> tuple[list[Pair], dict[str, list[list[str]]]]:
    """Return the pairs of students with similar answers, and by exercise the crowds."""
    answers = read_answers_of_class(chapter, track)
    found: list[Likeness] = []
    many = {}
    for exercise in track([one.id for one in chapter.exercises], "comparing"):
        common = common_runs(chapter, chapter.exercise(exercise))
        found += alike(exercise, answers[exercise], common)
        many[exercise] = crowds(answers[exercise], common)
    return ranked(found), {name: groups for name, groups in many.items() if groups}
