"""The commands of a student, which `undertorch` lists beside its others."""

from __future__ import annotations

import json
import textwrap
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.text import Text

from grader.core.course import CourseError, find_course

if TYPE_CHECKING:
    from rich.syntax import Syntax

    from grader.student.check import Checked, Checker
    from grader.student.folder import Folder
    from grader.student.targets import Target
    from grader.student.update import Updated
    from grader.student.work import Work

app = typer.Typer()
out = Console(highlight=False)
err = Console(stderr=True, highlight=False)

PANEL = "For students"


def _exercises(incomplete: str) -> list[str]:
    """Complete the name of an exercise."""
    try:
        chapters = find_course().chapters()
        names = [exercise.id for chapter in chapters for exercise in chapter.exercises]
    except (
        CourseError,
        OSError,
        ValueError,
        KeyError,
    ):  # a half-typed line is no place to complain
        return []
    return [name for name in names if name.startswith(incomplete)]


def _chapters(incomplete: str) -> list[str]:
    """Complete the name of a chapter."""
    try:
        names = [chapter.id for chapter in find_course().chapters()]
    except (CourseError, OSError):
        return []
    return [name for name in names if name.startswith(incomplete)]


def _anything(incomplete: str) -> list[str]:
    """Complete what `check` takes: chapters, exercises, and notebooks of the working directory."""
    files = [str(path) for path in Path().glob("*.ipynb")]
    files = [path for path in files if path.startswith(incomplete)]
    return [*_chapters(incomplete), *_exercises(incomplete), *files]


What = Annotated[
    list[str] | None,
    typer.Argument(
        autocompletion=_anything,
        metavar="[NOTEBOOK|CHAPTER|EXERCISE]...",
        help="A notebook's path, a `.py` file beside one, a chapter (`ch01_formats`, `ch01`, "
        "`formats`) or an exercise (`decode`). All your notebooks if left out; in a chapter's "
        "folder, that chapter.",
    ),
]
OneExercise = Annotated[
    str,
    typer.Argument(
        metavar="EXERCISE", autocompletion=_exercises, help="An exercise, e.g. `decode`."
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
def learn(
    folder: Annotated[Path, typer.Argument(help="Your copy of the notebooks.")] = Path("my"),
    open_lab: Annotated[bool, typer.Option("--open/--no-open", help="Open JupyterLab.")] = True,
) -> None:
    """Copy the chapters into a folder of your own and open them. Never overwrites a file.

    JupyterLab opens on chapter 1, with its table of contents at the side and your progress in a
    second tab; later, as you left it. The notebooks work in VS Code and Notebook 7, too: open them
    there and choose this Python as the kernel. A new version of the course: `undertorch update`.

    Exit status: 0 done, 2 the folder cannot be used; JupyterLab's own if it was opened.
    """
    import subprocess

    from grader.learn import fill_folder
    from grader.student.contents import write_contents
    from grader.student.folder import Folder
    from grader.student.lab import lab_command
    from grader.student.progress import progress

    course, mine = find_course(), Folder(folder)
    if not course.chapters():
        _refuse(f"{course.root} holds no chapters. Run: undertorch build")
    try:
        for path in fill_folder(course, folder):
            out.print(f"new: {path}", soft_wrap=True)
        write_contents(course, mine, progress(course, mine))
        command = lab_command(course, mine)
    except OSError as error:
        _refuse(f"{folder} cannot be used: {error.strerror}.")
    if open_lab:
        raise typer.Exit(subprocess.call(command))


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


@app.command(rich_help_panel=PANEL)
def watch(what: What = None) -> None:
    """Check again whenever you save: only the answers that changed.

    Leave it running beside your editor. An answer changed when its cell, its file, or something of
    yours that it uses did. Ctrl-C ends it.

    Exit status: 2 called wrongly, 130 when you end it.
    """
    from grader.student.targets import find_targets

    try:
        targets = find_targets(find_course(), what or [])
    except CourseError as error:
        _refuse(str(error))
    with _Working() as working:
        working.on("loading PyTorch")
        from grader.student.check import Checker
        from grader.student.watch import Watcher

        checker, watcher = Checker(), Watcher(targets)
    _tell_round(checker, *watcher.look())
    names = ", ".join(dict.fromkeys(target.chapter.id for target in targets))
    out.print(f"Watching {names}. Save, and what changed is checked. Ctrl-C ends.", soft_wrap=True)
    while True:
        _tell_round(checker, *watcher.look())
        time.sleep(LOOK_SECONDS)


LOOK_SECONDS = 0.3
"""How long a saved answer waits: less than the way from the editor to the terminal."""


def _tell_round(
    checker: Checker, changed: Sequence[tuple[Work, list[str]]], troubles: Sequence[str]
) -> None:
    """Check what changed and show it in full; say what cannot be read."""
    for work, names in changed:
        out.print(Text(f"\n{time.strftime('%H:%M:%S')}  {work.notebook.parent.name}", "dim"))
        for item in checker.check(work, names):
            show(item, whole=str(item.verdict.outcome) != "passed")
    for trouble in troubles:
        err.print(Text("undertorch: ", "red") + Text(trouble), soft_wrap=True)


@app.command("progress", rich_help_panel=PANEL)
def show_progress(
    chapter: Annotated[
        str,
        typer.Argument(
            metavar="[CHAPTER]",
            autocompletion=_chapters,
            help="A chapter, to see its exercises; all chapters if left out.",
        ),
    ] = "",
    as_json: Json = False,
) -> None:
    """Show how far you are: exercises passed, tried and not begun, and points.

    It reads your saved notebooks and the verdicts that you saw, here or in a notebook. It runs
    nothing. An answer that was changed after its verdict counts as tried and has no points until it
    is checked again.

    Exit status: 0 shown, 2 there is no folder of yours here, or no such chapter.
    """
    from grader.student.contents import write_contents
    from grader.student.folder import find_folder
    from grader.student.progress import progress
    from grader.student.tables import chapter_table, chapters_table
    from grader.student.targets import find_chapter

    try:
        course = find_course()
        chosen = find_chapter(course, chapter).id if chapter else ""
        folder = find_folder()
        found = progress(course, folder)
    except CourseError as error:
        _refuse(str(error), as_json)
    write_contents(course, folder, found)
    shown = [one for one in found if one.chapter == chosen or not chosen]
    if as_json:
        typer.echo(json.dumps([one.to_data() for one in shown], indent=1))
        return
    out.print(chapter_table(shown[0]) if chosen else chapters_table(shown))
    for one in shown:
        if one.trouble:
            out.print(Text(one.trouble, "red"), soft_wrap=True)
    if any(one.count("not checked") for one in shown):
        out.print("Some answers were not checked as they stand. To do so: undertorch check")


@app.command(rich_help_panel=PANEL)
def hint(
    exercise: OneExercise,
    number: Annotated[
        int, typer.Argument(min=0, help="Which hint; the next one if left out.", show_default=False)
    ] = 0,
) -> None:
    """Show the next hint of an exercise, from vague to plain; it remembers which you saw.

    Exit status: 0 shown, 1 there is no further hint, 2 no such exercise or hint.
    """
    from rich.markdown import Markdown

    from grader.core import journal
    from grader.student.hints import hints_of
    from grader.student.targets import find_exercise

    try:
        chapter, exercise = find_exercise(find_course(), exercise)
    except CourseError as error:
        _refuse(str(error))
    hints, folder = hints_of(chapter, exercise), _folder_or_none()
    log = journal.read(folder.root) if folder else []
    seen = [e.number for e in log if (e.kind, e.exercise) == ("hint", exercise)]
    wanted = number or max(seen, default=0) + 1
    if number > len(hints):
        _refuse(f"{exercise} has {len(hints)} hints.")
    if not hints:
        out.print(f"{exercise} has no hints.")
        raise typer.Exit(1)
    if wanted > len(hints):
        out.print(f"You have seen all {len(hints)} hints. One again: undertorch hint {exercise} 1")
        out.print(f"After an attempt: undertorch solution {exercise}")
        raise typer.Exit(1)
    chosen = hints[wanted - 1]
    out.print(Text(f"Hint {wanted} of {len(hints)}: {chosen.title}\n", "bold"))
    out.print(Markdown(chosen.text))
    if folder:
        journal.write(
            folder.root, [journal.Entry("hint", chapter.id, exercise, time.time(), number=wanted)]
        )


def _folder_or_none() -> Folder | None:
    from grader.student.folder import find_folder

    try:
        return find_folder()
    except CourseError:
        return None


@app.command(rich_help_panel=PANEL)
def solution(
    exercise: OneExercise,
    others: Annotated[
        bool, typer.Option("--others", help="Also other right answers, by other roads.")
    ] = False,
    anyway: Annotated[bool, typer.Option("--anyway", help="Without an attempt of yours.")] = False,
) -> None:
    """Show the reference solution, once you have tried.

    An attempt is an answer of yours that was checked once, here or in the notebook; it need not
    have passed.

    Exit status: 0 shown, 1 there was no attempt yet, 2 no such exercise, or no folder of yours.
    """
    from rich.syntax import Syntax

    from grader.core import journal
    from grader.student.folder import find_folder
    from grader.student.hints import alternates_of, reference_of
    from grader.student.targets import find_exercise

    try:
        chapter, exercise = find_exercise(find_course(), exercise)
        folder = _folder_or_none() if anyway else find_folder()
    except CourseError as error:
        _refuse(str(error))
    log = journal.read(folder.root) if folder else []
    seen = [entry for entry in log if entry.exercise == exercise]
    tried = any(e.kind == "verdict" and e.outcome != "not attempted" for e in seen)
    if not tried and not anyway:
        out.print(f"You have not tried {exercise} yet: no answer of yours was checked.")
        out.print(f"Write one and run `undertorch check {exercise}`, or grade it in the notebook.")
        out.print(f"A first step: undertorch hint {exercise}. To see it all the same: --anyway")
        raise typer.Exit(1)
    if not tried:
        out.print(
            "Without an attempt, then. Close it when you have understood it, and write it from "
            "memory: that is the exercise now.\n",
            soft_wrap=True,
        )
    answers = [("", reference_of(chapter, exercise))]
    answers += alternates_of(chapter, exercise) if others else []
    for words, source in answers:
        if words:
            out.print(Text(f"\n{words}\n"), soft_wrap=True)
        _print_code(source, Syntax)
    if folder:
        journal.write(folder.root, [journal.Entry("solution", chapter.id, exercise, time.time())])


def _print_code(source: str, syntax: type[Syntax]) -> None:
    """Print code in colours on a terminal; elsewhere as it is, to be piped into a file."""
    if out.is_terminal:
        out.print(syntax(source.strip("\n"), "python", background_color="default"))
    else:
        typer.echo(source.strip("\n"))


@app.command(rich_help_panel=PANEL)
def reset(
    exercise: OneExercise,
) -> None:
    """Put an exercise back to its stub. What you wrote is kept, and it says where.

    A file of yours beside the notebook (decode.py) is moved there, too. Close the notebook first,
    or reload it from disk afterwards: Jupyter holds its own copy.

    Exit status: 0 done, 2 no such exercise or notebook.
    """
    from grader.student.folder import find_folder, shown
    from grader.student.reset import reset as put_back
    from grader.student.targets import find_exercise

    try:
        chapter, exercise = find_exercise(find_course(), exercise)
        folder = find_folder()
        kept = put_back(folder, chapter, exercise)
    except CourseError as error:
        _refuse(str(error))
    if not kept:
        out.print(f"{exercise} already holds its stub.")
        return
    out.print(
        f"{exercise} holds its stub again. If the notebook is open, reload it from disk.",
        soft_wrap=True,
    )
    for path in kept:
        out.print(f"Your text is kept: {shown(path)}", soft_wrap=True)


@app.command(rich_help_panel=PANEL)
def update(
    chapters: Annotated[
        list[str] | None,
        typer.Argument(metavar="[CHAPTER]...", autocompletion=_chapters, help="All if left out."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would happen, change nothing.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Bring your notebooks to the course's new version. Nothing of yours is lost.

    New and changed text comes in; your answers, your own cells, and cells that you edited stay.
    Where you and the course changed the same cell, both are there and it is said. The notebook as
    it was is kept, and it says where. Save and close your notebooks first.

    Exit status: 0 every notebook is up to date now, 2 one could not be updated and is as it was.
    """
    from grader.student.folder import find_folder
    from grader.student.targets import find_chapter
    from grader.student.update import TROUBLE
    from grader.student.update import update as bring_up

    try:
        course, folder = find_course(), find_folder()
        chosen = [find_chapter(course, word) for word in chapters or []] or course.chapters()
    except CourseError as error:
        _refuse(str(error), as_json)
    found = [bring_up(folder, chapter, dry=dry_run) for chapter in chosen]
    if as_json:
        typer.echo(json.dumps([asdict(one) for one in found], indent=1, default=str))
    else:
        for one in found:
            _tell_update(one, dry_run)
    if any(one.state == TROUBLE for one in found):
        raise typer.Exit(2)


def _tell_update(one: Updated, dry: bool) -> None:
    from grader.student.folder import shown

    report = one.report
    style = {"updated": "green", "new": "green", "not updated": "red"}.get(one.state, "dim")
    state = f"would be {one.state}" if dry and one.state in ("updated", "new") else one.state
    out.print(Text(f"{one.chapter}  ", "bold") + Text(state, style), soft_wrap=True)
    if one.trouble:
        out.print(Text(f"  {one.trouble}"), soft_wrap=True)
    if one.state == "updated":
        counts = (
            (report.added, "new"), (report.changed, "changed"), (report.removed, "removed")
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
        out.print(f"  As it was: {shown(one.kept)}", soft_wrap=True)
        out.print("  If the notebook is open, reload it from disk before you go on.")
