"""Checks of `steady_matmul`: the same history for every element, whoever else is in the batch."""

import torch

from grader import Mismatch, about, assert_close, assert_tensor, compared, draw_int, gate, points

DTYPES = (torch.float32, torch.bfloat16, torch.float16)


def expected(a, b):
    """Return the product by the history that the exercise asks for."""
    total = torch.zeros(a.shape[0], b.shape[1])
    for left, right in zip(a.float().unbind(1), b.float().unbind(0), strict=True):
        total = total + left[:, None] * right
    return total.to(a.dtype)


def numbers(rng, rows, columns, dtype=torch.float32):
    """Return numbers of both signs and of magnitudes 2**-4 to 2**4, so that the order shows."""
    size = torch.exp2(8 * torch.rand(rows, columns, generator=rng) - 4)
    return (size * torch.randn(rows, columns, generator=rng)).to(dtype)


def compare(steady_product, a, b):
    """Compare to the last bit, but for the sign of zero."""
    got = steady_product.ask(a, b).value
    inputs = f"{tuple(a.shape)} and {tuple(b.shape)}, {a.dtype}"
    with about(("a, b", inputs)):
        assert_close(got, expected(a, b), rtol=0, atol=0, because="the history is given")


@gate
def test_shape_and_dtype(steady_product, rng):
    """Returns a matrix of the operands' dtype."""
    got = steady_product.ask(numbers(rng, 3, 5), numbers(rng, 5, 2)).value
    assert_tensor(got, dtype=torch.float32, shape=(3, 2))


@points(2)
def test_history(steady_product, rng):
    """`float32`: term by term, first to last, to the last bit."""
    for m, k, n in ((1, 2, 1), (5, 7, 3), (4, 300, 6), (1, 150, 9), (33, 65, 1)):
        compare(steady_product, numbers(rng, m, k), numbers(rng, k, n))
    steps = torch.tensor([[2.0**24, 1, 1, 1, -(2.0**24)], [1, 1, 1, 2.0**24, -(2.0**24)]])
    compare(steady_product, steps, torch.ones(5, 2))
    compare(steady_product, steps.flip(1), torch.ones(5, 2))


def test_rows_alone(steady_product, rng):
    """A row has the same bits alone, in a batch, and in another batch. So has a column."""
    for dtype in DTYPES:
        a, b = numbers(rng, 24, 130, dtype), numbers(rng, 130, 17, dtype)
        whole = steady_product.ask(a, b).value
        unit = 2.0**-24 if dtype is torch.float32 else torch.finfo(dtype).eps
        exact = a.double() @ b.double()
        spread = 130 * 2.0**-24 * (a.double().abs() @ b.double().abs())
        assert_tensor(whole, dtype=dtype, shape=(24, 17))
        beyond = (whole.double() - exact).abs() - (spread * (1 + unit) + unit * exact.abs())
        if bool((beyond > 0).any()):
            worst = int(beyond.argmax())
            rows = (
                ("a, b", f"(24, 130) and (130, 17), {dtype}"),
                ("exactly", f"{float(exact.flatten()[worst]):.9g}"),
                ("got", f"{float(whole.flatten()[worst]):.9g}"),
            )
            raise Mismatch("The values are further off than rounding explains.", rows)
        first, count = draw_int(rng, 0, 20), draw_int(rng, 2, 4)
        for rows in ([first], [draw_int(rng, 0, 23)], list(range(first, first + count)), [3, 3, 0]):
            part = steady_product.ask(a[rows], b).value
            compared(part)
            if not torch.equal(part, whole[rows]):
                what = f"Rows {rows} have other bits alone than among all 24 ({dtype})."
                raise Mismatch(what)
        if not torch.equal(steady_product.ask(a, b[:, 5:6]).value, whole[:, 5:6]):
            raise Mismatch(f"Column 5 has other bits alone than among all 17 ({dtype}).")


def test_float32_inside(steady_product, rng):
    """16-bit operands are multiplied and added in `float32`."""
    for dtype in DTYPES[1:]:
        compare(steady_product, numbers(rng, 5, 200, dtype), numbers(rng, 200, 6, dtype))
        ones = torch.ones(2, 3000, dtype=dtype)
        compare(steady_product, ones, ones.t())
        near = (1 + torch.rand(4, 2, generator=rng) / 16).to(dtype)
        compare(steady_product, torch.cat([near, -near], dim=1), torch.cat([near.t(), near.t()]))
        compare(steady_product, torch.cat([near, -near.flip(0)], dim=1), torch.cat([near.t()] * 2))


def test_large_inside(steady_product):
    """A sum may leave the range of `float16` on its way, and come back."""
    a = torch.tensor([[300.0, 300.0, 300.0, -300.0, -300.0]]).half()
    compare(steady_product, a, torch.full((5, 3), 200.0).half())
    compare(steady_product, a[:, :2], torch.full((2, 1), 200.0).half())


def test_any_layout(steady_product, rng):
    """Transposed, strided, expanded and empty operands."""
    a, b = numbers(rng, 20, 30), numbers(rng, 30, 24)
    compare(steady_product, b.t(), a.t())
    compare(steady_product, a[::3, 1::2], b[1::2, ::5])
    compare(steady_product, a[:1].expand(4, 30), b[:, :1].expand(30, 3))
    for m, k, n in ((3, 0, 2), (0, 4, 2), (3, 4, 0)):
        compare(steady_product, a[:m, :k], b[:k, :n])
