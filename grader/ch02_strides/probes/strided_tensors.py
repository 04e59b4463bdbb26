"""The probe of `StridedTensor`: programs that run on it, and how they are written as Python."""

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
    for number, (what, which, *args) in enumerate(steps, 1):
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
        except Exception as error:
            error.add_note(as_code(program, number + 1))
            raise
    try:
        return [_facts(x, storage) for x in tensors]
    except Exception as error:
        error.add_note(f"{as_code(program, len(program))}; then tolist() of each")
        raise


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


def as_code(program, count):
    """Return the first `count` steps of a program as Python; tensors are named by their numbers."""
    (numbers, size, stride, offset), *steps = program[:count]
    first = numbers[0]
    listed = f"list(range({first}, {first + len(numbers)}))"
    listed = listed if list(numbers) == list(range(first, first + len(numbers))) else repr(numbers)
    start = f"t0 = StridedTensor({listed}, {tuple(size)}, {tuple(stride)}, {offset})"
    return "; ".join([start, *(_assigned(k, step) for k, step in enumerate(steps, 1))])


def _assigned(number, step):
    """Return a step as Python that names its tensor; a write returns the one that it wrote to."""
    what, which, *args = step
    if what in ("write", "copy"):
        return f"t{number} = t{which}; {written((what, number, *args))}"
    return f"t{number} = {written(step)}"


def written(step):
    """Return a step as Python."""
    what, which, *args = step
    if what in ("index", "write", "copy"):
        parts = ", ".join(map(_part, args[0])) or "()"
        value = {"index": "", "write": f" = {args[-1]}", "copy": f" = t{args[-1]}"}[what]
        return f"t{which}[{parts}]{value}"
    return f"t{which}.{what}({', '.join(map(str, args))})"


def _part(part):
    if not isinstance(part, list | tuple):
        return str(part)
    first, last, step = ("" if number is None else str(number) for number in part)
    return f"{first}:{last}" + (f":{step}" if step not in ("", "1") else "")
