"""A chapter's pages for reading: what stands on which, what was measured, what is gone."""

import re

import markdown
import nbformat
import pytest

from grader.building import predictions
from grader.building.anchors import Anchors
from grader.building.build import build_chapter, differing, install, never_run
from grader.building.page import bars_in_tables
from grader.building.predictions import asked_in, measured
from grader.building.sources import source_of
from tests.building.test_sittings import FIRST, LATER
from tests.building.test_source_errors import CARD, CHAPTER, SECOND, write

GUESS = """# %% [markdown]
# ## Halves
#
# Some prose.
#
# **Predict.** What is half of three?


# %%
def half():
    return 3 / 2


predict(..., half)

# %% [markdown]
# Another sentence.
#
# **Write `halve(x)`.** Return half of `x`.
#
# <details><summary>Hint 1: one sign</summary>
#
# Divide.
#
# </details>


# %% solution="halve"
"""


@pytest.fixture
def course(tmp_path):
    """A course of a chapter with two sittings and a prediction; not built."""
    course = write(tmp_path / "course")
    source = source_of(course, CHAPTER)
    text = source.read_text().replace(CARD, FIRST + CARD).replace(SECOND, LATER + SECOND)
    source.write_text(text.replace('# %% solution="halve"\n', GUESS, 1))
    return course


def built(course):
    """Build without a run; return the pages that are there by then, by their names."""
    install(course, build_chapter(course, source_of(course, CHAPTER), run=False))
    folder = course.root / "site/chapters"
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*.md")}


def test_a_page_for_each_sitting_and_an_overview_that_leads_to_them(course):
    pages = built(course)
    assert set(pages) == {
        f"{CHAPTER}.md", *(f"{CHAPTER}/{name}.md" for name in ("parts", "wholes", "solutions"))
    }  # fmt: skip
    overview = pages[f"{CHAPTER}.md"]
    for name, anchor in (("parts", "halve"), ("parts", "halves"), ("wholes", "twice")):
        assert f"({CHAPTER}/{name}.md#{anchor}){{ #{anchor} .ut-moved }}" in overview
    assert f"]({CHAPTER}/parts.md){{ #sitting-parts .ut-moved }}" in overview
    assert 'title: "Chapter 9: More"' in overview and "2 exercises" in overview
    first = pages[f"{CHAPTER}/parts.md"]
    assert 'title: "What is a half?"\ndescription: "One of two."' in first
    assert "**The answer.** One of two." in first and "[What is twice a half?](wholes.md)" in first
    assert "end of the chapter" in pages[f"{CHAPTER}/wholes.md"]


def test_an_exercise_is_one_panel_and_its_solution_stands_elsewhere(course):
    pages = built(course)
    page = pages[f"{CHAPTER}/parts.md"]
    assert "## Halve { #halve }" in page
    prose, _, panel = page.partition('<details class="ut-exercise" markdown="1">')
    assert "Another sentence." in prose and "**Write" not in prose
    for part in (
        "**Write `halve(x)`.**",
        "Hint 1",
        "*Off limits:*",
        "[A solution](solutions.md#halve)",
    ):
        assert part in panel
    for none in ("grade(", "NotImplementedError", "SOLUTION", "x / 2", "predict("):
        assert none not in page
    solutions = pages[f"{CHAPTER}/solutions.md"]
    assert "return x / 2" in solutions and "SOLUTION\n" not in solutions
    assert "search:\n  exclude: true" in solutions and "(parts.md#halve)" in solutions


def test_a_prediction_is_a_card_that_says_what_was_measured(course):
    page = built(course)[f"{CHAPTER}/parts.md"]
    assert "not measured yet" in page
    notebook = nbformat.read(course.root / f"solutions/{CHAPTER}/more.ipynb", as_version=4)
    (cell,) = [cell for cell in notebook.cells if asked_in(cell)]
    kept = course.root / predictions.FOLDER / f"{CHAPTER}.json"
    kept.parent.mkdir()
    kept.write_text(predictions.written(notebook, {cell.id: "1.5 < 2"}))
    page = built(course)[f"{CHAPTER}/parts.md"]
    card = re.search(r'<div class="ut-predict".*?</div>', page, re.DOTALL)[0]
    assert "**Predict.** What is half of three?" in card and "def half():" in card
    assert 'data-is="1.5 &lt; 2"' in card and "<code>1.5 &lt; 2</code>" in card and "half()" in card
    source = source_of(course, CHAPTER)
    measured_all = never_run(build_chapter(course, source, run=False))
    source.write_text(source.read_text().replace("return 3 / 2", "return 3 / 4"))
    assert "not measured yet" in built(course)[f"{CHAPTER}/parts.md"]
    assert never_run(build_chapter(course, source, run=False)) == measured_all + 1


def test_a_prediction_in_the_middle_of_a_paragraph_begins_its_card_there(course):
    source = source_of(course, CHAPTER)
    source.write_text(
        source.read_text().replace("prose.\n#\n# **Predict.**", "prose. **Predict.**")
    )
    page = built(course)[f"{CHAPTER}/parts.md"]
    prose, _, card = page.partition('<div class="ut-predict"')
    assert prose.rstrip().endswith("Some prose.")
    assert "## Halves" in prose and "**Predict.** What is half of three?" in card


def test_a_page_whose_sitting_is_gone_goes_too(course):
    built(course)
    source = source_of(course, CHAPTER)
    source.write_text(source.read_text().replace('sitting="wholes"', 'sitting="all"'))
    again = build_chapter(course, source, run=False)
    assert {path.name for path in differing(course, again)} >= {"wholes.md", "all.md"}
    assert f"{CHAPTER}/wholes.md" not in built(course)


def test_a_chapter_without_sittings_is_one_page(tmp_path):
    pages = built(write(tmp_path / "course"))
    assert set(pages) == {f"{CHAPTER}.md", f"{CHAPTER}/solutions.md"}
    assert f"[A solution]({CHAPTER}/solutions.md#halve)" in pages[f"{CHAPTER}.md"]
    assert f"(../{CHAPTER}.md#halve)" in pages[f"{CHAPTER}/solutions.md"]


def test_a_heading_keeps_the_anchor_that_it_had_on_one_page():
    anchors = Anchors.besides("More", ["halve"])
    first, _ = anchors.mark("## One thing\n\n```\n## no heading\n```\n\n### More")
    second, found = anchors.mark("## One thing")
    assert first == "## One thing\n\n```\n## no heading\n```\n\n### More { #more_1 }"
    assert second == "## One thing { #one-thing_1 }" and found[0].anchor == "one-thing_1"


def test_a_bar_in_code_in_a_table_has_no_backslash_on_the_site():
    """Python-Markdown would show it; JupyterLab needs it."""
    prose = "Say `a\\|b`.\n\n| `T(a\\|b)` | a \\| b |\n|---|---|\n| `c` | `d\\|e` |"
    row = r"| `T(a|b)` | a \| b |"
    assert bars_in_tables(prose) == f"Say `a\\|b`.\n\n{row}\n|---|---|\n| `c` | `d|e` |"
    shown = markdown.markdown(bars_in_tables(prose), extensions=["tables"])
    assert "<code>T(a|b)</code>" in shown and "<code>d|e</code>" in shown


def cells_of(*sources):
    """Return a notebook of these code cells; their ids are a, b, c, …"""
    cells = [
        nbformat.v4.new_code_cell(source, id=chr(ord("a") + place))
        for place, source in enumerate(sources)
    ]
    return nbformat.v4.new_notebook(cells=cells)


def test_what_a_cell_asks_to_predict():
    cells = cells_of(
        "x = 1\npredict(..., lambda: x + 1)",
        "predict(\n    ...,\n    lambda: (\n        1 + 2\n    ),\n)",
        "predict(..., what)",
        "from grader import predict",
        "print(predict(..., 2))",
    ).cells
    asked = [asked_in(cell) for cell in cells]
    assert (asked[0].before, asked[0].runs) == ("x = 1", "x + 1")
    assert asked[1].runs == "1 + 2" and asked[2].runs == "what()"
    assert asked[3:] == [None, None]


def test_a_measurement_shows_what_a_guess_would_be_compared_with(tmp_path):
    notebook = cells_of(
        "from grader import predict\nx = [1]",
        "predict(..., lambda: x)",
        "x.append(2)\npredict(..., lambda: 'a\\'b')",
    )
    assert measured(notebook, tmp_path, tmp_path, tmp_path / "more.pct.py") == {
        "b": "[1]",
        "c": "a'b",
    }
