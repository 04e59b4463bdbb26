"""Our modes watch without torch's compiler, and it leaves them alone where it is there."""

import subprocess
import sys

import torch
from torch._C._dynamo.eval_frame import _debug_get_cache_entry_list

from grader.inside.dispatch import DispatchMode
from tests import ROOT

WATCHED = """
import sys
from pathlib import Path
import torch
from grader import watch_collectives, watch_events, watch_flops, watch_memory, watch_ops, watch_saved
from grader.inside import serve
from grader.inside.tripwire import Tripwire
serve.prepare(Path(sys.argv[1]))
x = torch.ones(3, requires_grad=True)
rules = [("function", "torch.matmul"), ("aten", "mm"), ("cast", "torch.bfloat16"), ("allowed", "elementwise")]
with serve._settings_restored(1), Tripwire(rules).watching():
    with watch_ops(), watch_flops(), watch_memory(), watch_collectives(), watch_events(), watch_saved():
        (x * 2).sum().backward()
print("torch._dynamo" in sys.modules, "sympy" in sys.modules)
"""


def test_watching_imports_no_compiler():
    """It would cost each process that grades a second and 70 MiB."""
    probes = ROOT / "grader" / "ch01_formats" / "probes"
    command = [sys.executable, "-c", WATCHED, str(probes)]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert ran.stdout == "False False\n", ran.stderr


class Counting(DispatchMode):
    """Counts operators by way of a function, which Dynamo would compile, too."""

    def __init__(self):
        super().__init__()
        self.count = 0

    @classmethod
    def ignore_compile_internals(cls):
        return True

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += more()
        return func(*args, **(kwargs or {}))


def more():
    return 1


def test_dynamo_leaves_a_mode_alone():
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph.forward

    @torch.compile(backend=backend)
    def broken(x):
        y = x * 2
        if y.sum() > 100:  # asked between two graphs, where Dynamo looks at every frame
            y = y + 1
        return y + 1

    torch._dynamo.reset()
    with Counting() as mode:
        broken(torch.ones(3))
        before = mode.count
        broken(torch.ones(3))
    assert len(graphs) == 2 and mode.count > before > 0
    for function in (Counting.__torch_dispatch__, more):
        assert not _debug_get_cache_entry_list(function.__code__)
