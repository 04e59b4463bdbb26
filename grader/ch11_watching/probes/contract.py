"""The observer's contract: a run that is watched and one that is not, compared bit by bit.

Four promises. The run is the same: parameters, gradients, buffers, the optimizer's state and all
random numbers. Nothing is kept: no graph, and no more memory the longer one watches. Few values are
read (`reads.py`). And afterwards hooks and modes are gone.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils._pytree import tree_flatten_with_path

State = dict[str, Any]


def seed_all(seed: int) -> None:
    """Seed the three generators that a run draws from: Python's, NumPy's and PyTorch's."""
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


@contextmanager
def own_random() -> Iterator[None]:
    """Put the three generators back at the end, whatever was drawn or seeded within."""
    python, numpy = random.getstate(), np.random.get_state()
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)


def state_of(model: nn.Module, *optimizers: torch.optim.Optimizer) -> State:
    """Return copies of all that a run leaves behind, by a name that a student understands."""
    state: State = {}
    for name, parameter in model.named_parameters():
        state[f"parameter {name}"] = parameter.detach().clone()
        state[f"the gradient of {name}"] = (
            None if parameter.grad is None else parameter.grad.detach().clone()
        )
        state[f"whether {name} requires grad"] = parameter.requires_grad
    for name, buffer in model.named_buffers():
        state[f"buffer {name}"] = buffer.detach().clone()
    for name, module in model.named_modules():
        state[f"the training mode of {name or 'the model'}"] = module.training
    for optimizer in optimizers:
        leaves, _ = tree_flatten_with_path(optimizer.state_dict())
        for path, leaf in leaves:
            where = "".join(map(str, path))
            state[f"the optimizer's {where}"] = (
                leaf.detach().clone() if isinstance(leaf, torch.Tensor) else leaf
            )
    state["PyTorch's random numbers"] = torch.get_rng_state()
    state["Python's random numbers"] = random.getstate()
    kind, keys, *rest = np.random.get_state()
    state["NumPy's random numbers"] = (kind, keys.tolist(), *rest)
    state["grad mode"] = torch.is_grad_enabled()
    return state


def differences(one: State, other: State) -> list[str]:
    """Return the names under which two states are not the same, bit by bit."""
    names = [*one, *(name for name in other if name not in one)]
    return [name for name in names if not _same(one.get(name), other.get(name))]


def _same(one: object, other: object) -> bool:
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        if one.dtype != other.dtype or one.shape != other.shape:
            return False
        flat = (x.contiguous().view(-1).view(torch.uint8) for x in (one, other))
        return torch.equal(*flat)
    return type(one) is type(other) and bool(one == other)


def disturbed(run: Callable[[bool], State]) -> list[str]:
    """Return what is not the same in a run that is watched: `run(watched)` gives its `state_of`.

    The unwatched run goes before and after it, in one process. Should the two differ by themselves,
    the watcher has left something behind that moves a later run: that is named so.
    """
    before, watched, after = run(False), run(True), run(False)
    found = differences(before, watched)
    return found or [f"{name}, of a run after yours" for name in differences(before, after)]


HOOKS = (
    "_forward_hooks",
    "_forward_pre_hooks",
    "_backward_hooks",
    "_backward_pre_hooks",
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)


def left_behind(model: nn.Module, *optimizers: torch.optim.Optimizer) -> list[str]:
    """Return the hooks of a model and its optimizers, and the modes that are on, in words."""
    found = []
    for name, module in model.named_modules():
        count = sum(len(vars(module).get(kind) or ()) for kind in HOOKS)
        found += [f"{count} hooks on the module {name!r}"] if count else []
        if "forward" in vars(module):
            found.append(f"another `forward` on the module {name!r}")
    for name, parameter in model.named_parameters():
        hooks = (parameter._backward_hooks, parameter._post_accumulate_grad_hooks)
        count = sum(len(hook or ()) for hook in hooks)
        found += [f"{count} hooks on the parameter {name!r}"] if count else []
    for optimizer in optimizers:
        hooks = (optimizer._optimizer_step_pre_hooks, optimizer._optimizer_step_post_hooks)
        count = sum(map(len, hooks))
        found += [f"{count} hooks on the optimizer"] if count else []
        if "step" in vars(optimizer) and getattr(optimizer.step, "__self__", None) is None:
            found.append("another `step` on the optimizer")
    globals_ = ("_global_forward_hooks", "_global_forward_pre_hooks", "_global_backward_hooks")
    count = sum(len(getattr(nn.modules.module, kind)) for kind in globals_)
    found += [f"{count} hooks on all modules"] if count else []
    for kind in ("dispatch", "function"):
        count = getattr(torch._C, f"_len_torch_{kind}_stack")()
        found += [f"{count} {kind} modes that are on"] if count else []
    return found


@contextmanager
def nothing_new(model: nn.Module, *optimizers: torch.optim.Optimizer) -> Iterator[list[str]]:
    """Fill a list, at the end of the `with`, with what was left behind that was not there before."""
    found: list[str] = []
    before = left_behind(model, *optimizers)
    try:
        yield found
    finally:
        found += [one for one in left_behind(model, *optimizers) if one not in before]


@contextmanager
def quiet() -> Iterator[None]:
    """Let no warning of torch's through: what it warns of is no question of the exercise."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
