"""How long forks are waited for: not for those that hang, and longer for those that stand in line."""

import itertools
import os
import sys
import time

import pytest

from grader.inside.instruments import patience
from grader.inside.instruments.apart import Hung, apart
from grader.inside.instruments.patience import MOST, Patience, _Steps, pause, wait_for

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux tells what a thread does"
)


@pytest.fixture
def threads(monkeypatch):
    """What the system tells of one thread, number 1."""
    told = {1: _Steps(0.0, 0.0, False)}
    monkeypatch.setattr(patience, "_threads", lambda groups: list(told.items()))
    return told


def test_standing_in_line_is_not_waiting(threads):
    limit = Patience(10.0, [1])
    before = limit.deadline
    threads[1] = _Steps(0.0, 4.0, False)
    assert limit.deadline == pytest.approx(before + 4.0)
    threads[1] = _Steps(0.0, 4000.0, False)
    assert limit.deadline == pytest.approx(before + MOST * 10.0)


def test_what_stood_in_line_before_does_not_count(threads):
    threads[1] = _Steps(0.0, 5.0, False)
    begun = time.monotonic()
    assert Patience(10.0, [1]).deadline < begun + 11


@pytest.mark.parametrize("steps", [_Steps(0.0, 0.0, True), None], ids=["ready", "running"])
def test_what_moves_has_all_of_its_time(threads, monkeypatch, steps):
    ran = itertools.count()
    monkeypatch.setattr(
        patience, "_threads", lambda groups: [(1, steps or _Steps(next(ran), 0.0, False))]
    )
    monkeypatch.setattr(patience, "STILL", 1)
    begun = time.monotonic()
    assert Patience(0.5, [1]).wait([]) == []
    assert time.monotonic() - begun >= 0.5


def test_what_stands_still_is_not_watched_to_the_end(threads):
    begun = time.monotonic()
    assert Patience(600.0, [1]).wait([]) == []
    assert time.monotonic() - begun < 60


def test_a_thread_that_only_polls_takes_no_step():
    polled = _Steps(1.0, 0.0, ready=False, polls=True)
    assert not _Steps(1.1, 0.0, ready=True, polls=True).moved_since(polled)
    assert _Steps(1.0, 0.0, ready=True, polls=True).moved_since(polled)  # in line all the while
    assert _Steps(1.1, 0.0, ready=False).moved_since(_Steps(1.0, 0.0, ready=False))


def test_processes_that_only_wait_hang():
    with pytest.raises(Hung):
        apart(lambda: time.sleep(600), seconds=300)


def test_who_waits_for_something_with_us_does_not_hang():
    longer = (patience.STILL + 2) * patience._LOOK_EVERY
    reading, writing = os.pipe()
    assert apart(lambda: wait_for(reading, longer), seconds=60) is False
    os.write(writing, b"!")
    assert apart(lambda: wait_for(reading, 30.0), seconds=60) is True
    os.close(reading)
    os.close(writing)


def test_a_pause_lasts():
    begun = time.monotonic()
    pause(0.05)
    assert time.monotonic() - begun >= 0.05


def test_this_process_is_seen():
    assert dict(patience._threads(frozenset([os.getpgrp()])))[os.getpid()].ran > 0
