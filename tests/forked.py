"""Commands in forks of this process, which has imported all they need: that takes 4 s each time."""

import os
import signal
import sys
import tempfile
import time
import traceback
import warnings
from contextlib import suppress

import torch
from jupyter_core.application import NoStart
from nbgrader.apps import AutogradeApp, NbGraderApp

from grader.commands import main as cli
from grader.nbgrader import commands_on_path
from grader.nbgrader.commands import grade_chapter, regrade_chapter  # noqa: F401 (imported once)

SILENCE = 300.0
"""Seconds without a word after which a command hangs. It tells of each submission or how far
it is, and no submission may take longer than its budgets, however busy the machine is."""


class Forked:
    """A command in a fork of this process, which has all imported: that takes 4 s each time."""

    def __init__(self, root, command, environment=None):
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 (as long as we live)
        self._environment = environment
        self.status = None
        self.pid = os.fork()
        if self.pid == 0:
            status = 1
            try:
                status = self._run(root, *command)
            except SystemExit as end:
                if isinstance(end.code, str):
                    print(end.code, file=sys.stderr)  # as the interpreter would
                status = end.code if isinstance(end.code, int) else bool(end.code)
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                os._exit(status)

    def _run(self, root, name, *arguments):
        os.dup2(self._log.fileno(), 1)
        os.dup2(self._log.fileno(), 2)
        sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w", buffering=1)
        os.chdir(root)
        if self._environment is not None:
            os.environ.clear()
            os.environ.update(self._environment)
        os.environ.pop("UNDERTORCH_COURSE", None)
        # no thread lives on in a fork: an operator shared among torch's threads would never end
        torch.set_num_threads(1)
        commands_on_path()
        if name == "undertorch":
            sys.argv = [name, *arguments]
            cli.main()
        warnings.simplefilter("ignore")
        AutogradeApp.clear_instance()  # of a test that graded in our process
        app = NbGraderApp.subcommands[arguments[0]][0].instance()
        app.initialize(list(arguments[1:]))
        with suppress(NoStart):  # a subcommand was started in its place
            app.start()
        return 0

    def poll(self):
        """Return the exit status, or None while it runs."""
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
        return self.status

    def send_signal(self, number):
        os.kill(self.pid, number)

    def said_until_end(self):
        """Wait for the end; return what was printed. Killed where it has fallen silent."""
        said, since = 0, time.monotonic()
        while self.poll() is None:
            size = os.fstat(self._log.fileno()).st_size
            if size != said:
                said, since = size, time.monotonic()
            if time.monotonic() - since > SILENCE:
                self.send_signal(signal.SIGKILL)
            time.sleep(0.005)
        self._log.seek(0)
        return self._log.read()
