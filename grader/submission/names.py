"""Cells as Python, and which names their code binds and uses.

There are two answers on purpose. A statement of a student's is looked at alone, and bindings count
too many rather than too few: what is not chosen does not run. A cell of the course's is looked at
as it runs, line after line: what it need not have is not given away.
"""

from __future__ import annotations

import ast
import dis
import re
import warnings
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType
from typing import Any

MAGICS_LIMIT = 50
"""Most magics and shell lines of a cell that are transformed: IPython reads the whole cell again for
each, and gives up at 500."""

_MAGIC = re.compile(r"^[^\S\n]*[%!?]|\?[^\S\n]*$|=[^\S\n]*[%!]", re.MULTILINE)
"""What may be one. White space within a line: over line breaks, n empty lines would take n² steps."""

_LOADS = ("LOAD_NAME", "LOAD_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS")

_LOAD_NUMBERS = frozenset(dis.opmap[name] for name in _LOADS if name in dis.opmap)
_LOAD_GLOBAL = dis.opmap["LOAD_GLOBAL"]


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


@lru_cache(maxsize=512)
def parse(source: str) -> ast.Module | None:
    """Return the tree of plain Python, `await` at top level allowed; None if it does not parse."""
    try:
        tree: ast.Module = _compiled(source, ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        return tree
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def codes_of(nodes: list[ast.stmt]) -> list[CodeType]:
    """Return the code of statements and that of every function and class in them; none if bad."""
    try:
        codes = [_compiled(ast.Module(nodes, []), ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    for code in codes:  # which grows meanwhile
        codes += [const for const in code.co_consts if isinstance(const, CodeType)]
    return codes


def _compiled(source: str | ast.Module, flags: int) -> Any:
    """Return what `compile` makes of it, without a word of what Python would warn of in it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # without dont_inherit this file's own `from __future__` would hide annotations
        return compile(source, "<cell>", "exec", flags, dont_inherit=True)


def bound_by(node: ast.stmt) -> set[str]:
    """Return the names that a top-level statement binds, those in its nested functions too."""
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
            names |= bound_by(child)
    # `DTYPES["bf16"] = …` and `layer.weight = …` change what a name refers to
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return names | {name for target in targets if (name := _root(target))}


def used_by(node: ast.stmt) -> set[str]:
    """Return the names that a statement looks up outside itself.

    Not its attributes: `x.weight` must not lead to a variable that some example calls `weight`.
    """
    return {name for code in codes_of([node]) for name in _loaded(code)}


def needs(source: str) -> frozenset[str]:
    """Return the names that a cell looks up before it binds them, built-ins among them."""
    codes = _codes_of_cell(source)
    if not codes:
        return frozenset()
    bound: set[str] = set()
    needed: set[str] = set()
    for step in dis.get_instructions(codes[0]):
        if step.opname == "STORE_NAME":
            bound.add(step.argval)
        elif step.opname in _LOADS and step.argval not in bound:
            needed.add(step.argval)
    # a class's body stores names of its own, and looks those up in the same way
    inner = {name for code in codes[1:] for name in _loaded(code) - _stored(code)}
    return frozenset(needed | (inner - bound))


def provides(source: str) -> frozenset[str]:
    """Return the names that a cell binds, or changes by an assignment to a part of theirs."""
    codes, tree = _codes_of_cell(source), parse(plain_python(source))
    if not codes or tree is None:
        return frozenset()
    return frozenset(_stored(codes[0]) | {name for node in tree.body for name in _changed(node)})


def binds(source: str, name: str) -> bool:
    """Say whether a cell's text binds that name at its top level, in whatever way."""
    tree = parse(plain_python(source))
    return tree is not None and any(name in bound_by(node) for node in tree.body)


def defines(source: str, name: str) -> bool:
    """Say whether a cell's text has a top-level function or class of that name."""
    tree = parse(plain_python(source))
    return tree is not None and any(
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and node.name == name
        for node in tree.body
    )


def names_in(source: str) -> set[str]:
    """Return every name that a cell's text spells out, attributes and arguments too."""
    tree = parse(plain_python(source))
    fields = ("id", "attr", "arg", "name", "asname")
    nodes = ast.walk(tree) if tree else ()
    found = {getattr(node, field, None) for node in nodes for field in fields}
    return {name for name in found if isinstance(name, str)}


@lru_cache(maxsize=512)
def _codes_of_cell(source: str) -> list[CodeType]:
    tree = parse(plain_python(source))
    return codes_of(tree.body) if tree else []


def _loaded(code: CodeType) -> set[str]:
    """Return the names that code looks up beyond its own variables.

    `dis.get_instructions` would write out every constant too: slow, and a number of more than 4300
    digits it cannot.
    """
    names, high = set(), 0
    for operation, low in zip(code.co_code[::2], code.co_code[1::2], strict=True):
        argument = high | low
        high = argument << 8 if operation == dis.EXTENDED_ARG else 0
        if operation in _LOAD_NUMBERS:
            # the lowest bit of LOAD_GLOBAL's says whether a NULL is pushed for a call
            shift = operation == _LOAD_GLOBAL
            names.add(code.co_names[argument >> shift])
    return names


def _stored(code: CodeType) -> set[str]:
    return {step.argval for step in dis.get_instructions(code) if step.opname == "STORE_NAME"}


def _changed(statement: ast.stmt) -> Iterator[str]:
    """Yield `x` for `x[0] = …` and `x.y = …`, not in functions, which may never be called."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return
    for node in ast.walk(statement):
        if isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Store):
            name = _root(node)
            if name:
                yield name


def _root(target: ast.AST | None) -> str:
    """Return `x` for `x`, `x[0]` and `x.y`; nothing for what hangs on no name."""
    while isinstance(target, ast.Subscript | ast.Attribute):
        target = target.value
    return target.id if isinstance(target, ast.Name) else ""
