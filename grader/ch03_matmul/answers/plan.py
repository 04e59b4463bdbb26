# %% mistake: meta_device
# You used the `meta` device. It has no memory either, but what the program makes by itself lies on
# the CPU, and the two do not meet. Under `FakeTensorMode` everything is fake.
def plan(program: object, specs: list[tuple[tuple[int, ...], torch.dtype]]) -> dict:
    """Return what `program` would return, do and allocate on arguments of these shapes.

    program: tensors in, a tensor or a tuple of tensors out
    specs: (shape, dtype) of each argument
    """
    if True:
        arguments = [torch.empty(shape, dtype=dtype, device="meta") for shape, dtype in specs]
        with watch_flops() as flops, watch_memory() as memory:
            result = program(*arguments)
        outputs = result if isinstance(result, tuple) else (result,)
        return {
            "outputs": [(tuple(t.shape), t.stride(), t.dtype) for t in outputs],
            "flops": flops.total,
            "new_bytes": memory.new_bytes,
            "peak_bytes": memory.peak_bytes,
            # what the program let go of is gone: only the outputs hold storages now
            "kept_bytes": memory.live_bytes,
        }


# %% mistake: counts_the_arguments
# You began to watch before the arguments were made, so their bytes count as the program's.
def plan(program: object, specs: list[tuple[tuple[int, ...], torch.dtype]]) -> dict:
    """Return what `program` would return, do and allocate on arguments of these shapes.

    program: tensors in, a tensor or a tuple of tensors out
    specs: (shape, dtype) of each argument
    """
    with FakeTensorMode():
        with watch_flops() as flops, watch_memory() as memory:
            arguments = [torch.empty(shape, dtype=dtype) for shape, dtype in specs]
            result = program(*arguments)
        outputs = result if isinstance(result, tuple) else (result,)
        return {
            "outputs": [(tuple(t.shape), t.stride(), t.dtype) for t in outputs],
            "flops": flops.total,
            "new_bytes": memory.new_bytes,
            "peak_bytes": memory.peak_bytes,
            # what the program let go of is gone: only the outputs hold storages now
            "kept_bytes": memory.live_bytes,
        }


# %% mistake: forgets_dtypes
# You made all arguments `float32`. The dtype decides how many bytes an element takes, and what
# comes out.
def plan(program: object, specs: list[tuple[tuple[int, ...], torch.dtype]]) -> dict:
    """Return what `program` would return, do and allocate on arguments of these shapes.

    program: tensors in, a tensor or a tuple of tensors out
    specs: (shape, dtype) of each argument
    """
    with FakeTensorMode():
        arguments = [torch.empty(shape) for shape, dtype in specs]
        with watch_flops() as flops, watch_memory() as memory:
            result = program(*arguments)
        outputs = result if isinstance(result, tuple) else (result,)
        return {
            "outputs": [(tuple(t.shape), t.stride(), t.dtype) for t in outputs],
            "flops": flops.total,
            "new_bytes": memory.new_bytes,
            "peak_bytes": memory.peak_bytes,
            # what the program let go of is gone: only the outputs hold storages now
            "kept_bytes": memory.live_bytes,
        }


# %% mistake: peak_is_everything
# You took the sum of all bytes for the peak. What nothing refers to any more is gone before the
# next step begins.
def plan(program: object, specs: list[tuple[tuple[int, ...], torch.dtype]]) -> dict:
    """Return what `program` would return, do and allocate on arguments of these shapes.

    program: tensors in, a tensor or a tuple of tensors out
    specs: (shape, dtype) of each argument
    """
    with FakeTensorMode():
        arguments = [torch.empty(shape, dtype=dtype) for shape, dtype in specs]
        with watch_flops() as flops, watch_memory() as memory:
            result = program(*arguments)
        outputs = result if isinstance(result, tuple) else (result,)
        return {
            "outputs": [(tuple(t.shape), t.stride(), t.dtype) for t in outputs],
            "flops": flops.total,
            "new_bytes": memory.new_bytes,
            "peak_bytes": memory.new_bytes,
            # what the program let go of is gone: only the outputs hold storages now
            "kept_bytes": memory.live_bytes,
        }


# %% mistake: peak_is_the_largest
# You took the largest storage for the peak. While an operator runs, its input and its output are
# both alive.
def plan(program: object, specs: list[tuple[tuple[int, ...], torch.dtype]]) -> dict:
    """Return what `program` would return, do and allocate on arguments of these shapes.

    program: tensors in, a tensor or a tuple of tensors out
    specs: (shape, dtype) of each argument
    """
    with FakeTensorMode():
        arguments = [torch.empty(shape, dtype=dtype) for shape, dtype in specs]
        with watch_flops() as flops, watch_memory() as memory:
            result = program(*arguments)
        outputs = result if isinstance(result, tuple) else (result,)
        return {
            "outputs": [(tuple(t.shape), t.stride(), t.dtype) for t in outputs],
            "flops": flops.total,
            "new_bytes": memory.new_bytes,
            "peak_bytes": memory.largest_bytes,
            # what the program let go of is gone: only the outputs hold storages now
            "kept_bytes": memory.live_bytes,
        }


# %% mistake: sums_the_outputs
# You added up the sizes of the outputs. Two of them may share a storage, a view of an argument
# needs none, and a small view may keep a large storage alive.
def plan(program: object, specs: list[tuple[tuple[int, ...], torch.dtype]]) -> dict:
    """Return what `program` would return, do and allocate on arguments of these shapes.

    program: tensors in, a tensor or a tuple of tensors out
    specs: (shape, dtype) of each argument
    """
    with FakeTensorMode():
        arguments = [torch.empty(shape, dtype=dtype) for shape, dtype in specs]
        with watch_flops() as flops, watch_memory() as memory:
            result = program(*arguments)
        outputs = result if isinstance(result, tuple) else (result,)
        return {
            "outputs": [(tuple(t.shape), t.stride(), t.dtype) for t in outputs],
            "flops": flops.total,
            "new_bytes": memory.new_bytes,
            "peak_bytes": memory.peak_bytes,
            # what the program let go of is gone: only the outputs hold storages now
            "kept_bytes": sum(t.numel() * t.element_size() for t in outputs),
        }


# %% mistake: no_list_for_one
# Where the program returns one tensor, you return its shape, strides and dtype alone. `outputs` is a
# list always: then nobody who reads a plan has to ask how many there were.
def plan(program: object, specs: list[tuple[tuple[int, ...], torch.dtype]]) -> dict:
    with FakeTensorMode():
        arguments = [torch.empty(shape, dtype=dtype) for shape, dtype in specs]
        with watch_flops() as flops, watch_memory() as memory:
            result = program(*arguments)
        if isinstance(result, tuple):
            outputs = [(tuple(t.shape), t.stride(), t.dtype) for t in result]
        else:
            outputs = (tuple(result.shape), result.stride(), result.dtype)
        return {
            "outputs": outputs,
            "flops": flops.total,
            "new_bytes": memory.new_bytes,
            "peak_bytes": memory.peak_bytes,
            "kept_bytes": memory.live_bytes,
        }


# %% mistake: lets_the_result_go
# You measured a call whose result nobody held. Then nothing is kept.
def plan(program: object, specs: list[tuple[tuple[int, ...], torch.dtype]]) -> dict:
    """Return what `program` would return, do and allocate on arguments of these shapes.

    program: tensors in, a tensor or a tuple of tensors out
    specs: (shape, dtype) of each argument
    """
    with FakeTensorMode():
        arguments = [torch.empty(shape, dtype=dtype) for shape, dtype in specs]
        with watch_flops() as flops, watch_memory() as memory:
            program(*arguments)
        result = program(*arguments)
        outputs = result if isinstance(result, tuple) else (result,)
        return {
            "outputs": [(tuple(t.shape), t.stride(), t.dtype) for t in outputs],
            "flops": flops.total,
            "new_bytes": memory.new_bytes,
            "peak_bytes": memory.peak_bytes,
            # what the program let go of is gone: only the outputs hold storages now
            "kept_bytes": memory.live_bytes,
        }


# %% mistake: contiguous_outputs
# You computed the strides from the shapes. An output may be a view with other strides: ask it.
def plan(program: object, specs: list[tuple[tuple[int, ...], torch.dtype]]) -> dict:
    """Return what `program` would return, do and allocate on arguments of these shapes.

    program: tensors in, a tensor or a tuple of tensors out
    specs: (shape, dtype) of each argument
    """
    with FakeTensorMode():
        arguments = [torch.empty(shape, dtype=dtype) for shape, dtype in specs]
        with watch_flops() as flops, watch_memory() as memory:
            result = program(*arguments)
        outputs = result if isinstance(result, tuple) else (result,)
        return {
            "outputs": [(tuple(t.shape), t.contiguous().stride(), t.dtype) for t in outputs],
            "flops": flops.total,
            "new_bytes": memory.new_bytes,
            "peak_bytes": memory.peak_bytes,
            # what the program let go of is gone: only the outputs hold storages now
            "kept_bytes": memory.live_bytes,
        }


# %% mistake: one_output_only
# A program may return several tensors, in a tuple. You looked at the first one only.
def plan(program: object, specs: list[tuple[tuple[int, ...], torch.dtype]]) -> dict:
    """Return what `program` would return, do and allocate on arguments of these shapes.

    program: tensors in, a tensor or a tuple of tensors out
    specs: (shape, dtype) of each argument
    """
    with FakeTensorMode():
        arguments = [torch.empty(shape, dtype=dtype) for shape, dtype in specs]
        with watch_flops() as flops, watch_memory() as memory:
            result = program(*arguments)
        outputs = result[:1] if isinstance(result, tuple) else (result,)
        return {
            "outputs": [(tuple(t.shape), t.stride(), t.dtype) for t in outputs],
            "flops": flops.total,
            "new_bytes": memory.new_bytes,
            "peak_bytes": memory.peak_bytes,
            # what the program let go of is gone: only the outputs hold storages now
            "kept_bytes": memory.live_bytes,
        }


# %% alternate: a_mode_of_its_own
# Storages are followed by hand: weak references tell when they are gone.
class Ledger(torch.utils._python_dispatch.TorchDispatchMode):
    def __init__(self, arguments):
        super().__init__()
        self.known = {t.untyped_storage()._cdata for t in arguments}
        self.sizes, self.new, self.peak = {}, 0, 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        import weakref

        result = func(*args, **(kwargs or {}))
        for tensor in torch.utils._pytree.tree_leaves(result):
            if isinstance(tensor, torch.Tensor):
                storage = tensor.untyped_storage()
                key = storage._cdata
                if key not in self.known and key not in self.sizes:
                    self.sizes[key] = storage.nbytes()
                    self.new += storage.nbytes()
                    weakref.finalize(storage, self.sizes.pop, key)
        self.peak = max(self.peak, self.alive)
        return result

    @property
    def alive(self):
        return sum(self.sizes.values())


def plan(program, specs):
    with FakeTensorMode():
        arguments = [torch.empty(s, dtype=d) for s, d in specs]
        with watch_flops() as counter, Ledger(arguments) as ledger:
            result = program(*arguments)
        outputs = [result] if isinstance(result, torch.Tensor) else list(result)
        found = [(tuple(t.size()), tuple(t.stride()), t.dtype) for t in outputs]
        return {
            "outputs": found,
            "flops": counter.total,
            "new_bytes": ledger.new,
            "peak_bytes": ledger.peak,
            "kept_bytes": ledger.alive,
        }


# %% alternate: meta_everywhere
# The `meta` device will do if it is the default, for what the program makes by itself too.
def plan(program, specs):
    with torch.device("meta"):
        arguments = [torch.empty(shape, dtype=dtype) for shape, dtype in specs]
        with watch_flops() as flops, watch_memory() as memory:
            result = program(*arguments)
    outputs = result if isinstance(result, tuple) else (result,)
    return {
        "outputs": [(tuple(t.shape), t.stride(), t.dtype) for t in outputs],
        "flops": flops.total,
        "new_bytes": memory.new_bytes,
        "peak_bytes": memory.peak_bytes,
        "kept_bytes": memory.live_bytes,
    }


# %% alternate: kept_by_hand
# What is kept is counted from the outputs' storages, those of the arguments left out.
def plan(program, specs):
    mode = FakeTensorMode()
    with mode:
        arguments = [torch.zeros(shape, dtype=dtype) for shape, dtype in specs]
        with watch_memory() as memory:
            with watch_flops() as flops:
                result = program(*arguments)
        if isinstance(result, torch.Tensor):
            result = (result,)
        given = {tensor.untyped_storage()._cdata for tensor in arguments}
        kept = {t.untyped_storage()._cdata: t.untyped_storage().nbytes() for t in result}
    return dict(
        outputs=[(tuple(t.shape), tuple(t.stride()), t.dtype) for t in result],
        flops=flops.total,
        new_bytes=memory.new_bytes,
        peak_bytes=memory.peak_bytes,
        kept_bytes=sum(size for key, size in kept.items() if key not in given),
    )
