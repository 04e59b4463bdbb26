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
#   `torch.compile` reads your function's bytecode while it runs, writes the tensor operations down
#   as a graph, and keeps a list of conditions under which the graph may be used again. In this
#   chapter you watch it capture, make it capture more, and predict when it starts over. Then you
#   write passes that change graphs, split a graph into forward and backward, and decide what is
#   saved between them.
# preload: [torch._dynamo, torch._dynamo.backends.registry, torch._functorch.aot_autograd, torch._higher_order_ops.cond, torch.fx, torch.export]

# %% [markdown]
# ## How to work
#
# Each exercise has a card, a few cells to read and run, and one cell to write: the one that
# raises `NotImplementedError`. The cell after it grades what you wrote, as often as you like.
#
# Where a cell calls `predict(...)`, write your guess in place of the dots before you run it.
# Nobody grades a guess.

# %%
import logging
import operator
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
import torch._dynamo
from torch import nn
from torch.overrides import TorchFunctionMode

from grader import grade, predict

# Dynamo warns of graph breaks and of the recompile limit. Here they are made on purpose.
logging.getLogger("torch._dynamo").setLevel(logging.ERROR)

# %% [markdown]
# ## Eager and static graphs
#
# **Eager** PyTorch has no program to optimise. Each operation runs when Python reaches it, and
# nobody knows what comes next. Python decides, with its own `if` and `for`, anew in each call.
#
# A **static graph** is the list of operations, written down before they run. Somebody has to write
# it down, and that is the hard part: the program is in Python. Over the years PyTorch has tried
# three ways.
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
print([kind for kind in ("prim::Loop", "prim::If") if kind in str(scripted.steps.graph)])
print("deprecated:", any(issubclass(one.category, DeprecationWarning) for one in caught))

# %% [markdown]
# Both together are **TorchScript**. It is history: deprecated, and `torch.compile` refuses what it
# made.

# %%
try:
    torch.compile(module, backend="eager")(torch.ones(1, 2))
except RuntimeError as error:
    print(str(error).splitlines()[0])

# %% [markdown]
# **Watch the interpreter**: the third way is Dynamo, the front of `torch.compile`. CPython lets a
# C extension replace the evaluation of a frame (PEP 523). Dynamo takes the frame's bytecode and its
# real arguments, and executes the bytecode by its own interpreter on *fake* tensors, which have
# shapes and dtypes and no data. Tensor operations go into a graph. Everything else (loops, ifs on
# plain numbers, attribute look-ups, calls of your own functions) happens while Dynamo reads, and
# leaves no trace in the graph. Each fact that it relied on becomes a **guard**.
#
# A graph goes to the **backend**: any function that takes a `GraphModule` and example inputs, and
# returns something that can be called in the graph's place. The smallest one prints, and hands back
# the graph as it is.


# %%
def show_graph(graph_module, example_inputs):
    print([f"{node.op}: {node.name}" for node in graph_module.graph.nodes])
    return graph_module


@torch.compile(backend=show_graph)
def unrolled(x, times):
    for _ in range(times):
        x = x + 1
    return torch.sin(x) + torch.sin(x)


result = unrolled(torch.zeros(2), 3)

# %% [markdown]
# The loop is gone: three additions. The call of `unrolled` is an ordinary one in your source, and
# still nothing was imported or rewritten on disk: `torch.compile` is a function, there is no module
# of that name to import from.
#
# Look at the two `sin` of the same value. It is said that Dynamo's graph is an optimised program.
# It is a faithful one. What makes programs faster is the backend's work, and the next stages'.
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
# prerequisites: []
# teaches: >-
#   what a backend is given and must give back, how a graph's nodes name their operations, and where
#   compiled code is kept.
# leaves out: what happens to a graph after Dynamo.
# off limits: []

# %% [markdown]
# A graph is a list of nodes. `node.op` says what kind of node it is:
#
# | `node.op` | stands for | `node.target` |
# |---|---|---|
# | `placeholder` | an input of the graph | its name |
# | `get_attr` | something that the graph holds | its name |
# | `call_function` | `torch.sin(x)`, `x + 1` | the function |
# | `call_method` | `x.cos()` | the method's name |
# | `output` | what the graph returns | |

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
# The `+` is Python's `operator.add`. It counts as `add`, and so do `torch.add` and `x.add(1)`.
#
# A function need not become one graph. Where Dynamo cannot go on, it compiles what it has so far,
# lets Python do the next step, and starts a new graph after it. This is a **graph break**, and the
# backend is called once for each graph.
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
# list of tuples of arguments. Compile the function with a backend of your own, call it with each
# tuple in turn, and return a pair:
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
# it, and the backend never sees the whole. `torch._dynamo.explain` says where they are.
#
# **Predict.** `noisy` adds, prints and multiplies. How many graphs?


# %%
def noisy(x):
    x = x + 1
    print("half way")
    return x * 2


predict(..., lambda: torch._dynamo.explain(noisy)(torch.ones(2)).graph_count)

# %% [markdown]
# Without any word from Dynamo, a `print` that was put in to find a bug has changed what is compiled.
# With `fullgraph=True` a break is an error, and the error tells the line:

# %%
try:
    torch.compile(noisy, backend="eager", fullgraph=True)(torch.ones(2))
except Exception as error:
    print(type(error).__name__)

# %% [markdown] exercise="one_graph"
# title: Remove graph breaks
# minutes: 40
# difficulty: 3
# points: 7
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
# Four things stand in the way.
#
# `.item()` moves a value into Python. What comes out is a number without a gradient: `size` is a
# constant for `backward`. The `print` must happen at a known time, with known values. The `if` asks
# for the value. And `x[x > 0]` has as many elements as there are positive ones, so that its *shape*
# depends on data.
#
# `torch.cond(predicate, yes, no, operands)` is the `if` that stays in the graph. It takes a boolean
# tensor of one element and runs one arm. Both arms must return tensors of the same shape, dtype and
# order of strides, and neither may return an operand itself.
#
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
#   positive and the mean is a NaN, and where `x` has infinities;
# - where `size` does not exceed the limit, no matrix product is computed.
#
# Do not change `x`. `w` and `x` have the same dtype, a floating-point one, and any layout.
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

    x: (n, d), floating point
    w: (d, d), of the same dtype
    returns: (n, d) and (), the latter without grad
    """
    ### BEGIN SOLUTION
    size = x.detach().abs().max()  # detached: as a Python number it had no gradient either
    # Only the arm that is taken runs. An arm may not return an operand itself, so it is copied;
    # a product is contiguous, and both arms must have strides in the same order.
    x = torch.cond(
        size > limit,
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
# prerequisites: [count_ops]
# teaches: >-
#   which facts about a call are guarded, that old graphs are kept, how a size or a float becomes
#   dynamic, why 0 and 1 never do, and what happens at the limit.
# leaves out: >-
#   strides, tensors that are passed twice, whole numbers as arguments, and the attributes of modules.
# off limits: [torch.compile]

# %% [markdown]
# Which facts are conditions? For a tensor its dtype, its sizes, and whether it requires grad. For the
# call as a whole, grad mode. For a flag its value. The little function below tells which of several
# calls compiled.


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
lengths = [3, 5, 7, 9, 3]
print("as it is:     ", compiled_at(double, [lambda f, n=n: f(torch.ones(n)) for n in lengths]))
print(
    "dynamic=False:", compiled_at(double, [lambda f, n=n: f(torch.ones(n)) for n in lengths], False)
)

# %% [markdown]
# The second graph takes every length from 2 on. It does not take 0 and 1. A size of 1 is broadcast,
# a tensor of size 0 has nothing to compute, and so much depends on either that each has graphs of
# its own.
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
# Guards are chosen, and something is left out: a guard on every attribute of every module would take
# longer to test than many a graph takes to run.
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
# Hooks are not guarded unless you ask for it. Register them before the first call, or pay for the
# guards:

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
# leaves out: functions that you cannot change.
# off limits: []

# %% [markdown]
# An average that forgets, as in Adam. It starts at zero, and a division makes up for that: after $k$
# steps by $1 - d^k$, with $d$ the decay.

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
# pair that `debiased` returns; each object counts its own steps from 1. The work on tensors is compiled
# with `torch.compile` and the given backend, such that, for one dtype and one $d$:
#
# - all calls with two rows or more share one graph, whatever the decay, the step and the number of
#   rows;
# - calls with one row may have a graph of their own, and so may calls without rows, where the mean is
#   a NaN;
# - $d$ is a number in the graph, and not dynamic;
# - what a call returns are outputs of the graph.
#
# Results are right to $10^{-6}$ relative, in float32 too, with a decay as near to 1 as 0.9999.
# `mean`, `x` and their values are not changed.
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

# %% [markdown]
# ## A Dynamo of your own
#
# Dynamo reads bytecode. There is a cheaper way to see every tensor operation of a function, and it
# is enough to build the rest of the machine: capture, guards, cache, and the way back to Python.

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
# off limits: [torch.compile, torch.jit.trace, torch.fx.experimental.proxy_tensor.make_fx, torch.fx.symbolic_trace]

# %% [markdown]
# A `TorchFunctionMode` is shown each call of PyTorch's Python API before it runs: functions,
# methods, operators, the reading of attributes.


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
# These functions read a tensor's values into Python:

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
# by the graph.
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
# everything inside tuples, lists, dicts and slices.
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
        self.broken = False
        for number, tensor in enumerate(tensors):
            node = self.graph.placeholder(f"input_{number}")
            self.nodes.setdefault(id(tensor), node)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if func.__name__ == "__get__":
            return result
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
# `torch.export.export` captures by the same means for a place where there is no Python. So there can be
# no break, and nothing to fall back to. Guards become promises: the exported program checks its inputs
# and refuses what it was not made for.

# %%
model = nn.Sequential(nn.Linear(3, 2), nn.ReLU())
exported = torch.export.export(model, (torch.ones(4, 3),))
print([str(node.target) for node in exported.graph.nodes])
print("parameters:", list(exported.graph_signature.inputs_to_parameters.values()))

# %% [markdown]
# The graph is of ATen operators, and the parameters are inputs of it.
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
