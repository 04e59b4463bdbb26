"""What a student reads of a search for the wrong line: the line, then the part, then the change."""

from __future__ import annotations

import time
from pathlib import Path

from grader.student import journal
from grader.student.help import Door, Kind, Page
from grader.submission.variants import Variant
from grader.verdict.locate import Found

KIND = "locate"
"""What a journal calls it that a line was named."""

_LINE, _PART, _CHANGE = 1, 2, 3


def located(
    found: Found, chapter: str, exercise: str, source: str, folder: Path | None, door: Door
) -> Page:
    """Return what is said of an answer now, and remember it: of each answer a little more each time."""
    if found.why:
        return Page(((Kind.TEXT, f"There is nothing to look for. {found.why}"),), granted=False)
    if not found.variants:
        return Page(((Kind.TEXT, _nothing(found, exercise, door)),), granted=False)
    digest = journal.answer_digest(source)
    before = [
        entry.number
        for entry in journal.recall(folder)
        if (entry.kind, entry.exercise, entry.answer) == (KIND, exercise, digest)
    ]
    level = min(max(before, default=0) + 1, _CHANGE)
    entry = journal.Entry(KIND, chapter, exercise, time.time(), answer=digest, number=level)
    journal.remember(folder, entry)
    return Page(tuple(_parts(found, level, exercise, door)))


def all_said(found: Found) -> str:
    """Return all that was found, for an instructor."""
    if found.why:
        return f"There is nothing to look for. {found.why}"
    if not found.variants:
        return _tried(found)
    said = [_sentence(found.variants)]
    for one in found.variants:
        said.append(f"line {one.line}:\n{_marked(one)}")
    return "\n".join(said)


def _parts(found: Found, level: int, exercise: str, door: Door) -> list[tuple[Kind, str]]:
    parts = [(Kind.HEADING, _sentence(found.variants))]
    for one in found.variants:
        if level == _LINE:
            parts.append((Kind.CODE, _numbered(one)))
        elif level == _PART:
            what = f"In line {one.line}, this part:" if one.part else f"At line {one.line}:"
            parts.append((Kind.TEXT, what))
            parts.append((Kind.CODE, one.part or "Something is missing here."))
        else:
            parts += [(Kind.TEXT, f"Line {one.line}, before and after:"), (Kind.CODE, _marked(one))]
    again = door.locate.format(exercise)
    if level == _LINE:
        parts.append((Kind.TEXT, f"Try again. To see which part of the line: `{again}` once more."))
    elif level == _PART:
        parts.append((Kind.TEXT, f"Try again. To see the change: `{again}` once more."))
    return parts


def _sentence(variants: tuple[Variant, ...]) -> str:
    where = " or in ".join(f"line {one.line}" for one in variants)
    return f"One change in {where} makes every check pass."


def _numbered(one: Variant) -> str:
    lines = one.was.split("\n")
    return "\n".join(f"{number:>3}  {line}" for number, line in enumerate(lines[:1], one.line))


def _marked(one: Variant) -> str:
    was = [f"- {line}" for line in one.was.split("\n") if one.was]
    now = [f"+ {line}" for line in one.now.split("\n") if one.now]
    return "\n".join([*was, *now])


def _tried(found: Found) -> str:
    many = f"{found.tried} small {'change' if found.tried == 1 else 'changes'}"
    if found.interrupted:
        return f"Stopped. Of {many} that were tried, none makes every check pass."
    if found.all_tried:
        return (
            f"No small change makes every check pass: {many} were tried, all that are known here."
        )
    return f"Of {many} that were tried in {found.seconds:.0f} s, none makes every check pass."


def _nothing(found: Found, exercise: str, door: Door) -> str:
    hint = door.hint.format(exercise)
    said = f"{_tried(found)} It may take two changes, or another idea. A step further: `{hint}`"
    if found.interrupted or found.all_tried:
        return said
    return f"{said}. To look longer: `{door.longer.format(exercise)}`"
