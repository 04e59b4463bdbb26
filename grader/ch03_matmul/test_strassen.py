"""Checks of `strassen`: right, and cheaper than the definition."""

import itertools
import math

import torch

from grader import (
    Mismatch,
    about,
    assert_close,
    assert_equal,
    assert_tensor,
    awkward_tensor,
    claimed,
    compared,
    gate,
    permuted_tensor,
    points,
    whole_numbers,
)
from grader.ch03_matmul.operands import assert_exact


def compare(seven_products, a, b, leaf):
    """Compare with the product; say which of the four blocks are wrong where there are four."""
    got, n = seven_products.ask(a, b, leaf).value["result"], len(a)
    inputs = {"a": a, "b": b, "leaf": leaf}
    one_level = leaf < n <= 2 * leaf and n % 2 == 0
    if one_level and isinstance(got, torch.Tensor) and got.shape == (n, n):
        inputs["wrong blocks"] = wrong_blocks(got, a @ b) or "none"
    assert_exact(got, a @ b, **inputs)


def wrong_blocks(got, expected):
    """Return the names of the blocks that differ, e.g. "C11, C22"."""
    h = len(expected) // 2
    wrong = got != expected
    halves = (slice(None, h), slice(h, None))
    places = itertools.product(enumerate(halves, 1), repeat=2)
    return ", ".join(
        f"C{i}{j}" for (i, row), (j, column) in places if bool(wrong[row, column].any())
    )


def allowed(n, leaf):
    """Return f(n), the FLOPs of the products."""
    return 2 * n**3 if n <= leaf else 7 * allowed((n + 1) // 2, leaf)


def cheap(seven_products, rng, n, leaf):
    a, b = whole_numbers(rng, (n, n)), whole_numbers(rng, (n, n))
    compare(seven_products, a, b, leaf)
    evidence = seven_products.ask(a, b, leaf).value
    compared([evidence["products"], evidence["flops"]])
    others = [name for name in evidence["products"] if name not in ("mm", "bmm")]
    if others:
        what = f"Only mm and bmm are asked for; there ran {', '.join(others)}."
        raise Mismatch(what, (("n, leaf", f"{n}, {leaf}"),))
    most = allowed(n, leaf)
    rows = (
        ("n, leaf", f"{n}, {leaf}"),
        ("allowed", f"{most:,}"),
        ("spent", f"{evidence['flops']:,}"),
    )
    if evidence["flops"] > most:
        assert_equal(evidence["flops"], most, f"Too many FLOPs for n = {n} with a leaf of {leaf}.")
    if n <= leaf and evidence["flops"] < most:
        raise Mismatch("A product of at most `leaf` rows is one `mm`. Here it is several.", rows)
    if 2 * evidence["flops"] < most:
        raise Mismatch("So few FLOPs are counted that the multiplying was done elsewhere.", rows)


@gate
def test_one_leaf(seven_products, rng):
    """Up to the leaf it is the plain product."""
    for n in (1, 5, 8):
        a, b = whole_numbers(rng, (n, n)), whole_numbers(rng, (n, n))
        assert_tensor(
            seven_products.ask(a, b, 8).value["result"], dtype=torch.float32, shape=(n, n)
        )


def test_halves(seven_products, rng):
    """Sizes that can be halved down to the leaf: exact on whole numbers."""
    for n, leaf in ((2, 1), (4, 1), (8, 2), (24, 6), (64, 16)):
        compare(seven_products, whole_numbers(rng, (n, n)), whole_numbers(rng, (n, n)), leaf)


def test_odd_sizes(seven_products, rng):
    """Odd sizes, at any level."""
    for n, leaf in ((3, 1), (5, 2), (7, 2), (9, 4), (19, 5), (33, 16), (38, 10)):
        compare(seven_products, whole_numbers(rng, (n, n)), whole_numbers(rng, (n, n)), leaf)


def test_fractions(seven_products, rng):
    """Numbers that round: within the bound for this kind of method.

    Brent's bound for Winograd's form, which is the wider one (Higham, Accuracy and Stability of
    Numerical Algorithms, 2nd edition, section 23.2.2), with u = 2**-24 and the norm max |a|.
    """
    n, leaf = 64, 16
    a, b = torch.randn(n, n, generator=rng), torch.randn(n, n, generator=rng)
    got = seven_products.ask(a, b, leaf).value["result"]
    factor = (n / leaf) ** math.log2(18) * (leaf**2 + 6 * leaf) - 6 * n
    bound = factor * 2.0**-24 * float(a.abs().max()) * float(b.abs().max())
    exact = (a.double() @ b.double()).float()
    because = "Higham's bound, times the largest element of a and that of b"
    with about(("call", f"strassen(a, b, {leaf}), both of shape {(n, n)}")):
        assert_close(got, exact, rtol=2.0**-24, atol=bound, because=because)


def test_any_layout(seven_products, rng):
    """Transposed, strided and expanded operands."""
    for n, leaf in ((12, 3), (13, 3)):
        compare(seven_products, permuted_tensor(rng, (n, n)), whole_numbers(rng, (n, n)), leaf)
        for _ in range(4):
            compare(seven_products, awkward_tensor(rng, (n, n)), awkward_tensor(rng, (n, n)), leaf)


@claimed
@points(2.5)
def test_flops(seven_products, rng):
    """401,408 FLOPs for 64 rows with a leaf of 16, where `mm` takes 524,288; one `mm` up to it."""
    for n, leaf in ((64, 16), (32, 16), (32, 8), (16, 16), (4, 1)):
        cheap(seven_products, rng, n, leaf)


@claimed
def test_flops_of_odd_sizes(seven_products, rng):
    """Odd sizes cost no more than the next even one, at each level."""
    for n, leaf in ((65, 16), (33, 16), (21, 6), (7, 2), (17, 16)):
        cheap(seven_products, rng, n, leaf)
