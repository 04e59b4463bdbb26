"""Runs our commands within nbgrader's configuration: nbgrader_config.py counts for them, too."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager
from pathlib import Path

from nbgrader.apps import AutogradeApp
from nbgrader.converters import Autograde
from nbgrader.converters.base import NbGraderException
from sqlalchemy import make_url

from grader.course.course import CourseError, course_at
from grader.nbgrader.batch import Batch
from grader.nbgrader.gradebook import must_accept, must_open, said_in_words, spare_alembic
from grader.nbgrader.parallel import ParallelAutograde, Tally
from grader.nbgrader.register import as_registered, register
from grader.nbgrader.regrade import ByHand, Change, NeedsRun, Regrade


def autograde_app(
    root: Path, chapter: str, student: str = "*", force: bool = False
) -> AutogradeApp:
    """Return nbgrader's autograde as its command line would set it up in the course at `root`."""
    spare_alembic()
    # errors only: our commands say themselves what became of each submission
    arguments = [chapter, f"--student={student}", "--log-level=ERROR", *["--force"] * force]
    AutogradeApp.clear_instance()
    app: AutogradeApp = AutogradeApp.instance()
    with chdir(root):  # nbgrader looks there for its configuration
        app.initialize(arguments)
        app.coursedir.root = str(app.coursedir.root)  # by default the folder in which it is asked
        app.coursedir.db_url = _absolute(app.coursedir.db_url)
    app.coursedir.assignment_id = chapter
    return app


def _absolute(db_url: str) -> str:
    """Return the address of a gradebook; if it is a file, whatever the folder it is asked in."""
    url = make_url(db_url)
    path = url.database or ""
    if url.get_backend_name() != "sqlite" or not path or path.startswith((":", "file:")):
        return db_url
    return url.set(database=str(Path(path).absolute())).render_as_string(hide_password=False)


def grade_chapter(
    root: Path,
    chapter: str,
    jobs: int,
    student: str,
    force: bool,
    seed: int,
    trust: bool,
    report: Callable[[Tally], None],
    scheduler: str = "",
) -> Tally:
    """Grade a chapter's submissions in `jobs` processes, one for each core if 0.

    With a Dask scheduler's address its workers grade them. Raises `CourseError` if the gradebook
    cannot be opened.
    """
    app = autograde_app(root, chapter, student, force)
    must_accept(app.coursedir.db_url)
    if seed:
        app.config.GradeInBox.seed = seed
    if trust:
        app.config.GradeInBox.trust_submissions = True
    autograde = ParallelAutograde(coursedir=app.coursedir, parent=app)
    autograde.jobs = jobs or len(os.sched_getaffinity(0))
    autograde.report = report
    autograde.scheduler = scheduler
    with nbgrader_says(), chdir(root):  # as nbgrader's own converters start
        return autograde.start()


def regrade_chapter(
    root: Path, chapter: str, student: str, dry: bool
) -> Iterator[Change | ByHand | NeedsRun]:
    """Apply the present checks to the kept evidence of a chapter; change nothing if `dry`."""
    app = autograde_app(root, chapter, student)
    (must_open if dry else must_accept)(app.coursedir.db_url)
    found, directory = course_at(root).chapter(chapter), app.coursedir
    with nbgrader_says():
        if not dry:
            register(found, directory.db_url, directory.course_id)
        batch = Batch(found, as_registered(found, directory.db_url), {})
        yield from Regrade(Autograde(coursedir=directory, parent=app), batch, dry=dry)()


@contextmanager
def nbgrader_says() -> Iterator[None]:
    """Turn what ends an nbgrader command into what ends ours."""
    try:
        with said_in_words():
            yield
    except NbGraderException as error:
        raise CourseError(f"{error}.") from None
