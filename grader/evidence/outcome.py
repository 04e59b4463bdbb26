"""How an exercise can end, each way under its own name, and the exception that ends one early."""

from __future__ import annotations

from enum import Enum


class Outcome(str, Enum):
    """What became of one exercise of one submission. NOT_RUN is for a live notebook alone."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_ATTEMPTED = "not attempted"
    NOT_RUN = "not run yet"
    BLOCKED = "blocked"
    CRASHED = "crashed"
    TIMED_OUT = "timed out"
    OUT_OF_MEMORY = "out of memory"
    KILLED = "killed"
    NEEDS_REVIEW = "needs review"

    def __str__(self) -> str:
        return self.value


class Ended(Exception):
    """The process that ran the student's code is gone; nothing more can be asked of it.

    `outcome` is one of CRASHED, TIMED_OUT, OUT_OF_MEMORY, KILLED;
    `detail` is a sentence for the student, e.g. "Your code ran longer than 20 s of processor time."
    """

    def __init__(self, outcome: Outcome, detail: str) -> None:
        super().__init__(detail)
        self.outcome = outcome
        self.detail = detail
