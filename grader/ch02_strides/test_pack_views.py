"""Checks of `pack_views`: what is unpacked on this side, its strides, and how many bytes that took."""

import copy

import pytest
import torch

from grader import Mismatch, about, assert_equal, assert_same_bits, draw_int, draw_order, gate
from grader.ch02_strides.odd_layouts import codes
from grader.ch02_strides.view_inputs import reached, values


@pytest.fixture
def x(rng):
    """float32 (8, 9), no number twice."""
    return torch.randperm(72, generator=rng).float().reshape(8, 9)


def unpacked(packed, tensors):
    """Return the buffers, and the tensors that they make; says what is malformed."""
    with asked(tensors):
        return _unpacked(packed.ask(tensors).value, tensors)


def asked(tensors):
    """Return the rows that show a call."""
    names = {f"x{k}": x for k, x in enumerate(tensors)}
    return about(("call", f"pack_views([{', '.join(names)}])"), *codes(names))


def _unpacked(got, tensors):
    if not (isinstance(got, tuple | list) and len(got) == 2 and isinstance(got[0], list | tuple)):
        raise Mismatch("Not a pair (buffers, layouts) came back.")
    buffers, layouts = got
    for buffer in buffers:
        if not isinstance(buffer, torch.Tensor) or (buffer.dtype, buffer.dim()) != (torch.uint8, 1):
            raise Mismatch("A buffer is not a one-dimensional tensor of dtype uint8.")
        whole = (buffer.stride(), buffer.storage_offset(), buffer.untyped_storage().nbytes())
        what = "A buffer (stride, offset, bytes of its storage) is not all of its storage."
        assert_equal(whole, ((1,), 0, buffer.numel()), what)
    assert_equal(len(layouts), len(tensors), "There are not as many layouts as tensors.")
    made = [
        rebuilt(buffers, layout, tensor) for layout, tensor in zip(layouts, tensors, strict=True)
    ]
    used = sorted({layout[0] for layout in layouts})
    assert_equal(
        used,
        list(range(len(buffers))),
        "The buffers that the layouts name are not those that there are.",
    )
    return buffers, made


def rebuilt(buffers, layout, tensor):
    """Return what a layout makes. `set_` would resize a storage that is too small: so look first."""
    if not isinstance(layout, tuple | list) or len(layout) != 5:
        raise Mismatch("A layout is not (buffer, dtype, size, stride, offset).")
    which, dtype, size, stride, offset = layout
    assert_equal(
        (dtype, tuple(size)),
        (tensor.dtype, tuple(tensor.shape)),
        "A layout has another dtype or size than its tensor.",
    )
    numbers = [which, offset, *stride]
    if len(stride) != len(size) or any(type(n) is not int or n < 0 for n in numbers):
        raise Mismatch("A layout has other strides than one whole number for each dimension.")
    if which >= len(buffers):
        raise Mismatch("A layout names a buffer that is not there.")
    last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    if tensor.numel() and (last + 1) * dtype.itemsize > buffers[which].numel():
        raise Mismatch("A layout reaches beyond its buffer.")
    storage = buffers[which].untyped_storage()
    return torch.empty(0, dtype=dtype).set_(storage, offset, tuple(size), tuple(stride))


def compare_elements(packed, tensors):
    _, made = unpacked(packed, tensors)
    with asked(tensors):
        for k, (got, right) in enumerate(zip(made, tensors, strict=True)):
            with about(of=f"Unpacked, x{k} is not what it was. "):
                assert_same_bits(got, right)
    return made


def compare_sharing(packed, tensors):
    """Each pair has as many bytes in common as before, and each tensor reaches as many."""
    made = compare_elements(packed, tensors)
    with asked(tensors):
        for i in range(len(tensors)):
            for j in range(i + 1):
                pair = f"x{i} reaches" if i == j else f"x{i} and x{j} have in common"
                what = f"Unpacked, {pair} another number of bytes."
                assert_equal(common(made, i, j), common(tensors, i, j), what)


def common(tensors, i, j):
    homes = {tensors[k].untyped_storage()._cdata for k in (i, j)}
    return len(reached(tensors[i]) & reached(tensors[j])) if len(homes) == 1 else 0


def compare_bytes(packed, tensors, sizes):
    buffers, made = unpacked(packed, tensors)
    got = sorted(buffer.numel() for buffer in buffers)
    with asked(tensors):
        assert_equal(got, sorted(sizes), "The buffers have other numbers of bytes.")
    return made


def compare_alone(packed, tensors):
    """Each of these meets no other: it takes its own bytes, and is row-major."""
    made = compare_bytes(packed, tensors, [x.nbytes for x in tensors])
    with asked(tensors):
        for k, x in enumerate(made):
            right = torch.empty(x.shape).stride()
            what = f"Unpacked, x{k} has other strides than a row-major tensor."
            assert_equal(_steps(x, x.stride()), _steps(x, right), what)
    compare_elements(packed, tensors)


def _steps(x, stride):
    """Return strides with "any" for those that do not matter."""
    return tuple(
        "any" if n == 1 or not x.numel() else s for n, s in zip(x.shape, stride, strict=True)
    )


@gate
def test_elements(packed, x, rng):
    """What is unpacked has the shapes, dtypes and elements of what was packed."""
    flags = values(rng, (3, 4), torch.int8) > 0
    compare_elements(packed, [x, flags, x[2:].T, values(rng, (5,), torch.float64)[1:]])
    compare_elements(packed, [x[:, 3:], x.clone()])


def test_alone(packed, x, rng):
    """A tensor that meets no other takes the bytes of its elements, row-major, with gaps or without."""
    for view in (x[2:4], x[:, 3], x[1::3, ::2], x.T[2:], x[5, 5], x.T, values(rng, (6, 5)).T[:, 1]):
        compare_alone(packed, [view])
    for whole in (values(rng, (3, 4)).T, values(rng, (2, 3, 4)).permute(2, 0, 1)):
        compare_alone(packed, [whole])
    compare_alone(packed, [x[:2], x[4:, ::2], x[3, 3:], x[2, 8], x.clone()[1:, :1]])
    compare_alone(packed, [x.view(-1)[::2], x.view(-1)[1::2]])
    twins = [x[1:3].clone(), x[1:3], x[1:3].clone()]  # equal, and not the same memory
    compare_alone(packed, twins)


def test_sharing(packed, x, rng):
    """Tensors that met still meet, byte for byte."""
    compare_sharing(packed, [x[1:4], x[3:6], x[:, 2]])
    for _ in range(4):
        first, left = draw_int(rng, 0, 5), draw_int(rng, 0, 6)
        views = [
            x[first : first + 3, left:],
            x[first + draw_int(rng, 0, 2)],
            x[:, left + draw_int(rng, 0, 2)],
            x.T[left:, first:],
            x.clone()[first:],
        ]
        compare_sharing(packed, views)


def test_writes(packed, x):
    """A write through one of them is seen in the others, as it was before."""
    tensors = [x[1:4], x[2:6, ::2], x.T[3], x[7:], x.view(torch.int32)[3]]
    for which in range(len(tensors)):
        originals = copy.deepcopy(tensors)
        _, made = unpacked(packed, tensors)
        made = copy.deepcopy(made)
        for written in (originals, made):
            written[which].mul_(2).sub_(7)
        what = f"After x{which}.mul_(2).sub_(7), x{{}} is not what it would have been. "
        with asked(tensors):
            for k, (got, right) in enumerate(zip(made, originals, strict=True)):
                with about(of=what.format(k)):
                    assert_same_bits(got, right)


def test_groups(packed, x, rng):
    """A group takes the bytes from its first to its last; links make one group, a storage does not."""
    row, start = x.view(-1), draw_int(rng, 1, 9)
    a, b, c = row[start : start + 9], row[start + 8 : start + 20], row[start + 19 : start + 24]
    compare_bytes(packed, [a, b, c], [24 * 4])
    compare_bytes(packed, [a, c, b], [24 * 4])
    compare_bytes(packed, [a, c], [9 * 4, 5 * 4])
    far = row[60:70]
    compare_bytes(packed, [a, far, c, b, far[3:], row[50:55]], [24 * 4, 10 * 4, 5 * 4])
    compare_sharing(packed, [a, far, c, b, far[3:], row[50:55]])
    # two pairs, each between the cells of the other
    even, odd = row[::2], row[1::2]
    both = [even[3:20], odd[1:], even[10:30], odd[:9]]
    compare_bytes(packed, both, [(58 - 6 + 1) * 4, 71 * 4])
    compare_sharing(packed, both)
    chain = [row[k : k + 3] for k in (20, 8, 14, 10, 18, 12, 16)]
    compare_bytes(packed, [chain[k] for k in draw_order(rng, 7)], [15 * 4])


def test_dtypes(packed, x):
    """Groups of several dtypes: counted in bytes, and begun where the widest may begin."""
    raw = x.view(torch.uint8).view(-1)
    wide = x[:, :8].contiguous().view(torch.float64)
    narrow = wide.view(torch.uint8).view(-1)
    for tensors, sizes in (
        ([raw[5:9], x.view(-1)[2:4]], [16 - 4]),
        ([x.view(-1)[3:5], raw[13:15], raw[15:30]], [30 - 12]),
        ([narrow[11:40], wide[0, 3:]], [40 - 8]),
        ([wide.view(-1)[3:5], narrow[13:30], wide.view(torch.int16).view(-1)[10:14]], [40 - 8]),
        ([raw[7:11], raw[10:12]], [5]),
        ([raw[7:11], x.view(-1)[5:], x.clone().view(torch.int16)[2]], [4, 67 * 4, 36]),
    ):
        compare_bytes(packed, tensors, sizes)
        compare_sharing(packed, tensors)


def test_overlapping_and_empty(packed, x):
    """Expanded tensors and windows stay what they are; empty ones and single numbers too."""
    row = x.view(-1)
    lonely = row[30:50].unfold(0, 4, 2)
    compare_bytes(packed, [lonely], [20 * 4])
    compare_sharing(packed, [lonely, row[60:61].expand(5)])
    compare_bytes(packed, [x[2:3].expand(6, 9), row[60:61].expand(5)], [9 * 4, 4])
    compare_sharing(packed, [x[2:3].expand(6, 9), row[22:30], row[22:30]])
    empty = x[3:3]
    compare_bytes(packed, [x[1], empty, x[5, 5], torch.zeros(0, 3)], [9 * 4, 0, 4, 0])
    compare_sharing(packed, [x[1], empty, x[5, 5], torch.zeros(0, 3), x[1, 1:2].expand(0)])
    assert_equal([list(part) for part in packed.ask([]).value], [[], []])
