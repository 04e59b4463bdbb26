"""Chapter 2's probes: all of the chapter that runs beside a student's code."""

from grader import probe
from grader.instruments.memory import watch_memory


@probe
def elements(student, memory, size, stride, offset, itemsize, indices):
    """Return the bytes of the element at each of `indices`."""
    return [
        student.read_element(memory, size, stride, offset, itemsize, index) for index in indices
    ]


@probe
def dense_strides(student, cases):
    """Return the strides for each (size, order)."""
    return [student.dense_stride(size, order) for size, order in cases]


@probe
def contiguity(student, layouts):
    """Return what is said of each (size, stride)."""
    return [student.is_contiguous(size, stride) for size, stride in layouts]


@probe
def channels_last_contiguity(student, layouts):
    """Return what is said of each (size, stride) when asked for channels_last."""
    return [student.is_contiguous(size, stride, channels_last=True) for size, stride in layouts]


@probe
def viewed(student, x, calls):
    """Return the views of `x` that each (op, args) stands for."""
    return [student.view_of(x, op, *args) for op, args in calls]


@probe
def indexed(student, x, selections):
    """Return what stands for `x[items]`, for each of `selections`."""
    return [student.index_view(x, items) for items in selections]


@probe
def sharing(student, pairs):
    """Return for each pair of tensors whether a byte belongs to both."""
    return [student.share_memory(a, b) for a, b in pairs]


@probe
def broadcasted(student, cases):
    """Return the common size and all strides for each list of (size, stride)."""
    return [student.broadcast_strides(layouts) for layouts in cases]


@probe
def view_strides(student, cases):
    """Return the strides, or None, for each (size, stride, new size)."""
    return [student.view_stride(size, stride, new_size) for size, stride, new_size in cases]


@probe
def reshaped(student, cases):
    """Return the reshaped tensor for each (x, new size)."""
    return [student.reshape(x, new_size) for x, new_size in cases]


@probe
def reshaping_bytes(student, cases):
    """Return how many bytes were allocated for each (x, new size)."""
    found = []
    for x, new_size in cases:
        with watch_memory() as memory:
            x.detach()  # from here on its storage is known, even if somebody hands it to `set_`
            student.reshape(x, new_size)
        found.append(memory.new_bytes)
    return found


@probe
def predictions(student, cases):
    """Return what is said of each (size, stride, op, args)."""
    return [student.is_view(size, stride, op, *args) for size, stride, op, args in cases]
