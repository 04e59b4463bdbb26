"""Random programs that write into tensors and their views, as lines of Python."""

from random import Random
from typing import Any

import torch


def random_program(random: Random, length: int) -> list[str]:
    """Return a function's lines: views, writes and new tensors, and what it returns.

    Each line was run on tensors of the right shapes, and what PyTorch refuses was left out. Nothing
    that is written overlaps with what is read for it, unless both are the same tensor.
    """
    names: dict[str, Any] = {"torch": torch, "x": torch.zeros(3, 4), "y": torch.zeros(3, 3)}
    lines: list[str] = []
    while len(lines) < length:
        name = f"t{len(lines)}"
        makers = [a_view, a_view, a_write, a_write, a_write, a_new]
        line = random.choice(makers)(random, _tensors(names), name)
        if line is None:
            continue
        try:
            exec(line, names)
        except (RuntimeError, IndexError):
            continue
        lines.append(line)
    made = [name for name in _tensors(names) if name not in "xy"]
    results = random.sample(made, min(3, len(made)))
    return [*lines, f"return {', '.join(['x', *results])}"]


def _tensors(names: dict[str, Any]) -> dict[str, torch.Tensor]:
    return {name: one for name, one in names.items() if isinstance(one, torch.Tensor)}


def a_view(random: Random, tensors: dict[str, torch.Tensor], name: str) -> str | None:
    """Return a line that makes a view."""
    of = random.choice(list(tensors))
    tensor = tensors[of]
    dims = tensor.dim()
    if dims == 0 or tensor.numel() < 2:
        return None
    size = tensor.shape[0]
    views = [
        f"[{random.randrange(-size, size)}]",
        f"[{random.randrange(size)}:]",
        f"[..., ::{random.choice([1, 2])}]",
        f".unsqueeze({random.randrange(-dims - 1, dims + 1)})",
        ".view(-1)",
        ".squeeze()",
        ".reshape(-1, 2)",
        ".detach()",
    ]
    if dims > 1:
        order = list(range(dims))
        random.shuffle(order)
        order[0] -= dims * random.choice([0, 1])
        views += [
            f"[:, {random.randrange(tensor.shape[1])}]",
            f".transpose({random.randrange(dims)}, -1)",
            f".permute({', '.join(map(str, order))})",
            f".diagonal({random.choice([-1, 0, 1])})",
        ]
    if dims == 2:
        views.append(".t()")
    return f"{name} = {of}{random.choice(views)}"


def a_write(random: Random, tensors: dict[str, torch.Tensor], name: str) -> str | None:
    """Return a line that writes into a tensor."""
    to = random.choice(list(tensors))
    number = random.randint(1, 5)
    writes = [
        f"{to}.add_({number})",
        f"{to}.mul_(2)",
        f"{to}.clamp_(max={number + 20})",
        f"{to} -= {number}",
        f"{to}.masked_fill_({to} > {number}, {number})",
        f"{to}[{to} < {number}] = {-number}",
        f"{to}.fill_({number})",
        f"{to}.add_({to})",
    ]
    there = tensors[to].untyped_storage().data_ptr()
    others = [
        other
        for other, one in tensors.items()
        if one.untyped_storage().data_ptr() != there and one.dim() <= tensors[to].dim()
    ]
    for other in others:
        writes += [
            f"{to}.sub_({other}, alpha={number})",
            f"{to}.copy_({other})",
            f"{to} += {other}",
        ]
    return random.choice(writes)


def a_new(random: Random, tensors: dict[str, torch.Tensor], name: str) -> str | None:
    """Return a line that makes a tensor of its own memory."""
    of = random.choice(list(tensors))
    makes = [
        f"{of} * 2 - 1",
        f"{of}.clone()",
        f"torch.ones(2, 3) + {of}.sum()",
        "torch.zeros(4, 3)",
    ]
    if tensors[of].dim():
        makes.append(f"{of}.sum(0)")
    return f"{name} = {random.choice(makes)}"
