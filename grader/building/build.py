"""One command from a chapter's source to reference notebook, released notebook and site page.

Everything is built in a folder apart; then it is either put in place or compared with what is
there. Nothing depends on the machine or the time.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode

from grader.building.kernel import run_notebook
from grader.building.myths import PAGE, myths_page
from grader.building.page import chapter_page
from grader.building.reading import reading_lists
from grader.building.source import SourceError, Variant, read_source
from grader.course.cells import role_of
from grader.course.course import Course
from grader.nbgrader.release import release

CELL_SECONDS = 120
"""Longest run of one cell of a reference notebook."""


@dataclass(frozen=True)
class Built:
    """A built file: where it belongs, relative to the course, and its bytes."""

    path: Path
    content: bytes


def sources(course: Course) -> list[Path]:
    """Return every chapter's source, in order."""
    return sorted((course.root / "solutions").glob("*/*.pct.py"))


def build_chapter(course: Course, source: Path, *, run: bool = True) -> list[Built]:
    """Return what a source builds: reference, released notebook, site page.

    Without `run` nothing is executed: the outputs are those of the reference notebook in place.
    """
    chapter, name = source.parent.name, source.name.removesuffix(".pct.py")
    notebook = _read(source)
    with _staging(course) as stage:
        reference, released = _release(stage, notebook, chapter, name)
        if run:
            executed = _execute(notebook, reference.parent, stage, source)
        else:
            executed = _recall(notebook, course.root / reference.relative_to(stage))
        _check_grades(executed, source)
        _write(executed, reference)
        explorer = name if (course.root / "site" / "explorers" / f"{name}.md").is_file() else None
        stubs = nbformat.read(released, as_version=4)
        page = _page(course, executed, stubs, chapter, explorer, source)
        return [
            Built(Path("solutions", chapter, f"{name}.ipynb"), reference.read_bytes()),
            Built(Path("chapters", chapter, f"{name}.ipynb"), released.read_bytes()),
            Built(Path("site/chapters", f"{chapter}.md"), page.encode("utf-8")),
        ]


def build_variant(course: Course, source: Path, variant: Variant) -> list[Built]:
    """Return the notebooks of a private variant of a chapter: reference and released.

    Nothing is executed: outputs are the public reference's, of cells that are the same. A solution
    cell of the reference keeps the public solution beside its own, for those who hand that in.
    """
    chapter, name = source.parent.name, source.name.removesuffix(".pct.py")
    notebook, public = _read(source, variant), _read(source)
    with _staging(course) as stage:
        reference, released = _release(stage, notebook, chapter, name)
        recalled = _recall(notebook, course.root / reference.relative_to(stage))
        for cell, known in zip(recalled.cells, public.cells, strict=True):
            if "variant" in cell.metadata.get("undertorch", {}):
                cell.metadata["undertorch"]["public_answer"] = known.source
        _write(recalled, reference)
        return [Built(path.relative_to(stage), path.read_bytes()) for path in (reference, released)]


def _read(source: Path, variant: Variant | None = None) -> NotebookNode:
    notebook = read_source(source, variant)
    declared = notebook.metadata["undertorch"]["chapter"]
    if declared != source.parent.name:
        raise SourceError(
            f"{source}: declares chapter {declared!r} in a folder named {source.parent.name!r}"
        )
    return notebook


def _release(stage: Path, notebook: NotebookNode, chapter: str, name: str) -> tuple[Path, Path]:
    """Write the reference and let nbgrader make the released notebook; return both paths."""
    reference = stage / "solutions" / chapter / f"{name}.ipynb"
    _write(notebook, reference)
    release(stage, chapter)
    return reference, stage / "chapters" / chapter / f"{name}.ipynb"


def _page(
    course: Course,
    executed: NotebookNode,
    released: NotebookNode,
    chapter: str,
    explorer: str | None,
    source: Path,
) -> str:
    try:
        return chapter_page(executed, released, chapter, explorer, reading_lists(course))
    except ValueError as error:
        raise SourceError(f"{source}: site/reading.yml: {error}") from None


def build_myths(course: Course) -> list[Built]:
    """Return the page of myths, executed, if the course has any."""
    page = myths_page(course)
    return [] if page is None else [Built(PAGE, page.encode("utf-8"))]


def install(course: Course, built: list[Built]) -> list[Path]:
    """Put built files in place; return those that changed."""
    changed = differing(course, built)
    for file in built:
        if file.path in changed:
            target = course.root / file.path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.content)
    return changed


def differing(course: Course, built: list[Built]) -> list[Path]:
    """Return the paths whose files in the course are missing or differ from what was built."""
    return [
        file.path
        for file in built
        if not (course.root / file.path).is_file()
        or (course.root / file.path).read_bytes() != file.content
    ]


@contextmanager
def _staging(course: Course) -> Iterator[Path]:
    """A course of its own, with the real graders, that a kernel started here will find."""
    with tempfile.TemporaryDirectory(prefix="undertorch-build-") as folder:
        stage = Path(folder)
        (stage / "grader").symlink_to(course.root / "grader")
        before = os.environ.get("UNDERTORCH_COURSE")
        os.environ["UNDERTORCH_COURSE"] = str(stage)
        try:
            yield stage
        finally:
            del os.environ["UNDERTORCH_COURSE"]
            if before is not None:
                os.environ["UNDERTORCH_COURSE"] = before


def _execute(notebook: NotebookNode, folder: Path, stage: Path, source: Path) -> NotebookNode:
    executed: NotebookNode = nbformat.from_dict(notebook)
    try:
        run_notebook(
            executed,
            folder,
            timeout=CELL_SECONDS,
            kernel_name="python3",
            record_timing=False,
            coalesce_streams=True,  # a kernel sends print's output in pieces as it pleases
        )
    except CellExecutionError as error:
        raise SourceError(f"{source}: a cell raised.\n{error}") from None
    for cell in executed.cells:
        for output in cell.get("outputs", []):
            _check_output(output, stage, source, cell.id)
    executed.metadata = notebook.metadata
    return executed


def _recall(notebook: NotebookNode, path: Path) -> NotebookNode:
    """Return the notebook with the outputs that its cells have in the one at `path`."""
    known = nbformat.read(path, as_version=4).cells if path.is_file() else []
    outputs = {cell.id: cell for cell in known if cell.cell_type == "code"}
    recalled: NotebookNode = nbformat.from_dict(notebook)
    for cell in recalled.cells:
        if cell.id in outputs and cell.source == outputs[cell.id].source:
            cell.outputs = outputs[cell.id].outputs
            cell.execution_count = outputs[cell.id].execution_count
    return recalled


def _check_output(output: NotebookNode, stage: Path, source: Path, cell: str) -> None:
    """Refuse what would differ elsewhere: stderr, addresses, folders of this machine."""
    text = str(output)
    if output.get("name") == "stderr":
        raise SourceError(f"{source}: cell {cell} writes to stderr: {output['text']}")
    if str(stage) in text or re.search(r"at 0x[0-9a-f]{8,}", text):
        raise SourceError(f"{source}: cell {cell} shows an address or a folder of this machine")


def _check_grades(notebook: NotebookNode, source: Path) -> None:
    """Refuse a reference that its own checks do not give every point."""
    for cell in notebook.cells:
        role = role_of(cell)
        if role is None or not role.is_grade:
            continue
        for output in cell.get("outputs", []):
            got = output.get("data", {}).get("text/plain", "")
            if got != str(role.points):
                name = role.grade_id.removesuffix("-grade")
                raise SourceError(
                    f"{source}: the reference of {name} gets {got or 'no'} of {role.points:g} "
                    f"points. Mend it or its checks; why: undertorch validate {name}"
                )


def _write(notebook: NotebookNode, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.validate(notebook)
    path.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")
