# %% blocked: builtin_quantize
# The built-in applies scale and zero point for you.
def quantize(x, axis):
    low, high = x.min().clamp(max=0), x.max().clamp(min=0)
    scale = (high - low) / 255
    zero_point = (-128 - torch.round(low / scale)).int()
    return (
        torch.quantize_per_tensor(x, scale, zero_point, torch.qint8).int_repr(),
        scale,
        zero_point,
    )


# %% blocked: builtin_observer
# The observer chooses scale and zero point for you.
def quantize(x, axis):
    from torch.ao.quantization import MinMaxObserver

    observer = MinMaxObserver(dtype=torch.qint8, qscheme=torch.per_tensor_affine)
    observer(x)
    scale, zero_point = observer.calculate_qparams()
    q = (torch.round(x / scale) + zero_point).clamp(-128, 127).to(torch.int8)
    return q, scale[0], zero_point[0].int()


# %% mistake: reads_instead_of_writes
# You apply `s * (x - z)`. That has the form of the formula that turns `q` back into a number. To
# quantize, divide by the scale, round, and then add the zero point.
def quantize(x, axis):
    dims = [dim for dim in range(x.dim()) if dim != axis]
    low = x.amin(dims, keepdim=True).clamp(max=0) if dims else x.clamp(max=0)
    high = x.amax(dims, keepdim=True).clamp(min=0) if dims else x.clamp(min=0)
    scale = ((high - low) / 255).clamp(min=torch.finfo(torch.float32).eps)
    zero_point = -128 - torch.round(low / scale)
    q = torch.round(scale * (x - zero_point)).clamp(-128, 127).to(torch.int8)
    shape = () if axis is None else (x.shape[axis],)
    return q, scale.reshape(shape), zero_point.to(torch.int32).reshape(shape)


# %% mistake: truncates
# You convert without rounding, which cuts towards zero: every value comes out up to a whole step
# too small in magnitude. Round first.
def quantize(x, axis):
    dims = [dim for dim in range(x.dim()) if dim != axis]
    low = x.amin(dims, keepdim=True).clamp(max=0) if dims else x.clamp(max=0)
    high = x.amax(dims, keepdim=True).clamp(min=0) if dims else x.clamp(min=0)
    scale = ((high - low) / 255).clamp(min=torch.finfo(torch.float32).eps)
    zero_point = -128 - torch.round(low / scale)
    q = (torch.trunc(x / scale) + zero_point).clamp(-128, 127).to(torch.int8)
    shape = () if axis is None else (x.shape[axis],)
    return q, scale.reshape(shape), zero_point.to(torch.int32).reshape(shape)


# %% mistake: rounds_half_up
# You round by adding one half and taking the floor, so that all ties go up, in the zero point too.
# `torch.round` takes ties to even, and so does PyTorch's quantization.
def quantize(x, axis):
    dims = [dim for dim in range(x.dim()) if dim != axis]
    low = x.amin(dims, keepdim=True).clamp(max=0) if dims else x.clamp(max=0)
    high = x.amax(dims, keepdim=True).clamp(min=0) if dims else x.clamp(min=0)
    scale = ((high - low) / 255).clamp(min=torch.finfo(torch.float32).eps)
    zero_point = -128 - torch.floor(low / scale + 0.5)
    q = (torch.floor(x / scale + 0.5) + zero_point).clamp(-128, 127).to(torch.int8)
    shape = () if axis is None else (x.shape[axis],)
    return q, scale.reshape(shape), zero_point.to(torch.int32).reshape(shape)


# %% mistake: zero_outside
# Your range runs from the minimum to the maximum of the data, and leaves zero out when all values
# have one sign. Then no `int8` stands for 0.0. Take zero into the range: `min(x.min(), 0)` and
# `max(x.max(), 0)`.
def quantize(x, axis):
    dims = [dim for dim in range(x.dim()) if dim != axis]
    low = x.amin(dims, keepdim=True) if dims else x
    high = x.amax(dims, keepdim=True) if dims else x
    scale = ((high - low) / 255).clamp(min=torch.finfo(torch.float32).eps)
    zero_point = (-128 - torch.round(low / scale)).clamp(-128, 127)
    q = (torch.round(x / scale) + zero_point).clamp(-128, 127).to(torch.int8)
    shape = () if axis is None else (x.shape[axis],)
    return q, scale.reshape(shape), zero_point.to(torch.int32).reshape(shape)


# %% mistake: wraps_around
# You convert to `int8` without clamping. Where rounding gives 128 it wraps around to -128, and the
# largest value becomes the smallest. Clamp to -128 … 127 first.
def quantize(x, axis):
    dims = [dim for dim in range(x.dim()) if dim != axis]
    low = x.amin(dims, keepdim=True).clamp(max=0) if dims else x.clamp(max=0)
    high = x.amax(dims, keepdim=True).clamp(min=0) if dims else x.clamp(min=0)
    scale = ((high - low) / 255).clamp(min=torch.finfo(torch.float32).eps)
    zero_point = -128 - torch.round(low / scale)
    q = (torch.round(x / scale) + zero_point).to(torch.int32).to(torch.int8)
    shape = () if axis is None else (x.shape[axis],)
    return q, scale.reshape(shape), zero_point.to(torch.int32).reshape(shape)


# %% mistake: symmetric
# This is the symmetric scheme: zero point 0 and a scale from the largest magnitude. It wastes codes
# when the data lean to one side. The affine scheme follows minimum and maximum.
def quantize(x, axis):
    dims = [dim for dim in range(x.dim()) if dim != axis]
    low = x.amin(dims, keepdim=True).clamp(max=0) if dims else x.clamp(max=0)
    high = x.amax(dims, keepdim=True).clamp(min=0) if dims else x.clamp(min=0)
    scale = (torch.maximum(-low, high) / 127).clamp(min=torch.finfo(torch.float32).eps)
    zero_point = torch.zeros_like(scale)
    q = (torch.round(x / scale) + zero_point).clamp(-128, 127).to(torch.int8)
    shape = () if axis is None else (x.shape[axis],)
    return q, scale.reshape(shape), zero_point.to(torch.int32).reshape(shape)


# %% mistake: divides_by_256
# You divide the range by 256. There are 256 codes and 255 steps between them; with 256 the upper
# end does not reach the maximum.
def quantize(x, axis):
    dims = [dim for dim in range(x.dim()) if dim != axis]
    low = x.amin(dims, keepdim=True).clamp(max=0) if dims else x.clamp(max=0)
    high = x.amax(dims, keepdim=True).clamp(min=0) if dims else x.clamp(min=0)
    scale = ((high - low) / 256).clamp(min=torch.finfo(torch.float32).eps)
    zero_point = -128 - torch.round(low / scale)
    q = (torch.round(x / scale) + zero_point).clamp(-128, 127).to(torch.int8)
    shape = () if axis is None else (x.shape[axis],)
    return q, scale.reshape(shape), zero_point.to(torch.int32).reshape(shape)


# %% mistake: unsigned
# Your codes run from 0 to 255. The task asks for `int8`: the low end of the range lands on -128.
def quantize(x, axis):
    dims = [dim for dim in range(x.dim()) if dim != axis]
    low = x.amin(dims, keepdim=True).clamp(max=0) if dims else x.clamp(max=0)
    high = x.amax(dims, keepdim=True).clamp(min=0) if dims else x.clamp(min=0)
    scale = ((high - low) / 255).clamp(min=torch.finfo(torch.float32).eps)
    zero_point = 0 - torch.round(low / scale)
    q = (torch.round(x / scale) + zero_point).clamp(0, 255).to(torch.uint8)
    shape = () if axis is None else (x.shape[axis],)
    return q, scale.reshape(shape), zero_point.to(torch.int32).reshape(shape)


# %% mistake: zero_scale
# A tensor of zeros has an empty range, and you divide zero by zero. Keep the scale at
# `torch.finfo(torch.float32).eps` or above.
def quantize(x, axis):
    dims = [dim for dim in range(x.dim()) if dim != axis]
    low = x.amin(dims, keepdim=True).clamp(max=0) if dims else x.clamp(max=0)
    high = x.amax(dims, keepdim=True).clamp(min=0) if dims else x.clamp(min=0)
    scale = (high - low) / 255
    zero_point = -128 - torch.round(low / scale)
    q = (torch.round(x / scale) + zero_point).clamp(-128, 127).to(torch.int8)
    shape = () if axis is None else (x.shape[axis],)
    return q, scale.reshape(shape), zero_point.to(torch.int32).reshape(shape)


# %% mistake: ignores_the_axis
# You use one range for all channels and repeat it. Reduce over all dimensions except `axis`: each
# channel then has a minimum and a maximum of its own.
def quantize(x, axis):
    dims = list(range(x.dim()))
    low = x.amin(dims, keepdim=True).clamp(max=0) if dims else x.clamp(max=0)
    high = x.amax(dims, keepdim=True).clamp(min=0) if dims else x.clamp(min=0)
    scale = ((high - low) / 255).clamp(min=torch.finfo(torch.float32).eps)
    zero_point = -128 - torch.round(low / scale)
    q = (torch.round(x / scale) + zero_point).clamp(-128, 127).to(torch.int8)
    shape = () if axis is None else (x.shape[axis],)
    return q, scale.reshape(()).expand(shape), zero_point.to(torch.int32).reshape(()).expand(shape)


# %% mistake: reduces_the_axis
# You reduce over `axis`. It is the dimension to keep: reduce over all the others.
def quantize(x, axis):
    dims = list(range(x.dim())) if axis is None else [axis]
    low = x.amin(dims, keepdim=True).clamp(max=0) if dims else x.clamp(max=0)
    high = x.amax(dims, keepdim=True).clamp(min=0) if dims else x.clamp(min=0)
    scale = ((high - low) / 255).clamp(min=torch.finfo(torch.float32).eps)
    zero_point = -128 - torch.round(low / scale)
    q = (torch.round(x / scale) + zero_point).clamp(-128, 127).to(torch.int8)
    return q, scale.squeeze(), zero_point.to(torch.int32).squeeze()


# %% mistake: zero_point_outside
# Your range runs from the minimum to the maximum of the data. Where all values have one sign, the
# zero point then lies beyond -128 … 127, and no `int8` stands for 0.0. Take zero into the range.
def quantize(x, axis):
    dims = [dim for dim in range(x.dim()) if dim != axis]
    low = x.amin(dims, keepdim=True) if dims else x
    high = x.amax(dims, keepdim=True) if dims else x
    scale = ((high - low) / 255).clamp(min=torch.finfo(torch.float32).eps)
    zero_point = -128 - torch.round(low / scale)
    q = (torch.round(x / scale) + zero_point).clamp(-128, 127).to(torch.int8)
    shape = () if axis is None else (x.shape[axis],)
    return q, scale.reshape(shape), zero_point.to(torch.int32).reshape(shape)


# %% mistake: truncates_the_code
# You convert to `int8` without rounding. The conversion cuts off what comes after the point, so
# that every code lies too near to zero, by half a step on average. Round first.
def quantize(x, axis):
    dims = [dim for dim in range(x.dim()) if dim != axis]
    low = x.amin(dims, keepdim=True).clamp(max=0) if dims else x.clamp(max=0)
    high = x.amax(dims, keepdim=True).clamp(min=0) if dims else x.clamp(min=0)
    scale = ((high - low) / 255).clamp(min=torch.finfo(torch.float32).eps)
    zero_point = -128 - torch.round(low / scale)
    q = (x / scale + zero_point).clamp(-128, 127).to(torch.int8)
    shape = () if axis is None else (x.shape[axis],)
    return q, scale.reshape(shape), zero_point.to(torch.int32).reshape(shape)


# %% mistake: truncates_the_zero_point
# You cut off what comes after the point of the zero point, and add what is left to every code. Round
# it to the nearest: `int()` and `.int()` go towards zero.
def quantize(x, axis):
    dims = [dim for dim in range(x.dim()) if dim != axis]
    low = x.amin(dims, keepdim=True).clamp(max=0) if dims else x.clamp(max=0)
    high = x.amax(dims, keepdim=True).clamp(min=0) if dims else x.clamp(min=0)
    scale = ((high - low) / 255).clamp(min=torch.finfo(torch.float32).eps)
    zero_point = (-128 - low / scale).int()
    q = (torch.round(x / scale) + zero_point).clamp(-128, 127).to(torch.int8)
    shape = () if axis is None else (x.shape[axis],)
    return q, scale.reshape(shape), zero_point.to(torch.int32).reshape(shape)


# %% mistake: no_dimension_means_all
# With one dimension there is nothing to reduce per channel, and your list of dimensions is empty. To
# `amin` and `amax` an empty list means *all* of them. Treat that case apart.
def quantize(x, axis):
    dims = [dim for dim in range(x.dim()) if dim != axis]
    low = x.amin(dims, keepdim=True).clamp(max=0)
    high = x.amax(dims, keepdim=True).clamp(min=0)
    scale = ((high - low) / 255).clamp(min=torch.finfo(torch.float32).eps)
    zero_point = -128 - torch.round(low / scale)
    q = (torch.round(x / scale) + zero_point).clamp(-128, 127).to(torch.int8)
    shape = () if axis is None else (x.shape[axis],)
    return q, scale.reshape(shape), zero_point.to(torch.int32).reshape(shape)


# %% mistake: axis_zero_is_none
# You ask `if axis`, and 0 counts as false like `None`: per channel along the first dimension you
# give one scale for all. Ask `axis is None`.
def quantize(x, axis):
    axis = axis or None
    dims = [dim for dim in range(x.dim()) if dim != axis]
    low = x.amin(dims, keepdim=True).clamp(max=0) if dims else x.clamp(max=0)
    high = x.amax(dims, keepdim=True).clamp(min=0) if dims else x.clamp(min=0)
    scale = ((high - low) / 255).clamp(min=torch.finfo(torch.float32).eps)
    zero_point = -128 - torch.round(low / scale)
    q = (torch.round(x / scale) + zero_point).clamp(-128, 127).to(torch.int8)
    shape = () if axis is None else (x.shape[axis],)
    return q, scale.reshape(shape), zero_point.to(torch.int32).reshape(shape)


# %% alternate: channel_by_channel
# One channel after the other, with Python's own numbers for scale and zero point.
def quantize(x, axis):
    if axis is None:
        low, high = min(x.min().item(), 0.0), max(x.max().item(), 0.0)
        scale = max((high - low) / 255, 2.0**-23)
        zero_point = -128 - round(low / scale)
        q = torch.clamp(torch.round(x / scale) + zero_point, -128, 127).to(torch.int8)
        return q, torch.tensor(scale), torch.tensor(zero_point, dtype=torch.int32)
    parts = [quantize(part, None) for part in x.unbind(axis)]
    q, scales, zero_points = zip(*parts)
    return torch.stack(q, dim=axis), torch.stack(scales), torch.stack(zero_points)


# %% alternate: rounds_last
# The zero point is added before rounding, and the division is a multiplication.
def quantize(x, axis):
    columns = x.reshape(1, -1) if axis is None else x.movedim(axis, 0).reshape(x.shape[axis], -1)
    zero = torch.zeros(len(columns))
    low = torch.minimum(columns.min(dim=1).values, zero)
    high = torch.maximum(columns.max(dim=1).values, zero)
    scale = torch.clamp((high - low) / 255, min=torch.finfo(torch.float32).eps)
    zero_point = torch.round(-128 - low / scale)
    moved = torch.round(columns * (1 / scale)[:, None] + zero_point[:, None])
    q = moved.clip(-128, 127).to(torch.int8)
    if axis is None:
        return q.reshape(x.shape), scale[0], zero_point[0].int()
    rest = [size for dim, size in enumerate(x.shape) if dim != axis]
    return q.reshape(-1, *rest).movedim(0, axis), scale, zero_point.int()
