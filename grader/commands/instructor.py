"""The commands of an instructor, which `undertorch` lists beside its others."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from grader.commands import bundles, classes, course_folder
from grader.commands.arguments import AsJson, ChapterArgument, StudentOption
from grader.commands.consoles import out
from grader.course.course import CourseError, find_course

app = typer.Typer()

PANEL = "For instructors"

app.add_typer(course_folder.app, name="course", rich_help_panel=PANEL)
app.add_typer(classes.app, rich_help_panel=PANEL)
app.add_typer(bundles.app, name="bundle", rich_help_panel=PANEL)


@app.command(rich_help_panel=PANEL)
def scores(chapter: ChapterArgument) -> None:
    """Show the last grading of a chapter: students, points, outcomes, diagnosis, feedback pages.

    These are the grader's own points. What a person changed in the formgrader, and what lateness
    costs, stand in the gradebook: undertorch report.

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
    force: Annotated[
        bool, typer.Option("--force", help="Grade again what is graded already.")
    ] = False,
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
    2 called wrongly, or there is no sandbox, 128 plus the signal's number if interrupted.
    """
    from grader.instructor.progress_bar import show_progress
    from grader.instructor.run_summary import summary
    from grader.nbgrader.commands import grade_chapter

    if scheduler and jobs:
        raise typer.BadParameter("has as many workers as Dask has: leave --jobs out")
    find_course().chapter(chapter)
    with show_progress(out) as report:
        tally = grade_chapter(
            find_course().root, chapter, jobs, student, force, seed, trust, report, scheduler
        )
    out.print(summary(tally, chapter), soft_wrap=True)
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

    Shows by exercise whose verdict changed, and why.

    Exit status: 0 all evidence could be judged, 1 an exercise needs a real run because its probes
    or inputs changed, 2 no such chapter.
    """
    from grader.instructor.run_summary import BY_HAND, changes_table
    from grader.nbgrader.commands import regrade_chapter
    from grader.nbgrader.naming import names
    from grader.nbgrader.regrade import ByHand, Change, NeedsRun

    find_course().chapter(chapter)
    found = list(regrade_chapter(find_course().root, chapter, student, dry_run))
    changes = [item for item in found if isinstance(item, Change)]
    out.print(changes_table(changes) if changes else "No verdict changes.")
    by_hand = [item.student for item in found if isinstance(item, ByHand)]
    if by_hand:
        out.print(f"{BY_HAND}: {names(by_hand)}.", soft_wrap=True)
    needs_run = [item for item in found if isinstance(item, NeedsRun)]
    for item in needs_run:
        what = f"{item.student}, {item.exercise}" if item.exercise else item.student
        out.print(f"Needs a real run: {what}: {item.why}.", soft_wrap=True)
    if changes and not dry_run:
        out.print(f"Feedback pages are older now. Next: undertorch feedback {chapter}")
    if needs_run:
        out.print(f"To run the code again: undertorch grade {chapter} --force", soft_wrap=True)
        raise typer.Exit(1)


@app.command(rich_help_panel=PANEL)
def feedback(
    chapter: ChapterArgument,
    folder: Annotated[
        Path, typer.Option("--out", help="Where zips for Canvas or Moodle are written.")
    ] = Path(),
) -> None:
    """Give feedback back: through nbgrader's exchange, or as a zip for Canvas or Moodle.

    Pages are written anew for all that is graded. Each goes back on the road that its submission came
    by. Who handed in by neither is named, with the page that is theirs.

    Exit status: 0 there is a way to everybody, 1 not to all, 2 nothing is graded, or no course here.
    """
    from grader.instructor.feedback import give_back
    from grader.nbgrader.naming import names

    done = give_back(find_course().chapter(chapter), folder.absolute())
    if done.released:
        number = len(done.released)
        out.print(f"Released through the exchange: {number} ({names(done.released)}).")
    for path, students in done.zips.items():
        system = "Moodle" if path.stem.endswith("moodle") else "Canvas"
        out.print(f"To upload to {system}: {path}, {len(students)} pages.", soft_wrap=True)
    if done.trouble:
        out.print(done.trouble, soft_wrap=True)
    for student, page in done.unreached.items():
        out.print(f"No way to {student}: {page}", soft_wrap=True)
    if done.unreached:
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
    from grader.evidence.store import delete as delete_folder
    from grader.evidence.store import kept

    root, total = find_course().root, 0
    for folder, size in kept(root, older_than):
        total += size
        if delete:
            delete_folder(folder)
        out.print(f"{size / 2**20:8.2f} MiB  {folder.relative_to(root)}", soft_wrap=True)
    out.print(f"{total / 2**20:8.2f} MiB  {'deleted' if delete else 'in all'}")


@app.command(rich_help_panel=PANEL)
def doctor() -> None:
    """Say whether this machine can box submissions, and how to mend what it lacks.

    Exit status: 0 all is well, 1 something is missing, and the message says how to mend it.
    """
    from rich.table import Table
    from rich.text import Text

    from grader.instructor.doctor import diagnose

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
            out.print(f"\n{finding.name}: {finding.mend}", soft_wrap=True)
    if not all(finding.ok for finding in findings):
        raise typer.Exit(1)


@app.command(rich_help_panel=PANEL)
def variants(
    chapter: ChapterArgument,
    secret: Annotated[Path, typer.Option(help="File with the course's secret.")],
    out_folder: Annotated[Path, typer.Option("--out", help="Folder of the private course.")],
    as_json: AsJson = False,
) -> None:
    """Write a chapter's private variant: the notebook for students, and the solution.

    Parameters of its exercises (widths, factors, orders) get values drawn from the secret: the same
    for the same secret. Statement, stub, checks, known answers and reference follow them. The
    public solution does not answer it. Run nbgrader, undertorch grade and undertorch validate in
    the folder as in any course.

    Exit status: 0 written or up to date; 2 no secret, no parameters, or another variant in the
    folder.
    """
    import json

    from grader.course.parameters import as_keywords
    from grader.instructor.private_variant import read_secret, write_variant

    chosen = find_course().chapter(chapter)
    with out.status(f"Writing {chapter}") if not as_json else nullcontext():
        written = write_variant(chosen, read_secret(secret), out_folder)
    if as_json:
        files = [str(out_folder / path) for path in written.changed]
        print(json.dumps({"variant": written.variant, "changed": files}, indent=2))
        return
    for exercise, values in written.variant.items():
        out.print(f"{exercise:<24} {as_keywords(values)}")
    for path in written.changed:
        out.print(f"written: {out_folder / path}", soft_wrap=True)
    if not written.changed:
        out.print(f"{out_folder} is up to date.", soft_wrap=True)
