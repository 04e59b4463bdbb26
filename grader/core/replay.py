"""Answers from a transcript instead of from code: what a kept submission said when it was graded."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Collection, Mapping
from pathlib import Path

from grader.core.codec import decode
from grader.core.evidence import ENDED, request_key
from grader.core.outcome import Ended, Outcome
from grader.core.probe import probe_modules
from grader.core.program import Cell, Kind, slice_program


class Replay:
    """A `Transport` that runs nothing. What was never asked is noted in `missing`, in words.

    `changed` names the probes whose code is no longer the one that was run.
    """

    def __init__(self, replies: Mapping[str, bytes], changed: Collection[str] = ()) -> None:
        self._replies = replies
        self._changed = changed
        self._end: list[str] = decode(replies[ENDED]) if ENDED in replies else ["", "", ""]
        self.missing: list[str] = []

    def ask(self, request: bytes) -> bytes:
        """Return the kept reply to the request. Raises `Ended` where the process ended."""
        key = request_key(request)
        asked = decode(request)
        if asked.get("probe") in self._changed:
            self._miss(f"the probe `{asked['probe']}` was changed")
        ended_by, outcome, detail = self._end
        if key == ended_by:
            raise Ended(Outcome(outcome), detail)
        if key not in self._replies:
            self._miss(_WORDS[asked["do"]].format(probe=asked.get("probe")))
        return self._replies[key]

    def _miss(self, why: str) -> None:
        self.missing.append(why)
        raise Ended(Outcome.NEEDS_REVIEW, why)

    def close(self) -> None:
        """Nothing to end."""


_WORDS = {
    "load": "the cells that come with the notebook were changed",
    "probe": "the probe `{probe}` is asked for inputs that it was not asked for then",
    "plain": "the test cell was changed",
}


def probe_versions(path: Path, names: Collection[str]) -> dict[str, str]:
    """Return for each of a chapter's probes a digest of its code and of all that it names there.

    Comments and layout do not count.
    """
    modules = probe_modules(path)
    given = [Cell(Kind.GIVEN, m.stem, m.read_text(encoding="utf-8")) for m in modules]
    versions = {}
    for name in sorted(names):
        program = slice_program(name, (), [*given, Cell(Kind.SOLUTION, name, name)])
        text = "\n".join(ast.dump(ast.parse(source)) for _, source in program.parts)
        versions[name] = hashlib.sha256(text.encode()).hexdigest()[:16]
    return versions
