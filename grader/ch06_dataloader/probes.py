"""Chapter 6's probes: all of the chapter that runs beside a student's code."""

import random

import numpy as np
import torch

from grader import probe
from grader.ch06_dataloader.recipes import cook, leaves, served

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


@probe
def weighted_draws(student, weights, uniforms, replacement):
    """Return what `weighted_indices` draws."""
    return student.weighted_indices(weights, uniforms, replacement)


def seed_globally(seed):
    """Seed the three global streams."""
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


@probe
def bucketed(student, lengths, boundaries, max_cells, seed, epochs, elsewhere):
    """Return epochs of batches from one generator, and whether a global stream was touched.

    elsewhere: seed of the global streams
    """
    seed_globally(elsewhere)
    expected = draw_globally()
    seed_globally(elsewhere)
    generator = torch.Generator().manual_seed(seed)
    found = [
        student.bucket_batches(lengths, list(boundaries), max_cells, generator)
        for _ in range(epochs)
    ]
    return {"epochs": found, "global streams": draw_globally() == expected}


@probe
def shared_epoch(student, n, world_size, options, elsewhere):
    """Return each rank's part of an epoch, and whether a global stream was touched.

    options: keyword arguments; elsewhere: seed of the global streams
    """
    seed_globally(elsewhere)
    expected = draw_globally()
    seed_globally(elsewhere)
    parts = [
        student.distributed_indices(n, rank, world_size, **options) for rank in range(world_size)
    ]
    return {"parts": parts, "global streams": draw_globally() == expected}


@probe
def refused_rank(student, n, rank, world_size, options):
    """Return what comes back for a rank or an option that there is not."""
    return student.distributed_indices(n, rank, world_size, **options)


@probe
def collated(student, recipes):
    """Return the batch of cooked samples, and the samples' tensors once the batch was written over."""
    samples = [cook(recipe) for recipe in recipes]
    batch = student.collate(samples)
    as_it_came = copy_tensors(served(batch))
    for tensor in leaves(batch):
        write_over(tensor)
    return {"batch": as_it_came, "samples": [leaf.clone() for leaf in leaves(samples)]}


def write_over(tensor):
    """Change every element, unless several share a cell: then nothing can be written."""
    if not any(
        step == 0 and size > 1 for step, size in zip(tensor.stride(), tensor.shape, strict=True)
    ):
        tensor.copy_(tensor.logical_not())


def copy_tensors(value):
    """Return nested lists with a copy of each tensor in them."""
    if isinstance(value, torch.Tensor):
        return value.clone()
    return [copy_tensors(item) for item in value] if isinstance(value, list) else value


@probe
def padded(student, samples, options):
    """Return batch and mask, and the samples once both were written over."""
    result = student.pad_collate(samples, **options)
    batch, mask = result
    found = {"pair": type(result).__name__, "batch": copy_of(batch), "mask": copy_of(mask)}
    for tensor in (batch, mask):
        if isinstance(tensor, torch.Tensor):
            write_over(tensor)
    return {**found, "samples": [sample.clone() for sample in samples]}


def copy_of(value):
    """Return a tensor's copy, and anything else as it is."""
    return value.clone() if isinstance(value, torch.Tensor) else value
