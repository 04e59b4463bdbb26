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
def viewed(student, x, op, args):
    """Return the view of `x` that `op` with these arguments stands for."""
    return student.view_of(x, op, *args)


@probe
def indexed(student, x, items):
    """Return what stands for `x[items]`."""
    return student.index_view(x, items)


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
def reshaped(student, x, new_size):
    """Return the reshaped tensor."""
    return student.reshape(x, new_size)


@probe
def reshaping_bytes(student, x, new_size):
    """Return how many bytes were allocated for it."""
    with watch_memory() as memory:
        x.detach()  # the storage of x is known from here on, even to one who hands it to `set_`
        student.reshape(x, new_size)
    return memory.new_bytes


@probe
def predictions(student, cases):
    """Return what is said of each (size, stride, op, args)."""
    return [student.is_view(size, stride, op, *args) for size, stride, op, args in cases]
