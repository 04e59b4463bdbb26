"""Golden answers for the ddp explorer, and models of its own that are held against real ranks.

Buckets are torch's own function's. The clock of an overlapped backward, the states of a ring and the
ledger of ZeRO are models in Python, written another way than the explorer's.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel.distributed import _BucketCapacityConfig

SEED = 20_13
MIB = 2**20

Case = dict[str, Any]


# ── Networks, as their sources have them ─────────────────────────────────────

H200 = {
    1 / 32: 3.15, 1 / 16: 6.16, 1 / 8: 12.46, 1 / 4: 24.68, 1 / 2: 48.15, 1: 74.57, 2: 96.26,
    4: 145.14, 8: 196.56, 16: 255.90, 32: 301.25, 64: 368.86, 128: 414.54,
}  # fmt: skip
"""GB/s of bus bandwidth of eight ranks, by MiB: 2 · 7/8 of the bytes by the time. ml-engineering's
network/benchmarks/README.md, "How the calls are timed", at 0cc3de50."""

B200 = {1: 6.44, 2: 10.73, 4: 16.33, 8: 26.12, 16: 37.06, 32: 73.76, 64: 102.07, 128: 134.45}
"""GB/s, bytes by the time, by MiB, of 32 ranks on four machines. The same page, "all_reduce benchmark"."""

PUBLISHED: dict[str, dict[float, float]] = {
    "node": {size: size * MIB * 7 / 4 / (rate * 1e6) for size, rate in H200.items()},
    "nodes": {size: size * MIB / (rate * 1e6) for size, rate in B200.items()},
    # rtx6kpro's hardware/pcie-bandwidth.md at 070506ff: NCCL's µs by bytes; 41.1 GB/s of bus bandwidth
    "pcie": {2**-12: 0.0246, 2**-10: 0.0241, 2**-7: 0.0242, 2**-5: 0.0245, 2**-4: 0.0241,
             64: 64 * MIB * 7 / 4 / 41.1e6},
    "home": {1e-3: 0.354, 20e6 / MIB: 180.0},
}  # fmt: skip
"""Milliseconds of an all-reduce, by MiB."""


# ── Buckets ──────────────────────────────────────────────────────────────────


def buckets(sizes: list[int], limits: list[int]) -> list[list[int]]:
    """Which of these go together, in bytes, as DDP asks after its first backward."""
    tensors = [torch.empty(size, dtype=torch.uint8, device="meta") for size in sizes]
    order = list(range(len(sizes)))
    found, _ = dist._compute_bucket_assignment_by_size(tensors, limits, [False] * len(sizes), order)
    return found


def limits(plan: float | str) -> list[int]:
    """The caps of a plan of the explorer, from DDP's own constructor."""
    if plan == "one":
        return [2**53 - 1]
    given = None if plan == "default" else 0 if plan == "each" else plan
    config = _BucketCapacityConfig.create(given, None, False)
    return [config.first_bucket_bytes_cap, config.bucket_bytes_cap]


def assignments(count: int) -> Iterator[Case]:
    """Sizes and limits of all kinds: around each other, and far apart; with what torch makes of them."""
    source = random.Random(SEED)
    for _ in range(count):
        cap = source.choice([0, 1, 4, 40, 1000, MIB, 25 * MIB])
        caps = [cap, *(source.randint(0, 2 * cap + 1) for _ in range(source.randint(0, 2)))]
        sizes = [_size(source, cap) for _ in range(source.randint(1, 40))]
        yield {"sizes": sizes, "limits": caps, "wanted": buckets(sizes, caps)}


def _size(source: random.Random, cap: int) -> int:
    return source.choice(
        [source.randint(0, 3), cap, cap // 2, source.randint(0, cap), source.randint(0, 3 * cap)]
    )


# ── Overlap ──────────────────────────────────────────────────────────────────


def clock(
    layers: list[Case], plan: float | str, bandwidth: float, latency: float, after: bool
) -> Case:
    """Go through the events of one backward in order, in exact numbers."""
    names, sizes, ready = [], [], []
    now = Fraction(0)
    for layer in reversed(layers):
        now += Fraction(layer["time"])
        for parameter in reversed(layer["params"]):
            names.append(parameter["name"])
            sizes.append(parameter["bytes"])
            ready.append(now)
    end_of_backward, wire = now, Fraction(0)
    rows, events, done = [], [], 0
    for number, members in enumerate(buckets(sizes, limits(plan))):
        events += [["g", names[member]] for member in members]
        events.append(["B", number, [names[member] for member in members]])
        done += len(members)
        begin = max(wire, end_of_backward if after else max(ready[m] for m in members))
        size = sum(sizes[m] for m in members)
        wire = begin + Fraction(latency) + Fraction(size, MIB) / Fraction(bandwidth)
        rows.append([members, size, max(ready[m] for m in members), begin, wire])
    assert done == len(names)
    # Second by second: what of the wire's time lies before the end of backward?
    hidden = sum(max(Fraction(0), min(to, end_of_backward) - begin) for *_, begin, to in rows)
    busy = sum(to - begin for *_, begin, to in rows)
    return {
        "events": events,
        "rows": [[m, size, *map(float, times)] for m, size, *times in rows],
        "sums": [float(t) for t in (end_of_backward, busy, wire, busy - hidden, hidden)],
    }


def overlaps(count: int) -> Iterator[Case]:
    """Random models under random plans."""
    source = random.Random(SEED + 1)
    for _ in range(count):
        shapes = [
            [
                [source.randint(1, 1500) for _ in range(source.randint(1, 2))]
                for _ in range(source.randint(1, 4))
            ]
            for _ in range(source.randint(1, 16))
        ]
        times = [source.choice([0, 0.25, 1, 2.5, source.randint(1, 20)]) for _ in shapes]
        plan = source.choice(["default", "each", "one", 0.5, 1, 4, 0.1, source.random() * 10])
        knobs = {
            "plan": plan,
            "bandwidth": source.choice([0.25, 0.5, 1, 3, 8, 64]),
            "latency": source.choice([0, 0.1, 0.5, 2, 5]),
            "after": source.random() < 0.25,
        }
        layers = build(shapes, times)
        yield {"shapes": shapes, "times": times, **knobs, **clock(layers, **knobs)}


def build(shapes: list[list[list[int]]], times: list[float]) -> list[Case]:
    """Layers with names and bytes of their float32 parameters."""
    layers = []
    for number, (params, time) in enumerate(zip(shapes, times, strict=True), start=1):
        kinds: list[str] = []
        named = []
        for shape in params:
            kind = "weight" if len(shape) > 1 else "bias"
            kinds.append(kind)
            nth = kinds.count(kind)
            name = f"{number}.{kind}{nth if nth > 1 else ''}"
            named.append({"name": name, "bytes": 4 * torch.Size(shape).numel()})
        layers.append({"time": time, "params": named})
    return layers


# ── Ring ─────────────────────────────────────────────────────────────────────


def start(ranks: int, size: int) -> torch.Tensor:
    """(ranks, size): what each rank brings, in a decimal digit of its own."""
    return torch.stack([(torch.arange(size) % 9 + 1) * 10**rank for rank in range(ranks)])


def ring(ranks: int, size: int) -> Case:
    """Who holds what after each step, told from the end: whose numbers have come how far."""
    own = start(ranks, size)
    cut = torch.arange(size).tensor_split(ranks)
    states, sent = [], [[0] * ranks]
    for step in range(2 * ranks - 1):
        state = []
        for rank in range(ranks):
            row = []
            for piece in range(ranks):
                # Piece p sets out from rank p and is at rank p + k after k steps.
                distance = (rank - piece) % ranks
                if distance + ranks <= step:
                    members = set(range(ranks))
                elif distance <= step:
                    members = {(piece + hop) % ranks for hop in range(distance + 1)}
                else:
                    members = {rank}
                whole = sum(own[m][cut[piece]] for m in members)
                row.append([sorted(members), torch.as_tensor(whole).tolist()])
            state.append(row)
        states.append(state)
        if step:
            moved = [len(cut[(rank - step + 1) % ranks]) for rank in range(ranks)]
            sent.append([a + b for a, b in zip(sent[-1], moved, strict=True)])
    return {"ranks": ranks, "size": size, "states": states, "sent": sent}


def rings() -> list[Case]:
    """All that the page can show."""
    return [ring(ranks, size) for ranks in range(2, 7) for size in range(1, 25)]


# ── ZeRO ─────────────────────────────────────────────────────────────────────

OPTIMIZERS: dict[str, Any] = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "adam": lambda p: torch.optim.Adam(p, lr=0.1),
}


def nbytes(*tensors: torch.Tensor) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def state_bytes(optimizer: torch.optim.Optimizer) -> int:
    """What the optimizer keeps; `step`, four bytes per tensor, is told apart by the explorer's notes."""
    return nbytes(
        *(
            value
            for state in optimizer.state.values()
            for name, value in state.items()
            if isinstance(value, torch.Tensor) and name != "step"
        )
    )


def kept(params: int, ranks: int, optimizer: str, precision: str, stage: int) -> list[int]:
    """Bytes of weights, gradients, master and state: of tensors that rank 0 would hold, made and stepped."""
    shard = -(-params // ranks)
    dtype = torch.float32 if precision == "fp32" else torch.bfloat16
    weights = torch.zeros(shard if stage >= 3 else params, dtype=dtype)
    gradients = torch.zeros(shard if stage >= 2 else params, dtype=dtype)
    owned = torch.nn.Parameter(torch.zeros(shard if stage >= 1 else params))
    owned.grad = torch.zeros_like(owned)
    stepper = OPTIMIZERS[optimizer]([owned])
    stepper.step()
    master = (
        nbytes(owned) if precision == "mixed" else 0
    )  # in fp32 the weights are their own master
    return [nbytes(weights), nbytes(gradients), master, state_bytes(stepper)]


def ledgers(count: int) -> Iterator[Case]:
    source = random.Random(SEED + 2)
    for _ in range(count):
        case = {
            "params": source.choice([1, 7, 1000, source.randint(1, 5000)]),
            "ranks": source.choice([1, 2, 3, 8, 64, source.randint(1, 100)]),
            "optimizer": source.choice(list(OPTIMIZERS)),
            "precision": source.choice(["fp32", "mixed"]),
        }
        yield {**case, "wanted": [kept(**case, stage=stage) for stage in range(4)]}
