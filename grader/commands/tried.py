"""`undertorch tried`: what the graders say of answers that somebody tried."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from grader.commands.arguments import AsJson, ExerciseArguments
from grader.commands.author import PANEL, chosen_exercises
from grader.commands.consoles import err, out
from grader.course.course import CourseError, find_course

if TYPE_CHECKING:
    from grader.proving.tried import Graded, Tally, Task

app = typer.Typer()


@app.command(rich_help_panel=PANEL)
def tried(
    exercises: ExerciseArguments = None,
    file: Annotated[
        list[Path] | None,
        typer.Option(help="Grade the answers of this file of JSON Lines too. May be repeated."),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="How many processes grade at a time.")] = 1,
    box: Annotated[
        bool | None,
        typer.Option(
            "--box/--fork",
            help="Run answers in a box, or in a fork without walls. A box where one works, "
            "if left out.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the inputs; a notebook's is 0.")] = 0,
    as_json: AsJson = False,
    require: Annotated[
        str,
        typer.Option(
            help="What must be met, e.g. `right=1,wrong=0.995,cheat=0.97,explained=0.85,silent=0`: "
            "shares at least, silent cheats at most."
        ),
    ] = "",
) -> None:
    """Grade answers that somebody tried, and count how often the verdict is what it should be.

    A chapter's own stand in `grader/<chapter>/tried/`. With `--file` and no chapter, only the files
    are graded. Right answers should be accepted, wrong ones rejected and explained, cheats denied
    full marks. A cheat with full marks and no note for review is silent. `explained` is a share of
    the rejected wrong ones: by a known mistake, or by a relation between what came and what was
    expected.

    Exit status: 0 what is required is met, 1 it is not, 2 no such exercise, or a file that cannot
    be read.
    """
    from grader.course.tried import read_lines, read_tried
    from grader.proving.tried import box_works, grade_tried, missed, required, tally, task_of

    try:
        wanted = required(require)
    except ValueError as error:
        raise CourseError(f"--require: {error}.") from None
    course = find_course()
    lines = [one for path in file or () for one in read_lines(path, course)]
    own = chosen_exercises(course, exercises) if exercises or not file else []
    named = {(one.chapter, one.exercise) for one in lines}
    tasks = [
        task_of(chapter, exercise, [*(read_tried(chapter, exercise) if kept else ()), *lines])
        for chapter in course.chapters()
        for exercise in chapter.exercises
        if (kept := (chapter, exercise) in own) or (chapter.id, exercise.id) in named
    ]
    tasks = [task for task in tasks if task.answers]
    boxed = box if box is not None else bool(tasks) and box_works(tasks[0].chapter)
    ended: dict[tuple[str, str], list[Graded]] = {}
    for task, graded in grade_tried(tasks, seed, jobs, boxed=boxed):
        ended[task.chapter.id, task.exercise.id] = graded
        _say(task, graded)
    ordered = [(task, ended[task.chapter.id, task.exercise.id]) for task in tasks]
    answers = [one for _, graded in ordered for one in graded]
    counted = tally(answers)
    if as_json:
        data = {**counted.to_data(), "answers": [one.to_data() for one in answers]}
        typer.echo(json.dumps(data, ensure_ascii=False))
    else:
        _show(ordered, counted)
    lacking = missed(counted, wanted)
    for sentence in lacking:
        err.print(f"missed: {sentence}", soft_wrap=True)
    if lacking:
        raise typer.Exit(1)


def _say(task: Task, graded: Sequence[Graded]) -> None:
    """Tell on standard error that an exercise is done, and which answers went another way."""
    err.print(f"{task.exercise.id}: {len(graded)} graded", soft_wrap=True)
    for one in graded:
        if not one.as_expected:
            note = f"; a person looks: {one.review}" if one.review else ""
            err.print(
                f"    {one.answer.kind.value} {one.answer.name} is {one.outcome}, "
                f"{one.points:g} of {one.max:g}{note}",
                soft_wrap=True,
            )


_COLUMNS = ("right accepted", "wrong rejected", "explained", "cheats denied", "silent")


def _show(ordered: Sequence[tuple[Task, list[Graded]]], counted: Tally) -> None:
    """Print a line for each exercise, and one for all."""
    from grader.proving.tried import tally

    rows = [(task.exercise.id, tally(graded)) for task, graded in ordered]
    width = max([len(name) for name, _ in rows] + [3])
    for line in [
        f"{'':{width}}  " + "  ".join(f"{column:>14}" for column in _COLUMNS),
        *(_row(f"{name:{width}}", one) for name, one in [*rows, ("all", counted)]),
    ]:
        out.print(line, soft_wrap=True)
    related = sum(
        one.answer.kind.value == "wrong" and bool(one.relation) and not one.explanation
        for _, graded in ordered
        for one in graded
    )
    out.print(f"Explained by a relation alone: {related}.", soft_wrap=True)


def _row(name: str, one: Tally) -> str:
    cells = [
        f"{met} of {of}" if of else "-"
        for met, of in (one.right, one.wrong, one.explained, one.cheat)
    ]
    return f"{name}  " + "  ".join(f"{cell:>14}" for cell in [*cells, str(one.silent)])
