"""`@probe` marks a function that runs beside the student's code and returns evidence."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any, overload

import torch

from grader.evidence.wire.raised import Explained
from grader.inside.origin import belongs_to_grader, entered

_SHOWN = 120
"""Characters of an input that are shown where it made a student's code raise."""


class ProbeError(TypeError):
    """A chapter's probes are wrong; the message says where and what to do."""


@dataclass(frozen=True)
class Probe:
    """A function `run(student, *inputs)` with what its author declared of it.

    `inputs` are the names of its parameters after `student`: each is a pytest fixture, or given
    to `.ask`. `in_place` names the inputs that the exercise wants changed.
    """

    name: str
    run: Callable[..., object]
    inputs: tuple[str, ...]
    in_place: frozenset[str]


@overload
def probe(run: Callable[..., object]) -> Probe: ...
@overload
def probe(*, in_place: tuple[str, ...]) -> Callable[[Callable[..., object]], Probe]: ...


def probe(
    run: Callable[..., object] | None = None, *, in_place: tuple[str, ...] = ()
) -> Probe | Callable[[Callable[..., object]], Probe]:
    """Make a probe of `run(student, *inputs)`.

    Inputs and result are data (see `grader.evidence.wire.codec`); models, datasets, backends and process
    groups are built inside. An input that comes back changed fails every check that looks at the
    value, unless it is named in `in_place`.
    """

    def make(function: Callable[..., object]) -> Probe:
        names = tuple(inspect.signature(function).parameters)
        where = f"{_place(function)}: probe {function.__name__}"
        if not names or names[0] != "student":
            raise ProbeError(f"{where}: its first parameter must be `student`")
        unknown = ", ".join(sorted(set(in_place) - set(names[1:])))
        if unknown:
            raise ProbeError(f"{where}: `in_place` names {unknown}, which is none of its inputs")
        other = inspect.unwrap(function).__globals__.get(function.__name__)
        if isinstance(other, Probe) and _another_of_its_file(other.run, function):
            raise ProbeError(f"{where}: another of that name stands at {_place(other.run)}")
        return Probe(function.__name__, function, names[1:], frozenset(in_place))

    return make if run is None else make(run)


def _place(function: Callable[..., object]) -> str:
    """Return "file:line" of a function."""
    code = inspect.unwrap(function).__code__
    return f"{code.co_filename}:{code.co_firstlineno}"


def _another_of_its_file(one: Callable[..., object], two: Callable[..., object]) -> bool:
    """Say whether two functions stand in one file. A notebook's cell that is run again is one."""
    (file, line), (other_file, other_line) = (_place(f).rsplit(":", 1) for f in (one, two))
    return file == other_file and line != other_line


def each(call: Callable[..., Any], cases: Iterable[Sequence[Any]]) -> list[Any]:
    """Return what `call(*case)` gives for each case.

    What it raises is noted with the case: a student reads on which of many inputs it happened.
    """
    results = []
    for case in cases:
        try:
            results.append(call(*case))
        except Exception as error:
            name = getattr(call, "__name__", "")
            error.add_note(f"{name}({', '.join(map(_shown, case))})")
            raise
    return results


def _shown(value: object) -> str:
    """Return an input as one would write it; a tensor as its dtype, size and stride."""
    if isinstance(value, torch.Tensor):
        dtype = str(value.dtype).removeprefix("torch.")
        return f"<{dtype}, size {tuple(value.shape)}, stride {value.stride()}>"
    if isinstance(value, bytes):
        return f"<{len(value)} bytes>"
    if isinstance(value, list | tuple) and any(isinstance(part, torch.Tensor) for part in value):
        return f"[{', '.join(map(_shown, value))}]"
    shown = repr(value)
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"


def probe_modules(path: Path) -> list[Path]:
    """Return the modules of the package `path`, a chapter's probes."""
    return sorted(path.glob("*.py"))


def load_probes(path: Path) -> dict[str, Probe]:
    """Return a chapter's probes, by name: those of all modules of the package `path`.

    Raises `ProbeError` if there is no such file, or two probes have one name.
    """
    belongs_to_grader(path)
    package = f"_probes_of_{path.parent.name}"
    for name in [name for name in sys.modules if f"{name}.".startswith(f"{package}.")]:
        del sys.modules[name]  # of another course
    modules = [_load(package, path / "__init__.py")]
    names = [module.stem for module in probe_modules(path) if module.stem != "__init__"]
    modules += [importlib.import_module(f"{package}.{name}") for name in names]
    found: dict[str, Probe] = {}
    for module in modules:
        for value in vars(module).values():
            if isinstance(value, Probe) and found.setdefault(value.name, value) is not value:
                raise ProbeError(
                    f"{module.__file__} has a second probe called {value.name}: the other stands "
                    f"at {_place(found[value.name].run)}; rename one"
                )
    return found


def _load(name: str, file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None or not file.is_file():
        raise ProbeError(f"there are no probes at {file.parent}: a package, it needs {file.name}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


class MissingName(Explained):
    """The student's code does not define a name that the exercise asks for."""

    def __init__(self, name: str, others: list[str]) -> None:
        close = get_close_matches(name, others, n=1, cutoff=0.75)
        slip = f" You define `{close[0]}`: is that a slip?" if close else ""
        super().__init__(f"`{name}` is not defined.{slip or ' Run the cell that defines it.'}")


class NotCallable(Explained):
    """A name that the exercise asks for stands for something that cannot be called."""

    def __init__(self, name: str, value: object) -> None:
        what = "None" if value is None else f"of type {type(value).__name__}"
        super().__init__(
            f"`{name}` is {what} here, and the exercise asks for something to call. Which line "
            f"sets it? Run the cell that defines `{name}` again, or take that line out."
        )


class Student:
    """The student's names, as attributes: `student.round_to_bf16`. All are functions or classes."""

    def __init__(self, names: dict[str, Any]) -> None:
        self._names = names

    def __getattr__(self, name: str) -> Any:
        if name not in self._names:
            others = [other for other, value in self._names.items() if callable(value)]
            raise MissingName(name, others)
        value = self._names[name]
        if not callable(value):
            raise NotCallable(name, value)
        entered(value)
        return value
