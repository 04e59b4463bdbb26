// How the explorer says numbers.

/** Bytes: exact below 10,000, else in binary units, rounded to some digits. */
export function bytes(n, digits = 3) {
  if (n < 10_000) return `${n.toLocaleString("en")} B`;
  const power = Math.min(Math.floor(Math.log2(n) / 10), 4);
  return `${Number((n / 2 ** (10 * power)).toPrecision(digits)).toLocaleString("en")} ${["", "Ki", "Mi", "Gi", "Ti"][power]}B`;
}

/** A time, with at most two decimals. */
export const time = (t) => String(Math.round(t * 100) / 100);

/** "7B": a number of parameters in short, exact where that is possible. */
export function short(n) {
  for (const [size, unit] of [[1e12, "T"], [1e9, "B"], [1e6, "M"], [1e3, "K"]]) {
    if (n >= size && Number.isInteger(n / size * 100)) return `${n / size}${unit}`;
  }
  return String(n);
}

export const count = (n, noun) => `${n} ${noun}${n === 1 ? "" : "s"}`;
