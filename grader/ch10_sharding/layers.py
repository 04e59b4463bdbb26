"""Two layers and their gradients as one process has them, and each rank's part of them."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from grader import about, assert_close

SUMS = "the same sums in float64, in another order"

CUT_ALONG = {"up": 0, "up_bias": 0, "down": 1}
"""The weights that ranks share out, and the dim of each that is cut. The others are whole."""


def normal(rng: torch.Generator, *shape: int) -> torch.Tensor:
    """Return normal float64 numbers."""
    return torch.randn(shape, generator=rng, dtype=torch.float64)


def weights(rng: torch.Generator, features: int, hidden: int) -> dict[str, torch.Tensor]:
    """Return the weights of two layers, whole."""
    return {
        "up": normal(rng, hidden, features),
        "up_bias": normal(rng, hidden),
        "down": normal(rng, features, hidden),
        "down_bias": normal(rng, features),
    }


def shared_out(whole: dict[str, torch.Tensor], sizes: list[int]) -> list[dict[str, torch.Tensor]]:
    """Return each rank's weights, `sizes` hidden features for each; whole ones for everybody."""
    found: list[dict[str, torch.Tensor]] = [{} for _ in sizes]
    for name, tensor in whole.items():
        pieces = [tensor] * len(sizes)
        if name in CUT_ALONG:
            pieces = list(tensor.split(sizes, CUT_ALONG[name]))
        for mine, piece in zip(found, pieces, strict=True):
            mine[name] = piece.clone()
    return found


def alone(
    x: torch.Tensor, whole: dict[str, torch.Tensor], factor: torch.Tensor
) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """Return output and gradients of two layers in one process."""
    leaves = {name: t.clone().requires_grad_() for name, t in {"x": x, **whole}.items()}
    x, up, up_bias, down, down_bias = leaves.values()
    out = F.linear(F.gelu(F.linear(x, up, up_bias)), down, down_bias)
    grads = torch.autograd.grad((out * factor).sum(), list(leaves.values()))
    return out.detach(), dict(zip(leaves, grads, strict=True))


def assert_gradients(
    found: list[Any],
    expected: list[dict[str, torch.Tensor]],
    names: list[str],
    rows: tuple[Any, ...],
) -> None:
    """Fail unless each rank's gradients of these names are as expected."""
    for name in names:
        for rank, (mine, right) in enumerate(zip(found, expected, strict=True)):
            with about(*rows, of=f"The gradient of `{name}` on rank {rank}. "):
                got = mine["grads"][name]
                assert_close(got, right[name], rtol=1e-9, atol=1e-9, because=SUMS)
