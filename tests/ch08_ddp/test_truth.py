"""Chapter 8's reference solutions agree with torch's own on many random cases, between real ranks."""

import copy
from functools import partial
from itertools import pairwise
from random import Random

import pytest
import torch
import torch._dynamo  # DDP imports it: once here, not in every fork
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.parallel import DistributedDataParallel

from grader.ch08_ddp.probes.accumulation import loss_of_output
from grader.ch08_ddp.probes.unused import used_in
from grader.inside.instruments.ranks import on_ranks
from tests import references

reference = partial(references.reference, "ch08_ddp")


def normal(*shape, random):
    generator = torch.Generator().manual_seed(random.randrange(2**40))
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def mlp(random):
    """Return a float64 model of one to three layers, from 3 features to 1."""
    widths = [3, *(random.randint(1, 5) for _ in range(random.randint(0, 2))), 1]
    layers = []
    for before, after in pairwise(widths):
        layers += [nn.Linear(before, after, bias=random.random() < 0.7), nn.Tanh()]
    model = nn.Sequential(*layers).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(normal(*parameter.shape, random=random))
    return model


def gradients(model):
    found = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    return found


def assert_all_close(ours, theirs):
    for mine, expected in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("shapes", [[(6,), (2, 3), (3, 1, 2)], [(2, 2, 2), (4, 2), (1, 8)]])
def test_coordinates(shapes):
    coordinates = reference("coordinates")

    def body(rank):
        for shape in shapes:
            place, groups = coordinates(shape)
            mesh = init_device_mesh("cpu", shape, mesh_dim_names=tuple("abc"[: len(shape)]))
            assert list(place) == list(mesh.get_coordinate())
            for name, group in zip("abc", groups, strict=False):
                theirs = mesh.get_group(name)
                members = dist.get_process_group_ranks
                assert members(group) == members(theirs)

    on_ranks(torch.Size(shapes[0]).numel(), body)


def test_sync_module():
    sync_module = reference("sync_module")

    def body(rank):
        random = Random(1)
        for _ in range(20):
            model = nn.Sequential(mlp(random), nn.BatchNorm1d(1)).double()
            with torch.no_grad():
                for tensor in model.state_dict().values():
                    tensor += rank
            ours, theirs = model, copy.deepcopy(model)
            sync_module(ours)
            theirs = DistributedDataParallel(theirs).module
            expected = theirs.state_dict()
            assert all(torch.equal(t, expected[name]) for name, t in ours.state_dict().items())

    on_ranks(3, body)


def test_average_gradients():
    average_gradients = reference("average_gradients")

    def body(rank):
        random = Random(2)
        for _ in range(40):
            model = mlp(random)
            sizes = [random.choice([0, 1, 1, 2, 5]) for _ in range(3)]
            sizes[random.randrange(3)] += 1
            x = normal(sum(sizes), 3, random=random)
            loss_of_output(model(x)).backward()
            whole = gradients(model)
            loss_of_output(model(x.split(sizes)[rank])).backward()
            average_gradients(model.parameters(), sizes[rank])
            assert_all_close(gradients(model), whole)

    on_ranks(3, body)


@pytest.mark.parametrize("ranks", [2, 3, 5])
def test_ring_all_reduce(ranks):
    ring_all_reduce = reference("ring_all_reduce")

    def body(rank):
        random = Random(3)
        for _ in range(60):
            shape = [random.randint(0, 6) for _ in range(random.randint(0, 3))]
            x = (normal(*shape, random=random) * 1000).long() * (rank + 1)
            axes = random.sample(range(len(shape)), len(shape))
            total = x.clone()
            dist.all_reduce(total)
            assert torch.equal(ring_all_reduce(x.permute(axes)), total.permute(axes))

    on_ranks(ranks, body)


def test_buckets():
    buckets_of = reference("Buckets")

    def body(rank):
        random = Random(4)
        for _ in range(30):
            model = mlp(random)
            capacity = random.choice([1, 40, 100, 1000])
            x = normal(2, 4, 3, random=random)[rank]
            theirs = DistributedDataParallel(copy.deepcopy(model))
            buckets = buckets_of(model.parameters(), capacity)
            for turn in range(3):
                loss_of_output(model(x * turn)).backward()
                buckets.finish()
                loss_of_output(theirs(x * turn)).backward()
                assert_all_close(gradients(model), gradients(theirs))

    on_ranks(2, body)


def test_accumulate():
    accumulate = reference("accumulate")

    def body(rank):
        random = Random(5)
        for _ in range(20):
            model = mlp(random)
            x = normal(2, 6, 3, random=random)
            loss_of_output(model(x.view(12, 3))).backward()
            whole = gradients(model)
            sizes = [random.choice([[6], [1, 5], [2, 1, 3], [1] * 6]) for _ in range(2)]
            ddp = DistributedDataParallel(model)
            loss = accumulate(ddp, iter(x[rank].split(sizes[rank])), loss_of_output)
            assert_all_close(gradients(model), whole)
            assert loss == pytest.approx(loss_of_output(model(x[rank])).item(), rel=1e-10)

    on_ranks(2, body)


def test_fill_unused():
    fill_unused = reference("fill_unused")

    def body(rank):
        random = Random(6)
        for _ in range(60):
            parameters = [nn.Parameter(normal(2, random=random)) for _ in range(6)]
            uses = [random.sample(range(6), random.randint(0, 4)) for _ in range(3)]
            kind = random.choice(["plain", "wide", "detached"])
            loss = used_in(parameters, uses[rank], "plain" if not uses[rank] else kind)
            used = fill_unused(loss, parameters)
            assert used == [any(at in own for own in uses) for at in range(6)]
            for at, parameter in enumerate(parameters):
                filled = used[at] and at not in uses[rank]
                assert (parameter.grad is not None) == filled
            if uses[rank]:
                mine = torch.autograd.grad(loss, parameters, allow_unused=True)
                assert [g is not None for g in mine] == [at in uses[rank] for at in range(6)]

    on_ranks(3, body)
