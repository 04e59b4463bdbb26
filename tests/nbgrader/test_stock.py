"""nbgrader as it comes, without our configuration: a wrong answer never gets full marks.

It runs the notebook in a kernel and takes a grade cell's result for the points; what is no number
it takes for full marks.
"""

import shutil

import nbformat
import pytest
from nbgrader.apps.api import NbGraderAPI
from nbgrader.validator import Validator
from traitlets.config import Config

from grader.nbgrader import commands_on_path
from tests.scale.course import CHAPTER, HALF, TinyCourse

ADA = "ada"


@pytest.fixture(scope="module")
def stock(tmp_path_factory):
    """A course that knows nothing of ours: `double` is half right, `total` not written. And nbgrader."""
    commands_on_path()
    ours = TinyCourse(tmp_path_factory.mktemp("course"))
    root = tmp_path_factory.mktemp("stock")
    shutil.copytree(ours.root / "solutions" / CHAPTER, root / "source" / CHAPTER)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNDERTORCH_COURSE", str(ours.root))  # as where the package is installed
        patch.chdir(root)
        config = Config()
        config.CourseDirectory.root = str(root)
        api = NbGraderAPI(config=config)
        assert api.generate_assignment(CHAPTER)["success"]
        notebook = nbformat.read(root / "release" / CHAPTER / f"{CHAPTER}.ipynb", as_version=4)
        for cell in notebook.cells:
            if cell.metadata.get("nbgrader", {}).get("grade_id") == "double":
                cell.source = HALF["double"]
        submitted = root / "submitted" / ADA / CHAPTER / f"{CHAPTER}.ipynb"
        submitted.parent.mkdir(parents=True)
        nbformat.write(notebook, submitted)
        yield api, submitted


@pytest.mark.filterwarnings("ignore:Object of type")  # nbgrader's own queries
def test_autograde(stock):
    api, _ = stock
    done = api.autograde(CHAPTER, ADA)
    assert done["success"], done["log"]
    cells = api.gradebook.find_submission(CHAPTER, ADA).notebooks[0].grades
    assert {cell.name: cell.score for cell in cells} == {"double-grade": 2, "total-grade": 0}


def test_validate(stock):
    _, submitted = stock
    found = Validator().validate(str(submitted))
    assert [cell["source"] for cell in found["failed"]] == ['grade("double")', 'grade("total")']
    half, untouched = (cell["error"] for cell in found["failed"])
    assert half.startswith("failed, 2 of 4 points") and "negative input" in half
    assert untouched.startswith("not attempted, 0 of")
