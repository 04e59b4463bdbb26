"""Keeps evidence: `evidence/<student>/<chapter>/`, private, apart from what nbgrader copies.

`record.json` says what was graded, with which seed, versions and tier, and the verdicts;
`<grade cell>.replies` holds the raw replies, compressed. A change of rubric can so be applied
without running anyone's code again. The record is written last: where there is none, the
submission is not graded. `seconds.json` says how long the code was waited for, which differs from
run to run and so is no part of the record.
"""

from __future__ import annotations

import json
import os
import platform
import time
import zlib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from grader.course.course import CourseError
from grader.files import files_below, remove_tree, write_atomically

SCHEMA = 3
"""Version of the layout of records and replies. A reader refuses any other."""

SECONDS = "seconds.json"
"""The file that says how long the code of each grade cell was waited for."""

_LEVEL = 1
"""Of compression. Level 6 takes five times as long for files a tenth smaller."""


KEPT = 128 * 2**20
"""Most bytes of replies that are kept of one submission. Honest ones take some 20 MiB in a chapter's
exercises together; hostile ones, 64 MiB in each, could fill a disk."""


class OtherSchema(CourseError):
    """The evidence was kept by another version of Undertorch; the message says what to do."""


class Store:
    """The evidence of one student's submission of one chapter."""

    def __init__(self, root: Path, student: str, chapter: str) -> None:
        self.folder = root / "evidence" / student / chapter

    def begin(self) -> None:
        """Make the folder and drop what an earlier run left, the quarantine apart."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for folder in (self.folder, self.folder.parent, self.folder.parent.parent):
            os.chmod(folder, 0o700)
        for path in self.folder.iterdir():
            if path.is_file():
                path.unlink()

    def keep(self, grade_id: str, replies: Mapping[str, bytes]) -> None:
        """Write the transcript of one grade cell: its replies by request.

        What goes beyond the limit is not kept, and cannot be judged again without a run.
        """
        if replies:
            index = json.dumps({key: len(reply) for key, reply in replies.items()}).encode()
            packer = zlib.compressobj(_LEVEL)
            parts = [packer.compress(part) for part in (index, b"\n", *replies.values())]
            packed = b"".join([*parts, packer.flush()])
            there = sum(path.stat().st_size for path in self.folder.glob("*.replies"))
            if there + len(packed) <= KEPT:
                self._write(f"{grade_id}.replies", packed)

    def files(self) -> dict[str, bytes]:
        """Return what `keep` and `keep_seconds` wrote, by file name, to travel to another machine."""
        return {
            path.name: path.read_bytes()
            for path in sorted(self.folder.iterdir())
            if path.name == SECONDS or path.suffix == ".replies"
        }

    def take(self, files: Mapping[str, bytes]) -> None:
        """Write what another machine's store had as `files`, in the place of what is here."""
        self.begin()
        for name, content in files.items():
            self._write(name, content)

    def replies(self, grade_id: str) -> dict[str, bytes]:
        """Return the transcript of one grade cell; empty if none was kept."""
        path = self.folder / f"{grade_id}.replies"
        if not path.is_file():
            return {}
        index, _, rest = zlib.decompress(path.read_bytes()).partition(b"\n")
        found, start = {}, 0
        for key, length in json.loads(index).items():
            found[key] = rest[start : start + length]
            start += length
        return found

    def keep_seconds(self, seconds: Mapping[str, float]) -> None:
        """Write how long the code of each grade cell was waited for, in seconds."""
        self._write(SECONDS, json.dumps({k: round(v, 3) for k, v in seconds.items()}).encode())

    def seconds(self) -> dict[str, float]:
        """Return how long the code of each grade cell was waited for; empty if it is not known."""
        try:
            found: dict[str, float] = json.loads((self.folder / SECONDS).read_text())
        except FileNotFoundError:
            return {}
        return found

    def record(self, record: Mapping[str, Any]) -> None:
        """Write the record: submission's hash, seed, tier, verdicts; schema added, and versions.

        Versions that the record brings are of the machine that graded, and stay.
        """
        whole = {"schema": SCHEMA, **record, "versions": record.get("versions") or versions()}
        self._write("record.json", json.dumps(whole, indent=1).encode("utf-8"))

    def read(self) -> dict[str, Any] | None:
        """Return the record, or None if there is none. Raises `OtherSchema`."""
        path = self.folder / "record.json"
        if not path.is_file():
            return None
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if record["schema"] != SCHEMA:
            raise OtherSchema(
                f"{path} has schema {record['schema']}, this version reads {SCHEMA}: grade again."
            )
        return record

    def _write(self, name: str, content: bytes) -> None:
        write_atomically(self.folder / name, content, private=True, durable=False)


def kept(root: Path, older_than_days: float) -> Iterator[tuple[Path, int]]:
    """Return the folders whose evidence was last written that long ago, and their bytes."""
    limit = time.time() - older_than_days * 86_400
    for folder in sorted((root / "evidence").glob("*/*")):
        files = [entry.stat() for entry in files_below(folder)]
        # what lies in quarantine is as old as a student says
        own = [path.stat().st_mtime for path in folder.iterdir() if path.is_file()]
        if max(own, default=0.0) < limit:
            yield folder, sum(state.st_size for state in files)


def delete(folder: Path) -> None:
    """Delete the evidence of one submission, and the student's folder if it is empty then."""
    remove_tree(folder)
    if not any(folder.parent.iterdir()):
        folder.parent.rmdir()


@cache
def versions() -> dict[str, str]:
    """Return the versions that a verdict depends on."""
    found = {"python": platform.python_version()}
    for name in ("undertorch", "torch", "nbgrader"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found
