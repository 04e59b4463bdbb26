# Loading data: claims, what is true, and programs that show it.

# %% main-collates who-does-what
# Workers load samples, the main process makes batches of them.
#
# `collate_fn` runs in the worker. What travels is a finished batch.
from torch.utils.data import DataLoader, get_worker_info


def who(samples):
    info = get_worker_info()
    return "main" if info is None else f"worker {info.id}"


print(list(DataLoader(range(8), batch_size=2, num_workers=2, collate_fn=who)))

# %% loader-caches who-does-what
# A DataLoader caches what it has loaded.
#
# Nothing. Every epoch asks for every sample again.
from torch.utils.data import DataLoader, Dataset


class Counted(Dataset):
    calls = 0

    def __len__(self):
        return 4

    def __getitem__(self, index):
        Counted.calls += 1
        return index


loader = DataLoader(Counted())
list(loader), list(loader)
print(Counted.calls)

# %% no-copies zero_copy
# Workers share memory with the main process, so nothing is copied.
#
# A tensor is copied into shared memory once, then handed over. Everything else is pickled.
from torch.utils.data import DataLoader

row = torch.arange(4)
(got,) = DataLoader([row], batch_size=None, num_workers=1)
print(got.is_shared(), got.data_ptr() == row.data_ptr())

# %% shards-are-disjoint distributed_indices
# `DistributedSampler` gives every rank samples of its own.
#
# Where the number does not divide, it repeats some, so that all ranks get equally many. Metrics count them twice. With `drop_last=True` it leaves some out.
from torch.utils.data.distributed import DistributedSampler

for drop in (False, True):
    options = {"shuffle": False, "drop_last": drop}
    shards = [DistributedSampler(range(10), 3, rank, **options) for rank in range(3)]
    print([list(shard) for shard in shards])

# %% epochs-differ distributed_indices
# With `shuffle=True`, every epoch has an order of its own.
#
# With `DistributedSampler` only if you call `set_epoch`.
from torch.utils.data.distributed import DistributedSampler

sampler = DistributedSampler(range(100), 2, 0, shuffle=True)
first, second = list(sampler), list(sampler)
sampler.set_epoch(1)
print(first == second, first == list(sampler))

# %% streams-are-shared-out sharded_stream
# With two workers, each loads half of an `IterableDataset`.
#
# Each loads all of it, unless it asks who it is.
from torch.utils.data import DataLoader, IterableDataset


class Stream(IterableDataset):
    def __iter__(self):
        return iter(range(4))


print([int(x) for x in DataLoader(Stream(), batch_size=None, num_workers=2)])

# %% workers-have-own-seeds isolated_rng
# Workers are seeded, so each has random numbers of its own.
#
# The global generators are. One that is stored in the dataset is copied with it: the same numbers in every worker, in every epoch.
from torch.utils.data import DataLoader, Dataset


class Noisy(Dataset):
    def __init__(self):
        self.generator = torch.Generator().manual_seed(0)

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return int(torch.randint(0, 100, (), generator=self.generator))


loader = DataLoader(Noisy(), batch_size=None, num_workers=4)
drawn = [*loader, *loader]  # two epochs
print(len(set(drawn)), "number in", len(drawn), "samples")

# %% a-seed-is-enough augment
# A seed makes a training run repeatable.
#
# On the same number of workers. Random augmentation in workers depends on who draws.
from torch.utils.data import DataLoader, Dataset


class Noise(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return torch.rand(())


def run(workers):
    torch.manual_seed(0)
    return torch.stack(list(DataLoader(Noise(), batch_size=None, num_workers=workers)))


one = run(1)
print(torch.equal(one, run(1)), torch.equal(one, run(2)))

# %% changes-come-back who-does-what
# What a dataset remembers while it loads, it knows afterwards.
#
# The worker's copy remembers. Yours never hears of it.
from torch.utils.data import DataLoader, Dataset


class Remembering(Dataset):
    def __init__(self):
        self.seen = 0

    def __len__(self):
        return 4

    def __getitem__(self, index):
        self.seen += 1
        return index


data = Remembering()
for workers in (2, 0):
    list(DataLoader(data, num_workers=workers))
    print(data.seen)

# %% lambdas-travel a-collate-that-can-travel
# `collate_fn=lambda …` works with workers.
#
# Where workers are forked. Where they are spawned (macOS, Windows) or come from a fork server, a lambda cannot follow.
import pickle

try:
    pickle.dumps(lambda samples: samples)
except (pickle.PicklingError, AttributeError) as error:
    print(type(error).__name__)

# %% collate-concatenates collate
# The default collate concatenates samples.
#
# It stacks them along a new dim, and refuses unequal shapes.
from torch.utils.data import default_collate

print(default_collate([torch.zeros(3), torch.zeros(3)]).shape)
try:
    default_collate([torch.zeros(3), torch.zeros(2)])
except RuntimeError as error:
    print(str(error).split(",")[0])

# %% batches-need-collate collate
# Without a `collate_fn` there are no batches.
#
# There is a default one. `batch_size=None` is what turns batching off.
from torch.utils.data import DataLoader

print(list(DataLoader(range(4), batch_size=2)))
print(list(DataLoader(range(2), batch_size=None)))

# %% pinning-is-free what-pinning-is
# `pin_memory=True` makes loading faster.
#
# It makes a copy, which pays if a GPU is to fetch it (*Memory Pinning* on the documentation's page on `torch.utils.data`). Without one it does nothing, with a warning.
from torch.utils.data import DataLoader

batch = next(iter(DataLoader(torch.zeros(4, 2), batch_size=2, pin_memory=True)))
found = batch.is_pinned() == torch.accelerator.is_available()
print("pinned only if there is a GPU:", found)

# %% first-come-first-served prefetch_plan
# The batch that is ready first comes first.
#
# Batches come in order, so one slow batch holds the rest back; unless `in_order=False` says otherwise.
import multiprocessing

from torch.utils.data import DataLoader

another_came = multiprocessing.Event()


def load(samples):
    if samples[0] == 0:
        another_came.wait(5)  # a slow batch: five seconds, or until another has arrived
    return samples[0]


for in_order in (True, False):
    another_came.clear()
    order = []
    for batch in DataLoader(range(2), num_workers=2, collate_fn=load, in_order=in_order):
        order.append(batch)
        another_came.set()
    print(order)
