"""The second witness sees what modes do not, cannot be switched off, and changes nothing else."""

import os
import sys
from textwrap import dedent

import pytest

from grader.box.fork import Fork
from grader.evidence.outcome import Ended
from grader.evidence.record import parted
from grader.evidence.wire.codec import decode, encode
from grader.inside.instruments.collectives import watch_collectives
from grader.inside.instruments.flops import watch_flops
from grader.inside.instruments.memory import watch_memory
from grader.inside.instruments.ops import watch_ops
from grader.inside.instruments.saved import watch_saved
from grader.inside.probe import probe
from grader.inside.process import confine

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a second witness needs Linux")


@probe
def called(student):
    return student.f()


@probe
def counted(student):
    with watch_ops() as ops:
        student.f()
    return list(ops.names)


@probe
def weighed(student):
    with watch_memory() as memory:
        student.f()
    return memory.new_bytes


@probe
def listened(student):
    with watch_collectives() as seen:
        seen.note("here")
        student.f()
    return len(seen.events)


@probe
def multiplied(student):
    with watch_flops() as flops:
        student.f()
    return flops.total


@probe
def kept(student):
    with watch_saved() as saved:
        student.f()
    return saved.bytes


PROBES = {one.name: one for one in (called, counted, weighed, listened, multiplied, kept)}


def heard(source, name="called", watch=True):
    """Return what a probe brought back of `source`, and what the second witness saw of both requests."""
    fork = Fork(PROBES)
    try:
        source = f"import torch\n{source}"
        load = {"do": "load", "parts": [["cell", source]], "judged": [], "off_limits": []}
        load["watch"] = watch
        ask = {"do": "probe", "probe": name, "inputs": encode({}), "off_limits": [], "seed": 1}
        if not watch:
            fork.ask(encode(load))
            reply, first, second = fork.ask(encode(ask)), None, None
        else:
            _, first = parted(fork.ask(encode(load), watch=True))
            reply, second = parted(fork.ask(encode(ask), watch=True))
        data = decode(reply)
        assert data["raised"] is None, data["raised"]
        assert data["tampered"] == []
        return decode(data["value"]), first, second
    except Ended as ended:
        raise AssertionError(ended.detail) from None
    finally:
        fork.close()


def names(seen):
    return {name for name, *_ in seen.calls}


def test_what_runs_is_seen_from_the_first_line_on():
    _, load, asked = heard("y = torch.ones(3).exp()\ndef f(): return (y * 2).tolist()")
    assert "exp" in names(load) and "mul" not in names(load)
    assert "mul" in names(asked) and "exp" not in names(asked)
    assert load.trouble == asked.trouble == ()


HIDING = {
    "a thread": """
        import threading
        def f():
            thread = threading.Thread(target=lambda: torch.ones(3).exp())
            thread.start(), thread.join()
        """,
    "no dispatch": """
        def f():
            with torch._C._DisableTorchDispatch():
                torch.ones(3).exp()
        """,
    "no modes": """
        from torch.utils._python_dispatch import _disable_current_modes
        def f():
            with _disable_current_modes():
                torch.ones(3).exp()
        """,
}


@pytest.mark.parametrize("way", HIDING)
@pytest.mark.parametrize("instrument", ["counted", "weighed", "multiplied"])
def test_what_hides_from_the_instruments_is_seen(way, instrument):
    value, _, seen = heard(dedent(HIDING[way]), instrument)
    assert not value
    assert "exp" in names(seen)
    (words,) = seen.trouble
    assert "`aten::exp`" in words and "instruments do not see" in words


def test_a_fork_is_seen():
    source = """
    import os
    def f():
        if not (pid := os.fork()):
            torch.ones(3).exp()
            os._exit(0)
        os.waitpid(pid, 0)
    """
    _, _, seen = heard(dedent(source))
    assert "exp" in names(seen) and seen.trouble == ()


def test_a_subclass_is_seen_within_by_both():
    source = """
    class Wrapped(torch.Tensor):
        @staticmethod
        def __new__(cls, data):
            made = torch.Tensor._make_wrapper_subclass(cls, data.shape)
            made.data_ = data
            return made
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            for _ in range(50):
                y = args[0].data_.exp()
            return cls(y)
    w = Wrapped(torch.ones(2))
    def f(): w.relu()
    """
    value, _, seen = heard(dedent(source), "counted")
    assert value == ["relu"] + ["exp"] * 50
    assert sum(times for call, times in seen.calls.items() if call[0] == "exp") == 50
    assert seen.trouble == ()


def test_parts_of_composites_and_of_backward_count_and_what_kernels_do_does_not():
    source = """
    def f():
        x = torch.ones(2, 3, 4, requires_grad=True)
        torch.matmul(x, torch.ones(4, 2)).sum().backward()
        torch.ones(3).relu()
    """
    _, _, seen = heard(dedent(source))
    direct = {name for name, is_direct, *_ in seen.calls if is_direct}
    assert {"sum", "relu", "ones"} <= direct
    assert {"mm", "t", "expand"} <= names(seen) - direct
    assert not {"matmul", "fill_", "clamp_min", "as_strided"} & names(seen)


@pytest.mark.parametrize(
    "switch",
    [
        "torch._C._profiler._disable_execution_trace_observer()",
        "torch._C._profiler._remove_execution_trace_observer()",
        "torch.profiler.profiler._disable_execution_trace_observer()",
        "torch.autograd._enable_record_function(False)",
        "torch._C._autograd._enable_record_function(False)",
    ],
)
def test_there_is_no_switch(switch):
    _, _, seen = heard(f"def f():\n    {switch}\n    torch.ones(3).exp()")
    assert "exp" in names(seen)
    assert seen.trouble == ("a switch of the second witness was used",)


def test_no_switch_is_left_to_be_found():
    source = """
    import gc
    WANTED = ("_execution_trace_observer", "_enable_record_function")
    def f():
        return [repr(o) for o in gc.get_objects() if type(o).__name__ == "builtin_function_or_method"
                and o.__name__.endswith(WANTED)]
    """
    assert heard(dedent(source))[0] == []


@pytest.mark.parametrize("watch", [False, True])
def test_a_profiler_still_works(watch):
    source = """
    from torch.profiler import ProfilerActivity, profile
    def f():
        with profile(activities=[ProfilerActivity.CPU], record_shapes=True, profile_memory=True) as prof:
            torch.ones(3).relu()
        return [event.name for event in prof.events() if event.name.startswith("aten")]
    """
    found = heard(dedent(source), watch=watch)[0]
    assert found == ["aten::ones", "aten::empty", "aten::fill_", "aten::relu", "aten::clamp_min"]


DYNAMO = """
from torch._dynamo.utils import counters
def f():
    torch._dynamo.reset()
    counters.clear()
    graphs = []
    def backend(graph, inputs):
        graphs.append([node.name for node in graph.graph.nodes])
        return graph.forward
    @torch.compile(backend=backend)
    def g(x, scale):
        return (x @ x.t()).relu() * scale
    for size in (2, 3, 5):
        g(torch.ones(size, 4), 2)
    g(torch.ones(2, 4), 3)
    from torch._dynamo.eval_frame import _debug_get_cache_entry_list
    entries = _debug_get_cache_entry_list(g._torchdynamo_orig_callable.__code__)
    guards = [str(entry.guard_manager).count("GUARD") for entry in entries]
    return [graphs, guards, counters["stats"]["unique_graphs"], len(counters["graph_break"])]
"""


def test_dynamo_compiles_alike():
    seen = heard(DYNAMO)[0]
    assert seen == heard(DYNAMO, watch=False)[0]
    assert seen[0]


def test_nothing_is_said_on_stderr(tmp_path, monkeypatch):
    # a fork points its streams nowhere, else
    monkeypatch.setattr(confine, "point_standard_streams_nowhere", lambda: None)
    kept = os.dup(2)
    with open(tmp_path / "said", "w+") as said:
        os.dup2(said.fileno(), 2)
        try:
            heard("def f(): torch.ones(3)")
        finally:
            os.dup2(kept, 2)
            os.close(kept)
        said.seek(0)
        assert said.read() == ""


FORGING = {
    "counted": "if type(o).__name__ == 'Ops': o._names.clear()",
    "weighed": "if type(o).__name__ == 'Memory': o._told.clear()",
    "listened": "if type(o).__name__ == 'Collectives': o._events.clear()",
    "multiplied": "if type(o).__name__ == 'Flops': o._noted.clear()",
    "kept": "if type(o).__name__ == 'Saved': o._storages.clear()",
}


@pytest.mark.parametrize("instrument", FORGING)
def test_notes_that_are_cleared_are_found_out(instrument):
    source = f"""
    import gc
    def f():
        y = torch.ones(3, 3, requires_grad=True) @ torch.ones(3, 3)
        for o in gc.get_objects():
            {FORGING[instrument]}
    """
    value, _, seen = heard(dedent(source), instrument)
    assert not value
    assert seen.trouble == ("what an instrument had noted was changed",)


def test_an_instrument_that_is_closed_early_is_found_out():
    source = """
    import gc, threading
    def f():
        for o in gc.get_objects():
            if type(o).__name__ == "Account":
                o.close([])
        thread = threading.Thread(target=lambda: torch.ones(3).exp())
        thread.start(), thread.join()
    """
    value, _, seen = heard(dedent(source), "counted")
    assert value == []
    assert seen.trouble == ("what an instrument had noted was changed",)


def test_what_is_saved_is_no_matter_of_modes():
    source = """
    import threading
    def f():
        thread = threading.Thread(target=lambda: torch.ones(3).exp())
        thread.start(), thread.join()
    """
    value, _, seen = heard(dedent(source), "kept")
    assert (value, seen.trouble) == (0, ())


def test_a_record_that_is_cut_is_found_out():
    source = """
    import os
    def f():
        torch.ones(3).exp()
        for name in os.listdir("/proc/self/fd"):
            where = f"/proc/self/fd/{name}"
            if os.path.lexists(where) and "record" in os.readlink(where):
                os.ftruncate(int(name), 0)
    """
    assert heard(dedent(source))[2].trouble == ("the second witness's record was changed",)
