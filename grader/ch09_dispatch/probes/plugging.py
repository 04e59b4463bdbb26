"""A device in Python for the probes of this chapter's last sitting: in a fork, for it is set up once.

The notebook has the same, for the student. The probes bring their own, so that they measure one thing.
"""

import gc
import itertools
import weakref

import numpy as np
import torch
import torch.utils.backend_registration
from torch.library import Library

aten = torch.ops.aten
META = torch._C.DispatchKeySet(torch._C.DispatchKey.Meta)


def plug_in(kernels, fallback=None):
    """Make these the kernels of the device "abacus"; return what must be kept for them to stay.

    For forks: nothing is put back.
    """
    # Autograd's engine starts a thread for each device when it first runs. None survives a fork, so
    # let it run before there is a device, and then stay in the thread that calls it.
    torch.zeros((), requires_grad=True).backward()
    torch.autograd.set_multithreading_enabled(False)
    if torch._C._get_privateuse1_backend_name() != "abacus":
        torch.utils.backend_registration._setup_privateuseone_for_python_backend("abacus")
    elif torch._C._dispatch_has_kernel_for_dispatch_key("aten::empty_strided", "PrivateUse1"):
        gc.unfreeze()  # else what was there before the fork is not among them
        for one in gc.get_objects():  # in a notebook, the student's own device is plugged in
            if type(one) is Library and (one.ns == "_" or _is_ours(one)):
                one._destroy()
        gc.freeze()
    libraries = [Library("aten", "IMPL")]
    for name, kernel in kernels.items():
        libraries[0].impl(name, kernel, "PrivateUse1")
    if fallback is not None:
        libraries.append(Library("_", "IMPL"))
        libraries[1].fallback(_boxed(fallback), "PrivateUse1")
    return libraries


def _boxed(fallback):
    """Return a fallback that gets tensors where the schema says so: Python is given plain numbers."""

    def call(op, *args, **kwargs):
        pairs = zip(args, op._schema.arguments, strict=False)  # defaults are not passed
        return fallback(op, *(_as_declared(value, one) for value, one in pairs), **kwargs)

    return call


def _as_declared(value, argument):
    if isinstance(value, int | float) and str(argument.type) == "Tensor":
        return torch.tensor(value, dtype=torch.float64 if isinstance(value, float) else None)
    return value


def _is_ours(library):
    return any("PrivateUse1" in name for name in library._op_impls)


def run_lines(lines, inputs, device):
    """Return for each line, an expression of `inputs`' names, the tensors and values that it gives.

    Each line gets tensors of its own. Tensors come back on the CPU, in memory of their own.
    """
    found = []
    for line in lines:
        names = {name: x.to(device, copy=True) for name, x in inputs.items()}
        names |= {"torch": torch, "F": torch.nn.functional, "device": device}
        value = eval(line, names)  # the grader's own lines
        values = value if isinstance(value, list | tuple) else [value]
        found.append([_home(one) for one in values])
    return found


def _home(value):
    return value.detach().to("cpu", copy=True) if isinstance(value, torch.Tensor) else value


def strided(x, size, stride, offset):
    """Return a view of a tensor that has no memory."""
    return aten.as_strided.default.redispatch(META, x, size, stride, offset)


def memory_kernels(memory):
    """Return the kernels of a device's memory, by operator: those of `memory`, and the views."""

    def empty(size, *, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None):
        memory_format = memory_format or torch.contiguous_format
        stride = torch.empty(size, device="meta", memory_format=memory_format).stride()
        return memory.empty_strided(size, stride, dtype=dtype)

    def as_strided(x, size, stride, offset=None):
        return strided(x, size, stride, x.storage_offset() if offset is None else offset)

    def view(x, size):
        return aten.view.default.redispatch(META, x, size)

    def reshape_alias(x, size, stride):
        return strided(x, size, stride, x.storage_offset())

    return {
        "empty.memory_format": empty,
        "empty_strided": memory.empty_strided,
        "as_strided": as_strided,
        "view": view,
        "_reshape_alias": reshape_alias,
        "_copy_from": memory.copy_from,
        "resize_": memory.resize_,
    }


class CountingChip:
    """Blocks of bytes, by address: with garbage in them, before and after; and what was done wrong."""

    def __init__(self):
        self.blocks, self.requests, self.wrong = {}, [], []

    @property
    def live(self):
        """Bytes of the blocks that are not free, empty ones left out."""
        return sorted(block.size for block in self.blocks.values() if block.size)

    def malloc(self, nbytes):
        """Return the address of a new block: the lowest one that is free."""
        address = next(one for one in itertools.count(100) if one not in self.blocks)
        self.blocks[address] = np.full(nbytes, 0xAB, dtype=np.uint8)
        self.requests.append(int(nbytes))
        return address

    def free(self, address):
        """Take a block back. Whoever has an array on it finds other bytes there."""
        if address not in self.blocks:
            self.wrong.append(f"free({address!r}), which is no block")
            raise KeyError(address)
        self.blocks.pop(address)[:] = 0xCD

    def block(self, address):
        """Return a block's bytes."""
        if address not in self.blocks:
            self.wrong.append(f"block({address!r}), which is no block")
        return self.blocks[address]


class Hidden:
    """Memory of a device in tensors of the CPU, one for each storage: for kernels that need some."""

    def __init__(self):
        self.rows = {}

    @property
    def live(self):
        """Bytes of the storages that somebody needs."""
        return sum(row.nbytes for row in self.rows.values())

    def _twin(self, x):
        if x.device.type == "cpu":
            return x.detach()
        row = self.rows[x.untyped_storage()._cdata]
        return (
            row.as_strided(x.shape, x.stride(), x.storage_offset())
            if x.numel()
            else row[:0].view(x.shape)
        )

    def array(self, x):
        """Return an array on the memory of a tensor."""
        return np.from_dlpack(self._twin(x))

    def empty_strided(self, size, stride, *, dtype=None, layout=None, device=None, pin_memory=None):
        dtype = dtype or torch.get_default_dtype()
        reach = 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
        elements = 0 if 0 in size else reach
        flat = torch._C._acc.create_empty_tensor((elements,), dtype)
        storage = flat.untyped_storage()
        self.rows[storage._cdata] = torch.empty(elements, dtype=dtype)
        weakref.finalize(storage, self.rows.pop, storage._cdata)
        return strided(flat, size, stride, 0)

    def copy_from(self, source, target, non_blocking=False):
        self._twin(target).copy_(self._twin(source))
        return target

    def resize_(self, x, size, *, memory_format=None):
        if x.shape == torch.Size(size):
            return x
        x.data = strided(x, size, torch.empty(size, device="meta").stride(), x.storage_offset())
        row = self.rows[x.untyped_storage()._cdata]
        if x.numel() and x.storage_offset() + x.numel() > row.numel():
            row.resize_(x.storage_offset() + x.numel())
        return x
