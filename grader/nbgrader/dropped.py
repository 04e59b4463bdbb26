"""Students who left a course: out of the gradebook and the folders, so that nothing counts them.

All that is theirs lies in `dropped/<student>/` until they come back: folders as they were, and their
rows of the gradebook in a file. nbgrader's own way is to delete the rows and leave the folders.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from nbgrader.api import Gradebook, MissingEntry, Student, SubmittedNotebook

from grader.files import write_atomically
from grader.nbgrader.gradebook import in_one_transaction

FOLDERS = ("submitted", "autograded", "feedback", "evidence")
ROWS = "gradebook.json"
FIELDS = ("first_name", "last_name", "email", "lms_user_id")


def dropped_from(root: Path) -> list[str]:
    """Return who was dropped from the course at `root`, in order."""
    return sorted(path.parent.name for path in (root / "dropped").glob(f"*/{ROWS}"))


def person_of(root: Path, student: str) -> dict[str, str]:
    """Return a dropped student's names, address and number of the LMS; "" is what is not known."""
    rows = json.loads((root / "dropped" / student / ROWS).read_text(encoding="utf-8"))
    return {name: rows[name] or "" for name in FIELDS}


def drop(gradebook: Gradebook, root: Path, student: str) -> None:
    """Take a student out. Done again after a run that was cut off, it does the rest."""
    place = root / "dropped" / student
    place.mkdir(parents=True, exist_ok=True)
    os.chmod(place.parent, 0o700)
    try:
        rows = in_one_transaction(gradebook, lambda: _rows_of(gradebook.find_student(student)))
    except MissingEntry:
        pass  # this much was done
    else:
        write_atomically(place / ROWS, json.dumps(rows, indent=1), private=True)
        in_one_transaction(gradebook, lambda: gradebook.remove_student(student))
    for name in FOLDERS:
        if (root / name / student).is_dir() and not (place / name).exists():
            os.rename(root / name / student, place / name)


def rejoin(gradebook: Gradebook, root: Path, student: str) -> list[str]:
    """Bring a dropped student back; return what could not be brought back, in words."""
    place = root / "dropped" / student
    rows = json.loads((place / ROWS).read_text(encoding="utf-8"))
    lost = in_one_transaction(gradebook, lambda: list(_restore(gradebook, student, rows)))
    for name in FOLDERS:
        if (place / name).is_dir():
            if (root / name / student).exists():
                lost.append(f"{student}: {name}/{student} is there already; {place / name} stays.")
                continue
            (root / name).mkdir(exist_ok=True)
            os.rename(place / name, root / name / student)
    (place / ROWS).unlink()
    if not any(place.iterdir()):
        place.rmdir()
    return lost


def _rows_of(student: Student) -> dict[str, Any]:
    return {
        **{name: getattr(student, name) for name in FIELDS},
        "submissions": [
            {
                "assignment": submission.assignment.name,
                "timestamp": submission.timestamp.isoformat() if submission.timestamp else None,
                "extension": submission.extension.total_seconds() if submission.extension else None,
                "notebooks": {notebook.name: _cells(notebook) for notebook in submission.notebooks},
            }
            for submission in student.submissions
        ],
    }


_GRADE = ("auto_score", "manual_score", "extra_credit", "needs_manual_grade")
_COMMENT = ("auto_comment", "manual_comment")


def _cells(notebook: SubmittedNotebook) -> dict[str, Any]:
    return {
        "penalty": notebook.late_submission_penalty,
        "grades": {row.name: {key: getattr(row, key) for key in _GRADE} for row in notebook.grades},
        "comments": {
            row.name: {key: getattr(row, key) for key in _COMMENT} for row in notebook.comments
        },
    }


def _restore(gradebook: Gradebook, student: str, rows: dict[str, Any]) -> Iterator[str]:
    fields = {name: rows[name] for name in FIELDS}
    gradebook.update_or_create_student(student, **fields)
    for one in rows["submissions"]:
        try:
            gradebook.find_assignment(one["assignment"])
        except MissingEntry:
            yield f"{student}: the gradebook has no {one['assignment']} any more."
            continue
        submission = gradebook.update_or_create_submission(one["assignment"], student)
        when, extension = one["timestamp"], one["extension"]
        submission.timestamp = datetime.fromisoformat(when) if when else None
        submission.extension = timedelta(seconds=extension) if extension is not None else None
        for notebook in submission.notebooks:
            cells = one["notebooks"].get(notebook.name)
            if cells is None:
                continue
            notebook.late_submission_penalty = cells["penalty"]
            for row in notebook.grades:
                _set(row, cells["grades"].get(row.name, {}))
            for row in notebook.comments:
                _set(row, cells["comments"].get(row.name, {}))
    gradebook.db.commit()


def _set(row: Any, values: dict[str, Any]) -> None:
    for name, value in values.items():
        setattr(row, name, value)
