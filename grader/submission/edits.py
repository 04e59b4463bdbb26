"""Edits of a program's text: where each stands, what it makes of the program, and which make the same."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from itertools import pairwise

from grader.submission.program import lines_of


class Kind(Enum):
    """Where an edit comes from."""

    EXPRESSION = auto()
    """What a right program says where the answer says nearly the same."""
    PLACE = auto()
    """What a right program has in the same place."""
    SMALL = auto()
    """A small change of an expression."""
    LINE = auto()
    """A small change of a statement: it goes, it is moved."""
    STATEMENT = auto()
    """A statement of a right program."""
    AROUND = auto()
    """What a right program puts around something, or asks beside it."""


@dataclass(frozen=True)
class Edit:
    """Text in place of the characters `start` to `end`, in bytes. The less `cost`, the likelier."""

    start: int
    end: int
    now: str
    line: int
    cost: float
    kind: Kind
    place: ast.expr | None = None
    """The expression that is replaced, if one is."""


class Text:
    """A program's text with its tree: where each node stands."""

    def __init__(self, source: str, tree: ast.Module) -> None:
        self.source = source
        self.tree = tree
        self.bytes = source.encode()
        self._starts = [0]
        for line in lines_of(source):
            self._starts.append(self._starts[-1] + len(line.encode()) + 1)
        self.parents = {
            child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)
        }

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Return the first byte of a node and the one behind it."""
        start = self._starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]
        end = self._starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]
        return start, end

    def segment(self, node: ast.AST) -> str:
        """Return a node's text."""
        start, end = self.span(node)
        return self.bytes[start:end].decode()

    def margin(self, node: ast.AST) -> str | None:
        """Return the white space before a statement, None if something else stands there."""
        start = self._starts[node.lineno - 1]  # type: ignore[attr-defined]
        before = self.bytes[start : self.span(node)[0]].decode()
        return before if not before.strip() else None


def parsed(source: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a variant may say `1()` or `x is 2`
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


Key = tuple[int, str]
"""What tells a changed program from others: where the part that is another starts, and its tree."""


class Apply:
    """Makes an edit. Of a program only the part around the edit is read again: a whole takes 10 ms."""

    def __init__(self, text: Text) -> None:
        self._text = text
        self._parts = [(*text.span(part), part) for part in _parts(text)]
        self._parts.sort(key=lambda one: one[1] - one[0])
        self._next = _next_places(text)
        self._dumps: dict[ast.AST, str] = {}

    def __call__(self, edit: Edit) -> tuple[str, Key] | None:
        """Return the changed program and its key; None if it is none, or the same."""
        now, key = self._put_in(edit) if edit.start == edit.end else self._put_for(edit)
        if key is None:
            return None
        before, after = self._text.bytes[: edit.start], self._text.bytes[edit.end :]
        return (before + now.encode() + after).decode(), key

    def _put_in(self, edit: Edit) -> tuple[str, Key | None]:
        """Return statements that are put in, and the key: the same before one and behind the last."""
        behind = edit.now.startswith("\n")
        said = edit.now.strip()
        margin = edit.now[1 : edit.now.index(said)] if behind else edit.now.rpartition("\n")[2]
        tree = parsed(f"if 1:\n{margin}{said}")
        place = self._next.get(edit.start, edit.start)
        return edit.now, None if tree is None else (place, f"{margin}+ {ast.dump(tree)}")

    def _put_for(self, edit: Edit) -> tuple[str, Key | None]:
        """Return what takes another's place, in brackets where they are needed, and the key."""
        start, end, part = self._part(edit)
        forms = [edit.now] if edit.place is None else [edit.now, f"({edit.now})"]
        made = []
        for now in forms:
            source = self._text.bytes
            inner = source[start : edit.start] + now.encode() + source[edit.end : end]
            tree = parsed(self._alone(inner.decode(), part))
            if tree is not None:
                made.append((now, ast.dump(tree)))
        if not made or made[-1][1] == self._dump(start, end, part):
            return "", None
        now, dump = made[0] if made[0][1] == made[-1][1] else made[-1]
        return now, (start, dump)

    def _part(self, edit: Edit) -> tuple[int, int, ast.AST]:
        """Return the smallest part that an edit is in: where it begins, where it ends."""
        inside = (one for one in self._parts if one[0] <= edit.start and edit.end <= one[1])
        return next(inside, (0, len(self._text.bytes), self._text.tree))

    def _dump(self, start: int, end: int, part: ast.AST) -> str:
        if part not in self._dumps:
            tree = parsed(self._alone(self._text.bytes[start:end].decode(), part))
            self._dumps[part] = ast.dump(tree) if tree is not None else ""
        return self._dumps[part]

    def _alone(self, segment: str, part: ast.AST) -> str:
        """Return a part's text as a program, however its further lines are indented."""
        if isinstance(part, ast.expr):
            return f"({segment}\n)"
        margin = self._text.margin(part) if isinstance(part, ast.stmt) else ""
        return f"if 1:\n{margin}{segment}" if margin else segment


def _next_places(text: Text) -> dict[int, int]:
    """Return for the end of each statement where the next one of its body starts."""
    found = {}
    for node in ast.walk(text.tree):
        for field in ("body", "orelse", "finalbody"):
            body = getattr(node, field, None)
            for one, other in pairwise(body if isinstance(body, list) else []):
                found[text.span(one)[1]] = text.span(other)[0]
    return found


SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Expr, ast.Raise, ast.Assert)


def _parts(text: Text) -> Iterator[ast.stmt | ast.expr]:
    """Yield what can be read alone: statements, and the expressions of those with a body."""
    for node in ast.walk(text.tree):
        if isinstance(node, ast.stmt) and not text.segment(node).startswith("elif"):
            yield node
        if isinstance(node, ast.If | ast.While):
            yield node.test
        elif isinstance(node, ast.For):
            yield node.iter
