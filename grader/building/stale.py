"""Is a built notebook what its source says? What is proved is the notebook, what is edited the source."""

from __future__ import annotations

import nbformat
from nbformat import NotebookNode

from grader.building.source import read_source
from grader.building.sources import source_of, source_with
from grader.course.cells import is_solution_cell
from grader.course.course import AuthorError, Chapter, Course


def check_built(course: Course, chapter: Chapter) -> None:
    """Raise `AuthorError` if a chapter's source is wrong, or was changed since it was built.

    Outputs are not looked at. A chapter without a source here has nothing to compare.
    """
    source = source_of(course, chapter.id)
    if source is None or course.origin is not None:
        return
    written = read_source(source).cells
    cell = _other_in_reference(written, nbformat.read(chapter.reference, as_version=4).cells)
    built = chapter.reference
    if cell is None:
        cell = _other_in_released(written, nbformat.read(chapter.released, as_version=4).cells)
        built = chapter.released
    if cell is not None:
        raise AuthorError(
            f"{built} is not what {source.name} says now: {_named(cell)} differs. "
            f"Run: undertorch build {chapter.id}"
        )


def not_built(course: Course, names: set[str]) -> str:
    """Say which of these names are in a source and not yet in a notebook; "" if none is."""
    for name in sorted(names):
        source = source_of(course, name) or source_with(course, name)
        if source is not None:
            what = name if source.parent.name == name else f"The card of {name}"
            return f"{what} is in {source.name} and not built yet: undertorch build {source.parent.name}"
    return ""


def _other_in_reference(written: list[NotebookNode], built: list[NotebookNode]) -> str | None:
    """Return the first cell that differs, by its id; None if all are the same."""
    for one, other in zip(written, built, strict=False):
        if any(one[key] != other[key] for key in ("id", "cell_type", "source", "metadata")):
            return str(one.id)
    return _first_beyond(written, built)


def _other_in_released(written: list[NotebookNode], built: list[NotebookNode]) -> str | None:
    """The same for the notebook that students get: solutions are stubs there."""
    for one, other in zip(written, built, strict=False):
        same_text = is_solution_cell(one) or one.source == other.source
        cards = [cell.metadata.get("undertorch") for cell in (one, other)]
        if one.id != other.id or not same_text or cards[0] != cards[1]:
            return str(one.id)
    return _first_beyond(written, built)


def _first_beyond(written: list[NotebookNode], built: list[NotebookNode]) -> str | None:
    shorter = min(len(written), len(built))
    longer = [*written[shorter:], *built[shorter:]]
    return str(longer[0].id) if longer else None


def _named(cell: str) -> str:
    for ending, kind in (("-card", "the card"), ("-grade", "the grade cell")):
        if cell.endswith(ending):
            return f"{kind} of {cell.removesuffix(ending)}"
    return f"cell {cell}"
