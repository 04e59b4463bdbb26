"""A private variant, from its secret to verdicts in a box, in a terminal and in a kernel."""

import json
import sys

import nbformat
import pytest

from grader.building.source import read_source
from grader.building.variants import drawn
from grader.course.course import AuthorError, Course
from grader.proving.validate import MISTAKES, prove
from grader.student.live import grade
from tests.scale.course import CHAPTER
from tests.student.conftest import undertorch
from tests.variants.course import SOURCE, Private, Public

SECRET = "0123456789abcdef0123456789abcdef"
PUBLIC = "def double(x):\n    return x / (1 / 2)\n"


@pytest.fixture(scope="module")
def public(tmp_path_factory):
    return Public(tmp_path_factory.mktemp("public"))


@pytest.fixture(scope="module")
def private(public, tmp_path_factory):
    folder = tmp_path_factory.mktemp("private")
    (folder / "secret").write_text(SECRET + "\n")
    said = run(public, "variants", CHAPTER, "--secret", folder / "secret", "--out", folder / "c")
    assert "double" in said and "factor=" in said
    return Private(folder / "c")


@pytest.fixture(scope="module")
def factor(private):
    """The factor of the private course."""
    (exercise,) = Course(private.root).chapter(CHAPTER).exercises
    assert exercise.variant == exercise.values and exercise.values["factor"] in (3, 5)
    return exercise.values["factor"]


def run(course, *command, status=0):
    """Run `undertorch` in a course; return what it said."""
    ended, said, _ = undertorch(*map(str, command), UNDERTORCH_COURSE=str(course.root))
    assert ended == status, said
    return said


def cells(course, folder="chapters"):
    path = course.root / folder / CHAPTER / f"{CHAPTER}.ipynb"
    return {cell.id: cell for cell in nbformat.read(path, as_version=4).cells}


def test_all_texts_follow(public, private, factor):
    mine, theirs = cells(private), cells(public)
    assert mine["double-grade"].source == f'grade("double", factor={factor})'
    assert theirs["double-grade"].source == 'grade("double")'
    assert f"Return {factor} times `x`." in mine["double-1"].source + mine["double-2"].source
    assert f"Return {factor} times `x`." in mine["double"].source
    assert "SOLUTION" not in mine["double"].source
    assert f"x / (1 / {factor})" in cells(private, "solutions")["double"].source
    assert "{{" not in "".join(cell.source for cell in [*mine.values(), *theirs.values()])
    assert ("sin" in mine["double-card"].source) == (factor == 5)
    assert list(mine) == list(theirs)


def test_neither_secret_nor_solution_is_in_the_released_notebook(private):
    (text,) = [path.read_text() for path in (private.root / "chapters").glob("*/*.ipynb")]
    assert SECRET not in text
    assert "1 / 2" not in text and "public_answer" not in text and "SOLUTION" not in text


def test_the_same_secret_gives_the_same_course(public, private, tmp_path):
    secret = private.root.parent / "secret"
    words = ["variants", CHAPTER, "--secret", secret, "--out", private.root]
    assert "is up to date" in run(public, *words)
    assert json.loads(run(public, *words, "--json"))["changed"] == []


def test_every_variant_proves_itself(public, private):
    said = run(public, "validate", "double", "--all-variants", status=1)
    assert "double (factor=3)" in said and "double (factor=5)" in said
    # nothing else is wrong than what this tiny exercise leaves out
    assert f"has fewer than {MISTAKES} mistakes" in said and "has no alternate" in said
    assert said.count("mend:") == 2 * 3, said  # and no blocked answer
    chapter = Course(private.root).chapter(CHAPTER)
    proof = prove(chapter, chapter.exercise("double"), 1)
    assert (proof.mistakes, len(proof.problems)) == (3, 3)


def test_in_the_box(public, private, factor):
    private.hand_in("ada", {"double": PUBLIC.replace("2", str(factor))})
    private.hand_in("bea", {"double": PUBLIC})
    private.hand_in("cy", {})
    other = private.root / f"submitted/dan/{CHAPTER}/{CHAPTER}.ipynb"
    other.parent.mkdir(parents=True)
    notebook = nbformat.read(public.root / f"chapters/{CHAPTER}/{CHAPTER}.ipynb", as_version=4)
    for cell in notebook.cells:
        cell.source = PUBLIC if cell.id == "double" else cell.source
    nbformat.write(notebook, other)
    private.run("undertorch", "grade", CHAPTER, "--jobs", "1")
    names = ("ada", "bea", "cy", "dan")
    assert [private.scores()[name, "double-grade"] for name in names] == [4, 0, 0, 0]
    ada, bea, cy, dan = (private.verdicts(name)["double"] for name in names)
    assert ada["checks"][0]["rubric"] == f"Is {factor} times the input."
    words = f"the public exercise: yours asks for a factor of {factor}, not a factor of 2."
    assert words in bea["diagnosis"] and bea["mistake"] == "public_answer"
    assert cy["outcome"] == "not attempted"
    assert not ada["review"] and not bea["review"] and not ada["notes"]
    assert "another variant of the exercise (public)" in dan["review"]
    assert f"what this course asks for: a factor of {factor}." in str(dan["notes"])
    assert words in dan["diagnosis"]


def test_in_a_terminal_beside_the_public_course(public, private, factor, tmp_path):
    notebook = nbformat.read(private.root / f"chapters/{CHAPTER}/{CHAPTER}.ipynb", as_version=4)
    path = tmp_path / f"{CHAPTER}.ipynb"

    def check(source, status):
        for cell in notebook.cells:
            cell.source = source if cell.id == "double" else cell.source
        nbformat.write(notebook, path)
        return run(public, "check", path, status=status)

    assert "4 of 4 points" in check(PUBLIC.replace("2", str(factor)), 0)
    assert "the public exercise" in check(PUBLIC, 1)
    stub = cells(private)["double"].source
    assert "not attempted" in check(stub, 1)
    for cell in notebook.cells:
        if cell.id == "double-grade":
            cell.source = 'grade("double", factor=17)'
    assert "does not know your variant of double" in check(PUBLIC, 2)


def test_update_and_reset_leave_it_alone(public, private, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / f"my/{CHAPTER}/{CHAPTER}.ipynb"
    path.parent.mkdir(parents=True)
    before = (private.root / f"chapters/{CHAPTER}/{CHAPTER}.ipynb").read_bytes()
    path.write_bytes(before)
    for words, status in ((["update"], 2), (["reset", "double"], 2)):
        assert "another variant" in run(public, *words, status=status)
    assert path.read_bytes() == before


def test_in_a_kernel_beside_the_public_course(public, factor, monkeypatch, capsys):
    monkeypatch.setenv("UNDERTORCH_COURSE", str(public.root))
    main = vars(sys.modules["__main__"])
    for source, points in ((PUBLIC.replace("2", str(factor)), 4.0), (PUBLIC, 0.0)):
        exec(compile(source, "<a cell>", "exec"), main)
        assert grade("double", factor=factor).text == str(points)
    assert grade("double").text == "4.0"
    assert grade("double", factor=17).text == "0.0"
    assert "does not know your variant" in capsys.readouterr().out
    monkeypatch.delitem(main, "double")


def test_another_secret_does_not_replace_what_students_have(public, private, tmp_path):
    before = private.files("chapters")
    chapter = Course(public.root).chapter(CHAPTER)
    mine = drawn(chapter, SECRET.encode())
    secret = next(
        text for text in (f"{n:016}" for n in range(99)) if drawn(chapter, text.encode()) != mine
    )
    (tmp_path / "secret").write_text(secret)
    words = ["variants", CHAPTER, "--secret", tmp_path / "secret", "--out", private.root]
    assert "students may have by now" in run(public, *words, status=2)
    assert private.files("chapters") == before


def test_bad_calls(public, private, tmp_path):
    secret, short = private.root.parent / "secret", tmp_path / "short"
    short.write_text("abc")
    for words, said in (
        (["--secret", tmp_path / "no", "--out", tmp_path / "c"], "openssl rand -hex 32"),
        (["--secret", short, "--out", tmp_path / "c"], "under 16 bytes"),
        (["--secret", secret, "--out", public.root], "holds the public course"),
    ):
        assert said in run(public, "variants", CHAPTER, *words, status=2)
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("among: [3, 5]", "among: [2, 5]", "wrong parameters: `among` of factor holds the public"),
        ("Return {{factor}} times `x`.\n", "Return {{faktor}}\n", "'faktor' is undefined"),
        ("factor: {public: 2", "f-g: {public: 2", "no Python name"),
    ],
)
def test_a_wrong_source_says_where(tmp_path, old, new, words):
    path = tmp_path / "tiny.pct.py"
    path.write_text(SOURCE.replace(old, new))
    with pytest.raises(AuthorError, match=words):
        read_source(path)
