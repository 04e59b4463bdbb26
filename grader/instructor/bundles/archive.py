"""Writes Gradescope's zip: what its autograder specifications want at the root, and our house."""

from __future__ import annotations

import io
import platform
import zipfile
from collections.abc import Mapping
from pathlib import Path

from grader.course.course import Chapter
from grader.files import write_atomically
from grader.instructor.bundles.material import Packed, gather, packed

_TEMPLATES = Path(__file__).parent / "templates"

_PYTHONS = ("3.13", "3.12", "3.11")
"""Versions that torch has wheels for and a Debian or Ubuntu may offer, after the one in use here."""

_LONG_AGO = (1980, 1, 1, 0, 0, 0)
"""One time for all members: the same chapter makes the same zip."""


def write_gradescope(chapter: Chapter, path: Path) -> Packed:
    """Write the autograder of a chapter as a zip that its owner alone may read."""
    files = {
        "setup.sh": template("setup.sh").replace("@PYTHONS@", " ".join(pythons())).encode(),
        "run_autograder": template("run_autograder").encode(),
        **gather(chapter),
    }
    write_atomically(path, zipped(files), private=True)
    return packed(chapter, path)


def zipped(files: Mapping[str, bytes]) -> bytes:
    """Return files as a zip. Scripts at its root may be executed."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            member = zipfile.ZipInfo(name, _LONG_AGO)
            member.compress_type = zipfile.ZIP_DEFLATED
            member.external_attr = (0o100755 if content.startswith(b"#!") else 0o100644) << 16
            archive.writestr(member, content)
    return stream.getvalue()


def template(name: str) -> str:
    """Return a file that is written as it is, but for what stands between two @."""
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def pythons() -> tuple[str, ...]:
    """Return Python's versions in the order in which they are tried."""
    mine = ".".join(platform.python_version_tuple()[:2])
    return (mine, *(version for version in _PYTHONS if version != mine))
