"""The drawings of a class report: plain SVG, its colours from page.css, each with its numbers in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup, escape

CLASSES = {
    "passed": "passed",
    "some points": "some",
    "no points": "no",
    "not attempted": "idle",
    "ended early": "ended",
    "blocked": "blocked",
    "unknown": "held",
}
"""The look of each group of results. Texture and place tell them apart too, and numbers stand beside."""

HATCH = Markup(
    '<svg width="0" height="0" aria-hidden="true" style="position:absolute"><defs>'
    '<pattern id="hatch" width="5" height="5" patternUnits="userSpaceOnUse" '
    'patternTransform="rotate(45)"><rect width="5" height="5" style="fill:var(--ut-sign)"/>'
    '<rect width="2" height="5" style="fill:var(--ut-paper)"/></pattern></defs></svg>'
)
"""The texture of `no points`, once a page."""

_WIDTH, _HEIGHT, _FOOT = 620, 150, 22


def histogram(bins: Sequence[int], most: float) -> Markup:
    """Return a bar for each tenth of the points, with its count above and its bounds below."""
    step, top = _WIDTH / len(bins), max(*bins, 1)
    bars = []
    for index, count in enumerate(bins):
        height = (_HEIGHT - 20) * count / top
        x, y = index * step, _HEIGHT - height
        middle = x + step / 2
        if count:
            bars.append(
                f'<rect class="passed" x="{x + 3:g}" y="{y:.1f}" width="{step - 6:g}" height="{height:.1f}"/>'
                f'<text class="mid" x="{middle:g}" y="{y - 5:.1f}">{count}</text>'
            )
        bars.append(
            f'<text class="mid soft" x="{middle:g}" y="{_HEIGHT + 16}">{most * index / len(bins):.3g}+</text>'
        )
    words = ", ".join(
        f"{most * index / len(bins):.3g} or more: {count}"
        for index, count in enumerate(bins)
        if count
    )
    return Markup(
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT + _FOOT}" width="{_WIDTH}" role="img" '
        f'aria-label="Submissions by points. {escape(words)}">'
        f'<path class="axis" d="M0 {_HEIGHT}H{_WIDTH}"/>{"".join(bars)}</svg>'
    )


def stacked(groups: Mapping[str, int]) -> Markup:
    """Return a bar that the groups share by their counts."""
    total, x, parts = sum(groups.values()) or 1, 0.0, []
    for group, count in groups.items():
        if count:
            width = 150 * count / total
            parts.append(_box(group, x, max(width - 1, 0.5)))
            x += width
    words = ", ".join(f"{group}: {count}" for group, count in groups.items() if count)
    return Markup(
        f'<svg class="bar" viewBox="0 0 150 16" role="img" aria-label="{escape(words)}">'
        f"{''.join(parts)}</svg>"
    )


def key(group: str) -> Markup:
    """Return a legend's entry."""
    return Markup(
        '<span class="key"><svg viewBox="0 0 16 16" aria-hidden="true">'
        f"{_box(group, 1, 14)}</svg><span>{escape(group)}</span></span>"
    )


def _box(group: str, x: float, width: float) -> str:
    hatched = ' style="fill:url(#hatch)"' if group == "no points" else ""
    return f'<rect class="{CLASSES[group]}"{hatched} x="{x:.2f}" y="1" width="{width:.2f}" height="14"/>'
