"""Checks of `custom_op`: against the filter written with tensors, and autograd's own gradient."""

import pytest
import torch

from grader import (
    about,
    assert_close,
    assert_equal,
    assert_holds,
    assert_same_bits,
    claimed,
    facts,
    gate,
    points,
)

ROUNDING = "the order of a sum of a few rows in float64"


@pytest.fixture
def x(rng):
    return torch.randn(5, 3, generator=rng, dtype=torch.float64)


@pytest.fixture
def keep(rng):
    return float(torch.rand((), generator=rng)) * 0.5 + 0.25


@pytest.fixture
def cotangent(rng):
    return torch.randn(5, 3, generator=rng, dtype=torch.float64)


@pytest.fixture
def layouts(rng):
    """Inputs that are transposed, a slice, expanded, with one row, without rows, without features."""
    wide = torch.randn(4, 6, generator=rng, dtype=torch.float64)
    return [wide.t(), wide[1:, 2:5], wide[:1].expand(4, 6), wide[3:], wide[:0], wide[:, :0]]


def smoothed(x, keep):
    rows = []
    for row in x:
        rows.append(row + keep * rows[-1] if rows else row)
    return torch.stack(rows) if rows else x.clone()


def close(got, expected):
    assert_close(got, expected, rtol=1e-9, atol=1e-9, because=ROUNDING)


@gate
def test_filters(smooth_called, x, keep):
    """The operator filters."""
    close(smooth_called.value, smoothed(x, keep))


def test_layouts(smooth_called, keep, layouts):
    """Whatever the strides and however few the rows: right, contiguous, in memory of its own."""
    for x in [*layouts, layouts[1].float()]:
        answer = smooth_called.ask(x, keep)
        case = f"x of shape {tuple(x.shape)} and strides {x.stride()}. "
        if x.dtype is torch.float64:
            with about(of=case):
                close(answer.value, smoothed(x, keep))
        assert_equal(str(answer.value.dtype), str(x.dtype), case + "The dtype.")
        assert_holds(answer.value.is_contiguous(), case + "The result is not contiguous.")
        assert_equal(facts(answer.value).aliases, None, case + "The storage shared with an input.")
        assert_same_bits(answer.inputs_after["x"], x)


def test_gradient(smooth_gradient, rng, keep, layouts):
    """The gradient of `x` is that of the filter, for cotangents of any layout."""
    for x in layouts:
        leaf = x.detach().requires_grad_()
        cotangent = torch.randn(*x.shape[::-1], generator=rng, dtype=torch.float64).t()
        (expected,) = torch.autograd.grad(smoothed(leaf, keep), leaf, cotangent)
        case = f"The gradient of x of shape {tuple(x.shape)} and strides {x.stride()}. "
        with about(of=case):
            close(smooth_gradient.ask(x, keep, cotangent).value["gradient"], expected)


@claimed
def test_saves_nothing(smooth_gradient):
    """Autograd keeps no tensor for the backward."""
    assert_equal(smooth_gradient.value["saved bytes"], 0, "Bytes saved for the backward.")
    assert_equal(smooth_gradient.value["kept"], [], "Tensors kept alive for the backward.")


def test_promise(smooth_promise, keep, layouts):
    """The fake kernel promises the shape, the strides and the dtype that come."""
    for x in [*layouts[:3], layouts[0].float()]:
        promised = smooth_promise.ask(x, keep).value
        came = (list(x.shape), list(x.contiguous().stride()), str(x.dtype))
        assert_equal(promised, came, f"For x of shape {tuple(x.shape)}, strides {x.stride()}.")


def compiled_as_eager(smooth_compiled, xs, keep, cotangents, dynamic):
    got = smooth_compiled.ask(xs, keep, cotangents, dynamic).value
    for (result, gradient), x, cotangent in zip(got["results"], xs, cotangents, strict=True):
        leaf = x.detach().requires_grad_()
        expected = smoothed(leaf * 2, keep).sin()
        expected.backward(cotangent)
        case = (
            f"of lambda x: smooth(x * 2, keep).sin(), compiled, for x of shape {tuple(x.shape)}. "
        )
        with about(of=f"The result {case}"):
            close(result, expected.detach())
        with about(of=f"The gradient {case}"):
            close(gradient, leaf.grad)
    return got


@points(3)
def test_compiled(smooth_compiled, x, keep, cotangent):
    """Compiled with `fullgraph=True` it is one node of the forward graph, and the values are right."""
    got = compiled_as_eager(smooth_compiled, [x], keep, [cotangent], False)
    assert_equal(got["nodes"][0], 1, "Nodes in the forward graph that call undertorch::smooth.")


def test_dynamic(smooth_compiled, rng, keep):
    """With dynamic shapes one forward graph serves inputs of several lengths."""
    xs = [torch.randn(rows, 3, generator=rng, dtype=torch.float64) for rows in (5, 9, 4)]
    got = compiled_as_eager(smooth_compiled, xs, keep, [one.cos() for one in xs], True)
    assert_equal(got["graphs"], 2, "Graphs for three lengths: one forward, one backward.")


def test_opcheck(smooth_checked, x, keep, layouts):
    """`opcheck` finds that schema, fake kernel and autograd keep their promises."""
    for one in (x, layouts[0]):
        for name, verdict in smooth_checked.ask(one, keep).value.items():
            assert_equal(verdict, "SUCCESS", f"{name}, x of strides {one.stride()}.")
