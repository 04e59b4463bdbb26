"""What a flight recorder should have recorded: the same training, watched by a plain oracle."""

from __future__ import annotations

import json
import math
from contextlib import suppress
from typing import Any

import torch
from torch import nn

from grader import kept
from grader.ch11_watching.event_files import Malformed, read_file
from grader.ch11_watching.probes.flying import Flight
from grader.verdict.compare import Mismatch, about

Record = tuple[int, dict[str, float]]

SAYS = {
    "plain": "two ReLUs in place, BatchNorm, Dropout, Adam with two groups, one with a tensor for its `lr`, a schedule",
    "accumulated": "three micro-batches a step; `loss.div_(3)` after `note(loss=loss)`",
    "scaled": "a GradScaler that skips two steps",
    "clipped": "gradients clipped to a norm of 0.5 before the step",
    "checkpointed": "a checkpointed block, with the same ReLU as in front of it",
    "tied": "one ReLU at two places, tied weights, a frozen layer, AdamW, a schedule",
    "evaluated": "a call of the model in `eval()` after each step",
    "cast": "autocast to bfloat16",
    "raises": "the loop raises a KeyError in its sixth step",
    "breaks": "the model's forward raises a KeyError in its sixth call",
}
"""What each kind of training is about, for a message."""


class Oracle:
    """Records a flight as a plain program would: it reads at once, and counts in Python."""

    def __init__(self, flight: Flight) -> None:
        self.flight = flight
        self.noted: dict[str, list[float]] = {}
        self.zeros: dict[str, list[int]] = {}
        self.records: list[Record] = []
        self.calls: list[bool] = []
        self.running = False
        model, optimizer = flight.model, flight.optimizer
        model.register_forward_pre_hook(self._begins)
        model.register_forward_hook(self._ends, always_call=True)
        for name, module in model.named_modules():
            if isinstance(module, nn.ReLU):
                module.register_forward_hook(self._counting(name))
        optimizer.register_step_pre_hook(self._steps)

    def _begins(self, module: nn.Module, _: Any) -> None:
        self.calls.append(module.training)
        self.running = module.training

    def _ends(self, *_: Any) -> None:
        self.running = False

    def _counting(self, name: str) -> Any:
        def count(module: nn.Module, _: Any, output: torch.Tensor) -> None:
            if self.running:
                pair = self.zeros.setdefault(name, [0, 0])
                pair[0] += int((output == 0).sum())
                pair[1] += output.numel()

        return count

    def note(self, **values: Any) -> None:
        for name, value in values.items():
            self.noted.setdefault(name, []).append(float(torch.as_tensor(value).detach()))

    def _steps(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        found = {name: sum(some) / len(some) for name, some in self.noted.items()}
        squares, any_gradient = 0.0, False
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    squares += float(parameter.grad.double().square().sum())
                    any_gradient = True
        if any_gradient:
            found["grad_norm"] = math.sqrt(squares)
        for place, group in enumerate(optimizer.param_groups):
            found[f"lr/{place}"] = float(group["lr"])
        for name, (zeros, count) in self.zeros.items():
            found[f"zeros/{name}"] = zeros / count
        self.noted, self.zeros = {}, {}
        self.records.append((len(self.records) + 1, found))


@kept
def expected(kind: str, seed: int, steps: int, first: int = 0) -> Oracle:
    """Return what an oracle has recorded of a training."""
    state = torch.get_rng_state()
    flight = Flight(kind, seed)
    oracle = Oracle(flight)
    with suppress(KeyError):
        flight.run(steps, oracle.note, first=first)
    torch.set_rng_state(state)
    if first:
        oracle.records = [(step + first, values) for step, values in oracle.records]
    return oracle


def recorded(files: dict[str, bytes]) -> list[Record]:
    """Return the events of a folder, in order; what START makes void is left out."""
    found: list[Record] = []
    for name in sorted(files):
        if name.startswith("events."):
            with about(of=f"Of {name.split('.')[0]}…: "):
                try:
                    events = read_file(files[name])
                except Malformed as error:
                    raise Mismatch(str(error)) from None
            for event in events:
                step = event.step or 0
                if event.start:
                    found = [one for one in found if one[0] < step]
                if event.values:
                    found.append((step, dict(event.values)))
    return found


def spans_in(files: dict[str, bytes], name: str) -> list[dict[str, Any]]:
    """Return the spans of a trace file, by begin. Raises `Mismatch`."""
    if name not in files:
        raise Mismatch(f"There is no file `{name}`.", (("the files", ", ".join(sorted(files))),))
    try:
        events = json.loads(files[name])["traceEvents"]
    except (ValueError, KeyError, TypeError):
        raise Mismatch(f"The file `{name}` is no trace.") from None
    spans = [event for event in events if event.get("ph") == "X"]
    return sorted(spans, key=lambda span: span["ts"])
