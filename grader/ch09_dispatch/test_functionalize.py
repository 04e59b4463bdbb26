"""Checks of `functionalize`: what programs give, and what is still written while they run."""

import pytest
import torch

from grader import (
    about,
    assert_equal,
    assert_holds,
    assert_raises,
    assert_same_bits,
    claimed,
    compared,
    gate,
    points,
    python_random,
    whole_numbers,
)
from grader.ch09_dispatch.probes.functional import as_program, function_of
from grader.ch09_dispatch.writing_programs import random_program


@pytest.fixture
def inputs(rng):
    """x (3, 4) and y (3, 3): small whole numbers, no two of x alike."""
    order = torch.randperm(12, generator=rng)
    return [order.float().view(3, 4), whole_numbers(rng, (3, 3), 1, 4)]


def tensors_in(tree):
    """Return the tensors of a nested result, in order."""
    if isinstance(tree, torch.Tensor):
        return [tree]
    parts = (
        tree.values() if isinstance(tree, dict) else tree if isinstance(tree, tuple | list) else ()
    )
    return [tensor for part in parts for tensor in tensors_in(part)]


def on(lines, inputs):
    """Return the row that says how to ask this."""
    given = [
        f"{name} = torch.tensor({one.tolist()})" for name, one in zip("xy", inputs, strict=True)
    ]
    return ("on", "\n".join([as_program(lines), *given, "functionalize(f)(x, y)"]))


def no_writes(notes, written, lines, inputs):
    """Fail unless all that was written is one `copy_` into each of these arguments."""
    compared(notes)
    inner = [name for name, number in notes if number is None or name != "copy_"]
    with about(on(lines, inputs)):
        what = "Operators that wrote, other than `copy_` into an argument."
        assert_holds(not inner, what, ("expected", "none"), ("got", ", ".join(inner)))
        numbers = sorted(number for _, number in notes)
        names = [f"copy_ into {'xy'[number]}" for number in numbers]
        wanted = [f"copy_ into {'xy'[number]}" for number in written]
        assert_equal(names, wanted, "What was written into the arguments.")


def same_as_eager(functionalized, lines, inputs, calls=1):
    """Compare results, arguments afterwards and writes with those of the function itself."""
    theirs = [one.clone() for one in inputs]
    ours = [one.clone() for one in inputs]
    function = function_of(lines)
    for _ in range(calls):
        versions = [one._version for one in theirs]
        expected = function(*theirs)
    written = [n for n, one in enumerate(theirs) if one._version != versions[n]]
    evidence = functionalized.ask(lines, ours, calls)
    got = evidence.value
    found, wanted = tensors_in(got["result"]), tensors_in(expected)
    with about(on(lines, inputs)):
        assert_equal(got["ran"], calls, "How often f ran.")
        assert_equal(len(found), len(wanted), "How many tensors were returned.")
        for number, (one, other) in enumerate(zip(found, wanted, strict=True)):
            with about(of=f"Result {number}: "):
                assert_same_bits(one, other)
        for name, one, other in zip("xy", evidence.inputs_after["inputs"], theirs, strict=True):
            with about(of=f"The argument {name} afterwards: "):
                assert_same_bits(one, other)
    no_writes(got["writes"], written, lines, inputs)
    return got["result"]


@gate
def test_nothing_written(functionalized, inputs):
    """A function that writes nothing gives what it gives."""
    same_as_eager(functionalized, ["return (x * 2).sum(0), x[1] + y.sum()"], inputs)


@points(2)
@claimed
def test_no_write(functionalized, inputs):
    """An argument, a view of it, a tensor made inside: none is written while the function runs."""
    for lines in (
        ["x.add_(1)", "x.mul_(2)", "return x * 3"],
        ["v = x[0]", "v.mul_(3)", "return v + 1"],
        ["t = torch.zeros(4)", "t[1] = 5.0", "t.add_(x[0])", "return t"],
        ["x.copy_(y.sum(0)[:1])", "y[0] = 7.0", "return x.sum()"],
        ["x[x > 5] = -1.0", "y.sub_(y.clone(), alpha=3)", "return x, y"],
    ):
        same_as_eager(functionalized, lines, inputs)


@claimed
def test_related(functionalized, inputs):
    """What is written through one tensor is read through all that share its memory."""
    for lines in (
        ["v = x[0]", "x.add_(1)", "return v * 2"],
        ["v = x[0]", "w = x[:, 1]", "v.mul_(3)", "return w + 1, x.sum()"],
        ["t = x + 1", "v, w = t[1:], t.t()", "v.zero_()", "w[2].add_(5)", "return t, v, w"],
        ["v = x[1:]", "w = v[:, ::2]", "x.neg_()", "w.add_(1)", "v.mul_(2)", "return w, v"],
        [
            "for i in range(20):",
            "    x[i % 3].add_(1)",
            "    t = x * 2",
            "    y[0] += t[1, 1:]",
            "return t",
        ],
    ):
        same_as_eager(functionalized, lines, inputs)


@pytest.fixture
def views():
    return [
        "x[1]",
        "x[-1, 2:]",
        "x[1:, ::2]",
        "x.t()",
        "x.transpose(0, 1)",
        "x.view(3, 2, 2).permute(-1, 0, 1)",
        "x.view(3, 2, 2).permute(1, 2, 0)",
        "x.view(-1)",
        "x.view(2, 6)",
        "x.unsqueeze(1)",
        "x[None].squeeze(0)",
        "x[None, :, None].squeeze((0, 2))",
        "x.squeeze(1)",
        "x.diagonal()",
        "x.diagonal(1, 1, 0)",
        "x.detach()",
    ]


@claimed
def test_each_view(functionalized, inputs, views):
    """Writes through each kind of view arrive where they belong."""
    for view in views:
        lines = [f"v = {view}", "v.mul_(2)", "v.add_(1)", "return v.sum(0)"]
        same_as_eager(functionalized, lines, inputs)


@claimed
def test_chains(functionalized, inputs):
    """Writes through views of views of views."""
    for chain in (
        "x.t()[1:]",
        "x[1:].t()[::2]",
        "x.view(2, 6)[1].view(3, 2)[:, 1]",
        "x.view(3, 2, 2).permute(2, 0, 1)[1:].squeeze(0).t()[1]",
        "x.unsqueeze(0)[0, 1:].diagonal()[1:]",
    ):
        lines = [f"v = {chain}", "v.sub_(1, alpha=3)", "v *= 2", "return v.clone()"]
        same_as_eager(functionalized, lines, inputs)


@claimed
def test_random_programs(functionalized, rng, inputs):
    """Random programs of views and writes."""
    random = python_random(rng)
    for length in (3, 5, 8, 8, 12, 12):
        given = [torch.randperm(12, generator=rng).float().view(3, 4), inputs[1]]
        lines = random_program(random, length)
        lines = ["x[2, 3] += 40", "y.add_(y)", *lines]
        same_as_eager(functionalized, lines, given)


@claimed
def test_dtype_stays(functionalized, inputs):
    """What is written into keeps its dtype, shape and order, or a RuntimeError says that it cannot."""
    for lines in (
        ["x.add_(y.double().sum())", "return x"],
        ["t = x.half()", "t.mul_(y.double()[:, :1])", "x.copy_(t + 1)", "return t"],
        ["x.gt_(5)", "return x * 2"],
        ["t = y.long()", "t.mul_(y > 1)", "y.copy_(t + t)", "return t"],
        ["y.t().tril_()", "return y.view(9) * 2"],
        ["t = x * 2", "t.t().cumsum_(0)", "t.view(2, 6)[1].add_(1)", "return t"],
    ):
        same_as_eager(functionalized, lines, inputs)
    for lines in (
        ["x.long().add_(1.5)", "return x"],
        ["x[0].add_(x * 2)", "return x"],
        ["(x > 2).add_(1)", "return x"],
    ):
        what = "A write that PyTorch refuses was accepted."
        asked = functionalized.ask(lines, [one.clone() for one in inputs], 1)
        assert_raises(asked, "RuntimeError", what, on(lines, inputs))


@claimed
def test_results_alias(functionalized_then_written, functionalized, inputs):
    """A result that is an argument, or a view of one, is it afterwards too."""
    views = ["v = x[1:]", "w = v.t()", "return x, v, w, x * 2, y[0]"]
    for lines in (["x.add_(1)", *views], views):
        same_as_eager(functionalized, lines, inputs)
        theirs = [one.clone() for one in inputs]
        expected = function_of(lines)(*theirs)
        theirs[0].add_(100)
        ours = [one.clone() for one in inputs]
        got = functionalized_then_written.ask(lines, ours, 100).value
        with about(on(lines, inputs), ("then", "x.add_(100)")):
            for number, (one, other) in enumerate(zip(got["result"], expected, strict=True)):
                with about(of=f"Result {number}, after x was written once more: "):
                    assert_same_bits(one, other)
            assert_equal(
                got["is the argument"], [True] + [False] * 4, "Which results are x itself."
            )


@claimed
def test_reading_copies_nothing(functionalized_memory, functionalized, inputs, rng):
    """Reading through views allocates nothing, before a write and after it."""
    reads = ["s = s + x[1:].t()[0].sum()"] * 8
    few = ["s = x.sum()", "return s"]
    many = ["s = x.sum()", *reads, "return s"]
    few_after, many_after = (["v = x[0]", "v.zero_()", *lines] for lines in (few, many))
    same_as_eager(functionalized, many_after, inputs)
    large = whole_numbers(rng, (64, 64), -4, 4)
    programs = [few, many, few_after, many_after]
    found = functionalized_memory.ask(programs, [large, large[:3, :3].clone()]).value
    for (one, one_eager), (two, two_eager), lines in (
        (found[0], found[1], many),
        (found[2], found[3], many_after),
    ):
        expected, got = two_eager - one_eager, two - one
        what = "Bytes that eight reads through views of x (64, 64) allocate."
        rows = ("on", as_program(lines)), ("expected", f"{expected} at most"), ("got", str(got))
        assert_holds(got <= expected, what, *rows)


@claimed
def test_calls(functionalized, functionalized_one, inputs):
    """Nested results, numbers, a second call, one tensor as both arguments."""
    lines = [
        "x.add_(1)",
        "t = x[0].t()",
        "return {'all': [x * 2, (t, 3)], 'none': None}, x.shape[0]",
    ]
    result = same_as_eager(functionalized, lines, inputs)
    assert_equal(result[0]["all"][1][1], 3, "A number in the result.")
    assert_equal([result[0]["none"], result[1]], [None, 3], "None and a number in the result.")
    same_as_eager(functionalized, ["x.add_(1)", "y.mul_(x[0, 0])", "return x + 1"], inputs, calls=3)
    lines = ["x.add_(1)", "y[0].mul_(2)", "return x + y"]
    theirs, ours = ([one.clone() for one in inputs] for _ in range(2))
    expected = function_of(lines)(theirs[0], theirs[0])
    evidence = functionalized_one.ask(lines, ours)
    program = f"{as_program(lines)}\nfunctionalize(f)(x, x)"
    with about(("on", program)):
        assert_same_bits(evidence.value["result"], expected)
        assert_same_bits(evidence.inputs_after["inputs"][0], theirs[0])
        assert_equal(evidence.value["writes"], [["copy_", 0]], "What was written.")
