# %% blocked: torch_min_cut
# `min_cut_rematerialization_partition` finds the cut that this exercise asks you to find.
from functorch.compile import min_cut_rematerialization_partition  # noqa: E402


def min_cut(joint, joint_inputs, *, num_fwd_outputs, heavy):
    forward, _ = min_cut_rematerialization_partition(
        joint, joint_inputs, num_fwd_outputs=num_fwd_outputs
    )
    names = {node.name for node in forward.graph.output_node().args[0][num_fwd_outputs:]}
    return [node for node in joint.graph.nodes if node.name in names]


# %% mistake: what_the_backward_reads
# You save whatever the nodes that depend on a tangent read. That recomputes nothing, and it is
# what the default partitioner does. Often something further up is smaller, or one value gives
# several.
import networkx  # noqa: E402
import torch  # noqa: E402


def min_cut(joint, joint_inputs, *, num_fwd_outputs, heavy):
    nodes = [node for node in joint.graph.nodes if node.op != "output"]
    placeholders = [node for node in nodes if node.op == "placeholder"]
    returned = joint.graph.output_node().args[0]
    count = len(joint_inputs[0])

    late = set(placeholders[count:])
    for node in nodes:  # inputs come first, so one pass is enough
        if late.intersection(node.all_input_nodes):
            late.add(node)
    needed, waiting = set(), list(returned[:num_fwd_outputs])
    while waiting:
        node = waiting.pop()
        if node not in needed:
            needed.add(node)
            waiting += node.all_input_nodes

    def cannot_repeat(node):
        if node.op == "placeholder":
            return True
        is_random = torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())
        return node in needed and (node.target in heavy or is_random)

    pipes = networkx.DiGraph()
    pipes.add_nodes_from(["source", "sink"])
    early = [node for node in nodes if node not in late]
    for node in early:
        value = node.meta["val"]
        width = value.numel() * value.element_size()
        pipes.add_edge(("in", node), ("out", node), capacity=width)
        if cannot_repeat(node):
            pipes.add_edge("source", ("in", node))
        for user in node.users:
            if user in late:
                pipes.add_edge(("out", node), "sink")
            elif user.op != "output":
                pipes.add_edge(("out", node), ("in", user))
        if node in returned[num_fwd_outputs:]:
            pipes.add_edge(("out", node), "sink")
    _, (upper, lower) = networkx.minimum_cut(pipes, "source", "sink")
    return [node for node in early if pipes.has_edge(("out", node), "sink")]


# %% mistake: primals_alone
# You save primals and compute all else again. Heavy and random operators must not run again, and
# primals may be larger than what is made of them.
def min_cut(joint, joint_inputs, *, num_fwd_outputs, heavy):
    nodes = [node for node in joint.graph.nodes if node.op != "output"]
    placeholders = [node for node in nodes if node.op == "placeholder"]
    returned = joint.graph.output_node().args[0]
    count = len(joint_inputs[0])

    late = set(placeholders[count:])
    for node in nodes:  # inputs come first, so one pass is enough
        if late.intersection(node.all_input_nodes):
            late.add(node)
    needed, waiting = set(), list(returned[:num_fwd_outputs])
    while waiting:
        node = waiting.pop()
        if node not in needed:
            needed.add(node)
            waiting += node.all_input_nodes

    def cannot_repeat(node):
        if node.op == "placeholder":
            return True
        is_random = torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())
        return node in needed and (node.target in heavy or is_random)

    pipes = networkx.DiGraph()
    pipes.add_nodes_from(["source", "sink"])
    early = [node for node in nodes if node not in late]
    for node in early:
        value = node.meta["val"]
        width = value.numel() * value.element_size()
        pipes.add_edge(("in", node), ("out", node), capacity=width)
        if cannot_repeat(node):
            pipes.add_edge("source", ("in", node))
        for user in node.users:
            if user in late:
                pipes.add_edge(("out", node), "sink")
            elif user.op != "output":
                pipes.add_edge(("out", node), ("in", user))
        if node in returned[num_fwd_outputs:]:
            pipes.add_edge(("out", node), "sink")
    _, (upper, lower) = networkx.minimum_cut(pipes, "source", "sink")
    return placeholders[:count]


# %% mistake: counts_tensors
# You look for the fewest tensors. Give each pipe the width of its bytes.
def min_cut(joint, joint_inputs, *, num_fwd_outputs, heavy):
    nodes = [node for node in joint.graph.nodes if node.op != "output"]
    placeholders = [node for node in nodes if node.op == "placeholder"]
    returned = joint.graph.output_node().args[0]
    count = len(joint_inputs[0])

    late = set(placeholders[count:])
    for node in nodes:  # inputs come first, so one pass is enough
        if late.intersection(node.all_input_nodes):
            late.add(node)
    needed, waiting = set(), list(returned[:num_fwd_outputs])
    while waiting:
        node = waiting.pop()
        if node not in needed:
            needed.add(node)
            waiting += node.all_input_nodes

    def cannot_repeat(node):
        if node.op == "placeholder":
            return True
        is_random = torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())
        return node in needed and (node.target in heavy or is_random)

    pipes = networkx.DiGraph()
    pipes.add_nodes_from(["source", "sink"])
    early = [node for node in nodes if node not in late]
    for node in early:
        pipes.add_edge(("in", node), ("out", node), capacity=1)
        if cannot_repeat(node):
            pipes.add_edge("source", ("in", node))
        for user in node.users:
            if user in late:
                pipes.add_edge(("out", node), "sink")
            elif user.op != "output":
                pipes.add_edge(("out", node), ("in", user))
        if node in returned[num_fwd_outputs:]:
            pipes.add_edge(("out", node), "sink")
    _, (upper, lower) = networkx.minimum_cut(pipes, "source", "sink")
    return [node for node in early if ("in", node) in upper and ("out", node) in lower]


# %% mistake: counts_elements
# You look for the fewest elements. An element of float64 has eight bytes, one of bool has one.
def min_cut(joint, joint_inputs, *, num_fwd_outputs, heavy):
    nodes = [node for node in joint.graph.nodes if node.op != "output"]
    placeholders = [node for node in nodes if node.op == "placeholder"]
    returned = joint.graph.output_node().args[0]
    count = len(joint_inputs[0])

    late = set(placeholders[count:])
    for node in nodes:  # inputs come first, so one pass is enough
        if late.intersection(node.all_input_nodes):
            late.add(node)
    needed, waiting = set(), list(returned[:num_fwd_outputs])
    while waiting:
        node = waiting.pop()
        if node not in needed:
            needed.add(node)
            waiting += node.all_input_nodes

    def cannot_repeat(node):
        if node.op == "placeholder":
            return True
        is_random = torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())
        return node in needed and (node.target in heavy or is_random)

    pipes = networkx.DiGraph()
    pipes.add_nodes_from(["source", "sink"])
    early = [node for node in nodes if node not in late]
    for node in early:
        value = node.meta["val"]
        width = value.numel()
        pipes.add_edge(("in", node), ("out", node), capacity=width)
        if cannot_repeat(node):
            pipes.add_edge("source", ("in", node))
        for user in node.users:
            if user in late:
                pipes.add_edge(("out", node), "sink")
            elif user.op != "output":
                pipes.add_edge(("out", node), ("in", user))
        if node in returned[num_fwd_outputs:]:
            pipes.add_edge(("out", node), "sink")
    _, (upper, lower) = networkx.minimum_cut(pipes, "source", "sink")
    return [node for node in early if ("in", node) in upper and ("out", node) in lower]


# %% mistake: heavy_again
# You let the backward repeat heavy operators. Water must come into them from the source, as into
# primals.
def min_cut(joint, joint_inputs, *, num_fwd_outputs, heavy):
    nodes = [node for node in joint.graph.nodes if node.op != "output"]
    placeholders = [node for node in nodes if node.op == "placeholder"]
    returned = joint.graph.output_node().args[0]
    count = len(joint_inputs[0])

    late = set(placeholders[count:])
    for node in nodes:  # inputs come first, so one pass is enough
        if late.intersection(node.all_input_nodes):
            late.add(node)
    needed, waiting = set(), list(returned[:num_fwd_outputs])
    while waiting:
        node = waiting.pop()
        if node not in needed:
            needed.add(node)
            waiting += node.all_input_nodes

    def cannot_repeat(node):
        if node.op == "placeholder":
            return True
        is_random = torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())
        return node in needed and is_random

    pipes = networkx.DiGraph()
    pipes.add_nodes_from(["source", "sink"])
    early = [node for node in nodes if node not in late]
    for node in early:
        value = node.meta["val"]
        width = value.numel() * value.element_size()
        pipes.add_edge(("in", node), ("out", node), capacity=width)
        if cannot_repeat(node):
            pipes.add_edge("source", ("in", node))
        for user in node.users:
            if user in late:
                pipes.add_edge(("out", node), "sink")
            elif user.op != "output":
                pipes.add_edge(("out", node), ("in", user))
        if node in returned[num_fwd_outputs:]:
            pipes.add_edge(("out", node), "sink")
    _, (upper, lower) = networkx.minimum_cut(pipes, "source", "sink")
    return [node for node in early if ("in", node) in upper and ("out", node) in lower]


# %% mistake: random_again
# You let the backward repeat random operators. They would draw other numbers; treat them as heavy
# ones.
def min_cut(joint, joint_inputs, *, num_fwd_outputs, heavy):
    nodes = [node for node in joint.graph.nodes if node.op != "output"]
    placeholders = [node for node in nodes if node.op == "placeholder"]
    returned = joint.graph.output_node().args[0]
    count = len(joint_inputs[0])

    late = set(placeholders[count:])
    for node in nodes:  # inputs come first, so one pass is enough
        if late.intersection(node.all_input_nodes):
            late.add(node)
    needed, waiting = set(), list(returned[:num_fwd_outputs])
    while waiting:
        node = waiting.pop()
        if node not in needed:
            needed.add(node)
            waiting += node.all_input_nodes

    def cannot_repeat(node):
        if node.op == "placeholder":
            return True
        return node in needed and node.target in heavy

    pipes = networkx.DiGraph()
    pipes.add_nodes_from(["source", "sink"])
    early = [node for node in nodes if node not in late]
    for node in early:
        value = node.meta["val"]
        width = value.numel() * value.element_size()
        pipes.add_edge(("in", node), ("out", node), capacity=width)
        if cannot_repeat(node):
            pipes.add_edge("source", ("in", node))
        for user in node.users:
            if user in late:
                pipes.add_edge(("out", node), "sink")
            elif user.op != "output":
                pipes.add_edge(("out", node), ("in", user))
        if node in returned[num_fwd_outputs:]:
            pipes.add_edge(("out", node), "sink")
    _, (upper, lower) = networkx.minimum_cut(pipes, "source", "sink")
    return [node for node in early if ("in", node) in upper and ("out", node) in lower]


# %% mistake: heavy_everywhere
# You forbid the backward to run any heavy operator. One that the forward outputs do not need runs
# for the first time there, and that is no repetition.
def min_cut(joint, joint_inputs, *, num_fwd_outputs, heavy):
    nodes = [node for node in joint.graph.nodes if node.op != "output"]
    placeholders = [node for node in nodes if node.op == "placeholder"]
    returned = joint.graph.output_node().args[0]
    count = len(joint_inputs[0])

    late = set(placeholders[count:])
    for node in nodes:  # inputs come first, so one pass is enough
        if late.intersection(node.all_input_nodes):
            late.add(node)
    needed, waiting = set(), list(returned[:num_fwd_outputs])
    while waiting:
        node = waiting.pop()
        if node not in needed:
            needed.add(node)
            waiting += node.all_input_nodes

    def cannot_repeat(node):
        if node.op == "placeholder":
            return True
        is_random = torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())
        return node.target in heavy or is_random

    pipes = networkx.DiGraph()
    pipes.add_nodes_from(["source", "sink"])
    early = [node for node in nodes if node not in late]
    for node in early:
        value = node.meta["val"]
        width = value.numel() * value.element_size()
        pipes.add_edge(("in", node), ("out", node), capacity=width)
        if cannot_repeat(node):
            pipes.add_edge("source", ("in", node))
        for user in node.users:
            if user in late:
                pipes.add_edge(("out", node), "sink")
            elif user.op != "output":
                pipes.add_edge(("out", node), ("in", user))
        if node in returned[num_fwd_outputs:]:
            pipes.add_edge(("out", node), "sink")
    _, (upper, lower) = networkx.minimum_cut(pipes, "source", "sink")
    return [node for node in early if ("in", node) in upper and ("out", node) in lower]


# %% mistake: needed_alone
# You let only those values be saved that the forward outputs need. The forward may also compute
# what only the backward needs, and save that, where it is smaller.
def min_cut(joint, joint_inputs, *, num_fwd_outputs, heavy):
    nodes = [node for node in joint.graph.nodes if node.op != "output"]
    placeholders = [node for node in nodes if node.op == "placeholder"]
    returned = joint.graph.output_node().args[0]
    count = len(joint_inputs[0])

    late = set(placeholders[count:])
    for node in nodes:  # inputs come first, so one pass is enough
        if late.intersection(node.all_input_nodes):
            late.add(node)
    needed, waiting = set(), list(returned[:num_fwd_outputs])
    while waiting:
        node = waiting.pop()
        if node not in needed:
            needed.add(node)
            waiting += node.all_input_nodes

    def cannot_repeat(node):
        if node.op == "placeholder":
            return True
        is_random = torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())
        return node in needed and (node.target in heavy or is_random)

    pipes = networkx.DiGraph()
    pipes.add_nodes_from(["source", "sink"])
    early = [node for node in nodes if node not in late]
    for node in early:
        value = node.meta["val"]
        width = value.numel() * value.element_size() if node in needed else float("inf")
        if node.op == "placeholder":
            width = value.numel() * value.element_size()
        pipes.add_edge(("in", node), ("out", node), capacity=width)
        if cannot_repeat(node):
            pipes.add_edge("source", ("in", node))
        for user in node.users:
            if user in late:
                pipes.add_edge(("out", node), "sink")
            elif user.op != "output":
                pipes.add_edge(("out", node), ("in", user))
        if node in returned[num_fwd_outputs:]:
            pipes.add_edge(("out", node), "sink")
    _, (upper, lower) = networkx.minimum_cut(pipes, "source", "sink")
    return [node for node in early if ("in", node) in upper and ("out", node) in lower]


# %% mistake: pays_for_each_reader
# You put the width on the edges between values. A value with two readers then costs twice. Split
# each node in two, and give the width to the edge between the halves.
def min_cut(joint, joint_inputs, *, num_fwd_outputs, heavy):
    nodes = [node for node in joint.graph.nodes if node.op != "output"]
    placeholders = [node for node in nodes if node.op == "placeholder"]
    returned = joint.graph.output_node().args[0]
    count = len(joint_inputs[0])

    late = set(placeholders[count:])
    for node in nodes:  # inputs come first, so one pass is enough
        if late.intersection(node.all_input_nodes):
            late.add(node)
    needed, waiting = set(), list(returned[:num_fwd_outputs])
    while waiting:
        node = waiting.pop()
        if node not in needed:
            needed.add(node)
            waiting += node.all_input_nodes

    def cannot_repeat(node):
        if node.op == "placeholder":
            return True
        is_random = torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())
        return node in needed and (node.target in heavy or is_random)

    pipes = networkx.DiGraph()
    pipes.add_nodes_from(["source", "sink"])
    early = [node for node in nodes if node not in late]
    for node in early:
        value = node.meta["val"]
        width = value.numel() * value.element_size()
        pipes.add_edge(("in", node), ("out", node))
        if cannot_repeat(node):
            pipes.add_edge("source", ("in", node))
        for user in node.users:
            if user in late:
                pipes.add_edge(("out", node), ("late", user), capacity=width)
                pipes.add_edge(("late", user), "sink")
            elif user.op != "output":
                pipes.add_edge(("out", node), ("in", user), capacity=width)
        if node in returned[num_fwd_outputs:]:
            pipes.add_edge(("out", node), "sink", capacity=width)
    _, (upper, lower) = networkx.minimum_cut(pipes, "source", "sink")
    edges = [(a, b) for a in upper for b in pipes[a] if b in lower]
    return [node for node in early if any(a == ("out", node) for a, _ in edges)]


# %% mistake: arguments_alone
# You go through `node.args` and miss inputs that stand in a list, such as those of `cat`.
# `node.all_input_nodes` has them all.
def min_cut(joint, joint_inputs, *, num_fwd_outputs, heavy):
    nodes = [node for node in joint.graph.nodes if node.op != "output"]
    placeholders = [node for node in nodes if node.op == "placeholder"]
    returned = joint.graph.output_node().args[0]
    count = len(joint_inputs[0])

    late = set(placeholders[count:])
    for node in nodes:  # inputs come first, so one pass is enough
        if late.intersection(node.all_input_nodes):
            late.add(node)
    needed, waiting = set(), list(returned[:num_fwd_outputs])
    while waiting:
        node = waiting.pop()
        if node not in needed:
            needed.add(node)
            waiting += node.all_input_nodes

    def cannot_repeat(node):
        if node.op == "placeholder":
            return True
        is_random = torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())
        return node in needed and (node.target in heavy or is_random)

    pipes = networkx.DiGraph()
    pipes.add_nodes_from(["source", "sink"])
    early = [node for node in nodes if node not in late]
    for node in early:
        value = node.meta["val"]
        width = value.numel() * value.element_size()
        pipes.add_edge(("in", node), ("out", node), capacity=width)
        if cannot_repeat(node):
            pipes.add_edge("source", ("in", node))
        for user in node.users:
            if user.op != "output" and node not in user.args:
                continue
            if user in late:
                pipes.add_edge(("out", node), "sink")
            elif user.op != "output":
                pipes.add_edge(("out", node), ("in", user))
        if node in returned[num_fwd_outputs:]:
            pipes.add_edge(("out", node), "sink")
    _, (upper, lower) = networkx.minimum_cut(pipes, "source", "sink")
    return [node for node in early if ("in", node) in upper and ("out", node) in lower]


# %% mistake: forgets_early_gradients
# You connect to the sink only what nodes read that depend on a tangent. A gradient may depend on
# none, and the backward returns it too.
def min_cut(joint, joint_inputs, *, num_fwd_outputs, heavy):
    nodes = [node for node in joint.graph.nodes if node.op != "output"]
    placeholders = [node for node in nodes if node.op == "placeholder"]
    returned = joint.graph.output_node().args[0]
    count = len(joint_inputs[0])

    late = set(placeholders[count:])
    for node in nodes:  # inputs come first, so one pass is enough
        if late.intersection(node.all_input_nodes):
            late.add(node)
    needed, waiting = set(), list(returned[:num_fwd_outputs])
    while waiting:
        node = waiting.pop()
        if node not in needed:
            needed.add(node)
            waiting += node.all_input_nodes

    def cannot_repeat(node):
        if node.op == "placeholder":
            return True
        is_random = torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())
        return node in needed and (node.target in heavy or is_random)

    pipes = networkx.DiGraph()
    pipes.add_nodes_from(["source", "sink"])
    early = [node for node in nodes if node not in late]
    for node in early:
        value = node.meta["val"]
        width = value.numel() * value.element_size()
        pipes.add_edge(("in", node), ("out", node), capacity=width)
        if cannot_repeat(node):
            pipes.add_edge("source", ("in", node))
        for user in node.users:
            if user in late:
                pipes.add_edge(("out", node), "sink")
            elif user.op != "output":
                pipes.add_edge(("out", node), ("in", user))
    _, (upper, lower) = networkx.minimum_cut(pipes, "source", "sink")
    return [node for node in early if ("in", node) in upper and ("out", node) in lower]


# %% alternate: augmenting_paths
# Without networkx: send water along shortest roads until no road is left.
import collections  # noqa: E402


def min_cut(joint, joint_inputs, *, num_fwd_outputs, heavy):
    nodes = [node for node in joint.graph.nodes if node.op != "output"]
    returned = next(node for node in joint.graph.nodes if node.op == "output").args[0]
    primals = [node for node in nodes if node.op == "placeholder"][: len(joint_inputs[0])]
    depends = {}
    for node in nodes:
        depends[node] = any(depends[one] for one in node.all_input_nodes) or (
            node.op == "placeholder" and node not in primals
        )

    def above(node, met):
        if node not in met:
            met.add(node)
            for one in node.all_input_nodes:
                above(one, met)
        return met

    forward = set().union(*[above(node, set()) for node in returned[:num_fwd_outputs]])
    far = 1 << 60
    room = collections.defaultdict(lambda: collections.defaultdict(int))
    for node in nodes:
        if depends[node]:
            continue
        room[node, 0][node, 1] = node.meta["val"].numel() * node.meta["val"].dtype.itemsize
        tags = getattr(node.target, "tags", [])
        once = node.target in heavy or torch.Tag.nondeterministic_seeded in tags
        if node in primals or (node in forward and once):
            room["source"][node, 0] = far
        if node in returned[num_fwd_outputs:]:
            room[node, 1]["sink"] = far
        for one in node.all_input_nodes:
            room[one, 1][node, 0] = far
    for node in nodes:
        for one in node.all_input_nodes:
            if depends[node] and not depends[one]:
                room[one, 1]["sink"] = far

    def reached():
        came, waiting = {"source": None}, collections.deque(["source"])
        while waiting:
            here = waiting.popleft()
            for there, width in list(room[here].items()):
                if width > 0 and there not in came:
                    came[there] = here
                    waiting.append(there)
        return came

    came = reached()
    while "sink" in came:
        road = ["sink"]
        while came[road[-1]] is not None:
            road.append(came[road[-1]])
        steps = list(zip(road[1:], road))
        flow = min(room[here][there] for here, there in steps)
        for here, there in steps:
            room[here][there] -= flow
            room[there][here] += flow
        came = reached()
    return [
        node for node in nodes if (node, 0) in came and (node, 1) not in came and not depends[node]
    ]


# %% alternate: upside_down
# The water runs from the tangents to the primals, through pipes that are numbered.
def min_cut(joint, joint_inputs, *, num_fwd_outputs, heavy):
    nodes = list(joint.graph.nodes)[:-1]
    number = {node: at for at, node in enumerate(nodes)}
    primals, tangents = map(len, joint_inputs)
    (returned,) = list(joint.graph.nodes)[-1].args
    down = [set(node.users) for node in nodes]
    late = {node for node in nodes if node.op == "placeholder" and number[node] >= primals}
    while True:
        more = {user for node in late for user in down[number[node]] if user in number}
        if more <= late:
            break
        late |= more
    forward = set(returned[:num_fwd_outputs])
    for node in reversed(nodes):
        if node in forward:
            forward |= set(node.all_input_nodes)

    def once(node):
        return node in forward and (
            node.target in heavy or torch.Tag.nondeterministic_seeded in node.target.tags
        )

    water = networkx.DiGraph()
    water.add_node(-1)
    water.add_node(-2)
    for node in nodes:
        if node in late:
            continue
        at = 2 * number[node]
        water.add_edge(at, at + 1, capacity=node.meta["val"].nbytes)
        for user in down[number[node]]:
            if user in late:
                water.add_edge(-1, at)
            elif user in number:
                water.add_edge(2 * number[user] + 1, at)
        if any(node is gradient for gradient in returned[num_fwd_outputs:]):
            water.add_edge(-1, at)
        if node.op == "placeholder" or once(node):
            water.add_edge(at + 1, -2)
    _, (first, second) = networkx.minimum_cut(water, -1, -2)
    return [node for node in nodes if 2 * number[node] in first and 2 * number[node] + 1 in second]
