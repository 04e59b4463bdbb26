"""Capture: what the exercises say of Dynamo, and their solutions, on many random cases."""

from functools import partial
from random import Random

import pytest
import torch
import torch._dynamo

from grader.ch07_compile.captured_programs import BREAKS, LINES, counted, random_lines
from grader.ch07_compile.guard_rules import FACTS, LIMIT, predicted, random_calls
from grader.ch07_compile.probes.counting import written_function
from grader.ch07_compile.probes.mini_dynamo import calls_of_captured
from grader.inside.instruments.dynamo import fresh_dynamo
from tests import references

reference = partial(references.reference, "ch07_compile")


def compiles(calls, dynamic):
    """Return for each call whether Dynamo itself compiles."""
    graphs, found = [], []

    def function(x, flag, scale):
        return x * scale if flag else x.cos() * scale

    with fresh_dynamo():
        compiled = torch.compile(
            function, backend=lambda graph, inputs: graphs.append(1) or graph, dynamic=dynamic
        )
        for call in calls:
            x = torch.zeros(call["shape"], dtype=getattr(torch, call["dtype"]))
            before = len(graphs)
            with torch.set_grad_enabled(call["grad_mode"]):
                compiled(x.requires_grad_(call["requires_grad"]), call["flag"], call["scale"])
            found.append(len(graphs) > before)
    return found


@pytest.mark.parametrize("dynamic", [None, False])
def test_rules_are_dynamos(dynamic):
    assert torch._dynamo.config.recompile_limit == LIMIT
    random = Random(1)
    for number in range(6):
        facts = random.sample(list(FACTS), number % 4)
        sizes = [[2, 3, 4, 5], [0, 1, 2, 3], [1, 2]][number % 3]
        scales = [0.5, 2.0, 1.0, 0.0][: 1 + number % 4]
        calls = random_calls(random, 12, facts, sizes, scales)
        assert predicted(calls, dynamic) == compiles(calls, dynamic)


def test_recompiles():
    recompiles, random = reference("recompiles"), Random(2)
    for number in range(2000):
        calls = random_calls(
            random,
            random.randint(1, 14),
            random.sample(list(FACTS), number % 5),
            random.choice([[2, 3, 4, 5], [0, 1, 2, 3], [1, 2], [3]]),
            [0.5, 2.0, 1.0, 0.0][: 1 + number % 4],
        )
        for dynamic in (None, False):
            assert recompiles(calls, dynamic) == predicted(calls, dynamic)


def test_count_ops():
    """Every line has the operations that the table says, alone and in a program."""
    count_ops, random = reference("count_ops"), Random(3)
    call = (torch.rand(3, 4), torch.rand(4, 4))
    programs = [[line] for line in LINES]
    programs += [random_lines(random, 10, True) for _ in range(6)]
    for lines in programs:
        with fresh_dynamo():
            results, counts = count_ops(written_function(lines), [call])
        assert counts == counted(lines), lines
        torch.testing.assert_close(results[0], written_function(lines)(*call), equal_nan=True)


def test_mini_dynamo():
    """Random programs: values as Dynamo gives them, and one graph for each kind."""
    mini, random = reference("MiniDynamo"), Random(4)
    held = [torch.rand(4), torch.rand(4)]
    tensors = [torch.rand(3, 4), torch.rand(4, 4), torch.rand(3, 4).requires_grad_()]
    calls = [{"args": [["tensor", i], ["tensor", 1]]} for i in (0, 2, 0, 2)]
    for number in range(24):
        breaks = number % 3 == 0
        lines = [line for line in random_lines(random, 12, breaks) if line not in BREAKS]
        if breaks:
            lines.insert(6, "x = x * (x.sum() > 0).item()")
        lines = ["w = args[1]", *lines, "return x"]
        got = calls_of_captured(mini, lines, tensors, held, calls)
        expected = calls_of_captured(lambda f, backend: f, lines, tensors, held, calls)
        for one, other in zip(got["calls"], expected["calls"], strict=True):
            torch.testing.assert_close(one["value"], other["value"], equal_nan=True)
        assert [one["graphs"] for one in got["calls"]] == ([0] * 4 if breaks else [1, 2, 2, 2])
        assert [one["runs"] for one in got["calls"]] == ([1, 2, 3, 4] if breaks else [1, 2, 2, 2])


def test_one_graph():
    one_graph = reference("one_graph")
    generator = torch.Generator().manual_seed(5)
    with fresh_dynamo():
        compiled = torch.compile(one_graph, backend="eager", fullgraph=True, dynamic=True)
        for number in range(10):
            x = torch.randn(2 + number % 3, 3, generator=generator, dtype=torch.float64)
            w = torch.randn(3, 3, generator=generator, dtype=torch.float64)
            results = []
            for run in (compiled, settle):
                a, b = x.clone().requires_grad_(), w.clone().requires_grad_()
                result, size = run(a, b, 1.5)
                result.exp().sum().backward()
                grad = torch.zeros_like(w) if b.grad is None else b.grad
                results.append((result.detach(), float(size), a.grad, grad))
            torch.testing.assert_close(*results)


def settle(x, w, limit):
    """The function as it is before its breaks are removed."""
    size = x.abs().max().item()
    if size > limit:
        x = (x @ w) / size
    return x - x[x > 0].mean(), size
