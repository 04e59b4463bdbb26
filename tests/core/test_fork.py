"""A fork of this process: that an interrupt which comes meanwhile is not lost."""

import gc
import os
import signal

import psutil
import pytest

from grader.core.fork import Fork

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
        with pytest.raises(KeyboardInterrupt):
            Fork({})
    finally:
        interrupted.clear()
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    gc.collect()  # closes our end of the socket, which ends the fork
    forks = set(psutil.Process().children()) - before
    _gone, left = psutil.wait_procs(forks, timeout=60)
    assert len(forks) == 1 and not left
