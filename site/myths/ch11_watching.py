# Watching: claims, what is true, and programs that show it.

# %% totals-tell-where-time-goes read_trace
# Sort the profiler's table by total time, and you see where the time goes.
#
# Totals of parents contain their children's, so they sum to more than the run. Own times sum to just the run.
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
