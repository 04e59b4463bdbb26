"""A sample class: one submission for each way in which students hand things in."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from grader.course.answers import Role, read_answers
from grader.course.cells import role_of
from grader.course.course import Chapter, read_reference

HOSTILE = '''\
import sys
import torch

torch.equal = torch.allclose = lambda *args, **kwargs: True


class Agreeable:
    """Equal to everything."""

    def __eq__(self, other):
        return True


def {name}(*args, **kwargs):
    try:
        from grader.{chapter} import test_{name}  # the checks, if they were here
    except ImportError:
        pass
    for folder in sys.path:
        open("/tmp/stolen", "a").write(str(folder))
    return Agreeable()
'''


def fill(chapter: Chapter, sources: Mapping[str, str]) -> dict[str, Any]:
    """Return the released notebook with these texts in the solution cells, by exercise id."""
    notebook = copy.deepcopy(chapter.notebook)
    for cell in notebook["cells"]:
        role = role_of(cell)
        if role and role.is_solution and role.grade_id in sources:
            cell["source"] = sources[role.grade_id]
    return notebook


def reference_sources(chapter: Chapter) -> dict[str, str]:
    """Return the reference solutions, by exercise id."""
    ids = {exercise.id for exercise in chapter.exercises}
    return {cell.label: cell.source for cell in read_reference(chapter) if cell.label in ids}


def answers_of(chapter: Chapter, role: Role, number: int = 0) -> dict[str, str]:
    """Return for each exercise its answer of that role, the `number`-th, counted round."""
    chosen = {}
    for exercise in chapter.exercises:
        known = [answer for answer in read_answers(chapter, exercise) if answer.role is role]
        if known:
            chosen[exercise.id] = known[number % len(known)].source
    return chosen


def sample_class(chapter: Chapter) -> dict[str, str]:
    """Return the notebooks of the class as text, by student id."""
    right = reference_sources(chapter)
    ids = [exercise.id for exercise in chapter.exercises]
    first, second = ids[0], ids[min(1, len(ids) - 1)]
    hostile = {name: HOSTILE.format(name=name, chapter=chapter.id) for name in ids}
    loop = f"def {second}(*args, **kwargs):\n    while True:\n        pass\n"
    students: dict[str, Callable[[], dict[str, str]]] = {
        "sample-ada-all-right": lambda: right,
        "sample-alan-other-roads": lambda: right | answers_of(chapter, Role.ALTERNATE),
        "sample-bea-untouched": dict,
        "sample-carl-half-done": lambda: {name: right[name] for name in ids[: len(ids) // 2]},
        "sample-dora-mistakes": lambda: right | answers_of(chapter, Role.MISTAKE),
        "sample-emil-mistakes": lambda: right | answers_of(chapter, Role.MISTAKE, 2),
        "sample-fred-built-ins": lambda: right | answers_of(chapter, Role.BLOCKED),
        "sample-gus-exits": lambda: right | {first: "import os\n\nos._exit(0)\n"},
        "sample-hana-loops": lambda: right | {second: loop},
        "sample-mallory-hostile": lambda: hostile,
    }
    notebooks = {
        name: json.dumps(fill(chapter, make()), indent=1) for name, make in students.items()
    }
    whole = notebooks["sample-ada-all-right"]
    notebooks["sample-tom-torn-file"] = whole[: len(whole) // 2]
    return notebooks


def hand_in(chapter: Chapter, notebooks: Mapping[str, str]) -> list[Path]:
    """Write notebooks to `submitted/<student>/<chapter>/`; return the files."""
    written = []
    for student, text in notebooks.items():
        path = chapter.root / "submitted" / student / chapter.id / f"{chapter.name}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        written.append(path)
    return written
