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

# %% [markdown] chapter="ch09_dispatch"
# title: Beneath an operator
# summary: >-
#   You wrote `x + 1`. Which of more than a thousand CPU kernels ran, who chose it, and what happened
#   on the way? In this chapter you read an operator's schema, choose its overload, walk the
#   dispatcher's table, and do what a kernel does before its loop begins. Then you get in between,
#   and at the end you build what sounds impossible: a device that does not exist.

# %% [markdown]
# ## How to work
#
# Each exercise has a card, a few cells to read and run, and one cell to write: the one that
# raises `NotImplementedError`. The cell after it grades what you wrote, as often as you like.
#
# Where a cell calls `predict(...)`, write your guess in place of the dots before you run it.
# Nobody grades a guess.

# %%
import torch
from torch import nn

from grader import grade, hint, predict, solution, written

# %% [markdown] sitting="schemas"
# question: What does an operator promise, and which of its overloads did you call?
# reached: >-
#   A schema says what is written and what may alias. Most operators keep that promise, and the first
#   overload that your arguments fit is the one that runs.

# %% [markdown] sitting="who-gets-the-call"
# question: Who decides which kernel runs?
# reached: >-
#   The keys of the arguments and of the thread, through a table that is filled by a few rules; a
#   kernel may hand the call on. You can put one of your own in between, and take it out again.

# %% [markdown] sitting="inside-a-kernel"
# question: What has a kernel decided before its loop begins?
# reached: >-
#   The dtype of the result, its strides, the order and the number of its loops, and whether it may
#   write where it was told to.

# %% [markdown] sitting="in-between"
# question: How do subclasses, vmap and functionalization change what an operator means?
# reached: >-
#   By taking the call before a kernel does: they take a tensor apart, add a dimension, or replay
#   writes on a copy, and call operators again.

# %% [markdown] sitting="abacus"
# question: What does PyTorch need to know about a device?
# reached: >-
#   Memory, copies, and about sixteen kernels. All the rest, autograd, modules and optimisers
#   included, is above the device.
