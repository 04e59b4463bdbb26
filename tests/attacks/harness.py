"""Hands in every attack beside a victim's work, grades the class with plain nbgrader, tells what came of it.

An attack is one file, `<verdict>/<class>/<name>.py`: the folder says what it must get. Its head is
comment lines: what it tries, then any of

    # points: decode=2        instead of all for a pass and none for the rest
    # review: words           a person must look at these, and the reason holds these words;
    # review_decode: words    at this one alone;
    # review_all: words       so with every exercise of the submission
    # says: words             the feedback page must hold these words: the attack really ran
    # student: name           who hands it in, instead of a name made of the file's

Then come sections:

    # %% solution decode      the text of that solution cell; exercises not named get the reference's
    # %% cell                 a cell of the student's own at the end; `# %% cell before decode`
    # %% notebook             run here, not in the box: changes the notebook `nb`, a dict
    # %% folder               run here: changes `folder`, `notebook`, and sees `course` (paths)

`@ROOT@` and `@PORT@` stand for the course's folder and for a port on which nobody may call.
The verdict is for the exercises that have a `solution` section; where none has, for all.
"""

from __future__ import annotations

import copy
import json
import os
import re
import shutil
from dataclasses import dataclass, field, replace
from pathlib import Path

import psutil
from nbgrader.api import Gradebook

from tests.forked import Forked

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]
CHAPTER = "ch01_formats"
EXERCISES = ("decode", "round_to_bf16")
"""The real exercises of chapter 1 that attacks aim at; the rest of the chapter is left out."""

VERDICTS = {
    "passed": "passed",
    "failed": "failed",
    "blocked": "blocked",
    "crashed": "crashed",
    "timed_out": "timed out",
    "out_of_memory": "out of memory",
    "killed": "killed",
    "not_attempted": "not attempted",
    "needs_review": "needs review",
}

VICTIMS = ("aaa-victim", "mmm-victim", "zzz-victim")
"""Right answers, graded before, among and after the attacks."""


@dataclass(frozen=True)
class Attack:
    """One file of this folder, read."""

    path: Path
    verdict: str
    head: dict[str, str]
    sections: tuple[tuple[str, str], ...]
    plain: bool = False  # handed in once more, for nbgrader's own command

    @property
    def student(self) -> str:
        """Who hands it in."""
        made = "-".join(self.path.relative_to(HERE).with_suffix("").parts)
        name = self.head.get("student", made)
        return f"plain-{name}" if self.plain else name

    @property
    def hit(self) -> set[str]:
        """The exercises that it is about."""
        named = {kind.split()[1] for kind, _ in self.sections if kind.startswith("solution ")}
        return named or set(EXERCISES)

    def expected(self) -> dict[str, str]:
        """Return the outcome that each exercise must get."""
        return {name: self.verdict if name in self.hit else "passed" for name in EXERCISES}

    def reason(self, exercise: str) -> str | None:
        """Return what the reason must hold for which a person looks at an exercise, if one must."""
        both = self.head.get("review") if exercise in self.hit else None
        return self.head.get(f"review_{exercise}", both or self.head.get("review_all"))

    def points(self, most: dict[str, float]) -> dict[str, float]:
        """Return the points that each exercise must get."""
        told = dict(pair.split("=") for pair in self.head.get("points", "").split())
        return {
            name: float(told.get(name, most[name] if outcome == "passed" else 0.0))
            for name, outcome in self.expected().items()
        }


def read_attack(path: Path) -> Attack:
    """Read one attack's file."""
    folder = path.relative_to(HERE).parts[0]
    title, *sections = re.split(r"^# %% ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    head = dict(re.findall(r"^# (\w+): (.*)$", title, flags=re.MULTILINE))
    parts = [section.partition("\n")[::2] for section in sections]
    return Attack(
        path,
        VERDICTS[folder],
        head,
        tuple((kind.strip(), text.strip("\n")) for kind, text in parts),
    )


ATTACKS = tuple(
    read_attack(path)
    for path in sorted(HERE.glob(os.environ.get("UNDERTORCH_ATTACKS", "*/*/*.py")))
)
"""All of them, or with `UNDERTORCH_ATTACKS='killed/*/*.py'` those one works on."""

PLAIN = tuple(
    replace(attack, plain=True)
    for attack in {attack.path.parent.name: attack for attack in reversed(ATTACKS)}.values()
)
"""One of each class, for `nbgrader autograde`. What it writes, `undertorch grade` writes: see tests/scale."""


@dataclass
class Class:
    """A course in a folder of its own, with its secrets, and what grading made of it."""

    root: Path
    token: str
    port: int
    log: str = ""
    called: bool = False
    children: set[psutil.Process] = field(default_factory=set)
    most: dict[str, float] = field(default_factory=dict)
    before: dict[str, bytes] = field(default_factory=dict)

    @property
    def seed(self) -> int:
        """The run's seed: a secret, known here so that it can be looked for."""
        return int(self.token, 16)

    def secrets(self) -> tuple[str, ...]:
        """Return what may show up nowhere."""
        return f"secret-{self.token}", str(self.seed), self.token

    def record(self, student: str) -> dict:
        """Return what grading recorded of a student, by exercise."""
        path = self.root / "evidence" / student / CHAPTER / "record.json"
        return {v["exercise"]: v for v in json.loads(path.read_text())["verdicts"]}

    def rows(self) -> dict[str, dict[str, tuple[float | None, bool]]]:
        """Return the gradebook: by student and grade cell the automatic score, and who must look."""
        found: dict[str, dict[str, tuple[float | None, bool]]] = {}
        with Gradebook(f"sqlite:///{self.root}/gradebook.db") as gradebook:
            for submission in gradebook.assignment_submissions(CHAPTER):
                rows = found.setdefault(submission.student.id, {})
                for notebook in submission.notebooks:
                    for grade in notebook.grades:
                        rows[grade.name] = grade.auto_score, grade.needs_manual_grade
        return found

    def page(self, student: str) -> str:
        """Return a student's feedback page."""
        return (self.root / "feedback" / student / CHAPTER / "formats.html").read_text("utf-8")

    def run(self, *command: str, ok: bool = True) -> str:
        """Run a command in the course; return what it said."""
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.root / "home"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "SECRET": f"secret-{self.token}",
        }
        process = Forked(self.root, command, environment)
        said: str = process.said_until_end()
        assert (process.status == 0) is ok, said[-6000:]
        return said

    def files(self, *folders: str) -> dict[str, bytes]:
        """Return the regular files under these folders, by name."""
        return {
            str(path): path.read_bytes()
            for folder in folders
            for path in sorted((self.root / folder).rglob("*"))
            if path.is_file() and not path.is_symlink() and path.suffix != ".pyc"
        }


SOURCES = ("chapters", "solutions", "grader", "nbgrader_config.py", "secret.txt")


def make_class(root: Path, token: str, port: int) -> Class:
    """Make a course of two exercises of chapter 1, with secrets where attacks look for them."""
    secret = f"secret-{token}"
    for name in ("chapters", "solutions", "grader"):
        shutil.copytree(REPOSITORY / name / CHAPTER, root / name / CHAPTER)
    (root / "home").mkdir()
    (root / "secret.txt").write_text(secret)
    for path in (root / "grader" / CHAPTER).rglob("*.py"):
        if path.parent.name != "probes":
            path.write_text(f"{path.read_text('utf-8').rstrip()}\n\n# {secret}\n", "utf-8")
    for name in ("chapters", "solutions"):
        path = root / name / CHAPTER / "formats.ipynb"
        notebook = json.loads(path.read_text("utf-8"))
        notebook["cells"] = [cell for cell in notebook["cells"] if _belongs(cell)]
        if name == "solutions":
            for cell in notebook["cells"]:
                cell["source"] = ["".join(cell["source"]) + f"\n# {secret}"]
        path.write_text(json.dumps(notebook), "utf-8")
    config = (REPOSITORY / "nbgrader_config.py").read_text("utf-8")
    # an endless loop is to use up its processor time, even where many others have the processor
    budget = "c.GradeInBox.cpu_seconds = 2.0\nc.GradeInBox.wall_seconds = 25.0\n"
    budget += f"c.GradeInBox.memory_mib = 400\nc.GradeInBox.seed = {int(token, 16)}\n"
    (root / "nbgrader_config.py").write_text(f"{config}\nc = get_config()\n{budget}", "utf-8")
    return Class(root, token, port)


def _belongs(cell: dict) -> bool:
    grade_id = cell["metadata"].get("nbgrader", {}).get("grade_id", "")
    return not grade_id or grade_id.removesuffix("-grade") in EXERCISES


def right_answers(course: Class) -> dict:
    """Return the released notebook with the reference's text in its solution cells."""
    path = course.root / "chapters" / CHAPTER / "formats.ipynb"
    notebook = json.loads(path.read_text("utf-8"))
    answers = {}
    reference = json.loads(
        (REPOSITORY / "solutions" / CHAPTER / "formats.ipynb").read_text("utf-8")
    )
    for cell in reference["cells"]:
        answers[cell["metadata"].get("nbgrader", {}).get("grade_id")] = cell["source"]
    for cell in notebook["cells"]:
        role = cell["metadata"].get("nbgrader", {})
        cell["source"] = "".join(cell["source"])
        if role.get("solution"):
            cell["source"] = "".join(answers[role["grade_id"]])
        elif role.get("grade"):
            course.most[role["grade_id"].removesuffix("-grade")] = float(role["points"])
    return notebook


def hand_in(course: Class, student: str, notebook: dict) -> Path:
    """Write a notebook into `submitted/`; return its path."""
    path = course.root / "submitted" / student / CHAPTER / "formats.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(notebook), "utf-8")
    return path


def hand_in_attack(course: Class, attack: Attack, right: dict) -> None:
    """Make the submission that an attack's file describes."""
    notebook = copy.deepcopy(right)
    later = []
    for kind, raw in attack.sections:
        text = raw.replace("@ROOT@", str(course.root)).replace("@PORT@", str(course.port))
        what, _, rest = kind.partition(" ")
        if what == "solution":
            cell_of(notebook, rest)["source"] = text
        elif what == "cell":
            cell = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}
            cell |= {"id": f"extra-{len(notebook['cells'])}", "source": text}
            before = rest.removeprefix("before ")
            cells = notebook["cells"]
            place = cells.index(cell_of(notebook, before)) if before else len(cells)
            cells.insert(place, cell)
        elif what == "notebook":
            exec(text, {"nb": notebook, "cell_of": cell_of, "copy": copy})
        elif what == "folder":
            later.append(text)
        else:
            raise ValueError(f"{attack.path}: unknown section {kind!r}")
    path = hand_in(course, attack.student, notebook)
    for text in later:
        names = {"folder": path.parent, "notebook": path, "course": course.root, "os": os}
        exec(text, names | {"json": json, "nb": notebook})


def cell_of(notebook: dict, grade_id: str) -> dict:
    """Return the cell of that nbgrader id."""
    for cell in notebook["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("grade_id") == grade_id:
            return cell
    raise KeyError(grade_id)


def grade(course: Class) -> None:
    """Grade what was handed in, as the instructor of a large class would."""
    course.log = course.run("undertorch", "grade", CHAPTER, "--jobs", "2")


def grade_plainly(course: Class) -> None:
    """Grade what else was handed in with nbgrader's own command, and write everybody's feedback."""
    course.log += course.run("nbgrader", "autograde", CHAPTER)
    course.run("nbgrader", "generate_feedback", CHAPTER, "--force")
