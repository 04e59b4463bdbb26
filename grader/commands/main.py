"""The `undertorch` command: its subcommands stand beside this file, by who needs them.

Exit status: 0 done and well, 1 done and something is wrong, 2 not done: called wrongly, or what it
needs is missing; a command that was interrupted ends with 128 and the signal's number, as in any
shell: 130 for Ctrl-C.
"""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from grader.commands import author, instructor, student, tried
from grader.commands.consoles import err
from grader.course.course import CourseError

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
        typer.Option("--version", callback=_say_version, is_eager=True, help="Say it and end."),
    ] = False,
) -> None:
    """Learn how PyTorch works inside, and grade those who do."""


def main() -> None:
    """Run the command; turn known troubles into one line that says what to do."""
    from grader.nbgrader import commands_on_path

    commands_on_path()
    try:
        app()
    except CourseError as error:
        err.print(Text("undertorch: ", "red") + Text(str(error)), soft_wrap=True)
        raise SystemExit(2) from None


if __name__ == "__main__":
    main()
