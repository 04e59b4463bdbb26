"""Small changes of an answer that need no other program: what the trial of graders changes, and what
people forget, write too much, or put a line too high or too low.
"""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Iterable, Iterator

from grader.submission.edits import SIMPLE, Edit, Kind, Text, parsed
from grader.submission.fragments import MODULES, is_module, names_bound
from grader.submission.mutants import changes


def small_changes(text: Text, right: Iterable[str]) -> Iterator[Edit]:
    """Yield edits that need no other program, but for what it mentions."""
    used = {
        node.attr
        for source in right
        for node in ast.walk(parsed(source) or ast.Module([], []))
        if isinstance(node, ast.Attribute)
    }
    for node in expressions(text):
        for now, cost in _instead(text, node, used):
            start, end = text.span(node)
            yield Edit(start, end, now, node.lineno, cost, Kind.SMALL, node)
    for statement in statements(text):
        yield from _of_statement(text, statement)


def expressions(text: Text) -> Iterator[ast.expr]:
    """Yield what is read when the program runs, but for annotations, docstrings and f-strings.

    What is called is no expression of its own, nor a module before its dot.
    """
    called = {node.func for node in ast.walk(text.tree) if isinstance(node, ast.Call)}
    pending: list[ast.AST] = [text.tree]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.JoinedStr):  # Python 3.11 does not know where its parts stand
            continue
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        for name, value in ast.iter_fields(node):
            if name not in ("annotation", "returns"):
                found = value if isinstance(value, list) else [value]
                pending += [child for child in found if isinstance(child, ast.AST)]
        if not isinstance(node, ast.expr) or node in called:
            continue
        module = isinstance(node, ast.Name) and node.id in MODULES
        if isinstance(getattr(node, "ctx", None), _READ) and not module:
            yield node


_READ = (ast.Load, type(None))

_COPIES = ("clone", "detach", "contiguous")

_OTHER_OPERATORS: dict[type[ast.operator], tuple[type[ast.operator], ...]] = {
    ast.Div: (ast.FloorDiv,),
    ast.FloorDiv: (ast.Div, ast.Mod),
    ast.Mod: (ast.FloorDiv,),
    ast.Mult: (ast.Add, ast.FloorDiv, ast.Div, ast.Pow, ast.MatMult),
    ast.Add: (ast.Mult,),
    ast.BitAnd: (ast.BitXor,),
    ast.BitOr: (ast.BitXor,),
}

_OPPOSITES = {
    "min": "max",
    "any": "all",
    "floor": "ceil",
    "append": "extend",
    "amin": "amax",
    "sum": "mean",
    "zeros": "ones",
    "zeros_like": "ones_like",
    "unsqueeze": "squeeze",
    "startswith": "endswith",
    "named_parameters": "named_buffers",
    "parameters": "buffers",
    "argmin": "argmax",
}
_OPPOSITES |= {other: one for one, other in _OPPOSITES.items()}


def _instead(text: Text, node: ast.expr, used: set[str]) -> Iterator[tuple[str, float]]:
    """Yield what may stand in a node's place, and what it costs."""
    yield from _mutated(node)
    match node:
        case ast.BinOp(left=left, op=op, right=right):
            yield ast.unparse(left), 1.5
            yield ast.unparse(right), 1.5
            if not isinstance(op, ast.Add | ast.Mult | ast.BitAnd | ast.BitOr | ast.BitXor):
                yield ast.unparse(ast.BinOp(right, op, left)), 1.6
            for kind in _OTHER_OPERATORS.get(type(op), ()):
                yield ast.unparse(ast.BinOp(left, kind(), right)), 1.8
        case ast.BoolOp(op=op, values=values):
            for number in range(len(values)):
                rest = values[:number] + values[number + 1 :]
                yield ast.unparse(rest[0] if len(rest) == 1 else ast.BoolOp(op, rest)), 1.2
        case ast.UnaryOp(operand=operand):
            yield ast.unparse(operand), 1.1
        case ast.IfExp(test=test, body=body, orelse=other):
            yield ast.unparse(body), 1.2
            yield ast.unparse(other), 1.2
            yield ast.unparse(ast.IfExp(test, other, body)), 1.6
        case ast.Call():
            yield from _other_calls(node)
            yield from _other_kinds(node)
        case ast.Subscript(value=value, slice=index):
            yield from _other_subscripts(value, index)
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
            yield from _without_conditions(node)
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            for kept, cost in _other_elements(elements):
                is_tuple = isinstance(node, ast.Tuple)
                yield ast.unparse(ast.Tuple(kept) if is_tuple else ast.List(kept)), cost
        case ast.Attribute(value=value, attr=kind) if kind in _TYPES and is_module(value):
            yield ast.unparse(ast.Attribute(value, _TYPES[kind])), 1.4
        case ast.Name():
            for name in _near_names(text, node):
                yield name, 2.2
        case ast.Constant(value=int() as number) if not isinstance(number, bool):
            for other_number in (0, 1, -1, 2, -number):
                yield repr(other_number), 1.7
    if _may_be_copied(text, node):
        for method in _COPIES:
            yield f"{_bracketed(node)}.{method}()", 1.7 if method in used else 2.6


def _mutated(node: ast.expr) -> Iterator[tuple[str, float]]:
    """Yield what the trial of graders would write here."""
    for change in changes(node):
        before = getattr(node, change.field)
        change()
        divides = isinstance(getattr(node, change.field), ast.Div)
        yield ast.unparse(node), 2.0 if isinstance(before, ast.expr) or divides else 1.0
        setattr(node, change.field, before)


def _other_calls(call: ast.Call) -> Iterator[tuple[str, float]]:
    function, given, keywords = call.func, call.args, call.keywords
    match function:
        case ast.Name(id=name) if name in _OPPOSITES:
            yield ast.unparse(ast.Call(ast.Name(_OPPOSITES[name]), given, keywords)), 1.3
        case ast.Attribute(value=value, attr=name) if name in _OPPOSITES:
            other = ast.Attribute(value, _OPPOSITES[name])
            yield ast.unparse(ast.Call(other, given, keywords)), 1.3
    if isinstance(function, ast.Attribute) and not is_module(function.value):
        yield ast.unparse(function.value), 1.1 if function.attr in _COPIES else 1.7
    if given and not isinstance(given[0], ast.Starred):
        yield ast.unparse(given[0]), 1.5
    for number in range(len(given)):
        rest = given[:number] + given[number + 1 :]
        yield ast.unparse(ast.Call(function, rest, keywords)), 1.4
    for number in range(len(keywords)):
        rest_of = keywords[:number] + keywords[number + 1 :]
        yield ast.unparse(ast.Call(function, given, rest_of)), 1.4
    for number in range(len(given) - 1):
        swapped = [*given[:number], given[number + 1], given[number], *given[number + 2 :]]
        yield ast.unparse(ast.Call(function, swapped, keywords)), 1.6
    if isinstance(function, ast.Name) and function.id == "range" and given:
        one = ast.Constant(1)
        *first, last = given
        if len(given) == 3:
            first, last = [given[0]], given[1]
        more, less = ast.BinOp(last, ast.Add(), one), ast.BinOp(last, ast.Sub(), one)
        for end in (more, less):
            yield ast.unparse(ast.Call(function, [*first, end, *given[2:]], [])), 1.3
        if len(given) == 1:
            yield ast.unparse(ast.Call(function, [one, last], [])), 1.3
            yield ast.unparse(ast.Call(function, [one, more], [])), 1.5
        yield f"reversed({ast.unparse(call)})", 1.8


_KINDS = ("float", "double", "int", "long")

_TYPES = {"float32": "float64", "float16": "float32", "int8": "int32", "int16": "int32"}
_TYPES |= {"int32": "int64", "bfloat16": "float32"}
"""What a number is often too wide for, and what holds it."""


def _other_kinds(call: ast.Call) -> Iterator[tuple[str, float]]:
    """Yield a call that makes other numbers, or a new tensor instead of changing its own."""
    function, given = call.func, call.args
    for one in given[1:]:
        if len(given) > 2 and not isinstance(one, ast.Starred):
            yield ast.unparse(one), 1.6
    if not isinstance(function, ast.Attribute):
        return
    value, name = function.value, function.attr
    if name in _KINDS and not given:
        for kind in _KINDS:
            yield ast.unparse(ast.Call(ast.Attribute(value, kind), [], [])), 1.8
    if name.endswith("_") and not name.endswith("__"):
        new = ast.Attribute(value, name.removesuffix("_"))
        yield ast.unparse(ast.Call(new, given, call.keywords)), 1.3


def _other_subscripts(value: ast.expr, index: ast.expr) -> Iterator[tuple[str, float]]:
    yield ast.unparse(value), 2.0
    if isinstance(index, ast.Tuple) and len(index.elts) > 1:
        for number in range(len(index.elts)):
            rest = index.elts[:number] + index.elts[number + 1 :]
            kept = rest[0] if len(rest) == 1 else ast.Tuple(rest, ast.Load())
            yield ast.unparse(ast.Subscript(value, kept)), 1.8
    if isinstance(index, ast.Slice):
        for part in ("lower", "upper", "step"):
            bound = getattr(index, part)
            if bound is not None:
                for other in (
                    None,
                    ast.BinOp(bound, ast.Add(), ast.Constant(1)),
                    ast.BinOp(bound, ast.Sub(), ast.Constant(1)),
                ):
                    changed = copy.copy(index)
                    setattr(changed, part, other)
                    yield ast.unparse(ast.Subscript(value, changed)), 1.7
    elif not isinstance(index, ast.Constant | ast.Tuple):
        for op in (ast.Add(), ast.Sub()):
            yield ast.unparse(ast.Subscript(value, ast.BinOp(index, op, ast.Constant(1)))), 1.8


def _other_elements(elements: list[ast.expr]) -> Iterator[tuple[list[ast.expr], float]]:
    """Yield elements without one of them, or with two exchanged."""
    if len(elements) > 1:
        for number in range(len(elements)):
            yield elements[:number] + elements[number + 1 :], 1.9
    for number in range(len(elements) - 1):
        one, other = elements[number : number + 2]
        yield [*elements[:number], other, one, *elements[number + 2 :]], 1.8


def _without_conditions(
    made: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp,
) -> Iterator[tuple[str, float]]:
    for number, generator in enumerate(made.generators):
        for position in range(len(generator.ifs)):
            changed = copy.deepcopy(made)
            del changed.generators[number].ifs[position]
            yield ast.unparse(changed), 1.3


def _near_names(text: Text, node: ast.Name) -> list[str]:
    """Return the other names of the same function that are variables."""
    parent = text.parents.get(node)
    if isinstance(parent, ast.Call) and node is parent.func:
        return []
    bound = names_bound(_scope(text, node))
    return sorted(bound - {node.id}) if node.id in bound else []


def _scope(text: Text, node: ast.AST) -> ast.AST:
    while not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Module):
        node = text.parents[node]
    return node


def _may_be_copied(text: Text, node: ast.expr) -> bool:
    """Say whether a node may be a tensor whose place another one may take."""
    if not isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript | ast.BinOp):
        return False
    parent = text.parents.get(node)
    if isinstance(parent, ast.Attribute):
        return False
    if isinstance(parent, ast.Call) and node is parent.func:
        return False
    return not isinstance(node, ast.Attribute) or not isinstance(parent, ast.Subscript)


def _bracketed(node: ast.expr) -> str:
    simple = isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript)
    return ast.unparse(node) if simple else f"({ast.unparse(node)})"


# ── statements


def statements(text: Text) -> Iterator[ast.stmt]:
    for node in ast.walk(text.tree):
        if isinstance(node, ast.stmt) and not isinstance(node, ast.Import | ast.ImportFrom):
            docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            if not docstring and not isinstance(text.parents[node], ast.Module):
                yield node


def _of_statement(text: Text, node: ast.stmt) -> Iterator[Edit]:
    start, end = text.span(node)
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Pass):
        yield Edit(start, end, "pass", node.lineno, 1.5, Kind.LINE)
    if isinstance(node, ast.AugAssign):
        for change in changes(node):
            before = node.op
            change()
            yield Edit(start, end, ast.unparse(node), node.lineno, 1.0, Kind.LINE)
            node.op = before
        whole = ast.BinOp(node.target, node.op, node.value)
        made = ast.unparse(ast.fix_missing_locations(ast.Assign([node.target], whole)))
        yield Edit(start, end, made, node.lineno, 1.4, Kind.LINE)
    for now in _without_a_method(text, node):
        yield Edit(start, end, now, node.lineno, 1.6, Kind.LINE)
    if isinstance(node, ast.If | ast.While):
        where = text.span(node.test)
        yield Edit(*where, f"not {_bracketed(node.test)}", node.lineno, 1.6, Kind.LINE, node.test)
        if isinstance(node, ast.If):
            yield Edit(*where, "True", node.lineno, 1.6, Kind.LINE)
            yield Edit(*where, "False", node.lineno, 1.8, Kind.LINE)
    body = body_of(text, node)
    number = body.index(node)
    if number + 1 < len(body):
        yield from _exchanged(text, node, body[number + 1])
    yield from _moved_out(text, node, body)


def _without_a_method(text: Text, node: ast.stmt) -> Iterator[str]:
    """Yield a statement without a method that it calls in several places, such as `.float()`."""
    if not isinstance(node, SIMPLE):
        return
    calls = [one for one in ast.walk(node) if isinstance(one, ast.Call) and _says_nothing(one)]
    found = Counter(one.func.attr for one in calls)  # type: ignore[attr-defined]
    for name, number in found.items():
        if number > 1:
            made = _Without(name).visit(copy.deepcopy(node))
            yield ast.unparse(ast.fix_missing_locations(made))


def _says_nothing(call: ast.Call) -> bool:
    """Say whether a call is that of a method without arguments."""
    function = call.func
    bare = not call.args and not call.keywords
    return bare and isinstance(function, ast.Attribute) and not is_module(function.value)


class _Without(ast.NodeTransformer):
    """Leaves out the calls of one method."""

    def __init__(self, name: str) -> None:
        self._name = name

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        gone = _says_nothing(node) and node.func.attr == self._name  # type: ignore[attr-defined]
        return node.func.value if gone else node  # type: ignore[attr-defined]


def body_of(text: Text, node: ast.stmt) -> list[ast.stmt]:
    """Return the statements that this one stands among."""
    parent = text.parents[node]
    for field in ("body", "orelse", "finalbody"):
        body = getattr(parent, field, [])
        if isinstance(body, list) and node in body:
            return body
    return [node]


def _exchanged(text: Text, one: ast.stmt, other: ast.stmt) -> Iterator[Edit]:
    """Yield the edit that exchanges two neighbours which each have lines of their own."""
    (start, middle), (begin, end) = text.span(one), text.span(other)
    between = text.bytes[middle:begin].decode()
    if isinstance(one, ast.FunctionDef | ast.ClassDef) or isinstance(other, ast.ClassDef):
        return
    now = text.bytes[begin:end].decode() + between + text.bytes[start:middle].decode()
    yield Edit(start, end, now, one.lineno, 1.7, Kind.LINE)


def _moved_out(text: Text, node: ast.stmt, body: list[ast.stmt]) -> Iterator[Edit]:
    """Yield the edits that move a body's last statement out of it, and the next one into it."""
    parent = text.parents[node]
    margin, outer = text.margin(node), text.margin(parent) if hasattr(parent, "lineno") else None
    blocks = ast.For | ast.While | ast.If | ast.With
    last = isinstance(parent, blocks) and body is parent.body and body[-1] is node
    if last and margin and outer is not None and len(body) > 1 and not _others(parent):
        start, end = text.span(node)
        moved = text.segment(node).replace("\n" + margin, "\n" + outer)
        yield Edit(start - len(margin), end, outer + moved, node.lineno, 1.6, Kind.LINE)
    if isinstance(node, ast.For | ast.While | ast.If | ast.With) and not _others(node):
        inner = text.margin(node.body[-1])
        number = body.index(node)
        if inner and margin is not None and number + 1 < len(body):
            following = body[number + 1]
            own = text.margin(following)
            if own == margin:
                start, end = text.span(following)
                moved = text.segment(following).replace("\n" + margin, "\n" + inner)
                yield Edit(start - len(own), end, inner + moved, following.lineno, 1.7, Kind.LINE)


def _others(node: ast.AST) -> bool:
    return bool(getattr(node, "orelse", None))
