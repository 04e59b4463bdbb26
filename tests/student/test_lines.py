"""Two edits of one text: what merges, what clashes, and how a clash stands in a code cell."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.student.cell_text import merge_code, merge_prose
from grader.student.lines import Clash, merge_lines

LINES = [f"line {number}" for number in range(6)]


@st.composite
def edited(draw, whose):
    """Return some of the lines, and lines of one's own: which are from whom can be told."""
    made = []
    for number in range(len(LINES) + 1):
        made += [f"{whose} {number}.{one}" for one in range(draw(st.sampled_from([0, 0, 0, 1, 2])))]
        kept = number < len(LINES) and draw(st.sampled_from([True, True, False]))
        made += [LINES[number]] if kept else []
    return made


@settings(derandomize=True, max_examples=300)
@given(edited("mine"), edited("new"))
def test_no_line_of_either_side_is_lost_and_none_is_made_up(mine, new):
    base, left, right = ("\n".join(lines) for lines in (LINES, mine, new))
    pieces = merge_lines(base, left, right)
    clashes = [piece for piece in pieces if isinstance(piece, Clash)]
    for side, name in ((mine, "mine"), (new, "new")):
        flat = [
            line
            for piece in pieces
            for line in ([piece] if isinstance(piece, str) else getattr(piece, name))
        ]
        assert [line for line in flat if line.startswith(name)] == [
            line for line in side if line.startswith(name)
        ]
    if not clashes:  # what both kept is there in order, what one took out is not
        both = [line for line in LINES if line in mine and line in new]
        assert [line for line in pieces if line in LINES] == both
    again = merge_lines(base, right, left)
    assert len(again) == len(pieces)
    assert merge_lines(base, left, base) == mine == merge_lines(base, left, left)
    assert merge_lines(base, base, right) == new


FUNCTION = "def f(x):\n    y = x\n    return y"
UPDATE = "── update: the course's new lines ──", "── update: yours, which run ──"
END = "    # ── update: end ──"


@pytest.mark.parametrize(
    ("base", "mine", "new", "merged"),
    [
        # neighbouring lines
        (FUNCTION, FUNCTION.replace("= x", "= -x"), FUNCTION.replace("return y", "return 2 * y"),
         "def f(x):\n    y = -x\n    return 2 * y"),
        # the same edit twice; other ends of lines; white space
        ("a = 1", "a = 2\n", "a = 2", "a = 2"),
        ("a = 1\nb = 1", "a = 1\r\nb = 2\r\n", "a = 3\nb = 1", "a = 3\nb = 2"),
        ("a = 1\nb = 1", "a = 1  \nb = 1", "a = 1\nb = 2", "a = 1  \nb = 2"),
        # whole statements of both in one place, the course's first
        ("a = 1", "a = 1\n\nprint(a)", "a = 1\n\nb = 2", "a = 1\n\nb = 2\n\nprint(a)"),
        # the same lines: the student's run
        (FUNCTION, FUNCTION.replace("= x", "= -x"), FUNCTION.replace("= x", "= +x"),
         f"def f(x):\n    # {UPDATE[0]}\n    # y = +x\n    # {UPDATE[1]}\n    y = -x\n{END}\n    return y"),
        (FUNCTION, FUNCTION.replace("= x", "= -x"), "def f(x):\n    return y",
         "def f(x):\n    # ── update: the course took these lines out; yours still run ──\n"
         f"    y = -x\n{END}\n    return y"),
        (FUNCTION, "def f(x):\n    return x", FUNCTION.replace("= x", "= 2 * x"),
         f"def f(x):\n    # {UPDATE[0]}\n    # y = 2 * x\n    # return y\n    # {UPDATE[1]}\n"
         f"    return x\n{END}"),
        # no comments can stand in a string, nor a merge be no Python
        ('t = """\none\n"""', 't = """\nmine\n"""', 't = """\nnew\n"""', None),
        ("a = 1\nb = 2", '"""\na = 1\nb = 2\n"""', 'a = 1\n"""Two."""\nb = 2', None),
        ("%%time\na = 1", "%%time\na = 2", "%%time\na = 3", f"%%time\n# {UPDATE[0]}\n# a = 3\n# {UPDATE[1]}\na = 2\n# ── update: end ──"),
        ("%%html\na", "%%html\nb", "%%html\nc", None),
    ],
)  # fmt: skip
def test_code(base, mine, new, merged):
    found = merge_code(base, mine, new)
    assert (found and found[0]) == merged


def test_prose():
    base = "One.\n\nTwo."
    assert merge_prose(base, base + "\n\nMy note.", base + "\n\nThree.") == (
        "One.\n\nTwo.\n\nThree.\n\nMy note."
    )
    assert merge_prose(base, "One!\n\nTwo.", "One?\n\nTwo.") is None
