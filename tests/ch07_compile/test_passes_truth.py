"""Passes: the reference solutions agree with torch's own tools on many random graphs."""

from functools import partial
from types import SimpleNamespace

import pytest
import torch
from torch import fx, nn
from torch._functorch.compile_utils import fx_graph_cse

from grader import draw_one
from grader.ch07_compile import (
    test_fold_constants,
    test_fuse,
    test_merge_matmuls,
    test_share,
    test_simplify,
)
from grader.ch07_compile.probes import passes
from grader.ch07_compile.probes.fx_steps import (
    graph_from_steps,
    module_from_steps,
    run_twice,
    with_values,
)
from grader.ch07_compile.random_graphs import (
    assert_same_runs,
    call,
    calls_of,
    gives,
    random_inputs,
    random_steps,
    reads,
    run_steps,
)
from tests import references

reference = partial(references.reference, "ch07_compile")
ALL = ["unary", "binary", "scalar", "random", "write", "view", "sort", "make"]


@pytest.fixture
def rng():
    return torch.Generator().manual_seed(7)


def asked(probe, exercise):
    """Return an evidence-like object that runs a probe on the reference, here."""
    student = SimpleNamespace(**{exercise: reference(exercise)})
    return SimpleNamespace(ask=lambda *inputs: SimpleNamespace(value=probe.run(student, *inputs)))


def test_interpret_does_what_torch_does(rng):
    interpret = reference("interpret")
    for number in range(60):
        steps = random_steps(rng, ALL, 1 + number % 30)
        inputs, graph = random_inputs(rng), graph_from_steps(steps)
        torch.manual_seed(number)
        given = [x.clone() for x in inputs]
        got = interpret(graph, nn.Module(), *given)
        torch.manual_seed(number)
        taken = [x.clone() for x in inputs]
        expected = fx.Interpreter(fx.GraphModule(nn.Module(), graph)).run(*taken)
        for one, other in zip((*got, *given), (*expected, *taken), strict=True):
            assert torch.equal(one, other)


def test_remove_dead_leaves_what_torch_leaves(rng):
    """Where torch's own pass is told what an effect is, both keep the same nodes."""
    remove_dead = reference("remove_dead")
    for number in range(60):
        steps = random_steps(rng, ALL, 1 + number % 30, outputs=1)
        inputs = random_inputs(rng)
        module = module_from_steps(steps, {})
        remove_dead(module)
        oracle = graph_from_steps(steps)
        oracle.eliminate_dead_code()  # these graphs hold operators alone, and there it is right
        assert [node.name for node in module.graph.nodes] == [node.name for node in oracle.nodes]
        with torch.random.fork_rng(devices=[]):
            assert_same_runs(run_twice(module, inputs), run_steps(steps, inputs), steps)


def test_share_finds_what_torch_finds(rng):
    """On graphs without writes and random numbers, as many calls as the pass of AOTAutograd leaves."""
    share = reference("share")
    for number in range(60):
        steps = random_steps(rng, ["unary", "binary", "scalar", "sort"], 1 + number % 30)
        # torch's pass takes x + 0.0 and x + -0.0 for one (on 2.13.0): give it one zero only
        plus_zero = [tuple(0.0 if repr(a) == "-0.0" else a for a in step[3]) for step in steps]
        steps = [(*s[:3], args, s[4]) for s, args in zip(steps, plus_zero, strict=True)]
        # torch keeps results apart that the caller gets, so give it one that is like no other
        total = "%" + steps[-2][0]
        steps[-1:] = [call("last", "mul.Tensor", total, 12345), gives("%last")]
        module = with_values(module_from_steps(steps, {}), random_inputs(rng))
        oracle = fx_graph_cse(module.graph)
        share(module)
        assert len(module.graph.nodes) == len(oracle.nodes)


def test_share_with_writes(rng):
    calls_shared = asked(passes.calls_shared, "share")
    for number in range(40):
        steps = random_steps(rng, ALL, 2 + number % 30, outputs=4)
        test_share.compare(calls_shared, steps, random_inputs(rng))


def test_folding_keeps_what_changes(rng):
    constants_folded = asked(passes.constants_folded, "fold_constants")
    attributes = dict(zip("cdp", random_inputs(rng, 3), strict=True))
    for number in range(60):
        kinds = ["unary", "binary", "scalar", "random", "make"]
        steps = random_steps(rng, kinds, 2 + number % 25, tensors="cdp", outputs=3)
        steps = test_fold_constants.alive(steps)
        test_fold_constants.compare(constants_folded, steps, random_inputs(rng), attributes)


def test_simplify_keeps_every_bit(rng):
    simplified = asked(passes.simplified, "simplify")
    links = [*test_simplify.TWICE[:4], "sin"]
    links += [(f"{n}.Tensor", c) for n in ("add", "mul") for c in (0, 1, 0.0, -0.0, 1.0, True)]
    links += [("sub.Tensor", 0), ("sub.Tensor", -0.0), ("div.Tensor", 1), ("div.Tensor", 1.0)]
    for number in range(60):
        nest = [draw_one(rng, links) for _ in range(1 + number % 12)]
        steps = test_simplify.chain(["t", *nest])
        x = test_simplify.special(draw_one(rng, [torch.float32, torch.int64, torch.float16]))
        test_simplify.compare(simplified, steps, [x.clamp(-50, 50)], len(calls_of(steps)))


def test_kernels_can_run(rng):
    kernels_fused = asked(passes.kernels_fused, "fuse")
    for number in range(40):
        test_fuse.compare(kernels_fused, test_fuse.barriers(rng, number % 16), random_inputs(rng))


def test_merged_products(rng):
    matmuls_merged = asked(passes.matmuls_merged, "merge_matmuls")
    for _ in range(6):
        test_merge_matmuls.test_random_graphs(matmuls_merged, rng)
        test_merge_matmuls.test_many_of_any_width(matmuls_merged, rng)


def test_merge_matmuls_of_no_product():
    module = module_from_steps([*reads("x0"), gives("%x0")], {})
    reference("merge_matmuls")(module)
    assert module.code
