"""What checks expect is kept for a question, and for PyTorch as it is set."""

import pytest
import torch

from grader.ch11_watching.kept import kept


def test_the_same_question_is_computed_once():
    asked = []
    square = kept(lambda x: asked.append(x) or x * x)
    assert [square(3), square(3), square(4)] == [9, 9, 16]
    assert asked == [3, 4]


def test_what_came_under_other_settings_does_not_stay():
    """A student's notebook judges in its kernel: float64 there, then float32 again."""
    one = kept(lambda: torch.ones(()).dtype)
    assert one() is torch.float32
    torch.set_default_dtype(torch.float64)
    try:
        assert one() is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    assert one() is torch.float32


def test_an_error_is_raised_anew():
    tried = []
    fails = kept(lambda: tried.append(1) or 1 // 0)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            fails()
    assert len(tried) == 2
