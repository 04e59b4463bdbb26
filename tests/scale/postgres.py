"""A PostgreSQL server of the tests' own: in a temporary folder, on a unix socket, gone afterwards."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from grader.inside.process import syscalls

FAST = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "shared_buffers=16MB")


def program(name):
    """Return where a program of the server is; without it the test is skipped, and says so."""
    debian = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=_version)
    found = shutil.which(name) or (str(debian[-1]) if debian else None)
    if found is None:
        pytest.skip(f"no {name} here: PostgreSQL is not installed (make system installs it)")
    return found


def _version(path):
    return int(path.parents[1].name.split(".")[0])


class Server:
    """A running server. `url(name)` makes a database and names it as nbgrader wants it named."""

    def __init__(self, folder, user):
        self.folder, self._user = folder, user
        self._run(program("initdb"), "-D", f"{folder}/data", "-U", "undertorch", "-A", "trust",
                  "-E", "UTF8", "--locale=C", "--no-sync")  # fmt: skip
        self.start()

    def _run(self, *command):
        done = subprocess.run(
            command, user=self._user, cwd=self.folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def start(self):
        """Start it and wait until it answers."""
        settings = ("listen_addresses=", f"unix_socket_directories={self.folder}", *FAST)
        self._process = subprocess.Popen(
            [program("postgres"), "-D", f"{self.folder}/data", *(f"--{one}" for one in settings)],
            user=self._user,
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=lambda: syscalls.die_with_parent(signal.SIGQUIT),
        )
        deadline = time.monotonic() + 600
        while True:
            assert self._process.poll() is None, "the server ended"
            assert time.monotonic() < deadline
            try:
                return self.connect().close()
            except psycopg.OperationalError:
                time.sleep(0.02)

    def stop(self):
        """End it at once, connections and all."""
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait()

    def connect(self, database="postgres"):
        """Return a connection that commits each statement."""
        return psycopg.connect(
            host=self.folder, user="undertorch", dbname=database, autocommit=True
        )

    def url(self, database):
        """Make a database; return its URL."""
        with self.connect() as connection:
            connection.execute(f"CREATE DATABASE {database}")
        return f"postgresql+psycopg://undertorch@/{database}?host={self.folder}"


@contextmanager
def server():
    """Give a server that ends with the block. As root it runs as an ordinary user: it insists."""
    program("initdb")
    folder = tempfile.mkdtemp(prefix="pg-")  # a socket's path has at most 107 bytes
    user = None
    try:
        if os.geteuid() == 0:
            user = _ordinary_user()
            os.chown(folder, user, -1)
        running = Server(folder, user)
        try:
            yield running
        finally:
            running.stop()
    finally:
        shutil.rmtree(folder)


def _ordinary_user():
    """Return the number of the user that Debian's package makes, or of nobody."""
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name).pw_uid
        except KeyError:
            continue
    pytest.skip("no user postgres or nobody, and PostgreSQL does not run as root")
