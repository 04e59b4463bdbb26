# %% blocked: runs_it
# You run the program and read the answer off. Work it out from the steps.
def predict_flags(program):
    tensors = {}
    for kind, *args in program:
        if kind == "leaf":
            tensors[args[0]] = torch.ones(3, requires_grad=args[1])
        elif kind == "add":
            tensors[args[0]] = tensors[args[1]] + tensors[args[2]]
        elif kind in ("view", "detach", "clone"):
            more = (3,) if kind == "view" else ()
            tensors[args[0]] = getattr(tensors[args[1]], kind)(*more)
    return {n: (t.requires_grad, t.is_leaf, n) for n, t in tensors.items()}


# %% mistake: detach_copies
# You gave `detach` memory of its own. It shares the memory of its input, and a write through it
# reaches the original. Only the graph is cut.
def predict_flags(program):
    requires, leaf, owner = {}, {}, {}
    modes = [(True, False)]
    for kind, *args in program:
        grad_mode, inference = modes[-1]
        records = grad_mode and not inference
        if kind == "enter":
            modes.append((args[0] == "enable_grad", inference or args[0] == "inference_mode"))
        elif kind == "exit":
            modes.pop()
        elif kind == "requires_grad_":
            requires[args[0]] = args[1]
        elif kind == "add_":
            if records and any(requires[one] for one in args):
                requires[args[0]], leaf[args[0]] = True, False
        elif kind == "leaf":
            name, flag = args
            requires[name], leaf[name], owner[name] = flag, True, name
        else:
            name, *inputs = args
            some = any(requires[one] for one in inputs) and kind not in ("detach", "greater")
            requires[name] = some and (records or kind == "view")
            leaf[name] = not (some and records)
            owner[name] = owner[inputs[0]] if kind == "view" else name
    return {name: (requires[name], leaf[name], owner[name]) for name in owner}


# %% mistake: clone_is_a_leaf
# Your clones are leaves, cut off from the graph. `clone` is an operation like any other: its
# result has a `grad_fn`, and gradients flow through it to the original.
def predict_flags(program):
    requires, leaf, owner = {}, {}, {}
    modes = [(True, False)]
    for kind, *args in program:
        grad_mode, inference = modes[-1]
        records = grad_mode and not inference
        if kind == "enter":
            modes.append((args[0] == "enable_grad", inference or args[0] == "inference_mode"))
        elif kind == "exit":
            modes.pop()
        elif kind == "requires_grad_":
            requires[args[0]] = args[1]
        elif kind == "add_":
            if records and any(requires[one] for one in args):
                requires[args[0]], leaf[args[0]] = True, False
        elif kind == "leaf":
            name, flag = args
            requires[name], leaf[name], owner[name] = flag, True, name
        else:
            name, *inputs = args
            some = any(requires[one] for one in inputs) and kind not in (
                "detach",
                "greater",
                "clone",
            )
            requires[name] = some and (records or kind == "view")
            leaf[name] = not (some and records)
            owner[name] = owner[inputs[0]] if kind in ("view", "detach") else name
    return {name: (requires[name], leaf[name], owner[name]) for name in owner}


# %% mistake: clone_shares
# You let `clone` share the memory of its input. It is the one of the three that copies.
def predict_flags(program):
    requires, leaf, owner = {}, {}, {}
    modes = [(True, False)]
    for kind, *args in program:
        grad_mode, inference = modes[-1]
        records = grad_mode and not inference
        if kind == "enter":
            modes.append((args[0] == "enable_grad", inference or args[0] == "inference_mode"))
        elif kind == "exit":
            modes.pop()
        elif kind == "requires_grad_":
            requires[args[0]] = args[1]
        elif kind == "add_":
            if records and any(requires[one] for one in args):
                requires[args[0]], leaf[args[0]] = True, False
        elif kind == "leaf":
            name, flag = args
            requires[name], leaf[name], owner[name] = flag, True, name
        else:
            name, *inputs = args
            some = any(requires[one] for one in inputs) and kind not in ("detach", "greater")
            requires[name] = some and (records or kind == "view")
            leaf[name] = not (some and records)
            owner[name] = owner[inputs[0]] if kind in ("view", "detach", "clone") else name
    return {name: (requires[name], leaf[name], owner[name]) for name in owner}


# %% mistake: comparisons_require_grad
# A comparison gives booleans, and those have no derivative. Its result never requires grad,
# whatever its inputs do.
def predict_flags(program):
    requires, leaf, owner = {}, {}, {}
    modes = [(True, False)]
    for kind, *args in program:
        grad_mode, inference = modes[-1]
        records = grad_mode and not inference
        if kind == "enter":
            modes.append((args[0] == "enable_grad", inference or args[0] == "inference_mode"))
        elif kind == "exit":
            modes.pop()
        elif kind == "requires_grad_":
            requires[args[0]] = args[1]
        elif kind == "add_":
            if records and any(requires[one] for one in args):
                requires[args[0]], leaf[args[0]] = True, False
        elif kind == "leaf":
            name, flag = args
            requires[name], leaf[name], owner[name] = flag, True, name
        else:
            name, *inputs = args
            some = any(requires[one] for one in inputs) and kind != "detach"
            requires[name] = some and (records or kind == "view")
            leaf[name] = not (some and records)
            owner[name] = owner[inputs[0]] if kind in ("view", "detach") else name
    return {name: (requires[name], leaf[name], owner[name]) for name in owner}


# %% mistake: no_grad_marks_all
# Under `no_grad` you marked everything as not requiring grad, leaves too. A leaf is what
# `requires_grad=` says, in any mode; only the results of operations go unrecorded.
def predict_flags(program):
    requires, leaf, owner = {}, {}, {}
    modes = [(True, False)]
    for kind, *args in program:
        grad_mode, inference = modes[-1]
        records = grad_mode and not inference
        if kind == "enter":
            modes.append((args[0] == "enable_grad", inference or args[0] == "inference_mode"))
        elif kind == "exit":
            modes.pop()
        elif kind == "requires_grad_":
            requires[args[0]] = args[1]
        elif kind == "add_":
            if records and any(requires[one] for one in args):
                requires[args[0]], leaf[args[0]] = True, False
        elif kind == "leaf":
            name, flag = args
            requires[name], leaf[name], owner[name] = flag and records, True, name
        else:
            name, *inputs = args
            some = any(requires[one] for one in inputs) and kind not in ("detach", "greater")
            requires[name] = some and (records or kind == "view")
            leaf[name] = not (some and records)
            owner[name] = owner[inputs[0]] if kind in ("view", "detach") else name
    return {name: (requires[name], leaf[name], owner[name]) for name in owner}


# %% mistake: views_forget
# Where nothing is recorded, your views do not require grad. A view without a `grad_fn` is a leaf,
# but it lives in a tensor that requires grad, and says so itself.
def predict_flags(program):
    requires, leaf, owner = {}, {}, {}
    modes = [(True, False)]
    for kind, *args in program:
        grad_mode, inference = modes[-1]
        records = grad_mode and not inference
        if kind == "enter":
            modes.append((args[0] == "enable_grad", inference or args[0] == "inference_mode"))
        elif kind == "exit":
            modes.pop()
        elif kind == "requires_grad_":
            requires[args[0]] = args[1]
        elif kind == "add_":
            if records and any(requires[one] for one in args):
                requires[args[0]], leaf[args[0]] = True, False
        elif kind == "leaf":
            name, flag = args
            requires[name], leaf[name], owner[name] = flag, True, name
        else:
            name, *inputs = args
            some = any(requires[one] for one in inputs) and kind not in ("detach", "greater")
            requires[name] = some and records
            leaf[name] = not (some and records)
            owner[name] = owner[inputs[0]] if kind in ("view", "detach") else name
    return {name: (requires[name], leaf[name], owner[name]) for name in owner}


# %% mistake: inference_views_forget
# Your views made inside `inference_mode` never require grad. A view of a tensor from outside is an ordinary view,
# as under `no_grad`: it lives in a tensor that requires grad, and says so.
def predict_flags(program):
    requires, leaf, owner = {}, {}, {}
    modes = [(True, False)]
    for kind, *args in program:
        grad_mode, inference = modes[-1]
        records = grad_mode and not inference
        if kind == "enter":
            modes.append((args[0] == "enable_grad", inference or args[0] == "inference_mode"))
        elif kind == "exit":
            modes.pop()
        elif kind == "requires_grad_":
            requires[args[0]] = args[1]
        elif kind == "add_":
            if records and any(requires[one] for one in args):
                requires[args[0]], leaf[args[0]] = True, False
        elif kind == "leaf":
            name, flag = args
            requires[name], leaf[name], owner[name] = flag, True, name
        else:
            name, *inputs = args
            some = any(requires[one] for one in inputs) and kind not in ("detach", "greater")
            requires[name] = some and (records or (kind == "view" and not inference))
            leaf[name] = not (some and records)
            owner[name] = owner[inputs[0]] if kind in ("view", "detach") else name
    return {name: (requires[name], leaf[name], owner[name]) for name in owner}


# %% mistake: flag_makes_a_leaf
# You call a tensor a leaf once its flag is set. `requires_grad_` sets the flag of a leaf; of a result, it changes
# nothing, and a result it stays.
def predict_flags(program):
    requires, leaf, owner = {}, {}, {}
    modes = [(True, False)]
    for kind, *args in program:
        grad_mode, inference = modes[-1]
        records = grad_mode and not inference
        if kind == "enter":
            modes.append((args[0] == "enable_grad", inference or args[0] == "inference_mode"))
        elif kind == "exit":
            modes.pop()
        elif kind == "requires_grad_":
            requires[args[0]], leaf[args[0]] = args[1], True
        elif kind == "add_":
            if records and any(requires[one] for one in args):
                requires[args[0]], leaf[args[0]] = True, False
        elif kind == "leaf":
            name, flag = args
            requires[name], leaf[name], owner[name] = flag, True, name
        else:
            name, *inputs = args
            some = any(requires[one] for one in inputs) and kind not in ("detach", "greater")
            requires[name] = some and (records or kind == "view")
            leaf[name] = not (some and records)
            owner[name] = owner[inputs[0]] if kind in ("view", "detach") else name
    return {name: (requires[name], leaf[name], owner[name]) for name in owner}


# %% mistake: flag_takes_the_memory
# You give a tensor memory of its own when its flag is set. A tensor from `detach` shares the memory of its input,
# whatever its flag says.
def predict_flags(program):
    requires, leaf, owner = {}, {}, {}
    modes = [(True, False)]
    for kind, *args in program:
        grad_mode, inference = modes[-1]
        records = grad_mode and not inference
        if kind == "enter":
            modes.append((args[0] == "enable_grad", inference or args[0] == "inference_mode"))
        elif kind == "exit":
            modes.pop()
        elif kind == "requires_grad_":
            requires[args[0]], owner[args[0]] = args[1], args[0]
        elif kind == "add_":
            if records and any(requires[one] for one in args):
                requires[args[0]], leaf[args[0]] = True, False
        elif kind == "leaf":
            name, flag = args
            requires[name], leaf[name], owner[name] = flag, True, name
        else:
            name, *inputs = args
            some = any(requires[one] for one in inputs) and kind not in ("detach", "greater")
            requires[name] = some and (records or kind == "view")
            leaf[name] = not (some and records)
            owner[name] = owner[inputs[0]] if kind in ("view", "detach") else name
    return {name: (requires[name], leaf[name], owner[name]) for name in owner}


# %% mistake: enable_grad_wins
# You let `enable_grad` switch recording on inside `inference_mode`. It switches grad mode on, and
# still nothing is recorded: inference mode has the last word.
def predict_flags(program):
    requires, leaf, owner = {}, {}, {}
    modes = [(True, False)]
    for kind, *args in program:
        grad_mode, inference = modes[-1]
        records = grad_mode
        if kind == "enter":
            modes.append((args[0] == "enable_grad", inference or args[0] == "inference_mode"))
        elif kind == "exit":
            modes.pop()
        elif kind == "requires_grad_":
            requires[args[0]] = args[1]
        elif kind == "add_":
            if records and any(requires[one] for one in args):
                requires[args[0]], leaf[args[0]] = True, False
        elif kind == "leaf":
            name, flag = args
            requires[name], leaf[name], owner[name] = flag, True, name
        else:
            name, *inputs = args
            some = any(requires[one] for one in inputs) and kind not in ("detach", "greater")
            requires[name] = some and (records or kind == "view")
            leaf[name] = not (some and records)
            owner[name] = owner[inputs[0]] if kind in ("view", "detach") else name
    return {name: (requires[name], leaf[name], owner[name]) for name in owner}


# %% mistake: exit_switches_on
# Leaving a `with` switches your grad mode on. It goes back to what it was outside, which may be
# off: modes nest.
def predict_flags(program):
    requires, leaf, owner = {}, {}, {}
    modes = [(True, False)]
    for kind, *args in program:
        grad_mode, inference = modes[-1]
        records = grad_mode and not inference
        if kind == "enter":
            modes.append((args[0] == "enable_grad", inference or args[0] == "inference_mode"))
        elif kind == "exit":
            modes = [(True, False)]
        elif kind == "requires_grad_":
            requires[args[0]] = args[1]
        elif kind == "add_":
            if records and any(requires[one] for one in args):
                requires[args[0]], leaf[args[0]] = True, False
        elif kind == "leaf":
            name, flag = args
            requires[name], leaf[name], owner[name] = flag, True, name
        else:
            name, *inputs = args
            some = any(requires[one] for one in inputs) and kind not in ("detach", "greater")
            requires[name] = some and (records or kind == "view")
            leaf[name] = not (some and records)
            owner[name] = owner[inputs[0]] if kind in ("view", "detach") else name
    return {name: (requires[name], leaf[name], owner[name]) for name in owner}


# %% mistake: in_place_stays_a_leaf
# After `a.add_(b)` with a `b` that requires grad, your `a` is still a leaf that requires nothing.
# The change is recorded, and `a` is now its result.
def predict_flags(program):
    requires, leaf, owner = {}, {}, {}
    modes = [(True, False)]
    for kind, *args in program:
        grad_mode, inference = modes[-1]
        records = grad_mode and not inference
        if kind == "enter":
            modes.append((args[0] == "enable_grad", inference or args[0] == "inference_mode"))
        elif kind == "exit":
            modes.pop()
        elif kind == "requires_grad_":
            requires[args[0]] = args[1]
        elif kind == "add_":
            if False:
                requires[args[0]], leaf[args[0]] = True, False
        elif kind == "leaf":
            name, flag = args
            requires[name], leaf[name], owner[name] = flag, True, name
        else:
            name, *inputs = args
            some = any(requires[one] for one in inputs) and kind not in ("detach", "greater")
            requires[name] = some and (records or kind == "view")
            leaf[name] = not (some and records)
            owner[name] = owner[inputs[0]] if kind in ("view", "detach") else name
    return {name: (requires[name], leaf[name], owner[name]) for name in owner}


# %% mistake: in_place_always
# You record `add_` also where nothing is recorded. Under `no_grad` a leaf may be changed in place
# and stays what it was; every optimiser lives on that.
def predict_flags(program):
    requires, leaf, owner = {}, {}, {}
    modes = [(True, False)]
    for kind, *args in program:
        grad_mode, inference = modes[-1]
        records = grad_mode and not inference
        if kind == "enter":
            modes.append((args[0] == "enable_grad", inference or args[0] == "inference_mode"))
        elif kind == "exit":
            modes.pop()
        elif kind == "requires_grad_":
            requires[args[0]] = args[1]
        elif kind == "add_":
            if any(requires[one] for one in args):
                requires[args[0]], leaf[args[0]] = True, False
        elif kind == "leaf":
            name, flag = args
            requires[name], leaf[name], owner[name] = flag, True, name
        else:
            name, *inputs = args
            some = any(requires[one] for one in inputs) and kind not in ("detach", "greater")
            requires[name] = some and (records or kind == "view")
            leaf[name] = not (some and records)
            owner[name] = owner[inputs[0]] if kind in ("view", "detach") else name
    return {name: (requires[name], leaf[name], owner[name]) for name in owner}


# %% mistake: owner_is_the_nearest
# You named the tensor that a view was made of. A view of a view lives in the memory of the first:
# follow it to the tensor that the memory was made for.
def predict_flags(program):
    requires, leaf, owner = {}, {}, {}
    modes = [(True, False)]
    for kind, *args in program:
        grad_mode, inference = modes[-1]
        records = grad_mode and not inference
        if kind == "enter":
            modes.append((args[0] == "enable_grad", inference or args[0] == "inference_mode"))
        elif kind == "exit":
            modes.pop()
        elif kind == "requires_grad_":
            requires[args[0]] = args[1]
        elif kind == "add_":
            if records and any(requires[one] for one in args):
                requires[args[0]], leaf[args[0]] = True, False
        elif kind == "leaf":
            name, flag = args
            requires[name], leaf[name], owner[name] = flag, True, name
        else:
            name, *inputs = args
            some = any(requires[one] for one in inputs) and kind not in ("detach", "greater")
            requires[name] = some and (records or kind == "view")
            leaf[name] = not (some and records)
            owner[name] = inputs[0] if kind in ("view", "detach") else name
    return {name: (requires[name], leaf[name], owner[name]) for name in owner}


# %% mistake: all_inputs
# You ask that all inputs require grad. One is enough: its gradient needs the step recorded.
def predict_flags(program):
    requires, leaf, owner = {}, {}, {}
    modes = [(True, False)]
    for kind, *args in program:
        grad_mode, inference = modes[-1]
        records = grad_mode and not inference
        if kind == "enter":
            modes.append((args[0] == "enable_grad", inference or args[0] == "inference_mode"))
        elif kind == "exit":
            modes.pop()
        elif kind == "requires_grad_":
            requires[args[0]] = args[1]
        elif kind == "add_":
            if records and any(requires[one] for one in args):
                requires[args[0]], leaf[args[0]] = True, False
        elif kind == "leaf":
            name, flag = args
            requires[name], leaf[name], owner[name] = flag, True, name
        else:
            name, *inputs = args
            some = all(requires[one] for one in inputs) and kind not in ("detach", "greater")
            requires[name] = some and (records or kind == "view")
            leaf[name] = not (some and records)
            owner[name] = owner[inputs[0]] if kind in ("view", "detach") else name
    return {name: (requires[name], leaf[name], owner[name]) for name in owner}


# %% mistake: leaf_means_requires_grad
# You call a tensor a leaf if it requires grad and has no `grad_fn`. Every tensor without a
# `grad_fn` is a leaf, also one that requires nothing.
def predict_flags(program):
    requires, leaf, owner = {}, {}, {}
    modes = [(True, False)]
    for kind, *args in program:
        grad_mode, inference = modes[-1]
        records = grad_mode and not inference
        if kind == "enter":
            modes.append((args[0] == "enable_grad", inference or args[0] == "inference_mode"))
        elif kind == "exit":
            modes.pop()
        elif kind == "requires_grad_":
            requires[args[0]] = args[1]
        elif kind == "add_":
            if records and any(requires[one] for one in args):
                requires[args[0]], leaf[args[0]] = True, False
        elif kind == "leaf":
            name, flag = args
            requires[name], leaf[name], owner[name] = flag, True, name
        else:
            name, *inputs = args
            some = any(requires[one] for one in inputs) and kind not in ("detach", "greater")
            requires[name] = some and (records or kind == "view")
            leaf[name] = some and not records
            owner[name] = owner[inputs[0]] if kind in ("view", "detach") else name
    return {name: (requires[name], leaf[name], owner[name]) for name in owner}


# %% alternate: one_record_each
# A dict per tensor, and the stack of modes as names.
def predict_flags(program):
    tensors, modes = {}, []

    def recording():
        if "inference_mode" in modes:
            return False
        return not modes or modes[-1] == "enable_grad"

    for step in program:
        match step:
            case ["enter", mode]:
                modes = [*modes, mode]
            case ["exit"]:
                modes = modes[:-1]
            case ["leaf", name, flag]:
                tensors[name] = {"requires": flag, "node": False, "owner": name}
            case ["requires_grad_", name, flag]:
                tensors[name]["requires"] = flag
            case ["add_", name, other]:
                grads = tensors[name]["requires"] or tensors[other]["requires"]
                if grads and recording():
                    tensors[name].update(requires=True, node=True)
            case ["greater", name, _, _]:
                tensors[name] = {"requires": False, "node": False, "owner": name}
            case ["detach", name, one]:
                tensors[name] = {"requires": False, "node": False, "owner": tensors[one]["owner"]}
            case ["view", name, one]:
                grads = tensors[one]["requires"]
                tensors[name] = dict(tensors[one], node=grads and recording())
            case [_, name, *inputs]:
                grads = recording() and any(tensors[one]["requires"] for one in inputs)
                tensors[name] = {"requires": grads, "node": grads, "owner": name}
    return {n: (t["requires"], not t["node"], t["owner"]) for n, t in tensors.items()}


# %% alternate: backwards_for_the_owner
# The flags step by step; the owners afterwards, by following views to their beginning.
def predict_flags(program):
    flags, parent, depth = {}, {}, [2]
    for step in program:
        kind = step[0]
        if kind == "enter":
            outer = depth[-1]
            inner = {"no_grad": 1, "enable_grad": 2, "inference_mode": 0}[step[1]]
            depth.append(0 if outer == 0 else inner)
            continue
        if kind == "exit":
            depth.pop()
            continue
        records = depth[-1] == 2
        name = step[1]
        if kind == "leaf":
            flags[name] = (step[2], True)
        elif kind == "requires_grad_":
            flags[name] = (step[2], flags[name][1])
        elif kind == "add_":
            if records and (flags[name][0] or flags[step[2]][0]):
                flags[name] = (True, False)
        elif kind in ("detach", "greater"):
            flags[name] = (False, True)
        else:
            grads = bool([one for one in step[2:] if flags[one][0]])
            flags[name] = (grads and (records or kind == "view"), not (grads and records))
        if kind in ("detach", "view"):
            parent[name] = step[2]
    result = {}
    for name, pair in flags.items():
        owner = name
        while owner in parent:
            owner = parent[owner]
        result[name] = (*pair, owner)
    return result
