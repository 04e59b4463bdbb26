"""A worker of the parallel command: grades submission after submission, writes their evidence.

The gradebook and the graded notebooks are its parent's alone. What a worker is given and what it
answers is the same for a process of this machine (`pool`) and for one of another (`cluster`).
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import nbformat

from grader.box.tiers import BoxUnavailable
from grader.course.course import Chapter
from grader.evidence.store import Store
from grader.inside.process import syscalls
from grader.nbgrader.gradebook import Marks, marks_of
from grader.nbgrader.reading import INTAKE
from grader.nbgrader.resubmitted import digest_of
from grader.nbgrader.run import Run, Terms, grade_notebook


@dataclass(frozen=True)
class Task:
    """One submission to grade. `refused` says why its code is not to be run again, if it is not."""

    student: str
    notebook: Path
    notes: tuple[str, ...]
    refused: str = ""


@dataclass(frozen=True)
class Ready:
    """The worker's box is up."""


@dataclass(frozen=True)
class Done:
    """A graded submission: the notebook's text, the gradebook's marks, the record.

    `evidence` are the files of replies by name, if the worker could not lay them into the course.
    """

    student: str
    text: str
    marks: Marks
    record: Mapping[str, Any]
    evidence: Mapping[str, bytes] | None = None


@dataclass(frozen=True)
class Stopped:
    """This machine cannot go on: no box, no space. It says nothing about a submission."""

    why: str


@dataclass(frozen=True)
class Died:
    """A worker ended `times` times while it held these tasks; it was grading the first."""

    tasks: tuple[Task, ...]
    times: int = 1


Event = Ready | Done | Stopped | Died


def work(channel: Connection, chapter: Chapter, terms: Terms, released: Mapping[str, Any]) -> None:
    """Answer each `Task` on the channel with `Done`, in order, until it is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if sys.platform == "linux":
        syscalls.die_with_parent(signal.SIGKILL)
    run = Run(chapter, terms, released)
    try:
        run.start()
        channel.send(Ready())
        while True:
            channel.send(grade_task(run, channel.recv()))
    except (EOFError, BrokenPipeError):
        pass  # the parent is done with us, or gone
    except (OSError, BoxUnavailable) as error:
        channel.send(Stopped(str(error)))
    finally:
        run.close()


def grade_task(run: Run, task: Task) -> Done:
    """Grade one submission and keep its evidence, all but the record, in the chapter's course."""
    store = Store(run.chapter.root, task.student, run.chapter.id)
    store.begin()
    if task.refused:
        node = nbformat.from_dict(dict(run.released))
        notes = {"": list(task.notes)}
        handed_in = digest_of(task.notebook.parent)
        node.metadata[INTAKE] = {
            "handed in": handed_in, "notes": notes, "refused": task.refused, "student": task.student,
        }  # fmt: skip
    else:
        node = run.reader.take(task.notebook, task.student, task.notes)
    graded = grade_notebook(run, node)
    for grade_id, replies in graded.replies.items():
        store.keep(grade_id, replies)
    store.keep_seconds(graded.seconds)
    text = str(nbformat.writes(graded.notebook, version=4))
    marks = marks_of(graded.notebook, graded.verdicts)
    return Done(task.student, text if text.endswith("\n") else text + "\n", marks, graded.record)
