# %% mistake: a_plain_loader
# You let the loader stack and send batches. Each is a new piece of shared memory, which is mapped, used
# once and given back.
def zero_copy(dataset, batches, shape, dtype, num_workers, prefetch_factor=2):
    class Sized(Dataset):
        def __getitem__(self, index):
            return dataset[index]

    yield from DataLoader(
        Sized(),
        batch_sampler=batches,
        num_workers=num_workers,
        prefetch_factor=prefetch_factor,
        multiprocessing_context="fork",
    )


# %% mistake: one_slot_too_few
# You have a slot for each batch of the lead, and none for the batch in the trainer's hands. The next batch
# that is handed out goes where the trainer still reads.
def zero_copy(dataset, batches, shape, dtype, num_workers: int, prefetch_factor: int = 2):
    slots = num_workers * prefetch_factor
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


# %% mistake: a_slot_for_each_worker
# You have one slot for each worker, and one for the trainer. But a worker is ahead by `prefetch_factor`
# batches: it does not wait for the trainer before it begins the next.
def zero_copy(dataset, batches, shape, dtype, num_workers: int, prefetch_factor: int = 2):
    slots = num_workers + 1
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


# %% mistake: a_slot_for_each_batch
# You have a slot for each batch of the epoch. It is safe, and it holds the whole dataset in memory. A slot is
# free again as soon as the next batch is asked for.
def zero_copy(dataset, batches, shape, dtype, num_workers: int, prefetch_factor: int = 2):
    slots = len(batches)
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


# %% mistake: private_memory
# Your buffer is not shared. After the fork each process has its own: workers fill theirs, and the main
# process reads what was there before. Call `share_memory_()` before the loader starts.
def zero_copy(dataset, batches, shape, dtype, num_workers: int, prefetch_factor: int = 2):
    slots = num_workers * prefetch_factor + 1
    largest = max(map(len, batches), default=0)
    buffer = torch.zeros(slots, largest, *shape, dtype=dtype)

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


# %% mistake: copies_in_main
# Your workers send tensors, and the main process copies them into the buffer. That is one copy more than
# without a buffer, and it is made where the trainer waits. Let the workers write.
def zero_copy(dataset, batches, shape, dtype, num_workers: int, prefetch_factor: int = 2):
    slots = num_workers * prefetch_factor + 1
    largest = max(map(len, batches), default=0)
    buffer = torch.empty(slots, largest, *shape, dtype=dtype).share_memory_()

    class Slots(Dataset):
        def __getitem__(self, task):
            slot, indices = task
            return slot, torch.stack([dataset[index] for index in indices])

    tasks = [(number % slots, indices) for number, indices in enumerate(batches)]
    loader = DataLoader(
        Slots(),
        batch_size=None,
        sampler=tasks,
        num_workers=num_workers,
        prefetch_factor=prefetch_factor,
        multiprocessing_context="fork",
    )
    for (slot, batch), (_, indices) in zip(loader, tasks, strict=True):
        buffer[slot, : len(indices)] = batch
        yield buffer[slot, : len(indices)]


# %% mistake: forgets_short_batches
# You yield the whole slot. After a shorter batch its end holds samples of an older one.
def zero_copy(dataset, batches, shape, dtype, num_workers: int, prefetch_factor: int = 2):
    slots = num_workers * prefetch_factor + 1
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
        yield buffer[slot]


# %% mistake: asks_too_early
# You ask the loader for the next batch before the trainer has asked you. By that the loader hands out one
# batch more, and it goes into the slot that the trainer reads.
def zero_copy(dataset, batches, shape, dtype, num_workers: int, prefetch_factor: int = 2):
    slots = num_workers * prefetch_factor + 1
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
    ahead = None
    for slot, (_, indices) in zip(loader, tasks, strict=True):
        if ahead is not None:
            yield ahead
        ahead = buffer[slot, : len(indices)]
    if ahead is not None:
        yield ahead


# %% mistake: a_ring_for_each_worker
# Each of your workers has slots of its own: the trainer's batch counts once for each of them. The slots of all
# workers, used in turn, are enough with one more for the trainer.
def zero_copy(dataset, batches, shape, dtype, num_workers: int, prefetch_factor: int = 2):
    each = prefetch_factor + 1
    slots = num_workers * each
    largest = max(map(len, batches), default=0)
    buffer = torch.empty(slots, largest, *shape, dtype=dtype).share_memory_()

    class Slots(Dataset):
        def __getitem__(self, task):
            slot, indices = task
            for place, index in enumerate(indices):
                buffer[slot, place] = dataset[index]
            return slot

    tasks = [
        (number % num_workers * each + number // num_workers % each, indices)
        for number, indices in enumerate(batches)
    ]
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


# %% mistake: float32_always
# Your buffer is `float32`, whatever `dtype` says. Whole numbers above 2**24 would change on their way.
def zero_copy(dataset, batches, shape, dtype, num_workers: int, prefetch_factor: int = 2):
    slots = num_workers * prefetch_factor + 1
    largest = max(map(len, batches), default=0)
    buffer = torch.empty(slots, largest, *shape).share_memory_()

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


# %% mistake: as_large_as_the_first_batch
# Your slots are as large as the first batch. A later one may be larger, and does not fit.
def zero_copy(dataset, batches, shape, dtype, num_workers: int, prefetch_factor: int = 2):
    slots = num_workers * prefetch_factor + 1
    largest = len(batches[0]) if batches else 0
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


# %% mistake: indexes_with_a_list
# An index that is a list copies what it picks: what you yield is no view of the buffer. Whole numbers and slices
# give views.
def zero_copy(dataset, batches, shape, dtype, num_workers: int, prefetch_factor: int = 2):
    slots = num_workers * prefetch_factor + 1
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
        yield buffer[[slot], : len(indices)][0]


# %% alternate: stack_into_the_slot
# The worker stacks with `out=`; the main process keeps count of the slots by itself.
class Writer(Dataset):
    def __init__(self, dataset, slots):
        self.dataset, self.slots = dataset, slots

    def __getitem__(self, task):
        number, indices = task
        if indices:
            samples = [self.dataset[index] for index in indices]
            torch.stack(samples, out=self.slots[number % len(self.slots)][: len(indices)])


def nothing(value):
    return value


def zero_copy(dataset, batches, shape, dtype, num_workers, prefetch_factor=2):
    room = 0
    for indices in batches:
        room = max(room, len(indices))
    memory = torch.zeros((1 + prefetch_factor * num_workers, room) + shape, dtype=dtype)
    memory.share_memory_()
    writer = DataLoader(
        Writer(dataset, memory.unbind(0)),
        sampler=list(enumerate(batches)),
        batch_size=None,
        collate_fn=nothing,
        num_workers=num_workers,
        prefetch_factor=prefetch_factor,
    )
    for number, _ in enumerate(writer):
        yield memory[number % len(memory)].narrow(0, 0, len(batches[number]))


# %% alternate: sends_the_view
# The worker returns the view of its slot. A tensor that lies in shared memory already is not copied on its
# way, and at the other end it is found to be the memory that is there.
def zero_copy(dataset, batches, shape, dtype, num_workers, prefetch_factor=2):
    slots = num_workers * prefetch_factor + 1
    buffer = torch.empty(
        slots, max(map(len, batches), default=0), *shape, dtype=dtype
    ).share_memory_()

    class Slots(Dataset):
        def __getitem__(self, task):
            slot, indices = task
            for place, index in enumerate(indices):
                buffer[slot, place] = dataset[index]
            return buffer[slot, : len(indices)]

    tasks = [(number % slots, indices) for number, indices in enumerate(batches)]
    yield from DataLoader(
        Slots(),
        batch_size=None,
        sampler=tasks,
        num_workers=num_workers,
        prefetch_factor=prefetch_factor,
        multiprocessing_context="fork",
    )


# %% alternate: a_stream_of_places
# A stream: each worker goes through its own batches and says where it put them.
def zero_copy(dataset, batches, shape, dtype, num_workers, prefetch_factor=2):
    sizes = [len(indices) for indices in batches] or [0]
    rows = max(sizes)
    slots = 1 + num_workers * prefetch_factor
    memory = torch.empty(slots * rows, *shape, dtype=dtype)
    memory.share_memory_()

    class Fill(torch.utils.data.IterableDataset):
        def __iter__(self):
            info = get_worker_info()
            for k in range(info.id, len(batches), info.num_workers):
                at = k % slots * rows
                for place, index in enumerate(batches[k]):
                    memory[at + place] = dataset[index]
                yield torch.tensor(at)

    loader = DataLoader(
        Fill(),
        batch_size=None,
        num_workers=num_workers,
        prefetch_factor=prefetch_factor,
        multiprocessing_context="fork",
    )
    for k, at in enumerate(loader):
        yield memory[int(at) : int(at) + len(batches[k])]


# %% alternate: collates_into_the_slot
# Each sample is told its place and written there; the collate function only says where the batch is.
class Writes(Dataset):
    def __init__(self, dataset, buffer):
        self.dataset, self.buffer = dataset, buffer

    def __getitem__(self, task):
        slot, place, index = task
        self.buffer[slot][place].copy_(self.dataset[index])
        return slot, place


def where_it_is(done):
    return done[0][0], len(done)


def zero_copy(dataset, batches, shape, dtype, num_workers, prefetch_factor=2):
    slots = 1 + num_workers * prefetch_factor
    most = max((len(batch) for batch in batches), default=0)
    buffer = torch.zeros(slots, most, *shape, dtype=dtype)
    buffer.share_memory_()
    tasks = [
        [(number % slots, place, index) for place, index in enumerate(batch)]
        for number, batch in enumerate(batches)
    ]
    loader = DataLoader(
        Writes(dataset, buffer),
        batch_sampler=tasks,
        collate_fn=where_it_is,
        num_workers=num_workers,
        prefetch_factor=prefetch_factor,
        **WORKERS,
    )
    for slot, size in loader:
        yield buffer[slot].narrow(0, 0, size)
