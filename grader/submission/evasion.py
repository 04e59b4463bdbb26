"""Finds in source text what is a reason for a person to look: means by which code evades being watched.

What these lines do may be harmless, so they block nothing and cost nothing. But what watches code
while it runs can be left or switched off from inside; the text that is handed in can not.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from grader.course.rules import Rule, RuleKind
from grader.submission.names import bound_by, parse, used_by
from grader.submission.program import Program, lines_of
from grader.submission.reasons import (
    ATTRIBUTES,
    BUILT_INS,
    DOTTED,
    FETCHES_MODULES,
    FRONT,
    HARMLESS,
    MAKES_TEXT,
    MODULES,
    NAMESPACES,
    READ_OF_CODE,
    WATCHING_METHODS,
    Reason,
)


@dataclass(frozen=True)
class Found:
    """A reason to look, and the line that gives it."""

    reason: Reason
    line: str

    def __str__(self) -> str:
        """Return it in words, with the line as Markdown."""
        line = self.line.replace("`", "'")
        return f"{self.reason.value}: `{line if len(line) <= LONGEST else line[:LONGEST] + '…'}`."


LONGEST = 200
"""Letters of a line that are quoted."""


def evasions(program: Program, rules: Iterable[Rule] = ()) -> tuple[Found, ...]:
    """Return the reasons to look at a program, in the order of its text, each reason once.

    All the student's text that is loaded counts, with what acts while it is loaded. Text that does
    not parse does not run.
    """
    trees = {text: parse(text) for _, text in program.parts}
    names = _Names([node for tree in trees.values() if tree for node in ast.walk(tree)])
    first: dict[Reason, str] = {}
    for label, text in program.parts:
        tree, lines = trees[text], lines_of(text)
        if label in program.given:
            continue
        if tree is None:
            if _too_deep(text):
                first.setdefault(Reason.DEEP, lines[0].strip())
            continue
        look = _Look(tree, names, tuple(rules))
        for node in _in_order(tree):
            for reason in look.at(node):
                first.setdefault(reason, lines[node.lineno - 1].strip())
    return tuple(Found(reason, line) for reason, line in first.items())


def _too_deep(text: str) -> bool:
    """Say whether text is no bad Python, but deeper than fits on the stack here: it may fit elsewhere."""
    try:
        ast.parse(text)
    except (RecursionError, MemoryError):
        return True
    except (SyntaxError, ValueError):
        return False
    return False


_Located = ast.expr | ast.stmt


def _in_order(tree: ast.AST) -> list[_Located]:
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.expr | ast.stmt)]
    return sorted(nodes, key=lambda node: (node.lineno, node.col_offset))


# --- what the text calls PyTorch, and other modules -------------------------------------------


class _Names:
    """What the names of a program mean: modules, and parts of PyTorch."""

    def __init__(self, nodes: list[ast.AST]) -> None:
        self.modules: dict[str, str] = {}
        for node in nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    first = alias.name.split(".")[0]
                    self.modules[alias.asname or first] = alias.name if alias.asname else first
            elif isinstance(node, ast.ImportFrom) and not node.level:
                for alias in node.names:
                    self.modules[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        for node in nodes:
            if isinstance(node, ast.Assign) and (of := self.dotted(node.value)):
                for target in node.targets:
                    if isinstance(target, ast.Name) and of.split(".")[0] in _PARTED:
                        self.modules.setdefault(target.id, of)

    def dotted(self, node: ast.expr) -> str:
        """Return `torch.nn.functional.relu` for `F.relu`; nothing for what is no chain of names."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute) and len(parts) < _LONGEST_CHAIN:
            parts.append(node.attr)
            node = node.value
        first = node.id if isinstance(node, ast.Name) else ""
        first = self.modules.get(first) or _USUAL.get(first, "")
        return ".".join([first, *reversed(parts)]) if first else ""

    def is_torch(self, node: ast.expr) -> bool:
        """Is it PyTorch, or what is reached from there by names alone?"""
        return self.dotted(node).split(".")[0] == "torch"

    def is_parted(self, node: ast.expr) -> bool:
        """Is it PyTorch or another module some names of which are a reason to look?"""
        return self.dotted(node).split(".")[0] in _PARTED


_USUAL = {
    "torch": "torch",
    "nn": "torch.nn",
    "F": "torch.nn.functional",
    "dist": "torch.distributed",
    "fx": "torch.fx",
}
"""What notebooks call parts of PyTorch, should an import be missing."""

_LONGEST_CHAIN = 64
"""Parts of a dotted name that are followed: text may be made to be slow to read."""

_READ_BITS = frozenset({"struct", "array"})
"""Modules that read bits as a number. Where a card forbids them, the cast of a `memoryview` does, too."""

_PARTED = frozenset({"torch", "gc", "sys", "os", "inspect", "builtins", "ctypes", "threading"})
"""Modules whose names a program should say when it asks for them."""


# --- one text --------------------------------------------------------------------------------


class _Look:
    """Looks at the nodes of one text."""

    def __init__(self, tree: ast.Module, names: _Names, rules: tuple[Rule, ...]) -> None:
        self._names = names
        self._forbidden = frozenset(rule.last for rule in rules if rule.kind is not RuleKind.CAST)
        self._modules = frozenset(rule.name for rule in rules if rule.kind is RuleKind.IMPORT)
        self._values = _assigned(tree)
        used = {name for statement in tree.body for name in used_by(statement)}
        bound = {name for statement in tree.body for name in bound_by(statement)}
        self._built_in = used - bound
        nodes = list(ast.walk(tree))
        self._asked = {id(one.value): one.attr for one in nodes if isinstance(one, ast.Attribute)}
        self._terms = {
            id(term)
            for one in nodes
            if isinstance(one, ast.BinOp)
            for term in (one.left, one.right)
        }

    def at(self, node: _Located) -> Iterator[Reason]:
        """Yield the reasons that a node gives by itself."""
        match node:
            case ast.Import():
                for alias in node.names:
                    yield from _of_import(alias.name)
            case ast.ImportFrom() if not node.level:
                yield from _of_import(node.module or "")
                for alias in node.names:
                    yield from self._of_path(f"{node.module}.{alias.name}")
                    yield from _of_attribute(alias.name)
            case ast.Call():
                yield from self._of_call(node)
            case ast.Attribute():
                yield from self._of_attribute(node)
            case ast.Name(ctx=ast.Load()):
                yield from self._of_variable(node)
            case ast.FunctionDef():
                if node.name in WATCHING_METHODS:
                    yield Reason.WATCH
                if node.name == "find_class":
                    yield Reason.CODE
            case ast.Constant(value=str() as text):
                if text.startswith(("/proc/", "/dev/mem")):
                    yield Reason.MEMORY
            case ast.BinOp() | ast.JoinedStr() | ast.Subscript() if id(node) not in self._terms:
                folded = _folded(node)
                if folded is not None and _IDENTIFIER.fullmatch(folded):
                    yield Reason.PIECES
        for target in _targets(node):
            if self._names.is_torch(target) and not _is_setting(self._names.dotted(target)):
                yield Reason.PATCH

    def _of_variable(self, node: ast.Name) -> Iterator[Reason]:
        if node.id in self._built_in:
            yield from BUILT_INS.get(node.id, ())
        elif id(node) not in self._asked and self._names.modules.get(node.id) in HARMLESS:
            yield MODULES[self._names.modules[node.id]]  # handed on whole: who knows for what

    def _of_attribute(self, node: ast.Attribute) -> Iterator[Reason]:
        if node.attr != "__code__" or self._asked.get(id(node)) not in READ_OF_CODE:
            yield from _of_attribute(node.attr)
        yield from self._of_path(self._names.dotted(node))
        if self._names.is_torch(node) and node.attr in NAMESPACES:
            yield Reason.NAMESPACE

    def _of_path(self, path: str) -> Iterator[Reason]:
        """Yield why a dotted name, from its module on, is a reason."""
        if path in DOTTED:
            yield DOTTED[path]
        for module, harmless in HARMLESS.items():
            name = path.removeprefix(f"{module}.").split(".")[0]
            if path.startswith(f"{module}.") and not harmless.fullmatch(name):
                yield MODULES[module]
        yield from _of_import(path)

    def _of_call(self, node: ast.Call) -> Iterator[Reason]:
        name = _called(node)
        if name == "getattr" and len(node.args) > 1:
            yield from self._of_name(node.args[1], node.args[0])
        elif name in ("setattr", "delattr") and len(node.args) > 1:
            if self._names.is_torch(node.args[0]):
                yield Reason.PATCH
        elif name in ("attrgetter", "methodcaller") and node.args:
            for argument in node.args if name == "attrgetter" else node.args[:1]:
                yield from self._of_name(argument, None)
        elif name in ("__getattribute__", "__getattr__") and isinstance(node.func, ast.Attribute):
            if node.args:
                yield from self._of_name(node.args[-1], None)
        elif name in FETCHES_MODULES:
            yield from self._of_fetched(self._constant(node.args[0]) if node.args else None)
        elif name in ("vars", "dir", "getmembers") and node.args:
            if self._names.is_parted(node.args[0]):
                yield Reason.NAMESPACE
        elif name in ("from_address", "string_at", "memmove", "memset"):
            if not any(map(self._points_to_a_tensor, node.args)):
                yield Reason.MEMORY
        elif name == "loads" and any(map(_holds_bytes, node.args)):
            yield Reason.CODE
        elif name == "cast" and self._modules & _READ_BITS and not self._is_typing(node.func):
            yield Reason.BITS

    def _of_fetched(self, module: str | None) -> Iterator[Reason]:
        """Yield why a module that is fetched by its name as text is a reason; None: the text does not say which."""
        if (
            module is None
            or {module.split(".")[0], module} & (self._modules | {"grader"})
            or module.rpartition(".")[2] in self._forbidden
        ):
            yield Reason.IMPORT
        else:
            yield from self._of_path(module)

    def _of_name(self, name: ast.expr, owner: ast.expr | None) -> Iterator[Reason]:
        """Yield why a name that is asked for as text is worth a look; `owner` is who is asked."""
        text = self._constant(name)
        if text is not None:
            path = f"{self._names.dotted(owner)}.{text}" if owner is not None else text
            yield from self._of_path(path)
            for part in text.split("."):
                yield from _of_attribute(part)
                if part in self._forbidden:
                    yield Reason.RULE_NAME
        elif self._made_up(name):
            if not (isinstance(owner, ast.Name) and owner.id == "self"):  # a layer by its number
                yield Reason.NAME
        elif (
            owner is not None and self._names.is_parted(owner) and "dtype" not in ast.unparse(name)
        ):
            yield Reason.MODULE_NAME  # but for `getattr(torch, dtype)`, as everybody writes it

    def _constant(self, node: ast.expr) -> str | None:
        """Return text that stands in the source as it is, or in the only value of a name."""
        values = self._values.get(node.id, []) if isinstance(node, ast.Name) else [node]
        if len(values) == 1 and isinstance(values[0], ast.Constant):
            value = values[0].value
            return value if isinstance(value, str) else None
        return None

    def _made_up(self, node: ast.expr, depth: int = 3) -> bool:
        """Say whether text is made of pieces, here or where a name gets its value."""
        if isinstance(node, ast.Name) and depth:
            return any(self._made_up(value, depth - 1) for value in self._values.get(node.id, ()))
        if isinstance(node, ast.JoinedStr):
            return True
        if isinstance(node, ast.BinOp):
            return isinstance(node.op, ast.Add | ast.Mod | ast.Mult) and self._holds_text(
                node, depth
            )
        if isinstance(node, ast.Subscript):
            return isinstance(node.slice, ast.Slice) and self._holds_text(node.value, depth)
        return isinstance(node, ast.Call) and _called(node) in MAKES_TEXT

    def _holds_text(self, node: ast.expr, depth: int) -> bool:
        """Say whether one of the parts of a sum is text, as far as `depth` names lead."""
        return any(
            self._constant(term) is not None or (depth > 0 and self._made_up(term, depth - 1))
            for term in _terms(node)
        )

    def _is_typing(self, function: ast.expr) -> bool:
        return self._names.dotted(function).startswith("typing.")

    def _points_to_a_tensor(self, node: ast.expr) -> bool:
        values = self._values.get(node.id, []) if isinstance(node, ast.Name) else [node]
        nodes = [part for value in values for part in ast.walk(value)]
        return any(isinstance(part, ast.Attribute) and part.attr == "data_ptr" for part in nodes)


def _of_import(name: str) -> Iterator[Reason]:
    """Yield why a module, or what is in it, is a reason by its name alone."""
    first, _, rest = name.partition(".")
    if first == "grader" and rest and rest not in FRONT:
        yield Reason.GRADER
    for module, reason in MODULES.items():
        if module not in HARMLESS and (name == module or name.startswith(f"{module}.")):
            yield reason
    if first.startswith("_") and first not in ("__future__", *MODULES):
        yield Reason.IMPORT  # `_struct` is `struct`


def _of_attribute(name: str) -> Iterator[Reason]:
    """Yield why a name is a reason, whatever it is asked of."""
    for pattern, reason in ATTRIBUTES:
        if pattern.fullmatch(name):
            yield reason


def _holds_bytes(node: ast.expr) -> bool:
    return any(
        isinstance(part, ast.Constant) and isinstance(part.value, bytes) for part in ast.walk(node)
    )


def _assigned(tree: ast.AST) -> dict[str, list[ast.expr]]:
    """Return what a text assigns to each name, and what a loop takes it from."""
    found: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        values: list[ast.expr] = []
        target: ast.expr | None = None
        if isinstance(node, ast.Assign):
            target, values = node.targets[0], [node.value]
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr | ast.AugAssign) and node.value:
            target, values = node.target, [node.value]
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                values = [ast.BinOp(node.target, node.op, node.value)]
        elif isinstance(node, ast.For | ast.comprehension):
            of = node.iter
            target = node.target
            values = list(of.elts) if isinstance(of, ast.Tuple | ast.List | ast.Set) else [of]
        if isinstance(target, ast.Name):
            found.setdefault(target.id, []).extend(values)
    return found


_IDENTIFIER = re.compile(r"[A-Za-z_]\w{2,}(\.\w+)*")


def _folded(node: ast.expr) -> str | None:
    """Return text that is put together from constants alone: `"fin" + "fo"`, `"ofnif"[::-1]`."""
    match node:
        case ast.BinOp(op=ast.Add()):
            texts = [_text(term) for term in _terms(node)]
            return None if None in texts else "".join(text or "" for text in texts)
        case ast.JoinedStr(values=parts) if len(parts) > 1:
            texts = [
                _text(part.value if isinstance(part, ast.FormattedValue) else part)
                for part in parts
            ]
            return None if None in texts else "".join(text or "" for text in texts)
        case ast.Subscript(value=ast.Constant(value=str() as text), slice=ast.Slice()):
            return text
    return None


def _terms(node: ast.expr) -> list[ast.expr]:
    """Return what a sum, or another chain of two-sided operators, is of, in order."""
    found: list[ast.expr] = []
    pending = [node]
    while pending:
        one = pending.pop()
        if isinstance(one, ast.BinOp):
            pending += [one.right, one.left]
        else:
            found.append(one)
    return found


def _text(node: ast.expr) -> str | None:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    return _folded(node)


def _called(node: ast.Call) -> str:
    function = node.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _targets(node: _Located) -> Iterable[ast.expr]:
    """Return the attributes that a statement assigns or deletes."""
    found: list[ast.expr] = []
    if isinstance(node, ast.Assign | ast.Delete):
        found = node.targets
    elif isinstance(node, ast.AugAssign | ast.AnnAssign):
        found = [node.target]
    return [target for target in found if isinstance(target, ast.Attribute)]


def _is_setting(path: str) -> bool:
    """`torch.backends.cuda.matmul.allow_tf32 = …` and `torch._dynamo.config.…` are for that."""
    return any(part == "backends" or part.endswith("config") for part in path.split(".")[:-1])
