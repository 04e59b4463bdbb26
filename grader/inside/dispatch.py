"""The dispatch mode that ours are made of: it costs no import of torch's compiler."""

from __future__ import annotations

from typing import Any

from torch._C._dynamo.eval_frame import (
    _FrameAction,
    _FrameExecStrategy,
    set_code_exec_strategy,
)
from torch.utils._python_dispatch import TorchDispatchMode

_LEFT_ALONE = _FrameExecStrategy(_FrameAction.SKIP, _FrameAction.SKIP)
"""What Dynamo does with a frame, and with those that it calls."""


class DispatchMode(TorchDispatchMode):
    """A `TorchDispatchMode` whose `__torch_dispatch__` Dynamo leaves alone, as it does with any other.

    Of any other it is asked to by a decorator that imports Dynamo when the mode is first used: a second
    of processor time and 70 MiB in every process that grades, mostly for programs that compile nothing.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)  # type: ignore[no-untyped-call]
        method = vars(cls).get("__torch_dispatch__")
        if method is not None:
            set_code_exec_strategy(method.__code__, _LEFT_ALONE)

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False
