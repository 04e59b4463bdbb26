"""Answers that somebody tried: the files that keep them, and what is said of a wrong one."""

import json

import pytest

from grader.course.course import Course
from grader.course.tried import Kind, Tried, TriedError, read_lines, read_tried
from tests import ROOT

COURSE = Course(ROOT)
ONE = Tried(
    "ch01_formats", "decode", Kind.WRONG, "zero", "Says 0.", "def decode(*args):\n    return 0\n"
)


class Kept:
    """A chapter whose graders lie in `folder`."""

    id = "ch01_formats"

    def __init__(self, folder):
        self.graders = folder


@pytest.fixture
def read(tmp_path):
    def reading(text):
        (tmp_path / "tried").mkdir(exist_ok=True)
        (tmp_path / "tried" / "decode.md").write_text(text)
        return read_tried(Kept(tmp_path), COURSE.chapter("ch01_formats").exercise("decode"))

    return reading


@pytest.mark.parametrize("chapter", COURSE.chapters(), ids=lambda chapter: chapter.id)
def test_the_files_of_a_chapter_are_read_and_belong_to_exercises(chapter):
    exercises = {exercise.id: exercise for exercise in chapter.exercises}
    files = sorted((chapter.graders / "tried").glob("*"))
    assert files
    for path in files:
        found = read_tried(chapter, exercises[path.stem])
        assert found
        for one in found:
            compile(one.source, one.name, "exec")


def test_an_exercise_without_a_file_has_none(tmp_path):
    assert read_tried(Kept(tmp_path), COURSE.chapter("ch01_formats").exercise("decode")) == ()


def test_what_is_written_is_read(read):
    other = Tried(
        "ch01_formats", "decode", Kind.CHEAT, "other", "`x`, by\ttabs", "# a\n\n\nx = 1\n"
    )
    written = (
        "## wrong: zero\nSays 0.\n\n```python\ndef decode(*args):\n    return 0\n```\n\n"
        "## cheat: other\n`x`, by\ttabs\n\n```python\n# a\n\n\nx = 1\n```\n"
    )
    assert read(written) == (ONE, other)


BLOCK = "```python\nx = 1\n```\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("## mistake: a\nWhy.\n" + BLOCK, "line 1: '## mistake: a' begins no answer. Write"),
        ("Why.\n" + BLOCK, "line 1: 'Why.' begins no answer. Write"),
        ("## wrong: a\n" + BLOCK, "line 2: write `## right: name`"),
        (BLOCK, "line 1: write `## right: name`"),
        ("## wrong: a\nWhy.\n", "a has no program. Write its ```python block."),
        ("## wrong: a\nWhy.\n## wrong: b\n", "line 3: write the ```python block of a above this."),
        ("## wrong: a\nWhy.\n```diff\n", "line 3: write the ```python block of a above this."),
        ("## wrong: a\nWhy.\n```python\nx = 1\n", "line 3: close this block with a line ```."),
        (f"## wrong: a\nWhy.\n{BLOCK}## right: a\nWhy.\n{BLOCK}", "two answers are called a."),
    ],
)
def test_a_malformed_document(read, text, said):
    with pytest.raises(TriedError) as error:
        read(text)
    assert str(error.value).startswith("grader/ch01_formats/tried/decode.md")
    assert said in str(error.value)


def line(**changed):
    data = {"chapter": "ch01_formats", "exercise": "decode", "kind": "wrong", "name": "zero"}
    data |= {"why": ONE.why, "source": ONE.source, "verdict": {"further": "keys"}} | changed
    return json.dumps({key: value for key, value in data.items() if value is not None})


def test_lines_are_read(tmp_path):
    path = tmp_path / "some.jsonl"
    path.write_text(f"{line()}\n\n{line(kind='right', name='two')}\n")
    first, second = read_lines(path, COURSE)
    assert first == ONE and second.kind is Kind.RIGHT


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "line 2 is no JSON ("),
        ("[1]", "line 2 is no JSON object. Write one with the keys chapter, exercise, kind"),
        (line(why=None), "line 2: the key 'why' is missing or no text. Write it as a string."),
        (line(source=["x = 1"]), "line 2: the key 'source' is missing or no text."),
        (line(kind="odd"), "line 2: 'odd' is no kind of answer. Write one of right, wrong, cheat."),
        (
            line(exercise="encode"),
            "line 2: there is no exercise 'encode' in a chapter 'ch01_formats'",
        ),
        (line(chapter="ch99"), "Correct `chapter` or `exercise`."),
    ],
)
def test_a_malformed_line(tmp_path, text, said):
    path = tmp_path / "some.jsonl"
    path.write_text(f"{line()}\n{text}\n")
    with pytest.raises(TriedError) as error:
        read_lines(path, COURSE)
    assert str(path) in str(error.value) and said in str(error.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(TriedError, match="cannot be read"):
        read_lines(tmp_path / "none.jsonl", COURSE)
