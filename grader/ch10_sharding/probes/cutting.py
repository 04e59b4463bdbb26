"""Rows of ranks: `cut`."""

from grader import each, probe, watch_memory


@probe
def cuts(student, cases):
    """Return `cut(length, ranks)` for each case."""
    return each(student.cut, cases)


@probe
def padded(student, cases):
    """Return `pad(shard, length, ranks)` for each case."""
    return each(student.pad, cases)


@probe
def joined(student, cases):
    """Return the rows of each (gathered, length), and the bytes that were allocated for them."""
    found = []
    for case in cases:
        with watch_memory() as memory:
            [rows] = each(student.join, [case])
        found.append({"rows": rows, "new bytes": memory.new_bytes})
    return found
