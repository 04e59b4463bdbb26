"""Mutants of a program: the same program with one small thing changed.

Of a reference solution they try the graders: a check that lets a mutant pass does not test what was
changed there. Of a student's answer they look for the line that is wrong (`variants`). The libraries
that make mutants work on the files of a package and its test command; here the program is a notebook
cell and the test an interview, so the mutator is our own: one node of the syntax tree at a time.
"""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Mutant:
    """A changed program. `was` and `now` are the changed line before and after.

    `nth` counts the mutants of a program that change a line of that text in that way.
    """

    line: int
    was: str
    now: str
    source: str
    nth: int = 1

    @property
    def id(self) -> str:
        """What an author lists an equivalent mutant by: the change, not the line's number."""
        change = f"{self.was} => {self.now}"
        return change if self.nth == 1 else f"{change} ({self.nth})"


_BINARY: dict[type[ast.operator], tuple[type[ast.operator], ...]] = {
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div,),
    ast.Div: (ast.Mult,),
    ast.FloorDiv: (ast.Mult,),
    ast.Mod: (ast.Mult,),
    ast.Pow: (ast.Mult,),
    ast.LShift: (ast.RShift,),
    ast.RShift: (ast.LShift,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
    ast.BitXor: (ast.BitOr,),
    ast.MatMult: (ast.Mult,),
}
_COMPARE: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}


def mutants(source: str) -> list[Mutant]:
    """Return every mutant of a program, in the order of its lines, each change once."""
    tree = ast.parse(source)
    before = ast.unparse(tree).splitlines()
    found: dict[str, Mutant] = {}
    for mutated in _mutated_trees(tree):
        text = ast.unparse(ast.fix_missing_locations(mutated))
        change = _change(before, text.splitlines())
        if change is not None and text not in found:
            found[text] = Mutant(*change, text)
    seen: Counter[str] = Counter()
    numbered = []
    for mutant in sorted(found.values(), key=lambda mutant: mutant.line):
        seen[mutant.id] += 1
        numbered.append(replace(mutant, nth=seen[mutant.id]))
    return numbered


def _change(before: list[str], after: list[str]) -> tuple[int, str, str] | None:
    """Return the first line that differs, before and after."""
    for number, line in enumerate(before):
        other = after[number] if number < len(after) else ""
        if line != other:
            return number + 1, line.strip(), other.strip()
    return None


def _mutated_trees(tree: ast.Module) -> Iterator[ast.Module]:
    count = sum(1 for _ in ast.walk(tree))
    for index in range(count):
        node = _node(tree, index)
        for number in range(len(changes(node))):
            changed = copy.deepcopy(tree)
            target = _node(changed, index)
            changes(target)[number]()
            yield changed
        yield from _without_statements(tree, index)


def _node(tree: ast.AST, index: int) -> ast.AST:
    for position, node in enumerate(ast.walk(tree)):
        if position == index:
            return node
    raise IndexError(index)


def changes(node: ast.AST) -> list[Change]:
    """Return what may be changed at one node; called, a change is made in place."""
    if isinstance(node, ast.BinOp | ast.AugAssign):
        return [Change(node, "op", other()) for other in _BINARY.get(type(node.op), ())]
    if isinstance(node, ast.Compare):
        return [
            Change(node, "ops", [other(), *node.ops[1:]])
            for other in _COMPARE.get(type(node.ops[0]), ())
        ]
    if isinstance(node, ast.BoolOp):
        return [Change(node, "op", ast.Or() if isinstance(node.op, ast.And) else ast.And())]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not | ast.Invert):
        return [Change(node, "op", ast.UAdd() if isinstance(node.op, ast.USub) else ast.USub())]
    if isinstance(node, ast.IfExp | ast.If | ast.While):
        return [Change(node, "test", ast.UnaryOp(ast.Not(), node.test))]
    if isinstance(node, ast.Constant):
        return [Change(node, "value", value) for value in _other_values(node.value)]
    return []


@dataclass(frozen=True)
class Change:
    """Another value for one field of a node."""

    node: ast.AST
    field: str
    value: object

    def __call__(self) -> None:
        """Make the change."""
        setattr(self.node, self.field, self.value)


def _other_values(value: object) -> list[object]:
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value - 1]
    if isinstance(value, float):
        return [value * 2 if value else 1.0, -value if value else -1.0]
    return []  # text is mostly a message or a docstring


def _without_statements(tree: ast.Module, index: int) -> Iterator[ast.Module]:
    """Yield the program without one statement of a body, where one is left."""
    node = _node(tree, index)
    for field in ("body", "orelse"):
        body = getattr(node, field, None)
        if not isinstance(body, list) or isinstance(node, ast.Module):
            continue
        for number, statement in enumerate(body):
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                continue  # a docstring
            changed = copy.deepcopy(tree)
            rest = getattr(_node(changed, index), field)
            rest[number : number + 1] = [] if len(rest) > 1 else [ast.Pass()]
            yield changed
