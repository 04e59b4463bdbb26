# %% mistake: counts_every_node
# You count every node. The graph's inputs, its output and the things it holds are nodes, and no
# operations: look at `node.op`.
def count_ops(function, calls):
    torch._dynamo.reset()
    counts = []

    def backend(graph_module, example_inputs):
        modules = [m for m in graph_module.modules() if isinstance(m, torch.fx.GraphModule)]
        targets = [node.target for module in modules for node in module.graph.nodes]
        counts.append(dict(Counter(getattr(target, "__name__", target) for target in targets)))
        return graph_module

    compiled = torch.compile(function, backend=backend)
    return [compiled(*arguments) for arguments in calls], counts


# %% mistake: functions_alone
# You count `call_function` nodes alone. A method of a tensor, as in `x.cos()`, is a `call_method`
# node, whose target is the method's name.
def count_ops(function, calls):
    torch._dynamo.reset()
    counts = []

    def backend(graph_module, example_inputs):
        modules = [m for m in graph_module.modules() if isinstance(m, torch.fx.GraphModule)]
        nodes = [node for module in modules for node in module.graph.nodes]
        called = [node.target.__name__ for node in nodes if node.op == "call_function"]
        counts.append(dict(Counter(called)))
        return graph_module

    compiled = torch.compile(function, backend=backend)
    return [compiled(*arguments) for arguments in calls], counts


# %% mistake: node_names
# You counted by `node.name`. Names of nodes are unique in a graph: the second `sin` is called
# `sin_1`. What is called is `node.target`.
def count_ops(function, calls):
    torch._dynamo.reset()
    counts = []

    def backend(graph_module, example_inputs):
        modules = [m for m in graph_module.modules() if isinstance(m, torch.fx.GraphModule)]
        nodes = [node for module in modules for node in module.graph.nodes]
        called = [node.name for node in nodes if node.op in ("call_function", "call_method")]
        counts.append(dict(Counter(called)))
        return graph_module

    compiled = torch.compile(function, backend=backend)
    return [compiled(*arguments) for arguments in calls], counts


# %% mistake: forgets_the_arms
# You looked at the outer graph alone. The arms of a `cond` are graph modules of their own, which
# hang on the outer one: `graph_module.modules()` finds them.
def count_ops(function, calls):
    torch._dynamo.reset()
    counts = []

    def backend(graph_module, example_inputs):
        targets = [n.target for n in graph_module.graph.nodes if n.op.startswith("call")]
        names = [target if isinstance(target, str) else target.__name__ for target in targets]
        counts.append(dict(Counter(names)))
        return graph_module

    compiled = torch.compile(function, backend=backend)
    return [compiled(*arguments) for arguments in calls], counts


# %% mistake: direct_children
# You looked at the graph and its direct children. An arm may hold a `cond` too, whose arms lie one
# level deeper: `modules()` walks all the way down.
def count_ops(function, calls):
    torch._dynamo.reset()
    counts = []

    def backend(graph_module, example_inputs):
        graphs = [graph_module.graph, *(child.graph for child in graph_module.children())]
        targets = [n.target for g in graphs for n in g.nodes if n.op.startswith("call")]
        names = [target if isinstance(target, str) else target.__name__ for target in targets]
        counts.append(dict(Counter(names)))
        return graph_module

    compiled = torch.compile(function, backend=backend)
    return [compiled(*arguments) for arguments in calls], counts


# %% mistake: one_total
# You added all graphs up. The backend is called once for each graph: append a dict each time.
def count_ops(function, calls):
    torch._dynamo.reset()
    total = Counter()

    def backend(graph_module, example_inputs):
        modules = [m for m in graph_module.modules() if isinstance(m, torch.fx.GraphModule)]
        nodes = [node for module in modules for node in module.graph.nodes]
        targets = [node.target for node in nodes if node.op.startswith("call")]
        total.update(target if isinstance(target, str) else target.__name__ for target in targets)
        return graph_module

    compiled = torch.compile(function, backend=backend)
    return [compiled(*arguments) for arguments in calls], [dict(total)] if total else []


# %% mistake: never_resets
# You did not start afresh. Dynamo keeps what it compiled with the function's code, whoever asked for
# it, and after eight entries it gives up: your backend is not called any more. Call
# `torch._dynamo.reset()` first.
def count_ops(function, calls):
    counts = []

    def backend(graph_module, example_inputs):
        modules = [m for m in graph_module.modules() if isinstance(m, torch.fx.GraphModule)]
        nodes = [node for module in modules for node in module.graph.nodes]
        targets = [node.target for node in nodes if node.op.startswith("call")]
        names = [target if isinstance(target, str) else target.__name__ for target in targets]
        counts.append(dict(Counter(names)))
        return graph_module

    compiled = torch.compile(function, backend=backend)
    return [compiled(*arguments) for arguments in calls], counts


# %% mistake: compiles_for_each_call
# You reset and compile for each call anew. A call of the same kind must find the graph of the call
# before: reset once, compile once.
def count_ops(function, calls):
    counts, results = [], []

    def backend(graph_module, example_inputs):
        modules = [m for m in graph_module.modules() if isinstance(m, torch.fx.GraphModule)]
        nodes = [node for module in modules for node in module.graph.nodes]
        targets = [node.target for node in nodes if node.op.startswith("call")]
        names = [target if isinstance(target, str) else target.__name__ for target in targets]
        counts.append(dict(Counter(names)))
        return graph_module

    for arguments in calls:
        torch._dynamo.reset()
        results.append(torch.compile(function, backend=backend)(*arguments))
    return results, counts


# %% mistake: runs_it_again
# You return what the function itself gives, and call the compiled one beside it. So it runs twice
# for each call, and whatever it changes is changed twice. Keep the results of the compiled calls.
def count_ops(function, calls):
    torch._dynamo.reset()
    counts = []

    def backend(graph_module, example_inputs):
        modules = [m for m in graph_module.modules() if isinstance(m, torch.fx.GraphModule)]
        nodes = [node for module in modules for node in module.graph.nodes]
        called = [n.target for n in nodes if n.op in ("call_function", "call_method")]
        counts.append(dict(Counter(getattr(target, "__name__", target) for target in called)))
        return graph_module

    compiled = torch.compile(function, backend=backend)
    for arguments in calls:
        compiled(*arguments)
    return [function(*arguments) for arguments in calls], counts


# %% alternate: a_class
# A backend may be any callable, such as an object; it returns an interpreter of the graph.
class Counting:
    def __init__(self):
        self.counts = []

    def __call__(self, graph_module, example_inputs):
        counts = {}
        self.count(graph_module, counts)
        self.counts.append(counts)
        return torch.fx.Interpreter(graph_module).run

    def count(self, graph_module, counts):
        for node in graph_module.graph.nodes:
            if node.op == "call_method":
                counts[node.target] = counts.get(node.target, 0) + 1
            elif node.op == "call_function":
                name = node.target.__name__
                counts[name] = counts.get(name, 0) + 1
            elif node.op == "get_attr":
                held = getattr(graph_module, node.target)
                if isinstance(held, torch.fx.GraphModule):
                    self.count(held, counts)


def count_ops(function, calls):
    torch._dynamo.reset()
    backend = Counting()
    compiled = torch.compile(function, backend=backend)
    results = []
    for arguments in calls:
        results.append(compiled(*arguments))
    return results, backend.counts


# %% alternate: keeps_graphs
# Keeps the graphs, and counts after the last call.
def count_ops(function, calls):
    torch._dynamo.reset()
    kept = []

    def backend(graph_module, example_inputs):
        kept.append(graph_module)
        return graph_module.forward

    compiled = torch.compile(function, backend=backend)
    results = [compiled(*arguments) for arguments in calls]
    counts = []
    for outer in kept:
        names = []
        for module in outer.modules():
            for node in getattr(module, "graph", torch.fx.Graph()).nodes:
                if callable(node.target):
                    names.append(node.target.__name__)
                elif node.op == "call_method":
                    names.append(node.target)
        counts.append({name: names.count(name) for name in names})
    return results, counts
