"""Known answers to an exercise: mistakes with the explanation they deserve, and alternates.

They are kept in `answers/<exercise>.py`, one section each:

    # %% mistake: truncates
    # You dropped the low sixteen bits. Rounding looks at them first …
    def round_to_bf16(x): …

    # %% blocked: builtin_cast
    # %% alternate: by_adding_a_bias

The name is one word; the comment lines under it are what the student reads; the rest is the
solution cell's whole text. Of an exercise with parameters, texts may name their values, `{{bits}}`,
and an answer that is one for some values only says for which: `# %% mistake: truncates if bits > 4`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from grader.course.parameters import Values, holds, render


class Role(Enum):
    """What a known answer is known for."""

    MISTAKE = "mistake"
    BLOCKED = "blocked"
    ALTERNATE = "alternate"


@dataclass(frozen=True)
class Answer:
    """One known answer: `name` and the solution cell's text, explained."""

    role: Role
    name: str
    explanation: str
    source: str


_HEADER = re.compile(r"^# %% (mistake|blocked|alternate): (\w+)(?: if (.+))?$")


def read_answers(path: Path, values: Values) -> tuple[Answer, ...]:
    """Return the answers in a file, in order, for an exercise's values; none if there is no file.

    Raises `ValueError` for a section without a proper header or explanation.
    """
    if not path.is_file():
        return ()
    sections: list[list[str]] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("# %%"):
            sections.append([])
        if sections:
            sections[-1].append(line)
    found = [_answer(path, section, values) for section in sections]
    return tuple(answer for answer in found if answer is not None)


def _answer(path: Path, lines: list[str], values: Values) -> Answer | None:
    header = _HEADER.match(lines[0])
    if header is None:
        raise ValueError(f"{path}: {lines[0]!r} is not `# %% mistake|blocked|alternate: name`")
    if header.group(3) and not holds(header.group(3), values):
        return None
    body = 1
    while body < len(lines) and lines[body].startswith("#"):
        body += 1
    explanation = " ".join(line.lstrip("# ").rstrip() for line in lines[1:body]).strip()
    if not explanation:
        raise ValueError(f"{path}: {header.group(2)} needs its explanation in comment lines")
    source = "\n".join(lines[body:]).strip() + "\n"
    return Answer(
        Role(header.group(1)), header.group(2), render(explanation, values), render(source, values)
    )
