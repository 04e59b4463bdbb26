"""Compares a device's BF16 and TF32 products with chapter 1's emulation, bit by bit.

    python benchmarks/tensor_cores.py                  # on the GPU; without one it says so
    python benchmarks/tensor_cores.py --device cpu     # BF16 alone, on the processor

Each column of the right factor has one element that is not zero, a power of two. So every product
and every sum is exact in float32, and in bfloat16 too where the left factor is: what differs from
the float32 product is the rounding of the left factor. Half of its elements are ties.

Three roundings are counted: to the nearest with ties to even, as the references `round_to_bf16` and
`round_mantissa` of chapter 1; to the nearest with ties away from zero; towards zero. A fourth row
counts what was not rounded at all. Nothing is said of a device on which this was not run.

On an H100 with torch 2.11 (CUDA 13.0) all 262,144 elements of BF16 and of TF32 were rounded to the
nearest with ties to even; three quarters of them agree with ties away, half with truncation.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import torch

from grader.course.course import Course, read_reference
from grader.submission.program import slice_program

ROOT = Path(__file__).parents[1]
SIZE = 512
"""Rows and columns of both factors: 262,144 roundings, in shapes that tensor cores take."""

KEPT_BITS = {"bf16": 7, "tf32": 10}
"""Bits of the mantissa that are stored."""

Rounding = Callable[[torch.Tensor], torch.Tensor]


def reference(exercise: str) -> Callable[..., torch.Tensor]:
    """Return chapter 1's own solution of `exercise`."""
    chapter = Course(ROOT).chapter("ch01_formats")
    names = [known.id for known in chapter.exercises]
    found: dict[str, Callable[..., torch.Tensor]] = {}
    for label, source in slice_program(exercise, names, read_reference(chapter)).parts:
        exec(compile(source, label, "exec", dont_inherit=True), found)
    return found[exercise]


def roundings(kind: str) -> dict[str, Rounding]:
    """Return functions from float32 to float32 that round to the bits of `kind`, by name."""
    kept = KEPT_BITS[kind]
    mask, half = -(1 << (23 - kept)), 1 << (22 - kept)
    to_bf16, to_mantissa = reference("round_to_bf16"), reference("round_mantissa")
    return {
        "nearest, ties to even": (
            (lambda x: to_bf16(x).float()) if kind == "bf16" else (lambda x: to_mantissa(x, kept))
        ),
        "nearest, ties away": lambda x: ((x.view(torch.int32) + half) & mask).view(torch.float32),
        "truncation": lambda x: (x.view(torch.int32) & mask).view(torch.float32),
        "not rounded": lambda x: x,
    }


def factors(kind: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Return float32 factors (SIZE, SIZE): one to be rounded, half of it ties; one that is exact."""
    generator = torch.Generator().manual_seed(0)
    left = torch.randn(SIZE, SIZE, generator=generator)
    dropped = 23 - KEPT_BITS[kind]
    tie = left.view(torch.int32) & -(1 << dropped) | 1 << (dropped - 1)
    left[::2] = tie.view(torch.float32)[::2]
    powers = 2.0 ** torch.randint(-8, 9, (SIZE,), generator=generator)
    return left, torch.diag(powers)[:, torch.randperm(SIZE, generator=generator)]


def product(kind: str, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Return `left @ right` in float32, computed as `kind` where the two are."""
    if kind == "bf16":
        return (left.bfloat16() @ right.bfloat16()).float()
    before = torch.backends.cuda.matmul.fp32_precision
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    try:
        return left @ right
    finally:
        torch.backends.cuda.matmul.fp32_precision = before


def equal_bits(kind: str, device: str) -> dict[str, int]:
    """Return how many elements of the device's product have the bits that each rounding gives."""
    left, right = factors(kind)
    got = product(kind, left.to(device), right.to(device)).cpu().view(torch.int32)
    return {
        name: int((got == (rounded(left) @ right).view(torch.int32)).sum())
        for name, rounded in roundings(kind).items()
    }


def main(arguments: list[str] | None = None) -> None:
    """Print the counts of each kind of product."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    device = parser.parse_args(arguments).device
    if device == "cuda" and not torch.cuda.is_available():
        sys.stdout.write("No GPU: torch.cuda.is_available() is false. Nothing was run.\n")
        return
    where = torch.cuda.get_device_name() if device == "cuda" else "CPU"
    for kind in ("bf16", "tf32") if device == "cuda" else ("bf16",):
        sys.stdout.write(f"{kind} on {where}, torch {torch.__version__}: equal of {SIZE**2}\n")
        for name, count in equal_bits(kind, device).items():
            sys.stdout.write(f"  {name:22}{count:>8}\n")


if __name__ == "__main__":
    main()
