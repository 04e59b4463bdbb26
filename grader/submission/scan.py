"""Finds in source text what an exercise forbids."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.util import find_spec
from operator import attrgetter

import torch

from grader.course.rules import Rule, RuleKind
from grader.submission.program import lines_of

_CASTS = frozenset({"to", "type", "as_tensor", "asarray", "tensor", "astype", "copy_"})
"""Calls that cast when they are handed a dtype. Allocation (`empty`) and `.view` do not."""

QUOTED = 200
"""Most characters of a line that are quoted."""


def scan(sources: Iterable[str], rules: Iterable[Rule]) -> list[tuple[Rule, str]]:
    """Return pairs of the rule broken and the line that breaks it, in order, each rule once.

    Text that does not parse breaks no rule here: it does not run either.
    """
    found: dict[Rule, str] = {}
    rules = tuple(rules)
    for source in sources:
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError, RecursionError):
            continue
        lines = lines_of(source)
        own = set(_calls_of_own_methods(tree))
        for node in ast.walk(tree):
            for rule in rules:
                if rule not in found and node not in own and _breaks(node, rule):
                    found[rule] = lines[node.lineno - 1].strip()[:QUOTED]  # type: ignore[attr-defined]
    return list(found.items())


def _calls_of_own_methods(tree: ast.AST) -> Iterator[ast.Call]:
    """Find `self.narrow(…)` in classes that define a `narrow`: no tensor's method is called there."""
    for made in ast.walk(tree):
        if not isinstance(made, ast.ClassDef):
            continue
        methods = {part.name: part for part in made.body if isinstance(part, ast.FunctionDef)}
        for method in methods.values():
            me = method.args.args[0].arg if method.args.args else ""
            for node in ast.walk(method):
                if (
                    isinstance(node, ast.Call)
                    and isinstance(node.func, ast.Attribute)
                    and isinstance(node.func.value, ast.Name)
                    and node.func.value.id == me
                    and node.func.attr in methods
                ):
                    yield node


def _breaks(node: ast.AST, rule: Rule) -> bool:
    if rule.kind is RuleKind.IMPORT:
        return _imports_module(node, rule.name)
    if rule.kind is RuleKind.ALLOWED:
        return False  # seen when it runs
    if rule.kind is RuleKind.CAST:
        return _is_cast(node, rule.last)
    if rule.kind is RuleKind.ATEN and "." in rule.name:
        return _is_call_of_overload(node, rule.name)
    if rule.kind is RuleKind.ATEN or rule.is_method:
        # a method or an operator counts when it is called, or fetched by its name as text
        return (
            _is_call_of(node, rule.last)
            or _is_getattr(node, rule.last)
            or _is_overload(node, rule.last)
        )
    if isinstance(node, ast.ImportFrom):
        return _imports(node, rule.last) and not _is_another(f"{node.module}.{rule.last}", rule)
    if isinstance(node, ast.Attribute):
        return node.attr == rule.last and not _is_another(ast.unparse(node), rule)
    return _is_getattr(node, rule.last)


def _is_another(dotted: str, rule: Rule) -> bool:
    """`torch.tensor` is not the module `torch.distributed.tensor`, nor is `torch.nn` one of its namesakes."""
    if dotted == rule.name or not dotted.startswith("torch.") or not _is_module(rule.name):
        return False
    try:
        found = attrgetter(dotted.removeprefix("torch."))(torch)
    except AttributeError:
        return False
    return found is not sys.modules.get(rule.name)


@cache
def _is_module(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def _imports_module(node: ast.AST, module: str) -> bool:
    if isinstance(node, ast.Import):
        return any(alias.name.split(".")[0] == module for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        return (node.module or "").split(".")[0] == module or _imports(node, module)
    return _is_import_call(node, module) or _is_taken_from_a_module(node, module)


def _imports(node: ast.ImportFrom, name: str) -> bool:
    return any(alias.name == name for alias in node.names)


def _is_taken_from_a_module(node: ast.AST, module: str) -> bool:
    """`torch.serialization.struct` is `struct`, too. `x.numpy()` is not `numpy`."""
    if _is_getattr(node, module):
        return True
    return (
        isinstance(node, ast.Attribute)
        and node.attr == module
        and not hasattr(torch.Tensor, module)
    )


def _is_call_of(node: ast.AST, name: str) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == name
    )


def _is_overload(node: ast.AST, name: str) -> bool:
    """`torch.ops.aten.view.dtype` is `view`, whichever overload."""
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Attribute)
        and node.value.attr == name
        and isinstance(node.value.value, ast.Attribute)
        and node.value.value.attr == "aten"
    )


def _is_call_of_overload(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Attribute) and ast.unparse(node).endswith(f"aten.{name}")


def _is_getattr(node: ast.AST, name: str) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("getattr", "attrgetter", "methodcaller")
        and any(isinstance(arg, ast.Constant) and arg.value == name for arg in node.args)
    )


def _is_import_call(node: ast.AST, module: str) -> bool:
    return (
        isinstance(node, ast.Call)
        and (
            node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        )
        in ("__import__", "import_module")
        and any(isinstance(arg, ast.Constant) and arg.value == module for arg in node.args)
    )


def _is_cast(node: ast.AST, dtype: str) -> bool:
    if not isinstance(node, ast.Call):
        return False
    function = node.func
    called = function.attr if isinstance(function, ast.Attribute) else ""
    if called == _METHOD_OF.get(dtype, dtype) and not node.args:
        return True
    if called not in _CASTS:
        return False
    values = [*node.args, *(keyword.value for keyword in node.keywords)]
    return any(isinstance(value, ast.Attribute) and value.attr == dtype for value in values)


_METHOD_OF = {"float16": "half", "float32": "float", "float64": "double", "int32": "int"}
