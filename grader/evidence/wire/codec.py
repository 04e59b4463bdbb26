"""One encoding for inputs and evidence: a JSON tree and raw buffers. Data only, never pickle.

Layout of a message: four bytes `UT01`, the header's length (4 bytes, big-endian), the header
(JSON: tree, buffer lengths, storages), then the buffers one after another. Tensors keep dtype,
sizes, strides, offset, overlap, conj and neg bits; tensors that share a storage share it after
decoding too. A storage may be one the reader already has (`known`): so aliasing crosses.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import torch

from grader.evidence.wire.tensors import (
    DTYPES,
    Malformed,
    Refused,
    describe,
    rebuild,
    storage_bytes,
    storage_from,
)

MESSAGE_LIMIT = 48 * 2**20
"""Largest message in bytes, below the channel's frame limit."""

HEADER_LIMIT = 8 * 2**20
"""Largest JSON header in bytes: a million small numbers, and no bomb."""

DEPTH_LIMIT = 40
"""Deepest nesting; deeper than any evidence, shallower than the interpreter's recursion limit."""

KEY_LIMIT = 10_000
"""Most keys and members of a message that are not text or bytes. Hashes of numbers can be made to
collide, and then n of them take n² comparisons: this many take a second, a header full an hour."""

RANGE_LIMIT = 2**20
"""Most numbers of a range: three of them say how many there are, and a list of them is a bomb."""

EXTENT_LIMIT = 256 * 2**20
"""Most bytes that the tensors of a message have as they are indexed, all together. Those that share a
storage, or read cells of it again and again, have more than the message."""

_MAGIC = b"UT01"
_JSON = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
_LEAVES = frozenset({type(None), bool, str})
_NAMES: dict[str, object] = {
    str(value): value
    for value in (
        torch.contiguous_format, torch.preserve_format, torch.channels_last,
        torch.channels_last_3d, torch.strided,
    )
}  # fmt: skip


Known = Callable[[], Sequence[torch.UntypedStorage]]
"""Brings the storages that a reader has, which a message can name by their numbers."""


@dataclass(frozen=True)
class Named:
    """Something that crossed by its name alone, e.g. a member of an enum."""

    kind: str
    name: str


def encode(value: object, known: Sequence[torch.UntypedStorage] = ()) -> bytes:
    """Return `value` as bytes. Raises `Refused`, naming what is not plain data or too large.

    `known` are storages that the reader has under the same numbers; they are not written again.
    """
    writer = _Writer(known)
    tree = writer.node(value, 0)
    header = {
        "tree": tree,
        "buffers": [len(buffer) for buffer in writer.buffers],
        "storages": writer.storages,
    }
    text = _JSON.encode(header).encode("ascii")
    if len(text) > HEADER_LIMIT:
        raise Refused(f"more than {HEADER_LIMIT} bytes of numbers and text")
    return b"".join([_MAGIC, struct.pack(">I", len(text)), text, *writer.buffers])


def decode(data: bytes, known: Known = tuple) -> Any:
    """Return the value that `data` encodes. Raises `Malformed` for anything else.

    `known` is called at most once, for the storages that the reader has, if the message names any.
    """
    return decode_with_storages(data, known)[0]


def decode_with_storages(
    data: bytes, known: Known = tuple
) -> tuple[Any, list[torch.UntypedStorage]]:
    """Return the value and its storages, in the order in which the message numbers them."""
    try:
        return _decode(data, known)
    except Malformed:
        raise
    except Exception as error:
        # json, int() and torch's own checks; whatever they say, the sender's bytes are wrong
        raise Malformed(f"{type(error).__name__}: {error}") from None


class _Writer:
    def __init__(self, known: Sequence[torch.UntypedStorage]) -> None:
        self.buffers: list[bytes] = []
        self.storages: list[dict[str, int]] = []
        self._known = {_identity(storage): index for index, storage in enumerate(known)}
        self._seen: dict[tuple[int, int], int] = {}
        self._keep: list[torch.UntypedStorage] = []  # an address means nothing once it is freed
        self._room = MESSAGE_LIMIT
        self._keys = 0
        self._extent = 0

    def node(self, value: object, depth: int) -> Any:
        if depth > DEPTH_LIMIT:
            raise Refused(f"data nested more than {DEPTH_LIMIT} deep, or within itself")
        if type(value) in _LEAVES:
            return value
        if type(value) is int:
            if value.bit_length() > 4096:  # json's own limit lies at 4300 digits
                raise Refused("a whole number of more than 4096 bits")
            return value
        if isinstance(value, list):
            # here and below the base class's own methods: a subclass crosses as what it is made of
            return self._nodes(list.__iter__(value), depth)
        return self._tagged(value, depth)

    def _nodes(self, items: Iterable[object], depth: int) -> list[Any]:
        node, below = self.node, depth + 1
        return [node(item, below) for item in items]

    def _tagged(self, value: object, depth: int) -> dict[str, Any]:
        if isinstance(value, torch.Tensor):
            record = describe(value, self._storage, lambda v: self.node(v, depth + 1))
            self._extent += math.prod(record["n"]) * value.element_size()
            if self._extent > EXTENT_LIMIT:
                raise Refused(f"tensors of more than {EXTENT_LIMIT} bytes, by their sizes")
            return {"tensor": record}
        if isinstance(value, Enum):
            kind = type(value)
            return {"enum": f"{kind.__module__}.{kind.__qualname__}.{value.name}"}
        if isinstance(value, torch.Size):
            return {"size": list(value)}
        if isinstance(value, float):
            if math.isfinite(value):
                return {"f": float(value)}
            return {"f": struct.pack(">d", value).hex()}
        if isinstance(value, complex):
            return {"complex": self._nodes([value.real, value.imag], depth)}
        if isinstance(value, tuple):
            return {"tuple": self._nodes(tuple.__iter__(value), depth)}
        if isinstance(value, dict):
            pairs = list(dict.items(value))
            self._count_keys(key for key, _ in pairs)
            return {"dict": [self._nodes(pair, depth) for pair in pairs]}
        if isinstance(value, frozenset):
            return {"frozenset": self._members(list(frozenset.__iter__(value)), depth)}
        if isinstance(value, set):
            return {"set": self._members(list(set.__iter__(value)), depth)}
        if isinstance(value, bytes | bytearray):
            return {"bytes": self._buffer(bytes(value))}
        if isinstance(value, torch.dtype):
            return {"dtype": str(value).removeprefix("torch.")}
        if isinstance(value, torch.device):
            return {"device": str(value)}
        if isinstance(value, torch.memory_format | torch.layout) and str(value) in _NAMES:
            return {"torch": str(value)}
        if isinstance(value, slice):
            return {"slice": self._nodes([value.start, value.stop, value.step], depth)}
        if isinstance(value, range):
            if not _is_short(value):
                raise Refused(f"a range of more than {RANGE_LIMIT} numbers")
            return {"range": [value.start, value.stop, value.step]}
        if value is Ellipsis:
            return {"...": True}
        raise Refused(f"a {type(value).__module__}.{type(value).__qualname__}")

    def _members(self, members: list[object], depth: int) -> list[Any]:
        self._count_keys(members)
        return sorted((self.node(member, depth + 1) for member in members), key=json.dumps)

    def _count_keys(self, keys: Iterable[object]) -> None:
        self._keys += sum(type(key) not in (str, bytes) for key in keys)
        if self._keys > KEY_LIMIT:
            raise Refused(f"more than {KEY_LIMIT} keys or members of sets that are not text")

    def _storage(self, storage: torch.UntypedStorage) -> int:
        identity = _identity(storage)
        if identity in self._seen and storage.nbytes():
            return self._seen[identity]
        if identity in self._known and storage.nbytes():
            entry = {"known": self._known[identity]}
        else:
            entry = {"buffer": self._buffer(storage_bytes(storage))}
        self._keep.append(storage)
        self.storages.append(entry)
        self._seen[identity] = len(self.storages) - 1
        return self._seen[identity]

    def _buffer(self, data: bytes) -> int:
        self._room -= len(data)
        if self._room < 0:
            raise Refused(f"more than {MESSAGE_LIMIT} bytes")
        self.buffers.append(data)
        return len(self.buffers) - 1


def _identity(storage: torch.UntypedStorage) -> tuple[int, int]:
    return storage.data_ptr(), storage.nbytes()


def _decode(data: bytes, known: Known) -> tuple[Any, list[torch.UntypedStorage]]:
    if data[:4] != _MAGIC:
        raise Malformed("not a message of ours")
    (length,) = struct.unpack(">I", data[4:8])
    if length > HEADER_LIMIT or 8 + length > len(data):
        raise Malformed("a header longer than its message")
    header = json.loads(data[8 : 8 + length])
    buffers = _buffers(header["buffers"], data, 8 + length)
    storages = _storages(header["storages"], buffers, known)
    value = _Reader(buffers, storages).value(header["tree"], 0)
    return value, [storage for storage, _ in storages]


def _storages(
    entries: Any, buffers: list[bytes], known: Known
) -> list[tuple[torch.UntypedStorage, int | None]]:
    """Return storages, each with its number among the known ones, or None."""
    storages: list[tuple[torch.UntypedStorage, int | None]] = []
    taken: set[int] = set()
    named: Sequence[torch.UntypedStorage] | None = None
    for entry in entries:
        if "known" in entry:
            named = known() if named is None else named
            index = _index(entry["known"], len(named))
            storages.append((named[index], index))
            continue
        index = _index(entry["buffer"], len(buffers))
        if index in taken:
            raise Malformed("two storages in one buffer")  # each would be a copy: a bomb
        taken.add(index)
        storages.append((storage_from(buffers[index]), None))
    return storages


def _buffers(lengths: Any, data: bytes, start: int) -> list[bytes]:
    buffers = []
    for length in lengths:
        if type(length) is not int or length < 0 or start + length > len(data):
            raise Malformed("a buffer longer than its message")
        buffers.append(data[start : start + length])
        start += length
    if start != len(data):
        raise Malformed("bytes left over")
    return buffers


def _index(value: object, count: int) -> int:
    if type(value) is not int or not 0 <= value < count:
        raise Malformed("a number that points nowhere")
    return value


class _Reader:
    def __init__(
        self, buffers: list[bytes], storages: list[tuple[torch.UntypedStorage, int | None]]
    ) -> None:
        self._buffers = buffers
        self._storages = storages
        self._keys = 0
        self._extent = 0

    def value(self, node: Any, depth: int) -> Any:
        if depth > DEPTH_LIMIT + 1:
            raise Malformed("nested too deep")
        kind = type(node)  # of json's
        if kind in _LEAVES or kind is int:
            return node
        if kind is list:
            return self._values(node, depth)
        if kind is not dict or len(node) != 1:
            raise Malformed("a node that is neither a value nor one tagged value")
        ((tag, body),) = node.items()
        return self._tagged(tag, body, depth)

    def _values(self, nodes: object, depth: int) -> list[Any]:
        if type(nodes) is not list:
            raise Malformed("a node without the list that its tag wants")
        value, below = self.value, depth + 1
        return [value(node, below) for node in nodes]

    def _tagged(self, tag: str, body: Any, depth: int) -> Any:
        match tag:
            case "tensor":
                tensor = rebuild(body, self._storages, lambda node: self.value(node, depth + 1))
                self._extent += tensor.numel() * tensor.element_size()
                if self._extent > EXTENT_LIMIT:
                    raise Malformed("tensors that are larger than their storages by far")
                return tensor
            case "f":
                return body if type(body) is float else _odd_float(body)
            case "complex":
                return complex(*self._values(body, depth))
            case "tuple":
                return tuple(self._values(body, depth))
            case "dict":
                pairs = self._values(body, depth)
                if not all(type(pair) is list and len(pair) == 2 for pair in pairs):
                    raise Malformed("a dict of what are no pairs")
                return dict(self._hashed(pairs, [key for key, _ in pairs]))
            case "set":
                members = self._values(body, depth)
                return set(self._hashed(members, members))
            case "frozenset":
                members = self._values(body, depth)
                return frozenset(self._hashed(members, members))
            case "bytes":
                return self._buffers[_index(body, len(self._buffers))]
            case "size":
                return torch.Size(self._values(body, depth))
            case "dtype":
                return DTYPES[body]
            case "device":
                return torch.device(_text(body))
            case "torch":
                return _NAMES[body]
            case "enum":
                return Named("enum", _text(body))
            case "slice":
                return slice(*self._values(body, depth))
            case "range":
                numbers = range(*self._values(body, depth))
                if not _is_short(numbers):
                    raise Malformed("a range without end")
                return numbers
            case "...":
                return Ellipsis
        raise Malformed(f"an unknown kind of node: {tag[:40]!r}")

    def _hashed(self, values: list[Any], keys: list[Any]) -> list[Any]:
        self._keys += sum(type(key) not in (str, bytes) for key in keys)
        if self._keys > KEY_LIMIT:
            raise Malformed("too many keys")
        return values


def _is_short(numbers: range) -> bool:
    try:
        return len(numbers) <= RANGE_LIMIT
    except OverflowError:
        return False


def _text(body: object) -> str:
    if not isinstance(body, str):
        raise Malformed("a name that is no text")
    return body


def _odd_float(body: object) -> float:
    if not isinstance(body, str) or len(body) != 16:
        raise Malformed("a float that is none")
    number: float = struct.unpack(">d", bytes.fromhex(body))[0]
    return number
