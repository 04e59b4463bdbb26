"""A tiny class, graded once for all tests of what an instructor sees of it."""

import pytest

from tests.scale.course import CHAPTER, HALF, LOOPS, RIGHT, SQUARES, TinyCourse

SUM = "import torch\n\n\ndef total(x):\n    result = 0.0\n    for value in x:\n        result += float(value)\n    return result\n"
CLASS = {
    "ada": RIGHT,
    "bea": HALF,
    "carl": SQUARES | {"total": SUM},
    "dora": SQUARES | {"total": SUM.replace("result", "acc").replace("value", "v")},
    "emil": LOOPS,
    "fred": {},
    "gus": RIGHT | {"total": "import os\n\nos._exit(3)\n"},
}
UNREADABLE = {"ivy": 200, "jan": 0, "kim": None}
"""A torn file, an empty one, a folder without any: what is left of a notebook, in characters."""

STAMPS = {"bea": "2030-01-01 06:00:00 UTC"}


@pytest.fixture(scope="session")
def graded(tmp_path_factory):
    """The course with its class; `hana` is enrolled and handed in nothing, `=bob` has a bad name."""
    course = TinyCourse(tmp_path_factory.mktemp("instructor"))
    for student, sources in CLASS.items():
        course.hand_in(student, sources, STAMPS.get(student, ""))
    for student, length in UNREADABLE.items():
        course.hand_in(student)
        notebook = course.root / "submitted" / student / CHAPTER / f"{CHAPTER}.ipynb"
        notebook.write_text(notebook.read_text()[:length])
        if length is None:
            notebook.unlink()
    course.run("undertorch", "grade", CHAPTER, "--jobs", "1", "--seed", "7")
    course.execute("UPDATE assignment SET duedate = '2030-01-01 00:00:00.000000'")
    course.execute(
        "INSERT INTO student (id, first_name, last_name, email)"
        " VALUES ('hana', 'Hana', '=HYPERLINK(\"x\")', 'hana@example.edu')"
    )
    course.execute("UPDATE student SET first_name = 'Ada', last_name = 'Byron' WHERE id = 'ada'")
    return course
