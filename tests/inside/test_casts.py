"""Casts where no mode looks: in a thread, or with dispatch switched off. Reinterpreted bits are free."""

import threading

import pytest
import torch

from grader.inside.tripwire import Tripwire

X = torch.tensor([1.0, 2.5])
DTYPE = torch.bfloat16


def tripped(call):
    wire = Tripwire([("cast", "torch.bfloat16")])
    with wire.watching():
        call()
    return wire.tripped == [0]


def without_dispatch(call):
    with torch._C._DisableTorchDispatch():
        call()


def without_functions(call):
    with torch._C.DisableTorchFunction(), torch._C._DisableTorchDispatch():
        call()


def in_a_thread(call):
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()


CASTS = {
    "to": lambda: X.to(DTYPE),
    "by name": lambda: getattr(X, "bfl" + "oat16")(),
    "type": lambda: X.type(DTYPE),
    "type_as": lambda: X.type_as(torch.empty(0, dtype=DTYPE)),
    "copy_": lambda: torch.empty(2, dtype=DTYPE).copy_(X),
    "operator": lambda: torch.ops.aten._to_copy(X, dtype=DTYPE),
    "old type": lambda: torch.BFloat16Tensor([1.3]),
}


@pytest.mark.parametrize("around", [in_a_thread, without_dispatch, without_functions])
@pytest.mark.parametrize("name", CASTS)
def test_a_cast_is_noted(name, around):
    assert tripped(lambda: around(CASTS[name]))


FREE = {
    "reinterpreted": lambda: X.view(torch.int32).to(torch.int16).view(DTYPE),
    "another dtype": lambda: X.to(torch.float16),
    "nothing to cast": lambda: torch.zeros(2, dtype=DTYPE).to(DTYPE),
    "back": lambda: torch.zeros(2, dtype=DTYPE).float(),
    "whole numbers": lambda: torch.arange(3).to(DTYPE),
}


@pytest.mark.parametrize("around", [in_a_thread, without_dispatch, without_functions])
@pytest.mark.parametrize("name", FREE)
def test_what_is_free(name, around):
    assert not tripped(lambda: around(FREE[name]))


def test_one_of_several_dtypes():
    wire = Tripwire([("cast", "torch.bfloat16"), ("cast", "torch.float16")])
    with wire.watching():
        in_a_thread(CASTS["to"])
    assert wire.tripped == [0]


def test_methods_are_as_they_were():
    before = dict(vars(torch.Tensor))
    assert tripped(CASTS["to"])
    assert dict(vars(torch.Tensor)) == before
