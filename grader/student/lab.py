"""Starts JupyterLab or Notebook 7 in a student's folder, as a student needs it.

JupyterLab opens on chapter 1, its table of contents and the page of progress. Neither shows the
tools of instructors, both save by themselves. All that says so lies in the student's folder: other
work of theirs is as it was, and what they choose in a settings window counts for more.

Either can open at an exercise. Neither does so by itself, whatever the address says; the extension
in extensions/ does.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grader.course.course import Chapter, Course
from grader.files import write_atomically
from grader.student.contents import NAME
from grader.student.folder import Folder
from grader.student.journal import STATE

_WORKSPACE = "undertorch"

_EXTENSIONS = Path(__file__).parent / "extensions"

_TOC = "@jupyterlab/toc:plugin"

_NBGRADER = ("formgrader", "validate_assignment", "assignment_list", "course_list")
"""What nbgrader adds to a Jupyter server, as its own configuration names it."""

SAVE_SECONDS = 4
"""How often an edited notebook is saved. What counts is what is saved; JupyterLab's own is 120."""

_DEFAULTS = "settings"

_CONFIG: dict[str, dict[str, Any]] = {
    "labconfig/page_config.json": {"disabledExtensions": {"@jupyter/nbgrader": True}},
    "jupyter_server_config.d/undertorch.json": {
        "ServerApp": {
            "jpserver_extensions": {f"nbgrader.server_extensions.{n}": False for n in _NBGRADER}
        }
    },
    f"{_DEFAULTS}/overrides.d/undertorch.json": {
        "@jupyterlab/docmanager-extension:plugin": {"autosaveInterval": SAVE_SECONDS},
        # else the first thing that one sees is a window that asks whether one wants news
        "@jupyterlab/apputils-extension:notification": {"fetchNews": "false"},
    },
}
"""What is written, by path. Jupyter merges it with what it finds elsewhere."""


@dataclass(frozen=True)
class Launch:
    """A command, and what is added to its environment."""

    command: list[str]
    environment: dict[str, str]

    def run(self, *options: str) -> int:
        """Run it until it ends; return its exit status.

        Ctrl-C is Jupyter's alone, which asks before it ends; a signal to end is handed on. Neither is
        ignored: that would be inherited by kernels.
        """
        environment = os.environ | self.environment
        with subprocess.Popen([*self.command, *options], env=environment) as jupyter:
            before = {
                signal.SIGINT: signal.signal(signal.SIGINT, lambda *_: None),
                signal.SIGTERM: signal.signal(signal.SIGTERM, lambda *_: jupyter.terminate()),
            }
            try:
                return jupyter.wait()
            finally:
                for number, handler in before.items():
                    signal.signal(number, handler)


@dataclass(frozen=True)
class Place:
    """A chapter, and an exercise of it if one is meant: where the notebook opens."""

    chapter: Chapter
    exercise: str = ""

    def address(self, folder: Folder) -> str:
        """Return the end of the notebook's address: its path, and after a # the exercise's card."""
        path = folder.notebook(self.chapter).relative_to(folder.root).as_posix()
        return f"{path}#cell-id={self.exercise}-card" if self.exercise else path


def lab(course: Course, folder: Folder, at: Place | None = None) -> Launch:
    """Return how JupyterLab is started as the student left it; the first time, laid out."""
    workspaces = folder.root.resolve() / STATE / "workspaces"
    _lay_out(course, workspaces)
    way = f"/tree/{at.address(folder)}" if at else ""
    more = [
        f"--LabApp.workspaces_dir={workspaces}",
        f"--LabApp.default_url=/lab/workspaces/{_WORKSPACE}{way}",
    ]
    return _launch("lab", folder, more)


def notebook(folder: Folder, at: Place | None = None) -> Launch:
    """Return how Notebook 7 is started on the folder's files."""
    way = f"--JupyterNotebookApp.default_url=/notebooks/{at.address(folder)}" if at else ""
    return _launch("notebook", folder, [way] if way else [])


def _launch(app: str, folder: Folder, more: list[str]) -> Launch:
    config = folder.root.resolve() / STATE / "jupyter"
    _write_config(config)
    command = [
        *(sys.executable, "-m", "jupyter", app),
        f"--ServerApp.root_dir={folder.root.resolve()}",
    ]
    # one server shows both: a button in each opens the other
    for one in ("LabApp", "JupyterNotebookApp"):
        command += [
            f"--{one}.app_settings_dir={config / _DEFAULTS}",
            f"--{one}.extra_labextensions_path={_EXTENSIONS}",
        ]
    paths = [str(config), os.environ.get("JUPYTER_CONFIG_PATH", "")]
    environment = {"JUPYTER_CONFIG_PATH": os.pathsep.join(filter(None, paths))}
    return Launch([*command, *more], environment)


def _write_config(config: Path) -> None:
    """Write what the applications read: which tools are off, and settings unless one chose others."""
    from jupyterlab.commands import get_app_dir

    shutil.rmtree(config, ignore_errors=True)  # nothing in it is the student's
    installed = Path(get_app_dir()) / "settings"
    if installed.is_dir():  # what this installation says for all goes on to hold
        shutil.copytree(installed, config / _DEFAULTS)
    for path, content in _CONFIG.items():
        write_atomically(config / path, json.dumps(content), durable=False)


def _lay_out(course: Course, workspaces: Path) -> None:
    from jupyterlab_server.workspaces_handler import WorkspacesManager

    if any(workspaces.glob("*.jupyterlab-workspace")):
        return
    workspaces.mkdir(parents=True, exist_ok=True)
    first = course.chapters()[0]
    notebook = f"{first.id}/{first.released.name}"
    data = {
        "layout-restorer:data": {
            "main": {
                "dock": {
                    "type": "tab-area",
                    "currentIndex": 0,
                    "widgets": [f"notebook:{notebook}", f"markdownviewer-widget:{NAME}"],
                },
                "current": f"notebook:{notebook}",
            },
            "left": {
                "collapsed": False,
                "visible": True,
                "current": _TOC,
                "widgets": ["filebrowser", "running-sessions", _TOC],
            },
            "right": {"collapsed": True, "visible": True, "widgets": []},
            "relativeSizes": [0.24, 0.76, 0],
        },
        f"notebook:{notebook}": {"data": {"path": notebook, "factory": "Notebook"}},
        f"markdownviewer-widget:{NAME}": {"data": {"path": NAME, "factory": "Markdown Preview"}},
    }
    workspace = {"data": data, "metadata": {"id": _WORKSPACE}}
    WorkspacesManager(str(workspaces)).save(_WORKSPACE, json.dumps(workspace))
