"""The short programs of myths and questions: run when their pages are built, and what they print.

Each runs in names of its own. A group, one source file, runs in a fork of its own, so that none
finds what another group left behind. Where nothing is to run, the pages in place say what they printed.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

import torch

from grader.building.environment import without_settings
from grader.course.course import AuthorError, Course

SECONDS = 400
"""Longest run of all programs. They take under a minute where nobody else works."""


class Program(NamedTuple):
    """A program, and what it is called where it raises."""

    name: str
    code: str


class Proved(Protocol):
    """A myth or a question: what a program says is so."""

    @property
    def name(self) -> str:
        """By what name its source has it."""

    @property
    def code(self) -> str:
        """The program's text."""


T = TypeVar("T")


def sources_in(
    folder: Path, read: Callable[[Path], tuple[str, list[T]]]
) -> dict[Path, tuple[str, list[T]]]:
    """Return what `read` finds in each source of a folder: its heading, and what it holds."""
    return {path: read(path) for path in sorted(folder.glob("*.py"))}


def programs_of(sources: Mapping[Path, tuple[str, Sequence[Proved]]]) -> dict[Path, list[Program]]:
    """Return the programs of each source."""
    return {
        path: [Program(f"{path.name}: {one.name}", one.code) for one in held]
        for path, (_, held) in sources.items()
    }


def printed(course: Course, groups: list[list[Program]]) -> list[list[str]]:
    """Return what each program prints, group by group, without blank lines at its end.

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
            if not text or re.search(r"0x[0-9a-f]{8,}", text):
                raise AuthorError(f"{program.name} prints nothing, or an address")
    return outputs


def block(code: str, output: str, between: str = "") -> str:
    """Return a program and what it printed as pages show them, `between` them a line of words."""
    words = f"{between}\n\n" if between else ""
    return f"{_above(code)}{words}```text\n{output}\n```"


def recalled(pages: Path, groups: list[list[Program]]) -> list[list[str]]:
    """Return what each program printed when the pages in this folder were built.

    Raises `AuthorError` where none of them shows one.
    """
    texts = [path.read_text(encoding="utf-8") for path in sorted(pages.glob("*.md"))]
    texts += [_unfolded(text) for text in texts]
    return [[_printed_on(texts, program) for program in group] for group in groups]


def _printed_on(texts: list[str], program: Program) -> str:
    for text in texts:
        _, found, rest = text.partition(_above(program.code))
        if found:
            return rest.partition("```text\n")[2].partition("\n```")[0]
    raise AuthorError(f"{program.name} is on no page yet: build without --no-run")


def _above(code: str) -> str:
    return f"```python\n{code}\n```\n\n"


def _unfolded(text: str) -> str:
    """Return a page's text with what it folds away moved to the margin."""
    return re.sub(r"^ {4}", "", text, flags=re.MULTILINE)


def _run(programs: list[list[str]]) -> list[str]:
    outputs = []
    for name, code in programs:
        text = io.StringIO()
        with contextlib.redirect_stdout(text):
            exec(compile(code, name, "exec"), {"__name__": "__main__", "torch": torch})
        outputs.append(text.getvalue().rstrip())
    return outputs


def _run_apart(programs: list[list[str]]) -> list[str]:
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
        return pool.submit(_run, programs).result()


if __name__ == "__main__":
    import torch._dynamo  # once, before the forks: some of them need it

    print(json.dumps([_run_apart(group) for group in json.load(sys.stdin)]))
