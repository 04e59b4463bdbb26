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
#   what, when, and in which order. Break one, and the ranks wait for each other in vain, or drift
#   apart in silence. In this chapter you build the agreements yourself, between real processes.
# preload: [torch._dynamo, torch.distributed.optim]

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
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from functools import partial
from pathlib import Path

import torch
import torch._dynamo  # the first DDP imports it. Here, that happens once and not in every fork
import torch.distributed as dist
import torch.distributed.optim
from torch import nn

from grader import RanksHung, grade, hint, on_ranks, predict, solution, watch_collectives, written

# %% [markdown] sitting="ranks"
# question: What do ranks have to agree on before they begin?
# reached: >-
#   Who they are, as coordinates in a mesh, and one start: the parameters and buffers of rank 0,
#   if all have the same model.

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
# a small server, whose address `torchrun` puts into the environment (`MASTER_ADDR`, `MASTER_PORT`).
# The store only brings them together. What they say to each other later takes another road, here that
# of **gloo**, over sockets.

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
# in this chapter do not raise. They wait: with gloo for half an hour, here until `on_ranks` ends them.
#
# Look: ddp/ring#panel=ring&n=3&size=3&step=4 | An all-reduce among three ranks, one way to do it:
# at the end each has the sum. Go back to see how.

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
# minutes: 30
# difficulty: 2
# points: 5
# prerequisites: []
# teaches: >-
#   how rank numbers become coordinates, what a subgroup is, and that making one concerns every rank.
# leaves out: groups that are made by their members alone, and splitting of NCCL communicators.
# budget: {processes: 400}
# off limits: [torch.distributed.init_device_mesh, torch.distributed.device_mesh.init_device_mesh, torch.distributed.device_mesh.DeviceMesh]
# forbids: "PyTorch's own mesh"

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
# Draw: show_cells({f"({row}, …)": [str(4 * row + column) if row == 1 or column == 3 else "" for
# column in range(4)] for row in range(3)}, [f"(…, {column})" for column in range(4)]) | The mesh
# `(3, 4)` with rank 7 and those that it has a group with: its column along dimension 0, its row
# along dimension 1.
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
# not belong to. For a group of others `new_group` returns a placeholder. A group's name is a count that
# each rank keeps for itself (`_process_group_name` in `torch/distributed/distributed_c10d.py`). If each
# made only its own, two groups would have one name, and ranks would look for the wrong ones.
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
# A dimension of size 1 has a group too. The rank is alone in it. `new_group` sorts the ranks of a group:
# a rank's number in it is its coordinate.
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
# short: true
# prerequisites: []
# teaches: >-
#   that replicas stay equal only if they begin equal, buffers included; that a collective moves
#   memory and asks no questions; and how ranks agree before they exchange anything.
# leaves out: sending many small tensors as one.
# off limits: [torch.nn.parallel.DistributedDataParallel, torch.distributed.utils._sync_module_states, torch.distributed._broadcast_coalesced, torch.distributed.broadcast_object_list]
# forbids: "DDP, and the functions by which it begins"

# %% [markdown]
# Each rank has a copy of the model, a **replica**. If all replicas start from the same numbers and take
# the same steps, they stay the same. DDP does not look at parameters again: equal at the start is all
# there is. It sends rank 0's, once, when it is made:


# %%
def first_weights(rank):
    torch.manual_seed(rank)
    model = nn.Linear(2, 1, bias=False)
    before = model.weight.tolist()
    wrapped = torch.nn.parallel.DistributedDataParallel(model)
    left_alone = before == model.weight.tolist()
    with torch.no_grad():
        model.weight.fill_(rank)  # from here on the ranks differ
    wrapped(torch.ones(1, 2)).sum().backward()
    return left_alone, model.weight.tolist()


left_alone, later = zip(*on_ranks(3, first_weights), strict=True)
print("DDP leaves the weights alone:", *left_alone)
print("weights that were made different, one step later:", *later)

# %% [markdown]
# `dist.broadcast(x, source)` sends memory. With gloo it asks for no shape and no stride. Two ranks
# have tensors of the same shape, one of them stored by columns:
#
# Draw: show_storage(sent=torch.arange(1, 7).view(2, 3), received=torch.arange(1, 7).view(3,
# 2).t()) | Two tensors of one shape over the same six cells, which is what arrives. The second
# reads them by columns.


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
#   buffers, **every** rank raises `ValueError`, and nothing has changed on any. To find out, a rank may
#   send up to 16,000 bytes more; `dist.all_gather_object` takes any small object.
# - If the names are the same and come in another order on some rank, you may refuse that in the same way,
#   or send each tensor to the one of its name.
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

# %% [markdown] sitting="averaging"
# question: How do all ranks get the same mean?
# reached: >-
#   By an all-reduce and a division that counts samples. In a ring each rank sends and receives
#   about twice its tensor, however many ranks there are.

# %% [markdown] exercise="average_gradients"
# title: Average, and count the samples
# minutes: 25
# difficulty: 2
# points: 6
# short: true
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
# "So DDP gives the gradient of the whole batch." It does if each loss is a mean, if all ranks have the
# same number of samples, and if no layer mixes samples, as BatchNorm does. Without the second, the mean of
# means is not the mean.
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
# The rank with one sample gives it the weight of three. Where samples are whole rows, `DistributedSampler`
# repeats some to make ranks even (chapter 6). In language models a "sample" is a token, and every rank has
# another number of them. Then gradients are weighted by what they stand for: with $n_r$ samples and the
# gradient $g_r$ of the mean on rank $r$,
#
# Draw: show_bars({f"{value:g}, on rank {rank}": 1 / 2 / len(part) for rank, part in
# enumerate((samples[:3], samples[3:])) for (value,) in part.tolist()}) | How much each sample
# counts: half goes to each rank, whoever shares it there.
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
#   that of the same gradient on another rank. Its shape is any as well, `()` too.
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
# Draw: show_cells({f"rank {rank}": [f"{found[call]:g}" for call in ("ddp(x)", "ddp.module(x)")]
# for rank, found in enumerate(on_ranks(2, go_round))}, ["ddp(x)", "ddp.module(x)"]) | The
# gradients once more. One colour is one value: through DDP both ranks have the same, past it each
# has its own.
#
# And `forward` is a collective too, where a model has buffers: rank 0's are sent to all first. So "evaluate
# on rank 0 only" hangs in the forward pass, under `no_grad` and in `eval()` as well:

# %%


def evaluate_on_rank_0(rank):
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    ddp = torch.nn.parallel.DistributedDataParallel(model).eval()
    if rank == 0:
        with torch.no_grad():
            ddp(torch.ones(2, 2))


try:
    on_ranks(2, evaluate_on_rank_0, seconds=4)
except Exception as error:
    print(error)

# %% [markdown]
# Use `ddp.module(x)` there. It is the right call where nothing is to be synchronised. (A second forward
# under `no_grad` would send nothing: buffers go out only if the forward before it was to be averaged, see
# `require_forward_param_sync` in `torch/nn/parallel/distributed.py`.)

# %% [markdown] exercise="ring_all_reduce"
# title: Add up in a ring
# minutes: 45
# difficulty: 4
# points: 7
# short: true
# prerequisites: []
# teaches: >-
#   how an all-reduce is made of sends and receives, why its cost per rank hardly depends on the number
#   of ranks, and why all ranks get the same bits.
# leaves out: trees, and two rings at once.
# off limits: [torch.distributed.all_reduce, torch.distributed.all_gather, torch.distributed.broadcast, torch.distributed.reduce_scatter, torch.distributed.all_reduce_coalesced, torch.distributed.all_gather_into_tensor, torch.distributed.reduce_scatter_tensor, torch.distributed.all_gather_single, torch.distributed.reduce_scatter_single, torch.distributed.all_to_all, torch.distributed.reduce, torch.distributed.gather, torch.distributed.scatter, torch.distributed.all_to_all_single, torch.distributed.all_gather_object, torch.distributed.gather_object, torch.distributed.broadcast_object_list, torch.distributed.scatter_object_list, torch.distributed.ProcessGroup.allreduce, torch.distributed.ProcessGroup.allgather, torch.distributed.ProcessGroup.broadcast, torch.distributed.ProcessGroup.reduce_scatter]
# forbids: "collectives, whatever they are called"

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
# Look: ddp/ring#panel=ring&n=3&size=6&step=2 | The same with numbers: three ranks after two steps,
# where each has one piece that is everybody's sum. Go on.
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
# - Each rank sends to rank `(rank + 1) % n` and to no other, at most $2(n-1)$ times. It calls no collective,
#   of whatever name: nothing but sends and receives.
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

# %% [markdown] sitting="overlap"
# question: How can communication cost no time?
# reached: >-
#   Buckets leave while backward still computes, in an order fixed before. And micro-batches need
#   to talk once, at the last of them.

# %% [markdown] exercise="Buckets"
# title: Send gradients while others are being computed
# minutes: 60
# difficulty: 5
# points: 8
# short: true
# prerequisites: [average_gradients]
# teaches: >-
#   why DDP has buckets, how hooks let it communicate during `backward`, and why the order of buckets is
#   fixed before anything is sent.
# leaves out: gradients that live in the bucket itself; plans that are remade after the first iteration.
# off limits: [torch.nn.parallel.DistributedDataParallel, torch.nn.parallel.distributed.DistributedDataParallel, torch.distributed.Reducer]
# forbids: "DDP and its reducer"

# %% [markdown]
# Averaging after `backward` is right, and slow: the network idles while gradients are computed, then the
# processor idles while they are sent. But the last layer's gradients are there long before the first
# layer's. They can travel while the rest is computed.
#
# Look: ddp/network#panel=overlap&model=equal&cap=4&bandwidth=2&latency=0.5&overlap=no | All-reduces
# that begin when backward has ended. Take the tick away, and most of them hide behind it.
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
# Look: ddp/buckets#panel=overlap&model=small&cap=each&bandwidth=2&latency=2 | Twelve small layers,
# with a bucket for each gradient: every message pays its fixed cost. Choose larger buckets, and
# then too large ones.
#
# In the first iteration there is one bucket, and nothing overlaps. DDP looks in which order gradients
# come, and makes its plan from that. From the second on, a bucket goes out as soon as its last gradient is
# there. (A bucket of DDP's closes when it has *reached* its limit, so 80,000 bytes are in buckets for
# 73,400. And with `find_unused_parameters=True`, of which more below, the plan is made at the start and
# stays: `Reducer::should_rebuild_buckets` in `torch/csrc/distributed/c10d/reducer.hpp`.) Two tools make
# that possible. `parameter.register_post_accumulate_grad_hook(hook)` calls `hook(parameter)` when `.grad`
# is complete. And a collective with `async_op=True` returns at once, with something to wait for:

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
#
# Draw: show_cells({"rank 0": ["w1", "w2"], "rank 1": ["w2", "w1"]}, ["first call", "second
# call"]) | What stands below each other is added up, whatever its colour.

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
# - Gradients have any layout, which may differ from rank to rank. Before each `backward` every `.grad`
#   is `None`.
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

# %% [markdown]
# ### Buckets, compiled
#
# A compiled model has one backward graph, whose gradients come out at its end. No bucket could leave before. So
# PyTorch cuts a compiled DDP model into a graph for each bucket. It is said that Dynamo breaks the graph there.
#
# Draw: show_spans({"whole: backward": [("eight layers", 0, 8)], "whole: network": [("bucket 0", 8, 11), ("bucket 1",
# 11, 14)], "cut: backward": [("four layers", 0, 4), ("four layers", 4, 8)], "cut: network": [("bucket 0", 4, 7),
# ("bucket 1", 8, 11)]}, "units") | Why to cut: a layer's backward takes one unit here, a bucket's message three.
#
# **Predict.** A model has eight layers of 256 KiB, and a bucket holds four of them. How many graphs does Dynamo
# capture, and how many does the backend get? Write a pair.


# %%
import logging

from torch._dynamo.utils import counters
from torch.utils._python_dispatch import _disable_current_modes

# It warns of a profiler.
logging.getLogger("torch._dynamo").setLevel(logging.ERROR)


class EightLayers(nn.Module):
    def __init__(self):
        super().__init__()
        layers = [nn.Linear(256, 256, bias=False) for _ in range(8)]
        self.body = nn.Sequential(*layers)

    def forward(self, x):
        return self.body(x)


def graphs_of_ddp(rank):
    got = []

    def backend(graph_module, example_inputs):
        got.append(graph_module)
        return graph_module

    ddp = nn.parallel.DistributedDataParallel(EightLayers(), bucket_cap_mb=1)
    counters.clear()
    with _disable_current_modes():  # under those of `on_ranks` Dynamo rests
        torch.compile(ddp, backend=backend)(torch.ones(1, 256)).sum().backward()
    return counters["stats"]["unique_graphs"], len(got)


predict(..., lambda: on_ranks(1, graphs_of_ddp)[0])

# %% [markdown]
# Dynamo captures one graph. A step between it and the backend (`DDPOptimizer` in
# `torch/_dynamo/backends/distributed.py`) splits that at the buckets' borders. Its authors call the cuts graph
# breaks, too. But nothing goes back to Python's bytecode between the pieces.

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
# Draw: show_cells({" and ".join(name for name, inside in (("forward", forward), ("backward",
# backward)) if inside) or "nothing": [forward, backward, bool(sent)] for (forward, backward),
# (sent, _) in results[0].items()}, ["forward inside", "backward inside", "is sent"]) | The four
# ways again. Sent is where the forward is outside.
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
#   together. Never be more than one ahead: take the next only when you are about to run the one before it.
#   Nor do their graphs: `backward` has run for each before the next goes forward.
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

# %% [markdown] sitting="nothing-to-send"
# question: What if a rank has nothing to send?
# reached: >-
#   It takes part all the same, with zeros or with a stand-in step: a collective that one rank
#   leaves out is waited for by all the others.

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
# off limits: [torch.nn.parallel.DistributedDataParallel, torch.Tensor.backward, torch.autograd.backward, torch.autograd._engine_run_backward, torch.autograd.graph._engine_run_backward, torch.autograd.Variable._execution_engine.run_backward, torch._C._ImperativeEngine]
# forbids: "DDP, and running backward"

# %% [markdown]
# Each bucket waits for all its gradients. If a model takes one of two branches, some never come. Here rank 0
# takes branch `a` and rank 1 takes branch `b`; `c` is used by nobody.
#
# Look: ddp/buckets#panel=overlap&model=equal&cap=8&bandwidth=2&latency=0.5 |
# A bucket goes out when the last of its gradients is there. If one never comes, neither does the
# message.


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
left_alone, given_zero, rolling = (nn.Parameter(torch.tensor(1.0)) for _ in range(3))
given_zero.grad = torch.tensor(0.0)
torch.optim.SGD([left_alone, given_zero], lr=0.1, weight_decay=0.5).step()
print(f"None {left_alone.item():.2f}, zero {given_zero.item():.2f}")

optimizer = torch.optim.SGD([rolling], lr=0.1, momentum=0.9)
for gradient in (1.0, 0.0):
    rolling.grad = torch.tensor(gradient)
    optimizer.step()
    print(f"momentum, after a gradient of {gradient:.0f}: {rolling.item():.2f}")

# %% [markdown]
# Weight decay moves whatever has a gradient. So does momentum that is left from earlier steps.
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
# Look: autograd/graph#code=a = torch.ones(2, requires_grad=True);b = torch.ones(2, requires_grad=True);x = torch.ones(2);y = a * x;loss = y.sum() |
# The walk from the loss comes to `a`. No arrow leads to `b`. Write `a * b`, and it has one.
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
# A list of nodes to visit and a set of nodes seen. Python's own stack ends after `sys.getrecursionlimit()`
# calls.
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
# Look: autograd/graph#code=w = torch.ones(2, requires_grad=True);x = torch.ones(2);h = x * w;y =
# h * w;y.sum().backward()&line=4 | Used twice, and both roads end in one `AccumulateGrad`: one
# gradient, of two shares.
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
# The older `nn.DataParallel` has one process, and one thread for each GPU
# (`torch/nn/parallel/parallel_apply.py`). What its `forward` calls:

# %%
calls = re.findall(r"self\.(\w+)\(", inspect.getsource(nn.DataParallel.forward))
print(*[call for call in calls if call != "module"], sep=" -> ")
print("keys:", list(nn.DataParallel(nn.Linear(1, 1)).state_dict()))

# %% [markdown]
# So it is in **every** forward. From the documentation (the page on `torch.nn.DataParallel`), not from a
# run here: the batch is scattered over the GPUs, the model is copied from the first GPU to all others, the
# outputs are gathered on the first; in backward the replicas' gradients are added up in the original. So the
# first GPU has all outputs and computes the loss alone: it is full while the others have room. (A remedy of
# those days was to put the loss into the module.) DDP copies the model once, then sends gradients (and
# buffers, if there are any). The threads also share one Python interpreter. Without GPUs, `DataParallel` only
# calls the model; the `module.` in the keys stays.
#
# **Predict.** Four GPUs, a model of 100 MB. How many MB do the copies have that `DataParallel` makes in one
# step?

# %%
predict(..., lambda: (4 - 1) * 100)

# %% [markdown]
# With DDP there are none: replicas that begin alike and take the same steps need not be copied again.
#
# ### What changes on GPUs
#
# The agreements of this chapter are the same: who calls what, in which order, buffers and unused parameters
# included. Other things differ. What is said of GPUs here was not run: it is from the documentation's pages
# on `torch.distributed` and on `DistributedDataParallel`.
#
# Look: ddp/network#panel=overlap&model=equal&cap=4&bandwidth=2&latency=0.5 |
# Six layers, six messages. Turn the network faster and slower, and see how much of them backward
# hides.
#
# - The backend is `nccl` instead of `gloo`, one process for each GPU, with
#   `torch.cuda.set_device(local_rank)` first.
# - A collective is put into a queue of the GPU, a *stream*. `work.wait()` makes the current stream wait, not
#   the Python program, which goes on and queues more.
# - With `nccl` a timeout ends the process that waited in vain. With `gloo` the call raises:

# %%


def in_vain(rank):
    impatient = dist.new_group(timeout=timedelta(seconds=2))  # not too few to meet
    if rank == 1:
        try:
            dist.all_reduce(torch.ones(1), group=impatient)
        except RuntimeError as error:
            return re.search("Timed out waiting [0-9]+ms", str(error))[0]
    return "did not call"


print(on_ranks(2, in_vain))
print("usual, gloo:", dist.constants.default_pg_timeout)
print(re.search("Default value is .*?backends", dist.init_process_group.__doc__)[0])

# %% [markdown]
# ## When ranks differ
#
# So far all ranks did the same at the same time. Data do not always come out even, messages are too
# large, memory is too small. What follows keeps the ranks together all the same.

# %% [markdown] exercise="uneven_inputs"
# title: Train on uneven inputs
# minutes: 35
# difficulty: 3
# points: 6
# prerequisites: []
# teaches: >-
#   what a rank that has run out of data must still do: answer the collectives of the others, and make
#   their steps.
# leaves out: buffers, buckets and overlap.
# off limits: [torch.nn.parallel.DistributedDataParallel, torch.distributed.algorithms.join.Join]

# %% [markdown]
# Rank 0 has two batches, rank 1 has five. Each rank all-reduces once per batch. What happens in the third
# round?


# %%
def one_message_per_batch(rank):
    for _ in range([2, 5][rank]):
        dist.all_reduce(torch.ones(1))


try:
    on_ranks(2, one_message_per_batch, seconds=4)
except RanksHung as hung:
    print(hung)

# %% [markdown]
# A collective needs everyone. DDP has a context manager for this: inside `join()` a rank that has run out
# **shadows** the collectives of the others. It contributes zeros until nobody has data left. By default
# the sum is still divided by the number of all ranks:
#
# Draw: show_cells({f"rank {rank}": ["gradient" if turn < batches else "zeros" for turn in
# range(5)] for rank, batches in enumerate([2, 5])}, [f"round {turn}" for turn in range(1, 6)]) |
# What each rank brings, if one of them shadows: every round has two that call.


# %%
def gradients_in_join(rank, divide_by_all):
    layer = nn.Linear(1, 1, bias=False)
    model = nn.parallel.DistributedDataParallel(layer)
    seen = []
    with model.join(divide_by_initial_world_size=divide_by_all):
        for _ in range([1, 3][rank]):
            model.zero_grad()
            model(torch.ones(1, 1)).sum().backward()
            seen.append(layer.weight.grad.item())
    return seen


for divide_by_all in (True, False):
    seen = on_ranks(2, lambda rank, by=divide_by_all: gradients_in_join(rank, by))[1]
    print(f"divide_by_initial_world_size={divide_by_all}: rank 1 sees {seen}")

# %% [markdown]
# Every single gradient is 1.0. With the default, the last two count half: the rank that ran out is counted
# as if it had said zero.
#
# **Predict.** Three ranks have 1, 3 and 4 batches. In how many rounds does rank 0 only shadow the others?


# %%
def rounds_in_the_shadow():
    batches = [1, 3, 4]
    return max(batches) - batches[0]


predict(..., rounds_in_the_shadow)

# %% [markdown]
# **Write `uneven_inputs(model, optimizer, batches, loss)`.** It is called on every rank. All ranks have the
# same parameters at first, and their own `batches`: an iterable, perhaps a generator, of unknown length,
# perhaps empty.
#
# - In each **round** every rank that still has a batch computes `loss(model, batch)`, a scalar. The gradient
#   of each parameter is the mean over **those ranks**. Then all ranks, also those without a batch, make the
#   same step of `optimizer`.
# - When no rank has a batch left, return the number of rounds in which there was one.
# - Gradients of before, and of the round before, do not count.
# - Read one batch at a time: the next one when the step of the last is done.
# - Every batch uses every parameter that requires grad. Some may not require it. All are contiguous.
#
# The parameters are the same on all ranks after every round. So are the optimizer's states, as long as all
# ranks make all steps.
#
# <details><summary>Hint 1: how do the others know?</summary>
#
# A rank cannot see who is left. Let each round begin with an all-reduce of a flag: 1 if you have a batch, 0
# if not. The sum is what you divide by, and when it is zero, all stop together.
#
# </details>
# <details><summary>Hint 2: next</summary>
#
# `next(iterator, None)` returns `None` when there is nothing left, and goes on doing so.
#
# </details>
# <details><summary>Hint 3: whoever has none</summary>
#
# Its gradients are zeros, of the shape of the parameters. It takes part in the same all-reduces and steps
# with the mean that comes out.
#
# </details>


# %% solution="uneven_inputs"
def uneven_inputs(
    model: nn.Module, optimizer: torch.optim.Optimizer, batches: Iterable, loss: Callable
) -> int:
    """Train until no rank has a batch; return the number of rounds.

    loss: (model, batch) to a scalar
    """
    ### BEGIN SOLUTION
    parameters = [p for p in model.parameters() if p.requires_grad]
    iterator = iter(batches)
    rounds = 0
    while True:
        batch = next(iterator, None)
        active = torch.tensor(0 if batch is None else 1)
        dist.all_reduce(active)
        if active == 0:  # all ranks see the same sum, and stop in the same round
            return rounds
        for parameter in parameters:
            parameter.grad = torch.zeros_like(parameter)  # all that a rank without data says
        if batch is not None:
            loss(model, batch).backward()
        for parameter in parameters:
            dist.all_reduce(parameter.grad)
            parameter.grad /= active
        optimizer.step()
        rounds += 1
    ### END SOLUTION


# %% grade="uneven_inputs"
grade("uneven_inputs")

# %% [markdown] sitting="the-wire"
# question: Which numbers really have to cross the wire?
# reached: >-
#   Gradients can go in a quarter of the bytes, if what rounding left over goes along next time.
#   Statistics of a batch have to cross, and their derivative with them.

# %% [markdown] exercise="compress"
# title: Send a quarter, lose nothing
# minutes: 45
# difficulty: 4
# points: 6
# prerequisites: []
# teaches: >-
#   communication hooks of DDP, why compressed numbers are gathered and not summed, and error
#   feedback: what rounding left over today goes along tomorrow.
# leaves out: sparse and low-rank compression; gradients that are not finite.
# off limits: []

# %% [markdown]
# DDP lets you replace its all-reduce. A **communication hook** gets a bucket of gradients and returns a
# `Future` of what shall be in the bucket instead: something that will have a value, and hands it to
# `function` then if you call `.then(function)`. Here is a hook that changes nothing and takes notes:


# %%
def mean_hook(notes: list, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    notes.append([tuple(parameter.shape) for parameter in bucket.parameters()])
    mean = bucket.buffer() / dist.get_world_size()  # all gradients of the bucket, flat
    return dist.all_reduce(mean, async_op=True).get_future().then(lambda done: done.value()[0])


def three_backwards(rank):
    model = nn.Sequential(nn.Linear(8, 32), nn.Linear(32, 8))
    ddp = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.001)
    notes = []
    ddp.register_comm_hook(notes, mean_hook)
    for step in range(2):
        notes.append(f"backward {step}:")
        ddp(torch.ones(1, 8)).sum().backward()
    return notes


print(*on_ranks(2, three_backwards)[0], sep="\n")

# %% [markdown]
# Call the second parameter `bucket`: `register_comm_hook` looks for that name, and raises `KeyError`
# without it (`_check_comm_hook` in `torch/nn/parallel/distributed.py`). And look at the buckets. In the
# first backward there is a single one. DDP watches in which order gradients come, and
# **builds the buckets again** after that. Whatever your hook wants to remember from step to step must
# not be kept by the bucket's number.
#
# Now send less. Eight bits instead of 32: divide by a **scale**, so that the largest number becomes
# 127, and round to whole numbers. The scale goes along.
#
# Look: formats/round#format=int8&fp32=3ec3126f | Where the scale is the largest number divided by
# 127, a gradient of 0.003 of it is 0.381 of a step: what is sent is 0.
#
# Two things go wrong at once. Each rank has its own scale, so the whole numbers cannot be added up:
# they must be gathered, and multiplied by their scales first. And small gradients vanish. Beside a
# gradient of 1.0, everything below half of 1/127 is rounded to zero, in every step.
#
# **Error feedback** mends the second. Each rank keeps what rounding took away, and adds it to the next
# gradient before it rounds. Nothing is lost then. It is late.
#
# **Predict.** The largest gradient is 1.0 in every step, another is 0.003. With error feedback, in which
# step does something of it arrive for the first time? Count from 1.


# %%
def first_arrival():
    scale, left, step = 1.0 / 127, 0.0, 0
    while True:
        step += 1
        value = 0.003 + left
        sent = round(value / scale)
        left = value - sent * scale
        if sent:
            return step


predict(..., first_arrival)

# %% [markdown]
# **Write the hook `compress(state, bucket)`.** `state` is a dict, empty at first, which is yours: the
# same dict comes in every call. Gradients are float32.
#
# 1. The **value** is the gradient plus what is left over from the last time (nothing, the first time).
# 2. The **scale** is the largest absolute value of the whole bucket, divided by 127.
# 3. What is **sent** is the value divided by the scale, rounded to the nearest whole number, as `int8`.
#    If all values are zero, zeros are sent.
# 4. What is **left** over is the value minus sent times scale. Keep it, so that nothing is lost when the
#    buckets are built again.
#
# Return at once: a `Future`, which becomes the mean over ranks of sent times scale, of the shape of
# `bucket.buffer()`. All ranks get the same. For each bucket a rank says no more than one byte per
# element, and 16 bytes on top. You may overwrite the bucket's buffer.
#
# <details><summary>Hint 1: keep by parameter</summary>
#
# `bucket.parameters()` and `bucket.gradients()` are in the same order; a gradient there is a view of the
# buffer. A parameter can be a key of a dict.
#
# </details>
# <details><summary>Hint 2: one message</summary>
#
# `dist.all_gather(inbox, message, async_op=True).get_future().then(function)`. Four bytes of scale in
# front, then the numbers: `torch.cat` of two `view(torch.uint8)`. The receiver takes the slices and
# views them back.
#
# </details>
# <details><summary>Hint 3: where to wait</summary>
#
# Nowhere. `work.wait()` or `future.wait()` in the hook stops backward. What is to be done with the
# numbers that arrive belongs into the function that you hand to `then`.
#
# </details>


# %% solution="compress"
def compress(state: dict, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """Return a Future of the bucket's mean over ranks, sent as int8 with error feedback."""
    ### BEGIN SOLUTION
    value = bucket.buffer()
    own = list(zip(bucket.parameters(), bucket.gradients(), strict=True))
    for parameter, gradient in own:  # views of `value`
        if parameter in state:
            gradient += state[parameter]
    scale = value.abs().max() / 127
    sent = torch.zeros_like(value, dtype=torch.int8)
    if scale > 0:
        sent = torch.round(value / scale).to(torch.int8)
    value -= sent * scale
    for parameter, gradient in own:
        state[parameter] = gradient.clone()  # the buffer will be overwritten

    message = torch.cat([scale.reshape(1).view(torch.uint8), sent.view(torch.uint8)])
    inbox = [torch.empty_like(message) for _ in range(dist.get_world_size())]
    work = dist.all_gather(inbox, message, async_op=True)

    def mean(done):
        parts = [one[4:].view(torch.int8) * one[:4].view(torch.float32) for one in inbox]
        return torch.stack(parts).mean(0)

    return work.get_future().then(mean)
    ### END SOLUTION


# %% grade="compress"
grade("compress")

# %% [markdown] exercise="SyncBatchNorm"
# title: Normalise over all ranks
# minutes: 45
# difficulty: 4
# points: 8
# prerequisites: []
# teaches: >-
#   statistics over the batches of all ranks, of unequal size; and the derivative of a sum over ranks,
#   which autograd does not know.
# leaves out: momentum of `None`, half precision, conversion of a model's layers.
# off limits: [torch.nn.SyncBatchNorm, torch.distributed.nn]

# %% [markdown]
# A BatchNorm in a DDP model normalises with the statistics of its own rank. With eight rows per rank that
# is little to compute a variance from. `nn.SyncBatchNorm` takes the rows of all ranks together. On CPU it
# refuses to train, so here is a good reason to write one:


# %%
def refused(rank):
    try:
        return nn.SyncBatchNorm(2)(torch.ones(3, 2)).tolist()
    except ValueError as error:
        return str(error).partition(" or ")[0]


print(on_ranks(2, refused))

# %% [markdown]
# The forward looks easy: all-reduce the sums. Then comes backward. Each rank's output depends on the
# rows of **all** ranks, through the mean and the variance. So the gradient of a row must hear from all
# ranks, too. What does autograd make of an all-reduce?
#
# Draw: show_cells({f"output {row}": [bool(value) for value in line] for row, line in
# enumerate(torch.autograd.functional.jacobian(lambda x: torch.cat([part - part.mean() for part in
# x.split([3, 2])]), torch.arange(5.0)).tolist())}, [f"row {row}" for row in range(5)], bare=True)
# | Three rows on rank 0, two on rank 1, and each rank takes off its own mean: an output depends
# on the rows of its rank. With one mean for all, every field is filled.


# %%
def through_all_reduce(rank):
    x = torch.ones(1, requires_grad=True)
    total = x * 1
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dist.all_reduce(total)
        loss = total * (rank + 1)
        loss.backward()
    return total.item(), x.grad.item(), str(caught[0].message).split(" to the Autograd")[0]


ranks = on_ranks(2, through_all_reduce)
for rank, (total, grad, _) in enumerate(ranks):
    print(f"rank {rank}: total {total}, gradient {grad}")
print("Warning:", ranks[0][2])

# %% [markdown]
# The total is right: 2. The losses are `total` and `2 * total`. If `x` on rank 0 grows by one, both totals
# do, and the losses together grow by 3. That is the gradient of either `x`. Autograd gave 1 and 2: it went
# past the all-reduce as if it were not there.
#
# So the derivative has to be written down. **The backward of a sum over ranks is a sum over ranks**, of
# the gradients.
#
# **Predict.** Rank 0 has the rows 1 and 3, rank 1 has the row 8. What is the mean of the ranks' means, and
# what is the mean of all rows? Write a pair.


# %%
def two_means():
    first, second = torch.tensor([1.0, 3.0]), torch.tensor([8.0])
    of_means = (first.mean() + second.mean()) / 2
    return of_means.item(), torch.cat([first, second]).mean().item()


predict(..., two_means)

# %% [markdown]
# **Write `SyncBatchNorm(features, eps=1e-5, momentum=0.1)`**, an `nn.Module` with parameters `weight` (ones)
# and `bias` (zeros) and buffers `running_mean` (zeros) and `running_var` (ones), each `(features,)`.
#
# - **Input**: `(rows, features)` or `(rows, features, ...)`, floating point, any layout. Ranks may have
#   different numbers of rows, also none. All of them together have at least two values per feature.
# - **In training** each feature is normalised with the mean and the (biased) variance of all values of all
#   ranks, then multiplied by `weight` and moved by `bias`. The running statistics take a share of
#   `momentum` of the new mean and of the new **unbiased** variance, of all ranks.
# - **Backward**: the gradient of the input is that of the sum of all ranks' losses. Gradients of `weight`
#   and `bias` are those of this rank's own rows: DDP averages them, as it does all parameters'.
# - **In evaluation** the running statistics are used, nothing is changed, and nobody talks.
# - What a rank says in a forward, and again in a backward, must not grow with the number of rows: at most
#   six numbers per feature and a few more.
# - Values far from zero must not spoil the variance. With a mean of 1000 and a standard deviation of 1 in
#   float32, the mean of the squares minus the square of the mean has lost most of its digits.
#
# <details><summary>Hint 1: a sum that autograd knows</summary>
#
# A `torch.autograd.Function` whose forward all-reduces a copy, and whose backward all-reduces a copy of
# the gradient. Write the rest with it in plain tensor operations, and backward follows.
#
# </details>
# <details><summary>Hint 2: which dimensions</summary>
#
# All but dimension 1. For broadcasting, give the statistics the shape `(1, features, 1, ...)`. The count of
# values differs by rank: it is summed, too.
#
# </details>
# <details><summary>Hint 3: two passes</summary>
#
# First the mean of all. Then the sum of `(x - mean) ** 2`, which are small numbers. A rank without rows
# contributes zeros, and calls every collective like the others.
#
# </details>


# %% solution="SyncBatchNorm"
class SumOverRanks(torch.autograd.Function):
    """An all-reduce whose derivative is known: the same again, of the gradients."""

    @staticmethod
    def forward(ctx, x):
        ### BEGIN SOLUTION
        total = x.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx, grad):
        total = grad.clone()  # a gradient may be expanded, or used elsewhere
        dist.all_reduce(total)
        return total

    ### END SOLUTION


class SyncBatchNorm(nn.Module):
    """BatchNorm over the rows of all ranks."""

    def __init__(self, features, eps=1e-5, momentum=0.1):
        ### BEGIN SOLUTION
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))
        self.register_buffer("running_mean", torch.zeros(features))
        self.register_buffer("running_var", torch.ones(features))

    def forward(self, x):
        """x: (rows, features, ...); returns the same shape."""
        across = [dim for dim in range(x.dim()) if dim != 1]
        column = [-1 if dim == 1 else 1 for dim in range(x.dim())]
        mean, var = self.running_mean, self.running_var
        if self.training:
            own = x.new_tensor([x.numel() // x.shape[1]])
            *sums, count = SumOverRanks.apply(torch.cat([x.sum(across), own]))
            mean = torch.stack(sums) / count
            # a second pass: squares of small differences keep their digits
            squares = (x - mean.view(column)).square().sum(across)
            var = SumOverRanks.apply(squares) / count
            with torch.no_grad():
                self.running_mean.lerp_(mean, self.momentum)
                self.running_var.lerp_(var * count / (count - 1), self.momentum)
        normal = (x - mean.view(column)) / (var + self.eps).sqrt().view(column)
        return normal * self.weight.view(column) + self.bias.view(column)

    ### END SOLUTION


# %% grade="SyncBatchNorm"
grade("SyncBatchNorm")

# %% [markdown] sitting="sharding"
# question: Does every rank need a copy of everything?
# reached: >-
#   No. Each stage of ZeRO shards more, at a price in messages. The optimizer's state is the first
#   to go: one owner for each parameter.

# %% [markdown] exercise="zero_ledger"
# title: Keep ZeRO's books
# minutes: 20
# difficulty: 2
# points: 5
# prerequisites: []
# teaches: >-
#   what each stage of ZeRO shards and what it leaves whole, and what the sharding costs in messages.
# leaves out: activations, what is gathered for the moment in stage 3, fragmentation.
# off limits: []

# %% [markdown]
# How many bytes does a rank need? For training in mixed precision with Adam it keeps for each element of a
# parameter, as the ZeRO paper counts ([arXiv 1910.02054](https://arxiv.org/abs/1910.02054), section 3.1):
#
# | what | dtype | bytes |
# |---|---|---:|
# | the parameter | bfloat16 | 2 |
# | its gradient | bfloat16 | 2 |
# | a master copy, the mean, the mean square | three float32 | 12 |
#
# The third row is the **optimizer's state**. It is three quarters of all, so it is the first thing to
# divide among the ranks:
#
# - **stage 0** is DDP: everything is whole on every rank;
# - **stage 1** shards the optimizer's state;
# - **stage 2** shards the gradients, too;
# - **stage 3** shards the parameters, too.
#
# Look: ddp/zero#panel=zero&params=7B&ranks=8&optimizer=adam&precision=mixed&stage=1 | Seven billion
# parameters on eight ranks: what one rank keeps in each stage. Turn the number of ranks.
#
# Often told wrong: stage 2 does not divide the *computation* of gradients. Every rank computes all
# gradients of its own batch. Then a **reduce-scatter** leaves each rank with the mean of its shard only:


# %%
def reduce_scattered(rank):
    gradients = torch.arange(4.0) * (rank + 1)  # of four parameters, computed on this rank
    shard = torch.empty(2)
    dist.reduce_scatter_single(shard, gradients)
    return gradients.tolist(), (shard / 2).tolist()


for rank, (computed, kept) in enumerate(on_ranks(2, reduce_scattered)):
    print(f"rank {rank}: computed {computed}, keeps the mean of its part: {kept}")

# %% [markdown]
# And the messages? An all-reduce on a ring **is** a reduce-scatter followed by an all-gather, each of which
# sends `ranks - 1` shards from every rank. Stages 1 and 2 use the two halves apart: reduce-scatter the
# gradients, step the own shard, all-gather the new parameters. Stage 3 keeps only its shard, so the
# parameters have to be gathered before they are used: once in forward, once in backward.
#
# **Predict.** Four ranks, 1000 parameters. How many bytes does a rank keep in stage 0, and in stage 3?
# Write a pair.


# %%
def first_and_last_stage():
    return 1000 * (2 + 2 + 12), 1000 // 4 * (2 + 2 + 12)


predict(..., first_and_last_stage)

# %% [markdown]
# **Write `zero_ledger(sizes, ranks, stage)`.** `sizes` are the numbers of elements of a model's parameters.
# Return a dict of bytes, for **one** rank:
#
# - `"parameters"`, `"gradients"`, `"state"`: what it keeps of each between two steps. What is sharded is laid
#   end to end, all parameters together, padded to a multiple of `ranks`, and cut into equal shards. What is
#   not sharded is not padded.
# - `"sent"`: what it sends in one step, if every reduce-scatter and every all-gather sends `ranks - 1` shards
#   of that length, in bfloat16. Stage 0 makes an all-reduce of the gradients. Its ring pads, too.
#
# With one rank nothing is sent.
#
# <details><summary>Hint 1: a shard</summary>
#
# The number of elements of a shard is the total divided by `ranks`, rounded up.
#
# </details>
# <details><summary>Hint 2: which stage shards what</summary>
#
# State from stage 1 on, gradients from stage 2 on, parameters in stage 3.
#
# </details>
# <details><summary>Hint 3: messages</summary>
#
# Count how many times a reduce-scatter or an all-gather runs: twice in stages 0, 1 and 2. In stage 3 the
# parameters are gathered twice, and nothing has to be gathered after the step.
#
# </details>


# %% solution="zero_ledger"
def zero_ledger(sizes: list[int], ranks: int, stage: int) -> dict[str, int]:
    """Return the bytes that one rank keeps and sends: parameters, gradients, state, sent."""
    ### BEGIN SOLUTION
    total = sum(sizes)
    shard = -(-total // ranks)  # rounded up: one padding for all parameters together
    rounds = 3 if stage == 3 else 2
    return {
        "parameters": 2 * (shard if stage >= 3 else total),
        "gradients": 2 * (shard if stage >= 2 else total),
        "state": 12 * (shard if stage >= 1 else total),
        "sent": rounds * (ranks - 1) * shard * 2,
    }
    ### END SOLUTION


# %% grade="zero_ledger"
grade("zero_ledger")

# %% [markdown]
# Stages 1 and 2 send no more than DDP. Stage 3 sends half as much again.
#
# Look: ddp/sent#panel=zero&params=7B&ranks=64&optimizer=adam&precision=mixed&stage=3 | What a rank
# sends in a step, collective by collective. Choose a stage.

# %%
if written("zero_ledger"):
    for stage in range(4):
        print(stage, zero_ledger([7_000_000_000], 64, stage))

# %% [markdown]
# The library of that paper is DeepSpeed. A JSON file names the stage:
# `{"zero_optimization": {"stage": 2}, "bf16": {"enabled": true}}`. Which stage and which batch are fastest no
# ledger can know, for it does not know the network; DeepSpeed's *autotuner* tries them out on your machines. (By
# its documentation; not run here.)

# %% [markdown] exercise="ZeroOptimizer"
# title: Shard the optimizer
# minutes: 45
# difficulty: 4
# points: 5
# prerequisites: []
# teaches: >-
#   ZeRO-1: every rank keeps the optimizer state of its share of the parameters, steps those, and
#   gives the others the result.
# leaves out: parameter groups, checkpoints, reducing only the gradients of one's own share.
# off limits: [torch.distributed.optim.ZeroRedundancyOptimizer]

# %% [markdown]
# Adam keeps two numbers for every element of a parameter, a mean of the gradients and one of their
# squares, and a count of steps for each parameter. Under DDP all ranks have the same parameters and the
# same gradients. So all of them compute the same two numbers, and each keeps all of them. Eight ranks,
# eight copies.
#
# **ZeRO-1** ends that. Each parameter has one rank that owns it. The owner alone keeps the state and
# makes the step. Then it sends the parameter to the others. torch has this as
# `ZeroRedundancyOptimizer`. Here is what each of two ranks keeps, beside a plain Adam:


# %%
def state_bytes(rank):
    model = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 64), nn.Linear(64, 1))
    Sharded = torch.distributed.optim.ZeroRedundancyOptimizer
    sharded = Sharded(model.parameters(), torch.optim.Adam)
    plain = torch.optim.Adam(model.parameters())
    model(torch.ones(2, 64)).sum().backward()
    found = {}
    for name, optimizer in (("sharded", sharded.optim), ("plain", plain)):
        (sharded if name == "sharded" else plain).step()
        states = optimizer.state.values()
        found[name] = sum(tensor.nbytes for state in states for tensor in state.values())
    return found


for rank, found in enumerate(on_ranks(2, state_bytes)):
    print(f"rank {rank}: {found['sharded']} of {found['plain']} bytes")

# %% [markdown]
# Parameters and gradients are still whole on every rank. You may read that ZeRO-1 shards "optimizer
# states, such as weights and gradients". Weights and gradients are no optimizer states: stage 2 adds
# the gradients, stage 3 the parameters.
#
# Draw: show_bars({f"rank {rank}, {name}": found[name] for rank, found in enumerate(on_ranks(2,
# state_bytes)) for name in ("plain", "sharded")}, "bytes") | The same numbers to scale: what the
# two ranks keep together is one plain state.
#
# Who owns what should be **fair in bytes**, not in number. A model has few large parameters and many
# small ones.
#
# **Predict.** Six parameters have 100, 1, 100, 1, 100 and 1 elements. They go to two ranks in turn. For
# how many elements does each rank keep state? Write a list of two numbers.


# %%
def in_turn():
    sizes = [100, 1, 100, 1, 100, 1]
    return [sum(sizes[rank::2]) for rank in range(2)]


predict(..., in_turn)

# %% [markdown]
# One more thing can go wrong, and it goes wrong without a word. A collective sends bytes, and a tensor
# need not have its elements in a row. `base[:, :3]` has gaps. What does gloo do with them?


# %%
def gaps(rank):
    base = torch.full((2, 6), float(rank + 1))
    view = base[:, :3]
    dist.broadcast(view, src=0)
    return base.tolist()


print("rank 1 has:", *on_ranks(2, gaps)[1], sep="\n")

# %% [markdown]
# The first row arrived, also where nothing should. The second did not. Six numbers were sent: the first six
# in memory, from where the tensor begins. Nothing was raised. So send `contiguous()` copies, and copy back
# what came.
#
# **Write `ZeroOptimizer(params, make)`.**
#
# - `params` is an iterable of parameters, such as `model.parameters()`: the same on all ranks, in the
#   same order. Their gradients have been averaged already.
# - `make(tensors)` returns an ordinary torch optimizer for a list of tensors, such as
#   `lambda tensors: torch.optim.Adam(tensors, lr=0.1)`. It treats each element by itself.
# - `step()` changes the parameters of all ranks, in place, as one optimizer of all of them would. A
#   parameter whose `.grad` is `None` stays as it is.
# - `zero_grad()` sets the `.grad` of **all** parameters to `None`.
# - Over all ranks together, the state of each element is kept **once**. No rank keeps it for more
#   elements than its fair part, `total / world_size`, and those of the largest parameter on top. How you
#   divide the parameters is yours to choose, within that.
# - In one `step` a rank says no more than the bytes of all parameters. Gradients are not sent again.
#
# There may be more ranks than parameters. A torch optimizer refuses an empty list. Parameters may have
# any layout and any floating-point dtype.
#
# <details><summary>Hint 1: who owns what</summary>
#
# Every rank must come to the same answer without asking. Go through the parameters from the largest to
# the smallest, and give each to the rank that has the fewest elements so far.
#
# </details>
# <details><summary>Hint 2: the step</summary>
#
# Step your own. Then one broadcast for each parameter, from its owner, in the same order on all ranks.
#
# </details>
# <details><summary>Hint 3: layouts</summary>
#
# For a contiguous parameter `contiguous()` is the parameter itself, for any other a copy. Copying what
# came into the parameter is right in both cases. Do it under `no_grad`.
#
# </details>


# %% solution="ZeroOptimizer"
class ZeroOptimizer:
    """An optimizer whose state is divided among the ranks.

    ZeroOptimizer(params, make), step(), zero_grad()
    """

    def __init__(self, params, make):
        ### BEGIN SOLUTION
        self.params = list(params)  # a generator can be read once
        elements = [0] * dist.get_world_size()
        self.owner = {}
        for param in sorted(self.params, key=torch.Tensor.numel, reverse=True):
            poorest = elements.index(min(elements))
            self.owner[param] = poorest
            elements[poorest] += param.numel()
        own = [param for param in self.params if self.owner[param] == dist.get_rank()]
        self.optimizer = make(own) if own else None

    @torch.no_grad()
    def step(self):
        if self.optimizer is not None:
            self.optimizer.step()
        sent = []
        for param in self.params:
            dense = param.contiguous()  # the parameter itself if it is already
            work = dist.broadcast(dense, src=self.owner[param], async_op=True)
            sent.append((param, dense, work))
        for param, dense, work in sent:
            work.wait()
            param.copy_(dense)

    def zero_grad(self):
        for param in self.params:  # the others' too: no optimizer here knows them
            param.grad = None

    ### END SOLUTION


# %% grade="ZeroOptimizer"
grade("ZeroOptimizer")

# %% [markdown] sitting="in-step"
# question: What does each rank have to know of the others?
# reached: >-
#   When their part of the pipeline is ready, and whether any of them saw an overflow: to skip or
#   to clip is decided by all or by none.

# %% [markdown] exercise="schedule"
# title: Fill a pipeline
# minutes: 40
# difficulty: 3
# points: 5
# prerequisites: []
# teaches: >-
#   pipeline parallelism: what depends on what, the bubble, and why 1F1B keeps fewer activations than
#   GPipe in the same time.
# leaves out: several stages per rank, splitting backward in two, sending and receiving.
# off limits: [torch.distributed.pipelining]

# %% [markdown]
# A model that does not fit into one device can be cut into **stages**, one per rank. Stage 1 needs the
# output of stage 0, so on its own this keeps one rank busy at a time. Cut the batch into **micro-batches**,
# too, and stage 0 can begin with the next while stage 1 works on the first.
#
# A stage's plan is a list of actions: `("F", 2)` is the forward of micro-batch 2, `("B", 2)` its backward.
# Three things have to wait for others:
#
# - `F` of a micro-batch waits for the same `F` on the stage before;
# - `B` waits for the same `B` on the stage after, and for this stage's own `F`;
# - each stage does one thing at a time, in the order of its plan.
#
# Here is a drawing of any plan. A forward takes one unit of time, a backward two. Forwards are digits,
# backwards letters, waiting is a dot.


# %%
def draw(plans: list[list[tuple[str, int]]]) -> list[str]:
    """Return one line per stage, or raise if the stages wait for each other for ever."""
    done, lines, at = {}, ["" for _ in plans], [0] * len(plans)
    while any(place < len(plan) for place, plan in zip(at, plans, strict=True)):
        before = list(at)
        for stage, plan in enumerate(plans):
            while at[stage] < len(plan):
                kind, number = plan[at[stage]]
                needs = [("F", number, stage - 1)] if kind == "F" else [("B", number, stage + 1)]
                needs += [("F", number, stage)] if kind == "B" else []
                needs = [need for need in needs if 0 <= need[2] < len(plans)]
                if any(need not in done for need in needs):
                    break
                start = max([len(lines[stage]), *(done[need] for need in needs)])
                shown = str(number) if kind == "F" else "abcdefghij"[number] * 2
                lines[stage] = lines[stage].ljust(start, ".") + shown
                done[kind, number, stage] = len(lines[stage])
                at[stage] += 1
        if before == at:
            raise RuntimeError(f"stuck: the stages stand at {at}")
    longest = max(map(len, lines))
    return [line.ljust(longest, ".") for line in lines]


one_by_one = [[(kind, number) for number in range(4) for kind in "FB"]] * 3
print("one micro-batch after the other:", *draw(one_by_one), sep="\n")
all_forwards_first = [[(kind, number) for kind in "FB" for number in range(4)]] * 3
print("all forwards, then all backwards:", *draw(all_forwards_first), sep="\n")

# %% [markdown]
# The second plan is **GPipe**. What is left of the dots is called the **bubble**: the pipeline must fill
# and drain. With more micro-batches it weighs less.
#
# Draw: show_spans({f"stage {stage}": [("F" + m[0] if m[0].isdigit() else "B" +
# str("abcdefghij".index(m[1])), m.start(), m.end()) for m in re.finditer(r"\d|([a-j])\1", line)]
# for stage, line in enumerate(draw(all_forwards_first))}, "units") | The second plan, to scale:
# what is empty is the bubble.
#
# **Predict.** With 3 stages and 4 micro-batches, 18 units pass, and each stage works in 12 of them. How many
# units pass with 3 stages and 8 micro-batches?


# %%
def eight_micro_batches():
    return len(draw([[(kind, number) for kind in "FB" for number in range(8)]] * 3)[0])


predict(..., eight_micro_batches)

# %% [markdown]
# More micro-batches have a price. What a forward saves for its backward lives from `F` to `B`. In GPipe all
# forwards come first, so every stage holds the activations of **all** micro-batches at once.
#
# Draw: show_curves({"share of the time that a stage waits": [(m, 1 - 3 * m / len(draw([[(kind,
# number) for kind in "FB" for number in range(m)]] * 3)[0])) for m in range(1, 11)]},
# "micro-batches, on 3 stages", "") | What one buys: with ten micro-batches, a sixth of the time
# is the bubble.
#
# **1F1B**, one forward, one backward, holds fewer. A stage makes just as many forwards as it takes until
# the first backward can come back to it. From then on it does one forward and one backward in turn, and at
# the end the backwards that are left. Before its first backward, the last stage makes a single forward,
# stage 0 one for every stage. The time is the same: it is the memory that is saved.
#
# **Write `schedule(kind, stages, micro_batches)`.** `kind` is `"gpipe"` or `"1f1b"`. Return a list with one
# plan for each stage.
#
# - Each plan has each micro-batch's forward once and its backward once. Stages must not wait for each other
#   for ever.
# - With forwards of one unit and backwards of two, everything is done after
#   `3 * (micro_batches + stages - 1)` units: no plan can do better.
# - `"gpipe"`: on each stage all forwards come before all backwards.
# - `"1f1b"`: stage `s` never holds the activations of more than `stages - s` micro-batches.
# - There may be fewer micro-batches than stages, and a single stage.
#
# <details><summary>Hint 1: look at it</summary>
#
# `print(*draw(schedule("1f1b", 3, 4)), sep="\n")` shows what you have.
#
# </details>
# <details><summary>Hint 2: warming up</summary>
#
# Stage `s` makes `stages - s - 1` forwards before its first pair of a forward and a backward. The last stage
# makes none.
#
# </details>
# <details><summary>Hint 3: few micro-batches</summary>
#
# No stage can make more forwards than there are micro-batches. What comes after the warm-up is pairs as
# long as there are forwards, then the backwards that are left.
#
# </details>


# %% solution="schedule"
def schedule(kind: str, stages: int, micro_batches: int) -> list[list[tuple[str, int]]]:
    """Return each stage's plan: a list of ("F", micro-batch) and ("B", micro-batch)."""
    ### BEGIN SOLUTION
    forwards = [("F", number) for number in range(micro_batches)]
    backwards = [("B", number) for number in range(micro_batches)]
    if kind == "gpipe":
        return [forwards + backwards for _ in range(stages)]
    plans = []
    for stage in range(stages):
        # until the first backward is back, the forwards of all stages behind this one pass
        ahead = min(stages - stage - 1, micro_batches)
        pairs = zip(forwards[ahead:], backwards, strict=False)  # as many as there are forwards
        middle = [action for pair in pairs for action in pair]
        plans.append(forwards[:ahead] + middle + backwards[micro_batches - ahead :])
    return plans
    ### END SOLUTION


# %% grade="schedule"
grade("schedule")

# %% [markdown]
# Plans are lists. Do they hold on real ranks? Each of three ranks below has one layer of a model, sends its
# outputs on and its gradients back, in the order of your plan, and compares its gradient with that of the
# whole model in one process.


# %%
def pipelined(rank: int, plan: list[tuple[str, int]]) -> bool:
    torch.manual_seed(0)
    layers = [nn.Linear(4, 4).double() for _ in range(3)]
    inputs = torch.randn(4, 2, 4, dtype=torch.float64)  # four micro-batches of two rows
    held, works = {}, []
    for kind, number in plan:
        if kind == "F":
            x = inputs[number].clone()
            if rank > 0:
                dist.recv(x, src=rank - 1)
            held[number] = x.requires_grad_(), layers[rank](x).tanh()
            if rank < 2:
                works.append(dist.isend(held[number][1].detach(), dst=rank + 1))
        else:
            x, y = held.pop(number)
            grad = torch.full_like(y, 1 / 4)  # the loss: the sum of y, averaged over micro-batches
            if rank < 2:
                dist.recv(grad, src=rank + 1)
            y.backward(grad)
            if rank > 0:
                works.append(dist.isend(x.grad, dst=rank - 1))
    for work in works:
        work.wait()
    got = layers[rank].weight.grad.clone()
    layers[rank].zero_grad()
    whole = inputs.flatten(0, 1)
    for layer in layers:
        whole = layer(whole).tanh()
    (whole.sum() / 4).backward()
    return torch.allclose(got, layers[rank].weight.grad)


# %%
if written("schedule"):
    plans = schedule("1f1b", 3, 4)
    print("same gradients:", on_ranks(3, lambda rank: pipelined(rank, plans[rank])))

# %% [markdown]
# ### An order that no data say
#
# Each rank called `backward` itself, once for each micro-batch. If one call is to do it all, as in torchgpipe
# ([arXiv 2004.09910](https://arxiv.org/abs/2004.09910)), the engine chooses which micro-batch comes first. How can one
# tell it? By an edge of the graph, for a node waits for all its edges. A tensor **without elements** goes from
# micro-batch 0 to micro-batch 1. It carries nothing forward, and backward the wait for a gradient of nothing.
#
# | | micro-batch 0 | micro-batch 1 |
# |---|---|---|
# | forward | `Fork` hands out a tensor without elements | `Join` takes it in |
# | backward | `Fork` waits for the gradient of that tensor | `Join` has it only when its own turn has come |


# %%
import threading


class Fork(torch.autograd.Function):
    """The input, and a tensor without elements from the same node."""

    @staticmethod
    def forward(ctx, x):
        return x.view_as(x), torch.empty(0)

    @staticmethod
    def backward(ctx, grad, nothing):
        return grad


class Join(torch.autograd.Function):
    """The input, from a node that has an edge to where `nothing` came from."""

    @staticmethod
    def forward(ctx, x, nothing):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return grad, torch.empty(0)


def backward_order(joined):
    order, outputs = [], []
    weight = torch.ones(2, requires_grad=True)
    first = weight * 1
    first.register_hook(lambda grad: order.append(0))
    if joined:
        first, nothing = Fork.apply(first)

    def worker():  # micro-batch 1, in a thread of its own
        second = weight * 2
        if joined:
            second = Join.apply(second, nothing)
        second.register_hook(lambda grad: order.append(1))
        outputs.append(second)

    thread = threading.Thread(target=worker)
    thread.start()
    thread.join()
    (first + outputs[0]).sum().backward()
    return order


print("as the engine likes:", backward_order(False))
print("micro-batch 1 first:", backward_order(True))

# %% [markdown] exercise="scaled_step"
# title: Skip together, clip together
# minutes: 35
# difficulty: 4
# points: 6
# prerequisites: []
# teaches: >-
#   mixed precision where each rank has only a part of the gradients: overflow and norm are questions
#   about all ranks, and all have to come to the same answer.
# leaves out: changing the scale, bfloat16.
# off limits: [torch.nn.utils.clip_grad_norm_, torch.amp.GradScaler, torch.nn.utils.get_total_norm]
# forbids: "PyTorch's own clipping and loss scaling"

# %% [markdown]
# With float16 the loss is multiplied by a **scale**, so that small gradients do not vanish. If one overflows
# to infinity, the step is skipped. Under DDP that needs no extra thought: gradients are averaged before
# anyone looks, and what is infinite or NaN on one rank is finite on none.
#
# Look: formats/round#format=fp16&fp32=47800000 | A gradient of 64 under a scale of 1,024: 65,536 is
# beyond `float16`, and infinity arrives. Halve it.
#
# With sharded gradients, as in ZeRO-2, each rank looks at **its shard**. One finds an infinity, the others
# do not. What do they do?


# %%
def each_for_itself(rank):
    shard = nn.Parameter(torch.zeros(2))
    shard.grad = torch.tensor([[float("inf"), 1.0], [1.0, 1.0]][rank])
    scaler = torch.amp.GradScaler("cpu", init_scale=1.0)
    scaler.scale(torch.zeros(()))  # a scaler begins with its first loss
    optimizer = torch.optim.SGD([shard], lr=1.0)
    scaler.step(optimizer)
    return shard.tolist()


for rank, shard in enumerate(on_ranks(2, each_for_itself)):
    print(f"rank {rank}: its half of the parameters is {shard}")

# %% [markdown]
# Half of the model made a step and half did not. Nothing was raised, and no step is like any that one process
# would have made. `torch.distributed.fsdp` has a scaler of its own for this reason
# (`torch/distributed/fsdp/sharded_grad_scaler.py`, `ShardedGradScaler`).
#
# Clipping has the same trouble. The norm to clip by is that of **all** gradients. Norms do not add up; their
# squares do.
#
# **Predict.** Rank 0 has a shard with the norm 3, rank 1 one with the norm 4. What is the norm of all?


# %%
def norm_of_both():
    return (3.0**2 + 4.0**2) ** 0.5


predict(..., norm_of_both)

# %% [markdown]
# **Write `scaled_step(params, optimizer, scale, max_norm)`.** `params` is a list of this rank's own
# parameters, `optimizer` steps them. Their `.grad`s are the true gradients times `scale`.
#
# - If any gradient on any rank is not finite, **no** rank makes a step. Return `None`, on every rank.
# - Otherwise divide the gradients by `scale`. Their norm is the 2-norm over all gradients of all
#   ranks. If it is greater than `max_norm`, multiply all gradients by `max_norm / norm`. Then make the
#   step, and return the norm as it was before clipping, a `float`, the same on every rank.
# - Either way the `.grad`s of this rank's parameters are `None` afterwards.
# - Some `.grad`s may be `None` to begin with; a rank may have no parameters at all. Gradients may be
#   float16, float32 or float64, the first two as large as their dtype allows. That a square overflows is
#   no overflow of a gradient.
# - **One** collective for it all, of 32 bytes at most.
#
# <details><summary>Hint 1: one number</summary>
#
# A sum of squares in float64 answers both questions: no square of a float16 or float32 is too large for
# it, so it is finite if and only if all gradients are. Its square root is the norm.
#
# </details>
# <details><summary>Hint 2: who asks</summary>
#
# Every rank, always: also one that has found an infinity, and one that has nothing. Decide after the
# all-reduce, not before.
#
# </details>
# <details><summary>Hint 3: zeros</summary>
#
# If all gradients are zero, so is the norm, and there is nothing to shorten. A rank without gradients has a
# sum of zero: make it a float64 tensor all the same.
#
# </details>


# %% solution="scaled_step"
def scaled_step(
    params: list[nn.Parameter], optimizer: torch.optim.Optimizer, scale: float, max_norm: float
) -> float | None:
    """Step on all ranks or on none; return the norm of all ranks' gradients, None if skipped."""
    ### BEGIN SOLUTION
    grads = [param.grad for param in params if param.grad is not None]
    # squares of float32 overflow float32 from 2e19 on, and those of float16 from 256 on
    squares = sum(grad.double().square().sum() for grad in grads)
    total = torch.as_tensor(squares, dtype=torch.float64)
    dist.all_reduce(total)  # an infinity or a NaN of one rank is in the sum of all
    norm = total.sqrt().item() / scale
    finite = bool(total.isfinite())
    if finite:
        factor = min(1.0, max_norm / norm) if norm > 0 else 1.0
        for grad in grads:
            grad.mul_(factor / scale)
        optimizer.step()
    for param in params:
        param.grad = None
    return norm if finite else None
    ### END SOLUTION


# %% grade="scaled_step"
grade("scaled_step")

# %% [markdown] sitting="own-ddp"
# question: What is inside DistributedDataParallel?
# reached: >-
#   One start for all ranks, buckets that leave during backward, and an end that waits for all of
#   them. It is one class, and you wrote it.

# %% [markdown] exercise="MiniDDP"
# title: Write DistributedDataParallel
# minutes: 90
# difficulty: 5
# points: 13
# prerequisites: [sync_module, Buckets, accumulate, fill_unused]
# teaches: >-
#   all of DDP in one class: one start for all ranks, buckets that leave during backward and in one
#   order, accumulation without traffic, parameters that some ranks do not use, buffers.
# leaves out: >-
#   sparse gradients, several backwards per forward, gradients that are views of their bucket.
# off limits: [torch.nn.parallel.DistributedDataParallel]

# %% [markdown]
# Here all of it comes together. Your wrapper does what torch's does, and every part of it is
# something you have seen: one start, hooks, buckets, asynchronous all-reduces, an end of backward
# where all is collected.
#
# Look: ddp/buckets#panel=overlap&model=embedding&cap=4&bandwidth=2&latency=0.5 | A large embedding
# is the first layer, so its gradient comes last, and nothing can hide it. Choose other buckets.
#
# Three questions are left. The first: **who notices the end of backward?** A hook on a parameter
# knows that this parameter's gradient is there. If the loss does not use a parameter, its hook
# never runs, its bucket never fills, and nobody waits for the others. DDP asks the engine to call
# it when the whole backward is done:


# %%
def who_is_last():
    log = []
    first, second = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))
    engine = torch.autograd.Variable._execution_engine

    def hook(name, parameter):
        if not log:  # once per backward, and only from inside of it
            engine.queue_callback(lambda: log.append("end of backward"))
        log.append(f"gradient of {name}")

    first.register_post_accumulate_grad_hook(partial(hook, "first"))
    second.register_post_accumulate_grad_hook(partial(hook, "second"))
    ((first * 2) * second).backward()
    return log


print(who_is_last())

# %% [markdown]
# `queue_callback` belongs to the engine's inner side. The C++ reducer of DDP uses the same call
# (`torch/csrc/distributed/c10d/reducer.cpp`, `queue_callback`).
#
# Look: autograd/graph#code=first = torch.ones(1, requires_grad=True);second = torch.ones(1,
# requires_grad=True);h = first * 2;y = h * second;y.backward()&line=4 | Run the last line:
# `second` has its gradient before `first`. Which hook comes last depends on the graph, so none of
# them can say that it is the last.
#
# The second: **when is it decided that a backward talks?** There is a `no_sync()` for gradient
# accumulation. Does it belong around the forward, the backward, or both?


# %%
def where_no_sync_counts(rank):
    model = nn.parallel.DistributedDataParallel(nn.Linear(1, 1, bias=False))
    x = torch.full((1, 1), 1.0 + rank)
    found = {}
    with model.no_sync():
        loss = model(x).sum()
    loss.backward()
    found["around the forward "] = model.module.weight.grad.item()
    model.zero_grad()
    loss = model(x).sum()
    with model.no_sync():
        loss.backward()
    found["around the backward"] = model.module.weight.grad.item()
    return found


both = on_ranks(2, where_no_sync_counts)
for name in both[0]:
    print(f"{name}: rank 0 has {both[0][name]}, rank 1 has {both[1][name]}")

# %% [markdown]
# The gradients are 1 and 2, their mean 1.5. So the **forward** decides: it prepares the reducer for
# the backward to come, or does not. Code that puts only the `backward` under `no_sync` saves
# nothing, and adds up gradients that were averaged already.
#
# The third: **what of a parameter that nobody used?** If one rank used it, the others contribute
# zeros, and everyone gets the mean. If no rank did, its `.grad` should stay `None`. Zeros are not
# nothing to an optimizer.
#
# **Predict.** Adam with weight decay 0.1 and learning rate 0.01 makes one step on a weight of 1.0 whose
# gradient is zero. Where is the weight then, rounded to two places?


# %%
def one_step_on_zero():
    weight = nn.Parameter(torch.ones(()))
    weight.grad = torch.zeros(())
    torch.optim.Adam([weight], lr=0.01, weight_decay=0.1).step()
    return round(weight.item(), 2)


predict(..., one_step_on_zero)

# %% [markdown]
# A rank cannot know alone whether the others used a parameter. DDP sends a small map of flags along,
# when it is told that parameters may be unused (`find_unused_parameters=True`; `all_reduce_local_used_map`
# in `reducer.cpp`).
#
# Draw: show_curves({name: [(step, weight.item()) for weight in [nn.Parameter(torch.ones(()))] for
# optimizer in [torch.optim.Adam([weight], lr=0.01, weight_decay=0.1)] for step in range(41) if
# not step or (setattr(weight, "grad", grad), optimizer.step())] for name, grad in (("gradient of
# zeros", torch.zeros(())), ("None", None))}, "steps of that Adam", "weight") | What zeros do to a
# weight that nobody uses, and what `None` does.
#
# **Write `MiniDDP(module, bucket_bytes)`.** It is an `nn.Module` whose child is called `module`.
#
# - **Start.** When it is made, the parameters and buffers of all ranks become those of rank 0, in
#   place.
# - **Forward** calls the module with all its arguments, and returns what that returns.
# - **Buckets.** Take the parameters that require grad in the **reverse** of `module.parameters()`, and
#   put them into buckets one by one. A new bucket begins where the next parameter has another dtype, or
#   where the bucket would exceed `bucket_bytes` bytes. A parameter larger than that stands alone.
# - **Backward.** As soon as all gradients of a bucket are there, **one asynchronous all-reduce** of the
#   whole bucket begins, while backward goes on. Buckets leave in their order, on every rank: a bucket
#   that is full waits for the ones before it.
# - **After backward** the `.grad` of every parameter is the mean over all ranks of the `.grad`s that
#   the ranks had by then; a rank without one counts as zeros. A parameter that has a `.grad` on no rank
#   keeps `None`. You may use one further small collective per backward, one flag per parameter.
# - **`no_sync()`** is a context manager. The backward of a forward that ran inside it talks to nobody,
#   and gradients add up on each rank, as they do without you. Where the forward ran decides, not where
#   `backward` was called. After the `with`, also one that raised, all is as before.
# - **Buffers.** Before a forward that will be averaged, the buffers of all ranks become those of rank 0.
# - A forward under `no_grad` talks to nobody, and changes nothing of what the next backward does. So
#   rank 0 may evaluate alone, which torch's DDP does not allow if there are buffers.
# - A backward of a forward that was called on `module` itself, past you, stays on its rank.
#
# The parameters may have any dtype, any number of elements, and any layout, which may differ from rank to
# rank. A parameter may be used several times, under several names. On each rank the loss uses at least one parameter, and one backward
# follows each forward with grad mode on.
#
# <details><summary>Hint 1: the parts</summary>
#
# `register_post_accumulate_grad_hook` with the bucket's number tells when gradients come. Count down,
# per bucket. `dist.all_reduce(flat, async_op=True)` returns a work: keep it beside its tensor, and call
# `wait()` in the engine's callback.
#
# </details>
# <details><summary>Hint 2: what begins a backward</summary>
#
# The first hook that runs. Reset the counts there, and queue the callback. In the callback send what has
# not left, with zeros where a `.grad` is missing, then agree on what was used, then wait.
#
# </details>
# <details><summary>Hint 3: order</summary>
#
# The next bucket to leave is the one with the number of those that have left. After each gradient, send
# as long as that one is full. Collectives have no names: the first of one rank meets the first of the
# other.
#
# </details>


# %% solution="MiniDDP"
class MiniDDP(nn.Module):
    """Keeps copies of `module` on all ranks the same, as DistributedDataParallel does.

    MiniDDP(module, bucket_bytes), forward(*args, **kwargs), no_sync()
    """

    def __init__(self, module: nn.Module, bucket_bytes: int):
        ### BEGIN SOLUTION
        super().__init__()
        self.module = module
        self.talks = True  # False inside no_sync
        self.averages = False  # whether the backward to come will be averaged
        self.begun = False  # whether that backward is running
        self.take_from_rank_0([*module.parameters(), *module.buffers()])
        self.buckets = []
        room = dtype = None  # before the first bucket
        for parameter in reversed(list(module.parameters())):
            if not parameter.requires_grad:
                continue
            size = parameter.numel() * parameter.element_size()
            if parameter.dtype is not dtype or size > room:
                self.buckets.append([])
                room, dtype = bucket_bytes, parameter.dtype
            self.buckets[-1].append(parameter)
            room -= size
        for number, bucket in enumerate(self.buckets):
            for parameter in bucket:
                parameter.register_post_accumulate_grad_hook(partial(self.arrived, number))

    @torch.no_grad()
    def take_from_rank_0(self, tensors):
        for tensor in tensors:
            dense = tensor.contiguous()  # a collective wants its elements in a row
            dist.broadcast(dense, src=0)
            tensor.copy_(dense)

    def arrived(self, number, parameter):
        """Note a gradient of bucket `number`; send what is full, in order."""
        if not self.averages:
            return
        if not self.begun:  # the first gradient of this backward
            self.begun = True
            self.sent = []
            self.missing = [len(bucket) for bucket in self.buckets]
            torch.autograd.Variable._execution_engine.queue_callback(self.finish)
        self.missing[number] -= 1
        while len(self.sent) < len(self.buckets) and self.missing[len(self.sent)] == 0:
            self.send()

    def send(self):
        """Begin the all-reduce of the next bucket; zeros stand for what has no gradient."""
        bucket = self.buckets[len(self.sent)]
        parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in bucket]
        flat = torch.cat([part.reshape(-1) for part in parts])
        self.sent.append((flat, dist.all_reduce(flat, async_op=True)))

    @torch.no_grad()
    def finish(self):
        """At the end of backward: send the rest, learn what was used, put the means in place."""
        while len(self.sent) < len(self.buckets):
            self.send()
        order = [parameter for bucket in self.buckets for parameter in bucket]
        used = torch.tensor([p.grad is not None for p in order], dtype=torch.uint8)
        dist.all_reduce(used, op=dist.ReduceOp.MAX)
        pieces = []
        for bucket, (flat, work) in zip(self.buckets, self.sent, strict=True):
            work.wait()
            pieces += (flat / dist.get_world_size()).split([p.numel() for p in bucket])
        for parameter, piece, somewhere in zip(order, pieces, used.tolist(), strict=True):
            if somewhere:
                parameter.grad = piece.view(parameter.shape)
        self.averages = self.begun = False

    def forward(self, *args, **kwargs):
        if torch.is_grad_enabled():  # otherwise no backward follows
            self.averages = self.talks
            if self.talks:
                self.take_from_rank_0(self.module.buffers())
        return self.module(*args, **kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Forwards inside it have backwards that stay on their rank."""
        before, self.talks = self.talks, False
        try:
            yield
        finally:
            self.talks = before

    ### END SOLUTION


# %% grade="MiniDDP"
grade("MiniDDP")
# %% [markdown]
# ## Start it for real
#
# `on_ranks` forks a notebook. Programs are started by `torchrun`. It starts the processes, tells each by
# environment variables who it is and where the store is, and ends all of them when one fails. What you
# wrote works there as it is. `init_process_group` without a store reads those variables.
#
# The script below is a whole training program for two ranks. `--standalone` means: on this machine alone,
# by any free port.

# %%
SCRIPT = """
import os, torch, torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())  # different starts, which DDP makes the same
model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    rows = torch.full((4, 2), 1.0 + dist.get_rank())
    optimizer.zero_grad()
    model(rows).square().mean().backward()
    optimizer.step()
told = {name: os.environ[name] for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE")}
told["store"] = {"MASTER_ADDR", "MASTER_PORT"} <= os.environ.keys()
mine = told, model.module.weight.detach()
everyone = [None] * dist.get_world_size()
dist.all_gather_object(everyone, mine)
if dist.get_rank() == 0:
    for told, weight in everyone:
        print(told)
    print("same weights:", torch.equal(everyone[0][1], everyone[1][1]))
dist.destroy_process_group()
"""

with tempfile.TemporaryDirectory() as folder:
    script = Path(folder, "train.py")
    script.write_text(SCRIPT)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    done = subprocess.run(
        [*command, "--nproc-per-node", "2", str(script)], capture_output=True, text=True
    )
print(done.stdout + f"exit status: {done.returncode}")

# %% [markdown]
# Look: ddp/ring#panel=ring&n=2&size=4&step=1 | Two ranks, as in the script, and one way in which
# they come to the same sum: each adds up one half, then hands it on.
#
# `python -m torch.distributed.run` is `torchrun` by its longer name. On several machines each runs the same
# command, with `--nnodes` and the address of one of them as `--rdzv-endpoint`.
#
# What if one rank raises? The launcher ends the others, so that nobody waits for ever, and its own exit
# status says that something went wrong:

# %%
with tempfile.TemporaryDirectory() as folder:
    script = Path(folder, "fails.py")
    script.write_text(
        "import os, time\nassert os.environ['RANK'] == '0', 'rank 1 fails'\ntime.sleep(600)\n"
    )
    done = subprocess.run(
        [*command, "--nproc-per-node", "2", str(script)], capture_output=True, text=True
    )
print("exit status:", done.returncode, " rank 1 was named:", "rank      : 1" in done.stderr)

# %% [markdown]
# <details><summary>Box: libraries on top</summary>
#
# Libraries such as Accelerate and the Trainer of Transformers write the training loop for you. They are
# not installed here. When you use one, look for the names of torch that you now know: which
# `torch.nn.parallel.DistributedDataParallel` wraps your model, and with which options; whether
# accumulation enters its `no_sync()`, and whether the forward runs inside; where a checkpoint reaches for
# `.module`; by what a loss is divided where batches are uneven. If a run hangs or a gradient is off by the
# number of ranks, these are the places.
#
# </details>
