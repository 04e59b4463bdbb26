# %% blocked: builtin_add
# PyTorch's quantized tensors carry their pairs with them and do all of this in one call.
def quantized_add(x, y, scale, zero_point):
    x, y = (torch._make_per_tensor_quantized_tensor(*each) for each in (x, y))
    return torch.ops.quantized.add(x, y, scale, zero_point).int_repr()


# %% mistake: shared_scale
# You add the codes and multiply by one scale. Codes of different pairs have no common scale:
# subtract each input's own zero point, and rescale each by its own ratio.
def quantized_add(x, y, scale, zero_point):
    total = scale * (x[0].float() + y[0].float())
    return torch.round(total).clamp(-128, 127).to(torch.int8)


# %% mistake: adds_the_codes
# You add the codes as if both inputs and the result had the same pair. Subtract each input's own
# zero point, and rescale each by its own ratio.
def quantized_add(x, y, scale, zero_point):
    total = x[0].int() + y[0].int()
    return total.clamp(-128, 127).to(torch.int8)


# %% mistake: rescales_one
# You bring one input to the other's scale, and read the sum as if that were the result's scale.
# Both must be brought to the result's.
def quantized_add(x, y, scale, zero_point):
    (qx, sx, zx), (qy, sy, zy) = x, y
    total = (sx / sy) * (qx.float() - zx) + 1.0 * (qy.float() - zy)
    return (torch.round(total) + zero_point).clamp(-128, 127).to(torch.int8)


# %% mistake: forgets_input_zero_points
# You rescale the codes with their zero points still in them. Take $z_x$ and $z_y$ off first: only
# $q - z$ is proportional to the number.
def quantized_add(x, y, scale, zero_point):
    (qx, sx, _), (qy, sy, _) = x, y
    total = (sx / scale) * (qx.float()) + (sy / scale) * (qy.float())
    return (torch.round(total) + zero_point).clamp(-128, 127).to(torch.int8)


# %% mistake: forgets_the_output_zero_point
# Your sum is right, but stored without the result's zero point. After rounding add it: the code of
# 0.0 is the zero point.
def quantized_add(x, y, scale, zero_point):
    (qx, sx, zx), (qy, sy, zy) = x, y
    total = (sx / scale) * (qx.float() - zx) + (sy / scale) * (qy.float() - zy)
    return (torch.round(total)).clamp(-128, 127).to(torch.int8)


# %% mistake: inverted_ratio
# Your ratios are upside down. The inputs' scales are above, the result's below: a result with
# larger steps needs smaller codes.
def quantized_add(x, y, scale, zero_point):
    (qx, sx, zx), (qy, sy, zy) = x, y
    total = (scale / sx) * (qx.float() - zx) + (scale / sy) * (qy.float() - zy)
    return (torch.round(total) + zero_point).clamp(-128, 127).to(torch.int8)


# %% mistake: multiplies_the_scale_in
# You compute the sum as a number and do not divide by the result's scale. A code counts steps:
# divide by the size of one.
def quantized_add(x, y, scale, zero_point):
    (qx, sx, zx), (qy, sy, zy) = x, y
    total = (sx) * (qx.float() - zx) + (sy) * (qy.float() - zy)
    return (torch.round(total) + zero_point).clamp(-128, 127).to(torch.int8)


# %% mistake: wraps_inside
# You subtract the zero point in `int8`. Differences run from -255 to 255 and wrap around. Convert
# the codes first.
def quantized_add(x, y, scale, zero_point):
    (qx, sx, zx), (qy, sy, zy) = x, y
    total = (sx / scale) * (qx - zx).float() + (sy / scale) * (qy - zy).float()
    return (torch.round(total) + zero_point).clamp(-128, 127).to(torch.int8)


# %% mistake: wraps_at_the_end
# You convert sums beyond 127 or below -128 to `int8`, where they wrap around: the largest sums
# become negative. Clamp first.
def quantized_add(x, y, scale, zero_point):
    (qx, sx, zx), (qy, sy, zy) = x, y
    total = (sx / scale) * (qx.float() - zx) + (sy / scale) * (qy.float() - zy)
    return (torch.round(total) + zero_point).to(torch.int32).to(torch.int8)


# %% mistake: rounds_twice
# You round each rescaled input on its own. Two roundings can be off by a whole step together; add
# first, then round once.
def quantized_add(x, y, scale, zero_point):
    (qx, sx, zx), (qy, sy, zy) = x, y
    total = torch.round((sx / scale) * (qx.float() - zx)) + torch.round(
        (sy / scale) * (qy.float() - zy)
    )
    return (torch.round(total) + zero_point).clamp(-128, 127).to(torch.int8)


# %% mistake: clamps_too_early
# You clamp the inputs to the result's range before adding them. Two large numbers of opposite sign
# then give a wrong sum. Clamp the sum alone.
def quantized_add(x, y, scale, zero_point):
    (qx, sx, zx), (qy, sy, zy) = x, y
    low, high = -128 - zero_point, 127 - zero_point
    a = ((sx / scale) * (qx.float() - zx)).clamp(low, high)
    b = ((sy / scale) * (qy.float() - zy)).clamp(low, high)
    return (torch.round(a + b) + zero_point).clamp(-128, 127).to(torch.int8)


# %% mistake: truncates
# You cut off what comes after the point instead of rounding. All sums come out too small in
# magnitude, by half a step on average.
def quantized_add(x, y, scale, zero_point):
    (qx, sx, zx), (qy, sy, zy) = x, y
    total = (sx / scale) * (qx.float() - zx) + (sy / scale) * (qy.float() - zy)
    return (torch.trunc(total) + zero_point).clamp(-128, 127).to(torch.int8)


# %% mistake: truncates_the_code
# You convert to `int8` without rounding. The conversion cuts off what comes after the point, so
# that every code lies too near to zero, by half a step on average. Round first.
def quantized_add(x, y, scale, zero_point):
    (qx, sx, zx), (qy, sy, zy) = x, y
    total = (sx / scale) * (qx.float() - zx) + (sy / scale) * (qy.float() - zy)
    return (total + zero_point).clamp(-128, 127).to(torch.int8)


# %% mistake: zero_point_after_the_clamp
# You clamp first and add the zero point then. What you clamp is not yet a code; the sum of both can
# lie beyond 127 or -128 again, and wraps around. Clamp last.
def quantized_add(x, y, scale, zero_point):
    (qx, sx, zx), (qy, sy, zy) = x, y
    total = (sx / scale) * (qx.float() - zx) + (sy / scale) * (qy.float() - zy)
    return (torch.round(total).clamp(-128, 127) + zero_point).to(torch.int32).to(torch.int8)


# %% mistake: clamps_before_the_zero_point
# You clamp once before you add the zero point. What you clamp there is not yet a code, and the zero
# point may bring it back into range: sums stop too early. Clamp at the end alone.
def quantized_add(x, y, scale, zero_point):
    (qx, sx, zx), (qy, sy, zy) = x, y
    total = (sx / scale) * (qx.float() - zx) + (sy / scale) * (qy.float() - zy)
    total = torch.round(total).clamp(-128, 127) + zero_point
    return total.clamp(-128, 127).to(torch.int8)


# %% mistake: zero_points_reversed
# Your zero points have the wrong sign. Reading takes them off, $q - z$; writing adds the result's.
def quantized_add(x, y, scale, zero_point):
    (qx, sx, zx), (qy, sy, zy) = x, y
    total = (sx / scale) * (qx.float() + zx) + (sy / scale) * (qy.float() + zy)
    return (torch.round(total) - zero_point).clamp(-128, 127).to(torch.int8)


# %% alternate: by_way_of_numbers
# Read both, add the numbers, write the sum.
def quantized_add(x, y, scale, zero_point):
    a, b = (s * (q.double() - z) for q, s, z in (x, y))
    return torch.clamp(torch.round((a + b) / scale) + zero_point, -128, 127).to(torch.int8)


# %% alternate: fixed_point
# In whole numbers alone: the ratios become multipliers with 20 bits after the point, as integer
# hardware has them.
def quantized_add(x, y, scale, zero_point):
    total = torch.full(x[0].shape, zero_point << 20, dtype=torch.int64)
    for q, s, z in (x, y):
        total += (q.long() - z) * round(s / scale * 2**20)
    return ((total + (1 << 19)) >> 20).clamp(-128, 127).to(torch.int8)


# %% alternate: by_table
# Each input has 256 codes: look their shares up, and round at the end.
def quantized_add(x, y, scale, zero_point):
    def share(q, s, z):
        table = [s * (code - z) / scale for code in range(-128, 128)]
        return torch.tensor(table)[q.long() + 128]

    total = share(*x) + share(*y) + zero_point
    return total.clamp(-128, 127).round().to(torch.int8)
