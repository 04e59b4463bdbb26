"""The adapters to nbgrader: the only code of Undertorch that imports it."""

from __future__ import annotations

import os
import sys


def commands_on_path() -> None:
    """Put this interpreter's commands on PATH: nbgrader calls a bare `alembic`."""
    folder = os.path.dirname(sys.executable)
    path = os.environ.get("PATH", "")
    if folder not in path.split(os.pathsep):
        os.environ["PATH"] = os.pathsep.join([folder, path])
