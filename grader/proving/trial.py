"""Graders on trial: do the checks of an exercise kill the mutants of its reference solution?"""

from __future__ import annotations

import resource
import time
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from grader.box.fork import Fork
from grader.building.graders import ready_probes
from grader.course.course import Chapter, Exercise, read_reference
from grader.evidence.outcome import Ended
from grader.inside.process.budget import Budget, changed
from grader.submission.mutants import Mutant, mutants
from grader.submission.program import judged_text
from grader.submission.scan import scan
from grader.verdict.grading import ExerciseGrader, OpenTransport
from grader.verdict.interview import Interview
from grader.verdict.verdict import says

LEAST_SECONDS = 5.0
"""However fast the reference is, each reply about a mutant is waited for as long."""

LEAST_CPU_SECONDS = 1.0
"""However fast the reference is, a mutant may use as much of a processor."""

TIMES_REFERENCE = 5.0
"""What takes longer than so many times what the whole reference took just now never ends.

No number of seconds alone: then a mutant counts as killed that a busy machine has only slowed down.
"""


@dataclass(frozen=True)
class Trial:
    """What became of the mutants of one exercise.

    `broken` has a line for each of them on which a check ended with an error of its own: it rejects
    such an answer without a word about it.
    """

    chapter: Chapter
    exercise: Exercise
    made: int
    killed: int
    equivalent: int
    survivors: tuple[Mutant, ...]
    stale: tuple[str, ...]
    broken: tuple[str, ...]

    @property
    def share(self) -> float:
        """Killed, of those that are not listed as equivalent."""
        count = self.made - self.equivalent
        return self.killed / count if count else 1.0


def try_exercise(
    chapter: Chapter, exercise: Exercise, seed: int, *, every: int = 1, first: int = 0
) -> Trial:
    """Run mutants of an exercise's reference solution against its checks: all, or every n-th."""
    probes = ready_probes(chapter)
    grader = ExerciseGrader(chapter, exercise, probes)
    source = next(c.source for c in read_reference(chapter) if c.label == exercise.id)
    whole = changed(Budget(), exercise.budget)
    as_written = range(len(grader.suite.checks))
    start, used = time.monotonic(), _cpu_of_children()
    _tried(grader, source, seed, lambda: Fork(probes, whole), as_written)
    wall = max(LEAST_SECONDS, TIMES_REFERENCE * (time.monotonic() - start))
    cpu = max(LEAST_CPU_SECONDS, TIMES_REFERENCE * (_cpu_of_children() - used))
    budget = replace(
        whole,
        wall_seconds=min(whole.wall_seconds, wall),
        cpu_seconds=min(whole.cpu_seconds, cpu),
    )
    all_mutants = mutants(source)
    made = all_mutants[first % every :: every]
    excused = equivalents(chapter).get(exercise.id, {})
    equivalent = [mutant for mutant in made if mutant.id in excused]
    survivors, broken = [], []
    order = list(as_written)
    for mutant in made:
        if mutant.id in excused:
            continue
        tried = _tried(grader, mutant.source, seed, lambda: Fork(probes, budget), order)
        if tried.broke:  # a check may count on those before it: their word comes first
            tried = _tried(grader, mutant.source, seed, lambda: Fork(probes, budget), as_written)
        if tried.survived:
            survivors.append(mutant)
        if tried.broke:
            broken.append(f"{mutant.id}: {tried.broke}")
        if tried.failed is not None:  # its neighbours mostly fail the same one
            order.remove(tried.failed)
            order.insert(0, tried.failed)
    ids = {mutant.id for mutant in all_mutants}
    return Trial(
        chapter,
        exercise,
        len(made),
        len(made) - len(equivalent) - len(survivors),
        len(equivalent),
        tuple(survivors),
        tuple(id for id in excused if id not in ids),
        tuple(broken),
    )


def _cpu_of_children() -> float:
    """Return the processor time of children that have ended, and of theirs."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime


@dataclass(frozen=True)
class _Tried:
    """What became of an answer: which check it failed first, if any, and what broke there."""

    survived: bool = False
    failed: int | None = None
    broke: str = ""


def _tried(
    grader: ExerciseGrader,
    source: str,
    seed: int,
    open_fork: OpenTransport,
    order: Sequence[int],
) -> _Tried:
    """Ask an answer by the checks in that order, until it fails one."""
    attempt = grader.attempt_with(source)
    if scan(judged_text(attempt.program), grader.exercise.off_limits):
        return _Tried()
    interview = Interview(open_fork(), grader.exercise.off_limits, seed)
    try:
        interview.load(attempt.program)
        runs = grader.suite.run(
            interview, seed, stop=lambda runs: runs[-1].error is not None, order=order
        )
    except Ended:
        return _Tried()
    finally:
        interview.close()
    last = runs[-1]
    if last.error is None:
        return _Tried(survived=not interview.tripped)
    failed = order[len(runs) - 1]
    if says(last.error):
        return _Tried(failed=failed)
    return _Tried(
        failed=failed, broke=f"{last.check.name}, {type(last.error).__name__}: {last.error}"
    )


def equivalents(chapter: Chapter) -> dict[str, dict[str, str]]:
    """Return the mutants that change nothing a student could be asked for, with the reason.

    They are listed in `equivalent.toml`: a table per exercise, `"was => now" = "reason"`.
    """
    path = chapter.graders / "equivalent.toml"
    if not path.is_file():
        return {}
    listed: dict[str, dict[str, str]] = tomllib.loads(path.read_text(encoding="utf-8"))
    return listed
