# Sharded training: claims, what is true, and programs that show it.

# %% shards-are-even cut
# Shards are as even as possible.
#
# Each rank takes the length divided by the ranks, rounded up, as long as there are rows. The last may have none.
import torch._dynamo
from grader import on_ranks
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor


def body(rank):
    mesh = init_device_mesh("cpu", (4,))
    return len(distribute_tensor(torch.arange(5), mesh, [Shard(0)]).to_local())


print(on_ranks(4, body))

# %% collectives-are-differentiable mlp
# Autograd goes through a collective.
#
# It goes past it. `all_reduce` works in place, and the gradient is that of the line before, with a warning at best.
import warnings

import torch._dynamo
import torch.distributed as dist
from grader import on_ranks


def body(rank):
    warnings.simplefilter("ignore")
    w = torch.tensor([1.0], requires_grad=True)
    y = w * (rank + 1)
    dist.all_reduce(y)
    y.backward()
    return y.item(), w.grad.item()


print(on_ranks(2, body))

# %% replicate-means-equal redistribute
# A DTensor that is replicated is the same on all ranks.
#
# It is what its maker says. `from_local` asks nobody; `distribute_tensor` sends rank 0's.
import torch._dynamo
from grader import on_ranks
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate


def body(rank):
    mesh = init_device_mesh("cpu", (2,))
    x = DTensor.from_local(torch.tensor([rank]), mesh, [Replicate()], run_check=False)
    return x.full_tensor().item()


print(on_ranks(2, body))

# %% dropped-references-free Unit
# To delete a weight that was gathered frees its memory.
#
# Autograd has kept it for backward. Its storage has to be emptied.
from grader import watch_memory

x = torch.ones(1, 64, requires_grad=True)
with watch_memory() as memory:
    whole = torch.ones(64, 64)
    y = x @ whole
    del whole
    print("deleted:", memory.live_bytes)
with watch_memory() as memory:
    whole = torch.ones(64, 64)
    y = x @ whole
    whole.untyped_storage().resize_(0)
    y + 1
    print("emptied:", memory.live_bytes)

# %% optimizer-follows Unit
# An optimizer follows its model through `fully_shard`.
#
# It holds the parameters that it was made of. They are the model's no longer: it steps, and nothing moves.
import torch._dynamo
from grader import on_ranks
from torch import nn
from torch.distributed.fsdp import fully_shard


def body(rank):
    model = nn.Linear(2, 2, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    fully_shard(model)
    before = model.weight.full_tensor().detach().clone()
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    return not torch.equal(before, model.weight.full_tensor())


print("moved:", on_ranks(2, body))

# %% backward-of-a-sum-is-a-sum mlp
# The backward of an all-reduce is an all-reduce.
#
# It is if each rank has a loss of its own and their sum is meant: so PyTorch's functions for autograd have it. Where all ranks compute one and the same loss, every gradient comes out too large by the number of ranks.
import torch._dynamo
import torch.distributed as dist
from grader import on_ranks
from torch.distributed.nn.functional import all_reduce


class Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x = x.clone()
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad


def body(rank):
    found = []
    for how in (Sum.apply, all_reduce):
        w = torch.ones(1, requires_grad=True)
        how(w * 1.0).sum().backward()  # the same loss on every rank
        found.append(w.grad.item())
    return found


print("passed on, summed again:", on_ranks(4, body)[0])

# %% dtensor-says-when redistribute
# A collective stands where the program calls one.
#
# A DTensor calls them on its own, where an operator needs another layout. Twice a sum needs nobody; a sum plus one has to be added up first.
import torch._dynamo
from grader import on_ranks, watch_collectives
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial


def body(rank):
    mesh = init_device_mesh("cpu", (4,))
    x = DTensor.from_local(torch.ones(8, 8), mesh, [Partial()])
    found = {}
    for name, do in (("x * 2", lambda: x * 2), ("x + 1", lambda: x + 1)):
        with watch_collectives() as seen:
            do()
        found[name] = list(seen.names)
    return found


print(on_ranks(4, body)[0])

# %% no-sync-saves-messages Unit
# Between two steps of an optimizer, FSDP without synchronisation sends nothing.
#
# The reduce-scatters are left out. The all-gathers of the weights are not: a rank cannot compute without them.
import torch._dynamo
from grader import on_ranks, watch_collectives
from torch import nn
from torch.distributed.fsdp import fully_shard


def body(rank):
    model = nn.Sequential(*[nn.Linear(16, 16, bias=False) for _ in range(3)])
    for layer in model:
        fully_shard(layer)
    fully_shard(model)
    counts = []
    for sync in (True, False):
        model.set_requires_gradient_sync(sync)
        with watch_collectives() as seen:
            model(torch.ones(1, 16)).sum().backward()
        names = list(seen.names)
        gathers = sum("gather" in name for name in names)
        counts.append((gathers, sum("scatter" in name for name in names)))
    return counts


print("gathers and scatters with and without:", on_ranks(4, body)[0])

# %% root-only-saves Unit
# `fully_shard(model)` keeps one layer in memory at a time.
#
# It keeps one *unit*, and that is what you gave it: the whole model. Each block has to be given to it first.
import torch._dynamo
from grader import on_ranks, watch_collectives
from torch import nn
from torch.distributed.fsdp import fully_shard


def body(rank):
    found = []
    for each in (False, True):
        model = nn.Sequential(*[nn.Linear(16, 16, bias=False) for _ in range(3)])
        for layer in model if each else ():
            fully_shard(layer)
        fully_shard(model)
        with watch_collectives() as seen, torch.no_grad():
            model(torch.ones(1, 16))
        found.append([size for name, size in seen.events if "gather" in name])
    return found


whole, each = on_ranks(4, body)[0]
print("what a rank brings to each gather:", whole, "and", each)
