"""What the second witness saw of that which an exercise forbids, where the first one saw nothing.

The first witness, the tripwire, decides. What only the second saw is for a person to look at.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch

from grader.course.rules import Rule, RuleKind
from grader.evidence.record import Call, Seen

_REINTERPRET = frozenset({"view", "view_as_real"})
"""They give the same bytes another dtype, and round nothing."""


def broken_in(seen: Seen, rules: Iterable[Rule]) -> list[Rule]:
    """Return the rules that what the second witness saw has broken."""
    return [rule for rule in rules if any(_breaks(call, rule) for call in seen.calls)]


def _breaks(call: Call, rule: Rule) -> bool:
    name, direct, _, _, _ = call
    match rule.kind:
        case RuleKind.ATEN:
            return name == rule.name
        case RuleKind.CAST:
            return _casts(call, rule.last)
        case RuleKind.FUNCTION:
            return direct and name == _operator_of(rule)
        case RuleKind.IMPORT:
            return False


def _operator_of(rule: Rule) -> str | None:
    """Return the operator that a function or a method of torch's own is, None for other functions."""
    return rule.last if rule.name in (f"torch.{rule.last}", f"torch.Tensor.{rule.last}") else None


def _casts(call: Call, dtype: str) -> bool:
    """Say whether a call turned numbers of another dtype into this one, as the tripwire does."""
    name, _, read, given, number = call
    if dtype not in given or name in _REINTERPRET:
        return False
    base = name.removeprefix("new_")
    if number and base.startswith(("fill", "full")):
        return True
    if name.endswith("_like") or name.startswith("new_"):
        return False
    return any(other != dtype and _is_floating(other) for other in read)


def _is_floating(name: str) -> bool:
    dtype = getattr(torch, name, None)
    return isinstance(dtype, torch.dtype) and dtype.is_floating_point
