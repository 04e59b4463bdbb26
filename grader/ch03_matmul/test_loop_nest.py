"""Checks of `loop_nest`: the loops are run, and every read is noted."""

import pytest
import torch

from grader import (
    Mismatch,
    about,
    assert_equal,
    assert_raises,
    assert_same_bits,
    compared,
    gate,
    points,
)
from grader.ch03_matmul.formulas import (
    add,
    evaluate,
    inside,
    orders,
    program,
    read,
    reads_in_order,
    whole,
    written,
)


@pytest.fixture
def gemm(rng):
    """The product of matrices (2, 3) and (3, 4), and the matrices."""
    body = ("*", read("A", "i", "k"), read("B", "k", "j"))
    buffers = {"A": whole(rng, 2, 3), "B": whole(rng, 3, 4)}
    return program({"i": 2, "j": 4}, {"k": 3}, body), buffers


@pytest.fixture
def padded(rng):
    """A convolution (6) with a window of three and padding on each side, and its buffers."""
    place = ("-", add("i", "d"), ("number", 1))
    pixel = ("where", inside(place, 6), ("read", "X", (place,)), ("number", 0.0))
    body = ("*", pixel, read("W", "d"))
    return program({"i": 6}, {"d": 3}, body), {"X": whole(rng, 6), "W": whole(rng, 3)}


def compare(looped, asked, order, buffers):
    """Run the loops, compare the result, and return what was read."""
    shape = tuple(extent for _, extent in asked["axes"])
    found = looped.ask(asked, order, shape, buffers).value
    rows = ("program", written(asked)), ("order", str(tuple(order)))
    with about(*rows, ("your source", found["source"])):
        assert_same_bits(settled(found["out"]), settled(evaluate(asked, buffers)))
    return found


def settled(numbers):
    """Return numbers with one zero and one NaN: minus zero is as good as zero, and any NaN as another."""
    return torch.where(numbers.isnan(), torch.nan, numbers + 0.0)


@gate
def test_runs(looped, rng):
    """Returns Python source that runs, and adds two vectors."""
    asked = program({"i": 5}, {}, ("+", read("A", "i"), read("B", "i")))
    buffers = {"A": whole(rng, 5) + 20, "B": whole(rng, 5)}
    found = looped.ask(asked, ("i",), (5,), buffers).value
    assert_equal(type(found["source"]).__name__, "str", "The source is to be a string.")
    compare(looped, asked, ("i",), buffers)


def test_expressions(looped, rng):
    """Every operator, nested: `a - (b - c)` is not `a - b - c`."""
    a, b, c = read("A", "i"), read("B", "i"), read("C", "i")
    i, two = ("index", "i"), ("number", 2)
    buffers = {name: whole(rng, 6) for name in "ABC"}
    for body in (
        ("-", a, ("-", b, c)),
        ("*", ("+", a, b), ("-", c, two)),
        ("*", a, ("*", two, ("+", b, i))),
        ("//", ("number", 40), ("//", ("+", i, two), two)),
        ("%", ("number", 13), ("+", ("%", i, two), two)),
        ("-", ("number", 0), ("-", a, ("number", -3))),
        ("where", (">", a, b), ("where", ("<", i, two), b, c), ("+", a, ("number", 0.5))),
        ("+", ("where", ("<=", a, b), a, b), ("where", (">=", ("+", i, two), ("number", 5)), c, a)),
        ("where", ("&", ("<", i, ("number", 4)), (">", ("+", a, b), ("-", a, b))), a, b),
        ("read", "A", (("%", ("+", ("*", i, two), ("number", 1)), ("number", 6)),)),
        ("number", 1.5),
        i,
    ):
        compare(looped, program({"i": 6}, {}, body), ("i",), buffers)


@points(0.5)
def test_numbers(looped, rng):
    """Numbers of every kind: negative, infinite, and NaN, which is no number."""
    a, i = read("A", "i"), ("index", "i")
    buffers = {"A": whole(rng, 4)}
    early = ("<", i, ("number", 2))
    for number in (-3, -0.5, 1e300, 1e-300, torch.inf, -torch.inf, torch.nan):
        node = ("number", number)
        for body in (node, ("where", early, a, node), ("-", a, node)):
            compare(looped, program({"i": 4}, {}, body), ("i",), buffers)


def test_sums(looped, gemm, padded, rng):
    """Sums, whatever `out` held before; sums of nothing; results without a dimension."""
    asked, buffers = gemm
    compare(looped, asked, ("i", "j", "k"), buffers)
    asked, buffers = padded
    compare(looped, asked, ("i", "d"), buffers)
    x, m = whole(rng, 4), whole(rng, 4, 3)
    compare(looped, program({}, {"i": 4}, read("X", "i")), ("i",), {"X": x})
    compare(looped, program({}, {"row": 4, "k": 3}, read("M", "row", "k")), ("row", "k"), {"M": m})
    compare(looped, program({"row": 4}, {"k": 0}, read("X", "k")), ("row", "k"), {"X": x})
    compare(looped, program({"row": 0}, {"k": 3}, read("X", "k")), ("row", "k"), {"X": x})
    compare(looped, program({}, {}, ("number", 3)), (), {})


def test_any_order(looped, gemm, padded, rng):
    """The result is the same in every order, with a sum's loop inside or outside."""
    asked, buffers = gemm
    for order in orders(("i", "j", "k")):
        compare(looped, asked, order, buffers)
    asked, buffers = padded
    compare(looped, asked, ("d", "i"), buffers)
    body = ("+", ("*", read("M", "i", "r"), read("X", "s")), ("index", "j"))
    buffers = {"M": whole(rng, 2, 3), "X": whole(rng, 4)}
    asked = program({"i": 2, "j": 2}, {"r": 3, "s": 4}, body)
    for order in (("r", "i", "s", "j"), ("s", "r", "j", "i"), ("j", "i", "s", "r")):
        compare(looped, asked, order, buffers)


@points(3)
def test_loop_order(looped, gemm, padded, rng):
    """The loops stand in the order that was asked for: every read happens when it should."""
    copy = program({"i": 2, "j": 3, "h": 2}, {}, read("M", "i", "j", "h"))
    questions = [
        *((*gemm, order) for order in orders(("i", "j", "k"))),
        *((*padded, order) for order in orders(("i", "d"))),
        *((copy, {"M": whole(rng, 2, 3, 2)}, order) for order in orders(("i", "j", "h"))),
    ]
    everything, wrong = [], []
    for asked, buffers, order in questions:
        found = compare(looped, asked, order, buffers)
        expected = reads_in_order(asked, order, buffers)
        got = [(name, tuple(index)) for name, index in found["reads"]]
        everything.append(got)
        for name in buffers:
            # which operand is read first within one evaluation is free
            mine = [index for read_name, index in got if read_name == name]
            theirs = [index for read_name, index in expected if read_name == name]
            if mine != theirs:
                wrong.append(
                    (
                        ("program", written(asked)),
                        ("order", str(order)),
                        ("your source", found["source"]),
                        (f"expected reads of {name}", str(theirs[:12])),
                        (f"reads of {name}", str(mine[:12])),
                        ("counts", f"{len(theirs)} expected, {len(mine)} made"),
                    )
                )
    compared(everything)
    if wrong:
        raise Mismatch("The loops do not run in the order asked for.", wrong[0])


def test_only_the_side_needed(looped, rng):
    """A `where` evaluates one side only, however deep, and a false `&` stops there."""
    i = ("index", "i")
    before = ("-", i, ("number", 2))
    x = whole(rng, 5)
    safe = ("where", inside(before, 5), ("read", "X", (before,)), ("number", 7))
    late = ("where", (">=", i, ("number", 5)), ("number", -1), read("X", "i"))
    peek = ("&", ("<", i, ("number", 5)), (">", read("X", "i"), ("number", 0)))
    for body in (
        ("*", safe, ("number", 2)),
        ("+", late, safe),
        ("where", (">", safe, ("number", 0)), safe, late),
        ("where", peek, ("number", 1), ("number", 0)),
    ):
        compare(looped, program({"i": 7}, {}, body), ("i",), {"X": x})


def test_wrong_order(looped, loops_refused, gemm):
    """An order that does not hold every name once raises `ValueError`."""
    asked, buffers = gemm
    compare(looped, asked, ("i", "j", "k"), buffers)
    for order in (("i", "j"), ("i", "j", "k", "k"), ("i", "j", "r"), ("i", "i", "k"), ()):
        rows = ("program", written(asked)), ("order", str(order))
        what = "An order that does not hold every name once was taken."
        assert_raises(loops_refused.ask(asked, order), "ValueError", what, *rows)
