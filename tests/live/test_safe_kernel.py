"""No answer harms the kernel that it is graded in, and no interrupt harms what is graded after it."""

import os
import sys

import pytest

from grader.building.sample import reference_sources
from grader.course.course import Course, read_reference
from grader.student.preparing import SAID
from grader.submission.program import slice_program
from tests import ROOT
from tests.person import person

COURSE = Course(ROOT)
CHAPTER = COURSE.chapter("ch01_formats")
RIGHT = reference_sources(CHAPTER)["round_to_bf16"]
STUB = CHAPTER.exercise("round_to_bf16").stub
GRADE = 'grade("round_to_bf16")'
FULL = CHAPTER.exercise("round_to_bf16").points

linux = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no fork answers")

FIRST = "import math, os, torch\nfrom grader import grade\n"

THREADS = """
import torch.utils.data
w = torch.randn(600, 600, requires_grad=True)
(w @ w @ w).relu().sum().backward()
class Few(torch.utils.data.Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, index):
        return torch.ones(2) * index
rows = [row for row in torch.utils.data.DataLoader(Few(), num_workers=2)]
workers = iter(torch.utils.data.DataLoader(Few(), num_workers=2, persistent_workers=True))
next(workers)
kept = torch.ones(100_000_000)
seen, one = [], torch.ones(3)
"""
"""What leaves threads of OpenMP, of autograd and of loaders behind, workers and much memory."""

SOON = """
import grader.student.live as live
from grader.inside.process.budget import Budget
live.changed = lambda budget, limits: Budget(1, 5, memory_bytes=2**28)
"""
"""A budget for those who wait for its end."""

ENDLESS = {
    "while True: pass": "timed out",
    "import time; time.sleep(1000)": "timed out",
    "os._exit(0)": "crashed",
    "import faulthandler; faulthandler._sigsegv()": "crashed",
    "os.abort()": "crashed",
    "hoard = []\n    while True: hoard.append(bytearray(2**24))": "out of memory",
}
"""Answers that something ends, and what is said of them."""

HARMFUL = {
    "return torch.zeros(10**11)": "can't allocate memory",
    "return round_to_bf16(x)": "maximum recursion depth",
    "import sys; sys.exit(1)": "SystemExit",
    "seen.append(1); one.zero_(); kept.zero_(); global w; w = None": "Did you forget a return ?",
    "print('aloud'); display('aloud'); os.write(1, b'aloud')": "print shows a value",
    "import logging; logging.warning('aloud'); input('aloud')": "EOFError",
}
"""Answers that end by themselves, with the budget of every exercise."""


@linux
def test_no_answer_harms_the_kernel():
    with person(CHAPTER.released.parent) as live:
        assert not live.run(FIRST + THREADS).of("error")
        for budget, answers in (("", HARMFUL), (SOON, ENDLESS)):
            assert not live.run(budget).of("error")
            for body, said in answers.items():
                live.run(f"def round_to_bf16(x):\n    {body}")
                shown = live.run(GRADE)
                assert shown.points == 0 and said in shown.verdict, body
                assert not shown.text, body
        left = live.run("print(len(seen), one.sum().item(), kept.sum().item(), len(w))")
        assert left.text.split() == ["0", "3.0", "100000000.0", "600"]
        live.run(RIGHT)
        assert live.run(GRADE).points == FULL


@linux
@pytest.mark.parametrize(
    ("chapter", "exercises"),
    [
        ("ch06_dataloader", ["isolated_rng", "zero_copy"]),
        ("ch07_compile", ["one_graph", "MiniDynamo"]),
        ("ch08_ddp", ["coordinates", "accumulate"]),
    ],
)
def test_loaders_graphs_and_ranks_work_where_threads_were_used(chapter, exercises):
    found = COURSE.chapter(chapter)
    with person(found.released.parent) as live:
        live.run(FIRST + THREADS)
        names = [exercise.id for exercise in found.exercises]
        for exercise in exercises:
            for part in slice_program(exercise, names, read_reference(found)).parts:
                assert not live.run(part[-1]).of("error")
            shown = live.run(f"grade({exercise!r})")
            assert shown.points == found.exercise(exercise).points, shown.verdict


MOMENTS = """
import json, os, signal, time
import grader.student.live as live
live.show = lambda report: report
right, kept_handler = round_to_bf16, signal.getsignal(signal.SIGINT)

def graded(answer):
    global round_to_bf16
    round_to_bf16 = answer
    shown = grade("round_to_bf16")
    return str(shown.verdict.outcome) if hasattr(shown, "verdict") else shown.message

def told(seconds):
    signal.signal(signal.SIGALRM, lambda *args: signal.raise_signal(signal.SIGINT))
    try:  # it may come as soon as it is set, and until it is taken back
        signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-4))
        found = [graded(right)]
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        found = ["Interrupted"]  # before it began, or when it had ended
    found += [graded(right), graded(stub), torch.get_num_threads() == threads]
    return [*found, signal.getsignal(signal.SIGINT) is kept_handler]

def in_a_fork(call, *args):
    pipe, end = os.pipe()
    if os.fork() == 0:
        try:  # else what fails would go on as a kernel, for ever
            from grader.student.asking import cut_off
            cut_off()
            os.write(end, json.dumps(call(*args)).encode())
        finally:
            os._exit(0)
    os.close(end)
    with os.fdopen(pipe) as answer:
        return json.load(answer)

def seconds(count):
    begin = time.monotonic()
    for _ in range(count):
        graded(right)
    return (time.monotonic() - begin) / count

threads = torch.get_num_threads()
first = in_a_fork(seconds, 1)
found = [["first", share / 10, *in_a_fork(told, first * share / 10)] for share in range(10)]
graded(right)
later = seconds(5)
found += [["later", share / 10, *told(later * share / 10)] for share in range(10)]
print(json.dumps(found))
"""
"""Interrupts a kernel's first grades, each in a fork of it, and later ones, in the kernel itself."""


def test_whenever_it_is_interrupted_the_next_verdict_is_right():
    with person(CHAPTER.released.parent) as live:
        # the kernel must not prepare itself between the cells: it is in its first one all the time
        cells = [FIRST, STUB, "stub = round_to_bf16", RIGHT, MOMENTS]
        shown = live.run(f"for cell in {cells!r}: get_ipython().run_cell(cell)")
    assert not shown.of("error")
    assert len(shown.data) == 20
    for when, share, interrupted, *after in shown.data:
        assert interrupted == "passed" or interrupted.startswith("Interrupted"), (when, share)
        assert after == ["passed", "not attempted", True, True], (when, share, interrupted)
    assert any(row[2].startswith("Interrupted") for row in shown.data)


def test_where_a_fork_would_not_do_what_takes_too_long_is_interrupted():
    with person(CHAPTER.released.parent) as live:
        live.run(f"{FIRST}{SOON}import grader.student.asking as asking\nasking.may_fork = bool")
        for body in ("while True: pass", "import time; time.sleep(1000)"):
            live.run(f"def round_to_bf16(x):\n    {body}")
            shown = live.run(GRADE)
            assert shown.points == 0 and "timed out" in shown.verdict
        live.run(RIGHT)
        assert live.run(GRADE).points == FULL


def test_a_loop_is_interrupted_from_outside(tmp_path):
    with person(CHAPTER.released.parent) as live:
        pipe = tmp_path / "begun"
        os.mkfifo(pipe)
        live.run(FIRST)
        live.run(f"def round_to_bf16(x):\n    open({str(pipe)!r}, 'w')\n    while True: pass")
        live.begin(GRADE)
        pipe.open().close()  # opens when the answer has begun
        live.interrupt()
        live.run(RIGHT)
        assert live.run(GRADE).points == FULL


def test_the_first_grade_says_that_it_prepares_and_an_idle_kernel_has_prepared():
    with person(CHAPTER.released.parent) as live:
        live.run(FIRST + RIGHT)
        shown = live.run(GRADE)  # at once: whatever the kernel has done by now, this does the rest
        assert shown.points == FULL and len(shown) == 1
        assert all(output["data"] == {"text/plain": SAID} for output in shown.cleared)
    with person(CHAPTER.released.parent) as live:
        shown = live.run(FIRST + RIGHT + "\n" + GRADE)
        assert [output["data"] for output in shown.cleared] == [{"text/plain": SAID}] and len(
            shown
        ) == 1
    with person(CHAPTER.released.parent) as live:
        live.run(FIRST + RIGHT + "\nfrom grader.student import preparing")
        while live.run("print(len(preparing._left))").text.strip() != "0":
            pass  # between two cells it takes a step
        shown = live.run(GRADE)
        assert shown.points == FULL and not shown.cleared
