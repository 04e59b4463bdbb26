"""Probes of `compensated_sum` and `sgd_step`: small terms added to large ones."""

import torch

from grader import apart, probe


@probe
def column_sums(student, x):
    """Return the sums of the columns of `x`."""
    return student.compensated_sum(x)


@probe
def sgd_trained(student, weight, grads, lr):
    """Return a parameter that starts at `weight` after a step per row of `grads`, and the state."""
    return _sgd(student, torch.nn.Parameter(weight.clone()), None, grads, lr)


@probe
def sgd_trained_apart(student, weight, grads, lr):
    """Return the same of a run in a process that ends with it: what was kept elsewhere is lost."""
    return apart(lambda: _sgd(student, torch.nn.Parameter(weight.clone()), None, grads, lr))


@probe(in_place=("state",))
def sgd_resumed(student, weight, state, grads, lr):
    """Return the same of a run that starts from an earlier one's weight and state."""
    return _sgd(student, torch.nn.Parameter(weight.clone()), state, grads, lr)


@probe(in_place=("memory", "weight"))
def sgd_in_place(student, memory, weight, grads, lr):
    """Step a parameter that is `weight` itself, a view into `memory`."""
    _sgd(student, torch.nn.Parameter(weight), None, grads, lr)


def _sgd(student, parameter, state, grads, lr):
    with torch.no_grad():
        for grad in grads:
            state = student.sgd_step(parameter, grad, lr, state)
    return {"weight": parameter.detach(), "state": state}
