"""Which names a notebook's cell binds, and which it needs from cells that ran before it."""

from __future__ import annotations

import ast
import dis
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType

from grader.submission.program import plain_python

_LOADS = ("LOAD_NAME", "LOAD_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS")


def needs(source: str) -> frozenset[str]:
    """Return the names that a cell looks up before it binds them, built-ins among them."""
    code = _code(source)
    if code is None:
        return frozenset()
    bound: set[str] = set()
    needed: set[str] = set()
    for step in dis.get_instructions(code):
        if step.opname == "STORE_NAME":
            bound.add(step.argval)
        elif step.opname in _LOADS and step.argval not in bound:
            needed.add(step.argval)
    inner = {name for nested in _nested(code) for name in _globals_of(nested)}
    return frozenset(needed | (inner - bound))


def provides(source: str) -> frozenset[str]:
    """Return the names that a cell binds, or changes by an assignment to a part of theirs."""
    code, tree = _code(source), _tree(source)
    if code is None or tree is None:
        return frozenset()
    bound = {step.argval for step in dis.get_instructions(code) if step.opname == "STORE_NAME"}
    return frozenset(bound | {name for node in tree.body for name in _changed(node)})


def _changed(statement: ast.stmt) -> Iterator[str]:
    """Yield `x` for `x[0] = …` and `x.y = …`, not in functions, which may never be called."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return
    for node in ast.walk(statement):
        if isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Store):
            target: ast.expr = node
            while isinstance(target, ast.Subscript | ast.Attribute):
                target = target.value
            if isinstance(target, ast.Name):
                yield target.id


def _globals_of(code: CodeType) -> set[str]:
    steps = list(dis.get_instructions(code))
    own = {step.argval for step in steps if step.opname == "STORE_NAME"}  # of a class's body
    return {step.argval for step in steps if step.opname in _LOADS} - own


def _nested(code: CodeType) -> Iterator[CodeType]:
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield const
            yield from _nested(const)


@lru_cache(maxsize=512)
def _tree(source: str) -> ast.Module | None:
    flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    try:
        tree: ast.Module = compile(plain_python(source), "<cell>", "exec", flags, dont_inherit=True)
    except SyntaxError:  # a cell that shows what does not parse needs nothing
        return None
    return tree


@lru_cache(maxsize=512)
def _code(source: str) -> CodeType | None:
    tree = _tree(source)
    if tree is None:
        return None
    # dont_inherit: this file's own `from __future__` would hide annotations
    code: CodeType = compile(
        tree, "<cell>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True
    )
    return code
