"""Checks of `share`: as few calls as the rules allow, and not one result that differs."""

import pytest
import torch

from grader import gate, points
from grader.ch07_compile.probes.fx_steps import call_named
from grader.ch07_compile.random_graphs import (
    assert_calls_at_most,
    assert_equivalent,
    call,
    gives,
    random_inputs,
    random_steps,
    reads,
)


@pytest.fixture
def inputs(rng):
    return random_inputs(rng)


@pytest.fixture
def steps():
    twice = [call("a", "sin", "%x0"), call("b", "sin", "%x0")]
    return [*reads("x0", "x1"), *twice, call("c", "add.Tensor", "%a", "%b"), gives("%c")]


def fewest(steps):
    """Return how many calls are left when all that may be shared is."""
    memory = memory_of(steps)
    written = {memory[read] for step in steps for read in writes(step)}
    numbers, version, seen, left = {}, {}, set(), 0
    for step in steps:
        name, op, target, args, kwargs = step
        numbers[name] = name
        if op == "call_function":
            left += 1
            key = str((target, number([args, kwargs], numbers, memory, version)))
            if is_pure(target) and memory[name] not in written:
                if key in seen:
                    left -= 1
                seen.add(key)
                numbers[name] = key
            for read in writes(step):
                version[memory[read]] = version.get(memory[read], 0) + 1
    return left


def number(value, numbers, memory, version):
    """Return arguments with each node as the number of its value and of the state of its memory."""
    if isinstance(value, str) and value.startswith("%"):
        return ("value", numbers[value[1:]], version.get(memory[value[1:]], 0))
    if isinstance(value, tuple | list):
        return [number(part, numbers, memory, version) for part in value]
    if isinstance(value, dict):
        return [(key, number(value[key], numbers, memory, version)) for key in sorted(value)]
    return (type(value).__name__, repr(value))


def is_pure(target):
    if target == "operator.getitem":
        return True
    op = call_named(target)
    return not (op._schema.is_mutable or torch.Tag.nondeterministic_seeded in op.tags)


def annotated(step):
    """Return (name, whether it is written) of the arguments that the schema marks."""
    if step[1] != "call_function" or step[2] == "operator.getitem":
        return []
    arguments = call_named(step[2])._schema.arguments
    given = {**dict(zip([a.name for a in arguments], step[3], strict=False)), **step[4]}
    return [
        (given[a.name][1:], a.alias_info.is_write)
        for a in arguments
        if a.alias_info and a.name in given
    ]


def writes(step):
    return [name for name, is_written in annotated(step) if is_written]


def memory_of(steps):
    """Return for each node the node that owns its memory; here a result has one source at most."""
    memory = {}
    for step in steps:
        sources = [name for name, _ in annotated(step)]
        if step[2] == "operator.getitem":
            sources = [step[3][0][1:]]
        memory[step[0]] = memory[sources[0]] if sources else step[0]
    return memory


def compare(calls_shared, steps, inputs):
    got = calls_shared.ask(steps, inputs).value
    assert_equivalent(got, steps, inputs)
    assert_calls_at_most(fewest(steps), got, steps)


def doubled(steps):
    """Return a graph with a first call that occurs twice, so that something can be shared."""
    places = [at for at, step in enumerate(steps) if step[1] == "placeholder"]
    head = [
        call("h0", "cos", "%x1"),
        call("h1", "cos", "%x1"),
        call("h2", "mul.Tensor", "%h0", "%h1"),
    ]
    return [*steps[: len(places)], *head, *steps[len(places) : -1], gives("%h2", *steps[-1][3][0])]


@gate
def test_twice(calls_shared, steps, inputs):
    """Two equal calls become one."""
    compare(calls_shared, steps, inputs)


@points(3)
def test_expressions(calls_shared, rng):
    """Whole expressions that occur again are shared, call by call, tuples and views too."""
    items = [
        step
        for sorted_, values, indices in ("svi", "twj")
        for step in (
            call(sorted_, "sort", "%x0"),
            call(values, "operator.getitem", f"%{sorted_}", 0),
            call(indices, "operator.getitem", f"%{sorted_}", 1),
        )
    ]
    steps = [*reads("x0", "x1"), *items, gives("%v", "%i", "%w", "%j")]
    compare(calls_shared, doubled(steps), random_inputs(rng))
    for length in (6, 12, 24, 40):
        steps = random_steps(rng, ["unary", "unary", "binary", "sort", "view"], length)
        compare(calls_shared, doubled(steps), random_inputs(rng))


def test_constants(calls_shared, rng):
    """Calls with other constants are other calls: 0 and 1, 1 and 1.0 and True, 0.0 and -0.0."""
    whole = torch.randint(-3, 4, (4, 4), generator=rng)
    pairs = [(1, 1.0), (1.0, 1), (1, True), (True, 1), (0.0, -0.0), (-0.0, 0.0), (2, 3)]
    for x in (whole, whole > 0, torch.where(whole > 0, 0.0, -0.0)):
        for one, two in pairs:
            steps = [
                *reads("x0", "x1"),
                call("a", "add.Tensor", "%x0", one),
                call("b", "add.Tensor", "%x0", two),
                gives("%a", "%b"),
            ]
            compare(calls_shared, doubled(steps), [x, x])
    for one, two in [(0, 1), ([0], [1]), ([0], [0, 1])]:
        steps = [
            *reads("x0", "x1"),
            call("a", "sum.dim_IntList", "%x0", one if isinstance(one, list) else [one]),
            call("b", "sum.dim_IntList", "%x0", two if isinstance(two, list) else [two]),
            gives("%a", "%b"),
        ]
        compare(calls_shared, doubled(steps), [whole.float()] * 2)
    compare(calls_shared, doubled(random_steps(rng, ["scalar"], 24)), random_inputs(rng))


def test_keyword_arguments(calls_shared, inputs):
    """Keyword arguments count, in whatever order they stand."""
    steps = [
        *reads("x0", "x1"),
        call("a", "add.Tensor", "%x0", "%x1", alpha=2),
        call("b", "add.Tensor", "%x0", "%x1", alpha=3),
        call("c", "add.Tensor", "%x0", "%x1", alpha=2.0),
        call("d", "add.Tensor", "%x0", "%x1"),
        call("e", "clamp", "%x0", min=-1, max=1),
        call("f", "clamp", "%x0", max=1, min=-1),
        call("g", "clamp", "%x0", max=-1, min=1),
        call("h", "add.Tensor", "%x0", "%x1", alpha=2),
        gives("%a", "%b", "%c", "%d", "%e", "%f", "%g", "%h"),
    ]
    compare(calls_shared, steps, inputs)


def test_random_numbers(calls_shared, rng):
    """Calls that draw random numbers are never shared, nor is what is computed from other draws."""
    for length in (3, 6, 12):
        steps = random_steps(rng, ["unary", "random"], length, outputs=4)
        drawn = [call("r0", "rand_like", "%x0"), call("r1", "rand_like", "%x0")]
        steps[2:2] = [*drawn, call("r2", "neg", "%r0"), call("r3", "neg", "%r1")]
        steps[-1] = gives("%r2", "%r3", *steps[-1][3][0])
        compare(calls_shared, doubled(steps), random_inputs(rng))


def test_written_arguments(calls_shared, inputs):
    """Between two equal calls an argument was written to: they differ. After it they may be equal."""
    steps = [
        *reads("x0", "x1"),
        call("a", "sin", "%x0"),
        call("b", "sin", "%x1"),
        call("w", "add_.Tensor", "%x0", 1),
        call("c", "sin", "%x0"),
        call("d", "sin", "%x1"),
        call("e", "sin", "%x0"),
        gives("%a", "%b", "%c", "%d", "%e"),
    ]
    compare(calls_shared, steps, inputs)
    steps[4] = call("w", "add.out", "%x1", 1, out="%x0")
    compare(calls_shared, steps, inputs)


def test_written_results(calls_shared, inputs):
    """Two equal results stay two where one of them is written to, before or after the other."""
    for first, second in ([1, 2], [2, 1]):
        steps = [
            *reads("x0", "x1"),
            call("v1", "sin", "%x0"),
            call("v2", "sin", "%x0"),
            call("w", "mul_.Tensor", f"%v{first}", 3),
            call("u", "neg", f"%v{second}"),
            gives("%v1", "%v2", "%w", "%u"),
        ]
        compare(calls_shared, doubled(steps), inputs)
    steps = [
        *reads("x0", "x1"),
        call("a", "full", [4, 4], 1.0),
        call("w", "add_.Tensor", "%a", "%x0"),
        call("b", "full", [4, 4], 1.0),
        call("c", "add.Tensor", "%b", "%x1"),
        gives("%w", "%c"),
    ]
    compare(calls_shared, doubled(steps), inputs)


def test_writes_through_views(calls_shared, rng):
    """A write through a view changes its base, and every other view of it."""
    base = [
        *reads("x0", "x1"),
        call("t", "t", "%x0"),
        call("s", "slice.Tensor", "%t", 0, 0, 2),
        call("a", "sin", "%x0"),
        call("b", "sin", "%s"),
    ]
    for target, *args in [["add_.Tensor", "%s", 1], ["mul_.Tensor", "%x0", 2]]:
        steps = [
            *base,
            call("w", target, *args),
            call("c", "sin", "%x0"),
            call("d", "sin", "%s"),
            gives("%a", "%b", "%c", "%d"),
        ]
        compare(calls_shared, doubled(steps), random_inputs(rng))
    # an item of a tuple of views is a view too
    for target, *args in [["split.Tensor", 2], ["unbind.int", 1]]:
        steps = [
            *reads("x0", "x1"),
            call("s", target, "%x0", *args),
            call("p", "operator.getitem", "%s", 1),
            call("a", "sin", "%x0"),
            call("w", "add_.Tensor", "%p", 1),
            call("b", "sin", "%x0"),
            gives("%a", "%b"),
        ]
        compare(calls_shared, doubled(steps), random_inputs(rng))
    # two results of one call, of which one is written to through a view of a view, or an item
    ways = [
        [call("v", "t", "%r"), call("i", "slice.Tensor", "%v", 0, 0, 2)],
        [call("v", "split.Tensor", "%r", 2), call("i", "operator.getitem", "%v", 0)],
    ]
    for way in ways:
        for first, second in ("rq", "qr"):
            steps = [
                *reads("x0", "x1"),
                call(first, "mul.Tensor", "%x0", 0),
                call(second, "mul.Tensor", "%x0", 0),
                *way,
                call("w", "add_.Tensor", "%i", 1),
                gives("%r", "%q"),
            ]
            compare(calls_shared, doubled(steps), random_inputs(rng))
    for length in (8, 16, 24, 32, 32, 32):
        steps = random_steps(rng, ["unary", "view", "write", "sort", "make"], length, outputs=4)
        compare(calls_shared, doubled(steps), random_inputs(rng))
