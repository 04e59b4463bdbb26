"""The page about the trial says what the ledgers say."""

import shutil

from grader.course.course import Course
from grader.proving.ledger import Row, write_rows
from grader.proving.trial_page import PAGE, trial_page
from tests import ROOT

CHAPTER = "ch01_formats"


def test_a_chapter_is_shown_when_all_of_it_is_proved(tmp_path):
    for name in ("chapters", "grader"):
        shutil.copytree(ROOT / name / CHAPTER, tmp_path / name / CHAPTER)
    chapter = Course(tmp_path).chapter(CHAPTER)
    rows = {
        e.id: Row("key", "judges", "known", "3.11", 1, 6, 9, 2, 10, 1) for e in chapter.exercises
    }
    (chapter.graders / "proofs.json").unlink(missing_ok=True)
    first, *others = chapter.exercises
    write_rows(chapter, {e.id: rows[e.id] for e in others})
    assert "\n## " not in trial_page(Course(tmp_path))
    write_rows(chapter, rows)
    page = trial_page(Course(tmp_path))
    assert f"\n## {chapter.card['title']}\n" in page
    assert f"| `{first.id}` | {int(first.points)} | 6 | 9 | 2 | 10 | 9 | 1 |" in page
    assert (
        f"| **all** | {int(sum(e.points for e in chapter.exercises))} | {6 * len(rows)} |" in page
    )


def test_the_page_is_that_of_the_ledgers():
    assert (ROOT / PAGE).read_text("utf-8") == trial_page(Course(ROOT)), "run: make prove"
