# %% mistake: every_road
# You count a node once for every road that leads to it. Where a result is used twice, its node has
# two roads, and the number of roads grows without bound. Remember which nodes you have met.
def graph_report(output):
    met, leaves, storages = [], [], {}
    waiting = [output.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or len(met) > 20_000:
            continue
        met.append(node)
        if hasattr(node, "variable"):
            leaves.append(node.variable)
        names = [name for name in dir(node) if name.startswith("_saved_")]
        for value in [getattr(node, name) for name in names] + [getattr(node, "saved_tensors", ())]:
            for item in value if isinstance(value, (tuple, list)) else [value]:
                if isinstance(item, torch.Tensor):
                    storage = item.untyped_storage()
                    storages[storage.data_ptr()] = storage.nbytes()
        waiting += [after for after, _ in node.next_functions]
    counts = {}
    for node in met:
        counts[node.name()] = counts.get(node.name(), 0) + 1
    return {"nodes": counts, "leaves": leaves, "saved_bytes": sum(storages.values())}


# %% mistake: recursion
# You call a function for each node from within the last one. Python allows about a thousand of those
# at once, and a graph is as deep as the computation was long. Keep a list of waiting nodes instead.
def graph_report(output):
    met, leaves, storages = {}, [], {}

    def visit(node):
        if node is None or node in met:
            return
        met[node] = node.name()
        if hasattr(node, "variable"):
            leaves.append(node.variable)
        values = [getattr(node, name) for name in dir(node) if name.startswith("_saved_")]
        for value in values + list(getattr(node, "saved_tensors", ())):
            for item in value if isinstance(value, (tuple, list)) else [value]:
                if isinstance(item, torch.Tensor):
                    storage = item.untyped_storage()
                    storages[storage.data_ptr()] = storage.nbytes()
        for after, _ in node.next_functions:
            visit(after)

    visit(output.grad_fn)
    counts = {name: list(met.values()).count(name) for name in met.values()}
    return {"nodes": counts, "leaves": leaves, "saved_bytes": sum(storages.values())}


# %% mistake: adds_up_tensors
# You add up the bytes of saved tensors. A tensor that two nodes save is in memory once: count
# storages, each once.
def graph_report(output):
    met, leaves, storages = set(), [], {}
    waiting = [output.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in met:
            continue
        met.add(node)
        if hasattr(node, "variable"):
            leaves.append(node.variable)
        names = [name for name in dir(node) if name.startswith("_saved_")]
        for value in [getattr(node, name) for name in names] + [getattr(node, "saved_tensors", ())]:
            for item in value if isinstance(value, (tuple, list)) else [value]:
                if isinstance(item, torch.Tensor):
                    storages[len(storages)] = item.untyped_storage().nbytes()
        waiting += [after for after, _ in node.next_functions]
    counts = {}
    for node in met:
        counts[node.name()] = counts.get(node.name(), 0) + 1
    return {"nodes": counts, "leaves": leaves, "saved_bytes": sum(storages.values())}


# %% mistake: counts_elements
# You count the elements of saved tensors. A slice keeps its whole storage alive, and an expanded
# tensor has more elements than memory: ask the storage for its size.
def graph_report(output):
    met, leaves, storages = set(), [], {}
    waiting = [output.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in met:
            continue
        met.add(node)
        if hasattr(node, "variable"):
            leaves.append(node.variable)
        names = [name for name in dir(node) if name.startswith("_saved_")]
        for value in [getattr(node, name) for name in names] + [getattr(node, "saved_tensors", ())]:
            for item in value if isinstance(value, (tuple, list)) else [value]:
                if isinstance(item, torch.Tensor):
                    storage = item.untyped_storage()
                    storages[storage.data_ptr()] = item.numel() * item.element_size()
        waiting += [after for after, _ in node.next_functions]
    counts = {}
    for node in met:
        counts[node.name()] = counts.get(node.name(), 0) + 1
    return {"nodes": counts, "leaves": leaves, "saved_bytes": sum(storages.values())}


# %% mistake: compares_tensor_pointers
# You tell saved tensors apart by their own `data_ptr()`, which is where their first element lies. Two
# views of one storage begin at different places; compare `untyped_storage().data_ptr()`.
def graph_report(output):
    met, leaves, storages = set(), [], {}
    waiting = [output.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in met:
            continue
        met.add(node)
        if hasattr(node, "variable"):
            leaves.append(node.variable)
        names = [name for name in dir(node) if name.startswith("_saved_")]
        for value in [getattr(node, name) for name in names] + [getattr(node, "saved_tensors", ())]:
            for item in value if isinstance(value, (tuple, list)) else [value]:
                if isinstance(item, torch.Tensor):
                    storage = item.untyped_storage()
                    storages[item.data_ptr()] = storage.nbytes()
        waiting += [after for after, _ in node.next_functions]
    counts = {}
    for node in met:
        counts[node.name()] = counts.get(node.name(), 0) + 1
    return {"nodes": counts, "leaves": leaves, "saved_bytes": sum(storages.values())}


# %% mistake: tensors_alone
# You skip attributes that hold a tuple. Indexing saves its index tensors that way, as one
# attribute.
def graph_report(output):
    met, leaves, storages = set(), [], {}
    waiting = [output.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in met:
            continue
        met.add(node)
        if hasattr(node, "variable"):
            leaves.append(node.variable)
        names = [name for name in dir(node) if name.startswith("_saved_")]
        own = getattr(node, "saved_tensors", ())
        for value in [getattr(node, name) for name in names] + [own]:
            for item in value if value is own else [value]:
                if isinstance(item, torch.Tensor):
                    storage = item.untyped_storage()
                    storages[storage.data_ptr()] = storage.nbytes()
        waiting += [after for after, _ in node.next_functions]
    counts = {}
    for node in met:
        counts[node.name()] = counts.get(node.name(), 0) + 1
    return {"nodes": counts, "leaves": leaves, "saved_bytes": sum(storages.values())}


# %% mistake: built_in_nodes_alone
# You look at `_saved_` attributes only. The node of a custom Function keeps what it saved in
# `saved_tensors`.
def graph_report(output):
    met, leaves, storages = set(), [], {}
    waiting = [output.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in met:
            continue
        met.add(node)
        if hasattr(node, "variable"):
            leaves.append(node.variable)
        names = [name for name in dir(node) if name.startswith("_saved_")]
        for value in [getattr(node, name) for name in names]:
            for item in value if isinstance(value, (tuple, list)) else [value]:
                if isinstance(item, torch.Tensor):
                    storage = item.untyped_storage()
                    storages[storage.data_ptr()] = storage.nbytes()
        waiting += [after for after, _ in node.next_functions]
    counts = {}
    for node in met:
        counts[node.name()] = counts.get(node.name(), 0) + 1
    return {"nodes": counts, "leaves": leaves, "saved_bytes": sum(storages.values())}


# %% mistake: guesses_two_names
# You look for `_saved_self` and `_saved_other` only. Each kind of node has names of its own, such as
# `_saved_result`, `_saved_mat2` or `_saved_indices`: list them with `dir`.
def graph_report(output):
    met, leaves, storages = set(), [], {}
    waiting = [output.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in met:
            continue
        met.add(node)
        if hasattr(node, "variable"):
            leaves.append(node.variable)
        names = [name for name in ("_saved_self", "_saved_other") if hasattr(node, name)]
        for value in [getattr(node, name) for name in names] + [getattr(node, "saved_tensors", ())]:
            for item in value if isinstance(value, (tuple, list)) else [value]:
                if isinstance(item, torch.Tensor):
                    storage = item.untyped_storage()
                    storages[storage.data_ptr()] = storage.nbytes()
        waiting += [after for after, _ in node.next_functions]
    counts = {}
    for node in met:
        counts[node.name()] = counts.get(node.name(), 0) + 1
    return {"nodes": counts, "leaves": leaves, "saved_bytes": sum(storages.values())}


# %% mistake: without_accumulate_grad
# You leave out the `AccumulateGrad` nodes. They are nodes too: the engine calls them last, to add to
# `.grad`.
def graph_report(output):
    met, leaves, storages = set(), [], {}
    waiting = [output.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in met:
            continue
        met.add(node)
        if hasattr(node, "variable"):
            if not any(node.variable is leaf for leaf in leaves):
                leaves.append(node.variable)
            met.discard(node)
        names = [name for name in dir(node) if name.startswith("_saved_")]
        for value in [getattr(node, name) for name in names] + [getattr(node, "saved_tensors", ())]:
            for item in value if isinstance(value, (tuple, list)) else [value]:
                if isinstance(item, torch.Tensor):
                    storage = item.untyped_storage()
                    storages[storage.data_ptr()] = storage.nbytes()
        waiting += [after for after, _ in node.next_functions]
    counts = {}
    for node in met:
        counts[node.name()] = counts.get(node.name(), 0) + 1
    return {"nodes": counts, "leaves": leaves, "saved_bytes": sum(storages.values())}


# %% mistake: type_names
# You name a node by its Python type. `node.name()` is another name for some: `torch::autograd::AccumulateGrad`.
def graph_report(output):
    met, leaves, storages = set(), [], {}
    names = {}
    waiting = [] if output.grad_fn is None else [output.grad_fn]
    while waiting:
        node = waiting.pop()
        if node in met:
            continue
        met.add(node)
        names[type(node).__name__] = names.get(type(node).__name__, 0) + 1
        if hasattr(node, "variable"):
            leaves.append(node.variable)
        saved = [getattr(node, name) for name in dir(node) if name.startswith("_saved_")]
        saved += [getattr(node, "saved_tensors", ())]
        for value in saved:
            for one in value if isinstance(value, tuple) else (value,):
                if isinstance(one, torch.Tensor):
                    storage = one.untyped_storage()
                    storages[storage.data_ptr()] = storage.nbytes()
        waiting += [after for after, _ in node.next_functions if after is not None]
    return {"nodes": names, "leaves": leaves, "saved_bytes": sum(storages.values())}


# %% mistake: met_by_name
# You remember the names of nodes that you have met. Many nodes have the same name: remember the nodes themselves.
def graph_report(output):
    met, leaves, storages = set(), [], {}
    names = {}
    waiting = [] if output.grad_fn is None else [output.grad_fn]
    while waiting:
        node = waiting.pop()
        if node.name() in met:
            continue
        met.add(node.name())
        names[node.name()] = names.get(node.name(), 0) + 1
        if hasattr(node, "variable"):
            leaves.append(node.variable)
        saved = [getattr(node, name) for name in dir(node) if name.startswith("_saved_")]
        saved += [getattr(node, "saved_tensors", ())]
        for value in saved:
            for one in value if isinstance(value, tuple) else (value,):
                if isinstance(one, torch.Tensor):
                    storage = one.untyped_storage()
                    storages[storage.data_ptr()] = storage.nbytes()
        waiting += [after for after, _ in node.next_functions if after is not None]
    return {"nodes": names, "leaves": leaves, "saved_bytes": sum(storages.values())}


# %% mistake: keeps_the_nodes
# Your nodes live on in a list outside of the function, and with them the graph and all that it saved.
# Keep names and numbers only.
ever_met = []


def graph_report(output):
    met, leaves, storages = set(), [], {}
    waiting = [output.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in met:
            continue
        met.add(node)
        ever_met.append(node)
        if hasattr(node, "variable"):
            leaves.append(node.variable)
        names = [name for name in dir(node) if name.startswith("_saved_")]
        for value in [getattr(node, name) for name in names] + [getattr(node, "saved_tensors", ())]:
            for item in value if isinstance(value, (tuple, list)) else [value]:
                if isinstance(item, torch.Tensor):
                    storage = item.untyped_storage()
                    storages[storage.data_ptr()] = storage.nbytes()
        waiting += [after for after, _ in node.next_functions]
    counts = {}
    for node in met:
        counts[node.name()] = counts.get(node.name(), 0) + 1
    return {"nodes": counts, "leaves": leaves, "saved_bytes": sum(storages.values())}


# %% mistake: runs_backward
# You run a backward pass to find the leaves. It adds to their `.grad`, and it frees what the graph had
# saved, so that nobody can run another one.
def graph_report(output):
    met, leaves, storages = set(), [], {}
    waiting = [output.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in met:
            continue
        met.add(node)
        if hasattr(node, "variable"):
            leaves.append(node.variable)
        names = [name for name in dir(node) if name.startswith("_saved_")]
        for value in [getattr(node, name) for name in names] + [getattr(node, "saved_tensors", ())]:
            for item in value if isinstance(value, (tuple, list)) else [value]:
                if isinstance(item, torch.Tensor):
                    storage = item.untyped_storage()
                    storages[storage.data_ptr()] = storage.nbytes()
        waiting += [after for after, _ in node.next_functions]
    if output.requires_grad:
        output.sum().backward()
    counts = {}
    for node in met:
        counts[node.name()] = counts.get(node.name(), 0) + 1
    return {"nodes": counts, "leaves": leaves, "saved_bytes": sum(storages.values())}


# %% alternate: two_passes
# First all nodes, breadth first; then what each of them has.
def graph_report(output):
    nodes = [] if output.grad_fn is None else [output.grad_fn]
    met = dict.fromkeys(nodes)
    for node in nodes:  # the list grows while it is read
        for edge in node.next_functions:
            if edge[0] is not None and edge[0] not in met:
                met[edge[0]] = None
                nodes.append(edge[0])

    def tensors(value):
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (tuple, list)):
            for item in value:
                yield from tensors(item)

    saved = [
        tensor
        for node in nodes
        for name in dir(node)
        if name.startswith("_saved") or name == "saved_tensors"
        for tensor in tensors(getattr(node, name))
    ]
    names = [node.name() for node in nodes]
    sizes = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in saved}
    return {
        "nodes": {name: names.count(name) for name in set(names)},
        "leaves": [node.variable for node in nodes if hasattr(node, "variable")],
        "saved_bytes": sum(sizes.values()),
    }


# %% alternate: storages_by_comparison
# No pointer is compared: storages are objects, and equal ones are the same.
import collections  # noqa: E402


def graph_report(output):
    report = {"nodes": collections.Counter(), "leaves": [], "saved_bytes": 0}
    waiting, met, pointers = collections.deque([output.grad_fn]), {None}, set()
    while waiting:
        node = waiting.popleft()
        if node not in met:
            met.add(node)
            waiting.extend(next(zip(*node.next_functions), ()))
            report["nodes"][node.name()] += 1
            if hasattr(node, "variable"):
                report["leaves"].append(node.variable)
            kept = [getattr(node, a) for a in dir(node) if "_saved_" in a and "raw" not in a]
            kept += getattr(node, "saved_tensors", ())
            flat = [t for one in kept for t in (one if type(one) is tuple else (one,))]
            for tensor in flat:
                if torch.is_tensor(tensor):
                    memory = tensor.untyped_storage()
                    if memory._cdata not in pointers:
                        pointers.add(memory._cdata)
                        report["saved_bytes"] += memory.size()
    return report
