# Gradients: questions, answers, and programs that show them.

# %% what-is-a-leaf
# What is a leaf tensor?
#
# A tensor that has no `grad_fn`: autograd did not compute it from others. You made it, as `torch.tensor` or `nn.Parameter` does, or nothing in its computation required grad.
#
# Gradients flow backwards to the leaves. A leaf that requires grad adds up what arrives in its `grad`. Other tensors hand theirs on and keep nothing, unless you call `retain_grad()`.
#
# The usual surprise is that `torch.ones(2, requires_grad=True).double()`, or a copy of it on another device, is a result and no leaf: its `grad` stays None, and an optimizer refuses it. Make the tensor where and in what dtype it should live, and call `requires_grad_()` last. `detach()` gives a leaf over the same memory.
#
# Look: autograd/graph#code=w = torch.tensor([1., 2.], requires_grad=True);y = w * 2;loss = y.sum();loss.backward() | Backward ends at the leaf w. There the gradient is kept; y has none.
#
# Go on: ch05_autograd#predict_flags, ch05_autograd#graph_report
import warnings

import torch

warnings.simplefilter("ignore")  # reading .grad of a result warns
w = torch.ones(2, requires_grad=True)
tensors = {
    "w": w,
    "w * 2": w * 2,
    "w.double()": w.double(),
    "w.to(meta)": w.to("meta"),
    "w.detach()": w.detach(),
    "a + b": torch.ones(2) + torch.ones(2),
}
for name, t in tensors.items():
    made = type(t.grad_fn).__name__ if t.grad_fn else "none"
    print(f"{name:10} is a leaf: {t.is_leaf!s:5} grad_fn: {made}")
for _ in range(2):
    y, z = w * 2, w.double()
    y.retain_grad()
    (y.sum() + z.sum()).backward()
print("kept by w:", w.grad, "by y:", y.grad, "by z:", z.grad)
print("detach shares:", w.detach().data_ptr() == w.data_ptr())
try:
    torch.optim.SGD([z], lr=0.1)
except ValueError as error:
    print(error)

# %% backward-a-second-time
# Why "Trying to backward through the graph a second time", and do I need retain_graph?
#
# `backward` frees the tensors that the graph saved, once it has used them. A second pass over the same nodes finds them gone.
#
# Most often nobody wants the second pass: something from the last iteration is still in the graph. A hidden state, a running loss, a target made with gradients. Cut it with `detach()`. With `retain_graph=True` the error goes away, and every step walks back through all steps before.
#
# You need `retain_graph=True` where two losses share a graph and you call `backward` on each. Cheaper: add them and call it once.
#
# Only nodes that saved something complain. A graph of sums can be walked twice.
#
# Look: autograd/graph#code=x = torch.tensor([1., 2.], requires_grad=True);y = x.exp();loss = y.sum();loss.backward();loss.backward() | After the first backward what exp had saved is freed, and the second raises.
#
# Go on: ch05_autograd#graph_report, ch05_autograd#route
import torch

w = torch.tensor(2.0, requires_grad=True)
state = torch.tensor(1.0)
try:
    for step in range(2):
        state = state * w
        state.backward()
except RuntimeError as error:
    print(f"step {step}:", str(error).partition(" (")[0])

w.grad, state = None, torch.tensor(1.0)
for step in range(2):
    state = state.detach() * w  # the last step's result, without its history
    state.backward()
print(w.grad.item())

(w + 1).backward()
y = w + 1
y.backward(), y.backward()
print("a sum saves nothing, so it can be walked twice")

# %% modified-by-an-inplace-operation
# Why "one of the variables needed for gradient computation has been modified by an inplace operation"?
#
# A node saved a tensor for `backward`, and you changed that tensor in between. Each tensor counts its changes; the node compares the count with what it was when it saved, and refuses to give a wrong gradient.
#
# The message names the shape and both versions. To find the line, run the forward pass under `torch.autograd.set_detect_anomaly(True)`: it prints the forward line of the operation that saved the tensor.
#
# Then change `x += 1` to `x = x + 1`, or edit a `clone`. What matters is what the node saved: `exp` keeps its result, `*` its inputs, `+` nothing. So the same edit is harmless after one operation and fatal after another.
#
# Look: autograd/graph#code=x = torch.tensor([1., 2.], requires_grad=True);y = x.exp();y.mul_(2);y.sum().backward() | exp saved its result at version 0; mul_ makes it version 1.
#
# Go on: ch05_autograd#watch_edits, ch05_autograd#mend-an-in-place-error, myths#data-is-detach
import torch

x = torch.ones(2, requires_grad=True)
for name, operation in [
    ("exp", torch.exp),
    ("sin", torch.sin),
    ("* 3", lambda x: x * 3),
]:
    y = operation(x)
    y += 1  # in place, after the node has saved what it needs
    try:
        y.sum().backward()
        print(name, "is fine: it did not save its result")
    except RuntimeError as error:
        print(name, str(error).partition("which ")[2].partition(". Hint")[0])

# %% leaf-used-in-an-inplace-operation
# Why "a leaf Variable that requires grad is being used in an in-place operation"?
#
# A leaf is a tensor that you made, not one that was computed; parameters are leaves. If an in-place change of it were recorded, it would be a result and no leaf any more, and its `grad` would have no place to go.
#
# Updating weights by hand is not meant to be recorded. So put the update under `torch.no_grad()`; that is what optimizers do. For first values take `torch.nn.init`, which does the same.
#
# `w = w - 0.1 * w.grad` does not raise and is worse: the name `w` now holds a new tensor, which is no leaf and gets no `grad`. The `.data` way works and hides mistakes from autograd.
#
# Look: autograd/tensors#code=w = torch.tensor([1., 2.], requires_grad=True);with torch.no_grad():;    w.mul_(0.5);loss = (w * w).sum();loss.backward() | Under no_grad the leaf stays a leaf, and its version counts the change.
#
# Go on: ch05_autograd#grad_mode, ch05_autograd#predict_flags
import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
(w * w).sum().backward()
try:
    w -= 0.1 * w.grad
except RuntimeError as error:
    print(error)
with torch.no_grad():
    w -= 0.1 * w.grad
print(w.is_leaf, w.tolist())
lost = w - 0.1 * w.grad
print(lost.is_leaf, lost.requires_grad)

# %% grad-is-none
# Why is .grad None after backward()?
#
# Four reasons. The tensor is no leaf: results keep no gradient unless you call `retain_grad()` on them before. It does not require grad. It is not part of what the loss was computed from. Or it was cut off on the way: `detach`, `item`, `.data`, NumPy, `argmax`, a comparison, a block under `no_grad`.
#
# The usual trap: `torch.ones(2, requires_grad=True).to(torch.float64)` or `.cuda()` gives a result and no leaf. Make the tensor where it should live, and call `requires_grad_()` last.
#
# To look, print `is_leaf`, `requires_grad` and `grad_fn`, from the loss backwards. The first tensor without a `grad_fn` is where the chain ends.
#
# Look: autograd/graph#code=x = torch.tensor([1., 2.], requires_grad=True);y = x * 2;z = y.detach() * x;z.sum().backward() | The gradient of x lacks the part through y: detach cut it off.
#
# Go on: ch05_autograd#predict_flags, ch05_autograd#route, myths#grad-everywhere
import warnings

import torch

warnings.simplefilter("ignore")  # reading .grad of a result warns
x = torch.ones(2, requires_grad=True)
moved = torch.ones(2, requires_grad=True).to(torch.float64)
y = x * 3
z = x * 5
z.retain_grad()
(y.sum() + z.sum() + moved.sum() + y.detach().sum()).backward()
for name, t in [("x", x), ("y", y), ("z, retain_grad", z), ("moved", moved)]:
    grad = None if t.grad is None else t.grad.tolist()
    print(f"{name:15} leaf: {t.is_leaf!s:6} grad: {grad}")

# %% does-not-require-grad
# Why "element 0 of tensors does not require grad and does not have a grad_fn"?
#
# You called `backward` on a tensor with no history. Nothing in its computation required grad, or the history was cut before the loss.
#
# Look for these, in this order: the forward pass ran under `no_grad` or `inference_mode`; all parameters are frozen; the loss was computed from `.item()`, `.data`, `.detach()` or NumPy; it went through something without a derivative, as `argmax`, `round().int()` or `==`; or a new tensor was made of results, `torch.tensor([a, b])`, where `torch.stack([a, b])` would keep the graph.
#
# Setting `loss.requires_grad_()` silences the error and trains nothing: the loss becomes a leaf of its own.
#
# Go on: ch05_autograd#predict_flags, ch05_autograd#grad_mode, myths#everything-is-differentiable
import warnings

import torch

warnings.simplefilter("ignore")
w = torch.tensor([1.0, 3.0], requires_grad=True)
a, b = w
losses = {
    "stack": torch.stack([a, b]).sum(),
    "tensor": torch.tensor([a, b]).sum(),
    "argmax": w.argmax().float(),
    "item": torch.tensor(w.sum().item()),
}
for name, loss in losses.items():
    try:
        loss.backward()
        print(f"{name:7}", w.grad.tolist())
    except RuntimeError as error:
        print(f"{name:7}", error)
loss = losses["item"].requires_grad_()
w.grad = None
loss.backward()
print("silenced:", w.grad)

# %% detach-or-no-grad-or-inference-mode
# detach, no_grad or inference_mode?
#
# `detach` cuts one tensor off, in the middle of a computation that is recorded: a target, a baseline, a hidden state between chunks. Everything else stays in the graph.
#
# `no_grad` records nothing in a block: evaluation, weight updates. What comes out are ordinary tensors, which you may use in training later.
#
# `inference_mode` is `no_grad` and gives up version counters and view tracking, too. It is a little cheaper for many small operations. Its results may not be saved for a later backward: that raises. Take it for serving, where nothing goes back into training.
#
# None of them turns off dropout or the updates of BatchNorm. `model.eval()` does that.
#
# Look: autograd/tensors#code=w = torch.tensor([1., 2.], requires_grad=True);with torch.inference_mode():;    f = torch.ones(2);y = f * w | A tensor of inference mode cannot be saved for backward.
#
# Go on: ch05_autograd#evaluating, ch05_autograd#route, ch05_autograd#tensors-of-inference-mode-used-again, myths#inference-mode-is-faster-no-grad
import torch

w = torch.ones(2, requires_grad=True)
with torch.no_grad():
    a = w * 2
with torch.inference_mode():
    b = w * 2
c = (w * 2).detach()
for name, t in [("no_grad", a), ("inference_mode", b), ("detach", c)]:
    try:
        (t * w).sum().backward()
        print(f"{name:15} may be used in training")
    except RuntimeError as error:
        print(f"{name:15} {error}".partition(".")[0])
print(torch.nn.Dropout(0.5)(torch.ones(4)).requires_grad)

# %% zero-grad-set-to-none
# zero_grad: what does set_to_none=True change?
#
# It is the default. Gradients become `None` instead of tensors of zeros. That saves the memory between steps and one pass over it, and `backward` then stores the first gradient instead of adding to zeros.
#
# There is one difference in the results. An optimizer passes over parameters whose `grad` is `None`. With zeros it takes a step: weight decay shrinks such a parameter, momentum and Adam keep moving it. So a branch that was not used in a step stands still with `None` and drifts with zeros.
#
# Code that reads `p.grad` right after `zero_grad()` has to expect `None`.
#
# Go on: ch05_autograd#train_step, ch05_autograd#evaluating
import torch

for to_none in (True, False):
    used, unused = (torch.nn.Parameter(torch.ones(1)) for _ in range(2))
    optimizer = torch.optim.SGD([used, unused], lr=0.1, weight_decay=0.1)
    (used + unused).sum().backward()  # step 1 uses both
    optimizer.step()
    before = unused.item()
    optimizer.zero_grad(set_to_none=to_none)
    used.sum().backward()  # step 2 uses one
    optimizer.step()
    moved = unused.item() - before
    print(f"set_to_none={to_none}: grad {unused.grad}, moved by {moved:.4f}")

# %% memory-grows-every-iteration
# Why does memory grow with every iteration?
#
# Something keeps the graphs alive. `total_loss += loss` adds a tensor to a tensor: the sum points to every loss, each loss to its graph, each graph to the activations that it saved. The same with a list of losses or outputs for logging.
#
# Keep numbers: `total_loss += loss.item()`. To avoid waiting for a GPU in each step, keep `loss.detach()` and call `.item()` at the end.
#
# After `backward()` saved tensors are freed, and only the nodes pile up. In evaluation without `no_grad` there is no `backward`, so everything stays.
#
# Look: autograd/graph#code=w = torch.tensor([1., 2.], requires_grad=True);total = 0;loss = (w * w).sum();total += loss;loss = (w * w).sum();total += loss | The sum leads to both graphs, and to what they saved.
#
# Go on: ch05_autograd#train_step, ch05_autograd#evaluating, myths#summing-losses
import weakref

import torch


class Saved:
    def __init__(self, tensor):
        self.tensor = tensor


def kept_after_five_steps(keep):
    w, total, alive = torch.ones(1000, requires_grad=True), 0, weakref.WeakSet()

    def pack(tensor):
        saved = Saved(tensor.detach())
        alive.add(saved)
        return saved

    with torch.autograd.graph.saved_tensors_hooks(
        pack, lambda saved: saved.tensor
    ):
        for _ in range(5):
            total += keep((w * 2).exp().sum())
    return len(alive)


print("loss:         ", kept_after_five_steps(lambda loss: loss))
print("loss.detach():", kept_after_five_steps(lambda loss: loss.detach()))
print("loss.item():  ", kept_after_five_steps(lambda loss: loss.item()))

# %% gradient-accumulation
# How do I accumulate gradients over several small batches?
#
# Call `backward` on each piece and `step` once: gradients add up in `.grad` until somebody clears them. Divide each piece's loss, so that the sum is the gradient of the whole batch's mean.
#
# Divide by the number of pieces only if all have equally many samples. Otherwise weigh each piece by its samples, or for language models by its tokens: the mean of means is another number. An uneven last batch is where this goes wrong.
#
# It saves activations' memory, and no time. BatchNorm still sees the small batches. With DDP put all but the last piece under `no_sync()`.
#
# Go on: ch05_autograd#train_step, ch08_ddp#accumulate
import torch

x = torch.tensor([1.0, 2.0, 3.0, 10.0])
pieces = [x[:3], x[3:]]


def gradient(losses):
    w = torch.tensor(1.0, requires_grad=True)
    for loss in losses(w):
        loss.backward()
    return w.grad.item()


print("whole batch:      ", gradient(lambda w: [(w * x).mean()]))
print(
    "divided by pieces:",
    gradient(lambda w: [(w * p).mean() / len(pieces) for p in pieces]),
)
print(
    "by samples:       ",
    gradient(lambda w: [(w * p).sum() / len(x) for p in pieces]),
)

# %% implicitly-created-only-for-scalar-outputs
# What does "grad can be implicitly created only for scalar outputs" want?
#
# `backward` computes a vector times the Jacobian. For one number the vector is 1. For several outputs there is no natural choice, so you must give one, or make one number of them.
#
# Nearly always it is a missing reduction: a loss with `reduction="none"`, or a list of samples. Use `loss.mean()` or `loss.sum()`. The gradients differ by the factor n.
#
# `y.backward(torch.ones_like(y))` is the same as `y.sum().backward()`. Other weights give a weighted sum. It never gives one gradient for each output: for these use `torch.func.jacrev`, or `vmap` over `grad`.
#
# Go on: ch05_autograd#gradients, ch05_autograd#cross_entropy
import torch

x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = x * x
try:
    y.backward()
except RuntimeError as error:
    print(error)
for name, scalar in [("sum", y.sum()), ("mean", y.mean())]:
    print(name, torch.autograd.grad(scalar, x, retain_graph=True)[0].tolist())
print(
    "ones",
    torch.autograd.grad(y, x, torch.ones(3), retain_graph=True)[0].tolist(),
)
print(
    "one output",
    torch.autograd.grad(y, x, torch.tensor([0.0, 1.0, 0.0]))[0].tolist(),
)

# %% where-gives-nan-gradients
# Why does torch.where give NaN gradients?
#
# `where` chooses values, and both branches were computed for all elements. In backward the branch that was not chosen gets the gradient 0, and passes it on: 0 times an infinite derivative is NaN.
#
# `torch.where(x > 0, x.sqrt(), 0)` has this at x = 0: the derivative of `sqrt` there is infinite. The same with `log` at 0, `x / 0`, or a norm of zeros.
#
# The cure is to make the input harmless before the operation, not to choose afterwards: a `where` inside as well, or `clamp` with a smallest value. `torch.autograd.set_detect_anomaly(True)` names the operation where the first NaN arose.
#
# Go on: ch05_autograd#gradients-under-a-condition, ch05_autograd#entropy-and-a-gradient-that-is-nan
import torch


def gradient(f):
    x = torch.tensor([0.0, 4.0], requires_grad=True)
    f(x).sum().backward()
    return x.grad.tolist()


zero = torch.tensor(0.0)
print("choose after: ", gradient(lambda x: torch.where(x > 0, x.sqrt(), zero)))
harmless = gradient(
    lambda x: torch.where(x > 0, torch.where(x > 0, x, 1.0).sqrt(), zero)
)
print("choose before:", harmless)

# %% activation-checkpointing
# What does activation checkpointing save, and what does it cost?
#
# `torch.utils.checkpoint.checkpoint(f, x)` keeps the input of `f` and forgets what its operations saved. In backward it runs `f` again and has them for a moment. Memory falls from all activations to those at the borders, plus one segment's; time grows by about one more forward pass of what is wrapped.
#
# Parameters, gradients and optimizer states do not shrink. So it helps where activations dominate: long sequences, large batches, deep networks.
#
# Give `use_reentrant=False`. It works with inputs that require no grad, with nested structures and with `torch.autograd.grad`. Random numbers come out the same in both runs: the state is kept and set again.
#
# Go on: ch05_autograd#checkpoint, ch05_autograd#save-some-recompute-the-rest, myths#checkpoint-needs-dummies
import torch
from torch.utils.checkpoint import checkpoint

calls = 0


def block(x):
    global calls
    calls += 1
    for _ in range(8):
        x = x.exp().sin()
    return x


def saved_bytes(run):
    seen = {}

    def pack(t):
        seen[t.untyped_storage().data_ptr()] = t.untyped_storage().nbytes()
        return t

    x = torch.ones(1000, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        y = run(x)
    kept = sum(seen.values())
    y.sum().backward()
    return kept


print("plain:     ", saved_bytes(block), "bytes,", calls, "run")
calls = 0
kept = saved_bytes(lambda x: checkpoint(block, x, use_reentrant=False))
print("checkpoint:", kept, "bytes,", calls, "runs")

# %% freeze-layers
# How do I freeze layers: requires_grad=False, detach, or leave them out of the optimizer?
#
# `layer.requires_grad_(False)` is what you mean most of the time: no gradients for its weights, while gradients still flow through it to earlier layers. Earlier layers that are trained keep training.
#
# `layer(x).detach()` cuts everything before it, too. That saves more, and is right only if all that comes before is frozen.
#
# Leaving the weights out of the optimizer freezes them and still pays for their gradients, which pile up in `.grad`.
#
# BatchNorm has more than weights: its running statistics move in every forward pass in training mode. Call `eval()` on frozen norms, after each `model.train()`.
#
# Go on: ch05_autograd#route, ch05_autograd#evaluating, myths#freeze-by-detach
import torch
from torch import nn

x = torch.ones(2, 3)


def trained(freeze):
    first, second = nn.Linear(3, 3), nn.Linear(3, 3)
    freeze(first, second, x).sum().backward()
    return [layer.weight.grad is not None for layer in (first, second)]


print("nothing frozen: ", trained(lambda a, b, x: b(a(x))))
print(
    "second, by flag:", trained(lambda a, b, x: b.requires_grad_(False)(a(x)))
)
try:
    trained(lambda a, b, x: b(a(x)).detach())
except RuntimeError as error:
    print("second, detached:", error)
norm = nn.BatchNorm1d(3).requires_grad_(False)
norm(torch.arange(6.0).reshape(2, 3))
print(
    "a frozen norm's running mean:",
    [round(m, 2) for m in norm.running_mean.tolist()],
)
