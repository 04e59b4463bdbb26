"""Workers: the reference solutions agree with DataLoader and with plain loops on many more cases."""

import json
from functools import partial
from itertools import chain
from random import Random

import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset
from torch.utils.data._utils import worker as torch_worker

from grader.ch06_dataloader.timelines import play
from grader.inside.instruments.apart import apart
from tests import references

reference = partial(references.reference, "ch06_dataloader")


def draw(sample, generator):
    return torch.tensor([sample, torch.randint(2**62, (), generator=generator).item()])


# sharded_stream


class Info:
    """What `get_worker_info` gives in a worker."""

    def __init__(self, number, workers):
        self.id, self.num_workers = number, workers


def share(monkeypatch, number, workers, *args):
    """Return a share as worker `number` of `workers` computes it; in this very process."""
    info = Info(number, workers) if workers else None
    monkeypatch.setattr(torch_worker, "_worker_info", info)
    items = list(reference("sharded_stream")(*args))
    monkeypatch.undo()
    return items


def test_streams_come_together_again(monkeypatch):
    random = Random(1)
    for _ in range(400):
        length, world_size = random.randrange(40), random.randrange(1, 6)
        batch_size, workers = random.randrange(1, 6), random.randrange(5)
        drop = random.random() < 0.5
        whole = length // world_size * world_size if drop else length
        for rank in range(world_size):
            args = (range(length), rank, world_size, batch_size, drop)
            parts = [share(monkeypatch, n, workers, *args) for n in range(workers or 1)]
            batches = [
                [part[k : k + batch_size] for k in range(0, len(part), batch_size)]
                for part in parts
            ]
            longest = max(map(len, batches))
            in_turn = [b[k] for k in range(longest) for b in batches if k < len(b)]
            assert list(chain.from_iterable(in_turn)) == list(range(rank, whole, world_size)), args


def test_loader_takes_turns_as_it_is_told_that_it_does():
    sharded_stream = reference("sharded_stream")

    class Share(IterableDataset):
        def __init__(self, *args):
            self.args = args

        def __iter__(self):
            return sharded_stream(*self.args)

    def body():
        for workers, batch_size, length in ((2, 3, 20), (3, 2, 13), (4, 1, 6)):
            dataset = Share(range(length), 1, 2, batch_size)
            loader = DataLoader(
                dataset, batch_size, num_workers=workers, multiprocessing_context="fork"
            )
            alone = DataLoader(dataset, batch_size)
            assert [b.tolist() for b in loader] == [b.tolist() for b in alone]
        return True

    assert apart(body, seconds=60)


# augment


def test_keys_hardly_ever_collide():
    augment, random = reference("augment"), Random(2)
    keys = {
        (random.randrange(2**63), random.randrange(2**31), random.randrange(2**31))
        for _ in range(4_000)
    }
    keys |= {(seed, epoch, index) for seed in range(8) for epoch in range(8) for index in range(60)}
    samples = range(2**31)
    seen = {augment(samples, draw, s, e)[i][1].item() for s, e, i in keys}
    assert len(keys) - len(seen) <= 2  # 2**32 beginnings: less than 0.01 are to be expected


# prefetch_plan


@pytest.mark.parametrize("longest", [1, 4, 30])
def test_plan_is_what_a_loader_would_do(longest):
    random = Random(longest)
    for _ in range(150):
        fetch = [random.randrange(longest + 1) for _ in range(random.randrange(20))]
        workers = random.randrange(5)
        case = fetch, random.randrange(8), workers, random.randrange(1, 4) if workers else None
        assert reference("prefetch_plan")(*case) == play(*case), case


def test_torch_hands_out_as_the_plan_says():
    """A delivery hands out the next batch: so many are drawn when each `next` returns."""

    def body():
        for workers, factor in ((1, 1), (2, 3), (3, 2)):
            drawn = []

            def sampler(drawn=drawn):
                for number in range(14):
                    drawn.append(number)
                    yield [number]

            loader = DataLoader(
                range(14),
                batch_sampler=sampler(),
                num_workers=workers,
                prefetch_factor=factor,
                multiprocessing_context="fork",
            )
            batches, lead = iter(loader), workers * factor
            assert len(drawn) == lead
            for step in range(1, 15):
                next(batches)
                assert len(drawn) == min(lead + step, 14)
        return True

    assert apart(body, seconds=60)


# MiniLoader


class Shaky(Dataset):
    """Squares; multiples of 11 cannot be read, in three ways."""

    def __getitem__(self, index):
        if index % 11 == 10:
            kinds = ValueError, ZeroDivisionError, UnicodeError
            raise kinds[index % 3](f"no sample {index}")
        return torch.tensor([index, index**2])


def outcomes(batches):
    """Return what each `next` gave: a batch, or a type of error."""
    found = []
    while True:
        try:
            found.append(next(batches).tolist())
        except StopIteration:
            return found
        except Exception as error:
            found.append((type(error).__name__, str(error).splitlines()[-1]))


def test_mini_loader_gives_what_torch_gives():
    mini = reference("MiniLoader")

    def body():
        random = Random(3)
        for workers in (1, 2, 4):
            sampler = [
                [random.randrange(30) for _ in range(random.randrange(1, 5))] for _ in range(12)
            ]
            ours = outcomes(iter(mini(Shaky(), sampler, torch.stack, workers, 2)))
            theirs = DataLoader(
                Shaky(), batch_sampler=sampler, num_workers=workers, multiprocessing_context="fork"
            )
            assert ours == outcomes(iter(theirs))
        return True

    assert apart(body, seconds=60)


# ResumableLoader


def test_any_stop_any_batch_size():
    make, random = reference("ResumableLoader"), Random(4)
    for _ in range(25):
        length, batch_size, seed = random.randrange(30), random.randrange(1, 7), random.random()
        whole = make(range(length), draw, batch_size, seed)
        expected = [[b.tolist() for b in whole] for _ in range(3)]
        for stop in range(len(expected[1]) + 1):
            first = make(range(length), draw, batch_size, seed)
            list(first)
            text = json.dumps(first.state_dict())
            for number, _ in enumerate(first, 1):
                if number == stop:
                    text = json.dumps(first.state_dict())
                    break
            second = make(range(length), draw, batch_size, -1)
            second.load_state_dict(json.loads(text))
            got = [[b.tolist() for b in second] for _ in range(2)]
            assert got == [expected[1][stop:], expected[2]]
