"""The answers that a class handed in for a chapter, from the autograded notebooks, with verdicts."""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from traitlets.log import get_logger

from grader.box.aside import Aside, Exceeded, Failed
from grader.course.cells import code_cells
from grader.course.course import Chapter, CourseError
from grader.evidence.store import Store
from grader.instructor.fingerprint import Text, text_of
from grader.instructor.similar import (
    Likeness,
    Pair,
    StudentAnswer,
    alike,
    common_runs,
    crowds,
    ranked,
)
from grader.nbgrader.resubmitted import read_record
from grader.submission.program import slice_program

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
    with Aside(lambda student: [_to_data(*one) for one in _of_student(chapter, student)]) as aside:
        for student in track(students, f"reading {chapter.id}"):
            try:
                answers = aside.ask(student)
            except (Exceeded, Failed) as error:
                get_logger().warning("%s is left out: reading it %s.", student, error)
                continue
            for exercise, *answer in answers:
                found[exercise].append(_from_data(student, *answer))
    return found


def _to_data(exercise: str, answer: StudentAnswer) -> list[Any]:
    text = answer.text
    return [exercise, text.source, text.tokens, text.lines, answer.passed, answer.mistake]


def _from_data(
    student: str, source: str, tokens: list[str], lines: list[int], passed: bool, mistake: str
) -> StudentAnswer:
    # one object for equal tokens, as long as the class is compared
    text = Text(source, tuple(map(sys.intern, tokens)), tuple(lines))
    return StudentAnswer(student, text, passed, mistake)


def _of_student(chapter: Chapter, student: str) -> Iterable[tuple[str, StudentAnswer]]:
    """Return a student's answers. To be called where there are limits: texts are parsed."""
    record = read_record(Store(chapter.root, student, chapter.id))
    verdicts = {verdict["exercise"]: verdict for verdict in record["verdicts"]} if record else {}
    path = chapter.root / "autograded" / student / chapter.id / f"{chapter.name}.ipynb"
    # not nbformat.read: it validates, which takes longer than all the rest
    notebook = json.loads(path.read_text(encoding="utf-8"))
    cells, names = code_cells(notebook), [exercise.id for exercise in chapter.exercises]
    for exercise in names:
        verdict = verdicts.get(exercise, {"outcome": "unknown", "mistake": ""})
        if verdict["outcome"] in ("not attempted", "needs review"):
            continue
        program = slice_program(exercise, names, cells)
        parts = [text for label, text in program.parts if label not in program.given]
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
