"""Tensors as plain records: dtype, layout, flags and a numbered storage; and back, trusting nothing."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

NUMEL_LIMIT = 2**26
"""Most logical elements of a tensor: an expanded view of four bytes may claim any number,
and comparing it would take that long."""

DIM_LIMIT = 64
"""PyTorch itself goes no further in most kernels."""

DTYPES: dict[str, torch.dtype] = {
    name: value
    for name, value in sorted(vars(torch).items())
    if isinstance(value, torch.dtype) and str(value) == f"torch.{name}"
}

QUANTIZED = frozenset({torch.qint8, torch.qint32, torch.quint8, torch.quint2x4, torch.quint4x2})
"""Without their quantizer, tensors of these end in assertions of torch's own. None is sent."""


class Refused(Exception):
    """This value is not plain data and does not cross; the message names what it is."""


class Malformed(Exception):
    """These bytes are no encoding of ours."""


@dataclass(frozen=True)
class Facts:
    """What the sender said of a tensor beyond its values and layout. A claim, not a proof.

    `storage` numbers storages within one message; `aliases` is the number of the input storage
    that the tensor lives in, or None.
    """

    storage: int
    aliases: int | None
    requires_grad: bool
    is_leaf: bool
    is_parameter: bool
    version: int | None
    grad_fn: str | None
    has_grad: bool


def facts(tensor: torch.Tensor) -> Facts:
    """Return the facts that came with a decoded tensor."""
    found = tensor.__dict__.get("_facts")
    if not isinstance(found, Facts):
        raise TypeError("facts() wants a tensor that came back as evidence")
    return found


def storage_bytes(storage: torch.UntypedStorage) -> bytes:
    """Return a copy of the storage's bytes."""
    count = storage.nbytes()
    return ctypes.string_at(storage.data_ptr(), count) if count else b""


def storage_from(data: bytes) -> torch.UntypedStorage:
    """Return a new storage that holds `data`: torch's own, aligned and resizable like any other."""
    storage = torch.empty(len(data), dtype=torch.uint8).untyped_storage()
    if data:
        ctypes.memmove(storage.data_ptr(), data, len(data))
    return storage


def describe(
    tensor: torch.Tensor,
    number: Callable[[torch.UntypedStorage], int],
    child: Callable[[Any], Any],
) -> dict[str, Any]:
    """Return the record of a tensor; `number` numbers its storage, `child` encodes its `.grad`."""
    _refuse_what_is_not_plain(tensor)
    plain = tensor.detach()
    _refuse_what_cannot_be_rebuilt(plain)
    record: dict[str, Any] = {
        "s": number(plain.untyped_storage()),
        "t": str(plain.dtype).removeprefix("torch."),
        "n": list(plain.shape),
        "r": list(plain.stride()),
        "o": plain.storage_offset(),
    }
    if tensor.is_conj():
        record["conj"] = True
    if tensor.is_neg():
        record["neg"] = True
    if tensor.requires_grad:
        record["grad?"] = True
    if not tensor.is_leaf:
        record["fn"] = tensor.grad_fn.name() if tensor.grad_fn is not None else "unknown"
    if isinstance(tensor, torch.nn.Parameter):
        record["param"] = True
    if not tensor.is_inference() and tensor._version:
        record["v"] = tensor._version
    if tensor.is_inference():
        record["v"] = None
    if tensor.is_leaf and tensor.grad is not None:
        record["grad"] = child(tensor.grad)
    return record


def _refuse_what_is_not_plain(tensor: torch.Tensor) -> None:
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
        raise Refused(f"a tensor of class {type(tensor).__name__}, a subclass of torch.Tensor")
    if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        raise Refused("a tensor that a torch.func transform is still holding")
    if tensor.layout is not torch.strided:
        raise Refused(f"a tensor of layout {tensor.layout}")
    if tensor.is_quantized:
        raise Refused(f"a quantized tensor ({tensor.dtype})")
    if tensor.is_nested:
        raise Refused("a nested tensor")
    if tensor.device.type != "cpu":
        raise Refused(f"a tensor on device {tensor.device}")
    if tensor._is_zerotensor() or torch._is_functional_tensor(tensor):
        raise Refused("a tensor without memory of its own")


def _refuse_what_cannot_be_rebuilt(tensor: torch.Tensor) -> None:
    sizes, strides = list(tensor.shape), list(tensor.stride())
    nbytes = tensor.untyped_storage().nbytes()
    try:
        _sizes(sizes)
        _check_extent(sizes, strides, int(tensor.storage_offset()), tensor.element_size(), nbytes)
    except Malformed as error:
        raise Refused(str(error)) from None


def rebuild(
    record: dict[str, Any],
    storages: list[tuple[torch.UntypedStorage, int | None]],
    child: Callable[[Any], Any],
) -> torch.Tensor:
    """Return the tensor of a record. Raises `Malformed` unless every number fits."""
    if not isinstance(record, dict):
        raise Malformed("a tensor that is no record")
    index = _whole(record.get("s"), "storage number")
    if index >= len(storages):
        raise Malformed("a tensor names a storage that is not there")
    storage, aliases = storages[index]
    dtype = DTYPES.get(str(record.get("t")))
    if dtype is None or dtype in QUANTIZED:
        raise Malformed("a tensor has no known dtype")
    sizes, strides = _sizes(record.get("n")), _sizes(record.get("r"))
    offset = _whole(record.get("o"), "storage offset")
    _check_extent(sizes, strides, offset, dtype.itemsize, storage.nbytes())
    tensor = torch.empty(0, dtype=dtype).set_(storage, offset, sizes, strides)
    if record.get("conj") is True:
        if not dtype.is_complex:
            raise Malformed("a conj bit on a tensor that is not complex")
        tensor = tensor.conj()
    if record.get("neg") is True:
        if not (dtype.is_floating_point or dtype.is_complex):
            raise Malformed("a neg bit on a tensor that is neither floating point nor complex")
        tensor = torch._neg_view(tensor)
    return _with_flags(tensor, record, index, aliases, child)


def _with_flags(
    tensor: torch.Tensor,
    record: dict[str, Any],
    index: int,
    aliases: int | None,
    child: Callable[[Any], Any],
) -> torch.Tensor:
    wants_grad = record.get("grad?") is True
    leaf = "fn" not in record
    if wants_grad and not (tensor.is_floating_point() or tensor.is_complex()):
        raise Malformed("requires_grad on a tensor of whole numbers")
    if record.get("param") is True:
        tensor = torch.nn.Parameter(tensor, requires_grad=wants_grad)
    elif wants_grad and leaf:
        tensor = tensor.detach().requires_grad_(True)
    if "grad" in record:
        grad = child(record["grad"])
        if not isinstance(grad, torch.Tensor) or not tensor.requires_grad:
            raise Malformed("a .grad that is no tensor, or on a tensor that wants none")
        if grad.shape != tensor.shape or grad.dtype != tensor.dtype:
            raise Malformed("a .grad of another shape or dtype than its tensor")
        tensor.grad = grad
    version = record.get("v", 0)
    tensor.__dict__["_facts"] = Facts(
        storage=index,
        aliases=aliases,
        requires_grad=wants_grad,
        is_leaf=leaf,
        is_parameter=record.get("param") is True,
        version=None if version is None else _whole(version, "version"),
        grad_fn=None if leaf else str(record["fn"]),
        has_grad="grad" in record,
    )
    return tensor


def _sizes(value: object) -> list[int]:
    if not isinstance(value, list) or len(value) > DIM_LIMIT:
        raise Malformed("sizes and strides are short lists of whole numbers")
    return [_whole(item, "size or stride") for item in value]


def _whole(value: object, what: str) -> int:
    if type(value) is not int or not 0 <= value < 2**62:
        raise Malformed(f"a {what} that is no whole number")
    return value


def _check_extent(
    sizes: list[int], strides: list[int], offset: int, itemsize: int, nbytes: int
) -> None:
    if len(sizes) != len(strides):
        raise Malformed("as many strides as sizes are needed")
    numel = math.prod(sizes)
    if numel > NUMEL_LIMIT or any(size > NUMEL_LIMIT for size in sizes):
        raise Malformed(f"a tensor of {numel} elements is over the limit of {NUMEL_LIMIT}")
    if any(stride > 2**48 for stride in strides) or offset > 2**48:
        raise Malformed("a stride or offset that no storage has room for")
    if numel:
        last = offset + sum(
            (size - 1) * stride for size, stride in zip(sizes, strides, strict=True)
        )
        if (last + 1) * itemsize > nbytes:
            raise Malformed("a tensor reaches beyond its storage")
