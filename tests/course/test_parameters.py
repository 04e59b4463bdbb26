"""Parameters are declared, drawn and filled in; what a notebook says of its variant is read."""

import pytest

from grader.course.parameters import (
    all_values,
    checked_values,
    draw,
    holds,
    phrase,
    public_values,
    read_parameters,
    render,
)
from grader.submission.grade_call import grade_call, read_call, variant_in

BITS = {"bits": {"public": 8, "among": [4, 5, 6], "says": "{{bits}} bits"}}
CODE = """    #: if bits == 8
    return x
    #: else
    return x >> {{8 - bits}}
    #: endif
"""


@pytest.fixture
def parameters():
    return read_parameters(BITS)


def test_a_draw_depends_on_secret_and_exercise_alone(parameters):
    drawn = {draw(bytes([n]) * 16, name, parameters)["bits"] for n in range(40) for name in "ab"}
    assert drawn == {4, 5, 6}
    assert draw(b"s" * 16, "a", parameters) == draw(b"s" * 16, "a", read_parameters(BITS))
    assert [values["bits"] for values in all_values(parameters)] == [4, 5, 6]
    # this value may never change: a course would get another variant by an update of ours
    assert draw(b"0123456789abcdef", "quantize", parameters) == {"bits": 6}


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        ([], "no mapping"),
        ({"a b": BITS["bits"]}, "no Python name"),
        ({"bits": {"public": 8, "among": [4]}}, "needs `public`, `among` and `says`"),
        ({"bits": {"public": 8, "among": [], "says": ""}}, "one or more"),
        ({"bits": {"public": 8, "among": [8, 4], "says": ""}}, "holds the public value"),
    ],
)
def test_wrong_parameters(declared, words):
    with pytest.raises(ValueError, match=words):
        read_parameters(declared)


def test_texts_are_filled_in(parameters):
    public = public_values(parameters)
    assert render(CODE, public) == "    return x\n"
    assert render(CODE, {"bits": 5}) == "    return x >> 3\n"
    assert render("a\n\n#: if bits == 8\n\nb\n#: endif\n\nc", public) == "a\n\n\nb\n\nc"
    assert render("{{2**bits}} codes\n", public) == "256 codes\n"
    assert phrase(parameters, {"bits": 5}) == "5 bits"
    assert holds("bits > 4", {"bits": 5}) and not holds("bits > 4", {"bits": 4})


def test_other_texts_stay_as_they_are(parameters):
    braces = 'print(f"{{x}}")  # {% no %}\n#: if\n'
    assert render(braces, {}) == braces
    latex = r"$\frac{1}{2^{b}}$ {# no comment #}"
    assert render(latex, public_values(parameters)) == latex


@pytest.mark.parametrize(
    "text", ["{{bit}}", "{{bits / 0}}", "{{bits", "#: if bits\n", "{{bits[1]}}"]
)
def test_what_cannot_be_filled_in_is_said(text):
    with pytest.raises(ValueError, match="cannot be filled in"):
        render(text, {"bits": 8})


def test_a_condition_that_cannot_be_told():
    with pytest.raises(ValueError, match="cannot be told"):
        holds("bits ==", {"bits": 8})


@pytest.mark.parametrize("values", [{}, {"bits": 5}, {"order": [2, 1], "unit": {"a": "bytes"}}])
def test_a_grade_cell_names_its_variant(values):
    assert read_call(grade_call("quantize", values)) == ("quantize", values)
    assert read_call(f" {grade_call('quantize', values)} ;\n") == ("quantize", values)


@pytest.mark.parametrize(
    "source",
    [
        "grade(quantize)",
        "grade('a', 'b')",
        "grade('a', **{'bits': 5})",
        "grade('a', bits=print(1))",
        "grade('a'); print(1)",
        "grade('a' * 9)",
        "grade('a b')",
        "grade",
        "x = grade('a')",
        "grade('a', bits=" + "[" * 1500,
        "grade('a', bits={[]: 1})",
    ],
)
def test_what_is_no_grade_cell(source):
    assert read_call(source) is None


def test_what_a_notebook_says_of_its_variant():
    def cell(source, **metadata):
        return {"cell_type": "code", "source": source, "metadata": metadata}

    solution = cell("…", nbgrader={"grade_id": "a"}, undertorch={"variant": {"bits": 4}})
    assert variant_in([solution, cell("grade('a', bits=5)")], "a") == {"bits": 5}
    assert variant_in([solution], "a") == {"bits": 4}
    assert variant_in([solution], "b") is None
    assert variant_in([cell("grade('a')")], "a") == {}
    odd = cell("…", nbgrader={"grade_id": "a"}, undertorch={"variant": "bits"})
    assert variant_in([odd, cell("…", nbgrader=7, undertorch=[])], "a") is None


def test_only_known_variants(parameters):
    assert checked_values(parameters, {"bits": 5}) == {"bits": 5}
    assert checked_values(parameters, {"bits": 8}) == {"bits": 8}
    for values in ({"bits": 7}, {}, {"bits": 5, "x": 1}, {"bits": [5]}):
        with pytest.raises(ValueError, match="no variant has"):
            checked_values(parameters, values)
