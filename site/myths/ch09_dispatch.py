# Dispatch: claims, what is true, and programs that show it.

# %% keys-hold-the-dtype Dispatcher
# A tensor's key set says where it is, how it is laid out, and its dtype.
#
# The dtype is in no key, a quantized one aside. Kernels for float and for integers are one kernel to the dispatcher, and the switch between them is inside.
keys = torch._C._dispatch_keys
floats, integers = torch.ones(2), torch.ones(2, dtype=torch.int64)
print(keys(floats) == keys(integers), keys(floats))

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
used = [event.self_cpu_memory_usage for event in seen.events()]
allocated = sum(size for size in used if size > 0)
print(allocated, "bytes, for an out of", out.nbytes)

# %% functionalized-writes-nothing functionalize
# After functionalization no operator writes into anything.
#
# One kind is left: what the function wrote into its inputs is copied back at the end.
from torch.fx.experimental.proxy_tensor import make_fx


def f(x):
    y = x[0]
    y.mul_(2)
    return x.sum()


pure = torch.func.functionalize(f, remove="mutations_and_views")
graph = make_fx(pure)(torch.ones(2, 2)).graph
calls = [node.target for node in graph.nodes if node.op == "call_function"]
print([call for call in calls if call._schema.is_mutable])
