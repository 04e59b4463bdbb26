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

# %% [markdown] chapter="ch11_watching"
# title: Watching a program run
# summary: >-
#   What did my training do, and would it have done the same if I had not looked? In this chapter you
#   build what watches a program run: meters, norms, statistics of what is inside, traces, the files
#   that TensorBoard reads. Each is held to one contract: the run is the same to the last bit, nothing
#   is kept, few values are read, and afterwards nothing is left. At the end you build a flight
#   recorder that nobody notices.

# %% [markdown]
# ## How to work
#
# Each exercise has a card, a few cells to read and run, and one cell to write: the one that
# raises `NotImplementedError`. The cell after it grades what you wrote, as often as you like.
#
# Where a cell calls `predict(...)`, write your guess in place of the dots before you run it.
# Nobody grades a guess.

# %%
import functools
import gc
import io
import itertools
import json
import math
import os
import random
import struct
import tempfile
import threading
import time
import warnings
import weakref
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from grader import grade, hint, predict, solution, watch_memory, watch_ops, written

# %% [markdown] sitting="looking"
# question: Would my run have been the same if I had not looked?
# reached: >-
#   Only if the look drew no random number, moved no buffer, wrote to nothing that is shared, and put
#   every mode back. What it costs are reads, for which the device waits, and what it keeps alive.

# %% [markdown]
# ## The observer's contract
#
# Whoever watches a training run wants to know what it did. So the run must be the one that would have
# been without the watching. Four promises make that precise, and every exercise of this chapter is
# graded on them:
#
# 1. **The run is the same.** Parameters, gradients, buffers, the optimizer's state and the states of all random
#    number generators are equal to the last bit.
# 2. **Nothing is kept.** No graph stays alive, and memory does not grow with the number of steps.
# 3. **Few values are read.** On a GPU, Python runs ahead of the device. Whoever asks for a value makes
#    it wait until the device has caught up.
# 4. **Nothing is left.** Hooks and modes are gone afterwards, also if the loop raised.
#
# Here is a training loop, and a question of two runs: are they the same?


# %%
def training(steps=3, watch=lambda model: None, after=lambda loss: None):
    """Train a small model; return its state and that of the random numbers, and what they weigh."""
    random.seed(0)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    batches = [(torch.randn(16, 4), torch.randn(16, 1)) for _ in range(3)]
    watch(model)
    for step in range(steps):
        x, y = batches[step % 3]
        optimizer.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        after(loss)
        optimizer.step()
    return [*model.state_dict().values(), torch.get_rng_state()]


def same(one, other):
    """Return whether two runs left the same bits."""
    return all(map(torch.equal, one, other))


unwatched = training()
print("run twice:               ", same(training(), unwatched))
print("each loss printed:       ", same(training(after=lambda loss: str(loss)), unwatched))
with watch_ops():
    print("each operator noted:     ", same(training(), unwatched))

# %% [markdown]
# A hook sees what a module returns. This one looks at sixteen of its numbers, chosen at random, as one
# does when the tensors are large:


# %%
def sampled(model):
    def look(module, inputs, output):
        flat = output.detach().flatten()
        flat[torch.randperm(len(flat))[:16]].std()

    model[0].register_forward_hook(look)


def all_of_it(model):
    def look(module, inputs, output):
        output.detach().std()

    model[0].register_forward_hook(look)


print("std of all of it:        ", same(training(watch=all_of_it), unwatched))
print("std of a random sample:  ", same(training(watch=sampled), unwatched))

# %% [markdown]
# `randperm` took numbers from the generator that dropout draws from. From there on, each mask is
# another. Nothing raised, and the loss goes down as well as before. It is another run.
#
# Look: modules/hooks#what=forward | A forward hook runs between two modules, in the middle of the step. What it
# returns takes the place of the output; what it does to the world, the next module meets.
#
# ## What a look costs
#
# A **read** is where a value goes from a tensor to Python: `loss.item()`, `float(loss)`, `if loss > 3:`,
# `print(loss)`. On a GPU the tensor may not even be computed yet: Python has only put the work into a
# queue. A read waits for the queue to be empty.
#
# **Predict.** A dispatch mode sees operators. How many does it see of `item`, of `tolist` and of `print`? Write
# three numbers, such as `(1, 1, 1)`.


# %%
def operators_of(read):
    x = torch.ones(())
    with watch_ops() as ops:
        read(x)
    return len(ops.names)


def operators_of_reads():
    return tuple(map(operators_of, (torch.Tensor.item, torch.Tensor.tolist, str)))


predict(..., operators_of_reads)

# %% [markdown]
# `item` is the operator `_local_scalar_dense`. The others copy from memory without asking the
# dispatcher. A `TorchFunctionMode` stands higher, where Python calls a method of a tensor, and sees them
# all. It does not see what C++ reads by itself. To count reads one needs both:


# %%
class Methods(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        seen.append(func.__name__)
        return func(*args, **(kwargs or {}))


x = torch.ones(2)
reads = {
    "x.tolist()": lambda: x.tolist(),
    "str(x)": lambda: str(x),
    "float(x[0])": lambda: float(x[0]),
    "f'{x[0]:.2f}'": lambda: f"{x[0]:.2f}",
    "1.0 in x": lambda: 1.0 in x,
    "x[x > 0]": lambda: x[x > 0],
}
for text, read in reads.items():
    seen = []
    with watch_ops() as ops, Methods():
        read()
    print(f"{text:>14}  methods: {', '.join(seen):<24} operators: {', '.join(ops.names)}")

# %% [markdown]
# The last line is a read as well: how many elements `x[x > 0]` has depends on the values, so Python has
# to know them before it can go on.
#
# What is **kept** costs memory. A list of losses keeps the graph of each step; a list of `loss.detach()` keeps
# four bytes for each. And a view keeps the whole storage that it looks into:

# %%
activation = torch.zeros(64, 1024)
row = activation[0].detach()
print("a row, as a view:  ", row.untyped_storage().nbytes(), "bytes stay alive")
print("a row, as a copy:  ", row.clone().untyped_storage().nbytes())

# %% [markdown] exercise="predict_disturbance"
# title: Predict what a look does
# minutes: 35
# difficulty: 2
# points: 7
# short: true
# prerequisites: []
# teaches: >-
#   which ways of looking change a run, which read values, and which keep memory or a graph alive: for
#   `detach`, `clone`, views, random numbers, `eval()` and a forward pass on the side.
# leaves out: >-
#   what a graph keeps for backward: here it has run already; other devices.
# off limits: [torch.random.fork_rng, torch.no_grad, torch.set_grad_enabled, torch.enable_grad]
# forbids: "running the program"
# allowed: []

# %% [markdown]
# Below is the place where people look: between `backward` and the optimizer's step.
#
# ```python
# model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 1))
# optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
# kept = []
# for epoch in range(2):
#     for batch, target in data:          # the same two batches in each epoch
#         hidden = model[:3](batch)       # (16, 8)
#         loss = ((model[3](hidden) - target) ** 2).mean()
#         optimizer.zero_grad()
#         loss.backward()
#         weight = model[3].weight        # (1, 8)
#         grad = weight.grad
#         ...                             # the look
#         optimizer.step()
# ```
#
# A look is a list of steps. Each is a tuple:
#
# | step | stands for |
# |---|---|
# | `("detach", "a", "loss")` | `a = loss.detach()` |
# | `("data", "a", "weight")` | `a = weight.data` |
# | `("clone", "a", "hidden")` | `a = hidden.clone()` |
# | `("row", "a", "hidden")` | `a = hidden[0]`, of a matrix |
# | `("mean", "a", "hidden")` | `a = hidden.mean()` |
# | `("item", "v", "loss")` | `v = loss.item()`, a number |
# | `("tolist", "v", "grad")` | `v = grad.tolist()`, a number or a list |
# | `("print", "grad")` | `print(grad)` |
# | `("if", "loss")` | `if loss > 3: pass` |
# | `("shape", "grad")` | `print(grad.shape)` |
# | `("append", "a")` | `kept.append(a)` |
# | `("mul_", "a")` | `a.mul_(2)` |
# | `("randperm",)` | `torch.randperm(16)` |
# | `("sample",)` | `random.sample(range(16), 4)` |
# | `("eval",)`, `("train",)` | `model.eval()`, `model.train()` |
# | `("forward",)` | `model(probe)`, with a batch of its own |
# | `("enter", "no_grad")` | the start of `with torch.no_grad():`, or `"fork_rng"`, of `with torch.random.fork_rng():` |
# | `("exit",)` | the end of the innermost `with` |
#
# `fork_rng` puts PyTorch's generator back at its end.
#
# **Predict.** The look is `model(probe)` within `torch.no_grad()` and within `fork_rng()`. Is the run the same?
# Write `True` or `False`.


# %%
def with_a_forward_pass_on_the_side():
    models = []

    def look(loss):
        with torch.no_grad(), torch.random.fork_rng():
            models[0](torch.ones(2, 4))

    return same(training(watch=models.append, after=look), unwatched)


predict(..., with_a_forward_pass_on_the_side)

# %% [markdown]
# Batch norm in training mode moves its running mean with every batch that it sees. `no_grad` switches off what
# autograd records, and nothing else.
#
# **Write `predict_disturbance(look)`.** Return a tuple of four:
#
# - `changes`, a `bool`: whether the run is another. The run is the model's state, the optimizer's state, the batches, and the
#   states of PyTorch's and Python's random number generators at the end.
# - `reads`, an `int`: how many steps of the look need a tensor's values in Python.
# - `bytes`, an `int`: how many bytes more each iteration of the loop keeps alive because of `kept`. The bytes of a storage count once, and not
#   at all if they are alive anyway: those of the model and of the batches. Numbers and lists are none. What a graph keeps does not count either.
# - `graph`, a `bool`: whether a tensor in `kept` has a `grad_fn`.
#
# All numbers are float32. The names at hand are `loss`, `hidden`, `weight`, `grad` and `batch`, which is (16, 4); a look makes each other name once. Every look is
# one that PyTorch runs without an error, and every `with` ends in it. Work it out; do not run it.
#
# <details><summary>Hint 1: facts of a tensor</summary>
#
# Four are enough: its shape, its storage (a name and a number of bytes), whether it requires grad, and whether it has a
# `grad_fn`. Views and what `detach` and `data` return have the storage of what they were made of.
#
# </details>
# <details><summary>Hint 2: what changes the run</summary>
#
# A write to a storage that is used again: which of the five are? A random number that is taken and not put back. A forward
# pass in training mode. And the mode in which the look ends.
#
# </details>
# <details><summary>Hint 3: what fork_rng does not put back</summary>
#
# Python's `random` has a generator of its own, and batch norm's running mean is no random number.
#
# </details>


# %% solution="predict_disturbance"
def predict_disturbance(look: list[tuple]) -> tuple[bool, int, int, bool]:
    """Return (changes, reads, bytes, graph) of a look, as above.

    look: steps as in the table, taken between `backward` and the optimizer's step
    """
    ### BEGIN SOLUTION
    # of each tensor: shape, storage, requires grad, has a grad_fn
    tensors = {
        "loss": ((), "loss", True, True),
        "hidden": ((16, 8), "hidden", True, True),
        "weight": ((1, 8), "weight", True, False),
        "grad": ((1, 8), "grad", False, False),
        "batch": ((16, 4), "batch", False, False),
    }
    size = {"loss": 4, "hidden": 512, "weight": 0, "grad": 32, "batch": 0}  # what lives anyway: 0
    changes, reads, kept, graph = False, 0, set(), False
    training, open_withs = True, []
    for kind, *args in look:
        records = "no_grad" not in open_withs
        if kind == "enter":
            open_withs.append(args[0])
        elif kind == "exit":
            open_withs.pop()
        elif kind in ("eval", "train"):
            training = kind == "train"
        elif kind == "randperm":
            changes |= "fork_rng" not in open_withs
        elif kind == "sample":
            changes = True  # fork_rng knows PyTorch's generators alone
        elif kind == "forward":
            changes |= training  # batch norm moves, whatever records or draws
        elif kind in ("item", "tolist", "print", "if"):
            reads += 1
        elif kind == "mul_":
            changes |= tensors[args[0]][1] in ("weight", "grad", "batch")
        elif kind == "append":
            if args[0] in tensors:
                _, storage, _, has_node = tensors[args[0]]
                kept.add(storage)
                graph |= has_node
        elif kind != "shape":
            name, source = args
            shape, storage, requires, _ = tensors[source]
            if kind in ("detach", "data"):
                tensors[name] = (shape, storage, False, False)
            elif kind == "row":  # a view says that it requires grad, recorded or not
                tensors[name] = (shape[1:], storage, requires, requires and records)
            else:
                shape = shape if kind == "clone" else ()
                tensors[name] = (shape, name, requires and records, requires and records)
                size[name] = 4 * math.prod(shape)
    changes |= not training  # the next step would run in eval mode
    return changes, reads, sum(size[storage] for storage in kept), graph
    ### END SOLUTION


# %% grade="predict_disturbance"
grade("predict_disturbance")
