"""What student code replaces among the things that grading leans on is told by name."""

import pytest
import torch

from grader.inside.dispatch import DispatchMode
from grader.inside.instruments import memory, ops
from grader.inside.pristine import replaced, snapshot


def test_untouched():
    before = snapshot()
    with ops.watch_ops(), memory.watch_memory():
        torch.ones(2) + 1
    assert replaced(before) == []


@pytest.mark.parametrize(
    ("target", "name", "told"),
    [
        (torch, "equal", "torch.equal"),
        (torch.Tensor, "stride", "torch.Tensor.stride"),
        (ops, "watch_ops", "grader.inside.instruments.ops.watch_ops"),
        (ops.Ops, "count", "grader.inside.instruments.ops.Ops.count"),
        (memory.Memory, "__init__", "grader.inside.instruments.memory.Memory.__init__"),
        (memory._Scales, "before", "grader.inside.instruments.memory._Scales.before"),
        (
            memory._Scales,
            "__torch_dispatch__",
            "grader.inside.instruments.memory._Scales.__torch_dispatch__",
        ),
        (
            DispatchMode,
            "__torch_dispatch__",
            "grader.inside.dispatch.DispatchMode.__torch_dispatch__",
        ),
    ],
)
def test_replaced(monkeypatch, target, name, told):
    before = snapshot()
    monkeypatch.setattr(target, name, lambda *args, **kwargs: 0, raising=False)
    assert replaced(before) == [told]


def test_removed(monkeypatch):
    before = snapshot()
    monkeypatch.delattr(ops.Ops, "names")
    assert replaced(before) == ["grader.inside.instruments.ops.Ops.names"]


def test_a_mode_left_active():
    before = snapshot()
    with ops.watch_ops():
        assert replaced(before) == ["an active torch dispatch mode"]
