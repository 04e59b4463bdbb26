"""Wrappers, optimizers, hooks, norms: the reference solutions agree with torch on real ranks."""

from functools import partial
from random import Random

import pytest
import torch
import torch._dynamo  # the first DDP imports it, and a fork should not
import torch.distributed as dist
import torch.distributed.optim
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from grader.ch08_ddp.pipeline import ends, most_held
from grader.inside.instruments.ranks import on_ranks
from tests import references

reference = partial(references.reference, "ch08_ddp")


class Branches(nn.Module):
    """Layers that are used or not; one weight is shared, one layer comes twice."""

    def __init__(self, random):
        super().__init__()
        widths = [random.randint(1, 9) for _ in range(5)]
        self.layers = nn.ModuleList(nn.Linear(6, width).double() for width in widths)
        self.back = nn.ModuleList(nn.Linear(width, 6).double() for width in widths)
        self.norm = nn.BatchNorm1d(6).double()

    def forward(self, x, used):
        for number in used:
            x = self.norm(x + self.back[number](self.layers[number](x).tanh()))
        return x


def steps_of(random, ranks):
    """Return, per step, whether it is under no_sync, and each rank's layers and rows."""
    return [
        (
            random.random() < 0.4,
            [random.choices(range(5), k=random.randint(1, 4)) for _ in range(ranks)],
            [torch.randn(random.randint(2, 5), 6, dtype=torch.float64) for _ in range(ranks)],
        )
        for _ in range(6)
    ]


def run_wrapped(wrap, seed, steps, rank):
    torch.manual_seed(seed + rank)
    model = Branches(Random(seed))
    ddp = wrap(model)
    optimizer = torch.optim.Adam(ddp.parameters(), lr=0.05, weight_decay=0.1)
    found = []
    for quiet, used, rows in steps:
        if quiet:
            with ddp.no_sync():
                ddp(rows[rank], used=used[rank]).square().mean().backward()
        else:
            ddp(rows[rank], used=used[rank]).square().mean().backward()
        found.append([None if p.grad is None else p.grad.clone() for p in model.parameters()])
        if not quiet:
            optimizer.step()
            optimizer.zero_grad()
    return found


@pytest.mark.parametrize("seed", range(8))
def test_mini_ddp(seed):
    mini, random = reference("MiniDDP"), Random(seed)
    ranks = 2 + seed % 3
    torch.manual_seed(seed)
    steps = steps_of(random, ranks)

    def body(rank):
        ours = run_wrapped(lambda m: mini(m, 50 + 100 * seed), seed, steps, rank)
        torchs = partial(DistributedDataParallel, find_unused_parameters=True)
        return ours, run_wrapped(torchs, seed, steps, rank)

    for ours, theirs in on_ranks(ranks, body):
        for mine, right in zip(ours, theirs, strict=True):
            assert [g is None for g in mine] == [g is None for g in right]
            for got, expected in zip(mine, right, strict=True):
                if expected is not None:
                    torch.testing.assert_close(got, expected, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("seed", range(4))
def test_zero_optimizer(seed):
    ours, random = reference("ZeroOptimizer"), Random(seed)
    shapes = [(random.randint(1, 6), random.randint(1, 6)) for _ in range(random.randint(3, 9))]

    def body(rank):
        found = []
        for sharded in (True, False):
            torch.manual_seed(seed)
            params = [nn.Parameter(torch.randn(shape, dtype=torch.float64)) for shape in shapes]
            if sharded:
                optimizer = ours(params, lambda tensors: torch.optim.AdamW(tensors, lr=0.1))
            else:
                optimizer = torch.distributed.optim.ZeroRedundancyOptimizer(
                    params, torch.optim.AdamW, lr=0.1
                )
            for _ in range(4):
                for param in params:
                    param.grad = torch.randn_like(param)
                optimizer.step()
            found.append([param.detach() for param in params])
        return found

    for mine, right in on_ranks(2 + seed % 2, body):
        for got, expected in zip(mine, right, strict=True):
            torch.testing.assert_close(got, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_sync_batch_norm(seed):
    norm_of, random = reference("SyncBatchNorm"), Random(seed)
    features, ranks = random.randint(1, 5), random.randint(2, 4)
    rest = [random.randint(1, 3) for _ in range(random.randint(0, 3))]
    torch.manual_seed(seed)
    rows = [random.randint(0, 4) + 2 * (rank == 0) for rank in range(ranks)]
    parts = [torch.randn(n, features, *rest, dtype=torch.float64) * 3 + 7 for n in rows]
    factors = [torch.randn_like(part) for part in parts]

    def body(rank):
        norm = norm_of(features, momentum=0.3).double()
        x = parts[rank].requires_grad_()
        y = norm(x)
        (y * factors[rank]).sum().backward()
        return y.detach(), x.grad, norm.running_mean, norm.running_var

    found = on_ranks(ranks, body)
    whole = torch.cat([part.detach() for part in parts]).requires_grad_()
    mean = torch.zeros(features, dtype=torch.float64)
    var = torch.ones_like(mean)
    right = F.batch_norm(whole, mean, var, training=True, momentum=0.3)
    (right * torch.cat(factors)).sum().backward()
    for place, expected in enumerate((right.detach(), whole.grad)):
        got = torch.cat([result[place] for result in found])
        torch.testing.assert_close(got, expected, rtol=1e-8, atol=1e-9)
    for *_, got_mean, got_var in found:
        torch.testing.assert_close(got_mean, mean)
        torch.testing.assert_close(got_var, var)


def test_compress():
    hook = reference("compress")

    def body(rank):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(30, 20), nn.Linear(20, 10))
        ddp = DistributedDataParallel(model, bucket_cap_mb=0.001)
        ddp.register_comm_hook({}, hook)
        totals = [torch.zeros_like(p) for p in model.parameters()]
        right = [torch.zeros_like(p) for p in model.parameters()]
        for step in range(30):
            torch.manual_seed(100 * step + rank)
            rows = torch.randn(3, 30)
            plain = torch.autograd.grad(model(rows).square().mean(), list(model.parameters()))
            for sums, grad in zip(right, plain, strict=True):
                dist.all_reduce(grad)
                sums += grad / dist.get_world_size()
            model.zero_grad()
            ddp(rows).square().mean().backward()
            for sums, param in zip(totals, model.parameters(), strict=True):
                sums += param.grad
        largest = max(float(grad.abs().max()) for grad in plain)
        return max(float((a - b).abs().max()) for a, b in zip(totals, right, strict=True)), largest

    for off, largest in on_ranks(2, body):
        assert off < 4 * largest / 127  # half a step of the largest scale, and it varies


def test_schedule():
    schedule = reference("schedule")
    for stages in range(1, 9):
        for micro_batches in range(1, 14):
            for kind in ("gpipe", "1f1b"):
                plans = schedule(kind, stages, micro_batches)
                assert ends(plans) == 3 * (micro_batches + stages - 1)
                held = [most_held(plan) for plan in plans]
                behind = [stages - stage if kind == "1f1b" else 99 for stage in range(stages)]
                assert held == [min(count, micro_batches) for count in behind]


@pytest.mark.parametrize("counts", [(2, 5), (0, 3), (4, 1, 3), (1, 1)])
def test_uneven_inputs(counts):
    train = reference("uneven_inputs")
    torch.manual_seed(1)
    rows = [[torch.randn(3, 4, dtype=torch.float64) for _ in range(n)] for n in counts]

    def loss(model, batch):
        return model(batch).square().mean()

    def body(rank):
        found = []
        for joined in (False, True):
            torch.manual_seed(2)
            model = nn.Linear(4, 2).double()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            if joined:
                ddp = DistributedDataParallel(model)
                with ddp.join(divide_by_initial_world_size=False):
                    for batch in rows[rank]:
                        optimizer.zero_grad()
                        loss(ddp, batch).backward()
                        optimizer.step()
            else:
                assert train(model, optimizer, iter(rows[rank]), loss) == max(counts)
            found.append(model.weight.detach().clone())
        return found

    for got, expected in on_ranks(len(counts), body):
        torch.testing.assert_close(got, expected)


@pytest.mark.parametrize("seed", range(4))
def test_scaled_step(seed):
    step, random = reference("scaled_step"), Random(seed)
    torch.manual_seed(seed)
    ranks, scale = random.randint(2, 3), 2.0 ** random.randint(0, 16)
    max_norm = random.choice([0.1, 1.0, 50.0])
    grads = [
        [
            torch.randn(random.randint(1, 9), dtype=torch.float64)
            for _ in range(random.randint(0, 3))
        ]
        for _ in range(ranks)
    ]

    def body(rank):
        params = [nn.Parameter(torch.zeros_like(grad)) for grad in grads[rank]]
        for param, grad in zip(params, grads[rank], strict=True):
            param.grad = grad * scale
        optimizer = torch.optim.SGD(params or [nn.Parameter(torch.zeros(1))], lr=1.0)
        return step(params, optimizer, scale, max_norm), [param.detach() for param in params]

    whole = [nn.Parameter(torch.zeros_like(grad)) for mine in grads for grad in mine]
    for param, grad in zip(whole, (grad for mine in grads for grad in mine), strict=True):
        param.grad = grad.clone()
    right = float(nn.utils.clip_grad_norm_(whole, max_norm))
    found = on_ranks(ranks, body)
    assert [norm for norm, _ in found] == pytest.approx([right] * ranks)
    moved = [param for _, params in found for param in params]
    for got, param in zip(moved, whole, strict=True):
        torch.testing.assert_close(got, -param.grad, rtol=1e-4, atol=1e-8)


def test_zero_ledger():
    ledger = reference("zero_ledger")
    for total in (1, 999, 1000, 4096):
        for ranks in (1, 2, 7, 8):
            kept = [ledger([total], ranks, stage) for stage in range(4)]
            keys = ("parameters", "gradients", "state")
            bytes_kept = [sum(one[key] for key in keys) for one in kept]
            assert bytes_kept[0] == 16 * total
            assert bytes_kept == sorted(bytes_kept, reverse=True) or total < 8
            assert bytes_kept[3] == 16 * -(-total // ranks)
