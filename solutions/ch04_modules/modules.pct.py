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
#   A module is an ordinary Python object with four dictionaries. All that is convenient about it
#   (parameters that an optimiser finds, a model that moves to another dtype, a checkpoint, a hook)
#   is a walk through these dictionaries, and all that surprises (a layer that never trains, a shared
#   weight that is missing, a checkpoint that does not fit) is a walk that went elsewhere than you
#   thought. In this chapter you write these walks yourself.

# %% [markdown]
# ## How to work
#
# Each exercise has a card, a few cells to read and run, and one cell to write: the one that
# raises `NotImplementedError`. The cell after it grades what you wrote, as often as you like.
#
# Where a cell calls `predict(...)`, write your guess in place of the dots before you run it.
# Nobody grades a guess; having made one is what makes the answer stick.

# %%
from collections import OrderedDict

import torch
from torch import nn

from grader import grade, predict

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
for registry in ("_parameters", "_buffers", "_modules", "_non_persistent_buffers_set"):
    print(f"{registry:>28}", list(small.__dict__[registry]))

# %% [markdown]
# `self.stem = nn.Linear(8, 6)` looks like any assignment, and is none: `nn.Module` defines
# `__setattr__`, which looks at the value and files it. A `Parameter` goes to `_parameters`, a module
# to `_modules`, all else to the object's ordinary `__dict__`. Buffers ask to be registered.
# The fourth, a set, holds the names of buffers that checkpoints leave out.
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
# **Predict.** How many modules does `modules()` give for
# `nn.Sequential(relu, nn.Sequential(relu, relu))`, with one and the same `relu`?

# %%
relu = nn.ReLU()
predict(..., lambda: len(list(nn.Sequential(relu, nn.Sequential(relu, relu)).modules())))

# %% [markdown]
# Names are dotted paths, and so a test such as `name in ["bias"]` finds nothing below the root.
# Compare the last part instead.

# %%
names = [name for name, _ in small.named_parameters()]
print([name for name in names if name in ["bias"]])
print([name for name in names if name.rsplit(".", 1)[-1] == "bias"])

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
# prerequisites: []
# teaches: >-
#   how the one walk that all others rest on goes: depth first, itself first, each object once under
#   its first name.
# leaves out: what is done with the modules that it finds.
# off limits: [torch.nn.Module.named_modules, torch.nn.Module.modules, torch.nn.Module.named_children, torch.nn.Module.children, torch.nn.Module.named_parameters, torch.nn.Module.get_submodule]

# %% [markdown]
# A model is drawn as a tree, and is none. A module that has two names is a node with two parents, and
# nothing forbids a module that contains itself. So the walk needs a memory of where it has been: a
# set called `memo`. Python's `set` compares modules by identity, which is what we want: two layers
# with equal weights are two layers.
#
# `remove_duplicate=False` asks for every path instead. Then the memory is not written to.

# %%
shared = nn.Linear(2, 2)
model = nn.Sequential(OrderedDict(first=shared, again=nn.Sequential(shared)))
print([name for name, _ in model.named_modules()])
print([name for name, _ in model.named_modules(remove_duplicate=False)])

# %% [markdown]
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
# - Entries that are `None` are passed over.
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
# <details><summary>Hint 3: an empty set</summary>
#
# `memo or set()` makes a new set where the caller passed an empty one, and the caller never sees what
# you found. Ask `is None`. And a default `memo=set()` would be one set for all calls.
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
# prerequisites: [named_modules]
# teaches: >-
#   that parameters and buffers are found by a walk over modules with a second memory, of tensors, and
#   what counts as the same tensor.
# leaves out: the walk itself, which may be PyTorch's.
# off limits: [torch.nn.Module.named_parameters, torch.nn.Module.parameters, torch.nn.Module.named_buffers, torch.nn.Module.buffers, torch.nn.Module.state_dict, torch.nn.Module._named_members, torch.nn.Module.get_parameter, torch.nn.Module.get_buffer]

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

# %% [markdown]
# The optimiser must get the matrix once, or it would step twice. The checkpoint has it under both
# names: whoever loads it may not know that they are one. (PyTorch saves the bytes once.)
#
# Same means: the same object. Two parameters with equal values are two. So are two parameters that
# look at the same memory, and so are two empty ones, which both have no address at all.

# %%
one, two = nn.Parameter(torch.empty(0)), nn.Parameter(torch.empty(0))
print(one.data_ptr(), two.data_ptr(), one is two, len({one, two}))

# %% [markdown]
# `in` asks different questions of a set and of a list. A set looks for the object, by its `id`. A
# list calls `==` on each, and on tensors `==` compares elements.
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
