"""Variants of an answer: what is changed, where, and which come first."""

import ast

import pytest

from grader.submission.variants import variants

LOOP = """
def total(values, start=0):
    \"\"\"Not a line to change: 1 + 1.\"\"\"
    kept = []
    for n in range(len(values)):  # a comment stays
        kept.append(values[n])
    return sum(kept) - start
"""


def lines_of(source, right=(), wrong=(), suspicion=None):
    """Return the changed lines, without white space around them."""
    return [one.now.strip() for one in variants(source, right, wrong, suspicion)]


@pytest.mark.parametrize(
    "line",
    [
        "for n in range(len(values) + 1):  # a comment stays",
        "for n in range(1, len(values)):  # a comment stays",
        "kept.append(values[n + 1])",
        "return sum(kept) + start",
        "return start - sum(kept)",
        "return sum(kept)",
        "pass",
    ],
)
def test_a_small_change_of_one_line(line):
    assert line in lines_of(LOOP)


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        ("if a < b:\n        return a", "a <= b"),
        ("if a and b:\n        return a", "if b:"),
        ("return a.clone()", "return a"),
        ("return f(a, b)", "return f(b, a)"),
        ("return f(a, dim=1)", "return f(a)"),
        ("return a[:, b]", "return a[b]"),
        ("return [n for n in a if n]", "return [n for n in a]"),
        ("return a if b else 2", "return 2"),
        ("return min(a, b)", "return max(a, b)"),
        ("return not a", "return a"),
        ("return a.max", "return a.max.contiguous()"),
        ("a += b", "a = a + b"),
        ("return a.add_(b)", "return a.add(b)"),
        ("return f(a, b, 3)", "return b"),
        ("return a.float()", "return a.double()"),
        ("return torch.zeros(2, dtype=torch.int8)", "torch.int32"),
        ("return a.float() + b.float()", "return a + b"),
    ],
)
def test_each_kind_of_change(line, instead):
    found = lines_of(f"def f(a, b):\n    {line}\n", ["def f(a, b):\n    return a.contiguous()\n"])
    assert any(instead in one for one in found)


def test_statements_are_exchanged_and_moved():
    program = "def f(a):\n    for n in a:\n        b = n\n        c = b\n    return c\n"
    made = [one.source for one in variants(program)]
    assert "def f(a):\n    for n in a:\n        c = b\n        b = n\n    return c\n" in made
    assert "def f(a):\n    for n in a:\n        b = n\n    c = b\n    return c\n" in made
    assert "def f(a):\n    for n in a:\n        b = n\n        c = b\n        return c\n" in made


def test_only_the_line_that_is_named_differs():
    before = LOOP.split("\n")
    for one in variants(LOOP):
        after = one.source.split("\n")
        assert after[: one.line - 1] == before[: one.line - 1]
        assert one.was.split("\n")[0] == before[one.line - 1]


def test_each_is_a_program_and_another_one():
    made = [ast.dump(ast.parse(one.source)) for one in variants(LOOP)]
    assert len(made) == len(set(made)) and ast.dump(ast.parse(LOOP)) not in made


def test_a_bracket_stands_where_one_is_needed():
    assert "return (a - b) * b" in lines_of("def f(a, b):\n    return (a + b) * b\n")


def test_what_is_no_program_has_no_variants():
    assert lines_of("def f(:\n") == []


def test_columns_count_characters():
    assert 'return {"größe": a - 1}' in lines_of('def f(a):\n    return {"größe": a + 1}\n')


RIGHT = """
def clipped(x, low, high):
    limit = max(low, 0)
    if x.ndim == 0:
        return None
    return x.clamp(limit, high).to(torch.int32)
"""


@pytest.mark.parametrize(
    ("body", "instead"),
    [
        # a call that the right program puts around it
        ("    if v.ndim == 0:\n        return None\n    edge = max(a, 0)\n    return v.clamp(edge, b)",
         "return v.clamp(edge, b).to(torch.int32)"),
        # an argument
        ("    if v.ndim == 0:\n        return None\n    edge = max(a, 1)\n"
         "    return v.clamp(edge, b).to(torch.int32)", "edge = max(a, 0)"),
        # a statement
        ("    edge = max(a, 0)\n    return v.clamp(edge, b).to(torch.int32)",
         "edge = max(a, 0)\n    if v.ndim == 0:\n        return None"),
    ],
)  # fmt: skip
def test_what_a_right_program_has_comes_in_the_names_of_the_answer(body, instead):
    made = variants(f"def clipped(v, a, b):\n{body}\n", [RIGHT])
    assert any(instead in one.source for one in made)


def test_a_known_mistake_is_run_backwards():
    mistake = RIGHT.replace("max(low, 0)", "low + 0")
    answer = "def clipped(v, a, b):\n    return v.clamp(a + 0, b).to(torch.int32)\n"
    found = lines_of(answer, [RIGHT], [(mistake, RIGHT)])
    assert found.index("return v.clamp(max(a, 0), b).to(torch.int32)") < 5


def test_likely_lines_come_first():
    plain = [one.line for one in variants(LOOP)]
    first = [one.line for one in variants(LOOP, suspicion={4: 0.2, 7: 1.0})]
    assert first[:5] == [7] * 5 and plain[:5] != [7] * 5


LOADED = """
def f(x):
    rows = x.shape[0]
    info = asked(x)
    own, all_of = (info.id, info.count) if info else (0, 1)
    kept = [row for row in range(rows) if row % all_of == own and row > 0]
    if not kept:
        raise ValueError(f"nothing of {rows} for {own}")
    return x[kept]
"""


def test_two_statements_come_for_one_where_a_right_program_has_them():
    answer = LOADED.replace("    info = asked(x)\n", "").replace(
        "(info.id, info.count) if info else (0, 1)", "0, 1"
    )
    now = "    info = asked(x)\n    own, all_of = (info.id, info.count) if info else (0, 1)"
    found = {one.now: one.line for one in variants(answer, [LOADED])}
    assert found[now] == 4


def test_a_condition_of_a_right_program_is_asked_beside_another():
    right = "def f(x, y):\n    return [n for n in x if n and n != y]\n"
    answer = "def f(x, y):\n    for n in x:\n        if n:\n            yield n\n"
    assert "if n and n != y:" in lines_of(answer, [right])


def test_an_error_is_raised_whatever_the_answer_calls_its_variables():
    right = "def f(x):\n    q, d = x.shape\n    if d > 3:\n        raise ValueError\n    return x * d + q\n"
    answer = "def f(x):\n    *_, r, c = x.shape\n    return x * c + r\n"
    assert any("if c > 3:" in line for line in lines_of(answer, [right]))


def test_what_hides_a_wrong_line_is_not_tried():
    right = "def f(x):\n    y = (x + 1).rsqrt()\n    z = y * x\n    return z\n"
    answer = "def f(x):\n    y = x.rsqrt() + 1\n    if x is None:\n        return None\n    z = y * x\n    return z\n"
    made = [one.source for one in variants(answer, [right])]
    assert not any("y = (x + 1)" in one.partition("y = x.rsqrt() + 1")[2] for one in made)


def test_kinds_of_change_take_turns():
    early = [one.now for one in list(variants(LOOP, [RIGHT, LOADED]))[:40]]
    assert any("pass" in one for one in early) and any("+ start" in one for one in early)
