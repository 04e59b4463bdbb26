"""Checks of `recompiles`: sequences of calls in which this and that varies."""

import pytest

from grader import Mismatch, about, assert_equal, compared, gate, points, python_random
from grader.ch07_compile.guard_rules import PLAIN, predicted, random_calls

SCALES = [0.5, 2.0, 1.0, 0.0, -3.0]


@pytest.fixture
def random(rng):
    return python_random(rng)


def of_shapes(*shapes, **facts):
    return [{**PLAIN, **facts, "shape": list(shape)} for shape in shapes]


def of_scales(*scales, **facts):
    return [{**PLAIN, **facts, "scale": scale} for scale in scales]


def compare(recompilations, sequences, dynamic=(None, False)):
    """Compare sequence by sequence; say at which call the first difference is."""
    asked = [(calls, choice) for calls in sequences for choice in dynamic]
    found = recompilations.ask([calls for calls, _ in asked], [one for _, one in asked]).value
    for (calls, choice), got in zip(asked, found, strict=True):
        expected = predicted(calls, choice)
        if not isinstance(got, list) or len(got) != len(expected):
            with about(("on", as_code(calls, choice))):
                assert_equal(got, expected, "Expected a list with one bool for each call.")
        compared(got)
        wrong = [at for at, want in enumerate(expected) if got[at] != want]
        if wrong:
            last = wrong[0] + 1
            rows = ("on", as_code(calls[:last], choice)), ("expected", repr(expected[:last]))
            what = f"Call {last} {'compiles' if expected[wrong[0]] else 'does not compile'}."
            raise Mismatch(what, (*rows, ("got", repr(got[:last]))))


def as_code(calls, choice):
    """Return a call of `recompiles` as text to paste; what all of its calls share stands once."""
    shared = {key: value for key, value in calls[0].items() if all(c[key] == value for c in calls)}
    own = [{key: value for key, value in call.items() if key not in shared} for call in calls]
    lines = "\n".join(f"    same | {one!r}," for one in own)
    return f"same = {shared!r}\nrecompiles([\n{lines}\n], {choice})"


@gate
def test_a_list_of_bools(recompilations):
    """Returns a list with one `bool` for each call."""
    got = recompilations.ask([of_shapes((3, 4), (3, 4), (5, 4)), []], [None, False]).value
    if not isinstance(got[0], list) or [type(one) for one in got[0]] != [bool] * 3:
        raise Mismatch("Expected a list of three bools.", (("got", repr(got[0])),))
    assert_equal(got[1], [], "The answer for no calls.")


def test_facts(recompilations, random):
    """dtype, requires_grad, grad mode and flag: each change compiles, a return does not."""
    sequences = [
        random_calls(random, 6, [fact]) for fact in PLAIN if fact not in ("shape", "scale")
    ]
    every = ["dtype", "requires_grad", "grad_mode", "flag"]
    sequences += [random_calls(random, 7, every) for _ in range(20)]
    compare(recompilations, sequences)


def test_static(recompilations, random):
    """With `dynamic=False` each size and each scale has a graph of its own."""
    sequences = [of_shapes((3, 4), (4, 3), (3, 4), (4, 4)), of_scales(0.5, 1.0, 0.5, 2.0)]
    sequences += [random_calls(random, 8, [], [0, 1, 2, 3], SCALES[:2]) for _ in range(10)]
    compare(recompilations, sequences, [False])


@points(4)
def test_sizes(recompilations, random):
    """Rows and columns become dynamic, each for itself."""
    sequences = [
        of_shapes((3, 4), (5, 4), (9, 4), (4, 4), (9, 5), (2, 8), (3, 4)),
        of_shapes((3, 3), (3, 5), (4, 4), (7, 2)),
        of_shapes((2, 6), (4, 8), (9, 9), (2, 2)),
    ]
    sequences += [random_calls(random, 8, [], [2, 3, 4, 5]) for _ in range(20)]
    compare(recompilations, sequences, [None])


def test_zero_and_one(recompilations, random):
    """Sizes 0 and 1 are never dynamic."""
    sequences = [
        of_shapes((1, 4), (3, 4), (5, 4), (1, 4), (0, 4), (0, 4)),
        of_shapes((3, 4), (5, 4), (1, 4), (1, 6), (1, 7), (8, 8), (0, 1), (1, 0), (2, 2)),
        of_shapes((3, 1), (2, 1), (2, 0), (4, 1), (2, 2)),
    ]
    sequences += [random_calls(random, 8, [], [0, 1, 2, 3]) for _ in range(20)]
    compare(recompilations, sequences, [None])


def test_scales(recompilations, random):
    """A scale becomes dynamic, and then takes any float, 0.0 and 1.0 too."""
    sequences = [of_scales(0.5, 0.5, 2.0, 1.0, 0.0, -3.0), of_scales(1.0, 0.0, 1.0, 0.5)]
    sequences += [random_calls(random, 7, [], [3], SCALES) for _ in range(5)]
    sequences += [random_calls(random, 9, [], [3, 1, 2], SCALES[:3]) for _ in range(20)]
    compare(recompilations, sequences, [None])


def test_learned_for_all(recompilations, random):
    """What varied once is dynamic in every later graph, whatever else that graph is for."""
    sequences = [
        [*of_shapes((3, 4)), *of_shapes((5, 4), (7, 4), dtype="float64"), *of_shapes((9, 4))],
        [*of_scales(0.5, 2.0), *of_scales(3.0, 0.0, flag=False)],
    ]
    sequences += [
        random_calls(random, 9, [fact], [2, 3, 1], SCALES[:2]) for fact in ("dtype", "flag")
    ]
    facts = ["dtype", "requires_grad", "grad_mode"]
    sequences += [random_calls(random, 10, facts[: 1 + i % 3], [2, 3, 5]) for i in range(20)]
    compare(recompilations, sequences, [None])


def test_limit(recompilations, random):
    """After the eighth graph nothing compiles any more; old graphs go on."""
    many = of_shapes(*((n, 4) for n in range(2, 14)))
    sequences = [many, [*many[:8], *many[:2], *many[10:], *many[:8]]]
    compare(recompilations, sequences, [False])
    every = ["dtype", "requires_grad", "grad_mode", "flag"]
    compare(recompilations, [random_calls(random, 30, every, [2, 3, 1]) for _ in range(10)])
