"""Probes of `offloading`: what is computed, and the files that are there meanwhile."""

import gc
import tempfile
import weakref
from pathlib import Path

import torch
from torch import nn

from grader import probe


def compute(kinds, x, w, made):
    """Return one number computed from `x` and `w` (32, 32); `made` gets what was made on the way."""

    def note(tensor):
        made.append(weakref.ref(tensor.untyped_storage()))
        return tensor

    h = x
    for kind in kinds:
        if kind == "product":
            h = note(torch.tanh(h @ w))
        elif kind == "square":
            h = note(h * 1.5)
            h = note(h * h)
        elif kind == "rows":  # two small views of a large tensor are saved
            large = note(h.exp() * 0.1)
            h = h + note(large + 0.5)[3:5].prod(0) * w
        elif kind == "mask":
            h = torch.where(note(h > 0), h, note(0.5 * h))
        elif kind == "half":
            h = note(note(h.bfloat16()).sigmoid()).double() + h
        elif kind == "index":
            h = h[note(torch.arange(2000) % 32)].view(-1, 32)[:32].clone()
        elif kind == "constant":
            h = h * note(torch.linspace(0, 1, 1024, dtype=torch.float64).view(32, 32).t())
        elif kind == "row":
            h = h * note(h.detach()[:1].sigmoid()).expand(32, 32)
    return h.sum()


CODE = {
    "product": "h = torch.tanh(h @ w)",
    "square": "h = h * 1.5\nh = h * h",
    "rows": "large = h.exp() * 0.1\nh = h + (large + 0.5)[3:5].prod(0) * w",
    "mask": "h = torch.where(h > 0, h, 0.5 * h)",
    "half": "h = h.bfloat16().sigmoid().double() + h",
    "index": "h = h[torch.arange(2000) % 32].view(-1, 32)[:32].clone()",
    "constant": "h = h * torch.linspace(0, 1, 1024, dtype=torch.float64).view(32, 32).t()",
    "row": "h = h * h.detach()[:1].sigmoid().expand(32, 32)",
}
"""What `compute` does, for a message."""


def as_text(kinds, at_least):
    """Return the computation inside of the `with` as a program to paste."""
    lines = "\n".join(CODE[kind] for kind in kinds).split("\n")
    return "\n".join(
        [
            "x, w = (torch.randn(32, 32, dtype=torch.float64, requires_grad=True) for _ in range(2))",
            f"with offloading(folder, {at_least}):",
            "    h = x",
            *[f"    {line}" for line in lines],
            "    total = h.sum()",
        ]
    )


@probe
def offloaded(student, kinds, x, w, at_least, turns, inside):
    """Return gradients, and how many files are there before, during and after."""
    x, w = x.clone().requires_grad_(), nn.Parameter(w.clone())
    with tempfile.TemporaryDirectory() as folder:
        other = Path(folder) / "notes.txt"
        other.write_text("somebody else's")
        made, files = [], []
        with student.offloading(folder, at_least):
            total = compute(kinds, x, w, made)
            recorded = total.requires_grad
            turns = turns if recorded else 0
            alive = sum(one() is not None and one().nbytes() >= at_least for one in made)
            files.append(len(files_in(folder)))
            if inside:
                backward(total, turns)
        if not inside:
            files.append(len(files_in(folder)))
            backward(total, turns)
        del total
        gc.collect()
        left = len(files_in(folder))
        later = (x * 2).square().sum()  # saves a large tensor, which is no leaf
        outside = later.grad_fn.next_functions[0][0]._saved_self is not None
        plain = len(files_in(folder)) == left
        return {
            "recorded": recorded,
            "grads": [x.grad, w.grad],
            "files": files,
            "alive": alive,
            "left": left,
            "others": other.read_text() if other.exists() else "is gone",
            "outside": outside and plain,
        }


@probe
def offloaded_misfit(student, kinds, x, w, at_least, own, header):
    """Return the bytes that should be in a file, and its size, of the first that does not fit; or None.

    own: the bytes of the tensors that are moved, in order; a file may have up to `header` more. How
    many more wavers with its name, say.
    """
    x, w = x.clone().requires_grad_(), nn.Parameter(w.clone())
    with tempfile.TemporaryDirectory() as folder:
        with student.offloading(folder, at_least):
            total = compute(kinds, x, w, [])
        sizes = sorted(path.stat().st_size for path in files_in(folder))
        del total
        gc.collect()
    pairs = zip(own, sizes, strict=False)  # how many there should be, another check tells
    return next(([mine, size] for mine, size in pairs if not mine <= size <= mine + header), None)


def backward(total, turns):
    """Go back `turns` times; the graph is kept until the last."""
    for turn in range(turns):
        total.backward(retain_graph=turn + 1 < turns)


def files_in(folder):
    """Return the files in a folder, without the one that was there before."""
    return [path for path in Path(folder).iterdir() if path.name != "notes.txt"]


@probe
def offloaded_after_error(student, x, at_least):
    """Return what came out of a `with` whose body raised, and how many files of what is saved later."""
    x = x.clone().requires_grad_()
    with tempfile.TemporaryDirectory() as folder:
        came = "nothing"
        try:
            with student.offloading(folder, at_least):
                raise KeyError("by the body")
        except KeyError:
            came = "KeyError"
        total = (x * 2).square().sum()
        files = len(files_in(folder))
        del total
        return {"came": came, "files": files}


@probe
def offloaded_twice(student, kinds, x, w, at_least):
    """Return gradients of two graphs that wait in one folder at once, and what is left of files."""
    leaves, counts = [], []
    with tempfile.TemporaryDirectory() as folder:
        totals = []
        for scale in (1.0, 2.0):
            one, two = (scale * x).requires_grad_(), nn.Parameter(w.clone())
            leaves += [one, two]
            with student.offloading(folder, at_least):
                totals.append(compute(kinds, one, two, []))
            counts.append(len(files_in(folder)))
        totals[0].backward()
        del totals[0]
        gc.collect()
        counts.append(len(files_in(folder)))
        totals[0].backward()
        totals.clear()
        gc.collect()
        counts.append(len(files_in(folder)))
    return {"grads": [leaf.grad for leaf in leaves], "counts": counts}


@probe
def offloaded_kept(student, kinds, x, w, at_least):
    """Return how many more large tensors are in memory after a backward that keeps the graph."""
    x, w = x.clone().requires_grad_(), nn.Parameter(w.clone())
    with tempfile.TemporaryDirectory() as folder:
        with student.offloading(folder, at_least):
            total = compute(kinds, x, w, [])
        gc.collect()
        before = large_tensors(at_least)
        if total.requires_grad:
            total.backward(retain_graph=True)
        gc.collect()
        more = large_tensors(at_least) - before
        del total
        gc.collect()
        return more


def large_tensors(at_least):
    """Return how many tensors that Python knows have a storage of so many bytes or more."""
    return sum(
        type(one) is torch.Tensor and one.untyped_storage().nbytes() >= at_least
        for one in gc.get_objects()
    )
