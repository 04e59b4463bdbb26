"""The commands of an author, which `undertorch` lists beside its others."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from grader.commands import completion
from grader.commands.arguments import ChapterArgument, ExerciseArguments
from grader.course.course import Chapter, Course, CourseError, Exercise, find_course

app = typer.Typer()
out = Console(highlight=False)

PANEL = "For authors"


@app.command(rich_help_panel=PANEL)
def build(
    chapter: Annotated[
        str,
        typer.Argument(
            metavar="CHAPTER|myths",
            autocompletion=completion.built,
            help="A chapter's id, or `myths`; all if left out.",
        ),
    ] = "",
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Run and change nothing; fail if a cell, a notebook or a page is not the source's. "
            "Whether outputs still come out the same, `pytest --nbval solutions` tells. Myths are run.",
        ),
    ] = False,
) -> None:
    """Build notebooks and site pages from the chapters' sources, `solutions/*/*.pct.py`.

    Exit status: 0 built, 1 with `--check` something is not its source's, 2 no such chapter, or a
    source that cannot be built.
    """
    from grader.building.build import build_chapter, build_myths, differing, install, sources

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


@app.command(rich_help_panel=PANEL)
def validate(
    exercises: ExerciseArguments = None,
    seed: Annotated[int, typer.Option(help="Seed of the inputs.")] = 1,
    variant: Annotated[
        Path | None,
        typer.Option(help="Prove the private variants that the secret in this file draws."),
    ] = None,
    all_variants: Annotated[
        bool, typer.Option("--all-variants", help="Prove every private variant there is.")
    ] = False,
) -> None:
    """Run every known answer and say which do not get the verdict that they must get.

    Works on what `undertorch build` last built; private variants are built for the purpose, and of
    exercises without parameters there are none.

    Exit status: 0 all do, 1 some do not, 2 no such exercise.
    """
    from grader.course.parameters import shown
    from grader.proving.validate import orphans, prove

    course: Course = find_course()
    chosen = _exercises(course, exercises)
    problems = [] if exercises else [p for c in course.chapters() for p in orphans(c)]
    private = variant is not None or all_variants
    for chapter, exercise in _variants(chosen, variant) if private else chosen:
        proof = prove(chapter, exercise, seed)
        problems += proof.problems
        of = f" ({shown(exercise.variant)})" if exercise.variant else ""
        out.print(
            f"{'ok ' if not proof.problems else 'BAD'} {exercise.id + of:<28} {proof.checks} checks, "
            f"{proof.mistakes} mistakes, {proof.alternates} alternates",
            markup=False,
            soft_wrap=True,
        )
    for problem in problems:
        out.print(f"  {problem}", markup=False, soft_wrap=True)
    if problems:
        raise typer.Exit(1)


def _variants(
    chosen: list[tuple[Chapter, Exercise]], secret: Path | None
) -> Iterator[tuple[Chapter, Exercise]]:
    """Yield private variants of the exercises that have any: those of a secret, else all."""
    from grader.building.variants import drawn, every, standing
    from grader.instructor.variants import read_secret

    having = [(chapter, exercise.id) for chapter, exercise in chosen if exercise.parameters]
    if not having:
        raise CourseError("None of these exercises has parameters: there are no variants to prove.")
    for chapter in dict.fromkeys(chapter for chapter, _ in having):
        names = [name for other, name in having if other == chapter]
        for found in [drawn(chapter, read_secret(secret))] if secret else every(chapter, names):
            with standing(chapter, found) as private:
                for name in names:
                    if name in found:
                        yield private, private.exercise(name)


def _exercises(course: Course, names: list[str] | None) -> list[tuple[Chapter, Exercise]]:
    """Return exercises with their chapters, in the course's order; a chapter's name means all of it,
    None all there are.
    """
    found = [(chapter, exercise) for chapter in course.chapters() for exercise in chapter.exercises]
    unknown = set(names or ()) - {name for c, e in found for name in (c.id, e.id)}
    if unknown:
        raise CourseError(f"No exercise or chapter is called {', '.join(sorted(unknown))}.")
    return [(c, e) for c, e in found if not names or {c.id, e.id} & set(names)]


@app.command(rich_help_panel=PANEL)
def answer(
    exercise: Annotated[
        str,
        typer.Argument(
            metavar="EXERCISE", autocompletion=completion.exercises, help="An exercise's id."
        ),
    ],
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            autocompletion=completion.answers,
            help="A known answer's name; a list of all if left out.",
        ),
    ] = "",
) -> None:
    """Print a known answer as the whole program that it is, or list an exercise's known answers.

    An answer that is written as an edit is applied to what it is an edit of; parameters have the
    values that the course has.

    Exit status: 0 printed, 2 no such exercise or answer, or one that cannot be read.
    """
    from textwrap import shorten

    from grader.course.answers import read_answers

    chapter = find_course().chapter_of(exercise)
    known = {one.name: one for one in read_answers(chapter, chapter.exercise(exercise))}
    if name in known:
        out.file.write(known[name].source)
    elif name:
        names = ", ".join(known) or "none"
        raise CourseError(f"{exercise} has no known answer {name!r}. It has: {names}.")
    width = max(map(len, known), default=0)
    for one in () if name else known.values():
        said = shorten(one.explanation, 100 - width, placeholder=" …")
        out.print(f"{one.role.value:9}  {one.name:{width}}  {said}", markup=False, soft_wrap=True)


new = typer.Typer(help="Scaffold what an author writes.", no_args_is_help=True)
app.add_typer(new, name="new", rich_help_panel=PANEL)


@new.command("exercise")
def new_exercise(
    chapter: ChapterArgument,
    exercise: Annotated[
        str,
        typer.Argument(metavar="EXERCISE", help="The function's name, e.g. `round_to_bf16`."),
    ],
) -> None:
    """Add an exercise to a chapter: a section, a probe, checks and known answers to fill in.

    Exit status: 0 written, 2 no such chapter, or the name is taken.
    """
    from grader.building.scaffold import scaffold

    for path in scaffold(find_course(), chapter, exercise):
        out.print(f"written: {path}", soft_wrap=True)
    out.print(
        f"Fill them in, then run: undertorch build {chapter} && undertorch validate {exercise}"
    )


@app.command(rich_help_panel=PANEL)
def trial(
    exercises: ExerciseArguments = None,
    seed: Annotated[int, typer.Option(help="Seed of the inputs.")] = 1,
    least: Annotated[
        float, typer.Option(help="Least share of mutants killed, per exercise.")
    ] = 0.95,
    page: Annotated[
        Path | None,
        typer.Option(help="Put the tables of whole chapters, with the commit, into this page."),
    ] = None,
    jobs: Annotated[int, typer.Option(help="How many exercises at a time.")] = os.cpu_count() or 1,
) -> None:
    """Put the graders on trial: every known answer, and every mutant of every reference.

    A mutant is the reference solution with one small thing changed. One that passes all checks
    shows what they do not test.

    Exit status: 0 all is as it must be, 1 a wrong verdict, too many survivors, or a stale list of
    equivalent mutants, 2 no such exercise.
    """
    from grader.proving.trial import as_table, try_exercises, write_section

    course, wrong = find_course(), False
    chosen = _exercises(course, exercises)
    tried_exercises = try_exercises(chosen, seed, jobs)
    for chapter, of_chapter in groupby(tried_exercises, lambda both: both[1].chapter):
        trials = []
        for proof, tried in of_chapter:
            trials.append((proof, tried))
            wrong = wrong or bool(proof.problems or tried.stale) or tried.share < least
            lines = [str(problem) for problem in proof.problems]
            lines += [f"survived: {mutant.id}" for mutant in tried.survivors]
            lines += [f"equivalent.toml lists what is no mutant: {id}" for id in tried.stale]
            for line in lines or [f"{tried.killed} of {tried.made} mutants killed"]:
                out.print(f"{proof.exercise.id}: {line}", markup=False, soft_wrap=True)
        out.print(f"\n{as_table(trials)}\n", markup=False, soft_wrap=True)
        if page is not None and len(trials) == len(chapter.exercises):
            write_section(page, course, trials, seed)
    if wrong:
        raise typer.Exit(1)


@app.command(rich_help_panel=PANEL)
def sample(chapter: ChapterArgument = "ch01_formats") -> None:
    """Hand in a sample class: right, half done, mistaken, crashing and hostile submissions.

    Only folders of students whose name starts with `sample-` are written.

    Exit status: 0 written, 2 no such chapter.
    """
    from grader.building.sample import hand_in, sample_class

    chosen = find_course().chapter(chapter)
    files = hand_in(chosen, sample_class(chosen))
    out.print(f"{len(files)} submissions in {chosen.root / 'submitted'}", soft_wrap=True)
