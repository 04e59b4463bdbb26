"""Gradescope's results.json, after its autograder specifications, and the program that writes it."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from grader.box.tiers import BoxUnavailable
from grader.course.exercise import Exercise
from grader.files import write_atomically
from grader.instructor.bundles.shown import UNBOXED, for_instructor, for_student
from grader.instructor.bundles.single import Single, grade_folder, read_bundle, strongest_tier
from grader.verdict.verdict import Verdict

_PARTLY = "Not all of your submission could be graded; see below. A person will look at it."


def results(done: Single, exercises: tuple[Exercise, ...], seconds: float) -> dict[str, Any]:
    """Return the results of a submission.

    What could not be graded has the most points that there are and no score. With it comes a test
    that students do not see: Gradescope then shows them no total either.
    """
    tests = [_test(number, verdict) for number, verdict in enumerate(done.verdicts, 1)]
    if done.refused:
        tests = [_unscored(number, exercise) for number, exercise in enumerate(exercises, 1)]
    reasons = [f"{v.exercise}: {v.review}" for v in done.verdicts if not v.scored]
    output = _PARTLY if reasons else done.refused
    if done.refused:
        reasons = [done.refused]
    if reasons:
        tests.append(_hidden("\n".join(reasons)))
    return _results(output, tests, seconds)


def unboxed(exercises: tuple[Exercise, ...], seconds: float) -> dict[str, Any]:
    """Return the results where nothing was run, because nothing here confines what runs."""
    tests = [_unscored(number, exercise) for number, exercise in enumerate(exercises, 1)]
    return _results(UNBOXED, [*tests, _hidden("There is no sandbox; see the output.")], seconds)


def _results(output: str, tests: list[dict[str, Any]], seconds: float) -> dict[str, Any]:
    return {
        "execution_time": round(seconds),
        "output": output,
        "output_format": "text",
        "test_output_format": "text",
        "test_name_format": "text",
        "visibility": "visible",
        "stdout_visibility": "hidden",  # for instructors
        "tests": tests,
    }


def _test(number: int, verdict: Verdict) -> dict[str, Any]:
    score = {"score": verdict.points} if verdict.scored else {}
    return {
        "name": verdict.title.replace("`", ""),
        "number": str(number),
        **score,
        "max_score": verdict.max_points,
        "status": "passed" if verdict.points == verdict.max_points else "failed",
        "output": for_student(verdict),
        "visibility": "visible",
    }


def _unscored(number: int, exercise: Exercise) -> dict[str, Any]:
    return {
        "name": exercise.title.replace("`", ""),
        "number": str(number),
        "max_score": exercise.points,
        "status": "failed",
        "output": "It was not graded.",
        "visibility": "visible",
    }


def _hidden(reasons: str) -> dict[str, Any]:
    return {
        "name": "For instructors: needs review",
        "status": "failed",
        "output": f"Without a score until you give one:\n{reasons}",
        "visibility": "hidden",
    }


def main(root: Path) -> int:
    """Grade what lies in Gradescope's folders; return the exit status."""
    started = time.monotonic()
    bundle = read_bundle(root / "source" / "undertorch")
    exercises = bundle.chapter.exercises
    target = root / "results" / "results.json"
    try:
        tier = strongest_tier()
        done = grade_folder(bundle, root / "submission", tier)
    except BoxUnavailable as error:
        print(error)
        write_atomically(target, json.dumps(unboxed(exercises, time.monotonic() - started)))
        return 1
    print(for_instructor(done, tier))
    found = results(done, exercises, time.monotonic() - started)
    write_atomically(target, json.dumps(found, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
