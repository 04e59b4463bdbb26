"""What the known mistakes of an exercise do, for the inputs of a notebook, made beforehand.

In a notebook the inputs are always the same, so a failure can be compared with all known mistakes
without running them: some take minutes. `grader/<chapter>/known.json` has their marks, a line for each
mistake. `undertorch prove` writes it. A line counts while the mistake's program, the checks, the probes
that they ask and torch are what they were then.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from grader.course.course import Chapter, Exercise
from grader.course.imports import closure
from grader.course.parameters import as_keywords
from grader.files import write_atomically
from grader.submission.program import Program, statements
from grader.verdict.marks import Mark
from grader.verdict.probe_versions import asked_probes, probe_texts

PRACTICE_SEED = 0
"""Inputs in a live notebook are the same every time, so that a failure stays put while it is
being mended. A graded run draws its own."""

FILE = "known.json"

FORMAT = 2
"""Of the marks in a file. Those of another are not read: what is compared changed."""


def made_on() -> str:
    """Return what the last bits of a result may depend on: the kind of processor, as torch uses it."""
    return f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}"


def rests_on(chapter: Chapter, exercise: Exercise) -> str:
    """Return a digest of what judges the exercise: its checks, their helpers and values, the probes.

    Text, and no syntax trees: it is the same on every Python.
    """
    checks = check_files(chapter, exercise)
    version = torch.__version__.split("+")[0]
    whole = hashlib.sha256(f"{version} {as_keywords(exercise.values)}".encode())
    for path in checks:
        whole.update(path.read_bytes() + b"\0")
    whole.update(repr(probe_texts(chapter.probes, asked_probes(chapter.probes, checks))).encode())
    return whole.hexdigest()


def check_files(chapter: Chapter, exercise: Exercise) -> list[Path]:
    """Return the file of an exercise's checks, and those of the chapter's helpers that it imports."""
    files = closure([chapter.checks(exercise.id)])  # those of a copy, and those of this package
    of_chapter = (path for path in files if chapter.id in path.parts)
    return sorted(of_chapter, key=lambda path: path.parts[path.parts.index(chapter.id) :])


def line_key(rests: str, program: Program) -> str:
    """Return the digest under which a mistake's marks are kept: `rests` and its own program."""
    return hashlib.sha256(f"{rests} {statements(program)!r}".encode()).hexdigest()[:16]


def read_known(chapter: Chapter, exercise: str) -> tuple[str, dict[str, tuple[Mark, ...]]]:
    """Return where the marks of an exercise's mistakes were made, and the marks by `line_key`."""
    made = _read(chapter.graders / FILE).get(exercise, {})
    if made.get("format") != FORMAT:
        return "", {}
    lines: Mapping[str, Sequence[Any]] = made.get("marks", {})
    marks = {key: tuple(map(Mark.from_data, line)) for key, line in lines.items()}
    return made.get("made on", ""), marks


def marks_digest(chapter: Chapter, exercise: str) -> str:
    """Return the digest of what the file has of an exercise."""
    made = json.dumps(_read(chapter.graders / FILE).get(exercise), sort_keys=True)
    return hashlib.sha256(made.encode()).hexdigest()[:16]


def write_known(
    chapter: Chapter, exercise: str, marks: Mapping[str, Sequence[Mark]], where: str
) -> Path:
    """Put an exercise's marks, by `line_key`, into its chapter's file."""
    path = chapter.graders / FILE
    lines = {key: [mark.to_data() for mark in line] for key, line in marks.items()}
    everything = _read(path) | {exercise: {"made on": where, "format": FORMAT, "marks": lines}}
    blocks = [
        f"{json.dumps(one.id)}: {_block(everything[one.id])}"
        for one in chapter.exercises
        if one.id in everything
    ]
    write_atomically(path, "{\n" + ",\n".join(blocks) + "\n}\n", durable=False)
    return path


def _block(made: Mapping[str, Any]) -> str:
    lines = [
        f"  {json.dumps(key)}: {json.dumps(line, separators=(',', ':'))}"
        for key, line in made["marks"].items()
    ]
    head = {name: value for name, value in made.items() if name != "marks"}
    return f'{json.dumps(head)[:-1]}, "marks": {{\n' + ",\n".join(lines) + "\n}}"


def _read(path: Path) -> dict[str, Any]:
    """Return the file's content, nothing where it cannot be read: then mistakes are run."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
