"""Chapter 6's probes: all of the chapter that runs beside a student's code."""

import builtins
import gc
import itertools
import json
import multiprocessing
import os
import random
import signal
import threading
import time
from collections import OrderedDict, namedtuple
from collections.abc import Mapping
from types import MappingProxyType
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

from grader import probe
from grader.instruments.apart import Hung, apart
from grader.instruments.events import watch_events
from grader.instruments.ops import watch_ops
from grader.instruments.patience import pause

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
    """Return batch and mask."""
    result = student.pad_collate(samples, **options)
    batch, mask = result
    return {"pair": type(result).__name__, "batch": copy_of(batch), "mask": copy_of(mask)}


def copy_of(value):
    """Return a tensor's copy, and anything else as it is."""
    return value.clone() if isinstance(value, torch.Tensor) else value


@probe
def padded_over(student, samples):
    """Return copies of the samples as they are once batch and mask were written over."""
    mine = [sample.clone(memory_format=torch.preserve_format) for sample in samples]
    for tensor in student.pad_collate(mine):
        if isinstance(tensor, torch.Tensor):
            write_over(tensor)
    return [sample.clone() for sample in mine]


HANGS = WeakKeyDictionary()
"""How often programs that use a class of the student's have hung. After three, a fourth would
only cost time."""


PATIENCE = 20.0
"""Seconds for several passes of DataLoaders, in exercises where waiting for ever is no mistake that
learners make: long enough for a machine that has ten times too much to do."""


def bounded(student_class, body):
    """Run `body` in a fork of its own with a limit, unless this class hung three times."""
    if HANGS.get(student_class, 0) >= 3:
        raise Hung("not run: three programs before this one hung")
    try:
        return apart(body)
    except Hung:
        HANGS[student_class] = HANGS.get(student_class, 0) + 1
        raise


def until(condition, seconds=3.0):
    """Wait until `condition()` holds; say whether it did within `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.002)
    return True


def noted(log, name):
    """Return what was noted under `name`, in order."""
    return [rest for _, kind, *rest in log.read() if kind == name]


# MiniLoader


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


def optional(value):
    """Return the arguments that a value makes; none for the default."""
    return () if value is None else (value,)


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

    return bounded(student.MiniLoader, body)


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

    return bounded(student.MiniLoader, body)


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

    return bounded(student.MiniLoader, body)


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
            except (OSError, EOFError):
                return "the process that made it was gone"
            return sorted(found)

    return bounded(student.MiniLoader, body)


def failing(kind):
    """Return a function that raises at sample 2."""

    def cannot_read(index):
        if index == 2:
            if kind == "two words":
                raise TwoWords(f"sample {index} is", "broken")
            raise {"lookup": LookupError, "own": OneWord}[kind](f"sample {index} is broken")

    return cannot_read


@probe
def mini_error(student, kind, where):
    """Return what each `next` gave: a batch's numbers, or an error's type and what it tells."""

    def body():
        with watch_events() as log:
            fails = failing(kind)

            def collate(samples):
                for sample in samples:
                    fails(sample // 10)
                return samples

            dataset = Fetched(log, fails if where == "dataset" else lambda index: None)
            function = list if where == "dataset" else collate
            batches = iter(mini(student, dataset, [[0], [1, 2], [3], [4], [5]], function, 1, 2))
            seen = []
            for _ in range(5):
                try:
                    seen.append(next(batches))
                except Exception as error:
                    seen.append([type(error).__name__, told(error)])
            batches.close()
            return {"seen": seen, "left": len(workers_alive())}

    return bounded(student.MiniLoader, body)


def told(error):
    """Return which parts of a worker's traceback an error's message has."""
    text = str(error.args[0]) if error.args else ""
    # a traceback quotes lines of source; these words stand in none
    parts = ("Traceback", "in cannot_read", "sample 2 is")
    return [part for part in parts if part in text]


@probe
def mini_killed(student, workers):
    """A worker is killed in its second batch. Return what `next` gave, to the end."""

    def body():
        with watch_events() as log:

            def die(index):
                if index == workers:
                    os.kill(os.getpid(), signal.SIGKILL)

            batches = iter(
                mini(student, Fetched(log, die), [[n] for n in range(9)], list, workers, 2)
            )
            kinds = []
            try:
                for batch in batches:
                    kinds.append(batch)
            except Exception as error:
                kinds.append(type(error).__name__)
            return kinds[-1]

    return bounded(student.MiniLoader, body)


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

    return bounded(student.MiniLoader, body)


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

    return bounded(student.MiniLoader, body)


# augment


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


# ResumableLoader


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
            second.load_state_dict(json.loads(text))
            rest = [batch.tolist() for batch in second]
            fetched = sorted(index for (index,) in noted(log, "fetch"))
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


# sharded_stream


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
def shares_of(student, items, world_size):
    """Return each rank's items of a stream of anything, read once."""
    return [
        list(student.sharded_stream(iter(items), rank, world_size, 2)) for rank in range(world_size)
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


# prefetch_plan


@probe
def planned(student, cases):
    """Return the plan of each case."""
    return [student.prefetch_plan(list(case[0]), *case[1:]) for case in cases]


# zero_copy


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
