"""Convolution, attention, formulas and plans: the reference solutions agree with torch on many cases."""

import itertools
import random
from functools import partial

import pytest
import torch
import torch.nn.functional as F

from grader.inside.instruments.memory import watch_memory
from tests import references

names_of = partial(references.program, "ch03_matmul")


@pytest.fixture(autouse=True)
def one_thread():
    """Tensors this small leave threads nothing to do but wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def whole(generator, *shape):
    """Whole numbers as float32: sums of products are exact."""
    return torch.randint(-4, 5, shape, generator=generator).float()


def relaid(choose, tensor):
    """Return the same values in another layout: permuted storage, a step, or an offset."""
    order = list(range(tensor.dim()))
    choose.shuffle(order)
    back = [order.index(d) for d in range(tensor.dim())]
    tensor = tensor.permute(order).contiguous().permute(back)
    if choose.random() < 0.5 and tensor.dim():
        dim = choose.randrange(tensor.dim())
        doubled = torch.stack([tensor, tensor + 1], dim + 1).flatten(dim, dim + 1)
        tensor = doubled[(slice(None),) * dim + (slice(None, None, 2),)]
    return tensor


def test_conv2d_is_torchs():
    conv2d = names_of("conv2d")["conv2d"]
    choose, generator = random.Random(1), torch.Generator().manual_seed(1)
    for _ in range(200):
        groups, per, out = (choose.randint(1, 3) for _ in range(3))
        kernel, stride, padding, dilation = (
            (choose.randint(low, 3), choose.randint(low, 3)) for low in (1, 1, 0, 1)
        )
        size = [
            max(1, dilation[i] * (kernel[i] - 1) + 1 - 2 * padding[i]) + choose.randint(0, 5)
            for i in (0, 1)
        ]
        x = relaid(choose, whole(generator, choose.randint(0, 3), groups * per, *size))
        weight = relaid(choose, whole(generator, groups * out, per, *kernel))
        bias = choose.choice([None, whole(generator, groups * out)])
        options = bias, stride, padding, dilation, groups
        assert torch.equal(conv2d(x, weight, *options), F.conv2d(x, weight, *options))


def test_linear_as_conv_is_the_linear_layer_at_every_place():
    linear_as_conv = names_of("linear_as_conv")["linear_as_conv"]
    choose, generator = random.Random(2), torch.Generator().manual_seed(2)
    for _ in range(30):
        channels, height, width, out = (choose.randint(1, 4) for _ in range(4))
        linear = torch.nn.Linear(channels * height * width, out, bias=choose.random() < 0.5)
        with torch.no_grad():
            for parameter in linear.parameters():
                parameter.copy_(whole(generator, *parameter.shape))
            conv = linear_as_conv(linear, (height, width))
            x = whole(generator, 2, channels, height + 2, width + 1)
            got = conv(x)
            for i, j in itertools.product(range(3), range(2)):
                place = x[:, :, i : i + height, j : j + width]
                assert torch.equal(got[:, :, i, j], linear(place.flatten(1)))


def test_heads_there_and_back():
    names = names_of("split_heads")
    choose, generator = random.Random(3), torch.Generator().manual_seed(3)
    for _ in range(200):
        lead = [choose.randint(0, 3) for _ in range(choose.randint(0, 3))]
        heads, size = choose.randint(1, 4), choose.randint(1, 4)
        x = relaid(choose, whole(generator, *lead, choose.randint(1, 5), heads * size))
        split = names["split_heads"](x, heads)
        for head in range(heads):
            part = x[..., head * size : (head + 1) * size]
            assert torch.equal(split.select(-3, head), part)
        assert split.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
        assert torch.equal(names["merge_heads"](split), x)
        assert torch.equal(names["merge_heads"](split.contiguous()), x)


def questions(seed, count):
    """Yield q, k, v and a mask of every kind, some of whose rows are empty."""
    choose, generator = random.Random(seed), torch.Generator().manual_seed(seed)
    for _ in range(count):
        lead = [choose.randint(1, 3) for _ in range(choose.randint(0, 2))]
        queries, keys, size, values = (choose.randint(1, 9) for _ in range(4))
        q, k, v = (
            relaid(choose, torch.randn(*lead, *shape, generator=generator))
            for shape in ((queries, size), (keys, size), (keys, values))
        )
        full = [*lead, queries, keys]
        shape = [choose.choice([n, 1]) for n in full[choose.randint(0, len(full) - 1) :]]
        mask = torch.rand(shape, generator=generator) < choose.choice([0.3, 0.8])
        if choose.random() < 0.5:
            finite = torch.randn(shape, generator=generator)
            mask = finite.masked_fill(~mask, -torch.inf)
        yield q, k, v, choose.choice([mask, mask, None])


def torchs(q, k, v, mask):
    """Return torch's own attention, which wants masks of two dimensions or more."""
    wide = mask if mask is None else mask.expand(*q.shape[:-1], k.shape[-2])
    return F.scaled_dot_product_attention(q, k, v, attn_mask=wide)


def test_attention_is_torchs():
    attention = names_of("attention")["attention"]
    for q, k, v, mask in questions(4, 300):
        expected = torchs(q, k, v, mask)
        # both in float32, each with its own order of work
        assert torch.allclose(attention(q, k, v, mask), expected, atol=1e-5)


def test_attention_grads_are_torchs_where_torchs_are_numbers():
    attention = names_of("attention")["attention"]
    compared = 0
    for q, k, v, mask in questions(5, 200):
        leaves = [t.double().requires_grad_() for t in (q, k, v)]
        wide = mask if mask is None or mask.dtype is torch.bool else mask.double()
        theirs = torch.autograd.grad(torchs(*leaves, wide).sum(), leaves)
        ours = torch.autograd.grad(attention(*leaves, wide).sum(), leaves)
        assert all(bool(grad.isfinite().all()) for grad in ours)
        if all(bool(grad.isfinite().all()) for grad in theirs):
            compared += 1
            assert all(torch.allclose(a, b) for a, b in zip(ours, theirs, strict=True))
    assert compared > 100


def test_streaming_is_attention():
    streaming = names_of("streaming_attention")["streaming_attention"]
    choose = random.Random(6)
    for q, k, v, mask in questions(7, 200):
        expected = torchs(q, k, v, mask)
        got = streaming(q, k, v, mask, choose.randint(1, 10))
        assert torch.allclose(got, expected, atol=1e-5)


@pytest.mark.parametrize("keys", [256, 4096])
def test_streaming_memory_does_not_grow_with_the_keys(keys):
    streaming = names_of("streaming_attention")["streaming_attention"]
    generator = torch.Generator().manual_seed(8)
    q, k, v = (torch.randn(n, 8, generator=generator) for n in (16, keys, keys))
    with watch_memory() as memory:
        streaming(q, k, v, None, 32)
    assert memory.peak_bytes <= 8 * 4 * (16 * 32 + 32 * 16 + 16 * 16)


def test_relative_shift_by_index():
    relative_shift = names_of("relative_shift")["relative_shift"]
    choose, generator = random.Random(9), torch.Generator().manual_seed(9)
    for _ in range(300):
        lead = [choose.randint(0, 3) for _ in range(choose.randint(0, 2))]
        queries, keys = choose.randint(1, 6), choose.randint(1, 6)
        scores = relaid(
            choose, torch.randn(*lead, queries, queries + keys - 1, generator=generator)
        )
        index = torch.arange(keys) - torch.arange(queries)[:, None] + queries - 1
        expected = scores.gather(-1, index.expand(*lead, queries, keys))
        got = relative_shift(scores, keys)
        assert torch.equal(got, expected)
        if scores.stride(-2) >= scores.stride(-1) and scores.numel():
            assert got.untyped_storage().data_ptr() == scores.untyped_storage().data_ptr()


def random_contraction(choose, names):
    """Return a program that is a sum of products, its buffers' shapes, and the equation."""
    letters = "ijklmn"[: choose.randint(1, 5)]
    sizes = {letter: choose.randint(1, 4) for letter in letters}
    terms = ["".join(choose.choices(letters, k=choose.randint(1, 3))) for _ in range(3)]
    terms[0] += "".join(set(letters) - set("".join(terms)))
    kept = choose.sample(letters, choose.randint(0, len(letters)))
    summed = [letter for letter in letters if letter not in kept]
    buffers = [names["Buffer"](name) for name in "ABC"]
    node = None
    for buffer, term in zip(buffers, terms, strict=True):
        read = buffer[tuple(names["Expr"](("index", letter)) for letter in term)]
        node = read if node is None else choose.choice([node * read, read * node])
    body = node.node
    for letter in summed:
        body = ("sum", letter, sizes[letter], body)
    program = {"axes": tuple((letter, sizes[letter]) for letter in kept), "body": body}
    shapes = {name: tuple(sizes[x] for x in t) for name, t in zip("ABC", terms, strict=True)}
    return program, shapes, f"{','.join(terms)}->{''.join(kept)}"


def test_contractions_by_loops_and_by_einsum():
    names, loop_nest = names_of("compute"), names_of("loop_nest")["loop_nest"]
    lower = names_of("lower_to_einsum")["lower_to_einsum"]
    choose, generator = random.Random(10), torch.Generator().manual_seed(10)
    for _ in range(150):
        program, shapes, equation = random_contraction(choose, names)
        tensors = {name: whole(generator, *shape) for name, shape in shapes.items()}
        expected = torch.einsum(equation, *tensors.values())
        found, operands = lower(program, shapes)
        assert torch.equal(torch.einsum(found, *(tensors[name] for name in operands)), expected)
        order = [letter for letter in "ijklmn" if any(letter in t for t in equation.split("->")[0])]
        choose.shuffle(order)
        out = torch.full(expected.shape, 777.0)
        exec(loop_nest(program, tuple(order)), {**tensors, "out": out})
        assert torch.equal(out, expected)


def test_plans_are_what_happens():
    plan = names_of("plan")["plan"]

    def attention(q, k, v):
        return F.softmax(q @ k.mT, -1) @ v, q.mT

    def network(x, w):
        y = F.conv2d(x, w, padding=1).relu()
        return y + y.amax((2, 3), keepdim=True)

    for program, shapes in (
        (attention, [(2, 5, 4), (2, 6, 4), (2, 6, 3)]),
        (network, [(2, 3, 8, 8), (4, 3, 3, 3)]),
    ):
        found = plan(program, [(shape, torch.float64) for shape in shapes])
        arguments = [torch.zeros(shape, dtype=torch.float64) for shape in shapes]
        with watch_memory() as memory:
            result = program(*arguments)
        result = result if isinstance(result, tuple) else (result,)
        assert found["outputs"] == [(tuple(t.shape), t.stride(), t.dtype) for t in result]
        assert found["new_bytes"] == memory.new_bytes
        assert found["peak_bytes"] == memory.peak_bytes
        assert found["kept_bytes"] == memory.live_bytes
