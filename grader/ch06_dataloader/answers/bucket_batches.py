# %% mistake: shuffles_batches_only
# You shuffle the batches and not the samples before they are cut. The same samples meet in every
# epoch, so the batch is what the model learns to know. Shuffle each bucket's members first.
def bucket_batches(lengths, boundaries, max_cells, generator):
    bucket = torch.bucketize(lengths, torch.tensor(boundaries))
    if bool((bucket == len(boundaries)).any()):
        raise ValueError("too long")
    batches = []
    for number, boundary in enumerate(boundaries):
        members = (bucket == number).nonzero().flatten()
        members = members.tolist()
        rows = max_cells // boundary
        batches += [members[at : at + rows] for at in range(0, len(members), rows)]
    order = torch.randperm(len(batches), generator=generator)
    return [batches[at] for at in order.tolist()]


# %% mistake: sorts_within_buckets
# Within a bucket you sort by length before you cut. Padding goes up to the boundary in any case, so
# nothing is gained, and long samples of a bucket never meet short ones.
def bucket_batches(lengths, boundaries, max_cells, generator):
    bucket = torch.bucketize(lengths, torch.tensor(boundaries))
    if bool((bucket == len(boundaries)).any()):
        raise ValueError("too long")
    batches = []
    for number, boundary in enumerate(boundaries):
        members = (bucket == number).nonzero().flatten()
        members = members[torch.randperm(len(members), generator=generator)]
        members = members[lengths[members].argsort(stable=True)].tolist()
        rows = max_cells // boundary
        batches += [members[at : at + rows] for at in range(0, len(members), rows)]
    order = torch.randperm(len(batches), generator=generator)
    return [batches[at] for at in order.tolist()]


# %% mistake: buckets_in_order
# Your batches come bucket by bucket, all short samples first. Put the batches of all buckets into one
# list, and shuffle that.
def bucket_batches(lengths, boundaries, max_cells, generator):
    bucket = torch.bucketize(lengths, torch.tensor(boundaries))
    if bool((bucket == len(boundaries)).any()):
        raise ValueError("too long")
    batches = []
    for number, boundary in enumerate(boundaries):
        members = (bucket == number).nonzero().flatten()
        members = members[torch.randperm(len(members), generator=generator)].tolist()
        rows = max_cells // boundary
        batches += [members[at : at + rows] for at in range(0, len(members), rows)]
    return batches


# %% mistake: shuffles_buckets
# You shuffle the buckets, and the batches of one bucket still come one after the other. Shuffle the
# list of all batches.
def bucket_batches(lengths, boundaries, max_cells, generator):
    bucket = torch.bucketize(lengths, torch.tensor(boundaries))
    if bool((bucket == len(boundaries)).any()):
        raise ValueError("too long")
    groups = []
    for number, boundary in enumerate(boundaries):
        members = (bucket == number).nonzero().flatten()
        members = members[torch.randperm(len(members), generator=generator)].tolist()
        rows = max_cells // boundary
        groups.append([members[at : at + rows] for at in range(0, len(members), rows)])
    order = torch.randperm(len(groups), generator=generator)
    return [batch for at in order.tolist() for batch in groups[at]]


# %% mistake: small_ones_last
# You shuffle the full batches and put the small ones behind them. Every epoch then ends with the same
# few sizes: shuffle all batches together.
def bucket_batches(lengths, boundaries, max_cells, generator):
    bucket = torch.bucketize(lengths, torch.tensor(boundaries))
    if bool((bucket == len(boundaries)).any()):
        raise ValueError("too long")
    batches = []
    for number, boundary in enumerate(boundaries):
        members = (bucket == number).nonzero().flatten()
        members = members[torch.randperm(len(members), generator=generator)].tolist()
        rows = max_cells // boundary
        batches += [members[at : at + rows] for at in range(0, len(members), rows)]
    order = torch.randperm(len(batches), generator=generator)
    mixed = [batches[at] for at in order.tolist()]
    full = [max_cells // boundaries[int(bucket[batch[0]])] == len(batch) for batch in mixed]
    return [b for b, f in zip(mixed, full) if f] + [b for b, f in zip(mixed, full) if not f]


# %% mistake: drops_the_rest
# You drop what does not fill a batch. In each bucket some samples are then missing from every epoch:
# the last batch of a bucket may be small.
def bucket_batches(lengths, boundaries, max_cells, generator):
    bucket = torch.bucketize(lengths, torch.tensor(boundaries))
    if bool((bucket == len(boundaries)).any()):
        raise ValueError("too long")
    batches = []
    for number, boundary in enumerate(boundaries):
        members = (bucket == number).nonzero().flatten()
        members = members[torch.randperm(len(members), generator=generator)].tolist()
        rows = max_cells // boundary
        batches += [members[at : at + rows] for at in range(0, len(members) - rows + 1, rows)]
    order = torch.randperm(len(batches), generator=generator)
    return [batches[at] for at in order.tolist()]


# %% mistake: boundary_belongs_to_the_next
# A sample as long as a boundary goes into the next bucket in your program, and the longest of all into
# none. It fits its boundary exactly: `bucketize` with `right=False`, or `bisect_left`.
def bucket_batches(lengths, boundaries, max_cells, generator):
    bucket = torch.bucketize(lengths, torch.tensor(boundaries), right=True)
    if bool((bucket == len(boundaries)).any()):
        raise ValueError("too long")
    batches = []
    for number, boundary in enumerate(boundaries):
        members = (bucket == number).nonzero().flatten()
        members = members[torch.randperm(len(members), generator=generator)].tolist()
        rows = max_cells // boundary
        batches += [members[at : at + rows] for at in range(0, len(members), rows)]
    order = torch.randperm(len(batches), generator=generator)
    return [batches[at] for at in order.tolist()]


# %% mistake: rows_by_the_longest
# You count how many fit by the longest sample of the bucket. Rows are padded to the boundary, so
# divide `max_cells` by that.
def bucket_batches(lengths, boundaries, max_cells, generator):
    bucket = torch.bucketize(lengths, torch.tensor(boundaries))
    if bool((bucket == len(boundaries)).any()):
        raise ValueError("too long")
    batches = []
    for number, boundary in enumerate(boundaries):
        members = (bucket == number).nonzero().flatten()
        members = members[torch.randperm(len(members), generator=generator)].tolist()
        rows = max_cells // max(1, int(lengths[members].max())) if len(members) else 1
        batches += [members[at : at + rows] for at in range(0, len(members), rows)]
    order = torch.randperm(len(batches), generator=generator)
    return [batches[at] for at in order.tolist()]


# %% mistake: the_same_number_of_rows
# All your batches have as many rows as the widest one can have. Short samples cost less: divide
# `max_cells` by the boundary of the batch's own bucket.
def bucket_batches(lengths, boundaries, max_cells, generator):
    bucket = torch.bucketize(lengths, torch.tensor(boundaries))
    if bool((bucket == len(boundaries)).any()):
        raise ValueError("too long")
    batches = []
    for number, boundary in enumerate(boundaries):
        members = (bucket == number).nonzero().flatten()
        members = members[torch.randperm(len(members), generator=generator)].tolist()
        rows = max_cells // boundaries[-1]
        batches += [members[at : at + rows] for at in range(0, len(members), rows)]
    order = torch.randperm(len(batches), generator=generator)
    return [batches[at] for at in order.tolist()]


# %% mistake: empty_batches
# A bucket without samples gives you a batch without samples: `split` of an empty tensor returns one
# empty part. Leave it out; no model can be given an empty batch.
def bucket_batches(lengths, boundaries, max_cells, generator):
    bucket = torch.bucketize(lengths, torch.tensor(boundaries))
    if bool((bucket == len(boundaries)).any()):
        raise ValueError("too long")
    batches = []
    for number, boundary in enumerate(boundaries):
        members = (bucket == number).nonzero().flatten()
        members = members[torch.randperm(len(members), generator=generator)]
        rows = max_cells // boundary
        batches += [part.tolist() for part in members.split(rows)]
    order = torch.randperm(len(batches), generator=generator)
    return [batches[at] for at in order.tolist()]


# %% mistake: squeezes_in_the_longest
# A sample that is longer than the last boundary ends up in the last bucket, and would be cut or break
# the batch. Raise `ValueError` before you begin.
def bucket_batches(lengths, boundaries, max_cells, generator):
    bucket = torch.bucketize(lengths, torch.tensor(boundaries))
    bucket = bucket.clamp(max=len(boundaries) - 1)
    batches = []
    for number, boundary in enumerate(boundaries):
        members = (bucket == number).nonzero().flatten()
        members = members[torch.randperm(len(members), generator=generator)].tolist()
        rows = max_cells // boundary
        batches += [members[at : at + rows] for at in range(0, len(members), rows)]
    order = torch.randperm(len(batches), generator=generator)
    return [batches[at] for at in order.tolist()]


# %% mistake: global_stream
# You shuffle with the global stream. Whoever else draws from it changes your batches, and you change
# what they draw. Hand `generator` to every `randperm`.
def bucket_batches(lengths, boundaries, max_cells, generator):
    bucket = torch.bucketize(lengths, torch.tensor(boundaries))
    if bool((bucket == len(boundaries)).any()):
        raise ValueError("too long")
    batches = []
    for number, boundary in enumerate(boundaries):
        members = (bucket == number).nonzero().flatten()
        members = members[torch.randperm(len(members))].tolist()
        rows = max_cells // boundary
        batches += [members[at : at + rows] for at in range(0, len(members), rows)]
    order = torch.randperm(len(batches))
    return [batches[at] for at in order.tolist()]


# %% mistake: half_of_it_global
# The order of your batches comes from a global stream: `random.shuffle` knows nothing of `generator`.
# Draw a permutation from `generator`, and reorder by it.
def bucket_batches(lengths, boundaries, max_cells, generator):
    bucket = torch.bucketize(lengths, torch.tensor(boundaries))
    if bool((bucket == len(boundaries)).any()):
        raise ValueError("too long")
    batches = []
    for number, boundary in enumerate(boundaries):
        members = (bucket == number).nonzero().flatten()
        members = members[torch.randperm(len(members), generator=generator)].tolist()
        rows = max_cells // boundary
        batches += [members[at : at + rows] for at in range(0, len(members), rows)]
    random.shuffle(batches)
    return batches


# %% mistake: seeds_the_generator
# You seed the generator at the beginning, so every epoch is the same. It was handed to you in a state:
# draw from it, and let it move on.
def bucket_batches(lengths, boundaries, max_cells, generator):
    bucket = torch.bucketize(lengths, torch.tensor(boundaries))
    if bool((bucket == len(boundaries)).any()):
        raise ValueError("too long")
    batches = []
    generator.manual_seed(generator.initial_seed())
    for number, boundary in enumerate(boundaries):
        members = (bucket == number).nonzero().flatten()
        members = members[torch.randperm(len(members), generator=generator)].tolist()
        rows = max_cells // boundary
        batches += [members[at : at + rows] for at in range(0, len(members), rows)]
    order = torch.randperm(len(batches), generator=generator)
    return [batches[at] for at in order.tolist()]


# %% mistake: starts_from_the_seed
# You take `generator.initial_seed()` and shuffle with a generator of your own from there. That is where it
# began, and not where it stands, so every epoch is the first: draw a number from it, and seed with that.
def bucket_batches(lengths, boundaries, max_cells, generator):
    if len(lengths) and int(lengths.max()) > boundaries[-1]:
        raise ValueError("too long")
    own, batches = random.Random(generator.initial_seed()), []
    bucket = torch.bucketize(lengths, torch.tensor(boundaries))
    for number, boundary in enumerate(boundaries):
        members, rows = (bucket == number).nonzero().flatten().tolist(), max_cells // boundary
        own.shuffle(members)
        batches += [members[at : at + rows] for at in range(0, len(members), rows)]
    own.shuffle(batches)
    return batches


# %% mistake: boundaries_in_the_lengths_dtype
# You turn the boundaries into the dtype of the lengths. Lengths may be `uint8`, and a boundary of 300 is no
# number there: let `torch.tensor` choose.
def bucket_batches(lengths, boundaries, max_cells, generator):
    ends = torch.tensor(boundaries, dtype=lengths.dtype)
    if len(lengths) and bool((lengths > ends[-1]).any()):
        raise ValueError("too long")
    bucket, batches = torch.bucketize(lengths, ends), []
    for number, boundary in enumerate(boundaries):
        members = (bucket == number).nonzero().flatten()
        members = members[torch.randperm(len(members), generator=generator)].tolist()
        rows = max_cells // boundary
        batches += [members[at : at + rows] for at in range(0, len(members), rows)]
    return [batches[at] for at in torch.randperm(len(batches), generator=generator).tolist()]


# %% mistake: one_shuffle_of_everything
# You shuffle all samples and cut batches from that order, whoever meets. Then a batch is as wide as its
# longest sample, and most of it is padding. Sort the samples into their buckets first.
def bucket_batches(lengths, boundaries, max_cells, generator):
    if any(length > boundaries[-1] for length in lengths.tolist()):
        raise ValueError("too long")
    order = torch.randperm(len(lengths), generator=generator).tolist()
    rows = max_cells // max(1, *lengths.tolist(), 1)
    return [order[at : at + rows] for at in range(0, len(order), rows)]


# %% alternate: cuts_as_it_goes
# Walks through one shuffled order and closes a batch as soon as it is full.
def bucket_batches(lengths, boundaries, max_cells, generator):
    if any(length > boundaries[-1] for length in lengths.tolist()):
        raise ValueError("too long")
    open_ones, batches = {boundary: [] for boundary in boundaries}, []
    for index in torch.randperm(len(lengths), generator=generator).tolist():
        boundary = min(b for b in boundaries if b >= int(lengths[index]))
        open_ones[boundary].append(index)
        if len(open_ones[boundary]) == max_cells // boundary:
            batches.append(open_ones[boundary])
            open_ones[boundary] = []
    batches += [batch for batch in open_ones.values() if batch]
    return [batches[at] for at in torch.randperm(len(batches), generator=generator)]


# %% alternate: seeds_another
# Draws one seed from the generator, and shuffles in place with Python's own.
def bucket_batches(lengths, boundaries, max_cells, generator):
    draw = random.Random(int(torch.randint(2**62, (), generator=generator)))
    low, batches = -1, []
    if len(lengths) and int(lengths.max()) > boundaries[-1]:
        raise ValueError("too long")
    for high in boundaries:
        members = [i for i, length in enumerate(lengths.tolist()) if low < length <= high]
        draw.shuffle(members)
        while members:
            rows = max_cells // high
            batches.append(members[:rows])
            members = members[rows:]
        low = high
    draw.shuffle(batches)
    return batches
