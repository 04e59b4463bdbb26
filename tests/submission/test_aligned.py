"""An answer and a right program side by side: what differs, and what is too much for one place."""

import ast

from grader.submission.aligned import Part, differences
from grader.submission.fragments import Tree

RIGHT = """
def share(items, rank, size):
    info = asked()
    worker, workers = (info.id, info.count) if info else (0, 1)
    if rank >= size:
        raise ValueError(rank)
    for number, item in enumerate(items):
        if number % size == rank and number // size % workers == worker:
            yield item
"""


def parts(answer, right=RIGHT):
    """Return what goes and what comes, as text."""
    found = differences(Tree(ast.parse(answer)), Tree(ast.parse(right)))
    said = [one for one in found if isinstance(one, Part)]
    return [
        ("\n".join(map(ast.unparse, one.own)), "\n".join(map(ast.unparse, one.right)))
        for one in said
    ]


def pairs(answer, right=RIGHT):
    found = differences(Tree(ast.parse(answer)), Tree(ast.parse(right)))
    return [
        (ast.unparse(one.own), ast.unparse(one.right)) for one in found if not isinstance(one, Part)
    ]


def test_a_statement_and_what_it_needs():
    answer = RIGHT.replace("    info = asked()\n", "").replace(
        "(info.id, info.count) if info else (0, 1)", "0, 1"
    )
    assert ("worker, workers = (0, 1)", "\n".join(map(str.strip, RIGHT.split("\n")[2:4]))) in parts(
        answer
    )


def test_what_is_missing():
    answer = RIGHT.replace("    if rank >= size:\n        raise ValueError(rank)\n", "")
    assert parts(answer)[0] == ("", "if rank >= size:\n    raise ValueError(rank)")


def test_the_smallest_expression_first():
    answer = RIGHT.replace("number // size % workers", "number % workers").replace("number", "n")
    assert pairs(answer)[0] == ("n", "number // size")


def test_names_and_docstrings_are_no_difference():
    answer = RIGHT.replace("number", "n").replace("    info", '    """Say which."""\n    info', 1)
    assert list(differences(Tree(ast.parse(answer)), Tree(ast.parse(RIGHT)))) == []


def test_no_more_than_half_goes_or_comes():
    assert parts("def f(x):\n    return x.t()\n", "def f(x):\n    return x.contiguous()\n") == []
    long = "def f(x):\n" + "".join(f"    x = x + {n}\n" for n in range(9)) + "    return x\n"
    assert parts("def f(x):\n    y = x\n    return y\n", long) == []


def test_a_return_hides_nothing():
    right = "def f(x):\n    return g(x)\n    y = x * 2 + h(x)\n    return y\n"
    assert all(
        "return" not in come or goes.startswith("return")
        for goes, come in parts("def f(x):\n    y = x * 3 + h(x)\n    return y\n", right)
    )


def test_a_condition_that_comes_again_is_not_put_above():
    right = "def f(x):\n    if x is None:\n        x = 1\n    y = g(x) + h(x) * 2\n    return y\n"
    answer = "def f(x):\n    y = g(x) + h(x) * 2\n    if x is None:\n        x = 2\n    return y\n"
    assert not any(goes == "" and "if" in come for goes, come in parts(answer, right))
