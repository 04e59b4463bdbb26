"""Probes of `transpose_in_place`."""

import tracemalloc

from grader import each, probe, watch_memory


@probe(in_place=("whole", "x"))
def transposed_in_place(student, whole, x):
    """Transpose `x`, a view of `whole`, in its place."""
    return each(student.transpose_in_place, [(x,)])[0]


@probe
def transposing_memory(student, x, limit):
    """Transpose `x` twice over; return how far what was held went over `limit` bytes.

    That is the last of `limit`, twice, four times, … that it was over, or 0: of the same program some
    runs hold a few hundred bytes more than others.
    """
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
    held = {"tensors": memory.peak_bytes, "objects": objects, "all": memory.peak_bytes + objects}
    return {"result": first, "over": {kind: _over(count, limit) for kind, count in held.items()}}


def _over(count, limit):
    return limit << (count // limit).bit_length() - 1 if count > limit else 0
