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
