"""The probe of `StridedTensor`: programs that run on it."""

from grader import probe


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
