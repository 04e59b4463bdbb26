"""Probes of `loop_nest`, `lower_to_einsum` and `reschedule`: programs as loops and as equations."""

import torch

from grader import probe


class _Watched:
    """A buffer that notes what is read, and refuses what lies outside."""

    def __init__(self, name, tensor, notes):
        self.name, self.shape, self.notes = name, tuple(tensor.shape), notes
        self.tensor = tensor

    def _place(self, index):
        index = index if isinstance(index, tuple) else (index,)
        fits = len(index) == len(self.shape) and all(
            type(i) is int and 0 <= i < n for i, n in zip(index, self.shape, strict=True)
        )
        if not fits:
            place = "..." if index == (...,) else ", ".join(map(str, index))
            raise IndexError(f"no element {self.name}[{place}] in shape {self.shape}")
        return index

    def __getitem__(self, index):
        index = self._place(index)
        if len(self.notes) < 20_000:
            self.notes.append((self.name, index))
        return self.tensor[index].item()


class _Out(_Watched):
    """The result: read and written."""

    def __getitem__(self, index):
        return self.tensor[self._place(index)].item()

    def __setitem__(self, index, value):
        self.tensor[self._place(index)] = value


@probe
def looped(student, program, order, shape, buffers):
    """Run a loop nest. Return its result, and what it read, in order."""
    source = student.loop_nest(program, order)
    notes = []
    out = torch.full(shape, 777.0, dtype=torch.float64)
    names = {name: _Watched(name, tensor, notes) for name, tensor in buffers.items()}
    exec(compile(source, "loop nest", "exec"), {**names, "out": _Out("out", out, notes)})
    return {"out": out, "reads": notes, "source": source}


@probe
def loops_refused(student, program, order):
    """Ask for loops in an order that is none."""
    student.loop_nest(program, order)


@probe
def lowered(student, program, buffers):
    """Return the equation, and what it gives; None if there is none."""
    found = student.lower_to_einsum(program, {n: tuple(t.shape) for n, t in buffers.items()})
    if found is None:
        return None
    equation, names = found
    value, refused = None, ""
    try:
        value = torch.einsum(equation, *(buffers[name] for name in names))
    except RuntimeError as error:
        refused = str(error)
    return {"equation": equation, "names": list(names), "value": value, "refused": refused}


_OPERATORS = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "&": lambda a, b: a & b,
}
_KEYS = ("loops", "index", "guards", "needs", "lanes")
_MOST_TURNS = 20_000


class _NoNest(ValueError):
    """What came back is no loop nest; the message says why not."""


def _value(node, at):
    """Return what a node is worth where the loops stand at `at`."""
    match node:
        case ("number", int() as number):
            return number
        case ("index", str() as name):
            if name not in at:
                raise _NoNest(f"A node names {name!r}, and there is no loop of that name.")
            return at[name]
        case (str() as op, left, right) if op in _OPERATORS:
            a, b = _value(left, at), _value(right, at)
            if op in ("//", "%") and b == 0:
                raise _NoNest(f"A node divides by zero: {str(node)[:200]}.")
            return _OPERATORS[op](a, b)
    raise _NoNest(f"This is no node: {repr(node)[:200]}.")


def turns_of(nest):
    """Yield for each turn of a nest where its loops stand, and the index tuple, or None if it is guarded."""
    for at in _turns(list(nest["loops"])):
        if all(_value(guard, at) for guard in nest["guards"]):
            yield at, tuple(_value(node, at) for node in nest["index"].values())
        else:
            yield at, None


def _turns(loops):
    """Yield where the loops stand, turn by turn."""
    if not loops:
        yield {}
        return
    (name, extent), *inner = loops
    for number in range(extent):
        for at in _turns(inner):
            yield {name: number, **at}


def _read_nest(nest, axes):
    """Return a nest with its parts in one form, its axes in our order. Raises _NoNest."""
    if nest is None:
        raise _NoNest("Your function returned None. Did you forget a `return`?")
    if not isinstance(nest, dict):
        raise _NoNest(f"The nest is no dict, but a {type(nest).__name__}.")
    missing = [key for key in _KEYS if key not in nest]
    if missing:
        raise _NoNest(f"The nest has no {missing[0]!r}.")
    loops, index, guards = nest["loops"], nest["index"], nest["guards"]
    plain = (list, tuple)
    if not isinstance(loops, plain) or not all(
        isinstance(loop, plain)
        and len(loop) == 2
        and type(loop[0]) is str
        and type(loop[1]) is int
        and loop[1] >= 0
        for loop in loops
    ):
        raise _NoNest(f'"loops" is to hold pairs of a name and an extent: {repr(loops)[:200]}.')
    names = [name for name, _ in loops]
    if len(set(names)) < len(names):
        raise _NoNest(f"Two loops have one name: {names}.")
    if not isinstance(index, dict) or set(index) != set(axes):
        raise _NoNest(f'"index" is to be a dict with a node for each of {axes}.')
    if not isinstance(guards, plain):
        raise _NoNest(f'"guards" is to be a tuple of nodes: {repr(guards)[:200]}.')
    turns = 1
    for _, extent in loops:
        turns *= extent
    if turns > _MOST_TURNS:
        raise _NoNest(f"The loops make {turns} turns in all.")
    lanes = nest["lanes"]
    if lanes is not None and lanes != (names[-1] if names else None):
        raise _NoNest(f'"lanes" is {repr(lanes)[:80]}, which is not the innermost loop.')
    return {
        "loops": [(name, extent) for name, extent in loops],
        "index": {axis: index[axis] for axis in axes},
        "guards": list(guards),
        "lanes": lanes,
    }


def _run_nest(nest, axes):
    """Return what a nest does, as plain data; under "problem" what is wrong with it, "" if nothing."""
    try:
        read = _read_nest(nest, axes)
        visits = []
        for at, point in turns_of(read):
            if read["lanes"] is None or at[read["lanes"]] == 0:
                visits.append([])
            if point is not None:
                visits[-1].append(point)
    except _NoNest as error:
        return {"problem": str(error)}
    except RecursionError:
        return {"problem": "A node is nested too deeply."}
    return {
        "problem": "",
        "loops": read["loops"],
        "visits": [together for together in visits if together],
        "guards": len(read["guards"]),
        "lanes": read["lanes"],
    }


def _own(nest):
    """Return a nest that an answer may change: all but the dicts is tuples."""
    return nest | {"index": dict(nest["index"])}


@probe
def rescheduled(student, nest, rounds):
    """Take each list of steps in turn. Return what the last nest does, and whether the given one changed."""
    given = _own(nest)
    found = given
    for steps in rounds:
        found = student.reschedule(found, list(steps))
    return _run_nest(found, tuple(nest["index"])) | {"as given": given == nest}


@probe
def needs_kept(student, nest, first, second):
    """Return whether the second list of steps is taken, or refused by ValueError, after the first."""
    found = student.reschedule(_own(nest), list(first))
    try:
        student.reschedule(found, list(second))
    except ValueError:
        return "ValueError"
    return "taken"


@probe
def schedules_taken(student, cases):
    """Return for each nest and list of steps whether it is taken, or refused by ValueError."""
    answers = []
    for nest, steps in cases:
        try:
            student.reschedule(_own(nest), list(steps))
        except ValueError:
            answers.append("ValueError")
        except Exception as error:
            error.add_note(f"reschedule({nest}, {list(steps)})")
            raise
        else:
            answers.append("taken")
    return answers
