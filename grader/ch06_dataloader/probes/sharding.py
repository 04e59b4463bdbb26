"""Probes of `sharded_stream`: every rank's share, with and without workers."""

import itertools

from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from grader import apart, probe

from .running import PATIENCE


class Read:
    """An iterable of numbers, perhaps endless, that counts how many were read."""

    def __init__(self, length):
        self.length, self.count = length, 0

    def __iter__(self):
        for number in itertools.count() if self.length is None else range(self.length):
            if number > 5_000:
                raise LookupError("5000 items of an endless stream were read")
            self.count += 1
            yield number


class Share(IterableDataset):
    """One rank's share of a stream, as `sharded_stream` has it."""

    def __init__(self, function, *args, **kwargs):
        self.function, self.args, self.kwargs = function, args, kwargs

    def __iter__(self):
        return iter(self.function(*self.args, **self.kwargs))


@probe
def shares(student, length, world_size, batch_size, options):
    """Return each rank's items, in a process without workers."""
    return [
        list(student.sharded_stream(Read(length), rank, world_size, batch_size, **options))
        for rank in range(world_size)
    ]


@probe
def shares_of(student, items, world_size, options):
    """Return each rank's items of a stream of anything, read once."""
    return [
        list(student.sharded_stream(iter(items), rank, world_size, 2, **options))
        for rank in range(world_size)
    ]


@probe
def shares_loaded(student, length, world_size, batch_size, workers, options):
    """Return each rank's batches from a DataLoader with workers, and which worker made them."""

    def body():
        def collate(samples):
            return samples, get_worker_info().id

        found = []
        for rank in range(world_size):
            dataset = Share(
                student.sharded_stream, range(length), rank, world_size, batch_size, **options
            )
            loader = DataLoader(
                dataset,
                batch_size=batch_size,
                num_workers=workers,
                collate_fn=collate,
                multiprocessing_context="fork",
                timeout=15,
            )
            found.append(list(loader))
        return found

    return apart(body, seconds=PATIENCE)


@probe
def share_of_endless(student, rank, world_size, batch_size, options, count):
    """Return the first items of an endless stream, and how many were read for them."""
    items = Read(None)
    stream = iter(student.sharded_stream(items, rank, world_size, batch_size, **options))
    return {"items": [next(stream) for _ in range(count)], "read": items.count}
