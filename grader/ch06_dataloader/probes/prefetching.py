"""Probes of `prefetch_plan` and `zero_copy`: workers that run ahead."""

import os

import torch
from torch.utils.data import Dataset

from grader import apart, pause, probe, watch_events, watch_ops

from .running import PATIENCE, noted, optional, until


@probe
def planned(student, cases):
    """Return the plan of each case."""
    return [student.prefetch_plan(list(case[0]), *case[1:]) for case in cases]


class Awkward(Dataset):
    """Sample i is a tensor full of i, in a layout that is not dense; each fetch is noted."""

    def __init__(self, shape, dtype, log):
        self.shape, self.dtype, self.log = shape, dtype, log

    def __getitem__(self, index):
        self.log.note("fetch", index)
        return torch.tensor(index).to(self.dtype).expand(self.shape)


def slot_loader(student, log, batches, shape, dtype, workers, factor):
    """Return the iterator; nothing has been asked for."""
    dataset = Awkward(shape, dtype, log)
    return iter(
        student.zero_copy(dataset, batches, tuple(shape), dtype, workers, *optional(factor))
    )


@probe
def slots_copied(student, batches, shape, dtype):
    """Return a copy of every batch, made when the one worker had time to run ahead."""

    def body():
        with watch_events() as log:
            found = []
            for number, batch in enumerate(slot_loader(student, log, batches, shape, dtype, 1, 2)):
                most = sum(map(len, batches[: number + 3]))
                until(lambda most=most: len(noted(log, "fetch")) >= most, 0.5)
                pause(0.02)  # the last sample has a moment to be written
                found.append(batch.clone())
            return found

    return apart(body, seconds=PATIENCE)


@probe
def slots_held(student, workers, factor, count):
    """Hold each of `count` batches of two until the workers are as far ahead as they go.

    Return each batch's numbers after that; whether so many samples were fetched by then; what is
    known of its memory; and how many operators copied something in the main process for it.
    """

    def body():
        with watch_events() as log:
            batches = [[2 * k, 2 * k + 1] for k in range(count)]
            made = slot_loader(student, log, batches, (3,), torch.int64, workers, factor)
            found, storages, patience = [], set(), 3.0
            for number in range(count):
                with watch_ops() as ops:
                    batch = next(made)
                most = 2 * min(number + 1 + workers * (factor or 2), count)
                if not until(lambda most=most: len(noted(log, "fetch")) >= most, patience):
                    patience = 0.1
                pause(0.03)  # the last sample has a moment to be written
                storage = batch.untyped_storage()
                storages.add(storage.data_ptr())
                found.append(
                    {
                        "numbers": batch.tolist(),
                        "ahead": len(noted(log, "fetch")) == most,
                        "shared": batch.is_shared(),
                        "batches": storage.nbytes() / (6 * 8),
                        "copies": sum(name in COPIES for name in ops.names) if number else 0,
                    }
                )
            fetchers = {pid for pid, kind, *_ in log.read() if kind == "fetch"}
        return {
            "batches": found,
            "storages": len(storages),
            "main fetched": os.getpid() in fetchers,
        }

    return apart(body, seconds=PATIENCE)


COPIES = ("copy_", "_to_copy", "clone", "stack", "cat", "index_put_", "index", "index_copy_")
