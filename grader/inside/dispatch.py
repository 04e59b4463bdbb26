"""The dispatch mode that ours are made of: what all of them must get right, and no import of a compiler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import torch
from torch._C import DispatchKey
from torch._C._dynamo.eval_frame import (
    _FrameAction,
    _FrameExecStrategy,
    set_code_exec_strategy,
)
from torch._ops import HigherOrderOperator, OperatorBase, OpOverload
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map


class DispatchMode(TorchDispatchMode):
    """Lets each operator run, and asks its subclass to look on: as it arrives, before and after it ran.

    Whoever looks on runs nothing, so that a call keeps its frames: those of the mode are nobody's.
    An operator on tensors whose class runs code of its own is handed to that class, and the mode sees
    what that code runs. A composite operator that arrives whole (in inference mode, or in such a class's
    code), and one of higher order (`torch.cond`), are seen as what they are made of.

    Dynamo leaves the mode's code alone, as it does with that of any other. Of any other it is asked to
    by a decorator that imports Dynamo when the mode is first used: a second of processor time and
    70 MiB in every process that grades, mostly for programs that compile nothing.
    """

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def arrives(self, operator: OpOverload) -> None:
        """Look at an operator that arrives, whoever is going to run it."""

    def before(self, operator: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Look at an operator that is going to run, and at what it was given."""

    def after(
        self, operator: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any
    ) -> None:
        """Look at what an operator made."""

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if isinstance(func, HigherOrderOperator):
            if not any(map(torch._C._get_dispatch_mode, _TRACING)):
                args = tree_map(self._within, args)
            return func(*args, **kwargs)
        if any(map(_is_foreign, types)):
            self.arrives(func)
            return NotImplemented
        if _is_composite(func):
            with self:
                return func._op_dk(DispatchKey.CompositeImplicitAutograd, *args, **kwargs)
        self.arrives(func)
        self.before(func, args, kwargs)
        result = func(*args, **kwargs)
        self.after(func, args, kwargs, result)
        return result

    def _within(self, value: Any) -> Any:
        """Return a function that runs in this mode; anything else is left as it is."""
        if not callable(value) or isinstance(value, type | OperatorBase):
            return value

        def run(*args: Any, **kwargs: Any) -> Any:
            with self:
                return value(*args, **kwargs)

        return run


set_code_exec_strategy(
    DispatchMode.__torch_dispatch__.__code__,
    _FrameExecStrategy(_FrameAction.SKIP, _FrameAction.SKIP),  # it, and what it calls
)

_TRACING = tuple(
    getattr(torch._C._TorchDispatchModeKey, name) for name in ("FAKE", "PROXY", "FUNCTIONAL")
)
"""Modes of torch's own for which an operator of higher order stays what it is."""


def _is_foreign(kind: type) -> bool:
    """Say whether a subclass of tensors runs code of its own for an operator.

    A mode that answers `NotImplemented` for it sees what that code runs, too. Within a mode's own
    call it would not.
    """
    if kind.__module__.startswith("torch._subclasses."):  # fake and functional tensors
        return False
    method = getattr(kind, "__torch_dispatch__", None)
    return method is not None and method is not torch.Tensor.__torch_dispatch__


@cache
def _is_composite(operator: Any) -> bool:
    """Say whether an operator has no kernel, and is made of others."""
    if operator.namespace == "prim":  # known to Python alone
        return False
    return torch._C._dispatch_has_kernel_for_dispatch_key(
        operator.name(), "CompositeImplicitAutograd"
    )
