"""What an exercise forbids, found in source text and, while a probe runs, in the calls made.

A rule is a string, of one of four kinds:

- `torch.Tensor.bfloat16`, `torch.finfo`: that function, under any alias;
- `cast:torch.bfloat16`: turning floats into that dtype by any means but reinterpreting bits;
- `aten:_int_mm`: that ATen operator, whoever calls it;
- `import:numpy`: that module.

The scan of the source runs on the grader's side. The tripwire runs beside the student's code and
so is a claim that hostile code could suppress; it is there for the honest shortcut.
"""

from __future__ import annotations

import ast
import importlib
import math
import mmap
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

_CASTS = frozenset({"to", "type", "as_tensor", "asarray", "tensor", "astype", "copy_"})
"""Calls that cast when they are handed a dtype. Allocation (`empty`) and `.view` do not."""


def describe_rule(rule: str) -> str:
    """Return a rule in words, as Markdown."""
    kind, _, name = rule.rpartition(":")
    match kind:
        case "cast":
            return f"any cast to `{name}`"
        case "aten":
            return f"the operator `aten::{name}`"
        case "import":
            return f"the module `{name}`"
    return f"`{name}`"


def scan(sources: Iterable[str], rules: Iterable[str]) -> list[tuple[str, str]]:
    """Return pairs of the rule broken and the line that breaks it, in order, each rule once.

    Text that does not parse breaks no rule here: it does not run either.
    """
    found: dict[str, str] = {}
    rules = tuple(rules)
    for source in sources:
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError, RecursionError):
            continue
        lines = source.splitlines()
        own = set(_calls_of_own_methods(tree))
        for node in ast.walk(tree):
            for rule in rules:
                if rule not in found and node not in own and _breaks(node, rule):
                    found[rule] = lines[node.lineno - 1].strip()  # type: ignore[attr-defined]
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


def _breaks(node: ast.AST, rule: str) -> bool:
    kind, _, dotted = rule.rpartition(":")
    last = dotted.split(".")[-1]
    if kind == "import":
        if isinstance(node, ast.Import):
            return any(alias.name.split(".")[0] == dotted for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            return (node.module or "").split(".")[0] == dotted or _imports(node, dotted)
        return _is_import_call(node, dotted) or _is_taken_from_a_module(node, dotted)
    if kind == "cast":
        return _is_cast(node, last)
    if kind == "aten" or dotted.startswith("torch.Tensor."):
        # a method or an operator counts when it is called, or fetched by its name as text
        return _is_call_of(node, last) or _is_getattr(node, last)
    if isinstance(node, ast.ImportFrom):
        return _imports(node, last)
    if isinstance(node, ast.Attribute):
        return node.attr == last
    return _is_getattr(node, last)


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


class Tripwire:
    """Records which rules are broken while it is entered, in forks (loader workers, ranks) too."""

    def __init__(self, rules: Iterable[str]) -> None:
        self.rules = tuple(rules)
        # a page that forks share: each byte says whether the rule of that number was broken
        self._broken = mmap.mmap(-1, max(1, len(self.rules)))

    @property
    def tripped(self) -> list[str]:
        """The rules that were broken, in the order in which they are declared."""
        return [rule for number, rule in enumerate(self.rules) if self._broken[number]]

    def _trip(self, rule: str) -> None:
        self._broken[self.rules.index(rule)] = 1

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch the calls of this thread."""
        if not self.rules:
            yield
            return
        with ExitStack() as stack:
            for rule in self.rules:
                if ":" not in rule and not rule.startswith("torch.Tensor."):
                    stack.enter_context(_recording(rule, self._trip))
            if any(":" not in rule or rule.startswith("cast:") for rule in self.rules):
                stack.enter_context(_FunctionWatch(self.rules, self._trip))
            if any(rule.startswith(("aten:", "cast:")) for rule in self.rules):
                stack.enter_context(_OperatorWatch(self.rules, self._trip))
            yield


@contextmanager
def _recording(dotted: str, trip: Callable[[str], None]) -> Iterator[None]:
    """Replace a function of a module by one that records and calls it."""
    module_name, _, attribute = dotted.rpartition(".")
    try:
        module = importlib.import_module(module_name)
        original = getattr(module, attribute)
    except (ImportError, AttributeError):
        yield  # not in this torch: nothing to call either
        return

    def recorder(*args: Any, **kwargs: Any) -> Any:
        trip(dotted)
        return original(*args, **kwargs)

    setattr(module, attribute, recorder)
    try:
        yield
    finally:
        setattr(module, attribute, original)


class _FunctionWatch(TorchFunctionMode):
    """Sees every call of the Python API, methods included."""

    def __init__(self, rules: tuple[str, ...], trip: Callable[[str], None]) -> None:
        super().__init__()
        self._functions = [(_resolve(rule), rule) for rule in rules if ":" not in rule]
        self._casts = {_dtype(rule): rule for rule in rules if rule.startswith("cast:")}
        self._trip = trip

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if torch.compiler.is_compiling():
            return func(*args, **(kwargs or {}))  # traced by Dynamo: leave nothing behind
        called = getattr(func, "__self__", None) if func.__name__ == "__get__" else func
        for function, rule in self._functions:
            if function is called:
                self._trip(rule)
        result = func(*args, **(kwargs or {}))
        # torch.tensor(numbers, dtype) casts in C++, where no dispatch mode sees it
        if func in _FROM_NUMBERS:
            cast = self._casts.get(getattr(result, "dtype", None))
            if cast and result.numel():
                self._trip(cast)
        return result


_FROM_NUMBERS = (torch.tensor, torch.as_tensor, torch.asarray)


def _resolve(dotted: str) -> object:
    """Return the object of a dotted name, or a fresh one that nothing is identical to."""
    found: object = torch
    for part in dotted.split(".")[1:]:
        found = getattr(found, part, None)
    return object() if found is None else found


class _OperatorWatch(TorchDispatchMode):
    """Sees every ATen operator, wherever it was called from."""

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Let torch.compile compile: under any other dispatch mode it leaves functions as they are."""
        return True

    def __init__(self, rules: tuple[str, ...], trip: Callable[[str], None]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._operators = {f"aten::{r[5:]}": r for r in rules if r.startswith("aten:")}
        self._casts = {_dtype(rule): rule for rule in rules if rule.startswith("cast:")}
        self._trip = trip

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        schema = func._schema.name
        if schema in self._operators:
            self._trip(self._operators[schema])
        if self._casts and schema not in _REINTERPRET:
            self._look_for_casts(func, [*args, *(kwargs or {}).values()], result)
        return result

    def _look_for_casts(self, func: Any, args: Sequence[Any], result: Any) -> None:
        written = list(_tensors([result]))
        if not written:  # such as aten::_foreach_copy_, which changes its first argument
            written = list(_tensors(args[:1]))
        read = () if _is_allocation(func) else _tensors(args)
        dtypes = {tensor.dtype for tensor in read if tensor.is_floating_point()}
        for rule in {self._casts[t.dtype] for t in written if t.dtype in self._casts}:
            if dtypes - {_dtype(rule)} or any(_writes_number(func, arg) for arg in args):
                self._trip(rule)


_REINTERPRET = frozenset({"aten::view", "aten::view_as_real"})


def _tensors(values: Iterable[Any]) -> Iterator[torch.Tensor]:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(value)


def _is_allocation(func: Any) -> bool:
    """`zeros_like(x)` and `x.new_zeros(n)` take nothing of `x` but its shape."""
    name: str = func._schema.name.removeprefix("aten::")
    return name.endswith("_like") or name.startswith("new_")


def _writes_number(func: Any, arg: object) -> bool:
    """An ordinary number written into a tensor of the forbidden dtype is rounded on its way."""
    name = func._schema.name.removeprefix("aten::").removeprefix("new_")
    if type(arg) is not float or not name.startswith(("fill", "full")):
        return False
    return math.isfinite(arg) and arg != 0.0


def _dtype(rule: str) -> torch.dtype | None:
    dtype = getattr(torch, rule.split(".")[-1], None)
    return dtype if isinstance(dtype, torch.dtype) else None
