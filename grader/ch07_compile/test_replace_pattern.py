"""Checks of `replace_pattern`: replacements compute something else, so that each one shows."""

import pytest
import torch

from grader import assert_equal, assert_holds, draw_one, gate, points
from grader.ch07_compile.random_graphs import (
    as_text,
    assert_same_runs,
    call,
    calls_of,
    gives,
    random_inputs,
    reads,
    run_steps,
)


@pytest.fixture
def inputs(rng):
    return random_inputs(rng)


def template(names, *steps, value):
    """Return a pattern or a replacement: placeholders, calls, and the one value that it gives."""
    return [*reads(*names), *steps, ("output", "output", "output", (value,), {})]


SWISH = template(["a"], call("s", "sigmoid", "%a"), call("m", "mul.Tensor", "%a", "%s"), value="%m")
LESS = template(["z"], call("k", "sub.Tensor", "%z", 3), value="%k")


@pytest.fixture
def steps():
    swish = [call("s", "sigmoid", "%x0"), call("m", "mul.Tensor", "%x0", "%s")]
    return [*reads("x0", "x1"), *swish, call("n", "neg", "%m"), gives("%n")]


@pytest.fixture
def pattern():
    return SWISH


@pytest.fixture
def replacement():
    return LESS


def compare(pattern_replaced, steps, templates, expected, count, inputs):
    got = pattern_replaced.ask(steps, *templates, inputs).value
    what = f"Of {as_text(templates[0])} in: {as_text(steps)}"
    assert_equal(got["count"], count, f"The number of matches. {what}")
    left = sorted(calls_of(got["once"]))
    assert_equal(left, sorted(calls_of(expected)), f"The calls that are there afterwards. {what}")
    assert_holds(
        got["recompiled"], "The module's code is not that of its new graph: `recompile()`."
    )
    wanted = run_steps(expected, inputs)
    assert_same_runs(got["runs"], wanted, expected)
    assert_same_runs(run_steps(got["once"], inputs), wanted, expected)
    for name, same in zip(("pattern", "replacement"), got["templates unchanged"], strict=True):
        assert_holds(same, f"The graph `{name}` was changed.")


@gate
def test_one_match(pattern_replaced, steps, inputs):
    """One match is replaced, and its user takes the new value."""
    expected = [*reads("x0", "x1"), call("k", "sub.Tensor", "%x0", 3), call("n", "neg", "%k")]
    compare(pattern_replaced, steps, (SWISH, LESS), [*expected, gives("%n")], 1, inputs)


def test_placeholders(pattern_replaced, inputs):
    """A placeholder stands for anything, a number too; for the same thing wherever it stands."""
    steps = [
        *reads("x0", "x1"),
        call("s", "sigmoid", "%x0"),
        call("m", "mul.Tensor", "%x1", "%s"),
        call("t", "sigmoid", "%x1"),
        call("n", "mul.Tensor", "%x1", "%t"),
        gives("%m", "%n"),
    ]
    expected = [*steps[:4], call("k", "sub.Tensor", "%x1", 3), gives("%m", "%k")]
    compare(pattern_replaced, steps, (SWISH, LESS), expected, 1, inputs)

    pattern = template(
        "ab",
        call("p", "add.Tensor", "%a", "%b"),
        call("q", "mul.Tensor", "%p", "%b"),
        value="%q",
    )
    new = template("uv", call("w", "sub.Tensor", "%u", "%v"), value="%w")
    rows = [(2, 2), (2, 3), (2, 2.0), (True, 1), ("%x1", "%x1"), ("%x1", "%x0"), (0.0, -0.0)]
    steps, expected, outputs = reads("x0", "x1"), reads("x0", "x1"), []
    for n, (one, two) in enumerate(rows):
        pair = [
            call(f"p{n}", "add.Tensor", "%x0", one),
            call(f"q{n}", "mul.Tensor", f"%p{n}", two),
        ]
        steps += pair
        matches = one == two and type(one) is type(two) and str(one) == str(two)
        expected += [call(f"q{n}", "sub.Tensor", "%x0", one)] if matches else pair
        outputs.append(f"%q{n}")
    steps, expected = [*steps, gives(*outputs)], [*expected, gives(*outputs)]
    compare(pattern_replaced, steps, (pattern, new), expected, 2, inputs)


def test_constants(pattern_replaced, inputs):
    """Constants, lists, keyword arguments and targets must be the pattern's, types included."""
    pattern = template("a", call("p", "add.Tensor", "%a", 1, alpha=2), value="%p")
    new = template("a", call("w", "neg", "%a"), value="%w")
    steps = [
        *reads("x0", "x1"),
        call("v0", "add.Tensor", "%x0", 1, alpha=2),
        call("v1", "add.Tensor", "%x0", 1.0, alpha=2),
        call("v2", "add.Tensor", "%x0", True, alpha=2),
        call("v3", "add.Tensor", "%x0", 1, alpha=3),
        call("v4", "add.Tensor", "%x0", 1),
        call("v5", "sub.Tensor", "%x0", 1, alpha=2),
        call("v6", "add.Scalar", "%x0", 1, 2),
        gives(*[f"%v{n}" for n in range(7)]),
    ]
    expected = [*reads("x0", "x1"), call("v0", "neg", "%x0"), *steps[3:]]
    compare(pattern_replaced, steps, (pattern, new), expected, 1, inputs)

    both = call("p", "cat", ["%a", "%b"], 1)
    pattern = template("ab", both, call("q", "sum.dim_IntList", "%p", [1]), value="%q")
    new = template("ab", call("w", "sum.dim_IntList", "%b", [1]), value="%w")
    steps, expected, outputs = reads("x0", "x1"), reads("x0", "x1"), []
    for n, (parts, dims) in enumerate(
        [(["%x0", "%x1"], [1]), (["%x0", "%x1"], [0]), (["%x0"] * 3, [1]), (["%x0"], [1])]
    ):
        pair = [call(f"p{n}", "cat", parts, 1), call(f"q{n}", "sum.dim_IntList", f"%p{n}", dims)]
        steps += pair
        expected += [call(f"q{n}", "sum.dim_IntList", "%x1", [1])] if n == 0 else pair
        outputs.append(f"%q{n}")
    steps, expected = [*steps, gives(*outputs)], [*expected, gives(*outputs)]
    compare(pattern_replaced, steps, (pattern, new), expected, 1, inputs)

    # more arguments than the pattern has, or fewer, are others; so are keywords
    new = template("a", call("w", "neg", "%a"), value="%w")
    rows = [([1],), ([1], True), ([1], True, {"dtype": torch.float32})]
    steps = [*reads("x0", "x1")]
    for n, row in enumerate(rows):
        given = row[-1] if isinstance(row[-1], dict) else {}
        args = [part for part in row if not isinstance(part, dict)]
        steps.append(call(f"v{n}", "sum.dim_IntList", "%x0", *args, **given))
    steps.append(gives("%v0", "%v1", "%v2"))
    for n in range(3):
        _, _, target, (_, *args), given = steps[2 + n]
        pattern = template("a", call("p", target, "%a", *args, **given), value="%p")
        expected = list(steps)
        expected[2 + n] = call(f"v{n}", "neg", "%x0")
        compare(pattern_replaced, steps, (pattern, new), expected, 1, inputs)


@points(3)
def test_inner_values_used_outside(pattern_replaced, inputs):
    """Where a value inside the match is used by others, or returned, there is no match."""
    one = [call("s", "sigmoid", "%x0"), call("m", "mul.Tensor", "%x0", "%s")]
    two = [call("t", "sigmoid", "%x1"), call("n", "mul.Tensor", "%x1", "%t")]
    after = call("k", "sub.Tensor", "%x1", 3)
    head = reads("x0", "x1")
    for outside, outputs in ([[call("u", "neg", "%s")], "mnu"], [[], "mns"]):
        values = [f"%{name}" for name in outputs]
        steps = [*head, *one, *two, *outside, gives(*values)]
        values = ["%k" if value == "%n" else value for value in values]
        expected = [*head, *one, after, *outside, gives(*values)]
        compare(pattern_replaced, steps, (SWISH, LESS), expected, 1, inputs)
    # a value inside may have two users, if both are inside
    pattern = template(
        "a",
        call("s", "sigmoid", "%a"),
        call("t", "sub.Tensor", "%a", "%s"),
        call("m", "mul.Tensor", "%s", "%t"),
        value="%m",
    )
    inner = call("t", "sub.Tensor", "%x1", "%s")
    steps = [*head, call("s", "sigmoid", "%x1"), inner, call("n", "mul.Tensor", "%s", "%t")]
    expected = [*head, after, gives("%k")]
    compare(pattern_replaced, [*steps, gives("%n")], (pattern, LESS), expected, 1, inputs)
    # the match's own result may be used as often as one likes
    used = [call("u", "mul.Tensor", "%n", "%n"), call("v", "sub.Tensor", "%u", "%n")]
    steps = [*head, *two, *used, gives("%v", "%n")]
    new = [call("u", "mul.Tensor", "%k", "%k"), call("v", "sub.Tensor", "%u", "%k")]
    compare(
        pattern_replaced, steps, (SWISH, LESS), [*head, after, *new, gives("%v", "%k")], 1, inputs
    )


def test_overlaps(pattern_replaced, inputs):
    """Of matches that overlap the first in the graph is replaced; a node is in one match at most."""
    pattern = template("a", call("p", "sin", "%a"), call("q", "sin", "%p"), value="%q")
    new = template("a", call("w", "cos", "%a"), value="%w")
    for length, left in [(2, "c"), (3, "cs"), (4, "cc"), (5, "ccs"), (7, "cccs")]:
        chain = [call(f"v{n}", "sin", f"%v{n - 1}" if n else "%x0") for n in range(length)]
        steps = [*reads("x0", "x1"), *chain, gives(f"%v{length - 1}")]
        names = {"c": "cos", "s": "sin"}
        expected = [
            call(f"w{n}", names[kind], f"%w{n - 1}" if n else "%x0") for n, kind in enumerate(left)
        ]
        expected = [*reads("x0", "x1"), *expected, gives(f"%w{len(left) - 1}")]
        compare(pattern_replaced, steps, (pattern, new), expected, left.count("c"), inputs)
    # a value that the first match used too is private to the second when the first is replaced
    pattern = template(
        "ab", call("c", "neg", "%a"), call("d", "add.Tensor", "%c", "%b"), value="%d"
    )
    new = template("ab", call("w", "cos", "%a"), value="%w")
    steps = [
        *reads("x0", "x1"),
        call("n", "neg", "%x0"),
        call("m", "neg", "%x1"),
        call("p", "add.Tensor", "%m", "%n"),
        call("q", "add.Tensor", "%n", "%x1"),
        gives("%p", "%q"),
    ]
    expected = [*reads("x0", "x1"), call("p", "cos", "%x1"), call("q", "cos", "%x0"), steps[-1]]
    compare(pattern_replaced, steps, (pattern, new), expected, 2, inputs)


def test_what_comes_in(pattern_replaced, inputs):
    """Replacements of any size: many calls, none, the pattern itself. What came in is not matched."""
    steps = [
        *reads("x0", "x1"),
        call("a", "add.Tensor", "%x0", 1),
        call("b", "sin", "%a"),
        call("c", "add.Tensor", "%b", 1),
        gives("%c", "%b"),
    ]
    pattern = template("a", call("p", "add.Tensor", "%a", 1), value="%p")
    longer = template(
        "a", call("p", "add.Tensor", "%a", 1), call("q", "add.Tensor", "%p", 1), value="%q"
    )
    expected = [
        *reads("x0", "x1"),
        call("a", "add.Tensor", "%x0", 1),
        call("d", "add.Tensor", "%a", 1),
        call("b", "sin", "%d"),
        call("c", "add.Tensor", "%b", 1),
        call("e", "add.Tensor", "%c", 1),
        gives("%e", "%b"),
    ]
    compare(pattern_replaced, steps, (pattern, longer), expected, 2, inputs)
    nothing = template("a", value="%a")
    expected = [*reads("x0", "x1"), call("b", "sin", "%x0"), gives("%b", "%b")]
    compare(pattern_replaced, steps, (pattern, nothing), expected, 2, inputs)
    # a new call may be what a later match takes, and is no part of it
    twice = template("a", call("p", "sin", "%a"), call("q", "sin", "%p"), value="%q")
    once = template("a", call("w", "sin", "%a"), value="%w")
    sines = [call(f"v{n}", "sin", f"%v{n - 1}" if n else "%x0") for n in range(3)]
    expected = [*reads("x0", "x1"), *sines[:2], gives("%v1")]
    chain = [*reads("x0", "x1"), *sines, gives("%v2")]
    compare(pattern_replaced, chain, (twice, once), expected, 1, inputs)
    # two users of one match, of which the second match takes the new value
    again = [call("d", "add.Tensor", "%c", 1), call("e", "mul.Tensor", "%c", "%d")]
    steps = [*steps[:-1], *again, gives("%e")]
    expected = [
        *reads("x0", "x1"),
        call("a", "neg", "%x0"),
        call("b", "sin", "%a"),
        call("c", "neg", "%b"),
        call("d", "neg", "%c"),
        call("e", "mul.Tensor", "%c", "%d"),
        gives("%e"),
    ]
    negative = template("a", call("w", "neg", "%a"), value="%w")
    compare(pattern_replaced, steps, (pattern, negative), expected, 3, inputs)


def test_random_graphs(pattern_replaced, rng):
    """Random graphs with matches, near misses and other calls, mixed."""
    for length in (4, 8, 12, 16, 24):
        steps, expected, pool, count = reads("x0", "x1"), reads("x0", "x1"), ["%x0", "%x1"], 1
        kinds = [
            "match",
            *(draw_one(rng, ["match", "other", "leak", "call"]) for _ in range(length)),
        ]
        for n, kind in enumerate(kinds):
            one, two = draw_one(rng, pool), draw_one(rng, pool)
            if kind == "call":
                both = [call(f"v{n}", draw_one(rng, ["sin", "neg", "abs"]), one)]
                mine = both
            else:
                second = two if kind == "other" else one
                both = [
                    call(f"s{n}", "sigmoid", one),
                    call(f"v{n}", "mul.Tensor", second, f"%s{n}"),
                ]
                both += [call(f"u{n}", "neg", f"%s{n}")] if kind == "leak" else []
                matches = kind != "leak" and second == one
                mine = [call(f"v{n}", "sub.Tensor", one, 3)] if matches else both
                count += matches
            steps, expected = [*steps, *both], [*expected, *mine]
            pool.append(f"%v{n}")
        outputs = gives(*pool[2:])
        templates = (SWISH, LESS)
        steps, expected = [*steps, outputs], [*expected, outputs]
        compare(pattern_replaced, steps, templates, expected, count - 1, random_inputs(rng))
