"""A verdict where its style is taken away, and as text in 80 columns."""

import re
from dataclasses import replace

import pytest

from grader.evidence.outcome import Outcome
from grader.feedback.render import Report, to_html, to_text
from grader.verdict.verdict import CheckResult, Message, State, Verdict

LONG = "A `float32` tensor of the same shape comes back, and `x` is left alone whatever its strides are."


def verdict(*points):
    """Return a failed verdict with a check of each of these points; the last one failed."""
    message = Message("3 of 4 values differ. The simplest:", (("x", "0x0001"), ("expected", "1.0")))
    checks = [CheckResult(f"c{n}", LONG, p, p, State.PASSED) for n, p in enumerate(points[:-1])]
    checks.append(
        CheckResult("last", "Ties.", points[-1], 0.0, State.FAILED, message, claimed=True)
    )
    return Verdict(
        "decode", "Read 2 of 3 floats", sum(points[:-1]), sum(points), Outcome.FAILED,
        checks=tuple(checks), diagnosis="You round up. Halfway cases go to the even neighbour.",
    )  # fmt: skip


AFTER = (
    "1 of 15 exercises of this chapter passed.",
    "Next: [Know a `format`](#Know-a-format), 20 minutes.",
    "In PyTorch: [`step` in `a.py`](https://example.org/a.py#L1).",
)


def without_style(html):
    """Return what a sanitiser leaves: elements and addresses; no style sheet, no other attribute.

    Jupyter does so with the outputs of a notebook that it does not trust, and VS Code with HTML in
    Markdown.
    """
    html = re.sub(r"<(style|svg)\b.*?</\1>", "", html, flags=re.DOTALL)
    return re.sub(r' (?!href=)[a-z-]+="[^"]*"', "", html)


def test_it_reads_without_its_style(watch):
    left = without_style(to_html(verdict(1, 2), AFTER))
    assert not re.search(r"class=|style|aria", left)
    watch.page.set_content(left)
    lines = [line for line in watch.page.inner_text("body").splitlines() if line]
    assert lines == [
        "failed Read 2 of 3 floats 1 of 3 points",
        "You round up. Halfway cases go to the even neighbour.",
        f"✓ {LONG.replace('`', '')} 1 point",
        "✗ Ties. observed 2 points",
        "3 of 4 values differ. The simplest:",
        "x",
        "0x0001",
        "expected",
        "1.0",
        "1 of 15 exercises of this chapter passed.",
        "Next: Know a format, 20 minutes.",
        "In PyTorch: step in a.py.",
    ]


def test_as_text_it_fits_eighty_columns():
    text = repr(Report(verdict(1, 1), AFTER))
    first, *rest = text.split("\n")
    assert first == "failed, 1 of 2 points: Read 2 of 3 floats"
    assert max(map(len, rest)) <= 80
    assert "  ✓ A `float32` tensor" in text and "\n    whatever its strides are.\n" in text
    assert text.endswith("  In PyTorch: `step` in `a.py`.\n    https://example.org/a.py#L1")
    assert LONG in to_text(verdict(1, 1), None)  # a pipe gets each line whole


@pytest.mark.parametrize(
    ("points", "said"), [((1, 1), False), ((3.33, 3.33, 3.34), False), ((0, 1, 2), True)]
)
def test_what_a_check_is_worth_is_said_where_they_differ(points, said):
    for shown in (to_text(verdict(*points)), to_html(verdict(*points))):
        assert (re.search(r"\bpoints?\b(?=\)|</span></li>|</span><div)", shown) is not None) == said


def test_a_relation_stands_where_no_mistake_is_named():
    words = "What came is the transpose of `x`."
    told = replace(verdict(1, 2), relation=words)
    assert words.replace("`", "<code>", 1).replace("`", "</code>") in to_html(told)
    assert words in to_text(told)
    unnamed = replace(told, diagnosis="")
    assert f'<p class="ut-diagnosis ut-relation">{words[:12]}' in to_html(unnamed)
    assert to_text(unnamed).splitlines()[1:3] == ["", f"  {words}"]
    named = replace(told, mistake="copies")
    assert words not in to_text(named) and "ut-relation" not in to_html(named)


HOSTILE = "<img src=x onerror=alert(1)>"


def test_whatever_a_verdict_holds_is_shown_as_text():
    """Each of its texts may have come from a student, by way of an exception or a value."""
    message = Message(HOSTILE, ((HOSTILE, HOSTILE),))
    check = CheckResult("c", HOSTILE, 1.0, 0.0, State.FAILED, message)
    shown = Verdict(
        "decode", HOSTILE, 0.0, 1.0, Outcome.FAILED, message, (check,),
        notes=(HOSTILE,), review=HOSTILE, diagnosis=HOSTILE, relation=HOSTILE, tier=HOSTILE,
    )  # fmt: skip
    for one in (shown, replace(shown, diagnosis="")):
        html = to_html(one, (HOSTILE,))
        assert "<img" not in html
        assert html.count("&lt;img") >= 8
