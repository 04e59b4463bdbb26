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
# preload: [torch._dynamo, torch.utils.checkpoint]

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
import zlib
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.utils.checkpoint
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.profiler import ProfilerActivity, profile, record_function
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
# Look: autograd/tensors#code=x = torch.tensor([1., 2.], requires_grad=True);h = x * 2;seen =
# h.detach();seen.mul_(3)&line=3 | `seen` was detached, and has the memory of `h`. The last line, meant for what was
# seen, writes to what the next module gets.
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
#
# Draw: show_storage(torch.zeros(6, 4)[0].detach()) | A row of six times four numbers, as a view. It reads four
# cells, and all twenty-four stay alive with it.

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

# %% [markdown]
# ## A number for many steps
#
# Losses come one for each batch, and somebody wants one number. Three ways to get a wrong one:

# %%
rows = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])
batches = rows.split(6)  # the last batch is short, as it is in every epoch
print("mean of the batches' means:", sum(batch.mean().item() for batch in batches) / len(batches))
print("mean of all rows:          ", rows.mean().item())

tokens = torch.tensor([[1.0, 2.0, 3.0], [3.0, 0.0, 0.0]])  # a loss for each token, and two pads
real = torch.tensor([[True, True, True], [True, False, False]])
print("mean of all, pads too:     ", tokens.mean().item())
print("mean of the rows' means:   ", ((tokens * real).sum(1) / real.sum(1)).mean().item())
print("mean of the tokens:        ", (tokens.sum() / real.sum()).item())

data = 10_000 + 0.01 * torch.tensor([1.0, -1.0] * 500)
print("variance, by squares:      ", ((data**2).mean() - data.mean() ** 2).item())
print("variance, from the mean:   ", f"{((data.double() - data.double().mean()) ** 2).mean():.1e}")

# %% [markdown]
# The last is cancellation: two numbers near 10⁸, in float32, differ by less than their spacing. Chan, Golub and
# LeVeque pool two groups without it. A group is a count $n$, a mean $m$ and a sum of squared distances from that mean, $s$:
#
# $$n = n_1 + n_2 \qquad d = m_2 - m_1 \qquad m = m_1 + d\,\frac{n_2}{n} \qquad s = s_1 + s_2 + d^2\,\frac{n_1 n_2}{n}$$
#
# A **running average** forgets: $a \leftarrow \beta a + (1 - \beta) x$. It begins with 0, and for the first
# $1 / (1 - \beta)$ steps that is what one sees of it. Adam divides by $1 - \beta^k$ after $k$ steps for that reason.
#
# **Predict.** $\beta$ is 0.9, and every loss is 2. What is the average after one step, without the division?


# %%
def first_average():
    average = 0.0
    average = 0.9 * average + 0.1 * 2.0
    return round(average, 3)


predict(..., first_average)

# %% [markdown]
# Draw: show_curves({name: [(k, 2 * (1 - 0.9**k) / (1 if name == "as it is" else 1 - 0.9**k)) for k
# in range(1, 41)] for name in ("as it is", "divided")}, "step", "average") | Forty losses of 2. What
# rises is the average's own beginning.
#
# And what does it cost to look? `total += loss.item()` makes the device wait in each step. `total += loss` does not,
# and `total` requires grad: it holds the graph of every step. Between them lies a tensor without a graph:

# %%
weight = torch.ones((), requires_grad=True)
total, detached = torch.zeros(()), torch.zeros(())
for _ in range(3):
    loss = weight * 2
    total = total + loss
    detached = detached + loss.detach()
print("total:   ", total.item(), " graph:", total.grad_fn.name())
print("detached:", detached.item(), " graph:", detached.grad_fn)

# %% [markdown] exercise="Meter"
# title: A meter that does not read
# minutes: 45
# difficulty: 3
# points: 15
# short: true
# prerequisites: []
# teaches: >-
#   means over samples and tokens, a variance that pools, a running average from its first step on, and how to
#   compute all of it without a read, where nothing may depend on a value.
# leaves out: several devices; percentiles and histograms.
# off limits: []

# %% [markdown]
# Without a read, Python does not know how many tokens of a batch count, nor whether any does. So it cannot
# take a branch on it, nor pick elements by a mask. What depends on values has to be computed
# with tensors: `torch.where(condition, one, other)` computes both and chooses.
#
# **Write the class `Meter(beta=0.98)`.**
#
# - `update(values, mask=None)` takes a batch of values: a floating tensor of any shape, of which those count where the boolean `mask`, of
#   the same shape, is true; all, without a mask. It reads nothing.
# - `merge(other)` takes in all values that another meter has seen, as if it had seen them itself. It reads nothing and
#   leaves `other` as it is. Its running average stays its own.
# - `value()` returns a dict. It reads at most once, and may be called as often as one likes.
#
# | key | is |
# |---|---|
# | `"count"` | how many values have counted, an `int` |
# | `"mean"` | their mean |
# | `"variance"` | the mean of their squared distances from it |
# | `"smooth"` | the running average of the batches' means with `beta`, divided by $1 - \beta^k$. A batch of which no value counts is no step |
#
# The last three are `float`, and NaN while there is nothing to tell. Compute in float64; the variance is to be right, to four digits, also
# where the spread is 10¹⁰ times smaller than the mean. A NaN that counts makes all three NaN; one that does not count changes nothing.
# A meter keeps no graph, and no more memory the more it has seen. What happens to `values` later does not matter.
#
# <details><summary>Hint 1: the state</summary>
#
# Five tensors without dimensions: count, mean, sum of squared distances, the running average, and its weight, which
# is the running average of ones.
#
# </details>
# <details><summary>Hint 2: one batch is a group</summary>
#
# Compute count, mean and sum of squares of the batch, and pool it with what you have. Then `merge` is the same call. Where a
# count is 0, divide by `clamp(min=1)`.
#
# </details>
# <details><summary>Hint 3: what does not count may be NaN</summary>
#
# NaN times 0 is NaN. `torch.where(mask, values, 0.0)` has nothing of it left.
#
# </details>


# %% solution="Meter"
class Meter:
    """Mean, variance and running average of values, which are read only when they are asked for.

    beta: how much of the running average stays at each step
    """

    def __init__(self, beta: float = 0.98):
        ### BEGIN SOLUTION
        self.beta = beta
        # count, mean, sum of squared distances from the mean; running average and its weight
        self.group = tuple(torch.zeros(3, dtype=torch.float64))
        self.average, self.weight = torch.zeros(2, dtype=torch.float64)

    @torch.no_grad()
    def update(self, values, mask=None):
        values = values.double()
        mask = torch.ones_like(values, dtype=torch.bool) if mask is None else mask
        count = mask.sum()
        mean = torch.where(mask, values, 0.0).sum() / count.clamp(min=1)
        squares = torch.where(mask, (values - mean) ** 2, 0.0).sum()
        self.pool(count, mean, squares)
        move = (1 - self.beta) * (count > 0).double()  # a batch of nothing leaves all as it was
        self.average = self.average + move * (mean - self.average)
        self.weight = self.weight + move * (1 - self.weight)

    def merge(self, other):
        self.pool(*other.group)

    def pool(self, count, mean, squares):
        n, m, s = self.group
        distance, share = mean - m, count / (n + count).clamp(min=1)
        self.group = (n + count, m + distance * share, s + squares + distance**2 * n * share)

    def value(self):
        # one read for all five
        numbers = torch.stack([*self.group, self.average, self.weight]).tolist()
        count, mean, squares, average, weight = numbers
        nan = math.nan
        return {
            "count": int(count),
            "mean": mean if count else nan,
            "variance": squares / count if count else nan,
            "smooth": average / weight if weight else nan,
        }
        ### END SOLUTION


# %% grade="Meter"
grade("Meter")

# %% [markdown] sitting="numbers"
# question: Are the speed and the gradient norm on my curve what they say?
# reached: >-
#   A rate is samples by seconds, over all of the measured time, and its clock is read when the device has
#   finished. A gradient's norm depends on when one asks: before unscaling, before clipping, or after.

# %% [markdown]
# ## Samples by seconds
#
# Two batches: 100 samples in 10 seconds, then 10 samples in 10 seconds. The mean of the two rates, 10 and 1,
# is 5.5 samples a second. In fact 110 samples took 20 seconds:

# %%
steps = [(100, 10.0), (10, 10.0)]
print("mean of the rates:  ", sum(n / s for n, s in steps) / len(steps))
print("samples by seconds: ", sum(n for n, _ in steps) / sum(s for _, s in steps))

# %% [markdown]
# Four more things go wrong with a clock:
#
# - **Warm-up.** The first steps load libraries, allocate, choose algorithms, compile. They are slower by orders of magnitude.
# - **Pauses.** An evaluation or a checkpoint in between is no training.
# - **Handing over is not finishing.** On a GPU, a step's call returns when its work is in the queue. A clock that is read then
#   measures how fast Python can hand over.
# - **Waiting is not starving.** While the loop waits for a batch, the device may still work on the last one. Only if it has
#   nothing left to do does the wait cost anything.
#
# Look: dataloader/consumer#samples=16&batch_size=2&num_workers=2&load=1&work=6 |
# The consumer's lane has no gap: whoever waits here waits for nothing. Turn its work down to 1, and it starves.
#
# Here is a log of such a run, with times in seconds. The second `fetch` waits from 4 to 7; the device
# works until 6, so it starves for one second only.

# %%
log = [
    ("fetch", 0.0),
    ("batch", 1.0, 32),
    ("launched", 2.0),
    ("fetch", 4.0),
    ("finished", 6.0),
    ("batch", 7.0, 16),
    ("launched", 8.0),
    ("finished", 9.0),
]
for kind, at, *rest in log:
    print(f"{at:4.1f}  {kind} {rest or ''}")

# %% [markdown]
# Draw: show_spans({"the loop": [("waits 1", 0, 1), ("hands over 1", 1, 2), ("waits 2", 4, 7),
# ("hands over 2", 7, 8)], "the device": [("step 1", 1, 6), ("step 2", 7, 9)]}, "s") | The same log.
# From 6 to 7 the device has nothing to do.
#
# Which part of these nine seconds is a rate over, then? It depends on where one begins to measure.

# %% [markdown] exercise="throughput"
# title: From a log to samples a second
# minutes: 30
# difficulty: 2
# points: 11
# prerequisites: []
# teaches: >-
#   what a rate is over, where its clock starts and stops, and when waiting for data costs time.
# leaves out: reading a real clock; several devices.
# off limits: []

# %% [markdown]
# **Write `throughput(events, warmup=1)`.** Return a tuple: samples per second, and the share of the measured time in which
# the device starved, both `float`.
#
# `events` is a list of tuples in the order of their times:
#
# | event | says |
# |---|---|
# | `("fetch", t)` | the loop asks its loader for a batch |
# | `("batch", t, n)` | it has it: `n` samples. The device has this step's work from now on |
# | `("launched", t)` | Python has handed over all of the step's work |
# | `("finished", t)` | the device has finished the oldest step that it had not finished yet |
# | `("pause", t)`, `("resume", t)` | an evaluation begins and ends, while the device has no step to work on and no batch is asked for |
#
# - The measured time begins when the `warmup`-th step is finished; with the first event, if `warmup` is 0. It ends when the last step that
#   finishes is finished. Pauses do not count.
# - The samples are those of the steps that finish in the measured time.
# - The device starves while the loop waits for a batch and all steps that the device has had are finished.
# - A log may end anywhere, as a run does that was killed: with a `fetch`, with steps under way, or in a pause.
# - If no step is finished after the warm-up, raise `ValueError`.
#
# <details><summary>Hint 1: between two events</summary>
#
# Walk from event to event. Between two of them nothing changes, so the time between belongs to one state: paused or not,
# fetching or not, steps under way or not.
#
# </details>
# <details><summary>Hint 2: where to stop</summary>
#
# Nobody knows at an event whether a step will still finish. Collect seconds apart, and add them to the result
# each time a step finishes.
#
# </details>
# <details><summary>Hint 3: is the device at work?</summary>
#
# Count the batches that have come and the steps that are finished. While the two are equal, the device has nothing to do.
#
# </details>


# %% solution="throughput"
def throughput(events: list[tuple], warmup: int = 1) -> tuple[float, float]:
    """Return (samples per second, share of the measured time in which the device starved).

    events: as in the table above, in the order of their times, which are seconds
    warmup: how many steps do not count
    """
    ### BEGIN SOLUTION
    sizes, finished, samples = [], 0, 0
    seconds = starved = 0.0
    span = hungry = 0.0  # since the last step that finished
    fetching = paused = False
    before = events[0][1] if events else 0.0
    for kind, now, *rest in events:
        if finished >= warmup and not paused:
            span += now - before
            if fetching and finished == len(sizes):
                hungry += now - before
        before = now
        if kind == "finished":
            finished += 1
            if finished > warmup:  # now it is known that the time since the last one counts
                seconds, starved = seconds + span, starved + hungry
                samples += sizes[finished - 1]
            span = hungry = 0.0
        elif kind == "batch":
            sizes.append(rest[0])
        # `launched` says what Python has done, and nothing about the device
        fetching = kind == "fetch" or (fetching and kind != "batch")
        paused = kind == "pause" or (paused and kind != "resume")
    if finished <= warmup:
        raise ValueError(f"{finished} steps are finished, and {warmup} of them are warm-up")
    return samples / seconds, starved / seconds
    ### END SOLUTION


# %% grade="throughput"
grade("throughput")

# %% [markdown]
# ## Which norm?
#
# "The gradient norm" is the length of all gradients, laid end to end as one vector. It is not the sum of the parameters'
# norms, but the norm of those norms:

# %%
pieces = [torch.tensor([3.0, 0.0]), torch.tensor([0.0, 4.0])]
norms = torch.stack([torch.linalg.vector_norm(piece) for piece in pieces])
print("sum of the norms: ", norms.sum().item())
print("norm of the norms:", torch.linalg.vector_norm(norms).item())
print("norm of all:      ", torch.linalg.vector_norm(torch.cat(pieces)).item())

# %% [markdown]
# When training in half precision, the loss is multiplied by a scale before `backward`, so that small gradients do not
# become 0. Until somebody calls `scaler.unscale_(optimizer)`, what lies in `.grad` is too large by that factor. Then
# `clip_grad_norm_` may make it shorter. One step, three norms:

# %%
weight = nn.Parameter(torch.tensor([3.0, 4.0]))
optimizer = torch.optim.SGD([weight], lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
scaler.scale((weight**2).sum()).backward()
print("scaled:   ", torch.linalg.vector_norm(weight.grad).item())
scaler.unscale_(optimizer)
print("unscaled: ", torch.linalg.vector_norm(weight.grad).item())
returned = nn.utils.clip_grad_norm_([weight], max_norm=1.0)
print("clipped:  ", f"{torch.linalg.vector_norm(weight.grad).item():.4f}")
print("returned by clip_grad_norm_:", returned.item())

# %% [markdown]
# `clip_grad_norm_` returns the norm **before** clipping. What it multiplies by is
# `max_norm / (norm + 1e-6)`, and 1 at most.
#
# **Predict.** Ten half-precision gradients are 300 each. Their norm is about 949, far below 65504, the largest half. What is the
# square root of the sum of their squares, computed in half?


# %%
def norm_by_squares():
    gradients = torch.full((10,), 300.0, dtype=torch.float16)
    return (gradients * gradients).sum().sqrt().item()


predict(..., norm_by_squares)

# %% [markdown]
# 300 squared is 90,000, and no half. `torch.linalg.vector_norm` accumulates in a wider format, and with
# `dtype=torch.float64` it returns one, without a copy of the gradient.
#
# Look: formats/round#format=fp16&fp32=47afc800 | 90,000 on its way into half precision: beyond the largest number, so it becomes infinity.

# %% [markdown] exercise="grad_norms"
# title: All gradient norms with one read
# minutes: 30
# difficulty: 2
# points: 14
# short: true
# prerequisites: []
# teaches: >-
#   the norm of norms; that what is in `.grad` may be scaled; what clipping would leave; and how to hand several
#   numbers to Python at the price of one.
# leaves out: sparse gradients; gradients that are sharded.
# off limits: [torch.nn.utils.clip_grad_norm_, torch.nn.utils.get_total_norm, torch.nn.utils.clip_grads_with_norm_]
# forbids: PyTorch's own total norm and clipping

# %% [markdown]
# **Write `grad_norms(groups, scale, max_norm)`.** It is called after `backward`, when the gradients are still scaled. Return a
# dict:
#
# | key | is |
# |---|---|
# | `"scaled"` | the norm of all gradients, as they are in `.grad` |
# | `"norm"` | their norm once they are unscaled: divided by `scale` |
# | `"clipped"` | the norm that they have after unscaling and `clip_grad_norm_(parameters, max_norm)` |
# | `"groups"` | a dict: for each group's name the norm of its gradients, unscaled |
#
# - `groups` is a dict from a name to a list of parameters. One whose `.grad` is `None` adds nothing; a group in which all are has
#   the norm 0. There is at least one group.
# - `scale` is a tensor without dimensions, as `GradScaler` has it on the device. To read it is a read.
# - All norms are `float`, computed in float64: half gradients of 60,000 and float32 gradients of 10³⁰ have a norm.
#   Where a gradient is infinite, so are the norms that it is part of; of `"clipped"` nothing is asked then.
# - **Observe:** read once at most, leave the gradients as they are, and make no copy of one. A new tensor may have as many elements as there
#   are parameters, not as there are weights.
#
# <details><summary>Hint 1: no copy</summary>
#
# A norm is a linear thing: that of `grad / scale` is that of `grad`, divided by `scale`. The second needs no new gradient.
#
# </details>
# <details><summary>Hint 2: one read</summary>
#
# `torch.stack` makes one tensor of many without dimensions, and `tolist` reads it at once.
#
# </details>
# <details><summary>Hint 3: groups without a gradient</summary>
#
# The norm of a list that holds a 0 beside the others' norms is their norm; that of a list that holds nothing else is 0.
#
# </details>


# %% solution="grad_norms"
def grad_norms(
    groups: dict[str, list[nn.Parameter]], scale: torch.Tensor, max_norm: float
) -> dict[str, Any]:
    """Return the norms of gradients: scaled, unscaled, clipped, and of each group.

    groups: parameters by the name of their group
    scale: (), what the gradients are too large by
    max_norm: what clipping would cut the norm to
    """
    ### BEGIN SOLUTION
    zero = torch.zeros((), dtype=torch.float64)

    def of_group(parameters: list[nn.Parameter]) -> torch.Tensor:
        norms = [
            torch.linalg.vector_norm(p.grad, dtype=torch.float64)
            for p in parameters
            if p.grad is not None
        ]
        return torch.linalg.vector_norm(torch.stack([zero, *norms]))

    each = torch.stack([of_group(parameters) for parameters in groups.values()])
    scaled = torch.linalg.vector_norm(each)
    norm = scaled / scale
    clipped = norm * (max_norm / (norm + 1e-6)).clamp(max=1)
    first = torch.stack([scaled, norm, clipped])
    numbers = torch.cat([first, each / scale]).tolist()
    return {
        "scaled": numbers[0],
        "norm": numbers[1],
        "clipped": numbers[2],
        "groups": dict(zip(groups, numbers[3:], strict=True)),
    }
    ### END SOLUTION


# %% grade="grad_norms"
grade("grad_norms")

# %% [markdown] sitting="inside"
# question: What went on inside the model while it trained?
# reached: >-
#   Hooks see what modules return, at the moment at which they return it. They compute a statistic at
#   once, keep that and nothing else, and go again. Which units are dead, only all of the data tell.

# %% [markdown]
# ## A hook that keeps
#
# To see what is inside a model, people collect what its modules return. Here are three ways to do it, and what each
# keeps alive of one batch:


# %%
def bytes_kept(collect):
    kept = []
    layer = nn.Linear(32, 64)
    layer.register_forward_hook(lambda module, inputs, output: kept.append(collect(output)))
    layer(torch.ones(16, 32))
    return kept[0].untyped_storage().nbytes(), kept[0].grad_fn is not None


for text, collect in {
    "output": lambda output: output,
    "output.detach()": lambda output: output.detach(),
    "output.detach().std()": lambda output: output.detach().std(),
}.items():
    size, graph = bytes_kept(collect)
    print(f"{text:<22} {size:5} bytes, with a graph: {graph}")

# %% [markdown]
# `detach` lets go of the graph and keeps all the bytes. A statistic is a number.
#
# It also has to be taken **at once**. What a module returned is handed to the next one, and that may write to it:

# %%
model = nn.Sequential(nn.Linear(2, 2, bias=False), nn.ReLU(inplace=True))
model[0].weight.data = torch.tensor([[-1.0, -1.0], [1.0, 1.0]])
kept, at_once = [], []
model[0].register_forward_hook(lambda module, inputs, output: kept.append(output.detach()))
model[0].register_forward_hook(lambda module, inputs, output: at_once.append(output.tolist()))
model(torch.ones(1, 2))
print("what the linear layer returned:", at_once[0])
print("what was kept of it:           ", kept[0].tolist())

# %% [markdown]
# Look: modules/walk#model=body-Sequential*body.0-Linear-2-2*body.1-ReLU*head-Linear-2-2&call=named_modules |
# The names under which a hook is registered are those of `named_modules`: `body.0` comes after `body`, in which it is.
#
# **Predict.** A forward hook returns something, say the mean of the output, because its last line happens to. What does the
# next module get? Write `"output"` or `"mean"`.


# %%
def handed_on():
    got = []
    model = nn.Sequential(nn.Linear(2, 3), nn.Identity())
    model[0].register_forward_hook(lambda module, inputs, output: output.mean())
    model[1].register_forward_hook(lambda module, inputs, output: got.append(inputs[0]))
    model(torch.ones(1, 2))
    return "output" if got[0].shape == (1, 3) else "mean"


predict(..., handed_on)

# %% [markdown] exercise="ActivationStats"
# title: Statistics of what is inside
# minutes: 40
# difficulty: 3
# points: 19
# prerequisites: [Meter]
# teaches: >-
#   hooks that come and go, statistics that are taken at once and pool over batches, and sampling every so many steps.
# leaves out: percentiles; models that are compiled; modules that are called from several threads.
# off limits: []

# %% [markdown]
# **Write the class `ActivationStats(model, names, every=1)`**, a context manager. Within the `with`, it watches what the
# modules return whose names, as in `model.named_modules()`, are in the list `names`.
#
# - Only calls of `model` as a whole, in training mode, count. Of those, the first is watched, and every `every`-th after it. What a
#   module returns while a watched call runs is taken in; each time, if it is called several times.
# - A module may return a tensor, or tuples, lists and dicts of them, one in another. All floating tensors in it count.
# - `report()` returns a dict from each name to a dict, within the `with` or after it:
#
# | key | is |
# |---|---|
# | `"elements"` | how many numbers were seen, an `int` |
# | `"mean"`, `"std"` | their mean, and the root of their mean squared distance from it |
# | `"zeros"` | the share of them that is 0 |
# | `"largest"` | the largest absolute value |
#
# All but the first are `float`, and NaN where nothing was seen. Compute in float64: activations of half precision do
# not overflow. Four digits of `std` are enough, for numbers whose mean is at most 1000 times as large as it.
# - **Observe:** nothing is read before `report()`, which reads once. The run is the same. No activation and no graph is kept. When the
#   `with` ends, also by an error, your hooks are gone, those of others are not, and the error goes on.
#
# <details><summary>Hint 1: which calls</summary>
#
# A forward pre-hook on the model itself runs before each call: it can count, look at `training`, and decide whether
# this call is watched. A forward hook of its own ends that.
#
# </details>
# <details><summary>Hint 2: what to keep</summary>
#
# For each name, the number of elements, which Python knows from the shape, and one small tensor: sum, sum of squares, number
# of zeros. The largest is a second one, since it does not add up.
#
# </details>
# <details><summary>Hint 3: all tensors of an output</summary>
#
# `tree_leaves(output)` has them. `is_floating_point()` tells which count.
#
# </details>


# %% solution="ActivationStats"
class ActivationStats:
    """Statistics of what modules return, taken while a model trains.

    names: of the modules to watch
    every: of the calls in training mode, every how many-th is watched
    """

    def __init__(self, model: nn.Module, names: list[str], every: int = 1):
        ### BEGIN SOLUTION
        self.model, self.names, self.every = model, names, every
        self.calls, self.watching, self.handles = 0, False, []
        self.elements = dict.fromkeys(names, 0)
        # sum, sum of squares, number of zeros; and the largest absolute value
        self.sums = {name: torch.zeros(3, dtype=torch.float64) for name in names}
        self.largest = {name: torch.zeros((), dtype=torch.float64) for name in names}

    def __enter__(self):
        modules = dict(self.model.named_modules())
        self.handles = [self.model.register_forward_pre_hook(self.begin)]
        for name in self.names:
            look = functools.partial(self.look, name)
            self.handles.append(modules[name].register_forward_hook(look))
        self.handles.append(self.model.register_forward_hook(self.end))
        return self

    def __exit__(self, *error):
        for handle in self.handles:
            handle.remove()

    def begin(self, module, inputs):
        self.watching = module.training and self.calls % self.every == 0
        self.calls += module.training

    def end(self, module, inputs, output):
        self.watching = False

    @torch.no_grad()
    def look(self, name, module, inputs, output):
        if not self.watching:
            return
        for x in tree_leaves(output):
            if isinstance(x, torch.Tensor) and x.is_floating_point() and x.numel():
                self.elements[name] += x.numel()
                x = x.double()  # the statistic is taken now: the next module may write to x
                parts = torch.stack([x.sum(), (x * x).sum(), (x == 0).sum()])
                self.sums[name] = self.sums[name] + parts
                self.largest[name] = torch.maximum(self.largest[name], x.abs().max())

    def report(self):
        rows = [torch.cat([self.sums[name], self.largest[name][None]]) for name in self.names]
        found, nan = {}, math.nan
        for name, row in zip(self.names, torch.stack(rows).tolist(), strict=True):
            count = self.elements[name]
            mean, squares, zeros = (x / count if count else nan for x in row[:3])
            found[name] = {
                "elements": count,
                "mean": mean,
                "std": math.sqrt(max(squares - mean**2, 0.0)) if count else nan,
                "zeros": zeros,
                "largest": row[3] if count else nan,
            }
        return found
        ### END SOLUTION


# %% grade="ActivationStats"
grade("ActivationStats")

# %% [markdown]
# ## Units that never fire
#
# A ReLU passes no gradient where it returns 0. A unit that returns 0 for **every** sample gets no gradient at all, from no
# batch, and never changes again: it is dead. One batch does not show that. Here are 200 units and 1000 samples:

# %%
generator = torch.Generator().manual_seed(3)
layer = nn.Linear(20, 200)
layer.weight.data = torch.randn(200, 20, generator=generator) / 20**0.5
layer.bias.data = -2.0 + 0.3 * torch.randn(200, generator=generator)
samples = torch.randn(1000, 20, generator=generator)
fired = layer(samples).relu() != 0  # (samples, units)
for count in (32, 100, 1000):
    print(f"silent on the first {count:>4} samples:", int((~fired[:count].any(0)).sum()))

# %% [markdown]
# Draw: show_cells({f"unit {unit}": fired[:, unit].view(10, 100).any(1).tolist() for unit in
# fired.sum(0).argsort(stable=True)[:8].tolist()}, [f"{100 * part}…" for part in range(10)],
# bare=True) | The eight most silent units: coloured where one fires for any of a hundred samples.
# Which of them are dead?
#
# To ask over all data means to run the model over all data: in eval mode, lest dropout make zeros of its own and batch norm
# move. And then to put the modes back. **All of them**: a model may have parts that stay in eval mode while the rest trains.
#
# **Predict.** A batch norm was frozen by `eval()`. Then its model was put in eval mode, and by `model.train()` back
# in training mode. Is the batch norm in training mode? Write `True` or `False`.


# %%
def after_train():
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    model[1].eval()
    model.eval()
    model.train()
    return model[1].training


predict(..., after_train)

# %% [markdown] exercise="dead_units"
# title: Find the units that never fire
# minutes: 25
# difficulty: 2
# points: 12
# short: true
# prerequisites: []
# teaches: >-
#   a question over all data, channels in any dimension, and what it takes to leave a model as it was.
# leaves out: bringing a dead unit back.
# off limits: []

# %% [markdown]
# **Write `dead_units(model, channels, batches)`.** Return a dict from each name in `channels` to the ascending list of its dead units.
#
# - `channels` is a dict from a module's name to the dimension that counts its units: 1 or -3 for a convolution's (batch, channel, height, width), -1
#   for (batch, position, unit).
# - A unit is dead if all it returns is 0, for every sample of every batch and at every position. A number below 0 is not 0.
#   A module that is called several times has a dead unit if it is 0 each time.
# - `batches` is an iterable that can be walked once. Each batch is what `model` takes as its one argument. There is at least one.
# - Run the model in eval mode.
# - **Observe:** afterwards, also if the model raises, every module is in the mode in which it was, hooks are gone, and
#   parameters, buffers and random numbers are as before. No graph and no activation is kept. Read at most
#   once for each name, however many batches there are.
#
# <details><summary>Hint 1: over batches</summary>
#
# For each name keep a boolean tensor with an element for each unit: has it fired? With each batch, `|` adds to it.
#
# </details>
# <details><summary>Hint 2: all dimensions but one</summary>
#
# `tensor.any(dim=(0, 2, 3))` reduces several at once. `dim % tensor.dim()` is never negative.
#
# </details>
# <details><summary>Hint 3: put back what was there</summary>
#
# Note `(module, module.training)` of every module before `eval()`. In a `finally`, set each one's `training` to it.
#
# </details>


# %% solution="dead_units"
def dead_units(
    model: nn.Module, channels: dict[str, int], batches: Iterable
) -> dict[str, list[int]]:
    """Return the units of each module that are 0 for all data.

    channels: the dimension that counts units, by a module's name
    batches: what the model is called with
    """
    ### BEGIN SOLUTION
    fired = {}
    modes = [(module, module.training) for module in model.modules()]
    modules, handles = dict(model.named_modules()), []

    def look(name, module, inputs, output):
        unit = channels[name] % output.dim()
        others = tuple(dim for dim in range(output.dim()) if dim != unit)
        now = (output != 0).any(dim=others)
        fired[name] = fired[name] | now if name in fired else now

    try:
        for name in channels:
            look_there = functools.partial(look, name)
            handles.append(modules[name].register_forward_hook(look_there))
        model.eval()
        with torch.no_grad():
            for batch in batches:
                model(batch)
    finally:
        for handle in handles:
            handle.remove()
        for module, training in modes:  # model.train() would thaw what was frozen
            module.training = training
    return {
        name: [unit for unit, alive in enumerate(fired[name].tolist()) if not alive]
        for name in channels
    }
    ### END SOLUTION


# %% grade="dead_units"
grade("dead_units")

# %% [markdown] sitting="nonfinite"
# question: Which operator made the first NaN?
# reached: >-
#   The first that had no NaN among its arguments and one in its result. A dispatch mode sees every
#   operator, forward and backward, and which was the first can be counted without a read.

# %% [markdown]
# ## Where the first NaN was made
#
# A loss is NaN. Somewhere before, an operator got good numbers and returned a bad one; all later ones have only handed it
# on. Module hooks see what modules return, and miss what happens between, or what is hidden again:


# %%
class Risky(nn.Module):
    def forward(self, x):
        return torch.log(x).nan_to_num(0.0)  # wrong for x < 0, and nobody sees it


model = nn.Sequential(nn.Linear(4, 4), Risky())
finite = []
for module in model.modules():
    module.register_forward_hook(lambda m, i, output: finite.append(bool(output.isfinite().all())))
model(torch.randn(8, 4, generator=torch.Generator().manual_seed(0)))
print("what modules return is finite:", finite)

# %% [markdown]
# `torch.autograd.detect_anomaly` looks at something else: whether a function **of backward** returns NaN. It says nothing of a
# NaN in forward that gets no gradient, and nothing of infinities.
#
# A dispatch mode sees each operator with its arguments and its result, forward and backward. But not all that is not finite
# is a mistake. A mask for attention is made of $-\infty$ on purpose. `torch.empty` returns what was
# in memory before, and that may be anything.
#
# Draw: show_cells({name: [(f"{value:.2g}", "NaN" if math.isnan(value) else "infinity" if
# math.isinf(value) else "finite") for value in values.tolist()] for x in
# [torch.tensor([-1.0, 0.0, 1.0])] for name, values in (("`x`", x), ("`x.log()`", x.log()),
# ("`x.log().exp()`", x.log().exp()))}) | `log` made a NaN and an infinity. `exp` made neither: the
# one it handed on, and the other it hid.
#
# **Predict.** Is a sum a good test? All elements of `x` are finite. Is `x.sum()`? Write `True` or `False`.


# %%
def sum_is_finite():
    x = torch.full((4,), 2e38)
    return bool(x.sum().isfinite())


predict(..., sum_is_finite)

# %% [markdown]
# It is not: sums of finite numbers overflow. Ask each element, by `isnan` and `isinf`.
#
# Look: formats/bits#format=fp16&bits=7c00 | Infinity in half precision: all ones in the exponent, and no bit behind
# them. Flip any bit of the mantissa, and it is a NaN.
#
# Look: autograd/tensors#code=x = torch.tensor([100.], requires_grad=True);y = x.exp();z = 1 / y;loss = z.sum();loss.backward()&line=5 |
# The loss is 0. But `exp` has overflowed on the way, and in backward 0 times Infinity is a NaN.

# %% [markdown] exercise="first_nonfinite"
# title: Find the operator that made the first NaN
# minutes: 60
# difficulty: 4
# points: 17
# prerequisites: []
# teaches: >-
#   a dispatch mode as an observer: to look before and after an operator, to tell made from handed on, and to find
#   out without a read on the way.
# leaves out: tensors that are no plain ones; several devices; which element it was.
# off limits: [torch.autograd.detect_anomaly, torch.autograd.set_detect_anomaly]
# forbids: PyTorch's anomaly mode

# %% [markdown]
# **Write `first_nonfinite(step, model)`.** Call `step()` once. Return what made the first NaN or infinity in it, as a tuple, or
# `None` if nothing did:
#
# | place | is |
# |---|---|
# | 0 | the operator, as `str(func)` has it in a dispatch mode: `"aten.log.default"` |
# | 1 | `"nan"` or `"inf"`: what it made; `"nan"` if it made both |
# | 2 | the name, as in `model.named_modules()`, of the innermost module that was running in forward; `""` for the model itself, outside of it, and in backward |
# | 3 | a `bool`: whether that was in backward |
#
# - An operator **makes a NaN** if there is one in what it returns or has written to, and none in what it was given. It **makes an infinity** if there
#   is one in that, and neither NaN nor infinity in what it was given. What it was given are its arguments as they
#   were before the call, tensors and numbers: `fill_(-inf)` makes no infinity. The tensor that it gets as
#   `out` it was not given.
# - What `torch.empty` and its like return is memory that nobody has written. They make nothing: operators whose
#   name holds `empty`.
# - `torch._C._current_graph_task_id()` is -1, except while backward runs.
# - A module may raise, and its caller may catch that and go on.
# - **Observe:** read once at most, after the step. The step computes what it would have computed. An error of `step` goes on. Modes and
#   hooks are gone afterwards. No tensor of the step is kept.
#
# <details><summary>Hint 1: no read</summary>
#
# Number the operators as they come, and keep names in a list of Python's. One tensor without dimensions holds the number of the first
# that made something: -1 until then. `torch.where(first < 0, …)` writes it once.
#
# </details>
# <details><summary>Hint 2: before and after</summary>
#
# `log_` writes over its argument, so look at all arguments before the call. And look at them again after it, beside the result:
# `_foreach_add_` returns nothing.
#
# </details>
# <details><summary>Hint 3: the innermost module</summary>
#
# A forward pre-hook pushes a name on a stack, and a forward hook pops it. With `always_call=True` the second runs also if
# the module raises.
#
# </details>


# %% solution="first_nonfinite"
def first_nonfinite(step: Callable[[], Any], model: nn.Module) -> tuple[str, str, str, bool] | None:
    """Return (operator, kind, module, in backward) of the first that made a NaN or an infinity.

    step: called once
    model: whose modules are named
    """
    ### BEGIN SOLUTION
    seen, stack = [], [""]
    first = torch.tensor(-1)  # twice the number of the operator, and 1 more for a NaN

    def bad(values):
        """Return whether there is a NaN, and whether there is an infinity, as tensors."""
        nan = inf = torch.tensor(False)
        for x in tree_leaves(values):
            if isinstance(x, float):
                nan, inf = nan | math.isnan(x), inf | math.isinf(x)
            if isinstance(x, torch.Tensor) and (x.is_floating_point() or x.is_complex()):
                nan, inf = nan | x.isnan().any(), inf | x.isinf().any()
        return nan, inf

    class Look(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            nonlocal first
            kwargs = kwargs or {}
            given = {name: value for name, value in kwargs.items() if name != "out"}
            nan_before, inf_before = bad((args, given))
            result = func(*args, **kwargs)
            if "empty" not in func.name():
                nan, inf = bad((result, args, kwargs))
                nan = nan & ~nan_before
                inf = inf & ~nan_before & ~inf_before
                number = 2 * len(seen) + nan.long()
                first = torch.where((first < 0) & (nan | inf), number, first)
            backward = torch._C._current_graph_task_id() != -1
            seen.append((str(func), "" if backward else stack[-1], backward))
            return result

    def push(name, module, inputs):
        stack.append(name)

    def pop(module, inputs, output):
        stack.pop()

    with ExitStack() as handles:
        for name, module in model.named_modules():
            pushes = functools.partial(push, name)
            handles.callback(module.register_forward_pre_hook(pushes).remove)
            handles.callback(module.register_forward_hook(pop, always_call=True).remove)
        with Look():
            step()
    number = int(first)  # the one read
    if number < 0:
        return None
    name, module, backward = seen[number // 2]
    return name, "nan" if number % 2 else "inf", module, backward
    ### END SOLUTION


# %% grade="first_nonfinite"
grade("first_nonfinite")

# %% [markdown] sitting="time"
# question: Where did the time of a step go?
# reached: >-
#   Into each call's own time: its duration without its children's. Own times sum to the whole, totals do
#   not. And what the profiler does not know of your program, a tracer of sixty lines writes into the same file.

# %% [markdown]
# ## What a profile is made of
#
# `torch.profiler` notes when each operator begins and ends. Everything that it shows, tables, memory,
# flame charts, is computed from those notes. `export_chrome_trace` writes them down as JSON, in the format
# of Chrome's old trace viewer, which [Perfetto](https://ui.perfetto.dev) reads today.


# %%
@contextmanager
def without_stderr():
    """Send to nowhere what C++ writes to stderr: the profiler says there that it starts and stops."""
    kept = os.dup(2)
    with open(os.devnull, "w") as nothing:
        os.dup2(nothing.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def step_of(model, x):
    with record_function("step"):
        model(x).sum().backward()


def profiled(path):
    """Write the trace of one small step to a file, and return the profile."""
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)), torch.randn(3, 4)
    step_of(model, x)
    with (
        without_stderr(),
        profile(activities=[ProfilerActivity.CPU], profile_memory=True) as result,
    ):
        step_of(model, x)
    result.export_chrome_trace(path)
    return result


folder = tempfile.mkdtemp()
trace_path = os.path.join(folder, "trace.json")
result = profiled(trace_path)
with open(trace_path) as file:
    trace = json.load(file)
kinds = {}
for event in trace["traceEvents"]:
    kinds.setdefault((event["ph"], event.get("cat", "")), event)
for (phase, category), event in sorted(kinds.items()):
    print(
        f"{phase}  {category:<18} {event['name']:<34} {', '.join(sorted(event.get('args', {})))[:60]}"
    )

# %% [markdown]
# `ph` is the phase, one letter:
#
# | `ph` | is | has |
# |---|---|---|
# | `X` | a call, complete | `ts`, its begin, and `dur`, in microseconds with three decimals; `pid`, `tid` |
# | `i` | an instant; `[memory]` where bytes were taken or given back | `ts`; in `args` `Bytes`, below zero if given back |
# | `s`, `f` | where an arrow starts and ends | the same `id` |
# | `M` | metadata: names of processes and threads | |
#
# Who called whom is not written down. It follows from the times: on one thread, a call whose time lies
# within another's was made by it.
#
# ```text
# tid 17  ├──────────────────────── step ────────────────────────┤
#          ├──── aten::linear ────┤ ├ aten::relu ┤ ├─ … ─┤
#           ├ aten::t ┤├aten::addmm┤                             two that touch: neither is inside
#                        ↑ [memory] +96                          belongs to the innermost
# ```
#
# Draw: show_spans({"step": [("step", 0, 20)], "its calls": [("linear", 1, 9), ("relu", 9, 13),
# ("backward", 14, 19)], "theirs": [("t", 2, 3), ("addmm", 3, 8), ("clamp_min", 10, 12)]}, "µs") |
# A step of 20 µs with made-up times. Its calls take 8, 4 and 5 µs, so 3 are its own. Of `relu`, 2
# are.
#
# A call's **own time** (`self_cpu_time_total` in PyTorch) is its duration without those of the calls directly inside it.
#
# **Predict.** Here are the durations of all calls, summed, divided by the step's. Is it 1, less than 1, or
# more than 1?


# %%
def sum_of_durations():
    calls = [e for e in trace["traceEvents"] if e.get("cat") in ("cpu_op", "user_annotation")]
    (whole,) = (call["dur"] for call in calls if call["name"] == "step")
    total = sum(call["dur"] for call in calls) / whole
    return "1" if abs(total - 1) < 0.001 else "more than 1" if total > 1 else "less than 1"


predict(..., sum_of_durations)

# %% [markdown]
# ## Sixteen digits
#
# The clock of a trace may count from when the machine was started. A machine that has been up for two
# months stands at 5 000 000 000 000 µs. With three decimals that is 16 digits, and a `float` has 15.95 of them.
#
# Draw: show_bars({name: round(math.ulp(days * 86_400e6) * 1000, 3) for name, days in (("a week", 7),
# ("two months", 60), ("two years", 730))}, "ns") | How far apart neighbouring `float`s are, in
# microseconds since the machine was started.
#
# **Predict.** A call begins at 4721002461840.854 and takes 7.141 µs; the next one begins when it ends, at
# 4721002461847.995. In `float`s, is the end of the first the begin of the second?


# %%
def touch():
    return 4721002461840.854 + 7.141 == 4721002461847.995


predict(..., touch)

# %%
print(f"{4721002461840.854 + 7.141 - 4721002461847.995:.6f} µs apart")
print(json.loads("4721002461840.854", parse_float=Decimal) * 1000)

# %% [markdown] exercise="read_trace"
# title: Read a profiler's trace
# minutes: 45
# difficulty: 3
# points: 10
# short: true
# prerequisites: []
# teaches: >-
#   how nesting follows from times; own time and total time; memory as a running sum; how forward and backward are linked.
# leaves out: asynchronous work on a device, whose kernels run later than the call that asked for them; stacks of Python.
# off limits: [torch.profiler.profile, torch.autograd.profiler.profile, torch.autograd.profiler_util.EventList]
# forbids: PyTorch's own profiler and its tables

# %% [markdown]
# Your reader is to return these classes.


# %%
@dataclass
class Call:
    """One call of an operator, or one `record_function`."""

    name: str
    thread: int  # the event's tid
    start: int  # in nanoseconds
    end: int
    parent: int | None  # the number of the innermost call that this one is inside of
    own_time: int  # nanoseconds, without those of the calls directly inside
    own_bytes: int  # bytes taken minus bytes given back, while no call inside of it was running


@dataclass
class Row:
    """All calls of one name."""

    calls: int
    total: int  # nanoseconds; a call inside another of its own name is not counted again
    own: int  # the sum of own times


@dataclass
class Profile:
    """What a trace says."""

    calls: list[Call]  # by start; an outer call before those inside of it
    rows: dict[str, Row]  # by name
    memory: list[tuple[int, int]]  # (nanoseconds, bytes held), after each [memory] event
    links: dict[int, int]  # of a backward call's number: the number of its forward call


# %% [markdown]
# **Write `read_trace(path)`**, which returns the `Profile` of a file that `export_chrome_trace` has written.
#
# - Calls are events of phase `X` and of category (`cat`) `cpu_op` or `user_annotation`; all have the same `pid`. Events stand in the
#   file in any order.
# - Times are whole nanoseconds, and exact.
# - One call is inside another if both are on one thread, and it begins not earlier and ends not later. Where
#   both begin and end together, the one that comes later in the file is inside. Two calls of a thread are
#   apart, or one is inside the other; no call takes no time.
# - Memory is that of the CPU: `[memory]` events with `"Device Type": 0`. They count from 0 at the begin of the trace, in the
#   order of time, over all threads. One belongs to the innermost call of its thread that is running, if there is one.
# - An arrow of category `fwdbwd` starts (`s`) in a forward call and ends (`f`) in a backward call, with the same
#   `id`. At either end it means the innermost call that is running on its thread. A call that begins at that
#   very time is running; a call that ends then is not.
#
# <details><summary>Hint 1: numbers</summary>
#
# `json.load(file, parse_float=Decimal)` keeps all digits. `int(ts * 1000)` is exact then, also where a
# number was written without a point. With floats, round begin and duration before you add them.
#
# </details>
# <details><summary>Hint 2: nesting</summary>
#
# Sort by (thread, start, -end); Python's sort keeps the order of the file where these are equal. Go through the calls of a thread with a stack: take
# off it what has ended by the start of this call. What is on top then is the parent.
#
# </details>
# <details><summary>Hint 3: what belongs to whom</summary>
#
# The innermost call at a moment is the last in your order, of those on its thread with `start <= moment < end`.
#
# </details>


# %% solution="read_trace"
def read_trace(path: str) -> Profile:
    """Return what a Chrome trace of torch.profiler says: calls, rows, memory, links."""
    ### BEGIN SOLUTION
    with open(path) as file:
        # as floats, the times of a machine that has been up for weeks have no digit to spare
        events = json.load(file, parse_float=Decimal)["traceEvents"]

    def nanoseconds(microseconds) -> int:
        return int(microseconds * 1000)

    calls = []
    for event in events:
        if event["ph"] == "X" and event.get("cat") in ("cpu_op", "user_annotation"):
            start = nanoseconds(event["ts"])
            end = start + nanoseconds(event["dur"])
            calls.append(Call(event["name"], event["tid"], start, end, None, end - start, 0))
    calls.sort(key=lambda call: (call.start, -call.end))

    running: dict[int, list[int]] = {}  # of each thread: the numbers of the calls not yet ended
    rows: dict[str, Row] = {}
    for number, call in enumerate(calls):
        stack = running.setdefault(call.thread, [])
        while stack and calls[stack[-1]].end <= call.start:
            stack.pop()
        if stack:
            call.parent = stack[-1]
            calls[call.parent].own_time -= call.end - call.start
        row = rows.setdefault(call.name, Row(0, 0, 0))
        row.calls += 1
        if all(calls[outer].name != call.name for outer in stack):
            row.total += call.end - call.start
        stack.append(number)
    for call in calls:
        rows[call.name].own += call.own_time

    def innermost(event) -> int | None:
        moment = nanoseconds(event["ts"])
        inside = [
            number
            for number, call in enumerate(calls)
            if call.thread == event["tid"] and call.start <= moment < call.end
        ]
        return inside[-1] if inside else None

    memory, held = [], 0
    for event in sorted(events, key=lambda event: event.get("ts", 0)):
        if event["name"] == "[memory]" and event["args"]["Device Type"] == 0:
            held += event["args"]["Bytes"]
            memory.append((nanoseconds(event["ts"]), held))
            owner = innermost(event)
            if owner is not None:
                calls[owner].own_bytes += event["args"]["Bytes"]

    arrows = [event for event in events if event.get("cat") == "fwdbwd"]
    forward = {event["id"]: innermost(event) for event in arrows if event["ph"] == "s"}
    links = {innermost(event): forward[event["id"]] for event in arrows if event["ph"] == "f"}
    return Profile(calls, rows, memory, links)
    ### END SOLUTION


# %% grade="read_trace"
grade("read_trace")

# %% [markdown]
# PyTorch's own table has the same numbers. Its totals differ where an operator runs inside one of its own name and
# something stands between the two: it counts that time twice.
#
# Look: watching/names#trace=step&sort=total | A recorded training step by total time: those at the top contain the
# others. Sort by own time, and what did the work comes first.

# %%
if written("read_trace"):
    mine = read_trace(trace_path)
    theirs = {row.key: row for row in result.key_averages()}
    worst = max(
        abs(theirs[name].self_cpu_time_total - row.own / 1000) for name, row in mine.rows.items()
    )
    print("names:", len(mine.rows), "of", len(theirs))
    print("own times differ by less than a nanosecond:", worst < 0.001)
    whole = mine.rows["step"]
    print(
        "own times sum to the whole step:",
        sum(row.own for row in mine.rows.values()) == whole.total,
    )
    for name in ("aten::addmm", "aten::clamp_min", "aten::mm"):
        own = sum(call.own_bytes for call in mine.calls if call.name == name)
        print(f"{name:<16} {own:>4} bytes, by PyTorch {theirs[name].self_cpu_memory_usage:>4}")

# %% [markdown]
# ## What is alive in a step
#
# Where the `[memory]` events of a trace are summed up in the order of their times, the sum is what is alive at that moment, beyond
# what was there at the beginning. Here is a step of three hidden layers of 64 units, each with a ReLU, on 256 samples. So one
# activation has 64 KiB, and the gradient of one weight has 16.
#
# Draw: show_bars({"an activation": 64, "a weight's gradient": 16, "a bias's gradient": 0.25}, "KiB") |
# What there is to take and to give back. Of parameters there is one set, of activations one for each sample.


# %%
def memory_of_a_step():
    """Trace one step; return (part, bytes alive) after each event, and who took what at the peak."""
    torch.manual_seed(0)
    hidden = [layer for _ in range(3) for layer in (nn.Linear(64, 64), nn.ReLU())]
    model = nn.Sequential(*hidden, nn.Linear(64, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(256, 64)

    def step():
        with record_function("forward"):
            loss = model(x).square().mean()
        with record_function("backward"):
            loss.backward()
        with record_function("optimizer"):
            optimizer.step()
        with record_function("zero_grad"):
            optimizer.zero_grad()

    step()
    cpu = [ProfilerActivity.CPU]
    with without_stderr(), profile(activities=cpu, profile_memory=True) as result:
        step()
    where = os.path.join(folder, "memory.json")
    result.export_chrome_trace(where)
    with open(where) as file:
        events = json.load(file)["traceEvents"]
    events.sort(key=lambda event: event.get("ts", 0))
    calls = [event for event in events if event["ph"] == "X" and event["dur"] > 0]

    def innermost(category, moment):
        inside = [
            call["name"]
            for call in calls
            if call.get("cat") == category and 0 <= moment - call["ts"] < call["dur"]
        ]
        return inside[-1] if inside else ""

    moments, taken, peak = [], {}, {}
    for event in events:
        if event["name"] != "[memory]":
            continue
        size, address = event["args"]["Bytes"], event["args"]["Addr"]
        if size > 0:
            taken[address] = innermost("cpu_op", event["ts"]), size
        else:
            taken.pop(address, None)
        before = max((held for _, held in moments), default=0)
        held = sum(one for _, one in taken.values())
        part = innermost("user_annotation", event["ts"]).split("#")[0]
        moments.append((part.replace("Optimizer.", ""), held))
        if held > before:
            peak = Counter()
            for operator, one in taken.values():
                peak[operator] += one
    return moments, peak


# %% [markdown]
# **Predict.** Where in the step are most bytes alive? Write `"forward"`, `"backward"` or `"optimizer"`.

# %%
moments, peak = memory_of_a_step()
predict(..., lambda: max(moments, key=lambda moment: moment[1])[0])

# %% [markdown]
# Backward does not only let go: it takes something for each operator, too. What is alive at the peak, the trace says as well. Each event has an
# address, so whoever took a piece of memory is known until it is given back.
#
# Draw: show_curves({part: [(at, held / 1024) for at, (where, held) in enumerate(moments) if where ==
# part] for part in ("forward", "backward", "zero_grad")}, "events, one after the other", "KiB") |
# Two steps up and one down in forward: what a layer returned goes when its ReLU has read it.

# %%
for part in ("forward", "backward", "zero_grad"):
    sizes = [held / 1024 for where, held in moments if where == part]
    print(f"{part:<10} at most {max(sizes):3.0f} KiB, at its end {sizes[-1]:3.0f}")
print("alive at the peak:")
for operator, size in peak.most_common(3):
    print(f"  {operator:<26} {size / 1024:3.0f} KiB")

# %% [markdown]
# Forward leaves one activation for each ReLU: ReLU's backward needs its result, and the next layer's needs its input, which is the same
# tensor. What a linear layer returned, nobody needs. The peak comes at the first ReLU that backward reaches. All three activations are still there, and
# beside them the gradient that came from above, by `mm`, and the one that is being computed. Then each layer lets go of more than it adds: an activation
# goes, a weight's gradient comes. These stay until `zero_grad`.

# %% [markdown]
# ## A trace of your own
#
# The profiler knows operators. It does not know that this was validation, that a batch was waited for, or
# on which rank. The format is open, and simple enough to write by hand: a JSON object with a list, `traceEvents`.
#
# | `ph` | has | Perfetto draws |
# |---|---|---|
# | `X` | `ts`, `dur` | a bar; bars within bars, by their times |
# | `i` | `ts`, `"s": "t"` | a mark on its thread |
# | `C` | `ts`, `args` of numbers | a curve for each of them |
# | `s`, then `f` with `"bp": "e"` | `ts`, the same `id`, name and category | an arrow, from the bar around the one to the bar around the other |
# | `M`, named `thread_name` | `args: {"name": …}` | the thread's name |
#
# All have `name`, `pid` and `tid`. Times are microseconds.
#
# Draw: show_spans({"worker": [("load 0", 0, 4), ("load 1", 4, 8), ("load 2", 8, 12)], "main":
# [("step 0", 4, 7), ("step 1", 8, 11), ("step 2", 12, 15)]}, "ms") | What such a file looks like
# when it is drawn: a line for each thread. An arrow would lead from each `load` to its `step`.
#
# Such a file is opened when something went wrong. So it has to be there then: whatever was raised, and with what was still going
# on.
#
# **Predict.** A training logs its loss into a trace with `json.dumps`, and the loss is NaN. What is
# written, and is that JSON, by [the standard](https://www.rfc-editor.org/rfc/rfc8259#section-6)?


# %%
def written_for_nan():
    return json.dumps({"loss": math.nan}), "no JSON"


predict(..., written_for_nan)

# %% [markdown] exercise="Tracer"
# title: Write a trace
# minutes: 35
# difficulty: 3
# points: 9
# prerequisites: [read_trace]
# teaches: >-
#   Chrome's trace format from the other side: spans, instants, counters, arrows, threads; a file that is valid whatever happened.
# leaves out: >-
#   spans that overlap on one thread, as those of coroutines do; traces larger than memory.
# off limits: [torch.profiler.profile, torch.autograd.profiler.profile]

# %% [markdown]
# **Write `class Tracer`**. `Tracer(clock, pid=0)` gets a clock, which returns whole nanoseconds, and the number of the rank
# for all its events.
#
# - `with tracer.span(name, after=None, **args) as handle:` is one event `X`, from the begin of the body to its end. If the
#   body raises, its `args` have `"error"`, the exception's class by name, and the exception goes on.
# - `tracer.instant(name, **args)` and `tracer.counter(name, **values)` are one event each, `i` and `C`.
# - `after` is the handle of another span, ended or not: an arrow from there to here. Its `s` has thread and begin of the other span,
#   its `f` those of this one. Each arrow has an `id` of its own; name and category are yours to choose.
# - `tracer.write(path)` writes the file: an object with `traceEvents`, and `baseTimeNanoseconds`, the clock's
#   time when the tracer was made. All `ts` count from there, in microseconds, and keep every nanosecond.
#   A span that is still open is written with the time it has taken so far, and `"open": true` in its `args`. The tracer goes on
#   afterwards, and may write again.
# - Every thread has a `tid`, and in the file one event `thread_name` with the name that `threading` gives it. A
#   thread that has ended does not give its `tid` to a later one.
# - In `args`, strings, `True`, `False`, `None` and finite numbers stay what they are. Anything else becomes its `str`, at the time of
#   the call: NaN and infinities as well.
#
# <details><summary>Hint 1: spans</summary>
#
# A method under `@contextmanager`: note the time, `yield` in a `try`, and make the event in its `finally`. What
# is open has to be in a list, too.
#
# </details>
# <details><summary>Hint 2: threads</summary>
#
# `threading.get_ident()` of a thread that has ended may be given to the next. A `threading.local()` is empty
# in each new thread: there you can keep a number of your own.
#
# </details>
# <details><summary>Hint 3: times</summary>
#
# Subtract the base while the times are whole numbers. The difference is small, and `ns / 1000` keeps all of
# its digits; of the time since 1970 it would not.
#
# </details>


# %% solution="Tracer"
class Tracer:
    """Notes what happened when, on which thread, for Perfetto to draw."""

    def __init__(self, clock: Callable[[], int], pid: int = 0):
        ### BEGIN SOLUTION
        self.clock, self.pid, self.base = clock, pid, clock()
        self.events: list[dict] = []
        self.open: dict[int, dict] = {}
        self.arrows = 0
        self.threads: list[str] = []
        self.here = threading.local()
        self.lock = threading.Lock()

    @contextmanager
    def span(self, name: str, after: dict | None = None, **args: Any) -> Iterator[dict]:
        """Note how long the body takes."""
        event = self._event("X", name, args)
        if after is not None:
            with self.lock:
                self.arrows += 1
                arrow = {"name": "after", "cat": "flow", "id": self.arrows, "pid": self.pid}
            ends = {"ph": "s"}, {"ph": "f", "bp": "e"}
            for end, one in zip(ends, (after, event), strict=True):
                self.events.append(arrow | end | {"tid": one["tid"], "ts": one["ts"]})
        self.open[id(event)] = event
        try:
            yield event
        except BaseException as error:
            event["args"]["error"] = type(error).__name__
            raise
        finally:
            event["dur"] = self._until_now(event)
            del self.open[id(event)]
            self.events.append(event)

    def instant(self, name: str, **args: Any) -> None:
        """Note that something happened."""
        self.events.append(self._event("i", name, args) | {"s": "t"})

    def counter(self, name: str, **values: float) -> None:
        """Note how large something is now."""
        self.events.append(self._event("C", name, values))

    def write(self, path: str) -> None:
        """Write all that was noted so far."""
        names = [
            {"ph": "M", "name": "thread_name", "pid": self.pid, "tid": tid, "args": {"name": name}}
            for tid, name in enumerate(self.threads)
        ]
        still_open = [
            event | {"dur": self._until_now(event), "args": event["args"] | {"open": True}}
            for event in self.open.values()
        ]
        events = [*names, *self.events, *still_open]
        trace = {"traceEvents": events, "baseTimeNanoseconds": self.base}
        with open(path, "w") as file:
            json.dump(trace, file, allow_nan=False)

    def _event(self, phase: str, name: str, args: dict[str, Any]) -> dict:
        if not hasattr(self.here, "tid"):
            with self.lock:  # another thread may be new at this moment, too
                self.here.tid = len(self.threads)
                self.threads.append(threading.current_thread().name)
        event = {"ph": phase, "name": name, "pid": self.pid, "tid": self.here.tid}
        since = self.clock() - self.base
        return event | {"ts": since / 1000, "args": {key: plain(one) for key, one in args.items()}}

    def _until_now(self, event: dict) -> float:
        return (self.clock() - self.base - round(event["ts"] * 1000)) / 1000


def plain(value: Any) -> Any:
    """Return what JSON has a word for as it is, anything else as text."""
    if value is None or isinstance(value, str | bool | int):
        return value
    return value if isinstance(value, float) and math.isfinite(value) else str(value)
    ### END SOLUTION


# %% grade="Tracer"
grade("Tracer")

# %% [markdown]
# Drop the file that this writes into [Perfetto](https://ui.perfetto.dev): a worker's thread, a
# training's, and an arrow from each batch to the step that used it.

# %%
if written("Tracer"):
    tracer = Tracer(time.time_ns)
    batches = []

    def load():
        for number in range(3):
            with tracer.span("load", batch=number) as loaded:
                batches.append((loaded, torch.randn(8, 4)))

    worker = threading.Thread(target=load, name="worker")
    worker.start()
    worker.join()
    for loaded, batch in batches:
        with tracer.span("step", after=loaded):
            tracer.counter("norm", batch=float(batch.norm()))
    tracer.write(os.path.join(folder, "mine.json"))
    with open(os.path.join(folder, "mine.json")) as file:
        print(Counter(event["ph"] for event in json.load(file)["traceEvents"]))

# %% [markdown] sitting="files"
# question: What is in a TensorBoard file?
# reached: >-
#   Records of a length, two checksums and a few bytes of protobuf. Whoever knows them can write such a
#   file without TensorBoard.

# %% [markdown]
# ## What `add_scalar` leaves on disk
#
# Curves that TensorBoard shows come from **event files**. A training appends to one and never reads it.
# A file is a row of **records**, each with two checksums, so that a reader notices what a crash or a bad
# disk has left. TensorFlow's data sets have the same frame, and there the files are called `.tfrecord`.
#
# ```text
#   8 bytes           4 bytes          n bytes          4 bytes
# ┌─────────────────┬────────────────┬────────────────┬──────────────────┐
# │ n, uint64       │ checksum of    │ data: one      │ checksum of      │
# │ little-endian   │ those 8 bytes  │ Event          │ the data         │
# └─────────────────┴────────────────┴────────────────┴──────────────────┘
# ```
#
# Below is a record that PyTorch's `SummaryWriter` has written for `add_scalar("loss", 1.5, 3)`.

# %%
WRITTEN_BY_TORCH = bytes.fromhex(
    "1a00000000000000"  # 26
    "129bd82d"
    "09e7f0c73596c1da4110032a0d0a0b0a046c6f7373150000c03f"
    "0d4b57db"
)
print(
    "length:", int.from_bytes(WRITTEN_BY_TORCH[:8], "little"), "of", len(WRITTEN_BY_TORCH), "bytes"
)
print("data:  ", WRITTEN_BY_TORCH[12:-4])

# %% [markdown]
# Draw: show_cells({f"from {row}": [(f"{byte:02x}", "length" if at < 8 else "data" if 12 <= at < 38
# else "checksum") for at, byte in enumerate(WRITTEN_BY_TORCH) if at // 8 * 8 == row] for row in
# range(0, 42, 8)}) | The record, eight bytes a line: its length, a checksum, the data, and a
# checksum again.
#
# Why a checksum of the length alone? A reader that trusts a broken length takes a wild number of bytes
# for data, and everything behind them is lost. With the first checksum it knows whether it may skip the
# data to the next record.
#
# The checksum is **CRC-32C**. Take all bits of the message as the coefficients of a polynomial, each 0 or
# 1, and divide by a fixed one; the checksum is the remainder. In code that is a register of 32 bits which
# is shifted once for each bit. `zlib.crc32` does the same with another polynomial. So every byte of
# its result is another.
#
# | | polynomial, lowest power first | used by |
# |---|---|---|
# | CRC-32 | `0xEDB88320` | zip, PNG, gzip, Ethernet |
# | CRC-32C, Castagnoli's | `0x82F63B78` | TensorBoard, TFRecord, iSCSI, ext4, an instruction of x86 |
#
# **Predict.** In how many of its 32 bits does CRC-32 change if one bit of a message of 26 bytes does, on
# average over all of its bits? Write a whole number.


# %%
def bits_that_change():
    message = WRITTEN_BY_TORCH[12:-4]
    changed = 0
    for bit in range(len(message) * 8):
        other = bytearray(message)
        other[bit // 8] ^= 1 << bit % 8
        changed += (zlib.crc32(message) ^ zlib.crc32(other)).bit_count()
    return round(changed / (len(message) * 8))


predict(..., bits_that_change)

# %% [markdown]
# One more step is between the CRC and the file. A record's data may itself hold records with CRCs, and
# the CRC of a message that ends in its own CRC is always the same number. So the checksum is **masked**:
# rotated to the right by 15 bits, plus `0xA282EAD8`, modulo 2³².

# %% [markdown] exercise="record"
# title: Frame a record
# minutes: 25
# difficulty: 2
# points: 5
# prerequisites: []
# teaches: >-
#   the frame of TensorBoard's event files and of TFRecord: a length, CRC-32C with a mask, little-endian.
# leaves out: tables and processor instructions that take a CRC many bytes at a time; compression.
# off limits: ["import:zlib", "import:binascii", "import:tensorboard", "import:ctypes"]
# forbids: checksums of libraries, and TensorBoard

# %% [markdown]
# **Write `record(data)`**, which returns the record of some bytes: length, masked checksum of the eight
# bytes of the length, data, masked checksum of the data. All numbers are little-endian.
#
# The CRC's register begins as 32 ones. For each byte: xor the register's lowest eight bits with it; then, eight
# times, shift the register right by one, and if a one was shifted out, xor with `0x82F63B78`. At the end
# flip all 32 bits. The CRC of `b"123456789"` is `0xE3069283`, by which all implementations are told apart.
#
# <details><summary>Hint 1: bytes</summary>
#
# `struct.pack("<Q", n)` makes eight bytes, `struct.pack("<I", n)` four. The second refuses numbers of
# more than 32 bits.
#
# </details>
# <details><summary>Hint 2: to rotate</summary>
#
# `crc >> 15 | crc << 17` has the rotated number in its lowest 32 bits, and more above. Cut that off with
# `& 0xFFFFFFFF`, after the sum.
#
# </details>
# <details><summary>Hint 3: the CRC of one byte</summary>
#
# `register ^= byte`; then eight times `register = register >> 1 ^ (POLYNOMIAL if register & 1 else 0)`. For
# the message `b"\x00"` the CRC is `0x527D5351`.
#
# </details>


# %% solution="record"
def record(data: bytes) -> bytes:
    """Return one record of an event file: length, its checksum, data, its checksum."""
    ### BEGIN SOLUTION

    def crc32c(message: bytes) -> int:
        register = 0xFFFFFFFF
        for byte in message:
            register ^= byte
            for _ in range(8):
                register = register >> 1 ^ (0x82F63B78 if register & 1 else 0)
        return register ^ 0xFFFFFFFF

    def checksum(message: bytes) -> bytes:
        crc = crc32c(message)
        rotated = crc >> 15 | crc << 17
        return struct.pack("<I", (rotated + 0xA282EAD8) & 0xFFFFFFFF)

    length = struct.pack("<Q", len(data))
    return length + checksum(length) + data + checksum(data)
    ### END SOLUTION


# %% grade="record"
grade("record")

# %% [markdown]
# ## What the data say
#
# The data of a record are one `Event`, in the format of **protocol buffers**. A message is a row of
# fields. Each field begins with a key, its number and a **wire type** in one: `number << 3 | type`. What a
# field is called, and what its bits mean, stands in a `.proto` file and not in the bytes.
#
# | wire type | the value is | used for |
# |---|---|---|
# | 0 | a **varint**: seven bits a byte, the lowest first; every byte but the last has its highest bit set | whole numbers |
# | 1 | eight bytes, little-endian | `double` |
# | 2 | a varint, the length, and so many bytes | strings, messages within messages |
# | 5 | four bytes, little-endian | `float` |
#
# ```text
# 09 e7 f0 c7 35 96 c1 da 41   10 03     2a 0d  0a 0b  0a 04 6c 6f 73 73   15 00 00 c0 3f
# ── ───────────────────────   ── ──     ── ──  ── ──  ── ── ───────────   ── ───────────
# field 1, a double:           field 2:  field 5:      field 1: "loss"     field 2, a float:
# wall_time, in seconds        step 3    Summary of 13 bytes               simple_value 1.5
#                                        └─ field 1: Value of 11 bytes ─────────────────┘
# ```
#
# These are all that a curve needs:
#
# | message | number and name | type |
# |---|---|---|
# | `Event` | 1 `wall_time` | `double` |
# | | 2 `step` | `int64`, a varint |
# | | 3 `file_version` | string: `brain.Event:2`, in the first record of a file |
# | | 5 `summary` | `Summary` |
# | | 7 `session_log` | `SessionLog` |
# | `Summary` | 1 `value`, any number of them | `Value` |
# | `Value` | 1 `tag` | string |
# | | 2 `simple_value` | `float`: four bytes |
# | `SessionLog` | 1 `status` | a varint; 1 is `START` |
#
# A varint has no sign. An `int64` below zero is written as the number plus 2⁶⁴, which takes ten bytes.
#
# `add_histogram` writes a `Value` with another field, a message of edges and counts. The numbers themselves are not in
# the file.


# %%
def varint(number):
    """Return a whole number from 0 to 2**64 - 1 as a varint."""
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


for number in (3, 127, 128, 300, -1 & 2**64 - 1):
    print(f"{number:>20}: {varint(number).hex(' ')}")

# %% [markdown]
# And back: a reader of any message. It knows wire types and no names.


# %%
def message_fields(data):
    """Yield (number, value) of each field: a whole number for a varint, else its bytes."""
    at = 0

    def number():
        nonlocal at
        found = shift = 0
        while True:
            at += 1
            found |= (data[at - 1] & 127) << shift
            shift += 7
            if data[at - 1] < 128:
                return found

    while at < len(data):
        key = number()
        if key & 7 == 0:
            yield key >> 3, number()
            continue
        size = {1: 8, 5: 4}.get(key & 7) or number()
        at += size
        yield key >> 3, data[at - size : at]


for number, value in message_fields(WRITTEN_BY_TORCH[12:-4]):
    print(number, value)

# %% [markdown]
# **Predict.** You log the number of samples seen, 16777217, as a scalar. What comes back?


# %%
def comes_back():
    return struct.unpack("<f", struct.pack("<f", 16777217))[0]


predict(..., comes_back)

# %% [markdown]
# ## When a run goes on
#
# A training that starts again from a checkpoint writes a new file into the same folder. TensorBoard reads a folder's files in the
# order of their names, `events.out.tfevents.<seconds>.<anything>`. If the first run went to step 9, its checkpoint
# was of step 4, and the second run begins at 5, then steps 5 to 9 are there twice. Nothing in
# the numbers tells which ones count. So the second file says it: an event with a step and
# `SessionLog(START)` means that everything from this step on, in what was read before, is void.
# `SummaryWriter(purge_step=5)` writes it.
#
# Draw: show_cells({"first file": [(str(step), "counts" if step < 5 else "void") for step in
# range(10)], "second file": [""] * 4 + [("START 5", "mark")] + [(str(step), "counts") for step in
# range(5, 10)]}) | Ten steps in two files. The mark in the second makes five of the first void.

# %% [markdown] exercise="EventWriter"
# title: Write an event file
# minutes: 45
# difficulty: 3
# points: 10
# prerequisites: [record]
# teaches: >-
#   protocol buffers by hand: keys, varints, messages within messages; a file for each run; how a run that goes on says so.
# leaves out: histograms, images, text; compressed files; writing in a thread of its own.
# off limits: ["import:tensorboard", "import:zlib", "import:ctypes"]
# forbids: TensorBoard's own writers, and checksums of libraries
# allowed: []

# %% [markdown]
# **Write `class EventWriter`**, on top of your `record` and the `varint` above.
#
# - `EventWriter(folder, clock, start=None)` begins a new file in the folder `folder`, and makes the folder
#   where there is none. `clock()` returns the time in whole nanoseconds, as `time.time_ns` does; an
#   event's `wall_time` is in seconds.
# - The name is `events.out.tfevents.<seconds>.<anything>`, with ten digits of whole seconds. It stands behind the
#   names of all event files in the folder when these are sorted, also if
#   their seconds are the same or later. No file that is there is changed.
# - The first record has the version `brain.Event:2`. If `start` is given, the second has `start` as its
#   step and a session log with the status `START`.
# - `add(step, values)` writes one event: `values` is a dict from tags to numbers, and all of them are in
#   the one summary, in the dict's order. Steps may be negative or large. NaN and infinities stay what they are; a number
#   too large for a `float` becomes an infinity.
# - `flush()`: when it returns, what was added is in the file, in whole records. `close()` flushes and
#   closes; the second time it does nothing. `path` is the file's path.
#
# <details><summary>Hint 1: fields</summary>
#
# A small function is worth it: `def chunk(number, data)` returns `varint(number << 3 | 2)`, the length as
# a varint, and the data. Strings and messages are both such chunks.
#
# </details>
# <details><summary>Hint 2: floats</summary>
#
# `struct.pack("<f", 1e40)` raises an OverflowError, and `math.copysign(math.inf, value)` is the infinity of the same sign.
#
# </details>
# <details><summary>Hint 3: names</summary>
#
# Look for the largest name, `max(...)`, of the folder's `events.out.tfevents.*`. Take its seconds if yours are not later,
# and number the files behind that with a fixed count of digits: `9` stands behind `10`.
# If what stands behind the seconds is not yours, its first letters may sort anywhere: another second is always safe.
#
# </details>


# %% solution="EventWriter"
class EventWriter:
    """Writes scalars into an event file of its own."""

    def __init__(self, folder: str, clock: Callable[[], int], start: int | None = None):
        ### BEGIN SOLUTION
        prefix = "events.out.tfevents."
        os.makedirs(folder, exist_ok=True)
        self.clock = clock
        seconds = clock() // 10**9
        there = [name for name in os.listdir(folder) if name.startswith(prefix)]
        if there:  # a later second than any other file's: then the rest of the name does not matter
            seconds = max(seconds, int(max(there).split(".")[3]) + 1)
        self.path = os.path.join(folder, f"{prefix}{seconds:010d}.0")
        self.file = open(self.path, "xb")  # noqa: SIM115
        self._write(self._chunk(3, b"brain.Event:2"))
        if start is not None:
            self._write(self._step(start) + self._chunk(7, b"\x08\x01"))

    def add(self, step: int, values: dict[str, float]) -> None:
        """Write one event with all values."""
        summary = b""
        for tag, value in values.items():
            try:
                number = struct.pack("<f", value)
            except OverflowError:  # a cast would make an infinity of it
                number = struct.pack("<f", math.copysign(math.inf, value))
            summary += self._chunk(1, self._chunk(1, tag.encode()) + b"\x15" + number)
        self._write(self._step(step) + self._chunk(5, summary))

    def flush(self) -> None:
        """Return when all that was added is in the file."""
        self.file.flush()

    def close(self) -> None:
        """Flush and close."""
        self.file.close()

    def _write(self, fields: bytes) -> None:
        wall_time = struct.pack("<d", self.clock() / 10**9)
        self.file.write(record(b"\x09" + wall_time + fields))

    def _step(self, step: int) -> bytes:
        return b"\x10" + varint(step & 2**64 - 1)  # below zero: as an int64 has it

    def _chunk(self, number: int, data: bytes) -> bytes:
        return varint(number << 3 | 2) + varint(len(data)) + data
        ### END SOLUTION


# %% grade="EventWriter"
grade("EventWriter")

# %% [markdown]
# ## A file that Netron opens
#
# The same few bytes carry models. A file of **ONNX**, which [Netron](https://netron.app) draws and which other runtimes run, is one
# protobuf message without a frame around it. Here are the numbers of all fields that a small network needs, from
# [`onnx.proto`](https://github.com/onnx/onnx/blob/main/onnx/onnx.proto):
#
# | message | fields |
# |---|---|
# | model | 1 version of the format; 2 the producer's name; 7 the graph; 8 a set of operators, which has a version, 2 |
# | graph | 1 nodes; 2 name; 5 constants; 11 inputs; 12 outputs |
# | node | 1 names of its inputs; 2 of its outputs; 4 the operator; 5 attributes |
# | attribute | 1 name; 3 a whole number; 20 its type, and 2 says that it is one |
# | constant | 1 sizes; 2 dtype, and 1 is float32; 8 name; 9 the bytes of its elements |
# | input, output | 1 name; 2 type, which has a 1 with dtype, 1, and shape, 2; a shape has dimensions, 1, with a size, 1, or a name, 2 |
#
# A graph's edges are names: a node that has `hidden` among its inputs gets what another one has among its outputs.


# %%
def onnx_message(*fields):
    """Return fields, (number, value), as protobuf: whole numbers, texts, bytes."""
    found = b""
    for number, value in fields:
        if isinstance(value, int):
            found += varint(number << 3) + varint(value)
        else:
            data = value.encode() if isinstance(value, str) else value
            found += varint(number << 3 | 2) + varint(len(data)) + data
    return found


def onnx_node(kind, inputs, output, *attributes):
    edges = [*((1, name) for name in inputs), (2, output)]
    return onnx_message(*edges, (4, kind), *((5, one) for one in attributes))


def onnx_constant(name, tensor):
    sizes = [(1, size) for size in tensor.shape]
    data = tensor.detach().numpy().tobytes()
    return onnx_message(*sizes, (2, 1), (8, name), (9, data))


def onnx_place(name, size):
    """Describe an input or an output: float32 (rows, size), any number of rows."""
    rows, columns = onnx_message((2, "rows")), onnx_message((1, size))
    shape = onnx_message((1, rows), (1, columns))
    return onnx_message((1, name), (2, onnx_message((1, onnx_message((1, 1), (2, shape))))))


def as_onnx(first, second):
    """Return two linear layers, and a ReLU between them, as an ONNX model."""
    transposed = onnx_message((1, "transB"), (3, 1), (20, 2))  # x @ weight.T
    nodes = [
        onnx_node("Gemm", ["x", "w1", "b1"], "hidden", transposed),
        onnx_node("Relu", ["hidden"], "active"),
        onnx_node("Gemm", ["active", "w2", "b2"], "y", transposed),
    ]
    held = [first.weight, first.bias, second.weight, second.bias]
    constants = map(onnx_constant, ("w1", "b1", "w2", "b2"), held)
    graph = onnx_message(
        *((1, one) for one in nodes),
        (2, "two layers"),
        *((5, one) for one in constants),
        (11, onnx_place("x", first.in_features)),
        (12, onnx_place("y", second.out_features)),
    )
    operators = onnx_message((2, 17))
    return onnx_message((1, 8), (2, "by hand"), (7, graph), (8, operators))


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
onnx_bytes = as_onnx(model[0], model[2])
Path(folder, "two_layers.onnx").write_bytes(onnx_bytes)
weights = sum(4 * parameter.numel() for parameter in model.parameters())
print(len(onnx_bytes), "bytes, of which", weights, "are weights")

# %% [markdown]
# Here it is read back, by `message_fields`. Which of the bytes are a message and which a text, they do not say:
# from the table we know which fields to open.
#
# Draw: show_cells({f"from {row}": [(f"{byte:02x}", "key" if at in (0, 2, 11) else "length" if at in
# (3, 12, 13) else "value") for at, byte in enumerate(onnx_bytes[:14]) if at // 7 * 7 == row] for row
# in (0, 7)}) | The first fourteen bytes: the version 8, a text of seven letters, a graph of 456 bytes.


# %%
def onnx_texts(fields, number):
    return [value.decode() for at, value in fields if at == number]


for number, value in message_fields(onnx_bytes):
    print("model", number, value if number != 7 else f"{len(value)} bytes:")
    for part, inner in message_fields(value) if number == 7 else ():
        fields = list(message_fields(inner)) if part in (1, 5) else []
        if part == 1:
            name = onnx_texts(fields, 4)[0]
            print("   ", name, onnx_texts(fields, 1), "->", onnx_texts(fields, 2))
        if part == 5:
            sizes = [value for at, value in fields if at == 1]
            print("   ", *onnx_texts(fields, 8), sizes, len(fields[-1][1]), "bytes")

# %% [markdown]
# Draw: show_bars({"weights": weights, "nodes": sum(len(inner) for number, value in
# message_fields(onnx_bytes) if number == 7 for part, inner in message_fields(value) if part == 1),
# "the file": len(onnx_bytes)}, "bytes") | What ONNX keeps: operators, the edges between them, weights.
# Of Python it keeps nothing: no class, no hook, no loop, and of an `if` the side that was taken.
#
# Such a file can be run by other programs because it says so little. What is to be decided by values has to be an
# operator of its own, `If` or `Loop`. What a training has beside the model, its optimizer and the graph for backward, is not in it.

# %% [markdown] sitting="places"
# question: Why does my curve have a hole after a restart?
# reached: >-
#   What waited in memory at the checkpoint was never written, and the run that goes on begins behind it. So a
#   checkpoint comes after what waits was handed out, and what was written beyond it is void. Where the hole is the
#   file's, a reader that checks every record says so.

# %% [markdown]
# ## What a crash leaves
#
# A process that is killed while it writes leaves half a record at the end of its file: a **torn** one. After a power
# failure the end of a file may be zeros. A bad disk flips bits. And a training that was killed five times has six
# files. TensorBoard opens all of them. Does it show what the training wrote?
#
# The next cells need TensorBoard, from the extra `watch`. Without it they say so.


# %%
from importlib.util import find_spec


def file_of_torch(steps):
    """Return an event file with a `loss` at these steps, each the step's number, by `SummaryWriter`."""
    from torch.utils.tensorboard import SummaryWriter

    with tempfile.TemporaryDirectory() as place:
        with SummaryWriter(place) as writer:
            for step in steps:
                writer.add_scalar("loss", step, step)
        return next(Path(place).iterdir()).read_bytes()


def read_by_tensorboard(*files):
    """Return the steps of `loss` in files of one folder, as TensorBoard's `EventAccumulator` reads them."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with tempfile.TemporaryDirectory() as place:
        for number, data in enumerate(files):
            Path(place, f"events.out.tfevents.{1_750_000_000 + number}.0").write_bytes(data)
        return [event.step for event in EventAccumulator(place).Reload().Scalars("loss")]


if find_spec("tensorboard"):
    whole = file_of_torch(range(10))
    print("whole:      ", read_by_tensorboard(whole))
    print("torn:       ", read_by_tensorboard(whole[:-5]))
    print("a second run", read_by_tensorboard(whole, file_of_torch(range(5, 8))))
else:
    print("TensorBoard is not installed here.")

# %% [markdown]
# The torn record is left out, and nothing else could be done. The second run goes on from step 5 and does not say START. So steps 5
# to 7 are there twice.
#
# **Predict.** In the whole file, one bit of the value at step 5 flips. At which steps does `EventAccumulator` show a `loss`?
# Write a list.


# %%
def read_with_a_flipped_bit():
    if not find_spec("tensorboard"):
        return "TensorBoard is not installed here."
    flipped = bytearray(file_of_torch(range(10)))
    flipped[flipped.index(b"\x15" + struct.pack("<f", 5)) + 2] ^= 1
    return read_by_tensorboard(bytes(flipped))


predict(..., read_with_a_flipped_bit)

# %% [markdown]
# Five values are gone, of which four were whole, and no word is said. Yet the length of the damaged record was right: the
# next record begins where it says.
#
# TensorBoard has a second reader. `tensorboard --logdir` starts a server written in Rust, which is faster and, by its help, looks at
# checksums of data only where it cannot parse them. The same bytes, read by both, in TensorBoard 2.21:
#
# | in the folder | `EventAccumulator` | the server, as it is started |
# |---|---|---|
# | a bit of the value at step 5 flipped | steps 0 to 4 | all ten; the value at step 5 is 5.03125 |
# | a second run from step 5, without START | steps 5 to 7 twice | steps 5 to 9 of the first run are void |
# | a second run: START at step 3, then steps 7 and 8 | steps 3 to 9 of the first run are void | steps 7 to 9 are void |
# | at the end of the file, a length of 2⁶², and its right checksum | raises a MemoryError | the process ends |
#
# Of one flipped bit come two curves: one ends early, and one has a value that nobody wrote. Neither reader says so. Yours will.
#
# Draw: show_cells({"a bit of the data": [(str(step), "left out" if step == 5 else "read") for step in
# range(10)], "a bit of the length": [(str(step), "read" if step < 5 else "lost") for step in range(10)],
# "torn": [(str(step), "read" if step < 9 else "left out") for step in range(10)]}) | Ten records, damaged in
# three ways, and what can still be read. Behind a wrong length nobody knows where a record begins.

# %% [markdown] exercise="read_events"
# title: Read what a crash has left
# minutes: 30
# difficulty: 3
# points: 12
# prerequisites: [record]
# teaches: >-
#   to read a format that has checksums: what may be believed after which of them, where one can go on, and how a
#   restart is put together from several files.
# leaves out: files that are still written to; compressed files; to thin out long curves, which TensorBoard does at random.
# off limits: ["import:tensorboard", "import:zlib", "import:ctypes"]
# forbids: TensorBoard's own readers, and checksums of libraries
# allowed: []

# %% [markdown]
# Your reader is to return these classes.


# %%
@dataclass
class Damage:
    """A record that cannot be read."""

    file: str  # the file's name, without its folder
    at: int  # at which byte of the file the record begins
    what: str  # "torn", "length" or "data"


@dataclass
class Reading:
    """What the event files of one run say."""

    curves: dict[str, list[tuple[int, float]]]  # by tag: (step, value), as they were read
    damage: list[Damage]  # as it was met


# %% [markdown]
# **Write `read_events(paths)`**, which returns the `Reading` of one run's event files, whatever a crash has left of
# them. Your `record` and `message_fields` are there to be used.
#
# - `paths` are the paths of the files, in any order. All are in one folder. They are read in the order of their
#   names.
# - **Damage.** Look at a record's parts in their order, and believe none before its checksum. The first of these that is true of a
#   record is noted, as a `Damage`, and such a record says nothing:
#     - `"torn"`: fewer than 12 bytes are left of the file.
#     - `"length"`: the checksum of the length is wrong.
#     - `"torn"`: the record goes on beyond the end of the file. A length may be any number up to 2⁶⁴ - 1.
#     - `"data"`: the checksum of the data is wrong.
#
#   After `"data"` the next record is read; after the other two, the next file.
# - **Curves.** Each `simple_value` is a point of its tag's curve: the event's step, and the number as the file has it,
#   NaN too. Points are in the order in which they were read. None is left out or moved because of its step. A `Value`
#   without a `simple_value` is no point.
# - **Fields** of a message stand in any order, and there may be others than those in the table of "What the data say". A step or a
#   status that is not there is 0.
# - **Restarts.** An event with `SessionLog(START)` makes void all points that were read before it and whose step is its own or a later one: of all
#   tags, from all files, its own file included. What is read after it counts, whatever its step. Other session logs do nothing.
#
# <details><summary>Hint 1: three parts</summary>
#
# Three small functions: one yields the records of a file, where they begin and what is wrong with them; one
# makes of the data of a record a step, whether it is a START, and the values; and `read_events` puts points together. A single list
# of (tag, step, value) is easy to cut at a START; make curves of it at the end.
#
# </details>
# <details><summary>Hint 2: checksums and signs</summary>
#
# `record(message)[-4:]` is the masked checksum of any bytes. `int.from_bytes(data[at : at + 8], "little")` is the length. A step of 2⁶³
# or more stands for a negative one: take 2⁶⁴ from it.
#
# </details>
# <details><summary>Hint 3: lengths that are not there</summary>
#
# Read the whole file first, and compare `at + 16 + length` with its size. `file.read(2**62)` asks for memory before it looks how much
# there is to read; a slice of `bytes` does not.
#
# </details>


# %% solution="read_events"
def read_events(paths: Sequence[str]) -> Reading:
    """Return what the event files of one run say, and where they are damaged."""
    ### BEGIN SOLUTION
    points: list[tuple[str, int, float]] = []  # (tag, step, value)
    damage = []
    for path in sorted(paths):
        for at, wrong, data in checked_records(Path(path).read_bytes()):
            if wrong:
                damage.append(Damage(os.path.basename(path), at, wrong))
                continue
            step, starts, values = read_event(data)
            if starts:
                points = [point for point in points if point[1] < step]
            points += [(tag, step, value) for tag, value in values]
    curves: dict[str, list[tuple[int, float]]] = {}
    for tag, step, value in points:
        curves.setdefault(tag, []).append((step, value))
    return Reading(curves, damage)


def checked_records(file: bytes) -> Iterator[tuple[int, str, bytes]]:
    """Yield (where it begins, what is wrong with it, its data) of each record that can be found."""

    def checksum(message: bytes) -> bytes:
        return record(message)[-4:]

    at = 0
    while at < len(file):
        if len(file) - at < 12:
            yield at, "torn", b""
            return
        length = file[at : at + 8]
        if file[at + 8 : at + 12] != checksum(length):
            yield at, "length", b""
            return
        end = at + 16 + int.from_bytes(length, "little")
        if end > len(file):
            yield at, "torn", b""
            return
        data = file[at + 12 : end - 4]
        yield at, "" if file[end - 4 : end] == checksum(data) else "data", data
        at = end


def read_event(data: bytes) -> tuple[int, bool, list[tuple[str, float]]]:
    """Return an event's step, whether it is a START, and (tag, value) of each scalar."""
    step, starts, values = 0, False, []
    for number, content in message_fields(data):
        if number == 2:
            step = content - 2**64 if content >= 2**63 else content
        elif number == 5:
            inner = [one for at, one in message_fields(content) if at == 1]
            for value in map(dict, map(message_fields, inner)):
                if 2 in value:
                    values.append((value[1].decode(), *struct.unpack("<f", value[2])))
        elif number == 7:
            starts = dict(message_fields(content)).get(1) == 1
    return step, starts, values
    ### END SOLUTION


# %% grade="read_events"
grade("read_events")

# %% [markdown]
# A bit of the first file has flipped. The second run, which went on from step 8, was killed while it wrote step 11.

# %%
if find_spec("tensorboard") and written("record", "read_events"):
    first, second = bytearray(file_of_torch(range(10))), file_of_torch(range(8, 12))
    first[first.index(b"\x15" + struct.pack("<f", 5)) + 2] ^= 1
    place = tempfile.mkdtemp()
    for seconds, data in ((1_750_000_060, second[:-5]), (1_750_000_000, first)):
        Path(place, f"events.out.tfevents.{seconds}.0").write_bytes(data)
    reading = read_events([str(path) for path in Path(place).iterdir()])
    print("steps:", [step for step, _ in reading.curves["loss"]])
    print(*reading.damage, sep="\n")

# %% [markdown]
# ## One logger, several places
#
# The numbers of a training go to a file, to TensorBoard's folder, to a service. All of these **backends** are told
# the same: a configuration, numbers for each step, and the end. Each has words of its own for it:
#
# | | `EventWriter` | a run of W&B | the module `mlflow` |
# |---|---|---|---|
# | the configuration | – | `config.update(values)` | `log_params(values)` |
# | a step | `add(step, values)` | `log(values, step=step)` | `log_metrics(values, step=step)` |
# | what was added is written | `flush()` | – | – |
# | the end | `close()` | `finish()` | `end_run()` |
#
# What else they can do, the pages of [W&B](https://docs.wandb.ai/models/ref/python/experiments/run) and
# [MLflow](https://mlflow.org/docs/latest/api_reference/python_api/mlflow.html) say.
#
# The simplest backend is a text file with a line of JSON for each step. Here is one that speaks as `EventWriter`
# does. With `start` it goes on in a file that is there, and what the file has from this step on is void. A process that
# is killed while it writes leaves half a line, which goes as well.


# %%
class Lines:
    """A line of JSON for each step, in one file."""

    def __init__(self, path, start=None):
        self.file = open(path, "x+" if start is None else "a+")  # noqa: SIM115
        self.file.seek(0)
        good = 0  # so many bytes stay
        for line in iter(self.file.readline, ""):
            whole = line.endswith("\n")
            if not whole or json.loads(line)["step"] >= start:
                break
            good = self.file.tell()
        self.file.truncate(good)

    def add(self, step, values):
        # JSON has no NaN and no infinity
        numbers = {k: v if math.isfinite(v) else str(v) for k, v in values.items()}
        self.file.write(json.dumps({"step": step} | numbers) + "\n")

    def flush(self):
        self.file.flush()

    def close(self):
        self.file.close()


path = os.path.join(tempfile.mkdtemp(), "steps.jsonl")
lines = Lines(path)
for step in range(1, 8):
    lines.add(step, {"loss": 0.5**step})
lines.flush()
with open(path, "a") as file:
    file.write('{"step": 8, "lo')  # killed
lines = Lines(path, start=4)  # goes on from a checkpoint of step 3
lines.add(4, {"loss": math.nan})
lines.close()
print(Path(path).read_text(), end="")

# %% [markdown]
# The second `Lines` has cut off what was void, and half a line with it.
#
# Draw: show_cells({"killed": [(str(step), "stays" if step < 4 else "void") for step in range(1, 8)] +
# [("half of 8", "void")], "gone on": [(str(step), "stays") for step in range(1, 4)] + [("4, NaN",
# "new")]}) | The file when the process was killed, and after the one that goes on from step 3.
#
# To write at each step costs each step a read and a disk's time. So a logger lets some steps **wait** in memory, and
# hands them out together.
#
# **Predict.** A logger hands out as soon as five steps wait. The training saves a checkpoint after step 7, and is killed
# after step 9. It goes on from the checkpoint to step 12, and what waits at the end is handed out. Which steps were never
# written? Write a list.


# %%
def steps_never_written():
    written_steps, waiting = set(), []

    def log(step):
        waiting.append(step)
        if len(waiting) == 5:
            written_steps.update(waiting)
            waiting.clear()

    for step in range(1, 10):
        log(step)
    waiting.clear()  # killed
    for step in range(8, 13):
        log(step)
    written_steps.update(waiting)
    return sorted(set(range(1, 13)) - written_steps)


predict(..., steps_never_written)

# %% [markdown]
# Nothing raised. The checkpoint says that seven steps are done, and does not know that two of them were
# in memory alone. Had the training been killed after step 10, steps 8 to 10 would be there twice.
#
# Draw: show_cells({"the first run": [(str(step), "written" if step < 6 else "waited") for step in
# range(1, 10)] + [""] * 3, "the second run": [""] * 7 + [(str(step), "written") for step in range(8,
# 13)]}) | The first run up to where it was killed, and the second, from the checkpoint of step 7.
# Steps 6 and 7 were written by neither.
#
# More goes wrong where a training meets its logger:
#
# - **Errors.** The disk is full, the network is gone, a token has run out. A training of three weeks must not end over
#   its curve, and TensorBoard's folder must not end over the network.
# - **Ranks.** All ranks run the same script. Where each opens a run, there are eight runs, or eight writers of one file. And
#   a logger that waits for the other ranks hangs where only one of them logs.
# - **Going back.** A loop that starts its epoch again passes steps that were logged before.
#   W&B [ignores](https://github.com/wandb/wandb/issues/10628) what is behind the last one; others show it twice.

# %% [markdown] exercise="Run"
# title: One logger for all places
# minutes: 60
# difficulty: 3
# points: 18
# prerequisites: [EventWriter]
# teaches: >-
#   adaptors; steps that wait in memory, and what a checkpoint has to do about them, so that each is written once whenever
#   the run is killed; errors that end nothing; one writer among several ranks.
# leaves out: >-
#   a thread of its own, for backends that block: then steps have to wait without end, or be dropped; files; to try again after an error.
# off limits: []

# %% [markdown]
# **Write `class Run`.** `Run(openers, every=10, state=None)` hands what a training logs to several backends.
#
# - **Backends.** `openers` is a list of functions. `opener(start)` opens a backend and returns it. In a new run, `start` is
#   `None`. In a run that goes on, it is the first step that is written anew: what the backend has from this step
#   on is void. `lambda start: Lines(path, start)` is one. Every backend has one of `add`, `log` and
#   `log_metrics`, and is told everything in the words of its column above.
# - `config(values)` tells each backend at once, if it has a word for that.
# - `log(step, values)`: `values` is a dict from names to numbers and tensors of one element. Steps are whole numbers from
#   0 up. A step that is not larger than all steps before is dropped, also one that the run logged before it went on.
# - **Handing out.** As soon as `every` steps wait, `log` hands all of them to each backend, in their order, as `float`s that
#   are exact. What was handed out is written when `log` returns. Otherwise `log` calls no backend.
# - `finish()` hands out what waits, and tells all backends the end. The second time it does nothing.
# - `state_dict()` returns plain data for a checkpoint, at any time: what `torch.load` reads. `Run(openers, every, state)` goes on from there. Wherever
#   the earlier run was killed after its checkpoint: in the end, each backend has each step up to the checkpoint once, as the earlier
#   run logged it, and each later one once, as the run that went on did.
# - **Training goes on**, whatever `Exception` an opener or a backend raises. That backend is not called again, the others are told
#   everything, and `warnings.warn` says it once, in the words of the exception. A `KeyboardInterrupt` is none of these: it comes out.
# - **Rank 0 writes.** If there is a default process group, no other rank opens a backend. No method calls a collective.
# - **Observe:** to hand out is one read, and `log` reads nothing else. What happens to `values`, and to the tensors in it, after the call
#   does not matter. No graph is kept.
#
# <details><summary>Hint 1: one form for all</summary>
#
# Right where a backend is opened, make a few functions of it that always have the same names: for the configuration, a step, to flush, the
# end. What has no word becomes a function that does nothing.
#
# </details>
# <details><summary>Hint 2: one place for errors</summary>
#
# A method that calls one of these functions of each backend, in a `try`, and takes out the backend that raises. Go through
# a copy of the list. A step at a time is simple and enough.
#
# </details>
# <details><summary>Hint 3: what waits at the checkpoint</summary>
#
# The run that goes on begins behind the checkpoint, and nobody logs again what waited there. And of values:
# `torch.tensor(0.1)` is float32, and `detach` shares memory.
#
# </details>


# %% solution="Run"
class Run:
    """Hands what a training logs to several backends.

    openers: each opens a backend, given the first step that is written anew; None in a new run
    every: how many steps wait until they are handed out
    state: what `state_dict` returned in the run that this one goes on from
    """

    def __init__(
        self,
        openers: Sequence[Callable[[int | None], Any]],
        every: int = 10,
        state: dict[str, Any] | None = None,
    ):
        ### BEGIN SOLUTION
        self.every = every
        self.last = -1 if state is None else state["last"]
        self.waiting: list = []  # (step, its values) of each
        self.backends: list = []
        if torch.distributed.is_initialized() and torch.distributed.get_rank() > 0:
            return
        start = None if state is None else self.last + 1
        for opener in openers:
            try:
                self.backends.append(in_our_words(opener(start)))
            except Exception as error:
                self._warn(error)

    def config(self, values: dict[str, Any]) -> None:
        """Tell all backends what this run is."""
        self._tell("config", values)

    def log(self, step: int, values: dict[str, Any]) -> None:
        """Note the values of a step, and hand out as soon as enough of them wait."""
        if step <= self.last:
            return
        self.last = step
        if self.backends:
            self.waiting.append((step, {name: copied(one) for name, one in values.items()}))
        if len(self.waiting) == self.every:
            self._hand_out()

    def state_dict(self) -> dict[str, Any]:
        """Return what a run needs to go on behind the last step."""
        self._hand_out()  # nobody logs again what waits now
        return {"last": self.last}

    def finish(self) -> None:
        """Hand out what waits, and tell all backends the end."""
        self._hand_out()
        self._tell("end")
        self.backends.clear()

    def _hand_out(self) -> None:
        everything = [one for _, values in self.waiting for one in values.values()]
        tensors = [one for one in everything if isinstance(one, torch.Tensor)]
        read = iter(torch.stack(tensors).tolist() if tensors else [])  # at once
        for step, values in self.waiting:
            numbers = {
                name: next(read) if isinstance(one, torch.Tensor) else one
                for name, one in values.items()
            }
            self._tell("step", step, numbers)
        self.waiting.clear()
        self._tell("flush")

    def _tell(self, word: str, *args: Any) -> None:
        for backend in list(self.backends):
            try:
                backend[word](*args)
            except Exception as error:
                self.backends.remove(backend)
                self._warn(error)

    def _warn(self, error: Exception) -> None:
        warnings.warn(f"A backend is told no more: {type(error).__name__}: {error}", stacklevel=2)


def copied(value: Any) -> float | torch.Tensor:
    """Return a number as a float, a tensor of one element as a float64 of its own, where it is."""
    if isinstance(value, torch.Tensor):
        return value.detach().to(torch.float64, copy=True).reshape(())
    return float(value)


def in_our_words(backend: Any) -> dict[str, Callable]:
    """Return how to tell a backend the configuration, a step, to flush, and the end."""

    def nothing(*args: Any) -> None:
        pass

    if hasattr(backend, "log_metrics"):
        return {
            "config": backend.log_params,
            "step": lambda step, values: backend.log_metrics(values, step=step),
            "flush": nothing,
            "end": backend.end_run,
        }
    if hasattr(backend, "log"):
        return {
            "config": lambda values: backend.config.update(values),
            "step": lambda step, values: backend.log(values, step=step),
            "flush": nothing,
            "end": backend.finish,
        }
    return {
        "config": nothing,
        "step": backend.add,
        "flush": backend.flush,
        "end": backend.close,
    }
    ### END SOLUTION


# %% grade="Run"
grade("Run")

# %% [markdown]
# The same training with your logger, which writes two places at once. It is killed after step 9, and goes on from its checkpoint of
# step 7. All twelve steps should be there, once each.

# %%
if written("EventWriter", "Run"):
    place = tempfile.mkdtemp()
    openers = [
        lambda start: Lines(os.path.join(place, "steps.jsonl"), start),
        lambda start: EventWriter(place, time.time_ns, start),
    ]
    run = Run(openers, every=5)
    for step in range(1, 10):
        run.log(step, {"loss": torch.tensor(1 / step)})
        if step == 7:
            checkpoint = run.state_dict()
    run = Run(openers, every=5, state=checkpoint)
    for step in range(8, 13):
        run.log(step, {"loss": torch.tensor(1 / step)})
    run.finish()
    text = Path(place, "steps.jsonl").read_text()
    print("steps:", [json.loads(line)["step"] for line in text.splitlines()])
    print("files:", sorted(path.name.split(".")[0] for path in Path(place).iterdir()))

# %% [markdown] sitting="unnoticed"
# question: Can a flight recorder go unnoticed?
# reached: >-
#   Yes: it counts on copies, on the device, reads all at once and seldom, sees each step through the optimizer's own
#   hooks, and takes everything back at the end, whatever was raised.

# %% [markdown]
# ## What a recorder would disturb
#
# All pieces are there: statistics that read nothing, a trace, event files. A flight recorder puts them
# around a loop that it does not know. There lie the traps of this chapter, all at once. Here is one more.
# To see when backward begins, one might register a backward hook on the model.
#
# **Predict.** What does the hook of a module, which does nothing, change in the graph of its output? Write the name of the
# output's `grad_fn`.


# %%
def grad_fn_of(hooked):
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    if hooked:
        model.register_full_backward_hook(lambda module, gradients, more: None)
    return type(model(torch.ones(1, 2)).grad_fn).__name__


print("without a hook:", grad_fn_of(False))
predict(..., lambda: grad_fn_of(True))

# %% [markdown]
# The output is a view now, made by a node of its own, and to write to it in place raises. So a recorder that
# wants to go unnoticed hooks forward, and the optimizer, whose hooks see gradients as they are used, after
# unscaling and clipping. They are not called where a `GradScaler` skips a step.
#
# **Predict.** A block of the model is checkpointed: `torch.utils.checkpoint.checkpoint` runs its forward again
# during backward, as far as it must. How often is the forward hook of a ReLU in the middle of it called for one step?


# %%
def calls_of_a_hook():
    block, calls = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2)), []
    block[1].register_forward_hook(lambda *_: calls.append(1))
    x = torch.ones(1, 2, requires_grad=True)
    torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False).sum().backward()
    return len(calls)


predict(..., calls_of_a_hook)

# %% [markdown]
# What was computed again was not another call of the model. A hook on the model itself tells the two
# apart: it runs when a call begins and when it ends, and backward is neither.
#
# And when does one read? Values wait on the device until some have come together. Eight steps with
# `every=3` are three reads: after the third step, after the sixth, and at the end, for the two that
# still wait.
#
# Draw: show_cells({"events that wait": [(str((step - 1) % 3 + 1), "waiting") for step in range(1,
# 9)] + [("2", "waiting")], "one read": [step in (3, 6, 9) for step in range(1, 10)]}, [f"step
# {step}" for step in range(1, 9)] + ["the end"]) | What waits at the end of each step, and when all
# of it is read at once.

# %% [markdown] exercise="recorder"
# title: Build a flight recorder that cannot be noticed
# minutes: 75
# difficulty: 5
# points: 15
# prerequisites: [EventWriter, Tracer]
# teaches: >-
#   the observer's contract as a whole: record a run that you do not see, read seldom, keep nothing, leave nothing, go on where a
#   checkpoint left off.
# leaves out: compiled models; several optimizers; ranks; the memory of a GPU.
# off limits: ["import:tensorboard", torch.profiler.profile, torch.autograd.profiler.profile]
# forbids: TensorBoard and the profiler

# %% [markdown]
# **Write `recorder(model, optimizer, folder, clock, every=10, step=0)`**, a context manager around a
# training loop. It yields a function `note`, which the loop calls with what it alone knows: `note(loss=loss)`.
#
# With your `EventWriter` it writes one event for each call of `optimizer.step` that returns. These are the
# steps `step + 1`, `step + 2`, …; a step that a `GradScaler` skips is none. An event has these tags:
#
# | tag | value |
# |---|---|
# | `loss`, or what else was noted | the mean of what was noted under this name since the step before; absent if nothing was |
# | `grad_norm` | the norm of all gradients together that this step uses, in float32, each parameter of the optimizer once; absent if there are none |
# | `lr/0`, `lr/1`, … | the learning rate that this step uses, for each group of parameters |
# | `zeros/NAME` | of each `nn.ReLU` in `model`, by the first name in `named_modules()`: the share of zeros in its outputs in all calls of `model` in training mode since the step before; absent if there were none |
#
# With your `Tracer` it writes `trace.STEP.json` into the folder, where `STEP` is the argument `step`: a span `forward` for each call of `model`,
# with `training` in its args, and a span `step` for each call of `optimizer.step`, with its `number`.
#
# - **The run is the same**, to the last bit: parameters, gradients, optimizer, buffers, random numbers, and the graph.
# - **Few values are read.** One read, of all steps at once, when a step's number is a multiple of
#   `every`, and one at the end, if steps are waiting. By then they are in the file, flushed.
# - **Nothing is kept**: no graph, no activation, and no more tensors after a hundred steps than after ten. What was noted may be
#   changed in place right after the call.
# - **Nothing is left.** At the end hooks are gone and both files are written, also if the loop or the model raised. The exception goes on.
# - **It goes on.** A training that was resumed from a checkpoint of step 40 passes `step=40`. The folder's steps from 41
#   on are void then: `EventWriter` can say so. The very first run, with `step=0`, says nothing of that.
#
# `note` takes tensors of one element and numbers. What the recorder sees of `model` are calls of `model` itself, not of its parts.
#
# <details><summary>Hint 1: hooks</summary>
#
# `model.register_forward_pre_hook` and `register_forward_hook(…, always_call=True)`, which is called where forward
# raised, too; forward hooks of the `nn.ReLU`s; `optimizer.register_step_pre_hook` and
# `register_step_post_hook`. Put `handle.remove` of each into an `ExitStack`.
#
# </details>
# <details><summary>Hint 2: recomputed, or evaluated</summary>
#
# Count zeros only while a call of `model` is running that began in training mode. The recomputation of a checkpoint happens in
# backward, when no call of `model` is.
#
# </details>
# <details><summary>Hint 3: one read</summary>
#
# Keep a tensor for each value until the read: `value.detach().to(torch.float32, copy=True)` shares nothing. Then
# `torch.stack(all of them).tolist()` is one read. Sums and counts can be kept on the device, too; how many elements an
# output has, Python knows without a read.
#
# </details>


# %% solution="recorder"
@contextmanager
def recorder(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    folder: str,
    clock: Callable[[], int],
    every: int = 10,
    step: int = 0,
) -> Iterator[Callable[..., None]]:
    """Record a training loop in event files and a trace; yield `note(**values)`."""
    ### BEGIN SOLUTION
    writer = EventWriter(folder, clock, start=step + 1 if step else None)
    tracer = Tracer(clock)
    number = step
    sums: dict[
        str, list
    ] = {}  # of each tag since the last step: a tensor, and what it is divided by
    waiting: list[tuple[int, dict[str, torch.Tensor]]] = []
    running: list = []  # spans of the model's calls that have begun, and whether each is in training mode
    stepping: list = []  # spans of the optimizer's

    def copied(value: Any) -> torch.Tensor:
        # a copy: the loop may change its own in place before we read
        return torch.as_tensor(value).detach().to(torch.float32, copy=True).reshape(())

    def add(tag: str, value: torch.Tensor, count: int) -> None:
        total, counted = sums.get(tag, (0, 0))
        sums[tag] = [total + value, counted + count]

    def note(**values: Any) -> None:
        for name, value in values.items():
            add(name, copied(value), 1)

    def forward_begins(module: nn.Module, inputs: Any) -> None:
        span = tracer.span("forward", training=module.training)
        span.__enter__()
        running.append((span, module.training))

    def forward_ends(module: nn.Module, inputs: Any, output: Any) -> None:
        running.pop()[0].__exit__(None, None, None)

    def count_zeros(tag: str, output: torch.Tensor) -> None:
        # what a checkpoint computes again in backward is in no call of the model
        if any(training for _, training in running):
            nonzero = torch.count_nonzero(output.detach())
            add(tag, (output.numel() - nonzero).double(), output.numel())

    def step_begins(optimizer: torch.optim.Optimizer, *_: Any) -> None:
        span = tracer.span("step", number=number + 1)
        span.__enter__()
        stepping.append(span)
        groups = optimizer.param_groups
        grads = [p.grad.detach() for g in groups for p in g["params"] if p.grad is not None]
        if grads:
            norms = [torch.linalg.vector_norm(grad, dtype=torch.float32) for grad in grads]
            sums["grad_norm"] = [torch.linalg.vector_norm(torch.stack(norms)), 1]
        for place, group in enumerate(groups):
            sums[f"lr/{place}"] = [copied(group["lr"]), 1]

    def step_ends(*_: Any) -> None:
        nonlocal number
        stepping.pop().__exit__(None, None, None)
        number += 1
        waiting.append((number, {tag: total / count for tag, (total, count) in sums.items()}))
        sums.clear()
        if number % every == 0:
            flush()

    def flush() -> None:
        if waiting:
            values = [value.float() for _, found in waiting for value in found.values()]
            numbers = iter(torch.stack(values).tolist())  # the one read
            for at, found in waiting:
                writer.add(at, {tag: next(numbers) for tag in found})
            waiting.clear()
        writer.flush()

    with ExitStack() as stack:
        stack.callback(tracer.write, os.path.join(folder, f"trace.{step}.json"))
        stack.callback(writer.close)
        stack.callback(flush)
        handles = [
            model.register_forward_pre_hook(forward_begins),
            model.register_forward_hook(forward_ends, always_call=True),
            optimizer.register_step_pre_hook(step_begins),
            optimizer.register_step_post_hook(step_ends),
        ]
        for name, module in model.named_modules():
            if isinstance(module, nn.ReLU):

                def counts(module, inputs, output, tag=f"zeros/{name}"):
                    count_zeros(tag, output)

                handles.append(module.register_forward_hook(counts))
        for handle in handles:
            stack.callback(handle.remove)
        yield note
    ### END SOLUTION


# %% grade="recorder"
grade("recorder")

# %% [markdown]
# Here it is around the loop at the top of this chapter. With the extra `watch` installed, `tensorboard --logdir` shows the
# folder; the trace is for Perfetto.

# %%
if written("recorder"):
    flight = tempfile.mkdtemp()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = torch.randn(16, 4), torch.randn(16, 1)
    with recorder(model, optimizer, flight, time.time_ns) as note:
        for _ in range(25):
            optimizer.zero_grad()
            loss = ((model(x) - y) ** 2).mean()
            note(loss=loss)
            loss.backward()
            optimizer.step()
    for path in sorted(Path(flight).iterdir()):
        print(path.name.split(".")[0], path.suffix == ".json", path.stat().st_size > 1000)

# %% [markdown]
# ### Other recorders
#
# Weights & Biases, MLflow, ClearML, Comet, Neptune and VisualDL keep records of runs, in files or on a server. Whatever
# they call it, there are four things to be told:
#
# | what | in Weights & Biases |
# |---|---|
# | what the run was told | `wandb.init(config=...)` |
# | what it measured | `run.log({...})` |
# | what it made | `run.log_artifact(...)` |
# | that it has ended | `run.finish()` |
#
# None of them was run here. By the documentation of Weights & Biases each call of `run.log` is a **new step**, so two calls in
# one iteration are two steps, unless both say `step=`. With `WANDB_MODE=offline` all stays on disk until `wandb sync`. Commit
# and installed packages can be noted too: without them nobody can repeat the run.
#
# None of this promises the observer's contract. `SummaryWriter.add_graph`, for one, breaks it: it puts a model
# that trains into eval mode, and back by `model.train(True)`. A frozen batch norm then trains (`_set_model_to_eval` in
# `torch/utils/tensorboard/_pytorch_graph.py`). What it draws is a trace by `torch.jit.trace`: one example's way, as in
# chapter 7. Before you trust a recorder, compare two runs to the last bit, as at the top of this chapter.
#
# What only draws is another kind of tool. Plotly makes charts, Dash puts them on pages, and Netron draws a model
# from its file.
