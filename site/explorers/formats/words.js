// How the explorer says numbers: exactly, briefly, as a formula, and the steps of a rounding.

import { h } from "../explorer.js";
import { FORMATS, decimal, decode, hex, parse } from "./numbers.js";

const minus = (text) => String(text).replaceAll("-", "−");
const field = (kind, ...shown) => h("span", { class: `ut-of ${kind}` }, shown);

export const power = (n) => ["2", h("sup", {}, minus(n))];

/** At most so many digits; "−" for minus, "∞" for infinity. */
export function approximate(value, digits) {
  if (Object.is(value, -0)) return "−0";
  const short = Number(value.toPrecision(digits));
  const text = Math.abs(short) >= 1e9 ? short.toExponential().replace("e+", "e") : String(short);
  return minus(text).replace("Infinity", "∞");
}

/** The fewest digits that name this FP32, as a person would type it. */
export function shortest(fp32) {
  const { value } = decode(FORMATS.fp32, fp32);
  if (!Number.isFinite(value)) return String(value).replace("inity", "").toLowerCase();
  if (value === 0) return Object.is(value, -0) ? "-0" : "0";
  for (let digits = 1; ; digits += 1) {
    const text = String(Number(value.toPrecision(digits)));
    if (parse(text) === fp32) return text;
  }
}

export function exact({ sign, significand, power, value }) {
  if (significand === undefined) return approximate(value, 3);
  return (sign ? "−" : "") + decimal(significand, power);
}

/** 2^n written out where that is short. */
export const place = (n) => (Math.abs(n) < 25 ? decimal(1, n) : approximate(2 ** n, 6));

export function fraction({ sign, significand, power: n }) {
  const zeros = Math.log2(significand & -significand);
  return [sign ? "−" : "", String(significand / 2 ** zeros), " × ", power(n + zeros)];
}

/** The value from its fields, with the numbers filled in. */
export function formula(format, { kind, sign, exponent, mantissa, significand, power: n }) {
  if (kind === "none") return ["INT8 has no pattern for NaN."];
  if (format.integer) return [field("s", `−128 × ${sign}`), " + ", field("m", mantissa)];
  if (kind === "nan" && format.specials === "fn") return [field("e", "exponent"), " and ", field("m", "mantissa"), " all ones: the only NaN, with either sign. No pattern is left for infinity."];
  if (n === undefined) return [field("e", "exponent all ones"), ", ", field("m", kind === "nan" ? "mantissa not zero" : "mantissa zero")];
  const normal = exponent > 0;
  return [
    field("s", "(−1)", h("sup", {}, sign)), " × ",
    field("e", "2", h("sup", {}, `${normal ? exponent : 1} − ${format.bias}`)), " × ",
    field("m", normal ? "1" : "0", ` + ${mantissa}/${2 ** format.mantissa}`),
    significand ? [" = ", sign ? "−" : "", power(n + format.mantissa), ` × ${decimal(significand, -format.mantissa)}`] : "",
  ];
}

/** Binary digits; a long run of zeros is counted instead of shown. */
const binary = (digits) => h("code", {}, digits.replace(/0{30,}/, (run) => `0…(${run.length} zeros)…0`));

const SIDES = { exact: "nothing", less: "less than half", more: "more than half", tie: "exactly half" };

/** The steps of `round`'s result, each as what a list item holds. */
export function steps(format, { from, bits, overflow, side, up, kept, dropped, shift, quantum, lead, carry, cut }) {
  const pattern = bits === null ? "" : hex(format, bits);
  const end = bits === null ? "" : `${pattern} = ${approximate(decode(format, bits).value, 12)}`;
  const name = format.name;
  if (format === FORMATS.fp32) return ["FP32 into FP32: nothing to round."];
  if (from.kind === "nan") return [bits === null ? "NaN: an integer format has no place for it." : `NaN stays a quiet NaN: ${pattern}.`];
  if (from.kind === "zero") return [["Zero is exact", format.integer ? "; its sign is lost: " : " and keeps its sign: ", end]];
  const limit = decode(format, bits);
  const beyond = limit.kind === "infinity" ? `${name} has infinity: ` : limit.kind === "nan" ? `${name} has no infinity; without saturation: ` : "Saturate: ";
  if (side === undefined) return [[beyond, end]];
  const whole = kept.toString(2).padStart(format.integer ? 1 : format.mantissa + 1, "0");
  const point = format.integer ? whole.length : 1;
  const low = shift ? dropped.toString(2).padStart(shift, "0") : "";
  const tail = whole.slice(point);
  const list = [[
    "Cut ", h("span", { class: "ut-cut" }, binary(whole.slice(0, point) + (tail || format.integer && low ? "." : "") + tail), low ? h("del", {}, binary(low)) : ""),
    format.integer ? " at the point." : [" × ", power(quantum + format.mantissa), ` after ${format.mantissa} bits of mantissa.`],
    !format.integer && lead < 1 - format.bias ? [` Subnormal in ${name}: the exponent stops at `, power(1 - format.bias), "."] : "",
  ]];
  list.push(["Dropped: ", h("b", {}, SIDES[side]), side !== "exact" ? " of the last bit kept." : overflow ? "." : ", so the result is exact."]);
  const odd = kept % 2n === 1n;
  if (side === "tie") list.push([`A tie: the last bit kept is ${odd ? "1, odd: up" : "0, even: stay"}. `, "Ties go to the even neighbour."]);
  else if (side !== "exact") list.push(up ? "Round away from zero: add 1 to the last bit kept." : "Keep what was cut.");
  if (carry) list.push(["The addition carries through the mantissa ", h("b", {}, "into the exponent"), "."]);
  if (overflow) list.push([`Larger than anything ${name} holds. `, beyond, `${pattern}.`]);
  const error = limit.value - from.value;
  list.push([h("b", {}, end), Number.isFinite(error) && error ? [", off by ", approximate(error, 4), ` (${approximate(error / 2 ** quantum, 4)} of a last place).`] : ".",
    up && !overflow ? [" Cutting alone would give ", h("code", {}, hex(format, cut)), "."] : ""]);
  return list;
}
