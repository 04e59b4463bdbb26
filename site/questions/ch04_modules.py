# Modules and checkpoints: questions, answers, and programs that show them.

# %% register-buffer
# register_buffer or Parameter or a plain attribute: what is the difference?
#
# A `Parameter` is trained: it is in `parameters()`, so the optimizer has it, and in the checkpoint. A buffer is state that is not trained: running means, masks, position tables. It moves with `model.to(...)`, and is saved unless you pass `persistent=False`. A plain tensor attribute does neither: it stays on the CPU when the model moves, and is missing in the checkpoint.
#
# Use `persistent=False` for what can be computed again. Then checkpoints stay small, and old ones load after you changed it.
#
# Assigning a tensor to a registered name keeps it a buffer. Assigning one to a new name makes a plain attribute, and nobody says so.
#
# Look: modules/walk#model=positions-Buffer-16-4*positions-unsaved*scale-Buffer*proj-Linear-4-4&call=state_dict | A buffer that is not saved: the walk for the checkpoint passes over it.
#
# Go on: ch04_modules#four-dictionaries, ch04_modules#collect_state, myths#buffers-are-saved
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))
        self.register_buffer("mean", torch.ones(1))
        self.register_buffer("table", torch.ones(1), persistent=False)
        self.plain = torch.ones(1)


model = Model().to(torch.float64)
for name in ("weight", "mean", "table", "plain"):
    trained = name in dict(model.named_parameters())
    saved, dtype = name in model.state_dict(), getattr(model, name).dtype
    print(f"{name:7} trained: {trained!s:6} saved: {saved!s:6} now {dtype}")

# %% modulelist-or-list
# Why must I use ModuleList and not a Python list?
#
# A module finds its parts when they are assigned as attributes: modules, parameters and buffers, each in a dict of its own. A Python list is none of these, so nobody looks into it. Its layers run in `forward`, and are missing everywhere else: `parameters()`, so they never train; `state_dict()`, so they are never saved; `to()` and `eval()`, so they stay behind.
#
# Nothing raises on a CPU. The loss even goes down, if other layers train. A telling sign: fewer parameters than you counted.
#
# The same for a dict (`nn.ModuleDict`), a list of tensors (`nn.ParameterList`), and a list inside a tuple inside an attribute.
#
# Look: modules/walk#model=stem-Linear-8-6*layers-list*layers.0-Linear-6-6*layers.1-Linear-6-6*head-Linear-6-2&call=named_parameters&at=layers | Two layers in a plain list: the walk over the parameters never comes there.
#
# Go on: ch04_modules#named_tensors, ch04_modules#named_modules, myths#a-list-of-layers
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, container):
        super().__init__()
        self.layers = container([nn.Linear(2, 2), nn.Linear(2, 2)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


for container in (list, nn.ModuleList):
    model = Model(container)
    count = sum(p.numel() for p in model.parameters())
    print(container.__name__, model(torch.ones(1, 2)).shape, count)
    print("  saved:", list(model.state_dict()))
    model.eval()
    print("  eval reached the layers:", not model.layers[0].training)

# %% what-does-model-eval-change
# What does model.eval() change?
#
# One flag, `training`, on the module and everything in it. Only modules that look at it behave differently: dropout lets everything through, BatchNorm uses its running statistics and stops updating them, attention and RNN layers skip their dropout.
#
# It does not turn off gradients. Evaluation wants both: `model.eval()` and `torch.no_grad()` (or `inference_mode`). One without the other either wastes memory or gives noisy numbers.
#
# Your own `F.dropout(x)` takes `training=True` as its default, whatever the model's mode: pass `training=self.training`. After validating, call `model.train()` again.
#
# Go on: ch04_modules#BatchNorm, ch05_autograd#evaluating, myths#eval-stops-gradients
import torch
from torch import nn
from torch.nn import functional as F

model = nn.Sequential(
    nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Dropout(0.5)
).eval()
norm = model[1]
before = norm.running_mean.clone()
x = torch.arange(300.0).reshape(100, 3)
y = model(x)
print("same answer twice:", torch.equal(y, model(x)))
print("statistics moved: ", not torch.equal(before, norm.running_mean))
print("still recorded:   ", y.requires_grad)
model.train()
with torch.no_grad():
    z = model(x)
print("no_grad, train:   ", "zeros from dropout:", bool((z == 0).any()))
print("statistics moved: ", not torch.equal(before, norm.running_mean))
model.eval()
print(
    "F.dropout in eval:",
    "zeros:",
    bool((F.dropout(torch.ones(1000)) == 0).any()),
)

# %% state-dict-strict
# load_state_dict: what does strict=False do?
#
# With `strict=True` the keys must be the same on both sides; else it raises and lists which are missing and which are unexpected. With `strict=False` it loads what both have, and returns the two lists. It does not raise, so look at them: with a wrong prefix everything is missing and nothing is loaded.
#
# It does not forgive shapes. A tensor of another size raises either way; take such keys out of the dict first.
#
# Do not use it to silence a message. A missing key is a layer with random weights. Assert what you expect: `assert result.missing_keys == ["head.weight"]`.
#
# Go on: ch04_modules#load_state, ch04_modules#collect_state
import torch
from torch import nn

trained = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 3)).state_dict()
model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 5))
try:
    model.load_state_dict(trained, strict=False)
except RuntimeError as error:
    print(str(error).splitlines()[1].strip().partition(" from")[0])
body = {name: t for name, t in trained.items() if not name.startswith("1.")}
print(model.load_state_dict(body, strict=False))
prefixed = {f"module.{name}": t for name, t in body.items()}
result = model.load_state_dict(prefixed, strict=False)
print(
    "loaded nothing:", len(result.missing_keys) == len(list(model.parameters()))
)

# %% save-model-or-state-dict
# Should I save the model or its state_dict?
#
# The `state_dict`: names and tensors, nothing else. You need the class to load it, and that is the point: code may move, be renamed and refactored, as long as the names of the parts stay.
#
# `torch.save(model)` pickles the object. It stores the path of its class and not its code, so a renamed file breaks it, and loading runs whatever the pickle says. `torch.load` therefore refuses by default (`weights_only=True`).
#
# Two traps. `state_dict()` gives the tensors themselves, no copies: a "best" kept in a variable trains on. Use `copy.deepcopy`. And to go on training save the optimizer's state, the scheduler's and the random state as well.
#
# Go on: ch04_modules#to-a-file-and-back, ch04_modules#load_state, myths#parameters-are-the-checkpoint
import copy
import io

import torch
from torch import nn

model = nn.Linear(2, 1, bias=False)
kept, copied = model.state_dict(), copy.deepcopy(model.state_dict())
with torch.no_grad():
    model.weight.fill_(7.0)
print("kept:  ", kept["weight"].tolist())
print("copied:", "7" if (copied["weight"] == 7).any() else "the old numbers")

for what in (model.state_dict(), model):
    file = io.BytesIO()
    torch.save(what, file)
    file.seek(0)
    try:
        print(type(what).__name__, "->", type(torch.load(file)).__name__)
    except Exception as error:
        print(type(what).__name__, "->", type(error).__name__)

# %% count-parameters
# How do I count the parameters of a model?
#
# `sum(p.numel() for p in model.parameters())`. It counts a tied weight once, since `parameters()` gives every object once, and leaves buffers out. With `if p.requires_grad` it counts those that train.
#
# Summing over `state_dict()` gives another number: it has tied weights under each of their names, and buffers, too.
#
# Bytes are `p.numel() * p.element_size()`. Training needs more: a gradient of the same size, and for Adam two moments, so 16 bytes for each `float32` parameter, and activations on top.
#
# Layers in a plain Python list are missing in all of these counts.
#
# Look: modules/walk#model=embed-Embedding-10-4*norm-LayerNorm-4*out-Linear-4-10*out.weight-is-embed.weight*out.bias-None-parameters&call=state_dict | Tied weights: one object, two keys in the checkpoint.
#
# Go on: ch04_modules#named_tensors, ch04_modules#collect_state, ch08_ddp#zero_ledger, myths#tied-once
import torch
from torch import nn

model = nn.Sequential(
    nn.Embedding(10, 4), nn.BatchNorm1d(4), nn.Linear(4, 10, bias=False)
)
model[2].weight = model[0].weight  # tied
model[1].requires_grad_(False)
print("parameters:", sum(p.numel() for p in model.parameters()))
print(
    "trained:   ", sum(p.numel() for p in model.parameters() if p.requires_grad)
)
print("state_dict:", sum(t.numel() for t in model.state_dict().values()))
print(
    "every name:",
    sum(p.numel() for _, p in model.named_parameters(remove_duplicate=False)),
)

# %% forward-or-call
# Why call model(x) and not model.forward(x)?
#
# `model(x)` runs the hooks around `forward`: forward hooks, pre-hooks, and what sets up backward hooks. Many tools are made of them: feature extraction, profilers, weight and spectral norm in their old form, FSDP, quantization. `model.forward(x)` goes around all of these, and gives the same numbers where nobody has hooked in. So it works until it does not.
#
# With `DistributedDataParallel`, `ddp.module(x)` is the same mistake: without the wrapper's call gradients are not averaged.
#
# Go on: ch04_modules#call_hooked, ch04_modules#hooks-and-when-each-is-called, myths#calling-forward
import torch
from torch import nn

layer = nn.Linear(2, 2, bias=False)
nn.init.eye_(layer.weight)
layer.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
layer.register_forward_hook(lambda module, args, output: output * 10)
x = torch.ones(2)
print("model(x):        ", layer(x).tolist())
print("model.forward(x):", layer.forward(x).tolist())

# %% intermediate-features
# How do I get the output of an intermediate layer?
#
# With a forward hook: `layer.register_forward_hook(f)` calls `f(module, args, output)` after each call of the layer. Keep what you need in a dict, and remove the hook by the handle that you got, or it stays for the life of the model.
#
# Three traps. Without `detach()` a stored output keeps the whole graph alive. With it you still share memory, so a following in-place layer (`nn.ReLU(inplace=True)`) changes what you stored: clone. A layer that is used twice calls the hook twice; append to a list.
#
# Do not cut models up with `nn.Sequential(*model.children())`: everything that `forward` does between the layers is lost.
#
# Go on: ch04_modules#recording, ch04_modules#hooks-and-when-each-is-called, myths#sequential-of-children
import torch
from torch import nn

model = nn.Sequential(nn.Linear(2, 2, bias=False), nn.ReLU(inplace=True))
nn.init.eye_(model[0].weight)
seen = {}
handles = [
    model[0].register_forward_hook(
        lambda m, args, out: seen.update(same=out.detach())
    ),
    model[0].register_forward_hook(
        lambda m, args, out: seen.update(cloned=out.detach().clone())
    ),
]
model(torch.tensor([-1.0, 1.0]))
for handle in handles:
    handle.remove()
print({name: t.tolist() for name, t in seen.items()})
seen.clear()
model(torch.ones(2))
print("after remove:", seen)

# %% optimizer-before-or-after-to
# Must I create the optimizer before or after model.to(device)?
#
# After is always safe. Before works as well in most cases: `model.to` changes the data of the parameter objects and keeps the objects, so an optimizer that holds them sees the change. The state it has gathered by then, Adam's moments, stays where it was.
#
# What breaks it is replacing parameters: a new head, a tied weight, `model = copy.deepcopy(model)`. The optimizer still holds the old objects and steps them, and the new ones never move. Nothing raises. So: build the model, load, replace, move; then make the optimizer.
#
# To look: is each parameter of the model, by `is`, in `optimizer.param_groups`?
#
# Go on: ch04_modules#parameter_groups, ch04_modules#replace_linears, myths#to-moves-everything
import torch
from torch import nn

model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def unknown_to_the_optimizer():
    held = {id(p) for group in optimizer.param_groups for p in group["params"]}
    return [name for name, p in model.named_parameters() if id(p) not in held]


model.to(torch.float64)
print("after to():      ", unknown_to_the_optimizer())
model[1] = nn.Linear(2, 3, dtype=torch.float64)
print("after a new head:", unknown_to_the_optimizer())
before = model[1].weight.clone()
model(torch.ones(1, 2, dtype=torch.float64)).sum().backward()
optimizer.step()
print("the head moved:  ", not torch.equal(before, model[1].weight))
