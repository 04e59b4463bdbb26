"""The commands of a course folder: `undertorch course new`, `apply` and `roster`."""

from __future__ import annotations

import json
from dataclasses import asdict
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from grader.commands.arguments import AsJson, ChapterArgument
from grader.commands.consoles import out
from grader.course.course import COURSE_FILE, CourseError
from grader.course.parameters import as_keywords

if TYPE_CHECKING:
    from grader.instructor.folder import Applied, ApplyReport

app = typer.Typer(
    no_args_is_help=True, help="Set up and keep a course of chosen chapters and exercises."
)


class Breadth(str, Enum):
    """How much of a chapter a course takes."""

    WHOLE = "whole"
    SHORT = "short"


@app.command()
def new(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The new folder.")],
    chapters: Annotated[
        str, typer.Option(help="Whole chapters, by commas: ch01_formats,ch02_strides.")
    ] = "",
    exercises: Annotated[
        str, typer.Option(help="Single exercises, by commas: decode,ch02_strides/view_of.")
    ] = "",
    path: Annotated[
        Breadth,
        typer.Option(help="All of each chapter, or its short path: 2 to 3 hours of it."),
    ] = Breadth.WHOLE,
    private: Annotated[
        bool,
        typer.Option("--private", help="Draw variants that the public solutions do not answer."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make a course folder with chosen chapters and exercises; all of them if none is chosen.

    With `--path short` the exercises off the short path are neither graded nor in the notebooks;
    name some with --exercises to add them.

    Points, due dates, the policy for late work and extensions are in its undertorch.toml: edit
    that and run `undertorch course apply`.

    Exit status: 0 it is there, 2 nothing was written.
    """
    from grader.instructor.folder import new_course

    short = path is Breadth.SHORT
    new_course(folder, _listed(chapters), _listed(exercises), short=short, private=private)
    _apply(folder, overwrite=False, as_json=as_json)
    if not as_json:
        out.print(f"Next: edit {folder / COURSE_FILE}, then, in {folder}: undertorch course apply")


@app.command()
def apply(
    overwrite: Annotated[
        bool,
        typer.Option("--overwrite", help="Write edited source notebooks anew; yours go to kept/."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Bring the folder in line with its undertorch.toml: notebooks, points, due dates, penalties.

    Exit status: 0 it is, 2 the file is wrong or nbgrader refused; the message says what to do.
    """
    _apply(_course_folder(), overwrite=overwrite, as_json=as_json)


@app.command()
def roster(
    students: Annotated[
        Path,
        typer.Argument(
            metavar="CSV",
            help="Columns: id, first name, last name, email, lms id; or Canvas's or Moodle's file.",
        ),
    ],
    id_column: Annotated[
        str, typer.Option(help="The column with the ids, if it is not the usual one.")
    ] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show it, change nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Add the students of a class list to the gradebook and change those that differ.

    What the list has no column for stays as it is. Canvas's gradebook file and Moodle's participants
    are read as they come: ids are Canvas's SIS Login ID and Moodle's Username (or ID number). Nobody
    is removed.

    Exit status: 0 the gradebook agrees with the list, 2 a line is wrong and nothing was imported.
    """
    from grader.instructor.roster import import_roster

    changes = import_roster(_course_folder(), students, id_column=id_column, dry=dry_run)
    if as_json:
        typer.echo(json.dumps(asdict(changes)))
        return
    for student in changes.added:
        _say(f"new      {student}")
    for id, said in changes.changed.items():
        _say(f"changed  {id}: {'; '.join(said)}")
    for student in changes.absent:
        _say(
            f"absent   {student}: in the gradebook, not in the list. For someone who left: "
            f"undertorch course drop {student.id}"
        )
    for id in changes.dropped:
        _say(f"dropped  {id}: stays so. For someone who is back: undertorch course rejoin {id}")
    _say(
        f"{len(changes.added)} new, {len(changes.changed)} changed, {changes.unchanged} as before, "
        f"{len(changes.absent)} not in the list." + (" Nothing was written." if dry_run else "")
    )


@app.command()
def collect(
    chapter: ChapterArgument,
    file: Annotated[
        Path, typer.Argument(metavar="ZIP", help="All submissions, as the LMS gives them.")
    ],
    place: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NUMBER=STUDENT", help="Whose work it is, by the number in its name in the zip."
        ),
    ] = None,
) -> None:
    """Lay the submissions in a zip from Canvas or Moodle into `submitted/`.

    Canvas's are found by its number of the student, which `course roster` reads from its own list;
    all others by name. What fits nobody, or two, is named with its number; --place says whose it is.
    A submission takes the place of the one before; grading notices.

    Exit status: 0 every notebook has its place, 1 some have none and are named, 2 it is no zip, or
    nothing in it is a submission.
    """
    from grader.course.course import course_at
    from grader.instructor.collect import collect as lay_out
    from grader.nbgrader.coursebook import CourseBook
    from grader.nbgrader.naming import names

    pairs = dict(one.partition("=")[::2] for one in place or ())
    if not all(number.isdigit() and id for number, id in pairs.items()):
        raise typer.BadParameter("--place takes NUMBER=STUDENT: 61030=ada")
    file, folder = file.absolute(), _course_folder()
    found = course_at(folder).chapter(chapter)
    book = CourseBook(folder)
    students, dropped = book.students(), book.dropped_students()
    done = lay_out(found, file, students.values(), dropped.values(), pairs)
    _say(f"{len(done.placed)} laid into submitted/, {len(done.unchanged)} as before.")
    if done.late:
        _say(
            f"Late, by the file's name: {names(done.late)}. The name does not say how late: without a "
            "timestamp.txt beside it, a submission counts as on time."
        )
    for name, why in done.unplaced.items():
        _say(f"not placed: {name}: {why}")
    if done.unplaced:
        raise typer.Exit(1 if done.placed or done.unchanged else 2)


Students = Annotated[list[str], typer.Argument(metavar="STUDENT", help="Ids of students.")]


@app.command()
def drop(students: Students) -> None:
    """Take students who left out of the course: nothing counts them, and nothing of theirs is lost.

    Their rows in the gradebook, submissions, feedback and evidence move to `dropped/`.

    Exit status: 0 they are out, 2 there is no such student and nothing was changed.
    """
    from grader.nbgrader.coursebook import CourseBook

    CourseBook(_course_folder()).drop(students)
    for id in students:
        _say(f"{id} is out of the course. What is theirs lies in dropped/{id}")


@app.command()
def rejoin(students: Students) -> None:
    """Bring dropped students back, with all that they had.

    Exit status: 0 they are back, 1 something of theirs found no place and is named, 2 somebody was
    not dropped and nothing was changed.
    """
    from grader.nbgrader.coursebook import CourseBook

    lost = CourseBook(_course_folder()).rejoin(students)
    for id in students:
        _say(f"{id} is back in the course.")
    for line in lost:
        _say(line)
    if lost:
        raise typer.Exit(1)


def _listed(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _course_folder() -> Path:
    """Return the course folder around the working directory."""
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / COURSE_FILE).is_file():
            return folder
    raise CourseError(f"No course folder here: no {COURSE_FILE}. Make one: undertorch course new")


def _apply(folder: Path, *, overwrite: bool, as_json: bool) -> None:
    from grader.instructor.folder import apply_course

    if as_json:
        report = apply_course(folder, overwrite=overwrite)
        typer.echo(json.dumps({**asdict(report), "folder": str(report.folder)}))
        return
    with out.status("Reading the chapters"):
        report = apply_course(folder, _say_chapter, overwrite=overwrite)
    _say_rest(report)


def _say_chapter(applied: Applied) -> None:
    exercises = f"{applied.exercises} exercise{'s' * (applied.exercises != 1)}"
    due = ", new due date" if applied.due_changed else ""
    _say(f"{applied.chapter}: {exercises}, {applied.points:g} points, {applied.state}{due}")
    for name, values in applied.variant.items():
        _say(f"  {name} asks for {as_keywords(values)}.")
    for name, user in applied.given.items():
        _say(f"  The course's answer to {name} is in the notebook: {user} uses it.")
    for name, lacks in applied.missing.items():
        _say(f"  {name} builds on {', '.join(lacks)}, not chosen: its text may refer to it.")
    if applied.state == "edited here":
        _say("  Its source notebook was changed by hand and stays. To write it anew: --overwrite")


def _say_rest(report: ApplyReport) -> None:
    for changed in report.penalties:
        _say(
            f"{changed.student}, {changed.chapter}: late penalty {changed.after:g}, "
            f"was {changed.before:g}"
        )
    for one in report.chapters:
        if one.to_regrade:
            number = f"{one.to_regrade} graded submission{'s' * (one.to_regrade != 1)}"
            _say(
                f"{number} of {one.chapter} have the old points. Next: undertorch regrade {one.chapter}"
            )
    for name in report.others:
        _say(f"{name} is in source/ and not in the file: it was left alone.")


def _say(line: str) -> None:
    out.print(line, soft_wrap=True)
