"""Jupyter servers for tests, without a word of this machine's; notebooks of theirs in a real browser."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from playwright.sync_api import Locator, Page, Response

from tests.browser import PATIENCE


@contextmanager
def jupyter(
    app: str,
    root: Path,
    home: Path,
    *,
    config: str = "",
    environment: Mapping[str, str] = {},
) -> Iterator[str]:
    """Start `jupyter lab` or `jupyter notebook` on the folder `root`; give its address, `…/lab`.

    What it keeps lies in `home`. `config` is the text of an nbgrader_config.py of its own.
    """
    if config:
        (home / "config").mkdir(parents=True, exist_ok=True)
        (home / "config" / "nbgrader_config.py").write_text(config)
    command = [
        *(sys.executable, "-m", "jupyter", app),
        *("--LabApp.news_url=", f"--ServerApp.root_dir={root}"),
    ]
    with served(command, root, home, environment) as address:
        yield address


@contextmanager
def served(
    command: list[str], root: Path, home: Path, environment: Mapping[str, str]
) -> Iterator[str]:
    """Run a command that starts a server of Jupyter's, in `root` and without a window."""
    (home / "config").mkdir(parents=True, exist_ok=True)
    server = subprocess.Popen(
        [
            *command, "--no-browser", "--allow-root", "--port=0", "--ip=127.0.0.1",
            "--IdentityProvider.token=",
        ],
        cwd=root,
        env={**os.environ, **at_home(home), **environment},
        stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    said: list[str] = []
    try:
        yield _address(server, said)
    finally:
        _end(server, said)


def at_home(home: Path) -> dict[str, str]:
    """Return the environment that keeps all that Jupyter and nbgrader write in `home`."""
    return {
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
    }


def _address(server: subprocess.Popen[str], said: list[str]) -> str:
    """Return where the server says it is, and keep its log flowing into `said`."""
    assert server.stderr is not None
    for line in server.stderr:
        said.append(line)
        found = re.search(r"http://127\.0\.0\.1:\d+/(lab|tree|notebooks)\b", line)
        if found:
            threading.Thread(target=said.extend, args=(server.stderr,), daemon=True).start()
            return found.group()
    raise AssertionError("Jupyter did not start:\n" + "".join(said))


def _end(server: subprocess.Popen[str], said: list[str]) -> None:
    """Tell the server to end, again if need be: an idle one was seen that had not heard it the first time."""
    for _ in range(3):
        server.terminate()
        with suppress(subprocess.TimeoutExpired):
            server.wait(20)
            return
    server.kill()
    server.wait()
    raise AssertionError("Jupyter did not end:\n" + "".join(said))


class Notebook:
    """An open notebook: its cells, by a text in them, and what happens when they run."""

    def __init__(self, page: Page) -> None:
        self.page = page
        # The indicator says idle before there is a kernel, and a cell run then opens a dialog.
        page.locator(".jp-KernelName:visible", has_text="Python 3").wait_for(timeout=PATIENCE)

    def run(self, text: str, source: str | None = None) -> Locator:
        """Run the cell that holds `text`, after writing `source` into it; return the cell."""
        chosen = self.page.locator(".jp-CodeCell", has_text=text).first
        chosen.scroll_into_view_if_needed()
        chosen.locator(".cm-content").click()
        if source is not None:
            self.page.keyboard.press("Control+a")
            self.page.keyboard.insert_text(source)
        self.page.keyboard.press("Control+Enter")
        return chosen

    def begin(self) -> None:
        """Run the notebook's first cell, the imports, to its end."""
        imported = self.run("from grader import grade")
        imported.locator(".jp-InputPrompt", has_text="[1]:").wait_for(timeout=PATIENCE)

    def save(self) -> None:
        """Save, and wait until it is."""
        with self.page.expect_response(_saved, timeout=PATIENCE):
            self.page.keyboard.press("Control+s")
        self.page.wait_for_function(
            "() => !document.querySelector('.jp-mod-dirty')",
            timeout=PATIENCE,
        )


def _saved(response: Response) -> bool:
    """Whether the server says that the notebook is written: two saves at once end in a question."""
    return response.request.method == "PUT" and "/api/contents/" in response.url


def solution_of(reference: str) -> str:
    """Return a reference solution as a student would hand it in: without nbgrader's markers."""
    return "\n".join(line for line in reference.splitlines() if "SOLUTION" not in line)
