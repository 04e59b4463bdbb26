"""What checks draw their inputs with: each range to both its ends, each layout as it is called."""

import pytest
import torch

from grader import (
    awkward_tensor,
    draw_int,
    draw_layout,
    draw_one,
    draw_order,
    odd_tensors,
    permuted_tensor,
    python_random,
    whole_numbers,
)


@pytest.fixture
def rng():
    return torch.Generator().manual_seed(7)


def test_both_ends_of_a_range_are_drawn(rng):
    assert {draw_int(rng, -1, 2) for _ in range(100)} == {-1, 0, 1, 2}
    assert {draw_one(rng, "abc") for _ in range(100)} == {"a", "b", "c"}
    drawn = whole_numbers(rng, (20, 20), -2, 3, dtype=torch.int8)
    assert drawn.dtype is torch.int8 and drawn.unique().tolist() == [-2, -1, 0, 1, 2, 3]
    assert sorted(draw_order(rng, 5)) == [0, 1, 2, 3, 4]


def test_the_same_seed_draws_the_same(rng):
    again = torch.Generator().manual_seed(7)
    assert python_random(rng).random() == python_random(again).random()
    assert draw_layout(rng, 3) == draw_layout(again, 3)
    assert awkward_tensor(rng, (2, 3)).equal(awkward_tensor(again, (2, 3)))


def test_draws_are_those_of_verdicts_given_before(rng):
    """Evidence is kept by what was asked: who changes a draw makes every submission run again."""
    drawn = draw_int(rng, 0, 999), draw_one(rng, range(999)), draw_order(rng, 4)
    assert drawn == (615, 283, [1, 3, 0, 2])
    assert python_random(rng).randrange(999) == 755
    assert whole_numbers(rng, (4,)).tolist() == [1.0, 0.0, 4.0, 3.0]
    assert draw_layout(rng, 3) == ((4, 1, 2), (0, 3, 5))
    assert odd_tensors(rng)["contiguous"][0, 0, 0].item() == -459_809_280
    assert awkward_tensor(rng, (2, 2)).tolist() == [[1.0, -4.0], [1.0, -4.0]]


def test_sizes_and_strides_as_asked_for(rng):
    drawn = [draw_layout(rng, 3) for _ in range(200)]
    assert {n for size, _ in drawn for n in size} == {1, 2, 3, 4}
    assert any(0 in stride for _, stride in drawn)
    assert all(1 not in draw_layout(rng, 2, ones=False)[0] for _ in range(50))
    assert any(0 in draw_layout(rng, 2, zeros=True)[0] for _ in range(50))


def test_odd_tensors_are_what_they_are_called(rng):
    odd = odd_tensors(rng)
    assert [name for name, x in odd.items() if x.is_contiguous()] == ["contiguous", "empty"]
    assert odd["with an offset and gaps"].storage_offset() and not odd["empty"].numel()
    assert 0 in odd["expanded"].stride() and 1 in odd["with a size of 1"].shape
    assert all(x.dim() == 3 and x.dtype is torch.int32 for x in odd.values())


@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 3, 4)])
def test_an_awkward_tensor_has_the_shape_asked_for(rng, shape):
    drawn = [awkward_tensor(rng, shape) for _ in range(40)]
    assert all(x.shape == shape and x.dtype is torch.float32 for x in drawn)
    assert len({(x.stride(), x.storage_offset()) for x in drawn}) > 1 or len(shape) < 1
    assert permuted_tensor(rng, shape).shape == shape
