# Dispatch and operators: questions, answers, and programs that show them.

# %% what-is-the-dispatcher
# What is the PyTorch dispatcher?
#
# The part that decides which kernel runs when you call an operator. Each operator has a table with a row per dispatch key: CPU, CUDA, Meta, AutogradCPU, AutocastCPU, FuncTorchBatched and nearly ninety more. A call has a set of keys: those of its tensors, those that the thread adds (a mode, vmap), less those that it hides (inference mode). The highest key with a kernel gets the call.
#
# That kernel does its share and hands the call on to the keys below it. So a plain `x.sin()` is two kernels: autograd's, then the CPU's.
#
# Composite operators such as `linear` have no kernel for a backend. Theirs calls other operators, and each of those is dispatched anew.
#
# Look: dispatch/whole#call=linear&x=plain | F.linear: a composite, two calls inside it, and their roads down to the CPU.
#
# Go on: ch09_dispatch#Dispatcher, ch09_dispatch#table_entry, myths#no-grad-skips-autograd
import torch

x = torch.ones(2)
print("keys of x:", torch._C._dispatch_keys(x))
table = torch._C._dispatch_dump_table("aten::sin").splitlines()
print("rows of the table:", len(table))
for key in ("CPU", "SparseCPU", "Meta", "AutogradCPU", "ADInplaceOrView"):
    (row,) = [line for line in table if line.startswith(f"{key}: ")]
    word = row.rpartition("[")[2].rstrip("]")
    print(f"{key:16}", "fallthrough" if "fallthrough" in row else word)
linear = torch.ops.aten.linear.default
for key in ("CPU", "CompositeImplicitAutograd"):
    print("linear,", key, linear.has_kernel_for_dispatch_key(key))

# %% could-not-run-aten
# What does "Could not run 'aten::…' with arguments from the '…' backend" mean?
#
# The operator's table has nothing for the backend of your tensors. Either there is no kernel: many operators have none for sparse, quantized or nested tensors, for MPS or another device. Or the library that has it is not there: a build without CUDA, a custom operator whose package was not imported.
#
# Read the two names. The operator may not be the one that you wrote: `softmax` is a composite, and `_softmax` is what fails. The list behind "only available for these backends" says where it works.
#
# Then: convert the tensor (`.to_dense()`, `.dequantize()`, `.cpu()`) around that call; import what registers the operator; write the kernel with `torch.library`; or use an operator that is there.
#
# Look: dispatch/keys#call=softmax&x=sparse&step=1 | softmax of a sparse tensor: the composite runs, and _softmax has nothing for SparseCPU.
#
# Go on: ch09_dispatch#table_entry, ch09_dispatch#Abacus
import torch

x = torch.eye(2).to_sparse()
try:
    torch.softmax(x, 0)
except NotImplementedError as error:
    print(str(error).partition(". ")[0])
print(torch.softmax(x.to_dense(), 0).shape)

lib = torch.library.Library("asked", "FRAGMENT")
lib.define("twice(Tensor x) -> Tensor")
try:
    torch.ops.asked.twice(torch.ones(2))
except NotImplementedError as error:
    print(str(error).partition(". ")[0])
lib.impl("twice", lambda x: x + x, "CPU")
print(torch.ops.asked.twice(torch.ones(2)))
lib._destroy()

# %% tensor-function-or-class
# torch.tensor or torch.Tensor: what is the difference?
#
# `torch.tensor(data)` is the function for data. It always copies, and takes the dtype from the data: integers give int64, floats the default dtype.
#
# `torch.Tensor` is the class. Called, it is an old constructor with three meanings. A list gives the default dtype, so integers become floats, and large ones lose digits. A number is a size: `torch.Tensor(3)` is three elements with whatever the memory held. A tensor gives the same memory and dtype.
#
# Take `torch.tensor` for data, `torch.empty(3)` for memory, `torch.as_tensor` to copy only where one must. Keep `torch.Tensor` for `isinstance` and annotations.
#
# Go on: ch09_dispatch#tensor_of, myths#tensor-class-is-float
import torch

data = [1, 2, 2**24 + 1]
print(torch.tensor(data), torch.tensor(data).dtype)
print([int(n) for n in torch.Tensor(data)], torch.Tensor(data).dtype)
print(torch.tensor(3).shape, torch.Tensor(3).shape)
x = torch.tensor(data)
print("Tensor(x) shares:", torch.Tensor(x).data_ptr() == x.data_ptr())
print("as_tensor copies:", torch.as_tensor(x).data_ptr() != x.data_ptr())

# %% mixed-dtypes
# What dtype do I get when I mix dtypes?
#
# There are three ranks of operands: tensors with dims, tensors without, Python numbers. And four kinds of dtypes: bool, integer, float, complex. The tensors with dims decide among themselves, by `torch.promote_types`. An operand of lower rank is heard only where its kind is higher, and then its own dtype counts; a Python float has the default dtype. A complex one takes the precision of the floats around it.
#
# So `half + 2.5` stays half, `int64 + 2.5` becomes float32, and a float64 scalar tensor does not widen a float32 batch. An in-place operation never changes the dtype of its tensor, and raises where the result would be of a higher kind.
#
# `torch.result_type(a, b)` says it without computing.
#
# Go on: ch09_dispatch#result_dtype, myths#higher-precision-widens
import torch

batch, ints = torch.ones(2), torch.ones(2, dtype=torch.int64)
half, scalar = batch.half(), torch.tensor(2.5, dtype=torch.float64)
for name, a, b in (
    ("float32 with float64 with dims", batch, batch.double()),
    ("float32 with float64 scalar   ", batch, scalar),
    ("int64 with float64 scalar     ", ints, scalar),
    ("half with 2.5                 ", half, 2.5),
    ("int64 with 2.5                ", ints, 2.5),
    ("half with int64               ", half, ints),
):
    assert (a + b).dtype == torch.result_type(a, b)
    print(name, (a + b).dtype)
try:
    ints.add_(2.5)
except RuntimeError as error:
    print(error)

# %% torch-function-or-torch-dispatch
# __torch_function__ or __torch_dispatch__: which one do I need?
#
# `__torch_function__` stands in Python, above everything. It sees the calls of your program with your arguments: `F.linear`, `x.shape`, `loss.backward`. Take it to log, to check units, to change what the API means. It needs no subclass of Tensor.
#
# `__torch_dispatch__` stands below autograd and autocast, just above the kernels. It sees the aten operators that are left, composites already taken apart, those of the backward among them. Take it for another way to hold data (quantized, sharded, fake), for counting memory or FLOPs, for a new backend.
#
# What you change in the first is differentiated. What you change in the second is what autograd's formulas rest on.
#
# Both come as a method of a subclass and as a mode for a `with`.
#
# Look: dispatch/lanes#call=mm&x=plain&around=mode&step=2 | A dispatch mode is asked below autograd, just above the backend.
#
# Go on: ch09_dispatch#Affine8, ch09_dispatch#patched
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode


class Above(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        print("  function:", getattr(func, "__name__", func))
        return func(*args, **(kwargs or {}))


class Below(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        print("  dispatch:", func)
        return func(*args, **(kwargs or {}))


x, w = torch.ones(2, 3), torch.ones(4, 3, requires_grad=True)
with Above(), Below():
    print("forward")
    loss = torch.nn.functional.linear(x, w).sum()
    print("backward")
    loss.backward()

# %% out-allocates
# Why does out= still allocate memory?
#
# `out=` saves the result. It does not save what the kernel needs on the way. If the operands have another dtype than the result's, they are cast to temporary tensors first. If `out` has strides that the kernel cannot write, as for a matrix product into a slice, the result is made elsewhere and copied. And an `out` of the wrong size is resized, with a warning unless it is empty.
#
# In-place operations are the same kernels with `out=self`, so `x.add_(y)` with a wider `y` takes memory, too.
#
# It takes nothing where dtypes agree and strides are plain. Measure it: `torch.profiler` with `profile_memory=True`. Gradients are out of reach: autograd refuses `out=` for what requires grad.
#
# Go on: ch09_dispatch#structured, myths#out-never-allocates
import torch
from torch.profiler import ProfilerActivity, profile


def allocated(f):
    cpu = [ProfilerActivity.CPU]
    with profile(activities=cpu, profile_memory=True) as seen:
        f()
    return sum(max(0, e.self_cpu_memory_usage) for e in seen.events())


a, b, out = torch.ones(1000), torch.ones(1000), torch.empty(1000)
wide, m, plain = b.double(), torch.ones(32, 32), torch.empty(32, 32)
sliced = torch.empty(32, 64)[:, ::2]
print("out of", out.nbytes, "bytes")
print("same dtypes:     ", allocated(lambda: torch.add(a, b, out=out)))
print("a wider operand: ", allocated(lambda: torch.add(a, wide, out=out)))
print("in place, wider: ", allocated(lambda: a.add_(wide)))
print("mm, plain out:   ", allocated(lambda: torch.mm(m, m, out=plain)))
print("mm, strided out: ", allocated(lambda: torch.mm(m, m, out=sliced)))
try:
    torch.add(a.requires_grad_(), b, out=out)
except RuntimeError as error:
    print(str(error).partition(",")[0])

# %% is-vmap-a-loop
# Is vmap a loop? And what is the performance drop that it warns of?
#
# It is no loop. `vmap` calls your function once, with a tensor that hides a dim. Each operator has a batching rule: it runs on the whole batch, with that dim moved where it does no harm. So the number of operators does not grow with the batch.
#
# Some operators have no rule. Then vmap does loop over the batch, calls the operator once per row and stacks the results. That is the warning, "performance drop because we have not yet implemented the batching rule". The result is right, and slow. Name the operator: often another one does the same, or you write it with other operators.
#
# Since the function sees no single value, `.item()`, `if x > 0:` and random numbers raise, unless `randomness=` is given for the last.
#
# Look: dispatch/road#call=histc&x=plain&around=vmap&step=1 | histc has no batching rule: for a batch of two, vmap calls it twice and stacks.
#
# Go on: ch09_dispatch#vmap
import warnings

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class Names(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


A, batch = torch.ones(3, 3), torch.rand(4, 3)
for f in (lambda v: A @ v, torch.histc):
    with warnings.catch_warnings(record=True) as said, Names() as names:
        warnings.simplefilter("always")
        torch.vmap(f)(batch)
    print(len(names.seen), "operators:", *names.seen)
    for one in said:
        print(str(one.message).partition("aten::")[0], end="…\n")
try:
    torch.vmap(lambda v: v if v.sum() > 0 else -v)(batch)
except RuntimeError as error:
    print(str(error).partition(".")[0])

# %% which-operators-run
# How do I see which aten operators my code calls?
#
# Three ways, at three heights. A `TorchDispatchMode` sees operators below autograd: composites are taken apart, those of the backward are there. `torch.profiler` sees composites and what is in them, nested, with times and bytes. `make_fx` gives the operators as a graph, for one set of shapes.
#
# One operator has its own words: `torch.ops.aten.add.Tensor._schema` for what it takes, writes and aliases, `.overloads()` for its variants, `.tags`, and `op.decompose(...)` for what a composite is made of.
#
# What you do not find there did not reach the dispatcher: `.shape`, `.contiguous()` of what is contiguous, `.to()` of the same dtype.
#
# Look: dispatch/road#call=layer_norm&x=plain | layer_norm and what is in it: the profiler sees both, a dispatch mode only the second.
#
# Go on: ch09_dispatch#resolve, ch09_dispatch#read_schema
import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode


class Names(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        print(" ", func)
        return func(*args, **(kwargs or {}))


def f(x):
    return torch.softmax(x.contiguous(), 0)


x = torch.ones(3)
print("a mode:")
with Names():
    f(x)
print("the profiler:")
with profile(activities=[ProfilerActivity.CPU]) as seen:
    f(x)
print(" ", [event.name for event in seen.events()])
print("make_fx:")
print(" ", make_fx(f)(x).code.strip().splitlines()[1].strip())
print(torch.ops.aten.softmax.int._schema)

# %% replace-a-built-in-operator
# Can I replace a built-in operator with my own kernel?
#
# Yes. `torch.library.Library("aten", "IMPL").impl("sin", kernel, "CPU")` puts a kernel of yours at one key of one operator, for the whole process and all threads, and warns. `torch.library.get_kernel` gives you the old one before, to call it. Keep the library object: the kernel leaves with it.
#
# Do not call the same operator in your kernel: the call comes back to you, until Python's stack is full. Call the old kernel, or redispatch below your key.
#
# Where a `with` is enough, use a `TorchDispatchMode`: it covers every operator, and only what runs inside. For an operator of your own, `torch.library.custom_op`.
#
# Look: dispatch/whole#call=relu&x=plain | The table of relu: a kernel of yours replaces one row.
#
# Go on: ch09_dispatch#patched, ch09_dispatch#Dispatcher
import warnings

import torch

warnings.simplefilter("ignore")
old = torch.library.get_kernel("aten::sin", "CPU")
calls = []


def counting(keys, x):
    calls.append(tuple(x.shape))
    return old.call_boxed(keys, x)


library = torch.library.Library("aten", "IMPL")
library.impl("sin", counting, "CPU", with_keyset=True)
x = torch.ones(2, requires_grad=True)
x.sin().sum().backward()
print(calls, x.grad)
library._destroy()
torch.ones(5).sin()
print(calls)
