"""An instructor's course folder: made by `undertorch course new`, kept up by `course apply`.

The folder is nbgrader's own. Ours in it are the course file, nbgrader_config.py, and in `source/`
the chapters' notebooks, cut down to the exercises that the course file names.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from grader.building.source import Variant
from grader.building.variants import drawn, temporary_variant
from grader.course.course import COURSE_FILE, Chapter, Course, CourseError, course_at, origin
from grader.course.course_file import Assigned, CourseSettings, read_course_file
from grader.files import write_atomically
from grader.instructor.cut import Cut, cut
from grader.instructor.private_variant import read_secret, refuse_another, write_secret
from grader.student.journal import STATE
from grader.student.naming import did_you_mean

if TYPE_CHECKING:
    from grader.nbgrader.coursebook import CourseBook, Penalty

CONFIG = '''"""nbgrader's settings in this folder. They come from undertorch.toml; yours may follow below."""

from pathlib import Path

try:
    from grader.nbgrader import commands_on_path
    from grader.nbgrader.settings import apply_course_file
except ImportError as error:  # nbgrader would only log it, and grade without a sandbox
    raise SystemExit(f"Undertorch is not in this environment; activate its own. ({error})") from None

commands_on_path()
apply_course_file(get_config(), Path(__file__).resolve().parent)  # noqa: F821  (nbgrader's)
'''

IGNORED = """\
# What names students, or gives away private variants, stays out of git.
/secret
/gradebook.db*
/submitted/
/autograded/
/feedback/
/evidence/
/dropped/
/downloaded/
/.undertorch/collected/
/feedback-*.zip
/gradescope-*.zip
/*.csv
/report.html
/similar.html
"""

HEAD = """\
# What this course is made of. Edit it, then run: undertorch course apply

# nbgrader's course id; also the name of the course's folder in the exchange
course = "{id}"
# of the times below, e.g. "Europe/Berlin"
timezone = "UTC"
# where nbgrader's exchange is, if you use one
# exchange = "/srv/nbgrader/exchange"
# the file that private variants are drawn from; "" is the public course. Keep it from students.
secret = "{secret}"

[late]
# of the points achieved, for each day begun after the due date
percent_per_day = 0
# lateness up to this costs nothing
grace_minutes = 0
# more than this is never taken
most_percent = 100

[resubmissions]
# which of a student's submissions of a chapter counts: "latest", "best" or "first"
counts = "latest"

# A new due date for one student; an id with a dot stands in quotation marks:
# [extensions.ada]
# ch01_formats = 2027-03-05T23:59:00
"""


@dataclass(frozen=True)
class Applied:
    """What became of one chapter. `state` is "written", "unchanged" or "edited here"; `variant` has
    the private values of its exercises; `to_regrade` are its graded submissions if points changed.
    """

    chapter: str
    state: str
    exercises: int
    points: float
    due_changed: bool
    variant: Variant
    to_regrade: int = 0
    given: Mapping[str, str] = field(default_factory=dict)
    missing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class ApplyReport:
    """What `course apply` did. `others` are chapters in the folder that the file does not name."""

    folder: Path
    chapters: tuple[Applied, ...]
    penalties: tuple[Penalty, ...]
    others: tuple[str, ...]


def new_course(
    folder: Path,
    chapters: Sequence[str],
    exercises: Sequence[str],
    *,
    short: bool = False,
    private: bool = False,
) -> CourseSettings:
    """Write a course file and nbgrader's configuration into a new folder.

    Takes whole chapters by id, and single exercises by id or as `chapter/exercise`; all chapters
    if neither is given. `short` takes the short path of chapters in place of all their exercises. A
    private course has a new secret for its variants. Raises `CourseError`, before anything is
    written.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CourseError(f"{folder} is there and not empty. Name a new folder.")
    course = material()
    chosen = _selection(course, chapters, exercises, short=short)
    id = re.sub(r"[^\w.-]+", "-", folder.resolve().name, flags=re.ASCII).strip(".-") or "course"
    text = HEAD.format(id=id, secret="secret" if private else "")
    for name, points in chosen.items():
        text += f"\n[chapters.{name}]\n# due = 2027-03-01T23:59:00\n\n[chapters.{name}.points]\n"
        text += "".join(f"{exercise} = {worth:g}\n" for exercise, worth in points.items())
    folder.mkdir(parents=True, exist_ok=True)
    if private:
        write_secret(folder / "secret")
    write_atomically(folder / COURSE_FILE, text)
    write_atomically(folder / "nbgrader_config.py", CONFIG)
    write_atomically(folder / ".gitignore", IGNORED)
    return read_course_file(folder)


def material() -> Course:
    """Return the course that instructors choose from. Raises `CourseError` if it has no solutions."""
    course = Course(origin())
    if not any((course.root / "solutions").glob("*/*.ipynb")):
        raise CourseError(
            f"{course.root} holds no chapters with solutions. Clone Undertorch's repository and "
            "set UNDERTORCH_COURSE to it."
        )
    return course


def _selection(
    course: Course, chapters: Sequence[str], exercises: Sequence[str], *, short: bool
) -> dict[str, dict[str, float]]:
    every = [chapter.id for chapter in course.chapters()]
    of_these = chapters or (every if short or not exercises else [])
    wanted = {
        (name, exercise.id)
        for name in of_these
        for exercise in course.chapter(name).exercises
        if exercise.short or not short
    }
    for name in exercises:
        place, _, exercise = name.rpartition("/")
        chapter = course.chapter(place) if place else _chapter_of(course, exercise)
        wanted.add((chapter.id, chapter.exercise(exercise).id))
    if not wanted:
        raise CourseError(f"{', '.join(of_these)}: no exercise is on the short path there.")
    found = {
        chapter.id: {
            exercise.id: exercise.points
            for exercise in chapter.exercises
            if (chapter.id, exercise.id) in wanted
        }
        for chapter in course.chapters()
    }
    return {name: points for name, points in found.items() if points}


def _chapter_of(course: Course, exercise: str) -> Chapter:
    """Return the chapter of an exercise. Raises `CourseError` with the names most like it."""
    chapters = {one.id: chapter for chapter in course.chapters() for one in chapter.exercises}
    if exercise not in chapters:
        close = did_you_mean(exercise, chapters) or " A chapter's page on the site has their names."
        raise CourseError(f"No exercise is called {exercise!r}.{close}")
    return chapters[exercise]


def apply_course(
    folder: Path, done: Callable[[Applied], None] = lambda applied: None, *, overwrite: bool = False
) -> ApplyReport:
    """Bring a course folder in line with its course file; `done` hears of each chapter.

    A source notebook that was edited here stays as it is, unless `overwrite`: then it is moved to
    `kept/`. Raises `CourseError`, for what the file says before anything is written.
    """
    from grader.nbgrader.coursebook import CourseBook

    folder = folder.resolve()
    settings, course = read_course_file(folder), material()
    secret = read_secret(folder / settings.secret) if settings.secret else b""
    cuts = {
        name: (course.chapter(name), _cut(course.chapter(name), assigned, secret, folder))
        for name, assigned in settings.chapters.items()
    }
    if not (folder / ".gitignore").exists():  # of a folder that was made before
        write_atomically(folder / ".gitignore", IGNORED)
    book, state = CourseBook(folder), _State(folder)
    _refuse_strangers(settings, {*book.students(), *book.dropped()})
    states = {name: state.look(*pair, overwrite=overwrite) for name, pair in cuts.items()}
    for name, (chapter, _) in cuts.items():
        if states[name] == "written":
            book.refuse_other_cells(name, chapter.name, tuple(settings.chapters[name].points))
    applied = []
    for name, (chapter, parts) in cuts.items():
        if states[name] == "written":
            state.write(chapter, parts)
        before = book.points(name, chapter.name)
        released = folder / "release" / name / f"{chapter.name}.ipynb"
        known = released.is_file() and book.is_registered(name, chapter.name)
        if states[name] == "written" or not known:
            book.generate(name)
            state.save()
        own = course_at(folder).chapter(name)
        changed = before and before != book.points(name, chapter.name)
        applied.append(_applied(own, states[name], settings.chapters[name], parts, book))
        if changed:
            graded = len([*folder.glob(f"autograded/*/{name}/{chapter.name}.ipynb")])
            applied[-1] = replace(applied[-1], to_regrade=graded)
        done(applied[-1])
    there = {path.name for path in (folder / "source").iterdir() if path.is_dir()}
    penalties = tuple(book.penalize_again(tuple(cuts)))
    return ApplyReport(folder, tuple(applied), penalties, tuple(sorted(there - set(cuts))))


def _cut(chapter: Chapter, assigned: Assigned, secret: bytes, folder: Path) -> Cut:
    """Return what the folder is to hold of a chapter, in the variant that the secret draws."""
    variant = drawn(chapter, secret) if secret else {}
    if any((folder / "release" / chapter.id).glob("*.ipynb")):
        refuse_another(course_at(folder).chapter(chapter.id), variant)
    if not variant:
        return cut(chapter, assigned.points)
    with temporary_variant(chapter, variant) as private:
        return cut(private, assigned.points)


def _applied(
    chapter: Chapter, how: str, assigned: Assigned, parts: Cut, book: CourseBook
) -> Applied:
    return Applied(
        chapter.id,
        how,
        len(assigned.points),
        sum(assigned.points.values()),
        book.set_due(chapter.id, assigned.due),
        {exercise.id: exercise.variant for exercise in chapter.exercises if exercise.variant},
        given=parts.given,
        missing=parts.missing,
    )


def _refuse_strangers(settings: CourseSettings, known: set[str]) -> None:
    """Raise `CourseError` for extensions of who is not in the course, once anybody is."""
    strangers = sorted(set(settings.extensions) - known)
    if known and strangers:
        raise CourseError(
            f"{COURSE_FILE}: extensions.{strangers[0]}: no student of the gradebook has this id. "
            "New students come by: undertorch course roster"
        )


class _State:
    """What `course apply` wrote last, as digests: whatever differs from that is the instructor's."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._path = folder, folder / STATE / "course.json"
        try:
            self._digests: dict[str, str] = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            self._digests = {}

    def look(self, chapter: Chapter, parts: Cut, *, overwrite: bool) -> str:
        """Return what is to become of a chapter's source notebook."""
        path, text = self._path_of(chapter), _text(parts)
        if not path.is_file():
            return "written"
        old, known = (
            path.read_text(encoding="utf-8", errors="replace"),
            self._digests.get(chapter.id),
        )
        if old == text:
            # written by a run that was cut off before nbgrader made the released one?
            return "unchanged" if known == _digest(text) else "written"
        return "written" if overwrite or known == _digest(old) else "edited here"

    def write(self, chapter: Chapter, parts: Cut) -> None:
        """Write a chapter's source notebook; one that was edited here is kept elsewhere."""
        path, text = self._path_of(chapter), _text(parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_file():
            old = path.read_text(encoding="utf-8", errors="replace")
            if old != text and self._digests.get(chapter.id) != _digest(old):
                self._keep(path)
        write_atomically(path, text)
        self._digests[chapter.id] = _digest(text)

    def _path_of(self, chapter: Chapter) -> Path:
        return self._folder / "source" / chapter.id / chapter.reference.name

    def save(self) -> None:
        """Remember what was written."""
        self._path.parent.mkdir(exist_ok=True)
        write_atomically(self._path, json.dumps(self._digests, indent=1))

    def _keep(self, path: Path) -> None:
        kept = self._folder / "kept"
        kept.mkdir(exist_ok=True)
        number = 1
        while (target := kept / f"{path.stem}-{number}{path.suffix}").exists():
            number += 1
        os.rename(path, target)


def _text(parts: Cut) -> str:
    return json.dumps(parts.notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
