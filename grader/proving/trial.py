"""Graders on trial: do the checks of an exercise kill the mutants of its reference solution?"""

from __future__ import annotations

import multiprocessing
import subprocess
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from grader.box.fork import Fork
from grader.building.graders import ready_probes
from grader.course.course import Chapter, Course, Exercise, read_reference
from grader.evidence.outcome import Ended
from grader.files import write_whole
from grader.proving.mutants import Mutant, mutants
from grader.proving.validate import Proof, prove
from grader.submission.program import judged_text
from grader.submission.scan import scan
from grader.verdict.grading import ExerciseGrader, OpenTransport
from grader.verdict.interview import Interview

WALL_SECONDS = 10.0
"""A mutant that takes longer than this loops; the slowest reference needs a tenth of it."""


@dataclass(frozen=True)
class Trial:
    """What became of the mutants of one exercise."""

    chapter: Chapter
    exercise: Exercise
    made: int
    killed: int
    equivalent: int
    survivors: tuple[Mutant, ...]
    stale: tuple[str, ...]

    @property
    def share(self) -> float:
        """Killed, of those that are not listed as equivalent."""
        count = self.made - self.equivalent
        return self.killed / count if count else 1.0


def try_exercises(
    exercises: Sequence[tuple[Chapter, Exercise]], seed: int, jobs: int
) -> Iterator[tuple[Proof, Trial]]:
    """Yield proof and trial of each exercise, in order; `jobs` processes take one at a time."""
    spawn = multiprocessing.get_context("spawn")  # a fork would take torch's threads for its own
    with ProcessPoolExecutor(max(1, jobs), mp_context=spawn) as pool:
        yield from pool.map(
            _prove_and_try, *zip(*((c, e, seed) for c, e in exercises), strict=True)
        )


def _prove_and_try(chapter: Chapter, exercise: Exercise, seed: int) -> tuple[Proof, Trial]:
    return prove(chapter, exercise, seed), try_exercise(chapter, exercise, seed)


def try_exercise(chapter: Chapter, exercise: Exercise, seed: int, *, every: int = 1) -> Trial:
    """Run mutants of an exercise's reference solution against its checks: all, or every n-th."""
    probes = ready_probes(chapter)
    grader = ExerciseGrader(chapter, exercise, probes)
    source = next(c.source for c in read_reference(chapter) if c.label == exercise.id)
    all_mutants = mutants(source)
    made = all_mutants[::every]
    excused = equivalents(chapter).get(exercise.id, {})
    survivors = [
        mutant
        for mutant in made
        if mutant.id not in excused
        and _survives(grader, mutant, seed, lambda: Fork(probes, WALL_SECONDS))
    ]
    equivalent = [mutant for mutant in made if mutant.id in excused]
    ids = {mutant.id for mutant in all_mutants}
    return Trial(
        chapter,
        exercise,
        len(made),
        len(made) - len(equivalent) - len(survivors),
        len(equivalent),
        tuple(survivors),
        tuple(id for id in excused if id not in ids),
    )


def _survives(grader: ExerciseGrader, mutant: Mutant, seed: int, open_fork: OpenTransport) -> bool:
    attempt = grader.attempt_with(mutant.source)
    if scan(judged_text(attempt.program), grader.exercise.off_limits):
        return False
    interview = Interview(open_fork(), grader.exercise.off_limits, seed)
    try:
        interview.load(attempt.program)
        runs = grader.suite.run(interview, seed, stop=lambda runs: runs[-1].error is not None)
    except Ended:
        return False
    finally:
        interview.close()
    return all(run.error is None for run in runs) and not interview.tripped


def equivalents(chapter: Chapter) -> dict[str, dict[str, str]]:
    """Return the mutants that change nothing a student could be asked for, with the reason.

    They are listed in `equivalent.toml`: a table per exercise, `"was => now" = "reason"`.
    """
    path = chapter.graders / "equivalent.toml"
    if not path.is_file():
        return {}
    listed: dict[str, dict[str, str]] = tomllib.loads(path.read_text(encoding="utf-8"))
    return listed


_COLUMNS = (
    "points", "checks", "mistakes", "alternates", "mutants", "killed", "equivalent", "survived",
)  # fmt: skip


def as_table(trials: Iterable[tuple[Proof, Trial]]) -> str:
    """Return what was proved and tried in Markdown, a row for each exercise."""
    counts = {f"`{proof.exercise.id}`": _counts(proof, trial) for proof, trial in trials}
    counts["**all**"] = [sum(column) for column in zip(*counts.values(), strict=True)]
    rows = [("exercise", *_COLUMNS), ("---", *["--:"] * len(_COLUMNS))]
    rows += [(name, *map(str, numbers)) for name, numbers in counts.items()]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _counts(proof: Proof, trial: Trial) -> list[int]:
    points = int(proof.exercise.points)
    survived = len(trial.survivors)
    known = [points, proof.checks, proof.mistakes, proof.alternates]
    return [*known, trial.made, trial.killed, trial.equivalent, survived]


def write_section(
    path: Path, course: Course, trials: Sequence[tuple[Proof, Trial]], seed: int
) -> None:
    """Put a chapter's table into the page about the trial, in the place of its older one.

    `trials` are all of one chapter. Its section names commit and seed; other chapters keep theirs, so
    a long run that is broken off has lost at most one chapter.
    """
    chapter = trials[0][1].chapter
    sections = _sections(path.read_text(encoding="utf-8")) if path.is_file() else {}
    git = ["git", "-C", str(course.root), "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
    sections[_heading(chapter)] = f"Made on commit `{commit}`, seed {seed}.\n\n{as_table(trials)}"
    shown = [
        f"## {title}\n\n{sections[title]}"
        for title in map(_heading, course.chapters())
        if title in sections
    ]
    page = [_HEAD.format(torch=version("torch").split("+")[0]), *shown]
    write_whole(path, ("\n\n".join(page) + "\n").encode())


def _heading(chapter: Chapter) -> str:
    return str(chapter.card["title"])


def _sections(page: str) -> dict[str, str]:
    """Return the text under each heading of the second level."""
    _, *sections = page.split("\n## ")
    return {
        title: text.strip() for title, _, text in (section.partition("\n") for section in sections)
    }


_HEAD = """---
description: What the checks of each exercise reject, counted
---

# The graders on trial

Made by `make trial` with torch {torch}.

- **Mistakes** are known wrong answers. Each is rejected, and with its own explanation.
- **Alternates** are right answers by other roads. Each gets every point, as the reference does.
- **Mutants** are the reference solution with one small thing changed: an operator, a number, a
  condition, a statement left out. One that survives shows what no check tests.
- **Equivalent** mutants change nothing that a student could be asked for. They are listed by hand,
  with the reason, in `equivalent.toml`.

The stub of each exercise scores 0 as *not attempted*, the built-in is *blocked*, and answers that
know nothing (`return None`, the first argument, zeros) score 0."""
