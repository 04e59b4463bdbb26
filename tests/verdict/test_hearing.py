"""A second hearing brings to light what only the second witness sees, and leaves right answers alone."""

import sys
from textwrap import dedent

import pytest

from grader.box.fork import Fork
from grader.building.graders import ready_probes
from grader.course.course import find_course
from grader.course.reference import public_answer
from grader.course.rules import parse_rule
from grader.evidence.record import Seen
from grader.evidence.replay import Replay
from grader.verdict.grading import ExerciseGrader
from grader.verdict.hearing import SECONDS, _chosen, broken_in
from grader.verdict.interview import Asked

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a second witness needs Linux")


def graded(chapter, exercise, source=None):
    """Return the verdict on an answer, the reference if it is None, and its transcript."""
    chapter = next(one for one in find_course().chapters() if one.id == chapter)
    probes = ready_probes(chapter)
    found = next(one for one in chapter.exercises if one.id == exercise)
    grader = ExerciseGrader(chapter, found, probes)
    attempt = grader.attempt_with(
        public_answer(chapter, exercise) if source is None else dedent(source)
    )
    verdict, replies = grader.interview(attempt, lambda: Fork(probes), 0, lambda: Fork(probes))
    again, _ = grader.interview(attempt, lambda: Replay(replies), 0, lambda: Fork(probes))
    assert again == verdict
    return verdict


@pytest.mark.parametrize(
    ("chapter", "exercise"),
    [("ch01_formats", "round_to_bf16"), ("ch02_strides", "transpose_in_place")],
)
def test_the_reference_is_left_alone(chapter, exercise):
    verdict = graded(chapter, exercise)
    assert (verdict.points, verdict.review) == (verdict.max_points, "")


def test_a_copy_in_a_thread():
    source = """
    import threading
    def transpose_in_place(x):
        found, (rows, columns) = [], x.shape
        thread = threading.Thread(target=lambda: found.append(x.t().contiguous().flatten()))
        thread.start(), thread.join()
        x.view(-1)[:] = found.pop()
        return x.view(-1).view(columns, rows)
    """
    assert (
        "ran where the instruments do not see it"
        in graded("ch02_strides", "transpose_in_place", source).review
    )


@pytest.mark.parametrize(
    ("call", "hide"),
    [
        ("with _disable_current_modes(): REDUCE(y)", "pass"),
        (
            "REDUCE(y)",
            "[o._events.clear() for o in gc.get_objects() if type(o).__name__ == 'Collectives']",
        ),
    ],
)
def test_a_collective_that_nobody_is_to_know_of(call, hide):
    source = f"""
    import gc
    from torch.utils._python_dispatch import _disable_current_modes
    REDUCE = vars(dist)['all_' + 'reduce']
    def ring_all_reduce(x):
        y = x.clone(memory_format=torch.contiguous_format)
        {call}
        {hide}
        return y
    """
    assert graded("ch08_ddp", "ring_all_reduce", source).review


def seen(name, *, direct=True, read=(), given=(), number=False):
    return Seen({(name, direct, read, given, number): 1})


@pytest.mark.parametrize(
    ("rule", "call", "broken"),
    [
        ("aten:mm", seen("mm", direct=False), True),
        ("aten:mm", seen("addmm"), False),
        ("torch.mm", seen("mm"), True),
        ("torch.mm", seen("mm", direct=False), False),
        ("torch.Tensor.view", seen("view"), True),
        ("torch.nn.functional.relu", seen("relu"), False),
        ("import:struct", seen("struct"), False),
        ("cast:torch.bfloat16", seen("_to_copy", read=("float32",), given=("bfloat16",)), True),
        ("cast:torch.bfloat16", seen("view", read=("float32",), given=("bfloat16",)), False),
        ("cast:torch.bfloat16", seen("add", read=("bfloat16",), given=("bfloat16",)), False),
        ("cast:torch.bfloat16", seen("zeros_like", read=("float32",), given=("bfloat16",)), False),
        ("cast:torch.bfloat16", seen("fill_", given=("bfloat16",), number=True), True),
        ("cast:torch.bfloat16", seen("fill_", given=("bfloat16",)), False),
    ],
)
def test_a_rule_holds_for_both_witnesses_alike(rule, call, broken):
    assert broken_in(call, [parse_rule(rule)]) == ([parse_rule(rule)] if broken else [])


def asked(probe, number, seconds):
    return Asked({"probe": probe, "inputs": bytes([number])}, seconds)


def test_each_probe_is_put_again_by_its_quickest_question():
    slow, quick, other = asked("a", 1, 9.0), asked("a", 2, 8.0), asked("b", 3, 1.0)
    assert _chosen([slow, quick, other], 0) == [quick, other]


def test_which_other_questions_are_put_again_depends_on_the_seed():
    questions = [asked("a", number, SECONDS / 4) for number in range(20)]
    found = [_chosen(questions, seed) for seed in range(5)]
    assert {len(one) for one in found} <= {4, 5}
    assert len({tuple(one.request["inputs"] for one in each) for each in found}) > 1
