"""Checks of `conv2d`: each argument by itself, then all together; and what it costs."""

import torch
import torch.nn.functional as F

from grader import (
    Mismatch,
    about,
    assert_close,
    assert_tensor,
    claimed,
    compared,
    gate,
    points,
    whole_numbers,
)
from grader.ch03_matmul.operands import assert_unchanged

PLAIN = ((1, 1), (0, 0), (1, 1), 1)


def compare(convolved, x, weight, bias=None, options=PLAIN):
    """Compare with torch, and name the case if it differs."""
    stride, padding, dilation, groups = options
    expected = F.conv2d(x, weight, bias, stride, padding, dilation, groups)
    rows = (
        ("call", f"conv2d(x, weight, {'None' if bias is None else 'bias'}, {_listed(options)})"),
        ("x", f"{tuple(x.shape)}, strides {x.stride()}"),
        ("weight", str(tuple(weight.shape))),
    )
    because = "the inputs are whole numbers, a wrong term is off by at least 1"
    with about(*rows):
        got = convolved.ask(x, weight, bias, options).value
        assert_close(got, expected, rtol=0.0, atol=0.01, because=because)


def _listed(options):
    """Return the last arguments of a call as one writes them."""
    return ", ".join(map(str, options))


@gate
def test_shape(convolved, convolved_plainly, rng):
    """Returns `float32` of the right shape; stride, padding and the rest may be left out."""
    x, weight = whole_numbers(rng, (2, 3, 7, 9)), whole_numbers(rng, (4, 3, 3, 2))
    assert_tensor(convolved_plainly.ask(x, weight).value, dtype=torch.float32, shape=(2, 4, 5, 8))
    got = convolved.ask(x, weight, None, ((2, 3), (1, 0), (1, 2), 1)).value
    assert_tensor(got, dtype=torch.float32, shape=(2, 4, 4, 3))


@points(4)
def test_windows(convolved, rng):
    """Plain windows, square and oblong, with and without bias."""
    compare(convolved, whole_numbers(rng, (1, 1, 3, 3)), whole_numbers(rng, (1, 1, 1, 1)))
    compare(convolved, whole_numbers(rng, (2, 3, 6, 8)), whole_numbers(rng, (4, 3, 3, 3)))
    compare(
        convolved,
        whole_numbers(rng, (1, 2, 7, 5)),
        whole_numbers(rng, (3, 2, 4, 2)),
        whole_numbers(rng, (3,)),
    )
    compare(
        convolved,
        whole_numbers(rng, (3, 2, 4, 6)),
        whole_numbers(rng, (5, 2, 4, 6)),
        whole_numbers(rng, (5,)),
    )


def test_stride(convolved, rng):
    """The window moves by `stride`; what does not fill a window is left unread."""
    x, weight = whole_numbers(rng, (2, 3, 9, 10)), whole_numbers(rng, (4, 3, 3, 2))
    for stride in ((2, 2), (1, 3), (4, 1)):
        compare(convolved, x, weight, None, (stride, (0, 0), (1, 1), 1))


def test_padding(convolved, rng):
    """Zeros on each side, height and width apart."""
    x = whole_numbers(rng, (2, 3, 4, 5))
    weight = whole_numbers(rng, (4, 3, 3, 2))
    bias = whole_numbers(rng, (4,))
    for padding in ((1, 1), (2, 0), (0, 3)):
        compare(convolved, x, weight, bias, ((1, 1), padding, (1, 1), 1))


def test_dilation(convolved, rng):
    """The window has holes."""
    x, weight = whole_numbers(rng, (2, 3, 9, 10)), whole_numbers(rng, (4, 3, 3, 2))
    for dilation in ((2, 2), (1, 4), (3, 1)):
        compare(convolved, x, weight, None, ((1, 1), (0, 0), dilation, 1))
    compare(convolved, x, weight, None, ((2, 3), (2, 1), (3, 2), 1))


def test_groups(convolved, rng):
    """Groups, depthwise, and several outputs per channel."""
    x = whole_numbers(rng, (2, 6, 5, 6))
    for groups, out in ((2, 4), (3, 3), (6, 6), (6, 12)):
        weight, bias = whole_numbers(rng, (out, 6 // groups, 3, 2)), whole_numbers(rng, (out,))
        compare(convolved, x, weight, bias, ((1, 1), (0, 0), (1, 1), groups))
        compare(convolved, x, weight, bias, ((2, 1), (1, 2), (1, 2), groups))


def test_any_layout(convolved, rng):
    """Inputs with an offset, channels last, expanded, flipped axes; an empty batch."""
    big = whole_numbers(rng, (4, 6, 9, 11))
    layouts = {
        "offset": big[1:3, 2:, 1:8, 3:],
        "strided": big[::2, 1::2, ::2, 1::2][:, [0, 1, 2, 0]],
        "channels last": big[:, :4].contiguous(memory_format=torch.channels_last),
        "transposed": big[:, :4].transpose(2, 3),
        "expanded": big[:1, :1, :, :1].expand(2, 4, 9, 7),
        "empty": big[:0, :4],
    }
    weight = whole_numbers(rng, (3, 3, 4, 6)).permute(2, 3, 0, 1)[:4, :, :, 1:]
    assert weight.shape == (4, 6, 3, 2)
    weight = weight[:, 1:5]
    bias = whole_numbers(rng, (8,))[1::2]
    for x in layouts.values():
        compare(convolved, x, weight, bias, PLAIN)
        compare(convolved, x, weight[:, ::2], bias, ((2, 1), (1, 0), (1, 1), 2))


def test_inputs_stay(convolved, rng):
    """The inputs are as they were."""
    x, weight = whole_numbers(rng, (2, 4, 6, 5)), whole_numbers(rng, (6, 2, 3, 2))
    for bias in (None, whole_numbers(rng, (6,))):
        for options in (((1, 1), (0, 0), (1, 1), 2), ((2, 1), (1, 2), (1, 2), 2)):
            evidence = convolved.ask(x, weight, bias, options)
            assert_tensor(evidence.value, dtype=torch.float32)
            assert_unchanged(evidence, x=x, weight=weight, bias=bias)


COSTLY = (
    ((2, 8, 20, 18), (16, 8, 3, 3), ((1, 1), (0, 0), (1, 1), 1)),
    ((1, 16, 20, 20), (16, 4, 3, 3), ((1, 1), (1, 1), (1, 1), 4)),
    ((2, 12, 24, 24), (12, 1, 5, 5), ((1, 1), (2, 2), (1, 1), 12)),
    ((1, 8, 33, 33), (8, 8, 4, 4), ((3, 3), (2, 2), (2, 2), 1)),
)


def costs(conv_cost, rng):
    """Yield what each of the costly cases took, with the numbers that bound it."""
    for shape, weights, options in COSTLY:
        x = whole_numbers(rng, shape)
        weight = whole_numbers(rng, weights)
        bias = whole_numbers(rng, (weights[0],))
        expected = F.conv2d(x, weight, bias, *options)
        found = conv_cost.ask(x, weight, bias, options).value
        assert_tensor(found["result"], dtype=torch.float32, shape=expected.shape)
        if not torch.allclose(found["result"], expected, atol=0.01):
            what = "The result is wrong, so what it costs does not count."
            raise Mismatch(what, shown(x, weight, options))
        yield found, x, weight, expected, options


def shown(x, weight, options):
    """Return the rows that say what was called."""
    call = f"conv2d(x, weight, bias, {_listed(options)})"
    return ("call", call), ("x", str(tuple(x.shape))), ("weight", str(tuple(weight.shape)))


def at_most(got, allowed, what, x, weight, options):
    """Fail if a measured cost is above its budget; how far below it is tells no mistakes apart."""
    compared(got if got > allowed else "within the budget")
    if got > allowed:
        numbers = ("allowed", f"{allowed:,}"), ("got", f"{got:,}")
        raise Mismatch(what, (*shown(x, weight, options), *numbers))


@claimed
def test_work(conv_cost, rng):
    """Groups divide the work: no more FLOPs than the weights call for."""
    for found, x, weight, expected, options in costs(conv_cost, rng):
        allowed = 2 * expected.numel() * weight[0].numel()
        at_most(
            found["flops"],
            allowed,
            "The products take more FLOPs than the weights call for.",
            x,
            weight,
            options,
        )


@claimed
def test_memory(conv_cost, rng):
    """The windows are copied once at most."""
    for found, x, weight, expected, options in costs(conv_cost, rng):
        top, left = options[1]
        padded = x[:, :, 0, 0].numel() * (x.shape[2] + 2 * top) * (x.shape[3] + 2 * left)
        windows = x.shape[0] * x.shape[1] * weight[0, 0].numel() * expected[0, 0].numel()
        allowed = 4 * (padded + windows + 3 * expected.numel() + weight.numel())
        at_most(
            found["peak"],
            allowed,
            "Too many bytes of new storage are alive at once.",
            x,
            weight,
            options,
        )
