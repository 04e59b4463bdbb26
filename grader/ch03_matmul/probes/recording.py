"""Probes of `compute`: formulas, recorded in the student's language."""

import ast
import operator
from pathlib import Path

from grader import probe

OPERATORS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "&": operator.and_,
}


def _formulas(student):
    """Return programs in the student's language: name -> function that records it."""
    A, B, C = (student.Buffer(name) for name in "ABC")
    total, where = student.total, student.where
    return {
        "vector add": ((7,), lambda i: A[i] + B[i]),
        "matrix product": ((4, 5), lambda i, j: total((3,), lambda k: A[i, k] * B[k, j])),
        "two sums": ((4,), lambda i: total((3, 5), lambda r, s: A[i, r] * B[r, s])),
        "sums with different work": (
            (2,),
            lambda row: total((3, 4), lambda r, s: A[row, r] * (s + 2 * r) - row),
        ),
        "scalar": ((), lambda: total((7,), lambda i: A[i])),
        "a number": ((2, 3), lambda i, j: 1.5),
        "an index": ((3, 4), lambda i, j: 10 * i + j),
        "transposed": ((5, 4), lambda i, j: A[j, i]),
        "reversed": ((7,), lambda i: A[6 - i]),
        "numbers first": ((7,), lambda i: 2 + A[i] - (3 - (2 * B[i] * 0.5))),
        "numbers last": ((7,), lambda i: A[i] * 3 + 1 - (B[i] - 2)),
        "whole division": (
            (12,),
            lambda i: A[i // 3] * 10 + B[i % 4] + 40 // (i + 1) + 13 % (i + 2),
        ),
        "minus": ((7,), lambda i: -A[i] + -i),
        "precedence": ((7,), lambda i: (A[i] + B[i]) * (A[i] - (B[i] - 1))),
        "numbers as indices": ((7,), lambda i: A[0] + B[i] * A[6]),
        "conditions": (
            (6, 6),
            lambda i, j: (
                where(i < j, 1, 0)
                + where(i <= j, 10, 0)
                + where(i > j, 100, 0)
                + where(i >= 3, 1000, 0)
                + where((j < 5) & (i + j <= 5), 10_000, 0)
                + where(2 < i, 100_000, 0)  # noqa: SIM300  (the number first, on purpose)
            ),
        ),
        "values decide": ((7,), lambda i: where(A[i] > B[i], A[i], B[i])),
        "padded": (
            (9,),
            lambda i: total(
                (3,),
                lambda d: where((i + d - 2 >= 0) & (i + d - 2 < 7), A[i + d - 2], 0.0) * B[d],
            ),
        ),
        "bias and sum": ((4,), lambda i: C[i] + 2 * total((3,), lambda k: A[i, k])),
        "convolution": (
            (2, 4, 5),
            lambda o, y, x: total(
                (2, 3, 3),
                lambda c, r, s: (
                    where(
                        (y + r - 1 >= 0) & (y + r - 1 < 4) & (x + s - 1 >= 0) & (x + s - 1 < 5),
                        A[c, y + r - 1, x + s - 1],
                        0,
                    )
                    * B[o, c, r, s]
                ),
            ),
        ),
    }


@probe
def recorded(student, name):
    """Return a program of ours, recorded in the student's language."""
    try:
        return student.compute(*_formulas(student)[name])
    except Exception as error:
        error.add_note(asked(name))
        raise


def asked(name):
    """Return the call that records one of these formulas, as a student would write it."""
    tree = ast.parse(Path(__file__).read_text(encoding="utf-8"))
    for node in [node for node in ast.walk(tree) if isinstance(node, ast.Dict)]:
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and key.value == name and isinstance(value, ast.Tuple):
                return f"compute{ast.unparse(value)}".replace("student.", "")
    raise LookupError(name)


@probe
def recorded_formula(student, shape, names, body):
    """Return a program recorded from a formula that is given as nodes; "minus" is a sign in front."""

    def build(node, at):
        kind, *parts = node
        if kind == "number":
            return parts[0]
        if kind == "index":
            return at[parts[0]]
        if kind == "read":
            indices = tuple(build(part, at) for part in parts[1])
            return student.Buffer(parts[0])[indices if len(indices) > 1 else indices[0]]
        if kind == "minus":
            return -build(parts[0], at)
        if kind == "where":
            return student.where(*(build(part, at) for part in parts))
        if kind == "sum":
            name, extent, inner = parts
            return student.total((extent,), named([name], lambda i: build(inner, {**at, name: i})))
        return OPERATORS[kind](*(build(part, at) for part in parts))

    def formula(*indices):
        return build(body, dict(zip(names, indices, strict=True)))

    return student.compute(tuple(shape), named(names, formula))


def named(names, function):
    """Return a function whose parameters have these names."""
    listed = ", ".join(names)
    return eval(f"lambda {listed}: function({listed})", {"function": function})


@probe
def recorded_wrongly(student, how):
    """Record a formula that cannot be recorded."""
    A = student.Buffer("A")
    shape, formula = {
        "if": ((5,), lambda i: A[i] if i > 2 else 0),
        "chain": ((5,), lambda i: student.where(0 <= i < 3, A[i], 0)),
        "and": ((5,), lambda i: student.where(i > 0 and i < 3, A[i], 0)),
        "not": ((5,), lambda i: student.where(not i, A[i], 0)),
        "too few": ((5, 5), lambda i: A[i]),
        "too many": ((5,), lambda i, j: A[i, j]),
        "sum too few": ((5,), lambda i: student.total((2, 3), lambda k: A[k])),
    }[how]
    student.compute(shape, formula)
