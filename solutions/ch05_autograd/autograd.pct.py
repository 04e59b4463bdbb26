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
import warnings
import weakref

import torch

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
