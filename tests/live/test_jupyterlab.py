"""A student in JupyterLab, in a real browser: wrong, diagnosed, right; then the Validate button."""

import os
import re
import subprocess
import sys
import threading

import pytest

from grader.authoring.sample import answers_of, reference_sources
from grader.core.answers import Role
from grader.core.course import Course
from grader.student.fill import fill_folder
from tests import ROOT

COURSE = Course(ROOT)
CHAPTER = COURSE.chapter("ch01_formats")
START_SECONDS = 60


@pytest.fixture
def lab(tmp_path):
    """Start JupyterLab on a student's fresh copy; give the address of its first notebook."""
    fill_folder(COURSE, tmp_path / "my")
    environment = os.environ | {
        "JUPYTER_RUNTIME_DIR": str(tmp_path / "runtime"),
        "JUPYTER_CONFIG_DIR": str(tmp_path / "config"),
        "JUPYTERLAB_SETTINGS_DIR": str(tmp_path / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(tmp_path / "workspaces"),
        "UNDERTORCH_COURSE": str(ROOT),
    }
    command = [
        sys.executable, "-m", "jupyter", "lab", "--no-browser", "--allow-root", "--port=0",
        "--ip=127.0.0.1", "--IdentityProvider.token=", "--LabApp.news_url=",
        f"--ServerApp.root_dir={tmp_path / 'my'}",
    ]  # fmt: skip
    server = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        yield f"{_address(server)}/tree/{CHAPTER.id}/{CHAPTER.name}.ipynb"
    finally:
        server.terminate()
        server.wait(30)


def _address(server):
    """Return where the server says it is, and keep its log flowing."""
    lines = []
    for line in server.stderr:
        lines.append(line)
        found = re.search(r"http://127\.0\.0\.1:\d+/lab\b", line)
        if found:
            threading.Thread(target=server.stderr.read, daemon=True).start()
            return found.group()
    raise AssertionError("JupyterLab did not start:\n" + "".join(lines))


def _typed(source):
    """Return text to type: the editor indents by itself, so every line starts at its margin."""
    return "\n".join(line.strip() for line in source.splitlines() if line.strip())


@pytest.mark.alone
def test_a_student_solves_an_exercise(lab, browser):
    wrong = answers_of(CHAPTER, Role.MISTAKE)["round_to_bf16"]
    right = "\n".join(
        line for line in reference_sources(CHAPTER)["round_to_bf16"].splitlines()
        if "SOLUTION" not in line and '"""' not in line and "float32, any" not in line
        and "returns:" not in line and not line.strip().startswith("#")
    )  # fmt: skip
    with browser.new_page() as page:
        page.set_viewport_size({"width": 1300, "height": 1000})
        page.goto(lab, wait_until="domcontentloaded")
        # The indicator says idle before there is a kernel, and a cell run then opens a dialog.
        kernel = page.locator(".jp-KernelName", has_text="Python 3")
        kernel.wait_for(timeout=1000 * START_SECONDS)

        def cell(text):
            return page.locator(".jp-CodeCell", has_text=text).first

        def run(text, source=None):
            chosen = cell(text)
            chosen.scroll_into_view_if_needed()
            chosen.locator(".cm-content").click()
            if source is not None:
                page.keyboard.press("Control+a")
                page.keyboard.type(source)
            page.keyboard.press("Control+Enter")
            return chosen

        imported = run("from grader import grade")
        imported.locator(".jp-InputPrompt", has_text="[1]:").wait_for(timeout=1000 * START_SECONDS)
        run("def round_to_bf16", _typed(wrong))
        graded = run('grade("round_to_bf16")')
        told = "You dropped the lower sixteen bits"
        graded.locator(".ut-bad", has_text=told).first.wait_for(timeout=60_000)

        run("def round_to_bf16", _typed(right))
        graded = run('grade("round_to_bf16")')
        graded.locator(".ut-good", has_text="6 of 6 points").first.wait_for(timeout=60_000)

        page.keyboard.press("Control+s")
        page.get_by_role("button", name="Validate").click()
        # the other exercises still hold their stubs
        dialog = page.locator(".jp-Dialog", has_text="Validation Results")
        dialog.wait_for(timeout=120_000)
