"""Roads as torch goes them: a kernel of ours at each key of each operator notes that it was called, and calls the one that was there.

    python -m tests.explorers.golden_dispatch < what to run, as JSON > the roads, as JSON

A process of its own, since every operator is another one afterwards.
"""

from __future__ import annotations

import itertools
import json
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from types import ModuleType
from typing import Any

import torch
import torch.nn.functional as F
from torch.profiler import profile

from tests import ROOT, module_at

FOLDER = ROOT / "site" / "explorers" / "dispatch"

Row = tuple[int, str, str, str, list[str]]
"""A stop: depth, operator, key, what the table has there, and the keys that were left, of those the page knows."""

ALONE = {"t", "transpose.int", "select.int", "_to_copy", "detach", "native_layer_norm"}
"""Kernels that a sparse tensor shares with others, and in which the page does not look."""


def capture() -> ModuleType:
    """The script that writes tables.js."""
    return module_at(FOLDER / "capture.py")


class Recorder:
    """All operators that are named, with a kernel of ours at each key; `rows` is what they noted."""

    def __init__(self, told: ModuleType) -> None:
        self.told = told
        self.rows: list[Row] = []
        self.depth = 0
        self.muted = 1
        self.library = torch.library.Library("aten", "IMPL")

    def listen(self, op: str) -> None:
        """Put a kernel of ours at each key at which the operator has one."""
        base, _, overload = op.partition(".")
        schema = getattr(getattr(torch.ops.aten, base), overload or "default")._schema
        takes = [str(argument.type) == "Tensor" for argument in schema.arguments]
        words = {letter: word for word, letter in self.told.LETTERS.items()}
        held = [
            (key, words[letter], torch.library.get_kernel(f"aten::{op}", key))
            for key, letter in zip(self.told.LANES, self.told.table(op), strict=True)
            if letter not in "-."
        ]
        # All are taken before the first is replaced: a kernel for a backend displaces composites.
        for key, word, kernel in held:
            assert self.library.m is not None
            self.library.m.impl(op, key, self._kernel(op, key, word, kernel, takes), True)

    def _kernel(self, op: str, key: str, word: str, kernel: Any, takes: Sequence[bool]) -> Any:
        leaf = key in ("CPU", "Meta", "SparseCPU") and word == "kernel"
        leaf |= key == "SparseCPU" and op in ALONE

        def noting(keys: Any, *args: Any, **kwargs: Any) -> Any:
            # A number in the place of a tensor came as one, and was unpacked for Python.
            args = tuple(
                self._tensor(arg) if wanted and isinstance(arg, int | float | complex) else arg
                for arg, wanted in itertools.zip_longest(args, takes[: len(args)])
            )
            if self.muted:
                return kernel.call_boxed(keys, *args, **kwargs)
            # By this autograd keeps a result for backward, while a mode listens.
            kept = op == "detach" and bool(self.rows) and self.rows[0][1] != "detach"
            if not kept:
                self.rows.append((self.depth, op, key, word, self.told.lanes_of(keys)))
            self.depth += 1
            self.muted += leaf or kept
            try:
                return kernel.call_boxed(keys, *args, **kwargs)
            finally:
                self.depth -= 1
                self.muted -= leaf or kept

        return noting

    def _tensor(self, number: complex) -> torch.Tensor:
        self.muted += 1
        try:
            with torch._C._DisableTorchDispatch():
                return torch.scalar_tensor(number)
        finally:
            self.muted -= 1

    def road(self, code: str, tensor: str, modes: Sequence[str]) -> dict[str, Any]:
        """Run one call as the page has it, and return its stops and what it raised."""
        make = self.told.TENSORS[tensor]
        names = {"torch": torch, "F": F, "w": make()}
        x = torch.stack([make(), make()]) if "vmap" in modes else make()
        call = compile(code, "call", "eval")

        def watched(x: torch.Tensor) -> Any:
            self.muted = 0
            try:
                return eval(call, {**names, "x": x})
            finally:
                self.muted = 1

        self.rows, self.depth, error = [], 0, None
        with ExitStack() as stack:
            for mode in modes:
                if mode != "vmap":
                    stack.enter_context(self.told.MODES[mode]())
            try:
                (torch.vmap(watched) if "vmap" in modes else watched)(x)
            except (RuntimeError, NotImplementedError) as raised:
                error = str(raised)
        return {"rows": self.rows, "error": error}


def operators(recorder: Recorder, asked: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Give all overloads of all operators that run in these calls."""
    with profile() as seen:
        for one in asked:
            if len(one["modes"]) < 2:
                recorder.road(one["code"], one["tensor"], one["modes"])
    for name in sorted({e.key.removeprefix("aten::") for e in seen.key_averages() if e.key.startswith("aten::")}):  # fmt: skip
        packet = getattr(torch.ops.aten, name, None)
        for overload in packet.overloads() if packet else ():
            yield name if overload == "default" else f"{name}.{overload}"


def main() -> None:
    """Run what is asked for on the input, and print the roads."""
    warnings.simplefilter("ignore")
    asked = json.load(sys.stdin)
    recorder = Recorder(capture())
    found = list(operators(recorder, asked))
    for op in found:
        recorder.listen(op)
    roads = [{**one, **recorder.road(one["code"], one["tensor"], one["modes"])} for one in asked]
    json.dump({"operators": found, "roads": roads}, sys.stdout)


if __name__ == "__main__":
    main()
