# %% mistake: everyone_takes_all
# You share out over the ranks and forget the workers. Each worker has a copy of the stream, and an item comes
# as often as a rank has workers.
def sharded_stream(items, rank: int, world_size: int, batch_size: int, drop_uneven: bool = False):
    info = get_worker_info()
    worker, workers = (info.id, info.num_workers) if info else (0, 1)
    items = iter(items)
    for number in itertools.count():
        one_each = list(itertools.islice(items, world_size))
        complete = len(one_each) == world_size
        if not one_each or (drop_uneven and not complete):
            return
        if rank < len(one_each):
            yield one_each[rank]


# %% mistake: only_workers
# You share out over the workers and forget the ranks. All ranks train on the same items.
def sharded_stream(items, rank, world_size, batch_size, drop_uneven=False):
    info = get_worker_info()
    worker, workers = (info.id, info.num_workers) if info else (0, 1)
    for number, item in enumerate(items):
        if number // batch_size % workers == worker:
            yield item


# %% mistake: fails_without_workers
# In the main process `get_worker_info()` is None: there is no worker, and all of the rank's items are
# this process's.
def sharded_stream(items, rank: int, world_size: int, batch_size: int, drop_uneven: bool = False):
    info = get_worker_info()
    worker, workers = (info.id, info.num_workers)
    items = iter(items)
    for number in itertools.count():
        one_each = list(itertools.islice(items, world_size))
        complete = len(one_each) == world_size
        if not one_each or (drop_uneven and not complete):
            return
        if rank < len(one_each) and number // batch_size % workers == worker:
            yield one_each[rank]


# %% mistake: every_nth_item
# You deal out single items to the workers. Each comes once, but which items share a batch now depends on the
# number of workers. Deal out whole batches.
def sharded_stream(items, rank: int, world_size: int, batch_size: int, drop_uneven: bool = False):
    info = get_worker_info()
    worker, workers = (info.id, info.num_workers) if info else (0, 1)
    items = iter(items)
    for number in itertools.count():
        one_each = list(itertools.islice(items, world_size))
        complete = len(one_each) == world_size
        if not one_each or (drop_uneven and not complete):
            return
        if rank < len(one_each) and number % workers == worker:
            yield one_each[rank]


# %% mistake: one_long_row
# You number all processes in one row and take every n-th item. With workers, item i does not belong to
# rank i % world_size any more, and batches depend on the number of workers.
def sharded_stream(items, rank, world_size, batch_size, drop_uneven=False):
    info = get_worker_info()
    worker, workers = (info.id, info.num_workers) if info else (0, 1)
    everyone = world_size * workers
    items = iter(items)
    while row := list(itertools.islice(items, everyone)):
        mine = rank * workers + worker
        if mine < len(row) and not (drop_uneven and len(row) < everyone):
            yield row[mine]


# %% mistake: batches_of_all_ranks
# You count batches over the whole stream instead of over the rank's own items. A batch of a rank is then cut
# up between workers.
def sharded_stream(items, rank: int, world_size: int, batch_size: int, drop_uneven: bool = False):
    info = get_worker_info()
    worker, workers = (info.id, info.num_workers) if info else (0, 1)
    items = iter(items)
    for number in itertools.count():
        one_each = list(itertools.islice(items, world_size))
        complete = len(one_each) == world_size
        if not one_each or (drop_uneven and not complete):
            return
        if rank < len(one_each) and (number * world_size + rank) // batch_size % workers == worker:
            yield one_each[rank]


# %% mistake: does_not_drop
# You take no notice of `drop_uneven`. The last items go to some ranks only; those make one more step than
# the others, and wait for them for ever.
def sharded_stream(items, rank: int, world_size: int, batch_size: int, drop_uneven: bool = False):
    info = get_worker_info()
    worker, workers = (info.id, info.num_workers) if info else (0, 1)
    items = iter(items)
    for number in itertools.count():
        one_each = list(itertools.islice(items, world_size))
        if not one_each:
            return
        if rank < len(one_each) and number // batch_size % workers == worker:
            yield one_each[rank]


# %% mistake: always_drops
# You drop an incomplete round whether you are asked to or not. Without `drop_uneven` every item counts.
def sharded_stream(items, rank: int, world_size: int, batch_size: int, drop_uneven: bool = False):
    info = get_worker_info()
    worker, workers = (info.id, info.num_workers) if info else (0, 1)
    items = iter(items)
    for number in itertools.count():
        one_each = list(itertools.islice(items, world_size))
        complete = len(one_each) == world_size
        if not one_each or not complete:
            return
        if rank < len(one_each) and number // batch_size % workers == worker:
            yield one_each[rank]


# %% mistake: none_is_the_end
# You fill the last round up with `None`, and leave out every `None` again: also those that are items of the
# stream. A length, or an object of your own, tells what was filled in.
def sharded_stream(items, rank, world_size, batch_size, drop_uneven=False):
    info = get_worker_info()
    worker, workers = (info.id, info.num_workers) if info else (0, 1)
    rounds = [iter(items)] * world_size
    together = zip(*rounds) if drop_uneven else itertools.zip_longest(*rounds)
    for number, one in enumerate(together):
        if one[rank] is not None and number // batch_size % workers == worker:
            yield one[rank]


# %% mistake: drops_whole_batches
# With `drop_uneven` you drop an incomplete batch of all ranks. Only an incomplete *round* goes, of at most
# `world_size - 1` items: a short last batch that every rank has is no trouble.
def sharded_stream(items, rank, world_size, batch_size, drop_uneven=False):
    info = get_worker_info()
    worker, workers = (info.id, info.num_workers) if info else (0, 1)
    items = iter(items)
    for number in itertools.count():
        batches = list(itertools.islice(items, world_size * batch_size))
        if not batches or (drop_uneven and len(batches) < world_size * batch_size):
            return
        if number % workers == worker:
            yield from batches[rank::world_size]


# %% mistake: reads_it_all
# You make a list of the stream to know its length. An endless stream has none, and a long one does not fit.
# Read one round ahead; that is enough.
def sharded_stream(items, rank: int, world_size: int, batch_size: int, drop_uneven: bool = False):
    info = get_worker_info()
    worker, workers = (info.id, info.num_workers) if info else (0, 1)
    items = iter(list(items))
    for number in itertools.count():
        one_each = list(itertools.islice(items, world_size))
        complete = len(one_each) == world_size
        if not one_each or (drop_uneven and not complete):
            return
        if rank < len(one_each) and number // batch_size % workers == worker:
            yield one_each[rank]


# %% mistake: cuts_into_halves
# You give each rank a piece of the stream in one go. For that you must know its length, so you read all of
# it; and an endless stream never comes to the second piece.
def sharded_stream(items, rank, world_size, batch_size, drop_uneven=False):
    info = get_worker_info()
    worker, workers = (info.id, info.num_workers) if info else (0, 1)
    items = list(items)
    share = len(items) // world_size if drop_uneven else -(-len(items) // world_size)
    mine = items[rank * share : (rank + 1) * share]
    for number, item in enumerate(mine):
        if number // batch_size % workers == worker:
            yield item


# %% alternate: item_by_item
# Looks at one item at a time and keeps the last own one back until its round is complete.
def sharded_stream(items, rank, world_size, batch_size, drop_uneven=False):
    info = get_worker_info()
    kept = []
    for number, item in enumerate(items):
        own = number // world_size
        here = info is None or own // batch_size % info.num_workers == info.id
        if number % world_size == rank and here:
            kept.append(item)
        if kept and (not drop_uneven or number % world_size == world_size - 1):
            yield kept.pop()


# %% alternate: by_slices
# The rank's items by one slice, cut into batches, of which the worker takes every n-th.
def sharded_stream(items, rank, world_size, batch_size, drop_uneven=False):
    def rounds():
        source = iter(items)
        while group := tuple(itertools.islice(source, world_size)):
            if len(group) == world_size or not drop_uneven:
                yield group

    info = get_worker_info()
    mine = (group[rank] for group in rounds() if rank < len(group))
    turn = 0
    while batch := list(itertools.islice(mine, batch_size)):
        if info is None or turn == info.id:
            yield from batch
        turn = 0 if info is None else (turn + 1) % info.num_workers
