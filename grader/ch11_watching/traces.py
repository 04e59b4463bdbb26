"""Traces as torch.profiler writes them, drawn at random with what they say, and one that was recorded."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

Event = dict[str, Any]

NAMES = ("aten::add", "aten::mul", "aten::linear", "aten::t", "aten::copy_", "step")
RECORDED = Path(__file__).with_name("recorded_trace.json")
"""A trace and what PyTorch's own table says of it: {"trace": …, "table": {name: [own ns, bytes]}}."""


@dataclass
class Drawn:
    """One call of a random tree."""

    name: str
    thread: int
    start: int
    end: int
    category: str = "cpu_op"
    inside: list[Drawn] = field(default_factory=list)
    parent: int | None = None
    own_bytes: int = 0


def draw_trace(random: Random, count: int, threads: int) -> tuple[str, dict[str, Any]]:
    """Return a trace's text and what `read_trace` should say of it, as `as_data` has it."""
    base = random.randrange(10**15, 4 * 10**15)
    tops = []
    for number in range(threads):
        at = base + random.randrange(1, 500)
        for _ in range(max(1, count // 6 // threads)):
            call = draw_call(random, 1000 + number, at, max(1, count // threads), 0)
            tops.append(call)
            at = call.end + random.choice([0, 0, random.randrange(1, 300)])
    calls = flat(tops)
    moments = [draw_moment(random, calls) for _ in range(count // 2)]
    moments.append(calls[0].start - 1)  # memory that moves while nothing is running
    events, memory = [], []
    for moment in dict.fromkeys(moments):
        thread = random.choice(calls).thread
        size = random.randrange(-400, 900)
        memory.append((moment, size))
        owner = running(calls, thread, moment)
        if owner is not None:
            calls[owner].own_bytes += size
        events.append(memory_event(moment, thread, size, 0))
        events.append(memory_event(moment, thread, 7777, 1))  # of another device
    links = {}
    for identity in range(count // 4):
        forward, backward = (random.randrange(len(calls)) for _ in range(2))
        if backward in links:
            continue
        links[backward] = forward
        events.append(arrow("s", identity, calls[forward]))
        events.append(arrow("f", identity, calls[backward]))
    events += [as_event(call) for call in calls] + noise(calls)
    random.shuffle(events)
    curve, held = [], 0
    for moment, size in sorted(memory):
        held += size
        curve.append((moment, held))
    return as_text(events), {
        "calls": [call_data(call) for call in calls],
        "rows": rows_of(calls),
        "memory": curve,
        "links": links,
    }


def draw_unlucky(random: Random, count: int) -> tuple[str, dict[str, Any]]:
    """Return a trace of calls one after another, which a float cut to nanoseconds gets wrong.

    1000 * 1.001 is 1000.9999999999999, and so with one duration in a hundred. With begins there are
    days on which none goes wrong, and days on which a quarter does, such as this.
    """
    durations = [ns for ns in range(1, 3000) if int(float(written(ns)) * 1000) != ns]
    at, calls = 2**40 * 1000 + random.randrange(10**9), []
    for _ in range(count):
        call = Drawn(random.choice(NAMES), 1000, at, at + random.choice(durations))
        calls.append(call)
        at = call.end + random.randrange(1, 300)
    return as_text([as_event(call) for call in calls]), {
        "calls": [call_data(call) for call in calls]
    }


def draw_call(random: Random, thread: int, start: int, budget: int, depth: int) -> Drawn:
    """Return a call with others inside, that touch each other, its begin or its end at times."""
    name = random.choice(NAMES)
    category = "user_annotation" if name == "step" else "cpu_op"
    call = Drawn(name, thread, start, start, category)
    at = start + random.choice([0, random.randrange(1, 90)])
    for _ in range(random.randrange(0, 4) if depth < 4 and budget > 1 else 0):
        inner = draw_call(random, thread, at, budget // 3, depth + 1)
        call.inside.append(inner)
        at = inner.end + random.choice([0, random.randrange(1, 60)])
    # with one call alone inside, both may begin and end together: the file's order tells then
    call.end = at + random.randrange(1, 2000)
    return call


def flat(tops: list[Drawn]) -> list[Drawn]:
    """Return all calls by start, outer ones first, with their parents' numbers."""
    calls = []

    def walk(call: Drawn) -> None:
        calls.append(call)
        for inner in call.inside:
            walk(inner)

    for call in tops:
        walk(call)
    calls.sort(key=lambda call: (call.start, -call.end))
    place = {id(call): number for number, call in enumerate(calls)}
    for number, call in enumerate(calls):
        for inner in call.inside:
            calls[place[id(inner)]].parent = number
    return calls


def draw_moment(random: Random, calls: list[Drawn]) -> int:
    call = random.choice(calls)
    return random.randrange(call.start, call.end)


def running(calls: list[Drawn], thread: int, moment: int) -> int | None:
    """Return the number of the innermost call of a thread that is running at a moment."""
    found = [
        number
        for number, call in enumerate(calls)
        if call.thread == thread and call.start <= moment < call.end
    ]
    return max(found, key=lambda number: depth(calls, number), default=None)


def depth(calls: list[Drawn], number: int) -> int:
    parent = calls[number].parent
    return 0 if parent is None else 1 + depth(calls, parent)


def call_data(call: Drawn) -> dict[str, Any]:
    return {
        "name": call.name,
        "thread": call.thread,
        "start": call.start,
        "end": call.end,
        "parent": call.parent,
        "own_time": call.end - call.start - sum(one.end - one.start for one in call.inside),
        "own_bytes": call.own_bytes,
    }


def rows_of(calls: list[Drawn]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for call in calls:
        row = found.setdefault(call.name, {"calls": 0, "total": 0, "own": 0})
        row["calls"] += 1
        row["own"] += call_data(call)["own_time"]
        outer = call.parent
        while outer is not None and calls[outer].name != call.name:
            outer = calls[outer].parent
        row["total"] += call.end - call.start if outer is None else 0
    return found


class Microseconds(int):
    """Nanoseconds that are written as microseconds with three decimals, every digit kept."""


def written(nanoseconds: int) -> str:
    return f"{nanoseconds // 1000}.{nanoseconds % 1000:03d}".rstrip("0").rstrip(".")


def as_text(events: list[Event]) -> str:
    """Return a trace's JSON; times keep all their digits."""
    numbers: list[str] = []

    def plain(value: object) -> object:
        if isinstance(value, Microseconds):
            numbers.append(written(value))
            return f"@{len(numbers) - 1}@"
        if isinstance(value, dict):
            return {key: plain(one) for key, one in value.items()}
        return value

    text = json.dumps({"schemaVersion": 1, "traceEvents": [plain(event) for event in events]})
    for number, digits in enumerate(numbers):
        text = text.replace(f'"@{number}@"', digits, 1)
    return text


def as_event(call: Drawn) -> Event:
    return {
        "ph": "X",
        "cat": call.category,
        "name": call.name,
        "pid": 12,
        "tid": call.thread,
        "ts": Microseconds(call.start),
        "dur": Microseconds(call.end - call.start),
        "args": {"Ev Idx": 0},
    }


def memory_event(moment: int, thread: int, size: int, device: int) -> Event:
    return {
        "ph": "i",
        "cat": "cpu_instant_event",
        "s": "t",
        "name": "[memory]",
        "pid": 12,
        "tid": thread,
        "ts": Microseconds(moment),
        "args": {"Total Allocated": 0, "Bytes": size, "Device Id": -1, "Device Type": device},
    }


def arrow(phase: str, identity: int, call: Drawn) -> Event:
    found: Event = {"ph": phase, "id": identity, "pid": 12, "tid": call.thread, "cat": "fwdbwd"}
    return found | {"name": "fwdbwd", "ts": Microseconds(moment_of(call))}


def moment_of(call: Drawn) -> int:
    """Return the first moment at which a call is the innermost one."""
    at = call.start
    for inner in call.inside:
        if inner.start <= at:
            at = inner.end
    return at


def noise(calls: list[Drawn]) -> list[Event]:
    """Return events of a trace that are no calls."""
    first, last = calls[0].start, max(call.end for call in calls)
    span = {"ts": Microseconds(first), "dur": Microseconds(last - first)}
    thread = calls[0].thread
    return [
        {"ph": "M", "name": "process_name", "pid": 12, "tid": 0, "args": {"name": "python"}},
        {"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans", "tid": "x"} | span,
        {"ph": "X", "cat": "python_function", "name": "f", "pid": 12, "tid": thread} | span,
        {"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": 0},
        {"ph": "s", "id": 0, "pid": 12, "tid": thread, "cat": "ac2g", "name": "ac2g"}
        | {"ts": Microseconds(first)},
    ]  # fmt: skip
