"""What a student reads who works in a notebook: cells that did not run, what comes next, hints."""

import os
import time

import pytest

from grader.course.course import Course
from grader.student import journal
from grader.student.unready import name_asked_for
from grader.submission.names import provides
from tests import ROOT
from tests.person import person
from tests.scale.course import RIGHT, SQUARES

RIGHT_DOUBLE = RIGHT["double"].strip()


@pytest.fixture(scope="module")
def kernel(tiny, tmp_path_factory):
    """One kernel for all: to start one and import torch takes seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNDERTORCH_COURSE", str(tiny.root))
        with person(tmp_path_factory.mktemp("kernel")) as at:
            yield at


@pytest.fixture
def desk(kernel, student):
    """The kernel as if it was new, in the student's folder, after the chapter's imports."""
    kernel.reads = True
    kernel.run(
        "get_ipython().reset(); from grader.student import cells_run; cells_run._runs.clear()"
    )
    kernel.run(f"import os; os.chdir({str(student.folder)!r})")
    kernel.run("import torch\nfrom grader import grade, hint, locate, predict, solution")
    return kernel


def entries(student):
    """Return what the journal knows: kind, exercise and outcome of each line."""
    return [(one.kind, one.exercise, one.outcome) for one in journal.read(student.my)]


def test_a_verdict_is_on_the_cell_as_it_is(desk, student):
    said = desk.read('grade("double")')
    assert said.startswith("not run yet, 0 of 4 points: Double\n")
    assert "Run the cell that defines `double`, then this one." in said
    assert entries(student) == []
    desk.run(RIGHT_DOUBLE, "double")
    assert desk.read('grade("double")').startswith("passed, 4 of 4 points: Double\n")

    desk.run(f"{RIGHT_DOUBLE}\nif e = 0:\n    pass", "double")
    said = desk.read('grade("double")')
    assert said.startswith("failed, 0 of 4 points")
    assert "Your last edit did not run: SyntaxError, line 3." in said
    assert "line 3       if e = 0:" in said
    desk.run("def double(x:\n    return x", "")  # a front end that names no cells
    assert "did not run: SyntaxError, line 1." in desk.read('grade("double")')
    desk.run("defdouble(x):\n    return x", "double")  # its own cell, whatever it says
    assert "did not run: SyntaxError, line 1." in desk.read('grade("double")')
    desk.run(f"@nothing\n{RIGHT_DOUBLE}", "double")
    said = desk.read('grade("double")')
    assert "stopped before it defined `double`: NameError, line 1." in said
    desk.run(f"{RIGHT_DOUBLE}\nprint(nothing)", "double")  # defined, and then it stopped
    assert desk.read('grade("double")').startswith("passed")
    desk.run("def double(x:\n    return x", "double")
    assert desk.read(f'{RIGHT_DOUBLE}\ngrade("double")').startswith("passed")  # both in one cell
    desk.run("class double:\n    raise NotImplementedError", "double")
    assert "stopped before it defined `double`" in desk.read('grade("double")')
    desk.run(student.answer("double"), "double")  # the stub
    assert desk.read('grade("double")').startswith("not attempted, 0 of 4 points")

    desk.run("def dubble(x):\n    return x * 2", "double")  # the kernel still knows the stub
    assert "does not define `double`. It defines `dubble`" in desk.read('grade("double")')
    outcomes = [outcome for _, _, outcome in entries(student)]
    assert "not run yet" not in outcomes and outcomes[0] == "passed"


def test_what_a_cell_has_set_does_not_reach_the_verdict_and_stays(desk):
    """A class's answers are judged as PyTorch begins; a notebook's are, too."""
    as_begun = (
        "torch.is_grad_enabled() and torch.get_default_dtype() is torch.float32"
        " and torch.tensor(1e-40) * 1 and not torch.is_autocast_enabled('cpu')"
    )
    asked = (
        "print(torch.get_default_dtype(), torch.is_grad_enabled(), torch.get_num_threads(),"
        " (torch.tensor(1e-40, dtype=torch.float32) * 1).item(), torch.is_autocast_enabled('cpu'),"
        " torch.is_deterministic_algorithms_warn_only_enabled())"
    )
    desk.run(f"def double(x):\n    return x * 2 if {as_begun} else None", "double")
    desk.run(
        "torch.set_default_dtype(torch.float64), torch.set_grad_enabled(False),"
        " torch.set_flush_denormal(True), torch.set_autocast_enabled('cpu', True)\n"
        "torch.use_deterministic_algorithms(True, warn_only=True)\n"
        "torch.backends.mkldnn.matmul.fp32_precision = 'bf16'"
    )
    before = desk.run(asked)[0]["text"]
    try:
        assert desk.read('grade("double")').startswith("passed, 4 of 4 points")
        assert desk.run(asked)[0]["text"] == before
        threads = before.split()[2]
        assert before.split() == ["torch.float64", "False", threads, "0.0", "True", "True"]
    finally:
        desk.run(
            "torch.set_default_dtype(torch.float32), torch.set_grad_enabled(True),"
            " torch.set_flush_denormal(False), torch.set_autocast_enabled('cpu', False)\n"
            "torch.use_deterministic_algorithms(False)\n"
            "torch.backends.mkldnn.matmul.fp32_precision = 'none'"
        )


def test_an_answer_to_another_exercise_that_ran_is_named(desk):
    desk.run(RIGHT_DOUBLE, "double")
    desk.run("def total(x):\n    return float(double(x).sum())", "total")
    named = "Your `double` ran here as well. A mistake there shows here too."
    assert named in desk.read('grade("total")')
    assert named not in desk.read('grade("double")')


def test_each_exercise_asks_for_a_name_that_its_stub_has():
    for chapter in Course(ROOT).chapters():
        for exercise in chapter.exercises:
            assert name_asked_for(exercise) in provides(exercise.stub)


def test_what_the_saved_notebook_holds_is_said_where_it_matters(desk, student):
    desk.run(f"os.environ['JPY_SESSION_NAME'] = {str(student.notebook)!r}")
    desk.run(SQUARES["double"].strip(), "double")
    assert "saved" not in desk.read('grade("double")')  # an edit that was run, and not saved yet
    student.answers(double=RIGHT["double"])
    os.utime(student.notebook, (time.time() + 60,) * 2)
    assert "You changed the cell after you ran it" in desk.read('grade("double")')
    desk.run(RIGHT_DOUBLE, "double")
    assert "You changed" not in desk.read('grade("double")')


def test_after_a_pass(desk, student):
    desk.run(RIGHT_DOUBLE, "double")
    said = desk.read('grade("double")')
    assert "1 of 2 exercises of this chapter passed." in said
    assert "Next: Total, " in said and 'solution("double")' in said
    html = desk.run('grade("double")')[0]["data"]["text/html"]
    assert '<a href="#Total">Total</a>' in html
    desk.run(RIGHT["total"], "total")
    assert "2 of 2 exercises of this chapter passed." in desk.read('grade("total")')
    desk.run("os.chdir('/')")
    assert "exercises of this chapter" not in desk.read('grade("double")')


def test_hints_and_solutions_have_the_terminals_memory(desk, student):
    assert 'Say which exercise, by its name in quotes: `hint("double")`.' in desk.read("hint()")
    assert "You have not tried double yet" in desk.read('solution("double")')
    assert "has no hints" in desk.read('hint("double")')
    desk.read('grade("double")')  # not run yet: no attempt
    assert "You have not tried double yet" in desk.read('solution("double")')
    desk.run(SQUARES["double"].strip(), "double")
    desk.read('grade("double")')
    assert "return x * 2" in student.run("solution")  # the terminal, of what was tried here
    assert "return x * 2" in desk.read("solution()")
    assert desk.read('solution("total", anyway=True)').startswith("Without an attempt, then.")
    assert [kind for kind, _, _ in entries(student)] == ["verdict", *["solution"] * 3]


def test_the_wrong_line_with_the_kernels_names(desk, student):
    desk.run("factor = 3")
    desk.run("def double(x):\n    y = x\n    return y * factor - x + x", "double")
    desk.run("def double(x):\n    y = x\n    return y * 3", "double")
    assert "One change in line 3 makes every check pass." in desk.read(
        'locate("double", seconds=600)'
    )
    desk.read('locate("double", seconds=600)')
    assert "return y * 2" in desk.read('locate("double", seconds=600)')
    assert desk.read("display(double(torch.ones(1)).item())") == "3.0"  # the kernel has its own
    assert "There is no answer to look into." in desk.read('locate("total")')


def test_names_that_are_not_right(desk):
    assert "Did you mean double?" in desk.read('grade("doubel")')
    assert "No exercise is called 'xyz'." in desk.read('grade("xyz")')
    assert 'Say which exercise, by its name in quotes: `grade("double")`.' in desk.read("grade()")
    desk.run("def double(): return 1")
    assert 'Write the exercise\'s name in quotes: `grade("double")`.' in desk.read("grade(double)")
    said = desk.read('grade("double")')
    assert (
        "asked for    double(x: torch.Tensor)" in said
        and "takes 0 positional arguments but 1 was given" in said
    )
    desk.run("double = None")
    assert "`double` is None here" in desk.read('grade("double")')
    desk.run("double = torch.zeros(2)")
    assert "`double` is of type Tensor here" in desk.read('grade("double")')


def test_the_points_are_the_result_unless_someone_reads(desk):
    desk.run(SQUARES["double"].strip())
    results = []
    for name, reads in (("", True), ("", False), ("NBGRADER_EXECUTION", True)):
        desk.reads = reads
        desk.run(f"os.environ[{name or 'UNRELATED'!r}] = 'autograde'")
        verdict, *result = desk.run('grade("double")')
        assert verdict["data"]["text/plain"].startswith("failed, 0 of 4 points")
        results.append([one["data"]["text/plain"] for one in result])
    assert results == [[], ["0.0"], ["0.0"]]
    wrong = desk.run('grade("xyz")')
    assert wrong[-1]["data"]["text/plain"] == "0.0"
    desk.run("del os.environ['NBGRADER_EXECUTION']")
