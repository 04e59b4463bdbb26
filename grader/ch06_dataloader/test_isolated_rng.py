"""Checks of `isolated_rng`: stories of blocks, told again with a stream object for each."""

import random

import numpy as np
import pytest
import torch

from grader import about, assert_equal, compared, gate, points
from grader.ch06_dataloader.probes.streams import STREAMS, draw_numbers

DRAW = ("draw",)
FAILS, ENDS = True, False


@pytest.fixture
def seeds(rng):
    """Four seeds that differ; the last two do not fit into 31 bits."""
    low = torch.randint(2**30, (4,), generator=rng).tolist()
    return [number + start * 2**30 for start, number in enumerate(low)]


@pytest.fixture
def seed(seeds):
    return seeds[0]


@pytest.fixture
def plan(seeds):
    return [("make", "a", seeds[1]), ("with", "a", ENDS, [DRAW])]


class Streams:
    """Three generators that nobody else draws from."""

    def __init__(self, seed):
        self.all = random.Random(seed), np.random.RandomState(seed), torch.Generator()
        self.all[2].manual_seed(seed)

    def draw(self):
        return draw_numbers(*self.all)


def told(seed, plan):
    """Return what a plan draws when each block has streams of its own."""
    drawn, made = [], {}

    def follow(steps, streams):
        for kind, *args in steps:
            if kind == "draw":
                drawn.append(streams.draw())
            elif kind == "make":
                made[args[0]] = Streams(args[1])
            else:
                follow(args[2], made[args[0]])

    follow(plan, Streams(seed))
    return drawn


def as_text(seed, plan):
    """Return a story as Python; `draw()` stands for a few numbers from each of the three modules."""
    lines = [
        f"for module in (random, np.random):\n    module.seed({seed})\ntorch.manual_seed({seed})"
    ]

    def tell(steps, indent):
        for kind, *args in steps:
            if kind == "draw":
                lines.append(f"{indent}draw()")
            elif kind == "make":
                lines.append(f"{indent}{args[0]} = isolated_rng({args[1]})")
            else:
                name, fails, body = args
                lines.append(f"{indent}with {name}:")
                tell(body, indent + "    ")
                lines.extend([f"{indent}    raise BodyError  # caught outside"] * fails)
                lines.extend([f"{indent}    pass"] * (not body and not fails))

    tell(plan, "")
    return "\n".join(lines)


def compare(rng_story, seed, plan, *, places, swallowed=0):
    """Compare each draw; `places` names them in the order of the story."""
    got, expected = rng_story.ask(seed, plan).value, told(seed, plan)
    with about(("program", as_text(seed, plan))):
        for place, mine, theirs in zip(places, got["drawn"], expected, strict=True):
            compared(mine)  # all three: which of them is wrong tells what was forgotten
            for stream in STREAMS:
                assert_equal(mine[stream], theirs[stream], f"Drawn from {stream} {place}.")
        what = "How many errors of the body did not come out."
        assert_equal(got["swallowed"], swallowed, what)


@gate
def test_can_be_entered(rng_story):
    """`with isolated_rng(seed):` runs its body."""
    assert_equal(len(rng_story.value["drawn"]), 1, "How often the body ran.")


def test_inside(rng_story, seed, seeds):
    """Inside, the three modules draw what their seeds say."""
    for inner in (0, seeds[1], seeds[3]):
        plan = [DRAW, ("make", "a", inner), ("with", "a", ENDS, [DRAW, DRAW])]
        compare(rng_story, seed, plan, places=["before", "inside", "inside, again"])


@points(3)
def test_outside(rng_story, seed, seeds):
    """Afterwards the three go on where they were when the block began."""
    plan = [
        DRAW,
        ("make", "a", seeds[1]),
        DRAW,
        ("with", "a", ENDS, [DRAW]),
        DRAW,
        ("make", "b", seeds[1]),
        ("with", "b", ENDS, []),
        DRAW,
    ]
    places = ["before", "after the object was made", "inside", "afterwards", "after an empty block"]
    compare(rng_story, seed, plan, places=places)


def test_errors(rng_story, seed, seeds):
    """A block that raises leaves the streams in order, and its error comes out."""
    plan = [
        DRAW,
        ("make", "a", seeds[2]),
        ("with", "a", FAILS, [DRAW]),
        DRAW,
        ("with", "a", FAILS, [DRAW]),
        DRAW,
    ]
    places = ["before", "inside", "after an error", "inside again", "after a second error"]
    compare(rng_story, seed, plan, places=places)


def test_comes_back(rng_story, seed, seeds):
    """Entered again, an object goes on where its streams stopped."""
    plan = [
        ("make", "a", seeds[1]),
        ("with", "a", ENDS, [DRAW]),
        DRAW,
        ("with", "a", ENDS, [DRAW, DRAW]),
        ("with", "a", ENDS, [DRAW]),
        DRAW,
    ]
    places = ["inside", "outside", "inside, second time", "the same", "inside, third time", "after"]
    compare(rng_story, seed, plan, places=places)


def test_several(rng_story, seed, seeds):
    """Objects take turns and are nested, each with streams of its own; also with one seed."""
    for other in (seeds[2], seeds[1]):
        inner = ("with", "b", ENDS, [DRAW])
        plan = [
            ("make", "a", seeds[1]),
            ("make", "b", other),
            ("with", "a", ENDS, [DRAW]),
            ("with", "b", ENDS, [DRAW]),
            ("with", "a", ENDS, [DRAW, inner, DRAW]),
            DRAW,
        ]
        places = ["in a", "in b", "in a again", "in b within a", "in a after b", "outside"]
        compare(rng_story, seed, plan, places=places)


def test_making(rng_story, seed, seeds):
    """Making an object touches no stream, also inside of a block, where it is used later."""
    make = ("make", "b", seeds[3])
    plan = [
        DRAW,
        ("make", "a", seeds[1]),
        DRAW,
        ("with", "a", ENDS, [DRAW, make, DRAW]),
        DRAW,
        ("with", "b", ENDS, [DRAW]),
        DRAW,
    ]
    places = ["before", "after a was made", "in a", "in a, after b was made"]
    places += ["after a", "in b, which was made in a", "after b"]
    compare(rng_story, seed, plan, places=places)
