"""Opens JupyterLab in a student's folder: chapter 1, its table of contents, the page of progress."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from grader.course.course import Course
from grader.student.contents import NAME
from grader.student.folder import Folder
from grader.student.journal import STATE

_WORKSPACE = "undertorch"

_TOC = "@jupyterlab/toc:plugin"


def lab_command(course: Course, folder: Folder) -> list[str]:
    """Return the command that opens JupyterLab as the student left it; the first time, laid out.

    Its workspaces are kept in the student's folder: those of other work stay as they are.
    """
    workspaces = folder.root.resolve() / STATE / "workspaces"
    _lay_out(course, workspaces)
    return [
        sys.executable,
        "-m",
        "jupyter",
        "lab",
        f"--ServerApp.root_dir={folder.root.resolve()}",
        f"--LabApp.workspaces_dir={workspaces}",
        f"--LabApp.default_url=/lab/workspaces/{_WORKSPACE}",
    ]


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
