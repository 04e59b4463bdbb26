# %% blocked: builtin_cat
# PyTorch's quantized tensors carry their pairs with them and do all of this in one call.
def quantized_concat(parts, dim, scale, zero_point):
    tensors = [torch._make_per_tensor_quantized_tensor(*part) for part in parts]
    return torch.ops.quantized.cat(tensors, dim, scale, zero_point).int_repr()


# %% mistake: glues_the_codes
# You glue the codes together as they are. Under the result's scale and zero point they stand for
# other numbers. Requantize each part.
def quantized_concat(parts, dim, scale, zero_point):
    return torch.cat([q for q, _, _ in parts], dim)


# %% mistake: keeps_the_first_part
# You rescale all parts but the first. It has a pair of its own, too, and only by chance is that the
# result's.
def quantized_concat(parts, dim, scale, zero_point):
    written = [torch.round((s / scale) * (q.float() - z)) + zero_point for q, s, z in parts[1:]]
    return torch.cat([parts[0][0].float(), *written], dim).clamp(-128, 127).to(torch.int8)


# %% mistake: scales_only
# You rescale the codes and leave the zero points alone. Take the part's own off before you rescale,
# and add the result's afterwards.
def quantized_concat(parts, dim, scale, zero_point):
    written = [torch.round((s / scale) * q.float()) for q, s, z in parts]
    return torch.cat(written, dim).clamp(-128, 127).to(torch.int8)


# %% mistake: forgets_its_zero_point
# You rescale the codes with the part's zero point still in them. Only $q - z$ is proportional to
# the number: take it off first.
def quantized_concat(parts, dim, scale, zero_point):
    written = [torch.round((s / scale) * q.float()) + zero_point for q, s, z in parts]
    return torch.cat(written, dim).clamp(-128, 127).to(torch.int8)


# %% mistake: forgets_the_output_zero_point
# You store the result without its zero point. Add it after rounding: the code of 0.0 is the zero
# point.
def quantized_concat(parts, dim, scale, zero_point):
    written = [torch.round((s / scale) * (q.float() - z)) for q, s, z in parts]
    return torch.cat(written, dim).clamp(-128, 127).to(torch.int8)


# %% mistake: inverted_ratio
# Your ratio is upside down. The part's scale is above, the result's below: larger steps need
# smaller codes.
def quantized_concat(parts, dim, scale, zero_point):
    written = [torch.round((scale / s) * (q.float() - z)) + zero_point for q, s, z in parts]
    return torch.cat(written, dim).clamp(-128, 127).to(torch.int8)


# %% mistake: wraps_inside
# You subtract the zero point in `int8`. Differences run from -255 to 255 and wrap around. Convert
# the codes first.
def quantized_concat(parts, dim, scale, zero_point):
    written = [torch.round((s / scale) * (q - z).float()) + zero_point for q, s, z in parts]
    return torch.cat(written, dim).clamp(-128, 127).to(torch.int8)


# %% mistake: wraps_at_the_end
# You convert codes beyond 127 or below -128 to `int8`, where they wrap around. Clamp first.
def quantized_concat(parts, dim, scale, zero_point):
    written = [torch.round((s / scale) * (q.float() - z)) + zero_point for q, s, z in parts]
    return torch.cat(written, dim).to(torch.int32).to(torch.int8)


# %% mistake: truncates
# You cut off what comes after the point instead of rounding. The numbers come out too small in
# magnitude, by half a step on average.
def quantized_concat(parts, dim, scale, zero_point):
    written = [torch.trunc((s / scale) * (q.float() - z)) + zero_point for q, s, z in parts]
    return torch.cat(written, dim).clamp(-128, 127).to(torch.int8)


# %% mistake: one_pair_for_all
# You requantize every part with the first part's pair. Each part has a scale and a zero point of
# its own.
def quantized_concat(parts, dim, scale, zero_point):
    _, s, z = parts[0]
    written = [
        torch.round((s / scale) * (q.float() - z)) + zero_point for q in [part[0] for part in parts]
    ]
    return torch.cat(written, dim).clamp(-128, 127).to(torch.int8)


# %% mistake: truncates_the_code
# You convert to `int8` without rounding. The conversion cuts off what comes after the point, so
# that every code lies too near to zero, by half a step on average. Round first.
def quantized_concat(parts, dim, scale, zero_point):
    written = [(s / scale) * (q.float() - z) + zero_point for q, s, z in parts]
    return torch.cat(written, dim).clamp(-128, 127).to(torch.int8)


# %% mistake: compares_scales_only
# You copy the codes of every part that has the result's scale. Its zero point may still be another
# one: only where both agree do the codes stand for the same numbers.
def quantized_concat(parts, dim, scale, zero_point):
    written = [
        q.float() if s == scale else torch.round((s / scale) * (q.float() - z)) + zero_point
        for q, s, z in parts
    ]
    return torch.cat(written, dim).clamp(-128, 127).to(torch.int8)


# %% mistake: symmetric_range
# You clamp to -127. The lowest code is -128: `int8` has one negative number more than positive ones.
def quantized_concat(parts, dim, scale, zero_point):
    written = [torch.round((s / scale) * (q.float() - z)) + zero_point for q, s, z in parts]
    return torch.cat(written, dim).clamp(-127, 127).to(torch.int8)


# %% alternate: by_way_of_numbers
# Read each part, concatenate the numbers, write them once.
def quantized_concat(parts, dim, scale, zero_point):
    numbers = torch.cat([(q.double() - z) * s for q, s, z in parts], dim=dim)
    return torch.round(numbers / scale + zero_point).clip(-128, 127).to(torch.int8)


# %% alternate: by_table
# Each part has 256 codes: requantize those, and look the elements up.
def quantized_concat(parts, dim, scale, zero_point):
    def requantized(q, s, z):
        table = [round(s * (code - z) / scale) + zero_point for code in range(-128, 128)]
        return torch.tensor([max(-128, min(127, code)) for code in table]).to(torch.int8)[
            q.long() + 128
        ]

    return torch.cat([requantized(*part) for part in parts], dim)
