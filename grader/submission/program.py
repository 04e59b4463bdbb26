"""The part of a notebook that one exercise needs: its solution cell and all that it names.

Each exercise is run with its own program, so what breaks one costs no other. Text goes in and
text comes out; nothing is executed here.
"""

from __future__ import annotations

import ast
import dis
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType

from grader.course.cells import Cell, Kind

MAGICS_LIMIT = 50
"""Most magics and shell lines of a cell that are transformed: IPython reads the whole cell again for
each, and gives up at 500."""

_MAGIC = re.compile(r"^\s*[%!?]|\?\s*$|=\s*[%!]", re.MULTILINE)

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


@lru_cache(maxsize=512)
def plain_python(source: str) -> str:
    """Return a cell's text with magics and shell lines turned into calls of `get_ipython()`.

    A cell with more than `MAGICS_LIMIT` of them stays as it is, and so is no Python.
    """
    if source.lstrip().startswith("%%"):
        first, _, rest = source.lstrip().partition("\n")
        # a timed or captured cell still defines what it defines; other cell magics do not run
        source = rest if first.split()[0] in ("%%time", "%%timeit", "%%capture", "%%prun") else ""
    if len(_MAGIC.findall(source)) > MAGICS_LIMIT:
        return source
    # here, not above: it takes half a second, and `undertorch --help` needs none of it
    from IPython.core.inputtransformer2 import TransformerManager

    try:
        return str(TransformerManager().transform_cell(source))
    except Exception:  # IPython raises of several kinds on what it cannot read
        return source


def lines_of(source: str) -> list[str]:
    """Return the lines as Python counts them.

    str.splitlines cuts at form feeds and at Unicode's line separators too: with one of these in
    front, a statement's number would point at other text.
    """
    return source.replace("\r\n", "\n").replace("\r", "\n").split("\n")


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


def judged_text(program: Program) -> list[str]:
    """Return the statements that the exercise's name reaches: what an off-limits scan looks at.

    A student's own experiments beside the answer, such as a comparison with the built-in, are
    bare expressions and asserts; they are free. Not so in code that reaches names at run time:
    there everything is judged.
    """
    pieces = []
    dynamic = False
    for label, source in program.parts:
        if label in program.given:
            continue  # a chapter's own examples may show what is off limits
        for line, text, nodes in _statements(source):
            binds, uses = _names(nodes)
            spelled = {name for node in nodes for code in _codes(node) for name in code.co_names}
            dynamic = dynamic or bool((binds | spelled) & _DYNAMIC)
            pieces.append(_Piece(Kind.SOLUTION, label, line, text, binds, uses))
    if dynamic:
        return [piece.source for piece in pieces]
    first = [index for index, piece in enumerate(pieces) if program.exercise in piece.binds]
    return [pieces[index].source for index in sorted(_reached(pieces, first))]


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


def defines(source: str, name: str) -> bool:
    """Say whether a cell's text has a top-level function or class of that name."""
    tree = _parse(plain_python(source))
    return tree is not None and any(
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and node.name == name
        for node in tree.body
    )


def names_in(source: str) -> set[str]:
    """Return every name that a cell's text spells out, attributes and arguments too."""
    tree = _parse(plain_python(source))
    fields = ("id", "attr", "arg", "name", "asname")
    nodes = ast.walk(tree) if tree else ()
    found = {getattr(node, field, None) for node in nodes for field in fields}
    return {name for name in found if isinstance(name, str)}


def binds(source: str, name: str) -> bool:
    """Say whether a cell's text binds that name at its top level, in whatever way."""
    tree = _parse(plain_python(source))
    return tree is not None and any(name in _bound(node) for node in tree.body)


def is_stub(source: str, stub: str) -> bool:
    """Say whether a solution cell still holds the stub, up to white space and comments."""
    tree, untouched = _parse(plain_python(source)), _parse(plain_python(stub))
    if not source.strip():
        return True
    if tree is None or untouched is None:
        return source.strip() == stub.strip()
    try:
        return ast.dump(tree) == ast.dump(untouched)
    except RecursionError:
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


@lru_cache(maxsize=512)
def _parse(source: str) -> ast.Module | None:
    try:
        flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        tree: ast.Module = compile(source, "<cell>", "exec", flags, dont_inherit=True)
        return tree
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


@lru_cache(maxsize=4096)  # a chapter's given cells are the same in every submission
def _pieces(cell: Cell, reserved: frozenset[str]) -> tuple[_Piece, ...]:
    source = plain_python(cell.source)
    if cell.kind is Kind.SOLUTION:
        tree = _parse(source)
        binds, uses = _names(tree.body if tree else [])
        return (_Piece(cell.kind, cell.label, 0, source, binds | {cell.label}, uses),)
    pieces = []
    for line, text, nodes in _statements(source):
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
    found = [(_bound(node), _used(node)) for node in nodes]
    binds = frozenset(name for bound, _ in found for name in bound)
    return binds, frozenset(name for _, used in found for name in used)


def _statements(source: str) -> Iterator[tuple[int, str, list[ast.stmt]]]:
    """Yield the lines before, the text and the nodes of each top-level statement, in order.

    Statements that share a line stay together: the line of one of them alone need not parse.
    """
    tree = _parse(source)
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


def _bound(node: ast.stmt) -> set[str]:
    """Names that a top-level statement binds."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {(alias.asname or alias.name).split(".")[0] for alias in node.names}
    names = set()
    for child in ast.walk(node):
        if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
            names.add(child.id)
        elif isinstance(child, ast.FunctionDef | ast.ClassDef):
            names.add(child.name)
        elif isinstance(child, ast.Import | ast.ImportFrom):
            names |= _bound(child)
    # `DTYPES["bf16"] = …` and `layer.weight = …` change what a name refers to
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    for target in targets:
        while isinstance(target, ast.Subscript | ast.Attribute):
            target = target.value
        if isinstance(target, ast.Name):
            names.add(target.id)
    return names


def _used(node: ast.stmt) -> set[str]:
    """Names that a statement looks up outside itself.

    Not its attributes: `x.weight` must not lead to a variable that some example calls `weight`.
    """
    instructions = (step for code in _codes(node) for step in dis.get_instructions(code))
    lookups = ("LOAD_NAME", "LOAD_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS")
    return {step.argval for step in instructions if step.opname in lookups}


def _codes(node: ast.stmt) -> list[CodeType]:
    """Return a statement's code and that of every function and class in it."""
    try:
        # without dont_inherit this file's own `from __future__` would hide annotations
        tree, flags = ast.Module([node], []), ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        codes = [compile(tree, "<cell>", "exec", flags, dont_inherit=True)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    for code in codes:  # which grows meanwhile
        codes += [const for const in code.co_consts if isinstance(const, CodeType)]
    return codes
