"""Handed in again: what tells one submission from another, and what is kept while two compete.

Times alone do not tell: a file that was replaced by hand has none, or the old one. So a record keeps
a digest of what was graded, time included.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
from enum import Enum
from pathlib import Path
from typing import Any

from grader.evidence.store import OtherSchema, Store
from grader.submission.rebuild import Unreadable, read_regular

STAMP = "timestamp.txt"


def files_that_count(folder: Path) -> dict[str, bytes]:
    """Return what grading reads in a submission's folder, by name. What is no plain file is not in it."""
    found: dict[str, bytes] = {}
    for path in sorted(folder.glob("*")):
        if path.suffix in (".ipynb", ".py") or path.name == STAMP:
            with contextlib.suppress(Unreadable):
                found[path.name] = read_regular(path)
    return found


def digest_of(folder: Path) -> str:
    """Return what tells a submission from another: a digest of its files and of its time."""
    digest = hashlib.sha256()
    for name, content in files_that_count(folder).items():
        digest.update(f"{name!a} {len(content)}\n".encode() + content)
    return digest.hexdigest()


class Handed(str, Enum):
    """How what lies in a submission's folder stands to what was graded."""

    SAME = "same"
    TRIED = "tried"
    """Another that was graded too, and did not count."""
    NEW = "new"
    UNKNOWN = "unknown"
    """The record does not say: an older version wrote it, or there is none."""


def compare(store: Store, folder: Path) -> Handed:
    """Return how what lies in `folder` stands to what was graded."""
    record = read_record(store)
    known = record["intake"].get("handed in") if record else None
    if record is None or known is None:
        return Handed.UNKNOWN
    digest = digest_of(folder)
    if digest == known:
        return Handed.SAME
    return Handed.TRIED if digest in record.get("passed over", ()) else Handed.NEW


def read_record(store: Store) -> dict[str, Any] | None:
    """Return the record; None where there is none that can be read."""
    try:
        return store.read()
    except (OtherSchema, ValueError, KeyError, OSError):
        return None


class Earlier:
    """A graded submission put by while another is graded: its evidence and its autograded folder."""

    def __init__(self, store: Store, autograded: Path) -> None:
        self._store, self._autograded = store, autograded
        self._place = store.folder / "earlier"

    @property
    def is_there(self) -> bool:
        """Is one put by? A run that was cut off leaves it."""
        return self._place.is_dir()

    def put_by(self) -> None:
        """Copy it out of the way of the next, then let the autograded folder go."""
        partial = self._place.with_name("earlier.partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(mode=0o700)
        shutil.copytree(self._autograded, partial / "autograded")
        for path in self._store.folder.iterdir():
            if path.is_file():
                shutil.copy2(path, partial / path.name)
        partial.rename(self._place)
        shutil.rmtree(self._autograded)

    def put_back(self, passed_over: str = "") -> None:
        """Have it count again; remember the submission that does not, by its digest."""
        record = json.loads((self._place / "record.json").read_text(encoding="utf-8"))
        self._store.begin()
        if self._autograded.exists():
            shutil.rmtree(self._autograded)
        shutil.copytree(self._place / "autograded", self._autograded)
        for path in self._place.iterdir():
            if path.is_file() and path.name != "record.json":
                shutil.copy2(path, self._store.folder / path.name)
        if passed_over:
            record["passed over"] = sorted({*record.get("passed over", ()), passed_over})
        self._store.record(record)
        self.forget()

    def forget(self) -> None:
        """Let it go: another counts."""
        shutil.rmtree(self._place, ignore_errors=True)
