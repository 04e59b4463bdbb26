"""Chapter 10's layers, attention and clipping agree with what PyTorch makes of plain modules."""

import copy
from functools import partial

import torch
import torch._dynamo  # DTensor imports it: once here, not in every fork
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.utils import clip_grad_norm_

from grader.inside.instruments.ranks import on_ranks
from tests import references

reference = partial(references.reference, "ch10_sharding")


def test_two_layers_are_those_of_parallelize_module():
    mlp = reference("mlp")
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 8), nn.GELU(), nn.Linear(8, 3)).double()
    x = torch.randn(2, 3, dtype=torch.float64)

    def body(rank):
        theirs, inputs = copy.deepcopy(model), [x.clone().requires_grad_() for _ in range(2)]
        plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
        parallelize_module(theirs, init_device_mesh("cpu", (2,)), plan)
        up, up_bias, down, _ = (p.to_local().detach().requires_grad_() for p in theirs.parameters())
        down_bias = model[2].bias.detach().clone().requires_grad_()
        ours = mlp(inputs[0], up, up_bias, down, down_bias)
        out = theirs(inputs[1])
        for one in (ours, out):
            one.square().sum().backward()
        grads = [p.grad.to_local() for p in theirs.parameters()]
        pairs = [(ours, out), (inputs[0].grad, inputs[1].grad)]
        pairs += list(zip((up.grad, up_bias.grad, down.grad, down_bias.grad), grads, strict=True))
        return [torch.allclose(mine, right, atol=1e-12) for mine, right in pairs]

    assert on_ranks(2, body) == [[True] * 6] * 2


def test_a_ring_attends_as_one_process_does():
    ring_attention = reference("ring_attention")
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 2, 12, 4, dtype=torch.float64)

    def mine(x, rank):
        chunks = x.chunk(6, 1)
        return torch.cat([chunks[rank], chunks[5 - rank]], 1)

    def body(rank):
        group = dist.new_group([0, 1, 2])
        right = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        got = ring_attention(*(mine(x, rank) for x in (q, k, v)), group, True)
        return torch.allclose(got, mine(right, rank), atol=1e-12)

    assert on_ranks(3, body) == [True] * 3


def test_clipping_is_that_of_dtensors_on_a_mesh():
    clip = reference("clip")
    torch.manual_seed(0)
    wholes = [torch.randn(5, 4), torch.randn(3), torch.randn(2, 3)]
    placed = [[Shard(0), Shard(1)], [Shard(0), Replicate()], [Replicate(), Shard(1)]]
    named = [
        tuple(("shard", one.dim) if isinstance(one, Shard) else "replicate" for one in where)
        for where in placed
    ]

    def body(rank):
        mesh = init_device_mesh("cpu", (2, 2))
        parameters = []
        for whole, where in zip(wholes, placed, strict=True):
            parameter = nn.Parameter(distribute_tensor(torch.zeros_like(whole), mesh, where))
            parameter.grad = distribute_tensor(whole, mesh, where)
            parameters.append(parameter)
        mine = [p.grad.to_local().clone() for p in parameters]
        norm = clip(mine, named, [mesh.get_group(dim) for dim in range(2)], 1.0)
        theirs = clip_grad_norm_(parameters, 1.0).full_tensor().item()
        same = [
            torch.allclose(ours, p.grad.to_local(), atol=1e-5)
            for ours, p in zip(mine, parameters, strict=True)
        ]
        return abs(norm - theirs) < 1e-4, same

    assert on_ranks(4, body) == [(True, [True] * 3)] * 4
