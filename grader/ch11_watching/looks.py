"""Looks of `predict_disturbance`: drawn at random, and run by torch itself on the grader's side."""

from __future__ import annotations

import contextlib
import io
import random
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from grader import draw_int, draw_one, kept
from grader.ch11_watching.probes.contract import State, differences, own_random, seed_all, state_of
from grader.ch11_watching.probes.reads import watch_reads

Look = list[tuple[Any, ...]]
Truth = tuple[bool, int, int, bool]

CODE = {
    "detach": "{} = {}.detach()",
    "data": "{} = {}.data",
    "clone": "{} = {}.clone()",
    "row": "{} = {}[0]",
    "mean": "{} = {}.mean()",
    "item": "{} = {}.item()",
    "tolist": "{} = {}.tolist()",
    "print": "print({})",
    "if": "if {} > 3: pass",
    "shape": "print({}.shape)",
    "append": "kept.append({})",
    "mul_": "{}.mul_(2)",
    "randperm": "torch.randperm(16)",
    "sample": "random.sample(range(16), 4)",
    "eval": "model.eval()",
    "train": "model.train()",
    "forward": "model(probe)",
}
"""A step as Python has it."""

WITHS = {"no_grad": "torch.no_grad()", "fork_rng": "torch.random.fork_rng()"}
MAKES = ("detach", "data", "clone", "row", "mean")
READS = ("item", "tolist", "print", "if", "shape")


def as_text(look: Look) -> str:
    """Return a look as Python."""
    lines, depth = [], 0
    for kind, *args in look:
        if kind == "exit":
            if lines[-1].endswith(":") and "with" in lines[-1]:
                lines.append("    " * depth + "pass")
            depth -= 1
            continue
        code = f"with {WITHS[args[0]]}:" if kind == "enter" else CODE[kind].format(*args)
        lines.append("    " * depth + code)
        depth += kind == "enter"
    return "\n".join(lines)


@own_random()
def training(look: Look) -> tuple[State, int, int, bool]:
    """Run the loop of the statement with a look; return its state, its reads and what it kept."""
    seed_all(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    data = [(torch.randn(16, 4), torch.randn(16, 1)) for _ in range(2)]
    kept: list[Any] = []
    probe, reads = torch.ones(2, 4), 0
    program = compile(as_text(look) or "pass", "look", "exec")
    for _ in range(2):
        for batch, target in data:
            hidden = model[:3](batch)
            loss = ((model[3](hidden) - target) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            weight = model[3].weight
            names: dict[str, Any] = {
                "torch": torch,
                "random": random,
                "model": model,
                "probe": probe,
            }
            names |= {"kept": kept, "loss": loss, "hidden": hidden, "weight": weight}
            names |= {"grad": weight.grad, "batch": batch}
            with watch_reads() as seen, contextlib.redirect_stdout(io.StringIO()):
                exec(program, names)
            reads += seen.count
            optimizer.step()
    state = state_of(model, optimizer) | {f"batch {i}": x.clone() for i, (x, _) in enumerate(data)}
    alive = {t.untyped_storage().data_ptr() for t in [*model.parameters(), *(x for x, _ in data)]}
    storages = {}
    for value in kept:
        if isinstance(value, torch.Tensor):
            storage = value.untyped_storage()
            if storage.data_ptr() not in alive:
                storages[storage.data_ptr()] = storage.nbytes()
    graph = any(isinstance(v, torch.Tensor) and v.grad_fn is not None for v in kept)
    return state, reads // 4, sum(storages.values()) // 4, graph


@kept
def unwatched() -> State:
    """Return the state after the loop without a look."""
    return training([])[0]


@kept
def truth(look: Look) -> Truth:
    """Return what `predict_disturbance` must say of a look, by running it."""
    state, reads, size, graph = training(look)
    return bool(differences(unwatched(), state)), reads, size, graph


def random_look(
    rng: torch.Generator, length: int, kinds: Sequence[str], withs: Sequence[str] = ()
) -> tuple[Look, Truth]:
    """Return a look of at most `length` steps that PyTorch runs without an error, and its truth."""
    while True:
        look = _drawn(rng, length, kinds, withs)
        try:
            return look, truth(look)
        except RuntimeError:
            continue  # such as a write to a leaf that requires grad


def _drawn(rng: torch.Generator, length: int, kinds: Sequence[str], withs: Sequence[str]) -> Look:
    look: Look = []
    depth = 0
    # shape of each name: a row is taken of matrices, an item of what has one element
    shapes = {"loss": 0, "hidden": 2, "weight": 2, "grad": 2, "batch": 2}
    values: list[str] = []
    for number in range(length):
        kind = draw_one(rng, [*kinds, *(["enter"] if withs and depth < 2 else [])])
        if depth and draw_int(rng, 0, 3) == 0:
            look.append(("exit",))
            depth -= 1
        name = draw_one(rng, list(shapes)) if draw_int(rng, 0, 1) else [*shapes][-1]
        if kind == "enter":
            look.append(("enter", draw_one(rng, withs)))
            depth += 1
        elif kind in MAKES:
            if kind == "row" and shapes[name] != 2:
                continue
            new = f"t{number}"
            look.append((kind, new, name))
            dims = {"row": shapes[name] - 1, "mean": 0}
            shapes[new] = dims.get(kind, shapes[name])
        elif kind in READS:
            if kind in ("item", "if") and shapes[name] != 0:
                continue
            if kind in ("item", "tolist"):
                values.append(f"v{number}")
                look.append((kind, values[-1], name))
            else:
                look.append((kind, name))
        elif kind == "append":
            look.append((kind, draw_one(rng, [name, name, *values])))
        elif kind == "mul_":
            look.append((kind, name))
        else:
            look.append((kind,))
    return [*look, *[("exit",)] * depth]
