# %% mistake: only_vertical
# You joined a call with one whose value it takes, and left alone what only stands side by side.
# Horizontal fusion saves launches as well: independent calls of one shape can share a kernel.
def fuse(graph):
    calls = [node for node in graph.nodes if node.op == "call_function"]
    place = {node: number for number, node in enumerate(calls)}
    kernels = [[node] for node in calls]
    joined = True
    while joined:
        joined = False
        for one, other in itertools.combinations(kernels, 2):
            if not may_share(one[0], other[0]):
                continue
            if not any(s in one + other for n in one + other for s in n.all_input_nodes):
                continue
            both = sorted(one + other, key=place.get)
            rest = [kernel for kernel in kernels if kernel not in (one, other)]
            ordered = in_order([both, *rest])
            if ordered:
                kernels, joined = ordered, True
                break
    return in_order(kernels)


def may_share(one, other):
    if not all(torch.Tag.pointwise in node.target.tags for node in (one, other)):
        return False
    return one.meta["val"].shape == other.meta["val"].shape


def in_order(kernels):
    done, ordered, left = set(), [], list(kernels)
    inside = {node for kernel in kernels for node in kernel}
    while left:
        for kernel in left:
            needs = {s for node in kernel for s in node.all_input_nodes if s in inside}
            if needs <= done | set(kernel):
                ordered.append(kernel)
                done |= set(kernel)
                left.remove(kernel)
                break
        else:
            return None
    return ordered


# %% mistake: only_common_inputs
# You joined calls side by side only where they read the same tensor. That saves most, but a kernel
# may work on any tensors of its shape.
def fuse(graph):
    calls = [node for node in graph.nodes if node.op == "call_function"]
    place = {node: number for number, node in enumerate(calls)}
    kernels = [[node] for node in calls]
    joined = True
    while joined:
        joined = False
        for one, other in itertools.combinations(kernels, 2):
            if not may_share(one[0], other[0]):
                continue
            read = [{s for n in kernel for s in n.all_input_nodes} for kernel in (one, other)]
            if not (read[0] & read[1] or read[0] & set(other) or read[1] & set(one)):
                continue
            both = sorted(one + other, key=place.get)
            rest = [kernel for kernel in kernels if kernel not in (one, other)]
            ordered = in_order([both, *rest])
            if ordered:
                kernels, joined = ordered, True
                break
    return in_order(kernels)


def may_share(one, other):
    if not all(torch.Tag.pointwise in node.target.tags for node in (one, other)):
        return False
    return one.meta["val"].shape == other.meta["val"].shape


def in_order(kernels):
    done, ordered, left = set(), [], list(kernels)
    inside = {node for kernel in kernels for node in kernel}
    while left:
        for kernel in left:
            needs = {s for node in kernel for s in node.all_input_nodes if s in inside}
            if needs <= done | set(kernel):
                ordered.append(kernel)
                done |= set(kernel)
                left.remove(kernel)
                break
        else:
            return None
    return ordered


# %% mistake: only_horizontal
# You joined calls that do not depend on each other, and kept a call from the one whose value it takes.
# In a kernel the value goes from one to the next in a register: that is what fusion is best at.
def fuse(graph):
    calls = [node for node in graph.nodes if node.op == "call_function"]
    place = {node: number for number, node in enumerate(calls)}
    kernels = [[node] for node in calls]
    joined = True
    while joined:
        joined = False
        for one, other in itertools.combinations(kernels, 2):
            if not may_share(one[0], other[0]):
                continue
            if any(s in one + other for n in one + other for s in n.all_input_nodes):
                continue
            both = sorted(one + other, key=place.get)
            rest = [kernel for kernel in kernels if kernel not in (one, other)]
            ordered = in_order([both, *rest])
            if ordered:
                kernels, joined = ordered, True
                break
    return in_order(kernels)


def may_share(one, other):
    if not all(torch.Tag.pointwise in node.target.tags for node in (one, other)):
        return False
    return one.meta["val"].shape == other.meta["val"].shape


def in_order(kernels):
    done, ordered, left = set(), [], list(kernels)
    inside = {node for kernel in kernels for node in kernel}
    while left:
        for kernel in left:
            needs = {s for node in kernel for s in node.all_input_nodes if s in inside}
            if needs <= done | set(kernel):
                ordered.append(kernel)
                done |= set(kernel)
                left.remove(kernel)
                break
        else:
            return None
    return ordered


# %% mistake: ignores_ways_round
# You put calls into one kernel although a way from one to the other leads through another kernel.
# That one must run after the first and before the second: the kernel would wait for itself.
def fuse(graph):
    calls = [node for node in graph.nodes if node.op == "call_function"]
    place = {node: number for number, node in enumerate(calls)}
    kernels = [[node] for node in calls]
    joined = True
    while joined:
        joined = False
        for one, other in itertools.combinations(kernels, 2):
            if not may_share(one[0], other[0]):
                continue
            both = sorted(one + other, key=place.get)
            rest = [kernel for kernel in kernels if kernel not in (one, other)]
            kernels, joined = [both, *rest], True
            break
    return sorted(kernels, key=lambda kernel: place[kernel[0]])


def may_share(one, other):
    if not all(torch.Tag.pointwise in node.target.tags for node in (one, other)):
        return False
    return one.meta["val"].shape == other.meta["val"].shape


def in_order(kernels):
    done, ordered, left = set(), [], list(kernels)
    inside = {node for kernel in kernels for node in kernel}
    while left:
        for kernel in left:
            needs = {s for node in kernel for s in node.all_input_nodes if s in inside}
            if needs <= done | set(kernel):
                ordered.append(kernel)
                done |= set(kernel)
                left.remove(kernel)
                break
        else:
            return None
    return ordered


# %% mistake: one_step_round
# You looked for ways round through one call only. A way through two or ten kernels holds as well: ask
# whether the kernels as a whole can be put in an order.
def fuse(graph):
    calls = [node for node in graph.nodes if node.op == "call_function"]
    place = {node: number for number, node in enumerate(calls)}
    kernels = [[node] for node in calls]
    joined = True
    while joined:
        joined = False
        for one, other in itertools.combinations(kernels, 2):
            if not may_share(one[0], other[0]):
                continue
            both = sorted(one + other, key=place.get)
            rest = [kernel for kernel in kernels if kernel not in (one, other)]
            if not any(between(one, k, other) or between(other, k, one) for k in rest):
                kernels, joined = [both, *rest], True
                break
    return in_order(kernels) or kernels


def between(one, kernel, other):
    taken = {s for node in kernel for s in node.all_input_nodes}
    given = {s for node in other for s in node.all_input_nodes}
    return bool(taken & set(one) and given & set(kernel))


def may_share(one, other):
    if not all(torch.Tag.pointwise in node.target.tags for node in (one, other)):
        return False
    return one.meta["val"].shape == other.meta["val"].shape


def in_order(kernels):
    done, ordered, left = set(), [], list(kernels)
    inside = {node for kernel in kernels for node in kernel}
    while left:
        for kernel in left:
            needs = {s for node in kernel for s in node.all_input_nodes if s in inside}
            if needs <= done | set(kernel):
                ordered.append(kernel)
                done |= set(kernel)
                left.remove(kernel)
                break
        else:
            return None
    return ordered


# %% mistake: any_shape
# You joined calls of different shapes. A kernel runs over one set of indices; a result of another shape
# needs another loop.
def fuse(graph):
    calls = [node for node in graph.nodes if node.op == "call_function"]
    place = {node: number for number, node in enumerate(calls)}
    kernels = [[node] for node in calls]
    joined = True
    while joined:
        joined = False
        for one, other in itertools.combinations(kernels, 2):
            if not may_share(one[0], other[0]):
                continue
            both = sorted(one + other, key=place.get)
            rest = [kernel for kernel in kernels if kernel not in (one, other)]
            ordered = in_order([both, *rest])
            if ordered:
                kernels, joined = ordered, True
                break
    return in_order(kernels)


def may_share(one, other):
    if not all(torch.Tag.pointwise in node.target.tags for node in (one, other)):
        return False
    return True


def in_order(kernels):
    done, ordered, left = set(), [], list(kernels)
    inside = {node for kernel in kernels for node in kernel}
    while left:
        for kernel in left:
            needs = {s for node in kernel for s in node.all_input_nodes if s in inside}
            if needs <= done | set(kernel):
                ordered.append(kernel)
                done |= set(kernel)
                left.remove(kernel)
                break
        else:
            return None
    return ordered


# %% mistake: input_shapes_too
# You asked that the inputs have the kernel's shape too. A smaller one is broadcast as it is read: what
# counts is the shape of the result.
def fuse(graph):
    calls = [node for node in graph.nodes if node.op == "call_function"]
    place = {node: number for number, node in enumerate(calls)}
    kernels = [[node] for node in calls]
    joined = True
    while joined:
        joined = False
        for one, other in itertools.combinations(kernels, 2):
            if not may_share(one[0], other[0]):
                continue
            both = sorted(one + other, key=place.get)
            rest = [kernel for kernel in kernels if kernel not in (one, other)]
            ordered = in_order([both, *rest])
            if ordered:
                kernels, joined = ordered, True
                break
    return in_order(kernels)


def may_share(one, other):
    if not all(torch.Tag.pointwise in node.target.tags for node in (one, other)):
        return False
    nodes = [one, other, *one.all_input_nodes, *other.all_input_nodes]
    return len({node.meta["val"].shape for node in nodes}) == 1


def in_order(kernels):
    done, ordered, left = set(), [], list(kernels)
    inside = {node for kernel in kernels for node in kernel}
    while left:
        for kernel in left:
            needs = {s for node in kernel for s in node.all_input_nodes if s in inside}
            if needs <= done | set(kernel):
                ordered.append(kernel)
                done |= set(kernel)
                left.remove(kernel)
                break
        else:
            return None
    return ordered


# %% mistake: everything_fuses
# You joined calls that are not pointwise. In a sum or a product an element of the result takes many
# elements of the input; they are not in the same kernel's hand.
def fuse(graph):
    calls = [node for node in graph.nodes if node.op == "call_function"]
    place = {node: number for number, node in enumerate(calls)}
    kernels = [[node] for node in calls]
    joined = True
    while joined:
        joined = False
        for one, other in itertools.combinations(kernels, 2):
            if not may_share(one[0], other[0]):
                continue
            both = sorted(one + other, key=place.get)
            rest = [kernel for kernel in kernels if kernel not in (one, other)]
            ordered = in_order([both, *rest])
            if ordered:
                kernels, joined = ordered, True
                break
    return in_order(kernels)


def may_share(one, other):
    return one.meta["val"].shape == other.meta["val"].shape


def in_order(kernels):
    done, ordered, left = set(), [], list(kernels)
    inside = {node for kernel in kernels for node in kernel}
    while left:
        for kernel in left:
            needs = {s for node in kernel for s in node.all_input_nodes if s in inside}
            if needs <= done | set(kernel):
                ordered.append(kernel)
                done |= set(kernel)
                left.remove(kernel)
                break
        else:
            return None
    return ordered


# %% mistake: order_of_first_calls
# Your kernels are right and their order is not. A kernel that starts early in the graph may end with
# a call that takes the result of a later one: order them by what they take.
def fuse(graph):
    calls = [node for node in graph.nodes if node.op == "call_function"]
    place = {node: number for number, node in enumerate(calls)}
    kernels = [[node] for node in calls]
    joined = True
    while joined:
        joined = False
        for one, other in itertools.combinations(kernels, 2):
            if not may_share(one[0], other[0]):
                continue
            both = sorted(one + other, key=place.get)
            rest = [kernel for kernel in kernels if kernel not in (one, other)]
            ordered = in_order([both, *rest])
            if ordered:
                kernels, joined = ordered, True
                break
    return sorted(kernels, key=lambda kernel: place[kernel[0]])


def may_share(one, other):
    if not all(torch.Tag.pointwise in node.target.tags for node in (one, other)):
        return False
    return one.meta["val"].shape == other.meta["val"].shape


def in_order(kernels):
    done, ordered, left = set(), [], list(kernels)
    inside = {node for kernel in kernels for node in kernel}
    while left:
        for kernel in left:
            needs = {s for node in kernel for s in node.all_input_nodes if s in inside}
            if needs <= done | set(kernel):
                ordered.append(kernel)
                done |= set(kernel)
                left.remove(kernel)
                break
        else:
            return None
    return ordered


# %% mistake: counts_elements
# You joined calls whose results have as many elements. A row and a column have as many, and need two
# loops over other indices: the shape must be the same.
def fuse(graph):
    calls = [node for node in graph.nodes if node.op == "call_function"]
    kernels = [[node] for node in calls]
    while (found := joinable(kernels)) is not None:
        one, other = found
        joined = sorted([*one, *other], key=calls.index)
        kernels = [joined if k is one else k for k in kernels if k is not other]
    return [kernels[number] for number in order_of(kernels)]


def joinable(kernels):
    for one, other in itertools.combinations(kernels, 2):
        both = [*one, *other]
        pointwise = all(torch.Tag.pointwise in node.target.tags for node in both)
        if pointwise and len({node.meta["val"].numel() for node in both}) == 1:
            with suppress(CycleError):
                order_of([both, *(k for k in kernels if k is not one and k is not other)])
                return one, other
    return None


def order_of(kernels):
    home = {node: number for number, kernel in enumerate(kernels) for node in kernel}
    needs = {
        number: {home[s] for node in kernel for s in node.all_input_nodes if s in home} - {number}
        for number, kernel in enumerate(kernels)
    }
    return list(TopologicalSorter(needs).static_order())


# %% alternate: reachability
# What each kernel reaches through others, kept as sets: two may join if no way has a third in it.
def fuse(graph):
    calls = [node for node in graph.nodes if node.op == "call_function"]
    home = {node: frozenset([node]) for node in calls}

    def after(kernel):
        users = {user for node in kernel for user in node.users if user in home}
        return {home[user] for user in users} - {kernel}

    def reaches(start, goal):
        """Is there a way from one kernel to another with a third between?"""
        seen, waiting = set(), [kernel for kernel in after(start) if kernel != goal]
        while waiting:
            kernel = waiting.pop()
            if kernel == goal:
                return True
            if kernel not in seen:
                seen.add(kernel)
                waiting += after(kernel)
        return False

    def key(kernel):
        node = next(iter(kernel))
        pointwise = torch.Tag.pointwise in node.target.tags
        return tuple(node.meta["val"].shape) if pointwise else id(node)

    changed = True
    while changed:
        changed = False
        for later in range(len(calls)):
            for sooner in range(later):
                one, other = home[calls[sooner]], home[calls[later]]
                if one == other or key(one) != key(other):
                    continue
                if not reaches(one, other) and not reaches(other, one):
                    for node in one | other:
                        home[node] = one | other
                    changed = True

    result, done = [], set()

    def emit(kernel):
        if kernel in done:
            return
        done.add(kernel)
        for node in kernel:
            for source in node.all_input_nodes:
                if source in home:
                    emit(home[source])
        result.append([node for node in calls if node in kernel])

    for node in calls:
        emit(home[node])
    return result


# %% alternate: by_waves
# Run the graph: when a kernel's calls are ready, take all of one shape that are. Then close gaps.
def fuse(graph):
    calls = [node for node in graph.nodes if node.op == "call_function"]
    left, done, kernels = list(calls), set(), []
    known = set(calls)

    def ready(node, extra=()):
        return all(s in done or s in extra or s not in known for s in node.all_input_nodes)

    while left:
        first = next((n for n in left if ready(n) and not fusible(n)), None)
        kernel = [first] if first is not None else []
        if first is None:
            first = next(n for n in left if ready(n))
            for node in left:
                if shape_of(node) == shape_of(first) and fusible(node) and ready(node, kernel):
                    kernel.append(node)
        kernels.append(kernel)
        done |= set(kernel)
        left = [node for node in left if node not in done]

    for _ in calls:
        for a in range(len(kernels)):
            for b in range(a + 1, len(kernels)):
                one, other = kernels[a], kernels[b]
                if not fusible(one[0]) or not fusible(other[0]):
                    continue
                if shape_of(one[0]) != shape_of(other[0]):
                    continue
                rest = kernels[:a] + kernels[a + 1 : b] + kernels[b + 1 :]
                sorted_again = arrange([[n for n in calls if n in one or n in other], *rest], known)
                if sorted_again is not None:
                    kernels = sorted_again
                    break
            else:
                continue
            break
    return kernels


def fusible(node):
    return torch.Tag.pointwise in node.target.tags


def shape_of(node):
    return list(node.meta["val"].shape)


def arrange(kernels, known):
    done, result = set(), []
    while len(result) < len(kernels):
        for kernel in kernels:
            taken = {s for n in kernel for s in n.all_input_nodes if s in known}
            if kernel not in result and taken <= done | set(kernel):
                result.append(kernel)
                done |= set(kernel)
                break
        else:
            return None
    return result


# %% alternate: joined_go_last
# What was joined goes to the end of the list, so that other pairs are found than in the order of the
# graph: other kernels, sometimes more of them, and no two that could be one.
def fuse(graph):
    calls = [node for node in graph.nodes if node.op == "call_function"]
    kernels = [[node] for node in calls]
    while (found := joinable(kernels)) is not None:
        joined = sorted([*found[0], *found[1]], key=calls.index)
        kernels = [*(kernel for kernel in kernels if kernel not in found), joined]
    return [kernels[number] for number in order_of(kernels)]


def joinable(kernels):
    for one, other in itertools.combinations(kernels, 2):
        both = [*one, *other]
        pointwise = all(torch.Tag.pointwise in node.target.tags for node in both)
        if pointwise and len({node.meta["val"].shape for node in both}) == 1:
            with suppress(CycleError):
                order_of([both, *(k for k in kernels if k is not one and k is not other)])
                return one, other
    return None


def order_of(kernels):
    home = {node: number for number, kernel in enumerate(kernels) for node in kernel}
    needs = {
        number: {home[s] for node in kernel for s in node.all_input_nodes if s in home} - {number}
        for number, kernel in enumerate(kernels)
    }
    return list(TopologicalSorter(needs).static_order())
