"""How often `locate` names a line of a wrong answer, and how long that takes.

Over what `undertorch tried` keeps, its wrong answers that the graders reject; with `--mistakes` over
the known mistakes in place of these, each without its own edit and those that explain the same. One
JSON object a line on standard output, for a person to judge the lines; the shares and times at the end
on standard error.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from itertools import count

import torch

from grader.building.graders import ready_probes
from grader.course.answers import Role
from grader.course.course import Chapter, Exercise, find_course
from grader.course.tried import Kind, read_tried
from grader.inside.process.budget import Budget, changed
from grader.student.search import in_forks
from grader.verdict.grading import ExerciseGrader
from grader.verdict.known import PRACTICE_SEED
from grader.verdict.locate import SECONDS, locate


def main() -> None:
    """Locate in every answer of the chapters or exercises named, all if none is."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("names", nargs="*")
    arguments.add_argument("--mistakes", action="store_true")
    arguments.add_argument("--every", type=int, default=1, help="each n-th answer alone")
    arguments.add_argument("--seconds", type=float, default=SECONDS)
    options = arguments.parse_args()
    torch.set_num_threads(1)
    rows: list[dict[str, object]] = []
    number = count()
    for chapter in find_course().chapters():
        for exercise in chapter.exercises:
            if options.names and not {chapter.id, exercise.id} & set(options.names):
                continue
            for row in _located(chapter, exercise, options, number):
                print(json.dumps(row, ensure_ascii=False), flush=True)
                rows.append(row)
    _say(rows)


def _located(
    chapter: Chapter, exercise: Exercise, options: argparse.Namespace, number: Iterator[int]
) -> Iterator[dict[str, object]]:
    probes = ready_probes(chapter)
    grader = ExerciseGrader(chapter, exercise, probes)
    budget = changed(Budget(), exercise.budget)
    for name, why, source, without in _answers(grader, options.mistakes):
        if next(number) % options.every:
            continue
        attempt = grader.attempt_with(source)
        start, worked = time.monotonic(), _processor_seconds()
        found = locate(
            grader,
            in_forks(attempt, exercise.id, grader.attempt_with, probes, budget),
            PRACTICE_SEED,
            seconds=options.seconds,
            without=without,
        )
        took = time.monotonic() - start
        if found.why:  # not rejected by a check
            continue
        lines = [asdict(one) for one in found.variants]
        for line in lines:
            del line["source"]
        yield {
            "chapter": chapter.id,
            "exercise": exercise.id,
            "name": name,
            "why": why,
            "lines": lines,
            "tried": found.tried,
            "all tried": found.all_tried,
            "seconds": round(took, 2),
            "processor": round(_processor_seconds() - worked, 2),
        }


def _processor_seconds() -> float:
    """Return what this process and its ended forks have used: on a busy machine it tells more."""
    return sum(os.times()[:4])


def _answers(
    grader: ExerciseGrader, mistakes: bool
) -> Iterator[tuple[str, str, str, tuple[str, ...]]]:
    """Yield name, reason and text of each answer, and the known mistakes that are left out."""
    if not mistakes:
        for one in read_tried(grader.chapter, grader.exercise):
            if one.kind is Kind.WRONG:
                yield one.name, one.why, one.source, ()
        return
    known = [answer for answer in grader.answers if answer.role is Role.MISTAKE]
    for answer in known:
        alike = tuple(one.name for one in known if one.explanation == answer.explanation)
        yield answer.name, answer.explanation, answer.source, alike


def _say(rows: list[dict[str, object]]) -> None:
    located = [row for row in rows if row["lines"]]
    for label, some in (("all", rows), ("located", located)):
        times = sorted(float(str(row["seconds"])) for row in some)
        if times:
            late = times[min(len(times) - 1, int(0.95 * len(times)))]
            print(
                f"{label}: {len(times)}, median {statistics.median(times):.1f} s, p95 {late:.1f} s",
                file=sys.stderr,
            )
    if rows:
        print(f"located: {len(located) / len(rows):.1%}", file=sys.stderr)


if __name__ == "__main__":
    main()
