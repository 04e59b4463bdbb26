# %% mistake: exact_name
# You look for parameters whose whole name is `bias`. Below the root a name is a path, such as
# `head.bias`: look at its last part.
def parameter_groups(model, weight_decay, frozen=()):
    every_name = list(model.named_parameters(remove_duplicate=False))
    to_freeze = set()
    for path in frozen:
        below = [p for name, p in every_name if not path or f"{name}.".startswith(f"{path}.")]
        if not below:
            raise ValueError(f"no parameter at or below {path!r}")
        to_freeze.update(below)
    for parameter in to_freeze:
        parameter.requires_grad_(False)

    without_decay = set()
    for name, parameter in every_name:
        path, _, last = name.rpartition(".")
        if name == "bias" or isinstance(model.get_submodule(path), NORMS):
            without_decay.add(parameter)
    trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return [
        {
            "params": [parameter for parameter in trainable if parameter not in without_decay],
            "weight_decay": weight_decay,
        },
        {
            "params": [parameter for parameter in trainable if parameter in without_decay],
            "weight_decay": 0.0,
        },
    ]


# %% mistake: ends_in_bias
# You look at the end of the name. An LSTM calls its biases `bias_ih_l0`; the word can stand
# anywhere in the last part.
def parameter_groups(model, weight_decay, frozen=()):
    every_name = list(model.named_parameters(remove_duplicate=False))
    to_freeze = set()
    for path in frozen:
        below = [p for name, p in every_name if not path or f"{name}.".startswith(f"{path}.")]
        if not below:
            raise ValueError(f"no parameter at or below {path!r}")
        to_freeze.update(below)
    for parameter in to_freeze:
        parameter.requires_grad_(False)

    without_decay = set()
    for name, parameter in every_name:
        path, _, last = name.rpartition(".")
        if last.endswith("bias") or isinstance(model.get_submodule(path), NORMS):
            without_decay.add(parameter)
    trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return [
        {
            "params": [parameter for parameter in trainable if parameter not in without_decay],
            "weight_decay": weight_decay,
        },
        {
            "params": [parameter for parameter in trainable if parameter in without_decay],
            "weight_decay": 0.0,
        },
    ]


# %% mistake: last_part_is_bias
# You look for a last part that is `bias` and nothing else. An LSTM calls its biases `bias_ih_l0`, an
# attention layer has an `in_proj_bias`: the word can stand anywhere in the last part.
def parameter_groups(model, weight_decay, frozen=()):
    every_name = list(model.named_parameters(remove_duplicate=False))
    to_freeze = set()
    for path in frozen:
        below = [p for name, p in every_name if not path or f"{name}.".startswith(f"{path}.")]
        if not below:
            raise ValueError(f"no parameter at or below {path!r}")
        to_freeze.update(below)
    for parameter in to_freeze:
        parameter.requires_grad_(False)

    without_decay = set()
    for name, parameter in every_name:
        path, _, last = name.rpartition(".")
        if last == "bias" or isinstance(model.get_submodule(path), NORMS):
            without_decay.add(parameter)
    trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return [
        {
            "params": [parameter for parameter in trainable if parameter not in without_decay],
            "weight_decay": weight_decay,
        },
        {
            "params": [parameter for parameter in trainable if parameter in without_decay],
            "weight_decay": 0.0,
        },
    ]


# %% mistake: norms_by_class_name
# You tell norms by the name of their class. A subclass may be called otherwise, and what is called
# so need be none: ask `isinstance(module, NORMS)`.
def parameter_groups(model, weight_decay, frozen=()):
    every_name = list(model.named_parameters(remove_duplicate=False))
    to_freeze = set()
    for path in frozen:
        below = [p for name, p in every_name if not path or f"{name}.".startswith(f"{path}.")]
        if not below:
            raise ValueError(f"no parameter at or below {path!r}")
        to_freeze.update(below)
    for parameter in to_freeze:
        parameter.requires_grad_(False)

    without_decay = set()
    for name, parameter in every_name:
        path, _, last = name.rpartition(".")
        if "bias" in last or "Norm" in type(model.get_submodule(path)).__name__:
            without_decay.add(parameter)
    trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return [
        {
            "params": [parameter for parameter in trainable if parameter not in without_decay],
            "weight_decay": weight_decay,
        },
        {
            "params": [parameter for parameter in trainable if parameter in without_decay],
            "weight_decay": 0.0,
        },
    ]


# %% mistake: norms_without_subclasses
# You ask whether the type itself is in `NORMS`. These are base classes: `BatchNorm1d` is derived from
# the first, and other people derive from all. Ask `isinstance(module, NORMS)`.
def parameter_groups(model, weight_decay, frozen=()):
    every_name = list(model.named_parameters(remove_duplicate=False))
    to_freeze = set()
    for path in frozen:
        below = [p for name, p in every_name if not path or f"{name}.".startswith(f"{path}.")]
        if not below:
            raise ValueError(f"no parameter at or below {path!r}")
        to_freeze.update(below)
    for parameter in to_freeze:
        parameter.requires_grad_(False)

    without_decay = set()
    for name, parameter in every_name:
        path, _, last = name.rpartition(".")
        if "bias" in last or type(model.get_submodule(path)) in NORMS:
            without_decay.add(parameter)
    trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return [
        {
            "params": [parameter for parameter in trainable if parameter not in without_decay],
            "weight_decay": weight_decay,
        },
        {
            "params": [parameter for parameter in trainable if parameter in without_decay],
            "weight_decay": 0.0,
        },
    ]


# %% mistake: refuses_what_is_frozen
# You look for parameters that still want a gradient. A path to a part that is frozen already is no
# slip of the pen: there are parameters below it.
def parameter_groups(model, weight_decay, frozen=()):
    every_name = list(model.named_parameters(remove_duplicate=False))
    to_freeze = set()
    for path in frozen:
        below = [
            p
            for name, p in every_name
            if p.requires_grad and (not path or f"{name}.".startswith(f"{path}."))
        ]
        if not below:
            raise ValueError(f"no parameter at or below {path!r}")
        to_freeze.update(below)
    for parameter in to_freeze:
        parameter.requires_grad_(False)

    without_decay = set()
    for name, parameter in every_name:
        path, _, last = name.rpartition(".")
        if "bias" in last or isinstance(model.get_submodule(path), NORMS):
            without_decay.add(parameter)
    trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return [
        {
            "params": [parameter for parameter in trainable if parameter not in without_decay],
            "weight_decay": weight_decay,
        },
        {
            "params": [parameter for parameter in trainable if parameter in without_decay],
            "weight_decay": 0.0,
        },
    ]


# %% mistake: anywhere_in_the_path
# You look for `bias` in the whole path. A weight in a module that is called `bias_net` is a
# weight.
def parameter_groups(model, weight_decay, frozen=()):
    every_name = list(model.named_parameters(remove_duplicate=False))
    to_freeze = set()
    for path in frozen:
        below = [p for name, p in every_name if not path or f"{name}.".startswith(f"{path}.")]
        if not below:
            raise ValueError(f"no parameter at or below {path!r}")
        to_freeze.update(below)
    for parameter in to_freeze:
        parameter.requires_grad_(False)

    without_decay = set()
    for name, parameter in every_name:
        path, _, last = name.rpartition(".")
        if "bias" in name or isinstance(model.get_submodule(path), NORMS):
            without_decay.add(parameter)
    trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return [
        {
            "params": [parameter for parameter in trainable if parameter not in without_decay],
            "weight_decay": weight_decay,
        },
        {
            "params": [parameter for parameter in trainable if parameter in without_decay],
            "weight_decay": 0.0,
        },
    ]


# %% mistake: norms_by_name
# You tell norms by their names. Nobody has to call a norm so: ask for the type of the module that
# holds the parameter.
def parameter_groups(model, weight_decay, frozen=()):
    every_name = list(model.named_parameters(remove_duplicate=False))
    to_freeze = set()
    for path in frozen:
        below = [p for name, p in every_name if not path or f"{name}.".startswith(f"{path}.")]
        if not below:
            raise ValueError(f"no parameter at or below {path!r}")
        to_freeze.update(below)
    for parameter in to_freeze:
        parameter.requires_grad_(False)

    without_decay = set()
    for name, parameter in every_name:
        path, _, last = name.rpartition(".")
        if "bias" in last or "norm" in name:
            without_decay.add(parameter)
    trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return [
        {
            "params": [parameter for parameter in trainable if parameter not in without_decay],
            "weight_decay": weight_decay,
        },
        {
            "params": [parameter for parameter in trainable if parameter in without_decay],
            "weight_decay": 0.0,
        },
    ]


# %% mistake: by_dimension
# You leave out every vector. That is a common rule of thumb, and not the one that was asked for: a
# learned scale that is neither bias nor norm decays.
def parameter_groups(model, weight_decay, frozen=()):
    every_name = list(model.named_parameters(remove_duplicate=False))
    to_freeze = set()
    for path in frozen:
        below = [p for name, p in every_name if not path or f"{name}.".startswith(f"{path}.")]
        if not below:
            raise ValueError(f"no parameter at or below {path!r}")
        to_freeze.update(below)
    for parameter in to_freeze:
        parameter.requires_grad_(False)

    without_decay = set()
    for name, parameter in every_name:
        path, _, last = name.rpartition(".")
        if "bias" in last or parameter.dim() < 2:
            without_decay.add(parameter)
    trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return [
        {
            "params": [parameter for parameter in trainable if parameter not in without_decay],
            "weight_decay": weight_decay,
        },
        {
            "params": [parameter for parameter in trainable if parameter in without_decay],
            "weight_decay": 0.0,
        },
    ]


# %% mistake: biases_only
# You spare the biases and forget the gains: the `weight` of a norm is no matrix. Decay would pull
# it to zero and switch its channel off.
def parameter_groups(model, weight_decay, frozen=()):
    every_name = list(model.named_parameters(remove_duplicate=False))
    to_freeze = set()
    for path in frozen:
        below = [p for name, p in every_name if not path or f"{name}.".startswith(f"{path}.")]
        if not below:
            raise ValueError(f"no parameter at or below {path!r}")
        to_freeze.update(below)
    for parameter in to_freeze:
        parameter.requires_grad_(False)

    without_decay = set()
    for name, parameter in every_name:
        path, _, last = name.rpartition(".")
        if "bias" in last:
            without_decay.add(parameter)
    trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return [
        {
            "params": [parameter for parameter in trainable if parameter not in without_decay],
            "weight_decay": weight_decay,
        },
        {
            "params": [parameter for parameter in trainable if parameter in without_decay],
            "weight_decay": 0.0,
        },
    ]


# %% mistake: twice
# You give a tied parameter once for each of its names. An optimiser would step on it twice, and
# refuses it in two groups.
def parameter_groups(model, weight_decay, frozen=()):
    every_name = list(model.named_parameters(remove_duplicate=False))
    to_freeze = set()
    for path in frozen:
        below = [p for name, p in every_name if not path or f"{name}.".startswith(f"{path}.")]
        if not below:
            raise ValueError(f"no parameter at or below {path!r}")
        to_freeze.update(below)
    for parameter in to_freeze:
        parameter.requires_grad_(False)

    without_decay = set()
    for name, parameter in every_name:
        path, _, last = name.rpartition(".")
        if "bias" in last or isinstance(model.get_submodule(path), NORMS):
            without_decay.add(parameter)
    trainable = [parameter for _, parameter in every_name if parameter.requires_grad]
    return [
        {
            "params": [parameter for parameter in trainable if parameter not in without_decay],
            "weight_decay": weight_decay,
        },
        {
            "params": [parameter for parameter in trainable if parameter in without_decay],
            "weight_decay": 0.0,
        },
    ]


# %% mistake: first_name_only
# You judge a parameter by its first name. Under another it may be a norm's gain or a bias.
def parameter_groups(model, weight_decay, frozen=()):
    every_name = list(model.named_parameters(remove_duplicate=False))
    to_freeze = set()
    for path in frozen:
        below = [p for name, p in every_name if not path or f"{name}.".startswith(f"{path}.")]
        if not below:
            raise ValueError(f"no parameter at or below {path!r}")
        to_freeze.update(below)
    for parameter in to_freeze:
        parameter.requires_grad_(False)

    without_decay = set()
    for name, parameter in model.named_parameters():
        path, _, last = name.rpartition(".")
        if "bias" in last or isinstance(model.get_submodule(path), NORMS):
            without_decay.add(parameter)
    trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return [
        {
            "params": [parameter for parameter in trainable if parameter not in without_decay],
            "weight_decay": weight_decay,
        },
        {
            "params": [parameter for parameter in trainable if parameter in without_decay],
            "weight_decay": 0.0,
        },
    ]


# %% mistake: frozen_too
# You hand over frozen parameters as well. Most optimisers pass over them; they are not trained and
# belong to no group.
def parameter_groups(model, weight_decay, frozen=()):
    every_name = list(model.named_parameters(remove_duplicate=False))
    to_freeze = set()
    for path in frozen:
        below = [p for name, p in every_name if not path or f"{name}.".startswith(f"{path}.")]
        if not below:
            raise ValueError(f"no parameter at or below {path!r}")
        to_freeze.update(below)
    for parameter in to_freeze:
        parameter.requires_grad_(False)

    without_decay = set()
    for name, parameter in every_name:
        path, _, last = name.rpartition(".")
        if "bias" in last or isinstance(model.get_submodule(path), NORMS):
            without_decay.add(parameter)
    trainable = [parameter for parameter in model.parameters()]
    return [
        {
            "params": [parameter for parameter in trainable if parameter not in without_decay],
            "weight_decay": weight_decay,
        },
        {
            "params": [parameter for parameter in trainable if parameter in without_decay],
            "weight_decay": 0.0,
        },
    ]


# %% mistake: prefix_without_dot
# You freeze all names that begin with the path. `layer10` begins with `layer1`.
def parameter_groups(model, weight_decay, frozen=()):
    every_name = list(model.named_parameters(remove_duplicate=False))
    to_freeze = set()
    for path in frozen:
        below = [p for name, p in every_name if not path or name.startswith(path)]
        if not below:
            raise ValueError(f"no parameter at or below {path!r}")
        to_freeze.update(below)
    for parameter in to_freeze:
        parameter.requires_grad_(False)

    without_decay = set()
    for name, parameter in every_name:
        path, _, last = name.rpartition(".")
        if "bias" in last or isinstance(model.get_submodule(path), NORMS):
            without_decay.add(parameter)
    trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return [
        {
            "params": [parameter for parameter in trainable if parameter not in without_decay],
            "weight_decay": weight_decay,
        },
        {
            "params": [parameter for parameter in trainable if parameter in without_decay],
            "weight_decay": 0.0,
        },
    ]


# %% mistake: freezes_first_names
# You look for the frozen path among first names only. A shared part has other names, and one may
# be that path.
def parameter_groups(model, weight_decay, frozen=()):
    every_name = list(model.named_parameters(remove_duplicate=False))
    to_freeze = set()
    for path in frozen:
        below = [
            p
            for name, p in model.named_parameters()
            if not path or f"{name}.".startswith(f"{path}.")
        ]
        if not below:
            raise ValueError(f"no parameter at or below {path!r}")
        to_freeze.update(below)
    for parameter in to_freeze:
        parameter.requires_grad_(False)

    without_decay = set()
    for name, parameter in every_name:
        path, _, last = name.rpartition(".")
        if "bias" in last or isinstance(model.get_submodule(path), NORMS):
            without_decay.add(parameter)
    trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return [
        {
            "params": [parameter for parameter in trainable if parameter not in without_decay],
            "weight_decay": weight_decay,
        },
        {
            "params": [parameter for parameter in trainable if parameter in without_decay],
            "weight_decay": 0.0,
        },
    ]


# %% mistake: half_frozen
# You freeze path by path. When a later path leads nowhere, the error leaves a model behind that is
# half frozen. Check all of them first.
def parameter_groups(model, weight_decay, frozen=()):
    every_name = list(model.named_parameters(remove_duplicate=False))
    to_freeze = set()
    for path in frozen:
        below = [p for name, p in every_name if not path or f"{name}.".startswith(f"{path}.")]
        if not below:
            raise ValueError(f"no parameter at or below {path!r}")
        for parameter in below:
            parameter.requires_grad_(False)
    for parameter in to_freeze:
        parameter.requires_grad_(False)

    without_decay = set()
    for name, parameter in every_name:
        path, _, last = name.rpartition(".")
        if "bias" in last or isinstance(model.get_submodule(path), NORMS):
            without_decay.add(parameter)
    trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return [
        {
            "params": [parameter for parameter in trainable if parameter not in without_decay],
            "weight_decay": weight_decay,
        },
        {
            "params": [parameter for parameter in trainable if parameter in without_decay],
            "weight_decay": 0.0,
        },
    ]


# %% mistake: no_complaint
# You pass over a path that leads nowhere. Most likely it was misspelt, and the part that should be
# frozen trains on.
def parameter_groups(model, weight_decay, frozen=()):
    every_name = list(model.named_parameters(remove_duplicate=False))
    to_freeze = set()
    for path in frozen:
        below = [p for name, p in every_name if not path or f"{name}.".startswith(f"{path}.")]
        if not below:
            continue
        to_freeze.update(below)
    for parameter in to_freeze:
        parameter.requires_grad_(False)

    without_decay = set()
    for name, parameter in every_name:
        path, _, last = name.rpartition(".")
        if "bias" in last or isinstance(model.get_submodule(path), NORMS):
            without_decay.add(parameter)
    trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return [
        {
            "params": [parameter for parameter in trainable if parameter not in without_decay],
            "weight_decay": weight_decay,
        },
        {
            "params": [parameter for parameter in trainable if parameter in without_decay],
            "weight_decay": 0.0,
        },
    ]


# %% alternate: by_modules
# Module by module, with identities in place of sets of tensors.
def parameter_groups(model, weight_decay, frozen=()):
    names = {}
    spared = {}
    for path, module in model.named_modules(remove_duplicate=False):
        for own, parameter in module._parameters.items():
            if parameter is not None:
                names.setdefault(id(parameter), []).append(
                    [*path.split("."), own] if path else [own]
                )
                spared[id(parameter)] = (
                    spared.get(id(parameter), False) or "bias" in own or isinstance(module, NORMS)
                )
    stop = set()
    for path in frozen:
        parts = path.split(".") if path else []
        hit = {key for key, known in names.items() if any(n[: len(parts)] == parts for n in known)}
        if len(hit) == 0:
            raise ValueError(path)
        stop |= hit
    groups = [dict(params=[], weight_decay=weight_decay), dict(params=[], weight_decay=0)]
    for parameter in model.parameters():
        if id(parameter) in stop:
            parameter.requires_grad = False
        if parameter.requires_grad:
            groups[int(spared[id(parameter)])]["params"].append(parameter)
    return groups
