"""Chapter 2's probes: all of the chapter that runs beside a student's code."""

from grader import probe


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
