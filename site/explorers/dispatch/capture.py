"""Ask torch for its dispatch tables, key sets and thread states, and write them down as `tables.js`.

    python site/explorers/dispatch/capture.py [where]

Run it when torch changes; a test compares the file with a fresh capture.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

WHERE = Path(__file__).with_name("tables.js")

LANES = (
    "FuncTorchDynamicLayerFrontMode", "PythonTLSSnapshot", "FuncTorchBatched", "AutocastCPU",
    "AutogradMeta", "AutogradCPU", "ADInplaceOrView", "Conjugate", "FuncTorchDynamicLayerBackMode",
    "Python", "BackendSelect", "SparseCPU", "Meta", "CPU",
)  # fmt: skip
"""The keys that the page knows, the highest first."""

OPS = (
    "add.Tensor", "add_.Tensor", "relu", "sum", "view", "t", "reshape", "contiguous", "detach",
    "clone", "to.dtype", "mm", "matmul", "linear", "softmax.int", "layer_norm", "zeros",
    "empty.memory_format", "ones_like", "histc", "select.int", "rsub.Scalar",
    "mul.Tensor", "exp", "pow.Tensor_Scalar", "eq.Scalar", "mean", "permute", "expand",
    "flatten.using_ints", "numpy_T", "zero_", "copy_", "gelu", "cumsum", "chunk",
    # what the composite ones among them call
    "sum.dim_IntList", "transpose.int", "as_strided", "empty_strided", "_to_copy",
    "_softmax", "native_layer_norm", "empty_like", "fill_.Scalar", "sub.Tensor",
    "movedim.int", "movedim.intlist", "stack", "cat", "_unsafe_view", "mean.dim", "split.Tensor", "narrow",
    "slice.Tensor",
)  # fmt: skip

LETTERS = {
    "kernel": "k", "default backend kernel": "d", "math kernel": "m", "autograd kernel": "a",
    "batched kernel": "b", "backend fallback": "f",
}  # fmt: skip
"""How a table names what stands in it; "-" is a fallthrough, "." nothing."""


class Wrapper(torch.Tensor):
    """A tensor that holds another, and takes itself away before an operator runs."""

    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls: type[Wrapper], inner: torch.Tensor) -> Wrapper:
        made: Wrapper = torch.Tensor._make_wrapper_subclass(
            cls, inner.shape, strides=inner.stride(), dtype=inner.dtype, device=inner.device
        )
        made.inner = inner
        return made

    inner: torch.Tensor

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call the operator on what is inside, and wrap what it gives."""
        tree = torch.utils._pytree
        inside = tree.tree_map_only(Wrapper, lambda one: one.inner, (args, kwargs or {}))
        found = func(*inside[0], **inside[1])
        if func._schema.is_mutable:
            return args[0]
        return tree.tree_map_only(torch.Tensor, Wrapper, found)


class Passing(TorchDispatchMode):
    """A mode that sees each operator and lets it run."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def made_in_inference_mode() -> torch.Tensor:
    with torch.inference_mode():
        return plain()


def plain() -> torch.Tensor:
    return torch.full((2, 2), 1.5)


TENSORS: dict[str, Callable[[], torch.Tensor]] = {
    "plain": plain,
    "grad": lambda: plain().requires_grad_(),
    "int": lambda: plain().long(),
    "conj": lambda: plain().to(torch.complex64).conj(),
    "inference": made_in_inference_mode,
    "meta": lambda: plain().to("meta"),
    "sparse": lambda: plain().to_sparse(),
    "subclass": lambda: Wrapper(plain()),
}
MODES: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu"),
    "mode": Passing,
}


def table(op: str) -> str:
    """Return what an operator's table holds for each lane, a letter each."""
    found = {}
    for line in torch._C._dispatch_dump_table(f"aten::{op}").splitlines():
        match = re.match(r"(\w+): (.*?)(?: \[([^\]]*)\])?$", line.strip())
        if match and match[1] in LANES:
            falls = "fallthrough" in match[2]
            found[match[1]] = "-" if falls else LETTERS[match[3] or ""]
    return "".join(found.get(lane, ".") for lane in LANES)


def lanes_of(keys: torch._C.DispatchKeySet) -> list[str]:
    """Return the lanes of a set of keys, the highest first. One key of autograd stands for all its backends."""
    text = str(keys).removeprefix("DispatchKeySet(").removesuffix(")").split(", ")
    return [lane for lane in LANES if lane in text]


def thread() -> tuple[set[str], set[str]]:
    """Return which lanes the thread puts into every key set now, and which it takes out."""
    included = set(lanes_of(torch._C._dispatch_tls_local_include_set()))
    out = torch._C._dispatch_tls_local_exclude_set()
    # Autograd is one bit for all backends: the set prints only one of them.
    excluded = set(lanes_of(out)) | (
        {"AutogradCPU", "AutogradMeta"} if "AutogradOther" in str(out) else set()
    )
    return included, excluded


def under_vmap(look: Callable[[torch.Tensor], Any]) -> Any:
    """Return what `look` gives for a batched tensor, under vmap."""
    found = []
    torch.vmap(lambda v: (found.append(look(v)), v)[1])(torch.ones(2, 2))
    return found[0]


def captured() -> dict[str, Any]:
    """Return all that the page needs of torch."""
    usual = thread()
    threads: dict[str, Any] = {"": [sorted(side, key=LANES.index) for side in usual]}
    seen = {name: _within(mode) for name, mode in MODES.items()}
    seen["vmap"] = under_vmap(lambda _: thread())
    for name, now in seen.items():
        threads[name] = {
            "adds": sorted(now[0] - usual[0], key=LANES.index),
            "drops": sorted(usual[0] - now[0], key=LANES.index),
            "hides": sorted(now[1] - usual[1], key=LANES.index),
            "shows": sorted(usual[1] - now[1], key=LANES.index),
        }
    batched = under_vmap(lambda v: lanes_of(torch._C._dispatch_keys(v)))
    assert set(batched) - set(lanes_of(torch._C._dispatch_keys(plain()))) == {"FuncTorchBatched"}
    return {
        "LANES": LANES,
        "TABLES": {op: table(op) for op in OPS},
        "KEYS": {name: lanes_of(torch._C._dispatch_keys(make())) for name, make in TENSORS.items()},
        "THREAD": threads,
    }


def _within(mode: Callable[[], AbstractContextManager[Any]]) -> tuple[set[str], set[str]]:
    with mode():
        return thread()


def module(found: dict[str, Any]) -> str:
    """Return what was captured as the module that the page imports."""
    parts = ["// What torch says of itself. Written by capture.py; do not edit."]
    for name, value in found.items():
        rows = value.items() if isinstance(value, dict) else None
        if rows is None:
            text = json.dumps(value, separators=(",", ":"))
        else:
            inner = ",\n".join(
                f"{json.dumps(k)}:{json.dumps(v, separators=(',', ':'))}" for k, v in rows
            )
            text = f"{{\n{inner},\n}}"
        parts.append(f"export const {name} = {text};")
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else WHERE
    target.write_text(module(captured()), encoding="utf-8")
