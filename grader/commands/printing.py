"""What the commands of a student print."""

from __future__ import annotations

import json
import textwrap
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer
from rich.text import Text

from grader.commands.consoles import err, out
from grader.course.course import CourseError

if TYPE_CHECKING:
    from grader.student.check import Checked
    from grader.student.help import Page
    from grader.student.update import Updated


def refuse(error: CourseError, as_json: bool) -> NoReturn:
    """Say to a script what is wrong. The command ends as with any `CourseError`."""
    if as_json:
        typer.echo(json.dumps({"error": str(error)}))
    raise error


class Working:
    """A line at the bottom of a terminal that says what is going on; nothing anywhere else.

    Not rich's status: that has a thread, and this process forks.
    """

    def __init__(self, quiet: bool = False) -> None:
        # a dumb terminal cannot take a line back, nor can a pipe that FORCE_COLOR calls a terminal
        self._shows = err.file.isatty() and not err.is_dumb_terminal and not quiet
        self._shown = False

    def __enter__(self) -> Working:
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


def show_head(path: Path) -> None:
    from grader.student.folder import display_path

    age = max(time.time() - path.stat().st_mtime, 0)
    out.print(Text(f"{display_path(path)}, saved {_ago(age)}", "bold"), soft_wrap=True)


def _ago(seconds: float) -> str:
    for length, name in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= length:
            number = int(seconds // length)
            return f"{number} {name}{'' if number == 1 else 's'} ago"
    return "just now"


_STYLES = {"passed": "green", "not attempted": "dim"}


def show_verdict(item: Checked, whole: bool) -> None:
    """Print a verdict: all of it, or one line for what passed and the first failure of what did not."""
    from grader.feedback.render import points_text, to_text

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
        room = out.width if out.is_terminal else None
        head, *rest = to_text(verdict, room).split("\n")
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


def passed(item: Checked) -> bool:
    return str(item.verdict.outcome) == "passed"


def show_summary(checked: Sequence[Checked]) -> None:
    if len(checked) < 2:
        return
    count = sum(map(passed, checked))
    points = sum(item.verdict.points for item in checked)
    most = sum(item.verdict.max_points for item in checked)
    out.print(f"{count} of {len(checked)} exercises passed, {points:g} of {most:g} points.")


def as_data(checked: Sequence[Checked], troubles: Sequence[str]) -> dict[str, Any]:
    return {
        "passed": all(map(passed, checked)) and not troubles,
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


def show_page(page: Page) -> None:
    """Print a hint or a solution, in colours on a terminal; code piped into a file is only code."""
    from rich.markdown import Markdown
    from rich.syntax import Syntax

    from grader.student.help import Kind

    for number, (kind, text) in enumerate(page.parts):
        if kind is Kind.HEADING:
            out.print(Text(f"{text}\n", "bold"), soft_wrap=True)
        elif not page.granted:  # sentences of ours: a pipe gets each on its line
            out.print(Text(text), soft_wrap=True)
        elif kind is Kind.TEXT:
            if number and page.parts[0][0] is Kind.CODE:
                out.print()
            out.print(Markdown(text))
        elif out.is_terminal:
            out.print(Syntax(text, "python", background_color="default"))
        else:
            typer.echo(text)


def show_update(one: Updated, dry: bool) -> None:
    from grader.student.folder import display_path

    report = one.report
    style = {"updated": "green", "new": "green", "not updated": "red"}.get(one.state, "dim")
    state = f"would be {one.state}" if dry and one.state in ("updated", "new") else one.state
    out.print(Text(f"{one.chapter}  ", "bold") + Text(state, style), soft_wrap=True)
    if one.trouble:
        out.print(Text(f"  {one.trouble}"), soft_wrap=True)
    if one.state == "updated":
        counts = (
            (report.added, "new"), (report.changed, "changed"),
            (report.merged, "merged with your changes"), (report.removed, "removed"),
        )  # fmt: skip
        said = ", ".join(f"{number} {word}" for number, word in counts if number)
        answers, own = len(report.answers), report.own
        yours = f"{answers} {'answer' if answers == 1 else 'answers'}, "
        yours += f"{own} other {'cell' if own == 1 else 'cells'}"
        out.print(
            f"  the course's cells: {said or 'as before'}; kept of yours: {yours}", soft_wrap=True
        )
    for sentence in report.said:
        out.print(Text(textwrap.indent(sentence, "  ")), soft_wrap=True)
    if one.kept:
        out.print(f"  As it was: {display_path(one.kept)}", soft_wrap=True)
        out.print(
            "  If the notebook is open, load it from disk before you go on. Where JupyterLab asks: "
            "Revert.",
            soft_wrap=True,
        )
