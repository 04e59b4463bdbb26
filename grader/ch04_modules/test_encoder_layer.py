"""Checks of `encoder_layer`: values, heads, padding, eps, gradients, and six products."""

import torch
from torch import nn

from grader import (
    Mismatch,
    about,
    assert_close,
    assert_equal,
    assert_holds,
    assert_tensor,
    claimed,
    compared,
    gate,
    points,
)

FLOAT64 = {"rtol": 1e-8, "atol": 1e-8, "because": "order of float64 sums"}


def draw_params(rng, hidden, width, dtype=torch.float64):
    """Return random tensors for a layer, by the names of its state dict."""

    def draw(*shape):
        return torch.randn(shape, generator=rng, dtype=torch.float64).to(dtype)

    return {
        "self_attn.in_proj_weight": draw(3 * hidden, hidden) / hidden**0.5,
        "self_attn.in_proj_bias": draw(3 * hidden),
        "self_attn.out_proj.weight": draw(hidden, hidden) / hidden**0.5,
        "self_attn.out_proj.bias": draw(hidden),
        "linear1.weight": draw(width, hidden) / hidden**0.5,
        "linear1.bias": draw(width),
        "linear2.weight": draw(hidden, width) / width**0.5,
        "linear2.bias": draw(hidden),
        "norm1.weight": 1 + draw(hidden) / 3,
        "norm1.bias": draw(hidden),
        "norm2.weight": 1 + draw(hidden) / 3,
        "norm2.bias": draw(hidden),
    }


def draw_x(rng, batch, seq, hidden):
    return torch.randn(batch, seq, hidden, generator=rng, dtype=torch.float64) * 2 + 1


def torchs(x, params, heads, mask=None, eps=1e-12):
    """Return what PyTorch's own layer gives: in training mode, without dropout, it has no shortcut."""
    width, hidden = params["linear1.weight"].shape
    options = {"batch_first": True, "dtype": x.dtype}
    layer = nn.TransformerEncoderLayer(hidden, heads, width, 0.0, "gelu", eps, **options)
    return torch.func.functional_call(
        layer, params, (x,), {"src_key_padding_mask": mask}, strict=True
    )


def padding(*lengths):
    """Return a mask for sentences of these lengths: True behind each one's end."""
    return torch.arange(max(lengths)) >= torch.tensor(lengths)[:, None]


def called(x, heads, mask=None, eps=None):
    """Return the rows that say what was asked."""
    rows = [("x", f"shape {tuple(x.shape)}"), ("heads", str(heads))]
    if mask is not None:
        rows.append(("padding", f"{mask.sum(1).tolist()} words of each sentence"))
    if eps is not None:
        rows.append(("eps", str(eps)))
    return rows


def compare(encoded, x, params, heads, mask=None, eps=None):
    got = encoded.ask(x, params, heads, mask, eps).value
    expected = torchs(x, params, heads, mask, 1e-12 if eps is None else eps)
    with about(*called(x, heads, mask, eps)):
        assert_close(got, expected, **FLOAT64)


@gate
def test_shape(encoded, rng):
    """Returns the shape and the dtype of `x`."""
    for dtype in (torch.float64, torch.float32):
        x = draw_x(rng, 2, 3, 4).to(dtype)
        got = encoded.ask(x, draw_params(rng, 4, 6, dtype), 2, None, None).value
        assert_tensor(got, dtype=dtype, shape=(2, 3, 4))


def test_one_word(encoded, rng):
    """A sentence of one word: projections, add & norm, feed-forward, add & norm."""
    for hidden, width in ((4, 6), (5, 3)):
        compare(encoded, draw_x(rng, 3, 1, hidden), draw_params(rng, hidden, width), 1)


@points(4)
def test_values(encoded, rng):
    """Gives what PyTorch's layer gives, for any number of heads and words."""
    for batch, seq, hidden, heads in ((1, 3, 4, 1), (2, 5, 6, 2), (3, 4, 12, 3), (2, 2, 4, 4)):
        compare(encoded, draw_x(rng, batch, seq, hidden), draw_params(rng, hidden, 7), heads)
    x = draw_x(rng, 4, 6, 5).transpose(0, 1)
    compare(encoded, x[..., 1:], draw_params(rng, 4, 8), 2)


@points(1.5)
def test_padding(encoded, rng):
    """Padding is not looked at; its own place is computed all the same."""
    for lengths, hidden, heads in (((2, 4), 6, 2), ((5, 1, 3), 8, 4), ((3, 3), 4, 1)):
        x = draw_x(rng, len(lengths), max(lengths), hidden)
        compare(encoded, x, draw_params(rng, hidden, 5), heads, padding(*lengths))
    mask = torch.tensor([[True, False, True, False], [False, True, True, False]])
    compare(encoded, draw_x(rng, 2, 4, 4), draw_params(rng, 4, 5), 2, mask)


def test_eps(encoded, rng):
    """The given eps, added to the variance, in both norms; `1e-12` if none is given."""
    x, params = draw_x(rng, 2, 3, 4), draw_params(rng, 4, 6)
    for eps in (1e-5, 0.3, 2.0):
        compare(encoded, x, params, 2, None, eps)
    # nothing is added to a tiny x, and so eps is no longer small beside its variance
    for name in params:
        if "out_proj" in name or "linear2" in name or name.startswith("norm1"):
            params[name] = params[name] * 0 + (1e-6 if name == "norm1.weight" else 0)
    compare(encoded, x * 1e-6, params, 2)


def test_gradients(encoder_grads, rng):
    """Gradients of `x` and of all twelve tensors."""
    x, params = draw_x(rng, 2, 4, 6), draw_params(rng, 6, 5)
    cotangent, mask = draw_x(rng, 2, 4, 6), padding(4, 2)
    got = encoder_grads.ask(x, params, 2, mask, cotangent).value
    leaves = {name: tensor.clone().requires_grad_() for name, tensor in {"x": x, **params}.items()}
    output = torchs(leaves["x"], {name: leaves[name] for name in params}, 2, mask)
    expected = torch.autograd.grad(output, list(leaves.values()), cotangent)
    for name, gradient in zip(leaves, expected, strict=True):
        with about(*called(x, 2, mask), ("gradient of", name)):
            assert_holds(got[name] is not None, "No gradient arrives.")
            assert_close(got[name], gradient, rtol=1e-6, atol=1e-6, because="float64 sums")


@claimed
def test_products(encoder_products, rng):
    """At most six products, whatever the batch and the heads: queries, keys and values come from one."""
    for batch, heads, lengths in ((2, 3, (4, 2)), (3, 2, (1, 4, 3))):
        x, mask = draw_x(rng, batch, 4, 6), padding(*lengths)
        params = draw_params(rng, 6, 5)
        got = encoder_products.ask(x, params, heads, mask).value
        with about(*called(x, heads, mask)):
            assert_close(got["output"], torchs(x, params, heads, mask), **FLOAT64)
            compared(got["products"], 6)
            if got["products"] > 6:
                rows = (("expected", "6 at most"), ("got", str(got["products"])))
                raise Mismatch("More products of matrices ran than are needed.", rows)


def test_inputs_stay(encoded, rng):
    """`x`, the tensors and the mask are as they were."""
    x, params, mask = draw_x(rng, 2, 4, 6), draw_params(rng, 6, 5), padding(2, 4)
    evidence = encoded.ask(x, params, 2, mask, None)
    assert_close(evidence.value, torchs(x, params, 2, mask), **FLOAT64)
    after = evidence.inputs_after
    assert_holds(torch.equal(after["x"], x), "`x` was changed.")
    assert_holds(torch.equal(after["mask"], mask), "`mask` was changed.")
    assert_equal(sorted(after["params"]), sorted(params), "Names in `params`.")
    for name, tensor in params.items():
        assert_holds(torch.equal(after["params"][name], tensor), f"`params[{name!r}]` was changed.")
