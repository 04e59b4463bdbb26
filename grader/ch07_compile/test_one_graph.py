"""Checks of `one_graph`: graphs, values, gradients, and what the arm that is not taken costs."""

import pytest
import torch

from grader import (
    Mismatch,
    about,
    assert_close,
    assert_equal,
    assert_holds,
    assert_tensor,
    claimed,
    gate,
    points,
)

SUMS = "the order of sums is free"


def settled(x, w, limit):
    """Return the result and the gradients that the original gives, and its size."""
    x, w = (t.detach().clone().requires_grad_(t.requires_grad) for t in (x, w))
    size = x.abs().max().item()
    y = (x @ w) / size if size > limit else x * 1
    result = y - y[y > 0].mean()
    if x.requires_grad:
        (result * torch.arange(result.numel()).reshape(result.shape)).sum().backward()
    return result.detach(), [x.grad, w.grad], size


@pytest.fixture
def pair(rng):
    """x (5, 3) and w (3, 3), float64, both require grad; the size of x is between 1 and 2."""
    x = torch.randn(5, 3, generator=rng, dtype=torch.float64)
    x = x / x.abs().max() * (1 + torch.rand((), generator=rng))
    w = torch.randn(3, 3, generator=rng, dtype=torch.float64)
    return x.requires_grad_(), w.requires_grad_()


@pytest.fixture
def cases(pair):
    return [[*pair, 1.0], [*pair, 9.0]]


def compare(one_graph_runs, cases, tolerance=1e-9):
    got = one_graph_runs.ask(cases).value["cases"]
    for one, case in zip(got, cases, strict=True):
        x, _, limit = case
        result, gradients, size = settled(*case)
        with about(("on", f"{told(x)}, limit={limit!r}"), ("size", f"{size!r}")):
            with about(of="The result. "):
                assert_close(one["result"], result, rtol=tolerance, atol=tolerance, because=SUMS)
            with about(of="The size. "):
                assert_close(
                    one["size"],
                    torch.tensor(size, dtype=result.dtype),
                    rtol=0,
                    atol=0,
                    because="it is one of the values",
                )
            for name, mine, expected in zip("xw", one["gradients"], gradients, strict=True):
                # where the product is not taken there may be zeros for w, or nothing
                if expected is None and mine is not None:
                    expected = torch.zeros_like(mine)
                if expected is not None:
                    if mine is None:
                        raise Mismatch(f"No gradient arrived at {name}.")
                    with about(of=f"The gradient of (result * arange).sum() in {name}. "):
                        assert_close(mine, expected, rtol=tolerance, atol=tolerance, because=SUMS)


def told(x):
    """Return a small matrix as text to paste, a larger one by its shape."""
    kind = str(x.dtype)
    if x.numel() > 6:
        return f"x of shape {tuple(x.shape)} and strides {x.stride()}, {kind}"
    return f"x=torch.tensor({x.tolist()}, dtype={kind})"


@gate
def test_a_pair(one_graph_runs, pair):
    """Compiles with `fullgraph=True`, and returns the result and the size."""
    x, w = pair
    (got,) = one_graph_runs.ask([[x.detach(), w.detach(), 1.0]]).value["cases"]
    assert_tensor(got["result"], dtype=torch.float64, shape=(5, 3))
    assert_tensor(got["size"], dtype=torch.float64, shape=())


@claimed
@points(2)
def test_one_graph_for_both(one_graph_runs, cases):
    """One graph serves both ways of the `if`, and calls PyTorch alone."""
    x, w, limit = cases[0]
    small, large = ((x.detach() * k).requires_grad_() for k in (0.25, 3))
    got = one_graph_runs.ask([[x, w, limit], [small, w, limit], [large, w, limit]]).value
    assert_equal([one["graphs"] for one in got["cases"]], [1, 1, 1], "Graphs after each call.")
    assert_equal(
        got["foreign calls"], [], "Modules of functions in the graph that are not torch's."
    )


def test_above_the_limit(one_graph_runs, pair):
    """Values and gradients where the product is taken; the size is a constant for `backward`."""
    x, w = pair
    compare(one_graph_runs, [[x, w, 1.0], [x.detach() * 5, w.detach(), 1.5]])


def test_below_the_limit(one_graph_runs, pair):
    """Values and gradients where it is not, and where size and limit are equal."""
    x, w = pair
    even = torch.tensor([[2.0, -1.0, 0.5]], dtype=torch.float64).requires_grad_()
    compare(one_graph_runs, [[x, w, 9.0], [even, w, 2.0], [-even.detach(), w.detach(), 2.0]])


def test_close_to_the_limit(one_graph_runs, pair):
    """Size and limit are compared as Python floats: the `float32` number 0.1 exceeds 0.1."""
    w = pair[1].detach().float()
    for limit in (0.1, 0.7):  # the first is rounded up in float32, the second down
        near = torch.tensor([[limit, -0.05, 0.0625]])
        compare(one_graph_runs, [[near, w, limit], [-near, w, limit]], 1e-5)


def test_odd_values(one_graph_runs, pair):
    """Nothing positive, zeros, infinities, a NaN."""
    x, w = (t.detach() for t in pair)
    odd = x.clone()
    odd[0, 0], odd[1, 1], odd[2, 2] = -torch.inf, 0.0, -0.0
    unclear = x.clone()
    unclear[1, 2] = torch.nan
    cases = [[-x.abs(), w, 9.0], [odd, w, torch.inf], [-odd, w, torch.inf], [odd, w, 1.0]]
    compare(one_graph_runs, [*cases, [unclear, w, 1.0], [torch.zeros(2, 3).double(), w, 0.0]])


def test_dtypes_and_layouts(one_graph_runs, pair):
    """`float32` and `bfloat16`; transposed, strided and expanded inputs; one element."""
    x, w = (t.detach() for t in pair)
    spread = x[:1].expand(4, 3)
    compare(one_graph_runs, [[x[:3].t(), w.t(), 1.0], [x[::2], w, 9.0], [spread, w, 0.0]])
    compare(one_graph_runs, [[x[:1, :1], w[:1, :1], 0.0]])
    compare(one_graph_runs, [[x.float(), w.float(), 1.0], [x.float(), w.float(), 9.0]], 1e-5)
    half = [[x.bfloat16(), w.bfloat16(), limit] for limit in (1.0, 9.0)]
    compare(one_graph_runs, half, 0.1)


def test_size(one_graph_runs, cases):
    """The size is that of the input, and does not require grad."""
    for one, case in zip(one_graph_runs.ask(cases).value["cases"], cases, strict=True):
        assert_close(
            one["size"],
            case[0].detach().abs().max(),
            rtol=0,
            atol=0,
            because="it is one of the values",
        )
        assert_holds(not one["size requires grad"], "The size requires grad.")


@claimed
@points(4)
def test_no_product_below(one_graph_runs, cases):
    """Below the limit no matrix product is computed."""
    got = [one["products"] for one in one_graph_runs.ask(cases).value["cases"]]
    what = "Floating-point operations of products, for a limit below the size and for one above it."
    assert_equal(got, [2 * 5 * 3 * 3, 0], what)
