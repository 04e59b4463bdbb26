"""What a proof demands beyond the counts that its row keeps."""

from collections import Counter

from grader.box.fork import Fork
from grader.course.answers import Role, read_answers
from grader.course.course import Course
from grader.proving import prove, validate
from grader.verdict import grading
from grader.verdict.hearing import Heard
from grader.verdict.known import PRACTICE_SEED
from tests import ROOT

CHAPTER = Course(ROOT).chapter("ch03_matmul")
EXERCISE = CHAPTER.exercise("matmul_shape")
REASON = "Asked again, the code gave another answer"


def test_right_answers_give_no_reason_to_look_and_marks_are_made_anew(monkeypatch):
    """With a notebook's seed there are marks of an earlier proof, in `known.json`: this one writes them.

    Of a mistake nobody asks whether a person should look: it is not heard again.
    """

    def prepared(*_):
        raise AssertionError("marks of an earlier proof")

    monkeypatch.setattr(grading.ExerciseGrader, "_prepared_diagnosis", prepared)
    monkeypatch.setattr(grading, "hear_again", lambda *_: Heard(trouble={REASON: None}))
    proof = validate.prove(CHAPTER, EXERCISE, PRACTICE_SEED)
    mistakes = {a.name for a in read_answers(CHAPTER, EXERCISE) if a.role is Role.MISTAKE}
    assert proof.marks.keys() == mistakes
    assert len(proof.problems) == 1 + proof.alternates
    assert all(REASON in problem.what for problem in proof.problems)


def test_each_known_answer_is_asked_once(monkeypatch):
    """Mistakes are told apart by what they said when they were judged: nothing asks them again."""
    asked = Counter()

    class Recording(Fork):
        told = b""

        def ask(self, request, watch=False):
            self.told += b"|" + request
            if not watch:
                asked[self.told] += 1
            return super().ask(request, watch)

    monkeypatch.setattr(validate, "Fork", Recording)
    proof = validate.prove(CHAPTER, EXERCISE, PRACTICE_SEED)
    assert not proof.problems
    assert len(asked) > proof.mistakes
    assert set(asked.values()) == {1}


def test_the_chapter_with_the_longest_proof_begins_with_it(monkeypatch):
    lengths = {"round_to_bf16": 3, "round_mantissa": 9, "matmul_shape": 5, "best_order": 7}
    monkeypatch.setattr(prove, "_length", lambda chapter, exercise: lengths.get(exercise.id, 0))
    chapters = [Course(ROOT).chapter("ch03_matmul"), Course(ROOT).chapter("ch01_formats")]
    every = [(chapter, exercise) for chapter in chapters for exercise in chapter.exercises]
    begun = prove._longest_first(every)
    assert {(one.id, exercise.id) for one, exercise in begun} == {
        (one.id, e.id) for one, e in every
    }
    order = [one.id for one, _ in begun]
    first, second = chapters[1], chapters[0]
    assert order == [first.id] * len(first.exercises) + [second.id] * len(second.exercises)
    names = [exercise.id for _, exercise in begun]
    assert names.index("best_order") < names.index("matmul_shape")
    assert names.index("round_mantissa") < names.index("round_to_bf16")
