"""What a kernel decides before its loop: the reference solutions agree with torch on random cases."""

import math
import warnings
from functools import partial
from itertools import pairwise, product

import pytest
import torch

from grader import draw_int, draw_one, draw_order, whole_numbers
from grader.ch09_dispatch.loops import draw_case, draw_operand, is_plain, plan, read_with
from grader.ch09_dispatch.operands import (
    DTYPES,
    NUMBERS,
    promoted,
    with_dimensions,
    without_dimensions,
)
from tests import references

reference = partial(references.reference, "ch09_dispatch")


@pytest.fixture(params=range(3))
def rng(request):
    return torch.Generator().manual_seed(request.param)


def test_two_operands_have_the_dtype_of_torch():
    result_dtype = reference("result_dtype")
    operands = [*with_dimensions(), *without_dimensions(), *NUMBERS]
    for x, y in product(operands, repeat=2):
        assert result_dtype(x, y) is torch.result_type(x, y), (x, y)
        assert promoted([x, y]) is torch.result_type(x, y), (x, y)


def test_three_operands_have_the_dtype_of_an_operator(rng):
    """On the meta device an operator of three operands decides and computes nothing."""
    result_dtype = reference("result_dtype")
    for _ in range(500):
        operands = [
            torch.zeros([2] * draw_int(rng, 0, 1), dtype=draw_one(rng, DTYPES), device="meta")
            for _ in range(3)
        ]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # complex32 is new, and says so
            expected = torch.addcmul(*operands).dtype
        assert result_dtype(*operands) is expected, operands
        assert promoted([torch.zeros(x.shape, dtype=x.dtype) for x in operands]) is expected


def nested(rng, size, kinds):
    if not size:
        number = draw_int(rng, 0, 9)
        return draw_one(rng, kinds)(number)
    return [nested(rng, size[1:], kinds) for _ in range(size[0])]


def test_tensor_of_is_tensor(rng):
    tensor_of = reference("tensor_of")
    for _ in range(200):
        size = [draw_int(rng, 0, 3) for _ in range(draw_int(rng, 0, 4))]
        kinds = [draw_one(rng, (bool, int, float, complex)) for _ in range(2)]
        data = nested(rng, size, kinds)
        expected, got = torch.tensor(data), tensor_of(data)
        assert (got.dtype, got.shape) == (expected.dtype, expected.shape), data
        assert torch.equal(got, expected), data


def drawn_tensors(rng, count):
    """Return the common size, and operands made with the layouts of `draw_case`."""
    size = [draw_int(rng, 1, 4) for _ in range(draw_int(rng, 1, 5))]
    operands = [draw_operand(rng, size) for _ in range(count)]
    common = tuple(torch.broadcast_shapes(*(own for own, _ in operands)))
    tensors = [torch.empty_strided(own, stride) for own, stride in operands]
    return common, [read_with(common, *operand) for operand in operands], tensors


def without_ones(size, stride):
    return [s for n, s in zip(size, stride, strict=True) if n != 1]


@pytest.mark.parametrize("count", [2, 3])
def test_results_lie_as_torchs(rng, count):
    loop_plan = reference("loop_plan")
    early = 0
    for _ in range(1000):
        size, strides, tensors = drawn_tensors(rng, count)
        result = torch.add(*tensors) if count == 2 else torch.addcmul(*tensors)
        kept = plan(size, strides, keep_ones=True)
        assert without_ones(size, kept[0]) == without_ones(size, result.stride())
        if is_plain((size, strides)):
            got = loop_plan(size, strides)
            assert without_ones(size, got[0]) == without_ones(size, result.stride())
            assert got[1] == kept[1]
        else:
            early += 1
    assert early < 50  # rare: leaving out sizes of 1 early makes another order


def walked(loops, operands):
    """Return the addresses of all operands, round by round, the innermost loop fastest."""
    found = [(0,) * operands]
    for rounds, steps in loops:
        found = [
            tuple(a + k * s for a, s in zip(address, steps, strict=True))
            for k in range(rounds)
            for address in found
        ]
    return found


def test_loops_reach_every_element_once(rng):
    loop_plan = reference("loop_plan")
    for _ in range(300):
        size, strides = draw_case(rng)
        result, loops = loop_plan(size, strides)
        everyone = [result, *strides]
        visited = {
            tuple(sum(i * s for i, s in zip(index, stride, strict=True)) for stride in everyone)
            for index in product(*map(range, size))
        }
        seen = walked(loops, len(everyone))
        assert set(seen) == visited
        assert len(seen) == math.prod(size)
        assert [address[0] for address in seen] == list(
            range(len(seen))
        )  # the result, cell by cell
        for (rounds, inner), (_, outer) in pairwise(loops):
            assert any(rounds * a != b for a, b in zip(inner, outer, strict=True)), (
                "could be one loop"
            )


def plus_meta(a, b):
    return torch.broadcast_shapes(a.shape, b.shape), torch.promote_types(a.dtype, b.dtype)


def plus(result, a, b):
    result.copy_(a + b)


def outcome(run):
    """Return a tensor's dtype, size, strides and values, or the error's kind."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            x = run()
        except RuntimeError:
            return "RuntimeError"
    resized = any("resized" in str(one.message) for one in caught)
    # torch lays out a resized tensor by its plan of the loops, the reference row by row
    stride = None if resized else without_ones(x.shape, x.stride())
    return x.dtype, tuple(x.shape), stride, x.tolist(), resized


def test_forms_do_what_torchs_do(rng):
    """In place and with out: dtypes, sizes, layouts and overlaps, refused or not."""
    _, inplace, with_out = reference("structured")(plus_meta, plus)
    dtypes = (torch.bool, torch.int32, torch.float16, torch.float32)
    refused = 0
    for _ in range(400):
        memory = whole_numbers(rng, (40,), 0, 1, dtype=draw_one(rng, dtypes))
        size = draw_one(rng, [(2, 2), (4,), (2, 3)])
        picked = []
        for _ in range(3):
            own = draw_one(rng, [size, size, size[-1:]])
            order = draw_order(rng, len(own))
            dense = torch.empty([own[k] for k in order]).stride()
            stride = [dense[order.index(k)] for k in range(len(own))]
            x = memory.as_strided(own, stride, 8 * draw_int(rng, 0, 1) + draw_int(rng, 0, 1))
            picked.append(x if draw_int(rng, 0, 2) else x.to(draw_one(rng, dtypes)))
        a, b, c = picked

        grown = c.shape != torch.broadcast_shapes(a.shape, b.shape)
        homes = [x.untyped_storage()._cdata for x in picked]
        if not (grown and homes[2] in homes[:2]):  # an operand in memory that is resized: not asked
            mine = outcome(partial(lambda a, b, c: with_out(a, b, out=c), *copied(picked)))
            theirs = outcome(partial(lambda a, b, c: torch.add(a, b, out=c), *copied(picked)))
            assert mine == theirs, (a, b, c)
            refused += theirs == "RuntimeError"
        mine = outcome(partial(inplace, *copied([a, b])))
        theirs = outcome(partial(torch.Tensor.add_, *copied([a, b])))
        assert mine == theirs, (a, b)
    assert 40 < refused < 360


def copied(tensors):
    """Return the tensors over copies of their storages, shared as they were."""
    homes = {x.untyped_storage()._cdata: x.untyped_storage().clone() for x in tensors}
    return [
        torch.empty(0, dtype=x.dtype).set_(
            homes[x.untyped_storage()._cdata], x.storage_offset(), x.shape, x.stride()
        )
        for x in tensors
    ]
