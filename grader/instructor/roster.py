"""Reads a class list and brings the gradebook in line with it: who is new, who changed."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from grader.course.course import CourseError

if TYPE_CHECKING:
    from grader.nbgrader.coursebook import Student

COLUMNS = {
    "id": "id",
    "student id": "id",
    "first name": "first_name",
    "last name": "last_name",
    "email": "email",
    "e mail": "email",
}
"""Names of columns, in any case and with spaces, '_' or '-'. Others are passed over."""


@dataclass(frozen=True)
class Changes:
    """What a class list changes. `changed` says by student which fields, from what to what;
    `absent` are those in the gradebook that the list does not name: they stay.
    """

    added: tuple[str, ...]
    changed: Mapping[str, tuple[str, ...]]
    unchanged: int
    absent: tuple[str, ...]


def read_roster(path: Path) -> list[Student]:
    """Return the students of a CSV file. Raises `CourseError` that names every wrong line."""
    from grader.nbgrader.coursebook import Student

    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise CourseError(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise CourseError(f"{path} is not UTF-8. Export it again as 'CSV UTF-8'.") from None
    first = text.partition("\n")[0]
    delimiter = max(",;\t", key=first.count)
    rows = csv.reader(io.StringIO(text), delimiter=delimiter, strict=True)
    students: list[Student] = []
    lines: dict[str, int] = {}
    wrong: list[str] = []
    try:
        names = _columns(path, next(rows, []))
        for row in rows:
            if not any(cell.strip() for cell in row):
                continue
            trouble = list(_troubles(row, names, lines))
            wrong += [f"line {rows.line_num}: {why}" for why in trouble]
            if not trouble:
                known = {name: cell.strip() for name, cell in zip(names, row, strict=True) if name}
                lines[known["id"]] = rows.line_num
                students.append(Student(**known))
    except csv.Error as error:
        wrong.append(f"line {rows.line_num}: {error}")
    if wrong:
        raise CourseError(f"{path}: nothing was imported.\n" + "\n".join(wrong))
    if not students:
        raise CourseError(f"{path} names no student.")
    return students


def compare(known: Mapping[str, Student], listed: Iterable[Student]) -> Changes:
    """Return what a class list changes in a gradebook that knows these students."""
    from grader.nbgrader.coursebook import FIELDS

    added, changed, unchanged, named = [], {}, 0, set()
    for student in listed:
        named.add(student.id)
        if student.id not in known:
            added.append(student.id)
            continue
        old = known[student.id]
        said = tuple(
            f"{name.replace('_', ' ')}: {getattr(old, name) or 'none'} → {getattr(student, name) or 'none'}"
            for name in FIELDS
            if getattr(old, name) != getattr(student, name)
        )
        if said:
            changed[student.id] = said
        else:
            unchanged += 1
    absent = tuple(sorted(set(known) - named))
    return Changes(tuple(added), changed, unchanged, absent)


def import_roster(folder: Path, path: Path, *, dry: bool = False) -> Changes:
    """Add and change the students of a class list; all or none. Nobody is removed."""
    from grader.nbgrader.coursebook import CourseBook

    listed = read_roster(path.resolve())
    book = CourseBook(folder)
    changes = compare(book.students(), listed)
    if not dry:
        touched = {*changes.added, *changes.changed}
        book.update([student for student in listed if student.id in touched])
    return changes


def _columns(path: Path, header: list[str]) -> list[str]:
    names = [COLUMNS.get(re.sub(r"[\s_-]+", " ", cell).strip().lower(), "") for cell in header]
    if "id" not in names:
        raise CourseError(
            f"{path}: its first line must name the columns, 'id' among them: "
            "id,first name,last name,email"
        )
    doubled = sorted({name for name in names if name and names.count(name) > 1})
    if doubled:
        raise CourseError(f"{path}: two columns are called {doubled[0].replace('_', ' ')}.")
    return names


def _troubles(row: list[str], names: list[str], lines: Mapping[str, int]) -> Iterator[str]:
    """Yield what is wrong with a row. `lines` are where the ids before it stand."""
    if len(row) != len(names):
        yield f"{len(row)} cells, the first line has {len(names)}"
        return
    cells = dict(zip(names, row, strict=True))
    id, email = cells["id"].strip(), cells.get("email", "").strip()
    if not id:
        yield "no id"
    elif not id.isprintable() or re.search(r"[/\\+\s*?\[\]]", id) or id.startswith((".", "-")):
        # it names folders, and in the exchange "+" separates it from the chapter
        yield f"the id {id!a} cannot name a folder; take letters, digits, '.', '_', '-' and '@'"
    elif id in lines:
        yield f"{id} stands in line {lines[id]} already"
    if email and not re.fullmatch(r"[^@\s]+@[^@\s]+", email):
        yield f"{email!a} is no e-mail address"
