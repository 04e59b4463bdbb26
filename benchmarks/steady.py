"""Are verdicts steady? Every known answer, graded again and again on a machine that is too busy.

    python benchmarks/steady.py RUNS [CHAPTER ...] [--answers reference | right | all]

`right` are the reference and the alternates: those lose points where a check is unfair. Each run has
a seed of its own, and twice as many processes grade as there are cores. A verdict (outcome, points,
diagnosis) that is not the same in all runs is printed with its seeds.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor

from course import row

from grader.box.fork import Fork
from grader.building.sample import reference_sources
from grader.course.answers import Role
from grader.course.course import Chapter, find_course
from grader.inside.probe import load_probes
from grader.inside.serve import prepare
from grader.verdict.grading import ExerciseGrader

Found = dict[str, tuple[str, float, str]]
"""By answer: outcome, points, the mistake it was taken for."""


def main() -> None:
    """Print a line per exercise, and one per verdict that changed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("runs", type=int)
    parser.add_argument("chapters", nargs="*")
    parser.add_argument("--answers", choices=["reference", "right", "all"], default="all")
    options = parser.parse_args()
    runs, names = options.runs, options.chapters
    chapters = [c for c in find_course().chapters() if not names or c.id in names]
    jobs = 2 * (os.cpu_count() or 1)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        tasks = {
            (exercise.id, seed): pool.submit(_grade, chapter, exercise.id, seed, options.answers)
            for chapter in chapters
            for exercise in chapter.exercises
            for seed in range(1, runs + 1)
        }
        row(f"{runs} runs, {jobs} jobs", "answers", "verdicts", "changed", "slowest s")
        for exercise in dict.fromkeys(exercise for exercise, _ in tasks):
            _show(exercise, {s: task.result() for (e, s), task in tasks.items() if e == exercise})


def _show(exercise: str, found: dict[int, tuple[Found, float]]) -> None:
    seen: dict[str, dict[tuple[str, float, str], list[int]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for seed, (verdicts, _) in found.items():
        for answer, verdict in verdicts.items():
            seen[answer][verdict].append(seed)
    changed = {answer: kinds for answer, kinds in seen.items() if len(kinds) > 1}
    slowest = max(seconds for _, seconds in found.values())
    row(exercise, len(seen), len(seen) * len(found), len(changed), slowest)
    for answer, kinds in changed.items():
        for verdict, seeds in sorted(kinds.items(), key=lambda item: -len(item[1])):
            print(f"    {answer}: {verdict} with {len(seeds)} seeds, {seeds[:6]}")
    sys.stdout.flush()


def _grade(chapter: Chapter, name: str, seed: int, which: str) -> tuple[Found, float]:
    """Return the verdicts on known answers of an exercise, and the longest grading's seconds."""
    prepare(chapter.probes, chapter.preload)
    probes = load_probes(chapter.probes)
    grader = ExerciseGrader(chapter, chapter.exercise(name), probes)
    sources = {"reference": reference_sources(chapter)[name]}
    for answer in grader.answers:
        if which == "all" or (which == "right" and answer.role is Role.ALTERNATE):
            sources[answer.name] = answer.source
    found, slowest = {}, 0.0
    for answer, source in sources.items():
        begin = time.perf_counter()
        verdict = grader.grade(
            grader.attempt_with(source), lambda: Fork(probes), seed, lambda: Fork(probes)
        )
        slowest = max(slowest, time.perf_counter() - begin)
        found[answer] = (verdict.outcome.value, verdict.points, verdict.mistake or "")
    return found, slowest


if __name__ == "__main__":
    main()
