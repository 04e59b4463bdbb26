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
#
# Workers are forked here (`multiprocessing_context="fork"`), which Linux and macOS can do.

# %%
import functools
import hashlib
import itertools
import json
import pickle
import queue
import random
import time
import traceback
import warnings
from collections.abc import Mapping

import numpy as np
import torch
from torch.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    WeightedRandomSampler,
    get_worker_info,
)

from grader import grade, hint, predict, solution, watch_events, written

WORKERS = {"multiprocessing_context": "fork", "timeout": 30}
# more workers than cores are no trouble in so small examples
warnings.filterwarnings("ignore", message="This DataLoader will create")

# %% [markdown] sitting="randomness"
# question: Why does the same seed not give the same samples?
# reached: >-
#   A seed says where a stream begins, and everybody who draws moves it on. A stream of your own
#   can be left and come back to, and weights turn its numbers into choices.

# %% [markdown]
# ## Two questions
#
# A **map-style dataset** answers two questions: how many samples are there, and what is sample
# number `i`? Python's names for them are `__len__` and `__getitem__`. Nothing else is needed. A
# list is a dataset, and so is a tensor or a `range`.

# %%
squares = [n * n for n in range(5)]
for dataset in (squares, torch.tensor(squares), range(5)):
    print([batch.tolist() for batch in DataLoader(dataset, batch_size=2)])

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
# A dataset that has a `__getitems__` is asked once for a whole list instead; see `_MapDatasetFetcher`
# in `torch/utils/data/_utils/fetch.py`.
#
# A sampler is anything that can be iterated over, and so is a batch sampler. You can hand in lists:

# %%
print([b.tolist() for b in DataLoader(squares, sampler=[4, 4, 0], batch_size=2)])
print([b.tolist() for b in DataLoader(squares, batch_sampler=[[0], [3, 2, 1]])])

# %% [markdown]
# Collating is not what you switch on with `collate_fn=`: it happens unless you switch it off. With
# `batch_size=None` there are no lists to be made into batches, and samples come one by one, as they are.
# Only what is NumPy's becomes a tensor (`default_convert`):

# %%
print(list(DataLoader(["a", 0.5, np.zeros(2)], batch_size=None)))

# %% [markdown]
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

# %% [markdown]
# The dataset for tensors that belong together is `TensorDataset`: sample `i` is a tuple of their rows `i`, which are
# views. With it a whole training fits on a few lines:


# %%
def train_a_line():
    torch.manual_seed(0)
    x = torch.randn(64, 2)
    data = torch.utils.data.TensorDataset(x, x @ torch.tensor([[1.0], [-2.0]]))
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for inputs, targets in DataLoader(data, batch_size=16, shuffle=True):
            optimizer.zero_grad()
            loss = ((model(inputs) - targets) ** 2).mean()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}, last batch: {loss.item():.2f}")
    row = data[3][0]
    same = row.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    print("a row is a view:", same)


train_a_line()

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
# Draw: show_cells({"seed 5": [f"{value:.3f}" for value in [*first.tolist(), fourth.item()]]},
# ["first", "second", "third", "fourth"]) | A stream. A seed leads to its beginning, a state to
# any place in it: here to the fourth.
#
# There are three global streams: Python's `random`, NumPy's, and torch's. Seeding one leaves the
# others where they are. A `torch.Generator` is a stream of its own, with no connection to the global
# one. Make two without a seed, and they are not random either:

# %%
others = random.getstate(), np.random.get_state()[1].tolist()
torch.manual_seed(5)
print("others where they were:", others == (random.getstate(), np.random.get_state()[1].tolist()))
one, two = torch.Generator(), torch.Generator()
print(one.initial_seed() == two.initial_seed())
print(torch.equal(torch.rand(3, generator=one), torch.rand(3, generator=two)))

# %% [markdown]
# "Set the seed, and training is reproducible." As long as everybody who draws from the stream draws
# the same. A DataLoader draws a number from the global stream each time you iterate over it, even if it
# does not shuffle and has no workers, who would be seeded with it (`_base_seed` in
# `torch/utils/data/dataloader.py`). So a harmless look at the validation data changes what the
# *training* loader does afterwards:


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
# Draw: show_cells({f"{name}, epoch {epoch}": [(str(index), "as without" if index == plain else
# "other") for index, plain in zip(order, without)] for name, validate in (("without", False),
# ("with", True)) for epoch, (order, without) in enumerate(zip(orders(validate),
# list(orders(False))))}) | The orders once more. The second colour is where a look at other data
# has changed them.
#
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
# Look: dataloader/workers#samples=12&batch_size=2&num_workers=2&load=1&work=1 |
# Batch 2 is loaded by worker 0. Turn the number of workers to 3, and it is loaded by worker 2,
# whose stream is another.
#
# So there is a need for a fence: draw as much as you like inside, and nobody outside notices. To be
# useful it must hold all three streams, survive an error, and let you come back to the inner stream
# where you left it.
#
# **Predict.** `torch.randn(1)` makes two numbers and keeps one for the next call
# (`normal_distribution` in `aten/src/ATen/core/DistributionsHelper.h`). Is that one part of the
# state? Here the state is taken between the two. Write `True` if the second comes back.


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

    def __init__(self, seed: int):
        ### BEGIN SOLUTION
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

# %% [markdown]
# ### Who draws from torch's stream
#
# The global stream has a name, `torch.default_generator`. All of these take from it, unless they are given
# another `generator=`:
#
# | call | draws |
# |---|---|
# | `rand(n)` | numbers from 0 to below 1 |
# | `randn(n)`, `normal(means, deviations)` | normally distributed numbers; the second has a mean and a deviation for each |
# | `randint(high, (n,))` | whole numbers from 0 to below `high` |
# | `randperm(n)` | 0 to `n` - 1, in some order |
# | `bernoulli(p)` | for each probability in `p` a 1 or a 0 |
# | `multinomial(weights, n)` | `n` indices, more often those with a larger weight |
# | `poisson(rates)` | for each rate, how many events came |
#
# **Predict.** `randint`, `randperm`, `bernoulli` and `poisson` draw whole numbers. Which of the four return
# them as floats? Write a list of names.

# %%
halves = torch.tensor([0.5, 0.5])
drawn = {
    "rand": lambda: torch.rand(2),
    "randn": lambda: torch.randn(2),
    "normal": lambda: torch.normal(halves, halves),
    "randint": lambda: torch.randint(3, (2,)),
    "randperm": lambda: torch.randperm(2),
    "bernoulli": lambda: torch.bernoulli(halves),
    "multinomial": lambda: torch.multinomial(halves, 2),
    "poisson": lambda: torch.poisson(halves),
}


def floats_for_whole_numbers():
    names = ("randint", "randperm", "bernoulli", "poisson")
    return [name for name in names if drawn[name]().is_floating_point()]


predict(..., floats_for_whole_numbers)

# %%
for name, draw in drawn.items():
    torch.default_generator.manual_seed(5)
    result = draw()
    torch.manual_seed(5)
    again = torch.equal(draw(), result)
    print(f"{name:>11} {result.dtype!s:13} from the global stream: {again}")

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
# forbids: "functions that draw with weights"

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
# Draw: show_bars({f"class {one}, {name}": round(100 * int(counts[one]) / int(counts.sum()), 1)
# for one in range(3) for name, counts in (("in the data", labels.bincount()), ("drawn",
# labels[drawn].bincount()))}, "%") | What there is, and what a model gets to see with a weight
# per sample.
#
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

# %% [markdown] sitting="order"
# question: Who decides which samples meet in a batch?
# reached: >-
#   The sampler: it can sort by length and stay random, and it can share an epoch among ranks
#   without a message.

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
# Draw: show_bars({name: int(wasted(batches).partition("%")[0]) for name, batches in (("shuffled",
# shuffled.split(20)), *((f"in pools of {size}",
# torch.cat([pool[lengths[pool].argsort(stable=True)] for pool in
# shuffled.split(size)]).split(20)) for size in (40, 100, 200, 500)), ("sorted",
# lengths.argsort(stable=True).split(20)))}, "% padding") | From chance to order. A pool of ten
# batches has most of the gain.
#
# Sorting wins, and gives the same batches in the same order in every epoch: the model sees all
# short sentences first. Sorting within pools of a shuffled order is a compromise. So is a fixed
# set of **buckets**. A sample goes into the first bucket whose boundary it does not exceed, and is
# padded to that boundary. If each boundary is twice the one before, less than half of a row is
# padding, for every sample longer than the first boundary. There is no epoch with bad luck.
#
# There is a second gain: batches come in as many widths as there are buckets. A compiled model
# may be compiled anew for a new shape (chapter 7), and here there are few.
#
# The size of a batch should go with its width. Eight rows of 512 are as many cells as 64 rows of 64.
# So the budget is in **cells**, rows times width.
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
# Draw: show_cells({f"rank {rank}": [(str(index), "once" if turn < 3 or index > 1 else "again")
# for turn, index in enumerate(part)] for rank, part in enumerate(parts)}, [f"turn {turn}" for
# turn in range(1, 5)]) | Read down the columns: the order, and at its end what comes a second
# time.
#
# Twelve indices. Samples 0 and 1 come twice. A rank with one batch less would leave the others
# waiting for its gradients (chapter 8), so the order is **padded**: it is continued from its
# beginning until it can be shared evenly. In training this hardly matters. In a metric it does. Here a model is wrong
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

# %% [markdown] sitting="batches"
# question: How do samples become one tensor?
# reached: >-
#   The collate turns a list of samples inside out and stacks. What differs in size is padded, and
#   a mask says what is padding.

# %% [markdown] exercise="collate"
# title: Turn samples into a batch
# minutes: 35
# difficulty: 3
# points: 8
# short: true
# prerequisites: []
# teaches: >-
#   what the default collate does with tensors, numbers, strings and containers of them, and where
#   dtypes come from.
# leaves out: samples of different shapes, which is the next exercise; sparse and nested tensors.
# off limits: [torch.utils.data.default_collate, torch.utils.data._utils.collate.default_collate, torch.utils.data._utils.collate.collate]
# forbids: "PyTorch's own collate functions"

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
# Look: dataloader/timeline#samples=12&batch_size=3&num_workers=1&load=2&work=2 |
# A worker fetches three samples, one after the other, and then collates them: the last part of each
# block.

# %%
print(torch.utils.data.default_collate([np.zeros(2, dtype=np.int16)]).dtype)
try:
    torch.nn.Linear(2, 1)(torch.stack(batch["size"], 1))
except RuntimeError as error:
    print(error)

# %% [markdown]
# What is to be done, `default_collate` decides by the **first** sample alone. A `float` there asks for
# `float64`. An `int` asks for nothing, and `torch.tensor` chooses for all numbers together.
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
# A fraction among whole numbers makes `torch.tensor` take the default dtype, `float32`. So the dtype of
# a batch can depend on how it was shuffled. Return tensors from your dataset, and
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
# off limits: [torch.nn.utils.rnn.pad_sequence, torch._C._nn.pad_sequence, torch.nn.utils.rnn.pad_packed_sequence, torch.nn.functional.pad, "aten:constant_pad_nd", torch.nested.nested_tensor, torch.nested.as_nested_tensor, torch.nested.to_padded_tensor]
# forbids: "functions and tensors that pad for you"

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
# Draw: show_cells({f"sentence {row}": [f"{value:g}" if there else False for value, there in
# zip(padded[row].tolist(), mask[row].tolist())] for row in range(2)}, ["word 0", "word 1", "word
# 2"]) | The batch as its mask sees it. The tensor has zeros where this is empty.
#
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
# on macOS and on Windows. From Python 3.14 on, Linux does not fork either unless you say so (see
# "Contexts and start methods" in the documentation of `multiprocessing`). Pickle
# writes a function down as the name of its module and its own. A lambda is called `<lambda>`, and
# nothing can be found under that name:

# %%
try:
    pickle.dumps(lambda samples: samples)
except (pickle.PicklingError, AttributeError) as error:
    print(type(error).__name__)
join = functools.partial(torch.nn.utils.rnn.pad_sequence, batch_first=True, padding_value=-100)
travelled = pickle.loads(pickle.dumps(join))
print(travelled([torch.tensor([1, 2, 3]), torch.tensor([4])]).tolist())

# %% [markdown]
# Draw: show_cells({f"sample {number}": [(str(value), "filling" if value == -100 else "sample")
# for value in row] for number, row in enumerate(travelled([torch.arange(1, 6), torch.tensor([1,
# 2]), torch.tensor([1, 2, 3])]).tolist())}) | What has travelled still knows its option:
# everything is filled with −100.
#
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
# of the main process (`torch/utils/data/_utils/pin_memory.py`). By the documentation ("CUDA semantics",
# "Use pinned memory buffers") the copy to a GPU can then run beside the computation, if you ask for it
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
# So pinning is one more copy, and memory that the system cannot use for anything else. It can pay only
# if the copy to the device is what you wait for.
#
# Look: dataloader/consumer#samples=16&batch_size=2&num_workers=2&load=1&work=6 |
# Here the consumer sets the pace, and nothing that makes batches come sooner makes the epoch
# shorter. Turn its work down.
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

# %% [markdown] sitting="workers"
# question: What changes when several processes load?
# reached: >-
#   Nothing that you can see, if you see to it: streams are shared out, and random numbers belong
#   to a sample and not to a process.

# %% [markdown]
# ## Who does what
#
# A loader with workers is a small company. It pays to know who does what, because what one process
# knows, the others do not. A dataset can ask: `get_worker_info()` is `None` in the main process.


# %%
def who():
    """The name of this process."""
    info = get_worker_info()
    return "main" if info is None else f"worker {info.id}"


class Asks(Dataset):
    """Every sample is the name of the process that fetched it."""

    def __len__(self):
        return 8

    def __getitem__(self, index):
        return who()


def asking_sampler():
    for first in (0, 4):
        print("the sampler runs in:", who())
        yield range(first, first + 4)


def asking_collate(samples):
    return f"fetched by {set(samples)}, collated by {who()}"


for batch in DataLoader(
    Asks(), batch_sampler=asking_sampler(), num_workers=2, collate_fn=asking_collate, **WORKERS
):
    print(batch)

# %% [markdown]
# Look: dataloader/workers#samples=16&batch_size=2&num_workers=2&load=2&work=2 | Workers fetch and
# collate, and the consumer takes whole batches. Turn the number of workers, down to 0, where the
# main process does it all.
#
# It is often told that workers fetch samples and the main process collates them. It does not: the
# queue carries finished batches. A collate function that keeps statistics keeps them in a worker, and
# they end with it. So does everything that a dataset remembers:


# %%
class Remembers(Dataset):
    """Counts what was fetched, in itself and in shared memory."""

    def __init__(self):
        self.own = 0
        self.shared = torch.zeros((), dtype=torch.int64).share_memory_()

    def __len__(self):
        return 8

    def __getitem__(self, index):
        self.own += 1
        self.shared += 1
        return index


dataset = Remembers()
for _ in range(2):
    list(DataLoader(dataset, batch_size=4, num_workers=1, **WORKERS))
print("own:", dataset.own, " shared:", dataset.shared.item())

# %% [markdown]
# Each worker counted up its own copy. The shared tensor tells more: sixteen fetches for two epochs
# of eight samples. There is no cache in a `DataLoader`. What should be kept, the dataset must keep.
#
# With `persistent_workers=True` the same processes serve all epochs. It saves the time to start them.
# It also means that they never see what you change on the dataset after the first epoch began:


# %%
class KnowsTheEpoch(Dataset):
    """Every sample is the epoch, as this process knows it."""

    epoch = 0

    def __len__(self):
        return 2

    def __getitem__(self, index):
        return self.epoch


for persistent in (False, True):
    dataset = KnowsTheEpoch()
    loader = DataLoader(dataset, num_workers=1, persistent_workers=persistent, **WORKERS)
    seen = []
    for epoch in range(3):
        dataset.epoch = epoch
        seen.append([batch.item() for batch in loader])
    print(f"persistent {persistent!s:>5}: {seen}")

# %% [markdown]
# Where workers persist, an epoch has to reach them through something shared, such as a tensor in
# shared memory, or through the indices that the sampler sends.
#
# **How many threads** does an operator use? In the main process, as many as `torch.get_num_threads()` says. In a
# worker one, or eight workers with eight threads each would be sixty-four on eight cores (`_worker_loop` in
# `torch/utils/data/_utils/worker.py`):


# %%
def threads_here(samples):
    return torch.get_num_threads()


loader = DataLoader(range(2), num_workers=2, collate_fn=threads_here, **WORKERS)
print("threads of each worker:", list(loader))

# %% [markdown]
# **What travels.** A worker puts a tensor into shared memory, and the main process maps that memory: no
# second copy. (`default_collate` in a worker even stacks the samples there; see `collate_tensor_fn` in
# `torch/utils/data/_utils/collate.py`.) All else is pickled, sent through a pipe and built again.
#
# Look: dataloader/places#samples=12&batch_size=2&num_workers=2&load=1&work=6&at=20 |
# A slow consumer: finished batches wait among the results until they are taken. Step on.


# %%
class Built:
    """Counts how often it is unpickled in this process."""

    times = 0

    def __reduce__(self):
        return Built.again, ()

    @staticmethod
    def again():
        Built.times += 1
        return Built()


base = torch.arange(8.0)
pairs = [(base[4 * k : 4 * k + 4], Built()) for k in range(2)]
batches = list(DataLoader(pairs, batch_size=None, num_workers=1, **WORKERS))
print("base in shared memory:  ", base.is_shared())
print("batches in shared memory:", [tensor.is_shared() for tensor, _ in batches])
print("objects built again:    ", Built.times)

# %% [markdown] exercise="sharded_stream"
# title: Share out a stream
# minutes: 35
# difficulty: 3
# points: 5
# prerequisites: []
# teaches: >-
#   that nobody shares out an IterableDataset for you, and how to do it over workers and ranks so
#   that the order of batches does not depend on the number of workers.
# leaves out: shuffling a stream; sharing out files instead of items.
# off limits: []

# %% [markdown]
# A map-style dataset is shared out by indices. A stream has none: an `IterableDataset` is copied into
# every worker, and every copy begins at the beginning.


# %%
class Stream(IterableDataset):
    """The numbers 0 to 3."""

    def __iter__(self):
        return iter(range(4))


for workers in (1, 2):
    loader = DataLoader(Stream(), batch_size=2, num_workers=workers, **WORKERS)
    print(workers, "workers:", [batch.tolist() for batch in loader])

# %% [markdown]
# **Predict.** Two ranks, three workers each, no sharing out. How often is each item seen in an epoch?

# %%
predict(..., lambda: 2 * len(list(DataLoader(Stream(), num_workers=3, **WORKERS))) // 4)

# %% [markdown]
# The usual remedy is `islice(stream, worker, None, workers)`: worker `w` takes every `n`-th item.
# Each item then comes once. But look at the batches:


# %%
class EveryNth(IterableDataset):
    """The numbers 0 to 11, every n-th for each of n workers."""

    def __iter__(self):
        info = get_worker_info()
        worker, workers = (info.id, info.num_workers) if info else (0, 1)
        return itertools.islice(range(12), worker, None, workers)


for workers in (0, 1, 2, 3):
    options = WORKERS if workers else {}
    loader = DataLoader(EveryNth(), batch_size=2, num_workers=workers, **options)
    print(workers, "workers:", [batch.tolist() for batch in loader])

# %% [markdown]
# A run with two workers trains on other batches than one with three. It need not be so. The loader
# takes batches from its workers in turn: batch 0 from worker 0, batch 1 from worker 1, and round
# again. A worker that knows the batch size can take whole batches, and then the rank's stream is put
# together again as it was.
#
# Look: dataloader/workers#samples=12&batch_size=2&num_workers=3&load=2&work=1 |
# Three workers in turn: batches 0 and 3 are worker 0's, 1 and 4 worker 1's. Turn the number, and
# the shares are others.
#
# Ranks ask for something else: the same number of steps. A rank that has one batch more waits in its
# all-reduce for ranks that are gone. How long the stream is, nobody knows before its end.
#
# **Write `sharded_stream(items, rank, world_size, batch_size, drop_uneven=False)`**, a generator that
# yields this process's share of `items`, an iterable that may be endless.
#
# - Item number `i` belongs to rank `i % world_size`.
# - A rank's items, in order, make batches of `batch_size`; the last may be short. Batch number `k` of a
#   rank belongs to its worker `k % num_workers`. Without workers the rank takes all of its own.
# - With `drop_uneven`, an incomplete last round is left out: if the last items are fewer than
#   `world_size`, no rank gets one of them. So all ranks get the same number.
#
# It is called in the process that iterates: in a worker, `get_worker_info()` knows which one.
#
# <details><summary>Hint 1: two questions</summary>
#
# Is the item my rank's? If so, it is number `i // world_size` among my rank's, and so in batch
# `i // world_size // batch_size`. Is that batch mine?
#
# </details>
# <details><summary>Hint 2: the end is near</summary>
#
# Whether a round of `world_size` items is complete you know only after its last item. Read a round
# before you yield anything of it: `list(itertools.islice(items, world_size))`.
#
# </details>
# <details><summary>Hint 3: islice and range</summary>
#
# `islice` on a `range` begins anew at each call. Make an iterator first: `items = iter(items)`.
#
# </details>


# %% solution="sharded_stream"
def sharded_stream(items, rank: int, world_size: int, batch_size: int, drop_uneven: bool = False):
    """Yield this process's share of a stream.

    items: an iterable, perhaps endless
    rank: from 0 to world_size - 1
    drop_uneven: whether an incomplete last round of items is left out
    """
    ### BEGIN SOLUTION
    info = get_worker_info()
    worker, workers = (info.id, info.num_workers) if info else (0, 1)
    items = iter(items)
    for number in itertools.count():  # of the round, and of the item among this rank's
        one_each = list(itertools.islice(items, world_size))
        complete = len(one_each) == world_size
        if not one_each or (drop_uneven and not complete):
            return
        # every process reads all items and agrees with the others on whose they are
        if rank < len(one_each) and number // batch_size % workers == worker:
            yield one_each[rank]
    ### END SOLUTION


# %%
class Numbers(IterableDataset):
    """Rank 0's share of the numbers 0 to 22, of two ranks."""

    def __iter__(self):
        return sharded_stream(range(23), rank=0, world_size=2, batch_size=3)


if written("sharded_stream"):
    for workers in (0, 1, 2, 3):
        options = WORKERS if workers else {}
        loader = DataLoader(Numbers(), batch_size=3, num_workers=workers, **options)
        print(workers, "workers:", [batch.tolist() for batch in loader])

# %% grade="sharded_stream"
grade("sharded_stream")

# %% [markdown]
# Every process still reads and decodes the whole stream, and throws most of it away. That is cheap
# for numbers and dear for pictures. Large datasets are cut into many files for this reason: then the
# items that are shared out here are the file names.

# %% [markdown] exercise="augment"
# title: Augment alike, whoever does it
# minutes: 30
# difficulty: 3
# points: 6
# prerequisites: []
# teaches: >-
#   that random numbers belong to a sample, not to a process: a generator made from seed, epoch and
#   index gives the same augmentation with any number of workers.
# leaves out: libraries that draw from their own global generators.
# off limits: []

# %% [markdown]
# An augmentation draws random numbers. From which generator? There are three candidates, and two
# of them are wrong. The first is one that the dataset keeps. It looks tidy, and it is copied into
# every worker with the rest of the dataset:


# %%
class KeepsAGenerator(Dataset):
    """Every sample is a random number of the dataset's own generator."""

    def __init__(self):
        self.generator = torch.Generator().manual_seed(0)

    def __len__(self):
        return 8

    def __getitem__(self, index):
        return torch.randint(1000, (), generator=self.generator)


loader = DataLoader(KeepsAGenerator(), batch_size=2, num_workers=4, **WORKERS)
for epoch in range(2):
    print("epoch", epoch, [batch.tolist() for batch in loader])

# %% [markdown]
# Draw: show_cells({f"epoch {epoch}": [str(int(value)) for batch in loader for value in batch] for
# epoch in range(2)}, [f"sample {index}" for index in range(8)]) | Two epochs of eight samples,
# and two numbers in all.
#
# Eight samples, two random numbers. All four workers begin with the same copy. In the next epoch new
# workers begin with the same copy again. The numbers that a worker drew changed *its* generator, and
# the one in the main process stands where it stood. Nothing raises, and the loss goes down.
#
# The second candidate is the global generator. PyTorch seeds it in each worker with another seed
# (`_worker_loop` in `torch/utils/data/_utils/worker.py`), so the numbers differ. But which numbers a
# sample gets depends on who fetches it, and after what:


# %%
class DrawsGlobally(Dataset):
    """Every sample is a random number of the process's generator."""

    def __len__(self):
        return 6

    def __getitem__(self, index):
        return torch.randint(1000, ())


for workers in (0, 1, 2, 3):
    torch.manual_seed(0)
    options = WORKERS if workers else {}
    loader = DataLoader(DrawsGlobally(), batch_size=2, num_workers=workers, **options)
    print(workers, "workers:", torch.cat(list(loader)).tolist())

# %% [markdown]
# **Predict.** Same seed, same data. How many different epochs did you see in these four lines?


# %%
def different_epochs():
    seen = set()
    for workers in (0, 1, 2, 3):
        torch.manual_seed(0)
        options = WORKERS if workers else {}
        loader = DataLoader(DrawsGlobally(), batch_size=2, num_workers=workers, **options)
        seen.add(tuple(torch.cat(list(loader)).tolist()))
    return len(seen)


predict(..., different_epochs)

# %% [markdown]
# A bug that shows with 8 workers cannot be looked at with 0. The third candidate ends this: a
# generator **for each sample**, made on the spot from what names the sample: the run's seed, the
# epoch, the index.
#
# Look: dataloader/workers#samples=8&batch_size=2&num_workers=0&load=2&work=2 |
# Without workers the main process loads each batch itself, when it is asked for. Turn the number
# up: who loads changes, and not what.
#
# Three numbers must become one seed. Adding them up is no good: seed 0, epoch 1, index 2 would be
# seed 0, epoch 2, index 1, and whole rows of samples would share their crops. Then give each a part
# of the 64 bits of a seed? Look at what becomes of the upper ones:

# %%
for seed in (7, 7 + 2**32, 7 + 2**40, 8):
    generator = torch.Generator().manual_seed(seed)
    print(f"{seed:>13}", torch.randint(1000, (4,), generator=generator).tolist())

# %% [markdown]
# The CPU's generator begins with the lower 32 bits of its seed and drops the rest (read `mt19937` in
# `aten/src/ATen/core/MT19937RNGEngine.h`). The three numbers have to be mixed, so that each changes
# the lower bits.
#
# **Write `augment(dataset, transform, seed, epoch)`.** Return a dataset of the same length. Its
# element `i`, for `i` from 0 on, is `transform(dataset[i], generator)`, where `generator` is a
# `torch.Generator` whose numbers depend on `seed`, `epoch` and `i` alone. It can be fetched in any
# order, in any process, in another run of Python, and more than once, with the same result. Where one
# of the three differs, the numbers differ (but for bad luck: there are only 2**32 beginnings). `seed`
# goes from 0 to 2**60, the others from 0 to 2**31 - 1.
#
# Nothing is fetched before it is asked for. Leave the global random state of every process as it is.
#
# <details><summary>Hint 1: a class</summary>
#
# Two methods: `__len__` and `__getitem__`. The generator is made inside `__getitem__`, so there is
# nothing that could be copied into a worker.
#
# </details>
# <details><summary>Hint 2: three numbers to one</summary>
#
# A hash of their text is a good mixer: `hashlib.sha256(f"{seed} {epoch} {index}".encode())`. Mind
# the spaces: without them 1, 11 and 11, 1 are the same text. Python's own `hash` of a text will not
# do: each run of Python has another.
#
# </details>
# <details><summary>Hint 3: the seed's range</summary>
#
# `manual_seed` takes 64 bits, and every byte of a hash depends on all of the text:
# `int.from_bytes(digest[:8])` will do.
#
# </details>


# %% solution="augment"
def augment(dataset, transform, seed: int, epoch: int) -> Dataset:
    """Return the dataset of `transform(dataset[i], generator)`.

    transform: from a sample and a torch.Generator to whatever it likes
    """
    ### BEGIN SOLUTION

    class Augmented(Dataset):
        def __len__(self):
            return len(dataset)

        def __getitem__(self, index):
            # a hash scatters neighbours; the spaces keep 1, 11 and 11, 1 apart
            digest = hashlib.sha256(f"{seed} {epoch} {index}".encode()).digest()
            generator = torch.Generator().manual_seed(int.from_bytes(digest[:8]))
            return transform(dataset[index], generator)

    return Augmented()
    ### END SOLUTION


# %%
def noisy(sample, generator):
    """A sample and a random number."""
    return torch.tensor([sample, torch.randint(100, (), generator=generator).item()])


if written("augment"):
    for workers in (0, 2):
        options = WORKERS if workers else {}
        for epoch in range(2):
            loader = DataLoader(
                augment(range(4), noisy, seed=1, epoch=epoch), num_workers=workers, **options
            )
            print(workers, "workers, epoch", epoch, torch.cat(list(loader)).tolist())

# %% grade="augment"
grade("augment")

# %% [markdown] sitting="lead"
# question: When is the next batch there?
# reached: >-
#   When its worker is done and all batches before it are delivered. A lead hides slow batches as
#   far as it goes, and says how many slots of shared memory are enough.

# %% [markdown] exercise="prefetch_plan"
# title: Work out when each batch comes
# minutes: 30
# difficulty: 3
# points: 6
# short: true
# prerequisites: []
# teaches: >-
#   why one slow batch holds up the rest, what prefetch_factor bounds, and when more workers help.
# leaves out: the time that a batch takes through the queue; in_order=False.
# off limits: []

# %% [markdown]
# How far ahead do workers run? As far as they are told. When `iter` returns, each worker has
# `prefetch_factor` batches in its queue. From then on each batch that is delivered lets one more
# out. Count it, without any clock:


# %%
class Noted(Dataset):
    """Notes which batch is fetched."""

    def __init__(self, log):
        self.log = log

    def __getitem__(self, index):
        self.log.note("fetch", index)
        return index


def wait_for(log, count):
    """Wait until so many fetches are noted, and a moment longer."""
    while len(log.read()) < count:
        time.sleep(0.01)
    time.sleep(0.1)
    return len(log.read())


with watch_events() as log:
    options = dict(num_workers=2, prefetch_factor=3, **WORKERS)
    batches = iter(DataLoader(Noted(log), batch_sampler=[[k] for k in range(100)], **options))
    print("before the first next:", wait_for(log, 6))
    for step in range(1, 4):
        next(batches)
        print(f"after {step} of them:     ", wait_for(log, 6 + step))
    del batches

# %% [markdown]
# `prefetch_factor` counts **batches for each worker**: 2 × 3 = 6, and never more under way.
#
# Look: dataloader/prefetch#num_workers=3&prefetch_factor=2&work=12&at=30 | A slow consumer: three
# workers are two batches each ahead, and then idle. Turn `prefetch_factor`.
#
# Batches are dealt out like cards. Batch `k` goes to worker `k % num_workers`, however busy that
# worker is and however idle the others are. And they are delivered in order. If batch 0 is slow, the
# finished batches after it wait in the main process. `in_order=False` hands out what is there:

# %%


class SlowFirst(Noted):
    """Sample 0 takes until samples 1 and 3 were fetched."""

    def __getitem__(self, index):
        super().__getitem__(index)
        while index == 0 and len(self.log.read()) < 3:
            time.sleep(0.01)
        time.sleep(0.1 * (index == 0))
        return index


for in_order in (True, False):
    with watch_events() as log:
        batches = iter(
            DataLoader(
                SlowFirst(log), sampler=range(4), num_workers=2, in_order=in_order, **WORKERS
            )
        )
        print(f"in_order={in_order}: the first batch is {next(batches).item()}")
        del batches

# %% [markdown]
# That is a choice between speed and an order that you can repeat. The default is the order.
#
# Look: dataloader/order#slow=4&at=24 | Sample 4 is slow, so batch 2 is late, and finished batches
# are put aside. Switch `in_order` off.
#
# **Predict.** Two workers, `prefetch_factor=3`. Sample 0 takes very long. How many other batches are
# fetched in the meantime?


# %%
class VerySlow(Noted):
    """Sample 0 takes until there has been nothing new for a while; then it notes how many there are."""

    def __getitem__(self, index):
        super().__getitem__(index)
        if index == 0:
            others = None
            while others != len(self.log.read()) - 1:
                others = len(self.log.read()) - 1
                time.sleep(0.3)
            self.log.note("others", others)
        return index


def fetched_in_the_meantime():
    with watch_events() as log:
        options = dict(num_workers=2, prefetch_factor=3, **WORKERS)
        loader = DataLoader(VerySlow(log), sampler=range(20), **options)
        next(iter(loader))
        return next(number for _, kind, number in log.read() if kind == "others")


predict(..., fetched_in_the_meantime)

# %% [markdown]
# All of this can be worked out on paper. Let a batch take a known time to fetch, and a training step
# a known time after each batch.
#
# **Write `prefetch_plan(fetch, step, num_workers, prefetch_factor)`.** `fetch[k]` is the time that
# batch `k` takes to fetch. Return a list with a tuple `(begins, ends, delivered)` for each batch. All
# times are whole numbers, and may be 0. These are the rules:
#
# - At time 0, `iter` is called, and the trainer asks for batch 0 at once. It asks for batch `k + 1`
#   `step` units after batch `k` was delivered.
# - A batch is delivered as soon as it is asked for and fetched, and batches are delivered in order.
# - Batch `k` belongs to worker `k % num_workers`. A worker fetches its batches in order, one at a
#   time, each as soon as the batch is handed to it and the one before has ended.
# - The first `num_workers * prefetch_factor` batches are handed out at time 0. Each delivery hands out
#   the next one, at that moment.
# - With `num_workers` 0 there is nobody else: the trainer fetches a batch when it asks for it
#   (`prefetch_factor` is then `None`).
#
# <details><summary>Hint 1: one batch after the other</summary>
#
# Go through the batches in order. All that batch `k` has to wait for are earlier batches, so their
# times are known.
#
# </details>
# <details><summary>Hint 2: a fetch waits for two things</summary>
#
# It waits for the worker: batch `k - num_workers` must have ended. And for its card: batch
# `k - num_workers * prefetch_factor` must have been delivered. It begins at the later of the two.
#
# </details>
# <details><summary>Hint 3: a delivery waits for two things</summary>
#
# The batch must have ended, and the trainer must have asked.
#
# </details>


# %% solution="prefetch_plan"
def prefetch_plan(
    fetch: list[int], step: int, num_workers: int, prefetch_factor: int | None
) -> list[tuple[int, int, int]]:
    """Return (begins, ends, delivered) for each batch.

    fetch: the time that each batch takes
    step: the time from a delivery to the next request
    """
    ### BEGIN SOLUTION
    plan = []
    asks = 0
    for number, cost in enumerate(fetch):
        if num_workers == 0:
            begins = asks
        else:
            lead = num_workers * prefetch_factor
            # a negative number means: nothing to wait for
            free = plan[number - num_workers][1] if number >= num_workers else 0
            handed_out = plan[number - lead][2] if number >= lead else 0
            begins = max(free, handed_out)
        ends = begins + cost
        delivered = max(ends, asks)  # the later of the two, and the other one waited
        plan.append((begins, ends, delivered))
        asks = delivered + step
    return plan
    ### END SOLUTION


# %%
def draw(fetch, step, num_workers, prefetch_factor):
    """Print what each worker does, one letter for each unit of time, and the deliveries."""
    plan = prefetch_plan(fetch, step, num_workers, prefetch_factor)
    width = plan[-1][2] + 1
    letters = "abcdefghijklmnopqrstuvwxyz"
    for worker in range(num_workers):
        row = ["·"] * width
        for number in range(worker, len(plan), num_workers):
            begins, ends, _ = plan[number]
            row[begins:ends] = letters[number] * (ends - begins)
        print(f"worker {worker} ", "".join(row))
    row = [" "] * width
    for number, (_, _, delivered) in enumerate(plan):
        row[delivered] = letters[number]
    print("delivered", "".join(row))


if written("prefetch_plan"):
    draw([2, 2, 12, 2, 2, 2, 2, 2, 2, 2, 2, 2], step=1, num_workers=3, prefetch_factor=2)

# %% [markdown]
# Look: dataloader/slow#samples=12&batch_size=1&num_workers=3&prefetch_factor=2&load=1&late=11&work=1&slow=2
# | The same plan with numbers for letters. Make another sample slow, early or late.
#
# Batch `c` is slow. Workers 0 and 1 go on to the end of the lead and then stand idle, though there is
# work to do: no card comes out before `c` is delivered. And batch `f` waits behind `c`, because it
# was dealt to the same worker. No `prefetch_factor` would have brought `c` earlier: it was begun at 0.
# A slow batch late in the epoch is begun earlier if the lead is larger. For a loader that is too slow
# on average the lead does nothing; that takes workers:

# %%
if written("prefetch_plan"):
    for name, fetch in (("one slow batch", [2] * 20 + [12, 2, 2, 2]), ("all slow", [6] * 24)):
        ends = [prefetch_plan(fetch, 1, 3, factor)[-1][2] for factor in (1, 2, 4)]
        print(f"{name}, prefetch_factor 1, 2, 4: the last delivery at {ends}")
    print("all slow, 6 workers:", prefetch_plan([6] * 24, 1, 6, 2)[-1][2])

# %% grade="prefetch_plan"
grade("prefetch_plan")

# %% [markdown] exercise="zero_copy"
# title: Fill the same memory again and again
# minutes: 35
# difficulty: 4
# points: 5
# prerequisites: [prefetch_plan]
# teaches: >-
#   how workers write into memory that the main process reads, and how many slots a lead needs so
#   that nobody writes where somebody reads.
# leaves out: samples of different shapes; batches that are kept for longer.
# off limits: []

# %% [markdown]
# A worker that returns a batch asks the system for new shared memory, puts the batch there, and sends a
# handle. The main process maps it, uses it once, and gives it back. Every batch is a new piece of memory:

# %%
rows = [torch.full((2,), k) for k in range(6)]
kept = list(DataLoader(rows, batch_size=2, num_workers=1, **WORKERS))
print("shared:", [batch.is_shared() for batch in kept])
print("different storages:", len({batch.untyped_storage().data_ptr() for batch in kept}))

# %% [markdown]
# There is another way. Memory that is shared *before* the fork is the same memory on both sides:

# %%
buffer = torch.zeros(3).share_memory_()
private = torch.zeros(3)


def fill():
    """Write into both."""
    buffer.fill_(7)
    private.fill_(7)


worker = torch.multiprocessing.get_context("fork").Process(target=fill)
worker.start()
worker.join()
print("shared: ", buffer.tolist())
print("private:", private.tolist())

# %% [markdown]
# Draw: (lambda memory: show_storage(slot_0=memory[0], slot_1=memory[1],
# slot_2=memory[2]))(torch.arange(12).view(3, 4)) | Three slots in one piece of memory. What
# travels is 0, 1 or 2.
#
# So make one buffer with a few **slots**, each as large as a batch. A worker fills a slot, and all that
# has to travel is a number. The slots are used in turn, again and again.
#
# How many? Too many cost memory. With too few, a worker writes into the batch that the trainer is
# looking at. Nothing raises then either.
#
# **Predict.** There are 2 workers and `prefetch_factor=3`. What is the smallest number of slots that
# is safe? Count what workers may have in their hands while the trainer has one batch in its own.

# %%
predict(..., lambda: 2 * 3 + 1)

# %% [markdown]
# **Write the generator `zero_copy(dataset, batches, shape, dtype, num_workers, prefetch_factor=2)`.**
# `dataset[i]` is a tensor of this shape and dtype; `batches` is a list, perhaps empty, of lists of
# indices, not all of the same length; there is at least one worker. Yield the batches in order, each of shape
# `(len(indices), *shape)`.
#
# - All of them are views of **one** tensor in shared memory, of which `is_shared()` is true. It holds
#   no more than `num_workers * prefetch_factor + 1` batches of the largest size.
# - Workers fetch the samples and write them there. The main process copies nothing. What a worker sends back
#   is up to you.
# - A batch stays as it is until the next one is asked for. Until then, workers are ahead by
#   `num_workers * prefetch_factor` batches, as ever.
#
# Use `DataLoader`. It need not know that its "samples" are slots.
#
# <details><summary>Hint 1: a dataset of slots</summary>
#
# Give the loader `batch_size=None` and, as its sampler, a list of pairs `(slot, indices)`. Your
# dataset's `__getitem__` gets such a pair, fills the slot and returns whatever you like.
#
# </details>
# <details><summary>Hint 2: in turn</summary>
#
# Batch `k` goes into slot `k % slots`. The loader draws batch `k + lead` when batch `k` is delivered, and
# by then the trainer has given back batch `k - 1`.
#
# </details>
# <details><summary>Hint 3: before the fork</summary>
#
# `torch.empty(...).share_memory_()` must run before the loader starts its workers, and the dataset must
# hold the tensor.
#
# </details>


# %% solution="zero_copy"
def zero_copy(dataset, batches, shape, dtype, num_workers: int, prefetch_factor: int = 2):
    """Yield batches (len(indices), *shape) that live in one shared tensor.

    dataset: `dataset[i]` is a tensor of this shape and dtype
    batches: a list of lists of indices
    """
    ### BEGIN SOLUTION
    slots = num_workers * prefetch_factor + 1  # the lead, and the batch in the trainer's hands
    largest = max(map(len, batches), default=0)
    buffer = torch.empty(slots, largest, *shape, dtype=dtype).share_memory_()

    class Slots(Dataset):
        def __getitem__(self, task):
            slot, indices = task
            for place, index in enumerate(indices):
                buffer[slot, place] = dataset[index]
            return slot

    tasks = [(number % slots, indices) for number, indices in enumerate(batches)]
    loader = DataLoader(
        Slots(),
        batch_size=None,
        sampler=tasks,
        num_workers=num_workers,
        prefetch_factor=prefetch_factor,
        multiprocessing_context="fork",
    )
    for slot, (_, indices) in zip(loader, tasks, strict=True):
        yield buffer[slot, : len(indices)]
    ### END SOLUTION


# %%
if written("zero_copy"):
    thirds = [torch.tensor([k, k / 3]) for k in range(10)]
    places = set()
    for batch in zero_copy(thirds, [[k, k + 1] for k in range(9)], (2,), torch.float32, 1):
        places.add(batch.data_ptr())
    print("last:", [[round(x, 3) for x in row] for row in batch.tolist()])
    print("places in memory:", len(places))

# %% grade="zero_copy"
grade("zero_copy")

# %% [markdown] sitting="loader"
# question: What is inside a DataLoader?
# reached: >-
#   A task queue for each worker, one queue for results, a buffer that restores the order, and an
#   end that leaves no process behind.

# %% [markdown] exercise="MiniLoader"
# title: Build a DataLoader
# minutes: 90
# difficulty: 5
# points: 9
# short: true
# prerequisites: [collate, prefetch_plan]
# teaches: >-
#   how indices travel to workers and batches come back: in order, with a bounded lead, with errors
#   instead of silence, and with an end that leaves no process behind.
# leaves out: >-
#   random seeds of workers, streams, pinned memory, workers that persist, batches and errors that
#   cannot be pickled.
# off limits: [torch.utils.data.DataLoader, torch.multiprocessing.Pool, torch.utils.data._utils.worker._worker_loop, "import:concurrent"]
# forbids: "PyTorch's own loader and its worker, and pools of workers"

# %% [markdown]
# You know now what a loader promises. This is how it is built. The main process never touches a
# sample. It owns
#
# Look: dataloader/places#num_workers=2&slow=4&at=24 | Where each batch is at the moment of the
# cursor: in a queue, in a worker, among the results, or put aside. Drag the cursor.
#
# - one **task queue for each worker**, into which it puts a batch's number and indices;
# - one **result queue** for all, from which it takes numbers and batches, in whatever order they
#   were finished;
# - a dict for batches that came too early: the **reorder buffer**.
#
# Here is one worker, by hand. A tensor in a queue is not copied through it: what travels is a handle
# to a piece of shared memory.

# %%
forked = torch.multiprocessing.get_context("fork")
tasks, results = forked.SimpleQueue(), forked.Queue()


def square_numbers(tasks, results):
    """Answer until None comes."""
    while (number := tasks.get()) is not None:
        results.put((number, torch.full((3,), number**2)))


worker = forked.Process(target=square_numbers, args=(tasks, results))
worker.start()
for number in (4, 7):
    tasks.put(number)
answers = [results.get() for _ in range(2)]
tasks.put(None)
worker.join()
print([(number, squares.tolist(), squares.is_shared()) for number, squares in answers])
print("exit code", worker.exitcode)

# %% [markdown]
# Draw: show_cells({"task queue": ["4", "7", "None"], "result queue": [f"{number}:
# {squares.tolist()}" for number, squares in answers]}, ["first", "second", "third"]) | What went
# through the two queues. The last task has no answer.
#
# Note who ends whom. The main process takes both answers, *then* says that there is nothing more to
# do. With the sharing strategy `file_descriptor`, which is the default on Linux, a tensor on its way is
# fetched from the worker that made it. If that worker has gone, there is nobody to fetch it from, and
# `get` raises an `OSError`:

# %%
worker = forked.Process(target=lambda: results.put(torch.zeros(3)))
worker.start()
worker.join()
if torch.multiprocessing.get_sharing_strategy() == "file_descriptor":
    try:
        results.get()
    except OSError:
        print("its tensor is lost")

# %% [markdown]
# Errors need help too. An exception that a worker does not catch ends that worker, and the main
# process waits for a batch that never comes. So a worker catches, sends a description, and goes on.
# This is what PyTorch's own loader makes of it:


# %%
class OddOneOut(Dataset):
    """The numbers 0 to 5; the 3 cannot be read."""

    def __len__(self):
        return 6

    def __getitem__(self, index):
        if index == 3:
            raise LookupError(f"no sample {index}")
        return index


loader = iter(DataLoader(OddOneOut(), batch_size=2, num_workers=2, **WORKERS))
print(next(loader).tolist())
try:
    next(loader)
except LookupError as error:
    lines = str(error).splitlines()
    print(type(error).__name__, "|", lines[0], "|", lines[-1])
print(next(loader).tolist())
del loader

# %% [markdown]
# Draw: show_cells({f"worker {one}": [("LookupError" if 3 in batch else str(batch)) if worker ==
# one else False for worker, batch in made] for made in [list(DataLoader(range(6), batch_size=2,
# num_workers=2, collate_fn=lambda batch: (torch.utils.data.get_worker_info().id, batch),
# **WORKERS))] for one in range(2)}, ["batch 0", "batch 1", "batch 2"]) | Who makes which batch.
# The error takes the place of its batch, and the other worker knows nothing of it.
#
# The type is the worker's, and the message holds the worker's whole traceback, as text: a traceback
# itself cannot travel. The batch after it still comes.
#
# A type cannot always be made from one string. Look for the way out in
# `torch._utils.ExceptionWrapper.reraise`.
#
# **Predict.** A loader has 3 workers and `prefetch_factor=2`. How many batches has it drawn from its
# sampler after four calls of `next`?

# %%
drawn = []


def endless():
    for number in itertools.count():
        drawn.append(number)
        yield [number]


def four_batches():
    batches = iter(
        DataLoader(range(100), batch_sampler=endless(), num_workers=3, prefetch_factor=2, **WORKERS)
    )
    for _ in range(4):
        next(batches)
    return len(drawn)


predict(..., four_batches)

# %% [markdown]
# **Write the class `MiniLoader(dataset, batch_sampler, collate_fn, num_workers, prefetch_factor=2)`.**
# `dataset[i]` gives a sample; `batch_sampler` is an iterable of lists of indices, perhaps endless;
# `num_workers` is at least 1. Each `iter(loader)` starts workers of its own, forked with
# `torch.multiprocessing`, and returns an iterator that has a method `close()`. Write as many helper
# classes and functions as you like in this cell.
#
# | what | how it must be |
# |---|---|
# | a batch | `collate_fn([dataset[i] for i in indices])`, all of it done in a worker; it may be anything, also `None` |
# | which worker | batch number `k` by worker `k % num_workers` |
# | order | the sampler's, whatever finishes first; workers work side by side |
# | lead | `num_workers * prefetch_factor` batches are drawn from the sampler when `iter` returns, and one more by the end of each `next`, also of one that raises a worker's error |
# | an error in a worker | raised by the `next` whose batch it is, after the batches before it: the same type, made from one string that holds `traceback.format_exc()`; a `RuntimeError` with that string if the type cannot be made so. The batches after it still come. |
# | a worker that dies | a waiting `next` raises `RuntimeError`, within a second or so; also where tensors on their way are lost with it |
# | the end | after `StopIteration`, after `close()`, and when the iterator is dropped, no worker is left; each ended by itself with exit code 0; a batch that no worker has begun is not fetched any more |
# | after the end | `next` raises `StopIteration`, and `close()` does nothing |
#
# <details><summary>Hint 1: numbers</summary>
#
# Three numbers are enough: batches sent, batches returned, and (as a dict) those that came too
# early. Everything has been returned when the first two are equal and the sampler has ended.
#
# </details>
# <details><summary>Hint 2: waiting</summary>
#
# `results.get()` without a timeout waits for ever if the worker is dead. Wait a short time, look
# whether all workers are alive, and wait again.
#
# </details>
# <details><summary>Hint 3: the end</summary>
#
# A `context.Event()` that workers look at before each batch tells them to skip what is left. A
# worker that still has results in its queue waits at its exit until somebody reads them, and nobody
# will: `results.cancel_join_thread()`, in the worker, lets it go.
#
# </details>


# %% solution="MiniLoader"
class MiniLoader:
    """Batches made by worker processes, in the sampler's order.

    dataset: anything with `dataset[i]`
    batch_sampler: an iterable of lists of indices
    collate_fn: from a list of samples to a batch
    """

    def __init__(self, dataset, batch_sampler, collate_fn, num_workers, prefetch_factor=2):
        ### BEGIN SOLUTION
        self.dataset, self.batch_sampler, self.collate_fn = dataset, batch_sampler, collate_fn
        self.num_workers, self.prefetch_factor = num_workers, prefetch_factor

    def __iter__(self):
        return Batches(self)


class Batches:
    """One pass: the queues, the workers, and what came too early."""

    def __init__(self, loader):
        context = torch.multiprocessing.get_context("fork")
        self.sampler = iter(loader.batch_sampler)
        self.sent = self.returned = 0
        self.early = {}
        self.stop, self.results = context.Event(), context.Queue()
        self.tasks = [context.SimpleQueue() for _ in range(loader.num_workers)]
        self.workers = [
            context.Process(
                target=work,
                args=(loader.dataset, loader.collate_fn, tasks, self.results, self.stop),
                daemon=True,  # the end of the main program is theirs too
            )
            for tasks in self.tasks
        ]
        for worker in self.workers:
            worker.start()
        for _ in range(loader.num_workers * loader.prefetch_factor):
            self.send()

    def send(self):
        """Draw one batch of indices and give it to the worker whose turn it is."""
        for indices in itertools.islice(self.sampler, 1):
            self.tasks[self.sent % len(self.tasks)].put((self.sent, indices))
            self.sent += 1

    def __iter__(self):
        return self

    def __next__(self):
        if self.returned == self.sent:
            self.close()
            raise StopIteration
        while self.returned not in self.early:
            self.receive()
        batch, error = self.early.pop(self.returned)
        self.returned += 1
        self.send()  # one came back, so one may go out
        if error is None:
            return batch
        # No name for the exception: a frame that holds its own is a cycle, and this iterator would
        # live on until the garbage collector comes, perhaps in a process that was forked meanwhile.
        raise rebuilt(*error)

    def receive(self):
        """Wait for any worker's batch, but not for the dead."""
        # Whoever was dead before the wait has sent all that it ever will.
        dead = [worker for worker in self.workers if not worker.is_alive()]
        try:
            number, *outcome = self.results.get(timeout=0.1)
            self.early[number] = outcome
        except queue.Empty:
            if dead:
                self.give_up()
        except (OSError, EOFError):  # a tensor was to be fetched from a worker that is gone
            self.give_up()

    def give_up(self):
        """End what is left, and say how each worker ended."""
        self.close()
        codes = [worker.exitcode for worker in self.workers]
        raise RuntimeError(f"a worker died; the exit codes are {codes}") from None

    def close(self):
        """End the workers and wait for them; the dead mind no second time."""
        self.returned = self.sent
        self.stop.set()
        for tasks in self.tasks:
            tasks.put(None)  # wakes a worker that waits for work
        for worker in self.workers:
            worker.join()

    def __del__(self):
        self.close()


def rebuilt(kind, text):
    """Return the exception that a worker described."""
    try:
        return kind(text)
    except Exception:  # this type wants other arguments
        return RuntimeError(text)


def work(dataset, collate_fn, tasks, results, stop):
    """A worker's life: fetch what is asked for until it is time to stop."""
    torch.set_num_threads(1)  # the workers share the cores
    while (task := tasks.get()) is not None and not stop.is_set():
        number, indices = task
        try:
            results.put((number, collate_fn([dataset[i] for i in indices]), None))
        except Exception as error:
            # the type travels by its name, the traceback as text
            results.put((number, None, (type(error), traceback.format_exc())))
    results.cancel_join_thread()  # nobody reads what is left

    ### END SOLUTION


# %%
class Squares(Dataset):
    """Squares, as tensors."""

    def __getitem__(self, index):
        return torch.tensor(index**2)


if written("MiniLoader"):
    for batch in MiniLoader(Squares(), [[3, 1], [0], [5, 2]], torch.stack, num_workers=2):
        print(batch.tolist())

# %% grade="MiniLoader"
grade("MiniLoader")

# %% [markdown] sitting="resuming"
# question: Can a run go on in the middle of an epoch?
# reached: >-
#   Yes, if everything random is a function of seed, epoch and position, and what was fetched
#   ahead does not count.

# %% [markdown] exercise="ResumableLoader"
# title: Stop anywhere, go on as if you had not
# minutes: 60
# difficulty: 5
# points: 7
# prerequisites: [augment, MiniLoader]
# teaches: >-
#   that a loader's state is a position and a seed, if everything random is a function of them; and
#   that what was fetched ahead does not count.
# leaves out: streams that cannot be entered in the middle; ranks.
# off limits: []

# %% [markdown]
# A long run is cut off at batch 40,000 of epoch 3. The model and the optimizer have a checkpoint. The
# loader has none. So people start epoch 3 again, and some samples
# count twice; or they spin through 40,000 batches to get back to the place.
#
# Where is the place? Ask the sampler, and it tells you how many batches were **drawn**. That is not
# how many were **delivered**:


# %%
class Counted:
    """A batch sampler that counts what was drawn from it."""

    drawn = 0

    def __iter__(self):
        for number in range(20):
            self.drawn += 1
            yield [number]


print("a DataLoader has a state_dict:", hasattr(DataLoader, "state_dict"))
for workers in (0, 1, 3):
    sampler = Counted()
    loader = DataLoader(
        range(20),
        batch_sampler=sampler,
        num_workers=workers,
        multiprocessing_context="fork" if workers else None,
    )
    batches = iter(loader)
    for _ in range(4):
        next(batches)
    print(f"{workers} workers: 4 delivered, {sampler.drawn} drawn")
del batches, loader

# %% [markdown]
# Look: dataloader/counts#samples=20&batch_size=1&num_workers=3&prefetch_factor=2&load=1&work=2&at=41
# | Three workers: at the fourth delivery ten batches were given out, six ahead. Go on, step by
# step.
#
# The lead depends on the number of workers, and with it every random number that somebody drew on
# the way. A position must not.
#
# There is one more trap, and it is not in the data. A loader draws from the random stream of the
# **main process**, where your dropout draws too:

# %%
for generator in (None, torch.Generator()):
    torch.manual_seed(0)
    before = torch.get_rng_state()
    iter(DataLoader(range(4), generator=generator))
    print("generator given:", generator is not None, end=", ")
    print("the global state moved:", not torch.equal(before, torch.get_rng_state()))

# %% [markdown]
# Each `iter` draws a base seed for the workers, shuffled or not, with workers or without. A run that
# was resumed has called `iter` once more, so its dropout masks differ from then on. Give the loader
# a generator of its own, and the global stream is left alone.
#
# **Predict.** A loader without workers, and no shuffling. How many 64-bit numbers does it draw from
# the global stream in one epoch of 100 batches?


# %%
def draws_of_one_epoch():
    torch.manual_seed(0)
    list(DataLoader(range(100)))
    after = torch.randint(2**62, ()).item()
    torch.manual_seed(0)
    stream = [torch.randint(2**62, ()).item() for _ in range(200)]
    return stream.index(after)


predict(..., draws_of_one_epoch)

# %% [markdown]
# **Write the class `ResumableLoader(dataset, transform, batch_size, seed, num_workers=0)`.**
# `dataset` has a length; `transform(sample, generator)` returns a tensor and draws what it needs
# from the `torch.Generator` that it is given. The loader stands at a **position**: an epoch, and a
# number of batches of this epoch that were delivered. It begins at epoch 0, batch 0.
#
# - A `for` over the loader goes from its position to the end of the epoch; then the loader stands at
#   the beginning of the next. A `for` that was left by `break` has only moved the position: the next
#   `for` goes on from there. If it was left at the epoch's last batch, nothing is left to give, and
#   the next `for` ends at once.
# - Each epoch visits every sample once, in an order that is shuffled anew, in batches of `batch_size`
#   (the last may be short), collated as `DataLoader` does. The order and the random numbers of a sample depend
#   on the seed and the epoch, and differ from epoch to epoch and from seed to seed. They depend on
#   nothing else: not on `num_workers`, not on the global random state. That state is left as it is.
# - `state_dict()` may be called at any time. A batch that the loop has in its hands counts as
#   delivered. The state survives `json.dumps` and `json.loads`, stays below 1000 characters however
#   large the dataset is, and does not change when the loader goes on.
# - `load_state_dict(state)` puts a loader at that position, also one that has been used. It continues
#   with the very same batches, in this epoch and in all that follow, whatever its own `num_workers`
#   and `seed` are. Samples that were delivered before are not fetched again. It is not called while a `for` over
#   the loader is on, and the state is of a loader with the same dataset and `batch_size`.
#
# Use `DataLoader`, and your `augment` if you like.
#
# <details><summary>Hint 1: skip in the sampler</summary>
#
# Compute the epoch's whole order, cut it into batches, and hand those from the position on to
# `DataLoader(batch_sampler=...)`. A list of lists will do.
#
# </details>
# <details><summary>Hint 2: when to count</summary>
#
# In a generator, what stands after `yield` runs when the next batch is asked for. The caller who
# saves a state in the loop's body is still before that.
#
# </details>
# <details><summary>Hint 3: the order's own randomness</summary>
#
# The permutation needs a generator as well, seeded from the seed and the epoch, and it must not be
# one that a sample has, too. `seed + epoch` is a bad choice: seed 1 in epoch 0 is seed 0 in epoch 1.
#
# </details>


# %% solution="ResumableLoader"
class ResumableLoader:
    """A shuffling, augmenting loader with a position.

    dataset: anything with `len(dataset)` and `dataset[i]`
    transform: from a sample and a generator to a tensor
    """

    def __init__(self, dataset, transform, batch_size, seed, num_workers=0):
        ### BEGIN SOLUTION
        self.dataset, self.transform = dataset, transform
        self.batch_size, self.num_workers = batch_size, num_workers
        self.load_state_dict({"seed": seed, "epoch": 0, "batch": 0})

    def state_dict(self):
        return {"seed": self.seed, "epoch": self.epoch, "batch": self.batch}

    def load_state_dict(self, state):
        # whoever continues a run continues its random numbers, so the seed is part of the state
        self.seed, self.epoch, self.batch = state["seed"], state["epoch"], state["batch"]

    def __iter__(self):
        digest = hashlib.sha256(f"order {self.seed} {self.epoch}".encode()).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(digest[:7]))
        order = torch.randperm(len(self.dataset), generator=generator).tolist()
        batches = [
            order[first : first + self.batch_size]
            for first in range(self.batch * self.batch_size, len(order), self.batch_size)
        ]
        loader = DataLoader(
            augment(self.dataset, self.transform, self.seed, self.epoch),
            batch_sampler=batches,
            num_workers=self.num_workers,
            multiprocessing_context="fork" if self.num_workers else None,
            generator=generator,  # or it would draw from the global stream
        )
        for batch in loader:
            self.batch += 1  # before the yield: the body already has it
            yield batch
        self.epoch, self.batch = self.epoch + 1, 0

    ### END SOLUTION


# %%
def jitter(sample, generator):
    """A whole number and a random one."""
    return torch.tensor([sample, torch.randint(100, (), generator=generator).item()])


if written("ResumableLoader"):
    first = ResumableLoader(range(9), jitter, batch_size=2, seed=5, num_workers=2)
    for number, batch in enumerate(first):
        if number == 2:
            state = json.dumps(first.state_dict())
        if number > 2:
            print("went on:", batch.tolist())

    second = ResumableLoader(range(9), jitter, batch_size=2, seed=5)
    second.load_state_dict(json.loads(state))
    for batch in second:
        print("resumed:", batch.tolist())

# %% grade="ResumableLoader"
grade("ResumableLoader")
