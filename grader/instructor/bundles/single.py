"""Grades one submission's folder, wherever a bundle was unpacked: no gradebook, no evidence kept."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grader.box import nothing
from grader.box.box import Box
from grader.box.tiers import BoxUnavailable, Tier
from grader.course.course import Chapter
from grader.inside.process.budget import Budget
from grader.instructor.bundles.material import TERMS
from grader.nbgrader.intake import printable
from grader.nbgrader.run import Run, Terms, grade_notebook
from grader.verdict.verdict import Verdict

LOOKED_AT = 2_000
"""Most files and folders of a submission that are looked at for its notebook."""


@dataclass(frozen=True)
class Bundle:
    """An unpacked bundle: its chapter, what an exercise may spend, the notebook as released."""

    chapter: Chapter
    budget: Budget
    released: Mapping[str, Any]


@dataclass(frozen=True)
class Single:
    """One graded submission. `refused` says in one sentence why nothing of it could be graded."""

    verdicts: tuple[Verdict, ...]
    seed: int = 0
    refused: str = ""


class NoNotebook(Exception):
    """A submission without one notebook to grade; the message is a sentence for the student."""


def read_bundle(house: Path) -> Bundle:
    """Return the bundle that was unpacked into the folder `house`."""
    terms = json.loads((house / TERMS).read_text(encoding="utf-8"))
    chapter = Chapter(house, terms["chapter"], house if terms["chosen"] else None)
    return Bundle(chapter, Budget(**terms["budget"]), terms["released"])


def strongest_tier() -> Tier:
    """Return the strongest tier that works here, by starting it: 1, or 2 where root has no namespaces.

    For a machine that lives for one submission: elsewhere a step down is no program's to choose.
    Raises `BoxUnavailable` where neither works.
    """
    here, said = Path(nothing.__file__), []
    for tier in (Tier.NAMESPACES, Tier.CONTAINER):
        try:
            with Box(here, inside=here, tier=tier):
                return tier
        except BoxUnavailable as error:
            said.append(f"{tier.title}: {error}")
    raise BoxUnavailable("\n".join(said))


def grade_folder(bundle: Bundle, folder: Path, tier: Tier) -> Single:
    """Return the verdicts on the notebook in a submission's folder."""
    chapter = bundle.chapter
    try:
        found = find_notebook(folder, chapter.released.name)
    except NoNotebook as error:
        return Single((), refused=str(error))
    terms = Terms(secrets.randbits(48), bundle.budget, tier)
    run = Run(chapter, terms, bundle.released)
    try:
        graded = grade_notebook(run, run.reader.take(found, "submission", ()))
    finally:
        run.close()
    return Single(tuple(graded.verdicts.values()), terms.seed)


def find_notebook(folder: Path, name: str) -> Path:
    """Return the notebook to grade: the one called `name`, else the only one. Raises `NoNotebook`."""
    notebooks = sorted(_notebooks(folder))
    named = [path for path in notebooks if path.name == name]
    chosen = named or notebooks
    if len(chosen) == 1:
        return chosen[0]
    if not chosen:
        raise NoNotebook(f"There is no notebook in your submission. Hand in {name}.")
    listed = ", ".join(printable(str(path.relative_to(folder))) for path in chosen[:5])
    raise NoNotebook(
        f"There are {len(chosen)} notebooks in your submission ({listed}), so none was graded. "
        f"Hand in one, called {name}."
    )


def _notebooks(folder: Path) -> Iterator[Path]:
    """Yield the notebooks below a folder; hidden folders, and links, are not looked into."""
    seen = 0
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            path = Path(parent, name)
            if path.suffix == ".ipynb" and not name.startswith("."):
                yield path
        seen += len(folders) + len(files)
        if seen > LOOKED_AT:
            raise NoNotebook(
                f"Your submission has more than {LOOKED_AT} files. Hand in one notebook."
            )
