"""A failure is explained by the known mistake that fails alike, and no mistake is run for nothing."""

from grader.box.fork import Fork
from grader.course.answers import Answer, Role
from grader.course.course import Course
from grader.evidence.outcome import Outcome
from grader.inside.probe import load_probes
from grader.verdict.diagnosis import Diagnosis, diagnose
from grader.verdict.grading import Clock, ExerciseGrader
from grader.verdict.interview import Raised, StudentRaised
from grader.verdict.known import PRACTICE_SEED
from grader.verdict.marks import Failure, Mark, failure_of
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


def raised(kind, message, line, notes=""):
    return Raised(kind, (kind, "Exception"), message, (("f", 1, line),), notes)


def _same_exception(ours, theirs):
    ours, theirs = (failure_of(StudentRaised(one)) for one in (ours, theirs))
    return ours == theirs


def test_exceptions_explain_each_other_by_what_python_says():
    view, sizes = "shape '[1, 0]' is invalid for input of size 6", "size 5 must match size 2"
    call, own = "x.view(a, b)", "raise RuntimeError('no')"
    ours = raised("RuntimeError", view, call)
    assert _same_exception(ours, raised("RuntimeError", view, "y = x.view(n)"))
    assert not _same_exception(ours, raised("RuntimeError", view.replace("6", "24"), call))
    assert not _same_exception(ours, raised("RuntimeError", sizes, call))
    assert not _same_exception(ours, raised("ValueError", view, call))
    assert not _same_exception(ours, raised("RuntimeError", view, own))
    assert not _same_exception(ours, raised("RuntimeError", view, call, "x of size 6"))
    refuses = raised("RuntimeError", "no", own)
    assert _same_exception(refuses, raised("RuntimeError", "", "if n < 0: raise RuntimeError"))
    assert not _same_exception(refuses, Raised("RuntimeError", ("RuntimeError",), "", ()))


def test_no_wildcard_makes_messages_equal_that_name_ranks():
    waits = raised("ValueError", "rank 0 waits", "check(x)")
    assert not _same_exception(waits, raised("ValueError", "rank 1 sent", "check(x)"))


def test_files_and_addresses_differ_from_run_to_run():
    one, other = (
        raised("OSError", f"cannot read '/tmp/{name}/0' at 0x7f{name}0000", "open(path)")
        for name in ("a1b2c3", "d4e5f6")
    )
    assert _same_exception(one, other)


def hung(message):
    return Raised("RanksHung", ("RanksHung",), f"The ranks wait for each other: {message}.", ())


def test_ranks_that_hang_do_so_at_a_call():
    send = hung("ranks 0 and 1 waited at send #1, rank 2 had left after recv #1")
    assert _same_exception(
        send, hung("ranks 1 and 2 waited at send #1, rank 0 had left after recv #1")
    )
    assert not _same_exception(send, hung("ranks 0, 1 and 2 waited at recv #1"))
    assert not _same_exception(send, hung("ranks 0, 1 and 2 waited at send #1"))


def test_who_notices_a_lost_process_is_no_difference():
    call = "dist.all_reduce(flat)"
    place = "[/__w/pytorch/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:537]"
    lost = f"{place} Read error [127.0.0.1]:11150: Connection reset by peer. (on rank 0)"
    heard = raised("RuntimeError", lost, call)
    late = raised("RuntimeError", f"{place} Timed out waiting 1000ms for recv operation", call)
    died = Raised("RankDied", ("RankDied",), "The process of rank 1 ended without an answer.", ())
    assert _same_exception(heard, died)
    assert _same_exception(died, heard)
    assert not _same_exception(hung("rank 1 waited at send #1"), died)
    assert not _same_exception(late, died)


def known(name, words, *marks):
    return Answer(Role.MISTAKE, name, words, ""), marks


OURS = Mark("seen", Failure("Mismatch")), Mark("passed")


def test_of_two_that_are_possible_only_what_both_say_is_said():
    one = known("one", "You copy. Use a view.", *OURS)
    other = known("other", "You copy. Do not clone.", *OURS)
    assert diagnose(OURS, [one, other]) == Diagnosis("", "You copy.")
    assert diagnose(OURS, [one, known("third", "You cut.", *OURS)]) is None
    nearer = known("third", "You cut.", OURS[0], Mark("something else"))
    assert diagnose(OURS, [nearer, one]) == Diagnosis("one", "You copy. Use a view.")


def test_a_mistake_may_have_several_spellings():
    one = known("clones", "You copy.", *OURS)
    other = known("copies", "You copy.", *OURS)
    elsewhere = known("contiguous", "You copy.", Mark("x", Failure("Mismatch")), OURS[1])
    assert diagnose(OURS, [elsewhere, one, other]) == Diagnosis("clones", "You copy.")
