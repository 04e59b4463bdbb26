"""What torch.profiler itself says of small programs, beside the trace that it wrote of them.

`told` asks the profiler's objects, `prof.events()` and `prof.key_averages()`, and not the file.
"""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.profiler import ProfilerActivity, profile, record_function
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

from tests import module_at
from tests.explorers.harness import EXPLORERS

FOLDER = EXPLORERS / "watching"


def capture() -> ModuleType:
    """The script that writes traces.js."""
    return module_at(FOLDER / "capture.py")


def mlp(optimizer: str) -> None:
    """A training step of two layers."""
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    stepped = getattr(torch.optim, optimizer)(model.parameters(), lr=0.1)
    with record_function("forward"):
        loss = F.cross_entropy(model(torch.randn(5, 8)), torch.randint(0, 4, (5,)))
    loss.backward()
    stepped.step()


def accumulated() -> None:
    """Three backwards into one gradient, in record_functions within each other."""
    w = torch.randn(6, 6, requires_grad=True)
    for number in range(3):
        with record_function("micro"), record_function(f"micro {number}"):
            (torch.randn(4, 6) @ w).tanh().sum().backward()


def convolution() -> None:
    """A convolution with batch norm."""
    model = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.MaxPool2d(2))
    model(torch.randn(2, 2, 8, 8)).square().mean().backward()


def attention() -> None:
    """Attention by hand."""
    q, k, v = (torch.randn(2, 5, 4, requires_grad=True) for _ in range(3))
    weights = (q @ k.transpose(-2, -1)).softmax(-1)
    (weights @ v).sum().backward()


def checkpointed(reentrant: bool) -> None:
    """A block that backward computes again, by either implementation."""
    w = torch.randn(6, 6, requires_grad=True)
    checkpoint(lambda x: torch.tanh(x @ w), torch.randn(3, 6, requires_grad=True), use_reentrant=reentrant).sum().backward()  # fmt: skip


def loaded() -> None:
    """A loader without workers."""
    for (x,) in DataLoader(TensorDataset(torch.randn(6, 3)), batch_size=2):
        x.sum()


PROGRAMS: dict[str, Callable[[], None]] = {
    "sgd": partial(mlp, "SGD"), "adam": partial(mlp, "Adam"), "accumulated": accumulated, "convolution": convolution,
    "attention": attention, "checkpointed": partial(checkpointed, False), "reentrant": partial(checkpointed, True),
    "loaded": loaded,
}  # fmt: skip


def recorded(run: Callable[[], None], **options: Any) -> tuple[str, profile]:
    """Return the text of a program's trace, and the profiler."""
    torch.manual_seed(0)
    run()
    usual = {"profile_memory": True, "record_shapes": True}
    with profile(activities=[ProfilerActivity.CPU], **{**usual, **options}) as result:
        run()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        result.export_chrome_trace(str(path))
        return path.read_text(encoding="utf-8"), result


def shuffled(text: str, seed: int) -> str:
    """Return the trace with its events in another order. Digits stay as they are."""
    start = text.index('"traceEvents": [') + len('"traceEvents": [')
    end = text.rindex("]")
    parts = json.loads(f"[{text[start:end]}]", parse_float=lambda digits: f"@{digits}@")
    # Of two that begin and end together the later one in the file is inside: these keep their order.
    order = list(range(len(parts)))
    random.Random(seed).shuffle(order)
    spans: dict[tuple[Any, ...], list[int]] = {}
    for number in sorted(order):
        spans.setdefault((parts[number].get("ts"), parts[number].get("dur")), []).append(number)
    rank = {number: order.index(spans_first[0]) for spans_first in spans.values() for number in spans_first}  # fmt: skip
    moved = [parts[number] for number in sorted(order, key=lambda number: (rank[number], number))]
    return json.dumps({"traceEvents": moved}).replace('"@', "").replace('@"', "")


def told(result: profile) -> dict[str, Any]:
    """Return what the profiler's own objects say: a row for each call, by name; the table; links."""
    events = [e for e in result.events() if e.name != "[memory]"]
    calls = sorted(
        [
            e.name,
            e.cpu_parent.name if e.cpu_parent else "",
            round(e.cpu_time_total * 1000),
            round(e.self_cpu_time_total * 1000),
            e.self_cpu_memory_usage,
        ]
        for e in events
    )
    return {"calls": calls, "table": capture().table(result)}
