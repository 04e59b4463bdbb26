"""The part of a notebook that one exercise needs: its solution cell and all that it names.

Each exercise is run with its own program, so what breaks one costs no other. Text goes in and
text comes out; nothing is executed here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from grader.course.cells import Cell, Kind
from grader.submission.names import bound_by, codes_of, parse, plain_python, used_by

_DYNAMIC = frozenset(
    [
        "exec",
        "eval",
        "globals",
        "locals",
        "vars",
        "modules",
        "__import__",
        "__main__",
        "__dict__",
        "__globals__",
        "__builtins__",
        "__setattr__",
    ]
)
"""Words by which code reaches names that it does not spell out."""


@dataclass(frozen=True)
class Program:
    """What is loaded for one exercise, in order: pairs of label and Python source.

    `given` are the labels of parts that the released notebook wrote, not the student.
    """

    exercise: str
    parts: tuple[tuple[str, str], ...]
    given: frozenset[str] = frozenset()


def lines_of(source: str) -> list[str]:
    """Return the lines as Python counts them.

    str.splitlines cuts at form feeds and at Unicode's line separators too: with one of these in
    front, a statement's number would point at other text.
    """
    return source.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def lines_above(source: str, text: str) -> int:
    """Return how many lines of a cell IPython leaves out before its text as plain Python."""
    whole, first = lines_of(source), lines_of(text)[0]
    return whole.index(first) if first in whole else 0


def slice_program(exercise: str, names: Iterable[str], cells: Sequence[Cell]) -> Program:
    """Return the program of `exercise`: its own cell, and what that names, transitively.

    `names` are the exercise ids of the chapter. Those are defined by solution cells alone: a
    definition of one elsewhere is left out.
    """
    reserved = frozenset(names)
    pieces = [piece for cell in cells for piece in _pieces(cell, reserved)]
    first = [
        index
        for index, piece in enumerate(pieces)
        if piece.kind is Kind.SOLUTION and piece.label == exercise
    ]
    always = [index for index, piece in enumerate(pieces) if piece.always]
    chosen = _reached(pieces, [*first, *always], max(first)) if first else set()
    taken = [pieces[index] for index in sorted(chosen)]
    given = frozenset(piece.label for piece in taken if piece.kind is Kind.GIVEN)
    return Program(exercise, _parts(taken), given)


Lines = tuple[str, int, int]
"""Where a statement stands: label of the cell, first and last line."""


def statements(program: Program) -> list[str]:
    """Return a program's statements as text, wherever in their cells they stand."""
    return [
        text for _, source in program.parts for text, _ in statements_of(source) or [(source, [])]
    ]


def judged_text(program: Program) -> list[str]:
    """Return the statements that the exercise's name reaches: what an off-limits scan looks at.

    A student's own experiments beside the answer, such as a comparison with the built-in, are
    bare expressions and asserts; they are free. Not so in code that reaches names at run time:
    there everything is judged.
    """
    return [text for _, text in judged_statements(program)]


def judged_lines(program: Program) -> list[Lines]:
    """Return where those statements stand."""
    return [lines for lines, _ in judged_statements(program)]


def judged_statements(program: Program) -> list[tuple[Lines, str]]:
    """Return those statements: where each stands, and its text."""
    return [
        ((label, before + 1, before + len(lines_of(source))), source)
        for label, before, source in _judged(program)
    ]


def statements_of(source: str) -> list[tuple[str, list[ast.stmt]]]:
    """Return the top-level statements of plain Python, text and nodes, without where they stand.

    Statements that share a line stay together. Text that does not parse has none.
    """
    return [(text, nodes) for _, text, nodes in _placed(source)]


def _judged(program: Program) -> list[tuple[str, int, str]]:
    """Return label, lines before and text of each statement that is judged."""
    pieces = []
    dynamic = False
    for label, source in program.parts:
        if label in program.given:
            continue  # a chapter's own examples may show what is off limits
        for line, text, nodes in _placed(source):
            binds, uses = _names(nodes)
            spelled = {
                name for node in nodes for code in codes_of([node]) for name in code.co_names
            }
            dynamic = dynamic or bool((binds | spelled) & _DYNAMIC)
            pieces.append(_Piece(Kind.SOLUTION, label, line, text, binds, uses))
    if dynamic:
        chosen = list(range(len(pieces)))
    else:
        first = [index for index, piece in enumerate(pieces) if program.exercise in piece.binds]
        chosen = sorted(_reached(pieces, first))
    return [(pieces[i].label, pieces[i].line, pieces[i].source) for i in chosen]


def _reached(pieces: Sequence[_Piece], first: Iterable[int], home: int | None = None) -> set[int]:
    """Return the pieces that the `first` need: themselves, and what binds a name that one uses.

    What comes after piece `home` binds a name only if nothing up to there does: a later cell that
    uses a name for something else must not change what an answer means.
    """
    binding: dict[str, list[int]] = {}
    for index, piece in enumerate(pieces):
        for name in piece.binds:
            binding.setdefault(name, []).append(index)
    chosen: set[int] = set()
    pending = list(first)
    while pending:
        index = pending.pop()
        if index not in chosen:
            chosen.add(index)
            for name in pieces[index].uses:
                found = binding.pop(name, [])  # once asked for, all of them are chosen
                pending += [other for other in found if home is None or other <= home] or found
    return chosen


def _parts(pieces: Sequence[_Piece]) -> tuple[tuple[str, str], ...]:
    """Return one part per cell: the text of its pieces, each on the line where it stood."""
    parts: list[tuple[str, list[str]]] = []
    for piece in pieces:
        if not parts or parts[-1][0] != piece.label:
            parts.append((piece.label, []))
        lines = parts[-1][1]
        lines += [""] * (piece.line - len(lines))
        lines += lines_of(piece.source)
    return tuple((label, "\n".join(lines)) for label, lines in parts)


def is_stub(source: str, stub: str) -> bool:
    """Say whether a solution cell still holds the stub, up to white space and comments."""
    tree, untouched = parse(plain_python(source)), parse(plain_python(stub))
    if not source.strip():
        return True
    if tree is None or untouched is None:
        return source.strip() == stub.strip()
    try:
        return ast.dump(tree) == ast.dump(untouched)
    except (RecursionError, ValueError):  # ValueError: a number of more digits than Python writes
        return False


@dataclass(frozen=True)
class _Piece:
    """Text that is chosen or left out as a whole; `line` is how many lines of its cell precede it."""

    kind: Kind
    label: str
    line: int
    source: str
    binds: frozenset[str]
    uses: frozenset[str]
    always: bool = False


@lru_cache(maxsize=4096)  # a chapter's given cells are the same in every submission
def _pieces(cell: Cell, reserved: frozenset[str]) -> tuple[_Piece, ...]:
    source = plain_python(cell.source)
    if cell.kind is Kind.SOLUTION:
        tree = parse(source)
        binds, uses = _names(tree.body if tree else [])
        return (_Piece(cell.kind, cell.label, 0, source, binds | {cell.label}, uses),)
    pieces = []
    for line, text, nodes in _placed(source):
        binds, uses = _names(nodes)
        if all(isinstance(node, ast.Expr) for node in nodes):
            continue
        if cell.kind is Kind.OWN and binds & reserved:
            continue
        always = any(
            isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names)
            for node in nodes
        )
        pieces.append(_Piece(cell.kind, cell.label, line, text, binds, uses, always))
    return tuple(pieces)


def _names(nodes: Iterable[ast.stmt]) -> tuple[frozenset[str], frozenset[str]]:
    """Return the names that statements bind and those that they use."""
    found = [(bound_by(node), used_by(node)) for node in nodes]
    binds = frozenset(name for bound, _ in found for name in bound)
    return binds, frozenset(name for _, used in found for name in used)


def _placed(source: str) -> Iterator[tuple[int, str, list[ast.stmt]]]:
    """Yield the lines before, the text and the nodes of each top-level statement, in order.

    Statements that share a line stay together: the line of one of them alone need not parse.
    """
    tree = parse(source)
    lines = lines_of(source)
    groups: list[tuple[int, int, list[ast.stmt]]] = []
    for node in tree.body if tree else []:
        first, last = _first_line(node) - 1, node.end_lineno or node.lineno
        if groups and first < groups[-1][1]:
            start, _, nodes = groups[-1]
            groups[-1] = start, last, [*nodes, node]
        else:
            groups.append((first, last, [node]))
    for first, last, nodes in groups:
        yield first, "\n".join(lines[first:last]), nodes


def _first_line(node: ast.stmt) -> int:
    decorators = getattr(node, "decorator_list", [])
    lines: list[int] = [node.lineno, *(decorator.lineno for decorator in decorators)]
    return min(lines)
