"""How many floating-point operations the products of a program take, by torch's own formulas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils.flop_counter import flop_registry

from grader.inside.dispatch import DispatchMode
from grader.inside.instruments.ops import is_foreign, short_name


class Flops:
    """The operations counted so far. One multiplication and one addition are two."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    @property
    def total(self) -> int:
        """All of them."""
        return self._counts.total()

    @property
    def by_op(self) -> dict[str, int]:
        """By the name of the operator: {"mm": 2400}."""
        return dict(self._counts)


@contextmanager
def watch_flops() -> Iterator[Flops]:
    """Count the operations of matrix products, convolutions and attention inside the `with`.

    Formulas: those of `torch.utils.flop_counter`. It has none for elementwise operations and sums:
    they count as nothing.
    """
    flops = Flops()
    with _Counter(flops._counts):
        yield flops


class _Counter(DispatchMode):
    """Counts as torch's `FlopCounterMode` does, of which each process would import Dynamo."""

    def __init__(self, counts: Counter[str]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._counts = counts

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if any(map(is_foreign, types)):  # what it runs counts
            return NotImplemented
        kwargs = kwargs or {}
        formula = flop_registry.get(func._overloadpacket)  # type: ignore[attr-defined]
        if formula is None and func not in _KNOWN_TO_PYTHON_ALONE:
            with self:  # in inference mode a composite operator arrives whole
                out = func.decompose(*args, **kwargs)  # type: ignore[attr-defined]
            if out is not NotImplemented:
                return out
        out = func(*args, **kwargs)
        if formula is not None:
            self._counts[short_name(func)] += int(formula(*args, **kwargs, out_val=out))
        return out


_KNOWN_TO_PYTHON_ALONE = {torch.ops.prim.device.default}
"""What C++ cannot be asked about, whether it decomposes. A fake tensor is asked for its device so."""
