"""Checks of `gradients`: random graphs, against PyTorch's engine on the grader's side."""

import pytest
import torch

from grader import about, assert_close, assert_equal, assert_holds, draw_int, draw_one, facts, gate
from grader.ch05_autograd.probes.graphs import build_all

LEAVES = 4
FLOAT32 = 1e-5  # where sums may be taken in float32 on the way
ROUNDING = "the same sums in float64, in another order"
TWO = ("mul", "add", "matmul", "write", "into", "column", "where")


@pytest.fixture
def recipe():
    return [("mul", 0, 1), ("sigmoid", 4)]


@pytest.fixture
def numbers(rng):
    """The leaves' values, (4, 4, 4) float64; leaf 2 requires no grad."""
    return torch.rand(LEAVES, 4, 4, generator=rng, dtype=torch.float64) + 0.1


@pytest.fixture
def cotangent(rng):
    return torch.randn(4, 4, generator=rng, dtype=torch.float64)


@pytest.fixture
def wanted():
    return [0, 1]


def random_recipe(rng, kinds, steps):
    recipe = []
    for step in range(steps):
        kind = draw_one(rng, kinds)
        first = LEAVES + step - 1 if step else 0
        other = draw_int(rng, 0, LEAVES + step - 1)
        recipe.append((kind, first, other) if kind in TWO else (kind, first))
    return recipe


def compare(walked_back, recipe, numbers, cotangent, wanted, tolerance=1e-9):
    made = build_all(recipe, numbers)
    wanted = [at for at in wanted if made[at].requires_grad]
    cotangent = cotangent[: made[-1].shape[0]] if made[-1].dim() == 2 else cotangent[0]
    inputs = [made[at] for at in wanted]
    expected = torch.autograd.grad(made[-1], inputs, cotangent, allow_unused=True)
    got = walked_back.ask(recipe, numbers, cotangent, wanted).value
    found = got["gradients"]
    case = f"Of the results {wanted} of {recipe}: which have a gradient."
    assert_equal([g is not None for g in found], [g is not None for g in expected], case)
    for at, mine, theirs in zip(wanted, found, expected, strict=True):
        if theirs is not None:
            with about(of=f"The gradient of result {at} of {recipe}. "):
                close(mine, theirs, tolerance)
    return got


def close(mine, theirs, tolerance=1e-9):
    tolerance = tolerance if theirs.dtype is torch.float64 else 1e-4
    assert_close(mine, theirs, rtol=tolerance, atol=tolerance, because=ROUNDING)


@gate
def test_a_list(walked_back, wanted):
    """Returns a list with a gradient for each input."""
    found = walked_back.value["gradients"]
    assert_equal((type(found).__name__, len(found)), ("list", len(wanted)))


def test_chains(walked_back, numbers, cotangent, rng):
    """One operation after the other, down to the leaves."""
    for steps in (1, 2, 3, 5):
        recipe = random_recipe(rng, ["sigmoid", "exp", "norm", "index", "slice", "view"], steps)
        compare(walked_back, recipe, numbers, cotangent, [0])
    compare(walked_back, [("mul", 0, 2), ("matmul", 4, 1)], numbers, cotangent, [0, 1])


def test_roads_that_meet(walked_back, numbers, cotangent, rng):
    """Results that are used more than once: their gradients are sums."""
    compare(walked_back, [("double", 0), ("mul", 4, 4), ("add", 5, 4)], numbers, cotangent, [0])
    # two roads of different length, and a tensor that both roads share
    recipe = [("add", 0, 1), ("double", 4), ("add", 5, 4), ("add", 6, 0), ("double", 7)]
    compare(walked_back, recipe, numbers, cotangent, [0, 1])
    for _ in range(6):
        recipe = random_recipe(rng, ["mul", "add", "double", "sum", "matmul"], 7)
        compare(walked_back, recipe, numbers, cotangent, [0, 1, 3])


def test_several_results(walked_back, numbers, cotangent, rng):
    """Nodes with several results, of which some or all were used."""
    for kind in ("row", "one_of", "spread", "both", "chunk", "halves", "sort", "max"):
        compare(walked_back, [("exp", 0), (kind, 4)], numbers, cotangent, [0])
    for _ in range(4):
        kinds = ["one_of", "both", "spread", "halves", "mul", "chunk"]
        compare(walked_back, random_recipe(rng, kinds, 4), numbers, cotangent, [0, 1, 3])


def test_any_operation(walked_back, numbers, cotangent, rng):
    """Broadcasting, writes in place, other dtypes on the way."""
    for kind in ("column", "write", "into", "where"):
        compare(walked_back, [(kind, 0, 1), ("mul", 4, 0)], numbers, cotangent, [0, 1])
        compare(walked_back, [("sigmoid", 0), (kind, 2, 4)], numbers, cotangent, [0])
    compare(walked_back, [("into", 0, 1), ("add", 4, 4)], numbers, cotangent, [0, 1])
    compare(walked_back, [("single", 0), ("mul", 4, 0)], numbers, cotangent, [0], FLOAT32)
    compare(walked_back, [("float", 0), ("promote", 4)], numbers, cotangent, [0, 4], FLOAT32)
    for _ in range(6):
        kinds = ["column", "into", "where", "mul", "sigmoid", "both", "detach", "expand"]
        compare(walked_back, random_recipe(rng, kinds, 6), numbers, cotangent, [0, 1, 3])


def test_inputs(walked_back, numbers, cotangent, rng):
    """Results in the middle, the output itself, the same input twice, and inputs without influence."""
    recipe = [("mul", 0, 1), ("sigmoid", 4), ("mul", 5, 4), ("exp", 3), ("add", 6, 5)]
    everything = list(range(LEAVES + len(recipe)))
    compare(walked_back, recipe, numbers, cotangent, everything)
    compare(walked_back, recipe, numbers, cotangent, [4, 0, 4, 8])
    compare(
        walked_back, [("double", 0), ("exp", 1), ("detach", 4)], numbers, cotangent, [0, 1, 4, 5]
    )
    recipe = [("both", 0), ("one_of", 4), ("row", 5)]
    compare(walked_back, recipe, numbers, cotangent, [0, 4, 5, 6])
    compare(walked_back, [], numbers[:1], cotangent, [0])  # the output is a leaf


def test_deep(walked_back, numbers, cotangent):
    """1,000 nodes in a row, with two roads from each to the next."""
    deep = [("double", 0), *[("double", LEAVES + step) for step in range(999)]]
    got = walked_back.ask(deep, numbers, cotangent, [0]).value["gradients"]
    assert_close(got[0], cotangent * 2.0**1000, rtol=0, atol=0, because="powers of two are exact")


def test_leaves_no_trace(walked_back, numbers, cotangent, rng):
    """No `.grad` and no graph is changed, a second call gives the same; results require no grad."""
    for kinds in (["mul", "sigmoid", "add"], ["double", "both", "exp"]):
        recipe = random_recipe(rng, kinds, 5)
        got = compare(walked_back, recipe, numbers, cotangent, [0, LEAVES])
        assert_holds(got["untouched"], "A leaf's .grad was changed.")
        for first, second in zip(got["gradients"], got["again"] or [], strict=True):
            close(second, first)
            flags = (facts(first).requires_grad, facts(second).requires_grad)
            assert_equal(flags, (False, False), "Whether a gradient requires grad.")
