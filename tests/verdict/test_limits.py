"""What judging one attempt may cost: a check that goes over it is stopped, and stops no other."""

import resource
import signal
import time
from types import SimpleNamespace

import pytest
import torch

from grader.verdict.checks import Suite
from grader.verdict.limits import JudgeLimits, Judging, OverLimit, exceeded, within_memory
from grader.verdict.verdict import message_for
from tests.verdict.check_files import written

CHECKS = '''
import torch
from grader import assert_equal, gate

@gate
def test_gate():
    """A gate."""
    assert False, "The gate."

def test_short():
    """Short."""
    assert_equal(1, 1)

def test_slow():
    """Counts for ever."""
    try:
        while True:
            pass
    except Exception:
        pass

def test_large():
    """Needs all memory."""
    assert_equal([0] * 2**36, [])

def test_large_tensor():
    """Needs all memory, in torch."""
    assert_equal(torch.zeros(2**36), [])

def test_last():
    """Short, too."""
    assert_equal(1, 1)
'''


def test_what_a_check_exceeds_is_said_and_stops_no_other(tmp_path):
    suite = Suite(written(tmp_path, CHECKS, "test_thing.py"), {}, {})
    limits = JudgeLimits(cpu_seconds=0.5)
    before = resource.getrlimit(resource.RLIMIT_AS), signal.getsignal(signal.SIGPROF)
    start = time.process_time()
    with within_memory(limits):
        runs = suite.run(SimpleNamespace(), 0, limits=limits)
    assert time.process_time() - start < 3
    assert (resource.getrlimit(resource.RLIMIT_AS), signal.getsignal(signal.SIGPROF)) == before
    said = {run.check.name: run.error and message_for(run.error).what for run in runs}
    large = "This check was stopped: what your code gave takes too much memory to compare."
    assert said == {
        "test_gate": "The gate.",
        "test_short": None,
        "test_slow": "This check was stopped: what your code gave takes too long to compare.",
        "test_large": large,
        "test_large_tensor": large,
        "test_last": None,
    }


def test_the_time_is_that_of_all_checks_together():
    judging = Judging(JudgeLimits(cpu_seconds=0.8))
    for expected in (False, True):
        start = time.process_time()
        try:
            with judging.check():
                while time.process_time() - start < 0.6:
                    pass
            stopped = False
        except OverLimit:
            stopped = True
        assert stopped is expected


def test_other_errors_are_not_taken_for_limits():
    assert not exceeded(RuntimeError("shape mismatch"))
    assert not exceeded(AssertionError("no"))


def test_memory_is_given_back():
    with pytest.raises(MemoryError), within_memory(JudgeLimits(memory_bytes=2**28)):
        bytes(2**30)
    assert len(bytes(2**29)) == 2**29
    assert torch.zeros(2**20).sum() == 0
