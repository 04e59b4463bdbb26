"""Checks of `structured`: three forms of four operations, and what each has to refuse."""

import torch

from grader import (
    Mismatch,
    about,
    assert_equal,
    assert_holds,
    assert_same_bits,
    assert_tensor,
    claimed,
    compared,
    draw_int,
    draw_one,
    gate,
    points,
    whole_numbers,
)
from grader.ch09_dispatch.forms import refusal_rows, rows, truth

FLOATS = (torch.float16, torch.float32, torch.float64)
DTYPES = (torch.uint8, torch.int32, torch.int64, *FLOATS)


def numbers(rng, *size, dtype=torch.float32):
    return whole_numbers(rng, size, 0, 9, dtype=dtype)


def compare(formed, cases):
    """Compare each call's result, and how it came about, with PyTorch's."""
    for case, seen in zip(cases, formed.ask(cases).value, strict=True):
        form, operation, operands, out = case
        expected = truth(operation, operands)
        target = {"functional": None, "inplace": operands[0], "out": out}[form]
        with about(*rows(*case)):
            dtype = expected.dtype if target is None else target.dtype
            assert_tensor(seen["result"], dtype=dtype, shape=expected.shape)
            assert_same_bits(seen["result"], expected.to(dtype))
            direct = target is not None and target.dtype is expected.dtype and bool(target.numel())
            _compare_the_way(seen, expected, target, direct)


def _compare_the_way(seen, expected, target, direct):
    what = "`meta` and `kernel` are to be called once each."
    assert_equal([seen["metas"], len(seen["kernels"])], [1, 1], what)
    dtype, size, at_target = seen["kernels"][0]
    what = "The kernel is to get a tensor of the dtype and size that `meta` says."
    assert_equal([dtype, tuple(size)], [expected.dtype, tuple(expected.shape)], what)
    if target is None:
        stride = torch.empty(expected.shape).stride()
        assert_equal(seen["result"].stride(), stride, "The new tensor is not contiguous.")
        return
    assert_equal(seen["is target"], True, "What is returned is not the tensor that was written to.")
    if tuple(target.shape) == tuple(expected.shape):
        what = "The tensor to write to fits, and has other strides after the call."
        assert_equal(seen["result"].stride(), target.stride(), what)
        if direct:
            what = "The dtype is the right one: the kernel is to write into the tensor itself."
            assert_equal(at_target, True, what)


@gate
def test_functions(formed):
    """Returns three functions; the first gives a tensor."""
    x = torch.ones(2, 3)
    seen = formed.ask([("functional", "half", [x], None)]).value[0]
    assert_tensor(seen["result"], dtype=torch.float32, shape=(2, 3))


@points(4)
def test_three_forms(formed, rng):
    """The same values by all three forms, in the right tensor: operands and results in any layout."""
    cases = []
    for _ in range(12):
        size = [draw_int(rng, 2, 4) for _ in range(draw_int(rng, 1, 3))]
        operation = draw_one(rng, ("plus", "half", "mix", "plus"))
        count = {"plus": 2, "half": 1, "mix": 3}[operation]
        dtype = draw_one(rng, FLOATS)
        sizes = [size, *(size[draw_int(rng, 0, 1) :] for _ in range(count - 1))]
        operands = [_laid_out(rng, numbers(rng, *part, dtype=dtype)) for part in sizes]
        out = _laid_out(rng, torch.zeros(size, dtype=dtype))
        cases.append(("functional", operation, operands, None))
        cases.append(("out", operation, operands, out))
        cases.append(("inplace", operation, operands, None))
    small, big = numbers(rng, 2, 3), numbers(rng, 2, 3)
    cases += [
        ("functional", "less", [small, big], None),
        ("functional", "plus", [small[0], big[:, :1]], None),
        ("out", "less", [small, big], torch.zeros(2, 3, dtype=torch.bool)),
        ("out", "plus", [small[0], big], torch.zeros(3, 2).t()),
        ("functional", "half", [torch.tensor(3.0)], None),
        ("inplace", "plus", [small.clone().t(), torch.tensor(2.0)], None),
    ]
    compare(formed, cases)


def _laid_out(rng, x):
    """Return a tensor with these numbers: row by row, in the reverse order, or with gaps."""
    kind = draw_int(rng, 0, 2)
    if kind == 1:
        back = tuple(reversed(range(x.dim())))
        return x.permute(back).contiguous().permute(back)
    if kind == 2:
        wide = torch.zeros([2 * n for n in x.shape], dtype=x.dtype)
        return wide[tuple(slice(None, None, 2) for _ in x.shape)].copy_(x)
    return x


def test_other_dtypes(formed, rng):
    """A tensor to write to of another dtype: the kernel's result is copied into it."""
    x = {dtype: numbers(rng, 2, 3, dtype=dtype) for dtype in DTYPES}
    cases = [
        ("out", "half", [x[torch.float64]], torch.zeros(2, 3, dtype=torch.float16)),
        ("out", "half", [x[torch.float32]], torch.zeros(3, 2, dtype=torch.float64).t()),
        ("out", "plus", [x[torch.int64], x[torch.int32]], torch.zeros(2, 3, dtype=torch.uint8)),
        ("out", "plus", [x[torch.int64], x[torch.int32]], torch.zeros(2, 3)),
        ("out", "less", [x[torch.int64], x[torch.int32]], torch.zeros(2, 3, dtype=torch.int32)),
        ("out", "less", [x[torch.float32], x[torch.float64]], torch.zeros(2, 3, dtype=torch.int64)),
        ("inplace", "plus", [x[torch.float32].clone(), x[torch.float64]], None),
        ("inplace", "plus", [x[torch.int32].clone().t().contiguous().t(), x[torch.int64]], None),
        ("inplace", "less", [x[torch.float32].clone(), x[torch.float16]], None),
    ]
    compare(formed, cases)


def test_resized(formed, rng):
    """An `out` of another size is resized: with a `UserWarning` if it had elements, silently if not."""
    x = numbers(rng, 2, 3)
    outs = [
        torch.empty(0),
        torch.zeros(3),
        torch.zeros(6),
        torch.zeros(()),
        torch.zeros(3, 2),
        torch.empty(2, 0),
        torch.zeros(5, 4),
        torch.zeros(2, 3),
    ]
    cases = [("out", "half", [x], out) for out in outs]
    sizes = [tuple(out.shape) for out in outs]
    compare(formed, cases)
    for seen, case, size in zip(formed.ask(cases).value, cases, sizes, strict=True):
        wanted = size != (2, 3) and 0 not in size
        with about(*rows(*case)):
            what = "A UserWarning is asked for." if wanted else "Nothing is to be warned of."
            assert_equal(any(seen["warned"]), wanted, what)


def refuse(refused, calls):
    """Ask for calls that must raise: (form, operation, operands, out, grads, recording)."""
    calls = [(*call, [], True) if len(call) == 4 else call for call in calls]
    found = [refused.ask(*call).value for call in calls]
    compared([("RuntimeError" in seen["raised"], seen["kernels"]) for seen in found])
    for seen, call in zip(found, calls, strict=True):
        form, _, operands, out, *_ = call
        before = operands[0] if form == "inplace" else out
        with about(*refusal_rows(*call)):
            got = seen["raised"][0] if seen["raised"] else "no error"
            if "RuntimeError" not in seen["raised"]:
                rows = (("got", f"{got} {seen['message']}".rstrip()),)
                raise Mismatch("This must raise a RuntimeError.", rows)
            assert_equal(seen["kernels"], 0, "The kernel was called before the error.")
            assert_tensor(seen["after"], dtype=before.dtype, shape=before.shape)
            assert_same_bits(seen["after"], before)


def test_dtype_refused(refused, rng):
    """A result that cannot be cast to the dtype of the tensor to write to is refused."""
    whole = numbers(rng, 2, 3, dtype=torch.int64)
    x = numbers(rng, 2, 3)
    refuse(
        refused,
        [
            ("out", "half", [x], torch.ones(2, 3, dtype=torch.int64)),
            ("out", "half", [x], torch.ones(3, dtype=torch.int32)),
            ("out", "plus", [whole, whole], torch.ones(2, 3, dtype=torch.bool)),
            ("inplace", "half", [whole.clone()], None),
            ("inplace", "plus", [whole.clone(), x], None),
        ],
    )


def test_size_refused(refused, rng):
    """The in-place form refuses a result of another size."""
    x = numbers(rng, 3)
    refuse(
        refused,
        [
            ("inplace", "plus", [x[:1].clone(), x.clone()], None),
            ("inplace", "plus", [x.clone(), numbers(rng, 2, 3)], None),
            ("inplace", "plus", [x.clone(), numbers(rng, 1, 3)], None),
            ("inplace", "plus", [torch.tensor(2.0), x.clone()], None),
        ],
    )


def test_overlap(refused, formed, rng):
    """Repeated elements and partial overlap are refused; the same elements, and neighbours, are not."""
    x, square = numbers(rng, 8), numbers(rng, 3, 3)
    wide, doubles = numbers(rng, 1, 3), numbers(rng, 8, dtype=torch.float64)
    floats = doubles.view(torch.float32)
    refuse(
        refused,
        [
            ("out", "half", [square], torch.ones(3, 1).expand(3, 3)),
            ("out", "half", [square], torch.ones(3).expand(3, 3)),
            ("out", "half", [square[:2]], torch.ones(3).expand(2, 3)),
            ("inplace", "plus", [wide.expand(3, 3), square], None),
            *_overlapping(x, square),
            ("out", "half", [doubles[:3]], floats[5:8]),  # bytes 0 to 24, and 20 to 32
        ],
    )
    y, grid = numbers(rng, 8), numbers(rng, 3, 3)
    same = y.as_strided((8,), (1,))
    fine = [
        ("out", "plus", [y, same], same), ("inplace", "plus", [y, same], None), ("out", "half", [grid.t()], grid.t()),
        ("out", "half", [y[:4]], y[4:]), ("out", "plus", [y[4:], torch.ones(4)], y[:4]),
        ("inplace", "plus", [y[2:5], y[5:]], None), ("inplace", "plus", [y[3:6], y[:3]], None),
        ("out", "half", [torch.ones(1, 3)], torch.zeros(3).as_strided((1, 3), (0, 1))),
        ("out", "half", [floats[1:4]], doubles[2:5]),  # bytes 4 to 16, and 16 to 40
    ]  # fmt: skip
    for case in fine:
        compare(formed, [case])


def _overlapping(x, square):
    """Return calls in which the tensor to write to overlaps an operand partly."""
    return [
        ("out", "half", [x[1:5]], x[:4]),
        ("out", "half", [x[:4]], x[3:7]),
        ("out", "plus", [torch.ones(4), x[2:6]], x[:4]),
        ("inplace", "plus", [x[1:], x[:-1]], None),
        ("inplace", "plus", [x[:-1], x[1:]], None),
        ("inplace", "plus", [square, square.t()], None),
        ("out", "half", [square], square.t()),
        ("inplace", "plus", [x[:4], x[3]], None),
        ("inplace", "plus", [square, square[1]], None),
    ]


def test_gradients(refused, rng):
    """With `out`, operands and results that require a gradient are refused while it is recorded."""
    x = numbers(rng, 3)

    def three():
        return [x.clone(), x.clone()], torch.ones(3)

    refuse(refused, [("out", "plus", *three(), grads, True) for grads in ([0], [1], [-1])])
    call = ("out", "plus", *three(), [0], False)
    seen = refused.ask(*call).value
    with about(*refusal_rows(*call)):
        got = f"{seen['raised'][:1]} {seen['message']}"
        what = "No gradient is recorded, and the call is refused."
        assert_holds(not seen["raised"], what, ("got", got))
        assert_same_bits(seen["after"], x + x)


@claimed
def test_bytes(formed, rng):
    """Allocates the new tensor, or one of the result's dtype where the other has another, and no more."""
    x, wide = numbers(rng, 4, 4), numbers(rng, 4, 4, dtype=torch.float64)
    cases = [
        (("functional", "plus", [x, x], None), 64), (("out", "plus", [x, x], torch.zeros(4, 4).t()), 0),
        (("inplace", "plus", [x.clone(), x], None), 0), (("inplace", "plus", [x.clone(), wide], None), 128),
        (("out", "half", [wide], torch.zeros(4, 4)), 128), (("out", "plus", [x, x], torch.empty(0)), 64),
        (("functional", "less", [x, wide], None), 16), (("out", "half", [x], torch.zeros(20)), 0),
    ]  # fmt: skip
    found = formed.ask([case for case, _ in cases]).value
    for (case, size), seen in zip(cases, found, strict=True):
        with about(*rows(*case)):
            if seen["bytes"] > size:
                told = (("at most", f"{size} bytes"), ("got", f"{seen['bytes']} bytes"))
                raise Mismatch("More memory is allocated than the result needs.", told)
