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

# %% [markdown] chapter="ch08_ddp"
# title: Distributed data parallel
# summary: >-
#   Several processes train copies of one model, each on its share of the batch, and the copies stay
#   the same to the last bit. Nothing enforces that. It follows from a few agreements: who sends
#   what, when, and in which order. Break one, and the ranks wait for each other for ever, or drift
#   apart in silence. In this chapter you build the agreements yourself, between real processes.
# preload: [torch._dynamo, torch.distributed]

# %% [markdown]
# ## How to work
#
# Each exercise has a card, a few cells to read and run, and one cell to write: the one that
# raises `NotImplementedError`. The cell after it grades what you wrote, as often as you like.
#
# Where a cell calls `predict(...)`, write your guess in place of the dots before you run it.
# Nobody grades a guess.
#
# The ranks of this chapter are real processes: forks of this notebook's, on Linux and macOS (on
# Windows, in WSL). A rank that hangs is ended after a few seconds, and you are told where it stood.

# %%
import inspect
import re
import tempfile
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from pathlib import Path

import torch
import torch._dynamo  # the first DDP imports it. Here, that happens once and not in every fork
import torch.distributed as dist
from torch import nn

from grader import grade, predict
from grader.instruments.collectives import watch_collectives
from grader.instruments.ranks import on_ranks

# %% [markdown]
# ## Ranks
#
# A **rank** is one process among several that know of each other. How many there are is the **world
# size**. `on_ranks(2, body)` forks this process twice, joins the forks to a **process group**, calls
# `body(rank)` in each, and returns what they returned. A fork has a copy of all that was here
# before. What it changes, it changes for itself.

# %%
shared = [0]


def body(rank):
    shared[0] += 1 + rank
    return {"rank": dist.get_rank(), "of": dist.get_world_size(), "shared": shared[0]}


print(on_ranks(2, body), "and here:", shared[0])

# %% [markdown]
# How do they find each other? By a **store**: a dictionary that all of them can reach. Each writes
# down its address, and reads the others'. With `FileStore` the dictionary is a file, with `TCPStore`
# a small server, whose address `torchrun` puts into the environment. The store only brings them
# together. What they say to each other later takes another road, here that of **gloo**, over
# sockets.

# %%
with tempfile.TemporaryDirectory() as folder:
    one = dist.FileStore(str(Path(folder, "store")), 2)
    other = dist.FileStore(str(Path(folder, "store")), 2)
    one.set("address of rank 0", "10.0.0.1")
    print(other.get("address of rank 0").decode(), one.add("arrived", 1), other.add("arrived", 1))

# %% [markdown]
# Then they talk in **collectives**. All ranks of the group make the same call, and each gets its
# result. `all_reduce` adds up, in place:

# %%


def total(rank):
    x = torch.tensor([1.0, 10.0]) * (rank + 1)
    dist.all_reduce(x)
    return x.tolist()


print(on_ranks(3, total))

# %% [markdown]
# Nothing in the call says which `all_reduce` of the others it belongs to. The first of one rank
# meets the first of the other, the second the second. That is the whole agreement. So most mistakes
# in this chapter do not raise. They wait.

# %%


def one_too_many(rank):
    x = torch.ones(2)
    dist.all_reduce(x)
    if rank == 1:
        dist.all_reduce(x)


try:
    on_ranks(2, one_too_many, seconds=3)
except Exception as error:
    print(error)

# %% [markdown] exercise="coordinates"
# title: Find your place in a mesh
# minutes: 25
# difficulty: 2
# points: 5
# prerequisites: []
# teaches: >-
#   how rank numbers become coordinates, what a subgroup is, and that making one concerns every rank.
# leaves out: groups that are made by their members alone, and splitting of NCCL communicators.
# off limits: [torch.distributed.init_device_mesh, torch.distributed.device_mesh.init_device_mesh, torch.distributed.device_mesh.DeviceMesh]

# %% [markdown]
# Twelve ranks on three machines, four on each: whoever wants the ranks of the own machine, or all
# first ranks of the machines, needs **coordinates**. They are agreed upon like the elements of a
# contiguous tensor: the last coordinate runs fastest. Rank 7 of a mesh `(3, 4)` is at `(1, 3)`.
#
# Along each dimension a rank has a group of its own: those that differ from it in this coordinate
# only. In the mesh `(3, 4)` rank 7 has two: `[3, 7, 11]` along dimension 0, and `[4, 5, 6, 7]` along
# dimension 1. A large model is trained like that: gradients are averaged along one dimension,
# layers are cut up along the other.
#
# A group is made by `dist.new_group(ranks)`. A collective takes it as `group=`:

# %%


def in_pairs(rank):
    for ranks in ([0, 1], [2, 3]):
        group = dist.new_group(ranks)
        if rank in ranks:
            mine = group
    x = torch.tensor([rank])
    dist.all_reduce(x, group=mine)
    return x.item(), dist.get_rank(mine)


print("sum in the pair, rank in the pair:", on_ranks(4, in_pairs))

# %% [markdown]
# Look at the loop. **Every** rank makes **every** group, in the same order, also those that it does
# not belong to. For a group of others `new_group` returns a placeholder. A program in which each
# rank makes only its own group waits for ever.
#
# **Predict.** In a mesh of shape `(2, 3, 4)`, how many groups must be made in all, along the three
# dimensions?

# %%
predict(..., lambda: sum(2 * 3 * 4 // size for size in (2, 3, 4)))

# %% [markdown]
# **Write `coordinates(shape)`.** `shape` is a tuple of whole numbers of at least 1. Their product is
# the world size. Every rank calls it, with the same shape. Return a pair:
#
# - this rank's coordinates, a tuple of as many numbers;
# - a list with one process group for each dimension: that of the ranks which differ from this one in
#   this coordinate only.
#
# A dimension of size 1 has a group too. The rank is alone in it.
#
# <details><summary>Hint 1: coordinates</summary>
#
# Take them from the last to the first with `divmod`: the remainder is the coordinate, the quotient
# is what is left for the others.
#
# </details>
# <details><summary>Hint 2: all groups along a dimension</summary>
#
# Two ranks are in one group if their coordinates agree everywhere but in that dimension. Sort all
# ranks of the world into a dict, with the other coordinates as its key. A dict keeps its order, which
# is the same on every rank.
#
# </details>
# <details><summary>Hint 3: which one is mine</summary>
#
# Make them all in a loop, and keep the one whose ranks contain this one. What `new_group` returns for
# the others is not `None`; do not let it overwrite yours.
#
# </details>


# %% solution="coordinates"
def coordinates(shape: tuple[int, ...]) -> tuple[tuple[int, ...], list[dist.ProcessGroup]]:
    """Return this rank's coordinates in a mesh, and its group along each dimension.

    shape: sizes of the dimensions; the last one runs fastest
    """
    ### BEGIN SOLUTION
    me = dist.get_rank()

    def place(rank):
        found = []
        for size in reversed(shape):
            rank, coordinate = divmod(rank, size)
            found.append(coordinate)
        return tuple(reversed(found))

    groups = []
    for dimension in range(len(shape)):
        lines = {}
        for rank in range(dist.get_world_size()):
            here = place(rank)
            lines.setdefault(here[:dimension] + here[dimension + 1 :], []).append(rank)
        # every rank makes every group, in this order; it keeps the one that it is in
        for ranks in lines.values():
            group = dist.new_group(ranks)
            if me in ranks:
                groups.append(group)
    return place(me), groups
    ### END SOLUTION


# %% grade="coordinates"
grade("coordinates")

# %% [markdown] exercise="sync_module"
# title: Begin with the same model
# minutes: 30
# difficulty: 3
# points: 7
# prerequisites: []
# teaches: >-
#   that replicas stay equal only if they begin equal, buffers included; that a collective moves
#   memory and asks no questions; and how ranks agree before they exchange anything.
# leaves out: sending many small tensors as one.
# off limits: [torch.nn.parallel.DistributedDataParallel, torch.distributed.utils._sync_module_states, torch.distributed._broadcast_coalesced, torch.distributed.broadcast_object_list]

# %% [markdown]
# If all ranks start from the same numbers and take the same steps, they stay the same. DDP does not
# look at parameters again: equal at the start is all there is. It sends rank 0's, once, when it is
# made:


# %%
def first_weights(rank):
    torch.manual_seed(rank)
    model = nn.Linear(2, 1, bias=False)
    before = model.weight.tolist()
    wrapped = torch.nn.parallel.DistributedDataParallel(model)
    return before == wrapped.module.weight.tolist()


print("DDP leaves the weights alone:", on_ranks(3, first_weights))

# %% [markdown]
# `dist.broadcast(x, source)` sends memory. It does not know what a shape or a stride is. Two ranks
# have tensors of the same shape, one of them stored by columns:


# %%
def by_columns(rank):
    x = torch.tensor([[1, 2, 3], [4, 5, 6]])
    y = torch.zeros(3, 2, dtype=torch.int64).t() if rank == 1 else x
    dist.broadcast(y, 0)
    return y.tolist()


print(on_ranks(2, by_columns))

# %% [markdown]
# Six numbers went, six numbers came, in the order in which they lie in memory. Rank 1 reads them by
# other strides. Nobody raised. And autograd learns nothing of what comes in:


# %%
def noticed(rank):
    w = nn.Parameter(torch.ones(2) * rank)
    dist.broadcast(w, 1)  # in place, on a leaf that requires grad
    return w.tolist(), "version", w._version


print(on_ranks(2, noticed))

# %% [markdown]
# **Predict.** A `Linear(2, 2)` without bias is followed by a `BatchNorm1d(2)`. How many tensors
# must be sent: parameters and buffers together?

# %%
predict(
    ...,
    lambda: len(nn.Sequential(nn.Linear(2, 2, bias=False), nn.BatchNorm1d(2)).state_dict()),
)

# %% [markdown]
# **Write `sync_module(module, source=0)`.** Every rank calls it with a module of its own. Afterwards
# all parameters and buffers of every rank have the values of rank `source`: frozen ones too, and
# buffers that are not saved (`persistent=False`). Return nothing.
#
# - Dtypes are those that gloo can send; shapes are any, layouts are any and differ from rank to rank.
#   Each rank's tensors stay the same objects, with their strides and their `requires_grad`.
# - A tensor that has two names in a module is sent once.
# - If the ranks' modules differ in the names, the shapes or the dtypes of their parameters or
#   buffers, **every** rank raises `ValueError`, and nothing has changed on any. You may send
#   whatever you need to find out; `dist.all_gather_object` takes any small object.
#
# <details><summary>Hint 1: one list</summary>
#
# `named_parameters()` and `named_buffers()` give every tensor once, also those that `state_dict`
# leaves out.
#
# </details>
# <details><summary>Hint 2: any layout</summary>
#
# Send a contiguous copy. `copy_` puts what came into the tensor, whatever its strides. On a parameter
# that must not be recorded.
#
# </details>
# <details><summary>Hint 3: agree first</summary>
#
# If rank 1 alone sees that something is wrong and raises, rank 0 waits for it. All must see the same
# facts: gather everybody's description on everybody, compare all of them with one, then decide.
#
# </details>


# %% solution="sync_module"
def sync_module(module: nn.Module, source: int = 0) -> None:
    """Give every rank's `module` the parameters and buffers of rank `source`."""
    ### BEGIN SOLUTION
    tensors = dict([*module.named_parameters(), *module.named_buffers()])
    mine = [(name, tuple(t.shape), str(t.dtype)) for name, t in tensors.items()]
    everybodys = [None] * dist.get_world_size()
    dist.all_gather_object(everybodys, mine)
    # all ranks hold the same list here, so all of them come to the same decision
    if any(theirs != everybodys[0] for theirs in everybodys):
        raise ValueError("the ranks' modules differ")
    with torch.no_grad():
        for tensor in tensors.values():
            sent = tensor.clone(memory_format=torch.contiguous_format)
            dist.broadcast(sent, source)
            tensor.copy_(sent)
    ### END SOLUTION


# %% grade="sync_module"
grade("sync_module")

# %% [markdown] exercise="average_gradients"
# title: Average, and count the samples
# minutes: 25
# difficulty: 2
# points: 6
# prerequisites: []
# teaches: >-
#   that DDP averages over ranks, which is the gradient of the whole batch only if every rank has as
#   many samples; and what to do if not.
# leaves out: parameters without a gradient on ranks that have samples; sums in low precision.
# off limits: [torch.nn.parallel.DistributedDataParallel]

# %% [markdown]
# DDP does not split a model, and it does not split a batch. Each rank has the whole model and brings
# samples of its own. One thing is done for it: during `backward`, gradients are **averaged** over the
# ranks. Not summed. Rank 0 has the gradient 1, rank 1 has 2:

# %%


def one_gradient(rank):
    ddp = torch.nn.parallel.DistributedDataParallel(nn.Linear(1, 1, bias=False))
    ddp(torch.tensor([[1.0 + rank]])).sum().backward()
    return ddp.module.weight.grad.item()


print(on_ranks(2, one_gradient))

# %% [markdown]
# "So DDP gives the gradient of the whole batch." It does if each loss is a mean, and if all ranks have
# the same number of samples. The mean of means is not the mean otherwise.
#
# **Predict.** The samples are 1, 2, 3 and 10, and the gradient of the mean is their mean, 4. Rank 0 has
# the first three samples and rank 1 the last. What does DDP say?

# %%
samples = torch.tensor([[1.0], [2.0], [3.0], [10.0]])


def uneven(rank):
    ddp = torch.nn.parallel.DistributedDataParallel(nn.Linear(1, 1, bias=False))
    ddp(samples[:3] if rank == 0 else samples[3:]).mean().backward()
    return ddp.module.weight.grad.item()


predict(..., lambda: on_ranks(2, uneven)[0])

# %% [markdown]
# The rank with one sample gives it the weight of three. That is usual in the last batch of an epoch,
# and in language models, where a "sample" is a token and every rank has another number of them. Then
# gradients are weighted by what they stand for: with $n_r$ samples and the gradient $g_r$ of the mean
# on rank $r$,
#
# $$g = \frac{\sum_r n_r\, g_r}{\sum_r n_r}$$
#
# A rank may have nothing at all: a batch whose tokens are all masked. Its mean is zero divided by zero,
# and a weight of 0 does not make that harmless:

# %%
w = torch.tensor(1.0, requires_grad=True)
mask = torch.zeros(3)
loss = (w * torch.tensor([1.0, 2.0, 3.0]) * mask).sum() / mask.sum()
loss.backward()
print("gradient", w.grad.item(), " times 0:", (0 * w.grad).item())

# %% [markdown]
# **Write `average_gradients(parameters, samples)`.** Each rank has called `backward` on the mean loss of
# its own `samples` samples, a whole number of at least 0. At least one rank has some. Afterwards every
# parameter's `.grad` is, on every rank, the gradient of the mean over all samples of all ranks. Return
# nothing.
#
# - `parameters` is any iterable, such as `model.parameters()`. Parameters with `requires_grad=False` keep
#   what they have in `.grad`, which may be `None`, and are not sent.
# - On a rank with 0 samples a gradient may be `None` or hold anything, NaN for one. It must not count.
# - On ranks with samples all other parameters have a gradient. Its layout is any, and may differ from
#   that of the same gradient on another rank.
#
# <details><summary>Hint 1: the counts</summary>
#
# No rank knows the others' number of samples. Put your own into a tensor and let it be added up.
#
# </details>
# <details><summary>Hint 2: nothing to give</summary>
#
# A rank without samples still takes part in each all-reduce. Let it bring zeros, freshly made.
#
# </details>
# <details><summary>Hint 3: in which order numbers lie</summary>
#
# `all_reduce` adds up what lies in memory, position by position. `p.grad * n` has the strides of
# `p.grad`. Make what you send contiguous, so that positions mean the same everywhere.
#
# </details>


# %% solution="average_gradients"
def average_gradients(parameters: Iterable[nn.Parameter], samples: int) -> None:
    """Make each `.grad` the gradient of the mean over all ranks' samples.

    samples: how many this rank's own gradient is a mean of; 0 means that it does not count
    """
    ### BEGIN SOLUTION
    everybodys = torch.tensor(samples)
    dist.all_reduce(everybodys)
    for parameter in parameters:
        if not parameter.requires_grad:
            continue
        # made anew and not scaled by 0: NaN times 0 is NaN
        part = torch.zeros(parameter.shape, dtype=parameter.dtype)
        if samples:
            part += parameter.grad * samples
        dist.all_reduce(part)
        parameter.grad = part / everybodys
    ### END SOLUTION


# %% grade="average_gradients"
grade("average_gradients")

# %% [markdown]
# ### What is not averaged
#
# Only what goes through DDP's own `forward`. It prepares the hooks for the next `backward`. Whoever calls
# the model inside, for its loss or for some method of its own, goes round it. Nothing raises, and the
# ranks drift apart:

# %%


def go_round(rank):
    ddp = torch.nn.parallel.DistributedDataParallel(nn.Linear(1, 1, bias=False))
    x = torch.tensor([[1.0 + rank]])
    found = []
    for call in (ddp, ddp.module):
        ddp.zero_grad()
        call(x).sum().backward()
        found.append(ddp.module.weight.grad.item())
    return {"ddp(x)": found[0], "ddp.module(x)": found[1], "keys": list(ddp.state_dict())}


for found in on_ranks(2, go_round):
    print(found)

# %% [markdown]
# The keys show the other thing about `.module`: a checkpoint of the wrapper has it in every name. Save
# `ddp.module.state_dict()`; the model that loads it need not know of DDP.
#
# And `forward` is a collective too, where a model has buffers: rank 0's are sent to all before each. So
# "evaluate on rank 0 only" hangs in the forward pass, under `no_grad` and in `eval()` as well:

# %%


def evaluate_on_rank_1(rank):
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    ddp = torch.nn.parallel.DistributedDataParallel(model).eval()
    if rank == 1:
        with torch.no_grad():
            ddp(torch.ones(2, 2))


try:
    on_ranks(2, evaluate_on_rank_1, seconds=4)
except Exception as error:
    print(error)

# %% [markdown]
# Use `ddp.module(x)` there. It is the right call where nothing is to be synchronised.

# %% [markdown] exercise="ring_all_reduce"
# title: Add up in a ring
# minutes: 45
# difficulty: 4
# points: 7
# prerequisites: []
# teaches: >-
#   how an all-reduce is made of sends and receives, why its cost per rank hardly depends on the number
#   of ranks, and why all ranks get the same bits.
# leaves out: trees, and two rings at once.
# off limits: [torch.distributed.all_reduce, torch.distributed.all_gather, torch.distributed.broadcast, torch.distributed.reduce_scatter, torch.distributed.all_reduce_coalesced, torch.distributed.all_gather_into_tensor, torch.distributed.reduce_scatter_tensor, torch.distributed.all_to_all]

# %% [markdown]
# Four ranks, each with 100 MB of gradients. If all send theirs to rank 0, and it sends the sum to all,
# then 600 MB pass through rank 0 while the others idle. In a **ring** each rank sends only to
# the next one, and all send at the same time.
#
# Cut the tensor into as many pieces as there are ranks, $n$. In the first half, each rank passes on a
# piece and adds what arrives to its own. After $n-1$ steps each rank has **one** piece that holds the sum
# of all. In the second half these finished pieces go round, and each replaces what was there. With three
# ranks that hold a, b and c:
#
# | step | rank 0 has | rank 1 has | rank 2 has |
# |---|---|---|---|
# | start | a · a · a | b · b · b | c · c · c |
# | 1 | a · a · **ac** | **ab** · b · b | c · **bc** · c |
# | 2 | a · **abc** · ac | ab · b · **abc** | **abc** · bc · c |
# | 3 | **abc** · abc · ac | ab · **abc** · abc | abc · bc · **abc** |
# | 4 | abc · abc · **abc** | **abc** · abc · abc | abc · **abc** · abc |
#
# Each rank sends $2(n-1)$ pieces of one $n$-th: twice the tensor at most, however many ranks there are.
#
# **Predict.** 1000 ranks reduce 100 MB. How many MB does each one send, rounded?

# %%
predict(..., lambda: round(2 * (1000 - 1) / 1000 * 100))

# %% [markdown]
# Sending comes in two kinds. `dist.send` returns when the data is on its way, which may need the other
# side to have asked for it. If all ranks send first and receive later, all wait:

# %%


def all_send_first(rank):
    got = torch.empty(3)
    dist.send(torch.ones(3), (rank + 1) % 2)
    dist.recv(got, (rank + 1) % 2)


try:
    on_ranks(2, all_send_first, seconds=3)
except Exception as error:
    print(error)

# %% [markdown]
# `dist.isend` and `dist.irecv` return a request at once. The tensors belong to it until `request.wait()`
# returns: do not write to the one, and do not read the other.

# %%


def both_at_once(rank):
    got = torch.empty(3)
    requests = [
        dist.isend(torch.ones(3) * rank, (rank + 1) % 2),
        dist.irecv(got, (rank + 1) % 2),
    ]
    for request in requests:
        request.wait()
    return got.tolist()


print(on_ranks(2, both_at_once))

# %% [markdown]
# **Write `ring_all_reduce(x)`.** Every rank calls it with a tensor of the same shape and dtype; whole
# numbers or floats, any shape, any layout. Return a new tensor of that shape and dtype with the sum over
# all ranks, and leave `x` as it is.
#
# - Each rank sends to rank `(rank + 1) % n` and to no other, at most $2(n-1)$ times.
# - No message is longer than the longest piece: the number of elements divided by $n$, rounded up.
# - All ranks return the same bits.
# - The number of elements need not be a multiple of $n$, and may be less than $n$. There may be one rank
#   only.
#
# <details><summary>Hint 1: pieces</summary>
#
# `flat.tensor_split(n)` gives `n` views whose lengths differ by at most one, empty ones if need be. The
# same on every rank.
#
# </details>
# <details><summary>Hint 2: whose piece, when</summary>
#
# In step `s` of the first half, rank `r` sends piece `r - s` and receives piece `r - s - 1`, modulo `n`.
# In the second half it sends what it has just received, which is piece `r + 1 - s`, and receives `r - s`.
#
# </details>
# <details><summary>Hint 3: add or replace</summary>
#
# In the first half receive into a tensor of its own, then add that to your piece. In the second half
# receive into the piece itself. Wait for both requests before the next step.
#
# </details>


# %% solution="ring_all_reduce"
def ring_all_reduce(x: torch.Tensor) -> torch.Tensor:
    """Return the sum of all ranks' `x`, by messages to the next rank only."""
    ### BEGIN SOLUTION
    rank, world_size = dist.get_rank(), dist.get_world_size()
    flat = x.clone(memory_format=torch.contiguous_format).view(-1)
    pieces = flat.tensor_split(world_size)  # views: what is written to them is in `flat`

    def exchange(sent, received):
        requests = [
            dist.isend(pieces[sent % world_size], (rank + 1) % world_size),
            dist.irecv(received, (rank - 1) % world_size),
        ]
        for request in requests:
            request.wait()

    for step in range(world_size - 1):
        piece = pieces[(rank - step - 1) % world_size]
        arriving = torch.empty_like(piece)
        exchange(rank - step, arriving)
        piece += arriving
    # piece rank + 1 is complete here; nobody adds to it any more, so its bits are everybody's
    for step in range(world_size - 1):
        exchange(rank + 1 - step, pieces[(rank - step) % world_size])
    return flat.view(x.shape)
    ### END SOLUTION


# %% grade="ring_all_reduce"
grade("ring_all_reduce")

# %% [markdown] exercise="Buckets"
# title: Send gradients while others are being computed
# minutes: 60
# difficulty: 5
# points: 8
# prerequisites: [average_gradients]
# teaches: >-
#   why DDP has buckets, how hooks let it communicate during `backward`, and why the order of buckets is
#   fixed before anything is sent.
# leaves out: gradients that live in the bucket itself; plans that are remade after the first iteration.
# off limits: [torch.nn.parallel.DistributedDataParallel, torch.nn.parallel.distributed.DistributedDataParallel, torch.distributed.Reducer]

# %% [markdown]
# Averaging after `backward` is right, and slow: the network idles while gradients are computed, then the
# processor idles while they are sent. But the last layer's gradients are there long before the first
# layer's. They can travel while the rest is computed.
#
# Sending each tensor alone is slow as well, since every message has a fixed cost. So DDP fills
# **buckets**: some tensors that are sent as one. Watch it, with six layers of 40,000 bytes and buckets
# for two of them. One line is printed for each iteration:

# %%


def watched(rank):
    model = nn.Sequential(*[nn.Linear(100, 100, bias=False) for _ in range(6)])
    ddp = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.07)
    iterations = []
    for _ in range(2):
        with watch_collectives() as seen:
            for name, p in model.named_parameters():
                p.register_post_accumulate_grad_hook(lambda p, name=name: seen.note(name))
            total = ddp(torch.ones(1, 100)).sum()
            seen.note("backward")
            total.backward()
        for p in model.parameters():
            p._post_accumulate_grad_hooks.clear()
        iterations.append(seen.events)
    return iterations


for events in on_ranks(2, watched)[0]:
    for name, size in events[events.index(("backward", 0)) + 1 :]:
        print(f"{name} {size}" if size else name, end="; ")
    print()

# %% [markdown]
# In the first iteration there is one bucket, and nothing overlaps. DDP looks in which order gradients
# come, and makes its plan from that. From the second on, a bucket goes out as soon as its last gradient
# is there. Two tools make that possible. `parameter.register_post_accumulate_grad_hook(hook)` calls
# `hook(parameter)` when `.grad` is complete. And a collective with `async_op=True` returns at once, with
# something to wait for:

# %%


def wait_later(rank):
    x = torch.ones(2)
    work = dist.all_reduce(x, async_op=True)
    # here something else can be computed; x is not to be touched
    work.wait()
    return x.tolist()


print(on_ranks(2, wait_later))

# %% [markdown]
# Waiting inside of a hook stops `backward`, on every rank, until the slowest has come. Then nothing
# overlaps, although the events are the same.
#
# There is one more trap. The first all-reduce of one rank meets the first of the others, whatever is in
# it. If a rank sends buckets in the order in which they happen to be complete, and the order differs
# among ranks, then gradients of different layers are added up. If they have the same size, nothing
# raises:

# %%


def in_own_order(rank):
    grads = {"w1": torch.tensor([1.0]), "w2": torch.tensor([100.0])}
    for name in ["w1", "w2"] if rank == 0 else ["w2", "w1"]:
        dist.all_reduce(grads[name])
    return {name: grad.item() for name, grad in grads.items()}


print("on both ranks w1 has 1, w2 has 100; sums:", on_ranks(2, in_own_order))

# %% [markdown]
# **Predict.** Capacity 1000 bytes; from the last parameter to the first they have 400, 500, 200, 1500 and
# 100 bytes. A bucket closes before it would exceed the capacity. How many buckets?


# %%
def count_buckets(sizes, capacity):
    buckets, used = 0, capacity + 1
    for size in sizes:
        if used + size > capacity:
            buckets, used = buckets + 1, 0
        used += size
    return buckets


predict(..., lambda: count_buckets([400, 500, 200, 1500, 100], 1000))

# %% [markdown]
# **Write `Buckets(parameters, capacity)`**, used like this:
#
# ```python
# buckets = Buckets(model.parameters(), capacity=25_000_000)
# for x in batches:
#     model(x).mean().backward()
#     buckets.finish()      # now each .grad is the mean over ranks
#     optimizer.step()
#     optimizer.zero_grad()
# ```
#
# - `parameters` is any iterable; `capacity` is in bytes. The attribute **`plan`** is a list of buckets, each
#   a list of positions among the parameters. Go from the last parameter to the first, leaving out those
#   with `requires_grad=False`. A parameter goes into the open bucket, unless its dtype is another, or the
#   bucket would exceed the capacity: then a new bucket opens. One that is larger than the capacity has a
#   bucket for itself.
# - Each bucket is sent by **one** all-reduce of one flat tensor, which is issued while `backward` runs: as
#   soon as all its gradients are there and all buckets before it in the plan have been issued. So every
#   rank issues the buckets in the order of the plan, however its gradients come.
# - Nothing waits before `finish()`.
# - `finish()` waits for all, makes each `.grad` the mean over ranks, and is ready for the next `backward`.
#   It raises `RuntimeError` if some parameter had no gradient in this `backward`.
# - Gradients have any layout. Before each `backward` every `.grad` is `None`.
#
# <details><summary>Hint 1: what to remember</summary>
#
# For each bucket, how many gradients are missing. And a list of what was issued: the flat tensor and its
# work. The length of this list is the number of the bucket whose turn it is.
#
# </details>
# <details><summary>Hint 2: in order</summary>
#
# A hook counts down its bucket. Then, *while* the bucket whose turn it is misses nothing, issue it. One
# gradient may release several buckets that were complete before.
#
# </details>
# <details><summary>Hint 3: back again</summary>
#
# `flat.split(sizes)` gives the parts. `grad.copy_(part.view(grad.shape))` is right for any strides of
# `grad`; so is `grad.reshape(-1)` on the way in.
#
# </details>


# %% solution="Buckets"
class Buckets:
    """Average gradients over ranks, bucket by bucket, while `backward` runs.

    plan: the positions of each bucket's parameters, in the order in which buckets are sent
    """

    def __init__(self, parameters: Iterable[nn.Parameter], capacity: int) -> None:
        ### BEGIN SOLUTION
        self.parameters = list(parameters)
        self.plan = []
        used, dtype = 0, None
        for position, parameter in reversed(list(enumerate(self.parameters))):
            if not parameter.requires_grad:
                continue
            if parameter.dtype != dtype or used + parameter.nbytes > capacity:
                self.plan.append([])
                used, dtype = 0, parameter.dtype
            self.plan[-1].append(position)
            used += parameter.nbytes
        for number, bucket in enumerate(self.plan):
            for position in bucket:
                self.parameters[position].register_post_accumulate_grad_hook(
                    lambda _, number=number: self.ready(number)
                )
        self.begin()

    def begin(self):
        """Forget what was sent."""
        self.missing = [len(bucket) for bucket in self.plan]
        self.issued = []

    def grads(self, bucket):
        """Return the gradients of a bucket, in its order."""
        return [self.parameters[position].grad for position in bucket]

    def ready(self, number):
        """Note that one more gradient of a bucket is there; send what may be sent now."""
        self.missing[number] -= 1
        # in the order of the plan: a bucket that is complete early waits for those before it
        while len(self.issued) < len(self.plan) and not self.missing[len(self.issued)]:
            bucket = self.plan[len(self.issued)]
            flat = torch.cat([grad.reshape(-1) for grad in self.grads(bucket)])
            self.issued.append((flat, dist.all_reduce(flat, async_op=True)))

    ### END SOLUTION

    def finish(self) -> None:
        """Wait for the averages and put them into each `.grad`."""
        ### BEGIN SOLUTION
        if any(self.missing):
            raise RuntimeError("some parameter had no gradient")
        for bucket, (flat, work) in zip(self.plan, self.issued, strict=True):
            work.wait()
            flat /= dist.get_world_size()
            grads = self.grads(bucket)
            for grad, part in zip(grads, flat.split([g.numel() for g in grads]), strict=True):
                grad.copy_(part.view(grad.shape))
        self.begin()
        ### END SOLUTION


# %% grade="Buckets"
grade("Buckets")

# %% [markdown] exercise="accumulate"
# title: Accumulate, and talk once
# minutes: 30
# difficulty: 3
# points: 6
# prerequisites: [average_gradients]
# teaches: >-
#   what `no_sync` really covers, and how gradients of several micro-batches become that of the whole.
# leaves out: buffers, and ranks with different numbers of samples.
# off limits: [torch.distributed.all_reduce]

# %% [markdown]
# A batch too large for memory is cut into **micro-batches**: several forward and backward passes, whose
# gradients add up in `.grad`, then one step. DDP would average after each. `ddp.no_sync()` tells it not
# to. But what must be inside of that `with`? Four ways, with the number of all-reduces and the gradient of
# each rank:


# %%
def four_ways(rank):
    ddp = torch.nn.parallel.DistributedDataParallel(nn.Linear(1, 1, bias=False))
    x = torch.tensor([[1.0 + rank]])
    found = {}
    for forward, backward in [(False, False), (False, True), (True, False), (True, True)]:
        ddp.zero_grad()
        with watch_collectives() as seen:
            with ddp.no_sync() if forward else nullcontext():
                loss = ddp(x).sum()
            with ddp.no_sync() if backward else nullcontext():
                loss.backward()
        found[forward, backward] = seen.count("all_reduce"), ddp.module.weight.grad.item()
    return found


results = on_ranks(2, four_ways)
print("inside of no_sync:", *(f"rank {rank}" for rank in (0, 1)), sep="   ")
for forward, backward in results[0]:
    inside = [name for name, is_in in (("forward", forward), ("backward", backward)) if is_in]
    print(f"{' and '.join(inside) or 'nothing':>20}", *(one[forward, backward] for one in results))

# %% [markdown]
# Only **forward** counts. That is where DDP prepares its hooks for the `backward` to come, or does not.
# `no_sync` around `backward` alone changes nothing: each micro-batch is sent. A forward inside whose
# backward comes after the `with` is never averaged.
#
# **Predict.** The first micro-batch has the gradient 1 on rank 0 and 2 on rank 1, without
# synchronisation. The second has the same, and is synchronised. What is in rank 0's `.grad` afterwards?


# %%
def two_passes(rank):
    ddp = torch.nn.parallel.DistributedDataParallel(nn.Linear(1, 1, bias=False))
    x = torch.tensor([[1.0 + rank]])
    with ddp.no_sync():
        ddp(x).sum().backward()
    ddp(x).sum().backward()
    return ddp.module.weight.grad.item()


predict(..., lambda: on_ranks(2, two_passes)[0])

# %% [markdown]
# What is sent is `.grad` after adding up, with all that has come before. So it is the **last** micro-batch
# that must be synchronised.
#
# **Write `accumulate(ddp, micro_batches, loss_of)`.**
#
# - `ddp` is a model in DDP, without buffers. Its `.grad`s are `None`.
# - `micro_batches` is any iterable of tensors `(samples, …)`, of one sample at least each, and at least one
#   of them. It may be a generator: how many there are is not known, and they may not fit into memory
#   together. Take one only when the one before it is next in turn: never be more than one ahead.
# - `loss_of(output)` is the mean loss over the samples of one micro-batch. Call it once for each, in order.
# - All ranks have the same number of samples in all. How these are cut up may differ from rank to rank.
#
# Afterwards each `.grad` is, on every rank, the gradient of the mean over all samples of all ranks; and each
# bucket was sent once. Parameters that are frozen have none. Return this rank's mean loss over all its
# samples, as a Python `float`.
#
# <details><summary>Hint 1: is it the last</summary>
#
# You know only when there is no next one. Hold one micro-batch, ask for the next, then run the one you
# hold.
#
# </details>
# <details><summary>Hint 2: samples, not micro-batches</summary>
#
# A micro-batch of 3 samples counts three times as much as one of 1. Multiply the mean by the number of its
# samples before `backward`; divide gradients by the number of all samples at the end.
#
# </details>
# <details><summary>Hint 3: around what</summary>
#
# `with ddp.no_sync():` around forward and backward of all but the last. `contextlib.nullcontext()` is a
# `with` that does nothing.
#
# </details>


# %% solution="accumulate"
def accumulate(
    ddp: torch.nn.parallel.DistributedDataParallel,
    micro_batches: Iterable[torch.Tensor],
    loss_of: Callable[[torch.Tensor], torch.Tensor],
) -> float:
    """Run forward and backward for each micro-batch, average once, and return the mean loss.

    micro_batches: tensors (samples, …)
    loss_of: from the model's output to the mean loss over its samples
    """
    ### BEGIN SOLUTION
    upcoming = iter(micro_batches)
    total, samples = 0.0, 0
    current = next(upcoming)
    while current is not None:
        following = next(upcoming, None)
        # what DDP sends is what has been added up: so the last one is not held back
        with nullcontext() if following is None else ddp.no_sync():
            loss = loss_of(ddp(current)) * len(current)
            loss.backward()
        total += loss.item()
        samples += len(current)
        current = following
    for parameter in ddp.parameters():
        if parameter.grad is not None:
            parameter.grad /= samples
    return total / samples
    ### END SOLUTION


# %% grade="accumulate"
grade("accumulate")

# %% [markdown] exercise="fill_unused"
# title: Parameters that nobody used
# minutes: 45
# difficulty: 4
# points: 7
# prerequisites: [Buckets]
# teaches: >-
#   why DDP must know before `backward` which gradients will not come, how it finds out from the graph,
#   and why "unused here" and "unused anywhere" are two different things.
# leaves out: graphs that never change, for which `static_graph=True` spares the search.
# off limits: [torch.nn.parallel.DistributedDataParallel, torch.Tensor.backward, torch.autograd.backward, torch.autograd._engine_run_backward, torch.autograd.graph._engine_run_backward]

# %% [markdown]
# Each bucket waits for all its gradients. If a model takes one of two branches, some never come. Here rank 0
# takes branch `a` and rank 1 takes branch `b`; `c` is used by nobody.


# %%
class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = (nn.Linear(1, 1, bias=False) for _ in range(3))

    def forward(self, x, name):
        return getattr(self, name)(x)


def one_step(rank, **options):
    ddp = torch.nn.parallel.DistributedDataParallel(Branches(), **options)
    ddp(torch.tensor([[1.0 + rank]]), "ab"[rank]).sum().backward()
    grads = [None if p.grad is None else p.grad.item() for p in ddp.parameters()]
    try:
        ddp(torch.ones(1, 1), "a")
    except RuntimeError as error:
        return grads, str(error).partition(". ")[0]
    return grads, "no error"


for rank, found in enumerate(on_ranks(2, one_step)):
    print(f"rank {rank}: a, b, c have", *found)

# %% [markdown]
# Nothing was averaged, and `backward` did not say so. The error comes with the *next* forward. Whoever steps
# the optimizer in between has replicas that differ. With `find_unused_parameters=True`:

# %%
for rank, found in enumerate(on_ranks(2, lambda r: one_step(r, find_unused_parameters=True))):
    print(f"rank {rank}: a, b, c have", *found)

# %% [markdown]
# Before `backward`, each rank now walks the graph of its output and finds which parameters are in it. What
# is not there counts as zero: `a` gets the mean of 1 and 0. And the ranks tell each other what they found.
# So `c`, which no rank used, keeps `None`. A zero would not be the same:

# %%
left_alone, given_zero = (nn.Parameter(torch.tensor(1.0)) for _ in range(2))
given_zero.grad = torch.tensor(0.0)
torch.optim.SGD([left_alone, given_zero], lr=0.1, weight_decay=0.5).step()
print(f"{left_alone.item():.2f} {given_zero.item():.2f}")

# %% [markdown]
# Weight decay moves whatever has a gradient. So does momentum.
#
# The walk goes from a result's `grad_fn` along `next_functions`. At the ends are nodes that add to `.grad`;
# such a node knows its tensor:

# %%
w = nn.Parameter(torch.ones(2))
loss = (w * 2).sum()
node = loss.grad_fn
while node is not None:
    print(node.name(), getattr(node, "variable", None) is w)
    node = node.next_functions[0][0] if node.next_functions else None

# %% [markdown]
# Why not run `backward` and look which `.grad` is `None`? Because it is too late by then: buckets go out
# during `backward`. And a `.grad` may be left from an earlier pass.
#
# **Predict.** `h = h + h`, thirty times, after `h = w * 1`. How many different nodes has the graph, the one
# that adds to `w.grad` included?


# %%
def count_nodes():
    h = w * 1
    for _ in range(30):
        h = h + h
    seen, todo = set(), [h.grad_fn]
    while todo:
        node = todo.pop()
        if node is not None and node not in seen:
            seen.add(node)
            todo += [next_node for next_node, _ in node.next_functions]
    return len(seen)


predict(..., count_nodes)

# %% [markdown]
# There are $2^{30}$ ways through this graph. Do not walk them all.
#
# **Write `fill_unused(loss, parameters)`.** Every rank calls it between forward and `backward`, with its own
# loss and a list of the same parameters. Return a list of booleans, the same on every rank: for each
# parameter, whether the loss of **any** rank depends on it. And where another rank's loss depends on a
# parameter, this one's does not, and its `.grad` is `None`: set `.grad` to zeros of the parameter's shape and
# dtype. Every other `.grad` stays as it is.
#
# - The graph alone decides what a loss depends on. `.grad`s may be there from earlier.
# - A loss may have no graph at all. A parameter may be frozen, or listed twice.
# - Graphs may be thousands of nodes deep, and nodes may be shared as above.
# - The ranks agree by one all-reduce, however many parameters there are. Running backward to find out is off
#   limits, `torch.autograd.grad` included.
#
# <details><summary>Hint 1: a walk without recursion</summary>
#
# A list of nodes to visit and a set of nodes seen. Python's own stack ends after a thousand calls.
#
# </details>
# <details><summary>Hint 2: who is who</summary>
#
# Compare tensors by identity: `id(node.variable)`. `==` compares their numbers, and so does `in` on a list.
#
# </details>
# <details><summary>Hint 3: any</summary>
#
# "Used by any rank" is a maximum of zeros and ones: `dist.all_reduce(x, op=dist.ReduceOp.MAX)`. A rank whose
# loss has no graph calls it as well.
#
# </details>


# %% solution="fill_unused"
def fill_unused(loss: torch.Tensor, parameters: list[nn.Parameter]) -> list[bool]:
    """Say which parameters any rank's loss depends on; give zeros to those that only others use."""
    ### BEGIN SOLUTION
    reached, seen, todo = set(), set(), [loss.grad_fn]
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            reached.add(id(node.variable))
        todo += [next_node for next_node, _ in node.next_functions]
    here = [id(parameter) in reached for parameter in parameters]
    anywhere = torch.tensor(here, dtype=torch.int32)
    dist.all_reduce(anywhere, op=dist.ReduceOp.MAX)
    for parameter, used, used_here in zip(parameters, anywhere.tolist(), here, strict=True):
        # only what another rank will send needs our zeros; a parameter nobody used keeps None
        if used and not used_here and parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
    return anywhere.bool().tolist()
    ### END SOLUTION


# %% grade="fill_unused"
grade("fill_unused")

# %% [markdown]
# In PyTorch this is `Reducer::prepare_for_backward`, called at the end of DDP's `forward`: it walks the whole
# graph in every iteration, which is why it has to be asked for.
#
# **Tied** parameters, two names for one tensor, make no trouble. They are one parameter, with one node in the
# graph. Its gradient is complete when the shares of both places are in it.
#
# **Predict.** Two layers of 2 × 2 `float32` numbers share their weight. How many bytes does DDP send?


# %%
def tied(rank):
    model = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False))
    model[1].weight = model[0].weight
    ddp = torch.nn.parallel.DistributedDataParallel(model)
    with watch_collectives() as seen:
        ddp(torch.ones(1, 2)).sum().backward()
    return seen.bytes("all_reduce")


predict(..., lambda: on_ranks(2, tied)[0])

# %% [markdown]
# ### What DataParallel did
#
# The older `nn.DataParallel` has one process and one thread for each GPU. What its `forward` calls:

# %%
calls = re.findall(r"self\.(\w+)\(", inspect.getsource(nn.DataParallel.forward))
print(*[call for call in calls if call != "module"], sep=" -> ")
print("keys:", list(nn.DataParallel(nn.Linear(1, 1)).state_dict()))

# %% [markdown]
# In **every** forward the batch is scattered from the first GPU, the whole model is copied to all others, and
# the outputs are gathered on the first one again; in backward the gradients are added up there. DDP copies the
# model once and sends gradients only. The threads also share one Python interpreter. Without GPUs,
# `DataParallel` only calls the model; the `module.` in the keys stays.
#
# **Predict.** Four GPUs, a model of 100 MB. How many MB of parameters leave the first GPU in one step of
# `DataParallel`?

# %%
predict(..., lambda: (4 - 1) * 100)

# %% [markdown]
# With DDP it is none: replicas that begin alike and take the same steps need not be copied again.
#
# ### What changes on GPUs
#
# The agreements of this chapter are the same: who calls what, in which order, buffers and unused parameters
# included. Other things differ.
#
# - The backend is `nccl` instead of `gloo`, one process for each GPU, with `torch.cuda.set_device(local_rank)`
#   before anything else.
# - A collective is put into a queue of the GPU. `work.wait()` makes the current *stream* wait, not the Python
#   program, which goes on and queues more.
# - Whoever waits in vain is ended by a timeout:

# %%
print("gloo waits for", torch.distributed.constants.default_pg_timeout)
