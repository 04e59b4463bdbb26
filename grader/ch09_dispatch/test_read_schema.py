"""Checks of `read_schema`: the parts of a line, and what its letters promise."""

import pytest

from grader import Mismatch, about, assert_equal, gate, points, python_random
from grader.ch09_dispatch.schemas import (
    argument,
    as_text,
    of_build,
    random_schema,
    schema,
    told_by_torch,
)

X, Y = argument(name="x"), argument(name="y")


@pytest.fixture
def random(rng):
    return python_random(rng)


@pytest.fixture
def drawn(random):
    """Thirty random schemas, short ones first."""
    return sorted((random_schema(random) for _ in range(30)), key=lambda said: len(as_text(said)))


def read(schemas_read, texts):
    got = schemas_read.ask(texts).value
    for text, one in zip(texts, got, strict=True):
        if one is None:
            raise Mismatch("Expected a `Schema`.", (("on", f"read_schema({text!r})"),))
    return got


def compare(schemas_read, cases, parts, fields=()):
    """Compare `parts` of the schemas, of arguments and results only these `fields`.

    cases: (text, what it says); one result at a time, so that the message is short
    """
    texts = [text for text, _ in cases]
    for text, got, said in zip(
        texts, read(schemas_read, texts), [s for _, s in cases], strict=True
    ):
        with about(("on", f"read_schema({text!r})")):
            for part in parts:
                compare_part(got[part], said[part], part, fields)


def compare_part(got, expected, part, fields):
    if part not in ("arguments", "results"):
        assert_equal(got, expected, f"`{part}`.")
        return
    assert_equal([one["name"] for one in got], [one["name"] for one in expected], f"`{part}`.")
    for number, (one, other) in enumerate(zip(got, expected, strict=True)):
        for name in fields:
            with about(of=f"`{part}[{number}].{name}`. "):
                assert_equal(one[name], other[name], "")


def texts_of(cases):
    return [(as_text(said), said) for said in cases]


@gate
def test_name(schemas_read):
    """Returns a `Schema` with the operator's name."""
    cases = [
        schema("aten::t", "", [X], [argument()]),
        schema("aten::add", "Tensor", [X, Y], [argument()]),
        schema("relu", "", [X], [argument()]),
        schema("mine::__or__", "int_out", [X], []),
    ]
    compare(schemas_read, texts_of(cases), ["name"])


def test_parts(schemas_read, drawn):
    """The overload; arguments and results in order, with their names and types."""
    cases = [
        schema("aten::f", "", [], []),
        schema("aten::f", "", [X, argument("int[2]", "size")], [argument("Tensor[]")]),
        schema("aten::f", "", [argument("SymInt[]?", "n")], [argument(name="a"), argument("int")]),
    ]
    compare(schemas_read, texts_of(cases + drawn), ["overload", "arguments", "results"], ["type"])


def test_keywords(schemas_read, drawn):
    """What stands behind `*` is keyword-only; what has no default is required."""
    only = [argument(name="out", sets="a", written=True, keyword_only=True)]
    moved = argument(name="x", sets="a", after="*")
    cases = [
        schema("aten::f", "", [X, Y], [argument()]),
        schema("aten::f", "", [moved, Y], [argument()]),
        schema("aten::f", "", [X, *only], [argument(sets="a", written=True)]),
        schema("aten::f", "", [X, argument("int?", "n", default=None)], [argument()]),
        schema("aten::f", "", [argument("bool", "b", keyword_only=True, default=False)], []),
    ]
    fields = ["keyword_only", "required"]
    compare(schemas_read, texts_of(cases + drawn), ["arguments", "results"], fields)


def test_defaults(schemas_read, drawn):
    """Defaults are values: numbers of the right kind, lists, strings, `None`."""
    written = [
        ("Scalar s=1", argument("Scalar", "s", default=1)),
        ("Scalar s=1.", argument("Scalar", "s", default=1.0)),
        ("float s=1", argument("float", "s", default=1.0)),
        ("float s=1e-05", argument("float", "s", default=1e-05)),
        ("int s=-1", argument("int", "s", default=-1)),
        ("bool s=True", argument("bool", "s", default=True)),
        ("int[2] s=1", argument("int[2]", "s", default=[1, 1])),
        ("SymInt[3] s=0", argument("SymInt[3]", "s", default=[0, 0, 0])),
        ("int[2] s=[0, 1]", argument("int[2]", "s", default=[0, 1])),
        ("int[] s=[]", argument("int[]", "s", default=[])),
        ("int[1]? s=None", argument("int[1]?", "s", default=None)),
        ('str s="mean"', argument("str", "s", default="mean")),
        ("str s='mean'", argument("str", "s", default="mean")),
    ]
    cases = [(f"f({text}) -> ()", schema("f", "", [said], [])) for text, said in written]
    compare_defaults(schemas_read, cases + texts_of(drawn))


def test_strings(schemas_read):
    """Strings may hold commas, brackets, stars and arrows."""
    odd = ["a, b", "a) -> b", "*", "x=1", "(a!)", 'say "it\'s"', "back\\slash", "[1", "#", ""]
    said = [
        schema("f", "", [X, argument("str", "s", default=text), argument("int", "n")], [argument()])
        for text in odd
    ]
    two = [argument("str", name, default=text) for name, text in (("s", "a, b"), ("t", "*"))]
    said.append(schema("f", "", [*two, argument("str", "u", default="->")], []))
    cases = [(as_text(one, quote), one) for one in said for quote in "\"'"]
    compare(schemas_read, cases, ["arguments", "results"], ["type", "keyword_only"])
    compare_defaults(schemas_read, cases)


def compare_defaults(schemas_read, cases):
    texts = [text for text, _ in cases]
    for (text, said), got in zip(cases, read(schemas_read, texts), strict=True):
        with about(("on", f"read_schema({text!r})")):
            names = [[one["name"] for one in which["arguments"]] for which in (got, said)]
            assert_equal(*names, "`arguments`.")
            for number, (one, other) in enumerate(
                zip(got["arguments"], said["arguments"], strict=True)
            ):
                # 1, 1.0 and True are equal in Python; as defaults they are not the same
                shown = [repr(which["default"]) for which in (one, other)]
                assert_equal(*shown, f"`arguments[{number}].default`.")


LETTERS = [
    schema("add_", "", [argument(name="x", sets="a", written=True), Y], [argument(sets="a", written=True)]),
    schema("view", "", [argument(name="x", sets="a")], [argument(sets="a")]),
    schema("split", "", [argument(name="x", sets="a", after="*")], [argument("Tensor[]", sets="a")]),
    schema("g", "", [argument("Tensor[]", "x", "a", written=True)], []),
    schema("g", "", [argument("Tensor?", "x", "a", written=True), Y], [argument()]),
    schema(
        "sort",
        "",
        [
            argument(name="values", sets="a", written=True),
            argument(name="indices", sets="b", written=True),
        ],
        [argument(sets="a", written=True), argument(sets="b", written=True)],
    ),
    schema(
        "two",
        "",
        [argument(name="x", sets="a"), argument(name="y", sets="b")],
        [argument(sets="ab"), argument(), argument(sets="b")],
    ),
    schema("any", "", [argument(name="x", sets="c", after="*"), Y], [argument(sets="*")]),
]  # fmt: skip


def test_letters(schemas_read, drawn):
    """Letters, arrows and `!` are read where they stand, inside types of lists too."""
    fields = ["before", "after", "written"]
    compare(schemas_read, texts_of(LETTERS + drawn), ["arguments", "results"], fields)


@points(3)
def test_effects(schemas_read, drawn):
    """`writes` and `shares`: which arguments may change, and what may share memory with what."""
    compare(schemas_read, texts_of(LETTERS + drawn), ["writes", "shares"])


def test_build(schemas_read, random):
    """Operators of this PyTorch, as it prints them."""
    cases = [(text, told_by_torch(text)) for text in sorted(of_build(random, 120), key=len)]
    fields = ["type", "before", "after", "written", "keyword_only", "required"]
    parts = ["name", "overload", "arguments", "results", "writes", "shares"]
    compare(schemas_read, cases, parts, fields)
    compare_defaults(schemas_read, cases)
