"""What the probes of loaders share: limits on time, what was noted, arguments that may be left out."""

import time
from weakref import WeakKeyDictionary

from grader import Hung, apart
from grader.evidence.wire.raised import Explained

HANGS = WeakKeyDictionary()
"""How often programs that use a class of the student's have hung. After three, a fourth would
only cost time."""


PATIENCE = 20.0
"""Seconds for several passes of DataLoaders, in exercises where waiting for ever is no mistake that
learners make: long enough for a machine that has ten times too much to do."""


class NoAnswer(Explained):
    """What a program did when it was stopped, because it came to no end."""


def bounded(student_class, doing, body):
    """Run `body` in a fork of its own with a limit, unless this class hung three times.

    `doing` says what it does, for the error if it hangs.
    """
    if HANGS.get(student_class, 0) >= 3:
        raise NoAnswer(f"Not run, since three programs before it never came to an end: {doing}.")
    try:
        return apart(body)
    except Hung:
        HANGS[student_class] = HANGS.get(student_class, 0) + 1
        raise NoAnswer(f"This never came to an end: {doing}.") from None


def until(condition, seconds=3.0):
    """Wait until `condition()` holds; say whether it did within `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.002)
    return True


def noted(log, name):
    """Return what was noted under `name`, in order."""
    return [rest for _, kind, *rest in log.read() if kind == name]


def optional(value):
    """Return the arguments that a value makes; none for the default."""
    return () if value is None else (value,)
