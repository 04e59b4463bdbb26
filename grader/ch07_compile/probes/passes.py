"""Probes of the passes that change a graph in place, and of `fuse`."""

import torch

from grader import probe

from .fx_steps import (
    apply_twice,
    graph_from_steps,
    module_from_steps,
    run_twice,
    steps_of_graph,
    with_values,
)


@probe
def dead_removed(student, steps, inputs, attributes):
    """Return what `remove_dead` makes of a graph."""
    return apply_twice(student.remove_dead, module_from_steps(steps, attributes), inputs)


@probe
def calls_shared(student, steps, inputs):
    """Return what `share` makes of a graph."""
    return apply_twice(student.share, module_from_steps(steps, {}), inputs)


@probe
def constants_folded(student, steps, inputs, attributes, parameters):
    """Return what `fold_constants` makes of a graph, and two runs after a training step.

    parameters: the names of those attributes that are parameters
    """
    module = module_from_steps(steps, attributes, parameters)
    found = apply_twice(student.fold_constants, module, inputs)
    return {**found, "later": run_trained(module, inputs)}


def run_trained(module, inputs):
    """Add one to each parameter; return two runs from then on."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(1)
    return run_twice(module, inputs)


@probe
def simplified(student, steps, inputs):
    """Return what `simplify` makes of a graph whose nodes have `meta["val"]`."""
    return apply_twice(student.simplify, with_values(module_from_steps(steps, {}), inputs), inputs)


@probe
def kernels_fused(student, steps, inputs):
    """Return the kernels as lists of nodes' names, and whether the graph is as it was."""
    module = with_values(module_from_steps(steps, {}), inputs)
    kernels = student.fuse(module.graph)
    return {
        "kernels": [[node.name for node in kernel] for kernel in kernels],
        "unchanged": steps_of_graph(module.graph)
        == steps_of_graph(module_from_steps(steps, {}).graph),
    }


@probe
def matmuls_merged(student, steps, inputs):
    """Return what `merge_matmuls` makes of a graph; a graph in no order that can run is said."""
    module = with_values(module_from_steps(steps, {}), inputs)
    student.merge_matmuls(module)
    seen = set()
    for node in module.graph.nodes:
        if not seen.issuperset(node.all_input_nodes):
            return {"early": True}
        seen.add(node)
    module.graph.lint()
    once, code = steps_of_graph(module.graph), module.code
    module.recompile()
    fresh = module.code == code
    runs = run_twice(module, inputs)
    student.merge_matmuls(with_values(module, inputs))
    twice = steps_of_graph(module.graph)
    return {"early": False, "once": once, "twice": twice, "runs": runs, "recompiled": fresh}


@probe
def pattern_replaced(student, steps, pattern, replacement, inputs):
    """Return what `replace_pattern` makes of a graph, and what it says."""
    module, templates = module_from_steps(steps, {}), (pattern, replacement)
    graphs = [graph_from_steps(template) for template in templates]
    count = student.replace_pattern(module, *graphs)
    module.graph.lint()
    once, code = steps_of_graph(module.graph), module.code
    runs = run_twice(module, inputs)
    module.recompile()
    return {
        "count": count,
        "once": once,
        "runs": runs,
        "recompiled": module.code == code,
        "templates unchanged": [
            steps_of_graph(graph) == steps_of_graph(graph_from_steps(template))
            for graph, template in zip(graphs, templates, strict=True)
        ],
    }
