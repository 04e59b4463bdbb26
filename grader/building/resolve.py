"""Does a rule of what is off limits name something? One that names nothing forbids nothing.

Names are looked up in the installed torch, so a rule that a new torch has no more is found too.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from importlib.util import find_spec

import torch

from grader.building.reading import VERSION
from grader.course.rules import Rule, RuleKind

ELSEWHERE = frozenset({"onnx", "opt_einsum", "tensorboard", "torchvision"})
"""Modules that a student's machine may have and this one need not."""

_TORCH = f"torch {VERSION}"


def unresolved(rule: Rule) -> str:
    """Say what is wrong with a rule that names nothing, as a sentence; "" if it names something."""
    match rule.kind:
        case RuleKind.ATEN:
            return _operator(rule.name)
        case RuleKind.CAST:
            return _dtype(rule.name)
        case RuleKind.IMPORT:
            return _module(rule.name)
        case RuleKind.FUNCTION | RuleKind.DIRECT:
            return _attribute(rule.name)
        case RuleKind.ALLOWED:
            return ""  # its families were looked up where the card was read


def _operator(name: str) -> str:
    known = _operators("aten")
    packet, _, overload = name.partition(".")
    if packet in known:
        there = getattr(torch.ops.aten, packet).overloads()
        if not overload or overload in there:
            return ""
        return f"`aten:{packet}` has no overload `{overload}`: {', '.join(sorted(there))}."
    return f"`aten:{name}` names no operator of {_TORCH}.{_meant('aten:', name, known)}"


@cache
def _operators(namespace: str) -> frozenset[str]:
    """Return the operators of a namespace, without their overloads."""
    pairs = (name.split("::") for name in torch._C._dispatch_get_all_op_names())
    return frozenset(name.partition(".")[0] for home, name in pairs if home == namespace)


def _dtype(name: str) -> str:
    home, _, last = name.rpartition(".")
    if home == "torch" and isinstance(getattr(torch, last, None), torch.dtype):
        return ""
    known = [n for n, value in vars(torch).items() if isinstance(value, torch.dtype)]
    return f"`cast:{name}` names no dtype of {_TORCH}.{_meant('cast:torch.', last, known)}"


def _module(name: str) -> str:
    if "." in name:
        return f"`import:{name}` forbids nothing: name the whole package, `import:{name.split('.')[0]}`."
    if name in ELSEWHERE or find_spec(name) is not None:
        return ""
    return (
        f"`import:{name}` names no module that is installed. If students may have it all the same, "
        "add it to ELSEWHERE in grader/building/resolve.py."
    )


def _attribute(name: str) -> str:
    first, *rest = name.split(".")
    if not rest:
        return f"`{name}` names no function: write where it is, `torch.{name}`, or `import:{name}`."
    try:
        found: object = import_module(first)
    except ImportError:
        return f"`{name}` names nothing: no module {first} is installed."
    whole = first
    for part in rest:
        inner = _part(found, whole, part)
        if inner is None:
            meant = _meant(f"{whole}.", part, dir(found))
            return f"`{name}` names nothing in {_TORCH}: {whole} has no {part}.{meant}"
        found, whole = inner, f"{whole}.{part}"
    return ""


def _part(found: object, whole: str, part: str) -> object:
    """Return an attribute, or a submodule that nobody imported yet; None if there is neither."""
    if whole == "torch.ops" and not _operators(part):
        return None  # torch.ops has any namespace that it is asked for
    if hasattr(found, part):
        return getattr(found, part)
    try:
        return import_module(f"{whole}.{part}")
    except ImportError:
        return None


def _meant(prefix: str, name: str, known: Iterable[str]) -> str:
    close = get_close_matches(name, known, n=1, cutoff=0.75)
    return f" Is `{prefix}{close[0]}` meant?" if close else ""
