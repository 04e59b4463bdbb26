# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown] chapter="ch04_modules"
# title: Modules
# summary: >-
#   A module is an ordinary Python object with four dictionaries: its attributes, and three registries,
#   of parameters, buffers and child modules. All that is convenient about it
#   (parameters that an optimiser finds, a model that moves to another dtype, a checkpoint, a hook)
#   is a walk through these dictionaries, and all that surprises (a layer that never trains, a shared
#   weight that is missing, a checkpoint that does not fit) is a walk that went elsewhere than you
#   thought. In this chapter you write these walks yourself.
# preload: [torch._dynamo, torch._decomp.decompositions_for_jvp]
# off limits:
#   lists of tensors:
#     says: "what lists a module's parameters and buffers"
#     rules: [torch.nn.Module.named_parameters, torch.nn.Module.parameters, torch.nn.Module.named_buffers, torch.nn.Module.buffers, torch.nn.Module._named_members]

# %% [markdown]
# ## How to work
#
# Each exercise has a card, a few cells to read and run, and one cell to write: the one that
# raises `NotImplementedError`. The cell after it grades what you wrote, as often as you like.
#
# Where a cell calls `predict(...)`, write your guess in place of the dots before you run it.
# Nobody grades a guess; having made one is what makes the answer stick.

# %%
import io
import warnings
from collections import OrderedDict
from contextlib import contextmanager, suppress

import torch
import torch.nn.functional as F
from torch import nn

from grader import grade, hint, predict, solution

# %% [markdown] sitting="inventory"
# question: What is in a model, and who finds it?
# reached: >-
#   One walk: depth first, each module once, under its first name. Parameters and buffers are
#   found by that walk with a memory of their own, and an optimiser wants each exactly once.

# %% [markdown]
# ## Four dictionaries
#
# Here is a small model. Two things in it are unusual: one ReLU is used under two names, and there is
# a `running_max`, which is no parameter but belongs to the model all the same.


# %%
class Small(nn.Module):
    """Two linear layers around a block; one ReLU under two names."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(8, 6)
        self.act = nn.ReLU()
        self.block = nn.Sequential(nn.Linear(6, 6), nn.Tanh())
        self.head = nn.Linear(6, 2)
        self.last_act = self.act
        self.scale = nn.Parameter(torch.ones(2))
        self.register_buffer("running_max", torch.zeros(()))

    def forward(self, x):
        return self.last_act(self.head(self.block(self.act(self.stem(x))))) * self.scale


small = Small()
small.note = "text"
small.running_min = nn.Buffer(torch.zeros(()))
for registry in ("_parameters", "_buffers", "_modules", "_non_persistent_buffers_set"):
    print(f"{registry:>28}", list(small.__dict__[registry]))
print(f"{'__dict__':>28}", [name for name in small.__dict__ if not name.startswith("_")])

# %% [markdown]
# `self.stem = nn.Linear(8, 6)` looks like any assignment, and is none: `nn.Module` defines
# `__setattr__`, which looks at the value and files it. A `Parameter` goes to `_parameters`, a module
# to `_modules`. A plain tensor is no buffer by itself: it is registered, or wrapped in `nn.Buffer`.
# What is none of these goes to the object's ordinary `__dict__`, the fourth dictionary. Beside the
# three registries a set holds the names of buffers that checkpoints leave out.
#
# `add_module`, `register_parameter` and `register_buffer` file by name, which helps when the name is
# computed. What the three have in common: `None` is a value, too. A layer without a bias *has* a
# bias, and it is `None`.

# %%
plain = nn.Linear(2, 2, bias=False)
print(dict.fromkeys(plain._parameters), plain.bias)
plain.add_module("extra", None)
plain.register_buffer("mask", None)
print(list(plain._modules), list(plain._buffers), list(plain.state_dict()))

# %% [markdown]
# ## Which walk for what
#
# | you want | walk | goes down | |
# |---|---|---|---|
# | direct parts | `children`, `named_children` | no | each once |
# | every module | `modules`, `named_modules` | yes | itself first, each once |
# | what an optimiser gets | `parameters`, `named_parameters` | yes | each once, frozen ones too |
# | what else is state | `buffers`, `named_buffers` | yes | each once, not saved ones too |
# | what a checkpoint gets | `state_dict` | yes | **every name**, saved ones only |
#
# "Each once" means: each *object* once, under the first name that the walk comes to.

# %%
print("in _modules    ", list(small._modules))
print("named_children ", [name for name, _ in small.named_children()])
print("named_modules  ", [name for name, _ in small.named_modules()])

# %% [markdown]
# Three things to see. `last_act` is in the dictionary and in neither walk: it is the ReLU that came
# before as `act`. The walk down is depth first: `block.0` comes before `head`. And `named_modules`
# begins with the model itself, whose name is the empty string.
#
# Look: modules/walk#model=stem-Linear-8-6*act-ReLU*block-Sequential*block.0-Linear-6-6*block.1-Tanh*head-Linear-6-2*last_act-is-act&call=named_modules&step=3
# | The walk, step by step: down into `block` before it comes to `head`, and past `last_act`, which
# it has met as `act`.
#
# **Predict.** How many modules does `modules()` give for
# `nn.Sequential(relu, nn.Sequential(relu, relu))`, with one and the same `relu`?

# %%
relu = nn.ReLU()
predict(..., lambda: len(list(nn.Sequential(relu, nn.Sequential(relu, relu)).modules())))

# %% [markdown]
# Names are dotted paths, and so a test such as `name in ["bias"]` finds nothing below the root.
# Compare the last part instead.

# %%
small_names = list(dict(small.named_parameters()))
print([path for path in small_names if path in ["bias"]])
print([path for path in small_names if path.rsplit(".", 1)[-1] == "bias"])

# %% [markdown]
# Two more beliefs that a line of code settles. `parameters()` gives `Parameter` objects, not bare
# tensors, and it gives the frozen ones as well:

# %%
frozen = nn.Linear(2, 2)
frozen.weight.requires_grad_(False)
print([(type(p).__name__, p.requires_grad) for p in frozen.parameters()])

# %% [markdown] exercise="named_modules"
# title: Walk through a model
# minutes: 20
# difficulty: 2
# points: 7
# short: true
# prerequisites: []
# teaches: >-
#   how the one walk that all others rest on goes: depth first, itself first, each object once under
#   its first name.
# leaves out: what is done with the modules that it finds.
# off limits: [torch.nn.Module.named_modules, torch.nn.Module.modules, torch.nn.Module.named_children, torch.nn.Module.children, torch.nn.Module.named_parameters, torch.nn.Module.get_submodule]
# forbids: "`nn.Module`'s own walks"

# %% [markdown]
# A model is drawn as a tree, and is none. A module that has two names is a node with two parents, and
# nothing forbids a module that contains itself. So the walk needs a memory of where it has been: a
# set called `memo`. A `set` tells modules apart by identity, which is what we want: two layers that
# are equal in all things are two layers.
#
# `remove_duplicate=False` asks for every path instead. Then the memory is not written to.

# %%
shared = nn.Linear(2, 2)
model = nn.Sequential(OrderedDict(first=shared, again=nn.Sequential(shared)))
print([name for name, _ in model.named_modules()])
print([name for name, _ in model.named_modules(remove_duplicate=False)])
print(len({nn.ReLU(), nn.ReLU()}), len({shared, model.first, model.again[0]}))

# %% [markdown]
# Look: modules/duplicates#model=first-Linear-2-2*again-Sequential*again.0-is-first&call=named_modules&remove_duplicate=False
# | One layer and two paths: `first` and `again.0`. Switch `remove_duplicate` on, and the second is
# passed over.
#
# Every path, that can be many: three levels of pairs have 15 paths to four modules.
#
# **Predict.** Each of ten modules holds the next one twice, as `left` and `right`. How many names
# does `named_modules(remove_duplicate=False)` give for the first of them?


# %%
def pairs(levels):
    """Return the first of `levels` modules, each holding the next one twice."""
    module = nn.Module()
    if levels > 1:
        module.left = module.right = pairs(levels - 1)
    return module


predict(..., lambda: sum(1 for _ in pairs(10).named_modules(remove_duplicate=False)))

# %% [markdown]
# **Write `named_modules(module, memo=None, prefix="", remove_duplicate=True)`.** It yields pairs
# `(name, module)`, as the method of the same name does. All it may look at is each module's
# `_modules`.
#
# - `module` itself comes first, under the name `prefix`; then, for each entry of its `_modules` in
#   order, all that the entry holds. The parts of a name are joined by dots. With the prefix `"a"`
#   the names are `"a"`, `"a.stem"`, `"a.block.0"`.
# - Entries that are `None` are passed over, and no others.
# - `memo` is a set of modules. Those in it are passed over, with all that they hold.
# - With `remove_duplicate` each module that is found goes into `memo`, so that it is found once. A
#   set that the caller passed shows afterwards what was found.
# - Without it `memo` is read and never written, and each path counts.
# - It is lazy: whoever takes three pairs has walked to the third. A module that contains itself has
#   infinitely many paths, and the first five of them can be had.
#
# <details><summary>Hint 1: two kinds of yield</summary>
#
# Write a generator. It yields one pair for the module itself. For each child `yield from` passes on
# all that the same function finds there.
#
# </details>
# <details><summary>Hint 2: when to remember</summary>
#
# Put the module into `memo` before you go down, not after. And pass the very same set down: a copy
# would forget, on the way back up, what was found below.
#
# </details>
# <details><summary>Hint 3: empty is not None</summary>
#
# `memo or set()` makes a new set where the caller passed an empty one, and the caller never sees what
# you found. Ask `is None`. An empty `nn.ModuleList` counts as false, too, and is a module. And a
# default `memo=set()` would be one set for all calls.
#
# </details>


# %% solution="named_modules"
def named_modules(module, memo=None, prefix="", remove_duplicate=True):
    """Yield (name, module) for the module and all below it.

    memo: a set of modules to pass over, or None
    prefix: the name of `module` itself
    remove_duplicate: each module once, under its first name; else every path
    """
    ### BEGIN SOLUTION
    if memo is None:
        memo = set()
    if module in memo:
        return
    if remove_duplicate:
        memo.add(module)  # before going down: a module may contain itself
    yield prefix, module
    for name, child in module._modules.items():
        if child is not None:
            path = f"{prefix}.{name}" if prefix else name
            yield from named_modules(child, memo, path, remove_duplicate)
    ### END SOLUTION


# %% grade="named_modules"
grade("named_modules")

# %% [markdown] exercise="named_tensors"
# title: Find every parameter and buffer
# minutes: 25
# difficulty: 2
# points: 8
# short: true
# prerequisites: [named_modules]
# teaches: >-
#   that parameters and buffers are found by a walk over modules with a second memory, of tensors, and
#   what counts as the same tensor.
# leaves out: the walk itself, which may be PyTorch's.
# off limits: [lists of tensors, torch.nn.Module.state_dict, torch.nn.Module.get_parameter, torch.nn.Module.get_buffer]
# forbids: "what lists a module's parameters and buffers, or finds one"

# %% [markdown]
# Language models often use one matrix twice: to turn words into vectors, and vectors into words. The
# two *modules* differ. The *parameter* is the same object, registered in both.


# %%
class TiedModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(10, 4)
        self.norm = nn.BatchNorm1d(4)
        self.out = nn.Linear(4, 10, bias=False)
        self.out.weight = self.embed.weight


tied = TiedModel()
print([name for name, _ in tied.named_parameters()])
print([name for name, _ in tied.named_parameters(remove_duplicate=False)])
print([name for name, _ in tied.named_buffers()])
print(list(tied.state_dict()))

weight = nn.Parameter(torch.tensor(5.0))
weight.grad = torch.tensor(1.0)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # PyTorch warns that this will be an error one day
    torch.optim.SGD([weight, weight], lr=1.0).step()
print(weight.item())

# %% [markdown]
# The optimiser must get the matrix once, or it steps twice, as the last line shows: 5 − 1 − 1. The
# checkpoint has it under both names: whoever loads it may not know that they are one. (The bytes are
# in the file once, as you will see in *To a file and back*.)
#
# Look: modules/walk#model=embed-Embedding-10-4*norm-LayerNorm-4*out-Linear-4-10*out.weight-is-embed.weight*out.bias-None-parameters&call=named_parameters
# | Tied weights: `named_parameters` passes over `out.weight`. Choose `state_dict`, and it does not.
#
# Same means: the same object. Two parameters with equal values are two. So are two parameters that
# look at the same memory, and so are two empty ones, which both have no address at all.

# %%
one, two = nn.Parameter(torch.empty(0)), nn.Parameter(torch.empty(0))
print(one.data_ptr(), two.data_ptr(), one is two, len({one, two}))

# %% [markdown]
# `in` asks different questions of a set and of a list. A set looks for the object, because a tensor's
# hash is its `id`. A list calls `==` on each entry that is not the very object, and on tensors `==`
# compares elements.
#
# **Predict.** Is `torch.tensor(1.0) in [torch.tensor(1.0)]` true?

# %%
predict(..., lambda: torch.tensor(1.0) in [torch.tensor(1.0)])

# %% [markdown]
# **Write `named_tensors(module, kind, prefix="", recurse=True, remove_duplicate=True)`.** `kind` is
# `"parameters"` or `"buffers"`. Yield pairs `(name, tensor)`, as `named_parameters` and
# `named_buffers` do: for each module of the walk, in its order, the entries of its `_parameters` or
# `_buffers`, in theirs. You may use `module.named_modules`, or your own.
#
# - `prefix` is the name of `module` itself, and names are joined by dots, as before.
# - Entries that are `None` are passed over.
# - With `remove_duplicate` each tensor comes once, under its first name. Without it, every tensor
#   comes under each of its names, also those that it has because a *module* has several.
# - Without `recurse` only the tensors that `module` itself has registered.
# - Parameters that want no gradient count. Buffers that are not saved count.
# - Any other `kind` is a `ValueError`, raised at the latest when the first pair is asked for.
#
# <details><summary>Hint 1: reuse the walk</summary>
#
# `module.named_modules(prefix=prefix, remove_duplicate=...)` gives each module with its full name.
# What is left is one loop over one dictionary.
#
# </details>
# <details><summary>Hint 2: two kinds of sharing</summary>
#
# A module may be shared, and a tensor may be shared between modules that are not. The walk's memory
# knows modules only. You need one of tensors as well, and both obey `remove_duplicate`.
#
# </details>
# <details><summary>Hint 3: without recursion</summary>
#
# Then the walk is a list of one pair: `[(prefix, module)]`. A module may still hold one tensor under
# two names.
#
# </details>


# %% solution="named_tensors"
def named_tensors(module, kind, prefix="", recurse=True, remove_duplicate=True):
    """Yield (name, tensor) for every parameter, or every buffer, of a module.

    kind: "parameters" or "buffers"
    prefix: the name of `module` itself
    recurse: look into all modules below, too
    remove_duplicate: each tensor once, under its first name; else under every name
    """
    ### BEGIN SOLUTION
    if kind not in ("parameters", "buffers"):
        raise ValueError(f"kind is 'parameters' or 'buffers', not {kind!r}")
    modules = [(prefix, module)]
    if recurse:
        modules = module.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
    found = set()  # of tensors: a set asks for identity, where a list would compare elements
    for path, owner in modules:
        for name, tensor in getattr(owner, f"_{kind}").items():
            if tensor is None or tensor in found:
                continue
            if remove_duplicate:
                found.add(tensor)
            yield (f"{path}.{name}" if path else name), tensor
    ### END SOLUTION


# %% grade="named_tensors"
grade("named_tensors")

# %% [markdown] exercise="parameter_groups"
# title: Sort parameters for an optimiser
# minutes: 30
# difficulty: 2
# points: 6
# prerequisites: [named_tensors]
# teaches: >-
#   how parameters are divided among groups so that each is in exactly one, and how a part of a model
#   is frozen.
# leaves out: different learning rates per layer; what the optimiser does with its groups.
# off limits: []

# %% [markdown]
# An optimiser takes a list of **groups**, each a dict with its own settings. Weight decay pulls
# weights towards zero. For the matrices that is wanted, for biases and for the gains of a norm (its
# `weight`) it is not: pulled to zero, a gain switches its channel off.

# %%
linear, layer_norm = nn.Linear(2, 2), nn.LayerNorm(2)
two_groups = torch.optim.SGD(
    [
        {"params": [linear.weight], "weight_decay": 0.1},
        {"params": [linear.bias, layer_norm.weight, layer_norm.bias], "weight_decay": 0.0},
    ],
    lr=0.5,
)
print([(len(group["params"]), group["weight_decay"]) for group in two_groups.param_groups])
try:
    torch.optim.SGD([{"params": [linear.weight]}, {"params": [linear.weight]}], lr=0.5)
except ValueError as error:
    print(error)

# %% [markdown]
# Two slips are easy. A parameter in two groups is an error, and one in *none* is not: it stays what it
# is and nobody complains. And each optimiser has settings of its own; a decay of 0.1 is a part of the
# gradient in `SGD` and `Adam`, a shrinking of the weight in `AdamW`:


# %%
def decayed(kind):
    """Return two weights after one step on a gradient of zero."""
    weight = nn.Parameter(torch.tensor([1.0, 4.0]))
    optimiser = kind([weight], lr=0.5, weight_decay=0.1)
    weight.grad = torch.zeros(2)
    optimiser.step()
    return [round(value, 3) for value in weight.tolist()]


print("SGD", decayed(torch.optim.SGD))
print("Adam", decayed(torch.optim.Adam))
print("AdamW", decayed(torch.optim.AdamW))

# %% [markdown]
# Draw: show_curves({kind.__name__: [(step, weight.tolist()[0]) for weight in
# [nn.Parameter(torch.tensor([4.0]))] for optimiser in [kind([weight], lr=0.1, weight_decay=0.5)]
# for step in range(41) if not step or (setattr(weight, "grad", torch.zeros(1)),
# optimiser.step())] for kind in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW)}, "steps",
# "weight") | A weight of 4 and nothing but decay. `SGD` and `AdamW` take off a share and lie on
# one line; `Adam` divides the decay by its own size, and goes another way.
#
# The gradient was zero. `SGD` and `AdamW` took 5% off each weight; `Adam` divided the decay by its own
# size and moved both weights by the learning rate.
#
# How to tell which is which? Not by `name in ["bias"]`, as you saw, and not by the number of
# dimensions either: a learned scale may be a vector and want its decay. A bias is told by its own
# name, a norm by the **type** of the module that holds the parameter. And not every bias is called
# just that:

# %%
print(list(dict(nn.LSTM(2, 2).named_parameters())))
print(list(dict(nn.MultiheadAttention(2, 1).named_parameters())))

# %%
NORMS = (
    nn.modules.batchnorm._NormBase,  # batch norms and instance norms of every dimension
    nn.LayerNorm,
    nn.GroupNorm,
    nn.RMSNorm,
)
print(
    [isinstance(norm, NORMS) for norm in (nn.BatchNorm3d(2), nn.InstanceNorm1d(2), nn.Linear(2, 2))]
)

# %% [markdown]
# **Freezing** a parameter is setting its `requires_grad` to false: backward gives it no gradient. An
# optimiser passes over what has no `.grad`, and not over what is frozen. A gradient from before still
# moves it:

# %%
stale = nn.Parameter(torch.tensor(5.0))
stale.grad = torch.tensor(1.0)
stale.requires_grad_(False)
torch.optim.SGD([stale], lr=1.0).step()
print(stale.item())

# %% [markdown]
# So a frozen parameter had better not be handed over.
#
# Look: modules/walk#model=stem-Linear-8-6*stem.weight-frozen*stem.bias-frozen*act-ReLU*head-Linear-6-2&call=named_parameters
# | A frozen stem: `named_parameters` gives all four tensors, frozen or not.
#
# **Predict.** A batch norm's parameters are frozen, its model is in training mode, and a batch goes
# through. Has its `running_mean` changed?


# %%
def frozen_norm_moves():
    norm = nn.BatchNorm1d(2).requires_grad_(False)
    norm(torch.ones(4, 2))
    return bool((norm.running_mean != 0).any())


predict(..., frozen_norm_moves)

# %% [markdown]
# **Write `parameter_groups(model, weight_decay, frozen=())`.**
#
# `frozen` holds dotted paths of modules or parameters. First, every parameter at or below one of them
# is frozen. A path at or below which there is no parameter is a `ValueError`, most likely a slip of
# the pen, and then nothing is frozen at all. The path `""` is the model itself.
#
# Then return two groups, `[{"params": [...], "weight_decay": weight_decay}, {"params": [...],
# "weight_decay": 0.0}]`, that hold every parameter which wants a gradient exactly once, in the order
# of `named_parameters()`. A parameter belongs to the second group if under **any** of its names
#
# - the last part of the name contains `bias`, or
# - the module that holds it is an instance of one of `NORMS`.
#
# A parameter with several names is frozen if one of them is. Both groups are there, also if empty.
#
# <details><summary>Hint 1: all names</summary>
#
# `named_parameters(remove_duplicate=False)` gives every name. Collect the parameters that one of their
# names rules out in a set; then go over `named_parameters()` once.
#
# </details>
# <details><summary>Hint 2: below a path</summary>
#
# `name.startswith("layer1")` is true for `layer10.weight`. At or below `layer1` means: equal to it, or
# beginning with `"layer1."`.
#
# </details>
# <details><summary>Hint 3: who holds it</summary>
#
# `path, _, last = name.rpartition(".")` splits a name, and `model.get_submodule(path)` gives the
# module; for `""` the model itself.
#
# </details>


# %% solution="parameter_groups"
def parameter_groups(model, weight_decay, frozen=()):
    """Freeze parts of a model and return two groups: with weight decay, and without.

    frozen: dotted paths of modules or parameters
    """
    ### BEGIN SOLUTION
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
    # parameters() gives each object once, however many names it has
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
    ### END SOLUTION


# %% grade="parameter_groups"
grade("parameter_groups")

# %% [markdown] sitting="registering"
# question: Why does an assignment put a weight into the checkpoint?
# reached: >-
#   `__setattr__` files parameters, buffers and children in three dictionaries, and the state dict
#   reads those. What was never filed is not there.

# %% [markdown] exercise="MiniModule"
# title: Rebuild nn.Module
# minutes: 50
# difficulty: 3
# points: 10
# short: true
# prerequisites: [named_modules]
# teaches: >-
#   how an assignment registers something, what slips through, and what `train`, `apply` and
#   `zero_grad` walk over.
# leaves out: hooks, checkpoints, moving to another device or dtype.
# off limits: [torch.nn.Module, torch.nn.Sequential, torch.nn.Identity, torch.nn.ModuleList, torch.nn.ModuleDict]
# forbids: "`nn.Module`, and what inherits from it"

# %% [markdown]
# Python calls `__setattr__` for **every** assignment to an attribute, and `__getattr__` only when a
# name was **not** found in the usual places: the object's `__dict__`, its class, the class's bases.
# With these two `nn.Module` takes parameters out of the ordinary `__dict__` and finds them again.

# %%
linear = nn.Linear(2, 2)
print("weight" in linear.__dict__, "weight" in linear._parameters, "in_features" in linear.__dict__)

# %% [markdown]
# It looks at the value itself and never into it. A list is a list, whatever it holds:


# %%
class Listed(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(2, 2), nn.Linear(2, 2)]
        self.offset = torch.zeros(2)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x + self.offset


listed = Listed().double()
print(len(list(listed.parameters())), listed.layers[0].weight.dtype, listed.offset.dtype)

# %% [markdown]
# No parameters for an optimiser, nothing in a checkpoint, and `double()` changed nothing. An optimiser
# says so if there is no parameter at all (`ValueError`); beside one layer that is registered, those in
# the list are passed over in silence and never learn. The remedy is `nn.ModuleList` for the layers,
# which is a module whose entries are called `"0"`, `"1"`, and `register_buffer` for the tensor.
# `nn.Sequential` is such a list that also calls one entry after the other; `nn.ModuleDict` has names of
# your own.
#
# Look: modules/walk#model=stem-Linear-8-6*layers-list*layers.0-Linear-6-6*layers.1-Linear-6-6*head-Linear-6-2&call=named_parameters&at=layers
# | Two layers in a plain list, between two that are registered: no walk ever comes to them.


# %%
class Registered(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])
        self.register_buffer("offset", torch.zeros(2))


registered = Registered().double()
print(len(list(registered.parameters())), registered.offset.dtype, list(registered.state_dict()))

# %% [markdown]
# `double`, `half`, `to` and `cuda` all end in one method, `_apply` in `torch/nn/modules/module.py`, and
# it goes where the registries lead: the children, then its own parameters, then its own buffers. Where
# the kind of memory stays, it makes no new parameters, but exchanges what they hold: an optimiser that
# was made before still has the right objects. A move to the `meta` device, whose tensors have no
# memory, does make new ones:

# %%
registered.gain = nn.Parameter(torch.ones(3))
order = []
before = registered.layers[0].weight
registered._apply(lambda tensor: order.append(tuple(tensor.shape)) or tensor * 0)
print(order)  # two layers, then the gain, then the buffer
print(before is registered.layers[0].weight, before.abs().sum().item())
print(before is registered.to("meta").layers[0].weight)

# %% [markdown]
# Draw: show_cells({"`_apply`": [(str(shape), "layers" if turn < 4 else "own parameter" if turn ==
# 4 else "own buffer") for turn, shape in enumerate(order)]}, ["first", "second", "third",
# "fourth", "fifth", "sixth"]) | The order in which `_apply` comes to them: children, own
# parameters, own buffers.
#
# Who forgets `super().__init__()` has no registries yet. And names are not all equal: a parameter's
# name is the strictest.


# %%
class Forgot(nn.Module):
    def __init__(self):
        self.inner = nn.Linear(2, 2)


def what_happens(action):
    try:
        action()
    except (AttributeError, TypeError) as error:
        return f"{type(error).__name__}: {str(error).split('(')[0].strip()}"
    return "fine"


parent = nn.Sequential(nn.Linear(2, 2))
parent.gain = nn.Parameter(torch.ones(2))
print(what_happens(Forgot))
print(what_happens(lambda: setattr(parent, "gain", nn.ReLU())))  # a module for a parameter
print(
    what_happens(lambda: setattr(parent, "0", nn.Parameter(torch.ones(2))))
)  # the other way round

# %% [markdown]
# **Predict.** `linear.weight = None` and then `list(linear.state_dict())`: what does it print?


# %%
def without_weight():
    linear = nn.Linear(2, 2)
    linear.weight = None
    return list(linear.state_dict())


predict(..., without_weight)

# %% [markdown]
# **Write the class `MiniModule`,** on its own, without anything of PyTorch's modules. Subclasses are
# written as ever: `super().__init__()` first, then assignments, and a `forward`. It has
#
# - `__setattr__`: a `Parameter` becomes a parameter, a `MiniModule` a child, under the attribute's
#   name, and replaces whatever had that name before; but a child cannot replace a parameter. A name
#   that is registered may also be assigned `None`: it stays registered, and is `None`. A buffer may be
#   assigned a tensor, and stays a buffer. Any other value for a registered name is a `TypeError`. For
#   a name that is not registered, any other value is an ordinary attribute. A `Parameter` or a
#   `MiniModule` assigned before `MiniModule.__init__` ran is an `AttributeError`; ordinary attributes
#   may come earlier.
# - `register_buffer(name, tensor)`: makes a buffer of a tensor or `None`. A name that is something else
#   already is refused with a `KeyError`, as PyTorch does, or becomes the buffer, as you like.
# - `__getattr__` and `__delattr__` for what is registered. A name that is not there is an
#   `AttributeError` in both, also before `MiniModule.__init__` ran. When it is read, the error says
#   the name.
# - `named_children()`, `modules()`, `named_parameters()`, `named_buffers()`, which give each object
#   once, in the order and under the names that PyTorch has for them; `parameters()`, the same
#   without names. `None` is passed over.
# - `train(mode=True)` sets `training` on the module and on all below, and returns the module;
#   `eval()` is `train(False)`. A new module is training.
# - `apply(fn)` calls `fn` on every module, the children first and the module itself last, and returns
#   the module.
# - `zero_grad()` sets the `.grad` of each parameter to `None`.
# - Calling a module calls its `forward` with the same arguments.
#
# `copy.deepcopy` must work; it does by itself, unless `__getattr__` is careless.
#
# <details><summary>Hint 1: the way around yourself</summary>
#
# Inside `__setattr__` an assignment calls `__setattr__`. `self.__dict__[name] = value` does not, and
# neither does `object.__setattr__(self, name, value)`.
#
# </details>
# <details><summary>Hint 2: before there is anything</summary>
#
# In `__getattr__`, `self._parameters` looks up an attribute. If that does not exist, Python calls
# `__getattr__` for it, and so on for ever. A deep copy is such a moment: the copy exists, and is
# empty. `self.__dict__.get("_parameters", {})` asks nobody.
#
# </details>
# <details><summary>Hint 3: one name, one place</summary>
#
# An ordinary attribute hides a registered one, because `__getattr__` is asked last. So whatever goes
# into one dictionary must leave the others.
#
# </details>


# %% solution="MiniModule"
class MiniModule:
    """A module: registries for parameters, buffers and children, and walks over them."""

    def __init__(self):
        ### BEGIN SOLUTION
        # past our own __setattr__, which needs what is made here
        self.__dict__.update({name: {} for name in self.REGISTRIES}, training=True)

    REGISTRIES = ("_parameters", "_buffers", "_modules")

    def __setattr__(self, name, value):
        own = self.__dict__
        if isinstance(value, nn.Parameter):
            home = "_parameters"
        elif isinstance(value, MiniModule) and name not in own.get("_parameters", {}):
            home = "_modules"
        else:
            home = next((r for r in self.REGISTRIES if name in own.get(r, {})), None)
            if home is None:
                object.__setattr__(self, name, value)  # properties of the class still work
                return
            if value is not None and not (home == "_buffers" and isinstance(value, torch.Tensor)):
                raise TypeError(
                    f"{name!r} is registered: a {type(value).__name__} cannot replace it"
                )
        if home not in own:
            raise AttributeError(f"call super().__init__() before you assign {name!r}")
        for place in (own, *(own[r] for r in self.REGISTRIES if r != home)):
            place.pop(name, None)
        own[home][name] = value

    def __getattr__(self, name):
        for registry in self.REGISTRIES:
            found = self.__dict__.get(registry, {})  # self._parameters would ask us again
            if name in found:
                return found[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __delattr__(self, name):
        for registry in self.REGISTRIES:
            if name in self.__dict__.get(registry, {}):
                del self.__dict__[registry][name]
                return
        object.__delattr__(self, name)

    def register_buffer(self, name, tensor):
        if name not in self._buffers and hasattr(self, name):
            raise KeyError(f"{name!r} is something else already")
        self._buffers[name] = tensor

    def named_children(self):
        found = set()
        for name, child in self._modules.items():
            if child is not None and child not in found:
                found.add(child)
                yield name, child

    def named_modules(self, prefix="", found=None):
        found = set() if found is None else found
        if self not in found:
            found.add(self)
            yield prefix, self
            for name, child in self.named_children():
                yield from child.named_modules(f"{prefix}.{name}" if prefix else name, found)

    def modules(self):
        return (module for _, module in self.named_modules())

    def _named_tensors(self, registry):
        found = set()
        for path, module in self.named_modules():
            for name, tensor in module.__dict__[registry].items():
                if tensor is not None and tensor not in found:
                    found.add(tensor)
                    yield (f"{path}.{name}" if path else name), tensor

    def named_parameters(self):
        return self._named_tensors("_parameters")

    def named_buffers(self):
        return self._named_tensors("_buffers")

    def parameters(self):
        return (parameter for _, parameter in self.named_parameters())

    def train(self, mode=True):
        for module in self.modules():
            module.training = mode
        return self

    def eval(self):
        return self.train(False)

    def apply(self, fn):
        for _, child in self.named_children():
            child.apply(fn)
        fn(self)
        return self

    def zero_grad(self):
        for parameter in self.parameters():
            parameter.grad = None

    def __call__(self, *args, **kwargs):
        return self.forward(*args, **kwargs)

    ### END SOLUTION


# %% grade="MiniModule"
grade("MiniModule")

# %% [markdown]
# ## A tour of the layers
#
# Look: modules/walk#model=conv-Conv2d-3-8-3*norm-BatchNorm2d-8*act-ReLU&call=state_dict |
# What layers bring along: a convolution a weight and a bias, a batch norm two parameters and three
# buffers, a ReLU nothing.
#
# All of `torch.nn` is modules of this kind. Here is what goes in and what comes out, family by family.


# %%
def shapes(layer, *inputs):
    """Print a layer's name, its parameters' number, and the shapes of inputs and outputs."""

    def shape(value):
        if isinstance(value, tuple):
            return "(" + ", ".join(map(shape, value)) + ")"
        return "×".join(map(str, value.shape)) or "one number"

    count = sum(parameter.numel() for parameter in layer.parameters())
    given = ", ".join(map(shape, inputs))
    print(f"{type(layer).__name__:>24} {count:>6}  {given} -> {shape(layer(*inputs))}")


images, words = (
    torch.zeros(2, 3, 8, 8),
    torch.zeros(2, 5, 4),
)  # (batch, channels, height, width), (batch, time, features)
shapes(nn.Linear(4, 6), words)
shapes(nn.Conv1d(5, 6, 3), words)
shapes(nn.Conv2d(3, 6, 3, stride=2, padding=1), images)
shapes(nn.ConvTranspose2d(3, 6, 2, stride=2), images)
shapes(nn.Embedding(100, 4), torch.zeros(2, 5, dtype=torch.int64))
shapes(nn.RNN(4, 6, batch_first=True), words)
shapes(nn.GRU(4, 6, batch_first=True), words)
shapes(nn.LSTM(4, 6, num_layers=2, batch_first=True), words)
shapes(nn.MultiheadAttention(4, 2, batch_first=True), words, words, words)
shapes(nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), words)
shapes(nn.TransformerDecoderLayer(4, 2, 8, batch_first=True), words, words)

# %% [markdown]
# `Conv1d` wants the channels second. `words` has its time there, so it took five time steps for five
# channels, and nothing complained.
#
# A recurrent layer gives the outputs of all steps *and* its last state; an LSTM has two states, `h`
# and `c`, one pair per layer. A layer of a GRU has three times the matrices of an `RNN`, one of an LSTM
# four times; the LSTM above has two layers. Where time goes one way, the last output is the last
# layer's last state:

# %%
torch.manual_seed(0)
gru = nn.GRU(4, 6, batch_first=True)
outputs, last = gru(torch.randn(2, 5, 4))
print(torch.equal(outputs[:, -1], last[0]))

# %% [markdown]
# Of these **activations** one has a parameter. Most of them differ in what they do to negative
# numbers. **Pooling** has none; with a stride above 1 it makes images smaller, and the adaptive kind is
# told the size that comes out. **Norms** differ in the dimensions over which they take their mean;
# `GroupNorm` takes it over each of its groups of channels, here a single one. `RMSNorm` divides by a
# mean of squares and subtracts nothing.
#
# Draw: show_curves({type(each).__name__: [(at / 10, each(torch.tensor([at / 10])).item()) for at
# in range(-40, 21)] for each in (nn.ReLU(), nn.LeakyReLU(0.1), nn.ELU(), nn.GELU())}, "x", "") |
# Four that agree above, or nearly, and differ below zero.


# %%
def show_activation(activation):
    """Print an activation's number of parameters and what it makes of three numbers."""
    found = [round(value, 2) for value in activation(torch.tensor([-2.0, 0.0, 2.0])).tolist()]
    print(f"{type(activation).__name__:>12} {len(list(activation.parameters()))} {found}")


for each in (nn.ReLU(), nn.LeakyReLU(0.1), nn.PReLU(), nn.ELU(), nn.GELU(), nn.SiLU()):
    show_activation(each)
for each in (nn.Hardswish(), nn.Sigmoid(), nn.Tanh(), nn.Softplus(), nn.Softmax(0)):
    show_activation(each)

# %%
shapes(nn.MaxPool2d(2), images)
shapes(nn.MaxPool2d(3, stride=1, padding=1), images)
shapes(nn.AvgPool2d(3, stride=2, padding=1), images)
shapes(nn.AdaptiveAvgPool2d(1), images)


# %%
def show_mean(norm, dims):
    """Say whether a norm's output has a mean of zero over these dimensions."""
    torch.manual_seed(0)
    y = norm(torch.randn(2, 4, 3, 3) * 3 + 1)
    zero = bool(y.mean(dims).abs().max() < 1e-5)
    print(f"{type(norm).__name__:>16} mean over {dims} is 0: {zero}")


show_mean(nn.BatchNorm2d(4), (0, 2, 3))
show_mean(nn.LayerNorm([4, 3, 3]), (1, 2, 3))
show_mean(nn.GroupNorm(1, 4), (1, 2, 3))
show_mean(nn.InstanceNorm2d(4), (2, 3))
show_mean(nn.RMSNorm([4, 3, 3]), (1, 2, 3))

# %% [markdown]
# Draw: show_curves({type(loss).__name__: [(at / 10, loss(torch.tensor([at / 10]),
# torch.zeros(1)).item()) for at in range(-30, 31)] for loss in (nn.MSELoss(), nn.L1Loss(),
# nn.SmoothL1Loss(beta=2.0))}, "error", "loss") | What an error costs. The third is round near
# zero, like the first, and goes on straight, like the second.
#
# **Losses** are modules, too. The pair that is most often mixed up: `CrossEntropyLoss` takes *logits*
# and class numbers, and applies `log_softmax` itself; `NLLLoss` wants it done. A softmax before
# `CrossEntropyLoss` raises no error: it flattens the loss.
#
# **Predict.** The logits of a sure and right answer are `[20, 0]`. Rounded to two digits, what is the
# cross-entropy if a softmax is put in front by mistake?

# %%
predict(
    ...,
    lambda: round(
        nn.CrossEntropyLoss()(torch.tensor([[20.0, 0.0]]).softmax(1), torch.tensor([0])).item(), 2
    ),
)

# %%
logits, target = torch.tensor([[2.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 0])
print(
    "two ways     ",
    torch.allclose(
        nn.CrossEntropyLoss()(logits, target), nn.NLLLoss()(logits.log_softmax(1), target)
    ),
)
one_logit, truth = torch.tensor([1.5, -0.5]), torch.tensor([1.0, 0.0])
print(
    "yes or no    ",
    torch.allclose(
        nn.BCEWithLogitsLoss()(one_logit, truth), nn.BCELoss()(one_logit.sigmoid(), truth)
    ),
)
errors = torch.tensor([0.5, -3.0]), torch.zeros(2)
print(
    "on numbers   ",
    [
        round(loss(*errors).item(), 3)
        for loss in (nn.MSELoss(), nn.L1Loss(), nn.SmoothL1Loss(), nn.HuberLoss())
    ],
)

# %% [markdown]
# **Optimisers** are no modules. They hold references to parameters and a `state` for each; that is why
# one makes them *after* surgery on the model. Three of them on the same weight and gradient, two
# steps:


# %%
def two_steps(make):
    """Print two weights after two steps with the same gradient, and what is kept for them."""
    weight = nn.Parameter(torch.tensor([1.0, 1.0]))
    optimiser = make([weight])
    for _ in range(2):
        weight.grad = torch.tensor([1.0, 100.0])
        optimiser.step()
    kept = sorted(optimiser.state[weight])
    print(f"{type(optimiser).__name__:>5} {[round(v, 2) for v in weight.tolist()]} keeps {kept}")


two_steps(lambda p: torch.optim.SGD(p, lr=0.1))
two_steps(lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9))
two_steps(lambda p: torch.optim.Adam(p, lr=0.1))

# %% [markdown]
# Draw: show_bars({f"{kind.__name__}, gradient {grad:g}": round(1 - weight.item(), 3) for kind in
# (torch.optim.SGD, torch.optim.Adam) for grad in (1.0, 100.0) for weight in
# [nn.Parameter(torch.tensor(1.0))] for optimiser in [kind([weight], lr=0.1)] if [(setattr(weight,
# "grad", torch.tensor(grad)), optimiser.step()) for _ in range(2)]}) | How far a weight has gone
# after two steps with learning rate 0.1.
#
# Adam's two weights went the same way: it divides by the size of the gradient.
#
# And a last belief: `eval()` does not go through `modules()`. It calls `train(False)`, which calls the
# same on each of the `children()`. Who overrides `train` in a layer is therefore asked.


# %%
class AlwaysEval(nn.BatchNorm1d):
    """A norm that stays in evaluation mode, as one freezes it."""

    def train(self, mode=True):
        return super().train(False)


frozen_net = nn.Sequential(nn.Linear(2, 2), nn.Sequential(AlwaysEval(2))).train()
print([(type(module).__name__, module.training) for module in frozen_net.modules()])

# %% [markdown] exercise="collect_state"
# title: Collect what a checkpoint holds
# minutes: 20
# difficulty: 2
# points: 5
# short: true
# prerequisites: [named_tensors]
# teaches: >-
#   what is in a state dict and what is not; that it holds no copies; where the versions are.
# leaves out: extra state, hooks, writing to a file.
# off limits: [lists of tensors, torch.nn.Module.state_dict, torch.nn.Module._save_to_state_dict]
# forbids: "`state_dict`, and what lists a module's parameters and buffers"

# %% [markdown]
# A checkpoint that is made from `named_parameters()` lacks something, and one notices late:

# %%
norm = nn.BatchNorm1d(3)
norm(torch.arange(12.0).reshape(4, 3))
print(sorted(name for name, _ in norm.named_parameters()))
print(sorted(norm.state_dict()))
fresh = nn.BatchNorm1d(3).eval()
print(fresh.load_state_dict(dict(norm.named_parameters()), strict=False))
print(fresh.running_mean.tolist(), fresh.running_var.tolist())

# %% [markdown]
# The running statistics are buffers. Load the first list into a fresh model, call `eval()`, and it
# normalises with a mean of 0 and a variance of 1. `load_state_dict` would refuse it; with
# `strict=False`, which many write by habit, or by a loop of one's own, there is no error, only bad
# results.
#
# A state dict is not a copy. Its tensors are detached and share their memory with the model:

# %%
state = norm.state_dict()
with torch.no_grad():
    norm.weight[0] = 5.0
print(state["weight"].tolist(), state["weight"].requires_grad, type(state["weight"]).__name__)

# %% [markdown]
# So "keep the best state" needs `copy.deepcopy`, or one keeps the last. And not every buffer is in it:
# `register_buffer("mask", mask, persistent=False)` makes one that moves with the module and is not
# saved.
#
# Look: modules/walk#model=positions-Buffer-16-4*positions-unsaved*scale-Buffer*proj-Linear-4-4&call=state_dict
# | A buffer that is not saved: `state_dict` passes over `positions`. Choose `buffers`, and it is
# there.
#
# **Predict.** How many entries has the state dict of
# `nn.Sequential(norm, nn.BatchNorm1d(3, track_running_stats=False), norm)`?

# %%
predict(
    ...,
    lambda: len(
        nn.Sequential(norm, nn.BatchNorm1d(3, track_running_stats=False), norm).state_dict()
    ),
)

# %% [markdown]
# Beside the tensors a state dict has a second dictionary, `_metadata`: for each module its **version**,
# the class attribute `_version`. When the layout of a layer's state changes, its version goes up, and
# whoever loads an old checkpoint can tell. Batch norm is at 2: version 1 did not count its batches
# (`_NormBase` in `torch/nn/modules/batchnorm.py`).

# %%
print(
    {path: entry["version"] for path, entry in nn.Sequential(norm).state_dict()._metadata.items()}
)

# %% [markdown]
# **Write `collect_state(module)`.** Return a pair of dictionaries:
#
# 1. from dotted names to tensors: for each module of the walk its parameters, then its buffers. What
#    is shared is there under **every** name. `None` and buffers that are not persistent are left
#    out. The tensors share memory with the module's, are plain `torch.Tensor`s and no part of a graph.
# 2. from the path of each module, again under every name and `""` for the root, to its `_version`.
#
# The order of both is that of PyTorch's `state_dict`: the walk's.
#
# <details><summary>Hint 1: every name</summary>
#
# `named_modules(remove_duplicate=False)` gives each path.
#
# </details>
# <details><summary>Hint 2: which buffers</summary>
#
# `_non_persistent_buffers_set` of each module holds names, without a path.
#
# </details>
# <details><summary>Hint 3: neither copy nor parameter</summary>
#
# `.detach()` gives a plain tensor on the same memory, for a buffer that was computed as well.
# `.clone()` would make a copy; `detach_()` would change the module's own tensor.
#
# </details>


# %% solution="collect_state"
def collect_state(module):
    """Return (tensors by name, versions by path) of all that a checkpoint of `module` holds."""
    ### BEGIN SOLUTION
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
                # detached, but on the same memory: a state dict is a view of the model
                tensors[f"{path}.{name}" if path else name] = tensor.detach()
    return tensors, versions
    ### END SOLUTION


# %% grade="collect_state"
grade("collect_state")

# %% [markdown] sitting="exchange"
# question: How do other weights, or other layers, get into a model that exists?
# reached: >-
#   By path. A checkpoint is loaded whole or not at all, and a layer is replaced in each place
#   where it is used.

# %% [markdown] exercise="load_state"
# title: Load a checkpoint, or say why not
# minutes: 45
# difficulty: 4
# points: 8
# prerequisites: [collect_state]
# teaches: >-
#   what can be wrong with a checkpoint, how to load all of it or nothing, and how an old layout is
#   brought up to date.
# leaves out: loading by assignment (`assign=True`), extra state, files.
# off limits: [torch.nn.Module.load_state_dict, torch.nn.Module._load_from_state_dict, torch.nn.Module.state_dict]
# forbids: "`load_state_dict` and `state_dict`"

# %% [markdown]
# Three things are commonly wrong with a checkpoint: a name is **missing**, a name is **unexpected**, or
# a **shape** does not fit. Look what PyTorch does with a checkpoint that is half right.
#
# Look: modules/walk#model=body-Sequential*body.0-Linear-4-8*body.1-ReLU*body.2-Linear-8-2&call=state_dict |
# The names that a checkpoint of this model has. The second linear layer is `body.2`: the ReLU
# counts, though it has no entry.

# %%
layer = nn.Linear(2, 2)
half_right = {"weight": torch.zeros(2, 2), "bias": torch.zeros(3)}
for strict in (True, False):
    try:
        layer.load_state_dict(half_right, strict=strict)
    except RuntimeError as error:
        print(f"strict={strict}:", str(error).splitlines()[1].split(":")[0].strip())
print(layer.weight.tolist())

# %% [markdown]
# Two surprises. `strict=False` forgives names, not shapes. And the error came *after* the weight was
# loaded: who catches it goes on with a model that is half old and half new. Ours will be better.
#
# The saying that loading is "implemented with hooks" is a myth. It is a recursion over the registries
# (`_load_from_state_dict` in `torch/nn/modules/module.py`), as saving is; hooks are asked on the way if
# there are any. Versions are how a class helps an old checkpoint:

# %%
norm = nn.BatchNorm1d(2)
old = norm.state_dict()
del old["num_batches_tracked"]
print("version 1 or none:", norm.load_state_dict(dict(old)))  # dict() drops the metadata
try:
    norm.load_state_dict(old)
except RuntimeError as error:
    print("version 2:", str(error).splitlines()[1].strip())

# %% [markdown]
# Draw: (lambda w: show_storage(linear=w, turned=w.t()))(torch.arange(4).view(2, 2)) | One file of
# four numbers, read as `(out, in)` and as `(in, out)`: two of them change places, and nobody
# notices.
#
# The same tensors: with no version batch norm fills the count in by itself; under version 2 it is an
# error. Without a version nobody can tell. A layer that keeps its `weight` as `(in, out)` and computes
# `x @ weight` is as good as `nn.Linear`, whose weight is `(out, in)`; each refuses the other's
# checkpoint. Unless the matrix is square: then it loads, and is wrong.


# %%
class Turned(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(inputs, outputs))

    def forward(self, x):
        return x @ self.weight


square, turned, x = nn.Linear(2, 2, bias=False), Turned(2, 2), torch.tensor([[1.0, 10.0]])
with torch.no_grad():
    square.weight.copy_(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    print(turned.load_state_dict(square.state_dict()))
    print(square(x).tolist(), turned(x).tolist())

# %% [markdown]
# **Predict.** `nn.Linear(4, 3).load_state_dict({}, strict=False)` returns what it did not find. How
# many names?

# %%
predict(..., lambda: len(nn.Linear(4, 3).load_state_dict({}, strict=False).missing_keys))

# %% [markdown]
# **Write `load_state(module, tensors, versions=None, strict=True)`.** `tensors` and `versions` are as
# `collect_state` returns them; `versions` may be `None` or lack paths.
#
# 1. **Upgrade.** A module may have a method `upgrade(entries, version)`. For each path in the order of
#    the walk, under every name: if the module there has it, and `versions` does not hold the module's
#    own `_version` for this path, call it. `entries` is a `dict` of all tensors at or below the path,
#    named without the path; `version` is what `versions` holds, or `None`. What it returns takes the
#    place of these entries, for the modules below it too.
# 2. **Compare** with the names and shapes that `collect_state` would give for `module`. A shape must
#    be equal, not only broadcast to it. A shape that does not fit raises a `RuntimeError`. With
#    `strict`, so does a missing or unexpected name. The message holds **every** name that is missing,
#    unexpected or misshapen, and **nothing** of the module has changed.
# 3. **Load.** Copy values into the module's own tensors: the parameters stay the same objects, with
#    the same `requires_grad` and dtype. Nothing of the module shares memory with `tensors` afterwards.
#
# Return `{"missing": [...], "unexpected": [...]}`, both sorted by name. Change neither `tensors` nor
# `versions`.
#
# <details><summary>Hint 1: three passes</summary>
#
# Upgrade a copy of the dictionary; compare all; only then copy the first value.
#
# </details>
# <details><summary>Hint 2: below a path</summary>
#
# The entries of `layer1` begin with `"layer1."`. Without the dot you would take those of `layer10` as
# well. For the root all entries belong to it.
#
# </details>
# <details><summary>Hint 3: writing into a parameter</summary>
#
# A leaf that wants a gradient refuses to be changed in place, except under `torch.no_grad()`.
# `copy_` converts the dtype, and it broadcasts: compare shapes before.
#
# </details>


# %% solution="load_state"
def load_state(module, tensors, versions=None, strict=True):
    """Load a checkpoint into `module`, all or nothing.

    tensors: by dotted name; versions: by the module's path, or None
    strict: names that are missing or unexpected are errors, too
    returns: {"missing": names, "unexpected": names}, each sorted
    """
    ### BEGIN SOLUTION
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
        # raised before the first value is copied: a failed load changes nothing
        raise RuntimeError(f"missing {missing}, unexpected {unexpected}, wrong shape {misshapen}")
    with torch.no_grad():
        for name in found:
            wanted[name].copy_(tensors[name])
    return {"missing": missing, "unexpected": unexpected}
    ### END SOLUTION


# %% grade="load_state"
grade("load_state")

# %% [markdown]
# ## To a file and back
#
# `torch.save` writes whatever pickle can write, a whole model too. `torch.load` reads, by default, only
# tensors and plain containers, because a pickle can run code. So one saves state dicts, not models.
# (`torch.hub.load` runs code on purpose: it fetches a repository and runs its `hubconf.py`. By default it asks
# first, unless it trusts the repository already: `_check_repo_is_trusted` in `torch/hub.py`.)

# %%
whole_model = io.BytesIO()
torch.save(nn.Linear(2, 2), whole_model)
whole_model.seek(0)
try:
    torch.load(whole_model)
except Exception as error:
    print(type(error).__name__)

# %% [markdown]
# Tied tensors are written once: the file keeps storages, and which tensor lies where.
#
# Look: modules/walk#model=embed-Embedding-10-4*out-Linear-4-10*out.weight-is-embed.weight&call=state_dict |
# Tied weights in a state dict: two entries, one tensor. Choose `parameters`, and it comes once.


# %%
def saved_bytes(model):
    """Return the size of the file that the model's state dict makes."""
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    return len(file.getvalue())


wide = nn.Linear(100, 100, bias=False)
twin = nn.Linear(100, 100, bias=False)
apart = nn.Sequential(wide, twin)
print("two matrices, apart:", saved_bytes(apart) // 40_000, "× 40 kB")
twin.weight = wide.weight
print("two matrices, tied: ", saved_bytes(apart) // 40_000, "× 40 kB")


# %%
def through_a_file(model):
    """Return the model's state dict as it comes back from a file."""
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    return torch.load(file, weights_only=True)


read_back = through_a_file(apart)
print(
    type(read_back).__name__, read_back["0.weight"].data_ptr() == read_back["1.weight"].data_ptr()
)
print(apart.load_state_dict(read_back), apart[0].weight is apart[1].weight)

# %% [markdown]
# ## What no checkpoint holds
#
# A pretrained network is weights and a recipe for its inputs: their size, the order of the channels, the
# range of the numbers, the mean and the deviation with which they were normalised. State dicts have no place
# for the recipe, and nothing complains of another one. Here a network has learned to tell pixels with more red
# than green, and is asked about the same pixels in three ways:


# %%
def asked_in_three_ways():
    torch.manual_seed(0)
    pixels = torch.randint(0, 256, (400, 3)).double()
    redder = (pixels[:, 0] > pixels[:, 1]).long()
    mean, deviation = pixels.mean(0), pixels.std(0)
    prepared = (pixels - mean) / deviation
    net = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 2)).double()
    optimiser = torch.optim.Adam(net.parameters(), lr=0.05)
    for _ in range(60):
        optimiser.zero_grad()
        F.cross_entropy(net(prepared), redder).backward()
        optimiser.step()
    ways = {
        "as it was trained": prepared,
        "from 0 to 1": pixels / 255,
        "blue, green, red": prepared.flip(1),
    }
    for way, inputs in ways.items():
        right = net(inputs).argmax(1) == redder
        print(f"{way:>17}: {right.sum().item()} of 400 are right")


asked_in_three_ways()

# %% [markdown]
# Nor does a state dict say whether the network was in `train()` or in `eval()`.

# %% [markdown]
# ## What each of them keeps
#
# The tour of the layers showed what goes in and what comes out. Now the registries: what does each of
# them store, and what of it comes into a checkpoint?
#
# | | registers | keeps besides |
# |---|---|---|
# | recurrent layer | parameters, under names that it makes | a list of them for the operator |
# | pooling layer | nothing | kernel and stride, as attributes |
# | loss | class weights, as a buffer | how it reduces |
# | optimiser | nothing: it is no module | a `state` for each parameter |


# %%
def registers(module):
    """Print how many parameters and buffers a module registers, and what a checkpoint gets of it."""
    found = [sum(1 for _ in walk) for walk in (module.parameters(), module.buffers())]
    own_reset = "yes" if hasattr(module, "reset_parameters") else ""
    saved = ", ".join(module.state_dict()) or "nothing"
    print(f"{type(module).__name__:>17} {found[0]:>6} {found[1]:>8} {own_reset:>6}  {saved}")


print(f"{'':>17} params  buffers  reset  in the state dict")
registers(nn.RNN(4, 6))
registers(nn.LSTM(4, 6))
registers(nn.LSTMCell(4, 6))
registers(nn.MaxPool2d(2))
registers(nn.AdaptiveAvgPool2d(1))
registers(nn.Dropout(0.5))
registers(nn.CrossEntropyLoss())
registers(nn.CrossEntropyLoss(weight=torch.ones(3)))
registers(nn.BCEWithLogitsLoss(pos_weight=torch.ones(3)))

# %% [markdown]
# A **pooling layer** registers nothing. Its kernel and its stride are ordinary attributes, in the
# fourth dictionary. So a checkpoint does not know them, and fits a model that pools otherwise:

# %%
coarse = nn.Sequential(nn.Conv1d(1, 1, 1), nn.MaxPool1d(4))
print(nn.Sequential(nn.Conv1d(1, 1, 1), nn.MaxPool1d(2)).load_state_dict(coarse.state_dict()))

# %% [markdown]
# A **loss** with class weights holds them as a buffer: nothing to train, but they follow `to()`. A loss
# that is stored in a model brings a name into its checkpoint, `loss.weight` for instance, and whoever
# loads that into a model without it gets an error for an unexpected name.
#
# A **recurrent layer** names its parameters itself: from input to hidden (`ih`) or from hidden to
# hidden (`hh`), the layer's number, the direction. Another option, other names:

# %%
usual = set(nn.LSTM(4, 6).state_dict())
for options in ({"num_layers": 2}, {"bidirectional": True}, {"proj_size": 2}, {"bias": False}):
    names = set(nn.LSTM(4, 6, **options).state_dict())
    print(f"{options!s:>23}", "more:", sorted(names - usual), "fewer:", sorted(usual - names))

# %% [markdown]
# Draw: show_bars({name: sum(p.numel() for p in layer.parameters()) for name, layer in (("RNN(4, 6)",
# nn.RNN(4, 6)), ("GRU(4, 6)", nn.GRU(4, 6)), ("LSTM(4, 6)", nn.LSTM(4, 6)), ("LSTM, both ways",
# nn.LSTM(4, 6, bidirectional=True)))}, "numbers") | From input and state an RNN computes one thing, a GRU
# three, an LSTM four: each with two matrices and two biases. Both ways, all of it twice.
#
# Each matrix holds one layer's four gates, one above the other. Which is which? Let all weights be zero,
# open one gate at a time by its bias, and look what is left of a state of 2:

# %%
lstm = nn.LSTM(1, 1)
state = torch.zeros(1, 1, 1), torch.full((1, 1, 1), 2.0)
with torch.no_grad():
    for quarter in range(4):
        for parameter in lstm.parameters():
            nn.init.zeros_(parameter)
        lstm.bias_ih_l0[quarter] = 100.0
        print(quarter, lstm(torch.zeros(1, 1, 1), state)[1][1].item())

# %% [markdown]
# Number 1 keeps the state whole: it is the forget gate. (The order is input, forget, cell, output.)
#
# Beside the registry the layer has a list, `_flat_weights`: the operator that runs wants all weights in
# one argument. An assignment updates it, because `RNNBase` has a `__setattr__` of its own. A write into
# the registry goes past that, and the next call notices and makes the list anew:

# %%
print(lstm._flat_weights[0] is lstm.weight_ih_l0, "_flat_weights" in lstm.__dict__)
lstm.weight_ih_l0 = nn.Parameter(torch.ones(4, 1))
print(lstm._flat_weights[0] is lstm.weight_ih_l0)
lstm._parameters["weight_ih_l0"] = nn.Parameter(torch.ones(4, 1))
print(lstm._flat_weights[0] is lstm.weight_ih_l0)
lstm(torch.zeros(1, 1, 1))
print(lstm._flat_weights[0] is lstm.weight_ih_l0)

# %% [markdown]
# An **optimiser** is no module and registers nothing. What it keeps for a parameter is in its `state`,
# by the parameter itself; in its `state_dict` numbers stand for the parameters. How much that is
# depends on the kind:


# %%
def kept(make):
    """Print what an optimiser keeps for a 3×2 weight, before its first step and after it."""
    weight = nn.Parameter(torch.zeros(3, 2))
    optimiser = make([weight])
    before = list(optimiser.state.get(weight, {}))
    weight.grad = torch.ones(3, 2)
    optimiser.step()
    after = {name: tuple(value.shape) for name, value in optimiser.state.get(weight, {}).items()}
    print(f"{type(optimiser).__name__:>8}  before {before}, after {after}")


kept(lambda parameters: torch.optim.SGD(parameters, lr=0.1))
kept(lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9))
kept(lambda parameters: torch.optim.Adam(parameters))
kept(lambda parameters: torch.optim.Adagrad(parameters))

# %% [markdown]
# Draw: show_bars({" with ".join([kind.__name__, *options]): sum(value.numel() for state in
# optimiser.state.values() for value in state.values()) for kind, options in ((torch.optim.SGD, {}),
# (torch.optim.SGD, {"momentum": 0.9}), (torch.optim.Adam, {}), (torch.optim.Adam, {"amsgrad":
# True})) for layer in [nn.Linear(100, 100)] for optimiser in [kind(layer.parameters(), lr=0.1,
# **options)] if [layer(torch.ones(100)).sum().backward(), optimiser.step()]}, "numbers") | What is
# kept, after one step, for a linear layer of 10,100 numbers.
#
# The state is made at the first step, and a checkpoint from before it has none. (Adagrad is an
# exception: it begins with a sum of its own.)
#
# **Predict.** A model has two linear layers, and `forward` uses only the first. After `backward()` and
# a step of Adam: for how many parameters is there a state?


# %%
def parameters_with_state():
    used, unused = nn.Linear(2, 2), nn.Linear(2, 2)
    adam = torch.optim.Adam([*used.parameters(), *unused.parameters()])
    used(torch.ones(1, 2)).sum().backward()
    adam.step()
    return len(adam.state)


predict(..., parameters_with_state)

# %% [markdown] exercise="replace_linears"
# title: Replace layers in a living model
# minutes: 30
# difficulty: 3
# points: 7
# prerequisites: [named_modules]
# teaches: >-
#   surgery by path: how a module is exchanged wherever it is used, sharing kept, while the model is
#   walked over.
# leaves out: wrappers that share state with what they replace; replacing functions such as F.linear.
# off limits: []

# %% [markdown]
# Quantizing a model, adding adapters to it, timing its layers: all may begin with replacing some layers
# by wrappers. One tempting way is to take the model apart and build it anew from its children.


# %%
class Skip(nn.Module):
    """A block whose output is added to its input."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(2, 2)

    def forward(self, x):
        return x + self.inner(x)


skip, x = Skip(), torch.ones(1, 2)
with torch.no_grad():
    rebuilt = nn.Sequential(*skip.children())
    print(torch.equal(rebuilt(x), skip(x)), torch.equal(rebuilt(x) + x, skip(x)))

# %% [markdown]
# What `forward` does between the layers is lost: the addition is in no child. So the model stays as
# it is, and only the entry in the parent's registry is exchanged. `set_submodule` does it by path:

# %%
model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
model.set_submodule("1.0", nn.Identity())
print(model)

# %% [markdown]
# Three traps wait. A layer with two names must be exchanged under both, and by *one* wrapper. A wrapper
# usually holds the layer that it wraps: whoever walks on into it wraps that one, too, and so for ever.
# And the model itself may be such a layer: then there is no parent.
#
# Look: modules/duplicates#model=first-Linear-4-4*act-ReLU*last-is-first&call=named_modules |
# A layer with two names is given once. Switch `remove_duplicate` off, and both places are named.
#
# **Predict.** `twice = nn.Linear(2, 2)` and `pair = nn.Sequential(twice, twice)`. After
# `pair.set_submodule("0", nn.ReLU())`, what is the name of the type of `pair[1]`?


# %%
def other_of_a_pair():
    twice = nn.Linear(2, 2)
    pair = nn.Sequential(twice, twice)
    pair.set_submodule("0", nn.ReLU())
    return type(pair[1]).__name__


predict(..., other_of_a_pair)

# %% [markdown]
# **Write `replace_linears(model, wrap)`.** Replace every `nn.Linear` in `model` in place by what
# `wrap(path, linear)` returns, and return the model; or the wrapper, if the model itself is an
# `nn.Linear`.
#
# - Subclasses of `nn.Linear` count. Layers that are merely called similarly, such as `nn.Bilinear`, do
#   not.
# - `wrap` is called once for each such layer, in the order of `named_modules()`, with its first name as
#   `path`. The one wrapper stands under all names that the layer had.
# - Whatever a wrapper holds is left alone, and so is what an `nn.Linear` holds. (No layer stands both
#   inside an `nn.Linear` and outside of one.)
# - All else stays as it is: the other modules are the same objects under the same names in the same
#   order.
# - If `wrap` raises an error, it goes on to the caller, and the model is as it was.
#
# <details><summary>Hint 1: two passes</summary>
#
# Make all wrappers first, in a dictionary from layer to wrapper. Then exchange. The walk of the first
# pass sees no wrapper, and an error in it has changed nothing.
#
# </details>
# <details><summary>Hint 2: every entry</summary>
#
# `named_children()` gives a module once per parent, under its first name: the second name would keep
# the bare layer. `_modules.items()` has every entry.
#
# </details>
# <details><summary>Hint 3: exchanging while you walk</summary>
#
# Giving a new value to a key that exists does not disturb a loop over a dictionary, adding or removing
# keys does. A list of all modules, made beforehand, is safe in any case; so is leaving out what is in
# a layer that goes away.
#
# </details>


# %% solution="replace_linears"
def replace_linears(model, wrap):
    """Replace every nn.Linear of `model` by `wrap(path, linear)`; return the model, or its wrapper."""
    ### BEGIN SOLUTION
    wrappers, owners, inside = {}, [], set()
    for path, module in model.named_modules():
        if module in inside:
            continue
        if isinstance(module, nn.Linear):
            wrappers[module] = wrap(path, module)
            inside.update(module.modules())  # what a replaced layer holds is left alone
        else:
            owners.append(module)
    for owner in owners:
        # the registry, not named_children(): a layer may have two names here
        for name, child in owner._modules.items():
            if child in wrappers:
                owner._modules[name] = wrappers[child]
    return wrappers.get(model, model)
    ### END SOLUTION


# %% grade="replace_linears"
grade("replace_linears")

# %% [markdown] sitting="hooks"
# question: How can one look inside a model without changing its code?
# reached: >-
#   Hooks run around `forward`, in a fixed order, and may replace what goes in and comes out.
#   Whoever puts one on takes it off again, also after an error.

# %% [markdown]
# ## Hooks, and when each is called
#
# A hook is a function that a module's call runs on the way. There are four places for one:


# %%
def tell(text):
    """Return a hook that prints and changes nothing."""
    return lambda *_: print(text)


layer = nn.Linear(2, 2)
layer.register_forward_pre_hook(tell("forward pre: may replace the arguments"))
layer.register_forward_hook(tell("forward:     may replace the output"))
layer.register_full_backward_pre_hook(tell("backward pre: may replace the output's gradient"))
layer.register_full_backward_hook(tell("backward:     may replace the input's gradient"))
layer(torch.ones(1, 2, requires_grad=True)).sum().backward()
print("and now without the call")
layer.forward(torch.ones(1, 2, requires_grad=True)).sum().backward()

# %% [markdown]
# Hooks belong to the **call**. `layer.forward(x)` is an ordinary method and runs none of them, which
# is why one writes `layer(x)`. Two of the same kind run in the order of their registration, unless one
# was registered with `prepend=True`.
#
# A **backward** hook sees gradients. What goes forward has long passed when it runs:

# %%
layer, x = nn.Linear(2, 2), torch.ones(1, 2, requires_grad=True)
without = layer(x).tolist()
handle = layer.register_full_backward_hook(
    lambda module, grad_input, grad_output: (grad_input[0] * 0,)
)
y = layer(x)
y.sum().backward()
print(y.tolist() == without, x.grad.abs().tolist(), bool(layer.weight.grad.any()))
handle.remove()

# %% [markdown]
# The output is the same, the gradient that goes on to `x` was replaced, and that of the weight was
# not. Use the word *full*: the old `register_backward_hook` reports the last operation of the module's
# forward, not the module.
#
# Look: autograd/graph#code=x = torch.ones(2, requires_grad=True);w = torch.ones(2, requires_grad=True);y = x * w;y.sum().backward()&line=3 |
# When forward has recorded a product, no gradient has come by yet. Step on to `backward`, and both
# leaves have one.

# %%


class ThreeSteps(nn.Module):
    def forward(self, x):
        return (x * 3).sum(1, keepdim=True) * 2


for register in ("register_backward_hook", "register_full_backward_hook"):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = ThreeSteps()
        getattr(module, register)(
            lambda module, grads, _: print([tuple(g.shape) for g in grads if g is not None])
        )
        module(torch.ones(2, 4, requires_grad=True)).sum().backward()

# %% [markdown]
# The input had the shape (2, 4). To **change** an output, return a new one. Changing it in place may
# destroy what backward needs: a sigmoid saves its own result.
#
# Look: autograd/graph#code=x = torch.ones(2, requires_grad=True);y = x.exp();y.mul_(10);y.sum().backward() |
# `exp` saved its own result. Changed in place, that is no longer what backward needs.

# %%
for hook in (lambda m, args, out: out.mul_(1.2), lambda m, args, out: out * 1.2):
    module = nn.Sigmoid()
    module.register_forward_hook(hook)
    try:
        module(torch.zeros(1, requires_grad=True)).backward()
        print("backward works")
    except RuntimeError as error:
        print(str(error)[:74])

# %% [markdown]
# Some more that is widely copied and does not work: there is no `HookException`, a tensor has no
# columns with names (`output[:, "cat"]` raises), a module that went through `torch.jit.script` takes no
# more hooks, and `output[1]` of an attention layer in an encoder is no map of weights: it was told not
# to make one.

# %%
encoder = nn.TransformerEncoderLayer(8, 2, batch_first=True)
encoder.self_attn.register_forward_hook(lambda module, args, output: print(type(output), output[1]))
_ = encoder(torch.zeros(1, 3, 8))

# %%
print(hasattr(torch.utils.hooks, "HookException"))
try:
    torch.zeros(2, 3)[:, "cat"]
except (TypeError, IndexError) as error:
    print(type(error).__name__)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # torch.jit is deprecated
    try:
        torch.jit.script(nn.ReLU()).register_forward_hook(tell("too late"))
    except RuntimeError as error:
        print(error)

# %% [markdown] exercise="recording"
# title: Record what layers give
# minutes: 30
# difficulty: 3
# points: 7
# short: true
# prerequisites: []
# teaches: >-
#   how hooks are put on and surely taken off again, and what of an output one may keep.
# leaves out: gradients; changing what is computed.
# off limits: []

# %% [markdown]
# To look inside a model one hangs hooks on some of its layers and keeps what comes by. Three things go
# wrong. An error passes over the line that takes the hooks off, and all later calls are recorded too.
# What is kept drags the whole graph along. And what is kept changes afterwards:

# %%
model = nn.Sequential(nn.Linear(2, 2), nn.ReLU(inplace=True))
kept = []
handle = model[0].register_forward_hook(lambda module, args, output: kept.append(output.detach()))
with torch.no_grad():
    model[0].weight.fill_(-1.0)
    model[0].bias.zero_()
    model(torch.ones(1, 2))
handle.remove()
print(kept[0].tolist())

# %% [markdown]
# The linear layer gave −2, twice. The ReLU after it works in place, and `detach()` shares memory.
#
# Look: autograd/tensors#code=x = torch.tensor([1., 2.], requires_grad=True);h = x * 2;kept = h.detach();h.mul_(0) |
# `kept` was detached, not copied: the last line changed both. Write `h.detach().clone()`.
#
# `handle.remove()` takes off the one hook that was registered with it. Emptying `_forward_hooks`
# would take off everybody's.
#
# **Predict.** A hook is registered twice on the same layer, and one of the two handles is removed. How
# often does the hook run when the layer is called?


# %%
def runs():
    layer, calls = nn.Linear(2, 2), []
    handles = [layer.register_forward_hook(lambda *_: calls.append(1)) for _ in range(2)]
    handles[0].remove()
    layer(torch.ones(2))
    return len(calls)


predict(..., runs)

# %% [markdown]
# **Write `recording(model, paths)`,** to be used in a `with` statement:
#
#     with recording(model, ["stem", "block.0"]) as seen:
#         model(x)
#
# - `seen` is a `dict` that has for each path, in the order given, the list of the outputs of the
#   module there, in the order of its calls; an empty list if it was not called. A module that is used
#   several times has several outputs. If two paths lead to one module, both have all of them; a path that
#   is given twice counts once.
# - A path that leads to no module is an `AttributeError` when the `with` statement is entered.
# - What is recorded are copies, of the values as they were when the module gave them, and no part of a
#   graph. Outputs may be tuples, lists and dicts, one in another, that hold tensors or other things;
#   the record has the same structure, and what is no tensor is kept as it is.
# - The model computes as if nobody watched, gradients included.
# - After the `with` statement, however it ends, none of our hooks is left on the model, nothing more is
#   recorded, and nothing of ours keeps the model alive. Hooks of others stay. An error goes on to the
#   caller.
#
# <details><summary>Hint 1: contextmanager</summary>
#
# `@contextmanager` from `contextlib` turns a generator that yields once into such a function. What must
# happen in any case belongs into a `finally`. It is imported at the top of this notebook.
#
# </details>
# <details><summary>Hint 2: which path</summary>
#
# A function that is made in a loop looks its names up when it is called, and finds the last path of the
# loop. Make the hook in a function of its own that takes the path, or bind it: `path=path`.
#
# </details>
# <details><summary>Hint 3: an error half way</summary>
#
# If the third path does not exist, two hooks are on already. Look all modules up first, or begin the
# `try` before the first registration.
#
# </details>


# %% solution="recording"
@contextmanager
def recording(model, paths):
    """Record the outputs of the modules at `paths` while the `with` statement runs.

    yields: a dict from each path to the list of its outputs, detached copies
    """
    ### BEGIN SOLUTION
    modules = {path: model.get_submodule(path) for path in paths}  # all, before any hook is on
    seen = {path: [] for path in modules}

    def copied(output):
        if isinstance(output, torch.Tensor):
            return output.detach().clone()  # a later in-place operation must not reach it
        if isinstance(output, dict):
            return {key: copied(item) for key, item in output.items()}
        if isinstance(output, list | tuple):
            return type(output)(map(copied, output))
        return output

    def hook_for(path):
        def hook(module, args, output):
            seen[path].append(copied(output))  # and return nothing: the output goes on as it is

        return hook

    handles = []
    try:
        for path, module in modules.items():
            handles.append(module.register_forward_hook(hook_for(path)))
        yield seen
    finally:
        for handle in handles:
            handle.remove()
    ### END SOLUTION


# %% grade="recording"
grade("recording")

# %% [markdown] exercise="call_hooked"
# title: Call a module, hooks and all
# minutes: 40
# difficulty: 5
# points: 6
# prerequisites: [recording]
# teaches: >-
#   what a module's call does around `forward`: who sees which arguments, who may replace what, and who
#   is called even after an error.
# leaves out: backward hooks, hooks that are registered for all modules, tracing.
# off limits: ["direct:torch.nn.Module.__call__", "direct:torch.nn.Module._call_impl", "direct:torch.nn.Module._wrapped_call_impl"]
# forbids: "calling the module; `forward` and what it calls are not"

# %% [markdown]
# `register_forward_hook` files a function in an ordered dictionary, `_forward_hooks`, under a number,
# and returns a handle that knows the number. Beside it are dictionaries that remember for some numbers
# what was asked: to be given keyword arguments, to be called always.

# %%
hooked = nn.Identity()
hooked.register_forward_hook(lambda module, args, output: output + 1)
hooked.register_forward_hook(lambda module, args, kwargs, output: output * 10, with_kwargs=True)
hooked.register_forward_hook(lambda *_: print("always"), prepend=True, always_call=True)
print(
    len(hooked._forward_hooks),
    len(hooked._forward_hooks_with_kwargs),
    len(hooked._forward_hooks_always_called),
)
print(hooked(torch.tensor(1.0)).item())

# %% [markdown]
# The last one was put in front. Each hook sees the output as the one before left it.
#
# **Predict.** A forward *pre* hook returns `5.0`, not a tuple, for a module that is called with `1.0`.
# What does an `nn.Identity` give?


# %%
def replaced_argument():
    module = nn.Identity()
    module.register_forward_pre_hook(lambda module, args: 5.0)
    return module(1.0)


predict(..., replaced_argument)

# %% [markdown]
# **Write `call_hooked(module, *args, **kwargs)`.** It does what `module(*args, **kwargs)` does, from
# `module.forward` and these dictionaries. A hook is told by its key.
#
# 1. The hooks of `_forward_pre_hooks`, in order, are called as `hook(module, args)`. If one returns
#    something other than `None`, that is the new `args`; what is no tuple becomes a tuple of one. Those
#    whose key is in `_forward_pre_hooks_with_kwargs` are called as `hook(module, args, kwargs)` and
#    return `None` or a pair, the new `args` and `kwargs`; anything else is a `RuntimeError`.
# 2. `module.forward` gets what came of it.
# 3. The hooks of `_forward_hooks`, in order, are called as `hook(module, args, output)`, or as
#    `hook(module, args, kwargs, output)` where the key is in `_forward_hooks_with_kwargs`. What one
#    returns, unless `None`, is the new output.
# 4. If anything so far raised an `Exception`, the hooks of `_forward_hooks` whose key is in
#    `_forward_hooks_always_called` and that were not called yet are called, in order, with the output
#    as it is, `None` if there is none yet; one that returns something other than `None` changes it for
#    the next. What they raise is dropped (PyTorch makes it a warning; you need not). Then the error
#    goes on to the caller. (Python's interrupts, such as Ctrl-C, are no `Exception`: they go on at
#    once.)
#
# A hook may take itself off while it runs; in this call the others are not disturbed.
#
# <details><summary>Hint 1: a dictionary that changes</summary>
#
# A loop over a dictionary raises an error when an entry is taken out. Loop over `list(hooks.items())`.
#
# </details>
# <details><summary>Hint 2: None and nothing</summary>
#
# Compare with `is not None`: zero, an empty tuple or a tensor that is false are results like any other.
#
# </details>
# <details><summary>Hint 3: called, or not yet</summary>
#
# Note a key *before* you call its hook. A hook that raises has been called, and is not called again.
#
# </details>


# %% solution="call_hooked"
def call_hooked(module, *args, **kwargs):
    """Call `module` with its forward pre hooks and forward hooks."""
    ### BEGIN SOLUTION
    output, called = None, set()

    def after(key, hook):
        called.add(key)  # before it runs: it may raise, and is not called again
        with_kwargs = key in module._forward_hooks_with_kwargs
        found = hook(module, args, kwargs, output) if with_kwargs else hook(module, args, output)
        return output if found is None else found

    try:
        for key, hook in list(module._forward_pre_hooks.items()):
            if key in module._forward_pre_hooks_with_kwargs:
                found = hook(module, args, kwargs)
                if found is not None:
                    if not isinstance(found, tuple) or len(found) != 2:
                        raise RuntimeError(f"a pair of args and kwargs was expected, not {found!r}")
                    args, kwargs = found
            else:
                found = hook(module, args)
                if found is not None:
                    args = found if isinstance(found, tuple) else (found,)
        output = module.forward(*args, **kwargs)
        for key, hook in list(module._forward_hooks.items()):
            output = after(key, hook)
        return output
    except Exception:
        for key, hook in list(module._forward_hooks.items()):
            if key in module._forward_hooks_always_called and key not in called:
                with suppress(Exception):  # the first error is the one to know of
                    output = after(key, hook)
        raise
    ### END SOLUTION


# %% grade="call_hooked"
grade("call_hooked")

# %% [markdown] sitting="batch-norm"
# question: Why does a model answer otherwise in `eval`?
# reached: >-
#   Batch norm divides by the statistics of the batch in training, and by running ones afterwards.
#   Then they are constants, which a convolution can take over.

# %% [markdown] exercise="BatchNorm"
# title: Write batch norm, both halves of it
# minutes: 40
# difficulty: 3
# points: 8
# prerequisites: [MiniModule]
# teaches: >-
#   what batch norm computes in training and in evaluation, which of its two variances is which, and
#   what it keeps.
# leaves out: statistics across devices; fused kernels.
# off limits: [torch.nn.BatchNorm1d, torch.nn.BatchNorm2d, torch.nn.BatchNorm3d, torch.nn.LazyBatchNorm1d, torch.nn.LazyBatchNorm2d, torch.nn.SyncBatchNorm, torch.nn.modules.batchnorm, torch.nn.functional.batch_norm, torch.batch_norm, torch.nn.functional.instance_norm, torch.instance_norm, torch.native_batch_norm, torch._native_batch_norm_legit, torch._native_batch_norm_legit_no_training, torch.ops.aten._native_batch_norm_legit_functional, torch._batch_norm_impl_index]
# forbids: "PyTorch's own batch norm and instance norm"

# %% [markdown]
# Batch norm takes each channel by itself: all numbers of a channel in the batch, whether they lie along
# a line (`BatchNorm1d`), in a plane (`2d`) or in space (`3d`). In training it subtracts their mean and
# divides by their standard deviation; on the side it keeps running statistics. In evaluation it uses
# those and looks at no batch.
#
# Look: modules/walk#model=norm-BatchNorm2d-4&call=state_dict |
# A batch norm: two parameters, which an optimiser moves, and three buffers, which no optimiser
# sees. Choose `parameters`.
#
# Now there are two variances. The sum of squares divided by $n$ is the **biased** one, divided by
# $n - 1$ the **unbiased** one. Batch norm uses both:

# %%
x = torch.tensor([[0.0], [2.0]])
norm = nn.BatchNorm1d(1, momentum=1.0)
normalised = [round(value, 3) for value in norm(x).flatten().tolist()]
print("normalised", normalised, "running_var", norm.running_var.item())

# %% [markdown]
# The two numbers have a biased variance of 1, and that is what they were divided by. What is *kept* is
# the unbiased variance, 2: the better estimate for numbers not yet seen.
#
# `momentum` is the weight of the **new** value: $r \leftarrow (1 - m)\,r + m\,s$. With
# `momentum=None` all batches count the same, and the running value is the plain average of all so far.
# With `track_running_stats=False` nothing is kept, and evaluation uses the batch too.
#
# Draw: show_curves({f"momentum {momentum}": [(step, norm.running_mean.item()) for norm in
# [nn.BatchNorm1d(1, momentum=momentum)] for step in range(1, 41) if norm(torch.tensor([[9.0],
# [11.0]]) + 10 * (step > 20)) is not None] for momentum in (0.3, 0.05, None)}, "batch", "running
# mean") | Twenty batches with mean 10, then twenty with mean 20. With 0.3 the running mean has
# followed after some ten batches; without a momentum all batches count the same.
#
# **Predict.** A fresh `BatchNorm1d` with momentum 0.1 sees, in training, one batch whose mean is 10.
# What is its `running_mean`?


# %%
def running_mean_after():
    norm = nn.BatchNorm1d(1)
    norm(torch.tensor([[9.0], [11.0]]))
    return norm.running_mean.item()


predict(..., running_mean_after)

# %% [markdown]
# **Write the class `BatchNorm`,** an `nn.Module` with the constructor
# `BatchNorm(num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True)`. It takes
# inputs of shape `(batch, channels)` or `(batch, channels, ...)` with any number of further dimensions.
#
# - Its `state_dict` has the names, shapes, dtypes and first values that `nn.BatchNorm2d` has with the
#   same arguments, so that a checkpoint of either loads into the other. Without `affine` there is
#   neither weight nor bias, without `track_running_stats` no running statistics; all these are then
#   registered as `None`.
# - In training it normalises each channel with the mean and the biased variance of the batch, `eps`
#   added to the variance. Gradients flow through both. `running_mean` and `running_var` move towards
#   the batch's mean and its unbiased variance, and `num_batches_tracked` counts. They are no part of
#   the graph.
# - A channel with a single number has no variance: in training that is a `ValueError`, and nothing has
#   changed.
# - In evaluation it uses the running statistics and changes nothing. Without them it does as in
#   training, except that a single number is no error there. (To PyTorch's it is one.)
#
# <details><summary>Hint 1: which dimensions</summary>
#
# All but the second: `[d for d in range(x.dim()) if d != 1]`. To bring a vector of channels back to
# them, give it the shape `(1, channels, 1, ...)`.
#
# </details>
# <details><summary>Hint 2: the two variances</summary>
#
# `x.var(dims, correction=0)` is the biased one. The unbiased one is $n / (n - 1)$ times that, with $n$
# the numbers per channel: `x.numel() // channels`.
#
# </details>
# <details><summary>Hint 3: keeping without a graph</summary>
#
# Do the running statistics under `torch.no_grad()`, in place. Count the batch first: with
# `momentum=None` the weight of the new value is one divided by the new count.
#
# </details>


# %% solution="BatchNorm"
class BatchNorm(nn.Module):
    """Batch norm over any number of dimensions after (batch, channels)."""

    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True):
        ### BEGIN SOLUTION
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.register_parameter(
            "weight", nn.Parameter(torch.ones(num_features)) if affine else None
        )
        self.register_parameter("bias", nn.Parameter(torch.zeros(num_features)) if affine else None)
        kept = {
            "running_mean": torch.zeros(num_features),
            "running_var": torch.ones(num_features),
            "num_batches_tracked": torch.tensor(0),
        }
        for name, first in kept.items():
            self.register_buffer(name, first if track_running_stats else None)

    def forward(self, x):
        if not self.training and self.running_mean is not None:
            mean, variance = self.running_mean, self.running_var
        else:
            count = x.numel() // x.shape[1]
            if self.training and count <= 1:
                raise ValueError(f"one number per channel has no variance: {tuple(x.shape)}")
            dims = [dim for dim in range(x.dim()) if dim != 1]
            mean, variance = x.mean(dims), x.var(dims, correction=0)
            if self.training and self.running_mean is not None:
                self._keep(mean.detach(), variance.detach() * count / (count - 1))
        shape = (1, -1, *[1] * (x.dim() - 2))
        y = (x - mean.reshape(shape)) * (variance.reshape(shape) + self.eps).rsqrt()
        if self.weight is not None:
            y = y * self.weight.reshape(shape) + self.bias.reshape(shape)
        return y

    @torch.no_grad()
    def _keep(self, mean, variance):
        self.num_batches_tracked += 1
        momentum = self.momentum
        if momentum is None:
            momentum = 1 / self.num_batches_tracked.item()  # the average of all batches so far
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), momentum)
        self.running_var.lerp_(variance.to(self.running_var.dtype), momentum)

    ### END SOLUTION


# %% grade="BatchNorm"
grade("BatchNorm")

# %% [markdown] exercise="fold_batch_norm"
# title: Fold a norm into a convolution
# minutes: 25
# difficulty: 3
# points: 6
# prerequisites: [BatchNorm]
# teaches: >-
#   that batch norm in evaluation is a scale and an offset per channel, which a convolution can take
#   over.
# leaves out: transposed convolutions, linear layers, quantization.
# off limits: [torch.nn.utils.fusion.fuse_conv_bn_eval, torch.nn.utils.fusion.fuse_conv_bn_weights, torch.nn.utils.fusion, torch.nn.utils.fuse_conv_bn_eval, torch.nn.utils.fuse_conv_bn_weights]
# forbids: "PyTorch's own fusion"

# %% [markdown]
# In evaluation all four vectors of a batch norm are constants. With $\sigma = \sqrt{v + \varepsilon}$
#
# $$y = \gamma\,\frac{(w * x + b) - \mu}{\sigma} + \beta
#     = \Big(\frac{\gamma}{\sigma}\,w\Big) * x + \Big(\beta + \frac{\gamma}{\sigma}\,(b - \mu)\Big)$$
#
# which is a convolution again, with another weight and another bias. A model in production has one
# layer less for each norm, and one pass over memory less.

# %%
conv, norm = nn.Conv2d(1, 1, 1, bias=False), nn.BatchNorm2d(1, eps=0.0).eval()
with torch.no_grad():
    conv.weight.fill_(3.0)
    norm.running_mean.fill_(2.0)
    norm.running_var.fill_(4.0)
    print([norm(conv(torch.full((1, 1, 1, 1), v))).item() for v in (0.0, 1.0, 2.0)])
    print([1.5 * v - 1 for v in (0.0, 1.0, 2.0)])

# %% [markdown]
# Draw: show_cells({f"row {row}": line for row, line in enumerate((F.conv2d(torch.ones(1, 1, 5, 7)
# - 2, torch.ones(1, 1, 3, 3), padding=1) == F.conv2d(torch.ones(1, 1, 5, 7), torch.ones(1, 1, 3,
# 3), padding=1) - 2 * 9)[0, 0].tolist())}, bare=True) | A norm that takes off 2, before a padded
# convolution. Coloured is where folding it gives the same: not at the border.
#
# It holds because the norm comes **after** the convolution. The other way round, a padded border is in
# the way: the zeros are added after the norm and never shifted by it.
#
# **Predict.** A norm in *training* mode follows a convolution. Does the convolution's bias change the
# output of the two?


# %%
def bias_matters():
    x = torch.arange(16.0).reshape(4, 1, 2, 2)
    conv, norm = nn.Conv2d(1, 1, 1), nn.BatchNorm2d(1)
    with torch.no_grad():
        conv.weight.fill_(1.0)
        outputs = []
        for bias in (0.0, 64.0):
            conv.bias.fill_(bias)
            outputs.append(norm(conv(x)))
    return not torch.allclose(*outputs)


predict(..., bias_matters)

# %% [markdown]
# That is why convolutions before a norm are written with `bias=False`.
#
# **Write `fold_batch_norm(conv, norm)`.** `conv` is an `nn.Conv1d`, `2d` or `3d` of any arguments,
# `norm` a batch norm for its outputs, with or without `affine`. Return a new convolution of the same
# type and settings, which gives what `norm(conv(x))` gives when both are in evaluation mode.
#
# - It has a bias in any case. Its weight and bias are leaves that want a gradient, in `conv`'s dtype,
#   also where `conv` is frozen, or the norm has another dtype.
# - `conv` and `norm` stay as they are, and share no memory with the result.
# - A norm without running statistics cannot be folded: a `ValueError`.
#
# <details><summary>Hint 1: the output's channels</summary>
#
# The weight of a convolution has the shape `(out, in / groups, ...)`. The norm has one factor per
# *output* channel, so it goes along the first dimension, groups or not.
#
# </details>
# <details><summary>Hint 2: a convolution of the same settings</summary>
#
# Stride, padding, dilation, groups and padding mode need not be copied one by one: `copy.deepcopy`
# copies the module with all it has. Import `copy` in your cell.
#
# </details>
# <details><summary>Hint 3: what may be None</summary>
#
# The convolution's bias counts as zero if it is `None`; the norm's weight as one, its bias as zero.
#
# </details>


# %% solution="fold_batch_norm"
def fold_batch_norm(conv, norm):
    """Return a convolution that computes norm(conv(x)) as both are in evaluation mode."""
    ### BEGIN SOLUTION
    import copy

    if norm.running_mean is None:
        raise ValueError("a norm without running statistics depends on the batch")
    with torch.no_grad():
        scale = (norm.running_var + norm.eps).rsqrt()
        offset = -norm.running_mean * scale
        if norm.weight is not None:
            scale = scale * norm.weight
            offset = offset * norm.weight + norm.bias
        if conv.bias is not None:
            offset = offset + conv.bias * scale
        # one factor per output channel, which is the first dimension of the weight
        shape = (-1, *[1] * (conv.weight.dim() - 1))
        weight = conv.weight * scale.reshape(shape)
    folded = copy.deepcopy(conv)
    folded.weight = nn.Parameter(weight.to(conv.weight.dtype))
    folded.bias = nn.Parameter(offset.to(conv.weight.dtype))
    return folded
    ### END SOLUTION


# %% grade="fold_batch_norm"
grade("fold_batch_norm")

# %% [markdown]
# A word on several devices. `SyncBatchNorm` (`torch/nn/modules/_functions.py`) does not share
# *parameters*: data-parallel training keeps those equal anyway. It shares *statistics*, and not by
# averaging variances: each rank sends its means, inverse standard deviations and count. Take shards
# with different means:

# %%
whole = torch.tensor([0.0, 2.0, 10.0, 12.0])
parts = whole.chunk(2)
print(
    "mean of the parts' variances", torch.stack([p.var(correction=0) for p in parts]).mean().item()
)
print("variance of the whole       ", whole.var(correction=0).item())
total, squares, count = whole.sum(), whole.square().sum(), len(whole)  # sums over ranks would do
print("from sums                   ", (squares / count - (total / count) ** 2).item())

# %% [markdown] sitting="code-and-weights"
# question: Is a model its code or its weights?
# reached: >-
#   Both, and they come apart: a network is proved by counts and values, and the same code is a
#   function of any weights that you hand it.

# %% [markdown] exercise="resnet"
# title: Build ResNet-18 from its specification
# minutes: 45
# difficulty: 4
# points: 6
# prerequisites: [BatchNorm]
# teaches: >-
#   how to build a network from a table and prove that it is the one: by counts, by a residual that
#   can be seen, by values.
# leaves out: training it; bottleneck blocks.
# off limits: [torch.hub.load, "import:torchvision"]

# %% [markdown]
# Many a "ResNet-18" on the web is none. A block without the addition, three stages where there are
# four, a stride in the wrong place: all of them train, more or less. A network is proved by three
# things: its **counts**, its **values**, and a **residual** that one can see. If all convolutions of a
# branch are zero, a residual block hands its input on, and a plain one forgets it:

# %%
zeroed = nn.Sequential(nn.Conv2d(2, 2, 3, padding=1, bias=False), nn.BatchNorm2d(2)).eval()
nn.init.zeros_(zeroed[0].weight)
image = torch.arange(8.0).reshape(1, 2, 2, 2)
with torch.no_grad():
    print("plain   ", zeroed(image).flatten().tolist())
    print("residual", (image + zeroed(image)).flatten().tolist())

# %% [markdown]
# Look: modules/walk#model=stem-Conv2d-3-8-7*norm-BatchNorm2d-8*stage1-Sequential*stage1.0-Conv2d-8-8-3*stage1.1-Conv2d-8-8-3*head-Linear-8-10&call=named_parameters |
# The parameters of a small network, in the order of the walk. To add up their sizes is the first
# proof.
#
# Counting needs no memory. On the `meta` device tensors have shapes and no values:

# %%
with torch.device("meta"):
    huge = nn.Linear(100_000, 100_000)
print(sum(parameter.numel() for parameter in huge.parameters()), huge.weight.device)

# %% [markdown]
# **Predict.** A stage gets 64 channels and gives 128, with stride 2, in two blocks of two 3×3
# convolutions each, and a 1×1 convolution on the first shortcut. How many weights do its five
# convolutions have, without biases and norms?

# %%
predict(..., lambda: 64 * 128 * 9 + 3 * 128 * 128 * 9 + 64 * 128)

# %% [markdown]
# **Write `resnet(blocks, widths, classes)`.** Both are lists, with an entry for each stage. Return an
# `nn.Module` for images of shape `(batch, 3, height, width)`, made of `nn.Conv2d` (none has a bias),
# `nn.BatchNorm2d` and `nn.Linear`:
#
# | part | what it does |
# |---|---|
# | stem | 7×7 convolution to `widths[0]` channels, stride 2, padding 3; norm; ReLU; max pooling 3×3, stride 2, padding 1 |
# | stage $i$ | `blocks[i]` blocks to `widths[i]` channels; the first block of every stage but the first has stride 2 |
# | block | 3×3 convolution with the block's stride, norm, ReLU, 3×3 convolution, norm; then the shortcut is **added**; then ReLU. Padding is 1. |
# | shortcut | the block's input; where the block changes the number of channels or has stride 2, a 1×1 convolution with that stride, and a norm |
# | head | mean over height and width; `nn.Linear` to `classes`, with bias |
#
# `resnet([2, 2, 2, 2], [64, 128, 256, 512], 1000)` is ResNet-18, with 11,689,512 parameters. Its 18
# layers are the stem, 16 convolutions of 3×3, and the linear layer. `[3, 4, 6, 3]` makes it ResNet-34.
# Any input size that leaves something after all strides will do. It can be built on the `meta` device,
# too: the checks count there.
#
# <details><summary>Hint 1: a class for the block</summary>
#
# Write a module `Block(inputs, outputs, stride)` in the same cell, with a `forward` of its own: an
# addition cannot be put into an `nn.Sequential`.
#
# </details>
# <details><summary>Hint 2: when the shortcut needs a convolution</summary>
#
# Whenever the shapes differ: `stride != 1 or inputs != outputs`. Two stages of the same width differ in
# their stride alone.
#
# </details>
# <details><summary>Hint 3: each block anew</summary>
#
# `[Block(...)] * 2` is a list of one block, twice. Call the class for each, in a loop, and put them
# into an `nn.Sequential`, so that they are registered.
#
# </details>


# %% solution="resnet"
def resnet(blocks, widths, classes):
    """Return a residual network of basic blocks.

    blocks, widths: number of blocks and of channels of each stage
    """
    ### BEGIN SOLUTION
    layers = [
        nn.Conv2d(3, widths[0], 7, stride=2, padding=3, bias=False),
        nn.BatchNorm2d(widths[0]),
        nn.ReLU(),
        nn.MaxPool2d(3, stride=2, padding=1),
    ]
    inputs = widths[0]
    for stage, width in enumerate(widths):
        for number in range(blocks[stage]):
            layers.append(Block(inputs, width, stride=2 if stage and not number else 1))
            inputs = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.branch = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.shortcut = nn.Sequential()  # hands its input on
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x):
        return (self.branch(x) + self.shortcut(x)).relu()

    ### END SOLUTION


# %% grade="resnet"
grade("resnet")

# %% [markdown]
# ## Other blocks, in a few lines each
#
# **Darknet-53** is the same idea with other blocks: 1×1 to half the channels, 3×3 back, and the
# addition. Five stages, *each begun by* a convolution of stride 2. With the linear layer at the end
# that makes 53 layers.


# %%
def conv_norm(inputs, outputs, kernel, stride=1, groups=1, act=nn.ReLU):
    """Return a convolution that keeps the size (but for its stride), a norm and an activation."""
    conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(outputs), act())


class Add(nn.Module):
    """The input plus what a branch makes of it."""

    def __init__(self, branch):
        super().__init__()
        self.branch = branch

    def forward(self, x):
        return x + self.branch(x)


def darknet(repeats=(1, 2, 8, 8, 4), classes=1000):
    def leaky():
        return nn.LeakyReLU(0.1)

    width, layers = 32, [conv_norm(3, 32, 3, act=leaky)]
    for count in repeats:
        layers.append(conv_norm(width, 2 * width, 3, stride=2, act=leaky))
        width *= 2
        for _ in range(count):
            narrow = conv_norm(width, width // 2, 1, act=leaky)
            layers.append(Add(nn.Sequential(narrow, conv_norm(width // 2, width, 3, act=leaky))))
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, classes))


with torch.device("meta"):
    net = darknet()
    weighty = [m for m in net.modules() if isinstance(m, nn.Conv2d | nn.Linear)]
    print(len(weighty), "layers,", sum(p.numel() for p in net.parameters()), "parameters")
    print(tuple(net[:-3](torch.zeros(1, 3, 256, 256)).shape), "before the head")

# %% [markdown]
# A widely copied listing of this network stops with a `NameError` at `selfconv3(x)`, and lacks the
# additions as well. Two lines, zeroed convolutions and a look at the output, would have told.
#
# **VGG** asks: why 5×5? Two 3×3 convolutions see as far and have fewer weights, with a ReLU between.
# **Inception** asks: which kernel? All of them, side by side, joined along the channels, with 1×1
# convolutions in front that make the wide ones affordable. **MobileNet** takes a convolution apart:
# one that looks around in each channel (`groups` = channels), and a 1×1 that mixes the channels.
# **EfficientNet** puts that into a block which widens first, adds its input, and lets a small network
# weigh the channels: squeeze and excitation.
#
# Draw: show_bars({name: sum(p.numel() for p in nn.Sequential(*layers).parameters()) for name,
# layers in (("5 × 5", [nn.Conv2d(64, 64, 5, bias=False)]), ("two 3 × 3", [nn.Conv2d(64, 64, 3,
# bias=False)] * 1 + [nn.Conv2d(64, 64, 3, bias=False)]), ("one 3 × 3", [nn.Conv2d(64, 64, 3,
# bias=False)]), ("3 × 3, taken apart", [nn.Conv2d(64, 64, 3, groups=64, bias=False),
# nn.Conv2d(64, 64, 1, bias=False)]))}, "weights") | 64 channels in, 64 out.


# %%
class Inception(nn.Module):
    """Four branches on the same input, joined along the channels."""

    def __init__(self, inputs):
        super().__init__()
        self.branches = nn.ModuleList(
            [
                conv_norm(inputs, 8, 1),
                nn.Sequential(conv_norm(inputs, 4, 1), conv_norm(4, 8, 3)),
                nn.Sequential(conv_norm(inputs, 4, 1), conv_norm(4, 8, 5)),
                nn.Sequential(nn.MaxPool2d(3, 1, 1), conv_norm(inputs, 8, 1)),
            ]
        )

    def forward(self, x):
        return torch.cat([branch(x) for branch in self.branches], dim=1)


class SqueezeExcite(nn.Module):
    """A weight between 0 and 1 for each channel, computed from all channels' means."""

    def __init__(self, channels):
        super().__init__()
        self.down, self.up = nn.Linear(channels, channels // 4), nn.Linear(channels // 4, channels)

    def forward(self, x):
        weights = self.up(F.silu(self.down(x.mean((2, 3))))).sigmoid()
        return x * weights[:, :, None, None]


def separable(inputs, outputs):
    return nn.Sequential(conv_norm(inputs, inputs, 3, groups=inputs), conv_norm(inputs, outputs, 1))


def mbconv(channels, expand=4):
    wide = expand * channels
    return Add(
        nn.Sequential(
            conv_norm(channels, wide, 1, act=nn.SiLU),
            conv_norm(wide, wide, 3, groups=wide, act=nn.SiLU),
            SqueezeExcite(wide),
            conv_norm(wide, channels, 1, act=nn.Identity),
        )
    )


def conv_weights(block):
    return sum(m.weight.numel() for m in block.modules() if isinstance(m, nn.Conv2d))


x = torch.zeros(2, 32, 8, 8)
for title, built in (
    ("one 5×5", conv_norm(32, 32, 5)),
    ("VGG: two 3×3", nn.Sequential(conv_norm(32, 32, 3), conv_norm(32, 32, 3))),
    ("Inception", Inception(32)),
    ("one 3×3", conv_norm(32, 32, 3)),
    ("MobileNet", separable(32, 32)),
    ("EfficientNet", mbconv(32)),
):
    print(f"{title:>14} {conv_weights(built):>6} weights  {tuple(built(x).shape)}")

# %% [markdown]
# **Predict.** A 3×3 convolution from 256 to 256 channels has 589,824 weights. How many has the
# separable pair?

# %%
predict(..., lambda: conv_weights(separable(256, 256)))

# %% [markdown]
# ## What a block costs
#
# Weights are one price, FLOPs the other. A convolution uses each of its weights once for every place
# of its output, and each use is a multiplication and an addition. With $g$ groups and a kernel of
# $k \times k$:
#
# $$\text{weights} = \frac{C_\text{in}}{g}\,C_\text{out}\,k^2 \qquad
#     \text{FLOPs} = 2 \cdot \text{weights} \cdot H_\text{out} W_\text{out}$$
#
# Each of the four networks saves in its own way:
#
# | | instead of | does |
# |---|---|---|
# | VGG | one 5×5 | two 3×3, with a ReLU between |
# | Inception | a wide kernel on all channels | 1×1 to few channels, then the wide kernel |
# | MobileNet | one 3×3 | 3×3 in each channel, then 1×1 |
# | EfficientNet | growing in depth alone | depth, width and image together |
#
# A forward hook can add up the FLOPs while a model runs. PyTorch has a counter of its own, which looks at
# the operators that run, `FlopCounterMode`. On the `meta` device neither needs memory, and they agree.

# %%
from torch.utils.flop_counter import FlopCounterMode


def by_definition(block, x):
    """Return the FLOPs of the block's convolutions for the input x, by the formula."""
    found = []

    def note(conv, args, output):
        found.append(2 * conv.weight.numel() * output[:, 0].numel())  # each weight at each place

    convs = [module for module in block.modules() if isinstance(module, nn.Conv2d)]
    handles = [conv.register_forward_hook(note) for conv in convs]
    block(x)
    for handle in handles:
        handle.remove()
    return sum(found)


def counted(block, x):
    """Return the FLOPs that PyTorch counts."""
    with FlopCounterMode(display=False) as counter:
        block(x)
    return counter.get_total_flops()


def bare(inputs, outputs, kernel, groups=1):
    """Return a convolution that keeps the size, with nothing around it."""
    return nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2, groups=groups, bias=False)


def taken_apart(inputs, outputs, kernel=3):
    """Return MobileNet's pair: look around in each channel, then mix the channels."""
    return nn.Sequential(bare(inputs, inputs, kernel, groups=inputs), bare(inputs, outputs, 1))


with torch.device("meta"):
    wide, deep = torch.empty(1, 64, 56, 56), torch.empty(1, 192, 28, 28)
    costs = {
        "plain 5×5": (bare(64, 64, 5), wide),
        "VGG: two 3×3": (nn.Sequential(bare(64, 64, 3), bare(64, 64, 3)), wide),
        "plain 3×3": (bare(64, 64, 3), wide),
        "MobileNet: apart": (taken_apart(64, 64), wide),
        "192 to 32, 5×5": (bare(192, 32, 5), deep),
        "Inception: squeezed": (nn.Sequential(bare(192, 16, 1), bare(16, 32, 5)), deep),
    }
    for title, (block, x) in costs.items():
        flops = by_definition(block, x)
        print(
            f"{title:>20} {conv_weights(block):>7} weights {flops / 1e6:>6.1f} MFLOPs"
            f"  counted the same: {flops == counted(block, x)}"
        )

# %% [markdown]
# **VGG** pays 18 for 25: two kernels of 9 weights see as far as one of 25. **Inception** squeezes 192
# channels to 16 before the wide kernel, and that is nearly ten times cheaper. (It is the 5×5 branch
# of GoogLeNet's first block.) **MobileNet's** pair costs, of what the convolution costs that it replaces,
#
# $$\frac{C_\text{in}\,k^2 + C_\text{in}\,C_\text{out}}{C_\text{in}\,C_\text{out}\,k^2}
#     = \frac{1}{C_\text{out}} + \frac{1}{k^2}$$
#
# whatever the image and the number of input channels. As fractions, from what is counted:

# %%
from fractions import Fraction

with torch.device("meta"):
    for inputs, outputs, kernel in ((32, 8, 3), (32, 64, 3), (7, 64, 3), (32, 64, 5)):
        x = torch.empty(1, inputs, 14, 14)
        apart, plain = taken_apart(inputs, outputs, kernel), bare(inputs, outputs, kernel)
        ratio = Fraction(counted(apart, x), counted(plain, x))
        formula = Fraction(1, outputs) + Fraction(1, kernel**2)
        print(f"{inputs:>2} to {outputs:>4}, k={kernel}  {ratio!s:>9}", ratio == formula)

# %% [markdown]
# Draw: show_curves({f"k = {kernel}": [(outputs, round(counted(taken_apart(8, outputs, kernel),
# image) / counted(bare(8, outputs, kernel), image), 4)) for outputs in range(4, 129, 4)] for image in
# [torch.zeros(1, 8, 4, 4)] for kernel in (3, 5, 7)}, "output channels", "share of the plain FLOPs") |
# With few output channels little is saved. With many, the kernel alone counts: 1/9, 1/25, 1/49.
#
# Fewer FLOPs are not as much less time. The part that looks around reads and writes a whole image for 9
# multiplications at each place. How many FLOPs come on each byte that is moved, if input, weight and
# output are moved once?

# %%
with torch.device("meta"):
    for title, conv in (
        ("plain 3×3", bare(64, 128, 3)),
        ("its 3×3, by channel", bare(64, 64, 3, groups=64)),
        ("its 1×1", bare(64, 128, 1)),
    ):
        moved = 4 * (wide.numel() + conv.weight.numel() + conv(wide).numel())
        print(f"{title:>20} {counted(conv, wide) / moved:>6.1f} FLOPs per byte")

# %% [markdown]
# **Predict.** A separable pair of 256 channels: 3×3 by channel, then the 1×1. How many percent of its
# FLOPs are the 1×1's? Round to a whole number.


# %%
def percent_of_the_mixing():
    pair, x = taken_apart(256, 256), torch.zeros(1, 256, 7, 7)
    return round(100 * counted(pair[1], pair[0](x)) / counted(pair, x))


predict(..., percent_of_the_mixing)

# %% [markdown]
# **EfficientNet** asks how a network should grow. FLOPs are proportional to the depth, to the square of
# the width (a layer's channels count on both sides), and to the square of the image's side. Its answer
# is to let all three grow together: by $1.2^\varphi$, $1.1^\varphi$ and $1.15^\varphi$. As
# $1.2 \cdot 1.1^2 \cdot 1.15^2 \approx 1.92$, each step of $\varphi$ nearly doubles the FLOPs. (The network
# that grows was found by a program, by *architecture search*: [arXiv 1905.11946](https://arxiv.org/abs/1905.11946).)
#
# Draw: show_bars({"1.2 times as deep": 1.2, "1.1 times as wide": round(1.1**2, 2), "1.15 times the side":
# round(1.15**2, 2), "all three": round(1.2 * 1.1**2 * 1.15**2, 2)}, "times the FLOPs") | What one step
# costs.


# %%
def grown(phi):
    """Return depth, width and side of a chain of 3×3 convolutions, grown phi times."""
    return round(20 * 1.2**phi), round(100 * 1.1**phi), round(100 * 1.15**phi)


def chain_flops(depth, width, side):
    """Return what PyTorch counts for `depth` convolutions of `width` channels."""
    with torch.device("meta"):
        chain = nn.Sequential(*(bare(width, width, 3) for _ in range(depth)))
        return counted(chain, torch.empty(1, width, side, side))


print("phi  depth  width  side  FLOPs, of the first  1.92^phi")
for phi in range(6):
    depth, width, side = grown(phi)
    times = chain_flops(depth, width, side) / chain_flops(*grown(0))
    print(f"{phi:>3} {depth:>6} {width:>6} {side:>5} {times:>20.2f} {1.92**phi:>9.2f}")

# %% [markdown] exercise="functional_call"
# title: Call a module with other weights
# minutes: 45
# difficulty: 5
# points: 8
# prerequisites: [named_tensors, load_state]
# teaches: >-
#   how an object full of state becomes a function of its state: registries swapped for one call, under
#   tying, and put back whatever happens.
# leaves out: a buffer that `forward` assigns anew; modules that register something while they run.
# off limits: [torch.func.functional_call, torch.nn.utils.stateless.functional_call, torch.nn.utils.stateless._functional_call, torch.nn.utils.stateless._reparametrize_module, torch.nn.utils.stateless, torch.nn.utils._named_member_accessor]
# forbids: "PyTorch's own `functional_call`, and what it is made of"

# %% [markdown]
# Derivatives of derivatives, a hundred models at once, a step that is tried and taken back: all want
# the model as a function $f(\theta, x)$. A module hides its $\theta$ in its registries.
# `torch.func.functional_call` brings it out:

# %%
layer = nn.Linear(2, 1, bias=False)
weights = {"weight": torch.tensor([[1.0, 10.0]])}
print(torch.func.functional_call(layer, weights, (torch.tensor([[2.0, 3.0]]),)).tolist())

# %% [markdown]
# With it a whole ensemble is one call. `vmap` maps over a dimension of each weight:

# %%
stacked = {"weight": torch.arange(3.0).reshape(3, 1, 1).expand(3, 1, 2)}
run = torch.vmap(torch.func.functional_call, in_dims=(None, 0, None))
print(run(layer, stacked, (torch.ones(1, 2),)).flatten().tolist())

# %% [markdown]
# A sketch seems easy: save the old tensors, put the new ones into the registries, call, put the old
# ones back. Think of what can happen in between: `forward` raises. A tied weight is named once and used
# in two places. A module has two names, so its registry is visited twice, and the second visit saves
# what the first put in.
#
# Look: modules/walk#model=a-Linear-2-2*b-Sequential*b.0-is-a&call=named_parameters |
# One layer under two names: each of its tensors is named once, by the first path.
#
# PyTorch's own function falls for the last of these. Here one layer is used under two names, and after
# the call the model has lost its weight:

# %%
once = nn.Linear(2, 2, bias=False)
pair, its_own = nn.Sequential(once, nn.Sequential(once)), once.weight
torch.func.functional_call(pair, {"0.weight": torch.zeros(2, 2)}, (torch.ones(1, 2),))
print(once.weight is its_own, once.weight.tolist())

# %% [markdown]
# Yours will leave the module as it was.
#
# **Predict.** In the model below, `a.weight` and `b.weight` are one parameter, and only `b` is used.
# Hand `functional_call` zeros for `a.weight` alone. Is the output all zeros?


# %%
class Twice(nn.Module):
    """One matrix under two names: `a` for the input, `b` for the output."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(2, 2, bias=False)
        self.b = nn.Linear(2, 2, bias=False)
        self.b.weight = self.a.weight

    def forward(self, x):
        return self.b(x)


def zeros_for_the_other():
    zeros = {"a.weight": torch.zeros(2, 2)}
    return not torch.func.functional_call(Twice(), zeros, (torch.ones(1, 2),)).any()


predict(..., zeros_for_the_other)

# %% [markdown]
# **Write `functional_call(module, tensors, args=(), kwargs=None, strict=False)`.** Return
# `module(*args, **kwargs)`, computed while each parameter or buffer that `tensors` names is replaced by
# the tensor it has for that name. Afterwards the module is as it was.
#
# - A name that the module does not have, by any path, is a `RuntimeError`. `None` is nothing that
#   could be replaced.
# - A tensor with several names is replaced under all of them when one is given. If two of its names
#   are given with two tensor objects, equal or not, that is a `ValueError`; with one and the same
#   object it is fine.
# - What is not named stays as it is. With `strict`, a parameter or buffer that is named under none of
#   its names is a `RuntimeError`.
# - All these errors come before anything is changed or called.
# - The module itself runs, not a copy: its hooks are called, what `forward` counts is counted, and
#   what it changes in place is changed: in the given tensor, where there is one, and else in the
#   module's own.
# - Given tensors need not be `Parameter`s; the module's own may be given for one another. Gradients
#   flow to them, and none to what they replace. It works under `vmap`, `grad` and `jvp`, as
#   PyTorch's does.
# - Afterwards, also after an error in `forward`, each registry holds the very same objects in the same
#   order. The dictionary `tensors` has all its names.
#
# <details><summary>Hint 1: the registry itself</summary>
#
# `setattr(owner, "weight", tensor)` refuses a tensor that is no `Parameter`, and rightly.
# `owner._parameters["weight"] = tensor` does not look, and keeps the order of the keys.
#
# </details>
# <details><summary>Hint 2: from tensor to tensor</summary>
#
# First find out which tensor stands for which: a dictionary from the module's own tensors to the given
# ones. Tying is in it by itself: what is the same tensor has one entry.
#
# </details>
# <details><summary>Hint 3: remember before you touch</summary>
#
# Make the list of all places with what is in each, for the whole module, before the first is changed.
# Then it does not matter whether a place is in the list twice.
#
# </details>


# %% solution="functional_call"
def functional_call(module, tensors, args=(), kwargs=None, strict=False):
    """Call `module` with other tensors in place of its own.

    tensors: by dotted name; a tensor with several names is replaced under all of them
    strict: every parameter and buffer must be given
    """
    ### BEGIN SOLUTION
    places = {}  # name: (registry, key, the module's own tensor), noted before anything is changed
    for path, owner in module.named_modules(remove_duplicate=False):
        for registry in (owner._parameters, owner._buffers):
            for key, own in registry.items():
                if own is not None:
                    places[f"{path}.{key}" if path else key] = registry, key, own

    unknown = [name for name in tensors if name not in places]
    if unknown:
        raise RuntimeError(f"the module has no {unknown}")
    replacements = {}  # by the tensor that is replaced, so that all its names follow
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
    ### END SOLUTION


# %% grade="functional_call"
grade("functional_call")

# %% [markdown] sitting="encoder"
# question: What does one layer of BERT compute?
# reached: >-
#   Words look at each other, then each is worked on by itself; both results are added to what went
#   in, and normed after the addition. It is a function of twelve tensors, whose names a checkpoint has.

# %% [markdown]
# ## From ids to the first x
#
# BERT is a stack of twelve equal layers on top of an embedding. What goes in are whole numbers: for each
# piece of a word its **id**, its **position**, and its **token type**, which says whether it belongs to
# the first or to the second sentence. Three tables turn them into three vectors. These are added, and
# normed with an eps of `1e-12`.


# %%
class Embeddings(nn.Module):
    """Word, position and token type: three rows of three tables, added and normed."""

    def __init__(self, vocabulary=30_522, positions=512, types=2, hidden=768):
        super().__init__()
        self.word_embeddings = nn.Embedding(vocabulary, hidden)
        self.position_embeddings = nn.Embedding(positions, hidden)
        self.token_type_embeddings = nn.Embedding(types, hidden)
        self.LayerNorm = nn.LayerNorm(hidden, eps=1e-12)

    def forward(self, ids, types):
        places = torch.arange(ids.shape[1], device=ids.device)
        found = self.word_embeddings(ids) + self.position_embeddings(places)
        return self.LayerNorm(found + self.token_type_embeddings(types))


ids, types = torch.tensor([[7, 5, 7, 7]]), torch.tensor([[0, 0, 0, 1]])
with torch.no_grad():
    x = Embeddings(hidden=8)(ids, types)
    print(tuple(ids.shape), "->", tuple(x.shape))
    print("the same piece twice, in two places, the same vector:", torch.equal(x[0, 0], x[0, 2]))
    print("the mean of each vector:", [abs(round(v, 4)) for v in x.mean(-1)[0].tolist()])

# %% [markdown]
# From there on all has the shape `(batch, seq, hidden)`. PyTorch has such a layer. On the `meta` device
# we can count BERT-base (the checkpoint `bert-base-uncased`) without loading it: embeddings, twelve
# layers, and a last linear layer called the pooler, which is applied to the first word.

# %%
with torch.device("meta"):
    embeddings = Embeddings()
    encoder = nn.TransformerEncoderLayer(
        768, 12, 3072, activation="gelu", layer_norm_eps=1e-12, batch_first=True
    )
    pooler = nn.Linear(768, 768)
    sizes = [sum(p.numel() for p in m.parameters()) for m in (embeddings, encoder, pooler)]
print(sizes, "in all", sizes[0] + 12 * sizes[1] + sizes[2])
for name, parameter in encoder.named_parameters():
    print(f"{name:>24} {tuple(parameter.shape)}")

# %% [markdown]
# `self_attn.in_proj_weight` is three matrices in one: 768 rows for queries, 768 for keys, 768 for values.
#
# Draw: show_bars({"attention": sum(p.numel() for name, p in encoder.named_parameters() if "attn" in
# name), "feed-forward": sum(p.numel() for name, p in encoder.named_parameters() if "linear" in name),
# "both norms": sum(p.numel() for name, p in encoder.named_parameters() if "norm" in name)}, "numbers") |
# Where a layer of BERT keeps its 7 million numbers.

# %% [markdown] exercise="encoder_layer"
# title: Write BERT's encoder layer
# minutes: 60
# difficulty: 4
# points: 8
# prerequisites: [collect_state]
# teaches: >-
#   what is in a transformer's layer, operation by operation, and that it is a function of the tensors
#   in a checkpoint.
# leaves out: dropout; masks between words, as decoders have them; rows without a single word.
# off limits: [torch.nn.TransformerEncoderLayer, torch.nn.TransformerEncoder, torch.nn.MultiheadAttention, torch.nn.functional.multi_head_attention_forward, torch.nn.functional.scaled_dot_product_attention, "aten:_transformer_encoder_layer_fwd", "aten:_native_multi_head_attention", "aten:_scaled_dot_product_flash_attention_for_cpu", torch.nn.functional.layer_norm, "aten:native_layer_norm", torch.nn.functional.gelu, "aten:gelu"]
# forbids: "PyTorch's own transformer layers, attention, layer norm and GELU"

# %% [markdown]
# Two parts, attention $A$ and a feed-forward network $F$. Around each of them the same is done, which
# drawings of it call *add & norm*:
#
# $$y = N_1(x + A(x)) \qquad z = N_2(y + F(y))$$
#
# The norm comes **after** the addition: *post-norm*. Most later models do it the other way,
# $x + A(N_1(x))$, with the same parameters: *pre-norm*. A checkpoint fits either, and does not say which.
#
# A **layer norm** takes mean and variance of each word's vector: over the last dimension, with nothing
# to remember and no difference between `train` and `eval`. The variance is the biased one.
#
# $F$ is two linear layers with a **GELU** between them, $u \cdot \Phi(u)$. $\Phi$ is the normal
# distribution's: $\Phi(u) = \frac12\big(1 + \text{erf}(u / \sqrt 2)\big)$. A formula with `tanh` that
# comes close to it is in use as well. Here it is the exact one.
#
# Draw: show_curves({"tanh minus exact": [(at / 10, round(F.gelu(u, approximate="tanh").item() -
# F.gelu(u).item(), 6)) for at in range(-50, 51) for u in [torch.tensor(at / 10,
# dtype=torch.float64)]]}, "u") | How far the two GELUs are apart: nowhere as much as 0.0005, and so a loss
# will hardly tell.
#
# How many operators is such a layer? In training, dozens. For evaluation without gradients PyTorch has
# it as one:

# %%
from grader import watch_ops

encoder = nn.TransformerEncoderLayer(8, 2, 16, activation="gelu", batch_first=True)
three_words = torch.zeros(1, 3, 8)
for mode in (True, False):
    encoder.train(mode)
    with torch.no_grad(), watch_ops() as ops:
        encoder(three_words)
    print("train" if mode else "eval ", ops.names if len(ops.names) < 5 else "more than 40")

# %% [markdown]
# Sentences of a batch differ in length, and the shorter ones are filled up. Nobody may look at the
# padding: its scores become $-\infty$ before the softmax, and so their weights 0. The layer's
# `src_key_padding_mask` is `True` where there is **padding**. (`scaled_dot_product_attention` reads its
# mask the other way.)
#
# **Predict.** Three words, and the third is padding. Its vector is exchanged for another one. How many
# of the three outputs change?


# %%
def outputs_that_change():
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    padding, x = torch.tensor([[False, False, True]]), torch.randn(1, 3, 8)
    other = x.clone()
    other[0, 2] = torch.randn(8)
    first, second = (layer(each, src_key_padding_mask=padding)[0] for each in (x, other))
    return sum(not torch.allclose(*pair) for pair in zip(first, second, strict=True))


predict(..., outputs_that_change)

# %% [markdown]
# **Write `encoder_layer(x, params, heads, mask=None, eps=1e-12)`.** Return what
# `nn.TransformerEncoderLayer(hidden, heads, width, activation="gelu", layer_norm_eps=eps,
# batch_first=True)` gives in evaluation, post-norm, as the formulas above say.
#
# - `x` has the shape `(batch, seq, hidden)`. `params` is the layer's state dict: the twelve tensors
#   above, by their names, all in the dtype of `x`.
# - `in_proj_weight` holds the weights of queries, keys and values, in this order, one above the other.
#   The `heads` heads are slices of equal size of each, one after the other. Scores are divided by the
#   root of a head's size.
# - `mask` is `None`, or boolean of shape `(batch, seq)`, `True` where there is padding. Padding is not
#   looked at; what stands in its place in the result is computed as for any other word.
# - Nothing is done head by head or sentence by sentence. At most six products run in all: one for queries,
#   keys and values together, two for the attention, three for the other weights.
# - Gradients flow to `x` and to all of `params`. The inputs stay as they are.
#
# <details><summary>Hint 1: heads</summary>
#
# The product gives `(batch, seq, 3 * hidden)`. Read its last dimension as `(3, heads, size)` with
# `unflatten`, and bring it into the order `(3, batch, heads, seq, size)` with `permute`: queries, keys
# and values are its three parts. On the way back `transpose(1, 2)` and `flatten(2)`.
#
# </details>
# <details><summary>Hint 2: the mask's shape</summary>
#
# Scores have the shape `(batch, heads, queries, keys)`, and padding is about keys. So the mask is
# indexed `mask[:, None, None, :]`, and `masked_fill` puts `-torch.inf` there.
#
# </details>
# <details><summary>Hint 3: add & norm is one function</summary>
#
# Write it once, for a sum and the prefix `"norm1."` or `"norm2."`. Inside, the root is of
# `variance + eps`. `torch.erf` is there for the GELU.
#
# </details>


# %% solution="encoder_layer"
def encoder_layer(x, params, heads, mask=None, eps=1e-12):
    """Return what a post-norm encoder layer gives in evaluation.

    x: (batch, seq, hidden); params: the layer's state dict
    mask: (batch, seq), True where there is padding, or None
    """
    ### BEGIN SOLUTION

    def linear(u, name):
        return F.linear(u, params[f"{name}weight"], params[f"{name}bias"])

    def norm(u, name):
        centred = u - u.mean(-1, keepdim=True)
        variance = centred.square().mean(-1, keepdim=True)  # of each word, the biased one
        return centred / (variance + eps).sqrt() * params[f"{name}weight"] + params[f"{name}bias"]

    packed = linear(x, "self_attn.in_proj_")
    q, k, v = packed.unflatten(-1, (3, heads, -1)).permute(2, 0, 3, 1, 4)
    scores = q @ k.mT * q.shape[-1] ** -0.5
    if mask is not None:
        scores = scores.masked_fill(mask[:, None, None, :], -torch.inf)
    seen = (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)
    y = norm(x + linear(seen, "self_attn.out_proj."), "norm1.")

    inner = linear(y, "linear1.")
    inner = inner * (1 + torch.erf(inner * 0.5**0.5)) / 2  # the exact GELU
    return norm(y + linear(inner, "linear2."), "norm2.")
    ### END SOLUTION


# %% grade="encoder_layer"
grade("encoder_layer")

# %% [markdown]
# ## First values, by a walk
#
# `apply` is the usual way to give a model its first values: one function, asked at every module, which
# looks at the type. The gain of each residual branch's last norm is often set to zero, so that at first
# every block hands its input on; `apply` comes to the children before their parents, so the parent has
# the last word.
#
# Look: modules/walk#model=block-Sequential*block.0-Linear-4-4*block.1-ReLU*head-Linear-4-2&call=named_modules |
# `named_modules` comes to a module before what is in it: number 1 is the model. `apply` would come
# to it last.


# %%
def first_values(module):
    if isinstance(module, nn.Conv2d):
        nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    elif isinstance(module, nn.Linear):
        nn.init.zeros_(module.bias)
    elif isinstance(module, Add):
        norms = [m for m in module.branch.modules() if isinstance(m, nn.BatchNorm2d)]
        nn.init.zeros_(norms[-1].weight)


torch.manual_seed(0)
block = Add(nn.Sequential(conv_norm(4, 4, 3), conv_norm(4, 4, 3, act=nn.Identity))).apply(
    first_values
)
x = torch.randn(2, 4, 5, 5)
print("the block hands its input on:", torch.equal(block(x), x))
big = nn.Conv2d(64, 256, 3).apply(first_values)
print(
    "standard deviation times root of fan-out / 2:",
    round((big.weight.std() * (256 * 9 / 2) ** 0.5).item(), 1),
)

# %% [markdown]
# **Initialisation** is kept nowhere. It happens when a layer is made: `__init__` calls the layer's
# `reset_parameters`. To draw first values anew, or others, `apply` asks one function at each module,
# children before their parents. So a parent has the last word about what it holds:

# %%
order = []
tree = nn.Sequential(nn.LSTM(4, 6), nn.Sequential(nn.Linear(6, 6), nn.ReLU()))
tree.apply(lambda module: order.append(type(module).__name__))
print(order)
print([type(module).__name__ for module in tree.modules()], "by modules()")


# %%
def open_forget_gates(module):
    """Set the biases of an LSTM: 1 for its forget gates, 0 for the others."""
    if isinstance(module, nn.LSTM):
        for name, parameter in module.named_parameters():
            if name.startswith("bias_"):
                nn.init.zeros_(parameter)
            if name.startswith("bias_ih"):  # of one bias alone: the two are added
                nn.init.ones_(parameter[module.hidden_size : 2 * module.hidden_size])


tree.apply(open_forget_gates)
print(int(tree[0].bias_ih_l0.sum()), "of", tree[0].bias_ih_l0.numel(), "are 1")

# %% [markdown]
# Draw: show_cells({gate: row for gate, row in zip(("input", "forget", "cell", "output"),
# tree[0].bias_ih_l0.int().view(4, 6).tolist())}) | The bias by its gates. The state is kept at first,
# more or less, and gradients come through.
#
# "Call `reset_parameters` wherever there is one" is a popular way to begin anew, and misses some.
# `nn.MultiheadAttention` has none by this name. Its own matrix and bias stay as they are; only its child,
# the output layer, is drawn again. And a `Parameter` that a class of yours made in `__init__` has nobody
# who would know how it began.

# %%
attention = nn.MultiheadAttention(4, 2)
for parameter in attention.parameters():
    nn.init.ones_(parameter)
attention.apply(lambda m: m.reset_parameters() if hasattr(m, "reset_parameters") else None)
print({name: bool((p == 1).all()) for name, p in attention.named_parameters()})
