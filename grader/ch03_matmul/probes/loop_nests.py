"""Probes of `loop_nest` and `lower_to_einsum`: programs as loops, and as an equation."""

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
