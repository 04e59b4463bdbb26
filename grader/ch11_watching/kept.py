"""What a check expects, computed once for a question: a class, and known mistakes, are asked the same."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import lru_cache, wraps
from typing import ParamSpec, TypeVar

import torch

P = ParamSpec("P")
T = TypeVar("T")

MOST = 256
"""Results that are kept of one function."""


def kept(compute: Callable[P, T]) -> Callable[P, T]:
    """Keep what a function of hashable arguments returns, for as long as PyTorch is set as it was.

    A notebook's kernel judges too, and there a student may have set anything: what was computed in
    float64 must not stand when float32 is back.
    """

    @lru_cache(maxsize=MOST)
    def under(_: Hashable, *args: P.args, **kwargs: P.kwargs) -> T:
        return compute(*args, **kwargs)

    @wraps(compute)
    def ask(*args: P.args, **kwargs: P.kwargs) -> T:
        return under(_settings(), *args, **kwargs)

    return ask


def _settings() -> Hashable:
    return (
        torch.get_default_dtype(),
        torch.get_default_device(),
        torch.is_grad_enabled(),
        torch.are_deterministic_algorithms_enabled(),
        torch.get_num_threads(),
    )
