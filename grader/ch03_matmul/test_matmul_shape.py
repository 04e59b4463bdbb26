"""Checks of `matmul_shape`: every rule of torch.matmul, and every refusal."""

import pytest

from grader import Mismatch, assert_holds, compared, draw_int, gate, points
from grader.ch03_matmul.operands import explored
from grader.ch03_matmul.shapes import any_pair, fitting_batches, true_shape


@pytest.fixture
def sizes(rng):
    """Four sizes, all different, none 0 or 1."""
    first = draw_int(rng, 2, 5)
    return first, first + 3, first + 1, first + 6


def _sizes(shape):
    """Return a list or tuple of whole numbers as a tuple, and None of anything else."""
    good = isinstance(shape, list | tuple) and all(isinstance(size, int) for size in shape)
    return tuple(shape) if good else None


def compare(shaped, pairs):
    """Compare all pairs with torch; show the pair with the fewest dimensions."""
    got = shaped.ask([(list(a), list(b)) for a, b in pairs]).value
    due = [true_shape(a, b) for a, b in pairs]
    compared(got, due)
    wrong = []
    for (a, b), shape, expected in zip(pairs, got, due, strict=True):
        if (shape if isinstance(shape, str) else _sizes(shape)) != expected:
            wrong.append((len(a) + len(b), sum(a) + sum(b), a, b, expected, shape))
    if wrong:
        _, _, a, b, expected, shape = min(wrong, key=lambda row: row[:2])
        raise Mismatch(
            f"{len(wrong)} of {len(pairs)} shapes are wrong. The simplest:",
            (("call", f"matmul_shape({a}, {b})"), ("expected", str(expected)), ("got", str(shape))),
            explored(a, b),
        )


@gate
def test_matrices(shaped, sizes):
    """Two matrices (m, k) and (k, n) give (m, n)."""
    m, k, n, _ = sizes
    compare(shaped, [((m, k), (k, n)), ((n, 1), (1, k)), ((k, m), (m, k))])


def test_vectors(shaped, sizes):
    """A vector on either side, and on both: the added 1 is gone from the result."""
    m, k, n, _ = sizes
    compare(shaped, [((k,), (k, n)), ((m, k), (k,)), ((k,), (k,)), ((1,), (1, n)), ((m, 1), (1,))])


def test_batches(shaped, sizes):
    """Batch dimensions on one side, or the same on both."""
    m, k, n, p = sizes
    pairs = [((p, m, k), (k, n)), ((m, k), (p, k, n)), ((p, m, k), (p, k, n))]
    compare(shaped, [*pairs, ((3, p, m, k), (3, p, k, n)), ((2, 3, p, m, k), (k, n))])


@points(3)
def test_batches_broadcast(shaped, rng):
    """Batch dimensions broadcast, aligned on the right."""
    pairs = []
    for _ in range(60):
        batch_a, batch_b = fitting_batches(rng, most=5)
        m, k, n = (draw_int(rng, 1, 9) for _ in range(3))
        pairs.append(((*batch_a, m, k), (*batch_b, k, n)))
    compare(shaped, pairs)


def test_vectors_and_batches(shaped, sizes):
    """A vector with a batch of matrices, on either side."""
    m, k, n, p = sizes
    pairs = [((k,), (p, k, n)), ((p, m, k), (k,)), ((k,), (k, k, n)), ((k, m, k), (k,))]
    compare(shaped, [*pairs, ((k,), (1, p, k, 1)), ((p, 1, 1, k), (k,))])


@points(0.5)
def test_tuple(shaped, sizes):
    """The result is a tuple."""
    m, k, n, p = sizes
    for a, b in (((m, k), (k, n)), ((p, m, k), (k,)), ((k,), (k,))):
        (got,) = shaped.ask([(list(a), list(b))]).value
        rows = ("call", f"matmul_shape({a}, {b})"), ("got", str(got))
        assert_holds(isinstance(got, tuple), "This is no tuple.", *rows)


def test_refusals(shaped, sizes):
    """What does not fit raises `ValueError`: inner sizes, batch sizes, no dimensions at all."""
    m, k, n, p = sizes
    compare(
        shaped,
        [
            *[((m, k), (n, p)), ((m, 1), (k, n)), ((m, k), (1, n)), ((k,), (n,)), ((k,), (1,))],
            *[((), (k,)), ((k,), ()), ((), ()), ((m, k), ()), ((p, m, k), (n, k, n))],
            *[((p, m, k), (0, k, n)), ((k, n), (k,)), ((n,), (p, k, n)), ((p, m, k), (m,))],
            *[((p, n, m, k), (n, m, k, n)), ((p, 1, m, k), (n, p, k, n)), ((m, 0), (1, n))],
        ],
    )


def test_anything(shaped, rng):
    """300 random pairs of up to six dimensions, with zeros and ones and errors among them."""
    compare(shaped, [any_pair(rng) for _ in range(300)])
