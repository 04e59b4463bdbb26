"""Variants of a student's answer: its own text with one small thing changed, the likely ones first.

What is changed: what the trial of graders changes in a reference (`mutants`), what people forget or
write too much, and what right programs have where the answer has something else (`fragments`). Text
goes in and text comes out; nothing is executed here.
"""

from __future__ import annotations

import ast
import copy
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum, auto
from itertools import pairwise

from grader.submission.aligned import Part, differences
from grader.submission.fragments import (
    MODULES,
    Fragments,
    Tree,
    is_module,
    names_bound,
    size_of,
    stands_alone,
)
from grader.submission.mutants import changes
from grader.submission.program import lines_of


@dataclass(frozen=True)
class Variant:
    """A changed answer. `line` is the first line that differs, `was` and `now` what stands there.

    `part` is the smallest part of the line that was replaced; empty where something was added.
    """

    line: int
    part: str
    was: str
    now: str
    source: str


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


def variants(
    source: str,
    right: Sequence[str] = (),
    wrong: Sequence[tuple[str, str]] = (),
    suspicion: Mapping[int, float] | None = None,
) -> Iterator[Variant]:
    """Yield variants of a program, each once, the likeliest first.

    `right` are other programs that do what this one should; `wrong` pairs of a known mistake and the
    right program it is an edit of. `suspicion` says of each line from 0 to 1 how much speaks for it;
    lines that are not in it did not run. None where nothing is known of lines. A program that does
    not parse has no variants.
    """
    source = "\n".join(lines_of(source))
    tree = _parsed(source)
    if tree is None:
        return
    text = Text(source, tree)
    seen: set[_Key] = set()
    apply = _Apply(text)
    edits = [*_small(text, right), *_foreign(text, right, wrong)]
    nearer = _Nearer(text, right)
    ranks = [(_rank(edit, suspicion) - nearer(edit), edit) for edit in edits]
    for edit in _by_turns(ranks):
        made = apply(edit)
        if made is None:
            continue
        changed, key = made
        if key not in seen:
            seen.add(key)
            yield _variant(text, edit, changed)


_TURNS = {
    Kind.EXPRESSION: 0.7,
    Kind.PLACE: 0.8,
    Kind.SMALL: 1.0,
    Kind.LINE: 1.0,
    Kind.STATEMENT: 1.2,
    Kind.AROUND: 1.5,
}
"""How far one edit of a kind moves the next one of it back: the less, the more of them come early."""


def _by_turns(ranks: Iterable[tuple[float, Edit]]) -> list[Edit]:
    """Return edits of all kinds by turns, those of a kind by their ranks.

    What one kind's costs are worth beside another's, nobody knows; and some kinds have thousands.
    """
    turns: Counter[Kind] = Counter()
    placed: dict[tuple[int, int, str], tuple[float, float, Edit]] = {}
    for rank, edit in sorted(ranks, key=lambda pair: pair[0]):
        key = edit.start, edit.end, edit.now
        if key not in placed:
            turns[edit.kind] += 1
            placed[key] = turns[edit.kind] * _TURNS[edit.kind], rank, edit
    return [edit for _, _, edit in sorted(placed.values(), key=lambda one: one[:2])]


_NOT_RUN = 1.5
"""What it costs an edit that its line did not run where a check failed."""


def _rank(edit: Edit, suspicion: Mapping[int, float] | None) -> float:
    if suspicion is None:
        return edit.cost
    if edit.line not in suspicion:
        return edit.cost + _NOT_RUN
    return edit.cost - suspicion[edit.line]


_TELLING = 3
"""Fewest nodes of an expression that tells whose it is: a name alone is anybody's."""

_NEARER = 0.35
"""What it is worth that one more expression around a place is such as right programs have."""


class _Nearer:
    """Says how much more like right programs an answer is with an edit."""

    def __init__(self, text: Text, right: Iterable[str]) -> None:
        self._text = text
        self._own = Tree(text.tree)
        self._known: set[str] = set()
        for source in right:
            parsed = _parsed(source)
            if parsed is not None:
                tree = Tree(parsed)
                self._known |= {
                    tree.shape(node) for node in tree.expressions if size_of(node) >= _TELLING
                }

    def __call__(self, edit: Edit) -> float:
        if edit.place is None or edit.place not in self._text.parents:
            return 0.0
        try:
            now: ast.expr = ast.parse(edit.now, mode="eval").body
        except SyntaxError:
            return 0.0
        around = self._around(edit.place)
        before = sum(self._own.shape(node) in self._known for node in around)
        parent = self._text.parents[edit.place]
        with _in_place(parent, edit.place, now):
            nodes = [now, *around[1:]]
            after = sum(self._own.fresh_shape(node) in self._known for node in nodes)
        return max(-1.0, min(1.4, _NEARER * (after - before)))

    def _around(self, node: ast.AST) -> list[ast.AST]:
        """Return a node and the expressions that it is a part of."""
        found: list[ast.AST] = []
        while isinstance(node, ast.expr | ast.keyword | ast.comprehension):
            found.append(node)
            node = self._text.parents[node]
        return found


@contextmanager
def _in_place(parent: ast.AST, old: ast.AST, new: ast.AST) -> Iterator[None]:
    """Have another node in one's place for a while."""
    for field, value in ast.iter_fields(parent):
        if value is old:
            setattr(parent, field, new)
            try:
                yield
            finally:
                setattr(parent, field, old)
            return
        if isinstance(value, list) and any(one is old for one in value):
            number = next(number for number, one in enumerate(value) if one is old)
            value[number] = new
            try:
                yield
            finally:
                value[number] = old
            return
    yield


def _parsed(source: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a variant may say `1()` or `x is 2`
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


_Key = tuple[int, str]
"""What tells a changed program from others: where the part that is another starts, and its tree."""


class _Apply:
    """Makes an edit. Of a program only the part around the edit is read again: a whole takes 10 ms."""

    def __init__(self, text: Text) -> None:
        self._text = text
        self._parts = [(*text.span(part), part) for part in _parts(text)]
        self._parts.sort(key=lambda one: one[1] - one[0])
        self._next = _next_places(text)
        self._dumps: dict[ast.AST, str] = {}

    def __call__(self, edit: Edit) -> tuple[str, _Key] | None:
        """Return the changed program and its key; None if it is none, or the same."""
        now, key = self._put_in(edit) if edit.start == edit.end else self._put_for(edit)
        if key is None:
            return None
        before, after = self._text.bytes[: edit.start], self._text.bytes[edit.end :]
        return (before + now.encode() + after).decode(), key

    def _put_in(self, edit: Edit) -> tuple[str, _Key | None]:
        """Return statements that are put in, and the key: the same before one and behind the last."""
        behind = edit.now.startswith("\n")
        said = edit.now.strip()
        margin = edit.now[1 : edit.now.index(said)] if behind else edit.now.rpartition("\n")[2]
        tree = _parsed(f"if 1:\n{margin}{said}")
        place = self._next.get(edit.start, edit.start)
        return edit.now, None if tree is None else (place, f"{margin}+ {ast.dump(tree)}")

    def _put_for(self, edit: Edit) -> tuple[str, _Key | None]:
        """Return what takes another's place, in brackets where they are needed, and the key."""
        start, end, part = self._part(edit)
        forms = [edit.now] if edit.place is None else [edit.now, f"({edit.now})"]
        made = []
        for now in forms:
            source = self._text.bytes
            inner = source[start : edit.start] + now.encode() + source[edit.end : end]
            tree = _parsed(self._alone(inner.decode(), part))
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
            tree = _parsed(self._alone(self._text.bytes[start:end].decode(), part))
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


_SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Expr, ast.Raise, ast.Assert)


def _parts(text: Text) -> Iterator[ast.stmt | ast.expr]:
    """Yield what can be read alone: statements, and the expressions of those with a body."""
    for node in ast.walk(text.tree):
        if isinstance(node, ast.stmt) and not text.segment(node).startswith("elif"):
            yield node
        if isinstance(node, ast.If | ast.While):
            yield node.test
        elif isinstance(node, ast.For):
            yield node.iter


def _variant(text: Text, edit: Edit, changed: str) -> Variant:
    before, after = lines_of(text.source), lines_of(changed)
    part = text.bytes[edit.start : edit.end].decode()
    last = edit.line + part.count("\n")
    added = len(after) - len(before)
    was = "\n".join(before[edit.line - 1 : last])
    now = "\n".join(after[edit.line - 1 : last + added])
    return Variant(edit.line, part, was, now, changed)


# ── what is often wrong, whatever the exercise


def _small(text: Text, right: Iterable[str]) -> Iterator[Edit]:
    """Yield edits that need no other program, but for what it mentions."""
    used = {
        node.attr
        for source in right
        for node in ast.walk(_parsed(source) or ast.Module([], []))
        if isinstance(node, ast.Attribute)
    }
    for node in _expressions(text):
        for now, cost in _instead(text, node, used):
            start, end = text.span(node)
            yield Edit(start, end, now, node.lineno, cost, Kind.SMALL, node)
    for statement in _statements(text):
        yield from _of_statement(text, statement)


def _expressions(text: Text) -> Iterator[ast.expr]:
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


def _statements(text: Text) -> Iterator[ast.stmt]:
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
        yield Edit(*where, f"not {_in_brackets(node.test)}", node.lineno, 1.6, Kind.LINE, node.test)
        if isinstance(node, ast.If):
            yield Edit(*where, "True", node.lineno, 1.6, Kind.LINE)
            yield Edit(*where, "False", node.lineno, 1.8, Kind.LINE)
    body = _body_of(text, node)
    number = body.index(node)
    if number + 1 < len(body):
        yield from _exchanged(text, node, body[number + 1])
    yield from _moved_out(text, node, body)


def _without_a_method(text: Text, node: ast.stmt) -> Iterator[str]:
    """Yield a statement without a method that it calls in several places, such as `.float()`."""
    if not isinstance(node, _SIMPLE):
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


def _in_brackets(node: ast.expr) -> str:
    simple = isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript)
    return ast.unparse(node) if simple else f"({ast.unparse(node)})"


def _body_of(text: Text, node: ast.stmt) -> list[ast.stmt]:
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


# ── what right programs have


def _foreign(text: Text, right: Sequence[str], wrong: Sequence[tuple[str, str]]) -> Iterator[Edit]:
    """Yield edits that bring in what right programs have, in the names of this one."""
    own = Tree(text.tree)
    mine = [node for node in _expressions(text) if stands_alone(node)]
    for source in right:
        tree = _parsed(source)
        if tree is None:
            continue
        fragments = Fragments(Tree(tree), own)
        for node, now, cost in fragments.expressions(mine):
            yield Edit(*text.span(node), now, node.lineno, cost, Kind.EXPRESSION, node)
        for node in mine:
            for now in fragments.methods(node):
                yield Edit(*text.span(node), now, node.lineno, 1.5, Kind.AROUND, node)
            if _is_condition(text, node):
                for now in fragments.beside(node):
                    yield Edit(*text.span(node), now, node.lineno, 1.8, Kind.AROUND, node)
            parent = text.parents.get(node)
            alone = isinstance(parent, _VALUES)
            given = isinstance(parent, ast.Call | ast.keyword)
            if (not alone and not given) or isinstance(node, ast.Constant):
                continue
            if node is not getattr(parent, "func", None):
                for now, cost in fragments.wrapped(node, alone):
                    yield Edit(*text.span(node), now, node.lineno, cost, Kind.AROUND, node)
        for place in _statements(text):
            yield from _of_others(text, place, fragments)
        yield from _side_by_side(text, fragments)
    for mistake, instead in wrong:
        trees = _parsed(mistake), _parsed(instead)
        if trees[0] is not None and trees[1] is not None:
            fragments = Fragments(Tree(trees[1]), own)
            for node, now, cost in fragments.run_backwards(Tree(trees[0]), mine):
                yield Edit(*text.span(node), now, node.lineno, cost, Kind.EXPRESSION, node)


def _is_condition(text: Text, node: ast.expr) -> bool:
    """Say whether something is done or not as this expression says."""
    parent = text.parents[node]
    if isinstance(parent, ast.comprehension):
        return node in parent.ifs
    return getattr(parent, "test", None) is node


_VALUES = (ast.Return, ast.Assign, ast.Yield, ast.For, ast.comprehension)


def _of_others(text: Text, place: ast.stmt, fragments: Fragments) -> Iterator[Edit]:
    """Yield the edits that put a statement of another program before, behind, or in place of one."""
    start, end = text.span(place)
    line, margin, kind = place.lineno, text.margin(place), Kind.STATEMENT
    for statement, cost in fragments.instead_of(place):
        if not _hides(text, statement, place, [place]):
            yield Edit(start, end, _indented(statement, margin), line, cost, kind)
    if margin is None:
        return
    for statement, cost in fragments.before(place):
        if not _hides(text, statement, place):
            now = f"{_indented(statement, margin)}\n{margin}"
            yield Edit(start, start, now, line, cost, kind)
    for statement, cost in fragments.behind(place):
        if not _hides(text, statement, place, behind=True):
            yield Edit(end, end, f"\n{margin}{_indented(statement, margin)}", line, cost, kind)
    if not isinstance(place, ast.FunctionDef | ast.ClassDef | ast.Return):
        body = text.segment(place).replace("\n", "\n    ")
        for condition, cost in fragments.conditions(place):
            now = f"if {condition}:\n{margin}    {body}"
            yield Edit(start, end, now, line, cost, kind)


def _hides(
    text: Text, now: str, place: ast.stmt, gone: Sequence[ast.stmt] = (), behind: bool = False
) -> bool:
    """Say whether statements assign anew what one above has assigned, without asking what it is.

    That hides what is wrong above, and would name another line. `gone` are those that are replaced.
    """
    body = _body_of(text, place)
    above = body[: body.index(place) + behind]
    around = text.parents[place]
    while isinstance(around, ast.If | ast.With | ast.Try):  # not a loop: that begins again
        outer = _body_of(text, around)
        above = [*outer[: outer.index(around)], *above]
        around = text.parents[around]
    assigned = names_bound(ast.Module(above, [])) - names_bound(ast.Module(list(gone), []))
    for node in ast.walk(_parsed(now) or ast.Module([], [])):
        if isinstance(node, ast.Assign):
            read = {one.id for one in ast.walk(node.value) if isinstance(one, ast.Name)}
            if names_bound(node) & assigned - read:
                return True
    return False


def _side_by_side(text: Text, fragments: Fragments) -> Iterator[Edit]:
    """Yield the edits that make of the answer what a right program is, each in one place."""
    for one in differences(fragments.own, fragments.right):
        apart = 0.9 * (1 - one.alike)
        if isinstance(one, Part):
            for number, now in enumerate(fragments.in_place_of(one.own, one.right)):
                cost = 0.9 + apart + 0.15 * (len(one.own) + len(one.right)) + 0.03 * number
                yield from _part_for_part(text, one, now, cost)
        elif stands_alone(one.own) and stands_alone(one.right):
            for now, differs in fragments.instead(one.own, one.right):
                cost = 0.5 + apart + 0.05 * min(differs, 12)
                yield Edit(*text.span(one.own), now, one.own.lineno, cost, Kind.PLACE, one.own)


def _part_for_part(text: Text, part: Part, now: str, cost: float) -> Iterator[Edit]:
    place = part.own[0] if part.own else part.before or part.behind
    margin = text.margin(place) if place is not None else None
    behind = not part.own and part.before is None
    if place is None or margin is None or _hides(text, now, place, part.own, behind):
        return
    start, end = text.span(place)
    put = _indented(now, margin)
    if part.own:
        yield Edit(start, text.span(part.own[-1])[1], put, place.lineno, cost, Kind.PLACE)
    elif part.before:
        yield Edit(start, start, f"{put}\n{margin}", place.lineno, cost, Kind.PLACE)
    else:
        yield Edit(end, end, f"\n{margin}{put}", place.lineno, cost, Kind.PLACE)


def _indented(statement: str, margin: str | None) -> str:
    return statement.replace("\n", "\n" + (margin or ""))
