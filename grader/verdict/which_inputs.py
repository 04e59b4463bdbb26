"""For which inputs an answer is wrong: those that have something, which those that it is right for have not."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from grader.verdict.pairs import Pair, numbers_in, without_repeats

RIGHT = 4
"""Fewest inputs that an answer must be right for, before what they lack says anything."""

TELLING = ("is `[]`", "is `()`", "has no elements", "has no dimensions", "holds a NaN", "is None")
"""What says something of a single wrong input too. One input differs from all others in many ways."""

WORDS = 3
"""Of so many words that an input may be, the one that it is wherever a result is wrong says something."""


def which_inputs(failed: Sequence[Pair], passed: Sequence[Pair]) -> str:
    """Return in a sentence what all inputs have that gave wrong results, and none of the others.

    `failed` are the results of the checks that failed. What other checks asked, `passed`, differs
    from these in many ways, so it counts only for what is telling anyway.
    """
    if any(not pair.right and not pair.given for pair in failed):
        return ""
    telling = _alone(failed, passed, lambda feature: feature.endswith(TELLING))
    if telling:
        return telling
    wrong, right = _by_case(failed)
    if len(wrong) < 2 or len(right) < RIGHT:
        return ""
    return (
        _alone(failed, (), lambda feature: True)
        or _from_a_size_on(wrong, right)
        or _always_the_word(wrong, right)
    )


def _by_case(pairs: Sequence[Pair]) -> tuple[list[Pair], list[Pair]]:
    return without_repeats([pair for pair in pairs if pair.given])


def _alone(failed: Sequence[Pair], passed: Sequence[Pair], may: Callable[[str], bool]) -> str:
    """Return what all wrong inputs have and no right one has, of the features that `may` be said."""
    wrong, right = _by_case([*failed, *passed])
    if not wrong or len(right) < RIGHT:
        return ""
    theirs = set().union(*(_features(pair.given) for pair in right))
    alone = set.intersection(*(_features(pair.given) for pair in wrong)) - theirs
    if len(wrong) == 1:
        alone = {feature for feature in alone if "holds one that" not in feature}
    said = sorted(filter(may, alone), key=_rank)
    if not said:
        return ""
    inputs = "the one input" if len(wrong) == 1 else f"all {len(wrong)} inputs"
    return f"Wrong on {inputs} where {said[0]}, right on the {len(right)} others."


def _rank(feature: str) -> tuple[bool, bool, str]:
    return not feature.endswith(TELLING), "holds one that" in feature, feature


def _always_the_word(wrong: Sequence[Pair], right: Sequence[Pair]) -> str:
    """Return which of many words an input is wherever the result is wrong, though not only there."""
    for name in wrong[0].given:
        ours = {
            repr(pair.given.get(name)) for pair in wrong if isinstance(pair.given.get(name), str)
        }
        theirs = {repr(pair.given.get(name)) for pair in right}
        if len(ours) != 1 or len(theirs | ours) < WORDS or len(wrong) < 2:
            continue
        if all(isinstance(pair.given.get(name), str) for pair in wrong):
            word = ours.pop()
            others = sum(repr(pair.given.get(name)) != word for pair in right)
            told = f"Wherever the result is wrong, {_title(name)} is {word}"
            return f"{told}; right on all {others} inputs where it is not."
    return ""


def _title(name: str) -> str:
    """Return what an input is called: by name, where it has one of its own."""
    return "one of the inputs" if name.endswith("]") else f"`{name}`"


def _features(given: Mapping[str, Any]) -> set[str]:
    return {f"{_title(name)} {feature}" for name, value in given.items() for feature in _of(value)}


def _of(value: object, *, within: bool = False) -> Iterator[str]:
    if isinstance(value, torch.Tensor):
        yield from _of_tensor(value)
    elif isinstance(value, list | tuple):
        yield from _of_list(value, within)
    elif value is None or isinstance(value, bool | str):
        yield f"is {value!r}"
    elif isinstance(value, int | float):
        if value < 0:
            yield "is negative"
        if value in (0, 1):
            yield f"is {int(value)}"


def _of_tensor(tensor: torch.Tensor) -> Iterator[str]:
    if not tensor.dim():
        yield "has no dimensions"
    if not tensor.numel():
        yield "has no elements"
        return
    if 1 in tensor.shape:
        yield "has a dimension of size 1"
    if tensor.numel() == 1:
        yield "has one element"
    if any(
        step == 0 and size > 1 for size, step in zip(tensor.shape, tensor.stride(), strict=True)
    ):
        yield "is expanded"
    if not tensor.is_contiguous():
        yield "is not contiguous"
    if tensor.storage_offset():
        yield "begins behind the first element of its storage"
    if (numbers := numbers_in(tensor)) is None:
        return
    if bool(numbers.isnan().any()):
        yield "holds a NaN"
    if bool(numbers.isinf().any()):
        yield "holds an infinity"
    if bool((numbers < 0).any()):
        yield "holds negative numbers"


def _of_list(items: Sequence[Any], within: bool) -> Iterator[str]:
    if not items:
        yield f"is `{items!r}`"  # as it is: a size `()` is not empty, it has no dimensions
        return
    plain = [one for one in items if isinstance(one, int | float) and not isinstance(one, bool)]
    if len(plain) == len(items):
        for number in (0, 1):
            if number in plain:
                yield f"holds a {number}"
        if any(number < 0 for number in plain):
            yield "holds a negative number"
    if any(one is None for one in items):
        yield "holds a None"
    if within:
        return
    deeper = [
        set(_of(one, within=True)) for one in items if isinstance(one, list | tuple | torch.Tensor)
    ]
    for feature in sorted(set().union(*deeper)):
        yield f"holds one that {feature}"


def _from_a_size_on(wrong: Sequence[Pair], right: Sequence[Pair]) -> str:
    """Return from which size of a number or of a list on the results are wrong, if they all are."""
    for name in wrong[0].given:
        for what, measured in _MEASURES:
            ours = {measured(pair.given.get(name)) for pair in wrong}
            theirs = {measured(pair.given.get(name)) for pair in right}
            if None in ours | theirs or len(ours) < 2 or len(theirs) < 2 or len(ours | theirs) < 5:
                continue
            low, high = (sorted(one for one in some if one is not None) for some in (ours, theirs))
            whose = f"{what} {_title(name)}".strip()
            if low[0] > high[-1]:
                return f"Wrong wherever {whose} is {low[0]:g} or more, right up to {high[-1]:g}."
            if low[-1] < high[0]:
                return f"Wrong wherever {whose} is {low[-1]:g} or less, right from {high[0]:g} on."
    return ""


def _dimensions(value: object) -> float | None:
    return float(value.dim()) if isinstance(value, torch.Tensor) else None


def _number(value: object) -> float | None:
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if plain and math.isfinite(value) else None  # type: ignore[arg-type]


def _length(value: object) -> float | None:
    return float(len(value)) if isinstance(value, list | tuple) else None


def _elements(value: object) -> float | None:
    return float(value.numel()) if isinstance(value, torch.Tensor) else None


_MEASURES = (
    ("", _number),
    ("the length of", _length),
    ("the number of elements of", _elements),
    ("the number of dimensions of", _dimensions),
)


def one_sided(pairs: Sequence[Pair]) -> str:
    """Return whether all wrong answers are the same of yes and no, though both were due."""
    known = [pair for pair in pairs if pair.known and isinstance(pair.expected, bool)]
    wrong = [pair.got for pair in without_repeats(known)[0]]
    due = [pair.expected for pair in known if pair.right]
    if len(wrong) < WORDS or len(set(map(repr, wrong))) > 1:
        return ""
    got = wrong[0]
    if not isinstance(got, bool) or due.count(got) < RIGHT:
        return ""
    return (
        f"Wherever a yes or no is wrong, `{got}` came and `{not got}` was expected; the reverse never "
        "happens."
    )


def which_elements(wrong: Sequence[Pair]) -> str:
    """Return in a sentence which elements are wrong, if their inputs or what was due there tells it."""
    tensors = [pair for pair in wrong if _elementwise(pair)]
    if not wrong or len(tensors) < len(wrong):
        return ""
    masks = [_differing(pair) for pair in tensors]
    for whose in ("of", "expected"):
        told = _by_value([getattr(pair, whose) for pair in tensors], masks, whose == "of")
        if told:
            return told
    return _by_place(masks)


def _elementwise(pair: Pair) -> bool:
    ours, theirs = pair.expected, pair.got
    return (
        pair.known
        and isinstance(ours, torch.Tensor)
        and isinstance(theirs, torch.Tensor)
        and ours.shape == theirs.shape
        and not ours.is_complex()
        and pair.expected_numbers is not None
        and pair.got_numbers is not None
    )


def _differing(pair: Pair) -> torch.Tensor:
    expected, got = pair.expected_numbers, pair.got_numbers
    assert expected is not None and got is not None
    near = torch.isclose(got, expected, *pair.tolerance, equal_nan=True)
    return ~near | (pair.bitwise & (got.signbit() != expected.signbit()) & ~expected.isnan())


def _by_value(
    values: Sequence[torch.Tensor | None], masks: Sequence[torch.Tensor], inputs: bool
) -> str:
    if any(
        value is None or value.shape != mask.shape
        for value, mask in zip(values, masks, strict=True)
    ):
        return ""
    numbers = torch.cat(
        [value.detach().reshape(-1).double() for value in values if value is not None]
    )
    tiny = [
        (value.double() != 0) & (value.double().abs() < torch.finfo(value.dtype).tiny)
        if value.is_floating_point()
        else torch.zeros_like(value, dtype=torch.bool)
        for value in values
        if value is not None
    ]
    wrong = torch.cat([mask.reshape(-1) for mask in masks])
    kinds = {
        "NaN": numbers.isnan(),
        "an infinity": numbers.isinf(),
        "zero": numbers == 0,
        "a subnormal number": torch.cat([one.reshape(-1) for one in tiny]),
        "a negative number": numbers < 0,
        "a positive number": numbers > 0,
    }
    for word, kind in kinds.items():
        if bool((wrong & ~kind).any()) or int((~kind).sum()) < RIGHT:
            continue
        where = f"the input is {word}" if inputs else f"{word} was expected"
        if bool(wrong[kind].all()):
            return f"Wrong wherever {where}, and nowhere else."
        if word not in ("a negative number", "a positive number"):  # half of all are
            return f"Wrong only where {where}, and not in all such places."
    return ""


def _by_place(masks: Sequence[torch.Tensor]) -> str:
    """Return where in their dimensions the wrong elements lie, if all lie at one end."""
    dims = {mask.dim() for mask in masks}
    if len(dims) > 1 or min(dims) < 2:
        return ""
    for dim in range(dims.pop()):
        for end, word in ((-1, "last"), (0, "first")):
            if all(_only_at(mask, dim, end) for mask in masks):
                return f"Only the {word} place along dimension {dim} is wrong."
    return ""


def _only_at(mask: torch.Tensor, dim: int, end: int) -> bool:
    size = mask.shape[dim]
    if size < RIGHT:
        return False
    rest = mask.narrow(dim, 0 if end else 1, size - 1)
    return not bool(rest.any())
