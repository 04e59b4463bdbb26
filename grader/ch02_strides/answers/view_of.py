# %% blocked: the_methods
# You called the methods that the exercise asks you to replace. Edit sizes, strides and offset, and
# let `torch.as_strided` do the rest.
def view_of(x, op, *args):
    return getattr(x, op)(*args)


# %% mistake: offset_from_x
# You counted the offset from the beginning of `x`. `as_strided` counts from the beginning of the
# storage: start with what `x.storage_offset()` says.
def view_of(x, op, *args):
    size, stride, offset = list(x.shape), list(x.stride()), 0
    if op == "transpose":
        a, b = args
        size[a], size[b], stride[a], stride[b] = size[b], size[a], stride[b], stride[a]
    elif op == "permute":
        size, stride = [size[d] for d in args], [stride[d] for d in args]
    elif op == "select":
        offset += args[1] % size[args[0]] * stride[args[0]]
        del size[args[0]], stride[args[0]]
    elif op == "narrow":
        offset += args[1] * stride[args[0]]
        size[args[0]] = args[2]
    elif op == "expand":
        new = len(args) - x.dim()
        size, stride = [1] * new + size, [0] * new + stride
        for dim, n in enumerate(args):
            if n not in (-1, size[dim]):
                size[dim], stride[dim] = n, 0
    elif op == "diagonal":
        shift, a, b = args[0], args[1] % x.dim(), args[2] % x.dim()
        offset += shift * stride[b] if shift > 0 else -shift * stride[a]
        rest = [d for d in range(x.dim()) if d not in (a, b)]
        length = max(0, min(size[a] + min(shift, 0), size[b] - max(shift, 0)))
        size, stride = [size[d] for d in rest] + [length], [stride[d] for d in [*rest, a]]
        stride[-1] += x.stride(b)
    elif op == "unfold":
        dim, window, step = args[0] % x.dim(), args[1], args[2]
        size, stride = [*size, window], [*stride, stride[dim]]
        size[dim] = (size[dim] - window) // step + 1
        stride[dim] *= step
    return torch.as_strided(x, size, stride, offset)


# %% mistake: strides_from_sizes
# You took the strides of a fresh tensor of that size. `x` may be transposed, or have gaps: ask
# `x.stride()`.
def view_of(x, op, *args):
    size, stride, offset = list(x.shape), [], x.storage_offset()
    stride = [math.prod(size[d + 1 :]) for d in range(x.dim())]
    if op == "transpose":
        a, b = args
        size[a], size[b], stride[a], stride[b] = size[b], size[a], stride[b], stride[a]
    elif op == "permute":
        size, stride = [size[d] for d in args], [stride[d] for d in args]
    elif op == "select":
        offset += args[1] % size[args[0]] * stride[args[0]]
        del size[args[0]], stride[args[0]]
    elif op == "narrow":
        offset += args[1] * stride[args[0]]
        size[args[0]] = args[2]
    elif op == "expand":
        new = len(args) - x.dim()
        size, stride = [1] * new + size, [0] * new + stride
        for dim, n in enumerate(args):
            if n not in (-1, size[dim]):
                size[dim], stride[dim] = n, 0
    elif op == "diagonal":
        shift, a, b = args[0], args[1] % x.dim(), args[2] % x.dim()
        offset += shift * stride[b] if shift > 0 else -shift * stride[a]
        rest = [d for d in range(x.dim()) if d not in (a, b)]
        length = max(0, min(size[a] + min(shift, 0), size[b] - max(shift, 0)))
        size, stride = [size[d] for d in rest] + [length], [stride[d] for d in [*rest, a]]
        stride[-1] += math.prod(x.shape[b + 1 :])
    elif op == "unfold":
        dim, window, step = args[0] % x.dim(), args[1], args[2]
        size, stride = [*size, window], [*stride, stride[dim]]
        size[dim] = (size[dim] - window) // step + 1
        stride[dim] *= step
    return torch.as_strided(x, size, stride, offset)


# %% mistake: contiguous_first
# You made `x` contiguous before you began. Where it was not, that is a copy, and the result is a
# view of the copy. Nothing here needs contiguous memory.
def view_of(x, op, *args):
    x = x.contiguous()
    size, stride, offset = list(x.shape), list(x.stride()), x.storage_offset()
    if op == "transpose":
        a, b = args
        size[a], size[b], stride[a], stride[b] = size[b], size[a], stride[b], stride[a]
    elif op == "permute":
        size, stride = [size[d] for d in args], [stride[d] for d in args]
    elif op == "select":
        offset += args[1] % size[args[0]] * stride[args[0]]
        del size[args[0]], stride[args[0]]
    elif op == "narrow":
        offset += args[1] * stride[args[0]]
        size[args[0]] = args[2]
    elif op == "expand":
        new = len(args) - x.dim()
        size, stride = [1] * new + size, [0] * new + stride
        for dim, n in enumerate(args):
            if n not in (-1, size[dim]):
                size[dim], stride[dim] = n, 0
    elif op == "diagonal":
        shift, a, b = args[0], args[1] % x.dim(), args[2] % x.dim()
        offset += shift * stride[b] if shift > 0 else -shift * stride[a]
        rest = [d for d in range(x.dim()) if d not in (a, b)]
        length = max(0, min(size[a] + min(shift, 0), size[b] - max(shift, 0)))
        size, stride = [size[d] for d in rest] + [length], [stride[d] for d in [*rest, a]]
        stride[-1] += x.stride(b)
    elif op == "unfold":
        dim, window, step = args[0] % x.dim(), args[1], args[2]
        size, stride = [*size, window], [*stride, stride[dim]]
        size[dim] = (size[dim] - window) // step + 1
        stride[dim] *= step
    return torch.as_strided(x, size, stride, offset)


# %% mistake: inverse_permutation
# You sent dimension `i` to place `dims[i]`. It is the other way round: `dims[i]` is the dimension
# that comes to place `i`. For a swap of two there is no difference; for a cycle of three there is.
def view_of(x, op, *args):
    size, stride, offset = list(x.shape), list(x.stride()), x.storage_offset()
    if op == "transpose":
        a, b = args
        size[a], size[b], stride[a], stride[b] = size[b], size[a], stride[b], stride[a]
    elif op == "permute":
        places = [d % x.dim() for d in args]
        size = [size[places.index(d)] for d in range(x.dim())]
        stride = [stride[places.index(d)] for d in range(x.dim())]
    elif op == "select":
        offset += args[1] % size[args[0]] * stride[args[0]]
        del size[args[0]], stride[args[0]]
    elif op == "narrow":
        offset += args[1] * stride[args[0]]
        size[args[0]] = args[2]
    elif op == "expand":
        new = len(args) - x.dim()
        size, stride = [1] * new + size, [0] * new + stride
        for dim, n in enumerate(args):
            if n not in (-1, size[dim]):
                size[dim], stride[dim] = n, 0
    elif op == "diagonal":
        shift, a, b = args[0], args[1] % x.dim(), args[2] % x.dim()
        offset += shift * stride[b] if shift > 0 else -shift * stride[a]
        rest = [d for d in range(x.dim()) if d not in (a, b)]
        length = max(0, min(size[a] + min(shift, 0), size[b] - max(shift, 0)))
        size, stride = [size[d] for d in rest] + [length], [stride[d] for d in [*rest, a]]
        stride[-1] += x.stride(b)
    elif op == "unfold":
        dim, window, step = args[0] % x.dim(), args[1], args[2]
        size, stride = [*size, window], [*stride, stride[dim]]
        size[dim] = (size[dim] - window) // step + 1
        stride[dim] *= step
    return torch.as_strided(x, size, stride, offset)


# %% mistake: expand_keeps_the_stride
# You kept the stride of the dimension that you expanded. Its next index must find the same element
# again: the step is 0.
def view_of(x, op, *args):
    size, stride, offset = list(x.shape), list(x.stride()), x.storage_offset()
    if op == "transpose":
        a, b = args
        size[a], size[b], stride[a], stride[b] = size[b], size[a], stride[b], stride[a]
    elif op == "permute":
        size, stride = [size[d] for d in args], [stride[d] for d in args]
    elif op == "select":
        offset += args[1] % size[args[0]] * stride[args[0]]
        del size[args[0]], stride[args[0]]
    elif op == "narrow":
        offset += args[1] * stride[args[0]]
        size[args[0]] = args[2]
    elif op == "expand":
        new = len(args) - x.dim()
        size, stride = [1] * new + size, [0] * new + stride
        for dim, n in enumerate(args):
            if n not in (-1, size[dim]):
                size[dim] = n
    elif op == "diagonal":
        shift, a, b = args[0], args[1] % x.dim(), args[2] % x.dim()
        offset += shift * stride[b] if shift > 0 else -shift * stride[a]
        rest = [d for d in range(x.dim()) if d not in (a, b)]
        length = max(0, min(size[a] + min(shift, 0), size[b] - max(shift, 0)))
        size, stride = [size[d] for d in rest] + [length], [stride[d] for d in [*rest, a]]
        stride[-1] += x.stride(b)
    elif op == "unfold":
        dim, window, step = args[0] % x.dim(), args[1], args[2]
        size, stride = [*size, window], [*stride, stride[dim]]
        size[dim] = (size[dim] - window) // step + 1
        stride[dim] *= step
    return torch.as_strided(x, size, stride, offset)


# %% mistake: diagonal_always_right
# You moved the start of every diagonal to the right. With a negative offset it begins further
# *down*: so many steps along the first of the two dimensions.
def view_of(x, op, *args):
    size, stride, offset = list(x.shape), list(x.stride()), x.storage_offset()
    if op == "transpose":
        a, b = args
        size[a], size[b], stride[a], stride[b] = size[b], size[a], stride[b], stride[a]
    elif op == "permute":
        size, stride = [size[d] for d in args], [stride[d] for d in args]
    elif op == "select":
        offset += args[1] % size[args[0]] * stride[args[0]]
        del size[args[0]], stride[args[0]]
    elif op == "narrow":
        offset += args[1] * stride[args[0]]
        size[args[0]] = args[2]
    elif op == "expand":
        new = len(args) - x.dim()
        size, stride = [1] * new + size, [0] * new + stride
        for dim, n in enumerate(args):
            if n not in (-1, size[dim]):
                size[dim], stride[dim] = n, 0
    elif op == "diagonal":
        shift, a, b = args[0], args[1] % x.dim(), args[2] % x.dim()
        offset += abs(shift) * stride[b]
        rest = [d for d in range(x.dim()) if d not in (a, b)]
        length = max(0, min(size[a] + min(shift, 0), size[b] - max(shift, 0)))
        size, stride = [size[d] for d in rest] + [length], [stride[d] for d in [*rest, a]]
        stride[-1] += x.stride(b)
    elif op == "unfold":
        dim, window, step = args[0] % x.dim(), args[1], args[2]
        size, stride = [*size, window], [*stride, stride[dim]]
        size[dim] = (size[dim] - window) // step + 1
        stride[dim] *= step
    return torch.as_strided(x, size, stride, offset)


# %% mistake: diagonal_is_square
# You took the shorter side for the length of every diagonal. What the offset cuts off is missing
# there: a diagonal may be shorter, or have no element at all.
def view_of(x, op, *args):
    size, stride, offset = list(x.shape), list(x.stride()), x.storage_offset()
    if op == "transpose":
        a, b = args
        size[a], size[b], stride[a], stride[b] = size[b], size[a], stride[b], stride[a]
    elif op == "permute":
        size, stride = [size[d] for d in args], [stride[d] for d in args]
    elif op == "select":
        offset += args[1] % size[args[0]] * stride[args[0]]
        del size[args[0]], stride[args[0]]
    elif op == "narrow":
        offset += args[1] * stride[args[0]]
        size[args[0]] = args[2]
    elif op == "expand":
        new = len(args) - x.dim()
        size, stride = [1] * new + size, [0] * new + stride
        for dim, n in enumerate(args):
            if n not in (-1, size[dim]):
                size[dim], stride[dim] = n, 0
    elif op == "diagonal":
        shift, a, b = args[0], args[1] % x.dim(), args[2] % x.dim()
        offset += shift * stride[b] if shift > 0 else -shift * stride[a]
        rest = [d for d in range(x.dim()) if d not in (a, b)]
        length = min(size[a], size[b])
        size, stride = [size[d] for d in rest] + [length], [stride[d] for d in [*rest, a]]
        stride[-1] += x.stride(b)
    elif op == "unfold":
        dim, window, step = args[0] % x.dim(), args[1], args[2]
        size, stride = [*size, window], [*stride, stride[dim]]
        size[dim] = (size[dim] - window) // step + 1
        stride[dim] *= step
    return torch.as_strided(x, size, stride, offset)


# %% mistake: windows_step_by_one
# You gave `unfold` the right number of windows and let each begin one element after the last. From
# window to window it is `step` elements: multiply the stride.
def view_of(x, op, *args):
    size, stride, offset = list(x.shape), list(x.stride()), x.storage_offset()
    if op == "transpose":
        a, b = args
        size[a], size[b], stride[a], stride[b] = size[b], size[a], stride[b], stride[a]
    elif op == "permute":
        size, stride = [size[d] for d in args], [stride[d] for d in args]
    elif op == "select":
        offset += args[1] % size[args[0]] * stride[args[0]]
        del size[args[0]], stride[args[0]]
    elif op == "narrow":
        offset += args[1] * stride[args[0]]
        size[args[0]] = args[2]
    elif op == "expand":
        new = len(args) - x.dim()
        size, stride = [1] * new + size, [0] * new + stride
        for dim, n in enumerate(args):
            if n not in (-1, size[dim]):
                size[dim], stride[dim] = n, 0
    elif op == "diagonal":
        shift, a, b = args[0], args[1] % x.dim(), args[2] % x.dim()
        offset += shift * stride[b] if shift > 0 else -shift * stride[a]
        rest = [d for d in range(x.dim()) if d not in (a, b)]
        length = max(0, min(size[a] + min(shift, 0), size[b] - max(shift, 0)))
        size, stride = [size[d] for d in rest] + [length], [stride[d] for d in [*rest, a]]
        stride[-1] += x.stride(b)
    elif op == "unfold":
        dim, window, step = args[0] % x.dim(), args[1], args[2]
        size, stride = [*size, window], [*stride, stride[dim]]
        size[dim] = (size[dim] - window) // step + 1
    return torch.as_strided(x, size, stride, offset)


# %% mistake: select_keeps_the_dimension
# You kept the selected dimension with size 1. `select` removes it: the result has one dimension
# less.
def view_of(x, op, *args):
    size, stride, offset = list(x.shape), list(x.stride()), x.storage_offset()
    if op == "transpose":
        a, b = args
        size[a], size[b], stride[a], stride[b] = size[b], size[a], stride[b], stride[a]
    elif op == "permute":
        size, stride = [size[d] for d in args], [stride[d] for d in args]
    elif op == "select":
        offset += args[1] % size[args[0]] * stride[args[0]]
        size[args[0]] = 1
    elif op == "narrow":
        offset += args[1] * stride[args[0]]
        size[args[0]] = args[2]
    elif op == "expand":
        new = len(args) - x.dim()
        size, stride = [1] * new + size, [0] * new + stride
        for dim, n in enumerate(args):
            if n not in (-1, size[dim]):
                size[dim], stride[dim] = n, 0
    elif op == "diagonal":
        shift, a, b = args[0], args[1] % x.dim(), args[2] % x.dim()
        offset += shift * stride[b] if shift > 0 else -shift * stride[a]
        rest = [d for d in range(x.dim()) if d not in (a, b)]
        length = max(0, min(size[a] + min(shift, 0), size[b] - max(shift, 0)))
        size, stride = [size[d] for d in rest] + [length], [stride[d] for d in [*rest, a]]
        stride[-1] += x.stride(b)
    elif op == "unfold":
        dim, window, step = args[0] % x.dim(), args[1], args[2]
        size, stride = [*size, window], [*stride, stride[dim]]
        size[dim] = (size[dim] - window) // step + 1
        stride[dim] *= step
    return torch.as_strided(x, size, stride, offset)


# %% alternate: affine_map
# Says for each operation which index of `x` an index of the result is, and reads strides and offset
# off that map: its value at zero, and what each unit step adds.
def view_of(x, op, *args):
    n, size = x.dim(), list(x.shape)
    if op == "transpose":
        order = list(range(n))
        order[args[0]], order[args[1]] = order[args[1]], order[args[0]]
        op, args = "permute", order
    if op == "permute":
        order = [d % n for d in args]
        new, source = [size[d] for d in order], lambda i: [i[order.index(d)] for d in range(n)]
    elif op == "select":
        d = args[0] % n
        new, source = size[:d] + size[d + 1 :], lambda i: [*i[:d], args[1] % size[d], *i[d:]]
    elif op == "narrow":
        d = args[0] % n
        new = [*size[:d], args[2], *size[d + 1 :]]
        source = _moved(d, lambda k: k + args[1])
    elif op == "expand":
        lead = len(args) - n
        new = [size[k - lead] if m == -1 else m for k, m in enumerate(args)]
        source = _stretched(size, lead)
    elif op == "diagonal":
        shift, a, b = args[0], args[1] % n, args[2] % n
        rest = [d for d in range(n) if d not in (a, b)]
        new = [size[d] for d in rest] + [len(range(max(0, -shift), min(size[a], size[b] - shift)))]
        source = _diagonal(n, rest, {a: max(0, -shift), b: max(0, shift)})
    else:
        d, window, step = args[0] % n, args[1], args[2]
        new = [*size, window]
        new[d] = len(range(0, size[d] - window + 1, step))
        source = _windows(n, d, step)

    def place(i):
        return sum(k * s for k, s in zip(source(i), x.stride()))

    zero = place([0] * len(new))
    units = [[int(j == k) for j in range(len(new))] for k in range(len(new))]
    stride = [place(unit) - zero for unit in units]
    return torch.as_strided(x, new, stride, x.storage_offset() + zero)


def _moved(d, move):
    return lambda i: [move(k) if at == d else k for at, k in enumerate(i)]


def _stretched(size, lead):
    return lambda i: [0 if n == 1 else i[at + lead] for at, n in enumerate(size)]


def _diagonal(n, rest, starts):
    return lambda i: [i[-1] + starts[d] if d in starts else i[rest.index(d)] for d in range(n)]


def _windows(n, d, step):
    return lambda i: [i[at] * step + i[n] if at == d else i[at] for at in range(n)]


# %% alternate: set_on_a_new_tensor
# Edits the record of a fresh tensor with `set_` and does each operation in terms of a few others.
def view_of(x, op, *args):
    if op == "transpose":
        order = list(range(x.dim()))
        a, b = args
        order[a], order[b] = order[b], order[a]
        return view_of(x, "permute", *order)
    size, stride, start = tuple(x.shape), x.stride(), x.storage_offset()
    dim = args[1 if op == "diagonal" else 0] % max(x.dim(), 1)
    step = stride[dim] if stride else 0
    if op == "permute":
        size, stride = tuple(size[d] for d in args), tuple(stride[d] for d in args)
    elif op == "select":
        start += (args[1] + size[dim] if args[1] < 0 else args[1]) * step
        size, stride = size[:dim] + size[dim + 1 :], stride[:dim] + stride[dim + 1 :]
    elif op == "narrow":
        start += args[1] * step
        size = size[:dim] + (args[2],) + size[dim + 1 :]
    elif op == "expand":
        lead = len(args) - len(size)
        old = (1,) * lead + size
        stride = tuple(
            s if wanted in (-1, n) else 0 for n, s, wanted in zip(old, (0,) * lead + stride, args)
        )
        size = tuple(n if wanted == -1 else wanted for n, wanted in zip(old, args))
    elif op == "diagonal":
        shift, other = args[0], args[2] % x.dim()
        first, second = max(0, -shift), max(0, shift)
        start += first * stride[dim] + second * stride[other]
        length = max(0, min(size[dim] - first, size[other] - second))
        rest = [d for d in range(x.dim()) if d != dim and d != other]
        size = tuple(size[d] for d in rest) + (length,)
        stride = tuple(stride[d] for d in rest) + (step + stride[other],)
    elif op == "unfold":
        count = (size[dim] - args[1] + args[2]) // args[2]
        size = size[:dim] + (count,) + size[dim + 1 :] + (args[1],)
        stride = stride[:dim] + (step * args[2],) + stride[dim + 1 :] + (step,)
    return torch.empty(0, dtype=x.dtype).set_(x.untyped_storage(), start, size, stride)


# %% alternate: a_class_of_edits
# One method for each of the seven, of the same names: they are its own, and no tensor's.
class _Record:
    def __init__(self, x):
        self.size, self.step, self.offset = [*x.shape], [*x.stride()], x.storage_offset()

    def transpose(self, a, b):
        for part in (self.size, self.step):
            part[a], part[b] = part[b], part[a]

    def permute(self, *dims):
        self.size, self.step = ([part[d] for d in dims] for part in (self.size, self.step))

    def select(self, dim, index):
        self.narrow(dim, index % self.size[dim], 1)
        del self.size[dim], self.step[dim]

    def narrow(self, dim, start, length):
        self.offset += start * self.step[dim]
        self.size[dim] = length

    def expand(self, *size):
        new = len(size) - len(self.size)
        self.size[:0], self.step[:0] = [1] * new, [0] * new
        for dim, n in enumerate(size):
            if n not in (-1, self.size[dim]):
                self.size[dim], self.step[dim] = n, 0

    def diagonal(self, offset, a, b):
        a, b = a % len(self.size), b % len(self.size)
        length = sum(0 <= i + offset < self.size[b] for i in range(self.size[a]))
        if length:
            self.offset += max(offset, 0) * self.step[b] + max(-offset, 0) * self.step[a]
        together = self.step[a] + self.step[b]
        rest = [dim for dim in range(len(self.size)) if dim not in (a, b)]
        self.size = [self.size[dim] for dim in rest] + [length]
        self.step = [self.step[dim] for dim in rest] + [together]

    def unfold(self, dim, size, step):
        dim %= len(self.size)
        self.size.append(size)
        self.step.append(self.step[dim])
        self.size[dim] = (self.size[dim] - size) // step + 1
        self.step[dim] *= step


def view_of(x, op, *args):
    record = _Record(x)
    getattr(record, op)(*args)
    return x.as_strided(record.size, record.step, record.offset)
