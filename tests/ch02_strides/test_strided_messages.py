"""What `StridedTensor`'s checks say of steps that went wrong, and of those that could not run."""

from types import SimpleNamespace

import pytest

from grader.ch02_strides.test_StridedTensor import compare as compare_programs
from grader.course.course import Course
from grader.inside.probe import load_probes
from grader.verdict.compare import Mismatch
from tests import ROOT
from tests.references import reference

CUBE = list(range(62)), (3, 4, 5), (4, 1, 12), 2


def found(student, program):
    probe = load_probes(Course(ROOT).chapter("ch02_strides").probes)["programs_run"]
    return probe.run(SimpleNamespace(StridedTensor=student), [program])[0]


def compare(student, program):
    got = [found(student, program)]
    asked = SimpleNamespace(ask=lambda programs: SimpleNamespace(value=got))
    compare_programs(asked, program)


@pytest.fixture
def strided():
    return reference("ch02_strides", "StridedTensor")


def test_a_step_on_what_is_not_there_is_not_run(strided):
    class Refuses(strided):
        def view(self, *size):
            raise ValueError("no view is possible")

    program = [CUBE, ("view", 0, 60, 1), ("write", 1, [0], 7), ("index", 1, [0])]
    assert found(Refuses, program)[1:] == ["ValueError", "not run", "not run"]


def test_a_number_in_place_of_a_tensor_is_named(strided):
    class Numbers(strided):
        def __getitem__(self, index):
            view = super().__getitem__(index)
            return view if view.size else view.item()

    with pytest.raises(Mismatch) as caught:
        compare(Numbers, [CUBE, ("index", 0, [0, 0, 0])])
    assert dict(caught.value.rows)["got"] == "'no StridedTensor, but of type int'"


def test_the_first_number_that_differs_is_shown_with_all_steps(strided):
    class Deaf(strided):
        def __setitem__(self, index, value):
            pass

    with pytest.raises(Mismatch) as caught:
        compare(Deaf, [CUBE, ("index", 0, [1]), ("write", 0, [1, 0, 0], -1), ("index", 0, [2])])
    rows = dict(caught.value.rows)
    assert (rows["at"], rows["expected"], rows["got"]) == ("[1, 0, 0]", "-1", "6")
    first = "t0 = StridedTensor(list(range(0, 62)), (3, 4, 5), (4, 1, 12), 2)"
    assert rows["program"] == f"{first}; t1 = t0[1]; t2 = t0; t2[1, 0, 0] = -1; t3 = t0[2]"


def test_a_program_that_raised_something_else_is_shown_up_to_there(strided):
    class Divides(strided):
        def view(self, *size):
            return 1 // 0

    program = [([7, 3], (2,), (1,), 0), ("index", 0, [0]), ("view", 0, 2, 1), ("index", 0, [1])]
    with pytest.raises(ZeroDivisionError) as caught:
        found(Divides, program)
    first = "t0 = StridedTensor([7, 3], (2,), (1,), 0)"
    assert caught.value.__notes__ == [f"{first}; t1 = t0[0]; t2 = t0.view(2, 1)"]
