"""Still drawings of what a chapter's own code computed: bars, cells, spans, curves. Made when pages are built.

    show_bars({"eager": 4096, "fused": 1024}, "bytes")
    show_cells({"query 0": [True, False], "query 1": [True, True]}, ["key 0", "key 1"])
    show_spans({"rank 0": [("backward", 0, 6), ("all_reduce", 4, 9)]}, "ms")
    show_curves({"loss": [(0, 2.3), (1, 1.7)]}, "step")

Tables, but for curves, whose look is in `site/assets/book.css`: they are read aloud as tables, wrap on a phone, and
need no script.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

TINTS = 4
"""How many colours there are to tell values apart."""


@dataclass(frozen=True)
class Still:
    """A drawing, as a notebook's output."""

    html: str

    def _repr_html_(self) -> str:
        return self.html


def show_bars(values: Mapping[str, float], unit: str = "") -> Still:
    """Draw numbers from 0 up as bars, the longest across all of the room. Says them, too."""
    most = max(*values.values(), 0) if len(values) > 1 else max(next(iter(values.values())), 0)
    rows = [
        f'<tr><th scope="row">{_text(label)}</th>'
        f'<td><span style="--is:{value / most if most else 0:.4g}"></span>'
        f"<span>{_number(value)}{'&nbsp;' + escape(unit) if unit else ''}</span></td></tr>"
        for label, value in values.items()
    ]
    return _table("bars", rows)


def show_cells(
    rows: Mapping[str, Sequence[object]], across: Sequence[object] = (), *, bare: bool = False
) -> Still:
    """Draw a table of values whose colours tell them apart; what is False, None or "" has none.

    With more than four different values all have one colour. A value may be a pair: its text, and what
    its colour is to stand for. `across` heads the columns. `bare` leaves out the values' text where
    colour and place say all.
    """
    tint = _tinter([_pair(value)[1] for row in rows.values() for value in row])
    head = "".join(f'<th scope="col">{_text(name)}</th>' for name in across)
    lines = [f"<tr><td></td>{head}</tr>"] if across else []
    for label, row in rows.items():
        cells = "".join(
            f'<td class="{tint(kind)}">{_said(text, bare=bare)}</td>'
            for text, kind in map(_pair, row)
        )
        lines.append(f'<tr><th scope="row">{_text(label)}</th>{cells}</tr>')
    return _table("cells", lines)


def show_spans(rows: Mapping[str, Sequence[tuple[str, float, float]]], unit: str = "") -> Still:
    """Draw what happened from when to when, a line for each row: (name, from, to).

    Names that differ in digits alone have one colour.
    """
    end = max(to for row in rows.values() for _, _, to in row)
    tint = _tinter([_kind(name) for row in rows.values() for name, _, _ in row])
    lines = []
    for label, row in rows.items():
        spans = "".join(
            f'<span class="{tint(_kind(name))}" style="left:{start / end:.2%};'
            f'width:{(to - start) / end:.2%}" title="{escape(name)}: {_number(start)} to '
            f'{_number(to)}">{escape(name)}</span>'
            for name, start, to in row
        )
        lines.append(f'<tr><th scope="row">{_text(label)}</th><td>{spans}</td></tr>')
    scale = f"<span>0</span><span>{_number(end)}{'&nbsp;' + escape(unit) if unit else ''}</span>"
    lines.append(f'<tr class="ut-scale"><td></td><td>{scale}</td></tr>')
    return _table("spans", lines)


def show_curves(
    curves: Mapping[str, Sequence[tuple[float, float]]], across: str = "", up: str = ""
) -> Still:
    """Draw lines through points (x, y), of one to four names; both axes go as far as the points do.

    The words are outside of the SVG, which is as wide as there is room: they keep their size.
    """
    wide, high, left, top = 560, 150, 64, 10
    points = [point for curve in curves.values() for point in curve]
    (x0, x1), (y0, y1) = ((min(axis), max(axis)) for axis in zip(*points, strict=True))

    def at(x: float, y: float) -> str:
        return f"{left + (x - x0) / (x1 - x0 or 1) * wide:.1f},{top + (y1 - y) / (y1 - y0 or 1) * high:.1f}"

    lines = "".join(
        f'<polyline class="t{number}" points="{" ".join(at(*point) for point in curve)}"/>'
        for number, curve in enumerate(curves.values())
    )
    names = " ".join(
        f'<span class="t{number}">{_text(name)}</span>' for number, name in enumerate(curves)
    )
    said = "; ".join(
        f"{name}: from {_number(curve[0][1])} to {_number(curve[-1][1])}"
        for name, curve in curves.items()
    )
    head = f"<span>{escape(up)}</span> " if up else ""
    return Still(
        f'<div class="ut-curves"><p>{head}{names}</p><div class="ut-plot">'
        f'<p class="ut-up"><span>{_number(y1)}</span><span>{_number(y0)}</span></p>'
        f'<svg viewBox="{left} {top} {wide} {high}" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(said)}">{lines}</svg>'
        f'<p class="ut-across"><span>{_number(x0)}</span><span>{escape(across)}</span>'
        f"<span>{_number(x1)}</span></p></div></div>"
    )


def _table(kind: str, rows: Sequence[str]) -> Still:
    return Still(f'<table class="ut-{kind}"><tbody>{"".join(rows)}</tbody></table>')


def _tinter(values: Sequence[object]) -> Callable[[object], str]:
    """Return what names the colour of a value: the first to come has the first."""
    known = list(dict.fromkeys(str(value) for value in values if not _empty(value)))

    def tint(value: object) -> str:
        if _empty(value):
            return "no"
        return f"t{known.index(str(value))}" if len(known) <= TINTS else "t0"

    return tint


def _pair(value: object) -> tuple[object, object]:
    """Return a cell's text, and what its colour stands for."""
    return value if isinstance(value, tuple) else (value, value)


def _empty(value: object) -> bool:
    return value is None or value is False or value == ""


def _kind(name: str) -> str:
    return re.sub(r"\d+", "", name).strip()


def _said(value: object, *, bare: bool) -> str:
    if bare or value is True or _empty(value):
        return '<span class="ut-unseen">yes</span>' if value is True else ""
    return _text(value)


def _text(value: object) -> str:
    """Return text as HTML, in which `code` between backticks is code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(str(value)))


def _number(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.4g}"
