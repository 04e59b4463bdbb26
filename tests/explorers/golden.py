"""Golden vectors for number formats: what torch 2.13 says of patterns, and of FP32 rounded to them.

TF32 has no dtype, and FP8 has no nextafter: those are worked out here in Python's integers.
"""

from __future__ import annotations

from fractions import Fraction

import torch

DTYPES = {
    "fp32": torch.float32,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
    "e4m3fn": torch.float8_e4m3fn,
    "e5m2": torch.float8_e5m2,
    "int8": torch.int8,
}
SHELVES = {8: torch.uint8, 16: torch.uint16, 32: torch.uint32}
WIDTHS = {"fp32": 32, "tf32": 32, "bf16": 16, "fp16": 16, "e4m3fn": 8, "e5m2": 8, "int8": 8}
KINDS = ["zero", "subnormal", "normal", "infinity", "nan", "integer"]
TF32_UNUSED = 13
SEED = 20_13


def fp32_patterns() -> torch.Tensor:
    """FP32 patterns, int64 `(n,)`: every exponent and sign with mantissas around each bit, and random ones.

    A tie of any format, subnormal or not, is a lone bit, or one after an odd bit: all are here.
    """
    bits = range(23)
    around = {(base << k) + d for k in bits for base in (1, 3) for d in (-1, 0, 1)}
    mantissas = torch.tensor(sorted({m & 0x7FFFFF for m in around | {0, 0x7FFFFF, 0x7FFFFE}}))
    tops = torch.arange(512).reshape(-1, 1) << 23
    structured = (tops | mantissas).flatten()
    generator = torch.Generator().manual_seed(SEED)
    return torch.cat([structured, torch.randint(0, 2**32, (50_000,), generator=generator)])


def all_patterns(name: str) -> torch.Tensor:
    """Every pattern of the format, int64; of the 32-bit ones those of `fp32_patterns`."""
    if name == "fp32":
        return fp32_patterns()
    if name == "tf32":
        return fp32_patterns() >> TF32_UNUSED << TF32_UNUSED
    return torch.arange(2 ** WIDTHS[name])


def as_dtype(name: str, patterns: torch.Tensor) -> torch.Tensor:
    """The numbers that these patterns are to torch. TF32 is read as the FP32 that carries it."""
    dtype = DTYPES.get(name, torch.float32)
    return patterns.to(SHELVES[WIDTHS[name]]).view(dtype)


def as_patterns(numbers: torch.Tensor) -> torch.Tensor:
    """Their patterns, int64."""
    return numbers.view(SHELVES[8 * numbers.element_size()]).to(torch.int64)


def values(name: str, patterns: torch.Tensor) -> torch.Tensor:
    """What the patterns are worth, float64 `(n,)`. Exact: every format is a subset of FP32."""
    return as_dtype(name, patterns).to(torch.float32).to(torch.float64)


def kinds(name: str, patterns: torch.Tensor) -> torch.Tensor:
    """Index into KINDS for each pattern, uint8 `(n,)`."""
    value = values(name, patterns)
    found = torch.full(value.shape, KINDS.index("normal"), dtype=torch.uint8)
    if name == "int8":
        found[:] = KINDS.index("integer")
    else:
        tiny = torch.finfo(DTYPES.get(name, torch.float32)).tiny
        found[value.abs() < tiny] = KINDS.index("subnormal")
        found[value.isinf()] = KINDS.index("infinity")
        found[value.isnan()] = KINDS.index("nan")
    found[value == 0] = KINDS.index("zero")
    return found


def rounded(name: str, patterns: torch.Tensor) -> torch.Tensor:
    """The format's pattern for each FP32 pattern, int64 `(n,)`; −1 where INT8 has none, for NaN."""
    numbers = as_dtype("fp32", patterns)
    if name == "tf32":
        return torch.tensor([_tf32(pattern) for pattern in patterns.tolist()])
    if name == "int8":  # as quantize_per_tensor does with scale 1 and zero point 0
        near = numbers.round().clamp(-128, 127).nan_to_num().to(torch.int8)
        return as_patterns(near).where(~numbers.isnan(), torch.tensor(-1))
    return as_patterns(numbers.to(DTYPES[name]))


def _tf32(pattern: int) -> int:
    """To nearest, ties to even, on the FP32 pattern itself."""
    if pattern & 0x7FFFFFFF > 0x7F800000:
        return pattern >> TF32_UNUSED << TF32_UNUSED | 0x400000
    half = (1 << TF32_UNUSED - 1) - 1
    return pattern + half + (pattern >> TF32_UNUSED & 1) >> TF32_UNUSED << TF32_UNUSED


def neighbour(name: str, patterns: torch.Tensor, way: float) -> torch.Tensor:
    """The next pattern towards `way` (±inf), int64 `(n,)`; −1 where there is none."""
    if name == "int8":
        value = values(name, patterns) + (1 if way > 0 else -1)
        inside = (value >= -128) & (value <= 127)
        return (value.to(torch.int64) & 0xFF).where(inside, torch.tensor(-1))
    if name in {"e4m3fn", "e5m2", "tf32"}:
        return torch.tensor([_step(name, pattern, way) for pattern in patterns.tolist()])
    numbers = as_dtype(name, patterns)
    following = torch.nextafter(numbers, torch.tensor(way, dtype=numbers.dtype))
    gone = numbers.isnan() | (numbers == way)
    return as_patterns(following).where(~gone, torch.tensor(-1))


LAST = {"e4m3fn": 0x7E, "e5m2": 0x7C, "tf32": 0x7F800000}  # the largest number, or infinity


def _step(name: str, pattern: int, way: float) -> int:
    """nextafter on the pattern: magnitudes are ordered as their patterns are."""
    sign_bit = 1 << WIDTHS[name] - 1
    unit = 1 << TF32_UNUSED if name == "tf32" else 1
    negative, magnitude = bool(pattern & sign_bit), pattern & sign_bit - 1
    if magnitude > LAST[name]:
        return -1
    if magnitude == 0:
        negative = way < 0
    outward = (way < 0) == negative
    if outward and magnitude == LAST[name]:
        return -1
    return (sign_bit if negative else 0) | magnitude + (unit if outward else -unit)


def nearest_fp32(exact: Fraction) -> int:
    """The FP32 pattern nearest to a fraction, ties to even: rounded once, by comparing neighbours."""
    most = torch.finfo(torch.float32).max
    guess = torch.tensor(float(min(abs(exact), Fraction(most))), dtype=torch.float32)
    middle = int(as_patterns(guess.reshape(1)))

    def worth(pattern: int) -> Fraction:
        # Infinity stands where the next number would: from halfway there, rounding reaches it.
        if pattern == 0x7F800000:
            return Fraction(2) ** 128
        return Fraction(float(values("fp32", torch.tensor([pattern]))))

    near = [p for p in (middle - 1, middle, middle + 1) if 0 <= p <= 0x7F800000]
    best = min(near, key=lambda p: (abs(worth(p) - abs(exact)), p & 1))
    return best | (0x80000000 if exact < 0 else 0)
