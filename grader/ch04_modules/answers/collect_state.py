# %% blocked: the_method
# `state_dict` collects the tensors for you. Build it from the registries.
def collect_state(module):
    state = module.state_dict()
    return dict(state), {path: entry["version"] for path, entry in state._metadata.items()}


# %% mistake: no_buffers
# You save parameters alone. Running means and other buffers are lost, and a model that is loaded
# from this normalises with the values of a fresh one.
def collect_state(module):
    tensors, versions = {}, {}
    for path, owner in module.named_modules(remove_duplicate=False):
        versions[path] = owner._version
        saved = [*owner._parameters.items()]
        saved += [
            (name, buffer)
            for name, buffer in {}.items()
            if name not in owner._non_persistent_buffers_set
        ]
        for name, tensor in saved:
            if tensor is not None:
                tensors[f"{path}.{name}" if path else name] = tensor.detach()
    return tensors, versions


# %% mistake: all_buffers
# You save every buffer. Those that were registered with `persistent=False` are not for
# checkpoints: whoever loads yours meets names that are not expected.
def collect_state(module):
    tensors, versions = {}, {}
    for path, owner in module.named_modules(remove_duplicate=False):
        versions[path] = owner._version
        saved = [*owner._parameters.items()]
        saved += [(name, buffer) for name, buffer in owner._buffers.items()]
        for name, tensor in saved:
            if tensor is not None:
                tensors[f"{path}.{name}" if path else name] = tensor.detach()
    return tensors, versions


# %% mistake: each_once
# You give a shared module under its first name only. A checkpoint has every name: the model that
# loads it may not share.
def collect_state(module):
    tensors, versions = {}, {}
    for path, owner in module.named_modules(remove_duplicate=True):
        versions[path] = owner._version
        saved = [*owner._parameters.items()]
        saved += [
            (name, buffer)
            for name, buffer in owner._buffers.items()
            if name not in owner._non_persistent_buffers_set
        ]
        for name, tensor in saved:
            if tensor is not None:
                tensors[f"{path}.{name}" if path else name] = tensor.detach()
    return tensors, versions


# %% mistake: each_tensor_once
# You give a tied tensor under its first name only. `named_parameters` does that, for optimisers; a
# checkpoint has every name.
def collect_state(module):
    tensors, versions = {}, {}
    seen = set()
    for path, owner in module.named_modules(remove_duplicate=False):
        versions[path] = owner._version
        saved = [*owner._parameters.items()]
        saved += [
            (name, buffer)
            for name, buffer in owner._buffers.items()
            if name not in owner._non_persistent_buffers_set
        ]
        for name, tensor in saved:
            if tensor is not None and tensor not in seen:
                seen.add(tensor)
                tensors[f"{path}.{name}" if path else name] = tensor.detach()
    return tensors, versions


# %% mistake: copies
# You copy. A state dict shares the model's memory, at no cost; who wants a copy makes one. (And
# who wants the *best* state must.)
def collect_state(module):
    tensors, versions = {}, {}
    for path, owner in module.named_modules(remove_duplicate=False):
        versions[path] = owner._version
        saved = [*owner._parameters.items()]
        saved += [
            (name, buffer)
            for name, buffer in owner._buffers.items()
            if name not in owner._non_persistent_buffers_set
        ]
        for name, tensor in saved:
            if tensor is not None:
                tensors[f"{path}.{name}" if path else name] = tensor.detach().clone()
    return tensors, versions


# %% mistake: parameters_as_they_are
# You hand out the parameters themselves. They want gradients, and who computes with a saved value
# builds a graph. Detach them.
def collect_state(module):
    tensors, versions = {}, {}
    for path, owner in module.named_modules(remove_duplicate=False):
        versions[path] = owner._version
        saved = [*owner._parameters.items()]
        saved += [
            (name, buffer)
            for name, buffer in owner._buffers.items()
            if name not in owner._non_persistent_buffers_set
        ]
        for name, tensor in saved:
            if tensor is not None:
                tensors[f"{path}.{name}" if path else name] = tensor
    return tensors, versions


# %% mistake: parameters_first
# You collect all parameters of the model, then all buffers. The order is module by module: the
# parameters of one, its buffers, then the next module.
def collect_state(module):
    tensors, versions = {}, {}
    for path, owner in module.named_modules(remove_duplicate=False):
        versions[path] = owner._version
        saved = [*owner._parameters.items()]
        saved += [
            (name, buffer)
            for name, buffer in owner._buffers.items()
            if name not in owner._non_persistent_buffers_set
        ]
        for name, tensor in owner._parameters.items():
            if tensor is not None:
                tensors[f"{path}.{name}" if path else name] = tensor.detach()
    for path, owner in module.named_modules(remove_duplicate=False):
        for name, tensor in owner._buffers.items():
            if tensor is not None and name not in owner._non_persistent_buffers_set:
                tensors[f"{path}.{name}" if path else name] = tensor.detach()
    return tensors, versions


# %% mistake: flag_of_the_root
# You ask the root which buffers are not persistent. Each module keeps that list for its own names.
def collect_state(module):
    tensors, versions = {}, {}
    for path, owner in module.named_modules(remove_duplicate=False):
        versions[path] = owner._version
        saved = [*owner._parameters.items()]
        saved += [
            (name, buffer)
            for name, buffer in owner._buffers.items()
            if name not in module._non_persistent_buffers_set
        ]
        for name, tensor in saved:
            if tensor is not None:
                tensors[f"{path}.{name}" if path else name] = tensor.detach()
    return tensors, versions


# %% mistake: versions_by_name
# You have a version for each tensor. Versions belong to modules, also to those without any tensor.
def collect_state(module):
    tensors, versions = {}, {}
    for path, owner in module.named_modules(remove_duplicate=False):
        saved = [*owner._parameters.items()]
        saved += [
            (name, buffer)
            for name, buffer in owner._buffers.items()
            if name not in owner._non_persistent_buffers_set
        ]
        for name, tensor in saved:
            if tensor is not None:
                tensors[f"{path}.{name}" if path else name] = tensor.detach()
                versions[path] = owner._version
    return tensors, versions


# %% mistake: detaches_in_place
# `detach_` changes the module's own tensor: a buffer that was computed loses its graph, because
# somebody looked at the model. `detach()` gives another tensor on the same memory.
def collect_state(module):
    tensors, versions = {}, {}
    for path, owner in module.named_modules(remove_duplicate=False):
        versions[path] = owner._version
        saved = [*owner._parameters.items()]
        saved += [
            (name, buffer)
            for name, buffer in owner._buffers.items()
            if name not in owner._non_persistent_buffers_set
        ]
        for name, tensor in saved:
            if tensor is not None:
                plain = tensor.detach() if name in owner._parameters else tensor.detach_()
                tensors[f"{path}.{name}" if path else name] = plain
    return tensors, versions


# %% mistake: buffers_as_they_are
# You detach the parameters and hand out the buffers as they are. A buffer that was computed has a
# graph, too.
def collect_state(module):
    tensors, versions = {}, {}
    for path, owner in module.named_modules(remove_duplicate=False):
        versions[path] = owner._version
        saved = [*owner._parameters.items()]
        saved += [
            (name, buffer)
            for name, buffer in owner._buffers.items()
            if name not in owner._non_persistent_buffers_set
        ]
        for name, tensor in saved:
            if tensor is not None:
                tensors[f"{path}.{name}" if path else name] = (
                    tensor.detach() if name in owner._parameters else tensor
                )
    return tensors, versions


# %% mistake: versions_once
# A module with several names has its version under the first only. Versions are found by path, so
# each path needs its own, like the tensors.
def collect_state(module):
    tensors, versions = {}, {}
    for path, owner in module.named_modules(remove_duplicate=False):
        saved = [*owner._parameters.items()]
        saved += [
            (name, buffer)
            for name, buffer in owner._buffers.items()
            if name not in owner._non_persistent_buffers_set
        ]
        for name, tensor in saved:
            if tensor is not None:
                tensors[f"{path}.{name}" if path else name] = tensor.detach()
    versions = {path: owner._version for path, owner in module.named_modules()}
    return tensors, versions


# %% mistake: versions_that_are_true
# You leave out the version 0. It is a version like any other: ask for `None`, if at all.
def collect_state(module):
    tensors, versions = {}, {}
    for path, owner in module.named_modules(remove_duplicate=False):
        if owner._version:
            versions[path] = owner._version
        saved = [*owner._parameters.items()]
        saved += [
            (name, buffer)
            for name, buffer in owner._buffers.items()
            if name not in owner._non_persistent_buffers_set
        ]
        for name, tensor in saved:
            if tensor is not None:
                tensors[f"{path}.{name}" if path else name] = tensor.detach()
    return tensors, versions


# %% alternate: recursion
# By recursion over `_modules`, with `vars` and `.data`.
def collect_state(module):
    tensors, versions = {}, {}

    def visit(prefix, owner):
        versions[prefix[:-1]] = type(owner)._version
        own = dict(vars(owner)["_parameters"])
        own.update(owner._buffers)
        for name, tensor in own.items():
            if tensor is not None and name not in owner._non_persistent_buffers_set:
                tensors[prefix + name] = tensor.data
        for name, child in owner._modules.items():
            if child is not None:
                visit(prefix + name + ".", child)

    visit("", module)
    return tensors, versions
