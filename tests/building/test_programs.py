"""Pages of myths and questions are those of their sources, and show what their programs print.

A program runs where it or its page has changed, and by turns; all of them in `make prove`.
"""

import pytest

from grader.building import myths, questions
from grader.building.build import build_myths, build_questions, differing
from grader.building.programs import Program, block, printed, programs_of, recalled, sources_in
from grader.course.course import AuthorError, Course
from tests import ROOT, passed

COURSE = Course(ROOT)


def test_pages_are_those_of_their_sources():
    built = build_myths(COURSE, run=False) + build_questions(COURSE, run=False)
    assert not differing(COURSE, built), "run: undertorch build myths; undertorch build questions"


def test_pages_show_what_programs_print(pytestconfig):
    due = passed.programs_due(pytestconfig)
    assert due
    groups, shown = [], []
    for folder, read in (
        (ROOT / myths.FOLDER, myths.read_myths),
        (ROOT / questions.FOLDER, questions.read_questions),
    ):
        programs = programs_of(sources_in(folder, read))
        own = [g for path, g in programs.items() if path.relative_to(ROOT).as_posix() in due]
        groups += own
        shown += recalled(folder, own)
    assert printed(COURSE, groups) == shown
    if pytestconfig.getoption(passed.OPTION):
        passed.write("programs", passed.program_digests())


def test_what_was_printed_is_read_from_a_page_folded_or_not(tmp_path):
    open_, folded = (Program("a: it", f"if {n}:\n\n    print({n})") for n in (1, 2))
    lines = block(folded.code, "  2\n\n2").splitlines()
    (tmp_path / "a.md").write_text("".join(f"    {line}".rstrip() + "\n" for line in lines))
    (tmp_path / "b.md").write_text(block(open_.code, "    1", "It prints:"))
    assert recalled(tmp_path, [[open_], [folded]]) == [["    1"], ["  2\n\n2"]]
    with pytest.raises(AuthorError, match="a: new is on no page yet"):
        recalled(tmp_path, [[Program("a: new", "print(3)")]])
