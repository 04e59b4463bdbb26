"""The commands that look at a graded class: `report`, `explain`, `export` and `similar`."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from grader.commands import completion
from grader.commands.arguments import AsJson, ChapterArgument
from grader.commands.consoles import err, out
from grader.course.course import Chapter, find_course

app = typer.Typer()

Anonymous = Annotated[
    bool, typer.Option("--anonymous", help="Replace names by numbers, drawn anew each time.")
]


@app.command(rich_help_panel="For instructors")
def report(
    chapters: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="CHAPTER",
            autocompletion=completion.chapters,
            help="Without any, all that were graded.",
        ),
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

    Exit status: 0, or 2 if nothing is graded.
    """
    from datetime import date

    from grader.files import write_atomically
    from grader.instructor.classroom import anonymous as without_names
    from grader.instructor.classroom import chapters_to_show, read_classrooms
    from grader.instructor.progress_bar import track
    from grader.instructor.report import report_on
    from grader.instructor.report_files import report_json, report_page, report_rows
    from grader.nbgrader.spreadsheet import csv_text

    rooms = read_classrooms(chapters_to_show(find_course(), chapters or []), track(err))
    reports = [report_on(room) for room in (without_names(rooms) if anonymous else rooms)]
    if rows:
        write_atomically(rows, csv_text(report_rows(reports)), private=True)
        err.print(f"rows: {rows}", soft_wrap=True)
    if as_json:
        typer.echo(report_json(reports))
        return
    write_atomically(
        page, report_page(reports, day=str(date.today()), anonymous=anonymous), private=True
    )
    out.print(f"report: {page}", soft_wrap=True)


@app.command(rich_help_panel="For instructors")
def explain(
    student: Annotated[
        str,
        typer.Argument(
            metavar="STUDENT",
            autocompletion=completion.students,
            help="A student's id, as in `submitted/`.",
        ),
    ],
    exercise: Annotated[
        str,
        typer.Argument(
            metavar="EXERCISE",
            autocompletion=completion.exercises,
            help="An exercise's id, e.g. `round_to_bf16`.",
        ),
    ],
    chapter: Annotated[
        str,
        typer.Option(
            autocompletion=completion.chapters,
            help="Its chapter, where two have an exercise of that id.",
        ),
    ] = "",
    replay: Annotated[
        bool, typer.Option("--replay", help="Stop in each check that fails, in Python's debugger.")
    ] = False,
    locate: Annotated[
        bool,
        typer.Option(
            "--locate",
            help="Look for the line where one small change makes every check pass, in the box.",
        ),
    ] = False,
    seconds: Annotated[
        float, typer.Option(min=1.0, help="How long --locate looks, at most.")
    ] = 20.0,
    as_json: AsJson = False,
) -> None:
    """Show the evidence behind a verdict: each question to the code, its answer, what was compared.

    Nothing of the student's runs: the kept evidence is judged again by today's checks. With --replay
    pdb stops in each check that fails, its evidence at hand. With --locate variants of the answer run
    in the box, as the answer did, and the change is shown that mends it, if one small change does.

    Exit status: 0, 1 if there is no evidence to show or no such line, 2 called wrongly.
    """
    import json

    from grader.instructor.debugger import CheckDebugger
    from grader.instructor.explain import NoEvidence
    from grader.instructor.explain import explain as look_into
    from grader.instructor.explain_text import explanation_text

    if locate and (replay or as_json):
        raise typer.BadParameter("--locate has a page of its own: leave out --replay and --json")
    if replay and as_json:
        raise typer.BadParameter("--replay talks to you, --json to a script: take one of them")
    course = find_course()
    found = course.chapter(chapter) if chapter else course.chapter_of(exercise)
    if locate:
        _show_located(found, student, exercise, seconds)
        return
    debugger = CheckDebugger(found.checks(exercise)) if replay else None
    try:
        explained = look_into(found, student, exercise, debugger)
    except NoEvidence as error:
        err.print(str(error), soft_wrap=True)
        raise typer.Exit(1) from None
    if as_json:
        typer.echo(json.dumps(explained.to_data(), indent=1))
    elif debugger is None:
        out.print(explanation_text(explained), soft_wrap=True)
    elif not debugger.stops:
        out.print(f"No check failed. {explained.trouble}".strip(), soft_wrap=True)
    if not explained.steps:
        raise typer.Exit(1)


def _show_located(chapter: Chapter, student: str, exercise: str, seconds: float) -> None:
    from grader.commands.printing import Working
    from grader.instructor.locate import locate_kept
    from grader.student.located import all_said
    from grader.student.locating import progress_text

    with Working() as working:
        located = locate_kept(
            chapter,
            student,
            exercise,
            seconds,
            lambda tried, left: working.on(f"{exercise}: {progress_text(tried, left)}"),
        )
    out.print(all_said(located), soft_wrap=True)
    if not located.variants:
        raise typer.Exit(1)


class System(str, Enum):
    """A learning management system whose import we write for."""

    CANVAS = "canvas"
    MOODLE = "moodle"


@app.command(rich_help_panel="For instructors")
def export(
    system: Annotated[System, typer.Option("--for", help="Which system reads the file.")],
    chapters: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="CHAPTER",
            autocompletion=completion.chapters,
            help="Without any, all in the gradebook.",
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option("--out", help="Default: canvas.csv or moodle.csv.", dir_okay=False),
    ] = None,
) -> None:
    """Write the gradebook's points as a CSV file that Canvas or Moodle imports.

    The same as nbgrader export --exporter=grader.nbgrader.exports.CanvasExporter, or MoodleExporter.
    What needs review or was not handed in stays empty; it is never 0.

    Exit status: 0, or 2 if there is no gradebook.
    """
    from grader.nbgrader.exports import EXPORTERS
    from grader.nbgrader.results import open_gradebook

    course = find_course()
    exporter = EXPORTERS[system.value]()
    exporter.root = course.root
    exporter.to = str((file or Path(exporter.destination)).absolute())
    exporter.assignment = [course.chapter(name).id for name in chapters or []]
    with open_gradebook(course.root) as gradebook:
        exporter.export(gradebook)
    for warning in exporter.warnings:
        err.print(warning, soft_wrap=True)
    out.print(f"{system.value}: {exporter.to}", soft_wrap=True)


@app.command(rich_help_panel="For instructors")
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

    Exit status: 0 whatever is found, 2 if nothing is graded.
    """
    import json
    from datetime import date

    from grader.files import write_atomically
    from grader.instructor.answers_of_class import similar_in
    from grader.instructor.pages import render_page
    from grader.instructor.progress_bar import track
    from grader.instructor.similar_text import DETAILED, as_data, pairs_table

    found = find_course().chapter(chapter)
    pairs, crowds = similar_in(found, track(err))
    if page:
        facts = {"pairs": pairs[:most], "total": len(pairs), "detailed": DETAILED, "crowds": crowds}
        title, day = str(found.card.get("title", chapter)), str(date.today())
        write_atomically(
            page, render_page("similar.html.j2", **facts, title=title, day=day), private=True
        )
        err.print(f"side by side: {page}", soft_wrap=True)
    if as_json:
        typer.echo(json.dumps(as_data(pairs[:most], crowds), indent=1))
        return
    out.print("A pointer for a person, not a verdict: read both answers before you think of more.")
    out.print(pairs_table(pairs[:most]) if pairs else "No two answers share anything rare.")
    if len(pairs) > most:
        out.print(f"The first {most} of {len(pairs)} pairs; --most shows more.")
    for exercise, groups in crowds.items():
        for group in groups:
            out.print(f"{exercise}: {len(group)} students have the same text.")
