"""What a Dask worker does for `undertorch grade --scheduler`: it grades what it is sent.

The chapter comes along, so a worker needs no course, only the same Undertorch. It writes to its
own temporary folder; the gradebook and the course are on the machine where the command runs.
"""

from __future__ import annotations

import hashlib
import io
import os
import platform
import shutil
import tarfile
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

import torch
from distributed import get_worker

import grader
from grader.box.tiers import BoxUnavailable
from grader.course.course import Chapter
from grader.evidence.store import Store, versions
from grader.feedback.render import SITE
from grader.nbgrader.chapter_files import chapter_files
from grader.nbgrader.run import Run, Terms
from grader.nbgrader.worker import Done, Stopped, Task, grade_task

_JUDGES = ("course", "submission", "evidence", "inside", "box", "verdict", "feedback", "nbgrader")
"""Folders of Undertorch's code that a verdict depends on, beside the chapter's own."""


_GRADERS = (".py", ".md")
"""What graders are made of: code, and documents of known answers."""


@dataclass(frozen=True)
class Order:
    """What is the same for all submissions of a run. `course` is a tar of the chapter's files;
    `chosen` says that they are those of an instructor's course folder.
    """

    id: str
    chapter: str
    chosen: bool
    terms: Terms
    released: Mapping[str, Any]
    course: bytes
    site: str
    identity: Mapping[str, str]


@dataclass(frozen=True)
class Parcel:
    """One submission: its task and the files in its folder that grading reads."""

    task: Task
    files: Mapping[str, bytes]


@cache
def identity(chapter: str) -> dict[str, str]:
    """Return what must be the same on two machines for the same verdicts on a chapter."""
    house, digest = Path(grader.__file__).parent, hashlib.sha256()
    parts = [p for part in (*_JUDGES, chapter) for p in (house / part).rglob("*")]
    for path in sorted(p for p in parts if p.suffix in _GRADERS):
        digest.update(f"{path.relative_to(house)}\0".encode() + path.read_bytes() + b"\0")
    return {
        "Python": ".".join(platform.python_version_tuple()[:2]),
        "torch": torch.__version__,
        "nbgrader": versions()["nbgrader"],
        "Undertorch": versions()["undertorch"],
        "Undertorch's code": digest.hexdigest()[:12],
    }


def differences(here: Mapping[str, str], there: Mapping[str, str]) -> str:
    """Return in words what another machine has otherwise; "" if nothing."""
    return ", ".join(
        f"{name} {there.get(name, 'missing')} (here {version})"
        for name, version in here.items()
        if there.get(name) != version
    )


def refusal(address: str, other: str) -> Stopped:
    """Return the event of a worker that must not grade, for what it has otherwise."""
    return Stopped(
        f"The worker {address} has {other}. "
        "Install the same commit and the same torch there, and start its workers again"
    )


def pack(chapter: Chapter) -> bytes:
    """Return the files of a chapter that grading reads, as they lie in the course, in a tar."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for path, place in chapter_files(chapter):
            archive.add(path, place)
    return packed.getvalue()


class _CurrentRun:
    """This process's run, kept from one submission to the next."""

    def __init__(self) -> None:
        self._order = ""
        self._run: Run | None = None
        self._lock = Lock()  # orders are ended from Dask's own thread

    def run(self, order: Order) -> Run:
        """Return the run of an order; end that of another. Raises `BoxUnavailable`, `OSError`."""
        if self._run is None or self._order != order.id:
            self.end(self._order)
            with self._lock:
                self._order, self._run = order.id, _open(order)
                self._run.start()
        return self._run

    def end(self, id: str) -> None:
        """End the box of an order and remove its chapter, if it is the one that is here."""
        with self._lock:
            if self._run is not None and self._order == id:
                self._run.close()
                shutil.rmtree(self._run.chapter.root, ignore_errors=True)
                self._run = None


def _open(order: Order) -> Run:
    """Lay out the chapter in a folder of its own."""
    os.environ[SITE] = order.site
    # Dask clears this folder, also after a worker that was killed
    root = Path(tempfile.mkdtemp(dir=get_worker().local_directory))
    with tarfile.open(fileobj=io.BytesIO(order.course)) as archive:
        if hasattr(tarfile, "data_filter"):  # not in every Python 3.11
            archive.extraction_filter = tarfile.data_filter
        archive.extractall(root)
    chapter = Chapter(root, order.chapter, root if order.chosen else None)
    return Run(chapter, order.terms, order.released)


_current = _CurrentRun()


def grade_parcel(order: Order, parcel: Parcel) -> Done | Stopped:
    """Grade one submission; the answer carries all that came of it."""
    address = get_worker().address
    other = differences(order.identity, identity(order.chapter))
    if other:  # a worker that joined after the others had been looked at
        return refusal(address, other)
    try:
        run = _current.run(order)
        task = replace(parcel.task, notebook=_lay_out(run, parcel))
        done = grade_task(run, task)
        store = Store(run.chapter.root, task.student, run.chapter.id)
        evidence = store.files()
        shutil.rmtree(store.folder.parent)
        shutil.rmtree(task.notebook.parent)
    except (OSError, BoxUnavailable) as error:
        _current.end(order.id)
        return Stopped(f"The worker {address} cannot go on: {error}")
    return replace(done, record={**done.record, "versions": versions()}, evidence=evidence)


def end_order(id: str) -> None:
    """End the box of an order, if it is here: the command that sent it is done."""
    _current.end(id)


def _lay_out(run: Run, parcel: Parcel) -> Path:
    """Write the files of a submission; return where its notebook is, or would be."""
    folder = run.chapter.root / "submitted" / parcel.task.student / run.chapter.id
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, content in parcel.files.items():
        (folder / name).write_bytes(content)
    return folder / parcel.task.notebook.name
