"""What is written to nbgrader's gradebook for one submission, in one transaction each.

The rows are those that nbgrader's own SaveAutoGrades and AssignLatePenalties write, and beside them
which grades need a person's eye, and why.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import nbgrader.api
from alembic.script import ScriptDirectory
from nbformat import NotebookNode
from nbgrader.api import Gradebook, InvalidEntry, MissingEntry, SubmittedNotebook
from nbgrader.dbutil import ALEMBIC_DIR
from nbgrader.preprocessors import AssignLatePenalties
from nbgrader.utils import compute_checksum, determine_grade, is_grade, is_solution, is_task
from sqlalchemy import Connection, Engine, create_engine, inspect, make_url, text
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError, SQLAlchemyError
from sqlalchemy.orm import Session

from grader.course.cells import grade_id_of
from grader.course.course import CourseError
from grader.nbgrader.late import penalize
from grader.verdict.verdict import Verdict

LOCK_SECONDS = 30.0
"""How long somebody else may hold the gradebook, a formgrader's save, a backup or a server's
restart, before we stop."""

PAUSE_SECONDS = 0.1
"""Between two tries. SQLite itself waits 5 s in each, a server that restarts refuses at once."""

NAME_LENGTH = 128
"""Characters of a student's id in nbgrader's schema. SQLite takes more, PostgreSQL does not."""

_PASSING = ("08", "40", "55P03", "57P")
"""PostgreSQL's SQLSTATEs, or their classes, of what passes: a connection lost, a deadlock, a lock
that was waited for in vain, a server that restarts (PostgreSQL manual, appendix A)."""

_T = TypeVar("_T")


@dataclass(frozen=True)
class Place:
    """Where a submission's rows are."""

    assignment: str
    notebook: str
    student: str


@dataclass(frozen=True)
class Marks:
    """A graded notebook's score and review flag by grade cell, and comments by solution cell.

    A score is None where nobody knows one: the answer could not be graded. An answer that a person
    should look at has its score, and the flag.
    """

    scores: Mapping[str, tuple[float | None, bool]]
    comments: Mapping[str, str | None]


def marks_of(nb: NotebookNode, verdicts: Mapping[str, Verdict]) -> Marks:
    """Return what the gradebook is to hold of a graded notebook."""
    scores: dict[str, tuple[float | None, bool]] = {}
    comments: dict[str, str | None] = {}
    for cell in nb.cells:
        name = grade_id_of(cell) or ""
        if is_grade(cell):
            verdict = verdicts.get(name)
            known = verdict is None or verdict.scored
            score = determine_grade(cell)[0] if known else None
            scores[name] = score, bool(verdict and verdict.review)
        if is_solution(cell) or is_task(cell):
            untouched = cell.metadata.nbgrader.get("checksum") == compute_checksum(cell)
            comments[name] = "No response." if untouched and not is_task(cell) else None
            verdict = verdicts.get(f"{name}-grade")
            if verdict is not None and verdict.review:
                what = "A note for a person." if verdict.scored else "Needs review."
                comments[name] = f"{what} {verdict.review}"
    return Marks(scores, comments)


def forget(gradebook: Gradebook, place: Place) -> None:
    """Mark every grade of a submission as not known: after a failure no old score may stay."""
    submitted = _submitted(gradebook, place)
    if submitted is None:
        return
    for grade in submitted.grades:
        grade.auto_score = None
        grade.needs_manual_grade = True
    gradebook.db.commit()


def save(gradebook: Gradebook, place: Place, marks: Marks, late: AssignLatePenalties) -> None:
    """Write scores, comments and the late penalty of a submission that has its rows."""
    submitted = gradebook.find_submission_notebook(place.notebook, place.assignment, place.student)
    with gradebook.db.no_autoflush:
        # one query for all cells, held while each row's name is asked for: not one query a row
        cells = submitted.notebook.grade_cells + submitted.notebook.solution_cells
        for grade in submitted.grades:
            if grade.name in marks.scores:
                grade.auto_score, review = marks.scores[grade.name]
                # what a person gave or must give is looked at again, as nbgrader has it
                unsure = grade.manual_score is not None or grade.auto_score is None
                grade.needs_manual_grade = unsure or review
        for comment in submitted.comments:
            if comment.name in marks.comments:
                comment.auto_comment = marks.comments[comment.name]
        del cells
    penalize(gradebook, submitted, late)
    gradebook.db.commit()


def total(points: Iterable[float | None], penalty: float) -> float | None:
    """Return the sum less the penalty, at least 0, to the hundredth; None while one is unknown: a
    part would look like a whole.
    """
    known = list(points)
    if not known or None in known:
        return None
    return max(0.0, round(math.fsum(one or 0.0 for one in known) - penalty, 2))


def points_of(gradebook: Gradebook, place: Place) -> float | None:
    """Return what a submission is worth now, lateness counted; None while nobody knows."""
    submitted = _submitted(gradebook, place)
    if submitted is None:
        return None
    given = [
        (grade.auto_score if grade.manual_score is None else grade.manual_score, grade.extra_credit)
        for grade in submitted.grades
    ]
    points = [None if score is None else score + (extra or 0.0) for score, extra in given]
    return total(points, submitted.late_submission_penalty or 0.0)


def has_scores_by_hand(gradebook: Gradebook, place: Place) -> bool:
    """Did a person score something of a submission? Such a score stands, whatever is graded again."""
    submitted = _submitted(gradebook, place)
    grades = submitted.grades if submitted else ()
    return any(grade.manual_score is not None for grade in grades)


def _submitted(gradebook: Gradebook, place: Place) -> SubmittedNotebook | None:
    """Return a submission's rows; None where it has none."""
    try:
        return gradebook.find_submission_notebook(place.notebook, place.assignment, place.student)
    except MissingEntry:
        return None


def spare_alembic() -> None:
    """Tell nbgrader the version of a new gradebook; it starts the command `alembic` to ask, for 2 s."""
    nbgrader.api.get_alembic_version = _newest_version


def share_engines() -> None:
    """Give all of nbgrader's `Gradebook`s of this process one engine for each gradebook.

    Its autograde opens seven for a submission. Each had an engine of its own, which compiles every
    statement anew. To close a `Gradebook` closes its engine's connections; the engine opens others.
    """
    nbgrader.api.create_engine = _engine


@cache
def _engine(db_url: str, **options: Any) -> Engine:
    return create_engine(db_url, **options)


@contextmanager
def one_transaction(gradebook: Gradebook) -> Iterator[None]:
    """Let all that is done in the block take effect at its end, or not at all.

    nbgrader's own calls commit one by one; in here their commits only flush.
    """
    session = gradebook.db
    commit = session.commit
    session.commit = session.flush
    try:
        _limit_waiting(session)
        yield
        commit()
    except BaseException:
        session.rollback()
        raise
    finally:
        del session.commit
        session.expunge_all()  # a class of a thousand must not pile up in memory


class GradebookBusy(Exception):
    """Somebody else held the gradebook for too long, or its server was away."""


def in_one_transaction(gradebook: Gradebook, action: Callable[[], _T]) -> _T:
    """Do `action` in one transaction; while the gradebook is held by others or away, again.

    It must be the same done twice: of a commit that a lost connection cut off nobody knows. Raises
    `GradebookBusy` after LOCK_SECONDS, and what SQLAlchemy raises of all that does not pass.
    """
    deadline = time.monotonic() + LOCK_SECONDS
    taken = False
    while True:
        try:
            with one_transaction(gradebook):
                return action()
        except (InvalidEntry, DBAPIError) as error:
            # nbgrader's own calls make an InvalidEntry of whatever the database said
            cause = error.__context__ if isinstance(error, InvalidEntry) else error
            if not isinstance(cause, DBAPIError):
                raise
        if isinstance(cause, IntegrityError) and not taken:
            taken = True  # another program added the same row since we looked: now it is found
        elif not _passes(cause):
            raise cause
        elif time.monotonic() > deadline:
            raise GradebookBusy(_why_busy(cause)) from None
        time.sleep(PAUSE_SECONDS)


def must_open(db_url: str) -> None:
    """Raise `CourseError` unless the gradebook at `db_url` can be opened."""
    try:
        engine = create_engine(db_url)
        try:
            engine.connect().close()
        finally:
            engine.dispose()
    except (SQLAlchemyError, ImportError) as error:
        try:
            where = make_url(db_url).render_as_string(hide_password=True)
        except SQLAlchemyError:
            where = "CourseDirectory.db_url"
        said = str(getattr(error, "orig", error)).strip()
        raise CourseError(
            f"The gradebook {where} cannot be opened: {said}\n"
            "It is named in nbgrader_config.py, CourseDirectory.db_url. "
            "PostgreSQL's is postgresql+psycopg://USER@HOST/DATABASE."
        ) from None


def must_accept(db_url: str) -> None:
    """Raise `CourseError` unless this nbgrader can write to the gradebook; while others hold it, wait.

    Nothing is changed. One that is not there yet is none of another version.
    """
    must_open(db_url)
    deadline = time.monotonic() + LOCK_SECONDS
    with said_in_words():
        engine = create_engine(db_url)
        try:
            while True:
                try:
                    with engine.connect() as connection:
                        _try_to_write(connection)
                        _must_be_of_this_version(connection)
                    return
                except DBAPIError as error:
                    if not _passes(error):
                        raise
                    if time.monotonic() > deadline:
                        raise GradebookBusy(_why_busy(error)) from None
                time.sleep(PAUSE_SECONDS)
        finally:
            engine.dispose()


@contextmanager
def said_in_words() -> Iterator[None]:
    """Turn what a gradebook refuses into a `CourseError` that says what to do."""
    try:
        yield
    except GradebookBusy as error:
        raise CourseError(
            f"{error}. Nothing of it was changed. Close what holds it and run the command again."
        ) from None
    except (SQLAlchemyError, InvalidEntry) as error:
        # nbgrader's own calls make an InvalidEntry of whatever the database said
        cause = error.__context__ if isinstance(error, InvalidEntry) else error
        if not isinstance(cause, SQLAlchemyError):
            raise
        said = str(getattr(cause, "orig", cause)).strip()
        if isinstance(cause, DBAPIError) and _passes(cause):
            said = f"another program holds it ({said})"
        raise CourseError(
            f"The gradebook could not be used: {said}. What was not finished is as it was. "
            "Mend that and run the command again."
        ) from None


def _try_to_write(connection: Connection) -> None:
    """Begin to write and take it back: a file may be read-only, or its folder."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        connection.exec_driver_sql("CREATE TABLE undertorch_can_write (number INTEGER)")
        connection.rollback()


@cache
def _newest_version() -> str:
    """Return the version of the gradebooks that the installed nbgrader makes."""
    return str(ScriptDirectory(ALEMBIC_DIR).get_current_head())


def _must_be_of_this_version(connection: Connection) -> None:
    """Raise `CourseError` for a gradebook that an older or newer nbgrader made."""
    if not inspect(connection).has_table("alembic_version"):
        return
    found = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    if found == _newest_version():
        return
    scripts = ScriptDirectory(ALEMBIC_DIR)
    known = {script.revision for script in scripts.walk_revisions()}
    if found in known:
        raise CourseError(
            "The gradebook was made by an older nbgrader. Nothing of it was changed. "
            "Make a copy of it, then run: nbgrader db upgrade"
        )
    raise CourseError(
        f"The gradebook was made by a newer nbgrader than the one here (its version is {found}). "
        "Nothing of it was changed. Install that nbgrader, or name another gradebook in "
        "nbgrader_config.py, CourseDirectory.db_url."
    )


def _limit_waiting(session: Session) -> None:
    """Let PostgreSQL wait for a lock as long as we would; by itself it waits for ever."""
    if session.get_bind().dialect.name == "postgresql":
        session.execute(text(f"SET LOCAL lock_timeout = {int(LOCK_SECONDS * 1000)}"))


def _passes(error: DBAPIError) -> bool:
    """Say whether what the database refused it may grant later."""
    if error.connection_invalidated:
        return True
    state = getattr(error.orig, "sqlstate", None)
    if state is not None:
        return bool(state.startswith(_PASSING))
    refused = ("locked", "connection")  # SQLite's word, and psycopg's where no server answers
    return isinstance(error, OperationalError) and any(word in str(error.orig) for word in refused)


def _why_busy(error: DBAPIError) -> str:
    state = getattr(error.orig, "sqlstate", None) or ""
    if "locked" in str(error.orig) or state.startswith(("40", "55")):
        return f"The gradebook was locked by another program for {LOCK_SECONDS:g} s"
    return f"The gradebook's server was away for {LOCK_SECONDS:g} s"
