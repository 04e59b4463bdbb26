"""Whose call it is: the student's, the grader's or a library's. Asked of the frames that led to it.

Frames of libraries (Python's and torch's own) belong to who called them, and so do the frames of
what watches. A call is the student's if theirs is the nearest frame that is left. What a library
does while it is imported is its own: an optimizer's first step imports Dynamo, which defines modules.
"""

from __future__ import annotations

import importlib
import sysconfig
from collections.abc import Mapping
from enum import Enum
from functools import lru_cache
from pathlib import Path
from types import CodeType, FrameType

import torch


class Origin(Enum):
    """Who wrote a piece of code."""

    STUDENT = "student"
    GRADER = "grader"
    LIBRARY = "library"
    WATCHING = "watching"


_ours = [f"{Path(__file__).parents[1]}/"]
_WATCHING = (str(Path(__file__).parent / "instruments"), *(
    str(Path(__file__).with_name(f"{name}.py"))
    for name in ("casts", "dispatch", "homes", "modes", "modules", "origin", "recorders", "tripwire", "witness")
))  # fmt: skip
_LIBRARIES = tuple(
    {
        *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")),
        str(Path(torch.__file__).parents[1]),
    }
)
_MAIN = ("__main__", "__mp_main__")

_IMPORTING = importlib._bootstrap._call_with_frames_removed.__code__  # type: ignore[attr-defined]
"""What runs a module's own text, where the module is imported."""


def belongs_to_grader(folder: Path) -> None:
    """Take a folder's code for the grader's: a box has a chapter's probes beside the package."""
    if f"{folder}/" not in _ours:
        _ours.append(f"{folder}/")
        _of_file.cache_clear()


@lru_cache(maxsize=4096)
def _of_file(name: str) -> Origin | None:
    """Return whose file it is; None for text that was in no file, such as `<string>`."""
    if name.startswith(_WATCHING):
        return Origin.WATCHING
    if name.startswith(tuple(_ours)):
        return Origin.GRADER
    if name.startswith(_LIBRARIES):
        return Origin.LIBRARY
    return None if name.startswith("<") else Origin.STUDENT


def _of(code: CodeType, names: Mapping[str, object]) -> Origin:
    known = _of_file(code.co_filename)
    if known is not None:
        return known
    return Origin.STUDENT if names.get("__name__") in _MAIN else Origin.LIBRARY


_stands_in = False
"""Does something that the student did not write stand where their function should?"""


def entered(value: object) -> None:
    """Take down what a probe is about to call as the student's.

    That may be torch's own function, or a `partial` of it. Such a call has no frame of the
    student's, so from then on those of the probe are taken for theirs.
    """
    global _stands_in
    try:
        made = is_made_by_student(value)
    except Exception:  # an object of theirs that does not like to be looked at
        made = True
    _stands_in = _stands_in or not made


def begin() -> None:
    """Forget what was entered: another probe begins."""
    global _stands_in
    _stands_in = False


def from_student(frame: FrameType | None) -> bool:
    """Is a call that began in `frame` the student's, directly or through a library?

    Where no frame is anybody's, as in a thread that begins in torch, it is.
    """
    while frame is not None:
        origin = _of(frame.f_code, frame.f_globals)
        if origin is Origin.STUDENT:
            return True
        if origin is Origin.GRADER:
            return _stands_in
        if frame.f_code is _IMPORTING:
            return False
        frame = frame.f_back
    return True


def written_by_student(frame: FrameType | None) -> bool:
    """Is a call that began in `frame` the student's own text, with no library between?

    A thread whose target is the function itself was begun by somebody's text: it counts.
    """
    begun = frame
    while frame is not None:
        origin = _of(frame.f_code, frame.f_globals)
        if origin is Origin.GRADER:
            return _stands_in
        if origin is not Origin.WATCHING:
            return origin is Origin.STUDENT or _is_start_of_a_thread(begun)
        frame = frame.f_back
    return True


def _is_start_of_a_thread(frame: FrameType | None) -> bool:
    """Is `frame` the one of `threading` that calls a thread's target?"""
    return (
        frame is not None
        and frame.f_code.co_name == "run"
        and frame.f_globals.get("__name__") == "threading"
    )


def line_of_cell(frame: FrameType | None) -> tuple[str, int] | None:
    """Return the label and the line of the cell's statement that runs now; None outside of one."""
    found = None
    while frame is not None:
        code = frame.f_code
        is_cell = code.co_name == "<module>" and _of_file(code.co_filename) is None
        if is_cell and frame.f_globals.get("__name__") in _MAIN:
            found = code.co_filename.strip("<>"), frame.f_lineno
        frame = frame.f_back
    return found


def is_made_by_student(value: object) -> bool:
    """Did the student write this function or class, decorated or not?"""
    for _ in range(_WRAPPED):
        inner = getattr(value, "__wrapped__", None) or getattr(value, "func", None)
        if inner is None:
            break
        value = inner
    owner = getattr(value, "__self__", None)  # of `Square.apply`, the class
    if isinstance(owner, type) and owner.__module__ in _MAIN:
        return True
    code = getattr(getattr(value, "__func__", value), "__code__", None)
    if isinstance(code, CodeType):
        return _of(code, getattr(value, "__globals__", {})) is Origin.STUDENT
    made = value if isinstance(value, type) else type(value)
    return made.__module__ in _MAIN


_WRAPPED = 20
"""Most wrappers that are looked through: a chain may bite its tail."""
