"""Golden layouts for the strides explorer: random tensors, random methods, and what torch makes of them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import torch

SEED = 20_13
MOST_CELLS, MOST_ELEMENTS, MOST_DIMS = 128, 256, 6  # of the explorer's page

Case = dict[str, Any]


def layout(tensor: torch.Tensor) -> Case:
    """Size, stride and offset, as the explorer has them."""
    return {
        "size": list(tensor.shape),
        "stride": list(tensor.stride()),
        "offset": tensor.storage_offset(),
    }


def tensors(source: random.Random, most_dims: int = 4) -> Iterator[torch.Tensor]:
    """Windows on arange: dense, permuted, expanded, with gaps, overlapping, empty, without dimensions."""
    while True:
        size = [
            source.choice([0, 1, 1, 2, 2, 3, 3, 4]) for _ in range(source.randint(0, most_dims))
        ]
        if source.random() < 0.8:
            size = [max(n, 1) for n in size]
        kind = source.choice(["dense", "permuted", "permuted", "narrowed", "any"])
        if kind == "any":
            stride = [source.randint(0, 6) for _ in size]
            yield _window(size, stride, source.randint(0, 3))
        else:
            whole = [n + source.randint(0, 1) for n in size] if kind == "narrowed" else size
            order = list(range(len(size)))
            if kind != "dense":
                source.shuffle(order)
            stride, step = [0] * len(size), 1
            for dim in reversed(order):
                stride[dim] = step
                step *= max(whole[dim], 1)
            if size and source.random() < 0.15:
                stride[source.randrange(len(size))] = 0
            yield _window(size, stride, source.choice([0, 0, 1, 5]))


def _window(size: list[int], stride: list[int], offset: int) -> torch.Tensor:
    last = sum((n - 1) * s for n, s in zip(size, stride, strict=True))
    cells = offset + last + 1 if all(size) else offset
    return torch.arange(cells + 2).as_strided(size, stride, offset)


def cells(tensor: torch.Tensor) -> int:
    """How many elements its storage holds."""
    return tensor.untyped_storage().nbytes() // tensor.element_size()


def fits(tensor: torch.Tensor) -> bool:
    """Say whether the explorer shows it."""
    return (
        tensor.dim() <= MOST_DIMS
        and tensor.numel() <= MOST_ELEMENTS
        and cells(tensor) <= MOST_CELLS
    )


def target(source: random.Random, numel: int) -> list[int]:
    """A shape of that many elements, sometimes with a −1 or an idle 1, rarely of another number."""
    shape, rest = [], numel
    while rest > 1 and len(shape) < 4:
        factors = [n for n in range(2, rest + 1) if rest % n == 0]
        shape.append(source.choice(factors))
        rest //= shape[-1]
    shape = [*shape, rest] if rest != 1 or source.random() < 0.1 else shape
    source.shuffle(shape)
    if source.random() < 0.25:
        shape.insert(source.randint(0, len(shape)), 1)
    if shape and source.random() < 0.2:
        shape[source.randrange(len(shape))] = -1
    if shape and source.random() < 0.04:
        shape[0] += 1
    return shape


def method(source: random.Random, x: torch.Tensor) -> str:
    """One method with arguments, as Python has it; now and then one that torch refuses."""
    dims = x.dim()
    dim = source.randint(-max(dims, 1), max(dims, 1) - 1)
    if source.random() < 0.03:
        dim += source.choice([-3, 3])
    other = source.randint(-max(dims, 1), max(dims, 1) - 1)
    length = x.shape[dim] if -dims <= dim < dims else 1
    order = list(range(dims))
    source.shuffle(order)

    def numbers(all_of: list[int]) -> str:
        return ", ".join(map(str, all_of)) or "()"

    match source.choice(
        [
            "transpose",
            "permute",
            "narrow",
            "select",
            "expand",
            "unfold",
            "diagonal",
            "unsqueeze",
            "squeeze",
            "flip",
            "view",
            "view",
            "reshape",
            "reshape",
            "flatten",
            "repeat",
            "contiguous",
            "channels_last",
            "clone",
            "t",
            "index",
            "index",
        ]
    ):
        case "transpose":
            return f"transpose({dim}, {other})"
        case "permute":
            return f"permute({numbers(order)})"
        case "narrow":
            start = source.randint(-1, length)
            return f"narrow({dim}, {start}, {source.randint(0, max(length - max(start, 0), 0))})"
        case "select":
            return f"select({dim}, {source.randint(-length, max(length - 1, 0))})"
        case "expand":
            sizes = [
                source.choice([-1, n]) if n != 1 else source.choice([-1, 1, 2, 3]) for n in x.shape
            ]
            fresh = [source.randint(0, 3) for _ in range(source.choice([0, 0, 1, 2]))]
            return f"expand({numbers(fresh + sizes)})"
        case "unfold":
            return f"unfold({dim}, {source.randint(0, length + (source.random() < 0.1))}, {source.randint(1, 3)})"
        case "diagonal":
            return f"diagonal({source.randint(-3, 3)}, {dim}, {other})"
        case "unsqueeze":
            return f"unsqueeze({source.randint(-dims - 1, dims)})"
        case "squeeze":
            return source.choice(["squeeze()", f"squeeze({dim})"])
        case "flip":
            return f"flip({numbers(order[: source.randint(1, 2)])})"
        case ("view" | "reshape") as name:
            return f"{name}({numbers(target(source, x.numel()))})"
        case "flatten":
            return f"flatten({dim}, {other})"
        case "repeat":
            times = [source.randint(1, 2) for _ in range(dims + source.choice([0, 0, 1]))]
            return f"repeat({numbers(times)})"
        case "channels_last":
            return "contiguous(memory_format=torch.channels_last)"
        case "index":
            return _index(source, x)
        case name:
            return f"{name}()"


def _index(source: random.Random, x: torch.Tensor) -> str:
    parts = []
    for length in x.shape[: source.randint(0, x.dim())]:
        start = source.choice(["", source.randint(-length - 1, length + 1)])
        stop = source.choice(["", source.randint(-length - 1, length + 1)])
        step = source.choice(["", "", ":", ":1", ":2", ":3"])
        whole = f"{start}:{stop}{step}"
        single = str(source.randint(-length, length - 1)) if length else ":"
        parts.append(source.choice([whole, whole, single]))
    if source.random() < 0.2:
        parts.insert(source.randint(0, len(parts)), "None")
    if source.random() < 0.2:
        parts.insert(source.randint(0, len(parts)), "...")
    return f"[{', '.join(parts) or ':'}]" if x.dim() or parts else "[None]"


def called(x: torch.Tensor, text: str) -> torch.Tensor | None:
    """What torch makes of it; None if it refuses."""
    try:
        result = eval(f"x{text}" if text.startswith("[") else f"x.{text}", {"x": x, "torch": torch})
    except (RuntimeError, IndexError, ValueError, TypeError):
        return None
    assert isinstance(result, torch.Tensor)
    return result


def histories(count: int, methods: int = 4) -> Iterator[Case]:
    """Random tensors and what becomes of them, method by method, up to the first that is refused."""
    source = random.Random(SEED)
    for x in tensors(source):
        if count == 0:
            return
        count -= 1
        case: Case = {"base": layout(x), "cells": cells(x), "steps": []}
        for _ in range(source.randint(1, methods)):
            text = method(source, x)
            if x.dim() == 0 and text.startswith(("unfold", "narrow", "select")):
                continue  # torch lets some of these through; the explorer has nothing to show there
            after = called(x, text)
            if after is not None and not fits(after):
                break
            step: Case = {"text": text, "refused": after is None}
            if after is not None:
                moved = after.untyped_storage().data_ptr() != x.untyped_storage().data_ptr()
                step |= layout(after)
                step |= {"copied": moved and after.numel() > 0, "values": after.flatten().tolist()}
                step["empty"] = after.numel() == 0
                step["cells"] = cells(after)
            case["steps"].append(step)
            if after is None:
                break
            x = after
        yield case


def targets(count: int) -> Iterator[Case]:
    """Random tensors and shapes of as many elements, and whether `view` works."""
    source = random.Random(SEED + 1)
    for x in tensors(source, most_dims=5):
        if count == 0:
            return
        shape = [n for n in target(source, x.numel()) if n != -1]
        if torch.Size(shape).numel() != x.numel():
            continue
        count -= 1
        try:
            stride = list(x.view(shape).stride())
        except RuntimeError:
            stride = None
        yield {**layout(x), "target": shape, "wanted": stride}


def flags(count: int) -> Iterator[Case]:
    """Random tensors and what torch says of their memory; overlap is counted, not guessed."""
    source = random.Random(SEED + 2)
    for x in tensors(source, most_dims=5):
        if count == 0:
            return
        count -= 1
        if x.dim() >= 4 and source.random() < 0.5:
            form = torch.channels_last if x.dim() == 4 else torch.channels_last_3d
            x = torch.empty(x.shape).contiguous(memory_format=form)
        read = (
            torch.arange(cells(x)).as_strided(x.shape, x.stride(), x.storage_offset())
        ).flatten()
        found, times = read.unique(return_counts=True)
        form = {4: torch.channels_last, 5: torch.channels_last_3d}.get(x.dim())
        yield {
            **layout(x),
            "contiguous": x.is_contiguous(),
            "channels": form is not None and x.is_contiguous(memory_format=form),
            "dense": bool(torch.ops.aten.is_non_overlapping_and_dense(x)),
            "shared": found[times > 1].tolist(),
            "cells": read.tolist(),
        }
