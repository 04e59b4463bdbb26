"""One verdict explained from kept evidence, and the debugger in a failing check."""

import io
import json

import pytest

from grader.course.course import Course, CourseError
from grader.instructor.debugger import CheckDebugger
from grader.instructor.explain import explain
from grader.instructor.explain_text import explanation_text
from tests.scale.course import CHAPTER, DOUBLE, PROBES


@pytest.fixture(scope="module")
def chapter(graded):
    return Course(graded.root).chapter(CHAPTER)


@pytest.fixture
def restored(graded):
    yield graded
    graded.checks("double", DOUBLE)
    (graded.root / "grader" / CHAPTER / "probes/doubling.py").write_text(PROBES)


def test_each_check_with_question_answer_and_comparison(chapter):
    found = explain(chapter, "bea", "double")
    assert found.seed == 7 and found.tier.startswith("1") and found.seconds is not None
    values, negative = found.steps
    assert (values.given, values.now, negative.given, negative.now) == (
        "passed", "passed", "failed", "failed",
    )  # fmt: skip
    (asked,) = negative.asked
    assert asked.probe == "doubled" and asked.inputs["x"].startswith("tensor([-")
    assert asked.answer.startswith("tensor([") and "int64, shape=(5,)" in asked.answer
    assert {"expected", "got"} <= set(dict(negative.expected))
    text = explanation_text(found)
    assert "✗ test_negative: failed (0 of 2 points)" in text
    assert "asked     doubled(x=tensor([-" in text


def test_the_command_and_its_json(graded):
    said = graded.run("undertorch", "explain", "carl", "double")
    assert "known mistake: squares" in said and "You squared it." in said
    data = json.loads(graded.run("undertorch", "explain", "carl", "double", "--json"))
    assert data["verdict"]["mistake"] == "squares"
    assert data["steps"][0]["asked"][0]["probe"] == "doubled"


def test_the_wrong_line_of_a_kept_answer(graded):
    said = graded.run("undertorch", "explain", "carl", "double", "--locate", "--seconds=600")
    assert "One change in line 2 makes every check pass." in said
    assert "+     return x + x" in said or "+     return x * 2" in said


def test_what_ended_the_process_is_the_answer(chapter):
    found = explain(chapter, "gus", "total")
    assert not found.steps and "process" in found.trouble.lower()
    looped = explain(chapter, "emil", "double")
    assert "1 s of processor time" in looped.steps[0].asked[0].answer


def test_no_evidence_says_why(chapter):
    with pytest.raises(CourseError, match="evidence of: ada, bea"):
        explain(chapter, "nobody", "double")
    with pytest.raises(CourseError, match="no exercise 'triple'"):
        explain(chapter, "ada", "triple")
    assert "No code was run (not attempted)" in explain(chapter, "fred", "double").trouble


def test_todays_checks_may_judge_otherwise(chapter, restored):
    restored.checks("double", DOUBLE.replace("-x * 2)", "x * 2)"))
    found = explain(chapter, "bea", "double")
    assert (found.steps[1].given, found.steps[1].now) == ("failed", "passed")
    assert "undertorch regrade" in explanation_text(found)


def test_what_was_never_asked_does_not_hide_the_rest(chapter, restored):
    restored.checks("double", DOUBLE.replace("doubled.value, x * 2", "doubled.ask(x + 1).value, x"))
    found = explain(chapter, "bea", "double")
    assert "inputs that it was not asked for then" in found.trouble
    assert found.steps[1].asked[0].answer.startswith("tensor(")


def test_a_changed_notebook_is_not_replayed(chapter, graded):
    path = graded.autograded("ada")
    text = path.read_text()
    path.chmod(0o644)
    path.write_text(text.replace("return x * 2", "return x * 3"))
    try:
        assert "not the one that was graded" in explain(chapter, "ada", "double").trouble
    finally:
        path.write_text(text)


def debug(chapter, student, commands):
    out = io.StringIO()
    debugger = CheckDebugger(chapter.checks("double"), io.StringIO(commands), out)
    explain(chapter, student, "double", debugger)
    return debugger, out.getvalue()


def test_the_debugger_stops_in_the_check_with_its_evidence(chapter):
    debugger, said = debug(chapter, "bea", "p asked[-1].value\np x.shape\nq\n")
    assert debugger.stops == 1
    assert "test_double.py" in said and "assert_same_bits(doubled.ask(-x).value" in said
    assert "tensor([" in said and "torch.Size([5])" in said


def test_c_goes_on_q_ends_and_looking_around_harms_nothing(chapter):
    other = "p doubled.ask(x + 1)\nc\n"
    debugger, said = debug(chapter, "carl", other + "q\n")
    assert debugger.stops == 2 and "not asked for then" in said
    assert debug(chapter, "carl", "q\n")[0].stops == 1
    assert debug(chapter, "carl", "")[0].stops == 1  # nobody there


def test_nothing_to_stop_at(graded):
    assert "No check failed." in graded.run("undertorch", "explain", "ada", "double", "--replay")
    said = graded.run("undertorch", "explain", "ada", "double", "--replay", "--json", status=2)
    assert "take one of them" in said
