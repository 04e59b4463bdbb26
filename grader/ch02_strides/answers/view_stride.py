# %% blocked: try_it
# You let PyTorch make the view and asked it for the strides. Decide it from the numbers alone.
def view_stride(size, stride, new_size):
    x = torch.empty_strided(size, stride)
    try:
        return x.view(new_size).stride()
    except RuntimeError as error:
        if "compatible" in str(error):
            return None
        raise


# %% mistake: only_contiguous
# You refused everything that is not contiguous. Many such views exist: `(6, 4)` by `(1, 6)` can be
# seen as `(2, 3, 2, 2)`. What must be seamless are the dimensions that are merged, and only those.
def view_stride(size, stride, new_size):
    new_size = list(new_size)
    if new_size.count(-1) == 1:
        known = math.prod(n for n in new_size if n != -1)
        if known:
            new_size[new_size.index(-1)] = math.prod(size) // known
    if min(new_size, default=0) < 0 or math.prod(new_size) != math.prod(size):
        raise RuntimeError(new_size)
    if 0 in size:
        return (1,) * len(new_size)
    expected = 1
    for n, s in zip(reversed(size), reversed(stride)):
        if n != 1 and s != expected:
            return None
        expected *= n
    runs = []
    for n, s in zip(reversed(size), reversed(stride)):
        if n == 1:
            continue
        if runs and s == runs[-1][0] * runs[-1][1]:
            runs[-1] = runs[-1][0] * n, runs[-1][1]
        else:
            runs.append((n, s))
    new_stride, left, step = [], 1, 1
    for n in reversed(new_size):
        if n > 1 and left == 1:
            left, step = runs.pop(0)
        if left % n:
            return None
        new_stride.append(step)
        left, step = left // n, step * n
    return tuple(reversed(new_stride))


# %% mistake: strides_of_a_fresh_tensor
# You returned the strides of a fresh tensor of the new size. They are right where the input is
# contiguous; else a view of its bytes needs strides that follow from those of the input.
def view_stride(size, stride, new_size):
    new_size = list(new_size)
    if new_size.count(-1) == 1:
        known = math.prod(n for n in new_size if n != -1)
        if known:
            new_size[new_size.index(-1)] = math.prod(size) // known
    if min(new_size, default=0) < 0 or math.prod(new_size) != math.prod(size):
        raise RuntimeError(new_size)
    return tuple(math.prod(new_size[k + 1 :]) for k in range(len(new_size)))


# %% mistake: ones_in_the_way
# You looked for a seam at dimensions of size 1, too. Nobody ever takes a step along them, so their
# strides mean nothing: leave them out first.
def view_stride(size, stride, new_size):
    new_size = list(new_size)
    if new_size.count(-1) == 1:
        known = math.prod(n for n in new_size if n != -1)
        if known:
            new_size[new_size.index(-1)] = math.prod(size) // known
    if min(new_size, default=0) < 0 or math.prod(new_size) != math.prod(size):
        raise RuntimeError(new_size)
    if 0 in size:
        return (1,) * len(new_size)
    runs = []
    for n, s in zip(reversed(size), reversed(stride)):
        if runs and s == runs[-1][0] * runs[-1][1]:
            runs[-1] = runs[-1][0] * n, runs[-1][1]
        else:
            runs.append((n, s))
    new_stride, left, step = [], 1, 1
    for n in reversed(new_size):
        while n > 1 and left == 1:
            left, step = runs.pop(0)
        if left % n:
            return None
        new_stride.append(step)
        left, step = left // n, step * n
    return tuple(reversed(new_stride))


# %% mistake: never_merges
# You kept every dimension apart and only split. Neighbours whose strides fit are one run, and a new
# dimension may reach over both.
def view_stride(size, stride, new_size):
    new_size = list(new_size)
    if new_size.count(-1) == 1:
        known = math.prod(n for n in new_size if n != -1)
        if known:
            new_size[new_size.index(-1)] = math.prod(size) // known
    if min(new_size, default=0) < 0 or math.prod(new_size) != math.prod(size):
        raise RuntimeError(new_size)
    if 0 in size:
        return (1,) * len(new_size)
    runs = []
    for n, s in zip(reversed(size), reversed(stride)):
        if n == 1:
            continue
        if False:
            runs[-1] = runs[-1][0] * n, runs[-1][1]
        else:
            runs.append((n, s))
    new_stride, left, step = [], 1, 1
    for n in reversed(new_size):
        if n > 1 and left == 1:
            left, step = runs.pop(0)
        if left % n:
            return None
        new_stride.append(step)
        left, step = left // n, step * n
    return tuple(reversed(new_stride))


# %% mistake: never_refuses
# You merged all dimensions and took the innermost stride for all elements. Where the outer stride
# is not the inner stride times the inner size there is a jump, and no single step covers it.
def view_stride(size, stride, new_size):
    new_size = list(new_size)
    if new_size.count(-1) == 1:
        known = math.prod(n for n in new_size if n != -1)
        if known:
            new_size[new_size.index(-1)] = math.prod(size) // known
    if min(new_size, default=0) < 0 or math.prod(new_size) != math.prod(size):
        raise RuntimeError(new_size)
    if 0 in size:
        return (1,) * len(new_size)
    runs = []
    for n, s in zip(reversed(size), reversed(stride)):
        if n == 1:
            continue
        if runs:
            runs[-1] = runs[-1][0] * n, runs[-1][1]
        else:
            runs.append((n, s))
    new_stride, left, step = [], 1, 1
    for n in reversed(new_size):
        if n > 1 and left == 1:
            left, step = runs.pop(0)
        if left % n:
            return None
        new_stride.append(step)
        left, step = left // n, step * n
    return tuple(reversed(new_stride))


# %% mistake: merges_by_size_alone
# You compared the outer stride with the inner *size*. The inner elements may themselves be several
# places apart: what counts is inner size times inner stride.
def view_stride(size, stride, new_size):
    new_size = list(new_size)
    if new_size.count(-1) == 1:
        known = math.prod(n for n in new_size if n != -1)
        if known:
            new_size[new_size.index(-1)] = math.prod(size) // known
    if min(new_size, default=0) < 0 or math.prod(new_size) != math.prod(size):
        raise RuntimeError(new_size)
    if 0 in size:
        return (1,) * len(new_size)
    runs = []
    for n, s in zip(reversed(size), reversed(stride)):
        if n == 1:
            continue
        if runs and s == runs[-1][0]:
            runs[-1] = runs[-1][0] * n, runs[-1][1]
        else:
            runs.append((n, s))
    new_stride, left, step = [], 1, 1
    for n in reversed(new_size):
        if n > 1 and left == 1:
            left, step = runs.pop(0)
        if left % n:
            return None
        new_stride.append(step)
        left, step = left // n, step * n
    return tuple(reversed(new_stride))


# %% mistake: stride_zero_refused
# You refused stride 0. The rule covers it: two neighbours with stride 0 merge, since nought times
# anything is nought, and splitting is always possible.
def view_stride(size, stride, new_size):
    new_size = list(new_size)
    if new_size.count(-1) == 1:
        known = math.prod(n for n in new_size if n != -1)
        if known:
            new_size[new_size.index(-1)] = math.prod(size) // known
    if min(new_size, default=0) < 0 or math.prod(new_size) != math.prod(size):
        raise RuntimeError(new_size)
    if 0 in size:
        return (1,) * len(new_size)
    if any(s == 0 and n > 1 for n, s in zip(size, stride)) and list(size) != new_size:
        return None
    runs = []
    for n, s in zip(reversed(size), reversed(stride)):
        if n == 1:
            continue
        if runs and s == runs[-1][0] * runs[-1][1]:
            runs[-1] = runs[-1][0] * n, runs[-1][1]
        else:
            runs.append((n, s))
    new_stride, left, step = [], 1, 1
    for n in reversed(new_size):
        if n > 1 and left == 1:
            left, step = runs.pop(0)
        if left % n:
            return None
        new_stride.append(step)
        left, step = left // n, step * n
    return tuple(reversed(new_stride))


# %% mistake: empty_refused
# You applied the rule to a tensor without elements, and refused. Where there are no elements, none
# can be out of reach: any strides do.
def view_stride(size, stride, new_size):
    new_size = list(new_size)
    if new_size.count(-1) == 1:
        known = math.prod(n for n in new_size if n != -1)
        if known:
            new_size[new_size.index(-1)] = math.prod(size) // known
    if min(new_size, default=0) < 0 or math.prod(new_size) != math.prod(size):
        raise RuntimeError(new_size)
    if 0 in size:
        return (1,) * len(new_size) if 0 in stride or list(size) == new_size else None
    runs = []
    for n, s in zip(reversed(size), reversed(stride)):
        if n == 1:
            continue
        if runs and s == runs[-1][0] * runs[-1][1]:
            runs[-1] = runs[-1][0] * n, runs[-1][1]
        else:
            runs.append((n, s))
    new_stride, left, step = [], 1, 1
    for n in reversed(new_size):
        if n > 1 and left == 1:
            left, step = runs.pop(0)
        if left % n:
            return None
        new_stride.append(step)
        left, step = left // n, step * n
    return tuple(reversed(new_stride))


# %% mistake: minus_one_left_in
# You took -1 for a size. It stands for whatever number makes the new size fit: the number of
# elements divided by the product of the other sizes.
def view_stride(size, stride, new_size):
    new_size = list(new_size)
    if min(new_size, default=0) < 0 or math.prod(new_size) != math.prod(size):
        raise RuntimeError(new_size)
    if 0 in size:
        return (1,) * len(new_size)
    runs = []
    for n, s in zip(reversed(size), reversed(stride)):
        if n == 1:
            continue
        if runs and s == runs[-1][0] * runs[-1][1]:
            runs[-1] = runs[-1][0] * n, runs[-1][1]
        else:
            runs.append((n, s))
    new_stride, left, step = [], 1, 1
    for n in reversed(new_size):
        if n > 1 and left == 1:
            left, step = runs.pop(0)
        if left % n:
            return None
        new_stride.append(step)
        left, step = left // n, step * n
    return tuple(reversed(new_stride))


# %% mistake: counts_do_not_matter
# You never compared the numbers of elements. A new size with more or fewer of them is no view of
# anything, and raises a RuntimeError.
def view_stride(size, stride, new_size):
    new_size = list(new_size)
    if new_size.count(-1) == 1:
        known = math.prod(n for n in new_size if n != -1)
        if known:
            new_size[new_size.index(-1)] = math.prod(size) // known
    if 0 in size:
        return (1,) * len(new_size)
    runs = []
    for n, s in zip(reversed(size), reversed(stride)):
        if n == 1:
            continue
        if runs and s == runs[-1][0] * runs[-1][1]:
            runs[-1] = runs[-1][0] * n, runs[-1][1]
        else:
            runs.append((n, s))
    new_stride, left, step = [], 1, 1
    for n in reversed(new_size):
        if n > 1 and left == 1 and runs:
            left, step = runs.pop(0)
        if n < 1 or left % n:
            return None
        new_stride.append(step)
        left, step = left // n, step * n
    return tuple(reversed(new_stride))


# %% mistake: begins_in_front
# You cut the runs from the front and the new sizes from the front, but gave each its step from the
# run's *end*. Go from the last dimension to the first: only there is the step known.
def view_stride(size, stride, new_size):
    new_size = list(new_size)
    if new_size.count(-1) == 1:
        known = math.prod(n for n in new_size if n != -1)
        if known:
            new_size[new_size.index(-1)] = math.prod(size) // known
    if min(new_size, default=0) < 0 or math.prod(new_size) != math.prod(size):
        raise RuntimeError(new_size)
    if 0 in size:
        return (1,) * len(new_size)
    runs = []
    for n, s in zip(reversed(size), reversed(stride)):
        if n == 1:
            continue
        if runs and s == runs[-1][0] * runs[-1][1]:
            runs[-1] = runs[-1][0] * n, runs[-1][1]
        else:
            runs.append((n, s))
    new_stride, left, step = [], 1, 1
    runs.reverse()
    for n in new_size:
        if n > 1 and left == 1:
            left, step = runs.pop(0)
        if left % n:
            return None
        new_stride.append(step)
        left, step = left // n, step * n
    return tuple(new_stride)


# %% alternate: by_addresses
# Lists the places of all elements in row-major order, reads a stride for each new dimension off the
# list, and looks whether these strides explain every place.
def view_stride(size, stride, new_size):
    numel, new_size = math.prod(size), list(new_size)
    unknown = [k for k, n in enumerate(new_size) if n == -1]
    known = math.prod(n for n in new_size if n != -1)
    if len(unknown) == 1 and known > 0 and numel % known == 0:
        new_size[unknown[0]] = numel // known
    if any(n < 0 for n in new_size) or math.prod(new_size) != numel:
        raise RuntimeError("these sizes do not fit")
    if not numel:
        return (0,) * len(new_size)

    def places(size, stride):
        found = [0]
        for n, s in zip(size, stride):
            found = [place + i * s for place in found for i in range(n)]
        return found

    wanted = places(size, stride)
    inner = [math.prod(new_size[k + 1 :]) for k in range(len(new_size))]
    guess = [wanted[i] - wanted[0] if n > 1 else 0 for n, i in zip(new_size, inner)]
    return tuple(guess) if places(new_size, guess) == wanted else None


# %% alternate: one_loop
# The way of PyTorch's own `computeStride_impl`: each time a run is complete, cut it at once.
def view_stride(size, stride, new_size):
    numel = math.prod(size)
    new_size = list(new_size)
    if -1 in new_size:
        at = new_size.index(-1)
        others = math.prod(new_size[:at] + new_size[at + 1 :])
        if others <= 0:
            raise RuntimeError("only one size can be worked out")
        new_size[at] = numel // others
    if any(n < 0 for n in new_size) or math.prod(new_size) != numel:
        raise RuntimeError("another number of elements")
    if numel == 0 or not size:
        return tuple(math.prod(new_size[k + 1 :]) for k in range(len(new_size)))
    new_stride = [0] * len(new_size)
    at, base, count, done = len(new_size) - 1, stride[-1], 1, 1
    for dim in range(len(size) - 1, -1, -1):
        count *= size[dim]
        if dim > 0 and (size[dim - 1] == 1 or stride[dim - 1] == count * base):
            continue
        while at >= 0 and (done < count or new_size[at] == 1):
            new_stride[at] = done * base
            done *= new_size[at]
            at -= 1
        if done != count:
            return None
        if dim > 0:
            base, count, done = stride[dim - 1], 1, 1
    return tuple(new_stride) if at == -1 else None
