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

# %% [markdown] chapter="ch00_shapes"
# title: Seven shapes
# summary: >-
#   What an exercise can be about: one small exercise for each kind of thing that must cross from a
#   student's process to the grader's as plain data. Authors read it beside its graders.
# preload: [torch._dynamo, torch.distributed]

# %%
from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch.utils.data import IterableDataset, get_worker_info

from grader import grade

# %% [markdown] exercise="transposed"
# title: "A view: transposed"
# minutes: 5
# difficulty: 1
# points: 4
# prerequisites: []
# teaches: that a transposed tensor is the same storage read with other strides.
# leaves out: more than two dimensions.
# off limits: [torch.Tensor.t, torch.Tensor.transpose, torch.Tensor.permute, torch.transpose, torch.permute]
# forbids: "functions that transpose"

# %% [markdown]
# Return `x` transposed, without a copy. `x` has two dimensions and any layout.
#
# <details><summary>Hint 1: where</summary>
#
# `torch.as_strided` takes sizes, strides and an offset.
#
# </details>


# %% solution="transposed"
def transposed(x: torch.Tensor) -> torch.Tensor:
    """x: (rows, columns); returns (columns, rows), a view of x."""
    ### BEGIN SOLUTION
    rows, columns = x.shape
    down, right = x.stride()
    return torch.as_strided(x, (columns, rows), (right, down), x.storage_offset())
    ### END SOLUTION


# %% grade="transposed"
grade("transposed")

# %% [markdown] exercise="clamp_in_place"
# title: "An in-place change: clamp from below"
# minutes: 5
# difficulty: 1
# points: 4
# prerequisites: []
# teaches: the difference between changing a tensor and naming another one.
# leaves out: autograd.
# off limits: [torch.Tensor.clamp_, torch.Tensor.clamp_min_, torch.Tensor.clamp, torch.clamp, "aten:clamp_min_"]
# forbids: "functions that clamp"

# %% [markdown]
# Raise every element of `x` below `low` to `low`, in place, and return `x` itself.
#
# <details><summary>Hint 1: the trap</summary>
#
# `x = …` gives a name to another tensor; `x[mask] = …` writes into this one.
#
# </details>


# %% solution="clamp_in_place"
def clamp_in_place(x: torch.Tensor, low: float) -> torch.Tensor:
    """x: any shape and layout, changed in place; returns x."""
    ### BEGIN SOLUTION
    x[x < low] = low
    return x
    ### END SOLUTION


# %% grade="clamp_in_place"
grade("clamp_in_place")

# %% [markdown] exercise="ActivationRecorder"
# title: "A Module with hooks: record activations"
# minutes: 15
# difficulty: 2
# points: 5
# prerequisites: []
# teaches: forward hooks, and taking them off again whatever happens.
# leaves out: outputs that are not tensors.
# off limits: []

# %% [markdown]
# A context manager: inside `with ActivationRecorder(model) as seen`, every call of a leaf module
# (one without children) puts its output, detached, into the dict `seen` under the module's name.
# Afterwards the model has no hook of yours, and nothing keeps the model alive.
#
# <details><summary>Hint 1: taking off</summary>
#
# `register_forward_hook` returns a handle with `remove()`.
#
# </details>


# %% solution="ActivationRecorder"
class ActivationRecorder:
    """model: any nn.Module; entering gives a dict from module name to output."""

    def __init__(self, model):
        ### BEGIN SOLUTION
        self.model = model
        self.handles = []

    def __enter__(self):
        seen = {}
        for name, module in self.model.named_modules():
            if not any(True for _ in module.children()):
                self.handles.append(module.register_forward_hook(self._hook(seen, name)))
        return seen

    @staticmethod
    def _hook(seen, name):
        def record(module, args, output):
            seen[name] = output.detach()

        return record

    def __exit__(self, *error):
        for handle in self.handles:
            handle.remove()

    ### END SOLUTION


# %% grade="ActivationRecorder"
grade("ActivationRecorder")

# %% [markdown] exercise="grad_off"
# title: "A context manager: no grad"
# minutes: 10
# difficulty: 1
# points: 4
# prerequisites: []
# teaches: that grad mode is a setting of the thread which must be put back as it was.
# leaves out: use as a decorator.
# off limits: [torch.no_grad, torch.inference_mode, torch.autograd.no_grad]
# forbids: "PyTorch's own switches"

# %% [markdown]
# `with grad_off():` switches grad mode off; afterwards it is what it was before, not simply on.
#
# <details><summary>Hint 1: the trap</summary>
#
# The body may raise.
#
# </details>


# %% solution="grad_off"
@contextmanager
def grad_off():
    """Switch grad mode off for the body of a `with`."""
    ### BEGIN SOLUTION
    before = torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    try:
        yield
    finally:
        torch.set_grad_enabled(before)
    ### END SOLUTION


# %% grade="grad_off"
grade("grad_off")

# %% [markdown] exercise="mapped_without_grad"
# title: "A generator: map without grad"
# minutes: 10
# difficulty: 2
# points: 4
# prerequisites: [grad_off]
# teaches: that a generator shares the caller's thread, and so its grad mode, between two yields.
# leaves out: values sent into the generator.
# off limits: []

# %% [markdown]
# Yield `f(item)` for each of `items`, computed with grad mode off. Take an item only when a result
# is asked for. The caller's grad mode is its own whenever the generator is paused.
#
# <details><summary>Hint 1: the trap</summary>
#
# A `with` around the `yield` is still open while the caller runs.
#
# </details>


# %% solution="mapped_without_grad"
def mapped_without_grad(f, items):
    """f: a function of one item; items: any iterable, perhaps endless."""
    ### BEGIN SOLUTION
    for item in items:
        with grad_off():
            result = f(item)
        yield result
    ### END SOLUTION


# %% grade="mapped_without_grad"
grade("mapped_without_grad")

# %% [markdown] exercise="Sharded"
# title: "A DataLoader with two workers: shards"
# minutes: 15
# difficulty: 2
# points: 4
# prerequisites: []
# teaches: that each worker has a whole copy of an iterable dataset.
# leaves out: shuffling, and ranks beside workers.
# off limits: []

# %% [markdown]
# An `IterableDataset` of the tensors `0 … n-1`. In a DataLoader with workers, worker `w` of `k`
# yields those whose remainder by `k` is `w`, in order; without workers all are yielded.
#
# <details><summary>Hint 1: where</summary>
#
# `get_worker_info()` is None in the main process.
#
# </details>


# %% solution="Sharded"
class Sharded(IterableDataset):
    """n: how many numbers; items are int64 tensors without dimensions."""

    def __init__(self, n):
        ### BEGIN SOLUTION
        self.n = n

    def __iter__(self):
        info = get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        for number in range(first, self.n, step):
            yield torch.tensor(number)

    ### END SOLUTION


# %% grade="Sharded"
grade("Sharded")

# %% [markdown] exercise="OpLister"
# title: "A Dynamo backend: list the ops"
# minutes: 15
# difficulty: 3
# points: 4
# prerequisites: []
# teaches: that a backend is a function from a graph to a callable, called once per graph.
# leaves out: AOTAutograd.
# off limits: [torch._dynamo.explain, torch._dynamo.testing.CompileCounter]

# %% [markdown]
# An `OpLister()` is a backend for `torch.compile`. For each graph it appends to its list `graphs`
# the names of the functions and methods that the graph calls, in order, such as `["sin", "add"]`;
# the graph then runs as it is.
#
# <details><summary>Hint 1: where</summary>
#
# A node's `op` is `call_function`, `call_method` or something else; `target` is what it calls.
#
# </details>


# %% solution="OpLister"
class OpLister:
    """Attribute graphs: a list of lists of names, one for each graph."""

    def __init__(self):
        ### BEGIN SOLUTION
        self.graphs = []

    def __call__(self, module, example_inputs):
        names = []
        for node in module.graph.nodes:
            if node.op == "call_function":
                names.append(node.target.__name__)
            elif node.op == "call_method":
                names.append(node.target)
        self.graphs.append(names)
        return module.forward

    ### END SOLUTION


# %% grade="OpLister"
grade("OpLister")

# %% [markdown] exercise="average"
# title: "Two ranks: the mean over all of them"
# minutes: 10
# difficulty: 2
# points: 4
# prerequisites: []
# teaches: that a collective is called by every rank, or waits for ever.
# leaves out: groups that are not the whole world.
# off limits: [torch.distributed.all_gather, torch.distributed.gather, torch.distributed.reduce]
# forbids: "other collectives"

# %% [markdown]
# Every rank calls `average(x)` with a tensor of its own. Return the mean over all ranks, on every
# rank, and leave `x` as it is.
#
# <details><summary>Hint 1: where</summary>
#
# `dist.all_reduce` adds in place, on every rank.
#
# </details>


# %% solution="average"
def average(x: torch.Tensor) -> torch.Tensor:
    """x: floating point, the same shape on every rank; returns that shape."""
    ### BEGIN SOLUTION
    total = x.clone()
    dist.all_reduce(total)
    return total / dist.get_world_size()
    ### END SOLUTION


# %% grade="average"
grade("average")
