"""A gradebook that is held by others, read-only or of another version: a sentence, and nothing lost."""

import csv
import sqlite3
import threading
import time
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from grader.course.course import Course, CourseError
from grader.nbgrader import gradebook as rows
from grader.nbgrader.commands import autograde_app
from grader.nbgrader.exports import CanvasExporter, CsvExporter, MoodleExporter
from grader.nbgrader.gradebook import must_accept, said_in_words
from grader.nbgrader.register import register
from tests import ROOT

FORMULAS = ("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", " =1", "＝1", '",=1,"')


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    """The bytes of a gradebook without rows."""
    rows.spare_alembic()
    path = tmp_path_factory.mktemp("empty") / "gradebook.db"
    Gradebook(f"sqlite:///{path}").close()
    return path.read_bytes()


@pytest.fixture
def path(tmp_path, empty, monkeypatch):
    monkeypatch.setattr(rows, "LOCK_SECONDS", 0.3)
    path = tmp_path / "gradebook.db"
    path.write_bytes(empty)
    return path


def url(path, *options):
    return f"sqlite:///{path}?{'&'.join(['timeout=0.05', *options])}"


def refused(address):
    with pytest.raises(CourseError) as refusal:
        must_accept(address)
    return str(refusal.value)


def test_an_ordinary_one_is_accepted_and_not_changed(path, empty):
    must_accept(url(path))
    assert path.read_bytes() == empty


def test_one_that_is_not_there_yet_is_accepted(tmp_path):
    must_accept(url(tmp_path / "new.db"))
    Gradebook(url(tmp_path / "new.db")).close()
    must_accept(url(tmp_path / "new.db"))


@pytest.mark.parametrize("how", ["BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"])
def test_one_that_another_program_holds_is_waited_for_then_named(path, empty, how):
    other = sqlite3.connect(path, isolation_level=None)
    other.execute(how)
    start = time.monotonic()
    assert refused(url(path)).startswith(
        "The gradebook was locked by another program for 0.3 s. Nothing of it was changed."
    )
    assert time.monotonic() - start >= 0.3
    other.rollback()
    other.close()
    assert path.read_bytes() == empty
    must_accept(url(path))


def test_one_that_is_let_go_in_time_is_accepted(path, monkeypatch):
    monkeypatch.setattr(rows, "LOCK_SECONDS", 30)
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN EXCLUSIVE")
    threading.Timer(0.5, other.rollback).start()
    must_accept(url(path))


def test_one_that_is_read_only_is_named(path, empty):
    assert "readonly" in refused(url(f"file:{path}", "mode=ro", "uri=true"))
    assert path.read_bytes() == empty


def test_what_is_no_gradebook_is_named(path):
    path.write_bytes(b"no database, whatever it is" * 100)
    assert "file is not a database" in refused(url(path))


@pytest.mark.parametrize(
    ("version", "words"),
    [("50a4d84c131a", "an older nbgrader"), ("ffffffffffff", "a newer nbgrader")],
)
def test_one_of_another_version_is_named_and_not_changed(path, version, words):
    with sqlite3.connect(path) as other:
        other.execute("UPDATE alembic_version SET version_num = ?", (version,))
    before = path.read_bytes()
    assert words in refused(url(path))
    assert path.read_bytes() == before


def test_what_a_later_step_meets_is_said_too(path, monkeypatch):
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(CourseError, match="another program holds it"), said_in_words():
        register(Course(ROOT).chapter("ch01_formats"), url(path), "default_course")
    other.rollback()
    other.close()
    with pytest.raises(ZeroDivisionError), said_in_words():
        _ = 1 / 0


@pytest.mark.parametrize("exporter", [CsvExporter, CanvasExporter, MoodleExporter])
def test_no_cell_of_an_export_is_a_formula(path, tmp_path, exporter):
    with Gradebook(url(path)) as gradebook:
        gradebook.update_or_create_assignment("ch01_formats")
        for number, text in enumerate(FORMULAS):
            names = {"first_name": text, "last_name": text, "email": text}
            gradebook.update_or_create_student(f"{text}{number}", lms_user_id=text, **names)
        made = exporter(to=str(tmp_path / "out.csv"))
        made.export(gradebook)
    found = list(csv.reader((tmp_path / "out.csv").open(newline="")))
    assert len(found) > len(FORMULAS)
    assert len({len(row) for row in found}) == 1
    for row in found[1:]:
        for cell in row:
            assert not cell.lstrip(" ").startswith(("=", "+", "-", "@", "\t", "\r", "＝")), row


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("", "sqlite:///{folder}/gradebook.db"),
        ("sqlite:///marks/book.db", "sqlite:///{folder}/marks/book.db"),
        ("sqlite:////srv/book.db?timeout=3", "sqlite:////srv/book.db?timeout=3"),
        ("sqlite:///:memory:", "sqlite:///:memory:"),
        ("sqlite:///file:book.db?uri=true", "sqlite:///file:book.db?uri=true"),
        ("postgresql://ada:secret@db/course", "postgresql://ada:secret@db/course"),
    ],
)
def test_a_file_is_meant_from_the_course_and_nobody_moves_there(tmp_path, written, meant):
    line = f"get_config().CourseDirectory.db_url = {written!r}\n" if written else ""
    (tmp_path / "nbgrader_config.py").write_text(line)
    before = Path.cwd()
    directory = autograde_app(tmp_path, "").coursedir
    assert Path.cwd() == before
    assert (directory.root, directory.db_url) == (str(tmp_path), meant.format(folder=tmp_path))
