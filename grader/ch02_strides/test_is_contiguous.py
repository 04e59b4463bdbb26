"""Checks of `is_contiguous`: each exception apart, then layouts drawn at random."""

import torch

from grader import assert_equal, draw_layout, gate
from grader.ch02_strides.odd_layouts import assert_each


def compare(contiguity, layouts, memory_format=torch.contiguous_format):
    """Compare with what PyTorch says of a tensor with that layout."""
    got = contiguity.ask(layouts).value
    expected = [
        torch.empty_strided(size, stride).is_contiguous(memory_format=memory_format)
        for size, stride in layouts
    ]
    last = ", channels_last=True" if memory_format is torch.channels_last else ""
    calls = [{"call": f"is_contiguous({size}, {stride}{last})"} for size, stride in layouts]
    assert_each(got, expected, calls)


def layouts_of(*tensors):
    return [(tuple(x.shape), x.stride()) for x in tensors]


@gate
def test_bool(contiguity, channels_last_contiguity):
    """Returns a `bool`."""
    layouts = [((2, 3, 4, 5), (60, 20, 5, 1)), ((2, 3), (1, 2))]
    for found in (contiguity, channels_last_contiguity):
        got = found.ask(layouts).value
        assert_equal([type(answer).__name__ for answer in got], ["bool"] * 2, "It is a `bool`.")


def test_plain(contiguity):
    """Fresh, transposed, sliced, expanded and `channels_last` tensors without sizes of 1."""
    x = torch.empty(4, 6, 5)
    compare(
        contiguity,
        layouts_of(
            x, x.permute(0, 2, 1), x.permute(2, 1, 0), x[1:3], x[:, 2:], x[:, :, ::2], x[::2],
            x[0].expand(2, 6, 5), torch.empty(2, 3, 4, 5).to(memory_format=torch.channels_last), x[0, 0], x[0, 0, ::2], x[0, :, 0], x[0, 0, 0], x.permute(1, 0, 2),
        ),
    )  # fmt: skip


def test_size_one(contiguity):
    """The stride of a dimension of size 1 is not looked at."""
    compare(
        contiguity,
        [
            ((1,), (7,)), ((1, 5), (1, 1)), ((5, 1), (1, 9)), ((5, 1), (2, 1)), ((2, 1, 3), (3, 0, 1)),
            ((2, 1, 3), (1, 3, 1)), ((3, 2, 1), (2, 1, 40)), ((1, 1, 1), (4, 0, 2)), ((1, 2), (0, 2)),
            ((1, 3, 2), (1, 2, 1)), ((1, 3, 2), (6, 1, 3)), ((4, 1, 1, 2), (2, 5, 5, 1)),
        ],
    )  # fmt: skip


def test_empty(contiguity):
    """A tensor without elements is contiguous, whatever its strides; one with elements need not be."""
    compare(
        contiguity,
        [
            ((0,), (5,)), ((0, 3), (1, 1)), ((3, 0), (7, 2)), ((2, 0, 3), (0, 0, 0)),
            ((3,), (0,)), ((2, 3), (0, 0)), ((2, 3), (1, 1)), ((3, 1), (0, 0)),
        ],
    )  # fmt: skip


def test_channels_last(channels_last_contiguity):
    """`channels_last` of images: fresh, converted, permuted, sliced, with sizes of 1."""
    x = torch.empty(2, 3, 4, 5)
    last = x.to(memory_format=torch.channels_last)
    one = torch.empty(2, 1, 4, 5)
    compare(
        channels_last_contiguity,
        [
            *layouts_of(x, last, last[:1], last[:, :2], last[:, :, 1:], last[1:], one, x[:, :1], x[:1]),
            *layouts_of(last.transpose(2, 3), x.permute(0, 3, 1, 2), x.permute(0, 3, 2, 1)),
            ((2, 3, 1, 1), (3, 1, 1, 1)), ((2, 3, 1, 1), (3, 1, 77, 0)), ((1, 3, 1, 1), (9, 1, 9, 9)),
            ((1, 3, 1, 1), (9, 2, 9, 9)), ((1, 1, 4, 5), (9, 9, 5, 1)), ((1, 1, 4, 5), (9, 9, 1, 4)),
        ],
        torch.channels_last,
    )  # fmt: skip


def test_channels_last_exceptions(channels_last_contiguity):
    """Only four dimensions can be `channels_last`; without elements the rule stands as it is."""
    compare(
        channels_last_contiguity,
        [
            ((3, 4, 5), (1, 15, 3)), ((2, 3, 4, 5, 6), (360, 1, 90, 18, 3)), ((), ()), ((4,), (1,)),
            ((1, 1), (1, 1)), ((0, 3, 4, 5), (60, 20, 5, 1)), ((0, 3, 4, 5), (60, 1, 15, 3)),
            ((2, 0, 4, 5), (0, 1, 0, 0)), ((2, 0, 4, 5), (0, 20, 5, 1)), ((2, 3, 0, 5), (0, 1, 15, 3)),
            ((2, 3, 4, 0), (0, 1, 0, 3)), ((2, 3, 4, 0), (60, 1, 15, 3)),
        ],
        torch.channels_last,
    )  # fmt: skip


def test_any_layout(contiguity, channels_last_contiguity, rng):
    """Layouts drawn at random, and both questions."""
    layouts = [draw_layout(rng, dims, zeros=dims == 3) for dims in (1, 2, 3, 4, 5) * 30]
    layouts.append(((2, 3, 4, 5), (60, 1, 15, 3)))  # `channels_last`, which chance seldom draws
    layouts.append(((2, 2, 2), (5, 1, 1)))  # ends where it should: a gap makes up for an overlap
    compare(contiguity, layouts)
    images = [draw_layout(rng, 4) for _ in range(75)]
    for number, (size, stride) in enumerate(images):
        _, c, h, w = size
        if number % 2:
            images[number] = size, (c * h * w, 1, w * c, c + (number % 10 == 1))
        elif number % 3 == 0:
            images[number] = size, (stride[0], 1, stride[2], stride[3])
    images.append(((2, 3, 2, 2), (12, 1, 8, 1)))
    compare(channels_last_contiguity, images, torch.channels_last)
