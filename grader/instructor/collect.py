"""Lays the submissions of an LMS's zip into `submitted/`, whoever they are by name in the file.

Canvas (Assignment, Download Submissions) has files, `byronada_4711_98765_formats.ipynb`: the name
without signs, `LATE` where it was, Canvas's number of the student and of the file. Moodle (View all
submissions, Download) has folders, `Ada Byron_1234_assignsubmission_file`, with the number of the
participant, which no list of students has. Both want their names back on feedback, so they are kept.
"""

from __future__ import annotations

import json
import re
import shutil
import unicodedata
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from grader.course.course import Chapter, CourseError
from grader.files import write_atomically
from grader.student.journal import STATE
from grader.submission.rebuild import NOTEBOOK_LIMIT

if TYPE_CHECKING:
    from grader.nbgrader.coursebook import Student

BYTES_LIMIT = 2 * NOTEBOOK_LIMIT
"""Most bytes of one student's files, unpacked: all of a class's are held until they are laid out."""

CANVAS = re.compile(
    r"(?P<name>[^_/]+)_(?P<late>LATE_)?(?P<number>\d+)_(?P<attachment>\d+)_(?P<file>[^/]+)"
)
MOODLE = re.compile(
    r"(?P<place>(?P<name>[^/]+)_(?P<number>\d+)_assignsubmission_file)_?/?(?P<file>[^/]+)"
)


@dataclass(frozen=True)
class HandedIn:
    """One file of the zip that grading may read. `back` is what feedback on it has to be called."""

    system: str
    name: str
    number: str
    file: str
    back: str
    late: bool
    content: bytes = field(repr=False)


@dataclass(frozen=True)
class Collected:
    """What became of a zip. `unplaced` says by name in the zip why it lies nowhere; `late` are those
    of whom the system says so.
    """

    placed: tuple[str, ...]
    unchanged: tuple[str, ...]
    late: tuple[str, ...]
    unplaced: Mapping[str, str]


def collect(
    chapter: Chapter,
    path: Path,
    students: Iterable[Student],
    dropped: Iterable[Student] = (),
    place: Mapping[str, str] | None = None,
) -> Collected:
    """Lay the zip's submissions of a chapter into `submitted/`. Raises `CourseError`.

    A submission takes the place of the one that is there. One that is the same is left alone. What
    a student who was dropped has in the zip is nobody else's. `place` says by a number in the zip
    whose work it is.
    """
    students, left, place = list(students), list(dropped), dict(place or {})
    if unknown := sorted(set(place.values()) - {student.id for student in students}):
        raise CourseError(f"No student has the id {unknown[0]}. Nothing was laid out.")
    unplaced: dict[str, str] = {}
    by_student: dict[str, list[HandedIn]] = defaultdict(list)
    for one in _read(path, unplaced):
        found = _whose(one, students, place)
        gone = [] if one.number in place else _whose(one, left, place)
        if len(found) == 1 and not gone:
            by_student[found[0]].append(one)
        else:
            unplaced[one.back] = f"{_fits(found, gone)} (name {one.name!r}, number {one.number})"
    for id, files in list(by_student.items()):
        if len({one.number for one in files}) > 1:  # two of one name, and the roster has one
            for one in by_student.pop(id):
                unplaced[one.back] = (
                    f"it fits {id}, and so does another's (name {one.name!r}, number {one.number})"
                )
    placed: list[str] = []
    unchanged: list[str] = []
    known = read_collected(chapter)
    for id, files in sorted(by_student.items()):
        content = _named(chapter, files)
        (placed if _lay(chapter, id, content) else unchanged).append(id)
        known[id] = {"system": files[0].system, "back": files[0].back}
    write_atomically(_path(chapter), json.dumps(known, indent=1, sort_keys=True), private=True)
    late = sorted(id for id, files in by_student.items() if any(one.late for one in files))
    return Collected(tuple(placed), tuple(unchanged), tuple(late), unplaced)


def read_collected(chapter: Chapter) -> dict[str, dict[str, str]]:
    """Return by student which system a submission came from, and what feedback has to be called."""
    try:
        found: dict[str, dict[str, str]] = json.loads(_path(chapter).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return found


def _path(chapter: Chapter) -> Path:
    return chapter.root / STATE / "collected" / f"{chapter.id}.json"


def _read(path: Path, unplaced: dict[str, str]) -> Iterable[HandedIn]:
    """Yield the files that may be graded; note the rest."""
    try:
        archive = zipfile.ZipFile(path)
    except (OSError, zipfile.BadZipFile) as error:
        raise CourseError(f"{path} cannot be read as a zip: {error}.") from None
    with archive:
        found = [info for info in archive.infolist() if not info.is_dir()]
        room: dict[str, int] = defaultdict(lambda: BYTES_LIMIT)
        for info in found:
            match = MOODLE.fullmatch(info.filename) or CANVAS.fullmatch(info.filename)
            if match is None:
                unplaced[info.filename] = "its name is neither Canvas's nor Moodle's"
            elif PurePosixPath(match["file"]).suffix not in (".ipynb", ".py"):
                unplaced[info.filename] = "it is no notebook and no .py file"
            elif info.file_size > NOTEBOOK_LIMIT:
                unplaced[info.filename] = f"it has {info.file_size / 2**20:.0f} MB"
            elif (left := room[match["number"]] - info.file_size) < 0:
                unplaced[info.filename] = f"it is beyond {BYTES_LIMIT // 2**20} MB of one student's"
            else:
                room[match["number"]] = left
                moodle = match.re is MOODLE
                with archive.open(info) as file:
                    content = file.read(NOTEBOOK_LIMIT)
                yield HandedIn(
                    "moodle" if moodle else "canvas",
                    match["name"],
                    match["number"],
                    match["file"],
                    match["place"] if moodle else info.filename,
                    not moodle and bool(match["late"]),
                    content,
                )


def _whose(one: HandedIn, students: Sequence[Student], place: Mapping[str, str]) -> list[str]:
    """Return the students whom a name in the zip fits: by number, else by name."""
    if one.number in place:
        return [place[one.number]]
    if one.system == "canvas":
        numbered = [student.id for student in students if student.lms_user_id == one.number]
        if numbered:
            return numbered
        students = [student for student in students if not student.lms_user_id]
    wanted = _letters(one.name)
    return [
        student.id
        for student in students
        if wanted
        and wanted
        in (
            _letters(f"{student.first_name}{student.last_name}"),
            _letters(f"{student.last_name}{student.first_name}"),
        )
    ]


def _fits(found: list[str], gone: list[str]) -> str:
    if len(gone) == 1 and not found:
        return f"{gone[0]} was dropped. Back again: undertorch course rejoin {gone[0]}"
    if found or gone:
        return "it fits " + ", ".join([*sorted(found), *(f"{id} (dropped)" for id in sorted(gone))])
    return "no student of the roster fits"


def _letters(name: str) -> str:
    return "".join(sign for sign in unicodedata.normalize("NFC", name).lower() if sign.isalnum())


def _named(chapter: Chapter, files: list[HandedIn]) -> dict[str, bytes]:
    """Return a student's files by the names that grading looks for.

    Canvas counts what is handed in again, `formats-1.ipynb`; its download has the last alone.
    """
    found = {}
    for one in files:
        stem, suffix = re.sub(r"-\d+$", "", Path(one.file).stem), Path(one.file).suffix
        counted = one.system == "canvas" and f"{stem}{suffix}" not in {
            other.file for other in files
        }
        found[f"{stem}{suffix}" if counted else one.file] = one.content
    notebooks = [name for name in found if name.endswith(".ipynb")]
    if len(notebooks) == 1:
        found[f"{chapter.name}.ipynb"] = found.pop(notebooks[0])
    return found


def _lay(chapter: Chapter, student: str, files: Mapping[str, bytes]) -> bool:
    """Write a submission's folder; return whether it was another before.

    The time that a person wrote beside the same files stays; it is not that of others.
    """
    folder = chapter.root / "submitted" / student / chapter.id
    there = {path.name: path for path in folder.glob("*")} if folder.is_dir() else {}
    there.pop("timestamp.txt", None)
    if there.keys() == files.keys() and all(
        path.is_file() and not path.is_symlink() and path.read_bytes() == files[name]
        for name, path in there.items()
    ):
        return False
    partial = folder.with_name(f".{chapter.id}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    for name, content in files.items():
        (partial / name).write_bytes(content)
    if folder.is_dir():
        shutil.rmtree(folder)
    partial.rename(folder)
    return True
