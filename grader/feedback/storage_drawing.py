"""Draws a storage's cells in a row, and the grids of the tensors that read it, as SVG.

Boxes of one style share a path, so that a picture in a verdict stays a few kilobytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from grader.evidence.layout import Layout
from grader.feedback.canvas import Canvas
from grader.feedback.storage_cells import Block, Gap, Limits, StorageCells, grid

_NARROW, _HEIGHT, _GRID_HEIGHT = 30, 24, 34
_WIDE, _MARGIN = 730, 58
_TOLD = 64
"""Most cells that the text in place of a picture tells."""


@dataclass(frozen=True)
class Shown:
    """One tensor of a picture. `stored` holds the values of cells, `read` those of the grid."""

    label: str
    layout: Layout
    stored: Mapping[int, str]
    read: Mapping[int, str]


def drawing(storage: StorageCells, members: Sequence[Shown], limits: Limits) -> str:
    """Return the strip and below it the grids of those who read it."""
    canvas, tints = Canvas(), _tints(storage)
    width = _width(storage, members)
    bottom = _draw_cells(canvas, storage, rows_of(storage, members), tints, width)
    if not any(one.label or len(one.layout.size) > 2 for one in members):
        bottom -= 12  # no titles
    left, top = 0, bottom
    for one in members:
        for block in grid(one.layout, limits):
            columns = 1 if block is None else len(block.columns)
            rows = 1 if block is None else len(block.rows)
            if left and left + columns * width + 30 > _WIDE:
                left, top = 0, bottom
            _draw_block(canvas, one, block, tints, left + 20, top, width)
            left += columns * width + 30
            bottom = max(bottom, top + 26 + rows * _GRID_HEIGHT + 8)
    first = members[0].layout
    title = f"Storage of {first.cells} cells of {first.itemsize} bytes, and who reads them"
    return canvas.to_svg(title, " ".join(map(_reading, members)))


def rows_of(storage: StorageCells, members: Sequence[Shown]) -> list[tuple[str, Mapping[int, str]]]:
    """Return what is said of each cell: what it holds, then the elements that each tensor reads."""
    holds = {cell: text for one in members for cell, text in one.stored.items()}
    rows: list[tuple[str, Mapping[int, str]]] = [("holds", holds)] if holds else []
    for one, seen in zip(members, storage.readers, strict=True):
        label = one.label if len(members) > 1 else "element"
        rows.append((label, {cell: elements(seen[cell]) for cell in storage.cells if cell in seen}))
    return rows


def elements(places: Sequence[int]) -> str:
    """Return the elements that one cell is, e.g. "0,3", or how many if those are too many to say."""
    text = ",".join(map(str, places))
    return text if len(places) == 1 or len(text) <= 4 else f"×{len(places)}"


def legend(storage: StorageCells) -> str:
    """Return what the marks mean, of those that the drawing has."""
    read = [cell for cell in storage.cells if any(cell in seen for seen in storage.readers)]
    cells = [cell for cell in storage.cells if not isinstance(cell, Gap)]
    shared = any(len(places) > 1 for seen in storage.readers for places in seen.values())
    marks = [
        ("▾ the first cell read", bool(read)),
        ("@ an element's cell", bool(read)),
        ("dashed: not read", len(read) < len(cells)),
        ("double frame: read by several indices", shared),
    ]
    return " · ".join(text for text, is_there in marks if is_there)


def _width(storage: StorageCells, members: Sequence[Shown]) -> int:
    """Return the width of a cell: the longest thing in it decides."""
    values = [text for one in members for text in (*one.stored.values(), *one.read.values())]
    orders = [text for _, row in rows_of(storage, members) for text in row.values()]
    numbers = [f"@{cell}" for cell in storage.cells if not isinstance(cell, Gap)]
    return max(_NARROW, 7 * max(map(len, [*values, *orders, *numbers]), default=0) + 8)


def _tints(storage: StorageCells) -> dict[int, str]:
    """Return the style of each cell that is read. The rows of the first tensor that reads it take turns."""
    tints: dict[int, str] = {}
    for layout, seen in zip(storage.layouts, storage.readers, strict=True):
        columns = layout.size[-1] if layout.size else 1
        for cell, places in seen.items():
            tints.setdefault(cell, f"r{places[0] // columns % 3}")
    return tints


def _reading(one: Shown) -> str:
    """Return which cells are read, in order: the picture for those who do not see it."""
    cells = [str(one.layout.address(index)) for index in islice(one.layout.indices(), _TOLD)]
    more = f" and {one.layout.numel - _TOLD} more" if one.layout.numel > _TOLD else ""
    who = f"{one.label} reads" if one.label else "It reads"
    return f"{who} cells {', '.join(cells)}{more}." if cells else f"{who} no cell."


def _draw_cells(
    canvas: Canvas,
    storage: StorageCells,
    rows: Sequence[tuple[str, Mapping[int, str]]],
    tints: Mapping[int, str],
    width: int,
) -> int:
    """Draw the strip from the top; return where the next thing may begin.

    The first of `rows` stands in the cells, the others below them.
    """
    if not storage.cells:
        canvas.text(0, 14, "The storage is empty.", "l")
        return 18
    across = min(16, (_WIDE - _MARGIN) // width)
    heights = [20 + _HEIGHT // 2, *(28 + _HEIGHT + 14 * row for row in range(len(rows) - 1))]
    line = heights[-1] + (20 if len(rows) > 1 else 26)
    starts = {layout.offset for layout in storage.layouts if layout.numel}
    shared = {cell for seen in storage.readers for cell, places in seen.items() if len(places) > 1}
    for place, cell in enumerate(storage.cells):
        x, y = _MARGIN + place % across * width, place // across * line
        middle = x + width // 2
        if place % across == 0:
            canvas.text(0, y + 11, "cell", "l n")
            for (name, _), height in zip(rows, heights, strict=True):
                canvas.text(0, y + height, name if len(name) <= 9 else name[:8] + "…", "l n")
        if isinstance(cell, Gap):
            canvas.text(middle, y + 11, f"+{cell.count}", "n")
            canvas.text(middle, y + heights[0], "…")
            continue
        start = cell in starts
        canvas.text(middle, y + 11, f"▾{cell}" if start else str(cell), "n b m" if start else "n")
        canvas.box(x + 1, y + 16, width - 3, _HEIGHT, tints.get(cell, "u"))
        if cell in shared:
            canvas.box(x + 3, y + 18, width - 7, _HEIGHT - 4, "d")
        for row, (height, (_, texts)) in enumerate(zip(heights, rows, strict=True)):
            if cell in texts:
                canvas.text(middle, y + height, texts[cell], "o" if row else "")
    return -(-len(storage.cells) // across) * line + 2


def _draw_block(
    canvas: Canvas,
    one: Shown,
    block: Block | None,
    tints: Mapping[int, str],
    x: int,
    y: int,
    width: int,
) -> None:
    """Draw two dimensions of a grid, or dots where blocks are left out."""
    if block is None:
        canvas.text(x + width // 2, y + 45, "…")
        return
    canvas.text(x, y + 9, " ".join(part for part in (one.label, block.title) if part), "l n b")
    for across, column in enumerate(block.columns):
        middle = x + across * width + width // 2
        canvas.text(middle, y + 22, "…" if column is None else str(column), "n")
        for down, row in enumerate(block.rows):
            top = y + 26 + down * _GRID_HEIGHT
            if across == 0 and len(one.layout.size) > 1:
                canvas.text(x - 4, top + 20, "…" if row is None else str(row), "e n")
            if row is None or column is None:
                canvas.text(middle, top + 20, "…")
                continue
            cell = one.layout.address(block.index(row, column, len(one.layout.size)))
            style = tints.get(cell, "r0")
            canvas.box(x + across * width + 1, top, width - 3, _GRID_HEIGHT - 3, style)
            value = one.read.get(cell)
            if value is None:
                canvas.text(middle, top + 20, f"@{cell}")
            else:
                canvas.text(middle, top + 14, value)
                canvas.text(middle, top + 26, f"@{cell}", "n")
