"""Rules of what is off limits in an exercise: the torch functions that would be the answer.

A card writes a rule as text, of one of these kinds:

- `torch.Tensor.bfloat16`, `torch.finfo`: that function, under any alias, called by the answer or
  by what the answer calls;
- `direct:torch.nn.Module.__call__`: that function, where the answer itself calls it;
- `cast:torch.bfloat16`: turning floats into that dtype by any means but reinterpreting bits;
- `aten:_int_mm`, `aten:view.dtype`: that ATen operator, or one overload of it, whoever calls it;
- `import:numpy`: that module.

What is allowed where all else is not is a rule as well: `allowed:views, sum`.

Here text becomes a rule, once; who scans source, watches calls or tells a person gets the rule.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class RuleKind(str, Enum):
    """What a rule forbids. A box is sent the value."""

    FUNCTION = "function"
    CAST = "cast"
    ATEN = "aten"
    IMPORT = "import"
    DIRECT = "direct"
    ALLOWED = "allowed"


class Rule(NamedTuple):
    """One rule: `name` is a dotted name of torch's, an operator's name without `aten::`, a module,
    or families of operators with commas between them."""

    kind: RuleKind
    name: str

    @property
    def last(self) -> str:
        """The name's last part."""
        return self.name.rpartition(".")[2]

    @property
    def is_method(self) -> bool:
        """Is it a method of tensors?"""
        return self.kind in _OF_FUNCTIONS and self.name.startswith("torch.Tensor.")


_OF_FUNCTIONS = (RuleKind.FUNCTION, RuleKind.DIRECT)


def parse_rule(text: str) -> Rule:
    """Return the rule that a card writes as `text`. Raises `ValueError` that says what is wrong."""
    kind, colon, name = text.partition(":")
    if not colon:
        kind, name = RuleKind.FUNCTION.value, text
    prefixes = [known.value for known in RuleKind if known is not RuleKind.FUNCTION]
    if colon and kind not in prefixes:
        raise ValueError(f"`{text}` is no rule: known are a dotted name and {_listed(prefixes)}")
    if kind == RuleKind.ALLOWED.value:
        return Rule(RuleKind.ALLOWED, ", ".join(filter(None, map(str.strip, name.split(",")))))
    if not all(part.isidentifier() for part in name.split(".")):
        raise ValueError(f"`{text}` is no rule: `{name}` is no dotted name")
    return Rule(RuleKind(kind), name)


def _listed(prefixes: list[str]) -> str:
    return ", ".join(f"`{prefix}:…`" for prefix in prefixes)


def describe_rule(rule: Rule) -> str:
    """Return a rule in words, as Markdown."""
    match rule.kind:
        case RuleKind.CAST:
            return f"any cast to `{rule.name}`"
        case RuleKind.ATEN:
            return f"the operator `aten::{rule.name}`"
        case RuleKind.IMPORT:
            return f"the module `{rule.name}`"
        case RuleKind.ALLOWED:
            return f"any operator but {rule.name}" if rule.name else "any operator"
        case RuleKind.FUNCTION | RuleKind.DIRECT:
            return f"`{rule.name.removeprefix('builtins.')}`"
