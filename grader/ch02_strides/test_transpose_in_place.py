"""Checks of `transpose_in_place`: cells, those beside them, and what was held on the way."""

import torch

from grader import (
    about,
    assert_equal,
    assert_holds,
    assert_same_bits,
    assert_tensor,
    claimed,
    draw_int,
    facts,
    gate,
    points,
)
from grader.ch02_strides.odd_layouts import code
from grader.ch02_strides.view_inputs import values

LIMIT = 8192
"""Bytes, as the exercise says."""


def matrix(rng, rows, columns, dtype=torch.float32, room=0):
    """Return a longer row, and a matrix in its middle. No two elements are the same.

    room: how many cells at least lie before and behind the matrix
    """
    before, after = room + draw_int(rng, 1, 5), room + draw_int(rng, 1, 5)
    count = before + rows * columns + after
    whole = torch.randperm(count, generator=rng).to(dtype)
    return whole, whole[before : before + rows * columns].view(rows, columns)


def compare(transposed_in_place, whole, x):
    evidence = transposed_in_place.ask(whole, x)
    got = evidence.value
    with about(("call", "transpose_in_place(x)"), ("x", code(x))):
        assert_tensor(got, dtype=x.dtype, shape=x.shape[::-1])
        assert_holds(
            got.is_contiguous(), "The result is not contiguous.", ("stride", str(got.stride()))
        )
        if x.numel():
            assert_holds(facts(got).aliases is not None, "The result has a memory of its own.")
            what = "The storage offset is not that of `x`: the result begins in another cell."
            assert_equal(got.storage_offset(), x.storage_offset(), what)
        assert_same_bits(got, x.t().contiguous())
    return evidence


@gate
def test_shape(transposed_in_place, rng):
    """Returns a tensor of the same dtype with rows and columns exchanged."""
    for rows, columns in ((3, 5), (4, 2)):
        whole, x = matrix(rng, rows, columns)
        got = transposed_in_place.ask(whole, x).value
        assert_tensor(got, dtype=x.dtype, shape=(columns, rows))


def test_small(transposed_in_place, rng):
    """Every matrix of 2 to 6 rows and columns, transposed in its own cells."""
    for rows in range(2, 7):
        for columns in range(2, 7):
            if rows != columns:
                compare(transposed_in_place, *matrix(rng, rows, columns))


def test_many_cycles(transposed_in_place, rng):
    """Larger matrices, of two cycles and of many."""
    for rows, columns in ((12, 31), (31, 12), (16, 24), (50, 8), (21, 5), (9, 41)):
        compare(transposed_in_place, *matrix(rng, rows, columns))


def test_special_shapes(transposed_in_place, rng):
    """Square matrices, single rows and columns, one element, and none."""
    shapes = ((4, 4), (7, 7), (1, 6), (6, 1), (1, 2), (2, 1), (2, 2), (1, 1), (0, 3), (3, 0))
    for rows, columns in shapes:
        compare(transposed_in_place, *matrix(rng, rows, columns))
    compare(transposed_in_place, *matrix(rng, 3, 4))


def test_beside(transposed_in_place, rng):
    """Not one cell before or behind the matrix changes."""
    # at first with room for a second matrix, and a third, which is nobody's to use
    cases = [(3, 5, 30), (5, 3, 30), (6, 9, 108), (4, 4, 32), (1, 4, 8)]
    cases += [(rows, columns, 0) for rows, columns in ((3, 5), (5, 3), (4, 4), (1, 4))]
    for rows, columns, room in cases:
        whole, x = matrix(rng, rows, columns, room=room)
        evidence = compare(transposed_in_place, whole, x)
        after = evidence.inputs_after["whole"]
        start = x.storage_offset()
        end = start + x.numel()
        for where, cells in (("before", slice(start)), ("behind", slice(end, None))):
            with about(("call", "transpose_in_place(x)"), ("x", code(x)), ("cells", where)):
                assert_same_bits(after[cells], whole[cells])


def test_any_dtype(transposed_in_place, rng):
    """Whole numbers, flags, complex numbers; floats with every bit, minus zero included."""
    flags = values(rng, (6, 9), torch.int64) > 0
    huge = torch.randint(-(2**62), 2**62, (5, 4), generator=rng)
    patterns = torch.randint(-(2**15), 2**15, (7, 8), generator=rng).to(torch.int16)
    finite = patterns & ~0x4000  # one exponent bit is clear: no NaN, whose bits `item()` may change
    for x in (
        flags,
        huge,
        finite.view(torch.bfloat16),
        finite.view(torch.float16),
        torch.complex(values(rng, (3, 7)), values(rng, (3, 7))),
        patterns.to(torch.uint8),
        (huge & ~(1 << 62)).view(torch.float64),
    ):
        compare(transposed_in_place, x, x)


@points(3)
@claimed
def test_memory(transposing_memory, rng):
    """At most 8 KiB of Python objects and tensors are held while it works."""
    x = torch.randperm(40 * 61, generator=rng).double().view(40, 61)
    found = transposing_memory.ask(x, LIMIT).value
    assert_same_bits(found["result"].view(61, 40), x.t().contiguous())
    for kind, where in (("tensors", " in tensors"), ("objects", " in objects"), ("all", "")):
        over = found["over"][kind]
        held = f"over {over >> 10} KiB" if over else "within the limit"
        assert_equal(held, "within the limit", f"More than {over:,} bytes were held{where}.")
