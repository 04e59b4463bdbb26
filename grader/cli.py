"""The `undertorch` command. Each function is one subcommand; what it does lives elsewhere.

Exit status: 0 done and well, 1 done and something is wrong, 2 called wrongly; a command that was
interrupted ends with 128 and the signal's number, as in any shell: 130 for Ctrl-C.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from grader.core.course import Chapter, Course, CourseError, Exercise, find_course
from grader.student import cli as student

app = typer.Typer(
    help="Learn how PyTorch works inside, and grade those who do.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
app.add_typer(student.app)
out = Console(highlight=False)

ChapterArgument = Annotated[str, typer.Argument(help="A chapter's id, e.g. ch01_formats.")]


def main() -> None:
    """Run the command; turn known troubles into one line that says what to do."""
    from grader.nbgrader import commands_on_path

    commands_on_path()
    try:
        app()
    except CourseError as error:
        out.print(f"[red]undertorch:[/red] {error}", markup=True, soft_wrap=True)
        raise SystemExit(1) from None


@app.command()
def build(
    chapter: Annotated[str, typer.Argument(help="A chapter's id, or myths; all if left out.")] = "",
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Run and change nothing; fail if a cell, a notebook or a page is not the source's. "
            "Whether outputs still come out the same, `pytest --nbval solutions` tells. Myths are run.",
        ),
    ] = False,
) -> None:
    """Build notebooks and site pages from the chapters' sources (solutions/*/*.pct.py)."""
    from grader.authoring.build import build_chapter, build_myths, differing, install, sources

    course = find_course()
    stale: list[Path] = []
    for source in sources(course):
        if chapter in ("", source.parent.name):
            built = build_chapter(course, source, run=not check)
            stale += differing(course, built) if check else install(course, built)
    if chapter in ("", "myths"):
        built = build_myths(course)
        stale += differing(course, built) if check else install(course, built)
    for path in stale:
        out.print(f"{'out of date' if check else 'built'}: {path}")
    if check and stale:
        out.print("Run: undertorch build")
        raise typer.Exit(1)
    if not stale:
        out.print("Everything is up to date.")


@app.command()
def validate(
    exercises: Annotated[
        list[str] | None, typer.Argument(help="Exercise ids; all if left out.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the inputs.")] = 1,
) -> None:
    """Run every known answer and say which do not get the verdict that they must get.

    Works on what `undertorch build` last built.
    """
    from grader.authoring.validate import orphans, prove

    course: Course = find_course()
    problems = [] if exercises else [p for c in course.chapters() for p in orphans(c)]
    for chapter, exercise in _exercises(course, exercises):
        proof = prove(chapter, exercise, seed)
        problems += proof.problems
        out.print(
            f"{'ok ' if not proof.problems else 'BAD'} {exercise.id:<28} {proof.checks} checks, "
            f"{proof.mistakes} mistakes, {proof.alternates} alternates"
        )
    for problem in problems:
        out.print(f"  {problem}", markup=False, soft_wrap=True)
    if problems:
        raise typer.Exit(1)


def _exercises(course: Course, names: list[str] | None) -> list[tuple[Chapter, Exercise]]:
    """Return the exercises of these names with their chapters, in the course's order; all for None."""
    found = [(chapter, exercise) for chapter in course.chapters() for exercise in chapter.exercises]
    unknown = set(names or ()) - {exercise.id for _, exercise in found}
    if unknown:
        raise CourseError(f"No exercise is called {', '.join(sorted(unknown))}.")
    return [(chapter, exercise) for chapter, exercise in found if not names or exercise.id in names]


new = typer.Typer(help="Scaffold what an author writes.", no_args_is_help=True)
app.add_typer(new, name="new")


@new.command("exercise")
def new_exercise(
    chapter: ChapterArgument,
    exercise: Annotated[str, typer.Argument(help="The function's name, e.g. round_to_bf16.")],
) -> None:
    """Add an exercise to a chapter: a section, a probe, checks and known answers to fill in."""
    from grader.authoring.scaffold import scaffold

    for path in scaffold(find_course(), chapter, exercise):
        out.print(f"written: {path}", soft_wrap=True)
    out.print(
        f"Fill them in, then run: undertorch build {chapter} && undertorch validate {exercise}"
    )


@app.command()
def trial(
    exercises: Annotated[
        list[str] | None, typer.Argument(help="Exercise ids; all if left out.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the inputs.")] = 1,
    least: Annotated[
        float, typer.Option(help="Least share of mutants killed, per exercise.")
    ] = 0.95,
    page: Annotated[
        Path | None, typer.Option(help="Write the table, with the commit, as a page here.")
    ] = None,
    jobs: Annotated[int, typer.Option(help="How many exercises at a time.")] = os.cpu_count() or 1,
) -> None:
    """Put the graders on trial: every known answer, and every mutant of every reference.

    A mutant is the reference solution with one small thing changed. One that passes all checks
    shows what they do not test.
    """
    from grader.authoring.trial import as_page, as_tables, try_exercises

    course, trials = find_course(), []
    wrong = False
    for proof, tried in try_exercises(_exercises(course, exercises), seed, jobs):
        trials.append((proof, tried))
        wrong = wrong or bool(proof.problems or tried.stale) or tried.share < least
        lines = [str(problem) for problem in proof.problems]
        lines += [f"survived: {mutant.id}" for mutant in tried.survivors]
        lines += [f"equivalent.toml lists what is no mutant: {id}" for id in tried.stale]
        for line in lines:
            out.print(f"{proof.exercise.id}: {line}", markup=False, soft_wrap=True)
    out.print(as_tables(trials), markup=False, soft_wrap=True)
    if page is not None:
        page.write_text(as_page(course, trials, seed), encoding="utf-8")
    if wrong:
        raise typer.Exit(1)


@app.command()
def sample(chapter: ChapterArgument = "ch01_formats") -> None:
    """Hand in a sample class: right, half done, mistaken, crashing and hostile submissions.

    Only folders of students whose name starts with `sample-` are written.
    """
    from grader.authoring.sample import hand_in, sample_class

    chosen = find_course().chapter(chapter)
    files = hand_in(chosen, sample_class(chosen))
    out.print(f"{len(files)} submissions in {chosen.root / 'submitted'}", soft_wrap=True)


@app.command()
def scores(chapter: ChapterArgument) -> None:
    """Show the last grading of a chapter: students, points, outcomes, diagnosis, feedback pages."""
    from grader.scores import read_scores, table

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


@app.command()
def grade(
    chapter: ChapterArgument,
    jobs: Annotated[int, typer.Option(min=0, help="Worker processes; 0 is one for each core.")] = 0,
    student: Annotated[str, typer.Option(help="Only these: a name, or a pattern.")] = "*",
    force: Annotated[bool, typer.Option("--force", help="Grade what is graded, too.")] = False,
    seed: Annotated[int, typer.Option(help="Seed of all inputs; 0 draws a secret one.")] = 0,
    trust: Trust = False,
) -> None:
    """Grade submissions in parallel, with the same result as nbgrader autograde.

    Interrupt it at any time: what was graded is kept, the same command grades the rest.
    Exit status: 0 every submission is graded (or needs review, which is said), 1 some are not,
    128 and the signal's number if interrupted.
    """
    from grader.nbgrader.commands import grade_chapter
    from grader.progress import show_progress, summary

    find_course().chapter(chapter)
    with show_progress(out) as report:
        tally = grade_chapter(
            find_course().root, chapter, jobs, student, force, seed, trust, report
        )
    out.print(summary(tally, chapter), soft_wrap=True, markup=False)
    if tally.signal:
        raise typer.Exit(128 + tally.signal)
    if tally.left:
        raise typer.Exit(1)


@app.command()
def regrade(
    chapter: ChapterArgument,
    student: Annotated[str, typer.Option(help="Only these: a name, or a pattern.")] = "*",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show it, change nothing.")] = False,
) -> None:
    """Apply the present checks and points to kept evidence. No student code runs.

    Shows whose verdict changed and why. Exit status: 0 all evidence could be judged, 1 an exercise
    needs a real run because its probes or inputs changed.
    """
    from grader.nbgrader.commands import regrade_chapter
    from grader.nbgrader.regrade import Change
    from grader.progress import changes_table

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


@app.command()
def evidence(
    older_than: Annotated[float, typer.Option(help="Last written at least so many days ago.")] = 0,
    delete: Annotated[bool, typer.Option("--delete", help="Delete it for good.")] = False,
) -> None:
    """List kept evidence with its size, or delete what is old. Grades stay as they are."""
    from grader.core.store import delete as delete_folder
    from grader.core.store import kept

    root, total = find_course().root, 0
    for folder, size in kept(root, older_than):
        total += size
        if delete:
            delete_folder(folder)
        out.print(f"{size / 2**20:8.2f} MiB  {folder.relative_to(root)}", soft_wrap=True)
    out.print(f"{total / 2**20:8.2f} MiB  {'deleted' if delete else 'in all'}")


@app.command()
def doctor() -> None:
    """Say what this machine can do for a sandbox, and what mends what it lacks."""
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


if __name__ == "__main__":
    main()
