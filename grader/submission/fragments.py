"""Fragments of a right program that may belong into an answer, in the answer's own names.

Two programs that do the same have other names and other steps. A fragment fits where the answer has
something that looks like it: the same calls, attributes and constants, whatever the variables are.
Which variable is which is read off the places where both do the same with one.
"""

from __future__ import annotations

import ast
import builtins
import copy
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, islice

_LARGEST = 40
"""Most nodes of a fragment: what is larger is no small change."""

_FEW = 8
"""Most fragments that are tried in one place."""

_ALIKE = 0.5
"""Of all that two expressions mention, at least this share is in both."""

_CLOSE = 0.6
"""Two expressions that are as alike as this have the same variables in the same places."""

_DIFFERENT = 9
"""Most that may differ between what goes and what comes."""

_EACH = 4
"""Most ways of naming a fragment's variables."""


def names_bound(node: ast.AST) -> set[str]:
    """Return the variables that code binds: arguments, targets, imports excepted."""
    found = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.arg):
            found.add(inner.arg)
        elif isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
            found.add(inner.id)
    return found


class Tree:
    """A program's tree, with what is asked of it again and again."""

    def __init__(self, root: ast.Module) -> None:
        self.root = root
        self.bound = names_bound(root)
        self._tokens: dict[ast.AST, Counter[str]] = {}
        self._named_tokens: dict[ast.AST, Counter[str]] = {}
        self._shapes: dict[ast.AST, str] = {}

    @cached_property
    def expressions(self) -> list[ast.expr]:
        """Expressions that say anything, each once."""
        found: dict[str, ast.expr] = {}
        called = {node.func for node in ast.walk(self.root) if isinstance(node, ast.Call)}
        for node in ast.walk(self.root):
            if not isinstance(node, ast.expr) or node in called:
                continue
            module = isinstance(node, ast.Name) and node.id in MODULES
            if module or not isinstance(getattr(node, "ctx", _LOAD), ast.Load):
                continue
            if size_of(node) <= _LARGEST and stands_alone(node):
                found.setdefault(ast.dump(node), node)
        return list(found.values())

    @cached_property
    def defined(self) -> set[str]:
        """The names of functions and classes."""
        kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
        return {node.name for node in ast.walk(self.root) if isinstance(node, kinds)}

    @cached_property
    def asked(self) -> set[str]:
        """The shapes of what its `if`s ask."""
        return {self.shape(node.test) for node in ast.walk(self.root) if isinstance(node, ast.If)}

    @cached_property
    def functions(self) -> dict[str, ast.FunctionDef]:
        """Functions by their names."""
        return {
            node.name: node for node in ast.walk(self.root) if isinstance(node, ast.FunctionDef)
        }

    @cached_property
    def bodies(self) -> list[list[ast.stmt]]:
        """The bodies of functions, loops and conditions."""
        found = []
        for node in ast.walk(self.root):
            for field in ("body", "orelse", "finalbody"):
                body = getattr(node, field, None)
                if isinstance(body, list) and body and not isinstance(node, ast.Module):
                    found.append([one for one in body if not _is_docstring(one)])
        return [body for body in found if body]

    @cached_property
    def shapes(self) -> set[str]:
        """The shapes of all statements."""
        return {self.shape(one) for body in self.bodies for one in body}

    def tokens(self, node: ast.AST) -> Counter[str]:
        """Return what a node mentions, with all its variables alike."""
        if node not in self._tokens:
            self._tokens[node] = Counter(_tokens(node, self.bound))
        return self._tokens[node]

    def named_tokens(self, node: ast.AST) -> Counter[str]:
        """Return what a node mentions, variables by their names."""
        if node not in self._named_tokens:
            self._named_tokens[node] = Counter(_tokens(node, set()))
        return self._named_tokens[node]

    def shape(self, node: ast.AST) -> str:
        """Return a node's text with all its variables alike."""
        if node not in self._shapes:
            self._shapes[node] = self.fresh_shape(node)
        return self._shapes[node]

    def fresh_shape(self, node: ast.AST) -> str:
        """Return a node's shape, whatever it was before."""
        return " ".join(_tokens(node, self.bound))


_LOAD = ast.Load()


def size_of(node: ast.AST) -> int:
    """Return how many nodes there are below, contexts and operators aside."""
    return sum(isinstance(inner, ast.expr | ast.stmt) for inner in ast.walk(node))


def stands_alone(node: ast.expr) -> bool:
    """Say whether an expression can be read without what is around it: not so a slice, a star."""
    if isinstance(node, ast.Tuple):
        return not any(isinstance(one, ast.Slice) for one in node.elts)
    return not isinstance(node, ast.Slice | ast.Starred | ast.FormattedValue | ast.JoinedStr)


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _tokens(node: ast.AST, variables: set[str]) -> Iterator[str]:
    """Yield what a node mentions, in order; a variable is a dot."""
    match node:
        case ast.Name(id=name):
            yield "·" if name in variables else name
            return
        case ast.arg():
            yield "·"
            return
        case ast.Constant(value=value):
            yield repr(value)
            return
        case ast.Raise(exc=ast.Call(func=kind)):  # its words are free
            yield "Raise"
            yield from _tokens(kind, variables)
            return
        case ast.Attribute(attr=attr):
            yield f".{attr}"
        case ast.keyword(arg=name):
            yield f"{name}="
        case ast.expr_context() | ast.Expr():
            pass
        case _:
            yield type(node).__name__
    for child in ast.iter_child_nodes(node):
        yield from _tokens(child, variables)


def asks_again(own: Tree, right: Tree, theirs: Iterable[ast.stmt]) -> bool:
    """Say whether a right program's statements ask what an answer asks elsewhere.

    What stands below would ask in vain, and seem to be mended.
    """
    nodes = (node for one in theirs for node in ast.walk(one))
    return any(right.shape(node.test) in own.asked for node in nodes if isinstance(node, ast.If))


def alike(one: Counter[str], other: Counter[str]) -> float:
    """Return what both mention as a share of all that they do: 1 is all, 0 nothing."""
    whole = one.total() + other.total()
    return 2 * (one & other).total() / whole if whole else 0.0


class Fragments:
    """What a right program has, for an answer whose tree is `own`."""

    def __init__(self, right: Tree, own: Tree) -> None:
        self._right = right
        self._own = own
        self._variables: dict[ast.AST, tuple[str, ...]] = {}
        self._made: dict[tuple[ast.AST, tuple[str, ...]], str] = {}
        self._counted: dict[str, Counter[str]] = {}
        self._runs: dict[tuple[ast.stmt, ...], ast.Module] = {}
        self.own, self.right = own, right
        given = _free(right.root) - right.defined  # the notebook's, whoever wrote the program
        self._known = own.bound | set(dir(builtins)) | _free(own.root) | MODULES | {_PLACE} | given

    # ── expressions

    def expressions(self, places: Sequence[ast.expr]) -> Iterator[tuple[ast.expr, str, float]]:
        """Yield an expression of the answer, what may take its place, and what that costs."""
        for place in places:
            if size_of(place) > _LARGEST:
                continue
            tokens = self._own.tokens(place)
            found = []
            for donor in self._right.expressions:
                theirs = self._right.tokens(donor)
                if alike(tokens, theirs) < _ALIKE:
                    continue
                for now in self._named(donor, place):
                    apart = self._apart(place, now)
                    if 0 < apart <= _DIFFERENT:
                        found.append((apart, now))
            for apart, now in sorted(set(found))[:_FEW]:
                yield place, now, 0.8 + 0.12 * apart
            yield from self._keywords(place)

    def _apart(self, place: ast.AST, now: str) -> int:
        """Return how many names, calls and constants differ between a place and its replacement."""
        if now not in self._counted:
            self._counted[now] = Counter(_tokens(ast.parse(now, mode="eval").body, set()))
        one, other = self._own.named_tokens(place), self._counted[now]
        return ((one - other) + (other - one)).total()

    def _keywords(self, place: ast.expr) -> Iterator[tuple[ast.expr, str, float]]:
        """Yield a call with a keyword that such calls have elsewhere, or with another value of one."""
        if not isinstance(place, ast.Call):
            return
        for keyword in self._given.get(_called(place.func), ()):
            if keyword.arg is None or size_of(keyword.value) > _LARGEST // 4:
                continue
            rest = [one for one in place.keywords if one.arg != keyword.arg]
            for value in self._named(keyword.value, place):
                given = ast.keyword(keyword.arg, ast.parse(value, mode="eval").body)
                whole = ast.Call(place.func, place.args, [*rest, given])
                yield place, ast.unparse(whole), 1.1

    @cached_property
    def _given(self) -> dict[str, list[ast.keyword]]:
        """The keywords that calls of a function have in both programs, by its last name."""
        found: dict[str, dict[str, ast.keyword]] = defaultdict(dict)
        for tree in (self._right, self._own):
            for node in tree.expressions:
                if isinstance(node, ast.Call):
                    for keyword in node.keywords:
                        found[_called(node.func)].setdefault(ast.dump(keyword), keyword)
        return {name: list(keywords.values()) for name, keywords in found.items()}

    def wrapped(self, place: ast.expr, alone: bool) -> Iterator[tuple[str, float]]:
        """Yield a place inside of a call that the right program makes and the answer does not.

        `alone` says that it is all of what is returned or assigned.
        """
        for whole, known in self._wrappers:
            for made in self._named(whole, place):
                now = made.replace(_PLACE, f"({ast.unparse(place)})")
                cost = 1.7 + 0.5 * known - 0.6 * alone
                yield ast.unparse(ast.parse(now, mode="eval")), cost

    @cached_property
    def _wrappers(self) -> list[tuple[ast.Call, bool]]:
        """The right program's calls around a place, and whether the answer has calls of that name."""
        mine = {_called(node.func) for node in self._own.expressions if isinstance(node, ast.Call)}
        found: dict[str, tuple[ast.Call, bool]] = {}
        for node in self._right.expressions:
            if not isinstance(node, ast.Call):
                continue
            if not _is_method(node) and (not node.args or isinstance(node.args[0], ast.Starred)):
                continue
            rest = [*node.args[0 if _is_method(node) else 1 :], *node.keywords]
            if sum(map(size_of, rest)) <= _LARGEST // 4:
                name = _called(node.func)
                key = f"{name} {[ast.dump(one) for one in rest]}"
                if key not in found:
                    found[key] = _around_a_place(node), name in mine
        return list(found.values())

    def methods(self, place: ast.expr) -> Iterator[str]:
        """Yield a call of a method with what the right program says to one of nearly that name."""
        if not isinstance(place, ast.Call) or not _is_method(place):
            return
        name, thing = place.func.attr, place.func.value  # type: ignore[attr-defined]
        for whole, _ in self._wrappers:
            if _is_method(whole) and _near_name(name, _called(whole.func)):
                for made in self._named(whole, whole):
                    yield made.replace(_PLACE, f"({ast.unparse(thing)})")

    def beside(self, test: ast.expr) -> Iterator[str]:
        """Yield a condition with another one that the right program asks for as well."""
        for one in self._conditions:
            for now in self._named(one, one):
                for word in ("and", "or"):
                    both = f"({ast.unparse(test)}) {word} ({now})"
                    yield ast.unparse(ast.parse(both, mode="eval"))

    @cached_property
    def _conditions(self) -> list[ast.expr]:
        """The conditions of the right program that the answer has none of, each a small one."""
        found: dict[str, ast.expr] = {}
        for node in ast.walk(self._right.root):
            tests: list[ast.expr] = []
            if isinstance(node, ast.If | ast.IfExp | ast.While):
                tests = [node.test]
            elif isinstance(node, ast.comprehension):
                tests = list(node.ifs)
            for test in tests:
                parts = test.values if isinstance(test, ast.BoolOp) else [test]
                for part in parts:
                    if size_of(part) <= _LARGEST // 4:
                        found.setdefault(self._right.shape(part), part)
        mine = {self._own.shape(node) for node in self._own.expressions}
        return [part for shape, part in found.items() if shape not in mine]

    def run_backwards(
        self, mistake: Tree, places: Sequence[ast.expr]
    ) -> Iterator[tuple[ast.expr, str, float]]:
        """Yield where the answer has what a known mistake has, with what stands there if it is right."""
        pairs = list(_differences(mistake.root, self._right.root))
        for wrong, right in pairs[:_FEW]:
            if not isinstance(wrong, ast.expr) or not isinstance(right, ast.expr):
                continue
            if isinstance(wrong, ast.Name):  # every name would look like it
                continue
            shape = mistake.shape(wrong)
            cost = 0.6 if size_of(wrong) > 1 else 1.3
            for place in places:
                if self._own.shape(place) == shape:
                    votes: dict[str, ast.expr] = {}
                    _unify(wrong, place, mistake.bound, votes)
                    for now in self._named(right, place, votes):
                        yield place, now, cost

    # ── statements

    def before(self, place: ast.stmt) -> Iterator[tuple[str, float]]:
        """Yield statements that stand before such a one and are missing here."""
        for donor, behind, _ in self._missing:
            if behind is not None and not self._hides(donor):
                near = self._near(behind, place)
                if near >= _ALIKE:
                    for now in self._named(donor, place):
                        yield now, 2.1 - 0.6 * near

    def behind(self, place: ast.stmt) -> Iterator[tuple[str, float]]:
        """Yield statements that stand behind such a one and are missing here."""
        for donor, _, above in self._missing:
            if above is not None and not self._hides(donor):
                near = self._near(above, place)
                if near >= _ALIKE:
                    for now in self._named(donor, place):
                        yield now, 2.2 - 0.6 * near

    def _hides(self, donor: ast.stmt) -> bool:
        """Say whether what is below would not run, or ask in vain: that seems to mend anything."""
        return isinstance(donor, ast.Return) or asks_again(self._own, self._right, [donor])

    def instead_of(self, place: ast.stmt) -> Iterator[tuple[str, float]]:
        """Yield statements that may stand where this one does."""
        if self._own.shape(place) in self._right.shapes or size_of(place) > _LARGEST:
            return
        found = []
        for donor, _, _ in self._missing:
            if isinstance(donor, ast.Return) and not isinstance(place, ast.Return):
                continue
            same = type(donor) is type(place) or isinstance(donor, ast.Raise)
            near = self._near(donor, place)
            if near >= _ALIKE / 2 or (same and size_of(place) < 12):
                found += [(2.4 - near, now) for now in self._named(donor, place)]
        for cost, now in sorted(set(found))[:_FEW]:
            yield now, cost

    def conditions(self, place: ast.stmt) -> Iterator[tuple[str, float]]:
        """Yield conditions under which such a statement stands."""
        tests = [
            (node.test, node.body[0])
            for node in ast.walk(self._right.root)
            if isinstance(node, ast.If) and not node.orelse
        ]
        for test, body in tests:
            if self._near(body, place) >= _ALIKE / 2:
                for now in self._named(test, place):
                    yield now, 2.0

    def _near(self, one: ast.stmt, other: ast.stmt) -> float:
        return alike(self._right.tokens(one), self._own.tokens(other))

    @cached_property
    def _missing(self) -> list[tuple[ast.stmt, ast.stmt | None, ast.stmt | None]]:
        """The statements that the answer has none of, with the next one and the one before."""
        found = []
        for body in self._right.bodies:
            for number, one in enumerate(body):
                if isinstance(one, ast.FunctionDef | ast.ClassDef | ast.Pass):
                    continue
                if size_of(one) > _LARGEST or self._right.shape(one) in self._own.shapes:
                    continue
                behind = body[number + 1] if number + 1 < len(body) else None
                found.append((one, behind, body[number - 1] if number else None))
        return found

    def in_place_of(self, own: Sequence[ast.stmt], right: Sequence[ast.stmt]) -> Iterator[str]:
        """Yield a right program's statements for those of the answer that stand there."""
        run = self._run(tuple(right))
        votes: dict[str, ast.expr] = {}
        for mine, theirs in zip(own, right, strict=False):
            _unify(theirs, mine, self._right.bound, votes)
        agreed = {name: value for name, value in votes.items() if isinstance(value, ast.Name)}
        free = self._free_of(run)
        said = self._choices(run, free, agreed)
        if _is_guard(right):  # it shares no more than its names with what the answer has
            others = sorted(self._own.bound)
            said = [list(dict.fromkeys([*some, *others])) for some in said]
        if all(said):
            most = _GUARD if _is_guard(right) else 2 * _EACH
            yield from self._made_of(run, free, _likeliest(said, most))

    def _run(self, statements: tuple[ast.stmt, ...]) -> ast.Module:
        """Return statements as a program, the same for the same ones."""
        if statements not in self._runs:
            self._runs[statements] = ast.Module(list(statements), [])
        return self._runs[statements]

    def instead(self, own: ast.expr, right: ast.expr) -> Iterator[tuple[str, int]]:
        """Yield a right program's expression for one of the answer, and how much differs."""
        for now in self._named(right, own):
            yield now, self._apart(own, now)

    # ── names

    def _named(
        self, donor: ast.AST, place: ast.AST, votes: Mapping[str, ast.expr] | None = None
    ) -> Iterator[str]:
        """Yield a fragment with the answer's names in place of its own, the likeliest first."""
        free = self._free_of(donor)
        agreed = dict(votes or {})
        if isinstance(donor, ast.expr):
            _unify(donor, place, self._right.bound, agreed)
        said = self._choices(donor, free, agreed)
        if all(said):
            yield from self._made_of(donor, free, _likeliest(said, _EACH))

    def _choices(
        self, donor: ast.AST, free: Sequence[str], agreed: Mapping[str, ast.expr]
    ) -> list[list[str]]:
        """Return for each variable of a fragment what it may be in the answer, the likeliest first."""
        new = _stored(donor) - self._own.bound if isinstance(donor, ast.Module) else set()
        choices = []
        for name in free:
            said = [name] if name in new else []
            said += [ast.unparse(agreed[name])] if name in agreed else []
            said += self._same.get(name, [])[:2]
            if name in self._own.bound:
                said.append(name)
            choices.append(list(dict.fromkeys(said)))
        return choices

    def _made_of(
        self, donor: ast.AST, free: Sequence[str], ways: Iterable[tuple[str, ...]]
    ) -> Iterator[str]:
        for chosen in ways:
            key = donor, chosen
            if key not in self._made:
                self._made[key] = self._renamed(donor, dict(zip(free, chosen, strict=True)))
            if self._made[key]:
                yield self._made[key]

    def _free_of(self, donor: ast.AST) -> tuple[str, ...]:
        """Return the variables of a fragment that it does not bind itself."""
        if donor not in self._variables:
            nodes = list(ast.walk(donor))
            inner = names_bound(donor)
            if isinstance(donor, ast.stmt | ast.Module):
                inner -= self._own.bound | set(self._same)
            read = dict.fromkeys(node.id for node in nodes if isinstance(node, ast.Name))
            self._variables[donor] = tuple(
                name for name in read if name in self._right.bound and name not in inner
            )
        return self._variables[donor]

    def _renamed(self, donor: ast.AST, names: dict[str, str]) -> str:
        """Return a fragment's text with other names; nothing where the answer lacks one."""
        made = donor
        if any(name != now for name, now in names.items()):
            made = ast.fix_missing_locations(_Renamed(names).visit(copy.deepcopy(donor)))
        return ast.unparse(made) if _free(made) <= self._known else ""

    @cached_property
    def _same(self) -> dict[str, list[str]]:
        """For each variable of the right program, those of the answer that are used like it."""
        votes: dict[str, Counter[str]] = defaultdict(Counter)
        for name, theirs in self._right.functions.items():
            ours = self._own.functions.get(name)
            if ours is not None:
                for one, other in zip(_arguments(theirs), _arguments(ours), strict=False):
                    votes[one][other] += 8
        for name in self._right.bound & self._own.bound:
            votes[name][name] += 2
        pairs: list[tuple[float, ast.AST, ast.AST]] = []
        theirs_all: list[ast.AST] = [*self._right.expressions, *chain(*self._right.bodies)]
        ours_all: list[ast.AST] = [*self._own.expressions, *chain(*self._own.bodies)]
        for donor in theirs_all:
            said_there = self._right.tokens(donor)
            if said_there.total() < 3:
                continue
            for place in ours_all:
                near = alike(said_there, self._own.tokens(place))
                if near >= _CLOSE:
                    pairs.append((near, donor, place))
        for near, donor, place in pairs:
            agreed: dict[str, ast.expr] = {}
            _unify(donor, place, self._right.bound, agreed)
            for name, said in agreed.items():
                if isinstance(said, ast.Name) and said.id in self._own.bound:
                    votes[name][said.id] += near  # type: ignore[assignment]
        return {name: [one for one, _ in said.most_common(3)] for name, said in votes.items()}


_GUARD = 40
"""Most ways of naming the variables of a condition under which an error is raised."""


def _is_guard(run: Sequence[ast.stmt]) -> bool:
    """Say whether statements are one condition under which an error is raised."""
    one = run[0]
    return len(run) == 1 and isinstance(one, ast.If) and isinstance(one.body[0], ast.Raise)


def _stored(node: ast.AST) -> set[str]:
    """Return the variables that statements assign."""
    names = (inner for inner in ast.walk(node) if isinstance(inner, ast.Name))
    return {inner.id for inner in names if isinstance(inner.ctx, ast.Store)}


def _likeliest(choices: Sequence[Sequence[str]], most: int) -> Iterator[tuple[str, ...]]:
    """Yield one of each, those first whose places among the choices add up to least."""
    totals = range(sum(len(said) - 1 for said in choices) + 1)
    yield from islice(chain.from_iterable(_adding_up(choices, total) for total in totals), most)


def _adding_up(choices: Sequence[Sequence[str]], total: int) -> Iterator[tuple[str, ...]]:
    """Yield one of each such that their places add up to a total."""
    if not choices:
        if total == 0:
            yield ()
        return
    first, *rest = choices
    for place, name in enumerate(first[: total + 1]):
        for others in _adding_up(rest, total - place):
            yield name, *others


_PLACE = "place__"
"""Stands for the place in a call that is put around it."""


def _around_a_place(call: ast.Call) -> ast.Call:
    """Return a call with a place where its object stands, or its first argument."""
    whole = copy.deepcopy(call)
    if _is_method(whole):
        whole.func.value = ast.Name(_PLACE, _LOAD)  # type: ignore[attr-defined]
    else:
        whole.args[0] = ast.Name(_PLACE, _LOAD)
    return whole


def is_module(node: ast.expr) -> bool:
    """Say whether a name, dotted or not, is that of a module that answers use."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id in MODULES


def _near_name(one: str, other: str) -> bool:
    """Say whether one name is within the other, such as `max` in `amax`, or `add` in `add_`."""
    return one in other or other in one


def _is_method(call: ast.Call) -> bool:
    """Say whether a call is one of an object's method: not so a module's function."""
    return isinstance(call.func, ast.Attribute) and not is_module(call.func)


MODULES = {"torch", "nn", "F", "math", "dist", "os", "sys", "warnings"}


class _Renamed(ast.NodeTransformer):
    """Puts the answer's expressions where a fragment has variables."""

    def __init__(self, names: dict[str, str]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.AST:
        now = self._names.get(node.id)
        if now is None or now == node.id:
            return node
        if isinstance(node.ctx, ast.Load):
            return ast.parse(now, mode="eval").body
        return ast.Name(now, node.ctx) if now.isidentifier() else node


def _free(node: ast.AST) -> set[str]:
    """Return the names that code reads and does not bind."""
    read = {
        inner.id
        for inner in ast.walk(node)
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load)
    }
    return read - names_bound(node)


def _arguments(function: ast.FunctionDef) -> list[str]:
    given = function.args
    return [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]


def _called(function: ast.expr) -> str:
    match function:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


_VALUE = 6
"""Most nodes of what may stand for a variable."""


def _unify(donor: ast.AST, place: ast.AST, variables: set[str], found: dict[str, ast.expr]) -> None:
    """Note what the answer has where a fragment has a variable, as far as both are alike."""
    if isinstance(donor, ast.Name) and donor.id in variables:
        if isinstance(place, ast.expr) and stands_alone(place) and size_of(place) <= _VALUE:
            found.setdefault(donor.id, place)
        return
    if type(donor) is not type(place):
        return
    for field in donor._fields:
        one, other = getattr(donor, field, None), getattr(place, field, None)
        if isinstance(one, ast.AST) and isinstance(other, ast.AST):
            _unify(one, other, variables, found)
        elif isinstance(one, list) and isinstance(other, list):
            for first, second in zip(one, other, strict=False):
                if isinstance(first, ast.AST) and isinstance(second, ast.AST):
                    _unify(first, second, variables, found)


def _differences(one: ast.AST, other: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Yield the smallest expressions and statements that differ between two programs."""
    if ast.dump(one) == ast.dump(other):
        return
    inner: list[tuple[ast.AST, ast.AST]] = []
    if type(one) is type(other):
        for field in one._fields:
            first, second = getattr(one, field, None), getattr(other, field, None)
            if isinstance(first, ast.AST) and isinstance(second, ast.AST):
                inner += _differences(first, second)
            elif isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
                for here, there in zip(first, second, strict=True):
                    if isinstance(here, ast.AST) and isinstance(there, ast.AST):
                        inner += _differences(here, there)
            elif first != second:
                yield one, other
                return
    usable = [pair for pair in inner if all(isinstance(part, ast.expr) for part in pair)]
    if usable:
        yield from usable
    else:
        yield one, other
    if usable and not isinstance(one, ast.Module) and isinstance(one, ast.expr):
        yield one, other  # the mistake in its surroundings, too
