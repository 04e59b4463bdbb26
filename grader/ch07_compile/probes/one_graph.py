"""The probe of `one_graph`: what it returns, how many graphs it takes, and what they cost."""

from typing import Any

import torch

from grader import fresh_dynamo, probe, watch_flops
from grader.evidence.wire.raised import Explained


class NoGraph(Explained):
    """Dynamo refused: `fullgraph=True`."""


def told(error: Exception) -> str:
    """Return what a student needs of Dynamo's long message: what is wrong, why, and where."""
    text = str(error)
    lines = [line.strip() for line in text.splitlines()]
    said = [lines[0], *(line for line in lines if line.startswith("Explanation:"))]
    _, _, rest = text.partition("from user code:")
    code = [line.strip() for line in rest.strip().split("\n\n")[0].splitlines()]
    where = [line for line in code if line.strip("^~") and not line.startswith("File ")]
    return "\n".join([*said, *(f"at: {line}" for line in where[-1:])])


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


@probe
def one_graph_runs(student, cases):
    """Compile `one_graph` and call it with each (x, w, limit); return values, gradients and costs."""
    graphs, products, foreign = [], [], set()

    def backend(graph_module, example_inputs):
        graphs.append(len(graphs))
        for module in graph_module.modules():
            for node in getattr(module, "graph", torch.fx.Graph()).nodes:
                home = getattr(node.target, "__module__", None) or "torch"
                if node.op == "call_function" and home.split(".")[0] not in ("torch", "_operator"):
                    foreign.add(home)

        def run(*inputs):
            with watch_flops() as flops:
                results = TakenArms(graph_module).run(*inputs)
            products.append(flops.total)
            return results

        return run

    found = []
    with fresh_dynamo():
        compiled = torch.compile(student.one_graph, backend=backend, fullgraph=True)
        for x, w, limit in cases:
            x, w = (t.detach().requires_grad_(t.requires_grad) for t in (x, w))
            try:
                result, size = compiled(x, w, limit)
            except torch._dynamo.exc.TorchDynamoException as error:
                raise NoGraph(f"Dynamo makes no graph of it. {told(error)}") from error
            if x.requires_grad:
                (result * torch.arange(result.numel()).reshape(result.shape)).sum().backward()
            found.append(
                {
                    "result": result.detach(),
                    "size": size.detach(),
                    "size requires grad": size.requires_grad,
                    "gradients": [x.grad, w.grad],
                    "graphs": len(graphs),
                    "products": products[-1] if products else None,
                }
            )
    return {"cases": found, "foreign calls": sorted(foreign)}
