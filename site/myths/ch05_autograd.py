# Autograd: claims, what is true, and programs that show it.

# %% detach-copies route
# `detach()` gives a copy that one may change.
#
# It gives a view without a history. What you write into it is in the original, too.
x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = x * 2
y.detach()[0] = 10
print(y.tolist())

# %% data-is-detach watch_edits
# `.data` is the old name of `detach()`.
#
# Edits through `detach()` are counted, and backward refuses. Edits through `.data` are not, and the gradient is wrong in silence.
for edit in (lambda y: y.detach().mul_(10), lambda y: y.data.mul_(10)):
    x = torch.zeros(1, requires_grad=True)
    y = x.exp()
    edit(y)
    try:
        y.backward()
        print("gradient", x.grad.item(), "instead of 1.0")
    except RuntimeError as error:
        print(str(error).split(":")[0])

# %% clone-is-independent route
# `clone()` makes an independent tensor like the original.
#
# Independent memory, but a node in the graph: gradients go through it, and it is no leaf.
x = torch.ones(3, requires_grad=True)
y = x.clone()
y.sum().backward()
print(y.is_leaf, x.grad.tolist(), y.grad_fn.name())

# %% grad-everywhere predict_flags
# After `backward`, every tensor that requires grad has a `.grad`.
#
# Every leaf that the result depends on. A tensor on the way keeps one only if `retain_grad()` asked for it.
x = torch.ones(2, requires_grad=True)
y = x * 2
z = y * 3
z.retain_grad()
z.sum().backward()
print(x.grad.tolist(), z.grad.tolist(), y.requires_grad, y.grad)

# %% no-grad-marks-all grad_mode
# Under `no_grad` nothing requires grad.
#
# No result of an operation. A tensor that is made there and told to, does; so do the parameters of a new layer.
from torch import nn

with torch.no_grad():
    made, layer = torch.zeros(1, requires_grad=True), nn.Linear(1, 1)
    result = layer(made)
print(made.requires_grad, layer.weight.requires_grad, result.requires_grad)

# %% eval-stops-gradients evaluating
# `model.eval()` turns gradients off.
#
# It changes what dropout and norms do. Gradients have a mode of their own.
from torch import nn

print(nn.Linear(1, 1).eval()(torch.ones(1)).requires_grad)

# %% no-grad-freezes-norms evaluating
# Under `no_grad` a model does not change.
#
# Running statistics are moved by training mode, whatever the grad mode.
from torch import nn

norm = nn.BatchNorm1d(1)
with torch.no_grad():
    norm(torch.tensor([[10.0], [10.0]]))
print(norm.running_mean.item())

# %% inference-mode-is-faster-no-grad evaluating
# `inference_mode` is `no_grad`, only faster.
#
# Its tensors stay inference tensors. They cannot be saved for a backward pass later.
with torch.inference_mode():
    features = torch.ones(2)
w = torch.ones(2, requires_grad=True)
try:
    features * w
except RuntimeError as error:
    print(str(error).split(".")[0])

# %% enable-grad-in-inference grad_mode
# `enable_grad` turns recording on again inside `inference_mode`.
#
# The mode says so, and nothing is recorded. `inference_mode(False)` does it.
with torch.inference_mode():
    with torch.enable_grad():
        print(torch.is_grad_enabled(), (torch.ones(1, requires_grad=True) * 2).requires_grad)
    with torch.inference_mode(False):
        print((torch.ones(1, requires_grad=True) * 2).requires_grad)


# %% set-grad-enabled-line grad_mode
# `torch.set_grad_enabled(False)` on a line of its own holds until the function ends.
#
# It holds until somebody sets it again, for everything in this thread.
def evaluate():
    torch.set_grad_enabled(False)


evaluate()
print(torch.is_grad_enabled())
torch.set_grad_enabled(True)


# %% no-grad-in-a-generator grad_mode
# A `with no_grad()` inside a generator stays inside.
#
# Between two values it holds for the caller. Decorate the generator instead.
def leaking():
    with torch.no_grad():
        yield 1
        yield 2


@torch.no_grad()
def tight():
    yield 1
    yield 2


for generator in (leaking(), tight()):
    next(generator)
    print(torch.is_grad_enabled())
    generator.close()

# %% require-grad predict_flags
# A misspelt `require_grad = True` would raise.
#
# As an argument it does. As an attribute it is a new one, and nothing is recorded.
x = torch.ones(1)
x.require_grad = True
print(x.requires_grad)
try:
    torch.ones(1, require_grad=True)
except TypeError as error:
    print(type(error).__name__)

# %% everything-is-differentiable predict_flags
# Autograd differentiates every operation.
#
# Comparisons, `argmax` and integers end the graph, without a word.
x = torch.ones(4, requires_grad=True)
print((x > 0).requires_grad, x.argmax().requires_grad, x.long().requires_grad)

# %% freeze-by-detach route
# To freeze a layer, set `requires_grad=False` or detach its output. It is the same.
#
# A frozen layer lets gradients through to those below. A detached output stops them all.
from torch import nn

for detach in (False, True):
    below, frozen, above = (nn.Linear(1, 1) for _ in range(3))
    frozen.requires_grad_(False)
    h = frozen(below(torch.ones(1)))
    above(h.detach() if detach else h).backward()
    print([layer.weight.grad is not None for layer in (below, frozen, above)])

# %% frozen-saves-nothing offloading
# A tensor that requires no grad is not kept for backward.
#
# It is kept where another's gradient needs it: in a product with a parameter, the data is what is saved.
x, w, saved = torch.ones(1000), torch.ones(1000, requires_grad=True), []
with torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t is x) or t, lambda t: t):
    x * w
print(saved)


# %% summing-losses train_step
# `total += loss` adds a number.
#
# It adds a node, and the graphs of all steps stay alive. Add `loss.item()`, or `loss.detach()`.
def nodes(node, seen):
    if node is not None and node not in seen:
        seen.add(node)
        for parent, _ in node.next_functions:
            nodes(parent, seen)
    return len(seen)


w, total = torch.ones(1, requires_grad=True), 0
for step in range(5):
    total += (w * w).sum()
    print(nodes(total.grad_fn, set()), end=" ")
print("nodes")

# %% a-tape graph_report
# PyTorch records a tape and plays it backwards.
#
# There is no one tape. Each result owns the nodes that made it, and when the result goes, they go.
import weakref


class Mark:
    pass


x = torch.ones(2, requires_grad=True)
y, z = x.sin(), x.cos()
mark = y.grad_fn.metadata["mark"] = Mark()
mark = weakref.ref(mark)
print(mark() is not None)
del y
print(mark() is not None, z.grad_fn.name())

# %% checkpoint-needs-dummies checkpoint
# A checkpoint needs a dummy input that requires grad.
#
# The old kind does, when tensors come in a tuple. `use_reentrant=False` sees what it uses.
from torch.utils.checkpoint import checkpoint

x = torch.ones(2, requires_grad=True)
for old in (True, False):
    y = checkpoint(lambda pair: pair[0] * 2, (x,), use_reentrant=old)
    print(old, y.requires_grad)

# %% modes-are-global grad_mode
# `no_grad` holds for the whole program.
#
# For this thread. Another begins with gradients on.
import threading

seen = []
with torch.no_grad():
    thread = threading.Thread(target=lambda: seen.append(torch.is_grad_enabled()))
    thread.start()
    thread.join()
print(seen)
