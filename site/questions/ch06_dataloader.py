# Loading data: questions, answers, and programs that show them.

# %% why-is-my-dataloader-slow
# Why is my DataLoader slow?
#
# First find out whether it is. Time one epoch over the loader alone, without the model. If that is faster than training, the loader is not what you wait for.
#
# With `num_workers=0` loading and training take turns. With workers, batches are loaded ahead: `prefetch_factor` × `num_workers` of them. Throughput is then `num_workers` divided by the time of one batch, until the processors or the disk are full.
#
# Then the usual suspects. Decoding large images only to shrink them. Workers started anew each epoch (`persistent_workers=True`). One slow sample holding all others back, because batches come in order (`in_order=False`). Each worker using all cores for its own threads. And many small Python objects to pickle: return tensors.
#
# Look: dataloader/slow#samples=16&batch_size=2&num_workers=2&slow=4&at=24 | One slow sample: its batch is late, and finished ones wait behind it.
#
# Go on: ch06_dataloader#prefetch_plan, ch06_dataloader#who-does-what, myths#first-come-first-served
import torch
from torch.utils.data import DataLoader, Dataset


class Counting(Dataset):
    def __init__(self):
        self.loaded = torch.zeros(
            1, dtype=torch.int64
        ).share_memory_()  # seen by all processes

    def __len__(self):
        return 64

    def __getitem__(self, index):
        self.loaded += 1
        return index


for workers in (0, 1):
    data = Counting()
    extra = {"prefetch_factor": 3} if workers else {}
    batches = iter(DataLoader(data, batch_size=2, num_workers=workers, **extra))
    next(batches)
    while workers and data.loaded < 8:
        pass  # the worker goes on while we do nothing
    loaded = data.loaded.item()
    print(workers, "workers: after one batch", loaded, "samples were loaded")

# %% how-many-num-workers
# How do I choose num_workers?
#
# Measure. As many as hide loading behind training: the time to load a batch divided by the time to train on it, rounded up, and a few more if loading times vary. Beyond the number of cores that you may use, more workers are slower. Each costs memory: its own copy of what the dataset makes, and `prefetch_factor` batches.
#
# Zero is right for data that lie in memory: handing a batch from process to process costs more than indexing.
#
# In containers `os.cpu_count()` may count all of the machine's cores; `len(os.sched_getaffinity(0))` counts those that you may run on, and neither knows of a quota. With DDP each rank starts its own workers: divide by the ranks.
#
# The order of batches is the same for any number of workers.
#
# Look: dataloader/workers#num_workers=3&load=4&work=4&at=30 | Turn the number of workers and see where the gaps between batches close.
#
# Go on: ch06_dataloader#prefetch_plan, ch06_dataloader#who-does-what
import torch
from torch.utils.data import DataLoader, get_worker_info


def who(samples):
    return samples, get_worker_info().id if get_worker_info() else "main"


for workers in (0, 2, 3):
    loader = DataLoader(
        range(10), batch_size=2, num_workers=workers, collate_fn=who
    )
    batches = list(loader)
    print(workers, "workers:", [samples for samples, _ in batches])
    print("  loaded by", [who for _, who in batches])

# %% pin-memory
# What does pin_memory=True do, and should I use it?
#
# It copies each batch into memory that the operating system may not move or swap out. From there a GPU can fetch it by itself, so `batch.to("cuda", non_blocking=True)` returns at once and the copy runs beside your computation. Without pinning, `non_blocking` does not overlap.
#
# Use both together, with a GPU, when copying the batch takes time that you can see. Without a GPU it does nothing but warn.
#
# The pinning is done by a thread in the main process, one more copy per batch. It looks into tensors, lists, tuples and dicts. A batch class of your own needs a method `pin_memory`, else it comes back as it was.
#
# Do not overwrite a pinned buffer before its copy has finished.
#
# Go on: ch06_dataloader#what-pinning-is, ch06_dataloader#zero_copy, myths#pinning-is-free
import warnings

import torch
from torch.utils.data._utils.pin_memory import pin_memory

visited = []


class Batch:  # without a method of its own
    pass


class Watched:
    def __init__(self, name):
        self.name = name

    def pin_memory(self, *device):
        visited.append(self.name)
        return self


mine = Batch()
mine.inside = Watched("in an attribute of a class")
listed, named = Watched("in a list"), {"x": Watched("in a dict")}
pin_memory([listed, named, (Watched("in a tuple"),), mine])
print("pinned:", visited)

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    batch = next(iter(torch.utils.data.DataLoader([1.0], pin_memory=True)))
if not torch.accelerator.is_available():
    print(str(caught[0].message).partition(",")[0])

# %% workers-have-the-same-random-numbers
# Why do all DataLoader workers produce the same random numbers?
#
# A forked worker inherits the state of every generator of the parent. PyTorch gives each worker a seed of its own for `torch` and `random`, and for NumPy's global generator as well in today's versions; in those before 1.9 NumPy was left out, which is the old famous bug.
#
# What nobody reseeds is a generator of your own: `self.rng = numpy.random.default_rng(0)` in the dataset is copied with its state, so every worker draws the same. And in every epoch again, since workers start from the same copy.
#
# Make it in `worker_init_fn`, seeded by `torch.initial_seed()`, or derive the seed from seed, epoch and index of the sample. The latter gives the same augmentations for any number of workers.
#
# Go on: ch06_dataloader#isolated_rng, ch06_dataloader#augment, myths#workers-have-own-seeds
import random

import numpy
import torch
from torch.utils.data import DataLoader, Dataset, get_worker_info


class Draws(Dataset):
    def __init__(self):
        self.own = numpy.random.default_rng(0)

    def __len__(self):
        return 2

    def __getitem__(self, index):
        return (
            torch.rand(1).item(),
            random.random(),
            numpy.random.rand(),
            self.own.random(),
        )


def reseed(worker):
    get_worker_info().dataset.own = numpy.random.default_rng(
        torch.initial_seed()
    )


for text, init in [("as it is:", None), ("worker_init_fn:", reseed)]:
    first, second = DataLoader(
        Draws(), batch_size=None, num_workers=2, worker_init_fn=init
    )
    same = ["same" if a == b else "differ" for a, b in zip(first, second)]
    print(text, dict(zip(("torch", "random", "numpy", "own"), same)))

# %% reproducible-dataloader
# How do I make a DataLoader reproducible?
#
# Give it a generator: `DataLoader(..., shuffle=True, generator=torch.Generator().manual_seed(0))`. The order of the samples and the workers' seeds come from it. Without one both come from the global generator, so every call of `torch.rand` before the epoch changes the order.
#
# The generator moves on: the second epoch has another order, and two runs have the same second epoch. To start again at epoch n, seed it by n at the beginning of each epoch.
#
# Random augmentations depend on which worker loads which sample, so another `num_workers` gives other ones, unless they are seeded by the sample.
#
# With `in_order=False` the order depends on timing. Nothing makes that reproducible.
#
# Go on: ch06_dataloader#an-epoch-that-can-be-repeated, ch06_dataloader#augment, ch06_dataloader#ResumableLoader, myths#a-seed-is-enough
import torch
from torch.utils.data import DataLoader


def epochs(own, before):
    torch.manual_seed(0)
    torch.rand(before)  # somebody else draws, too
    generator = torch.Generator().manual_seed(0) if own else None
    loader = DataLoader(
        range(1000), batch_size=None, shuffle=True, generator=generator
    )
    return [list(loader), list(loader)]


for own in (False, True):
    a, b = epochs(own, before=0), epochs(own, before=1)
    print("own generator:" if own else "global:       ", end=" ")
    print("same order after another draw:", a == b, end="; ")
    print("epochs differ:", a[0] != a[1])

# %% stack-expects-each-tensor-to-be-equal-size
# What does "stack expects each tensor to be equal size" want?
#
# The default `collate` stacks the samples of a batch into one tensor, so they must have the same shape. One differs: a longer sentence, a grey image among colour ones, another number of boxes.
#
# Bring them to one shape in the dataset (resize, crop), or give a `collate_fn` that pads: `torch.nn.utils.rnn.pad_sequence(samples, batch_first=True)`, together with the lengths, so that attention and loss can leave the padding out. Or return a list, if the model takes one, as detectors do.
#
# Sort samples of like length into one batch, and less is padded. `collate_fn` runs in the worker; it must be picklable where workers are not forked, so no lambda.
#
# Go on: ch06_dataloader#pad_collate, ch06_dataloader#collate, ch06_dataloader#bucket_batches, myths#collate-concatenates
import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

sentences = [torch.ones(n) for n in (3, 5, 2, 4)]
try:
    next(iter(DataLoader(sentences, batch_size=2)))
except RuntimeError as error:
    print(error)


def padded(samples):
    return pad_sequence(samples, batch_first=True), torch.tensor(
        [len(s) for s in samples]
    )


for batch, lengths in DataLoader(sentences, batch_size=2, collate_fn=padded):
    wasted = batch.numel() - lengths.sum().item()
    print(tuple(batch.shape), lengths.tolist(), "padding:", wasted)
by_length = sorted(sentences, key=len)
sorted_batches = DataLoader(by_length, batch_size=2, collate_fn=padded)
wasted = sum(b.numel() - n.sum().item() for b, n in sorted_batches)
print("sorted, padding of all batches:", wasted)

# %% iterabledataset-duplicates
# Why does my IterableDataset give every sample twice?
#
# Each worker has its own copy of the dataset and iterates over all of it. With two workers everything comes twice, with four four times. Only for a map-style dataset does the loader share indices out.
#
# So each copy has to take its part: in `__iter__` ask `get_worker_info()`, which is `None` in the main process, and take every n-th sample or every n-th file. With DDP every rank has workers of its own: part number is rank × workers + worker.
#
# Share out files, not samples, if reading is what costs. The parts may then be uneven: ranks with fewer batches must be handled, or DDP hangs.
#
# Go on: ch06_dataloader#sharded_stream, ch06_dataloader#who-does-what, myths#streams-are-shared-out
from itertools import islice

import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class All(IterableDataset):
    def __iter__(self):
        return iter(range(6))


class Part(All):
    def __iter__(self):
        info = get_worker_info()
        number, of = (info.id, info.num_workers) if info else (0, 1)
        return islice(super().__iter__(), number, None, of)


for kind in (All, Part):
    print(
        kind.__name__, list(DataLoader(kind(), batch_size=None, num_workers=2))
    )

# %% dataset-forgets-what-it-cached
# Why does my dataset forget what it cached?
#
# `__getitem__` runs in the worker, on the worker's copy. What it remembers there, a cache, a counter, an epoch, stays in that process and dies with it at the end of the epoch. The object in your program never hears of it.
#
# With `persistent_workers=True` the processes live on, and so do their caches: one for each worker, each of the samples that it happened to load. The other direction has the same wall: `dataset.epoch = 3` in the main process does not reach workers that run already.
#
# For a cache that all share, fill it before the workers start, use shared memory (`tensor.share_memory_()`), or a memory-mapped file.
#
# Go on: ch06_dataloader#who-does-what, ch06_dataloader#zero_copy, myths#changes-come-back
import torch
from torch.utils.data import DataLoader, Dataset


class Caching(Dataset):
    def __init__(self):
        self.cache, self.shared = {}, torch.zeros(4).share_memory_()

    def __len__(self):
        return 4

    def __getitem__(self, index):
        known = index in self.cache
        self.cache[index] = self.shared[index] = 1
        return known


for persistent in (False, True):
    data = Caching()
    loader = DataLoader(
        data, batch_size=None, num_workers=1, persistent_workers=persistent
    )
    list(loader)
    print("persistent:" if persistent else "new workers:", end=" ")
    print("second epoch knows", sum(loader), "of 4; main has", len(data.cache))
    print("  shared memory has", int(data.shared.sum()))
