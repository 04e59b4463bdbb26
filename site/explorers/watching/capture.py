"""Record the explorer's programs with torch.profiler, and write the traces down, as `traces.js`.

    python site/explorers/watching/capture.py [traces.js [tables.json [recordings]]]

The second file is for the tests: what PyTorch's own table says of each recording. Times differ from
run to run, so a test compares a fresh recording without them.
"""

from __future__ import annotations

import ast
import itertools
import json
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from queue import Queue
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import nn
from torch._C._profiler import _ExperimentalConfig
from torch.profiler import ProfilerActivity, profile, record_function
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset

HERE = Path(__file__).parent
WARM = 3
"""Runs before the one that is recorded: the first one loads libraries and allocates."""
TRIES = 15
"""Recordings, of which the shortest is kept: in the others the machine did something else, too."""

# Name, what it shows, what is made beforehand, and the program. Each of its lines is recorded within
# a record_function that has the line's text.
PROGRAMS: tuple[tuple[str, str, str, str], ...] = (
    (
        "step", "a training step",
        "x, y = torch.randn(64, 256), torch.randint(0, 10, (64,))\n"
        "w1, w2 = (torch.randn(*size).mul_(0.05).requires_grad_() for size in ((256, 512), (512, 10)))\n"
        "optimizer = torch.optim.SGD([w1, w2], lr=0.1)",
        "h = torch.relu(x @ w1)\n"
        "loss = F.cross_entropy(h @ w2, y)\n"
        "loss.backward()\n"
        "optimizer.step()\n"
        "optimizer.zero_grad()",
    ),
    (
        "loader", "a loader with a worker",
        "w = torch.randn(256, 256, requires_grad=True)\n"
        "loader = DataLoader(Slow(), batch_size=32, num_workers=1, persistent_workers=True)",
        "for x in loader:\n"
        "    loss = (x @ w).square().mean()\n"
        "    loss.backward()",
    ),
    (
        "threads", "a thread beside",
        "w = torch.randn(64, 64, requires_grad=True)\n"
        "ready, on_thread = Queue(), in_thread",
        "def prepare():\n"
        "    batch = torch.randn(2048, 64)\n"
        "    batch = (batch - batch.mean(0)) / batch.std(0)\n"
        "    ready.put(batch)\n"
        "thread = on_thread(prepare)\n"
        "penalty = w.square().sum()\n"
        "batch = ready.get()\n"
        "loss = (batch @ w).relu().mean() + penalty\n"
        "loss.backward()\n"
        "thread.join()",
    ),
    (
        "checkpoint", "a block computed twice",
        "x = torch.randn(256, 64)\n"
        "w1, w2 = (torch.randn(*size).mul_(0.1).requires_grad_() for size in ((64, 256), (256, 64)))\n"
        "block = lambda x: torch.tanh(x @ w1) @ w2",
        "a = block(x)\n"
        "b = checkpoint(block, a, use_reentrant=False)\n"
        "b.sum().backward()",
    ),
)  # fmt: skip


class Slow(Dataset[torch.Tensor]):
    """Samples that take a while, as those that are read from a disk do."""

    def __len__(self) -> int:
        """Two batches of 32."""
        return 64

    def __getitem__(self, index: int) -> torch.Tensor:
        """A row of 256 numbers."""
        time.sleep(0.00005)
        return torch.full((256,), float(index))


def in_thread(work: Callable[[], None]) -> threading.Thread:
    """Start a thread, and return it."""
    thread = threading.Thread(target=work)
    thread.start()
    return thread


class _Lines(ast.NodeTransformer):
    """Puts each line within a record_function of its text; a loop's and a function's head are left."""

    def visit(self, node: ast.AST) -> Any:
        """Wrap a statement, or what is inside one."""
        if not isinstance(node, ast.Assign | ast.Expr):
            return self.generic_visit(node)
        with_line = ast.parse(f"with record_function({ast.unparse(node)!r}):\n    pass").body[0]
        assert isinstance(with_line, ast.With)
        with_line.body = [node]
        return with_line


class Recording(NamedTuple):
    """A trace as it was written, and the profiler that wrote it."""

    text: str
    result: profile


def record(before: str, program: str, tries: int = 1) -> Recording:
    """Run a program until it is warm, then record it, on one core; of several recordings keep the shortest."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    space: dict[str, Any] = {
        "torch": torch, "F": F, "nn": nn, "checkpoint": checkpoint, "DataLoader": DataLoader, "Queue": Queue,
        "Slow": Slow, "in_thread": in_thread, "record_function": record_function,
    }  # fmt: skip
    exec(before, space)
    code = compile(ast.fix_missing_locations(_Lines().visit(ast.parse(program))), "program", "exec")
    for _ in range(WARM):
        exec(code, space)
    made = [_recorded(lambda: exec(code, space), "thread" in program) for _ in range(tries)]
    return min(made, key=lambda one: _duration(one.text))


def _recorded(run: Callable[[], None], threads: bool) -> Recording:
    # With it the profiler sees all threads, and no memory.
    everywhere = _ExperimentalConfig(profile_all_threads=True) if threads else None
    with profile(
        activities=[ProfilerActivity.CPU], profile_memory=True, record_shapes=True, experimental_config=everywhere
    ) as result:  # fmt: skip
        run()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        result.export_chrome_trace(str(path))
        return Recording(path.read_text(encoding="utf-8"), result)


def nanoseconds(microseconds: Decimal | int) -> int:
    """Return a time of a trace, exactly."""
    return int(microseconds * 1000)


def events_of(text: str) -> list[dict[str, Any]]:
    """Return a trace's events; their times keep all digits."""
    events: list[dict[str, Any]] = json.loads(text, parse_float=Decimal)["traceEvents"]
    return events


def compact(text: str) -> dict[str, Any]:
    """Return what the page needs of a trace: calls by start, outer ones first, as few digits as can be."""
    events = events_of(text)
    made = [e for e in events if e["ph"] == "X" and e.get("cat") in ("cpu_op", "user_annotation")]
    made.sort(key=lambda e: (nanoseconds(e["ts"]), -nanoseconds(e["ts"]) - nanoseconds(e["dur"])))
    first = nanoseconds(made[0]["ts"])
    threads = list(dict.fromkeys(e["tid"] for e in made))
    if len(threads) > 1:  # the main thread has the number of its process
        threads.sort(key=lambda tid: tid != made[0]["pid"])
    names, shapes = _numbered(e["name"] for e in made), _numbered(map(_shapes, made))
    starts = [nanoseconds(e["ts"]) - first for e in made]
    durations = [nanoseconds(e["dur"]) for e in made]
    on = [threads.index(e["tid"]) for e in made]
    calls = [
        [names[e["name"]] for e in made], on, _steps(starts), durations, [shapes[_shapes(e)] for e in made],
        [e.get("args", {}).get("Sequence number", -1) for e in made],
    ]  # fmt: skip

    def innermost(event: dict[str, Any]) -> int:
        moment, thread = nanoseconds(event["ts"]) - first, threads.index(event["tid"])
        return max(
            number
            for number, start in enumerate(starts)
            if on[number] == thread and start <= moment < start + durations[number]
        )

    held = sorted((e for e in events if e["name"] == "[memory]"), key=lambda e: e["ts"])
    memory = [
        _steps([nanoseconds(e["ts"]) - first for e in held]), [threads.index(e["tid"]) for e in held],
        [e["args"]["Bytes"] for e in held],
    ]  # fmt: skip
    ends: dict[str, dict[int, int]] = {"s": {}, "f": {}}
    for event in events:
        if event.get("cat") == "fwdbwd":
            ends[event["ph"]][event["id"]] = innermost(event)
    arrows = sorted((ends["s"][key], end) for key, end in ends["f"].items())
    notes = sorted({names[e["name"]] for e in made if e["cat"] == "user_annotation"})
    return {
        "names": list(names), "notes": notes, "shapes": list(shapes), "threads": len(threads),
        "calls": calls, "memory": memory, "arrows": arrows,
    }  # fmt: skip


def _steps(times: list[int]) -> list[int]:
    """Return how much later each is than the one before."""
    return [now - before for before, now in itertools.pairwise([0, *times])]


def _duration(text: str) -> int:
    """Return the nanoseconds from the first call's begin to the last one's end."""
    _, _, steps, durations, *_ = compact(text)["calls"]
    return max(map(int.__add__, itertools.accumulate(steps), durations))


def _shapes(event: dict[str, Any]) -> str:
    """Return the sizes of an event's tensors as text: 64×256, 256×512."""
    dims = event.get("args", {}).get("Input Dims", [])
    return ", ".join("×".join(map(str, one)) for one in dims if one and isinstance(one[0], int))


def _numbered(texts: Iterable[str]) -> dict[str, int]:
    found: dict[str, int] = {"": 0}
    for text in texts:
        found.setdefault(text, len(found))
    return found


def table(result: profile) -> dict[str, list[int]]:
    """Return calls, own and total nanoseconds and own bytes by name, as PyTorch's table has them."""
    return {
        row.key: [row.count, round(row.self_cpu_time_total * 1000), round(row.cpu_time_total * 1000), row.self_cpu_memory_usage]
        for row in result.key_averages()
    }  # fmt: skip


def recordings(tries: int) -> Iterator[tuple[dict[str, Any], dict[str, list[int]]]]:
    """Record each program, and give what the page needs of it and PyTorch's own table."""
    for name, title, before, program in PROGRAMS:
        text, result = record(before, program, tries)
        yield {"id": name, "title": title, "source": program, **compact(text)}, table(result)


def main() -> None:
    """Write both files."""
    where = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "traces.js"
    tables = Path(sys.argv[2]) if len(sys.argv) > 2 else HERE / "tables.json"
    made = list(recordings(int(sys.argv[3]) if len(sys.argv) > 3 else TRIES))
    rows = "".join(f"{json.dumps(trace, ensure_ascii=False, separators=(',', ':'))},\n" for trace, _ in made)  # fmt: skip
    where.write_text(
        f"// What torch.profiler recorded. Written by capture.py; do not edit.\n\nexport const TRACES = [\n{rows}];\n",
        encoding="utf-8",
    )
    told = ",\n".join(f"{json.dumps(trace['id'])}: {json.dumps(rows)}" for trace, rows in made)
    tables.write_text(f"{{\n{told}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
