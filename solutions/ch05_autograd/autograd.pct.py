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
# preload: [torch._dynamo]

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
import gc
import inspect
import itertools
import os
import threading
import uuid
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import nn

from grader import grade, hint, predict, solution

# %% [markdown] sitting="recording"
# question: When does PyTorch record what you compute?
# reached: >-
#   When grad mode is on and an input requires grad, at the moment at which the operation runs.
#   Grad mode is one flag per thread, and somebody has to put it back.

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
#
# Look: autograd/graph#code=x = torch.ones(2, requires_grad=True);y = x * 2;z = y.exp();loss =
# z.sum();loss.backward()&line=4 | Each line that is recorded adds a node, and arrows lead back to
# the leaf. Step on to `backward`: only the leaf gets a `.grad`.

# %%
middle = x * 2
middle.sum().backward()
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # asking a non-leaf for .grad is worth a warning
    print("middle requires grad:", middle.requires_grad, " its .grad:", middle.grad)
print("x.grad:", x.grad.tolist())

middle = x * 2
middle.retain_grad()
middle.sum().backward()
print("with retain_grad():", middle.grad.tolist())

# %% [markdown]
# Not everything can be recorded. What comes out as whole numbers or booleans has no derivative,
# and the graph ends there, without a word. Nor is a misspelt attribute an error:

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
# short: true
# prerequisites: []
# teaches: >-
#   which results require grad, which are leaves, and who shares memory with whom, for `detach`,
#   `clone`, views, in-place changes and the three grad modes.
# leaves out: >-
#   in-place changes of tensors that share memory; inference tensors that require grad.
# off limits: [torch.no_grad, torch.enable_grad, torch.inference_mode]
# forbids: "running the program"
# allowed: []

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
own = x.detach().clone().requires_grad_()
print("a leaf of its own:", own.is_leaf, " in x's memory:", own.data_ptr() == x.data_ptr())

# %% [markdown]
# `detach` cuts the graph and **shares** the memory. `clone` copies the memory and **keeps** the
# graph: the copy is no leaf, and gradients flow through it to `x`. For a leaf of its own you need
# `x.detach().clone().requires_grad_()`.
#
# Look: autograd/tensors#code=x = torch.tensor([1., 2.], requires_grad=True);y = x * 2;d =
# y.detach();c = y.clone();d.mul_(10) | `d` and `y` are one memory, `c` has its own: the last line
# changes two of the three.
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
# it says that it does. (`DifferentiableViewMeta::requires_grad`, in `torch/csrc/autograd/variable.h`,
# asks the tensor that the view was made of.)
#
# Look: autograd/tensors#code=x = torch.tensor([1., 2.], requires_grad=True);h = x * 2;with
# torch.no_grad():;    n = h.exp();    v = h.view(2);loss = (h * n).sum();loss.backward()&line=5 |
# Under `no_grad`: the result `n` requires no grad, and the view `v` says that it does.
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
# | `("enter", "no_grad")` | the start of `with torch.no_grad():`; or `"enable_grad"`, `"inference_mode"` |
# | `("exit",)` | the end of the innermost `with` |
#
# Return a dict from each name to a tuple `(requires_grad, is_leaf, owner)` of two `bool` and a `str`, as
# things are after the last step. `owner` is the name of the tensor that the memory was made for: `"a"` for
# `a` itself and for all that shares its memory, over any number of steps. Work it out; do not run the
# program.
#
# Every program is one that PyTorch runs without an error. A program may end inside a `with`. No name
# is used for two tensors. A tensor changed by `add_` shares its memory with no other. `requires_grad_` is not
# called on what `view` made, nor, after that `view`, on what it was made of; on what `detach` made it may
# be. Inside `inference_mode` no leaf is made that requires grad. A view made there of a tensor from outside
# is a view as under `no_grad`.
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
# forbids: "PyTorch's own switches"

# %% [markdown]
# Grad mode is one flag per thread, and on when a thread begins. `torch.set_grad_enabled(False)` as a
# statement flips it, and it stays flipped for everything that follows, in every cell below. As a
# context manager the same class puts the flag back. Here is the statement, in a function that hides it:


# %%
def evaluate():
    torch.set_grad_enabled(False)
    return "evaluated"


evaluate()
left_behind = torch.is_grad_enabled()
elsewhere = []
thread = threading.Thread(target=lambda: elsewhere.append(torch.is_grad_enabled()))
thread.start()
thread.join()
torch.set_grad_enabled(True)  # put it back, for the cells below
print("grad mode after the call:", left_behind, " in another thread:", *elsewhere)
with torch.set_grad_enabled(False):
    pass
print("after a `with`:", torch.is_grad_enabled())

# %% [markdown]
# A `with` is safe against that, as long as nothing else runs before it is left. A generator stops in the
# middle of its body, and a `with` around the `yield` stays open while the **caller** runs:


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
# As a decorator `no_grad` knows generators: it opens the `with` anew for each step
# (`_wrap_generator`, in `torch/utils/_contextlib.py`).
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
# own classes use the same two (`torch/autograd/grad_mode.py`).
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

    def __init__(self, enabled: bool):
        ### BEGIN SOLUTION
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

# %% [markdown] sitting="choosing"
# question: How do you get exactly the gradients that you want?
# reached: >-
#   Freeze a layer while it runs, or cut the road before it. Evaluate with both switches, weigh
#   the pieces of a batch, and keep no loss that holds a graph.

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
    if how != "detach":
        middle.requires_grad_(False)
    h = middle(first(torch.ones(1, 2)))
    if how == "detach":
        h = h.detach()
    if how == "switched on afterwards":
        middle.requires_grad_(True)
    last(h).sum().backward()
    return [layer.weight.grad is not None for layer in (first, middle, last)]


for how in ("requires_grad_(False)", "detach", "switched on afterwards"):
    print(f"{how:>22}: first, middle, last learn: {who_learns(how)}")

# %% [markdown]
# A frozen layer still hands gradients on. That is what trains a generator through a fixed critic.
# A cut stops all that lies before. That is what keeps a probe from disturbing the network it reads.
#
# Look: autograd/graph#code=w = torch.ones(2, requires_grad=True);v = torch.ones(2);u =
# torch.ones(2, requires_grad=True);h = w * v;y = h * u;y.sum().backward()&line=5 | `v` is frozen.
# The road to `w` goes through its product all the same, and ends in two places: `w` and `u`.
#
# Whether a road to a parameter is recorded is decided **when the layer runs**. Switch `requires_grad`
# on afterwards, and no gradient comes: that is the third line. Now the other way round.
#
# **Predict.** `requires_grad_(False)` is called after the forward pass and before `backward`. Does
# the weight still get a gradient? Write `True` or `False`.


# %%
def frozen_too_late():
    layer = nn.Linear(2, 1)
    loss = layer(torch.ones(1, 2)).sum()
    layer.requires_grad_(False)
    loss.backward()
    return layer.weight.grad is not None


predict(..., frozen_too_late)

# %% [markdown]
# The road was recorded, and a gradient comes along it. But at its end stands `AccumulateGrad`
# (`torch/csrc/autograd/functions/accumulate_grad.cpp`), which looks at the flag once more, and adds
# nothing to a leaf that does not require grad **now**. If the flag is on again when `backward` runs, it
# adds.
#
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
# parameter's `requires_grad` must be what it was before, also if a layer raises; its error goes on.
# Values are those of the plain forward pass. `x` is not changed, nor does it lose its `requires_grad`. No layer
# changes its input in place.
# The layers themselves run, so that a BatchNorm among them collects its statistics as usual.
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

# %% [markdown] exercise="evaluating"
# title: Evaluate without a trace
# minutes: 25
# difficulty: 3
# points: 6
# prerequisites: []
# teaches: >-
#   that `eval()`, `no_grad` and the state of a layer are three different things, and how to put all of
#   them back.
# leaves out: models that gain or lose modules while they are evaluated.
# off limits: []

# %% [markdown]
# In the middle of training you want to know how good the model is. Two switches are meant for that, and
# each is often taken for the other.

# %%
torch.manual_seed(0)
norm = nn.BatchNorm1d(2)
data = torch.randn(8, 2) + 3

norm.eval()
print("eval():  a result requires grad:", norm(data).requires_grad)

norm.train()
with torch.no_grad():
    norm(data)
print("no_grad: the running mean has moved:", bool((norm.running_mean != 0).all()))

# %% [markdown]
# `eval()` tells layers such as Dropout and BatchNorm to behave as in use. It records gradients all the same.
# `no_grad` stops the recording, and a BatchNorm in training mode goes on collecting statistics of your test
# data. You need both.
#
# And both must be undone. `model.train()` afterwards is not the way back: it switches **every** layer to
# training, also the one that you keep in eval mode because its statistics are frozen.
#
# Draw: show_cells({name: [around((norm :=
# nn.BatchNorm1d(2)).train(mode).forward)(data).requires_grad, bool(norm.running_mean.any())] for
# name, mode, around in [("train()", True, torch.enable_grad()), ("train(), no_grad", True,
# torch.no_grad()), ("eval()", False, torch.enable_grad()), ("eval(), no_grad", False,
# torch.no_grad())]}, ["records a graph", "moves its statistics"]) | Two switches, two effects, as
# a BatchNorm shows them. Only both together leave nothing behind.
#
# **Predict.** A model has a frozen BatchNorm in eval mode. You call `model.eval()`, then `model.train()`. Is
# the BatchNorm in training mode?


# %%
def after_eval_and_train():
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    model[1].eval()
    model.eval()
    model.train()
    return model[1].training


predict(..., after_eval_and_train)

# %% [markdown]
# **Write the context manager `evaluating(model)`**, as a generator function under `@contextmanager`. It is
# used as `with evaluating(model) as same_model:`.
#
# - What `as` gives is the model itself. In the body every module of it is in eval mode, and nothing is
#   recorded. Results are ordinary tensors: what is made in `inference_mode` cannot be saved for backward later.
# - Afterwards each module has the mode that it had, and no attribute of yours; grad mode is what it was, on
#   or off, and every parameter requires grad as before.
# - Afterwards each buffer of each module is **the same tensor** with the same content as before, whatever the
#   body did: it may have switched a layer back to training or grad mode on, changed a buffer in place, or
#   put another tensor in its place.
# - All of that also if the body raises, and the error goes on.
#
# A module may stand at several places in the model. A buffer may be of whole numbers, or not persistent, so
# that `state_dict()` does not have it. A buffer may be `None`; if the body filled it, it is `None` again
# afterwards. The body registers no buffer and deletes none.
#
# <details><summary>Hint 1: each module</summary>
#
# `model.modules()` gives each module once. `module.training` is an ordinary attribute that you may set.
#
# </details>
# <details><summary>Hint 2: each buffer</summary>
#
# `module.named_buffers(recurse=False)` gives a module's own, without those that are `None`;
# `module._buffers`, the dict behind it, has these too. Remember the tensor and a copy of its content;
# afterwards copy back in place, and put the tensor back with `setattr(module, name, tensor)`.
#
# </details>
# <details><summary>Hint 3: finally</summary>
#
# What stands after `yield` in a generator is not reached when the body raises, unless it stands in a
# `finally`. Copying into a buffer is an in-place operation: do it where nothing is recorded.
#
# </details>


# %% solution="evaluating"
@contextmanager
def evaluating(model: nn.Module) -> Iterator[nn.Module]:
    """Put a model into eval mode without grad for the body of a `with`, and undo every trace of it."""
    ### BEGIN SOLUTION
    modes = [(module, module.training) for module in model.modules()]
    buffers = [
        (module, name, buffer, None if buffer is None else buffer.clone())
        for module in model.modules()
        for name, buffer in module._buffers.items()  # named_buffers() leaves out those that are None
    ]
    with torch.no_grad():
        try:
            model.eval()
            yield model
        finally:
            for module, training in modes:
                module.training = training  # each its own: train() would switch all of them
            for module, name, buffer, content in buffers:
                if buffer is not None:
                    buffer.copy_(content)
                setattr(module, name, buffer)  # the body may have put another tensor there
    ### END SOLUTION


# %% grade="evaluating"
grade("evaluating")

# %% [markdown] exercise="train_step"
# title: Take a large step in small pieces
# minutes: 35
# difficulty: 3
# points: 6
# short: true
# prerequisites: []
# teaches: >-
#   gradient accumulation that equals the large batch: with what to weigh each piece, when a graph is
#   freed, and how to log a loss without keeping it.
# leaves out: layers that mix the rows of a batch, such as BatchNorm; mixed precision.
# off limits: []

# %% [markdown]
# Here is a training loop, line by line.

# %%
torch.manual_seed(0)
model = nn.Linear(3, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
inputs, targets = torch.randn(8, 3), torch.tensor([0, 1, 0, 1, 1, 0, 1, 0])

for step in range(2):
    optimizer.zero_grad()  # every .grad becomes None; otherwise backward adds to what is there
    logits = model(inputs)  # records a graph that ends in the model's parameters
    loss = nn.functional.cross_entropy(logits, targets)  # one number at the top of the graph
    loss.backward()  # walks the graph down, adds to each leaf's .grad, frees what was saved
    optimizer.step()  # changes the parameters in place, under no_grad
    print(f"step {step}: loss {loss.item():.3f}")  # a Python number: the graph is let go

# %% [markdown]
# Two of these lines are about memory. `backward` frees what the graph had saved, unless you ask for
# `retain_graph=True`. And whoever keeps `loss` keeps its graph; a number from `item()` keeps nothing.
#
# Look: autograd/graph#code=w = torch.ones(2, requires_grad=True);total = 0;loss = (w *
# w).sum();total += loss;loss = (w * w).sum();total += loss | A running total of losses keeps the
# graph of each of them, and what it saved. Write `loss.item()` in the last line.

# %%
total = 0.0
for _ in range(5):
    total = total + model(inputs).sum()


def nodes_of(tensor):
    waiting, met = [tensor.grad_fn], set()
    while waiting:
        node = waiting.pop()
        if node is not None and node not in met:
            met.add(node)
            waiting += [after for after, _ in node.next_functions]
    return len(met)


print("nodes of one loss:      ", nodes_of(model(inputs).sum()))
print("nodes of a running total:", nodes_of(total))

# %% [markdown]
# A second `backward` through the same graph finds nothing there any more. The error names
# `retain_graph=True`. Mostly the mend is another: compute the loss anew, or detach what was carried over from
# the last step.
#
# Look: autograd/graph#code=x = torch.ones(2, requires_grad=True);y = x.exp();loss =
# y.sum();loss.backward();loss.backward() | The second `backward` comes to a node whose saved tensor
# is freed. Write `retain_graph=True` into the first one.

# %%
loss = model(inputs).exp().sum()
loss.backward()
try:
    loss.backward()
except RuntimeError as error:
    print(str(error).split("(")[0].strip())
    print("it names retain_graph=True:", "retain_graph=True" in str(error))

# %% [markdown]
# A batch that does not fit into memory is computed in pieces. Since `backward` **adds** to `.grad`,
# each piece can have a backward of its own, and its graph is gone before the next one begins.
#
# It should give the same step as the whole batch. That depends on how the loss takes its mean. With
# `cross_entropy`, targets of -100 do not count: they are padding, or tokens that nobody asks for. The
# mean is over the targets that count:

# %%
logits, padded = model(inputs), targets.clone()
padded[5:] = -100
five = nn.functional.cross_entropy(logits[:5], targets[:5])
print(torch.allclose(nn.functional.cross_entropy(logits, padded), five))

# %% [markdown]
# Pieces do not have equally many of those, and the mean of means is another number than the mean.
#
# **Predict.** One piece has 1 target that counts, with loss 4. The other has 3, each with loss 2. What
# is the loss of the whole batch?

# %%
predict(..., lambda: (1 * 4.0 + 3 * 2.0) / 4)

# %% [markdown]
# **Write `train_step(model, optimizer, batches)`.** `batches` is a list of pieces `(inputs, targets)` of
# different sizes, with `targets` int64. The loss is `nn.functional.cross_entropy(model(inputs),
# targets)`, where targets of -100 do not count. Make **one** step of the optimizer, the same as for the
# whole batch: as if all pieces had been concatenated first. Return the loss of the whole batch, as a
# Python `float`.
#
# - The model sees each piece at most once, one piece at a time. A piece may hold no target that counts;
#   the batch holds at least one.
# - When a piece goes through the model, no more than one earlier piece's graph is still alive. When you
#   return, none is.
# - What is in `.grad` when you are called is old. It must not count: a parameter that this batch does not
#   use has no gradient, and stays as it is.
#
# The model does not mix rows. It runs in the mode, training or eval, in which it was given to you.
#
# <details><summary>Hint 1: the weight of a piece</summary>
#
# The whole mean is a sum over all targets that count, divided by their number. Either take sums,
# with `reduction="sum"`, and divide by the number in the whole batch; or multiply a piece's mean by its
# share.
#
# </details>
# <details><summary>Hint 2: count first</summary>
#
# The number of targets that count is known before anything is computed: `(targets != -100).sum()`.
#
# </details>
# <details><summary>Hint 3: nothing divided by nothing</summary>
#
# The mean over no targets is NaN, and NaN times 0 is NaN. A sum over none is 0.
#
# </details>


# %% solution="train_step"
def train_step(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    batches: list[tuple[torch.Tensor, torch.Tensor]],
) -> float:
    """Make one step on a batch that comes in pieces, and return the batch's loss.

    batches: (inputs, targets) each; targets int64, -100 where they do not count
    """
    ### BEGIN SOLUTION
    count = sum(int((targets != -100).sum()) for _, targets in batches)
    optimizer.zero_grad()
    total = 0.0
    for inputs, targets in batches:
        # A piece's sum over the whole batch's count: what it contributes to the mean.
        loss = nn.functional.cross_entropy(model(inputs), targets, reduction="sum") / count
        loss.backward()  # adds to .grad, and frees this piece's graph
        total += loss.item()  # a number, not a tensor with a graph
    optimizer.step()
    return total
    ### END SOLUTION


# %% grade="train_step"
grade("train_step")

# %% [markdown] sitting="graph"
# question: What does a result remember of how it was made?
# reached: >-
#   A node, which has edges to other nodes and keeps the tensors that its derivative needs. A
#   version counter notices most changes to these, not all.

# %% [markdown] exercise="graph_report"
# title: Walk the graph
# minutes: 35
# difficulty: 3
# points: 7
# short: true
# prerequisites: [predict_flags]
# teaches: >-
#   the graph as a data structure: nodes, their edges, the leaves at its end, and the tensors that it
#   keeps alive for backward.
# leaves out: hooks, and the tensors that Python code puts on a `ctx` without `save_for_backward`.
# off limits: []

# %% [markdown]
# Where does the memory go? Not only to the results that you can name, but to what the nodes keep. The
# derivatives of a product are its factors, so it saves them. A sum needs neither.

# %%
x = torch.randn(1000)
w = torch.randn(1000, requires_grad=True)
product = x * w
node = product.grad_fn
print([name for name in dir(node) if name.startswith("_saved_")])
print("it saved x:", node._saved_self is not None, " it saved w:", node._saved_other is not None)
print("a sum saved:", [name for name in dir((x + w).grad_fn) if name.startswith("_saved_")])

# %% [markdown]
# Look twice. `x` does not require grad, and `x` is what was saved: the derivative with respect to
# `w` is `x`. `w` was not saved, because nobody asks for the derivative with respect to `x`. A tensor
# with `requires_grad=False` does not save memory by being that. (The sum's `_saved_alpha` is a number,
# the `alpha` of `torch.add`.)
#
# Look: autograd/graph#code=x = torch.ones(2);w = torch.ones(2, requires_grad=True);y = x * w;z = y
# + w | The product saves `x`, which needs no gradient, and not `w`. The sum saves nothing.
#
# Where a road ends at a leaf, it ends in an `AccumulateGrad` node. That holds its leaf as `variable`:

# %%
print([(after and after.name(), number) for after, number in node.next_functions])
leaf = node.next_functions[1][0]
print(leaf.name(), leaf.variable is w)

# %% [markdown]
# An input that needs no gradient has `None` in place of a node. Saved tensors are attributes that
# begin with `_saved_`. Such an attribute may hold a tensor, a tuple with tensors in it, or something
# else: a number, a shape, `None`. Nodes of a custom `torch.autograd.Function` have `saved_tensors` instead.

# %%
picked = w.view(10, 100)[:, torch.tensor([0, 3])]
print(picked.grad_fn.name(), picked.grad_fn._saved_indices, picked.grad_fn._saved_self_sym_sizes)
print("exp saves its result:", w.exp().grad_fn._saved_result.shape)
print("w * 2 saves the 2:", (w * 2).grad_fn._saved_other)


class Half(torch.autograd.Function):
    @staticmethod
    def forward(ctx, t):
        ctx.save_for_backward(t)
        return t / 2

    @staticmethod
    def backward(ctx, grad):
        return grad / 2


print("a Function:", [saved is w for saved in Half.apply(w).grad_fn.saved_tensors])

# %% [markdown]
# **Predict.** `y = w.sigmoid().view(10, 100).t() + 2`. How many bytes does the graph of `y` save?

# %%


def bytes_of_a_view():
    y = w.sigmoid().view(10, 100).t() + 2
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
# Keep a set of nodes that you have met, the nodes themselves. `node in met` asks whether it is the same
# object, and a walk that asks this first visits each node once, however many edges lead to it.
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

# %% [markdown] exercise="watch_edits"
# title: Catch what the version counter misses
# minutes: 25
# difficulty: 3
# points: 6
# prerequisites: [predict_flags]
# teaches: >-
#   how autograd notices that a saved tensor was changed, who shares a counter with whom, and the roads
#   by which a change goes unnoticed.
# leaves out: changes on other devices, and tensors that change while you look.
# off limits: []

# %% [markdown]
# A node saves tensors, not copies of them. If one is changed in place before `backward`, the gradient
# would be wrong. So a tensor has a **version counter**: in-place operations add to it, the node notes
# the number when it saves, and compares when it needs the tensor (`SavedVariable`, in
# `torch/csrc/autograd/saved_variable.cpp`). A mismatch is an error, and that error is a friend.
#
# Look: autograd/graph#code=x = torch.ones(2, requires_grad=True);y = (x *
# 2).exp();y.detach().mul_(10);y.sum().backward() | `exp` saved its result at version 0, and `mul_`
# made it version 1.

# %%
x = torch.ones(3, requires_grad=True)
y = (x * 2).exp()  # exp saves its result
y.detach().mul_(10)
try:
    y.sum().backward()
except RuntimeError as error:
    print(str(error).split(":")[0])

# %% [markdown]
# Views and `detach` share the counter, since they share the memory. `.data` shares the memory and has a
# counter of its own. That is why it should be left alone:

# %%
y = (x * 2).exp()
y.data.mul_(10)
y.sum().backward()
print("version:", y._version)
print(
    "gradient:", [round(value, 3) for value in x.grad.tolist()], " it should be 14.778 three times"
)
t = torch.zeros(2)
t.numpy()[0] = 1
print("through NumPy:", t.tolist(), " version:", t._version)
t.untyped_storage().fill_(0)
print("through the storage:", t.tolist(), " version:", t._version)

# %% [markdown]
# No error, and a gradient ten times too large. NumPy arrays and raw storages are other roads past the
# counter, and so is every pointer (`data_ptr()`) that is handed to another library. A tensor made in
# `inference_mode` has no counter at all, and so it cannot be saved for backward.
#
# Look: autograd/tensors#code=x = torch.tensor([1., 2.], requires_grad=True);y = (x *
# 2).exp();y.data.mul_(10);y.sum().backward() | The counter of `y` stays at 0, and the gradient is
# ten times too large. Write `detach()` in place of `data`.
#
# **Predict.** `t = torch.zeros(3)`, then `t[1:].add_(1)`, then `t.data.add_(1)`. What is `t._version`?


# %%
def counted():
    t = torch.zeros(3)
    t[1:].add_(1)
    t.data.add_(1)
    return t._version


predict(..., counted)

# %% [markdown]
# **Write `watch_edits(tensors, run)`.** `tensors` is a list of tensors, `run` a function without
# arguments. Call `run` once. Return a list with one word per tensor:
#
# | word | meaning |
# |---|---|
# | `"counted"` | its version counter moved while `run` ran, whether or not its content changed |
# | `"silent"` | the counter did not move, or there is none, and the content is not what it was |
# | `"unchanged"` | neither |
#
# The content is shape, dtype and every bit of every element: 0.0 and -0.0 are different, a NaN that
# stays as it is, bit for bit, is no change, and another NaN in its place is one. Of a slice only its own
# elements count. Tensors have any layout and dtype, may require grad, may be empty, may share memory with
# each other. `tensor._version` is the counter; for an inference tensor it raises, and
# `tensor.is_inference()` tells which those are. You yourself change nothing: no counter, and not the grad
# mode in which `run` is called. An error that `run` raises goes on.
#
# <details><summary>Hint 1: before and after</summary>
#
# Note the counter and a copy of the content, call `run`, look again. `detach()` is no copy.
#
# </details>
# <details><summary>Hint 2: bits</summary>
#
# `==` says that NaN differs from itself and that 0.0 equals -0.0. Compare bytes: those of a contiguous
# copy are `copy.reshape(-1).view(torch.uint8)`.
#
# </details>
# <details><summary>Hint 3: another tensor altogether</summary>
#
# `t.data = other` can give `t` another shape and dtype, and moves no counter. Compare those first.
#
# </details>


# %% solution="watch_edits"
def watch_edits(tensors: list[torch.Tensor], run: Callable[[], object]) -> list[str]:
    """Call `run` and say of each tensor how it was edited meanwhile.

    returns: "counted", "silent" or "unchanged" for each
    """
    ### BEGIN SOLUTION

    def version(tensor):
        return None if tensor.is_inference() else tensor._version

    def content(tensor):
        # A copy: what detach() gives would change along with the tensor.
        data = tensor.detach().clone(memory_format=torch.contiguous_format)
        return tensor.shape, tensor.dtype, data.reshape(-1).view(torch.uint8)

    def same(left, right):
        return left[:2] == right[:2] and torch.equal(left[2], right[2])

    before = [(version(tensor), content(tensor)) for tensor in tensors]
    run()
    words = []
    for tensor, (number, was) in zip(tensors, before, strict=True):
        if version(tensor) != number:
            words.append("counted")
        else:
            words.append("unchanged" if same(content(tensor), was) else "silent")
    return words
    ### END SOLUTION


# %% grade="watch_edits"
grade("watch_edits")

# %% [markdown]
# ### Tensors of inference mode, used again
#
# `inference_mode` saves the counters and pays for it later. Its tensors may be read anywhere. They may
# not be saved for backward, and outside they may not be changed in place. A clone that is made outside is
# an ordinary tensor:

# %%
with torch.inference_mode():
    features = torch.ones(3)
print("after the block: inference mode", torch.is_inference_mode_enabled(), end=", ")
print("inference tensor", features.is_inference())
weight = torch.ones(3, requires_grad=True)
print("a sum saves nothing:", (features + weight).requires_grad)
for use in (lambda: features * weight, lambda: features.add_(1)):
    try:
        use()
    except RuntimeError as error:
        print(str(error).split(".")[0])
print("of a clone:", (features.clone() * weight).requires_grad)

# %% [markdown]
# ### Mend an in-place error
#
# Two errors about in-place changes are common, and each has a remedy that is not `.data`. A leaf that
# requires grad may not be changed where the change would be recorded: it would become a result, which
# collects no `.grad`. An update is not meant to be recorded, so do not record it:

# %%
weight = torch.ones(3, requires_grad=True)
try:
    weight -= 0.1
except RuntimeError as error:
    print(error)
with torch.no_grad():
    weight -= 0.1
print(weight.is_leaf, weight._version)

# %% [markdown]
# The other is the one about versions: something saved was changed. Ask **who saved what**. `exp` and
# `sigmoid` save their result, so do not change it. `sin` saves what it was given and `neg` saves nothing,
# so their results may be changed.


# %%
def scaled(function):
    y = function(weight * 2)
    y *= 3
    (y * 1.0).sum().backward()


for function in (torch.exp, torch.sigmoid, torch.sin, torch.neg):
    name = function.__name__
    try:
        scaled(function)
        print(name, "can be changed in place: its result was not saved")
    except RuntimeError:
        print(name, "cannot: write y = y * 3")

# %% [markdown]
# The blocks of a ResNet write in place all the time. `out += x` writes to what a batch norm returned, which
# saves its input and not its result; a ReLU in place saves what it leaves behind. After a sigmoid, the same
# two lines are an error:

# %%
for last in (nn.BatchNorm1d(3), nn.Sigmoid()):
    x = torch.ones(4, 3, requires_grad=True)
    out = last(x)
    out += x
    try:
        out.relu_().sum().backward()
        print(type(last).__name__, "may stand before it")
    except RuntimeError:
        print(type(last).__name__, "may not")

# %% [markdown]
# ### Gradients under a condition
#
# The graph is recorded anew in each call, so an `if` in Python is no obstacle: the branch that ran is
# recorded, the other is not there. The condition itself has no gradient. `torch.where` computes both
# branches and sends each element's gradient into one of them:
#
# Draw: show_curves({name: [(at / 10, torch.autograd.functional.vjp(f, torch.tensor(at /
# 10))[1].item()) for at in range(-30, 31)] for name, f in [("`if x > 0: x**2, else 5 * x`",
# lambda x: x**2 if x > 0 else 5 * x), ("the same without a condition: `x**2`", lambda x: x**2)]},
# "x", "gradient") | The gradient is that of the branch that ran, and jumps where the branches
# meet. Of the jump autograd knows nothing.

# %%
for start in (2.0, -2.0):
    x = torch.tensor(start, requires_grad=True)
    y = x**2 if x > 0 else 5 * x
    y.backward()
    print(f"if: {y.grad_fn.name()}, gradient {x.grad.item()}")
x = torch.tensor([2.0, -2.0], requires_grad=True)
torch.where(x > 0, x**2, 5 * x).sum().backward()
print("where:", x.grad.tolist())

# %% [markdown] sitting="saved"
# question: What is kept from forward to backward, and who decides?
# reached: >-
#   A `Function` says what it saves. Hooks on saved tensors may put it elsewhere, and bring it
#   back when backward asks.

# %% [markdown] exercise="cross_entropy"
# title: Write a Function that can be differentiated twice
# minutes: 45
# difficulty: 4
# points: 6
# prerequisites: [graph_report]
# teaches: >-
#   custom `Function`s whose backward is part of the graph, what may be saved and what may not, and
#   the cross-entropy without overflow.
# leaves out: forward mode, `vmap`, class weights and label smoothing.
# off limits: [torch.nn.functional.cross_entropy, torch.nn.functional.nll_loss, torch.nn.functional.log_softmax, torch.nn.functional.softmax, torch.nn.CrossEntropyLoss, torch.nn.LogSoftmax, torch.nn.Softmax, torch.softmax, torch.log_softmax, torch.logsumexp, "aten:_log_softmax", "aten:_softmax", "aten:logsumexp"]
# forbids: "whatever computes a softmax, its logarithm or the loss"

# %% [markdown]
# A `torch.autograd.Function` is a node of your own: `forward` computes and saves, `backward` turns the
# gradient of the result into gradients of the inputs. If a gradient is asked for with
# `create_graph=True`, `backward` itself is recorded, so that it can be differentiated in turn. There is
# a trap in that. This one looks right:


# %%
class CubeWrong(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        square = x * x
        ctx.save_for_backward(square)
        return x * square

    @staticmethod
    def backward(ctx, grad):
        (square,) = ctx.saved_tensors
        return 3 * square * grad


x = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
fourth_power = CubeWrong.apply(x) * x
(first,) = torch.autograd.grad(fourth_power, x, create_graph=True)
(second,) = torch.autograd.grad(first, x)
print("x⁴ at 2, first derivative: ", first.item(), " and 4x³  is", 4 * 2.0**3)
print("x⁴ at 2, second derivative:", second.item(), " and 12x² is", 12 * 2.0**2)

# %% [markdown]
# `square` was made inside `forward`, where nothing is recorded. Saved, it comes back as a constant: the
# graph does not know that it depends on `x`, and a part of the second derivative is missing. Nothing
# was raised.
#
# Inputs and outputs of `forward` are safe to save. They come back connected to the graph (`SavedVariable`
# notes whether it holds an output of its node). So save the input, and compute the rest from it in
# `backward`, with operations that can be differentiated:


# %%
class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 3 * x * x * grad


for function in (Cube.apply, CubeWrong.apply):
    first = torch.autograd.gradcheck(function, x)
    second = torch.autograd.gradgradcheck(function, x, raise_exception=False)
    print("gradcheck:", first, " gradgradcheck:", second)

# %% [markdown]
# `gradcheck` compares a backward with differences of function values. It found nothing wrong with
# `CubeWrong`: its first derivative is right. `gradgradcheck` looks at the second, and refuses it.
#
# Look: autograd/graph#code=x = torch.ones(2, requires_grad=True);y = x * x;z = y * x;z.sum().backward()&line=3 |
# A cube out of two products. Each saves its operands, and `y` comes back with the node that made
# it.
#
# Now a Function worth having. The **cross-entropy** of one row of logits $z$ with target class $t$ is
#
# $$\ell = \log \sum_k e^{z_k} - z_t$$
#
# As it stands, it overflows. `float32` holds $e^{88}$ and not $e^{89}$. Take the largest logit $m$ out
# of the sum, and the largest term is $e^0$:
#
# $$\log \sum_k e^{z_k} = m + \log \sum_k e^{z_k - m}$$
#
# The gradient is known too. With the probabilities $p_k = e^{z_k} / \sum_j e^{z_j}$ it is
# $\partial \ell / \partial z_k = p_k - [k = t]$, where $[k = t]$ is 1 for the target and 0 for the others.

# %%
z = torch.tensor([1000.0, 0.0])
print("exp of 88 and 89:", [f"{value:.1e}" for value in torch.tensor([88.0, 89.0]).exp().tolist()])
print("naive: ", z.exp().sum().log().item())
print("stable:", (z.max() + (z - z.max()).exp().sum().log()).item())

# %% [markdown]
# **Predict.** Two logits, 0 and $z$, and the target is the first class. What is the *second* derivative
# of the loss with respect to $z$ at $z = 0$? Write it as a decimal number.


# %%
def second_derivative():
    z = torch.zeros((), dtype=torch.float64, requires_grad=True)
    loss = torch.log(1 + z.exp())
    (first,) = torch.autograd.grad(loss, z, create_graph=True)
    (second,) = torch.autograd.grad(first, z)
    return round(second.item(), 6)


predict(..., second_derivative)

# %% [markdown]
# **Write `cross_entropy(logits, target)`.** `logits` is a floating-point tensor `(n, classes)` of any
# layout, `target` an `int64` tensor `(n,)`. There is at least one row. Return the mean of the rows'
# losses, without dimensions, in the dtype of `logits`.
#
# - It can be differentiated twice with respect to `logits`, whatever gradient comes in; the first
#   derivative has a derivative by that incoming gradient, too.
# - It is accurate to a few roundings of the largest logit, also where `exp` of the logits is infinite. A
#   logit may be minus infinity where it is not the target: that class has probability 0, and its gradients
#   are 0.
# - Between forward and backward the graph keeps, beside `logits` and `target` themselves, no more than
#   16 bytes per row. Built of ordinary operations, the graph keeps the exponentials as well.
#
# `softmax`, `log_softmax` and `logsumexp` are off limits, and so is the finished loss.
#
# <details><summary>Hint 1: what to save</summary>
#
# The two inputs are enough. `backward` can compute the probabilities from `logits` once more.
#
# </details>
# <details><summary>Hint 2: a backward that is part of the graph</summary>
#
# If `backward` uses only operations that PyTorch can differentiate, on saved inputs and on the incoming
# gradient, then the second derivative takes care of itself. A value that `forward` computed and saved
# would be a constant in it, the logarithm of the sum as well.
#
# </details>
# <details><summary>Hint 3: minus infinity</summary>
#
# `exp` turns it into a clean zero. `0 * -inf` is NaN: pick the target's logit with `gather`, do not
# multiply by a one-hot row.
#
# </details>


# %% solution="cross_entropy"
class CrossEntropy(torch.autograd.Function):
    """The mean cross-entropy, which saves its inputs and nothing else."""

    @staticmethod
    def forward(ctx, logits, target):
        ### BEGIN SOLUTION
        ctx.save_for_backward(logits, target)
        return (log_sum_exp(logits) - logits.gather(1, target[:, None])).mean()

    @staticmethod
    def backward(ctx, grad):
        logits, target = ctx.saved_tensors
        # From the saved input, not from what forward computed: so it has a derivative of its own.
        probabilities = (logits - log_sum_exp(logits)).exp()
        hit = torch.zeros_like(probabilities).scatter(1, target[:, None], 1.0)
        return grad * (probabilities - hit) / len(logits), None

    ### END SOLUTION


def log_sum_exp(logits: torch.Tensor) -> torch.Tensor:
    """Return log(sum(exp(logits))) per row, as (n, 1)."""
    ### BEGIN SOLUTION
    # Which number is taken out does not change the sum: for derivatives it is a constant.
    top = logits.amax(1, keepdim=True).detach()
    return top + (logits - top).exp().sum(1, keepdim=True).log()
    ### END SOLUTION


def cross_entropy(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Return the mean cross-entropy of rows of logits.

    logits: (n, classes) floating point
    target: (n,) int64
    returns: () of the same dtype
    """
    ### BEGIN SOLUTION
    return CrossEntropy.apply(logits, target)
    ### END SOLUTION


# %% grade="cross_entropy"
grade("cross_entropy")

# %% [markdown]
# ### Entropy, and a gradient that is NaN
#
# The entropy of a distribution is $-\sum_k p_k \log p_k$, greatest when all are equally likely. A term
# with $p_k = 0$ counts as 0. Computed as it is written, it is NaN, and the usual repair mends the value
# and leaves the gradient broken:
#
# Draw: show_curves({"entropy of p, 1 - p": [(at / 100, -sum(p * math.log(p) for p in (at / 100, 1
# - at / 100) if p)) for at in range(101)]}, "p", "") | Greatest in the middle, and at both ends
# as steep as can be: there the slope is infinite.

# %%
p = torch.tensor([0.5, 0.5, 0.0], requires_grad=True)
repaired = torch.where(p > 0, -p * p.log(), 0.0).sum()
print("value:   ", round(repaired.item(), 6))
repaired.backward()
print("gradient:", [round(value, 6) for value in p.grad.tolist()])

# %% [markdown]
# The true slope at 0 is infinite. NaN is no slope at all, and it spreads to all that lies before. `where`
# picks a value. Its backward sends 0 into the branch that was not picked, and there 0 times infinity is
# NaN. Pick before the logarithm, so that no infinity is computed at all. The slope at 0 is then 0:

# %%
p.grad = None
safe = torch.where(p > 0, p, 1.0)
(-(p * safe.log())).sum().backward()
print("gradient:", [round(value, 6) for value in p.grad.tolist()])

# %% [markdown]
# `torch.special.entr` computes such terms, and has the true slope. With its sums one can ask for more. A
# **pair** of variables has an entropy over all pairs of values. It is at most that of the two alone, added
# up; what is missing is what each tells of the other. And for a **density** the sum becomes an integral, which
# may be negative: it depends on the unit of $x$.


# %%
def in_bits(p):
    bits = torch.special.entr(p).sum() / torch.tensor(2.0).log()
    return round(bits.item(), 3)


p.grad = None
torch.special.entr(p).sum().backward()
print("gradient:", [round(value, 6) for value in p.grad.tolist()])
pair = torch.tensor([[0.5, 0.0], [0.25, 0.25]])
print("the pair:", in_bits(pair))
print("alone:   ", in_bits(pair.sum(1)), in_bits(pair.sum(0)))
for unit, width in (("metres", 0.5), ("millimetres", 500.0)):
    entropy = torch.distributions.Uniform(0.0, width).entropy().item()
    print(f"anywhere on half a metre, in {unit}: {entropy:.3f}")

# %% [markdown]
# ### Twice, but not compiled
#
# `torch.compile` hands a function to a **backend**. Backends that compile the backward as well, such as
# the default one, make of it a function that can be differentiated once: the compiled backward is no
# graph that could be differentiated again. The backend `eager` leaves backward to autograd.

# %%
for backend in ("eager", "aot_eager"):  # the second compiles the backward, like the default
    compiled = torch.compile(lambda x: (x**4).sum(), backend=backend)
    x = torch.ones(3, requires_grad=True)
    (first,) = torch.autograd.grad(compiled(x), x, create_graph=True)
    try:
        print(backend, "twice:", torch.autograd.grad(first.sum(), x)[0].tolist())
    except RuntimeError as error:
        print(backend, "twice:", error)

# %% [markdown] exercise="offloading"
# title: Keep what is saved on disk
# minutes: 45
# difficulty: 4
# points: 6
# prerequisites: [graph_report]
# teaches: >-
#   packing saved tensors: what to move, what to leave where it is, and when what was moved is no longer
#   needed.
# leaves out: moving in the background, and storing a tensor once that several nodes save.
# off limits: [torch.autograd.graph.save_on_cpu]

# %% [markdown]
# What a node saves, it keeps in memory until backward. It need not. Within
# `torch.autograd.graph.saved_tensors_hooks(pack, unpack)` every tensor that a node wants to save goes through
# `pack` (the 2 of `x * 2` does not), and the node keeps what `pack` returned: a number, a name of a file,
# any object. When backward needs the tensor, `unpack` gets that object and must return a tensor of the same
# content.
#
# Look: autograd/graph#code=x = torch.ones(2, requires_grad=True);y = x * 2;z = y.sin();loss = z.sum();loss.backward()&line=4 |
# `sin` saved its input, a tensor, and the product only its number 2. Step on, and what was saved is
# freed.
#
# Here a product keeps its operands in half the space, at the price of some digits:

# %%
x = torch.tensor([1.0, 2.001, 3.0], requires_grad=True)
with torch.autograd.graph.saved_tensors_hooks(
    lambda tensor: tensor.to(torch.bfloat16), lambda packed: packed.to(torch.float32)
):
    y = x * x
y.sum().backward()
print("2x, nearly:", [round(value, 4) for value in x.grad.tolist()])

# %% [markdown]
# Now to disk, without losing a bit. Three questions decide whether that helps.
#
# **What is worth moving?** A parameter is in memory anyway; a copy of it on disk frees nothing. The same goes
# for every leaf that requires grad. Small tensors are not worth a file.
#
# **How much is it?** A saved tensor may be a view. Ten elements of a million keep the million alive, so what
# counts is the size of the storage. What has to be written are the ten.
#
# Draw: show_storage(saved=torch.arange(16)[6:9]) | A node that saves these three elements keeps
# all sixteen in memory.
#
# **When may the file go?** When the node no longer needs it. Backward tells you nothing of that; a graph that
# is dropped without a backward least of all. But the node holds your object, and lets it go when it is done.
# `weakref.finalize(thing, function, argument)` calls `function(argument)` when `thing` goes.

# %%


class Ticket:
    """What a node may keep in place of a tensor."""


ticket = Ticket()
weakref.finalize(ticket, print, "the ticket is gone")
del ticket
print("after del")

# %% [markdown]
# There is a trap in leaving a tensor where it is. `exp` saves its own result. If `pack` returns that very
# tensor, the node holds the tensor, and the tensor holds the node as its `grad_fn`. Without a backward
# such a ring is never freed; Python's garbage collector does not see into it. A detached tensor has the
# same memory and no `grad_fn`:

# %%


def stays_alive(pack):
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda packed: packed):
        result = x.exp()
    result.grad_fn.metadata["label"] = Label()
    label = weakref.ref(result.grad_fn.metadata["label"])
    del result
    gc.collect()
    return label() is not None


print("pack returns the tensor:  is the node alive?", stays_alive(lambda tensor: tensor))
print("pack returns it detached: is the node alive?", stays_alive(lambda tensor: tensor.detach()))

# %% [markdown]
# **Predict.** `h = x.exp()` is computed with hooks, and so is `z = h * h`. How many times is `pack` called?


# %%
def times_packed():
    packed = []
    with torch.autograd.graph.saved_tensors_hooks(packed.append, lambda nothing: nothing):
        h = x.exp()
        h * h
    return len(packed)


predict(..., times_packed)

# %% [markdown]
# **Write the context manager `offloading(folder, at_least)`**, as a generator function under
# `@contextmanager`. `folder` is the path of an existing folder, a `str`. In the body of
# `with offloading(folder, at_least):`, graphs are recorded as usual, except for saved tensors whose
# **storage** has `at_least` bytes or more and which are no leaf that requires grad. Each of these is written
# to a file of its own in `folder`, and the graph keeps nothing of it in memory.
#
# - Backward gives the gradients of a plain run, as often as it is called with `retain_graph=True`. It may
#   happen after the `with` is left, and after another one in the same folder was entered. No digit is lost.
# - A file holds the tensor's own elements, not the storage behind it: no more than 4096 bytes beside them.
# - A file is deleted when its node no longer needs it: at the latest when the graph is gone, whether or not
#   there was a backward. Files of others in the folder stay.
# - Tensors have any dtype and layout.
# - After the `with`, graphs keep their tensors in memory again, also if its body raised. The error goes on.
#
# `torch.save(tensor, path)` and `torch.load(path)` write and read. `save` writes the whole storage of a view.
#
# <details><summary>Hint 1: three kinds of tensors</summary>
#
# `pack` may return a leaf itself, and `tensor.detach()` of what else is to stay. `unpack` sees by the type
# what it got. A leaf that requires grad is `tensor.is_leaf and tensor.requires_grad`.
#
# </details>
# <details><summary>Hint 2: only its own elements</summary>
#
# `tensor.detach().clone()` has a storage of just its elements. An expanded tensor has few elements in memory
# and many to look at; a clone writes all of them, and that is allowed.
#
# </details>
# <details><summary>Hint 3: a name that nobody has</summary>
#
# `uuid.uuid4().hex` is different each time. An address or a number of your own may be used again by the next
# `with`, while a file of that name is still needed.
#
# </details>


# %% solution="offloading"
@contextmanager
def offloading(folder: str, at_least: int) -> Iterator[None]:
    """Keep large tensors that graphs save in files, for as long as the graphs need them.

    folder: where files go
    at_least: bytes of a storage from which on a tensor is moved
    """
    ### BEGIN SOLUTION

    class OnDisk:
        """What the node keeps; the file goes when it goes."""

        def __init__(self, tensor):
            self.path = os.path.join(folder, f"{uuid.uuid4().hex}.pt")
            # A clone has a storage of its own elements; the tensor's may be much larger.
            torch.save(tensor.detach().clone(), self.path)
            weakref.finalize(self, os.remove, self.path)

    def pack(tensor):
        stays = tensor.is_leaf and tensor.requires_grad  # in memory anyway
        small = tensor.untyped_storage().nbytes() < at_least
        if stays:
            return tensor
        # Detached: a result that its own node holds with its history would hold that node.
        return tensor.detach() if small else OnDisk(tensor)

    def unpack(packed):
        return torch.load(packed.path) if isinstance(packed, OnDisk) else packed

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        yield
    ### END SOLUTION


# %% grade="offloading"
grade("offloading")

# %% [markdown] sitting="recompute"
# question: Can a network be trained that does not fit into memory?
# reached: >-
#   What is not kept can be computed a second time, if the second time is the first again: random
#   numbers, grad mode, autocast.

# %% [markdown] exercise="checkpoint"
# title: Trade memory for a second forward pass
# minutes: 60
# difficulty: 5
# points: 6
# prerequisites: [graph_report]
# teaches: >-
#   saved-tensor hooks, and activation checkpointing with them: what has to be remembered so that the
#   second forward pass is the first one again.
# leaves out: >-
#   stopping the second pass early, autocast, other devices, `create_graph`, and arguments that are
#   changed in place in the meantime.
# off limits: [torch.utils.checkpoint.checkpoint, torch.utils.checkpoint.CheckpointFunction, torch.utils.checkpoint._checkpoint_without_reentrant_generator, torch.utils.checkpoint._CheckpointFrame]
# forbids: "PyTorch's own checkpoints"

# %% [markdown]
# Much of the memory of training is what nodes save. **Checkpointing** a part of a network saves nothing of
# it: on the way back, the part is computed a second time, and what its nodes need is there again.
#
# Look: autograd/graph#code=x = torch.ones(2, requires_grad=True);a = x.sin();b = a.sin();c = b.sin();c.sum().backward()&line=4 |
# Three calls, and each node keeps its input until backward. That is what checkpointing does
# without.
#
# PyTorch has a place to put that in. Within `saved_tensors_hooks(pack, unpack)`, every tensor that a node
# wants to save goes through `pack`, and the node keeps what `pack` returned, whatever that is. When
# backward needs the tensor, `unpack` gets it back and must return a tensor of the same content.

# %%
seen = []


def pack(tensor):
    seen.append(("pack", tuple(tensor.shape)))
    return len(seen) - 1  # the node keeps a number


kept_elsewhere = torch.ones(3).exp()


def unpack(number):
    seen.append(("unpack", number))
    return kept_elsewhere


x = torch.ones(3, requires_grad=True)
with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
    y = x.exp()
y.sum().backward()
print(seen)
print("right gradient:", torch.equal(x.grad, kept_elsewhere))

# %% [markdown]
# A function that does the same twice saves the same tensors in the same order. So the node may keep a
# **number**: how many were saved before. When the first number comes back, run the function again with
# other hooks, which catch every tensor that passes. The numbers find their tensors, and nothing else of
# the function needs to be known.
#
# The second run has to be the first one again. Dropout is the touchstone: it draws random numbers, and by
# then the generator has moved on. The older way to checkpoint has another weak point. It is a custom
# Function, and a Function sees only tensors that are handed to it as arguments:

# %%
a = torch.ones(2, requires_grad=True)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it says that no input requires grad
    for reentrant in (True, False):
        doubled = torch.utils.checkpoint.checkpoint(
            lambda t: t[0] * 2, (a,), use_reentrant=reentrant
        )
        own = torch.utils.checkpoint.checkpoint(
            nn.Linear(2, 2), torch.ones(2), use_reentrant=reentrant
        )
        print(
            f"use_reentrant={reentrant!s:>5}: requires grad: in a tuple {doubled.requires_grad},"
            f" by a parameter {own.requires_grad}"
        )

# %% [markdown]
# Draw: show_cells({f"use_reentrant={reentrant}": [torch.utils.checkpoint.checkpoint(function,
# argument, use_reentrant=reentrant).requires_grad for function, argument in ((lambda t: t * 2,
# a), (lambda t: t[0] * 2, (a,)), (nn.Linear(2, 2), torch.ones(2)))] for reentrant in (True,
# False)}, ["a tensor as argument", "a tensor in a tuple", "a parameter of its own"]) | For what a
# gradient is recorded, in both ways.
#
# The tensor was inside a tuple, so the reentrant version missed it. It misses parameters that the function
# has by itself just as well, if no argument requires grad. Hooks miss neither.
#
# **Predict.** A function with three layers is checkpointed, and `backward` is called. How often does its
# first layer run in all?


# %%
def runs_of_the_first_layer():
    runs = []
    first = nn.Linear(2, 2)
    first.register_forward_hook(lambda *_: runs.append(1))
    layers = nn.Sequential(first, nn.Tanh(), nn.Linear(2, 2))
    torch.utils.checkpoint.checkpoint(
        layers, torch.ones(1, 2), use_reentrant=False
    ).sum().backward()
    return len(runs)


predict(..., runs_of_the_first_layer)

# %% [markdown]
# **Write `checkpoint(function, *args, **kwargs)`.** Return what `function(*args, **kwargs)` returns, of
# whatever type, and record a graph for it that gives the same gradients as a plain call.
#
# - Arguments may be anything: tensors, numbers, text, tensors inside of tuples and dicts. `function` may use
#   parameters that are not among them.
# - The graph keeps no tensor that was computed inside of `function`, nor does anything of yours, until
#   backward begins.
# - `function` runs once in forward, and once more for a backward pass through its graph. With
#   `retain_graph=True` there may be several; each runs it once more. Without a backward it does not run
#   again, and a call under `no_grad` is a plain call.
# - `function` may draw random numbers from the CPU's default generator: `torch.get_rng_state()` and
#   `torch.set_rng_state(state)`. The second run draws the same. For whoever else draws, the generator goes on
#   as if there had been no second run.
#
# A backward pass through a part of the graph may leave some tensors unused.
#
# <details><summary>Hint 1: numbers</summary>
#
# `pack` returns how many tensors it has seen before. `unpack(number)` looks into a dict; if the number is
# not there, it runs the function again, which fills the dict.
#
# </details>
# <details><summary>Hint 2: the second run</summary>
#
# It happens in the middle of a backward pass, where grad mode is off. Without `torch.enable_grad()` nothing
# is recorded and nothing is packed. Its own hooks should put `tensor.detach()` into the dict.
#
# </details>
# <details><summary>Hint 3: taking out</summary>
#
# Take a tensor out of the dict when it is asked for (`dict.pop`). So it is freed as backward goes on, and a
# second backward pass finds nothing and runs the function again.
#
# </details>


# %% solution="checkpoint"
def checkpoint(function: Callable, *args: object, **kwargs: object) -> object:
    """Call a function now, and once more when backward needs what its nodes would have saved.

    returns: what function(*args, **kwargs) returns
    """
    ### BEGIN SOLUTION
    hooks = torch.autograd.graph.saved_tensors_hooks
    state = torch.get_rng_state()
    recomputed = {}
    numbers = itertools.count()

    def pack(tensor):
        return next(numbers)  # the tensor itself is let go

    def unpack(number):
        if number not in recomputed:
            recompute()
        return recomputed.pop(number)

    def recompute():
        again = itertools.count()

        def catch(tensor):
            # Without its own history: that belongs to the second graph, which nobody needs.
            recomputed[next(again)] = tensor.detach()

        now = torch.get_rng_state()
        torch.set_rng_state(state)
        try:
            # Backward runs without grad mode, and without it nothing would be packed.
            with torch.enable_grad(), hooks(catch, lambda nothing: nothing):
                function(*args, **kwargs)
        finally:
            torch.set_rng_state(now)

    with hooks(pack, unpack):
        return function(*args, **kwargs)
    ### END SOLUTION


# %% grade="checkpoint"
grade("checkpoint")

# %% [markdown]
# ### Save some, recompute the rest
#
# Between saving all and saving nothing lies a policy: save what is dear to compute, such as matrix products,
# and recompute what is cheap. PyTorch's own checkpoint takes one, as a function of each operator:
#
# Draw: show_curves({"64 equal layers": [(k, k + 64 / k) for k in range(1, 65)]}, "parts that are
# checkpointed one by one", "tensors kept at once") | How much is checkpointed at a time decides,
# too. Kept are what each part begins with and, on the way back, all of one part: least with 8
# parts of 8 layers.

# %%
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts


class Count(TorchDispatchMode):
    """Counts matrix products and sigmoids."""

    def __init__(self):
        super().__init__()
        self.calls = {"mm": 0, "sigmoid": 0}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func._schema.name.removeprefix("aten::")
        if name in self.calls:
            self.calls[name] += 1
        return func(*args, **(kwargs or {}))


def save_products(context, operator, *args, **kwargs):
    if operator == torch.ops.aten.mm.default:
        return CheckpointPolicy.MUST_SAVE
    return CheckpointPolicy.PREFER_RECOMPUTE


matrix = torch.eye(4, requires_grad=True)


def three_layers(h):
    for _ in range(3):
        h = torch.sigmoid(h @ matrix)
    return h


for name, options in [
    ("nothing saved", {}),
    ("products saved", {"context_fn": lambda: create_selective_checkpoint_contexts(save_products)}),
]:
    with Count() as count:
        h = torch.utils.checkpoint.checkpoint(
            three_layers, torch.ones(4, 4), use_reentrant=False, **options
        )
        h.sum().backward()
    print(f"{name:>14}: {count.calls}")

# %% [markdown]
# In both, the sigmoids ran twice. The products of forward ran twice in the first only; what remains are the
# five products that backward itself needs.
#
# Look: compile/cut#program=mlp&stage=partition&cut=0.5 | `torch.compile` chooses, too: of three
# layers, what is saved under a budget, and what is computed twice. Move it.

# %% [markdown] sitting="backward"
# question: What does `backward` do?
# reached: >-
#   It visits each node once all its gradients are there, adds where roads meet, and leaves sums
#   at the leaves. You have run it without the engine.

# %% [markdown] exercise="gradients"
# title: Run backward without the engine
# minutes: 60
# difficulty: 5
# points: 7
# short: true
# prerequisites: [graph_report]
# teaches: >-
#   what `backward` is: an order of the nodes in which each has all it needs, and a sum wherever roads
#   meet.
# leaves out: custom Functions, hooks, `create_graph`, and threads.
# off limits: [torch.Tensor.backward, torch.autograd.backward, torch.autograd.grad, torch.autograd._engine_run_backward, torch.autograd.graph._engine_run_backward, torch.autograd.Variable._execution_engine.run_backward, torch._C._ImperativeEngine]
# forbids: "PyTorch's own engine"

# %% [markdown]
# A node is a function. It takes the gradients of its results and gives those of its inputs, and you may
# call it yourself:

# %%
a = torch.tensor([1.0, 2.0], requires_grad=True)
b = torch.tensor([3.0, 5.0], requires_grad=True)
product = a * b
print(product.grad_fn(torch.ones(2)))
print([after.name() for after, _ in product.grad_fn.next_functions])

# %% [markdown]
# The gradients come in the order of `next_functions`. So the engine of autograd is a walk: call a node,
# hand each gradient to the node at the end of its edge, and go on there. Four things make it interesting.
#
# **A node must wait.** Where a result was used twice, two gradients arrive at its node. It is called once,
# with their sum. So you have to know how many edges lead to a node before you can tell that all have
# arrived. Edges that carry `None` count too.
#
# Look: autograd/graph#code=x = torch.ones(2, requires_grad=True);y = x * 2;z = y *
# y;z.sum().backward()&line=3 | `y` is used twice, so two edges lead from the second product to the
# first. It is called once, with the sum.
#
# **A node may have several results.** An edge is a pair of a node and the number of one of its results. A
# node is called with one gradient per result, `None` where nothing arrived. How many results it has is
# the length of `node._input_metadata`: the results of forward are the inputs of backward.

# %%
top, bottom = torch.eye(2, requires_grad=True).mul(2).unbind(0)
both = top + bottom
print([(after.name(), number) for after, number in both.grad_fn.next_functions])
unbind = top.grad_fn
print(len(unbind._input_metadata), "results;", "the gradient of the second alone:")
print(unbind(None, torch.ones(2)))

# %% [markdown]
# **A gradient may not fit yet.** Where forward broadcast a tensor, its gradient may come out of the node in
# the shape of the *result*; where forward mixed dtypes, it may come in the wider one. The engine mends both
# before it hands the gradient on (`validate_outputs`, in `torch/csrc/autograd/engine.cpp`):
# `_input_metadata` says which shape and dtype are right.

# %%
column = torch.ones(3, 1, requires_grad=True) * 1
wide = column + torch.ones(3, 4, dtype=torch.float64)
given = wide.grad_fn(torch.ones(3, 4, dtype=torch.float64))[0]
right = wide.grad_fn.next_functions[0][0]._input_metadata[0]
print("given:", tuple(given.shape), given.dtype, " right:", tuple(right.shape), right.dtype)

# %% [markdown]
# **Gradients are shared.** The node of `a + a` hands the same tensor to both of its edges. Who adds to it in
# place changes what the other road was given.
#
# **Predict.** `y = a + a`. Are the two gradients that `y`'s node returns one and the same tensor, in the
# same memory?


# %%
def the_same_memory():
    y = a + a
    left, right = y.grad_fn(torch.ones(2))
    return left.data_ptr() == right.data_ptr()


predict(..., the_same_memory)

# %% [markdown]
# **Write `gradients(output, cotangent, inputs)`.** `output` is a tensor that requires grad, and `cotangent`
# the gradient that comes in, of the same shape. `inputs` is a list of tensors that require grad: leaves,
# results in the middle, `output` itself, the same one twice. `output` may be a leaf. Return a list with the
# gradient of each, as
# `torch.autograd.grad(output, inputs, cotangent, allow_unused=True)` does: `None` where `output` does not
# depend on it.
#
# - The results require no grad, even where `cotangent` does.
# - No `.grad` is changed, nor is `cotangent`, and the graph can be used again afterwards.
# - A graph may be a thousand nodes deep, with more roads through it than you can count.
#
# The edge where a tensor's gradient arrives is `torch.autograd.graph.get_gradient_edge(tensor)`, for results
# and for leaves: its `.node`, and as `.output_nr` the number of that node's result. A leaf's node is its
# `AccumulateGrad`. Do not call that one: it would add to `.grad`. PyTorch's engine is off limits, by whichever
# name: `backward`, `torch.autograd.grad` and what calls them.
#
# <details><summary>Hint 1: two walks</summary>
#
# First visit every node that can be reached, and count for each how many edges lead to it. Then walk again:
# whenever an edge has been followed, lower the count of its node, and when it is zero the node is ready.
#
# </details>
# <details><summary>Hint 2: slots</summary>
#
# Keep a list of gradients for each node, as long as `_input_metadata`. A gradient that arrives is put there
# if the place is empty, and else the place gets a **new** tensor with the sum. The gradient of an input is
# what is in its slot when its node is ready.
#
# </details>
# <details><summary>Hint 3: one gradient or several</summary>
#
# A node with one input returns a tensor, one with several a tuple. If nothing at all arrived at a node, do
# not call it: all its edges carry `None`. Work under `torch.no_grad()`, or your sums are recorded.
#
# </details>


# %% solution="gradients"
def gradients(
    output: torch.Tensor, cotangent: torch.Tensor, inputs: list[torch.Tensor]
) -> list[torch.Tensor | None]:
    """Return the gradient of each input, None where the output does not depend on it.

    cotangent: like output
    """
    ### BEGIN SOLUTION
    edges = [torch.autograd.graph.get_gradient_edge(tensor) for tensor in inputs]
    root, place = torch.autograd.graph.get_gradient_edge(output)[:2]

    # The first walk: how many edges lead to each node.
    missing, waiting = {root: 0}, [root]
    while waiting:
        for after, _ in waiting.pop().next_functions:
            if after is not None:
                if after not in missing:
                    missing[after] = 0
                    waiting.append(after)
                missing[after] += 1

    # The second: call each node when all that it waits for has arrived.
    slots = {node: [None] * len(node._input_metadata) for node in missing}
    slots[root][place] = cotangent.detach()
    ready = [root]
    with torch.no_grad():
        while ready:
            node = ready.pop()
            results = ()
            # A leaf's node has no edges, and calling it would write to .grad.
            if node.next_functions and any(grad is not None for grad in slots[node]):
                results = node(*slots[node])
                results = results if isinstance(results, tuple) else (results,)
            for number, (after, slot) in enumerate(node.next_functions):
                if after is None:
                    continue
                grad = results[number] if results else None
                if grad is not None:
                    right = after._input_metadata[slot]
                    # Undo what broadcasting and promotion did on the way forward.
                    grad = grad.sum_to_size(right.shape).to(right.dtype)
                    there = slots[after][slot]
                    # A new tensor: this one may be in use on another road.
                    slots[after][slot] = grad if there is None else there + grad
                missing[after] -= 1
                if missing[after] == 0:
                    ready.append(after)
    return [slots[edge[0]][edge[1]] if edge[0] in slots else None for edge in edges]
    ### END SOLUTION


# %% grade="gradients"
grade("gradients")
