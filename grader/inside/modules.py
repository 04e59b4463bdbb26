"""Notes what the student's own text does with a module that is off limits. Torch may use it.

However a module was reached (`import`, `sys.modules`, through another module that has it), it is one
object, and to use it is to ask it for an attribute. A function of it that another module has taken
along is noted when it is called.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from grader.inside.homes import homes
from grader.inside.origin import written_by_student
from grader.inside.recorders import Note, Patch, recording

_NAMES_OF_IMPORTS = frozenset({"__spec__", "__path__", "__name__", "__loader__", "__package__"})
"""What Python's import statement asks of a module by itself."""


def module_patches(name: str, note: Note) -> list[Patch]:
    """Return what to set so that the student's use of a module, or of one within it, is noted."""
    try:
        importlib.import_module(name)
    except ImportError:
        return []  # it is not there: a finder notes who asks for it
    patches = []
    kinds: dict[type, type] = {}
    functions: dict[int, Any] = {}
    for module in _modules_of(name):
        kind = type(module)
        kinds[kind] = kinds.get(kind) or _asked(kind, note)
        patches.append(Patch(module, "__class__", kinds[kind]))
        functions.update((id(value), value) for value in _functions_in(module))
    for value in functions.values():
        if not _within(str(getattr(value, "__module__", "")), name):
            continue
        places = [place for place in homes(value) if not _within(place[0].__name__, name)]
        recorder = recording(value, note, direct=True) if places else None
        patches += [Patch(home, attribute, recorder) for home, attribute in places]
    return patches


def _functions_in(module: ModuleType) -> list[Any]:
    values = list(vars(module).values())
    return [value for value in values if isinstance(value, FunctionType | BuiltinFunctionType)]


def namespace_patch(namespace: ModuleType, note: Note) -> Patch:
    """Return what to set so that the student's use of `torch.ops.quantized` is noted."""
    return Patch(namespace, "__class__", _asked(type(namespace), note))


def _modules_of(name: str) -> list[ModuleType]:
    """Return the loaded modules of a package, and its part that is written in C."""
    return [
        module
        for other, module in list(sys.modules.items())
        if isinstance(module, ModuleType) and _within(other, name)
    ]


def _within(module: str, package: str) -> bool:
    return f"{module}.".startswith((f"{package}.", f"_{package}."))


def _asked(kind: type, note: Note) -> type:
    """Return a class of modules that notes when the student's text asks one for an attribute."""

    class Asked(kind):  # type: ignore[misc]
        def __getattribute__(self, name: str) -> Any:
            if name not in _NAMES_OF_IMPORTS and written_by_student(sys._getframe(1)):
                note()
            return super().__getattribute__(name)

    return Asked


class _Finder(MetaPathFinder):
    """Finds nothing, and notes when the student's text imports what is off limits."""

    def __init__(self, rules: Sequence[tuple[str, Note]]) -> None:
        self._rules = rules

    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:
        for name, note in self._rules:
            if _within(fullname, name) and _importer_is_student():
                note()
        return None


def _importer_is_student() -> bool:
    frame = sys._getframe(2)
    while frame is not None and "importlib" in frame.f_code.co_filename:
        frame = frame.f_back  # type: ignore[assignment]
    return written_by_student(frame)


@contextmanager
def watching_imports(rules: Sequence[tuple[str, Note]]) -> Iterator[None]:
    """Note imports by the student's text of modules that are not loaded yet."""
    finder = _Finder(rules)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        if finder in sys.meta_path:
            sys.meta_path.remove(finder)
