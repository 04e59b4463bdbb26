"""Checks of `compute` and its language: what was recorded is interpreted, and must mean the same."""

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
from grader.ch03_matmul.formulas import any_formula, evaluate, plain, program, read, whole, written
from grader.ch03_matmul.probes.recording import asked


@pytest.fixture
def short(rng):
    """Three vectors (7)."""
    return {name: whole(rng, 7) for name in "ABC"}


def meaning(recorded, name, expected, buffers):
    """Record one of our formulas, and compare what the program says with what we meant."""
    program = recorded.ask(name).value
    with about(("formula", asked(name)), ("program", repr(program)[:300])):
        # minus zero is as good as zero
        assert_same_bits(evaluate(program, buffers) + 0.0, expected.double() + 0.0)


def upto(n):
    return torch.arange(n)


@gate
def test_program(recorded):
    """`compute` returns a dict with the axes, named as the parameters, and a body."""
    for name, axes in (
        ("vector add", (("i", 7),)),
        ("matrix product", (("i", 4), ("j", 5))),
        ("sums with different work", (("row", 2),)),
    ):
        program = recorded.ask(name).value
        assert_equal(type(program).__name__, "dict", "`compute` is to return a dict.")
        assert_equal(sorted(program), ["axes", "body"], "The program's keys.")
        what = f"The axes of {asked(name)}."
        assert_equal(tuple(map(tuple, program["axes"])), axes, what)


def test_arithmetic(recorded, short):
    """Every operator, an `Expr` or a number on either side."""
    a, b = short["A"], short["B"]
    meaning(recorded, "numbers first", 2 + a - (3 - (2 * b * 0.5)), short)
    meaning(recorded, "numbers last", a * 3 + 1 - (b - 2), short)
    meaning(recorded, "minus", -a - upto(7), short)
    meaning(recorded, "precedence", (a + b) * (a - (b - 1)), short)
    i = upto(12)
    expected = a[i // 3] * 10 + b[i % 4] + 40 // (i + 1) + 13 % (i + 2)
    meaning(recorded, "whole division", expected, short)


def test_reads(recorded, short, rng):
    """Buffers of any number of dimensions, read at computed places."""
    a, b = short["A"], short["B"]
    meaning(recorded, "vector add", a + b, short)
    meaning(recorded, "reversed", a.flip(0), short)
    meaning(recorded, "numbers as indices", a[0] + b * a[6], short)
    table = whole(rng, 4, 5)
    meaning(recorded, "transposed", table.t(), {"A": table})
    meaning(recorded, "an index", 10 * upto(3)[:, None] + upto(4), {})
    meaning(recorded, "a number", torch.full((2, 3), 1.5), {})


def test_conditions(recorded, short):
    """Comparisons, `&` and `where`, of indices and of values."""
    i, j = upto(6)[:, None], upto(6)
    expected = (i < j) + 10 * (i <= j) + 100 * (i > j) + 1000 * (i >= 3)
    expected = expected + 10_000 * ((j < 5) & (i + j <= 5)) + 100_000 * (i > 2)
    meaning(recorded, "conditions", expected, {})
    meaning(recorded, "values decide", torch.maximum(short["A"], short["B"]), short)


@points(3)
def test_any_formula(recorded_formula, rng):
    """Random formulas: every operator on what any other gives, a minus sign in front of it too."""
    buffers = {"M": whole(rng, 3, 4), "N": whole(rng, 4, 3)}
    bodies = [
        ("minus", ("+", read("M", "i", "j"), ("index", "i"))),
        ("minus", ("*", read("M", "i", "j"), read("N", "j", "i"))),
        ("minus", ("where", ("<", ("index", "i"), ("index", "j")), ("number", 1), ("index", "j"))),
        *(any_formula(rng, 1 + number // 20) for number in range(60)),
    ]
    wrong, found = [], []
    for body in bodies:
        expected = program({"i": 3, "j": 4}, {}, plain(body))
        got = recorded_formula.ask((3, 4), ("i", "j"), body).value
        found.append(evaluate(got, buffers) + 0.0)
        if not torch.equal(found[-1], evaluate(expected, buffers) + 0.0):
            wrong.append((written({**expected, "body": body}), written({**expected, **got})))
    compared(found)
    if wrong:
        formula, recorded = min(wrong, key=lambda one: len(one[0]))
        rows = ("formula", formula), ("what was recorded", recorded)
        what = f"{len(wrong)} of {len(bodies)} formulas mean something else. The shortest:"
        raise Mismatch(what, rows)


def test_sums(recorded, short, rng):
    """Sums over one index and several, the first outermost, alone and within a formula."""
    a, b = whole(rng, 4, 3), whole(rng, 3, 5)
    meaning(recorded, "matrix product", a @ b, {"A": a, "B": b})
    meaning(recorded, "two sums", (a @ b).sum(1), {"A": a, "B": b})
    meaning(recorded, "scalar", short["A"].sum(), short)
    rows = a[:2]
    work = rows[:, :, None] * (upto(4) + 2 * upto(3)[:, None]) - upto(2)[:, None, None]
    meaning(recorded, "sums with different work", work.sum((1, 2)), {"A": rows})
    body = recorded.ask("two sums").value["body"]
    nesting = (body[:3], body[3][:3])
    assert_equal(nesting, (("sum", "r", 3), ("sum", "s", 5)), "The first sum stands outermost.")
    meaning(recorded, "bias and sum", short["C"][:4] + 2 * a.sum(1), {"A": a, "C": short["C"]})


def test_convolutions(recorded, rng):
    """Convolutions with padding, in one dimension and in two."""
    x, w = whole(rng, 7), whole(rng, 3)
    padded = torch.nn.functional.pad(x, (2, 2)).unfold(0, 3, 1) @ w
    meaning(recorded, "padded", padded, {"A": x, "B": w})
    image, weight = whole(rng, 2, 4, 5), whole(rng, 2, 2, 3, 3)
    expected = torch.nn.functional.conv2d(image[None], weight, padding=1)[0]
    meaning(recorded, "convolution", expected, {"A": image, "B": weight})


def test_refuses(recorded, recorded_wrongly):
    """`if`, `and` and chained comparisons raise `TypeError`; a wrong number of indices `ValueError`."""
    meaning(recorded, "an index", 10 * upto(3)[:, None] + upto(4), {})
    for how, expected in (
        ("if", "TypeError"),
        ("chain", "TypeError"),
        ("and", "TypeError"),
        ("not", "TypeError"),
        ("too few", "ValueError"),
        ("too many", "ValueError"),
        ("sum too few", "ValueError"),
    ):
        what = "A formula that cannot be recorded must be refused."
        assert_raises(recorded_wrongly.ask(how), expected, what, ("formula", asked(how)))
