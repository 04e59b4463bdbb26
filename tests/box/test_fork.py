"""A fork of this process: an interrupt that comes meanwhile is not lost, and nothing outlives it."""

import gc
import os
import signal
import sys
import time
from contextlib import suppress

import psutil
import pytest
import torch

from grader.box.fork import Fork
from grader.evidence.outcome import Ended
from grader.inside.instruments.ranks import on_ranks
from grader.inside.probe import Probe
from grader.inside.process.budget import Budget
from grader.inside.process.watch import LOOK_EVERY
from grader.submission.program import Program
from grader.verdict.interview import Interview
from tests import ctrl_c

interrupted = []


def interrupt():
    """Be the hook of Python's that a Ctrl-C comes in: what is raised there goes nowhere."""
    if interrupted:
        os.kill(os.getpid(), signal.SIGINT)


os.register_at_fork(after_in_parent=interrupt)  # there is no way to take it back


@pytest.mark.alone  # xdist's threads take signals that the main thread holds back
def test_an_interrupt_while_python_forks_is_raised_afterwards():
    before = set(psutil.Process().children())
    interrupted.append(True)
    try:
        with ctrl_c.interrupts(), pytest.raises(KeyboardInterrupt):
            Fork({})
    finally:
        interrupted.clear()
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    gc.collect()  # closes our end of the socket, which ends the fork
    forks = set(psutil.Process().children()) - before
    _gone, left = psutil.wait_procs(forks, timeout=300)
    assert len(forks) == 1 and not left


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who belongs to a session")
def test_ranks_end_with_the_fork_that_has_no_time_left():
    def endless(rank):
        while True:
            time.sleep(0.01)

    probe = Probe("ranks", lambda student: on_ranks(2, endless, seconds=600), (), frozenset())
    fork = Fork({"ranks": probe}, Budget(wall_seconds=2))
    session = fork._pid
    asked = Interview(fork, (), seed=1)
    with pytest.raises(Ended, match="no answer within 2 s"):
        asked.ask(probe, {})
    _gone, left = psutil.wait_procs(members(session), timeout=300)  # killed is not gone yet
    assert not [process for process in left if process.status() != psutil.STATUS_ZOMBIE]


def reads(student):
    return student.f().max().item()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who holds a page")
def test_memory_that_was_there_before_does_not_count():
    held = torch.ones(2**28, dtype=torch.uint8)
    probe = Probe("reads", reads, (), frozenset())
    budget = Budget(memory_bytes=2**26)

    def asked(function):
        return Interview(Fork({"reads": probe}, budget, {"f": function}), (), seed=1).ask(probe, {})

    def waits():  # for several looks at its memory
        held.max()
        end = time.monotonic() + 3 * LOOK_EVERY
        while time.monotonic() < end:
            pass
        return held

    assert asked(waits).value == 1
    with pytest.raises(Ended, match="64 MiB"):
        asked(lambda: [bytearray(2**20) for _ in range(2**12)])


def test_names_are_a_copy():
    names = {"f": lambda: names["kept"].zero_(), "kept": torch.ones(3)}
    probe = Probe("reads", reads, (), frozenset())
    fork = Fork({"reads": probe}, names=names)
    assert Interview(fork, (), seed=1).ask(probe, {}).value == 0
    assert names["kept"].sum() == 3
    fork.close()


def members(session):
    """Return the processes that belong to a session."""
    found = []
    for process in psutil.process_iter():
        with suppress(OSError):
            if os.getsid(process.pid) == session:
                found.append(process)
    return found


def test_given_cells_do_what_they_do_in_a_box():
    """What a notebook shows is shown to nobody, and every exercise counts as written."""
    given = (
        "from grader import show_storage, written\n"
        "shown = show_storage('no tensor'), written('nothing')\n"
        "def look():\n    return shown"
    )
    probe = Probe("looked", lambda student: student.look(), (), frozenset())
    asked = Interview(Fork({"looked": probe}), (), seed=1)
    try:
        asked.load(Program("look", (("given", given),), frozenset({"given"})))
        assert asked.ask(probe, {}).value == (True, True)
    finally:
        asked.close()
