"""Known answers are read from documents; each way to write one wrongly says what to do."""

import json
import re
from dataclasses import replace

import pytest

from grader.building.source import read_source
from grader.course.answers import AnswersError, Role, read_answers
from grader.course.course import Chapter, Course, CourseError
from grader.course.parameters import all_values
from grader.course.reference import reference_answer
from tests import ROOT

STUB = "def scaled(x):\n    raise NotImplementedError\n"
CARD = {
    "title": "Scaled",
    "points": 1,
    "minutes": 1,
    "difficulty": 1,
    "prerequisites": [],
    "teaches": "",
    "leaves_out": "",
    "off_limits": [],
    "parameters": {"factor": {"public": 2, "among": [3, 5], "says": "{{factor}} times"}},
}
SOURCE = """\
# %% solution="scaled"
def scaled(x):
    ### BEGIN SOLUTION
    #: if factor == 5
    return x * 10 / 2
    #: else
    return x * {{factor}}
    #: endif
    ### END SOLUTION


# %% grade="scaled"
grade("scaled")
"""
PUBLIC = "def scaled(x):\n    ### BEGIN SOLUTION\n    return x * 2\n    ### END SOLUTION\n"

ADDS = """\
## mistake: adds
You added {{factor}}.
It should be times.

```diff
- return x * {{factor}}
+ return x + {{factor}}
```
"""
WHOLE = """\
## alternate: by_a_loop
Adds up.

```python
def scaled(x):
    result = 0
    for _ in range({{factor}}):
        result = result + x
    return result
```
"""


class Small:
    """A chapter with one exercise, `scaled`, and its known answers as a test writes them."""

    def __init__(self, root):
        self.root = root
        self.chapter = Chapter(root, "ch01_small")
        for folder, text, more in (("chapters", STUB, {}), ("solutions", PUBLIC, {})):
            self.notebook(root / folder, text, more)
        (root / "solutions" / "ch01_small" / "small.pct.py").write_text(SOURCE)
        self.file = self.chapter.answers("scaled")
        self.file.parent.mkdir(parents=True)

    @staticmethod
    def notebook(folder, text, more):
        cell = {
            "cell_type": "code",
            "source": text,
            "metadata": {
                "nbgrader": {"grade_id": "scaled", "solution": True, "grade": False},
                "undertorch": {**CARD, **more},
            },
        }
        path = folder / "ch01_small" / "small.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"cells": [cell], "metadata": {}}))

    def read(self, text, **values):
        self.file.write_text(text)
        exercise = self.chapter.exercise("scaled")
        return read_answers(self.chapter, replace(exercise, values=values or exercise.values))

    def refused(self, text, **values):
        with pytest.raises(AnswersError) as refusal:
            self.read(text, **values)
        return str(refusal.value).removeprefix("grader/ch01_small/answers/scaled.md, ")


@pytest.fixture
def small(tmp_path):
    return Small(tmp_path)


def returned(answer):
    """Return what an answer's program returns for 7."""
    names = {}
    exec(answer.source, names)
    return names["scaled"](7)


def test_answers_come_in_order_with_their_words(small):
    adds, loop = small.read(ADDS + "\n" + WHOLE)
    assert (adds.role, adds.name) == (Role.MISTAKE, "adds")
    assert adds.explanation == "You added 2. It should be times."
    assert adds.source == "def scaled(x):\n    return x + 2\n"
    assert (loop.role, loop.name, returned(loop)) == (Role.ALTERNATE, "by_a_loop", 14)


def test_no_file_no_answers(small):
    assert read_answers(small.chapter, small.chapter.exercise("scaled")) == ()


def test_the_base_has_the_values_of_the_variant(small):
    (adds,) = small.read(ADDS, factor=3)  # made from the source: the notebook is of another variant
    assert adds.source == "def scaled(x):\n    return x + 3\n"
    assert adds.explanation == "You added 3. It should be times."
    assert (
        'stands nowhere in the reference (nearest, line 3: "return x * 10 / 2")'
        in small.refused(ADDS, factor=5)
    )


def test_the_reference_notebook_of_a_private_course_is_enough(small):
    small.notebook(
        small.root / "solutions",
        PUBLIC.replace("* 2", "* 3"),
        {"variant": {"factor": 3}, "public_answer": PUBLIC},
    )
    (small.root / "solutions/ch01_small/small.pct.py").unlink()
    assert small.read(ADDS, factor=3)[0].source.endswith("x + 3\n")
    assert small.read(ADDS, factor=2)[0].source.endswith("x + 2\n")
    with pytest.raises(CourseError, match="has no source"):
        small.read(ADDS, factor=5)


def test_edits_are_of_the_graders_own_reference(small, tmp_path):
    taken = tmp_path / "taken"
    small.notebook(taken / "release", STUB, {})
    small.notebook(taken / "source", PUBLIC.replace("x * 2", "2 * x  # as I would write it"), {})
    chapter = Chapter(taken, "ch01_small", small.root)
    small.file.write_text(ADDS)
    assert read_answers(chapter, chapter.exercise("scaled"))[0].source.endswith("x + 2\n")


def test_an_edit_of_a_whole_program_of_the_file(small):
    once = (
        "## mistake: once_too_many, from by_a_loop\nYou began with `x`.\n\n"
        "```diff\n- result = 0\n+ result = x\n```\n"
    )
    assert returned(small.read(once + "\n" + WHOLE)[0]) == 21
    assert small.refused(once) == (
        "mistake once_too_many: no whole program of this file is called by_a_loop (there are: none)."
    )
    again = once.replace("once_too_many, from by_a_loop", "again, from once_too_many")
    assert small.refused("\n".join([WHOLE, once, again])) == (
        "mistake again: once_too_many is an edit itself: name a whole program, or leave out `, from`."
    )


def test_a_condition_on_the_values(small):
    text = ADDS.replace("adds\n", "adds if factor < 3\n")
    assert len(small.read(text)) == 1 and small.read(text, factor=3) == ()
    assert "`if facto < 3` cannot be told" in small.refused(text.replace("if factor", "if facto"))


@pytest.mark.parametrize(
    ("new", "old", "said"),
    [
        (
            "## mistakes: adds",
            "## mistake: adds",
            "line 1: '## mistakes: adds' is no header. Write",
        ),
        ("# mistake: adds", "## mistake: adds", "line 1: '# mistake: adds' is no header."),
        ("", "## mistake: adds\n", "line 1: write a header above this: `## mistake: name`"),
        ("", "You added {{factor}}.\nIt should be times.\n", "mistake adds: write its explanation"),
        ("```", "```diff", "line 5: '```' is neither ```diff nor ```python: write one of them."),
        ("", "\n```\n", "line 5: close this block with a line ```."),
        ("```\n\nMore.\n", "```\n", "line 10: mistake adds has its block already."),
        ("+ return x +", "+ return x + {{factor}}", "mistake adds: its program is no Python: "),
        ("+ return (x * 2)", "+ return x + {{factor}}", "mistake adds: it changes nothing: write"),
        ("+ return {{facto}}", "+ return x + {{factor}}", "mistake adds: a {{…}} cannot be filled"),
        (
            "- return y *",
            "- return x *",
            'mistake adds: "return y * 2" stands nowhere in the refer',
        ),
        (
            "- def scaled(x):\n+ def scale(x):",
            "- return x * {{factor}}\n+ return x + {{factor}}",
            "mistake adds: its program does not define scaled: define it, or correct its name.",
        ),
        ("adds, from adds", "adds", "mistake adds: adds is an edit itself"),
    ],
)
def test_what_is_written_wrongly_says_what_to_do(small, new, old, said):
    assert old in ADDS
    above, _, below = ADDS.rpartition(old)
    assert small.refused(above + new + below).startswith(said)


def test_a_section_without_a_block(small):
    assert small.refused("## mistake: adds\nYou added.\n\n" + WHOLE) == (
        "mistake adds: write its ```diff or ```python block."
    )


def test_a_whole_program_that_is_from_another(small):
    assert "remove `, from other` from its header" in small.refused(
        WHOLE.replace("by_a_loop", "by_a_loop, from other")
    )


@pytest.mark.parametrize("chapter", Course(ROOT).chapters(), ids=lambda chapter: chapter.id)
def test_each_answer_of_a_chapter_reads(chapter):
    """For the public values and for every private variant; and each is read for some of them."""
    for exercise in chapter.exercises:
        text = chapter.answers(exercise.id).read_text(encoding="utf-8")
        written = re.findall(r"^## (?:blocked|mistake|alternate): (\w+)", text, re.MULTILINE)
        found = set()
        for values in (exercise.values, *all_values(exercise.parameters)):
            answers = read_answers(chapter, replace(exercise, values=values))
            assert len(answers) > 4
            found |= {answer.name for answer in answers}
        assert found == set(written), exercise.id


def test_a_variants_reference_is_what_would_be_built():
    for chapter in Course(ROOT).chapters():
        variant = {
            e.id: list(all_values(e.parameters))[-1] for e in chapter.exercises if e.parameters
        }
        for name, values in variant.items():
            (source,) = (ROOT / "solutions" / chapter.id).glob("*.pct.py")
            built = [
                cell.source
                for cell in read_source(source, variant).cells
                if cell.metadata.get("nbgrader", {}).get("grade_id") == name
            ]
            assert built == [
                reference_answer(chapter, replace(chapter.exercise(name), values=values))
            ]
