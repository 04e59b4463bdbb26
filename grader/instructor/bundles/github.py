"""What a job on GitHub makes of a submission: GitHub Classroom's runner result, Classroom 50's
result.json, and a summary to read.

Students see all that such a job prints, so nothing here is for instructors alone.
"""

from __future__ import annotations

import base64
import json
import os
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any

from grader.box.tiers import BoxUnavailable
from grader.feedback.render import points_text, to_text
from grader.files import write_atomically
from grader.instructor.bundles.shown import UNBOXED, plain
from grader.instructor.bundles.single import Single, grade_folder, read_bundle, strongest_tier
from grader.verdict.verdict import Verdict

HUNDREDTHS = 100
"""Classroom 50 counts in whole points; ours have two decimals. So its points are our hundredths."""

_MESSAGE = 1_000
"""Characters of one message in the runner result: the reporter reads all of it from one environment
variable, which Linux limits to 128 KiB. The whole text is in the summary.
"""


def runner_result(done: Single) -> dict[str, Any]:
    """Return the result that GitHub Classroom's reporter reads, as its graders write it.

    If something could not be graded there is no `max_score`, and the reporter then reports no points.
    """
    tests = [
        {
            "name": _title(verdict),
            "status": "pass" if _passed(verdict) else "fail" if verdict.scored else "error",
            "message": None if _passed(verdict) else plain(to_text(verdict))[:_MESSAGE],
            "test_code": "",
            "filename": "",
            "line_no": 0,
            "duration": 0,
            **({"score": verdict.points} if verdict.scored else {}),
        }
        for verdict in done.verdicts
    ]
    whole = _is_whole(done)
    result = {"version": 1, "status": _status(done), "tests": tests}
    if whole:
        result["max_score"] = sum(verdict.max_points for verdict in done.verdicts)
    if done.refused:
        tests.append({"name": "submission", "status": "error", "message": done.refused})
    return result


def classroom50_result(
    done: Single, environment: Mapping[str, str], now: datetime
) -> dict[str, Any]:
    """Return Classroom 50's result, version 1, in hundredths of points.

    If something could not be graded it is 0 of 0, without tests: what its runner says of errors.
    """
    tests = [
        {
            "test-name": _title(verdict),
            "passed": _passed(verdict),
            "score": round(verdict.points * HUNDREDTHS),
            "max-score": round(verdict.max_points * HUNDREDTHS),
        }
        for verdict in (done.verdicts if _is_whole(done) else ())
    ]
    return {
        "schema": "classroom50/result/v1",
        "classroom": environment["CLASSROOM"],
        "assignment": environment["ASSIGNMENT"],
        "assignment_type": environment.get("ASSIGNMENT_TYPE", "individual"),
        "owner": environment.get("OWNER") or environment["USERNAME"],
        "submission": environment["SUBMISSION_TAG"],
        "commit": environment["COMMIT_URL"],
        "release": environment["RELEASE_URL"],
        "review": environment.get("REVIEW_URL") or environment["COMMIT_URL"],
        "datetime": f"{now.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}",  # its runner puts the commit's
        "score": sum(test["score"] for test in tests),
        "max-score": sum(test["max-score"] for test in tests),
        "tests": tests,
    }


def summary(done: Single) -> str:
    """Return the whole feedback as GitHub's Markdown; nothing of a student's is markup in it."""
    if done.refused:
        return f"### Not graded\n\n<p>{escape(done.refused)}</p>\n"
    lines = [f"### {_headline(done)}", "", "| exercise | outcome | points |", "|---|---|--:|"]
    for verdict in done.verdicts:
        name = escape(_title(verdict)).replace("|", "\\|")
        lines.append(f"| {name} | {verdict.outcome} | {points_text(verdict)} |")
    for verdict in done.verdicts:
        if not _passed(verdict):
            text = escape(plain(to_text(verdict)))
            title = escape(_title(verdict))
            lines += ["", f"<details><summary>{title}</summary>", f"<pre>{_unbroken(text)}</pre>"]
            lines.append("</details>")
    return "\n".join(lines) + "\n"


def _unbroken(text: str) -> str:
    """Return text whose empty lines do not end an HTML block of Markdown."""
    return "\n".join(line or "&#8203;" for line in text.split("\n"))


def _headline(done: Single) -> str:
    if not _is_whole(done):
        return "A person has to look at this: there is no total yet"
    points = round(sum(verdict.points for verdict in done.verdicts), 2)
    return f"{points:g} of {sum(verdict.max_points for verdict in done.verdicts):g} points"


def _is_whole(done: Single) -> bool:
    """Does every exercise have a score?"""
    return not done.refused and all(verdict.scored for verdict in done.verdicts)


def _status(done: Single) -> str:
    if not _is_whole(done):
        return "error"
    return "pass" if all(map(_passed, done.verdicts)) else "fail"


def _passed(verdict: Verdict) -> bool:
    return verdict.scored and verdict.points == verdict.max_points


def _title(verdict: Verdict) -> str:
    return verdict.title.replace("`", "")


def main(house: Path, folder: Path) -> int:
    """Grade a student's checkout; tell whoever started us. Return the exit status."""
    environment = os.environ
    try:
        tier = strongest_tier()
        done = grade_folder(read_bundle(house), folder, tier)
    except BoxUnavailable as error:
        print(f"::error::{UNBOXED}")
        print("\n".join(f"  {line}" for line in str(error).splitlines()))
        return 1
    print(f"{tier.title}\n{_headline(done)}")
    if "SUBMISSION_TAG" in environment:
        outputs = _for_classroom50(done, folder, environment)
    else:
        _append(environment, "GITHUB_STEP_SUMMARY", summary(done))
        result = json.dumps(runner_result(done)).encode()
        outputs = {"result": base64.b64encode(result).decode()}
    _append(environment, "GITHUB_OUTPUT", "".join(f"{k}={v}\n" for k, v in outputs.items()))
    return 0


def _for_classroom50(done: Single, folder: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Write the files that Classroom 50's runner reads; its Releases and summaries show them."""
    result = classroom50_result(done, environment, datetime.now(UTC))
    for name, text in (
        ("result.json", json.dumps(result, indent=1)), ("release-body.md", summary(done)),
    ):  # fmt: skip
        (folder / name).unlink(missing_ok=True)  # a student's, or a link
        write_atomically(folder / name, text)
    status = {"pass": "success", "fail": "failure", "error": "error"}[_status(done)]
    return {"status": status, "summary": done.refused or _headline(done)}


def _append(environment: Mapping[str, str], name: str, text: str) -> None:
    if name in environment:
        with open(environment[name], "a", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
