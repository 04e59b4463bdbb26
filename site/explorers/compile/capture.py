"""Compile the explorer's programs and write down what torch made of them, as `captures.js`.

    python site/explorers/compile/capture.py [where]

Run it when torch changes; a test compares the file with a fresh capture.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import ExitStack, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import torch

from grader.student.capture import BUDGETS, Capture, Partitions, backend

WHERE = Path(__file__).with_name("captures.js")
FILE = "program.py"

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


def make(source: str) -> Callable[..., Any]:
    """Return the program as a function; its lines are numbered from 1."""
    space: dict[str, Any] = {"torch": torch, "F": torch.nn.functional}
    exec(compile(source, FILE, "exec"), space)
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


def is_wrong(source: str, call: str, setting: float | None) -> bool:
    """Say whether the gradients under a setting differ from eager's with the same seed."""
    found = []
    for compiled in (False, True):
        function, tensors = make(source), inputs(call)
        if compiled:
            torch._dynamo.reset()
            function = torch.compile(function, backend=backend(Partitions(FILE, setting)))
        torch.manual_seed(0)
        function(*tensors).sum().backward()
        found.append([t.grad for t in tensors if t.grad is not None])
    return not all(torch.allclose(a, b) for a, b in zip(*found, strict=True))


def capture(name: str, title: str, source: str, calls: Sequence[str]) -> dict[str, Any]:
    """Compile one program, call by call, and return all that the page shows of it."""
    seen = Capture(FILE)
    with seen.watching():
        compiled = torch.compile(make(source), backend=seen.backend)
        for call in calls:
            seen.called(said_of(call))
            compiled(*inputs(call))
    told = seen.data(name, title, source)
    for frame in told["frames"]:
        for cut in frame["cuts"]:
            at = frame["which"].index(frame["cuts"].index(cut))
            redone = [frame["joint"][k][2] for k, c in enumerate(cut["where"]) if c == "r"]
            if any("dropout" in target for target in redone):
                cut["wrong"] = is_wrong(source, calls[0], [None, *BUDGETS][at])
    return told


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
