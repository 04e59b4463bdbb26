"""Probes of `loss_scale_step`."""

import torch

from grader import probe


@probe
def loss_scale_stepped(student, grads, scale, streak, interval):
    """Return what one call gives."""
    return student.loss_scale_step(grads, scale, streak, interval)


@probe
def loss_scales(student, batches, scale, streak, interval):
    """Return (skipped, scale, streak) after each of `batches`, a list of lists of gradients."""
    history = []
    for grads in batches:
        unscaled, scale, streak = student.loss_scale_step(grads, scale, streak, interval)
        history.append((unscaled is None, scale, streak))
    return history


@probe
def loss_scale_trained(student, factors, scale, interval, steps):
    """Train a float32 weight of 1.0 on a tiny float16 gradient, from a scale that is far off.

    Return (the gradient or None, the scale) of each step.
    """
    weight, streak, history = torch.ones(()), 0, []
    for _ in range(steps):
        half = weight.half().requires_grad_()
        loss = (half * factors[0] * factors[1]).float() * scale
        loss.backward()
        unscaled, scale, streak = student.loss_scale_step([half.grad], scale, streak, interval)
        if unscaled is not None:
            weight = weight - unscaled[0]
        history.append((None if unscaled is None else unscaled[0], scale))
    return history
