# %% mistake: wraps_wrappers
# You go down into what you have just put in. A wrapper holds the layer that it wraps, so there is
# always one more to wrap. Make all wrappers first, or do not enter them.
def replace_linears(model, wrap, path=""):
    for name, child in list(model._modules.items()):
        here = f"{path}.{name}" if path else name
        if isinstance(child, nn.Linear):
            model._modules[name] = wrap(here, child)
        if child is not None:
            replace_linears(model._modules[name], wrap, here)
    return wrap("", model) if isinstance(model, nn.Linear) and not path else model


# %% mistake: a_wrapper_per_name
# You make a wrapper for each name of a layer. What was one layer is now two; with state of their
# own they drift apart. Remember the wrapper of each layer.
def replace_linears(model, wrap):
    if isinstance(model, nn.Linear):
        return wrap("", model)
    jobs, inside = [], set()
    for path, module in model.named_modules(remove_duplicate=False):
        if isinstance(module, nn.Linear):
            if module not in inside:
                jobs.append((path, wrap(path, module)))
            inside.update(list(module.modules())[1:])
    for path, wrapper in jobs:
        model.set_submodule(path, wrapper)
    return model


# %% mistake: first_name_only
# You replace a layer under the first name that a parent has for it. `named_children()` gives each
# child once; the entries of `_modules` are all.
def replace_linears(model, wrap):
    wrappers, owners, inside = {}, [], set()
    for path, module in model.named_modules():
        if module in inside:
            continue
        if isinstance(module, nn.Linear):
            wrappers[module] = wrap(path, module)
            inside.update(module.modules())
        else:
            owners.append(module)
    for owner in owners:
        for name, child in list(owner.named_children()):
            if child in wrappers:
                owner._modules[name] = wrappers[child]
    return wrappers.get(model, model)


# %% mistake: first_path_only
# You replace a layer where the walk finds it first. `named_modules()` gives each module once:
# under its other names the bare layer is still there.
def replace_linears(model, wrap):
    if isinstance(model, nn.Linear):
        return wrap("", model)
    jobs, inside = [], set()
    for path, module in model.named_modules():
        if isinstance(module, nn.Linear) and module not in inside:
            jobs.append((path, wrap(path, module)))
            inside.update(module.modules())
    for path, wrapper in jobs:
        model.set_submodule(path, wrapper)
    return model


# %% mistake: forgets_the_root
# A model that is itself a linear layer has no parent in which you could replace it. Return its
# wrapper.
def replace_linears(model, wrap):
    wrappers, owners, inside = {}, [], set()
    for path, module in model.named_modules():
        if module in inside:
            continue
        if isinstance(module, nn.Linear):
            wrappers[module] = wrap(path, module)
            inside.update(module.modules())
        else:
            owners.append(module)
    for owner in owners:
        for name, child in owner._modules.items():
            if child in wrappers:
                owner._modules[name] = wrappers[child]
    return model


# %% mistake: exact_type
# You ask for `nn.Linear` itself. A subclass is a linear layer, too: the projection in PyTorch's
# own attention is one. Use `isinstance`.
def replace_linears(model, wrap):
    wrappers, owners, inside = {}, [], set()
    for path, module in model.named_modules():
        if module in inside:
            continue
        if type(module) is nn.Linear:
            wrappers[module] = wrap(path, module)
            inside.update(module.modules())
        else:
            owners.append(module)
    for owner in owners:
        for name, child in owner._modules.items():
            if child in wrappers:
                owner._modules[name] = wrappers[child]
    return wrappers.get(model, model)


# %% mistake: contains_linear
# You look for `Linear` in the name of the type. A subclass may be called anything, and so may a layer
# that is none. Use `isinstance`.
def replace_linears(model, wrap):
    wrappers, owners, inside = {}, [], set()
    for path, module in model.named_modules():
        if module in inside:
            continue
        if "Linear" in type(module).__name__:
            wrappers[module] = wrap(path, module)
            inside.update(module.modules())
        else:
            owners.append(module)
    for owner in owners:
        for name, child in owner._modules.items():
            if child in wrappers:
                owner._modules[name] = wrappers[child]
    return wrappers.get(model, model)


# %% mistake: by_attributes
# You take every layer with `in_features` and `out_features` for linear. Ask for the type, with
# `isinstance`.
def replace_linears(model, wrap):
    wrappers, owners, inside = {}, [], set()
    for path, module in model.named_modules():
        if module in inside:
            continue
        if hasattr(module, "in_features") and hasattr(module, "out_features"):
            wrappers[module] = wrap(path, module)
            inside.update(module.modules())
        else:
            owners.append(module)
    for owner in owners:
        for name, child in owner._modules.items():
            if child in wrappers:
                owner._modules[name] = wrappers[child]
    return wrappers.get(model, model)


# %% mistake: drops_the_error
# You catch what `wrap` raises. It was the caller's error, and the caller should hear of it.
def replace_linears(model, wrap):
    wrappers, owners, inside = {}, [], set()
    for path, module in model.named_modules():
        if module in inside:
            continue
        if isinstance(module, nn.Linear):
            try:
                wrappers[module] = wrap(path, module)
            except Exception:
                continue
            inside.update(module.modules())
        else:
            owners.append(module)
    for owner in owners:
        for name, child in owner._modules.items():
            if child in wrappers:
                owner._modules[name] = wrappers[child]
    return wrappers.get(model, model)


# %% mistake: by_name_of_type
# You look for `Linear` in the name of the type. `nn.Bilinear` takes two inputs; and a subclass may
# be called anything.
def replace_linears(model, wrap):
    wrappers, owners, inside = {}, [], set()
    for path, module in model.named_modules():
        if module in inside:
            continue
        if "linear" in type(module).__name__.lower():
            wrappers[module] = wrap(path, module)
            inside.update(module.modules())
        else:
            owners.append(module)
    for owner in owners:
        for name, child in owner._modules.items():
            if child in wrappers:
                owner._modules[name] = wrappers[child]
    return wrappers.get(model, model)


# %% mistake: enters_what_goes_away
# You replace layers within layers that are replaced themselves. What a linear layer holds is left
# alone.
def replace_linears(model, wrap):
    wrappers, owners, inside = {}, [], set()
    for path, module in model.named_modules():
        if module in inside:
            continue
        if isinstance(module, nn.Linear):
            wrappers[module] = wrap(path, module)
            owners.append(module)
        else:
            owners.append(module)
    for owner in owners:
        for name, child in owner._modules.items():
            if child in wrappers:
                owner._modules[name] = wrappers[child]
    return wrappers.get(model, model)


# %% mistake: replaces_as_it_goes
# You replace each layer as soon as its wrapper is made. When a later `wrap` raises, the model is
# half changed. Make all wrappers first.
def replace_linears(model, wrap):
    wrappers, inside = {}, set()
    every = list(model.named_modules(remove_duplicate=False))
    for path, module in every:
        if module in inside:
            continue
        if isinstance(module, nn.Linear):
            if module not in wrappers:
                wrappers[module] = wrap(path, module)
            inside.update(list(module.modules())[1:])
            if path:
                model.set_submodule(path, wrappers[module])
    return wrappers.get(model, model)


# %% mistake: children_only
# You look at the direct children. Layers are mostly deeper: go on into every child.
def replace_linears(model, wrap):
    if isinstance(model, nn.Linear):
        return wrap("", model)
    wrappers = {}
    for name, child in model._modules.items():
        if isinstance(child, nn.Linear) and child not in wrappers:
            wrappers[child] = wrap(name, child)
    for name, child in model._modules.items():
        if child in wrappers:
            setattr(model, name, wrappers[child])
    return model


# %% alternate: by_set_submodule
# Each path is found first, then replaced by `set_submodule`.
def replace_linears(model, wrap):
    paths = {}

    def visit(prefix, module):
        if isinstance(module, nn.Linear):
            paths.setdefault(module, []).append(prefix)
            return
        for name, child in module._modules.items():
            if child is not None:
                visit(f"{prefix}.{name}".lstrip("."), child)

    visit("", model)
    wrappers = {linear: wrap(names[0], linear) for linear, names in paths.items()}
    for linear, names in paths.items():
        for name in names:
            if name == "":
                return wrappers[linear]
            model.set_submodule(name, wrappers[linear])
    return model


# %% alternate: by_setattr
# Recursion with two dictionaries; the attribute is set as a person would.
def replace_linears(model, wrap):
    made, changes, been = {}, [], set()

    def visit(owner, path):
        if isinstance(owner, nn.Linear):
            if owner not in made:
                made[owner] = wrap(".".join(path), owner)
            return made[owner]
        if owner not in been:
            been.add(owner)
            for name, child in owner._modules.items():
                if child is not None:
                    new = visit(child, [*path, name])
                    if new is not child:
                        changes.append((owner, name, new))
        return owner

    result = visit(model, [])
    for owner, name, new in changes:
        setattr(owner, name, new)
    return result
