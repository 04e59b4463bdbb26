# %% mistake: adding_zero
# You took `x + 0` for `x`. One float is not: `-0.0 + 0` is `0.0`. It is `x + -0.0` that gives every
# `x` back.
def simplify(gm):
    for node in list(gm.graph.nodes):
        new = nothing_new(node)
        if new is not None:
            node.replace_all_uses_with(new)
    for node in reversed(gm.graph.nodes):
        if node.op == "call_function" and not node.users:
            gm.graph.erase_node(node)
    gm.recompile()


def nothing_new(node):
    if node.op != "call_function":
        return None
    first = node.args[0]
    before, after = first.meta["val"], node.meta["val"]
    if node.target is aten._to_copy.default:
        return first if dict(node.kwargs) == {"dtype": before.dtype} else None
    if node.kwargs:
        return None
    if node.target is aten.expand.default:
        return first if before.shape == after.shape else None
    if node.target in (aten.neg.default, aten.t.default, aten.bitwise_not.default):
        return first.args[0] if first.target is node.target else None
    if node.target is aten.logical_not.default and first.target is node.target:
        return first.args[0] if first.args[0].meta["val"].dtype is torch.bool else None
    if node.target in (aten.abs.default, aten.relu.default):
        return first if first.target is node.target else None
    if len(node.args) != 2 or isinstance(node.args[1], (fx.Node, list)):
        return None
    number = node.args[1]
    if before.dtype is not after.dtype:
        return None
    if node.target is aten.add.Tensor:
        return first if number == 0 else None
    if node.target is aten.sub.Tensor:
        return first if number == 0 and str(number) != "-0.0" else None
    if node.target in (aten.mul.Tensor, aten.div.Tensor):
        return first if number == 1 else None
    return None


# %% mistake: forgets_dtype
# You looked at the values and not at the dtype. A whole number times `1.0` or divided by `1` is a
# float, and a bool plus `0` is a whole number.
def simplify(gm):
    for node in list(gm.graph.nodes):
        new = nothing_new(node)
        if new is not None:
            node.replace_all_uses_with(new)
    for node in reversed(gm.graph.nodes):
        if node.op == "call_function" and not node.users:
            gm.graph.erase_node(node)
    gm.recompile()


def nothing_new(node):
    if node.op != "call_function":
        return None
    first = node.args[0]
    before, after = first.meta["val"], node.meta["val"]
    if node.target is aten._to_copy.default:
        return first if dict(node.kwargs) == {"dtype": before.dtype} else None
    if node.kwargs:
        return None
    if node.target is aten.expand.default:
        return first if before.shape == after.shape else None
    if node.target in (aten.neg.default, aten.t.default, aten.bitwise_not.default):
        return first.args[0] if first.target is node.target else None
    if node.target is aten.logical_not.default and first.target is node.target:
        return first.args[0] if first.args[0].meta["val"].dtype is torch.bool else None
    if node.target in (aten.abs.default, aten.relu.default):
        return first if first.target is node.target else None
    if len(node.args) != 2 or isinstance(node.args[1], (fx.Node, list)):
        return None
    number = node.args[1]
    if node.target is aten.add.Tensor:
        minus_zero = number == 0 and str(float(number))[0] == "-"
        zero = minus_zero if before.dtype.is_floating_point else number == 0
        return first if zero else None
    if node.target is aten.sub.Tensor:
        return first if number == 0 and str(number) != "-0.0" else None
    if node.target in (aten.mul.Tensor, aten.div.Tensor):
        return first if number == 1 else None
    return None


# %% mistake: never_plus_zero
# You left `x + 0` alone whatever `x` is. Whole numbers have one zero, and there it is `x`; of floats,
# `x + -0.0` is.
def simplify(gm):
    for node in list(gm.graph.nodes):
        new = nothing_new(node)
        if new is not None:
            node.replace_all_uses_with(new)
    for node in reversed(gm.graph.nodes):
        if node.op == "call_function" and not node.users:
            gm.graph.erase_node(node)
    gm.recompile()


def nothing_new(node):
    if node.op != "call_function":
        return None
    first = node.args[0]
    before, after = first.meta["val"], node.meta["val"]
    if node.target is aten._to_copy.default:
        return first if dict(node.kwargs) == {"dtype": before.dtype} else None
    if node.kwargs:
        return None
    if node.target is aten.expand.default:
        return first if before.shape == after.shape else None
    if node.target in (aten.neg.default, aten.t.default, aten.bitwise_not.default):
        return first.args[0] if first.target is node.target else None
    if node.target is aten.logical_not.default and first.target is node.target:
        return first.args[0] if first.args[0].meta["val"].dtype is torch.bool else None
    if node.target in (aten.abs.default, aten.relu.default):
        return first if first.target is node.target else None
    if len(node.args) != 2 or isinstance(node.args[1], (fx.Node, list)):
        return None
    number = node.args[1]
    if before.dtype is not after.dtype:
        return None
    if node.target is aten.add.Tensor:
        return None
    if node.target is aten.sub.Tensor:
        return first if number == 0 and str(number) != "-0.0" else None
    if node.target in (aten.mul.Tensor, aten.div.Tensor):
        return first if number == 1 else None
    return None


# %% mistake: subtracts_minus_zero
# You took `x - -0.0` for `x`. That is `x + 0.0`, and it makes `0.0` of `-0.0`.
def simplify(gm):
    for node in list(gm.graph.nodes):
        new = nothing_new(node)
        if new is not None:
            node.replace_all_uses_with(new)
    for node in reversed(gm.graph.nodes):
        if node.op == "call_function" and not node.users:
            gm.graph.erase_node(node)
    gm.recompile()


def nothing_new(node):
    if node.op != "call_function":
        return None
    first = node.args[0]
    before, after = first.meta["val"], node.meta["val"]
    if node.target is aten._to_copy.default:
        return first if dict(node.kwargs) == {"dtype": before.dtype} else None
    if node.kwargs:
        return None
    if node.target is aten.expand.default:
        return first if before.shape == after.shape else None
    if node.target in (aten.neg.default, aten.t.default, aten.bitwise_not.default):
        return first.args[0] if first.target is node.target else None
    if node.target is aten.logical_not.default and first.target is node.target:
        return first.args[0] if first.args[0].meta["val"].dtype is torch.bool else None
    if node.target in (aten.abs.default, aten.relu.default):
        return first if first.target is node.target else None
    if len(node.args) != 2 or isinstance(node.args[1], (fx.Node, list)):
        return None
    number = node.args[1]
    if before.dtype is not after.dtype:
        return None
    if node.target is aten.add.Tensor:
        minus_zero = number == 0 and str(float(number))[0] == "-"
        zero = minus_zero if before.dtype.is_floating_point else number == 0
        return first if zero else None
    if node.target is aten.sub.Tensor:
        return first if number == 0 else None
    if node.target in (aten.mul.Tensor, aten.div.Tensor):
        return first if number == 1 else None
    return None


# %% mistake: two_nots
# You took two `logical_not`s for nothing. Their result is a bool, whatever `x` is: of 3 they make
# `True`. Of a bool they do nothing.
def simplify(gm):
    for node in list(gm.graph.nodes):
        new = nothing_new(node)
        if new is not None:
            node.replace_all_uses_with(new)
    for node in reversed(gm.graph.nodes):
        if node.op == "call_function" and not node.users:
            gm.graph.erase_node(node)
    gm.recompile()


def nothing_new(node):
    if node.op != "call_function":
        return None
    first = node.args[0]
    before, after = first.meta["val"], node.meta["val"]
    if node.target is aten._to_copy.default:
        return first if dict(node.kwargs) == {"dtype": before.dtype} else None
    if node.kwargs:
        return None
    if node.target is aten.expand.default:
        return first if before.shape == after.shape else None
    if node.target in (aten.neg.default, aten.t.default, aten.bitwise_not.default):
        return first.args[0] if first.target is node.target else None
    if node.target is aten.logical_not.default and first.target is node.target:
        return first.args[0]
    if node.target in (aten.abs.default, aten.relu.default):
        return first if first.target is node.target else None
    if len(node.args) != 2 or isinstance(node.args[1], (fx.Node, list)):
        return None
    number = node.args[1]
    if before.dtype is not after.dtype:
        return None
    if node.target is aten.add.Tensor:
        minus_zero = number == 0 and str(float(number))[0] == "-"
        zero = minus_zero if before.dtype.is_floating_point else number == 0
        return first if zero else None
    if node.target is aten.sub.Tensor:
        return first if number == 0 and str(number) != "-0.0" else None
    if node.target in (aten.mul.Tensor, aten.div.Tensor):
        return first if number == 1 else None
    return None


# %% mistake: undoes_abs
# You took `abs(abs(x))` for `x`, as if `abs` undid itself. It is `abs(x)`: the second call goes and
# the first stays.
def simplify(gm):
    for node in list(gm.graph.nodes):
        new = nothing_new(node)
        if new is not None:
            node.replace_all_uses_with(new)
    for node in reversed(gm.graph.nodes):
        if node.op == "call_function" and not node.users:
            gm.graph.erase_node(node)
    gm.recompile()


def nothing_new(node):
    if node.op != "call_function":
        return None
    first = node.args[0]
    before, after = first.meta["val"], node.meta["val"]
    if node.target is aten._to_copy.default:
        return first if dict(node.kwargs) == {"dtype": before.dtype} else None
    if node.kwargs:
        return None
    if node.target is aten.expand.default:
        return first if before.shape == after.shape else None
    if node.target in (aten.neg.default, aten.t.default, aten.bitwise_not.default):
        return first.args[0] if first.target is node.target else None
    if node.target is aten.logical_not.default and first.target is node.target:
        return first.args[0] if first.args[0].meta["val"].dtype is torch.bool else None
    if node.target in (aten.abs.default, aten.relu.default):
        return first.args[0] if first.target is node.target else None
    if len(node.args) != 2 or isinstance(node.args[1], (fx.Node, list)):
        return None
    number = node.args[1]
    if before.dtype is not after.dtype:
        return None
    if node.target is aten.add.Tensor:
        minus_zero = number == 0 and str(float(number))[0] == "-"
        zero = minus_zero if before.dtype.is_floating_point else number == 0
        return first if zero else None
    if node.target is aten.sub.Tensor:
        return first if number == 0 and str(number) != "-0.0" else None
    if node.target in (aten.mul.Tensor, aten.div.Tensor):
        return first if number == 1 else None
    return None


# %% mistake: forgets_keywords
# You passed over keyword arguments. `alpha` scales what is added, and `rounding_mode` rounds.
def simplify(gm):
    for node in list(gm.graph.nodes):
        new = nothing_new(node)
        if new is not None:
            node.replace_all_uses_with(new)
    for node in reversed(gm.graph.nodes):
        if node.op == "call_function" and not node.users:
            gm.graph.erase_node(node)
    gm.recompile()


def nothing_new(node):
    if node.op != "call_function":
        return None
    first = node.args[0]
    before, after = first.meta["val"], node.meta["val"]
    if node.target is aten._to_copy.default:
        return first if dict(node.kwargs) == {"dtype": before.dtype} else None
    if node.target is aten.expand.default:
        return first if before.shape == after.shape else None
    if node.target in (aten.neg.default, aten.t.default, aten.bitwise_not.default):
        return first.args[0] if first.target is node.target else None
    if node.target is aten.logical_not.default and first.target is node.target:
        return first.args[0] if first.args[0].meta["val"].dtype is torch.bool else None
    if node.target in (aten.abs.default, aten.relu.default):
        return first if first.target is node.target else None
    if len(node.args) != 2 or isinstance(node.args[1], (fx.Node, list)):
        return None
    number = node.args[1]
    if before.dtype is not after.dtype:
        return None
    if node.target is aten.add.Tensor:
        minus_zero = number == 0 and str(float(number))[0] == "-"
        zero = minus_zero if before.dtype.is_floating_point else number == 0
        return first if zero else None
    if node.target is aten.sub.Tensor:
        return first if number == 0 and str(number) != "-0.0" else None
    if node.target in (aten.mul.Tensor, aten.div.Tensor, aten.div.Tensor_mode):
        return first if number == 1 else None
    return None


# %% mistake: one_rule_at_a_time
# You looked for each form in the graph as it was. When `x * 1` between two `neg`s goes, they have
# become neighbours: use the arguments as they are by then.
def simplify(gm):
    found = [(node, nothing_new(node)) for node in gm.graph.nodes]
    instead = {node: new for node, new in found if new is not None}
    for node, new in instead.items():
        while new in instead:
            new = instead[new]
        node.replace_all_uses_with(new)
    for node in reversed(gm.graph.nodes):
        if node.op == "call_function" and not node.users:
            gm.graph.erase_node(node)
    gm.recompile()


def nothing_new(node):
    if node.op != "call_function":
        return None
    first = node.args[0]
    before, after = first.meta["val"], node.meta["val"]
    if node.target is aten._to_copy.default:
        return first if dict(node.kwargs) == {"dtype": before.dtype} else None
    if node.kwargs:
        return None
    if node.target is aten.expand.default:
        return first if before.shape == after.shape else None
    if node.target in (aten.neg.default, aten.t.default, aten.bitwise_not.default):
        return first.args[0] if first.target is node.target else None
    if node.target is aten.logical_not.default and first.target is node.target:
        return first.args[0] if first.args[0].meta["val"].dtype is torch.bool else None
    if node.target in (aten.abs.default, aten.relu.default):
        return first if first.target is node.target else None
    if len(node.args) != 2 or isinstance(node.args[1], (fx.Node, list)):
        return None
    number = node.args[1]
    if before.dtype is not after.dtype:
        return None
    if node.target is aten.add.Tensor:
        minus_zero = number == 0 and str(float(number))[0] == "-"
        zero = minus_zero if before.dtype.is_floating_point else number == 0
        return first if zero else None
    if node.target is aten.sub.Tensor:
        return first if number == 0 and str(number) != "-0.0" else None
    if node.target in (aten.mul.Tensor, aten.div.Tensor):
        return first if number == 1 else None
    return None


# %% mistake: leaves_the_dead
# You left calls in the graph that nobody uses any more, such as the inner `neg` of two.
def simplify(gm):
    for node in list(gm.graph.nodes):
        new = nothing_new(node)
        if new is not None:
            node.replace_all_uses_with(new)
            gm.graph.erase_node(node)
    gm.recompile()


def nothing_new(node):
    if node.op != "call_function":
        return None
    first = node.args[0]
    before, after = first.meta["val"], node.meta["val"]
    if node.target is aten._to_copy.default:
        return first if dict(node.kwargs) == {"dtype": before.dtype} else None
    if node.kwargs:
        return None
    if node.target is aten.expand.default:
        return first if before.shape == after.shape else None
    if node.target in (aten.neg.default, aten.t.default, aten.bitwise_not.default):
        return first.args[0] if first.target is node.target else None
    if node.target is aten.logical_not.default and first.target is node.target:
        return first.args[0] if first.args[0].meta["val"].dtype is torch.bool else None
    if node.target in (aten.abs.default, aten.relu.default):
        return first if first.target is node.target else None
    if len(node.args) != 2 or isinstance(node.args[1], (fx.Node, list)):
        return None
    number = node.args[1]
    if before.dtype is not after.dtype:
        return None
    if node.target is aten.add.Tensor:
        minus_zero = number == 0 and str(float(number))[0] == "-"
        zero = minus_zero if before.dtype.is_floating_point else number == 0
        return first if zero else None
    if node.target is aten.sub.Tensor:
        return first if number == 0 and str(number) != "-0.0" else None
    if node.target in (aten.mul.Tensor, aten.div.Tensor):
        return first if number == 1 else None
    return None


# %% mistake: there_and_back
# You took a cast to another dtype and back for nothing. If the dtype between is narrower, as bfloat16
# is than float32, the way there rounds, and the way back does not bring the digits again.
def simplify(gm):
    for node in list(gm.graph.nodes):
        new = nothing_new(node)
        if new is not None:
            node.replace_all_uses_with(new)
    for node in reversed(gm.graph.nodes):
        if node.op == "call_function" and not node.users:
            gm.graph.erase_node(node)
    gm.recompile()


def nothing_new(node):
    if node.op != "call_function":
        return None
    first = node.args[0]
    before, after = first.meta["val"], node.meta["val"]
    if node.target is aten._to_copy.default and set(node.kwargs) == {"dtype"}:
        origin = first.args[0] if first.target is node.target else first
        return origin if origin.meta["val"].dtype is after.dtype else None
    if node.target is aten.expand.default:
        return first if before.shape == after.shape else None
    if node.target in (aten.neg.default, aten.t.default, aten.bitwise_not.default):
        return first.args[0] if first.target is node.target else None
    if node.target is aten.logical_not.default and first.target is node.target:
        return first.args[0] if first.args[0].meta["val"].dtype is torch.bool else None
    if node.target in (aten.abs.default, aten.relu.default):
        return first if first.target is node.target else None
    if len(node.args) != 2 or node.kwargs or isinstance(node.args[1], (fx.Node, list)):
        return None
    number = node.args[1]
    if before.dtype is not after.dtype:
        return None
    if node.target is aten.add.Tensor:
        minus_zero = number == 0 and str(float(number))[0] == "-"
        zero = minus_zero if before.dtype.is_floating_point else number == 0
        return first if zero else None
    if node.target is aten.sub.Tensor:
        plus_zero = number == 0 and str(number) != "-0.0"
        zero = plus_zero if before.dtype.is_floating_point else number == 0
        return first if zero else None
    if node.target in (aten.mul.Tensor, aten.div.Tensor):
        return first if number == 1 else None
    return None


# %% alternate: asks_torch
# Arithmetic with a number, decided by trying it on the values at which arithmetic is odd.
def simplify(gm):
    changed = True
    while changed:
        changed = False
        for node in gm.graph.nodes:
            if node.op != "call_function":
                continue
            target = stands_for(node)
            if target is not None and node.users:
                node.replace_all_uses_with(target)
                changed = True
        changed |= gm.graph.eliminate_dead_code()
    gm.recompile()


def stands_for(node):
    x = node.args[0]
    value = x.meta["val"]
    ops = [aten.add.Tensor, aten.sub.Tensor, aten.mul.Tensor, aten.div.Tensor]
    if node.target in ops and not node.kwargs and type(node.args[1]) in (int, float, bool):
        probes = torch.tensor([0.0, -0.0, 1.0, -3.0, 0.3, 100.0]).to(value.dtype)
        back = node.target(probes, node.args[1])
        if back.dtype != probes.dtype:
            return None
        alike = torch.equal(back, probes)
        if value.dtype.is_floating_point:
            alike = alike and torch.equal(back.signbit(), probes.signbit())
        return x if alike else None
    match node.target:
        case aten._to_copy.default:
            return (
                x
                if list(node.kwargs) == ["dtype"] and value.dtype == node.kwargs["dtype"]
                else None
            )
        case aten.expand.default:
            return x if list(value.shape) == list(node.meta["val"].shape) else None
        case aten.abs.default | aten.relu.default:
            return x if x.target == node.target else None
    own = [aten.neg.default, aten.t.default, aten.bitwise_not.default, aten.logical_not.default]
    if node.target in own and x.target == node.target:
        inner = x.args[0]
        return inner if inner.meta["val"].dtype == node.meta["val"].dtype else None
    return None


# %% alternate: new_graph
# A new graph, in which what changes nothing is never written down; then what nobody takes goes.
def simplify(gm):
    fresh, here = fx.Graph(), {}
    for node in gm.graph.nodes:
        copy = fresh.node_copy(node, here.__getitem__)
        here[node] = copy
        if node.op != "call_function":
            continue
        x = copy.args[0]
        like = x.meta["val"].dtype == copy.meta["val"].dtype
        name = copy.target._schema.name.split("::")[1]
        number = copy.args[1] if len(copy.args) == 2 else None
        plain = type(number) in (bool, int, float) and not copy.kwargs and like
        repeated = x.target == copy.target
        if name in ("neg", "t", "bitwise_not") and repeated:
            here[node] = x.args[0]
        elif name == "logical_not" and repeated and x.args[0].meta["val"].dtype == torch.bool:
            here[node] = x.args[0]
        elif name in ("abs", "relu") and repeated:
            here[node] = x
        elif name == "expand" and x.meta["val"].shape == copy.meta["val"].shape:
            here[node] = x
        elif name == "_to_copy" and like and set(copy.kwargs) == {"dtype"}:
            here[node] = x
        elif copy.target in (aten.mul.Tensor, aten.div.Tensor) and plain and number == 1:
            here[node] = x
        elif copy.target is aten.sub.Tensor and plain and repr(number) in ("0", "0.0"):
            here[node] = x
        elif copy.target is aten.add.Tensor and plain and number == 0:
            if not x.meta["val"].is_floating_point() or repr(number) == "-0.0":
                here[node] = x
    for node in list(fresh.nodes)[::-1]:
        if node.op == "call_function" and not node.users:
            fresh.erase_node(node)
    gm.graph = fresh
