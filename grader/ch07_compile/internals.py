"""What of chapter 7 rests on torch's internals, in one place. Verified on torch 2.13.0."""

from typing import Any

import torch


class TakenArms(torch.fx.Interpreter):
    """Runs a graph op by op; of a `cond` only the arm that is taken, and that op by op too.

    `torch.ops.higher_order.cond` takes (predicate, arm, arm, operands) in torch 2.13. Called as it
    is it cannot run under an instrument's dispatch mode.
    """

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Run one call."""
        if target is torch.ops.higher_order.cond:
            predicate, yes, no, operands = args
            return TakenArms(yes if predicate else no).run(*operands)
        return super().call_function(target, args, kwargs)


def has_symbolic_size(graph_module: torch.fx.GraphModule, dim: int) -> bool:
    """Say whether any matrix among the graph's inputs has a symbol for its size in `dim`.

    Dynamo keeps a fake tensor of each placeholder under `meta["example_value"]` in torch 2.13.
    """
    inputs = [node for node in graph_module.graph.nodes if node.op == "placeholder"]
    examples = [node.meta.get("example_value") for node in inputs]
    return any(
        isinstance(example.shape[dim], torch.SymInt)
        for example in examples
        if isinstance(example, torch.Tensor) and example.dim() == 2
    )
