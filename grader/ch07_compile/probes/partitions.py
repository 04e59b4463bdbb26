"""Probes of `read_joint`, `partition` and `min_cut`."""

import torch
from functorch.compile import aot_function, nop

from grader import probe

from .cut_graphs import CUT_TARGETS, build_cut_graph
from .joint_programs import (
    SEED,
    called_targets,
    capture_joint,
    joint_leaves,
    joint_program,
    joint_record,
    joint_tangents,
)


@probe
def joint_read(student, steps, outputs, needs_grad, numbers):
    """Return what `read_joint` says of a program's joint graph."""
    inputs = joint_leaves(numbers, needs_grad)
    return student.read_joint(joint_program(steps, outputs), *inputs)


@probe
def joint_cut(student, steps, outputs, needs_grad, numbers, savable):
    """Return what the two graphs of `partition` run and take, what they return, and what is saved."""
    inputs = joint_leaves(numbers, needs_grad)
    joint, joint_inputs, count = capture_joint(joint_program(steps, outputs), inputs)
    before = joint_record(joint.graph)
    forward, backward = student.partition(
        joint,
        joint_inputs,
        num_fwd_outputs=count,
        may_save=lambda node: str(node.target) in savable,
    )
    torch.manual_seed(SEED)
    given = [number.detach().clone() for number in numbers]
    returned = list(forward(*given))
    saved = returned[count:]
    gradients = list(backward(*saved, *joint_tangents(joint_inputs)))
    return {
        "graphs": [isinstance(one, torch.fx.GraphModule) for one in (forward, backward)],
        "forward": called_targets(forward.graph),
        "backward": called_targets(backward.graph),
        "outputs": returned[:count],
        "saved": len(saved),
        "saved bytes": sum(one.numel() * one.element_size() for one in saved),
        "gradients": gradients,
        "joint graph unchanged": joint_record(joint.graph) == before,
    }


@probe
def joint_trained(student, steps, outputs, needs_grad, numbers, savable):
    """Return outputs and gradients of a function that `aot_function` cut with `partition`."""

    def cut(joint, joint_inputs, *, num_fwd_outputs, **_):
        return student.partition(
            joint,
            joint_inputs,
            num_fwd_outputs=num_fwd_outputs,
            may_save=lambda node: str(node.target) in savable,
        )

    inputs = joint_leaves(numbers, needs_grad)
    function = joint_program(steps, outputs)
    results = aot_function(function, fw_compiler=nop, bw_compiler=nop, partition_fn=cut)(*inputs)
    sum(result.sum() for result in results).backward()
    return {
        "outputs": [result.detach() for result in results],
        "gradients": [leaf.grad for leaf in inputs],
    }


@probe
def joint_min_cut(student, graphs, heavy):
    """Return what `min_cut` wants to save of each graph: names, and whether they are nodes of it."""
    answers = []
    targets = {CUT_TARGETS[kind] for kind in heavy}
    for graph in graphs:
        joint, joint_inputs, count = build_cut_graph(graph)
        before = joint_record(joint.graph)
        saved = student.min_cut(joint, joint_inputs, num_fwd_outputs=count, heavy=targets)
        saved = list(saved)
        own = all(isinstance(node, torch.fx.Node) and node.graph is joint.graph for node in saved)
        names = [str(getattr(node, "name", node)) for node in saved]
        answers.append((own, names, joint_record(joint.graph) == before))
    return answers


@probe
def joint_min_cut_traced(student, steps, outputs, needs_grad, numbers):
    """Return the names of what `min_cut` wants to save of a traced function, and their bytes."""
    function = joint_program(steps, outputs)
    joint, joint_inputs, count = capture_joint(function, joint_leaves(numbers, needs_grad))
    heavy = {torch.ops.aten.mm.default}
    saved = student.min_cut(joint, joint_inputs, num_fwd_outputs=count, heavy=heavy)
    return [node.name for node in saved]
