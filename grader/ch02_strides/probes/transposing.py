"""Probes of `transpose_in_place`."""

import tracemalloc

from grader import each, probe, watch_memory


@probe(in_place=("whole", "x"))
def transposed_in_place(student, whole, x):
    """Transpose `x`, a view of `whole`, in its place."""
    return each(student.transpose_in_place, [(x,)])[0]


@probe
def transposing_memory(student, x):
    """Transpose `x` twice over; return the most bytes that Python objects and tensors held."""
    student.transpose_in_place(x[:2].clone())  # what is loaded on a first call is not the student's
    first, second = x.clone(), x.clone()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        student.transpose_in_place(first)
        objects = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    with watch_memory(meta=False) as memory:
        student.transpose_in_place(second)
    return {"objects": objects, "tensors": memory.peak_bytes, "result": first}
