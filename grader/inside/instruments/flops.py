"""How many floating-point operations the products of a program take, by torch's own formulas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from torch._ops import OpOverload
from torch.utils.flop_counter import flop_registry

from grader.inside.dispatch import DispatchMode
from grader.inside.instruments.ops import short_name
from grader.inside.witness import Account


class Flops:
    """The operations counted so far. One multiplication and one addition are two."""

    def __init__(self) -> None:
        self._noted: list[tuple[str, int]] = []

    @property
    def total(self) -> int:
        """All of them."""
        return sum(count for _, count in self._noted)

    @property
    def by_op(self) -> dict[str, int]:
        """By the name of the operator: {"mm": 2400}."""
        counts = Counter[str]()
        for name, count in self._noted:
            counts[name] += count
        return dict(counts)


@contextmanager
def watch_flops() -> Iterator[Flops]:
    """Count the operations of matrix products, convolutions and attention inside the `with`.

    Formulas: those of `torch.utils.flop_counter`. It has none for elementwise operations and sums:
    they count as nothing.
    """
    flops, account = Flops(), Account()
    try:
        with _Tally(flops._noted, account):
            yield flops
    finally:
        account.close(f"{name} {count}" for name, count in flops._noted)


class _Tally(DispatchMode):
    """Counts as torch's `FlopCounterMode` does, of which each process would import Dynamo."""

    def __init__(self, noted: list[tuple[str, int]], account: Account) -> None:
        super().__init__()
        self._noted = noted
        self._account = account

    def after(
        self, operator: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any
    ) -> None:
        formula = flop_registry.get(operator._overloadpacket)
        if formula is not None:
            name, count = short_name(operator), int(formula(*args, **kwargs, out_val=result))
            self._noted.append((name, count))
            self._account.tell(name, count)
