# Modules: claims, what is true, and programs that show it.

# %% children-lists-all named_modules
# `children()` lists every attribute that is a module.
#
# It lists each module once. A second name for the same layer does not appear.
from torch import nn

model = nn.Module()
model.act = nn.ReLU()
model.last_act = model.act
print([name for name, _ in model.named_children()], list(model._modules))

# %% modules-level-by-level named_modules
# `named_modules` goes level by level: first the direct children, then theirs.
#
# Depth first: a child's children come before its next sibling. And the first of all is the model itself, under an empty name.
from torch import nn

model = nn.Sequential(nn.Sequential(nn.ReLU(), nn.ReLU()), nn.Linear(1, 1))
print([name for name, _ in model.named_modules()])

# %% shared-modules-twice named_modules
# A shared module appears in `named_modules` once for each of its names.
#
# Once, under the first. `remove_duplicate=False` shows all.
from torch import nn

model = nn.Module()
model.first = model.second = nn.ReLU()
print([name for name, _ in model.named_modules()])
print([name for name, _ in model.named_modules(remove_duplicate=False)])

# %% a-list-of-layers named_tensors
# Layers in a Python list are trained like any others.
#
# `nn.Module` sees what is assigned to its attributes, not what is in a list there. The optimizer never hears of them.
from torch import nn

model = nn.Module()
model.layers = [nn.Linear(2, 2), nn.Linear(2, 2)]
print(len(list(model.parameters())))
model.layers = nn.ModuleList(model.layers)
print(len(list(model.parameters())))

# %% parameters-that-train named_tensors
# `parameters()` gives the parameters that are trained.
#
# All of them, the frozen ones too.
from torch import nn

layer = nn.Linear(2, 2)
layer.weight.requires_grad_(False)
print([p.requires_grad for p in layer.parameters()])

# %% names-without-dots parameter_groups
# `if name in ["bias"]` picks the biases out of `named_parameters`.
#
# In a model of several layers, names have their path before them. Nothing matches, nothing complains.
from torch import nn

model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
names = [name for name, _ in model.named_parameters()]
print([n for n in names if n in ["bias"]], [n for n in names if n.endswith(".bias")])

# %% buffers-are-saved collect_state
# Buffers are saved with the model.
#
# Those that are persistent.
from torch import nn

model = nn.Module()
model.register_buffer("kept", torch.ones(1))
model.register_buffer("dropped", torch.ones(1), persistent=False)
print([name for name, _ in model.named_buffers()], list(model.state_dict()))

# %% parameters-are-the-checkpoint collect_state
# To save a model, save its named parameters.
#
# Then the running statistics of its norms stay behind.
from torch import nn

norm = nn.BatchNorm1d(2)
print([name for name, _ in norm.named_parameters()])
print(list(norm.state_dict()))

# %% tied-once collect_state
# Tied weights have one key in a checkpoint.
#
# Two, which share memory. It is `parameters()` that gives them once.
from torch import nn

model = nn.Module()
model.a, model.b = nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False)
model.b.weight = model.a.weight
state = model.state_dict()
shared = state["a.weight"].data_ptr() == state["b.weight"].data_ptr()
print(len(list(model.parameters())), list(state), shared)

# %% to-moves-everything
# `model.to(...)` converts every tensor in the model.
#
# Parameters and buffers; a dtype, only those that are floating-point. A plain tensor attribute stays what and where it was.
from torch import nn

model = nn.Linear(2, 2)
model.register_buffer("mean", torch.ones(1))
model.register_buffer("steps", torch.tensor(1))
model.plain = torch.ones(1)
model.to(torch.float64)
print(model.weight.dtype, model.mean.dtype, model.steps.dtype, model.plain.dtype)

# %% eval-uses-modules named_modules
# `eval()` goes through `modules()`.
#
# It calls itself on each child. To override `modules()` changes nothing, to override `children()` does.
from torch import nn

for name in ("modules", "children"):
    Hidden = type("Hidden", (nn.Sequential,), {name: lambda self: iter(())})
    print(name, "overridden, still training:", Hidden(nn.Dropout()).eval()[0].training)

# %% linear-is-in-out MiniModule
# `nn.Linear(4, 3)` has a weight of shape (4, 3).
#
# (out, in): it multiplies by the transposed weight. A checkpoint of the other convention does not load; a square one does, and is wrong.
from torch import nn

print(tuple(nn.Linear(4, 3).weight.shape))

# %% sequential-of-children
# `nn.Sequential(*model.children())` is the model without its last layers' names.
#
# It is its layers in the order in which they were assigned. What `forward` does between them is gone.
from torch import nn


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.branch = nn.Linear(1, 1, bias=False)
        nn.init.constant_(self.branch.weight, 2.0)

    def forward(self, x):
        return x + self.branch(x)


model = Residual()
x = torch.ones(1)
print(model(x).item(), nn.Sequential(*model.children())(x).item())

# %% backward-hooks-change-outputs hooks-and-when-each-is-called
# A backward hook lets you change what a layer passes on.
#
# It sees and changes gradients. What goes forward has hooks of its own.
from torch import nn

layer = nn.Linear(2, 2)


def zeros(module, grad_in, grad_out):
    return (torch.zeros_like(grad_in[0]),)


layer.register_full_backward_hook(zeros)
x = torch.ones(1, 2, requires_grad=True)
layer(x).sum().backward()
print(x.grad.tolist(), layer.weight.grad.tolist())

# %% old-backward-hook hooks-and-when-each-is-called
# `register_backward_hook` shows the gradient of a module's input.
#
# It shows the inputs of the last node that the module recorded. `register_full_backward_hook` shows the module's.
from torch import nn


class Summed(nn.Module):
    def forward(self, x):
        return (x * 3).sum(1, keepdim=True) * 2


for old in (True, False):
    model, seen = Summed(), []
    name = "register_backward_hook" if old else "register_full_backward_hook"
    register = getattr(model, name)
    register(lambda module, grad_in, grad_out: seen.append(grad_in[0].shape))
    model(torch.ones(2, 4, requires_grad=True)).sum().backward()
    print(seen)

# %% edit-in-a-hook recording
# A forward hook may edit the output in place.
#
# If nothing saved it. A sigmoid saves its result for backward, and backward notices. Return a new tensor.
from torch import nn

layer = nn.Sigmoid()
layer.register_forward_hook(lambda module, args, output: output.mul_(2))
try:
    layer(torch.ones(2, requires_grad=True)).sum().backward()
except RuntimeError as error:
    print(str(error).split(":")[0])

# %% attention-weights-in-a-hook recording
# A forward hook on a transformer's attention sees the attention weights.
#
# The layer asks for none, and none are computed.
from torch import nn

layer, seen = nn.TransformerEncoderLayer(8, 2, batch_first=True), []
attention = layer.self_attn
attention.register_forward_hook(lambda module, args, out: seen.append(out[1]))
layer(torch.ones(1, 3, 8))
print(seen)

# %% calling-forward call_hooked
# `model.forward(x)` is `model(x)`.
#
# Without the hooks.
from torch import nn

layer = nn.Identity()
layer.register_forward_hook(lambda module, args, output: output + 1)
print(layer(torch.zeros(1)).item(), layer.forward(torch.zeros(1)).item())
