"""What an instructor's course file, `undertorch.toml`, says: chapters, points, due dates, late work.

Times without an offset are meant in the file's time zone. Everything wrong is an error that names
the key; a key that is not known is wrong too, for it is most likely a slip of the pen.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import Enum
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from grader.course.course import COURSE_FILE, CourseError


@dataclass(frozen=True)
class Assigned:
    """One chapter of the course: points by exercise, those that count, and when it is due (UTC)."""

    points: Mapping[str, float]
    due: datetime | None


@dataclass(frozen=True)
class Late:
    """What late work costs. Percentages are of the points achieved; days count from the due date."""

    percent_per_day: float = 0.0
    grace_minutes: float = 0.0
    most_percent: float = 100.0


class Counts(str, Enum):
    """Which of a student's submissions of a chapter counts."""

    LATEST = "latest"
    BEST = "best"
    FIRST = "first"


@dataclass(frozen=True)
class CourseSettings:
    """A course file. `extensions` are new due dates (UTC), by student and chapter.

    `secret` is the file that private variants are drawn from; without one the public course is held.
    """

    id: str
    timezone: str
    exchange: str
    secret: str
    late: Late
    counts: Counts
    chapters: Mapping[str, Assigned]
    extensions: Mapping[str, Mapping[str, datetime]]


def read_course_file(folder: Path) -> CourseSettings:
    """Return what a course folder's file says. Raises `CourseError`."""
    path = folder / COURSE_FILE
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CourseError(f"{folder} has no {COURSE_FILE}. Run: undertorch course new") from None
    except (OSError, ValueError) as error:  # ValueError: no TOML, or no UTF-8
        raise CourseError(f"{path} cannot be read: {error}.") from None
    try:
        return _settings(data)
    except _Wrong as error:
        raise CourseError(f"{path}: {error}.") from None


class _Wrong(Exception):
    """Something in the file is wrong; the message says where and what is wanted."""


def _settings(data: Mapping[str, Any]) -> CourseSettings:
    known = {"course", "timezone", "exchange", "secret", "late", "resubmissions", "chapters"}
    _no_others("", data, {*known, "extensions"})
    zone = _zone(_text(data, "timezone", "UTC"))
    chapters = {
        name: _assigned(f"chapters.{name}", table, zone)
        for name, table in _table("chapters", data.get("chapters", {})).items()
    }
    if not chapters:
        raise _Wrong("there is no chapter; add [chapters.ch01_formats.points] with exercises")
    name = _text(data, "course", "")
    # it becomes a folder's name in the exchange, and nbgrader splits at "+"
    if not re.fullmatch(r"[\w.-]+", name, re.ASCII) or name.startswith("."):
        raise _Wrong(f"course must be letters, digits, '-', '_' and '.', not {name!r}")
    return CourseSettings(
        id=name,
        timezone=str(zone),
        exchange=_text(data, "exchange", ""),
        secret=_text(data, "secret", ""),
        late=_late(_table("late", data.get("late", {}))),
        counts=_counts(_table("resubmissions", data.get("resubmissions", {}))),
        chapters=chapters,
        extensions={
            student: _extensions(student, table, chapters, zone)
            for student, table in _table("extensions", data.get("extensions", {})).items()
        },
    )


def _assigned(where: str, value: Any, zone: ZoneInfo) -> Assigned:
    table = _table(where, value)
    _no_others(where, table, {"due", "points"})
    points = {
        exercise: _number(f"{where}.points.{exercise}", worth, 0)
        for exercise, worth in _table(f"{where}.points", table.get("points", {})).items()
    }
    if not points:
        raise _Wrong(f"[{where}.points] must name at least one exercise, as: decode = 4")
    due = table.get("due")
    return Assigned(points, None if due is None else _time(f"{where}.due", due, zone))


def _late(table: Mapping[str, Any]) -> Late:
    _no_others("late", table, {"percent_per_day", "grace_minutes", "most_percent"})
    percents = {"percent_per_day", "most_percent"}
    return Late(
        **{
            key: _number(f"late.{key}", value, 0, 100 if key in percents else None)
            for key, value in table.items()
        }
    )


def _counts(table: Mapping[str, Any]) -> Counts:
    _no_others("resubmissions", table, {"counts"})
    value = table.get("counts", Counts.LATEST.value)
    if value not in [one.value for one in Counts]:
        raise _Wrong(f'resubmissions.counts must be "latest", "best" or "first", not {value!r}')
    return Counts(value)


def _extensions(
    student: str, value: Any, chapters: Mapping[str, Assigned], zone: ZoneInfo
) -> dict[str, datetime]:
    found = {}
    for chapter, until in _table(f"extensions.{student}", value).items():
        where = f"extensions.{student}.{chapter}"
        if chapter not in chapters and isinstance(until, dict):
            raise _Wrong(
                f"{where}: there is no such chapter in the file. If the student's id has a dot, "
                f'write it in quotation marks: [extensions."{student}.{chapter}"]'
            )
        if chapter not in chapters:
            raise _Wrong(f"{where}: there is no such chapter in the file")
        due, new = chapters[chapter].due, _time(where, until, zone)
        if due is None:
            raise _Wrong(f"{where}: {chapter} has no due date that could be extended")
        if new <= due:
            raise _Wrong(f"{where} is not after the due date, {due:%Y-%m-%d %H:%M} UTC")
        found[chapter] = new
    return found


def _no_others(where: str, table: Mapping[str, Any], known: set[str]) -> None:
    for key in table:
        if key not in known:
            place = f"{where}.{key}" if where else key
            raise _Wrong(f"{place} is not known; known are {', '.join(sorted(known))}")


def _table(where: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _Wrong(f"{where} must be a table, [{where}], not {value!r}")
    return value


def _text(data: Mapping[str, Any], key: str, default: str) -> str:
    value = data.get(key, default)
    if not isinstance(value, str):
        raise _Wrong(f"{key} must be a text in quotation marks, not {value!r}")
    return value


def _number(where: str, value: Any, least: float, most: float | None = None) -> float:
    good = isinstance(value, int | float) and not isinstance(value, bool)
    if not good or not least <= value <= (float(2**31) if most is None else most):
        wanted = f"from {least:g} to {most:g}" if most is not None else f"of at least {least:g}"
        raise _Wrong(f"{where} must be a number {wanted}, not {value!r}")
    return float(value)


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise _Wrong(
            f"timezone {name!r} is not known here; a name such as 'Europe/Berlin' or 'UTC' is"
        ) from None


def _time(where: str, value: Any, zone: ZoneInfo) -> datetime:
    """Return a time in UTC, without its zone, as nbgrader keeps times."""
    if not isinstance(value, datetime):
        day = " (a day alone has no hour)" if isinstance(value, date) else ""
        raise _Wrong(f"{where} must be a time as 2027-03-01T23:59:00{day}, not {value!r}")
    local = value if value.tzinfo else value.replace(tzinfo=zone)
    return local.astimezone(UTC).replace(tzinfo=None)
