# Dispatch: claims, what is true, and programs that show it.

# %% keys-hold-the-dtype Dispatcher
# A tensor's key set says where it is, how it is laid out, and its dtype.
#
# The dtype is in no key, a quantized one aside. Kernels for float and for integers are one kernel to the dispatcher, and the switch between them is inside.
keys = torch._C._dispatch_keys
print(keys(torch.ones(2)) == keys(torch.ones(2, dtype=torch.int64)), keys(torch.ones(2)))

# %% requires-grad-is-a-key Dispatcher
# `requires_grad=True` adds the key of autograd.
#
# Every tensor has it, but for those made in inference mode. Autograd's kernel runs each time and looks for itself whether a gradient is wanted.
keys = torch._C._dispatch_keys
plain, wanted = torch.ones(2), torch.ones(2, requires_grad=True)
with torch.inference_mode():
    without = torch.ones(2)
print(keys(plain) == keys(wanted), keys(without))

# %% no-grad-skips-autograd Dispatcher
# Under `no_grad` a call goes past autograd.
#
# It goes through it: the thread's key sets are as before, and autograd's kernel runs and records nothing. `inference_mode` takes its key out.
excluded = torch._C._dispatch_tls_local_exclude_set
usual = excluded()
for mode in (torch.no_grad, torch.inference_mode):
    with mode():
        print(mode.__name__, excluded() == usual)

# %% trace-is-what-i-wrote resolve
# A trace shows the operators that I wrote.
#
# Those that are left below autograd. Composites are gone, and so is what had nothing to do.
from torch.utils._python_dispatch import TorchDispatchMode


class Tell(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        print(func, end=" ")
        return func(*args, **(kwargs or {}))


x, w, b = torch.ones(2, 3), torch.ones(4, 3), torch.ones(4)
with Tell():
    torch.nn.functional.linear(x, w, b)
    print("| and of three more calls:", end=" ")
    x.to(torch.float32), x.contiguous(), torch.dropout(x, 0.5, train=False)
    print("nothing")

# %% plus-one-is-add-scalar resolve
# `x + 1` calls `add.Scalar`, since 1 is a number.
#
# It calls `add.Tensor`, with the number in the place of a tensor. Its neighbours do otherwise, each in its own way.
from torch.utils._python_dispatch import TorchDispatchMode


class Tell(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        print(func, end=" ")
        return func(*args, **(kwargs or {}))


x = torch.ones(2)
with Tell():
    x + 1, x == 1, x**2, 1 - x, 1 / x

# %% no-mark-no-write broken_promises
# An operator whose schema has no `!` writes into none of its arguments.
#
# Most keep that promise. `native_batch_norm` writes running statistics, and no version is counted up.
batch_norm = torch.ops.aten.native_batch_norm.default
mean, var = torch.zeros(3), torch.ones(3)
batch_norm(torch.rand(4, 3), None, None, mean, var, True, 0.1, 1e-5)
print(batch_norm._schema.is_mutable, mean.count_nonzero().item(), mean._version)

# %% marked-alias-is-a-view read_schema
# `Tensor(a) -> Tensor(a)` says that the result is a view.
#
# It says that it may be one. `reshape`, `contiguous`, `to` and `flatten` all say so, and copy where they must.
x = torch.arange(6).reshape(2, 3)
for y in (x, x.t()):
    flat = torch.ops.aten.reshape(y, [6])
    print(flat.untyped_storage().data_ptr() == y.untyped_storage().data_ptr())
print(torch.ops.aten.reshape.default._schema)

# %% returning-the-argument broken_promises
# An operator of mine that returns what it was given works: nothing complains.
#
# Not at the call. The caller gets the same object under a schema that promises a new tensor. `opcheck` says so.
lib = torch.library.Library("myths", "FRAGMENT")
lib.define("same(Tensor x) -> Tensor")
lib.impl("same", lambda x: x, "CompositeExplicitAutograd")
x = torch.ones(2)
print(torch.ops.myths.same(x) is x)
found = torch.library.opcheck(torch.ops.myths.same.default, (x,), raise_exception=False)
print({name: "fine" if said == "SUCCESS" else "wrong" for name, said in found.items()})
lib._destroy()

# %% no-formula-no-forward Dispatcher
# An operator without a formula for its gradient raises when it meets a tensor that requires grad.
#
# The forward passes, and the result even requires grad. Backward warns, and leaves the gradient None.
import warnings

lib = torch.library.Library("myths", "FRAGMENT")
lib.define("double(Tensor x) -> Tensor")
lib.impl("double", lambda x: x.detach() * 2, "CPU")
x = torch.ones(2, requires_grad=True)
y = torch.ops.myths.double(x)
print(y.requires_grad)
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    y.sum().backward()
print(x.grad, "|", str(said[0].message).partition(". ")[0][:72])
lib._destroy()

# %% redispatch-skips-fallthrough Dispatcher
# `redispatch` finds the next kernel by itself.
#
# It takes the highest key that it is given, whatever the table has there. Whoever redispatches takes fallthroughs out first.
sin = torch.ops.aten.sin.default
keys = torch._C._dispatch_keys(torch.ones(1))
try:
    sin.redispatch(keys, torch.ones(1))
except RuntimeError as error:
    print("fallthrough_kernel was executed" in str(error))
print(sin.redispatch(torch._C.DispatchKeySet(torch._C.DispatchKey.CPU), torch.ones(1)).shape)

# %% straight-to-the-kernel Dispatcher
# Redispatching straight to the CPU is the same call, only faster.
#
# What stands on the way is missing. `add_` does not count the version up, and `view` makes no view that autograd knows of.
cpu = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
x = torch.zeros(2)
torch.ops.aten.add_.Tensor(x, x)
usual = x._version
torch.ops.aten.add_.Tensor.redispatch(cpu, x, x)
print(usual, x._version)
print(x.view(2, 1)._is_view(), torch.ops.aten.view.default.redispatch(cpu, x, [2, 1])._is_view())

# %% torch-function-sees-all Affine8
# `__torch_function__` sees everything that happens to a tensor.
#
# It sees what Python calls. Backward is one call there, and many operators below. And what needs no operator never comes to `__torch_dispatch__`.
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

counted = {}


class Above(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        counted["function"] = counted.get("function", 0) + 1
        return func(*args, **(kwargs or {}))


class Below(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        counted["dispatch"] = counted.get("dispatch", 0) + 1
        return func(*args, **(kwargs or {}))


x = torch.ones(2, 3, requires_grad=True)
loss = (x @ x.t()).relu().sum()
for act in (loss.backward, lambda: (x.shape, x.stride())):
    counted.clear()
    with Above(), Below():
        act()
    print(counted)

# %% modes-see-all Affine8
# A `TorchDispatchMode` sees every operator that runs inside it.
#
# While it handles a call it is switched off, and what a tensor subclass then calls in its own `__torch_dispatch__` is part of that. Here the mode is told of one operator, and three run.
from torch.utils._python_dispatch import TorchDispatchMode


class Thrice(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        made = torch.Tensor._make_wrapper_subclass(cls, inner.shape)
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        once = func(*[getattr(arg, "inner", arg) for arg in args])
        return cls(once + once + once)


class Tell(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        told.append(str(func))
        return func(*args, **(kwargs or {}))


told = []
x = Thrice(torch.ones(2))
with Tell():
    y = x.sin()
print(told, y.inner.sum() == 6 * torch.ones(1).sin().item())

# %% higher-precision-widens result_dtype
# In a sum of two dtypes the more precise one wins.
#
# A tensor without dims only changes the kind of number, bool, integer, float or complex. Within its kind it has no say, and neither has a Python number.
half = torch.ones(2, dtype=torch.half)
print(half + torch.tensor(1e6, dtype=torch.double))
print((torch.ones(2, dtype=torch.uint8) + 300).tolist())

# %% tensor-class-is-float tensor_of
# `torch.Tensor(data)` is a float32 copy of the data.
#
# Of a list, in the default dtype. Of a number it is that many elements, with whatever the memory held. Of a tensor it is the same memory, whatever its dtype.
x = torch.tensor([1, 2])
same = torch.Tensor(x)
print(same.dtype, same.data_ptr() == x.data_ptr(), torch.Tensor(3).shape)
print(torch.tensor([2**24 + 1]).item(), int(torch.Tensor([2**24 + 1]).item()))

# %% out-never-allocates structured
# With `out=` nothing is allocated.
#
# The result is not. What has to be cast first is: here the sum of float32 and float64 takes several times the bytes of its `out`.
from torch.profiler import ProfilerActivity, profile

a, b, out = torch.ones(1000), torch.ones(1000).double(), torch.empty(1000)
with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
    torch.add(a, b, out=out)
allocated = sum(e.self_cpu_memory_usage for e in seen.events() if e.self_cpu_memory_usage > 0)
print(allocated, "bytes, for an out of", out.nbytes)

# %% meta-knows-shapes loop_plan
# A tensor on `meta` knows shapes.
#
# Strides, too: the plan of the loops is made, and only the loops are not run. So sizes that no machine has are no trouble.
x = torch.empty(2**20, 2**20, device="meta")
y = x.t() + x.t()
print(y.shape, y.stride(), f"{y.nbytes / 1e12:.1f} TB")

# %% vmap-is-a-loop vmap
# `vmap` is a loop with another name.
#
# The function is called once, with a batch inside, and each operator gets the batch as one more dim. An operator without a rule for that is a loop, and says so.
import warnings

from torch.utils._python_dispatch import TorchDispatchMode

warnings.simplefilter("ignore")
called, ran = [], []


class Count(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        ran.append(func)
        return func(*args, **(kwargs or {}))


A = torch.rand(3, 3)
for f in (lambda v: A @ v, torch.histc):
    for size in (5, 50):
        called.clear(), ran.clear()
        with Count():
            torch.vmap(lambda v: (called.append(1), f(v))[1])(torch.rand(size, 3))
        print(f"batch of {size:2}: {len(called)} call, {len(ran)} operators")

# %% functionalized-writes-nothing functionalize
# After functionalization no operator writes into anything.
#
# One kind is left: what the function wrote into its inputs is copied back at the end.
from torch.fx.experimental.proxy_tensor import make_fx


def f(x):
    y = x[0]
    y.mul_(2)
    return x.sum()


graph = make_fx(torch.func.functionalize(f, remove="mutations_and_views"))(torch.ones(2, 2)).graph
calls = [node.target for node in graph.nodes if node.op == "call_function"]
print([call for call in calls if call._schema.is_mutable])
