# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown] chapter="ch11_watching"
# title: Watching a program run
# summary: >-
#   What did my training do, and would it have done the same if I had not looked?

# %% [markdown]
# ## How to work
#
# Each exercise has a card, a few cells to read and run, and one cell to write: the one that
# raises `NotImplementedError`. The cell after it grades what you wrote, as often as you like.
#
# Where a cell calls `predict(...)`, write your guess in place of the dots before you run it.
# Nobody grades a guess.

# %%
import json
import math
import os
import struct
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, record_function

from grader import grade, hint, predict, solution, watch_memory, watch_ops, written

# %% [markdown] sitting="time"
# question: Where did the time of a step go?
# reached: >-
#   Into each call's own time: its duration without its children's. Own times sum to the whole, totals do
#   not. And what the profiler does not know of your program, a tracer of sixty lines writes into the same file.

# %% [markdown]
# ## What a profile is made of
#
# `torch.profiler` notes when each operator begins and ends. Everything that it shows, tables, memory,
# flame charts, is computed from those notes. `export_chrome_trace` writes them down as JSON, in the format
# of Chrome's old trace viewer, which [Perfetto](https://ui.perfetto.dev) reads today.


# %%
def step_of(model, x):
    with record_function("step"):
        model(x).sum().backward()


def profiled(path):
    """Write the trace of one small step to a file, and return the profile."""
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)), torch.randn(3, 4)
    step_of(model, x)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as result:
        step_of(model, x)
    result.export_chrome_trace(path)
    return result


folder = tempfile.mkdtemp()
trace_path = os.path.join(folder, "trace.json")
result = profiled(trace_path)
with open(trace_path) as file:
    trace = json.load(file)
kinds = {}
for event in trace["traceEvents"]:
    kinds.setdefault((event["ph"], event.get("cat", "")), event)
for (phase, category), event in sorted(kinds.items()):
    print(f"{phase}  {category:<18} {event['name']:<34} {', '.join(sorted(event.get('args', {})))[:60]}")

# %% [markdown]
# `ph` is the phase, one letter:
#
# | `ph` | is | has |
# |---|---|---|
# | `X` | a call, complete | `ts`, its begin, and `dur`, in microseconds with three decimals; `pid`, `tid` |
# | `i` | an instant; `[memory]` where bytes were taken or given back | `ts`; in `args` `Bytes`, below zero if given back |
# | `s`, `f` | where an arrow starts and ends | the same `id` |
# | `M` | metadata: names of processes and threads | |
#
# Who called whom is not written down. It follows from the times: on one thread, a call whose time lies
# within another's was made by it.
#
# ```text
# tid 17  ├──────────────────────── step ────────────────────────┤
#          ├──── aten::linear ────┤ ├ aten::relu ┤ ├─ … ─┤
#           ├ aten::t ┤├aten::addmm┤                             two that touch: neither is inside
#                        ↑ [memory] +96                          belongs to the innermost
# ```
#
# A call's **own time** (`self_cpu_time_total` in PyTorch) is its duration without those of the calls directly inside it.
#
# **Predict.** Here are the durations of all calls, summed, divided by the step's. Is it 1, less than 1, or
# more than 1?


# %%
def sum_of_durations():
    calls = [e for e in trace["traceEvents"] if e.get("cat") in ("cpu_op", "user_annotation")]
    (whole,) = (call["dur"] for call in calls if call["name"] == "step")
    total = sum(call["dur"] for call in calls) / whole
    return "1" if abs(total - 1) < 0.001 else "more than 1" if total > 1 else "less than 1"


predict(..., sum_of_durations)

# %% [markdown]
# ## Sixteen digits
#
# The clock of a trace may count from when the machine was started. A machine that has been up for two
# months stands at 5 000 000 000 000 µs. With three decimals that is 16 digits, and a `float` has 15.95 of them.
#
# **Predict.** A call begins at 4721002461840.854 and takes 7.141 µs; the next one begins when it ends, at
# 4721002461847.995. In `float`s, is the end of the first the begin of the second?


# %%
def touch():
    return 4721002461840.854 + 7.141 == 4721002461847.995


predict(..., touch)

# %%
print(f"{4721002461840.854 + 7.141 - 4721002461847.995:.6f} µs apart")
print(json.loads("4721002461840.854", parse_float=Decimal) * 1000)

# %% [markdown] exercise="read_trace"
# title: Read a profiler's trace
# minutes: 45
# difficulty: 3
# points: 10
# short: true
# prerequisites: []
# teaches: >-
#   how nesting follows from times; own time and total time; memory as a running sum; how forward and backward are linked.
# leaves out: asynchronous work on a device, whose kernels run later than the call that asked for them; stacks of Python.
# off limits: [torch.profiler.profile, torch.autograd.profiler.profile, torch.autograd.profiler_util.EventList]
# forbids: PyTorch's own profiler and its tables

# %% [markdown]
# Your reader is to return these classes.


# %%
@dataclass
class Call:
    """One call of an operator, or one `record_function`."""

    name: str
    thread: int  # the event's tid
    start: int  # in nanoseconds
    end: int
    parent: int | None  # the number of the innermost call that this one is inside of
    own_time: int  # nanoseconds, without those of the calls directly inside
    own_bytes: int  # bytes taken minus bytes given back, while no call inside of it was running


@dataclass
class Row:
    """All calls of one name."""

    calls: int
    total: int  # nanoseconds; a call inside another of its own name is not counted again
    own: int  # the sum of own times


@dataclass
class Profile:
    """What a trace says."""

    calls: list[Call]  # by start; an outer call before those inside of it
    rows: dict[str, Row]  # by name
    memory: list[tuple[int, int]]  # (nanoseconds, bytes held), after each [memory] event
    links: dict[int, int]  # of a backward call's number: the number of its forward call


# %% [markdown]
# **Write `read_trace(path)`**, which returns the `Profile` of a file that `export_chrome_trace` has written.
#
# - Calls are events of phase `X` and of category (`cat`) `cpu_op` or `user_annotation`; all have the same `pid`. Events stand in the
#   file in any order.
# - Times are whole nanoseconds, and exact.
# - One call is inside another if both are on one thread, and it begins not earlier and ends not later. Where
#   both begin and end together, the one that comes later in the file is inside. Two calls of a thread are
#   apart, or one is inside the other; no call takes no time.
# - Memory is that of the CPU: `[memory]` events with `"Device Type": 0`. They count from 0 at the begin of the trace, in the
#   order of time, over all threads. One belongs to the innermost call of its thread that is running, if there is one.
# - An arrow of category `fwdbwd` starts (`s`) in a forward call and ends (`f`) in a backward call, with the same
#   `id`. At either end it means the innermost call that is running on its thread. A call that begins at that
#   very time is running; a call that ends then is not.
#
# <details><summary>Hint 1: numbers</summary>
#
# `json.load(file, parse_float=Decimal)` keeps all digits. `int(ts * 1000)` is exact then, also where a
# number was written without a point. With floats, round begin and duration before you add them.
#
# </details>
# <details><summary>Hint 2: nesting</summary>
#
# Sort by (thread, start, -end); Python's sort keeps the order of the file where these are equal. Go through the calls of a thread with a stack: take
# off it what has ended by the start of this call. What is on top then is the parent.
#
# </details>
# <details><summary>Hint 3: what belongs to whom</summary>
#
# The innermost call at a moment is the last in your order, of those on its thread with `start <= moment < end`.
#
# </details>


# %% solution="read_trace"
def read_trace(path: str) -> Profile:
    """Return what a Chrome trace of torch.profiler says: calls, rows, memory, links."""
    ### BEGIN SOLUTION
    with open(path) as file:
        # as floats, the times of a machine that has been up for weeks have no digit to spare
        events = json.load(file, parse_float=Decimal)["traceEvents"]

    def nanoseconds(microseconds) -> int:
        return int(microseconds * 1000)

    calls = []
    for event in events:
        if event["ph"] == "X" and event.get("cat") in ("cpu_op", "user_annotation"):
            start = nanoseconds(event["ts"])
            end = start + nanoseconds(event["dur"])
            calls.append(Call(event["name"], event["tid"], start, end, None, end - start, 0))
    calls.sort(key=lambda call: (call.start, -call.end))

    running: dict[int, list[int]] = {}  # of each thread: the numbers of the calls not yet ended
    rows: dict[str, Row] = {}
    for number, call in enumerate(calls):
        stack = running.setdefault(call.thread, [])
        while stack and calls[stack[-1]].end <= call.start:
            stack.pop()
        if stack:
            call.parent = stack[-1]
            calls[call.parent].own_time -= call.end - call.start
        row = rows.setdefault(call.name, Row(0, 0, 0))
        row.calls += 1
        if all(calls[outer].name != call.name for outer in stack):
            row.total += call.end - call.start
        stack.append(number)
    for call in calls:
        rows[call.name].own += call.own_time

    def innermost(event) -> int | None:
        moment = nanoseconds(event["ts"])
        inside = [
            number
            for number, call in enumerate(calls)
            if call.thread == event["tid"] and call.start <= moment < call.end
        ]
        return inside[-1] if inside else None

    memory, held = [], 0
    for event in sorted(events, key=lambda event: event.get("ts", 0)):
        if event["name"] == "[memory]" and event["args"]["Device Type"] == 0:
            held += event["args"]["Bytes"]
            memory.append((nanoseconds(event["ts"]), held))
            owner = innermost(event)
            if owner is not None:
                calls[owner].own_bytes += event["args"]["Bytes"]

    arrows = [event for event in events if event.get("cat") == "fwdbwd"]
    forward = {event["id"]: innermost(event) for event in arrows if event["ph"] == "s"}
    links = {innermost(event): forward[event["id"]] for event in arrows if event["ph"] == "f"}
    return Profile(calls, rows, memory, links)
    ### END SOLUTION


# %% grade="read_trace"
grade("read_trace")

# %% [markdown]
# PyTorch's own table has the same numbers. Its totals differ where an operator runs inside one of its own name and
# something stands between the two: it counts that time twice.

# %%
if written("read_trace"):
    mine = read_trace(trace_path)
    theirs = {row.key: row for row in result.key_averages()}
    worst = max(abs(theirs[name].self_cpu_time_total - row.own / 1000) for name, row in mine.rows.items())
    print("names:", len(mine.rows), "of", len(theirs))
    print("own times differ by less than a nanosecond:", worst < 0.001)
    whole = mine.rows["step"]
    print("own times sum to the whole step:", sum(row.own for row in mine.rows.values()) == whole.total)
    for name in ("aten::addmm", "aten::clamp_min", "aten::mm"):
        own = sum(call.own_bytes for call in mine.calls if call.name == name)
        print(f"{name:<16} {own:>4} bytes, by PyTorch {theirs[name].self_cpu_memory_usage:>4}")

# %% [markdown] sitting="files"
# question: What is in a TensorBoard file?
# reached: >-
#   Records of a length, two checksums and a few bytes of protobuf. Whoever knows them can write such a
#   file without TensorBoard, and read one that a crash has torn.

# %% [markdown]
# ## What `add_scalar` leaves on disk
#
# Curves that TensorBoard shows come from **event files**. A training appends to one and never reads it.
# A file is a row of **records**, each with two checksums, so that a reader notices what a crash or a bad
# disk has left. TensorFlow's data sets have the same frame, and there the files are called `.tfrecord`.
#
# ```text
#   8 bytes           4 bytes          n bytes          4 bytes
# ┌─────────────────┬────────────────┬────────────────┬──────────────────┐
# │ n, uint64       │ checksum of    │ data: one      │ checksum of      │
# │ little-endian   │ those 8 bytes  │ Event          │ the data         │
# └─────────────────┴────────────────┴────────────────┴──────────────────┘
# ```
#
# Below is a record that PyTorch's `SummaryWriter` has written for `add_scalar("loss", 1.5, 3)`.

# %%
WRITTEN_BY_TORCH = bytes.fromhex(
    "1a00000000000000"  # 26
    "129bd82d"
    "09e7f0c73596c1da4110032a0d0a0b0a046c6f7373150000c03f"
    "0d4b57db"
)
print("length:", int.from_bytes(WRITTEN_BY_TORCH[:8], "little"), "of", len(WRITTEN_BY_TORCH), "bytes")
print("data:  ", WRITTEN_BY_TORCH[12:-4])

# %% [markdown]
# Why a checksum of the length alone? A reader that trusts a broken length takes a wild number of bytes
# for data, and everything behind them is lost. With the first checksum it knows whether it may skip the
# data to the next record.
#
# The checksum is **CRC-32C**. Take all bits of the message as the coefficients of a polynomial, each 0 or
# 1, and divide by a fixed one; the checksum is the remainder. In code that is a register of 32 bits which
# is shifted once for each bit. `zlib.crc32` does the same with another polynomial. So every byte of
# its result is another.
#
# | | polynomial, lowest power first | used by |
# |---|---|---|
# | CRC-32 | `0xEDB88320` | zip, PNG, gzip, Ethernet |
# | CRC-32C, Castagnoli's | `0x82F63B78` | TensorBoard, TFRecord, iSCSI, ext4, an instruction of x86 |
#
# **Predict.** In how many of its 32 bits does CRC-32 change if one bit of a message of 26 bytes does, on
# average over all of its bits? Write a whole number.


# %%
def bits_that_change():
    message = WRITTEN_BY_TORCH[12:-4]
    changed = 0
    for bit in range(len(message) * 8):
        other = bytearray(message)
        other[bit // 8] ^= 1 << bit % 8
        changed += (zlib.crc32(message) ^ zlib.crc32(other)).bit_count()
    return round(changed / (len(message) * 8))


predict(..., bits_that_change)

# %% [markdown]
# One more step is between the CRC and the file. A record's data may itself hold records with CRCs, and
# the CRC of a message that ends in its own CRC is always the same number. So the checksum is **masked**:
# rotated to the right by 15 bits, plus `0xA282EAD8`, modulo 2³².

# %% [markdown] exercise="record"
# title: Frame a record
# minutes: 25
# difficulty: 2
# points: 5
# prerequisites: []
# teaches: >-
#   the frame of TensorBoard's event files and of TFRecord: a length, CRC-32C with a mask, little-endian.
# leaves out: tables and processor instructions that take a CRC many bytes at a time; compression.
# off limits: ["import:zlib", "import:binascii", "import:tensorboard", "import:ctypes"]
# forbids: checksums of libraries, and TensorBoard

# %% [markdown]
# **Write `record(data)`**, which returns the record of some bytes: length, masked checksum of the eight
# bytes of the length, data, masked checksum of the data. All numbers are little-endian.
#
# The CRC's register begins as 32 ones. For each byte: xor the register's lowest eight bits with it; then, eight
# times, shift the register right by one, and if a one was shifted out, xor with `0x82F63B78`. At the end
# flip all 32 bits. The CRC of `b"123456789"` is `0xE3069283`, by which all implementations are told apart.
#
# <details><summary>Hint 1: bytes</summary>
#
# `struct.pack("<Q", n)` makes eight bytes, `struct.pack("<I", n)` four. The second refuses numbers of
# more than 32 bits.
#
# </details>
# <details><summary>Hint 2: to rotate</summary>
#
# `crc >> 15 | crc << 17` has the rotated number in its lowest 32 bits, and more above. Cut that off with
# `& 0xFFFFFFFF`, after the sum.
#
# </details>
# <details><summary>Hint 3: the CRC of one byte</summary>
#
# `register ^= byte`; then eight times `register = register >> 1 ^ (POLYNOMIAL if register & 1 else 0)`. For
# the message `b"\x00"` the CRC is `0x527D5351`.
#
# </details>


# %% solution="record"
def record(data: bytes) -> bytes:
    """Return one record of an event file: length, its checksum, data, its checksum."""
    ### BEGIN SOLUTION

    def crc32c(message: bytes) -> int:
        register = 0xFFFFFFFF
        for byte in message:
            register ^= byte
            for _ in range(8):
                register = register >> 1 ^ (0x82F63B78 if register & 1 else 0)
        return register ^ 0xFFFFFFFF

    def checksum(message: bytes) -> bytes:
        crc = crc32c(message)
        rotated = crc >> 15 | crc << 17
        return struct.pack("<I", (rotated + 0xA282EAD8) & 0xFFFFFFFF)

    length = struct.pack("<Q", len(data))
    return length + checksum(length) + data + checksum(data)
    ### END SOLUTION


# %% grade="record"
grade("record")

# %% [markdown]
# ## What the data say
#
# The data of a record are one `Event`, in the format of **protocol buffers**. A message is a row of
# fields. Each field begins with a key, its number and a **wire type** in one: `number << 3 | type`. What a
# field is called, and what its bits mean, stands in a `.proto` file and not in the bytes.
#
# | wire type | the value is | used for |
# |---|---|---|
# | 0 | a **varint**: seven bits a byte, the lowest first; every byte but the last has its highest bit set | whole numbers |
# | 1 | eight bytes, little-endian | `double` |
# | 2 | a varint, the length, and so many bytes | strings, messages within messages |
# | 5 | four bytes, little-endian | `float` |
#
# ```text
# 09 e7 f0 c7 35 96 c1 da 41   10 03     2a 0d  0a 0b  0a 04 6c 6f 73 73   15 00 00 c0 3f
# ── ───────────────────────   ── ──     ── ──  ── ──  ── ── ───────────   ── ───────────
# field 1, a double:           field 2:  field 5:      field 1: "loss"     field 2, a float:
# wall_time, in seconds        step 3    Summary of 13 bytes               simple_value 1.5
#                                        └─ field 1: Value of 11 bytes ─────────────────┘
# ```
#
# These are all that a curve needs:
#
# | message | number and name | type |
# |---|---|---|
# | `Event` | 1 `wall_time` | `double` |
# | | 2 `step` | `int64`, a varint |
# | | 3 `file_version` | string: `brain.Event:2`, in the first record of a file |
# | | 5 `summary` | `Summary` |
# | | 7 `session_log` | `SessionLog` |
# | `Summary` | 1 `value`, any number of them | `Value` |
# | `Value` | 1 `tag` | string |
# | | 2 `simple_value` | `float`: four bytes |
# | `SessionLog` | 1 `status` | a varint; 1 is `START` |
#
# A varint has no sign. An `int64` below zero is written as the number plus 2⁶⁴, which takes ten bytes.


# %%
def varint(number):
    """Return a whole number from 0 to 2**64 - 1 as a varint."""
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


for number in (3, 127, 128, 300, -1 & 2**64 - 1):
    print(f"{number:>20}: {varint(number).hex(' ')}")

# %% [markdown]
# **Predict.** You log the number of samples seen, 16777217, as a scalar. What comes back?


# %%
def comes_back():
    return struct.unpack("<f", struct.pack("<f", 16777217))[0]


predict(..., comes_back)

# %% [markdown]
# ## When a run goes on
#
# A training that starts again from a checkpoint writes a new file into the same folder. TensorBoard reads a folder's files in the
# order of their names, `events.out.tfevents.<seconds>.<anything>`. If the first run went to step 9, its checkpoint
# was of step 4, and the second run begins at 5, then steps 5 to 9 are there twice. Nothing in
# the numbers tells which ones count. So the second file says it: an event with a step and
# `SessionLog(START)` means that everything from this step on, in what was read before, is void.
# `SummaryWriter(purge_step=5)` writes it.

# %% [markdown] exercise="EventWriter"
# title: Write an event file
# minutes: 45
# difficulty: 3
# points: 10
# prerequisites: [record]
# teaches: >-
#   protocol buffers by hand: keys, varints, messages within messages; a file for each run; how a run that goes on says so.
# leaves out: histograms, images, text; compressed files; writing in a thread of its own.
# off limits: ["import:tensorboard", "import:zlib", "import:ctypes"]
# forbids: TensorBoard's own writers, and checksums of libraries

# %% [markdown]
# **Write `class EventWriter`**, on top of your `record` and the `varint` above.
#
# - `EventWriter(folder, clock, start=None)` begins a new file in the folder `folder`, and makes the folder
#   where there is none. `clock()` returns the time in whole nanoseconds, as `time.time_ns` does; an
#   event's `wall_time` is in seconds.
# - The name is `events.out.tfevents.<seconds>.<anything>`, with ten digits of whole seconds. It stands behind the
#   names of all event files in the folder when these are sorted, also if
#   their seconds are the same or later. No file that is there is changed.
# - The first record has the version `brain.Event:2`. If `start` is given, the second has `start` as its
#   step and a session log with the status `START`.
# - `add(step, values)` writes one event: `values` is a dict from tags to numbers, and all of them are in
#   the one summary, in the dict's order. Steps may be negative or large. NaN and infinities stay what they are; a number
#   too large for a `float` becomes an infinity.
# - `flush()`: when it returns, what was added is in the file, in whole records. `close()` flushes and
#   closes; the second time it does nothing. `path` is the file's path.
#
# <details><summary>Hint 1: fields</summary>
#
# A small function is worth it: `def chunk(number, data)` returns `varint(number << 3 | 2)`, the length as
# a varint, and the data. Strings and messages are both such chunks.
#
# </details>
# <details><summary>Hint 2: floats</summary>
#
# `struct.pack("<f", 1e40)` raises an OverflowError. `torch.tensor(1e40, dtype=torch.float32)` is an infinity.
#
# </details>
# <details><summary>Hint 3: names</summary>
#
# Look for the largest name, `max(...)`, of the folder's `events.out.tfevents.*`. Take its seconds if yours are not later,
# and number the files behind that with a fixed count of digits: `9` stands behind `10`.
# If what stands behind the seconds is not yours, its first letters may sort anywhere: another second is always safe.
#
# </details>


# %% solution="EventWriter"
class EventWriter:
    """Writes scalars into an event file of its own."""

    def __init__(self, folder: str, clock: Callable[[], int], start: int | None = None):
        ### BEGIN SOLUTION
        prefix = "events.out.tfevents."
        os.makedirs(folder, exist_ok=True)
        self.clock = clock
        seconds = clock() // 10**9
        there = [name for name in os.listdir(folder) if name.startswith(prefix)]
        if there:  # a later second than any other file's: then the rest of the name does not matter
            seconds = max(seconds, int(max(there).split(".")[3]) + 1)
        self.path = os.path.join(folder, f"{prefix}{seconds:010d}.0")
        self.file = open(self.path, "xb")
        self._write(self._chunk(3, b"brain.Event:2"))
        if start is not None:
            self._write(self._step(start) + self._chunk(7, b"\x08\x01"))

    def add(self, step: int, values: dict[str, float]) -> None:
        """Write one event with all values."""
        summary = b""
        for tag, value in values.items():
            # a cast makes an infinity of what is too large, where struct raises
            number = torch.tensor(float(value), dtype=torch.float32).item()
            inner = self._chunk(1, tag.encode()) + b"\x15" + struct.pack("<f", number)
            summary += self._chunk(1, inner)
        self._write(self._step(step) + self._chunk(5, summary))

    def flush(self) -> None:
        """Return when all that was added is in the file."""
        self.file.flush()

    def close(self) -> None:
        """Flush and close."""
        self.file.close()

    def _write(self, fields: bytes) -> None:
        wall_time = struct.pack("<d", self.clock() / 10**9)
        self.file.write(record(b"\x09" + wall_time + fields))

    def _step(self, step: int) -> bytes:
        return b"\x10" + varint(step & 2**64 - 1)  # below zero: as an int64 has it

    def _chunk(self, number: int, data: bytes) -> bytes:
        return varint(number << 3 | 2) + varint(len(data)) + data
        ### END SOLUTION


# %% grade="EventWriter"
grade("EventWriter")

