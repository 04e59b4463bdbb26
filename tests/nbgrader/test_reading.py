"""Submissions are read under limits: what goes over one costs itself, and little."""

import json
import mmap
import os
import resource
import signal
import time

import psutil
import pytest

from grader.box.aside import Aside, Exceeded, Failed, Limits
from grader.building.sample import fill, reference_sources
from grader.course.course import Course
from grader.inside.process.budget import MIB
from grader.nbgrader.reading import INTAKE, Reader
from grader.proving.processes import spawned
from grader.submission.reading import Reading
from tests import bombs
from tests.references import ROOT

MOST_SECONDS = 2.0
MOST_BYTES = 200 * 10**6


@pytest.fixture(scope="module")
def chapter():
    return Course(ROOT).chapter("ch01_formats")


@pytest.fixture(scope="module")
def notebook(chapter):
    return fill(chapter, reference_sources(chapter))


@pytest.fixture
def reader(chapter):
    with Reader(chapter, chapter.notebook) as reader:
        reader.attempts(chapter.notebook)  # warm
        yield reader


def handed_in(folder, text):
    path = folder / "formats.ipynb"
    path.write_text(text, "utf-8", "surrogatepass")
    return path


def used_by_children():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


ALL = bombs.bombs({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": []})


@pytest.fixture(scope="module")
def elsewhere():
    """Call a function in a process that does nothing else: of all its children the time is counted."""
    with spawned(1) as pool:
        yield lambda *args: pool.submit(*args).result()


def cost(path):
    """Return the processor time and the bytes that reading a file takes."""
    chapter = Course(ROOT).chapter("ch01_formats")
    with Reader(chapter, chapter.notebook) as reader:
        reader.attempts(chapter.notebook)  # warm
        size = psutil.Process().memory_info().rss
        ours, theirs = time.process_time(), used_by_children()
        reader.attempts(reader.take(path, "ada", []))
        reader.close()  # what its process used is known when it has ended
        spent = time.process_time() - ours + used_by_children() - theirs
        return spent, psutil.Process().memory_info().rss - size


@pytest.mark.parametrize("name", ALL)
def test_no_bomb_costs_much(elsewhere, notebook, tmp_path, name):
    spent, grown = elsewhere(cost, handed_in(tmp_path, bombs.bombs(notebook)[name]()))
    assert spent < MOST_SECONDS
    assert grown < MOST_BYTES


def test_a_process_that_reads_has_no_more_memory():
    with Aside(lambda _: resource.getrlimit(resource.RLIMIT_AS)[0]) as aside:
        size = psutil.Process().memory_info().vms
        assert aside.ask(None) - size < MOST_BYTES + 8 * MIB  # this process may grow meanwhile


def test_who_comes_after_a_bomb_is_read(reader, chapter, notebook, tmp_path):
    bomb = bombs.with_answer(notebook, bombs.ANSWERS["a name from itself"])
    taken = reader.take(handed_in(tmp_path, json.dumps(bomb)), "eve", [])
    said = taken.metadata[INTAKE]["unreadable"]
    assert said == "reading it took more than 1.5 s of processor time"
    assert [cell.source for cell in taken.cells] == [
        "".join(cell["source"]) for cell in chapter.notebook["cells"]
    ]
    taken = reader.take(handed_in(tmp_path, json.dumps(notebook)), "ada", [])
    assert "unreadable" not in taken.metadata[INTAKE]
    attempts = reader.attempts(taken)
    assert all(not one.reading.trouble and not one.reading.broken for one in attempts.values())


def test_what_the_reader_says_is_what_grading_would_read(reader, chapter, notebook, tmp_path):
    answer = (
        "import torch\ndef decode(bits, fmt):\n    return getattr(bits, 'vi' + 'ew')(torch.half)"
    )
    changed = bombs.with_answer(notebook, answer)
    changed["cells"].append(
        {"cell_type": "code", "metadata": {}, "outputs": [], "source": "unused = 1"}
    )
    taken = reader.take(handed_in(tmp_path, json.dumps(changed)), "ada", [])
    for _ in range(2):  # what it remembers, and read anew
        for name, attempt in reader.attempts(taken).items():
            there = attempt.reading
            object.__setattr__(attempt, "reading", None)
            assert attempt.read_for(chapter.exercise(name)) == there
        reader._last = None


def test_one_answer_that_cannot_be_read_costs_no_other(reader, notebook, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "grader.nbgrader.reading.read_text",
        lambda program, source, stub, rules: 1 / 0 if program.exercise == "decode" else Reading(),
    )
    reader.close()  # the next process sees the change
    taken = reader.take(handed_in(tmp_path, json.dumps(notebook)), "ada", [])
    troubles = {name: one.reading.trouble for name, one in reader.attempts(taken).items()}
    assert troubles.pop("decode") == "reading it failed (ZeroDivisionError)"
    assert not any(troubles.values())


# --- the process -----------------------------------------------------------------------------


def endless(_):
    while True:
        pass


def new_memory(size):
    """Memory that the system gives: what pytest had freed before is no growth, and often is enough."""
    try:
        return mmap.mmap(-1, size)
    except OSError:
        raise MemoryError from None


def hoarding(_):
    return len([new_memory(MIB) for _ in range(400)])


def hiding_it(_):
    try:
        return hoarding(None)
    except MemoryError:
        return "no Python"


@pytest.mark.parametrize(
    ("work", "words"),
    [
        (endless, "took more than 0.2 s of processor time"),
        (lambda _: time.sleep(60), "took more than 3 s"),
        (hoarding, "took more than 64 MiB of memory"),
        (hiding_it, "took more than 64 MiB of memory"),
        (lambda _: os.kill(os.getpid(), signal.SIGSEGV), "ended its process (SIGSEGV)"),
        (lambda _: os._exit(3), "ended its process (exit code 3)"),
    ],
)
def test_work_beyond_a_limit_ends_and_the_next_is_done(work, words):
    limits = Limits(cpu_seconds=0.2, memory_bytes=64 * MIB, wall_seconds=3.0)
    before = set(psutil.Process().children())
    with Aside(lambda asked: work(asked) if asked else "done", limits) as aside:
        for _ in range(2):
            with pytest.raises(Exceeded) as raised:
                aside.ask("work")
            assert str(raised.value) == words
            assert aside.ask("") == "done"
    assert set(psutil.Process().children()) == before


def test_work_that_raises_says_where_and_the_process_lives_on():
    with Aside(lambda asked: 1 / asked) as aside:
        assert aside.ask(2) == 0.5
        with pytest.raises(Failed, match="ZeroDivisionError") as raised:
            aside.ask(0)
        assert "1 / asked" in raised.value.trace
        pid = aside._pid
        assert aside.ask(4) == 0.25
        assert aside._pid == pid


def test_a_process_that_keeps_much_is_replaced():
    kept = []
    with Aside(lambda asked: kept.append(new_memory(asked)) or os.getpid()) as aside:
        first = aside.ask(MIB)
        assert aside.ask(60 * MIB) == first
        assert aside.ask(MIB) != first


def test_a_fork_has_a_process_of_its_own():
    with Aside(lambda _: os.getppid()) as aside:
        assert aside.ask(None) == os.getpid()
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                code = 0 if aside.ask(None) == os.getpid() else 2
                aside.close()
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert aside.ask(None) == os.getpid()


def test_a_process_that_ended_between_two_requests_is_nobodys_fault():
    with Aside(lambda _: os.getpid()) as aside:
        first = aside.ask(None)
        process = psutil.Process(first)
        process.kill()
        while process.status() != psutil.STATUS_ZOMBIE:
            time.sleep(0.01)
        assert aside.ask(None) != first
