"""Opens a batch of submissions, before nbgrader or a worker touches any: registers the chapter,
clears what must not be copied, and undoes what an interrupted run left half done.
"""

from __future__ import annotations

import glob
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nbgrader.converters import Autograde
from nbgrader.utils import rmtree

from grader.course.course import Chapter, Course, CourseError, course_at
from grader.course.course_file import Counts
from grader.evidence.store import Store
from grader.nbgrader.dropped import dropped_from
from grader.nbgrader.grade import GradeInBox
from grader.nbgrader.gradebook import NAME_LENGTH
from grader.nbgrader.intake import take_in
from grader.nbgrader.reading import INTAKE
from grader.nbgrader.register import as_registered, register
from grader.nbgrader.resubmitted import STAMP, Earlier, Handed, compare


@dataclass(frozen=True)
class Batch:
    """A chapter that is about to be graded. `notes` are intake's, by submission folder.

    `released` is the released notebook as the gradebook knows it; `handed` says by student, of those
    who have been graded, how what lies in their folder stands to that.
    """

    chapter: Chapter
    released: Mapping[str, Any]
    notes: Mapping[Path, list[str]]
    handed: Mapping[str, Handed] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    counts: Counts = Counts.LATEST

    def is_later_than_first(self, student: str) -> bool:
        """Does a submission not count because the first does?"""
        return self.counts is Counts.FIRST and self.is_another(student)

    def is_another(self, student: str) -> bool:
        """Does another submission lie in a student's folder than was graded?"""
        return self.handed.get(student) in (Handed.NEW, Handed.TRIED)


def open_batch(autograde: Autograde) -> Batch | None:
    """Prepare all submissions that nbgrader found; None for an assignment that is no chapter."""
    directory = autograde.coursedir
    course = course_at(Path(directory.root).resolve())
    try:
        chapter = course.chapter(directory.assignment_id)
    except CourseError:
        return None  # an assignment of another kind; nbgrader's own ways apply
    register(chapter, directory.db_url, directory.course_id)
    notes = {}
    left = set(dropped_from(course.root))
    folders = _submissions(autograde)
    dropped = [folder for folder in folders if folder.parent.name in left]
    for folder in dropped:
        autograde.log.warning(
            "%s was dropped from the course. It is not graded.", folder.parent.name
        )
        autograde.assignments.pop(str(folder), None)
    for folder in sorted(set(folders) - set(dropped)):
        said = _take_in(autograde, course, chapter, folder)
        if said is not None:
            notes[folder] = said
    handed = {}
    for folder in notes:
        student = folder.parent.name
        graded = Path(autograde._format_dest(chapter.id, student))
        store = Store(course.root, student, chapter.id)
        earlier = Earlier(store, graded)
        if earlier.is_there:  # the run that put it by was cut off
            earlier.put_back()
        _undo_half_done(autograde, chapter, student)
        _forget_untimed(autograde, chapter, folder)
        if graded.is_dir():
            handed[student] = compare(store, folder)
    counts = Counts(GradeInBox(parent=autograde).counts)
    return Batch(
        chapter,
        as_registered(chapter, directory.db_url),
        notes,
        handed,
        tuple(folder.parent.name for folder in dropped),
        counts,
    )


def settle_resubmissions(autograde: Autograde, batch: Batch) -> None:
    """Have nbgrader grade what was handed in again, or pass it over, as the course says.

    nbgrader itself compares times alone.
    """
    for folder in batch.notes:
        student = folder.parent.name
        if not batch.is_another(student):
            continue
        if batch.counts is Counts.LATEST:
            autograde.log.warning("%s handed in again; it is graded again.", student)
            rmtree(autograde._format_dest(batch.chapter.id, student))
            continue
        autograde.assignments.pop(str(folder), None)
        if batch.counts is Counts.FIRST:
            autograde.log.warning("%s handed in again; the first counts.", student)
        elif batch.handed[student] is Handed.NEW:
            autograde.log.warning(
                "%s handed in again; not graded here. To keep the better one: undertorch grade %s",
                student,
                batch.chapter.id,
            )


def _submissions(autograde: Autograde) -> list[Path]:
    """Return the folders handed in, those without a notebook too."""
    directory = autograde.coursedir
    pattern = directory.format_path(
        directory.submitted_directory, directory.student_id, directory.assignment_id
    )
    return [Path(folder) for folder in sorted(glob.glob(pattern))]  # as nbgrader finds them


def _take_in(
    autograde: Autograde, course: Course, chapter: Chapter, folder: Path
) -> list[str] | None:
    """Clear a submission's folder; return what was done, or None if it is not to be graded."""
    student = folder.parent.name
    store = Store(course.root, student, chapter.id)
    expected = f"{chapter.name}.ipynb"
    try:
        # a line break would end nbgrader's whole batch, bytes that are no text its database's
        if not student.isprintable():
            raise OSError(f"{student!a} can be no student's id: rename the folder")
        if len(student) > NAME_LENGTH:
            raise OSError(f"a student's id has up to {NAME_LENGTH} characters: rename the folder")
        said = take_in(folder, store.folder / "quarantine", expected)
    except OSError as error:
        autograde.log.error("%a: %s. It is not graded.", student, error)
        autograde.assignments.pop(str(folder), None)
        return None
    for line in said:
        autograde.log.warning("%s: %s", student, line)
    # nbgrader passes over a folder in which its pattern matched no notebook, and would grade
    # every other notebook that lies there
    autograde.assignments[str(folder)] = [str(folder / expected)]
    return said


def _undo_half_done(autograde: Autograde, chapter: Chapter, student: str) -> None:
    """Remove an autograded folder without verdicts: nbgrader would take it for graded for ever.

    A run that is killed between nbgrader's two steps leaves one, or half a file.
    """
    folder = Path(autograde._format_dest(chapter.id, student))
    notebook = folder / f"{chapter.name}.ipynb"
    if not folder.is_dir():
        return
    text = notebook.read_text(encoding="utf-8", errors="replace") if notebook.is_file() else ""
    if not text.rstrip().endswith("}") or f'"{INTAKE}"' in text:
        autograde.log.warning("%s was not graded to the end; it is graded again.", student)
        rmtree(str(folder))


def _forget_untimed(autograde: Autograde, chapter: Chapter, folder: Path) -> None:
    """Remove what was graded without a time if what lies here now has one.

    nbgrader compares times to see what was handed in again, and would pass over this.
    """
    student = folder.parent.name
    graded = Path(autograde._format_dest(chapter.id, student))
    if graded.is_dir() and (folder / STAMP).is_file() and not (graded / STAMP).exists():
        autograde.log.warning("%s was graded without a time before; it is graded again.", student)
        rmtree(str(graded))
