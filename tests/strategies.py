"""Hypothesis strategies: tensors of every dtype with awkward layouts, and plain data around them.

Layouts are awkward by default. A tensor is drawn as a window on a storage of random bytes: sizes of
0 and 1, any strides (0 overlaps, large ones leave gaps), an offset, and room left behind it.
"""

import math
import struct
import warnings

import torch
from hypothesis import strategies as st

from grader.evidence.wire.tensors import DTYPES

DENSE_DTYPES = sorted(
    {dtype for name, dtype in DTYPES.items() if not name.startswith(("q", "bits"))}, key=str
)
"""Every dtype of an ordinary tensor. Quantized ones and uninterpreted bits are left out."""


def _usable(dtype):
    """Say whether a storage of ours can be read as this dtype at all."""
    storage = torch.zeros(64, dtype=torch.uint8).untyped_storage()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # complex32 calls itself experimental, once
            torch.empty(0, dtype=dtype).set_(storage, 0, [1], [1])
    except (RuntimeError, TypeError):
        return False
    return True


DENSE_DTYPES = [dtype for dtype in DENSE_DTYPES if _usable(dtype)]

ODD_FLOATS = [math.nan, -math.nan, math.inf, -math.inf, -0.0, 5e-324, 1.7976931348623157e308]


@st.composite
def layouts(draw, max_dims=4, max_side=4):
    """Sizes, strides and an offset, in elements; and how many elements the storage must have."""
    sizes = draw(st.lists(st.integers(0, max_side), max_size=max_dims))
    kind = draw(st.sampled_from(["dense", "permuted", "expanded", "any"]))
    if kind == "any":
        strides = draw(st.lists(st.integers(0, 7), min_size=len(sizes), max_size=len(sizes)))
    else:
        order = list(range(len(sizes)))
        if kind == "permuted":
            order = draw(st.permutations(order))
        strides = [0] * len(sizes)
        step = 1
        for dim in reversed(order):
            strides[dim] = step
            step *= max(sizes[dim], 1)
        if kind == "expanded" and sizes:
            strides[draw(st.integers(0, len(sizes) - 1))] = 0
    offset = draw(st.integers(0, 5))
    last = sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True) if size)
    needed = offset + (last + 1 if all(sizes) else 0)
    return sizes, strides, offset, needed


@st.composite
def storages(draw, nbytes):
    """A storage of random bytes: every pattern of every dtype is as likely as any other."""
    data = draw(st.binary(min_size=nbytes, max_size=nbytes))
    if not data:
        return torch.empty(0, dtype=torch.uint8).untyped_storage()
    return torch.frombuffer(bytearray(data), dtype=torch.uint8).untyped_storage()


@st.composite
def tensors(draw, dtypes=DENSE_DTYPES, flags=True):
    """A tensor of any dtype and layout; `flags` adds conj and neg bits, requires_grad and .grad."""
    dtype = draw(st.sampled_from(dtypes))
    sizes, strides, offset, needed = draw(layouts())
    spare = draw(st.integers(0, 3))
    storage = draw(storages((needed + spare) * dtype.itemsize))
    tensor = torch.empty(0, dtype=dtype).set_(storage, offset, sizes, strides)
    return draw(_flagged(tensor)) if flags else tensor


@st.composite
def _flagged(draw, tensor):
    if tensor.dtype.is_complex and draw(st.booleans()):
        tensor = tensor.conj()
    if tensor.dtype in (torch.float32, torch.float64, torch.complex64) and draw(st.booleans()):
        tensor = torch._neg_view(tensor)
    if tensor.dtype in (torch.float16, torch.bfloat16, torch.float32, torch.complex64):
        match draw(st.sampled_from(["plain", "wants grad", "has grad", "parameter", "result"])):
            case "wants grad":
                tensor = tensor.detach().requires_grad_()
            case "has grad":
                tensor = tensor.detach().requires_grad_()
                tensor.grad = torch.ones_like(tensor)
            case "parameter":
                tensor = torch.nn.Parameter(tensor.detach(), requires_grad=draw(st.booleans()))
            case "result":
                tensor = tensor.detach().requires_grad_().view_as(tensor)
    return tensor


@st.composite
def relatives(draw, dtypes=(torch.float32, torch.int16, torch.uint8)):
    """Two to four tensors that share one storage, each with its own layout and dtype."""
    windows = draw(st.lists(st.tuples(st.sampled_from(dtypes), layouts()), min_size=2, max_size=4))
    nbytes = max(layout[3] * dtype.itemsize for dtype, layout in windows)
    storage = draw(storages(max(nbytes, 1)))
    return [
        torch.empty(0, dtype=dtype).set_(storage, offset, sizes, strides)
        for dtype, (sizes, strides, offset, _) in windows
    ]


def texts():
    """Text of any code points, lone surrogates included."""
    return st.text(st.characters(exclude_categories=()), max_size=12)


def floats():
    """Every float, NaN of every payload included."""
    patterns = st.integers(0, 2**64 - 1).map(lambda n: struct.unpack(">d", n.to_bytes(8, "big"))[0])
    return st.one_of(st.sampled_from(ODD_FLOATS), st.floats(), patterns)


def _scalars():
    return st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.integers(-(2**2000), 2**2000),
        floats(),
        st.builds(complex, floats(), floats()),
        texts(),
        st.binary(max_size=12),
        st.sampled_from(sorted(set(DTYPES.values()), key=str)),
        st.sampled_from([torch.device("cpu"), torch.device("cuda", 1), torch.device("meta")]),
        st.sampled_from([torch.contiguous_format, torch.channels_last, torch.strided]),
        st.builds(
            slice, st.none() | st.integers(), st.none() | st.integers(), st.none() | st.integers()
        ),
        st.builds(range, st.integers(-9, 9), st.integers(-9, 9), st.integers(1, 9)),
        st.lists(st.integers(0, 9), max_size=4).map(torch.Size),
        st.just(...),
    )


def _keys():
    simple = st.one_of(st.none(), st.booleans(), st.integers(), texts(), st.binary(max_size=4))
    return st.one_of(simple, st.tuples(simple, simple), st.frozensets(st.integers(), max_size=3))


def values(max_leaves=12):
    """Plain data as probes return it: scalars and tensors in nested containers."""
    return st.recursive(
        st.one_of(_scalars(), tensors()),
        lambda inner: st.one_of(
            st.lists(inner, max_size=4),
            st.lists(inner, max_size=4).map(tuple),
            st.dictionaries(_keys(), inner, max_size=4),
            st.sets(_keys(), max_size=4),
            st.frozensets(_keys(), max_size=4),
        ),
        max_leaves=max_leaves,
    )
