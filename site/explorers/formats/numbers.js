// What a pattern of bits means in each format, and how an FP32 becomes one. Pure and exact, no DOM.
//
// A pattern is a Number holding an unsigned integer. A finite value is ±significand × 2^power with
// an integer significand below 2^24, so a Float64 holds every value here without error.

/**
 * exponent, mantissa: how many bits. unused: low bits that the format ignores (TF32 lives in an FP32).
 * specials: "ieee" the top exponent means infinity and NaN; "fn" only the last pattern is NaN.
 */
const float = (id, name, dtype, exponent, mantissa, specials = "ieee", unused = 0) => ({
  id, name, dtype, exponent, mantissa, specials, unused,
  width: 1 + exponent + mantissa + unused,
  bias: 2 ** (exponent - 1) - 1,
});

export const FORMATS = Object.fromEntries([
  float("fp32", "FP32", "torch.float32", 8, 23),
  float("tf32", "TF32", "", 8, 10, "ieee", 13),
  float("bf16", "BF16", "torch.bfloat16", 8, 7),
  float("fp16", "FP16", "torch.float16", 5, 10),
  float("e4m3fn", "FP8 e4m3fn", "torch.float8_e4m3fn", 4, 3, "fn"),
  float("e5m2", "FP8 e5m2", "torch.float8_e5m2", 5, 2),
  { id: "int8", name: "INT8", dtype: "torch.int8", integer: true, exponent: 0, mantissa: 7, unused: 0, width: 8 },
].map((format) => [format.id, format]));

const FP32 = FORMATS.fp32;

/** The pattern without its sign and without its unused bits. */
const magnitudeOf = (format, bits) => (bits % 2 ** (format.width - 1) - (bits % 2 ** format.unused)) / 2 ** format.unused;

const assemble = (format, sign, magnitude) => sign * 2 ** (format.width - 1) + magnitude * 2 ** format.unused;

/** The magnitude of the largest finite number; every greater one is infinity or NaN. */
function largest(format) {
  if (format.integer) return 127;
  const end = 2 ** (format.exponent + format.mantissa);
  return end - (format.specials === "fn" ? 2 : 2 ** format.mantissa + 1);
}

/** A NaN of this format: quiet, with the sign that came, without payload. */
function nan(format, sign) {
  const end = 2 ** (format.exponent + format.mantissa);
  return assemble(format, sign, end - (format.specials === "fn" ? 1 : 2 ** (format.mantissa - 1)));
}

/** The same pattern with the bits cleared that the format does not have. */
export const canonical = (format, bits) => bits % 2 ** format.width - (bits % 2 ** format.unused);

export const hex = (format, bits) => "0x" + bits.toString(16).padStart(format.width / 4, "0");

/** kind, the three fields, and the value; also significand and power where the value is finite. */
export function decode(format, bits) {
  const sign = Math.floor(bits / 2 ** (format.width - 1));
  const magnitude = magnitudeOf(format, bits);
  if (format.integer) {
    const value = magnitude - 128 * sign;
    return { kind: value ? "integer" : "zero", sign, mantissa: magnitude, significand: Math.abs(value), power: 0, value };
  }
  const mantissa = magnitude % 2 ** format.mantissa;
  const exponent = (magnitude - mantissa) / 2 ** format.mantissa;
  const fields = { sign, exponent, mantissa };
  if (magnitude > largest(format)) {
    const infinite = format.specials === "ieee" && mantissa === 0;
    return { ...fields, kind: infinite ? "infinity" : "nan", value: infinite ? (sign ? -Infinity : Infinity) : NaN };
  }
  const significand = mantissa + (exponent ? 2 ** format.mantissa : 0);
  const power = Math.max(exponent, 1) - format.bias - format.mantissa;
  const kind = exponent ? "normal" : mantissa ? "subnormal" : "zero";
  return { ...fields, kind, significand, power, value: (sign ? -1 : 1) * significand * 2 ** power };
}

/** The power of two of the last place: the step to the next number away from zero. Or null. */
export const spacing = (format, bits) => decode(format, bits).power ?? null;

/** The next pattern down and up in value, each null where there is none; −0 counts as 0. */
export function neighbours(format, bits) {
  const { kind, sign, value } = decode(format, bits);
  if (kind === "nan") return { below: null, above: null };
  if (format.integer) {
    return { below: value > -128 ? (bits + 255) % 256 : null, above: value < 127 ? (bits + 1) % 256 : null };
  }
  const magnitude = magnitudeOf(format, bits);
  const end = largest(format) + (format.specials === "ieee" ? 1 : 0);
  const outward = (way) => (magnitude < end ? assemble(format, way, magnitude + 1) : null);
  if (magnitude === 0) return { below: outward(1), above: outward(0) };
  const inward = assemble(format, sign, magnitude - 1);
  return sign ? { below: outward(1), above: inward } : { below: inward, above: outward(0) };
}

/** ±1 for the largest finite number, as a pattern; saturation ends there. */
export const extreme = (format, sign) => (format.integer && sign ? 128 : assemble(format, sign, largest(format)));

const bitLength = (n) => n.toString(2).length;

/** The fraction significand × 2^power as a pair of BigInts. */
function fraction(significand, power) {
  const n = BigInt(significand);
  return power < 0 ? [n, 1n << BigInt(-power)] : [n << BigInt(power), 1n];
}

/**
 * ±n/d to the nearest pattern, ties to even; n and d are positive BigInts.
 * lead: n/d lies in [2^lead, 2^(lead+1)). quantum: the power of two of the last place kept.
 * kept counts those places; rest of d is what is left over.
 */
function nearest(format, sign, n, d, saturate) {
  let lead = bitLength(n) - bitLength(d);
  if (lead < 0 ? n << BigInt(-lead) < d : n < d << BigInt(lead)) lead -= 1;
  const floor = format.integer ? 0 : Math.max(lead, 1 - format.bias);
  const quantum = format.integer ? 0 : floor - format.mantissa;
  if (quantum < 0) n <<= BigInt(-quantum);
  else d <<= BigInt(quantum);
  const kept = n / d;
  const rest = n % d;
  const side = rest === 0n ? "exact" : 2n * rest < d ? "less" : 2n * rest > d ? "more" : "tie";
  const up = side === "more" || (side === "tie" && kept % 2n === 1n);
  // A carry out of the mantissa is an addition to the exponent: the fields lie side by side.
  const base = format.integer ? 0 : (floor + format.bias - 1) * 2 ** format.mantissa;
  const magnitude = (above) => base + Number(kept) + above;
  const overflow = magnitude(up ? 1 : 0) > largest(format) + (format.integer ? sign : 0);
  const pattern = (m) => {
    if (m <= largest(format)) return format.integer ? (sign ? (256 - m) % 256 : m) : assemble(format, sign, m);
    return beyond(format, sign, saturate);
  };
  return {
    lead, quantum, kept, side, up, overflow,
    carry: up && !format.integer && kept === 2n ** BigInt(format.mantissa + 1) - 1n,
    cut: pattern(magnitude(0)), bits: pattern(magnitude(up ? 1 : 0)),
  };
}

/** What a number too large for the format becomes. */
function beyond(format, sign, saturate) {
  if (format.integer || (format.specials === "fn" && saturate)) return extreme(format, sign);
  if (format.specials === "fn") return nan(format, sign);
  return assemble(format, sign, largest(format) + 1);
}

/**
 * An FP32 pattern rounded to the format, with the evidence of each step.
 * bits is null where the format has nothing to give (INT8 for NaN). side is what was dropped,
 * against half of the last place: "exact", "less", "tie", "more". shift: how many bits were dropped.
 * cut: the pattern that truncation would have given. e4m3fn alone heeds `saturate`.
 */
export function round(format, input, saturate = true) {
  const from = decode(FP32, input);
  const { kind, sign, significand, power } = from;
  if (format === FP32) return { from, bits: input };
  if (kind === "nan") return { from, bits: format.integer ? null : nan(format, sign) };
  if (kind === "infinity") return { from, bits: beyond(format, sign, saturate), overflow: true };
  if (kind === "zero") return { from, bits: format.integer ? 0 : assemble(format, sign, 0) };
  const result = nearest(format, sign, ...fraction(significand, power), saturate);
  const shift = Math.max(0, result.quantum - power);
  const dropped = significand % 2 ** Math.min(shift, 24);
  return { from, shift, dropped, ...result };
}

/** The FP32 pattern of the same value; every format here is a subset of FP32. */
export function widen(format, bits) {
  const { kind, sign, significand, power } = decode(format, bits);
  if (kind === "nan") return nan(FP32, sign);
  if (kind === "infinity") return assemble(FP32, sign, largest(FP32) + 1);
  if (kind === "zero") return assemble(FP32, format.integer ? 0 : sign, 0);
  return nearest(FP32, sign, ...fraction(significand, power)).bits;
}

/**
 * The FP32 pattern nearest to what was typed, or null: a decimal, inf, nan, or 0x and a pattern.
 * Rounds once, from the decimal itself: going through a Float64 would round twice.
 */
export function parse(text) {
  const typed = text.trim().toLowerCase().replace("−", "-").replaceAll("_", "");
  if (/^0x[0-9a-f]{1,8}$/.test(typed)) return parseInt(typed, 16);
  const [, signed, word, whole = "", part = "", ten = "0"] =
    /^([+-]?)(?:(inf(?:inity)?|nan)|(?=\.?\d)(\d*)\.?(\d*)(?:e([+-]?\d{1,6}))?)$/.exec(typed) ?? [];
  if (signed === undefined) return null;
  const sign = signed === "-" ? 1 : 0;
  if (word) return word === "nan" ? nan(FP32, sign) : assemble(FP32, sign, largest(FP32) + 1);
  const n = BigInt(whole + part);
  const exponent = Number(ten) - part.length;
  const digits = String(n).length + exponent;
  if (n === 0n || digits < -50) return assemble(FP32, sign, 0);
  if (digits > 50) return assemble(FP32, sign, largest(FP32) + 1);
  const scale = 10n ** BigInt(Math.abs(exponent));
  return nearest(FP32, sign, exponent < 0 ? n : n * scale, exponent < 0 ? scale : 1n).bits;
}

/** significand × 2^power written out: all digits, no rounding. */
export function decimal(significand, power) {
  const n = BigInt(significand);
  if (power >= 0) return String(n << BigInt(power));
  const digits = String(n * 5n ** BigInt(-power)).padStart(1 - power, "0");
  return `${digits.slice(0, power)}.${digits.slice(power)}`.replace(/\.?0+$/, "");
}
