"""The commands of an instructor, which `undertorch` lists beside its others."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from grader import completion
from grader.core.course import CourseError, find_course
from grader.instructor import course_cli

app = typer.Typer()
out = Console(highlight=False)
err = Console(highlight=False, stderr=True)

PANEL = "For instructors"

app.add_typer(course_cli.app, name="course", rich_help_panel=PANEL)

ChapterArgument = Annotated[
    str,
    typer.Argument(
        metavar="CHAPTER",
        autocompletion=completion.chapters,
        help="A chapter's id, e.g. `ch01_formats`.",
    ),
]
StudentOption = Annotated[
    str,
    typer.Option(
        autocompletion=completion.students,
        help="Only these: a name, or a pattern in quotes (`'a*'`).",
    ),
]


@app.command(rich_help_panel=PANEL)
def scores(chapter: ChapterArgument) -> None:
    """Show the last grading of a chapter: students, points, outcomes, diagnosis, feedback pages.

    Exit status: 0 shown, 2 no such chapter, or nothing of it is graded yet.
    """
    from grader.instructor.scores import read_scores, table

    chosen = find_course().chapter(chapter)
    rows = read_scores(chosen)
    if not rows:
        raise CourseError(f"Nothing is graded yet. Run: nbgrader autograde {chapter}")
    out.print(table(chosen, rows))
    for row in rows:
        page = chosen.root / "feedback" / row.student / chapter / f"{chosen.name}.html"
        if page.is_file():
            out.print(f"feedback: {page.relative_to(chosen.root)}", soft_wrap=True)


Trust = Annotated[
    bool,
    typer.Option(
        "--no-sandbox-i-trust-these-submissions",
        help="Run submissions as they are. For code that is as good as your own.",
    ),
]


@app.command(rich_help_panel=PANEL)
def grade(
    chapter: ChapterArgument,
    jobs: Annotated[int, typer.Option(min=0, help="Worker processes; 0 is one for each core.")] = 0,
    student: StudentOption = "*",
    force: Annotated[bool, typer.Option("--force", help="Grade what is graded, too.")] = False,
    seed: Annotated[int, typer.Option(help="Seed of all inputs; 0 draws a secret one.")] = 0,
    trust: Trust = False,
    scheduler: Annotated[
        str, typer.Option(help="Address of a Dask scheduler, whose workers grade: tcp://host:8786")
    ] = "",
) -> None:
    """Grade submissions in parallel, with the same result as nbgrader autograde.

    With --scheduler the workers of a Dask cluster grade, on other machines, without shared files;
    this command alone writes to the gradebook. Who may reach the scheduler may run code there.

    Interrupt it at any time: what was graded is kept, the same command grades the rest.

    Exit status: 0 every submission is graded (or needs review, which is said), 1 some are not,
    2 called wrongly, or there is no sandbox, 128 and the signal's number if interrupted.
    """
    from grader.instructor.progress import show_progress, summary
    from grader.nbgrader.commands import grade_chapter

    if scheduler and jobs:
        raise typer.BadParameter("has as many workers as Dask has: leave --jobs out")
    find_course().chapter(chapter)
    with show_progress(out) as report:
        tally = grade_chapter(
            find_course().root, chapter, jobs, student, force, seed, trust, report, scheduler
        )
    out.print(summary(tally, chapter), soft_wrap=True, markup=False)
    if tally.signal:
        raise typer.Exit(128 + tally.signal)
    if tally.left:
        raise typer.Exit(1)


@app.command(rich_help_panel=PANEL)
def regrade(
    chapter: ChapterArgument,
    student: StudentOption = "*",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show it, change nothing.")] = False,
) -> None:
    """Apply the present checks and points to kept evidence. No student code runs.

    Shows whose verdict changed and why.

    Exit status: 0 all evidence could be judged, 1 an exercise needs a real run because its probes
    or inputs changed, 2 no such chapter.
    """
    from grader.instructor.progress import changes_table
    from grader.nbgrader.commands import regrade_chapter
    from grader.nbgrader.regrade import Change

    find_course().chapter(chapter)
    found = list(regrade_chapter(find_course().root, chapter, student, dry_run))
    changes = [item for item in found if isinstance(item, Change)]
    out.print(changes_table(changes) if changes else "No verdict changes.")
    needs_run = [item for item in found if not isinstance(item, Change)]
    for item in needs_run:
        what = f"{item.student}, {item.exercise}" if item.exercise else item.student
        out.print(f"Needs a real run: {what}: {item.why}.", soft_wrap=True, markup=False)
    if changes and not dry_run:
        out.print(f"Feedback pages are older now: nbgrader generate_feedback {chapter} --force")
    if needs_run:
        out.print(f"To run the code again: undertorch grade {chapter} --force", soft_wrap=True)
        raise typer.Exit(1)


@app.command(rich_help_panel=PANEL)
def evidence(
    older_than: Annotated[float, typer.Option(help="Last written at least so many days ago.")] = 0,
    delete: Annotated[bool, typer.Option("--delete", help="Delete it for good.")] = False,
) -> None:
    """List kept evidence with its size, or delete what is old. Grades stay as they are.

    What is deleted cannot be regraded without running the code again.

    Exit status: 0 listed or deleted, 2 no course here.
    """
    from grader.core.store import delete as delete_folder
    from grader.core.store import kept

    root, total = find_course().root, 0
    for folder, size in kept(root, older_than):
        total += size
        if delete:
            delete_folder(folder)
        out.print(f"{size / 2**20:8.2f} MiB  {folder.relative_to(root)}", soft_wrap=True)
    out.print(f"{total / 2**20:8.2f} MiB  {'deleted' if delete else 'in all'}")


@app.command(rich_help_panel=PANEL)
def doctor() -> None:
    """Say what this machine can do for a sandbox, and what mends what it lacks.

    Exit status: 0 all is well, 1 something is missing; what mends it is said.
    """
    from rich.table import Table
    from rich.text import Text

    from grader.engine.doctor import diagnose

    findings = diagnose()
    shown = Table(box=None, pad_edge=False)
    for name in ("", "looked at", "found"):
        shown.add_column(name, no_wrap=name != "found")
    for finding in findings:
        sign = Text("ok", "green") if finding.ok else Text("BAD", "red")
        shown.add_row(sign, finding.name, Text(finding.found))
    out.print(shown)
    for finding in findings:
        if not finding.ok and finding.mend:
            out.print(f"\n{finding.name}: {finding.mend}", markup=False, soft_wrap=True)
    if not all(finding.ok for finding in findings):
        raise typer.Exit(1)


Anonymous = Annotated[
    bool, typer.Option("--anonymous", help="Replace names by numbers, drawn anew each time.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON in place of text.")]


@app.command(rich_help_panel=PANEL)
def report(
    chapters: Annotated[
        list[str] | None, typer.Argument(help="Chapters; without any, all that were graded.")
    ] = None,
    page: Annotated[
        Path, typer.Option("--out", help="Where the page is written.", dir_okay=False)
    ] = Path("report.html"),
    rows: Annotated[
        Path | None,
        typer.Option("--csv", help="Also a row for each exercise of each student.", dir_okay=False),
    ] = None,
    anonymous: Anonymous = False,
    as_json: AsJson = False,
) -> None:
    """Put the class on one page: scores, exercises, mistakes, what crashed, is late, needs review.

    Points are the gradebook's, the rest is from the kept evidence. The page is one file and asks
    nobody for anything. With --json nothing is written but what --csv names.
    Exit status: 0, or 1 if nothing is graded.
    """
    from datetime import date

    from grader.instructor.classroom import anonymous as without_names
    from grader.instructor.classroom import chapters_to_show, read_classrooms
    from grader.instructor.progress import track
    from grader.instructor.report import report_on
    from grader.instructor.report_files import report_json, report_page, report_rows
    from grader.nbgrader.spreadsheet import csv_text, write_whole

    rooms = read_classrooms(chapters_to_show(find_course(), chapters or []), track(err))
    reports = [report_on(room) for room in (without_names(rooms) if anonymous else rooms)]
    if rows:
        write_whole(rows, csv_text(report_rows(reports)))
        err.print(f"rows: {rows}", soft_wrap=True)
    if as_json:
        typer.echo(report_json(reports))
        return
    write_whole(page, report_page(reports, day=str(date.today()), anonymous=anonymous))
    out.print(f"report: {page}", soft_wrap=True)


@app.command(rich_help_panel=PANEL)
def explain(
    student: Annotated[str, typer.Argument(help="A student's id, as in submitted/.")],
    exercise: Annotated[str, typer.Argument(help="An exercise's id, e.g. round_to_bf16.")],
    chapter: Annotated[
        str, typer.Option(help="Its chapter, where two have an exercise of that id.")
    ] = "",
    replay: Annotated[
        bool, typer.Option("--replay", help="Stop in each check that fails, in Python's debugger.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the evidence behind a verdict: each question to the code, its answer, what was compared.

    Nothing of the student's runs: the kept evidence is judged again by today's checks. With --replay
    pdb stops in each check that fails, its evidence at hand.
    Exit status: 0, 1 if there is no evidence to show, 2 called wrongly.
    """
    import json

    from grader.instructor.debugger import CheckDebugger
    from grader.instructor.explain import explain as look_into
    from grader.instructor.explain_text import explanation_text

    if replay and as_json:
        raise typer.BadParameter("--replay talks to you, --json to a script: take one of them")
    course = find_course()
    found = course.chapter(chapter) if chapter else course.chapter_of(exercise)
    debugger = CheckDebugger(found.checks(exercise)) if replay else None
    explained = look_into(found, student, exercise, debugger)
    if as_json:
        typer.echo(json.dumps(explained.to_data(), indent=1))
    elif debugger is None:
        out.print(explanation_text(explained), markup=False, soft_wrap=True)
    elif not debugger.stops:
        out.print(f"No check failed. {explained.trouble}".strip(), markup=False, soft_wrap=True)
    if not explained.steps:
        raise typer.Exit(1)


class System(str, Enum):
    """A learning management system whose import we write for."""

    CANVAS = "canvas"
    MOODLE = "moodle"


@app.command(rich_help_panel=PANEL)
def export(
    system: Annotated[System, typer.Option("--for", help="Which system reads the file.")],
    chapters: Annotated[
        list[str] | None, typer.Argument(help="Chapters; without any, all in the gradebook.")
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option("--out", help="Default: canvas.csv or moodle.csv.", dir_okay=False),
    ] = None,
) -> None:
    """Write the gradebook's points as a CSV file that Canvas or Moodle imports.

    The same as nbgrader export --exporter=grader.nbgrader.exports.CanvasExporter, or MoodleExporter.
    What needs review or was not handed in stays empty; it is never 0.
    Exit status: 0, or 1 if there is no gradebook.
    """
    from grader.nbgrader.exports import EXPORTERS
    from grader.nbgrader.standing import open_gradebook

    course = find_course()
    exporter = EXPORTERS[system.value]()
    exporter.to = str((file or Path(exporter.destination)).absolute())
    exporter.assignment = [course.chapter(name).id for name in chapters or []]
    with open_gradebook(course.root) as gradebook:
        exporter.export(gradebook)
    for warning in exporter.warnings:
        err.print(warning, soft_wrap=True, markup=False)
    out.print(f"{system.value}: {exporter.to}", soft_wrap=True, markup=False)


@app.command(rich_help_panel=PANEL)
def similar(
    chapter: ChapterArgument,
    page: Annotated[
        Path | None,
        typer.Option("--out", help="Also a page with both texts side by side.", dir_okay=False),
    ] = None,
    most: Annotated[int, typer.Option(min=1, help="How many pairs are shown.")] = 50,
    as_json: AsJson = False,
) -> None:
    """Point at answers that are alike. A pointer for a person, not a verdict.

    Names, comments and layout do not count, nor what everybody was given or could look up. The rest
    counts by how rare it is in the class, in bits, and double where both failed.
    Exit status: 0 whatever is found, 1 if nothing is graded.
    """
    import json
    from datetime import date

    from grader.instructor.answers_of_class import similar_in
    from grader.instructor.pages import render
    from grader.instructor.progress import track
    from grader.instructor.similar_text import DETAILED, as_data, pairs_table
    from grader.nbgrader.spreadsheet import write_whole

    found = find_course().chapter(chapter)
    pairs, crowds = similar_in(found, track(err))
    if page:
        facts = {"pairs": pairs[:most], "total": len(pairs), "detailed": DETAILED, "crowds": crowds}
        title, day = str(found.card.get("title", chapter)), str(date.today())
        write_whole(page, render("similar.html.j2", **facts, title=title, day=day))
        err.print(f"side by side: {page}", soft_wrap=True, markup=False)
    if as_json:
        typer.echo(json.dumps(as_data(pairs[:most], crowds), indent=1))
        return
    out.print("A pointer for a person, not a verdict: read both answers before you think of more.")
    out.print(pairs_table(pairs[:most]) if pairs else "No two answers share anything rare.")
    if len(pairs) > most:
        out.print(f"The first {most} of {len(pairs)} pairs; --most shows more.")
    for exercise, groups in crowds.items():
        for group in groups:
            out.print(f"{exercise}: {len(group)} students have the same text.", markup=False)
