"""Which ATen operators ran, in order: what is left of a program when autograd and Python are gone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from grader.inside.dispatch import DispatchMode
from grader.inside.witness import Account


class Ops:
    """The operators seen so far."""

    def __init__(self) -> None:
        self._names: list[str] = []

    @property
    def names(self) -> tuple[str, ...]:
        """Names without overload, in order, views included: ("transpose", "clone", "mm")."""
        return tuple(self._names)

    def count(self, *names: str) -> int:
        """Return how many of the operators have one of these names."""
        return sum(name in names for name in self._names)


@contextmanager
def watch_ops() -> Iterator[Ops]:
    """Record every operator that reaches the dispatcher inside the `with`, forward and backward.

    Composite operators (`matmul`, `reshape`) appear as what they are made of; an operator on a
    tensor subclass appears, and then what the subclass made of it. What a kernel does within itself
    is not seen, nor what other threads do: where an answer is graded, the second witness sees those
    (see `grader.inside.witness`). A few composites choose their road by
    whether somebody watches: `torch.matmul` of (2, 3, 4) and (1, 4, 5) folds into one `mm` here and
    is one `bmm` elsewhere (`torch.profiler` shows what runs unwatched).
    """
    ops, account = Ops(), Account()
    try:
        with _Recorder(ops._names, account):
            yield ops
    finally:
        account.close(ops._names)


class _Recorder(DispatchMode):
    def __init__(self, names: list[str], account: Account) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._names = names
        self._account = account

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        name = short_name(func)
        self._names.append(name)
        self._account.tell(name)
        if any(map(is_foreign, types)):
            return NotImplemented
        return func(*args, **(kwargs or {}))


def is_foreign(kind: type) -> bool:
    """Say whether a subclass of tensors runs code of its own for an operator.

    A mode that answers `NotImplemented` for it sees what that code runs, too. Within a mode's own
    call it would not.
    """
    if kind.__module__.startswith("torch._subclasses."):  # fake and functional tensors
        return False
    method = getattr(kind, "__torch_dispatch__", None)
    return method is not None and method is not torch.Tensor.__torch_dispatch__


def short_name(operator: Any) -> str:
    """Return an operator's name without namespace and overload: "mm" for `aten::mm`."""
    name: str = operator.name()
    return name.partition("::")[2].partition(".")[0]
