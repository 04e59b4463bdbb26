"""Where the nodes of a graph stand in a drawing: levels from top to bottom, few crossings, no overlap.

After Sugiyama, Tagawa and Toda (1981): longest-path levels; an edge that passes a level has a place
of its own there, so that it runs through no box; barycentres order each level; then every place goes
as near to its neighbours as its order allows. Knows nothing of torch and of drawing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

SWEEPS = 12
"""How often all levels are ordered, downwards and upwards in turn. The best order is kept."""

TURNS = 24
"""How often all places are moved: the first half towards those above or below in turn, then both."""

PULL = {(False, False): 1.0, (False, True): 1.0, (True, False): 2.0, (True, True): 40.0}
"""How strongly a place is drawn to its neighbour, by whether each is an edge that passes."""

LANE, GAP = 8, 18
"""Pixels that a passing edge takes, and those that stay free between two places."""


@dataclass(frozen=True)
class Placed:
    """A drawing's places. `rows` are the nodes of each level from the left, `middle` where each stands.

    `routes[a, b]` holds where the edge passes, as x per level from that of `a` to that of `b`.
    """

    rows: tuple[tuple[str, ...], ...]
    middle: Mapping[str, float]
    routes: Mapping[tuple[str, str], tuple[float, ...]]
    width: float


Key = tuple[str, ...]
"""A place: ("name",) for a node; ("from", "to", "level") for an edge that passes."""


def place(
    edges: Mapping[str, Sequence[str]], widths: Mapping[str, int], last: Sequence[str] = ()
) -> Placed:
    """Lay out a graph. `edges` gives for each node those it reads, all of them before it.

    Nodes that read nothing stand just above the first that reads them, those of `last` at the end.
    """
    level_of = _levels(edges, last)
    lower: dict[Key, list[Key]] = {(name,): [] for name in edges}
    upper: dict[Key, list[Key]] = {(name,): [] for name in edges}
    at: dict[Key, int] = {(name,): level_of[name] for name in edges}
    paths: dict[tuple[str, str], list[Key]] = {}
    for name, read in edges.items():
        for source in dict.fromkeys(read):
            path: list[Key] = [(source,)]
            for level in range(level_of[source] + 1, level_of[name]):
                path.append((source, name, str(level)))
                at[path[-1]] = level
            path.append((name,))
            paths[source, name] = path
            for above, below in pairwise(path):
                lower.setdefault(above, []).append(below)
                upper.setdefault(below, []).append(above)
    rows: list[list[Key]] = [[] for _ in range(max(level_of.values(), default=-1) + 1)]
    for key in at:
        rows[at[key]].append(key)
    rows = _ordered(rows, upper, lower)
    x = _positions(rows, upper, lower, widths)
    left = min((x[key] - _width(key, widths) / 2 for key in x), default=0.0)
    right = max((x[key] + _width(key, widths) / 2 for key in x), default=0.0)
    return Placed(
        tuple(tuple(key[0] for key in row if len(key) == 1) for row in rows),
        {key[0]: x[key] - left for key in x if len(key) == 1},
        {edge: tuple(x[key] - left for key in path) for edge, path in paths.items()},
        right - left,
    )


def _levels(edges: Mapping[str, Sequence[str]], last: Sequence[str]) -> dict[str, int]:
    level_of: dict[str, int] = {}
    for name, read in edges.items():
        level_of[name] = 1 + max((level_of[source] for source in read), default=-1)
    deepest = max(level_of.values(), default=0)
    for name in last:
        level_of[name] = max(deepest, 1 if len(edges) > len(last) else 0)
    readers: dict[str, list[int]] = {}
    for name, read in edges.items():
        for source in read:
            readers.setdefault(source, []).append(level_of[name])
    for name, read in edges.items():
        if not read and name not in last and name in readers:
            level_of[name] = min(readers[name]) - 1
    return level_of


def _ordered(
    rows: list[list[Key]], upper: Mapping[Key, list[Key]], lower: Mapping[Key, list[Key]]
) -> list[list[Key]]:
    """Return the rows in the order with the fewest crossings that the sweeps found."""
    best, fewest = rows, _crossings(rows, lower)
    for sweep in range(SWEEPS):
        if not fewest:
            break
        down = sweep % 2 == 0
        rows = [list(row) for row in rows]
        for level in range(1, len(rows)) if down else range(len(rows) - 2, -1, -1):
            beside = rows[level - 1 if down else level + 1]
            index = {key: i for i, key in enumerate(beside)}
            near = upper if down else lower
            own = {key: i for i, key in enumerate(rows[level])}

            def centre(
                key: Key,
                near: Mapping[Key, list[Key]] = near,
                index: Mapping[Key, int] = index,
                own: Mapping[Key, int] = own,
                scale: float = len(beside) / max(1, len(rows[level])),
            ) -> float:
                found = [index[other] for other in near.get(key, ())]
                return sum(found) / len(found) if found else own[key] * scale

            rows[level].sort(key=centre)
        crossings = _crossings(rows, lower)
        if crossings < fewest:
            best, fewest = rows, crossings
    return best


def _crossings(rows: Sequence[Sequence[Key]], lower: Mapping[Key, list[Key]]) -> int:
    """Return how many pairs of edges cross, level by level."""
    total = 0
    for row, below in pairwise(rows):
        index = {key: i for i, key in enumerate(below)}
        seen: list[int] = []
        for key in row:
            ends = sorted(index[other] for other in lower.get(key, ()))
            total += sum(len(seen) - bisect_right(seen, end) for end in ends)
            seen = sorted(seen + ends)
    return total


def _width(key: Key, widths: Mapping[str, int]) -> int:
    return widths[key[0]] if len(key) == 1 else LANE


def _positions(
    rows: Sequence[Sequence[Key]],
    upper: Mapping[Key, list[Key]],
    lower: Mapping[Key, list[Key]],
    widths: Mapping[str, int],
) -> dict[Key, float]:
    """Return where the middle of each place is."""
    x: dict[Key, float] = {}
    for row in rows:
        _settle(row, [0.0] * len(row), [1.0] * len(row), widths, x)
    for turn in range(TURNS):
        down = turn % 2 == 0
        calm = turn >= TURNS // 2
        for row in rows if down else reversed(rows):
            wanted, weights = [], []
            for key in row:
                above, below = upper.get(key, []), lower.get(key, [])
                near = above + below if calm else (above or below) if down else (below or above)
                pulls = [(x[other], PULL[len(key) > 1, len(other) > 1]) for other in near]
                weight = sum(pull for _, pull in pulls)
                wanted.append(
                    sum(place * pull for place, pull in pulls) / weight if pulls else x[key]
                )
                weights.append(max(weight, 0.1))
            _settle(row, wanted, weights, widths, x)
    return x


def _settle(
    row: Sequence[Key],
    wanted: Sequence[float],
    weights: Sequence[float],
    widths: Mapping[str, int],
    x: dict[Key, float],
) -> None:
    """Put a row where it wants to be, by least squares, its order and its gaps kept.

    Take off the least distances from the left, and what is left must not fall: isotonic regression,
    by pooling neighbours that want to pass each other.
    """
    offsets, at = [], 0.0
    for i, key in enumerate(row):
        if i:
            at += (_width(row[i - 1], widths) + _width(key, widths)) / 2 + GAP
        offsets.append(at)
    pools: list[tuple[float, float, int]] = []  # mean, weight, how many
    for want, weight, offset in zip(wanted, weights, offsets, strict=True):
        mean, total, count = want - offset, weight, 1
        while pools and pools[-1][0] > mean:
            before, heavy, many = pools.pop()
            mean = (before * heavy + mean * total) / (heavy + total)
            total, count = total + heavy, count + many
        pools.append((mean, total, count))
    shifts = [mean for mean, _, count in pools for _ in range(count)]
    for key, shift, offset in zip(row, shifts, offsets, strict=True):
        x[key] = round(shift + offset, 2)
