"""What torch does with shapes, for the matmul explorer: results, refusals, kernels, copies, FLOPs.

The profiler watches, not a TorchDispatchMode: under a mode matmul takes another road. It holds a mode's
tensors for subclasses and folds (2, 3, 4) @ (1, 4, 5) into one mm, where it otherwise runs a bmm.
"""

from __future__ import annotations

import random
import string
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, record_function
from torch.utils.flop_counter import FlopCounterMode

Shape = tuple[int, ...]
FUNCTIONS: dict[str, Callable[..., torch.Tensor]] = {
    "dot": torch.dot,
    "mv": torch.mv,
    "mm": torch.mm,
    "bmm": torch.bmm,
    "matmul": torch.matmul,
    "linear": torch.nn.functional.linear,
}
KERNELS = {"aten::dot", "aten::mv", "aten::mm", "aten::bmm", "aten::mul", "aten::sum"}


def outcome(
    function: Callable[..., torch.Tensor], *tensors: torch.Tensor
) -> tuple[list[int] | None, str]:
    """The result's shape, or None and what torch said against it."""
    try:
        return list(function(*tensors).shape), ""
    except (RuntimeError, IndexError) as error:
        return None, str(error)


def tensors(
    shapes: Sequence[Shape], dtype: torch.dtype = torch.float32, grads: Sequence[bool] = ()
) -> list[torch.Tensor]:
    """Contiguous tensors; the first ones need a gradient where `grads` says so."""
    made = [torch.ones(shape, dtype=dtype) for shape in shapes]
    for tensor, grad in zip(made, grads, strict=False):
        tensor.requires_grad_(grad)
    return made


def traces(runs: Sequence[Callable[[], Any]]) -> list[dict[str, Any]]:
    """Of each run: its kernels with their operands' shapes, in order, and the shapes it cloned."""
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as seen:
        for i, run in enumerate(runs):
            with record_function(f"run {i}"):
                run()
    found: list[dict[str, Any]] = [{"kernels": [], "operands": [], "clones": []} for _ in runs]
    for event in seen.events():
        parents = list(_parents(event))
        run_name = next((name for name in parents if name.startswith("run ")), None)
        if run_name is None or KERNELS & set(parents):
            continue  # what a kernel does inside is its own affair
        into = found[int(run_name[4:])]
        if event.name in KERNELS:
            into["kernels"].append(event.name.removeprefix("aten::"))
            into["operands"].append([list(s) for s in event.input_shapes[:2]])
        elif event.name == "aten::clone":
            into["clones"].append(list(event.input_shapes[0]))
    return found


def _parents(event: Any) -> Iterator[str]:
    while (event := event.cpu_parent) is not None:
        yield event.name


def flops(run: Callable[[], Any]) -> int:
    """What torch counts: mm and bmm only."""
    with FlopCounterMode(display=False) as counter:
        run()
    return int(counter.get_total_flops())


# ── Random questions ──

SIZES = (1, 2, 3, 4, 5)


def pairs(count: int, seed: int) -> list[tuple[Shape, Shape]]:
    """Two shapes that often fit, often nearly fit, and sometimes have nothing to do with each other."""
    rng = random.Random(seed)
    return [_pair(rng) for _ in range(count)]


def grads(count: int, seed: int) -> list[tuple[bool, bool]]:
    """Whether the two operands need a gradient: neither, as often as any other answer."""
    rng = random.Random(seed)
    return [(rng.random() < 0.5, rng.random() < 0.5) for _ in range(count)]


def _pair(rng: random.Random) -> tuple[Shape, Shape]:
    m, k, n = (rng.choice((0, *SIZES, *SIZES)) for _ in range(3))
    other = k if rng.random() < 0.85 else rng.choice(SIZES)
    batch = [rng.choice((0, *SIZES * 3)) for _ in range(rng.choice((0, 0, 1, 1, 2, 3)))]
    a = (*_stretchable(rng, batch), m, k)
    b = (*_stretchable(rng, batch), other, n)
    if rng.random() < 0.15:
        a = a[-1:]
    if rng.random() < 0.15:
        b = b[-2:-1]
    if rng.random() < 0.2:
        b = (*b[:-2], *b[-2:][::-1])  # as linear wants it
    if rng.random() < 0.05:
        a, b = rng.choice((((), b), (a, ()), (b, a)))
    return a, b


def _stretchable(rng: random.Random, batch: list[int]) -> list[int]:
    """The batch, perhaps shorter from the left, with some sizes 1 and rarely a wrong one."""
    start = rng.randint(0, len(batch)) if rng.random() < 0.4 else 0
    return [
        1 if (roll := rng.random()) < 0.3 else rng.choice(SIZES) if roll < 0.34 else size
        for size in batch[start:]
    ]


def equations(count: int, seed: int) -> list[tuple[str, list[Shape]]]:
    """einsum's equations with shapes: one to three operands, diagonals, ellipses, sizes 1, and faults."""
    rng = random.Random(seed)
    return [_equation(rng) for _ in range(count)]


def _equation(rng: random.Random) -> tuple[str, list[Shape]]:
    alphabet = rng.sample(string.ascii_letters, rng.randint(1, 5))
    sizes = {letter: rng.choice((0, *SIZES * 3)) for letter in alphabet}
    dots = [rng.choice(SIZES) for _ in range(rng.randint(0, 2))]
    inputs, shapes = [], []
    for _ in range(rng.choice((1, 2, 2, 2, 2, 3))):
        letters = [rng.choice(alphabet) for _ in range(rng.randint(0, 4))]
        if rng.random() < 0.7:
            letters = list(dict.fromkeys(letters))
        stretch = {c: 1 if rng.random() < 0.08 else sizes[c] for c in letters}
        shape = [rng.choice(SIZES) if rng.random() < 0.01 else stretch[c] for c in letters]
        if rng.random() < 0.25:
            at = rng.randint(0, len(letters))
            letters.insert(at, "...")
            shape[at:at] = _stretchable(rng, dots)
        inputs.append("".join(letters))
        shapes.append(tuple(shape))
    equation = ",".join(inputs)
    if rng.random() < 0.7:
        used = sorted(set(equation) & set(string.ascii_letters))
        output = rng.sample(used, rng.randint(0, len(used)))
        if "..." in equation and rng.random() < 0.7:
            output.insert(rng.randint(0, len(output)), "...")
        equation += "->" + "".join(output)
    if rng.random() < 0.12:
        at = rng.randint(0, len(equation))
        equation = equation[:at] + rng.choice(" .,->1" + alphabet[0]) + equation[at:]
    return equation, shapes
