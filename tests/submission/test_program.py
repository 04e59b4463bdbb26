"""Slicing: which statements of a notebook an exercise gets, and which of them are judged."""

import pytest

from grader.course.cells import Cell, Kind
from grader.submission.names import defines, plain_python
from grader.submission.program import is_stub, judged_text, slice_program

GIVEN = Cell(Kind.GIVEN, "given cell 1", "import math\nimport torch")


def program(solution, *own, given=(GIVEN,), names=("f", "g")):
    cells = [*given, *(Cell(Kind.OWN, f"your cell {n}", text) for n, text in enumerate(own))]
    return slice_program("f", names, [*cells, Cell(Kind.SOLUTION, "f", solution)])


def text(found):
    return "\n".join(source for _, source in found.parts)


def run(found):
    names = {}
    for _, source in found.parts:
        exec(source, names)
    return names["f"]


@pytest.mark.parametrize(
    ("own", "solution", "value"),
    [
        ("def h(): return 1", "def f(): return h()", 1),
        ("A = 1\nB = A + 1\nC = B + 1", "def f(): return C", 3),
        ("class K:\n    x = 4", "def f(): return K().x", 4),
        ("def twice(g):\n    return lambda: 2 * g()", "@twice\ndef f(): return 3", 6),
        ("from math import *", "def f(): return floor(2.5)", 2),
        ("import math as m", "def f(): return m.floor(3.5)", 3),
        ("x = 1\nx = x + 1\nx += 1", "def f(): return x", 3),
        ("t = {}\nt['a'] = 7", "def f(): return t['a']", 7),
        ("def h(): return late()\ndef late(): return 8", "def f(): return h()", 8),
        ("a, (b, *c) = 1, (2, 3, 4)", "def f(): return c[1]", 4),
        ("if True:\n    y = 5\nelse:\n    y = 6", "def f(): return y", 5),
        (
            "try:\n    import missing\nexcept ImportError:\n    missing = 9",
            "def f(): return missing",
            9,
        ),
        ("k = 1; w = 2", "def f(): return w", 2),
        ('s = """\n"""; w = 2', "def f(): return w", 2),
        ("p = 3\x0c\nq = '\u2028'; r = 4", "def f(): return p + r", 7),
        ("def h(x: 'Nothing' = 5): return x", "def f(): return h()", 5),
        ("@staticmethod\ndef h():\n    return 6", "def f(): return h()", 6),
        ("async def h(): return 1", "def f(): return h.__name__", "h"),
    ],
)
def test_what_a_solution_names_comes_along(own, solution, value):
    assert run(program(solution, own))() == value


@pytest.mark.parametrize(
    "own",
    [
        "print(1)",
        "open('no such file')",
        "unused = 1 / 0",
        "def f(): return 0",
        "f = None",
        "((",
        "g = f",
    ],
)
def test_the_rest_stays_away(own):
    assert own not in text(program("def f(): return 1", own, "def h(): pass"))


def test_a_later_cell_does_not_change_what_an_answer_means():
    cells = [
        Cell(Kind.GIVEN, "a", "h = 1"),
        Cell(Kind.SOLUTION, "f", "k = 2\ndef f(): return h + k + late"),
    ]
    cells += [Cell(Kind.GIVEN, "b", "h = k = 100"), Cell(Kind.OWN, "c", "late = 3")]
    assert run(slice_program("f", ["f"], cells))() == 6


def test_statements_keep_their_lines():
    found = program("def f(): return b", "a = 1\n\n\n\n@staticmethod\ndef b():\n    pass")
    assert dict(found.parts)["your cell 0"].split("\n")[4:] == [
        "@staticmethod",
        "def b():",
        "    pass",
    ]


def test_a_cell_is_one_part_however_many_statements_it_gives():
    many = "\n".join(f"x{n} = 1" for n in range(5000))
    uses = " + ".join(f"x{n}" for n in range(5000))
    found = program(f"def f(): return [{uses.replace(' + ', ', ')}]", many)
    assert len(found.parts) == 2
    assert len(text(found)) < 3 * len(many)


def test_another_exercise_is_what_its_cell_says():
    cells = [
        Cell(Kind.SOLUTION, "g", "def g(): return 1"),
        Cell(Kind.OWN, "own", "def g(): return 2"),
    ]
    cells.append(Cell(Kind.SOLUTION, "f", "def f(): return g()"))
    assert run(slice_program("f", ["f", "g"], cells))() == 1


@pytest.mark.parametrize(
    ("source", "plain"),
    [
        ("%matplotlib inline\nx = 1", "x = 1"),
        ("!ls\nx = 1", "x = 1"),
        ("files = !ls\nx = 1", "x = 1"),
        ("%%timeit\nx = 1", "x = 1"),
        ("%%time\nx = 1", "x = 1"),
        ("x?\nx = 1", "x = 1"),
        ("%timeit sum([1])\nx = 1", "x = 1"),
    ],
)
def test_magics_leave_python(source, plain):
    found = plain_python(source)
    compile(found, "cell", "exec")
    assert plain in found


@pytest.mark.parametrize("source", ["%%bash\nrm -rf /", "%%html\n<b>"])
def test_cells_in_other_languages_are_empty(source):
    assert plain_python(source).strip() == ""


def test_hundreds_of_magics_are_left_alone():
    assert plain_python("!ls\n" * 1000) == "!ls\n" * 1000


@pytest.mark.parametrize(
    "source", ["((", "'", "\0", "def", "-" * 60_000 + "1", "a" + ".b" * 30_000, "\ud800"]
)
def test_what_cannot_be_read_stops_nothing(source):
    found = program(source, source)
    judged_text(found)
    assert not defines(source, "f")
    assert not is_stub(source, "def f(): pass")


@pytest.mark.parametrize(
    ("source", "stub"),
    [
        ("def f():\n    # mine\n\n    raise NotImplementedError()", True),
        ("", True),
        ("# nothing", False),
        ("def f():\n    return 1", False),
        ("def f(:", False),
    ],
)
def test_stubs(source, stub):
    assert is_stub(source, "def f():\n    raise NotImplementedError()") is stub


def judged(solution, *own):
    return "\n".join(judged_text(program(solution, *own)))


@pytest.mark.parametrize(
    "beside",
    [
        "assert f() == bad()",
        "print(bad())",
        "for p in range(3):\n    print(bad())",
        "reference = bad()",
        "if bad():\n    pass",
        "def compare():\n    return bad()",
        "class Old:\n    f = bad",
    ],
)
def test_experiments_beside_the_answer_are_free(beside):
    assert "bad" not in judged(f"def f():\n    return 1\n\n\n{beside}")


def test_an_attribute_does_not_lead_to_a_variable_of_its_name():
    assert "bad" not in judged("def f(x):\n    value = x.value\n    return value", "value = bad()")


@pytest.mark.parametrize(
    ("solution", "own"),
    [
        ("def f(): return bad()", ""),
        ("def f(): return h()", "def h(): return bad()"),
        ("def f(): return K.h()", "class K:\n    h = bad()"),
        ("def f(): return 1\nf = bad", ""),
        ("def f(): return 1\nf.__code__ = bad.__code__", ""),
        ('s = """\n"""; f = bad', ""),
        ("\x0c\x0c\n# \u2028\u2028\ndef f(): return bad()", ""),
        ("@bad\ndef f(): return 1", ""),
        ("def f(x=bad): return x", ""),
        ("assert (f := bad)", ""),
        ("def f(): return 1\nassert globals().update(f=bad)", ""),
        ("def f(): return 1\nprint(exec('f = ' + bad))", ""),
        ("import __main__\ndef f(): return 1\n__main__.f = bad", ""),
        ("import sys\ndef f(): return 1\nsys.modules[__name__].f = bad", ""),
        ("def f(): return eval('h')()\ndef h(): return bad()", ""),
    ],
)
def test_roads_to_the_answer_are_judged(solution, own):
    assert "bad" in judged(solution, own)


def test_what_python_warns_of_is_not_printed(recwarn):
    """Many texts are read, those that `locate` makes among them: nobody asked what Python thinks."""
    program("def f(x):\n    return x is 1", "def g(x):\n    return x is 2")
    assert not recwarn.list
