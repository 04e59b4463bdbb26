"""Mutants of a reference: each has a name of its own, by which an author may excuse it."""

from grader.submission.mutants import mutants

TWICE = """
def f(x):
    if x:
        x.stop()
    else:
        x.stop()
    return x + 1
"""


def test_two_lines_of_one_text_make_two_mutants():
    made = [mutant for mutant in mutants(TWICE) if mutant.was == "x.stop()"]
    assert [mutant.id for mutant in made] == ["x.stop() => pass", "x.stop() => pass (2)"]
    assert [mutant.source.count("x.stop()") for mutant in made] == [1, 1]


def test_no_two_mutants_share_a_name():
    ids = [mutant.id for mutant in mutants(TWICE)]
    assert len(set(ids)) == len(ids)
