# torch.compile: questions, answers, and programs that show them.

# %% why-does-my-graph-break
# Why does my graph break in torch.compile?
#
# Dynamo came to something that it cannot put into a graph: an `if` or `while` on a tensor's values, `.item()` or `.tolist()`, `print`, a call into a C extension. It compiles what came before, runs the offending part in Python, and begins again after it. Results stay right. Each break costs fusion across it, and a return to Python.
#
# To find them: `torch._dynamo.explain(f)(*inputs)` lists breaks with reason and line; `TORCH_LOGS=graph_breaks` prints them as they happen; `fullgraph=True` makes the first one an error.
#
# To mend: `torch.where` or `torch.cond` for the `if`, keep tensors instead of numbers, move printing out of the function.
#
# Look: compile/stages#program=branch&stage=python | An if on data: the function becomes two graphs with Python in between.
#
# Go on: ch07_compile#graph-breaks, ch07_compile#one_graph, myths#a-print-costs-nothing
import torch
import torch._dynamo


def branches(x):
    y = x.sin()
    if y.sum() > 0:
        return y * 2
    return y - 1


def chooses(x):
    y = x.sin()
    return torch.where(y.sum() > 0, y * 2, y - 1)


for f in (branches, chooses):
    found = torch._dynamo.explain(f)(torch.ones(3))
    lines = [reason.user_stack[-1].lineno for reason in found.break_reasons]
    print(f.__name__, "graphs:", found.graph_count, "breaks at line", lines)
try:
    torch.compile(branches, backend="eager", fullgraph=True)(torch.ones(3))
except torch._dynamo.exc.Unsupported as error:
    print("fullgraph:", str(error).splitlines()[0])

# %% why-does-it-recompile
# Why does torch.compile keep recompiling?
#
# A graph holds only under its guards: dtypes, shapes, strides, `requires_grad`, grad mode, and every Python value that the function read. If one fails at a call, the function is compiled again. After eight graphs (`recompile_limit`) there is a warning, and calls that fit none of them run in plain Python.
#
# The usual reasons: a Python number that changes each call, such as a step counter or a learning rate; a list that grows; sizes of many kinds; train and eval in turns; a new lambda or module each time. `TORCH_LOGS=recompiles` names the guard that failed.
#
# Pass what changes as a tensor. A plain int or float argument becomes a symbol after its second value. An int attribute of a module does not.
#
# Look: compile/stages#program=shapes&stage=python | A size that changes: compiled once for the size, then once for all sizes.
#
# Go on: ch07_compile#recompiles, ch07_compile#Steady, ch07_compile#what-a-guard-does-not-see, myths#each-shape-recompiles
import torch

compiled = 0


def backend(graph, inputs):
    global compiled
    compiled += 1
    return graph.forward


def count(make, calls):
    global compiled
    torch._dynamo.reset()
    compiled = 0
    f = torch.compile(make, backend=backend)
    for args in calls:
        f(*args)
    return compiled


class Stepping(torch.nn.Module):
    step = 0

    def forward(self, x):
        self.step += 1
        return x * self.step


x = torch.ones(4)
steps = (2, 3, 4, 5)
print(
    "a string that changes: ",
    count(lambda x, mode: x * len(mode), [(x, "a" * n) for n in steps]),
)
print("an int attribute:      ", count(Stepping(), [(x,) for n in steps]))
print(
    "an int argument:       ",
    count(lambda x, n: x * n, [(x, n) for n in steps]),
)
print(
    "a float argument:      ",
    count(lambda x, n: x * n, [(x, n / 10) for n in steps]),
)
print(
    "a tensor:              ",
    count(lambda x, n: x * n, [(x, torch.tensor(n)) for n in steps]),
)

# %% fullgraph
# What does fullgraph=True do?
#
# It turns a graph break into an error that names the reason and the line. Without it a break is silent: the function is cut into several graphs, and all you notice is less speed.
#
# Use it in tests and for what must be one graph: export, CUDA graphs, a custom backend. For a whole training script it is often too much; put it on the model, or on its blocks, and leave logging outside.
#
# It says nothing about recompilations. A function with `fullgraph=True` may still be compiled for every new dtype or size. For that there is `torch.compiler.set_stance("fail_on_recompile")`.
#
# Look: compile/stages#program=print&stage=python | A print in the middle: with fullgraph=True this would be an error.
#
# Go on: ch07_compile#graph-breaks, ch07_compile#one_graph
import torch


def noisy(x):
    y = x + 1
    print("", end="")
    return y * 2


graphs = []


def backend(graph, inputs):
    graphs.append(
        [
            node.target.__name__
            for node in graph.graph.nodes
            if node.op == "call_function"
        ]
    )
    return graph.forward


torch.compile(noisy, backend=backend)(torch.ones(2))
print("graphs:", graphs)
torch._dynamo.reset()  # else the two graphs are used again
try:
    torch.compile(noisy, backend=backend, fullgraph=True)(torch.ones(2))
except torch._dynamo.exc.Unsupported as error:
    print(str(error).splitlines()[0])

f = torch.compile(lambda x: x + 1, backend=backend, fullgraph=True)
f(torch.ones(2))
with torch.compiler.set_stance("fail_on_recompile"):
    try:
        f(torch.ones(2).double())
    except RuntimeError as error:
        print(type(error).__name__, "for another dtype")

# %% dynamic-shapes
# Do I need dynamic=True for changing shapes?
#
# Mostly not. By default the first size is compiled as a constant. When that dim has another size at a later call, it is compiled once more with a symbol in its place, and that serves all sizes. Two compilations, not one per size.
#
# `dynamic=True` starts with symbols, which saves the first of the two and may give slower kernels. `torch._dynamo.mark_dynamic(x, 0)` does so for one dim of one input, and raises if your code ties it to a number after all.
#
# Sizes 0 and 1 are special: each is compiled for itself, since broadcasting depends on it. So a last batch of one costs a compilation.
#
# `dynamic=False` never generalises, and compiles each size anew up to the limit.
#
# Look: compile/stages#program=shapes&stage=python | The same function at several sizes, with the guards of each compilation.
#
# Go on: ch07_compile#guards, ch07_compile#recompiles, myths#each-shape-recompiles
import torch


def compilations(dynamic, sizes):
    seen = []

    def backend(graph, inputs):
        seen.append(graph)
        return graph.forward

    torch._dynamo.reset()
    f = torch.compile(lambda x: x * 2, backend=backend, dynamic=dynamic)
    after = []
    for n in sizes:
        f(torch.ones(n, 3))
        after.append(len(seen))
    return after


sizes = (8, 16, 24, 32, 1)
print("sizes          ", *sizes)
for dynamic in (None, True, False):
    print(f"dynamic={dynamic!s:5}   ", *compilations(dynamic, sizes))

# %% first-call-is-slow
# Why is the first call of a compiled function so slow?
#
# `torch.compile(f)` compiles nothing. The first call does: Dynamo reads the bytecode, AOTAutograd traces forward and backward, Inductor generates kernels and calls a C++ or Triton compiler. Seconds to minutes. The same again whenever a guard fails, so warm up with the shapes and modes that you will use.
#
# A saved graph on disk shortens it: Inductor caches kernels and graphs between processes. Compiling the repeated block of a model, instead of the whole, compiles it once for all its copies: `for block in model.blocks: block.compile()`.
#
# Measure without the first calls, and on a GPU with `torch.cuda.synchronize()`. For a function that runs once it never pays.
#
# Look: compile/stages#program=mlp&stage=python | What the first call goes through, stage by stage.
#
# Go on: ch07_compile#eager-and-static-graphs, ch07_compile#where-to-look
import torch
from torch import nn

log = []


def backend(graph, inputs):
    log.append("compiled")
    return graph.forward


f = torch.compile(lambda x: x.sin() + 1, backend=backend)
log.append("wrapped")
for _ in range(2):
    f(torch.ones(2))
    log.append("called")
with torch.no_grad():
    f(torch.ones(2))
    log.append("called under no_grad")
f(torch.ones(2, dtype=torch.float64))
log.append("called with float64")
print(*log, sep=", ")

torch._dynamo.reset()
log.clear()


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        return x + self.linear(x).relu()


blocks = nn.Sequential(*[Block() for _ in range(6)])
for block in blocks:
    block.compile(backend=backend)
with torch.no_grad():
    blocks(torch.ones(1, 4))
print("six blocks of one kind:", log.count("compiled"), "compilation")

# %% orig-mod-in-state-dict
# Why do the keys of a compiled model begin with _orig_mod?
#
# `torch.compile(model)` returns a new module that holds yours as its part `_orig_mod`. So every name gets that prefix in `state_dict()` and `named_parameters()`, and a plain model does not load the checkpoint.
#
# Three ways out. Save the original: keep `model` and call `compiled = torch.compile(model)`; they share the parameters, so `model.state_dict()` is always up to date. Or compile in place with `model.compile()`, which adds no wrapper. Or take the prefix off: `name.removeprefix("_orig_mod.")`.
#
# The same wrapper is why `isinstance(compiled, MyModel)` is false. Attributes are passed through to the original.
#
# Go on: ch04_modules#load_state, ch04_modules#collect_state
import torch
from torch import nn

model = nn.Linear(2, 1)
compiled = torch.compile(model, backend="eager")
print(list(compiled.state_dict()), isinstance(compiled, nn.Linear))
print(compiled.weight is model.weight, list(model.state_dict()))
inplace = nn.Linear(2, 1)
inplace.compile(backend="eager")
print(list(inplace.state_dict()), isinstance(inplace, nn.Linear))

# %% compile-before-or-after-loading
# Must I compile again after load_state_dict or an optimizer step?
#
# No. Weights are inputs of the graph and not constants in it, so new values flow through: after training steps, `load_state_dict`, `w.copy_()`.
#
# A new *object* is another thing. A replaced layer or parameter, another dtype or device, a changed `requires_grad` fails a guard, and the next call compiles again, rightly. So load, convert and freeze first and save a compilation.
#
# `model.train()` and `model.eval()` each get their own graph, once.
#
# Some things are not guarded, because checking them at every call would cost: a hook that is added after compiling may not run.
#
# Go on: ch07_compile#what-a-guard-does-not-see, ch07_compile#recompiles, myths#hooks-after-compiling
import torch
from torch import nn

count = 0


def backend(graph, inputs):
    global count
    count += 1
    return graph.forward


model = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Dropout(0.0))
compiled = torch.compile(model, backend=backend)
x = torch.ones(1, 2)
compiled(x)
with torch.no_grad():
    model[0].weight.fill_(3.0)
print("new values: ", compiled(x).tolist(), "compiled", count)
model.load_state_dict({"0.weight": torch.full((2, 2), 5.0)})
print("loaded:     ", compiled(x).tolist(), "compiled", count)
model.eval()
compiled(x)
print("eval:       ", "compiled", count)
model.train()
compiled(x)
print("train again:", "compiled", count)
model[0].requires_grad_(False)
compiled(x)
print("frozen:     ", "compiled", count)

# %% item-in-compile
# Does .item() break the graph?
#
# Yes, by default: `.item()` needs a number, and at compile time there is none. So do `int(t)`, `float(t)`, `.tolist()` and `if t:`. `.shape` and `.size()` do not: sizes are known.
#
# Keep the tensor. `x * scale` takes a scalar tensor as well as a number, `torch.where` instead of `if`, `torch.clamp` instead of `min(…, t.item())`. Clipping gradients by `clip_grad_norm_` does so inside.
#
# Where a number must be, `torch._dynamo.config.capture_scalar_outputs = True` puts `.item()` into the graph as an unknown number. Code that then branches on it needs hints, such as `torch._check(n > 0)`.
#
# Go on: ch07_compile#one_graph, ch07_compile#graph-breaks
import torch
import torch._dynamo


def by_number(x, scale):
    return x.sin() * scale.item()


def by_tensor(x, scale):
    return x.sin() * scale


def by_shape(x, scale):
    return x.sin() / x.shape[0] * scale


args = torch.ones(3), torch.tensor(2.0)
for f in (by_number, by_tensor, by_shape):
    print(
        f.__name__, torch._dynamo.explain(f)(*args).graph_break_count, "breaks"
    )
with torch._dynamo.config.patch(capture_scalar_outputs=True):
    torch._dynamo.reset()
    print(
        "captured:",
        torch._dynamo.explain(by_number)(*args).graph_break_count,
        "breaks",
    )

# %% which-backend-is-wrong
# My compiled model gives wrong results or crashes: how do I find the cause?
#
# Take stages away. `backend="eager"` runs Dynamo alone and the graph in PyTorch. `"aot_eager"` adds AOTAutograd: functionalization and the backward graph. `"aot_eager_decomp_partition"` adds decompositions and the partitioner. `"inductor"`, the default, adds kernels. The first that fails is where to look.
#
# With `"eager"` failing, Dynamo or your code is at fault: a side effect, something no guard watches. With Inductor only, small differences are normal, since sums are taken in another order and intermediate 16-bit results are not rounded. Compare both with a run in `float64`.
#
# Random numbers: Inductor draws others than eager for the same seed.
#
# Look: compile/cut#program=dropout&stage=partition&cut=0.0 | Dropout computed twice by aot_eager: the second mask is another one.
#
# Go on: ch07_compile#where-to-look, ch07_compile#two-graphs-from-one, myths#the-partitioner-saves-memory
import torch


def f(x):
    return (x.sin() * x).sum()


x = torch.ones(3, requires_grad=True)
(expected,) = torch.autograd.grad(f(x), x)
for backend in ("eager", "aot_eager", "aot_eager_decomp_partition"):
    torch._dynamo.reset()
    (got,) = torch.autograd.grad(torch.compile(f, backend=backend)(x), x)
    torch.testing.assert_close(got, expected)
    print(f"{backend:27} agrees with plain PyTorch")

# %% trace-script-export-or-compile
# jit.trace, jit.script, export or compile?
#
# `torch.compile` makes Python faster and stays in Python: what it cannot take it runs as before, and guards see to it that a graph is used only where it holds. Take it for training and for serving from Python.
#
# `torch.export` gives one whole graph that runs without your source, or an error. Sizes are constants unless you say which are dynamic. Take it to leave Python: AOTInductor, ExecuTorch, ONNX.
#
# `jit.trace` and `jit.script` are deprecated. A trace records what ran for one input: an `if` on data is frozen without more than a warning, a loop is unrolled. Existing files still load.
#
# Look: compile/stages#program=branch&stage=python | What compile makes of an if on data.
#
# Go on: ch07_compile#export-the-graph-without-python, ch07_compile#eager-and-static-graphs, myths#traces-branch
import warnings

import torch

warnings.simplefilter("ignore")


class Absolute(torch.nn.Module):
    def forward(self, x):
        return x if x.sum() > 0 else -x


model, x = Absolute(), torch.ones(1)
print("jit.trace:", torch.jit.trace(model, x)(-x).item())
print("compile:  ", torch.compile(model, backend="eager")(-x).item())
try:
    torch.export.export(model, (x,))
except Exception as error:
    print("export:    refuses,", type(error).__name__)
