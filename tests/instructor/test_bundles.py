"""A packed grader on the services that run it: their formats, and submissions of every kind."""

import base64
import json
import os
import shutil
import stat
import subprocess
import sys
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import jsonschema
import pytest
import yaml

from grader.box.box import Box
from grader.box.tiers import BoxUnavailable, Tier
from grader.course.course import Course, CourseError
from grader.instructor.bundles import github, gradescope, single
from grader.instructor.bundles.archive import write_github, write_gradescope
from tests.scale.course import CHAPTER, HALF, RIGHT, TinyCourse

NAME = f"{CHAPTER}.ipynb"
VISIBILITY = {"enum": ["hidden", "after_due_date", "after_published", "visible"]}
FORMAT = {"enum": ["text", "simple_format", "html", "md", "ansi"]}
GRADESCOPE = {
    "type": "object",
    "additionalProperties": False,
    "required": ["tests"],
    "properties": {
        "score": {"type": "number"},
        "execution_time": {"type": "number"},
        "output": {"type": "string"},
        "output_format": FORMAT,
        "test_output_format": FORMAT,
        "test_name_format": FORMAT,
        "visibility": VISIBILITY,
        "stdout_visibility": VISIBILITY,
        "extra_data": {"type": "object"},
        "leaderboard": {"type": "array"},
        "tests": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    "score": {"type": "number"},
                    "max_score": {"type": "number"},
                    "status": {"enum": ["passed", "failed"]},
                    "name": {"type": "string"},
                    "name_format": FORMAT,
                    "number": {"type": "string"},
                    "output": {"type": "string"},
                    "output_format": FORMAT,
                    "tags": {"type": "array", "items": {"type": "string"}},
                    "visibility": VISIBILITY,
                    "extra_data": {"type": "object"},
                },
            },
        },
    },
}
"""After Gradescope's autograder specifications."""

TEXT, POINTS = {"type": "string", "minLength": 1}, {"type": "integer", "minimum": 0}
CLASSROOM50 = {
    "type": "object",
    "additionalProperties": False,
    "required": [
        "schema", "classroom", "assignment", "assignment_type", "owner", "submission", "commit",
        "release", "review", "datetime", "score", "max-score", "tests",
    ],
    "properties": {
        "schema": {"const": "classroom50/result/v1"},
        "classroom": TEXT, "assignment": TEXT, "owner": TEXT,
        "commit": TEXT, "release": TEXT, "review": TEXT,
        "assignment_type": {"enum": ["individual", "group", "team"]},
        "submission": {"type": "string", "pattern": "^submit/"},
        "datetime": {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$"},
        "score": POINTS, "max-score": POINTS,
        "tests": {
            "type": "array",
            "items": {
                "required": ["test-name", "passed", "score", "max-score"],
                "properties": {
                    "test-name": TEXT, "passed": {"type": "boolean"},
                    "score": POINTS, "max-score": POINTS,
                },
            },
        },
    },
}  # fmt: skip
"""After Classroom 50's own schema of a result, version 1."""

CLASSROOM50_SAYS = {
    "CLASSROOM": "spring",
    "ASSIGNMENT": "tiny",
    "ASSIGNMENT_TYPE": "individual",
    "OWNER": "ada",
    "SUBMISSION_TAG": "submit/2027-03-01T10-00-00Z-a1b2c3d",
    "COMMIT_URL": "https://github.com/x/y/commit/a1b2c3d",
    "RELEASE_URL": "https://github.com/x/y/releases/tag/submit",
}

FORGES = """
import json, os
from pathlib import Path

def double(x):
    for parent in ("/autograder/results", {root!r} + "/results", ".", "/tmp"):
        try:
            Path(parent, "results.json").write_text(json.dumps({{"score": 1000, "tests": []}}))
        except OSError:
            pass
    return x + x
"""


class Service:
    """The folders of a service that grades one submission, in a temporary folder."""

    def __init__(self, course, archive, root):
        self._course, self.root = course, root
        (root / "results").mkdir(parents=True)
        with zipfile.ZipFile(archive) as bundle:
            bundle.extractall(root / "source")
        self.house = root / "source" / "undertorch"
        self.submission = root / "submission"
        self.submission.mkdir()

    def hand_in(self, sources, name=NAME):
        self._course.hand_in("somebody", sources)
        path = self._course.root / "submitted" / "somebody" / CHAPTER / NAME
        (self.submission / name).parent.mkdir(exist_ok=True)
        (self.submission / name).write_text(path.read_text())

    def graded(self):
        """Return results.json after the program that `run_autograder` starts."""
        gradescope.main(self.root)
        found = json.loads((self.root / "results" / "results.json").read_text())
        jsonschema.validate(found, GRADESCOPE)
        return found

    def single(self):
        bundle = single.read_bundle(self.house)
        return single.grade_folder(bundle, self.submission, Tier.NAMESPACES)


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    return TinyCourse(tmp_path_factory.mktemp("bundled"))


@pytest.fixture(scope="module")
def archive(course):
    before = Path.cwd()
    path = course.root / "autograder.zip"
    packed = write_gradescope(Course(course.root).chapter(CHAPTER), path)
    assert (packed.notebook, packed.exercises, packed.points) == (NAME, 2, 6)
    assert Path.cwd() == before
    return path


@pytest.fixture
def service(course, archive, tmp_path):
    return Service(course, archive, tmp_path / "autograder")


def test_the_zip_has_what_gradescope_wants(archive):
    assert stat.S_IMODE(archive.stat().st_mode) == 0o600  # solutions are in it
    with zipfile.ZipFile(archive) as bundle:
        modes = {info.filename: info.external_attr >> 16 & 0o777 for info in bundle.infolist()}
        text = bundle.read("setup.sh").decode()
        terms = json.loads(bundle.read("undertorch/bundle.json"))
    assert modes["setup.sh"] == modes["run_autograder"] == 0o755
    assert {name for name in modes if "/" not in name} == {"setup.sh", "run_autograder"}
    assert f"undertorch/grader/{CHAPTER}/test_double.py" in modes
    assert "@PYTHONS@" not in text
    assert terms["chapter"] == CHAPTER and not terms["chosen"]
    for name in ("grader/inside/serve.py", f"solutions/{CHAPTER}/{NAME}", "requirements.txt"):
        assert f"undertorch/{name}" in modes
    assert not [name for name in modes if "ch01" in name or name.endswith(".db")]


@pytest.mark.parametrize("name", ["setup.sh", "run_autograder"])
def test_scripts_are_shell(archive, name):
    with zipfile.ZipFile(archive) as bundle:
        subprocess.run(["bash", "-n"], input=bundle.read(name), check=True)


def test_run_autograder_itself(service, tmp_path):
    service.hand_in(HALF)
    (service.root / "submission_metadata.json").write_text("{}")
    done = subprocess.run(
        ["bash", service.root / "source" / "run_autograder"],
        env={
            "PATH": os.environ["PATH"],
            "UNDERTORCH_AUTOGRADER": str(service.root),
            "UNDERTORCH_HOME": sys.prefix,
        },
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((service.root / "results" / "results.json").read_text())
    jsonschema.validate(found, GRADESCOPE)
    half, right = found["tests"]
    assert 0 < half["score"] < half["max_score"] and half["status"] == "failed"
    assert right["score"] == right["max_score"] and right["status"] == "passed"
    assert "Twice a negative input." in half["output"]
    assert {test["visibility"] for test in found["tests"]} == {"visible"}
    assert found["stdout_visibility"] == "hidden" and "tier 1" in done.stdout
    assert "score" not in found and "leaderboard" not in found
    assert stat.S_IMODE((service.root / "source").stat().st_mode) == 0o700
    assert stat.S_IMODE((service.root / "submission_metadata.json").stat().st_mode) == 0o600


def unscored(found):
    """Assert that there is no score anywhere, and that only an instructor reads the reason."""
    *exercises, hidden = found["tests"]
    assert not any("score" in part for part in (found, *found["tests"]))
    assert hidden["visibility"] == "hidden" and "max_score" not in hidden
    assert [test["max_score"] for test in exercises] == [4, 2]
    return hidden["output"]


def test_without_a_notebook(service, capsys):
    (service.submission / "notes.txt").write_text("mine")
    found = service.graded()
    assert found["output"] == f"There is no notebook in your submission. Hand in {NAME}."
    assert "no notebook" in unscored(found)
    assert "not graded: There is no notebook" in capsys.readouterr().out


def test_with_two_notebooks(service):
    service.hand_in(RIGHT, "a.ipynb")
    service.hand_in(RIGHT, "b.ipynb")
    found = service.graded()
    assert found["output"].startswith("There are 2 notebooks in your submission (a.ipynb, b.ipynb)")
    unscored(found)


def test_the_notebook_of_its_name_counts_wherever_it_lies(service):
    service.hand_in(RIGHT, f"work/{NAME}")
    service.hand_in(HALF, "old.ipynb")
    service.hand_in(HALF, f".ipynb_checkpoints/{NAME}")
    assert single.find_notebook(service.submission, NAME) == service.submission / "work" / NAME


def test_a_torn_notebook(service):
    (service.submission / NAME).write_text('{"cells": [')
    found = service.graded()
    assert (
        "Your submission could not be read: the notebook is not JSON" in found["tests"][0]["output"]
    )
    assert "A person will look" not in found["tests"][0]["output"]
    assert found["output"].startswith("Not all of your submission could be graded")
    assert "unreadable" in unscored(found)


def test_a_link_is_not_followed(service, course):
    target = course.root / "solutions" / CHAPTER / NAME
    (service.submission / NAME).symlink_to(target)
    assert "a link" in service.graded()["tests"][0]["output"]


@pytest.mark.parametrize("tier", [Tier.NAMESPACES, Tier.CONTAINER])
def test_results_are_not_the_students_to_write(service, monkeypatch, tier):
    if tier is Tier.CONTAINER and os.geteuid() != 0:
        pytest.skip("only root can become another user")
    monkeypatch.setattr(gradescope, "strongest_tier", lambda: tier)
    service.hand_in({**RIGHT, "double": FORGES.format(root=str(service.root))})
    found = service.graded()
    assert [test["score"] for test in found["tests"]] == [4, 2]
    assert os.listdir(service.root / "results") == ["results.json"]


def test_what_a_student_prints_is_text_for_any_reader(service):
    service.hand_in(
        {**RIGHT, "double": "def double(x):\n    raise ValueError('a\\0b\\x1b[31m\\ud800')"}
    )
    output = service.graded()["tests"][0]["output"]
    assert "ValueError" in output
    assert not [letter for letter in output if ord(letter) < 32 and letter != "\n"]


def test_without_a_sandbox_nothing_runs(service, monkeypatch, capsys):
    def refuse(*args, **more):
        raise BoxUnavailable("no namespaces here")

    monkeypatch.setattr(single, "Box", refuse)
    service.hand_in(RIGHT)
    assert gradescope.main(service.root) == 1
    found = json.loads((service.root / "results" / "results.json").read_text())
    jsonschema.validate(found, GRADESCOPE)
    assert "could not start its sandbox" in found["output"]
    unscored(found)
    assert "no namespaces here" in capsys.readouterr().out


def test_the_strongest_tier_that_works(monkeypatch):
    assert single.strongest_tier() is Tier.NAMESPACES
    if os.geteuid() == 0:
        monkeypatch.setattr(single, "Box", _WithoutNamespaces)
        assert single.strongest_tier() is Tier.CONTAINER


class _WithoutNamespaces(Box):
    def __init__(self, *args, tier, **more):
        if tier is Tier.NAMESPACES:
            raise BoxUnavailable("Operation not permitted")
        super().__init__(*args, tier=tier, **more)


@pytest.mark.parametrize(("sources", "status"), [(RIGHT, "pass"), (HALF, "fail")])
def test_github(service, sources, status):
    service.hand_in(sources)
    done = service.single()
    found = github.runner_result(done)
    assert (found["version"], found["status"], found["max_score"]) == (1, status, 6)
    points = sum(test["score"] for test in found["tests"])
    mine = github.classroom50_result(done, CLASSROOM50_SAYS, datetime.now(UTC))
    jsonschema.validate(mine, CLASSROOM50)
    assert (mine["score"], mine["max-score"]) == (round(points * 100), 600)
    assert all(test["score"] <= test["max-score"] for test in mine["tests"])
    assert f"### {points:g} of 6 points" in github.summary(done)
    assert ("Twice a negative input." in github.summary(done)) is (sources is HALF)


def test_github_has_no_total_for_what_nobody_could_grade(service):
    (service.submission / NAME).write_text('{"cells": [')
    for done in (service.single(), single.Single((), refused="There is no notebook.")):
        found = github.runner_result(done)
        assert found["status"] == "error" and "max_score" not in found
        assert not any("score" in test for test in found["tests"])
        mine = github.classroom50_result(done, CLASSROOM50_SAYS, datetime.now(UTC))
        jsonschema.validate(mine, CLASSROOM50)
        assert (mine["score"], mine["max-score"], mine["tests"]) == (0, 0, [])
    assert "could not be read" in github.summary(service.single())


def test_nothing_of_a_student_is_markup_or_a_command(service, monkeypatch, tmp_path, capsys):
    text = "</pre><img src=x>\\n\\n::error::mine\\n# title | a"
    service.hand_in({**RIGHT, "double": f"def double(x):\n    raise ValueError('{text}')"})
    for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"):
        monkeypatch.setenv(name, str(tmp_path / name))
    assert github.main(service.house, service.submission) == 0
    shown = (tmp_path / "GITHUB_STEP_SUMMARY").read_text()
    assert "<img" not in shown and "&lt;img" in shown
    assert "::" not in capsys.readouterr().out
    name, _, result = (tmp_path / "GITHUB_OUTPUT").read_text().strip().partition("=")
    assert name == "result" and json.loads(base64.b64decode(result))["status"] == "fail"


@pytest.fixture(scope="module")
def written(course):
    folder = course.root / "github"
    write_github(Course(course.root).chapter(CHAPTER), folder)
    return folder


def test_the_folders_for_github(course, written):
    with pytest.raises(CourseError, match="not empty"):
        write_github(Course(course.root).chapter(CHAPTER), written)
    for folder in ("template/.github/undertorch", "classroom50"):
        subprocess.run(["bash", "-n", written / folder / "setup.sh"], check=True)
        assert single.read_bundle(written / folder / "undertorch").chapter.name == CHAPTER
    assert (written / "template" / NAME).read_bytes() == (
        course.root / "chapters" / CHAPTER / NAME
    ).read_bytes()
    assert json.loads((written / "runtime.json").read_text())["runs-on"].startswith("ubuntu-")
    assert sum(p.stat().st_size for p in (written / "classroom50").rglob("*")) < 10 * 2**20


def test_the_workflow_is_what_the_reporter_wants(written):
    workflow = yaml.safe_load((written / "template/.github/workflows/classroom.yml").read_text())
    assert workflow["name"] == "Autograding Tests"
    assert list(workflow["jobs"]) == ["run-autograding-tests"]
    *_, report = workflow["jobs"]["run-autograding-tests"]["steps"]
    for runner in report["with"]["runners"].split(","):
        assert (
            report["env"][f"{runner.upper()}_RESULTS"]
            == f"${{{{ steps.{runner}.outputs.result }}}}"
        )


def test_the_workflows_own_step(course, written, tmp_path):
    """The step that grades, in a fresh checkout: what GitHub does around it is named by variables."""
    workflow = yaml.safe_load((written / "template/.github/workflows/classroom.yml").read_text())
    steps = workflow["jobs"]["run-autograding-tests"]["steps"]
    step = next(step for step in steps if step.get("id") == "undertorch")
    checkout = tmp_path / "checkout"
    shutil.copytree(written / "template", checkout)
    course.hand_in("octocat", HALF)
    shutil.copy(course.root / "submitted" / "octocat" / CHAPTER / NAME, checkout / NAME)
    (tmp_path / "opt").symlink_to(sys.prefix)
    names = {"GITHUB_OUTPUT": tmp_path / "output", "GITHUB_STEP_SUMMARY": tmp_path / "summary"}
    environment = {
        k: v.replace("${{ github.workspace }}", str(checkout)) for k, v in step["env"].items()
    }
    done = subprocess.run(
        ["bash", "-e", "-c", step["run"].replace("/opt/undertorch", str(tmp_path / "opt"))],
        cwd=checkout,
        env={"PATH": os.environ["PATH"], **environment, **{k: str(v) for k, v in names.items()}},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(base64.b64decode((tmp_path / "output").read_text().removeprefix("result=")))
    assert (result["status"], result["max_score"]) == ("fail", 6)
    assert "Twice a negative input." in (tmp_path / "summary").read_text()


def test_classroom50s_own_program(course, written, tmp_path):
    """autograder.py as its runner starts it: in the student's checkout, beside what came with it."""
    course.hand_in("octocat", HALF)
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    shutil.copy(course.root / "submitted" / "octocat" / CHAPTER / NAME, checkout / NAME)
    (checkout / "result.json").symlink_to(tmp_path / "elsewhere")
    done = subprocess.run(
        [sys.executable, written / "classroom50" / "autograder.py"],
        cwd=checkout,
        env={
            "PATH": os.environ["PATH"],
            "UNDERTORCH_HOME": sys.prefix,
            "GITHUB_OUTPUT": str(tmp_path / "output"),
            **CLASSROOM50_SAYS,
        },
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    jsonschema.validate(json.loads((checkout / "result.json").read_text()), CLASSROOM50)
    assert not (tmp_path / "elsewhere").exists()
    assert "Twice a negative input." in (checkout / "release-body.md").read_text()
    assert (tmp_path / "output").read_text().startswith("status=failure\nsummary=")


def test_a_private_variant_goes_to_no_repository_of_students(course, monkeypatch, tmp_path):
    monkeypatch.setattr("grader.instructor.bundles.archive.is_private", lambda chapter: True)
    with pytest.raises(CourseError, match="every student can read it"):
        write_github(Course(course.root).chapter(CHAPTER), tmp_path / "github")
    assert not (tmp_path / "github").exists()
