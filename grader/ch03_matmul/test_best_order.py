"""Checks of `best_order`: orders that are orders, and as cheap as can be."""

import pytest

from grader import Mismatch, compared, draw_int, gate, points

SECONDS = 5
"""Time for thirty matrices. They have 465 stretches and 4,495 places to split one: milliseconds."""


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


def pairs(ordered, chains):
    """Yield for each chain, the shortest first: its sizes, FLOPs and order, and the rows that say so."""
    answers = ordered.ask([list(sizes) for sizes in chains]).value
    compared(answers)
    for sizes, answer in sorted(zip(chains, answers, strict=True), key=lambda pair: len(pair[0])):
        yield sizes, *pair(sizes, answer)


def pair(sizes, answer):
    """Return FLOPs and order of an answer, and the rows that show it."""
    rows = (("call", f"best_order({list(sizes)})"), ("got", str(answer)))
    if not isinstance(answer, tuple | list) or len(answer) != 2:
        raise Mismatch("Not a pair of FLOPs and an order.", rows)
    return *answer, rows


def judge(sizes, order, rows):
    """Fail unless the order is one, of all matrices, and there is none that takes fewer FLOPs."""
    try:
        first, last, cost = spent(order, sizes)
    except ValueError as error:
        raise Mismatch(f"The order is none: {error}.", rows) from None
    if (first, last) != (0, len(sizes) - 2):
        raise Mismatch(f"The order covers matrices {first} to {last} only.", rows)
    expected = least(sizes)
    if cost != expected:
        costs = (("least FLOPs", f"{expected:,}"), ("FLOPs of this order", f"{cost:,}"))
        raise Mismatch("There is a cheaper order.", (*rows, *costs))


def orders(ordered, chains):
    """Judge the order of each chain; show the shortest chain whose order is wrong."""
    for sizes, _, order, rows in pairs(ordered, chains):
        judge(sizes, order, rows)


def numbers(ordered, chains):
    """Judge the number that comes with the order; show the shortest chain whose number is wrong."""
    for sizes, flops, _, rows in pairs(ordered, chains):
        expected = least(sizes)
        if type(flops) is not int:
            raise Mismatch("The FLOPs are no `int`.", rows)
        if flops != expected:
            costs = (("least FLOPs", f"{expected:,}"), ("FLOPs returned", f"{flops:,}"))
            raise Mismatch("The number of FLOPs is wrong.", (*rows, *costs))


@pytest.fixture
def sizes(rng):
    """Three sizes, all different."""
    first = draw_int(rng, 2, 9)
    return first, first + 11, first + 5


@gate
def test_two(ordered, sizes):
    """Two matrices: a pair of FLOPs and the order `(0, 1)`."""
    for _, _, order, rows in pairs(ordered, [sizes]):
        if order not in ((0, 1), [0, 1]):
            raise Mismatch("Two matrices have one order, `(0, 1)`.", rows)


@points(0.5)
def test_one(ordered, sizes):
    """One matrix: nothing is multiplied, and its order is its number."""
    for _, flops, order, rows in pairs(ordered, [sizes[:2]]):
        if (flops, order) != (0, 0):
            raise Mismatch("`(0, 0)` was expected for one matrix.", rows)


def test_three(ordered, rng):
    """The order of three matrices, of which either product may come first."""
    chains = [(50, 40, 50, 1), (1, 50, 40, 50), (2, 30, 3, 40), (40, 3, 30, 2)]
    chains += [[draw_int(rng, 1, 50) for _ in range(4)] for _ in range(20)]
    orders(ordered, chains)


def test_four_and_five(ordered, rng):
    """The order of four and five, also where a product in the middle comes first or last."""
    chains = [(30, 2, 40, 3, 50), (2, 40, 3, 40, 2), (40, 2, 30, 30, 2, 40), (9, 3, 9, 1, 9, 3)]
    chains += [[draw_int(rng, 1, 50) for _ in range(draw_int(rng, 5, 6))] for _ in range(40)]
    orders(ordered, chains)


@points(0.5)
def test_ties(ordered):
    """Where orders are equally good, any one of them."""
    orders(ordered, [(4,) * 5, (1,) * 7, (3, 5, 3, 5, 3, 5, 3), (2, 4, 2, 4)])


@points(3)
def test_rules_of_thumb(ordered, rng):
    """The order of chains on which cheapest first, largest size first and the like go wrong."""
    chains = [(7, 6, 8, 7, 9), (10, 11, 9, 12, 10), (8, 9, 10, 11, 7, 12, 6)]
    chains += [[draw_int(rng, 5, 12) for _ in range(draw_int(rng, 6, 10))] for _ in range(60)]
    orders(ordered, chains)


def test_flops(ordered, rng):
    """The number of FLOPs: a multiplication and an addition for each term."""
    chains = [(2, 3, 4), (7, 6, 8, 7, 9)]
    chains += [[draw_int(rng, 1, 50) for _ in range(draw_int(rng, 3, 7))] for _ in range(20)]
    numbers(ordered, chains)


def test_large_sizes(ordered, rng):
    """Sizes up to a million: order and number are exact, however large the number gets."""
    chains = [(10**5 + 3, 10**6 - 1, 3, 10**5 + 7), (10**5 + 7, 10**6 - 7, 10**5 + 1, 5)]
    chains += [(10**6 - 17, 10**6 - 21, 10**6 - 39, 10**6 - 41)]  # beyond 2**53
    # five products of a million cubed are beyond 2**63, ten beyond 2**64
    chains += [[draw_int(rng, 10**6 - 99, 10**6) for _ in range(n)] for n in (7, 12, 13)]
    numbers(ordered, chains)
    orders(ordered, chains)


def test_long_chains(ordered_in_time, rng):
    """Thirty matrices, in the time that thirty matrices deserve."""
    for _ in range(2):
        sizes = [draw_int(rng, 1, 99) for _ in range(31)]
        answer = ordered_in_time.ask(sizes, SECONDS).value
        compared(answer)
        if answer is None:
            rows = ("call", f"best_order({sizes})"), ("allowed", f"{SECONDS} seconds")
            raise Mismatch(f"Thirty matrices took more than {SECONDS} seconds.", rows)
        _, order, rows = pair(sizes, answer)
        judge(sizes, order, rows)
