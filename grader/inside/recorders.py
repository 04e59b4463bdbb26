"""What stands in the place of something that is off limits: it notes the call and makes it.

A `Patch` is one attribute that is set while somebody watches, and set back after. For one name
there may be many: each module that has a function, a class's attribute, an operator's overloads.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import torch

from grader.inside.homes import Found, homes
from grader.inside.origin import from_student, written_by_student
from grader.inside.relatives import functions_of

Note = Callable[[], None]
"""Told that what is off limits was called."""

MISSING: Any = object()
"""In the place of an attribute that an object does not have itself: it inherits it."""


class Patch(NamedTuple):
    """An attribute of `owner` and what it is while somebody watches."""

    owner: Any
    name: str
    value: Any

    def before(self) -> Any:
        """Return what the owner itself has under that name, MISSING if it inherits it."""
        own = getattr(self.owner, "__dict__", {})
        if self.name in own:
            return own[self.name]
        return MISSING if isinstance(self.owner, type) else getattr(self.owner, self.name)

    def put(self, value: Any) -> None:
        """Set the attribute, or take it away."""
        if value is MISSING:
            delattr(self.owner, self.name)
        else:
            setattr(self.owner, self.name, value)


def patches_of(found: Found, note: Note, *, direct: bool = False) -> list[Patch]:
    """Return what to set so that uses of what a dotted name stands for are noted.

    A call counts if the student made it, directly or through a library; with `direct` in the
    student's own text alone. So do methods of tensors: a mode sees the rest of these.
    """
    if isinstance(found.value, ModuleType):
        return list(_of_module(found.value, note))
    if _is_operator(found.value):
        return list(_of_operator(found.value, note))
    return list(_of_callable(found, note, direct or found.owner is torch.Tensor))


def operator_patches(name: str, note: Note) -> list[Patch]:
    """Return what to set so that direct calls of an ATen operator's overloads, or of one, are noted."""
    name, _, overload = name.partition(".")
    packet = getattr(torch.ops.aten, name, None)
    if packet is None:
        return []
    patches = [
        patch
        for patch in _of_operator(packet, note)
        if not overload or getattr(patch.owner, "_overloadname", "") == overload
    ]
    for found in functions_of(name) if not overload else ():
        patches += _of_callable(found, note, direct=True)
    return patches


def _of_callable(found: Found, note: Note, direct: bool) -> Iterator[Patch]:
    value = found.value
    if _is_operator(value):
        yield from _of_operator(value, note)
    elif isinstance(value, type):
        yield from of_class(value, note, direct)
    elif callable(value):
        recorder = recording(value, note, direct)
        if isinstance(value, MethodType):  # `random.choices` is a method of a hidden object
            yield from _in_class(type(value.__self__), value.__func__, note, direct)
        if isinstance(found.owner, type):
            yield from _in_class(found.owner, getattr(value, "__func__", value), note, direct)
        elif _can_be_set(found.owner, found.name):
            yield Patch(found.owner, found.name, recorder)
        else:
            yield from _of_fixed_object(found, recorder)
        for module, name in homes(value):
            if module is not found.owner or name != found.name:
                yield Patch(module, name, recorder)


def recording(value: Any, note: Note, direct: bool, above: int = 1) -> Callable[..., Any]:
    """Return a function that notes a call which counts, and makes it.

    `above` is how many frames lie between its own and its caller's, that one included.
    """
    counts = written_by_student if direct else from_student

    def recorder(*args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling():
            return value(*args, **kwargs)  # traced by Dynamo: leave nothing behind
        if counts(sys._getframe(above)):
            note()
        return value(*args, **kwargs)

    functools.update_wrapper(recorder, value)
    recorder.stands_for = value  # type: ignore[attr-defined]
    return recorder


def original_of(function: Any) -> Any:
    """Return what a recorder stands for; anything else is returned as it is."""
    return getattr(function, "stands_for", function)


def _in_class(owner: type, function: Any, note: Note, direct: bool) -> Iterator[Patch]:
    """Yield each name by which a class has this function, be it a static or a class method."""
    for base in owner.__mro__:
        place = base if is_mutable(base) else owner
        same = [
            (name, member)
            for name, member in list(vars(base).items())
            if getattr(member, "__func__", member) is function
        ]
        for name, member in same if is_mutable(place) else ():
            recorder = recording(function, note, direct)
            yield Patch(place, name, recorder if member is function else type(member)(recorder))
        if same:
            return


def of_class(made: Any, note: Note, direct: bool) -> Iterator[Patch]:
    """Yield what notes that a class is instantiated, inherited from, or applied."""
    if not is_mutable(made):
        stand_in = _StandIn(made, note, direct)
        for module, name in homes(made):
            yield Patch(module, name, stand_in)
        return
    counts = written_by_student if direct else from_student
    own = vars(made).get("__init__")

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        if not torch.compiler.is_compiling() and counts(sys._getframe(1)):
            note()
        if own is not None:
            own(self, *args, **kwargs)
        elif super(made, made).__init__ is not object.__init__:  # that takes no arguments
            super(made, self).__init__(*args, **kwargs)

    yield Patch(made, "__init__", functools.wraps(own)(init) if own else init)
    heir = vars(made).get("__init_subclass__")

    def inherited(cls: type[Any], /, **kwargs: Any) -> None:
        if counts(sys._getframe(1)):
            note()
        if heir is not None:
            heir.__get__(None, cls)(**kwargs)
        else:
            super(made, cls).__init_subclass__(**kwargs)

    yield Patch(made, "__init_subclass__", classmethod(inherited))
    for name in ("__new__", "forward"):
        member = vars(made).get(name)
        if isinstance(member, staticmethod):
            yield Patch(made, name, staticmethod(recording(member.__func__, note, direct)))


class _StandIn:
    """In the place of a class of C's, whose attributes cannot be set."""

    def __init__(self, stands_for: type, note: Note, direct: bool) -> None:
        self._stands_for = stands_for
        self._note = note
        self._counts = written_by_student if direct else from_student

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._counts(sys._getframe(1)):
            self._note()
        return self._stands_for(*args, **kwargs)

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type]:
        """Note that somebody inherits from the class, and let them."""
        if self._counts(sys._getframe(1)):
            self._note()
        return (self._stands_for,)

    def __instancecheck__(self, instance: object) -> bool:
        return isinstance(instance, self._stands_for)

    def __subclasscheck__(self, subclass: type) -> bool:
        return issubclass(subclass, self._stands_for)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stands_for, name)


class _ObjectStandIn:
    """In the place of an object of C's: one of its methods is another."""

    def __init__(self, stands_for: object, name: str, method: Any) -> None:
        self._stands_for = stands_for
        setattr(self, name, method)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stands_for, name)


def _of_fixed_object(found: Found, recorder: Any) -> Iterator[Patch]:
    """Yield what replaces the owner where its own attributes cannot be set."""
    if len(found.path) < 2:
        return
    above, name = found.path[-2]
    if _can_be_set(above, name):
        yield Patch(above, name, _ObjectStandIn(found.owner, found.name, recorder))


def _is_operator(value: object) -> bool:
    return isinstance(value, torch._ops.OpOverloadPacket | torch._ops.OpOverload)


def _of_operator(value: Any, note: Note) -> Iterator[Patch]:
    """Yield what notes direct calls of an operator, whichever overload, however it was fetched."""
    packet = value.overloadpacket if isinstance(value, torch._ops.OpOverload) else value
    for each in (packet, *(getattr(packet, name) for name in packet.overloads())):
        # what is called is the `__call__` of torch's, in Python
        yield Patch(each, "_op", recording(each._op, note, direct=True, above=2))


def _of_module(module: ModuleType, note: Note) -> Iterator[Patch]:
    """Yield what notes uses of what a module, or one within it, defines."""
    if isinstance(module, torch._ops._OpNamespace):
        return  # a mode sees operators by their namespace
    name = module.__name__
    for other, loaded in list(sys.modules.items()):
        if other != name and not other.startswith(f"{name}."):
            continue
        for attribute, value in list(vars(loaded).items()):
            home = getattr(value, "__module__", None)
            own = isinstance(home, str) and f"{home}.".startswith(f"{name}.")
            if own and isinstance(value, type | FunctionType | BuiltinFunctionType):
                found = Found(((loaded, attribute),), value)
                yield from _of_callable(found, note, direct=False)


def is_mutable(made: type) -> bool:
    return not made.__flags__ & _IMMUTABLE and bool(made.__flags__ & _HEAP)


_IMMUTABLE, _HEAP = 1 << 8, 1 << 9
"""Flags of a type in C: Py_TPFLAGS_IMMUTABLETYPE and Py_TPFLAGS_HEAPTYPE."""


def _can_be_set(owner: Any, name: str) -> bool:
    if isinstance(owner, type):
        return is_mutable(owner)
    try:
        setattr(owner, name, getattr(owner, name))
    except (AttributeError, TypeError):
        return False
    return True
