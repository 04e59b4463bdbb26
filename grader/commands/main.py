"""The `undertorch` command: its subcommands stand beside this file, by who needs them.

Exit status: 0 done and well, 1 done and something is wrong, 2 not done: called wrongly, or what it
needs is missing; a command that was interrupted ends with 128 plus the signal's number, as in any
shell: 130 for Ctrl-C.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from grader.commands import author, instructor, student, tried
from grader.commands.consoles import err
from grader.course.course import COURSE_FILE, CourseError

HANDED_IN = ("submitted", "autograded", "feedback", "evidence", "dropped")
"""Folders of a course in which files lie that students handed in."""

app = typer.Typer(
    help="Learn how PyTorch works inside, and grade those who do.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
for who in (student, instructor, author, tried):
    app.add_typer(who.app)


def _say_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"undertorch {version('undertorch')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_say_version, is_eager=True, help="Print the version and end."
        ),
    ] = False,
) -> None:
    """Learn how PyTorch works inside, and grade those who do."""


def _refuse_among_what_was_handed_in() -> None:
    """Raise `CourseError` where the nearest course, with its configuration, may be a student's own.

    A file `nbgrader_config.py` is a program, and pdb takes orders from a file in the working folder.
    """
    try:
        here = Path.cwd().resolve()
    except FileNotFoundError:  # somebody removed it
        return
    for root in reversed(here.parents):  # from the outside: nobody hands in what lies around it
        marks = (COURSE_FILE, "nbgrader_config.py", "gradebook.db")
        if here.relative_to(root).parts[0] in HANDED_IN and any(
            (root / name).is_file() for name in marks
        ):
            raise CourseError(
                f"In {here} lies what was handed in, and it may hold settings that run as programs. "
                f"Run the command in the course's folder: cd {root}"
            )


def main() -> None:
    """Run the command; turn known troubles into one line that says what to do."""
    from grader.nbgrader import commands_on_path

    commands_on_path()
    try:
        _refuse_among_what_was_handed_in()
        app()
    except CourseError as error:
        err.print(Text("undertorch: ", "red") + Text(str(error)), soft_wrap=True)
        raise SystemExit(2) from None


if __name__ == "__main__":
    main()
