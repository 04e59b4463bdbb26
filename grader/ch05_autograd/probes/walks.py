"""Probes of `graph_report` and `gradients`, which walk a graph."""

import gc
import signal
import weakref
from contextlib import contextmanager

import torch

from grader import probe

from .alive import Token
from .graphs import build_all, build_graph


@probe
def reported(student, recipe, numbers):
    """Return the report of a graph; the leaves by their numbers, as often as they were listed."""
    output, leaves = build_graph(recipe, numbers)
    with at_most(seconds=5):
        report = student.graph_report(output)
    found = [[at for at, leaf in leaves.items() if leaf is one] for one in report["leaves"]]
    return {
        "nodes": dict(report["nodes"]),
        "leaves": found,
        "saved_bytes": report["saved_bytes"],
    }


@probe
def report_left(student, recipe, numbers):
    """Return what a report leaves behind: in `.grad`, in the graph, and of the graph."""
    output, leaves = build_graph(recipe, numbers)
    report = student.graph_report(output)
    untouched = all(leaf.grad is None for leaf in leaves.values())
    token = output.grad_fn.metadata["token"] = Token()
    alive = weakref.ref(token)
    output.sum().backward()
    del output, token
    gc.collect()
    return {
        "nodes": dict(report["nodes"]),
        "untouched": untouched,
        "graph is alive": alive() is not None,
    }


@contextmanager
def at_most(seconds):
    """Interrupt the body when it takes longer, such as one that walks every road of a graph."""

    def stop(signum, frame):
        raise TimeoutError(f"No answer within {seconds} seconds.")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@probe
def walked_back(student, recipe, numbers, cotangent, wanted):
    """Return the gradients of the results numbered `wanted`, and what is left behind."""
    made = build_all(recipe, numbers)
    output, inputs = made[-1], [made[at] for at in wanted]
    leaves = [one for one in made[: len(numbers)] if one.requires_grad]
    for leaf in leaves:
        leaf.grad = torch.full_like(leaf, 3.0)
    with at_most(seconds=5):
        found = student.gradients(output, cotangent, inputs)
    again = None
    if isinstance(found, list) and all(leaf is not None for leaf in found):
        with at_most(seconds=5):
            again = student.gradients(output, cotangent, inputs)
    return {
        "gradients": found,
        "again": again,
        "untouched": all(bool((leaf.grad == 3).all()) for leaf in leaves),
    }


@probe
def walked_with_cotangent(student, numbers, cotangent):
    """Return which gradients require grad, where the cotangent does."""
    a = numbers[0].clone().requires_grad_()
    h1 = a * 2
    with at_most(seconds=5):
        found = student.gradients(h1, cotangent.clone().requires_grad_(), [a, h1])
    return {name: grad.requires_grad for name, grad in zip(("a", "h1"), found, strict=True)}
