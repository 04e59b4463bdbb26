// What the page tells of a capture: pure functions of the data, no DOM.

import { CAPTURES } from "./captures.js";

const SETTINGS = 12;
export const BUDGETS = Array.from({ length: 11 }, (_, i) => i / 10);
export const STAGES = ["python", "bytecode", "dynamo", "joint", "partition"];

/** A node as captured is a row; here with names. */
export const nodesOf = (rows) => rows.map(([name, kind, call, reads, size, bytes, line]) => ({ name, kind, call, reads, size, bytes, line }));

/** The reader's own programs, once files of them are open. */
const own = [];

export const programs = () => [...CAPTURES, ...own];

export const programOf = (id) => programs().find((one) => one.id === id);

/** Keep one, beside those from before: they can be come back to. Gives its id. */
export function keepOwn(program) {
  const id = `own${own.length ? own.length + 1 : ""}`;
  own.push({ ...program, id });
  return id;
}

/** Instructions as captured, a line's number before its first, in groups: { line, rows }. */
export function groups(rows) {
  const found = [];
  for (const row of rows) {
    const [line, text] = [Number(row.slice(0, row.indexOf("|"))), row.slice(row.indexOf("|") + 1)];
    if (line || !found.length) found.push({ line, rows: [] });
    found.at(-1).rows.push(text);
  }
  return found;
}

/** The lines of the program that a graph was made of. */
export const linesOf = (rows) => [...new Set(rows.map(([, , , , , , line]) => line).filter(Boolean))].sort((a, b) => a - b);

/** "default", or a budget as text: which entry of `which` it is. */
export const settingAt = (cut) => (cut === "default" ? 0 : 1 + Math.round(Number(cut) * 10));

/** Of a large graph, only the two usual cuts were captured. */
export const hasAllCuts = (frame) => !frame.which.includes(null);

export const cutOf = (frame, cut) => frame.cuts[frame.which[settingAt(cut)] ?? frame.which[SETTINGS - 1]];

/** Bytes of the saved tensors; null where a size is a symbol. */
export function savedBytes(frame, cut) {
  const bytes = cut.saved.map((i) => frame.joint[i][5]);
  return bytes.includes(null) ? null : bytes.reduce((a, b) => a + b, 0);
}

export const redone = (frame, cut) => [...cut.where].flatMap((mark, i) => (mark === "r" ? [frame.joint[i][0]] : []));

/** Which nodes need a tangent: those below one. */
export function late(nodes) {
  const found = new Set();
  nodes.forEach(({ name, kind, reads }, i) => {
    if (kind === "i" ? name.startsWith("tangents") : kind !== "o" && reads.some((from) => found.has(from))) found.add(i);
  });
  return found;
}

/** Neighbouring settings with one result: [first cut, words, cut]. */
export function settings(frame) {
  const rows = [["default", "default_partition", frame.cuts[frame.which[0]]]];
  if (!hasAllCuts(frame)) return [...rows, ["1.0", "min-cut, budget 1.0", frame.cuts[frame.which[SETTINGS - 1]]]];
  let start = 10;
  for (let step = 10; step >= 0; step -= 1) {
    if (step && frame.which[step] === frame.which[step + 1]) continue;
    const range = start === step ? (step / 10).toFixed(1) : `${(start / 10).toFixed(1)} to ${(step / 10).toFixed(1)}`;
    rows.push([(start / 10).toFixed(1), `min-cut, budget ${range}`, frame.cuts[frame.which[step + 1]]]);
    start = step - 1;
  }
  return rows;
}

export const plural = (n, noun) => `${n} ${noun}${n === 1 ? "" : "s"}`;
export const bytesText = (n) => (n === null ? "their bytes depend on a size that changes" : plural(n, "byte").replace(/\B(?=(\d{3})+ )/, ","));
