"""Our modes see what runs, however it is wrapped, and neither need torch's compiler nor disturb it."""

import subprocess
import sys

import pytest
import torch
from torch._C._dynamo.eval_frame import _debug_get_cache_entry_list
from torch.fx.experimental.proxy_tensor import make_fx

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

    def before(self, operator, args, kwargs):
        self.count += more()


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
    for function in (DispatchMode.__torch_dispatch__, Counting.before, more):
        assert not _debug_get_cache_entry_list(function.__code__)


class Names(DispatchMode):
    """Notes what arrives, and what ran here."""

    def __init__(self):
        super().__init__()
        self.arrived, self.ran = [], []

    def arrives(self, operator):
        self.arrived.append(operator._opname)

    def after(self, operator, args, kwargs, result):
        self.ran.append(operator._opname)


class Squared(torch.Tensor):
    """Answers each operator with the square of what it gives, by code of its own."""

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        with torch._C._DisableTorchDispatch():
            plain = [torch.Tensor(one) if type(one) is cls else one for one in args]
        return torch.square(func(*plain))


def names_of(program):
    with Names() as outer, Names() as inner:
        program()
    assert outer.ran == inner.ran
    return inner.arrived, inner.ran


X = torch.ones(3, 3)


def test_what_a_class_of_tensors_runs_is_seen():
    with torch.no_grad():
        arrived, ran = names_of(lambda: X.as_subclass(Squared).mm(X))
    assert (arrived, ran) == (["mm", "mm", "pow"], ["mm", "pow"])


@pytest.mark.parametrize("composite", [torch.square, torch.det, lambda x: torch.einsum("ij->i", x)])
def test_a_composite_is_its_parts_in_inference_mode_too(composite):
    assert names_of(torch.inference_mode()(lambda: composite(X))) == names_of(lambda: composite(X))


def test_what_the_functions_of_an_operator_of_higher_order_run_is_seen():
    arms = (lambda x: x @ x, lambda x: x - 1)
    assert names_of(lambda: torch.cond(X.sum() > 0, *arms, (X,)))[1] == ["sum", "gt", "mm"]
    traced = names_of(lambda: make_fx(lambda x: torch.cond(x.sum() > 0, *arms, (x,)))(X))
    assert "mm" not in traced[1]
