"""The commands of a student, which `undertorch` lists beside its others."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from grader.commands import completion
from grader.commands.consoles import complain, err, out
from grader.commands.printing import (
    Working,
    as_data,
    passed,
    refuse,
    show_head,
    show_page,
    show_summary,
    show_update,
    show_verdict,
)
from grader.course.course import CourseError, find_course

if TYPE_CHECKING:
    from grader.course.course import Chapter
    from grader.student.check import Checked, Checker
    from grader.student.folder import Folder
    from grader.student.targets import Target
    from grader.student.work import Work

app = typer.Typer()

PANEL = "For students"


What = Annotated[
    list[str] | None,
    typer.Argument(
        autocompletion=completion.anything,
        metavar="NOTEBOOK|CHAPTER|EXERCISE",
        help="A notebook's path, a `.py` file beside one, a chapter (`ch01_formats`, `ch01`, "
        "`formats`) or an exercise (`decode`). All your notebooks if left out; in a chapter's "
        "folder, that chapter.",
    ),
]
OneExercise = Annotated[
    str,
    typer.Argument(
        metavar="EXERCISE", autocompletion=completion.exercises, help="An exercise, e.g. `decode`."
    ),
]
OneOrLast = Annotated[
    str,
    typer.Argument(
        metavar="EXERCISE",
        autocompletion=completion.exercises,
        help="An exercise, e.g. `decode`; the one that you tried last if left out.",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for a script, and nothing else.")]


@app.command(rich_help_panel=PANEL)
def learn(
    where: Annotated[
        str,
        typer.Argument(
            metavar="CHAPTER|FOLDER",
            autocompletion=completion.chapters,
            help="A chapter to open (`ch02_strides`, `ch02`), or your copy of the notebooks, if "
            "that is not to be called my/.",
            show_default=False,
        ),
    ] = "",
    exercise: Annotated[
        str,
        typer.Option(
            "--at",
            metavar="EXERCISE",
            autocompletion=completion.exercises,
            help="Open the notebook at this exercise.",
            show_default=False,
        ),
    ] = "",
    open_lab: Annotated[bool, typer.Option("--open/--no-open", help="Open JupyterLab.")] = True,
    in_notebook: Annotated[
        bool, typer.Option("--notebook", help="Open Notebook 7 instead of JupyterLab.")
    ] = False,
    jupyter: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OPTION",
            help="Give Jupyter an option of its own, such as `--jupyter=--no-browser`; may be repeated.",
        ),
    ] = None,
) -> None:
    """Copy the chapters into a folder of your own and open them. Never overwrites a file.

    JupyterLab opens on chapter 1, with its table of contents at the side and your progress in a
    second tab; later, as you left it, or where you say. It saves by itself every few seconds, and shows none of
    nbgrader's tools. The notebooks work in VS Code, too: open them there and choose this Python as
    the kernel. A new version of the course: `undertorch update`.

    Exit status: 0 done, 2 the folder cannot be used; JupyterLab's own if it was opened.
    """
    from grader.student.contents import write_contents
    from grader.student.fill import fill_folder
    from grader.student.folder import Folder
    from grader.student.lab import lab, notebook
    from grader.student.progress import progress
    from grader.student.targets import find_place

    course = find_course()
    if not course.chapters():
        raise CourseError(f"{course.root} holds no chapters. Run: undertorch build")
    folder, at = find_place(course, where, exercise)
    mine = Folder(folder)
    try:
        for path in fill_folder(course, folder):
            out.print(f"new: {path}", soft_wrap=True)
        write_contents(course, mine, progress(course, mine))
        launch = notebook(mine, at) if in_notebook else lab(course, mine, at)
    except OSError as error:
        raise CourseError(f"{folder} cannot be used: {error.strerror}.") from None
    if open_lab:
        raise typer.Exit(launch.run(*(jupyter or [])))


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
        refuse(error, as_json)
    checked, troubles = _check_all(targets, quiet=as_json)
    if as_json:
        typer.echo(json.dumps(as_data(checked, troubles), indent=1))
    else:
        show_summary(checked)
    for trouble in troubles:
        complain(trouble)
    if troubles:
        raise typer.Exit(2)
    if not all(passed(item) for item in checked):
        raise typer.Exit(1)


def _check_all(targets: Sequence[Target], quiet: bool) -> tuple[list[Checked], list[str]]:
    """Check every target and show each verdict as it comes; return them, and what went wrong."""
    with Working(quiet) as working:
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
                # of one exercise, its own file; a whole notebook's say where an answer is a file's
                named = target.named or not work.notebook.exists()
                show_head(work.judged(target.exercises[0]) if named else work.notebook)
            verdicts = checker.check(work, target.exercises)
            for number, exercise in enumerate(target.exercises, 1):
                working.on(f"checking {exercise} ({number} of {len(target.exercises)})")
                item = next(verdicts)
                checked.append(item)
                working.off()
                if not quiet:
                    show_verdict(item, whole=target.named)
    return checked, troubles


@app.command(rich_help_panel=PANEL)
def watch(what: What = None) -> None:
    """Check again whenever you save: only the answers that changed.

    Leave it running beside your editor. An answer changed when its cell, its file, or something of
    yours that it uses did. Ctrl-C ends it.

    Exit status: 2 called wrongly, 130 when you end it.
    """
    from grader.student.targets import find_targets

    targets = find_targets(find_course(), what or [])
    with Working() as working:
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
            show_verdict(item, whole=str(item.verdict.outcome) != "passed")
    for trouble in troubles:
        complain(trouble)


@app.command("progress", rich_help_panel=PANEL)
def show_progress(
    chapter: Annotated[
        str,
        typer.Argument(
            metavar="CHAPTER",
            autocompletion=completion.chapters,
            help="A chapter, to see its exercises; all chapters if left out.",
        ),
    ] = "",
    as_json: Json = False,
) -> None:
    """Show how far you are: exercises passed, tried and not begun, points, and minutes.

    ★ marks the short path: what everyone should have built. In a notebook: progress("ch01_formats").

    It reads your saved notebooks and the verdicts that you saw, here or in a notebook. It runs
    nothing. An answer that was changed after its verdict counts as tried and has no points until it
    is checked again.

    Exit status: 0 shown, 2 there is no folder of yours here, or no such chapter.
    """
    from grader.student.contents import write_contents
    from grader.student.folder import find_folder
    from grader.student.progress import extent, progress, sums
    from grader.student.tables import chapter_table, chapters_table
    from grader.student.targets import find_chapter

    try:
        course = find_course()
        chosen = find_chapter(course, chapter).id if chapter else ""
        folder = find_folder()
        found = progress(course, folder)
    except CourseError as error:
        refuse(error, as_json)
    write_contents(course, folder, found)
    shown = [one for one in found if one.chapter == chosen or not chosen]
    if as_json:
        typer.echo(json.dumps([one.to_data() for one in shown], indent=1))
        return
    out.print(chapter_table(shown[0]) if chosen else chapters_table(shown))
    out.print(f"\n{sums(shown)}.\n{extent(shown)}.", soft_wrap=True)
    for one in shown:
        if one.trouble:
            out.print(Text(one.trouble, "red"), soft_wrap=True)
    if any(one.count("not checked") for one in shown):
        out.print(
            "Some answers have changed since they were checked. To check them: undertorch check",
            soft_wrap=True,
        )


@app.command(rich_help_panel=PANEL)
def hint(
    exercise: OneOrLast = "",
    number: Annotated[
        int,
        typer.Argument(
            metavar="N", min=0, help="Which hint; the next one if left out.", show_default=False
        ),
    ] = 0,
) -> None:
    """Show the next hint of an exercise, from vague to plain; it remembers which you saw.

    Exit status: 0 shown, 1 there is no further hint, 2 no such exercise or hint.
    """
    from grader.student.help import TERMINAL, next_hint

    folder = _folder_or_none()
    chapter, exercise = _exercise_or_last(exercise, folder)
    page = next_hint(chapter, exercise, number, folder.root if folder else None, TERMINAL)
    show_page(page)
    if not page.granted:
        raise typer.Exit(1)


def _exercise_or_last(name: str, folder: Folder | None) -> tuple[Chapter, str]:
    """Return the named exercise and its chapter; without a name, the one that was tried last."""
    from grader.student import journal
    from grader.student.targets import find_exercise

    last = journal.last_tried(journal.recall(folder.root)) if folder else None
    if not name and not last:
        raise CourseError("Say which exercise: you have tried none yet.")
    return find_exercise(find_course(), name or last or "")


def _folder_or_none() -> Folder | None:
    from grader.student.folder import find_folder

    try:
        return find_folder()
    except CourseError:
        return None


@app.command(rich_help_panel=PANEL)
def solution(
    exercise: OneOrLast = "",
    others: Annotated[
        bool, typer.Option("--others", help="Also other right answers, by other roads.")
    ] = False,
    anyway: Annotated[bool, typer.Option("--anyway", help="Without an attempt of yours.")] = False,
) -> None:
    """Show the reference solution, once you have tried.

    An attempt is an answer of yours that was graded once, here or in the notebook; it need not
    have passed.

    Exit status: 0 shown, 1 there was no attempt yet, 2 no such exercise, or no folder of yours.
    """
    from grader.student.folder import find_folder
    from grader.student.help import TERMINAL, open_solution

    folder = _folder_or_none() if anyway else find_folder()
    chapter, exercise = _exercise_or_last(exercise, folder)
    root = folder.root if folder else None
    page = open_solution(chapter, exercise, root, TERMINAL, others=others, anyway=anyway)
    show_page(page)
    if not page.granted:
        raise typer.Exit(1)


@app.command(rich_help_panel=PANEL)
def locate(
    what: Annotated[
        str,
        typer.Argument(
            metavar="EXERCISE|FILE",
            autocompletion=completion.exercises,
            help="An exercise, e.g. `decode`, or a `.py` file beside a notebook; the exercise that "
            "you tried last if left out.",
            show_default=False,
        ),
    ] = "",
    seconds: Annotated[float, typer.Option(min=1.0, help="How long to look, at most.")] = 20.0,
) -> None:
    """Look for the line of your answer where one small change makes every check pass.

    It changes one thing of your saved answer at a time, and grades each variant as `check` grades the
    answer, until the time is up; Ctrl-C ends it with what was found. It says the line; asked again of the
    same answer, which part of it; then the change. In a notebook: locate("decode").

    Exit status: 0 a line was found, 1 none was, or nothing is wrong, 2 called wrongly, or a file is
    missing or broken.
    """
    from grader.student import journal
    from grader.student.help import TERMINAL
    from grader.student.targets import find_targets

    with Working() as working:
        working.on("loading PyTorch")
        from grader.student.located import located
        from grader.student.locating import locate_in, progress_text
        from grader.student.work import read_work

        name = what or _exercise_or_last("", _folder_or_none())[1]
        target = find_targets(find_course(), [name])[0]
        if not target.named:
            raise CourseError("Say which exercise, e.g. `undertorch locate decode`.")
        exercise = target.exercises[0]
        alone = target.notebook.with_name(f"{exercise}.py").exists()
        work = read_work(target.chapter, target.notebook, alone=alone)
        found = locate_in(
            work,
            exercise,
            seconds,
            lambda tried, left: working.on(f"{exercise}: {progress_text(tried, left)}"),
        )
    folder = journal.folder_around(work.notebook.parent)
    source = work.attempts[exercise].source or ""
    page = located(found, target.chapter.id, exercise, source, folder, TERMINAL)
    show_page(page)
    if not page.granted:
        raise typer.Exit(1)


@app.command(rich_help_panel=PANEL)
def reset(
    exercise: OneExercise,
) -> None:
    """Put an exercise back to its stub. What you wrote is kept, and it says where.

    A file of yours beside the notebook (decode.py) is moved there, too. Close the notebook first,
    or reload it from disk afterwards: Jupyter holds its own copy.

    Exit status: 0 done, 2 no such exercise or notebook.
    """
    from grader.student.folder import display_path, find_folder
    from grader.student.reset import reset as put_back
    from grader.student.targets import find_exercise

    chapter, exercise = find_exercise(find_course(), exercise)
    kept = put_back(find_folder(), chapter, exercise)
    if not kept:
        out.print(f"{exercise} already holds its stub.")
        return
    out.print(
        f"{exercise} holds its stub again. If the notebook is open, reload it from disk.",
        soft_wrap=True,
    )
    for path in kept:
        out.print(f"Your text is kept: {display_path(path)}", soft_wrap=True)


@app.command(rich_help_panel=PANEL)
def update(
    chapters: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="CHAPTER", autocompletion=completion.chapters, help="All if left out."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would happen, change nothing.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Bring your notebooks to the course's new version. Nothing of yours is lost.

    New and changed text comes in; your answers, your own cells, and what you edited stay. Where you
    and the course changed the same cell, the lines are merged. Where both changed the same lines,
    yours run, the course's stand beside them, and it is said. The notebook as it was is kept, and
    it says where. Save and close your notebooks first.

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
        refuse(error, as_json)
    found = [bring_up(folder, chapter, dry=dry_run) for chapter in chosen]
    if as_json:
        typer.echo(json.dumps([asdict(one) for one in found], indent=1, default=str))
    else:
        for one in found:
            show_update(one, dry_run)
    if any(one.state == TROUBLE for one in found):
        raise typer.Exit(2)


@app.command(rich_help_panel=PANEL)
def capture(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="A Python file of your own that uses torch.compile."),
    ],
    to: Annotated[
        Path | None,
        typer.Option(
            "--to",
            metavar="CAPTURE",
            help="Where to write; beside you, as FILE's name with .capture.json, if left out.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Run a file of yours, and write down what torch.compile makes of it.

    The explorer of torch.compile opens what it wrote: your lines, bytecode, graphs, guards and cuts.
    Your file runs as `python FILE` runs it, on this machine and without a sandbox: capture only code
    that you trust. Whatever backend or mode it names, it is compiled as backend `aot_eager` does.
    What the file prints goes to the terminal; what it compiles by a path of its own is not seen.

    Exit status: 0 written, 1 the file raised an error or compiled nothing, 2 called wrongly, or a file
    cannot be read or written.
    """
    target = to or Path(f"{file.stem}.capture.json")
    if not file.is_file():
        raise CourseError(f"{file} is no file.")
    from grader.student.capture import NothingCompiled, capture_file, is_capture, traceback_of

    if target.exists() and not is_capture(target):
        raise CourseError(f"{target} is there and is no capture. Name another file with --to.")
    try:
        found = capture_file(file)
    except NothingCompiled as nothing:
        complain(str(nothing))
        raise typer.Exit(1) from None
    except (Exception, SystemExit) as error:
        err.print(Text(traceback_of(error, file)), soft_wrap=True)
        complain("Your file raised this. Nothing was written.")
        raise typer.Exit(1) from None
    try:
        target.write_text(json.dumps(found, ensure_ascii=False), encoding="utf-8")
    except OSError as error:
        raise CourseError(f"{target} cannot be written: {error.strerror}.") from None
    program = found["program"]
    count = len(program["frames"])
    frames = "1 compiled frame" if count == 1 else f"{count} compiled frames"
    out.print(f"{frames} written to {target}", soft_wrap=True)
    for what, left in found["left_out"].items():
        if left:
            out.print(f"Left out: {left} more {what}.")
    out.print(
        "Open it in the explorer of torch.compile: explorers/compile.html on the course's site.",
        soft_wrap=True,
    )
