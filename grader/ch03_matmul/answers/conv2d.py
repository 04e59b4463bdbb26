# %% blocked: builtin_conv2d
# `F.conv2d` is the answer. Build it from a view and a contraction.
def conv2d(x, weight, bias=None, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1):
    return F.conv2d(x, weight, bias, stride, padding, dilation, groups)


# %% blocked: im2col
# `F.unfold` cuts the windows out for you. A strided view does the same without copying.
def conv2d(x, weight, bias=None, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1):
    n, _, height, width = x.shape
    o, c, kh, kw = weight.shape
    rows = (height + 2 * padding[0] - dilation[0] * (kh - 1) - 1) // stride[0] + 1
    columns = F.unfold(x, (kh, kw), dilation, padding, stride).view(n, groups, c * kh * kw, -1)
    result = weight.reshape(groups, o // groups, -1) @ columns
    result = result.reshape(n, o, rows, -1)
    return result if bias is None else result + bias.view(-1, 1, 1)


# %% mistake: flips_the_window
# You turned the window around before sliding it. That is what mathematics calls a convolution;
# PyTorch's does not turn it.
def conv2d(x, weight, bias=None, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1):
    weight = weight.flip(2, 3)
    x = F.pad(x, (padding[1], padding[1], padding[0], padding[0]))
    span = [dilation[i] * (weight.shape[2 + i] - 1) + 1 for i in (0, 1)]
    windows = x.unfold(2, span[0], stride[0]).unfold(3, span[1], stride[1])
    windows = windows[..., :: dilation[0], :: dilation[1]].unflatten(1, (groups, -1))
    filters = weight.unflatten(0, (groups, -1))
    result = torch.einsum("ngchwij,gocij->ngohw", windows, filters).flatten(1, 2)
    return result if bias is None else result + bias[:, None, None]


# %% mistake: pads_the_wrong_way_round
# You padded the width with the height's padding. `F.pad` counts from the last dimension: the first
# two numbers are for the left and the right.
def conv2d(x, weight, bias=None, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1):
    x = F.pad(x, (padding[0], padding[0], padding[1], padding[1]))
    span = [dilation[i] * (weight.shape[2 + i] - 1) + 1 for i in (0, 1)]
    windows = x.unfold(2, span[0], stride[0]).unfold(3, span[1], stride[1])
    windows = windows[..., :: dilation[0], :: dilation[1]].unflatten(1, (groups, -1))
    filters = weight.unflatten(0, (groups, -1))
    result = torch.einsum("ngchwij,gocij->ngohw", windows, filters).flatten(1, 2)
    return result if bias is None else result + bias[:, None, None]


# %% mistake: pads_one_side
# You added all the padding at the top and on the left. `padding` is put on *each* side, and twice
# that much makes the image larger.
def conv2d(x, weight, bias=None, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1):
    x = F.pad(x, (2 * padding[1], 0, 2 * padding[0], 0))
    span = [dilation[i] * (weight.shape[2 + i] - 1) + 1 for i in (0, 1)]
    windows = x.unfold(2, span[0], stride[0]).unfold(3, span[1], stride[1])
    windows = windows[..., :: dilation[0], :: dilation[1]].unflatten(1, (groups, -1))
    filters = weight.unflatten(0, (groups, -1))
    result = torch.einsum("ngchwij,gocij->ngohw", windows, filters).flatten(1, 2)
    return result if bias is None else result + bias[:, None, None]


# %% mistake: assumes_contiguous
# You computed the strides from the shape. They hold for a contiguous image only: ask the tensor
# for its own strides.
def conv2d(x, weight, bias=None, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1):
    if any(padding):
        x = F.pad(x, (padding[1], padding[1], padding[0], padding[0]))
    n, c, height, width = x.shape
    o, channels, kh, kw = weight.shape
    rows = (height - dilation[0] * (kh - 1) - 1) // stride[0] + 1
    columns = (width - dilation[1] * (kw - 1) - 1) // stride[1] + 1
    sn, sc, sh, sw = c * height * width, height * width, width, 1
    windows = x.as_strided(
        (n, groups, channels, kh, kw, rows, columns),
        (sn, sc * channels, sc, sh * dilation[0], sw * dilation[1], sh * stride[0], sw * stride[1]),
        x.storage_offset(),
    )
    result = torch.einsum("ngcijhw,gocij->ngohw", windows, weight.unflatten(0, (groups, -1)))
    result = result.flatten(1, 2)
    return result if bias is None else result + bias[:, None, None]


# %% mistake: forgets_the_offset
# You read from the beginning of the storage. `x` may begin later: pass `x.storage_offset()` on to
# `as_strided`.
def conv2d(x, weight, bias=None, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1):
    if any(padding):
        x = F.pad(x, (padding[1], padding[1], padding[0], padding[0]))
    n, c, height, width = x.shape
    o, channels, kh, kw = weight.shape
    rows = (height - dilation[0] * (kh - 1) - 1) // stride[0] + 1
    columns = (width - dilation[1] * (kw - 1) - 1) // stride[1] + 1
    sn, sc, sh, sw = x.stride()
    windows = torch.as_strided(
        x,
        (n, groups, channels, kh, kw, rows, columns),
        (sn, sc * channels, sc, sh * dilation[0], sw * dilation[1], sh * stride[0], sw * stride[1]),
        0,
    )
    result = torch.einsum("ngcijhw,gocij->ngohw", windows, weight.unflatten(0, (groups, -1)))
    result = result.flatten(1, 2)
    return result if bias is None else result + bias[:, None, None]


# %% mistake: groups_interleaved
# You dealt the output channels out to the groups one by one. A group is a run of neighbours: the
# first `O // groups` output channels belong to the first group.
def conv2d(x, weight, bias=None, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1):
    x = F.pad(x, (padding[1], padding[1], padding[0], padding[0]))
    span = [dilation[i] * (weight.shape[2 + i] - 1) + 1 for i in (0, 1)]
    windows = x.unfold(2, span[0], stride[0]).unfold(3, span[1], stride[1])
    windows = windows[..., :: dilation[0], :: dilation[1]].unflatten(1, (groups, -1))
    filters = weight.unflatten(0, (-1, groups))
    result = torch.einsum("ngchwij,ogcij->noghw", windows, filters).flatten(1, 2)
    return result if bias is None else result + bias[:, None, None]


# %% mistake: dense_groups
# Your groups are right and cost as much as no groups. You filled the weights up with zeros and
# multiplied with all of them. Give the groups a dimension of their own, in both operands.
def conv2d(x, weight, bias=None, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1):
    o, channels, kh, kw = weight.shape
    full = weight.new_zeros(o, channels * groups, kh, kw)
    for g in range(groups):
        outs = slice(g * o // groups, (g + 1) * o // groups)
        full[outs, g * channels : (g + 1) * channels] = weight[outs]
    x = F.pad(x, (padding[1], padding[1], padding[0], padding[0]))
    span = [dilation[i] * (kh - 1 if i == 0 else kw - 1) + 1 for i in (0, 1)]
    windows = x.unfold(2, span[0], stride[0]).unfold(3, span[1], stride[1])
    windows = windows[..., :: dilation[0], :: dilation[1]]
    result = torch.einsum("nchwij,ocij->nohw", windows, full)
    return result if bias is None else result + bias[:, None, None]


# %% mistake: copies_the_windows_twice
# You made the windows contiguous before the contraction. They are copied once more inside it, in
# the order that the matrix product wants: leave the view a view.
def conv2d(x, weight, bias=None, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1):
    x = F.pad(x, (padding[1], padding[1], padding[0], padding[0]))
    span = [dilation[i] * (weight.shape[2 + i] - 1) + 1 for i in (0, 1)]
    windows = x.unfold(2, span[0], stride[0]).unfold(3, span[1], stride[1])
    windows = windows[..., :: dilation[0], :: dilation[1]].unflatten(1, (groups, -1)).contiguous()
    filters = weight.unflatten(0, (groups, -1))
    result = torch.einsum("ngchwij,gocij->ngohw", windows, filters).flatten(1, 2)
    return result if bias is None else result + bias[:, None, None]


# %% mistake: multiplies_everything_out
# You let the windows broadcast against the weights and summed afterwards. That stores every single
# product, once for each output channel. A contraction adds up while it multiplies.
def conv2d(x, weight, bias=None, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1):
    x = F.pad(x, (padding[1], padding[1], padding[0], padding[0]))
    span = [dilation[i] * (weight.shape[2 + i] - 1) + 1 for i in (0, 1)]
    windows = x.unfold(2, span[0], stride[0]).unfold(3, span[1], stride[1])
    windows = windows[..., :: dilation[0], :: dilation[1]].unflatten(1, (groups, -1))
    filters = weight.unflatten(0, (groups, -1))
    # (n, g, 1, c, h, w, i, j) times (g, o, c, 1, 1, i, j)
    products = windows[:, :, None] * filters[:, :, :, None, None]
    result = products.sum((3, 6, 7)).flatten(1, 2)
    return result if bias is None else result + bias[:, None, None]


# %% mistake: rounds_the_size_up
# Where the last window does not fit you padded the image until it did. What does not fill a window
# is left unread: the division rounds down.
def conv2d(x, weight, bias=None, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1):
    span = [dilation[i] * (weight.shape[2 + i] - 1) + 1 for i in (0, 1)]
    more = [-(x.shape[2 + i] + 2 * padding[i] - span[i]) % stride[i] for i in (0, 1)]
    x = F.pad(x, (padding[1], padding[1] + more[1], padding[0], padding[0] + more[0]))
    windows = x.unfold(2, span[0], stride[0]).unfold(3, span[1], stride[1])
    windows = windows[..., :: dilation[0], :: dilation[1]].unflatten(1, (groups, -1))
    filters = weight.unflatten(0, (groups, -1))
    result = torch.einsum("ngchwij,gocij->ngohw", windows, filters).flatten(1, 2)
    return result if bias is None else result + bias[:, None, None]


# %% alternate: unfold_method
# The method `unfold` makes the same view; dilation takes every second or third element of it.
def conv2d(x, weight, bias=None, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1):
    x = F.pad(x, (padding[1], padding[1], padding[0], padding[0]))
    span = [dilation[i] * (weight.shape[2 + i] - 1) + 1 for i in (0, 1)]
    windows = x.unfold(2, span[0], stride[0]).unfold(3, span[1], stride[1])
    windows = windows[..., :: dilation[0], :: dilation[1]].unflatten(1, (groups, -1))
    filters = weight.unflatten(0, (groups, -1))
    result = torch.einsum("ngchwij,gocij->ngohw", windows, filters).flatten(1, 2)
    return result if bias is None else result + bias[:, None, None]


# %% alternate: one_place_at_a_time
# A convolution is a sum over the places of the window, each a matrix product with a shifted image.
def conv2d(x, weight, bias=None, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1):
    if any(padding):
        x = F.pad(x, (padding[1], padding[1], padding[0], padding[0]))
    n, _, height, width = x.shape
    o, c, kh, kw = weight.shape
    rows = (height - dilation[0] * (kh - 1) - 1) // stride[0] + 1
    columns = (width - dilation[1] * (kw - 1) - 1) // stride[1] + 1
    result = x.new_zeros(n, groups, o // groups, rows, columns)
    for i in range(kh):
        for j in range(kw):
            top, left = i * dilation[0], j * dilation[1]
            seen = x[
                :,
                :,
                top : top + (rows - 1) * stride[0] + 1 : stride[0],
                left : left + (columns - 1) * stride[1] + 1 : stride[1],
            ].unflatten(1, (groups, c))
            place = weight[:, :, i, j].unflatten(0, (groups, -1))
            result += torch.einsum("ngchw,goc->ngohw", seen, place)
    result = result.flatten(1, 2)
    return result if bias is None else result.add_(bias.view(-1, 1, 1))


# %% alternate: group_by_group
# One group after the other, each a plain matrix product with the windows as columns.
def conv2d(x, weight, bias=None, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1):
    n, channels, height, width = x.shape
    canvas = x.new_zeros(n, channels, height + 2 * padding[0], width + 2 * padding[1])
    canvas[:, :, padding[0] : padding[0] + height, padding[1] : padding[1] + width] = x
    o, c, kh, kw = weight.shape
    rows = (canvas.shape[2] - dilation[0] * (kh - 1) - 1) // stride[0] + 1
    columns = (canvas.shape[3] - dilation[1] * (kw - 1) - 1) // stride[1] + 1
    result = x.new_empty(n, o, rows, columns)
    for sample in range(n):
        for g in range(groups):
            _, sc, sh, sw = canvas.stride()
            windows = canvas[sample, g * c :].as_strided(
                (c, kh, kw, rows, columns),
                (sc, sh * dilation[0], sw * dilation[1], sh * stride[0], sw * stride[1]),
            )
            mine = slice(g * o // groups, (g + 1) * o // groups)
            product = weight[mine].reshape(-1, c * kh * kw) @ windows.reshape(c * kh * kw, -1)
            result[sample, mine] = product.view(-1, rows, columns)
    if bias is not None:
        result += bias[:, None, None]
    return result
