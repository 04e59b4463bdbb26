"""What a picture shows of a storage and of a tensor's grid, and what it leaves out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product

from grader.evidence.layout import Layout, readers


@dataclass(frozen=True)
class Limits:
    """The most that is drawn: cells of a strip, rows and columns of a block, blocks of a grid."""

    cells: int
    rows: int
    columns: int
    blocks: int


NOTEBOOK = Limits(cells=64, rows=8, columns=16, blocks=4)
VERDICT = Limits(cells=32, rows=4, columns=8, blocks=2)


@dataclass(frozen=True)
class Gap:
    """So many cells that are not drawn."""

    count: int


@dataclass(frozen=True)
class StorageCells:
    """One storage in cells of one width, with what is drawn of it.

    `readers[n][cell]` are the elements that `layouts[n]` reads there. Of a large tensor only the
    elements in its drawn grid are known.
    """

    layouts: tuple[Layout, ...]
    cells: tuple[int | Gap, ...]
    readers: tuple[dict[int, list[int]], ...] = field(compare=False)


@dataclass(frozen=True)
class Block:
    """Two dimensions of a grid: which rows and columns are drawn, None where some are left out.

    `title` says which part of the tensor it is, e.g. "[0, :, :]"; `lead` are those indices.
    A tensor of fewer dimensions has one row, or one element: then `rows` or `columns` is (0,).
    """

    title: str
    lead: tuple[int, ...]
    rows: tuple[int | None, ...]
    columns: tuple[int | None, ...]

    def index(self, row: int, column: int, dims: int) -> tuple[int, ...]:
        """Return the whole index of one element."""
        return (*self.lead, row, column)[-dims:] if dims else ()


def grid(layout: Layout, limits: Limits) -> list[Block | None]:
    """Return the blocks of a tensor's grid in order, None where some are left out."""
    if not layout.numel:
        return []
    dims = len(layout.size)
    rows = _some(layout.size[-2], limits.rows) if dims > 1 else (0,)
    columns = _some(layout.size[-1], limits.columns) if dims else (0,)
    blocks: list[Block | None] = []
    for lead in _leads(layout.size[:-2], limits.blocks):
        if lead is None:
            blocks.append(None)
        else:
            title = f"[{', '.join([*map(str, lead), ':', ':'])}]" if lead else ""
            title = title if len(title) <= 30 else f"[{lead[0]}, …, :, :]"
            blocks.append(Block(title, lead, rows, columns))
    return blocks


def _some(length: int, most: int) -> tuple[int | None, ...]:
    if length <= most:
        return tuple(range(length))
    return (*range(min(most - 2, 4)), None, length - 1)


def _leads(size: Sequence[int], most: int) -> list[tuple[int, ...] | None]:
    total = 1
    for length in size:
        total *= length
    if total <= most:
        return list(product(*map(range, size)))
    first = []
    for place in range(most - 1):
        first.append(_unfolded(place, size))
    return [*first, None, _unfolded(total - 1, size)]


def _unfolded(place: int, size: Sequence[int]) -> tuple[int, ...]:
    index = []
    for length in reversed(size):
        index.append(place % length)
        place //= length
    return tuple(reversed(index))


def drawn(layout: Layout, limits: Limits) -> Iterator[tuple[int, ...]]:
    """Return the indices of the elements that the grid shows."""
    for block in grid(layout, limits):
        if block is None:
            continue
        for row, column in product(block.rows, block.columns):
            if row is not None and column is not None:
                yield block.index(row, column, len(layout.size))


def storages_of(layouts: Sequence[Layout], limits: Limits) -> list[StorageCells]:
    """Return one strip per storage and width of cells, in the order of `layouts`."""
    groups: dict[tuple[int, int], list[Layout]] = {}
    for layout in layouts:
        groups.setdefault((layout.storage, layout.itemsize), []).append(layout)
    return [_storage(group, limits) for group in groups.values()]


def _storage(layouts: Sequence[Layout], limits: Limits) -> StorageCells:
    total = layouts[0].cells
    known: list[dict[int, list[int]]] = []
    wanted: set[int] = set()
    complete = True
    for layout in layouts:
        seen: dict[int, list[int]] = {}
        for index in drawn(layout, limits):
            seen.setdefault(layout.address(index), []).append(layout.order(index))
        wanted |= set(seen)
        found = readers(layout)
        complete = complete and found is not None
        known.append(seen if found is None else found)
    return StorageCells(
        tuple(layouts), tuple(_elided(wanted, total, complete, limits)), tuple(known)
    )


def _elided(wanted: set[int], total: int, complete: bool, limits: Limits) -> Iterator[int | Gap]:
    """Return the cells to draw: all where they are few, else those wanted and what lies between.

    A cell that nobody is known to read is drawn only where it is known that nobody does.
    """
    if total <= limits.cells and complete:
        yield from range(total)
        return
    cells = sorted(wanted | ({0, total - 1} if complete else set()))
    if len(cells) > limits.cells:
        cells = [*cells[: limits.cells - 1], cells[-1]]
    room = limits.cells - len(cells)
    at = 0
    for cell in cells:
        between = cell - at
        if between and complete and between <= min(2, room):
            yield from range(at, cell)
            room -= between
        elif between:
            yield Gap(between)
        yield cell
        at = cell + 1
    if at < total:
        yield Gap(total - at)
