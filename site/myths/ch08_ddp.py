# Distributed training: claims, what is true, and programs that show it.

# %% ddp-splits-the-model sync_module
# DDP shares the model out among the ranks.
#
# Every rank has all of it. What is shared out is the data, and you do that yourself.
import torch._dynamo  # what DDP would import in each rank
from grader import on_ranks  # forks, joined by gloo
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def body(rank):
    model = DDP(nn.Linear(8, 1, bias=False))
    return sum(p.numel() for p in model.parameters())


print(on_ranks(2, body))

# %% ddp-sums average_gradients
# DDP adds up the ranks' gradients.
#
# It averages them. Where SGD's learning rate was tuned for a sum, each step is now smaller, by the number of ranks.
import torch._dynamo
from grader import on_ranks
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def body(rank):
    model = DDP(nn.Linear(1, 1, bias=False))
    model(torch.tensor([rank + 1.0])).backward()
    return model.module.weight.grad.item()


print(on_ranks(2, body))

# %% ddp-is-the-big-batch average_gradients
# DDP's gradient is that of the whole batch in one process.
#
# If each loss is a mean, all ranks have equally many samples, and no layer mixes samples, as BatchNorm does. A mean of means is not the mean.
import torch._dynamo
from grader import on_ranks
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

shards = [torch.tensor([[1.0], [1.0], [1.0]]), torch.tensor([[5.0]])]


def body(rank):
    model = DDP(nn.Linear(1, 1, bias=False))
    model(shards[rank]).mean().backward()
    return model.module.weight.grad.item()


print(on_ranks(2, body), "instead of", torch.cat(shards).mean().item())

# %% no-sync-around-backward accumulate
# `no_sync` around `backward` keeps it from talking.
#
# The forward pass decides. Around `backward` alone it comes too late.
import torch._dynamo
from grader import on_ranks
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def body(rank):
    model = DDP(nn.Linear(1, 1, bias=False))
    x = torch.tensor([rank + 1.0])
    loss = model(x)
    with model.no_sync():
        loss.backward()
    late = model.module.weight.grad.item()
    model.zero_grad()
    with model.no_sync():
        model(x).backward()
    return late, model.module.weight.grad.item()


print(on_ranks(2, body))

# %% calling-the-module MiniDDP
# `ddp.module(x)` is `ddp(x)`, without the wrapper's overhead.
#
# And without its work: gradients stay as each rank has them, and nobody says so.
import torch._dynamo
from grader import on_ranks
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def body(rank):
    model = DDP(nn.Linear(1, 1, bias=False))
    model.module(torch.tensor([rank + 1.0])).backward()
    return model.module.weight.grad.item()


print(on_ranks(2, body))

# %% unused-parameters-are-skipped fill_unused
# Parameters that take no part in a step are left alone by DDP.
#
# It waits for their gradients, and says so at the next forward pass. `find_unused_parameters=True` looks for them first.
import torch._dynamo
from grader import on_ranks
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Half(nn.Module):
    def __init__(self):
        super().__init__()
        self.used, self.unused = nn.Linear(1, 1), nn.Linear(1, 1)

    def forward(self, x):
        return self.used(x)


def body(rank):
    model = DDP(Half())
    model(torch.ones(1)).backward()
    try:
        model(torch.ones(1))
    except RuntimeError as error:
        return str(error)[:61]


print(on_ranks(2, body)[0])

# %% checkpoint-without-prefix average_gradients
# A checkpoint of a DDP model loads into the model.
#
# Its keys begin with `module.`. Save `ddp.module.state_dict()`.
import torch._dynamo
from grader import on_ranks
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def body(rank):
    state = DDP(nn.Linear(1, 1)).state_dict()
    try:
        nn.Linear(1, 1).load_state_dict(state)
    except RuntimeError as error:
        return list(state), str(error).splitlines()[1].strip()


print(on_ranks(1, body))

# %% syncbn-shares-parameters SyncBatchNorm
# SyncBatchNorm keeps the norm's parameters the same on all ranks.
#
# DDP does that anyway. What it shares are the statistics of the batch, because the variance of the whole is not the mean of variances. Here in one process: torch's refuses to train on a CPU.
x = torch.tensor([1.0, 1.0, 5.0, 5.0])
shards = [x[:2], x[2:]]
mean_of_variances = torch.stack([s.var(unbiased=False) for s in shards]).mean()
print(mean_of_variances.item(), x.var(unbiased=False).item())

# %% zero-one-shards-all zero_ledger
# ZeRO stage 1 shards optimizer states, gradients and weights.
#
# The optimizer's states alone: Adam's two moments, here. Weights and gradients stay whole.
import torch._dynamo
from grader import on_ranks
from torch import nn
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP


def body(rank):
    layers = [nn.Linear(4, 4, bias=False) for _ in range(4)]
    model = DDP(nn.Sequential(*layers))
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam)
    model(torch.ones(1, 4)).sum().backward()
    optimizer.step()
    moments = [v for state in optimizer.optim.state.values() for v in state.values() if v.dim()]
    return {
        "weights": sum(p.numel() for p in model.parameters()),
        "gradients": sum(p.grad.numel() for p in model.parameters()),
        "moments": sum(v.numel() for v in moments),
    }


print(on_ranks(2, body)[0])

# %% zero-two-splits-backward zero_ledger
# ZeRO stage 2 shares out the backward pass.
#
# Every rank runs it whole, on its own data. What is shared out is the reduced gradient, by a reduce-scatter.
import torch.distributed as dist
from grader import on_ranks


def body(rank):
    gradient, mine = torch.full((4,), rank + 1.0), torch.empty(2)
    dist.reduce_scatter_single(mine, gradient)
    return len(gradient), mine.tolist()


print(on_ranks(2, body))
