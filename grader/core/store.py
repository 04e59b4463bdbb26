"""Keeps evidence: `evidence/<student>/<chapter>/`, private, apart from what nbgrader copies.

`record.json` says what was graded, with which seed, versions and tier, and the verdicts;
`<exercise>.replies` holds the raw replies, compressed. A change of rubric can so be applied
without running anyone's code again.
"""

from __future__ import annotations

import json
import os
import platform
import zlib
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from grader.core.codec import decode, encode
from grader.core.verdict import Verdict

SCHEMA = 1
"""Version of the layout of a record. A reader refuses what is newer."""


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

    def keep(self, exercise: str, replies: Mapping[str, bytes]) -> None:
        """Write the replies of one exercise."""
        if replies:
            self._write(f"{exercise}.replies", zlib.compress(encode(dict(replies)), 6))

    def replies(self, exercise: str) -> dict[str, bytes]:
        """Return the replies of one exercise, by probe and inputs; none if there are none."""
        path = self.folder / f"{exercise}.replies"
        if not path.is_file():
            return {}
        found: dict[str, bytes] = decode(zlib.decompress(path.read_bytes()))
        return found

    def record(self, header: Mapping[str, Any], verdicts: Sequence[Verdict]) -> None:
        """Write the record: `header` (submission's hash, seed, tier), versions, verdicts."""
        record = {
            "schema": SCHEMA,
            **header,
            "versions": versions(),
            "verdicts": [verdict.to_data() for verdict in verdicts],
        }
        self._write("record.json", json.dumps(record, indent=1).encode("utf-8"))

    def read(self) -> dict[str, Any] | None:
        """Return the record, or None if there is none."""
        path = self.folder / "record.json"
        if not path.is_file():
            return None
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return record

    def _write(self, name: str, content: bytes) -> None:
        """Write a private file, whole or not at all."""
        partial = self.folder / f".{name}.partial"
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.replace(partial, self.folder / name)


def versions() -> dict[str, str]:
    """Return the versions that a verdict depends on."""
    found = {"python": platform.python_version()}
    for name in ("undertorch", "torch", "nbgrader"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found
