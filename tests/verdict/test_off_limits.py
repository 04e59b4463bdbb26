"""Off limits: what each kind of rule catches, in text and while it runs, and what it leaves in peace."""

import pytest
import torch

from grader.course.rules import describe_rule, parse_rule
from grader.inside.tripwire import Tripwire
from grader.submission.scan import scan

CAST, METHOD, FUNCTION = "cast:torch.bfloat16", "torch.Tensor.view", "torch.frombuffer"
MODULE, OPERATOR = "import:struct", "aten:_int_mm"
X = torch.tensor([1.0, 2.5])


def scanned(sources, rules):
    """Return what `scan` finds, rules as a card writes them."""
    written = {parse_rule(rule): rule for rule in rules}
    return [(written[rule], line) for rule, line in scan(sources, written)]


@pytest.mark.parametrize("text", ["atem:mm", "cast:", "torch.Tensor.view()", ":x", ""])
def test_what_is_no_rule_is_refused(text):
    with pytest.raises(ValueError, match="is no rule"):
        parse_rule(text)


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (CAST, "any cast to `torch.bfloat16`"),
        (METHOD, "`torch.Tensor.view`"),
        (MODULE, "the module `struct`"),
        (OPERATOR, "the operator `aten::_int_mm`"),
    ],
)
def test_a_rule_in_words(rule, words):
    assert describe_rule(parse_rule(rule)) == words


def test_a_module_is_not_its_namesake():
    rules = ["torch.distributed.tensor", "torch.distributed.nn"]
    assert not scanned(["x = torch.tensor([1.0])\ny = torch.nn.functional.relu(x)"], rules)
    assert not scanned(["from torch import nn, tensor"], rules)
    assert scanned(["from torch.distributed import nn"], rules)
    rules.append("torch.distributed.checkpoint")
    assert not scanned(["from torch.utils.checkpoint import checkpoint"], rules)
    assert len(scanned(["torch.distributed.tensor.ones(2)\ndist.nn.functional"], rules)) == 2


@pytest.mark.parametrize(
    ("rule", "line"),
    [
        (CAST, "y = x.to(torch.bfloat16)"),
        (CAST, "y = x.to(dtype=torch.bfloat16)"),
        (CAST, "y = x.bfloat16()"),
        (CAST, "y = x.type(torch.bfloat16)"),
        (CAST, "y = torch.tensor([1.5], dtype=torch.bfloat16)"),
        (METHOD, "y = x.view(torch.int32)"),
        (METHOD, "y = torch.Tensor.view(x, torch.int32)"),
        (METHOD, "y = getattr(x, 'view')(torch.int32)"),
        (FUNCTION, "y = torch.frombuffer(b)"),
        (FUNCTION, "from torch import frombuffer"),
        (FUNCTION, "from torch import frombuffer as harmless"),
        (FUNCTION, "f = torch.frombuffer"),
        (FUNCTION, "import torch as t; t.frombuffer(b)"),
        (FUNCTION, "f = getattr(torch, 'frombuffer')"),
        (MODULE, "import struct"),
        (MODULE, "import struct as s"),
        (MODULE, "from struct import unpack"),
        (MODULE, "s = __import__('struct')"),
        (MODULE, "import importlib; importlib.import_module('struct')"),
        (MODULE, "u = torch.serialization.struct.unpack"),
        (MODULE, "from torch.serialization import struct"),
        (MODULE, "s = getattr(torch.serialization, 'struct')"),
        ("import:numpy", "import numpy as np"),
        ("import:numpy", "from numpy.lib import stride_tricks"),
        (OPERATOR, "y = torch.ops.aten._int_mm(a, b)"),
    ],
)
def test_text_that_breaks_a_rule(rule, line):
    assert scanned([f"def f(x, a, b):\n    {line}"], [rule]) == [(rule, line)]


@pytest.mark.parametrize(
    ("rule", "line"),
    [
        (CAST, "y = x.view(torch.bfloat16)"),
        (CAST, "y = torch.empty(3, dtype=torch.bfloat16)"),
        (CAST, "y = torch.zeros_like(x, dtype=torch.bfloat16)"),
        (CAST, "assert x.dtype is torch.bfloat16"),
        (CAST, "y = x.to(torch.float32)"),
        (CAST, "y = {torch.bfloat16: 7}"),
        (METHOD, "view = 3"),
        (METHOD, "y = view(x)"),
        (METHOD, "y = x.view_as(x)"),
        (METHOD, "y = 'x.view'"),
        (FUNCTION, "y = frombuffer_count"),
        (FUNCTION, "y = 'torch.frombuffer'"),
        (MODULE, "structure = 1"),
        (MODULE, "import structlog"),
        (MODULE, "y = 'import struct'"),
        ("import:numpy", "y = x.numpy()"),
        (OPERATOR, "y = torch.mm(a, b)"),
        (CAST, "y = ("),
    ],
)
def test_text_that_breaks_none(rule, line):
    assert scanned([f"def f(x, a, b):\n    {line}"], [rule]) == []


OWN = """class Box:
    def view(self):
        return self.size

    def shown(self, x):
        return {call}"""


def test_a_method_of_ones_own_is_not_a_tensors():
    assert scanned([OWN.format(call="self.view()")], [METHOD]) == []


@pytest.mark.parametrize("call", ["x.view()", "self.x.view()", "super().view()"])
def test_a_class_hides_no_method_of_a_tensor(call):
    assert scanned([OWN.format(call=call)], [METHOD]) == [(METHOD, f"return {call}")]


def test_each_rule_is_told_once_with_its_first_line():
    found = scanned(["import struct\nx.view(1)", "x.view(2)"], [MODULE, METHOD])
    assert found == [(MODULE, "import struct"), (METHOD, "x.view(1)")]


@pytest.mark.parametrize(
    ("rule", "call"),
    [
        (CAST, lambda: X.to(torch.bfloat16)),
        (CAST, lambda: X.bfloat16()),
        (CAST, lambda: torch.ops.aten._to_copy(X, dtype=torch.bfloat16)),
        (CAST, lambda: torch.empty(2, dtype=torch.bfloat16).copy_(X)),
        (CAST, lambda: torch.add(X, 0, out=torch.empty(2, dtype=torch.bfloat16))),
        (CAST, lambda: torch.cat([X], out=torch.empty(2, dtype=torch.bfloat16))),
        (CAST, lambda: torch._foreach_copy_([torch.empty(2, dtype=torch.bfloat16)], [X])),
        (CAST, lambda: torch.tensor([1.5], dtype=torch.bfloat16)),
        (CAST, lambda: torch.full((2,), 1.5, dtype=torch.bfloat16)),
        (CAST, lambda: torch.full_like(X, 1.5, dtype=torch.bfloat16)),
        (CAST, lambda: X.new_full((2,), 1.5, dtype=torch.bfloat16)),
        (METHOD, lambda: X.view(torch.int32)),
        (METHOD, lambda: torch.Tensor.view(X, torch.int32)),
        (FUNCTION, lambda: torch.frombuffer(bytearray(4), dtype=torch.uint8)),
        ("aten:mm", lambda: torch.ones(2, 2) @ torch.ones(2, 2)),
    ],
)
def test_calls_that_trip(rule, call):
    wire = Tripwire([parse_rule(rule)])
    with wire.watching():
        call()
    assert wire.tripped == [0]


@pytest.mark.parametrize(
    ("rule", "call"),
    [
        (CAST, lambda: X.view(torch.int32).to(torch.int16).view(torch.bfloat16)),
        (CAST, lambda: torch.empty(2, dtype=torch.bfloat16)),
        (CAST, lambda: torch.zeros(2, dtype=torch.bfloat16)),
        (CAST, lambda: torch.zeros_like(X, dtype=torch.bfloat16)),
        (CAST, lambda: torch.ones_like(X, dtype=torch.bfloat16)),
        (CAST, lambda: torch.empty_like(X, dtype=torch.bfloat16)),
        (CAST, lambda: X.new_empty(2, dtype=torch.bfloat16)),
        (CAST, lambda: X.new_zeros(2, dtype=torch.bfloat16)),
        (CAST, lambda: torch.full_like(X, 0.0, dtype=torch.bfloat16)),
        (CAST, lambda: torch.ones(2, dtype=torch.bfloat16) < X),
        (CAST, lambda: torch.full((2,), float("nan"), dtype=torch.bfloat16)),
        (CAST, lambda: torch.ones(2, dtype=torch.bfloat16).float()),
        (CAST, lambda: torch.ones(2, dtype=torch.bfloat16) + 1),
        (METHOD, lambda: X.reshape(2, 1)),
        (FUNCTION, lambda: torch.zeros(1)),
        ("aten:mm", lambda: torch.ones(2) * 2),
    ],
)
def test_calls_that_do_not_trip(rule, call):
    wire = Tripwire([parse_rule(rule)])
    with wire.watching():
        call()
    assert wire.tripped == []


def test_the_wire_is_taken_down():
    before = torch.frombuffer
    with Tripwire([parse_rule(FUNCTION)]).watching():
        assert torch.frombuffer is not before
    assert torch.frombuffer is before
