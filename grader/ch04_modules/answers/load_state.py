# %% blocked: the_method
# `load_state_dict` is what you are asked to build, and it is not all or nothing.
def load_state(module, tensors, versions=None, strict=True):
    report = module.load_state_dict(tensors, strict=strict)
    return {"missing": report.missing_keys, "unexpected": report.unexpected_keys}


# %% mistake: copies_while_comparing
# You copy each tensor as soon as it fits. When a later one does not, the model is half old and
# half new. Compare all first, then copy.
def load_state(module, tensors, versions=None, strict=True):
    versions = versions or {}
    tensors = dict(tensors)
    wanted = {}
    for path, owner in module.named_modules(remove_duplicate=False):
        prefix = f"{path}." if path else ""
        if hasattr(owner, "upgrade") and versions.get(path) != owner._version:
            below = [name for name in tensors if name.startswith(prefix)]
            entries = {name.removeprefix(prefix): tensors.pop(name) for name in below}
            upgraded = owner.upgrade(entries, versions.get(path))
            tensors.update({prefix + name: tensor for name, tensor in upgraded.items()})
        for name, tensor in [*owner._parameters.items(), *owner._buffers.items()]:
            if tensor is not None and name not in owner._non_persistent_buffers_set:
                wanted[prefix + name] = tensor

    missing = sorted(wanted.keys() - tensors.keys())
    unexpected = sorted(tensors.keys() - wanted.keys())
    found = sorted(wanted.keys() & tensors.keys())
    with torch.no_grad():
        for name in found:
            if tensors[name].shape == wanted[name].shape:
                wanted[name].copy_(tensors[name])
    misshapen = [name for name in found if tensors[name].shape != wanted[name].shape]
    if misshapen or (strict and (missing or unexpected)):
        raise RuntimeError(f"missing {missing}, unexpected {unexpected}, wrong shape {misshapen}")
    with torch.no_grad():
        for name in found:
            wanted[name].copy_(tensors[name])
    return {"missing": missing, "unexpected": unexpected}


# %% mistake: names_one_error
# You stop at the first kind of trouble. Someone who has to repair a checkpoint wants to see all of
# it at once: collect first, raise then.
def load_state(module, tensors, versions=None, strict=True):
    versions = versions or {}
    tensors = dict(tensors)
    wanted = {}
    for path, owner in module.named_modules(remove_duplicate=False):
        prefix = f"{path}." if path else ""
        if hasattr(owner, "upgrade") and versions.get(path) != owner._version:
            below = [name for name in tensors if name.startswith(prefix)]
            entries = {name.removeprefix(prefix): tensors.pop(name) for name in below}
            upgraded = owner.upgrade(entries, versions.get(path))
            tensors.update({prefix + name: tensor for name, tensor in upgraded.items()})
        for name, tensor in [*owner._parameters.items(), *owner._buffers.items()]:
            if tensor is not None and name not in owner._non_persistent_buffers_set:
                wanted[prefix + name] = tensor

    missing = sorted(wanted.keys() - tensors.keys())
    unexpected = sorted(tensors.keys() - wanted.keys())
    found = sorted(wanted.keys() & tensors.keys())
    misshapen = [name for name in found if tensors[name].shape != wanted[name].shape]
    if strict and missing:
        raise RuntimeError(f"missing {missing}")
    if misshapen or (strict and (missing or unexpected)):
        raise RuntimeError(f"missing {missing}, unexpected {unexpected}, wrong shape {misshapen}")
    with torch.no_grad():
        for name in found:
            wanted[name].copy_(tensors[name])
    return {"missing": missing, "unexpected": unexpected}


# %% mistake: broadcasts
# You do not compare shapes, and `copy_` broadcasts: a single number fills a whole weight without a
# word.
def load_state(module, tensors, versions=None, strict=True):
    versions = versions or {}
    tensors = dict(tensors)
    wanted = {}
    for path, owner in module.named_modules(remove_duplicate=False):
        prefix = f"{path}." if path else ""
        if hasattr(owner, "upgrade") and versions.get(path) != owner._version:
            below = [name for name in tensors if name.startswith(prefix)]
            entries = {name.removeprefix(prefix): tensors.pop(name) for name in below}
            upgraded = owner.upgrade(entries, versions.get(path))
            tensors.update({prefix + name: tensor for name, tensor in upgraded.items()})
        for name, tensor in [*owner._parameters.items(), *owner._buffers.items()]:
            if tensor is not None and name not in owner._non_persistent_buffers_set:
                wanted[prefix + name] = tensor

    missing = sorted(wanted.keys() - tensors.keys())
    unexpected = sorted(tensors.keys() - wanted.keys())
    found = sorted(wanted.keys() & tensors.keys())
    misshapen = [name for name in found if False]
    if misshapen or (strict and (missing or unexpected)):
        raise RuntimeError(f"missing {missing}, unexpected {unexpected}, wrong shape {misshapen}")
    with torch.no_grad():
        for name in found:
            wanted[name].copy_(tensors[name])
    return {"missing": missing, "unexpected": unexpected}


# %% mistake: compares_numel
# You compare the number of elements. Two shapes with as many elements are still two layouts.
def load_state(module, tensors, versions=None, strict=True):
    versions = versions or {}
    tensors = dict(tensors)
    wanted = {}
    for path, owner in module.named_modules(remove_duplicate=False):
        prefix = f"{path}." if path else ""
        if hasattr(owner, "upgrade") and versions.get(path) != owner._version:
            below = [name for name in tensors if name.startswith(prefix)]
            entries = {name.removeprefix(prefix): tensors.pop(name) for name in below}
            upgraded = owner.upgrade(entries, versions.get(path))
            tensors.update({prefix + name: tensor for name, tensor in upgraded.items()})
        for name, tensor in [*owner._parameters.items(), *owner._buffers.items()]:
            if tensor is not None and name not in owner._non_persistent_buffers_set:
                wanted[prefix + name] = tensor

    missing = sorted(wanted.keys() - tensors.keys())
    unexpected = sorted(tensors.keys() - wanted.keys())
    found = sorted(wanted.keys() & tensors.keys())
    misshapen = [name for name in found if tensors[name].numel() != wanted[name].numel()]
    if misshapen or (strict and (missing or unexpected)):
        raise RuntimeError(f"missing {missing}, unexpected {unexpected}, wrong shape {misshapen}")
    with torch.no_grad():
        for name in found:
            wanted[name].copy_(tensors[name].reshape(wanted[name].shape))
    return {"missing": missing, "unexpected": unexpected}


# %% mistake: forgives_shapes
# With `strict=False` you pass over tensors of the wrong shape. It forgives names, never shapes: a
# layer that silently keeps its fresh weights is the worst kind of success.
def load_state(module, tensors, versions=None, strict=True):
    versions = versions or {}
    tensors = dict(tensors)
    wanted = {}
    for path, owner in module.named_modules(remove_duplicate=False):
        prefix = f"{path}." if path else ""
        if hasattr(owner, "upgrade") and versions.get(path) != owner._version:
            below = [name for name in tensors if name.startswith(prefix)]
            entries = {name.removeprefix(prefix): tensors.pop(name) for name in below}
            upgraded = owner.upgrade(entries, versions.get(path))
            tensors.update({prefix + name: tensor for name, tensor in upgraded.items()})
        for name, tensor in [*owner._parameters.items(), *owner._buffers.items()]:
            if tensor is not None and name not in owner._non_persistent_buffers_set:
                wanted[prefix + name] = tensor

    missing = sorted(wanted.keys() - tensors.keys())
    unexpected = sorted(tensors.keys() - wanted.keys())
    found = sorted(wanted.keys() & tensors.keys())
    misshapen = [name for name in found if tensors[name].shape != wanted[name].shape]
    if strict and (misshapen or missing or unexpected):
        raise RuntimeError(f"missing {missing}, unexpected {unexpected}, wrong shape {misshapen}")
    with torch.no_grad():
        for name in set(found) - set(misshapen):
            wanted[name].copy_(tensors[name])
    return {"missing": missing, "unexpected": unexpected}


# %% mistake: new_parameters
# You put new parameters into the module. An optimiser that was made before still steps on the old
# ones, and a tied weight is no longer tied. Copy values into the parameters that are there.
def load_state(module, tensors, versions=None, strict=True):
    versions = versions or {}
    tensors = dict(tensors)
    wanted = {}
    for path, owner in module.named_modules(remove_duplicate=False):
        prefix = f"{path}." if path else ""
        if hasattr(owner, "upgrade") and versions.get(path) != owner._version:
            below = [name for name in tensors if name.startswith(prefix)]
            entries = {name.removeprefix(prefix): tensors.pop(name) for name in below}
            upgraded = owner.upgrade(entries, versions.get(path))
            tensors.update({prefix + name: tensor for name, tensor in upgraded.items()})
        for name, tensor in [*owner._parameters.items(), *owner._buffers.items()]:
            if tensor is not None and name not in owner._non_persistent_buffers_set:
                wanted[prefix + name] = tensor

    missing = sorted(wanted.keys() - tensors.keys())
    unexpected = sorted(tensors.keys() - wanted.keys())
    found = sorted(wanted.keys() & tensors.keys())
    misshapen = [name for name in found if tensors[name].shape != wanted[name].shape]
    if misshapen or (strict and (missing or unexpected)):
        raise RuntimeError(f"missing {missing}, unexpected {unexpected}, wrong shape {misshapen}")
    with torch.no_grad():
        for name in found:
            path, _, last = name.rpartition(".")
            owner = module.get_submodule(path)
            if last in owner._parameters:
                owner._parameters[last] = nn.Parameter(
                    tensors[name].to(wanted[name].dtype, copy=True)
                )
            else:
                wanted[name].copy_(tensors[name])
    return {"missing": missing, "unexpected": unexpected}


# %% mistake: swaps_the_data
# You make each tensor look at the checkpoint's memory. Whoever trains the model now changes the
# checkpoint. Copy the values.
def load_state(module, tensors, versions=None, strict=True):
    versions = versions or {}
    tensors = dict(tensors)
    wanted = {}
    for path, owner in module.named_modules(remove_duplicate=False):
        prefix = f"{path}." if path else ""
        if hasattr(owner, "upgrade") and versions.get(path) != owner._version:
            below = [name for name in tensors if name.startswith(prefix)]
            entries = {name.removeprefix(prefix): tensors.pop(name) for name in below}
            upgraded = owner.upgrade(entries, versions.get(path))
            tensors.update({prefix + name: tensor for name, tensor in upgraded.items()})
        for name, tensor in [*owner._parameters.items(), *owner._buffers.items()]:
            if tensor is not None and name not in owner._non_persistent_buffers_set:
                wanted[prefix + name] = tensor

    missing = sorted(wanted.keys() - tensors.keys())
    unexpected = sorted(tensors.keys() - wanted.keys())
    found = sorted(wanted.keys() & tensors.keys())
    misshapen = [name for name in found if tensors[name].shape != wanted[name].shape]
    if misshapen or (strict and (missing or unexpected)):
        raise RuntimeError(f"missing {missing}, unexpected {unexpected}, wrong shape {misshapen}")
    with torch.no_grad():
        for name in found:
            wanted[name].data = tensors[name].to(wanted[name].dtype)
    return {"missing": missing, "unexpected": unexpected}


# %% mistake: each_once
# You expect a shared tensor under its first name only, and call its other names unexpected. A
# checkpoint has every name.
def load_state(module, tensors, versions=None, strict=True):
    versions = versions or {}
    tensors = dict(tensors)
    wanted = {}
    for path, owner in module.named_modules(remove_duplicate=True):
        prefix = f"{path}." if path else ""
        if hasattr(owner, "upgrade") and versions.get(path) != owner._version:
            below = [name for name in tensors if name.startswith(prefix)]
            entries = {name.removeprefix(prefix): tensors.pop(name) for name in below}
            upgraded = owner.upgrade(entries, versions.get(path))
            tensors.update({prefix + name: tensor for name, tensor in upgraded.items()})
        for name, tensor in [*owner._parameters.items(), *owner._buffers.items()]:
            if tensor is not None and name not in owner._non_persistent_buffers_set:
                wanted[prefix + name] = tensor

    missing = sorted(wanted.keys() - tensors.keys())
    unexpected = sorted(tensors.keys() - wanted.keys())
    found = sorted(wanted.keys() & tensors.keys())
    misshapen = [name for name in found if tensors[name].shape != wanted[name].shape]
    if misshapen or (strict and (missing or unexpected)):
        raise RuntimeError(f"missing {missing}, unexpected {unexpected}, wrong shape {misshapen}")
    with torch.no_grad():
        for name in found:
            wanted[name].copy_(tensors[name])
    return {"missing": missing, "unexpected": unexpected}


# %% mistake: expects_every_buffer
# You expect buffers that are never saved. Leave out those in `_non_persistent_buffers_set`.
def load_state(module, tensors, versions=None, strict=True):
    versions = versions or {}
    tensors = dict(tensors)
    wanted = {}
    for path, owner in module.named_modules(remove_duplicate=False):
        prefix = f"{path}." if path else ""
        if hasattr(owner, "upgrade") and versions.get(path) != owner._version:
            below = [name for name in tensors if name.startswith(prefix)]
            entries = {name.removeprefix(prefix): tensors.pop(name) for name in below}
            upgraded = owner.upgrade(entries, versions.get(path))
            tensors.update({prefix + name: tensor for name, tensor in upgraded.items()})
        for name, tensor in [*owner._parameters.items(), *owner._buffers.items()]:
            if tensor is not None:
                wanted[prefix + name] = tensor

    missing = sorted(wanted.keys() - tensors.keys())
    unexpected = sorted(tensors.keys() - wanted.keys())
    found = sorted(wanted.keys() & tensors.keys())
    misshapen = [name for name in found if tensors[name].shape != wanted[name].shape]
    if misshapen or (strict and (missing or unexpected)):
        raise RuntimeError(f"missing {missing}, unexpected {unexpected}, wrong shape {misshapen}")
    with torch.no_grad():
        for name in found:
            wanted[name].copy_(tensors[name])
    return {"missing": missing, "unexpected": unexpected}


# %% mistake: path_without_dot
# You take all names that begin with the path. `layer10.gain` begins with `layer1`, too; `layer1.`
# is what you mean.
def load_state(module, tensors, versions=None, strict=True):
    versions = versions or {}
    tensors = dict(tensors)
    wanted = {}
    for path, owner in module.named_modules(remove_duplicate=False):
        prefix = f"{path}." if path else ""
        if hasattr(owner, "upgrade") and versions.get(path) != owner._version:
            below = [name for name in tensors if name.startswith(path)]
            entries = {name.removeprefix(prefix): tensors.pop(name) for name in below}
            upgraded = owner.upgrade(entries, versions.get(path))
            tensors.update({prefix + name: tensor for name, tensor in upgraded.items()})
        for name, tensor in [*owner._parameters.items(), *owner._buffers.items()]:
            if tensor is not None and name not in owner._non_persistent_buffers_set:
                wanted[prefix + name] = tensor

    missing = sorted(wanted.keys() - tensors.keys())
    unexpected = sorted(tensors.keys() - wanted.keys())
    found = sorted(wanted.keys() & tensors.keys())
    misshapen = [name for name in found if tensors[name].shape != wanted[name].shape]
    if misshapen or (strict and (missing or unexpected)):
        raise RuntimeError(f"missing {missing}, unexpected {unexpected}, wrong shape {misshapen}")
    with torch.no_grad():
        for name in found:
            wanted[name].copy_(tensors[name])
    return {"missing": missing, "unexpected": unexpected}


# %% mistake: root_without_entries
# You look for entries that begin with the path and a dot. The root's path is empty, and all
# entries belong to it: it has no dot.
def load_state(module, tensors, versions=None, strict=True):
    versions = versions or {}
    tensors = dict(tensors)
    wanted = {}
    for path, owner in module.named_modules(remove_duplicate=False):
        prefix = f"{path}." if path else ""
        if hasattr(owner, "upgrade") and versions.get(path) != owner._version:
            below = [name for name in tensors if name.startswith(f"{path}.")]
            entries = {name.removeprefix(f"{path}."): tensors.pop(name) for name in below}
            upgraded = owner.upgrade(entries, versions.get(path))
            tensors.update({prefix + name: tensor for name, tensor in upgraded.items()})
        for name, tensor in [*owner._parameters.items(), *owner._buffers.items()]:
            if tensor is not None and name not in owner._non_persistent_buffers_set:
                wanted[prefix + name] = tensor

    missing = sorted(wanted.keys() - tensors.keys())
    unexpected = sorted(tensors.keys() - wanted.keys())
    found = sorted(wanted.keys() & tensors.keys())
    misshapen = [name for name in found if tensors[name].shape != wanted[name].shape]
    if misshapen or (strict and (missing or unexpected)):
        raise RuntimeError(f"missing {missing}, unexpected {unexpected}, wrong shape {misshapen}")
    with torch.no_grad():
        for name in found:
            wanted[name].copy_(tensors[name])
    return {"missing": missing, "unexpected": unexpected}


# %% mistake: older_only
# You upgrade what has a version that is not the module's. A checkpoint without a version is the oldest
# of all, and has none to compare.
def load_state(module, tensors, versions=None, strict=True):
    versions = versions or {}
    tensors = dict(tensors)
    wanted = {}
    for path, owner in module.named_modules(remove_duplicate=False):
        prefix = f"{path}." if path else ""
        if hasattr(owner, "upgrade") and versions.get(path, owner._version) != owner._version:
            below = [name for name in tensors if name.startswith(prefix)]
            entries = {name.removeprefix(prefix): tensors.pop(name) for name in below}
            upgraded = owner.upgrade(entries, versions.get(path))
            tensors.update({prefix + name: tensor for name, tensor in upgraded.items()})
        for name, tensor in [*owner._parameters.items(), *owner._buffers.items()]:
            if tensor is not None and name not in owner._non_persistent_buffers_set:
                wanted[prefix + name] = tensor

    missing = sorted(wanted.keys() - tensors.keys())
    unexpected = sorted(tensors.keys() - wanted.keys())
    found = sorted(wanted.keys() & tensors.keys())
    misshapen = [name for name in found if tensors[name].shape != wanted[name].shape]
    if misshapen or (strict and (missing or unexpected)):
        raise RuntimeError(f"missing {missing}, unexpected {unexpected}, wrong shape {misshapen}")
    with torch.no_grad():
        for name in found:
            wanted[name].copy_(tensors[name])
    return {"missing": missing, "unexpected": unexpected}


# %% mistake: newer_is_fine
# You upgrade what is older. A checkpoint of a newer version does not fit either; ask whether the versions
# differ, and let the module decide.
def load_state(module, tensors, versions=None, strict=True):
    versions = versions or {}
    tensors = dict(tensors)
    wanted = {}
    for path, owner in module.named_modules(remove_duplicate=False):
        prefix = f"{path}." if path else ""
        if hasattr(owner, "upgrade") and (versions.get(path) or 0) < owner._version:
            below = [name for name in tensors if name.startswith(prefix)]
            entries = {name.removeprefix(prefix): tensors.pop(name) for name in below}
            upgraded = owner.upgrade(entries, versions.get(path))
            tensors.update({prefix + name: tensor for name, tensor in upgraded.items()})
        for name, tensor in [*owner._parameters.items(), *owner._buffers.items()]:
            if tensor is not None and name not in owner._non_persistent_buffers_set:
                wanted[prefix + name] = tensor

    missing = sorted(wanted.keys() - tensors.keys())
    unexpected = sorted(tensors.keys() - wanted.keys())
    found = sorted(wanted.keys() & tensors.keys())
    misshapen = [name for name in found if tensors[name].shape != wanted[name].shape]
    if misshapen or (strict and (missing or unexpected)):
        raise RuntimeError(f"missing {missing}, unexpected {unexpected}, wrong shape {misshapen}")
    with torch.no_grad():
        for name in found:
            wanted[name].copy_(tensors[name])
    return {"missing": missing, "unexpected": unexpected}


# %% mistake: no_version_is_one
# You hand a version of your own to `upgrade` where the checkpoint has none. Whoever wrote version 1 and
# who wrote none may have written different things: hand over `None`.
def load_state(module, tensors, versions=None, strict=True):
    versions = versions or {}
    tensors = dict(tensors)
    wanted = {}
    for path, owner in module.named_modules(remove_duplicate=False):
        prefix = f"{path}." if path else ""
        if hasattr(owner, "upgrade") and versions.get(path) != owner._version:
            below = [name for name in tensors if name.startswith(prefix)]
            entries = {name.removeprefix(prefix): tensors.pop(name) for name in below}
            upgraded = owner.upgrade(entries, versions.get(path, 1))
            tensors.update({prefix + name: tensor for name, tensor in upgraded.items()})
        for name, tensor in [*owner._parameters.items(), *owner._buffers.items()]:
            if tensor is not None and name not in owner._non_persistent_buffers_set:
                wanted[prefix + name] = tensor

    missing = sorted(wanted.keys() - tensors.keys())
    unexpected = sorted(tensors.keys() - wanted.keys())
    found = sorted(wanted.keys() & tensors.keys())
    misshapen = [name for name in found if tensors[name].shape != wanted[name].shape]
    if misshapen or (strict and (missing or unexpected)):
        raise RuntimeError(f"missing {missing}, unexpected {unexpected}, wrong shape {misshapen}")
    with torch.no_grad():
        for name in found:
            wanted[name].copy_(tensors[name])
    return {"missing": missing, "unexpected": unexpected}


# %% mistake: keeps_the_old_entries
# You add what `upgrade` returned to the old entries. It takes their place: what was renamed would else be
# there under both names.
def load_state(module, tensors, versions=None, strict=True):
    versions = versions or {}
    tensors = dict(tensors)
    wanted = {}
    for path, owner in module.named_modules(remove_duplicate=False):
        prefix = f"{path}." if path else ""
        if hasattr(owner, "upgrade") and versions.get(path) != owner._version:
            below = [name for name in tensors if name.startswith(prefix)]
            entries = {name.removeprefix(prefix): tensors[name] for name in below}
            upgraded = owner.upgrade(entries, versions.get(path))
            tensors.update({prefix + name: tensor for name, tensor in upgraded.items()})
        for name, tensor in [*owner._parameters.items(), *owner._buffers.items()]:
            if tensor is not None and name not in owner._non_persistent_buffers_set:
                wanted[prefix + name] = tensor

    missing = sorted(wanted.keys() - tensors.keys())
    unexpected = sorted(tensors.keys() - wanted.keys())
    found = sorted(wanted.keys() & tensors.keys())
    misshapen = [name for name in found if tensors[name].shape != wanted[name].shape]
    if misshapen or (strict and (missing or unexpected)):
        raise RuntimeError(f"missing {missing}, unexpected {unexpected}, wrong shape {misshapen}")
    with torch.no_grad():
        for name in found:
            wanted[name].copy_(tensors[name])
    return {"missing": missing, "unexpected": unexpected}


# %% mistake: drops_what_upgrade_returns
# You call `upgrade` and go on with the dictionary that you handed over. What it returns is the new one.
def load_state(module, tensors, versions=None, strict=True):
    versions = versions or {}
    tensors = dict(tensors)
    wanted = {}
    for path, owner in module.named_modules(remove_duplicate=False):
        prefix = f"{path}." if path else ""
        if hasattr(owner, "upgrade") and versions.get(path) != owner._version:
            below = [name for name in tensors if name.startswith(prefix)]
            entries = {name.removeprefix(prefix): tensors.pop(name) for name in below}
            owner.upgrade(entries, versions.get(path))
            upgraded = entries
            tensors.update({prefix + name: tensor for name, tensor in upgraded.items()})
        for name, tensor in [*owner._parameters.items(), *owner._buffers.items()]:
            if tensor is not None and name not in owner._non_persistent_buffers_set:
                wanted[prefix + name] = tensor

    missing = sorted(wanted.keys() - tensors.keys())
    unexpected = sorted(tensors.keys() - wanted.keys())
    found = sorted(wanted.keys() & tensors.keys())
    misshapen = [name for name in found if tensors[name].shape != wanted[name].shape]
    if misshapen or (strict and (missing or unexpected)):
        raise RuntimeError(f"missing {missing}, unexpected {unexpected}, wrong shape {misshapen}")
    with torch.no_grad():
        for name in found:
            wanted[name].copy_(tensors[name])
    return {"missing": missing, "unexpected": unexpected}


# %% mistake: names_with_the_path
# You hand over entries under their full names. A module does not know where in a model it stands: leave
# the path out, and put it back afterwards.
def load_state(module, tensors, versions=None, strict=True):
    versions = versions or {}
    tensors = dict(tensors)
    wanted = {}
    for path, owner in module.named_modules(remove_duplicate=False):
        prefix = f"{path}." if path else ""
        if hasattr(owner, "upgrade") and versions.get(path) != owner._version:
            below = [name for name in tensors if name.startswith(prefix)]
            entries = {name: tensors.pop(name) for name in below}
            upgraded = owner.upgrade(entries, versions.get(path))
            tensors.update({name: tensor for name, tensor in upgraded.items()})
        for name, tensor in [*owner._parameters.items(), *owner._buffers.items()]:
            if tensor is not None and name not in owner._non_persistent_buffers_set:
                wanted[prefix + name] = tensor

    missing = sorted(wanted.keys() - tensors.keys())
    unexpected = sorted(tensors.keys() - wanted.keys())
    found = sorted(wanted.keys() & tensors.keys())
    misshapen = [name for name in found if tensors[name].shape != wanted[name].shape]
    if misshapen or (strict and (missing or unexpected)):
        raise RuntimeError(f"missing {missing}, unexpected {unexpected}, wrong shape {misshapen}")
    with torch.no_grad():
        for name in found:
            wanted[name].copy_(tensors[name])
    return {"missing": missing, "unexpected": unexpected}


# %% mistake: upgrades_each_module_once
# You walk over each module once. A shared one has entries under every name, and those under the second
# stay as old as they were.
def load_state(module, tensors, versions=None, strict=True):
    versions = versions or {}
    tensors = dict(tensors)
    wanted = {}
    once = dict(module.named_modules())
    for path, owner in module.named_modules(remove_duplicate=False):
        prefix = f"{path}." if path else ""
        if path in once and hasattr(owner, "upgrade") and versions.get(path) != owner._version:
            below = [name for name in tensors if name.startswith(prefix)]
            entries = {name.removeprefix(prefix): tensors.pop(name) for name in below}
            upgraded = owner.upgrade(entries, versions.get(path))
            tensors.update({prefix + name: tensor for name, tensor in upgraded.items()})
        for name, tensor in [*owner._parameters.items(), *owner._buffers.items()]:
            if tensor is not None and name not in owner._non_persistent_buffers_set:
                wanted[prefix + name] = tensor

    missing = sorted(wanted.keys() - tensors.keys())
    unexpected = sorted(tensors.keys() - wanted.keys())
    found = sorted(wanted.keys() & tensors.keys())
    misshapen = [name for name in found if tensors[name].shape != wanted[name].shape]
    if misshapen or (strict and (missing or unexpected)):
        raise RuntimeError(f"missing {missing}, unexpected {unexpected}, wrong shape {misshapen}")
    with torch.no_grad():
        for name in found:
            wanted[name].copy_(tensors[name])
    return {"missing": missing, "unexpected": unexpected}


# %% mistake: children_first
# You upgrade from below. A module may rename its children's entries: the walk goes from above down, and
# what the parent returns is what the children find.
def load_state(module, tensors, versions=None, strict=True):
    versions = versions or {}
    tensors = dict(tensors)
    wanted = {}
    for path, owner in reversed(list(module.named_modules(remove_duplicate=False))):
        prefix = f"{path}." if path else ""
        if hasattr(owner, "upgrade") and versions.get(path) != owner._version:
            below = [name for name in tensors if name.startswith(prefix)]
            entries = {name.removeprefix(prefix): tensors.pop(name) for name in below}
            upgraded = owner.upgrade(entries, versions.get(path))
            tensors.update({prefix + name: tensor for name, tensor in upgraded.items()})
        for name, tensor in [*owner._parameters.items(), *owner._buffers.items()]:
            if tensor is not None and name not in owner._non_persistent_buffers_set:
                wanted[prefix + name] = tensor

    missing = sorted(wanted.keys() - tensors.keys())
    unexpected = sorted(tensors.keys() - wanted.keys())
    found = sorted(wanted.keys() & tensors.keys())
    misshapen = [name for name in found if tensors[name].shape != wanted[name].shape]
    if misshapen or (strict and (missing or unexpected)):
        raise RuntimeError(f"missing {missing}, unexpected {unexpected}, wrong shape {misshapen}")
    with torch.no_grad():
        for name in found:
            wanted[name].copy_(tensors[name])
    return {"missing": missing, "unexpected": unexpected}


# %% mistake: always_upgrades
# You call `upgrade` on every module that has it. Entries of the present version are up to date;
# upgrading them again spoils them.
def load_state(module, tensors, versions=None, strict=True):
    versions = versions or {}
    tensors = dict(tensors)
    wanted = {}
    for path, owner in module.named_modules(remove_duplicate=False):
        prefix = f"{path}." if path else ""
        if hasattr(owner, "upgrade"):
            below = [name for name in tensors if name.startswith(prefix)]
            entries = {name.removeprefix(prefix): tensors.pop(name) for name in below}
            upgraded = owner.upgrade(entries, versions.get(path))
            tensors.update({prefix + name: tensor for name, tensor in upgraded.items()})
        for name, tensor in [*owner._parameters.items(), *owner._buffers.items()]:
            if tensor is not None and name not in owner._non_persistent_buffers_set:
                wanted[prefix + name] = tensor

    missing = sorted(wanted.keys() - tensors.keys())
    unexpected = sorted(tensors.keys() - wanted.keys())
    found = sorted(wanted.keys() & tensors.keys())
    misshapen = [name for name in found if tensors[name].shape != wanted[name].shape]
    if misshapen or (strict and (missing or unexpected)):
        raise RuntimeError(f"missing {missing}, unexpected {unexpected}, wrong shape {misshapen}")
    with torch.no_grad():
        for name in found:
            wanted[name].copy_(tensors[name])
    return {"missing": missing, "unexpected": unexpected}


# %% mistake: upgrades_in_place
# You upgrade the caller's own dictionary. It may be loaded into another model next: work on a
# copy.
def load_state(module, tensors, versions=None, strict=True):
    versions = versions or {}
    wanted = {}
    for path, owner in module.named_modules(remove_duplicate=False):
        prefix = f"{path}." if path else ""
        if hasattr(owner, "upgrade") and versions.get(path) != owner._version:
            below = [name for name in tensors if name.startswith(prefix)]
            entries = {name.removeprefix(prefix): tensors.pop(name) for name in below}
            upgraded = owner.upgrade(entries, versions.get(path))
            tensors.update({prefix + name: tensor for name, tensor in upgraded.items()})
        for name, tensor in [*owner._parameters.items(), *owner._buffers.items()]:
            if tensor is not None and name not in owner._non_persistent_buffers_set:
                wanted[prefix + name] = tensor

    missing = sorted(wanted.keys() - tensors.keys())
    unexpected = sorted(tensors.keys() - wanted.keys())
    found = sorted(wanted.keys() & tensors.keys())
    misshapen = [name for name in found if tensors[name].shape != wanted[name].shape]
    if misshapen or (strict and (missing or unexpected)):
        raise RuntimeError(f"missing {missing}, unexpected {unexpected}, wrong shape {misshapen}")
    with torch.no_grad():
        for name in found:
            wanted[name].copy_(tensors[name])
    return {"missing": missing, "unexpected": unexpected}


# %% alternate: by_recursion
# A recursion that carries each module's own part of the checkpoint down, and a list of copies to
# make at the end.
def load_state(module, tensors, versions=None, strict=True):
    missing, unexpected, misshapen, jobs = [], [], [], []

    def visit(owner, entries, prefix):
        version = (versions or {}).get(prefix[:-1])
        if callable(getattr(owner, "upgrade", None)) and version != owner._version:
            entries = dict(owner.upgrade(dict(entries), version))
        own = {**owner._parameters, **owner._buffers}
        own = {n: t for n, t in own.items() if n not in owner._non_persistent_buffers_set}
        entries = dict(entries)
        for name, target in own.items():
            if target is None:
                continue
            if name not in entries:
                missing.append(prefix + name)
                continue
            value = entries.pop(name)
            if tuple(value.shape) != tuple(target.shape):
                misshapen.append(prefix + name)
            jobs.append((target, value))
        for name, child in owner._modules.items():
            if child is not None:
                below = {
                    n: t for n, t in entries.items() if n.split(".", 1)[0] == name and "." in n
                }
                for key in below:
                    del entries[key]
                visit(child, {n.split(".", 1)[1]: t for n, t in below.items()}, prefix + name + ".")
        unexpected.extend(prefix + name for name in entries)

    visit(module, tensors, "")
    trouble = misshapen + (missing + unexpected if strict else [])
    if trouble:
        raise RuntimeError("cannot load: " + ", ".join(misshapen + missing + unexpected))
    for target, value in jobs:
        target.data.copy_(value)
    return {"missing": sorted(missing), "unexpected": sorted(unexpected)}
