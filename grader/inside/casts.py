"""Casts in the student's own text, in any thread: the calls that hand over what they make.

Modes see all others: what an operator casts on its way, and who casts below.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from grader.inside.origin import written_by_student
from grader.inside.recorders import Note, Patch, of_class

_CASTING = ("to", "type", "type_as", "copy_", "bfloat16", "half", "float", "double")
"""Methods of tensors that cast."""

_OPERATORS = ("_to_copy", "to", "type_as", "copy_", "copy")
"""The operators that they end in."""


Casts = Mapping[torch.dtype | None, Note]
"""Who is told, by the dtype that nothing may be cast to."""


def cast_patches(casts: Casts) -> Iterator[Patch]:
    """Yield what to set so that the student's casts to these dtypes are noted."""
    for name in _CASTING:
        method = getattr(torch.Tensor, name)
        yield Patch(torch.Tensor, name, _casting(method, casts))
    for name in _OPERATORS:
        packet = getattr(torch.ops.aten, name)
        for each in (packet, *(getattr(packet, overload) for overload in packet.overloads())):
            yield Patch(each, "_op", _casting(each._op, casts, above=2))
    for made in torch._tensor_classes:  # old types, which cast beneath every mode
        if made.dtype in casts and "cuda" not in made.__module__:
            yield from of_class(made, casts[made.dtype], direct=False)


def _casting(call: Any, casts: Casts, above: int = 1) -> Callable[..., Any]:
    """Return a function that makes a call, and notes it if it casts to one of the dtypes.

    `above` is as in `recorders.recording`.
    """

    def recorder(*args: Any, **kwargs: Any) -> Any:
        result = call(*args, **kwargs)
        dtype = getattr(result, "dtype", None)
        if torch.compiler.is_compiling() or dtype not in casts:
            return result
        handed = (value for value in (*args, *kwargs.values()) if isinstance(value, torch.Tensor))
        read = any(tensor.is_floating_point() and tensor.dtype is not dtype for tensor in handed)
        if read and written_by_student(sys._getframe(above)):
            casts[dtype]()
        return result

    functools.update_wrapper(recorder, call)
    recorder.stands_for = call  # type: ignore[attr-defined]
    return recorder
