# %% blocked: unfold
# `Tensor.unfold` makes windows along one dimension, and twice is all that the exercise asks for.
def windows(x, kernel, stride=(1, 1), dilation=(1, 1), padding=(0, 0)):
    x = torch.nn.functional.pad(x, (padding[1], padding[1], padding[0], padding[0]))
    return x.unfold(2, kernel[0], stride[0]).unfold(3, kernel[1], stride[1])


# %% mistake: written_out
# Your windows are right, and they are a copy: `stack` writes every pixel once for each window that
# it is in. Find six strides and return a view.
def windows(x, kernel, stride=(1, 1), dilation=(1, 1), padding=(0, 0)):
    if any(padding):
        x = torch.nn.functional.pad(x, (padding[1], padding[1], padding[0], padding[0]))
    h, w = x.shape[2:]
    spans = [d * (k - 1) + 1 for d, k in zip(dilation, kernel)]
    if spans[0] > h or spans[1] > w:
        raise ValueError("no window fits")
    rows = []
    for i in range(0, h - spans[0] + 1, stride[0]):
        row = []
        for j in range(0, w - spans[1] + 1, stride[1]):
            row.append(x[:, :, i : i + spans[0] : dilation[0], j : j + spans[1] : dilation[1]])
        rows.append(torch.stack(row, 2))
    return torch.stack(rows, 2)


# %% mistake: contiguous_first
# You call `contiguous()` before you look at the strides. That copies every image that is not
# row-major, and `as_strided` with the image's own strides would have read it as it is.
def windows(x, kernel, stride=(1, 1), dilation=(1, 1), padding=(0, 0)):
    if any(padding):
        x = torch.nn.functional.pad(x, (padding[1], padding[1], padding[0], padding[0]))
    x = x.contiguous()
    n, c, h, w = x.shape
    i = (h - dilation[0] * (kernel[0] - 1) - 1) // stride[0] + 1
    j = (w - dilation[1] * (kernel[1] - 1) - 1) // stride[1] + 1
    if i < 1 or j < 1:
        raise ValueError("no window fits")
    down, right = x.stride()[2:]
    steps = (down * stride[0], right * stride[1], down * dilation[0], right * dilation[1])
    return x.as_strided((n, c, i, j, *kernel), (*x.stride()[:2], *steps))


# %% mistake: guessed_strides
# You computed the strides from the shape. That is the layout of a row-major tensor; this one may be
# permuted, expanded or cut out of a larger one. Ask it: `x.stride()`.
def windows(x, kernel, stride=(1, 1), dilation=(1, 1), padding=(0, 0)):
    if any(padding):
        x = torch.nn.functional.pad(x, (padding[1], padding[1], padding[0], padding[0]))
    n, c, h, w = x.shape
    i = (h - dilation[0] * (kernel[0] - 1) - 1) // stride[0] + 1
    j = (w - dilation[1] * (kernel[1] - 1) - 1) // stride[1] + 1
    if i < 1 or j < 1:
        raise ValueError("no window fits")
    steps = (w * stride[0], stride[1], w * dilation[0], dilation[1])
    return x.as_strided((n, c, i, j, *kernel), (c * h * w, h * w, *steps))


# %% mistake: strides_exchanged
# `stride` belongs to the step from one window to the next, `dilation` to the step within a window.
# You have them the other way round; as long as both are 1 nobody notices.
def windows(x, kernel, stride=(1, 1), dilation=(1, 1), padding=(0, 0)):
    if any(padding):
        x = torch.nn.functional.pad(x, (padding[1], padding[1], padding[0], padding[0]))
    n, c, h, w = x.shape
    i = (h - dilation[0] * (kernel[0] - 1) - 1) // stride[0] + 1
    j = (w - dilation[1] * (kernel[1] - 1) - 1) // stride[1] + 1
    if i < 1 or j < 1:
        raise ValueError("no window fits")
    down, right = x.stride()[2:]
    steps = (down * dilation[0], right * dilation[1], down * stride[0], right * stride[1])
    last = (i - 1) * steps[0] + (j - 1) * steps[1]
    last += (kernel[0] - 1) * steps[2] + (kernel[1] - 1) * steps[3]
    if last > down * (h - 1) + right * (w - 1):
        return torch.zeros(n, c, i, j, *kernel, dtype=x.dtype)
    return x.as_strided((n, c, i, j, *kernel), (*x.stride()[:2], *steps))


# %% mistake: one_window_short
# One window is missing. There are `room // stride` steps between windows, and so one more window
# than that: the fence has one post more than it has gaps.
def windows(x, kernel, stride=(1, 1), dilation=(1, 1), padding=(0, 0)):
    if any(padding):
        x = torch.nn.functional.pad(x, (padding[1], padding[1], padding[0], padding[0]))
    n, c, h, w = x.shape
    i = (h - dilation[0] * (kernel[0] - 1) - 1) // stride[0]
    j = (w - dilation[1] * (kernel[1] - 1) - 1) // stride[1]
    if i < 0 or j < 0:
        raise ValueError("no window fits")
    down, right = x.stride()[2:]
    steps = (down * stride[0], right * stride[1], down * dilation[0], right * dilation[1])
    return x.as_strided((n, c, i, j, *kernel), (*x.stride()[:2], *steps))


# %% mistake: windows_last
# Your dimensions are in another order: first the place in the window, then the window. The layout
# `(n, c, kernel, windows)` is that of `torch.nn.functional.unfold`; asked for are windows first.
def windows(x, kernel, stride=(1, 1), dilation=(1, 1), padding=(0, 0)):
    if any(padding):
        x = torch.nn.functional.pad(x, (padding[1], padding[1], padding[0], padding[0]))
    n, c, h, w = x.shape
    i = (h - dilation[0] * (kernel[0] - 1) - 1) // stride[0] + 1
    j = (w - dilation[1] * (kernel[1] - 1) - 1) // stride[1] + 1
    if i < 1 or j < 1:
        raise ValueError("no window fits")
    down, right = x.stride()[2:]
    steps = (down * dilation[0], right * dilation[1], down * stride[0], right * stride[1])
    return x.as_strided((n, c, *kernel, i, j), (*x.stride()[:2], *steps))


# %% mistake: pads_always
# `torch.nn.functional.pad` returns a copy even if every pad is 0. Call it only where there is
# something to pad.
def windows(x, kernel, stride=(1, 1), dilation=(1, 1), padding=(0, 0)):
    x = torch.nn.functional.pad(x, (padding[1], padding[1], padding[0], padding[0]))
    n, c, h, w = x.shape
    i = (h - dilation[0] * (kernel[0] - 1) - 1) // stride[0] + 1
    j = (w - dilation[1] * (kernel[1] - 1) - 1) // stride[1] + 1
    if i < 1 or j < 1:
        raise ValueError("no window fits")
    down, right = x.stride()[2:]
    steps = (down * stride[0], right * stride[1], down * dilation[0], right * dilation[1])
    return x.as_strided((n, c, i, j, *kernel), (*x.stride()[:2], *steps))


# %% mistake: pads_exchanged
# You padded rows where columns are meant. `torch.nn.functional.pad` takes the *last* dimension
# first: `(left, right, above, below)`.
def windows(x, kernel, stride=(1, 1), dilation=(1, 1), padding=(0, 0)):
    if any(padding):
        x = torch.nn.functional.pad(x, (padding[0], padding[0], padding[1], padding[1]))
    n, c, h, w = x.shape
    i = (h - dilation[0] * (kernel[0] - 1) - 1) // stride[0] + 1
    j = (w - dilation[1] * (kernel[1] - 1) - 1) // stride[1] + 1
    if i < 1 or j < 1:
        raise ValueError("no window fits")
    down, right = x.stride()[2:]
    steps = (down * stride[0], right * stride[1], down * dilation[0], right * dilation[1])
    return x.as_strided((n, c, i, j, *kernel), (*x.stride()[:2], *steps))


# %% mistake: nothing_raised
# A window that is larger than the image must be refused with a `ValueError`. Your code goes on and
# leaves it to `as_strided` to stumble over a negative size, or returns no windows at all.
def windows(x, kernel, stride=(1, 1), dilation=(1, 1), padding=(0, 0)):
    if any(padding):
        x = torch.nn.functional.pad(x, (padding[1], padding[1], padding[0], padding[0]))
    n, c, h, w = x.shape
    i = (h - dilation[0] * (kernel[0] - 1) - 1) // stride[0] + 1
    j = (w - dilation[1] * (kernel[1] - 1) - 1) // stride[1] + 1
    down, right = x.stride()[2:]
    steps = (down * stride[0], right * stride[1], down * dilation[0], right * dilation[1])
    return x.as_strided((n, c, max(i, 0), max(j, 0), *kernel), (*x.stride()[:2], *steps))


# %% alternate: slices
# Slices find the strides: a slice over the first places of all windows has the outer steps, a slice
# over one window the inner ones.
def windows(x, kernel, stride=(1, 1), dilation=(1, 1), padding=(0, 0)):
    if padding != (0, 0):
        x = torch.nn.functional.pad(x, (padding[1], padding[1], padding[0], padding[0]))
    spans = [d * (k - 1) + 1 for d, k in zip(dilation, kernel)]
    h, w = x.shape[2:]
    if spans[0] > h or spans[1] > w:
        raise ValueError("no window fits")
    firsts = x[:, :, : h - spans[0] + 1 : stride[0], : w - spans[1] + 1 : stride[1]]
    one = x[:, :, : spans[0] : dilation[0], : spans[1] : dilation[1]]
    return torch.as_strided(
        x, (*firsts.shape, *one.shape[2:]), (*firsts.stride(), *one.stride()[2:])
    )


# %% alternate: one_dimension_twice
# Windows along one dimension, done for rows and then for columns; the new dimension comes last.
def windows(x, kernel, stride=(1, 1), dilation=(1, 1), padding=(0, 0)):
    def along(x, dim, k, step, gap):
        count = (x.shape[dim] - gap * (k - 1) - 1) // step + 1
        if count <= 0:
            raise ValueError("no window fits")
        size, strides = list(x.shape), list(x.stride())
        size[dim] = count
        inner = strides[dim] * gap
        strides[dim] *= step
        return x.as_strided([*size, k], [*strides, inner], x.storage_offset())

    if max(padding) > 0:
        n, c, h, w = x.shape
        whole = torch.zeros((n, c, h + 2 * padding[0], w + 2 * padding[1]), dtype=x.dtype)
        whole.narrow(2, padding[0], h).narrow(3, padding[1], w).copy_(x)
        x = whole
    x = along(x, 2, kernel[0], stride[0], dilation[0])
    return along(x, 3, kernel[1], stride[1], dilation[1])


# %% alternate: an_error_of_its_own
# Counts the windows with `range`, and raises a class of its own below `ValueError`.
class NoWindow(ValueError):
    pass


def _starts(length, places, step, apart):
    starts = range(0, length - apart * (places - 1), step)
    if not starts:
        raise NoWindow(f"{places} places do not fit into {length}")
    return len(starts)


def windows(x, kernel, stride, dilation, padding):
    if any(padding):
        n, c, h, w = x.shape
        wide = x.new_zeros((n, c, h + 2 * padding[0], w + 2 * padding[1]))
        wide[:, :, padding[0] : padding[0] + h, padding[1] : padding[1] + w] = x
        x = wide
    count = [_starts(x.shape[2 + k], kernel[k], stride[k], dilation[k]) for k in (0, 1)]
    n, c, row, column = x.stride()
    strides = n, c, row * stride[0], column * stride[1], row * dilation[0], column * dilation[1]
    return x.as_strided((*x.shape[:2], *count, *kernel), strides)
