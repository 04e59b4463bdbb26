"""Checks of `vmap`: values beside PyTorch's own, one call, and how many operators run."""

import warnings

import pytest
import torch

from grader import (
    about,
    assert_close,
    assert_equal,
    assert_holds,
    assert_raises,
    claimed,
    compared,
    gate,
    points,
)
from grader.ch09_dispatch.probes.batched import as_program, calls_of_mapped

SAME = "the same sums, in another order"
FEW, MANY = 3, 24
"""Sizes of a batch: were anything done for each example, 21 more operators would be seen."""


@pytest.fixture
def draw(rng):
    """Return a function that draws a float tensor of a shape."""
    return lambda *shape: torch.randn(shape, generator=rng)


@pytest.fixture
def example(draw):
    """x (3, 4), y (4,), each for a batch of 3, and w (4, 3)."""
    return [draw(FEW, 3, 4), draw(FEW, 4), draw(4, 3)]


def on(lines, tensors, in_dims, out_dims):
    """Return the row that says how to ask this."""
    names = zip("xyw", tensors, strict=True)
    given = [f"{name} = torch.randn({', '.join(map(str, one.shape))})" for name, one in names]
    call = f"vmap(f, {in_dims}, {out_dims})(x, y)"
    return ("on", "\n".join([*given, as_program(lines), call]))


def tensors_in(tree):
    """Return the results in a list or tuple, or the one that is none."""
    return list(tree) if isinstance(tree, list | tuple) else [tree]


def same_as_torch(mapped, lines, tensors, in_dims=0, out_dims=0):
    """Compare results, arguments afterwards and the number of calls with `torch.vmap`."""
    theirs, ours = ([one.clone() for one in tensors] for _ in range(2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = calls_of_mapped(torch.vmap, lines, theirs, in_dims, out_dims)
    evidence = mapped.ask(lines, ours, in_dims, out_dims)
    got = evidence.value
    with about(on(lines, tensors, in_dims, out_dims)):
        found, wanted = tensors_in(got["result"]), tensors_in(expected["result"])
        assert_equal(len(found), len(wanted), "How many results.")
        for number, (one, other) in enumerate(zip(found, wanted, strict=True)):
            with about(of=f"Result {number}: "):
                assert_close(one, other, rtol=1e-5, atol=1e-5, because=SAME)
        for name, one, other in zip("xyw", evidence.inputs_after["tensors"], theirs, strict=True):
            with about(of=f"The argument {name} afterwards: "):
                assert_close(one, other, rtol=1e-5, atol=1e-5, because=SAME)
        assert_equal(got["calls"], 1, "How often the function was called.")
    return got


def same_number(mapped, lines, small, large, in_dims=0):
    """Compare with `torch.vmap` in two sizes, between which the number of operators stays."""
    few = same_as_torch(mapped, lines, small, in_dims)
    many = same_as_torch(mapped, lines, large, in_dims)
    with about(on(lines, large, in_dims, 0)):
        what = "More operators run for a larger batch."
        more = f"{many['operators']} operators, and {few['operators']} for {small[1].shape[0]}"
        compared([few["operators"], many["operators"]])
        told = "; ".join(sorted(set(many["warnings"])))
        rows = ("got", more), *([("warned", told)] if told else [])
        assert_holds(many["operators"] <= few["operators"], what, *rows)
        assert_equal(
            few["warnings"] + many["warnings"], [], "Warnings, where each operator has a rule."
        )


@gate
def test_one_operator(mapped, example):
    """A batch of sums of two tensors."""
    same_as_torch(mapped, ["return x + 1"], example)


ONE_FOR_ALL = (
    ["return (x.relu() * 2 - 1).exp()"],
    ["return torch.where(x > 0, x, 0.5).sum(-1)"],
    ["return x @ y"],
    ["return x @ w"],
    ["return (x.t() @ x).mean(0)"],
    ["return (y @ y) * x[1]"],
    ["return x.unsqueeze(0).reshape(2, 6).sum()"],
    ["return F.linear(x, w.t()).amax(1)"],
)
"""Functions of operators that have a rule."""


@points(4)
@claimed
def test_one_operator_for_all(mapped, draw):
    """Operators run for the batch, and not for each example: 24 take no more than 3."""
    w = draw(4, 3)
    small, large = ([draw(size, 3, 4), draw(size, 4), w] for size in (FEW, MANY))
    for lines in ONE_FOR_ALL:
        same_number(mapped, lines, small, large)


def test_dimensions(mapped, example):
    """Numbers of dimensions, from the front and from the end; several, and none."""
    for expression in (
        "x.sum(0), x.sum(-2), x.sum(1, keepdim=True), x.sum((0, -1)), x.sum()",
        "x.sum(()), x.amax(()), y.sum([], keepdim=True)",
        "x.mean(-1), x.mean((0, 1)), x.amax(0), x.amax((-1, 0), keepdim=True), x.amax()",
        "x[1], x.select(-1, 2), x[:, -1], x.select(0, -1)",
        "x.unsqueeze(0), x.unsqueeze(-1), x.unsqueeze(1), y.unsqueeze(-2)",
        "x.transpose(0, 1), x.transpose(-1, 0), x[None].transpose(1, 2), x.t(), y.t()",
        "x[None].permute(2, 0, 1), x[None].permute(-1, 0, -2), x.permute(1, 0)",
        "x.view(-1), x.view(2, 6), x.t().reshape(-1), x.flatten(), x[None].view(3, 2, 2)",
        "y.expand(2, 4), y.expand(3, -1), x[None].expand(2, 3, 4), y.sum().expand(2, 2)",
        "y[0].sum(-1), y[0].mean(0), y[0].amax(-1, keepdim=True), y[0].amax(), y[0].sum(())",
        "x.sum(dtype=torch.float64), x.mean(0, dtype=torch.float64), y[0].sum(0, dtype=torch.float64)",
    ):
        same_as_torch(mapped, [f"return {expression}"], example)


def test_shapes_meet_at_their_ends(mapped, example, draw):
    """Tensors of different numbers of dimensions, with a batch and without."""
    square = [draw(4, 4, 4), draw(4, 4), draw(4, 4)]  # a batch of 4: no size tells which is which
    for tensors in (example, square):
        for expression in (
            "x + y, y - x, x * y.sum(), y.sum() / x",
            "x + w.t(), y * w.t(), w.t() - y, y.sum() * w, w[:, 0] - x",
            "y[:, None] * y, (y[:, None] - y)[None] + x[:, :, None]",
            "torch.where(y > 0, x, w.t()), torch.lerp(x, y, 0.25), x.clamp(min=w.t())",
        ):
            same_as_torch(mapped, [f"return {expression}"], tensors)


def test_products(mapped, example):
    """Products of which either side has a batch, or both."""
    for expression in (
        "x @ y, w @ x, x @ w, x @ x.t(), w.t() @ y",
        "y @ y, y @ w[:, 0], w[:, 0] @ y, x @ w[:, 0]",
        "x[None].expand(2, 3, 4).bmm(w[None].expand(2, 4, 3)), w.expand(2, 4, 3) @ x",
        "F.linear(x, w.t(), w[0]), torch.outer(y, y), torch.einsum('ij,kj->ik', x, x)",
    ):
        same_as_torch(mapped, [f"return {expression}"], example)


def test_in_and_out(mapped, draw):
    """Where the batch is and where it goes; what has none; what is not mapped."""
    x, y, w = draw(5, 3, 4), draw(4, 5), draw(4, 3)
    lines = ["return (x * y).sum(1)"]
    same_as_torch(mapped, lines, [x, y, w], in_dims=(0, 1))
    same_as_torch(mapped, lines, [x, y, w], in_dims=(-3, -1), out_dims=-1)
    same_as_torch(mapped, lines, [x[0], y, w], in_dims=(None, 1), out_dims=1)
    same_as_torch(mapped, lines, [x, y[:, 0], w], in_dims=(0, None))
    lines = ["return x * 2 - x[0], x @ w"]
    last, middle = x.permute(1, 2, 0).contiguous(), x.permute(1, 0, 2).contiguous()
    same_as_torch(mapped, lines, [last, y, w], in_dims=(2, None), out_dims=2)
    same_as_torch(mapped, lines, [middle, y, w], in_dims=(1, None), out_dims=-1)
    lines = ["return x * 2, y.sum(), w * 2, torch.ones(2)"]
    same_as_torch(mapped, lines, [x, y.t(), w], in_dims=0)
    # `torch.vmap` of 2.13 fails if `out_dims` is not 0 and there is no batch in a result
    lines, tensors = ["return w"], [x, y.t(), w]
    for out_dims, expected in ((1, torch.stack([w] * 5, 1)), (-1, torch.stack([w] * 5, -1))):
        got = mapped.ask(lines, tensors, 0, out_dims).value["result"]
        with about(on(lines, tensors, 0, out_dims)):
            assert_close(got, expected, rtol=0, atol=0, because="nothing is computed")


@points(2)
@claimed
def test_nested(mapped, draw):
    """A vmap in a vmap: batches of one size are not mixed up, and neither is looped over."""
    for lines in (
        ["return vmap(lambda b: y * b.sum())(x)"],
        ["return vmap(lambda b: vmap(lambda c: (b * c - y).sum() + w)(x))(x)"],
        ["return vmap(lambda b: x @ b, 1, 1)(x.t() @ x)"],
        ["return vmap(lambda b: (b[:, None] * y).amax(0) + b @ y, -2, -1)(x)"],
    ):
        w = draw(4, 4)
        small, large = ([draw(size, 4, 4), draw(size, 4), w] for size in (4, 12))
        same_number(mapped, lines, small, large)


def test_loop_for_the_rest(mapped, example):
    """Operators without a rule run for each example, and a warning names them."""
    for expression, name in (
        ("torch.histc(y, 3)", "histc"),
        ("x.sort(-1)", "sort"),
        ("torch.cat([x, w.t(), x * 2])", "cat"),
        ("x.cumsum(0)", "cumsum"),
        ("torch.stack([y, w[:, 0], y])", "stack"),
        ("torch.searchsorted(y.sort()[0], w, right=True)", "searchsorted"),
    ):
        lines = [f"r = {expression}", "return r if isinstance(r, torch.Tensor) else tuple(r)"]
        got = same_as_torch(mapped, lines, example)
        told = any(name in text for text in got["warnings"])
        said = "; ".join(got["warnings"]) or "no warning"
        with about(on(lines, example, 0, 0)):
            assert_holds(told, f"No warning has the name `{name}`.", ("got", said))
    alone = [example[0][:1], example[1][:1], example[2]]
    same_as_torch(mapped, ["return torch.histc(y, 3), x @ y"], alone)


def test_refused(mapped, example, draw):
    """What has no meaning for a batch raises; writes into tensors of the batch arrive."""
    for line in (
        "return y.sum().item() + x",
        "return x if y.sum() > 0 else -x",
        "return x + torch.rand_like(x)",
        "return F.dropout(x, 0.5)",
        "w.t().add_(x)",
        "w[:, 0].copy_(y)",
        "return vmap(lambda b: y.copy_(b))(x)",
    ):
        what = "A RuntimeError was expected."
        asked = mapped.ask([line], [one.clone() for one in example], 0, 0)
        assert_raises(asked, "RuntimeError", what, on([line], example, 0, 0))
    for tensors, in_dims in (
        ([example[0], example[0][:, 0][:2], example[2]], 0),
        ([example[0], example[1][:1], example[2]], 0),
        (example, (None, None)),
    ):
        asked = mapped.ask(["return x + 1"], tensors, in_dims, 0)
        what = "A ValueError was expected: no batch, or two sizes of it."
        assert_raises(asked, "ValueError", what, on(["return x + 1"], tensors, in_dims, 0))
    same_as_torch(mapped, ["x.add_(y)", "y.mul_(2)", "return x * y"], example)
    same_as_torch(mapped, ["x.sub_(w.t(), alpha=2)", "return x.sum()"], example)
