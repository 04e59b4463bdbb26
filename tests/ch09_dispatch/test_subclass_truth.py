"""`Affine8` and `vmap`: their solutions on many random cases, beside int8 tensors and `torch.vmap`."""

import warnings
from functools import partial
from random import Random

import pytest
import torch

from grader.ch09_dispatch.writing_programs import a_view
from tests import references

reference = partial(references.reference, "ch09_dispatch")

STEPS = (
    "x.sum(-1, keepdim=True) + w",
    "x.t()",
    "x.mean(0) * x",
    "x @ x.t() @ x",
    "(x @ w[0])[:, None] - x",
    "x * x[0]",
    "x.view(-1).reshape(4, 4)",
    "torch.where(x > 0, x, w)",
    "x.unsqueeze(0).transpose(0, 1).amax(1)",
    "x[None].expand(2, 4, 4).bmm(w.expand(2, 4, 4)).sum(0)",
    "x.softmax(-1)",
    "torch.cat([x[:2], w[2:]])",
    "x.permute(-1, 0).clamp(max=w)",
    "x.sort(0)[0]",
    "vmap(lambda row: row * x[1] - row.sum(), -1, 1)(x)",
    "vmap(lambda row: x @ row)(w)",
)
"""Functions of a (4, 4) example and a (4, 4) matrix that has no batch."""


def test_vmap():
    vmap, random = reference("vmap"), Random(1)
    generator = torch.Generator().manual_seed(1)
    for number in range(150):
        steps = random.sample(STEPS, random.randint(1, 4))
        batch = torch.randn(random.choice([1, 3, 4]), 4, 4, generator=generator)
        w = torch.randn(4, 4, generator=generator)
        in_dim, out_dim = random.randint(-3, 2), random.randint(-3, 2)
        given = batch.movedim(0, in_dim)
        found = []
        for mapped in (torch.vmap, vmap):
            names = {"torch": torch, "vmap": mapped, "w": w}
            body = "".join(f"\n    x = {step}" for step in steps)
            exec(f"def f(x):{body}\n    return x / x.abs().amax()", names)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found.append(mapped(names["f"], in_dim, out_dim)(given))
        torch.testing.assert_close(
            found[1], found[0], rtol=1e-4, atol=1e-5, msg=f"{number}: {steps}"
        )


def test_torch_vmap_fails_where_a_result_has_no_batch():
    """What the checks of `vmap` work around: should it be mended, they may ask PyTorch again."""
    with pytest.raises(RuntimeError, match="must match the existing size"):
        torch.vmap(lambda x: torch.ones(4, 3), 0, 1)(torch.ones(5))
    assert reference("vmap")(lambda x: torch.ones(4, 3), 0, 1)(torch.ones(5)).shape == (4, 5, 3)


def test_affine8_views_and_writes():
    """Chains of views, of which the last is written: q is what the same chain makes of int8."""
    affine8, random = reference("Affine8"), Random(2)
    scale = torch.tensor(0.5)
    for _ in range(300):
        q = torch.arange(-30, 30).to(torch.int8).view(3, 4, 5)
        names = {"torch": torch, "a": affine8(q.clone(), scale)}
        twin = {"torch": torch, "a": q.clone()}
        last = "a"
        for number in range(random.randint(1, 4)):
            line = a_view(random, {last: twin[last]}, f"t{number}")
            if line is None or "reshape" in line:
                break
            try:
                exec(line, twin)
            except RuntimeError:  # no view of that size
                break
            exec(line, names)
            last = f"t{number}"
        view, expected = names[last], twin[last]
        assert type(view) is affine8
        assert (view.shape, view.stride()) == (expected.shape, expected.stride())
        assert torch.equal(view.q, expected)
        step = random.randint(-120, 120)
        view.add_(step * 0.5)
        expected.copy_((expected.int() + step).clamp(-127, 127))
        assert torch.equal(names["a"].q, twin["a"])
