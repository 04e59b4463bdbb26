"""Checks of `grad_norms`: against norms of all gradients as one float64 vector."""

import math

import pytest
import torch

from grader import (
    Mismatch,
    about,
    assert_close,
    assert_equal,
    assert_holds,
    claimed,
    compared,
    gate,
    points,
)
from grader.ch11_watching.observed import assert_reads, assert_undisturbed

SUMS = "norms in float64, summed in any order; a scale may be a float32"
WORDS = {
    "scaled": "`scaled`, the norm as it is in `.grad`: ",
    "norm": "`norm`, the norm once unscaled: ",
    "clipped": "`clipped`, the norm after clipping: ",
}


@pytest.fixture
def groups(rng):
    return {
        "body": [torch.randn(64, 32, generator=rng), torch.randn(64, generator=rng)],
        "head": [torch.randn(10, 64, generator=rng), torch.randn(10, generator=rng)],
    }


@pytest.fixture
def scale():
    return 1024.0


@pytest.fixture
def max_norm():
    return 0.01


def length(gradients):
    """Return the norm of gradients as one vector, by a sum that neither over- nor underflows."""
    values = [g.double().flatten() for g in gradients if g is not None]
    return math.hypot(*torch.cat(values).tolist()) if values else 0.0


def truth(groups, scale, max_norm):
    scaled = length([g for gradients in groups.values() for g in gradients])
    norm = scaled / scale
    clipped = norm * min(1.0, max_norm / (norm + 1e-6)) if math.isfinite(norm) else math.nan
    each = {name: length(gradients) / scale for name, gradients in groups.items()}
    return {"scaled": scaled, "norm": norm, "clipped": clipped, "groups": each}


def as_text(groups, scale, max_norm):
    told = [
        f"{name}: {', '.join('None' if g is None else str(tuple(g.shape)) for g in gradients)}"
        for name, gradients in groups.items()
    ]
    return f"{'; '.join(told)}; scale {scale:g}, max_norm {max_norm:g}"


def compare(norms, groups, scale, max_norm, keys=("scaled", "norm", "clipped", "groups")):
    got, expected = norms.ask(groups, scale, max_norm).value, truth(groups, scale, max_norm)
    with about(("gradients", as_text(groups, scale, max_norm))):
        for key in keys:
            if key == "groups":
                assert_equal(list(got[key]), list(expected[key]), "The groups' names.")
                mine, true = (list(x[key].values()) for x in (got, expected))
                what = "`groups`, in their order: "
            else:
                mine, true, what = [got[key]], [expected[key]], WORDS[key]
            with about(of=what):
                mine, true = (torch.tensor(x, dtype=torch.float64) for x in (mine, true))
                assert_close(mine, true, rtol=1e-6, atol=0.0, because=SUMS)


@gate
def test_a_dict_of_four(norms):
    """Returns a dict with scaled, norm, clipped and groups; the norms are floats, and not all 0."""
    got = norms.value
    kinds = {k: type(v).__name__ for k, v in got.items()} if isinstance(got, dict) else repr(got)
    expected = {"scaled": "float", "norm": "float", "clipped": "float", "groups": "dict"}
    assert_equal(kinds, expected, "What is returned.")
    kinds = [type(v).__name__ for v in got["groups"].values()]
    assert_equal(kinds, ["float"] * 2, "What is in `groups`.")
    if not got["scaled"] > 0:
        raise Mismatch("Gradients that are not 0 have a norm.", (("got", repr(got["scaled"])),))


@points(2)
def test_norm_of_all(norms, rng, groups):
    """The norm of all gradients as one vector, and that of each group's."""
    compare(norms, groups, 1.0, 1e9, ["scaled", "norm", "groups"])
    compare(norms, {"one": [torch.tensor([3.0])], "two": [torch.tensor([4.0])]}, 1.0, 1e9)
    many = {f"layer {i}": [torch.randn(i, generator=rng)] for i in (1, 5, 2)}
    compare(norms, many, 1.0, 1e9, ["scaled", "norm", "groups"])


@points(2)
def test_scale(norms, groups):
    """What is in `.grad` is scaled; `norm` and the groups are not."""
    for scale in (1024.0, 0.5, 65536.0):
        compare(norms, groups, scale, 1e9)


@points(2)
def test_clipped(norms, groups):
    """The norm that clipping leaves: cut from above, as `clip_grad_norm_` does it."""
    norm = truth(groups, 8.0, 1.0)["norm"]
    for max_norm in (norm / 7, norm * 0.999, norm * 1.001, norm * 7):
        compare(norms, groups, 8.0, max_norm, ["clipped"])
    small = {name: [g * 1e-6 for g in gradients] for name, gradients in groups.items()}
    compare(norms, small, 64.0, 1e-7, ["clipped"])


@points(2)
def test_none(norms, groups):
    """A parameter without a gradient adds nothing; a group without any has the norm 0."""
    compare(norms, groups | {"frozen": [None, None], "empty": []}, 2.0, 1.0)
    compare(norms, {"frozen": [None], **groups, "half": [None, torch.ones(4)]}, 2.0, 1.0)
    compare(norms, {"frozen": [None]}, 2.0, 1.0, ["scaled", "norm", "groups"])


@points(2)
def test_large(norms, rng):
    """Half gradients of 60,000 and float32 gradients of 1e30 have a norm."""
    half = torch.full((30, 7), 60_000.0).half()
    compare(norms, {"half": [half, torch.ones(3)]}, 65536.0, 1.0)
    large = torch.randn(20, generator=rng) * 1e30
    compare(norms, {"large": [large], "bf16": [large.bfloat16()]}, 65536.0, 1e9)
    compare(norms, {"small": [torch.full((9,), 1e-30)], "none": [None]}, 1.0, 1.0)


def test_infinite(norms, groups):
    """Where a gradient is infinite, so are the norms that it is part of, and no others."""
    broken = groups | {"broken": [torch.ones(4), torch.tensor([1.0, math.inf])]}
    compare(norms, broken, 4.0, 1.0, ["scaled", "norm", "groups"])


@claimed
@points(2)
def test_one_read(norms_cost, groups):
    """One read, however many groups and parameters there are."""
    more = {f"{name} {i}": gradients for i in range(3) for name, gradients in groups.items()}
    assert_reads(norms_cost.ask(more, 4.0, 1.0).value["reads"], 1, "by the call")


@claimed
def test_no_copy(norms_cost, groups):
    """No gradient is copied: a new tensor has as many elements as there are parameters, at most."""
    got = norms_cost.value["largest"]
    compared(got)
    most = 8 * 16  # four parameters; room for a few numbers more, in float64
    rows = ("allowed", f"{most} bytes"), ("got", f"{got} bytes")
    assert_holds(got <= most, "A tensor as large as a gradient was made.", *rows)


@gate
def test_the_run_is_the_same(norms_in_a_run):
    """A run whose gradients are looked at is the same to the last bit."""
    assert_undisturbed(norms_in_a_run.value)
