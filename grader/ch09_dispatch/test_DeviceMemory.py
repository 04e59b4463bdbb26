"""Checks of `DeviceMemory`: programs on the device against the same on the CPU, and the chip's blocks."""

import pytest
import torch

from grader import (
    about,
    assert_equal,
    assert_holds,
    assert_same_bits,
    claimed,
    draw_int,
    gate,
    odd_tensors,
    points,
    whole_numbers,
)
from grader.ch09_dispatch.probes.device_memory import STORIES, expected_arrays
from grader.ch09_dispatch.probes.plugging import run_lines


@pytest.fixture
def x(rng):
    return whole_numbers(rng, (3, 4), 1, 99)


@pytest.fixture
def xy(rng):
    return {name: whole_numbers(rng, (3, 4), 1, 99) for name in "xy"}


READ = [
    "x.t()",
    "x[1:, ::2]",
    "x[:, 1]",
    "x.reshape(-1)[3:]",
    "x.t().reshape(2, 6)",
    "x[:, :2].reshape(2, 3)",
    "x[1].expand(2, 4)",
    "x.detach()",
    "x.diagonal()",
    "x.unsqueeze(1)",
    "x[1:].t()[2:]",
    "x[:, 2:].clone()",
]
"""Views, and copies that read through them. Where they are not one, `reshape` copies."""

WRITTEN = [
    "x.t()[1].copy_(y[0, :3]), x",
    "x.view(-1)[4:6].copy_(x[0, :2]), x",
    "x[::2, 2:].copy_(y.cpu()[::2, 2:]), x",
    "x.detach()[2, :2].copy_(y[1, 1:3]), x",
    "x.copy_(y), y.copy_(x.t().clone().t()), x",
]
"""Writes through a view, and the tensors afterwards."""

COPIED = [
    "x.to(torch.float64)",
    "x.to(device, torch.float64)",
    "x.half()",
    "x.long()",
    "x.to(torch.bool)",
    "x.copy_(y[0])",
    "x.t().copy_(y.t()[:, :1]), x",
    "torch.zeros(4, 3, dtype=torch.int64).t().copy_(x)",
    "x.copy_(y.long().cpu())",
]
"""Copies within the device, to it and from it, with other dtypes, strides and sizes on both sides."""


def same_tensors(got, expected, what):
    assert_equal(len(got), len(expected), f"{what}: the number of results.")
    for at, (one, other) in enumerate(zip(got, expected, strict=True)):
        with about(of=f"{what}, result {at}. " if len(expected) > 1 else f"{what}. "):
            assert_equal(str(one.dtype), str(other.dtype), "The dtype.")
            assert_same_bits(one, other)


def as_on_the_cpu(memory_lines, lines, inputs):
    expected = run_lines(lines, inputs, "cpu")
    for line, got, other in zip(
        lines, memory_lines.ask(lines, inputs).value, expected, strict=True
    ):
        same_tensors(got, other, f"{line}, with x and y on the device, (3, 4) in float32")


@gate
def test_there_and_back(memory_round_trips, x):
    """`x.to("abacus").cpu()` gives what went in."""
    [got] = memory_round_trips.ask([x]).value
    assert_same_bits(got, x)


def test_layouts(memory_round_trips, rng):
    """There and back with any strides, any size and any dtype that NumPy has."""
    inputs = list(odd_tensors(rng).values())
    wide = whole_numbers(rng, (4, 6), 0, 1)
    dtypes = (torch.float64, torch.float16, torch.int64, torch.uint8, torch.bool)
    inputs += [wide.to(dtype).t()[1:] for dtype in dtypes] + [wide[2, 3]]
    for x, got in zip(inputs, memory_round_trips.ask(inputs).value, strict=True):
        case = f"{x.dtype}, shape {tuple(x.shape)}, strides {x.stride()}, there and back. "
        with about(of=case):
            assert_equal(str(got.dtype), str(x.dtype), "The dtype.")
            assert_same_bits(got, x)


def test_views_read(memory_lines, xy):
    """A view has its own elements: transposed, sliced with steps, selected, expanded."""
    as_on_the_cpu(memory_lines, READ, xy)


def test_views_write(memory_lines, xy):
    """What is written through a view is seen by its base and by all other views."""
    as_on_the_cpu(memory_lines, WRITTEN, xy)


def test_copies(memory_lines, memory_apart, xy):
    """A copy converts the dtype, broadcasts, takes any strides, and has memory of its own."""
    as_on_the_cpu(memory_lines, COPIED, xy)
    got = memory_apart.ask(xy["x"]).value
    with about(of="y = x.to('abacus'); x.zero_(). The values of y. "):
        assert_same_bits(got["there"], xy["x"])
    with about(of="y = x.to('abacus'); z = y.cpu(); y.copy_(torch.zeros(3, 4)). The values of z. "):
        assert_same_bits(got["back"], xy["x"])
    assert_holds(
        got["the target"], "`copy_from(source, target)` returned another object than target."
    )


def told(memory_lives, story, expected):
    """Compare a story's blocks, step by step, and what its tensors held."""
    got = memory_lives.ask(story).value
    for step, blocks in zip(got["steps"], [*expected, []], strict=True):
        with about(("after", step["after"])):
            assert_equal(step["blocks"], sorted(blocks), "Bytes of each block in use.")
    assert_equal(got["wrong"], [], "What the chip was asked for in vain.")
    values = STORIES[story](lambda when: None, torch.Tensor.clone)
    same_tensors(got["values"], values, "The values at the end")


@points(4)
@claimed
def test_lives_with_the_storage(memory_lives):
    """A block lives as long as any tensor on its storage, in Python or in autograd; then it is free."""
    told(memory_lives, "views", [[24], [24], [24]])
    told(memory_lives, "autograd", [[16] * 3, [16] * 3, [16]])
    kept = [at for at in range(60) if at % 3 == 0][10:]
    told(memory_lives, "many", [[(at % 7 + 1) * 4 for at in kept]])


@claimed
def test_bytes(memory_asked):
    """A tensor takes one block with just the bytes that it reaches; without a dtype, the default one."""
    requests = [
        ([3, 5], [5, 1], torch.float32),
        ([2, 3], [10, 2], torch.int64),
        ([3, 4], [0, 1], torch.float16),
        ([0, 5], [5, 1], torch.float32),
        ([3, 0], [1, 1], torch.float32),
        ([], [], torch.uint8),
        ([4], [1], None),
    ]
    sizes = [60, 15 * 8, 8, 0, 0, 1, 32]
    for request, nbytes, got in zip(requests, sizes, memory_asked.ask(requests).value, strict=True):
        size, stride, dtype = request
        expected = ["abacus", str(dtype or torch.float64), size, stride]
        case = f"empty_strided({size}, {stride}, dtype={dtype}). "
        if dtype is None:
            case += "The default dtype is float64. "
        assert_equal(got["tensor"], expected, case + "Device, dtype, size and strides.")
        assert_equal(got["live bytes"], nbytes, case + "Bytes of the chip in use.")


def test_array(memory_arrays, memory_in_its_block, x, rng):
    """`array` is on the tensor's own memory, with its dtype, size and strides: of the device, or the CPU."""
    got = memory_in_its_block.ask(x).value
    case = "y = x.to('abacus'), of shape (3, 4) in float32. "
    bytes_of_x = x.view(torch.uint8).flatten().tolist()
    assert_equal(got["block"], bytes_of_x, case + "The bytes in the chip's block.")
    with about(of=case + "The values of y, after the chip's block was filled with zeros. "):
        assert_same_bits(got["zeroed"], torch.zeros(3, 4))
    inputs = [whole_numbers(rng, (3, 4), 1, 99), whole_numbers(rng, (3, 4), 0, 1).bool()]
    for got, expected in zip(memory_arrays.ask(inputs).value, expected_arrays(inputs), strict=True):
        said = "Type, dtype, size and strides (in elements) of "
        of = f"the array of a tensor on {expected['device']}"
        assert_equal(got["said"], expected["said"], f"{said}{of}.")
        assert_equal(got["values"], expected["values"], f"The values of {of}.")
        with about(of=f"The base after a write into {of}. "):
            assert_same_bits(got["after a write"], expected["after a write"])


@claimed
def test_resize(memory_resized, memory_not_resized, memory_lives, x, rng):
    """`resize_` takes a larger block only where it must, with the old bytes, for all views."""
    more = draw_int(rng, 1, 5)
    for size, new, offset in (
        ([6], [2, 3 + more], 0),
        ([6], [5 + more], 1),
        ([6], [2, 2], 1),
        ([6], [0], 0),
    ):
        got = memory_resized.ask(size, new, offset).value
        case = f"x = torch.arange(1.0, 7.0).to('abacus')[{offset}:]; x.resize_({tuple(new)}). "
        reach = (offset + torch.Size(new).numel()) * 4
        expected = torch.empty(new)
        assert_holds(got["returned x"], case + "It returned another object than x.")
        layout = [list(expected.shape), list(expected.stride()), offset]
        assert_equal(
            [got["shape"], got["stride"], got["offset"]], layout, case + "Size, strides and offset."
        )
        with about(of=case + "The first elements. "):
            assert_same_bits(got["first"], torch.arange(1.0, 7.0)[offset:][: expected.numel()])
        grown = [reach] if reach > 24 else []
        assert_equal(got["requests"], grown, case + "Bytes asked of the chip.")
        assert_equal(got["blocks"], grown or [24], case + "Bytes of the blocks in use.")
        base = torch.arange(1.0, 7.0)
        base[offset : offset + expected.numel()] = -1
        with about(of=case + "The base, after x was filled with -1. "):
            assert_same_bits(got["base after a write"], base)
        assert_equal(got["left"], [], case + "Blocks in use when the tensors are gone.")
        assert_equal(got["wrong"], [], case + "What the chip was asked for in vain.")
    same = memory_not_resized.ask(x).value
    case = "y = x.to('abacus').t(), with x of shape (3, 4); y.resize_(4, 3), which it is. "
    assert_equal(same["strides"], [1, 4], case + "Its strides.")
    assert_equal(same["values"], x.t().tolist(), case + "Its values.")
    told(memory_lives, "grown", [[12, 20], [8, 12, 20], [8, 12, 20], [8, 12]])
