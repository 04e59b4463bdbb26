"""The formats explorer computes what torch computes, for every pattern; in a real browser."""

from __future__ import annotations

import math
import random
from decimal import Decimal
from fractions import Fraction

import pytest
import torch
from playwright.sync_api import Page

from tests.explorers import golden
from tests.explorers.harness import Outcome, assert_right, compare

FORMATS = list(golden.WIDTHS)
FLOATS = [name for name in FORMATS if name != "int8"]
# −1 stands for null, any NaN of the format for any other.
SAME = """
  const hex = (n) => n === null ? "null" : "0x" + n.toString(16);
  const same = (f, got, wanted) => (got ?? -1) === wanted
    || wanted >= 0 && got !== null && Number.isNaN(m.decode(f, got).value) && Number.isNaN(m.decode(f, wanted).value);
"""


def ask(page: Page, body: str, **columns: torch.Tensor | list[str]) -> Outcome:
    """Compare in the page; integers travel as float64."""
    sent = {
        name: column.double()
        if isinstance(column, torch.Tensor) and column.dtype == torch.int64
        else column
        for name, column in columns.items()
    }
    return compare(page, "/formats/numbers.js", SAME + body, **sent)


def how_many(name: str) -> int:
    """Every pattern of a small format, tens of thousands of a large one."""
    return 2 ** golden.WIDTHS[name] if golden.WIDTHS[name] < 32 else 50_000


@pytest.mark.parametrize("name", FORMATS)
def test_decodes_as_torch_does(laboratory: Page, name: str) -> None:
    patterns = golden.all_patterns(name)
    outcome = ask(
        laboratory,
        f"""const f = m.FORMATS.{name};
        const kinds = {golden.KINDS};
        return (i) => {{
          const d = m.decode(f, given.bits[i]);
          const rebuilt = d.power === undefined || Math.abs(d.value) === d.significand * 2 ** d.power;
          return Object.is(d.value, given.value[i]) && d.kind === kinds[given.kind[i]] && rebuilt ? null
            : `${{hex(given.bits[i])}}: ${{d.kind}} ${{d.value}}, not ${{kinds[given.kind[i]]}} ${{given.value[i]}}`;
        }};""",
        bits=patterns,
        value=golden.values(name, patterns),
        kind=golden.kinds(name, patterns),
    )
    assert_right(outcome, how_many(name))


ROUNDS = """return (i) => {
  const got = m.round(f, given.bits[i], saturate).bits;
  return same(f, got, given.wanted[i]) ? null : `${hex(given.bits[i])}: ${hex(got)}, not ${hex(given.wanted[i])}`;
};"""


@pytest.mark.parametrize("name", FORMATS)
def test_rounds_as_torch_does(laboratory: Page, name: str) -> None:
    patterns = golden.fp32_patterns()
    if name == "e4m3fn":
        # How torch converts ±inf has differed between its vector and scalar paths: tested below.
        patterns = patterns[golden.values("fp32", patterns).isinf().logical_not()]
    body = f"const f = m.FORMATS.{name}; const saturate = true; {ROUNDS}"
    wanted = golden.rounded(name, patterns)
    assert_right(ask(laboratory, body, bits=patterns, wanted=wanted), 100_000)


def test_e4m3fn_saturates_infinity(laboratory: Page) -> None:
    patterns, wanted = torch.tensor([0x7F800000, 0xFF800000]), torch.tensor([0x7E, 0xFE])
    body = f"const f = m.FORMATS.e4m3fn; const saturate = true; {ROUNDS}"
    assert_right(ask(laboratory, body, bits=patterns, wanted=wanted), 2)


def test_e4m3fn_without_saturation_overflows_to_nan(laboratory: Page) -> None:
    """464 is halfway from 448 to where 480 would be, and 448 is even: NaN begins above it."""
    patterns = golden.fp32_patterns()
    value = golden.values("fp32", patterns)
    wanted = golden.rounded("e4m3fn", patterns).where(value.abs() <= 464, torch.tensor(0x7F))
    assert {448.0, 464.0, 480.0} & set(value[value.abs() < 500].tolist())
    body = f"const f = m.FORMATS.e4m3fn; const saturate = false; {ROUNDS}"
    assert_right(ask(laboratory, body, bits=patterns, wanted=wanted), 100_000)


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "fp32"])
def test_steps_agree_with_the_result(laboratory: Page, name: str) -> None:
    """What is said of the dropped bits, of the cut and of a tie is true of the numbers."""
    body = f"""const f = m.FORMATS.{name};
      return (i) => {{
        const r = m.round(f, given.bits[i]);
        if (r.side === undefined) return null;
        const x = Math.abs(r.from.value), last = 2 ** r.quantum;
        const most = Math.abs(m.decode(f, m.extreme(f, r.from.sign)).value);
        if (r.overflow !== (Number(r.kept) + r.up) * last > most) return `${{hex(given.bits[i])}}: overflow ${{r.overflow}}`;
        if (r.overflow) return null;
        const cut = Math.abs(m.decode(f, r.cut).value), out = Math.abs(m.decode(f, r.bits).value);
        // All of these are exact in Float64.
        const rest = (x - cut) / last;
        const side = rest === 0 ? "exact" : rest < 0.5 ? "less" : rest > 0.5 ? "more" : "tie";
        const right = rest >= 0 && rest < 1 && side === r.side && r.dropped * 2 ** r.from.power === x - cut
          && Number(r.kept) * last === cut && out === cut + (r.up ? last : 0)
          && (side !== "tie" || (out / last) % 2 === 0) && (side === "more") <= r.up && (side !== "less" || !r.up)
          && r.carry === (!f.integer && r.up && out / last === 2 ** (f.mantissa + 1));
        return right ? null : `${{hex(given.bits[i])}}: ${{r.side}}, ${{rest}} of a last place`;
      }};"""
    assert_right(ask(laboratory, body, bits=golden.fp32_patterns()), 100_000)


@pytest.mark.parametrize("name", FORMATS)
def test_neighbours_are_nextafter(laboratory: Page, name: str) -> None:
    patterns = golden.all_patterns(name)
    outcome = ask(
        laboratory,
        f"""const f = m.FORMATS.{name};
        return (i) => {{
          const {{ below, above }} = m.neighbours(f, given.bits[i]);
          return (below ?? -1) === given.below[i] && (above ?? -1) === given.above[i] ? null
            : `${{hex(given.bits[i])}}: ${{hex(below)}} and ${{hex(above)}}, not ${{hex(given.below[i])}} and ${{hex(given.above[i])}}`;
        }};""",
        bits=patterns,
        below=golden.neighbour(name, patterns, -math.inf),
        above=golden.neighbour(name, patterns, math.inf),
    )
    assert_right(outcome, how_many(name))


@pytest.mark.parametrize("name", FLOATS)
def test_spacing_is_the_step_away_from_zero(laboratory: Page, name: str) -> None:
    patterns = golden.all_patterns(name)
    value = golden.values(name, patterns)
    outward = torch.where(
        patterns < 2 ** (golden.WIDTHS[name] - 1),
        golden.neighbour(name, patterns, math.inf),
        golden.neighbour(name, patterns, -math.inf),
    )
    following = golden.values(name, outward.clamp(min=0))
    step = (following - value).abs()
    # The step beyond the largest number is the one before it: same exponent.
    known = value.isfinite() & (outward >= 0) & following.isfinite()
    outcome = ask(
        laboratory,
        f"""const f = m.FORMATS.{name};
        return (i) => {{
          const got = m.spacing(f, given.bits[i]);
          return 2 ** got === given.step[i] ? null : `${{hex(given.bits[i])}}: 2^${{got}}, not ${{given.step[i]}}`;
        }};""",
        bits=patterns[known],
        step=step[known],
    )
    assert_right(outcome, how_many(name) * 9 // 10 if name != "e5m2" else 240)
    nowhere = ask(
        laboratory,
        f"return (i) => m.spacing(m.FORMATS.{name}, given.bits[i]) === null ? null : hex(given.bits[i]);",
        bits=patterns[~value.isfinite()],
    )
    assert_right(nowhere, 2)


@pytest.mark.parametrize("name", FORMATS)
def test_widens_to_the_same_value(laboratory: Page, name: str) -> None:
    patterns = golden.all_patterns(name)
    wanted = golden.as_patterns(golden.as_dtype(name, patterns).to(torch.float32))
    body = f"""return (i) => {{
      const got = m.widen(m.FORMATS.{name}, given.bits[i]);
      return same(m.FORMATS.fp32, got, given.wanted[i]) ? null : `${{hex(given.bits[i])}}: ${{hex(got)}}`;
    }};"""
    assert_right(ask(laboratory, body, bits=patterns, wanted=wanted), how_many(name))


@pytest.mark.parametrize("name", FORMATS)
def test_decimals_are_exact(laboratory: Page, name: str) -> None:
    patterns = golden.all_patterns(name)
    patterns = patterns[golden.values(name, patterns).isfinite()]
    patterns = patterns[:: max(1, len(patterns) // 8_000)]
    written = [_plain(abs(value)) for value in golden.values(name, patterns).tolist()]
    body = f"""return (i) => {{
      const d = m.decode(m.FORMATS.{name}, given.bits[i]);
      const got = m.decimal(d.significand, d.power);
      return got === given.written[i] ? null : `${{hex(given.bits[i])}}: ${{got}}, not ${{given.written[i]}}`;
    }};"""
    outcome = ask(laboratory, body, bits=patterns, written=written)
    assert_right(outcome, min(how_many(name), 8_000) * 9 // 10)


def _plain(value: float) -> str:
    """All decimal digits of a float, as few as are exact."""
    digits = format(Decimal(value), "f")
    return digits.rstrip("0").rstrip(".") if "." in digits else digits


def test_typed_decimals_are_rounded_once(laboratory: Page) -> None:
    """Python's own float, then float32, rounds twice: the texts near halfway show it."""
    source = random.Random(golden.SEED)
    texts = ["0", "-0", "0.1", ".5", "5.", "1e-45", "7e-46", "7.1e-46", "3.4028235677973366e38"]
    texts += ["3.4028235677973365e38", "1e400", "-1e400", "1e-400", "16777217", "1_000", "−2", "+3"]
    for _ in range(1_500):
        pattern = source.randrange(0x7F7FFFFF)
        low, high = golden.values("fp32", torch.tensor([pattern, pattern + 1])).tolist()
        halfway = _plain(low + (high - low) / 2)  # exact: one bit more than FP32 has
        if len(halfway) <= 70:
            more = halfway + ("" if "." in halfway else ".")
            texts += [halfway, more + "0000000000000001", "-" + halfway]
        texts.append(f"{source.uniform(-10, 10):.12g}e{source.randrange(-48, 40)}")
    plain = [text.replace("−", "-") for text in texts]
    wanted = [golden.nearest_fp32(Fraction(text)) for text in plain]
    wanted[1] |= 0x80000000  # a Fraction has no −0
    wanted = [
        w | 0x80000000 if text.startswith("-") else w for w, text in zip(wanted, plain, strict=True)
    ]
    body = """return (i) => {
      const got = m.parse(given.text[i]);
      return got === given.wanted[i] ? null : `${given.text[i]}: ${hex(got)}, not ${hex(given.wanted[i])}`;
    };"""
    outcome = ask(laboratory, body, text=texts, wanted=torch.tensor(wanted))
    assert_right(outcome, 2_000)
    twice = [
        int(golden.as_patterns(torch.tensor([float(text)]).to(torch.float32))) for text in plain
    ]
    assert twice != wanted, "no text here would catch rounding twice"


def test_what_is_no_number_is_refused(laboratory: Page) -> None:
    texts = ["", " ", ".", "e5", "1e", "0x", "0x123456789", "0xg", "--1", "1.2.3", "1e9999999", "π"]
    body = "return (i) => m.parse(given.text[i]) === null ? null : given.text[i];"
    assert_right(ask(laboratory, body, text=texts), len(texts))
