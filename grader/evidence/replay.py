"""Answers from a transcript instead of from code: what a kept submission said when it was graded."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from grader.evidence.outcome import Ended, Outcome
from grader.evidence.transcript import ENDED, request_key
from grader.evidence.wire.codec import decode


class Replay:
    """A `Transport` that runs nothing. What was never asked is noted in `missing`, in words.

    `changed` names the probes whose code is no longer the one that was run.
    """

    def __init__(self, replies: Mapping[str, bytes], changed: Collection[str] = ()) -> None:
        self._replies = replies
        self._changed = changed
        self._end: list[str] = decode(replies[ENDED]) if ENDED in replies else ["", "", ""]
        self.missing: list[str] = []

    def ask(self, request: bytes, watch: bool = False) -> bytes:
        """Return the kept reply to the request. Raises `Ended` where the process ended.

        Not every question was put before a second witness: one that was not is not missing.
        """
        key = request_key(request)
        asked = decode(request)
        if asked.get("probe") in self._changed:
            self._miss(f"the probe `{asked['probe']}` was changed")
        ended_by, outcome, detail = self._end
        if key == ended_by:
            raise Ended(Outcome(outcome), detail)
        if watch and key not in self._replies:
            raise Ended(Outcome.NEEDS_REVIEW, "")
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
