"""What is remembered of a check's run so that a diagnosis can match it: small, and plain data.

A known mistake explains a failure where it fails the same checks with the same evidence. To see that
two runs saw the same, the values need not be kept: those that are compared bit by bit are reduced to
a digest, and the one within a tolerance at which a check failed to weighted sums of its parts.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from grader.evidence.outcome import Ended
from grader.verdict.checks import CheckRun
from grader.verdict.compare import Comparison, Mismatch, bits
from grader.verdict.interview import StudentRaised, without_chance

_PARTS = 32
"""Into how many parts a tensor is cut for its sums: two that differ in one number differ in a sum."""

_GOLDEN = 0.6180339887498949
"""Steps of this size, modulo 1, make weights that no two neighbours share: swapped numbers are seen."""


@dataclass(frozen=True)
class Failure:
    """Why a check failed, as far as it tells causes apart; two that are equal have one cause.

    `kind` is the error's class. `said` is what Python or PyTorch said of an exception, or the check of
    a value that it did not record. `type` is the class of an exception of the student's code, `own`
    says that a `raise` of their own raised it: its words are free. `on` is the input that it was on.
    """

    kind: str
    said: str = ""
    type: str = ""
    own: bool = False
    on: str = ""


@dataclass(frozen=True)
class Mark:
    """One check's run. `failure` is None if it passed; `seen` is a digest of what it compared.

    Of a check that failed, the values until the first that differs, and which of the later ones
    differ. `near` are sums of that first value where it failed a tolerance, and how far each may be
    off. `rest` is a digest of the later values: of two mistakes that could have failed so, it tells
    which is nearer.
    """

    seen: str
    failure: Failure | None = None
    near: tuple[tuple[float, float], ...] = ()
    rest: str = ""

    def same_evidence(self, other: Mark) -> bool:
        """Say whether both compared the same values, by the comparisons' own standards."""
        return (
            self.seen == other.seen
            and len(self.near) == len(other.near)
            and all(
                abs(a - b) <= off for (a, off), (b, _) in zip(self.near, other.near, strict=True)
            )
        )

    def same_failure(self, other: Mark) -> bool:
        """Say whether both failed, with the same evidence, for one cause."""
        return (
            self.failure is not None and self.failure == other.failure and self.same_evidence(other)
        )

    def to_data(self) -> Any:
        """Return it as JSON holds it: of a check that passed, the digest alone."""
        if self.failure is None:
            return self.seen
        one = self.failure
        near = [[_rounded(a, off / 100), _rounded(off, off / 100)] for a, off in self.near]
        return [self.seen, [one.kind, one.said, one.type, int(one.own), one.on], near, self.rest]

    @classmethod
    def from_data(cls, data: Any) -> Mark:
        """Return what `to_data` wrote."""
        if isinstance(data, str):
            return cls(data)
        seen, (kind, said, type_, own, on), near, rest = data
        failure = Failure(kind, said, type_, bool(own), on)
        return cls(seen, failure, tuple((a, off) for a, off in near), rest)


def _rounded(number: float, off: float) -> float:
    """Return a number with no more digits than it takes to be off by less than `off`."""
    if not number or not off:
        return number
    return round(number, max(0, 1 - math.floor(math.log10(off))))


def mark_of(run: CheckRun) -> Mark:
    """Return what is remembered of a check's run."""
    first = next((n for n, one in enumerate(run.evidence) if one.passed is False), None)
    until = len(run.comparisons) if first is None else first + 1
    seen, rest = (hashlib.blake2b(digest_size=8) for _ in range(2))
    for number, one in enumerate(run.evidence):
        seen.update(f"{one.kind} {one.tolerance} {one.passed} ".encode())
        if one.kind == "raised":
            seen.update(f"{one.got is None} ".encode())
        if not one.free:
            whole = seen if number < until else rest
            whole.update(f"{type(one.got).__name__} ".encode())
            for part in _parts(one):
                whole.update(part)
    near = None if first is None else run.evidence[first]
    sums = () if near is None or near.free or not _is_near(near) else _sums(near)
    failure = None if run.error is None else failure_of(run.error, run.comparisons)
    return Mark(seen.hexdigest(), failure, sums, rest.hexdigest() if failure else "")


def _parts(one: Comparison) -> Iterator[bytes]:
    if _is_near(one):
        return _shape(one, apart=one.passed is False)
    return _canonical(one.got)


def failure_of(error: BaseException, comparisons: Sequence[Comparison] = ()) -> Failure:
    """Return why a check failed, having made these comparisons."""
    kind = type(error).__name__
    if isinstance(error, StudentRaised):
        raised = error.raised
        type_, said = raised.cause
        return Failure(kind, said, type_, raised.own, _digest(raised.notes))
    if isinstance(error, Ended):
        return Failure(kind, error.outcome.value)
    if comparisons and comparisons[-1].passed is False:
        return Failure(kind)  # the value that differs is recorded
    # the sentence: how much too much it was may differ among answers with one cause
    return Failure(kind, without_chance(error.what if isinstance(error, Mismatch) else str(error)))


def _digest(text: str) -> str:
    return text and hashlib.blake2b(text.encode(), digest_size=4).hexdigest()


def _is_near(one: Comparison) -> bool:
    return one.kind == "close" and isinstance(one.got, torch.Tensor)


def _shape(one: Comparison, apart: bool) -> Iterator[bytes]:
    """Yield what is the same in two values within a tolerance: dtype, shape, what is no number.

    A value that passed is near the right one, and so is whatever else passed. Where it differs,
    `apart`, infinities and NaN must lie in the same places.
    """
    yield f"{one.got.dtype} {tuple(one.got.shape)}".encode()
    if apart:
        for odd in (one.got.isnan(), one.got.isinf(), one.got == float("-inf")):
            yield bits(odd).numpy().tobytes()


def _sums(one: Comparison) -> tuple[tuple[float, float], ...]:
    """Return weighted sums of a tensor's parts, and how far another's within the tolerance may be."""
    rtol, atol = one.tolerance
    got = one.got.detach()
    got = torch.view_as_real(got.resolve_conj()) if got.dtype.is_complex else got
    flat = torch.nan_to_num(got.to(torch.float64).reshape(-1), 0.0, 0.0, 0.0)
    number = torch.arange(flat.numel())
    parts = min(flat.numel(), _PARTS)
    weights = 0.5 + (number * _GOLDEN) % 1
    part = number * parts // max(flat.numel(), 1)
    sums, off = torch.zeros(2, parts, dtype=torch.float64).unbind()
    sums.index_add_(0, part, weights * flat)
    off.index_add_(0, part, weights * (atol + rtol * flat.abs()))
    return tuple(zip(sums.tolist(), off.tolist(), strict=True))


def _canonical(value: object) -> Iterator[bytes]:
    """Yield bytes that are the same for values that compare as equal: 1, 1.0 and True, a list and a tuple."""
    if isinstance(value, torch.Tensor):
        yield f"tensor {value.dtype} {tuple(value.shape)} ".encode()
        yield bits(value).numpy().tobytes()
    elif isinstance(value, list | tuple):
        yield f"[{len(value)} ".encode()
        for item in value:
            yield from _canonical(item)
    elif isinstance(value, dict):
        yield f"{{{len(value)} ".encode()
        pairs = [(b"".join(_canonical(key)), item) for key, item in value.items()]
        for key, item in sorted(pairs, key=lambda pair: pair[0]):
            yield key
            yield from _canonical(item)
    elif isinstance(value, set | frozenset):
        yield f"<{len(value)} ".encode()
        yield from sorted(b"".join(_canonical(item)) for item in value)
    elif isinstance(value, bool | int | float):
        whole = isinstance(value, float) and value.is_integer()
        yield f"number {int(value) if whole or isinstance(value, bool) else value!r} ".encode()
    else:
        yield f"{type(value).__name__} {value!r} ".encode("utf-8", "surrogatepass")
