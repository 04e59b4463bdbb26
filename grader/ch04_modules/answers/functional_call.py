# %% blocked: torchs_own
# This is the function that you are asked to build.
def functional_call(module, tensors, args=(), kwargs=None, strict=False):
    return torch.func.functional_call(module, tensors, args, kwargs, strict=strict)


# %% mistake: no_finally
# You put the module's own tensors back after the call, and when `forward` raises there is no
# after. Use `try` and `finally`.
def functional_call(module, tensors, args=(), kwargs=None, strict=False):
    places = {}
    for path, owner in module.named_modules(remove_duplicate=False):
        for registry in (owner._parameters, owner._buffers):
            for key, own in registry.items():
                if own is not None:
                    places[f"{path}.{key}" if path else key] = registry, key, own

    unknown = [name for name in tensors if name not in places]
    if unknown:
        raise RuntimeError(f"the module has no {unknown}")
    replacements = {}
    for name, given in tensors.items():
        if replacements.setdefault(places[name][2], given) is not given:
            raise ValueError(f"{name!r} is tied to another name, which has another tensor")
    missing = [name for name, place in places.items() if place[2] not in replacements]
    if strict and missing:
        raise RuntimeError(f"nothing is given for {missing}")

    for registry, key, own in places.values():
        if own in replacements:
            registry[key] = replacements[own]
    result = module(*args, **(kwargs or {}))
    for registry, key, own in places.values():
        if own in replacements:
            registry[key] = own
    return result


# %% mistake: one_name_only
# You replace a tensor under the name that was given. A tied weight is used under another name as
# well, and there it is still the old one.
def functional_call(module, tensors, args=(), kwargs=None, strict=False):
    places = {}
    for path, owner in module.named_modules(remove_duplicate=False):
        for registry in (owner._parameters, owner._buffers):
            for key, own in registry.items():
                if own is not None:
                    places[f"{path}.{key}" if path else key] = registry, key, own

    unknown = [name for name in tensors if name not in places]
    if unknown:
        raise RuntimeError(f"the module has no {unknown}")
    replacements = {}
    for name, given in tensors.items():
        if replacements.setdefault(places[name][2], given) is not given:
            raise ValueError(f"{name!r} is tied to another name, which has another tensor")
    missing = [name for name, place in places.items() if place[2] not in replacements]
    if strict and missing:
        raise RuntimeError(f"nothing is given for {missing}")

    try:
        for name, given in tensors.items():
            registry, key, own = places[name]
            registry[key] = given
        return module(*args, **(kwargs or {}))
    finally:
        for registry, key, own in places.values():
            if own in replacements:
                registry[key] = own


# %% mistake: copies_values
# You copy the given values into the module's parameters and back. No gradient reaches the given
# tensors that way. Put the tensors themselves into the registries.
def functional_call(module, tensors, args=(), kwargs=None, strict=False):
    places = {}
    for path, owner in module.named_modules(remove_duplicate=False):
        for registry in (owner._parameters, owner._buffers):
            for key, own in registry.items():
                if own is not None:
                    places[f"{path}.{key}" if path else key] = registry, key, own

    unknown = [name for name in tensors if name not in places]
    if unknown:
        raise RuntimeError(f"the module has no {unknown}")
    replacements = {}
    for name, given in tensors.items():
        if replacements.setdefault(places[name][2], given) is not given:
            raise ValueError(f"{name!r} is tied to another name, which has another tensor")
    missing = [name for name, place in places.items() if place[2] not in replacements]
    if strict and missing:
        raise RuntimeError(f"nothing is given for {missing}")

    try:
        for registry, key, own in places.values():
            if own in replacements:
                own.data, replacements[own] = replacements[own].detach(), own.data
        return module(*args, **(kwargs or {}))
    finally:
        for registry, key, own in places.values():
            if own in replacements:
                own.data = replacements[own]


# %% mistake: makes_parameters
# You wrap the given tensors in new parameters. A `Parameter` is a leaf: gradients stop there and
# never reach what was given.
def functional_call(module, tensors, args=(), kwargs=None, strict=False):
    places = {}
    for path, owner in module.named_modules(remove_duplicate=False):
        for registry in (owner._parameters, owner._buffers):
            for key, own in registry.items():
                if own is not None:
                    places[f"{path}.{key}" if path else key] = registry, key, own

    unknown = [name for name in tensors if name not in places]
    if unknown:
        raise RuntimeError(f"the module has no {unknown}")
    replacements = {}
    for name, given in tensors.items():
        if replacements.setdefault(places[name][2], given) is not given:
            raise ValueError(f"{name!r} is tied to another name, which has another tensor")
    missing = [name for name, place in places.items() if place[2] not in replacements]
    if strict and missing:
        raise RuntimeError(f"nothing is given for {missing}")

    try:
        for registry, key, own in places.values():
            if own in replacements:
                registry[key] = nn.Parameter(replacements[own])
        return module(*args, **(kwargs or {}))
    finally:
        for registry, key, own in places.values():
            if own in replacements:
                registry[key] = own


# %% mistake: calls_a_copy
# You call a deep copy. Hooks that belong to the module, what its `forward` counts, its own
# buffers: all of that happens to the copy, and is gone.
def functional_call(module, tensors, args=(), kwargs=None, strict=False):
    import copy

    own = {}
    for kind in (module.named_parameters, module.named_buffers):
        own.update(kind(remove_duplicate=False))
    if any(name not in own for name in tensors):
        raise RuntimeError
    given = {}
    for name, tensor in tensors.items():
        if given.setdefault(own[name], tensor) is not tensor:
            raise ValueError
    if strict and any(tensor not in given for tensor in own.values()):
        raise RuntimeError
    twin = copy.deepcopy(module)
    for path, owner in twin.named_modules():
        for registry in (owner._parameters, owner._buffers):
            for key in registry:
                before = own.get(f"{path}.{key}" if path else key)
                if before in given:
                    registry[key] = given[before]
    return twin(*args, **(kwargs or {}))


# %% mistake: saves_as_it_goes
# You note what was in a place when you come to change it. A shared module is visited twice, and
# the second time you note the new tensor as the old. Note all places before you change the first.
def functional_call(module, tensors, args=(), kwargs=None, strict=False):
    places = {}
    for path, owner in module.named_modules(remove_duplicate=False):
        for registry in (owner._parameters, owner._buffers):
            for key, own in registry.items():
                if own is not None:
                    places[f"{path}.{key}" if path else key] = registry, key, own

    unknown = [name for name in tensors if name not in places]
    if unknown:
        raise RuntimeError(f"the module has no {unknown}")
    replacements = {}
    for name, given in tensors.items():
        if replacements.setdefault(places[name][2], given) is not given:
            raise ValueError(f"{name!r} is tied to another name, which has another tensor")
    missing = [name for name, place in places.items() if place[2] not in replacements]
    if strict and missing:
        raise RuntimeError(f"nothing is given for {missing}")

    saved = []
    try:
        for registry, key, own in places.values():
            if own in replacements:
                saved.append((registry, key, registry[key]))
                registry[key] = replacements[own]
        return module(*args, **(kwargs or {}))
    finally:
        for registry, key, own in saved:
            registry[key] = own


# %% mistake: looks_again
# You ask each place what it holds while you change them. When two tensors change places, a shared
# module is changed twice, and is back at the beginning. Decide by what was there before the first
# change.
def functional_call(module, tensors, args=(), kwargs=None, strict=False):
    places = {}
    for path, owner in module.named_modules(remove_duplicate=False):
        for registry in (owner._parameters, owner._buffers):
            for key, own in registry.items():
                if own is not None:
                    places[f"{path}.{key}" if path else key] = registry, key, own

    unknown = [name for name in tensors if name not in places]
    if unknown:
        raise RuntimeError(f"the module has no {unknown}")
    replacements = {}
    for name, given in tensors.items():
        if replacements.setdefault(places[name][2], given) is not given:
            raise ValueError(f"{name!r} is tied to another name, which has another tensor")
    missing = [name for name, place in places.items() if place[2] not in replacements]
    if strict and missing:
        raise RuntimeError(f"nothing is given for {missing}")

    try:
        for registry, key, _ in places.values():
            if registry[key] in replacements:
                registry[key] = replacements[registry[key]]
        return module(*args, **(kwargs or {}))
    finally:
        for registry, key, own in places.values():
            if own in replacements:
                registry[key] = own


# %% mistake: new_order
# You take each entry out of its registry and put it back in. A dictionary keeps the order in which
# keys came: now the parameters have another. Give the key a new value instead.
def functional_call(module, tensors, args=(), kwargs=None, strict=False):
    places = {}
    for path, owner in module.named_modules(remove_duplicate=False):
        for registry in (owner._parameters, owner._buffers):
            for key, own in registry.items():
                if own is not None:
                    places[f"{path}.{key}" if path else key] = registry, key, own

    unknown = [name for name in tensors if name not in places]
    if unknown:
        raise RuntimeError(f"the module has no {unknown}")
    replacements = {}
    for name, given in tensors.items():
        if replacements.setdefault(places[name][2], given) is not given:
            raise ValueError(f"{name!r} is tied to another name, which has another tensor")
    missing = [name for name, place in places.items() if place[2] not in replacements]
    if strict and missing:
        raise RuntimeError(f"nothing is given for {missing}")

    try:
        for registry, key, own in places.values():
            if own in replacements:
                registry[key] = replacements[own]
        return module(*args, **(kwargs or {}))
    finally:
        for registry, key, own in places.values():
            if own in replacements:
                registry.pop(key)
                registry[key] = own


# %% mistake: last_one_wins
# You let the last of two tensors for one tied parameter win. Nobody can mean that: raise a
# `ValueError`.
def functional_call(module, tensors, args=(), kwargs=None, strict=False):
    places = {}
    for path, owner in module.named_modules(remove_duplicate=False):
        for registry in (owner._parameters, owner._buffers):
            for key, own in registry.items():
                if own is not None:
                    places[f"{path}.{key}" if path else key] = registry, key, own

    unknown = [name for name in tensors if name not in places]
    if unknown:
        raise RuntimeError(f"the module has no {unknown}")
    replacements = {}
    for name, given in tensors.items():
        if replacements.setdefault(places[name][2], given) is not given:
            replacements[places[name][2]] = given
    missing = [name for name, place in places.items() if place[2] not in replacements]
    if strict and missing:
        raise RuntimeError(f"nothing is given for {missing}")

    try:
        for registry, key, own in places.values():
            if own in replacements:
                registry[key] = replacements[own]
        return module(*args, **(kwargs or {}))
    finally:
        for registry, key, own in places.values():
            if own in replacements:
                registry[key] = own


# %% mistake: equal_is_the_same
# You let two tensors with equal values pass for one. They are two: one of them would be used, and a
# gradient would never reach the other. Compare with `is`.
def functional_call(module, tensors, args=(), kwargs=None, strict=False):
    places = {}
    for path, owner in module.named_modules(remove_duplicate=False):
        for registry in (owner._parameters, owner._buffers):
            for key, own in registry.items():
                if own is not None:
                    places[f"{path}.{key}" if path else key] = registry, key, own

    unknown = [name for name in tensors if name not in places]
    if unknown:
        raise RuntimeError(f"the module has no {unknown}")
    replacements = {}
    for name, given in tensors.items():
        other = replacements.setdefault(places[name][2], given)
        if not torch.equal(other, given):
            raise ValueError(f"two tensors are given for {name!r}")
    missing = [name for name, place in places.items() if place[2] not in replacements]
    if strict and missing:
        raise RuntimeError(f"nothing is given for {missing}")

    try:
        for registry, key, own in places.values():
            if own in replacements:
                registry[key] = replacements[own]
        return module(*args, **(kwargs or {}))
    finally:
        for registry, key, own in places.values():
            if own in replacements:
                registry[key] = own


# %% mistake: strict_for_parameters
# With `strict` you ask for the parameters only. Buffers are state as well: one that is not given would be
# the module's own.
def functional_call(module, tensors, args=(), kwargs=None, strict=False):
    places = {}
    for path, owner in module.named_modules(remove_duplicate=False):
        for registry in (owner._parameters, owner._buffers):
            for key, own in registry.items():
                if own is not None:
                    places[f"{path}.{key}" if path else key] = registry, key, own

    unknown = [name for name in tensors if name not in places]
    if unknown:
        raise RuntimeError(f"the module has no {unknown}")
    replacements = {}
    for name, given in tensors.items():
        if replacements.setdefault(places[name][2], given) is not given:
            raise ValueError(f"two tensors are given for {name!r}")
    missing = [
        name
        for name, (_, _, own) in places.items()
        if own not in replacements and isinstance(own, nn.Parameter)
    ]
    if strict and missing:
        raise RuntimeError(f"nothing is given for {missing}")

    try:
        for registry, key, own in places.values():
            if own in replacements:
                registry[key] = replacements[own]
        return module(*args, **(kwargs or {}))
    finally:
        for registry, key, own in places.values():
            if own in replacements:
                registry[key] = own


# %% mistake: none_is_replaced
# You replace what is `None`. There is nothing in its place; a bias that the layer does not have would be
# added. Take it for a name that the module does not have.
def functional_call(module, tensors, args=(), kwargs=None, strict=False):
    places = {}
    for path, owner in module.named_modules(remove_duplicate=False):
        for registry in (owner._parameters, owner._buffers):
            for key, own in registry.items():
                places[f"{path}.{key}" if path else key] = registry, key, own

    unknown = [name for name in tensors if name not in places]
    if unknown:
        raise RuntimeError(f"the module has no {unknown}")
    replacements = {}
    for name, given in tensors.items():
        if replacements.setdefault(places[name][2], given) is not given:
            raise ValueError(f"two tensors are given for {name!r}")
    missing = [name for name, place in places.items() if place[2] not in replacements]
    missing = [name for name in missing if places[name][2] is not None]
    if strict and missing:
        raise RuntimeError(f"nothing is given for {missing}")

    try:
        for registry, key, own in places.values():
            if own in replacements:
                registry[key] = replacements[own]
        return module(*args, **(kwargs or {}))
    finally:
        for registry, key, own in places.values():
            if own in replacements:
                registry[key] = own


# %% mistake: compares_addresses
# You tell tensors apart by their address. Two parameters may lie in the same memory, and all empty ones have
# the address 0; the same tensor is the same object.
def functional_call(module, tensors, args=(), kwargs=None, strict=False):
    places = {}
    for path, owner in module.named_modules(remove_duplicate=False):
        for registry in (owner._parameters, owner._buffers):
            for key, own in registry.items():
                if own is not None:
                    places[f"{path}.{key}" if path else key] = registry, key, own

    unknown = [name for name in tensors if name not in places]
    if unknown:
        raise RuntimeError(f"the module has no {unknown}")
    replacements = {}
    for name, given in tensors.items():
        if replacements.setdefault(places[name][2].data_ptr(), given) is not given:
            raise ValueError(f"two tensors are given for {name!r}")
    missing = [name for name, place in places.items() if place[2].data_ptr() not in replacements]
    if strict and missing:
        raise RuntimeError(f"nothing is given for {missing}")

    try:
        for registry, key, own in places.values():
            if own.data_ptr() in replacements:
                registry[key] = replacements[own.data_ptr()]
        return module(*args, **(kwargs or {}))
    finally:
        for registry, key, own in places.values():
            if own is not None:
                registry[key] = own


# %% mistake: in_evaluation
# You put the module into evaluation mode for the call, and leave it there. It should compute as it would, and
# be afterwards as it was.
def functional_call(module, tensors, args=(), kwargs=None, strict=False):
    places = {}
    for path, owner in module.named_modules(remove_duplicate=False):
        for registry in (owner._parameters, owner._buffers):
            for key, own in registry.items():
                if own is not None:
                    places[f"{path}.{key}" if path else key] = registry, key, own

    unknown = [name for name in tensors if name not in places]
    if unknown:
        raise RuntimeError(f"the module has no {unknown}")
    replacements = {}
    for name, given in tensors.items():
        if replacements.setdefault(places[name][2], given) is not given:
            raise ValueError(f"two tensors are given for {name!r}")
    missing = [name for name, place in places.items() if place[2] not in replacements]
    if strict and missing:
        raise RuntimeError(f"nothing is given for {missing}")

    try:
        for registry, key, own in places.values():
            if own in replacements:
                registry[key] = replacements[own]
        module.eval()
        return module(*args, **(kwargs or {}))
    finally:
        for registry, key, own in places.values():
            if own in replacements:
                registry[key] = own


# %% mistake: empties_the_dictionary
# You take the tensors out of the dictionary that was passed. It is the caller's, who may call again with it.
def functional_call(module, tensors, args=(), kwargs=None, strict=False):
    places = {}
    for path, owner in module.named_modules(remove_duplicate=False):
        for registry in (owner._parameters, owner._buffers):
            for key, own in registry.items():
                if own is not None:
                    places[f"{path}.{key}" if path else key] = registry, key, own

    unknown = [name for name in tensors if name not in places]
    if unknown:
        raise RuntimeError(f"the module has no {unknown}")
    replacements = {}
    for name in list(tensors):
        given = tensors.pop(name)
        if replacements.setdefault(places[name][2], given) is not given:
            raise ValueError(f"two tensors are given for {name!r}")
    missing = [name for name, place in places.items() if place[2] not in replacements]
    if strict and missing:
        raise RuntimeError(f"nothing is given for {missing}")

    try:
        for registry, key, own in places.values():
            if own in replacements:
                registry[key] = replacements[own]
        return module(*args, **(kwargs or {}))
    finally:
        for registry, key, own in places.values():
            if own in replacements:
                registry[key] = own


# %% mistake: passes_over_unknown
# You pass over names that the module does not have. A misspelt name would mean that the old weight
# is used, silently.
def functional_call(module, tensors, args=(), kwargs=None, strict=False):
    places = {}
    for path, owner in module.named_modules(remove_duplicate=False):
        for registry in (owner._parameters, owner._buffers):
            for key, own in registry.items():
                if own is not None:
                    places[f"{path}.{key}" if path else key] = registry, key, own

    tensors = {name: given for name, given in tensors.items() if name in places}
    replacements = {}
    for name, given in tensors.items():
        if replacements.setdefault(places[name][2], given) is not given:
            raise ValueError(f"{name!r} is tied to another name, which has another tensor")
    missing = [name for name, place in places.items() if place[2] not in replacements]
    if strict and missing:
        raise RuntimeError(f"nothing is given for {missing}")

    try:
        for registry, key, own in places.values():
            if own in replacements:
                registry[key] = replacements[own]
        return module(*args, **(kwargs or {}))
    finally:
        for registry, key, own in places.values():
            if own in replacements:
                registry[key] = own


# %% mistake: every_name
# With `strict` you want every name of a tied tensor. One of them gives the tensor.
def functional_call(module, tensors, args=(), kwargs=None, strict=False):
    places = {}
    for path, owner in module.named_modules(remove_duplicate=False):
        for registry in (owner._parameters, owner._buffers):
            for key, own in registry.items():
                if own is not None:
                    places[f"{path}.{key}" if path else key] = registry, key, own

    unknown = [name for name in tensors if name not in places]
    if unknown:
        raise RuntimeError(f"the module has no {unknown}")
    replacements = {}
    for name, given in tensors.items():
        if replacements.setdefault(places[name][2], given) is not given:
            raise ValueError(f"{name!r} is tied to another name, which has another tensor")
    missing = [name for name, place in places.items() if name not in tensors]
    if strict and missing:
        raise RuntimeError(f"nothing is given for {missing}")

    try:
        for registry, key, own in places.values():
            if own in replacements:
                registry[key] = replacements[own]
        return module(*args, **(kwargs or {}))
    finally:
        for registry, key, own in places.values():
            if own in replacements:
                registry[key] = own


# %% mistake: calls_forward
# You call `forward`, which runs no hooks. Call the module.
def functional_call(module, tensors, args=(), kwargs=None, strict=False):
    places = {}
    for path, owner in module.named_modules(remove_duplicate=False):
        for registry in (owner._parameters, owner._buffers):
            for key, own in registry.items():
                if own is not None:
                    places[f"{path}.{key}" if path else key] = registry, key, own

    unknown = [name for name in tensors if name not in places]
    if unknown:
        raise RuntimeError(f"the module has no {unknown}")
    replacements = {}
    for name, given in tensors.items():
        if replacements.setdefault(places[name][2], given) is not given:
            raise ValueError(f"{name!r} is tied to another name, which has another tensor")
    missing = [name for name, place in places.items() if place[2] not in replacements]
    if strict and missing:
        raise RuntimeError(f"nothing is given for {missing}")

    try:
        for registry, key, own in places.values():
            if own in replacements:
                registry[key] = replacements[own]
        return module.forward(*args, **(kwargs or {}))
    finally:
        for registry, key, own in places.values():
            if own in replacements:
                registry[key] = own


# %% mistake: parameters_only
# You replace parameters only. Buffers are state as well: running statistics, masks, counters.
def functional_call(module, tensors, args=(), kwargs=None, strict=False):
    places = {}
    for path, owner in module.named_modules(remove_duplicate=False):
        for registry in (owner._parameters,):
            for key, own in registry.items():
                if own is not None:
                    places[f"{path}.{key}" if path else key] = registry, key, own

    unknown = [name for name in tensors if name not in places]
    if unknown:
        raise RuntimeError(f"the module has no {unknown}")
    replacements = {}
    for name, given in tensors.items():
        if replacements.setdefault(places[name][2], given) is not given:
            raise ValueError(f"{name!r} is tied to another name, which has another tensor")
    missing = [name for name, place in places.items() if place[2] not in replacements]
    if strict and missing:
        raise RuntimeError(f"nothing is given for {missing}")

    try:
        for registry, key, own in places.values():
            if own in replacements:
                registry[key] = replacements[own]
        return module(*args, **(kwargs or {}))
    finally:
        for registry, key, own in places.values():
            if own in replacements:
                registry[key] = own


# %% alternate: a_context
# Two loops in a context manager; identities in place of tensors as keys; undone by an exit stack.
def functional_call(module, tensors, args=(), kwargs=None, strict=False):
    from contextlib import ExitStack

    owners = {}
    names = {}

    def visit(prefix, owner):
        owners[id(owner)] = owner
        for registry in (owner._parameters, owner._buffers):
            for key, tensor in registry.items():
                if tensor is not None:
                    names[prefix + key] = tensor
        for key, child in owner._modules.items():
            if child is not None:
                visit(prefix + key + ".", child)

    visit("", module)
    if not set(tensors) <= set(names):
        raise RuntimeError(sorted(set(tensors) - set(names)))
    new = {}
    for name, tensor in tensors.items():
        known = new.setdefault(id(names[name]), tensor)
        if known is not tensor:
            raise ValueError(name)
    if strict and {id(tensor) for tensor in names.values()} - new.keys():
        raise RuntimeError("missing")

    with ExitStack() as stack:
        for owner in owners.values():
            for registry in (owner._parameters, owner._buffers):
                stack.callback(
                    registry.update, {k: registry[k] for k in registry if id(registry[k]) in new}
                )
                registry.update({k: new[id(t)] for k, t in registry.items() if id(t) in new})
        return module(*args, **({} if kwargs is None else kwargs))
