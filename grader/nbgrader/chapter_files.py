"""The files of a chapter that grading reads, for where there is no course around them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from grader.course.course import Chapter


def chapter_files(chapter: Chapter) -> Iterator[tuple[Path, Path]]:
    """Yield each file, and where it lies in the course.

    Those of a course folder come with what its graders have beside them, which lies elsewhere here:
    the whole chapter's solutions, of which known answers are edits, and their source.
    """
    home = chapter.origin or chapter.root
    folders = [(chapter.root, path.parent) for path in (chapter.released, chapter.reference)]
    folders.append((home, chapter.graders))
    if chapter.origin:
        folders.append((home, Chapter(home, chapter.id).reference.parent))
    for base, folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.suffix in (".py", ".md", ".ipynb") and path.parent.name != "tried":
                yield path, path.relative_to(base)
