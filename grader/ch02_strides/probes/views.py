"""Probes of views, and of copies where no view will do: `view_of`, `index_view`, `reshape`, `to_channels_last`, `windows`."""

from grader import each, probe, watch_memory


@probe
def viewed(student, x, calls):
    """Return the views of `x` that each (op, args) stands for."""
    return each(student.view_of, [(x, op, *args) for op, args in calls])


@probe
def indexed(student, x, selections):
    """Return what stands for `x[items]`, for each of `selections`."""
    return each(student.index_view, [(x, items) for items in selections])


@probe
def reshaped(student, cases):
    """Return the reshaped tensor for each (x, new size)."""
    return each(student.reshape, cases)


@probe
def reshaping_bytes(student, cases):
    """Return how many bytes were allocated for each (x, new size)."""
    found = []
    for x, new_size in cases:
        with watch_memory(meta=False) as memory:
            x.detach()  # from here on its storage is known, even if somebody hands it to `set_`
            student.reshape(x, new_size)
        found.append(memory.new_bytes)
    return found


@probe
def channels_last(student, x):
    """Return `x` laid out channels last, and the most bytes allocated at once for it."""
    with watch_memory(meta=False) as memory:
        x.detach()  # shows the storage of x, which `set_` would otherwise seem to make
        result = each(student.to_channels_last, [(x,)])[0]
    return {"result": result, "bytes": memory.peak_bytes}


@probe
def windowed(student, x, kernel, stride, dilation, padding):
    """Return the windows of `x`, and the most bytes allocated at once for them."""
    with watch_memory(meta=False) as memory:
        x.detach()  # shows the storage of x, which `set_` would otherwise seem to make
        result = each(student.windows, [(x, kernel, stride, dilation, padding)])[0]
    return {"result": result, "bytes": memory.peak_bytes}
