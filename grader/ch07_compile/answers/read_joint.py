# %% mistake: either_is_backward
# You call everything backward that the forward outputs do not need. Some of those nodes depend on
# no tangent, such as the cosine in the derivative of a sine: the forward could compute them too.
def read_joint(function, *inputs):
    found = []

    def see(joint, joint_inputs, *, num_fwd_outputs, **options):
        found.append((joint, joint_inputs, num_fwd_outputs))
        return default_partition(joint, joint_inputs, num_fwd_outputs=num_fwd_outputs, **options)

    copies = [one.detach().clone().requires_grad_(one.requires_grad) for one in inputs]
    aot_function(function, fw_compiler=nop, bw_compiler=nop, partition_fn=see)(*copies)
    joint, (primals, tangents), outputs = found[0]
    nodes = list(joint.graph.nodes)
    returned = nodes[-1].args[0]
    forward, waiting = set(), list(returned[:outputs])
    while waiting:
        node = waiting.pop()
        forward.add(node)
        waiting += node.all_input_nodes
    backward = set(nodes) - forward
    calls = [node for node in nodes if node.op == "call_function"]
    return {
        "primals": len(primals),
        "tangents": len(tangents),
        "outputs": outputs,
        "gradients": [one is not None for one in returned[outputs:]],
        "forward": [str(node.target) for node in calls if node in forward],
        "backward": [str(node.target) for node in calls if node in backward],
        "either": [str(node.target) for node in calls if node not in forward | backward],
    }


# %% mistake: either_is_forward
# You call everything forward that depends on no tangent. The forward outputs do not need all of
# it: walk up from the outputs and see whom you meet.
def read_joint(function, *inputs):
    found = []

    def see(joint, joint_inputs, *, num_fwd_outputs, **options):
        found.append((joint, joint_inputs, num_fwd_outputs))
        return default_partition(joint, joint_inputs, num_fwd_outputs=num_fwd_outputs, **options)

    copies = [one.detach().clone().requires_grad_(one.requires_grad) for one in inputs]
    aot_function(function, fw_compiler=nop, bw_compiler=nop, partition_fn=see)(*copies)
    joint, (primals, tangents), outputs = found[0]
    nodes = list(joint.graph.nodes)
    places = [node for node in nodes if node.op == "placeholder"]
    returned = nodes[-1].args[0]
    forward, waiting = set(), list(nodes[-1].args[0])
    while waiting:
        node = waiting.pop()
        forward.add(node)
        waiting += node.all_input_nodes
    backward = set(places[len(primals) :])
    for node in nodes:
        if backward & set(node.all_input_nodes):
            backward.add(node)
    forward -= backward
    calls = [node for node in nodes if node.op == "call_function"]
    return {
        "primals": len(primals),
        "tangents": len(tangents),
        "outputs": outputs,
        "gradients": [one is not None for one in returned[outputs:]],
        "forward": [str(node.target) for node in calls if node in forward],
        "backward": [str(node.target) for node in calls if node in backward],
        "either": [str(node.target) for node in calls if node not in forward | backward],
    }


# %% mistake: outputs_of_the_function
# You count what the function returns. An input that it changes is one more output of the joint
# graph, and stands before the others: `num_fwd_outputs` counts them all.
def read_joint(function, *inputs):
    found = []

    def see(joint, joint_inputs, *, num_fwd_outputs, **options):
        found.append((joint, joint_inputs, num_fwd_outputs))
        return default_partition(joint, joint_inputs, num_fwd_outputs=num_fwd_outputs, **options)

    copies = [one.detach().clone().requires_grad_(one.requires_grad) for one in inputs]
    aot_function(function, fw_compiler=nop, bw_compiler=nop, partition_fn=see)(*copies)
    joint, (primals, tangents), _ = found[0]
    copies = [one.detach().clone() for one in inputs]
    result = function(*copies)
    outputs = len(result) if isinstance(result, tuple) else 1
    nodes = list(joint.graph.nodes)
    places = [node for node in nodes if node.op == "placeholder"]
    returned = nodes[-1].args[0]
    forward, waiting = set(), list(returned[:outputs])
    while waiting:
        node = waiting.pop()
        forward.add(node)
        waiting += node.all_input_nodes
    backward = set(places[len(primals) :])
    for node in nodes:
        if backward & set(node.all_input_nodes):
            backward.add(node)
    calls = [node for node in nodes if node.op == "call_function"]
    return {
        "primals": len(primals),
        "tangents": len(tangents),
        "outputs": outputs,
        "gradients": [one is not None for one in returned[outputs:]],
        "forward": [str(node.target) for node in calls if node in forward],
        "backward": [str(node.target) for node in calls if node in backward],
        "either": [str(node.target) for node in calls if node not in forward | backward],
    }


# %% mistake: a_tangent_per_output
# You count a tangent for each output. An output that needs no gradient, such as a comparison, a
# detached tensor or a changed input, has none. `joint_inputs` holds the tangents that there are.
def read_joint(function, *inputs):
    found = []

    def see(joint, joint_inputs, *, num_fwd_outputs, **options):
        found.append((joint, joint_inputs, num_fwd_outputs))
        return default_partition(joint, joint_inputs, num_fwd_outputs=num_fwd_outputs, **options)

    copies = [one.detach().clone().requires_grad_(one.requires_grad) for one in inputs]
    aot_function(function, fw_compiler=nop, bw_compiler=nop, partition_fn=see)(*copies)
    joint, (primals, tangents), outputs = found[0]
    nodes = list(joint.graph.nodes)
    places = [node for node in nodes if node.op == "placeholder"]
    returned = nodes[-1].args[0]
    forward, waiting = set(), list(returned[:outputs])
    while waiting:
        node = waiting.pop()
        forward.add(node)
        waiting += node.all_input_nodes
    backward = set(places[len(primals) :])
    for node in nodes:
        if backward & set(node.all_input_nodes):
            backward.add(node)
    calls = [node for node in nodes if node.op == "call_function"]
    return {
        "primals": len(primals),
        "tangents": outputs,
        "outputs": outputs,
        "gradients": [one is not None for one in returned[outputs:]],
        "forward": [str(node.target) for node in calls if node in forward],
        "backward": [str(node.target) for node in calls if node in backward],
        "either": [str(node.target) for node in calls if node not in forward | backward],
    }


# %% mistake: gradients_by_flag
# You say that a primal has a gradient when it requires grad. One that requires grad and reaches no
# output gets none: look at what the joint graph returns.
def read_joint(function, *inputs):
    found = []

    def see(joint, joint_inputs, *, num_fwd_outputs, **options):
        found.append((joint, joint_inputs, num_fwd_outputs))
        return default_partition(joint, joint_inputs, num_fwd_outputs=num_fwd_outputs, **options)

    copies = [one.detach().clone().requires_grad_(one.requires_grad) for one in inputs]
    aot_function(function, fw_compiler=nop, bw_compiler=nop, partition_fn=see)(*copies)
    joint, (primals, tangents), outputs = found[0]
    nodes = list(joint.graph.nodes)
    places = [node for node in nodes if node.op == "placeholder"]
    returned = nodes[-1].args[0]
    forward, waiting = set(), list(returned[:outputs])
    while waiting:
        node = waiting.pop()
        forward.add(node)
        waiting += node.all_input_nodes
    backward = set(places[len(primals) :])
    for node in nodes:
        if backward & set(node.all_input_nodes):
            backward.add(node)
    calls = [node for node in nodes if node.op == "call_function"]
    return {
        "primals": len(primals),
        "tangents": len(tangents),
        "outputs": outputs,
        "gradients": [one.requires_grad for one in inputs],
        "forward": [str(node.target) for node in calls if node in forward],
        "backward": [str(node.target) for node in calls if node in backward],
        "either": [str(node.target) for node in calls if node not in forward | backward],
    }


# %% mistake: changes_the_inputs
# You call the compiled function on the inputs themselves. If the function changes an input in
# place, so does the compiled one. Call it on copies.
def read_joint(function, *inputs):
    found = []

    def see(joint, joint_inputs, *, num_fwd_outputs, **options):
        found.append((joint, joint_inputs, num_fwd_outputs))
        return default_partition(joint, joint_inputs, num_fwd_outputs=num_fwd_outputs, **options)

    copies = list(inputs)
    aot_function(function, fw_compiler=nop, bw_compiler=nop, partition_fn=see)(*copies)
    joint, (primals, tangents), outputs = found[0]
    nodes = list(joint.graph.nodes)
    places = [node for node in nodes if node.op == "placeholder"]
    returned = nodes[-1].args[0]
    forward, waiting = set(), list(returned[:outputs])
    while waiting:
        node = waiting.pop()
        forward.add(node)
        waiting += node.all_input_nodes
    backward = set(places[len(primals) :])
    for node in nodes:
        if backward & set(node.all_input_nodes):
            backward.add(node)
    calls = [node for node in nodes if node.op == "call_function"]
    return {
        "primals": len(primals),
        "tangents": len(tangents),
        "outputs": outputs,
        "gradients": [one is not None for one in returned[outputs:]],
        "forward": [str(node.target) for node in calls if node in forward],
        "backward": [str(node.target) for node in calls if node in backward],
        "either": [str(node.target) for node in calls if node not in forward | backward],
    }


# %% mistake: last_placeholder
# You take the last placeholder for the tangent. There is one for each output that has a gradient;
# the number of primals tells where they begin.
def read_joint(function, *inputs):
    found = []

    def see(joint, joint_inputs, *, num_fwd_outputs, **options):
        found.append((joint, joint_inputs, num_fwd_outputs))
        return default_partition(joint, joint_inputs, num_fwd_outputs=num_fwd_outputs, **options)

    copies = [one.detach().clone().requires_grad_(one.requires_grad) for one in inputs]
    aot_function(function, fw_compiler=nop, bw_compiler=nop, partition_fn=see)(*copies)
    joint, (primals, tangents), outputs = found[0]
    nodes = list(joint.graph.nodes)
    places = [node for node in nodes if node.op == "placeholder"]
    returned = nodes[-1].args[0]
    forward, waiting = set(), list(returned[:outputs])
    while waiting:
        node = waiting.pop()
        forward.add(node)
        waiting += node.all_input_nodes
    backward = set(places[-1:])
    for node in nodes:
        if backward & set(node.all_input_nodes):
            backward.add(node)
    calls = [node for node in nodes if node.op == "call_function"]
    return {
        "primals": len(primals),
        "tangents": 1,
        "outputs": outputs,
        "gradients": [one is not None for one in returned[outputs:]],
        "forward": [str(node.target) for node in calls if node in forward],
        "backward": [str(node.target) for node in calls if node in backward],
        "either": [str(node.target) for node in calls if node not in forward | backward],
    }


# %% mistake: one_step_down
# You look only at the nodes that read a tangent directly. What is computed from those depends on
# the tangent as well: add each node that you find to the set you compare with.
def read_joint(function, *inputs):
    found = []

    def see(joint, joint_inputs, *, num_fwd_outputs, **options):
        found.append((joint, joint_inputs, num_fwd_outputs))
        return default_partition(joint, joint_inputs, num_fwd_outputs=num_fwd_outputs, **options)

    copies = [one.detach().clone().requires_grad_(one.requires_grad) for one in inputs]
    aot_function(function, fw_compiler=nop, bw_compiler=nop, partition_fn=see)(*copies)
    joint, (primals, tangents), outputs = found[0]
    nodes = list(joint.graph.nodes)
    places = [node for node in nodes if node.op == "placeholder"]
    returned = nodes[-1].args[0]
    forward, waiting = set(), list(returned[:outputs])
    while waiting:
        node = waiting.pop()
        forward.add(node)
        waiting += node.all_input_nodes
    backward, first = set(), set(places[len(primals) :])
    for node in nodes:
        if first & set(node.all_input_nodes):
            backward.add(node)
    calls = [node for node in nodes if node.op == "call_function"]
    return {
        "primals": len(primals),
        "tangents": len(tangents),
        "outputs": outputs,
        "gradients": [one is not None for one in returned[outputs:]],
        "forward": [str(node.target) for node in calls if node in forward],
        "backward": [str(node.target) for node in calls if node in backward],
        "either": [str(n.target) for n in calls if n not in forward | backward],
    }


# %% alternate: copies
# The compiled function runs on copies, with the partitioner that the library has by default.
def read_joint(function, *inputs):
    found = []

    def see(joint, joint_inputs, *, num_fwd_outputs, **options):
        found.append((joint, joint_inputs, num_fwd_outputs))
        return default_partition(joint, joint_inputs, num_fwd_outputs=num_fwd_outputs, **options)

    copies = [one.detach().clone().requires_grad_(one.requires_grad) for one in inputs]
    aot_function(function, fw_compiler=nop, bw_compiler=nop, partition_fn=see)(*copies)
    joint, (primals, tangents), outputs = found[0]
    nodes = list(joint.graph.nodes)
    places = [node for node in nodes if node.op == "placeholder"]
    returned = nodes[-1].args[0]
    forward, waiting = set(), list(returned[:outputs])
    while waiting:
        node = waiting.pop()
        forward.add(node)
        waiting += node.all_input_nodes
    backward = set(places[len(primals) :])
    for node in nodes:
        if backward & set(node.all_input_nodes):
            backward.add(node)
    calls = [node for node in nodes if node.op == "call_function"]
    return {
        "primals": len(primals),
        "tangents": len(tangents),
        "outputs": outputs,
        "gradients": [one is not None for one in returned[outputs:]],
        "forward": [str(node.target) for node in calls if node in forward],
        "backward": [str(node.target) for node in calls if node in backward],
        "either": [str(node.target) for node in calls if node not in forward | backward],
    }


# %% alternate: sets_of_origins
# Each node knows the placeholders that it comes from, and whether an output needs it.
def read_joint(function, *inputs):
    report = {}

    def see(joint, joint_inputs, num_fwd_outputs=None, **options):
        graph, count = joint.graph, len(joint_inputs[0])
        names = [node.name for node in graph.nodes if node.op == "placeholder"]
        origins = {}
        for node in graph.nodes:
            above = {node.name} if node.op == "placeholder" else set()
            origins[node] = above.union(*[origins[one] for one in node.all_input_nodes])
        users, (returned,) = {}, graph.output_node().args
        for node in reversed(graph.nodes):
            users[node] = node in returned[:num_fwd_outputs]
            users[node] |= any(users[one] for one in node.users)
        users.update({node: True for node in returned[:num_fwd_outputs]})
        report.update(primals=count, tangents=len(names) - count, outputs=num_fwd_outputs)
        report["gradients"] = [one is not None for one in returned[num_fwd_outputs:]]
        report.update(forward=[], backward=[], either=[])
        for node in graph.nodes:
            if node.op == "call_function":
                late = bool(origins[node] & set(names[count:]))
                kind = "backward" if late else "forward" if users[node] else "either"
                report[kind].append(str(node.target))
        return default_partition(joint, joint_inputs, num_fwd_outputs=num_fwd_outputs, **options)

    copies = [one.detach().clone().requires_grad_(one.requires_grad) for one in inputs]
    aot_function(function, nop, nop, see)(*copies)
    return report
