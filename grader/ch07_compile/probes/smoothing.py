"""Probes of `custom_op`: the operator `undertorch::smooth`."""

import functools
import gc
import weakref

import torch
from functorch.compile import make_boxed_func
from torch._dynamo.backends.common import aot_autograd
from torch._subclasses import FakeTensorMode

from grader import fresh_dynamo, probe, watch_saved


@functools.cache
def smooth_made(make_smooth):
    """Return the operator; a process registers a name once."""
    return make_smooth()


@probe
def smooth_called(student, x, keep):
    """Return what the operator gives for `x`."""
    return smooth_made(student.make_smooth)(x, keep)


@probe
def smooth_gradient(student, x, keep, cotangent):
    """Return the gradient of `x`, the bytes that autograd kept for it, and who else is kept."""
    smooth, leaf = smooth_made(student.make_smooth), x.detach().requires_grad_()
    given = leaf + 0
    with watch_saved() as saved:
        result = smooth(given, keep)
    # neither `given` nor `result` is needed any more by anyone but the operator
    after = result + 0
    references = {"input": weakref.ref(given), "result": weakref.ref(result)}
    del given, result
    gc.collect()
    kept = [name for name, reference in references.items() if reference() is not None]
    (gradient,) = torch.autograd.grad(after, leaf, cotangent)
    return {"gradient": gradient, "saved bytes": saved.bytes, "kept": kept}


@probe
def smooth_promise(student, x, keep):
    """Return shape, strides and dtype that the fake kernel promises."""
    smooth = smooth_made(student.make_smooth)
    with FakeTensorMode() as mode:
        promised = smooth(mode.from_tensor(x), keep)
    return list(promised.shape), list(promised.stride()), str(promised.dtype)


@probe
def smooth_compiled(student, xs, keep, cotangents, dynamic):
    """Return results and gradients of a compiled function, and the operators of each graph."""
    smooth, graphs = smooth_made(student.make_smooth), []

    def note(module, inputs):
        graphs.append([str(n.target) for n in module.graph.nodes if n.op == "call_function"])
        return make_boxed_func(module.forward)

    backend = aot_autograd(fw_compiler=note, bw_compiler=note)
    results = []
    with fresh_dynamo():
        run = torch.compile(
            lambda x: smooth(x * 2, keep).sin(), backend=backend, fullgraph=True, dynamic=dynamic
        )
        for x, cotangent in zip(xs, cotangents, strict=True):
            leaf = x.detach().requires_grad_()
            result = run(leaf)
            result.backward(cotangent)
            results.append((result.detach(), leaf.grad))
    counts = [sum("undertorch.smooth" in name for name in graph) for graph in graphs]
    return {"results": results, "graphs": len(graphs), "nodes": counts}


@probe
def smooth_checked(student, x, keep):
    """Return what `opcheck` says of the operator, test by test."""
    smooth = smooth_made(student.make_smooth)
    args = (x.detach().requires_grad_(), keep)
    verdicts = torch.library.opcheck(smooth, args, raise_exception=False)
    return {name: str(verdict).split("\n")[0] for name, verdict in verdicts.items()}
