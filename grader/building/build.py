"""One command from a chapter's source to reference notebook, released notebook and site pages.

Everything is built in a folder apart; then it is either put in place or compared with what is
there. Nothing depends on the machine or the time.
"""

from __future__ import annotations

import difflib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from grader.building import myths, predictions, questions
from grader.building.book import chapter_pages
from grader.building.graders import check_graders
from grader.building.myths import myths_pages
from grader.building.outputs import (
    check_grades,
    executed,
    part_for,
    recalled,
    unrun,
    with_outputs_of,
)
from grader.building.questions import questions_pages
from grader.building.reading import reading_for
from grader.building.source import Variant, read_source, read_whole, without_views
from grader.building.views import NOT_DRAWN
from grader.course.cells import is_solution_cell
from grader.course.course import AuthorError, Chapter, Course, CourseError
from grader.nbgrader.release import release

PAGES = Path("site/chapters")
_LINES, _WIDTH = 20, 160
"""How much of a difference `first_difference` shows."""


@dataclass(frozen=True)
class Built:
    """A built file: where it belongs, relative to the course, and its bytes; None if it is to go."""

    path: Path
    content: bytes | None


def build_chapter(course: Course, source: Path, *, run: bool = True, only: str = "") -> list[Built]:
    """Return what a source builds: reference, released notebook, site pages, measured predictions.

    Without `run` nothing is executed: the outputs are those of the reference notebook in place. So
    are, with `only` an exercise, those of all cells that need not be run for its own section.
    """
    chapter, name = source.parent.name, source.name.removesuffix(".pct.py")
    whole = read_whole(source)
    notebook = _with_reading(course, source, without_views(source, whole))
    with _staging(course) as stage:
        reference, released = _release(stage, notebook, chapter, name)
        in_place = course.root / reference.relative_to(stage)
        if run:
            _check_graders(Chapter(stage, chapter), only)
        values = predictions.known(course.root, chapter, whole)
        if run and not only:
            filled = executed(notebook, reference.parent, stage, source)
            values = predictions.measured(whole, reference.parent, stage, source)
        else:
            filled = recalled(notebook, in_place)
        if run and only:
            part = part_for(notebook, only)
            seen = part_for(whole, only)
            values |= predictions.measured(seen, reference.parent, stage, source)
            filled = with_outputs_of(filled, executed(part, reference.parent, stage, source))
        check_grades(filled, source)
        _write(filled, reference)
        explorer = name if (course.root / "site" / "explorers" / f"{name}.md").is_file() else None
        for cell, seen_cell in zip(filled.cells, whole.cells, strict=True):
            if cell.cell_type == "markdown":
                cell.source = seen_cell.source
        pages = {
            PAGES / name: text
            for name, text in chapter_pages(filled, chapter, explorer, values).items()
        }
        kept = predictions.written(whole, values).encode("utf-8")
        return [
            Built(Path("solutions", chapter, f"{name}.ipynb"), reference.read_bytes()),
            Built(Path("chapters", chapter, f"{name}.ipynb"), released.read_bytes()),
            *([Built(predictions.FOLDER / f"{chapter}.json", kept)] if values else []),
            *_pages(course, PAGES / chapter, pages),
        ]


def _pages(course: Course, folder: Path, pages: Mapping[Path, str]) -> list[Built]:
    """Return pages as built, and as gone those that lie in their folder and are not among them."""
    found = [path.relative_to(course.root) for path in (course.root / folder).glob("*.md")]
    return [
        *(Built(path, page.encode("utf-8")) for path, page in pages.items()),
        *(Built(path, None) for path in sorted(found) if path not in pages),
    ]


def _check_graders(chapter: Chapter, only: str) -> None:
    check_graders(chapter, [e for e in chapter.exercises if only in ("", e.id)])


def never_run(built: list[Built]) -> int:
    """Return how many cells of a built reference notebook have no output because none ran them.

    Predictions and drawings that were never measured count as well.
    """
    files = {file.path: file.content or b"" for file in built}
    reference = next(content for path, content in files.items() if path.parts[0] == "solutions")
    notebook = nbformat.reads(reference.decode("utf-8"), as_version=4)
    kept = next((c for p, c in files.items() if p.parent == predictions.FOLDER), b"{}")
    undrawn = sum(content.count(NOT_DRAWN.encode()) for content in files.values())
    return unrun(notebook) + predictions.unmeasured(notebook, json.loads(kept)) + undrawn


def build_variant(course: Course, source: Path, variant: Variant) -> list[Built]:
    """Return the notebooks of a private variant of a chapter: reference and released.

    Nothing is executed: outputs are the public reference's, of cells that are the same. A solution
    cell of the reference keeps the public solution beside its own, for those who hand that in.
    """
    chapter, name = source.parent.name, source.name.removesuffix(".pct.py")
    notebook, public = (
        _with_reading(course, source, read_source(source, values)) for values in (variant, None)
    )
    with _staging(course) as stage:
        reference, released = _release(stage, notebook, chapter, name)
        filled = recalled(notebook, course.root / reference.relative_to(stage))
        for cell, known in zip(filled.cells, public.cells, strict=True):
            if "variant" in cell.metadata.get("undertorch", {}):
                cell.metadata["undertorch"]["public_answer"] = known.source
        _write(filled, reference)
        return [Built(path.relative_to(stage), path.read_bytes()) for path in (reference, released)]


def _with_reading(course: Course, source: Path, notebook: NotebookNode) -> NotebookNode:
    """Return the notebook of a source with what its chapter's card says to read."""
    card = notebook.metadata["undertorch"]
    if card["chapter"] != source.parent.name:
        raise AuthorError(
            f"{source}: declares chapter {card['chapter']!r} in a folder named {source.parent.name!r}"
        )
    names = [cell.id for cell in notebook.cells if is_solution_cell(cell)]
    try:
        card["reading"] = reading_for(course, names)
    except ValueError as error:
        raise AuthorError(f"{source}: site/reading.yml: {error}") from None
    return notebook


def _release(stage: Path, notebook: NotebookNode, chapter: str, name: str) -> tuple[Path, Path]:
    """Write the reference and let nbgrader make the released notebook; return both paths."""
    reference = stage / "solutions" / chapter / f"{name}.ipynb"
    _write(notebook, reference)
    release(stage, chapter)
    return reference, stage / "chapters" / chapter / f"{name}.ipynb"


def build_myths(course: Course, *, run: bool = True) -> list[Built]:
    """Return the pages of myths, if the course has any. Without `run` their outputs are those in place."""
    return _pages(course, myths.FOLDER, myths_pages(course, run=run))


def build_questions(course: Course, *, run: bool = True) -> list[Built]:
    """Return the pages of questions, if the course has any. Without `run` their outputs are those in place."""
    return _pages(course, questions.FOLDER, questions_pages(course, run=run))


def install(course: Course, built: list[Built]) -> list[Path]:
    """Put built files in place, and remove what is to go; return those that changed."""
    changed = differing(course, built)
    for file in built:
        if file.path in changed:
            target = course.root / file.path
            if file.content is None:
                target.unlink()
            else:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(file.content)
    return changed


def differing(course: Course, built: list[Built]) -> list[Path]:
    """Return the paths whose files in the course differ from what was built, or are too many or too few."""

    def found(path: Path) -> bytes | None:
        return (course.root / path).read_bytes() if (course.root / path).is_file() else None

    return [file.path for file in built if found(file.path) != file.content]


def first_difference(course: Course, built: list[Built]) -> str:
    """Return the first lines in which a file of the course differs from what was built; "" if none does."""
    for file in built:
        if file.path in differing(course, [file]):
            there = course.root / file.path
            before = there.read_text(encoding="utf-8") if there.is_file() else ""
            after = (file.content or b"").decode("utf-8")
            lines = difflib.unified_diff(
                before.splitlines(),
                after.splitlines(),
                str(file.path),
                "built now",
                n=0,
                lineterm="",
            )
            return "".join(f"{line[:_WIDTH]}\n" for line in islice(lines, _LINES))
    return ""


@contextmanager
def _staging(course: Course) -> Iterator[Path]:
    """A course of its own, with the real graders, that a kernel started here will find.

    What is wrong with one of its files is wrong with the real course's: that is what is said.
    """
    with tempfile.TemporaryDirectory(prefix="undertorch-build-") as folder:
        stage = Path(folder)
        (stage / "grader").symlink_to(course.root / "grader")
        before = os.environ.get("UNDERTORCH_COURSE")
        os.environ["UNDERTORCH_COURSE"] = str(stage)
        try:
            yield stage
        except CourseError as error:
            raise type(error)(str(error).replace(str(stage), str(course.root))) from None
        finally:
            del os.environ["UNDERTORCH_COURSE"]
            if before is not None:
                os.environ["UNDERTORCH_COURSE"] = before


def _write(notebook: NotebookNode, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.validate(notebook)
    path.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")
