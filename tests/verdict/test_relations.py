"""What is said of a wrong answer is true of all that came, and of little else."""

import pytest
import torch

from grader.verdict.checks import Check, CheckRun
from grader.verdict.compare import Comparison, Mismatch
from grader.verdict.interview import Raised, StudentRaised
from grader.verdict.relations import relation_of

CHECK = Check("test_it", "It holds.", 1.0)
GRID = torch.arange(12.0).reshape(3, 4) + 1
SQUARE = torch.tensor([[1.0, 2, 3], [4, 5, 6], [7, 8, 10]])
THIRDS = torch.tensor([1, 2, 5, 7], dtype=torch.float64) / 3
FINE = torch.tensor([1.001, 2.003, -3.007, 4.013])


def compared(expected, got, given=None, right=None, of=None, tolerance=(0.0, 0.0)):
    if right is None:
        right = False
    kind = "close" if any(tolerance) else "bits" if isinstance(got, torch.Tensor) else "equal"
    return Comparison(kind, got, tolerance, expected, right, of, given)


def run(*comparisons, error="differs"):
    wrong = any(one.passed is False for one in comparisons)
    failed = Mismatch(error) if wrong and isinstance(error, str) else None
    until = next((n + 1 for n, one in enumerate(comparisons) if one.passed is False), None)
    return CheckRun(CHECK, failed, comparisons[:until], comparisons)


def said(*comparisons):
    return relation_of([run(*comparisons)])


@pytest.mark.parametrize(
    ("expected", "got", "words"),
    [
        (SQUARE, SQUARE.mT, "What came is the transpose of what was expected."),
        (GRID, GRID.mT, "What came is the transpose of what was expected."),
        (GRID, -GRID, "What came is the negative of what was expected."),
        (GRID, 4 * GRID, "What came is 4 times what was expected."),
        (GRID, GRID / 2, "What came is one half of what was expected."),
        (GRID, GRID + 1, "What came is 1 more than what was expected."),
        (GRID[0], GRID[0].flip(0), "What came is what was expected, reversed."),
        (GRID, GRID.flip(1), "What came is what was expected, reversed along dimension 1."),
        (
            GRID,
            GRID.roll(1, 1),
            "What came is what was expected, one place later along dimension 1.",
        ),
        (FINE, FINE.bfloat16().float(), "What came is what was expected, rounded to bfloat16."),
        (THIRDS, THIRDS.float().double(), "rounded to float32."),
        (GRID, torch.zeros(3, 4), "Nothing but zeros came."),
        (GRID, GRID[[1, 0, 2]], "The right numbers came, in the wrong order."),
        (
            torch.tensor([1.0, 0, 0]),
            torch.tensor([1.0, -0.0, 0]),
            "The numbers are right; zeros have the wrong sign.",
        ),
        ([3, 1, 2], [2, 1, 3], "What came is what was expected, reversed."),
        (
            torch.arange(24.0).reshape(2, 3, 4).transpose(1, 2),
            torch.arange(24.0).reshape(2, 4, 3),
            "`expected.permute(0, 2, 1)`, read row by row into the shape of the result.",
        ),
        (["a", "b", "c"], ["c", "b", "a"], "What came is what was expected, last first."),
        (["a", "b", "c"], ["b", "a", "c"], "The right items came, in the wrong order."),
        (["a", "b", "c"], ["a", "a", "b", "b", "c", "c"], "Everything came 2 times."),
        ([5, 6, 7, 8], [5, 6, 7], "What came is what was expected, but the last one is missing."),
        ([5, 6, 7, 8], [5, 7, 8], "Some items are missing; those that came are right."),
        (
            {"a": 1, "b": 2, "c": 3, "d": 4},
            {"a": 1, "b": 2, "c": 3},
            "Some entries are missing; the others are right.",
        ),
        (((2, 3), ("x", (12, 4, 1))), ((2, 3), ("x", (1, 4, 12))), "reversed."),
    ],
)
def test_a_relation_is_found(expected, got, words):
    assert said(compared(expected, got)).endswith(words)


@pytest.mark.parametrize(
    ("expected", "got"),
    [
        (torch.zeros(4), torch.ones(4)),
        (torch.tensor(3.0), torch.tensor(6.0)),
        (torch.tensor([2.0, 2, 2]), torch.tensor([4.0, 4, 4])),
        (torch.ones(3, 3), torch.full((3, 3), -1.0)),
        (SQUARE, SQUARE.mT + torch.eye(3)),
        ([1, 2], [2, 1]),
        (GRID, torch.full((3, 4), float("nan"))),
        (torch.full((3,), float("inf")), torch.zeros(3)),
        (True, False),
        ("a", "b"),
        (torch.zeros(0), torch.zeros(0, 1)),
        (SQUARE.to(torch.complex64), SQUARE.mT.to(torch.complex64)),
        (torch.tensor([2**62, 5, 7]), torch.tensor([2**62 + 1, 5, 7])),
    ],
)
def test_dull_and_other_values_say_nothing(expected, got):
    assert said(compared(expected, got)) == ""


def test_it_holds_for_all_that_failed_or_is_not_said():
    turned = compared(SQUARE, SQUARE.mT)
    symmetric = compared(torch.ones(2, 2), torch.ones(2, 2).mT * 1.0, right=True)
    assert said(turned, symmetric)
    assert said(turned, compared(GRID, GRID + 0.5)) == ""
    assert relation_of([run(turned), run(compared(GRID, GRID + 0.5))]) == ""
    raised = StudentRaised(Raised("ValueError", ("ValueError",), "no", ()))
    assert relation_of([run(turned), CheckRun(CHECK, raised, (), ())]) == ""
    unrecorded = CheckRun(CHECK, Mismatch("Too many bytes."), (symmetric,), (symmetric,))
    assert relation_of([run(turned), unrecorded]) == ""


def test_single_numbers_say_something_together():
    assert said(compared(3, 6)) == ""
    assert (
        said(*(compared(n, 2 * n) for n in (3, 5, 7))) == "What came is 2 times what was expected."
    )
    assert said(*(compared(3, 6) for _ in range(5))) == ""


def test_the_input_as_it_was():
    given = {"x": GRID, "n": 3}
    words = "What came is the input `x` as it was."
    assert said(compared(GRID.exp(), GRID, given)) == words


def test_always_the_same():
    words = "Every wrong result is the same, whatever was expected: `'s'`."
    assert said(*(compared(due, "s") for due in ("a", "b", "c"))) == words


def asked(x, right, name="x"):
    return compared(1.0, 1.0 if right else 2.0, {name: x}, right)


def test_inputs_that_alone_are_wrong_are_named():
    full = [asked(torch.arange(n + 2.0), True) for n in range(5)]
    words = "Wrong on the one input where `x` has no elements, right on the 5 others."
    assert said(asked(torch.zeros(0), False), *full) == words
    empty = asked(torch.zeros(0), True)
    negative = [asked(torch.tensor([-1.0, n]), False) for n in range(3)]
    words = "Wrong on all 3 inputs where `x` holds negative numbers, right on the 6 others."
    assert said(*negative, empty, *full) == words
    assert said(asked(torch.arange(9.0), False), *full) == ""


def test_an_error_on_an_empty_input_counts():
    raised = StudentRaised(Raised("IndexError", ("IndexError",), "no", ()))
    full = tuple(asked(torch.arange(n + 2.0), True) for n in range(5))
    empty = CheckRun(CHECK, raised, full, full, {"x": torch.zeros(0)})
    assert relation_of([empty]).startswith("Wrong on the one input where `x` has no elements")
    batch = StudentRaised(Raised("IndexError", ("IndexError",), "no", (), "on one of many"))
    assert relation_of([CheckRun(CHECK, batch, full, full, {"x": torch.zeros(0)})]) == ""


def test_from_a_size_on():
    some = [asked(n, n < 9, "n") for n in (2, 5, 7, 8, 9, 12, 31)]
    assert said(*some) == "Wrong wherever `n` is 9 or more, right up to 8."


def test_cases_of_one_question_have_inputs_of_their_own():
    cases = [(2, 3), (4,), (0, 2), (7, 1, 2), (3, 3), (0,), (5,)]
    due = [False] * len(cases)
    got = [0 in size for size in cases]
    one = Comparison("bits", got, expected=due, given={"sizes": cases})
    run_ = CheckRun(CHECK, Mismatch("2 of 7 answers differ."), (one,), (one,))
    words = "Wrong on all 2 inputs where `sizes` holds a 0, right on the 5 others."
    assert relation_of([run_]) == words


def test_elements_whose_inputs_are_of_a_kind():
    x = torch.tensor([1.0, -2.0, 3.0, -4.0, 5.0, 6.0])
    got = torch.where(x < 0, 7.5, x)
    words = "Wrong wherever the input is a negative number, and nowhere else."
    assert said(compared(x.clone(), got, of=x)) == words


def test_the_end_of_a_dimension():
    got = GRID.clone()
    got[:, -1] += torch.tensor([0.5, 0.25, 3])
    assert said(compared(GRID, got)) == "Only the last place along dimension 1 is wrong."


def test_where_nothing_failed_nothing_is_said():
    assert relation_of([]) == ""
    assert said(compared(GRID, GRID, right=True)) == ""


DTYPES = (torch.bool, torch.uint8, torch.int64, torch.float16, torch.bfloat16, torch.float64)
FEW = (torch.float8_e4m3fn, torch.float8_e5m2, torch.complex64)


@pytest.mark.parametrize("dtype", DTYPES + FEW)
def test_no_value_ends_a_verdict(dtype):
    x = torch.tensor([[3.0, 0, 1], [1, 2, 2], [0, 1, 4]])
    for shape in ((3, 3), (9,), (3, 1, 3)):
        one, other = x.reshape(shape).to(dtype), x.mT.reshape(shape).to(dtype)
        given = {"x": one, "sizes": [1, None, "a", (2, float("nan"))], "k": 10**400}
        relation_of([run(compared(one, other, given))])
        relation_of([run(compared([one, "a"], [other, 3], given))])
        relation_of([run(compared(one, None, given)), run(compared({1: one}, {1: other}))])
    relation_of([run(*(compared(10**n, float("inf"), {"n": 10**n}) for n in range(300, 312)))])


def test_a_size_of_no_dimensions_is_not_called_empty():
    sizes = [(2, 3), (4,), (5, 1), (6, 2), ()]
    said_of = said(
        *(compared(len(size), len(size) + (not size), {"size": size}, bool(size)) for size in sizes)
    )
    assert said_of == "Wrong on the one input where `size` is `()`, right on the 4 others."


def test_a_record_is_no_list():
    expected = ("add", 3, [1, 2], True)
    assert not said(compared(expected, expected[:-1]), compared(expected, (3, "add", [1, 2], True)))
