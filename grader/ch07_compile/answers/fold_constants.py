# %% blocked: split_const_subgraphs
# `split_const_subgraphs` finds the constants and folds them for you. Find them yourself.
def fold_constants(gm):
    from torch.fx.experimental.const_fold import split_const_subgraphs

    folded = split_const_subgraphs(gm)
    folded.run_folding()
    gm.graph = folded.graph


# %% mistake: folds_draws
# You folded whatever has constant inputs. `rand` has none at all, and still gives another result at
# each call: constant inputs are not enough, the operator must be deterministic too.
def fold_constants(gm):
    written = {node.args[0].target for node in gm.graph.nodes if node.target is aten.copy_.default}
    known = {}
    for node in gm.graph.nodes:
        if node.op == "get_attr":
            tensor = getattr(gm, node.target)
            if node.target not in written and not isinstance(tensor, nn.Parameter):
                known[node] = tensor
        elif node.op == "call_function" and may_fold(node, known):
            inputs = fx.map_arg(node.args, lambda one: known[one])
            known[node] = node.target(*inputs, **fx.map_arg(node.kwargs, lambda one: known[one]))
    number = 0
    for node in known:
        if node.op == "get_attr" or all(user in known for user in node.users):
            continue
        while hasattr(gm, f"folded_{number}"):
            number += 1
        setattr(gm, f"folded_{number}", known[node])
        with gm.graph.inserting_before(node):
            node.replace_all_uses_with(gm.graph.get_attr(f"folded_{number}"))
    for node in reversed(list(known)):
        if not node.users:
            gm.graph.erase_node(node)
    gm.recompile()


def may_fold(node, known):
    if not all(one in known for one in node.all_input_nodes):
        return False
    if node.target is operator.getitem:
        return True
    return not node.target._schema.is_mutable


# %% mistake: folds_parameters
# You folded what is computed from parameters. They change at each training step, and what you stored
# does not follow.
def fold_constants(gm):
    written = {node.args[0].target for node in gm.graph.nodes if node.target is aten.copy_.default}
    known = {}
    for node in gm.graph.nodes:
        if node.op == "get_attr":
            if node.target not in written:
                known[node] = getattr(gm, node.target)
        elif node.op == "call_function" and may_fold(node, known):
            inputs = fx.map_arg(node.args, lambda one: known[one])
            known[node] = node.target(*inputs, **fx.map_arg(node.kwargs, lambda one: known[one]))
    number = 0
    for node in known:
        if node.op == "get_attr" or all(user in known for user in node.users):
            continue
        while hasattr(gm, f"folded_{number}"):
            number += 1
        setattr(gm, f"folded_{number}", known[node])
        with gm.graph.inserting_before(node):
            node.replace_all_uses_with(gm.graph.get_attr(f"folded_{number}"))
    for node in reversed(list(known)):
        if not node.users:
            gm.graph.erase_node(node)
    gm.recompile()


def may_fold(node, known):
    if not all(one in known for one in node.all_input_nodes):
        return False
    if node.target is operator.getitem:
        return True
    drawn = torch.Tag.nondeterministic_seeded in node.target.tags
    return not drawn and not node.target._schema.is_mutable


# %% mistake: folds_running_statistics
# You took every buffer for a constant. This graph writes to one with `copy_`, so that it has another
# value at the next call.
def fold_constants(gm):
    known = {}
    for node in gm.graph.nodes:
        if node.op == "get_attr":
            tensor = getattr(gm, node.target)
            if not isinstance(tensor, nn.Parameter):
                known[node] = tensor
        elif node.op == "call_function" and may_fold(node, known):
            inputs = fx.map_arg(node.args, lambda one: known[one])
            known[node] = node.target(*inputs, **fx.map_arg(node.kwargs, lambda one: known[one]))
    number = 0
    for node in known:
        if node.op == "get_attr" or all(user in known for user in node.users):
            continue
        while hasattr(gm, f"folded_{number}"):
            number += 1
        setattr(gm, f"folded_{number}", known[node])
        with gm.graph.inserting_before(node):
            node.replace_all_uses_with(gm.graph.get_attr(f"folded_{number}"))
    for node in reversed(list(known)):
        if not node.users:
            gm.graph.erase_node(node)
    gm.recompile()


def may_fold(node, known):
    if not all(one in known for one in node.all_input_nodes):
        return False
    if node.target is operator.getitem:
        return True
    drawn = torch.Tag.nondeterministic_seeded in node.target.tags
    return not drawn and not node.target._schema.is_mutable


# %% mistake: needs_a_tensor
# You folded calls only where they take a constant tensor. `full` and `arange` take none, and give the
# same at each call.
def fold_constants(gm):
    written = {node.args[0].target for node in gm.graph.nodes if node.target is aten.copy_.default}
    known = {}
    for node in gm.graph.nodes:
        if node.op == "get_attr":
            tensor = getattr(gm, node.target)
            if node.target not in written and not isinstance(tensor, nn.Parameter):
                known[node] = tensor
        elif node.op == "call_function" and may_fold(node, known):
            inputs = fx.map_arg(node.args, lambda one: known[one])
            known[node] = node.target(*inputs, **fx.map_arg(node.kwargs, lambda one: known[one]))
    number = 0
    for node in known:
        if node.op == "get_attr" or all(user in known for user in node.users):
            continue
        while hasattr(gm, f"folded_{number}"):
            number += 1
        setattr(gm, f"folded_{number}", known[node])
        with gm.graph.inserting_before(node):
            node.replace_all_uses_with(gm.graph.get_attr(f"folded_{number}"))
    for node in reversed(list(known)):
        if not node.users:
            gm.graph.erase_node(node)
    gm.recompile()


def may_fold(node, known):
    if not node.all_input_nodes or not all(one in known for one in node.all_input_nodes):
        return False
    if node.target is operator.getitem:
        return True
    drawn = torch.Tag.nondeterministic_seeded in node.target.tags
    return not drawn and not node.target._schema.is_mutable


# %% mistake: stores_every_step
# You stored each constant on the way. Only those that a call at run time takes are needed; the others
# keep memory for nothing.
def fold_constants(gm):
    written = {node.args[0].target for node in gm.graph.nodes if node.target is aten.copy_.default}
    known = {}
    for node in gm.graph.nodes:
        if node.op == "get_attr":
            tensor = getattr(gm, node.target)
            if node.target not in written and not isinstance(tensor, nn.Parameter):
                known[node] = tensor
        elif node.op == "call_function" and may_fold(node, known):
            inputs = fx.map_arg(node.args, lambda one: known[one])
            known[node] = node.target(*inputs, **fx.map_arg(node.kwargs, lambda one: known[one]))
    number = 0
    for node in known:
        if node.op == "get_attr":
            continue
        while hasattr(gm, f"folded_{number}"):
            number += 1
        setattr(gm, f"folded_{number}", known[node])
        with gm.graph.inserting_before(node):
            node.replace_all_uses_with(gm.graph.get_attr(f"folded_{number}"))
    for node in reversed(list(known)):
        if not node.users:
            gm.graph.erase_node(node)
    gm.recompile()


def may_fold(node, known):
    if not all(one in known for one in node.all_input_nodes):
        return False
    if node.target is operator.getitem:
        return True
    drawn = torch.Tag.nondeterministic_seeded in node.target.tags
    return not drawn and not node.target._schema.is_mutable


# %% mistake: stores_tuples
# You stored the tuple of a call with several results and left `getitem` to be run. `getitem` of a
# constant is a constant, too.
def fold_constants(gm):
    written = {node.args[0].target for node in gm.graph.nodes if node.target is aten.copy_.default}
    known = {}
    for node in gm.graph.nodes:
        if node.op == "get_attr":
            tensor = getattr(gm, node.target)
            if node.target not in written and not isinstance(tensor, nn.Parameter):
                known[node] = tensor
        elif node.op == "call_function" and may_fold(node, known):
            inputs = fx.map_arg(node.args, lambda one: known[one])
            known[node] = node.target(*inputs, **fx.map_arg(node.kwargs, lambda one: known[one]))
    number = 0
    for node in known:
        if node.op == "get_attr" or all(user in known for user in node.users):
            continue
        while hasattr(gm, f"folded_{number}"):
            number += 1
        setattr(gm, f"folded_{number}", known[node])
        with gm.graph.inserting_before(node):
            node.replace_all_uses_with(gm.graph.get_attr(f"folded_{number}"))
    for node in reversed(list(known)):
        if not node.users:
            gm.graph.erase_node(node)
    gm.recompile()


def may_fold(node, known):
    if not all(one in known for one in node.all_input_nodes):
        return False
    if node.target is operator.getitem:
        return False
    drawn = torch.Tag.nondeterministic_seeded in node.target.tags
    return not drawn and not node.target._schema.is_mutable


# %% mistake: takes_names
# You gave the new tensors names without looking whether the module has them already, and wrote over
# one of its own.
def fold_constants(gm):
    written = {node.args[0].target for node in gm.graph.nodes if node.target is aten.copy_.default}
    known = {}
    for node in gm.graph.nodes:
        if node.op == "get_attr":
            tensor = getattr(gm, node.target)
            if node.target not in written and not isinstance(tensor, nn.Parameter):
                known[node] = tensor
        elif node.op == "call_function" and may_fold(node, known):
            inputs = fx.map_arg(node.args, lambda one: known[one])
            known[node] = node.target(*inputs, **fx.map_arg(node.kwargs, lambda one: known[one]))
    number = 0
    for node in known:
        if node.op == "get_attr" or all(user in known for user in node.users):
            continue
        setattr(gm, f"folded_{number}", known[node])
        with gm.graph.inserting_before(node):
            node.replace_all_uses_with(gm.graph.get_attr(f"folded_{number}"))
        number += 1
    for node in reversed(list(known)):
        if not node.users:
            gm.graph.erase_node(node)
    gm.recompile()


def may_fold(node, known):
    if not all(one in known for one in node.all_input_nodes):
        return False
    if node.target is operator.getitem:
        return True
    drawn = torch.Tag.nondeterministic_seeded in node.target.tags
    return not drawn and not node.target._schema.is_mutable


# %% mistake: reads_for_nothing
# You left the constants' sources in the graph. They are read at each call, and nobody takes them.
def fold_constants(gm):
    written = {node.args[0].target for node in gm.graph.nodes if node.target is aten.copy_.default}
    known = {}
    for node in gm.graph.nodes:
        if node.op == "get_attr":
            tensor = getattr(gm, node.target)
            if node.target not in written and not isinstance(tensor, nn.Parameter):
                known[node] = tensor
        elif node.op == "call_function" and may_fold(node, known):
            inputs = fx.map_arg(node.args, lambda one: known[one])
            known[node] = node.target(*inputs, **fx.map_arg(node.kwargs, lambda one: known[one]))
    number = 0
    for node in known:
        if node.op == "get_attr" or all(user in known for user in node.users):
            continue
        while hasattr(gm, f"folded_{number}"):
            number += 1
        setattr(gm, f"folded_{number}", known[node])
        with gm.graph.inserting_before(node):
            node.replace_all_uses_with(gm.graph.get_attr(f"folded_{number}"))
    for node in reversed(list(known)):
        if not node.users and node.op != "get_attr":
            gm.graph.erase_node(node)
    gm.recompile()


def may_fold(node, known):
    if not all(one in known for one in node.all_input_nodes):
        return False
    if node.target is operator.getitem:
        return True
    drawn = torch.Tag.nondeterministic_seeded in node.target.tags
    return not drawn and not node.target._schema.is_mutable


# %% alternate: new_graph
# Two sides of one walk: what is known is computed, what is not is copied to a new graph.
def fold_constants(gm):
    changing = set()
    for node in gm.graph.nodes:
        if node.op == "call_function" and node.target is aten.copy_.default:
            changing.add(node.args[0].target)
    changing |= {name for name, _ in gm.named_parameters()}
    fresh, copies, known = fx.Graph(gm), {}, {}

    def copied(node):
        if node not in copies:
            value = known[node]
            name = node.target if node.op == "get_attr" else f"constant_of_{id(node)}"
            if node.op != "get_attr":
                gm.register_buffer(name, value)
            copies[node] = fresh.get_attr(name)
        return copies[node]

    for node in gm.graph.nodes:
        if node.op == "get_attr" and node.target not in changing:
            known[node] = getattr(gm, node.target).detach()
        elif (
            node.op == "call_function"
            and set(node.all_input_nodes) <= known.keys()
            and not drawn_or_written(node.target)
        ):
            known[node] = node.target(
                *fx.map_arg(node.args, known.__getitem__),
                **fx.map_arg(node.kwargs, known.__getitem__),
            )
        elif node.op != "get_attr" or node.users:
            copies[node] = fresh.node_copy(node, copied)
    gm.graph = fresh


def drawn_or_written(op):
    if op is operator.getitem:
        return False
    return torch.Tag.nondeterministic_seeded in op.tags or "!" in str(op._schema)


# %% alternate: one_at_a_time
# A call whose inputs are stored tensors becomes a stored tensor, until nothing changes.
def fold_constants(gm):
    graph, ours = gm.graph, []
    written = [n.args[0].target for n in graph.nodes if n.target is aten.copy_.default]

    def is_stored(node):
        return (
            node.op == "get_attr"
            and node.target not in written
            and not isinstance(getattr(gm, node.target), nn.Parameter)
        )

    for node in list(graph.nodes):
        if node.op != "call_function" or not all(map(is_stored, node.all_input_nodes)):
            continue
        if node.target is not operator.getitem and (
            node.target._schema.is_mutable or torch.Tag.nondeterministic_seeded in node.target.tags
        ):
            continue
        stored = {one: getattr(gm, one.target) for one in node.all_input_nodes}
        value = node.target(
            *fx.map_arg(node.args, stored.get), **fx.map_arg(node.kwargs, stored.get)
        )
        ours.append("_" * 9 + str(len(ours)))
        setattr(gm, ours[-1], value)
        with graph.inserting_after(node):
            new = graph.create_node("get_attr", ours[-1])
        node.replace_all_uses_with(new)
        graph.erase_node(node)
    for node in reversed(graph.nodes):
        if node.op == "get_attr" and not node.users:
            graph.erase_node(node)
    used = {node.target for node in graph.nodes if node.op == "get_attr"}
    for name in ours:
        if name not in used:
            delattr(gm, name)
    gm.recompile()
