"""Answers that are alike: what is found, what must not be, and how long a large class takes."""

import json
import random
import time

import pytest

from grader.course.course import Course
from grader.instructor.fingerprint import text_of
from grader.instructor.similar import RARE, StudentAnswer, alike, crowds, ranked
from tests.scale.course import CHAPTER

LOOP = """
def total(x):
    result = 0.0
    for value in x:
        result += float(value)
    return result
"""
RENAMED = '''
def total(numbers):
    """Add them all."""
    acc = 0.0          # starts empty

    for n in numbers:
        acc += float(n)
    return acc
'''
OTHER = "def total(x):\n    return sum(map(float, x.tolist()))\n"


def one(name, source, passed=True, mistake=""):
    return StudentAnswer(name, text_of(source), passed, mistake)


def pairs(attempts, common=frozenset()):
    return {tuple(p.students): p.bits for p in ranked(alike("total", attempts, common))}


def strangers(count, seed=0):
    """Programs that share idiom and nothing else."""
    draw = random.Random(seed)
    words = [f"torch.op_{n}" for n in range(400)]
    for number in range(count):
        lines = [f"    v{k} = {draw.choice(words)}(x, {draw.randrange(10**6)})" for k in range(20)]
        yield one(f"s{number:04}", "def total(x):\n" + "\n".join(lines) + "\n    return x\n")


def test_names_comments_and_layout_do_not_count():
    assert text_of(LOOP).tokens == text_of(RENAMED).tokens
    assert text_of(LOOP).tokens != text_of(OTHER).tokens


def test_what_stays_is_what_was_not_chosen():
    tokens = text_of("def f(x):\n    return x.sum(dim=1) + torch.ones(3)\n").tokens
    assert "torch" in tokens and "sum" in tokens and "3" in tokens and "x" not in tokens


@pytest.mark.parametrize("source", ["def f(:\n  x", "", "\x00", "%%bash\nls", "é = 'ü", "(" * 400])
def test_any_text_can_be_read(source):
    assert text_of(source).runs


def test_a_renamed_copy_stands_out_and_strangers_do_not():
    found = pairs([*strangers(30), one("ann", LOOP), one("bob", RENAMED)])
    assert list(found) == [("ann", "bob")]


def test_the_stub_and_the_reference_do_not_count():
    attempts = [*strangers(30), one("ann", LOOP), one("bob", RENAMED)]
    assert not pairs(attempts, text_of(LOOP).runs)


def test_copied_mistakes_count_more_than_copied_right_answers():
    right = pairs([*strangers(30), one("ann", LOOP), one("bob", LOOP)])
    wrong = pairs([*strangers(30), one("ann", LOOP, False), one("bob", LOOP, False)])
    assert wrong["ann", "bob"] == 2 * right["ann", "bob"]


def test_what_everybody_writes_points_at_nobody():
    attempts = [one(f"s{n}", LOOP) for n in range(RARE + 5)]
    assert not pairs([*attempts, *strangers(30)])
    ((group),) = crowds([*attempts, *strangers(30)])
    assert len(group) == RARE + 5
    assert not crowds(attempts, text_of(LOOP).runs)


def test_the_rarer_the_more():
    two = pairs([*strangers(40), one("ann", LOOP), one("bob", LOOP)])
    many = [one(f"t{n}", LOOP) for n in range(8)]
    ten = pairs([*strangers(32), one("ann", LOOP), one("bob", LOOP), *many])
    assert two["ann", "bob"] > ten["ann", "bob"]


def test_marked_lines_are_those_that_are_shared():
    mine, theirs = "import torch\n\nX = torch.arange(77)\n" + LOOP, LOOP
    (found,) = alike("total", [*strangers(30), one("ann", mine), one("bob", theirs)])
    assert 3 not in found.lines[0] and {6, 7, 8, 9} <= found.lines[0]


def test_the_command_finds_the_copied_answer(graded):
    said = graded.run("undertorch", "similar", CHAPTER, "--out", "out/similar.html")
    assert "A pointer for a person, not a verdict" in said
    assert "carl · dora" in said and "ada · " not in said
    text = (graded.root / "out" / "similar.html").read_text()
    assert "<mark>        acc += float(v)</mark>" in text
    data = json.loads(graded.run("undertorch", "similar", CHAPTER, "--json"))
    assert [pair["students"] for pair in data["pairs"]] == [["carl", "dora"]]


def test_the_page_fits_a_phone_and_asks_nobody(graded, watch):
    graded.run("undertorch", "similar", CHAPTER, "--out", "out/similar.html")
    watch.page.goto((graded.root / "out" / "similar.html").as_uri())
    assert watch.overflow() == 0
    watch.turn_to(390, "dark")
    assert watch.overflow() == 0
    watch.turn_to(1280, "light")


def test_a_large_class_takes_seconds():
    """Of processor time, for one exercise; the bound has room for a slow machine."""
    start = time.process_time()
    attempts = [*strangers(300), one("ann", LOOP), one("bob", RENAMED)]
    assert next(iter(pairs(attempts))) == ("ann", "bob")
    assert time.process_time() - start < 30


def test_graded_class_is_read(graded):
    from grader.instructor.answers_of_class import read_answers_of_class

    answers = read_answers_of_class(Course(graded.root).chapter(CHAPTER), lambda t, what: t)
    assert "fred" not in {a.student for a in answers["double"]}  # not attempted
    assert {a.student for a in answers["double"] if a.mistake == "squares"} == {"carl", "dora"}
