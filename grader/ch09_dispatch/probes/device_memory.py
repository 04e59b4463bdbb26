"""Probes of `DeviceMemory`: programs that run on a device with the student's memory, in a fork."""

import gc

import torch
import torch.fx.experimental.symbolic_shapes  # autograd imports it, when a gradient is given

from grader import apart, probe

from .plugging import CountingChip, memory_kernels, plug_in, run_lines


def on_memory(student, body):
    """Return `body(memory, chip)` with the device plugged in, in a fork."""

    def run():
        chip = CountingChip()
        memory = student.DeviceMemory(chip)
        libraries = plug_in(memory_kernels(memory))
        try:
            return body(memory, chip)
        finally:
            for library in libraries:
                library._destroy()

    return apart(run)


@probe
def memory_lines(student, lines, inputs):
    """Return what each line gives on the device."""
    return on_memory(student, lambda memory, chip: run_lines(lines, inputs, "abacus"))


@probe
def memory_round_trips(student, inputs):
    """Return the inputs after a way to the device and back."""
    return on_memory(student, lambda memory, chip: [x.to("abacus").cpu() for x in inputs])


@probe
def memory_apart(student, x):
    """Return a tensor on the device after its source was changed, and one from it after it was."""

    def body(memory, chip):
        source = x.clone()
        there = source.to("abacus")
        source.zero_()
        found = {"there": there.to("cpu", copy=True)}
        back = there.cpu()
        there.copy_(torch.zeros(x.shape))
        same = memory.copy_from(torch.ones(x.shape), there) is there
        return found | {"back": back, "the target": same}

    return on_memory(student, body)


@probe
def memory_arrays(student, inputs):
    """Return what `array` says of views of the inputs, and the inputs after a write into the arrays."""

    def body(memory, chip):
        found = []
        for device in ("abacus", "cpu"):
            for x in inputs:
                base = x.to(device, copy=True)
                for view in (base, base.t()[1:], base[1, 1:]):
                    array = memory.array(view)
                    strides = [one // array.itemsize for one in array.strides]
                    said = [type(array).__name__, str(array.dtype), list(array.shape), strides]
                    found.append({"device": device, "said": said, "values": array.tolist()})
                    array[...] = 1 - array.astype(int)
                    found[-1]["after a write"] = base.cpu().clone()
        return found

    return on_memory(student, body)


@probe
def memory_in_its_block(student, x):
    """Return the bytes of the one block in use, and the tensor once the chip has zeros in it."""

    def body(memory, chip):
        there = x.to("abacus")
        [block] = [one for one in chip.blocks.values() if one.size]
        found = {"block": block.tolist()}
        block[...] = 0
        return found | {"zeroed": there.cpu()}

    return on_memory(student, body)


def expected_arrays(inputs):
    """Return what `memory_arrays` should give."""
    found = []
    for device in ("abacus", "cpu"):
        for x in inputs:
            base = x.clone()
            for view in (base, base.t()[1:], base[1, 1:]):
                dtype = str(view.dtype).removeprefix("torch.")
                said = ["ndarray", dtype, list(view.shape), list(view.stride())]
                found.append({"device": device, "said": said, "values": view.tolist()})
                view.copy_(1 - view.long())
                found[-1]["after a write"] = base.clone()
    return found


@probe
def memory_asked(student, requests):
    """Return dtype, strides and live bytes of tensors with these sizes, strides and dtypes."""

    def body(memory, chip):
        found = []
        torch.set_default_dtype(torch.float64)
        for size, stride, dtype in requests:
            x = memory.empty_strided(size, stride, dtype=dtype)
            kind = [str(x.device.type), str(x.dtype), list(x.shape), list(x.stride())]
            found.append({"tensor": kind, "live bytes": sum(chip.live)})
            del x
            gc.collect()
        return found

    return on_memory(student, body)


@probe
def memory_lives(student, story):
    """Return the blocks' sizes at each step of one of the stories below, and what went wrong."""

    def body(memory, chip):
        steps = []

        def note(when):
            gc.collect()
            steps.append({"after": when, "blocks": chip.live})

        values = STORIES[story](note, lambda x: x.to("abacus"))
        note("everything is gone")
        return {"steps": steps, "values": values, "wrong": chip.wrong}

    return on_memory(student, body)


@probe
def memory_resized(student, size, new_size, offset):
    """Return a tensor that was resized, its views and its chip, step by step."""

    def body(memory, chip):
        count = torch.Size(size).numel()
        base = torch.arange(1.0, count + 1).to("abacus")
        x = base[offset:]
        before = len(chip.requests)
        same = memory.resize_(x, new_size) is x
        kept = min(x.numel(), count - offset)
        found = {
            "returned x": same,
            "shape": list(x.shape),
            "stride": list(x.stride()),
            "offset": x.storage_offset(),
            "first": x.cpu().flatten()[:kept],
            "blocks": chip.live,
            "requests": chip.requests[before:],
        }
        x.copy_(torch.full(new_size, -1.0))
        found["base after a write"] = base.cpu()
        del x, base
        gc.collect()
        return found | {"left": chip.live, "wrong": chip.wrong}

    return on_memory(student, body)


@probe
def memory_not_resized(student, x):
    """Return strides and values of a transposed tensor after `resize_` to the size that it has."""

    def body(memory, chip):
        column = x.to("abacus").t()
        memory.resize_(column, [x.shape[1], x.shape[0]])
        return {"strides": list(column.stride()), "values": column.cpu().tolist()}

    return on_memory(student, body)


def _views_live(note, put):
    x = put(torch.arange(6.0).reshape(2, 3))
    note("x = torch.arange(6.0).reshape(2, 3).to('abacus')")
    row, same = x[1], x.detach()
    note("row, same = x[1], x.detach()")
    del x, same
    note("del x, same")
    return [row.cpu()]


class _Keep(torch.autograd.Function):
    """Gives a copy; its gradient is the input, which it saves for backward."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return ctx.saved_tensors[0].clone()


def _autograd_lives(note, put):
    leaf = put(torch.arange(4.0)).requires_grad_()
    middle = _Keep.apply(leaf.view(2, 2))
    last = _Keep.apply(middle)
    note(
        "leaf of 4 elements; a copy; and a copy of the copy, for which autograd has saved the first"
    )
    del middle
    note("del copy (autograd has it)")
    ones = put(torch.ones(2, 2))
    (gradient,) = torch.autograd.grad(last, leaf, ones)
    values = [gradient.cpu(), last.detach().cpu()]
    del gradient, ones, last
    note("backward, and only the leaf is kept")
    return [*values, leaf.detach().cpu()]


def _many_live(note, put):
    kept, values = [], []
    for at in range(60):
        x = put(torch.full((at % 7 + 1,), float(at)))
        if at % 3 == 0:
            kept.append(x[: at % 7 + 1 : 2])
        if at % 6 == 5:
            values.append(kept.pop(0).cpu())
    del x
    note("60 tensors were made, and views of 10 of them are kept")
    return values + [one.cpu() for one in kept]


def _grown_live(note, put):
    x, y = put(torch.ones(2)), put(torch.full((3,), 2.0))
    view = x[:1]
    x.resize_(5)
    note("x of 2 elements, view = x[:1], y of 3 elements; x.resize_(5)")
    z = put(torch.full((2,), 3.0))
    note("z of 2 elements, new")
    values = [x[:2].cpu(), view.cpu(), y.cpu(), z.cpu()]
    del x
    note("del x (view is there)")
    values.append(view.cpu())
    del view
    note("del view")
    return [*values, y.cpu(), z.cpu()]


STORIES = {
    "views": _views_live,
    "autograd": _autograd_lives,
    "many": _many_live,
    "grown": _grown_live,
}
"""Programs that say at which moments the blocks are looked at, and return tensors on the CPU."""
