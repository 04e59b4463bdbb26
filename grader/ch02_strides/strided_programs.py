"""Programs of steps on a strided tensor: what torch makes of them, and random ones.

A program is a list: (numbers, size, stride, offset), then steps (name, tensor number, arguments).
Parts of an index are data: a number, (first, last, step), None or "...".
"""

from typing import Any

import torch

from grader import draw_int, draw_one, draw_order

Steps = list[tuple[Any, ...]]
Found = dict[str, Any] | str


def index_of(parts: list[Any]) -> tuple[Any, ...]:
    """Return the index that the data stand for."""
    return tuple(
        slice(*part) if isinstance(part, tuple) else (... if part == "..." else part)
        for part in parts
    )


def run(program: Steps) -> list[torch.Tensor | str]:
    """Return the tensor of each step, or the name of the error that the exercise asks for."""
    (numbers, size, stride, offset), *steps = program
    tensors: list[Any] = [torch.tensor(numbers).as_strided(size, stride, offset)]
    for what, which, *args in steps:
        try:
            tensors.append(_step(tensors, what, tensors[which], *args))
        except IndexError:
            tensors.append("IndexError")
        except (ValueError, RuntimeError):
            tensors.append("ValueError")
    return tensors


def _step(tensors: list[Any], what: str, x: torch.Tensor, *args: Any) -> torch.Tensor:
    if what == "index":
        return x[index_of(args[0])]
    if what == "write":
        x[index_of(args[0])].fill_(args[1])  # unlike `=`, which refuses expanded targets
        return x
    if what == "copy":
        target = x[index_of(args[0])]
        target.copy_(tensors[args[1]].clone().expand(target.shape))
        return x
    result: torch.Tensor = getattr(x, what)(*(args or [()]))
    return result


def expected(program: Steps) -> list[Found]:
    """Return what the probe should bring back, with "any" for strides that do not matter."""
    tensors = run(program)
    home = tensors[0].untyped_storage()._cdata  # type: ignore[union-attr]
    return [x if isinstance(x, str) else _facts(x, home) for x in tensors]


def _facts(x: torch.Tensor, home: int) -> dict[str, Any]:
    return plain(
        {
            "size": tuple(x.shape),
            "stride": x.stride(),
            "offset": x.storage_offset(),
            "list": x.tolist(),
            "shares": x.untyped_storage()._cdata == home,
        }
    )


def plain(found: Found) -> Found:
    """Return what is known of a tensor, without what the exercise leaves open."""
    if isinstance(found, str):
        return found
    size = tuple(found["size"])
    strides = zip(size, found["stride"], strict=False)
    kept = tuple("any" if n == 1 or 0 in size else step for n, step in strides)
    return {
        **found,
        "size": size,
        "stride": kept,
        "offset": "any" if 0 in size else found["offset"],
    }


def start(rng: torch.Generator) -> tuple[Any, ...]:
    """Return numbers with a size, a stride and an offset for two to four dimensions."""
    size = [draw_int(rng, 1, 4) for _ in range(draw_int(rng, 2, 4))]
    order = draw_order(rng, len(size))
    stride, step = [0] * len(size), 1
    for dim in order:
        stride[dim] = step
        step *= size[dim] + (draw_int(rng, 0, 2) == 0)
    offset = draw_int(rng, 0, 3)
    return list(range(100, 100 + offset + step)), size, stride, offset


def random_program(rng: torch.Generator, length: int) -> Steps:
    """Return a program of `length` steps, each on a tensor that is there."""
    program: Steps = [start(rng)]
    while len(program) <= length:
        tensors = run(program)
        there = [k for k, x in enumerate(tensors) if isinstance(x, torch.Tensor)]
        which = there[-1] if draw_int(rng, 0, 2) else draw_one(rng, there)
        program.append(_any_step(rng, tensors, which))
    return program


def _any_step(rng: torch.Generator, tensors: list[Any], which: int) -> tuple[Any, ...]:
    x = tensors[which]
    kind = draw_int(rng, 0, 9)
    if kind < 4 or not x.dim():
        return "index", which, random_index(rng, x)
    if kind == 4:
        return "transpose", which, draw_int(rng, 0, x.dim() - 1), draw_int(rng, -x.dim(), -1)
    if kind == 5:
        grown = [draw_int(rng, 2, 3) if n == 1 else n for n in x.shape]
        return "expand", which, *[2] * draw_int(rng, 0, 1), *grown
    if kind in (6, 7):
        return ("view", "reshape")[kind - 6], which, *random_size(rng, x.numel())
    return "write", which, random_index(rng, x), draw_int(rng, 0, 99)


def random_index(rng: torch.Generator, x: torch.Tensor) -> list[Any]:
    """Return an index that fits `x`, or that hardly does not."""
    parts: list[Any] = []
    for n in x.shape[: draw_int(rng, 0, x.dim())]:
        kind = draw_int(rng, 0, 5)
        if kind < 2 and n:
            parts.append(draw_int(rng, -n, n - 1))
        elif kind == 2:
            parts.append((None, None, draw_int(rng, 1, 3)))
        else:
            parts.append(
                (draw_int(rng, -n - 1, n + 1), draw_int(rng, -n - 1, n + 2), draw_int(rng, 1, 2))
            )
    if draw_int(rng, 0, 2) == 0:
        parts.insert(draw_int(rng, 0, len(parts)), None)
    if draw_int(rng, 0, 2) == 0:
        parts.insert(draw_int(rng, 0, len(parts)), "...")
    return _fitted(parts, x)


def _fitted(parts: list[Any], x: torch.Tensor) -> list[Any]:
    """Return the index, with whole dimensions for numbers that an `...` moved out of range."""
    try:
        x[index_of(parts)]
    except IndexError:
        return [part if not isinstance(part, int) else (None, None, 1) for part in parts]
    return parts


def random_size(rng: torch.Generator, count: int) -> list[int]:
    """Return a size of `count` elements."""
    size, left = [], count
    while left > 1 and len(size) < 4:
        divisors = [n for n in range(2, left + 1) if left % n == 0]
        size.append(draw_one(rng, divisors))
        left //= size[-1]
    size.append(left)
    if draw_int(rng, 0, 1):
        size.insert(draw_int(rng, 0, len(size)), 1)
    return size
