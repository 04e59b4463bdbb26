"""Streams, samplers, collate: the reference solutions agree with torch on many random cases."""

import random
from functools import partial
from random import Random

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, DistributedSampler, default_collate

from grader.ch06_dataloader.probes.collating import cook, served
from tests import references

reference = partial(references.reference, "ch06_dataloader")


@pytest.fixture(autouse=True)
def same_streams():
    """Leave the global streams as they were."""
    states = random.getstate(), np.random.get_state(), torch.get_rng_state()
    yield
    random.setstate(states[0])
    np.random.set_state(states[1])
    torch.set_rng_state(states[2])


def draw(rng):
    """Draw from a global stream, in one of many ways."""
    return rng.choice(
        [
            lambda: random.gauss(0, 1),
            lambda: random.randbytes(3),
            lambda: random.sample(range(100), 5),
            lambda: np.random.normal(size=3).tolist(),
            lambda: np.random.permutation(9).tolist(),
            lambda: torch.randn(3).tolist(),
            lambda: torch.randn(17).tolist(),
            lambda: torch.randperm(9).tolist(),
            lambda: torch.empty(5).exponential_().tolist(),
            lambda: [int(i) for i in DataLoader(range(4), shuffle=True)],
        ]
    )


def seed_all(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def test_isolated_rng():
    """Fences among draws change none of them, and what each drew is one stream of its seed."""
    isolated_rng, rng = reference("isolated_rng"), Random(1)
    for _ in range(60):
        draws = [draw(rng) for _ in range(8)]
        seed, inner = rng.randrange(2**32), [rng.randrange(2**32) for _ in range(3)]
        seed_all(seed)
        undisturbed = [one() for one in draws]
        fences, inside, outside = [isolated_rng(s) for s in inner], [[], [], []], []
        seed_all(seed)
        for one in draws:
            outside.append(one())
            which = rng.randrange(3)
            with fences[which]:
                inside[which].append((one, one()))
        assert outside == undisturbed
        for seed, drawn in zip(inner, inside, strict=True):
            seed_all(seed)
            assert [one() for one, _ in drawn] == [number for _, number in drawn]


@pytest.mark.parametrize("replacement", [True, False])
def test_weighted_indices_have_the_right_shares(replacement):
    """Evenly spaced darts: with weights of a quarter of them, exactly a quarter lands there."""
    weighted_indices, rng = reference("weighted_indices"), Random(2)
    for _ in range(30):
        weights = [rng.choice([0, 0, 1, 2, 5]) for _ in range(rng.randint(1, 12))]
        total = sum(weights)
        if not total:
            continue
        darts = (torch.arange(4 * total).double() + 0.5) / (4 * total)
        tensor = torch.tensor(weights, dtype=rng.choice([torch.int64, torch.float32]))
        if replacement:
            drawn = weighted_indices(tensor, darts, True)
            assert [drawn.count(i) for i in range(len(weights))] == [4 * w for w in weights]
        else:
            drawn = [weighted_indices(tensor, dart[None], False)[0] for dart in darts]
            assert [drawn.count(i) for i in range(len(weights))] == [4 * w for w in weights]
            positive = [i for i, w in enumerate(weights) if w]
            uniforms = torch.rand(len(positive), dtype=torch.float64)
            assert sorted(weighted_indices(tensor, uniforms, False)) == positive


def test_weighted_indices_without_replacement_follow_multinomial():
    """Frequencies of first and second draws are those of torch.multinomial, within 5 sigma."""
    weighted_indices = reference("weighted_indices")
    weights, times = torch.tensor([4.0, 1.0, 2.0, 1.0]), 4000
    generator = torch.Generator().manual_seed(3)
    theirs = torch.multinomial(weights.expand(times, 4), 2, generator=generator)
    uniforms = torch.rand(times, 2, dtype=torch.float64, generator=generator)
    ours = torch.tensor([weighted_indices(weights, pair, False) for pair in uniforms])
    for place in (0, 1):
        counts = [table[:, place].bincount(minlength=4) for table in (ours, theirs)]
        assert bool(((counts[0] - counts[1]).abs() < 5 * (2 * counts[1]).sqrt()).all())


def test_bucket_batches():
    bucket_batches, rng = reference("bucket_batches"), Random(4)
    for number in range(200):
        boundaries = sorted(rng.sample(range(1, 60), rng.randint(1, 6)))
        max_cells = rng.randint(boundaries[-1], 4 * boundaries[-1])
        count = rng.choice([0, 1, 7, 80])
        lengths = torch.tensor([rng.randint(0, boundaries[-1]) for _ in range(count)]).long()
        generator = torch.Generator().manual_seed(number)
        batches = bucket_batches(lengths, boundaries, max_cells, generator)
        assert sorted(index for batch in batches for index in batch) == list(range(count))
        small = {}
        for batch in batches:
            (width,) = {min(b for b in boundaries if b >= lengths[index]) for index in batch}
            assert 0 < len(batch) * width <= max_cells
            if (len(batch) + 1) * width <= max_cells:
                small[width] = small.get(width, 0) + 1
        assert all(n == 1 for n in small.values())
        loader = DataLoader(lengths, batch_sampler=batches)
        assert [batch.tolist() for batch in loader] == [lengths[b].tolist() for b in batches]


def test_distributed_indices():
    distributed_indices, rng = reference("distributed_indices"), Random(5)
    for _ in range(300):
        n, world_size = rng.randint(0, 40), rng.randint(1, 9)
        options = {"shuffle": rng.random() < 0.7, "seed": rng.randrange(2**40)}
        epoch, drop = rng.randrange(50), rng.random() < 0.5
        counted = []
        for rank in range(world_size):
            sampler = DistributedSampler(range(n), world_size, rank, drop_last=drop, **options)
            sampler.set_epoch(epoch)
            uneven = "drop" if drop else "pad"
            indices, real = distributed_indices(
                n, rank, world_size, epoch=epoch, uneven=uneven, **options
            )
            assert indices == list(sampler)
            counted += [index for index, flag in zip(indices, real, strict=True) if flag]
        assert len(counted) == len(set(counted)) == (n // world_size * world_size if drop else n)


def test_distributed_indices_resume():
    """What was read before an interruption and what is read after it are one epoch."""
    distributed_indices, rng = reference("distributed_indices"), Random(6)
    for _ in range(100):
        n, before, after = rng.randint(1, 40), rng.randint(1, 5), rng.randint(1, 5)
        order = {"epoch": rng.randrange(9), "seed": rng.randrange(99)}
        steps = rng.randint(0, n // before)
        seen = [distributed_indices(n, rank, before, **order)[0][:steps] for rank in range(before)]
        rest = [
            distributed_indices(n, rank, after, uneven="keep", consumed=steps * before, **order)[0]
            for rank in range(after)
        ]
        assert sorted(index for part in seen + rest for index in part) == list(range(n))


def random_recipe(rng, depth=0):
    """Return a function from a number to a recipe; all its recipes are built alike."""
    kinds = ["tensor", "array", "int", "float", "bool", "str", "scalar"]
    if depth < 3:
        kinds += ["dict", "OrderedDict", "Point", "tuple", "list"] * 2
    kind = rng.choice(kinds)
    if kind in ("tensor", "array"):
        shape = [rng.randint(0, 3) for _ in range(rng.randint(0, 3))]
        dtype = rng.choice([torch.float32, torch.int16, torch.bool, torch.float64])
        return lambda n: (kind, torch.full(shape, n % 7).to(dtype))
    if kind == "scalar":
        name = rng.choice(["float32", "int8", "float64", "bool_", "str_"])
        return lambda n: (kind, (name, n % 7))
    if kind in ("int", "float", "bool", "str"):
        make = {"int": int, "float": float, "bool": lambda n: n % 2 == 0, "str": str}[kind]
        return lambda n: ("plain", make(n))
    size = 2 if kind == "Point" else rng.randint(0, 3)
    parts = [random_recipe(rng, depth + 1) for _ in range(size)]
    if kind in ("dict", "OrderedDict"):
        return lambda n: (kind, [(f"k{at}", part(n + at)) for at, part in enumerate(parts)])
    return lambda n: (kind, [part(n + at) for at, part in enumerate(parts)])


def same(one, other):
    if isinstance(one, torch.Tensor):
        return one.dtype == other.dtype and torch.equal(one, other)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


def test_collate():
    collate, rng = reference("collate"), Random(7)
    for _ in range(300):
        make = random_recipe(rng)
        samples = [cook(make(n)) for n in rng.sample(range(100), rng.randint(1, 4))]
        assert same(served(collate(samples)), served(default_collate(samples)))


def test_pad_collate():
    pad_collate, generator = reference("pad_collate"), torch.Generator().manual_seed(8)
    for number in range(200):
        rng = Random(number)
        others = [rng.randint(0, 3) for _ in range(rng.randint(0, 2))]
        samples = [
            torch.randn(rng.randint(0, 6), *others, generator=generator)
            for _ in range(rng.randint(1, 5))
        ]
        value = rng.choice([0, -1.5, torch.inf])
        batch, mask = pad_collate(samples, value)
        padded = torch.nn.utils.rnn.pad_sequence(samples, batch_first=True, padding_value=value)
        assert torch.equal(batch, padded)
        assert mask.sum(1).tolist() == [len(sample) for sample in samples]
        assert all(torch.equal(b[m], s) for b, m, s in zip(batch, mask, samples, strict=True))


def test_pad_collate_of_images():
    """What is cut out by the mask is the sample, and all else is the filling."""
    pad_collate, generator = reference("pad_collate"), torch.Generator().manual_seed(9)
    for number in range(100):
        rng = Random(number)
        dims, multiple = rng.randint(1, 3), rng.choice([1, 2, 3, 8])
        shapes = [[rng.randint(0, 5) for _ in range(dims)] for _ in range(rng.randint(1, 4))]
        samples = [torch.rand(*shape, 2, generator=generator) + 1 for shape in shapes]
        batch, mask = pad_collate(samples, -1, dims, multiple)
        for d in range(dims):
            size = max(shape[d] for shape in shapes)
            assert batch.shape[1 + d] == mask.shape[1 + d] == -(-size // multiple) * multiple
        for row, sample in enumerate(samples):
            assert torch.equal(batch[row][mask[row]], sample.flatten(0, dims - 1))
            assert bool((batch[row][~mask[row]] == -1).all())
