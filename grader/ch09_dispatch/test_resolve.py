"""Checks of `resolve`: binding, what fits which type, and the first that fits."""

import pytest

from grader import about, assert_equal, gate, points, python_random
from grader.ch09_dispatch.overloads import TYPES, Call, choice, random_call


@pytest.fixture
def random(rng):
    return python_random(rng)


def compare(resolved, calls):
    values = [call.values for call in calls]
    got = resolved.ask(
        [call.schemas for call in calls],
        [arguments for arguments, _ in values],
        [keywords for _, keywords in values],
    ).value
    for call, one in zip(calls, got, strict=True):
        raised = [] if isinstance(one, list) else [("raised", one)]
        name = choice(call)
        expected = "raises TypeError" if name is None else f"returns {name!r}"
        with about(*call.rows(), *raised):
            found = "raises TypeError" if raised else f"returns {one[0]!r}"
            assert_equal(found, expected, "The overload that runs.")


def singles(kinds, values):
    """Return a call for each type and value, with a second overload that takes nothing else."""
    return [
        Call([f"pick.first({kind} x) -> ()", f"pick.second({other} x) -> ()"], f"pick({value})")
        for kind, other in kinds
        for value in values
    ]


@gate
def test_one_of_two(resolved):
    """Chooses between a tensor and a string, and returns the overload's name."""
    schemas = ["pick.text(str s) -> ()", "pick.tensor(Tensor x) -> ()"]
    compare(resolved, [Call(schemas, "pick('a')"), Call(schemas, "pick(torch.ones(2))")])


@points(2)
def test_binding(resolved):
    """Values go to arguments by position and by keyword; each gets one, and none is left over."""
    plain = ["pick.one(int x) -> ()", "pick.two(int x, int y) -> ()"]
    later = ["pick.only(int x, *, int y) -> ()", "pick.more(int x, int y=1, *, int z=2) -> ()"]
    calls = [
        *((plain, text) for text in ("pick(1)", "pick(1, 2)", "pick(1, 2, 3)", "pick()")),
        *((plain, text) for text in ("pick(x=1)", "pick(y=2, x=1)", "pick(1, y=2)", "pick(y=2)")),
        *((plain, text) for text in ("pick(1, x=1)", "pick(1, 2, x=1)", "pick(1, n=2)")),
        *((later, text) for text in ("pick(1)", "pick(1, 2)", "pick(1, y=2)", "pick(1, z=2)")),
        *((later, text) for text in ("pick(1, 2, z=3)", "pick(1, y=2, z=3)", "pick(1, 2, 3)")),
        *((later, text) for text in ("pick(1, y='a')", "pick(x=1, y=2)", "pick(1, 2, y=2)")),
        (["pick.two(int x, int y) -> ()", "pick(int x) -> ()"], "pick(1)"),
        (["pick.all(int x=1, str s='a') -> ()", "pick.none() -> ()"], "pick()"),
        (["pick.all(int x, str? s=None) -> ()", "pick.none() -> ()"], "pick()"),
        (["pick.maybe(int? x) -> ()", "pick.none() -> ()"], "pick()"),
    ]
    compare(resolved, [Call(schemas, text) for schemas, text in calls])


def test_first(resolved):
    """Of several that fit, the first one runs, however well another fits."""
    kinds = [("int", "Scalar"), ("int", "int?"), ("int", "bool"), ("Scalar", "float")]
    both = [pair for one, other in kinds for pair in ((one, other), (other, one))]
    tensors = [("Tensor", "Tensor?"), ("Tensor?", "Tensor")]
    calls = singles(both, ["1"]) + singles(tensors, ["torch.ones(2)"])
    compare(resolved, calls + singles([("int", "Tensor"), ("Tensor", "int")], ["torch.ones(1)"]))


@points(3)
def test_numbers(resolved):
    """What fits `int`, `float`, `bool`, `Scalar`, `Tensor`: numbers, tensors of one element, None."""
    kinds = [(kind, "Tensor[]") for kind in ("int", "float", "bool", "Scalar", "Tensor", "str")]
    values = [
        "True",
        "1",
        "1.5",
        "2.0",
        "None",
        "torch.tensor(2.5)",
        "torch.ones(1, 1)",
        "torch.ones(2)",
    ]
    compare(resolved, singles(kinds, [*values, "torch.ones(0)"]))


def test_lists(resolved):
    """What fits a list: items of its type, lists and tuples; one number if it has a length."""
    kinds = [(kind, "str") for kind in TYPES if kind.endswith("]")]
    values = ["1", "True", "1.5", "torch.ones(1)", "[]", "[1]", "(1, 2)", "[1, 2, 3]", "[True]"]
    values += ["[1.5]", "(1, 1.5)", "[torch.ones(2)]", "(torch.ones(2), torch.ones(3))"]
    values += ["[torch.ones(2), 1]", "['a']", "[None]", "torch.ones(2)", "[torch.ones(1)]"]
    compare(resolved, singles(kinds, values))


def test_optional(resolved):
    """`T?` takes None, and what `T` takes; other types than `Tensor` and `bool` take no None."""
    kinds = [(f"{kind}?", "bool") for kind in TYPES] + [(kind, "str?") for kind in TYPES]
    compare(resolved, singles(kinds, ["None", "1", "'a'", "[1]", "torch.ones(2)"]))


def test_mixed(resolved, random):
    """Up to four overloads, and calls of all kinds."""
    calls = sorted((random_call(random) for _ in range(150)), key=lambda call: len(call.schemas))
    compare(resolved, calls)
