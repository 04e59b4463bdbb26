# %% blocked: eliminate_dead_code
# `eliminate_dead_code` is the pass that you were asked to write, without the care.
def remove_dead(gm):
    gm.graph.eliminate_dead_code()
    gm.recompile()


# %% mistake: one_sweep_forwards
# You went through the graph from its start. A dead call's inputs are dead as well, but when you met
# them it still used them. From the end, each call is met after all of its users.
def remove_dead(gm):
    for node in list(gm.graph.nodes):
        if not node.users and not kept(node):
            gm.graph.erase_node(node)
    gm.recompile()


def kept(node):
    if node.op != "call_function":
        return node.op != "get_attr"
    if not isinstance(node.target, torch._ops.OpOverload):
        return node.target is not operator.getitem
    schema = node.target._schema
    drawn = torch.Tag.nondeterministic_seeded in node.target.tags
    return schema.is_mutable or drawn or not schema.returns


# %% mistake: only_users_count
# You removed whatever nobody uses. A write into a tensor, a random number, an assertion: nobody
# takes their results, and yet the program is another without them.
def remove_dead(gm):
    for node in reversed(gm.graph.nodes):
        if not node.users and node.op not in ("placeholder", "output"):
            gm.graph.erase_node(node)
    gm.recompile()


# %% mistake: draws_are_pure
# You removed random calls that nobody uses. The generator moves at each draw, so the numbers drawn
# after it come out differently: the same seed gives another run.
def remove_dead(gm):
    for node in reversed(gm.graph.nodes):
        if not node.users and not kept(node):
            gm.graph.erase_node(node)
    gm.recompile()


def kept(node):
    if node.op != "call_function":
        return node.op != "get_attr"
    if not isinstance(node.target, torch._ops.OpOverload):
        return node.target is not operator.getitem
    return node.target._schema.is_mutable or not node.target._schema.returns


# %% mistake: trailing_underscore
# You kept some writes and not all. `aten.add.out` writes into its keyword argument `out`, and there is
# no underscore at the end of its name. The operator's schema says whether it writes at all.
def remove_dead(gm):
    for node in reversed(gm.graph.nodes):
        if not node.users and not kept(node):
            gm.graph.erase_node(node)
    gm.recompile()


def kept(node):
    if node.op != "call_function":
        return node.op != "get_attr"
    if not isinstance(node.target, torch._ops.OpOverload):
        return node.target is not operator.getitem
    name = node.target._schema.name
    drawn = torch.Tag.nondeterministic_seeded in node.target.tags
    return name.endswith("_") or drawn or not node.target._schema.returns


# %% mistake: assertions_are_dead
# You removed calls that return nothing. Why would one call a function that returns nothing, if not
# for its effect? `_assert_async` raises when its condition is false.
def remove_dead(gm):
    for node in reversed(gm.graph.nodes):
        if not node.users and not kept(node):
            gm.graph.erase_node(node)
    gm.recompile()


def kept(node):
    if node.op != "call_function":
        return node.op != "get_attr"
    if not isinstance(node.target, torch._ops.OpOverload):
        return node.target is not operator.getitem
    drawn = torch.Tag.nondeterministic_seeded in node.target.tags
    return node.target._schema.is_mutable or drawn


# %% mistake: trusts_strangers
# You removed calls of functions that are no operators, and methods. They have no schema, so that
# nothing tells you what they do: `print`, `operator.setitem` and `add_` all act.
def remove_dead(gm):
    for node in reversed(gm.graph.nodes):
        if not node.users and not kept(node):
            gm.graph.erase_node(node)
    gm.recompile()


def kept(node):
    if node.op in ("placeholder", "output"):
        return True
    if not isinstance(node.target, torch._ops.OpOverload):
        return False
    drawn = torch.Tag.nondeterministic_seeded in node.target.tags
    return node.target._schema.is_mutable or drawn or not node.target._schema.returns


# %% mistake: drops_arguments
# You removed placeholders that nobody uses. They are the signature: whoever calls the module still
# passes as many arguments as before.
def remove_dead(gm):
    for node in reversed(gm.graph.nodes):
        if not node.users and not kept(node):
            gm.graph.erase_node(node)
    gm.recompile()


def kept(node):
    if node.op != "call_function":
        return node.op not in ("get_attr", "placeholder")
    if not isinstance(node.target, torch._ops.OpOverload):
        return node.target is not operator.getitem
    schema = node.target._schema
    drawn = torch.Tag.nondeterministic_seeded in node.target.tags
    return schema.is_mutable or drawn or not schema.returns


# %% mistake: not_recompiled
# You changed the graph and not the module: `gm(x)` runs Python that was written from the graph as
# it was. `gm.recompile()` writes it anew.
def remove_dead(gm):
    for node in reversed(gm.graph.nodes):
        if not node.users and not kept(node):
            gm.graph.erase_node(node)


def kept(node):
    if node.op != "call_function":
        return node.op != "get_attr"
    if not isinstance(node.target, torch._ops.OpOverload):
        return node.target is not operator.getitem
    schema = node.target._schema
    drawn = torch.Tag.nondeterministic_seeded in node.target.tags
    return schema.is_mutable or drawn or not schema.returns


# %% alternate: marks_what_lives
# The other way round: mark what is needed, from the effects and the output on, and drop the rest.
def remove_dead(gm):
    alive = set()
    waiting = [node for node in gm.graph.nodes if acts(node)]
    while waiting:
        node = waiting.pop()
        if node not in alive:
            alive.add(node)
            waiting += node.all_input_nodes
    for node in list(gm.graph.nodes)[::-1]:
        if node not in alive:
            gm.graph.erase_node(node)
    gm.graph.lint()
    gm.recompile()


def acts(node):
    match node.op, node.target:
        case "get_attr", _:
            return False
        case "call_function", operator.getitem:
            return False
        case "call_function", torch._ops.OpOverload() as op:
            writes = any(a.alias_info and a.alias_info.is_write for a in op._schema.arguments)
            return (
                writes
                or len(op._schema.returns) == 0
                or torch.Tag.nondeterministic_seeded in op.tags
            )
    return True


# %% alternate: until_nothing_changes
# Sweep after sweep, and a new graph at the end.
def remove_dead(gm):
    doomed = set()
    while True:
        more = {
            node
            for node in gm.graph.nodes
            if node not in doomed and set(node.users) <= doomed and may_go(node)
        }
        if not more:
            break
        doomed |= more
    fresh, copies = fx.Graph(), {}
    for node in gm.graph.nodes:
        if node not in doomed:
            copies[node] = fresh.node_copy(node, copies.__getitem__)
    gm.graph = fresh


def may_go(node):
    if node.op == "get_attr" or node.target is operator.getitem:
        return True
    if node.op != "call_function" or not hasattr(node.target, "_schema"):
        return False
    text = str(node.target._schema)
    drawn = torch.Tag.nondeterministic_seeded in node.target.tags
    return "!" not in text and not text.endswith("-> ()") and not drawn
