"""Watches the calls made while a probe runs, for those that an exercise forbids.

Rules come as pairs of kind and name, as `grader.course.rules` made them: kinds are `function`,
`cast`, `aten` and `import`. This runs beside the student's code, so what it sees is a claim that
hostile code could suppress; it is there for the honest shortcut.
"""

from __future__ import annotations

import importlib
import math
import mmap
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from grader.evidence.wire.trace import TRIPPED
from grader.inside import witness

Trip = Callable[[int], None]
"""Told the number of the rule that was broken."""

Casts = dict[torch.dtype | None, int]
"""Numbers of rules by the dtype that nothing may be cast to."""


class Tripwire:
    """Records which rules are broken while it is entered, in forks (loader workers, ranks) too."""

    def __init__(self, rules: Iterable[tuple[str, str]]) -> None:
        self._rules = [(number, kind, name) for number, (kind, name) in enumerate(rules)]
        # a page that forks share: each byte says whether the rule of that number was broken
        self._broken = mmap.mmap(-1, max(1, len(self._rules)))

    @property
    def tripped(self) -> list[int]:
        """The numbers of the rules that were broken, counted as they were given."""
        return [number for number, _, _ in self._rules if self._broken[number]]

    def _trip(self, number: int) -> None:
        if not self._broken[number]:
            witness.mark(f"{TRIPPED} {number}")
        self._broken[number] = 1

    def _of(self, kind: str) -> dict[str, int]:
        """Return the rules of a kind: numbers by name."""
        return {name: number for number, other, name in self._rules if other == kind}

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch the calls of this thread."""
        functions, operators = self._of("function"), self._of("aten")
        casts = {_dtype(name): number for name, number in self._of("cast").items()}
        with ExitStack() as stack:
            for name, number in functions.items():
                if not name.startswith("torch.Tensor."):
                    stack.enter_context(_recording(name, number, self._trip))
            if functions or casts:
                stack.enter_context(_FunctionWatch(functions, casts, self._trip))
            if operators or casts:
                stack.enter_context(_OperatorWatch(operators, casts, self._trip))
            yield


@contextmanager
def _recording(dotted: str, number: int, trip: Trip) -> Iterator[None]:
    """Replace a function of a module by one that records and calls it."""
    module_name, _, attribute = dotted.rpartition(".")
    try:
        module = importlib.import_module(module_name)
        original = getattr(module, attribute)
    except (ImportError, AttributeError):
        yield  # not in this torch: nothing to call either
        return

    def recorder(*args: Any, **kwargs: Any) -> Any:
        trip(number)
        return original(*args, **kwargs)

    setattr(module, attribute, recorder)
    try:
        yield
    finally:
        setattr(module, attribute, original)


class _FunctionWatch(TorchFunctionMode):
    """Sees every call of the Python API, methods included."""

    def __init__(self, functions: dict[str, int], casts: Casts, trip: Trip) -> None:
        super().__init__()
        self._functions = [(_resolve(name), number) for name, number in functions.items()]
        self._casts = casts
        self._trip = trip

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if torch.compiler.is_compiling():
            return func(*args, **(kwargs or {}))  # traced by Dynamo: leave nothing behind
        called = getattr(func, "__self__", None) if func.__name__ == "__get__" else func
        for function, number in self._functions:
            if function is called:
                self._trip(number)
        result = func(*args, **(kwargs or {}))
        # torch.tensor(numbers, dtype) casts in C++, where no dispatch mode sees it
        if func in _FROM_NUMBERS:
            cast = self._casts.get(getattr(result, "dtype", None))
            if cast is not None and result.numel():
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

    def __init__(self, operators: dict[str, int], casts: Casts, trip: Trip) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._operators = {f"aten::{name}": number for name, number in operators.items()}
        self._casts = casts
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
        for dtype in {tensor.dtype for tensor in written} & self._casts.keys():
            if dtypes - {dtype} or any(_writes_number(func, arg) for arg in args):
                self._trip(self._casts[dtype])


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


def _dtype(name: str) -> torch.dtype | None:
    dtype = getattr(torch, name.rpartition(".")[2], None)
    return dtype if isinstance(dtype, torch.dtype) else None
