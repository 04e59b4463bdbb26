# %% mistake: counter_alone
# You look at the counter alone. What it misses is what this is about: compare the content too.
def watch_edits(tensors, run):
    def version(tensor):
        return None if tensor.is_inference() else tensor._version

    def content(tensor):
        data = tensor.detach().clone(memory_format=torch.contiguous_format)
        return tensor.shape, tensor.dtype, data.reshape(-1).view(torch.uint8)

    def same(left, right):
        return left[:2] == right[:2] and torch.equal(left[2], right[2])

    before = [(version(tensor), content(tensor)) for tensor in tensors]
    run()
    words = []
    for tensor, (number, was) in zip(tensors, before):
        if version(tensor) != number:
            words.append("counted")
        else:
            words.append("unchanged")
    return words


# %% mistake: content_alone
# You look at the content alone, and call every change silent. Look at the counter first: where it
# moved, autograd has noticed.
def watch_edits(tensors, run):
    def version(tensor):
        return None if tensor.is_inference() else tensor._version

    def content(tensor):
        data = tensor.detach().clone(memory_format=torch.contiguous_format)
        return tensor.shape, tensor.dtype, data.reshape(-1).view(torch.uint8)

    def same(left, right):
        return left[:2] == right[:2] and torch.equal(left[2], right[2])

    before = [(version(tensor), content(tensor)) for tensor in tensors]
    run()
    words = []
    for tensor, (number, was) in zip(tensors, before):
        if False:
            words.append("counted")
        else:
            words.append("unchanged" if same(content(tensor), was) else "silent")
    return words


# %% mistake: detach_is_no_copy
# You keep what `detach` gives. It shares the memory, so it changes along with the tensor, and you compare
# it with itself. Add `.clone()`.
def watch_edits(tensors, run):
    def version(tensor):
        return None if tensor.is_inference() else tensor._version

    def content(tensor):
        return tensor.shape, tensor.dtype, tensor.detach()

    def same(left, right):
        return left[:2] == right[:2] and torch.equal(left[2], right[2])

    before = [(version(tensor), content(tensor)) for tensor in tensors]
    run()
    words = []
    for tensor, (number, was) in zip(tensors, before):
        if version(tensor) != number:
            words.append("counted")
        else:
            words.append("unchanged" if same(content(tensor), was) else "silent")
    return words


# %% mistake: equal_values
# You compare values. NaN is not equal to itself, so one that stayed looks like a change; and 0.0 equals
# -0.0, so that change goes unseen. Compare bytes.
def watch_edits(tensors, run):
    def version(tensor):
        return None if tensor.is_inference() else tensor._version

    def content(tensor):
        return tensor.shape, tensor.dtype, tensor.detach().clone()

    def same(left, right):
        return left[:2] == right[:2] and torch.equal(left[2], right[2])

    before = [(version(tensor), content(tensor)) for tensor in tensors]
    run()
    words = []
    for tensor, (number, was) in zip(tensors, before):
        if version(tensor) != number:
            words.append("counted")
        else:
            words.append("unchanged" if same(content(tensor), was) else "silent")
    return words


# %% mistake: nearly_equal
# You allow a small difference. A change of one bit is a change.
def watch_edits(tensors, run):
    def version(tensor):
        return None if tensor.is_inference() else tensor._version

    def content(tensor):
        return tensor.shape, tensor.dtype, tensor.detach().clone()

    def same(left, right):
        if left[:2] != right[:2]:
            return False
        left, right = left[2], right[2]
        if not left.is_floating_point():
            return torch.equal(left, right)
        return torch.allclose(left, right, equal_nan=True)

    before = [(version(tensor), content(tensor)) for tensor in tensors]
    run()
    words = []
    for tensor, (number, was) in zip(tensors, before):
        if version(tensor) != number:
            words.append("counted")
        else:
            words.append("unchanged" if same(content(tensor), was) else "silent")
    return words


# %% mistake: sums
# You compare sums. Two elements that change places leave every sum as it was, and a NaN swallows all.
def watch_edits(tensors, run):
    def version(tensor):
        return None if tensor.is_inference() else tensor._version

    def content(tensor):
        return tensor.shape, tensor.dtype, tensor.detach().double().sum()

    def same(left, right):
        return left[:2] == right[:2] and (
            torch.equal(left[2], right[2]) or bool(left[2].isnan() and right[2].isnan())
        )

    before = [(version(tensor), content(tensor)) for tensor in tensors]
    run()
    words = []
    for tensor, (number, was) in zip(tensors, before):
        if version(tensor) != number:
            words.append("counted")
        else:
            words.append("unchanged" if same(content(tensor), was) else "silent")
    return words


# %% mistake: shape_does_not_matter
# You compare bytes and nothing else. `t.data = other` can give the same bytes another shape or dtype.
def watch_edits(tensors, run):
    def version(tensor):
        return None if tensor.is_inference() else tensor._version

    def content(tensor):
        data = tensor.detach().clone(memory_format=torch.contiguous_format)
        return tensor.shape, tensor.dtype, data.reshape(-1).view(torch.uint8)

    def same(left, right):
        return torch.equal(left[2], right[2])

    before = [(version(tensor), content(tensor)) for tensor in tensors]
    run()
    words = []
    for tensor, (number, was) in zip(tensors, before):
        if version(tensor) != number:
            words.append("counted")
        else:
            words.append("unchanged" if same(content(tensor), was) else "silent")
    return words


# %% mistake: asks_inference_tensors
# You read `_version` of every tensor. An inference tensor has none, and asking raises: look at
# `is_inference()` first.
def watch_edits(tensors, run):
    def version(tensor):
        return tensor._version

    def content(tensor):
        data = tensor.detach().clone(memory_format=torch.contiguous_format)
        return tensor.shape, tensor.dtype, data.reshape(-1).view(torch.uint8)

    def same(left, right):
        return left[:2] == right[:2] and torch.equal(left[2], right[2])

    before = [(version(tensor), content(tensor)) for tensor in tensors]
    run()
    words = []
    for tensor, (number, was) in zip(tensors, before):
        if version(tensor) != number:
            words.append("counted")
        else:
            words.append("unchanged" if same(content(tensor), was) else "silent")
    return words


# %% mistake: needs_a_contiguous_tensor
# You view the tensor itself as bytes. A transposed or expanded one cannot be viewed so; copy it densely
# first.
def watch_edits(tensors, run):
    def version(tensor):
        return None if tensor.is_inference() else tensor._version

    def content(tensor):
        data = tensor.detach().clone()
        return tensor.shape, tensor.dtype, data.view(-1).view(torch.uint8)

    def same(left, right):
        return left[:2] == right[:2] and torch.equal(left[2], right[2])

    before = [(version(tensor), content(tensor)) for tensor in tensors]
    run()
    words = []
    for tensor, (number, was) in zip(tensors, before):
        if version(tensor) != number:
            words.append("counted")
        else:
            words.append("unchanged" if same(content(tensor), was) else "silent")
    return words


# %% mistake: counted_only_if_changed
# You call a tensor counted only if its content changed as well. The counter moved, and autograd will raise
# whether or not a number is different.
def watch_edits(tensors, run):
    def version(tensor):
        return None if tensor.is_inference() else tensor._version

    def content(tensor):
        data = tensor.detach().clone(memory_format=torch.contiguous_format)
        return tensor.shape, tensor.dtype, data.reshape(-1).view(torch.uint8)

    def same(left, right):
        return left[:2] == right[:2] and torch.equal(left[2], right[2])

    before = [(version(tensor), content(tensor)) for tensor in tensors]
    run()
    words = []
    for tensor, (number, was) in zip(tensors, before):
        if version(tensor) != number and not same(content(tensor), was):
            words.append("counted")
        else:
            words.append("unchanged" if same(content(tensor), was) else "silent")
    return words


# %% mistake: runs_again_for_each
# You call `run` once for every tensor. It may do something else the second time, and it did its edits to
# all of them the first time.
def watch_edits(tensors, run):
    def version(tensor):
        return None if tensor.is_inference() else tensor._version

    def content(tensor):
        data = tensor.detach().clone(memory_format=torch.contiguous_format)
        return tensor.shape, tensor.dtype, data.reshape(-1).view(torch.uint8)

    def same(left, right):
        return left[:2] == right[:2] and torch.equal(left[2], right[2])

    before = [(version(tensor), content(tensor)) for tensor in tensors]
    words = []
    for tensor, (number, was) in zip(tensors, before):
        run()
        if version(tensor) != number:
            words.append("counted")
        else:
            words.append("unchanged" if same(content(tensor), was) else "silent")
    return words


# %% alternate: storage_bytes
# Bytes by way of Python: the elements as integers of the same width, in a list.
def watch_edits(tensors, run):
    widths = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}

    def look(tensor):
        plain = tensor.detach()
        if plain.dtype != torch.bool:
            plain = plain.contiguous().flatten().view(widths[plain.element_size()])
        number = -1 if tensor.is_inference() else tensor._version
        return number, (tuple(tensor.shape), tensor.dtype, plain.flatten().tolist())

    before = list(map(look, tensors))
    run()
    after = list(map(look, tensors))
    return [
        "counted" if old[0] != new[0] else "silent" if old[1] != new[1] else "unchanged"
        for old, new in zip(before, after)
    ]


# %% mistake: all_nans_are_one
# You take one NaN for another. There are millions of them, with bits of their own, and a changed bit is a change.
# Compare bytes.
def watch_edits(tensors, run):
    copies = [t.detach().clone() for t in tensors]
    counters = [None if t.is_inference() else t._version for t in tensors]
    run()

    def word(tensor, copy, counter):
        if counter is not None and tensor._version != counter:
            return "counted"
        now = tensor.detach()
        if now.shape != copy.shape or now.dtype != copy.dtype:
            return "silent"
        equal = now == copy
        if now.is_floating_point():
            equal = equal & (now.signbit() == copy.signbit()) | now.isnan() & copy.isnan()
        return "unchanged" if bool(equal.all()) else "silent"

    return [word(*three) for three in zip(tensors, copies, counters)]


# %% mistake: whole_storages
# You compare the whole storage. A slice is a few elements of it; what changed beside them is no change of the slice.
def watch_edits(tensors, run):
    def version(tensor):
        return None if tensor.is_inference() else tensor._version

    def content(tensor):
        memory = bytes(tensor.untyped_storage())
        return tensor.shape, tensor.dtype, torch.tensor(list(memory))

    def same(left, right):
        return left[:2] == right[:2] and torch.equal(left[2], right[2])

    before = [(version(tensor), content(tensor)) for tensor in tensors]
    run()
    words = []
    for tensor, (number, was) in zip(tensors, before):
        if version(tensor) != number:
            words.append("counted")
        elif not same(content(tensor), was):
            words.append("silent")
        else:
            words.append("unchanged")
    return words


# %% mistake: inference_never_changes
# You call every inference tensor unchanged. It has no counter, so all that is left is to compare its content.
def watch_edits(tensors, run):
    def version(tensor):
        return None if tensor.is_inference() else tensor._version

    def content(tensor):
        data = tensor.detach().clone(memory_format=torch.contiguous_format)
        return tensor.shape, tensor.dtype, data.reshape(-1).view(torch.uint8)

    def same(left, right):
        return left[:2] == right[:2] and torch.equal(left[2], right[2])

    before = [(version(tensor), content(tensor)) for tensor in tensors]
    run()
    words = []
    for tensor, (number, was) in zip(tensors, before):
        if version(tensor) != number:
            words.append("counted")
        elif not tensor.is_inference() and not same(content(tensor), was):
            words.append("silent")
        else:
            words.append("unchanged")
    return words


# %% alternate: with_numpy
# NumPy writes the bytes out; a class keeps what was seen.
class Photograph:
    def __init__(self, tensor):
        self.counter = None if tensor.is_inference() else tensor._version
        dense = tensor.detach().clone(memory_format=torch.contiguous_format)
        self.content = (
            tensor.shape,
            tensor.dtype,
            dense.flatten().view(torch.uint8).numpy().tobytes(),
        )

    def word(self, later):
        if self.counter != later.counter:
            return "counted"
        return "unchanged" if self.content == later.content else "silent"


def watch_edits(tensors, run):
    before = [Photograph(tensor) for tensor in tensors]
    run()
    return [one.word(Photograph(tensor)) for one, tensor in zip(before, tensors)]
