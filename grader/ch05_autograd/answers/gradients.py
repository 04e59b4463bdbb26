# %% blocked: the_engine
# That is the engine. Walk the graph yourself.
def gradients(output, cotangent, inputs):
    return list(
        torch.autograd.grad(output, inputs, cotangent, allow_unused=True, retain_graph=True)
    )


# %% blocked: backward
# That is the engine too, and it writes to `.grad`.
def gradients(output, cotangent, inputs):
    output.backward(cotangent, retain_graph=True)
    return [tensor.grad for tensor in inputs]


# %% mistake: every_road_alone
# You follow each road to its end and add up there. The sums are right, but the number of roads doubles
# wherever a result is used twice. A node must wait until all its gradients have arrived, and run once.
def gradients(output, cotangent, inputs):
    edges = [torch.autograd.graph.get_gradient_edge(tensor)[:2] for tensor in inputs]
    sums = {}
    start = torch.autograd.graph.get_gradient_edge(output)[:2]
    waiting = [(start, cotangent)]
    with torch.no_grad():
        while waiting:
            (node, slot), grad = waiting.pop()
            sums[node, slot] = grad if (node, slot) not in sums else sums[node, slot] + grad
            if not node.next_functions:
                continue
            given = [None] * len(node._input_metadata)
            given[slot] = grad
            results = node(*given)
            results = results if isinstance(results, tuple) else (results,)
            for edge, result in zip(node.next_functions, results):
                if edge[0] is not None and result is not None:
                    right = edge[0]._input_metadata[edge[1]]
                    waiting.append((edge, result.sum_to_size(right.shape).to(right.dtype)))
    return [sums.get(edge) for edge in edges]


# %% mistake: does_not_wait
# You call a node when the first gradient arrives, and again never. What comes later by other roads is lost.
# Count first how many edges lead to each node.
def gradients(output, cotangent, inputs):
    edges = [torch.autograd.graph.get_gradient_edge(tensor) for tensor in inputs]
    root, place = torch.autograd.graph.get_gradient_edge(output)[:2]
    missing, waiting = {root: 0}, [root]
    while waiting:
        for after, _ in waiting.pop().next_functions:
            if after is not None:
                if after not in missing:
                    missing[after] = 0
                    waiting.append(after)
                missing[after] += 1
    slots = {node: [None] * len(node._input_metadata) for node in missing}
    slots[root][place] = cotangent
    ready, done = [root], {root}
    with torch.no_grad():
        while ready:
            node = ready.pop()
            results = ()
            if node.next_functions and any(grad is not None for grad in slots[node]):
                results = node(*slots[node])
                results = results if isinstance(results, tuple) else (results,)
            for number, (after, slot) in enumerate(node.next_functions):
                if after is None:
                    continue
                grad = results[number] if results else None
                if grad is not None:
                    right = after._input_metadata[slot]
                    grad = grad.sum_to_size(right.shape).to(right.dtype)
                    there = slots[after][slot]
                    slots[after][slot] = grad if there is None else there + grad
                missing[after] -= 1
                if after not in done:
                    done.add(after)
                    ready.append(after)
    return [slots[edge[0]][edge[1]] if edge[0] in slots else None for edge in edges]


# %% mistake: overwrites
# Where two roads meet, the gradient that arrives second replaces the first. It has to be added.
def gradients(output, cotangent, inputs):
    edges = [torch.autograd.graph.get_gradient_edge(tensor) for tensor in inputs]
    root, place = torch.autograd.graph.get_gradient_edge(output)[:2]
    missing, waiting = {root: 0}, [root]
    while waiting:
        for after, _ in waiting.pop().next_functions:
            if after is not None:
                if after not in missing:
                    missing[after] = 0
                    waiting.append(after)
                missing[after] += 1
    slots = {node: [None] * len(node._input_metadata) for node in missing}
    slots[root][place] = cotangent
    ready = [root]
    with torch.no_grad():
        while ready:
            node = ready.pop()
            results = ()
            if node.next_functions and any(grad is not None for grad in slots[node]):
                results = node(*slots[node])
                results = results if isinstance(results, tuple) else (results,)
            for number, (after, slot) in enumerate(node.next_functions):
                if after is None:
                    continue
                grad = results[number] if results else None
                if grad is not None:
                    right = after._input_metadata[slot]
                    grad = grad.sum_to_size(right.shape).to(right.dtype)
                    slots[after][slot] = grad
                missing[after] -= 1
                if missing[after] == 0:
                    ready.append(after)
    return [slots[edge[0]][edge[1]] if edge[0] in slots else None for edge in edges]


# %% mistake: adds_in_place
# You add to a gradient in place. The node of `a + a` gave the same tensor to both of its edges, and it may
# be the cotangent itself: you change what other roads were given. Make a new tensor.
def gradients(output, cotangent, inputs):
    edges = [torch.autograd.graph.get_gradient_edge(tensor) for tensor in inputs]
    root, place = torch.autograd.graph.get_gradient_edge(output)[:2]
    missing, waiting = {root: 0}, [root]
    while waiting:
        for after, _ in waiting.pop().next_functions:
            if after is not None:
                if after not in missing:
                    missing[after] = 0
                    waiting.append(after)
                missing[after] += 1
    slots = {node: [None] * len(node._input_metadata) for node in missing}
    slots[root][place] = cotangent
    ready = [root]
    with torch.no_grad():
        while ready:
            node = ready.pop()
            results = ()
            if node.next_functions and any(grad is not None for grad in slots[node]):
                results = node(*slots[node])
                results = results if isinstance(results, tuple) else (results,)
            for number, (after, slot) in enumerate(node.next_functions):
                if after is None:
                    continue
                grad = results[number] if results else None
                if grad is not None:
                    right = after._input_metadata[slot]
                    grad = grad.sum_to_size(right.shape).to(right.dtype)
                    there = slots[after][slot]
                    slots[after][slot] = grad if there is None else there.add_(grad)
                missing[after] -= 1
                if missing[after] == 0:
                    ready.append(after)
    return [slots[edge[0]][edge[1]] if edge[0] in slots else None for edge in edges]


# %% mistake: first_slot
# You put every gradient into the first place. An edge is a node **and a number**: which of its results the
# gradient belongs to.
def gradients(output, cotangent, inputs):
    edges = [torch.autograd.graph.get_gradient_edge(tensor) for tensor in inputs]
    root, place = torch.autograd.graph.get_gradient_edge(output)[:2]
    missing, waiting = {root: 0}, [root]
    while waiting:
        for after, _ in waiting.pop().next_functions:
            if after is not None:
                if after not in missing:
                    missing[after] = 0
                    waiting.append(after)
                missing[after] += 1
    slots = {node: [None] * len(node._input_metadata) for node in missing}
    slots[root][place] = cotangent
    ready = [root]
    with torch.no_grad():
        while ready:
            node = ready.pop()
            results = ()
            if node.next_functions and any(grad is not None for grad in slots[node]):
                results = node(*slots[node])
                results = results if isinstance(results, tuple) else (results,)
            for number, (after, slot) in enumerate(node.next_functions):
                if after is None:
                    continue
                grad = results[number] if results else None
                if grad is not None:
                    right = after._input_metadata[slot]
                    grad = grad.sum_to_size(right.shape).to(right.dtype)
                    there = slots[after][0]
                    slots[after][0] = grad if there is None else there + grad
                missing[after] -= 1
                if missing[after] == 0:
                    ready.append(after)
    return [slots[edge[0]][edge[1]] if edge[0] in slots else None for edge in edges]


# %% mistake: trusts_the_shape
# You hand gradients on as they come. Where forward broadcast a tensor, its gradient has the shape of the
# result, and some nodes broadcast it once more without a word: sum it to the shape in `_input_metadata`.
def gradients(output, cotangent, inputs):
    edges = [torch.autograd.graph.get_gradient_edge(tensor) for tensor in inputs]
    root, place = torch.autograd.graph.get_gradient_edge(output)[:2]
    missing, waiting = {root: 0}, [root]
    while waiting:
        for after, _ in waiting.pop().next_functions:
            if after is not None:
                if after not in missing:
                    missing[after] = 0
                    waiting.append(after)
                missing[after] += 1
    slots = {node: [None] * len(node._input_metadata) for node in missing}
    slots[root][place] = cotangent
    ready = [root]
    with torch.no_grad():
        while ready:
            node = ready.pop()
            results = ()
            if node.next_functions and any(grad is not None for grad in slots[node]):
                results = node(*slots[node])
                results = results if isinstance(results, tuple) else (results,)
            for number, (after, slot) in enumerate(node.next_functions):
                if after is None:
                    continue
                grad = results[number] if results else None
                if grad is not None:
                    right = after._input_metadata[slot]
                    grad = grad.to(right.dtype)
                    there = slots[after][slot]
                    slots[after][slot] = grad if there is None else there + grad
                missing[after] -= 1
                if missing[after] == 0:
                    ready.append(after)
    return [slots[edge[0]][edge[1]] if edge[0] in slots else None for edge in edges]


# %% mistake: trusts_the_dtype
# You hand gradients on in whatever dtype they come. Where forward mixed two, the gradient of the narrower
# tensor may come in the wider one: convert it to the dtype in `_input_metadata`.
def gradients(output, cotangent, inputs):
    edges = [torch.autograd.graph.get_gradient_edge(tensor) for tensor in inputs]
    root, place = torch.autograd.graph.get_gradient_edge(output)[:2]
    missing, waiting = {root: 0}, [root]
    while waiting:
        for after, _ in waiting.pop().next_functions:
            if after is not None:
                if after not in missing:
                    missing[after] = 0
                    waiting.append(after)
                missing[after] += 1
    slots = {node: [None] * len(node._input_metadata) for node in missing}
    slots[root][place] = cotangent
    ready = [root]
    with torch.no_grad():
        while ready:
            node = ready.pop()
            results = ()
            if node.next_functions and any(grad is not None for grad in slots[node]):
                results = node(*slots[node])
                results = results if isinstance(results, tuple) else (results,)
            for number, (after, slot) in enumerate(node.next_functions):
                if after is None:
                    continue
                grad = results[number] if results else None
                if grad is not None:
                    right = after._input_metadata[slot]
                    grad = grad.sum_to_size(right.shape)
                    there = slots[after][slot]
                    slots[after][slot] = grad if there is None else there + grad
                missing[after] -= 1
                if missing[after] == 0:
                    ready.append(after)
    return [slots[edge[0]][edge[1]] if edge[0] in slots else None for edge in edges]


# %% mistake: leaves_only
# You find gradients of leaves. A result in the middle has one as well: it is what has gathered in its slot
# when its node is ready.
def gradients(output, cotangent, inputs):
    edges = [torch.autograd.graph.get_gradient_edge(tensor) for tensor in inputs]
    root, place = torch.autograd.graph.get_gradient_edge(output)[:2]
    missing, waiting = {root: 0}, [root]
    while waiting:
        for after, _ in waiting.pop().next_functions:
            if after is not None:
                if after not in missing:
                    missing[after] = 0
                    waiting.append(after)
                missing[after] += 1
    slots = {node: [None] * len(node._input_metadata) for node in missing}
    slots[root][place] = cotangent
    ready = [root]
    with torch.no_grad():
        while ready:
            node = ready.pop()
            results = ()
            if node.next_functions and any(grad is not None for grad in slots[node]):
                results = node(*slots[node])
                results = results if isinstance(results, tuple) else (results,)
            for number, (after, slot) in enumerate(node.next_functions):
                if after is None:
                    continue
                grad = results[number] if results else None
                if grad is not None:
                    right = after._input_metadata[slot]
                    grad = grad.sum_to_size(right.shape).to(right.dtype)
                    there = slots[after][slot]
                    slots[after][slot] = grad if there is None else there + grad
                missing[after] -= 1
                if missing[after] == 0:
                    ready.append(after)
    return [
        slots[edge[0]][edge[1]] if edge[0] in slots and not edge[0].next_functions else None
        for edge in edges
    ]


# %% mistake: zeros_for_none
# You return zeros where the output does not depend on an input. Nothing arrives there, and that is `None`.
def gradients(output, cotangent, inputs):
    edges = [torch.autograd.graph.get_gradient_edge(tensor) for tensor in inputs]
    root, place = torch.autograd.graph.get_gradient_edge(output)[:2]
    missing, waiting = {root: 0}, [root]
    while waiting:
        for after, _ in waiting.pop().next_functions:
            if after is not None:
                if after not in missing:
                    missing[after] = 0
                    waiting.append(after)
                missing[after] += 1
    slots = {node: [None] * len(node._input_metadata) for node in missing}
    slots[root][place] = cotangent
    ready = [root]
    with torch.no_grad():
        while ready:
            node = ready.pop()
            results = ()
            if node.next_functions and any(grad is not None for grad in slots[node]):
                results = node(*slots[node])
                results = results if isinstance(results, tuple) else (results,)
            for number, (after, slot) in enumerate(node.next_functions):
                if after is None:
                    continue
                grad = results[number] if results else None
                if grad is not None:
                    right = after._input_metadata[slot]
                    grad = grad.sum_to_size(right.shape).to(right.dtype)
                    there = slots[after][slot]
                    slots[after][slot] = grad if there is None else there + grad
                missing[after] -= 1
                if missing[after] == 0:
                    ready.append(after)
    found = [slots[edge[0]][edge[1]] if edge[0] in slots else None for edge in edges]
    return [torch.zeros_like(t) if g is None else g for g, t in zip(found, inputs)]


# %% mistake: calls_accumulate_grad
# You call the leaves' nodes too. `AccumulateGrad` does what its name says, and their `.grad` changes. Stop
# at nodes without edges.
def gradients(output, cotangent, inputs):
    edges = [torch.autograd.graph.get_gradient_edge(tensor) for tensor in inputs]
    root, place = torch.autograd.graph.get_gradient_edge(output)[:2]
    missing, waiting = {root: 0}, [root]
    while waiting:
        for after, _ in waiting.pop().next_functions:
            if after is not None:
                if after not in missing:
                    missing[after] = 0
                    waiting.append(after)
                missing[after] += 1
    slots = {node: [None] * len(node._input_metadata) for node in missing}
    slots[root][place] = cotangent
    ready = [root]
    with torch.no_grad():
        while ready:
            node = ready.pop()
            results = ()
            if any(grad is not None for grad in slots[node]):
                results = node(*slots[node])
                results = results if isinstance(results, tuple) else (results,)
            for number, (after, slot) in enumerate(node.next_functions):
                if after is None:
                    continue
                grad = results[number] if results and results[0] is not None else None
                if grad is not None:
                    right = after._input_metadata[slot]
                    grad = grad.sum_to_size(right.shape).to(right.dtype)
                    there = slots[after][slot]
                    slots[after][slot] = grad if there is None else there + grad
                missing[after] -= 1
                if missing[after] == 0:
                    ready.append(after)
    return [slots[edge[0]][edge[1]] if edge[0] in slots else None for edge in edges]


# %% mistake: recorded
# Your sums and calls are recorded, so your gradients require grad and hold a graph. Work under
# `torch.no_grad()`.
def gradients(output, cotangent, inputs):
    edges = [torch.autograd.graph.get_gradient_edge(tensor) for tensor in inputs]
    root, place = torch.autograd.graph.get_gradient_edge(output)[:2]
    missing, waiting = {root: 0}, [root]
    while waiting:
        for after, _ in waiting.pop().next_functions:
            if after is not None:
                if after not in missing:
                    missing[after] = 0
                    waiting.append(after)
                missing[after] += 1
    slots = {node: [None] * len(node._input_metadata) for node in missing}
    slots[root][place] = cotangent
    ready = [root]
    with torch.enable_grad():
        while ready:
            node = ready.pop()
            results = ()
            if node.next_functions and any(grad is not None for grad in slots[node]):
                results = node(*slots[node])
                results = results if isinstance(results, tuple) else (results,)
            for number, (after, slot) in enumerate(node.next_functions):
                if after is None:
                    continue
                grad = results[number] if results else None
                if grad is not None:
                    right = after._input_metadata[slot]
                    grad = grad.sum_to_size(right.shape).to(right.dtype)
                    there = slots[after][slot]
                    slots[after][slot] = grad if there is None else there + grad
                missing[after] -= 1
                if missing[after] == 0:
                    ready.append(after)
    return [slots[edge[0]][edge[1]] if edge[0] in slots else None for edge in edges]


# %% mistake: recursion
# You call a function for each node from within the last one, and Python's stack is not as deep as graphs
# are. Keep lists of what waits and what is ready.
def gradients(output, cotangent, inputs):
    edges = [torch.autograd.graph.get_gradient_edge(tensor)[:2] for tensor in inputs]
    root, place = torch.autograd.graph.get_gradient_edge(output)[:2]
    order, met = [], set()

    def visit(node):
        met.add(node)
        for after, _ in node.next_functions:
            if after is not None and after not in met:
                visit(after)
        order.append(node)

    visit(root)
    slots = {node: [None] * len(node._input_metadata) for node in order}
    slots[root][place] = cotangent
    with torch.no_grad():
        for node in reversed(order):
            if not node.next_functions or all(grad is None for grad in slots[node]):
                continue
            results = node(*slots[node])
            results = results if isinstance(results, tuple) else (results,)
            for (after, slot), grad in zip(node.next_functions, results):
                if after is not None and grad is not None:
                    right = after._input_metadata[slot]
                    grad = grad.sum_to_size(right.shape).to(right.dtype)
                    there = slots[after][slot]
                    slots[after][slot] = grad if there is None else there + grad
    return [slots[edge[0]][edge[1]] if edge[0] in slots else None for edge in edges]


# %% alternate: sorted_first
# An order of all nodes first, depth first with a stack; then one pass along it, with lists that are added
# up when their node comes.
def gradients(output, cotangent, inputs):
    edge_of = torch.autograd.graph.get_gradient_edge
    root = edge_of(output).node
    order, state, stack = [], {root}, [(root, iter(root.next_functions))]
    while stack:
        node, rest = stack[-1]
        for after, _ in rest:
            if after is not None and after not in state:
                state.add(after)
                stack.append((after, iter(after.next_functions)))
                break
        else:
            order.insert(0, node)
            stack.pop()
    arrived = {(root, edge_of(output).output_nr): [cotangent]}
    totals = {}
    with torch.no_grad():
        for node in order:
            given = []
            for slot in range(len(node._input_metadata)):
                parts = arrived.pop((node, slot), [])
                given.append(sum(parts[1:], parts[0]) if parts else None)
                totals[node, slot] = given[-1]
            if hasattr(node, "variable") or not any(g is not None for g in given):
                continue
            back = node(*given)
            if not isinstance(back, tuple):
                back = (back,)
            for edge, grad in zip(node.next_functions, back):
                if edge[0] is not None and grad is not None:
                    fits = edge[0]._input_metadata[edge[1]]
                    if grad.shape != fits.shape:
                        grad = grad.sum_to_size(fits.shape)
                    grad = grad.to(fits.dtype)
                    arrived.setdefault(tuple(edge), []).append(grad)
    return [totals.get((edge_of(t).node, edge_of(t).output_nr)) for t in inputs]


# %% alternate: by_sequence_numbers
# Nodes are numbered as they are made, so a later one never waits for an earlier one: a heap does the order.
import heapq  # noqa: E402


def gradients(output, cotangent, inputs):
    first = torch.autograd.graph.get_gradient_edge(output)
    grads = {first.node: {first.output_nr: cotangent}}
    finished = {}
    # AccumulateGrad nodes have the highest number of all; they are never called anyway
    heap, number = [(-first.node._sequence_nr(), 0, first.node)], 0
    with torch.no_grad():
        while heap:
            node = heapq.heappop(heap)[2]
            mine = finished[node] = grads.pop(node)
            if not node.next_functions:
                continue
            back = node(*[mine.get(i) for i in range(len(node._input_metadata))])
            back = back if isinstance(back, tuple) else (back,)
            for (after, slot), grad in zip(node.next_functions, back):
                if after is None or grad is None:
                    continue
                meta = after._input_metadata[slot]
                grad = grad.type(meta.dtype).sum_to_size(tuple(meta.shape))
                if not after.next_functions:
                    held = finished.setdefault(after, {})
                elif after in grads:
                    held = grads[after]
                else:
                    held = grads[after] = {}
                    number += 1
                    heapq.heappush(heap, (-after._sequence_nr(), number, after))
                held[slot] = grad if slot not in held else torch.add(held[slot], grad)
    edges = [torch.autograd.graph.get_gradient_edge(t) for t in inputs]
    return [finished.get(e.node, {}).get(e.output_nr) for e in edges]
