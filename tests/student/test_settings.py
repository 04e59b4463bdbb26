"""What judging in a kernel sets of PyTorch, and leaves as it was."""

import torch

from grader.student.settings import as_in_a_box


def test_cells_below_draw_as_if_nothing_had_been_judged():
    torch.manual_seed(3)
    drawn = torch.rand(4)
    torch.manual_seed(3)
    with as_in_a_box():
        torch.manual_seed(7)  # as `partition`'s checks do, for a dropout
    assert torch.equal(torch.rand(4), drawn)
