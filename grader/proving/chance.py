"""Is a mistake found whatever the seed, or by luck? Those that a single check finds are asked with more.

A check that draws its inputs may find a mistake with one seed and pass it with another. A proof has one
seed: who draws another one, with a commit that has nothing to do with it, would be the first to know.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from grader.box.fork import Fork
from grader.building.graders import ready_probes
from grader.course.answers import Role
from grader.course.course import Chapter, Exercise
from grader.evidence.outcome import Ended
from grader.inside.process.budget import Budget, changed
from grader.proving.validate import Problem
from grader.submission.program import Program
from grader.verdict.grading import ExerciseGrader, OpenTransport
from grader.verdict.interview import Interview
from grader.verdict.marks import Mark

SEEDS = 8
"""Other seeds that it is asked with: what is missed with one in four is seen nine times of ten."""


def found_by_chance(
    chapter: Chapter, exercise: Exercise, marks: Mapping[str, Sequence[Mark]], seed: int
) -> list[Problem]:
    """Return the mistakes that pass with other seeds, of those that a single check finds.

    marks: of the mistakes, by their names, as `seed` made them
    """
    probes = ready_probes(chapter)
    grader = ExerciseGrader(chapter, exercise, probes)
    problems = []
    open_fork = partial(Fork, probes, changed(Budget(), exercise.budget))
    for answer in grader.answers:
        known = marks.get(answer.name, ())
        finding = [number for number, mark in enumerate(known) if mark.failure]
        if answer.role is not Role.MISTAKE or len(finding) != 1:
            continue
        program = grader.attempt_with(answer.source).program
        passed = [
            other
            for other in range(seed + 1, seed + 1 + SEEDS)
            if _passes(grader, program, other, open_fork, finding)
            and _passes(grader, program, other, open_fork)
        ]
        if passed:
            name = grader.suite.checks[finding[0]].name
            what = f"is passed with {len(passed)} of {SEEDS} other seeds, such as {passed[0]}"
            problems.append(
                Problem(
                    f"{exercise.id}, mistake {answer.name}",
                    f"{what}: {name} found it by chance",
                    f"ask for it whatever is drawn, in grader/{chapter.id}/test_{exercise.id}.py",
                )
            )
    return problems


def _passes(
    grader: ExerciseGrader,
    program: Program,
    seed: int,
    open_fork: OpenTransport,
    order: Sequence[int] | None = None,
) -> bool:
    """Say whether a program passes checks, all or those of these numbers."""
    interview = Interview(open_fork(), grader.exercise.off_limits, seed)
    try:
        interview.load(program)
        runs = grader.suite.run(
            interview, seed, order=order, stop=lambda runs: runs[-1].error is not None
        )
    except Ended:
        return False
    finally:
        interview.close()
    return runs[-1].error is None and not interview.tripped
