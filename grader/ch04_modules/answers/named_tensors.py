# %% blocked: the_methods
# These methods are what you are asked to build.
def named_tensors(module, kind, prefix="", recurse=True, remove_duplicate=True):
    if kind == "parameters":
        return module.named_parameters(prefix, recurse, remove_duplicate)
    return module.named_buffers(prefix, recurse, remove_duplicate)


# %% blocked: the_checkpoint
# A checkpoint is another list: it has every name, it leaves out buffers that are not saved, and it
# mixes parameters with buffers.
def named_tensors(module, kind, prefix="", recurse=True, remove_duplicate=True):
    for name, tensor in module.state_dict(keep_vars=True).items():
        yield name, tensor


# %% mistake: only_unique_modules
# You rely on the walk, which gives each module once. A tensor may be registered in two modules, or
# twice in one. Remember tensors, too.
def named_tensors(module, kind, prefix="", recurse=True, remove_duplicate=True):
    if kind not in ("parameters", "buffers"):
        raise ValueError(kind)
    modules = [(prefix, module)]
    if recurse:
        modules = module.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
    for path, owner in modules:
        for name, tensor in getattr(owner, f"_{kind}").items():
            if tensor is not None:
                yield (f"{path}.{name}" if path else name), tensor


# %% mistake: walk_removes_duplicates
# Your walk gives each module once even when every name is asked for: the tensors of a shared module
# lack their other names. Hand `remove_duplicate` on to the walk.
def named_tensors(module, kind, prefix="", recurse=True, remove_duplicate=True):
    if kind not in ("parameters", "buffers"):
        raise ValueError(kind)
    found = set()
    for path, owner in module.named_modules(prefix=prefix) if recurse else [(prefix, module)]:
        for name, tensor in getattr(owner, f"_{kind}").items():
            if tensor is None or tensor in found:
                continue
            if remove_duplicate:
                found.add(tensor)
            yield (f"{path}.{name}" if path else name), tensor


# %% mistake: remembers_in_a_list
# `tensor in some_list` compares elements with `==`: tensors of one equal element count as the same,
# and larger ones raise an error. Keep a set, or the `id` of each.
def named_tensors(module, kind, prefix="", recurse=True, remove_duplicate=True):
    if kind not in ("parameters", "buffers"):
        raise ValueError(kind)
    modules = [(prefix, module)]
    if recurse:
        modules = module.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
    found = []
    for path, owner in modules:
        for name, tensor in getattr(owner, f"_{kind}").items():
            if tensor is None or tensor in found:
                continue
            if remove_duplicate:
                found.append(tensor)
            yield (f"{path}.{name}" if path else name), tensor


# %% mistake: compares_values
# You take tensors with equal values for the same. A fresh model has many: every bias of a norm is
# zero. The same tensor is the same object.
def named_tensors(module, kind, prefix="", recurse=True, remove_duplicate=True):
    if kind not in ("parameters", "buffers"):
        raise ValueError(kind)
    modules = [(prefix, module)]
    if recurse:
        modules = module.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
    found = []
    for path, owner in modules:
        for name, tensor in getattr(owner, f"_{kind}").items():
            if tensor is None or any(torch.equal(tensor, other) for other in found):
                continue
            if remove_duplicate:
                found.append(tensor)
            yield (f"{path}.{name}" if path else name), tensor


# %% mistake: compares_addresses
# You compare addresses. Two parameters may share memory, and all empty ones have the address 0;
# they are different parameters nevertheless.
def named_tensors(module, kind, prefix="", recurse=True, remove_duplicate=True):
    if kind not in ("parameters", "buffers"):
        raise ValueError(kind)
    modules = [(prefix, module)]
    if recurse:
        modules = module.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
    found = set()
    for path, owner in modules:
        for name, tensor in getattr(owner, f"_{kind}").items():
            if tensor is None or tensor.data_ptr() in found:
                continue
            if remove_duplicate:
                found.add(tensor.data_ptr())
            yield (f"{path}.{name}" if path else name), tensor


# %% mistake: only_trainable
# You leave out parameters that want no gradient. Frozen ones are parameters, too; whoever wants the
# trainable ones filters.
def named_tensors(module, kind, prefix="", recurse=True, remove_duplicate=True):
    if kind not in ("parameters", "buffers"):
        raise ValueError(kind)
    modules = [(prefix, module)]
    if recurse:
        modules = module.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
    found = set()
    for path, owner in modules:
        for name, tensor in getattr(owner, f"_{kind}").items():
            if tensor is None or tensor in found:
                continue
            if kind == "parameters" and not tensor.requires_grad:
                continue
            if remove_duplicate:
                found.add(tensor)
            yield (f"{path}.{name}" if path else name), tensor


# %% mistake: only_saved
# You leave out buffers that are not persistent. That flag is about checkpoints; the buffer is part of
# the module and moves with it.
def named_tensors(module, kind, prefix="", recurse=True, remove_duplicate=True):
    if kind not in ("parameters", "buffers"):
        raise ValueError(kind)
    modules = [(prefix, module)]
    if recurse:
        modules = module.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
    found = set()
    for path, owner in modules:
        for name, tensor in getattr(owner, f"_{kind}").items():
            if tensor is None or tensor in found or name in owner._non_persistent_buffers_set:
                continue
            if remove_duplicate:
                found.add(tensor)
            yield (f"{path}.{name}" if path else name), tensor


# %% mistake: none_comes_too
# You give entries that are `None`. A layer without a bias has a bias that is `None`; there is no
# tensor to give.
def named_tensors(module, kind, prefix="", recurse=True, remove_duplicate=True):
    if kind not in ("parameters", "buffers"):
        raise ValueError(kind)
    modules = [(prefix, module)]
    if recurse:
        modules = module.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
    found = set()
    for path, owner in modules:
        for name, tensor in getattr(owner, f"_{kind}").items():
            if tensor is not None and tensor in found:
                continue
            if remove_duplicate:
                found.add(tensor)
            yield (f"{path}.{name}" if path else name), tensor


# %% mistake: anything_else_is_a_buffer
# Your function takes any other `kind` for buffers. A misspelt word should raise a `ValueError`, not
# give the wrong list.
def named_tensors(module, kind, prefix="", recurse=True, remove_duplicate=True):
    modules = [(prefix, module)]
    if recurse:
        modules = module.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
    found = set()
    for path, owner in modules:
        registry = owner._parameters if kind == "parameters" else owner._buffers
        for name, tensor in registry.items():
            if tensor is None or tensor in found:
                continue
            if remove_duplicate:
                found.add(tensor)
            yield (f"{path}.{name}" if path else name), tensor


# %% mistake: any_registry
# You look for a registry of whatever name comes. `kind="modules"` gives children, and of a misspelt
# word the caller learns what you looked for, not what he may ask for. Raise a `ValueError`.
def named_tensors(module, kind, prefix="", recurse=True, remove_duplicate=True):
    modules = [(prefix, module)]
    if recurse:
        modules = module.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
    found = set()
    for path, owner in modules:
        for name, tensor in getattr(owner, f"_{kind}").items():
            if tensor is None or tensor in found:
                continue
            if remove_duplicate:
                found.add(tensor)
            yield (f"{path}.{name}" if path else name), tensor


# %% mistake: detached
# You give detached tensors. An optimiser needs the very objects that the modules hold: of any other
# it sees no gradient.
def named_tensors(module, kind, prefix="", recurse=True, remove_duplicate=True):
    if kind not in ("parameters", "buffers"):
        raise ValueError(kind)
    modules = [(prefix, module)]
    if recurse:
        modules = module.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
    found = set()
    for path, owner in modules:
        for name, tensor in getattr(owner, f"_{kind}").items():
            if tensor is None or tensor in found:
                continue
            if remove_duplicate:
                found.add(tensor)
            yield (f"{path}.{name}" if path else name), tensor.detach()


# %% mistake: no_memory_without_recursion
# Without `recurse` you forget `remove_duplicate`. One module may hold a tensor under two names.
def named_tensors(module, kind, prefix="", recurse=True, remove_duplicate=True):
    if kind not in ("parameters", "buffers"):
        raise ValueError(kind)
    modules = [(prefix, module)]
    if recurse:
        modules = module.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
    found = set()
    for path, owner in modules:
        for name, tensor in getattr(owner, f"_{kind}").items():
            if tensor is None or tensor in found:
                continue
            if remove_duplicate and recurse:
                found.add(tensor)
            yield (f"{path}.{name}" if path else name), tensor


# %% alternate: recursion
# No walk over modules: the function calls itself, and filters by identity at the end.
def named_tensors(module, kind, prefix="", recurse=True, remove_duplicate=True):
    if kind not in ("parameters", "buffers"):
        raise ValueError("unknown kind")
    seen_modules, seen = set(), set()

    def visit(path, owner):
        if owner is None or (remove_duplicate and id(owner) in seen_modules):
            return
        seen_modules.add(id(owner))
        dot = path and path + "."
        for name, tensor in vars(owner)["_" + kind].items():
            if tensor is not None and not (remove_duplicate and id(tensor) in seen):
                seen.add(id(tensor))
                yield dot + name, tensor
        if recurse:
            for name, child in owner._modules.items():
                yield from visit(dot + name, child)

    yield from visit(prefix, module)


# %% alternate: by_dictionary
# A dictionary from each tensor's identity to its first pair keeps the order by itself.
def named_tensors(module, kind, prefix="", recurse=True, remove_duplicate=True):
    registry = {"parameters": "_parameters", "buffers": "_buffers"}.get(kind)
    if registry is None:
        raise ValueError(kind)
    walk = module.named_modules(None, prefix, False) if recurse else [(prefix, module)]
    pairs = [
        (path + "." * bool(path) + name, tensor)
        for path, owner in walk
        for name, tensor in getattr(owner, registry).items()
        if tensor is not None
    ]
    if remove_duplicate:
        first = {}
        for name, tensor in pairs:
            first.setdefault(id(tensor), (name, tensor))
        pairs = list(first.values())
    return iter(pairs)
