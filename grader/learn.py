"""A student's own copy of the chapters: filled from the released notebooks, never overwritten."""

from __future__ import annotations

from pathlib import Path

from grader.core.course import Course


def fill_folder(course: Course, folder: Path) -> list[Path]:
    """Copy each released notebook that `folder` lacks; return the new files."""
    new = []
    for chapter in course.chapters():
        target = folder / chapter.id / chapter.released.name
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with target.open("xb") as file:  # fails where a file is, however it came there
                file.write(chapter.released.read_bytes())
        except FileExistsError:
            continue
        new.append(target)
    return new
