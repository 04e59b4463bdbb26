"""What a student may see when stuck: the next hint, and the solution once they have tried.

One memory and one set of rules for the notebook and the terminal; they differ in how one asks.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from grader.course.course import Chapter, CourseError
from grader.student import journal
from grader.student.hints import alternates_of, hints_of, reference_of


@dataclass(frozen=True)
class Door:
    """How one asks here. In each, `{}` stands for the exercise."""

    hint: str
    first_hint: str
    solution: str
    anyway: str
    try_it: str
    locate: str
    longer: str


TERMINAL = Door(
    hint="undertorch hint {}",
    first_hint="undertorch hint {} 1",
    solution="undertorch solution {}",
    anyway="undertorch solution {} --anyway",
    try_it="Write one and run `undertorch check {}`, or grade it in the notebook.",
    locate="undertorch locate {}",
    longer="undertorch locate {} --seconds 60",
)
NOTEBOOK = Door(
    hint='hint("{}")',
    first_hint='hint("{}", 1)',
    solution='solution("{}")',
    anyway='solution("{}", anyway=True)',
    try_it="Write one, run its cell and grade it.",
    locate='locate("{}")',
    longer='locate("{}", seconds=60)',
)


class Kind(Enum):
    """What a part of a page is."""

    HEADING = "heading"
    TEXT = "text"
    CODE = "code"


@dataclass(frozen=True)
class Page:
    """What is shown, in parts; text is Markdown. `granted` says that it is what was asked for."""

    parts: tuple[tuple[Kind, str], ...]
    granted: bool = True


def next_hint(
    chapter: Chapter, exercise: str, number: int, folder: Path | None, door: Door
) -> Page:
    """Return an exercise's hint of that number, or with 0 the next one, and remember it.

    Raises `CourseError` for a number that it has not.
    """
    hints = hints_of(chapter, exercise)
    seen = [e.number for e in journal.recall(folder) if (e.kind, e.exercise) == ("hint", exercise)]
    wanted = number or max(seen, default=0) + 1
    if not hints:
        return Page(((Kind.TEXT, f"{exercise} has no hints."),), granted=False)
    if not 0 <= number <= len(hints):
        raise CourseError(f"{exercise} has {len(hints)} hints.")
    if wanted > len(hints):
        again, after = door.first_hint.format(exercise), door.solution.format(exercise)
        said = (
            f"You have seen all {len(hints)} hints of {exercise}. To see one again: `{again}`",
            f"After an attempt: `{after}`",
        )
        return Page(tuple((Kind.TEXT, line) for line in said), granted=False)
    chosen = hints[wanted - 1]
    entry = journal.Entry("hint", chapter.id, exercise, time.time(), number=wanted)
    journal.remember(folder, entry)
    heading = f"Hint {wanted} of {len(hints)} for {exercise}: {chosen.title}"
    return Page(((Kind.HEADING, heading), (Kind.TEXT, chosen.text)))


def open_solution(
    chapter: Chapter,
    exercise: str,
    folder: Path | None,
    door: Door,
    *,
    others: bool = False,
    anyway: bool = False,
) -> Page:
    """Return the reference, and with `others` more right answers, if there was an attempt.

    An attempt is an answer that was graded once; it need not have passed. `anyway` asks for none.
    """
    log = journal.recall(folder)
    tried = any(
        (entry.kind, entry.exercise) == ("verdict", exercise) and entry.outcome != "not attempted"
        for entry in log
    )
    if not tried and not anyway:
        first, all_the_same = door.hint.format(exercise), door.anyway.format(exercise)
        said = (
            f"You have not tried {exercise} yet: no answer of yours was graded. "
            f"{door.try_it.format(exercise)}",
            f"A first step: `{first}`. To see the solution all the same: `{all_the_same}`",
        )
        return Page(tuple((Kind.TEXT, line) for line in said), granted=False)
    parts: list[tuple[Kind, str]] = []
    if not tried:
        words = (
            "Without an attempt, then. Close it when you have understood it, and write it from "
            "memory: that is the exercise now."
        )
        parts.append((Kind.TEXT, words))
    parts.append((Kind.CODE, reference_of(chapter, exercise).strip("\n")))
    for words, source in alternates_of(chapter, exercise) if others else ():
        parts += [(Kind.TEXT, words), (Kind.CODE, source.strip("\n"))]
    journal.remember(folder, journal.Entry("solution", chapter.id, exercise, time.time()))
    return Page(tuple(parts))
