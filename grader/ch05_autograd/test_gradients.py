"""Checks of `gradients`: random graphs, against PyTorch's engine on the grader's side."""

import pytest
import torch

from grader import (
    about,
    assert_close,
    assert_equal,
    assert_holds,
    draw_int,
    draw_one,
    facts,
    gate,
    points,
)
from grader.ch05_autograd.probes.graphs import as_text, build_all, name_of

LEAVES = 4
FLOAT32 = 1e-5  # where sums may be taken in float32 on the way
ROUNDING = "the same sums in float64, in another order"
TWO = ("mul", "add", "matmul", "write", "into", "column", "where", "first_of")


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
    """Draw a recipe in which any result may be used anywhere, and all of them lead to the last.

    Its graph has branches: a walk that follows one of them to its end meets nodes that the others
    have not reached yet.
    """
    recipe, free = [], []
    for step in range(steps):
        kind = draw_one(rng, kinds)
        last = LEAVES + step - 1
        first, other = (draw_int(rng, 0, last) if step else 0 for _ in range(2))
        inputs = [first, other] if kind in TWO else [first]
        recipe.append((kind, *inputs))
        free = [at for at in free if at not in inputs] + [LEAVES + step]
    for at in free[:-1]:
        recipe.append(("add", LEAVES + len(recipe) - 1, at))
    return recipe


def compare(walked_back, recipe, numbers, cotangent, wanted, tolerance=1e-9):
    """Compare with the engine: which inputs have a gradient, and each of these."""
    made = build_all(recipe, numbers)
    wanted = [at for at in wanted if made[at].requires_grad]
    cotangent = cotangent[: made[-1].shape[0]] if made[-1].dim() == 2 else cotangent[0]
    inputs = [made[at] for at in wanted]
    expected = torch.autograd.grad(made[-1], inputs, cotangent, allow_unused=True)
    got = walked_back.ask(recipe, numbers, cotangent, wanted).value
    found = got["gradients"]
    names = [name_of(at, LEAVES) for at in wanted]
    output = name_of(len(made) - 1, LEAVES)
    call = f"gradients({output}, torch.rand_like({output}), [{', '.join(names)}])"
    program = f"{as_text(recipe, numbers)}\n{call}"
    have, should = (
        [name for name, grad in zip(names, grads, strict=True) if grad is not None]
        for grads in (found, expected)
    )
    with about(("program", program)):
        assert_equal(have, should, "The inputs that have a gradient, not None.")
    for name, mine, theirs in zip(names, found, expected, strict=True):
        if theirs is not None:
            with about(("program", program), of=f"The gradient of `{name}`: "):
                close(mine, theirs, tolerance)
    return got


def close(mine, theirs, tolerance=1e-9):
    tolerance = tolerance if theirs.dtype is torch.float64 else 1e-4
    assert_close(mine, theirs, rtol=tolerance, atol=tolerance, because=ROUNDING)


@gate
def test_a_list(walked_back, wanted):
    """Returns a list with a gradient for each input."""
    found = walked_back.value["gradients"]
    assert_equal(type(found).__name__, "list", "What is returned.")
    assert_equal(len(found), len(wanted), "How many gradients, for two inputs.")


def test_chains(walked_back, numbers, cotangent, rng):
    """One operation after the other, down to the leaves."""
    for steps in (1, 2, 3, 5):
        kinds = [draw_one(rng, ["sigmoid", "exp", "norm", "index", "slice", "view"])]
        kinds += [draw_one(rng, ["sigmoid", "exp", "norm"]) for _ in range(steps - 1)]
        recipe = [(kind, LEAVES + at - 1 if at else 0) for at, kind in enumerate(kinds)]
        compare(walked_back, recipe, numbers, cotangent, [0])
    compare(walked_back, [("mul", 0, 2), ("matmul", 4, 1)], numbers, cotangent, [0, 1])


@points(4)
def test_roads_that_meet(walked_back, numbers, cotangent, rng):
    """Results that are used more than once: a node waits for all its gradients and runs with their sum."""
    compare(walked_back, [("double", 0)], numbers, cotangent, [0])
    # two branches that meet again, the one of them by two edges, on either side of the sum
    for meet in (("add", 5, 6), ("add", 6, 5)):
        branches = [("exp", 0), ("sigmoid", 4), ("mul", 4, 4), meet]
        compare(walked_back, branches, numbers, cotangent, [0])
    # branches of different length
    for meet in (("add", 4, 6), ("add", 6, 4)):
        compare(walked_back, [("exp", 0), ("exp", 4), ("exp", 5), meet], numbers, cotangent, [0])
    # the same tensor arrives on two roads, of which one adds to it
    recipe = [("add", 0, 1), ("double", 4), ("add", 5, 4), ("add", 6, 0), ("double", 7)]
    compare(walked_back, recipe, numbers, cotangent, [0, 1])
    for steps in (3, 5, 7, 7, 7, 7):
        recipe = random_recipe(rng, ["mul", "add", "double", "sum", "matmul"], steps)
        compare(walked_back, recipe, numbers, cotangent, [0, 1, 3])


def test_several_results(walked_back, numbers, cotangent, rng):
    """Nodes with several results, of which some or all were used; edges that carry `None` count."""
    for kind in ("row", "one_of", "spread", "both", "chunk", "halves", "sort", "max"):
        compare(walked_back, [("exp", 0), (kind, 4)], numbers, cotangent, [0])
    # nothing comes back to `h2` from `h3`, and its node has to run all the same
    for meet in (("add", 6, 5), ("add", 5, 6)):
        recipe = [("exp", 0), ("exp", 1), ("first_of", 4, 5), meet]
        compare(walked_back, recipe, numbers, cotangent, [0, 1])
    compare(walked_back, [("exp", 1), ("first_of", 0, 4)], numbers, cotangent, [0, 1])
    for _ in range(4):
        kinds = ["one_of", "both", "spread", "halves", "mul", "chunk"]
        compare(walked_back, random_recipe(rng, kinds, 4), numbers, cotangent, [0, 1, 3])


def test_any_operation(walked_back, numbers, cotangent, rng):
    """Broadcasting, writes in place, other dtypes on the way."""
    for kind in ("column", "write", "into", "where"):
        compare(walked_back, [(kind, 0, 1), ("mul", 4, 0)], numbers, cotangent, [0, 1])
        compare(walked_back, [("sigmoid", 0), (kind, 2, 4)], numbers, cotangent, [0])
    compare(walked_back, [("into", 0, 1), ("add", 4, 4)], numbers, cotangent, [0, 1])
    for meet in (("mul", 4, 4), ("mul", 5, 4)):
        compare(walked_back, [("late", 0), ("sigmoid", 4), meet], numbers, cotangent, [0, 4])
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
    # two results of one node
    results = [("unbind", 0), ("zeroth", 4), ("third", 4)]
    compare(walked_back, [*results, ("mul", 5, 6)], numbers, cotangent, [5, 6, 0])
    compare(walked_back, results, numbers, cotangent, [5, 6, 0])
    compare(walked_back, [], numbers[:1], cotangent, [0])  # the output is a leaf


def test_deep(walked_back, numbers, cotangent):
    """1,000 nodes in a row, with two roads from each to the next."""
    deep = [("double", 0), *[("double", LEAVES + step) for step in range(999)]]
    got = walked_back.ask(deep, numbers, cotangent, [0]).value["gradients"]
    program = (
        "a = h = torch.rand(4, 4, requires_grad=True)\n"
        "for _ in range(1000):\n    h = h + h\n"
        "gradients(h, torch.rand_like(h), [a])"
    )
    with about(("program", program), of="The gradient of `a`: "):
        assert_close(
            got[0], cotangent * 2.0**1000, rtol=0, atol=0, because="powers of two are exact"
        )


def test_leaves_no_trace(walked_back, walked_with_cotangent, numbers, cotangent, rng):
    """No `.grad` and no graph is changed, a second call gives the same; results require no grad."""
    for kinds in (["mul", "sigmoid", "add"], ["double", "both", "exp"]):
        recipe = random_recipe(rng, kinds, 5)
        got = compare(walked_back, recipe, numbers, cotangent, [0, LEAVES])
        assert_holds(got["untouched"], "A leaf's .grad was changed.")
        for first, second in zip(got["gradients"], got["again"] or [], strict=True):
            with about(of="The same call once more, on the same graph: "):
                close(second, first)
            flags = (facts(first).requires_grad, facts(second).requires_grad)
            assert_equal(flags, (False, False), "Whether a gradient requires grad.")
    flags = walked_with_cotangent.ask(numbers, cotangent).value
    program = (
        "a, cotangent = torch.rand(2, 4, 4).unbind()\n"
        "h1 = a.requires_grad_() * 2\n"
        "gradients(h1, cotangent.requires_grad_(), [a, h1])"
    )
    with about(("program", program)):
        wrong = [name for name, flag in flags.items() if flag]
        assert_equal(wrong, [], "The inputs whose gradient requires grad.")
