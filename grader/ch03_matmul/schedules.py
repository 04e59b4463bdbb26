"""What steps do to the visits of a loop nest, worked out on the visits alone; and nests to ask about."""

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any

from grader.ch03_matmul.probes.loop_nests import turns_of

Nest = Mapping[str, Any]
Step = tuple[Any, ...]
Point = tuple[int, ...]
Loops = list[tuple[str, int]]

MOST_TURNS = 800
"""Of a random schedule's loops: Python walks through them many times."""


def nest_of(needs: tuple[Point, ...] = (), **extents: int) -> dict[str, Any]:
    """Return the nest whose loops are the axes, as the chapter's function of this name does."""
    return {
        "loops": tuple(extents.items()),
        "index": {name: ("index", name) for name in extents},
        "guards": (),
        "needs": needs,
        "lanes": None,
    }


def scheduled(nest: Nest, steps: Sequence[Step]) -> tuple[Loops, list[list[Point]]]:
    """Return the loops that the steps ask for, and what they visit: a list for each step in time.

    No loop is run. Each visit of the nest knows where the loops stood. A split and a fuse give it
    other coordinates, a reorder says which of them count first; then the visits are sorted.
    """
    loops: Loops = [(name, extent) for name, extent in nest["loops"]]
    seen = [(dict(at), point) for at, point in turns_of(nest) if point is not None]
    lanes = None
    for kind, *names in steps:
        extents = dict(loops)
        order = list(extents)
        if kind == "split":
            name, factor, outer, inner = names
            for at, _ in seen:
                at[outer], at[inner] = divmod(at.pop(name), factor)
            place = order.index(name)
            loops[place : place + 1] = [(outer, -(-extents[name] // factor)), (inner, factor)]
        elif kind == "fuse":
            outer, inner, fused = names
            for at, _ in seen:
                at[fused] = at.pop(outer) * extents[inner] + at.pop(inner)
            place = order.index(outer)
            loops[place : place + 2] = [(fused, extents[outer] * extents[inner])]
        elif kind == "reorder":
            moved = iter(names)
            loops = [
                (new, extents[new])
                for new in (next(moved) if name in names else name for name in order)
            ]
        else:
            (lanes,) = names
    counted = [name for name, _ in loops if name != lanes]
    together: dict[Point, list[tuple[int, Point]]] = {}
    for at, point in seen:
        when = tuple(at[name] for name in counted)
        together.setdefault(when, []).append((at[lanes] if lanes else 0, point))
    return loops, [[point for _, point in sorted(together[when])] for when in sorted(together)]


def too_early(nest: Nest, steps: Sequence[Step]) -> tuple[Point, Point] | None:
    """Return a visit that does not come after one that it needs, and that one; None if all do."""
    _, visits = scheduled(nest, steps)
    when = {point: step for step, together in enumerate(visits) for point in together}
    for point, step in when.items():
        for distance in nest["needs"]:
            needed = tuple(a - b for a, b in zip(point, distance, strict=True))
            if when.get(needed, -1) >= step:
                return point, needed
    return None


def any_steps(random: Random, nest: Nest, most: int) -> list[Step]:
    """Return up to `most` steps that a nest of ours allows: splits, reorders and fuses."""
    loops: Loops = [(name, extent) for name, extent in nest["loops"]]
    steps: list[Step] = []
    for number in range(most):
        kind = random.choice(("split", "split", "reorder", "fuse"))
        names = [name for name, _ in loops]
        step: Step
        if kind == "split":
            name = random.choice(names)
            step = (
                "split",
                name,
                random.randint(2, 5),
                f"{name[0]}{number}o",
                f"{name[0]}{number}i",
            )
        elif len(loops) < 2:
            continue
        elif kind == "fuse":
            at = random.randrange(len(loops) - 1)
            step = ("fuse", names[at], names[at + 1], f"{names[at][0]}{number}f")
        else:
            step = ("reorder", *random.sample(names, random.randint(2, len(names))))
        after, _ = scheduled(nest, [*steps, step])
        turns = 1
        for _, extent in after:
            turns *= extent
        if turns <= MOST_TURNS:
            steps, loops = [*steps, step], after
    return steps


def any_nests(random: Random, count: int) -> Iterator[dict[str, Any]]:
    """Yield nests of one to three axes, two to seven turns each."""
    for _ in range(count):
        names = "ijk"[: random.choice((1, 2, 2, 3))]
        yield nest_of(**{name: random.randint(2, 7 if len(names) < 3 else 4) for name in names})


def called(nest: Nest, *rounds: Sequence[Step]) -> str:
    """Return the call that reschedules a nest, as one writes it in the notebook."""
    extents = {axis: dict(nest["loops"]).get(axis) for axis in nest["index"]}
    text = repr(dict(nest))
    if None not in extents.values() and nest == nest_of(nest["needs"], **extents):
        given = extents | ({"needs": nest["needs"]} if nest["needs"] else {})
        text = f"nest_of({', '.join(f'{name}={one}' for name, one in given.items())})"
    for steps in rounds:
        text = f"reschedule({text}, {list(steps)})"
    return text
