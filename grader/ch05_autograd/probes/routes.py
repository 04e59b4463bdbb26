"""The probe of `route`, and the layers that it runs."""

import torch
from torch import nn

from grader import probe


class Fails(nn.Module):
    """A layer with a parameter, which raises."""

    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, h):
        raise LookupError("this layer fails")


def build_layers(kinds, numbers):
    """Return layers of width 4. `kinds` has names, or positions of an earlier layer to use again.

    `numbers` (layers, 5, 4) float64 holds each linear layer's weight and bias.
    """
    layers = []
    for kind, values in zip(kinds, numbers, strict=True):
        if isinstance(kind, int):
            layers.append(layers[kind])
        elif kind in ("linear", "fixed", "tied"):
            layer = nn.Linear(4, 4, dtype=torch.float64)
            with torch.no_grad():
                layer.weight.copy_(values[:4])
                layer.bias.copy_(values[4])
            if kind == "tied":  # shares the first layer's weight, has a bias of its own
                layer.weight = layers[0].weight
            layers.append(layer.requires_grad_(kind != "fixed"))
        elif kind == "block":  # its parameters belong to a layer inside of it
            layers.append(nn.Sequential(*build_layers(["linear"], values[None])))
        else:
            makers = {
                "same": nn.Identity,
                "tanh": nn.Tanh,
                "fails": lambda: Fails(4),
                "norm": normalize,
            }
            layers.append(makers[kind]())
    return layers


CODE = {
    "linear": "nn.Linear(4, 4)",
    "tied": "nn.Linear(4, 4)",
    "fixed": "nn.Linear(4, 4).requires_grad_(False)",
    "block": "nn.Sequential(nn.Linear(4, 4))",
    "same": "nn.Identity()",
    "tanh": "nn.Tanh()",
    "fails": "Fails(4)",
    "norm": "nn.BatchNorm1d(4)",
}


def as_text(kinds, frozen, cut):
    """Return the call of `route` on these layers as a program to paste."""
    lines, places = [], []
    if "fails" in kinds:
        lines.append("# Fails has a parameter, and its forward raises")
    for at, kind in enumerate(kinds):
        places.append(f"l{kind if isinstance(kind, int) else at}")
        if kind in CODE:
            lines.append(f"l{at} = {CODE[kind]}")
        if kind == "tied":
            lines.append(f"l{at}.weight = l0.weight")
    sets = [repr(set(one)) if one else "set()" for one in (frozen, cut)]
    lines.append("x = torch.randn(3, 4, requires_grad=True)")
    lines.append(f"route([{', '.join(places)}], x, frozen={sets[0]}, cut={sets[1]})")
    return "\n".join(lines)


def names_of(layers):
    """Return what the program calls each parameter of the layers, in order."""
    named = nn.ModuleList(layers).named_parameters()
    return [f"l{name}" for name, _ in named]


def normalize():
    """Return a BatchNorm, which counts how often it ran."""
    return nn.BatchNorm1d(4, dtype=torch.float64)


@probe
def routed(student, kinds, numbers, x, cotangent, frozen, cut):
    """Return the result, and the gradients that come back from it for `cotangent`."""
    layers = build_layers(kinds, numbers)
    parameters = list(nn.ModuleList(layers).parameters())
    x = x.clone().requires_grad_()
    before = [p.requires_grad for p in parameters]
    calls = [0] * len(layers)
    for position, layer in enumerate(layers):
        first = layers.index(layer)
        if first == position:
            layer.register_forward_hook(lambda *_, at=first: calls.__setitem__(at, calls[at] + 1))
    raised, y = "", None
    try:
        y = student.route(layers, x, set(frozen), set(cut))
    except LookupError as error:
        raised = str(error)
    after = [p.requires_grad for p in parameters]
    if isinstance(y, torch.Tensor) and y.requires_grad:
        y.backward(cotangent)
    return {
        "y": y.detach() if isinstance(y, torch.Tensor) else y,
        "grads": [p.grad for p in parameters],
        "x": x.grad,
        "x requires grad": x.requires_grad,
        "flags": (before, after),
        "calls": calls,
        "buffers": [buffer.clone() for buffer in nn.ModuleList(layers).buffers()],
        "raised": raised,
    }
