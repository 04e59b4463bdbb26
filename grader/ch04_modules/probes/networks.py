"""Probes of `resnet`: a network's counts, and what it computes."""

import torch
from torch import nn

from grader import probe


def fill_by_shape(model):
    """Give every tensor values that depend on its shape and its layer's type alone."""
    with torch.no_grad():
        for module in model.modules():
            own = {**module._parameters, **module._buffers}
            for name, tensor in own.items():
                if tensor is None or not tensor.is_floating_point():
                    continue
                phase = len(name) + sum(tensor.shape)
                values = (torch.arange(tensor.numel()) * 0.7 + phase).sin().reshape(tensor.shape)
                values = values.to(tensor.dtype)
                if tensor.dim() > 1:
                    values = values * (2 / tensor[0].numel()) ** 0.5
                elif name in ("weight", "running_var"):
                    values = 1 + 0.3 * values
                tensor.copy_(values)
    return model


def describe_network(make, spec):
    """Return counts of a network that is built without memory."""
    with torch.device("meta"):
        model = make(*spec)
    convs = [m for m in model.modules() if isinstance(m, nn.Conv2d)]
    linears = [m for m in model.modules() if isinstance(m, nn.Linear)]
    return {
        "parameters": sum(p.numel() for p in model.parameters()),
        "buffers": sum(b.numel() for b in model.buffers()),
        "convolutions": sorted(
            [c.in_channels, c.out_channels, *c.kernel_size, *c.stride, *c.padding] for c in convs
        ),
        "biases": sum(c.bias is not None for c in convs),
        "linear": [[m.in_features, m.out_features, m.bias is not None] for m in linears],
    }


def run_network(make, spec, x, mode, zeroed):
    """Return a network's output, gradients by shape, and how often its norms were used.

    With `zeroed` its 3×3 convolutions are all zero.
    """
    torch.manual_seed(0)
    model = fill_by_shape(make(*spec).to(x.dtype))
    if zeroed:
        for module in model.modules():
            if isinstance(module, nn.Conv2d) and module.kernel_size == (3, 3):
                nn.init.zeros_(module.weight)
    model.train(mode == "train")
    output = model(x.clone())
    (output * torch.arange(output.numel()).reshape(output.shape).cos()).sum().backward()
    norms = [m for m in model.modules() if isinstance(m, nn.BatchNorm2d)]
    grads = {}
    for parameter in model.parameters():
        total = torch.zeros(()) if parameter.grad is None else parameter.grad.double().abs().sum()
        shape = str(tuple(parameter.shape))
        grads[shape] = grads.get(shape, 0) + total
    return {
        "output": output.detach(),
        "batches": [int(norm.num_batches_tracked) for norm in norms],
        "grads": {shape: grads[shape].double() for shape in sorted(grads)},
    }


@probe
def network_described(student, spec):
    """Return the counts of the student's network."""
    return describe_network(student.resnet, spec)


@probe
def network_run(student, spec, x, mode, zeroed):
    """Return what the student's network gives for `run_network`."""
    return run_network(student.resnet, spec, x, mode, zeroed)
