"""Probes of operators in three forms: `structured`."""

import warnings

import numpy
import torch

from grader import probe, watch_memory


def _common(*operands):
    """Return the dtype of operands with dimensions."""
    dtype = operands[0].dtype
    for x in operands[1:]:
        dtype = torch.promote_types(dtype, x.dtype)
    return dtype


def _arrays(*tensors):
    """Return NumPy's views: what is written through them asks nothing of torch."""
    return [x.detach().numpy() for x in tensors]


def _plus_meta(a, b):
    return torch.broadcast_shapes(a.shape, b.shape), _common(a, b)


def _plus(result, a, b):
    to, x, y = _arrays(result, a, b)
    numpy.add(x, y, out=to, casting="unsafe")


def _less_meta(a, b):
    return torch.broadcast_shapes(a.shape, b.shape), torch.bool


def _less(result, a, b):
    to, x, y = _arrays(result, a, b)
    numpy.less(x, y, out=to)


def _half_meta(a):
    return a.shape, a.dtype if a.dtype.is_floating_point else torch.float32


def _half(result, a):
    to, x = _arrays(result, a)
    numpy.multiply(x, 0.5, out=to, casting="unsafe")


def _mix_meta(a, b, c):
    return torch.broadcast_shapes(a.shape, b.shape, c.shape), _common(a, b, c)


def _mix(result, a, b, c):
    to, x, y, z = _arrays(result, a, b, c)
    numpy.copyto(to, x + 2 * y - z, casting="unsafe")


OPERATIONS = {
    "plus": (_plus_meta, _plus),
    "less": (_less_meta, _less),
    "half": (_half_meta, _half),
    "mix": (_mix_meta, _mix),
}


class _Watched:
    """An operation's meta function and kernel, which note what they are called with."""

    def __init__(self, name):
        self._meta, self._kernel = OPERATIONS[name]
        self.metas = 0
        self.given = []

    def meta(self, *operands):
        self.metas += 1
        return self._meta(*operands)

    def kernel(self, result, *operands):
        self.given.append((result.dtype, tuple(result.shape), result.data_ptr()))
        self._kernel(result, *operands)


def _own(operands, out):
    """Return them over copies of their storages, shared as they were: an input's must not be resized."""
    homes = {}

    def copied(x):
        if x is None:
            return None
        old = x.untyped_storage()
        home = homes.setdefault(old._cdata, old.clone())
        return torch.empty(0, dtype=x.dtype).set_(home, x.storage_offset(), x.shape, x.stride())

    return [copied(x) for x in operands], copied(out)


def _called(student, form, name, operands, out):
    """Call one form of an operation; return the result, the tensor to write to, what was seen."""
    operands, out = _own(operands, out)
    watched = _Watched(name)
    forms = student.structured(watched.meta, watched.kernel)
    run = forms[("functional", "inplace", "out").index(form)]
    target = {"functional": None, "inplace": operands[0], "out": out}[form]
    with warnings.catch_warnings(record=True) as caught, watch_memory() as memory:
        warnings.simplefilter("always")
        result = run(*operands, out=out) if form == "out" else run(*operands)
    at = target.data_ptr() if isinstance(target, torch.Tensor) else None
    return {
        "result": result,
        "is target": result is target,
        "metas": watched.metas,
        "kernels": [(dtype, size, pointer == at) for dtype, size, pointer in watched.given],
        "warned": [issubclass(one.category, UserWarning) for one in caught],
        "bytes": memory.new_bytes,
    }


@probe
def formed(student, cases):
    """Return what was seen of each (form, operation, operands, out)."""
    return [_called(student, *case) for case in cases]


@probe
def refused(student, form, operation, operands, out, grads, recording):
    """Return what became of a call: the error's names, how often the kernel ran, the tensor after it.

    grads: positions of operands that require a gradient, and -1 for `out`
    recording: whether gradients are recorded
    """
    operands, out = _own(operands, out)
    for position in grads:
        (out if position < 0 else operands[position]).requires_grad_()
    watched = _Watched(operation)
    forms = student.structured(watched.meta, watched.kernel)
    target = operands[0] if form == "inplace" else out
    raised = []
    with torch.set_grad_enabled(recording):
        try:
            if form == "inplace":
                forms[1](*operands)
            else:
                forms[2](*operands, out=out)
        except Exception as error:
            raised = [kind.__name__ for kind in type(error).__mro__]
            message = str(error)
    return {
        "raised": raised,
        "message": message[:200] if raised else "",
        "kernels": len(watched.given),
        "after": target.detach().clone(),
    }
