# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown] chapter="ch06_dataloader"
# title: DataLoader
# summary: >-
#   Between the files and the model stands a pipeline: who is drawn, in which order, by which
#   process, and in what shape it arrives. When it is wrong nothing raises. Samples are seen twice or
#   never, augmentations repeat, a metric counts its own padding. In this chapter you take the
#   pipeline apart: random streams, samplers, collate, workers. At the end you have built a
#   DataLoader of your own.
# preload: [torch.utils.data]

# %% [markdown]
# ## How to work
#
# Each exercise has a card, a few cells to read and run, and one cell to write: the one that
# raises `NotImplementedError`. The cell after it grades what you wrote, as often as you like.
#
# Where a cell calls `predict(...)`, write your guess in place of the dots before you run it.
# Nobody grades a guess.

# %%
import functools
import pickle
import random
import warnings
from collections.abc import Mapping

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, WeightedRandomSampler

from grader import grade, predict

# %% [markdown]
# ## Two questions
#
# A **map-style dataset** answers two questions: how many samples are there, and what is sample
# number `i`? Python's names for them are `__len__` and `__getitem__`. Nothing else is needed. A
# list is a dataset, and so is a tensor or a `range`.

# %%
squares = [n * n for n in range(5)]
print([batch.tolist() for batch in DataLoader(squares, batch_size=2)])

# %% [markdown]
# `Dataset` is a base class without a `__len__`. A class that leaves it out can be made, and so can its
# loader. The error comes with the first batch, far from the class that it is about. That `paths` was
# never set is not found out even then.


# %%
class Scans(Dataset):
    """Knows its samples by their numbers, but not how many there are."""

    def __getitem__(self, index):
        return self.paths[index]


loader = DataLoader(Scans(), batch_size=2)
print("made")
try:
    next(iter(loader))
except TypeError as error:
    print(error)

# %% [markdown]
# Everything between the two questions and a batch is small parts with a protocol each:
#
# | part | makes | from |
# |---|---|---|
# | sampler | an order of indices | the dataset's length |
# | batch sampler | lists of indices | the sampler |
# | fetcher | a list of samples | the dataset, one `__getitem__` per index |
# | collate | one batch | that list |
#
# A sampler is anything that can be iterated over, and so is a batch sampler. You can hand in lists:

# %%
print([b.tolist() for b in DataLoader(squares, sampler=[4, 4, 0], batch_size=2)])
print([b.tolist() for b in DataLoader(squares, batch_sampler=[[0], [3, 2, 1]])])

# %% [markdown]
# Collating is not what you switch on with `collate_fn=`: it happens unless you switch it off. With
# `batch_size=None` there are no lists to be made into batches, and each sample comes as it is.
#
# **Predict.** What is the type's name of the first thing that comes out of
# `DataLoader(squares, batch_size=None)`, and of `DataLoader(squares, batch_size=1)`? Write a pair,
# such as `("list", "str")`.

# %%
predict(
    ...,
    lambda: tuple(
        type(next(iter(DataLoader(squares, batch_size=size)))).__name__ for size in (None, 1)
    ),
)

# %% [markdown] exercise="isolated_rng"
# title: Keep random streams apart
# minutes: 30
# difficulty: 2
# points: 6
# prerequisites: []
# teaches: >-
#   that a random number is a position in a stream, that three modules have a stream each, and how
#   to leave a stream and come back to it.
# leaves out: streams of accelerators; NumPy's newer generators, which have no global stream.
# off limits: [torch.random.fork_rng]

# %% [markdown]
# A generator of random numbers is a **state** and a rule that makes a number and the next state.
# The seed says where the stream begins. It does not say where you are.

# %%
torch.manual_seed(5)
first = torch.rand(3)
position = torch.get_rng_state()
fourth = torch.rand(1)
torch.manual_seed(5)
print("the seed again:    ", torch.equal(torch.rand(1), first[:1]))
torch.set_rng_state(position)
print("the position again:", torch.equal(torch.rand(1), fourth))
print("seed of the stream:", torch.initial_seed())

# %% [markdown]
# There are three global streams: Python's `random`, NumPy's, and torch's. Seeding one leaves the
# others where they are. A `torch.Generator` is a stream of its own, with no connection to the global
# one. Make two without a seed, and they are not random either:

# %%
one, two = torch.Generator(), torch.Generator()
print(one.initial_seed() == two.initial_seed())
print(torch.equal(torch.rand(3, generator=one), torch.rand(3, generator=two)))

# %% [markdown]
# "Set the seed, and training is reproducible." As long as everybody who draws from the stream draws
# the same. A DataLoader draws one number from the global stream each time you iterate over it, even
# if it does not shuffle: workers are seeded with it. So a harmless look at the validation data
# changes what the *training* loader does afterwards:


# %%
def orders(validate):
    torch.manual_seed(0)
    for _ in range(2):
        yield [int(i) for i in DataLoader(range(6), shuffle=True)]
        if validate:
            list(DataLoader(range(3)))


print("without:", *orders(validate=False))
print("with:   ", *orders(validate=True))

# %% [markdown]
# The first epoch is the same, the second is not. Nothing is wrong with either. But you cannot
# compare two runs if one of them looked more often. A stream of its own for the training loader
# mends that: `DataLoader(..., generator=torch.Generator().manual_seed(0))`.
#
# What a *dataset* draws is another matter. Each worker has a stream of its own, so what a sample
# gets depends on how many workers there are:


# %%
class Noise(Dataset):
    """Four samples, each drawn when it is asked for."""

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return torch.rand(())


def noise(workers):
    torch.manual_seed(0)
    context = "fork" if workers else None
    patience = 20 if workers else 0
    loader = DataLoader(
        Noise(), num_workers=workers, multiprocessing_context=context, timeout=patience
    )
    return torch.cat(list(loader))


print("1 worker and 1 again:", torch.equal(noise(1), noise(1)))
print("1 worker and 2:      ", torch.equal(noise(1), noise(2)))
print("1 worker and none:   ", torch.equal(noise(1), noise(0)))

# %% [markdown]
# So there is a need for a fence: draw as much as you like inside, and nobody outside notices. To be
# useful it must hold all three streams, survive an error, and let you come back to the inner stream
# where you left it.
#
# **Predict.** `torch.randn(1)` makes two numbers and keeps one for the next call. Is that one part
# of the state? Here the state is taken between the two. Write `True` if the second comes back.


# %%
def second_comes_back():
    torch.manual_seed(1)
    torch.randn(1)
    state = torch.get_rng_state()
    second = torch.randn(1)
    torch.manual_seed(99)
    torch.set_rng_state(state)
    return torch.equal(torch.randn(1), second)


predict(..., second_comes_back)

# %% [markdown]
# **Write the class `isolated_rng(seed)`**, for use as `with isolated_rng(seed):`.
#
# - Inside, `random`, `np.random` and `torch` draw what they would draw after `random.seed(seed)`,
#   `np.random.seed(seed)` and `torch.manual_seed(seed)`.
# - Afterwards all three go on as if the block had not been there; also when it ended with an error,
#   which comes out.
# - An object can be entered again after it was left. Its streams then go on where they stopped.
# - Making an object touches no stream.
# - Blocks of different objects may be nested.
#
# `seed` is a whole number from 0 to $2^{32} - 1$. Only the CPU's streams count.
# `torch.random.fork_rng` is off limits.
#
# <details><summary>Hint 1: six functions</summary>
#
# `random.getstate` and `random.setstate`, `np.random.get_state` and `np.random.set_state`,
# `torch.get_rng_state` and `torch.set_rng_state`.
#
# </details>
# <details><summary>Hint 2: a swap</summary>
#
# Entering and leaving do the same: note where the three streams are, and put them somewhere else.
# What you note on leaving is where you go on when you come back.
#
# </details>
# <details><summary>Hint 3: the first time</summary>
#
# Seeding changes a global stream. Do it once the outer states are safe, or ask generators of your
# own for a state: `random.Random(seed)`, `np.random.RandomState(seed)` and
# `torch.Generator().manual_seed(seed)` begin where the global ones would.
#
# </details>


# %% solution="isolated_rng"
class isolated_rng:
    """A fence for the three global random streams.

    seed: where the streams inside begin, from 0 to 2**32 - 1
    """

    ### BEGIN SOLUTION
    def __init__(self, seed: int):
        # Generators of our own, for their states alone: no global stream was touched.
        self.inside = (
            random.Random(seed).getstate(),
            np.random.RandomState(seed).get_state(),
            torch.Generator().manual_seed(seed).get_state(),
        )

    def __enter__(self):
        self.outside = self.exchange(self.inside)

    def __exit__(self, *error):
        # Where the block stopped is where the next one goes on.
        self.inside = self.exchange(self.outside)

    @staticmethod
    def exchange(states: tuple) -> tuple:
        """Put the streams at `states`; return where they were."""
        before = random.getstate(), np.random.get_state(), torch.get_rng_state()
        python, numpy, ours = states
        random.setstate(python)
        np.random.set_state(numpy)
        torch.set_rng_state(ours)
        return before

    ### END SOLUTION


# %% grade="isolated_rng"
grade("isolated_rng")

# %% [markdown] exercise="weighted_indices"
# title: Draw with weights
# minutes: 30
# difficulty: 2
# points: 6
# prerequisites: []
# teaches: >-
#   how uniform random numbers become weighted choices, and what weights still mean when nothing is
#   drawn twice.
# leaves out: faster ways for many draws, such as alias tables and exponential races.
# off limits: [torch.multinomial, "aten:multinomial", random.choices, numpy.random.choice, torch.utils.data.WeightedRandomSampler, torch.distributions.Categorical]

# %% [markdown]
# Ninety samples of one class, nine of another, one of a third. A model that sees them as they come
# learns to say "the first". A `WeightedRandomSampler` draws rare samples more often. Its weights are
# not probabilities: they need not add up to 1. And there is one for each **sample**, not for each
# class. Hand in the three class weights and nothing raises:

# %%
labels = torch.tensor([0] * 90 + [1] * 9 + [2])
per_class = 1 / labels.bincount()
generator = torch.Generator().manual_seed(0)
print("indices:", sorted(set(WeightedRandomSampler(per_class, 100, generator=generator))))

per_sample = per_class[labels]
drawn = list(WeightedRandomSampler(per_sample, 900, generator=generator))
print("drawn of each class:", labels[drawn].bincount().tolist())

# %% [markdown]
# Three weights, so the sampler knows three samples: the first three, all of class 0. With a weight
# per sample the classes come equally often, and the only sample of class 2 some 300 times. A weight
# makes no new data.
#
# **Predict.** With `replacement=False` nothing is drawn twice. Ask for as many as there are, 100.
# How often does the sample of class 2 come, the one with the largest weight?

# %%
predict(
    ...,
    lambda: list(WeightedRandomSampler(per_sample, 100, replacement=False)).count(99),
)

# %% [markdown]
# Without replacement the weights decide who comes early. Draw everything, and they decide nothing
# but the order. Draw part of it, and the shares are not the weights either. Here one of five
# samples has half of all the weight, and three of the five are drawn, 2,000 times:

# %%
weights = torch.tensor([4.0, 1, 1, 1, 1])
generator = torch.Generator().manual_seed(0)
counts = torch.zeros(5, dtype=torch.int64)
for _ in range(2000):
    counts[list(WeightedRandomSampler(weights, 3, replacement=False, generator=generator))] += 1
print("times drawn, in hundreds:", (counts / 100).round().int().tolist())

# %% [markdown]
# The heavy one comes in nine rounds of ten, and each of the others in every second: not four to one.
#
# Behind all of this is one idea. Lay the weights end to end on a line, and throw a dart: a number
# $u$ that is uniform in $[0, 1)$, times the length of the line. The piece that it hits is drawn.
#
# ```
# weights 3, 0, 2, 5:   |--- 0 ---|-- 2 --|------ 3 ------|
#                       0         3       5              10
# ```
#
# Piece 1 has no length, and no dart hits it.
#
# **Write `weighted_indices(weights, uniforms, replacement)`.** `weights` is a tensor (n,) of any
# integer or floating dtype, `uniforms` a `float64` tensor (count,) of numbers $0 \le u < 1$. Return
# a list of `count` whole numbers, one for each $u$, in order.
#
# - With replacement, $u$ draws the index $i$ for which
#   $w_0 + \dots + w_{i-1} \le u \cdot W < w_0 + \dots + w_i$. $W$ is the sum of all weights.
# - Without, an index that was drawn is gone: for the next $u$ the line consists of the others, in
#   order, and $W$ is their sum.
# - Add up in `float64`, and compare $u \cdot W$ with sums of the weights. Weights that were divided
#   by $W$ first are rounded.
# - Raise `ValueError` if a weight is negative, infinite or NaN, or if there are too few positive
#   weights: without replacement each draw needs one, with replacement one is enough for all. No
#   `uniforms` need none.
#
# Do not change `weights`. `torch.multinomial` and its like are off limits.
#
# <details><summary>Hint 1: the ends of the pieces</summary>
#
# `cumsum` gives where each piece ends. The piece that is hit is the first that ends **after** the
# dart: count the ends that are not after it, or use `torch.searchsorted(ends, dart, right=True)`.
#
# </details>
# <details><summary>Hint 2: taking a piece away</summary>
#
# Give it the weight 0, in a copy of your own, and add up again. Then no other index moves.
#
# </details>
# <details><summary>Hint 3: float32</summary>
#
# A `float32` sum of $2^{24}$ does not take up a 1. Convert the weights before you add.
#
# </details>


# %% solution="weighted_indices"
def weighted_indices(weights: torch.Tensor, uniforms: torch.Tensor, replacement: bool) -> list[int]:
    """Return one index for each uniform number, drawn by weight.

    weights: (n,), any integer or floating dtype
    uniforms: float64 (count,), each at least 0 and less than 1
    replacement: whether an index may be drawn more than once
    """
    ### BEGIN SOLUTION
    left = weights.double().clone()  # `double` copies nothing if it is float64 already
    if not bool((left.isfinite() & (left >= 0)).all()):
        raise ValueError("weights must be finite and not negative")
    positive = int((left > 0).sum())
    if positive < (min(1, len(uniforms)) if replacement else len(uniforms)):
        raise ValueError(f"{len(uniforms)} draws, and {positive} positive weights")
    drawn = []
    for u in uniforms:
        ends = left.cumsum(0)
        # `right`: a dart at the end of a piece belongs to the next that has a length
        index = int(torch.searchsorted(ends, u * ends[-1], right=True))
        drawn.append(index)
        if not replacement:
            left[index] = 0
    return drawn
    ### END SOLUTION


# %% grade="weighted_indices"
grade("weighted_indices")

# %% [markdown] exercise="bucket_batches"
# title: Batch what is of like length
# minutes: 35
# difficulty: 3
# points: 7
# prerequisites: []
# teaches: >-
#   what padding costs, how buckets bound it, and what has to stay random when samples are sorted
#   into them.
# leaves out: sharing the batches among ranks; lengths that are not known before a sample is read.
# off limits: []

# %% [markdown]
# Sentences have different lengths, and a batch is a rectangle. Short ones are filled up to the
# longest of the batch, and every filled cell is computed like any other. How many there are is
# decided by who meets whom:

# %%
generator = torch.Generator().manual_seed(0)
lengths = torch.randint(8, 64, (1000,), generator=generator) ** 2 // 32


def wasted(batches):
    cells = sum(len(batch) * int(lengths[batch].max()) for batch in batches)
    return f"{100 - 100 * int(lengths.sum()) // cells}% of all cells are padding"


shuffled = torch.randperm(1000, generator=generator)
print("shuffled:", wasted(shuffled.split(20)))
print("sorted:  ", wasted(lengths.argsort(stable=True).split(20)))
for size in (40, 200):
    pools = [pool[lengths[pool].argsort(stable=True)] for pool in shuffled.split(size)]
    print(f"in pools of {size:>3}:", wasted(torch.cat(pools).split(20)))

# %% [markdown]
# Sorting wins, and gives the same batches in the same order in every epoch: the model sees all
# short sentences first. Sorting within pools of a shuffled order is a compromise. So is a fixed
# set of **buckets**. A sample goes into the first bucket whose boundary it does not exceed, and is
# padded to that boundary. If each boundary is twice the one before, less than half of a row is
# padding, for every sample longer than the first boundary. There is no epoch with bad luck.
#
# There is a second gain: batches come in as many widths as there are buckets. A compiled model, or
# one whose memory is planned ahead, has few shapes to know.
#
# The size of a batch should go with its width. Eight rows of 512 cost as much as 64 rows of 64. So
# the budget is in **cells**, rows times width.
#
# **Predict.** Boundaries 8, 16, 32, 64, 128 and at most 2,048 cells: how many rows has a full batch
# of the samples that are 33 long?

# %%
predict(
    ...,
    lambda: 2048 // next(b for b in (8, 16, 32, 64, 128) if b >= 33),
)

# %% [markdown]
# A batch sampler may be any iterable of lists, so one epoch of yours can be handed to
# `DataLoader(..., batch_sampler=...)` as it is.
#
# **Write `bucket_batches(lengths, boundaries, max_cells, generator)`.** `lengths` is an integer
# tensor (n,), none negative. `boundaries` is a list of whole numbers, each larger than the one
# before; the first is positive, and none exceeds `max_cells`. Return one epoch: a list of batches,
# each a list of indices.
#
# - Every index comes once.
# - A sample belongs to the first boundary that is not less than its length. A batch holds samples of
#   one boundary.
# - A batch of boundary `b` has as many samples as fit: `max_cells // b`. Of each boundary's batches, one
#   may have fewer, but not none.
# - Which samples of a boundary meet in a batch is random.
# - The order of the batches is random: all of them are shuffled, of every boundary, small ones too.
# - All randomness comes from `generator`. An epoch moves it on, so that the next one is another. No
#   global stream is touched.
# - A sample longer than the last boundary raises `ValueError`.
#
# <details><summary>Hint 1: which bucket</summary>
#
# `torch.bucketize(lengths, torch.tensor(boundaries))` counts, for each length, the boundaries that are
# less than it. That is the number of its bucket.
#
# </details>
# <details><summary>Hint 2: two shuffles</summary>
#
# Shuffle the members of a bucket before you cut them into batches. When the batches of all buckets
# are in one list, shuffle that.
#
# </details>
# <details><summary>Hint 3: an empty bucket</summary>
#
# `split` of a tensor without elements gives one part without elements. That is no batch.
#
# </details>


# %% solution="bucket_batches"
def bucket_batches(
    lengths: torch.Tensor, boundaries: list[int], max_cells: int, generator: torch.Generator
) -> list[list[int]]:
    """Return the batches of one epoch, as lists of indices.

    lengths: any integer dtype, (n,)
    boundaries: increasing; a sample is padded to the first that is not less than its length
    max_cells: most rows times width of a batch
    """
    ### BEGIN SOLUTION
    bucket = torch.bucketize(lengths, torch.tensor(boundaries))
    if bool((bucket == len(boundaries)).any()):
        raise ValueError("a sample is longer than the last boundary")
    batches = []
    for number, boundary in enumerate(boundaries):
        members = (bucket == number).nonzero().flatten()
        # This shuffle decides who meets whom ...
        members = members[torch.randperm(len(members), generator=generator)].tolist()
        rows = max_cells // boundary
        batches += [members[start : start + rows] for start in range(0, len(members), rows)]
    # ... and this one when. Without it the model would see all short samples first.
    order = torch.randperm(len(batches), generator=generator)
    return [batches[position] for position in order.tolist()]
    ### END SOLUTION


# %% grade="bucket_batches"
grade("bucket_batches")

# %% [markdown] exercise="distributed_indices"
# title: Share an epoch among ranks
# minutes: 35
# difficulty: 3
# points: 9
# prerequisites: []
# teaches: >-
#   how ranks agree on one order without a message, what padding does to a metric, and how to go on
#   with another number of ranks.
# leaves out: the process group itself, which chapter 8 is about; batches.
# off limits: [torch.utils.data.DistributedSampler, torch.utils.data.distributed.DistributedSampler]

# %% [markdown]
# Several processes train one model, each on its part of an epoch. They are called **ranks**, and
# there are `world_size` of them. No rank tells another what to take. Each computes the same order
# from the same seed and takes every `world_size`-th index, beginning with its own number.
#
# "A `DistributedSampler` gives disjoint parts." Ten samples, three ranks:

# %%
parts = [
    list(torch.utils.data.DistributedSampler(range(10), 3, rank, shuffle=False))
    for rank in range(3)
]
print(*parts, sep="\n")

# %% [markdown]
# Twelve indices. Samples 0 and 1 come twice. A rank with one batch less would leave the others
# waiting for its gradients, so the order is **padded**: it is continued from its beginning until it
# can be shared evenly. In training this hardly matters. In a metric it does. Here a model is wrong
# about sample 5 and right about the nine others:

# %%
right = torch.ones(10)
right[5] = 0
seen = torch.tensor([index for part in parts for index in part])
print(f"measured: {right[seen].mean():.3f}   true: {right.mean():.3f}")

# %% [markdown]
# Nothing raised, and each number of ranks gives another accuracy. Two ways out: do not pad when you
# evaluate, or know which entries are padding and leave them out.
#
# Next: does every epoch have an order of its own? With `shuffle=True` on one process, yes. Here the
# order follows from seed and epoch alone, and nobody but you knows the epoch:

# %%
sampler = torch.utils.data.DistributedSampler(range(8), 2, 0)
print(list(sampler), list(sampler))
sampler.set_epoch(1)
print(list(sampler))

# %% [markdown]
# Without `set_epoch` every epoch is the first one.
#
# **Predict.** The two are added: the generator is seeded with `seed + epoch`. You repeat a run with
# seed 1 instead of 0, to see how much luck there was. How many of its first nine epochs have an
# order that the run with seed 0 has in its first ten?


# %%
def orders_in_common():
    def order(seed, epoch):
        sampler = torch.utils.data.DistributedSampler(range(50), 2, 0, seed=seed)
        sampler.set_epoch(epoch)
        return tuple(sampler)

    first_run = {order(0, epoch) for epoch in range(10)}
    return sum(order(1, epoch) in first_run for epoch in range(9))


predict(..., orders_in_common)

# %% [markdown]
# **Write `distributed_indices(n, rank, world_size, *, epoch=0, seed=0, shuffle=True, uneven="pad",
# consumed=0)`.** Return two lists of equal length: the indices that `rank` reads in this epoch, in
# order, and for each a `bool` that says whether it is **real**, that is, not padding.
#
# - The order of an epoch is `torch.randperm(n, generator=…)`, from a generator seeded with
#   `seed + epoch`. Without `shuffle` it is 0 to n - 1.
# - The first `consumed` of this order were read before the run was interrupted, perhaps by another
#   number of ranks. They are left out. `consumed` is at least 0 and at most `n`.
# - `uneven` says what happens if the rest cannot be shared evenly. `"pad"`: it is continued from its
#   own beginning, and again from there if need be, until it can. `"drop"`: as few as possible are
#   cut off its end. `"keep"`: nothing, and some ranks have one sample more.
# - Of what there is then, `rank` takes every `world_size`-th, beginning with number `rank`.
# - Raise `ValueError` if `rank` is not one of 0 to `world_size - 1`, or if `uneven` is another word.
# - No global stream is read or moved.
#
# With the defaults you get the indices that torch's `DistributedSampler` gives.
#
# <details><summary>Hint 1: one list first</summary>
#
# Write down the whole list that all ranks share, in the order in which it is shared. Taking a
# rank's part of it is one slice.
#
# </details>
# <details><summary>Hint 2: more ranks than samples</summary>
#
# Two samples for five ranks: the padding is longer than what it is taken from. Take position
# `p % len(rest)` for each position `p`. If nothing is left, there is nothing to repeat.
#
# </details>
# <details><summary>Hint 3: what is real</summary>
#
# Positions tell, not indices: what stands before the end of the rest is real.
#
# </details>


# %% solution="distributed_indices"
def distributed_indices(
    n: int,
    rank: int,
    world_size: int,
    *,
    epoch: int = 0,
    seed: int = 0,
    shuffle: bool = True,
    uneven: str = "pad",
    consumed: int = 0,
) -> tuple[list[int], list[bool]]:
    """Return what a rank reads in an epoch, and which of it is not padding.

    n: how many samples there are
    uneven: "pad", "drop" or "keep"
    consumed: how many of the epoch's order were read already
    """
    ### BEGIN SOLUTION
    if not 0 <= rank < world_size:
        raise ValueError(f"rank {rank} of {world_size}")
    # The same on every rank: that is why no message is needed.
    generator = torch.Generator().manual_seed(seed + epoch)
    order = torch.randperm(n, generator=generator).tolist() if shuffle else list(range(n))
    rest = order[consumed:]
    if uneven == "pad":
        total = -(-len(rest) // world_size) * world_size  # rounded up
    elif uneven == "drop":
        total = len(rest) // world_size * world_size
    elif uneven == "keep":
        total = len(rest)
    else:
        raise ValueError(f"uneven is {uneven!r}")
    positions = range(rank, total, world_size)
    indices = [rest[position % len(rest)] for position in positions]
    return indices, [position < len(rest) for position in positions]
    ### END SOLUTION


# %% grade="distributed_indices"
grade("distributed_indices")

# %% [markdown] exercise="collate"
# title: Turn samples into a batch
# minutes: 35
# difficulty: 3
# points: 8
# prerequisites: []
# teaches: >-
#   what the default collate does with tensors, numbers, strings and containers of them, and where
#   dtypes come from.
# leaves out: samples of different shapes, which is the next exercise; sparse and nested tensors.
# off limits: [torch.utils.data.default_collate, torch.utils.data._utils.collate.default_collate, torch.utils.data._utils.collate.collate]

# %% [markdown]
# A dataset gives samples one by one, and a model wants a batch. `default_collate` turns a list of
# samples inside out: a list of dicts becomes a dict of tensors. Tensors are **stacked** along a new
# first dimension. They are not concatenated, and they must have one shape:

# %%
three = torch.zeros(3)
print(torch.utils.data.default_collate([three, three]).shape)
try:
    torch.utils.data.default_collate([three, three[:2]])
except RuntimeError as error:
    print(error)

# %%
samples = [
    {"image": torch.zeros(3, 4), "label": 7, "name": "a.png", "size": (0.5, 2)},
    {"image": torch.ones(3, 4), "label": 1, "name": "b.png", "size": (1.5, 3)},
]
batch = torch.utils.data.default_collate(samples)
print("image", tuple(batch["image"].shape))
print("label", batch["label"])
print("name ", batch["name"])
print("size ", batch["size"])

# %% [markdown]
# Look at `size`: two tensors, one for each place of the pair. All first entries are together, all
# second ones too. And look at the dtype: a Python `float` is a `float64`, and stays one. A model in
# `float32` will not take it. A tensor or a NumPy array keeps the dtype it has.
#
# Which kind of number it is, `default_collate` decides by the **first** sample alone.
#
# **Predict.** Some labels of a dataset are whole, such as `1`, others not, such as `2.5`. What are
# the dtypes of `default_collate([1, 2.5])` and of `default_collate([2.5, 1])`? Write a pair, such as
# `("int64", "float64")`.

# %%
predict(
    ...,
    lambda: tuple(
        str(torch.utils.data.default_collate(pair).dtype).removeprefix("torch.")
        for pair in ([1, 2.5], [2.5, 1])
    ),
)

# %% [markdown]
# So the dtype of a batch can depend on how it was shuffled. Return tensors from your dataset, and
# nothing is left to guess.
#
# **Write `collate(samples)`.** `samples` is a list of at least one sample, all built alike. What
# becomes of them:
#
# | samples | batch |
# |---|---|
# | tensors of shape (...) | a tensor (batch, ...), a copy |
# | NumPy arrays or scalars | the same, with the dtype that they have |
# | `bool`, `int` or `float` | a tensor (batch,): `bool`, `int64` or `float64` |
# | `str` or `bytes` | a list of them |
# | mappings, such as `dict` | a `dict` with the first one's keys, in order; under each the batch of the values |
# | namedtuples | a namedtuple of the same class; in each field the batch of the fields |
# | other tuples, and lists | a list; at each place the batch of what is at that place |
#
# Containers may hold containers. Where a list is asked for, a tuple is good too.
#
# Raise `RuntimeError` if tensors or arrays have different shapes, or lists or tuples different
# lengths; `KeyError` if a mapping lacks a key of the first; `TypeError` for samples of any other kind,
# such as `None`. No sample is changed, and none shares memory with the batch.
#
# <details><summary>Hint 1: the order of questions</summary>
#
# Ask for the narrow kinds first. A `str` is a sequence, a namedtuple is a tuple, and a `bool` is an
# `int`.
#
# </details>
# <details><summary>Hint 2: turning inside out</summary>
#
# `zip(*samples)` gives, for each place, what all samples have there. Hand each to `collate` again.
# `zip` stops at the shortest, without a word: with `strict=True` it raises `ValueError`, or compare
# the lengths before.
#
# </details>
# <details><summary>Hint 3: NumPy</summary>
#
# A NumPy scalar such as `np.float32(1)` is a `np.generic`; a `np.str_` is one too, and a `str`.
# `torch.as_tensor` makes tensors of arrays and of scalars alike, and keeps the dtype; of an array it
# makes no copy. What you do with tensors makes one.
#
# </details>


# %% solution="collate"
def collate(samples: list):
    """Return the batch of samples that are built alike.

    samples: not empty; see the table above
    """
    ### BEGIN SOLUTION
    first = samples[0]
    if isinstance(first, torch.Tensor):
        return torch.stack(samples)  # refuses different shapes, and copies
    if isinstance(first, (np.ndarray, np.generic)) and not isinstance(first, (str, bytes)):
        return torch.stack([torch.as_tensor(sample) for sample in samples])
    if isinstance(first, (bool, int)):
        return torch.tensor(samples)
    if isinstance(first, float):
        return torch.tensor(samples, dtype=torch.float64)  # what a Python float is
    if isinstance(first, (str, bytes)):
        return list(samples)  # before sequences: a string is one
    if isinstance(first, Mapping):
        return {key: collate([sample[key] for sample in samples]) for key in first}
    if isinstance(first, (tuple, list)):
        if any(len(sample) != len(first) for sample in samples):
            raise RuntimeError("samples of different lengths")
        columns = [collate(list(column)) for column in zip(*samples, strict=True)]
        return type(first)(*columns) if hasattr(first, "_fields") else columns
    raise TypeError(f"cannot make a batch of {type(first).__name__}")
    ### END SOLUTION


# %% grade="collate"
grade("collate")

# %% [markdown] exercise="pad_collate"
# title: Pad, and say what is padding
# minutes: 35
# difficulty: 3
# points: 8
# prerequisites: [collate]
# teaches: >-
#   how samples of different sizes become one tensor, and why a mask has to come with it.
# leaves out: packed and nested tensors, which store no padding; masks for attention among positions.
# off limits: [torch.nn.utils.rnn.pad_sequence, torch._C._nn.pad_sequence, torch.nested.nested_tensor, torch.nested.as_nested_tensor, torch.nested.to_padded_tensor]

# %% [markdown]
# Sentences of different lengths cannot be stacked. One fills the short ones up. Whatever the filling
# is, it is a number like any other, and what comes after the collate cannot know it:

# %%
sentences = [torch.tensor([4.0, 2.0]), torch.tensor([6.0])]
padded = torch.tensor([[4.0, 2.0, 0.0], [6.0, 0.0, 0.0]])
mask = torch.tensor([[True, True, False], [True, False, False]])
print("means of the rows:", padded.mean(1).tolist())
print("with the mask:    ", ((padded * mask).sum(1) / mask.sum(1)).tolist())

# %% [markdown]
# The first two numbers depend on who else was in the batch. The last two do not.
#
# "The padding is 0, so the mask is `padded != 0`." Until a real entry is 0. A mask comes from the
# lengths, and the collate is the last place that knows them.
#
# What `True` means is not agreed upon. In `scaled_dot_product_attention` a position with `True` takes
# part; in `nn.MultiheadAttention` it is left out. Here every query sees three keys alike, so what
# comes out is the mean of the values that take part:

# %%
keys, values = torch.zeros(1, 3, 1), torch.tensor([[[1.0], [3.0], [100.0]]])
real = torch.tensor([[True, True, False]])
dot = torch.nn.functional.scaled_dot_product_attention
print("dot product:", dot(keys[:, :1], keys, values, attn_mask=real[:, None]).item())

attention = torch.nn.MultiheadAttention(1, 1, bias=False, batch_first=True)
torch.nn.init.ones_(attention.in_proj_weight)
torch.nn.init.ones_(attention.out_proj.weight)
for name, ignored in [("real", real), ("~real", ~real)]:
    result, _ = attention(keys[:, :1], keys, values, key_padding_mask=ignored)
    print(f"MultiheadAttention, key_padding_mask={name}: {result.item():g}")

# %% [markdown]
# **Predict.** A sentence without any word: all its positions are masked with minus infinity before a
# softmax. Is the result zero everywhere, the same everywhere, or NaN? Write `"zero"`, `"same"` or
# `"nan"`.


# %%
def softmax_of_nothing():
    weights = torch.full((3,), -torch.inf).softmax(0)
    if bool(weights.isnan().any()):
        return "nan"
    return "zero" if bool((weights == 0).all()) else "same"


predict(..., softmax_of_nothing)

# %% [markdown]
# **Write `pad_collate(samples, value=0, dims=1, multiple=1)`.** `samples` is a list of at least one
# tensor. All have the same dtype and the same number of dimensions. The first `dims` dimensions, at
# least one, may be of a different size in each; the others are the same in all. Return a tuple
# `(batch, mask)`.
#
# - Each of the first `dims` dimensions is made as large as the largest of the samples, and then
#   rounded up to a multiple of `multiple`. Zero is a multiple of everything.
# - `batch` has the samples' dtype and the shape (batch, *padded dimensions, *other dimensions). Each
#   sample lies in its row, from the beginning of each dimension; every other cell is `value`.
# - `mask` is a `bool` tensor (batch, *padded dimensions): `True` where there is a sample, `False`
#   where there is padding.
# - Raise `ValueError` if samples differ in dtype, in their number of dimensions, or in one of the
#   other dimensions.
#
# With `dims=1` samples may be sentences (length,) or (length, features); with `dims=2` images
# (height, width, channels). Samples may have no elements. No sample is changed or shares memory with
# what you return.
#
# <details><summary>Hint 1: make room first</summary>
#
# Compute the shape, allocate `batch` full of `value` and `mask` full of `False`, and write each sample
# into its corner.
#
# </details>
# <details><summary>Hint 2: the corner</summary>
#
# A tuple of slices is an index: `batch[row][tuple(slice(0, size) for size in sizes)]`. The same index
# serves the mask.
#
# </details>
# <details><summary>Hint 3: rounding up</summary>
#
# `-(-size // multiple) * multiple` rounds up. `(size // multiple + 1) * multiple` does not, for
# sizes that are a multiple already.
#
# </details>


# %% solution="pad_collate"
def pad_collate(
    samples: list[torch.Tensor], value: float = 0, dims: int = 1, multiple: int = 1
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the samples in one tensor, and where they are.

    samples: (*sizes, *others), with `dims` sizes that may differ
    value: what the other cells hold
    multiple: what each padded size is a multiple of
    returns: (batch, *padded, *others) and bool (batch, *padded)
    """
    ### BEGIN SOLUTION
    first = samples[0]
    others = first.shape[dims:]
    for sample in samples:
        # Without this, assignment would broadcast or cast what does not fit.
        alike = sample.dim() == first.dim() and sample.shape[dims:] == others
        if not alike or sample.dtype != first.dtype:
            raise ValueError("samples differ in more than the sizes that are padded")
    largest = [max(sizes) for sizes in zip(*(s.shape[:dims] for s in samples), strict=True)]
    padded = [-(-size // multiple) * multiple for size in largest]
    batch = torch.full((len(samples), *padded, *others), value, dtype=first.dtype)
    mask = torch.zeros(len(samples), *padded, dtype=torch.bool)
    for row, sample in enumerate(samples):
        corner = (row, *(slice(0, size) for size in sample.shape[:dims]))
        batch[corner] = sample
        mask[corner] = True
    return batch, mask
    ### END SOLUTION


# %% grade="pad_collate"
grade("pad_collate")

# %% [markdown]
# ## A collate that can travel
#
# A collate function needs its options: the filling, the multiple. A `lambda` is the first thing that
# comes to mind, and with workers that are **forked** it works. A fork has all of its parent's memory.

# %%
loader = DataLoader(
    range(4),
    batch_size=2,
    num_workers=1,
    collate_fn=lambda numbers: numbers,
    multiprocessing_context="fork",
    timeout=20,
)
print(list(loader))

# %% [markdown]
# Workers that are **spawned** begin empty, and get dataset and collate function by pickle. So it is
# on macOS and on Windows. From Python 3.14 on, Linux does not fork either unless you say so. Pickle
# writes a function down as the name of its module and its own. A lambda has no name of its own:

# %%
try:
    pickle.dumps(lambda samples: samples)
except (pickle.PicklingError, AttributeError) as error:
    print(type(error).__name__)
join = functools.partial(torch.nn.utils.rnn.pad_sequence, batch_first=True, padding_value=-100)
travelled = pickle.loads(pickle.dumps(join))
print(travelled([torch.tensor([1, 2, 3]), torch.tensor([4])]).tolist())

# %% [markdown]
# A function of a module and `functools.partial` for its options travel anywhere. The name has to lead
# to something, too: a spawned worker imports the main script again, which is why a script that starts
# workers needs `if __name__ == "__main__":`. What is defined in a notebook cannot be imported at all.
# In this chapter every loader with workers says `multiprocessing_context="fork"`.
#
# ## What pinning is
#
# "Set `pin_memory=True`, it is faster." The system may move ordinary memory about, or out to disk. An
# accelerator that copies by itself needs a place that stays where it is: **pinned** memory. With
# `pin_memory=True` each batch is copied once more, into such memory; if there are workers, by a thread
# of the main process. The copy to the device can then run beside the computation, if you ask for it
# with `batch.to(device, non_blocking=True)`. The batch stays on the CPU until you do. Where there is no
# accelerator nothing is pinned, and a warning says so:

# %%
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    batch = next(iter(DataLoader(torch.zeros(4, 2), batch_size=2, pin_memory=True)))
print("device:", batch.device)
if not torch.accelerator.is_available():
    print("pinned:", batch.is_pinned(), " warned:", len(caught) > 0)

# %% [markdown]
# So pinning is one more copy, and memory that the system cannot use for anything else. It pays if the copy to
# the device is what you wait for.
#
# ## An epoch that can be repeated
#
# A run is interrupted in epoch 3. To go on you need the order of epoch 3, without reading epochs 0 to 2
# again. With one generator for the whole run the order of an epoch depends on all that was drawn
# before. With one per epoch it depends on two numbers that you can write down:


# %%
def orders(generators):
    for generator in generators:
        yield [int(i) for i in DataLoader(range(6), shuffle=True, generator=generator)]


def of_epoch(seed, epoch):
    return torch.Generator().manual_seed(1000 * seed + epoch)


one = torch.Generator().manual_seed(7)
through = list(orders([one] * 4))
directly = list(orders([torch.Generator().manual_seed(7)]))
print("one for the run, epoch 3:", through[3], "begun there:", directly[0])

through = list(orders(of_epoch(7, epoch) for epoch in range(4)))
directly = list(orders([of_epoch(7, 3)]))
print("one for an epoch, epoch 3:", through[3], "begun there:", directly[0])

# %% [markdown]
# The seed is multiplied so that runs of fewer than 1,000 epochs do not share any. What is left is what
# the samples themselves draw, in however many workers.
