"""Gives feedback back on the road that a submission came by, and names whom it could not reach."""

from __future__ import annotations

import io
import zipfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from grader.course.course import Chapter
from grader.files import write_atomically
from grader.instructor.collect import read_collected


@dataclass(frozen=True)
class GivenBack:
    """Who got feedback how. `zips` are the files to upload, each with the students in it; `unreached`
    says by student where the page lies; `trouble` is why the exchange took none, if so.
    """

    released: tuple[str, ...]
    zips: dict[Path, tuple[str, ...]]
    unreached: dict[str, Path]
    trouble: str = ""


def give_back(chapter: Chapter, out: Path) -> GivenBack:
    """Write all feedback pages of a chapter anew and give them back. Raises `CourseError`."""
    from grader.nbgrader.feedback_page import came_by_exchange, generate, release

    generate(chapter.root, chapter.id)
    pages = {
        page.parents[1].name: page
        for page in sorted(chapter.root.glob(f"feedback/*/{chapter.id}/{chapter.name}.html"))
    }
    exchanged = [student for student, page in pages.items() if came_by_exchange(page.parent)]
    trouble = release(chapter.root, chapter.id, exchanged, list(pages)) if exchanged else ""
    if trouble:
        exchanged = []
    collected = read_collected(chapter)
    by_system: dict[str, dict[str, bytes]] = defaultdict(dict)
    in_zip: dict[str, list[str]] = defaultdict(list)
    unreached = {}
    for student, page in pages.items():
        if student in exchanged:
            continue
        if student not in collected:
            unreached[student] = page
            continue
        system, back = collected[student]["system"], collected[student]["back"]
        by_system[system][_name_for(system, back, page.name)] = page.read_bytes()
        in_zip[system].append(student)
    zips = {}
    for system, files in by_system.items():
        path = out / f"feedback-{chapter.id}-{system}.zip"
        write_atomically(path, _zipped(files), private=True)
        zips[path] = tuple(in_zip[system])
    return GivenBack(tuple(exchanged), zips, unreached, trouble)


def _name_for(system: str, back: str, page: str) -> str:
    """Return what a page is called in the zip that a system takes back.

    Moodle finds the participant in the folder's name, Canvas student and file in the file's own.
    """
    if system == "moodle":
        return f"{back}_/{page}"
    return str(PurePosixPath(back).with_suffix(".html"))


def _zipped(files: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(files.items()):
            archive.writestr(name, content)
    return packed.getvalue()
