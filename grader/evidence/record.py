"""What the second witness wrote of a process: the trace of its operators, read on the grader's side.

The trace is that of PyTorch's execution trace observer, a line or four for each operator and for each
function that is recorded, in every thread (see `grader.inside.witness`). Whoever runs student code
gives its process a file for it, and reads there what was appended since the last reply.
"""

from __future__ import annotations

import mmap
import os
import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any

import torch

from grader.evidence.wire.codec import decode, encode
from grader.evidence.wire.tensors import Malformed
from grader.evidence.wire.trace import (
    BEGIN,
    END,
    FLUSH,
    FORK,
    JOIN,
    NOTED,
    PRISTINE,
    SWITCH,
    TOLD,
    TRIPPED,
    WATCHES,
    fingerprint,
)

READ_LIMIT = 16 * 2**20
"""Bytes of a trace that are read for one reply, its first ones: some ten thousand operators. Reading
takes 10 µs each; a process may write more, up to its budget for one file."""

_OVERLAP = 100
"""Bytes in which a mark may stand across the end of what is read."""

Call = tuple[str, bool, tuple[str, ...], tuple[str, ...], bool]
"""An operator without its namespace and overload ("view"), whether Python called it directly, the dtypes
of the tensors that it read and of those that it gave, and whether a number with a value was among them."""


@dataclass(frozen=True)
class Seen:
    """What the second witness saw for one reply: calls, how often each; and what speaks against it."""

    calls: Mapping[Call, int] = field(default_factory=dict)
    trouble: tuple[str, ...] = ()
    tripped: tuple[int, ...] = ()
    """Numbers of the rules that the first witness saw broken, as it told them."""
    pristine: tuple[str, ...] = ()
    """Fingerprints of what the grader leans on: all alike if nothing was replaced."""


class Record:
    """The file of one process's trace."""

    def __init__(self) -> None:
        self.descriptor = os.memfd_create("record", os.MFD_CLOEXEC)
        self._read = 0

    def added(self, reply: bytes) -> bytes:
        """Return the reply together with what was appended since the last one."""
        start, size = self._read, os.fstat(self.descriptor).st_size
        self._read = size
        text = os.pread(self.descriptor, min(max(0, size - start), READ_LIMIT), start)
        is_cut = size - start > READ_LIMIT
        has_end = self._holds(FLUSH.encode(), start + READ_LIMIT - _OVERLAP) if is_cut else None
        return with_seen(reply, read_trace(text, is_cut, has_end))

    def _holds(self, mark: bytes, start: int) -> bool:
        """Say whether a mark stands in the file behind a place; nothing of it is kept."""
        with mmap.mmap(self.descriptor, 0, prot=mmap.PROT_READ) as file:
            return file.find(mark, start) >= 0

    def close(self) -> None:
        """Forget the file."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


def with_seen(reply: bytes, seen: Seen | None) -> bytes:
    """Return a reply together with what the second witness saw, None where there is none."""
    return encode({"reply": reply, "seen": None if seen is None else _to_data(seen)})


def parted(answer: bytes) -> tuple[bytes, Seen | None]:
    """Return the reply and what the second witness saw: the two that `with_seen` put together."""
    data = decode(answer)
    if not isinstance(data, dict) or not isinstance(data.get("reply"), bytes):
        raise Malformed("a reply without a second witness")
    return data["reply"], None if data.get("seen") is None else _from_data(data["seen"])


def _to_data(seen: Seen) -> list[object]:
    calls = [
        [name, direct, list(read), list(given), number, times]
        for (name, direct, read, given, number), times in seen.calls.items()
    ]
    return [calls, list(seen.trouble), list(seen.tripped), list(seen.pristine)]


def _from_data(data: Any) -> Seen:
    try:
        calls, trouble, tripped, pristine = data
        found = {
            (str(name), bool(direct), tuple(read), tuple(given), bool(number)): int(times)
            for name, direct, read, given, number, times in calls
        }
        words, numbers = tuple(map(str, trouble)), tuple(map(int, tripped))
        return Seen(found, words, numbers, tuple(map(str, pristine)))
    except (TypeError, ValueError):
        raise Malformed("what the second witness saw cannot be read") from None


@dataclass(slots=True)
class _Node:
    """One call: `operator` is its name with overload, empty for what is no operator."""

    name: str
    thread: str
    operator: str = ""
    read: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    number: bool = False
    """Whether a number that is not zero was among what it read."""
    meta: bool = False
    backward: bool = False
    parent: _Node | None = None
    moded: bool = False
    """Whether a dispatch mode saw it, or what it is made of."""
    way: str = ""
    """How it was called, once that is known."""


def read_trace(text: bytes, is_cut: bool = False, has_end: bool | None = None) -> Seen:
    """Return what a part of a trace says, of a process and of its forks.

    Whoever wrote it may be hostile: each line is looked at once, from its ends.

    is_cut: whether `text` is but the beginning
    has_end: whether the mark that all was handed over stands behind it
    """
    parts, last = _processes(text)
    traces = [_nodes(part) for part in parts]
    names = [[node.name for node in nodes] for nodes in traces]
    trouble = []
    if any(SWITCH in one for one in names):
        trouble.append("a switch of the second witness was used")
    if not has_end and FLUSH.encode() not in text:
        trouble.append("the second witness's record has no end")
    if b"\0" in text:  # a hole, where something was cut off before
        trouble.append("the second witness's record was changed")
    if not is_cut and any(map(_differ, names)):
        trouble.append("what an instrument had noted was changed")
    pristine = _after(PRISTINE, names[0])
    if not is_cut and END in names[0] and not pristine:
        trouble.append("nothing told whether what the grader leans on was replaced")
    known = [set(map(id, _judged(nodes))) for nodes in traces]
    if hidden := [name for each in zip(traces, known, strict=True) for name in _hidden(*each)]:
        trouble.append(f"{_listed(hidden)} ran where the instruments do not see it")
    if is_cut:
        traces[last] = traces[last][:-_LAST]
    ran = [_within(traces[0]), *traces[1:]]
    calls = Counter(
        _call(node)
        for nodes, judged in zip(ran, known, strict=True)
        for node in nodes
        if id(node) in judged and _counts(node)
    )
    numbers = {words for one in names for words in _after(TRIPPED, one) if words in _NUMBERS}
    tripped = tuple(sorted(map(int, numbers)))
    return Seen(calls, tuple(trouble), tripped, tuple(pristine))


_LAST = 1000
"""Calls before the place where a trace breaks off: what they were made in, and what saw them, ended behind
it or never."""

_NUMBERS = frozenset(map(str, range(1000)))


def _after(mark: str, names: Iterable[str]) -> list[str]:
    """Return what stands behind a mark, for each that there is."""
    return [name.removeprefix(f"{mark} ") for name in names if name.startswith(f"{mark} ")]


def _listed(names: Iterable[str]) -> str:
    found = list(dict.fromkeys(name if _PLAIN.fullmatch(name) else "another" for name in names))
    more = f" and {len(found) - _NAMED} more" if found[_NAMED:] else ""
    return ", ".join(f"`{name}`" for name in found[:_NAMED]) + more


_NAMED = 4
"""Operators named in a note."""

_PLAIN = re.compile(r"[\w:.]{1,80}")
"""A name that may stand in a note: who wrote it may be hostile."""


def _processes(text: bytes) -> tuple[list[str], int]:
    """Return the traces of a process and of its forks, its own first; and whose comes last."""
    found: list[list[bytes]] = [[]]
    open_ = [0]
    for part in re.split(b"(%s|%s)" % (FORK, JOIN), text):
        if part == FORK:
            open_.append(len(found))
            found.append([])
        elif part != JOIN:
            found[open_[-1]].append(part)
        elif len(open_) > 1:
            open_.pop()
    return [b"".join(parts).decode("utf-8", "replace") for parts in found], open_[-1]


def _nodes(text: str) -> list[_Node]:
    """Return the calls in the order in which they ended, each with the one that it was made in.

    A call ends before the one that it was made in.
    """
    nodes: list[_Node] = []
    waiting = defaultdict[str, list[_Node]](list)
    start = text.find(_START)
    while start >= 0:
        end = text.find(_START, start + 1)
        lines = text[start + len(_START) : end if end >= 0 else len(text)].split("\n", 4)
        start = end
        if len(lines) < 4:
            continue
        number, _, rest = lines[0].partition(_NAME)
        name, _, parent = rest.rpartition('", "ctrl_deps": ')
        node = _node(name, *lines[1:4])
        for child in waiting.pop(number, ()):
            child.parent = node
        waiting[parent.rstrip(",")].append(node)
        nodes.append(node)
    for node in nodes:
        above = node.parent if node.name == "PythonDispatchMode" else None
        while above is not None and not above.moded:
            above.moded, above = True, above.parent
    return nodes


_START = '\n        "id": '
_NAME = ', "name": "'
_META = '"meta"'


def _node(name: str, inputs: str, outputs: str, attributes: str) -> _Node:
    """Return the call of four lines of the trace, without its first."""
    thread = _value(attributes, "tid")
    operator = _value(attributes, "op_schema").strip('"').partition("(")[0]
    if not operator:
        return _Node(name, thread, backward=_value(attributes, "scope") == "1")
    read, given = _types(inputs), _types(outputs)
    return _Node(
        name,
        thread,
        operator,
        _dtypes(read),
        _dtypes(given),
        '"Double"' in read and _NUMBER.search(inputs[:_LINE]) is not None,
        _META in inputs or _META in outputs,
    )


_LINE = 4096
"""Characters of a line in which a number is looked for."""


def _value(attributes: str, name: str) -> str:
    """Return the value of an attribute of a call, as it stands there."""
    _, _, rest = attributes.partition(f'{{"name": "{name}", "type": ')
    value, _, _ = rest.partition(' "value": ')[2].partition("}")
    return value


def _types(line: str) -> str:
    """Return the types in a line of inputs or outputs."""
    return line.rpartition('"types": [')[2].rpartition('], "strides"')[0]


def _hidden(nodes: Sequence[_Node], judged: Container[int]) -> Iterator[str]:
    """Yield the operators that ran while an instrument watched, and that no mode saw.

    Those on the meta device have no bytes, and fake tensors run them where no mode is.
    Where a rank talks to others, only those of the threads that instruments are in: gloo works in
    threads of its own, and calls back from them. Where a trace breaks off, not the last ones: that of a
    fork which was killed does so too, and what its instruments had noted nobody heard.

    judged: ids of the calls of which it is known what saw them
    """
    watching: dict[str, str] = {}
    is_rank = any(node.name.startswith("c10d::") for node in nodes)
    if not any(node.name.startswith(FLUSH) for node in nodes):
        nodes = nodes[:-_LAST]
    for node in nodes:
        if node.name.startswith(WATCHES):
            watching[node.name.removeprefix(f"{WATCHES} ")] = node.thread
        elif node.name.startswith(NOTED):
            watching.pop(node.name.removeprefix(f"{NOTED} ").partition(" ")[0], None)
        elif not watching or node.moded or node.meta or not _counts(node) or id(node) not in judged:
            continue
        elif node.thread in watching.values():
            if node.name not in _OF_PYTHON_DATA:
                yield node.name
        elif not is_rank:
            yield node.name


def _is_torn(nodes: Sequence[_Node]) -> bool:
    """Say whether what was made in what cannot be told.

    A collective that nobody waits for is recorded as `gloo:all_reduce`: it begins in one thread and
    ends in another, which takes something else off the first one's stack.
    """
    return any(node.name.startswith("gloo:") for node in nodes)


def _judged(nodes: Sequence[_Node]) -> Sequence[_Node]:
    """Return the calls of which it is known what they were made in, and what saw them."""
    if not _is_torn(nodes):
        return nodes
    talks = [node for node in nodes if node.name.startswith("c10d::")]
    seen = _seen_in_order(nodes)
    for node in talks:
        node.moded, node.way = id(node) in seen, _DIRECT
    return talks


def _seen_in_order(nodes: Iterable[_Node]) -> set[int]:
    """Return the ids of the operators that a mode saw, by their order alone.

    A mode that lets an operator go on calls it once more: the operator ends, then the mode, then the
    same operator.
    """
    threads = defaultdict[str, list[_Node]](list)
    for node in nodes:
        if node.operator or node.name == "PythonDispatchMode":
            threads[node.thread].append(node)
    return {
        id(node)
        for calls in threads.values()
        for first, mode, last in zip(calls, calls[1:], calls[2:], strict=False)
        if mode.name == "PythonDispatchMode" and first.operator == last.operator
        for node in (first, last)
    }


_OF_PYTHON_DATA = frozenset({"aten::empty", "aten::detach_"})
"""`torch.tensor([1.0])` runs these below all modes; it shows itself to them as `lift_fresh`."""


def _differ(names: Iterable[str]) -> bool:
    """Say whether what an instrument told as it saw it is not what it had noted at its end, which comes once."""
    told = defaultdict[str, list[str]](list)
    noted: dict[str, str] = {}
    for name in names:
        if name.startswith(TOLD):
            key, _, what = name.removeprefix(f"{TOLD} ").partition(" ")
            told[key].append(what)
        elif name.startswith(NOTED):
            key, _, sum_ = name.removeprefix(f"{NOTED} ").partition(" ")
            if key in noted:
                return True
            noted[key] = sum_
    return any(fingerprint(told[key]) != sum_ for key, sum_ in noted.items())


def _within(nodes: list[_Node]) -> list[_Node]:
    """Return what ran between the marks of a probe, and what other threads ran meanwhile.

    While a program is loaded nobody sets marks, and everything counts.
    """
    places = [place for place, node in enumerate(nodes) if node.name in (BEGIN, END)]
    if not places:
        return nodes
    thread = nodes[places[0]].thread
    last = places[-1] if len(places) > 1 else len(nodes)
    return [n for at, n in enumerate(nodes) if places[0] < at < last or n.thread != thread]


_DIRECT, _WITHIN, _KERNEL = "from Python", "from a composite or from autograd", "from a kernel"


def _counts(node: _Node) -> bool:
    """Say whether a node is an operator that a dispatch mode in every thread would have seen.

    What a kernel does within itself is its own business: a mode does not see it either. A composite
    operator is seen as its parts, what a subclass or a mode calls as what it is.
    """
    return bool(node.operator) and _way(node) is not _KERNEL and not is_composite(node.operator)


def _way(node: _Node) -> str:
    """Return how a call was made."""
    chain: list[_Node] = []
    at: _Node | None = node
    while at is not None and not at.way:
        chain.append(at)
        at = at.parent
    for one in reversed(chain):
        one.way = _way_from(one, one.parent)
    return node.way


def _way_from(node: _Node, parent: _Node | None) -> str:
    """Return how a call was made, where that is known of the one that it was made in."""
    if parent is None or parent.name == "PythonSubclass":
        return _DIRECT
    if parent.name == "PythonDispatchMode":
        caller = parent.parent
        while caller is not None and not caller.operator:
            caller = caller.parent
        # a mode that lets the operator go on calls it once more
        return _KERNEL if caller is not None and caller.operator == node.operator else _DIRECT
    if parent.backward or parent.name.startswith("autograd::"):
        return _WITHIN
    if not parent.operator:
        return parent.way
    if parent.name.partition("::")[0] not in _IN_CPP:
        return _DIRECT  # an operator that somebody wrote in Python
    return _WITHIN if parent.way is not _KERNEL and is_composite(parent.operator) else _KERNEL


_IN_CPP = frozenset({"aten", "prim", "prims", "c10d", "_c10d_functional", "quantized"})
"""Namespaces of operators whose kernels are torch's own."""


def is_composite(operator: str) -> bool:
    """Say whether an operator, with its overload, is made of others and has no kernel."""
    return operator in _operators() and _is_composite(operator)


@cache
def _operators() -> frozenset[str]:
    return frozenset(torch._C._dispatch_get_all_op_names())


@cache
def _is_composite(operator: str) -> bool:
    return torch._C._dispatch_has_kernel_for_dispatch_key(operator, "CompositeImplicitAutograd")


def _call(node: _Node) -> Call:
    return (
        node.name.partition("::")[2],
        _way(node) is _DIRECT,
        node.read,
        node.given,
        node.number,
    )


_NUMBER = re.compile(r"(?<![\w.\[\"])-?(?!0\.0+[,\]])\d+\.\d+")
"""A number that is not zero, and finite."""

_TENSOR = re.compile(r"Tensor\((?:c10::)?([\w ]+(?:<\w+>)?)\)")

_NAMES = {
    "float": "float32",
    "double": "float64",
    "Half": "float16",
    "int": "int32",
    "long int": "int64",
    "short int": "int16",
    "signed char": "int8",
    "unsigned char": "uint8",
    "complex<float>": "complex64",
    "complex<double>": "complex128",
}
"""Names of dtypes as the trace has them, where they are not torch's own in capitals."""


@lru_cache(4096)
def _dtypes(types: str) -> tuple[str, ...]:
    found = dict.fromkeys(_TENSOR.findall(types))
    return tuple(_NAMES.get(name, name.lower()) for name in found)
