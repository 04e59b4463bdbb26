"""One class of victims and attackers, graded once for all tests of this folder."""

import contextlib
import ctypes
import secrets
import socket

import psutil
import pytest

from tests.attacks import harness

_PR_SET_CHILD_SUBREAPER = 36

collect_ignore_glob = ["*/*/*.py"]  # attacks, not tests


@pytest.fixture(scope="session")
def graded(tmp_path_factory):
    """Yield the class after grading. Processes that outlive nbgrader become our children."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    token = f"{secrets.randbits(47) | 1 << 46:x}"
    with socket.create_server(("127.0.0.1", 0)) as sentinel:
        sentinel.settimeout(0)
        course = harness.make_class(
            tmp_path_factory.mktemp("course"), token, sentinel.getsockname()[1]
        )
        right = harness.right_answers(course)
        for victim in harness.VICTIMS:
            harness.hand_in(course, victim, right)
        course.children = set(psutil.Process().children())
        course.before = course.files("submitted", *harness.SOURCES)
        for attack in harness.ATTACKS:
            harness.hand_in_attack(course, attack, right)
        harness.grade(course)
        for attack in harness.PLAIN:
            harness.hand_in_attack(course, attack, right)
        harness.grade_plainly(course)
        with contextlib.suppress(BlockingIOError):
            sentinel.accept()
            course.called = True
        yield course
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
