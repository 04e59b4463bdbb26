"""The part of a notebook that one exercise needs: its solution cell and all that it names.

Each exercise is run with its own program, so what breaks one costs no other. Text goes in and
text comes out; nothing is executed here.
"""

from __future__ import annotations

import ast
import dis
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from types import CodeType

from IPython.core.inputtransformer2 import TransformerManager


class Kind(Enum):
    """Where the text of a cell comes from and what it is for."""

    GIVEN = "given"  # from the released notebook
    SOLUTION = "solution"  # the student's text in a solution cell
    OWN = "own"  # a cell that the student added or changed


@dataclass(frozen=True)
class Cell:
    """A code cell. `label` is what tracebacks show; a solution's is its exercise id."""

    kind: Kind
    label: str
    source: str


@dataclass(frozen=True)
class Program:
    """What is loaded for one exercise, in order: pairs of label and Python source."""

    exercise: str
    parts: tuple[tuple[str, str], ...]


def plain_python(source: str) -> str:
    """Return a cell's text with magics and shell lines turned into calls of `get_ipython()`."""
    if source.lstrip().startswith("%%"):
        first, _, rest = source.lstrip().partition("\n")
        # a timed or captured cell still defines what it defines; other cell magics do not run
        source = rest if first.split()[0] in ("%%time", "%%timeit", "%%capture", "%%prun") else ""
    try:
        return str(TransformerManager().transform_cell(source))
    except SyntaxError:
        return source


def slice_program(exercise: str, names: Iterable[str], cells: Sequence[Cell]) -> Program:
    """Return the program of `exercise`: its own cell, and what that names, transitively.

    `names` are the exercise ids of the chapter. Those are defined by solution cells alone: a
    definition of one elsewhere is left out.
    """
    reserved = frozenset(names)
    pieces = [piece for cell in cells for piece in _pieces(cell, reserved)]
    wanted: set[str] = set()
    chosen = {
        index
        for index, piece in enumerate(pieces)
        if piece.kind is Kind.SOLUTION and piece.label == exercise
    }
    fresh = set(chosen)
    while fresh:
        wanted |= {name for index in fresh for name in pieces[index].uses}
        fresh = {
            index
            for index, piece in enumerate(pieces)
            if index not in chosen and (piece.binds & wanted or piece.always)
        }
        chosen |= fresh
    parts = tuple((pieces[index].label, pieces[index].source) for index in sorted(chosen))
    return Program(exercise, parts)


def judged_text(program: Program) -> list[str]:
    """Return the statements that the exercise's name reaches: what an off-limits scan looks at.

    A student's own experiments beside the answer, such as a comparison with the built-in, are
    bare expressions and asserts; they are free.
    """
    statements: list[tuple[ast.stmt, str]] = []
    for _, source in program.parts:
        tree = _parse(source)
        lines = source.splitlines()
        for node in tree.body if tree else []:
            if not isinstance(node, ast.Expr | ast.Assert):
                text = "\n".join(lines[_first_line(node) - 1 : node.end_lineno])
                statements.append((node, text))
    wanted = {program.exercise}
    chosen: set[int] = set()
    while True:
        fresh = {
            index
            for index, (node, _) in enumerate(statements)
            if index not in chosen and _bound(node) & wanted
        }
        if not fresh:
            return [statements[index][1] for index in sorted(chosen)]
        chosen |= fresh
        # not attributes: `x.dtype` does not reach a loop `for dtype in …` in a demonstration
        wanted |= {name for index in fresh for name in _looked_up(statements[index][0])}


def defines(source: str, name: str) -> bool:
    """Say whether a cell's text has a top-level function or class of that name."""
    tree = _parse(plain_python(source))
    return tree is not None and any(
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and node.name == name
        for node in tree.body
    )


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
    return ast.dump(tree) == ast.dump(untouched)


@dataclass(frozen=True)
class _Piece:
    kind: Kind
    label: str
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
    tree = _parse(source)
    if cell.kind is Kind.SOLUTION:
        statements: Sequence[ast.stmt] = tree.body if tree else []
        binds = frozenset(name for node in statements for name in _bound(node))
        uses = frozenset(name for node in statements for name in _used(node))
        return (_Piece(cell.kind, cell.label, source, binds | {cell.label}, uses),)
    pieces = []
    for node in tree.body if tree else []:
        binds = frozenset(_bound(node))
        if isinstance(node, ast.Expr) or (cell.kind is Kind.OWN and binds & reserved):
            continue
        lines = source.splitlines()[_first_line(node) - 1 : node.end_lineno]
        # blank lines in front keep the line numbers that the student sees
        text = "\n" * (_first_line(node) - 1) + "\n".join(lines)
        always = isinstance(node, ast.ImportFrom) and any(n.name == "*" for n in node.names)
        pieces.append(_Piece(cell.kind, cell.label, text, binds, frozenset(_used(node)), always))
    return tuple(pieces)


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
    """Names that a statement looks up outside itself, and the attributes it reads."""
    return {name for code in _compiled(node) for name in (*code.co_names, *code.co_freevars)}


def _looked_up(node: ast.stmt) -> set[str]:
    """Names that a statement looks up outside itself, attributes left out."""
    return {
        step.argval
        for code in _compiled(node)
        for step in dis.get_instructions(code)
        if step.opname.startswith("LOAD_") and ("GLOBAL" in step.opname or "NAME" in step.opname)
    }


def _compiled(node: ast.stmt) -> list[CodeType]:
    """Return the code of a statement and of all that it defines; nothing if it does not compile."""
    try:
        # without dont_inherit this file's own `from __future__` would hide annotations
        tree, flags = ast.Module([node], []), ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        found = [compile(tree, "<cell>", "exec", flags, dont_inherit=True)]
    except (SyntaxError, ValueError, RecursionError):
        return []
    for code in found:  # grows while it is walked
        found += [const for const in code.co_consts if isinstance(const, CodeType)]
    return found
