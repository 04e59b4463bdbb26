"""Probes of `recompiles` and `Steady`: which calls compile again."""

import torch

from grader import fresh_dynamo, probe


@probe
def recompilations(student, sequences, dynamic):
    """Return the prediction for each sequence of calls."""
    return [
        student.recompiles([dict(call) for call in calls], choice)
        for calls, choice in zip(sequences, dynamic, strict=True)
    ]


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


@probe
def steady_steps(student, mean_and_x):
    """Call one `Steady` for each list of (mean, x, decay); return results and what was compiled."""
    found = []
    with fresh_dynamo():
        for calls in mean_and_x:
            graphs, outputs = [], []

            def backend(graph_module, example_inputs, graphs=graphs, outputs=outputs):
                graphs.append([has_symbolic_size(graph_module, dim) for dim in (0, 1)])

                def run(*inputs):
                    results = graph_module(*inputs)
                    outputs[:] = results
                    return results

                return run

            steady = student.Steady(backend)
            notes = []
            for mean, x, decay in calls:
                outputs.clear()
                results = steady(mean, x, decay)
                notes.append(
                    {
                        "results": results,
                        "graphs": len(graphs),
                        "from the graph": [any(r is o for o in outputs) for r in results],
                    }
                )
            found.append({"calls": notes, "symbolic": graphs})
    return found
