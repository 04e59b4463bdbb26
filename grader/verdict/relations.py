"""What can be said of any wrong answer: how what came is related to what was expected.

A known mistake explains a failure only where somebody foresaw it. A relation is a fact instead, found
in the evidence: what came is the transpose of what was expected, or every wrong result is of a negative
number. Each is a small function of one wrong result. It is said only if it holds for all of them in all
failed checks, and if they are such that it could have failed to hold: zeros, a symmetric matrix or a
single number say nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import permutations

import torch

from grader.verdict.checks import CheckRun
from grader.verdict.pairs import Pair, Value, key_of, numbers_in, pairs_of, same
from grader.verdict.which_inputs import one_sided, which_elements, which_inputs

ENOUGH = 3
"""Different numbers that a relation must hold for: one or two could be so by chance."""


MANY = 2**14
"""Most numbers that are arranged in all ways: 120 of them, for five dimensions."""


@dataclass(frozen=True)
class Holds:
    """A relation that holds for one wrong result: in words, and for how many different numbers."""

    words: str
    numbers: int


Relation = Callable[[Pair], Holds | None]
"""Looks at one wrong result. None if the relation does not hold there; 0 numbers if it says nothing."""


def relation_of(runs: Sequence[CheckRun]) -> str:
    """Return in a sentence how what came is related to what was expected; empty if nothing is known.

    It holds for every wrong result of every failed check.
    """
    failed: list[Pair] = []
    passed: list[Pair] = []
    for run in runs:
        pairs = pairs_of(run)
        if pairs is None:
            return ""  # a check failed for a reason that is not among its comparisons
        (passed if run.error is None else failed).extend(pairs)
    wrong = [pair for pair in failed if not pair.right]
    if not wrong:
        return ""
    return (
        _of_values(wrong)
        or which_elements(wrong)
        or which_inputs(failed, passed)
        or one_sided([*failed, *passed])
    )


def _of_values(wrong: Sequence[Pair]) -> str:
    if not all(pair.known for pair in wrong):
        return ""
    parts = [part for pair in wrong for part in pair.parts()]
    for relation in RELATIONS:
        held = _everywhere(relation, parts)
        if held:
            return held
    return _always_the_same(wrong)


def _everywhere(relation: Relation, wrong: Sequence[Pair]) -> str:
    """Return a relation's words if it holds for all wrong results, in the same words."""
    words: set[str] = set()
    counted: dict[Hashable, int] = {}
    for pair in wrong:
        holds = relation(pair)
        if holds is None:
            return ""
        if holds.numbers:
            words.add(holds.words)
            counted[key_of((pair.expected, pair.got))] = holds.numbers  # the same twice counts once
    return words.pop() if len(words) == 1 and sum(counted.values()) >= ENOUGH else ""


def _always_the_same(wrong: Sequence[Pair]) -> str:
    """Every wrong result is the same, whatever was expected."""
    got = repr(wrong[0].got)
    if len(got) >= 60 or any(repr(pair.got) != got for pair in wrong):
        return ""
    if len({key_of(pair.expected) for pair in wrong}) < ENOUGH:
        return ""
    return f"Every wrong result is the same, whatever was expected: `{got}`."


def _arrays(pair: Pair) -> tuple[torch.Tensor, torch.Tensor] | None:
    """Return expected and got as float64 tensors, if both are numbers in the same arrangement."""
    expected, got = pair.expected_numbers, pair.got_numbers
    return None if expected is None or got is None else (expected, got)


def _same_shape(pair: Pair) -> tuple[torch.Tensor, torch.Tensor] | None:
    both = _arrays(pair)
    return both if both and both[0].shape == both[1].shape else None


def _distinct(tensor: torch.Tensor) -> int:
    return int(tensor[tensor.isfinite() & (tensor != 0)].abs().unique().numel())


def sign_of_zero(pair: Pair) -> Holds | None:
    """The same numbers, zeros with another sign."""
    both = _same_shape(pair)
    if (
        both is None
        or not pair.bitwise
        or not torch.equal(both[0].nan_to_num(7), both[1].nan_to_num(7))
    ):
        return None
    if not torch.equal(both[0].isnan(), both[1].isnan()):
        return None
    zeros = (both[0] == 0) & (both[0].signbit() != both[1].signbit())
    return Holds(
        "The numbers are right; zeros have the wrong sign.", ENOUGH if bool(zeros.any()) else 0
    )


def negated(pair: Pair) -> Holds | None:
    """Every number has the other sign."""
    both = _same_shape(pair)
    if both is None or not same(-both[0], both[1], pair):
        return None
    return Holds("What came is the negative of what was expected.", _distinct(both[0]))


def times(pair: Pair) -> Holds | None:
    """Every number is a whole multiple, or a whole part, of what was expected."""
    both = _same_shape(pair)
    if both is None:
        return None
    expected, got = both
    usable = expected.isfinite() & (expected != 0)
    if not bool(usable.any()):
        return Holds("", 0) if same(expected, got, pair) else None
    where = int(expected.abs().where(usable, -1.0).reshape(-1).argmax())
    factor = float(got.reshape(-1)[where]) / float(expected.reshape(-1)[where])
    if not 1e-6 < abs(factor) < 1e6:
        return None
    for k in (round(factor), round(1 / factor)):
        if 2 <= abs(k) <= 4096:
            whole = abs(factor) > 1
            if same(expected * k if whole else expected / k, got, pair):
                part = f"{k} times" if whole else f"one {_ORDINAL.get(k, f'{k}th')} of"
                return Holds(f"What came is {part} what was expected.", _distinct(expected))
    return None


_ORDINAL = {2: "half", 3: "third", 4: "quarter"}


def off_by(pair: Pair) -> Holds | None:
    """Every number differs from what was expected by the same whole number."""
    both = _same_shape(pair)
    if both is None or not bool(both[0].isfinite().all() and both[1].isfinite().all()):
        return None
    apart = both[1] - both[0]
    if not apart.numel():
        return None
    by = float(apart.reshape(-1)[0])
    if by == 0 or by != round(by) or not same(both[0] + by, both[1], pair):
        return None
    word = "more" if by > 0 else "less"
    return Holds(f"What came is {abs(by):g} {word} than what was expected.", _distinct(both[0]))


def transposed(pair: Pair) -> Holds | None:
    """The last two dimensions are exchanged."""
    both = _arrays(pair)
    if both is None or both[0].dim() < 2 or not same(both[0].mT, both[1], pair):
        return None
    telling = 0 if same(both[0], both[0].mT, pair) else _distinct(both[0])
    return Holds("What came is the transpose of what was expected.", telling)


def turned_round(pair: Pair) -> Holds | None:
    """One dimension runs backwards."""
    both = _same_shape(pair)
    if both is None:
        return None
    for dim in range(both[0].dim()):
        if same(both[0].flip(dim), both[1], pair):
            along = f" along dimension {dim}" if both[0].dim() > 1 else ""
            telling = 0 if both[0].shape[dim] < ENOUGH else _distinct(both[0])
            return Holds(f"What came is what was expected, reversed{along}.", telling)
    return None


def shifted(pair: Pair) -> Holds | None:
    """One dimension is shifted by one."""
    both = _same_shape(pair)
    if both is None:
        return None
    expected, got = both
    for dim in range(expected.dim()):
        size = expected.shape[dim]
        if size < ENOUGH + 1:
            continue
        for words, came, due in (("later", 1, 0), ("earlier", 0, 1)):
            if same(expected.narrow(dim, due, size - 1), got.narrow(dim, came, size - 1), pair):
                along = f" along dimension {dim}" if expected.dim() > 1 else ""
                said = f"What came is what was expected, one place {words}{along}."
                return Holds(said, _distinct(expected))
    return None


def read_in_another_order(pair: Pair) -> Holds | None:
    """A reshape where dimensions must be exchanged, or the reverse."""
    both = _same_shape(pair)
    if both is None or not 2 <= both[0].dim() <= 5 or both[0].numel() > MANY:
        return None
    expected, got = both
    for order in permutations(range(expected.dim())):
        if same(expected.permute(order).reshape(expected.shape), got, pair):
            if same(expected, got, pair):
                return None
            said = f"`expected.permute{order}`, read row by row into the shape of the result"
            return Holds(f"The numbers are those of {said}.", _distinct(expected))
    return None


def another_order(pair: Pair) -> Holds | None:
    """The same numbers stand in other places."""
    both = _same_shape(pair)
    if both is None or both[0].dim() == 0:
        return None
    ours, theirs = (one.reshape(-1).sort().values for one in both)
    if not torch.equal(ours.nan_to_num(), theirs.nan_to_num()):
        return None
    return Holds("The right numbers came, in the wrong order.", _distinct(both[0]))


def rounded(pair: Pair, dtype: torch.dtype) -> Holds | None:
    """Every number is what was expected after rounding to a narrower dtype."""
    both = _same_shape(pair)
    if both is None or not bool(both[0].isfinite().all()):
        return None
    narrow = both[0].to(dtype).double()
    if not torch.equal(narrow, both[1]):
        return None
    name = str(dtype).removeprefix("torch.")
    return Holds(
        f"What came is what was expected, rounded to {name}.", int((narrow != both[0]).sum())
    )


def one_rounding_off(pair: Pair) -> Holds | None:
    """Every wrong number is a neighbour of the right one, always on the same side."""
    expected, got = pair.expected, pair.got
    if not (isinstance(expected, torch.Tensor) and isinstance(got, torch.Tensor)):
        return None
    if not pair.bitwise or not expected.is_floating_point() or expected.shape != got.shape:
        return None
    integers = {2: torch.int16, 4: torch.int32, 8: torch.int64}.get(expected.element_size())
    if integers is None or expected.dtype != got.dtype:
        return None
    if not bool(expected.isfinite().all() and got.isfinite().all()):
        return None
    if not bool((expected.signbit() == got.signbit()).all()):
        return None
    apart = got.contiguous().view(integers).long() - expected.contiguous().view(integers).long()
    steps = apart[apart != 0]
    for step, where in ((1, "away from zero"), (-1, "towards zero")):
        if bool((steps == step).all()):
            what = f"Every wrong number is the neighbour of the right one, {where}."
            return Holds(what, int(steps.numel()))
    return None


def the_input(pair: Pair) -> Holds | None:
    """What came is an input as it was."""
    got = pair.got_numbers
    if got is None:
        return None
    for name, value in pair.given.items():
        given = numbers_in(value)
        if given is not None and given.shape == got.shape and same(given, got, pair):
            return Holds(f"What came is the input `{name}` as it was.", _distinct(got))
    return None


def nothing_but_zeros(pair: Pair) -> Holds | None:
    """Zeros came, where other numbers were expected."""
    both = _arrays(pair)
    if both is None or not both[1].numel() or bool(both[1].any()) or both[1].dim() == 0:
        return None
    return Holds("Nothing but zeros came.", _distinct(both[0]))


def _lists(pair: Pair) -> tuple[list[Value], list[Value]] | None:
    both = pair.expected, pair.got
    if not all(isinstance(one, list | tuple) for one in both) or any(map(_is_record, both)):
        return None
    return list(pair.expected), list(pair.got)


def _is_record(value: Value) -> bool:
    """Say whether each place of a tuple means something else: its items are of several kinds."""
    if not isinstance(value, tuple):
        return False
    return len({_kind(item) for item in value if item is not None}) > 1


def _kind(value: Value) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "a number"
    return "items" if isinstance(value, list | tuple) else type(value).__name__


def _different(items: list[Value]) -> int:
    return len({repr(item) for item in items})


def reversed_list(pair: Pair) -> Holds | None:
    """The same items, last first."""
    both = _lists(pair)
    if both is None or repr(both[0][::-1]) != repr(both[1]):
        return None
    return Holds("What came is what was expected, last first.", _different(both[0]))


def same_items(pair: Pair) -> Holds | None:
    """The same items in another order."""
    both = _lists(pair)
    if both is None or sorted(map(repr, both[0])) != sorted(map(repr, both[1])):
        return None
    return Holds("The right items came, in the wrong order.", _different(both[0]))


def each_twice(pair: Pair) -> Holds | None:
    """Every item comes several times."""
    both = _lists(pair)
    if both is None or not both[0] or len(both[1]) % len(both[0]):
        return None
    count = len(both[1]) // len(both[0])
    if count < 2 or sorted(map(repr, both[0] * count)) != sorted(map(repr, both[1])):
        return None
    return Holds(f"Everything came {count} times.", _different(both[0]))


def an_end_is_missing(pair: Pair) -> Holds | None:
    """Items at one end are missing, or there are more than were expected."""
    both = _lists(pair)
    if both is None or len(both[0]) == len(both[1]):
        return None
    expected, got = ([repr(item) for item in one] for one in both)
    short, long = sorted((expected, got), key=len)
    rest = len(long) - len(short)
    many, verb = ("one", "is") if rest == 1 else ("ones", "are")
    missing = len(got) < len(expected)
    for end, kept in (("last", long[: len(short)]), ("first", long[rest:])):
        if kept == short:
            told = f"the {end} {many} {verb} missing"
            extra = f"there is more {'behind' if end == 'last' else 'in front of'} it"
            words = f"What came is what was expected, but {told if missing else extra}."
            return Holds(words, len(set(short)))
    return None


def some_are_missing(pair: Pair) -> Holds | None:
    """Nothing wrong came, and nothing in the wrong place; something is missing, or there is too much."""
    both = _lists(pair)
    if both is None or len(both[0]) == len(both[1]):
        return None
    expected, got = ([repr(item) for item in one] for one in both)
    short, long = sorted((expected, got), key=len)
    rest = iter(long)
    if not all(item in rest for item in short):
        return None
    missing = len(got) < len(expected)
    words = (
        "Some items are missing; those that came are right"
        if missing
        else ("All that was expected came, and more between")
    )
    return Holds(f"{words}.", len(set(short)))


def keys(pair: Pair) -> Holds | None:
    """A dict has right values, and some keys are missing or too many."""
    if not (isinstance(pair.expected, dict) and isinstance(pair.got, dict)):
        return None
    both = pair.expected.keys() & pair.got.keys()
    if any(repr(pair.expected[key]) != repr(pair.got[key]) for key in both):
        return None
    missing, more = pair.expected.keys() - both, pair.got.keys() - both
    if bool(missing) == bool(more):
        return None
    words = "Some entries are missing" if missing else "There are entries that should not be there"
    return Holds(f"{words}; the others are right.", max(len(both), len(missing | more)))


RELATIONS: tuple[Relation, ...] = (
    the_input,
    nothing_but_zeros,
    sign_of_zero,
    negated,
    transposed,
    times,
    turned_round,
    reversed_list,
    off_by,
    shifted,
    partial(rounded, dtype=torch.bfloat16),
    partial(rounded, dtype=torch.float16),
    partial(rounded, dtype=torch.float32),
    one_rounding_off,
    each_twice,
    an_end_is_missing,
    some_are_missing,
    read_in_another_order,
    another_order,
    same_items,
    keys,
)
"""In the order in which they are tried: what says more comes first."""
