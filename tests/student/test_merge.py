"""No edit of a student's, however odd, is lost when a new version of a chapter comes in."""

import ast
import copy
from contextlib import suppress
from types import SimpleNamespace

import nbformat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.student.merge import HEADING, lost, merge
from grader.submission.program import is_stub
from grader.submission.rebuild import rebuild

STUB = 'def {name}(x):\n    """Return {what}."""\n    raise NotImplementedError'


def text_cell(id, source):
    return {"cell_type": "markdown", "id": id, "metadata": {}, "source": source}


def code_cell(id, source, role=None):
    metadata = {"nbgrader": {"schema_version": 3, "task": False, **role}} if role else {}
    return {
        "cell_type": "code", "id": id, "metadata": metadata, "source": source,
        "outputs": [], "execution_count": None,
    }  # fmt: skip


def exercise_cells(name, what="it"):
    solution = {"grade_id": name, "grade": False, "solution": True, "locked": False}
    grade = {
        "grade_id": f"{name}-grade", "grade": True, "solution": False, "locked": True, "points": 2,
    }  # fmt: skip
    return [
        text_cell(f"{name}-card", f"## {name}"),
        code_cell(name, STUB.format(name=name, what=what), solution),
        code_cell(f"{name}-grade", f'grade("{name}")', grade),
    ]


def notebook(*cells):
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    return {
        "nbformat": 4, "nbformat_minor": 5, "metadata": metadata,
        "cells": copy.deepcopy(list(cells)),
    }  # fmt: skip


BASE = notebook(
    text_cell("title", "# Title"),
    code_cell("imports", "import torch"),
    *exercise_cells("halve"),
    code_cell("helper", "def helper(x):\n    return x"),
    *exercise_cells("twice"),
    text_cell("end", "The end of the chapter.\n\nThe next one goes on from here.\n\nRest."),
)


def chapter(of):
    """Return what `rebuild` asks of a chapter."""
    exercises = tuple(
        SimpleNamespace(id=cell["id"], stub=cell["source"])
        for cell in of["cells"]
        if cell["metadata"].get("nbgrader", {}).get("solution")
    )
    return SimpleNamespace(exercises=exercises, notebook=of)


def texts(of):
    return [cell["source"] for cell in of["cells"]]


def named(of, id):
    (cell,) = [cell for cell in of["cells"] if cell.get("id") == id]
    return cell


# ── One case at a time ───────────────────────────────────────────────────────


def test_an_untouched_notebook_becomes_the_new_one():
    new = copy.deepcopy(BASE)
    named(new, "title")["source"] = "# Better title"
    new["cells"].insert(2, text_cell("news", "News."))
    merged, report = merge(BASE, BASE, new)
    assert merged == new
    assert (report.added, report.changed, report.removed, report.own) == (1, 1, 0, 0)


def test_answers_own_cells_and_outputs_stay():
    mine, new = copy.deepcopy(BASE), copy.deepcopy(BASE)
    named(mine, "halve")["source"] = "def halve(x):\n    return x / 2"
    output = {"output_type": "stream", "name": "stdout", "text": "seen"}
    named(mine, "helper")["outputs"] = [output]
    mine["cells"].insert(3, code_cell("mine", "a note = of mine"))
    mine["cells"].insert(4, text_cell("pic", "![](attachment:a)") | {"attachments": {"a": {}}})
    named(new, "halve-card")["source"] = "## halve, told better"
    merged, report = merge(BASE, mine, new)
    assert texts(merged)[2:6] == [
        "## halve, told better", "a note = of mine", "![](attachment:a)",
        "def halve(x):\n    return x / 2",
    ]  # fmt: skip
    assert named(merged, "helper")["outputs"] == [output]
    assert named(merged, "pic")["attachments"] == {"a": {}}
    assert report.answers == ["halve"] and report.own == 2 and not report.said


def test_a_cell_that_both_changed():
    mine, new = copy.deepcopy(BASE), copy.deepcopy(BASE)
    named(mine, "helper")["source"] = "def helper(x):\n    return x\n\n\nhelper(3)  # mine"
    named(new, "helper")["source"] = 'def helper(x):\n    """Return x."""\n    return x'
    named(mine, "end")["source"] += " I did."
    named(new, "end")["source"] += " You may."
    merged, report = merge(BASE, mine, new)
    assert named(merged, "helper")["source"] == (
        'def helper(x):\n    """Return x."""\n    return x\n\n\nhelper(3)  # mine'
    )
    assert texts(merged)[-3:] == [texts(new)[-1], HEADING, texts(mine)[-1]]
    assert (report.merged, report.own) == (1, 1)
    assert "at different lines. It has both" in report.said[0]
    assert "yours stands below it, under a heading" in report.said[1]
    merged, report = merge(BASE, mine, BASE)  # only the student did
    assert named(merged, "end") == named(mine, "end") and not report.said


def test_cells_are_known_by_what_they_say_not_by_their_numbers():
    """The course numbers its cells: one that is put in renames all behind it."""
    cells = [code_cell(f"part-{n}", f"x{n} = {n}\nprint(x{n} + {n})\n# {n}") for n in (1, 2, 3)]
    base, mine = notebook(*cells), notebook(*cells)
    named(mine, "part-2")["source"] += "\nmine = 2"
    for number, cell in enumerate(cells[1:], 3):
        cell["id"] = f"part-{number}"
    cells[1]["source"] = "import torch\n\n" + cells[1]["source"]
    new = notebook(cells[0], text_cell("part-2", "News."), *cells[1:])
    merged, report = merge(base, mine, new)
    assert [cell["id"] for cell in merged["cells"]] == ["part-1", "part-2", "part-3", "part-4"]
    assert (
        named(merged, "part-3")["source"] == "import torch\n\nx2 = 2\nprint(x2 + 2)\n# 2\nmine = 2"
    )
    assert (report.added, report.merged, report.own) == (1, 1, 0)


def test_a_cell_that_the_student_changed_and_the_course_dropped():
    mine, new = copy.deepcopy(BASE), copy.deepcopy(BASE)
    named(mine, "helper")["source"] += " + 1"
    new["cells"] = [cell for cell in new["cells"] if cell["id"] not in ("helper", "title")]
    merged, report = merge(BASE, mine, new)
    assert texts(merged).count("def helper(x):\n    return x + 1") == 1
    assert report.removed == 1 and report.own == 1
    assert report.said == [
        "The cell that begins `def helper(x):` is no longer part of this chapter. What you wrote "
        "stays, as a cell of your own."
    ]


def test_an_exercise_goes_and_another_comes():
    mine = copy.deepcopy(BASE)
    named(mine, "halve")["source"] = "def halve(x):\n    return x / 2"
    new = notebook(*BASE["cells"][:2], *exercise_cells("third"), *BASE["cells"][5:])
    merged, report = merge(BASE, mine, new)
    own = next(cell for cell in merged["cells"] if "x / 2" in cell["source"])
    assert "nbgrader" not in own["metadata"] and own["id"] != "halve"
    assert "third" in [cell["id"] for cell in merged["cells"]]
    assert "`halve` is no longer part of this chapter." in report.said[0]


def test_a_stub_that_changed_is_told():
    new = notebook(*BASE["cells"][:2], *exercise_cells("halve", "half"), *BASE["cells"][5:])
    merged, report = merge(BASE, BASE, new)
    assert merged == new and not report.said
    mine = copy.deepcopy(BASE)
    named(mine, "halve")["source"] = "def halve(x):\n    return x / 2"
    merged, report = merge(BASE, mine, new)
    assert "x / 2" in named(merged, "halve")["source"]
    assert "its stub changed" in report.said[0] and "above it, as comments" in report.said[0]
    assert named(merged, "halve")["source"] == (
        "# ── update: the course's new stub; your answer, below, is as it was ──\n"
        '# def halve(x):\n#     """Return half."""\n#     raise NotImplementedError\n'
        "# ── update: end ──\ndef halve(x):\n    return x / 2"
    )
    named(mine, "halve")["source"] = STUB.format(name="halve", what="it").replace(
        "raise NotImplementedError", "return x / 2"
    )
    merged, report = merge(BASE, mine, new)  # a docstring is no code: it comes in
    assert (
        named(merged, "halve")["source"]
        == 'def halve(x):\n    """Return half."""\n    return x / 2'
    )
    assert report.answers == ["halve"] and not report.said


def test_a_copy_of_a_graded_cell_counts_for_nothing():
    mine = copy.deepcopy(BASE)
    named(mine, "helper")["metadata"] = copy.deepcopy(named(mine, "halve-grade")["metadata"])
    mine["cells"].append(copy.deepcopy(named(mine, "twice-grade")) | {"id": "copy"})
    merged, _ = merge(BASE, mine, BASE)
    assert (
        merged["cells"][:-1] == BASE["cells"] and "nbgrader" not in merged["cells"][-1]["metadata"]
    )


def test_what_was_deleted_stays_away_unless_it_counts():
    mine = copy.deepcopy(BASE)
    mine["cells"] = [c for c in mine["cells"] if c["id"] not in ("title", "halve", "twice-grade")]
    merged, report = merge(BASE, mine, BASE)
    assert texts(merged) == texts(BASE)[1:]
    assert report.said == ["`halve`: its cell was missing; its stub is there again."]


def test_without_a_base_all_that_differs_is_the_students():
    new = copy.deepcopy(BASE)
    named(new, "title")["source"] = "# Better title"
    merged, _ = merge(None, BASE, new)
    assert texts(merged) == ["# Better title", HEADING, "# Title", *texts(BASE)[1:]]


@pytest.mark.parametrize("drop", [("id",), ("metadata",), ("id", "metadata")])
def test_old_editors_lose_ids_and_metadata(drop):
    mine, new = copy.deepcopy(BASE), copy.deepcopy(BASE)
    named(mine, "twice")["source"] = "def twice(x):\n    return 2 * x"
    for cell in mine["cells"]:
        for key in drop:
            cell.pop(key)
            cell.setdefault("metadata", {})
    named(new, "end")["source"] += " Then go on."
    merged, report = merge(BASE, mine, new)
    assert report.answers == ["twice"] and report.changed == 1
    if "metadata" not in drop:
        assert report.own == 0 and [c["id"] for c in merged["cells"]] == [
            c["id"] for c in new["cells"]
        ]
    nbformat.validate(nbformat.from_dict(merged))


# ── Any edits at all ─────────────────────────────────────────────────────────

PLACE = st.integers(0, 30)
STUDENT = st.sampled_from(
    ["answer", "edit", "line", "line", "delete", "insert", "move", "join", "split", "double", "forget id",
     "forget role", "retype", "copy over", "empty"]
)  # fmt: skip
COURSE = st.sampled_from(
    ["edit", "line", "line", "delete", "insert", "move", "stub", "add exercise", "drop"]
)


def with_line(source, place, text):
    """Return a text with a line put in, written anew or taken out."""
    lines = source.split("\n")
    at = place // 3 % len(lines)
    lines[at : at + (place % 3 > 0)] = [text] if place % 3 < 2 else []
    return "\n".join(lines)


def students(edits):
    """Return the base notebook after a student's edits."""
    mine = copy.deepcopy(BASE)
    cells = mine["cells"]
    for number, (what, a, b) in enumerate(edits):
        if not cells:
            break
        i, j = a % len(cells), b % len(cells)
        cell = cells[i]
        match what:
            case "answer":
                name = ("halve", "twice")[b % 2]
                for one in cells:
                    if one["metadata"].get("nbgrader", {}).get("grade_id") == name:
                        one["source"] = f"def {name}(x):\n    return x * {number}"
            case "edit":
                cell["source"] += f"\n# edit {number}"
            case "line":
                cell["source"] = with_line(cell["source"], b, f"line = {number}")
            case "delete":
                del cells[i]
            case "insert":
                make = code_cell if b % 2 else text_cell
                cells.insert(i, make(f"own{number}", f"own = {number}"))
            case "move":
                cells.insert(j, cells.pop(i))
            case "join" if i + 1 < len(cells):
                cell["source"] += "\n" + cells.pop(i + 1)["source"]
            case "split":
                head, _, tail = cell["source"].partition("\n")
                rest = copy.deepcopy(cell) | {"source": tail, "id": f"half{number}"}
                cell["source"] = head
                cells.insert(i + 1, rest)
            case "double":
                cells.insert(j, copy.deepcopy(cell))
            case "forget id":
                for one in cells if b % 2 else [cell]:
                    one.pop("id", None)
            case "forget role":
                for one in cells if b % 2 else [cell]:
                    one["metadata"] = {}
            case "retype":
                cells[i] = text_cell(cell.get("id", f"re{number}"), cell["source"])
            case "copy over":
                cell["source"] = cells[j]["source"]
            case "empty":
                cell["source"] = ""
    return mine


def courses(edits):
    """Return the base notebook's next version."""
    new = copy.deepcopy(BASE)
    for number, (what, a, b) in enumerate(edits):
        cells = new["cells"]
        i, j = a % len(cells), b % len(cells)
        given = "nbgrader" not in cells[i]["metadata"]
        match what:
            case "edit" if given:
                cells[i]["source"] += f"\n# version {number}"
            case "line" if given:
                cells[i]["source"] = with_line(cells[i]["source"], b, f"course = {number}")
            case "delete" if given and len(cells) > 1:
                del cells[i]
            case "insert":
                cells.insert(i, code_cell(f"new{number}", f"new = {number}"))
            case "move":
                cells.insert(j, cells.pop(i))
            case "stub":
                for cell in cells:
                    if cell["id"] == ("halve", "twice")[b % 2]:
                        cell["source"] = cell["source"].replace('."""', f' {number}."""')
            case "add exercise":
                cells[i:i] = exercise_cells(f"more{number}")
            case "drop":
                name = ("halve", "twice")[b % 2]
                new["cells"] = [one for one in cells if one["id"].split("-")[0] != name]
    return new


@settings(derandomize=True, max_examples=400)
@given(
    st.lists(st.tuples(STUDENT, PLACE, PLACE), max_size=8),
    st.lists(st.tuples(COURSE, PLACE, PLACE), max_size=5),
    st.booleans(),
)
def test_nothing_is_ever_lost(mine_edits, new_edits, with_base):
    mine, new = students(mine_edits), courses(new_edits)
    base = BASE if with_base else None
    before = copy.deepcopy((mine, new, BASE))
    merged, report = merge(base, mine, new)
    assert (mine, new, BASE) == before  # neither side was touched

    nbformat.validate(nbformat.from_dict(copy.deepcopy(merged)))
    ids = [cell["id"] for cell in merged["cells"]]
    assert len(set(ids)) == len(ids)

    # each line that the student wrote is there, each of the course's too, if only as a comment
    assert not lost(base, mine, merged)
    there = lines_of_all(merged)
    old = lines_of_all(BASE)
    assert lines_of_all(mine) - (old if with_base else set()) <= there
    if with_base:  # else nobody knows that a stub changed
        news = lines_of_all(new) - old
        told = {line for said in report.said for line in said.split("\n")}
        assert news <= {line.removeprefix("# ") for line in there} | there | told
        if not any("same lines" in said or "stub changed" in said for said in report.said):
            assert news <= there

    # the course's graded cells are there once, its news too
    roles = [c["metadata"]["nbgrader"] for c in merged["cells"] if "nbgrader" in c["metadata"]]
    expected = [c["metadata"]["nbgrader"] for c in new["cells"] if "nbgrader" in c["metadata"]]
    assert roles == expected
    # what is graded is what was graded
    graded, then = rebuild(chapter(new), submitted(merged)), rebuild(chapter(BASE), submitted(mine))
    stubs = {one.id: one.stub for one in chapter(BASE).exercises}
    for name in set(graded.sources) & set(then.sources):
        if not is_stub(then.sources[name], stubs[name]):
            assert code_of(graded.sources[name]) == code_of(then.sources[name])

    # once more changes no text
    again, report = merge(new, merged, new)
    assert sorted(texts(again)) == sorted(texts(merged)) and not report.added


def code_of(source):
    """Return what of a text runs: no comments, and no docstring."""
    with suppress(SyntaxError):
        source = ast.unparse(ast.parse(source))
    return [line for line in source.split("\n") if '"""' not in line and not line.startswith("#")]


def lines_of_all(of):
    return {line.rstrip() for text in texts(of) for line in text.split("\n") if line.strip()}


def submitted(of):
    """Return a notebook as `read_notebook` gives it."""
    parts = ("cell_type", "metadata", "source")
    return {"nbformat": 4, "cells": [{key: cell[key] for key in parts} for cell in of["cells"]]}
