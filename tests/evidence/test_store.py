"""Evidence on disk: bounded for each submission, listed and deleted whatever lies in quarantine."""

import os

import pytest

from grader.course.course import CourseError
from grader.evidence.store import SCHEMA, Store, delete, kept


def test_replies_of_one_submission_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr("grader.evidence.store.KEPT", 3000)
    store = Store(tmp_path, "ada", "ch01_formats")
    store.begin()
    for name in ("decode-grade", "round_to_bf16-grade"):
        store.keep(name, {"request": os.urandom(2000)})
    assert len(store.replies("decode-grade")["request"]) == 2000
    assert store.replies("round_to_bf16-grade") == {}


def test_what_lies_in_quarantine_has_no_say_about_age(tmp_path):
    store = Store(tmp_path, "ada", "ch01_formats")
    store.begin()
    store.keep("decode-grade", {"request": b"reply"})
    quarantine = store.folder / "quarantine" / "notes"
    quarantine.mkdir(parents=True)
    (quarantine / "file").write_bytes(b"x" * 1000)
    os.utime(quarantine / "file", (4e9, 4e9))  # in the year 2096, so its student says
    (quarantine / "link").symlink_to(tmp_path)
    os.utime(store.folder / "decode-grade.replies", (1e9, 1e9))
    ((folder, size),) = kept(tmp_path, older_than_days=30)
    assert folder == store.folder and 1000 < size < 2000
    delete(folder)
    assert not (tmp_path / "evidence" / "ada").exists() and tmp_path.is_dir()


def test_evidence_of_another_version_is_refused_in_words(tmp_path):
    store = Store(tmp_path, "ada", "ch01_formats")
    store.begin()
    store.record({})
    path = store.folder / "record.json"
    path.write_text(path.read_text().replace(f'"schema": {SCHEMA}', '"schema": 1'))
    with pytest.raises(CourseError, match=r"has schema 1, this version reads .*: grade again"):
        store.read()
