"""A chapter's sittings: read from its source, shown in its notebook, and counted anew when it is cut."""

from grader.building.source import read_source
from grader.course.course import Chapter, Course, exercises_in, sittings_in
from grader.course.exercise import short_path
from grader.instructor.cut import cut
from grader.proving.validate import pacing
from tests import ROOT
from tests.building.test_source_errors import CARD, SECOND, SOURCE

FIRST = """# %% [markdown] sitting="parts"
# question: What is a half?
# reached: One of two.

"""
LATER = FIRST.replace("parts", "wholes").replace("a half", "twice a half")


def chapter_of(tmp_path, *edits):
    """Return the notebook of the source with these edits."""
    text = SOURCE.replace(CARD, FIRST + CARD).replace(SECOND, LATER + SECOND)
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / "more.pct.py"
    path.write_text(text)
    return read_source(path)


def test_where_each_begins_and_where_one_may_stop(tmp_path):
    notebook = chapter_of(tmp_path, ("# minutes: 1", "# minutes: 70"))
    names = [cell.id for cell in notebook.cells]
    assert names[names.index("title") + 1] == "overview" and names[-1] == "progress"
    marks = ["sitting-parts", "halve-grade", "sitting-parts-end", "sitting-wholes", "twice-grade"]
    assert [name for name in names if name in marks] == marks
    texts = {cell.id: cell.source for cell in notebook.cells}
    assert "**2 exercises, about 2¼ hours, in 2 sittings.**" in texts["overview"]
    assert texts["sitting-wholes"].startswith("# 2. What is twice a half?\n")
    assert "Next, in 70 minutes: *What is twice a half?*" in texts["sitting-parts-end"]
    assert texts["sitting-wholes-end"].endswith("the end of the chapter.")
    assert texts["progress"].endswith('progress("ch09_more")')
    exercises = exercises_in(notebook, "ch09_more")
    assert [one.sitting for one in exercises] == ["parts", "wholes"]
    assert [one.minutes for one in sittings_in(notebook, exercises)] == [70, 70]


def test_a_chapter_cut_to_its_short_path():
    chapter = Course(ROOT).chapter("ch03_matmul")
    short = {exercise.id: exercise.points for exercise in short_path(chapter.exercises)}
    parts = cut(chapter, short)
    assert not parts.missing  # the short path builds on nothing else
    exercises = exercises_in(parts.notebook, chapter.id)
    sittings = sittings_in(parts.notebook, exercises)
    assert [exercise.id for one in sittings for exercise in one.exercises] == list(short)
    texts = {cell["id"]: "".join(cell["source"]) for cell in parts.notebook["cells"]}
    openings = [name for name in texts if name.startswith("sitting-") and not name.endswith("-end")]
    assert openings == [f"sitting-{one.id}" for one in sittings]
    assert f"sitting 1 of {len(sittings)}" in texts[openings[0]]
    assert "★" not in texts["overview"]  # all of it is


class Declared(Chapter):
    """A chapter whose notebook was never released."""

    def __init__(self, notebook):
        super().__init__(ROOT, "ch09_more")
        self.__dict__.update(notebook=notebook, released=ROOT / "chapters/ch09_more/more.ipynb")


def test_what_is_wrong_with_a_chapters_pace(tmp_path):
    short = (
        "# points: 4\n# prerequisites: [halve]",
        "# points: 4\n# short: true\n# prerequisites: [halve]",
    )
    found = [str(problem) for problem in pacing(Declared(chapter_of(tmp_path, short)))]
    assert "sitting parts: takes 1 minutes, not 60 to 90" in found[0]
    assert "sitting wholes" in found[1] and "short path: takes 1 minutes" in found[2]
    assert "twice: is on the short path and builds on halve" in found[3]
    assert len(found) == 4
