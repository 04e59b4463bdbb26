"""Checks of `broken_promises`: what a call did and its schema had not said."""

import pytest
import torch

from grader import about, assert_equal, draw_order, gate, points, python_random
from grader.ch09_dispatch.promises import ATEN, Case, numbers, random_case


@pytest.fixture
def random(rng):
    return python_random(rng)


@pytest.fixture
def x(random):
    return numbers(random, 3)


@pytest.fixture
def y(random):
    return numbers(random, 4)


def ask(promises, case):
    got = promises.ask(
        f"op{case.schema}", case.names, case.kernel.split("; "), case.arguments, case.keywords
    )
    return got.value


def compare(promises, cases):
    for case in cases:
        rows = [("schema", f"op{case.schema}"), ("kernel", case.kernel)]
        rows += [("where", case.of)] if case.of else []
        with about(*rows):
            assert_equal(ask(promises, case)["broken"], case.broken, "What was broken, as lists.")


@gate
def test_kept(promises, x, y):
    """Says nothing of operators that do what their schema says."""
    compare(
        promises,
        [
            Case("(Tensor x) -> Tensor", "return x + 1", [x]),
            Case("(Tensor(a!) x) -> Tensor(a!)", "return x.add_(1)", [x]),
            Case("(Tensor(a) x) -> Tensor(a)", "return x[1:]", [x]),
            Case("(Tensor x, Tensor(a!) y) -> ()", "y.mul_(2)", [x, y]),
        ],
    )


@points(2)
def test_writes(promises, x, y):
    """Names each argument that was written without `!`: by position, by keyword, in a list."""
    compare(
        promises,
        [
            Case("(Tensor x) -> ()", "x.add_(1)", [x], [["writes", "x"]]),
            Case("(Tensor(a) x) -> ()", "x.add_(1)", [x], [["writes", "x"]]),
            Case("(Tensor(a!) x, Tensor y) -> ()", "x.add_(1); y.add_(1)", [x, y], [["writes", "y"]]),
            Case("(Tensor x, Tensor y) -> Tensor", "y[1:].add_(1); return x + 1", [x, y], [["writes", "y"]]),
            Case("(Tensor x, Tensor? y) -> ()", "x.add_(1)", [x, None], [["writes", "x"]]),
            Case("(Tensor x, *, Tensor y) -> ()", "y.add_(1)", [x], [["writes", "y"]], {"y": y}),
            Case("(Tensor x, Tensor[] ys) -> ()", "ys[-1].add_(1)", [x, [y, x + 1]], [["writes", "ys"]]),
            Case("(Tensor(a!)[] ys, Tensor x) -> ()", "ys[0].add_(1); x.add_(1)", [[y], x], [["writes", "x"]]),
            Case("(Tensor x, Tensor[] ys) -> ()", "ys[1].add_(1)", [x, (x + 1, y)], [["writes", "ys"]], of="ys is a tuple"),
        ],
    )  # fmt: skip


@points(3)
def test_shares(promises, x, y):
    """Names each argument that a result shares memory with, and may not: objects, views, lists."""
    compare(
        promises,
        [
            Case("(Tensor x) -> Tensor", "return x", [x], [["shares", 0, "x"]]),
            Case("(Tensor x) -> Tensor", "return x[1:]", [x], [["shares", 0, "x"]]),
            Case("(Tensor x) -> Tensor", "return x.detach()", [x], [["shares", 0, "x"]]),
            Case("(Tensor x) -> Tensor", "return torch.as_strided(x, (1,), (1,), 2)", [x], [["shares", 0, "x"]]),
            Case("(Tensor x, Tensor y) -> Tensor", "return y.t()", [x, y], [["shares", 0, "y"]]),
            Case("(Tensor(a) x, Tensor(b) y) -> Tensor(a)", "return y[1:]", [x, y], [["shares", 0, "y"]]),
            Case("(Tensor(a) x) -> (Tensor(a), Tensor)", "return x[1:], x[:1]", [x], [["shares", 1, "x"]]),
            Case("(Tensor x) -> Tensor[]", "return [x + 1, x[1:]]", [x], [["shares", 0, "x"]]),
            Case("(Tensor[] ys) -> Tensor", "return ys[1][1:]", [[x, y]], [["shares", 0, "ys"]]),
            Case("(Tensor(a!) x) -> Tensor", "return x.add_(1)", [x], [["shares", 0, "x"]]),
            Case("(Tensor x, *, Tensor y) -> Tensor", "return y", [x], [["shares", 0, "y"]], {"y": y}),
        ],
    )  # fmt: skip


def test_may(promises, x, y):
    """What may happen need not: a letter without sharing, a `!` without a write."""
    compare(
        promises,
        [
            Case("(Tensor(a) x, Tensor y) -> Tensor(a)", "y.add_(1); return x + 1", [x, y], [["writes", "y"]]),
            Case("(Tensor(a!) x, Tensor y) -> Tensor", "return y", [x, y], [["shares", 0, "y"]]),
            Case("(Tensor(a -> *) x, Tensor y) -> (Tensor(a)[], Tensor)", "return [x + 1, x[1:]], y", [x, y], [["shares", 1, "y"]]),
        ],
    )  # fmt: skip


def test_is_the_argument(promises, x, y):
    """A result with the `!` of an argument is that very object, no copy and no view of it."""
    compare(
        promises,
        [
            Case("(Tensor(a!) x) -> Tensor(a!)", "return x.add_(1)", [x]),
            Case("(Tensor(a!) x) -> Tensor(a!)", "return x + 1", [x], [["is not", 0, "x"]]),
            Case("(Tensor(a!) x) -> Tensor(a!)", "return x.view(3)", [x], [["is not", 0, "x"]]),
            Case("(Tensor x, *, Tensor(a!) y) -> Tensor(a!)", "y.add_(1); return y.clone()", [x], [["is not", 0, "y"]], {"y": y}),
            Case(
                "(Tensor(a!) x, Tensor(b!) y) -> (Tensor(a!), Tensor(b!))",
                "return y, x",
                [x, y],
                [["is not", 0, "x"], ["is not", 1, "y"], ["shares", 0, "y"], ["shares", 1, "x"]],
            ),
        ],
    )  # fmt: skip


def test_bytes(promises, x):
    """Bytes decide what was written: not values, not version counters."""
    nan, zero = torch.tensor([1.0, float("nan")]), torch.zeros(2)
    said = [["writes", "y"]]
    schema = "(Tensor x, Tensor y) -> ()"
    compare(
        promises,
        [
            Case(schema, "y.add_(1)", [nan, x], said, of="x = torch.tensor([1.0, nan])"),
            Case(schema, "x.mul_(1); y.add_(1)", [x + 1, x], said),
            Case(schema, "y.mul_(-1)", [x, zero], said, of="y = torch.zeros(2)"),
            Case(schema, "y.data.add_(1)", [x + 1, x], said),
            Case(schema, "y.add_(1)", [x + 1, x.to(torch.int8)], said, of="y is int8"),
            Case(schema, "y.logical_not_()", [x + 1, x > 4], said, of="y is bool"),
        ],
    )


def test_one_memory(promises, random):
    """Where arguments lie in one storage, what one of them may, all of them may."""
    base = numbers(random, 6)
    head, tail, other = base[:3], base[2:], numbers(random, 3)
    adds = "x.add_(y); z.add_(1); return x"
    schema = "(Tensor(a!) x, Tensor y, Tensor z) -> Tensor(a!)"
    views = "(Tensor(a) x, Tensor y, Tensor z) -> (Tensor(a), Tensor)"
    lists = "(Tensor(a!) x, Tensor[] ys) -> ()"
    shares = [["shares", 1, "z"]]
    compare(
        promises,
        [
            Case(schema, adds, [other, other, head], [["writes", "z"]], of="x and y are one tensor"),
            Case(lists, "x.add_(1); ys[1].add_(1)", [other, [other, head]], [["writes", "ys"]], of="ys[0] is x"),
            Case(views, "return x[1:], z", [other, other, head], shares, of="x and y are one tensor"),
            Case(schema, "x.add_(1); z.add_(1); return x", [head, tail, other], [["writes", "z"]], of="x is base[:3], y is base[2:]"),
            Case(views, "return x[1:], z", [head, tail, other], shares, of="x is base[:3], y is base[2:]"),
        ],
    )  # fmt: skip


def test_empty(promises, x):
    """Tensors without elements share nothing, though their addresses are all 0."""
    empty = torch.empty(0)
    compare(
        promises,
        [
            Case(
                "(Tensor x, Tensor y) -> (Tensor, Tensor)",
                "return torch.empty(0), x",
                [x, empty],
                [["shares", 1, "x"]],
                of="y = torch.empty(0)",
            )
        ],
    )


def test_once(promises, x):
    """The operator is called once, with the very arguments that were given."""
    case = Case("(Tensor x) -> ()", "x.add_(1)", [x], [["writes", "x"]])
    got = ask(promises, case)
    with about(("schema", f"op{case.schema}"), ("kernel", case.kernel)):
        assert_equal(got["broken"], case.broken, "What was broken, as lists.")
        assert_equal(got["calls"], 1, "How often the operator was called.")


def test_mixed(promises, random):
    """Operators that do several things, some promised and some not."""
    compare(promises, [random_case(random) for _ in range(25)])


def test_aten(promises_of_aten, rng):
    """PyTorch's own operators, in an order drawn at random."""
    for place in draw_order(rng, len(ATEN)):
        name, overload, arguments, broken = ATEN[place]
        with about(("on", f"torch.ops.aten.{name}.{overload}")):
            got = promises_of_aten.ask(name, overload, arguments()).value
            assert_equal(got, broken, "What was broken, as lists.")
