"""Checks of `Affine8`: what it looks like, what views, copies and writes do to its whole numbers."""

import pytest
import torch

from grader import (
    about,
    assert_close,
    assert_equal,
    assert_holds,
    assert_same_bits,
    claimed,
    gate,
    points,
)

ONE_STEP = "the same operations in float32, perhaps in another order"


@pytest.fixture
def q(rng):
    """Whole numbers (3, 4) from -100 to 100, no two alike."""
    return (torch.randperm(201, generator=rng)[:12] - 100).to(torch.int8).view(3, 4)


@pytest.fixture
def scale():
    return torch.tensor(0.5)


def made_of(q, scale):
    """Return the lines that make an `Affine8` called a."""
    numbers = q.contiguous().tolist()
    strided = "" if q.is_contiguous() else f", which lies in memory with strides {q.stride()}"
    return f"a = Affine8(torch.tensor({numbers}, dtype=torch.int8), torch.tensor({scale.item()})){strided}"


@gate
def test_quantised(quantised):
    """Numbers become whole numbers and a scale."""
    x = torch.tensor([1.0, -2.0, 127.0])
    got = quantised.ask(x).value
    with about(("on", "Affine8.quantize(torch.tensor([1.0, -2.0, 127.0]))")):
        assert_equal(got["class"], "Affine8", "The class.")
        assert_same_bits(got["q"], x.to(torch.int8))
        assert_same_bits(got["scale"], torch.tensor(1.0))


def test_quantize(quantised, rng):
    """The scale is the largest absolute value by 127, or 1; numbers are rounded to the nearest."""
    random = torch.randn(5, 7, generator=rng)
    for x in (
        torch.tensor([63.5, -0.2, 0.3, 0.76, -20.0]),
        torch.tensor([-63.5, 0.25, 0.75, -0.25, 1.25]),
        torch.tensor([[-254.0, 3.0], [100.9, 1.1]]),
        torch.zeros(2, 3),
        random,
        -random.abs().t(),
    ):
        most = x.abs().max()
        scale = most / 127 if most > 0 else torch.tensor(1.0)
        got = quantised.ask(x).value
        with about(("on", f"Affine8.quantize(torch.tensor({x.tolist()}))")):
            with about(of="The scale: "):
                assert_close(got["scale"], scale, rtol=1e-6, atol=0, because="one division")
            q = got["q"]
            with about(of="q: "):
                assert_same_bits(q, (x / scale).round().to(torch.int8))


@claimed
def test_looks(looks, q, scale):
    """It looks like a float32 tensor with q's shape and strides, and is made of q and the scale."""
    for kept in (q, q.t(), q[:, ::2], q[0, 1]):
        got = looks.ask(kept, scale).value
        with about(("on", made_of(kept, scale))):
            facts = got["facts"]
            assert_equal(facts["class"], "Affine8", "The class.")
            wanted = ["torch.float32", list(kept.shape), list(kept.stride())]
            assert_equal(facts["looks"], wanted, "dtype, shape and strides.")
            assert_equal(got["same"], [True, True], "Are `q` and `scale` what was given?")
            assert_equal(got["requires grad"], False, "requires_grad.")
            assert_equal(got["float's class"], "Tensor", "The class of what `dequantize()` gives.")
            assert_same_bits(got["float"], kept * scale)
            most = kept.untyped_storage().nbytes() + 4
            what = "Its attributes take more memory than q and the scale."
            rows = ("expected", f"{most} bytes"), ("got", f"{got['bytes']} bytes")
            assert_holds(got["bytes"] <= most, what, *rows)


VIEWS = (
    "a.t()",
    "a[1]",
    "a[0, 1:]",
    "a[1:, ::2]",
    "a[:, None]",
    "a.transpose(0, 1)",
    "a.permute(1, 0)",
    "a.view(2, 6)",
    "a.reshape(-1)",
    "a.diagonal(1)",
    "a.expand(2, 3, 4)",
    "a.detach()",
    "a.t()[1:].unsqueeze(0)[0, 2]",
    "a.split(2)",
    "a.unbind(1)",
    "a.t().chunk(2)",
)


@points(4)
@claimed
def test_views(viewed, q, scale):
    """A view stays in eight bits: its q is a view of q, in the same memory."""
    for expression in VIEWS:
        got = viewed.ask(q, scale, expression).value
        expected = eval(expression, {"a": q})
        views = list(expected) if isinstance(expected, tuple | list) else [expected]
        with about(("on", f"{made_of(q, scale)}\n{expression}")):
            classes = [facts["class"] for facts in got["facts"]]
            assert_equal(classes, ["Affine8"] * len(views), "The classes of the results.")
            for facts, found, view in zip(got["facts"], got["scales"], views, strict=True):
                layout = [list(view.shape), list(view.stride())]
                where = ["torch.int8", *layout, view.storage_offset()]
                assert_equal(facts["q"], where, "q of the view: dtype, shape, strides, offset.")
                assert_equal(facts["shares q"], True, "Does the view's q share a's memory?")
                assert_equal(
                    facts["looks"], ["torch.float32", *layout], "dtype, shape and strides."
                )
                assert_same_bits(found, scale)
            what = "The attributes of a view take more memory than q and the scale."
            rows = ("expected", f"{q.nbytes + 4} bytes"), ("got", f"{max(got['bytes'])} bytes")
            assert_holds(max(got["bytes"]) <= q.nbytes + 4, what, *rows)


OPERATORS = (
    "a + 1",
    "1 - a",
    "-a",
    "torch.add(x, a, alpha=2)",
    "torch.add(a, other=a, alpha=3)",
    "a @ x.t()",
    "F.linear(x, a)",
    "a * b",
    "torch.cat([a, x, b])",
    "torch.stack((x, a))",
    "torch.where(x > 0, a, b.t().t())",
    "a.sort(-1)",
    "a.sum(), a.amax(0), a.relu()",
    "a[[0, 2]], a[x > 0], a.t()[1] + x[:, 1]",
    "torch.zeros_like(a), a.double(), a.int()",
    "torch.addcmul(x, a, b, value=2)",
)


def test_operators(computed, q, rng):
    """All other operators give what they give for the float32 tensors, and plain tensors."""
    x = torch.randint(-3, 4, (3, 4), generator=rng).float()
    qs, scales = [q, q.flip(0)], [torch.tensor(0.5), torch.tensor(0.25)]
    a, b = (one * scale for one, scale in zip(qs, scales, strict=True))
    for expression in OPERATORS:
        names = {"torch": torch, "F": torch.nn.functional, "a": a, "b": b, "x": x}
        expected = eval(expression, names)
        expected = list(expected) if isinstance(expected, tuple | list) else [expected]
        got = computed.ask(qs, scales, x, expression).value
        on = f"{made_of(q, scales[0])}\n{made_of(qs[1], scales[1]).replace('a =', 'b =', 1)}"
        with about(("on", f"{on}\nx = torch.tensor({x.tolist()})\n{expression}")):
            assert_equal(got["classes"], ["Tensor"] * len(expected), "The classes of the results.")
            for one, other in zip(got["results"], expected, strict=True):
                assert_close(one, other, rtol=1e-6, atol=1e-6, because=ONE_STEP)


def same_writes(written_to, lines, qs, scales, x):
    """Run lines on float32 tensors, and compare q, in steps of the scale, with what comes of it."""
    floats = [q * scale for q, scale in zip(qs, scales, strict=True)]
    names = {"torch": torch, "a": floats[0], "b": floats[1], "x": x.clone()}
    for line in lines:
        exec(line, names)
        for one, scale in zip(floats, scales, strict=True):
            one.copy_((one / scale).round().clamp(-127, 127) * scale)
    inputs = [one.clone() for one in qs], scales, x.clone()
    evidence = written_to.ask(*inputs, lines)
    got = evidence.value
    on = f"{made_of(qs[0], scales[0])}\n{made_of(qs[1], scales[1]).replace('a =', 'b =', 1)}"
    with about(("on", "\n".join([on, f"x = torch.tensor({x.tolist()})", *lines]))):
        for name, one, float32, scale in zip("ab", got["q"], floats, scales, strict=True):
            with about(of=f"q of {name} afterwards: "):
                assert_same_bits(one, (float32 / scale).to(torch.int8))
        for one, scale in zip(got["scale"], scales, strict=True):
            with about(of="The scale afterwards: "):
                assert_same_bits(one, scale)
        for one, same in zip(evidence.inputs_after["qs"], got["q"], strict=True):
            with about(of="The tensor that was given as q: "):
                assert_same_bits(one, same)
        with about(of="x afterwards: "):
            assert_same_bits(evidence.inputs_after["x"], names["x"])
        assert_equal(got["x is plain"], "Tensor", "The class of x afterwards.")
        assert_equal(got["is the same"], True, "Is a the same object?")


@points(2)
def test_writes(written_to, q, rng):
    """Writes to it and to its views arrive in q, rounded to its scale, at most 127."""
    x = torch.randint(-3, 4, (3, 4), generator=rng).float()
    small = torch.arange(-6, 6).to(torch.int8).view(3, 4)
    qs, scales = [q, small], [torch.tensor(0.5), torch.tensor(2.0)]
    for lines in (
        ["a.add_(x)"],
        ["a.fill_(3.0)", "a += 1"],
        ["a[1].zero_()", "a[0, 2:] = 7.0"],
        ["a.t()[2].add_(x[:, 0], alpha=3)", "a.view(-1)[::5].mul_(-1)"],
        ["a.copy_(b)", "b.copy_(x)"],
        ["a[a > 10] = -2.5", "a.neg_()"],
        ["b.mul_(0.9)", "b.add_(0.9)"],
        ["a.mul_(2)", "a.sub_(30)"],
        ["b[0].add_(1000)", "b[1].sub_(1000)"],
        ["v = a.split(2)[1]", "v.masked_fill_(v < 0, 1.0)"],
    ):
        same_writes(written_to, lines, qs, scales, x)


def test_writes_to_plain_tensors(written_to, q, rng):
    """A plain tensor that is written from one stays plain, and the other as it was."""
    x = torch.randint(-3, 4, (3, 4), generator=rng).float()
    qs, scales = [q, q.flip(1)], [torch.tensor(0.5), torch.tensor(0.25)]
    for lines in (
        ["x.add_(a)"],
        ["x.copy_(a)", "x[0].sub_(b[1], alpha=2)"],
        ["x[a > 0] = 3.0"],
    ):
        same_writes(written_to, lines, qs, scales, x)


@claimed
def test_copies(copied, q, scale):
    """Copies are in eight bits too, with memory of their own."""
    for expression, expected in (
        ("a.clone()", q),
        ("a.t().contiguous()", q.t().contiguous()),
        ("copy.deepcopy(a)", q),
        ("copy.deepcopy(nn.Parameter(a, requires_grad=False))", q),
    ):
        got = copied.ask(q, scale, expression).value
        with about(("on", f"{made_of(q, scale)}\n{expression}")):
            facts = got["facts"]
            assert_equal(facts["class"], "Affine8", "The class.")
            assert_equal(facts["shares q"], False, "Does the copy's q share a's memory?")
            strides = [list(expected.shape), list(expected.stride())]
            assert_equal(facts["looks"], ["torch.float32", *strides], "dtype, shape and strides.")
            with about(of="The copy's q, after a's was set to zero: "):
                assert_same_bits(got["q"], expected)
            assert_same_bits(got["scale"], scale)


def test_in_a_module(in_a_module, q, scale, rng):
    """A layer's weight: its output, the gradients of its input and bias."""
    x, bias = (torch.randint(-3, 4, size, generator=rng).float() for size in ((2, 4), (3,)))
    got = in_a_module.ask(q, scale, bias, x).value
    weight = q * scale
    y = x @ weight.t() + bias
    program = f"layer.weight = nn.Parameter(a, requires_grad=False)  # layer = nn.Linear(4, 3)\nx = torch.tensor({x.tolist()}, requires_grad=True)\nlayer(x).square().sum().backward()"
    with about(("on", f"{made_of(q, scale)}\n{program}")):
        assert_equal([got["class"], got["in state_dict"]], ["Affine8"] * 2, "The weight's class.")
        for what, one, other in (
            ("The output: ", got["y"], y),
            ("The input's gradient: ", got["gradients"][0], 2 * y @ weight),
            ("The bias's gradient: ", got["gradients"][1], 2 * y.sum(0)),
        ):
            with about(of=what):
                assert_close(one, other, rtol=1e-5, atol=1e-5, because=ONE_STEP)
