"""Probes of `MiniLoader`: its passes, its errors and its ends."""

import gc
import itertools
import multiprocessing
import os
import signal
import threading

import torch
from torch.utils.data import Dataset

from grader import pause, probe, watch_events

from .running import bounded, noted, optional, until


class TwoWords(Exception):
    """Cannot be made from one string."""

    def __init__(self, one, two):
        super().__init__(one, two)


class OneWord(Exception):
    """Can."""


class Fetched(Dataset):
    """Sample i is the number 10 * i; each fetch is noted, and `before(i)` is called first."""

    def __init__(self, log, before=lambda index: None):
        self.log, self.before = log, before

    def __getitem__(self, index):
        self.log.note("fetch", index)
        self.before(index)
        return 10 * index


def with_pid(samples):
    """Collate to the samples and this process's id."""
    return samples, os.getpid()


def mini(student, *args):
    """Return a MiniLoader; it starts nothing yet."""
    return student.MiniLoader(*args)


def workers_alive():
    """Return the processes that were started with multiprocessing and have not ended."""
    return multiprocessing.active_children()


def by_number(pairs, batches):
    """Return pairs of a batch and something else in the order of `batches`."""
    number = {tuple(10 * index for index in batch): k for k, batch in enumerate(batches)}
    return sorted(pairs, key=lambda pair: number.get(tuple(pair[0]), -1))


def turns(pids):
    """Return pids as numbers by first appearance; the main process is -1."""
    order = {os.getpid(): -1}
    for pid in pids:
        order.setdefault(pid, len(order) - 1)
    return [order[pid] for pid in pids]


@probe
def mini_pass(student, batches, workers, twice):
    """Take a pass; if `twice`, two more side by side: batches, and which worker collated each."""

    def body():
        with watch_events() as log:
            loader = mini(student, Fetched(log), batches, with_pid, workers)
            found = [list(loader)]
            if twice:
                pairs = list(zip(iter(loader), iter(loader), strict=True))
                found += [[first for first, _ in pairs], [second for _, second in pairs]]
            fetchers = {pid for pid, kind, *_ in log.read() if kind == "fetch"}
        return {
            "batches": [[batch for batch, _ in one] for one in found],
            # by the batches' numbers, whatever their order
            "workers": [turns([pid for _, pid in by_number(one, batches)]) for one in found],
            "main fetched": os.getpid() in fetchers,
            "processes": len(fetchers),
        }

    doing = f"`list(MiniLoader(...))` of {len(batches)} batches with {workers} workers"
    return bounded(student.MiniLoader, doing, body)


@probe
def mini_slow_first(student, fails):
    """Two workers; batch 0 takes until batches 1 and 3 were fetched, or three seconds.

    Batch 1 is an error if `fails`. Return what each `next` gave, and whether batch 0 was alone.
    """

    def body():
        with watch_events() as log:

            def before(index):
                if index == 0:
                    log.note("beside", until(lambda: len(noted(log, "fetch")) >= 3))
                    pause(0.15)  # time for the others to be sent
                if index == 1 and fails:
                    raise OneWord("one")

            # batch 2 belongs to worker 0 and must wait for it
            loader = mini(student, Fetched(log, before), [[0], [1], [2], [3]], list, 2, 2)
            batches, order = iter(loader), []
            for _ in range(4):
                try:
                    order.append(next(batches))
                except (OneWord, StopIteration) as error:
                    order.append(type(error).__name__)
            pids = {index: pid for pid, kind, index in log.read() if kind == "fetch"}
            return {
                "order": order,
                "beside": noted(log, "beside"),
                "workers": turns([pids.get(index) for index in range(4)]),
            }

    doing = "two workers, of which one takes long over the first batch"
    return bounded(student.MiniLoader, doing, body)


@probe
def mini_lead(student, workers, factor, steps, length):
    """Return how many batches were drawn, and fetched, when `iter` and each `next` returned.

    Without a `factor` the default is left to the loader.
    """

    def body():
        with watch_events() as log:
            drawn = []

            def sampler():
                for number in itertools.count() if length is None else range(length):
                    if number > 300:
                        raise LookupError("300 batches were drawn in advance")
                    drawn.append(number)
                    yield [number]

            batches = iter(mini(student, Fetched(log), sampler(), list, workers, *optional(factor)))
            counts = [len(drawn)]
            for _ in range(steps):
                next(batches)
                counts.append(len(drawn))
            until(lambda: len(noted(log, "fetch")) >= len(drawn))
            pause(0.02)  # anything that should not be fetched has a moment to be
            fetched = len(noted(log, "fetch"))
            batches.close()
            return {"drawn": counts, "fetched": fetched}

    doing = f"`iter(loader)` and {steps} times `next`, with {workers} workers"
    return bounded(student.MiniLoader, doing, body)


@probe
def mini_late(student, workers):
    """Ask for the batches long after the workers had nothing left to do."""

    def body():
        with watch_events() as log:
            batches = [[index, index + 1] for index in range(2 * workers)]
            # a tensor in a queue is fetched from the process that made it
            passing = iter(mini(student, Fetched(log), batches, torch.tensor, workers, 2))
            until(lambda: len(noted(log, "fetch")) == 4 * workers)
            found = []
            try:
                for _ in range(2):  # the second time a loader may know that no more will come
                    pause(0.3)  # time for workers to leave, if they do
                    found.append(next(passing).tolist())
                found += [batch.tolist() for batch in passing]
            except (OSError, EOFError, RuntimeError):
                return "the process that made it was gone"
            return sorted(found)

    doing = f"`next` after a pause, with {workers} workers"
    return bounded(student.MiniLoader, doing, body)


def failing(kind):
    """Return a function that raises at sample 2."""

    def cannot_read(index):
        if index == 2:
            if kind == "two words":
                raise TwoWords(f"sample {index} is", "broken")
            raise {"lookup": LookupError, "own": OneWord}[kind](f"sample {index} is broken")

    return cannot_read


@probe
def mini_error(student, kind, where, factor):
    """Return what each `next` of one worker gave: a batch's numbers, or an error's type and what it
    tells.
    """

    def body():
        with watch_events() as log:
            fails = failing(kind)

            def collate(samples):
                for sample in samples:
                    fails(sample // 10)
                return samples

            dataset = Fetched(log, fails if where == "dataset" else lambda index: None)
            function = list if where == "dataset" else collate
            asked = [[0], [1, 2], [3], [4], [5]]
            batches = iter(mini(student, dataset, asked, function, 1, factor))
            seen = []
            for _ in range(5):
                try:
                    seen.append(next(batches))
                except Exception as error:
                    seen.append([type(error).__name__, told(error)])
            batches.close()
            return {"seen": seen, "left": len(workers_alive())}

    doing = "five times `next` with one worker, the second batch an error, then `close()`"
    return bounded(student.MiniLoader, doing, body)


def told(error):
    """Return which parts of a worker's traceback an error's message has."""
    text = str(error.args[0]) if error.args else ""
    # a traceback quotes lines of source; these words stand in none
    parts = ("Traceback", "in cannot_read", "sample 2 is")
    return [part for part in parts if part in text]


@probe
def mini_nothing(student, workers):
    """Return the batches of a `collate_fn` that returns None, one for each worker and one more."""

    def body():
        with watch_events() as log:
            asked = [[number] for number in range(workers + 1)]
            return list(mini(student, Fetched(log), asked, lambda samples: None, workers))

    doing = f"`list(MiniLoader(...))` with {workers} workers, where `collate_fn` returns None"
    return bounded(student.MiniLoader, doing, body)


@probe
def mini_killed(student, workers, tensors):
    """A worker is killed in its second batch. Return what `next` gave last.

    tensors: whether batches are tensors, and `next` is called when the worker has gone
    """

    def body():
        with watch_events() as log:

            def die(index):
                if index == workers:
                    pause(0.1)  # its first batch is in the queue by then
                    os.kill(os.getpid(), signal.SIGKILL)

            collate = torch.tensor if tensors else list
            batches = iter(
                mini(student, Fetched(log, die), [[n] for n in range(9)], collate, workers, 2)
            )
            if tensors:
                until(lambda: len(workers_alive()) < workers)
            kinds = []
            try:
                for batch in batches:
                    kinds.append(batch)
            except Exception as error:
                kinds.append(type(error).__name__)
            return kinds[-1]

    doing = f"`next`, where one of {workers} workers was killed in its second batch"
    return bounded(student.MiniLoader, doing, body)


@probe
def mini_end(student, how, large):
    """End a pass in one way. Return the workers' exit codes, who is left, and what comes after."""

    def body():
        with watch_events() as log:

            def collate(samples):
                # text is copied through the queue, and a pipe holds 64 kB
                return "x" * 300_000 if large else samples

            batches = iter(mini(student, Fetched(log), [[n] for n in range(8)], collate, 2, 3))
            workers = workers_alive()
            if how == "closed unread":
                batches.close()
                return {"codes": [w.exitcode for w in workers], "left": len(workers_alive())}
            next(batches)
            if how == "exhausted":
                for _ in batches:
                    pass
            elif how == "dropped":
                del batches
                gc.collect()
            else:
                # whatever fits into the pipe is there
                until(lambda: len(noted(log, "fetch")) == 7)
                pause(0.05)
                batches.close()
            left = len(workers_alive())
            after = []
            if how != "dropped":
                batches.close()
                after = [next(batches, "nothing") for _ in range(2)]
            codes = [worker.exitcode for worker in workers]
            return {"codes": codes, "left": left, "after": after}

    doing = f"a pass that is {how}, with two workers and {'large' if large else 'small'} batches"
    return bounded(student.MiniLoader, doing, body)


@probe
def mini_begun(student, workers):
    """Close while each worker is at its first batch. Return how many samples were fetched."""

    def body():
        context = multiprocessing.get_context("fork")
        go = context.Event()
        with watch_events() as log:
            dataset = Fetched(log, lambda index: go.wait(3))
            batches = iter(
                mini(
                    student,
                    dataset,
                    [[2 * n, 2 * n + 1] for n in range(99)],
                    list,
                    workers,
                    6,
                )
            )
            until(lambda: len(noted(log, "fetch")) == workers)
            threading.Timer(0.4, go.set).start()
            batches.close()
            return len(noted(log, "fetch"))

    doing = f"`close()` while each of {workers} workers is at its first batch"
    return bounded(student.MiniLoader, doing, body)
