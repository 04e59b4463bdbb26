"""Chapter 2's probes: all of the chapter that runs beside a student's code."""

import tracemalloc

from grader import each, probe, watch_memory


@probe
def elements(student, memory, size, stride, offset, itemsize, indices):
    """Return the bytes of the element at each of `indices`."""
    given = memory, size, stride, offset, itemsize
    return each(student.read_element, [(*given, index) for index in indices])


@probe
def dense_strides(student, cases):
    """Return the strides for each (size, order)."""
    return each(student.dense_stride, cases)


@probe
def contiguity(student, layouts):
    """Return what is said of each (size, stride)."""
    return each(student.is_contiguous, layouts)


@probe
def channels_last_contiguity(student, layouts):
    """Return what is said of each (size, stride) when asked for channels_last."""
    return each(student.is_contiguous, [(size, stride, True) for size, stride in layouts])


@probe
def viewed(student, x, calls):
    """Return the views of `x` that each (op, args) stands for."""
    return each(student.view_of, [(x, op, *args) for op, args in calls])


@probe
def indexed(student, x, selections):
    """Return what stands for `x[items]`, for each of `selections`."""
    return each(student.index_view, [(x, items) for items in selections])


@probe
def sharing(student, pairs):
    """Return for each pair of tensors whether a byte belongs to both."""
    return each(student.share_memory, pairs)


@probe
def broadcasted(student, cases):
    """Return the common size and all strides for each list of (size, stride)."""
    return each(student.broadcast_strides, [(layouts,) for layouts in cases])


@probe
def view_strides(student, cases):
    """Return the strides, or None, for each (size, stride, new size)."""
    return each(student.view_stride, cases)


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
def predictions(student, cases):
    """Return what is said of each (size, stride, op, args)."""
    return each(student.is_view, [(size, stride, op, *args) for size, stride, op, args in cases])


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


@probe
def overlap_answers(student, layouts):
    """Return what `overlaps` says of each (size, stride)."""
    return each(student.overlaps, layouts)


@probe
def aliases(student, tensors):
    """Return what `alias_graph` gives for a list of tensors."""
    return each(student.alias_graph, [(tensors,)])[0]


@probe
def packed(student, tensors):
    """Return the buffers and layouts of a list of tensors."""
    return each(student.pack_views, [(tensors,)])[0]


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


@probe
def programs_run(student, programs):
    """Run programs, lists of steps on tensors; return each tensor, or the error in its place.

    The first step of a program makes a tensor; the others refer to tensors by their numbers.
    """
    return [_run(student.StridedTensor, program) for program in programs]


def _run(make, program):
    """Return what each step gave: a tensor's facts, the error that it raised, or what else it is."""
    (numbers, size, stride, offset), *steps = program
    storage = list(numbers)
    tensors = [make(storage, tuple(size), tuple(stride), offset)]
    for what, which, *args in steps:
        used = [tensors[which], tensors[args[-1]]] if what == "copy" else [tensors[which]]
        if not all(map(_is_strided, used)):
            tensors.append("not run")  # a step before it is what went wrong
            continue
        try:
            tensors.append(_step(tensors, what, tensors[which], *args))
        except (IndexError, ValueError) as error:
            tensors.append(
                next(n for n in (IndexError, ValueError) if isinstance(error, n)).__name__
            )
    return [_facts(x, storage) for x in tensors]


def _is_strided(x):
    return all(hasattr(x, name) for name in ("storage", "size", "stride", "offset"))


def _facts(x, storage):
    if isinstance(x, str):
        return x
    if not _is_strided(x):
        return f"no StridedTensor, but of type {type(x).__name__}"
    try:
        numbers = x.tolist()
    except IndexError as error:  # as a wrong size or stride has it; the check looks at these first
        numbers = f"IndexError: {error}"
    return {
        "size": x.size,
        "stride": x.stride,
        "offset": x.offset,
        "list": numbers,
        "shares": x.storage is storage,
    }


def _step(tensors, what, x, *args):
    if what == "index":
        return x[_index(args[0])]
    if what == "write":
        x[_index(args[0])] = args[1]
        return x
    if what == "copy":
        x[_index(args[0])] = tensors[args[1]]
        return x
    return getattr(x, what)(*args)


def _index(parts):
    """Return an index from data: a pair means one number, a triple a slice. One part comes alone."""
    made = tuple(
        slice(*part) if isinstance(part, list | tuple) else (... if part == "..." else part)
        for part in parts
    )
    return made[0] if len(made) == 1 else made
