"""Still drawings: what they show, and how an author's paragraph becomes one."""

from __future__ import annotations

import pytest
from nbformat.v4 import new_markdown_cell

from grader.building.page import with_figures
from grader.building.stills import show_bars, show_cells, show_curves, show_spans
from grader.building.views import Drawing, cut, drawings_in, read_drawing, views_in

PROSE = """Before.

Draw: show_bars({"a": 1, "b":
2}, "bytes") | What there is to see.

Look: strides/view#shape=3x4 | And this.

After."""


def test_a_drawing_is_an_expression_and_a_sentence() -> None:
    (drawing,) = drawings_in(PROSE)
    assert drawing == Drawing('show_bars({"a": 1, "b": 2}, "bytes")', "What there is to see.")
    assert len(views_in(PROSE)) == 1
    for wrong in ("show_bars( | A sentence.", "x = 1 | A sentence.", "no bar"):
        with pytest.raises(ValueError, match="no drawing"):
            read_drawing(wrong)


def test_pages_show_what_was_drawn_and_notebooks_leave_it_out() -> None:
    (drawing,) = drawings_in(PROSE)
    page = with_figures(PROSE, "../explorers", {drawing.code: "<b>drawn</b>"})
    assert "Draw:" not in page
    assert "<b>drawn</b>" in page
    assert "not drawn yet" in with_figures(PROSE, "../explorers", {})
    cell = new_markdown_cell(PROSE)
    cut([cell])
    assert cell.source == "Before.\n\nAfter."
    with pytest.raises(ValueError, match="figure alone"):
        cut([new_markdown_cell("Draw: x | Alone.")])


def test_bars_are_as_long_as_their_numbers() -> None:
    html = show_bars({"`all`": 4096, "half": 2048, "none": 0}, "bytes").html
    assert [html.count(f'--is:{share}"') for share in ("1", "0.5", "0")] == [1, 1, 1]
    assert "<code>all</code>" in html
    assert "4,096&nbsp;bytes" in html
    assert "--is:0" in show_bars({"nothing": 0}).html


def test_cells_of_one_colour_are_of_one_value() -> None:
    html = show_cells({"row": ["x", "y", "x", False, True]}, range(5)).html
    assert html.count('class="t0">x') == 2
    assert 'class="t1">y' in html
    assert 'class="no"></td>' in html
    assert ">yes</span>" in html, "a colour alone says nothing to those who listen"
    many = show_cells({"row": list("abcde")}).html
    assert many.count('class="t0"') == 5
    assert 'class="t1">1' in show_cells({"row": [("0", "even"), ("1", "odd")]}).html


def test_spans_lie_where_their_times_say() -> None:
    html = show_spans({"rank 0": [("F0", 0, 2), ("B0", 2, 8)]}, "ms").html
    assert 'class="t0" style="left:0.00%;width:25.00%"' in html
    assert 'class="t1" style="left:25.00%;width:75.00%"' in html
    assert "8&nbsp;ms" in html


def test_curves_reach_from_corner_to_corner() -> None:
    html = show_curves({"up": [(0, 0), (10, 5)], "level": [(0, 5), (10, 5)]}, "x", "y").html
    assert 'points="64.0,160.0 624.0,10.0"' in html
    assert 'points="64.0,10.0 624.0,10.0"' in html
    assert "<span>5</span><span>0</span></p><svg" in html, "words are no part of what is stretched"
    assert 'aria-label="up: from 0 to 5; level: from 5 to 5"' in html
