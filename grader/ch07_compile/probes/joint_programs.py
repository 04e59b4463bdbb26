"""Programs as data, and their joint graphs."""

import contextlib
import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from functorch.compile import aot_function, nop
from torch.nn import functional

JOINT_STEPS = {
    "sin": torch.sin,
    "cos": torch.cos,
    "exp": torch.exp,
    "sigmoid": torch.sigmoid,
    "mul": torch.mul,
    "add": torch.add,
    "mm": torch.mm,
    "rows": lambda value: value.sum(0, keepdim=True),
    "transposed": lambda value: value.t(),
    "peak": lambda value: value.max(1, keepdim=True).values,
    "dropout": lambda value: functional.dropout(value, 0.5),
    "positive": lambda value: value > 0,
    "detached": lambda value: value.detach(),
    "restarted": lambda value: value.detach().requires_grad_(),
    "grow": lambda value: value.add_(1),
}
"""Each step takes numbers of values: first the inputs, then the results of the steps before.
All values are (n, n), (1, n) or (n, 1), and broadcast."""


def joint_program(steps: list[tuple], outputs: list[int]) -> Callable:
    """Return a function of tensors that takes the steps and returns the values `outputs`, a tuple."""

    def function(*inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        values = list(inputs)
        for kind, *args in steps:
            values.append(JOINT_STEPS[kind](*[values[at] for at in args]))
        return tuple(values[at] for at in outputs)

    return function


def joint_leaves(numbers: list[torch.Tensor], needs_grad: list[bool]) -> list[torch.Tensor]:
    """Return the inputs as leaves that share their memory with `numbers`."""
    return [
        number.detach().requires_grad_(flag)
        for number, flag in zip(numbers, needs_grad, strict=True)
    ]


SEED = 7
"""Of the random operators in a program: both sides draw the same."""


def joint_tangents(joint_inputs: tuple) -> list[torch.Tensor]:
    """Return a value for each tangent: numbers from -1 to 1, none of them the same."""
    return [
        torch.linspace(-1, 1, one.numel(), dtype=one.dtype).reshape(tuple(one.shape))
        for one in joint_inputs[1]
    ]


class JointCaught(Exception):
    """Ends tracing once the joint graph is there, so that the function itself never runs."""


def capture_joint(
    function: Callable, inputs: Sequence[torch.Tensor]
) -> tuple[torch.fx.GraphModule, tuple, int]:
    """Return the joint graph of a function, its joint inputs and its number of forward outputs.

    torch 2.13.0 calls `partition_fn(joint, joint_inputs, *, num_fwd_outputs, **options)`, where
    `joint_inputs` is a pair: the primals and the tangents.
    """
    caught = {}

    def catch(joint: Any, joint_inputs: Any, *, num_fwd_outputs: int, **_: Any) -> None:
        caught["all"] = joint, joint_inputs, num_fwd_outputs
        raise JointCaught

    with contextlib.suppress(JointCaught):
        aot_function(function, fw_compiler=nop, bw_compiler=nop, partition_fn=catch)(*inputs)
    return caught["all"]


def joint_record(graph: torch.fx.Graph) -> tuple[list[dict], list[str | None]]:
    """Return a graph as data: a list of dicts in order, and the names that it returns.

    torch 2.13.0 keeps what a node returns in `node.meta["val"]`: a fake tensor, or a tuple of them.
    """
    nodes = []
    for node in graph.nodes:
        if node.op == "output":
            continue
        value = node.meta.get("val")
        plain = isinstance(value, torch.Tensor)
        nodes.append(
            {
                "name": node.name,
                "op": node.op,
                "target": str(node.target) if node.op == "call_function" else "",
                "inputs": [one.name for one in node.all_input_nodes],
                "bytes": value.numel() * value.element_size() if plain else 0,
                "tuple": isinstance(value, tuple | list),
                "getitem": node.target is operator.getitem,
                "random": torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()),
            }
        )
    returned = graph.output_node().args[0]
    return nodes, [one.name if isinstance(one, torch.fx.Node) else None for one in returned]


def called_targets(graph: torch.fx.Graph) -> list[str]:
    """Return the names of the operators that a graph calls, sorted."""
    return sorted(str(node.target) for node in graph.nodes if node.op == "call_function")
