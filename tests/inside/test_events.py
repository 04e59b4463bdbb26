"""Forks write into one log, in the order in which things happened."""

import os

import pytest

from grader.inside.instruments.events import watch_events


def test_forks_and_parent_share_one_order():
    ours, theirs = os.pipe()
    with watch_events() as log:
        log.note("before", 1, None, 2.5, True)
        child = os.fork()
        if child == 0:
            os.read(ours, 1)
            log.note("child")
            os._exit(0)
        log.note("parent")
        os.write(theirs, b"x")
        os.waitpid(child, 0)
        log.note("after")
        here = os.getpid()
        assert log.read() == [
            (here, "before", 1, None, 2.5, True),
            (here, "parent"),
            (child, "child"),
            (here, "after"),
        ]
    os.close(ours)
    os.close(theirs)


def test_no_line_is_torn_when_many_write():
    with watch_events() as log:
        children = []
        for _ in range(4):
            child = os.fork()
            if child == 0:
                for number in range(500):
                    log.note("tick", number)
                os._exit(0)
            children.append(child)
        for child in children:
            os.waitpid(child, 0)
        seen = log.read()
    for child in children:
        assert [number for pid, _, number in seen if pid == child] == list(range(500))


def test_a_long_event_is_refused():
    with watch_events() as log, pytest.raises(ValueError, match="longer than 4096"):
        log.note("x" * 5000)
