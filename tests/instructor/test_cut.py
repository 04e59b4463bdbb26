"""A notebook that is cut down to some exercises still runs, and gives away no answer of theirs."""

import pytest

from grader.course.cells import source_of
from grader.course.course import Course, CourseError
from grader.instructor.cut import cut
from grader.submission.names import needs, provides
from tests import ROOT

COURSE = Course(ROOT)


def sources(parts):
    return {cell["id"]: source_of(cell) for cell in parts.notebook["cells"]}


def test_all_exercises_are_the_whole_notebook():
    chapter = COURSE.chapter("ch01_formats")
    whole = cut(chapter, {exercise.id: exercise.points for exercise in chapter.exercises})
    text = {cell["id"]: source_of(cell) for cell in chapter.notebook["cells"]}
    assert list(sources(whole)) == list(text)
    assert not whole.given and not whole.missing


def test_a_weight_is_in_the_card_and_both_cells():
    parts = cut(COURSE.chapter("ch01_formats"), {"encode_fp8": 2.5})
    cells = {cell["id"]: cell for cell in parts.notebook["cells"]}
    assert cells["encode_fp8-grade"]["metadata"]["nbgrader"]["points"] == 2.5
    assert cells["encode_fp8"]["metadata"]["undertorch"]["points"] == 2.5
    assert "· 2.5 points ·" in cells["encode_fp8-card"]["source"]
    assert parts.missing == {"encode_fp8": ("decode", "round_to_bf16")}
    assert "decode" not in cells and "the-family-1" in cells


def test_an_answer_that_is_called_is_given():
    """`reshape` calls `view_stride`, which is not chosen."""
    parts = cut(COURSE.chapter("ch02_strides"), {"reshape": 7})
    given = sources(parts)["view_stride"]
    assert parts.given == {"view_stride": "reshape"}
    assert given.startswith("# Given: the course's answer to view_stride")
    compile(given, "given", "exec")
    assert "SOLUTION" not in given and "BEGIN SOLUTION" in sources(parts)["reshape"]
    both = cut(COURSE.chapter("ch02_strides"), {"reshape": 7, "view_stride": 9})
    assert not both.given


def test_text_between_exercises_gives_no_answer_away():
    """A part of chapter 7 calls `partition`; it goes, unless that is chosen."""
    chapter = COURSE.chapter("ch07_compile")
    assert "a-budget-of-memory-2" not in sources(cut(chapter, {"share": 7}))
    kept = cut(chapter, {"partition": 8, "min_cut": 7})
    assert "a-budget-of-memory-2" in sources(kept) and not kept.given


@pytest.mark.parametrize(
    ("chapter", "exercise"), [("ch01_formats", "matmul_bf16x3"), ("ch02_strides", "pack_views")]
)
def test_no_name_is_lost(chapter, exercise):
    found = COURSE.chapter(chapter)
    whole = cut(found, {each.id: 1 for each in found.exercises})
    everywhere = {name for text in sources(whole).values() for name in _provided(text)}
    bound = set()
    for cell in cut(found, {exercise: 1}).notebook["cells"]:
        if cell["cell_type"] == "code":
            assert needs(source_of(cell)) & everywhere <= bound
            bound |= provides(source_of(cell))


def _provided(text):
    try:
        return provides(text)
    except ValueError:
        return ()


def test_an_unknown_exercise_is_said():
    with pytest.raises(CourseError, match="ch01_formats has no exercise 'decod'"):
        cut(COURSE.chapter("ch01_formats"), {"decod": 1})


@pytest.mark.parametrize(
    ("source", "needed", "provided"),
    [
        ("x = y", {"y"}, {"x"}),
        ("x = 1\nprint(x)", {"print"}, {"x"}),
        ("for x in y:\n    x", {"y"}, {"x"}),
        ("x += 1", {"x"}, {"x"}),
        ("d['a'] = 1", {"d"}, {"d"}),
        ("m.a.b = 1", {"m"}, {"m"}),
        ("def f(a):\n    return a + b", {"b"}, {"f"}),
        ("def f():\n    return b\nb = 1", set(), {"f", "b"}),
        ("class A:\n    x = 1\n    y = x", {"__name__"}, {"A"}),
        ("print([x for x in y])", {"print", "y"}, set()),
        ("import a.b as c", set(), {"c"}),
        ("%time x = y", {"get_ipython"}, set()),
        ("x =", set(), set()),
    ],
)
def test_needs(source, needed, provided):
    assert needs(source) - {"__module__"} == needed
    assert provides(source) == provided
