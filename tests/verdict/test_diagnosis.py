"""A failure is explained by the known mistake that fails alike, and no mistake is run for nothing."""

from grader.box.fork import Fork
from grader.course.answers import Role
from grader.course.course import Course
from grader.evidence.outcome import Outcome
from grader.inside.probe import load_probes
from grader.verdict.grading import Clock, ExerciseGrader
from grader.verdict.interview import Raised, StudentRaised
from grader.verdict.known import PRACTICE_SEED
from grader.verdict.marks import failure_of
from tests import ROOT


def test_mistakes_are_run_as_far_as_they_may_explain():
    chapter = Course(ROOT).chapter("ch01_formats")
    probes = load_probes(chapter.probes)
    grader = ExerciseGrader(chapter, chapter.exercise("spacing"), probes)
    mistakes = [answer for answer in grader.answers if answer.role is Role.MISTAKE]

    def mistake_of(answer):
        attempt = grader.attempt_with(answer.source)
        return grader.grade(attempt, lambda: Fork(probes), 7, lambda: Fork(probes)).mistake

    assert mistake_of(mistakes[0]) == mistakes[0].name
    run = {name: len(runs) for (name, _), runs in grader._known.items()}
    assert set(run) == {answer.name for answer in mistakes}
    assert run[mistakes[0].name] == len(grader.suite.checks) > min(run.values())
    assert [mistake_of(answer) for answer in mistakes] == [answer.name for answer in mistakes]


def nobody():
    raise AssertionError("a known mistake is run")


def test_in_a_notebook_no_mistake_is_run():
    chapter = Course(ROOT).chapter("ch01_formats")
    probes = load_probes(chapter.probes)
    grader = ExerciseGrader(chapter, chapter.exercise("spacing"), probes)
    for answer in grader.answers:
        if answer.role is Role.MISTAKE:
            attempt = grader.attempt_with(answer.source)
            verdict = grader.grade(attempt, lambda: Fork(probes), PRACTICE_SEED, nobody)
            assert verdict.mistake == answer.name


def test_a_search_ends_with_the_clock_and_says_nothing():
    chapter = Course(ROOT).chapter("ch01_formats")
    probes = load_probes(chapter.probes)
    grader = ExerciseGrader(chapter, chapter.exercise("spacing"), probes)
    wrong = next(answer for answer in grader.answers if answer.role is Role.MISTAKE)
    attempt = grader.attempt_with(wrong.source)
    verdict = grader.grade(attempt, lambda: Fork(probes), 7, nobody, Clock(0))
    assert (verdict.outcome, verdict.mistake) == (Outcome.FAILED, "")
    assert grader.grade(attempt, lambda: Fork(probes), 7, lambda: Fork(probes)).mistake


def raised(kind, message, line):
    return Raised(kind, (kind, "Exception"), message, (("f", 1, line),))


def _same_exception(ours, theirs):
    ours, theirs = (failure_of(StudentRaised(one), True) for one in (ours, theirs))
    return ours.same(theirs)


def test_exceptions_explain_each_other_by_what_python_says():
    view, sizes = "shape '[1, 0]' is invalid for input of size 6", "size 5 must match size 2"
    call, own = "x.view(a, b)", "raise RuntimeError('no')"
    ours = raised("RuntimeError", view, call)
    assert _same_exception(ours, raised("RuntimeError", view.replace("6", "24"), "y = x.view(n)"))
    assert not _same_exception(ours, raised("RuntimeError", sizes, call))
    assert not _same_exception(ours, raised("ValueError", view, call))
    assert not _same_exception(ours, raised("RuntimeError", view, own))
    refuses = raised("RuntimeError", "no", own)
    assert _same_exception(refuses, raised("RuntimeError", "", "if n < 0: raise RuntimeError"))


def test_who_notices_a_lost_process_is_no_difference():
    call = "dist.all_reduce(flat)"
    place = "[/__w/pytorch/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:537]"
    lost = f"{place} Read error [127.0.0.1]:11150: Connection reset by peer. (on rank 0)"
    heard = raised("RuntimeError", lost, call)
    late = raised("RuntimeError", f"{place} Timed out waiting 1000ms for recv operation", call)
    died = Raised("RankDied", ("RankDied",), "The process of rank 1 ended without an answer.", ())
    hung = Raised("RanksHung", ("RanksHung",), "The ranks wait for each other: rank 1 …", ())
    assert _same_exception(heard, died)
    assert _same_exception(died, heard)
    assert not _same_exception(hung, died)
    assert not _same_exception(late, died)
