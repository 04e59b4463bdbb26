# Watching training: questions, answers, and programs that show it.

# %% gpu-timing-without-synchronize
# Why is my GPU timing wrong without torch.cuda.synchronize()?
#
# Because the call returns before the work is done. Python puts kernels into a queue, and the GPU takes them out. A clock read right after the call measures how fast Python can hand over. What is left of the work is then charged to whatever reads a value next: `item()`, `print`, `.cpu()`.
#
# Read the clock when the queue is empty: `torch.cuda.synchronize()` before the first and before the second reading. Or record `torch.cuda.Event(enable_timing=True)` on both sides: events are in the queue themselves and stop nothing. `torch.utils.benchmark.Timer` does the waiting and the warm-up for you.
#
# Leave out the first steps. They load libraries and allocate.
#
# The program has no GPU: a thread with a queue stands for it.
#
# Go on: ch11_watching#throughput, ch11_watching#what-a-look-costs
import time
from concurrent.futures import ThreadPoolExecutor

queue = ThreadPoolExecutor(max_workers=1)


def kernel():
    time.sleep(0.1)


begin = time.perf_counter()
work = [queue.submit(kernel) for _ in range(3)]
handed_over = time.perf_counter() - begin
work[-1].result()  # what synchronize does: wait for the last one
finished = time.perf_counter() - begin
print(
    "handed over in less than a tenth of the time:", handed_over < finished / 10
)
print("finished after the work was done:", finished > 0.3)

# %% do-forward-hooks-leak-memory
# Do forward hooks leak memory?
#
# A hook does not. What it keeps does. `outputs.append(output)` keeps the activation and all of the graph behind it, for each call. `output.detach()` lets go of the graph and keeps every byte, since it shares the storage. A statistic, taken at once, is a few bytes: `output.detach().std()`.
#
# Hooks also stay. `register_forward_hook` returns a handle, and the hook runs until `handle.remove()`. A notebook cell that is run three times has registered three hooks. Put `remove` into a `finally` or an `ExitStack`, so that an exception takes them off, too.
#
# And a hook that returns something replaces the module's output.
#
# Go on: ch11_watching#ActivationStats, ch11_watching#a-hook-that-keeps
import torch
from torch import nn

layer = nn.Linear(32, 64)
for text, keep in {
    "output": lambda output: output,
    "output.detach()": lambda output: output.detach(),
    "output.detach().std()": lambda output: output.detach().std(),
}.items():
    kept = []

    def look(module, inputs, output):
        kept.append(keep(output))

    handle = layer.register_forward_hook(look)
    layer(torch.ones(16, 32))
    handle.remove()
    one = kept[0]
    print(
        f"{text:22}",
        one.untyped_storage().nbytes(),
        "bytes, a graph:",
        one.grad_fn is not None,
    )
print("hooks left:", len(layer._forward_hooks))

# %% tensorboard-event-file-format
# What is the format of a TensorBoard event file?
#
# A row of records, as in TFRecord: eight bytes of length, four bytes of checksum over the length, the data, four bytes of checksum over the data, all little-endian. The checksum is CRC-32C, Castagnoli's polynomial and not zlib's, then masked: rotated right by 15 bits, plus `0xA282EAD8`.
#
# The data of each record are one `Event` in protocol buffers: field 1 `wall_time` (double), 2 `step` (varint), 5 `summary`, which holds values with a tag and a `simple_value` (float32). The first record has `file_version`, `brain.Event:2`.
#
# The name must contain `tfevents`. Files of a folder are read in the order of their names. A run that goes on writes an event with `SessionLog(START)`, which makes later steps of earlier files void: `purge_step`.
#
# Go on: ch11_watching#record, ch11_watching#EventWriter, ch11_watching#read_events
import struct

# SummaryWriter's add_scalar("loss", 1.5, 3)
written = bytes.fromhex(
    "1a00000000000000"
    "129bd82d"
    "09e7f0c73596c1da4110032a0d0a0b0a046c6f7373150000c03f"
    "0d4b57db"
)


def masked_crc(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


(size, crc_of_size) = struct.unpack_from("<QI", written)
data, (crc,) = (
    written[12 : 12 + size],
    struct.unpack_from("<I", written, 12 + size),
)
print(
    "length:",
    size,
    "checksums:",
    crc_of_size == masked_crc(written[:8]),
    crc == masked_crc(data),
)
print(
    "step:",
    data[10],
    "tag:",
    data[17:21],
    "value:",
    *struct.unpack("<f", data[-4:]),
)

# %% is-loss-item-slow
# Is loss.item() slow? Should I call it at every step?
#
# The copy of four bytes is nothing. The wait is what costs: on a GPU, `item()` returns when all work that was handed over before is done, and until then Python hands over nothing new. `print(loss)`, `float(loss)`, `tolist()` and `if loss > 3:` wait as well. On a CPU there is nothing to wait for.
#
# The usual remedy is worse: `total += loss` without `item()` keeps the graph of every step. Add up a detached tensor, and read it every hundred steps: `total += loss.detach()`. Several values are one read if you stack them first.
#
# Go on: ch11_watching#Meter, ch11_watching#predict_disturbance, myths#a-mode-sees-every-read
import torch

weight = torch.ones((), requires_grad=True)
with_graph, detached = torch.zeros(()), torch.zeros(())
for step in range(100):
    loss = weight * 2
    with_graph = with_graph + loss
    detached = detached + loss.detach()

depth, node = 0, with_graph.grad_fn
while node is not None:
    depth, node = depth + 1, node.next_functions[0][0]
print("nodes that total += loss keeps:", depth, "and more for each loss")
print("with detach:", detached.grad_fn)
print("two values, one read:", torch.stack([detached, detached / 100]).tolist())

# %% norm-before-or-after-clipping
# Does clip_grad_norm_ return the norm before or after clipping?
#
# Before. It is the length of all gradients laid end to end, so the norm of the norms and not their sum. Afterwards each gradient was multiplied by `max_norm / (norm + 1e-6)`, if that is below 1.
#
# With a `GradScaler`, call `scaler.unscale_(optimizer)` first. Otherwise the gradients are still multiplied by the scale: you log a norm that is thousands of times too large, and clip nearly everything away.
#
# A NaN in one gradient makes the norm NaN and then all gradients. `error_if_nonfinite=True` raises instead.
#
# Go on: ch11_watching#grad_norms, ch11_watching#which-norm, myths#clipping-tames-nan
import torch
from torch import nn

weight = nn.Parameter(torch.tensor([3.0, 4.0]))
optimizer = torch.optim.SGD([weight], lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
scaler.scale((weight**2).sum()).backward()
print("scaled:", weight.grad.norm().item())
scaler.unscale_(optimizer)
print("returned:", nn.utils.clip_grad_norm_([weight], max_norm=1.0).item())
print("afterwards:", f"{weight.grad.norm().item():.3f}")

# %% where-does-my-nan-come-from
# My loss is NaN. How do I find the operator that made it?
#
# Look for the first operator with no NaN among its arguments and one in its result. A `TorchDispatchMode` sees every operator, forward and backward. All later ones only hand it on.
#
# `torch.autograd.detect_anomaly()` answers less: it looks at what functions of backward return. It says nothing of a NaN in forward that gets no gradient, and nothing of infinities, from which many NaNs are made. Module hooks miss what happens between modules.
#
# Usual makers: `log` and `sqrt` below 0, `0 / 0`, `inf - inf`, a row of a softmax that is all masked. And of infinities: `log` at 0, `sqrt` at 0 in backward, half precision beyond 65504.
#
# Look: autograd/tensors#code=x = torch.tensor([100.], requires_grad=True);y = x.exp();z = 1 / y;loss = z.sum();loss.backward()&line=5 | The loss is 0. But `exp` has overflowed on the way, and in backward 0 times Infinity is a NaN.
#
# Go on: ch11_watching#first_nonfinite, myths#anomaly-mode-finds-nan
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


def bad(values):
    return any(
        bool(x.isnan().any())
        for x in tree_leaves(values)
        if isinstance(x, torch.Tensor)
    )


class Look(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        before = bad((args, kwargs))
        result = func(*args, **(kwargs or {}))
        if bad(result):
            print(func, "hands it on" if before else "makes it")
        return result


x = torch.tensor([1.0, 0.0])
with Look():
    loss = (x / x).log().sum()
print("loss:", loss.item())

# %% self-cpu-or-cpu-total
# What is the difference between "Self CPU" and "CPU total" in the profiler?
#
# *CPU total* is how long calls of this name took, with everything that they called. *Self CPU* is that without the time of their children. `aten::linear` has a large total and a small self time: `aten::addmm` inside it does the work.
#
# To see where time goes, sort by self time. Self times add up to the whole; totals add up to more, since a parent contains its children. `prof.key_averages().table(sort_by="self_cpu_time_total")`.
#
# For work on a GPU look at the device's columns: the CPU's times are those of handing over.
#
# Go on: ch11_watching#read_trace, myths#totals-tell-where-time-goes
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, record_function

model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
with (
    profile(activities=[ProfilerActivity.CPU]) as prof,
    record_function("step"),
):
    model(torch.ones(3, 4)).sum().backward()
rows = prof.key_averages()
(step,) = (row.cpu_time_total for row in rows if row.key == "step")
print(
    "totals add up to more:",
    sum(row.cpu_time_total for row in rows) > 1.01 * step,
)
print(
    "self times to the whole:",
    abs(sum(row.self_cpu_time_total for row in rows) / step - 1) < 0.001,
)

# %% logging-changes-my-results
# Why do my results change when I add logging or validation?
#
# Something in it is not only looking. The usual ones: it draws random numbers (`randperm` for a sample, a second `DataLoader` with `shuffle=True`), so dropout and shuffling get others from there on. It calls the model in training mode, which moves batch norm's running statistics; `no_grad` does not prevent that. It leaves the model in `eval()`. It writes in place into a detached tensor, which shares its memory with the original.
#
# Give what draws a generator of its own, evaluate in eval mode, put back each module's mode. Then compare two runs bit by bit: with a fixed seed on a CPU they are equal.
#
# Go on: ch11_watching#the-observers-contract, ch11_watching#predict_disturbance, myths#looking-draws-nothing
import torch
from torch import nn


def trained(look):
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 1)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        loss = model(torch.randn(16, 4)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        look(model, loss)
        optimizer.step()
    return list(model.state_dict().values())


def same(look):
    return all(
        map(torch.equal, trained(look), trained(lambda model, loss: None))
    )


own, probe = torch.Generator(), torch.ones(2, 4)
print("print:", same(lambda model, loss: str(loss)))
print("a random sample:", same(lambda model, loss: torch.randperm(8)))
print(
    "with its own generator:",
    same(lambda model, loss: torch.randperm(8, generator=own)),
)
print(
    "a forward pass without grad:",
    same(torch.no_grad()(lambda model, loss: model[:2](probe))),
)
