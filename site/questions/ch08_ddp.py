# Several processes and GPUs: questions, answers, and programs that show them.

# %% find-unused-parameters
# What does find_unused_parameters=True do, and what does it cost?
#
# DDP waits in backward until every parameter has a gradient. One that took no part in this step never gets one; DDP says so at the next forward pass: "Expected to have finished reduction in the prior iteration".
#
# With the flag DDP walks the graph from the outputs after each forward pass, and marks what it cannot reach as ready, with zeros. That costs a walk over the graph in each step, and it works.
#
# Better, if you can: give every parameter a use. Remove a head that nobody needs, freeze what does not train before you wrap, return everything that the loss uses from `forward`. If the same parameters are unused in every step, `static_graph=True` finds them once.
#
# To see which: after `backward` without DDP, list the names with `p.grad is None`.
#
# Go on: ch08_ddp#fill_unused, ch08_ddp#MiniDDP, myths#unused-parameters-are-skipped
import torch
import torch._dynamo  # what DDP would import in each rank
from grader import on_ranks  # forks joined by gloo; comes with Undertorch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Half(nn.Module):
    def __init__(self):
        super().__init__()
        self.used, self.spare = nn.Linear(1, 1), nn.Linear(1, 1)

    def forward(self, x):
        return self.used(x)


def train(rank, **options):
    model = DDP(Half(), **options)
    try:
        for _ in range(2):
            model(torch.ones(1)).backward()
    except RuntimeError as error:
        return str(error).partition(". ")[0]
    return "two steps done"


print("default:", on_ranks(2, train)[0])
print(
    "flag:   ",
    on_ranks(2, lambda rank: train(rank, find_unused_parameters=True))[0],
)
half = Half()
half(torch.ones(1)).backward()
print(
    "unused: ", [name for name, p in half.named_parameters() if p.grad is None]
)

# %% ddp-hangs
# Why does DDP hang?
#
# DDP hangs when some rank waits in a collective that another never calls. Every rank must call the same collectives in the same order, and `backward` calls one per bucket.
#
# So look for code that differs between ranks. `if rank == 0:` around a forward pass, `loss.item()`-dependent early stopping, a `barrier`, saving a sharded checkpoint. A rank with one batch more than the others. A rank that died of an exception, out of memory: look at the first error of each log. A `continue` for a bad batch on one rank.
#
# To find it: `TORCH_DISTRIBUTED_DEBUG=DETAIL` compares collectives between ranks, `py-spy dump` shows where each process stands. For uneven batches use `drop_last`, a sampler that pads, or `with model.join():`.
#
# Go on: ch08_ddp#uneven_inputs, ch08_ddp#when-ranks-differ, ch08_ddp#scaled_step
import torch
import torch._dynamo
import torch.distributed as dist
from grader import on_ranks  # forks joined by gloo; comes with Undertorch


def only_rank_0(rank):
    dist.all_reduce(torch.ones(1))
    if rank == 0:
        dist.all_reduce(torch.ones(1))  # the others never come here


try:
    on_ranks(2, only_rank_0, seconds=2)
except Exception as error:
    print(str(error).splitlines()[0])


def all_decide(rank):
    stop = torch.tensor(float(rank == 0))  # one rank wants to stop
    dist.all_reduce(stop, op=dist.ReduceOp.MAX)  # so all agree
    return bool(stop)


print(on_ranks(2, all_decide))

# %% ddp-buckets
# What are DDP's buckets, and should I change bucket_cap_mb?
#
# DDP does not send each gradient by itself. It collects them in buckets, in the order in which backward makes them, and starts an all-reduce as soon as a bucket is full. So communication runs beside the rest of backward.
#
# The default cap is 25 MiB, with a first bucket of 1 MiB, so that something is on its way early. Small buckets pay latency often; large ones start late, and the last one is not hidden at all. A model of less than 25 MiB has nearly no overlap.
#
# Measure before you change it. Caps are soft: a large gradient makes a large bucket. After the first step DDP orders the buckets anew, by when gradients really came.
#
# Look: ddp/buckets#panel=overlap&cap=default | The default buckets for a small model: too large for anything to hide.
#
# Go on: ch08_ddp#Buckets, ch08_ddp#ring_all_reduce
import torch
import torch._dynamo
from grader import on_ranks  # forks joined by gloo; comes with Undertorch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def sent(rank, cap):
    layers = [
        nn.Linear(512, 512, bias=False) for _ in range(4)
    ]  # 1 MiB of gradients each
    model, sizes = DDP(nn.Sequential(*layers), bucket_cap_mb=cap), []

    def hook(state, bucket):
        sizes.append(bucket.buffer().nbytes // 2**20)
        future = torch.futures.Future()
        future.set_result(bucket.buffer())
        return future

    model.register_comm_hook(None, hook)
    for _ in range(2):  # after the first step the buckets are made anew
        sizes.clear()
        model(torch.ones(1, 512)).sum().backward()
    return sizes


for cap in (None, 1, 2):
    sizes = on_ranks(1, lambda rank: sent(rank, cap))[0]
    print("bucket_cap_mb", cap, "-> MiB per all-reduce:", sizes)

# %% no-sync-and-gradient-accumulation
# How do I use no_sync for gradient accumulation in DDP?
#
# Put forward *and* backward of all but the last piece under `with model.no_sync():`. DDP decides in the forward pass whether the following backward will communicate, so around `backward` alone it does nothing.
#
# The last piece, outside, sends the sum of all: gradients add up locally until then. The result is the same as with communication at each piece, at the price of one all-reduce instead of many.
#
# Divide the loss by the number of pieces, and see to it that every rank has the same number of them. DDP averages over ranks; it does not know of your pieces.
#
# With DDP it costs no memory. With FSDP it does: gradients stay whole between pieces.
#
# Go on: ch08_ddp#accumulate, ch05_autograd#train_step, myths#no-sync-around-backward
import contextlib

import torch
import torch._dynamo
from grader import on_ranks  # forks joined by gloo; comes with Undertorch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def body(rank, quiet):
    model, sent = DDP(nn.Linear(1, 1, bias=False)), [0]

    def hook(state, bucket):
        sent[0] += 1
        work = torch.distributed.all_reduce(
            bucket.buffer().div_(2), async_op=True
        ).get_future()
        return work.then(lambda done: done.value()[0])

    model.register_comm_hook(None, hook)
    for piece in range(3):
        last = piece == 2
        with contextlib.nullcontext() if last or not quiet else model.no_sync():
            (model(torch.tensor([rank + piece + 1.0])) / 3).backward()
    return round(model.module.weight.grad.item(), 4), f"{sent[0]} all-reduces"


for quiet in (False, True):
    print(
        "no_sync:" if quiet else "always: ",
        on_ranks(2, lambda rank: body(rank, quiet)),
    )

# %% ddp-average-and-learning-rate
# Does DDP sum or average gradients, and must I scale the learning rate?
#
# It averages. If each rank computes the mean over its own samples, and all have equally many, the result is the gradient of the mean over the whole batch. So DDP with n ranks of batch b is training with batch n · b, and nothing else.
#
# What changes is the batch. Whether a larger batch wants a larger learning rate is a question about training, not about DDP: linear scaling with warm-up is common for SGD, the square root for Adam.
#
# If your loss is a *sum*, multiply it by the number of ranks, or the gradient is that much smaller. If ranks have different numbers of samples or tokens, weigh the losses: a mean of means is not the mean.
#
# Go on: ch08_ddp#average_gradients, myths#ddp-sums, myths#ddp-is-the-big-batch
import torch
import torch._dynamo
from grader import on_ranks  # forks joined by gloo; comes with Undertorch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

x = torch.tensor([[1.0], [2.0], [3.0], [10.0]])


def gradient(rank, shards, reduce):
    model = DDP(nn.Linear(1, 1, bias=False))
    reduce(model(shards[rank])).backward()
    return model.module.weight.grad.item()


even, uneven = [x[:2], x[2:]], [x[:3], x[3:]]
print("whole batch, mean:", x.mean().item(), " sum:", x.sum().item())
print(
    "mean, even:  ", on_ranks(2, lambda rank: gradient(rank, even, torch.mean))
)
print(
    "mean, uneven:",
    on_ranks(2, lambda rank: gradient(rank, uneven, torch.mean)),
)
print(
    "sum, even:   ", on_ranks(2, lambda rank: gradient(rank, even, torch.sum))
)

# %% module-prefix-in-state-dict
# Why do the keys of my checkpoint begin with module.?
#
# It was saved from the wrapper. `DistributedDataParallel(model)` and `DataParallel(model)` hold yours as their part `module`, so all names get that prefix.
#
# Save `ddp.module.state_dict()` instead, or keep the name of the model that you wrapped: it is the same object with the same parameters. Save on rank 0 only, since all ranks have equal weights.
#
# For a checkpoint that exists: `torch.nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")`. It edits the dict in place.
#
# Do not load with `strict=False` to get past it. Nothing would match, and you would go on with random weights.
#
# Go on: ch04_modules#load_state, ch08_ddp#sync_module, myths#checkpoint-without-prefix
import torch
import torch._dynamo
from grader import on_ranks  # forks joined by gloo; comes with Undertorch
from torch import nn
from torch.nn.modules.utils import consume_prefix_in_state_dict_if_present
from torch.nn.parallel import DistributedDataParallel as DDP


def body(rank):
    model = nn.Linear(1, 1)
    state = DDP(model).state_dict()
    names = list(state)
    nothing = nn.Linear(1, 1).load_state_dict(state, strict=False).missing_keys
    consume_prefix_in_state_dict_if_present(state, "module.")
    nn.Linear(1, 1).load_state_dict(state)
    return (
        names,
        f"strict=False loads nothing, missing {nothing}",
        f"then {list(state)}",
    )


print(*on_ranks(1, body)[0], sep="\n")

# %% distributedsampler-set-epoch
# Why does every epoch have the same order with DistributedSampler?
#
# It shuffles by `seed + epoch`, so that all ranks agree without talking, and its epoch is 0 until you say otherwise. Call `sampler.set_epoch(epoch)` before each epoch. Without it the order, and the samples of each rank, repeat for ever.
#
# Pass the sampler to the `DataLoader` and leave `shuffle` out: both together raise.
#
# Two more things. Where the samples do not divide evenly it repeats some, so that all ranks get equally many; a metric over the validation set counts them twice. And the seed must be the same on all ranks, or they share some samples and miss others.
#
# Go on: ch06_dataloader#distributed_indices, myths#epochs-differ, myths#shards-are-disjoint
import torch
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

sampler = DistributedSampler(range(100), num_replicas=2, rank=0, shuffle=True)
first, again = list(sampler), list(sampler)
sampler.set_epoch(1)
print("repeats:", first == again, " after set_epoch:", first == list(sampler))
ranks = [
    list(DistributedSampler(range(5), 2, rank, shuffle=False))
    for rank in (0, 1)
]
print("five samples, two ranks:", ranks)
seeds = [
    set(DistributedSampler(range(100), 2, rank, seed=rank)) for rank in (0, 1)
]
print("another seed on each rank misses some:", len(seeds[0] | seeds[1]) < 100)
print("and shares some:", len(seeds[0] & seeds[1]) > 0)
try:
    DataLoader(range(100), sampler=sampler, shuffle=True)
except ValueError as error:
    print(error)

# %% ddp-and-batchnorm
# Does BatchNorm see the whole batch in DDP?
#
# No. Each rank normalises with the mean and variance of its own samples. With few samples per GPU these are noisy; the whole batch of all ranks has other statistics. The weights stay equal. The running statistics are each rank's own, and before each forward pass DDP copies those of rank 0 to all (`broadcast_buffers=True`), so rank 0's count.
#
# `nn.SyncBatchNorm.convert_sync_batchnorm(model)`, called before wrapping, computes the statistics over all ranks, at the price of communication in every norm. It needs GPUs for training.
#
# It is worth it for detection and segmentation, with two images per GPU. GroupNorm and LayerNorm do not have the problem: they do not mix samples.
#
# Go on: ch08_ddp#SyncBatchNorm, ch08_ddp#what-is-not-averaged, myths#syncbn-shares-parameters
import torch
import torch._dynamo
from grader import on_ranks  # forks joined by gloo; comes with Undertorch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

x = torch.tensor([[1.0], [1.0], [5.0], [9.0]])
print(
    "whole batch:",
    [round(v, 2) for v in nn.BatchNorm1d(1)(x).flatten().tolist()],
)


def body(rank):
    model = DDP(nn.BatchNorm1d(1, momentum=1.0))
    out = model(x[2 * rank : 2 * rank + 2])
    own = model.module.running_mean.item()
    model.eval()(x[:1])  # a forward pass begins by copying rank 0's buffers
    return (
        [round(v, 2) for v in out.flatten().tolist()],
        own,
        model.module.running_mean.item(),
    )


for rank, (out, own, after) in enumerate(on_ranks(2, body)):
    print(f"rank {rank}: {out}, running mean {own}, at the next call {after}")

# %% how-much-memory-for-training
# How much memory does training a model of n parameters take, and what do ZeRO and FSDP save?
#
# With Adam in `float32`: 4 bytes for the weight, 4 for its gradient, 8 for two moments: 16 per parameter, 112 GB for 7 billion. Mixed precision with master weights also comes to 16: 2 + 2 + 12. Activations come on top and depend on batch and length.
#
# DDP keeps all of it on every rank. ZeRO shares it out: stage 1 the optimizer's states, stage 2 gradients too, stage 3 (FSDP) also the weights, which are gathered layer by layer when they are needed. Per rank of n: 8 + 8/n, 4 + 12/n, 16/n bytes.
#
# Stage 1 and 2 communicate as much as DDP does, stage 3 about half as much again.
#
# Look: ddp/zero#panel=zero&params=7B&ranks=64&stage=3 | What one of 64 ranks keeps of a model with 7 billion parameters.
#
# Go on: ch08_ddp#zero_ledger, ch08_ddp#ZeroOptimizer, myths#zero-one-shards-all
import torch
from torch import nn

model = nn.Linear(1000, 1000, bias=False)
optimizer = torch.optim.Adam(model.parameters())
model(torch.ones(1, 1000)).sum().backward()
optimizer.step()
weights = sum(p.nbytes for p in model.parameters())
gradients = sum(p.grad.nbytes for p in model.parameters())
moments = sum(
    t.nbytes
    for state in optimizer.state.values()
    for t in state.values()
    if t.dim()
)
n = sum(p.numel() for p in model.parameters())
print("bytes per parameter:", weights / n, "+", gradients / n, "+", moments / n)
for ranks in (1, 8, 64):
    stages = [
        weights + gradients + moments / ranks,
        weights + (gradients + moments) / ranks,
        (weights + gradients + moments) / ranks,
    ]
    print(
        ranks,
        "ranks, stages 1 to 3:",
        [round(stage / n, 2) for stage in stages],
    )
