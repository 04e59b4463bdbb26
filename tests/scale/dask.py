"""A Dask cluster of processes of the tests' own, on ports that the system chooses."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

from distributed import Client

from grader.inside.process import syscalls

TEMPERATE = {
    **os.environ,
    "OMP_NUM_THREADS": "1",
    "DASK_DISTRIBUTED__WORKER__DAEMON": "False",
    "DASK_DISTRIBUTED__LOGGING__DISTRIBUTED": "error",
}


class Dask:
    """A scheduler and its workers. `address` is the scheduler's."""

    def __init__(self, folder):
        self.folder = folder
        self.workers = []
        file = folder / "scheduler.json"
        self.scheduler = self._start(
            "dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", file,
            "--preload", "grader.nbgrader.dask_worker",
        )  # fmt: skip
        deadline = time.monotonic() + 900
        while not file.exists() or not file.read_text().endswith("}"):
            assert self.scheduler.poll() is None and time.monotonic() < deadline
            time.sleep(0.02)
        self.address = json.loads(file.read_text())["address"]

    def _start(self, name, *arguments):
        return subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.{name}", "--no-dashboard", *map(str, arguments)],
            cwd=self.folder,
            env=TEMPERATE,
            stdout=(self.folder / f"{name}.log").open("a"),
            stderr=subprocess.STDOUT,
            preexec_fn=lambda: syscalls.die_with_parent(signal.SIGKILL),
        )  # fmt: skip

    def hire(self, threads=1):
        """Start a worker, without a nanny who would start another when it is killed."""
        worker = self._start(
            "dask_worker", self.address, "--nthreads", threads, "--no-nanny",
            "--local-directory", self.folder, "--preload", "grader.nbgrader.dask_worker",
        )  # fmt: skip
        self.workers.append(worker)
        return worker

    @contextmanager
    def guest(self, threads):
        """Another worker, known to the scheduler, which is gone after the block."""
        worker = self.hire(threads)
        try:
            with Client(self.address) as client:
                while threads not in client.ncores().values():
                    assert worker.poll() is None
                    time.sleep(0.02)
            yield
        finally:
            worker.kill()

    def close(self):
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


@contextmanager
def cluster(folder, workers):
    """Give a cluster that is gone after the block."""
    running = Dask(folder)
    try:
        for _ in range(workers):
            running.hire()
        yield running
    finally:
        running.close()
