"""Checks of `lower_to_einsum`: every equation is run; what is no contraction must not become one."""

import re

import torch

from grader import Mismatch, compared, gate, points
from grader.ch03_matmul.formulas import add, evaluate, program, read, whole, written


def times(*factors):
    product = factors[0]
    for factor in factors[1:]:
        product = ("*", product, factor)
    return product


def judge(lowered, *questions):
    """Ask about all programs, then fail on the first that is wrong: `questions` are `check`s."""
    outcomes, problems = [], []
    for cases, buffers, problem_of in questions:
        for name, asked in cases.items():
            found = lowered.ask(asked, buffers).value
            problem = problem_of(name, asked, buffers, found)
            outcomes.append((found is None, problem is None, _reason(found)))
            problems += [problem] if problem else []
    compared(outcomes)
    if problems:
        raise problems[0]


def _reason(found):
    """Return why torch refused an equation, without the numbers and letters of this one."""
    return re.sub(r"\b(\d+|\w)\b", "#", found["refused"]) if found else ""


def check(lowered, cases, buffers):
    """Fail unless there is an equation for each program, which gives what the program says."""
    judge(lowered, (cases, buffers, must))


def rows_of(name, asked, found):
    """Return the rows that say which program it was, and what came."""
    rows = (("program", f"{name}: {written(asked)[:300]}"),)
    if found is None:
        return (*rows, ("got", "None"))
    return (*rows, ("got", str((found["equation"], found["names"]))))


def may(name, asked, buffers, found):
    """Return what is wrong with an equation. None is right."""
    if found is None:
        return None
    if found["refused"]:
        rows = (*rows_of(name, asked, found), ("torch.einsum says", found["refused"]))
        return Mismatch("`torch.einsum` refuses the equation with these buffers.", rows)
    expected, got = evaluate(asked, buffers), found["value"]
    if got.shape == expected.shape and torch.equal(got, expected):
        return None
    values = (("the program gives", _shown(expected)), ("the equation gives", _shown(got)))
    what = "The equation does not give what the program says."
    return Mismatch(what, (*rows_of(name, asked, found), *values))


def must(name, asked, buffers, found):
    """Return what is wrong with an equation, which there must be."""
    if found is None:
        what = "You return None for a sum of products."
        return Mismatch(what, rows_of(name, asked, found))
    return may(name, asked, buffers, found)


def cannot(name, asked, buffers, found):
    """Return what is wrong with an equation for a program that reads what does not exist."""
    if found is None:
        return None
    what = "This program reads outside of a buffer: no equation gives what it says."
    return Mismatch(what, rows_of(name, asked, found))


def _shown(value):
    return f"shape {tuple(value.shape)}: {value.tolist()}"[:120]


@gate
def test_matrix_product(lowered, rng):
    """A matrix product is recognised."""
    body = times(read("A", "i", "k"), read("B", "k", "j"))
    buffers = {"A": whole(rng, 4, 3), "B": whole(rng, 3, 5)}
    check(lowered, {"a matrix product": program({"i": 4, "j": 5}, {"k": 3}, body)}, buffers)


def test_contractions(lowered, rng):
    """Products of any number of reads, any number of sums, any nesting."""
    a, b, c = whole(rng, 4, 3), whole(rng, 3, 5), whole(rng, 5, 4)
    buffers = {"A": a, "B": b, "C": c, "V": whole(rng, 3), "T": whole(rng, 2, 4, 3)}
    ab = times(read("A", "i", "k"), read("B", "k", "j"))
    cases = {
        "an outer product": program({"i": 3, "j": 3}, {}, times(read("V", "i"), read("V", "j"))),
        "a batch": program(
            {"n": 2, "i": 4, "j": 5}, {"k": 3}, times(read("T", "n", "i", "k"), read("B", "k", "j"))
        ),
        "three matrices": program(
            {"i": 4, "h": 4}, {"k": 3, "j": 5}, times(ab, read("C", "j", "h"))
        ),
        "nested the other way": program(
            {"i": 4, "h": 4},
            {"k": 3, "j": 5},
            ("*", read("A", "i", "k"), ("*", read("B", "k", "j"), read("C", "j", "h"))),
        ),
        "four factors": program(
            {"i": 4},
            {"k": 3, "j": 5},
            ("*", ab, ("*", read("C", "j", "i"), read("V", "k"))),
        ),
        "everything summed": program({}, {"i": 4, "k": 3, "j": 5}, ab),
        "elementwise": program({"i": 4, "k": 3}, {}, times(read("A", "i", "k"), read("V", "k"))),
    }
    check(lowered, cases, buffers)


def test_single_reads(lowered, rng):
    """One read: transposed, summed, its diagonal; a buffer twice."""
    square, table = whole(rng, 4, 4), whole(rng, 3, 4)
    buffers = {"S": square, "T": table}
    cases = {
        "as it is": program({"i": 3, "j": 4}, {}, read("T", "i", "j")),
        "transposed": program({"j": 4, "i": 3}, {}, read("T", "i", "j")),
        "sums of rows": program({"i": 3}, {"j": 4}, read("T", "i", "j")),
        "the diagonal": program({"i": 4}, {}, read("S", "i", "i")),
        "the trace": program({}, {"i": 4}, read("S", "i", "i")),
        "squared": program(
            {"i": 4, "j": 4}, {"k": 4}, times(read("S", "i", "k"), read("S", "k", "j"))
        ),
        "with its transpose": program(
            {"i": 3, "h": 3}, {"j": 4}, times(read("T", "i", "j"), read("T", "h", "j"))
        ),
    }
    check(lowered, cases, buffers)


def test_names(lowered, rng):
    """Names of several letters, names that begin alike, and twenty of them."""
    body = times(read("weights", "row", "rot"), read("x", "rot"))
    buffers = {"weights": whole(rng, 4, 4), "x": whole(rng, 4)}
    check(lowered, {"long names": program({"row": 4}, {"rot": 4}, body)}, buffers)
    many = [f"index_{n}" for n in range(20)]
    body = times(read("P", *many[:10]), read("Q", *many[10:]), read("R", many[0], many[19]))
    buffers = {"P": whole(rng, 2, *[1] * 9), "Q": whole(rng, *[1] * 9, 3), "R": whole(rng, 2, 3)}
    sizes = [2, *[1] * 18, 3]
    asked = program({many[19]: 3}, dict(zip(many[:19], sizes[:19], strict=True)), body)
    check(lowered, {"twenty indices": asked}, buffers)


def test_other_formulas(lowered, rng):
    """Sums, differences, numbers, computed indices and conditions: no wrong equation."""
    buffers = {"A": whole(rng, 4), "B": whole(rng, 4), "M": whole(rng, 4, 4)}
    a, b, m = read("A", "i"), read("B", "i"), read("M", "i", "k")
    two = ("number", 2)
    cases = {
        "an addition": program({"i": 4}, {}, ("+", a, b)),
        "a difference in a product": program({"i": 4}, {"k": 4}, times(m, ("-", a, b))),
        "a factor": program({"i": 4}, {"k": 4}, times(two, m)),
        "a number": program({"i": 4}, {}, two),
        "an index as a factor": program({"i": 4}, {}, times(a, ("index", "i"))),
        "a shifted index": program({"i": 3}, {}, read("A", add("i", 1))),
        "a fixed row": program({"i": 4}, {}, read("M", 0, "i")),
        "a condition": program({"i": 4}, {}, ("where", (">", a, two), a, b)),
        "a remainder": program({"i": 4}, {}, ("%", read("A", "i"), ("number", 3))),
        "a sum within a product": program({"i": 4}, {}, times(a, ("sum", "k", 4, m))),
        "a sum within an addition": program({"i": 4}, {}, ("+", a, ("sum", "k", 4, m))),
        "one sum with two parts": program({"i": 4}, {"k": 4}, ("+", m, times(a, b))),
    }
    # an answer that says None to everything has recognised nothing
    body = times(read("M", "i", "k"), read("A", "k"))
    contraction = {"a matrix times a vector": program({"i": 4}, {"k": 4}, body)}
    judge(lowered, (cases, buffers, may), (contraction, buffers, must))


@points(2)
def test_look_alikes(lowered, rng):
    """Sums of products whose extents `einsum` would get wrong."""
    buffers = {"A": whole(rng, 5) + 20, "B": whole(rng, 5) + 20, "M": whole(rng, 4, 5) + 20}
    a, b = read("A", "i"), read("B", "k")
    cases = {
        "a part of a vector": program({"i": 2}, {}, a),
        "a sum over a part": program({}, {"i": 3}, a),
        "a part of both": program({"i": 3}, {"k": 4}, times(a, b)),
        "a sum that nothing depends on": program({"i": 5}, {"k": 3}, a),
        "an axis that nothing depends on": program({"i": 5, "j": 2}, {}, a),
        "nothing depends on it, twice": program(
            {"i": 5}, {"k": 2, "r": 2}, times(a, read("B", "i"))
        ),
        "a part of the diagonal": program({"i": 4}, {}, read("M", "i", "i")),
        "an inner index that hides an outer": program({"i": 5}, {"i": 5}, a),
        "the same, of another length": program({"i": 4}, {"i": 5}, a),
        "part of the columns": program({"i": 4}, {"k": 3}, read("M", "i", "k")),
    }
    buffers = {**buffers, "U": whole(rng, 1) + 20}
    outside = {
        "a vector beyond its end": program({"i": 7}, {}, a),
        "a vector of one, for all": program({"i": 5}, {}, times(a, read("U", "i"))),
    }
    body = times(read("M", "i", "k"), read("B", "k"))
    contraction = {"a matrix times a vector": program({"i": 4}, {"k": 5}, body)}
    judge(
        lowered,
        (cases, buffers, may),
        (outside, buffers, cannot),
        (contraction, buffers, must),
    )
