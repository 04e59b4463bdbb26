"""Checks of `best_order`: orders that are orders, and as cheap as can be."""

import pytest

from grader import Mismatch, assert_equal, compared, draw_int, gate


def least(sizes):
    """Return the least FLOPs of a chain."""
    count = len(sizes) - 1
    best = [[0] * count for _ in range(count)]
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            best[i][j] = min(
                best[i][k] + best[k + 1][j] + 2 * sizes[i] * sizes[k + 1] * sizes[j + 1]
                for k in range(i, j)
            )
    return best[0][count - 1]


def spent(order, sizes):
    """Return an order's first and last matrix and its FLOPs. Raises ValueError if it is none."""
    if type(order) is int and 0 <= order < len(sizes) - 1:
        return order, order, 0
    if not isinstance(order, tuple | list) or len(order) != 2:
        raise ValueError(f"{order!r} is neither a matrix's number nor a pair")
    first, middle, left = spent(order[0], sizes)
    behind, last, right = spent(order[1], sizes)
    if behind != middle + 1:
        raise ValueError(f"matrix {behind} does not follow matrix {middle}")
    return first, last, left + right + 2 * sizes[first] * sizes[middle + 1] * sizes[last + 1]


def compare(ordered, chains):
    """Judge number and order of each chain; show the shortest that is wrong."""
    answers = ordered.ask([list(sizes) for sizes in chains]).value
    compared(answers)
    for sizes, answer in sorted(zip(chains, answers, strict=True), key=lambda pair: len(pair[0])):
        rows = (("sizes", str(list(sizes))), ("got", str(answer)))
        if not isinstance(answer, tuple | list) or len(answer) != 2:
            raise Mismatch("Not a pair of FLOPs and an order.", rows)
        flops, order = answer
        try:
            first, last, cost = spent(order, sizes)
        except ValueError as error:
            raise Mismatch(f"The order is none: {error}.", rows) from None
        if (first, last) != (0, len(sizes) - 2):
            raise Mismatch(f"The order covers matrices {first} to {last} only.", rows)
        expected = least(sizes)
        rows += (("least FLOPs", f"{expected:,}"), ("FLOPs of this order", f"{cost:,}"))
        if cost != expected:
            raise Mismatch("There is a cheaper order.", rows)
        if type(flops) is not int or flops != expected:
            raise Mismatch("The number of FLOPs is wrong.", rows)


@pytest.fixture
def sizes(rng):
    """Three sizes, all different."""
    first = draw_int(rng, 2, 9)
    return first, first + 11, first + 5


@gate
def test_one_and_two(ordered, sizes):
    """One matrix takes nothing; two take one product."""
    m, k, n = sizes
    answers = ordered.ask([[m, k], [m, k, n]]).value
    expected = [(0, 0), (2 * m * k * n, (0, 1))]
    assert_equal(answers, expected, "For one and for two matrices.")


def test_three(ordered, rng):
    """Three matrices, of which either product may come first."""
    chains = [(50, 40, 50, 1), (1, 50, 40, 50), (2, 30, 3, 40), (40, 3, 30, 2)]
    chains += [[draw_int(rng, 1, 50) for _ in range(4)] for _ in range(20)]
    compare(ordered, chains)


def test_four_and_five(ordered, rng):
    """Four and five matrices, also where a product in the middle comes first or last."""
    chains = [(30, 2, 40, 3, 50), (2, 40, 3, 40, 2), (40, 2, 30, 30, 2, 40), (9, 3, 9, 1, 9, 3)]
    chains += [[draw_int(rng, 1, 50) for _ in range(draw_int(rng, 5, 6))] for _ in range(40)]
    compare(ordered, chains)


def test_ties(ordered):
    """Where orders are equally good, any one of them."""
    compare(ordered, [(4,) * 5, (1,) * 7, (3, 5, 3, 5, 3, 5, 3), (2, 4, 2, 4)])


def test_rules_of_thumb(ordered, rng):
    """Chains on which cheapest first, largest size first and the like go wrong."""
    chains = [(7, 6, 8, 7, 9), (10, 11, 9, 12, 10), (8, 9, 10, 11, 7, 12, 6)]
    chains += [[draw_int(rng, 5, 12) for _ in range(draw_int(rng, 6, 10))] for _ in range(60)]
    compare(ordered, chains)


def test_long_chains(ordered, rng):
    """Thirty matrices, in the time that thirty matrices deserve."""
    compare(ordered, [[draw_int(rng, 1, 99) for _ in range(31)] for _ in range(2)])


def test_large_sizes(ordered):
    """Sizes up to a million: the number is exact."""
    compare(ordered, [(10**5 + 3, 10**6 - 1, 3, 10**5 + 7), (10**5 + 7, 10**6 - 7, 10**5 + 1, 5)])
    compare(ordered, [(10**6 - 17, 10**6 - 21, 10**6 - 39, 10**6 - 41)])  # beyond 2**53
