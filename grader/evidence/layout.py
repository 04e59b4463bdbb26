"""A tensor's layout as plain data: size, stride, offset, and which cells of storage it reads.

A cell is one element's worth of storage: cell 3 of float32 holds bytes 12 to 15. Nothing here draws;
`grader.feedback.storage_picture` does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

import torch
from torch._subclasses import FakeTensor
from torch.nn.parameter import UninitializedBuffer, UninitializedParameter

ENUMERATED = 2**14
"""Most elements whose cells are all worked out, in some 5 ms; of a larger tensor only those drawn."""

_LETTERS = "ijklmnpq"


@dataclass(frozen=True)
class Layout:
    """Where a tensor's elements lie. `cells` is how many the storage holds, `spare` the bytes left.

    `storage` is equal for layouts that share a storage. `flags` are those of "conj" and "neg" set.
    """

    dtype: str
    itemsize: int
    size: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    cells: int
    spare: int = 0
    flags: tuple[str, ...] = ()
    storage: int = 0

    @property
    def numel(self) -> int:
        """How many elements the tensor has."""
        return math.prod(self.size)

    def address(self, index: Sequence[int]) -> int:
        """Return the cell of the element at `index`."""
        return self.offset + sum(i * step for i, step in zip(index, self.stride, strict=True))

    def order(self, index: Sequence[int]) -> int:
        """Return how many elements come before `index` when the last dimension runs fastest."""
        place = 0
        for i, length in zip(index, self.size, strict=True):
            place = place * length + i
        return place

    def indices(self) -> Iterator[tuple[int, ...]]:
        """Return all indices, the last dimension fastest."""
        return product(*map(range, self.size))

    def to_data(self) -> dict[str, Any]:
        """Return the layout as JSON data."""
        return asdict(self)

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Layout:
        """Return the layout that `to_data` gave, after a way through JSON too."""
        lists = {name: tuple(data[name]) for name in ("size", "stride", "flags")}
        return cls(**{**data, **lists})


def layout_of(tensor: torch.Tensor, storage: int = 0) -> Layout:
    """Return the layout of a tensor that has memory; `without_memory` says whether it has."""
    nbytes, itemsize = tensor.untyped_storage().nbytes(), tensor.element_size()
    flags = [
        name for name, is_set in [("conj", tensor.is_conj()), ("neg", tensor.is_neg())] if is_set
    ]
    return Layout(
        dtype=str(tensor.dtype).removeprefix("torch."),
        itemsize=itemsize,
        size=tuple(map(int, tensor.shape)),
        stride=tuple(map(int, tensor.stride())),
        offset=int(tensor.storage_offset()),
        cells=nbytes // itemsize,
        spare=nbytes % itemsize,
        flags=tuple(flags),
        storage=storage,
    )


def without_memory(tensor: torch.Tensor) -> str:
    """Return, in a sentence, why there is no storage to look at; empty if there is one."""
    if isinstance(tensor, UninitializedParameter | UninitializedBuffer):
        return (
            "This parameter of a lazy module is not initialized: it has no size and no memory yet."
        )
    if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        return "A torch.func transform holds this tensor in a wrapper: look at it outside."
    if tensor.is_nested:
        return "This is a nested tensor: one buffer for several tensors of different sizes."
    if tensor.layout is not torch.strided:
        return (
            f"This tensor has layout {tensor.layout}: several tensors of indices and values, "
            "not one storage with strides."
        )
    if isinstance(tensor, FakeTensor) or tensor.device.type == "meta":
        kind = "fake" if isinstance(tensor, FakeTensor) else "meta"
        return f"This is a {kind} tensor. It has {_numbers(tensor)}, but no memory."
    if tensor._is_zerotensor():
        return f"This is a tensor of zeros that were never written. It has {_numbers(tensor)}, but no memory."
    if torch._is_functional_tensor(tensor):
        return "A functionalization pass holds this tensor in a wrapper: look at it outside."
    laid = layout_of(tensor)
    if reach(laid) > laid.cells:
        return (
            f"Its storage was resized to {tensor.untyped_storage().nbytes()} bytes. This tensor of "
            f"{_numbers(tensor)} reaches beyond it: there is nothing to read."
        )
    return ""


def _numbers(tensor: torch.Tensor) -> str:
    return (
        f"size {tuple(tensor.shape)}, stride {tuple(tensor.stride())} "
        f"and offset {tensor.storage_offset()}"
    )


def reach(layout: Layout) -> int:
    """Return the number of the cell after the last one that is read; 0 if none is."""
    if not layout.numel:
        return 0
    return layout.address([length - 1 for length in layout.size]) + 1


def effective(layout: Layout) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Return size, stride and offset without the numbers that lead nowhere, as zeros.

    The stride of a dimension of size 1 is never used, and an empty tensor uses no stride and no
    offset. Two tensors of one `effective` layout read the same cells in the same order.
    """
    if not layout.numel:
        return layout.size, (0,) * len(layout.size), 0
    used = zip(layout.size, layout.stride, strict=True)
    return layout.size, tuple(0 if n == 1 else step for n, step in used), layout.offset


def readers(layout: Layout) -> dict[int, list[int]] | None:
    """Return for each cell that is read the elements there, by `order`; None if there are too many."""
    if layout.numel > ENUMERATED:
        return None
    found: dict[int, list[int]] = {}
    for place, index in enumerate(layout.indices()):
        found.setdefault(layout.address(index), []).append(place)
    return found


def memory_format(layout: Layout) -> str:
    """Return "contiguous", "channels_last", "channels_last_3d" or "", by TensorImpl's rules."""
    dims = list(range(len(layout.size)))
    if _runs(layout, dims):
        return "contiguous"
    names = {4: "channels_last", 5: "channels_last_3d"}
    if len(dims) in names and _runs(layout, [0, *dims[2:], 1]):
        return names[len(dims)]
    return ""


def _runs(layout: Layout, order: Sequence[int]) -> bool:
    """Say whether the cells follow each other without gaps, the last dimension of `order` fastest."""
    wanted = 1
    for dim in reversed(order):
        if layout.size[dim] != 1:
            if layout.stride[dim] != wanted and layout.numel:
                return False
            wanted *= layout.size[dim]
    return True


def formula(layout: Layout) -> str:
    """Return which cell an index reads, e.g. "[i, j] is cell 2 + 3·i + 1·j"; empty if none does."""
    if not layout.numel or len(layout.size) > len(_LETTERS):
        return ""
    if not layout.size:
        return f"the one element is cell {layout.offset}"
    letters = _LETTERS[: len(layout.size)]
    terms = [f"{step}·{letter}" for step, letter in zip(layout.stride, letters, strict=True)]
    start = [str(layout.offset)] if layout.offset else []
    return f"[{', '.join(letters)}] is cell {' + '.join([*start, *terms])}"


def sentences(layout: Layout) -> list[str]:
    """Return the layout in words: first what it is, then what is peculiar to it."""
    kind = memory_format(layout)
    lines = [
        f"{layout.dtype}, size {layout.size}, stride {layout.stride}, offset {layout.offset}"
        f"{'; ' if kind else '; not contiguous'}{kind}."
    ]
    where = formula(layout)
    if where:
        lines.append(f"{where[0].upper()}{where[1:]}.")
    lines += _peculiar(layout)
    if "conj" in layout.flags:
        lines.append("Its conj bit is set: what it reads is the conjugate of what is stored.")
    if "neg" in layout.flags:
        lines.append("Its neg bit is set: what it reads is the negative of what is stored.")
    if layout.spare:
        lines.append(f"The last {_count(layout.spare, 'byte')} of the storage are no whole cell.")
    return lines


def _peculiar(layout: Layout) -> Iterator[str]:
    if not layout.numel:
        yield f"It has no elements and reads nothing of {_count(layout.cells, 'cell')}."
        return
    still = [d for d in range(len(layout.size)) if layout.stride[d] == 0 and layout.size[d] > 1]
    for dim in still:
        yield f"Dimension {dim} has stride 0: its {layout.size[dim]} indices read the same cells."
    found = readers(layout)
    if found is None:
        return
    shared = sum(len(places) > 1 for places in found.values())
    moving = layout.numel
    for dim in still:
        moving //= layout.size[dim]
    if len(found) < moving:
        verb = "is" if shared == 1 else "are"
        yield f"Overlap: {_count(shared, 'cell')} of {len(found)} {verb} read by several indices."
    unread = layout.cells - len(found)
    if unread:
        yield f"It reads {len(found)} of the storage's {_count(layout.cells, 'cell')}."


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
