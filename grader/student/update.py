"""Brings a student's notebooks to the course's present version, and loses nothing on the way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grader.course.course import Chapter, CourseError
from grader.files import write_atomically
from grader.student.folder import Folder
from grader.student.merge import MergeReport, lost, merge
from grader.student.notebooks import dump, load, refuse_other_variant

UPDATED, SAME, NEW, TROUBLE = "updated", "up to date", "new", "not updated"


@dataclass(frozen=True)
class Updated:
    """What became of one chapter. `kept` is a copy of the notebook as it was."""

    chapter: str
    path: Path
    state: str
    report: MergeReport
    kept: Path | None = None
    trouble: str = ""


def update(folder: Folder, chapter: Chapter, *, dry: bool = False) -> Updated:
    """Merge a chapter's new version into the student's notebook; only say what would be if `dry`."""
    path, report = folder.notebook(chapter), MergeReport()
    if not path.exists():
        if not dry:
            write_atomically(path, chapter.released.read_bytes())
            write_atomically(folder.base(chapter), chapter.released.read_bytes())
        return Updated(chapter.id, path, NEW, report)
    try:
        return _merge_in(folder, chapter, path, dry)
    except CourseError as error:
        return Updated(chapter.id, path, TROUBLE, report, trouble=str(error))


def _merge_in(folder: Folder, chapter: Chapter, path: Path, dry: bool) -> Updated:
    before = path.read_bytes()
    mine, new = load(path), load(chapter.released)
    refuse_other_variant(chapter, path, mine)
    base = load(folder.base(chapter)) if folder.base(chapter).is_file() else None
    merged, report = merge(base, mine, new)
    missing = lost(base, mine, merged)
    if missing:
        raise CourseError(
            f"{path} was left as it is: the merge would have lost a cell of yours. That is a fault "
            f"of Undertorch's; please report it with the notebook. The cell: "
            f"{missing[0]['source']!r}"
        )
    if _alike(merged, mine) or (base is not None and dump(base) == dump(new) and not report.added):
        if not dry and (base is None or dump(base) != dump(new)):
            write_atomically(folder.base(chapter), chapter.released.read_bytes())
        return Updated(chapter.id, path, SAME, MergeReport())
    if dry:
        return Updated(chapter.id, path, UPDATED, report)
    kept = folder.keep(chapter.id, path.stem, path.suffix, before)
    if path.read_bytes() != before:
        raise CourseError(f"{path} was saved by someone else meanwhile. Run the command again.")
    write_atomically(path, dump(merged))
    # last: if this is not reached, the next update finds the course's new text and knows it
    write_atomically(folder.base(chapter), chapter.released.read_bytes())
    return Updated(chapter.id, path, UPDATED, report, kept)


def _alike(left: Mapping[str, Any], right: Mapping[str, Any]) -> bool:
    """Say whether two notebooks hold the same cells: id, kind, text, in order."""
    parts = ("id", "cell_type", "source")
    return [[cell.get(part) for part in parts] for cell in left["cells"]] == [
        [cell.get(part) for part in parts] for cell in right["cells"]
    ]
