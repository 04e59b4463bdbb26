"""Probes of `isolated_rng`, and numbers drawn from the three global streams."""

import random

import numpy as np
import torch

from grader import probe

STREAMS = ("random", "numpy", "torch")


def draw_numbers(python, numpy, generator):
    """Return a few numbers from each stream; an odd count of normal ones, which come in pairs."""
    return {
        "random": [python.random(), python.gauss(0, 1), python.randrange(1000)],
        "numpy": [numpy.rand(), numpy.normal(), int(numpy.randint(1000))],
        "torch": [
            torch.rand((), generator=generator).item(),
            torch.randn((), generator=generator).item(),
            torch.randperm(5, generator=generator).tolist(),
        ],
    }


def draw_globally():
    """Return a few numbers from each global stream."""
    return draw_numbers(random, np.random, None)


def seed_globally(seed):
    """Seed the three global streams."""
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


class BodyError(Exception):
    """What the body of a `with` raises."""


@probe
def rng_story(student, seed, plan):
    """Live through a plan of blocks; return what was drawn, and errors that were swallowed.

    seed: of the global streams, at the beginning
    plan: steps ("draw",), ("make", name, seed) or ("with", name, fails, steps)
    """
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    found = {"drawn": [], "swallowed": 0}
    follow_plan(student.isolated_rng, plan, {}, found)
    return found


def follow_plan(make, plan, made, found):
    """Do the steps of a plan; see `rng_story`."""
    for kind, *args in plan:
        if kind == "draw":
            found["drawn"].append(draw_globally())
        elif kind == "make":
            made[args[0]] = make(args[1])
        else:
            name, fails, steps = args
            error, seen = BodyError(name), None
            try:
                with made[name]:
                    follow_plan(make, steps, made, found)
                    if fails:
                        raise error
            except BodyError as caught:
                seen = caught
            found["swallowed"] += fails and seen is not error
