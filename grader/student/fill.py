"""A student's own copy of the chapters: filled from the released notebooks, never overwritten.

What a notebook was filled from is kept, too: `undertorch update` tells by it what is the student's.
"""

from __future__ import annotations

from pathlib import Path

from grader.course.course import Course
from grader.files import write_atomically
from grader.student.folder import Folder
from grader.student.journal import STATE


def fill_folder(course: Course, folder: Path) -> list[Path]:
    """Copy each released notebook that `folder` lacks; return the new files."""
    new = []
    (folder / STATE).mkdir(parents=True, exist_ok=True)
    for chapter in course.chapters():
        target = folder / chapter.id / chapter.released.name
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with target.open("xb") as file:  # fails where a file is, however it came there
                file.write(chapter.released.read_bytes())
        except FileExistsError:
            continue
        write_atomically(Folder(folder).base(chapter), chapter.released.read_bytes())
        new.append(target)
    return new
