"""Which cells a build of one exercise runs, and which outputs it keeps."""

import nbformat
import pytest

from grader.building.outputs import part_for, unrun, with_outputs_of
from grader.building.source import read_source
from tests.building.test_source_errors import SOURCE


@pytest.fixture
def notebook(tmp_path):
    path = tmp_path / "more.pct.py"
    path.write_text(SOURCE.lstrip())
    return read_source(path)


def ran(notebook, text):
    """Return the notebook as a run leaves it whose cells all print `text`."""
    run = nbformat.from_dict(notebook)
    for number, cell in enumerate((c for c in run.cells if c.cell_type == "code"), 1):
        cell.execution_count = number
        cell.outputs = [
            nbformat.v4.new_output("execute_result", {"text/plain": text}, execution_count=number)
        ]
    return run


def shown(notebook):
    """Return what each code cell shows, by its id."""
    return {
        cell.id: "".join(output.data["text/plain"] for output in cell.outputs)
        for cell in notebook.cells
        if cell.cell_type == "code"
    }


def test_a_part_ends_before_the_next_card_and_grades_nothing_else(notebook):
    assert list(shown(part_for(notebook, "halve"))) == ["start-1", "halve", "halve-grade"]
    assert list(shown(part_for(notebook, "twice"))) == [
        "start-1", "halve", "twice-1", "twice", "twice-grade",
    ]  # fmt: skip


def test_what_was_not_run_keeps_its_output_and_its_place(notebook):
    before = ran(notebook, "before")
    after = with_outputs_of(before, ran(part_for(notebook, "twice"), "now"))
    assert shown(after) == dict.fromkeys(shown(notebook), "now") | {"halve-grade": "before"}
    code = [cell for cell in after.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert all(o.execution_count == cell.execution_count for cell in code for o in cell.outputs)


def test_a_cell_that_changed_has_no_output(notebook):
    before = ran(notebook, "before")
    changed = nbformat.from_dict(notebook)
    next(cell for cell in changed.cells if cell.id == "twice-1").source = "print(1)"
    recalled = with_outputs_of(changed, before)
    assert unrun(recalled) == 1 and shown(recalled)["twice-1"] == ""
