"""Checks of `loop_plan`: the order, the result's strides, the joining, and all of it on random operands."""

from grader import Mismatch, assert_equal, gate, points
from grader.ch09_dispatch.loops import draw_case, is_plain, plan
from grader.ch09_dispatch.simplest import assert_each


def _call(case):
    size, strides = case
    return f"loop_plan({size}, {strides})"


def _parts(got, cases):
    """Return the result's strides, those of sizes of 1 as 0, and the loops: of each case."""
    found = []
    for answer, case in zip(got, cases, strict=True):
        if not (isinstance(answer, tuple | list) and len(answer) == 2):
            raise Mismatch(
                "A pair is asked for: strides and loops.",
                (("call", _call(case)), ("got", repr(answer)[:200])),
            )
        strides, loops = answer
        if isinstance(strides, tuple | list) and len(strides) == len(case[0]):
            strides = tuple(0 if n == 1 else s for n, s in zip(case[0], strides, strict=True))
        found.append((strides, loops))
    return found


def compare_strides(loop_plans, cases):
    """Compare the result's strides with PyTorch's."""
    got = [strides for strides, _ in _parts(loop_plans.ask(cases).value, cases)]
    calls = [f"{_call(case)}[0]" for case in cases]
    assert_each(got, [plan(*case)[0] for case in cases], calls)


def compare_loops(loop_plans, cases):
    """Compare the loops with PyTorch's."""
    got = [loops for _, loops in _parts(loop_plans.ask(cases).value, cases)]
    calls = [f"{_call(case)}[1]" for case in cases]
    assert_each(got, [plan(*case)[1] for case in cases], calls)


def drawn(rng, count, most=3):
    """Return random cases in which it does not matter when dimensions of size 1 are left out."""
    cases = []
    while len(cases) < count:
        case = draw_case(rng, most)
        if is_plain(case):
            cases.append(case)
    return cases


@gate
def test_pairs(loop_plans):
    """Returns strides, and a list of loops."""
    cases = [((2, 3), [(3, 1)]), ((4, 5, 6), [(30, 6, 1), (30, 6, 1)])]
    found = [strides for strides, _ in _parts(loop_plans.ask(cases).value, cases)]
    lengths = [len(strides) if isinstance(strides, tuple | list) else None for strides in found]
    assert_equal(lengths, [2, 3], "One stride for each dimension is asked for.")


def test_keeps_the_order(loop_plans):
    """The result of one operand lies in its order, without its gaps."""
    compare_strides(
        loop_plans,
        [
            ((3, 4), [(4, 1)]), ((3, 4), [(1, 3)]), ((2, 3, 4), [(1, 8, 2)]), ((2, 3, 4), [(4, 8, 1)]),
            ((3, 4), [(16, 2)]), ((3, 4), [(2, 12)]), ((2, 3, 4, 5), [(5, 40, 10, 1)]), ((6,), [(3,)]),
            ((2, 3, 4), [(12, 1, 3)]), ((2, 3, 2, 2), [(1, 8, 4, 2)]), ((3, 4), [(0, 1)]), ((3, 4), [(1, 0)]), ((3, 4), [(0, 0)]),
        ],
    )  # fmt: skip


def test_first_opinion(loop_plans):
    """Of several operands the first that is not repeated in either dimension decides."""
    compare_strides(
        loop_plans,
        [
            ((3, 4), [(1, 3), (4, 1)]), ((3, 4), [(4, 1), (1, 3)]), ((3, 4), [(0, 1), (1, 3)]), ((3, 4), [(0, 1), (4, 1)]),
            ((3, 4), [(1, 0), (1, 3)]), ((3, 4), [(0, 0), (1, 3), (4, 1)]), ((3, 4), [(0, 1), (1, 0)]), ((3, 4), [(1, 0), (0, 1)]),
            ((2, 3, 4), [(0, 1, 3), (12, 4, 1)]), ((2, 3, 4), [(1, 2, 0), (1, 8, 2)]), ((2, 3, 4), [(4, 0, 1), (1, 2, 6)]),
            ((2, 3, 4), [(0, 1, 0), (4, 8, 1)]), ((2, 3), [(0, 1), (0, 1), (1, 2)]),
        ],
    )  # fmt: skip


def test_undecided(loop_plans):
    """Undecided dimensions stay, and the comparison goes on beyond them, with exchanges."""
    compare_strides(
        loop_plans,
        [
            ((2, 4, 3), [(1, 0, 2), (0, 6, 2)]), ((2, 3, 4), [(1, 0, 2), (0, 8, 2)]), ((3, 3, 2, 2), [(2, 0, 1, 0), (0, 2, 0, 6)]),
            ((2, 3, 2, 3, 2), [(6, 0, 0, 2, 1), (0, 4, 1, 0, 2)]), ((2, 3, 4), [(0, 1, 0), (1, 0, 0)]), ((2, 3, 4), [(1, 0, 2), (0, 1, 0)]),
        ],
    )  # fmt: skip


def test_joining(loop_plans):
    """Dimensions join where every operand goes on where the loop within ends, and only there."""
    compare_loops(
        loop_plans,
        [
            ((3, 4), [(4, 1), (4, 1)]), ((3, 4), [(4, 1), (5, 1)]), ((3, 4), [(5, 1), (4, 1)]), ((3, 4), [(8, 2)]),
            ((3, 4), [(1, 3), (1, 3)]), ((3, 4), [(1, 3), (4, 1)]), ((3, 4), [(4, 1), (0, 1)]), ((3, 4), [(4, 1), (0, 0)]),
            ((2, 3, 4), [(12, 4, 1), (0, 4, 1)]), ((2, 3, 4), [(12, 4, 1), (0, 0, 1)]), ((2, 3, 4), [(12, 4, 1), (0, 0, 0)]),
            ((2, 3, 4), [(12, 4, 1), (4, 0, 1)]), ((2, 3, 4), [(24, 4, 1)]), ((2, 3, 4), [(24, 8, 1)]), ((2, 3, 4), [(24, 8, 2), (12, 4, 1)]),
            ((2, 3, 4, 5), [(60, 20, 5, 1), (100, 30, 5, 1)]), ((2, 3, 4, 5), [(60, 20, 5, 1), (60, 20, 10, 2)]),
            ((7,), [(3,)]), ((2, 3, 4), [(1, 2, 6)]), ((2, 3, 4), [(4, 8, 1), (4, 8, 1)]),
            ((3, 3, 3), [(3, 0, 1), (0, 1, 0)]),  # the outermost goes on where the innermost ends
        ],
    )  # fmt: skip


def test_size_one(loop_plans):
    """A dimension of size 1 takes no loop, whatever its strides."""
    cases = [
        ((3, 1, 4), [(4, 4, 1)]), ((3, 1, 4), [(4, 99, 1), (4, 0, 1)]), ((1, 3, 4), [(7, 4, 1)]), ((3, 4, 1), [(4, 1, 1)]),
        ((3, 4, 1), [(8, 2, 5), (8, 2, 1)]), ((2, 1, 1, 3), [(3, 50, 2, 1)]), ((1, 5, 1), [(5, 1, 1), (0, 0, 0)]),
    ]  # fmt: skip
    compare_strides(loop_plans, cases)
    compare_loops(loop_plans, cases)


def test_no_loop(loop_plans):
    """Without a dimension that needs a loop, the list is empty."""
    cases = [((1,), [(1,)]), ((1, 1), [(1, 1), (3, 0)]), ((), [()]), ((), [(), ()])]
    compare_strides(loop_plans, cases)
    compare_loops(loop_plans, cases)


@points(4)
def test_any_operands(loop_plans, rng):
    """400 times one to three operands, permuted, with gaps, and broadcast: strides and loops."""
    cases = drawn(rng, 400)
    compare_strides(loop_plans, cases)
    compare_loops(loop_plans, cases)
