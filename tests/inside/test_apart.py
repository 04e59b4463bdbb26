"""A program with processes of its own: its answer, its errors, its end."""

import os
import time

import psutil
import pytest
import torch

from grader.evidence.wire.raised import Relayed
from grader.inside.instruments.apart import Died, Hung, apart


def test_a_result_comes_from_another_process():
    value, pid, threads = apart(lambda: (torch.arange(3), os.getpid(), torch.get_num_threads()))
    assert value.tolist() == [0, 1, 2]
    assert pid != os.getpid()
    assert threads == 1


def test_an_error_is_relayed():
    with pytest.raises(Relayed, match="no such sample") as raised:
        apart(lambda: {}["no such sample"])
    assert raised.value.report["type"] == "KeyError"


def test_what_hangs_is_ended_with_all_that_it_started():
    begun = time.monotonic()
    reading, writing = os.pipe()

    def body():
        child = os.fork()
        if child:
            os.write(writing, str(child).encode())
        time.sleep(600)

    with pytest.raises(Hung):
        apart(body, seconds=0.5)
    assert time.monotonic() - begun < 300
    child = int(os.read(reading, 100))
    os.close(reading)
    os.close(writing)
    for _ in range(100):  # its parent is dead, and init needs a moment
        if not _alive(child):
            break
        time.sleep(0.05)
    assert not _alive(child)


def _alive(pid):
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def test_an_end_without_an_answer_is_told():
    with pytest.raises(Died):
        apart(lambda: os._exit(3))


def test_what_is_no_data_is_refused():
    with pytest.raises(Relayed, match="the result is"):
        apart(lambda: object())
