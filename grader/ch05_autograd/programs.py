"""Small random programs of tensors and grad modes, and what torch itself makes of them."""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import torch

from grader import draw_one

Program = Sequence[tuple[Any, ...]]
Tensors = dict[str, torch.Tensor]

MODES = {
    "no_grad": torch.no_grad,
    "enable_grad": torch.enable_grad,
    "inference_mode": torch.inference_mode,
}


def run(program: Program) -> dict[str, tuple[bool, bool, str]]:
    """Run a program; return `{name: (requires_grad, is_leaf, owner)}`. Raises what torch raises."""
    tensors = _tensors(program)
    return {name: (t.requires_grad, t.is_leaf, _owner(t, tensors)) for name, t in tensors.items()}


def _tensors(program: Program) -> Tensors:
    tensors: Tensors = {}
    open_modes: list[Any] = []
    with ExitStack() as leave:
        # a program may end inside a mode; modes must be left in order all the same
        leave.callback(lambda: [mode.__exit__(None, None, None) for mode in reversed(open_modes)])
        for step in program:
            _step(step, tensors, open_modes)
    return tensors


def _step(step: tuple[Any, ...], tensors: Tensors, open_modes: list[Any]) -> None:
    match step:
        case ("leaf", name, requires_grad):
            tensors[name] = torch.ones(3, requires_grad=requires_grad)
        case ("add", name, a, b):
            tensors[name] = tensors[a] + tensors[b]
        case ("greater", name, a, b):
            tensors[name] = tensors[a] > tensors[b]
        case ("view", name, a):
            tensors[name] = tensors[a].view(3)
        case ("clone", name, a):
            tensors[name] = tensors[a].clone()
        case ("detach", name, a):
            tensors[name] = tensors[a].detach()
        case ("requires_grad_", a, requires_grad):
            tensors[a].requires_grad_(requires_grad)
        case ("add_", a, b):
            tensors[a].add_(tensors[b])
        case ("enter", mode):
            open_modes.append(MODES[mode]())
            open_modes[-1].__enter__()
        case ("exit",):
            open_modes.pop().__exit__(None, None, None)


def _owner(tensor: torch.Tensor, tensors: Tensors) -> str:
    return next(n for n, other in tensors.items() if other.data_ptr() == tensor.data_ptr())


def random_program(
    rng: torch.Generator, length: int, kinds: Sequence[str], modes: Sequence[str] = ()
) -> list[tuple[Any, ...]]:
    """Draw a program of about `length` steps that torch runs without an error.

    `kinds` are the steps it may have beside leaves, `modes` the grad modes it may enter.
    """
    program: list[tuple[Any, ...]] = [("leaf", "a", True), ("leaf", "b", False)]
    names, depth = ["a", "b"], 0
    viewed: set[str] = set()  # views, and what has views
    shared: set[str] = set()  # what shares memory
    whole: set[str] = set()  # booleans
    step: tuple[Any, ...]
    while len(program) < length:
        kind = draw_one(rng, [*kinds, "leaf", *(["enter", "exit"] if modes else [])])
        one, two = draw_one(rng, names), draw_one(rng, names)
        name = chr(ord("a") + len(names))
        if kind == "enter":
            step, depth = ("enter", draw_one(rng, modes)), depth + 1
        elif kind == "exit":
            if not depth:
                continue
            step, depth = ("exit",), depth - 1
        elif kind == "leaf":
            step = ("leaf", name, draw_one(rng, [True, False]))
        elif kind in ("add", "greater"):
            step = (kind, name, one, two)
        elif kind in ("view", "clone", "detach"):
            step = (kind, name, one)
        elif kind == "requires_grad_":
            # on a tensor that is a view or has one, the flag belongs to both; that is left out
            if one in viewed:
                continue
            step = (kind, one, draw_one(rng, [True, False]))
        else:
            if one in shared or one in whole:
                continue
            step = (kind, one, two)
        if kind in ("add", "add_", "view") and {one, two} & whole:
            continue
        try:
            tensors = _tensors([*program, step])
        except RuntimeError:
            continue
        if any(t.is_inference() and t.requires_grad for t in tensors.values()):
            continue
        program.append(step)
        if kind == "view":
            viewed |= {one, name}
        if kind in ("view", "detach"):
            shared |= {one, name}
        if kind == "greater" or (kind in ("clone", "detach") and one in whole):
            whole.add(name)
        if kind in ("leaf", "add", "greater", "view", "clone", "detach"):
            names.append(name)
    return program


def as_text(program: Program) -> str:
    """Return a program as the Python that it stands for."""
    lines, depth = [], 0
    for step in program:
        match step:
            case ("leaf", name, flag):
                line = f"{name} = torch.ones(3, requires_grad={flag})"
            case ("add", name, a, b):
                line = f"{name} = {a} + {b}"
            case ("greater", name, a, b):
                line = f"{name} = {a} > {b}"
            case ("view", name, a):
                line = f"{name} = {a}.view(3)"
            case ("clone" | "detach" as kind, name, a):
                line = f"{name} = {a}.{kind}()"
            case ("requires_grad_", a, flag):
                line = f"{a}.requires_grad_({flag})"
            case ("add_", a, b):
                line = f"{a}.add_({b})"
            case ("enter", mode):
                line = f"with torch.{mode}():"
            case _:
                lines += ["    " * depth + "pass"] * lines[-1].endswith(":")
                depth -= 1
                continue
        lines.append("    " * depth + line)
        depth += step[0] == "enter"
    lines += ["    " * depth + "pass"] * lines[-1].endswith(":")
    return "\n".join(lines)
