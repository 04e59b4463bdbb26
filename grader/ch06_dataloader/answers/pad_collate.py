# %% blocked: pad_sequence
# `pad_sequence` pads one dimension for you, and gives no mask. Make room, and write each sample into it.
def pad_collate(samples, value=0, dims=1, multiple=1):
    batch = torch.nn.utils.rnn.pad_sequence(samples, batch_first=True, padding_value=value)
    lengths = torch.tensor([len(sample) for sample in samples])
    return batch, torch.arange(batch.shape[1]) < lengths[:, None]


# %% mistake: mask_from_values
# You take every cell that is not the filling for real. A real entry may have that very value: a word
# number 0, a black pixel. The mask comes from the sizes of the samples.
def pad_collate(samples, value=0, dims=1, multiple=1):
    first = samples[0]
    others = first.shape[dims:]
    for s in samples:
        if s.dim() != first.dim() or s.shape[dims:] != others or s.dtype != first.dtype:
            raise ValueError
    sizes = [max(size) for size in zip(*(s.shape[:dims] for s in samples))]
    sizes = [-(-size // multiple) * multiple for size in sizes]
    batch = torch.full((len(samples), *sizes, *others), value, dtype=first.dtype)
    mask = torch.zeros(len(samples), *sizes, dtype=torch.bool)
    for row, s in enumerate(samples):
        corner = (row, *(slice(0, size) for size in s.shape[:dims]))
        batch[corner] = s
        mask[corner] = True
    mask = batch != value
    return batch, mask.flatten(dims + 1).any(-1) if others else mask


# %% mistake: mask_upside_down
# Your mask is `True` where there is padding. Some layers of torch want it that way around; here `True`
# means that there is a sample.
def pad_collate(samples, value=0, dims=1, multiple=1):
    first = samples[0]
    others = first.shape[dims:]
    for s in samples:
        if s.dim() != first.dim() or s.shape[dims:] != others or s.dtype != first.dtype:
            raise ValueError
    sizes = [max(size) for size in zip(*(s.shape[:dims] for s in samples))]
    sizes = [-(-size // multiple) * multiple for size in sizes]
    batch = torch.full((len(samples), *sizes, *others), value, dtype=first.dtype)
    mask = torch.zeros(len(samples), *sizes, dtype=torch.bool)
    for row, s in enumerate(samples):
        corner = (row, *(slice(0, size) for size in s.shape[:dims]))
        batch[corner] = s
        mask[corner] = True
    return batch, ~mask


# %% mistake: mask_of_every_cell
# Your mask has the shape of the batch. Features are all there or not: one `bool` for each position of
# the padded dimensions is enough.
def pad_collate(samples, value=0, dims=1, multiple=1):
    first = samples[0]
    others = first.shape[dims:]
    for s in samples:
        if s.dim() != first.dim() or s.shape[dims:] != others or s.dtype != first.dtype:
            raise ValueError
    sizes = [max(size) for size in zip(*(s.shape[:dims] for s in samples))]
    sizes = [-(-size // multiple) * multiple for size in sizes]
    batch = torch.full((len(samples), *sizes, *others), value, dtype=first.dtype)
    mask = torch.zeros_like(batch, dtype=torch.bool)
    for row, s in enumerate(samples):
        corner = (row, *(slice(0, size) for size in s.shape[:dims]))
        batch[corner] = s
        mask[corner] = True
    return batch, mask


# %% mistake: mask_of_one_dimension
# Your mask tells the first padded dimension only. With two, an image may be narrow as well as low: the
# mask has as many dimensions as are padded.
def pad_collate(samples, value=0, dims=1, multiple=1):
    first = samples[0]
    others = first.shape[dims:]
    for s in samples:
        if s.dim() != first.dim() or s.shape[dims:] != others or s.dtype != first.dtype:
            raise ValueError
    sizes = [max(size) for size in zip(*(s.shape[:dims] for s in samples))]
    sizes = [-(-size // multiple) * multiple for size in sizes]
    batch = torch.full((len(samples), *sizes, *others), value, dtype=first.dtype)
    mask = torch.zeros(len(samples), *sizes, dtype=torch.bool)
    for row, s in enumerate(samples):
        corner = (row, *(slice(0, size) for size in s.shape[:dims]))
        batch[corner] = s
        mask[corner] = True
    return batch, mask if dims == 1 else mask.flatten(2).any(-1)


# %% mistake: mask_of_a_cross
# A position of your mask is `True` if its row or its column is inside. It must be both: below the image
# and beside it there is padding.
def pad_collate(samples, value=0, dims=1, multiple=1):
    first = samples[0]
    others = first.shape[dims:]
    for s in samples:
        if s.dim() != first.dim() or s.shape[dims:] != others or s.dtype != first.dtype:
            raise ValueError
    sizes = [max(size) for size in zip(*(s.shape[:dims] for s in samples))]
    sizes = [-(-size // multiple) * multiple for size in sizes]
    batch = torch.full((len(samples), *sizes, *others), value, dtype=first.dtype)
    mask = torch.zeros(len(samples), *sizes, dtype=torch.bool)
    for row, s in enumerate(samples):
        corner = (row, *(slice(0, size) for size in s.shape[:dims]))
        batch[corner] = s
        for dim, size in enumerate(s.shape[:dims]):
            mask[row].movedim(dim, 0)[:size] = True
    return batch, mask


# %% mistake: pads_at_the_front
# Your samples end where the batch ends. They were to begin at the beginning, with the filling behind
# them.
def pad_collate(samples, value=0, dims=1, multiple=1):
    first = samples[0]
    others = first.shape[dims:]
    for s in samples:
        if s.dim() != first.dim() or s.shape[dims:] != others or s.dtype != first.dtype:
            raise ValueError
    sizes = [max(size) for size in zip(*(s.shape[:dims] for s in samples))]
    sizes = [-(-size // multiple) * multiple for size in sizes]
    batch = torch.full((len(samples), *sizes, *others), value, dtype=first.dtype)
    mask = torch.zeros(len(samples), *sizes, dtype=torch.bool)
    for row, s in enumerate(samples):
        corner = (row, *(slice(full - size, full) for full, size in zip(sizes, s.shape)))
        batch[corner] = s
        mask[corner] = True
    return batch, mask


# %% mistake: cuts_to_the_shortest
# You cut all samples to the smallest. What is cut off is lost to the model: make room for the largest.
def pad_collate(samples, value=0, dims=1, multiple=1):
    first = samples[0]
    others = first.shape[dims:]
    for s in samples:
        if s.dim() != first.dim() or s.shape[dims:] != others or s.dtype != first.dtype:
            raise ValueError
    sizes = [min(size) for size in zip(*(s.shape[:dims] for s in samples))]
    sizes = [-(-size // multiple) * multiple for size in sizes]
    batch = torch.full((len(samples), *sizes, *others), value, dtype=first.dtype)
    mask = torch.zeros(len(samples), *sizes, dtype=torch.bool)
    for row, s in enumerate(samples):
        corner = (row, *(slice(0, min(size, full)) for size, full in zip(s.shape, sizes)))
        batch[corner] = s[corner[1:]]
        mask[corner] = True
    return batch, mask


# %% mistake: float32
# Your batch is `float32` whatever the samples are. Word numbers and labels are whole numbers: allocate the
# batch with the samples' dtype.
def pad_collate(samples, value=0, dims=1, multiple=1):
    first = samples[0]
    others = first.shape[dims:]
    for s in samples:
        if s.dim() != first.dim() or s.shape[dims:] != others or s.dtype != first.dtype:
            raise ValueError
    sizes = [max(size) for size in zip(*(s.shape[:dims] for s in samples))]
    sizes = [-(-size // multiple) * multiple for size in sizes]
    batch = torch.full((len(samples), *sizes, *others), float(value))
    mask = torch.zeros(len(samples), *sizes, dtype=torch.bool)
    for row, s in enumerate(samples):
        corner = (row, *(slice(0, size) for size in s.shape[:dims]))
        batch[corner] = s
        mask[corner] = True
    return batch, mask


# %% mistake: ignores_the_filling
# You fill with zeros, whatever `value` says. A loss that ignores `-100`, or a maximum over positions, needs
# the filling it was promised.
def pad_collate(samples, value=0, dims=1, multiple=1):
    first = samples[0]
    others = first.shape[dims:]
    for s in samples:
        if s.dim() != first.dim() or s.shape[dims:] != others or s.dtype != first.dtype:
            raise ValueError
    sizes = [max(size) for size in zip(*(s.shape[:dims] for s in samples))]
    sizes = [-(-size // multiple) * multiple for size in sizes]
    batch = torch.full((len(samples), *sizes, *others), 0, dtype=first.dtype)
    mask = torch.zeros(len(samples), *sizes, dtype=torch.bool)
    for row, s in enumerate(samples):
        corner = (row, *(slice(0, size) for size in s.shape[:dims]))
        batch[corner] = s
        mask[corner] = True
    return batch, mask


# %% mistake: fills_real_zeros
# You put the filling wherever the batch is zero. Real entries may be zero: fill first and write the samples
# over it, or fill by the mask.
def pad_collate(samples, value=0, dims=1, multiple=1):
    first = samples[0]
    others = first.shape[dims:]
    for s in samples:
        if s.dim() != first.dim() or s.shape[dims:] != others or s.dtype != first.dtype:
            raise ValueError
    sizes = [max(size) for size in zip(*(s.shape[:dims] for s in samples))]
    sizes = [-(-size // multiple) * multiple for size in sizes]
    batch = torch.full((len(samples), *sizes, *others), 0, dtype=first.dtype)
    mask = torch.zeros(len(samples), *sizes, dtype=torch.bool)
    for row, s in enumerate(samples):
        corner = (row, *(slice(0, size) for size in s.shape[:dims]))
        batch[corner] = s
        mask[corner] = True
    return batch.masked_fill(batch == 0, value), mask


# %% mistake: multiplies_by_the_mask
# You choose between sample and filling by multiplication. Zero times NaN is NaN, and zero times infinity
# too: use `torch.where`, or write the samples over the filling.
def pad_collate(samples, value=0, dims=1, multiple=1):
    first = samples[0]
    others = first.shape[dims:]
    for s in samples:
        if s.dim() != first.dim() or s.shape[dims:] != others or s.dtype != first.dtype:
            raise ValueError
    sizes = [max(size) for size in zip(*(s.shape[:dims] for s in samples))]
    sizes = [-(-size // multiple) * multiple for size in sizes]
    batch = torch.full((len(samples), *sizes, *others), 0, dtype=first.dtype)
    mask = torch.zeros(len(samples), *sizes, dtype=torch.bool)
    for row, s in enumerate(samples):
        corner = (row, *(slice(0, size) for size in s.shape[:dims]))
        batch[corner] = s
        mask[corner] = True
    inside = mask.view(*mask.shape, *[1] * len(others))
    return (batch * inside + value * ~inside).to(first.dtype), mask


# %% mistake: filling_through_float32
# Your filling went through `float32`, and a whole number larger than `2 ** 24` did not survive it. Fill a
# tensor of the samples' own dtype.
def pad_collate(samples, value=0, dims=1, multiple=1):
    first = samples[0]
    others = first.shape[dims:]
    for s in samples:
        if s.dim() != first.dim() or s.shape[dims:] != others or s.dtype != first.dtype:
            raise ValueError
    sizes = [max(size) for size in zip(*(s.shape[:dims] for s in samples))]
    sizes = [-(-size // multiple) * multiple for size in sizes]
    batch = torch.full((len(samples), *sizes, *others), float(value)).to(first.dtype)
    mask = torch.zeros(len(samples), *sizes, dtype=torch.bool)
    for row, s in enumerate(samples):
        corner = (row, *(slice(0, size) for size in s.shape[:dims]))
        batch[corner] = s
        mask[corner] = True
    return batch, mask


# %% mistake: a_square
# You take one largest size for all padded dimensions. Each has its own: five rows and three columns need
# no square.
def pad_collate(samples, value=0, dims=1, multiple=1):
    first = samples[0]
    others = first.shape[dims:]
    for s in samples:
        if s.dim() != first.dim() or s.shape[dims:] != others or s.dtype != first.dtype:
            raise ValueError
    sizes = [max(size) for size in zip(*(s.shape[:dims] for s in samples))]
    sizes = [max(sizes)] * dims
    sizes = [-(-size // multiple) * multiple for size in sizes]
    batch = torch.full((len(samples), *sizes, *others), value, dtype=first.dtype)
    mask = torch.zeros(len(samples), *sizes, dtype=torch.bool)
    for row, s in enumerate(samples):
        corner = (row, *(slice(0, size) for size in s.shape[:dims]))
        batch[corner] = s
        mask[corner] = True
    return batch, mask


# %% mistake: one_too_many
# Sizes that are a multiple already grow by one more. Round up with `-(-size // multiple) * multiple`.
def pad_collate(samples, value=0, dims=1, multiple=1):
    first = samples[0]
    others = first.shape[dims:]
    for s in samples:
        if s.dim() != first.dim() or s.shape[dims:] != others or s.dtype != first.dtype:
            raise ValueError
    sizes = [max(size) for size in zip(*(s.shape[:dims] for s in samples))]
    sizes = [(size // multiple + 1) * multiple if multiple > 1 else size for size in sizes]
    batch = torch.full((len(samples), *sizes, *others), value, dtype=first.dtype)
    mask = torch.zeros(len(samples), *sizes, dtype=torch.bool)
    for row, s in enumerate(samples):
        corner = (row, *(slice(0, size) for size in s.shape[:dims]))
        batch[corner] = s
        mask[corner] = True
    return batch, mask


# %% mistake: rounds_down
# You round sizes down to a multiple, and what is larger is cut off.
def pad_collate(samples, value=0, dims=1, multiple=1):
    first = samples[0]
    others = first.shape[dims:]
    for s in samples:
        if s.dim() != first.dim() or s.shape[dims:] != others or s.dtype != first.dtype:
            raise ValueError
    sizes = [max(size) for size in zip(*(s.shape[:dims] for s in samples))]
    sizes = [size // multiple * multiple for size in sizes]
    batch = torch.full((len(samples), *sizes, *others), value, dtype=first.dtype)
    mask = torch.zeros(len(samples), *sizes, dtype=torch.bool)
    for row, s in enumerate(samples):
        corner = (row, *(slice(0, min(size, full)) for size, full in zip(s.shape, sizes)))
        batch[corner] = s[corner[1:]]
        mask[corner] = True
    return batch, mask


# %% mistake: multiple_of_the_first
# You round up the first padded dimension only. With `dims=2` both are to be multiples.
def pad_collate(samples, value=0, dims=1, multiple=1):
    first = samples[0]
    others = first.shape[dims:]
    for s in samples:
        if s.dim() != first.dim() or s.shape[dims:] != others or s.dtype != first.dtype:
            raise ValueError
    sizes = [max(size) for size in zip(*(s.shape[:dims] for s in samples))]
    sizes[0] = -(-sizes[0] // multiple) * multiple
    batch = torch.full((len(samples), *sizes, *others), value, dtype=first.dtype)
    mask = torch.zeros(len(samples), *sizes, dtype=torch.bool)
    for row, s in enumerate(samples):
        corner = (row, *(slice(0, size) for size in s.shape[:dims]))
        batch[corner] = s
        mask[corner] = True
    return batch, mask


# %% mistake: multiple_while_padding
# You round up only where samples differ in size. A compiled model wants few shapes: a batch whose samples
# all have 5 positions is rounded up too.
def pad_collate(samples, value=0, dims=1, multiple=1):
    first = samples[0]
    others = first.shape[dims:]
    for s in samples:
        if s.dim() != first.dim() or s.shape[dims:] != others or s.dtype != first.dtype:
            raise ValueError
    sizes = [max(size) for size in zip(*(s.shape[:dims] for s in samples))]
    sizes = [
        size if len({s.shape[d] for s in samples}) == 1 else -(-size // multiple) * multiple
        for d, size in enumerate(sizes)
    ]
    batch = torch.full((len(samples), *sizes, *others), value, dtype=first.dtype)
    mask = torch.zeros(len(samples), *sizes, dtype=torch.bool)
    for row, s in enumerate(samples):
        corner = (row, *(slice(0, size) for size in s.shape[:dims]))
        batch[corner] = s
        mask[corner] = True
    return batch, mask


# %% mistake: one_padded_dimension
# You pad the first dimension, whatever `dims` says. Images differ in height and in width.
def pad_collate(samples, value=0, dims=1, multiple=1):
    first = samples[0]
    for s in samples:
        if s.dim() != first.dim() or s.shape[dims:] != first.shape[dims:] or s.dtype != first.dtype:
            raise ValueError
    length = -(-max(map(len, samples)) // multiple) * multiple
    batch = first.new_full((len(samples), length, *first.shape[1:]), value)
    mask = torch.zeros(len(samples), length, dtype=torch.bool)
    for row, s in enumerate(samples):
        batch[row, : len(s)] = s
        mask[row, : len(s)] = True
    return batch, mask


# %% mistake: a_view_where_nothing_is_padded
# A single sample that needs no padding comes back as a view of itself. Whoever changes the batch in place
# changes the dataset: copy, always.
def pad_collate(samples, value=0, dims=1, multiple=1):
    first = samples[0]
    others = first.shape[dims:]
    for s in samples:
        if s.dim() != first.dim() or s.shape[dims:] != others or s.dtype != first.dtype:
            raise ValueError
    sizes = [max(size) for size in zip(*(s.shape[:dims] for s in samples))]
    sizes = [-(-size // multiple) * multiple for size in sizes]
    batch = torch.full((len(samples), *sizes, *others), value, dtype=first.dtype)
    mask = torch.zeros(len(samples), *sizes, dtype=torch.bool)
    for row, s in enumerate(samples):
        corner = (row, *(slice(0, size) for size in s.shape[:dims]))
        batch[corner] = s
        mask[corner] = True
    return (first[None] if batch[0].shape == first.shape and len(samples) == 1 else batch), mask


# %% mistake: refuses_nothing
# Assignment broadcasts and casts: a sample with one feature fills four, and a `float64` becomes a
# `float32`, without a word. Compare dtypes and the other dimensions first.
def pad_collate(samples, value=0, dims=1, multiple=1):
    first = samples[0]
    others = first.shape[dims:]
    sizes = [max(size) for size in zip(*(s.shape[:dims] for s in samples))]
    sizes = [-(-size // multiple) * multiple for size in sizes]
    batch = torch.full((len(samples), *sizes, *others), value, dtype=first.dtype)
    mask = torch.zeros(len(samples), *sizes, dtype=torch.bool)
    for row, s in enumerate(samples):
        corner = (row, *(slice(0, size) for size in s.shape[:dims]))
        batch[corner] = s
        mask[corner] = True
    return batch, mask


# %% mistake: casts_silently
# You compare shapes and not dtypes. A `float64` or a whole number among `float32` samples is cast as it
# is written into the batch: raise `ValueError`.
def pad_collate(samples, value=0, dims=1, multiple=1):
    first = samples[0]
    others = first.shape[dims:]
    for s in samples:
        if s.dim() != first.dim() or s.shape[dims:] != others:
            raise ValueError
    sizes = [max(size) for size in zip(*(s.shape[:dims] for s in samples))]
    sizes = [-(-size // multiple) * multiple for size in sizes]
    batch = torch.full((len(samples), *sizes, *others), value, dtype=first.dtype)
    mask = torch.zeros(len(samples), *sizes, dtype=torch.bool)
    for row, s in enumerate(samples):
        corner = (row, *(slice(0, size) for size in s.shape[:dims]))
        batch[corner] = s
        mask[corner] = True
    return batch, mask


# %% mistake: at_least_one_multiple
# Where no sample has an element you still pad to one `multiple`. Zero is a multiple of everything.
def pad_collate(samples, value=0, dims=1, multiple=1):
    one = samples[0]
    if len({(sample.dtype, sample.ndim, sample.shape[dims:]) for sample in samples}) > 1:
        raise ValueError("not alike")
    largest = [max(sample.shape[d] for sample in samples) for d in range(dims)]
    sizes = [max(1, -(-size // multiple)) * multiple for size in largest]
    batch = torch.full((len(samples), *sizes, *one.shape[dims:]), value, dtype=one.dtype)
    mask = torch.zeros((len(samples), *sizes), dtype=torch.bool)
    for row, sample in enumerate(samples):
        corner = (row, *map(slice, sample.shape[:dims]))
        batch[corner], mask[corner] = sample, True
    return batch, mask


# %% alternate: an_error_of_its_own
# Narrows row after row to its corner; an exception that is a `ValueError`.
class Unlike(ValueError):
    pass


def pad_collate(samples, value=0, dims=1, multiple=1):
    one = samples[0]
    if len({(sample.dtype, sample.ndim, sample.shape[dims:]) for sample in samples}) > 1:
        raise Unlike
    sizes = [max(sample.size(d) for sample in samples) for d in range(dims)]
    sizes = [(size + multiple - 1) // multiple * multiple for size in sizes]
    batch = one.new_full((len(samples), *sizes, *one.shape[dims:]), value)
    mask = torch.zeros(len(samples), *sizes).bool()
    for room, real, sample in zip(batch, mask, samples):
        for d in range(dims):
            room, real = (part.narrow(d, 0, sample.shape[d]) for part in (room, real))
        room.copy_(sample)
        real.fill_(True)
    return batch, mask


# %% alternate: pads_and_stacks
# Each sample is padded to the full shape, and the mask is padded as a sample of ones.
def pad_collate(samples, value=0, dims=1, multiple=1):
    kinds = {(s.dtype, s.dim(), tuple(s.shape[dims:])) for s in samples}
    if len(kinds) > 1:
        raise ValueError(f"different samples: {kinds}")
    sizes = [max(s.shape[d] for s in samples) for d in range(dims)]
    sizes = [size + -size % multiple for size in sizes]

    def grown(t, filling):
        for d, size in enumerate(sizes):
            more = t.new_full((*t.shape[:d], size - t.shape[d], *t.shape[d + 1 :]), filling)
            t = torch.cat([t, more], dim=d)
        return t

    ones = [torch.ones(s.shape[:dims], dtype=torch.bool) for s in samples]
    batch = torch.stack([grown(s, value) for s in samples])
    return batch, torch.stack([grown(one, False) for one in ones])


# %% alternate: by_the_mask
# The mask first, from comparisons of positions; then all cells are filled in one go, in its order.
def pad_collate(samples, value=0, dims=1, multiple=1):
    first = samples[0]
    if any(s.dtype is not first.dtype or s.ndim != first.ndim for s in samples):
        raise ValueError("dtypes or dimensions differ")
    if any(s.shape[dims:] != first.shape[dims:] for s in samples):
        raise ValueError("other sizes differ")
    table = torch.tensor([list(s.shape[:dims]) for s in samples])
    sizes = [int(-(-size // multiple) * multiple) for size in table.max(0).values]
    mask = torch.ones(len(samples), *sizes, dtype=torch.bool)
    for d, size in enumerate(sizes):
        inside = torch.arange(size) < table[:, d : d + 1]
        mask &= inside.reshape(len(samples), *[1] * d, size, *[1] * (dims - d - 1))
    batch = torch.full((*mask.shape, *first.shape[dims:]), value, dtype=first.dtype)
    batch[mask] = torch.cat([s.flatten(0, dims - 1) for s in samples])
    return batch, mask
