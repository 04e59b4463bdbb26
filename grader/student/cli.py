"""The commands of a student, which `undertorch` lists beside its others."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.text import Text

from grader.core.course import CourseError, find_course

if TYPE_CHECKING:
    from grader.student.check import Checked
    from grader.student.targets import Target

app = typer.Typer()
out = Console(highlight=False)
err = Console(stderr=True, highlight=False)

PANEL = "For students"

What = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[NOTEBOOK|CHAPTER|EXERCISE]...",
        help="A notebook's path, a `.py` file beside one, a chapter (`ch01_formats`, `ch01`, "
        "`formats`) or an exercise (`decode`). All your notebooks if left out; in a chapter's "
        "folder, that chapter.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for a script, and nothing else.")]


def _refuse(message: str, as_json: bool = False) -> NoReturn:
    """Say what is wrong and how to mend it; end with status 2."""
    if as_json:
        typer.echo(json.dumps({"error": message}))
    err.print(Text("undertorch: ", "red") + Text(message), soft_wrap=True)
    raise typer.Exit(2)


@app.command(rich_help_panel=PANEL)
def check(what: What = None, as_json: Json = False) -> None:
    """Grade your work here in the terminal, with the verdicts that the notebook gives.

    What counts is what is saved. An answer may also stand in a file of its own beside the notebook,
    named after the exercise (my/ch01_formats/decode.py); it is graded while the cell holds its
    stub, and the verdict says so. Your code runs on this machine as it is, without a sandbox.

    Exit status: 0 all that was checked passed, 1 something did not (what is not written yet
    has not passed), 2 called wrongly, or a file is missing or broken.
    """
    from grader.student.targets import find_targets

    try:
        targets = find_targets(find_course(), what or [])
    except CourseError as error:
        _refuse(str(error), as_json)
    checked, troubles = _check_all(targets, quiet=as_json)
    if as_json:
        typer.echo(json.dumps(_as_data(checked, troubles), indent=1))
    else:
        _summary(checked)
    for trouble in troubles:
        err.print(Text("undertorch: ", "red") + Text(trouble), soft_wrap=True)
    if troubles:
        raise typer.Exit(2)
    if not all(_passed(item) for item in checked):
        raise typer.Exit(1)


def _check_all(targets: Sequence[Target], quiet: bool) -> tuple[list[Checked], list[str]]:
    """Check every target and show each verdict as it comes; return them, and what went wrong."""
    with _Working(quiet) as working:
        working.on("loading PyTorch")
        from grader.student.check import Checker
        from grader.student.work import read_work

        checker, checked, troubles = Checker(), [], []
        for target in targets:
            alone = target.named and target.notebook.with_name(f"{target.exercises[0]}.py").exists()
            try:
                work = read_work(target.chapter, target.notebook, alone=alone)
            except CourseError as error:
                troubles.append(str(error))
                continue
            if not quiet:
                working.off()
                _head(work.notebook if work.notebook.exists() else work.judged(target.exercises[0]))
            verdicts = checker.check(work, target.exercises)
            for number, exercise in enumerate(target.exercises, 1):
                working.on(f"checking {exercise} ({number} of {len(target.exercises)})")
                item = next(verdicts)
                checked.append(item)
                working.off()
                if not quiet:
                    show(item, whole=target.named)
    return checked, troubles


class _Working:
    """A line at the bottom of a terminal that says what is going on; nothing anywhere else.

    Not rich's status: that has a thread, and this process forks.
    """

    def __init__(self, quiet: bool = False) -> None:
        self._shows = err.is_terminal and not quiet
        self._shown = False

    def __enter__(self) -> _Working:
        return self

    def __exit__(self, *args: object) -> None:
        self.off()

    def on(self, text: str) -> None:
        self.off()
        if self._shows:
            err.print(Text(f"… {text}", "dim"), end="", no_wrap=True)
            err.file.flush()
            self._shown = True

    def off(self) -> None:
        if self._shown:
            err.file.write("\r\x1b[2K")
            err.file.flush()
            self._shown = False


def _head(path: Path) -> None:
    from grader.student.folder import shown

    age = max(time.time() - path.stat().st_mtime, 0)
    out.print(Text(f"{shown(path)}, saved {_ago(age)}", "bold"), soft_wrap=True)


def _ago(seconds: float) -> str:
    for length, name in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= length:
            number = int(seconds // length)
            return f"{number} {name}{'' if number == 1 else 's'} ago"
    return "just now"


_STYLES = {"passed": "green", "not attempted": "dim"}


def show(item: Checked, whole: bool) -> None:
    """Print a verdict: all of it, or one line for what passed and the first failure of what did not."""
    from grader.core.render import points_text, to_text

    verdict = item.verdict
    style = _STYLES.get(str(verdict.outcome), "red")
    if not whole and str(verdict.outcome) in _STYLES:
        line = Text("  ") + Text(f"{verdict.outcome}  ", style)
        line += Text(f"{verdict.exercise}  {points_text(verdict)}")
        lines = [line, *(Text(f"    {note}") for note in verdict.notes)]
    else:
        failed = [one for one in verdict.checks if one.message]
        if not whole:  # a page per exercise would bury the others
            verdict = replace(verdict, checks=tuple(failed[:1]))
        head, *rest = to_text(verdict).split("\n")
        if not whole and len(failed) > 1:
            more = len(failed) - 1
            rest.append(
                f"  {more} more {'check' if more == 1 else 'checks'} failed. "
                f"To see all: undertorch check {verdict.exercise}"
            )
        lines = [Text(f"{verdict.exercise}  ", "bold") + Text(head, style)]
        lines += [Text(line, _style_of(line)) for line in rest]
    for line in lines:
        out.print(line, soft_wrap=True)


def _style_of(line: str) -> str:
    return {"✓": "green", "✗": "red"}.get(line.strip()[:1], "")


def _passed(item: Checked) -> bool:
    return str(item.verdict.outcome) == "passed"


def _summary(checked: Sequence[Checked]) -> None:
    if len(checked) < 2:
        return
    passed = sum(map(_passed, checked))
    points = sum(item.verdict.points for item in checked)
    most = sum(item.verdict.max_points for item in checked)
    out.print(f"{passed} of {len(checked)} exercises passed, {points:g} of {most:g} points.")


def _as_data(checked: Sequence[Checked], troubles: Sequence[str]) -> dict[str, Any]:
    return {
        "passed": all(map(_passed, checked)) and not troubles,
        "points": sum(item.verdict.points for item in checked),
        "max_points": sum(item.verdict.max_points for item in checked),
        "exercises": [
            {
                "chapter": item.chapter.id,
                "file": str(item.judged),
                "seconds": round(item.seconds, 3),
                **item.verdict.to_data(),
            }
            for item in checked
        ],
        "errors": list(troubles),
    }
