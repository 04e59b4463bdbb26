"""The page about the trial: a section for each chapter, replaced one by one."""

from grader.course.course import Course
from grader.proving.trial import Trial, write_section
from grader.proving.validate import Proof
from tests import ROOT

COURSE = Course(ROOT)
FIRST, SECOND = COURSE.chapters()[:2]


def trials(chapter, killed):
    """What would come of an exercise of the chapter, of whose ten mutants so many died."""
    exercise = chapter.exercises[0]
    proof = Proof(exercise, checks=6, mistakes=9, alternates=2, problems=())
    return [(proof, Trial(chapter, exercise, 10, killed, 1, (), ()))]


def test_a_section_takes_the_place_of_its_older_one(tmp_path):
    page = tmp_path / "trial.md"
    write_section(page, COURSE, trials(SECOND, killed=9), seed=1)
    write_section(page, COURSE, trials(FIRST, killed=8), seed=1)
    other = page.read_text().split("\n## ")[2]
    write_section(page, COURSE, trials(FIRST, killed=9), seed=1)
    _, *sections = page.read_text().split("\n## ")
    assert [section.split("\n")[0] for section in sections] == [
        FIRST.card["title"],
        SECOND.card["title"],
    ]
    name, points = FIRST.exercises[0].id, int(FIRST.exercises[0].points)
    assert f"| `{name}` | {points} | 6 | 9 | 2 | 10 | 9 | 1 | 0 |" in sections[0]
    assert "| 8 |" not in sections[0]
    assert sections[1] == other
