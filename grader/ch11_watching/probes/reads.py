"""How often Python gets a value out of a tensor: on a GPU it waits each time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch._ops import OpOverload
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from grader.inside.dispatch import DispatchMode

READERS = frozenset(
    {
        *("__repr__", "__format__", "__array__", "__contains__", "tolist", "numpy", "item"),
        *("__bool__", "__float__", "__int__", "__index__", "__complex__", "__deepcopy__"),
    }
)
"""Methods that give Python a tensor's values. `str`, `print`, `tolist` and `numpy` run no operator
that says so, or none at all: a dispatch mode alone does not see them."""

_BRANCHING = (torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape)


class Reads:
    """The reads so far."""

    def __init__(self) -> None:
        self.names: list[str] = []
        """What read, in order: "item", "tolist", "nonzero"."""
        self._within = 0

    @property
    def count(self) -> int:
        """How many reads there were. What a call reads within itself is one with it."""
        return len(self.names)


@contextmanager
def watch_reads() -> Iterator[Reads]:
    """Count what takes values out of tensors inside the `with`, in this thread.

    Counted are methods that hand values to Python (`item`, `tolist`, `print(x)`, `if x:`, `f"{x:.2f}"`,
    `numpy`, `deepcopy`), and operators whose result's size or kind depends on values (`nonzero`,
    `masked_select`, `equal`, an index that is a mask). Not seen: other threads, reads through a
    storage (`x.untyped_storage()`), through memory that `numpy()` shared before, and by code that
    leaves all modes.
    """
    reads = Reads()
    with _Operators(reads), _Functions(reads):
        yield reads


class _Functions(TorchFunctionMode):
    def __init__(self, reads: Reads) -> None:
        super().__init__()
        self._reads = reads

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        reads = self._reads
        if getattr(func, "__name__", "") not in READERS:
            return func(*args, **(kwargs or {}))
        if not reads._within:
            reads.names.append(func.__name__.strip("_"))
        reads._within += 1
        try:
            return func(*args, **(kwargs or {}))
        finally:
            reads._within -= 1


class _Operators(DispatchMode):
    def __init__(self, reads: Reads) -> None:
        super().__init__()
        self._reads = reads

    def before(self, operator: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        if not self._reads._within and _depends_on_values(operator, args):
            self._reads.names.append(operator._schema.name.partition("::")[2])


def _depends_on_values(func: Any, args: Any) -> bool:
    """Say whether an operator must look at values to know what it returns."""
    name = func._schema.name.partition("::")[2]
    if name in ("index", "index_put", "index_put_", "_unsafe_index"):
        masks = (torch.bool, torch.uint8)
        return any(
            isinstance(one, torch.Tensor) and one.dtype in masks for one in tree_leaves(args[1])
        )
    return any(tag in func.tags for tag in _BRANCHING)
