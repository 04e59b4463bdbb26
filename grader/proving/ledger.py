"""The ledger of proofs: what was proved of each exercise, and on what the proof rests.

`grader/<chapter>/proofs.json` has a row for each exercise, and the digest of the reference notebook
that last ran again with the same outputs. While digests are those of today, nothing that the proof
rests on has changed, and it need not be made again. `undertorch prove` writes rows; the tests read
them, prove what they do not vouch for, and now and then what they do.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Any

from grader.course.course import Chapter, Course, CourseError, Exercise
from grader.files import write_atomically
from grader.proving.digest import (
    exercise_digest,
    judges_digest,
    notebook_digest,
    python_version,
)
from grader.verdict.grading import ExerciseGrader
from grader.verdict.known import marks_digest, read_known

FILE = "proofs.json"
_NOTEBOOK, _EXERCISES = "notebook", "exercises"


@dataclass(frozen=True)
class Row:
    """What was proved of one exercise: counts, the seed, and digests of what it rests on.

    `seconds` of a processor is what its known answers took; 0 in rows that are older than that number.
    """

    exercise: str
    judges: str
    known: str
    python: str
    seed: int
    checks: int
    mistakes: int
    alternates: int
    mutants: int
    equivalent: int
    seconds: int = 0


class State(Enum):
    """Whether a row still vouches for its exercise."""

    HOLDS = "holds"
    CHANGED = "changed"  # the exercise or the marks of its mistakes are others, or it has no row
    JUDGED_ANEW = "judged anew"  # the code that judges is another one
    OTHER_PYTHON = "other Python"  # digests cannot be compared


def read_ledger(chapter: Chapter) -> dict[str, Row]:
    """Return a chapter's rows by exercise. Raises `CourseError` where the file is no ledger."""
    return _read(chapter)[1]


def read_notebook_digest(chapter: Chapter) -> str:
    """Return the digest of the notebook that was last proved to run; "" if none was."""
    return _read(chapter)[0]


def _read(chapter: Chapter) -> tuple[str, dict[str, Row]]:
    path = chapter.graders / FILE
    if not path.is_file():
        return "", {}
    try:
        ledger: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        rows = {name: Row(**row) for name, row in ledger[_EXERCISES].items()}
        return ledger[_NOTEBOOK], rows
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        raise CourseError(f"{path} is no ledger ({error!r}). Remove it, then: make prove") from None


def state_of(chapter: Chapter, exercise: Exercise, row: Row | None) -> State:
    """Say whether a row vouches for an exercise as it is today."""
    if row is not None and row.python != python_version():
        return State.OTHER_PYTHON
    rests_on = exercise_digest(chapter, exercise), marks_digest(chapter, exercise.id)
    if row is None or (row.exercise, row.known) != rests_on:
        return State.CHANGED
    return State.HOLDS if row.judges == judges_digest() else State.JUDGED_ANEW


def stale_of(course: Course) -> dict[str, str]:
    """Return what the ledgers do not vouch for, exercises and chapters' notebooks, and why."""
    found = {}
    for chapter in course.chapters():
        rows = read_ledger(chapter)
        for exercise in chapter.exercises:
            state = state_of(chapter, exercise, rows.get(exercise.id))
            if state is not State.HOLDS:
                found[exercise.id] = state.value
            elif not _has_lines_of_today(chapter, exercise):
                found[exercise.id] = "the text of its checks is not that of its lines in known.json"
        if read_notebook_digest(chapter) != notebook_digest(chapter):
            found[chapter.id] = "its notebook did not run again yet"
    return found


def _has_lines_of_today(chapter: Chapter, exercise: Exercise) -> bool:
    """Whether a notebook finds the marks of the exercise's mistakes, of which a row knows the content alone.

    To a notebook a remark in the checks counts, to a row it does not.
    """
    keys = ExerciseGrader(chapter, exercise, {}).mistake_keys()
    return read_known(chapter, exercise.id)[1].keys() == set(keys.values())


def write_rows(chapter: Chapter, rows: Mapping[str, Row]) -> Path:
    """Put rows into a chapter's ledger, in the exercises' order; rows of no exercise go."""
    notebook, known = _read(chapter)
    return _write(chapter, notebook, known | dict(rows))


def withdraw_row(chapter: Chapter, exercise: str) -> Path:
    """Take an exercise's row out of the ledger: a proof of it has failed, whatever an older one said."""
    notebook, known = _read(chapter)
    return _write(chapter, notebook, {n: row for n, row in known.items() if n != exercise})


def write_notebook_digest(chapter: Chapter, digest: str) -> Path:
    """Put down which notebook ran again with the same outputs; "" where it did not."""
    return _write(chapter, digest, _read(chapter)[1])


def _write(chapter: Chapter, notebook: str, rows: Mapping[str, Row]) -> Path:
    kept = {e.id: asdict(rows[e.id]) for e in chapter.exercises if e.id in rows}
    path = chapter.graders / FILE
    text = json.dumps({_NOTEBOOK: notebook, _EXERCISES: kept}, indent=1)
    write_atomically(path, text + "\n", durable=False)
    return path


def turn(
    names: Iterable[str], count: int, of: int, costs: Mapping[str, float] = MappingProxyType({})
) -> set[str]:
    """Return the names whose turn it is at this count: one of `of` parts that cost about the same.

    At `of` counts in a row each has its turn once, while names and costs stay as they are. One without
    a cost is taken for an average one.
    """
    average = sum(costs.values()) / len(costs) if costs else 1.0
    cost_of = {name: costs.get(name, average) for name in names}
    parts: list[set[str]] = [set() for _ in range(of)]
    spent = [(0.0, part) for part in range(of)]
    for name in sorted(cost_of, key=lambda name: (-cost_of[name], name)):
        cost, part = heapq.heappop(spent)
        parts[part].add(name)
        heapq.heappush(spent, (cost + cost_of[name], part))
    return parts[count % of]
