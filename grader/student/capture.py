"""What torch.compile makes of a program: its frames, graphs, guards and partitions, as plain data.

`undertorch capture` writes it down for the explorer of compile, whose own programs are captured with
the same means. Backend and partitioner are those of `aot_eager`: no decompositions, min-cut partition.
Verified on torch 2.13, Python 3.11. What is read of torch's insides (cache entries, bytecode hook,
partitioners) is read only here.
"""

from __future__ import annotations

import copy
import dis
import functools
import inspect
import json
import re
import runpy
import sys
import tokenize
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType
from typing import Any

import torch
import torch._functorch.config as functorch_config
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.backends.debugging import boxed_nop
from torch._dynamo.utils import clear_compilation_metrics, counters, get_compilation_metrics
from torch._functorch.partitioners import (
    default_partition,
    min_cut_rematerialization_partition,
)

from grader.evidence.wire.graph import Node, graph_facts, nodes_of

__all__ = ["BUDGETS", "Capture", "NothingCompiled", "Partitions", "backend", "capture_file", "is_capture", "traceback_of"]  # fmt: skip

KIND, VERSION = "capture", 1
"""What a file of `undertorch capture` says that it is; the explorer looks for both."""

INTERNALS = {
    "torch._C._dynamo.eval_frame._debug_get_cache_entry_list": "guards of a compiled frame",
    "torch._dynamo.backends.debugging.boxed_nop": "the backend `aot_eager`",
    "torch._dynamo.convert_frame.register_bytecode_hook": "bytecode before and after",
    "torch._dynamo.utils.clear_compilation_metrics": "why a graph broke",
    "torch._dynamo.utils.get_compilation_metrics": "the same",
    "torch._functorch.config": "the budget of a cut",
    "torch._functorch.partitioners.default_partition": "one cut",
    "torch._functorch.partitioners.min_cut_rematerialization_partition": "the others",
}
"""Private names of torch that this file alone takes: what for. Those of the grader are listed there."""

BUDGETS = tuple(step / 10 for step in range(11))
MANY = 200
"""Nodes of a joint graph from which on it is not cut in all ways."""
MOST_FRAMES, MOST_CALLS = 24, 24

# Instructions that say nothing to a reader: the interpreter's own, and those that move values about.
QUIET = {"RESUME", "CACHE", "PRECALL", "COPY_FREE_VARS", "PUSH_NULL", "NOP"}
LOUD = re.compile(
    r"^(LOAD_GLOBAL (?!__import_torch)|LOAD_CONST '|LOAD_FAST (?!tmp_|graph_out)"
    r"|STORE_FAST (?!tmp_|graph_out)|CALL|POP_JUMP|RETURN)"
)


class NothingCompiled(Exception):
    """The file ran, and nothing in it called what torch.compile had made."""


# ── Partitions ──


class Partitions:
    """A partition function that tries every setting on each joint graph, and gives back one."""

    def __init__(self, path: str, chosen: float | None = 1.0) -> None:
        self.path, self.chosen, self.joints = path, chosen, list[dict[str, Any]]()

    def __call__(self, joint: Any, given: Any, **options: Any) -> Any:
        facts = nodes_of(graph_facts(joint))
        distinct: list[dict[str, Any]] = []
        which: list[int | None] = []
        for setting in (None, *BUDGETS):
            # Each costs a search of its own: a large graph is cut in the two usual ways alone.
            if len(facts) > MANY and setting not in (None, 1.0):
                which.append(None)
                continue
            cut = marks(facts, *split(setting, copied(joint), given, **options))
            if cut not in distinct:
                distinct.append(cut)
            which.append(distinct.index(cut))
        self.joints.append({
            "nodes": facts, "lines": lines_of(joint.graph, self.path), "cuts": distinct, "which": which,
        })  # fmt: skip
        return split(self.chosen, joint, given, **options)


def copied(graph: Any) -> Any:
    """Return a copy of a joint graph, without what torch's own classes say when they are copied."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return copy.deepcopy(graph)


def split(setting: float | None, joint: Any, given: Any, **options: Any) -> Any:
    """Cut a joint graph in two: by `default_partition`, or by min-cut under a budget."""
    if setting is None:
        return default_partition(joint, given, **options)
    with functorch_config.patch(activation_memory_budget=setting):
        return min_cut_rematerialization_partition(joint, given, **options)


def marks(joint: Sequence[Node], forward: Any, backward: Any) -> dict[str, Any]:
    """Say of each node of the joint graph where it runs: f, b, or r for both; - for nowhere.

    `saved` are those that lie between, by number.
    """
    names = [node.name for node in joint]
    halves = [nodes_of(graph_facts(half)) for half in (forward, backward)]
    runs = [{node.name for node in half if node.op.startswith("call")} for half in halves]
    assert runs[0] | runs[1] <= set(names), "a partitioner made nodes of its own"
    kept = [n.name for n in halves[1] if n.op == "placeholder" and not is_tangent(n)]
    where = ""
    for node in joint:
        if node.op.startswith("call"):
            where += "-fbr"[(node.name in runs[0]) + 2 * (node.name in runs[1])]
        else:
            where += "b" if is_tangent(node) else "o" if node.op == "output" else "f"
    return {"where": where, "saved": [names.index(name) for name in kept]}


def is_tangent(node: Node) -> bool:
    """Say whether a node is a gradient that comes in."""
    return node.op == "placeholder" and node.name.startswith("tangents")


def backend(partitions: Partitions) -> Any:
    """Return `aot_eager` with a partition function of ours."""
    return aot_autograd(fw_compiler=boxed_nop, bw_compiler=boxed_nop, partition_fn=partitions)


# ── Names and lines ──


@dataclass
class Names:
    """Names that do not change from run to run, for compiled functions and symbolic sizes."""

    functions: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, str] = field(default_factory=dict)

    def of_code(self, text: str) -> str:
        """Give compiled functions the number of their graph, and resume functions no number of a run."""
        text = re.sub(r"NULL \+ ", "", text)
        text = re.sub(r" at 0x[0-9a-f]+|^to \d+$", "", text)

        def graph(match: re.Match[str]) -> str:
            return self.functions.setdefault(match[0], f"__compiled_fn_{len(self.functions) + 1}")

        text = re.sub(r"__compiled_fn_\d+_[0-9a-f_]+", graph, text)
        return re.sub(r"(__resume_at_\d+|__builtins_dict__)_+\d+", r"\1", text)

    def of_sizes(self, text: object) -> str:
        """Name symbolic sizes s0, s1 and so on: their numbers come from hashes."""

        def size(match: re.Match[str]) -> str:
            return self.sizes.setdefault(match[0], f"s{len(self.sizes)}")

        return re.sub(r"\bs\d\d+\b", size, str(text))


def lines_of(graph: Any, path: str) -> list[int]:
    """Return for each FX node the line of the file that it comes from; 0 where it comes from none.

    What a library does for a line of the file counts as that line's.
    """
    found = []
    for node in graph.nodes:
        frames = re.findall(r'File "(.+?)", line (\d+)', getattr(node, "stack_trace", None) or "")
        own = [int(line) for file, line in frames if file == path]
        found.append(own[-1] if own and node.op.startswith("call") else 0)
    return found


def compact(nodes: Sequence[Node], lines: Sequence[int], names: Names) -> list[list[Any]]:
    """Return nodes as the page reads them: name, kind, call, inputs by number, size, bytes, line."""
    number = {node.name: i for i, node in enumerate(nodes)}
    rows = []
    for node, line in zip(nodes, lines, strict=True):
        kind = {"placeholder": "i", "output": "o"}.get(node.op, "c")
        size = None if node.size is None else "×".join(map(names.of_sizes, node.size)) or "scalar"
        dtype = f" {node.dtype}" if node.dtype not in ("", "float32") else ""
        rows.append([
            names.of_sizes(node.name), kind, names.of_sizes(_called(node)) if kind == "c" else "",
            [number[name] for name in dict.fromkeys(node.inputs)],
            "" if size is None else size + dtype, node.bytes, line,
        ])  # fmt: skip
    return rows


def _called(node: Node) -> str:
    """Return what a node calls, its nodes as dots."""
    target = re.sub(r"^aten\.|^operator\.|\.default$", "", node.target)
    return f"{target}({re.sub(r'%[A-Za-z_0-9]+', '·', node.arguments)})"


# ── Dynamo ──


def bytecode(code: CodeType, names: Names, loud: bool = False) -> list[str]:
    """Return instructions as text, a line's number before its first. With `loud` only what acts."""
    rows, line, skipped, owed = [], 0, 0, 0
    for step in dis.get_instructions(code):
        if step.opname in QUIET:
            continue
        text = f"{step.opname} {names.of_code(step.argrepr)}".strip()
        owed += "pregraph" in text  # Dynamo's own bookkeeping, and the call of it
        if loud and (not LOUD.match(text) or (owed and step.opname == "CALL")):
            owed -= step.opname == "CALL"
            skipped += 1
            continue
        number = step.positions.lineno if step.positions else None
        rows.append(f"{number if number and number != line else ''}|{text}")
        line = number or line
    return [*rows, f"|… {skipped} more that move values"] if skipped else rows


def guards(entry: Any) -> list[str]:
    """Return a cache entry's guards, shortened to what does not change from run to run."""
    rows, more = [], 0
    for line in str(entry.guard_manager).splitlines():
        found = re.match(r"[| ]*\+- (\w+): (.*?)(?:  #.*)?$", line)
        if not found or found[1] in ("GuardManager", "RootGuardManager"):
            continue
        kind, text = found[1], re.sub(r"DispatchKeySet\(.*?\), ", "", found[2].strip())
        text = re.sub(r"__builtins_dict___\d+", "__builtins__", text)
        if kind == "GLOBAL_STATE":
            rows.append("grad mode, autocast, default dtype, … are as they were")
        elif kind == "TENSOR_MATCH":
            rows.append(tensor_guard(text))
        elif kind == "ID_MATCH" and "G[" in text:
            rows.append(re.sub(r"___check_obj_id\((.*?), \d+\).*", r"\1 is the same object", text))
        elif kind in ("LAMBDA_GUARD", "NO_TENSOR_ALIASING") and "L[" in text:
            names = re.findall(r"L\['\w+'\]", text)
            alone = f"no two of {', '.join(sorted(names))} are the same tensor"
            rows.append(
                alone if "aliasing" in text else re.sub(r" {2,}.*| \(user code.*", "", text)
            )
        else:
            more += 1
    # In an order of ours: theirs follows hashes.
    return [*sorted(dict.fromkeys(rows)), *([f"and {more} more"] if more else [])]


def tensor_guard(text: str) -> str:
    """Return a tensor's guard with the words of a tensor's own attributes."""
    found = re.match(
        r"check_tensor\((.+?), Tensor, (.*?), device=None, requires_grad=(\w+), size=(.*?), stride=(.*?)\)$",
        text,
    )
    if not found:  # of a device, or of a class of its own
        return text
    return f"{found[1]}: {found[2]}, requires_grad={found[3]}, size={found[4]}, stride={found[5]}"


RESUMED = re.compile(r"torch_dynamo_resume_in_(.+)_at_(\d+)$")


@dataclass
class Frame:
    """One frame that Dynamo compiled: its code before and after, its graph if it has one.

    Where the graph broke, with the line of the file and the reasons; 0 where it is not in the file.
    """

    old: CodeType
    new: CodeType
    graph: tuple[Sequence[Node], Sequence[int]] | None
    joint: dict[str, Any] | None
    reasons: Sequence[str]
    line: int

    @property
    def shown(self) -> str:
        """Its name as a reader sees it."""
        return RESUMED.sub(r"\1, resumed at line \2", self.new.co_name)


class Capture:
    """While it is entered, torch.compile compiles with a backend that writes down what it sees."""

    def __init__(self, path: str) -> None:
        self.path, self.names = path, Names()
        self.frames, self.calls = list[Frame](), list[dict[str, Any]]()
        self._partitions = Partitions(path)
        self._pending: Any = None
        self._stack: Sequence[Any] = []
        self._reasons = Counter[str]()

    def backend(self, gm: Any, example: Any) -> Any:
        """Keep Dynamo's graph, and compile it as `aot_eager` does."""
        self._pending = nodes_of(graph_facts(gm)), lines_of(gm.graph, self.path)
        stopped = gm.compile_subgraph_reason
        self._stack = stopped.user_stack if stopped.graph_break else []
        made = backend(self._partitions)(gm, example)

        def run(*args: Any) -> Any:
            if self.calls:
                self.calls[-1]["ran"] = True
            return made(*args)

        return run

    def _compiled(self, code: CodeType, new_code: CodeType) -> None:
        joints, self._partitions.joints = self._partitions.joints, []
        reasons = self._new_reasons()
        graph, self._pending = self._pending, None
        own = [place.lineno for place in self._stack if place.filename == self.path]
        self._stack = []
        self.frames.append(
            Frame(
                code, new_code, graph, joints[0] if joints else None, reasons, own[-1] if own else 0
            )
        )

    def _new_reasons(self) -> list[str]:
        """Return why graphs broke since the last time that somebody asked, in Dynamo's words."""
        now = Counter(counters["graph_break"]) + Counter(counters["unimplemented"])
        found, self._reasons = list(now - self._reasons), now
        return found

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Collect what is compiled from here on."""
        torch._dynamo.reset()
        clear_compilation_metrics()
        counters.clear()
        hook = torch._dynamo.convert_frame.register_bytecode_hook(self._compiled)
        try:
            yield
        finally:
            hook.remove()

    def called(self, words: str) -> None:
        """Put down a call: what is compiled until the next is its."""
        self.calls.append({"call": words, "first": len(self.frames), "ran": False})

    def data(self, name: str, title: str, source: str) -> dict[str, Any]:
        """Return all that the page shows. Ask before Dynamo is reset: guards are read from its cache."""
        frames = self.frames[:MOST_FRAMES]
        starts = [*(call["first"] for call in self.calls[1:]), len(self.frames)]
        calls = [
            {
                "call": call["call"], "ran": call["ran"],
                "frames": list(range(call["first"], min(end, len(frames)))),
            }
            for call, end in zip(self.calls, starts, strict=False)  # one start too many without a call
        ]  # fmt: skip
        why = self._recompiled(frames)
        return {
            "id": name, "title": title, "source": source, "calls": calls[:MOST_CALLS],
            "breaks": self._breaks(self.frames), "frames": [self._frame(i, frames, why) for i in range(len(frames))],
        }  # fmt: skip

    def _recompiled(self, frames: Sequence[Frame]) -> list[str]:
        """Return for each frame which guard had failed before it was compiled again."""
        told = list(get_compilation_metrics())
        found = []
        for frame in frames:
            own = (frame.new.co_name, frame.old.co_firstlineno)
            mine = [metric for metric in told if (metric.co_name, metric.co_firstlineno) == own]
            if mine:
                told.remove(mine[0])
            reason = mine[0].recompile_reason if mine else None
            found.append(self.names.of_sizes(re.sub(r"^\d+/\d+: |  #.*", "", reason or "")))
        return found

    def _breaks(self, frames: Sequence[Frame]) -> list[dict[str, Any]]:
        """Return where graphs break, in Dynamo's words; what came after the last frame has no line."""
        found: dict[tuple[str, str], int] = {}
        told_at = [(frame.line, frame.reasons) for frame in frames]
        for at, reasons in [*told_at, (0, self._new_reasons())]:
            for reason in reasons:
                why = re.search(r"Explanation: (.*?)\n", reason)
                told = reason.splitlines()[0], why[1] if why else ""
                # A limit stops a call from being compiled; no line is to blame.
                line = 0 if "limit" in told[0] else at
                found[told] = found.get(told) or line
        return [{"line": line, "title": title, "why": why} for (title, why), line in found.items()]

    def _frame(self, at: int, frames: Sequence[Frame], why: Sequence[str]) -> dict[str, Any]:
        frame = frames[at]
        nth = sum(other.old is frame.old for other in frames[:at])
        entries = torch._C._dynamo.eval_frame._debug_get_cache_entry_list(frame.old)
        kept = list(reversed(entries))
        shown: dict[str, Any] = {
            "name": frame.shown, "why": why[at], "own": frame.old.co_filename == self.path,
            "old": bytecode(frame.old, self.names), "new": bytecode(frame.new, self.names, loud=True),
            "guards": guards(kept[nth]) if nth < len(kept) else [],
            "dynamo": compact(*frame.graph, self.names) if frame.graph else [],
        }  # fmt: skip
        if frame.joint is None:
            return {**shown, "joint": [], "cuts": [], "which": []}
        joint = frame.joint
        return {
            **shown,
            "joint": compact(joint["nodes"], joint["lines"], self.names),
            "cuts": joint["cuts"], "which": joint["which"],
        }  # fmt: skip


# ── A file of somebody's own ──


def words_of(function: Any, args: Sequence[Any], named: Mapping[str, Any]) -> str:
    """Return a call as a reader sees it, e.g. "f(x 4×8, w 8×3)"."""
    if getattr(function, "__name__", "") == "_call_impl":  # what a module's own compile() compiles
        function = function.__self__
    name = getattr(function, "__name__", type(function).__name__)
    try:
        bound = inspect.signature(getattr(function, "forward", function)).bind(*args, **named)
        given = dict(bound.arguments)
    except (TypeError, ValueError):
        given = {str(i): value for i, value in enumerate(args)} | dict(named)
    return f"{name}({', '.join(f'{key} {_said(value)}' for key, value in given.items())})"


def _said(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        size = "×".join(map(str, value.shape)) or "scalar"
        dtype = str(value.dtype).removeprefix("torch.")
        return size if dtype == "float32" else f"{size} {dtype}"
    if not isinstance(value, int | float | complex | str | None):
        return type(value).__name__
    text = repr(value)
    return text if len(text) <= 24 else f"{text[:23]}…"


@contextmanager
def _compiling_through(capture: Capture) -> Iterator[None]:
    """Have torch.compile use the capture's backend, whatever backend or mode it is given."""
    real = torch.compile

    def compiling(model: Any = None, **options: Any) -> Any:
        if model is None:
            return functools.partial(compiling, **options)
        kept = {
            name: options[name] for name in ("fullgraph", "dynamic", "disable") if name in options
        }
        compiled: Any = real(model, backend=capture.backend, **kept)
        if isinstance(compiled, torch.nn.Module):

            def before(_: Any, args: Any, named: Any) -> None:
                capture.called(words_of(model, args, named))

            compiled.register_forward_pre_hook(before, with_kwargs=True)
            return compiled

        @functools.wraps(model)
        def calling(*args: Any, **named: Any) -> Any:
            if not torch.compiler.is_compiling():
                capture.called(words_of(model, args, named))
            return compiled(*args, **named)

        return calling

    torch.compile = compiling
    try:
        yield
    finally:
        torch.compile = real


def capture_file(file: Path) -> dict[str, Any]:
    """Run somebody's file, and return what torch.compile made of it. What the file raises, this raises.

    Raises NothingCompiled where nothing was.
    """
    path = str(file.resolve())
    capture = Capture(path)
    before = sys.argv, sys.path[:]
    sys.argv, sys.path[:0] = [path], [str(file.resolve().parent)]
    try:
        with warnings.catch_warnings(), capture.watching(), _compiling_through(capture):
            _run(path)
        if not capture.frames:
            raise NothingCompiled(
                f"{file.name} ran, and compiled nothing. It must call what torch.compile returns."
            )
        with tokenize.open(file) as text:
            program = capture.data("own", file.name, text.read().rstrip())
    finally:
        sys.argv, sys.path[:] = before
        torch._dynamo.reset()
    return {
        "undertorch": KIND, "version": VERSION, "torch": torch.__version__, "program": program,
        "left_out": {"frames": len(capture.frames) - len(program["frames"]), "calls": len(capture.calls) - len(program["calls"])},
    }  # fmt: skip


def is_capture(file: Path) -> bool:
    """Say whether a file is one that `undertorch capture` wrote."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and found.get("undertorch") == KIND


def traceback_of(error: BaseException, file: Path) -> str:
    """Return an error's traceback from the first line of the file on, as Python prints it."""
    told = traceback.TracebackException.from_exception(error)
    names = [frame.filename for frame in told.stack]
    path = str(file.resolve())
    first = names.index(path) if path in names else len(names)
    own = [frame for frame in told.stack[first:] if frame.filename != __file__]
    told.stack = traceback.StackSummary.from_list(own)
    return "".join(told.format(chain=False)).rstrip()


def _run(path: str) -> None:
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as ended:
        if ended.code not in (None, 0):
            raise
