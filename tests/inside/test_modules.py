"""A module that is off limits: however the student's text comes by it. What libraries do is their own."""

import importlib
import pickle
import sys

import pytest
import torch

from grader.inside.tripwire import Tripwire

X = torch.ones(2)


def tripped(name, text):
    """Say whether a cell of this text trips the rule of a module."""
    wire = Tripwire([("import", name)])
    with wire.watching():
        try:
            exec(compile(text, "<cell>", "exec"), {"__name__": "__main__", "torch": torch, "X": X})
        except ImportError:
            assert wire.tripped
    return wire.tripped == [0]


@pytest.mark.parametrize(
    "text",
    [
        "import struct; struct.unpack",
        "from struct import unpack",
        "import sys; sys.modules['struct'].unpack",
        "__import__('str' + 'uct').unpack",
        "import importlib; importlib.import_module('str' + 'uct').unpack",
        "import _struct; _struct.unpack",
        "import sys; vars(sys.modules['struct'])['unpack']",
        "getattr(torch.serialization, 'str' + 'uct').unpack",
        "import pickle; pickle.unpack('f', bytes(4))",
        "from pickle import unpack; unpack('f', bytes(4))",
    ],
)
def test_uses_of_struct(text):
    assert tripped("struct", text)


def test_a_package_and_what_is_within():
    assert tripped("numpy", "import importlib; importlib.import_module('num' + 'py.linalg').norm")


def test_a_module_that_is_not_installed():
    assert tripped("torchvision", "import torchvision")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("struct", "torch.save(X, '/dev/null')"),
        ("struct", "import pickle; pickle.loads(pickle.dumps(1.5))"),
        ("struct", "import struct"),
        ("numpy", "X.numpy()"),
        ("ctypes", "repr(X)"),
        ("torchvision", "import json"),
        ("numpy", "import operator, math; operator.index(3), math.prod([1])"),
    ],
)
def test_what_others_do_is_their_own(name, text):
    assert not tripped(name, text)


def test_modules_are_as_they_were():
    kinds = {name: type(sys.modules[name]) for name in ("struct", "_struct", "pickle")}
    unpack = pickle.unpack
    assert tripped("struct", "import struct; struct.unpack")
    assert {name: type(sys.modules[name]) for name in kinds} == kinds
    assert pickle.unpack is unpack is importlib.import_module("struct").unpack
