# %% mistake: everyone_yields_all
# Each worker has its own copy of the dataset, and each yields all of it: every number comes as
# often as there are workers. Ask `get_worker_info()` which part is this worker's.
class Sharded(IterableDataset):
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return map(torch.tensor, range(self.n))


# %% mistake: fails_without_workers
# In the main process `get_worker_info()` is None: there is no worker, and all of it is yours.
class Sharded(IterableDataset):
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        info = get_worker_info()
        for number in range(info.id, self.n, info.num_workers):
            yield torch.tensor(number)


# %% mistake: drops_the_remainder
# You give every worker the same number of items and lose what is left over.
class Sharded(IterableDataset):
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        info = get_worker_info()
        if info is None:
            yield from map(torch.tensor, range(self.n))
            return
        for turn in range(self.n // info.num_workers):
            yield torch.tensor(turn * info.num_workers + info.id)


# %% alternate: by_filter
# Looks at every number and keeps its own.
class Sharded(IterableDataset):
    def __init__(self, n):
        super().__init__()
        self.n = n

    def __iter__(self):
        info = get_worker_info()
        for number in range(self.n):
            if info is None or number % info.num_workers == info.id:
                yield torch.as_tensor(number)
