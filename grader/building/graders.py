"""What grades a chapter, loaded as its author wrote it: probes, checks, known answers.

Whatever is wrong with one of these files becomes an `AuthorError` of one line.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterable
from pathlib import Path

from grader.course.course import AuthorError, Chapter, CourseError, Exercise
from grader.inside.probe import Probe, ProbeError
from grader.inside.serve import prepare
from grader.verdict.grading import ExerciseGrader


def ready_probes(chapter: Chapter) -> dict[str, Probe]:
    """Make this process ready to fork for a chapter; return the chapter's probes.

    Raises `AuthorError` if they cannot be loaded, or there are none.
    """
    try:
        probes = prepare(chapter.probes, chapter.preload)
    except CourseError:
        raise
    except Exception as error:  # the files are an author's: anything may be wrong with them
        raise AuthorError(_told(error, chapter.graders)) from None
    if not probes:
        raise AuthorError(f"{chapter.probes} defines no probe. Write one: a function with @probe.")
    return probes


def check_graders(chapter: Chapter, exercises: Iterable[Exercise]) -> None:
    """Load what grades these exercises. Raises `AuthorError`."""
    probes = ready_probes(chapter)
    for exercise in exercises:
        grader = ExerciseGrader(chapter, exercise, probes)
        _ = grader.suite, grader.answers


def _told(error: Exception, graders: Path) -> str:
    """Return what is wrong with a chapter's graders, with the file and the line of theirs."""
    if isinstance(error, ProbeError):
        return f"{error}."
    if isinstance(error, SyntaxError):
        return f"{error.filename}:{error.lineno}: {error.msg}."
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if Path(frame.filename).is_relative_to(graders)]
    where = f"{ours[-1].filename}:{ours[-1].lineno}" if ours else str(graders)
    return f"{where}: {type(error).__name__}: {error}"
