"""Checks of `simplify`: torch itself, asked on every special value, says which calls change nothing."""

import pytest
import torch

from grader import bits, draw_one, gate, points
from grader.ch07_compile.probes.fx_steps import call_named
from grader.ch07_compile.random_graphs import (
    assert_calls_at_most,
    assert_equivalent,
    call,
    gives,
    reads,
)

FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, 3.0, -2.0, 1e-7, torch.inf, -torch.inf, 65504.0, -65504.0]
WHOLE = [0, 1, -1, 2, 3, 7, -7, 127, -128, 5, 6, 8]
DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int8, torch.bool)
NUMBERS = (0, 1, 0.0, -0.0, 1.0, False, True, 2, -1)
ARITHMETIC = ("add.Tensor", "sub.Tensor", "mul.Tensor", "div.Tensor")
TWICE = ("neg", "abs", "relu", "t", "bitwise_not", "logical_not")


def special(dtype):
    """Return a matrix (4, 3) of the values at which arithmetic is odd."""
    numbers = WHOLE if not dtype.is_floating_point else FLOATS
    return torch.tensor(numbers).to(dtype).reshape(4, 3)


@pytest.fixture
def inputs():
    return [special(torch.float32)]


@pytest.fixture
def steps():
    return [*reads("x0"), call("a", "mul.Tensor", "%x0", 1), call("b", "sin", "%a"), gives("%b")]


def result(name, *args):
    """Return what an operator gives, or None if it refuses."""
    name = call("", name)[2]
    try:
        return call_named(name)(*args)
    except (RuntimeError, NotImplementedError):
        return None


def same(one, other):
    return (
        one.dtype is other.dtype
        and one.shape == other.shape
        and bool((bits(one) == bits(other)).all())
    )


def compare(simplified, steps, inputs, left):
    """Check a graph in which `left` calls must be left, or fewer."""
    got = simplified.ask(steps, inputs).value
    assert_equivalent(got, steps, inputs)
    dtypes = ", ".join(str(x.dtype).removeprefix("torch.") for x in inputs)
    assert_calls_at_most(left, got, steps, f" on {dtypes}")


@gate
def test_times_one(simplified, steps, inputs):
    """`x * 1` of a float is `x`."""
    compare(simplified, steps, inputs, 1)


def arithmetic(simplified, names, dtypes):
    """Put all calls with a number on one dtype into one graph."""
    for dtype in dtypes:
        x, steps, outputs, left = special(dtype), reads("x0"), [], 0
        for name in names:
            for number in NUMBERS:
                value = result(name, x, number)
                if value is not None:
                    outputs.append(f"%v{len(outputs)}")
                    steps.append(call(outputs[-1][1:], name, "%x0", number))
                    left += not same(value, x)
        compare(simplified, [*steps, gives(*outputs)], [x], left)


@points(2)
def test_floats(simplified):
    """A float and a number: `+`, `-`, `*` and `/`, with each zero and each one."""
    arithmetic(simplified, ARITHMETIC, (torch.float32, torch.bfloat16, torch.float16))


@points(2)
def test_whole_numbers(simplified):
    """A whole number or a bool and a number: some results have another dtype."""
    arithmetic(simplified, ARITHMETIC, (torch.int64, torch.int8, torch.uint8, torch.bool))


def test_keyword_arguments(simplified):
    """A call with `alpha` or `rounding_mode` does something else and stays, unless it does not."""
    x = special(torch.float32)
    rows = [
        ("add.Tensor", -0.0, {"alpha": -1}),
        ("sub.Tensor", 0.0, {"alpha": -1}),
        ("div.Tensor_mode", 1, {"rounding_mode": "floor"}),
        ("div.Tensor_mode", 1.0, {"rounding_mode": "trunc"}),
    ]
    steps = [call(f"v{n}", name, "%x0", y, **k) for n, (name, y, k) in enumerate(rows)]
    steps += [call("one", "mul.Tensor", "%x0", 1), gives(*[f"%v{n}" for n in range(4)], "%one")]
    compare(simplified, [*reads("x0"), *steps], [x], 4)


def test_twice(simplified):
    """The same call on its own result: `neg`, `t`, `bitwise_not`, `logical_not`; `abs`, `relu`."""
    for dtype in DTYPES:
        x, steps, outputs, left = special(dtype), reads("x0"), [], 0
        for name in TWICE:
            once = result(name, x)
            if once is None:
                continue
            twice = result(name, once)
            if twice is None:
                continue
            outputs.append(f"%{name}2")
            steps += [call(f"{name}1", name, "%x0"), call(f"{name}2", name, f"%{name}1")]
            if not same(twice, x):  # then the first call is left, and perhaps the second
                left += 1 + (not same(twice, once))
        compare(simplified, [*steps, gives(*outputs)], [x], left)


def test_no_change_of_shape_or_dtype(simplified):
    """`expand` to the shape that a tensor has, and `_to_copy` to its dtype; others stay."""
    x = special(torch.float32)
    steps = [
        *reads("x0", "x1"),
        call("a", "expand", "%x0", [4, 3]),
        call("b", "expand", "%x0", [-1, 3]),
        call("c", "expand", "%x1", [4, 3]),
        call("d", "expand", "%x0", [1, 4, 3]),
        call("e", "_to_copy", "%x0", dtype=torch.float32),
        call("f", "_to_copy", "%x0", dtype=torch.float64),
        call("g", "_to_copy", "%f", dtype=torch.float32),
        call("h", "_to_copy", "%x1", dtype=torch.float32),
        call("i", "_to_copy", "%x0", dtype=torch.bfloat16),
        call("j", "_to_copy", "%i", dtype=torch.float32),
        gives(*[f"%{name}" for name in "abcdefghij"]),
    ]
    compare(simplified, steps, [x, x[:1].contiguous()], 6)


def test_one_after_the_other(simplified, rng):
    """Rules in a row: what one leaves behind is food for the next."""
    x = special(torch.float32)
    nests = [
        (["neg", ("mul.Tensor", 1), "neg"], 0),
        (["neg", "neg", "neg", "neg"], 0),
        (["t", ("sub.Tensor", 0.0), ("div.Tensor", 1), "t", "sin"], 1),
        (["abs", ("add.Tensor", -0.0), "abs", "abs"], 1),
        (["neg", "neg", "neg"], 1),
        (["neg", ("add.Tensor", 0), "neg"], 3),
        (["relu", "neg", "neg", "relu", "cos"], 2),
    ]
    for nest, left in nests:
        compare(simplified, chain(nest), [x], left)
    for _ in range(6):  # put what does nothing between calls that do something
        nest, left = [], 0
        for _ in range(8):
            nest.append(
                draw_one(rng, ["sin", ("add.Tensor", 2), ("mul.Tensor", 1), ("sub.Tensor", 0)])
            )
            left += nest[-1] in ("sin", ("add.Tensor", 2))
        compare(simplified, chain(["cos", "t", *nest, ("div.Tensor", 1)]), [x], left + 2)


def chain(nest):
    steps = reads("x0")
    for n, one in enumerate(nest):
        name, *numbers = (one,) if isinstance(one, str) else one
        steps.append(call(f"v{n}", name, f"%v{n - 1}" if n else "%x0", *numbers))
    return [*steps, gives(f"%v{len(nest) - 1}")]


def test_several_users(simplified):
    """A call that others take too stays for them, when one of its users goes."""
    x = special(torch.float32)
    steps = [
        *reads("x0"),
        call("n", "neg", "%x0"),
        call("m", "neg", "%n"),
        call("s", "sin", "%m"),
        call("k", "mul.Tensor", "%n", 1.0),
        call("u", "add.Tensor", "%k", "%m"),
        gives("%s", ["%u", "%n"]),
    ]
    steps[-1] = gives("%s", "%u", "%n")
    compare(simplified, steps, [x], 3)
    # calls that nobody used from the beginning, one of them only by the other
    dead = [call("c", "cos", "%x0"), call("d", "exp", "%c"), call("s", "sin", "%x0")]
    compare(simplified, [*reads("x0"), *dead, gives("%s")], [x], 1)
    # a node between two may be used twice by one call
    steps = [
        *reads("x0"),
        call("n", "mul.Tensor", "%x0", True),
        call("a", "mul.Tensor", "%n", "%n"),
    ]
    compare(simplified, [*steps, gives("%a", "%x0")], [x], 1)
