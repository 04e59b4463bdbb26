"""Which ATen operators ran, in order: what is left of a program when autograd and Python are gone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch._ops import OpOverload

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
        super().__init__()
        self._names = names
        self._account = account

    def arrives(self, operator: OpOverload) -> None:
        name = short_name(operator)
        self._names.append(name)
        self._account.tell(name)


def short_name(operator: Any) -> str:
    """Return an operator's name without namespace and overload: "mm" for `aten::mm`."""
    name: str = operator.name()
    return name.partition("::")[2].partition(".")[0]
