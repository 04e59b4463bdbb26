"""nbgrader's autograde with several worker processes and one writer to the gradebook.

For each submission the order is: forget the old scores, remove the old autograded folder, grade,
lay the new folder out beside its place, commit the gradebook's rows, write the record, move the
folder into place. Wherever it is cut off, the submission is graded, or has no autograded folder
and is graded next time.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from nbgrader.api import Gradebook, MissingEntry
from nbgrader.converters import Autograde
from nbgrader.converters.base import BaseConverter, NbGraderException
from nbgrader.preprocessors import AssignLatePenalties
from nbgrader.utils import find_all_files, rmtree
from sqlalchemy.exc import SAWarning, SQLAlchemyError

from grader.course.course_file import Counts
from grader.evidence.outcome import Outcome
from grader.evidence.store import Store
from grader.nbgrader.backlog import Backlog
from grader.nbgrader.batch import Batch, open_batch
from grader.nbgrader.grade import GradeInBox
from grader.nbgrader.gradebook import (
    GradebookBusy,
    Place,
    forget,
    has_scores_by_hand,
    in_one_transaction,
    points_of,
    save,
)
from grader.nbgrader.pool import Pool, Workers
from grader.nbgrader.resubmitted import Earlier, Handed
from grader.nbgrader.worker import Died, Done, Stopped, Task, work


@dataclass
class Tally:
    """How far a run has come. `troubles` are submissions that were not graded, with the reason;
    `stopped` is why the run ended early, `signal` the signal that ended it.

    Students by name: who has no score until a person gives one, who has one and a note for a person,
    who has fewer points than before, of whom a score by hand stands, whose better earlier submission counts, or the first, who was
    dropped from the course, whom the gradebook did not know though it knew others.
    """

    total: int = 0
    graded: int = 0
    skipped: int = 0
    unscored: list[str] = field(default_factory=list)
    noted: list[str] = field(default_factory=list)
    lost: dict[str, tuple[float, float | None]] = field(default_factory=dict)
    by_hand: list[str] = field(default_factory=list)
    earlier: dict[str, tuple[float | None, float | None]] = field(default_factory=dict)
    first: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)
    troubles: dict[str, str] = field(default_factory=dict)
    stopped: str = ""
    signal: int = 0

    @property
    def left(self) -> int:
        """How many are neither graded nor skipped."""
        return self.total - self.graded - self.skipped


class _NoBetter(Exception):
    """What was handed in again is worth no more than what it would replace."""

    def __init__(self, points: float | None) -> None:
        super().__init__(points)
        self.points = points


class Halt(Exception):
    """The run cannot go on; the message says why."""


class ParallelAutograde(Autograde):  # type: ignore[misc]  # nbgrader is untyped
    """Grades as nbgrader's Autograde with Undertorch's settings does, in `jobs` processes.

    With the address of a Dask `scheduler` its workers grade, on whatever machines they run.
    """

    jobs = 1
    scheduler = ""
    serve: Callable[..., None] = staticmethod(work)
    report: Callable[[Tally], None] = staticmethod(lambda tally: None)
    tally: Tally
    _batch: Batch
    _late: AssignLatePenalties
    _backlog: Backlog
    _gradebook: Gradebook
    _known: set[str]
    _staging = False
    """While a folder is laid out: nbgrader's own steps then write beside its place."""

    def start(self) -> Tally:
        """Grade what is to be graded. Raises `NbGraderException` if there is nothing at all."""
        self.tally = Tally()
        self.init_notebooks()
        batch = open_batch(self)
        if batch is None:
            raise NbGraderException(f"{self.coursedir.assignment_id} is no chapter of this course")
        self._before: dict[str, float | None] = {}
        self._batch, self._late = batch, AssignLatePenalties(parent=self)
        self._backlog = Backlog(deque(sorted(map(Path, self.assignments))))
        self.tally.total = len(self._backlog.folders)
        self.tally.dropped = list(batch.dropped)
        with (
            _signals(self.tally) as wake,
            Gradebook(self.coursedir.db_url, self.coursedir.course_id) as self._gradebook,
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore", SAWarning)  # of nbgrader's own add_submission
            self._known = {student.id for student in self._gradebook.students}
            workers = self._workers()
            try:
                self._grade_all(workers, wake)
            except Halt as halt:
                self.tally.stopped = str(halt)
            finally:
                workers.close()
        return self.tally

    def _workers(self) -> Workers:
        """Return who grades: processes of this machine, or Dask's workers."""
        batch, terms = self._batch, GradeInBox(parent=self).terms()
        if self.scheduler:
            from grader.nbgrader.cluster import Cluster

            return Cluster(self.scheduler, batch.chapter, terms, batch.released)
        size = max(1, min(self.jobs, self.tally.total))
        return Pool(size, self.serve, (batch.chapter, terms, batch.released))

    def _grade_all(self, workers: Workers, wake: int) -> None:
        while not self.tally.signal:
            while workers.has_room():
                task = self._next_task()
                if task is None:
                    break
                workers.give(task)
            if not (workers.busy or self._backlog):
                return
            for event in workers.listen(wake):
                if isinstance(event, Done):
                    with _halting():
                        self._finish(event)
                elif isinstance(event, Stopped):
                    raise Halt(event.why)
                elif isinstance(event, Died):
                    self._backlog.take_back(event)
                self.report(self.tally)

    def _next_task(self) -> Task | None:
        """Return the next submission that is to be graded, its old results forgotten."""
        if self._backlog.again:
            return self._backlog.again.popleft()
        while self._backlog.folders:
            folder = self._backlog.folders.popleft()
            student = self._student(folder)
            if not folder.is_dir():
                self.tally.troubles[student] = f"{folder} is gone"
            elif self._wanted(student):
                with _halting():
                    self._make_way(student)
                notes = tuple(self._batch.notes.get(folder, ()))
                return Task(student, folder / f"{self._batch.chapter.name}.ipynb", notes)
            else:
                self.tally.skipped += 1
            self.report(self.tally)
        return None

    def _student(self, folder: Path) -> str:
        pattern = self._format_source("(?P<assignment_id>.*)", "(?P<student_id>.*)", escape=True)
        match = re.match(pattern, str(folder))
        if match is None:
            raise NbGraderException(f"{folder} does not fit nbgrader's directory_structure")
        return match.group("student_id")

    def _wanted(self, student: str) -> bool:
        """Say whether nbgrader would grade it: not excluded, and new, newer, or with --force."""
        directory = self.coursedir
        if student in directory.student_id_exclude.split(","):
            return False
        autograded = self._format_dest(self._batch.chapter.id, student)
        if not os.path.exists(autograded):
            return True
        if self._batch.is_later_than_first(student):
            self.tally.first.append(student)
            return False
        handed = self._batch.handed.get(student, Handed.UNKNOWN)
        if self.force or handed is Handed.NEW:
            return True
        if handed is Handed.TRIED:
            return self._batch.counts is not Counts.BEST
        if handed is Handed.SAME:
            return False
        submitted = self._format_source(self._batch.chapter.id, student)
        new, old = map(directory.get_existing_timestamp, (submitted, autograded))
        return new is not None and old is not None and new > old

    def _make_way(self, student: str) -> None:
        """Forget a student's old results, or put them by if they may be the better ones."""
        book, place = self._gradebook, self._place(student)
        self._before[student] = in_one_transaction(book, lambda: points_of(book, place))
        if self._batch.counts is Counts.BEST and self._batch.is_another(student):
            self._earlier(student).put_by()
        else:
            self._forget(student)

    def _forget(self, student: str) -> None:
        in_one_transaction(self._gradebook, lambda: forget(self._gradebook, self._place(student)))
        record = self._store(student).folder / "record.json"
        record.unlink(missing_ok=True)
        autograded = self._format_dest(self._batch.chapter.id, student)
        if os.path.exists(autograded):
            rmtree(autograded)

    def _finish(self, done: Done) -> None:
        """Write all of a graded submission, in the order that this file's first lines give."""
        try:
            if not os.path.isdir(self._format_source(self._batch.chapter.id, done.student)):
                raise FileNotFoundError("The submission is gone")
            staged = self._stage(done)
            if done.evidence is not None:
                self._store(done.student).take(done.evidence)
            points, by_hand = in_one_transaction(self._gradebook, lambda: self._write_rows(done))
        except (MissingEntry, FileNotFoundError) as error:
            self.tally.troubles[done.student] = str(error)
            return
        except _NoBetter as error:
            shutil.rmtree(staged)
            self._earlier(done.student).put_back(done.record["intake"]["handed in"])
            self.tally.graded += 1
            self.tally.earlier[done.student] = self._before[done.student], error.points
            return
        self._store(done.student).record(done.record)
        os.rename(staged, self._format_dest(self._batch.chapter.id, done.student))
        self._earlier(done.student).forget()
        self._count(done, points)
        if by_hand:
            self.tally.by_hand.append(done.student)

    def _count(self, done: Done, points: float | None) -> None:
        """Take a graded submission into the tally."""
        self.tally.graded += 1
        if self._known and done.student not in self._known:
            self.tally.strangers.append(done.student)
        verdicts = done.record["verdicts"]
        if any(verdict["outcome"] == Outcome.NEEDS_REVIEW for verdict in verdicts):
            self.tally.unscored.append(done.student)
        elif any(verdict["review"] for verdict in verdicts):
            self.tally.noted.append(done.student)
        before = self._before.get(done.student)
        if before is not None and (points is None or points < before):
            self.tally.lost[done.student] = before, points

    def _stage(self, done: Done) -> str:
        """Lay out the autograded folder beside its place: the notebook and what came with it."""
        chapter = self._batch.chapter
        self._staging = True
        try:
            staged = self._format_dest(chapter.id, done.student)
            shutil.rmtree(staged, ignore_errors=True)
            os.makedirs(staged)
            BaseConverter.init_assignment(self, chapter.id, done.student)
            self._copy_given_files(staged)
            notebook = Path(staged, f"{chapter.name}.ipynb")
            notebook.write_text(done.text, encoding="utf-8")
            self.set_permissions(chapter.id, done.student)
        finally:
            self._staging = False
        return staged

    def _copy_given_files(self, staged: str) -> None:
        """Copy what lies beside the source notebook, over what was submitted, as Autograde does."""
        directory, chapter = self.coursedir, self._batch.chapter.id
        source = directory.format_path(directory.source_directory, ".", chapter)
        spared = {os.path.join(source, name) for name in self.exclude_overwriting.get(chapter, [])}
        for path in set(find_all_files(source, [*directory.ignore, "*.ipynb"])) - spared:
            target = os.path.join(staged, os.path.relpath(path, source))
            os.makedirs(os.path.dirname(target), exist_ok=True)
            Path(target).unlink(missing_ok=True)
            shutil.copy(path, target)

    def _format_dest(self, assignment_id: str, student_id: str, escape: bool = False) -> str:
        path = os.path.normpath(super()._format_dest(assignment_id, student_id, escape))
        folder, name = os.path.split(path)
        return os.path.join(folder, f".{name}.partial") if self._staging else path

    def _write_rows(self, done: Done) -> tuple[float | None, bool]:
        """Write a submission's rows; return its points, and whether a person gave some of them.

        Raises `_NoBetter` if they are not to stand.
        """
        book, chapter, student = self._gradebook, self._batch.chapter.id, done.student
        if self.create_student:
            book.update_or_create_student(student)
        else:
            book.find_student(student)
        stamp = self.coursedir.get_existing_timestamp(self._format_source(chapter, student))
        when: dict[str, Any] = {"timestamp": stamp} if stamp else {}
        book.update_or_create_submission(chapter, student, **when)
        save(book, self._place(student), done.marks, self._late)
        points, before = points_of(book, self._place(student)), self._before.get(student)
        rivals = before is not None and self._earlier(student).is_there
        if rivals and (points is None or points <= (before or 0.0)):
            raise _NoBetter(points)
        return points, has_scores_by_hand(book, self._place(student))

    def _place(self, student: str) -> Place:
        return Place(self._batch.chapter.id, self._batch.chapter.name, student)

    def _store(self, student: str) -> Store:
        return Store(self._batch.chapter.root, student, self._batch.chapter.id)

    def _earlier(self, student: str) -> Earlier:
        autograded = Path(super()._format_dest(self._batch.chapter.id, student))
        return Earlier(self._store(student), autograded)


@contextmanager
def _halting() -> Iterator[None]:
    """Turn what this machine refuses into the end of the run."""
    try:
        yield
    except GradebookBusy as error:
        raise Halt(f"{error}.") from None
    except SQLAlchemyError as error:
        raise Halt(
            f"The gradebook could not be written: {getattr(error, 'orig', error)}."
        ) from None
    except OSError as error:
        raise Halt(f"{error.strerror}: {error.filename or 'the course folder'}.") from None


@contextmanager
def _signals(tally: Tally) -> Iterator[int]:
    """Note SIGINT and SIGTERM in the tally and wake the loop: nothing is cut off in between."""
    wake, alarm = os.pipe()

    def note(number: int, _: FrameType | None) -> None:
        tally.signal = number
        os.write(alarm, b"!")

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield wake
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(wake)
        os.close(alarm)
