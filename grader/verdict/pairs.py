"""What was expected and what came, result by result: what relations are looked for in."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import Any

import torch

from grader.evidence.wire.codec import encode
from grader.verdict.checks import CheckRun
from grader.verdict.compare import UNKNOWN, Comparison, Kind, bits
from grader.verdict.interview import StudentRaised

Value = Any
"""A value as a check saw it: plain data or a tensor."""

EXACT = 2**53
"""Whole numbers up to this are the same in float64."""


@dataclass(frozen=True)
class Pair:
    """One result: what was expected, what came, whether that is right, and for which inputs.

    `known` says that both are known: where an exception came, or a check compared by itself, they are
    not. `tolerance` is (0, 0) where bits are compared. `of` holds the input of each element.
    """

    expected: Value
    got: Value
    right: bool
    known: bool
    given: Mapping[str, Any]
    tolerance: tuple[float, float] = (0.0, 0.0)
    of: torch.Tensor | None = None

    @cached_property
    def expected_numbers(self) -> torch.Tensor | None:
        """What was expected as float64, if it is numbers."""
        return numbers_in(self.expected)

    @cached_property
    def got_numbers(self) -> torch.Tensor | None:
        """What came as float64, if it is numbers."""
        return numbers_in(self.got)

    @property
    def bitwise(self) -> bool:
        """Whether it was compared without tolerance."""
        return self.tolerance == (0.0, 0.0)

    def parts(self) -> Iterator[Pair]:
        """Yield what differs within, if both are containers of the same build; else the pair itself."""
        ours, theirs = self.expected, self.got
        numbers = self.expected_numbers is not None and self.got_numbers is not None
        if numbers or not self.known or type(ours) is not type(theirs):
            yield self
            return
        if isinstance(ours, dict) and ours.keys() == theirs.keys():
            within = [(ours[key], theirs[key]) for key in ours]
        elif isinstance(ours, list | tuple) and len(ours) == len(theirs):
            within = list(zip(ours, theirs, strict=True))
        else:
            yield self
            return
        differ = [(a, b) for a, b in within if not _equal(a, b)]
        if not differ or (any(_is_leaf(a) and _is_leaf(b) for a, b in differ) and len(differ) > 1):
            yield self
            return
        for expected, got in differ:
            yield from Pair(expected, got, False, True, self.given, self.tolerance, self.of).parts()


def _is_leaf(value: Value) -> bool:
    return not isinstance(value, list | tuple | dict | torch.Tensor)


def pairs_of(run: CheckRun) -> list[Pair] | None:
    """Return the results that a check compared; None if it failed for a reason not among them."""
    pairs = _all_pairs(run.evidence)
    if run.error is None:
        return pairs
    if isinstance(run.error, StudentRaised):
        # the inputs of the last question asked are those that it raised on
        given = run.given if run.given is not None and not run.error.raised.notes else None
        return [*pairs, Pair(UNKNOWN, UNKNOWN, False, False, given or {})]
    last = run.comparisons[-1] if run.comparisons else None
    told = last is not None and (
        last.passed is False or any(not pair.right for pair in _pairs(last))
    )
    return pairs if told else None


def _all_pairs(evidence: Sequence[Comparison]) -> list[Pair]:
    """Return all results; one by one where they were asked for at once and compared in that order."""
    pairs: list[Pair] = []
    for _, group in groupby(evidence, key=lambda one: id(one.given)):
        about = [one for one in group if one.kind != "raised" or one.passed is not None]
        whole = [one for one in about if _cases(one, one.given or {}) is not None]
        given = about[0].given if about else None
        many = [] if whole or not given else _list_of(given, len(about))
        if whole:
            pairs += [pair for one in whole for pair in _pairs(one)]
            known = {key_of((pair.expected, pair.got)) for pair in pairs}
            about = [one for one in about if key_of((one.expected, one.got)) not in known]
        for number, one in enumerate(about):
            if any(one is other for other in whole):
                continue
            if many and len(about) >= ENOUGH_IN_ORDER:
                one = replace(one, given=many[number])
            elif len(about) > 1 and _is_batch(given or {}):
                one = replace(one, given=None)  # about one of many inputs, and nobody knows which
            pairs += _pairs(one)
    return pairs


ENOUGH_IN_ORDER = 5
"""As many comparisons as inputs were given at once are each about one of them; of fewer that may be chance."""


def _is_batch(given: Mapping[str, Any]) -> bool:
    return any(isinstance(value, list | tuple) and len(value) > 1 for value in given.values())


def _list_of(given: Mapping[str, Any], count: int) -> list[dict[str, Any]]:
    """Return the inputs of each case, where one of the inputs is a list of `count` cases; else nothing."""
    many = {
        name: value
        for name, value in given.items()
        if isinstance(value, list | tuple) and len(value) == count
    }
    if len(many) != 1:
        return []
    ((name, values),) = many.items()
    rest = {other: value for other, value in given.items() if other != name}
    return [{**rest, **_named(name, value)} for value in values]


def _pairs(one: Comparison) -> Iterator[Pair]:
    given = one.given or {}
    if one.kind == "raised" or one.free or (one.expected is UNKNOWN and one.passed is not None):
        if one.passed is not None:
            yield Pair(UNKNOWN, UNKNOWN, one.passed, False, given)
        return
    if one.kind == "kind":
        if one.passed is False:
            yield Pair(one.expected, one.got, False, isinstance(one.expected, Kind), given)
        return
    if one.expected is UNKNOWN:
        return
    cases = _cases(one, given)
    if cases is None:
        right = _equal(one.expected, one.got) if one.passed is None else one.passed
        yield Pair(one.expected, one.got, right, True, given, one.tolerance, one.of)
        return
    for expected, got, case in zip(one.expected, one.got, cases, strict=True):
        yield Pair(expected, got, _equal(expected, got), True, case, one.tolerance)


def _cases(one: Comparison, given: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Return the inputs of each item where a probe was asked for many answers at once."""
    if not isinstance(one.expected, list | tuple) or not isinstance(one.got, list | tuple):
        return None
    count = len(one.expected)
    if count != len(one.got) or count < 2:
        return None
    return _list_of(given, count) or None


def _named(name: str, case: Value) -> dict[str, Any]:
    """Return the inputs of one case by their names."""
    if isinstance(case, dict) and all(isinstance(key, str) for key in case):
        return dict(case)
    if isinstance(case, tuple | list) and any(
        isinstance(part, list | tuple | torch.Tensor) for part in case
    ):
        return {f"{name}[{number}]": part for number, part in enumerate(case)}
    return {name: case}


def _equal(left: Value, right: Value) -> bool:
    if isinstance(left, torch.Tensor) or isinstance(right, torch.Tensor):
        return (
            isinstance(left, torch.Tensor)
            and isinstance(right, torch.Tensor)
            and left.dtype == right.dtype
            and left.shape == right.shape
            and torch.equal(bits(left), bits(right))
        )
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(_equal, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_equal(left[key], right[key]) for key in left)
    return bool(left == right) or (left != left and right != right)


def key_of(value: Value) -> Hashable:
    """Return what tells a value from others in a set: of tensors the bits, of other plain data its `repr`."""
    if isinstance(value, torch.Tensor) and value.layout is torch.strided and value.is_cpu:
        return str(value.dtype), value.shape, bits(value).numpy().tobytes()
    if isinstance(value, list | tuple):
        return type(value).__name__, *map(key_of, value)
    if isinstance(value, dict):
        return "dict", *((repr(key), key_of(item)) for key, item in value.items())
    return repr(value)


def numbers_in(value: Value) -> torch.Tensor | None:
    """Return numbers, or a tensor or regular lists of them, as float64; None of anything else."""
    if isinstance(value, torch.Tensor):
        if value.is_complex() or value.dtype is torch.bool or value.device.type != "cpu":
            return None
        whole = not value.is_floating_point()
        value = value.detach()
        if whole and value.numel() and bool((value.long().abs() > EXACT).any()):
            return None
        numbers: torch.Tensor = value.double()
        return numbers
    shape = _shape(value)
    if shape is None:
        return None
    flat = list(_flat(value))
    if any(isinstance(one, int) and abs(one) > EXACT for one in flat):
        return None
    return torch.tensor(flat, dtype=torch.float64).reshape(shape)


def _shape(value: Value) -> tuple[int, ...] | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return ()
    if not isinstance(value, list | tuple):
        return None
    shapes = {_shape(item) for item in value}
    if len(shapes) > 1 or None in shapes:
        return None
    return (len(value), *(shapes.pop() or () if shapes else ()))


def _flat(value: Value) -> Iterator[float]:
    if isinstance(value, list | tuple):
        for item in value:
            yield from _flat(item)
    else:
        yield value


def same(ours: torch.Tensor, theirs: torch.Tensor, pair: Pair) -> bool:
    """Say whether two arrangements of numbers are the same, by the pair's tolerance."""
    rtol, atol = pair.tolerance
    return ours.shape == theirs.shape and torch.allclose(theirs, ours, rtol, atol, equal_nan=True)


def without_repeats(pairs: Sequence[Pair]) -> tuple[list[Pair], list[Pair]]:
    """Return the wrong and the right cases, each once; a case with one wrong result is wrong."""
    codes: dict[int, bytes] = {}  # many results are of the very same inputs
    for pair in pairs:
        if id(pair.given) not in codes:
            codes[id(pair.given)] = encode(dict(pair.given))
    wrong = {codes[id(pair.given)]: pair for pair in pairs if not pair.right}
    right = {codes[id(pair.given)]: pair for pair in pairs if pair.right}
    return list(wrong.values()), [right[code] for code in right.keys() - wrong.keys()]
