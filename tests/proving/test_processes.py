"""Who ends a proof ends all of it."""

import os
import signal
import subprocess
import sys

import psutil

BEGINS = """
import os, time
from grader.proving.processes import spawned
with spawned(1) as pool:
    print(pool.submit(os.getpid).result(), flush=True)
    pool.submit(time.sleep, 600).result()
"""


def test_a_killed_proof_leaves_no_process():
    begun = subprocess.Popen([sys.executable, "-c", BEGINS], stdout=subprocess.PIPE, text=True)
    worker = psutil.Process(int(begun.stdout.readline()))
    os.kill(begun.pid, signal.SIGKILL)
    begun.communicate()
    psutil.wait_procs([worker], timeout=60)
    assert not worker.is_running() or worker.status() == psutil.STATUS_ZOMBIE
