"""Pictures of storage and strides: which cells a tensor reads, in which order, beside its grid.

    show_storage(x)                   # one tensor
    show_storage(x=x, t=x.T)          # several; those of one storage lie on one strip

SVG in the page's colours, dark and light; a terminal gets the same as text. Nothing in it depends
on an address in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from grader.evidence.layout import Layout, layout_of, sentences, without_memory
from grader.feedback.storage_cells import (
    NOTEBOOK,
    VERDICT,
    Gap,
    Limits,
    StorageCells,
    drawn,
    storages_of,
)
from grader.feedback.storage_drawing import Shown, drawing, legend, rows_of
from grader.feedback.style import style_of

_FITS = 6
"""Most characters of a value in a cell."""


@dataclass(frozen=True)
class Picture:
    """What `show_storage` returns. Shows itself in a notebook, and as text anywhere else."""

    shown: tuple[Shown, ...]
    refused: tuple[tuple[str, str], ...] = ()

    def __repr__(self) -> str:
        return to_text(self)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/plain": to_text(self), "text/html": to_html(self)}


def show_storage(*tensors: torch.Tensor, **named: torch.Tensor) -> Picture:
    """Draw the storage of each tensor as a strip of cells, and the tensor's own grid below it.

    In the strip stand the cell's number, what is stored there and, below, the element that is read
    there, counted from 0 with the last dimension running fastest. Raises TypeError for anything
    that is not a tensor.
    """
    given = [("", tensor) for tensor in tensors] + list(named.items())
    for label, tensor in given:
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(
                f"show_storage draws tensors; {label or 'this'} is {type(tensor).__name__}"
            )
    if len(tensors) > 1 or (tensors and named):
        given = [(label or f"tensor {i}", tensor) for i, (label, tensor) in enumerate(given, 1)]
    with _disable_current_modes(), torch.no_grad():
        return _picture(given)


def _picture(given: Sequence[tuple[str, torch.Tensor]]) -> Picture:
    shown, refused, known = [], [], list[int]()
    for label, tensor in given:
        why = without_memory(tensor)
        if why:
            refused.append((label, why))
            continue
        plain = tensor.detach()
        key = plain.untyped_storage()._cdata
        if key not in known:
            known.append(key)
        shown.append((label, plain, layout_of(plain, known.index(key))))
    storages = storages_of([layout for _, _, layout in shown], NOTEBOOK)
    return Picture(
        tuple(
            Shown(label, layout, *_values(plain, layout, storages))
            for label, plain, layout in shown
        ),
        tuple(refused),
    )


def _values(
    tensor: torch.Tensor, layout: Layout, storages: Sequence[StorageCells]
) -> tuple[dict[int, str], dict[int, str]]:
    """Return the values of the drawn cells as they are stored, and as this tensor reads them."""
    own = next(storage for storage in storages if layout in storage.layouts)
    cells = sorted(
        {cell for cell in own.cells if not isinstance(cell, Gap)}
        | {layout.address(index) for index in drawn(layout, NOTEBOOK)}
    )
    if not cells:
        return {}, {}
    whole = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
    whole.set_(tensor.untyped_storage(), 0, (layout.cells,), (1,))
    try:
        stored = [whole[cell].item() for cell in cells]
    except (RuntimeError, NotImplementedError):  # a dtype of bits that have no value of their own
        return {}, {}
    read = stored
    if "conj" in layout.flags:
        read = [value.conjugate() for value in read]
    if "neg" in layout.flags:
        read = [-value for value in read]
    return (
        dict(zip(cells, map(_brief, stored), strict=True)),
        dict(zip(cells, map(_brief, read), strict=True)),
    )


def _brief(value: Any) -> str:
    """Return a number in few characters, "…" if there are not few enough."""
    if isinstance(value, bool):
        return "True" if value else "False"
    if isinstance(value, complex):
        text = f"{value.real:.3g}{value.imag:+.3g}j"
        return text if len(text) <= _FITS else "…"
    if isinstance(value, float):
        for digits in (4, 3, 2, 1):
            text = f"{value:.{digits}g}".replace("e+0", "e").replace("e-0", "e-")
            if len(text) <= _FITS:
                return text + ("." if value.is_integer() and text.lstrip("-").isdigit() else "")
        return "…"
    text = str(value)
    return text if len(text) <= _FITS else "…"


def bare(label: str, layout: Layout) -> Shown:
    """Return a layout as something to draw, without values: a verdict shows where, not what."""
    return Shown(label, layout, {}, {})


def to_html(picture: Picture, limits: Limits = NOTEBOOK) -> str:
    """Return the picture as one self-contained element, on one line."""
    parts = [style_of("storage.css")]
    for storage in storages_of([one.layout for one in picture.shown], limits):
        members = [one for one in picture.shown if one.layout in storage.layouts]
        parts.append(f'<div class="ut-pic-drawing">{drawing(storage, members, limits)}</div>')
        for one in members:
            head = f"<strong>{escape(one.label)}</strong>: " if one.label else ""
            words = escape(" ".join(sentences(one.layout)))
            parts.append(f"<p>{head}{words}</p>")
        parts.append(f'<p class="ut-pic-why">{legend(storage)}</p>' if legend(storage) else "")
    for label, why in picture.refused:
        head = f"<strong>{escape(label)}</strong>: " if label else ""
        parts.append(f'<p class="ut-pic-why">{head}{escape(why)}</p>')
    return f'<div class="ut-pic">{"".join(parts)}</div>'


def verdict_html(shown: Sequence[tuple[str, Layout]]) -> str:
    """Return layouts as a verdict shows them: smaller, and without values."""
    return to_html(Picture(tuple(bare(label, layout) for label, layout in shown)), VERDICT)


def to_text(picture: Picture) -> str:
    """Return the picture as lines for a terminal."""
    blocks = []
    for storage in storages_of([one.layout for one in picture.shown], NOTEBOOK):
        members = [one for one in picture.shown if one.layout in storage.layouts]
        for one in members:
            words = sentences(one.layout)
            blocks.append(
                "\n".join([f"{one.label}: {words[0]}" if one.label else words[0], *words[1:]])
            )
        blocks.append(_table(storage, members) if storage.cells else "The storage is empty.")
    blocks += [f"{label}: {why}" if label else why for label, why in picture.refused]
    return "\n\n".join(blocks)


def _table(storage: StorageCells, members: Sequence[Shown]) -> str:
    """Return the strip as columns: number, value, elements; sixteen cells to a line."""
    rows = rows_of(storage, members)
    names = ["cell", *(name for name, _ in rows)]
    first = max(map(len, names))
    columns = []
    for cell in storage.cells:
        if isinstance(cell, Gap):
            columns.append([f"+{cell.count}", *["…"] * len(rows)])
        else:
            columns.append([str(cell), *(texts.get(cell, "-") for _, texts in rows)])
    lines = []
    for start in range(0, len(columns), 16):
        part = columns[start : start + 16]
        for row, name in enumerate(names):
            cells = [column[row].rjust(max(map(len, column))) for column in part]
            lines.append("  ".join([name.ljust(first), *cells]))
        lines.append("")
    return "\n".join(lines).rstrip()
