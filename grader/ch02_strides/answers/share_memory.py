# %% blocked: the_internal_one
# PyTorch has a function of its own for this, somewhere inside. Find the answer from the layouts.
def share_memory(a, b):
    return torch._C._overlaps(a, b)


# %% mistake: data_ptr
# You compared `data_ptr()`. It is the address of the first element, offset included: a slice that
# begins elsewhere shares memory all the same, and an empty tensor shares none.
def share_memory(a, b):
    return a.data_ptr() == b.data_ptr()


# %% mistake: one_storage
# You compared the storages. Two views of one storage *can* share bytes and need not: `x[::2]` and
# `x[1::2]` never meet.
def share_memory(a, b):
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


# %% mistake: base
# You asked whether one is the `_base` of the other. Two slices of a third tensor can overlap
# without either being the other's base, and a base need not be met by all of its views.
def share_memory(a, b):
    return a is b or a._base is b or b._base is a or (a._base is not None and a._base is b._base)


# %% mistake: ranges
# You compared the first and the last byte of each. Ranges can overlap while the elements are
# interleaved. (NumPy's `may_share_memory` answers that easier question.)
def share_memory(a, b):
    if a.numel() == 0 or b.numel() == 0:
        return False

    def span(x):
        last = sum((n - 1) * s for n, s in zip(x.shape, x.stride()))
        return x.data_ptr(), x.data_ptr() + (last + 1) * x.element_size()

    (a0, a1), (b0, b1) = span(a), span(b)
    return a0 < b1 and b0 < a1


# %% mistake: first_bytes_only
# You compared where elements *begin*. An element of eight bytes covers eight addresses, and a
# tensor of another dtype may begin at any of them.
def share_memory(a, b):
    def starts(x):
        found = {x.data_ptr()}
        for n, s in zip(x.shape, x.stride()):
            found = {at + i * s * x.element_size() for at in found for i in range(n)}
        return found

    return bool(starts(a) & starts(b))


# %% mistake: counts_elements
# You compared positions in *elements* within the storage. Element 3 of an `int16` tensor and element
# 3 of an `int32` tensor lie at different bytes.
def share_memory(a, b):
    if a.untyped_storage().data_ptr() != b.untyped_storage().data_ptr():
        return False

    def places(x):
        found = {x.storage_offset()}
        for n, s in zip(x.shape, x.stride()):
            found = {at + i * s for at in found for i in range(n)}
        return found

    return bool(places(a) & places(b))


# %% mistake: forgets_the_storage
# You compared positions within the storages and forgot to ask whether it is *one* storage. Byte 8
# of one storage is not byte 8 of another.
def share_memory(a, b):
    def places(x):
        found = {x.storage_offset() * x.element_size()}
        for n, s in zip(x.shape, x.stride()):
            found = {at + i * s * x.element_size() for at in found for i in range(n)}
        return {at + k for at in found for k in range(x.element_size())}

    return bool(places(a) & places(b))


# %% mistake: equal_values
# You looked whether a value occurs in both. Equal values may lie in different places: what is
# asked is whether writing to one changes the other.
def share_memory(a, b):
    return bool(set(a.reshape(-1).tolist()) & set(b.reshape(-1).tolist()))


# %% alternate: marks_the_bytes
# Lays both layouts over a fresh row of bytes, marks one tensor's and looks through the other.
def share_memory(a, b):
    if a.untyped_storage().data_ptr() != b.untyped_storage().data_ptr():
        return False
    marks = torch.zeros(a.untyped_storage().nbytes(), dtype=torch.uint8)

    def bytes_of(x):
        width = x.element_size()
        stride = [s * width for s in x.stride()]
        return marks.as_strided([*x.shape, width], [*stride, 1], x.storage_offset() * width)

    bytes_of(a).fill_(1)
    return bool(bytes_of(b).any())


# %% alternate: places_as_a_tensor
# Computes all addresses at once, by broadcasting one range per dimension.
def share_memory(a, b):
    def addresses(x):
        place = torch.tensor(x.data_ptr())
        for n, s in zip(x.shape, x.stride()):
            place = place[..., None] + torch.arange(n) * s * x.element_size()
        return (place[..., None] + torch.arange(x.element_size())).reshape(-1)

    return torch.isin(addresses(a), addresses(b)).any().item()
