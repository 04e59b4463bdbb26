"""Modes that see calls of the student's thread: of the Python API, and of ATen operators."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch._ops import OpOverload
from torch.overrides import TorchFunctionMode

from grader.inside.casts import Casts
from grader.inside.dispatch import DispatchMode
from grader.inside.families import is_of
from grader.inside.origin import from_student
from grader.inside.recorders import Note, original_of

Stray = Callable[[str], None]
"""Told the name of an operator that is not of an allowed family."""


class FunctionWatch(TorchFunctionMode):
    """Sees every call of the Python API, methods included."""

    def __init__(self, forbidden: Sequence[tuple[object, Note]], casts: Casts) -> None:
        super().__init__()
        self._forbidden = forbidden  # keeps them alive: they are found by their ids
        self._functions: dict[int, list[Note]] = {}
        for value, note in forbidden:
            self._functions.setdefault(id(value), []).append(note)
        # a memory format is not called: it is handed over
        self._values = [pair for pair in forbidden if isinstance(pair[0], torch.memory_format)]
        self._casts = casts

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if torch.compiler.is_compiling():
            return func(*args, **(kwargs or {}))  # traced by Dynamo: leave nothing behind
        called = getattr(func, "__self__", None) if func.__name__ == "__get__" else func
        called = original_of(called)
        for note in self._functions.get(id(called), ()):
            note()
        for value, note in self._values:
            handed = (*args, *(kwargs or {}).values())
            if any(value is each for each in handed) and from_student(sys._getframe(1)):
                note()
        result = func(*args, **(kwargs or {}))
        # torch.tensor(numbers, dtype) casts in C++, where no dispatch mode sees it
        if called in _FROM_NUMBERS:
            cast = self._casts.get(getattr(result, "dtype", None))
            if cast is not None and result.numel():
                cast()
        elif called is torch.Tensor.__setitem__ and type(args[2]) is float:
            cast = self._casts.get(args[0].dtype)
            if cast is not None and _is_new_to(args[2], args[0].dtype):
                cast()
        return result


_FROM_NUMBERS = frozenset(
    {
        torch.tensor,
        torch.as_tensor,
        torch.asarray,
        torch.Tensor.new_tensor,
        torch.Tensor.apply_,
        torch.Tensor.map_,
    }
)
"""What puts Python's numbers into a tensor unseen by dispatch."""


class OperatorWatch(DispatchMode):
    """Sees every ATen operator, wherever it was called from.

    `operators` are by full name, `aten::mm`, with an overload, `aten::view.dtype`, or by namespace,
    `quantized::`. What is not of the
    `allowed` families is told to `stray`, if the student's code asked for it.
    """

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Let torch.compile compile: under any other dispatch mode it leaves functions as they are."""
        return True

    def __init__(
        self,
        operators: Mapping[str, Note],
        casts: Casts,
        allowed: frozenset[str] | None = None,
        stray: Stray = lambda name: None,
    ) -> None:
        super().__init__()
        self._operators = operators
        self._casts = casts
        self._allowed = allowed
        self._stray = stray

    def arrives(self, operator: OpOverload) -> None:
        name = operator._schema.name
        is_stray = self._allowed is not None and not is_of(operator, self._allowed)
        if is_stray and from_student(sys._getframe(1)):
            self._stray(name)
        for known in (name, f"{name}.{operator._overloadname}", f"{operator.namespace}::"):
            if known in self._operators:
                self._operators[known]()

    def after(
        self, operator: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any
    ) -> None:
        if self._casts and operator._schema.name not in _REINTERPRET:
            self._look_for_casts(operator, [*args, *kwargs.values()], result)

    def _look_for_casts(self, func: Any, args: Sequence[Any], result: Any) -> None:
        written = list(_tensors([result]))
        if not written:  # such as aten::_foreach_copy_, which changes its first argument
            written = list(_tensors(args[:1]))
        read = [] if _is_allocation(func) else list(_tensors(args))
        dtypes = {tensor.dtype for tensor in read if tensor.is_floating_point()}
        for dtype in {tensor.dtype for tensor in written} & self._casts.keys():
            if dtypes - {dtype} or any(_is_rounded(func, arg, read, dtype) for arg in args):
                self._casts[dtype]()


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


def _is_rounded(func: Any, arg: object, read: Sequence[torch.Tensor], dtype: torch.dtype) -> bool:
    """Is an ordinary number written into a tensor of the forbidden dtype, and rounded on its way?

    Where nothing but numbers makes the tensor, any number counts; beside a tensor, one that the
    dtype does not have.
    """
    if type(arg) is not float or not math.isfinite(arg) or arg == 0.0:
        return False
    name = func._schema.name.removeprefix("aten::").removeprefix("new_")
    if not read or name.startswith(("fill", "full")):
        return True
    return _is_new_to(arg, dtype)


def _is_new_to(number: float, dtype: torch.dtype) -> bool:
    """Is a number none that the dtype has?"""
    with torch._C.DisableTorchFunction(), torch._C._DisableTorchDispatch():
        return torch.full((), number, dtype=dtype).double().item() != number
