"""The probe of `evaluating`, and the model whose state it looks at."""

import torch
from torch import nn

from grader import probe

from .grad_modes import set_mode


class Counter(nn.Module):
    """A layer with buffers that move whenever it runs: in place, and by taking a new tensor."""

    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.register_buffer("last", torch.zeros(3), persistent=False)
        self.register_buffer("nothing", None)

    def forward(self, x):
        self.calls += 1
        self.last = x.detach()[0].clone()
        return x


def build_model(weight):
    """Return a model with frozen, dropping, counting and shared layers. `weight` (3, 3).

    The shared layer is in training mode, and one of the two that hold it is not. Two layers share
    a buffer.
    """
    linear, shared = nn.Linear(3, 3, bias=False), nn.Dropout(0.5)
    with torch.no_grad():
        linear.weight.copy_(weight)
    inner = nn.Sequential(nn.BatchNorm1d(3, momentum=None), shared, Counter())
    model = nn.Sequential(linear, shared, inner, nn.BatchNorm1d(3))
    model.train()
    model[3].eval()
    inner[2].eval()
    inner.training = False
    model[3].num_batches_tracked = inner[0].num_batches_tracked
    return model


def state_of(model):
    """Return each module's mode and attributes and each buffer's values, in order."""
    return {
        "modes": [module.training for module in model.modules()],
        "attributes": [sorted(vars(module)) for module in model.modules()],
        "buffers": {name: b if b is None else b.clone() for name, b in buffers_of(model).items()},
    }


def buffers_of(model):
    """Return every buffer by its full name, None where there is no tensor."""
    return {
        f"{prefix}.{name}": buffer
        for prefix, module in model.named_modules()
        for name, buffer in module._buffers.items()
    }


@probe
def evaluated(student, weight, x, outer, meddle, fails):
    """Return a model's state before, inside of and after a `with evaluating`, and results of it.

    `outer` is grad mode outside; `meddle` says that the body switches modes and calls the layers.
    """
    model = build_model(weight)
    model(x)
    model[2][2].calls.add_(5)
    before, buffers = state_of(model), buffers_of(model)
    seen, error = {}, None
    set_mode(outer)
    manager = student.evaluating(model)
    try:
        with manager as same:
            seen["same"] = same is model
            seen["modes"] = [module.training for module in model.modules()]
            seen["grad mode"] = torch.is_grad_enabled()
            seen["y"] = model(x)
            seen["again"] = model(x)
            if meddle:
                model.train()
                model(x + 1)
                model[3].running_mean = torch.full((3,), 9.0)
                for norm, count in ((model[2][0], 70), (model[3], 80)):
                    norm.num_batches_tracked = torch.tensor(count)
                model[2][2].nothing = torch.ones(3)
                set_mode(True)
            if fails:
                raise LookupError("the body's own")
    except LookupError as caught:
        error = str(caught)
    mode = torch.is_grad_enabled()
    after = buffers_of(model)
    return {
        "before": before,
        "seen": seen,
        "after": state_of(model),
        "other tensors": [name for name, one in buffers.items() if after.get(name) is not one],
        "grad mode": mode,
        "error": error,
        "requires grad": [p.requires_grad for p in model.parameters()],
    }
