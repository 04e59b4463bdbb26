"""A program's text as what remains when names, comments and layout are changed: tokens, and runs of them.

Renaming a variable, adding a comment or a docstring, breaking a line elsewhere changes nothing here.
Names that the text does not bind (`torch`, `sum`, attributes), numbers and strings stay as they are.
"""

from __future__ import annotations

import ast
import io
import keyword
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from grader.submission.names import plain_python

RUN = 10
"""Tokens in a run. Six are idiom with one odd word in it (`= torch.where(x,`), which strangers share;
longer ones break at each small edit.
"""

_LAYOUT = {
    tokenize.COMMENT, tokenize.NL, tokenize.ENCODING, tokenize.ENDMARKER, tokenize.NEWLINE,
    tokenize.INDENT, tokenize.DEDENT,
}  # fmt: skip

Run = tuple[str, ...]


@dataclass(frozen=True)
class Text:
    """A text's tokens in order, and the line of each, counted from 1."""

    source: str
    tokens: tuple[str, ...]
    lines: tuple[int, ...]

    @cached_property
    def runs(self) -> frozenset[Run]:
        """Every run of `RUN` tokens; the whole text where it is shorter."""
        return frozenset(run for run, _ in self.placed())

    def placed(self) -> Iterator[tuple[Run, tuple[int, ...]]]:
        """Yield each run with the lines that it is on."""
        for start in range(max(1, len(self.tokens) - RUN + 1)):
            yield self.tokens[start : start + RUN], self.lines[start : start + RUN]


def text_of(source: str) -> Text:
    """Return a cell's text, normalised. What is no Python is cut at white space."""
    plain = plain_python(source)
    try:
        tree = ast.parse(plain)
        found = list(tokenize.generate_tokens(io.StringIO(plain).readline))
    except (SyntaxError, ValueError, RecursionError, MemoryError, tokenize.TokenError):
        words = [(w, n) for n, line in enumerate(source.split("\n"), 1) for w in line.split()]
        return Text(source, tuple(w for w, _ in words), tuple(n for _, n in words))
    bound, prose = _bound(tree), _docstrings(tree)
    kept = [
        (_normal(token, before, bound), token.start[0])
        for token, before in _with_before(found)
        if token.start not in prose
    ]
    return Text(source, tuple(t for t, _ in kept), tuple(n for _, n in kept))


def _with_before(
    tokens: list[tokenize.TokenInfo],
) -> Iterator[tuple[tokenize.TokenInfo, str]]:
    """Yield each token that is not layout, with the text of the one before it."""
    before = ""
    for token in tokens:
        if token.type not in _LAYOUT:
            yield token, before
            before = token.string


def _normal(token: tokenize.TokenInfo, before: str, bound: frozenset[str]) -> str:
    own = token.type == tokenize.NAME and before != "." and token.string in bound
    return "·" if own and not keyword.iskeyword(token.string) else token.string


def _bound(tree: ast.Module) -> frozenset[str]:
    """Return the names that a text gives to things of its own; imported ones keep theirs."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
    return frozenset(names)


def _docstrings(tree: ast.Module) -> frozenset[tuple[int, int]]:
    """Return where strings stand that are no part of an expression."""
    return frozenset(
        (node.lineno, node.col_offset)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
