"""The commands in a real terminal: what goes on is shown and taken back, Ctrl-C ends, colours obey."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pexpect
import psutil
import pytest

from tests import ctrl_c
from tests.jupyter import at_home
from tests.scale.course import CHAPTER, HALF

PATIENCE = 300
"""Seconds that an answer may take: an idle machine needs a twentieth of it."""
UNDERTORCH = str(Path(sys.executable).with_name("undertorch"))
LOOPS = "def double(x):\n    while True:\n        pass\n"


@pytest.fixture
def terminal(student):
    """Return a function that starts `undertorch` in a terminal of 100 columns."""
    opened = []

    def start(*words, **environment):
        plain = {key: os.environ[key] for key in os.environ if key not in ("NO_COLOR", "CI")}
        opened.append(
            pexpect.spawn(
                UNDERTORCH,
                list(words),
                cwd=str(student.home),
                env={**plain, "TERM": "xterm-256color", **environment},
                dimensions=(40, 100),
                timeout=PATIENCE,
                encoding="utf-8",
                preexec_fn=ctrl_c.as_in_a_shell,
            )
        )
        return opened[-1]

    yield start
    for one in opened:
        one.close(force=True)


def read_to_end(process):
    """Return all that was written, and the exit status."""
    process.expect(pexpect.EOF)
    process.wait()
    return process.before, process.exitstatus


def colours(text):
    """Return the colour codes in it: SGR 30 to 38 and 90 to 97."""
    return [
        code
        for codes in re.findall(r"\x1b\[([\d;]*)m", text)
        for code in codes.split(";")
        if code.isdecimal() and (30 <= int(code) <= 38 or 90 <= int(code) <= 97)
    ]


def test_what_goes_on_is_shown_and_taken_back(student, terminal):
    student.answers(**HALF)
    said, status = read_to_end(terminal("check"))
    assert status == 1
    assert "… loading PyTorch\x1b[0m\r\x1b[2K" in said
    assert "… checking double (1 of 2)\x1b[0m\r\x1b[2K" in said
    assert said.rstrip().endswith("1 of 2 exercises passed, 4 of 6 points.")
    assert colours(said)


def test_no_color(student, terminal):
    student.answers(**HALF)
    said, status = read_to_end(terminal("check", NO_COLOR="1"))
    assert status == 1 and "✗ Twice a negative input." in said
    assert not re.search(r"\x1b\[[\d;]*m", said)  # nor bold


def test_forced_colours_in_a_pipe_take_nothing_back(student):
    student.answers(**HALF)
    environment = os.environ | {"FORCE_COLOR": "1"}
    done = subprocess.run(
        [UNDERTORCH, "check"], cwd=student.home, env=environment, capture_output=True, text=True
    )
    assert colours(done.stdout) and "loading" not in done.stderr


def test_a_dumb_terminal_gets_plain_text(student, terminal):
    student.answers(**HALF)
    said, status = read_to_end(terminal("check", TERM="dumb"))
    assert status == 1 and "\x1b" not in said and "loading" not in said


def test_ctrl_c_ends_a_check(student, terminal):
    student.answers(double=LOOPS)
    process = terminal("check", "double")
    process.expect("checking double")
    forks = psutil.Process(process.pid).children(recursive=True)
    process.sendintr()
    said, status = read_to_end(process)
    assert status == 130 and "Traceback" not in said
    _gone, left = psutil.wait_procs(forks, timeout=PATIENCE)
    assert not left


def test_ctrl_c_ends_a_watch(student, terminal):
    process = terminal("watch")
    process.expect(f"Watching {CHAPTER}.")
    student.answers(**HALF)
    process.expect("✗ Twice a negative input.")
    process.sendintr()
    said, status = read_to_end(process)
    assert status == 130 and "Traceback" not in said


@pytest.fixture
def learning(terminal, tmp_path):
    """`undertorch learn` in a terminal, with the Jupyter that it opened."""
    options = ["--no-browser", "--allow-root", "--port=0"]
    home = at_home(tmp_path / "home")
    process = terminal("learn", *(f"--jupyter={option}" for option in options), **home)
    process.expect("is running at")
    return process


def test_who_ends_it_ends_the_jupyter_that_it_opened(learning, tmp_path):
    begun = psutil.Process(learning.pid).children(recursive=True)
    learning.kill(signal.SIGTERM)
    learning.expect(pexpect.EOF)
    learning.wait()
    _gone, left = psutil.wait_procs(begun, timeout=PATIENCE)
    assert begun and not left
    assert not list((tmp_path / "home" / "runtime").glob("jpserver-*.json"))


def test_ctrl_c_is_for_the_jupyter_that_it_opened(learning, tmp_path):
    """It asks back: unsaved work and running kernels hang on it."""
    process = learning
    process.sendintr()
    process.expect("No answer for 5s")
    process.sendintr()
    # so soon after the first it may end without a question
    if process.expect([re.escape("(y/[n])?"), pexpect.EOF]) == 0:
        process.sendline("y")
        process.expect(pexpect.EOF)
    process.wait()
    assert process.exitstatus == 0
    assert not list((tmp_path / "home" / "runtime").glob("jpserver-*.json"))


def completed(shell, line, cwd):
    """Return what the shell offers for the last word of the line."""
    ask = {
        "_UNDERTORCH_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(line.split(" ")) - 1),
        "_TYPER_COMPLETE_ARGS": line,
    }
    done = subprocess.run(
        [UNDERTORCH], cwd=cwd, env=os.environ | ask, capture_output=True, text=True
    )
    return done.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh"])
@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("undertorch check dou", "double"),
        ("undertorch progress ti", CHAPTER),
        ("undertorch grade ti", CHAPTER),
        ("undertorch grade tiny --student ad", "ada"),
        ("undertorch validate to", "total"),
        ("undertorch build my", "myths"),
        ("undertorch build qu", "questions"),
    ],
)
def test_completion_of_names(student, shell, line, name):
    (student.course.root / "submitted" / "ada").mkdir(parents=True, exist_ok=True)
    assert name in completed(shell, line, student.home)


def test_completion_where_there_is_nothing(student, tmp_path, monkeypatch):
    monkeypatch.setenv("UNDERTORCH_COURSE", str(tmp_path / "nowhere"))
    assert completed("bash", "undertorch grade x --student ad", tmp_path).strip() == ""
    assert completed("bash", "undertorch check dou", tmp_path).strip() == ""
