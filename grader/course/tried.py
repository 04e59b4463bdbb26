"""Answers that somebody tried: what the graders say of them is measured, not prescribed.

A chapter keeps them in `tried/<exercise>.md`, one section each: of what kind it is, its name, what
it does in a sentence, and the solution cell's text.

    ## wrong: drops_the_sign
    Takes the sign for a bit of the exponent.

    ```python
    def decode(pattern, exponent_bits, mantissa_bits):
        …
    ```

    ## right: by_ldexp
    ## cheat: by_another_name     gets its result by what the card forbids

Files from elsewhere are JSON Lines: an object with `chapter`, `exercise`, `kind`, `name`, `why` and
`source` on each line. Further keys mean nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from enum import Enum
from pathlib import Path

from grader.course.course import AuthorError, Chapter, Course, Exercise


class TriedError(AuthorError):
    """A file of tried answers that cannot be read; the message says where and what to do."""


class Kind(str, Enum):
    """What an answer is, by whoever wrote it."""

    RIGHT = "right"
    WRONG = "wrong"
    CHEAT = "cheat"


@dataclass(frozen=True)
class Tried:
    """One answer: the solution cell's text, and why it is of its kind."""

    chapter: str
    exercise: str
    kind: Kind
    name: str
    why: str
    source: str


KEYS = tuple(field.name for field in fields(Tried))

_HEADER = re.compile(r"## (right|wrong|cheat): (\w+)")
_BEGIN, _END = "```python", "```"
_FORM = "`## right: name`, `## wrong: name` or `## cheat: name`"


def read_tried(chapter: Chapter, exercise: Exercise) -> tuple[Tried, ...]:
    """Return the answers that the chapter keeps for an exercise, in order; none without a file.

    Raises `TriedError` for a section that is not as it should be.
    """
    path = chapter.graders / "tried" / f"{exercise.id}.md"
    if not path.is_file():
        return ()
    where = f"grader/{chapter.id}/tried/{path.name}"
    found = tuple(_sections(where, chapter.id, exercise.id, path.read_text(encoding="utf-8")))
    _check_names(where, found)
    return found


def read_lines(path: Path, course: Course) -> tuple[Tried, ...]:
    """Return the answers of a file of JSON Lines, in order.

    Raises `TriedError` for a line that is no answer to an exercise of the course.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TriedError(f"{path} cannot be read: {error}.") from None
    known = {chapter.id: {one.id for one in chapter.exercises} for chapter in course.chapters()}
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            one = _from_json(f"{path}, line {number}", line)
            if one.exercise not in known.get(one.chapter, ()):
                raise TriedError(
                    f"{path}, line {number}: there is no exercise {one.exercise!r} in a chapter "
                    f"{one.chapter!r}. Correct `chapter` or `exercise`."
                )
            found.append(one)
    return tuple(found)


def _from_json(where: str, line: str) -> Tried:
    try:
        data = json.loads(line)
    except ValueError as error:
        raise TriedError(f"{where} is no JSON ({error}). Write one object on each line.") from None
    if not isinstance(data, dict):
        raise TriedError(f"{where} is no JSON object. Write one with the keys {', '.join(KEYS)}.")
    for key in KEYS:
        if not isinstance(data.get(key), str):
            raise TriedError(
                f"{where}: the key {key!r} is missing or no text. Write it as a string."
            )
    kinds = [kind.value for kind in Kind]
    if data["kind"] not in kinds:
        raise TriedError(
            f"{where}: {data['kind']!r} is no kind of answer. Write one of {', '.join(kinds)}."
        )
    return Tried(**{key: data[key] for key in KEYS} | {"kind": Kind(data["kind"])})


def _sections(where: str, chapter: str, exercise: str, text: str) -> Iterator[Tried]:
    """Yield the answers of a document, each with its header, its sentence and its block."""
    lines = enumerate(text.splitlines(), 1)
    kind, name, why = None, "", list[str]()
    for number, line in lines:
        here = f"{where}, line {number}"
        if line == _BEGIN:
            if kind is None or not why:
                raise TriedError(f"{here}: write {_FORM} and what it does above this block.")
            source = _block(here, lines)
            yield Tried(chapter, exercise, kind, name, " ".join(why), source)
            kind, why = None, []
        elif line.startswith(("#", "```")) or (line.strip() and kind is None):
            header = _HEADER.fullmatch(line.rstrip())
            if kind is not None:
                raise TriedError(f"{here}: write the ```python block of {name} above this.")
            if header is None:
                raise TriedError(f"{here}: {line!r} begins no answer. Write {_FORM}.")
            kind, name = Kind(header[1]), header[2]
        elif line.strip():
            why.append(line.strip())
    if kind is not None:
        raise TriedError(f"{where}: {name} has no program. Write its ```python block.")


def _block(where: str, lines: Iterator[tuple[int, str]]) -> str:
    """Return the text up to the block's end."""
    block: list[str] = []
    for _, line in lines:
        if line == _END:
            return "\n".join(block).strip("\n") + "\n"
        block.append(line)
    raise TriedError(f"{where}: close this block with a line {_END}.")


def _check_names(where: str, answers: Iterable[Tried]) -> None:
    seen: set[str] = set()
    for one in answers:
        if one.name in seen:
            raise TriedError(f"{where}: two answers are called {one.name}. Rename one.")
        seen.add(one.name)
