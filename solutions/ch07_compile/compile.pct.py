# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown] chapter="ch07_compile"
# title: Dynamo and AOTAutograd
# summary: >-
#   `torch.compile` reads your function's bytecode, writes the tensor operations down as a graph, and
#   keeps a list of conditions under which the graph may be used again. In this chapter you watch it
#   capture, make it capture more, and predict when it starts over. Then you write passes that change
#   graphs, split a graph into forward and backward, and decide what is saved between them.
# preload:
#   - torch._dynamo.dce_extra_outputs
#   - torch._export.db.logging
#   - torch._export.passes._node_metadata_hook
#   - torch._functorch._aot_autograd.subclass_codegen
#   - torch._higher_order_ops.cond
#   - torch._higher_order_ops.passes.inline_invoke_subgraph
#   - torch._inductor.compiler_bisector
#   - torch._inductor.constant_folding
#   - torch._inductor.fx_passes.dedupe_symint_uses
#   - torch._inductor.lowering
#   - torch._subclasses.schema_check_mode
#   - torch.distributed.tensor.experimental
#   - torch.export._trace
#   - torch.fx.experimental.proxy_tensor
#   - torch.fx.experimental.validator
#   - torch.fx.passes.dialect.common.cse_pass
#   - torch.testing._internal.optests
#   - functorch.compile
#   - graphlib
#   - multiprocessing.synchronize
#   - networkx
#   - sympy.tensor.tensor
# off limits:
#   partitioners:
#     says: "PyTorch's own min-cut partitioner"
#     rules: [functorch.compile.min_cut_rematerialization_partition, torch._functorch.partitioners.min_cut_rematerialization_partition]

# %% [markdown]
# ## How to work
#
# Each exercise has a card, a few cells to read and run, and one cell to write: the one that
# raises `NotImplementedError`. The cell after it grades what you wrote, as often as you like.
#
# Where a cell calls `predict(...)`, write your guess in place of the dots before you run it.
# Nobody grades a guess.

# %%
import itertools
import logging
import math
import operator
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from graphlib import CycleError, TopologicalSorter
from typing import Any

import networkx
import torch
import torch._dynamo
from functorch.compile import (
    aot_function,
    default_partition,
    make_boxed_func,
    min_cut_rematerialization_partition,
    nop,
)
from torch import fx, nn
from torch._functorch import config as functorch_config
from torch.fx.experimental.proxy_tensor import make_fx
from torch.overrides import TorchFunctionMode

from grader import grade, hint, predict, show_graph, solution, written

aten = torch.ops.aten

# Dynamo warns of some graph breaks and of the recompile limit. Here they are made on purpose.
logging.getLogger("torch._dynamo").setLevel(logging.ERROR)

# %% [markdown] sitting="capture"
# question: What does `torch.compile` see of your function?
# reached: >-
#   Tensor operations, as the nodes of a graph that a backend gets. Whatever needs a value in
#   Python breaks it, and most breaks can be written otherwise.

# %% [markdown]
# ## Eager and static graphs
#
# **Eager** PyTorch has no program to optimise. Each operation runs when Python reaches it, and
# nobody knows what comes next. Python decides, with its own `if` and `for`, anew in each call.
#
# A **static graph** is the list of operations, written down before they run. Somebody has to write
# it down, and that is the hard part: the program is in Python. In TensorFlow 1 you did it yourself, by calls
# that add nodes. The file of them, a *GraphDef*, knows nothing of the program that made it, and neither does
# an ONNX file. Over the years PyTorch has tried three other ways.
#
# **Trace**: run the function once on an example, and note the operations. `torch.jit.trace` does
# that. One reads that such a graph holds every branch of the program. It holds the one that the
# example took, and no `if`:


# %%
def two_ways(x):
    if x.sum() > 0:
        return x.sin()
    return x.cos()


with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # tracing warns of this very thing; and it is deprecated
    traced = torch.jit.trace(two_ways, torch.ones(2))

x = torch.tensor([-2.0, -3.0])
print("the function took cos:", torch.equal(two_ways(x), x.cos()))
print("the trace took sin:   ", torch.equal(traced(x), x.sin()))

# %% [markdown]
# Draw: show_cells({name: ["sin" if torch.equal(f(torch.tensor([value])),
# torch.tensor([value]).sin()) else "cos" for value in (-2.0, -1.0, 1.0, 2.0)] for name, f in
# (("the function", two_ways), ("its trace", traced))}, [f"x = {value}" for value in (-2, -1, 1,
# 2)]) | What each of them computes. The example was positive.
#
# **Read the source**: `torch.jit.script` compiles a subset of Python, with real branches and loops
# in its graph. Whatever is outside the subset is an error.

# %%
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    scripted = torch.jit.CompilationUnit(
        """
def steps(x, n: int):
    for i in range(n):
        if bool(x.sum() > 0):
            x = x - 1
    return x
"""
    )
    module = torch.jit.script(nn.Linear(2, 2))
    text = torch.jit.script(two_ways).code
print([kind for kind in ("prim::Loop", "prim::If") if kind in str(scripted.steps.graph)])
print("deprecated:", any(issubclass(one.category, DeprecationWarning) for one in caught))
print(text)

# %% [markdown]
# Both together are **TorchScript**. Such lines are what `torch.jit.save` writes beside the weights: a language of
# its own, which an interpreter in C++ runs without your source, without Python, and without its lock (the GIL).
# It is history: deprecated, and `torch.compile` refuses what it made.

# %%
try:
    torch.compile(module, backend="eager")(torch.ones(1, 2))
except RuntimeError as error:
    print(str(error).splitlines()[0])

# %% [markdown]
# **Watch the interpreter**: the third way is Dynamo, the front of `torch.compile`. CPython lets a
# C extension replace the evaluation of a frame (PEP 523; `torch/csrc/dynamo/eval_frame.c`). Dynamo
# takes the frame's bytecode and its real arguments, and executes the bytecode by its own interpreter
# (`torch/_dynamo/symbolic_convert.py`) on *fake* tensors, which have shapes and dtypes and no data.
# Tensor operations go into a graph. Everything else (loops, ifs on plain numbers, attribute look-ups,
# calls of your own functions) happens while Dynamo reads, and leaves no trace in the graph. Facts that
# it relied on become **guards**: conditions that are tested before the graph is used again.
#
# A graph goes to the **backend**: any function that takes a `GraphModule` and example inputs, and
# returns something that can be called in the graph's place. The smallest one prints, and hands back
# the graph as it is.


# %%
def print_graph(graph_module, example_inputs):
    print([f"{node.op}: {node.name}" for node in graph_module.graph.nodes])
    return graph_module


@torch.compile(backend=print_graph)
def unrolled(x, times):
    for _ in range(times):
        x = x + 1
    return torch.sin(x) + torch.sin(x)


result = unrolled(torch.zeros(2), 3)

# %% [markdown]
# The loop is gone: three additions. Your source is as it was, and nothing had to be imported:
# `torch.compile` is a function, not a module.
#
# Look at the two `sin` of the same value. It is said that Dynamo's graph is an optimised program.
# It is a faithful one. What makes programs faster is the backend's work, and the next stages'.
#
# Look: compile/stages#program=loop&stage=dynamo | A loop of three rounds, and the graph that Dynamo
# made of it: three products, no loop.
#
# To see what Dynamo makes of a program of yours, call what `torch.compile` returns in a file `f.py`, and run
# `undertorch capture f.py` in a terminal. It writes `f.capture.json`, and the explorer *compile* on the
# course's site opens it and shows lines, bytecode, graphs and guards.
#
# **Predict.** The graph is static: it has no `if`. `wave` is called four times, with the flags
# `True`, `True`, `False` and `True`. How many graphs does the backend get?

# %%
graphs = []


def keep(graph_module, example_inputs):
    graphs.append(graph_module)
    return graph_module


@torch.compile(backend=keep)
def wave(x, flag):
    return torch.sin(x) if flag else torch.cos(x)


def four_calls():
    for flag in [True, True, False, True]:
        wave(torch.ones(2), flag)
    return len(graphs)


predict(..., four_calls)

# %% [markdown]
# A graph per way through the function, each under guards: here on the flag. Nothing adjusts a graph
# while it runs.

# %% [markdown] exercise="count_ops"
# title: Write a backend that counts
# minutes: 25
# difficulty: 2
# points: 6
# short: true
# prerequisites: []
# teaches: >-
#   what a backend is given and must give back, how a graph's nodes name their operations, and where
#   compiled code is kept.
# leaves out: what happens to a graph after Dynamo.
# off limits: []

# %% [markdown]
# A graph is a list of nodes. `node.op` says what kind of node it is. Dynamo's graphs have five kinds:
#
# | `node.op` | stands for | `node.target` |
# |---|---|---|
# | `placeholder` | an input of the graph | its name |
# | `get_attr` | something that the graph holds | its name |
# | `call_function` | `torch.sin(x)`, `x + 1` | the function |
# | `call_method` | `x.cos()` | the method's name |
# | `output` | what the graph returns | `"output"` |
#
# Where your function calls a module, Dynamo goes inside and notes the functions that it finds there.

# %%


@torch.compile(backend=keep)
def mixed(x):
    x = torch.sin(x) + 1
    return x.cos()


graphs.clear()
mixed(torch.ones(2))
for node in graphs[0].graph.nodes:
    print(f"{node.op:>14} {getattr(node.target, '__name__', node.target)}")

# %% [markdown]
# Draw: show_graph(graphs[0]) | The same graph as a drawing: an input, three calls, and what goes
# out.
#
# The `+` is Python's `operator.add`. It counts as `add`, and so do `torch.add` and `x.add(1)`.
#
# A function need not become one graph. Where Dynamo cannot go on, it compiles what it has so far,
# lets Python do the next step, and starts a new graph after it, if it can. This is a **graph
# break**, and the backend is called once for each graph.
#
# One operation has graphs of its own. `torch.cond(predicate, yes, no, operands)` is a branch that
# stays in the graph. Its two arms are graph modules that hang on the outer one; a `get_attr` node
# names each of them.

# %%


@torch.compile(backend=keep)
def branching(x):
    return torch.cond(x.sum() > 0, lambda x: x.sin() + 1, lambda x: x.cos(), (x,))


graphs.clear()
branching(torch.ones(2))
print([node.name for node in graphs[0].graph.nodes])
for name, arm in graphs[0].named_children():
    print(name, [node.name for node in arm.graph.nodes])

# %% [markdown]
# **Predict.** Below, the same function is compiled ten times, each time with a new backend that
# counts its graphs. How many graphs do the ten backends get?

# %%


def sine(x):
    return x.sin()


def ten_backends():
    torch._dynamo.reset()
    counts = []
    for _ in range(10):
        got = []
        torch.compile(sine, backend=lambda graph, inputs, got=got: got.append(1) or graph)(x)
        counts.append(len(got))
    return sum(counts)


predict(..., ten_backends)

# %% [markdown]
# Compiled code is kept with the function's **code object**, not with what `torch.compile` returns.
# All ten share one list there, and it takes eight entries: `torch._dynamo.config.recompile_limit`.
# After that Dynamo gives up on the function, and it runs as ordinary Python. `torch._dynamo.reset()`
# empties all such lists.
#
# **Write `count_ops(function, calls)`.** `function` is a function or an `nn.Module`. `calls` is a
# list of tuples of arguments. Compile the function with a backend of your own and no other option,
# call it once with each tuple, in turn, and return a pair:
#
# - the list of what the calls returned;
# - a list with one `dict` for each graph that the backend got, in that order: from an operation's
#   name to how often it occurs in the graph.
#
# Every `call_function` and `call_method` node counts, those in the arms of a `cond` included (and
# the `cond` itself), at any depth. The name of a function is its `__name__`. Each call of `count_ops`
# starts afresh: it gives the same counts however often the function was compiled before.
#
# <details><summary>Hint 1: a closure</summary>
#
# Write the backend inside `count_ops`, so that it can append to a list there. It returns
# `graph_module` itself, which can be called.
#
# </details>
# <details><summary>Hint 2: the arms</summary>
#
# `graph_module.modules()` gives a module and all that hang below it. Those that are instances of
# `torch.fx.GraphModule` have a graph.
#
# </details>
# <details><summary>Hint 3: afresh</summary>
#
# See the prediction above. One line at the beginning is enough.
#
# </details>


# %% solution="count_ops"
def count_ops(function: Callable, calls: list[tuple]) -> tuple[list[Any], list[dict[str, int]]]:
    """Compile `function`, call it, and count the operations of each graph.

    function: a function or an nn.Module
    calls: the arguments of each call
    returns: the calls' results, and a dict from name to count for each graph
    """
    ### BEGIN SOLUTION
    # Code that was compiled earlier would be found, and the backend never called.
    torch._dynamo.reset()
    counts = []

    def backend(graph_module, example_inputs):
        nodes = [
            node
            for module in graph_module.modules()  # itself, and the arms of every cond
            if isinstance(module, torch.fx.GraphModule)
            for node in module.graph.nodes
        ]
        counts.append(
            dict(
                Counter(
                    node.target if node.op == "call_method" else node.target.__name__
                    for node in nodes
                    if node.op in ("call_function", "call_method")
                )
            )
        )
        return graph_module

    compiled = torch.compile(function, backend=backend)
    return [compiled(*arguments) for arguments in calls], counts
    ### END SOLUTION


# %% grade="count_ops"
grade("count_ops")

# %% [markdown]
# ## Graph breaks
#
# A break costs more than it seems. Each piece has guards to test. Nothing can be optimised across
# it, and the backend never sees the whole. `torch._dynamo.explain` says where they are. (Under DDP a
# backend gets in pieces what was captured whole. Chapter 8 shows why.)
#
# **Predict.** `noisy` adds, prints and multiplies. How many graphs?


# %%
def noisy(x):
    x = x + 1
    print("half way")
    return x * 2


predict(..., lambda: torch._dynamo.explain(noisy)(torch.ones(2)).graph_count)

# %% [markdown]
# Look: compile/stages#program=print&stage=python | A `print` makes two graphs of one function, each
# under its own guards. The next tabs show what each holds.
#
# Without any word from Dynamo, a `print` that was put in to find a bug has changed what is compiled.
# With `fullgraph=True` a break is an error, and the error tells the line:

# %%
try:
    torch.compile(noisy, backend="eager", fullgraph=True)(torch.ones(2))
except Exception as error:
    told = str(error).split("from user code:")[1].splitlines()
    print(f"{type(error).__name__} at: {told[2].strip()}")

# %% [markdown]
# A new graph can start after a break, but not in the middle of a loop, nor of a `try`. There Dynamo
# leaves the whole function to Python, what comes after the loop too:


# %%
def noisy_loop(x):
    for _ in range(2):
        x = x + 1
        print("round")
    return x * 2


print("graphs:", torch._dynamo.explain(noisy_loop)(torch.ones(2)).graph_count)

# %% [markdown] exercise="one_graph"
# title: Remove graph breaks
# minutes: 40
# difficulty: 3
# points: 7
# short: true
# prerequisites: [count_ops]
# teaches: >-
#   the four common breaks (a value read into Python, a print, an `if` on data, a shape that depends
#   on data) and what to write in their place without changing the gradient.
# leaves out: loops whose length depends on data.
# off limits: []

# %% [markdown]
# Here is a function that somebody wants in one graph:


# %%
def settle(x, w, limit):
    """x: (n, d), w: (d, d), limit: a float."""
    size = x.abs().max().item()
    print("size", round(size, 2))
    if size > limit:
        x = (x @ w) / size
    kept = x[x > 0]
    return x - kept.mean()


x = torch.tensor([[1.0, -3.0], [0.5, 2.0]])
explained = torch._dynamo.explain(settle)(x, torch.eye(2), 2.5)
print("graphs:", explained.graph_count, " breaks:", explained.graph_break_count)

# %% [markdown]
# Four things stand in the way. (`explain` counts graphs and takes one away. Between `.item()` and
# `print` no tensor is touched, so there is no graph, and two breaks count as one.)
#
# `.item()` moves a value into Python. What comes out is a number without a gradient: `size` is a
# constant for `backward`. The `print` must happen at a known time, with known values. The `if` asks
# for the value. And `x[x > 0]` has as many elements as there are positive ones, so that its *shape*
# depends on data.
#
# Look: compile/stages#program=branch&stage=dynamo | An `if` on data, in another function: the
# graph ends before it, and Python chooses which one goes on.
#
# `torch.cond(predicate, yes, no, operands)` is the `if` that stays in the graph. It takes a boolean
# tensor of one element and runs one arm. Its documentation asks both arms for tensors of the same
# shape and dtype. And there is more:

# %%


def is_taken(arm):
    """Say whether Dynamo takes an arm beside one that returns `x + 1`."""
    torch._dynamo.reset()

    def branch(x):
        return torch.cond(x.sum() > 0, arm, lambda x: x + 1, (x,))

    try:
        torch.compile(branch, backend="eager", fullgraph=True)(torch.ones(2, 3))
    except Exception:
        return False
    return True


print("a copy:            ", is_taken(lambda x: x.clone()))
print("an operand itself: ", is_taken(lambda x: x))
print("other strides:     ", is_taken(lambda x: x.t().contiguous().t()))
print("another dtype:     ", is_taken(lambda x: x.double()))

# %% [markdown]
# **Predict.** `torch.where` also chooses. In `choice` below both of its branches are computed, and the
# one that is not chosen has an infinite slope at 0. What is the gradient? Write it as text, such as
# `"1.0"`.


# %%
def gradient_at_zero():
    x = torch.zeros((), requires_grad=True)
    choice = torch.where(x > 0, x.sqrt(), x * 2)
    choice.backward()
    return str(x.grad.item())


predict(..., gradient_at_zero)

# %% [markdown]
# The gradient of what was not chosen is $0 \cdot \infty$.
#
# **Write `one_graph(x, w, limit)`.** It returns a pair: what `settle` returns, and the `size` as a
# tensor without dimensions that does not require grad. It prints nothing; whoever wants to print the
# size has it now. And
#
# - `torch.compile(one_graph, fullgraph=True)` makes one graph, which serves both ways of the `if`;
# - values and gradients, with respect to `x` and `w`, are those of `settle`: also where nothing is
#   positive and the mean is a NaN, where `x` has infinities, and where size and limit are close:
#   there two Python floats are compared, and the float32 number 0.1 is greater than the float 0.1;
# - where `size` does not exceed the limit, no matrix product is computed.
#
# Do not change `x`. `w` and `x` have the same dtype, `float64`, `float32` or `bfloat16`, and any layout. (In
# `float16` a sum soon overflows, also where the mean does not.)
#
# <details><summary>Hint 1: the constant</summary>
#
# `.item()` cut the gradient. So does `.detach()`.
#
# </details>
# <details><summary>Hint 2: the arms</summary>
#
# The second arm has nothing to do; let it return a copy of `x`. A product is contiguous, so the copy
# must be: `x.clone(memory_format=torch.contiguous_format)`.
#
# </details>
# <details><summary>Hint 3: a mean of some</summary>
#
# A mean is a sum over a count. Put zeros where an element must not count. Multiplying by the mask is
# not the same: infinity times zero is a NaN.
#
# </details>


# %% solution="one_graph"
def one_graph(x: torch.Tensor, w: torch.Tensor, limit: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Return what `settle` returns, and the size, in one graph.

    x: (n, d), float64, float32 or bfloat16
    w: (d, d), of the same dtype
    returns: (n, d) and (), the latter without grad
    """
    ### BEGIN SOLUTION
    size = x.detach().abs().max()  # detached: as a Python number it had no gradient either
    # Only the arm that is taken runs. An arm may not return an operand itself, so it is copied;
    # a product is contiguous, and both arms must have strides in the same order.
    x = torch.cond(
        size.double() > limit,  # as `.item()` does: in float32 the limit would be rounded first
        lambda: (x @ w) / size,
        lambda: x.clone(memory_format=torch.contiguous_format),
    )
    positive = x > 0
    # As many elements as before, zeros where one must not count: the shape is known.
    mean = torch.where(positive, x, 0).sum() / positive.sum()
    return x - mean, size
    ### END SOLUTION


# %% grade="one_graph"
grade("one_graph")

# %% [markdown] sitting="guards"
# question: Why does it compile again?
# reached: >-
#   Each graph holds under guards on what Dynamo saw. Sizes and floats become dynamic after a
#   change, 0 and 1 never do, and what you hand over as a tensor is not guarded by value.

# %% [markdown]
# ## Guards
#
# A graph is right only under the conditions that Dynamo saw. Each became a guard. When the function
# is called again, the guards of its cached graphs are tried, one graph after another; the first
# graph whose guards all hold is used. If none fits, Dynamo compiles once more.

# %% [markdown] exercise="recompiles"
# title: Predict what compiles again
# minutes: 35
# difficulty: 3
# points: 7
# short: true
# prerequisites: [count_ops]
# teaches: >-
#   which facts about a call are guarded, that old graphs are kept, how a size or a float becomes
#   dynamic, why 0 and 1 never do, and what happens at the limit.
# leaves out: >-
#   strides, tensors that are passed twice, whole numbers as arguments, and the attributes of modules.
# off limits: [torch.compile, torch._dynamo.optimize]

# %% [markdown]
# Which facts are conditions? Among others, for a tensor its dtype, its sizes, and whether it requires
# grad. For the call as a whole, grad mode. For a flag its value. The little function below tells which
# of several calls compiled.


# %%
def compiled_at(function, calls, dynamic=None):
    """Return, for each call, whether it made the backend get a graph."""
    torch._dynamo.reset()
    graphs, found = [], []
    compiled = torch.compile(
        function, backend=lambda graph, inputs: graphs.append(1) or graph, dynamic=dynamic
    )
    for call in calls:
        before = len(graphs)
        call(compiled)
        found.append(len(graphs) > before)
    return found


def double(x):
    return x * 2


def without_grad(f):
    with torch.no_grad():
        f(torch.ones(2))


print(
    compiled_at(
        double,
        [
            lambda f: f(torch.ones(2)),
            lambda f: f(torch.ones(2, dtype=torch.float64)),
            lambda f: f(torch.ones(2, requires_grad=True)),
            without_grad,
            lambda f: f(torch.zeros(2)),
        ],
    )
)

# %% [markdown]
# The first four differ in one fact each. The last is like the first: its graph is still there.
#
# Sizes would be the end of it: one compilation for each length of a sentence. So Dynamo learns. Its
# first graph is for just the sizes it saw. When it has to compile again and finds a size that was
# another before, it makes that size **dynamic**: a symbol in the graph, and no number.

# %%
lengths = [3, 5, 7, 9, 3, 1, 0]
print("as it is:     ", compiled_at(double, [lambda f, n=n: f(torch.ones(n)) for n in lengths]))
print(
    "dynamic=False:", compiled_at(double, [lambda f, n=n: f(torch.ones(n)) for n in lengths], False)
)

# %% [markdown]
# The second graph takes every length from 2 on. It does not take 1 and 0. A size of 1 is broadcast,
# a tensor of size 0 has nothing to compute, and so much depends on either that each has graphs of
# its own (`specialize_zero_one` in `torch/fx/experimental/symbolic_shapes.py`).
#
# Look: compile/stages#program=shapes&stage=python | Four calls with 4, 5, 6 and 1 rows: which of
# them compile, and which guard failed.
#
# A `float` argument is learned in the same way, without the exception for 0 and 1: the first value
# is a constant of the graph, and once there was another, it is an input.
#
# **Predict.** With `x * scale` and the scales 0.5, 0.5, 0.25, 0.125 and 1.0: which calls compile?
# Write a list of five.

# %%


def scaled(x, scale):
    return x * scale


scales = [0.5, 0.5, 0.25, 0.125, 1.0]
predict(..., lambda: compiled_at(scaled, [lambda f, s=s: f(torch.ones(2), s) for s in scales]))

# %% [markdown]
# **Write `recompiles(calls, dynamic)`.** It predicts `compiled_at` for a function `f(x, flag, scale)`
# that uses all three and reads no values of `x`. A call is a `dict`:
#
# | key | value |
# |---|---|
# | `"shape"` | two sizes, a list such as `[3, 0]` |
# | `"dtype"` | text, such as `"float32"` |
# | `"requires_grad"` | whether `x` does |
# | `"grad_mode"` | whether grad mode is on during the call |
# | `"flag"` | `True` or `False`; the function has an `if` on it |
# | `"scale"` | a finite `float` |
#
# `dynamic` is `None` or `False`. Return a list with one `bool` for each call. The rules:
#
# - A call uses any earlier graph whose conditions hold. What it met, it does not change.
# - `dtype`, `requires_grad`, `grad_mode` and `flag` are always conditions.
# - With `dynamic=False` each size and the scale are conditions too.
# - With `dynamic=None`, when a call compiles, a size or a scale is a condition if it was the same in
#   all calls so far, whatever their other facts; otherwise it is dynamic. But a size that is 0 or 1
#   in the call that compiles is a condition in any case.
# - A dynamic size accepts every number from 2 on, a dynamic scale every float.
# - There are at most eight graphs. After that, no call compiles.
#
# Do not compile anything.
#
# <details><summary>Hint 1: a list of graphs</summary>
#
# Keep a list of graphs, for each its conditions. A call looks for one that fits. If there is none,
# and fewer than eight, it adds one.
#
# </details>
# <details><summary>Hint 2: conditions as a dict</summary>
#
# A graph's conditions may be a dict from a fact to its value, in which dynamic facts are missing.
# For dynamic sizes remember that they must be at least 2.
#
# </details>
# <details><summary>Hint 3: each size for itself</summary>
#
# Rows may be dynamic while columns are a condition. And they stay dynamic: when a later call
# compiles because of its dtype, its graph is born with dynamic rows.
#
# </details>


# %% solution="recompiles"
def recompiles(calls: list[dict], dynamic: bool | None) -> list[bool]:
    """Return for each call whether Dynamo compiles.

    calls: facts about each call, as in the table above
    dynamic: None or False, as for torch.compile
    """
    ### BEGIN SOLUTION
    seen, graphs, answers = [], [], []
    for call in calls:
        fixed = (call["dtype"], call["requires_grad"], call["grad_mode"], call["flag"])
        learned = [*call["shape"], call["scale"]]  # rows, columns, scale
        seen.append(learned)

        def fits(graph, fixed=fixed, learned=learned):
            conditions, wanted = graph
            return conditions == fixed and all(
                value == want if want is not None else place == 2 or value >= 2
                for place, (value, want) in enumerate(zip(learned, wanted, strict=True))
            )

        miss = len(graphs) < 8 and not any(map(fits, graphs))
        answers.append(miss)
        if not miss:
            continue
        wanted = []  # None where anything will do
        for place, value in enumerate(learned):
            varies = dynamic is None and any(other[place] != value for other in seen)
            special = place < 2 and value < 2  # 0 and 1 have graphs of their own
            wanted.append(None if varies and not special else value)
        graphs.append((fixed, wanted))
    return answers
    ### END SOLUTION


# %% grade="recompiles"
grade("recompiles")

# %% [markdown]
# ## What a guard does not see
#
# Guards are tested at each call, and each costs time. So they are chosen, and something is left out.
#
# **Predict.** A hook that turns the output into zeros is registered *after* the first call. Is the
# output of the next call zero?


# %%
def hook_after_the_first_call():
    torch._dynamo.reset()
    layer = nn.Linear(2, 2)
    compiled = torch.compile(layer, backend="eager")
    compiled(torch.ones(1, 2))
    layer.register_forward_hook(lambda module, inputs, output: output * 0)
    return bool((compiled(torch.ones(1, 2)) == 0).all())


predict(..., hook_after_the_first_call)

# %% [markdown]
# Hooks are not guarded unless you ask for it (`torch/_dynamo/config.py`). Register them before the
# first call, or pay for the guards:

# %%
with torch._dynamo.config.patch(skip_nnmodule_hook_guards=False):
    print("with hook guards:", hook_after_the_first_call())

# %% [markdown] exercise="Steady"
# title: Remove recompilations
# minutes: 40
# difficulty: 4
# points: 7
# prerequisites: [recompiles]
# teaches: >-
#   what to do with a float that changes, a counter in Python, and a size that varies, without making
#   everything dynamic and without losing digits.
# leaves out: functions that you cannot change; more graphs than Dynamo keeps.
# off limits: []

# %% [markdown]
# An average that forgets, as in Adam. It starts at zero, and a division makes up for that: after $k$
# steps by $1 - \beta^k$, with $\beta$ the decay.

# %%
steps = 0


def debiased(mean, x, decay):
    """mean: (d,), x: (n, d), decay: a float."""
    global steps
    steps += 1
    mean = decay * mean + (1 - decay) * x.mean(0)
    return mean, mean / (1 - decay**steps)


# %% [markdown]
# Three things change from call to call: the number of rows, the decay, and the counter.
#
# **Predict.** Six calls with 3, 4, 5, 6, 7 and 8 rows, and the decay 0.9 in all of them. How many
# graphs? Two was the answer where only a size varied.


# %%
def graphs_of_six_calls():
    mean, calls = torch.zeros(2), []
    for rows in range(3, 9):
        calls.append(lambda f, rows=rows: f(mean, torch.ones(rows, 2), 0.9))
    return sum(compiled_at(debiased, calls))


predict(..., graphs_of_six_calls)

# %% [markdown]
# A whole number that is read from a global is a constant of the graph, each time anew. After eight
# steps the limit is reached, and the rest of the training is not compiled at all. With
# `TORCH_LOGS=recompiles` in the environment Dynamo says which guard failed.
#
# Learning does not help here, and it costs a compilation where it does. You know beforehand what
# varies. For sizes there is a way to say it: `torch._dynamo.mark_dynamic(x, 0)` before the call makes
# the rows of `x` dynamic in the first graph. Numbers can be handed in as tensors.
#
# **Write the class `Steady(backend)`.** Its objects are called with `(mean, x, decay)` and return the
# pair that `debiased` returns; each object counts its own steps from 1. `decay` is a number from 0 to
# less than 1, a `float` or the whole number 0. The work on tensors is compiled with `torch.compile` and
# the given backend, such that, for one dtype and one number of columns:
#
# - all calls with two rows or more share one graph, whatever the decay, the step and the number of
#   rows;
# - calls with one row may have a graph of their own, and so may calls without rows, where the mean is
#   a NaN;
# - the number of columns is a number in the graph, and not dynamic;
# - what a call returns are outputs of the graph.
#
# Results are right to $10^{-6}$ relative, in float32 too, with a decay as near to 1 as 0.9999.
# `mean`, `x` and their values are not changed.
#
# Dynamo keeps eight graphs for one piece of Python code, and several objects may be made of one piece.
# What happens beyond eight graphs is left out.
#
# <details><summary>Hint 1: two parts</summary>
#
# A plain method that counts, marks and converts; and a function of tensors alone that is compiled. What
# is compiled must not see `self.steps`.
#
# </details>
# <details><summary>Hint 2: tensors for numbers</summary>
#
# `torch.tensor(decay)` is a tensor without dimensions. Its value is no condition, its dtype is. A
# tensor without dimensions does not change the dtype of a sum or product with floats that have some.
#
# </details>
# <details><summary>Hint 3: digits</summary>
#
# In float32, 0.9999 is off by about $10^{-8}$, and $1 - 0.9999$ is then off by $10^{-4}$ of its
# value. Compute small differences before you leave Python's floats, or in float64.
#
# </details>


# %% solution="Steady"
class Steady:
    """A debiased average whose steps share one graph."""

    def __init__(self, backend: Callable) -> None:
        ### BEGIN SOLUTION
        self.steps = 0

        def update(mean, x, decay, gain, correction):
            mean = decay * mean + gain * x.mean(0)
            return mean, mean / correction

        self.update = torch.compile(update, backend=backend)
        ### END SOLUTION

    def __call__(
        self, mean: torch.Tensor, x: torch.Tensor, decay: float
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the new mean and the debiased mean, both (d,).

        mean: (d,), x: (n, d), of one floating-point dtype
        """
        ### BEGIN SOLUTION
        self.steps += 1
        # On a size of 0 or 1 the mark has no effect: they have graphs of their own.
        torch._dynamo.mark_dynamic(x, 0)
        # Differences are taken in Python, in float64, and enter as tensors: no guard on their values.
        numbers = (decay, 1 - decay, 1 - decay**self.steps)
        return self.update(mean, x, *(torch.tensor(n, dtype=torch.float64) for n in numbers))
        ### END SOLUTION


# %% grade="Steady"
grade("Steady")

# %% [markdown] sitting="own-dynamo"
# question: What makes a compiler of a tracer?
# reached: >-
#   Guards, and a cache of what was captured under them. You have one, and you know what it bakes
#   in without a word.

# %% [markdown]
# ## A Dynamo of your own
#
# Dynamo reads bytecode. There is a cheaper way to see every tensor operation of a function, and it
# is enough to build the rest of the machine: capture, guards, cache, and the way back to Python.
#
# Look: compile/stages#program=branch&stage=bytecode | The bytecode of a function with an `if` on
# data, and what Dynamo runs instead: the graph is one call.

# %% [markdown] exercise="MiniDynamo"
# title: Build a small Dynamo
# minutes: 75
# difficulty: 5
# points: 10
# prerequisites: [count_ops, recompiles]
# teaches: >-
#   how capture, guards and a cache make a compiler out of a tracer, what such a tracer bakes into its
#   graph, and what it must not do twice.
# leaves out: >-
#   bytecode, graphs before and after a break, dynamic sizes, strides, attributes that are tensors
#   (`x.T`, `x.grad`), and guards on globals and closures.
# off limits: [torch.compile, torch._dynamo.optimize, torch.jit.trace, torch.fx.experimental.proxy_tensor.make_fx, torch.fx.symbolic_trace]
# forbids: "PyTorch's own ways to capture a graph"

# %% [markdown]
# A `TorchFunctionMode` is shown calls of PyTorch's Python API before they run: functions, methods,
# operators, the reading of attributes. It is not shown all of them: making a tensor from foreign
# data, by `torch.from_numpy(array)` or `torch.Tensor([1.0])`, goes past it.


# %%
class Shown(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        print(f"{func.__name__:>17} -> {type(result).__name__}")
        return result


with Shown():
    a = torch.zeros(3, 2)
    a[0] = 1.0
    if a.shape[0] > 2:
        with torch.no_grad():
            b = 1 - a
    greatest, where = b.max(0)
    print("above 5:", bool(greatest[0] > 5))

# %% [markdown]
# Grad mode is set by a call too. The write `a[0] = 1.0` is a call of `__setitem__` that returns
# nothing and does a lot. An attribute such as `a.shape` is a call of `__get__`. And `bool(...)` of a
# tensor is where a value leaves the tensors and enters Python: from here on the function may go one
# way or another, and no guard on shapes tells which.
#
# A graph is built by hand like this. `get_attr` stands for something the graph holds; `func` may be
# whatever the mode was shown, except `__get__`.

# %%
weight = torch.tensor([2.0, 3.0])
graph = torch.fx.Graph()
given = graph.placeholder("given")
held = graph.get_attr("held")
product = graph.call_function(torch.Tensor.mul, (given, held))
graph.output((product, "text"))
by_hand = torch.fx.GraphModule({"held": weight}, graph)
print(by_hand(torch.ones(2)))
weight.add_(1)
print(by_hand(torch.ones(2)))

# %% [markdown]
# Draw: show_graph(by_hand) | The graph by hand. `held` is no input: it comes with the module.
#
# The graph holds the tensor, not a copy.
#
# **Predict.** `counting` is traced once by `torch.fx`'s own tracer, and the graph runs three times.
# What is in `times` at the end?

# %%
times = []


def counting(x):
    times.append("called")
    return x + len(times)


def traced_and_run():
    times.clear()
    traced = torch.fx.symbolic_trace(counting)
    for _ in range(3):
        traced(torch.ones(2))
    return times


predict(..., traced_and_run)

# %% [markdown]
# What is no tensor operation happens while tracing, once, and its results are constants of the graph.
# Dynamo does better with such side effects: it replays them after the graph. Yours need not.
#
# These functions read a tensor's values into Python. There are more, such as `numpy` and
# `torch.equal`; yours need not know them.

# %%
READS = {"item", "tolist", "__bool__", "__int__", "__float__", "__index__", "__contains__"}

# %% [markdown]
# **Write the class `MiniDynamo(function, backend, limit=8)`.** Its objects are called as `function`
# is, with positional arguments: tensors, and numbers, booleans, texts or `None`. They return what
# `function` returns: a tensor, a plain value, or tuples, lists and dicts of such.
#
# *Kinds.* Two calls are of the same kind if they have the same number of arguments, and grad mode is
# the same, and for each argument: both tensors, with the same dtype, shape and `requires_grad`; or
# both of the same type and equal. And the same of the arguments are one and the same tensor: `f(x, x)`
# is of another kind than `f(x, y)`, and of the same kind as `f(y, y)`.
#
# *The first call of a kind* runs `function`, once, on the arguments, and writes each call that a
# `TorchFunctionMode` is shown into a graph, in order; calls of `__get__` excepted. The result is what
# the function returned. Then `backend(graph_module, tensors)` is called: with a `GraphModule` that
# has a placeholder for each tensor argument, in order, and with a list of these arguments. What the
# backend returns is kept. Tensors that are neither arguments nor results of a recorded call are held
# by the graph, also if nobody else keeps them.
#
# *Later calls* of this kind call what the backend returned with the tensor arguments, and return its
# result. `function` does not run. Running the graph has the same effects as running the function on
# these arguments: also on tensors that are changed in place, on grad mode and on random numbers.
#
# *A break.* If the function calls something whose `__name__` is in `READS`, the backend is not
# called, and from then on all calls of this kind run `function`.
#
# *The limit.* At most `limit` kinds are remembered, broken ones included. Calls of further kinds run
# `function`, and nothing is traced. A first call that raises lets its error out, and its kind is not
# remembered.
#
# <details><summary>Hint 1: from tensors to nodes</summary>
#
# Keep a dict from `id(tensor)` to the node that stands for it. Before you record a call, replace each
# tensor in `args` and `kwargs` by its node; `torch.fx.node.map_aggregate(args, f)` calls `f` for
# everything inside tuples, lists, dicts and slices. An `id` is a tensor's only while the tensor lives.
#
# </details>
# <details><summary>Hint 2: results</summary>
#
# Run `func` for real, record it, and remember the node for the result. For a tuple or a list, record
# an `operator.getitem` for each tensor in it. A call whose result is no tensor is recorded as well: it
# may have an effect.
#
# </details>
# <details><summary>Hint 3: what is the same</summary>
#
# `1 == 1.0 == True`, so a key needs the type beside the value. For tensors, the number of the first
# argument that *is* this tensor tells who is whom.
#
# </details>


# %% solution="MiniDynamo"
class MiniDynamo:
    """Calls `function`, or a graph that was captured from it under the same conditions."""

    def __init__(self, function: Callable, backend: Callable, limit: int = 8) -> None:
        ### BEGIN SOLUTION
        self.function = function
        self.backend = backend
        self.limit = limit
        self.known = {}  # from a kind to what runs it
        ### END SOLUTION

    def __call__(self, *args: Any) -> Any:
        ### BEGIN SOLUTION
        kind = self.kind(args)
        if kind in self.known:
            run = self.known[kind]
            if run is self.function:
                return run(*args)
            return run(*(value for value in args if isinstance(value, torch.Tensor)))
        if len(self.known) >= self.limit:
            return self.function(*args)

        tensors = [value for value in args if isinstance(value, torch.Tensor)]
        recorder = Recorder(tensors)
        with recorder:
            result = self.function(*args)
        # The function has run, with all its effects: the graph's first run is the next call.
        if recorder.broken:
            self.known[kind] = self.function
        else:
            self.known[kind] = self.backend(recorder.finished(result), tensors)
        return result

    def kind(self, args):
        """Return the guards as a key: equal for calls that may share a graph."""
        first = {}  # from a tensor's id to the first argument that is it
        key = [torch.is_grad_enabled()]
        for number, value in enumerate(args):
            if isinstance(value, torch.Tensor):
                same = first.setdefault(id(value), number)
                key.append((value.dtype, value.shape, value.requires_grad, same))
            else:
                key.append((type(value), value))
        return tuple(key)


class Recorder(TorchFunctionMode):
    """Writes the calls made while it is entered into a graph."""

    def __init__(self, tensors):
        super().__init__()
        self.graph = torch.fx.Graph()
        self.nodes = {}  # from a tensor's id to its node
        self.held = {}
        self.alive = []  # an id is a tensor's only while it lives; then another may get it
        self.broken = False
        for number, tensor in enumerate(tensors):
            node = self.graph.placeholder(f"input_{number}")
            self.nodes.setdefault(id(tensor), node)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if func.__name__ == "__get__":
            return result
        self.alive.append(result)
        self.broken = self.broken or func.__name__ in READS
        # Recorded whatever it returns: a write returns None, and grad mode is set by a call.
        node = self.graph.call_function(func, self.to_nodes(args), self.to_nodes(kwargs))
        if isinstance(result, torch.Tensor):
            self.nodes[id(result)] = node
        elif isinstance(result, tuple | list):
            for place, item in enumerate(result):
                if isinstance(item, torch.Tensor):
                    part = self.graph.call_function(operator.getitem, (node, place))
                    self.nodes[id(item)] = part
        return result

    def to_nodes(self, values):
        return torch.fx.node.map_aggregate(values, self.to_node)

    def to_node(self, value):
        if not isinstance(value, torch.Tensor):
            return value
        if id(value) not in self.nodes:  # from outside: a weight, a global
            name = f"held_{len(self.held)}"
            self.held[name] = value
            self.nodes[id(value)] = self.graph.get_attr(name)
        return self.nodes[id(value)]

    def finished(self, result):
        """Return the graph as a module that returns what the function did."""
        self.graph.output(self.to_nodes(result))
        return torch.fx.GraphModule(self.held, self.graph)
        ### END SOLUTION


# %% grade="MiniDynamo"
grade("MiniDynamo")

# %% [markdown]
# ## Export: the graph without Python
#
# `torch.compile` keeps Python at hand: when guards fail, or a graph breaks, the interpreter goes on.
# `torch.export.export` captures for a place where there is no Python. So there can be no break, and
# nothing to fall back to. Guards become promises: the exported program checks its inputs and refuses
# what it was not made for.
#
# It does not read bytecode unless you say `strict=True`. Python runs your function once, on fake
# tensors, and what is no tensor operation happens then:


# %%
class Loud(nn.Sequential):
    def forward(self, x):
        print("forward runs")
        return super().forward(x)


model = Loud(nn.Linear(3, 2), nn.ReLU())
exported = torch.export.export(model, (torch.ones(4, 3),))
print([str(node.target) for node in exported.graph.nodes])
print("parameters:", list(exported.graph_signature.inputs_to_parameters.values()))

# %% [markdown]
# Draw: show_graph(exported.graph_module) | The exported program. Weight and bias come in beside
# `x`.
#
# The `print` is not in the graph. What is, are ATen operators, and the parameters are inputs.
#
# **Predict.** The example had four rows. The exported program is called with five. Does it run?
# Write `True` or `False`.


# %%
def runs_with_five(program):
    try:
        program.module()(torch.ones(5, 3))
    except AssertionError as error:
        print(str(error).splitlines()[0])
        return False
    return True


predict(..., lambda: runs_with_five(exported))

# %% [markdown]
# Nobody learns here from the second call. What may vary is said beforehand:

# %%
rows = torch.export.Dim("rows")
flexible = torch.export.export(model, (torch.ones(4, 3),), dynamic_shapes=({0: rows},))
print("five rows:", runs_with_five(flexible))
linear = next(node for node in flexible.graph.nodes if "linear" in str(node.target))
print("columns of the result:", linear.meta["val"].shape[1])
print("rows are a symbol:", isinstance(linear.meta["val"].shape[0], torch.SymInt))

# %% [markdown]
# ## Intermediate representations side by side
#
# What a capture leaves is an **intermediate representation**, IR for short: no longer Python, not
# yet machine code. Each of PyTorch's IRs keeps other things of your program. Here is a module with
# one of each: a submodule, an `if` on a plain number, that number as a factor, a write in place, and
# a size that is read.
#
# | form | is made by |
# |---|---|
# | `symbolic_trace` | calling it with a stand-in that knows neither size nor value |
# | Dynamo | reading its bytecode, on fake tensors |
# | `make_fx` | calling it with tensors, and noting every ATen operator that runs |
# | `export` | calling it with fake tensors; parameters become inputs |
# | decomposed | taking the exported program to fewer operators |
# | `jit.trace` | calling it with tensors, and noting what the old tracer sees |
# | `jit.script` | reading its source |


# %%
class Piece(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.times = 2

    def forward(self, x):
        y = self.linear(x)
        if self.times > 1:
            y = y * self.times
        y.add_(1)
        return y.reshape(x.shape[0] * 2, 2)


piece, sample = Piece(), torch.ones(3, 4)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # TorchScript is deprecated; and tracing warns of numbers
    whole = torch.export.export(piece, (sample,))
    forms = {
        "symbolic_trace": fx.symbolic_trace(piece),
        "Dynamo": torch._dynamo.explain(piece)(sample).graphs[0],
        "make_fx": make_fx(piece)(sample),
        "export": whole.graph_module,
        "decomposed": whole.run_decompositions().graph_module,
        "jit.trace": torch.jit.trace(piece, sample),
        "jit.script": torch.jit.script(piece),
    }
for name in ("make_fx", "jit.script"):
    print(f"{name}:\n{forms[name].code.strip()}\n")

# %% [markdown]
# | a node's | `fx.Graph` | TorchScript |
# |---|---|---|
# | call | `op` and `target` | `kind()`, or the attribute `name` |
# | inputs | `args`, with plain numbers in them | `inputs()`, values of other nodes |
# | blocks | none | `blocks()`: an `If` has two |
#
# **Predict.** The example has three rows. Which of the seven still ask how many there are when they
# run? Write their names as a list, in the order above.


# %%
def jit_nodes(block):
    for node in block.nodes():
        yield node
        for inner in node.blocks():
            yield from jit_nodes(inner)


def mentions(form):
    """Return what the nodes of a graph call or read, in order."""
    if isinstance(form, fx.GraphModule):
        calls = [node for node in form.graph.nodes if node.op.startswith("call")]
        targets = [node.args[1] if node.target is getattr else node.target for node in calls]
        return [getattr(target, "__name__", target).split(".")[0] for target in targets]
    return [
        node.s("name") if node.hasAttribute("name") else node.kind().split("::")[1]
        for node in jit_nodes(form.graph)
        if node.kind() not in ("prim::Constant", "prim::ListConstruct")
    ]


predict(..., lambda: [n for n, form in forms.items() if {"shape", "size"} & set(mentions(form))])

# %%
for name, form in forms.items():
    print(f"{name:14}", *mentions(form))

# %% [markdown]
# Draw: show_graph(symbolic_trace=forms["symbolic_trace"], export=forms["export"]) | The same
# module twice. One calls its submodule and asks `x` for its shape. The other has an operator, the
# parameters as inputs, and the size as a number.
#
# `jit.trace` lost the `if` and kept the size. In Dynamo's graph the size is the number 6, under a
# guard; `make_fx` has the same number and no guard. What else each form keeps, the next cell finds
# in the graphs. The last two columns are about the first product: the type of its factor, and what
# is known of its result.


# %%
def submodule(form):
    """Return whether the submodule is called, or noted beside the operators, or gone."""
    nodes = form.graph.nodes if isinstance(form, fx.GraphModule) else []
    if "forward" in mentions(form) or any(node.op == "call_module" for node in nodes):
        return "call"
    return "note" if any("nn_module_stack" in node.meta for node in nodes) else "gone"


def first_product(form):
    """Return the type of the product's factor, and what the graph knows of its result."""
    if isinstance(form, fx.GraphModule):
        node = next(node for node in form.graph.nodes if "mul" in str(node.target))
        value = node.meta.get("val", node.meta.get("example_value"))
        known = "nothing" if value is None else f"{value.dtype} {list(value.shape)}"
        return type(node.args[1]).__name__, known
    node = next(node for node in jit_nodes(form.graph) if node.kind() == "aten::mul")
    factor, result = list(node.inputs())[1].type(), node.output().type()
    known = f"{result.dtype()} {result.sizes()}" if result.sizes() else str(result)
    return factor.kind(), known


row = "{:14} {:4} {:6} {:5} {:5} {:10} {:11} {}".format
print(row("", "if", "times", "size", "add_", "submodule", "factor", "result"))
asked = ({"If"}, {"times"}, {"shape", "size"}, {"add_"})
for name, form in forms.items():
    there = set(mentions(form))
    marks = ["yes" if there & one_of else "-" for one_of in asked]
    print(row(name, *marks, submodule(form), *first_product(form)))

# %% [markdown]
# Only `jit.script`, which reads source, has the `if`, and reads `self.times` when it runs. For all
# others the number decided the `if` while they captured, and its value went into the graph; the trace
# even made a tensor of it. Most of them know more of values in return: from shapes and dtypes a compiler
# plans memory. A submodule that is still a call can be exchanged for another. A note tells people where
# an operator came from. The write in place is gone in one form alone. There a pass need not ask who else
# reads the memory.
#
# There is no row for ONNX, a format for other runtimes: `torch.onnx.export` asks for the packages
# `onnxscript` and `onnx`, which this course does not install.

# %% [markdown]
# ## Where to look
#
# | question | where |
# |---|---|
# | How many graphs, and why? | `torch._dynamo.explain(f)(*args)` |
# | Is there a break at all? | `torch.compile(f, fullgraph=True)` raises at the first one |
# | Why did it compile again? | `TORCH_LOGS=recompiles` |
# | Where does it break? | `TORCH_LOGS=graph_breaks` |
# | What is guarded? | `TORCH_LOGS=guards` |
# | What was captured? | `TORCH_LOGS=graph_code` |
#
# `torch.compile(f)` compiles nothing. The first call does, and each call that no graph fits. A
# measurement that takes in the first call measures the compiler:

# %%
story = []


def telling(graph_module, example_inputs):
    story.append("backend")
    return graph_module


doubled = torch.compile(double, backend=telling)
story.append("compiled")
for _ in range(3):
    doubled(torch.ones(2))
    story.append("called")
print(story)

# %% [markdown] sitting="passes"
# question: How does a compiler read a graph, and what may it leave out?
# reached: >-
#   Node after node, with values that live to their last use. It may drop what nobody misses and
#   compute ahead what cannot change, and an operator's schema says which that is.

# %% [markdown]
# ## A graph to work on
#
# What a compiler works on is neither Python nor machine code but something between, an intermediate
# representation. From here on it is an `fx.Graph`: a list of nodes, each of which names one call and
# the nodes whose values it takes. `make_fx` runs a function once and writes down every ATen operator
# that it meets.


# %%
def example(x):
    return (x.t() * 2 + 1).sum(dim=0)


captured = make_fx(example)(torch.ones(2, 3))
for node in captured.graph.nodes:
    print(f"{node.name:10} {node.op:14} {node.target!s:18} {node.args}")

# %% [markdown]
# `show_graph` draws it, here and wherever you have a graph:

# %%
show_graph(captured)

# %% [markdown]
# `2` and `1` are in the list, and so is `dim=0`, as `[0]`. The list is in an order in which it can
# be run. A value may be used many times, so what the arguments draw is a graph; nothing ever
# points forward (`graph.lint()` raises where it does), so it has no cycle.
#
# There are six kinds of nodes, one more than Dynamo uses:
#
# | `op` | `target` | value |
# |---|---|---|
# | `placeholder` | a name | the next argument |
# | `get_attr` | a dotted name | an attribute of the module that owns the graph |
# | `call_function` | a function | `target(*args, **kwargs)` |
# | `call_method` | a name | that method of the first of `args`, with the others |
# | `call_module` | a dotted name | that submodule, called with `args` and `kwargs` |
# | `output` | `"output"` | `args[0]` is what the graph returns |
#
# How a graph was captured decides what is in it. `fx.symbolic_trace` hands your function a proxy
# and sees only what touches the proxy. `make_fx` watches the dispatcher and sees every operator.
#
# **Predict.** `noisy` adds new noise at each call. In how many of the two captures does it still,
# when they are called twice?


# %%
def noisy(x):
    return x + torch.rand(3)


def differs(module):
    return not torch.equal(module(torch.zeros(3)), module(torch.zeros(3)))


predict(
    ...,
    lambda: [
        name
        for name, capture in [
            ("symbolic_trace", fx.symbolic_trace),
            ("make_fx", lambda f: make_fx(f)(torch.zeros(3))),
        ]
        if differs(capture(noisy))
    ],
)

# %% [markdown]
# No proxy touches `torch.rand(3)`, so `symbolic_trace` ran it, and its result became a constant of
# the graph. No error, no warning.

# %% [markdown] exercise="interpret"
# title: Run a graph
# minutes: 30
# difficulty: 2
# points: 6
# short: true
# prerequisites: []
# teaches: >-
#   what a graph is: nodes run one after the other, and values live from their node to their last use.
# leaves out: default values of placeholders, hooks of the interpreter, errors with a node's name.
# off limits: [torch.fx.Interpreter, torch.fx.GraphModule, torch.fx.Graph.python_code, torch.fx.graph.CodeGen._gen_python_code]
# forbids: "whatever runs a graph, or makes code of it"

# %% [markdown]
# A graph can be turned into Python text and run, or walked. `fx.Interpreter` walks. It is the base
# of many tools: run each node on fake tensors and you have the shapes
# (`torch/fx/passes/fake_tensor_prop.py`), on a clock and you have a profile. You write the walk.
#
# Arguments are nested: a node may sit in a list, in a dict, in a slice.

# %%
graph = fx.Graph()
x = graph.placeholder("x")
rows = graph.call_function(operator.getitem, (x, slice(None, graph.call_method("dim", (x,)))))
both = graph.call_function(aten.cat.default, ([rows, x],))
graph.output({"both": both})
print(both.args, both.all_input_nodes, "|", rows.args, rows.all_input_nodes)

# %% [markdown]
# `fx.map_arg(arguments, f)` returns the same nest with each node replaced by what `f` gives for it.
#
# **Predict.** The graph above: how many values must be alive when `cat` runs, its own result
# not counted?

# %%
predict(..., lambda: len(both.all_input_nodes))

# %% [markdown]
# The number that `dim` gave is not among them: its last use is over.
#
# **Write `interpret(graph, root, *args)`.** Run `graph` and return what its output node says, in the
# structure it has there.
#
# - `args` are the values of the placeholders, in order. `root` is the module whose attributes
#   `get_attr` and `call_module` name, with dots for nesting: `block.inner.layer`.
# - Every node runs once, in the order of `graph.nodes`, whether its value is used or not.
# - Hold no value after its last use. When a node has run, its result must be free, and those of the
#   nodes before it, unless a later node takes them. (`args` are the caller's, and may live on.)
# - Leave the graph as it is.
#
# <details><summary>Hint 1: an environment</summary>
#
# A dict from node to value is all the state there is. Read arguments with
# `fx.map_arg(node.args, values.__getitem__)`.
#
# </details>
# <details><summary>Hint 2: the last use</summary>
#
# Walk the graph once before you run it. `node.all_input_nodes` names what a node takes; the last
# node that names a value is where it ends. A node that nobody uses ends at itself.
#
# </details>
# <details><summary>Hint 3: what holds a value</summary>
#
# A local variable holds a value as well as a dict does. If the arguments of the node before are
# still in a variable while this one runs, they are alive.
#
# </details>


# %% solution="interpret"
def interpret(graph: fx.Graph, root: nn.Module, *args: Any) -> Any:
    """Run a graph and return what its output node says.

    args: values of the placeholders, in order
    """
    ### BEGIN SOLUTION
    last_use = {}
    for node in graph.nodes:
        last_use[node] = node  # a value that nobody uses goes at once
        for source in node.all_input_nodes:
            last_use[source] = node
    ends: dict[fx.Node, list[fx.Node]] = {}
    for source, user in last_use.items():
        ends.setdefault(user, []).append(source)

    values: dict[fx.Node, Any] = {}
    supplied = iter(args)

    def run(node: fx.Node) -> Any:
        # a function of its own: its variables hold the arguments no longer than the call
        positional = fx.map_arg(node.args, values.__getitem__)
        named = fx.map_arg(node.kwargs, values.__getitem__)
        match node.op:
            case "placeholder":
                return next(supplied)
            case "get_attr":
                return operator.attrgetter(node.target)(root)
            case "call_function":
                return node.target(*positional, **named)
            case "call_method":
                receiver, *others = positional
                return getattr(receiver, node.target)(*others, **named)
            case "call_module":
                return root.get_submodule(node.target)(*positional, **named)
        return positional[0]  # the output node

    for node in graph.nodes:
        values[node] = run(node)
        if node.op == "output":
            return values[node]
        for source in ends.get(node, ()):
            del values[source]
    return None  # a graph without an output node
    ### END SOLUTION


# %% grade="interpret"
grade("interpret")

# %% [markdown] exercise="remove_dead"
# title: Remove what nobody misses
# minutes: 25
# difficulty: 3
# points: 6
# prerequisites: [interpret]
# teaches: >-
#   that a call without users may still act, and how an operator's schema tells.
# leaves out: submodules, and tensors that are written to and then never read.
# off limits: [torch.fx.Graph.eliminate_dead_code, torch.fx.Node.is_impure, torch._library.utils.is_impure]
# forbids: "PyTorch's own dead-code elimination"

# %% [markdown]
# A **pass** is a function that changes a graph and keeps what it computes. The first is the
# simplest to say: a call whose result nobody uses is dead, and dead code can go.
#
# Look: compile/stages#program=dropout&stage=dynamo | In this graph each value is taken by another
# call or returned: nothing is dead.
#
# Nobody uses the results of these either:

# %%
graph = fx.Graph()
x = graph.placeholder("x")
graph.call_function(print, (x,))
graph.call_function(torch.relu_, (x,))
graph.call_method("add_", (x, 1))
graph.call_function(aten.add_.Tensor, (x, 1))
graph.call_function(aten.rand_like.default, (x,))
graph.output(x)
for node in graph.nodes:
    if node.op.startswith("call"):
        print(node.op, getattr(node.target, "__name__", node.target))

# %% [markdown]
# Draw: show_graph(graph) | The same graph. Dashed is what nobody reads: all of it.
#
# **Predict.** `Graph.eliminate_dead_code` is PyTorch's own pass. How many of the five does it keep?

# %%
graph.eliminate_dead_code()
predict(..., lambda: sum(node.op.startswith("call") for node in graph.nodes))

# %% [markdown]
# Two. The three it removed print something or write to the caller's tensor. Its documentation warns
# of just that: about functions and methods of Python nobody can know what they do. About an ATen
# operator one can, because it has a **schema**.

# %%
for op in [
    aten.add_.Tensor,
    aten.add.out,
    aten.add.Tensor,
    aten._assert_async.msg,
    aten.rand_like.default,
]:
    drawn = torch.Tag.nondeterministic_seeded in op.tags
    print(f"writes {op._schema.is_mutable!s:5} returns {len(op._schema.returns)} random {drawn}")
print(aten.add.out._schema)

# %% [markdown]
# `Tensor(a!)` marks an argument that the operator writes to. A tag tells that an operator draws
# random numbers. One that returns nothing can only be there for its effect.
#
# A schema is a promise, and not every operator keeps it. In training mode `native_batch_norm`
# writes to its running statistics, and its schema has no exclamation mark:

# %%
running = torch.zeros(3)
aten.native_batch_norm.default(
    torch.ones(2, 3), None, None, running, torch.ones(3), True, 0.5, 1e-5
)
print(aten.native_batch_norm.default._schema.is_mutable, running)

# %% [markdown]
# That is an old operator. AOTAutograd's graphs have another in its place, which returns the new
# statistics: `aten._native_batch_norm_legit_functional`.
#
# **Write `remove_dead(gm)`.** Change `gm` in place; what you return is not looked at. Erase nodes of
# `gm.graph`, or give `gm` a new graph in which the others have the names and the order that they had. Every
# node whose value no remaining node takes must be gone, except these, which stay:
#
# - `placeholder` and `output` nodes;
# - operators (`torch._ops.OpOverload`) that write to an argument, draw random numbers (the tag) or
#   return nothing, by their schema;
# - every other function, method or submodule, about which nothing is known; but
#   `operator.getitem`, which takes a result from a tuple, counts as harmless.
#
# Afterwards `gm(...)` must run the new graph. `eliminate_dead_code` and `is_impure` are off limits.
#
# <details><summary>Hint 1: which end first</summary>
#
# When a call goes, the ones before it may lose their last user. Meet each node after all its users.
#
# </details>
# <details><summary>Hint 2: the tools</summary>
#
# `node.users` is empty when nobody takes the value. `graph.erase_node(node)` refuses to erase a
# node that still has users. Walk over a copy of the list, or over `reversed(graph.nodes)`.
#
# </details>
# <details><summary>Hint 3: the module's code</summary>
#
# A `GraphModule` runs Python text that was written from its graph. `gm.recompile()` writes it anew.
#
# </details>


# %% solution="remove_dead"
def remove_dead(gm: fx.GraphModule) -> None:
    """Erase the nodes of a graph that nobody uses and that have no effect, in place."""
    ### BEGIN SOLUTION

    def acts(node: fx.Node) -> bool:
        if node.op == "get_attr" or node.target is operator.getitem:
            return False
        if not isinstance(node.target, torch._ops.OpOverload):
            return True  # placeholders and the output too
        op = node.target
        drawn = torch.Tag.nondeterministic_seeded in op.tags
        return op._schema.is_mutable or drawn or not op._schema.returns

    # From the end, so that a dead node's inputs have lost this user when their turn comes.
    for node in reversed(gm.graph.nodes):
        if not node.users and not acts(node):
            gm.graph.erase_node(node)
    gm.recompile()
    ### END SOLUTION


# %% grade="remove_dead"
grade("remove_dead")

# %% [markdown] exercise="fold_constants"
# title: Compute before the first call
# minutes: 35
# difficulty: 4
# points: 8
# prerequisites: [remove_dead]
# teaches: >-
#   that constant inputs do not make a constant: the operator must be deterministic, and the tensor
#   must be one that nobody trains or writes to.
# leaves out: >-
#   whether it pays: a large `full` takes no memory before it runs, and much when it is stored.
# off limits: [torch.fx.experimental.const_fold.split_const_subgraphs, torch._inductor.constant_folding.constant_fold]

# %% [markdown]
# A position table, a mask, the scale of a quantized weight: parts of a graph depend on no input.
# They can be computed once and stored. This is **constant folding**, and it is told like this: a
# node whose inputs are all constants can be folded. Here is a node that has no inputs at all.

# %%
captured = make_fx(lambda x: x + torch.rand(3))(torch.zeros(3))
for node in captured.graph.nodes:
    if node.op == "call_function":
        random = torch.Tag.nondeterministic_seeded in node.target.tags
        print(node.target, "inputs:", node.all_input_nodes, "random:", random)

# %% [markdown]
# Draw: show_cells({name: [f"noise {rows.index(row) + 1}" for row in rows] for name, add in (("as
# captured", captured), ("folded", lambda x, noise=captured(torch.zeros(3)): x + noise)) for rows
# in [[add(torch.zeros(3)).tolist() for _ in range(4)]]}, [f"call {call}" for call in range(1, 5)])
# | What four calls add: a new noise each, or one that was drawn before the first.
#
# Fold it and every call adds the same "noise". You have seen a capture do that.
#
# What is a constant, then? An attribute of the module that stays what it is. A **parameter** does
# not, an optimizer moves it. A **buffer** does not either if the graph writes to it, as batch norm
# does with its running mean. In the graphs of this exercise such a write is a `copy_` at the end.
#
# Look: compile/stages#program=mlp&stage=dynamo | Weights are inputs of this graph, so each of its
# calls depends on something from outside: nothing can be folded.
#
# **Predict.** Three numbers are stored in a module and one call depends on each. How many of the
# three calls may be folded?


# %%
class Three(nn.Module):
    def __init__(self):
        super().__init__()
        self.trained = nn.Parameter(torch.tensor(1.0))
        self.register_buffer("mean", torch.tensor(1.0))
        self.register_buffer("table", torch.tensor(1.0))

    def forward(self, x):
        scale, shift, fixed = self.trained * 2, self.mean * 2, self.table * 2
        with torch.no_grad():
            self.mean.copy_(x.mean())
        return x * scale + shift + fixed


def changes_in_training():
    """Count the attributes that a training step changes."""
    model = Three()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    model(torch.tensor([5.0])).sum().backward()
    optimizer.step()
    return sum(bool(value != before[name]) for name, value in model.state_dict().items())


predict(..., lambda: 3 - changes_in_training())

# %% [markdown]
# **Write `fold_constants(gm)`.** The calls in `gm.graph` are ATen operators and `operator.getitem`;
# the only ones that write to memory are `aten.copy_.default` calls, into what a `get_attr` node
# reads. Change graph and module in place:
#
# - **Constant** are `get_attr` nodes of tensors that are no `nn.Parameter` and that no `copy_` writes
#   to; and calls whose inputs are all constant (or that have none), which draw no random numbers.
# - No constant call is left. Where another node takes the value of one, it takes it from a `get_attr`
#   node that reads a new tensor of the module.
# - Only values that such a node takes are stored, each once, and each is a tensor: of a call with
#   several results store those that are taken. The new names must be free.
# - No constant node is left whose value nobody takes. Attributes that the module had stay in it.
#
# Afterwards `gm(...)` must run the new graph.
#
# <details><summary>Hint 1: two walks</summary>
#
# Walk forward and keep a dict from constant node to its value. Then look at each constant call: does
# anyone take it who is not constant?
#
# </details>
# <details><summary>Hint 2: a new attribute</summary>
#
# `gm.register_buffer(name, tensor)`, then `graph.get_attr(name)` inside
# `with graph.inserting_before(node)`, then `node.replace_all_uses_with(...)`.
#
# </details>
# <details><summary>Hint 3: several results</summary>
#
# `sort` gives a tuple, and only `getitem` takes it, which is a constant as well. So the tuple itself
# never has to be stored, if you treat `getitem` like any other call.
#
# </details>


# %% solution="fold_constants"
def fold_constants(gm: fx.GraphModule) -> None:
    """Compute what depends on constants alone, once, and store it in the module."""
    ### BEGIN SOLUTION
    graph = gm.graph
    written = {node.args[0].target for node in graph.nodes if node.target is aten.copy_.default}
    constant: dict[fx.Node, Any] = {}
    for node in graph.nodes:
        if node.op == "get_attr":
            tensor = getattr(gm, node.target)
            if node.target not in written and not isinstance(tensor, nn.Parameter):
                constant[node] = tensor
        elif node.op == "call_function":
            drawn = torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())
            # `copy_` takes a node that is not constant, so that it stays by this test too
            if not drawn and all(source in constant for source in node.all_input_nodes):
                args, kwargs = fx.map_arg((node.args, node.kwargs), constant.__getitem__)
                constant[node] = node.target(*args, **kwargs)

    for node, value in constant.items():
        needed = any(user not in constant for user in node.users)
        if node.op == "call_function" and needed:
            number = 0
            while hasattr(gm, f"folded_{number}"):
                number += 1
            gm.register_buffer(f"folded_{number}", value)
            with graph.inserting_before(node):
                # constant users follow too, and go in a moment
                node.replace_all_uses_with(graph.get_attr(f"folded_{number}"))
    for node in reversed(constant):
        if not node.users:
            graph.erase_node(node)
    gm.recompile()
    ### END SOLUTION


# %% grade="fold_constants"
grade("fold_constants")

# %% [markdown] sitting="equal"
# question: When are two computations the same one?
# reached: >-
#   Same operator, same arguments of the same types, no random numbers, and no write in between.
#   Algebra helps less than one thinks: its rules hold for real numbers.

# %% [markdown] exercise="share"
# title: Compute once what occurs twice
# minutes: 45
# difficulty: 4
# points: 7
# prerequisites: [remove_dead]
# teaches: >-
#   when two calls are one: same operator, same arguments with the same types, no random numbers, and
#   memory that nobody wrote to meanwhile.
# leaves out: >-
#   results that must stay two tensors because the caller gets both; defaults that are spelled out in
#   one call and left out in the other.
# off limits: [torch._functorch.compile_utils.fx_graph_cse, torch.fx.passes.dialect.common.cse_pass.CSEPass]

# %% [markdown]
# Programs compute the same thing twice all the time: an attention mask in every layer, a `x.float()`
# in every norm. To capture is not to improve: the graph holds what the program said.

# %%
captured = make_fx(lambda x: torch.sin(x) + torch.sin(x))(torch.ones(2))
print([str(node.target) for node in captured.graph.nodes if node.op == "call_function"])

# %% [markdown]
# To find such repetitions and keep one of each is **common subexpression elimination**, CSE. The
# recipe that is told is short: two nodes are one if their operator and their inputs are the same.
# Each word of it has a trap. Inputs are not only tensors:

# %%
x = torch.arange(3)
for constant in (1, 1.0, True):
    print(
        constant == 1, hash(constant) == hash(1), (x + constant).dtype, ((x > 0) + constant).dtype
    )

# %% [markdown]
# Equal to Python, equal as keys of a dict, and three different operators' worth of results.
#
# And tensors are not only names. A tensor is memory, and memory can change between two calls, also
# under another name:

# %%
x = torch.zeros(2)
view = x.view(2)
before = x.cos()
view.add_(1)
print(before, x.cos())

# %% [markdown]
# Draw: show_storage(x=x, view=view) | One cell, two names. After `view.add_(1)` it is another
# number for both.
#
# The schema knows that too. `Tensor(a)` on an argument and on the result: the result is a view of
# the argument, or may be, as with `reshape`. `Tensor(a!)`: and it is written.
#
# Look: compile/stages#program=inplace&stage=dynamo | `add_` writes to `x`, the product reads it
# afterwards, and no arrow says so: the order of the list does. In the joint graph `add` writes nothing,
# and there is an arrow.

# %%
for op in (
    aten.t.default,
    aten.reshape.default,
    aten.add_.Tensor,
    aten.split.Tensor,
    aten.sin.default,
):
    print(op._schema)

# %% [markdown]
# **Predict.** In this program, which of the calls of `cos` could be left out, if you number them
# from 0? Answer with a list.

# %%
numbers = torch.tensor([1.0, 2.0])


def five_cosines(x):
    first = torch.cos(x)
    second = torch.cos(x)
    third = torch.cos(x + 0)
    x.add_(1)
    return first, second, third, torch.cos(x), torch.cos(x)


def same_results(skipped):
    """Say whether result number `skipped` equals one before it, from the same memory state."""
    results = five_cosines(numbers.clone())
    earlier = results[:skipped] if skipped < 3 else results[3:skipped]
    return skipped != 2 and any(torch.equal(results[skipped], one) for one in earlier)


predict(..., lambda: [n for n in range(5) if same_results(n)])

# %% [markdown]
# The third takes `x + 0`, another node. The fourth reads `x` after the write.
#
# **Write `share(gm)`.** Every call in `gm.graph` is a `call_function` of an ATen operator or of
# `operator.getitem`, and there are no `get_attr` nodes. Change the graph in place, so that each call that repeats an earlier one is
# gone and its users take the earlier one's value. A call repeats an earlier one if all of this holds:
#
# - The operator is the same, and so are positional and keyword arguments: the same values of nodes
#   (after sharing), and constants of the same type and value. `0.0` is not `-0.0`. The order of
#   keyword arguments does not matter.
# - It draws no random numbers and writes to nothing.
# - None of the memory it reads was written to since the earlier call.
# - The memory of its result and of the earlier result is never written to, anywhere in the graph.
#
# Nodes share memory where the schema says so, at any number of views' distance; a `getitem` shares
# with what it takes from. Two results that the graph returns may become one tensor.
# Afterwards `gm(...)` must run the new graph, and a second `share(gm)` finds nothing to do.
#
# <details><summary>Hint 1: a key</summary>
#
# Make a hashable key from the operator and its arguments, and keep a dict from key to the first
# node that had it. If you replace as you go, later arguments name the shared node already.
#
# </details>
# <details><summary>Hint 2: constants</summary>
#
# In the key, put `(type(value), repr(value))` in place of each constant. Go into lists, tuples and
# dicts.
#
# </details>
# <details><summary>Hint 3: memory</summary>
#
# Give each node the node that owns its memory: itself, or its base's owner. Count the writes to each
# owner as you go; the count, beside each node in the key, says in which state it was read. Which
# owners are ever written to, find out in a walk before.
#
# </details>


# %% solution="share"
def share(gm: fx.GraphModule) -> None:
    """Let each call that repeats an earlier one give way to it, in place."""
    ### BEGIN SOLUTION

    def marked(node: fx.Node) -> list[tuple[fx.Node, bool]]:
        """Return the arguments that share memory with the result or are written; and whether."""
        if node.target is operator.getitem:
            return [(node.args[0], False)]
        if node.op != "call_function":
            return []
        arguments = node.target._schema.arguments
        given = dict(zip([a.name for a in arguments], node.args, strict=False)) | node.kwargs
        return [
            (given[a.name], a.alias_info.is_write)
            for a in arguments
            if a.alias_info and a.name in given
        ]

    def state(value: Any) -> Any:
        """Return an argument as part of a key: what it is, and in which state it is read."""
        if isinstance(value, fx.Node):
            return value, writes.get(owner[value], 0)
        if isinstance(value, list | tuple):
            return tuple(map(state, value))
        return type(value), repr(value)  # neither 1, 1.0 and True nor the two zeros are equal so

    owner: dict[fx.Node, fx.Node] = {}
    written = set()
    for node in gm.graph.nodes:
        owner[node] = node
        for source, is_write in marked(node):
            owner[node] = owner[source]
            if is_write:
                written.add(owner[source])

    writes: dict[fx.Node, int] = {}
    first: dict[Any, fx.Node] = {}
    for node in [node for node in gm.graph.nodes if node.op == "call_function"]:
        drawn = torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())
        # what writes shares memory with what it writes to, so this keeps writes too
        if not drawn and owner[node] not in written:
            key = (node.target, state(node.args), state(sorted(node.kwargs.items())))
            if key in first:
                node.replace_all_uses_with(first[key])
                gm.graph.erase_node(node)
                continue
            first[key] = node
        for source, is_write in marked(node):
            if is_write:
                writes[owner[source]] = writes.get(owner[source], 0) + 1
    gm.recompile()
    ### END SOLUTION


# %% grade="share"
grade("share")

# %% [markdown]
# PyTorch's own pass for this is `torch._functorch.compile_utils.fx_graph_cse`. In training,
# `torch.compile` runs it on a graph from which nearly all writes are gone. It is more careful than
# yours with results that the caller gets: they stay tensors of their own. With zeros it is less so:


# %%
def two_zeros(x):
    return 1 / (x * 0.0) + 1 / (x * -0.0)


x = torch.ones(1, requires_grad=True)
print("as written:", two_zeros(x).item())
print("compiled:  ", torch.compile(two_zeros, backend="aot_eager")(x).item())

# %% [markdown]
# Infinity minus infinity is a NaN. The two products became one, and the sum is infinite.
#
# Draw: show_graph(**{name: change(make_fx(two_zeros)(torch.ones(1)).graph) for name, change in
# (("as captured", lambda graph: graph), ("after fx_graph_cse",
# __import__("torch._functorch.compile_utils", fromlist=["fx_graph_cse"]).fx_graph_cse))}) | Both
# graphs. To the pass a factor of 0.0 and one of -0.0 are the same factor.

# %% [markdown] exercise="simplify"
# title: Find the calls that change nothing
# minutes: 45
# difficulty: 4
# points: 7
# prerequisites: [remove_dead]
# teaches: >-
#   that the rules of algebra hold for real numbers, and which of them hold for dtypes and bits.
# leaves out: >-
#   rules that give nearly the same, such as `(x + y) - y`; numbers that a dtype rounds to 0 or 1;
#   complex dtypes; the bits of a NaN; who owns the memory of the result.
# off limits: []

# %% [markdown]
# `x + 0` is `x`. `x * 1` is `x`. Compilers have a long list of such rules, and in a tensor program
# nearly each of them is wrong for some `x`.

# %%
x = torch.tensor([-0.0, 3.0])
whole = torch.tensor([5])
print((x + 0).tolist(), (whole * 1.0).dtype, (torch.tensor([torch.inf]) * 0).item())
print((torch.tensor(1.0) + 1e8) - 1e8)
print((1 / x)[0].item(), (1 / (x + 0))[0].item())

# %% [markdown]
# The zero lost its sign, the whole number became a float, zero times infinity is not zero, and what
# was added and taken away again took all of `x` with it. Even the sign of a zero can travel far, as
# the last line shows.
#
# Draw: show_curves({name: [(at / 4, f(torch.tensor(at / 4)).item()) for at in range(0, 97)] for
# name, f in (("`(x + 1e8) - 1e8`", lambda x: (x + 1e8) - 1e8), ("`x`", lambda x: x))}, "x", "") |
# What comes back of `x` in float32. Around 1e8 numbers lie 8 apart.
#
# A pass that rewrites must therefore know what it has before it. Nodes carry that as
# `node.meta["val"]`: a tensor without numbers that has the dtype and the shape of the node's value.
# `make_fx` puts it there, and with `tracing_mode="fake"` it computes no numbers while it traces. The
# graphs of AOTAutograd have it as well.

# %%
captured = make_fx(lambda x: (x > 0) * 2, tracing_mode="fake")(torch.ones(2, 3))
for node in captured.graph.nodes:
    if node.op == "call_function":
        print(node.target, node.meta["val"].dtype, tuple(node.meta["val"].shape))

# %% [markdown]
# **Predict.** Which of the five give back every bit of `x`, for each float `x` that is not NaN?
# Answer with a list of texts.

# %%
x = torch.tensor([0.0, -0.0, 1e-45, -2.5, torch.inf])
five = {
    "x + 0": x + 0,
    "x + -0.0": x + -0.0,
    "x - 0": x - 0,
    "x - -0.0": x - -0.0,
    "x / 1": x / 1,
}
predict(
    ...,
    lambda: [
        text for text, y in five.items() if torch.equal(x.view(torch.int32), y.view(torch.int32))
    ],
)

# %% [markdown]
# **Write `simplify(gm)`.** The graph has no writes and no random numbers, its calls are ATen
# operators, no dtype is complex, and each node has `meta["val"]`. Take out each call of one of the forms below **whose
# result always has the dtype, the shape and the bits of an earlier node's value**, for every value
# that `x` can have at its dtype; users take that earlier value. (NaNs need no care.)
#
# | form | may be |
# |---|---|
# | `add.Tensor`, `sub.Tensor`, `mul.Tensor`, `div.Tensor` of `x` and a Python number that equals 0 or 1, with no keyword argument | `x` |
# | `neg`, `t`, `bitwise_not`, `logical_not` of the same operator's result on `x` | `x` |
# | `abs`, `relu` of the same operator's result | that result |
# | `expand` of `x` | `x` |
# | `_to_copy` of `x` with `dtype` and no other argument | `x` |
#
# When the calls between them are gone, others may have become neighbours: take those out too. At
# the end no call is left that nobody uses, and `gm(...)` runs the new graph.
#
# <details><summary>Hint 1: dtype first</summary>
#
# If `node.meta["val"]` and that of what takes its place differ in dtype or shape, no rule applies. That settles
# bools and most mixtures of whole numbers and floats.
#
# </details>
# <details><summary>Hint 2: two zeros</summary>
#
# Among floats only one zero can be added without a trace, and only one subtracted: look at the
# prediction. Whole numbers have but one zero. `math.copysign(1, number)` tells zeros apart.
#
# </details>
# <details><summary>Hint 3: one walk is enough</summary>
#
# If you replace as you walk forward, each call sees its arguments as they are after all earlier
# changes. Then remove what has no users, from the end.
#
# </details>


# %% solution="simplify"
def simplify(gm: fx.GraphModule) -> None:
    """Take out calls whose result is an earlier value, bit by bit, in place."""
    ### BEGIN SOLUTION
    undo_themselves = (
        aten.neg.default,
        aten.t.default,
        aten.bitwise_not.default,
        aten.logical_not.default,
    )

    def is_neutral(op: Any, number: float, is_float: bool) -> bool:
        """Say whether a number leaves every `x` as it is, the dtype being the same."""
        if op in (aten.mul.Tensor, aten.div.Tensor):
            return number == 1
        if number != 0:
            return False
        if not is_float:
            return op in (aten.add.Tensor, aten.sub.Tensor)
        # -0.0 + 0.0 is 0.0: floats have one zero that may be added, and the other to subtract
        is_minus_zero = math.copysign(1.0, number) < 0
        return op is (aten.add.Tensor if is_minus_zero else aten.sub.Tensor)

    def earlier(node: fx.Node) -> fx.Node | None:
        """Return the node whose value a call repeats."""
        x, *others = node.args
        was, now = x.meta["val"], node.meta["val"]
        same = was.dtype is now.dtype and was.shape == now.shape
        if node.target is aten._to_copy.default:
            return x if same and node.kwargs.keys() == {"dtype"} else None
        if node.target is aten.expand.default:
            return x if same else None
        if node.target is x.target and node.target in (aten.abs.default, aten.relu.default):
            return x
        if node.target is x.target and node.target in undo_themselves:
            (inner,) = x.args
            return inner if inner.meta["val"].dtype is now.dtype else None
        arithmetic = (aten.add.Tensor, aten.sub.Tensor, aten.mul.Tensor, aten.div.Tensor)
        if node.target in arithmetic and same and not node.kwargs:
            (number,) = others
            if not isinstance(number, fx.Node):
                return x if is_neutral(node.target, number, was.is_floating_point()) else None
        return None

    for node in gm.graph.nodes:
        if node.op == "call_function" and (found := earlier(node)) is not None:
            node.replace_all_uses_with(found)
    for node in reversed(gm.graph.nodes):
        if node.op == "call_function" and not node.users:
            gm.graph.erase_node(node)
    gm.recompile()
    ### END SOLUTION


# %% grade="simplify"
grade("simplify")

# %% [markdown] sitting="patterns"
# question: How does a compiler find `x * sigmoid(x)` and call it `silu`?
# reached: >-
#   It matches a small graph against a large one. Values inside a match must be private to it, and
#   of two that overlap one has to give way.

# %% [markdown] exercise="replace_pattern"
# title: Match a pattern and put another in its place
# minutes: 60
# difficulty: 4
# points: 6
# prerequisites: [interpret, share]
# teaches: >-
#   subgraph matching: what a placeholder may stand for, why values inside a match must be private,
#   and what happens where matches overlap.
# leaves out: patterns with several results, and operands that may change places.
# off limits: [torch.fx.replace_pattern, torch.fx.subgraph_rewriter.replace_pattern, torch.fx.subgraph_rewriter.replace_pattern_with_filters, torch.fx.passes.utils.matcher_utils.SubgraphMatcher]
# forbids: "PyTorch's own matcher and rewriter"

# %% [markdown]
# The library has a fast `silu(x)`, and the model says `x * sigmoid(x)`. The rewrite takes a
# **pattern**, a small graph, looks for it in a large one, and puts a **replacement** in its place.
# Attention is found in models like this (`torch/_inductor/fx_passes/fuse_attention.py`).


# %%
def silu_pattern(a):
    return a * torch.sigmoid(a)


pattern = make_fx(silu_pattern)(torch.ones(2)).graph
for node in pattern.nodes:
    print(node.op, node.name, node.args)

# %% [markdown]
# The placeholder `a_1` is a hole: it stands for any value. But it is one hole, used twice. In
# `x * sigmoid(y)` there is no match unless `x` and `y` are the same node.
#
# What if somebody else uses a value inside the match? Then it must be computed all the same, and
# the rewrite saves nothing. Such a match is none.
#
# **Predict.** `torch.fx.replace_pattern` does this for a living. How many matches has the pattern
# in this function?


# %%
def three_candidates(x, y):
    first = x * torch.sigmoid(x)
    gate = torch.sigmoid(y)
    second = y * gate
    third = x * torch.sigmoid(first)
    return first + second + third + gate


def count_matches():
    traced = fx.symbolic_trace(three_candidates)
    return len(fx.replace_pattern(traced, silu_pattern, lambda a: nn.functional.silu(a)))


predict(..., count_matches)

# %% [markdown]
# The second leaks `gate`, the third has two different values for `a`.
#
# **Write `replace_pattern(gm, pattern, replacement)`.** `pattern` and `replacement` are `fx.Graph`s
# with the same number of placeholders, which correspond by their order. Each returns one node's
# value; the pattern's is that of a call, and each of its nodes leads there. Change `gm.graph` in
# place and return the number of matches.
#
# Walk over the nodes that `gm.graph` has when you begin, from first to last. Where the pattern's last
# call matches the node, as the graph stands by then, the match is replaced at once. A match:
#
# - A call of the pattern stands for a node with the same `op`, the same `target`, as many arguments
#   and the same keywords, whose arguments match in turn, in lists too.
# - A placeholder stands for any node or constant, for the same one wherever it occurs. A pattern's
#   constant stands for itself. Constants are the same if type and `repr` are.
# - A value inside the match, that of any call but the last, has no user outside the match.
# - No node of the match came in with a replacement.
#
# Calls of the replacement are copied in where the last node stood; all who took that node's value take
# the new one, and the matched nodes go. The replacement may return a placeholder, if that stands for
# a node. `pattern` and `replacement` stay as they are, and `gm(...)` runs the new graph.
#
# <details><summary>Hint 1: from the end</summary>
#
# Start at the pattern's last call and go down its arguments, beside those of the node. Keep a dict from
# pattern node to what it stands for. Meet a pattern node again, and it must stand for the same.
#
# </details>
# <details><summary>Hint 2: users</summary>
#
# `node.users` has the output node among its keys. The values of your dict under the pattern's calls
# are the nodes of the match: every user of all but the last must be one of them.
#
# </details>
# <details><summary>Hint 3: copying</summary>
#
# `graph.node_copy(node, f)` copies a node from another graph; `f` says what each of its arguments is
# here. Inside `with graph.inserting_before(node)` it comes to stand there.
#
# </details>


# %% solution="replace_pattern"
def replace_pattern(gm: fx.GraphModule, pattern: fx.Graph, replacement: fx.Graph) -> int:
    """Replace each match of a pattern, in place, and return how many there were."""
    ### BEGIN SOLUTION

    def is_same(one: Any, other: Any) -> bool:
        if isinstance(one, fx.Node) or isinstance(other, fx.Node):
            return one is other
        return type(one) is type(other) and repr(one) == repr(other)

    def match(model: Any, found: Any, stands_for: dict[fx.Node, Any]) -> bool:
        """Say whether `found` matches, and write down what the pattern's nodes stand for."""
        if isinstance(model, list | tuple):
            return (
                isinstance(found, list | tuple)
                and len(model) == len(found)
                and all(match(*pair, stands_for) for pair in zip(model, found, strict=True))
            )
        if not isinstance(model, fx.Node):
            return is_same(model, found)
        if model in stands_for:
            return is_same(stands_for[model], found)
        stands_for[model] = found
        if model.op == "placeholder":
            return True
        return (
            isinstance(found, fx.Node)
            and found not in new
            and (model.op, model.target) == (found.op, found.target)
            and match(model.args, found.args, stands_for)
            and match(sorted(model.kwargs.items()), sorted(found.kwargs.items()), stands_for)
        )

    def copy_in(stands_for: dict[fx.Node, Any]) -> Any:
        """Copy the replacement's calls and return its value."""
        supplied = iter(stands_for[node] for node in pattern.nodes if node.op == "placeholder")
        values: dict[fx.Node, Any] = {}
        for node in replacement.nodes:
            if node.op == "placeholder":
                values[node] = next(supplied)
            elif node.op != "output":
                values[node] = gm.graph.node_copy(node, values.__getitem__)
                new.add(values[node])
        return values[last(replacement)]

    def last(graph: fx.Graph) -> fx.Node:
        return next(iter(reversed(graph.nodes))).args[0]

    new: set[fx.Node] = set()
    count = 0
    for node in list(gm.graph.nodes):
        stands_for: dict[fx.Node, Any] = {}
        if not match(last(pattern), node, stands_for):
            continue
        calls = [one for one in pattern.nodes if one.op not in ("placeholder", "output")]
        # two equal calls of the pattern may have found one node
        body = list(dict.fromkeys(stands_for[one] for one in calls))
        if any(user not in body for one in body if one is not node for user in one.users):
            continue
        count += 1
        with gm.graph.inserting_before(node):
            node.replace_all_uses_with(copy_in(stands_for))
        for one in reversed(body):  # users before what they use
            gm.graph.erase_node(one)
    gm.recompile()
    return count
    ### END SOLUTION


# %% grade="replace_pattern"
grade("replace_pattern")

# %% [markdown] sitting="fusion"
# question: Why are few large kernels faster than many small ones?
# reached: >-
#   They read and write memory less often. Calls may be put together as long as the kernels can
#   still be put in an order.

# %% [markdown] exercise="fuse"
# title: Group calls into kernels
# minutes: 45
# difficulty: 5
# points: 6
# prerequisites: [interpret]
# teaches: >-
#   vertical and horizontal fusion, and the one condition for both: the kernels can be put in an order.
# leaves out: >-
#   kernels that hold a sum or a product beside pointwise calls; how many registers a kernel needs;
#   whether calls that read nothing in common are better off together.
# off limits: []

# %% [markdown]
# A pointwise call such as `x + y` reads its inputs from memory, does one addition per element, and
# writes its result back: in float32, twelve bytes moved for each addition. So compilers **fuse** calls
# into one **kernel**, a loop over the elements that keeps values in registers:
#
# - **vertical** fusion joins a call with one that takes its result, which then need not be written;
# - **horizontal** fusion joins calls that are independent. They are started together, with one
#   **launch**, and what both read is read once.
#
# What a kernel computes and how its loop runs are two decisions. `compute` and `loop_nest` in
# chapter 3 kept them apart: the first said what an element is, the second in which order elements
# come. Fusion sits between the two. It decides which calls share a loop, and leaves it to the
# **schedule** to say how that loop is tiled, unrolled or spread over threads.
#
# Look: compile/stages#program=pointwise&stage=dynamo | A chain of pointwise calls: five results, of
# which one leaves the chain.
#
# Operators say of themselves whether they are pointwise:

# %%
for op in [
    aten.sin.default,
    aten.add.Tensor,
    aten.sum.dim_IntList,
    aten.mm.default,
    aten.t.default,
]:
    print(op, torch.Tag.pointwise in op.tags)

# %% [markdown]
# Softmax is a hard case for so simple a rule. `exp` and `div` are pointwise, of the same shape, and
# one takes the result of the other. But the sum stands between them, and needs all of `exp` before
# the first element of `div` can be computed.
#
# Draw: show_graph(make_fx(lambda x: (e := x.exp()) / e.sum())(torch.ones(4))) | `exp` and `div`
# are neighbours, and another way leads from one to the other.


# %%
def softmax(x):
    shifted = x - x.amax(1, keepdim=True)
    powers = shifted.exp()
    return powers / powers.sum(1, keepdim=True)


captured = make_fx(softmax, tracing_mode="fake")(torch.ones(4, 8))
calls = [node for node in captured.graph.nodes if node.op == "call_function"]
print([str(node.target).removeprefix("aten.") for node in calls])

# %% [markdown]
# **Predict.** Five calls, of which `amax` and `sum` are not pointwise. How many kernels are left?

# %%
predict(..., lambda: sum(torch.Tag.pointwise not in node.target.tags for node in calls) + 2)

# %% [markdown]
# `sub` and `exp` share one. `div` could share it only by waiting for `sum`, which waits for it.
#
# **Write `fuse(graph)`.** The graph has no writes and no random numbers; its calls are ATen operators
# with one result; nodes have `meta["val"]`. Return a list of kernels, each a list of nodes:
#
# - Each `call_function` node is in exactly one kernel.
# - A kernel of several calls has only operators with the tag `pointwise`, and their results all have
#   the same shape. Shapes of inputs do not matter: what is smaller is broadcast as it is read.
# - The kernels can run one after the other in the order of your list: a call comes after all calls
#   whose values it takes, in an earlier kernel or earlier in its own.
# - No two of your kernels could be one: if the two are joined, some rule above cannot be kept in
#   any order of kernels.
#
# Several answers may be right, some with more kernels than others. Leave the graph as it is.
#
# <details><summary>Hint 1: a graph of kernels</summary>
#
# Draw an arrow from kernel to kernel where a call in one takes a value of the other. There is an
# order if and only if the arrows make no cycle. `graphlib.TopologicalSorter` finds one or the other.
#
# </details>
# <details><summary>Hint 2: greedy</summary>
#
# Begin with each call on its own. Join any two that may be joined, and go on until no two may.
#
# </details>
# <details><summary>Hint 3: more than once</summary>
#
# Two kernels that could not be joined may be joinable later, when what stood between them has joined
# one of the two. So go over all pairs again until a whole round finds nothing.
#
# </details>


# %% solution="fuse"
def fuse(graph: fx.Graph) -> list[list[fx.Node]]:
    """Return the calls of a graph, grouped into kernels in an order in which they can run."""
    ### BEGIN SOLUTION
    place = {node: number for number, node in enumerate(graph.nodes)}

    def in_order(kernels: list[list[fx.Node]]) -> list[list[fx.Node]] | None:
        """Return kernels in an order in which they can run, or None if there is none."""
        home = {node: number for number, kernel in enumerate(kernels) for node in kernel}
        needs = {
            number: {home[s] for node in kernel for s in node.all_input_nodes if s in home}
            for number, kernel in enumerate(kernels)
        }
        # within a kernel values are passed on: that is no reason to wait
        needs = {number: others - {number} for number, others in needs.items()}
        try:
            return [kernels[number] for number in TopologicalSorter(needs).static_order()]
        except CycleError:
            return None

    def kind(kernel: list[fx.Node]) -> Any:
        """Return what two kernels must have in common to be joined."""
        node = kernel[0]
        return node.meta["val"].shape if torch.Tag.pointwise in node.target.tags else node

    kernels = [[node] for node in graph.nodes if node.op == "call_function"]
    found = True
    while found:
        found = False
        for one, other in itertools.combinations(kernels, 2):
            if kind(one) == kind(other):
                both = sorted(one + other, key=place.__getitem__)
                rest = [kernel for kernel in kernels if kernel is not one and kernel is not other]
                ordered = in_order([both, *rest])
                if ordered is not None:
                    kernels, found = ordered, True
                    break
    return kernels
    ### END SOLUTION


# %% grade="fuse"
grade("fuse")

# %% [markdown]
# What is gained can be counted before anything runs: the number of launches, and the values that go
# through memory. Per kernel, each value from outside is read once, and each value that is used
# outside is written once.


# %%
def gelu(x, bias):
    x = x + bias
    inner = (x + x * x * x * 0.044715) * 0.7978845608
    return x * 0.5 * (torch.tanh(inner) + 1), x.sum()


def traffic(graph, kernels):
    """Return how many numbers go through memory."""
    numbers = 0
    for kernel in kernels:
        taken = {source for node in kernel for source in node.all_input_nodes} - set(kernel)
        given = {node for node in kernel if set(node.users) - set(kernel)}
        numbers += sum(node.meta["val"].numel() for node in taken | given)
    return numbers


captured = make_fx(gelu, tracing_mode="fake")(torch.ones(64, 256), torch.ones(256))
calls = [node for node in captured.graph.nodes if node.op == "call_function"]
pointwise = [node for node in calls if torch.Tag.pointwise in node.target.tags]
others = [[node] for node in calls if node not in pointwise]
for name, kernels in [
    ("one kernel per call", [[node] for node in calls]),
    ("one for all pointwise calls", [pointwise, *others]),
]:
    print(f"{name:28} {len(kernels):2} kernels, {traffic(captured.graph, kernels):>9,} numbers")

# %% [markdown]
# The numbers count what a kernel reads and writes, not what a cache saves. They are a reason to fuse,
# not a promise of speed; a profiler has the last word.
#
# Here the fusion was mostly vertical: results stayed in registers. **Horizontal** fusion saves
# something else. AITemplate, a compiler for inference, has both: it puts pointwise calls and
# reductions into the kernel of the product before them, and it runs products that stand side by side
# in one kernel, even of different shapes. In PyTorch, `bmm` is one call for products of one shape.
# A third kind it calls *memory fusion*: a product writes its result to where the `cat`, `split` or `slice`
# behind it wants it. It makes C++ for CUDA, and for HIP, AMD's counterpart. (By its README; not run here.)
#
# Draw: show_graph(vertical=make_fx(lambda x: (x.sin() * 2).exp() + 1)(torch.ones(4)),
# horizontal=make_fx(lambda x, y, z: (x.sin(), y.cos(), z.exp()))(*torch.ones(3, 4))) | What each
# kind joins: calls along an arrow, or calls that no way connects.


# %%
def chain(x):
    return (x.sin() * 2).exp() + 1


def beside(xs, ws):
    return [x @ w for x, w in zip(xs, ws, strict=True)]


def stacked_first(xs, ws):
    return torch.bmm(torch.stack(xs), torch.stack(ws))


def count_bytes(name, function, *inputs, joined=False):
    graph = make_fx(function)(*inputs).graph
    calls = [node for node in graph.nodes if node.op == "call_function"]
    kernels = [calls] if joined else [[node] for node in calls]
    print(f"{name:24} kernels: {len(kernels)}  bytes: {traffic(graph, kernels) * 4:>6,}")


count_bytes("a chain, call by call", chain, torch.ones(64, 16))
count_bytes("a chain, fused", chain, torch.ones(64, 16), joined=True)
tiles = torch.ones(8, 8, 16), torch.ones(8, 16, 8)
apart = [list(each) for each in tiles]
count_bytes("eight products", beside, *apart)
count_bytes("one batched product", torch.bmm, *tiles)
count_bytes("stacked, then batched", stacked_first, *apart)

# %% [markdown]
# Vertical fusion saves bytes. Horizontal fusion of calls that share no input saves launches, and not a
# byte. If the matrices have to be stacked first, it even costs some. That is why a kernel that takes
# matrices where they lie is worth writing.

# %% [markdown] exercise="merge_matmuls"
# title: One product instead of three
# minutes: 45
# difficulty: 5
# points: 6
# prerequisites: [fuse]
# teaches: >-
#   that to merge calls means to move calls: what may be merged, and where the result must stand.
# leaves out: biases, batches, products that share the right operand, and whether it pays.
# off limits: []

# %% [markdown]
# An attention layer multiplies the same `x` by three weights. Side by side the weights are one
# matrix, and one large product does the work of three small ones:
#
# $$x\,[\,W_q \;\; W_k \;\; W_v\,] = [\,xW_q \;\; xW_k \;\; xW_v\,]$$
#
# As many multiplications as before, `x` read once, one launch. It is horizontal fusion for matrices.
#
# Look: matmul/costs#a=64x256&b=256x768&dtype=float32 | Three weights of 256 × 256, side by side.
# Make the result 256 wide, and the FLOPs are a third, and `x` is read as a whole even so.

# %%
x, wq, wk, wv = (torch.arange(n * 6.0).reshape(n, -1) for n in (1, 6, 6, 6))
product = x @ torch.cat([wq, wk, wv], 1)
print(torch.equal(product, torch.cat([x @ wq, x @ wk, x @ wv], 1)), product.shape)

# %% [markdown]
# In a graph there is more to it than the algebra. A weight may itself be the result of a call, and
# that call may come after the first product. Or it may *need* the first product:


# %%
def chained(x, w1, w2):
    first = x @ w1
    return x @ (w2 + first.t())


captured = make_fx(chained, tracing_mode="fake")(
    torch.ones(2, 2), torch.ones(2, 2), torch.ones(2, 2)
)
for node in captured.graph.nodes:
    if node.op == "call_function":
        print(node.name, node.target, node.args)

# %% [markdown]
# Both products take `x`, and no order of calls lets one product do both.
#
# **Predict.** `a = x @ v`, `p = y @ w`, `q = y @ sin(a)`, `b = x @ cos(p)`. `a` and `b` share `x`, `p`
# and `q` share `y`; in neither pair one needs the other. What is the smallest number of products?

# %%
four = {"a": [], "p": [], "q": ["a"], "b": ["p"]}


def smallest():
    """Try both merges, alone and together."""
    best = len(four)
    for merges in [[("a", "b")], [("p", "q")], [("a", "b"), ("p", "q")]]:
        home = {name: next((m for m in merges if name in m), name) for name in four}
        needs = {}
        for name, others in four.items():
            needs.setdefault(home[name], set()).update(home[other] for other in others)
        with suppress(CycleError):
            best = min(best, len(list(TopologicalSorter(needs).static_order())))
    return best


predict(..., smallest)

# %% [markdown]
# Either pair may be merged. Merge one, and the other two depend on each other.
#
# **Write `merge_matmuls(gm)`.** The graph has no writes and no random numbers, its calls are ATen
# operators with one result, and its nodes have `meta["val"]`. Change it in place:
#
# - `aten.mm.default` calls with the same node as left operand become one `mm`, of that node and a
#   `cat` of their right operands along dimension 1. Users of each take its columns of the product.
# - At the end there are no two `mm` calls left with the same left operand of which neither needs the
#   other's value, directly or through other calls. Where two merges exclude each other, either is
#   right, also if more products are left.
# - All products together do as many multiplications as before.
# - Nodes stand in an order in which they can run; move them where it takes that. `gm(...)` runs the
#   new graph.
#
# <details><summary>Hint 1: what may be merged</summary>
#
# Collect all that a product needs: its inputs, theirs, and so on. A group may be merged if no member
# needs another. Look again after each merge, on the graph as it is by then.
#
# </details>
# <details><summary>Hint 2: where it stands</summary>
#
# Put the new product where the first of the group stood. Whatever the other weights need and stands
# after that, move before it, in the order it has: `first.prepend(node)`. None of that needs a member of
# the group, or the group could not have been merged.
#
# </details>
# <details><summary>Hint 3: columns</summary>
#
# `node.meta["val"].shape[1]` is the width of each old product, and `aten.slice.Tensor(product, 1, start,
# end)` its columns.
#
# </details>


# %% solution="merge_matmuls"
def merge_matmuls(gm: fx.GraphModule) -> None:
    """Merge products of one matrix into one product, as far as their order allows, in place."""
    ### BEGIN SOLUTION
    graph = gm.graph

    def needs(nodes: list[fx.Node]) -> set[fx.Node]:
        """Return all nodes whose values must be there before those of `nodes`."""
        found: set[fx.Node] = set()
        waiting = [source for node in nodes for source in node.all_input_nodes]
        while waiting:
            node = waiting.pop()
            if node not in found:
                found.add(node)
                waiting += node.all_input_nodes
        return found

    def group_of(first: fx.Node, products: list[fx.Node]) -> list[fx.Node]:
        """Return products of the same matrix, from `first` on, that do not need each other."""
        group: list[fx.Node] = []
        for node in products[products.index(first) :]:
            # what stands before cannot need `node`, so that one direction is enough
            if node.args[0] is first.args[0] and needs([node]).isdisjoint(group):
                group.append(node)
        return group

    def merge(group: list[fx.Node]) -> None:
        first, ahead = group[0], needs(group)
        nodes = list(graph.nodes)
        for node in nodes[nodes.index(first) :]:
            if node in ahead:
                first.prepend(node)
        with graph.inserting_before(first):
            weights = graph.call_function(aten.cat.default, ([n.args[1] for n in group], 1))
            product = graph.call_function(aten.mm.default, (first.args[0], weights))
            start = 0
            for node in group:
                end = start + node.meta["val"].shape[1]
                columns = graph.call_function(aten.slice.Tensor, (product, 1, start, end))
                node.replace_all_uses_with(columns)
                start = end
        for node in group:
            graph.erase_node(node)

    while True:
        products = [node for node in graph.nodes if node.target is aten.mm.default]
        groups = (group_of(first, products) for first in products)
        group = next((group for group in groups if len(group) > 1), None)
        if group is None:
            break
        merge(group)
    gm.recompile()
    ### END SOLUTION


# %% grade="merge_matmuls"
grade("merge_matmuls")

# %% [markdown] sitting="two-graphs"
# question: Where do the forward and the backward graph come from?
# reached: >-
#   From one joint graph, which is cut. What crosses the cut is saved, and the rest of what
#   backward needs is computed again.

# %% [markdown]
# ## Two graphs from one
#
# Dynamo hands over a graph of the forward pass. Training needs a backward pass too. AOTAutograd
# makes it **ahead of time**: it runs the forward and autograd's backward once, on fake tensors, and
# writes down every operator of both. The result is one graph, the **joint graph**. It takes the
# inputs, called **primals**, and the gradients of the outputs, called **tangents**. It returns the
# outputs, and then a gradient for each primal, or `None`.
#
# A **partitioner** then cuts the joint graph into a forward graph and a backward graph. What the
# forward computes and the backward needs goes over the cut: it is **saved**.
#
# `aot_function` does all this for a plain function, without Dynamo. It takes the partitioner as an
# argument, so a partitioner of your own can look at the joint graph. `nop` is a compiler that returns
# the graph as it is.


# %%
def look(joint, joint_inputs, *, num_fwd_outputs, **options):
    for node in joint.graph.nodes:
        if node.op != "output":
            print(f"{node.name:12}{node.op:15}{node.target!s:26}{list(node.all_input_nodes)}")
    print("returns", joint.graph.output_node().args[0], " forward outputs:", num_fwd_outputs)
    return default_partition(joint, joint_inputs, num_fwd_outputs=num_fwd_outputs, **options)


def scaled_sine(x, scale):
    return (x * scale).sin()


x, scale = torch.ones(2, 3, requires_grad=True), torch.full((3,), 2.0)
traced = aot_function(scaled_sine, fw_compiler=nop, bw_compiler=nop, partition_fn=look)
traced(x, scale).sum().backward()

# %% [markdown]
# The same as a picture. Cut corners mark what needs a tangent, and a double frame what has to be kept
# for it if nothing is computed twice.


# %%
def joint_of(function, *inputs):
    joints = []

    def keep(joint, joint_inputs, **options):
        joints.append(joint)
        return default_partition(joint, joint_inputs, **options)

    aot_function(function, fw_compiler=nop, bw_compiler=nop, partition_fn=keep)(*inputs)
    return joints[0]


show_graph(joint_of(scaled_sine, x, scale))

# %% [markdown]
# The names are for reading. What counts is where a node stands: which inputs it comes from, and which
# outputs need it. Find the cosine. No tangent goes into it, and no forward output comes out of it. It
# may be computed in the forward, and saved, or in the backward, from what the forward saved. Such
# nodes are what partitioners play with.
#
# Look: compile/stages#program=print&stage=joint&graph=2 | Another joint graph: what has cut corners
# needs the tangent, all else could run in the forward.
#
# Functions that change their inputs in place are no trouble: the joint graph is **functional**, it
# changes nothing. What should be in the input afterwards is one more output. The code around the graph
# copies it there. `num_fwd_outputs` counts it. (With `keep_inference_input_mutations=True`, as Inductor
# asks for, the copy is in the graph: a `copy_` at its end.)


# %%
def counting_up(count, x):
    count.add_(1)
    return count * x


traced = aot_function(counting_up, fw_compiler=nop, bw_compiler=nop, partition_fn=look)
count = torch.zeros(2)
traced(count, torch.ones(2, requires_grad=True))
print(count)

# %% [markdown]
# And if one tensor is handed in **twice**? AOTAutograd makes two primals of it, and autograd adds up their
# gradients. Only where one of them is written to must it know that the other changes too:


# %%
def primals_for_one_tensor(function):
    counts = []

    def count_primals(graph_module, example_inputs):
        counts.append(len(example_inputs))
        return graph_module

    x = torch.ones(3)
    aot_function(function, fw_compiler=count_primals, bw_compiler=nop)(x, x)
    return counts[0]


print("both are read:    ", primals_for_one_tensor(lambda a, b: a * b))
print("one is written to:", primals_for_one_tensor(lambda a, b: a.add_(1) * b))

# %% [markdown]
# Dynamo comes first. It sees that both are one, hands on one input, and guards that they stay one.
#
# **Predict.** A function returns `x.sin()`, `x > 0` and `x.detach()`; `x` requires grad. How many
# tangents does its joint graph take?


# %%
def tangents_of_three():
    def several(x):
        return x.sin(), x > 0, x.detach()

    seen = []

    def count_tangents(joint, joint_inputs, **options):
        seen.append(len(joint_inputs[1]))
        return default_partition(joint, joint_inputs, **options)

    traced = aot_function(several, fw_compiler=nop, bw_compiler=nop, partition_fn=count_tangents)
    traced(torch.ones(2, requires_grad=True))
    return seen[0]


predict(..., tangents_of_three)

# %% [markdown] exercise="read_joint"
# title: Read a joint graph
# minutes: 35
# difficulty: 2
# points: 7
# short: true
# prerequisites: []
# teaches: >-
#   what a joint graph takes and returns, and which of its nodes belong to the forward, to the
#   backward, or to whichever of them the partitioner likes.
# leaves out: dynamic shapes, tensor subclasses.
# off limits: []

# %% [markdown]
# **Write `read_joint(function, *inputs)`.** Capture the joint graph of `function` and return a dict:
#
# | key | value |
# |---|---|
# | `"primals"` | number of primals |
# | `"tangents"` | number of tangents |
# | `"outputs"` | number of forward outputs, changed inputs included |
# | `"gradients"` | a list with one `bool` for each primal, in order: does the joint graph return a gradient for it? |
# | `"forward"` | operators that the forward outputs need |
# | `"backward"` | operators that depend on a tangent |
# | `"either"` | all other operators |
#
# The last three are lists of `str(node.target)` for nodes with `node.op == "call_function"`, one entry
# for each node, in any order. At least one input requires grad, and at least one output has a gradient.
#
# `function` may change its own inputs in place. The tensors in `inputs` must be unchanged when
# `read_joint` returns.
#
# <details><summary>Hint 1: who are the tangents?</summary>
#
# The placeholders are the primals, then the tangents. `joint_inputs` is a pair of lists, one
# for each.
#
# </details>
# <details><summary>Hint 2: two walks</summary>
#
# From the forward outputs walk up, over `node.all_input_nodes`: what you meet is forward. Nodes come
# in an order in which inputs come first, so one pass down the list finds all that depend on a tangent.
#
# </details>
# <details><summary>Hint 3: inputs left alone</summary>
#
# While the graph is traced, `function` gets fake tensors. It is the call of the compiled function that
# changes your inputs. Call it on copies, or leave before it happens: an exception raised in
# `partition_fn` comes out of the call.
#
# </details>


# %% solution="read_joint"
def read_joint(function: Callable, *inputs: torch.Tensor) -> dict:
    """Return how many inputs and outputs a joint graph has, and which operators belong where.

    inputs: tensors, at least one of which requires grad; they are not changed
    """

    ### BEGIN SOLUTION
    class Seen(Exception):
        """Ends the call before the compiled function runs."""

    found = []

    def see(joint, joint_inputs, *, num_fwd_outputs, **options):
        found.append((joint.graph, len(joint_inputs[0]), num_fwd_outputs))
        raise Seen

    with suppress(Seen):
        aot_function(function, fw_compiler=nop, bw_compiler=nop, partition_fn=see)(*inputs)
    graph, primals, outputs = found[0]
    placeholders = [node for node in graph.nodes if node.op == "placeholder"]
    returned = graph.output_node().args[0]

    forward, waiting = set(), [one for one in returned[:outputs] if one is not None]
    while waiting:  # up, from the outputs
        node = waiting.pop()
        if node not in forward:
            forward.add(node)
            waiting += node.all_input_nodes
    backward = set(placeholders[primals:])
    for node in graph.nodes:  # down, from the tangents
        if backward.intersection(node.all_input_nodes):
            backward.add(node)

    operators = {"forward": [], "backward": [], "either": []}
    for node in graph.nodes:
        if node.op == "call_function":
            kind = "forward" if node in forward else "backward" if node in backward else "either"
            operators[kind].append(str(node.target))
    return {
        "primals": primals,
        "tangents": len(placeholders) - primals,
        "outputs": outputs,
        "gradients": [one is not None for one in returned[outputs:]],
        **operators,
    }
    ### END SOLUTION


# %% grade="read_joint"
grade("read_joint")

# %% [markdown]
# ## Smaller operators first
#
# ATen has more than 1,500 operators (`torch._C._dispatch_get_all_op_names()` lists them, with all
# their overloads). A backend does not want to know them all, so many are **decomposed** into a few
# simple ones. A table says how: an operator, and a function of the same arguments. When does this
# happen, before the joint graph is cut or after?


# %%
def operators_seen(table):
    """Return the operators that the partitioner gets to see."""
    seen = []

    def cut(joint, joint_inputs, **options):
        seen.extend(str(n.target) for n in joint.graph.nodes if n.op == "call_function")
        return default_partition(joint, joint_inputs, **options)

    traced = aot_function(torch.nn.functional.silu, nop, nop, cut, table)
    traced(torch.ones(3, requires_grad=True)).sum().backward()
    return seen


def silu(x):
    return x * x.sigmoid()


def silu_backward(grad, x):
    gate = x.sigmoid()
    return grad * gate * (1 + x * (1 - gate))


print(operators_seen({}))
print(operators_seen({aten.silu.default: silu, aten.silu_backward.default: silu_backward}))

# %% [markdown]
# Draw: show_bars({"`silu` whole": len(operators_seen({})), "taken apart":
# len(operators_seen({aten.silu.default: silu, aten.silu_backward.default: silu_backward}))},
# "operators") | What the partitioner has to choose from, before and after.
#
# Before. Decompositions are applied while the joint graph is traced, so a partitioner can save or
# recompute the parts of what was one operator.
#
# **Predict.** Only `silu` is in the table, as `x * x.sigmoid()`, which autograd can differentiate. Is
# `silu_backward` still in the joint graph, `True` or `False`?

# %%
predict(..., lambda: "aten.silu_backward.default" in operators_seen({aten.silu.default: silu}))

# %% [markdown]
# Autograd comes first: it sees `silu` and calls for `silu_backward`. The table is looked up below it. So
# each operator that should go needs its own entry, those of the backward too.

# %% [markdown]
# ## What the cut costs
#
# A saved tensor stays in memory from forward to backward. Something that is recomputed costs time
# instead. The partitioner decides. Two of them come with PyTorch: `default_partition` saves all that
# the backward reads of the forward's values, and `min_cut_rematerialization_partition` looks for a
# cut with few bytes. `aot_function` takes the first one unless you say otherwise; `torch.compile`
# takes the second, with Inductor (`torch/_inductor/compile_fx.py`) and with `"aot_eager"`.


# %%
def costs_of(function, partition_fn, *inputs):
    """Return the bytes that go over the cut, and the number of operators on each side."""
    costs = {}

    def forward_compiler(module, inputs):
        # the first result is the function's own; it stands before what is saved
        values = [node.meta["val"] for node in module.graph.output_node().args[0][1:]]
        costs["saved bytes"] = sum(value.numel() * value.element_size() for value in values)
        costs["forward"] = calls_in(module.graph)
        return make_boxed_func(module.forward)

    def backward_compiler(module, inputs):
        costs["backward"] = calls_in(module.graph)
        return make_boxed_func(module.forward)

    aot_function(function, forward_compiler, backward_compiler, partition_fn)(*inputs).backward()
    return costs


def calls_in(graph):
    return sum(node.op == "call_function" for node in graph.nodes)


def six_sines(x):
    for _ in range(6):
        x = x.sin()
    return x.sum()


x = torch.ones(1000, requires_grad=True)
print(costs_of(six_sines, default_partition, x))

# %% [markdown]
# **Predict.** The min-cut partitioner saves one tensor of 4,000 bytes: `x` itself. How many operators
# does its backward run? The one above ran 13.

# %%
predict(..., lambda: costs_of(six_sines, min_cut_rematerialization_partition, x)["backward"])

# %% [markdown]
# Fewer bytes, more operators. A min-cut saves memory. It saves time only if what is recomputed is
# cheaper than reading what would have been saved: several pointwise operators fused into one kernel
# read their input once.
#
# Look: compile/cut#program=pointwise&stage=partition&cut=default | `default_partition` saves what
# the backward reads. Move the slider for a min-cut, and fewer bytes are saved for operators that
# run twice.
#
# One more thing follows from the cut. The backward graph is called by one node of autograd, and
# nobody recorded how it computes. So there is nothing to differentiate a second time:

# %%
compiled = torch.compile(lambda x: (x**4).sum(), backend="aot_eager")
x = torch.ones(3, requires_grad=True)
(gradient,) = torch.autograd.grad(compiled(x), x, create_graph=True)
try:
    torch.autograd.grad(gradient.sum(), x)
except RuntimeError as error:
    print(str(error).split(". ")[0])

# %% [markdown] exercise="partition"
# title: Cut a joint graph in two
# minutes: 45
# difficulty: 4
# points: 8
# prerequisites: [read_joint]
# teaches: >-
#   how a forward and a backward graph are made from a joint graph, what must be saved, what may be
#   recomputed, and why random operators run once.
# leaves out: choosing what to save; symbolic sizes; operators that change their inputs.
# off limits: [partitioners, functorch.compile.default_partition, torch._functorch.partitioners.default_partition, torch._functorch.partitioners._extract_fwd_bwd_modules]
# forbids: "PyTorch's own partitioners"

# %% [markdown]
# **Write `partition(joint, joint_inputs, *, num_fwd_outputs, may_save)`.** It returns a pair of
# `fx.GraphModule`s, forward and backward.
#
# - The **forward** takes the primals. It returns the forward outputs, and after them the saved values.
# - The **backward** takes the saved values in the same order, and after them all tangents, also one that
#   nothing reads. It returns what the joint graph returns after the forward outputs, `None` included.
#
# A policy says what may be saved: `may_save(node)` returns a `bool` for a node of the joint graph.
# The backward goes up from the gradients and takes what may be saved; the rest it computes.
#
# - A primal may always be saved.
# - Any other value may be saved if the forward outputs need it (so it is computed anyway), and
#   `may_save` allows it.
# - An operator may return a tuple, such as `aten.max.dim`. A tuple cannot be saved. Its items can: if the
#   forward runs such an operator, every `operator.getitem` of it counts as needed by the forward.
# - What comes from a random operator that the forward runs is saved, whatever `may_save` says. Run
#   again, it would draw other numbers. `torch.Tag.nondeterministic_seeded in node.target.tags` is true
#   of random operators.
#
# Save only what the backward reads, and each value once. Each graph runs only what it needs. Do not
# change the joint graph. `node.meta` must come along, for PyTorch reads it afterwards.
#
# <details><summary>Hint 1: three sets</summary>
#
# First, what the forward outputs need: a walk up to the primals. Then, what the backward meets: a walk
# up from the gradients that stops at what may be saved. Where it stopped is what is saved. Last, the
# forward needs a little more than at first: the items that are saved.
#
# </details>
# <details><summary>Hint 2: building a graph</summary>
#
# Make an empty `fx.Graph()`. Add `graph.placeholder(name)` for each input, and keep a dict from old nodes
# to new ones. Go through the joint graph in order and copy what belongs there by
# `graph.node_copy(node, copies.__getitem__)`, which copies `meta` too. End with `graph.output(...)` and
# `fx.GraphModule(joint, graph)`.
#
# </details>
# <details><summary>Hint 3: items</summary>
#
# The item that the backward needs of `native_dropout` is its mask. The forward outputs do not need it:
# no walk up from them meets it. Add to the first set every `getitem` whose input is in it, before you ask
# what is kept. And an item of a random operator is random itself.
#
# </details>


# %% solution="partition"
def partition(
    joint: fx.GraphModule,
    joint_inputs: tuple[Sequence, Sequence],
    *,
    num_fwd_outputs: int,
    may_save: Callable[[fx.Node], bool],
) -> tuple[fx.GraphModule, fx.GraphModule]:
    """Return the forward and the backward of a joint graph.

    joint_inputs: primals and tangents, as fake tensors
    may_save: says of a node whether its value may be saved
    """
    ### BEGIN SOLUTION
    nodes = list(joint.graph.nodes)
    placeholders = [node for node in nodes if node.op == "placeholder"]
    count = len(joint_inputs[0])
    primals, tangents = placeholders[:count], placeholders[count:]
    returned = joint.graph.output_node().args[0]
    outputs, gradients = returned[:num_fwd_outputs], returned[num_fwd_outputs:]

    def walk_up(starts, stops):
        met, waiting = set(), [one for one in starts if one is not None]
        while waiting:
            node = waiting.pop()
            if node not in met:
                met.add(node)
                if not stops(node):
                    waiting += node.all_input_nodes
        return met

    def is_random(node):
        if node.target is operator.getitem:
            return is_random(node.args[0])
        return torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())

    computed = walk_up(outputs, lambda node: False)
    for node in nodes:  # an item of what is computed costs nothing
        if node.target is operator.getitem and node.args[0] in computed:
            computed.add(node)

    def is_kept(node):
        if node in placeholders:
            return True
        if node not in computed or isinstance(node.meta["val"], (tuple, list)):
            return False
        return is_random(node) or may_save(node)

    late = walk_up(gradients, is_kept)
    saved = [node for node in nodes if node in late and is_kept(node) and node not in tangents]
    early = walk_up([*outputs, *saved], lambda node: False)

    def module(inputs, body, results):
        graph, copies = fx.Graph(), {}
        for node in inputs:
            copies[node] = graph.placeholder(node.name)
            copies[node].meta = node.meta.copy()
        for node in nodes:
            if node in body and node not in copies:
                copies[node] = graph.node_copy(node, copies.__getitem__)
        graph.output(tuple(copies.get(node) for node in results))
        return fx.GraphModule(joint, graph)

    forward = module(primals, early, [*outputs, *saved])
    return forward, module([*saved, *tangents], late, gradients)
    ### END SOLUTION


# %% grade="partition"
grade("partition")

# %% [markdown]
# Now a policy is one line: everything, nothing, or only what is dear to compute again, which are
# matrix products. Each tensor below has 256 bytes.


# %%
def small_network(x, first, second):
    return ((x @ first).sigmoid().sin().exp() @ second).sum()


def cut_by(policy):
    def cut(joint, joint_inputs, *, num_fwd_outputs, **options):
        return partition(joint, joint_inputs, num_fwd_outputs=num_fwd_outputs, may_save=policy)

    return cut


tensors = [torch.ones(8, 8, requires_grad=True) for _ in range(3)]
policies = {
    "everything": lambda node: True,
    "products": lambda node: node.target is aten.mm.default,
    "nothing": lambda node: False,
}
if written("partition"):
    for name, policy in policies.items():
        print(f"{name:11}", costs_of(small_network, cut_by(policy), *tensors))

# %% [markdown] sitting="cheapest"
# question: What should be saved for backward, and what is none of the compiler's business?
# reached: >-
#   The fewest bytes are a minimum cut. What should not be traced becomes an operator with a fake
#   kernel and a backward of its own.

# %% [markdown]
# ## The cheapest cut
#
# Which values should be saved, so that the fewest bytes go over the cut? This is a problem with a
# name. Think of water that flows from the primals to the nodes that depend on a tangent. Each value is
# a pipe as wide as its bytes. Saving a value closes its pipe. The cheapest set of pipes that stops all
# water is a **minimum cut**, and it is found in polynomial time.
#
# `networkx` knows minimum cuts of edges. An edge without a capacity is infinitely wide: it is never cut.

# %%
example = networkx.DiGraph()
example.add_edge("source", "a")
example.add_edge("a", "b", capacity=3)
example.add_edge("b", "c", capacity=1)
example.add_edge("a", "c", capacity=1)
example.add_edge("c", "sink")
width, (upper, lower) = networkx.minimum_cut(example, "source", "sink")
print(width, sorted(upper), sorted(lower))

# %% [markdown]
# Draw: show_bars({f"{a} to {b}" + (", closed" if a in upper and b in lower else ""):
# data["capacity"] for a, b, data in example.edges(data=True) if "capacity" in data}) | The pipes,
# as wide as they are. Two narrow ones are closed, and the wide one may stay open.
#
# The graph has widths at its edges; our widths belong to nodes. So a node becomes two, one for what
# goes in and one for what comes out, with an edge between them that is as wide as its bytes.

# %% [markdown] exercise="min_cut"
# title: Find the cheapest cut
# minutes: 45
# difficulty: 5
# points: 7
# prerequisites: [partition]
# teaches: >-
#   recomputation as a minimum cut: what the network's pipes, source and sink are, and which operators
#   must never run twice.
# leaves out: >-
#   the time that recomputation costs; operators that return tuples; PyTorch's further rules, which
#   forbid some recomputation for speed.
# off limits: [partitioners, torch._functorch.partitioners.solve_min_cut]
# forbids: "PyTorch's own min-cut partitioner"

# %% [markdown]
# **Write `min_cut(joint, joint_inputs, *, num_fwd_outputs, heavy)`.** Return a list of the nodes to be
# saved, each once, with the fewest bytes in all. If several sets have as few, return any of them. A node
# has `value.numel() * value.element_size()` bytes, where `value` is `node.meta["val"]`, a tensor.
#
# - Any node that depends on no tangent may be saved: a primal, what the forward outputs need, or what only
#   the backward needs.
# - The backward gets the saved values and the tangents. All else it computes. It has no primal that is not
#   saved.
# - If the forward outputs need a node, and its `target` is in the set `heavy`, or it is a random operator
#   (`torch.Tag.nondeterministic_seeded in node.target.tags`), the backward must not compute it again.
#
# The backward must compute every node that depends on a tangent, and every gradient that is not `None`.
# Do not change the joint graph. No operator in it returns a tuple.
#
# <details><summary>Hint 1: the source</summary>
#
# The source stands for what the backward cannot get by computing. That is the primals, and the operators
# that must not run again. An edge without capacity leads from the source into each of them.
#
# </details>
# <details><summary>Hint 2: the sink</summary>
#
# The nodes that depend on a tangent are all one: the sink. Whatever they read has an edge without capacity
# to the sink.
#
# </details>
# <details><summary>Hint 3: reading the cut</summary>
#
# `minimum_cut` returns the width and two sets of nodes. A value is saved if its inward half is in the first
# set and its outward half in the second. Add source and sink as nodes first: there may be no edge to them.
#
# </details>


# %% solution="min_cut"
def min_cut(
    joint: fx.GraphModule,
    joint_inputs: tuple[Sequence, Sequence],
    *,
    num_fwd_outputs: int,
    heavy: Collection[Callable],
) -> list[fx.Node]:
    """Return the nodes of a joint graph to save, with the fewest bytes.

    joint_inputs: primals and tangents
    heavy: operators that must not be computed again
    """
    ### BEGIN SOLUTION
    nodes = [node for node in joint.graph.nodes if node.op != "output"]
    placeholders = [node for node in nodes if node.op == "placeholder"]
    returned = joint.graph.output_node().args[0]
    count = len(joint_inputs[0])

    late = set(placeholders[count:])
    for node in nodes:  # inputs come first, so one pass is enough
        if late.intersection(node.all_input_nodes):
            late.add(node)
    needed, waiting = set(), list(returned[:num_fwd_outputs])
    while waiting:
        node = waiting.pop()
        if node not in needed:
            needed.add(node)
            waiting += node.all_input_nodes

    def cannot_repeat(node):
        if node.op == "placeholder":
            return True
        is_random = torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())
        return node in needed and (node.target in heavy or is_random)

    pipes = networkx.DiGraph()
    pipes.add_nodes_from(["source", "sink"])
    early = [node for node in nodes if node not in late]
    for node in early:
        value = node.meta["val"]
        width = value.numel() * value.element_size()
        pipes.add_edge(("in", node), ("out", node), capacity=width)
        if cannot_repeat(node):
            pipes.add_edge("source", ("in", node))
        for user in node.users:
            if user in late:
                pipes.add_edge(("out", node), "sink")
            elif user.op != "output":
                pipes.add_edge(("out", node), ("in", user))
        if node in returned[num_fwd_outputs:]:
            pipes.add_edge(("out", node), "sink")
    _, (upper, lower) = networkx.minimum_cut(pipes, "source", "sink")
    return [node for node in early if ("in", node) in upper and ("out", node) in lower]
    ### END SOLUTION


# %% grade="min_cut"
grade("min_cut")

# %% [markdown]
# Put the two together: your cut decides, your partition builds. Beside it stands PyTorch's.


# %%
def cheapest(joint, joint_inputs, *, num_fwd_outputs, **options):
    saved = min_cut(joint, joint_inputs, num_fwd_outputs=num_fwd_outputs, heavy={aten.mm.default})
    return partition(
        joint, joint_inputs, num_fwd_outputs=num_fwd_outputs, may_save=lambda node: node in saved
    )


def shrinking(x):
    return x.sum(1).sin().exp().sum()


examples = [
    (six_sines, [torch.ones(1000, requires_grad=True)]),
    (small_network, tensors),
    (shrinking, [torch.ones(1000, 4, requires_grad=True)]),
]
if written("partition", "min_cut"):
    for function, inputs in examples:
        for cut in (default_partition, min_cut_rematerialization_partition, cheapest):
            print(f"{function.__name__:14}{cut.__name__:37}", costs_of(function, cut, *inputs))

# %% [markdown]
# PyTorch saves more than it must, on purpose. It has rules that forbid some recomputation because it
# would take too long: of reductions, of long chains of pointwise operators, and of what backward would
# have to write to memory first, for an operator that does not fuse. In `shrinking` the last one counts.
# Switch these rules off, and its cut has as many bytes as yours. (The switches are part of PyTorch's
# inside. These are their names in torch 2.13.0.)
#
# Draw: show_bars({rule: functorch_config.patch({f"ban_recompute_{rule.replace(' ', '_')}":
# False})(costs_of)(shrinking, min_cut_rematerialization_partition, *examples[2][1])["saved bytes"]
# for rule in ("reductions", "used far apart", "long fusible chains", "materialized backward", "not
# in allowlist")}, "bytes") | What PyTorch saves of `shrinking`, each time without one of its
# rules.

# %%
rules = {
    "ban_recompute_reductions": False,
    "ban_recompute_used_far_apart": False,
    "ban_recompute_long_fusible_chains": False,
    "ban_recompute_materialized_backward": False,
    "ban_recompute_not_in_allowlist": False,
}
if written("partition", "min_cut"):
    for function, inputs in examples:
        with functorch_config.patch(rules):
            theirs = costs_of(function, min_cut_rematerialization_partition, *inputs)
        ours = costs_of(function, cheapest, *inputs)
        print(f"{function.__name__:14}", theirs["saved bytes"], ours["saved bytes"])

# %% [markdown]
# ## A budget of memory
#
# There is a setting for those who need memory more than time: `activation_memory_budget`, from 1
# (PyTorch's usual cut) to 0 (recompute all, from the inputs). Between them PyTorch chooses what to
# recompute by an estimate of what it costs, in floating-point operations unless you say otherwise
# (`activation_memory_budget_runtime_estimator` in `torch/_functorch/config.py`).
#
# **Predict.** With a budget of 0, how many bytes does `shrinking` save? With a budget of 1 it is 8,000.


# %%
def bytes_under(budget, function, inputs):
    with functorch_config.patch(activation_memory_budget=budget):
        return costs_of(function, min_cut_rematerialization_partition, *inputs)["saved bytes"]


predict(..., lambda: bytes_under(0, *examples[2]))

# %%
for function, inputs in examples:
    saved = [bytes_under(budget, function, inputs) for budget in (1, 0.5, 0)]
    print(f"{function.__name__:14} budget 1, 0.5, 0: {saved}")

# %% [markdown]
# A budget of 0 is a rule, not a minimum: it keeps the inputs and nothing else. Where the inputs are
# larger than what is made of them, it costs memory and time.
#
# Look: compile/cut#program=loop&stage=partition&cut=0.4 | Three rounds of a product and a `tanh`
# under a budget of 0.4. Move it, and see what is saved and what is computed twice.

# %% [markdown]
# ## An operator of your own
#
# Some code is not meant to be traced: a call into another library, or a loop over many rows that would
# be unrolled into thousands of nodes. Here is a filter. Each row of the result is the row of `x` plus a
# part of the result's row before.


# %%
def filtered(x, keep):
    rows, last = [], [0.0] * x.shape[1]
    for row in x.tolist():  # plain Python numbers: nothing that Dynamo could put into a graph
        last = [keep * before + now for before, now in zip(last, row, strict=True)]
        rows.append(last)
    return torch.tensor(rows, dtype=x.dtype)


x = torch.tensor([[1.0, 8.0], [0.0, 0.0], [0.0, 4.0]])
print(filtered(x, 0.5).tolist())
try:
    torch.compile(filtered, backend="eager", fullgraph=True)(x, 0.5)
except Exception as error:
    print(type(error).__name__)

# %% [markdown]
# Draw: show_curves({name: [(t, row[0]) for t, row in enumerate(f(torch.tensor([[1.0 if t in (2,
# 9) else 0.0] for t in range(16)]), 0.5).tolist())] for name, f in (("result", filtered), ("x",
# lambda x, keep: x))}, "row", "") | Two impulses, and what the filter makes of them: each row
# keeps half of the one before.
#
# `torch.library.custom_op` makes an **operator** of a function. Dynamo and AOTAutograd put it into their
# graphs as one node and do not look inside. So they must be told what they would have found there:
#
# - whether it changes an argument (`mutates_args`);
# - what comes out, by shape, dtype and strides, for inputs without values: the **fake kernel**;
# - how the gradient is computed: the **backward**, and what it needs from the forward.
#
# None of it is checked when you declare it. `torch.library.opcheck` compares promises with facts.


# %%
@torch.library.custom_op("undertorch::plus_one", mutates_args=())
def plus_one(x: torch.Tensor) -> torch.Tensor:
    return x.contiguous() + 1


@plus_one.register_fake
def _(x):
    return torch.empty_like(x)  # keeps the strides of x


def check_of(x):
    return torch.library.opcheck(plus_one, (x,), raise_exception=False)["test_faketensor"]


print(check_of(torch.ones(2, 3)))

# %% [markdown]
# **Predict.** Is the same check content with a transposed input, `"SUCCESS"`, or does it return an error,
# `"OpCheckError"`?

# %%
predict(..., lambda: check_of(torch.ones(2, 3)) and type(check_of(torch.ones(2, 3).t())).__name__)

# %% [markdown]
# Draw: show_storage(is_made=plus_one(torch.arange(6.0).view(2, 3).t()),
# is_promised=(torch.arange(6.0).view(2, 3) + 1).t()) | Both have shape 3, 2 and the same
# elements. What is made lies in its own order, what was promised lies as the input does.
#
# A false promise shows much later, and elsewhere. This function has a `reshape`, which copies where
# the strides demand it. By the promised strides a view would do, so that is what was compiled:

# %%
try:
    flat = torch.compile(lambda x: plus_one(x).t().reshape(6), backend="aot_eager")
    flat(torch.ones(2, 3).t())
except RuntimeError as error:
    print(error)

# %% [markdown] exercise="custom_op"
# title: Make an operator that compiles
# minutes: 30
# difficulty: 3
# points: 7
# prerequisites: [read_joint]
# teaches: >-
#   custom operators: the fake kernel, the backward, what is saved, and what an operator must not do.
# leaves out: >-
#   operators that change their arguments; results whose shape depends on values; other devices.
# off limits: []

# %% [markdown]
# **Write `make_smooth()`.** It registers an operator `undertorch::smooth` and returns it, so that
# `smooth = make_smooth(); smooth(x, keep)` works. It takes `x`, of shape `(rows, features)` and of dtype
# float32 or float64, and a `float`. Its result has the shape and dtype of `x`, is contiguous, and shares no
# memory with `x`:
#
# > result[0] = x[0], result[t] = keep · result[t-1] + x[t]
#
# - `x` may have any strides, no rows, or one. It is not changed.
# - Gradients flow to `x`, not to `keep`. The backward needs no tensor from the forward: save none.
# - `torch.compile(..., fullgraph=True)` takes it, as one node, with static and dynamic shapes.
# - `torch.library.opcheck` finds nothing wrong.
#
# Use tensor operations inside if you like. Nobody looks there.
#
# <details><summary>Hint 1: the backward</summary>
#
# What arrives at row t of the gradient goes to row t, and, times `keep`, to row t-1, and so on upwards.
# That is the same filter, from the last row to the first.
#
# </details>
# <details><summary>Hint 2: the fake kernel</summary>
#
# It gets `x` without values and returns a tensor without values. `torch.empty_like(x)` keeps the strides
# of a transposed `x`. `x.new_empty(x.shape)` is contiguous.
#
# </details>
# <details><summary>Hint 3: registering</summary>
#
# `op.register_autograd(backward, setup_context=setup)`, with `setup(ctx, inputs, output)`, whose
# arguments must have just these names, and `backward(ctx, grad)`. Numbers go into attributes of `ctx`.
# `backward` returns a value for each input of the operator: `None` for `keep`. The decorated function
# needs type annotations.
#
# </details>


# %% solution="custom_op"
def make_smooth() -> Callable[[torch.Tensor, float], torch.Tensor]:
    """Register `undertorch::smooth` and return it: a filter along the first dimension."""
    ### BEGIN SOLUTION

    @torch.library.custom_op("undertorch::smooth", mutates_args=())
    def smooth(x: torch.Tensor, keep: float) -> torch.Tensor:
        result = x.clone(memory_format=torch.contiguous_format)  # never x itself
        for at in range(1, len(result)):
            result[at] += keep * result[at - 1]
        return result

    @smooth.register_fake
    def promise(x, keep):
        return x.new_empty(x.shape)  # contiguous, as the real one is

    def setup(ctx, inputs, output):
        ctx.keep = inputs[1]  # a linear filter: its derivative needs no values

    def backward(ctx, grad):
        # the same operator, so that the backward graph has one node for it too
        return smooth(grad.flip(0), ctx.keep).flip(0), None

    smooth.register_autograd(backward, setup_context=setup)
    return smooth
    ### END SOLUTION


# %% grade="custom_op"
grade("custom_op")

# %% [markdown]
# ## Where the graphs go
#
# In training, `torch.compile` hands its two graphs to Inductor, which writes kernels: C++ on a CPU and,
# by the documentation's page `torch.compiler`, Triton on a GPU. Everything in this chapter ran without
# it. If you have a C++ compiler, try this in a cell of your own:
#
# ```python
# import time
# from torch._inductor import metrics
#
# def chain(x):
#     return (x.sin() * 2).exp() + 1
#
# metrics.reset()
# compiled, x = torch.compile(chain), torch.ones(1000)
# for attempt in ("first", "second"):
#     start = time.perf_counter()
#     compiled(x)
#     print(attempt, time.perf_counter() - start)
# print("kernels:", metrics.generated_kernel_count)
# ```
#
# Four operators become one kernel: they were fused. And the first call ever takes seconds, for it
# traces, writes and compiles. Whoever times that call times the compiler.
