# %% blocked: builtin
# It answers what you are to find out.
class OpLister:
    def __init__(self):
        self.graphs = []

    def __call__(self, module, example_inputs):
        self.graphs.append(torch._dynamo.explain(module)(*example_inputs).ops_per_graph)
        return module.forward


# %% mistake: lists_every_node
# Your lists also hold the inputs and the output of the graph. Those are nodes too: look at
# `node.op`.
class OpLister:
    def __init__(self):
        self.graphs = []

    def __call__(self, module, example_inputs):
        names = [getattr(node.target, "__name__", node.target) for node in module.graph.nodes]
        self.graphs.append(names)
        return module.forward


# %% mistake: keeps_the_last
# You keep the last graph alone. A backend is called once for each graph: append.
class OpLister:
    def __init__(self):
        self.graphs = []

    def __call__(self, module, example_inputs):
        called = [node for node in module.graph.nodes if node.op.startswith("call")]
        self.graphs = [[getattr(node.target, "__name__", node.target) for node in called]]
        return module.forward


# %% alternate: by_interpreter
# Runs the graph node by node, and lists what runs the first time.
class OpLister:
    def __init__(self):
        self.graphs = []

    def __call__(self, module, example_inputs):
        names = []
        self.graphs.append(names)
        for node in module.graph.nodes:
            if node.op in ("call_function", "call_method"):
                names.append(node.target if isinstance(node.target, str) else node.target.__name__)
        return torch.fx.Interpreter(module).run
