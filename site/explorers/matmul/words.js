// How the explorer says numbers and names kinds.

const PREFIXES = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"]];

/** "2,147,483,648 ≈ 2.15 G": exact as long as a Number is, and rounded where that helps. */
export function count(n) {
  const [size, prefix] = PREFIXES.find(([least]) => n >= least) ?? [];
  const exact = n <= Number.MAX_SAFE_INTEGER ? n.toLocaleString("en") : "";
  return prefix ? `${exact} ≈ ${Number((n / size).toPrecision(3))} ${prefix}` : exact;
}

/** Exact below 10,000 bytes. */
export function bytes(n) {
  if (n < 10_000) return `${n.toLocaleString("en")} B`;
  for (const [size, unit] of [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]]) {
    if (n >= size) return `${n % size ? "≈ " : ""}${Number((n / size).toPrecision(3))} ${unit}`;
  }
  return "";
}

/** Bytes of an element. */
export const DTYPES = { float64: 8, float32: 4, bfloat16: 2, float16: 2 };

export const ratio = (value) => (Number.isFinite(value) ? String(Number(value.toPrecision(3))) : "none");

/** What a kind of axis is called, what it means, and the class of its colour and line. */
export const KINDS = {
  batch: { name: "batch", look: "e", says: "in several operands and in the result: one product for each" },
  free: { name: "free", look: "m", says: "in one operand and in the result" },
  sum: { name: "contracted", look: "s", says: "in several operands, not in the result: multiplied and added up" },
  lone: { name: "summed", look: "u", says: "in one operand, not in the result: added up by itself" },
  ghost: { name: "promoted", look: "u", says: "a 1-D operand counts as a matrix of one row, or one column; the result lacks that dim" },
};

/** "…0" as it is shown. */
export const letterOf = (name) => (name.startsWith("…") ? `…${"₀₁₂₃₄₅"[name[1]]}` : name);
