"""`undertorch tried`: what the graders say of answers that somebody tried."""

import json
from dataclasses import asdict

import pytest
from typer.testing import CliRunner

from grader.commands.main import app
from grader.course.course import Course
from grader.course.reference import reference_answer
from grader.course.tried import Kind, Tried
from grader.proving.tried import Graded, grade_tried, missed, required, tally, task_of
from tests import ROOT

CHAPTER = Course(ROOT).chapter("ch01_formats")
EXERCISE = CHAPTER.exercise("decode")
RIGHT = reference_answer(CHAPTER, EXERCISE)
LEADING_ONE = """import math

def decode(pattern, exponent_bits, mantissa_bits):
    mantissa = pattern & ((1 << mantissa_bits) - 1)
    exponent = (pattern >> mantissa_bits) & ((1 << exponent_bits) - 1)
    sign = -1.0 if pattern >> (mantissa_bits + exponent_bits) else 1.0
    bias = (1 << (exponent_bits - 1)) - 1
    if exponent == (1 << exponent_bits) - 1:
        return math.nan if mantissa else sign * math.inf
    return sign * math.ldexp(mantissa, max(exponent, 1) - bias - mantissa_bits)
"""
ANSWERS = (
    ("right", "reference", RIGHT),
    ("wrong", "no_leading_one", LEADING_ONE),
    ("wrong", "passes", RIGHT),
    ("cheat", "noted", f"import subprocess\n{RIGHT}"),
    ("cheat", "silent", RIGHT),
    ("cheat", "denied", "def decode(*args):\n    return torch.tensor(args).view(-1)\n"),
)


def tried(kind, name, source):
    return Tried(CHAPTER.id, EXERCISE.id, Kind(kind), name, "why", source)


def graded(kind, points, explanation="", review=""):
    return Graded(tried(kind, "one", ""), "failed", points, 4.0, "", explanation, review)


@pytest.mark.parametrize("boxed", [False, True], ids=["fork", "box"])
def test_answers_are_graded_and_counted(boxed):
    task = task_of(CHAPTER, EXERCISE, [tried(*answer) for answer in ANSWERS])
    ((ended, found),) = grade_tried([task], seed=0, jobs=1, boxed=boxed)
    assert ended is task
    assert [one.full for one in found] == [True, False, True, True, True, False]
    assert found[1].mistake == "no_leading_one" and found[1].explanation
    assert "import subprocess" in found[3].review
    assert tally(found).to_data() == {
        "right": {"n": 1, "accepted": 1},
        "wrong": {"n": 2, "rejected": 1, "explained": 1},
        "cheat": {"n": 3, "denied": 1, "silent": 1},
    }


def test_a_task_takes_the_answers_to_its_exercise():
    other = Tried(CHAPTER.id, "spacing", Kind.RIGHT, "x", "why", "")
    assert task_of(CHAPTER, EXERCISE, [tried("right", "a", ""), other]).answers == (
        tried("right", "a", ""),
    )


def test_what_is_required_is_met_or_said():
    counted = tally(
        [graded("right", 4), graded("wrong", 4), graded("wrong", 0), graded("cheat", 4)]
    )
    assert missed(counted, required("right=1,wrong=0.5,explained=0,silent=1")) == []
    assert missed(counted, required("wrong=0.6,cheat=0.97,explained=0.85,silent=0")) == [
        "wrong is 1 of 2, 0.500; 0.6 is required",
        "cheat is 0 of 1, 0.000; 0.97 is required",
        "explained is 0 of 1, 0.000; 0.85 is required",
        "silent is 1, at most 0 is required",
    ]


def test_a_share_of_nothing_is_met():
    assert missed(tally([]), required("right=1,wrong=1,cheat=1,explained=1,silent=0")) == []


def test_a_note_for_review_breaks_the_silence():
    assert tally([graded("cheat", 4, review="A line.")]).silent == 0


@pytest.mark.parametrize("text", ["some=1", "right", "right=much", "right=1.5", "silent=-1"])
def test_a_requirement_that_says_nothing(text):
    with pytest.raises(ValueError, match=r"requires nothing|no number|between 0 and 1"):
        required(text)


def run(*words):
    return CliRunner().invoke(app, ["tried", *map(str, words)])


def write(path, answers):
    path.write_text("".join(json.dumps(asdict(tried(*answer))) + "\n" for answer in answers))
    return path


def test_the_command_prints_json_alone(tmp_path):
    first = write(tmp_path / "first.jsonl", ANSWERS[:1])
    second = write(tmp_path / "second.jsonl", ANSWERS[1:2])
    ended = run(
        "--fork", "--json", "--file", first, "--file", second, "--require", "right=1,wrong=1"
    )
    data = json.loads(ended.stdout)
    assert ended.exit_code == 0 and "decode: 2 graded" in ended.stderr
    assert data["right"] == {"n": 1, "accepted": 1}
    assert [one["name"] for one in data["answers"]] == ["reference", "no_leading_one"]
    assert {"outcome", "points", "max", "mistake", "explanation", "review"} <= set(
        data["answers"][0]
    )


def test_the_command_prints_a_table_and_what_is_missed(tmp_path):
    ended = run(
        "--fork", "--file", write(tmp_path / "a.jsonl", ANSWERS[2:3]), "--require", "wrong=1"
    )
    assert ended.exit_code == 1
    assert "missed: wrong is 0 of 1" in ended.stderr
    assert "wrong passes is passed, 4 of 4" in ended.stderr
    assert [line.split() for line in ended.stdout.splitlines()][1:] == [
        ["decode", "-", "0", "of", "1", "-", "-", "0"],
        ["all", "-", "0", "of", "1", "-", "-", "0"],
        ["Explained", "by", "a", "relation", "alone:", "0."],
    ]


def test_processes_take_parts(tmp_path):
    lines = [
        json.loads(line)
        for line in write(tmp_path / "a.jsonl", ANSWERS[:1]).read_text().split("\n")[:1]
    ]
    lines.append({**lines[0], "exercise": "format_limits", "kind": "wrong"})
    path = tmp_path / "two.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    ended = run("--fork", "--jobs", 2, "--json", "--file", path)
    assert ended.exit_code == 0, ended.exception
    assert [one["exercise"] for one in json.loads(ended.stdout)["answers"]] == [
        "decode",
        "format_limits",
    ]


def test_a_bad_file_or_requirement_is_refused(tmp_path):
    path = tmp_path / "bad.jsonl"
    path.write_text("{}\n")
    for words, said in [
        (["--file", path], "the key 'chapter'"),
        (["--require", "x=1"], "--require"),
    ]:
        ended = run(*words)
        assert ended.exit_code and said in str(ended.exception)
