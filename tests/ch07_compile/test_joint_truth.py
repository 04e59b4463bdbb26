"""Joint graphs: the references agree with torch and with brute force on many random programs."""

from functools import partial
from itertools import combinations

import pytest
import torch
from functorch.compile import aot_function, min_cut_rematerialization_partition, nop
from torch._functorch import config as functorch_config
from torch.fx.experimental.proxy_tensor import make_fx

from grader.ch07_compile.joint_graphs import (
    cheapest_cut,
    cut_problem,
    cut_rules,
    draw_cut_graph,
    draw_joint_program,
)
from grader.ch07_compile.probes.cut_graphs import CUT_TARGETS, build_cut_graph
from grader.ch07_compile.probes.joint_programs import (
    capture_joint,
    joint_leaves,
    joint_program,
    joint_record,
)
from tests import references

reference = partial(references.reference, "ch07_compile")


def generator(seed):
    return torch.Generator().manual_seed(seed)


def test_read_joint_adds_up():
    read_joint, rng = reference("read_joint"), generator(1)
    for number in range(10):
        steps = draw_joint_program(rng, ["sin", "mul", "exp", "peak", "rows"], 5)
        inputs = joint_leaves(
            list(torch.rand(3, 4, 4, generator=rng)), [True, number % 2 == 0, True]
        )
        function = joint_program(steps, [7, 5])
        report = read_joint(function, *inputs)
        joint, joint_inputs, _ = capture_joint(function, inputs)
        calls = [str(n.target) for n in joint.graph.nodes if n.op == "call_function"]
        assert sorted(report["forward"] + report["backward"] + report["either"]) == sorted(calls)
        assert (report["primals"], report["tangents"]) == tuple(map(len, joint_inputs))
        # the forward traced alone runs the same operators
        plain = [one.detach() for one in inputs]
        graph = make_fx(function)(*plain).graph
        graph.eliminate_dead_code()
        alone = [str(n.target) for n in graph.nodes if n.op == "call_function"]
        assert sorted(name for name in report["forward"] if "detach" not in name) == sorted(
            name for name in alone if "detach" not in name
        )


@pytest.mark.parametrize(
    "policy", [lambda node: True, lambda node: False, lambda node: hash(node) % 2]
)
def test_partition_trains(policy):
    partition, rng = reference("partition"), generator(2)

    def cut(joint, joint_inputs, *, num_fwd_outputs, **_):
        return partition(joint, joint_inputs, num_fwd_outputs=num_fwd_outputs, may_save=policy)

    for _ in range(6):
        steps = draw_joint_program(rng, ["sin", "mul", "exp", "peak", "add", "sigmoid"], 6)
        function = joint_program(steps, [8, 6])
        numbers = list(torch.rand(3, 4, 4, generator=rng, dtype=torch.float64))
        gradients = []
        for run in (function, aot_function(function, nop, nop, cut)):
            leaves = joint_leaves(numbers, [True, True, False])
            sum(result.sum() for result in run(*leaves)).backward()
            gradients.append([leaf.grad for leaf in leaves])
        for mine, theirs in zip(*gradients, strict=True):
            assert (mine is None) == (theirs is None)
            assert mine is None or torch.allclose(mine, theirs)


def test_fewest_bytes_by_brute_force():
    """No set of values that is enough has fewer bytes than the cut; `min_cut` finds one of them."""
    min_cut, rng = reference("min_cut"), generator(3)
    for number in range(150):
        kinds = ["sin", "mm", "add", "bernoulli", "cat", "full"]
        graph = draw_cut_graph(rng, kinds, ["f32", "b8"], 1 + number % 3, number % 3, 2)
        joint, joint_inputs, count = build_cut_graph(graph)
        joint.graph.lint()
        nodes, returned = joint_record(joint.graph)
        rules = cut_rules(nodes, returned, count, 3, ["aten.mm.default"])
        early = [node for node in nodes if node["name"] not in rules[0]]
        costs = [
            sum(node["bytes"] for node in chosen)
            for size in range(len(early) + 1)
            for chosen in combinations(early, size)
            if not cut_problem([node["name"] for node in chosen], nodes, rules)
        ]
        heavy = {CUT_TARGETS["mm"]}
        saved = min_cut(joint, joint_inputs, num_fwd_outputs=count, heavy=heavy)
        sizes = {node["name"]: node["bytes"] for node in nodes}
        assert not cut_problem([node.name for node in saved], nodes, rules)
        assert (
            min(costs) == cheapest_cut(nodes, rules)[0] == sum(sizes[node.name] for node in saved)
        )


FREE = {
    "ban_recompute_reductions": False,
    "ban_recompute_used_far_apart": False,
    "ban_recompute_long_fusible_chains": False,
    "ban_recompute_materialized_backward": False,
    "ban_recompute_not_in_allowlist": False,
}
"""torch's rules against slow recomputation, all off."""

SINES = [("sin", 0), *[("sin", 3 + at) for at in range(5)]]
LAYERS = [("mm", 0, 1), ("sigmoid", 3), ("exp", 4), ("mm", 5, 2), ("sin", 6), ("sin", 7)]


SHRINKS = [("rows", 0), ("sin", 3), ("exp", 4), ("exp", 5)]


@pytest.mark.parametrize("steps", [SINES, LAYERS, SHRINKS])
def test_as_few_bytes_as_torch(steps):
    """`min_cut` saves as many bytes as torch 2.13.0 does without its rules for speed."""
    min_cut = reference("min_cut")
    numbers = [torch.rand(4, 4) for _ in range(3)]
    joint, joint_inputs, count = capture_joint(
        joint_program(steps, [2 + len(steps)]), joint_leaves(numbers, [True] * 3)
    )
    heavy = {torch.ops.aten.mm.default}
    saved = min_cut(joint, joint_inputs, num_fwd_outputs=count, heavy=heavy)
    with functorch_config.patch(FREE):
        forward, _ = min_cut_rematerialization_partition(joint, joint_inputs, num_fwd_outputs=count)
    theirs = forward.graph.output_node().args[0][count:]
    assert sum(node.meta["val"].nbytes for node in saved) == sum(
        node.meta["val"].nbytes for node in theirs
    )
