"""Chapter 3's probes: all of the chapter that runs beside a student's code."""

import torch

from grader import each, probe, watch_flops, watch_memory, watch_ops

PRODUCTS = (
    *("mm", "bmm", "mv", "dot", "vdot", "addmm", "addmv", "baddbmm", "addbmm", "linear"),
    *("convolution", "_int_mm", "_scaled_mm", "_trilinear"),
)
"""The operators that multiply and sum."""


@probe
def by_hand(student, a, b):
    """Return `mm_by_hand` of `a` and `b`."""
    return student.mm_by_hand(a, b)


@probe
def shaped(student, pairs):
    """Return the shape that each pair of shapes gives, or "ValueError"."""

    def matmul_shape(a, b):
        try:
            return student.matmul_shape(a, b)
        except ValueError:
            return "ValueError"

    return each(matmul_shape, [(tuple(a), tuple(b)) for a, b in pairs])


def _measured(multiply, *operands):
    """Return a product, the operators that made it, and the bytes that were allocated."""
    with watch_ops() as ops, watch_memory() as memory:
        result = multiply(*operands)
    return {
        "result": result,
        "products": [name for name in ops.names if name in PRODUCTS],
        "new_bytes": memory.new_bytes,
        "largest_bytes": memory.largest_bytes,
    }


@probe
def multiplied(student, a, b):
    """Return `matmul` of `a` and `b`, and what it took."""
    return _measured(student.matmul, a, b)


@probe
def broadcast_product(student, a, b):
    """Return `broadcast_matmul` of `a` and `b`, and what it took."""
    return _measured(student.broadcast_matmul, a, b)


@probe
def contracted(student, equation, operands):
    """Return `einsum` of `operands`, and what it took."""
    return _measured(student.einsum, equation, *operands)


@probe
def ordered(student, chains):
    """Return what `best_order` gives for each list of sizes."""
    return [student.best_order(list(sizes)) for sizes in chains]


@probe
def steady_product(student, a, b):
    """Return `steady_matmul` of `a` and `b`."""
    return student.steady_matmul(a, b)


@probe
def seven_products(student, a, b, leaf):
    """Return `strassen` of `a` and `b`, which products ran, and their FLOPs."""
    with watch_ops() as ops, watch_flops() as flops:
        result = student.strassen(a, b, leaf)
    return {
        "result": result,
        "products": sorted({name for name in ops.names if name in PRODUCTS}),
        "flops": flops.total,
    }


# --- layers: convolution, attention, loop nests, planning ---


@probe
def convolved(student, x, weight, bias, options):
    """Return a convolution; `options` are (stride, padding, dilation, groups)."""
    return student.conv2d(x, weight, bias, *options)


@probe
def convolved_plainly(student, x, weight):
    """Return a convolution for which nothing but `x` and `weight` is given."""
    return student.conv2d(x, weight)


@probe
def conv_cost(student, x, weight, bias, options):
    """Return the result of a convolution, the FLOPs and the most new bytes alive at once."""
    with watch_flops() as flops, watch_memory() as memory:
        result = student.conv2d(x, weight, bias, *options)
    return {"result": result, "flops": flops.total, "peak": memory.peak_bytes}


@probe
def heads_split(student, x, heads):
    """Return `x` by head."""
    return student.split_heads(x, heads)


@probe
def heads_merged(student, y):
    """Return `y` merged, and the bytes that this allocated."""
    with watch_memory() as memory:
        result = student.merge_heads(y)
    return {"result": result, "new": memory.new_bytes}


@probe
def heads_there_and_back(student, x, heads):
    """Return `x` split and merged again."""
    return student.merge_heads(student.split_heads(x, heads))


@probe
def attended(student, q, k, v, mask):
    """Return the attention of `q` to `k` and `v`."""
    return student.attention(q, k, v, mask)


@probe
def attention_grads(student, q, k, v, mask, cotangent):
    """Return the gradients of q, k and v for the result's `cotangent`; None where there is none."""
    leaves = [tensor.clone().requires_grad_() for tensor in (q, k, v)]
    result = student.attention(*leaves, mask)
    if not result.requires_grad:
        return [None, None, None]
    return list(torch.autograd.grad(result, leaves, cotangent, allow_unused=True))


@probe
def streamed(student, q, k, v, mask, block):
    """Return the attention of `q` to `k` and `v`, taken by blocks of keys."""
    with torch.no_grad():
        return student.streaming_attention(q, k, v, mask, block)


@probe
def streaming_cost(student, q, k, v, mask, block):
    """Return the result, the FLOPs and the most new bytes alive at once."""
    with torch.no_grad(), watch_flops() as flops, watch_memory() as memory:
        result = student.streaming_attention(q, k, v, mask, block)
    return {"result": result, "flops": flops.total, "peak": memory.peak_bytes}


@probe(in_place=("weight", "bias"))
def linear_converted(student, weight, bias, size, x):
    """Convert a linear layer, run it on `x`, then change the linear layer and run it again."""
    linear = torch.nn.Linear(1, 1, bias=bias is not None, dtype=weight.dtype)
    linear.out_features, linear.in_features = weight.shape
    linear.weight = torch.nn.Parameter(weight)
    if bias is not None:
        linear.bias = torch.nn.Parameter(bias)
    conv = student.linear_as_conv(linear, size)
    found = {
        "is a Conv2d": isinstance(conv, torch.nn.Conv2d),
        "weight": conv.weight,
        "bias": conv.bias,
        "parameters": [name for name, _ in conv.named_parameters()],
        "before": conv(x).detach(),
    }
    with torch.no_grad():
        linear.weight.mul_(2)
    found["after"] = conv(x).detach()
    return found


@probe
def linear_refused(student, features, size):
    """Convert a linear layer of so many input features."""
    student.linear_as_conv(torch.nn.Linear(features, 2), size)


@probe
def shifted(student, scores, keys):
    """Return the scores of distances by key."""
    return student.relative_shift(scores, keys)


def _formulas(student):
    """Return programs in the student's language: name -> function that records it."""
    A, B, C = (student.Buffer(name) for name in "ABC")
    total, where = student.total, student.where
    return {
        "vector add": ((7,), lambda i: A[i] + B[i]),
        "matrix product": ((4, 5), lambda i, j: total((3,), lambda k: A[i, k] * B[k, j])),
        "two sums": ((4,), lambda i: total((3, 5), lambda r, s: A[i, r] * B[r, s])),
        "sums with different work": (
            (2,),
            lambda row: total((3, 4), lambda r, s: A[row, r] * (s + 2 * r) - row),
        ),
        "scalar": ((), lambda: total((7,), lambda i: A[i])),
        "a number": ((2, 3), lambda i, j: 1.5),
        "an index": ((3, 4), lambda i, j: 10 * i + j),
        "transposed": ((5, 4), lambda i, j: A[j, i]),
        "reversed": ((7,), lambda i: A[6 - i]),
        "numbers first": ((7,), lambda i: 2 + A[i] - (3 - (2 * B[i] * 0.5))),
        "numbers last": ((7,), lambda i: A[i] * 3 + 1 - (B[i] - 2)),
        "whole division": (
            (12,),
            lambda i: A[i // 3] * 10 + B[i % 4] + 40 // (i + 1) + 13 % (i + 2),
        ),
        "minus": ((7,), lambda i: -A[i] + -i),
        "precedence": ((7,), lambda i: (A[i] + B[i]) * (A[i] - (B[i] - 1))),
        "numbers as indices": ((7,), lambda i: A[0] + B[i] * A[6]),
        "conditions": (
            (6, 6),
            lambda i, j: (
                where(i < j, 1, 0)
                + where(i <= j, 10, 0)
                + where(i > j, 100, 0)
                + where(i >= 3, 1000, 0)
                + where((j < 5) & (i + j <= 5), 10_000, 0)
                + where(2 < i, 100_000, 0)  # noqa: SIM300  (the number first, on purpose)
            ),
        ),
        "values decide": ((7,), lambda i: where(A[i] > B[i], A[i], B[i])),
        "padded": (
            (9,),
            lambda i: total(
                (3,),
                lambda d: where((i + d - 2 >= 0) & (i + d - 2 < 7), A[i + d - 2], 0.0) * B[d],
            ),
        ),
        "bias and sum": ((4,), lambda i: C[i] + 2 * total((3,), lambda k: A[i, k])),
        "convolution": (
            (2, 4, 5),
            lambda o, y, x: total(
                (2, 3, 3),
                lambda c, r, s: (
                    where(
                        (y + r - 1 >= 0) & (y + r - 1 < 4) & (x + s - 1 >= 0) & (x + s - 1 < 5),
                        A[c, y + r - 1, x + s - 1],
                        0,
                    )
                    * B[o, c, r, s]
                ),
            ),
        ),
    }


@probe
def recorded(student, name):
    """Return a program of ours, recorded in the student's language."""
    return student.compute(*_formulas(student)[name])


@probe
def recorded_wrongly(student, how):
    """Record a formula that cannot be recorded."""
    A = student.Buffer("A")
    shape, formula = {
        "if": ((5,), lambda i: A[i] if i > 2 else 0),
        "chain": ((5,), lambda i: student.where(0 <= i < 3, A[i], 0)),
        "and": ((5,), lambda i: student.where(i > 0 and i < 3, A[i], 0)),
        "not": ((5,), lambda i: student.where(not i, A[i], 0)),
        "too few": ((5, 5), lambda i: A[i]),
        "too many": ((5,), lambda i, j: A[i, j]),
        "sum too few": ((5,), lambda i: student.total((2, 3), lambda k: A[k])),
    }[how]
    student.compute(shape, formula)


class _Watched:
    """A buffer that notes what is read, and refuses what lies outside."""

    def __init__(self, name, tensor, notes):
        self.name, self.shape, self.notes = name, tuple(tensor.shape), notes
        self.tensor = tensor

    def _place(self, index):
        index = index if isinstance(index, tuple) else (index,)
        fits = len(index) == len(self.shape) and all(
            type(i) is int and 0 <= i < n for i, n in zip(index, self.shape, strict=True)
        )
        if not fits:
            place = "..." if index == (...,) else ", ".join(map(str, index))
            raise IndexError(f"no element {self.name}[{place}] in shape {self.shape}")
        return index

    def __getitem__(self, index):
        index = self._place(index)
        if len(self.notes) < 20_000:
            self.notes.append((self.name, index))
        return self.tensor[index].item()


class _Out(_Watched):
    """The result: read and written."""

    def __getitem__(self, index):
        return self.tensor[self._place(index)].item()

    def __setitem__(self, index, value):
        self.tensor[self._place(index)] = value


@probe
def looped(student, program, order, shape, buffers):
    """Run a loop nest. Return its result, and what it read, in order."""
    source = student.loop_nest(program, order)
    notes = []
    out = torch.full(shape, 777.0, dtype=torch.float64)
    names = {name: _Watched(name, tensor, notes) for name, tensor in buffers.items()}
    exec(compile(source, "loop nest", "exec"), {**names, "out": _Out("out", out, notes)})
    return {"out": out, "reads": notes, "source": source}


@probe
def loops_refused(student, program, order):
    """Ask for loops in an order that is none."""
    student.loop_nest(program, order)


@probe
def lowered(student, program, buffers):
    """Return the equation, and what it gives; None if there is none."""
    found = student.lower_to_einsum(program, {n: tuple(t.shape) for n, t in buffers.items()})
    if found is None:
        return None
    equation, names = found
    value = torch.einsum(equation, *(buffers[name] for name in names))
    return {"equation": equation, "names": list(names), "value": value}


def _product(a, b):
    return a @ b


def _chain(x):
    return x.exp().sin().cos()


def _keeps_all(x):
    a = x.exp()
    b = a.sin()
    return b.cos() + a


def _head(x, w1, w2):
    hidden = torch.relu(x @ w1)
    logits = hidden @ w2
    return logits, logits.argmax(-1)


def _views(x):
    return x.t(), x[1:, ::2], x.view(-1)


def _shared(x):
    y = x * 2
    return y, y.t(), y.sum()


def _in_place(x):
    y = x.clone()
    y.add_(1).mul_(2)
    return y.relu_()


def _makes_its_own(x):
    positions = torch.arange(x.shape[-1])
    mask = positions[:, None] >= positions
    return torch.where(mask, x, torch.zeros(()))


def _convolution(x, w):
    return torch.nn.functional.conv2d(x, w, stride=2, padding=1)


def _drops(x):
    y = torch.empty(x.shape[0], 1000)
    del y
    return x.sum(1)


def _attention(q, k, v):
    return torch.softmax(q @ k.transpose(-2, -1), -1) @ v


@probe
def planned(student, name, specs):
    """Return the plan of a program of ours."""
    return student.plan(globals()[f"_{name}"], specs)
