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
import os
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
import torch._dynamo  # FSDP imports it. Here, that happens once and not in every fork
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.utils.data import DataLoader

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
    return [(begin, end - begin) for begin, end in pairwise(begins)]
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

# %% [markdown] exercise="redistribute"
# title: From one layout to another
# minutes: 55
# difficulty: 4
# points: 9
# short: true
# prerequisites: [cut]
# teaches: >-
#   the three layouts that a tensor of several ranks has, that collectives are ways from one to another,
#   and which way costs nothing.
# leaves out: meshes of several dimensions, and sums other than plain ones.
# off limits: [sharding, torch.distributed.all_gather_object, torch.distributed.gather, torch.distributed.broadcast]
# forbids: "PyTorch's own sharding; `gather`, `broadcast` and objects"

# %% [markdown]
# Four ranks compute `x @ w` together. There are two ways to share out the products. Each rank may have some
# **columns** of `w`: then it gets some columns of the result, finished. Or some **rows** of `w`, and the
# columns of `x` that go with them: then it gets a matrix of the full size, in which most of each sum is
# missing. The result is there, but nobody has it: it is the sum of what all have.
#
# So a tensor of several ranks is laid out, its **placement**, in one of three ways:
#
# | placement | each rank has | the tensor is |
# |---|---|---|
# | `"replicate"` | all of it | what any rank has |
# | `("shard", dim)` | its part along `dim`, by the rule of `cut` | the parts, one behind the other |
# | `"partial"` | a tensor of the full size | the sum of what all ranks have |
#
# In PyTorch these are `Replicate()`, `Shard(dim)` and `Partial()`, and they are part of a `DTensor`. It changes
# them on its own when an operator needs it. Nothing in the program says so:

# %%
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch.distributed.tensor import DTensor, Partial, Replicate

doings = {
    "x * 2": lambda x: x * 2,
    "x + 1": lambda x: x + 1,
    "x.relu()": torch.relu,
    "x.sum(1)": lambda x: x.sum(1),
    "x.softmax(1)": lambda x: x.softmax(1),
}


def said(rank):
    mesh = init_device_mesh("cpu", (4,))
    found = []
    for placement, mine in ((Shard(1), torch.ones(8, 2)), (Partial(), torch.ones(8, 8))):
        x = DTensor.from_local(mine, mesh, [placement])
        for name, do in doings.items():
            with watch_collectives() as seen:
                do(x)
            found.append((str(placement), name, seen.events))
    return found


for placement, name, events in on_ranks(4, said)[0]:
    print(f"{placement:>12} {name:14}", *(f"{what} {size}" for what, size in events))

# %% [markdown]
# Twice a sum is the sum of what is twice as much, so `x * 2` of a partial tensor needs nobody. To add 1 on
# each of four ranks would add 4. So the sum is made first. A softmax along a dim that is cut up needs the
# whole row.
#
# **Predict.** A DTensor of 8 × 8 `float32`, sharded along dim 0 on four ranks, is wanted along dim 1. Of its
# 64 bytes each rank needs a quarter. The other three quarters are to go to the others. How many bytes in all
# does a rank **receive** where everybody sends each part to whom it belongs?

# %%
predict(..., lambda: 3 * (2 * 2) * 4)

# %% [markdown]
# On CPU, DTensor gathers all of it there and throws most away: 192 bytes received. On your way nothing
# is received that is not kept.
#
# Draw: show_bars({"gathered, then cut": 3 * 16 * 4, "each part to whom it belongs": 3 * (2 * 2) * 4},
# "bytes") | What one of four ranks receives where 64 numbers go from dim to dim.
#
# `dist.all_to_all_single(out, x, out_sizes, in_sizes)` cuts `x` along dim 0 into one piece for each rank, sends
# piece `r` to rank `r`, and puts what comes from rank `r` into piece `r` of `out`. The sizes may differ, and
# may be 0:

# %%


def exchanged(rank):
    x = torch.tensor([10, 11, 12]) if rank == 0 else torch.tensor([20])
    sent, came = ([1, 2], [1, 0]) if rank == 0 else ([0, 1], [2, 1])
    out = torch.empty(sum(came), dtype=torch.int64)
    dist.all_to_all_single(out, x, came, sent)
    return out.tolist()


print(on_ranks(2, exchanged))

# %% [markdown]
# The other collectives know no sizes. To `dist.all_gather_single(out, x)` all ranks bring as much, and `out`
# has room for all. `dist.reduce_scatter_single(out, x)` adds up what all ranks have, cuts the sum into equal
# parts along dim 0, and gives each rank one. All of them want contiguous tensors.
#
# **Write `redistribute(local, shape, source, target, group=None)`.** Every rank of `group` calls it. A tensor
# of `shape`, of up to three dims, is laid out over the group as `source` says, and `local` is what this rank
# has of it. Return what it has of the same tensor laid out as `target` says.
#
# | from | to | by |
# |---|---|---|
# | `"replicate"` | anything | no message |
# | `("shard", dim)` | `"replicate"` | one all-gather |
# | `("shard", dim)` | `("shard", other)` | one all-to-all |
# | `("shard", dim)` | `"partial"` | no message |
# | `"partial"` | `"replicate"` | one all-reduce |
# | `"partial"` | `("shard", dim)` | one reduce-scatter |
# | anything | the same | no message |
#
# - Parts may differ in size, and some ranks may have an empty one. What a collective needs to be equal is
#   padded; more than that nobody brings.
# - What is partial is exact: where a tensor becomes partial, the sum of what the ranks have is the tensor to
#   the last bit, for floats of any size.
# - The result is a new tensor: it shares no memory with `local`, and `local` stays as it was. It may lie in memory
#   as you like. So may `local`.
# - `group` may be some of the ranks only. A rank's number in it is `dist.get_rank(group)`.
#
# <details><summary>Hint 1: one dim for all</summary>
#
# Collectives cut and put together along dim 0. `x.movedim(dim, 0)` makes a view in which your dim is the first;
# `x.movedim(0, dim)` goes back. `.contiguous()` copies it where it must.
#
# </details>
# <details><summary>Hint 2: nothing to say</summary>
#
# To make a partial tensor, one rank keeps what it has and all others have zeros. From shards, each rank puts its
# part into zeros of the full shape. To divide by the number of ranks is a rounding.
#
# </details>
# <details><summary>Hint 3: from dim to dim</summary>
#
# Cut your part along the *new* dim into a piece for each rank, with the sizes of `cut`. What you get from
# rank `r` is as long as *its* part along the old dim, and as your own along the new one. Put these together
# along the old dim. On the way they are flat: `reshape(-1)`, `torch.cat`, `split`, `view`.
#
# </details>


# %% solution="redistribute"
def redistribute(
    local: torch.Tensor,
    shape: tuple[int, ...],
    source: str | tuple[str, int],
    target: str | tuple[str, int],
    group: dist.ProcessGroup | None = None,
) -> torch.Tensor:
    """Return this rank's part of a tensor of `shape` in another layout, a new tensor.

    source, target: "replicate", "partial" or ("shard", dim)
    """
    ### BEGIN SOLUTION
    rank, ranks = dist.get_rank(group), dist.get_world_size(group)

    def sizes(dim):
        return [size for _, size in cut(shape[dim], ranks)]

    if source == target:
        return local.clone()
    if source == "replicate":
        if target == "partial":  # one rank has it, so nothing is rounded
            return local.clone() if rank == 0 else torch.zeros_like(local)
        return local.split(sizes(target[1]), target[1])[rank].clone()
    if source == "partial" and target == "replicate":
        total = local.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(total, group=group)
        return total
    if source == "partial":
        dim = target[1]
        terms = pad(local.movedim(dim, 0), sizes(dim)[0] * ranks, 1)
        own = terms.new_empty(sizes(dim)[0], *terms.shape[1:])
        dist.reduce_scatter_single(own, terms, group=group)
        return own[: sizes(dim)[rank]].movedim(0, dim)
    dim = source[1]
    if target == "partial":
        term = local.new_zeros(shape)
        term.split(sizes(dim), dim)[rank].copy_(local)
        return term
    if target == "replicate":
        own = pad(local.movedim(dim, 0), shape[dim], ranks)
        gathered = own.new_empty(ranks * len(own), *own.shape[1:])
        dist.all_gather_single(gathered, own, group=group)
        return join(gathered, shape[dim]).movedim(0, dim)
    # each rank's rows cut into everybody's columns: piece r goes to rank r
    leaving = local.split(sizes(target[1]), target[1])
    shapes = []
    for size in sizes(dim):
        of_rank = list(leaving[rank].shape)
        of_rank[dim] = size
        shapes.append(of_rank)
    counts = [math.prod(of_rank) for of_rank in shapes]
    came = local.new_empty(sum(counts))
    sent = torch.cat([piece.reshape(-1) for piece in leaving])
    dist.all_to_all_single(came, sent, counts, [p.numel() for p in leaving], group=group)
    pieces = zip(came.split(counts), shapes, strict=True)
    return torch.cat([piece.view(of_rank) for piece, of_rank in pieces], dim)
    ### END SOLUTION


# %% grade="redistribute"
grade("redistribute")

# %% [markdown] sitting="layers"
# question: How do several ranks compute one layer?
# reached: >-
#   The first matrix is cut by columns, the second by rows: one sum at the end, and in backward one
#   sum at the beginning. Where rows of the batch are cut up too, the sums become gathers and scatters.

# %% [markdown] exercise="mlp"
# title: Two layers, cut apart
# minutes: 45
# difficulty: 4
# points: 9
# prerequisites: []
# teaches: >-
#   why two layers in a row need one collective forward and one backward, and that autograd knows nothing
#   of a collective: what its backward is, you decide.
# leaves out: dropout, and layers that are cut by their inputs first.
# off limits: [sharding]

# %% [markdown]
# Most weights of a transformer are in pairs: a layer that makes a token wide, an activation, a layer that
# makes it narrow again. Cut the first matrix by its **outputs**. Each rank gets some hidden features,
# finished, and can apply the activation to them on its own. Cut the second by its **inputs**, at the same
# places. Each rank has just the features that its part wants, and what it gets is a term of a sum:
#
# | | shape | on each rank | placement |
# |---|---|---|---|
# | `x` | (batch, features) | all of it | replicate |
# | `up` | (hidden, features) | some rows | shard 0 |
# | `h` | (batch, hidden) | some columns | shard 1 |
# | `down` | (features, hidden) | some columns | shard 1 |
# | `h @ down.T` | (batch, features) | a term | partial |
# | the output | (batch, features) | the sum | replicate |
#
# Draw: show_cells({name: [f"rank {part}" for part in range(4)] for name in ("rows of `up`",
# "columns of `h`", "columns of `down`")}) | Hidden features keep their rank from the first matrix to the
# second: nothing has to be sent in between.
#
# One all-reduce, at the end, however many hidden features there are. Now backward. Every rank has the whole
# output and computes the same loss of it. Before you write it, look at what autograd makes of a collective:


# %%
def through_a_sum(rank):
    w = torch.tensor([3.0], requires_grad=True)
    y = w * (rank + 1)
    dist.all_reduce(y)  # in place, on a tensor that has a history
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        y.backward()
    said = [str(warning.message).partition(" to the")[0] for warning in caught]
    return y.item(), w.grad.item(), said


for found in on_ranks(2, through_a_sum):
    print(*found)

# %% [markdown]
# No error. In `backward` there is a warning, once in a process, that is easily lost among others. The gradient is
# that of the product: backward goes through the sum as if it were not there. Is that wrong? It depends on the question. If
# each rank's loss is *its own* and their sum is meant, then a term of rank 0 counts in both losses, and its
# gradient is the sum of both: 2 and 4 in place of 1 and 2. Here all ranks have **one** loss, and each has
# computed all of it. Then a term's gradient is the output's, as it is.
#
# `torch.distributed.nn.functional.all_reduce` answers the first question: its backward is an all-reduce.
# Who takes it for one loss gets gradients that are too large.
#
# **Predict.** Four ranks, one loss that all of them compute, and an all-reduce whose backward is an
# all-reduce. How many times too large is the gradient of a weight?


# %%
def too_large(rank):
    from torch.distributed.nn.functional import all_reduce

    w = torch.tensor([1.0], requires_grad=True)
    all_reduce(w * 1.0).sum().backward()
    return w.grad.item()


predict(..., lambda: round(on_ranks(4, too_large)[0]))

# %% [markdown]
# And at the other end: each rank computes a gradient of `x` from *its* hidden features. That is a term
# again, of a sum over all hidden features. So the copy of `x` that every rank begins with is not nothing.
# It is a function of its own:
#
# | | forward | backward |
# |---|---|---|
# | f, where `x` comes in | nothing | all-reduce |
# | g, where the terms go out | all-reduce | nothing |
#
# Each is the other one's mirror. Leave f out, and the gradients of all four weights are right to the last
# bit, and the loss of this step is. Only what lies *below*, the layers before, learns something else on each
# rank.
#
# Look: autograd/graph#code=x = torch.ones(2, requires_grad=True);a = x * 2;b = x * 3;y = a + b;loss = y.sum() |
# `x` is used twice, so its gradient is a sum of two terms. If `a` and `b` are on two ranks, somebody has to
# add them up.
#
# **Write `mlp(x, up, up_bias, down, down_bias, group=None)`.** It computes
# `F.linear(F.gelu(F.linear(x, up, up_bias)), down, down_bias)` of weights that are shared out over `group`.
#
# - `x` (batch, features) and `down_bias` (features,) are whole on every rank, and the same. Of `up`,
#   `up_bias` and `down` each rank has its hidden features: (mine, features), (mine,) and (features, mine). How
#   many these are may differ. A rank may have none.
# - Every rank returns the whole output. All compute the same loss of it and call `backward`. Then each has
#   the gradients that one process with all weights would have: of `x` and `down_bias` all of it, of the others
#   its part.
# - Forward is one all-reduce of the output's bytes, and nothing else is said. Backward is one all-reduce of
#   the bytes of `x`.
# - Under `torch.no_grad()` it computes the same.
#
# <details><summary>Hint 1: a function with a backward of its own</summary>
#
# A `torch.autograd.Function` has two static methods. `forward(ctx, x, group)` may keep the group as
# `ctx.group`; `backward(ctx, grad)` returns a gradient for each argument of `forward`, `None` for the group.
#
# </details>
# <details><summary>Hint 2: do not return what you were given</summary>
#
# Where f has nothing to do, `x.view_as(x)` is a new tensor with the same memory. And a gradient that came in is
# not yours to write into: `grad.clone()` first, contiguous.
#
# </details>
# <details><summary>Hint 3: the bias</summary>
#
# What every rank adds before the sum is in it n times. The first bias belongs to hidden features, of which each
# is on one rank. The second one is added once, behind the sum.
#
# </details>


# %% solution="mlp"
def mlp(
    x: torch.Tensor,
    up: torch.Tensor,
    up_bias: torch.Tensor,
    down: torch.Tensor,
    down_bias: torch.Tensor,
    group: dist.ProcessGroup | None = None,
) -> torch.Tensor:
    """Return two layers' output (batch, features), their hidden features shared out over `group`.

    x: (batch, features), on every rank the same
    up, up_bias, down: (mine, features), (mine,), (features, mine), this rank's hidden features
    """

    ### BEGIN SOLUTION
    class Enter(torch.autograd.Function):
        """All ranks begin with the same; what each finds out about it is a term."""

        @staticmethod
        def forward(ctx, x):
            return x.view_as(x)

        @staticmethod
        def backward(ctx, grad):
            total = grad.clone(memory_format=torch.contiguous_format)
            dist.all_reduce(total, group=group)
            return total

    class Leave(torch.autograd.Function):
        """Each rank ends with a term; what the loss says of the sum holds for each of them."""

        @staticmethod
        def forward(ctx, term):
            total = term.clone(memory_format=torch.contiguous_format)
            dist.all_reduce(total, group=group)
            return total

        @staticmethod
        def backward(ctx, grad):
            return grad

    hidden = F.gelu(F.linear(Enter.apply(x), up, up_bias))
    return Leave.apply(F.linear(hidden, down)) + down_bias
    ### END SOLUTION


# %% grade="mlp"
grade("mlp")

# %% [markdown]
# In PyTorch, `parallelize_module` does this to a module that you wrote for one process. Its weights become
# DTensors, and the collectives follow from the placements:

# %%
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        parallelize_module,
    )


def by_plan(rank):
    model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 4))
    plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
    parallelize_module(model, init_device_mesh("cpu", (4,)), plan)
    x = torch.ones(2, 4, requires_grad=True)
    with watch_collectives() as seen:
        out = model(x)
        seen.note("backward")
        out.sum().backward()
    return tuple(model[0].weight.to_local().shape), seen.events


shape, events = on_ranks(4, by_plan)[0]
print("up:", shape, *(f"{what} {size}" if size else what for what, size in events))

# %% [markdown]
# These two messages are yours. (PyTorch's want hidden features that come out even. Yours take any.)

# %% [markdown] exercise="sequence_block"
# title: Cut the rows as well
# minutes: 45
# difficulty: 4
# points: 10
# prerequisites: [redistribute, mlp]
# teaches: >-
#   that an all-reduce is a reduce-scatter and an all-gather, and what can be done on shards in between; that
#   these two are each other's backward; and whose gradients nobody adds up unless you do.
# leaves out: attention, dropout, and gathering again in backward instead of keeping what was gathered.
# off limits: [sharding]

# %% [markdown]
# Before the two layers there is a norm. In `mlp` every rank has all of `x`, so each of them normalises all rows
# and keeps them all for backward: the same work and the same memory, n times. That part was not cut.
#
# It can be cut the other way. A norm looks at one row (a token) at a time, so each rank takes some **rows**. Where
# the layers begin, every rank wants all rows: an all-gather. Where they end there is a sum, of which each rank
# wants its rows alone: a reduce-scatter.
#
# | | rows | features | placement |
# |---|---|---|---|
# | `x`, and its norm | mine | all | shard 0 |
# | what the layers get | all | all | replicate |
# | hidden features | all | mine | shard 1 |
# | what they give | all | all | partial |
# | the output | mine | all | shard 0 |
#
# What does it cost? In chapter 8 you built an all-reduce of two halves. The first leaves each rank one piece
# of the sum: that is a reduce-scatter. The second sends these pieces round: an all-gather.
#
# Look: ddp/ring#panel=ring&n=4&size=8&step=3 | An all-reduce at its half: each rank has one piece of the sum. Here
# the norm steps in, on that piece, before the second half.
#
# **Predict.** For its all-reduce of 96 MB in `mlp`, a rank of four sends 144 MB. How many MB does it send for a
# reduce-scatter and an all-gather of the same tensor?

# %%
predict(..., lambda: 2 * 96 * 3 // 4)

# %% [markdown]
# The same. Now backward. What is the backward of an all-gather? A row went to all ranks, each of them made something of
# it, and all of that is in the loss. So its gradient is the **sum** of what all ranks say of that row: a
# reduce-scatter. And a reduce-scatter's backward is an all-gather. To take your own rows out of your own gradient is
# the tempting line, and it is wrong:


# %%
def one_row_each(rank):
    row = torch.tensor([rank + 1.0])
    rows = torch.empty(2)
    dist.all_gather_single(rows, row)
    # each rank multiplies both rows by a weight of its own, 10 or 100; the loss is the sum of all four
    grad_of_rows = torch.full((2,), [10.0, 100.0][rank])
    total = torch.empty(1)
    dist.reduce_scatter_single(total, grad_of_rows)
    return {"cut out": grad_of_rows[rank].item(), "summed": total.item()}


print(on_ranks(2, one_row_each))

# %% [markdown]
# One more thing is shared. Every rank has the norm's weight and bias, and each uses them on its own rows. So each
# finds out a term of their gradients. Nobody adds these up unless you do. The ranks' copies would drift apart, with
# a loss that still falls.
#
# And what of a dropout between? On a rank's rows it should draw for these rows alone. Forks, and programs that all
# call `torch.manual_seed(0)`, have the same random state, and so the same mask on every shard. DTensor on CPU has it
# so, too, and warns of it:


# %%
def masks(rank):
    torch.manual_seed(0)
    rows = distribute_tensor(torch.ones(8, 16), init_device_mesh("cpu", (4,)), [Shard(0)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it may not be complete on CPU
        return F.dropout(rows, 0.5).to_local().tolist()


print("different masks on four shards:", len({str(mask) for mask in on_ranks(4, masks)}))

# %% [markdown]
# Draw: show_bars({"`mlp` behind a norm": 32 * (4 + 2) + 3 * 32 * 4, "rows cut as well": 32 * (4 + 2) + 3 * 8 *
# 4}, "numbers") | What a rank may keep for backward, of 32 rows of 4 features on four ranks, with one hidden feature
# each. What belongs to the norm is a quarter; the layers want all rows.
#
# **Write `sequence_block(x, rows, norm_w, norm_b, up, down, group=None)`.** It computes
# `F.linear(F.gelu(F.linear(F.layer_norm(x, (features,), norm_w, norm_b), up)), down)` of `rows` rows and some hidden
# features, both of them shared out over `group`.
#
# - `x` (mine, features) has this rank's rows by the rule of `cut`: they may differ in number, and some ranks may
#   have none. `norm_w` and `norm_b` (features,) are whole on every rank. `up` (hidden, features) and `down` (features, hidden)
#   are this rank's hidden features, as in `mlp`.
# - Return this rank's rows of the output, (mine, features).
# - The loss is the **sum** of what the ranks compute, each of its own rows. After `backward` each rank has the gradients
#   of that: of `x` its rows, of `norm_w` and `norm_b` all of it, of `up` and `down` its part.
# - Forward says one all-gather and one reduce-scatter. Backward says the same, and the gradients of the norm:
#   one all-reduce or two, of their bytes. What is not even is padded, and no more than that is sent.
# - Autograd keeps of the norm what this rank's rows need. Weights aside, it keeps at most `rows * (features + 2 * hidden)`
#   numbers for the layers, and `3 * mine * features` for the norm.
#
# <details><summary>Hint 1: two functions, and their mirrors</summary>
#
# Write the two ways as plain functions first: from this rank's rows to all of them, and from a term to this rank's
# rows of the sum. Then each `torch.autograd.Function` has the one as its forward and the other as its backward.
#
# </details>
# <details><summary>Hint 2: uneven rows</summary>
#
# To `all_gather_single` each brings as many rows as rank 0 has (`pad`), and `join` takes the padding off. To
# `reduce_scatter_single` each brings n times as many, and keeps as many of its result as it has.
#
# </details>
# <details><summary>Hint 3: weight and bias of the norm</summary>
#
# They come in as `x` did in `mlp`: nothing forward, a sum backward.
#
# </details>


# %% solution="sequence_block"
def sequence_block(
    x: torch.Tensor,
    rows: int,
    norm_w: torch.Tensor,
    norm_b: torch.Tensor,
    up: torch.Tensor,
    down: torch.Tensor,
    group: dist.ProcessGroup | None = None,
) -> torch.Tensor:
    """Return this rank's rows of a norm and two layers; rows and hidden features are shared out.

    x: (mine, features), this rank's of `rows` rows
    norm_w, norm_b: (features,), on every rank the same
    up, down: (hidden, features), (features, hidden), this rank's hidden features
    """
    ### BEGIN SOLUTION
    ranks = dist.get_world_size(group)
    longest = cut(rows, ranks)[0][1]
    mine = cut(rows, ranks)[dist.get_rank(group)][1]

    def gather(part):
        gathered = part.new_empty(longest * ranks, part.shape[1])
        dist.all_gather_single(gathered, pad(part, rows, ranks), group=group)
        return join(gathered, rows)

    def scatter(term):
        part = term.new_empty(longest, term.shape[1])
        dist.reduce_scatter_single(part, pad(term, longest * ranks, 1), group=group)
        return part[:mine]

    class Gather(torch.autograd.Function):
        @staticmethod
        def forward(ctx, part):
            return gather(part)

        @staticmethod
        def backward(ctx, grad):
            return scatter(grad)  # all ranks used the row: their gradients add up

    class Scatter(torch.autograd.Function):
        @staticmethod
        def forward(ctx, term):
            return scatter(term)

        @staticmethod
        def backward(ctx, grad):
            return gather(grad)

    class Shared(torch.autograd.Function):
        @staticmethod
        def forward(ctx, weight):
            return weight.view_as(weight)

        @staticmethod
        def backward(ctx, grad):
            total = grad.clone(memory_format=torch.contiguous_format)
            dist.all_reduce(total, group=group)
            return total

    normed = F.layer_norm(x, x.shape[1:], Shared.apply(norm_w), Shared.apply(norm_b))
    return Scatter.apply(F.linear(F.gelu(F.linear(Gather.apply(normed), up)), down))
    ### END SOLUTION


# %% grade="sequence_block"
grade("sequence_block")

# %% [markdown] sitting="one-answer"
# question: How do ranks agree on a number that none of them can see?
# reached: >-
#   They add up what is a sum, before whatever is not linear: exponentials of a row of logits that no
#   rank holds. What has to be known first, the greatest logit, is a message of its own. Then all hear
#   the same.

# %% [markdown] exercise="vocab_loss"
# title: A cross-entropy that nobody gathers
# minutes: 60
# difficulty: 5
# points: 10
# prerequisites: [cut, mlp]
# teaches: >-
#   how a softmax is computed in parts, and that what has to travel is a few numbers for each token, however
#   large the vocabulary is.
# leaves out: label smoothing, weights of classes, and tied embeddings.
# off limits: [sharding, torch.nn.functional.cross_entropy, torch.nn.CrossEntropyLoss]
# forbids: "PyTorch's own sharding, and `cross_entropy`"

# %% [markdown]
# The largest tensor of a language model's step is often not a weight. It is the logits: one number for each token and
# each word of the vocabulary. 8,192 tokens and 128,000 words in `float32` are 4.2 GB, and their gradient is as much
# again.
#
# The last layer's weight has one row for each word. Cut it by rows, and each rank has the logits of some words, for
# every token. The loss of a token with target $t$ is
#
# $$\\log \\sum_w e^{z_w} \\;-\\; z_t$$
#
# and both parts go over all words. To gather the logits would undo what was won. What does a rank need from the others?
# A sum of exponentials is made of the ranks' sums. The target's logit is on one rank. But exponentials overflow:

# %%
logits = torch.tensor([[100.0, 20.0], [90.0, 101.0]])  # two ranks, two words on each
print("plain:", torch.log(logits.exp().sum()).item())
for rank, mine in enumerate(logits):
    print(f"rank {rank}: greatest {mine.max():.0f}, sum {torch.exp(mine - mine.max()).sum():.4f}")

# %% [markdown]
# So each subtracts the greatest logit first. Which one? The two sums are of different things if each rank subtracts its
# own: $e^{z-100}$ here and $e^{z-101}$ there. All subtract the greatest of **all**. That has to be known first: two messages,
# one after the other.
#
# PyTorch's `loss_parallel` does the same in three, of DTensors. The tensors that it sends have a number for each token:


# %%
def by_loss_parallel(rank):
    from torch.distributed.tensor.parallel import loss_parallel

    mesh = init_device_mesh("cpu", (4,))
    z = distribute_tensor(torch.randn(5, 12), mesh, [Shard(1)]).requires_grad_()
    targets = distribute_tensor(torch.arange(5), mesh, [Replicate()])
    with loss_parallel(), watch_collectives() as seen:
        loss = F.cross_entropy(z, targets)
        seen.note("backward")
        loss.backward()
    return seen.events


print(*(f"{what} {size}" if size else what for what, size in on_ranks(4, by_loss_parallel)[0]))

# %% [markdown]
# **Predict.** Two of these three can go as one message. 8,192 tokens, `float32`: how many KiB (1,024 bytes) does
# a rank bring to the messages of forward, in all?

# %%
predict(..., lambda: 3 * 8192 * 4 // 1024)

# %% [markdown]
# Draw: show_bars({"a rank's logits": 8192 * 128000 // 8 * 4 / 2**20, "three numbers for each token": 3 * 8192 * 4 /
# 2**20}, "MiB") | 8,192 tokens and 128,000 words on eight ranks: what a rank would bring to an all-gather of
# logits, and what it brings. The second bar is there, and too short to see.
#
# Backward needs no message for the logits at all: the gradient of $z_w$ is its softmax, less one where $w$ is the
# target. Every rank has what it takes, the greatest logit and the sum of all. Only where the tokens' hidden vectors
# come in there is a sum over ranks, as in `mlp`.
#
# **Write `vocab_loss(hidden, table, words, targets, group=None)`.** It is
# `F.cross_entropy(hidden @ whole_table.T, targets)`, the mean over tokens.
#
# - `hidden` (tokens, features) and `targets` (tokens,) are the same on every rank. `table` (mine, features) is this
#   rank's rows of a table of `words` rows, by the rule of `cut`. A rank may have none.
# - A target is a word's number, or -100: such a token has no loss, and is not counted in the mean. At least one token
#   counts.
# - Every rank returns the same loss, without dims. After its `backward`, `hidden.grad` is whole on every rank, and
#   `table.grad` is this rank's part.
# - No row of logits is sent. Forward says two all-reduces, and brings at most three numbers for each token. Backward says
#   one all-reduce of the bytes of `hidden`.
# - Logits of a size of 10,000 give a finite loss and finite gradients.
#
# <details><summary>Hint 1: one function</summary>
#
# Make logits with `hidden @ table.T`, where `hidden` has come in as `x` did in `mlp`. The loss of these logits is a
# `torch.autograd.Function` of its own, with a gradient by hand: `(softmax - one_hot) / counted * grad`, zero for
# tokens that do not count.
#
# </details>
# <details><summary>Hint 2: whose target</summary>
#
# A target `t` is this rank's if `offset <= t < offset + size`. For all others `t - offset` is a number that must
# not be used as an index, -1 among them, which is a valid one. Index with `clamp`ed numbers, or with those that are
# yours alone, and put zeros elsewhere: the other ranks add the right one.
#
# </details>
# <details><summary>Hint 3: no words</summary>
#
# The greatest of nothing raises. Whoever has no words brings `-inf` to the maximum, and zeros to the sums. Still it
# is in every message.
#
# </details>


# %% solution="vocab_loss"
def vocab_loss(
    hidden: torch.Tensor,
    table: torch.Tensor,
    words: int,
    targets: torch.Tensor,
    group: dist.ProcessGroup | None = None,
) -> torch.Tensor:
    """Return the mean cross-entropy of tokens whose logits are shared out over `group`.

    hidden: (tokens, features), on every rank the same
    table: (mine, features), this rank's of `words` rows
    targets: (tokens,), numbers of words, or -100
    """
    ### BEGIN SOLUTION
    offset, size = cut(words, dist.get_world_size(group))[dist.get_rank(group)]

    class Enter(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.view_as(x)

        @staticmethod
        def backward(ctx, grad):
            total = grad.clone(memory_format=torch.contiguous_format)
            dist.all_reduce(total, group=group)
            return total

    class Loss(torch.autograd.Function):
        @staticmethod
        def forward(ctx, logits):
            greatest = logits.new_full((len(logits),), -math.inf)
            if size:
                greatest = logits.amax(1)
            dist.all_reduce(greatest, op=dist.ReduceOp.MAX, group=group)
            shifted = logits - greatest[:, None]
            counts = targets != -100
            here = (targets >= offset) & (targets < offset + size)
            at = here.nonzero()[:, 0], targets[here] - offset
            of_target = torch.zeros_like(greatest)
            of_target[here] = shifted[at]
            exponentials = shifted.exp()
            # a target that is not here, another rank adds
            sums = torch.stack([exponentials.sum(1), of_target])
            dist.all_reduce(sums, group=group)
            gradient = exponentials / sums[0][:, None]
            gradient[at] -= 1
            ctx.save_for_backward(gradient * counts[:, None] / counts.sum())
            return (sums[0].log() - sums[1])[counts].mean()

        @staticmethod
        def backward(ctx, grad):
            return ctx.saved_tensors[0] * grad

    return Loss.apply(Enter.apply(hidden) @ table.T)
    ### END SOLUTION


# %% grade="vocab_loss"
grade("vocab_loss")

# %% [markdown] sitting="once"
# question: How is a number counted once that several ranks have?
# reached: >-
#   By its place, never by its value. Of copies one rank brings its own, of samples that were dealt out
#   twice the first counts. Sums go round, and are divided or put under a root once, at the end.

# %% [markdown] exercise="clip"
# title: Clip what nobody has as a whole
# minutes: 30
# difficulty: 4
# points: 8
# prerequisites: []
# teaches: >-
#   what a norm over shards, copies and partial sums is: each number counted once, and every rank led
#   to the same answer.
# leaves out: other norms than the second, gradients that are missing.
# off limits: [sharding, torch.nn.utils.clip_grad_norm_, torch.nn.utils.clip_grads_with_norm_, torch.nn.utils.get_total_norm]
# forbids: "PyTorch's own clipping and sharding"

# %% [markdown]
# Clipping asks for the norm of **all** gradients, as if they were one long vector. On a mesh no rank has
# that vector. Let the mesh be `(2, 2)`. Along its first dimension weights are sharded as in ZeRO 3 of chapter 8, along the
# second the layers are cut, as above.
# Then a gradient has a placement for each dimension, and they differ from one gradient to the next:
#
# | gradient of | along dimension 0 | along dimension 1 |
# |---|---|---|
# | a layer cut by columns and sharded | `("shard", 0)` | `("shard", 1)` |
# | a norm's weight, sharded | `("shard", 0)` | `"replicate"` |
# | a norm's weight that saw a part of the tokens | `("shard", 0)` | `"partial"` |
# | a router's bias, whole everywhere | `"replicate"` | `"replicate"` |
#
# The first one has four different parts. Their squares add up. Of the second, two ranks have the same
# part: summed over all ranks, it counts twice. The third is not there yet at all: the sum of two ranks'
# tensors is what has to be squared.
#
# **Predict.** A gradient of 2, 3, 6 has the norm 7. Four ranks have copies of it, and each adds up its
# squares over all ranks. What do they take the norm to be?

# %%
predict(..., lambda: math.sqrt(4 * (2**2 + 3**2 + 6**2)))

# %% [markdown]
# Twice too large: all gradients are clipped to half of what was asked for. Nothing breaks. The model learns
# more slowly, and how much more depends on how many ranks there are.
#
# A partial sum is worse, since the error has no sign. Two ranks have 3 and -3: the gradient is 0.

# %%
parts = torch.tensor([[3.0, 1.0], [-3.0, 1.0]])
print("norm of the sum:", parts.sum(0).norm().item())
print("root of the sum of squares:", round(parts.square().sum().sqrt().item(), 3))

# %% [markdown]
# Draw: show_cells({"cut and sharded": [f"part {part}" for part in range(4)], "sharded only": ["part 0", "", "part 1", ""],
# "whole everywhere": ["part 0", "", "", ""]}, [f"rank {rank}" for rank in range(4)]) | Who brings which squares into the
# sum: of two ranks with the same part, one.
#
# And a rank must not decide by itself. If one says "my part is small enough" and leaves out the
# all-reduce, the others wait for ever. If one has a NaN, all have to hear of it.
#
# **Write `clip(grads, placements, groups, limit)`.** Every rank of the mesh calls it. `grads` is a list of
# this rank's tensors. `placements` has for each of them one placement per dimension of the mesh: `"replicate"`,
# `"partial"` or `("shard", dim)`, the same on all ranks. `groups` is this rank's process group along each
# dimension, as `coordinates` of chapter 8 returned them.
#
# - Gradients that are partial are summed along that dimension, in place. Afterwards they are whole along it.
# - Return the norm of all gradients, a `float`, with the same bits on every rank. Add up squares in `float64`:
#   in `float16` the square of 300 is infinite.
# - If it is larger than `limit`, multiply every gradient, in place, by `limit` over the norm. If it is not
#   finite, leave the gradients as they are.
# - Besides the sums of partial gradients, one `all_reduce` for each dimension along which a gradient is
#   sharded, none along others, and 64 bytes each at most. No other collective.
# - A shard may be empty, and a dimension of the mesh may be of size 1.
#
# <details><summary>Hint 1: count once</summary>
#
# Along a dimension that some gradients are sharded along, the squares are summed. A gradient that is a copy
# along this dimension must come in once: from the rank that is 0 in the dimension's group.
#
# </details>
# <details><summary>Hint 2: a dimension without shards</summary>
#
# Along it, after partial sums are summed, all ranks have the same numbers. There is nothing to add up, so
# everybody counts.
#
# </details>
# <details><summary>Hint 3: one tensor</summary>
#
# A tensor of one `float64` gathers the squares of all gradients, `all_reduce` sums it in each group that
# needs it, and one `item()` at the end brings it to Python. Decide by that number only.
#
# </details>


# %% solution="clip"
def clip(
    grads: list[torch.Tensor],
    placements: list[tuple[str | tuple[str, int], ...]],
    groups: list[dist.ProcessGroup],
    limit: float,
) -> float:
    """Sum what is partial, scale all gradients to a norm of at most `limit`; return the norm.

    placements: for each gradient, how it lies along each dimension of the mesh
    groups: this rank's process group along each dimension
    """
    ### BEGIN SOLUTION
    cut = [
        any(isinstance(where[dimension], tuple) for where in placements)
        for dimension in range(len(groups))
    ]
    squares = torch.zeros(1, dtype=torch.float64)
    for grad, where in zip(grads, placements, strict=True):
        counted = True
        for placement, group, summed in zip(where, groups, cut, strict=True):
            if placement == "partial":
                dist.all_reduce(grad, group=group)
            # what is not sharded is the same along the dimension: one rank brings it into the sum
            if summed and not isinstance(placement, tuple) and dist.get_rank(group) != 0:
                counted = False
        if counted:
            squares += grad.double().square().sum()
    for group, summed in zip(groups, cut, strict=True):
        if summed:
            dist.all_reduce(squares, group=group)
    norm = squares.sqrt().item()
    if limit < norm < math.inf:
        for grad in grads:
            grad.mul_(limit / norm)
    return norm
    ### END SOLUTION


# %% grade="clip"
grade("clip")

# %% [markdown] exercise="evaluate"
# title: Count every sample once
# minutes: 35
# difficulty: 3
# points: 9
# prerequisites: []
# teaches: >-
#   how what ranks found out about their samples becomes one number: rows of unequal length made equal,
#   the file's order, what was dealt out twice cut off, and a sum that is divided once.
# leaves out: batches of several samples, and a sampler that shuffles.
# off limits: [sharding, torch.distributed.all_gather_object]
# forbids: "PyTorch's own sharding, and gathering objects"

# %% [markdown]
# Something else is on several ranks, and must count once: samples. When a model is evaluated, a sampler gives all
# ranks as many, because each batch has collectives in it that all must call. Where they do not come out even, it
# begins again at the front. Ten samples on four ranks, of which a model has the first two wrong:

# %%
from torch.utils.data import DistributedSampler


def share_of(rank):
    return list(DistributedSampler(range(10), 4, rank, shuffle=False))


shares = [share_of(rank) for rank in range(4)]
dealt = [sample for row in zip(*shares, strict=True) for sample in row]
print("by rank:", *shares)
for name, some in (("all dealt out", dealt), ("the first ten", dealt[:10])):
    right = sum(sample >= 2 for sample in some)
    print(f"right, of {name}: {right} of {len(some)}")

# %% [markdown]
# Draw: show_cells({f"row {at}": [(str(share[at]), "again" if 4 * at + rank > 9 else "first") for rank, share in
# enumerate(shares)] for at in range(3)}, [f"rank {rank}" for rank in range(4)]) | Who has which sample. Row by row it
# is the file, and the last two come again. Rank by rank, as an all-gather puts it together, they stand somewhere else.
#
# 8 of 12 is 0.67, and the accuracy is 0.8. By its value nobody can tell which sample came twice: two samples may
# well be equal. By its place everybody can.
#
# Then the mean. A loss is a mean over tokens, and some samples are longer than others.
#
# **Predict.** One rank has four tokens with a loss of 1 each, another one a single token with a loss of 5. What is
# the mean over tokens?

# %%
predict(..., lambda: sum([1, 1, 1, 1, 5]) / 5)

# %% [markdown]
# The mean of the two ranks' means is 3. That would be right if both had as many tokens. What adds up is sums and
# counts.
#
# And a metric that wants more than a sum, or a file of answers, needs the numbers themselves, of every token. Rows
# of unequal length cannot be gathered. An all-gather wants the same shape of all ranks, and does not ask: gloo ends a
# process to which a message comes that is longer than the room for it. So the ranks tell each other first how long
# their rows are.
#
# **Write `evaluate(outputs, lengths, total, group=None)`.** Every rank of `group` calls it with what a model said of
# its samples. Let `n` be the size of the group.
#
# - The file has `total` samples, which were dealt out as above: row `i` of rank `r` is sample `i * n + r`, and behind
#   the last sample the file begins again, as often as it takes. All ranks have the same number of rows.
# - `outputs` (rows, width), `float64`, has a number for each token of a row's sample. The first `lengths[i]` numbers of
#   row `i` count. What stands behind them means nothing, and may be NaN. The width may differ from rank to rank, and be
#   larger than any length. `lengths` (rows,) is `int64`. A sample may have no token; some sample has one.
# - Return a pair, the same on every rank: a list of the file's `total` samples in its order, each of them a tensor
#   `(length,)` of its numbers; and the mean of all numbers in this list, a `float`.
# - Two all-gathers, and no other message. To the first a rank brings its lengths, `8 * rows` bytes, to the second its
#   numbers, `8 * rows * longest` bytes at most: `longest` is the greatest length of all ranks.
#
# Of losses this is the loss of the model, of ones and zeros its accuracy.
#
# <details><summary>Hint 1: two messages</summary>
#
# How long the longest row is, no rank knows by itself. From the lengths of all, everyone can tell, and needs them
# anyway to take the padding off.
#
# </details>
# <details><summary>Hint 2: the file's order</summary>
#
# `dist.all_gather_single(out, x)` puts the rows of rank 0 first, then those of rank 1. View that as
# `(n, rows, longest)`, exchange the first two dims, and the rows are in the file's order. Exchange those of the
# lengths, too.
#
# </details>
# <details><summary>Hint 3: what came twice</summary>
#
# It is all at the end, once the rows are in order: keep the first `total`. To cut off the last `twice` rows instead
# goes wrong where nothing came twice, because `x[:-0]` is empty.
#
# </details>


# %% solution="evaluate"
def evaluate(
    outputs: torch.Tensor,
    lengths: torch.Tensor,
    total: int,
    group: dist.ProcessGroup | None = None,
) -> tuple[list[torch.Tensor], float]:
    """Return the numbers of the file's samples in order, and their mean.

    outputs: (rows, width), in each row a sample's numbers, then anything
    lengths: (rows,), how many numbers each row has
    """
    ### BEGIN SOLUTION
    ranks, rows = dist.get_world_size(group), len(lengths)
    every = lengths.new_empty(ranks * rows)
    dist.all_gather_single(every, lengths, group=group)
    longest = int(every.max())
    own = outputs.new_zeros(rows, longest)
    own[:, : outputs.shape[1]] = outputs[:, :longest]
    gathered = own.new_empty(ranks * rows, longest)
    dist.all_gather_single(gathered, own, group=group)
    # rank r's row i is sample i * ranks + r, so it is rows first, ranks second
    sizes = every.view(ranks, rows).T.flatten().tolist()
    in_order = gathered.view(ranks, rows, longest).transpose(0, 1).flatten(0, 1)
    samples = [in_order[at, : sizes[at]] for at in range(total)]
    return samples, torch.cat(samples).mean().item()
    ### END SOLUTION


# %% grade="evaluate"
grade("evaluate")

# %%
if written("evaluate"):

    def accuracy(rank):
        samples = torch.tensor(shares[rank])
        right = (samples >= 2).double()
        return evaluate(right[:, None], torch.ones_like(samples), 10)[1]

    print("accuracy, by rank:", on_ranks(4, accuracy))

# %% [markdown]
# ## What a framework promises
#
# Hugging Face's Accelerate, and the Trainer that stands on it, have a word for each such thing. Read these words
# as contracts: what they do you have built, or can check.
#
# | you write | it does | and so |
# |---|---|---|
# | `prepare(loader)` | deals batches out to ranks, and begins again at the front where they do not come out even | 10 samples in batches of 4: `gather` brings 16 |
# | `gather_for_metrics(x)` | gathers, and cuts off what came twice | 10. A mean over tokens still wants sums and counts: the ranks' means do not weigh the same |
# | `accumulate(model)` | leaves the all-reduce out, but for every k-th batch and the last one of the loader | 5 batches by two: the fifth is a group by itself, and its loss is still halved |
# | `prepare(scheduler)` | steps it once for each rank | after 3 steps it stands at 6 |
#
# The library itself, where it is installed (`pip install accelerate`; no grader needs it):


# %%
def promises(rank):
    place = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2, "MASTER_ADDR": "localhost"}
    place |= {"OMP_NUM_THREADS": 1}  # without it Accelerate warns
    os.environ.update({name: str(value) for name, value in place.items()})
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    loader = accelerator.prepare(DataLoader(torch.arange(10), batch_size=4))
    found = {
        "gather": torch.cat([accelerator.gather(batch) for batch in loader]),
        "for metrics": torch.cat([accelerator.gather_for_metrics(batch) for batch in loader]),
    }
    model = nn.Linear(1, 1, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=100)
    ones = DataLoader(torch.ones(10, 1), batch_size=1)  # five batches for each of two ranks
    model, optimizer, scheduler, ones = accelerator.prepare(model, optimizer, scheduler, ones)
    reduced, slopes = [], []
    for x in ones:
        with accelerator.accumulate(model):
            accelerator.backward(model(x).sum())
            reduced.append(accelerator.sync_gradients)
            slopes += [param.grad.item() for param in model.parameters()]
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
    found |= {"all-reduce": reduced, "gradient": slopes}
    return found | {"scheduler": scheduler.scheduler.last_epoch}


if find_spec("accelerate"):
    for word, value in on_ranks(2, promises, seconds=60)[0].items():
        print(f"{word:>12}: {value.tolist() if isinstance(value, torch.Tensor) else value}")
else:
    print("accelerate is not installed here")

# %% [markdown]
# Other words that you will meet, by the documentation of Transformers and Accelerate, not run here:
#
# - `TrainingArguments` is a list of settings. Older texts write `evaluation_strategy` for its `eval_strategy`.
# - `data_collator` is chapter 6's `collate_fn`.
# - A subclass with a `compute_loss` of its own has to divide by the right count: `num_items_in_batch` is the number of
#   targets in all micro-batches of a step, as in chapter 5's `train_step`.
# - `notebook_launcher(f, num_processes=2)` is `on_ranks` of this course: it forks the notebook.

# %% [markdown] sitting="unit"
# question: How can a rank compute with a model that it does not hold?
# reached: >-
#   Piece by piece: a unit's parameters are gathered when they are needed, used, and let go, and once
#   more in backward. What stays is a shard, and its gradient.

# %% [markdown] exercise="Unit"
# title: A module whose parameters come and go
# minutes: 75
# difficulty: 5
# points: 12
# short: true
# prerequisites: [cut]
# teaches: >-
#   what FSDP is: an all-gather whose backward is a reduce-scatter, around memory that is let go and filled again
#   while autograd still points to it.
# leaves out: prefetching, mixed precision, units within units, and buffers.
# off limits: [sharding]

# %% [markdown]
# In `mlp` each rank computed a part of a layer. There is another way, in which every rank computes **all** of it, on its
# own data, as in chapter 8, and yet holds but a part: before a layer runs, its parameters are gathered from all ranks;
# afterwards they are dropped. What is gathered and dropped together is a *unit*. PyTorch's `fully_shard` does this:

# %%
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch.distributed.fsdp import fully_shard


def by_fsdp(rank):
    model = nn.Sequential(*[nn.Linear(64, 64, bias=False) for _ in range(3)])
    for layer in model:
        fully_shard(layer, reshard_after_forward=True)
    fully_shard(model)
    with watch_collectives() as seen:
        out = model(torch.ones(1, 64))
        seen.note("backward")
        out.sum().backward()
    return seen.events


print(*(f"{what} {size};" if size else what for what, size in on_ranks(4, by_fsdp)[0]))

# %% [markdown]
# A layer has 16,384 bytes, a rank brings a quarter of them. Three gathers, a gather for each layer in backward, and then
# its gradient goes out: a reduce-scatter, from which each rank keeps the mean of *its* part. (FSDP gathers one unit
# ahead. Yours need not.)
#
# Look: ddp/sent#panel=zero&params=7B&ranks=8&optimizer=adam&precision=mixed&stage=3 | What a rank sends in one step if
# it keeps a shard of everything. Compare with stage 0, which is DDP.
#
# Why gather again? Because a layer's backward needs its weight: the gradient of `x` is the output's times `w`. So
# autograd keeps the weight for as long as the graph lives. To drop one's own reference frees nothing:


# %%
def grown(drop):
    layers = [torch.ones(64, 64, requires_grad=True) for _ in range(6)]
    x = torch.ones(1, 64, requires_grad=True)
    with watch_memory() as memory:
        for layer in layers:
            whole = layer * 1.0  # as if it had been gathered
            x = x @ whole
            drop(whole)
            del whole
            yield memory.live_bytes // 1024


def alive(drop):
    return list(grown(drop))[-1]


print("KiB alive, references dropped:", alive(lambda whole: None))
print("KiB alive, memory let go:     ", alive(lambda whole: whole.untyped_storage().resize_(0)))

# %% [markdown]
# Draw: show_curves({name: [(0, 0.0)] + [(done, float(kib)) for done, kib in enumerate(grown(drop), 1)] for name, drop in
# (("references dropped", lambda whole: None), ("memory let go", lambda whole: whole.untyped_storage().resize_(0)))},
# "layers done", "KiB alive") | What is alive after each of six layers. The upper line is the model that was to
# be nowhere as a whole.
#
# `untyped_storage().resize_(0)` gives the memory back under autograd's nose. The tensor is still there, with its shape and
# strides, and its storage has no bytes. Whoever touches it now gets an error. `resize_` to the old size makes room
# again, and what is written into it is what autograd will find.
#
# But autograd watches. Each in-place change counts up a tensor's version, and a backward that finds another version than it
# kept refuses:


# %%
def refilled(how):
    w = torch.tensor([2.0, 3.0], requires_grad=True)
    whole = w * 1.0
    x = torch.ones(2, requires_grad=True)
    y = (x * whole).sum()
    whole.untyped_storage().resize_(0)
    whole.untyped_storage().resize_(8)
    how(whole)
    try:
        y.backward()
    except RuntimeError as error:
        return str(error).partition(":")[0]
    return x.grad.tolist()


def under_no_grad(whole):
    with torch.no_grad():
        whole.copy_(torch.tensor([2.0, 3.0]))


print(refilled(under_no_grad))
print(refilled(lambda whole: whole.data.copy_(torch.tensor([2.0, 3.0]))))
print(refilled(lambda whole: whole.data.copy_(torch.tensor([7.0, 7.0]))))

# %% [markdown]
# `.data` is a tensor of the same memory with a version of its own. Nobody looks any more, as the last line shows: the
# wrong numbers went through. Whoever refills is answerable for what is in there.
#
# **Predict.** Six layers, each a unit of its own, `W` bytes each. The optimizer is not counted. Where units are let go
# after forward, how many `W` of gathered parameters are alive between forward and backward?

# %%
predict(..., lambda: alive(lambda whole: whole.untyped_storage().resize_(0)) // 16)

# %% [markdown]
# Draw: show_spans({"says": [(name, at, at + 1) for name, at in zip("G0 G1 G2 G2 R2 G1 R1 G0 R0".split(), [0, 2, 4, 6, 8, 9,
# 11, 12, 14])], **{f"unit {unit}": [(f"F{unit}", 2 * unit, 2 * unit + 2), (f"B{unit}", 12 - 3 * unit, 14 - 3 * unit)] for
# unit in range(3)}}) | One step of three units. G gathers a unit, R scatters a gradient. A unit is there for the length of
# its bars, once in forward and once in backward.
#
# **Write `Unit(module, group=None)`**, a module that is called as `module` is, with the same results.
#
# - Every rank has the same `module`, of parameters of one dtype. A parameter may be used at two places, or not at all. It
#   has no buffers. The unit may do with it what it likes: its parameters are to be let go.
# - `unit.shard` is the unit's one parameter. Take `module.parameters()`, flatten each, put them one behind the other, and
#   pad with zeros to a multiple of the ranks: it is this rank's n-th of that, by `cut` and `pad`, in memory of its own.
# - In a forward, the unit brings its shard to one all-gather. In the backward of that forward it may do so once more,
#   and then it brings the whole gradient, padded, to one reduce-scatter. Nothing else is said. Without gradients it is the
#   all-gather of forward alone.
# - After `backward`, `unit.shard.grad` is this rank's part of the **mean** over ranks of the module's gradients, added to what
#   was there. A parameter that was not used has zeros.
# - Activations and the shards' gradients aside, this may be alive: when units have been made, their shards; in
#   forward, two units' parameters at once; between forward and backward, and after backward, nothing; in backward,
#   five times a unit's parameters, whatever they are needed for.
# - A unit may be called again before the first call's backward has run. A result may be a tensor or a tuple of tensors, of
#   which some are not used. Every rank's backward comes to the unit.
#
# <details><summary>Hint 1: who adds up gradients</summary>
#
# Let autograd do it. A `torch.autograd.Function` makes of the shard the whole flat tensor: all-gather forward,
# reduce-scatter backward. The parameters are views of the whole (`split`, `view`). Its backward is called once, with
# the gradient of all of them, when all of them are there.
#
# </details>
# <details><summary>Hint 2: a module without parameters of its own</summary>
#
# `torch.func.functional_call(module, {name: tensor}, args)` calls a module with other tensors in its parameters' places,
# tied ones included. What it holds itself is never used: `parameter.data = parameter.new_empty(0)` gives the memory
# back. (`module.to("meta")` does so, too, and makes two of a parameter that is used at two places.) Keep the module in a
# tuple, so that it is no submodule of the unit.
#
# </details>
# <details><summary>Hint 3: when to fill again, and when to let go</summary>
#
# `result.register_hook(f)` calls `f(grad)` as soon as the gradient of a result is known, which is before any backward
# within the unit. Register it on each result that requires grad. The first that comes fills the memory; the others
# find it filled.
#
# Let go after forward. And in the backward of your function: whoever needed the whole has used it by then.
#
# </details>


# %% solution="Unit"
class Unit(nn.Module):
    """A module of which each rank holds an n-th; the whole exists while it computes.

    shard: this rank's part of all parameters, flat and padded
    """

    def __init__(self, module: nn.Module, group: dist.ProcessGroup | None = None) -> None:
        ### BEGIN SOLUTION
        super().__init__()
        self.group, self.ranks = group, dist.get_world_size(group)
        named = dict(module.named_parameters())
        self.shapes = {name: parameter.shape for name, parameter in named.items()}
        flat = torch.cat([parameter.detach().reshape(-1) for parameter in named.values()])
        self.length = len(flat)
        offset, size = cut(self.length, self.ranks)[dist.get_rank(group)]
        self.shard = nn.Parameter(pad(flat[offset : offset + size], self.length, self.ranks))
        for parameter in named.values():
            parameter.data = parameter.new_empty(0)  # two that are one stay one
        self.hidden = (module,)  # in a tuple, it is no submodule

    def fill(self, whole):
        """Gather all parameters into `whole`, whose storage may be empty, unseen by autograd."""
        whole.untyped_storage().resize_(whole.nbytes)
        dist.all_gather_single(whole.data, self.shard.detach(), group=self.group)

    def forward(self, *args, **kwargs):
        unit = self

        class Gather(torch.autograd.Function):
            @staticmethod
            def forward(ctx, shard):
                ctx.whole = shard.new_empty(len(shard) * unit.ranks)
                unit.fill(ctx.whole)
                return ctx.whole

            @staticmethod
            def backward(ctx, grad):
                ctx.whole.untyped_storage().resize_(0)  # nobody needs it any more
                own = torch.empty_like(unit.shard)
                dist.reduce_scatter_single(own, grad.contiguous(), group=unit.group)
                return own / unit.ranks

        whole = Gather.apply(self.shard)
        pieces = join(whole, self.length).split([shape.numel() for shape in self.shapes.values()])
        parameters = {
            name: piece.view(shape)
            for (name, shape), piece in zip(self.shapes.items(), pieces, strict=True)
        }
        result = torch.func.functional_call(self.hidden[0], parameters, args, kwargs)

        def fill_again(grad):
            if not whole.untyped_storage().nbytes():
                self.fill(whole)

        for part in result if isinstance(result, tuple) else (result,):
            if part.requires_grad:
                part.register_hook(fill_again)
        whole.untyped_storage().resize_(0)  # autograd keeps the tensor, and nothing is in it
        return result

    ### END SOLUTION


# %% grade="Unit"
grade("Unit")

# %% [markdown]
# A model is then a chain of units, and its optimizer is made of their shards. Adam's averages are as long as these. That
# is all of ZeRO 3: nobody has told the optimizer anything.
#
# Look: sharding/peak#strategy=fsdp&ranks=4&width=8&hidden=16&blocks=3&wrap=model | Six layers as a single unit: what was to
# be nowhere as a whole is there from the first layer to the last. Take "each layer" and compare.
#
# In which order does one do it? An optimizer that was made **before** the model was cut holds parameters that are no
# longer the model's. It steps, and nothing moves:


# %%
def before_sharding(rank):
    model = nn.Linear(4, 4, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    fully_shard(model)
    before = model.weight.full_tensor().detach().clone()
    model(torch.ones(1, 4)).sum().backward()
    optimizer.step()
    return torch.equal(before, model.weight.full_tensor())


print("not moved:", on_ranks(2, before_sharding))

# %% [markdown] sitting="ring"
# question: How can tokens attend to tokens on another rank?
# reached: >-
#   Keys and values come by, and partial softmaxes are merged without an error. In zigzag order all
#   ranks have as much to do, and gradients go home with the keys.

# %% [markdown] exercise="ring_attention"
# title: Send keys and values round a ring
# minutes: 60
# difficulty: 5
# points: 9
# prerequisites: []
# teaches: >-
#   attention over a sequence that no rank holds: partial softmaxes that are merged exactly, a cut that
#   gives causal ranks equal work, and gradients that travel with what they belong to.
# leaves out: computing while the next keys travel, dropout, several sequences in one.
# off limits: [sharding, torch.nn.functional.scaled_dot_product_attention, torch.nn.functional.multi_head_attention_forward, "aten:_scaled_dot_product_flash_attention_for_cpu", torch.distributed.all_reduce, torch.distributed.all_gather, torch.distributed.broadcast, torch.distributed.reduce_scatter, torch.distributed.all_reduce_coalesced, torch.distributed.all_gather_into_tensor, torch.distributed.reduce_scatter_tensor, torch.distributed.all_gather_single, torch.distributed.reduce_scatter_single, torch.distributed.all_to_all, torch.distributed.reduce, torch.distributed.gather, torch.distributed.scatter, torch.distributed.all_to_all_single, torch.distributed.all_gather_object, torch.distributed.gather_object, torch.distributed.broadcast_object_list, torch.distributed.scatter_object_list, torch.distributed.ProcessGroup.allreduce, torch.distributed.ProcessGroup.allgather, torch.distributed.ProcessGroup.broadcast, torch.distributed.ProcessGroup.reduce_scatter]
# forbids: "collectives, PyTorch's own sharding, and its attention"

# %% [markdown]
# A layer can be cut by its weights, or by its tokens. All but one of a transformer's layers treat each
# token by itself. Attention does not: each query wants every key. If the sequence is cut into as many
# parts as there are ranks, each rank has its queries, and the keys and values of the others are
# elsewhere.
#
# To gather them costs the memory that was to be saved. In a **ring** they come by one part at a time. Each
# rank keeps its queries, computes with the keys and values that it has, and passes these on to the next
# rank. After $n - 1$ hops every query has met every key. (Liu and others, *Ring attention*,
# [arXiv 2310.01889](https://arxiv.org/abs/2310.01889).)
#
# What it computed from one part has to be merged with what comes of the next. A softmax over a part of
# the keys is wrong by one factor per query, and this factor is known. With the scores $s$ of a part, keep
# $\ell = \log\sum e^{s}$ beside the part's output. Two parts together have
# $\ell = \log(e^{\ell_1} + e^{\ell_2})$, and their output is
# $e^{\ell_1 - \ell}\,o_1 + e^{\ell_2 - \ell}\,o_2$:

# %%
scores = torch.tensor([2.0, 0.0, 1.0, 3.0], dtype=torch.float64)
values = torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=torch.float64)


def of_a_part(part: slice) -> tuple[torch.Tensor, torch.Tensor]:
    return scores[part].logsumexp(0), scores[part].softmax(0) @ values[part]


(l1, o1), (l2, o2) = of_a_part(slice(0, 2)), of_a_part(slice(2, 4))
both = torch.logaddexp(l1, l2)
print("merged:", round(float((l1 - both).exp() * o1 + (l2 - both).exp() * o2), 9))
print("at once:", round(float(scores.softmax(0) @ values), 9))

# %% [markdown]
# **Causal** attention lets a query see only the keys up to its own place. Then half the scores need not
# be computed, but whose half? Let the sequence be cut into $2n$ chunks. A query's chunk number $i$ meets
# the chunks $0 \ldots i$: $i + 1$ blocks of scores. Here each of four ranks has two neighbouring chunks:


# %%
def blocks(chunks: tuple[int, ...]) -> int:
    """Return how many blocks of scores the queries of these chunks need."""
    return sum(chunk + 1 for chunk in chunks)


print("blocks by rank:", [blocks((2 * rank, 2 * rank + 1)) for rank in range(4)])

# %% [markdown]
# All ranks wait for the last one, which has five times the work of the first. In **zigzag** order rank
# $r$ has the chunks $r$ and $2n - 1 - r$, one from the front and one from the back:
#
# | | chunk 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 |
# |---|---|---|---|---|---|---|---|---|
# | neighbours | rank 0 | 0 | 1 | 1 | 2 | 2 | 3 | 3 |
# | zigzag | rank 0 | 1 | 2 | 3 | 3 | 2 | 1 | 0 |
#
# **Predict.** How many blocks does each rank compute now?

# %%
predict(..., lambda: [blocks((rank, 7 - rank)) for rank in range(4)])

# %% [markdown]
# Draw: show_cells({f"query chunk {i}": [("", "")  if j > i else (str(min(i, 7 - i)),) * 2 for j in range(8)] for i in
# range(8)}, [f"key {j}" for j in range(8)]) | The rank that computes each block. What is empty nobody computes. Count a
# rank's blocks: nine.
#
# Backward goes the same way round. The rank that has the queries can compute what they add to the gradients
# of a part's keys and values, but these belong to another rank. So gradients travel **with** their keys and
# values, grow at each station, and need one hop more than they did to be home.
#
# For one block, with the scores $s$, the weights $p = e^{s - \ell}$, the output $o$ and its gradient
# $\bar o$ (Dao and others, *FlashAttention*, [arXiv 2205.14135](https://arxiv.org/abs/2205.14135),
# appendix B.2):
#
# $$\bar v = p^{\top}\bar o \qquad \bar p = \bar o\,v^{\top} \qquad
# \bar s = p \odot \left(\bar p - \textstyle\sum(\bar o \odot o)\right) \qquad
# \bar q = \bar s\,k / \sqrt{D} \qquad \bar k = \bar s^{\top} q / \sqrt{D}$$
#
# The sum goes over the features of a query's output. It needs $\ell$ and $o$ of **all** keys. So no block of
# weights has to be kept from forward: each is computed again.
#
# **Write `ring_attention(q, k, v, group, causal)`.** Every rank of `group` calls it with its part of one
# sequence in zigzag order: tensors `(H, S / n, D)` with two chunks of equal length one behind the other.
# `n` is the size of the group. Return the attention's output for these queries, of the same shape. Scores are
# divided by $\sqrt D$. With `causal`, a query sees the keys up to its own place in the sequence.
#
# - Gradients of `q`, `k` and `v` are those of one process that has the whole sequence, for the sum of all
#   ranks' losses.
# - No collectives. In forward a rank sends its neighbour `n - 1` times the bytes of `k` and `v`. In backward
#   at most `2 n - 1` times: the keys and values make `n - 1` hops again, their gradients `n`.
# - Forbidden blocks are not computed: at most `2 n + 1` blocks of scores with `causal`, `4 n` without. In
#   forward a block costs two products, in backward at most six.
# - No storage is larger than the scores of a rank's queries and as many keys. What forward leaves behind is
#   no more than four times the bytes of `q`, the output among them.
# - The group may be a part of the world, or one rank alone. The tensors may lie in memory in any way.
#
# <details><summary>Hint 1: who is next</summary>
#
# Ranks in a group have numbers of their own. `dist.isend(x, group=group, group_dst=number)` and
# `dist.irecv(x, group=group, group_src=number)` take those. Start both, keep both, wait for both. What is
# sent must be contiguous: `torch.stack([k, v])` is, and it is one message.
#
# </details>
# <details><summary>Hint 2: which blocks</summary>
#
# At step `s` a rank has the keys that rank `me - s` began with. Go through both of its chunks, and both of
# yours: four pairs. Compare the chunks' **numbers in the sequence**. A later key chunk: leave it out. The
# same: mask what is above the diagonal. An earlier one: no mask.
#
# </details>
# <details><summary>Hint 3: backward</summary>
#
# A class derived from `torch.autograd.Function`. Save `q`, `k`, `v`, the output and $\ell$. In backward stack
# `k`, `v` and two tensors of zeros, and send all four on. In the last hop the gradients are enough.
#
# </details>


# %% solution="ring_attention"
class RingAttention(torch.autograd.Function):
    """Attention whose keys and values go round the ranks, and in backward their gradients too."""

    @staticmethod
    def forward(ctx, q, k, v, group, causal):
        ### BEGIN SOLUTION
        n, me = dist.get_world_size(group), dist.get_rank(group)
        out = torch.zeros_like(q, memory_format=torch.contiguous_format)
        total = q.new_full((*q.shape[:-1], 1), -math.inf)  # log of the sum of all weights so far
        queries, outs, totals = (x.chunk(2, 1) for x in (q, out, total))
        parcel = torch.stack([k, v])
        for step in range(n):
            if step:
                parcel = passed_on(parcel, group)
            keys, values = (x.chunk(2, 1) for x in parcel)
            for a, b, diagonal in allowed(me, (me - step) % n, n, causal):
                scores = scored(queries[a], keys[b], diagonal)
                both = torch.logaddexp(totals[a], scores.logsumexp(-1, keepdim=True))
                outs[a].mul_((totals[a] - both).exp()).add_((scores - both).exp() @ values[b])
                totals[a].copy_(both)
        ctx.save_for_backward(q, k, v, out, total)
        ctx.group, ctx.causal = group, causal
        return out

    @staticmethod
    def backward(ctx, grad):
        q, k, v, out, total = ctx.saved_tensors
        n, me = dist.get_world_size(ctx.group), dist.get_rank(ctx.group)
        dq, inner = torch.zeros_like(q), (grad * out).sum(-1, keepdim=True)
        queries, dqs, grads, totals, inners = (x.chunk(2, 1) for x in (q, dq, grad, total, inner))
        parcel = torch.stack([k, v, torch.zeros_like(k), torch.zeros_like(v)])
        for step in range(n):
            keys, values, dks, dvs = (x.chunk(2, 1) for x in parcel)
            for a, b, diagonal in allowed(me, (me - step) % n, n, ctx.causal):
                weights = (scored(queries[a], keys[b], diagonal) - totals[a]).exp()
                dvs[b].add_(weights.mT @ grads[a])
                ds = weights * (grads[a] @ values[b].mT - inners[a]) / math.sqrt(q.shape[-1])
                dqs[a].add_(ds @ keys[b])
                dks[b].add_(ds.mT @ queries[a])
            # the n-th hop brings gradients home; nobody needs the keys any more
            parcel = passed_on(parcel if step < n - 1 else parcel[2:], ctx.group)
        return dq, parcel[-2], parcel[-1], None, None


def allowed(mine, theirs, n, causal):
    """Yield the pairs of a query's and a key's half that have scores, and if on the diagonal."""
    for a, i in enumerate((mine, 2 * n - 1 - mine)):
        for b, j in enumerate((theirs, 2 * n - 1 - theirs)):
            if j <= i or not causal:
                yield a, b, causal and i == j


def scored(q, k, diagonal):
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if diagonal:
        future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(future, -math.inf)
    return scores


def passed_on(parcel, group):
    """Send a tensor to the next rank, and return what comes from the one before."""
    n, me = dist.get_world_size(group), dist.get_rank(group)
    if n == 1:
        return parcel
    arriving = torch.empty_like(parcel)
    requests = [
        dist.isend(parcel, group=group, group_dst=(me + 1) % n),
        dist.irecv(arriving, group=group, group_src=(me - 1) % n),
    ]
    for request in requests:
        request.wait()
    return arriving
    ### END SOLUTION


def ring_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, group: dist.ProcessGroup, causal: bool
) -> torch.Tensor:
    """Return the output (H, S / n, D) of attention over the sequence of all ranks of the group.

    q, k, v: this rank's part (H, S / n, D), its chunks `rank` and `2 n - 1 - rank` of 2 n
    """
    ### BEGIN SOLUTION
    return RingAttention.apply(q, k, v, group, causal)
    ### END SOLUTION


# %% grade="ring_attention"
grade("ring_attention")

# %% [markdown] sitting="stages"
# question: How does backward go on where a tensor came from another rank?
# reached: >-
#   A message is a function, and its backward is a message the other way. An empty tensor holds its place in
#   each rank's graph, and what was sent asynchronously is held until it has arrived.

# %% [markdown] exercise="run_stage"
# title: Backward across ranks
# minutes: 60
# difficulty: 4
# points: 11
# prerequisites: []
# teaches: >-
#   a message as a function with a backward, the empty tensor that makes autograd come by, and the order of
#   a pipeline in which nobody waits for ever.
# leaves out: several tensors between two stages, shapes that the receiver does not know, several stages on a rank.
# off limits: [sharding]

# %% [markdown]
# In chapter 8 you planned a pipeline: each rank has one stage of a model, a batch comes in micro-batches, `("F", 2)`
# is the forward of micro-batch 2 and `("B", 2)` its backward. Here is the plan **1F1B** for three stages and five
# micro-batches.


# %%
def one_f_one_b(stage: int, stages: int, count: int) -> list[tuple[str, int]]:
    # how many forwards it takes until a backward can be back
    ahead = min(stages - stage - 1, count)
    plan = [("F", number) for number in range(ahead)]
    for number in range(count):
        plan += [("F", number + ahead)] if number + ahead < count else []
        plan.append(("B", number))
    return plan


for stage in range(3):
    plan = one_f_one_b(stage, 3, 5)
    print(f"stage {stage}:", *(f"{kind}{number}" for kind, number in plan))

# %% [markdown]
# Draw: show_bars({f"{name}, stage {stage}": max(sum(1 if kind == "F" else -1 for kind, _ in plan[:at]) for at in
# range(len(plan) + 1)) for name, plans in {"1F1B": [one_f_one_b(stage, 3, 5) for stage in range(3)], "GPipe": [[("F",
# 0)] * 5 + [("B", 0)] * 5] * 3}.items() for stage, plan in enumerate(plans)}, "micro-batches") | The most micro-batches
# whose activations a stage holds at once, by two plans.
#
# How does a gradient get from stage 1 to stage 0? To call `recv` by hand before each backward, and `send` behind it,
# works for a chain. Autograd can do it, too, and then it works wherever a message is. A message computes nothing: on
# the other rank stands the same tensor. So it is a function like `view`, and its backward brings the gradient the other
# way. It has two halves:
#
# | | on the rank that sends | on the rank that receives |
# |---|---|---|
# | forward | takes `x`, sends it, returns *nothing* | takes *nothing*, receives `x`, returns it |
# | backward | receives the gradient of `x` | sends the gradient of `x` |
#
# For autograd *nothing* is a difficulty. Backward begins at an output, so it never comes to a function without one. And
# a function of nothing?
#
# **Predict.** `forward` takes a shape, and returns a tensor that it received. Does this tensor require grad?


# %%
class OfNothing(torch.autograd.Function):
    @staticmethod
    def forward(ctx, shape):
        return torch.ones(shape)

    @staticmethod
    def backward(ctx, grad):
        print("sent back:", grad.tolist())


predict(..., lambda: OfNothing.apply((2,)).requires_grad)

# %% [markdown]
# None of its inputs requires grad, so autograd does not remember the call. The layers behind it get their gradients.
# Then backward ends, nobody sends, and the stage before waits for ever.
#
# What helps is a tensor that has no numbers, and yet is one: a **phony**. (The word is that of Kim and others,
# *torchgpipe*, [arXiv 2004.09910](https://arxiv.org/abs/2004.09910).) As an input that requires grad it makes autograd
# remember the call. As an output it gives backward a place to begin. It costs no memory, and the sum of it is 0.
#
# Draw: show_cells({"rank 0": [("stage 0", "layers"), ("send", "message"), ("(0,)", "phony"), ""], "rank 1": [("(0,)",
# "phony"), ("receive", "message"), ("stage 1", "layers"), ("loss", "layers")]}) | The graphs of two ranks, in the order
# of forward. Backward goes from right to left on each: from the loss on rank 1, from the phony on rank 0.


# %%
class OfAPhony(torch.autograd.Function):
    @staticmethod
    def forward(ctx, phony, shape):
        return torch.ones(shape)

    @staticmethod
    def backward(ctx, grad):
        print("sent back:", grad.tolist())
        return None, None


phony = torch.empty(0, requires_grad=True)
(OfAPhony.apply(phony, (2,)) * 3).sum().backward()
end = torch.empty(0, requires_grad=True).sum()
print("an empty sum:", end.item(), "requires grad:", end.requires_grad)

# %% [markdown]
# Then the order. `dist.send` may wait until the other side receives. In 1F1B two stages come to a point where one sends
# an output on and the other a gradient back, and neither is about to receive. So a stage has to go on after sending:
# `dist.isend` returns at once, with a `Work`. It is tempting to let that fall.
#
# Draw: show_cells({f"stage {stage}": [(f"{kind}{number}", kind) for kind, number in one_f_one_b(stage, 3, 5)] for stage
# in range(3)}) | What each stage does, from left to right, without the times at which it has to wait.


# %%
held = []


def one_message(rank, keep):
    x = torch.tensor([5.0])
    if rank == 0:
        work = dist.isend(x, 1)
        if keep:
            held.append(work)
        del work
        dist.barrier()
    else:
        dist.barrier()  # comes later
        dist.recv(x, 0)


for keep in (True, False):
    try:
        on_ranks(2, lambda rank, keep=keep: one_message(rank, keep), seconds=4)
        print("the Work held: it arrives")
    except RanksHung as hung:
        print("let fall:", hung)

# %% [markdown]
# With nobody to hold it, a `Work` takes its message back. Not always: where the other side waits already, it is
# gone before. So the mistake shows on another day, as a pipeline that stands still.
#
# **Write three functions.** `send` and `receive` call a `torch.autograd.Function` each. All tensors are `float32`, and
# may lie in memory in any way.
#
# - `send(x, to)` sends `x` to rank `to` and returns at once: an empty tensor, `(0,)`, that is a function of `x` for
#   autograd. When backward comes to it, the gradient of `x` is received from rank `to` and handed on.
# - `receive(shape, source)` receives a tensor of this shape from rank `source` and returns it. It requires grad. When
#   backward comes to it, its gradient is sent to rank `source`.
# - `run_stage(stage, plan, micro_batches, loss)` is called by every rank, and rank `r` of `n` is stage `r` of `n`. It
#   does what `plan` says, in this order. Plans of all ranks have the micro-batches in one order.
#     - `("F", k)`: the first stage takes `micro_batches[k]`, any other receives its input from the rank before. The input
#       of every stage, and its output `stage(x)`, has the shape of `micro_batches[k]`. The output goes to the next rank. The
#       last one calls `loss(y, k)` with it, which returns the loss of this micro-batch, without dims.
#     - `("B", k)`: the backward of micro-batch `k`.
#     - It adds the gradients of the **mean** of all micro-batches' losses to those of the stage's parameters. The last
#       rank returns this mean, a `float`, the others None.
# - Nobody sends anything else: one message of the bytes of a micro-batch for each output and each gradient. Each arrives,
#   however late the other side comes.
# - What a forward saved is let go with its backward.
#
# <details><summary>Hint 1: two halves</summary>
#
# `forward(ctx, x, to)` of the one returns `x.new_empty(0)`, and its `backward(ctx, grad)` gets an empty gradient, of
# which it makes no use. `forward(ctx, phony, shape, source)` of the other gets `torch.empty(0, requires_grad=True)`;
# its backward returns None for each of the three.
#
# </details>
# <details><summary>Hint 2: where backward begins</summary>
#
# Between `F` and `B` a stage has to keep one tensor for each micro-batch: what `send` returned, or on the last stage the
# loss, divided by the number of micro-batches. `.sum().backward()` does for both.
#
# </details>
# <details><summary>Hint 3: who holds the Work</summary>
#
# Of an output, `ctx` can hold it. It lives until backward has come by, and then the message has arrived: a gradient
# came back for it. Of a gradient, a list: wait for all in it before `run_stage` returns. Wait for each `Work` once: with
# gloo a second wait never ends.
#
# </details>


# %% solution="run_stage"
class Send(torch.autograd.Function):
    """Forward sends, returns an empty tensor; backward receives."""

    @staticmethod
    def forward(ctx, x, to):
        ### BEGIN SOLUTION
        ctx.to, ctx.shape = to, x.shape
        # held until backward has come by: by then it has arrived
        ctx.work = dist.isend(x.contiguous(), to)
        return x.new_empty(0)

    @staticmethod
    def backward(ctx, _):
        grad = torch.empty(ctx.shape)
        dist.recv(grad, ctx.to)
        return grad, None
        ### END SOLUTION


class Receive(torch.autograd.Function):
    """Forward takes an empty tensor, receives; backward sends."""

    @staticmethod
    def forward(ctx, phony, shape, source):
        ### BEGIN SOLUTION
        ctx.source = source
        x = torch.empty(shape)
        dist.recv(x, source)
        return x

    @staticmethod
    def backward(ctx, grad):
        Receive.flying.append(dist.isend(grad.contiguous(), ctx.source))
        return None, None, None

    flying = []  # noqa: RUF012 - gradients that nobody else holds
    ### END SOLUTION


def send(x: torch.Tensor, to: int) -> torch.Tensor:
    """Send `x`, return an empty tensor; backward receives its gradient."""
    ### BEGIN SOLUTION
    return Send.apply(x, to)
    ### END SOLUTION


def receive(shape: Sequence[int], source: int) -> torch.Tensor:
    """Return the tensor that a rank sends; backward sends its gradient."""
    ### BEGIN SOLUTION
    return Receive.apply(torch.empty(0, requires_grad=True), shape, source)
    ### END SOLUTION


def run_stage(
    stage: Callable[[torch.Tensor], torch.Tensor],
    plan: list[tuple[str, int]],
    micro_batches: list[torch.Tensor],
    loss: Callable[[torch.Tensor, int], torch.Tensor],
) -> float | None:
    """Do this rank's plan of a pipeline; return the mean loss on the last rank.

    plan: ("F", number) and ("B", number) of micro-batches, in order
    micro_batches: (rows, features) each: what the first stage takes
    """
    ### BEGIN SOLUTION
    rank, last = dist.get_rank(), dist.get_world_size() - 1
    ends: dict[int, torch.Tensor] = {}
    mean = 0.0
    for kind, number in plan:
        if kind == "B":
            ends.pop(number).sum().backward()
            continue
        x = micro_batches[number]
        if rank > 0:
            x = receive(x.shape, rank - 1)
        y = stage(x)
        if rank < last:
            ends[number] = send(y, rank + 1)
        else:
            ends[number] = loss(y, number) / len(micro_batches)
            mean += ends[number].item()
    while Receive.flying:
        Receive.flying.pop().wait()
    return mean if rank == last else None
    ### END SOLUTION


# %% grade="run_stage"
grade("run_stage")

# %% [markdown]
# Your stages and your functions, in a pipeline of three ranks, and the same model in one process:


# %%
def staged(rank: int) -> list[float | None]:
    """Return the mean loss and the sum of the gradients of a layer."""
    torch.manual_seed(0)
    layers = [nn.Linear(4, 4) for _ in range(3)]
    batches = list(torch.randn(5, 2, 4))

    def loss(y, number):
        return (y - number).square().mean()

    if rank < 3:
        plan = one_f_one_b(rank, 3, 5)
        mean = run_stage(lambda x: layers[rank](x).tanh(), plan, batches, loss)
        mine = layers[rank : rank + 1]
    else:  # one process with all layers
        losses = []
        for number, x in enumerate(batches):
            for layer in layers:
                x = layer(x).tanh()
            losses.append(loss(x, number))
        total = sum(losses) / 5
        total.backward()
        mean, mine = total.item(), layers
    sums = [round(layer.weight.grad.sum().item(), 4) for layer in mine]
    return [mean and round(mean, 4), *sums]


if written("run_stage"):
    print("by rank:", *on_ranks(3, staged))
    print("alone:  ", staged(3))

# %% [markdown]
# PyTorch has both ways. `torch.distributed.pipelining` sends and receives by hand, around each backward. In its RPC
# framework, where any function may be called on any rank, the two functions stand in the graph: `SendRpcBackward` and
# `RecvRpcBackward`.

# %% [markdown] sitting="promise"
# question: How do you train a model that no rank can hold, and go on after a crash on fewer ranks?
# reached: >-
#   Each rank keeps one box of every weight, sees the whole of a block only while it computes with it,
#   and writes its boxes down. Boxes can be cut anew for any other mesh, and an index that comes last says
#   what is complete.

# %% [markdown] exercise="train"
# title: Train what no rank can hold
# minutes: 90
# difficulty: 5
# points: 9
# prerequisites: []
# teaches: >-
#   how sharded weights, tensor parallelism, sharded optimizer state and checkpoints that any other mesh
#   can read come together, and what a run needs besides its weights to go on as if nothing had been.
# leaves out: prefetching, mixed precision, checkpoints that are written while training goes on.
# off limits: [sharding]
# budget: {processes: 400, cpu_seconds: 60, wall_seconds: 120, waiting_seconds: 360}

# %% [markdown]
# The last exercise is a whole training run. **No rank may ever hold 45 % of the model**: of its weights,
# their gradients and Adam's two moments together. The run begins on four ranks, is killed while it
# saves, goes on with **three**, and its losses are those of one process that had it all.
#
# The model has many blocks. A block's weight is one tensor `(width, 2, hidden)`, an *up* and a *down* matrix
# beside each other:
#
# $$x \leftarrow x + \mathrm{relu}(x\,W_{\mathrm{up}})\,W_{\mathrm{down}}^{\top}
# \qquad W_{\mathrm{up}} = w[:, 0]\quad W_{\mathrm{down}} = w[:, 1]$$
#
# On a mesh `(dp, tp)` the rank at `(i, j)` keeps a **box** of it: part `i` of the rows, part `j` of the
# columns. Along `dp` the rows are sharded as in FSDP, to be gathered for the time of a computation. Along `tp`
# the columns are cut as in tensor parallelism, and nobody ever gathers them: each rank computes with its hidden
# features, and the sums are added up. `dp` also cuts the batch.
#
# | mesh (2, 2) | columns, part 0 | columns, part 1 |
# |---|---|---|
# | **rows, part 0** | rank 0 | rank 1 |
# | **rows, part 1** | rank 2 | rank 3 |
#
# Draw: show_cells({f"row {i}": [(f"{2 * (i // 3) + j // 3} → {i // 2}", 2 * (i // 3) + j // 3) for j in range(5)] for i
# in range(6)}, [f"column {j}" for j in range(5)]) | A weight of 6 rows and 5 columns: the rank that has each place on a
# mesh (2, 2), and the one that wants it on (3, 1). The middle rank gets something from all four.
#
# Here is what you are given: parts by the rule of `torch.chunk`, the groups of a mesh, what a run is to
# do, and a store for checkpoints. What is `put` there is there as a whole or not at all, however the run
# ends.


# %%
def part(length: int, ranks: int, rank: int) -> slice:
    """Return a rank's part of `length`, by the rule of `torch.chunk`; it may be empty."""
    size = -(-length // ranks)
    return slice(min(rank * size, length), min((rank + 1) * size, length))


def groups_of(shape: tuple[int, int]) -> tuple[dist.ProcessGroup, dist.ProcessGroup]:
    """Return this rank's groups along `dp` and along `tp`. Every rank calls it once."""
    table = torch.arange(shape[0] * shape[1]).view(shape)
    mine = []
    for lines in (table.T.tolist(), table.tolist()):
        for ranks in lines:
            group = dist.new_group(ranks)
            if dist.get_rank() in ranks:
                mine.append(group)
    return mine[0], mine[1]


@dataclass
class Job:
    """What a run is to do."""

    inputs: torch.Tensor  # (samples, width), float64
    targets: torch.Tensor  # (samples, width)
    blocks: int
    width: int
    hidden: int
    batch: int  # samples of a step, over all ranks
    steps: int
    save_every: int
    seed: int
    rate: float
    weight: Callable[[int, slice, slice], torch.Tensor]
    """`weight(block, rows, columns)` is a box of the block's weight at the start, a new tensor."""


class Store:
    """Checkpoints in a folder."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    def put(self, name: str, value: object) -> None:
        """Keep tensors and plain data under a name such as "4/index"."""
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        half = path.with_suffix(f".{dist.get_rank()}")
        torch.save(value, half)
        half.replace(path)  # from one moment to the next

    def get(self, name: str) -> Any:
        """Return what was put."""
        return torch.load(self._folder / name)

    def names(self) -> list[str]:
        """Return the names of all that was put, in any order."""
        files = self._folder.rglob("*")
        return [str(f.relative_to(self._folder)) for f in files if f.is_file() and not f.suffix]


# %% [markdown]
# Draw: show_spans({"four ranks": [("1", 0, 2), ("2", 2, 4), ("save", 4, 6), ("3", 6, 8), ("4", 8, 10), ("sa", 10, 11)],
# "three ranks": [("3", 12, 14), ("4", 14, 16), ("save", 16, 18), ("5", 18, 20)]}) | Steps and saves of the two runs. The
# first is killed in its second save, so that nobody can use that: three ranks take steps 3 and 4 once more.
#
# A step is defined without a word about ranks. One generator, `torch.Generator().manual_seed(job.seed)`,
# gives all random numbers of the run. At the beginning of each epoch it draws the order of the samples,
# `torch.randperm(samples, generator=g)`. A step takes the next `job.batch` of them, the last step of an epoch
# what is left, and draws noise, `torch.randn(count, width, generator=g, dtype=torch.float64)`. Its loss is the
# mean of the squared differences between the model of `inputs + 0.1 * noise` and the targets. Then Adam with
# the learning rate `job.rate` takes a step. Here it is in one process:


# %%
def alone(job: Job) -> list[float]:
    """Return the loss of each step of a process that holds all of it."""
    g = torch.Generator().manual_seed(job.seed)
    everything = slice(None)
    weights = [nn.Parameter(job.weight(b, everything, everything)) for b in range(job.blocks)]
    optimizer = torch.optim.Adam(weights, job.rate)
    losses, order = [], []
    for _ in range(job.steps):
        if not len(order):
            order = torch.randperm(len(job.inputs), generator=g)
        chosen, order = order[: job.batch], order[job.batch :]
        x = torch.randn(len(chosen), job.width, generator=g, dtype=torch.float64) * 0.1
        x = x + job.inputs[chosen]
        for w in weights:
            x = x + (x @ w[:, 0]).relu() @ w[:, 1].T
        loss = (x - job.targets[chosen]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def small_job(**changed: int) -> Job:
    """Return a job of some kilobytes."""
    g = torch.Generator().manual_seed(0)
    full = torch.randn(4, 6, 2, 5, generator=g, dtype=torch.float64) * 0.3
    inputs, targets = torch.randn(2, 11, 6, generator=g, dtype=torch.float64)

    def weight(block: int, rows: slice, columns: slice) -> torch.Tensor:
        return full[block, rows, :, columns].clone()

    sizes = {"blocks": 4, "width": 6, "hidden": 5, "batch": 4, "steps": 5, "save_every": 2}
    return Job(inputs, targets, **(sizes | changed), seed=1, rate=0.01, weight=weight)


print([round(loss, 4) for loss in alone(small_job())])

# %% [markdown]
# Draw: show_cells({"epoch": ["1", "1", "1", "2", "2"], "samples": ["4", "4", "3", "4", "4"], "a save behind it": [False,
# True, False, True, False]}, [f"step {step}" for step in range(1, 6)]) | What `small_job()` does: eleven samples in
# batches of four, and a save after every second step. Each save falls into the middle of an epoch.
#
# **Predict.** A run of 11 samples in batches of 4 was saved after step 2 and goes on in a new process: weights and
# Adam's moments are loaded, the generator is seeded as at the beginning. Which of the 11 samples, by their
# place in the first order, does step 3 take: the last three, or the first four?

# %%
predict(..., lambda: "the first four: a new epoch begins, with the same order once more")

# %% [markdown]
# Weights are not all that a run is made of. The order that is half used up, the state of the generator and
# Adam's count of steps belong to it too.
#
# **Write `train(job, shape, store)`.** Every rank of a mesh of this `shape`, `(dp, tp)`, calls it. Return a list of
# pairs `(step, loss)`, steps from 1 on, of the steps that this call took, the same on every rank.
#
# - If there is a complete checkpoint in the store, go on from the newest. Otherwise begin. The mesh that wrote it
#   may have had another shape.
# - Save after every `job.save_every`-th step. Whenever a run is killed, also between two calls of `put`, what the
#   store holds is enough to go on from the last save that was complete.
# - At no moment may the tensors that a rank made, checkpoints that it reads included, take 45 % of the bytes of
#   all weights, gradients and moments.
# - In a save every rank puts its own boxes. No number of a weight or a moment is in a save twice, and no padding.
# - The losses are those of `alone`, from whatever save one goes on: to the last digits, since sums have another
#   order.
# - Parts may be uneven or empty. A step may have fewer samples than `dp`.
#
# <details><summary>Hint 1: a block</summary>
#
# One `torch.autograd.Function`. Forward: gather the rows along `dp` (padded to equal parts, `(rows, 2, columns)`
# one behind the other is the whole), compute, sum over `tp`. Save `x` and your box, not what was gathered. Backward:
# gather again, compute the hidden features again, sum the input's gradient over `tp`, and reduce-scatter the
# weight's along `dp`.
#
# </details>
# <details><summary>Hint 2: one loss</summary>
#
# Each rank divides its sum of squares by the number of elements of the **whole** batch. Then gradients are to be
# summed along `dp`, not averaged, and so are the losses. Along `tp` the ranks have the same loss. A rank without
# samples computes with empty tensors, and takes part in everything.
#
# </details>
# <details><summary>Hint 3: saving and loading</summary>
#
# One name for each step, block and rank holds weight and moments of a box. A barrier, and then rank 0 puts the
# index: the mesh's shape, the order that is left, the generator's state (`g.get_state()`). Without its index a
# save is not there.
#
# To load a box, go through the ranks of the mesh that saved. What do their rows and yours have in common, and
# the columns? Copy that, if it is anything. Adam's state of a parameter is
# `{"step": torch.tensor(float(step)), "exp_avg": …, "exp_avg_sq": …}` in `optimizer.state[parameter]`.
#
# </details>


# %% solution="train"
class Block(torch.autograd.Function):
    """A block whose weight is there while it computes, and only then."""

    @staticmethod
    def forward(ctx, x, box, width, dp, tp):
        ### BEGIN SOLUTION
        ctx.save_for_backward(x, box)
        ctx.rest = width, dp, tp
        whole = gathered(box, width, dp)
        y = (x @ whole[:, 0]).relu() @ whole[:, 1].T
        dist.all_reduce(y, group=tp)
        return x + y

    @staticmethod
    def backward(ctx, grad):
        x, box = ctx.saved_tensors
        width, dp, tp = ctx.rest
        whole = gathered(box, width, dp)
        hidden = (x @ whole[:, 0]).relu()
        inner = (grad @ whole[:, 1]) * (hidden > 0)
        dx = inner @ whole[:, 0].T
        dist.all_reduce(dx, group=tp)
        rows = rows_each(width, dp)
        full = box.new_zeros(rows * dp.size(), *box.shape[1:])
        full[:width, 0] = x.T @ inner
        full[:width, 1] = grad.T @ hidden
        mine = box.new_empty(rows, *box.shape[1:])
        dist.reduce_scatter_single(mine, full, group=dp)
        return dx + grad, mine[: len(box)], None, None, None


def rows_each(width, dp):
    return -(-width // dp.size())


def gathered(box, width, dp):
    """Return all rows of this rank's columns, (width, 2, columns)."""
    rows = rows_each(width, dp)
    padded = box.new_zeros(rows, *box.shape[1:])
    padded[: len(box)] = box
    whole = box.new_empty(rows * dp.size(), *box.shape[1:])
    dist.all_gather_single(whole, padded, group=dp)
    return whole[:width]


def box_of(job, shape, rank):
    """Return the rows and the columns that a rank of a mesh keeps."""
    i, j = divmod(rank, shape[1])
    return part(job.width, shape[0], i), part(job.hidden, shape[1], j)


def common(a, b):
    """Return what two parts have in common, as a part of each."""
    low, high = max(a.start, b.start), min(a.stop, b.stop)
    return [slice(low - x.start, max(low, high) - x.start) for x in (a, b)]


def loaded(job, store, step, block, shape, box):
    """Return a block's weight and moments in a box, (3, rows, 2, columns), from a save of a mesh."""
    rows, columns = box
    found = torch.zeros(
        3, rows.stop - rows.start, 2, columns.stop - columns.start, dtype=torch.float64
    )
    for rank in range(shape[0] * shape[1]):
        theirs = box_of(job, shape, rank)
        (r, there_r), (c, there_c) = common(rows, theirs[0]), common(columns, theirs[1])
        if r.stop > r.start and c.stop > c.start:
            piece = store.get(f"{step}/{block}-{rank}")
            found[:, r, :, c] = piece[:, there_r, :, there_c]
    return found
    ### END SOLUTION


def train(job: Job, shape: tuple[int, int], store: Store) -> list[tuple[int, float]]:
    """Train on a mesh (dp, tp), from the newest save on; return the steps taken and their losses."""
    ### BEGIN SOLUTION
    rank, (dp, tp) = dist.get_rank(), groups_of(shape)
    box = box_of(job, shape, rank)
    g = torch.Generator().manual_seed(job.seed)
    order = torch.empty(0, dtype=torch.int64)
    saves = [int(name.split("/")[0]) for name in store.names() if name.endswith("/index")]
    begun = max(saves, default=0)
    if begun:
        index = store.get(f"{begun}/index")
        order = index["order"]
        g.set_state(index["generator"])
    weights = [nn.Parameter(job.weight(block, *box)) for block in range(job.blocks)]
    optimizer = torch.optim.Adam(weights, job.rate)
    if begun:
        for block, weight in enumerate(weights):
            values = loaded(job, store, begun, block, index["shape"], box)
            weight.data, *moments = (value.clone() for value in values)
            state = dict(zip(("exp_avg", "exp_avg_sq"), moments, strict=True))
            optimizer.state[weight] = {"step": torch.tensor(float(begun)), **state}
        del values, index

    losses = []
    for step in range(begun + 1, job.steps + 1):
        if not len(order):
            order = torch.randperm(len(job.inputs), generator=g)
        chosen, order = order[: job.batch], order[job.batch :]
        noise = torch.randn(len(chosen), job.width, generator=g, dtype=torch.float64) * 0.1
        mine = part(len(chosen), shape[0], rank // shape[1])
        x = job.inputs[chosen[mine]] + noise[mine]
        for weight in weights:
            x = Block.apply(x, weight, job.width, dp, tp)
        loss = (x - job.targets[chosen[mine]]).square().sum() / (len(chosen) * job.width)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total = loss.detach().clone()
        dist.all_reduce(total, group=dp)
        losses.append((step, total.item()))
        if step % job.save_every == 0:
            for block, weight in enumerate(weights):
                state = optimizer.state[weight]
                kept = torch.stack([weight.detach(), state["exp_avg"], state["exp_avg_sq"]])
                store.put(f"{step}/{block}-{rank}", kept)
            dist.barrier()  # all boxes are there before anybody says so
            if rank == 0:
                index = {"shape": shape, "order": order.clone(), "generator": g.get_state()}
                store.put(f"{step}/index", index)
    return losses
    ### END SOLUTION


# %% grade="train"
grade("train")

# %% [markdown]
# Your run, killed while it saves. A folder without the last save's index is what is left, and three
# ranks go on:

# %%
if written("train"):
    with tempfile.TemporaryDirectory() as folder:
        first = on_ranks(4, lambda rank: train(small_job(steps=4), (2, 2), Store(folder)))
        for path in Path(folder).glob("4/*index*"):
            path.unlink()
        then = on_ranks(3, lambda rank: train(small_job(), (3, 1), Store(folder)))
    print("four ranks: ", [(step, round(loss, 4)) for step, loss in first[0]])
    print("three ranks:", [(step, round(loss, 4)) for step, loss in then[0]])

# %% [markdown]
# Draw: show_curves({"one process": [(step, loss) for step, loss in enumerate(alone(small_job()), 1)], "four ranks, then
# three": [*first[0][:2], *then[0]]}, "step", "loss") | Two lines, of which you see one. Step 3 belongs to four ranks in
# the run that was killed, and to three in the one that went on.
#
# PyTorch's own way is `fully_shard` on one dimension of a mesh, `parallelize_module` on the other, and
# `torch.distributed.checkpoint` for the boxes: its index is a list of offsets and sizes, and loading
# computes what they have in common with those of the new mesh (`torch/distributed/checkpoint/planner_helpers.py`).
#
# Look: sharding/peak#strategy=fsdp_tp&ranks=4&width=8&hidden=16&blocks=3 | What one rank of a mesh (2, 2) holds through a
# step, with PyTorch's own means. The dashed line is what one process would need alone. More blocks, smaller share.
