"""Pages of myths and questions are those of their sources, and show what their programs print.

A program runs where it or its page has changed, and by turns; all of them in `make prove`.
"""

import re
from pathlib import Path

from grader.building import myths, questions
from grader.building.build import build_myths, build_questions, differing
from grader.building.programs import Program, printed
from grader.course.course import Course
from tests import ROOT, passed

COURSE = Course(ROOT)


def shown(folder: Path, program: Program) -> str:
    """Return what the pages of a folder show as the program's output; "" if none shows the program."""
    for page in folder.glob("*.md"):
        text = page.read_text(encoding="utf-8")
        for one in (text, re.sub(r"^ {4}", "", text, flags=re.MULTILINE)):  # myths fold it in
            _, found, rest = one.partition(f"```python\n{program.code}\n```\n")
            if found:
                return rest.partition("```text\n")[2].partition("\n```")[0]
    return ""


def test_pages_are_those_of_their_sources(monkeypatch, pytestconfig):
    due = passed.programs_due(pytestconfig)
    assert due

    def by_turns(folder):
        def outputs(course, groups):
            of = [f"{folder}/{group[0].name.partition(':')[0]}" for group in groups]
            ran = iter(
                printed(course, [g for g, one in zip(groups, of, strict=True) if one in due])
            )
            return [
                next(ran) if one in due else [shown(ROOT / folder, program) for program in group]
                for group, one in zip(groups, of, strict=True)
            ]

        return outputs

    for module, folder in ((myths, "site/myths"), (questions, "site/questions")):
        monkeypatch.setattr(module, "printed", by_turns(folder))
    wrong = differing(COURSE, [*build_myths(COURSE), *build_questions(COURSE)])
    assert not wrong, f"of {sorted(due)}, run: undertorch build myths; undertorch build questions"
    if pytestconfig.getoption(passed.OPTION):
        passed.write("programs", passed.program_digests())
