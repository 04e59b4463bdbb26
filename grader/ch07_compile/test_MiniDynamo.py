"""Checks of `MiniDynamo`: values of every call, and who ran: the function, the backend, a graph."""

import pytest
import torch

from grader import (
    Mismatch,
    about,
    assert_close,
    assert_equal,
    compared,
    gate,
    points,
    python_random,
)
from grader.ch07_compile.captured_programs import random_lines
from grader.ch07_compile.probes.mini_dynamo import calls_of_captured

SAME = "the same operations run"


@pytest.fixture
def tensors(rng):
    """Three of (3, 4), the third requires grad; then float64, another shape, one dimension."""
    a, b, c = (torch.randn(3, 4, generator=rng) for _ in range(3))
    d = torch.randn(3, 4, generator=rng).double()
    return [a, b, c.requires_grad_(), d, torch.randn(4, 3, generator=rng).t()[:2], a[0].clone()]


@pytest.fixture
def held(rng):
    """What the functions hold: w and v, both (4,); v requires grad."""
    return [torch.randn(4, generator=rng), torch.randn(4, generator=rng).requires_grad_()]


def call(*args, **options):
    """Return a call: a text is a plain argument, a number in brackets a tensor's."""
    pairs = [["tensor", a[0]] if isinstance(a, list) else ["plain", a] for a in args]
    return {"args": pairs, **options}


def run(mini_dynamo, lines, tensors, held, calls, runs, graphs, limit=None):
    """Run the calls; compare all values with the function's own.

    runs: how often the function ran, after each call
    graphs: how many graphs the backend got, after each call
    """
    got = mini_dynamo.ask(lines, tensors, held, calls, limit).value
    expected = calls_of_captured(lambda function, _: function, lines, tensors, held, calls)
    text = "\n".join(lines)
    for number, (one, other) in enumerate(zip(got["calls"], expected["calls"], strict=True), 1):
        where = f"Call {number} of a function of these lines:\n{text}"
        same_value(one["value"], other["value"], where)
        assert_equal(one["grad mode"], other["grad mode"], f"Grad mode after it. {where}")
    counts = [(one["runs"], one["graphs"]) for one in got["calls"]]
    wanted = list(zip(runs, graphs, strict=True))
    with about(("tensors", "\n".join(map(described, range(len(tensors)), tensors)))):
        assert_counts(counts, wanted, calls, lines, limit)
    if not got["are graph modules"] or not got["example inputs"]:
        raise Mismatch("The backend gets a GraphModule and a list of the tensor arguments.")
    for one, other in zip(got["tensors"], expected["tensors"], strict=True):
        assert_close(one, other, rtol=1e-6, atol=1e-6, because=SAME)
    same_value(got["gradients"], expected["gradients"], f"The gradients afterwards.\n{text}")
    return got


def assert_counts(counts, wanted, calls, lines, limit):
    """Fail at the first call after which function and backend were called another number of times."""
    compared(counts)
    wrong = [at for at, (one, other) in enumerate(zip(counts, wanted, strict=True)) if one != other]
    if not wrong:
        return
    last = wrong[0]
    before = counts[last - 1] if last else (0, 0)
    limited = "" if limit is None else f", limit={limit}"
    body = "\n".join(f"    {line}" for line in lines)
    said = "\n".join(as_call(call) for call in calls[: last + 1])
    on = f"def f(*args):\n    x = args[0]\n{body}\nmini = MiniDynamo(f, backend{limited})\n{said}"
    rows = (
        ("on", on),
        ("expected", happened(before, wanted[last])),
        ("got", happened(before, counts[last])),
    )
    raise Mismatch(f"What ran in call {last + 1}, the last below.", rows)


def described(number, tensor):
    """Return what a call's text calls a tensor, and what it is."""
    grad = ", requires grad" if tensor.requires_grad else ""
    return f"t{number}: {str(tensor.dtype).removeprefix('torch.')} {tuple(tensor.shape)}{grad}"


def as_call(call):
    """Return a call as text; t0, t1, … are the tensors of the fixture `tensors`."""
    given = ", ".join(
        f"t{value}" if kind == "tensor" else repr(value) for kind, value in call["args"]
    )
    text = f"mini({given})"
    text = f"{text}.sum().backward()" if call.get("backward") else text
    text = text if call.get("grad", True) else f"with torch.no_grad(): {text}"
    return f"w.add_({call['write']}); {text}" if "write" in call else text


def happened(before, after):
    """Return what a call made run, from the counts before and after it."""
    ran, made = after[0] - before[0], after[1] - before[1]
    words = ["the function ran"] if ran == 1 else [f"the function ran {ran} times"] if ran else []
    words += (
        ["the backend got a graph"]
        if made == 1
        else [f"the backend got {made} graphs"] * bool(made)
    )
    return " and ".join(words) or "neither the function ran nor did the backend get a graph"


def same_value(got, expected, where):
    """Compare nested results."""
    if isinstance(expected, torch.Tensor):
        if not isinstance(got, torch.Tensor):
            raise Mismatch(f"Expected a tensor. {where}", (("got", repr(got)),))
        with about(of=f"{where}\n"):
            assert_close(got, expected.detach(), rtol=1e-6, atol=1e-6, because=SAME)
        return
    assert_equal(type(got).__name__, type(expected).__name__, f"The type of a result. {where}")
    if isinstance(expected, dict):
        assert_equal(list(got), list(expected), f"Keys of a dict. {where}")
        got, expected = list(got.values()), list(expected.values())
    if isinstance(expected, list | tuple):
        assert_equal(len(got), len(expected), f"How many results. {where}")
        for one, other in zip(got, expected, strict=True):
            same_value(one, other, where)
    else:
        assert_equal(got, expected, where)


@gate
def test_values(mini_dynamo, tensors, held):
    """A first call returns what the function returns."""
    run(mini_dynamo, ["return torch.sin(x) + 1"], tensors, held, [call([0])], [1], [1])


@points(5)
def test_cache(mini_dynamo, tensors, held):
    """A second call runs the graph alone, on its own arguments."""
    lines = ["y = (x.sin() + 1).relu()", "return torch.add(y, args[2], alpha=2) * args[1]"]
    calls = [call([0], 3, [1]), call([1], 3, [0]), call([0], 3, [5])]
    got = run(mini_dynamo, lines, tensors, held, [*calls, calls[0]], [1, 1, 2, 2], [1, 1, 2, 2])
    runs = [one["graph runs"] for one in got["calls"]]
    assert_equal(runs, [0, 1, 1, 2], "How often a graph ran, after each call.")


def test_results(mini_dynamo, tensors, held):
    """Tuples, lists, dicts, plain values; results of several parts; an argument returned."""
    for lines in (
        ["return [x, {'sum': x.sum(), 'none': None}, (x.shape[0], 'text', 1.5)]"],
        ["best, where = x.max(dim=1)", "parts = x.split(2, dim=1)", "return parts[1], where, best"],
        ["rows = x.unbind()", "return torch.stack([rows[1], rows[0]]), torch.cat(tensors=rows)"],
        ["return x.size(1)"],
        ["return x[1:, [0, 2]], x[..., None]"],
    ):
        calls = [call([0]), call([1])]
        run(mini_dynamo, lines, tensors, held, calls, [1, 1], [1, 1])


def test_tensor_guards(mini_dynamo, tensors, held):
    """dtype, shape, requires_grad, grad mode and the number of arguments are guarded."""
    lines = ["y = x * len(args)", "return y.exp() if x.requires_grad else y"]
    calls = [call([0]), call([3]), call([4]), call([2]), call([0], grad=False), call([0], [0])]
    calls += [call([5]), call([0], None), call([2], grad=False), *(call([i]) for i in (1, 3, 4, 2))]
    runs = [1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 9, 9]
    run(mini_dynamo, lines, tensors, held, calls, runs, runs, limit=20)


def test_plain_guards(mini_dynamo, tensors, held):
    """Plain arguments are guarded by type and value: 1, 1.0 and True differ."""
    lines = ["k = args[1]", "return (x * 2 if k else x), k, type(k).__name__"]
    values = [1, 1.0, True, 0, False, None, "1", 2, 1, True, 1.0, "1"]
    runs = [1, 2, 3, 4, 5, 6, 7, 8, 8, 8, 8, 8]
    calls = [call([i % 2], value) for i, value in enumerate(values)]
    run(mini_dynamo, lines, tensors, held, calls, runs, runs)


def test_same_tensor(mini_dynamo, tensors, held):
    """The same tensor twice is another kind than two; which one it is makes no difference."""
    lines = ["return args[0] * 2 - args[2].sin() + args[1]"]
    calls = [call([0], 1, [0]), call([0], 1, [1]), call([1], 1, [1]), call([1], 1, [0])]
    run(mini_dynamo, lines, tensors, held, calls, [1, 2, 2, 2], [1, 2, 2, 2])
    lines = ["return args[0] - args[1] * 2 + args[2]"]
    calls = [call([0], [0], [1]), call([0], [1], [0]), call([0], [1], [1]), call([1], [1], [0])]
    run(mini_dynamo, lines, tensors, held, calls, [1, 2, 3, 3], [1, 2, 3, 3])


def test_held(mini_dynamo, tensors, held):
    """Tensors from outside are held, not copied: later writes are seen, gradients reach them.

    Those are held, too, that nobody else keeps, and that have the id of one that is gone.
    """
    lines = ["return F.linear(x, v[None] * 2) + w.sum() + (v * x).sum() + w[0]"]
    calls = [call([0], backward=True), call([2], backward=True)]
    calls += [call([1], write=1.5), call([2], write=2.0, backward=True)]
    run(mini_dynamo, lines, tensors, held, calls, [1, 2, 2, 2], [1, 2, 2, 2])
    lines = ["waves = [x.sin() for _ in range(30)]", "gone = {id(wave) for wave in waves}"]
    lines += ["del waves", "return x * tensor_with_id(gone)"]
    run(mini_dynamo, lines, tensors, held, [call([0]), call([1]), call([0])], [1] * 3, [1] * 3)


def test_effects(mini_dynamo, tensors, held):
    """In-place changes happen once in each call; grad mode and random numbers are as in the function."""
    for lines in (
        ["x.add_(1)", "x[0] = 2.0", "x[1] += x[0]", "return x * 3"],
        ["torch.mul(x, 2, out=x)", "y = x.clone()", "y.zero_()", "return y + x"],
        ["return x + torch.rand(4) + F.dropout(x, 0.5) + torch.randn_like(x)"],
    ):
        calls = [call([0]), call([1]), call([0])]
        run(mini_dynamo, lines, tensors, held, calls, [1, 1, 1], [1, 1, 1])
    lines = ["with torch.no_grad():", "    y = x * 2", "return y.exp() + x"]
    calls = [call([2], backward=True)] * 3
    got = run(mini_dynamo, lines, tensors, held, calls, [1, 1, 1], [1, 1, 1])
    assert_equal([one["grad mode"] for one in got["calls"]], [True] * 3, "Grad mode afterwards.")


def test_breaks(mini_dynamo, tensors, held):
    """A function that reads values runs itself, for this kind alone; no backend is called."""
    for read in (
        "x.sum() > 0",
        "float(x[0, 0]) > 0",
        "x[0, 0].item() > 0",
        "x[0].tolist()[0] > 0",
        "range(3)[(x[0, 0] > 0).int()]",
        "int(x[0, 0] * 9) > 0",
        "(0.0 in x.clamp(min=0))",
    ):
        lines = ["if args[1]:", "    return x.exp()", f"return x.sin() if {read} else x.cos()"]
        tensors[1] = -tensors[0]
        calls = [call([0], False), call([1], False), call([0], True), call([1], True)]
        run(mini_dynamo, lines, tensors, held, [*calls, calls[0]], [1, 2, 3, 3, 4], [0, 0, 1, 1, 1])


def test_limit_and_errors(mini_dynamo, tensors, held):
    """At most `limit` kinds are remembered; a first call that raises leaves nothing behind."""
    lines = ["return x * args[1]"]
    calls = [call([0], k) for k in [*range(1, 11), 8, 9]]
    runs = [*range(1, 11), 10, 11]
    run(mini_dynamo, lines, tensors, held, calls, runs, [*range(1, 9), 8, 8, 8, 8])
    lines = ["if args[1] < 0:", "    1 / 0", "if args[1] == 0:", "    bool(x.sum() > 0)"]
    lines.append("return x * args[1]")
    calls = [call([0], k) for k in (-1, -1, 0, 1, 2, 3, 3, 1, 2, 0, -1, 3)]
    runs = [1, 2, 3, 4, 5, 6, 7, 7, 7, 8, 9, 10]
    graphs = [0, 0, 0, 1, 2, 2, 2, 2, 2, 2, 2, 2]
    run(mini_dynamo, lines, tensors, held, calls, runs, graphs, limit=3)


def test_random_programs(mini_dynamo, rng, tensors, held):
    """Functions of ten random lines."""
    random = python_random(rng)
    tensors[1] = torch.rand(4, 4, generator=rng)
    for _ in range(3):
        lines = ["w = args[1]", *random_lines(random, 10, False), "return x"]
        calls = [call([0], [1]), call([2], [1]), call([0], [1]), call([2], [1])]
        run(mini_dynamo, lines, tensors, held, calls, [1, 2, 2, 2], [1, 2, 2, 2])
