"""A term in a course folder: chosen, released, handed in by the exchange, graded, late, given back."""

import json
import os
import shutil
import sqlite3
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from grader.course.course import COURSE_FILE, Course
from grader.instructor.folder import new_course
from tests import ROOT
from tests.forked import Forked

CHAPTER = "ch01_formats"
MOODLE = "Cleo Marr_17_assignsubmission_file"
HOURS_LATE = 30  # the second day has begun, and a slow machine does not reach the third
WEIGHTS = {"decode": 10, "round_to_bf16": 6}


class AsStudent(Forked):
    """nbgrader as another user: the exchange asks the system who it is."""

    def __init__(self, name, root, command):
        self._name = name
        super().__init__(root, command)

    def _run(self, root, name, *arguments):
        from nbgrader.exchange.default import submit

        submit.get_username = lambda: self._name
        return super()._run(root, name, *arguments)


class Term:
    """A course folder, an exchange beside it, and students."""

    def __init__(self, base):
        self.base, self.root, self.exchange = base, base / "spring", base / "exchange"
        self.exchange.mkdir()
        os.chmod(self.exchange, 0o777)
        self.due = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=HOURS_LATE)

    def run(self, *command, root=None, status=0):
        process = Forked(root or self.root, command)
        said = process.said_until_end()
        assert process.status == status, said
        return said

    def write_file(self, points=10, extra=""):
        text = f"""
            course = "spring"
            exchange = "{self.exchange}"
            [late]
            percent_per_day = 10
            [chapters.{CHAPTER}]
            due = {self.due.isoformat()}
            [chapters.{CHAPTER}.points]
            decode = {points}
            round_to_bf16 = 6
            {extra}
            [chapters.ch02_strides.points]
            reshape = 5
            [extensions.bea]
            {CHAPTER} = {(self.due + timedelta(days=30)).isoformat()}
        """
        (self.root / COURSE_FILE).write_text(text)

    def submit(self, student):
        """Answer `decode` with the course's answer, and hand in."""
        released = json.loads(self.notebook("release").read_text())
        answers = {
            cell["id"]: cell for cell in json.loads(self.notebook("source").read_text())["cells"]
        }
        for cell in released["cells"]:
            if cell["id"] == "decode":
                cell["source"] = answers["decode"]["source"]
        desk = self.base / student
        path = desk / CHAPTER / "formats.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(released))
        places = f"--Exchange.root={self.exchange}", f"--Exchange.cache={desk / 'cache'}"
        process = AsStudent(
            student, desk, ("nbgrader", "submit", CHAPTER, "--course=spring", *places)
        )
        said = process.said_until_end()
        assert process.status == 0, said

    def notebook(self, folder):
        return self.root / folder / CHAPTER / "formats.ipynb"

    def scores(self):
        """Return points and late penalty by student, as the gradebook has them."""
        with sqlite3.connect(self.root / "gradebook.db") as base:
            rows = base.execute(
                "SELECT a.student_id, SUM(g.auto_score), n.late_submission_penalty FROM grade g"
                " JOIN submitted_notebook n ON n.id = g.notebook_id"
                " JOIN submitted_assignment a ON a.id = n.assignment_id GROUP BY a.student_id"
            )
            return {student: (score, penalty or 0.0) for student, score, penalty in rows}


@pytest.fixture(scope="module")
def term(tmp_path_factory):
    term = Term(tmp_path_factory.mktemp("term"))
    chosen = "--exercises=decode,ch01_formats/round_to_bf16,reshape"
    said = term.run("undertorch", "course", "new", "spring", chosen, root=term.base)
    assert "ch02_strides: 1 exercise, 7 points, written" in said
    term.write_file()
    said = term.run("undertorch", "course", "apply")
    assert "ch01_formats: 2 exercises, 16 points, written, new due date" in said
    people = "id,first name,last name\nada,Ada,Lovelace\nbea,Bea,Byron\ncleo,Cleo,Marr\n"
    (term.base / "class.csv").write_text(people)
    assert "3 new" in term.run("undertorch", "course", "roster", str(term.base / "class.csv"))
    term.run("nbgrader", "release_assignment", CHAPTER)
    term.submit("ada")
    term.submit("bea")
    term.run("nbgrader", "collect", CHAPTER)
    with zipfile.ZipFile(term.base / "moodle.zip", "w") as archive:
        archive.write(term.base / "ada" / CHAPTER / "formats.ipynb", f"{MOODLE}/formats.ipynb")
    assert "1 laid into submitted/" in term.run(
        "undertorch", "course", "collect", CHAPTER, str(term.base / "moodle.zip")
    )
    cleo = term.root / "submitted/cleo" / CHAPTER
    (cleo / "timestamp.txt").write_text((term.due - timedelta(hours=1)).isoformat())
    term.run("nbgrader", "autograde", CHAPTER)
    return term


def test_the_folder_is_no_copy_of_the_course(term):
    assert not (term.root / "grader").exists()
    files = {path.name for path in (term.root / "source").rglob("*") if path.is_file()}
    assert files == {"formats.ipynb", "strides.ipynb"}
    assert {"/secret", "/submitted/"} < set((term.root / ".gitignore").read_text().split())


def test_students_get_the_chosen_exercises(term):
    handed_out = json.loads(
        (term.exchange / f"spring/outbound/{CHAPTER}/formats.ipynb").read_text()
    )
    grade_cells = [c for c in handed_out["cells"] if c["metadata"].get("nbgrader", {}).get("grade")]
    points = {
        c["metadata"]["nbgrader"]["grade_id"]: c["metadata"]["nbgrader"]["points"]
        for c in grade_cells
    }
    assert points == {f"{name}-grade": worth for name, worth in WEIGHTS.items()}
    assert not any("BEGIN SOLUTION" in "".join(c["source"]) for c in handed_out["cells"])


def test_late_work_costs_unless_it_was_extended(term):
    assert term.scores() == {"ada": (10.0, 2.0), "bea": (10.0, 0.0), "cleo": (10.0, 0.0)}


def test_our_own_commands_take_the_same(term):
    before = term.scores()
    assert "3 graded" in term.run("undertorch", "grade", CHAPTER, "--force", "--jobs", "1")
    assert term.scores() == before
    assert "10 / 16" in term.run("undertorch", "scores", CHAPTER)


def test_points_extensions_and_a_regrade(term):
    term.write_file(points=20)
    said = term.run("undertorch", "course", "apply")
    assert f"3 graded submissions of {CHAPTER} have the old points. Next: undertorch reg" in said
    term.run("undertorch", "regrade", CHAPTER)
    assert term.scores() == {"ada": (20.0, 4.0), "bea": (20.0, 0.0), "cleo": (20.0, 0.0)}
    until = (term.due + timedelta(hours=20)).isoformat()
    with (term.root / COURSE_FILE).open("a") as file:
        file.write(f"[extensions.ada]\n{CHAPTER} = {until}\n")
    assert "ada, ch01_formats: late penalty 2, was 4" in term.run("undertorch", "course", "apply")
    assert term.scores()["ada"] == (20.0, 2.0)
    with (term.root / COURSE_FILE).open("a") as file:
        file.write(f"[extensions.s9999]\n{CHAPTER} = {until}\n")
    said = term.run("undertorch", "course", "apply", status=2)
    assert "extensions.s9999: no student of the gradebook has this id" in said
    term.write_file(points=20)


def test_feedback_goes_back_as_the_submission_came(term):
    with sqlite3.connect(term.root / "gradebook.db") as base:
        base.execute("UPDATE grade SET manual_score = 7.5 WHERE auto_score = 20")
    said = term.run("undertorch", "feedback", CHAPTER, "--out", str(term.base))
    assert "Released through the exchange: 2 (ada, bea)." in said
    assert len(list((term.exchange / "spring/feedback").glob("*.html"))) == 2
    with zipfile.ZipFile(term.base / f"feedback-{CHAPTER}-moodle.zip") as archive:
        (name,) = archive.namelist()
        page = archive.read(name).decode()
    assert name == f"{MOODLE}_/formats.html"
    assert "A person gave 7.5 of 20 points." in page
    (term.root / ".undertorch/collected" / f"{CHAPTER}.json").unlink()
    said = term.run("undertorch", "feedback", CHAPTER, status=1)
    assert f"No way to cleo: {term.root}/feedback/cleo/{CHAPTER}/formats.html" in said


def test_who_leaves_and_comes_back(term):
    before = term.scores(), term.run("undertorch", "report", CHAPTER, "--json")
    assert "No student has the id zoe" in term.run("undertorch", "course", "drop", "zoe", status=2)
    term.run("undertorch", "course", "drop", "bea")
    assert term.scores() == {name: one for name, one in before[0].items() if name != "bea"}
    assert '"bea"' not in term.run("undertorch", "report", CHAPTER, "--json")
    term.run("nbgrader", "collect", CHAPTER)  # the exchange still has what was handed in
    said = term.run("undertorch", "grade", CHAPTER)
    assert "0 graded" in said and "Dropped from the course, not graded: bea." in said
    assert "dropped  bea" in term.run(
        "undertorch", "course", "roster", str(term.base / "class.csv")
    )
    shutil.rmtree(term.root / "submitted/bea")
    term.run("undertorch", "course", "rejoin", "bea")
    assert (term.scores(), term.run("undertorch", "report", CHAPTER, "--json")) == before
    assert "0 graded" in term.run("undertorch", "grade", CHAPTER)


def test_exercises_cannot_change_under_grades(term):
    before = term.notebook("source").read_bytes()
    term.write_file(extra="spacing = 3")
    said = term.run("undertorch", "course", "apply", status=2)
    assert "has 3 graded submissions with the exercises decode, round_to_bf16" in said
    assert term.notebook("source").read_bytes() == before


def test_an_edited_source_stays(term):
    path = term.root / "source/ch02_strides/strides.ipynb"
    edited = path.read_text().replace("# Strides", "# Our strides", 1)
    path.write_text(edited)
    term.write_file()
    said = term.run("undertorch", "course", "apply")
    assert "ch02_strides: 1 exercise, 5 points, edited here" in said
    assert path.read_text() == edited
    term.run("undertorch", "course", "apply", "--overwrite")
    assert (term.root / "kept/strides-1.ipynb").read_text() == edited
    assert "# Our strides" not in path.read_text()


def test_a_wrong_file_stops_nbgrader(term):
    """nbgrader logs what a configuration raises and goes on; that would be without a sandbox."""
    with (term.root / COURSE_FILE).open("a") as file:
        file.write("oops = 1\n")
    said = term.run("nbgrader", "autograde", CHAPTER, "--force", status=1)
    assert "extensions.bea.oops" in said
    term.write_file()


def test_a_folder_that_is_in_use_is_left_alone(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    process = Forked(tmp_path, ("undertorch", "course", "new", str(tmp_path)))
    assert "not empty" in process.said_until_end()
    assert [path.name for path in Path(tmp_path).iterdir()] == ["notes.txt"]


def test_the_short_path_and_what_is_added_to_it(tmp_path):
    chapter = Course(ROOT).chapter("ch01_formats")
    settings = new_course(tmp_path / "short", [chapter.id], ["spacing"], short=True)
    wanted = [e.id for e in chapter.exercises if e.short or e.id == "spacing"]
    assert list(settings.chapters[chapter.id].points) == wanted
