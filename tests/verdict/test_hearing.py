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
from grader.verdict.hearing import LEAST, SECONDS, Opening, Room, _chosen, broken_in
from grader.verdict.interview import Asked

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a second witness needs Linux")


def graded(chapter, exercise, source=None, room=None):
    """Return the verdict on an answer, the reference if it is None; heard again in `room`, if given."""
    chapter = next(one for one in find_course().chapters() if one.id == chapter)
    probes = ready_probes(chapter)
    found = next(one for one in chapter.exercises if one.id == exercise)
    grader = ExerciseGrader(chapter, found, probes)
    attempt = grader.attempt_with(
        public_answer(chapter, exercise) if source is None else dedent(source)
    )
    own = lambda: Fork(probes)  # noqa: E731
    opening = own if room is None else Opening(own, room)
    verdict, replies = grader.interview(attempt, opening, 0, own)
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


COPIES_IN_A_THREAD = """
import threading
def transpose_in_place(x):
    found, (rows, columns) = [], x.shape
    thread = threading.Thread(target=lambda: found.append(x.t().contiguous().flatten()))
    thread.start(), thread.join()
    x.view(-1)[:] = found.pop()
    return x.view(-1).view(columns, rows)
"""


def test_a_copy_in_a_thread():
    noted = graded("ch02_strides", "transpose_in_place", COPIES_IN_A_THREAD).review
    assert "ran where the instruments do not see it" in noted


IN_PLACE = """
def transpose_in_place(x):
    rows, columns = x.shape
    flat = x.view(-1)
    flat[:] = x.t().reshape(-1)
    return flat.view(columns, rows)
"""

KNOWS_THE_SECOND_HEARING = """
def transpose_in_place(x):
    if type(torch._C._profiler._enable_execution_trace_observer).__name__ == "function":
        SAYS
    rows, columns = x.shape
    x.view(-1)[:] = x.t().contiguous().view(-1)
    return x.view(-1).view(columns, rows)
"""


@pytest.mark.parametrize("says", ["raise RuntimeError", "return x"])
def test_whoever_behaves_only_when_asked_again(says):
    noted = graded(
        "ch02_strides", "transpose_in_place", KNOWS_THE_SECOND_HEARING.replace("SAYS", says)
    )
    assert noted.points and "Asked again, the code gave another answer" in noted.review


def test_nobody_tells_whether_the_grader_is_what_it_was():
    source = """
    import torch
    from grader.inside import serve
    serve.tell = lambda before: None
    serve.replaced = lambda before: []
    """
    noted = graded("ch02_strides", "transpose_in_place", dedent(source) + dedent(IN_PLACE)).review
    assert "Nothing told whether what the grader leans on was replaced" in noted


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


@pytest.fixture
def room():
    """Yield a room for chapter 2, and the list of the processes that began in it."""
    probes = ready_probes(next(one for one in find_course().chapters() if one.id == "ch02_strides"))
    begun = []

    def begin():
        begun.append(Fork(probes))
        return begun[-1]

    with Room(begin) as room:
        yield room, begun


def check_full(verdict):
    assert (verdict.points, verdict.review) == (verdict.max_points, "")


def test_the_programs_of_a_submission_are_heard_in_one_process(room):
    room, begun = room
    for exercise in ("reshape", "share_memory", "reshape"):
        check_full(graded("ch02_strides", exercise, room=room))
    assert len(begun) == 1


def test_what_one_program_does_is_no_other_ones_doing(room):
    room, begun = room
    check_full(graded("ch02_strides", "reshape", room=room))
    noted, alone = (
        graded("ch02_strides", "transpose_in_place", COPIES_IN_A_THREAD, place).review
        for place in (room, None)
    )
    # the answer counts the bytes of Python's objects, and with a thread these are others each time
    noted, alone = (
        one.replace(" Asked again, the code gave another answer.", "") for one in (noted, alone)
    )
    assert noted == alone
    assert "ran where the instruments do not see it" in noted
    check_full(graded("ch02_strides", "reshape", room=room))
    assert len(begun) == 2


@pytest.mark.parametrize(
    "spoils",
    [
        "torch.equal = lambda a, b: True",
        "__import__('os')._exit(0)",
        "import threading, time\n"
        "threading.Thread(target=lambda: [torch.ones(1) + 1 for _ in iter(int, 1)], daemon=True).start()",
    ],
)
def test_a_program_that_spoils_the_room_costs_the_next_one_nothing(room, spoils):
    room, _ = room
    load = {"do": "load", "parts": [["spoils", f"import torch\n{spoils}"]], "judged": []}
    room.hear({**load, "off_limits": []}, [], (), 0)
    check_full(graded("ch02_strides", "reshape", room=room))


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
    request = {"probe": probe, "inputs": bytes([number])}
    return Asked(request, {}, seconds, f"{probe}{number}")


def test_each_probe_is_put_again_by_its_quickest_question():
    slow, quick, other = asked("a", 1, 9.0), asked("a", 2, 8.0), asked("b", 3, 1.0)
    assert _chosen([slow, quick, other], 0) == [quick, other]


def test_few_questions_are_put_again_where_they_take_no_time():
    questions = [asked("a", number, 0.0) for number in range(50)]
    assert 1 < len(_chosen(questions, 0)) <= 1 + SECONDS / LEAST


def test_which_other_questions_are_put_again_depends_on_the_seed():
    questions = [asked("a", number, SECONDS / 4) for number in range(20)]
    found = [_chosen(questions, seed) for seed in range(5)]
    assert {len(one) for one in found} <= {4, 5}
    assert len({tuple(one.request["inputs"] for one in each) for each in found}) > 1
