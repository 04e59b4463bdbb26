# %% blocked: graph_module
# A `GraphModule` writes the graph as Python text and runs that. Walk the nodes yourself.
def interpret(graph, root, *args):
    return fx.GraphModule(root, graph)(*args)


# %% mistake: keeps_everything
# You kept every value until the graph was done. A graph of a thousand calls then holds a thousand
# results, where two may do. Drop a value after the last node that takes it.
def interpret(graph, root, *args):
    values, supplied = {}, iter(args)
    for node in graph.nodes:
        inputs = fx.map_arg(node.args, lambda n: values[n])
        options = fx.map_arg(node.kwargs, lambda n: values[n])
        if node.op == "placeholder":
            values[node] = next(supplied)
        elif node.op == "get_attr":
            values[node] = operator.attrgetter(node.target)(root)
        elif node.op == "call_function":
            values[node] = node.target(*inputs, **options)
        elif node.op == "call_method":
            values[node] = getattr(inputs[0], node.target)(*inputs[1:], **options)
        elif node.op == "call_module":
            values[node] = root.get_submodule(node.target)(*inputs, **options)
        else:
            return inputs[0]


# %% mistake: only_flat_arguments
# You looked for nodes among the arguments only, not inside them. `cat` takes a list of nodes, a
# slice may hold one, and a dict too. `fx.map_arg` reaches them all.
def interpret(graph, root, *args):
    values, supplied = {}, iter(args)
    left = {node: len(node.users) for node in graph.nodes}

    def read(one):
        return values[one] if isinstance(one, fx.Node) else one

    for node in graph.nodes:
        inputs = [read(one) for one in node.args]
        options = {key: read(one) for key, one in node.kwargs.items()}
        if node.op == "placeholder":
            values[node] = next(supplied)
        elif node.op == "get_attr":
            values[node] = operator.attrgetter(node.target)(root)
        elif node.op == "call_function":
            values[node] = node.target(*inputs, **options)
        elif node.op == "call_method":
            values[node] = getattr(inputs[0], node.target)(*inputs[1:], **options)
        elif node.op == "call_module":
            values[node] = root.get_submodule(node.target)(*inputs, **options)
        else:
            return fx.map_arg(node.args[0], lambda n: values[n])
        inputs = options = None
        for one in [*node.all_input_nodes, node]:
            left[one] -= one is not node
            if left[one] == 0:
                values.pop(one, None)


# %% mistake: only_one_level_of_names
# You looked attributes up with `getattr(root, target)`. The target may have dots in it, as in
# `block.inner.layer`: go down name by name, or use `root.get_submodule` and `operator.attrgetter`.
def interpret(graph, root, *args):
    values, supplied = {}, iter(args)
    left = {node: len(node.users) for node in graph.nodes}
    for node in graph.nodes:
        inputs = fx.map_arg(node.args, lambda n: values[n])
        options = fx.map_arg(node.kwargs, lambda n: values[n])
        if node.op == "placeholder":
            values[node] = next(supplied)
        elif node.op == "get_attr":
            values[node] = getattr(root, node.target)
        elif node.op == "call_function":
            values[node] = node.target(*inputs, **options)
        elif node.op == "call_method":
            values[node] = getattr(inputs[0], node.target)(*inputs[1:], **options)
        elif node.op == "call_module":
            values[node] = getattr(root, node.target)(*inputs, **options)
        else:
            return inputs[0]
        inputs = options = None
        for one in [*node.all_input_nodes, node]:
            left[one] -= one is not node
            if left[one] == 0:
                values.pop(one, None)


# %% mistake: on_demand
# You ran only the nodes that the output needs. A node that nobody uses may still write to a tensor
# or draw random numbers, and the order of such nodes matters: run them all, in their order.
def interpret(graph, root, *args):
    values = dict(zip([n for n in graph.nodes if n.op == "placeholder"], args))
    left = {node: len(node.users) for node in graph.nodes}

    def value(node):
        if node not in values:
            values[node] = run(node)
        result = values[node]
        left[node] -= 1
        if not left[node]:
            del values[node]
        return result

    def run(node):
        seen = {}
        for one in node.all_input_nodes:
            seen[one] = value(one)
        inputs = fx.map_arg(node.args, seen.__getitem__)
        options = fx.map_arg(node.kwargs, seen.__getitem__)
        if node.op == "get_attr":
            return operator.attrgetter(node.target)(root)
        if node.op == "call_function":
            return node.target(*inputs, **options)
        if node.op == "call_method":
            return getattr(inputs[0], node.target)(*inputs[1:], **options)
        if node.op == "call_module":
            return root.get_submodule(node.target)(*inputs, **options)
        return inputs[0]

    return run(list(graph.nodes)[-1])


# %% mistake: first_result_only
# You returned the first of the outputs. The output node's first argument is the whole result: a
# tensor, a tuple, a dict of lists, whatever the graph returns.
def interpret(graph, root, *args):
    values, supplied = {}, iter(args)
    left = {node: len(node.users) for node in graph.nodes}
    for node in graph.nodes:
        inputs = fx.map_arg(node.args, lambda n: values[n])
        options = fx.map_arg(node.kwargs, lambda n: values[n])
        if node.op == "placeholder":
            values[node] = next(supplied)
        elif node.op == "get_attr":
            values[node] = operator.attrgetter(node.target)(root)
        elif node.op == "call_function":
            values[node] = node.target(*inputs, **options)
        elif node.op == "call_method":
            values[node] = getattr(inputs[0], node.target)(*inputs[1:], **options)
        elif node.op == "call_module":
            values[node] = root.get_submodule(node.target)(*inputs, **options)
        else:
            return values[node.all_input_nodes[0]]
        inputs = options = None
        for one in [*node.all_input_nodes, node]:
            left[one] -= one is not node
            if left[one] == 0:
                values.pop(one, None)


# %% mistake: holds_the_last
# You drop values from your dict, and a local variable still holds the one that came last. If nobody
# takes it, it lives while the next node runs. Put results into the dict at once, or `del` the name.
def interpret(graph, root, *args):
    ends = {source: node for node in graph.nodes for source in node.all_input_nodes}
    values, given = {}, iter(args)
    for node in graph.nodes:
        positional, named = fx.map_arg((node.args, node.kwargs), values.__getitem__)
        if node.op == "output":
            return positional[0]
        if node.op == "placeholder":
            value = next(given)
        elif node.op == "get_attr":
            value = operator.attrgetter(node.target)(root)
        elif node.op == "call_function":
            value = node.target(*positional, **named)
        elif node.op == "call_method":
            value = getattr(positional[0], node.target)(*positional[1:], **named)
        else:
            value = root.get_submodule(node.target)(*positional, **named)
        values[node] = value
        for done in (node, *node.all_input_nodes):
            if ends.get(done, node) is node:
                del values[done]


# %% alternate: counts_users
# A value goes when as many users as it has have run. No walk before the run.
def interpret(graph, root, *args):
    values = {}
    waiting = {}
    arguments = list(args)[::-1]

    def nest(one):
        if isinstance(one, fx.Node):
            return values[one]
        if isinstance(one, tuple | list):
            return (
                type(one)(nest(part) for part in one)
                if type(one) in (tuple, list)
                else [nest(part) for part in one]
            )
        if isinstance(one, dict):
            return {key: nest(part) for key, part in one.items()}
        if isinstance(one, slice):
            return slice(nest(one.start), nest(one.stop), nest(one.step))
        return one

    def perform(node):
        first = tuple(nest(part) for part in node.args)
        second = {key: nest(part) for key, part in node.kwargs.items()}
        if node.op == "placeholder":
            return arguments.pop()
        if node.op == "call_function":
            return node.target(*first, **second)
        if node.op == "call_method":
            return getattr(type(first[0]), node.target)(*first, **second)
        found = root
        for name in node.target.split("."):
            found = getattr(found, name)
        return found if node.op == "get_attr" else found(*first, **second)

    for node in graph.nodes:
        if node.op == "output":
            return fx.map_arg(node.args[0], lambda one: values[one])
        values[node] = perform(node)
        waiting[node] = len(node.users)
        for source in node.all_input_nodes:
            waiting[source] -= 1
        for one in (*node.all_input_nodes, node):
            if waiting[one] == 0:
                values.pop(one, None)


# %% alternate: backwards_scan
# Going backwards, the first node that takes a value is its last use.
def interpret(graph, root, *args):
    seen, ends = set(), {}
    for node in reversed(graph.nodes):
        ends[node] = [one for one in node.all_input_nodes if one not in seen]
        seen.update(node.all_input_nodes)
    arguments, values = iter(args), {}

    def load(node):
        return values[node]

    for node in graph.nodes:
        if node.op == "output":
            return fx.map_arg(node.args, load)[0]
        if node.op == "placeholder":
            call = lambda: next(arguments)  # noqa: E731
        elif node.op == "get_attr":
            call = lambda: operator.attrgetter(node.target)(root)  # noqa: E731
        elif node.op == "call_method":
            call = lambda *all, **k: operator.methodcaller(node.target, *all[1:], **k)(all[0])  # noqa: E731
        elif node.op == "call_module":
            call = root.get_submodule(node.target)
        else:
            call = node.target
        values[node] = call(*fx.map_arg(node.args, load), **fx.map_arg(node.kwargs, load))
        for one in ends[node]:
            del values[one]
        if not node.users:
            del values[node]
