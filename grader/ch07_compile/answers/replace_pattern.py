# %% blocked: replace_pattern
# `torch.fx.replace_pattern` matches and replaces for you. Write the matcher yourself.
def replace_pattern(gm, pattern, replacement):
    return len(torch.fx.replace_pattern(gm, pattern, replacement))


# %% mistake: placeholders_match_anything
# You let a placeholder stand for one thing here and another there. `sigmoid(a) * a` has one `a`: what it
# stood for first it must stand for again.
def replace_pattern(gm, pattern, replacement):
    graph, count, fresh = gm.graph, 0, set()
    goal = list(pattern.nodes)[-1].args[0]
    for node in list(graph.nodes):
        bound = {}
        if not matches(goal, node, bound):
            continue
        body = {bound[one] for one in bound if one.op != "placeholder"}
        if body & fresh or any(set(one.users) - body for one in body - {node}):
            continue
        count += 1
        values = {}
        holes = [one for one in pattern.nodes if one.op == "placeholder"]
        with graph.inserting_before(node):
            for one in replacement.nodes:
                if one.op == "placeholder":
                    values[one] = bound.get(holes[len(values)])
                elif one.op == "output":
                    result = values[one.args[0]]
                else:
                    values[one] = graph.node_copy(one, values.__getitem__)
                    fresh.add(values[one])
        node.replace_all_uses_with(result)
        for one in reversed([one for one in graph.nodes if one in body]):
            graph.erase_node(one)
    gm.recompile()
    return count


def matches(model, found, bound):
    if isinstance(model, fx.Node):
        if model in bound:
            return True
        bound[model] = found
        if model.op == "placeholder":
            return True
        if not isinstance(found, fx.Node) or (model.op, model.target) != (found.op, found.target):
            return False
        return matches(model.args, found.args, bound) and matches(
            dict(model.kwargs), dict(found.kwargs), bound
        )
    if isinstance(model, (tuple, list)) and isinstance(found, (tuple, list)):
        same = len(model) == len(found)
        return same and all(matches(one, two, bound) for one, two in zip(model, found))
    if isinstance(model, dict) and isinstance(found, dict):
        same = model.keys() == found.keys()
        return same and all(matches(model[key], found[key], bound) for key in model)
    return matches_constant(model, found)


def matches_constant(one, two):
    if isinstance(one, fx.Node) or isinstance(two, fx.Node):
        return one is two
    return type(one) is type(two) and repr(one) == repr(two)


# %% mistake: placeholders_are_nodes
# You let placeholders stand for nodes only. Where the graph has a number, a placeholder stands for the
# number.
def replace_pattern(gm, pattern, replacement):
    graph, count, fresh = gm.graph, 0, set()
    goal = list(pattern.nodes)[-1].args[0]
    for node in list(graph.nodes):
        bound = {}
        if not matches(goal, node, bound):
            continue
        body = {bound[one] for one in bound if one.op != "placeholder"}
        if body & fresh or any(set(one.users) - body for one in body - {node}):
            continue
        count += 1
        values = {}
        holes = [one for one in pattern.nodes if one.op == "placeholder"]
        with graph.inserting_before(node):
            for one in replacement.nodes:
                if one.op == "placeholder":
                    values[one] = bound.get(holes[len(values)])
                elif one.op == "output":
                    result = values[one.args[0]]
                else:
                    values[one] = graph.node_copy(one, values.__getitem__)
                    fresh.add(values[one])
        node.replace_all_uses_with(result)
        for one in reversed([one for one in graph.nodes if one in body]):
            graph.erase_node(one)
    gm.recompile()
    return count


def matches(model, found, bound):
    if isinstance(model, fx.Node):
        if model in bound:
            return matches_constant(bound[model], found)
        bound[model] = found
        if model.op == "placeholder":
            return isinstance(found, fx.Node)
        if not isinstance(found, fx.Node) or (model.op, model.target) != (found.op, found.target):
            return False
        return matches(model.args, found.args, bound) and matches(
            dict(model.kwargs), dict(found.kwargs), bound
        )
    if isinstance(model, (tuple, list)) and isinstance(found, (tuple, list)):
        same = len(model) == len(found)
        return same and all(matches(one, two, bound) for one, two in zip(model, found))
    if isinstance(model, dict) and isinstance(found, dict):
        same = model.keys() == found.keys()
        return same and all(matches(model[key], found[key], bound) for key in model)
    return matches_constant(model, found)


def matches_constant(one, two):
    if isinstance(one, fx.Node) or isinstance(two, fx.Node):
        return one is two
    return type(one) is type(two) and repr(one) == repr(two)


# %% mistake: equal_numbers
# You compared constants with `==`, and to Python `1`, `1.0` and `True` are equal. To an operator they are
# three different arguments.
def replace_pattern(gm, pattern, replacement):
    graph, count, fresh = gm.graph, 0, set()
    goal = list(pattern.nodes)[-1].args[0]
    for node in list(graph.nodes):
        bound = {}
        if not matches(goal, node, bound):
            continue
        body = {bound[one] for one in bound if one.op != "placeholder"}
        if body & fresh or any(set(one.users) - body for one in body - {node}):
            continue
        count += 1
        values = {}
        holes = [one for one in pattern.nodes if one.op == "placeholder"]
        with graph.inserting_before(node):
            for one in replacement.nodes:
                if one.op == "placeholder":
                    values[one] = bound.get(holes[len(values)])
                elif one.op == "output":
                    result = values[one.args[0]]
                else:
                    values[one] = graph.node_copy(one, values.__getitem__)
                    fresh.add(values[one])
        node.replace_all_uses_with(result)
        for one in reversed([one for one in graph.nodes if one in body]):
            graph.erase_node(one)
    gm.recompile()
    return count


def matches(model, found, bound):
    if isinstance(model, fx.Node):
        if model in bound:
            return matches_constant(bound[model], found)
        bound[model] = found
        if model.op == "placeholder":
            return True
        if not isinstance(found, fx.Node) or (model.op, model.target) != (found.op, found.target):
            return False
        return matches(model.args, found.args, bound) and matches(
            dict(model.kwargs), dict(found.kwargs), bound
        )
    if isinstance(model, (tuple, list)) and isinstance(found, (tuple, list)):
        same = len(model) == len(found)
        return same and all(matches(one, two, bound) for one, two in zip(model, found))
    if isinstance(model, dict) and isinstance(found, dict):
        same = model.keys() == found.keys()
        return same and all(matches(model[key], found[key], bound) for key in model)
    return matches_constant(model, found)


def matches_constant(one, two):
    if isinstance(one, fx.Node) or isinstance(two, fx.Node):
        return one is two
    return one == two


# %% mistake: no_keywords
# You did not compare keyword arguments. `add(x, 1)` and `add(x, 1, alpha=2)` are different calls.
def replace_pattern(gm, pattern, replacement):
    graph, count, fresh = gm.graph, 0, set()
    goal = list(pattern.nodes)[-1].args[0]
    for node in list(graph.nodes):
        bound = {}
        if not matches(goal, node, bound):
            continue
        body = {bound[one] for one in bound if one.op != "placeholder"}
        if body & fresh or any(set(one.users) - body for one in body - {node}):
            continue
        count += 1
        values = {}
        holes = [one for one in pattern.nodes if one.op == "placeholder"]
        with graph.inserting_before(node):
            for one in replacement.nodes:
                if one.op == "placeholder":
                    values[one] = bound.get(holes[len(values)])
                elif one.op == "output":
                    result = values[one.args[0]]
                else:
                    values[one] = graph.node_copy(one, values.__getitem__)
                    fresh.add(values[one])
        node.replace_all_uses_with(result)
        for one in reversed([one for one in graph.nodes if one in body]):
            graph.erase_node(one)
    gm.recompile()
    return count


def matches(model, found, bound):
    if isinstance(model, fx.Node):
        if model in bound:
            return matches_constant(bound[model], found)
        bound[model] = found
        if model.op == "placeholder":
            return True
        if not isinstance(found, fx.Node) or (model.op, model.target) != (found.op, found.target):
            return False
        return matches(model.args, found.args, bound)
    if isinstance(model, (tuple, list)) and isinstance(found, (tuple, list)):
        same = len(model) == len(found)
        return same and all(matches(one, two, bound) for one, two in zip(model, found))
    if isinstance(model, dict) and isinstance(found, dict):
        same = model.keys() == found.keys()
        return same and all(matches(model[key], found[key], bound) for key in model)
    return matches_constant(model, found)


def matches_constant(one, two):
    if isinstance(one, fx.Node) or isinstance(two, fx.Node):
        return one is two
    return type(one) is type(two) and repr(one) == repr(two)


# %% mistake: computes_twice
# You replaced a match although a value inside it is used elsewhere. That value must then be computed as
# well, and the graph does more than before.
def replace_pattern(gm, pattern, replacement):
    graph, count, fresh = gm.graph, 0, set()
    goal = list(pattern.nodes)[-1].args[0]
    for node in list(graph.nodes):
        bound = {}
        if not matches(goal, node, bound):
            continue
        body = {bound[one] for one in bound if one.op != "placeholder"}
        if body & fresh:
            continue
        count += 1
        values = {}
        holes = [one for one in pattern.nodes if one.op == "placeholder"]
        with graph.inserting_before(node):
            for one in replacement.nodes:
                if one.op == "placeholder":
                    values[one] = bound.get(holes[len(values)])
                elif one.op == "output":
                    result = values[one.args[0]]
                else:
                    values[one] = graph.node_copy(one, values.__getitem__)
                    fresh.add(values[one])
        node.replace_all_uses_with(result)
        for one in reversed([one for one in graph.nodes if one in body]):
            if not one.users:
                graph.erase_node(one)
    gm.recompile()
    return count


def matches(model, found, bound):
    if isinstance(model, fx.Node):
        if model in bound:
            return matches_constant(bound[model], found)
        bound[model] = found
        if model.op == "placeholder":
            return True
        if not isinstance(found, fx.Node) or (model.op, model.target) != (found.op, found.target):
            return False
        return matches(model.args, found.args, bound) and matches(
            dict(model.kwargs), dict(found.kwargs), bound
        )
    if isinstance(model, (tuple, list)) and isinstance(found, (tuple, list)):
        same = len(model) == len(found)
        return same and all(matches(one, two, bound) for one, two in zip(model, found))
    if isinstance(model, dict) and isinstance(found, dict):
        same = model.keys() == found.keys()
        return same and all(matches(model[key], found[key], bound) for key in model)
    return matches_constant(model, found)


def matches_constant(one, two):
    if isinstance(one, fx.Node) or isinstance(two, fx.Node):
        return one is two
    return type(one) is type(two) and repr(one) == repr(two)


# %% mistake: forgets_the_output
# You looked whether calls use a value inside the match, and passed over the output node. What the graph
# returns is used, too.
def replace_pattern(gm, pattern, replacement):
    graph, count, fresh = gm.graph, 0, set()
    goal = list(pattern.nodes)[-1].args[0]
    for node in list(graph.nodes):
        bound = {}
        if not matches(goal, node, bound):
            continue
        body = {bound[one] for one in bound if one.op != "placeholder"}
        if body & fresh or any(outside(one, body) for one in body - {node}):
            continue
        count += 1
        values = {}
        holes = [one for one in pattern.nodes if one.op == "placeholder"]
        with graph.inserting_before(node):
            for one in replacement.nodes:
                if one.op == "placeholder":
                    values[one] = bound.get(holes[len(values)])
                elif one.op == "output":
                    result = values[one.args[0]]
                else:
                    values[one] = graph.node_copy(one, values.__getitem__)
                    fresh.add(values[one])
        node.replace_all_uses_with(result)
        for one in reversed([one for one in graph.nodes if one in body]):
            if not one.users:
                graph.erase_node(one)
    gm.recompile()
    return count


def outside(node, body):
    return [user for user in node.users if user not in body and user.op != "output"]


def matches(model, found, bound):
    if isinstance(model, fx.Node):
        if model in bound:
            return matches_constant(bound[model], found)
        bound[model] = found
        if model.op == "placeholder":
            return True
        if not isinstance(found, fx.Node) or (model.op, model.target) != (found.op, found.target):
            return False
        return matches(model.args, found.args, bound) and matches(
            dict(model.kwargs), dict(found.kwargs), bound
        )
    if isinstance(model, (tuple, list)) and isinstance(found, (tuple, list)):
        same = len(model) == len(found)
        return same and all(matches(one, two, bound) for one, two in zip(model, found))
    if isinstance(model, dict) and isinstance(found, dict):
        same = model.keys() == found.keys()
        return same and all(matches(model[key], found[key], bound) for key in model)
    return matches_constant(model, found)


def matches_constant(one, two):
    if isinstance(one, fx.Node) or isinstance(two, fx.Node):
        return one is two
    return type(one) is type(two) and repr(one) == repr(two)


# %% mistake: matches_its_own
# You went over the graph again and matched what a replacement had brought in. A pattern that occurs in
# its own replacement would never come to an end.
def replace_pattern(gm, pattern, replacement):
    graph, count, fresh = gm.graph, 0, set()
    goal = list(pattern.nodes)[-1].args[0]
    for node in (node for _ in range(2) for node in list(graph.nodes)):
        bound = {}
        if not matches(goal, node, bound):
            continue
        body = {bound[one] for one in bound if one.op != "placeholder"}
        if any(set(one.users) - body for one in body - {node}):
            continue
        count += 1
        values = {}
        holes = [one for one in pattern.nodes if one.op == "placeholder"]
        with graph.inserting_before(node):
            for one in replacement.nodes:
                if one.op == "placeholder":
                    values[one] = bound.get(holes[len(values)])
                elif one.op == "output":
                    result = values[one.args[0]]
                else:
                    values[one] = graph.node_copy(one, values.__getitem__)
                    fresh.add(values[one])
        node.replace_all_uses_with(result)
        for one in reversed([one for one in graph.nodes if one in body]):
            graph.erase_node(one)
    gm.recompile()
    return count


def matches(model, found, bound):
    if isinstance(model, fx.Node):
        if model in bound:
            return matches_constant(bound[model], found)
        bound[model] = found
        if model.op == "placeholder":
            return True
        if not isinstance(found, fx.Node) or (model.op, model.target) != (found.op, found.target):
            return False
        return matches(model.args, found.args, bound) and matches(
            dict(model.kwargs), dict(found.kwargs), bound
        )
    if isinstance(model, (tuple, list)) and isinstance(found, (tuple, list)):
        same = len(model) == len(found)
        return same and all(matches(one, two, bound) for one, two in zip(model, found))
    if isinstance(model, dict) and isinstance(found, dict):
        same = model.keys() == found.keys()
        return same and all(matches(model[key], found[key], bound) for key in model)
    return matches_constant(model, found)


def matches_constant(one, two):
    if isinstance(one, fx.Node) or isinstance(two, fx.Node):
        return one is two
    return type(one) is type(two) and repr(one) == repr(two)


# %% mistake: last_match_first
# You went through the graph from its end. Where matches overlap, the first in the graph is the one to
# replace.
def replace_pattern(gm, pattern, replacement):
    graph, count, fresh = gm.graph, 0, set()
    goal = list(pattern.nodes)[-1].args[0]
    for node in reversed(list(graph.nodes)):
        if node._erased:
            continue
        bound = {}
        if not matches(goal, node, bound):
            continue
        body = {bound[one] for one in bound if one.op != "placeholder"}
        if body & fresh or any(set(one.users) - body for one in body - {node}):
            continue
        count += 1
        values = {}
        holes = [one for one in pattern.nodes if one.op == "placeholder"]
        with graph.inserting_before(node):
            for one in replacement.nodes:
                if one.op == "placeholder":
                    values[one] = bound.get(holes[len(values)])
                elif one.op == "output":
                    result = values[one.args[0]]
                else:
                    values[one] = graph.node_copy(one, values.__getitem__)
                    fresh.add(values[one])
        node.replace_all_uses_with(result)
        for one in reversed([one for one in graph.nodes if one in body]):
            graph.erase_node(one)
    gm.recompile()
    return count


def matches(model, found, bound):
    if isinstance(model, fx.Node):
        if model in bound:
            return matches_constant(bound[model], found)
        bound[model] = found
        if model.op == "placeholder":
            return True
        if not isinstance(found, fx.Node) or (model.op, model.target) != (found.op, found.target):
            return False
        return matches(model.args, found.args, bound) and matches(
            dict(model.kwargs), dict(found.kwargs), bound
        )
    if isinstance(model, (tuple, list)) and isinstance(found, (tuple, list)):
        same = len(model) == len(found)
        return same and all(matches(one, two, bound) for one, two in zip(model, found))
    if isinstance(model, dict) and isinstance(found, dict):
        same = model.keys() == found.keys()
        return same and all(matches(model[key], found[key], bound) for key in model)
    return matches_constant(model, found)


def matches_constant(one, two):
    if isinstance(one, fx.Node) or isinstance(two, fx.Node):
        return one is two
    return type(one) is type(two) and repr(one) == repr(two)


# %% mistake: leaves_the_old
# You left the matched nodes in the graph. Nobody takes their values any more, and they still run.
def replace_pattern(gm, pattern, replacement):
    graph, count, fresh = gm.graph, 0, set()
    goal = list(pattern.nodes)[-1].args[0]
    for node in list(graph.nodes):
        bound = {}
        if not matches(goal, node, bound):
            continue
        body = {bound[one] for one in bound if one.op != "placeholder"}
        if body & fresh or not node.users or any(set(one.users) - body for one in body - {node}):
            continue
        count += 1
        values = {}
        holes = [one for one in pattern.nodes if one.op == "placeholder"]
        with graph.inserting_before(node):
            for one in replacement.nodes:
                if one.op == "placeholder":
                    values[one] = bound.get(holes[len(values)])
                elif one.op == "output":
                    result = values[one.args[0]]
                else:
                    values[one] = graph.node_copy(one, values.__getitem__)
                    fresh.add(values[one])
        node.replace_all_uses_with(result)
    gm.recompile()
    return count


def matches(model, found, bound):
    if isinstance(model, fx.Node):
        if model in bound:
            return matches_constant(bound[model], found)
        bound[model] = found
        if model.op == "placeholder":
            return True
        if not isinstance(found, fx.Node) or (model.op, model.target) != (found.op, found.target):
            return False
        return matches(model.args, found.args, bound) and matches(
            dict(model.kwargs), dict(found.kwargs), bound
        )
    if isinstance(model, (tuple, list)) and isinstance(found, (tuple, list)):
        same = len(model) == len(found)
        return same and all(matches(one, two, bound) for one, two in zip(model, found))
    if isinstance(model, dict) and isinstance(found, dict):
        same = model.keys() == found.keys()
        return same and all(matches(model[key], found[key], bound) for key in model)
    return matches_constant(model, found)


def matches_constant(one, two):
    if isinstance(one, fx.Node) or isinstance(two, fx.Node):
        return one is two
    return type(one) is type(two) and repr(one) == repr(two)


# %% mistake: counts_nodes
# You returned the number of nodes that went. Asked is the number of matches.
def replace_pattern(gm, pattern, replacement):
    graph, count, fresh = gm.graph, 0, set()
    goal = list(pattern.nodes)[-1].args[0]
    for node in list(graph.nodes):
        bound = {}
        if not matches(goal, node, bound):
            continue
        body = {bound[one] for one in bound if one.op != "placeholder"}
        if body & fresh or any(set(one.users) - body for one in body - {node}):
            continue
        count += len(body)
        values = {}
        holes = [one for one in pattern.nodes if one.op == "placeholder"]
        with graph.inserting_before(node):
            for one in replacement.nodes:
                if one.op == "placeholder":
                    values[one] = bound.get(holes[len(values)])
                elif one.op == "output":
                    result = values[one.args[0]]
                else:
                    values[one] = graph.node_copy(one, values.__getitem__)
                    fresh.add(values[one])
        node.replace_all_uses_with(result)
        for one in reversed([one for one in graph.nodes if one in body]):
            graph.erase_node(one)
    gm.recompile()
    return count


def matches(model, found, bound):
    if isinstance(model, fx.Node):
        if model in bound:
            return matches_constant(bound[model], found)
        bound[model] = found
        if model.op == "placeholder":
            return True
        if not isinstance(found, fx.Node) or (model.op, model.target) != (found.op, found.target):
            return False
        return matches(model.args, found.args, bound) and matches(
            dict(model.kwargs), dict(found.kwargs), bound
        )
    if isinstance(model, (tuple, list)) and isinstance(found, (tuple, list)):
        same = len(model) == len(found)
        return same and all(matches(one, two, bound) for one, two in zip(model, found))
    if isinstance(model, dict) and isinstance(found, dict):
        same = model.keys() == found.keys()
        return same and all(matches(model[key], found[key], bound) for key in model)
    return matches_constant(model, found)


def matches_constant(one, two):
    if isinstance(one, fx.Node) or isinstance(two, fx.Node):
        return one is two
    return type(one) is type(two) and repr(one) == repr(two)


# %% mistake: never_recompiles
# You change the graph and leave the module's code as it was. A `GraphModule` runs code that was written when it
# was made: `gm.recompile()` writes it anew.
def replace_pattern(gm: fx.GraphModule, pattern: fx.Graph, replacement: fx.Graph) -> int:
    """Replace each match of a pattern, in place, and return how many there were."""

    def is_same(one: Any, other: Any) -> bool:
        if isinstance(one, fx.Node) or isinstance(other, fx.Node):
            return one is other
        return type(one) is type(other) and repr(one) == repr(other)

    def match(model: Any, found: Any, stands_for: dict[fx.Node, Any]) -> bool:
        """Say whether `found` matches, and write down what the pattern's nodes stand for."""
        if isinstance(model, list | tuple):
            return (
                isinstance(found, list | tuple)
                and len(model) == len(found)
                and all(match(*pair, stands_for) for pair in zip(model, found, strict=True))
            )
        if not isinstance(model, fx.Node):
            return is_same(model, found)
        if model in stands_for:
            return is_same(stands_for[model], found)
        stands_for[model] = found
        if model.op == "placeholder":
            return True
        return (
            isinstance(found, fx.Node)
            and found not in new
            and (model.op, model.target) == (found.op, found.target)
            and match(model.args, found.args, stands_for)
            and match(sorted(model.kwargs.items()), sorted(found.kwargs.items()), stands_for)
        )

    def copy_in(stands_for: dict[fx.Node, Any]) -> Any:
        """Copy the replacement's calls and return its value."""
        supplied = iter(stands_for[node] for node in pattern.nodes if node.op == "placeholder")
        values: dict[fx.Node, Any] = {}
        for node in replacement.nodes:
            if node.op == "placeholder":
                values[node] = next(supplied)
            elif node.op != "output":
                values[node] = gm.graph.node_copy(node, values.__getitem__)
                new.add(values[node])
        return values[last(replacement)]

    def last(graph: fx.Graph) -> fx.Node:
        return next(iter(reversed(graph.nodes))).args[0]

    new: set[fx.Node] = set()
    count = 0
    for node in list(gm.graph.nodes):
        stands_for: dict[fx.Node, Any] = {}
        if not match(last(pattern), node, stands_for):
            continue
        calls = [one for one in pattern.nodes if one.op not in ("placeholder", "output")]
        # two equal calls of the pattern may have found one node
        body = list(dict.fromkeys(stands_for[one] for one in calls))
        if any(user not in body for one in body if one is not node for user in one.users):
            continue
        count += 1
        with gm.graph.inserting_before(node):
            node.replace_all_uses_with(copy_in(stands_for))
        for one in reversed(body):  # users before what they use
            gm.graph.erase_node(one)
    return count


# %% mistake: wants_one_user
# You refuse a match whose result is used elsewhere. It is replaced, so whoever uses it takes the new value; only
# values inside of the match must have no users outside.
def replace_pattern(gm: fx.GraphModule, pattern: fx.Graph, replacement: fx.Graph) -> int:
    """Replace each match of a pattern, in place, and return how many there were."""

    def is_same(one: Any, other: Any) -> bool:
        if isinstance(one, fx.Node) or isinstance(other, fx.Node):
            return one is other
        return type(one) is type(other) and repr(one) == repr(other)

    def match(model: Any, found: Any, stands_for: dict[fx.Node, Any]) -> bool:
        """Say whether `found` matches, and write down what the pattern's nodes stand for."""
        if isinstance(model, list | tuple):
            return (
                isinstance(found, list | tuple)
                and len(model) == len(found)
                and all(match(*pair, stands_for) for pair in zip(model, found, strict=True))
            )
        if not isinstance(model, fx.Node):
            return is_same(model, found)
        if model in stands_for:
            return is_same(stands_for[model], found)
        stands_for[model] = found
        if model.op == "placeholder":
            return True
        return (
            isinstance(found, fx.Node)
            and found not in new
            and (model.op, model.target) == (found.op, found.target)
            and match(model.args, found.args, stands_for)
            and match(sorted(model.kwargs.items()), sorted(found.kwargs.items()), stands_for)
        )

    def copy_in(stands_for: dict[fx.Node, Any]) -> Any:
        """Copy the replacement's calls and return its value."""
        supplied = iter(stands_for[node] for node in pattern.nodes if node.op == "placeholder")
        values: dict[fx.Node, Any] = {}
        for node in replacement.nodes:
            if node.op == "placeholder":
                values[node] = next(supplied)
            elif node.op != "output":
                values[node] = gm.graph.node_copy(node, values.__getitem__)
                new.add(values[node])
        return values[last(replacement)]

    def last(graph: fx.Graph) -> fx.Node:
        return next(iter(reversed(graph.nodes))).args[0]

    new: set[fx.Node] = set()
    count = 0
    for node in list(gm.graph.nodes):
        stands_for: dict[fx.Node, Any] = {}
        if not match(last(pattern), node, stands_for):
            continue
        calls = [one for one in pattern.nodes if one.op not in ("placeholder", "output")]
        # two equal calls of the pattern may have found one node
        body = list(dict.fromkeys(stands_for[one] for one in calls))
        if any(user not in body for one in body for user in one.users):
            continue
        count += 1
        with gm.graph.inserting_before(node):
            node.replace_all_uses_with(copy_in(stands_for))
        for one in reversed(body):  # users before what they use
            gm.graph.erase_node(one)
    gm.recompile()
    return count


# %% alternate: graph_copy
# The replacement comes in by `graph_copy`; the match is found with a list of pairs to compare.
def replace_pattern(gm, pattern, replacement):
    holes = [node for node in pattern.nodes if node.op == "placeholder"]
    slots = [node for node in replacement.nodes if node.op == "placeholder"]
    (end,) = [node for node in pattern.nodes if node.op == "output"]
    new, total = [], 0
    for node in list(gm.graph.nodes):
        found = fit(end.args[0], node)
        if found is None:
            continue
        inside = [value for key, value in found.items() if key not in holes]
        if any(value in new for value in inside):
            continue
        if any(u not in inside for value in inside if value is not node for u in value.users):
            continue
        before = set(gm.graph.nodes)
        with gm.graph.inserting_before(node):
            values = {slot: found.get(hole) for slot, hole in zip(slots, holes)}
            result = gm.graph.graph_copy(replacement, values)
        new += [one for one in gm.graph.nodes if one not in before]
        node.replace_all_uses_with(result)
        while inside:
            for value in inside:
                if not value.users:
                    gm.graph.erase_node(value)
                    inside.remove(value)
                    break
        total += 1
    gm.recompile()
    return total


def fit(goal, start):
    """Return {node of the pattern: what it stands for}, or None."""
    found, waiting = {}, [(goal, start)]
    while waiting:
        model, value = waiting.pop(0)
        if isinstance(model, fx.Node):
            if model in found:
                if spelled(found[model]) != spelled(value):
                    return None
                continue
            found[model] = value
            if model.op == "placeholder":
                continue
            if not isinstance(value, fx.Node) or value.op != model.op:
                return None
            if value.target != model.target or sorted(value.kwargs) != sorted(model.kwargs):
                return None
            if len(value.args) != len(model.args):
                return None
            waiting += zip(model.args, value.args)
            waiting += [(model.kwargs[key], value.kwargs[key]) for key in model.kwargs]
        elif isinstance(model, list | tuple):
            if not isinstance(value, list | tuple) or len(model) != len(value):
                return None
            waiting += zip(model, value)
        elif isinstance(value, fx.Node) or spelled(model) != spelled(value):
            return None
    return found


def spelled(value):
    return (value,) if isinstance(value, fx.Node) else (type(value), repr(value))


# %% alternate: new_graph
# A new graph is written; a match is known by where its last node stands.
def replace_pattern(gm, pattern, replacement):
    goal = list(pattern.nodes)[-1].args[0]
    holes = [node for node in pattern.nodes if node.op == "placeholder"]
    old, fresh, here, arrived = gm.graph, fx.Graph(), {}, set()
    number = 0
    for node in old.nodes:
        here[node] = fresh.node_copy(node, lambda one: here[one])
        seat = here[node]
        pairs = {}
        if node.op == "output" or not agree(goal, seat, pairs, arrived):
            continue
        inner = [pairs[one] for one in pairs if one.op != "placeholder" and one is not goal]
        backs = [one for one in old.nodes if here.get(one) in inner]
        allowed = {one for one in old.nodes if here.get(one) in [*inner, seat]}
        if any(set(one.users) - allowed for one in backs):
            continue
        number += 1
        supply = iter(holes)
        made = {}
        for one in replacement.nodes:
            if one.op == "placeholder":
                made[one] = pairs.get(next(supply))
            elif one.op != "output":
                made[one] = fresh.node_copy(one, lambda two: made[two])
                arrived.add(made[one])
            else:
                here[node] = made[one.args[0]]
        going = [seat, *inner]
        for one in list(fresh.nodes)[::-1]:
            if one in going:
                fresh.erase_node(one)
    gm.graph = fresh
    return number


def agree(model, value, pairs, arrived):
    if isinstance(model, fx.Node) and model in pairs:
        known = pairs[model]
        if isinstance(known, fx.Node) or isinstance(value, fx.Node):
            return known is value
        return str((type(known), known)) == str((type(value), value))
    if isinstance(model, fx.Node) and model.op == "placeholder":
        pairs[model] = value
        return True
    if isinstance(model, fx.Node):
        pairs[model] = value
        return (
            isinstance(value, fx.Node)
            and value not in arrived
            and value.op == model.op
            and value.target is model.target
            and agree(list(model.args), list(value.args), pairs, arrived)
            and agree(sorted(model.kwargs.items()), sorted(value.kwargs.items()), pairs, arrived)
        )
    if isinstance(model, (list, tuple)):
        return (
            isinstance(value, (list, tuple))
            and len(value) == len(model)
            and all(agree(a, b, pairs, arrived) for a, b in zip(model, value))
        )
    return not isinstance(value, fx.Node) and str((type(model), model)) == str((type(value), value))
