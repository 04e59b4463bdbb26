"""Chapter 6's probes: all of the chapter that runs beside a student's code."""

import random
from collections import OrderedDict, namedtuple
from collections.abc import Mapping
from types import MappingProxyType

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


# Samples of any kind as recipes, which are plain data: arrays and namedtuples do not cross.
Point = namedtuple("Point", ["x", "y"])
Single = namedtuple("Single", ["only"])
NAMED = {"Point": Point, "Single": Single}
MAPPINGS = {"dict": dict, "OrderedDict": OrderedDict, "proxy": MappingProxyType}
ODD = {"None": None, "set": {1}, "slice": slice(2), "type": int, "complex": 1j, "Ellipsis": ...}


def cook(recipe):
    """Return the sample that a recipe, a pair of a kind and what it is made of, describes."""
    kind, content = recipe
    if kind in NAMED:
        return NAMED[kind](*map(cook, content))
    if kind in MAPPINGS:
        pairs = {key: cook(value) for key, value in content}
        return pairs if kind == "dict" else MAPPINGS[kind](pairs)
    match kind:
        case "plain":
            return content
        case "tensor":
            return content.clone(memory_format=torch.preserve_format)
        case "view":  # as it came, with its layout
            return content
        case "array":
            return np.array(content.tolist(), dtype=str(content.dtype).removeprefix("torch."))
        case "words":
            return np.array(content)
        case "scalar":
            name, value = content
            return getattr(np, name)(value)
        case "odd":
            return ODD[content]
        case "tuple":
            return tuple(map(cook, content))
        case "list":
            return list(map(cook, content))
    raise ValueError(kind)


def served(batch):
    """Return a batch as lists of a kind and a content; a tuple that is not named counts as a list."""
    if isinstance(batch, torch.Tensor):
        return ["tensor", batch]
    if isinstance(batch, Mapping):
        return ["dict", [[key, served(value)] for key, value in batch.items()]]
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return [type(batch).__name__, [served(item) for item in batch]]
    if isinstance(batch, list | tuple):
        if batch and all(isinstance(item, str | bytes) for item in batch):
            return ["texts", [str(i) if isinstance(i, str) else bytes(i) for i in batch]]
        return ["list", [served(item) for item in batch]]
    return ["other", type(batch).__name__]


def leaves(value):
    """Yield each tensor, and each array as a tensor on its memory, inside of samples or a batch."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, np.ndarray):
        if value.dtype.kind not in "SUO":
            yield torch.as_tensor(value)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from leaves(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from leaves(item)


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
