"""Checks of `fold_constants`: what is computed before the first call, and what must not be."""

import pytest
import torch

from grader import assert_equal, draw_one, gate, points
from grader.ch07_compile.probes.fx_steps import call_named, module_from_steps, run_twice
from grader.ch07_compile.probes.passes import run_trained
from grader.ch07_compile.random_graphs import (
    UNARY,
    as_text,
    assert_equivalent,
    assert_same_runs,
    call,
    calls_of,
    gives,
    random_inputs,
    random_steps,
    reads,
)


@pytest.fixture
def inputs(rng):
    return random_inputs(rng)


@pytest.fixture
def attributes(rng):
    return dict(zip("cdp", random_inputs(rng, 3), strict=True))


def get(*names):
    return [(f"get_{name}", "get_attr", name, (), {}) for name in names]


def folded(steps, parameters):
    """Return (calls that stay, tensors that are new) of a graph."""
    read = {f"%{step[0]}": step[2] for step in steps if step[1] == "get_attr"}
    written = {read[step[3][0]] for step in steps if step[2] == "aten.copy_.default"}
    constant, tuples = set(), set()
    for name, op, target, args, kwargs in steps:
        used = values([args, kwargs])
        if op == "get_attr":
            known = target not in (*parameters, *written)
        elif target == "operator.getitem":
            known = used <= constant
        elif op == "call_function":
            called = call_named(target)
            drawn = torch.Tag.nondeterministic_seeded in called.tags
            known = used <= constant and not drawn and not called._schema.is_mutable
            tuples |= {f"%{name}"} if len(called._schema.returns) > 1 else set()
        else:
            known = False
        constant |= {f"%{name}"} if known else set()
    # as many steps as have other users than constants
    calls = {f"%{step[0]}" for step in steps if step[1] == "call_function"}
    needed = {
        value
        for step in steps
        if f"%{step[0]}" not in constant
        for value in values([step[3], step[4]])
    }
    assert not needed & constant & tuples
    return [one for one in calls if one not in constant], needed & constant & calls


def values(nest):
    if isinstance(nest, dict):
        nest = list(nest.values())
    if isinstance(nest, list | tuple):
        return {value for part in nest for value in values(part)}
    return {nest} if isinstance(nest, str) and nest.startswith("%") else set()


def compare(constants_folded, steps, inputs, attributes, parameters=("p",)):
    got = constants_folded.ask(steps, inputs, attributes, list(parameters)).value
    where = as_text(steps)
    stay, new = folded(steps, parameters)
    left = calls_of(got["once"])
    expected = [step[2] for step in steps if f"%{step[0]}" in stay]
    assert_equal(sorted(left), sorted(expected), f"Calls that are left of: {where}")
    assert_equivalent(got, steps, inputs, attributes)
    gone = [name for name in attributes if got["attributes"].get(name) is None]
    assert_equal(gone, [], f"Attributes that are not there any more, of the module of: {where}")
    count = len(got["attributes"]) - len(attributes)
    assert_equal(count, len(new), f"Tensors that were added to the module of: {where}")
    used = values([[step[3], step[4]] for step in got["once"]])
    idle = [s[2] for s in got["once"] if s[1] == "get_attr" and f"%{s[0]}" not in used]
    assert_equal(idle, [], f"Attributes that are read for nothing in: {as_text(got['once'])}")
    module = module_from_steps(steps, attributes, parameters)
    with torch.random.fork_rng(devices=[]):
        run_twice(module, inputs)
        assert_same_runs(got["later"], run_trained(module, inputs), steps)


@pytest.fixture
def steps():
    head = [*reads("x0", "x1"), *get("c"), call("a", "sin", "%get_c")]
    return [*head, call("b", "add.Tensor", "%x0", "%a"), gives("%b")]


@pytest.fixture
def parameters():
    return []


@gate
def test_one_call(constants_folded, steps, inputs, attributes):
    """The sine of a constant is computed once."""
    compare(constants_folded, steps, inputs, attributes)


@points(4)
def test_chains(constants_folded, rng, attributes):
    """Chains of constants become one tensor each, for each constant that is used."""
    for length in (1, 2, 4, 8, 16):
        steps = [*reads("x0", "x1"), *get("c", "d")]
        pool = ["%get_c", "%get_d"]
        for n in range(length):
            one = call(f"k{n}", draw_one(rng, UNARY), draw_one(rng, pool))
            two = call(f"k{n}", "mul.Tensor", draw_one(rng, pool), draw_one(rng, pool))
            steps.append(draw_one(rng, [one, two]))
            pool.append(f"%k{n}")
        steps += [
            call("m", "add.Tensor", "%x0", pool[-1]),
            call("n", "mul.Tensor", "%m", draw_one(rng, pool)),
            # the last constant has two users, whatever is drawn
            call("o", "sub.Tensor", "%n", pool[-1]),
            gives("%o", "%x1"),
        ]
        # a constant that nobody needs is no reason to keep a tensor
        compare(constants_folded, steps, random_inputs(rng), attributes)


def test_no_inputs(constants_folded, inputs, attributes):
    """A call without any tensor is a constant as well, whatever its dtype and shape."""
    steps = [
        *reads("x0", "x1"),
        call("f", "full", [4, 1], 0.5),
        call("r", "arange", 4),
        call("g", "mul.Tensor", "%f", "%r"),
        call("h", "add.Tensor", "%x0", "%g"),
        call("e", "full", [], True),
        call("i", "where.self", "%e", "%h", "%r"),
        gives("%i"),
    ]
    compare(constants_folded, steps, inputs, attributes)


def test_random_numbers(constants_folded, inputs, attributes):
    """Random numbers are drawn anew at each call, also those that depend on constants alone."""
    steps = [
        *reads("x0", "x1"),
        *get("c"),
        call("n", "neg", "%get_c"),
        call("r", "rand_like", "%n"),
        call("s", "rand", [4, 4]),
        call("a", "mul.Tensor", "%r", "%s"),
        call("b", "abs", "%get_c"),
        call("q", "native_dropout", "%b", 0.5, True),
        call("t", "operator.getitem", "%q", 0),
        call("d", "add.Tensor", "%x0", "%a"),
        call("e", "add.Tensor", "%d", "%t"),
        gives("%e"),
    ]
    compare(constants_folded, steps, inputs, attributes)


def test_parameters(constants_folded, inputs, attributes):
    """Parameters are trained: what is computed from them is no constant."""
    steps = [
        *reads("x0", "x1"),
        *get("c", "p"),
        call("a", "sin", "%get_p"),
        call("b", "cos", "%get_c"),
        call("d", "mul.Tensor", "%a", "%b"),
        call("e", "add.Tensor", "%x0", "%d"),
        gives("%e"),
    ]
    compare(constants_folded, steps, inputs, attributes)


def test_written_buffers(constants_folded, inputs, attributes):
    """A buffer that the graph writes to, such as a running mean, is no constant."""
    steps = [
        *reads("x0", "x1"),
        *get("c", "d"),
        call("a", "mul.Tensor", "%get_c", 0.5),
        call("k", "mul.Tensor", "%get_d", 0.5),
        call("b", "add.Tensor", "%a", "%x0"),
        call("e", "add.Tensor", "%b", "%k"),
        call("w", "copy_", "%get_c", "%e"),
        ("again", "get_attr", "c", (), {}),
        call("f", "neg", "%again"),
        call("g", "add.Tensor", "%f", "%e"),
        gives("%g"),
    ]
    compare(constants_folded, steps, inputs, attributes)


def test_tuples(constants_folded, inputs, attributes):
    """Of a call with several results those that are used are kept, each as a tensor."""
    steps = [
        *reads("x0", "x1"),
        *get("c"),
        call("s", "sort", "%get_c", 1),
        call("i", "operator.getitem", "%s", 1),
        call("v", "operator.getitem", "%s", 0),
        call("g", "gather", "%x0", 1, "%i"),
        call("m", "mul.Tensor", "%g", "%v"),
        call("u", "sort", "%x1", 0),
        call("w", "operator.getitem", "%u", 0),
        gives("%m", "%w"),
    ]
    compare(constants_folded, steps, inputs, attributes)


def test_names(constants_folded, rng):
    """New tensors get names that are free, however the module's own are called."""
    given = ["c", "d", "e", "f"]
    steps, attributes = sines(given, rng)
    chosen = constants_folded.ask(steps, random_inputs(rng), attributes, []).value["attributes"]
    # once more, with the names that were chosen by then taken: by buffers and by parameters
    chosen = [name for name in chosen if name not in given]
    steps, attributes = sines([*given, *chosen], rng)
    for parameters in ([], chosen):
        compare(constants_folded, steps, random_inputs(rng), attributes, parameters)


def sines(names, rng):
    """Return a graph that takes the sine of each attribute, and the attributes."""
    steps = [*reads("x0", "x1"), *get(*names)]
    for n, name in enumerate(names):
        steps.append(call(f"k{n}", "sin", f"%get_{name}"))
        steps.append(call(f"m{n}", "add.Tensor", f"%m{n - 1}" if n else "%x0", f"%k{n}"))
    steps.append(gives(f"%m{len(names) - 1}"))
    return steps, dict(zip(names, random_inputs(rng, len(names)), strict=True))


def test_mixtures(constants_folded, rng, attributes):
    """All of it, mixed at random."""
    for length in (8, 16, 24):
        kinds = ["unary", "binary", "make", "random", "scalar"]
        steps = random_steps(rng, kinds, length, tensors=["c", "d", "p"])
        head = [call("h", "sin", "%get_c"), call("g", "add.Tensor", "%x0", "%h")]
        calls = [step for step in steps if step[1] == "call_function"]
        steps = [*steps[:5], *head, *calls, gives("%g", *steps[-1][3][0])]
        compare(constants_folded, alive(steps), random_inputs(rng), attributes)


def alive(steps):
    """Leave out what nobody uses, so that dead calls are no question here."""
    needed, left = set(), []
    for step in reversed(steps):
        drawn = step[2].startswith(("aten.rand",))
        if step[1] in ("output", "placeholder") or f"%{step[0]}" in needed or drawn:
            left.insert(0, step)
            needed |= values([step[3], step[4]])
    return left
