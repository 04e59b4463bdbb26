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

# %% [markdown] chapter="ch05_autograd"
# title: Autograd control
# summary: >-
#   Autograd writes down what you compute, so that it can walk back. Most of the time you need not
#   look. Then memory grows from step to step, a layer that should be frozen moves, or a gradient is
#   wrong and nothing raised. In this chapter you decide what is recorded, what is kept, and where
#   a gradient goes. You walk the graph yourself, and at the end you run it backward without
#   PyTorch's engine.

# %% [markdown]
# ## How to work
#
# Each exercise has a card, a few cells to read and run, and one cell to write: the one that
# raises `NotImplementedError`. The cell after it grades what you wrote, as often as you like.
#
# Where a cell calls `predict(...)`, write your guess in place of the dots before you run it.
# Nobody grades a guess.

# %%
import functools
import inspect
import threading
import warnings
import weakref
from contextlib import contextmanager

import torch
from torch import nn

from grader import grade, predict

# %% [markdown]
# ## The graph
#
# There is no tape. Every operation that is recorded makes a **node**, and its result holds that
# node as `grad_fn`. A node points at the nodes of its inputs. So the graph belongs to the results:
# drop the last result, and the graph is gone.

# %%
x = torch.ones(2, requires_grad=True)
y = x.sin() * x.cos()
print(y.grad_fn.name(), "<-", [node.name() for node, _ in y.grad_fn.next_functions])


class Label:
    """Something to hang on a node."""


y.grad_fn.metadata["label"] = Label()
label = weakref.ref(y.grad_fn.metadata["label"])
print("the node is there:", label() is not None)
del y
print("after `del y`:    ", label() is not None)

# %% [markdown]
# A tensor without a `grad_fn` is a **leaf**. Only leaves that require grad collect something in
# `.grad`. A result in the middle requires grad too, its gradient is computed and handed on, and
# its `.grad` stays `None` unless you call `retain_grad()` on it.

# %%
middle = x * 2
middle.sum().backward()
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # asking a non-leaf for .grad is worth a warning
    print("middle requires grad:", middle.requires_grad, " its .grad:", middle.grad)
print("x.grad:", x.grad.tolist())

# %% [markdown]
# Not everything can be recorded. What comes out as whole numbers or booleans has no derivative,
# and the graph ends there, without a word. The same happens to a misspelt attribute:

# %%
print((x > 0).requires_grad, x.argmax().requires_grad, x.long().requires_grad)
plain = torch.ones(2)
plain.require_grad = True  # one letter is missing, and Python is happy with it
print(plain.requires_grad)

# %% [markdown] exercise="predict_flags"
# title: Predict what is recorded
# minutes: 30
# difficulty: 2
# points: 7
# prerequisites: []
# teaches: >-
#   which results require grad, which are leaves, and who shares memory with whom, for `detach`,
#   `clone`, views, in-place changes and the three grad modes.
# leaves out: >-
#   in-place changes of tensors that share memory; inference tensors that require grad.
# off limits: [torch.ones, torch.no_grad, torch.enable_grad, torch.inference_mode, "aten:view", "aten:ones", "aten:clone"]

# %% [markdown]
# Three questions have an answer for every tensor: does it require grad, is it a leaf, and whose
# memory does it use? Most trouble with autograd is a wrong belief about one of them. Two examples
# that are often told wrong:

# %%
x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = x * 2
detached = y.detach()
detached[0] = 10
print("y after a write through y.detach():", y.tolist())

copy = x.clone()
print("x.clone(): leaf", copy.is_leaf, " grad_fn", copy.grad_fn.name())

# %% [markdown]
# `detach` cuts the graph and **shares** the memory. `clone` copies the memory and **keeps** the
# graph: the copy is no leaf, and gradients flow through it to `x`. For a leaf of its own you need
# `x.detach().clone().requires_grad_()`.
#
# Grad modes decide what is recorded. They do not decide everything:

# %%
with torch.no_grad():
    made = torch.ones(3, requires_grad=True)
    result = x + x
    view = x.view(3)
for name, tensor in [("made", made), ("result", result), ("view", view)]:
    print(f"{name:>6}: requires grad {tensor.requires_grad!s:>5}, leaf {tensor.is_leaf}")

# %% [markdown]
# A leaf is what it was declared to be. A result is not recorded. And a view that was made without
# recording has no `grad_fn`, so it counts as a leaf; but it lives in `x`, and `x` requires grad, so
# it says that it does.
#
# `inference_mode` goes further than `no_grad`. Inside it `enable_grad` switches grad mode on, and
# still nothing is recorded.
#
# **Predict.** Inside `inference_mode`, within `enable_grad`: is grad mode on, and does `x + x`
# require grad? Write a pair, such as `(True, True)`.


# %%
def inside_both():
    with torch.inference_mode(), torch.enable_grad():
        return torch.is_grad_enabled(), (x + x).requires_grad


predict(..., inside_both)

# %% [markdown]
# **Write `predict_flags(program)`.** A program is a list of steps. Each step is a tuple:
#
# | step | stands for |
# |---|---|
# | `("leaf", "a", True)` | `a = torch.ones(3, requires_grad=True)`; or `False` |
# | `("add", "c", "a", "b")` | `c = a + b` |
# | `("greater", "c", "a", "b")` | `c = a > b` |
# | `("view", "c", "a")` | `c = a.view(3)` |
# | `("clone", "c", "a")` | `c = a.clone()` |
# | `("detach", "c", "a")` | `c = a.detach()` |
# | `("requires_grad_", "a", True)` | `a.requires_grad_(True)`; or `False` |
# | `("add_", "a", "b")` | `a.add_(b)` |
# | `("enter", "no_grad")` | the beginning of `with torch.no_grad():`; or `"enable_grad"`, `"inference_mode"` |
# | `("exit",)` | the end of the innermost `with` |
#
# Return a dict from each name to a tuple `(requires_grad, is_leaf, owner)`, as things are after the
# last step. `owner` is the name of the tensor that the memory was made for: `"a"` for `a` itself and
# for every view of it, of any depth. Work it out; do not run the program.
#
# Every program is one that PyTorch runs without an error. A program may end inside a `with`. No name
# is used for two tensors. A tensor changed by `add_` shares its memory with no other; a tensor whose
# flag is set by `requires_grad_` is no view and has none; no tensor made inside `inference_mode`
# requires grad.
#
# <details><summary>Hint 1: a stack of modes</summary>
#
# Keep a list of modes. `enter` pushes one, `exit` pops it. A mode is two facts: whether grad mode is
# on, and whether inference mode is on. Steps are recorded if the first is true and the second is not.
#
# </details>
# <details><summary>Hint 2: one rule for results</summary>
#
# A result requires grad if the step is recorded, any input requires grad, and the step is neither
# `detach` nor `greater`. It is a leaf if it does not require grad. Views that are not recorded are
# the one exception.
#
# </details>
# <details><summary>Hint 3: in place</summary>
#
# `a.add_(b)` is recorded like any other step. It turns a leaf into a result: not the name `a`, but
# the tensor. Where nothing is recorded, no flag changes.
#
# </details>


# %% solution="predict_flags"
def predict_flags(program: list[tuple]) -> dict[str, tuple[bool, bool, str]]:
    """Return each tensor's (requires_grad, is_leaf, owner) after a program.

    program: steps as in the table above
    """
    ### BEGIN SOLUTION
    requires, leaf, owner = {}, {}, {}
    modes = [(True, False)]  # grad mode, inference mode
    for kind, *args in program:
        grad_mode, inference = modes[-1]
        # inference mode has the last word: enable_grad changes nothing inside it
        records = grad_mode and not inference
        if kind == "enter":
            modes.append((args[0] == "enable_grad", inference or args[0] == "inference_mode"))
        elif kind == "exit":
            modes.pop()
        elif kind == "requires_grad_":
            requires[args[0]] = args[1]
        elif kind == "add_":
            if records and any(requires[name] for name in args):
                requires[args[0]], leaf[args[0]] = True, False
        elif kind == "leaf":
            name, flag = args  # no mode overrules what a leaf is declared to be
            requires[name], leaf[name], owner[name] = flag, True, name
        else:
            name, *inputs = args
            some = any(requires[one] for one in inputs) and kind not in ("detach", "greater")
            requires[name] = some and (records or kind == "view")
            leaf[name] = not (some and records)
            owner[name] = owner[inputs[0]] if kind in ("view", "detach") else name
    return {name: (requires[name], leaf[name], owner[name]) for name in owner}
    ### END SOLUTION


# %% grade="predict_flags"
grade("predict_flags")

# %% [markdown] exercise="route"
# title: Stop exactly the gradients you mean
# minutes: 25
# difficulty: 2
# points: 6
# prerequisites: []
# teaches: >-
#   the difference between freezing parameters and cutting the graph, and that what is recorded is
#   decided when the layer runs, not when you call `backward`.
# leaves out: giving layers different learning rates.
# off limits: [torch.Tensor.register_hook, torch.nn.Module.register_full_backward_hook]

# %% [markdown]
# "Freeze that part, with `detach` or with `requires_grad_(False)`." The two are not the same. One
# closes the door to a layer's parameters. The other closes the road to everything before it. Three
# layers, the middle one frozen in either way:


# %%
def who_learns(how):
    torch.manual_seed(0)
    first, middle, last = nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 1)
    if how == "requires_grad_(False)":
        middle.requires_grad_(False)
    h = middle(first(torch.ones(1, 2)))
    if how == "detach":
        h = h.detach()
    last(h).sum().backward()
    return [layer.weight.grad is not None for layer in (first, middle, last)]


for how in ("requires_grad_(False)", "detach"):
    print(f"{how:>21}: first, middle, last learn: {who_learns(how)}")

# %% [markdown]
# A frozen layer still hands gradients on. That is what trains a generator through a fixed critic.
# A cut stops all that lies before. That is what keeps a probe from disturbing the network it reads.
#
# Whether a parameter takes part is decided **when the layer runs**: then the graph is recorded.
#
# **Predict.** `requires_grad_(False)` is called after the forward pass and before `backward`. Does
# the weight still get a gradient?


# %%
def frozen_too_late():
    layer = nn.Linear(2, 1)
    loss = layer(torch.ones(1, 2)).sum()
    layer.requires_grad_(False)
    loss.backward()
    return layer.weight.grad is not None


predict(..., frozen_too_late)

# %% [markdown]
# **Write `route(layers, x, frozen, cut)`.** `layers` is a list of modules, each a function of one
# tensor. Apply them to `x`, in order, each position once, and return the result. `frozen` and `cut`
# are sets of positions in the list.
#
# - At a position in `frozen` the layer's parameters get no gradient **from this use**. The gradient
#   goes through the layer to what lies before it.
# - At a position in `cut` the layer runs as usual, and no gradient goes from it to what lies before:
#   for position 0 that is `x`.
# - Everything else gets the gradient that it would get anyway.
#
# The same module may stand at several positions and be frozen at one of them only; two modules may
# share a parameter. Some parameters may not require grad to begin with. When you return, every
# parameter's `requires_grad` must be what it was before, also if a layer raises. Values are those of
# the plain forward pass. `x` is not changed.
#
# <details><summary>Hint 1: cut the input</summary>
#
# `h.detach()` before the layer runs leaves the layer's own parameters alone.
#
# </details>
# <details><summary>Hint 2: frozen for a moment</summary>
#
# Switch `requires_grad` off for the layer's parameters just while it runs. The graph remembers how
# things were then, and nobody else needs to know.
#
# </details>
# <details><summary>Hint 3: put back what was</summary>
#
# Note which parameters required grad, and give it back to those and no others, in a `finally`.
#
# </details>


# %% solution="route"
def route(
    layers: list[nn.Module], x: torch.Tensor, frozen: set[int], cut: set[int]
) -> torch.Tensor:
    """Apply layers in order, with some frozen and some cut off from what lies before.

    x: what the first layer takes
    frozen, cut: positions in layers
    returns: what the last layer gives
    """
    ### BEGIN SOLUTION
    h = x
    for position, layer in enumerate(layers):
        if position in cut:
            h = h.detach()
        closed = [p for p in layer.parameters() if p.requires_grad and position in frozen]
        # The graph is recorded while the layer runs. The flag matters then, and only then.
        for parameter in closed:
            parameter.requires_grad_(False)
        try:
            h = layer(h)
        finally:
            for parameter in closed:
                parameter.requires_grad_(True)
    return h
    ### END SOLUTION


# %% grade="route"
grade("route")

# %% [markdown] exercise="grad_mode"
# title: Build a grad mode that never leaks
# minutes: 40
# difficulty: 3
# points: 7
# prerequisites: [predict_flags]
# teaches: >-
#   that grad mode is one flag per thread, and what it takes to put it back: after errors, when
#   nested, around functions, between the steps of a generator.
# leaves out: coroutines, and classes as what is decorated.
# off limits: [torch.no_grad, torch.enable_grad, torch.set_grad_enabled, torch.inference_mode]

# %% [markdown]
# Grad mode is one flag per thread. `torch.set_grad_enabled(False)` as a statement flips it, and it
# stays flipped for everything that follows, in every cell below. As a context manager the same
# class puts the flag back. Here is the statement, in a function that hides it:


# %%
def evaluate():
    torch.set_grad_enabled(False)
    return "evaluated"


evaluate()
print("grad mode after the call:", torch.is_grad_enabled())
torch.set_grad_enabled(True)

# %% [markdown]
# A `with` is safe against that, with one exception. A generator stops in the middle of its body, and
# a `with` around the `yield` stays open while the **caller** runs:


# %%
def batches():
    with torch.no_grad():
        yield 1
        yield 2


paused = batches()
next(paused)
print("grad mode of the caller, with `no_grad` inside:", torch.is_grad_enabled())
paused.close()


@torch.no_grad()
def decorated():
    yield torch.is_grad_enabled()
    yield torch.is_grad_enabled()


paused = decorated()
print("in the generator:", next(paused), " in the caller:", torch.is_grad_enabled())

# %% [markdown]
# As a decorator `no_grad` knows generators: it opens the `with` anew for each step.
#
# **Predict.** `no_grad` keeps the earlier mode in an attribute of its object. The same object is
# entered a second time while it is open. What is grad mode after both are left?


# %%
def the_same_object_twice():
    mode = torch.no_grad()
    with mode, mode:
        pass
    after = torch.is_grad_enabled()
    torch.set_grad_enabled(True)
    return after


predict(..., the_same_object_twice)

# %% [markdown]
# Yours will do better.
#
# **Write the class `grad_mode(enabled)`.** An object of it is a context manager and a decorator.
#
# - `with mode:` sets grad mode to `enabled` for the body. Making an object changes nothing.
# - Afterwards grad mode is what it was before the `with`, on or off, also if the body raised. The
#   error goes on.
# - One object can be used many times, entered again while it is open, and used by several threads at
#   once.
# - `mode(function)` returns a function with the same name and docstring. A call takes the same
#   arguments, returns the same result, and runs with grad mode `enabled`.
# - If `function` is a generator function, each step of its generator runs with `enabled`, and between
#   two steps the caller has its own grad mode, which it may change. Values that are sent, errors that
#   are thrown in, `close()` and the return value pass as if the decorator was not there. When a
#   generator is closed, its `finally` runs with `enabled`.
#
# `torch.is_grad_enabled()` reads the flag and `torch._C._set_grad_enabled(flag)` writes it. PyTorch's
# own classes do no more.
#
# <details><summary>Hint 1: more than one mode before</summary>
#
# Entered twice, an object must remember two modes: a list, with `append` and `pop`. Two threads must
# not share that list; `threading.local()` gives each its own attributes.
#
# </details>
# <details><summary>Hint 2: which functions are generators</summary>
#
# `inspect.isgeneratorfunction(function)` tells. `functools.wraps(function)` copies name and
# docstring to your wrapper.
#
# </details>
# <details><summary>Hint 3: one step at a time</summary>
#
# Drive the inner generator yourself: `item = generator.send(value)` inside a `with self`, then
# `value = yield item` outside of it. `StopIteration` carries the return value. An error that arrives
# at your `yield` goes in by `generator.throw(error)`, and `GeneratorExit` by `generator.close()`.
#
# </details>


# %% solution="grad_mode"
class grad_mode:
    """A context manager and decorator that sets grad mode and puts it back.

    enabled: grad mode in the body, or in the decorated function
    """

    ### BEGIN SOLUTION
    def __init__(self, enabled: bool):
        self.enabled = enabled
        self.mine = threading.local()  # grad mode is per thread, so what was before is too

    def __enter__(self):
        before = vars(self.mine).setdefault("before", [])
        before.append(torch.is_grad_enabled())
        torch._C._set_grad_enabled(self.enabled)

    def __exit__(self, *error):
        torch._C._set_grad_enabled(self.mine.before.pop())

    def __call__(self, function):
        if inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def steps(*args, **kwargs):
                return (yield from self.stepwise(function(*args, **kwargs)))

            return steps

        @functools.wraps(function)
        def call(*args, **kwargs):
            with self:
                return function(*args, **kwargs)

        return call

    def stepwise(self, generator):
        resume, value = generator.send, None
        while True:
            try:
                with self:
                    item = resume(value)
            except StopIteration as stop:
                return stop.value
            # Here the caller runs, in its own mode. What it sends or throws goes in next time.
            try:
                resume, value = generator.send, (yield item)
            except GeneratorExit:
                with self:
                    generator.close()
                raise
            except BaseException as error:
                resume, value = generator.throw, error

    ### END SOLUTION


# %% grade="grad_mode"
grade("grad_mode")

# %% [markdown] exercise="graph_report"
# title: Walk the graph
# minutes: 35
# difficulty: 3
# points: 7
# prerequisites: [predict_flags]
# teaches: >-
#   the graph as a data structure: nodes, their edges, the leaves at its end, and the tensors that it
#   keeps alive for backward.
# leaves out: hooks, and the tensors that Python code puts on a `ctx` without `save_for_backward`.
# off limits: []

# %% [markdown]
# Where does the memory go? Not to the results that you can name, but to what the nodes keep. A
# product needs both factors to compute its derivatives, so it saves them. A sum needs neither.

# %%
x = torch.randn(1000)
w = torch.randn(1000, requires_grad=True)
product = x * w
node = product.grad_fn
print([name for name in dir(node) if name.startswith("_saved_")])
print("it saved x:", node._saved_self is not None, " it saved w:", node._saved_other is not None)

# %% [markdown]
# Look twice. `x` does not require grad, and `x` is what was saved: the derivative with respect to
# `w` is `x`. `w` was not saved, because nobody asks for the derivative with respect to `x`. A tensor
# with `requires_grad=False` does not save memory by being that.
#
# The end of each road is an `AccumulateGrad` node. It holds its leaf as `variable`:

# %%
print([(after and after.name(), number) for after, number in node.next_functions])
leaf = node.next_functions[1][0]
print(leaf.name(), leaf.variable is w)

# %% [markdown]
# An input that needs no gradient has `None` in place of a node. Saved tensors are attributes that
# begin with `_saved_`. Such an attribute may hold a tensor, a tuple of tensors, a number, or `None`.
# Nodes of a custom `torch.autograd.Function` have `saved_tensors` instead.

# %%
picked = w.view(10, 100)[torch.tensor([0, 3])]
print(picked.grad_fn.name(), type(picked.grad_fn._saved_indices))
print("exp saves its result:", w.exp().grad_fn._saved_result.shape)

# %% [markdown]
# **Predict.** `y = w.sigmoid().view(10, 100).t() * 2`. How many bytes does the graph of `y` save?

# %%


def bytes_of_a_view():
    y = w.sigmoid().view(10, 100).t() * 2
    sigmoid = y.grad_fn.next_functions[0][0].next_functions[0][0].next_functions[0][0]
    return sigmoid._saved_result.untyped_storage().nbytes()


predict(..., bytes_of_a_view)

# %% [markdown]
# **Write `graph_report(output)`.** `output` is the result of some computation. Return a dict:
#
# | key | value |
# |---|---|
# | `"nodes"` | a dict: how many nodes of each name the graph has. Each node counts once, however many roads lead to it. `AccumulateGrad` nodes count too. |
# | `"leaves"` | a list of the leaf tensors at the graph's end, each once, in any order |
# | `"saved_bytes"` | bytes of all storages that tensors saved by the nodes live in, each storage once |
#
# A node's name is what `node.name()` gives. If `output` was not recorded, the three are empty, empty
# and 0. The graph may be thousands of nodes deep, and there may be more roads through it than you
# can count. Change nothing: a backward pass must still be possible, and afterwards nothing of yours
# may keep the graph alive.
#
# <details><summary>Hint 1: each node once</summary>
#
# Keep a set of nodes that you have met, the nodes themselves. Their `id` alone is not enough: an
# object that you let go can give its `id` to the next one.
#
# </details>
# <details><summary>Hint 2: deep graphs</summary>
#
# A function that calls itself for each node stops at Python's recursion limit. Use a list of nodes
# that still wait.
#
# </details>
# <details><summary>Hint 3: what is saved</summary>
#
# `tensor.untyped_storage()` has `data_ptr()` and `nbytes()`. Two views of one storage have the same
# pointer there, whatever their offsets are. Look into tuples, too.
#
# </details>


# %% solution="graph_report"
def graph_report(output: torch.Tensor) -> dict:
    """Return what the graph of a tensor consists of.

    returns: "nodes" (name to count), "leaves" (tensors), "saved_bytes" (int)
    """
    ### BEGIN SOLUTION
    met, leaves, storages = set(), [], {}
    waiting = [output.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in met:
            continue
        met.add(node)
        if hasattr(node, "variable"):
            leaves.append(node.variable)
        # A built-in node has one attribute per saved tensor; a custom Function has them in a tuple.
        names = [name for name in dir(node) if name.startswith("_saved_")]
        for value in [getattr(node, name) for name in names] + [getattr(node, "saved_tensors", ())]:
            for item in value if isinstance(value, (tuple, list)) else [value]:
                if isinstance(item, torch.Tensor):
                    storage = item.untyped_storage()
                    storages[storage.data_ptr()] = storage.nbytes()
        waiting += [after for after, _ in node.next_functions]
    counts = {}
    for node in met:
        counts[node.name()] = counts.get(node.name(), 0) + 1
    return {"nodes": counts, "leaves": leaves, "saved_bytes": sum(storages.values())}
    ### END SOLUTION


# %% grade="graph_report"
grade("graph_report")
