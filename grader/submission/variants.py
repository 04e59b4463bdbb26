"""Variants of a student's answer: its own text with one small thing changed, the likely ones first.

What is changed: what the trial of graders changes in a reference and what people forget or write too
much (`small_changes`), and what right programs have where the answer has something else, wherever it
looks alike (`fragments`) or stands in the same place (`aligned`). Text goes in and text comes out;
nothing is executed here.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from grader.submission.aligned import Part, differences
from grader.submission.edits import Apply, Edit, Key, Kind, Text, parsed
from grader.submission.fragments import Fragments, Tree, names_bound, size_of, stands_alone
from grader.submission.program import lines_of
from grader.submission.small_changes import body_of, expressions, small_changes, statements


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
    tree = parsed(source)
    if tree is None:
        return
    text = Text(source, tree)
    seen: set[Key] = set()
    apply = Apply(text)
    edits = [*small_changes(text, right), *_foreign(text, right, wrong)]
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
            root = parsed(source)
            if root is not None:
                tree = Tree(root)
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


def _variant(text: Text, edit: Edit, changed: str) -> Variant:
    before, after = lines_of(text.source), lines_of(changed)
    part = text.bytes[edit.start : edit.end].decode()
    last = edit.line + part.count("\n")
    added = len(after) - len(before)
    was = "\n".join(before[edit.line - 1 : last])
    now = "\n".join(after[edit.line - 1 : last + added])
    return Variant(edit.line, part, was, now, changed)


# ── what right programs have


def _foreign(text: Text, right: Sequence[str], wrong: Sequence[tuple[str, str]]) -> Iterator[Edit]:
    """Yield edits that bring in what right programs have, in the names of this one."""
    own = Tree(text.tree)
    mine = [node for node in expressions(text) if stands_alone(node)]
    for source in right:
        tree = parsed(source)
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
        for place in statements(text):
            yield from _of_others(text, place, fragments)
        yield from _side_by_side(text, fragments)
    for mistake, instead in wrong:
        trees = parsed(mistake), parsed(instead)
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
    body = body_of(text, place)
    above = body[: body.index(place) + behind]
    around = text.parents[place]
    while isinstance(around, ast.If | ast.With | ast.Try):  # not a loop: that begins again
        outer = body_of(text, around)
        above = [*outer[: outer.index(around)], *above]
        around = text.parents[around]
    assigned = names_bound(ast.Module(above, [])) - names_bound(ast.Module(list(gone), []))
    for node in ast.walk(parsed(now) or ast.Module([], [])):
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
