# %% blocked: fx_graph_cse
# `fx_graph_cse` is the pass that AOTAutograd runs. Write your own.
def share(gm):
    from torch._functorch.compile_utils import fx_graph_cse

    gm.graph = fx_graph_cse(gm.graph)


# %% mistake: tensors_only
# You took calls for equal when they call the same function on the same tensors. The constants are
# arguments too: `sum` over rows is not `sum` over columns.
def share(gm):
    memory, version, written, seen = {}, {}, set(), {}
    for node in gm.graph.nodes:
        sources = [one for one, _ in marked(node)]
        memory[node] = memory[sources[0]] if sources else node
    for node in gm.graph.nodes:
        written |= {memory[one] for one, is_write in marked(node) if is_write}
    for node in list(gm.graph.nodes):
        if pure(node) and memory[node] not in written:
            state = [version.get(memory[one], 0) for one in node.all_input_nodes]
            key = (node.target, tuple(node.all_input_nodes), str(state))
            if key in seen:
                node.replace_all_uses_with(seen[key])
                gm.graph.erase_node(node)
                continue
            seen[key] = node
        for one, is_write in marked(node):
            if is_write:
                version[memory[one]] = version.get(memory[one], 0) + 1
    gm.recompile()


def pure(node):
    if node.target is operator.getitem:
        return True
    if node.op != "call_function":
        return False
    drawn = torch.Tag.nondeterministic_seeded in node.target.tags
    return not drawn and not node.target._schema.is_mutable


def marked(node):
    if node.target is operator.getitem:
        return [(node.args[0], False)]
    if node.op != "call_function":
        return []
    found = []
    for place, argument in enumerate(node.target._schema.arguments):
        value = node.args[place] if place < len(node.args) else node.kwargs.get(argument.name)
        if argument.alias_info and value is not None:
            found.append((value, argument.alias_info.is_write))
    return found


def frozen(value):
    if isinstance(value, (tuple, list)):
        return tuple(map(frozen, value))
    if isinstance(value, dict):
        return tuple((key, frozen(value[key])) for key in sorted(value))
    return value if isinstance(value, fx.Node) else (type(value), repr(value))


# %% mistake: equal_numbers
# You compared constants with `==`. To Python `1 == 1.0 == True`, and as keys of a dict they are one.
# To an operator they are three: `x + 1.0` makes floats of whole numbers, and `x + 1` does not.
def share(gm):
    memory, version, written, seen = {}, {}, set(), {}
    for node in gm.graph.nodes:
        sources = [one for one, _ in marked(node)]
        memory[node] = memory[sources[0]] if sources else node
    for node in gm.graph.nodes:
        written |= {memory[one] for one, is_write in marked(node) if is_write}
    for node in list(gm.graph.nodes):
        if pure(node) and memory[node] not in written:
            state = [version.get(memory[one], 0) for one in node.all_input_nodes]
            key = (node.target, frozen(node.args), frozen(node.kwargs), str(state))
            if key in seen:
                node.replace_all_uses_with(seen[key])
                gm.graph.erase_node(node)
                continue
            seen[key] = node
        for one, is_write in marked(node):
            if is_write:
                version[memory[one]] = version.get(memory[one], 0) + 1
    gm.recompile()


def pure(node):
    if node.target is operator.getitem:
        return True
    if node.op != "call_function":
        return False
    drawn = torch.Tag.nondeterministic_seeded in node.target.tags
    return not drawn and not node.target._schema.is_mutable


def marked(node):
    if node.target is operator.getitem:
        return [(node.args[0], False)]
    if node.op != "call_function":
        return []
    found = []
    for place, argument in enumerate(node.target._schema.arguments):
        value = node.args[place] if place < len(node.args) else node.kwargs.get(argument.name)
        if argument.alias_info and value is not None:
            found.append((value, argument.alias_info.is_write))
    return found


def frozen(value):
    if isinstance(value, (tuple, list)):
        return tuple(map(frozen, value))
    if isinstance(value, dict):
        return tuple((key, frozen(value[key])) for key in sorted(value))
    return value if isinstance(value, fx.Node) else value


# %% mistake: minus_zero
# You kept the types of constants apart, and not the two zeros: `0.0 == -0.0`, but `x + 0.0` turns a
# -0.0 into 0.0, and `x + -0.0` does not.
def share(gm):
    memory, version, written, seen = {}, {}, set(), {}
    for node in gm.graph.nodes:
        sources = [one for one, _ in marked(node)]
        memory[node] = memory[sources[0]] if sources else node
    for node in gm.graph.nodes:
        written |= {memory[one] for one, is_write in marked(node) if is_write}
    for node in list(gm.graph.nodes):
        if pure(node) and memory[node] not in written:
            state = [version.get(memory[one], 0) for one in node.all_input_nodes]
            key = (node.target, frozen(node.args), frozen(node.kwargs), str(state))
            if key in seen:
                node.replace_all_uses_with(seen[key])
                gm.graph.erase_node(node)
                continue
            seen[key] = node
        for one, is_write in marked(node):
            if is_write:
                version[memory[one]] = version.get(memory[one], 0) + 1
    gm.recompile()


def pure(node):
    if node.target is operator.getitem:
        return True
    if node.op != "call_function":
        return False
    drawn = torch.Tag.nondeterministic_seeded in node.target.tags
    return not drawn and not node.target._schema.is_mutable


def marked(node):
    if node.target is operator.getitem:
        return [(node.args[0], False)]
    if node.op != "call_function":
        return []
    found = []
    for place, argument in enumerate(node.target._schema.arguments):
        value = node.args[place] if place < len(node.args) else node.kwargs.get(argument.name)
        if argument.alias_info and value is not None:
            found.append((value, argument.alias_info.is_write))
    return found


def frozen(value):
    if isinstance(value, (tuple, list)):
        return tuple(map(frozen, value))
    if isinstance(value, dict):
        return tuple((key, frozen(value[key])) for key in sorted(value))
    return value if isinstance(value, fx.Node) else (type(value), value)


# %% mistake: no_keywords
# You left the keyword arguments out of the key. `add(x, y, alpha=2)` is not `add(x, y)`.
def share(gm):
    memory, version, written, seen = {}, {}, set(), {}
    for node in gm.graph.nodes:
        sources = [one for one, _ in marked(node)]
        memory[node] = memory[sources[0]] if sources else node
    for node in gm.graph.nodes:
        written |= {memory[one] for one, is_write in marked(node) if is_write}
    for node in list(gm.graph.nodes):
        if pure(node) and memory[node] not in written:
            state = [version.get(memory[one], 0) for one in node.all_input_nodes]
            key = (node.target, frozen(node.args), str(state))
            if key in seen:
                node.replace_all_uses_with(seen[key])
                gm.graph.erase_node(node)
                continue
            seen[key] = node
        for one, is_write in marked(node):
            if is_write:
                version[memory[one]] = version.get(memory[one], 0) + 1
    gm.recompile()


def pure(node):
    if node.target is operator.getitem:
        return True
    if node.op != "call_function":
        return False
    drawn = torch.Tag.nondeterministic_seeded in node.target.tags
    return not drawn and not node.target._schema.is_mutable


def marked(node):
    if node.target is operator.getitem:
        return [(node.args[0], False)]
    if node.op != "call_function":
        return []
    found = []
    for place, argument in enumerate(node.target._schema.arguments):
        value = node.args[place] if place < len(node.args) else node.kwargs.get(argument.name)
        if argument.alias_info and value is not None:
            found.append((value, argument.alias_info.is_write))
    return found


def frozen(value):
    if isinstance(value, (tuple, list)):
        return tuple(map(frozen, value))
    if isinstance(value, dict):
        return tuple((key, frozen(value[key])) for key in sorted(value))
    return value if isinstance(value, fx.Node) else (type(value), repr(value))


# %% mistake: keywords_in_order
# You took keyword arguments in the order in which they are written. The order means nothing:
# `clamp(x, min=-1, max=1)` and `clamp(x, max=1, min=-1)` are one call.
def share(gm):
    memory, version, written, seen = {}, {}, set(), {}
    for node in gm.graph.nodes:
        sources = [one for one, _ in marked(node)]
        memory[node] = memory[sources[0]] if sources else node
    for node in gm.graph.nodes:
        written |= {memory[one] for one, is_write in marked(node) if is_write}
    for node in list(gm.graph.nodes):
        if pure(node) and memory[node] not in written:
            state = [version.get(memory[one], 0) for one in node.all_input_nodes]
            key = (node.target, frozen(node.args), frozen(node.kwargs), str(state))
            if key in seen:
                node.replace_all_uses_with(seen[key])
                gm.graph.erase_node(node)
                continue
            seen[key] = node
        for one, is_write in marked(node):
            if is_write:
                version[memory[one]] = version.get(memory[one], 0) + 1
    gm.recompile()


def pure(node):
    if node.target is operator.getitem:
        return True
    if node.op != "call_function":
        return False
    drawn = torch.Tag.nondeterministic_seeded in node.target.tags
    return not drawn and not node.target._schema.is_mutable


def marked(node):
    if node.target is operator.getitem:
        return [(node.args[0], False)]
    if node.op != "call_function":
        return []
    found = []
    for place, argument in enumerate(node.target._schema.arguments):
        value = node.args[place] if place < len(node.args) else node.kwargs.get(argument.name)
        if argument.alias_info and value is not None:
            found.append((value, argument.alias_info.is_write))
    return found


def frozen(value):
    if isinstance(value, (tuple, list)):
        return tuple(map(frozen, value))
    if isinstance(value, dict):
        return tuple((key, frozen(value[key])) for key in value)
    return value if isinstance(value, fx.Node) else (type(value), repr(value))


# %% mistake: shares_draws
# You shared calls that draw random numbers. Two draws are two results: `rand_like(x) - rand_like(x)`
# was noise, and after your pass it is zero.
def share(gm):
    memory, version, written, seen = {}, {}, set(), {}
    for node in gm.graph.nodes:
        sources = [one for one, _ in marked(node)]
        memory[node] = memory[sources[0]] if sources else node
    for node in gm.graph.nodes:
        written |= {memory[one] for one, is_write in marked(node) if is_write}
    for node in list(gm.graph.nodes):
        if pure(node) and memory[node] not in written:
            state = [version.get(memory[one], 0) for one in node.all_input_nodes]
            key = (node.target, frozen(node.args), frozen(node.kwargs), str(state))
            if key in seen:
                node.replace_all_uses_with(seen[key])
                gm.graph.erase_node(node)
                continue
            seen[key] = node
        for one, is_write in marked(node):
            if is_write:
                version[memory[one]] = version.get(memory[one], 0) + 1
    gm.recompile()


def pure(node):
    if node.target is operator.getitem:
        return True
    if node.op != "call_function":
        return False
    return not node.target._schema.is_mutable


def marked(node):
    if node.target is operator.getitem:
        return [(node.args[0], False)]
    if node.op != "call_function":
        return []
    found = []
    for place, argument in enumerate(node.target._schema.arguments):
        value = node.args[place] if place < len(node.args) else node.kwargs.get(argument.name)
        if argument.alias_info and value is not None:
            found.append((value, argument.alias_info.is_write))
    return found


def frozen(value):
    if isinstance(value, (tuple, list)):
        return tuple(map(frozen, value))
    if isinstance(value, dict):
        return tuple((key, frozen(value[key])) for key in sorted(value))
    return value if isinstance(value, fx.Node) else (type(value), repr(value))


# %% mistake: ignores_writes
# You shared calls whatever happened between them. When an argument has been written to, the second
# call reads other numbers than the first.
def share(gm):
    memory, version, written, seen = {}, {}, set(), {}
    for node in gm.graph.nodes:
        sources = [one for one, _ in marked(node)]
        memory[node] = memory[sources[0]] if sources else node
    for node in gm.graph.nodes:
        written |= {memory[one] for one, is_write in marked(node) if is_write}
    for node in list(gm.graph.nodes):
        if pure(node) and memory[node] not in written:
            key = (node.target, frozen(node.args), frozen(node.kwargs))
            if key in seen:
                node.replace_all_uses_with(seen[key])
                gm.graph.erase_node(node)
                continue
            seen[key] = node
        for one, is_write in marked(node):
            if is_write:
                version[memory[one]] = version.get(memory[one], 0) + 1
    gm.recompile()


def pure(node):
    if node.target is operator.getitem:
        return True
    if node.op != "call_function":
        return False
    drawn = torch.Tag.nondeterministic_seeded in node.target.tags
    return not drawn and not node.target._schema.is_mutable


def marked(node):
    if node.target is operator.getitem:
        return [(node.args[0], False)]
    if node.op != "call_function":
        return []
    found = []
    for place, argument in enumerate(node.target._schema.arguments):
        value = node.args[place] if place < len(node.args) else node.kwargs.get(argument.name)
        if argument.alias_info and value is not None:
            found.append((value, argument.alias_info.is_write))
    return found


def frozen(value):
    if isinstance(value, (tuple, list)):
        return tuple(map(frozen, value))
    if isinstance(value, dict):
        return tuple((key, frozen(value[key])) for key in sorted(value))
    return value if isinstance(value, fx.Node) else (type(value), repr(value))


# %% mistake: results_may_be_written
# You merged results of which one is written to later. From then on they differ; merged, both change.
# The memory of a result counts as well as that of its arguments.
def share(gm):
    memory, version, written, seen = {}, {}, set(), {}
    for node in gm.graph.nodes:
        sources = [one for one, _ in marked(node)]
        memory[node] = memory[sources[0]] if sources else node
    for node in gm.graph.nodes:
        written |= {memory[one] for one, is_write in marked(node) if is_write}
    for node in list(gm.graph.nodes):
        if pure(node):
            state = [version.get(memory[one], 0) for one in node.all_input_nodes]
            key = (node.target, frozen(node.args), frozen(node.kwargs), str(state))
            if key in seen:
                node.replace_all_uses_with(seen[key])
                gm.graph.erase_node(node)
                continue
            seen[key] = node
        for one, is_write in marked(node):
            if is_write:
                version[memory[one]] = version.get(memory[one], 0) + 1
    gm.recompile()


def pure(node):
    if node.target is operator.getitem:
        return True
    if node.op != "call_function":
        return False
    drawn = torch.Tag.nondeterministic_seeded in node.target.tags
    return not drawn and not node.target._schema.is_mutable


def marked(node):
    if node.target is operator.getitem:
        return [(node.args[0], False)]
    if node.op != "call_function":
        return []
    found = []
    for place, argument in enumerate(node.target._schema.arguments):
        value = node.args[place] if place < len(node.args) else node.kwargs.get(argument.name)
        if argument.alias_info and value is not None:
            found.append((value, argument.alias_info.is_write))
    return found


def frozen(value):
    if isinstance(value, (tuple, list)):
        return tuple(map(frozen, value))
    if isinstance(value, dict):
        return tuple((key, frozen(value[key])) for key in sorted(value))
    return value if isinstance(value, fx.Node) else (type(value), repr(value))


# %% mistake: writes_by_name
# You looked for writes to the very node that a call takes. A view has another node and the same
# memory: a write through one is a write to all.
def share(gm):
    memory, version, written, seen = {}, {}, set(), {}
    for node in gm.graph.nodes:
        memory[node] = node
    for node in gm.graph.nodes:
        written |= {memory[one] for one, is_write in marked(node) if is_write}
    for node in list(gm.graph.nodes):
        if pure(node) and memory[node] not in written:
            state = [version.get(memory[one], 0) for one in node.all_input_nodes]
            key = (node.target, frozen(node.args), frozen(node.kwargs), str(state))
            if key in seen:
                node.replace_all_uses_with(seen[key])
                gm.graph.erase_node(node)
                continue
            seen[key] = node
        for one, is_write in marked(node):
            if is_write:
                version[memory[one]] = version.get(memory[one], 0) + 1
    gm.recompile()


def pure(node):
    if node.target is operator.getitem:
        return True
    if node.op != "call_function":
        return False
    drawn = torch.Tag.nondeterministic_seeded in node.target.tags
    return not drawn and not node.target._schema.is_mutable


def marked(node):
    if node.target is operator.getitem:
        return [(node.args[0], False)]
    if node.op != "call_function":
        return []
    found = []
    for place, argument in enumerate(node.target._schema.arguments):
        value = node.args[place] if place < len(node.args) else node.kwargs.get(argument.name)
        if argument.alias_info and value is not None:
            found.append((value, argument.alias_info.is_write))
    return found


def frozen(value):
    if isinstance(value, (tuple, list)):
        return tuple(map(frozen, value))
    if isinstance(value, dict):
        return tuple((key, frozen(value[key])) for key in sorted(value))
    return value if isinstance(value, fx.Node) else (type(value), repr(value))


# %% alternate: new_graph_by_text
# Keys as text, and a new graph that holds each distinct call once.
def share(gm):
    base = {}
    for node in gm.graph.nodes:
        base[node] = base.get(next(iter(touched(node, False)), None), node)
    dirty = {base[one] for node in gm.graph.nodes for one in touched(node, True)}
    fresh, copies, known, clock = fx.Graph(), {}, {}, {}
    for node in gm.graph.nodes:
        named = sorted(node.kwargs.items())
        text = f"{node.target} {spell([node.args, named], copies, base, clock)}"
        free = node.op == "call_function" and base[node] not in dirty
        free = free and (node.target is operator.getitem or not random(node.target))
        if free and text in known:
            copies[node] = known[text]
            continue
        copies[node] = fresh.node_copy(node, copies.__getitem__)
        if free:
            known[text] = copies[node]
        for one in touched(node, True):
            clock[base[one]] = clock.get(base[one], 0) + 1
    gm.graph = fresh


def random(op):
    return torch.Tag.nondeterministic_seeded in op.tags


def touched(node, only_written):
    """The nodes that a call writes to, or whose memory its result shares."""
    if node.op != "call_function":
        return []
    if node.target is operator.getitem:
        return [] if only_written else [node.args[0]]
    names = [argument.name for argument in node.target._schema.arguments]
    given = dict(zip(names, node.args)) | node.kwargs
    return [
        given[argument.name]
        for argument in node.target._schema.arguments
        if argument.alias_info and argument.name in given
        if argument.alias_info.is_write or not only_written
    ]


def spell(value, copies, base, clock):
    if isinstance(value, fx.Node):
        return f"<{copies[value].name} at {clock.get(base[value], 0)}>"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(spell(part, copies, base, clock) for part in value) + "]"
    if isinstance(value, slice):
        return spell([value.start, value.stop, value.step], copies, base, clock)
    return f"{type(value)}{value!r}"


# %% alternate: pair_by_pair
# Two calls at a time: equal, and nothing written between them that they read or are.
def share(gm):
    again = True
    while again:
        again = False
        nodes = list(gm.graph.nodes)
        families = relations(nodes)
        for at, first in enumerate(nodes):
            if not plain(first) or written_in(nodes, families[first], families):
                continue
            for second in nodes[at + 1 :]:
                if first.target is not second.target or not alike(
                    [first.args, dict(first.kwargs)], [second.args, dict(second.kwargs)]
                ):
                    continue
                between = nodes[at : nodes.index(second)]
                read = set().union(*[families[one] for one in first.all_input_nodes], set())
                if written_in(nodes, families[second], families) or written_in(
                    between, read, families
                ):
                    continue
                second.replace_all_uses_with(first)
                gm.graph.erase_node(second)
                again = True
                break
            if again:
                break
    gm.recompile()


def relations(nodes):
    families = {}
    for node in nodes:
        family = {node}
        for one, _ in marks(node):
            family |= families[one]
        for one in family:
            families[one] = family
    return families


def marks(node):
    if node.target is operator.getitem:
        yield node.args[0], False
    elif node.op == "call_function":
        for place, argument in enumerate(node.target._schema.arguments):
            if argument.alias_info:
                at_place = node.args[place : place + 1] or [node.kwargs.get(argument.name)]
                yield at_place[0], argument.alias_info.is_write


def written_in(nodes, family, families):
    return any(w and one in family for node in nodes for one, w in marks(node))


def plain(node):
    if node.op != "call_function" or node.target is operator.getitem:
        return node.op == "call_function"
    return torch.Tag.nondeterministic_seeded not in node.target.tags and not any(
        w for _, w in marks(node)
    )


def alike(one, two):
    if isinstance(one, fx.Node) or isinstance(two, fx.Node):
        return one is two
    if isinstance(one, dict) and isinstance(two, dict):
        return one.keys() == two.keys() and all(alike(one[key], two[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(two, list | tuple):
        return len(one) == len(two) and all(map(alike, one, two))
    return type(one) is type(two) and repr(one) == repr(two)
