"""The shape of a reply from beside the student's code, checked before anything is made of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from grader.evidence.wire.tensors import Malformed


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_report(value: object) -> bool:
    """Say whether a value is what `grader.evidence.wire.raised.report` returns."""
    return (
        isinstance(value, dict)
        and set(value) - {"notes"} == {"type", "mro", "message", "where"}
        and _is_text(value["type"])
        and _is_text(value["message"])
        and _is_list(value["mro"], _is_text)
        and _is_list(value["where"], lambda line: _is_tuple(line, str, int, str))
    )


def _is_list(value: object, is_item: Callable[[object], bool]) -> bool:
    return isinstance(value, list) and all(map(is_item, value))


def _is_tuple(value: object, *kinds: type) -> bool:
    return (
        isinstance(value, tuple)
        and len(value) == len(kinds)
        and all(type(item) is kind for item, kind in zip(value, kinds, strict=True))
    )


def _is_dict(
    value: object, is_key: Callable[[object], bool], is_item: Callable[[object], bool]
) -> bool:
    return isinstance(value, dict) and all(is_key(k) and is_item(v) for k, v in value.items())


_SHAPES: dict[str, dict[str, Callable[[object], bool]]] = {
    "load": {
        "stopped": lambda value: _is_dict(value, _is_text, _is_report),
        "stdout": _is_text,
    },
    "probe": {
        "value": lambda value: value is None or isinstance(value, bytes),
        "refused": lambda value: value is None or _is_text(value),
        "raised": lambda value: value is None or _is_report(value),
        "changed": lambda value: _is_dict(
            value,
            lambda number: type(number) is int and number >= 0,
            lambda data: isinstance(data, bytes),
        ),
        "warnings": lambda value: _is_list(value, lambda pair: _is_tuple(pair, str, str)),
        "stdout": _is_text,
        "tripped": lambda value: _is_list(value, lambda number: type(number) is int),
        "stray": _is_text,
        "tampered": lambda value: _is_list(value, _is_text),
    },
    "plain": {
        "raised": lambda value: value is None or _is_report(value),
        "stdout": _is_text,
    },
}


def checked_reply(data: Any, kind: str) -> dict[str, Any]:
    """Check the shape of a reply down to its last string: whoever sent it may be hostile."""
    shape = _SHAPES[kind]
    if not isinstance(data, dict) or set(data) != set(shape):
        raise Malformed(f"a reply that is no answer to {kind!r}")
    for name, fits in shape.items():
        if not fits(data[name]):
            raise Malformed(f"a reply without a proper {name!r}")
    return data
