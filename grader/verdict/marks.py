"""What is remembered of a check's run so that a diagnosis can match it: small, and plain data.

A known mistake explains a failure where it fails the same checks with the same evidence. To see that
two runs saw the same, the values need not be kept: those that are compared bit by bit are reduced to
a digest, and the one within a tolerance at which a check failed to weighted sums of its parts.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from grader.evidence.outcome import Ended
from grader.verdict.checks import CheckRun
from grader.verdict.compare import Comparison, bits
from grader.verdict.interview import Raised, StudentRaised

_NUMBER = re.compile(r"/\S+|0x[0-9a-f]+|\d+")
"""What differs from run to run in a message: paths, such as those of temporary files, and numbers."""
_OWN = re.compile(r"\b(raise|assert)\b")
_CHANCE = re.compile(r"\b(peer|rank|worker)\b", re.IGNORECASE)
"""Words of a process that lost another one: which of them it says hangs on who was faster."""

_SAID = 300
"""Most characters of what was said that tell one failure from another."""

_PARTS = 32
"""Into how many parts a tensor is cut for its sums: two that differ in one number differ in a sum."""

_GOLDEN = 0.6180339887498949
"""Steps of this size, modulo 1, make weights that no two neighbours share: swapped numbers are seen."""


@dataclass(frozen=True)
class Failure:
    """Why a check failed, as far as it tells causes apart.

    `kind` is the error's class, `said` None where it is not known who said it. Of an exception of the
    student's code, `type` is its class, `own` says that a `raise` of their own raised it, `lost` that
    their process lost another one.
    """

    kind: str
    said: str | None = None
    type: str = ""
    own: bool = False
    lost: bool = False

    def same(self, other: Failure) -> bool:
        """Say whether two failures have one cause, as far as that can be seen.

        What one's own `raise` says is free, and what an instrument says of several processes depends
        on who noticed first. What Python or PyTorch says tells what went wrong: a `RuntimeError` about
        a view explains none about sizes. Paths and numbers in it may differ. Where one process lost
        another, who noticed first decides the type too: the process that was left, or the instrument.
        """
        if self.kind != other.kind:
            return False
        if self.lost and other.lost:
            return True
        if self.type != other.type or self.own != other.own:
            return False
        if self.own or self.said is None or other.said is None or self.said == other.said:
            return True
        return bool(self.type and _CHANCE.search(self.said) and _CHANCE.search(other.said))


@dataclass(frozen=True)
class Mark:
    """One check's run. `failure` is None if it passed; `seen` is a digest of what it compared.

    `near` are sums of the value at which it failed, if that was compared within a tolerance, and how
    far each may be off.
    """

    seen: str
    failure: Failure | None = None
    near: tuple[tuple[float, float], ...] = ()

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
        if self.failure is None or other.failure is None or not self.failure.same(other.failure):
            return False
        return self.failure.kind == Ended.__name__ or self.same_evidence(other)

    def to_data(self) -> Any:
        """Return it as JSON holds it: of a check that passed, the digest alone."""
        if self.failure is None:
            return self.seen
        one = self.failure
        near = [[_rounded(a, off / 100), _rounded(off, off / 100)] for a, off in self.near]
        return [self.seen, [one.kind, one.said, one.type, int(one.own), int(one.lost)], near]

    @classmethod
    def from_data(cls, data: Any) -> Mark:
        """Return what `to_data` wrote."""
        if isinstance(data, str):
            return cls(data)
        seen, (kind, said, type_, own, lost), near = data
        failure = Failure(kind, said, type_, bool(own), bool(lost))
        return cls(seen, failure, tuple((a, off) for a, off in near))


def _rounded(number: float, off: float) -> float:
    """Return a number with no more digits than it takes to be off by less than `off`."""
    if not number or not off:
        return number
    return round(number, max(0, 1 - math.floor(math.log10(off))))


def mark_of(run: CheckRun) -> Mark:
    """Return what is remembered of a check's run."""
    last = run.comparisons[-1] if run.comparisons else None
    near = last if run.error is not None and last is not None and _is_near(last) else None
    whole = hashlib.blake2b(digest_size=8)
    for one in run.comparisons:
        whole.update(f"{one.kind} {one.tolerance} {type(one.got).__name__} ".encode())
        for part in _shape(one, apart=one is near) if _is_near(one) else _canonical(one.got):
            whole.update(part)
    failure = None if run.error is None else failure_of(run.error, bool(run.comparisons))
    return Mark(whole.hexdigest(), failure, () if near is None else _sums(near))


def failure_of(error: BaseException, compared: bool) -> Failure:
    """Return why a check failed; `compared` says that its comparisons tell the rest."""
    kind = type(error).__name__
    if isinstance(error, StudentRaised):
        raised = error.raised
        said = _said(raised) if raised.where else None
        return Failure(kind, said, raised.type, _is_own(raised), _lost_another(raised))
    if isinstance(error, Ended):
        return Failure(kind, error.outcome.value)
    return Failure(kind, None if compared else str(error)[:_SAID])


def _said(raised: Raised) -> str:
    """Return an exception's first line; behind it a worker's traceback may follow."""
    return _NUMBER.sub("#", raised.message.partition("\n")[0])[:_SAID]


def _is_own(raised: Raised) -> bool:
    return bool(raised.where) and _OWN.search(raised.where[-1][2]) is not None


def _lost_another(raised: Raised) -> bool:
    if raised.type == "RankDied":
        return True
    return "/gloo/" in raised.message and _CHANCE.search(_said(raised)) is not None


def _is_near(one: Comparison) -> bool:
    return one.kind == "close" and isinstance(one.got, torch.Tensor)


def _shape(one: Comparison, apart: bool) -> Iterator[bytes]:
    """Yield what is the same in two values within a tolerance: dtype, shape, what is no number.

    A value that passed is near the right one, and so is whatever else passed. Where the check failed,
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
