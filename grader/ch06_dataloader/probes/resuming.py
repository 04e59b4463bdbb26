"""Probes of `ResumableLoader`: whole epochs, and runs that were cut off."""

import json

import torch
from torch.utils.data import Dataset

from grader import apart, probe, watch_events

from .augmenting import Listed, draw_one
from .running import PATIENCE, noted, optional


class Kept(Dataset):
    """Sample i is the number i; each fetch is noted, whichever process does it."""

    def __init__(self, length, log):
        self.length, self.log = length, log

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        self.log.note("fetch", index)
        return index


@probe
def resumable_epochs(student, length, batch_size, seed, workers, epochs):
    """Return the batches of so many epochs; without `workers`, by the loader's default."""

    def body():
        loader = student.ResumableLoader(
            Listed(length), draw_one, batch_size, seed, *optional(workers)
        )
        return [[batch.tolist() for batch in loader] for _ in range(epochs)]

    return apart(body, seconds=PATIENCE)


@probe
def resumed(student, length, batch_size, stop, workers, then_workers, then_seed):
    """Stop in an epoch after some batches, save, go one further; let another loader continue.

    Without workers the other one has begun an epoch of its own before.

    `stop` is (epochs, batches); where the batches are None the last epoch runs to its end.
    """

    def body():
        epochs, count = stop
        # that workers change nothing is another check's business
        whole = student.ResumableLoader(Listed(length), draw_one, batch_size, 7, 0)
        expected = [[batch.tolist() for batch in whole] for _ in range(epochs + 3)]
        first = student.ResumableLoader(Listed(length), draw_one, batch_size, 7, workers)
        for _ in range(epochs):
            for _ in first:
                pass
        state = first.state_dict()
        if count:
            for number, _ in enumerate(first, 1):
                if number == count:
                    state = first.state_dict()
                if number > count:
                    break
        text = json.dumps(state)
        with watch_events() as log:
            second = student.ResumableLoader(
                Kept(length, log), draw_one, batch_size, then_seed, then_workers
            )
            if then_workers == 0:  # a loader that has been used is no worse
                for _ in second:
                    break
            before = len(noted(log, "fetch"))
            second.load_state_dict(json.loads(text))
            rest = [batch.tolist() for batch in second]
            fetched = sorted(index for (index,) in noted(log, "fetch")[before:])
            later = [[batch.tolist() for batch in second] for _ in range(2)]
        return {
            "expected": expected[epochs:],
            "got": [rest, *later],
            "fetched": fetched,
            "characters": len(text),
        }

    return apart(body, seconds=PATIENCE)


@probe
def resumable_breaks(student, workers):
    """Leave a `for` after two batches, twice. Return all that came, and what it should be."""

    def body():
        made = [student.ResumableLoader(Listed(11), draw_one, 2, 4, workers) for _ in range(2)]
        expected = [[batch.tolist() for batch in made[0]] for _ in range(2)]
        got = []
        for _ in range(2):
            for number, batch in enumerate(made[1], 1):
                got.append(batch.tolist())
                if number == 2:
                    break
        got += [batch.tolist() for batch in made[1]]
        return {"expected": expected, "got": [got, [batch.tolist() for batch in made[1]]]}

    return apart(body, seconds=PATIENCE)


@probe
def resumable_states(student, workers):
    """Run an epoch and resume under two global states: are the batches and the states the same."""

    def body():
        runs, left = [], []
        for seed in (1, 2):
            torch.default_generator.manual_seed(seed)
            before = torch.default_generator.get_state()
            loader = student.ResumableLoader(Listed(7), draw_one, 2, 4, workers)
            runs.append([batch.tolist() for batch in loader])
            loader.load_state_dict(loader.state_dict())
            runs[-1] += [batch.tolist() for batch in loader]
            left.append(torch.equal(before, torch.default_generator.get_state()))
        return {"same": runs[0] == runs[1], "left": left}

    return apart(body, seconds=PATIENCE)
