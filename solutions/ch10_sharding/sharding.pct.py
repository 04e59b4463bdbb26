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

# %% [markdown] chapter="ch10_sharding"
# title: Models that do not fit
# summary: >-
#   A rank may hold a quarter of a model and still compute with all of it. Where is each number at
#   each moment, who sends it, and what proves that the result is that of one big machine? In this
#   chapter you cut tensors, layers, losses and whole models among real processes, and count every
#   byte that they say to each other.
# preload: [torch._dynamo, torch.distributed.fsdp, torch.distributed.tensor.parallel, torch.distributed.checkpoint, torch.distributed.pipelining]
# off limits:
#   sharding:
#     says: "PyTorch's own sharding: DTensor, FSDP, pipelining, checkpoints, collectives for autograd, DDP"
#     rules: [torch.distributed.tensor, torch.distributed.fsdp, torch.distributed.pipelining, torch.distributed.checkpoint, torch.distributed.nn, torch.distributed._functional_collectives, torch.nn.parallel.DistributedDataParallel]

# %% [markdown]
# ## What to bring
#
# Chapter 8 is what this one stands on: ranks, groups, and collectives that wait for everyone. Some of
# it comes from chapter 5: a function with a backward of its own.
#
# Where a cell calls `predict(...)`, write your guess in place of the dots before you run it.
# Nobody grades a guess. The ranks are forks of this notebook's process. A rank that hangs is ended
# after a few seconds, and you are told where it stood.

# %%
import math
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path

import torch
import torch._dynamo  # FSDP imports it. Here, that happens once and not in every fork
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh

from grader import (
    RanksHung,
    grade,
    hint,
    on_ranks,
    predict,
    solution,
    watch_collectives,
    watch_memory,
    watch_saved,
    written,
)

# %% [markdown] sitting="layouts"
# question: How is one tensor spread over several ranks?
# reached: >-
#   Each rank has all of it, a part of its rows, or a part of every sum. To go from one to another
#   is a collective, or nothing at all.

# %% [markdown]
# ## A quarter each
#
# In chapter 8 every rank had the whole model. A model of seven billion parameters takes 28 GB in
# `float32`, its gradients 28 more, Adam's two averages 56. No card has that. But eight cards have it
# together, if each keeps an eighth of everything.
#
# Look: ddp/zero#panel=zero&params=7B&ranks=8&optimizer=adam&precision=mixed&stage=3 | Seven billion
# parameters on eight ranks that keep an eighth each. Choose stage 0, where every rank keeps all.
#
# So a tensor is cut up, and a rank's part is called its **shard**. What is a shard of a tensor that does
# not come out even? PyTorch has a class for tensors of several ranks, `DTensor`. Ask it: ten rows, three
# ranks.

# %%
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch.distributed.tensor import Shard, distribute_tensor


def rows_of(length, ranks):
    def body(rank):
        mesh = init_device_mesh("cpu", (ranks,))
        return distribute_tensor(torch.arange(length), mesh, [Shard(0)]).to_local().tolist()

    return on_ranks(ranks, body)


for rank, rows in enumerate(rows_of(10, 3)):
    print(f"rank {rank} has rows", *rows)

# %% [markdown] exercise="cut"
# title: Cut a tensor up, and put it together
# minutes: 20
# difficulty: 1
# points: 5
# short: true
# prerequisites: []
# teaches: >-
#   who has which rows when they do not come out even, and why the rule is this one and not a fairer
#   one: all padding then lies at the end.
# leaves out: tensors that are cut along several dimensions, and shards that are interleaved.
# off limits: [sharding, torch.chunk, torch.Tensor.chunk]
# forbids: "PyTorch's own sharding, and `chunk`"

# %% [markdown]
# Rank 0 has four rows, the others have three? No: 4, 4 and 2. Each rank takes the same number, the
# length divided by the ranks and **rounded up**, as long as there are rows. Somebody gets the rest. It
# is the rule of `torch.chunk`.
#
# **Predict.** Five rows, four ranks. How many has the last one?

# %%
predict(..., lambda: len(rows_of(5, 4)[-1]))

# %% [markdown]
# `torch.tensor_split` is fairer. Its shards differ by one row at most. Why is that not the rule? Look at
# what a collective does. An all-gather puts shards of **equal** size one behind the other, so a short
# one is filled up with zeros first. Five rows a to e on four ranks, by both rules:
#
# | | rank 0 | rank 1 | rank 2 | rank 3 | gathered |
# |---|---|---|---|---|---|
# | rounded up | a b | c d | e **0** | **0 0** | `a b c d e 0 0 0` |
# | fair | a b | c **0** | d **0** | e **0** | `a b c 0 d 0 e 0` |
#
# By the first rule all padding lies at the end. What was gathered holds the tensor as it is, and one slice
# takes it out. By the fair one every row behind rank 0's has to be moved. (An older name of `all_gather_single`
# is `all_gather_into_tensor`, and that is what it is called below.)

# %%
shards = [torch.tensor(rows) for rows in ([10, 11], [12, 13], [14, 0], [0, 0])]


def gathered(rank):
    whole = torch.empty(8, dtype=torch.int64)
    with watch_collectives() as seen:
        dist.all_gather_single(whole, shards[rank])
    return whole.tolist(), seen.events


whole, said = on_ranks(4, gathered)[2]
print(whole)
print("rank 2 called", said)

# %% [markdown]
# **Write three functions.** A *row* is what one index of dim 0 holds, whatever the other dims are.
#
# - `cut(length, ranks)` returns a list with a pair `(offset, size)` for each rank: where its rows begin and
#   how many it has. Each has ⌈length / ranks⌉ rows as long as there are so many, the next one has what is
#   left, and those behind it have none. Theirs begin at `length`. The length may be 0.
# - `pad(shard, length, ranks)` gets a rank's rows, `(size, …)`, and returns a tensor of ⌈length / ranks⌉
#   rows: the shard's, and zeros behind them.
# - `join(gathered, length)` gets the padded shards of all ranks one behind the other, and returns the
#   tensor's `length` rows, as a view of `gathered`.
#
# <details><summary>Hint 1: rounding up</summary>
#
# `-(-length // ranks)`. Python's `//` rounds down, so the negative of the negative rounds up. `math.ceil` of
# a quotient works with floats, which end at 2⁵³.
#
# </details>
# <details><summary>Hint 2: behind the end</summary>
#
# Rank `r` would begin at `r * rows`. Where that is behind the end, it begins at the end. So does the next
# one, and a size is the distance from one beginning to the next.
#
# </details>
# <details><summary>Hint 3: zeros</summary>
#
# `x.new_zeros(size)` has the dtype of `x`. Its other dims are `shard.shape[1:]`.
#
# </details>


# %% solution="cut"
def cut(length: int, ranks: int) -> list[tuple[int, int]]:
    """Return the offset and the size of each rank's rows."""
    ### BEGIN SOLUTION
    rows = -(-length // ranks)
    begins = [min(rank * rows, length) for rank in range(ranks + 1)]
    return [(begin, end - begin) for begin, end in zip(begins, begins[1:], strict=False)]
    ### END SOLUTION


def pad(shard: torch.Tensor, length: int, ranks: int) -> torch.Tensor:
    """Return the rows of `shard` (size, …), and zeros behind them, to what rank 0 has."""
    ### BEGIN SOLUTION
    padded = shard.new_zeros(-(-length // ranks), *shard.shape[1:])
    padded[: len(shard)] = shard
    return padded
    ### END SOLUTION


def join(gathered: torch.Tensor, length: int) -> torch.Tensor:
    """Return a view of `gathered`, all ranks' padded shards, without the padding."""
    ### BEGIN SOLUTION
    return gathered[:length]
    ### END SOLUTION


# %% grade="cut"
grade("cut")
