"""Comparisons for checks. Each says what was expected, what came, where; and leaves a record.

The record is what diagnosis works with: a known mistake explains a failure only where it fails
the same comparison with the same value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from grader.evidence.layout import Layout, effective, layout_of, reach
from grader.evidence.wire.graph import nodes_of


class Mismatch(AssertionError):
    """A comparison that failed, in parts that can be shown apart.

    `what` is a sentence; `rows` are pairs of a label and a text, e.g. ("expected", "0x3F81").
    `link` is an explorer's state that shows it, e.g. "formats.html#format=bf16&fp32=3f808000".
    `layouts` are pairs of a label and a tensor's layout, `graphs` of a label and what `graph_facts`
    gave, to be drawn.
    """

    def __init__(
        self,
        what: str,
        rows: tuple[tuple[str, str], ...] = (),
        link: str = "",
        layouts: tuple[tuple[str, Layout], ...] = (),
        graphs: Sequence[tuple[str, object]] = (),
    ) -> None:
        super().__init__(what, rows)
        self.what = what
        self.rows = rows
        self.link = link
        self.layouts = layouts
        self.graphs = tuple((label, nodes_of(graph)) for label, graph in graphs)

    def __str__(self) -> str:
        return "\n".join([self.what, *(f"{label}: {text}" for label, text in self.rows)])


@contextmanager
def about(*rows: tuple[str, str], of: str = "") -> Iterator[None]:
    """Say what comparisons within are about: `of` before the sentence of one that fails, `rows` before its rows."""
    try:
        yield
    except AssertionError as error:
        if looking_on():
            return  # the next case has evidence of its own
        if isinstance(error, Mismatch):
            error.what = f"{of}{error.what}"
            error.rows = (*rows, *error.rows)
        raise


@contextmanager
def free_choice() -> Iterator[None]:
    """Say that values compared within are the student's own choice, or chance, and no evidence.

    Own permutations, own random numbers, memory that nobody wrote: a diagnosis then sees only which
    comparisons failed.
    """
    record = recording.get()
    if record is None:
        yield
        return
    was, record.free = record.free, True
    try:
        yield
    finally:
        record.free = was


__tracebackhide__ = True  # pytest shows the check, not the comparison's inside


class _Unknown:
    """What was expected, where a check did not say."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = _Unknown()


@dataclass(frozen=True)
class Comparison:
    """One value as a check saw it, with what decides whether another value counts as the same.

    `passed` is None, and `expected` unknown, where the check itself compares. `of` is the input of
    each element, `given` the probe's inputs; both are for those who look for a reason. `free` says
    that the value is a choice of the student's, or chance: only whether it passed is evidence.
    """

    kind: str
    got: Any
    tolerance: tuple[float, float] = (0.0, 0.0)
    expected: Any = UNKNOWN
    passed: bool | None = None
    of: torch.Tensor | None = None
    given: Mapping[str, Any] | None = None
    free: bool = False

    def same(self, other: Comparison) -> bool:
        """Say whether `other` is the same evidence, by this comparison's own standard."""
        if (self.kind, self.tolerance) != (other.kind, other.tolerance):
            return False
        mine, theirs = self.got, other.got
        if not (isinstance(mine, torch.Tensor) and isinstance(theirs, torch.Tensor)):
            return type(mine) is type(theirs) and bool(_equal(mine, theirs))
        if mine.dtype != theirs.dtype or mine.shape != theirs.shape:
            return False
        if self.kind == "close":
            rtol, atol = self.tolerance
            return torch.allclose(mine, theirs, rtol, atol, equal_nan=True)
        return torch.equal(bits(mine), bits(theirs))


@dataclass
class Record:
    """The comparisons that one check made, in order.

    `looks_on` says that the check has failed already and is run once more for its evidence: a value
    that differs does not stop it then. `given` are the inputs of the evidence asked for last.
    """

    comparisons: list[Comparison] = field(default_factory=list)
    looks_on: bool = False
    given: Mapping[str, Any] | None = None
    free: bool = False
    _fresh: bool = False
    _mixed: bool = False

    def ask(self, given: Mapping[str, Any]) -> None:
        """Hear that a check asks for evidence on inputs; what it compares next is about them.

        Where it asks twice before it compares, nobody knows which inputs a comparison is about.
        """
        before = self.given or {}
        again = before.keys() == given.keys() and all(before[name] is given[name] for name in given)
        self._mixed = self._mixed or (self._fresh and not again)
        self._fresh = True
        self.given = None if self._mixed else given

    def note(self, comparison: Comparison) -> None:
        """Add a comparison, with the inputs that it is about."""
        self._fresh = self._fresh and comparison.kind == "raised"
        self.comparisons.append(replace(comparison, given=self.given, free=self.free))


recording: ContextVar[Record | None] = ContextVar("recording", default=None)


def looking_on() -> bool:
    """Say whether the check that runs has failed already, and is run for the rest of its evidence."""
    record = recording.get()
    return record is not None and record.looks_on


def note(comparison: Comparison) -> None:
    """Record a comparison, if a check is being recorded."""
    record = recording.get()
    if record is not None:
        record.note(comparison)


def fails(mismatch: Mismatch) -> None:
    """End the check, but where it looks on: what comes after a value that differs may be asked too."""
    if not looking_on():
        raise mismatch


def compared(got: object, expected: object = UNKNOWN) -> None:
    """Record what a check of your own compares bit by bit, so that a diagnosis can match it."""
    note(Comparison("bits", got, expected=expected))


_WHOLE = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor's bit patterns as whole numbers of the same width, densely laid out."""
    dense = tensor.detach().resolve_conj().resolve_neg().contiguous()
    if dense.dtype.is_complex:
        dense = torch.view_as_real(dense)
    if dense.dtype is torch.bool or not dense.dtype.is_floating_point:
        return dense
    return dense.view(_WHOLE[dense.dtype.itemsize])


def pattern(tensor: torch.Tensor) -> str:
    """Return the bits of a one-element tensor in hexadecimal, e.g. "0x3F80"."""
    size = tensor.element_size()
    number = int(bits(tensor.reshape(1))) & (2 ** (8 * size) - 1)
    return f"0x{number:0{2 * size}X}"


def show(tensor: torch.Tensor) -> str:
    """Return a one-element tensor as bits and value, e.g. "0x3F80 = 1.0"."""
    if tensor.dtype.is_floating_point:
        return f"{pattern(tensor)} = {float(tensor):.9g}"
    return str(tensor.item())


NOTHING = "Your function returned None. Did you forget a `return`?"
DIFFERS = "The result differs."


def assert_tensor(
    got: object,
    *,
    dtype: torch.dtype | None = None,
    shape: torch.Size | tuple[int, ...] | None = None,
) -> None:
    """Fail unless `got` is a tensor of that dtype and shape."""
    right = (
        isinstance(got, torch.Tensor)
        and dtype in (None, got.dtype)
        and (shape is None or tuple(got.shape) == tuple(shape))
    )
    asked_for = UNKNOWN if dtype is None or shape is None else Kind(dtype, tuple(shape))
    note(Comparison("kind", _kind(got), expected=asked_for, passed=right))
    if got is None:
        raise Mismatch(NOTHING)
    if not isinstance(got, torch.Tensor):
        raise Mismatch(f"Expected a torch.Tensor, got {_a(got)}.")
    if dtype is not None and got.dtype is not dtype:
        raise Mismatch(
            "The dtype is not the one asked for.",
            (("expected", str(dtype)), ("got", str(got.dtype))),
        )
    if shape is not None and tuple(got.shape) != tuple(shape):
        raise Mismatch(
            "The shape is not the one asked for.",
            (("expected", str(tuple(shape))), ("got", str(tuple(got.shape)))),
        )


def assert_same_bits(
    got: object, expected: torch.Tensor, *, of: torch.Tensor | None = None, link: str = ""
) -> None:
    """Fail unless `got` has the dtype, shape and every bit of `expected`.

    `of` holds the input of each element; of the failing ones the simplest is shown:
    nearest to one in size, then with the fewest set bits.
    `link` may hold `{bits}`, which becomes that input's pattern.
    """
    assert_tensor(got, dtype=expected.dtype, shape=expected.shape)
    assert isinstance(got, torch.Tensor)
    wrong = (bits(got) != bits(expected)).reshape(-1)
    right = not bool(wrong.any())
    note(Comparison("bits", got, expected=expected, passed=right, of=of))
    if right:
        return
    where = _simplest(wrong, of)
    rows = [
        ("expected", show(expected.reshape(-1)[where])),
        ("got", show(got.detach().reshape(-1)[where])),
    ]
    if of is not None:
        chosen = of.reshape(-1)[where]
        rows.insert(0, ("input", show(chosen)))
        link = link.format(bits=pattern(chosen)[2:].lower())
    count = int(wrong.sum())
    fails(Mismatch(f"{count} of {wrong.numel()} results differ. The simplest:", tuple(rows), link))


def _simplest(wrong: torch.Tensor, of: torch.Tensor | None) -> int:
    indices = wrong.nonzero().reshape(-1)
    if of is None:
        return int(indices[0])
    chosen = of.detach().reshape(-1)[indices]
    width = 2 ** (8 * of.element_size())
    patterns = [pattern % width for pattern in bits(chosen).tolist()]
    # for a person, numbers near one are simpler than tiny or huge ones
    wide = chosen.double().abs()
    far = torch.where(wide > 0, wide.log2().floor().abs(), 2000.0).nan_to_num(2000.0, 2000.0)
    keys = [(size, p.bit_count(), p) for size, p in zip(far.tolist(), patterns, strict=True)]
    return int(indices[keys.index(min(keys))])


def assert_close(
    got: object, expected: torch.Tensor, *, rtol: float, atol: float, because: str
) -> None:
    """Fail unless `got` lies within `atol + rtol * |expected|` of `expected`, NaN equal to NaN.

    `because` says in a few words where the tolerance comes from; the student reads it.
    """
    assert_tensor(got, dtype=expected.dtype, shape=expected.shape)
    assert isinstance(got, torch.Tensor)
    wrong = ~torch.isclose(got.detach(), expected.detach(), rtol, atol, equal_nan=True).reshape(-1)
    right = not bool(wrong.any())
    note(Comparison("close", got, (rtol, atol), expected, right))
    if right:
        return
    where = int(wrong.nonzero()[0])
    fails(
        Mismatch(
            f"{int(wrong.sum())} of {wrong.numel()} results are too far off.",
            (
                ("expected", f"{float(expected.reshape(-1)[where]):.9g}"),
                ("got", f"{float(got.detach().reshape(-1)[where]):.9g}"),
                ("allowed", f"{rtol:g} relative + {atol:g} absolute: {because}"),
            ),
        )
    )


def assert_same_layout(got: object, expected: torch.Tensor) -> None:
    """Fail unless `got` has the size, stride and storage offset of `expected`; draw both if not.

    Only numbers that lead to an element count: the stride of a dimension of size 1 may be any, and
    of an empty tensor only the size is compared. Where a rule about just those numbers is the
    exercise, compare `stride()` by `assert_equal`. Values, dtype and whose storage it is are not
    compared; `facts(got).aliases` tells the last.
    """
    note(Comparison("kind", type(got).__name__, passed=isinstance(got, torch.Tensor)))
    if got is None:
        raise Mismatch(NOTHING)
    if not isinstance(got, torch.Tensor):
        raise Mismatch(f"Expected a torch.Tensor, got {_a(got)}.")
    ours, theirs = layout_of(expected, 0), layout_of(got, 1)
    right = effective(ours) == effective(theirs)
    note(Comparison("equal", effective(theirs), expected=effective(ours), passed=right))
    if right:
        return
    parts = [
        ("size", ours.size, theirs.size),
        ("stride", ours.stride, theirs.stride),
        ("storage offset", ours.offset, theirs.offset),
    ]
    wrong = [part for part in parts if part[1] != part[2]]
    names = " and ".join(part[0] for part in wrong)
    rows = [
        (f"{who} {name}", str(value))
        for name, *values in wrong
        for who, value in zip(("expected", "got"), values, strict=True)
    ]
    fails(
        Mismatch(
            f"The layout is not the one asked for: {names} {'differs' if len(wrong) == 1 else 'differ'}.",
            tuple(rows),
            _explored(theirs),
            (("expected", ours), ("got", theirs)),
        )
    )


def _explored(layout: Layout) -> str:
    """Return the state of the strides explorer that shows a layout; empty if it is too large."""
    cells = max(reach(layout), layout.offset)
    if (
        len(layout.size) > 6
        or layout.numel > 256
        or cells > 128
        or max(layout.stride, default=0) > 9_999
    ):
        return ""
    size, stride = ("x".join(map(str, numbers)) for numbers in (layout.size, layout.stride))
    start = f"&offset={layout.offset}" if layout.offset else ""
    return f"strides.html#shape={size}&stride={stride}{start}&cells={min(layout.cells, 128)}"


def assert_equal(
    got: object,
    expected: object,
    what: str = DIFFERS,
    *,
    graphs: Sequence[tuple[str, object]] = (),
) -> None:
    """Fail unless plain data `got` equals `expected`; 1, 1.0 and True are not told apart.

    `graphs` are drawn in the verdict: pairs of a label and what `graph_facts` gave.
    """
    right = not isinstance(got, torch.Tensor) and _equal(got, expected)
    note(Comparison("equal", got, expected=expected, passed=right))
    if right:
        return
    if got is None and what == DIFFERS:
        raise Mismatch(NOTHING)  # a check with words of its own may compare a part of the answer
    rows = (("expected", _short(expected)), ("got", _short(got)))
    fails(Mismatch(what, rows, graphs=graphs))


def assert_holds(holds: bool, what: str, *rows: tuple[str, str]) -> None:
    """Fail unless `holds`. `what` says what is wrong where it does not, `rows` what shows it.

    For what a comparison would tell as "expected True, got False".
    """
    note(Comparison("equal", holds, passed=bool(holds)))
    if not holds:
        fails(Mismatch(what, rows))


def _equal(left: object, right: object) -> bool:
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(_equal, left, right))
    if isinstance(left, float) and isinstance(right, float) and left != left:
        return right != right
    if isinstance(left, torch.Tensor) or isinstance(right, torch.Tensor):
        return (
            isinstance(left, torch.Tensor)
            and isinstance(right, torch.Tensor)
            and left.dtype == right.dtype
            and left.shape == right.shape
            and torch.equal(bits(left), bits(right))
        )
    return bool(left == right)


@dataclass(frozen=True)
class Kind:
    """The dtype and shape that a tensor was to have."""

    dtype: torch.dtype
    shape: tuple[int, ...]


def _kind(got: object) -> tuple[str, ...]:
    if isinstance(got, torch.Tensor):
        return ("tensor", str(got.dtype), str(tuple(got.shape)))
    return (type(got).__name__,)


def _a(value: object) -> str:
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}: {_short(value)}"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 200 else text[:200] + "…"
