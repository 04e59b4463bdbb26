"""Compile the explorer's programs and write down what torch made of them, as `captures.js`.

    python site/explorers/compile/capture.py [where]

Run it when torch changes; a test compares the file with a fresh capture. Backend and partitioner are
those of `aot_eager`: no decompositions, min-cut partition. Verified on torch 2.13, Python 3.11.
What it reads of torch's insides (cache entries, bytecode hook, partitioners) is read only here.
"""

from __future__ import annotations

import copy
import dis
import json
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout
from io import StringIO
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

WHERE = Path(__file__).with_name("captures.js")
BUDGETS = tuple(step / 10 for step in range(11))

# Name, what it shows, source, and the calls: for each argument its name, size, and r for requires_grad,
# i for indices.
PROGRAMS: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    ("pointwise", "pointwise chain", "def f(x):\n    y = x.sin() + 1\n    z = (y * x).exp()\n    return z.cos()", ("x 4 8 r",)),
    ("mlp", "three layers", "def f(x, w1, w2, w3):\n    h = torch.tanh(x @ w1)\n    h = torch.relu(h @ w2)\n    return h @ w3", ("x 16 8, w1 8 32 r, w2 32 8 r, w3 8 4 r",)),
    ("loss", "cross entropy", "def f(x, w, target):\n    logits = x @ w\n    return F.cross_entropy(logits, target)", ("x 8 16, w 16 4 r, target 8 i",)),
    ("dropout", "dropout", "def f(x, w):\n    h = torch.relu(x @ w)\n    h = F.dropout(h, 0.5)\n    return h.exp()", ("x 8 16, w 16 4 r",)),
    ("branch", "an if on data", "def f(x):\n    y = x * 2\n    if y.sum() > 0:\n        return y.sin()\n    return y.cos()", ("x 4 8 r",)),
    ("print", "a print", "def f(x):\n    y = x.sin()\n    print('half way')\n    return y.exp() * x", ("x 4 8 r",)),
    ("inplace", "an input changed", "def f(x, w):\n    x.add_(1)\n    y = x * w\n    return y.sin()", ("x 4 8, w 4 8 r",)),
    ("loop", "a loop", "def f(x, w):\n    for _ in range(3):\n        x = torch.tanh(x @ w)\n    return x", ("x 8 8 r, w 8 8 r",)),
    ("shapes", "a size that changes", "def f(x):\n    n = x.shape[0]\n    y = x.exp()\n    return y.sum(0) / n", ("x 4 8 r", "x 5 8 r", "x 6 8 r", "x 1 8 r")),
)  # fmt: skip

# Instructions that say nothing to a reader: the interpreter's own, and those that move values about.
QUIET = {"RESUME", "CACHE", "PRECALL", "COPY_FREE_VARS", "PUSH_NULL", "NOP"}
LOUD = re.compile(
    r"^(LOAD_GLOBAL (?!__import_torch)|LOAD_CONST '|LOAD_FAST (?!tmp_|graph_out)"
    r"|STORE_FAST (?!tmp_|graph_out)|CALL|POP_JUMP|RETURN)"
)


def make(source: str) -> Callable[..., Any]:
    """Return the program as a function; its lines are numbered from 1."""
    space: dict[str, Any] = {"torch": torch, "F": torch.nn.functional}
    exec(compile(source, "program.py", "exec"), space)
    found: Callable[..., Any] = space["f"]
    return found


def inputs(call: str) -> list[torch.Tensor]:
    """Return the tensors of a call, with the same numbers each time."""
    random = torch.Generator().manual_seed(5)
    tensors = []
    for text in call.split(", "):
        _, *size, kind = text.split() if text[-1] in "ri" else [*text.split(), ""]
        shape = tuple(map(int, size))
        if kind == "i":
            tensors.append(torch.randint(0, 4, shape, generator=random))
        else:
            tensors.append(torch.rand(shape, generator=random).requires_grad_(kind == "r"))
    return tensors


def said_of(call: str) -> str:
    """Return a call as a reader sees it, e.g. "f(x 4×8, w 8×3)"."""
    parts = []
    for text in call.split(", "):
        name, *rest = text.split()
        parts.append(f"{name} {'×'.join(n for n in rest if n.isdigit())}")
    return f"f({', '.join(parts)})"


# ── Partitions ──


class Partitions:
    """A partition function that tries every setting on each joint graph, and gives back one."""

    def __init__(self, chosen: float | None = 1.0) -> None:
        self.chosen, self.joints = chosen, list[dict[str, Any]]()

    def __call__(self, joint: Any, given: Any, **options: Any) -> Any:
        facts = nodes_of(graph_facts(joint))
        settings: list[Any] = [None, *BUDGETS]
        cuts = [
            marks(facts, *split(setting, copy.deepcopy(joint), given, **options))
            for setting in settings
        ]
        distinct = [cut for i, cut in enumerate(cuts) if cut not in cuts[:i]]
        self.joints.append({
            "nodes": facts, "cuts": distinct, "which": [distinct.index(cut) for cut in cuts],
        })  # fmt: skip
        return split(self.chosen, joint, given, **options)


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


def is_wrong(source: str, call: str, setting: float | None) -> bool:
    """Say whether the gradients under a setting differ from eager's with the same seed."""
    found = []
    for compiled in (False, True):
        function, tensors = make(source), inputs(call)
        if compiled:
            torch._dynamo.reset()
            function = torch.compile(function, backend=backend(Partitions(setting)))
        torch.manual_seed(0)
        function(*tensors).sum().backward()
        found.append([t.grad for t in tensors if t.grad is not None])
    return not all(torch.allclose(a, b) for a, b in zip(*found, strict=True))


def backend(partitions: Partitions) -> Any:
    """Return `aot_eager` with a partition function of ours."""
    return aot_autograd(fw_compiler=boxed_nop, bw_compiler=boxed_nop, partition_fn=partitions)


# ── Dynamo ──


@contextmanager
def hooked(seen: list[tuple[CodeType, CodeType]]) -> Iterator[None]:
    """Collect each frame's bytecode, before and after."""
    hook = torch._dynamo.convert_frame.register_bytecode_hook(lambda o, n: seen.append((o, n)))
    try:
        yield
    finally:
        hook.remove()


def bytecode(code: CodeType, names: dict[str, str], loud: bool = False) -> list[str]:
    """Return instructions as text, a line's number before its first. With `loud` only what acts."""
    rows, line, skipped, owed = [], 0, 0, 0
    for step in dis.get_instructions(code):
        if step.opname in QUIET:
            continue
        text = f"{step.opname} {renamed(step.argrepr, names)}".strip()
        owed += "pregraph" in text  # Dynamo's own bookkeeping, and the call of it
        if loud and (not LOUD.match(text) or (owed and step.opname == "CALL")):
            owed -= step.opname == "CALL"
            skipped += 1
            continue
        number = step.positions.lineno if step.positions else None
        rows.append(f"{number if number and number != line else ''}|{text}")
        line = number or line
    return [*rows, f"|… {skipped} more that move values"] if skipped else rows


def renamed(text: str, names: dict[str, str]) -> str:
    """Give compiled functions the number of their graph, and resume functions no number of a run."""
    text = re.sub(r"NULL \+ ", "", text)
    text = re.sub(r" at 0x[0-9a-f]+|^to \d+$", "", text)

    def graph(match: re.Match[str]) -> str:
        return names.setdefault(match[0], f"__compiled_fn_{len(names) + 1}")

    text = re.sub(r"__compiled_fn_\d+_[0-9a-f_]+", graph, text)
    return re.sub(r"(__resume_at_\d+|__builtins_dict__)_+\d+", r"\1", text)


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
    assert found, text
    return f"{found[1]}: {found[2]}, requires_grad={found[3]}, size={found[4]}, stride={found[5]}"


def broken_lines(source: str, call: str) -> list[int]:
    """Return the lines at which the graph breaks."""
    torch._dynamo.reset()
    told = torch._dynamo.explain(make(source))(*inputs(call))
    return [reason.user_stack[-1].lineno for reason in told.break_reasons]


def reasons_of(lines: Sequence[int], reasons: Sequence[str]) -> list[dict[str, Any]]:
    """Return where the graph breaks and why, in Dynamo's words; at most one break a program."""
    assert len(lines) == len(reasons) < 2, (lines, reasons)
    found = []
    for line, reason in zip(lines, reasons, strict=True):
        why = re.search(r"Explanation: (.*?)\n", reason)
        found.append({
            "line": line, "title": reason.splitlines()[0], "why": why[1] if why else "",
        })  # fmt: skip
    return found


# ── All of a program ──


def compact(nodes: Sequence[Node]) -> list[list[Any]]:
    """Return nodes as the page reads them: name, kind, call, inputs by number, size, bytes."""
    number = {node.name: i for i, node in enumerate(nodes)}
    rows = []
    for node in nodes:
        kind = {"placeholder": "i", "output": "o"}.get(node.op, "c")
        size = None if node.size is None else "×".join(map(symbols, node.size)) or "scalar"
        dtype = f" {node.dtype}" if node.dtype not in ("", "float32") else ""
        rows.append([
            symbols(node.name), kind, symbols(called(node)) if kind == "c" else "",
            [number[name] for name in dict.fromkeys(node.inputs)],
            "" if size is None else size + dtype, node.bytes,
        ])  # fmt: skip
    return rows


def called(node: Node) -> str:
    """Return what a node calls, its nodes as dots."""
    target = re.sub(r"^aten\.|^operator\.|\.default$", "", node.target)
    return f"{target}({re.sub(r'%[A-Za-z_0-9]+', '·', node.arguments)})"


def symbols(text: object) -> str:
    """Name symbolic sizes s0: their numbers come from hashes."""
    return re.sub(r"\bs\d\d+\b", "s0", str(text))


def capture(name: str, title: str, source: str, calls: Sequence[str]) -> dict[str, Any]:
    """Compile one program, call by call, and return all that the page shows of it."""
    lines = broken_lines(source, calls[0])
    torch._dynamo.reset()
    clear_compilation_metrics()
    counters.clear()
    partitions, graphs, codes = Partitions(), list[Any](), list[tuple[CodeType, CodeType]]()
    inner = backend(partitions)

    def keep(gm: Any, example: Any) -> Any:
        graphs.append(compact(nodes_of(graph_facts(gm))))
        return inner(gm, example)

    f = make(source)
    compiled = torch.compile(f, backend=keep)
    shown = []
    with hooked(codes):
        for call in calls:
            before = len(codes)
            compiled(*inputs(call))
            shown.append({"call": said_of(call), "frames": list(range(before, len(codes)))})
    told = reasons_of(lines, [*counters["graph_break"], *counters["unimplemented"]])
    reasons = [metric.recompile_reason for metric in get_compilation_metrics()]
    assert len(graphs) == len(codes) == len(partitions.joints) == len(reasons), name
    names: dict[str, str] = {}
    guarded = []
    for i, (old, _) in enumerate(codes):
        nth = sum(other is old for other, _ in codes[:i])
        entries = torch._C._dynamo.eval_frame._debug_get_cache_entry_list(old)
        guarded.append(guards(list(reversed(entries))[nth]))
    frames = []
    for i, (old, new) in enumerate(codes):
        joint = partitions.joints[i]
        why = symbols(re.sub(r"^\d+/\d+: |  #.*", "", reasons[i] or ""))
        for cut in joint["cuts"]:
            at = joint["which"].index(joint["cuts"].index(cut))
            redone = [joint["nodes"][k].target for k, c in enumerate(cut["where"]) if c == "r"]
            if any("dropout" in target for target in redone):
                cut["wrong"] = is_wrong(source, calls[0], [None, *BUDGETS][at])
        frames.append({
            "name": re.sub(r"torch_dynamo_resume_in_f_at_(\d+)", r"f, resumed at line \1", new.co_name),
            "why": why, "old": bytecode(old, names), "new": bytecode(new, names, loud=True),
            "guards": guarded[i],
            "dynamo": graphs[i], "joint": compact(joint["nodes"]), "cuts": joint["cuts"],
            "which": joint["which"],
        })  # fmt: skip
    return {
        "id": name, "title": title, "source": source, "calls": shown, "breaks": told, "frames": frames,
    }  # fmt: skip


def captures() -> list[dict[str, Any]]:
    """Return what torch makes of every program, as JSON data."""
    with ExitStack() as stack, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stack.enter_context(redirect_stdout(StringIO()))  # one program prints
        found = [capture(*program) for program in PROGRAMS]
    torch._dynamo.reset()
    return json.loads(json.dumps(found))  # type: ignore[no-any-return]


def module(found: Sequence[dict[str, Any]]) -> str:
    """Return the captures as the module that the page imports."""
    rows = ",\n".join(json.dumps(one, ensure_ascii=False, separators=(",", ":")) for one in found)
    return (
        "// What torch made of each program. Written by capture.py; do not edit.\n\n"
        f"export const CAPTURES = [\n{rows},\n];\n"
    )


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else WHERE
    target.write_text(module(captures()), encoding="utf-8")
