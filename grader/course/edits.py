"""Edits of a program: lines that go and lines that come, found by what they say.

    - pieces += (flat / dist.get_world_size()).split(sizes)
    + pieces += flat.split(sizes)

`-` and unmarked lines stand in the base, in this order, one right after the other, at exactly one
place; `-` lines go, `+` lines come, as much deeper or less deep than their neighbours as they are
here. How far the whole is indented means nothing. A blank line ends a hunk. All hunks are looked up
in the base itself, none in what another one made of it.

Of the base only code counts. Its comments, docstrings and blank lines cannot come between two lines
and are no part of what comes out; a comment behind code may be copied or left out.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby, pairwise


class EditError(ValueError):
    """An edit that cannot be applied; the message says to what line, and what mends it."""


@dataclass(frozen=True)
class Line:
    """A line of code of a base. `number` counts as the author sees it, comments and all."""

    number: int
    code: str
    """Without the comment behind it."""
    written: str
    """With it."""
    spaced: bool
    """Whether a blank line stands before it."""


_Marked = tuple[str, str]
"""A line of a hunk: its mark, and its text."""

_Text = tuple[bool, str]
"""Whether a blank line stands above a line of what comes out, and the line."""


@dataclass(frozen=True)
class _Place:
    """Where a hunk belongs: the lines `start` to `end` of the base, and what takes their place."""

    start: int
    end: int
    instead: tuple[_Text, ...]


def code_lines(program: str) -> tuple[Line, ...]:
    """Return a program's lines of code. A docstring stays only if it is all of a body.

    Raises `SyntaxError`.
    """
    tree = ast.parse(program)
    said, within = set(_docstrings(tree)), set(_within_strings(tree))
    comments = {
        token.start[0]: token.start[1]
        for token in tokenize.generate_tokens(io.StringIO(program).readline)
        if token.type == tokenize.COMMENT
    }
    found: list[Line] = []
    spaced = below_docstring = False
    for number, written in enumerate(program.split("\n"), 1):
        code = written[: comments.get(number)]
        code = code if number + 1 in within else code.rstrip()
        if number in said:
            below_docstring = True
        elif code or number in within:
            found.append(Line(number, code, written.rstrip(), spaced and not below_docstring))
            spaced = below_docstring = False
        elif not written.strip():
            spaced = True
    return tuple(found)


def _docstrings(tree: ast.Module) -> Iterator[int]:
    """Yield the lines of docstrings that have a statement below them."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if ast.get_docstring(node, clean=False) is None or len(node.body) < 2:
            continue
        first, second = node.body[0], node.body[1]
        end = first.end_lineno or first.lineno
        if second.lineno > end and first.lineno > getattr(node, "lineno", 0):
            yield from range(first.lineno, end + 1)


def _within_strings(tree: ast.Module) -> Iterator[int]:
    """Yield the lines that begin inside a string: there white space is text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant | ast.JoinedStr):
            yield from range(node.lineno + 1, (node.end_lineno or node.lineno) + 1)


def edited(base: Sequence[Line], edit: str, of: str) -> str:
    """Return the program that an edit makes of a base. `of` is what messages call the base.

    Raises `EditError`.
    """
    hunks = [
        list(lines)
        for blank, lines in groupby(edit.split("\n"), lambda line: not line.strip())
        if not blank
    ]
    places = sorted((_place(hunk, base, of) for hunk in hunks), key=lambda place: place.start)
    for one, other in pairwise(places):
        if one.end > other.start:
            line = base[other.start]
            raise EditError(
                f"two of its hunks hold line {line.number} of {of} ({_quoted(line.code)}): make "
                "one hunk of them"
            )
    out: list[_Text] = []
    at = 0
    for place in places:
        out += [(line.spaced, line.code) for line in base[at : place.start]]
        out += place.instead
        at = place.end
    out += [(line.spaced, line.code) for line in base[at:]]
    return "".join(_laid_out(out))


def _laid_out(lines: Sequence[_Text]) -> Iterator[str]:
    """Yield the lines of a program; no blank line comes first, or first in a body."""
    above = ":"
    for spaced, text in lines:
        if spaced and not above.endswith(":"):
            yield "\n"
        yield f"{text}\n"
        above = text


def _place(hunk: Sequence[str], base: Sequence[Line], of: str) -> _Place:
    marked = [(line[0], line[1:].rstrip()) for line in hunk]
    for (mark, _), line in zip(marked, hunk, strict=True):
        if mark not in "+- ":
            raise EditError(
                f"{_quoted(line)} begins with neither `-` nor `+` nor a space: mark it with what it "
                "is, a line that goes, one that comes, or one that stays"
            )
    marked = [both for both in marked if both[0] == "+" or not _silent(both[1])]
    old = [text for mark, text in marked if mark != "+"]
    if not old:
        raise EditError(f"{_quoted(hunk[0])} has no line of {of} beside it: add one")
    if len(old) == len(marked) and all(mark == " " for mark, _ in marked):
        raise EditError(f"{_quoted(old[0])} stays and nothing beside it changes: remove it")
    starts = _starts(old, base)
    if not starts:
        raise EditError(_nowhere(old, base, of))
    if len(starts) > 1:
        numbers = " and ".join(str(base[start].number) for start in starts)
        raise EditError(
            f"{_quoted(old[0])} stands at lines {numbers} of {of}: add a line around it"
        )
    start = starts[0]
    shift = _indent(base[start].code) - _indent(old[0])
    return _Place(start, start + len(old), tuple(_instead(marked, base[start:], shift)))


def _starts(old: Sequence[str], base: Sequence[Line]) -> list[int]:
    """Return where in the base lines stand, one after the other, whatever their margin is."""
    return [
        start
        for start in range(len(base) - len(old) + 1)
        if all(
            text.strip() in (line.code.strip(), line.written.strip())
            and _indent(line.code) - _indent(text) == _indent(base[start].code) - _indent(old[0])
            for text, line in zip(old, base[start:], strict=False)
        )
    ]


def _instead(marked: Sequence[_Marked], base: Sequence[Line], shift: int) -> Iterator[_Text]:
    """Yield a hunk's lines that stay and that come. The next takes over a blank line that goes."""
    lines, spaced = iter(base), False
    for mark, text in marked:
        if mark == "+" and not text:
            spaced = True
        elif mark == "+":
            yield spaced, _moved(text, shift)
            spaced = False
        else:
            line = next(lines)
            spaced = spaced or line.spaced
            if mark == " ":
                yield spaced, line.code
                spaced = False


def _moved(text: str, shift: int) -> str:
    if _indent(text) + shift < 0:
        raise EditError(f"{_quoted(text)} would stand left of the margin: indent it")
    return " " * (_indent(text) + shift) + text.lstrip()


def _nowhere(old: Sequence[str], base: Sequence[Line], of: str) -> str:
    """Say which line of a hunk is not where the hunk has it."""
    count = next(n for n in range(1, len(old) + 1) if not _starts(old[:n], base))
    text = old[count - 1].strip()
    alone = _starts([text], base)
    if alone and count > 1:
        numbers = " and ".join(str(base[start].number) for start in alone)
        return (
            f"{_quoted(text)} stands at line {numbers} of {of}, and not so below "
            f"{_quoted(old[count - 2])}: copy the lines as they stand there, indented as there"
        )
    nearest = max(base, key=lambda line: SequenceMatcher(None, text, line.code.strip()).ratio())
    return (
        f"{_quoted(text)} stands nowhere in {of} (nearest, line {nearest.number}: "
        f"{_quoted(nearest.code)}): copy the line as it stands there"
    )


def _silent(text: str) -> bool:
    """Say whether a line is no code: blank, or a comment."""
    return not text.strip() or text.lstrip().startswith("#")


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


def _quoted(text: str) -> str:
    return f'"{text.strip()}"'
