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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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

# %% [markdown] sitting="one-answer"
# question: How do all ranks come to one answer?
# reached: >-
#   Each number is counted once, whoever has copies of it, and sums come before whatever is not linear.
#   Then all ranks hear the same, and no rank decides by itself.

# %% [markdown] exercise="clip"
# title: Clip what nobody has as a whole
# minutes: 35
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
# that vector. Let the mesh be `(2, 2)`, the first dimension for FSDP, the second for tensor parallelism.
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
# budget: {processes: 400}

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
# PyTorch's own way is `fully_shard` on one dimension of a mesh, `parallelize_module` on the other, and
# `torch.distributed.checkpoint` for the boxes: its index is a list of offsets and sizes, and loading
# computes what they have in common with those of the new mesh (`torch/distributed/checkpoint/planner_helpers.py`).
