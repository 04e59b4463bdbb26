"""Which packages a packed grader needs, each in the version that is installed here."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from grader.course.course import CourseError

NEEDS = (
    "jinja2", "nbformat", "nbgrader", "numpy", "pytest", "rapidfuzz", "sqlalchemy", "torch", "traitlets",
)  # fmt: skip
"""What our code imports while it grades. What these need in turn is left to pip: it may be another Python there, for
which other versions are made.
"""


def requirements_text() -> str:
    """Return the requirements file. Raises `CourseError` if something is not installed here."""
    try:
        # +cpu says where a wheel came from; no index knows it
        pins = {name: version(name).partition("+")[0] for name in NEEDS}
    except PackageNotFoundError as error:
        raise CourseError(f"{error.name} is not installed here. Run: make venv") from None
    return "".join(f"{name}=={pin}\n" for name, pin in pins.items())
