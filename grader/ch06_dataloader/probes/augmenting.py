"""Probes of `augment`, and a transform that shows its random numbers."""

import builtins

import torch
from torch.utils.data import DataLoader, Dataset

from grader import apart, probe

from .running import PATIENCE


class Listed(Dataset):
    """Sample i is the number i; `fetched` lists what was fetched in this process."""

    def __init__(self, length):
        self.length, self.fetched = length, []

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        self.fetched.append(index)
        if len(self.fetched) > 3_000:
            raise LookupError("3000 samples were fetched, and a few were asked for")
        return index


def draw_one(sample, generator):
    """Return the sample and one random number of 62 bits."""
    return torch.tensor([sample, torch.randint(2**62, (), generator=generator).item()])


def draw_some(sample, generator):
    """Return the sum of as many random numbers as the sample says, and at least one."""
    return sum(torch.randint(2**40, (sample + 1,), generator=generator).tolist())


@probe
def augmented(student, cases):
    """Return length, element and fetched samples for each (length, seed, epoch, index)."""
    found = []
    for length, seed, epoch, index in cases:
        dataset = Listed(length)
        made = student.augment(dataset, draw_one, seed, epoch)
        early = list(dataset.fetched)
        found.append((len(made), made[index].tolist(), early, dataset.fetched))
    return found


@probe
def augmented_again(student, order):
    """Return the elements in this order, from one dataset, by a transform that draws a lot."""
    made = student.augment(Listed(max(order) + 1), draw_some, 3, 5)
    return [made[index] for index in order]


@probe
def augmented_loaded(student, length, workers):
    """Return what a shuffling DataLoader gave, by sample, and how far each process drew."""

    def body():
        made = student.augment(Listed(length), draw_one, 1, 2)
        order = torch.randperm(length).tolist()
        options = {"multiprocessing_context": "fork", "timeout": 15} if workers else {}
        batches = DataLoader(
            made,
            batch_size=2,
            sampler=order,
            num_workers=workers,
            **options,
            collate_fn=torch.stack,
        )
        return dict(sorted(row for batch in batches for row in batch.tolist()))

    return apart(body, seconds=PATIENCE)


def hash_elsewhere(value, here=hash):
    """Return a hash as a process that was not forked from this one may: texts have another there."""
    return here((value, "elsewhere")) if has_text(value) else here(value)


def has_text(value):
    """Say whether a value is a text, or a tuple with one in it."""
    if type(value) is tuple:
        return any(map(has_text, value))
    return type(value) in (str, bytes)


@probe
def augmented_elsewhere(student, cases):
    """Return the fetched samples for each (seed, epoch, index) as another run of Python makes them."""

    def body():
        builtins.hash = hash_elsewhere
        return [
            student.augment(Listed(index + 1), draw_one, seed, epoch)[index].tolist()
            for seed, epoch, index in cases
        ]

    return apart(body, seconds=PATIENCE)


@probe
def augmented_states(student):
    """Return the element under two global states, and whether each was left as it was."""
    values, left = [], []
    for seed in (1, 2):
        torch.default_generator.manual_seed(seed)
        before = torch.default_generator.get_state()
        values.append(student.augment(Listed(4), draw_one, 1, 2)[3].tolist())
        left.append(torch.equal(before, torch.default_generator.get_state()))
    return {"same": values[0] == values[1], "left": left}
