"""Chapter 8's probes: all of the chapter that runs beside a student's code."""

import os
import select

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils._python_dispatch import TorchDispatchMode

from grader import probe
from grader.instruments.collectives import watch_collectives
from grader.instruments.ranks import on_ranks

SECONDS = 4.0
"""Longest life of ranks here. A right program is done in 0.3 s, and in 1 s at load 17."""

PATIENCE = 2.5
"""Seconds that one rank waits for another to finish its backward, which takes 10 ms."""


@probe
def placed(student, world_size, shapes):
    """Return, by rank, the coordinates in each mesh, and each group's members, rank and sum."""

    def body(rank):
        found = []
        for shape in shapes:
            coordinate, groups = student.coordinates(shape)
            sums = []
            for group in groups:
                one = torch.zeros(world_size, dtype=torch.int64)
                one[rank] = 1
                dist.all_reduce(one, group=group)
                sums.append(one.nonzero().flatten().tolist())
            found.append(
                {
                    "coordinate": coordinate,
                    "members": [dist.get_process_group_ranks(group) for group in groups],
                    "rank in group": [dist.get_rank(group) for group in groups],
                    "reached": sums,
                }
            )
        return found

    return on_ranks(world_size, body, seconds=SECONDS)


class Replica(nn.Module):
    """A model whose tensors are of many kinds; their values depend on the rank, their layouts too.

    `odd` names what is different on this rank: "name", "shape", "dtype" or nothing.
    """

    def __init__(self, base, rank, odd=""):
        super().__init__()

        def numbers(*shape, dtype=torch.float32):
            count = torch.Size(shape).numel()
            return (base + 100 * rank + torch.arange(count)).reshape(shape).to(dtype)

        self.register_buffer("steps", numbers(dtype=torch.int64))
        by_columns = numbers(4, 3).t()  # the same shape on all ranks, another layout on rank 1
        weight = by_columns if rank == 1 else by_columns.contiguous()
        self.weight = nn.Parameter(numbers(4, 3) if odd == "shape" else weight)
        self.frozen = nn.Parameter(numbers(5, dtype=torch.float64), requires_grad=False)
        self.scale = nn.Parameter(numbers(dtype=torch.bfloat16))
        self.empty = nn.Parameter(numbers(0, 3))
        self.inner = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
        with torch.no_grad():
            for tensor in (*self.inner.parameters(), *self.inner.buffers()):
                tensor.copy_(numbers(*tensor.shape))
        self.table = nn.Embedding(64, 128, _weight=numbers(64, 128))
        self.head = nn.Linear(128, 64, bias=False)
        self.head.weight = self.table.weight
        self.register_buffer("mask", (numbers(6) % (2 + rank)) > 0, persistent=False)
        spread = numbers(4, 1).repeat(1, 3)[:, 1] if rank != 2 else numbers(4)
        self.register_buffer("column", spread.half() if odd == "dtype" else spread)
        if odd == "name":
            self.register_buffer("extra", numbers(2))


def tensors_of(module):
    """Return a module's parameters and buffers by name, each once."""
    return dict([*module.named_parameters(), *module.named_buffers()])


@probe
def synced(student, base, world_size, source):
    """Return, by rank, a replica's tensors after `sync_module`, and what became of the objects."""

    def body(rank):
        module = Replica(base, rank)
        before = tensors_of(module)
        kept = {name: (t.stride(), t.requires_grad) for name, t in before.items()}
        with watch_collectives() as seen:
            result = student.sync_module(module, source) if source else student.sync_module(module)
        after = tensors_of(module)
        return {
            "returned": result is not None,
            "values": {name: t.detach().clone() for name, t in after.items()},
            "same objects": [name for name in before if after.get(name) is not before[name]],
            "other layouts": [
                name for name, t in after.items() if kept.get(name) != (t.stride(), t.requires_grad)
            ],
            "tied": module.head.weight is module.table.weight,
            "recorded": [name for name, t in after.items() if not t.is_leaf],
            "bytes": sum(size for name, size in seen.events if name != "recv"),
        }

    return on_ranks(world_size, body, seconds=SECONDS)


@probe
def sync_refused(student, base, odd, odd_rank):
    """Return, by rank, what came of replicas of which one is odd: raised, and what has changed."""

    def body(rank):
        module = Replica(base, rank, odd if rank == odd_rank else "")
        before = {name: t.detach().clone() for name, t in tensors_of(module).items()}
        try:
            student.sync_module(module, 1)
            raised = "nothing"
        except Exception as error:
            raised = type(error).__name__
        after = tensors_of(module)
        return {"raised": raised, "changed": [n for n in before if not same(before[n], after[n])]}

    return on_ranks(3, body, seconds=SECONDS)


def same(left, right):
    """Say whether two tensors have the same shape, dtype and values."""
    return left.dtype == right.dtype and left.shape == right.shape and bool((left == right).all())


@probe
def averaged(student, values, cases):
    """Return, by rank and case, all gradients after `average_gradients`, and what else happened.

    A case is a triple: gradients, a list for each rank, with a tensor or None for each parameter;
    samples of each rank; positions of frozen parameters.
    """

    def run(rank, grads, samples, frozen):
        parameters = [nn.Parameter(value.clone()) for value in values]
        for number, (parameter, grad) in enumerate(zip(parameters, grads[rank], strict=True)):
            parameter.grad = grad
            parameter.requires_grad_(number not in frozen)
        with watch_collectives() as seen:
            result = student.average_gradients(iter(parameters), samples[rank])
        return {
            "returned": result is not None,
            "grads": [p.grad.detach().clone() if p.grad is not None else None for p in parameters],
            "recorded": any(p.grad is not None and p.grad.requires_grad for p in parameters),
            "values": all(same(p.detach(), v) for p, v in zip(parameters, values, strict=True)),
            "bytes": sum(size for _, size in seen.events),
        }

    def body(rank):
        return [run(rank, *case) for case in cases]

    return on_ranks(len(cases[0][1]), body, seconds=SECONDS)


class Addressed(TorchDispatchMode):
    """Notes to which rank each message was sent, and its bytes."""

    def __init__(self):
        super().__init__()
        self.sent = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.name() == "c10d::send":
            self.sent.append((args[2], sum(tensor.nbytes for tensor in args[0])))
        return func(*args, **(kwargs or {}))


@probe
def ringed(student, cases):
    """Return, by rank and case, the sum, the messages sent and what became of `x`.

    `cases` has a list for each case: one tensor for each rank.
    """

    def body(rank):
        found = []
        for tensors in cases:
            x = tensors[rank]
            before = x.clone()
            with watch_collectives() as seen, Addressed() as messages:
                result = student.ring_all_reduce(x)
            found.append(
                {
                    "sum": result,
                    "untouched": same(x, before),
                    "others": sorted({name for name in seen.names if name not in ("send", "recv")}),
                    "sent": messages.sent,
                }
            )
        return found

    return on_ranks(len(cases[0]), body, seconds=SECONDS)


def chained(parameters, uses, x):
    """Return one number computed from `x` (3, 3) by using parameters one after the other."""
    h = x
    for at in uses:
        p = parameters[at].double()
        h = torch.tanh(h @ p if p.dim() == 2 else h * p if p.dim() == 0 else h + p)
    return (h * h).sum()


def in_turn(x, turn):
    """Return the input of an iteration."""
    return x * (1 + turn)


@probe
def planned(student, values, capacities, frozen):
    """Return the plan for each capacity."""
    parameters = [
        nn.Parameter(value.clone(), requires_grad=number not in frozen)
        for number, value in enumerate(values)
    ]
    return [student.Buckets(iter(parameters), capacity).plan for capacity in capacities]


@probe
def bucketed(student, values, uses, xs, capacity, turns, frozen):
    """Return, by rank and iteration, the averaged gradients and the order of events.

    `uses` has, for each rank, the positions of the parameters in the order in which it uses them.
    """

    def body(rank):
        parameters = [nn.Parameter(value) for value in values]
        for position in frozen:
            parameters[position].requires_grad_(False)
        found, logs = [], []
        for number, parameter in enumerate(parameters):
            if number not in frozen:
                parameter.register_post_accumulate_grad_hook(
                    lambda _, number=number: logs[-1].note(f"gradient {number}")
                )
        buckets = student.Buckets(iter(parameters), capacity)
        for turn in range(turns):
            for parameter in parameters:
                parameter.grad = None
            with watch_collectives() as seen:
                logs.append(seen)
                chained(parameters, uses[rank], in_turn(xs[rank], turn)).backward()
                seen.note("finish")
                buckets.finish()
            found.append(
                {
                    "grads": [None if p.grad is None else p.grad.clone() for p in parameters],
                    "events": list(seen.events),
                }
            )
        return found

    return on_ranks(len(xs), body, seconds=SECONDS)


@probe
def overlapped(student, values, xs, capacity):
    """Return whether rank 0's backward was through before rank 1 began its own; and gradients.

    Rank 1 waits for rank 0's word, but no longer than `PATIENCE`.
    """
    ear, mouth = os.pipe()
    uses = list(range(len(values)))

    def body(rank):
        parameters = [nn.Parameter(value) for value in values]
        buckets = student.Buckets(parameters, capacity)
        total = chained(parameters, uses, xs[rank])
        heard = rank == 0 or bool(select.select([ear], [], [], PATIENCE)[0])
        total.backward()
        if rank == 0:
            os.write(mouth, b"!")
        buckets.finish()
        return {"heard": heard, "grads": [p.grad.clone() for p in parameters]}

    try:
        return on_ranks(2, body, seconds=PATIENCE + SECONDS)
    finally:
        os.close(ear)
        os.close(mouth)


@probe
def bucket_missing(student, values, x, capacity):
    """Return, by rank, what `finish` raised after a backward that left out a parameter."""

    def body(rank):
        parameters = [nn.Parameter(value) for value in values]
        buckets = student.Buckets(parameters, capacity)
        uses = list(range(len(values)))
        chained(parameters, uses, x).backward()
        buckets.finish()
        for parameter in parameters:
            parameter.grad = None
        chained(parameters, [at for at in uses if at != 1], x).backward()
        try:
            buckets.finish()
        except Exception as error:
            return type(error).__name__
        return "nothing"

    return on_ranks(2, body, seconds=SECONDS)


def small_model(weights):
    """Return a float64 model of three weights (4, 3), (4,) and (1, 4), and one that is frozen."""
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)).double()
    with torch.no_grad():
        for parameter, value in zip(model.parameters(), weights, strict=False):
            parameter.copy_(value)
        model[2].bias.fill_(0.5)
    model[2].bias.requires_grad_(False)
    return model


def loss_of_output(output):
    """Return the mean loss over samples. `output` (samples, 1)."""
    return (output.exp() + output.square()).mean()


@probe
def accumulated(student, weights, micro_batches, turns):
    """Return, by rank and turn, gradients, the loss returned, and the order of events.

    `micro_batches` has a list of tensors for each rank.
    """

    def body(rank):
        model = small_model(weights)
        ddp = DistributedDataParallel(model)
        found = []
        for _ in range(turns):
            ddp.zero_grad()
            with watch_collectives() as seen:

                def drawn(seen=seen):
                    for number, x in enumerate(micro_batches[rank]):
                        seen.note(f"take {number}")
                        yield x

                def loss_of(output, seen=seen):
                    seen.note(f"loss of {len(output)}")
                    return loss_of_output(output)

                loss = student.accumulate(ddp, drawn(), loss_of)
            found.append(
                {
                    "loss": loss,
                    "grads": [None if p.grad is None else p.grad.clone() for p in ddp.parameters()],
                    "events": list(seen.events),
                }
            )
        return found

    return on_ranks(len(micro_batches), body, seconds=SECONDS)


def used_in(parameters, uses, kind):
    """Return a loss that depends on the parameters numbered in `uses`."""
    h = torch.ones(2, dtype=torch.float64)
    for at in uses:
        h = h * parameters[at].double().sum()
    if kind == "deep":
        for _ in range(3000):
            h = h + 1
    if kind == "wide":
        for _ in range(60):
            h = (h + h) / 2
    if kind == "detached":
        h = h + sum(p.detach().double().sum() for p in parameters)
    return h.sum()


@probe
def filled(student, values, cases):
    """Return, by rank and case, what `fill_unused` said, all `.grad`s after it, and what was sent.

    A case has, for each rank, what its loss uses, and of which kind it is; then the parameters that
    have a gradient from before, and those that are frozen. The first parameter is listed twice.
    """

    def run(rank, uses, kinds, stale, frozen):
        parameters = [nn.Parameter(value) for value in values]
        for at in frozen:
            parameters[at].requires_grad_(False)
        for at in stale:
            parameters[at].grad = torch.full_like(values[at], 7.0)
        loss = used_in(parameters, uses[rank], kinds[rank])
        with watch_collectives() as seen:
            used = student.fill_unused(loss, [*parameters, parameters[0]])
        return {
            "used": used,
            "grads": [None if p.grad is None else p.grad.clone() for p in parameters],
            "flags": [p.grad is not None and p.grad.requires_grad for p in parameters],
            "events": list(seen.events),
        }

    def body(rank):
        return [run(rank, *case) for case in cases]

    return on_ranks(2, body, seconds=SECONDS)
