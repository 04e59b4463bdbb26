"""Checks of `matmul_bf16x3`: every bit of the operands counts, and the unit's work is measured."""

import torch

from grader import (
    Mismatch,
    assert_close,
    assert_equal,
    assert_same_bits,
    assert_tensor,
    compared,
    gate,
)

BOUND = 2.0**-20
"""Of sum |a| |b|. The pieces of a float32 are below 1, 2**-7 and 2**-15 of it even if they are cut
off instead of rounded; so the products a2 b3, a3 b2 and a3 b3 make 2**-21 together. Adding six
results makes five roundings, and the unit makes one per result: below 2**-21 together."""


def compare(bf16x3_product, a, b):
    """Fail unless the error, in units of sum |a| |b|, is within the bound everywhere."""
    got = bf16x3_product.ask(a, b).value["product"]
    assert_tensor(got, dtype=torch.float32, shape=(a.shape[0], b.shape[1]))
    exact = a.double() @ b.double()
    size = a.double().abs() @ b.double().abs()
    size = torch.where(size == 0, 1.0, size)  # there the product must be zero
    try:
        assert_close(got / size, exact / size, rtol=0.0, atol=BOUND, because="see above")
    except Mismatch:
        error = ((got - exact).abs() / size).nan_to_num(float("inf")).reshape(-1)
        where = int(error.argmax())
        rows = (
            ("shapes", f"{tuple(a.shape)} and {tuple(b.shape)}"),
            ("expected", f"{exact.reshape(-1)[where]:.9g}"),
            ("got", f"{got.reshape(-1)[where]:.9g}"),
            ("error", f"2**{error[where].log2():.1f} of sum |a| |b|; allowed is 2**-20"),
        )
        count = int((error > BOUND).sum())
        what = f"{count} of {got.numel()} results are too far off. The worst:"
        raise Mismatch(what, rows) from None


def full(rng, *shape):
    """Values in [1, 2) with all 24 bits in use, of either sign."""
    bits = torch.randint(0, 2**23, shape, generator=rng) | 1
    sign = torch.where(torch.rand(shape, generator=rng) < 0.5, -1.0, 1.0)
    return (1.0 + bits.double() * 2.0**-23).float() * sign


@gate
def test_shape_and_unit(bf16x3_product, rng):
    """Returns a `float32` matrix, and multiplies with the unit it is given."""
    for m, k, n in ((3, 5, 2), (1, 4, 1), (4, 1, 3)):
        evidence = bf16x3_product.ask(full(rng, m, k), full(rng, k, n)).value
        assert_tensor(evidence["product"], dtype=torch.float32, shape=(m, n))
        if evidence["work"] < m * k * n:
            raise Mismatch("`multiply` did less work than a plain product. It is to do all of it.")
    a, b = full(rng, 3, 5), full(rng, 5, 2)
    got = bf16x3_product.ask(a, b, True).value["product"]
    compared(got)
    if bool(got.any()):
        raise Mismatch("Some of the multiplying was done outside of `multiply`. It is to do all.")


def test_keeps_every_bit(bf16x3_product, rng):
    """Multiplying by the identity, from either side, returns all 24 bits."""
    x, identity = full(rng, 16, 16), torch.eye(16)
    x[0, 0] = 1024.5
    assert_same_bits(bf16x3_product.ask(x, identity).value["product"], x, of=x)
    assert_same_bits(bf16x3_product.ask(identity, x).value["product"], x, of=x)


def test_single_products(bf16x3_product, rng):
    """1,600 products of two numbers, where no error can hide in a sum."""
    for _ in range(4):
        compare(bf16x3_product, full(rng, 20, 1), full(rng, 1, 20))


def test_matrices(bf16x3_product, rng):
    """Matrix products of several shapes and layouts."""
    a, b = torch.randn(24, 40, generator=rng), torch.randn(40, 18, generator=rng)
    layouts = [
        (a, b),
        (b.t(), a.t()),
        (a[1::3, ::2], b[::2, 3:9]),
        (a[:1], b[:, :1]),
        (a[:, :1].expand(24, 40), b),
    ]
    for left, right in layouts:
        compare(bf16x3_product, left, right)


def test_magnitudes(bf16x3_product, rng):
    """Rows and columns from 2**-39 to 2**39, and zeros among them."""
    rows = torch.exp2(torch.linspace(-39, 38, 12).round())[:, None]
    columns = torch.exp2(torch.linspace(38, -39, 10).round())[None]
    a, b = full(rng, 12, 8) * rows, full(rng, 8, 10) * columns
    a[3], b[:, 4], a[5, 2] = 0.0, 0.0, 0.0
    compare(bf16x3_product, a, b)
    along = torch.exp2(torch.linspace(-39, 38, 8).round())
    compare(
        bf16x3_product, full(rng, 12, 8) * along, full(rng, 8, 10) / along.flip(0)[:, None] * 0.5
    )


def test_work(bf16x3_product, rng):
    """The unit does at most six times the work of one product."""
    for m, k, n in ((6, 7, 5), (2, 30, 3)):
        a, b = full(rng, m, k), full(rng, k, n)
        work = bf16x3_product.ask(a, b).value["work"] / (m * k * n)
        assert_equal(work, min(work, 6.0), "How many times the work of one product was done.")
        compare(bf16x3_product, a, b)
