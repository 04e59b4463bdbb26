"""The commands of an author, which `undertorch` lists beside its others."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from grader.commands import completion
from grader.commands.arguments import ChapterArgument, ExerciseArguments
from grader.commands.consoles import out
from grader.course.course import Chapter, Course, CourseError, Exercise, find_course

app = typer.Typer()

PANEL = "For authors"


@app.command(rich_help_panel=PANEL)
def build(
    what: Annotated[
        str,
        typer.Argument(
            metavar="CHAPTER|EXERCISE|myths|questions",
            autocompletion=completion.built,
            help="A chapter's or an exercise's id, `myths` or `questions`; all if left out.",
        ),
    ] = "",
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Run and change nothing; fail if a cell, a notebook or a page is not the source's. "
            "`pytest --nbval solutions` tells whether outputs still come out the same. "
            "Programs of myths and questions are run, unless with --no-run.",
        ),
    ] = False,
    no_run: Annotated[
        bool,
        typer.Option(
            "--no-run",
            help="Run nothing: a cell keeps the output of the last build, a new or changed one has "
            "none; so does a program of myths or questions, and a new one is an error. "
            "Not checked: that cells run, that references get their points, graders' files.",
        ),
    ] = False,
) -> None:
    """Build notebooks and site pages from the chapters' sources, `solutions/*/*.pct.py`.

    A chapter is run as a whole. Of an exercise the cells up to the next card are run, grade cells of
    others left out; later cells keep their outputs. Not checked then: that these still come out the
    same, and the other exercises' graders. Build the chapter before you commit.

    Exit status: 0 built, 1 with `--check` something is not its source's, 2 no such chapter or exercise,
    or a source that cannot be built.
    """
    from grader.building.build import (
        Built,
        build_chapter,
        build_myths,
        build_questions,
        differing,
        first_difference,
        install,
        never_run,
    )

    course = find_course()
    stale: list[Path] = []
    unrun: dict[str, int] = {}

    def compare(built: list[Built]) -> None:
        if check:
            stale.extend(differing(course, built))
            out.print(first_difference(course, built), end="")
        else:
            stale.extend(install(course, built))

    chosen, only = _chosen_sources(course, what)
    if only and (check or no_run):
        raise CourseError("--check and --no-run take a chapter whole: name the chapter.")
    for source in chosen:
        built = build_chapter(course, source, run=not (check or no_run), only=only)
        compare(built)
        unrun[source.parent.name] = never_run(built)
    if what in ("", "myths"):
        compare(build_myths(course, run=not no_run))
    if what in ("", "questions"):
        compare(build_questions(course, run=not no_run))
    for path in stale:
        done = "built" if (course.root / path).is_file() else "removed"
        out.print(f"{'out of date' if check else done}: {path}")
    for chapter, cells in unrun.items():
        if cells:
            out.print(f"{cells} cells of {chapter} have no output yet: undertorch build {chapter}")
    if check and stale:
        out.print("Run: undertorch build")
        raise typer.Exit(1)
    if not stale:
        out.print("Everything is up to date.")


def _chosen_sources(course: Course, what: str) -> tuple[list[Path], str]:
    """Return the sources to build, and the exercise if `what` is one."""
    from grader.building.sources import source_of, source_with, sources

    if what in ("", "myths", "questions"):
        return ([] if what else sources(course)), ""
    whole, part = source_of(course, what), source_with(course, what)
    if whole is None and part is None:
        raise CourseError(
            f"No source in {course.root / 'solutions'} is called {what!r} or has an exercise of that name."
        )
    return ([whole], "") if whole else ([part] if part else [], what)


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
    more_seeds: Annotated[
        int, typer.Option(min=1, help="With how many other seeds right answers must be right.")
    ] = 8,
) -> None:
    """Run every known answer and say which do not get the verdict that they must get.

    They are asked with more seeds, too: no right answer is to be refused by chance, and no mistake
    found, or explained, by chance.
    Works on what `undertorch build` last built, and refuses a chapter whose source was changed since;
    private variants are built for the purpose, and of exercises without parameters there are none.

    Exit status: 0 all do, 1 some do not, 2 no such exercise, or it is not built, or not as a whole.
    """
    from grader.course.parameters import as_keywords
    from grader.proving.chance import found_by_chance, refused_by_chance
    from grader.proving.validate import orphans, pacing, prove

    course: Course = find_course()
    chosen = chosen_exercises(course, exercises)
    whole = [c for c in course.chapters() if not exercises or c.id in exercises]
    problems = [found for one in whole for look in (orphans, pacing) for found in look(one)]
    private = variant is not None or all_variants
    for chapter, exercise in _variants(chosen, variant) if private else chosen:
        proof = prove(chapter, exercise, seed)
        wrong = [
            *proof.problems,
            *found_by_chance(chapter, exercise, proof.marks, seed),
            *refused_by_chance(chapter, exercise, seed, more_seeds),
        ]
        problems += wrong
        of = f" ({as_keywords(exercise.variant)})" if exercise.variant else ""
        out.print(
            f"{'BAD' if wrong else 'ok '} {exercise.id + of:<28} {proof.checks} checks, "
            f"{proof.mistakes} mistakes, {proof.alternates} alternates",
            soft_wrap=True,
        )
    for problem in problems:
        out.print(f"  {problem}", soft_wrap=True)
    if problems:
        raise typer.Exit(1)


def _variants(
    chosen: list[tuple[Chapter, Exercise]], secret: Path | None
) -> Iterator[tuple[Chapter, Exercise]]:
    """Yield private variants of the exercises that have any: those of a secret, else all."""
    from grader.building.variants import drawn, every, temporary_variant
    from grader.instructor.private_variant import read_secret

    having = [(chapter, exercise.id) for chapter, exercise in chosen if exercise.parameters]
    if not having:
        raise CourseError("None of these exercises has parameters: there are no variants to prove.")
    for chapter in dict.fromkeys(chapter for chapter, _ in having):
        names = [name for other, name in having if other == chapter]
        for found in [drawn(chapter, read_secret(secret))] if secret else every(chapter, names):
            with temporary_variant(chapter, found) as private:
                for name in names:
                    if name in found:
                        yield private, private.exercise(name)


def chosen_exercises(course: Course, names: list[str] | None) -> list[tuple[Chapter, Exercise]]:
    """Return exercises with their chapters, in the course's order; a chapter's name means all of it,
    None all there are. What is proved is what was built: of a source that was changed, nothing.
    """
    from grader.building.stale import check_built, not_built

    found = [(chapter, exercise) for chapter in course.chapters() for exercise in chapter.exercises]
    unknown = set(names or ()) - {name for c, e in found for name in (c.id, e.id)}
    if unknown:
        called = f"No exercise or chapter is called {', '.join(sorted(unknown))}."
        raise CourseError(not_built(course, unknown) or called)
    chosen = [(c, e) for c, e in found if not names or {c.id, e.id} & set(names)]
    for chapter in dict.fromkeys(chapter for chapter, _ in chosen):
        check_built(course, chapter)
    return chosen


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
        out.print(f"{one.role.value:9}  {one.name:{width}}  {said}", soft_wrap=True)


new = typer.Typer(help="Scaffold what an author writes.", no_args_is_help=True)
app.add_typer(new, name="new", rich_help_panel=PANEL)


@new.command("exercise")
def new_exercise(
    chapter: ChapterArgument,
    exercise: Annotated[
        str,
        typer.Argument(metavar="EXERCISE", help="The function's name, e.g. `round_to_bf16`."),
    ],
    after: Annotated[
        str,
        typer.Option(
            autocompletion=completion.exercises,
            help="The exercise whose section it follows; the chapter's last if left out.",
        ),
    ] = "",
) -> None:
    """Add an exercise to a chapter: a section, a probe, checks and known answers to fill in.

    Exit status: 0 written, 2 no such chapter or exercise to follow, or the name is taken.
    """
    from grader.building.scaffold import scaffold

    written = scaffold(find_course(), chapter, exercise, after)
    for path in written.files:
        out.print(f"written: {path}", soft_wrap=True)
    place = f"after that of {written.after}" if written.after else "first"
    end = (
        ", at the chapter's end: `--after EXERCISE` puts it elsewhere"
        if written.after and not after
        else ""
    )
    out.print(
        f"The section stands {place}{end}.\n"
        "Where PyTorch does the same, site/reading.yml takes a line, and the page a link:\n"
        f"    {exercise}: [torch/path/in/the/repository.py symbol]\n"
        f"Fill all in, then: undertorch build {exercise} && undertorch validate {exercise}\n"
        f"At the end, the whole chapter: undertorch build {chapter}",
        soft_wrap=True,
    )


@app.command(rich_help_panel=PANEL)
def prove(
    exercises: ExerciseArguments = None,
    check: Annotated[
        bool, typer.Option("--check", help="Run nothing; fail if a proof of these is not of today.")
    ] = False,
    stale: Annotated[
        bool, typer.Option("--stale", help="Prove only what the ledger does not vouch for.")
    ] = False,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of the inputs; 0 is that of notebooks.")
    ] = 0,
    jobs: Annotated[int, typer.Option(help="How many exercises at a time.")] = os.cpu_count() or 1,
) -> None:
    """Prove the graders: every known answer, every mutant of every reference, every output.

    A mutant is the reference solution with one small thing changed. One that passes all checks
    shows what they do not test. Of chapters named as a whole the reference notebook runs again, and
    each output must be the one it was built with. What is proved is written into the chapter's
    ledger, `grader/<chapter>/proofs.json`, and stands until something it rests on changes, or a
    later proof fails; the site's page about the trial is made from the ledgers. What the known
    mistakes do in a notebook goes into `known.json` beside it: a notebook need not run them.

    Exit status: 0 all is as it must be, 1 a wrong verdict, a survivor, a check that ended with an error
    of its own, a stale list of equivalent mutants, another output, or with `--check` a proof that is not
    of today, 2 no such exercise.
    """
    from grader.building.graders import check_graders
    from grader.proving.digest import notebook_digest
    from grader.proving.ledger import (
        read_ledger,
        stale_of,
        withdraw_row,
        write_notebook_digest,
        write_rows,
    )
    from grader.proving.prove import prove_exercises, row_of, run_notebooks
    from grader.proving.trial_page import write_page
    from grader.verdict.known import made_on, write_known

    course, wrong = find_course(), False
    chosen = chosen_exercises(course, exercises)
    notebooks = [c for c in course.chapters() if all((c, e) in chosen for e in c.exercises)]
    if check or stale:
        known = stale_of(course)
        chosen = [(c, e) for c, e in chosen if e.id in known]
        notebooks = [chapter for chapter in notebooks if chapter.id in known]
    if check:
        for name in [*(e.id for _, e in chosen), *(chapter.id for chapter in notebooks)]:
            out.print(f"{name}: {known[name]}")
        out.print("Run: make prove" if chosen or notebooks else "Every proof is of today.")
        raise typer.Exit(1 if chosen or notebooks else 0)
    for chapter in {chapter.id: chapter for chapter, _ in chosen}.values():
        # what is no ledger, or cannot be loaded, is told before the work and not after it
        read_ledger(chapter)
        check_graders(chapter, [exercise for of, exercise in chosen if of.id == chapter.id])
    for proof, tried, marks in prove_exercises(chosen, seed, jobs):
        lines = [str(problem) for problem in proof.problems]
        lines += [f"survived: {mutant.id}" for mutant in tried.survivors]
        lines += [f"a check broke on {mutant}" for mutant in tried.broken]
        lines += [f"equivalent.toml lists what is no mutant: {id}" for id in tried.stale]
        wrong = wrong or bool(lines)
        if lines:
            withdraw_row(tried.chapter, proof.exercise.id)
        else:
            # at once: a long run that is broken off loses nothing
            write_known(tried.chapter, proof.exercise.id, marks, made_on())
            write_rows(tried.chapter, {proof.exercise.id: row_of(proof, tried, seed)})
            counts = f"{proof.mistakes} mistakes, {proof.alternates} alternates"
            lines = [
                f"{proof.checks} checks, {counts}, {tried.killed} of {tried.made} mutants killed"
            ]
        for line in lines:
            out.print(f"{proof.exercise.id}: {line}", soft_wrap=True)
    for chapter, trouble in run_notebooks(notebooks, jobs):
        wrong = wrong or bool(trouble)
        write_notebook_digest(chapter, "" if trouble else notebook_digest(chapter))
        said = trouble or "every output comes out the same"
        out.print(f"{chapter.reference.name}: {said}", soft_wrap=True)
    write_page(course)
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
