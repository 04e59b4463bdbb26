"""Reads a class list and brings the gradebook in line with it: who is new, who changed."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
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
    "lms id": "lms_user_id",
    "lms user id": "lms_user_id",
}
"""Names of columns, in any case and with spaces, '_' or '-'. Others are passed over."""

CANVAS = {
    "id": "lms_user_id",
    "student": "name",
    "sis login id": "id",
    "sis user id": "id",
}
"""Columns of Canvas's gradebook file (Grades, Export). Its ID is Canvas's own number."""

MOODLE = {
    "first name": "first_name",
    "last name": "last_name",
    "surname": "last_name",
    "email address": "email",
    "username": "id",
    "id number": "lms_user_id",
}
"""Columns of Moodle's lists: Participants, Download; or Grades, Export."""


@dataclass(frozen=True)
class Columns:
    """What each column of a file is, "" for what is passed over; `system` is who wrote the file."""

    fields: tuple[str, ...]
    system: str = ""

    def is_no_student(self, known: Mapping[str, str]) -> bool:
        """Is this row one that a system puts between its students?

        Canvas has the points possible in a row or two without numbers, and a student for trying.
        """
        name = known.get("name", "").strip().lower()
        return self.system == "canvas" and (
            not known.get("lms_user_id") or (name in ("student, test", "test student"))
        )


@dataclass(frozen=True)
class Changes:
    """What a class list changes. `changed` says by student which fields, from what to what;
    `absent` are those in the gradebook that the list does not name: they stay. `dropped` are those
    whom it names and who were dropped: they stay that, too.
    """

    added: tuple[Student, ...]
    changed: Mapping[str, tuple[str, ...]]
    unchanged: int
    absent: tuple[Student, ...]
    dropped: tuple[str, ...] = ()


def read_roster(path: Path, id_column: str = "") -> list[Student]:
    """Return the students of a CSV file: one of yours, Canvas's gradebook, Moodle's participants.

    `id_column` names the column of the ids, where it is not the usual one. Raises `CourseError` that
    names every wrong line.
    """
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
        columns = _columns(path, next(rows, []), id_column)
        for row in rows:
            if not any(cell.strip() for cell in row):
                continue
            cells = zip(columns.fields, row, strict=False)
            known = {name: cell.strip() for name, cell in cells if name}
            if columns.is_no_student(known):
                continue
            trouble = list(_troubles(row, columns, known, lines))
            wrong += [f"line {rows.line_num}: {why}" for why in trouble]
            if not trouble:
                lines[known["id"]] = rows.line_num
                students.append(Student(**_named(known)))
    except csv.Error as error:
        wrong.append(f"line {rows.line_num}: {error}")
    if wrong:
        raise CourseError(f"{path}: nothing was imported.\n" + "\n".join(wrong))
    if not students:
        raise CourseError(f"{path} names no student.")
    return students


def _named(known: dict[str, str]) -> dict[str, str]:
    """Return a student's fields, a whole name taken apart as Canvas puts it together."""
    if "name" in known:
        last, comma, first = known.pop("name").partition(",")
        if not comma:
            first, _, last = last.rpartition(" ")
        known |= {"first_name": first.strip(), "last_name": last.strip()}
    return known


def compare(known: Mapping[str, Student], listed: Iterable[Student]) -> Changes:
    """Return what a class list changes in a gradebook that knows these students."""
    from grader.nbgrader.dropped import FIELDS

    added, changed, unchanged, named = [], {}, 0, set()
    for student in listed:
        named.add(student.id)
        if student.id not in known:
            added.append(student)
            continue
        old = known[student.id]
        said = tuple(
            f"{name.replace('_', ' ')}: {getattr(old, name) or 'none'} → {getattr(student, name) or 'none'}"
            for name in FIELDS
            if getattr(student, name) not in (None, getattr(old, name))
        )
        if said:
            changed[student.id] = said
        else:
            unchanged += 1
    absent = tuple(known[id] for id in sorted(set(known) - named))
    return Changes(tuple(added), changed, unchanged, absent)


def import_roster(folder: Path, path: Path, *, id_column: str = "", dry: bool = False) -> Changes:
    """Add and change the students of a class list; all or none. Nobody is removed."""
    from grader.nbgrader.coursebook import CourseBook

    everyone = read_roster(path.resolve(), id_column)
    book = CourseBook(folder)
    dropped = tuple(one.id for one in everyone if one.id in book.dropped())
    listed = [one for one in everyone if one.id not in dropped]
    changes = replace(compare(book.students(), listed), dropped=dropped)
    if not dry:
        changed = [student for student in listed if student.id in changes.changed]
        book.update([*changes.added, *changed])
    return changes


def _columns(path: Path, header: list[str], id_column: str) -> Columns:
    found = [re.sub(r"[\s_-]+", " ", cell).strip().lower() for cell in header]
    names, system = _meaning(found)
    fields = [names.get(cell, "") for cell in found]
    if id_column:
        wanted = re.sub(r"[\s_-]+", " ", id_column).strip().lower()
        if wanted not in found:
            raise CourseError(f"{path} has no column {id_column!r}. It has: {', '.join(header)}.")
        fields = ["" if name == "id" else name for name in fields]
        fields[found.index(wanted)] = "id"
    elif system == "canvas" and "sis login id" in found and "sis user id" in found:
        fields[found.index("sis user id")] = ""  # the login is what the student is called
    elif system == "moodle" and "id" not in fields and "lms_user_id" in fields:
        fields[fields.index("lms_user_id")] = "id"
    if "id" not in fields:
        raise CourseError(
            f"{path}: its first line must name the columns, 'id' among them: "
            "id,first name,last name,email. Another column can have the ids: --id-column NAME"
        )
    doubled = sorted({name for name in fields if name and fields.count(name) > 1})
    if doubled:
        raise CourseError(f"{path}: two columns are called {doubled[0].replace('_', ' ')}.")
    return Columns(tuple(fields), system)


def _meaning(found: list[str]) -> tuple[Mapping[str, str], str]:
    """Return what a file's columns are, and whose file it is by its first line."""
    if "student" in found and "id" in found and "section" in found:
        return CANVAS, "canvas"
    if "email address" in found and ("first name" in found or "surname" in found):
        return MOODLE, "moodle"
    return COLUMNS, ""


def _troubles(
    row: list[str], columns: Columns, known: Mapping[str, str], lines: Mapping[str, int]
) -> Iterator[str]:
    """Yield what is wrong with a row. `lines` are where the ids before it stand."""
    if len(row) != len(columns.fields):
        yield f"{len(row)} cells, the first line has {len(columns.fields)}"
        return
    id, email = known["id"], known.get("email", "")
    if not id:
        yield "no id"
    elif not id.isprintable() or re.search(r"[/\\+,\s*?\[\]]", id) or id.startswith((".", "-")):
        # it names folders; in the exchange "+" separates it from the chapter, in nbgrader's lists "," from others
        yield f"the id {id!a} cannot name a folder; take letters, digits, '.', '_', '-' and '@'"
    elif id in lines:
        yield f"{id} stands in line {lines[id]} already"
    if email and not re.fullmatch(r"[^@\s]+@[^@\s]+", email):
        yield f"{email!a} is no e-mail address"
