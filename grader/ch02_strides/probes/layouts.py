"""Probes of what sizes, strides and offsets say of tensors. NumPy's numbers are as good as Python's."""

from grader import each, probe


def plain(value):
    """Return an answer with Python's own numbers in the place of NumPy's; tensors stay as they are."""
    if type(value) in (tuple, list):
        return type(value)(map(plain, value))
    if type(value) is dict:
        return {plain(key): plain(part) for key, part in value.items()}
    if type(value).__module__ == "numpy" and getattr(value, "shape", None) == ():
        return value.item()
    return value


@probe
def elements(student, memory, size, stride, offset, itemsize, indices):
    """Return the bytes of the element at each of `indices`."""
    given = memory, size, stride, offset, itemsize
    return each(student.read_element, [(*given, index) for index in indices])


@probe
def dense_strides(student, cases):
    """Return the strides for each (size, order)."""
    return plain(each(student.dense_stride, cases))


@probe
def contiguity(student, layouts):
    """Return what is said of each (size, stride)."""
    return plain(each(student.is_contiguous, layouts))


@probe
def channels_last_contiguity(student, layouts):
    """Return what is said of each (size, stride) when asked for channels_last."""
    return plain(each(student.is_contiguous, [(size, stride, True) for size, stride in layouts]))


@probe
def sharing(student, pairs):
    """Return for each pair of tensors whether a byte belongs to both."""
    return plain(each(student.share_memory, pairs))


@probe
def broadcasted(student, cases):
    """Return the common size and all strides for each list of (size, stride)."""
    return plain(each(student.broadcast_strides, [(layouts,) for layouts in cases]))


@probe
def view_strides(student, cases):
    """Return the strides, or None, for each (size, stride, new size)."""
    return plain(each(student.view_stride, cases))


@probe
def predictions(student, cases):
    """Return what is said of each (size, stride, op, args)."""
    return plain(
        each(student.is_view, [(size, stride, op, *args) for size, stride, op, args in cases])
    )


@probe
def overlap_answers(student, layouts):
    """Return what `overlaps` says of each (size, stride)."""
    return plain(each(student.overlaps, layouts))


@probe
def aliases(student, tensors, again=()):
    """Return what `alias_graph` gives for a list of tensors, and for those of `again` once more.

    Sent twice a tensor would arrive as two objects; at the positions of `again` stand the same ones.
    """
    listed = [*tensors, *(tensors[number] for number in again)]
    return plain(each(student.alias_graph, [(listed,)])[0])


@probe
def packed(student, tensors):
    """Return the buffers and layouts of a list of tensors."""
    return plain(each(student.pack_views, [(tensors,)])[0])
