"""Where an answer and a right program part ways: their statements side by side, and what differs.

Statements that mention mostly the same are a pair, in the order in which both programs have them. What
stands between two pairs, or is not the same within one, may be the mistake: the right program's part
goes where the answer's is. A part is small: no more than `_MOST` statements, and less than half of what
the answer's function holds, on both sides.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from grader.submission.fragments import Tree, alike, asks_again, size_of

_MOST = 4
"""Most statements of the answer that go at once, those within others too; one more may come."""

_LARGEST = 60
"""Most nodes that go at once, or come."""

_PAIR = 0.35
"""Two statements of which at least this share of what they mention is the same are a pair."""

_HEADS = ("test", "iter", "target", "items", "subject")

_BODIES = ("body", "orelse", "finalbody", "handlers", "cases")

_BLOCKS = (ast.If, ast.For, ast.While, ast.With, ast.Try, ast.FunctionDef, ast.ClassDef, ast.Match)


@dataclass(frozen=True)
class Part:
    """The answer's statements `own`, and those of a right program that stand there.

    Where `own` is empty, the others belong before `before`, or behind `behind`. `last` says that
    nothing of the answer's body comes after them, `alike` how much of both programs is in pairs.
    """

    own: tuple[ast.stmt, ...]
    right: tuple[ast.stmt, ...]
    before: ast.stmt | None
    behind: ast.stmt | None
    last: bool
    alike: float


@dataclass(frozen=True)
class Pair:
    """An expression of the answer, and the one that a right program has in its place."""

    own: ast.expr
    right: ast.expr
    alike: float


def differences(own: Tree, right: Tree) -> Iterator[Part | Pair]:
    """Yield what differs between an answer and a right program, smaller parts before larger ones."""
    for mine, theirs in _functions(own, right):
        yield from _Functions(own, right, mine, theirs).differences()


def _functions(own: Tree, right: Tree) -> Iterator[tuple[ast.stmt, ast.stmt]]:
    """Yield functions and classes of both programs that have the same name, or else look alike."""
    kinds = ast.FunctionDef | ast.ClassDef
    mine = [node for node in own.root.body if isinstance(node, kinds)]
    theirs = [node for node in right.root.body if isinstance(node, kinds)]
    names = {node.name: node for node in theirs}
    for one in mine:
        if one.name in names:
            yield one, names[one.name]
            continue
        near = [(alike(own.tokens(one), right.tokens(other)), other) for other in theirs]
        best = max(near, key=lambda pair: pair[0], default=None)
        if best is not None and best[0] >= _PAIR:
            yield one, best[1]


class _Functions:
    """Two functions, or classes, side by side."""

    def __init__(self, own: Tree, right: Tree, mine: ast.stmt, theirs: ast.stmt) -> None:
        self._own, self._right = own, right
        self._mine, self._theirs = mine, theirs
        self._half = min(_LARGEST, size_of(mine) // 2)
        self._alike = alike(own.tokens(mine), right.tokens(theirs))

    def differences(self) -> Iterator[Part | Pair]:
        yield from self._blocks(self._mine, self._theirs)

    def _blocks(self, mine: ast.AST, theirs: ast.AST) -> Iterator[Part | Pair]:
        for head in _HEADS:
            yield from self._expressions(getattr(mine, head, None), getattr(theirs, head, None))
        for field in _BODIES:
            one, other = getattr(mine, field, None), getattr(theirs, field, None)
            if isinstance(one, list) and isinstance(other, list):
                if field in ("handlers", "cases"):
                    for inner, outer in zip(one, other, strict=False):
                        yield from self._blocks(inner, outer)
                elif one and all(isinstance(node, ast.stmt) for node in one):
                    yield from self._bodies(_said(one), _said(other))

    def _expressions(self, mine: object, theirs: object) -> Iterator[Pair]:
        """Yield the smallest expressions that differ, then those around them."""
        if not isinstance(mine, ast.AST) or not isinstance(theirs, ast.AST):
            return
        if self._own.shape(mine) == self._right.shape(theirs):
            return
        inner: list[tuple[object, object]] = []
        if type(mine) is type(theirs):
            for field in mine._fields:
                one, other = getattr(mine, field, None), getattr(theirs, field, None)
                if isinstance(one, list) and isinstance(other, list):
                    inner += zip(one, other, strict=False) if len(one) == len(other) else []
                else:
                    inner.append((one, other))
        for one, other in inner:
            yield from self._expressions(one, other)
        if not isinstance(mine, ast.expr) or not isinstance(theirs, ast.expr):
            return
        if max(size_of(mine), size_of(theirs)) <= self._half:
            yield Pair(mine, theirs, self._alike)

    def _bodies(
        self, mine: Sequence[ast.stmt], theirs: Sequence[ast.stmt]
    ) -> Iterator[Part | Pair]:
        pairs = self._paired(mine, theirs)
        exact = [
            (i, j) for i, j in pairs if self._own.shape(mine[i]) == self._right.shape(theirs[j])
        ]
        for i, j in pairs:
            if (i, j) not in exact:
                yield from self._within(mine, theirs, i, j)
        runs = dict.fromkeys([*_between(pairs, mine, theirs), *_between(exact, mine, theirs)])
        for (start, end), (begin, stop) in runs:
            if start == end and stop - begin > 1:
                for number in range(begin, stop):
                    yield from self._part(mine, (start, end), [theirs[number]])
            yield from self._part(mine, (start, end), theirs[begin:stop])

    def _within(
        self, mine: Sequence[ast.stmt], theirs: Sequence[ast.stmt], i: int, j: int
    ) -> Iterator[Part | Pair]:
        """Yield what differs within a pair of statements, then the pair."""
        one, other = mine[i], theirs[j]
        if isinstance(one, _BLOCKS):
            if type(one) is type(other):
                yield from self._blocks(one, other)
        else:
            for field in ("value", "exc", "test"):
                yield from self._expressions(getattr(one, field, None), getattr(other, field, None))
        yield from self._part(mine, (i, i + 1), [other])

    def _part(
        self, mine: Sequence[ast.stmt], run: tuple[int, int], theirs: Sequence[ast.stmt]
    ) -> Iterator[Part]:
        start, end = run
        goes, last = mine[start:end], end == len(mine)
        if _count(goes) > _MOST or not 0 < _count(theirs) <= _MOST + 1:
            return
        if not goes and asks_again(self._own, self._right, theirs):
            return
        if max(sum(map(size_of, goes)), sum(map(size_of, theirs))) > self._half:
            return
        if not last and any(isinstance(one, ast.Return) for one in theirs):
            return  # what stands below would never run: that mends anything
        before = mine[end] if not last else None
        behind = mine[start - 1] if start else None
        yield Part(tuple(goes), tuple(theirs), before, behind, last, self._alike)

    def _paired(
        self, mine: Sequence[ast.stmt], theirs: Sequence[ast.stmt]
    ) -> list[tuple[int, int]]:
        """Return the pairs of places that together have most in common, in the order of both."""
        near = [
            [alike(self._own.tokens(one), self._right.tokens(other)) for other in theirs]
            for one in mine
        ]
        best: dict[tuple[int, int], tuple[float, list[tuple[int, int]]]] = {}
        for i in range(len(mine), -1, -1):
            for j in range(len(theirs), -1, -1):
                if i == len(mine) or j == len(theirs):
                    best[i, j] = 0.0, []
                    continue
                best[i, j] = max(best[i + 1, j], best[i, j + 1], key=lambda found: found[0])
                if near[i][j] >= _PAIR:
                    value, pairs = best[i + 1, j + 1]
                    if value + near[i][j] > best[i, j][0]:
                        best[i, j] = value + near[i][j], [(i, j), *pairs]
        return best[0, 0][1]


def _count(body: Iterable[ast.stmt]) -> int:
    """Return how many statements there are, those within others too; a function is too many."""
    count = 0
    for node in (inner for one in body for inner in ast.walk(one)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return _MOST + 2
        count += isinstance(node, ast.stmt)
    return count


def _said(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Return a body without its docstring."""
    return [
        one
        for one in body
        if not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))
    ]


_Run = tuple[int, int]


def _between(
    pairs: Sequence[tuple[int, int]], mine: Sequence[ast.stmt], theirs: Sequence[ast.stmt]
) -> Iterator[tuple[_Run, _Run]]:
    """Yield the runs of both bodies that stand between two pairs, before the first, after the last."""
    i = j = 0
    for after, behind in [*pairs, (len(mine), len(theirs))]:
        if j < behind:
            yield (i, after), (j, behind)
        i, j = after + 1, behind + 1
