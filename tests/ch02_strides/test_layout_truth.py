"""Layouts: the reference solutions agree with torch on tens of thousands of random tensors."""

import itertools
import math
import random
from functools import partial

import numpy
import pytest
import torch

from tests import references

reference = partial(references.reference, "ch02_strides")


@pytest.fixture
def draw():
    """Python's generator, the same for every test and run."""
    return random.Random(2)


def layout(draw, dims, largest=4):
    """Return sizes and strides: half of them any numbers, half as permuting and slicing leave them."""
    size = [
        draw.choice([0, 1, 1, *range(2, largest + 1), *range(2, largest + 1)]) for _ in range(dims)
    ]
    if draw.random() < 0.85:
        size = [max(n, 1) for n in size]
    if draw.random() < 0.3:
        return tuple(size), tuple(draw.randrange(0, 13) for _ in size)
    stride, step = [0] * dims, draw.choice([1, 1, 1, 2, 3])
    order = list(range(dims))
    if draw.random() < 0.5:
        draw.shuffle(order)
    for dim in reversed(order):
        stride[dim] = step
        step *= max(size[dim], 1) + (draw.random() < 0.2)
        if size[dim] == 1 and draw.random() < 0.5:
            stride[dim] = draw.randrange(0, 40)
        if draw.random() < 0.07:
            stride[dim] = 0
    return tuple(size), tuple(stride)


def tensor(draw, dims):
    """Return an int32 tensor of any layout over a storage of its own, with different numbers."""
    size, stride = layout(draw, dims)
    offset = draw.randrange(0, 5)
    extent = offset + 1 + sum(max(n - 1, 0) * s for n, s in zip(size, stride, strict=True))
    return torch.arange(100, 100 + extent, dtype=torch.int32).as_strided(size, stride, offset)


def recut(draw, numel):
    """Return a random size with that many elements."""
    size, left = [], numel
    while left > 1:
        size.append(draw.choice([n for n in range(2, left + 1) if left % n == 0]))
        left //= size[-1]
    if numel == 0:
        size = [draw.choice([1, 2, 3]) for _ in range(2)] + [0]
        draw.shuffle(size)
    for _ in range(draw.choice([0, 0, 1, 2])):
        size.insert(draw.randrange(len(size) + 1), 1)
    return tuple(size)


def same_view(got, expected):
    """Say whether two views have the same elements at the same places. Free strides are free."""
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return False
    if not got.numel():
        return True
    strides = zip(got.stride(), expected.stride(), got.shape, strict=True)
    return (
        got.untyped_storage().data_ptr() == expected.untyped_storage().data_ptr()
        and got.storage_offset() == expected.storage_offset()
        and all(one == other or n == 1 for one, other, n in strides)
    )


def test_read_element(draw):
    read_element = reference("read_element")
    for dtype in (torch.uint8, torch.bfloat16, torch.int32, torch.float64) * 60:
        x = tensor(draw, draw.randrange(0, 4)).to(dtype)
        x = (
            x.permute(*draw.sample(range(x.dim()), x.dim()))[draw.randrange(0, 2) :]
            if x.dim()
            else x
        )
        memory = bytes(x.untyped_storage().tolist())
        told = memory, tuple(x.shape), x.stride(), x.storage_offset(), x.element_size()
        for index in itertools.product(*(range(-n, n) for n in x.shape)):
            found = read_element(*told, index)
            assert torch.frombuffer(bytearray(found), dtype=dtype).item() == x[index].item()
        if x.dim():
            for wrong in (x.shape[0], -x.shape[0] - 1):
                with pytest.raises(IndexError):
                    read_element(*told, (wrong, *[0] * (x.dim() - 1)))


def test_dense_stride_is_empty_permuted(draw):
    dense_stride = reference("dense_stride")
    for _ in range(3000):
        size = [draw.randrange(0, 6) for _ in range(draw.randrange(0, 6))]
        order = draw.sample(range(len(size)), len(size))
        assert dense_stride(size, order) == torch.empty_permuted(size, order).stride()


def test_is_contiguous_on_20_000_layouts(draw):
    is_contiguous = reference("is_contiguous")
    seen = {True: 0, False: 0}
    for number in range(20_000):
        size, stride = layout(draw, 4 if number % 2 else draw.randrange(0, 6), largest=3)
        x = torch.empty_strided(size, stride)
        if number % 3 == 0 and x.dim() == 4:
            x = torch.empty(size).to(memory_format=torch.channels_last)[
                :, :, draw.randrange(0, 2) :
            ]
        for last in (False, True):
            wanted = torch.channels_last if last else torch.contiguous_format
            answer = x.is_contiguous(memory_format=wanted)
            seen[answer] += 1
            assert is_contiguous(tuple(x.shape), x.stride(), last) is answer
    assert min(seen.values()) > 5000


def test_view_of_is_the_method(draw):
    view_of = reference("view_of")
    for _ in range(3000):
        x = tensor(draw, draw.randrange(1, 5))
        dims = range(-x.dim(), x.dim())
        dim, other = draw.choice(dims), draw.choice(dims)
        n = x.shape[dim]
        window = draw.randrange(0, n + 1)
        calls = [
            ("transpose", dim, other),
            ("permute", *draw.sample(range(x.dim()), x.dim())),
            ("narrow", dim, window, draw.randrange(0, n - window + 1)),
            ("unfold", dim, window, draw.randrange(1, 5)),
            ("expand", *draw.sample([0, 1, 2, 5], 2), *(draw.choice([-1, m]) for m in x.shape)),
        ]
        if n:
            calls.append(("select", dim, draw.randrange(-n, n)))
        if (dim - other) % x.dim():
            calls.append(("diagonal", draw.randrange(-4, 5), dim, other))
        for op, *args in calls:
            assert same_view(view_of(x, op, *args), getattr(x, op)(*args)), (x.shape, op, args)


def test_index_view_is_brackets(draw):
    index_view = reference("index_view")
    refused = 0
    for _ in range(6000):
        x = tensor(draw, draw.randrange(0, 5))
        items = []
        for _ in range(draw.randrange(0, x.dim() + 2)):
            ends = [draw.choice([None, draw.randrange(-6, 7)]) for _ in range(2)]
            step = draw.choice([None, 1, 2, 3])
            items.append(draw.choice([None, draw.randrange(-4, 4), slice(*ends, step)]))
        if draw.random() < 0.4:
            items.insert(draw.randrange(len(items) + 1), ...)
        try:
            expected = x[tuple(items)]
        except IndexError:
            refused += 1
            with pytest.raises(IndexError):
                index_view(x, tuple(items))
        else:
            assert same_view(index_view(x, tuple(items)), expected), (x.shape, items)
    assert refused > 500


def test_share_memory_is_numpys(draw):
    share_memory = reference("share_memory")
    seen = {True: 0, False: 0}
    memory = torch.zeros(200, dtype=torch.uint8)
    for _ in range(3000):
        pair = []
        for _ in range(2):
            x = memory.view(draw.choice([torch.uint8, torch.int16, torch.int32, torch.int64]))
            size = [draw.choice([0, 1, 2, 3, 3]) for _ in range(draw.randrange(0, 3))]
            stride = [draw.randrange(0, max(2, len(x) // 6)) for _ in size]
            pair.append(x.as_strided(size, stride, draw.randrange(0, len(x) // 5)))
        answer = numpy.shares_memory(pair[0].numpy(), pair[1].numpy())
        seen[answer] += 1
        assert share_memory(*pair) is answer
    assert min(seen.values()) > 500


def test_broadcast_strides_is_broadcast_tensors(draw):
    broadcast_strides = reference("broadcast_strides")
    refused = 0
    for _ in range(6000):
        common = [draw.choice([0, 1, 2, 3, 4]) for _ in range(draw.randrange(0, 5))]
        layouts = []
        for _ in range(draw.randrange(1, 5)):
            size = [draw.choice([n, n, 1, draw.randrange(0, 4) if n > 2 else n]) for n in common]
            size = size[draw.randrange(0, len(size) + 1) :] if draw.random() < 0.5 else size
            layouts.append((tuple(size), tuple(draw.randrange(0, 20) for _ in size)))
        try:
            views = torch.broadcast_tensors(*(torch.empty_strided(*pair) for pair in layouts))
        except RuntimeError:
            refused += 1
            with pytest.raises(RuntimeError):
                broadcast_strides(layouts)
            continue
        size, strides = broadcast_strides(layouts)
        assert size == views[0].shape
        for stride, view in zip(strides, views, strict=True):
            pairs = zip(stride, view.stride(), size, strict=True)
            assert all(one == other or n in (0, 1) for one, other, n in pairs)
    assert refused > 500


def views_of(draw, count):
    """Yield that many (size, stride, new size), half of them hardly changed."""
    for _ in range(count):
        size, stride = layout(draw, draw.randrange(0, 6))
        new_size = recut(draw, math.prod(size))
        if len(size) > 1 and draw.random() < 0.5 and 0 not in size:
            at = draw.randrange(len(size) - 1)
            new_size = (*size[:at], size[at] * size[at + 1], *size[at + 2 :])
        yield size, stride, new_size


def test_view_stride_is_torchs_on_40_000_layouts(draw):
    view_stride = reference("view_stride")
    seen = {"view": 0, "refused": 0}
    for size, stride, new_size in views_of(draw, 40_000):
        got = view_stride(size, stride, new_size)
        try:
            expected = torch.empty_strided(size, stride).view(new_size).stride()
        except RuntimeError:
            seen["refused"] += 1
            assert got is None, (size, stride, new_size)
            continue
        seen["view"] += 1
        assert got is not None and len(got) == len(new_size), (size, stride, new_size)
        if 0 not in size:
            pairs = zip(got, expected, new_size, strict=True)
            assert all(one == other or n == 1 for one, other, n in pairs), (size, stride, new_size)
    assert min(seen.values()) > 8000


def test_view_stride_refuses_only_what_cannot_be(draw):
    """An oracle without any rule: are the places, in row-major order, reached by some strides?"""
    view_stride = reference("view_stride")
    for size, stride, new_size in views_of(draw, 4000):
        if math.prod(size) == 0:
            continue
        wanted = places(size, stride)
        inner = [math.prod(new_size[k + 1 :]) for k in range(len(new_size))]
        steps = [
            wanted[i] - wanted[0] if n > 1 else 0 for n, i in zip(new_size, inner, strict=True)
        ]
        possible = places(new_size, steps) == wanted
        assert (view_stride(size, stride, new_size) is not None) == possible


def places(size, stride):
    found = [0]
    for n, s in zip(size, stride, strict=True):
        found = [place + i * s for place in found for i in range(n)]
    return found


def test_view_stride_with_a_size_left_open(draw):
    view_stride = reference("view_stride")
    for _ in range(6000):
        size, stride = layout(draw, draw.randrange(0, 4))
        new_size = tuple(
            draw.choice([-2, -1, -1, 0, 1, 2, 3, 4, 6]) for _ in range(draw.randrange(0, 4))
        )
        try:
            expected = torch.empty_strided(size, stride).view(new_size).shape
        except RuntimeError as error:
            if "not compatible" in str(error):
                assert view_stride(size, stride, new_size) is None
            else:
                with pytest.raises(RuntimeError):
                    view_stride(size, stride, new_size)
        else:
            assert len(view_stride(size, stride, new_size)) == len(expected)


def test_reshape_aliases_and_copies_where_torch_does(draw):
    reshape = reference("reshape")
    seen = {True: 0, False: 0}
    for _ in range(4000):
        x = tensor(draw, draw.randrange(0, 5))
        size = recut(draw, x.numel())
        if size and x.numel() and draw.random() < 0.3:
            at = draw.randrange(len(size))
            size = (*size[:at], -1, *size[at + 1 :])
        got, expected = reshape(x, size), x.reshape(size)
        assert got.shape == expected.shape and torch.equal(got, expected)
        if x.numel():
            shared = expected.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
            seen[shared] += 1
            assert (got.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()) == shared
            assert same_view(got, expected) if shared else got.is_contiguous()
    assert min(seen.values()) > 500


def test_is_view_is_what_happens(draw):
    is_view = reference("is_view")
    seen = {True: 0, False: 0}
    for _ in range(6000):
        size, stride = layout(draw, draw.randrange(1, 5))
        if 0 in size:
            continue
        x = torch.empty_strided(size, stride)
        first = draw.randrange(-x.dim(), x.dim())
        last = draw.randrange(first % x.dim(), x.dim()) - draw.choice([0, x.dim()])
        for op, *args in (
            ("flatten",),
            ("flatten", first),
            ("flatten", first, last),
            ("ravel",),
            ("contiguous",),
            ("reshape", *(recut(draw, x.numel()) or (1,))),
            ("repeat", *x.shape),
            ("flip", first),
            ("roll", draw.randrange(-3, 4), first),
            ("unfold", first, 1, 2),
        ):
            shared = getattr(x, op)(*args).untyped_storage().data_ptr()
            answer = shared == x.untyped_storage().data_ptr()
            seen[answer] += 1
            assert is_view(size, stride, op, *args) is answer, (size, stride, op, args)
    assert min(seen.values()) > 10_000
