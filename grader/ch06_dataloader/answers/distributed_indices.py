# %% blocked: distributed_sampler
# torch's sampler does the sharing for you. The order and the slice are what is to be written here.
def distributed_indices(
    n, rank, world_size, *, epoch=0, seed=0, shuffle=True, uneven="pad", consumed=0
):
    sampler = torch.utils.data.DistributedSampler(
        range(n), world_size, rank, shuffle, seed, uneven == "drop"
    )
    sampler.set_epoch(epoch)
    indices = list(sampler)
    return indices, [True] * len(indices)


# %% mistake: one_block_each
# You give each rank a block of neighbours. Every `world_size`-th sample was asked for: the slice
# `[rank::world_size]`. Then what all ranks read at one step are neighbours in the order.
def distributed_indices(
    n, rank, world_size, *, epoch=0, seed=0, shuffle=True, uneven="pad", consumed=0
):
    if not 0 <= rank < world_size or uneven not in ("pad", "drop", "keep"):
        raise ValueError
    generator = torch.Generator().manual_seed(seed + epoch)
    order = torch.randperm(n, generator=generator).tolist() if shuffle else list(range(n))
    rest = order[consumed:]
    over = len(rest) % world_size
    padding = []
    if uneven == "pad" and over:
        padding = (rest * world_size)[: world_size - over]
    if uneven == "drop" and over:
        rest = rest[:-over]
    real = [True] * len(rest) + [False] * len(padding)
    size = -(-len(real) // world_size)
    mine = slice(rank * size, (rank + 1) * size)
    return (rest + padding)[mine], real[mine]


# %% mistake: never_pads
# With `"pad"` your ranks have different lengths. The one that is done first leaves the others waiting
# for its gradients. Continue the order from its beginning until it can be shared evenly.
def distributed_indices(
    n, rank, world_size, *, epoch=0, seed=0, shuffle=True, uneven="pad", consumed=0
):
    if not 0 <= rank < world_size or uneven not in ("pad", "drop", "keep"):
        raise ValueError
    generator = torch.Generator().manual_seed(seed + epoch)
    order = torch.randperm(n, generator=generator).tolist() if shuffle else list(range(n))
    rest = order[consumed:]
    over = len(rest) % world_size
    padding = []
    if uneven == "pad" and over:
        padding = []
    if uneven == "drop" and over:
        rest = rest[:-over]
    real = [True] * len(rest) + [False] * len(padding)
    return (rest + padding)[rank::world_size], real[rank::world_size]


# %% mistake: pads_once
# You take the padding from the order in one slice. With more ranks than samples the order is shorter
# than the padding, and must be repeated.
def distributed_indices(
    n, rank, world_size, *, epoch=0, seed=0, shuffle=True, uneven="pad", consumed=0
):
    if not 0 <= rank < world_size or uneven not in ("pad", "drop", "keep"):
        raise ValueError
    generator = torch.Generator().manual_seed(seed + epoch)
    order = torch.randperm(n, generator=generator).tolist() if shuffle else list(range(n))
    rest = order[consumed:]
    over = len(rest) % world_size
    padding = []
    if uneven == "pad" and over:
        padding = rest[: world_size - over]
    if uneven == "drop" and over:
        rest = rest[:-over]
    real = [True] * len(rest) + [False] * len(padding)
    return (rest + padding)[rank::world_size], real[rank::world_size]


# %% mistake: repeats_the_last
# You pad with the last sample. The padding continues the order from its beginning, so that it is
# spread over different samples.
def distributed_indices(
    n, rank, world_size, *, epoch=0, seed=0, shuffle=True, uneven="pad", consumed=0
):
    if not 0 <= rank < world_size or uneven not in ("pad", "drop", "keep"):
        raise ValueError
    generator = torch.Generator().manual_seed(seed + epoch)
    order = torch.randperm(n, generator=generator).tolist() if shuffle else list(range(n))
    rest = order[consumed:]
    over = len(rest) % world_size
    padding = []
    if uneven == "pad" and over:
        padding = [rest[-1]] * (world_size - over)
    if uneven == "drop" and over:
        rest = rest[:-over]
    real = [True] * len(rest) + [False] * len(padding)
    return (rest + padding)[rank::world_size], real[rank::world_size]


# %% mistake: pads_from_its_own
# Each rank that is short pads with its own first sample. The padding continues the common order: the
# first rank that is short gets the order's first sample, the next its second.
def distributed_indices(
    n, rank, world_size, *, epoch=0, seed=0, shuffle=True, uneven="pad", consumed=0
):
    if not 0 <= rank < world_size or uneven not in ("pad", "drop", "keep"):
        raise ValueError
    generator = torch.Generator().manual_seed(seed + epoch)
    order = torch.randperm(n, generator=generator).tolist() if shuffle else list(range(n))
    rest = order[consumed:]
    over = len(rest) % world_size
    padding = []
    if uneven == "pad" and over:
        padding = (rest * world_size)[: world_size - over]
    if uneven == "drop" and over:
        rest = rest[:-over]
    real = [True] * len(rest) + [False] * len(padding)
    own = rest[rank::world_size]
    mine = real[rank::world_size]
    return own + own[:1] * (len(mine) - len(own)), mine


# %% mistake: forgets_the_epoch
# Every epoch of yours has the order of the first. Add `epoch` to the seed of the generator: that is
# what `set_epoch` is for.
def distributed_indices(
    n, rank, world_size, *, epoch=0, seed=0, shuffle=True, uneven="pad", consumed=0
):
    if not 0 <= rank < world_size or uneven not in ("pad", "drop", "keep"):
        raise ValueError
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(n, generator=generator).tolist() if shuffle else list(range(n))
    rest = order[consumed:]
    over = len(rest) % world_size
    padding = []
    if uneven == "pad" and over:
        padding = (rest * world_size)[: world_size - over]
    if uneven == "drop" and over:
        rest = rest[:-over]
    real = [True] * len(rest) + [False] * len(padding)
    return (rest + padding)[rank::world_size], real[rank::world_size]


# %% mistake: forgets_the_seed
# You seed with the epoch alone, so all runs see the same orders, whatever `seed` says. Add the two.
def distributed_indices(
    n, rank, world_size, *, epoch=0, seed=0, shuffle=True, uneven="pad", consumed=0
):
    if not 0 <= rank < world_size or uneven not in ("pad", "drop", "keep"):
        raise ValueError
    generator = torch.Generator().manual_seed(epoch)
    order = torch.randperm(n, generator=generator).tolist() if shuffle else list(range(n))
    rest = order[consumed:]
    over = len(rest) % world_size
    padding = []
    if uneven == "pad" and over:
        padding = (rest * world_size)[: world_size - over]
    if uneven == "drop" and over:
        rest = rest[:-over]
    real = [True] * len(rest) + [False] * len(padding)
    return (rest + padding)[rank::world_size], real[rank::world_size]


# %% mistake: seeds_with_the_rank
# The rank is part of your seed, so each rank shuffles differently. Then their parts overlap, and some
# samples come on no rank. All ranks need one order; the slice makes the difference.
def distributed_indices(
    n, rank, world_size, *, epoch=0, seed=0, shuffle=True, uneven="pad", consumed=0
):
    if not 0 <= rank < world_size or uneven not in ("pad", "drop", "keep"):
        raise ValueError
    generator = torch.Generator().manual_seed(seed + epoch + rank)
    order = torch.randperm(n, generator=generator).tolist() if shuffle else list(range(n))
    rest = order[consumed:]
    over = len(rest) % world_size
    padding = []
    if uneven == "pad" and over:
        padding = (rest * world_size)[: world_size - over]
    if uneven == "drop" and over:
        rest = rest[:-over]
    real = [True] * len(rest) + [False] * len(padding)
    return (rest + padding)[rank::world_size], real[rank::world_size]


# %% mistake: global_manual_seed
# You seed the global stream to shuffle. Dropout and augmentation on every rank then begin each epoch
# with the same numbers. Use a generator of your own.
def distributed_indices(
    n, rank, world_size, *, epoch=0, seed=0, shuffle=True, uneven="pad", consumed=0
):
    if not 0 <= rank < world_size or uneven not in ("pad", "drop", "keep"):
        raise ValueError
    torch.manual_seed(seed + epoch)
    order = torch.randperm(n).tolist() if shuffle else list(range(n))
    rest = order[consumed:]
    over = len(rest) % world_size
    padding = []
    if uneven == "pad" and over:
        padding = (rest * world_size)[: world_size - over]
    if uneven == "drop" and over:
        rest = rest[:-over]
    real = [True] * len(rest) + [False] * len(padding)
    return (rest + padding)[rank::world_size], real[rank::world_size]


# %% mistake: global_order
# You shuffle with the global stream, and each rank's stream is somewhere else. The order must follow
# from seed and epoch alone.
def distributed_indices(
    n, rank, world_size, *, epoch=0, seed=0, shuffle=True, uneven="pad", consumed=0
):
    if not 0 <= rank < world_size or uneven not in ("pad", "drop", "keep"):
        raise ValueError
    order = torch.randperm(n).tolist() if shuffle else list(range(n))
    rest = order[consumed:]
    over = len(rest) % world_size
    padding = []
    if uneven == "pad" and over:
        padding = (rest * world_size)[: world_size - over]
    if uneven == "drop" and over:
        rest = rest[:-over]
    real = [True] * len(rest) + [False] * len(padding)
    return (rest + padding)[rank::world_size], real[rank::world_size]


# %% mistake: keep_pads
# With `"keep"` you still pad. Then samples are counted twice in an evaluation, which is what it is
# meant to avoid: some ranks have one sample more, and that is all.
def distributed_indices(
    n, rank, world_size, *, epoch=0, seed=0, shuffle=True, uneven="pad", consumed=0
):
    if not 0 <= rank < world_size or uneven not in ("pad", "drop", "keep"):
        raise ValueError
    generator = torch.Generator().manual_seed(seed + epoch)
    order = torch.randperm(n, generator=generator).tolist() if shuffle else list(range(n))
    rest = order[consumed:]
    over = len(rest) % world_size
    padding = []
    if uneven in ("pad", "keep") and over:
        padding = (rest * world_size)[: world_size - over]
    if uneven == "drop" and over:
        rest = rest[:-over]
    real = [True] * len(rest) + [False] * len(padding)
    return (rest + padding)[rank::world_size], real[rank::world_size]


# %% mistake: drop_keeps
# With `"drop"` your ranks have different lengths. Cut the order to a multiple of `world_size` before
# it is shared.
def distributed_indices(
    n, rank, world_size, *, epoch=0, seed=0, shuffle=True, uneven="pad", consumed=0
):
    if not 0 <= rank < world_size or uneven not in ("pad", "drop", "keep"):
        raise ValueError
    generator = torch.Generator().manual_seed(seed + epoch)
    order = torch.randperm(n, generator=generator).tolist() if shuffle else list(range(n))
    rest = order[consumed:]
    over = len(rest) % world_size
    padding = []
    if uneven == "pad" and over:
        padding = (rest * world_size)[: world_size - over]
    if False:
        rest = rest[:-over]
    real = [True] * len(rest) + [False] * len(padding)
    return (rest + padding)[rank::world_size], real[rank::world_size]


# %% mistake: drops_too_much
# With `"drop"` you cut off `world_size` samples, or a whole round where the order comes out even. As few
# as possible go: the remainder of a division by `world_size`.
def distributed_indices(
    n, rank, world_size, *, epoch=0, seed=0, shuffle=True, uneven="pad", consumed=0
):
    if not 0 <= rank < world_size or uneven not in ("pad", "drop", "keep"):
        raise ValueError
    generator = torch.Generator().manual_seed(seed + epoch)
    order = torch.randperm(n, generator=generator).tolist() if shuffle else list(range(n))
    rest = order[consumed:]
    over = len(rest) % world_size
    padding = []
    if uneven == "pad" and over:
        padding = (rest * world_size)[: world_size - over]
    if uneven == "drop":
        rest = rest[: max(0, (len(rest) - 1) // world_size) * world_size]
    real = [True] * len(rest) + [False] * len(padding)
    return (rest + padding)[rank::world_size], real[rank::world_size]


# %% mistake: all_real
# You call all entries real. What was put behind the end of the order is padding, and an evaluation
# has to know it. To look for repetitions on the own rank does not help: the sample came on another.
def distributed_indices(
    n, rank, world_size, *, epoch=0, seed=0, shuffle=True, uneven="pad", consumed=0
):
    if not 0 <= rank < world_size or uneven not in ("pad", "drop", "keep"):
        raise ValueError
    generator = torch.Generator().manual_seed(seed + epoch)
    order = torch.randperm(n, generator=generator).tolist() if shuffle else list(range(n))
    rest = order[consumed:]
    over = len(rest) % world_size
    padding = []
    if uneven == "pad" and over:
        padding = (rest * world_size)[: world_size - over]
    if uneven == "drop" and over:
        rest = rest[:-over]
    real = [True] * len(rest) + [True] * len(padding)
    return (rest + padding)[rank::world_size], real[rank::world_size]


# %% mistake: consumed_by_each_rank
# You share the whole order and let each rank skip its part of what was consumed. With another number
# of ranks, or a number that does not divide evenly, that is not what was read before. Leave out the
# front of the common order first, and share the rest.
def distributed_indices(
    n, rank, world_size, *, epoch=0, seed=0, shuffle=True, uneven="pad", consumed=0
):
    if not 0 <= rank < world_size or uneven not in ("pad", "drop", "keep"):
        raise ValueError
    generator = torch.Generator().manual_seed(seed + epoch)
    order = torch.randperm(n, generator=generator).tolist() if shuffle else list(range(n))
    rest = order
    over = len(rest) % world_size
    padding = []
    if uneven == "pad" and over:
        padding = (rest * world_size)[: world_size - over]
    if uneven == "drop" and over:
        rest = rest[:-over]
    real = [True] * len(rest) + [False] * len(padding)
    skip = consumed // world_size
    return (rest + padding)[rank::world_size][skip:], real[rank::world_size][skip:]


# %% mistake: pads_before_it_skips
# You pad first and leave out what was consumed afterwards. Then the rest need not come out even, and
# the padding consists of samples that were read before. Leave out first.
def distributed_indices(
    n, rank, world_size, *, epoch=0, seed=0, shuffle=True, uneven="pad", consumed=0
):
    if not 0 <= rank < world_size or uneven not in ("pad", "drop", "keep"):
        raise ValueError
    generator = torch.Generator().manual_seed(seed + epoch)
    order = torch.randperm(n, generator=generator).tolist() if shuffle else list(range(n))
    rest = order
    over = len(rest) % world_size
    padding = []
    if uneven == "pad" and over:
        padding = (rest * world_size)[: world_size - over]
    if uneven == "drop" and over:
        rest = rest[:-over]
    real = [True] * len(rest) + [False] * len(padding)
    rest, real = (rest + padding)[consumed:], real[consumed:]
    return rest[rank::world_size], real[rank::world_size]


# %% mistake: pads_from_the_whole_order
# You pad with the beginning of the whole order. After an interruption that was read before: what is left is
# continued from its *own* beginning.
def distributed_indices(
    n, rank, world_size, *, epoch=0, seed=0, shuffle=True, uneven="pad", consumed=0
):
    if not 0 <= rank < world_size or uneven not in ("pad", "drop", "keep"):
        raise ValueError((rank, uneven))
    order = list(range(n))
    if shuffle:
        order = torch.randperm(n, generator=torch.Generator().manual_seed(seed + epoch)).tolist()
    rest = order[consumed:]
    count = len(rest)
    if uneven == "drop":
        rest = rest[: count // world_size * world_size]
    while uneven == "pad" and len(rest) % world_size:
        rest += order[: world_size - len(rest) % world_size]
    real = [place < count for place in range(len(rest))]
    return rest[rank::world_size], real[rank::world_size]


# %% alternate: an_error_of_its_own
# Pairs of index and `real`, padded by a cycle, and an exception that is a `ValueError`.
class Refused(ValueError):
    pass


def distributed_indices(
    n, rank, world_size, *, epoch=0, seed=0, shuffle=True, uneven="pad", consumed=0
):
    if rank not in range(world_size) or uneven not in {"pad", "drop", "keep"}:
        raise Refused(rank, uneven)
    order = range(n)
    if shuffle:
        order = torch.randperm(n, generator=torch.Generator().manual_seed(seed + epoch)).tolist()
    rest = [(index, True) for index in order][consumed:]
    extra = len(rest) % world_size
    if extra and uneven == "pad":
        again = itertools.cycle([(index, False) for index, _ in rest])
        rest += itertools.islice(again, world_size - extra)
    elif extra and uneven == "drop":
        rest = rest[:-extra]
    mine = rest[rank::world_size]
    return [index for index, _ in mine], [real for _, real in mine]


# %% mistake: begins_again
# You ignore `consumed`: the whole epoch is read again after an interruption.
def distributed_indices(
    n, rank, world_size, *, epoch=0, seed=0, shuffle=True, uneven="pad", consumed=0
):
    if not 0 <= rank < world_size or uneven not in ("pad", "drop", "keep"):
        raise ValueError
    generator = torch.Generator().manual_seed(seed + epoch)
    order = torch.randperm(n, generator=generator).tolist() if shuffle else list(range(n))
    rest = order
    over = len(rest) % world_size
    padding = []
    if uneven == "pad" and over:
        padding = (rest * world_size)[: world_size - over]
    if uneven == "drop" and over:
        rest = rest[:-over]
    real = [True] * len(rest) + [False] * len(padding)
    return (rest + padding)[rank::world_size], real[rank::world_size]


# %% mistake: shuffles_what_is_left
# You leave out the first of the samples before you shuffle. What was read are the first of the
# *shuffled* order: make the same order again, then leave out.
def distributed_indices(
    n, rank, world_size, *, epoch=0, seed=0, shuffle=True, uneven="pad", consumed=0
):
    if not 0 <= rank < world_size or uneven not in ("pad", "drop", "keep"):
        raise ValueError
    generator = torch.Generator().manual_seed(seed + epoch)
    order = list(range(consumed, n))
    if shuffle:
        order = [order[at] for at in torch.randperm(len(order), generator=generator)]
    rest = order
    over = len(rest) % world_size
    padding = []
    if uneven == "pad" and over:
        padding = (rest * world_size)[: world_size - over]
    if uneven == "drop" and over:
        rest = rest[:-over]
    real = [True] * len(rest) + [False] * len(padding)
    return (rest + padding)[rank::world_size], real[rank::world_size]


# %% mistake: any_rank
# You accept ranks that there are not. Python counts negative numbers from the end, and a rank too large
# takes every so-manieth from further on: nothing raises, and samples are read twice.
def distributed_indices(
    n, rank, world_size, *, epoch=0, seed=0, shuffle=True, uneven="pad", consumed=0
):
    if uneven not in ("pad", "drop", "keep"):
        raise ValueError
    generator = torch.Generator().manual_seed(seed + epoch)
    order = torch.randperm(n, generator=generator).tolist() if shuffle else list(range(n))
    rest = order[consumed:]
    over = len(rest) % world_size
    padding = []
    if uneven == "pad" and over:
        padding = (rest * world_size)[: world_size - over]
    if uneven == "drop" and over:
        rest = rest[:-over]
    real = [True] * len(rest) + [False] * len(padding)
    return (rest + padding)[rank::world_size], real[rank::world_size]


# %% mistake: any_word
# You accept any word for `uneven`, and a typing error does what nobody asked for. Raise `ValueError`.
def distributed_indices(
    n, rank, world_size, *, epoch=0, seed=0, shuffle=True, uneven="pad", consumed=0
):
    if not 0 <= rank < world_size:
        raise ValueError
    generator = torch.Generator().manual_seed(seed + epoch)
    order = torch.randperm(n, generator=generator).tolist() if shuffle else list(range(n))
    rest = order[consumed:]
    over = len(rest) % world_size
    padding = []
    if uneven == "pad" and over:
        padding = (rest * world_size)[: world_size - over]
    if uneven == "drop" and over:
        rest = rest[:-over]
    real = [True] * len(rest) + [False] * len(padding)
    return (rest + padding)[rank::world_size], real[rank::world_size]


# %% alternate: deals_cards
# One list, dealt like cards; padding is dealt until all hands are equal.
def distributed_indices(
    n, rank, world_size, *, epoch=0, seed=0, shuffle=True, uneven="pad", consumed=0
):
    if rank not in range(world_size):
        raise ValueError("no such rank")
    if uneven not in ("pad", "drop", "keep"):
        raise ValueError("no such word")
    order = torch.arange(n)
    if shuffle:
        own = torch.Generator()
        own.manual_seed(seed + epoch)
        order = torch.randperm(n, generator=own)
    left = order[consumed:].tolist()
    hands = [[] for _ in range(world_size)]
    for number, index in enumerate(left):
        hands[number % world_size].append((index, True))
    if uneven == "drop":
        smallest = min(map(len, hands))
        hands = [hand[:smallest] for hand in hands]
    if uneven == "pad" and left:
        number = len(left)
        while number % world_size:
            hands[number % world_size].append((left[(number - len(left)) % len(left)], False))
            number += 1
    return [index for index, _ in hands[rank]], [real for _, real in hands[rank]]


# %% alternate: with_tensors
# The order as a tensor, repeated, cut to length and seen as a table of rounds and ranks.
def distributed_indices(
    n, rank, world_size, *, epoch=0, seed=0, shuffle=True, uneven="pad", consumed=0
):
    if rank < 0 or rank >= world_size:
        raise ValueError(rank)
    generator = torch.Generator()
    generator.manual_seed(epoch + seed)
    order = torch.randperm(n, generator=generator) if shuffle else torch.arange(n)
    rest = order[consumed:]
    count = len(rest)
    if uneven == "keep":
        mine = rest[torch.arange(rank, max(count, rank), world_size)]
        return mine.tolist(), [True] * len(mine)
    if uneven == "pad":
        rounds = (count + world_size - 1) // world_size
    elif uneven == "drop":
        rounds = count // world_size
    else:
        raise ValueError(uneven)
    table = rest.repeat(world_size)[: rounds * world_size].view(rounds, world_size)
    real = torch.arange(rounds * world_size).view(rounds, world_size) < count
    return table[:, rank].tolist(), real[:, rank].tolist()
