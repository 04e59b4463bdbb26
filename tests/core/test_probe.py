"""`each`: what a student's code raises says on which of many inputs."""

import pytest
import torch

from grader.core.probe import each
from grader.core.raised import report


def test_results_come_in_order():
    assert each(divmod, [(7, 2), (9, 3)]) == [(3, 1), (3, 0)]


@pytest.mark.parametrize(
    ("case", "noted"),
    [
        (((2, 3), 0), "fails((2, 3), 0)"),
        ((torch.zeros(2, 3).t(), "t"), "fails(<float32, size (3, 2), stride (1, 3)>, 't')"),
        (([torch.zeros(1)], b"abc"), "fails([<float32, size (1,), stride (1,)>], <3 bytes>)"),
    ],
)
def test_what_raises_says_on_what(case, noted):
    def fails(*args):
        raise KeyError("why")

    with pytest.raises(KeyError) as caught:
        each(fails, [case])
    assert report(caught.value)["notes"] == noted


def test_notes_that_are_none_cost_nothing():
    error = ValueError()
    error.__dict__["__notes__"] = 7
    assert report(error)["notes"] == ""
