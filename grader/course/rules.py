"""Rules of what is off limits in an exercise: the torch functions that would be the answer.

A card writes a rule as text, of one of four kinds:

- `torch.Tensor.bfloat16`, `torch.finfo`: that function, under any alias;
- `cast:torch.bfloat16`: turning floats into that dtype by any means but reinterpreting bits;
- `aten:_int_mm`: that ATen operator, whoever calls it;
- `import:numpy`: that module.

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


class Rule(NamedTuple):
    """One rule: `name` is a dotted name of torch's, an operator's name without `aten::`, a module."""

    kind: RuleKind
    name: str

    @property
    def last(self) -> str:
        """The name's last part."""
        return self.name.rpartition(".")[2]

    @property
    def is_method(self) -> bool:
        """Is it a method of tensors?"""
        return self.kind is RuleKind.FUNCTION and self.name.startswith("torch.Tensor.")


def parse_rule(text: str) -> Rule:
    """Return the rule that a card writes as `text`. Raises `ValueError` that says what is wrong."""
    kind, colon, name = text.partition(":")
    if not colon:
        kind, name = RuleKind.FUNCTION.value, text
    prefixes = [known.value for known in RuleKind if known is not RuleKind.FUNCTION]
    if colon and kind not in prefixes:
        raise ValueError(f"`{text}` is no rule: known are a dotted name and {_listed(prefixes)}")
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
        case RuleKind.FUNCTION:
            return f"`{rule.name}`"
