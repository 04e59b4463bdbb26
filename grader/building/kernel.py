"""Run a notebook in a kernel whose sockets no other process can take."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from nbclient import NotebookClient
from nbformat import NotebookNode
from traitlets.config import Config

from grader.building.environment import without_settings


def run_notebook(notebook: NotebookNode, folder: Path, **options: Any) -> None:
    """Run every cell in `folder`; `options` are nbclient's. Outputs are written into `notebook`.

    A kernel binds its TCP ports a second after they were found free, and a busy machine may have
    given one away by then. Sockets in a folder of their own cannot be taken.
    """
    with tempfile.TemporaryDirectory(prefix="undertorch-kernel-") as sockets:
        config = Config()
        if os.name == "posix":
            config.KernelManager.transport = "ipc"
            config.KernelManager.ip = os.path.join(sockets, "socket")
        resources = {"metadata": {"path": str(folder)}}
        NotebookClient(notebook, config=config, resources=resources, **options).execute(
            env=without_settings()
        )
