# Models on several GPUs: questions, answers, and programs that show them.

# %% ddp-or-fsdp
# DDP or FSDP: which one do I need?
#
# DDP keeps everything on every rank: weights, gradients, optimizer state. If a whole training step fits on one GPU, take DDP: it sends least.
#
# FSDP (`fully_shard`) keeps an n-th of each on a rank. Before a layer computes, its weights are gathered; afterwards they are let go. With Adam in float32 a parameter takes 16 bytes under DDP, and 16 / n under FSDP. Each weight then travels three times a step (two gathers, one reduce-scatter), where DDP's all-reduce is worth two: half as much again.
#
# Neither shrinks activations: those need a smaller batch, checkpointing, or a cut along the sequence. And only what is wrapped is let go: call `fully_shard` on each block, then on the model. Make the optimizer after that.
#
# Look: ddp/zero#panel=zero&params=7B&ranks=8&optimizer=adam&precision=mixed&stage=3 | Seven billion parameters on eight ranks. Stage 0 is DDP, stage 3 is FSDP.
#
# Go on: ch10_sharding#Unit, ch08_ddp#zero_ledger, myths#root-only-saves, myths#optimizer-follows
import torch
import torch._dynamo  # what FSDP would import in each rank
from grader import (
    on_ranks,
    watch_collectives,
)  # forks joined by gloo; comes with Undertorch
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel as DDP


def train(rank, sharded):
    model = nn.Sequential(*[nn.Linear(64, 64, bias=False) for _ in range(4)])
    if sharded:
        for layer in model:
            fully_shard(layer, reshard_after_forward=True)
        fully_shard(model)
    else:
        model = DDP(model)
    optimizer = torch.optim.Adam(model.parameters())
    with watch_collectives() as seen:
        model(torch.ones(1, 64)).sum().backward()
    optimizer.step()
    kept = 0
    for p in model.parameters():
        for t in (p, p.grad, *optimizer.state[p].values()):
            t = t.to_local() if hasattr(t, "to_local") else t
            kept += t.nbytes if t.dim() else 0
    calls = sorted({name for name, _ in seen.events})
    return f"{kept // 1024} KiB kept", *calls


print(
    "DDP, a rank: ", *on_ranks(4, lambda rank: train(rank, False))[0], sep="  "
)
print(
    "FSDP, a rank:", *on_ranks(4, lambda rank: train(rank, True))[0], sep="  "
)

# %% what-is-dtensor
# What is a DTensor?
#
# One tensor of several ranks. It has the full size; each rank holds a local tensor, and a *placement* says how the two belong together. `Replicate()`: the local one is all of it. `Shard(dim)`: it is this rank's part along `dim`. `Partial()`: the tensor is the sum of what all ranks have.
#
# You compute as with any tensor. Each operator has rules for placements: a product of a matrix cut by rows needs nobody, a product cut along the dim that is summed gives a `Partial`. Where no rule fits, the DTensor changes its layout by a collective, and nothing in your program says so.
#
# `distribute_tensor` cuts a tensor, `redistribute` changes the placement, `to_local()` gives what is here, `full_tensor()` gathers. FSDP's and tensor parallelism's parameters are DTensors.
#
# Go on: ch10_sharding#redistribute, ch10_sharding#mlp, myths#dtensor-says-when, myths#replicate-means-equal
import torch
import torch._dynamo  # what DTensor would import in each rank
from grader import (
    on_ranks,
    watch_collectives,
)  # forks joined by gloo; comes with Undertorch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor


def body(rank):
    mesh = init_device_mesh("cpu", (4,))
    x, w = torch.ones(6, 8), torch.ones(8, 8)
    rows = distribute_tensor(x, mesh, [Shard(0)])
    columns = distribute_tensor(x, mesh, [Shard(1)])
    whole, w_rows = (
        distribute_tensor(w, mesh, [p]) for p in (Replicate(), Shard(0))
    )
    found = [f"{tuple(rows.shape)} as {tuple(rows.to_local().shape)}"]
    for name, do in (
        ("rows @ all    ", lambda: rows @ whole),
        ("columns @ rows", lambda: columns @ w_rows),
        ("... .relu()   ", lambda: (columns @ w_rows).relu()),
    ):
        with watch_collectives() as seen:
            y = do()
        found.append(f"{name} {y.placements[0]} {' '.join(seen.names)}")
    return found


first, *rest = zip(*on_ranks(4, body))
print("by rank:", *first, sep="  ")
for lines in rest:
    print(lines[0])

# %% clip-grad-norm-with-fsdp
# Does clip_grad_norm_ work with FSDP and tensor parallelism?
#
# Yes, with `fully_shard` and `parallelize_module`: gradients are DTensors, and `torch.nn.utils.clip_grad_norm_` takes the norm of all ranks' parts. What it returns is a DTensor too, for a log `norm.full_tensor()`. Every rank has to call it: inside `if rank == 0` it hangs.
#
# The older `FullyShardedDataParallel` has a method of its own, `model.clip_grad_norm_(limit)`: its gradients are plain tensors, and the function would see this rank's part alone.
#
# That is the trap wherever you shard by hand. The norm of a part is too small, so each rank clips by another factor. And a sum of squares over all ranks counts twice what two of them have a copy of.
#
# Go on: ch10_sharding#clip, ch10_sharding#Unit
import torch
import torch._dynamo  # what FSDP would import in each rank
from grader import on_ranks  # forks joined by gloo; comes with Undertorch
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.nn.utils import clip_grad_norm_


def body(rank):
    torch.manual_seed(0)
    alone, model = nn.Linear(4, 4), nn.Linear(4, 4)
    model.load_state_dict(alone.state_dict())
    fully_shard(model)
    for one in (alone, model):
        one(torch.ones(4)).square().sum().backward()
    mine = [nn.Parameter(p.to_local().detach()) for p in model.parameters()]
    for p, q in zip(mine, model.parameters()):
        p.grad = q.grad.to_local().clone()
    norms = [
        clip_grad_norm_(one, 1.0)
        for one in (alone.parameters(), model.parameters(), mine)
    ]
    return [
        round(float(getattr(n, "full_tensor", lambda: n)()), 2) for n in norms
    ]


for rank, (alone, sharded, part) in enumerate(on_ranks(2, body)):
    print(
        f"rank {rank}: one process {alone}, DTensors {sharded}, this rank's tensors {part}"
    )

# %% load-sharded-checkpoint-on-fewer-gpus
# How do I load a sharded checkpoint on another number of GPUs?
#
# Not with `torch.save(model.state_dict())`: on a sharded model each rank would write its own part.
#
# Use `torch.distributed.checkpoint`. In `dcp.save(state, checkpoint_id=folder)` every rank writes the parts that it has, and an index says which piece of which tensor is where. `dcp.load` fills the tensors that you bring. Whatever part of a tensor a rank holds now, it reads where that part overlaps the pieces. So the same folder loads on more ranks, on fewer, or in one process without any group.
#
# `get_state_dict(model, optimizer)` gives both states under names that do not depend on the number of ranks, `set_state_dict` puts them back. Step, order of the samples and random states are yours to add.
#
# Every rank has to call `save` and `load`.
#
# Go on: ch10_sharding#train, ch06_dataloader#ResumableLoader
import tempfile

import torch
import torch._dynamo  # what FSDP would import in each rank
import torch.distributed.checkpoint as dcp
from grader import on_ranks  # forks joined by gloo; comes with Undertorch
from torch import nn
from torch.distributed.fsdp import fully_shard


def model_of(ranks):
    torch.manual_seed(ranks)
    model = nn.Linear(3, 10, bias=False)
    return fully_shard(model) if ranks > 1 else model


def save(rank, folder):
    model = model_of(4)
    dcp.save(model.state_dict(), checkpoint_id=folder)
    return round(model.weight.full_tensor().sum().item(), 4)


def load(rank, ranks, folder):
    model = model_of(ranks)
    state = model.state_dict()
    dcp.load(state, checkpoint_id=folder)
    rows = len(state["weight"].to_local())
    return rows, round(state["weight"].full_tensor().sum().item(), 4)


with tempfile.TemporaryDirectory() as folder:
    print("saved on 4 ranks:", on_ranks(4, lambda rank: save(rank, folder))[0])
    print("loaded on 3:", on_ranks(3, lambda rank: load(rank, 3, folder)))
    state = model_of(1).state_dict()
    dcp.load(state, checkpoint_id=folder)
    print("loaded by one:", round(state["weight"].sum().item(), 4))
