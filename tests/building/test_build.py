"""What is not built: a reference that its own checks turn down."""

from pathlib import Path

import nbformat
import pytest

from grader.building.build import Built, build_chapter, first_difference
from grader.course.course import AuthorError, Course
from tests.scale.course import CHAPTER
from tests.variants.course import Public


@pytest.mark.parametrize("got", ["0.0", "3.5"])
def test_a_reference_without_all_points_is_refused(tmp_path, got):
    public = Public(tmp_path)
    path = tmp_path / f"solutions/{CHAPTER}/{CHAPTER}.ipynb"
    reference = nbformat.read(path, as_version=4)
    (graded,) = [cell for cell in reference.cells if cell.id == "double-grade"]
    output = nbformat.v4.new_output("execute_result", {"text/plain": got}, execution_count=1)
    graded.outputs = [output]
    nbformat.write(reference, path)
    source = public.root / f"solutions/{CHAPTER}/{CHAPTER}.pct.py"
    with pytest.raises(AuthorError, match=rf"double gets {got} of 4 points.*validate double"):
        build_chapter(Course(public.root), source, run=False)


def test_a_difference_is_shown_line_by_line(tmp_path):
    (tmp_path / "page.md").write_text("one\ntwo\n")
    same, other = Built(Path("page.md"), b"one\ntwo\n"), Built(Path("page.md"), b"one\n2\n")
    assert first_difference(Course(tmp_path), [same]) == ""
    assert first_difference(Course(tmp_path), [same, other]).endswith("-two\n+2\n")
