"""Questions for attention whose scores float32 holds exactly, and the answer in float64."""

import math

import torch

from grader import about, assert_close, whole_numbers

ATOL = 5e-5
"""Scores are sums of products of eighths and so exact, or nearly. Weights and their sums take at
most 80 roundings of 2**-24, values are below 5: 2.4e-5, and as much again for other orders of work.
A wrong mask or a wrong scale is off by a thousand times that."""

LARGE = 0.05
"""The same for scores up to 8192, whose steps are 2**-10. Who carries the logarithm of a sum instead
of a maximum, as some do, rounds by half of that in each of up to 24 blocks. Overflow and underflow
show as NaN, zero or another row's value."""

DOUBLE = 1e-12
"""The same as `ATOL` in float64: 80 roundings of 2**-53 of values below 5 are 4.4e-14. One step in
float32 on the way costs 1e-8."""

BECAUSE = {
    ATOL: "at most 80 roundings of values below 5",
    LARGE: "scores in the thousands",
    DOUBLE: "float64 has sixteen digits",
}


def eighths(rng: torch.Generator, *shape: int) -> torch.Tensor:
    """Multiples of 1/8 from -2 to 2 as float32."""
    return whole_numbers(rng, shape, -16, 16) / 8


def question(
    rng: torch.Generator, lead: tuple[int, ...], queries: int, keys: int, size: int, values: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return q, k and v."""
    return (
        eighths(rng, *lead, queries, size),
        eighths(rng, *lead, keys, size),
        torch.randn(*lead, keys, values, generator=rng).clamp(-4, 4),
    )


def exact(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None = None
) -> torch.Tensor:
    """Return attention in float64; a row with nothing allowed gives zeros. Differentiable."""
    q, k, v = q.double(), k.double(), v.double()
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    allowed = torch.ones(scores.shape, dtype=torch.bool)
    if mask is not None and mask.dtype is torch.bool:
        allowed = mask.expand(scores.shape)
    elif mask is not None:
        allowed = (mask > -math.inf).expand(scores.shape)
        scores = scores + mask.double().clamp(min=-1e300)
    top = scores.masked_fill(~allowed, -1e300).amax(-1, keepdim=True)
    weights = torch.exp((scores - top).masked_fill(~allowed, -1e300))
    weights = weights * allowed
    total = weights.sum(-1, keepdim=True)
    return (weights / torch.where(total == 0, 1.0, total)) @ v


def compare(
    got: object,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: torch.Tensor | None,
    name: str,
    atol: float = ATOL,
) -> None:
    """Compare a result with the exact one, and name the case if it differs."""
    expected = exact(q, k, v, mask).to(q.dtype)
    rows = (
        ("case", name),
        ("q, k, v", f"{tuple(q.shape)}, {tuple(k.shape)}, {tuple(v.shape)}"),
        ("mask", "None" if mask is None else f"{tuple(mask.shape)} {mask.dtype}"),
    )
    with about(*rows):
        assert_close(got, expected, rtol=0.0, atol=atol, because=BECAUSE[atol])


def boolean(rng: torch.Generator, *shape: int) -> torch.Tensor:
    """A boolean mask that leaves every row something to look at."""
    mask = torch.rand(shape, generator=rng) < 0.5
    mask[..., :1] |= ~mask.any(-1, keepdim=True)
    return mask


def additive(mask: torch.Tensor, rng: torch.Generator) -> torch.Tensor:
    """The same mask as floats: -inf where False, finite preferences elsewhere."""
    preference = whole_numbers(rng, mask.shape, -8, 8) / 4
    return preference.masked_fill(~mask, -math.inf)
