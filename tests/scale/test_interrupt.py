"""Interrupted anywhere, a run leaves each submission graded or plainly not, and the next finishes."""

import errno
import io
import os
import signal
import sqlite3
import subprocess
from contextlib import suppress

import psutil
import pytest
from nbgrader.api import Gradebook
from rich.console import Console

from grader.instructor import progress_bar
from grader.instructor.progress_bar import show_progress
from grader.instructor.run_summary import summary
from grader.nbgrader import gradebook as gradebook_rows
from grader.nbgrader import worker
from grader.nbgrader.backlog import REFUSED
from grader.nbgrader.commands import autograde_app
from grader.nbgrader.gradebook import GradebookBusy, Place, forget, in_one_transaction
from grader.nbgrader.parallel import ParallelAutograde, Tally
from grader.nbgrader.run import Run
from tests.scale.course import CHAPTER, HALF, SQUARES, TinyCourse, until

STUDENTS = [f"s{number:02}" for number in range(28)]


def left_over(process):
    """Return the descendants that are still there when the process has ended."""
    return [child for child in process if child.is_running() and child.status() != "zombie"]


def test_signals_at_several_moments(tmp_path):
    """The same class through SIGINT, SIGKILL, SIGTERM, a killed worker; then to the end."""
    course = TinyCourse(tmp_path)
    for student in STUDENTS:
        course.hand_in(student, HALF)
    command = ("undertorch", "grade", CHAPTER, "--jobs", "2")
    moments = [(signal.SIGINT, 3, 130), (signal.SIGKILL, 9, -9), (signal.SIGTERM, 15, 143)]
    for number, moment, status in moments:
        process = course.command(*command)
        until(process, lambda moment=moment: len(course.all_graded()) >= moment)
        family = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(number)
        said = process.said_until_end()
        assert process.status == status, said
        psutil.wait_procs(family, timeout=300)
        assert not left_over(family)
        course.assert_whole(STUDENTS)
        assert moment <= len(course.all_graded()) < len(STUDENTS)
        if number != signal.SIGKILL:
            assert "To go on: undertorch grade tiny" in said
    process = course.command(*command)
    until(process, lambda: len(course.all_graded()) >= 21)
    workers = psutil.Process(process.pid).children()
    workers[0].kill()
    said = process.said_until_end()
    assert process.status == 0, said
    course.assert_whole(STUDENTS)
    assert course.all_graded() == STUDENTS
    assert len(course.scores()) == 2 * len(STUDENTS)
    assert {course.verdicts(s)["double"]["outcome"] for s in STUDENTS} == {"failed"}


def test_plain_nbgrader_grades_what_a_kill_left_half_done(tmp_path):
    course = TinyCourse(tmp_path)
    for student in STUDENTS[:6]:
        course.hand_in(student, HALF)
    process = course.command("nbgrader", "autograde", CHAPTER)
    half = course.autograded(STUDENTS[2])
    until(process, half.exists)
    process.send_signal(signal.SIGKILL)  # in the middle of nbgrader's two steps, or soon after
    process.said_until_end()
    course.autograded(STUDENTS[1]).chmod(0o644)
    course.autograded(STUDENTS[1]).write_text('{"cells": [')  # as a full disk leaves it
    course.run("nbgrader", "autograde", CHAPTER)
    course.assert_whole(STUDENTS[:6])
    assert course.all_graded() == STUDENTS[:6]


# ── Without a box: workers that grade nothing, so that only the parent is looked at ──────────────


def refusing(channel, chapter, terms, released):
    """A worker that says of each submission that it is not run; some make it die or fail."""
    channel.send(worker.Ready())
    run = Run(chapter, terms, released)
    while True:
        task = channel.recv()
        if task.student == "dies" and not task.refused:
            os._exit(1)
        if task.student == "full":
            channel.send(worker.Stopped(os.strerror(errno.ENOSPC)))
            return
        why = task.refused or "not run"
        channel.send(worker.grade_task(run, worker.Task(task.student, task.notebook, (), why)))


@pytest.fixture
def course(tmp_path):
    return TinyCourse(tmp_path)


@pytest.fixture
def grade(course, monkeypatch):
    """Grade the course in this process with such workers; return the tally."""
    monkeypatch.chdir(course.root)

    def run(**changes):
        app = autograde_app(course.root, CHAPTER, force=True)
        autograde = ParallelAutograde(coursedir=app.coursedir, parent=app)
        autograde.jobs, autograde.serve = 2, refusing
        for name, value in changes.items():
            setattr(autograde, name, value)
        return autograde.start()

    return run


def test_a_submission_that_kills_its_worker_twice_needs_review(course, grade):
    for student in ("a", "b", "dies", "e", "f"):
        course.hand_in(student)
    tally = grade()
    assert (tally.graded, tally.left, tally.stopped) == (5, 0, "")
    reviews = {
        name: course.verdicts(name)["double-grade"]["review"] for name in course.all_graded()
    }
    assert reviews.pop("dies") == REFUSED
    assert set(reviews.values()) == {"not run"}


def test_whom_the_gradebook_did_not_know_is_named(course, grade):
    """A folder's name that is no student's id becomes a student, as nbgrader has it."""
    course.hand_in("a")
    assert grade().strangers == []  # no roster
    course.hand_in("b")
    tally = grade()
    assert (tally.graded, tally.strangers) == (2, ["b"])
    assert "on no roster: b. " in summary(tally, CHAPTER)


def test_a_full_disk_ends_the_run_and_no_old_score_stays(course, grade):
    course.hand_in("a")
    course.hand_in("full")
    course.run("undertorch", "grade", CHAPTER, "--student", "full", status=0)
    assert course.scores()["full", "double-grade"] == 4.0
    tally = grade(jobs=1)
    assert tally.stopped == "No space left on device"
    assert not course.autograded("full").exists()
    assert course.record("full") is None
    assert [key for key in course.scores() if key[0] == "full"] == []


def test_a_locked_gradebook_is_waited_for_then_named(course, grade, monkeypatch):
    course.hand_in("a")
    grade()
    monkeypatch.setattr(gradebook_rows, "LOCK_SECONDS", 0.1)
    other = sqlite3.connect(course.root / "gradebook.db", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    url = f"sqlite:///{course.root}/gradebook.db?timeout=0.05"
    other.rollback()
    with Gradebook(url) as gradebook:
        other.execute("BEGIN EXCLUSIVE")
        place = Place(CHAPTER, CHAPTER, "a")
        with pytest.raises(GradebookBusy, match="locked by another program"):
            in_one_transaction(gradebook, lambda: forget(gradebook, place))
        other.rollback()
        in_one_transaction(gradebook, lambda: forget(gradebook, place))
    other.close()
    assert course.scores() == {}
    assert grade().graded == 1


def test_submissions_that_vanish_are_named(course, grade, monkeypatch):
    for student in ("a", "b", "c"):
        course.hand_in(student)

    def vanish(tally):
        (course.root / "submitted").rename(course.root / "elsewhere")

    monkeypatch.setattr(ParallelAutograde, "_wanted", _then(ParallelAutograde._wanted, vanish))
    tally = grade()
    assert tally.left == len(tally.troubles) == 3
    assert course.all_graded() == []


def _then(method, action):
    """Return the method, which also does `action` the first time."""
    done = []

    def wrapped(self, *args):
        if not done:
            done.append(action(self.tally))
        return method(self, *args)

    return wrapped


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a file system of its own")
def test_a_disk_that_runs_full_then_has_room(tmp_path):
    """A real full disk: the run stops and says so; with room again it finishes."""
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", disk], check=True)
    try:
        course = TinyCourse(disk)
        for student in STUDENTS:
            course.hand_in(student, SQUARES)
        process = course.command("undertorch", "grade", CHAPTER, "--jobs", "2")
        until(process, lambda: len(course.all_graded()) >= 5)
        filler = disk / "filler"
        fill(filler)
        said = process.said_until_end()
        assert process.status == 1, said
        assert "Stopped: " in said and "To go on" in said
        filler.unlink()
        course.assert_whole(STUDENTS)
        course.run("undertorch", "grade", CHAPTER, "--jobs", "2")
        assert course.all_graded() == STUDENTS
        course.assert_whole(STUDENTS)
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


def fill(path):
    """Write until nothing more fits."""
    with path.open("wb", buffering=0) as file:
        for size in (65536, 512, 1):
            with suppress(OSError):
                while True:
                    file.write(b"x" * size)


def test_a_run_that_nobody_watches_says_how_far_it_is(monkeypatch, capsys):
    monkeypatch.setattr(progress_bar, "SPEAKS_EVERY", 0.0)
    with show_progress(Console(file=io.StringIO())) as report:
        report(Tally(total=3, graded=1))
    assert capsys.readouterr().err.startswith("1 of 3: 1 graded, 0 for review")
