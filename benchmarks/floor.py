"""Ours against the floor, on chapter 1's reference submission, with a profile of what lies between.

The floor is what cannot be left out: a warm process that runs the same cells and probes (the
requests that a real grading sent, sent again to a fresh fork of it, nothing judged), and nbgrader's
own conversion and gradebook writes (`nbgrader autograde --no-execute`, its own steps).
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import course as benchmark
import nbformat
from course import ROOT, Moment, row, start
from stock import forget, medians

from grader.building.sample import fill, reference_sources
from grader.course.course import Chapter, Course
from grader.evidence.wire.channel import Transport
from grader.inside.process.budget import Budget
from grader.nbgrader.register import as_registered, register
from grader.nbgrader.run import Run, Terms
from grader.nbgrader.worker import Task, grade_task

CHAPTER = "ch01_formats"
STUDENTS = 12
ROUNDS = 3
"""Each times all: a machine has slow minutes, and a ratio of two minutes says nothing."""

TIMES = 8
"""How often the requests of one grading are timed, and the whole grading, in each round."""


class Recorded:
    """Passes requests on and keeps them, by child."""

    def __init__(self, transport: Transport, log: list[bytes]) -> None:
        self._transport, self._log = transport, log
        self.close = transport.close

    def ask(self, request: bytes, watch: bool = False) -> bytes:
        if not watch:  # a second hearing can be left out
            self._log.append(request)
        return self._transport.ask(request, watch)


def main() -> None:
    """Print ours over the floor, then the parts."""
    benchmark.CHAPTER = CHAPTER
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        make_course(root, STUDENTS)
        chapter = Course(root).chapter(CHAPTER)
        nbgrader: dict[str, list[Moment]] = {"stock": [], "ours": [], "parallel": []}
        warm: list[Moment] = []
        judged: list[Moment] = []
        commands = {
            "stock": ("nbgrader", "autograde", CHAPTER, "--no-execute"),
            "ours": ("nbgrader", "autograde", CHAPTER),
            "parallel": ("undertorch", "grade", CHAPTER, "--jobs=1"),
        }
        register(chapter, f"sqlite:///{root}/gradebook.db", "default_course")
        config = root / "nbgrader_config.py"
        settings = config.read_text()
        for _ in range(ROUNDS):
            for name, command in commands.items():
                config.write_text(_STOCK if name == "stock" else settings)
                forget(root)
                process = start(root, *command)
                found = benchmark.moments(root, process, STUDENTS)
                nbgrader[name].append(benchmark.each(found))
            config.write_text(settings)
            benchmark.PROCESSOR.enter()
            for asked, graded in _warm(chapter, root):
                warm.append(asked)
                judged.append(graded)
            benchmark.PROCESSOR.leave()
    stock, questions, grading = medians(nbgrader["stock"]), medians(warm), medians(judged)
    floor = Moment(questions.clock + stock.clock, questions.processor + stock.processor)
    row("", "seconds", "core s", "× floor")
    row("warm process, same cells and probes", questions.clock, questions.processor, "")
    row("nbgrader's conversion and gradebook", stock.clock, stock.processor, "")
    row("the floor: both", floor.clock, floor.processor, 1.0)
    for title, key in (("nbgrader autograde", "ours"), ("undertorch grade --jobs 1", "parallel")):
        ours = medians(nbgrader[key])
        row(title, ours.clock, ours.processor, ours.processor / floor.processor)
    row("of which: grading in all, without nbgrader", grading.clock, grading.processor, "")


_STOCK = """
c = get_config()
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "chapters"
"""


def make_course(root: Path, students: int) -> dict[str, Any]:
    """Write a course with this chapter, and a class of right answers; return their notebook."""
    for name in ("solutions", "chapters", "grader"):
        shutil.copytree(ROOT / name, root / name)
    shutil.copy(ROOT / "nbgrader_config.py", root)
    chapter = Course(root).chapter(CHAPTER)
    notebook = fill(chapter, reference_sources(chapter))
    for number in range(students):
        path = f"submitted/s{number:04}/{CHAPTER}/{chapter.name}.ipynb"
        benchmark.write(root, path, nbformat.writes(nbformat.from_dict(notebook), version=4))
    return notebook


def _warm(chapter: Chapter, root: Path) -> Iterator[tuple[Moment, Moment]]:
    """Time the requests of one grading alone, and the whole grading, in turn; counted apart."""
    released = as_registered(chapter, f"sqlite:///{root}/gradebook.db")
    run = Run(chapter, Terms(5), released)
    run.start()
    requests: list[list[bytes]] = []
    straight = run.open

    def recording(name: str, budget: Budget) -> Transport:
        requests.append([])
        return Recorded(straight(name, budget), requests[-1])

    task = Task("s0000", root / f"submitted/s0000/{CHAPTER}/{chapter.name}.ipynb", ())
    grade_task(run, task)
    run.open = recording  # type: ignore[method-assign]
    grade_task(run, task)
    run.open = straight  # type: ignore[method-assign]

    def ask_again() -> None:
        for asked in requests:
            child = run.open("", Budget())
            for request in asked:
                child.ask(request)
            child.close()

    for _ in range(TIMES):
        yield _time(ask_again), _time(lambda: grade_task(run, task))
    run.close()


def _time(action: Callable[[], object]) -> Moment:
    clock, processor = time.perf_counter(), benchmark.PROCESSOR.seconds()
    action()
    return Moment(time.perf_counter() - clock, benchmark.PROCESSOR.seconds() - processor)


if __name__ == "__main__":
    main()
