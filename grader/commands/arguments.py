"""Words on the command line that several commands take, each with its help and its completion."""

from typing import Annotated

import typer

from grader.commands import completion

ChapterArgument = Annotated[
    str,
    typer.Argument(
        metavar="CHAPTER",
        autocompletion=completion.chapters,
        help="A chapter's id, e.g. `ch01_formats`.",
    ),
]
ExerciseArguments = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="EXERCISE|CHAPTER",
        autocompletion=completion.exercises_and_chapters,
        help="All if left out.",
    ),
]
StudentOption = Annotated[
    str,
    typer.Option(
        autocompletion=completion.students,
        help="Only these: a name, or a pattern in quotes (`'a*'`).",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON in place of text.")]
