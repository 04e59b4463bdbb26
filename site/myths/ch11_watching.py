# Watching: claims, what is true, and programs that show it.

# %% looking-draws-nothing predict_disturbance
# A hook that only looks leaves the run as it is.
#
# Unless it draws a random number. Dropout draws from the same generator, and from there on every mask is another.
import torch
from torch import nn


def masks(look):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
    model[0].register_forward_hook(look)
    return model(torch.ones(2, 4)) == 0


whole = masks(lambda module, inputs, output: None)
sampled = masks(lambda module, inputs, output: torch.randperm(8) is None or None)
print(torch.equal(whole, sampled))

# %% a-mode-sees-every-read predict_disturbance
# A dispatch mode sees each time that a value is read.
#
# It sees `item` and `float`. `tolist` and `print` copy from memory without an operator.
import torch
from torch.utils._python_dispatch import TorchDispatchMode


class Seen(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        names.append(func.name())
        return func(*args, **(kwargs or {}))


x = torch.ones(2)
for read in (lambda: float(x[0]), lambda: x.tolist(), lambda: str(x)):
    names = []
    with Seen():
        read()
    print([name for name in names if "dense" in name])

# %% clipping-tames-nan grad_norms
# `clip_grad_norm_` makes a NaN harmless.
#
# It makes all gradients NaN: the norm is NaN, and every gradient is divided by it.
import torch
from torch import nn

good, broken = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2))
good.grad, broken.grad = torch.ones(2), torch.tensor([1.0, float("nan")])
nn.utils.clip_grad_norm_([good, broken], 1.0)
print(good.grad.tolist())

# %% anomaly-mode-finds-nan first_nonfinite
# `detect_anomaly` finds the first NaN.
#
# Only one that a function of backward returns. It says nothing of a NaN in forward that gets no gradient, and nothing of infinities.
import torch

x = torch.tensor([-1.0, 0.0], requires_grad=True)
with torch.autograd.set_detect_anomaly(True):
    hidden = x.detach().log()
    loss = (x * 2).sum() + hidden.nan_to_num(0.0, neginf=0.0).sum()
    loss.backward()
print(hidden.tolist(), x.grad.tolist())

# %% first-batch-is-enough dead_units
# One large batch shows which units are dead.
#
# It shows which are silent on that batch. A unit that fires for one sample in a thousand is alive.
import torch

generator = torch.Generator().manual_seed(3)
weight = torch.randn(200, 20, generator=generator) / 20**0.5
bias = -2.0 + 0.3 * torch.randn(200, generator=generator)
fired = torch.randn(1000, 20, generator=generator) @ weight.T + bias > 0
print([int((~fired[:count].any(0)).sum()) for count in (32, 1000)])

# %% totals-tell-where-time-goes read_trace
# Sort the profiler's table by total time, and you see where the time goes.
#
# Totals of parents contain their children's, so they sum to more than the run. Own times sum to just the run.
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, record_function

model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
with profile(activities=[ProfilerActivity.CPU]) as prof, record_function("step"):
    model(torch.ones(3, 4)).sum().backward()
rows = prof.key_averages()
(step,) = (row.cpu_time_total for row in rows if row.key == "step")
print(sum(row.cpu_time_total for row in rows) > 1.01 * step)
print(abs(sum(row.self_cpu_time_total for row in rows) / step - 1) < 0.001)

# %% a-hook-is-harmless recorder
# A hook that does nothing changes nothing.
#
# A backward hook on a module puts a node of its own into the graph. The output is a view of it then, and may not be written to in place.
import torch
from torch import nn

model = nn.Linear(2, 2)
before = type(model(torch.ones(1, 2)).grad_fn).__name__
model.register_full_backward_hook(lambda module, gradients, more: None)
output = model(torch.ones(1, 2))
print(before, type(output.grad_fn).__name__)
try:
    output.add_(1)
except RuntimeError as error:
    print(type(error).__name__)

# %% one-call-one-hook recorder
# A forward hook is called once in a training step.
#
# In a checkpointed block it is called again during backward, up to the last layer that something was saved for. What it counts there, it counts twice.
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

block, calls = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2)), []
block[1].register_forward_hook(lambda *_: calls.append(1))
checkpoint(block, torch.ones(1, 2), use_reentrant=False).sum().backward()
print(len(calls))

# %% a-scalar-keeps-its-digits EventWriter
# TensorBoard keeps the numbers that I log.
#
# As four bytes each. A count of samples beyond 16777216 is rounded, and 0.1 comes back as another number.
import struct

for number in (16777217, 0.1):
    print(number, struct.unpack("<f", struct.pack("<f", number))[0])

# %% json-has-nan Tracer
# `json.dump` writes JSON.
#
# Of NaN it makes a word that JSON does not have. Perfetto and browsers refuse the file. `allow_nan=False` raises instead.
import json

print(json.dumps({"loss": float("nan")}))
try:
    json.dumps({"loss": float("nan")}, allow_nan=False)
except ValueError as error:
    print(type(error).__name__)
