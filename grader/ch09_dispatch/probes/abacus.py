"""Probes of `Abacus`: programs and trainings on a device with the student's kernels, in a fork."""

import gc

import torch
import torch._dynamo  # the first optimizer imports it. Here, that happens once and not in every fork
import torch.fx.experimental.symbolic_shapes  # autograd imports it, when a gradient is given
from torch import nn

from grader import apart, probe, watch_ops

from .plugging import Hidden, memory_kernels, plug_in, run_lines

FREE = ["detach", "alias", "as_strided", "view", "expand", "empty", "empty_strided", "empty_like"]
FREE += ["new_empty", "new_empty_strided", "zeros", "zeros_like", "new_zeros", "zero_"]
"""Operators that make tensors or views, and may be called by a kernel; `Hidden` makes views, too."""


def on_abacus(student, body, *, watched=False):
    """Return `body(abacus, memory, fell)` with the device plugged in, in a fork.

    `fell` lists what went to the fallback. If `watched`, so does what kernels call of PyTorch, and
    `body` gets a list of pairs in its place.
    """

    def run():
        memory = Hidden()
        abacus = student.Abacus(memory.array)
        kernels, fell, inside = abacus.kernels(), [], []

        def fallback(op, *args, **kwargs):
            fell.append(op.name().removeprefix("aten::"))
            return abacus.fallback(op, *args, **kwargs)

        if watched:
            kernels = {name: _watched(name, one, inside) for name, one in kernels.items()}
        libraries = plug_in({**kernels, **memory_kernels(memory)}, fallback)
        try:
            return body(abacus, memory, inside if watched else fell)
        finally:
            for library in libraries:
                library._destroy()

    return apart(run)


def _watched(name, kernel, inside):
    def call(*args, **kwargs):
        with watch_ops() as ops:
            result = kernel(*args, **kwargs)
        inside.extend([name, one] for one in ops.names if one not in FREE)
        return result

    return call


@probe
def abacus_lines(student, lines, inputs):
    """Return what each line gives on the device, and what of it went to the fallback."""

    def body(abacus, memory, fell):
        found = []
        for line in lines:
            del fell[:]
            [values] = run_lines([line], inputs, "abacus")
            found.append({"values": values, "fell back": sorted(set(fell))})
        return found

    return on_abacus(student, body)


@probe
def abacus_calls(student, lines, inputs):
    """Return which operators of PyTorch the kernels call, tensors and views aside."""

    def body(abacus, memory, inside):
        run_lines(lines, inputs, "abacus")
        return sorted({tuple(pair) for pair in inside})

    return on_abacus(student, body, watched=True)


@probe
def abacus_trains(student, run, seed, steps):
    """Return losses and weights of a training on the device, what fell back, and live bytes."""

    def body(abacus, memory, fell):
        found = train(run, seed, steps, "abacus", lambda: memory.live)
        gc.collect()
        return found | {"fell back": sorted(set(fell)), "left": memory.live}

    return on_abacus(student, body)


def train(run, seed, steps, device, live=lambda: 0):
    """Return losses, weights and live bytes after each step of a training, in float64."""
    torch.manual_seed(seed)
    network, optimizer, loss, targets = TRAININGS[run]()
    network, x = network.double().to(device), torch.randn(16, 4, dtype=torch.float64).to(device)
    optimizer, targets = optimizer(network.parameters()), targets.to(device)
    losses, alive = [], []
    for _ in range(steps):
        one = loss(network(x), targets)
        one.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(one.detach().cpu())
        del one
        gc.collect()
        alive.append(live())
    weights = [p.detach().cpu().clone() for p in network.parameters()]
    return {"losses": torch.stack(losses), "weights": weights, "alive": alive}


@probe
def abacus_returns(student, x):
    """Return which results of `fallback` are the written tensors themselves, and others' devices."""

    def body(abacus, memory, fell):
        aten, x_ = torch.ops.aten, x.to("abacus")
        values = torch.empty(x.shape, device="abacus")
        indices = torch.empty(x.shape, dtype=torch.int64, device="abacus")
        one = abacus.fallback(aten.sort.values, x_, 0, values=values, indices=indices)
        two = abacus.fallback(aten.neg_.default, x_)
        three = abacus.fallback(aten.split_copy.Tensor, x_, 2)
        four = abacus.fallback(aten.equal.default, x_, x_)
        return {
            "sort(x, 0, values=values, indices=indices)": [one[0] is values, one[1] is indices],
            "neg_(x)": two is x_,
            "devices of split_copy(x, 2)": [part.device.type for part in three],
            "equal(x, x)": four,
        }

    return on_abacus(student, body)


@probe
def abacus_view(student, which, x):
    """Return None, and raise what the fallback raises for an operator that makes a view."""

    def body(abacus, memory, fell):
        VIEWS[which](x.to("abacus"))

    return on_abacus(student, body)


VIEWS = {
    "x.unfold(0, 2, 1)": lambda x: x.unfold(0, 2, 1),
    "torch.view_as_complex(x[:, :2])": lambda x: torch.view_as_complex(x[:, :2]),
}
"""Views that the given kernels do not make."""


def _regression():
    network = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    targets = torch.randn(16, 2, dtype=torch.float64)
    return network, lambda p: torch.optim.Adam(p, lr=0.01), nn.functional.mse_loss, targets


def _classifier():
    layers = (
        nn.Linear(4, 8),
        nn.LayerNorm(8),
        nn.GELU(),
        nn.Linear(8, 8),
        nn.ReLU(),
        nn.Linear(8, 3),
    )
    network, targets = nn.Sequential(*layers), torch.randint(0, 3, (16,))

    def optimizer(p):
        return torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01, nesterov=True)

    return network, optimizer, nn.functional.cross_entropy, targets


TRAININGS = {"regression": _regression, "classifier": _classifier}
"""What returns a network, its optimizer, a loss and targets: one for the sixteen, one for all others."""
