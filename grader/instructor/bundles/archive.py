"""Writes bundles: Gradescope's zip, and the folders for GitHub. Each has our house, and what starts it."""

from __future__ import annotations

import io
import platform
import zipfile
from collections.abc import Mapping
from pathlib import Path

from grader.course.course import Chapter, CourseError
from grader.files import write_atomically
from grader.instructor.bundles.material import Packed, gather, is_private, packed

_TEMPLATES = Path(__file__).parent / "templates"

_PYTHONS = ("3.13", "3.12", "3.11")
"""Versions that torch has wheels for and a Debian or Ubuntu may offer, after the one in use here."""

_LONG_AGO = (1980, 1, 1, 0, 0, 0)
"""One time for all members: the same chapter makes the same zip."""


def write_gradescope(chapter: Chapter, path: Path) -> Packed:
    """Write the autograder of a chapter as a zip that its owner alone may read."""
    files = {
        "setup.sh": _setup(),
        "run_autograder": _template("run_autograder").encode(),
        **gather(chapter),
    }
    write_atomically(path, _zipped(files), private=True)
    return packed(chapter, path)


def write_github(chapter: Chapter, folder: Path) -> Packed:
    """Write what goes into the students' template repository, and what into Classroom 50's.

    Raises `CourseError` for a private variant, and if the folder holds something.
    """
    if is_private(chapter):
        raise CourseError(
            f"{chapter.id} is a private variant here: its solution would lie where every student can "
            "read it. Collect the repositories, and grade them with: undertorch grade"
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CourseError(f"{folder} is there and not empty. Name a new folder: --output FOLDER")
    house = {"setup.sh": _setup(), **gather(chapter)}
    files = {
        f"template/{chapter.released.name}": chapter.released.read_bytes(),
        "template/.github/workflows/classroom.yml": _template("classroom.yml").encode(),
        **{f"template/.github/undertorch/{name}": content for name, content in house.items()},
        "classroom50/autograder.py": _template("autograder.py").encode(),
        **{f"classroom50/{name}": content for name, content in house.items()},
        "runtime.json": _RUNTIME.encode(),
    }
    for name, content in files.items():
        write_atomically(folder / name, content, durable=False)
    return packed(chapter, folder)


_RUNTIME = '{"runs-on": "ubuntu-24.04"}\n'
"""What Classroom 50 is told of an assignment's runner: one whose Python is new enough."""


def _setup() -> bytes:
    return _template("setup.sh").replace("@PYTHONS@", " ".join(_pythons())).encode()


def _zipped(files: Mapping[str, bytes]) -> bytes:
    """Return files as a zip. Scripts at its root may be executed."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            member = zipfile.ZipInfo(name, _LONG_AGO)
            member.compress_type = zipfile.ZIP_DEFLATED
            member.external_attr = (0o100755 if content.startswith(b"#!") else 0o100644) << 16
            archive.writestr(member, content)
    return stream.getvalue()


def _template(name: str) -> str:
    """Return a file that is written as it is, but for what stands between two @."""
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def _pythons() -> tuple[str, ...]:
    """Return Python's versions in the order in which they are tried."""
    mine = ".".join(platform.python_version_tuple()[:2])
    return (mine, *(version for version in _PYTHONS if version != mine))
