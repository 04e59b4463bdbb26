"""Brings a student's notebooks to the course's present version, and loses nothing on the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from grader.course.course import Chapter, CourseError
from grader.files import write_atomically
from grader.student import journal
from grader.student.folder import Folder
from grader.student.merge import MergeReport, lost, merge
from grader.student.notebooks import dump, load, refuse_other_variant
from grader.student.versions import base_of, keep_version, name_version, version_of
from grader.submission.rebuild import find_solution

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
            write_atomically(folder.base(chapter), chapter.released.read_bytes())
            write_atomically(path, chapter.released.read_bytes())
        return Updated(chapter.id, path, NEW, report)
    try:
        return _merge_in(folder, chapter, path, dry)
    except CourseError as error:
        return Updated(chapter.id, path, TROUBLE, report, trouble=str(error))


def _merge_in(folder: Folder, chapter: Chapter, path: Path, dry: bool) -> Updated:
    before = path.read_bytes()
    mine, new = load(path), load(chapter.released)
    refuse_other_variant(chapter, path, mine)
    base = base_of(folder, chapter, mine, new)
    merged, report = merge(base, mine, new)
    name_version(merged, new)
    missing = lost(base, mine, merged)
    if missing:
        raise CourseError(
            f"{path} was left as it is: the merge would have lost a cell of yours. That is a fault "
            f"of Undertorch's; please report it with the notebook. The cell: "
            f"{missing[0]['source']!r}"
        )
    knows_new = base is not None and version_of(base) == version_of(new)
    same = _alike(merged, mine) or (knows_new and not report.added)
    if dry or (same and knows_new):
        return Updated(
            chapter.id, path, SAME if same else UPDATED, MergeReport() if same else report
        )
    kept = None if same else folder.keep(chapter.id, path.stem, path.suffix, before)
    keep_version(folder, chapter, new)
    if path.read_bytes() != before:
        raise CourseError(f"{path} was saved by someone else meanwhile. Run the command again.")
    write_atomically(path, dump(merged))
    if same:  # it learnt which version it is
        return Updated(chapter.id, path, SAME, MergeReport())
    _carry_over(folder, report.answers, mine, merged)
    return Updated(chapter.id, path, UPDATED, report, kept)


def _carry_over(
    folder: Folder, answers: Sequence[str], mine: Mapping[str, Any], merged: Mapping[str, Any]
) -> None:
    """Let a verdict stand where a docstring of the course's came into an answer, and nothing else."""
    log = journal.read(folder.root)
    carried = []
    for name in answers:
        was, now = (journal.answer_digest(_answer(name, one)) for one in (mine, merged))
        seen = [e for e in log if (e.kind, e.exercise, e.answer) == ("verdict", name, was)]
        if was != now and seen:
            carried.append(replace(seen[-1], answer=now))
    if carried:
        journal.write(folder.root, carried)


def _answer(name: str, notebook: Mapping[str, Any]) -> str:
    place, _ = find_solution(name, notebook["cells"])
    return "" if place is None else str(notebook["cells"][place]["source"])


def _alike(left: Mapping[str, Any], right: Mapping[str, Any]) -> bool:
    """Say whether two notebooks hold the same cells: id, kind, text, in order."""
    parts = ("id", "cell_type", "source")
    return [[cell.get(part) for part in parts] for cell in left["cells"]] == [
        [cell.get(part) for part in parts] for cell in right["cells"]
    ]
