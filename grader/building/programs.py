"""The short programs of myths and questions: run when their pages are built, and what they print.

Each runs in names of its own. A group, one source file, runs in a fork of its own, so that none
finds what another group left behind.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import NamedTuple

import torch

from grader.building.environment import without_settings
from grader.course.course import AuthorError, Course

SECONDS = 400
"""Longest run of all programs. They take under a minute where nobody else works."""


class Program(NamedTuple):
    """A program, and what it is called where it raises."""

    name: str
    code: str


def printed(course: Course, groups: list[list[Program]]) -> list[list[str]]:
    """Return what each program prints, group by group.

    Raises `AuthorError` where one raises, prints nothing, or prints an address, which differs
    from run to run; and where all together take too long.
    """
    command = [sys.executable, "-W", "ignore", "-m", "grader.building.programs"]
    try:
        done = subprocess.run(
            command,
            cwd=course.root,
            env=without_settings(),
            input=json.dumps(groups),
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise AuthorError(
            f"The programs had not ended after {SECONDS} s. One may hang; or the machine is busy: "
            "run the command again when it is idle."
        ) from None
    if done.returncode != 0:
        raise AuthorError(f"A program raised.\n{done.stderr[-2000:]}")
    outputs: list[list[str]] = json.loads(done.stdout.splitlines()[-1])
    for programs, texts in zip(groups, outputs, strict=True):
        for program, text in zip(programs, texts, strict=True):
            if not text.strip() or re.search(r"0x[0-9a-f]{8,}", text):
                raise AuthorError(f"{program.name} prints nothing, or an address")
    return outputs


def _run(programs: list[list[str]]) -> list[str]:
    outputs = []
    for name, code in programs:
        text = io.StringIO()
        with contextlib.redirect_stdout(text):
            exec(compile(code, name, "exec"), {"__name__": "__main__", "torch": torch})
        outputs.append(text.getvalue())
    return outputs


def _run_apart(programs: list[list[str]]) -> list[str]:
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
        return pool.submit(_run, programs).result()


if __name__ == "__main__":
    import torch._dynamo  # once, before the forks: some of them need it

    print(json.dumps([_run_apart(group) for group in json.load(sys.stdin)]))
