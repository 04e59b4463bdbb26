"""A copy of this process answers beside it."""

import itertools
import os
import sys
import time

import pytest

from grader.student.search import Copy

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="copies are for Linux alone")
LONG = 60.0


def test_answers_come_in_order_and_end():
    copy = Copy(lambda: (yes for yes in [True, False, True]))
    try:
        assert [copy.next(LONG) for _ in range(4)] == [True, False, True, None]
    finally:
        copy.close()


def test_who_waits_in_vain_goes_on():
    def late():
        time.sleep(LONG)
        yield True

    copy = Copy(late)
    assert copy.next(0.1) is None
    copy.close()


def test_a_copy_that_fails_says_nothing_more():
    def broken():
        yield True
        raise ValueError

    copy = Copy(broken)
    try:
        assert [copy.next(LONG), copy.next(LONG)] == [True, None]
    finally:
        copy.close()


def test_nothing_is_left_when_it_is_closed(tmp_path):
    def tidy():
        try:
            yield from itertools.repeat(True)
        finally:
            (tmp_path / "ended").touch()  # as a search closes its processes

    copy = Copy(tidy)
    assert copy.next(LONG)
    copy.close()
    assert (tmp_path / "ended").exists()
    with pytest.raises(ChildProcessError):
        os.waitpid(copy._pid, os.WNOHANG)
