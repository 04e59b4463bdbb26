"""How many floating-point operations the products of a program take, by torch's own formulas."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch.utils.flop_counter import FlopCounterMode

from grader.inside.instruments.ops import short_name


class Flops:
    """The operations counted so far. One multiplication and one addition are two."""

    def __init__(self, counter: FlopCounterMode) -> None:
        self._counter = counter

    @property
    def total(self) -> int:
        """All of them."""
        return sum(self.by_op.values())

    @property
    def by_op(self) -> dict[str, int]:
        """By the name of the operator: {"mm": 2400}."""
        counts = self._counter.get_flop_counts().get("Global", {})
        return {short_name(packet.default): int(count) for packet, count in counts.items()}


@contextmanager
def watch_flops() -> Iterator[Flops]:
    """Count the operations of matrix products, convolutions and attention inside the `with`.

    Source: `torch.utils.flop_counter`. It has no formula for elementwise operations and sums:
    they count as nothing.
    """
    with FlopCounterMode(display=False) as counter:
        yield Flops(counter)
