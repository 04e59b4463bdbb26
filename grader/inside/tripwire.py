"""Watches what the student's code calls, for what an exercise forbids, from its first line on.

Rules come as pairs of kind and name, as `grader.course.rules` made them: kinds are `function`,
`direct`, `cast`, `aten`, `import` and `allowed`. This runs beside the student's code, so what it sees is
a claim that hostile code could suppress; it is there for the honest shortcut.
"""

from __future__ import annotations

import mmap
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial

import torch

from grader.evidence.wire.trace import TRIPPED
from grader.inside import witness
from grader.inside.casts import Casts, cast_patches
from grader.inside.homes import Found, is_unloaded_module, look_around, resolve
from grader.inside.modes import FunctionWatch, OperatorWatch, Stray
from grader.inside.modules import module_patches, namespace_patch, watching_imports
from grader.inside.origin import begin, line_of_cell
from grader.inside.recorders import Note, Patch, operator_patches, patches_of
from grader.inside.relatives import functions_of, relatives

Lines = Sequence[tuple[str, int, int]]
"""Label of a cell, first and last line: what is judged of it."""

_STRAY = 64
"""Most characters of an operator's name that is kept."""


class Tripwire:
    """Records which rules are broken while it is entered, in forks (loader workers, ranks) too.

    What it hands out in the place of a function goes on recording: code may have kept it.
    """

    def __init__(self, rules: Iterable[tuple[str, str]]) -> None:
        self.rules = tuple(rules)
        # a page that forks share: each byte says whether the rule of that number was broken
        self._broken = mmap.mmap(-1, len(self.rules) + _STRAY)
        self._lines: Lines | None = None
        self._patches: list[Patch] | None = None
        self._forbidden: list[tuple[object, Note]] = []
        self._imports: list[tuple[str, Note]] = []

    @property
    def tripped(self) -> list[int]:
        """The numbers of the rules that were broken, counted as they were given."""
        return [number for number in range(len(self.rules)) if self._broken[number]]

    @property
    def stray(self) -> str:
        """The first operator that was of none of the allowed families; "" if there was none."""
        return self._broken[len(self.rules) :].rstrip(b"\0").decode("ascii", "replace")

    def _trip(self, number: int) -> None:
        if self._lines is not None and not _is_judged(self._lines):
            return
        if not self._broken[number]:
            witness.mark(f"{TRIPPED} {number}")
        self._broken[number] = 1

    def _stray(self, number: int, name: str) -> None:
        before = bool(self._broken[number])
        self._trip(number)
        if self._broken[number] and not before:
            kept = name.encode("ascii", "replace")[:_STRAY]
            self._broken[len(self.rules) : len(self.rules) + len(kept)] = kept

    def _of(self, *kinds: str) -> dict[str, Note]:
        """Return the rules of these kinds: who is told, by name."""
        return {
            name: partial(self._trip, number)
            for number, (kind, name) in enumerate(self.rules)
            if kind in kinds
        }

    @contextmanager
    def watching(self, lines: Lines | None = None) -> Iterator[None]:
        """Watch what is called. While cells are loaded, `lines` are those whose calls count."""
        if not self.rules:
            yield
            return
        if self._patches is None:
            look_around()
            self._imports = list(self._unloaded())
            self._forbidden = list(self._originals())
            self._patches = list(self._all_patches())
        operators = self._operators()
        casts = self._casts()
        allowed, stray = self._allowed()
        self._lines = lines
        begin()
        with ExitStack() as stack:
            stack.callback(setattr, self, "_lines", None)
            stack.enter_context(_set(self._patches))
            if self._imports:
                stack.enter_context(watching_imports(self._imports))
            if self._forbidden or casts:
                stack.enter_context(FunctionWatch(self._forbidden, casts))
            if operators or casts or allowed is not None:
                stack.enter_context(OperatorWatch(operators, casts, allowed, stray))
            yield

    def _allowed(self) -> tuple[frozenset[str] | None, Stray]:
        """Return the families that alone are allowed, None if all are, and who is told of others."""
        for number, (kind, name) in enumerate(self.rules):
            if kind == "allowed":
                return frozenset(filter(None, name.split(", "))), partial(self._stray, number)
        return None, _nobody

    def _casts(self) -> Casts:
        return {_dtype(name): note for name, note in self._of("cast").items()}

    def _operators(self) -> dict[str, Note]:
        named = {f"aten::{name}": note for name, note in self._of("aten").items()}
        for name, note in self._of("function").items():
            if name.startswith("torch.ops.") and name.count(".") == 2:
                named[f"{name.rpartition('.')[2]}::"] = note
        return named

    def _unloaded(self) -> Iterator[tuple[str, Note]]:
        """Yield modules whose import is noted: to load what nobody has asked for takes a while."""
        yield from self._of("import").items()
        for name, note in self._of("function").items():
            if is_unloaded_module(name):
                yield name, note

    def _originals(self) -> Iterator[tuple[object, Note]]:
        """Yield what the rules name, with who is told: looked up before anything is replaced."""
        for name, note in self._of("function").items():
            if (found := self._resolve(name)) is not None:
                yield found.value, note
                for relative in relatives(found):
                    yield relative.value, note
        for name, note in self._of("aten").items():
            for found in functions_of(name):
                yield found.value, note

    def _resolve(self, name: str) -> Found | None:
        return None if name in dict(self._imports) else resolve(name)

    def _all_patches(self) -> Iterator[Patch]:
        """Yield what is set. Where two rules set the same, the later one is the stricter."""
        for name, note in self._of("aten").items():
            yield from operator_patches(name, note)
        named = [
            (found, note)
            for name, note in self._of("function").items()
            if (found := self._resolve(name)) is not None
        ]
        for found, note in named:
            for relative in relatives(found):
                yield from patches_of(relative, note, direct=True)
        for name, note in self._of("direct").items():
            if (found := resolve(name)) is not None:
                yield from patches_of(found, note, direct=True)
        for found, note in named:
            if isinstance(found.value, torch._ops._OpNamespace):
                yield namespace_patch(found.value, note)
            else:
                yield from patches_of(found, note)
        if casts := self._casts():
            yield from cast_patches(casts)
        for name, note in self._of("import").items():
            yield from module_patches(name, note)


def _nobody(name: str) -> None:
    """Told of strays where everything is allowed."""


def _is_judged(lines: Lines) -> bool:
    at = line_of_cell(sys._getframe(1))
    return at is not None and any(
        label == at[0] and first <= at[1] <= last for label, first, last in lines
    )


@contextmanager
def _set(patches: Sequence[Patch]) -> Iterator[None]:
    """Set the attributes; set back what was there."""
    before = []
    try:
        for patch in patches:
            before.append((patch, patch.before()))
            patch.put(patch.value)
        yield
    finally:
        for patch, value in reversed(before):
            patch.put(value)


def _dtype(name: str) -> torch.dtype | None:
    dtype = getattr(torch, name.rpartition(".")[2], None)
    return dtype if isinstance(dtype, torch.dtype) else None
