"""No mistake of an author passes for done: each is told in one line, which says what mends it."""

import shutil
import sys

import pytest

from grader.building.build import build_chapter, install
from grader.building.graders import check_graders, ready_probes
from grader.building.resolve import unresolved
from grader.building.sources import source_of
from grader.building.stale import check_built
from grader.commands import main
from grader.course.course import AuthorError, Course
from grader.course.rules import parse_rule
from tests import ROOT

CHAPTER = "ch09_more"

SOURCE = '''
# %% [markdown] chapter="ch09_more"
# title: More
# summary: A chapter for the tests of what an author is told.

# %%
import torch

from grader import grade

# %% [markdown] exercise="halve"
# title: Halve
# minutes: 1
# difficulty: 1
# points: 4
# prerequisites: []
# teaches: division
# leaves out: the rest
# off limits: ["aten:squeeze"]


# %% solution="halve"
def halve(x: torch.Tensor) -> torch.Tensor:
    """Return half of `x`."""
    ### BEGIN SOLUTION
    return x / 2
    ### END SOLUTION


# %% grade="halve"
grade("halve")

# %% [markdown] exercise="twice"
# title: Twice
# minutes: 1
# difficulty: 1
# points: 4
# prerequisites: [halve]
# teaches: multiplication
# leaves out: the rest
# off limits: []

# %%
print(halve(torch.ones(1)).item())


# %% solution="twice"
def twice(x: torch.Tensor) -> torch.Tensor:
    """Return `x` twice."""
    ### BEGIN SOLUTION
    return x * 2
    ### END SOLUTION


# %% grade="twice"
grade("twice")
'''

PROBES = '''
from grader import probe


@probe
def halved(student, x):
    """Return what comes back."""
    return student.halve(x)


@probe
def doubled(student, x):
    """Return what comes back."""
    return student.twice(x)
'''

CHECKS = '''
"""Checks of `{name}`."""

import torch

from grader import assert_equal


def test_value({probe}):
    """Is right."""
    assert_equal({probe}.ask(torch.ones(1)).value.item(), {value}, "It is not.")
'''


FILES = {
    f"solutions/{CHAPTER}/more.pct.py": SOURCE,
    f"grader/{CHAPTER}/probes/__init__.py": '"""Probes."""\n',
    f"grader/{CHAPTER}/probes/more.py": PROBES,
    f"grader/{CHAPTER}/test_halve.py": CHECKS.format(name="halve", probe="halved", value=0.5),
    f"grader/{CHAPTER}/test_twice.py": CHECKS.format(name="twice", probe="doubled", value=2.0),
}

FILES[f"grader/{CHAPTER}/answers/halve.md"] = """## alternate: times_a_half
The same by the other operation.

```diff
- return x / 2
+ return x * 0.5
```
"""


def write(root):
    """Write a course of one chapter with two exercises."""
    for name, text in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (root / "chapters").mkdir()
    return Course(root)


@pytest.fixture(scope="module")
def once_built(tmp_path_factory):
    """The course, built; nothing was run."""
    course = write(tmp_path_factory.mktemp("more"))
    install(course, build_chapter(course, source_of(course, CHAPTER), run=False))
    return course


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The folder of the course that commands find."""
    monkeypatch.setenv("UNDERTORCH_COURSE", str(tmp_path / "course"))
    return tmp_path / "course"


@pytest.fixture
def course(here):
    """A course that was never built."""
    return write(here)


@pytest.fixture
def built(here, once_built):
    """A copy of one that was."""
    shutil.copytree(once_built.root, here)
    return Course(here)


def edit(course, old, new, name=f"solutions/{CHAPTER}/more.pct.py"):
    path = course.root / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def said(capsys, monkeypatch, *words):
    """Return what a command that was not done says, which is one line."""
    monkeypatch.setattr(sys, "argv", ["undertorch", *words])
    with pytest.raises(SystemExit) as ended:
        main.main()
    lines = capsys.readouterr().err.strip().split("\n")
    assert ended.value.code == 2
    assert len(lines) == 1 and lines[0].startswith("undertorch: "), lines
    return lines[0]


GRADE = '# %% grade="halve"\ngrade("halve")\n'
SOLUTION = SOURCE[SOURCE.index('# %% solution="halve"') : SOURCE.index(GRADE)]
BEGIN, END = "    ### BEGIN SOLUTION\n", "    ### END SOLUTION\n"
HALF = BEGIN + "    return x / 2\n" + END
TORN = BEGIN + "    return (\n" + END + "        x / 2\n    )\n"
ALL_CUT = (
    '# %% solution="halve"\n'
    + BEGIN.lstrip()
    + "def halve(x):\n    return x / 2\n"
    + END.lstrip()
    + "\n\n"
)

CARD, SECOND = '# %% [markdown] exercise="halve"', '# %% [markdown] exercise="twice"'
SITTING = '# %% [markdown] sitting="first"\n# question: What is a half?\n# reached: A part.\n\n'
CLASS = (
    '# %% solution="halve"\nclass halve:\n    """A class."""\n\n'
    "    ### BEGIN SOLUTION\n    def __init__(self):\n        pass\n\n    ### END SOLUTION\n\n\n"
)

WRONG = {
    "a sitting inside": (GRADE, SITTING + GRADE, r"py:30: the sitting first begins inside .* of halve"),
    "before the sitting": (SECOND, SITTING + SECOND, r"py:11: halve is in no sitting"),
    "an empty sitting": (CARD, SITTING + SITTING.replace("first", "b") + CARD, r"first has no exercise"),
    "no answer": (CARD, SITTING.replace("# reached: A part.\n", "") + CARD, r"`question` and `reached`"),
    "no address": (CARD, SITTING.replace("first", "First") + CARD, r"small letters"),
    "not short": ("# points: 4", "# points: 4\n# short: maybe", r"`short` is `true`, or is left out"),
    "a stub that raises": (SOLUTION, CLASS, r"py:22: .* raises when the cell is run.*first method"),
    "no grade cell": (GRADE, "", r'py:11: halve has no grade cell.*add `# %% grade="halve"`'),
    "no solution cell": (SOLUTION, "", r"py:11: halve has no solution cell.*### BEGIN SOLUTION"),
    "two grade cells": (GRADE, GRADE + "\n" + GRADE, r"py:33: a second grade cell of halve"),
    "two solution cells": (SOLUTION, SOLUTION * 2, r"py:30: a second solution cell of halve"),
    "grade cell first": (SOLUTION + GRADE, GRADE + "\n" + SOLUTION, r"py:22: .* comes before"),
    "two cards": ('exercise="twice"', 'exercise="halve"', r"py:33: a second card of halve"),
    "grades another": ('\ngrade("halve")', '\ngrade("twice")', r'grades twice. Write grade\("halve"\)'),
    "grades nothing": ('\ngrade("halve")', "\nhalve(1)", r'py:30: .* is to hold grade\("halve"\) alone'),
    "a cell elsewhere": (GRADE, GRADE.replace("halve", "twice"), r"twice stands below the card of halve"),
    "a name misspelt": ('solution="halve"', 'solution="halv"', r"halv has no card .*Is `halve` meant"),
    "a mark misspelt": ('# %% grade="halve"', '# %% grad="halve"', r"py:30: .*`grad`.*`grade` meant"),
    "no BEGIN": (BEGIN, "", r"py:22: .* has no ### BEGIN SOLUTION"),
    "no END": (END, "", r"the cell ends where ### END SOLUTION is due"),
    "two BEGINs": (BEGIN, BEGIN * 2, r"### BEGIN SOLUTION comes where ### END SOLUTION is due"),
    "two ENDs": (END, END * 2, r"### END SOLUTION comes where ### BEGIN SOLUTION is due"),
    "END first": (BEGIN, END + BEGIN, r"### END SOLUTION comes where ### BEGIN"),
    "marks elsewhere": ("import torch\n", f"import torch\n{BEGIN}", r"is no solution cell"),
    "all cut out": (SOLUTION, ALL_CUT, r"py:22: what students get .* defines no halve"),
    "no Python left": (HALF, TORN, r"py:22: without what stands between its marks"),
    "an unknown kind": ("aten:squeeze", "atem:squeeze", r"py:11: .*`atem:squeeze` is no rule"),
    "no such operator": ("aten:squeeze", "aten:squeezee", r"`aten:squeezee` names no operator .*`aten:squeeze` meant"),
    "no such function": ('"aten:squeeze"', "torch.Tensor.squeze", r"torch.Tensor has no squeze.*squeeze` meant"),
    "no such dtype": ("aten:squeeze", "cast:torch.float17", r"names no dtype of torch"),
    "no such module": ("aten:squeeze", "import:nunpy", r"names no module that is installed"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_source_is_neither_built_nor_proved(built, name):
    old, new, words = WRONG[name]
    edit(built, old, new)
    source = source_of(built, CHAPTER)
    with pytest.raises(AuthorError, match=words) as told:
        build_chapter(built, source, run=False)
    assert str(source) in str(told.value) and "\n" not in str(told.value)
    with pytest.raises(AuthorError) as again:
        check_built(built, built.chapter(CHAPTER))
    assert str(again.value) == str(told.value)


def test_a_second_sitting_of_one_name_is_refused(built):
    edit(built, CARD, SITTING + CARD)
    edit(built, SECOND, SITTING + SECOND)
    with pytest.raises(AuthorError, match=r"py:37: a second sitting first"):
        build_chapter(built, source_of(built, CHAPTER), run=False)


def test_a_whole_source_is_built_and_is_what_was_built(built):
    check_built(built, built.chapter(CHAPTER))
    check_graders(built.chapter(CHAPTER), built.chapter(CHAPTER).exercises)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("title: Halve", "title: Half", "the card of halve differs"),
        ("return x / 2", "return x * 0.5", "cell halve differs"),
        ("import torch", "import math\n\nimport torch", "cell start-2 differs"),
        ('exercise="twice"', 'exercise="double"', "double"),
    ],
)
def test_what_was_not_built_again_is_not_proved(built, capsys, monkeypatch, old, new, words):
    if "exercise=" in old:
        edit(built, '"twice"', '"double"')
        edit(built, 'solution="twice"', 'solution="double"')
        edit(built, 'grade="twice"', 'grade="double"')
        edit(built, 'grade("twice")', 'grade("double")')
        edit(built, "def twice", "def double")
    else:
        edit(built, old, new)
    told = said(capsys, monkeypatch, "validate", "halve")
    assert words in told and told.endswith(f"Run: undertorch build {CHAPTER}")


def test_what_students_get_is_looked_at_too(built, capsys, monkeypatch):
    edit(built, "Return half", "Return a half", f"chapters/{CHAPTER}/more.ipynb")
    check_built(
        built, built.chapter(CHAPTER)
    )  # a stub is nbgrader's work, and `build --check` looks
    edit(built, "import torch", "import  torch", f"chapters/{CHAPTER}/more.ipynb")
    assert "chapters/ch09_more/more.ipynb is not" in said(capsys, monkeypatch, "validate", "halve")


def test_an_exercise_that_is_not_built_yet_is_said_to_be(course, capsys, monkeypatch):
    for name, words in (("twice", "The card of twice"), (CHAPTER, CHAPTER)):
        told = said(capsys, monkeypatch, "validate", name)
        assert f"{words} is in more.pct.py and not built yet: undertorch build {CHAPTER}" in told
    assert "is called thrice" in said(capsys, monkeypatch, "validate", "thrice")


def test_a_slip_in_a_command_is_not_up_to_date(built, capsys, monkeypatch):
    assert "is called 'ch9_more'" in said(capsys, monkeypatch, "build", "ch9_more")
    assert "name the chapter" in said(capsys, monkeypatch, "build", "halve", "--no-run")


MORE = f"grader/{CHAPTER}/probes/more.py"
TEST = f"grader/{CHAPTER}/test_halve.py"
ANSWERS = f"grader/{CHAPTER}/answers/halve.md"
GRADERS = {
    "an answer of no known role": (ANSWERS, "alternate:", "alternat:", "halve.md.*alternat"),
    "an edit of what is not there": (ANSWERS, "x / 2", "x / 3", "halve.md.*x / 3"),
    "a parameter that is not the student": (MORE, "halved(student, x)", "halved(x)", "more.py:5: .*`student`"),
    "two probes of one name": (MORE, "def doubled(", "def halved(", "more.py:11: .* stands at .*more.py:5"),
    "probes that do not run": (MORE, "@probe", "@prob", "more.py:5: NameError: name 'prob'"),
    "probes that are no Python": (MORE, "student, x):", "student, x)", "more.py:6: expected ':'"),
    "an input changed that is none": (MORE, "@probe", "@probe(in_place=('y',))", "`in_place` names y"),
    "a check without a docstring": (TEST, '    """Is right."""\n', "", "test_halve.py:9: test_value needs a doc"),
    "checks that do not run": (TEST, "import torch", "import torhc", "test_halve.py: its import stops at line 4 with .*torhc"),
    "nothing that gives points": (TEST, "def test_", "def no_test_", "holds no checks that give points"),
}  # fmt: skip


@pytest.mark.parametrize("name", GRADERS)
def test_wrong_graders_are_told_before_anything_runs(built, capsys, monkeypatch, name):
    file, old, new, words = GRADERS[name]
    edit(built, old, new, file)
    chapter = built.chapter(CHAPTER)
    with pytest.raises(AuthorError, match=words) as told:
        check_graders(chapter, chapter.exercises)
    assert file.rpartition("/")[2] in str(told.value)
    assert said(capsys, monkeypatch, "validate", "halve") == f"undertorch: {told.value}"


def test_the_build_names_the_file_that_the_author_wrote(built, capsys, monkeypatch):
    edit(built, '    """Is right."""\n', "", TEST)
    assert str(built.root / TEST) in said(capsys, monkeypatch, "build", "halve")


def test_a_chapter_without_probes_or_checks_is_told(built, capsys, monkeypatch):
    (built.root / TEST).unlink()
    assert "test_halve.py is missing" in said(capsys, monkeypatch, "validate", CHAPTER)
    assert "test_halve.py is missing" in said(capsys, monkeypatch, "prove", CHAPTER)
    (built.root / MORE).unlink()
    assert "defines no probe" in said(capsys, monkeypatch, "validate", CHAPTER)
    (built.root / MORE).with_name("__init__.py").unlink()
    with pytest.raises(AuthorError, match="there are no probes at"):
        ready_probes(built.chapter(CHAPTER))


def test_a_torn_notebook_is_told(built, capsys, monkeypatch):
    (built.root / f"chapters/{CHAPTER}/more.ipynb").write_text("{")
    assert "is no notebook" in said(capsys, monkeypatch, "validate", CHAPTER)


def test_a_probe_in_a_cell_may_be_run_again():
    cell = compile("@probe\ndef halved(student):\n    return 1\n", "<a cell>", "exec")
    names = {}
    exec("from grader import probe", names)
    for _ in range(2):
        exec(cell, names)


@pytest.mark.parametrize("rule", ["aten:numpy_T", "import:torchvision", "torch.ops.quantized", "torch.float16", "math.fsum"])  # fmt: skip
def test_a_rule_that_names_something(rule):
    assert not unresolved(parse_rule(rule))


@pytest.mark.parametrize("rule", ["aten:squeeze.dimension", "import:concurrent.futures", "torch.ops.qantized", "fsum", "nomodule.fsum"])  # fmt: skip
def test_a_rule_that_forbids_nothing(rule):
    assert unresolved(parse_rule(rule))


def test_every_rule_of_the_course_names_something():
    rules = {
        rule
        for chapter in Course(ROOT).chapters()
        for exercise in chapter.exercises
        for rule in exercise.off_limits
    }
    assert not [wrong for rule in sorted(rules) if (wrong := unresolved(rule))]
