# %% blocked: default_partition
# `default_partition` makes the two graphs that this exercise asks you to make.
from functorch.compile import default_partition  # noqa: E402


def partition(joint, joint_inputs, *, num_fwd_outputs, may_save):
    return default_partition(joint, joint_inputs, num_fwd_outputs=num_fwd_outputs)


# %% mistake: random_again
# Your backward runs a random operator again, and it draws other numbers than the forward did. The
# gradients then belong to another mask. Save what the backward needs of it, whatever the policy
# says.
def partition(joint, joint_inputs, *, num_fwd_outputs, may_save):
    nodes = list(joint.graph.nodes)
    placeholders = [node for node in nodes if node.op == "placeholder"]
    count = len(joint_inputs[0])
    primals, tangents = placeholders[:count], placeholders[count:]
    returned = joint.graph.output_node().args[0]
    outputs, gradients = returned[:num_fwd_outputs], returned[num_fwd_outputs:]

    def walk_up(starts, stops):
        met, waiting = set(), [one for one in starts if one is not None]
        while waiting:
            node = waiting.pop()
            if node not in met:
                met.add(node)
                if not stops(node):
                    waiting += node.all_input_nodes
        return met

    def is_random(node):
        if node.target is operator.getitem:
            return is_random(node.args[0])
        return torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())

    computed = walk_up(outputs, lambda node: False)
    for node in nodes:  # an item of what is computed costs nothing
        if node.target is operator.getitem and node.args[0] in computed:
            computed.add(node)

    def is_kept(node):
        if node in placeholders:
            return True
        if node not in computed or isinstance(node.meta["val"], (tuple, list)):
            return False
        return may_save(node)

    late = walk_up(gradients, is_kept)
    saved = [node for node in nodes if node in late and is_kept(node) and node not in tangents]
    early = walk_up([*outputs, *saved], lambda node: False)

    def module(inputs, body, results):
        graph, copies = fx.Graph(), {}
        for node in inputs:
            copies[node] = graph.placeholder(node.name)
            copies[node].meta = node.meta.copy()
        for node in nodes:
            if node in body and node not in copies:
                copies[node] = graph.node_copy(node, copies.__getitem__)
        graph.output(tuple(copies.get(node) for node in results))
        return fx.GraphModule(joint, graph)

    forward = module(primals, early, [*outputs, *saved])
    return forward, module([*saved, *tangents], late, gradients)


# %% mistake: items_forgotten
# You count as computed only what the forward outputs need. The mask of `native_dropout`, or the
# indices of `max`, are items that no output needs: the forward has them anyway. If they do not
# count, the backward runs the operator again.
def partition(joint, joint_inputs, *, num_fwd_outputs, may_save):
    nodes = list(joint.graph.nodes)
    placeholders = [node for node in nodes if node.op == "placeholder"]
    count = len(joint_inputs[0])
    primals, tangents = placeholders[:count], placeholders[count:]
    returned = joint.graph.output_node().args[0]
    outputs, gradients = returned[:num_fwd_outputs], returned[num_fwd_outputs:]

    def walk_up(starts, stops):
        met, waiting = set(), [one for one in starts if one is not None]
        while waiting:
            node = waiting.pop()
            if node not in met:
                met.add(node)
                if not stops(node):
                    waiting += node.all_input_nodes
        return met

    def is_random(node):
        if node.target is operator.getitem:
            return is_random(node.args[0])
        return torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())

    computed = walk_up(outputs, lambda node: False)
    for node in nodes:  # an item of what is computed costs nothing
        pass

    def is_kept(node):
        if node in placeholders:
            return True
        if node not in computed or isinstance(node.meta["val"], (tuple, list)):
            return False
        return is_random(node) or may_save(node)

    late = walk_up(gradients, is_kept)
    saved = [node for node in nodes if node in late and is_kept(node) and node not in tangents]
    early = walk_up([*outputs, *saved], lambda node: False)

    def module(inputs, body, results):
        graph, copies = fx.Graph(), {}
        for node in inputs:
            copies[node] = graph.placeholder(node.name)
            copies[node].meta = node.meta.copy()
        for node in nodes:
            if node in body and node not in copies:
                copies[node] = graph.node_copy(node, copies.__getitem__)
        graph.output(tuple(copies.get(node) for node in results))
        return fx.GraphModule(joint, graph)

    forward = module(primals, early, [*outputs, *saved])
    return forward, module([*saved, *tangents], late, gradients)


# %% mistake: saves_what_nobody_reads
# You save every value that may be saved. Save only those that the backward reads: that is where
# the walk up from the gradients stops.
def partition(joint, joint_inputs, *, num_fwd_outputs, may_save):
    nodes = list(joint.graph.nodes)
    placeholders = [node for node in nodes if node.op == "placeholder"]
    count = len(joint_inputs[0])
    primals, tangents = placeholders[:count], placeholders[count:]
    returned = joint.graph.output_node().args[0]
    outputs, gradients = returned[:num_fwd_outputs], returned[num_fwd_outputs:]

    def walk_up(starts, stops):
        met, waiting = set(), [one for one in starts if one is not None]
        while waiting:
            node = waiting.pop()
            if node not in met:
                met.add(node)
                if not stops(node):
                    waiting += node.all_input_nodes
        return met

    def is_random(node):
        if node.target is operator.getitem:
            return is_random(node.args[0])
        return torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())

    computed = walk_up(outputs, lambda node: False)
    for node in nodes:  # an item of what is computed costs nothing
        if node.target is operator.getitem and node.args[0] in computed:
            computed.add(node)

    def is_kept(node):
        if node in placeholders:
            return True
        if node not in computed or isinstance(node.meta["val"], (tuple, list)):
            return False
        return is_random(node) or may_save(node)

    late = walk_up(gradients, is_kept)
    saved = [node for node in nodes if is_kept(node) and node not in tangents]
    early = walk_up([*outputs, *saved], lambda node: False)

    def module(inputs, body, results):
        graph, copies = fx.Graph(), {}
        for node in inputs:
            copies[node] = graph.placeholder(node.name)
            copies[node].meta = node.meta.copy()
        for node in nodes:
            if node in body and node not in copies:
                copies[node] = graph.node_copy(node, copies.__getitem__)
        graph.output(tuple(copies.get(node) for node in results))
        return fx.GraphModule(joint, graph)

    forward = module(primals, early, [*outputs, *saved])
    return forward, module([*saved, *tangents], late, gradients)


# %% mistake: early_for_late
# You save values that only the backward needs, such as the cosine in the derivative of a sine. The
# policy is asked only about what the forward outputs need.
def partition(joint, joint_inputs, *, num_fwd_outputs, may_save):
    nodes = list(joint.graph.nodes)
    placeholders = [node for node in nodes if node.op == "placeholder"]
    count = len(joint_inputs[0])
    primals, tangents = placeholders[:count], placeholders[count:]
    returned = joint.graph.output_node().args[0]
    outputs, gradients = returned[:num_fwd_outputs], returned[num_fwd_outputs:]

    def walk_up(starts, stops):
        met, waiting = set(), [one for one in starts if one is not None]
        while waiting:
            node = waiting.pop()
            if node not in met:
                met.add(node)
                if not stops(node):
                    waiting += node.all_input_nodes
        return met

    def is_random(node):
        if node.target is operator.getitem:
            return is_random(node.args[0])
        return torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())

    computed = walk_up(outputs, lambda node: False)
    for node in nodes:  # an item of what is computed costs nothing
        if node.target is operator.getitem and node.args[0] in computed:
            computed.add(node)

    def tangent_in(node):
        return node in tangents or any(map(tangent_in, node.all_input_nodes))

    def is_kept(node):
        if node in placeholders:
            return True
        if tangent_in(node) or isinstance(node.meta["val"], (tuple, list)):
            return False
        return is_random(node) or may_save(node)

    late = walk_up(gradients, is_kept)
    saved = [node for node in nodes if node in late and is_kept(node) and node not in tangents]
    early = walk_up([*outputs, *saved], lambda node: False)

    def module(inputs, body, results):
        graph, copies = fx.Graph(), {}
        for node in inputs:
            copies[node] = graph.placeholder(node.name)
            copies[node].meta = node.meta.copy()
        for node in nodes:
            if node in body and node not in copies:
                copies[node] = graph.node_copy(node, copies.__getitem__)
        graph.output(tuple(copies.get(node) for node in results))
        return fx.GraphModule(joint, graph)

    forward = module(primals, early, [*outputs, *saved])
    return forward, module([*saved, *tangents], late, gradients)


# %% mistake: saved_for_each_reader
# You save a value once for each operator that reads it. The copies are the same tensor, but the
# backward gets it twice. Keep each value once.
def partition(joint, joint_inputs, *, num_fwd_outputs, may_save):
    nodes = list(joint.graph.nodes)
    placeholders = [node for node in nodes if node.op == "placeholder"]
    count = len(joint_inputs[0])
    primals, tangents = placeholders[:count], placeholders[count:]
    returned = joint.graph.output_node().args[0]
    outputs, gradients = returned[:num_fwd_outputs], returned[num_fwd_outputs:]

    def walk_up(starts, stops):
        met, waiting = set(), [one for one in starts if one is not None]
        while waiting:
            node = waiting.pop()
            if node not in met:
                met.add(node)
                if not stops(node):
                    waiting += node.all_input_nodes
        return met

    def is_random(node):
        if node.target is operator.getitem:
            return is_random(node.args[0])
        return torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())

    computed = walk_up(outputs, lambda node: False)
    for node in nodes:  # an item of what is computed costs nothing
        if node.target is operator.getitem and node.args[0] in computed:
            computed.add(node)

    def is_kept(node):
        if node in placeholders:
            return True
        if node not in computed or isinstance(node.meta["val"], (tuple, list)):
            return False
        return is_random(node) or may_save(node)

    late = walk_up(gradients, is_kept)
    saved = [
        one
        for node in nodes
        if node in late and not is_kept(node)
        for one in node.all_input_nodes
        if is_kept(one) and one not in tangents
    ]
    early = walk_up([*outputs, *saved], lambda node: False)

    def module(inputs, body, results):
        graph, copies = fx.Graph(), {}
        for node in inputs:
            new = graph.placeholder(node.name)
            copies.setdefault(node, new)
            copies[node].meta = node.meta.copy()
        for node in nodes:
            if node in body and node not in copies:
                copies[node] = graph.node_copy(node, copies.__getitem__)
        graph.output(tuple(copies.get(node) for node in results))
        return fx.GraphModule(joint, graph)

    forward = module(primals, early, [*outputs, *saved])
    return forward, module([*saved, *tangents], late, gradients)


# %% mistake: no_none
# You leave out the gradients that are `None`. Autograd takes gradients by their place: the second
# one then goes to the wrong input.
def partition(joint, joint_inputs, *, num_fwd_outputs, may_save):
    nodes = list(joint.graph.nodes)
    placeholders = [node for node in nodes if node.op == "placeholder"]
    count = len(joint_inputs[0])
    primals, tangents = placeholders[:count], placeholders[count:]
    returned = joint.graph.output_node().args[0]
    outputs, gradients = returned[:num_fwd_outputs], returned[num_fwd_outputs:]

    def walk_up(starts, stops):
        met, waiting = set(), [one for one in starts if one is not None]
        while waiting:
            node = waiting.pop()
            if node not in met:
                met.add(node)
                if not stops(node):
                    waiting += node.all_input_nodes
        return met

    def is_random(node):
        if node.target is operator.getitem:
            return is_random(node.args[0])
        return torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())

    computed = walk_up(outputs, lambda node: False)
    for node in nodes:  # an item of what is computed costs nothing
        if node.target is operator.getitem and node.args[0] in computed:
            computed.add(node)

    def is_kept(node):
        if node in placeholders:
            return True
        if node not in computed or isinstance(node.meta["val"], (tuple, list)):
            return False
        return is_random(node) or may_save(node)

    late = walk_up(gradients, is_kept)
    saved = [node for node in nodes if node in late and is_kept(node) and node not in tangents]
    early = walk_up([*outputs, *saved], lambda node: False)

    def module(inputs, body, results):
        graph, copies = fx.Graph(), {}
        for node in inputs:
            copies[node] = graph.placeholder(node.name)
            copies[node].meta = node.meta.copy()
        for node in nodes:
            if node in body and node not in copies:
                copies[node] = graph.node_copy(node, copies.__getitem__)
        graph.output(tuple(copies[node] for node in results if node is not None))
        return fx.GraphModule(joint, graph)

    forward = module(primals, early, [*outputs, *saved])
    return forward, module([*saved, *tangents], late, gradients)


# %% mistake: forgets_outputs_as_saved
# You do not save what is an output already. The user may drop the output, and the backward gets
# its inputs from the saved values alone.
def partition(joint, joint_inputs, *, num_fwd_outputs, may_save):
    nodes = list(joint.graph.nodes)
    placeholders = [node for node in nodes if node.op == "placeholder"]
    count = len(joint_inputs[0])
    primals, tangents = placeholders[:count], placeholders[count:]
    returned = joint.graph.output_node().args[0]
    outputs, gradients = returned[:num_fwd_outputs], returned[num_fwd_outputs:]

    def walk_up(starts, stops):
        met, waiting = set(), [one for one in starts if one is not None]
        while waiting:
            node = waiting.pop()
            if node not in met:
                met.add(node)
                if not stops(node):
                    waiting += node.all_input_nodes
        return met

    def is_random(node):
        if node.target is operator.getitem:
            return is_random(node.args[0])
        return torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())

    computed = walk_up(outputs, lambda node: False)
    for node in nodes:  # an item of what is computed costs nothing
        if node.target is operator.getitem and node.args[0] in computed:
            computed.add(node)

    def is_kept(node):
        if node in placeholders:
            return True
        if node not in computed or isinstance(node.meta["val"], (tuple, list)):
            return False
        return is_random(node) or may_save(node)

    late = walk_up(gradients, is_kept)
    saved = [node for node in nodes if node in late and is_kept(node) and node not in tangents]
    saved = [node for node in saved if node not in outputs]
    early = walk_up([*outputs, *saved], lambda node: False)

    def module(inputs, body, results):
        graph, copies = fx.Graph(), {}
        for node in inputs:
            copies[node] = graph.placeholder(node.name)
            copies[node].meta = node.meta.copy()
        for node in nodes:
            if node in body and node not in copies:
                copies[node] = graph.node_copy(node, copies.__getitem__)
        graph.output(tuple(copies.get(node) for node in results))
        return fx.GraphModule(joint, graph)

    forward = module(primals, early, [*outputs, *saved])
    return forward, module([*saved, *tangents], late, gradients)


# %% mistake: all_primals
# You save every primal. Save those that the backward reads; an input of a sum, for instance, is
# not needed again.
def partition(joint, joint_inputs, *, num_fwd_outputs, may_save):
    nodes = list(joint.graph.nodes)
    placeholders = [node for node in nodes if node.op == "placeholder"]
    count = len(joint_inputs[0])
    primals, tangents = placeholders[:count], placeholders[count:]
    returned = joint.graph.output_node().args[0]
    outputs, gradients = returned[:num_fwd_outputs], returned[num_fwd_outputs:]

    def walk_up(starts, stops):
        met, waiting = set(), [one for one in starts if one is not None]
        while waiting:
            node = waiting.pop()
            if node not in met:
                met.add(node)
                if not stops(node):
                    waiting += node.all_input_nodes
        return met

    def is_random(node):
        if node.target is operator.getitem:
            return is_random(node.args[0])
        return torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())

    computed = walk_up(outputs, lambda node: False)
    for node in nodes:  # an item of what is computed costs nothing
        if node.target is operator.getitem and node.args[0] in computed:
            computed.add(node)

    def is_kept(node):
        if node in placeholders:
            return True
        if node not in computed or isinstance(node.meta["val"], (tuple, list)):
            return False
        return is_random(node) or may_save(node)

    late = walk_up(gradients, is_kept)
    saved = [node for node in nodes if node in late and is_kept(node) and node not in tangents]
    saved = [*primals, *[node for node in saved if node not in primals]]
    early = walk_up([*outputs, *saved], lambda node: False)

    def module(inputs, body, results):
        graph, copies = fx.Graph(), {}
        for node in inputs:
            copies[node] = graph.placeholder(node.name)
            copies[node].meta = node.meta.copy()
        for node in nodes:
            if node in body and node not in copies:
                copies[node] = graph.node_copy(node, copies.__getitem__)
        graph.output(tuple(copies.get(node) for node in results))
        return fx.GraphModule(joint, graph)

    forward = module(primals, early, [*outputs, *saved])
    return forward, module([*saved, *tangents], late, gradients)


# %% mistake: tangents_first
# Your backward takes the tangents before the saved values. The values come first, as the forward returned
# them; whoever calls your graphs goes by places, not by names.
def partition(
    joint: fx.GraphModule,
    joint_inputs: tuple[Sequence, Sequence],
    *,
    num_fwd_outputs: int,
    may_save: Callable[[fx.Node], bool],
) -> tuple[fx.GraphModule, fx.GraphModule]:
    nodes = list(joint.graph.nodes)
    placeholders = [node for node in nodes if node.op == "placeholder"]
    count = len(joint_inputs[0])
    primals, tangents = placeholders[:count], placeholders[count:]
    returned = joint.graph.output_node().args[0]
    outputs, gradients = returned[:num_fwd_outputs], returned[num_fwd_outputs:]

    def walk_up(starts, stops):
        met, waiting = set(), [one for one in starts if one is not None]
        while waiting:
            node = waiting.pop()
            if node not in met:
                met.add(node)
                if not stops(node):
                    waiting += node.all_input_nodes
        return met

    def is_random(node):
        if node.target is operator.getitem:
            return is_random(node.args[0])
        return torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())

    computed = walk_up(outputs, lambda node: False)
    for node in nodes:  # an item of what is computed costs nothing
        if node.target is operator.getitem and node.args[0] in computed:
            computed.add(node)

    def is_kept(node):
        if node in placeholders:
            return True
        if node not in computed or isinstance(node.meta["val"], (tuple, list)):
            return False
        return is_random(node) or may_save(node)

    late = walk_up(gradients, is_kept)
    saved = [node for node in nodes if node in late and is_kept(node) and node not in tangents]
    early = walk_up([*outputs, *saved], lambda node: False)

    def module(inputs, body, results):
        graph, copies = fx.Graph(), {}
        for node in inputs:
            copies[node] = graph.placeholder(node.name)
            copies[node].meta = node.meta.copy()
        for node in nodes:
            if node in body and node not in copies:
                copies[node] = graph.node_copy(node, copies.__getitem__)
        graph.output(tuple(copies.get(node) for node in results))
        return fx.GraphModule(joint, graph)

    forward = module(primals, early, [*outputs, *saved])
    return forward, module([*tangents, *saved], late, gradients)


# %% mistake: saves_a_tuple
# You save what an operator returns even if it is a tuple. Only tensors can be saved: save its items, or run
# the operator again.
def partition(
    joint: fx.GraphModule,
    joint_inputs: tuple[Sequence, Sequence],
    *,
    num_fwd_outputs: int,
    may_save: Callable[[fx.Node], bool],
) -> tuple[fx.GraphModule, fx.GraphModule]:
    nodes = list(joint.graph.nodes)
    placeholders = [node for node in nodes if node.op == "placeholder"]
    count = len(joint_inputs[0])
    primals, tangents = placeholders[:count], placeholders[count:]
    returned = joint.graph.output_node().args[0]
    outputs, gradients = returned[:num_fwd_outputs], returned[num_fwd_outputs:]

    def walk_up(starts, stops):
        met, waiting = set(), [one for one in starts if one is not None]
        while waiting:
            node = waiting.pop()
            if node not in met:
                met.add(node)
                if not stops(node):
                    waiting += node.all_input_nodes
        return met

    def is_random(node):
        if node.target is operator.getitem:
            return is_random(node.args[0])
        return torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())

    computed = walk_up(outputs, lambda node: False)
    for node in nodes:  # an item of what is computed costs nothing
        if node.target is operator.getitem and node.args[0] in computed:
            computed.add(node)

    def is_kept(node):
        if node in placeholders:
            return True
        if node not in computed:
            return False
        return is_random(node) or may_save(node)

    late = walk_up(gradients, is_kept)
    saved = [node for node in nodes if node in late and is_kept(node) and node not in tangents]
    early = walk_up([*outputs, *saved], lambda node: False)

    def module(inputs, body, results):
        graph, copies = fx.Graph(), {}
        for node in inputs:
            copies[node] = graph.placeholder(node.name)
            copies[node].meta = node.meta.copy()
        for node in nodes:
            if node in body and node not in copies:
                copies[node] = graph.node_copy(node, copies.__getitem__)
        graph.output(tuple(copies.get(node) for node in results))
        return fx.GraphModule(joint, graph)

    forward = module(primals, early, [*outputs, *saved])
    return forward, module([*saved, *tangents], late, gradients)


# %% alternate: on_demand
# Each graph is made from its results: a value is copied when somebody asks for it.
import operator  # noqa: E402

import torch  # noqa: E402
from torch import fx  # noqa: E402


def partition(joint, joint_inputs, *, num_fwd_outputs, may_save):
    places = [node for node in joint.graph.nodes if node.op == "placeholder"]
    primals = places[: len(joint_inputs[0])]
    tangents = places[len(primals) :]
    returned = list(joint.graph.output_node().args[0])

    def ask(graph, copies, node, stop):
        if node not in copies:
            if stop(node):
                copies[node] = graph.placeholder(node.name)
                copies[node].meta = dict(node.meta)
            else:
                for one in node.all_input_nodes:
                    ask(graph, copies, one, stop)
                copies[node] = graph.node_copy(node, lambda one: copies[one])
        return copies[node]

    def ready(graph, inputs):
        return {node: ask(graph, {}, node, lambda node: True) for node in inputs}

    first = fx.Graph()
    made = ready(first, primals)
    results = [ask(first, made, node, lambda node: False) for node in returned[:num_fwd_outputs]]
    needed = set(made)

    def kept(node):
        item = node.target is operator.getitem
        source = node.args[0] if item else node
        if node.op == "placeholder":
            return True
        if source not in needed or (node.meta["val"].__class__ in (tuple, list)):
            return False
        return torch.Tag.nondeterministic_seeded in source.target.tags or bool(may_save(node))

    saved, met, waiting = [], set(), [node for node in returned[num_fwd_outputs:] if node]
    for node in waiting:
        if node in met:
            continue
        met.add(node)
        if not kept(node):
            waiting.extend(node.all_input_nodes)
        elif node not in tangents:
            saved.append(node)
    results += [ask(first, made, node, lambda node: False) for node in saved]
    first.output(tuple(results))

    second = fx.Graph()
    made = ready(second, [*saved, *tangents])
    gradients = [
        None if node is None else ask(second, made, node, lambda node: False)
        for node in returned[num_fwd_outputs:]
    ]
    second.output(tuple(gradients))
    return fx.GraphModule(joint, first), fx.GraphModule(joint, second)
