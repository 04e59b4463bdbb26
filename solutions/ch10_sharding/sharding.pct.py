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
