"""What a course holds, read from its released notebooks: chapters, exercises, what they declare."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from grader.course.cells import Cell, code_cells, grade_id_of, source_of
from grader.course.exercise import Exercise as Exercise  # who has chapters has exercises
from grader.course.exercise import Sitting
from grader.course.parameters import (
    Values,
    checked_values,
    public_values,
    read_parameters,
    render,
)
from grader.course.rules import parse_rule


class CourseError(Exception):
    """Something of the course is missing or wrong; the message says what mends it."""


class AuthorError(CourseError):
    """A file that an author wrote is wrong; the message says which, where and what to do."""


@dataclass(frozen=True)
class Folders:
    """What a course calls the folders of its notebooks, and which command makes them."""

    released: str
    reference: str
    made_by: str


WHOLE = Folders("chapters", "solutions", "undertorch build")
CHOSEN = Folders("release", "source", "undertorch course apply")
"""An instructor's course folder: the names are nbgrader's own."""


@dataclass(frozen=True)
class Chapter:
    """One nbgrader assignment. `root` is the course's folder, `origin` where its graders are,
    if they are elsewhere.
    """

    root: Path
    id: str
    origin: Path | None = None

    @property
    def folders(self) -> Folders:
        """What its notebooks' folders are called."""
        return folders_of(self.origin)

    @cached_property
    def released(self) -> Path:
        """The notebook that students get."""
        return self._notebook(self.folders.released)

    @cached_property
    def reference(self) -> Path:
        """The notebook with the reference solutions."""
        return self._notebook(self.folders.reference)

    @property
    def name(self) -> str:
        """The notebook's name without its ending; nbgrader's notebook id."""
        return self.released.stem

    @property
    def graders(self) -> Path:
        """The folder with the probes, `test_<exercise>.py` and `answers/`."""
        return (self.origin or self.root) / "grader" / self.id

    @property
    def probes(self) -> Path:
        """The only part of the chapter that enters a box: a package of modules."""
        return self.graders / "probes"

    def checks(self, exercise: str) -> Path:
        """The checks of one exercise."""
        return self.graders / f"test_{exercise}.py"

    def answers(self, exercise: str) -> Path:
        """The known answers to one exercise: mistakes and alternates."""
        return self.graders / "answers" / f"{exercise}.md"

    @cached_property
    def notebook(self) -> dict[str, Any]:
        """The released notebook, as read from its file."""
        return _read(self.released, self.folders)

    @property
    def card(self) -> Mapping[str, Any]:
        """What the chapter declares of itself: title, summary, preload."""
        declared: Mapping[str, Any] = self.notebook["metadata"].get("undertorch", {})
        return declared

    @property
    def preload(self) -> tuple[str, ...]:
        """Modules that the box imports before the first fork."""
        return tuple(self.card.get("preload", ()))

    def reading(self, exercise: str) -> tuple[tuple[str, str, str], ...]:
        """Where PyTorch itself does what an exercise asks: words, an address, and its own sentence."""
        found = self.card.get("reading", {}).get(exercise, ())
        return tuple((str(words), str(address), str(says)) for words, address, says in found)

    @cached_property
    def exercises(self) -> tuple[Exercise, ...]:
        """The exercises, in the notebook's order."""
        return exercises_in(self.notebook, self.id)

    @cached_property
    def sittings(self) -> tuple[Sitting, ...]:
        """The sittings that have exercises here, in order; none if the chapter declares none."""
        return sittings_in(self.notebook, self.exercises)

    def sitting_of(self, exercise: Exercise) -> Sitting | None:
        """Return the sitting that an exercise is in; None in a chapter without sittings."""
        return next((one for one in self.sittings if one.id == exercise.sitting), None)

    def exercise(self, id: str, variant: Values | None = None) -> Exercise:
        """Return one exercise, of a variant that a notebook names; else of the course's own.

        Raises `CourseError` if there is none of that id, or no such variant.
        """
        for exercise in self.exercises:
            if exercise.id == id:
                return self._of_variant(exercise, variant) if variant else exercise
        known = ", ".join(exercise.id for exercise in self.exercises)
        raise CourseError(f"{self.id} has no exercise {id!r}. It has: {known}.")

    def _of_variant(self, exercise: Exercise, variant: Values) -> Exercise:
        cells = self.notebook["cells"]
        cell = next(c for c in cells if grade_id_of(c) == exercise.id)
        try:
            return _exercise(cell, self.id, checked_values(exercise.parameters, variant))
        except ValueError as error:
            raise CourseError(
                f"This version of the course does not know your variant of {exercise.id}: {error}. "
                "Ask your instructor which version of Undertorch your notebook is for."
            ) from None

    def _notebook(self, folder: str) -> Path:
        found = sorted((self.root / folder / self.id).glob("*.ipynb"))
        if not found:
            raise CourseError(f"{folder}/{self.id} holds no notebook. Run: {self.folders.made_by}")
        return found[0]


@dataclass(frozen=True)
class Course:
    """A folder with `solutions/`, `chapters/` and `grader/`.

    Or an instructor's course folder, with nbgrader's `source/` and `release/`: `origin` is then
    the course whose chapters it chose from and whose graders it uses.
    """

    root: Path
    origin: Path | None = None

    def chapters(self) -> tuple[Chapter, ...]:
        """All chapters that have been released, in order."""
        released = self.root / folders_of(self.origin).released
        found = sorted(path.parent.name for path in released.glob("*/*.ipynb"))
        chapters = (Chapter(self.root, name, self.origin) for name in dict.fromkeys(found))
        if self.origin is None:
            return tuple(chapters)
        # an instructor's assignments of another kind lie beside ours
        return tuple(chapter for chapter in chapters if chapter.probes.exists())

    def chapter(self, id: str) -> Chapter:
        """Return one chapter. Raises `CourseError` if there is none of that id."""
        for chapter in self.chapters():
            if chapter.id == id:
                return chapter
        known = ", ".join(chapter.id for chapter in self.chapters()) or "none"
        raise CourseError(f"There is no chapter {id!r} in {self.root}. Chapters: {known}.")

    def chapter_of(self, exercise: str) -> Chapter:
        """Return the chapter that has an exercise of that id."""
        for chapter in self.chapters():
            if any(known.id == exercise for known in chapter.exercises):
                return chapter
        raise CourseError(f"There is no exercise {exercise!r} in any chapter of {self.root}.")


COURSE_FILE = "undertorch.toml"
"""What makes a folder an instructor's course folder; `grader.course.course_file` reads it."""


def find_course(start: Path | None = None) -> Course:
    """Return the course around `start` (the working directory), else the installed one.

    `UNDERTORCH_COURSE` names another. An instructor's course folder around `start` comes first:
    for it, `UNDERTORCH_COURSE` is where its chapters and graders are from.
    """
    here = (start or Path.cwd()).resolve()
    for folder in (here, *here.parents):
        if (folder / COURSE_FILE).is_file():
            return course_at(folder)
    named = os.environ.get("UNDERTORCH_COURSE")
    if named:
        return course_at(Path(named).resolve())
    for folder in (here, *here.parents, INSTALLED):
        if (folder / "chapters").is_dir() and (folder / "grader").is_dir():
            return Course(folder)
    raise CourseError("No course here: no folder above this one has chapters/ and grader/.")


def course_at(root: Path) -> Course:
    """Return the course in the folder `root`, an instructor's or a whole one."""
    if (root / COURSE_FILE).is_file():
        return Course(root, origin())
    return Course(root)


def origin() -> Path:
    """Return the folder of the course that instructors choose from."""
    named = Path(os.environ.get("UNDERTORCH_COURSE") or INSTALLED).resolve()
    return INSTALLED if (named / COURSE_FILE).is_file() else named


INSTALLED = Path(__file__).resolve().parents[2]
"""The folder that holds the `grader` package; in a checkout, the whole course."""


def folders_of(origin: Path | None) -> Folders:
    """Return what the folders are called in a whole course, or in one with an `origin`."""
    return CHOSEN if origin else WHOLE


def reference_cell(chapter: Chapter, exercise: str) -> Mapping[str, Any]:
    """Return an exercise's solution cell in the reference notebook."""
    for cell in _read(chapter.reference, chapter.folders)["cells"]:
        if grade_id_of(cell) == exercise:
            found: Mapping[str, Any] = cell
            return found
    raise CourseError(f"{chapter.reference} has no solution of {exercise}. Build it again.")


def read_reference(chapter: Chapter) -> list[Cell]:
    """Return the code cells of the reference notebook."""
    return code_cells(_read(chapter.reference, chapter.folders))


def _read(path: Path, folders: Folders) -> dict[str, Any]:
    """Return a notebook of the course, its cells' text as one string each."""
    try:
        notebook: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        for cell in notebook["cells"]:
            cell["source"] = source_of(cell)
    except (ValueError, KeyError, TypeError) as error:
        raise CourseError(
            f"{path} is no notebook ({error}). Make it again: {folders.made_by}"
        ) from None
    return notebook


def exercises_in(notebook: Mapping[str, Any], chapter: str) -> tuple[Exercise, ...]:
    """Return the exercises of a chapter's notebook, in order."""
    cells = notebook["cells"]
    return tuple(_exercise(cell, chapter) for cell in cells if "undertorch" in cell["metadata"])


def sittings_in(notebook: Mapping[str, Any], exercises: Sequence[Exercise]) -> tuple[Sitting, ...]:
    """Return the sittings that a notebook declares and that have some of these exercises."""
    parts: list[Sitting] = []
    for declared in notebook["metadata"].get("undertorch", {}).get("sittings", ()):
        own = tuple(exercise for exercise in exercises if exercise.sitting == declared["id"])
        if own:
            words = declared["question"], declared["reached"]
            parts.append(Sitting(declared["id"], len(parts) + 1, *words, own))
    return tuple(parts)


def _exercise(cell: Mapping[str, Any], chapter: str, values: Values | None = None) -> Exercise:
    card = cell["metadata"]["undertorch"]
    parameters = read_parameters(card.get("parameters", {}))
    values = values or card.get("variant") or public_values(parameters)
    name = grade_id_of(cell)
    if name is None:
        raise CourseError(f"{chapter}: a cell has a card and no grade_id. Build the chapter again.")
    return Exercise(
        id=name,
        title=card["title"],
        points=float(card["points"]),
        minutes=int(card["minutes"]),
        difficulty=int(card["difficulty"]),
        prerequisites=tuple(card["prerequisites"]),
        teaches=card["teaches"],
        off_limits=tuple(parse_rule(render(rule, values)) for rule in card["off_limits"]),
        stub=source_of(cell),
        budget=card.get("budget", {}),
        chapter=chapter,
        parameters=parameters,
        values=values,
        sitting=card.get("sitting", ""),
        forbids=card.get("forbids", ""),
        short=bool(card.get("short")),
    )
