"""The commands that pack a chapter's grader for another service: `undertorch bundle …`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from grader.commands.arguments import ChapterArgument
from grader.commands.consoles import out
from grader.course.course import find_course

if TYPE_CHECKING:
    from grader.instructor.bundles.material import Packed

app = typer.Typer(
    no_args_is_help=True, help="Pack a chapter's grader for Gradescope or GitHub Actions."
)


@app.command()
def gradescope(
    chapter: ChapterArgument,
    output: Annotated[
        Path | None, typer.Option(help="Default: gradescope-CHAPTER.zip.", dir_okay=False)
    ] = None,
) -> None:
    """Write an autograder zip for Gradescope: upload it under Configure Autograder.

    In a course folder it holds your exercises, points and limits. Submissions run in our sandbox; where
    Gradescope's container allows no namespaces, as another user of that container. The zip holds
    solutions: it is for instructors' eyes only.

    Exit status: 0 written, 2 no such chapter.
    """
    from grader.instructor.bundles.archive import write_gradescope

    found = find_course().chapter(chapter)
    _say(write_gradescope(found, (output or Path(f"gradescope-{chapter}.zip")).absolute()))


@app.command()
def github(
    chapter: ChapterArgument,
    output: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="A new folder. Default: github-CHAPTER.", file_okay=False
        ),
    ] = None,
) -> None:
    """Write what grades a chapter on GitHub Actions, for Classroom 50 or for your own template.

    `template/` goes into the repository that students' copies are made from; `classroom50/` into
    autograders/ASSIGNMENT of Classroom 50's, with runtime.json as the assignment's runtime. Students
    can read all of it, and change what lies in their own repository. A private variant is refused.

    Exit status: 0 written, 2 no such chapter, a private variant, or a folder that holds something.
    """
    from grader.instructor.bundles.archive import write_github

    found = find_course().chapter(chapter)
    _say(write_github(found, (output or Path(f"github-{chapter}")).absolute()))


def _say(packed: Packed) -> None:
    size = f", {packed.path.stat().st_size / 2**20:.1f} MiB" if packed.path.is_file() else ""
    out.print(f"{packed.path}{size}", soft_wrap=True)
    number = f"{packed.exercises} exercise{'s' * (packed.exercises != 1)}"
    out.print(
        f"{number}, {packed.points:g} points. Students hand in {packed.notebook}. Solutions are in it.",
        soft_wrap=True,
    )
