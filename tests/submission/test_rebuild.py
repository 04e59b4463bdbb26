"""Reading a submitted file that may be anything, and rebuilding it from the released notebook."""

import json
import os
import re

import pytest

from grader.course.course import Course
from grader.submission.rebuild import Unreadable, read_notebook, rebuild
from tests import ROOT


@pytest.fixture(scope="module")
def chapter():
    return Course(ROOT).chapter("ch01_formats")


def code(source, **nbgrader):
    metadata = {"nbgrader": nbgrader} if nbgrader else {}
    return {"cell_type": "code", "metadata": metadata, "source": source, "outputs": []}


def rebuilt(chapter, *cells):
    return rebuild(
        chapter, {"cells": [{"cell_type": "code", "metadata": {}, **cell} for cell in cells]}
    )


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"  \n", "is empty"),
        (b"{", "not JSON"),
        (bytes(range(155, 256)), "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b'{"a": ' * 5_000 + b"1" + b"}" * 5_000, "not JSON"),
        (b"[]", "no format version"),
        (b'{"nbformat": "4"}', "no format version"),
        (b'{"nbformat": 4}', "has no cells"),
        (b'{"nbformat": 5, "cells": []}', "has no cells"),
        (b'{"nbformat": true, "cells": []}', "has no cells"),
        (b'{"nbformat": 3}', "has no cells"),
        (b'{"nbformat": 4, "cells": [5]}', "cell 1 is none"),
        (b'{"nbformat": 4, "cells": [{"source": 5}]}', "cell 1 has no text"),
        (b'{"nbformat": 4, "cells": [{"source": ["a", 5]}]}', "cell 1 has no text"),
        (b'{"nbformat": 4, "cells": [' + b"{}," * 1000 + b"{}]}", "1001 cells"),
        (json.dumps({"nbformat": 4, "cells": [code("x" * 70_000)]}).encode(), "70000 characters"),
        (
            json.dumps({"nbformat": 4, "cells": [code("x" * 60_000)] * 5}).encode(),
            "300000 characters",
        ),
    ],
)
def test_files_that_cannot_be_read(tmp_path, content, words):
    path = tmp_path / "n.ipynb"
    path.write_bytes(content)
    with pytest.raises(Unreadable, match=re.escape(words)):
        read_notebook(path)


def test_what_is_no_file(tmp_path):
    path = tmp_path / "n.ipynb"
    with pytest.raises(Unreadable, match=r"there is no n\.ipynb"):
        read_notebook(path)
    with pytest.raises(Unreadable, match=r"no regular file"):
        read_notebook(tmp_path)
    os.mkfifo(path)
    with pytest.raises(Unreadable, match="no regular file"):
        read_notebook(path)
    path.unlink()
    path.symlink_to("/etc/passwd")
    with pytest.raises(Unreadable, match="is a link"):
        read_notebook(path)
    path.unlink()
    (tmp_path / "other").write_text("{}")
    os.link(tmp_path / "other", path)
    with pytest.raises(Unreadable, match="hard link"):
        read_notebook(path)
    path.unlink()
    with path.open("wb") as file:
        file.truncate(100 * 2**20)
    with pytest.raises(Unreadable, match="has 100 MB"):
        read_notebook(path)


@pytest.mark.parametrize(
    "notebook",
    [
        {"nbformat": 4, "nbformat_minor": 0, "cells": [code("x = 1\ny = 2")]},
        {"nbformat": 4, "cells": [code(["x = 1\n", "y = 2"])], "metadata": 5},
        {
            "nbformat": 3,
            "worksheets": [{"cells": [{"cell_type": "code", "input": "x = 1\ny = 2"}]}],
        },
        {"nbformat": 4, "cells": [{"cell_type": "code", "metadata": [], "source": "x = 1\ny = 2"}]},
    ],
)
def test_formats_that_can_be_read(tmp_path, notebook):
    path = tmp_path / "n.ipynb"
    path.write_text("\ufeff" + json.dumps(notebook))
    (cell,) = read_notebook(path)["cells"]
    assert cell == {"cell_type": "code", "metadata": {}, "source": "x = 1\ny = 2"}


def test_half_of_a_surrogate_pair_becomes_text(tmp_path):
    path = tmp_path / "n.ipynb"
    path.write_text('{"nbformat": 4, "cells": [{"cell_type": "code", "source": "\\ud800"}]}')
    assert read_notebook(path)["cells"][0]["source"] == "?"


def test_only_the_text_of_solutions_matters(chapter):
    cells = [
        {**code("def decode(): return 1", grade_id="decode", points=99, solution=True), "id": 5},
        code("4.0", grade_id="decode-grade", grade=True, points=999),
    ]
    notebook = rebuilt(chapter, *cells).notebook
    released = chapter.notebook["cells"]
    assert [cell["metadata"] for cell in notebook["cells"]] == [
        cell["metadata"] for cell in released
    ]
    changed = [
        a["source"]
        for a, b in zip(notebook["cells"], released, strict=True)
        if a["source"] != b["source"]
    ]
    assert changed == ["def decode(): return 1"]


def test_the_last_of_several_counts(chapter):
    found = rebuilt(chapter, code("a = 1", grade_id="decode"), code("a = 2", grade_id="decode"))
    assert found.sources["decode"] == "a = 2"
    assert found.notes["decode"] == ("Your notebook has 2 cells for this; the last one counts.",)


def test_a_cell_that_lost_its_role_is_found_by_what_it_defines(chapter):
    found = rebuilt(chapter, code("def decode(): return 1"), code("def decode(): return 2"))
    assert found.sources["decode"] == "def decode(): return 2"
    assert "was missing" in found.notes["decode"][0]


def test_nothing_at_all_leaves_the_stubs(chapter):
    found = rebuilt(chapter)
    assert found.sources["decode"] == chapter.exercise("decode").stub
    assert "was missing" in found.notes["decode"][0]


@pytest.mark.parametrize(
    "role", [[], "x", 5, None, {"grade_id": []}, {"grade_id": {}}, {"grade_id": 5}]
)
def test_roles_of_any_type(chapter, role):
    cell = {"metadata": {"nbgrader": role}, "source": "LATE = 1"}
    found = rebuilt(chapter, cell, code("def decode(): return LATE", grade_id="decode"))
    assert ("your cell 1", "LATE = 1") in found.programs["decode"].parts


def test_cells_of_their_own_travel_only_when_they_are_used(chapter):
    solution = code("def decode(): return LATE", grade_id="decode")
    found = rebuilt(chapter, code("LATE = 1"), code("NEVER = 2"), solution, code("grade('decode')"))
    own = [
        cell["source"] for cell in found.notebook["cells"] if cell.get("id", "").startswith("own-")
    ]
    assert own == ["LATE = 1"]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("x = '\u202e'", "turns the direction of text"),
        ("r\u043eund = 1", "mixes alphabets"),
        ("x.b\u0430r = 1", "mixes alphabets"),
    ],
)
def test_disguises_are_told(chapter, source, words):
    assert words in rebuilt(chapter, code(source, grade_id="decode")).notes[""][0]


def test_of_many_disguises_a_few_are_told(chapter):
    many = "\n".join(f"r\u043e{number} = 1" for number in range(500))
    said = rebuilt(chapter, code(many + f"\nr\u043e{'a' * 5000} = 1", grade_id="decode")).notes[""]
    assert len(said) == 4 and "498 more such names" in said[-1]
    assert max(map(len, said)) < 200


@pytest.mark.parametrize(
    "source", ["Δx = 1", "x = 'привет and hello'", "# смешанныйtext", "число = 1", "é = 1"]
)
def test_other_alphabets_are_welcome(chapter, source):
    assert not rebuilt(chapter, code(source, grade_id="decode")).notes.get("")
