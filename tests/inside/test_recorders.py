"""What is off limits is noted by whatever name it is called, and what libraries do by themselves is not."""

import base64
import importlib
import random
import sys
import threading
import types

import pytest
import torch

from grader.inside.homes import homes, look_around, resolve
from grader.inside.probe import each
from grader.inside.tripwire import Tripwire

X = torch.ones(2)
LINEAR = torch.nn.Linear(2, 2)


def tripped(rule, call, kind="function"):
    """Say whether a call trips a rule; what it raises does not matter."""
    wire = Tripwire([(kind, rule)])
    with wire.watching():
        try:
            call()
        except Exception:
            assert wire.tripped
    return wire.tripped == [0]


def in_a_thread(call):
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()


def module(*parts):
    return importlib.import_module("".join(parts))


CALLS = {
    "a method of a class, by a name put together": (
        "torch.nn.Module.named_parameters",
        lambda: getattr(LINEAR, "named_" + "parameters"),
        lambda found: list(found()),
    ),
    "a method out of its class's dict": (
        "torch.nn.Module.state_dict",
        lambda: torch.nn.Module.__dict__["state" + "_dict"],
        lambda found: found(LINEAR),
    ),
    "a method that a library calls": (
        "torch.nn.Module.named_parameters",
        lambda: LINEAR.parameters,
        lambda found: list(found()),
    ),
    "a graph's method": (
        "torch.fx.Graph.eliminate_dead_code",
        lambda: getattr(torch.fx.symbolic_trace(LINEAR).graph, "eliminate_" + "dead_code"),
        lambda found: found(),
    ),
    "a tensor's method in a thread": (
        "torch.Tensor.view",
        lambda: getattr(X, "vi" + "ew"),
        lambda found: in_a_thread(lambda: found(torch.int32)),
    ),
    "an operator's overload": (
        "torch.Tensor.view",
        lambda: torch.ops.aten.view.dtype,
        lambda found: found(X, torch.int32),
    ),
    "an operator's overload in a thread": (
        "torch.Tensor.view",
        lambda: torch.ops.aten.view.dtype,
        lambda found: in_a_thread(lambda: found(X, torch.int32)),
    ),
    "a composite operator": (
        "torch.nn.utils.rnn.pad_sequence",
        lambda: getattr(torch.ops.aten, "pad_" + "sequence"),
        lambda found: found([X], True),
    ),
    "a function below the one that is named": (
        "torch.matmul",
        lambda: torch._C._linalg.linalg_matmul,
        lambda found: found(X, X),
    ),
    "a function of C's by another name": (
        "torch.einsum",
        lambda: torch._VF.einsum,
        lambda found: found("i,i", [X, X]),
    ),
    "another module's home of a class": (
        "torch.nn.parallel.DistributedDataParallel",
        lambda: getattr(
            module("torch.nn.parallel", ".distributed"), "Distributed" + "DataParallel"
        ),
        lambda found: found(LINEAR),
    ),
    "a class that inherits": (
        "torch.ao.quantization.MinMaxObserver",
        lambda: torch.ao.quantization.MovingAverageMinMaxObserver,
        lambda found: found(averaging_constant=1),
    ),
    "a class from another's bases": (
        "torch.fx.Interpreter",
        lambda: torch.fx.Transformer.__mro__[1],
        lambda found: found(torch.fx.symbolic_trace(LINEAR)),
    ),
    "an heir of a class": (
        "torch.nn.Module",
        lambda: torch.nn.Linear.__mro__[1],
        lambda found: type("Heir", (found,), {}),
    ),
    "a class that inherits its making": (
        "torch.enable_grad",
        lambda: torch.enable_grad,
        lambda found: found(),
    ),
    "a class of C's": (
        "torch.finfo",
        lambda: getattr(torch, "fin" + "fo"),
        lambda found: found(torch.float32),
    ),
    "an heir of a class of C's": (
        "torch._C._ImperativeEngine",
        lambda: getattr(torch._C, "_Imperative" + "Engine"),
        lambda found: types.new_class("Heir", (found,)),
    ),
    "a function of autograd's": (
        "torch.utils.checkpoint.CheckpointFunction",
        lambda: torch.utils.checkpoint.CheckpointFunction,
        lambda found: found.apply(lambda x: x, True, X),
    ),
    "the engine, an object of C's": (
        "torch.autograd.Variable._execution_engine.run_backward",
        lambda: getattr(torch.autograd.Variable._execution_engine, "run_" + "backward"),
        lambda found: found((), (), False, False, (), True, False),
    ),
    "a method of a hidden object": (
        "random.choices",
        lambda: getattr(type("Mine", (random.Random,), {})(), "cho" + "ices"),
        lambda found: found([1, 2]),
    ),
    "a function of a module that is named": (
        "torch.distributed.nn",
        lambda: module("torch.distributed.", "nn.functional").all_reduce,
        lambda found: found(X),
    ),
    "an operator of a namespace": (
        "torch.ops.quantized",
        lambda: torch.ops,
        lambda found: found.quantized.add,
    ),
    "a memory format": (
        "torch.channels_last",
        lambda: getattr(torch, "channels" + "_last"),
        lambda found: torch.ones(1, 2, 3, 3).contiguous(memory_format=found),
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_trips(name):
    rule, fetch, use = CALLS[name]
    assert tripped(rule, lambda: use(fetch()))


@pytest.mark.parametrize("name", ["mm", "narrow", "linear", "numpy_T"])
def test_operators_in_a_thread_too(name):
    """Composite ones (`narrow`) run as their parts: they are seen as functions."""
    assert tripped(name, lambda: getattr(torch.ops.aten, name)(X), "aten")
    assert tripped(name, lambda: in_a_thread(lambda: getattr(torch.ops.aten, name)(X)), "aten")


def test_a_composite_operator_is_seen_as_a_method():
    assert tripped("narrow", lambda: X.narrow(0, 0, 1), "aten")
    assert tripped("linear", lambda: torch.nn.functional.linear(X, X), "aten")


def test_one_overload_of_an_operator():
    assert tripped("view.dtype", lambda: X.view(torch.int32), "aten")
    assert tripped("view.dtype", lambda: torch.ops.aten.view.dtype(X, torch.int32), "aten")
    assert not tripped("view.dtype", lambda: X.view(2, 1), "aten")


@pytest.mark.parametrize(
    ("rule", "call", "kind"),
    [
        ("torch.nn.Module.named_parameters", lambda: torch.nn.Linear(2, 2), "function"),
        ("torch.Tensor.reshape", lambda: repr(X), "function"),
        ("torch.finfo", lambda: isinstance(1.0, torch.finfo), "function"),
        ("torch.nn.Module", lambda: issubclass(torch.nn.Linear, torch.nn.Module), "function"),
        ("torch.channels_last", lambda: torch.ones(1, 2, 3, 3).contiguous(), "function"),
        ("torch.nn.Module.__call__", lambda: torch.nn.Sequential(LINEAR).forward(X), "direct"),
        ("builtins.memoryview", lambda: base64.encodebytes(b"1"), "direct"),
        ("view.dtype", lambda: X.view(2, 1), "aten"),
    ],
)
def test_does_not_trip(rule, call, kind):
    assert not tripped(rule, call, kind)


def test_what_only_the_answers_own_text_must_not_call():
    assert tripped("torch.nn.Module.__call__", lambda: LINEAR(X), "direct")
    assert tripped("builtins.memoryview", lambda: memoryview(b"1"), "direct")


@pytest.mark.parametrize("rule", ["torch.nn.Module.state_dict", "torch.nn.Linear", "torch.save"])
def test_a_probes_own_calls_do_not_count(rule):
    wire = Tripwire([("function", rule)])
    with wire.watching():
        each(LINEAR.state_dict, [()])
        each(torch.nn.Linear, [(2, 2)])
    assert not wire.tripped


def test_everything_is_as_it_was():
    looked = {
        name: [
            torch.Tensor.__dict__.get(name),
            vars(torch.nn.Module).get(name),
            vars(torch).get(name),
        ]
        for name in ("view", "state_dict", "finfo", "matmul", "__init__", "__init_subclass__")
    }
    rules = ["torch.Tensor.view", "torch.nn.Module", "torch.nn.Module.state_dict", "torch.finfo"]
    wire = Tripwire([("function", rule) for rule in rules] + [("import", "struct")])
    engine, kind = torch.autograd.Variable._execution_engine, type(sys.modules["struct"])
    with wire.watching():
        assert vars(torch.nn.Module)["state_dict"] is not looked["state_dict"][1]
        assert type(sys.modules["struct"]) is not kind
    assert type(sys.modules["struct"]) is kind
    assert torch.autograd.Variable._execution_engine is engine
    for name, found in looked.items():
        now = [
            torch.Tensor.__dict__.get(name),
            vars(torch.nn.Module).get(name),
            vars(torch).get(name),
        ]
        assert now == found


def test_what_was_fetched_while_watching_goes_on_recording():
    wire = Tripwire([("function", "torch.save")])
    with wire.watching():
        kept = torch.save
    assert not wire.tripped
    with wire.watching(), pytest.raises(TypeError):
        kept()
    assert wire.tripped == [0]


def test_what_a_library_does_while_it_is_imported_is_its_own(monkeypatch):
    """As Dynamo does, which an optimizer's first step imports: it defines modules and functions."""
    heir = "email.mime.base"  # a class of it inherits from `Message`

    def inherit():
        return type("Mine", (importlib.import_module("email.message").Message,), {})

    monkeypatch.delitem(sys.modules, heir, raising=False)
    assert not tripped("email.message.Message", lambda: importlib.import_module(heir))
    assert tripped("email.message.Message", inherit)
    # text that is run among other names is no import
    text = compile("class Mine(Message): pass", "<text>", "exec")
    message = importlib.import_module("email.message").Message
    assert tripped("email.message.Message", lambda: exec(text, {"Message": message}))


def test_dynamo_traces_through_a_recorder():
    def doubled(x):
        return torch.nn.functional.relu(x) * 2

    wire = Tripwire([("function", "torch.nn.functional.relu")])
    with wire.watching():
        explained = torch._dynamo.explain(doubled)(X)
    assert explained.graph_break_count == 0


def test_a_module_that_took_another_s_name_is_a_home(monkeypatch):
    def named():
        module = types.ModuleType("taken")
        module.add = torch.add
        monkeypatch.setitem(sys.modules, "taken", module)
        look_around()
        return module

    first, second = named(), named()
    found = [module for module, _ in homes(torch.add)]
    assert first in found and second in found


def test_homes_of_an_object():
    look_around()
    found = {
        (module.__name__, name) for module, name in homes(torch.nn.parallel.DistributedDataParallel)
    }
    assert ("torch.nn.parallel.distributed", "DistributedDataParallel") in found
    assert len(found) >= 3


def test_resolving():
    assert resolve("torch.optim.sgd.sgd").name == "sgd"
    assert resolve("torch.nn.Module.state_dict").owner is torch.nn.Module
    assert resolve("torch.no_such_thing") is None
