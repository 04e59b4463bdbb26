// The dims of operands and result under each other: one column per index, whichever way it was written.
//
// An axis is { letter, kind, size, clash }. kind: "batch" in several operands and the result, "free" in one
// and the result, "sum" in several and not in the result, "lone" in one only and summed there.

export const BATCH = "bcdefg";

/** The letters of matmul (or of linear, where B is transposed): [A's, B's, the result's]. 1-D operands lack one. */
export function letters(a, b, weight) {
  if (!a.length || !b.length) {
    const all = [...BATCH].slice(0, a.length + b.length);
    return a.length ? [all, [], all] : [[], all, all];
  }
  const batches = Math.max(a.length, weight ? 0 : b.length, 2) - 2;
  const batch = [...BATCH].slice(0, batches);
  const own = (rank) => (rank > 2 ? batch.slice(batches - (rank - 2)) : []);
  const last = (rank, pair, alone) => (rank > 1 ? pair : [alone]);
  const inA = [...own(a.length), ...last(a.length, ["i", "k"], "k")];
  const inB = [...own(b.length), ...last(b.length, weight ? ["j", "k"] : ["k", "j"], "k")];
  return [inA, inB, [...batch, ...(a.length > 1 ? ["i"] : []), ...(b.length > 1 ? ["j"] : [])]];
}

/** The einsum equation that says the same. */
export const equationOf = ([a, b, out]) => `${a.join("")},${b.join("")}->${out.join("")}`;

/**
 * operands: their letters, in order; out: the result's. order: the columns. batch: letters to which an
 * operand is stretched even where it lacks them. strict: a letter whose sizes must be equal, 1 or not.
 * ghosts: per operand the letter that torch adds for the while, and removes.
 * { axes, rows }: a row is { name, cells }, a cell { letter, state, text }.
 */
export function aligned({ operands, shapes, out, order, batch = [], strict = "", ghosts = [] }) {
  const axes = order.map((letter) => axisOf(letter, operands, shapes, out, batch, strict, ghosts));
  const rows = operands.map((own, operand) => ({
    name: "ABC"[operand],
    cells: axes.map((axis) => ({ letter: axis.letter, ...cellOf(axis, own, shapes[operand], ghosts[operand], batch) })),
  }));
  const result = axes.map((axis) => {
    if (ghosts.includes(axis.letter)) return { letter: axis.letter, state: "dropped", text: "1" };
    if (!out.includes(axis.letter)) return { letter: axis.letter, state: "gone", text: "Σ" };
    return { letter: axis.letter, state: axis.clash ? "clash" : "own", text: axis.clash ? "?" : String(axis.size) };
  });
  return { axes, rows: [...rows, { name: "result", cells: result }] };
}

function axisOf(letter, operands, shapes, out, batch, strict, ghosts) {
  const sizes = operands.flatMap((own, operand) => shapes[operand].filter((_, dim) => own[dim] === letter));
  const holders = operands.filter((own) => own.includes(letter)).length;
  const inOut = out.includes(letter);
  const diagonal = operands.some((own, operand) => new Set(shapes[operand].filter((_, dim) => own[dim] === letter)).size > 1);
  const meant = new Set(letter === strict ? sizes : sizes.filter((size) => size !== 1));
  const several = holders > 1 || batch.includes(letter);
  return {
    letter, clash: meant.size > 1 || diagonal,
    size: sizes.length ? [...meant][0] ?? 1 : 1,
    kind: ghosts.includes(letter) ? "ghost" : inOut ? (several ? "batch" : "free") : holders > 1 ? "sum" : "lone",
  };
}

function cellOf(axis, own, shape, ghost, batch) {
  const sizes = shape.filter((_, dim) => own[dim] === axis.letter);
  if (sizes.length) {
    const state = axis.clash ? "clash" : sizes.length > 1 ? "diagonal" : sizes[0] !== axis.size ? "stretched" : "own";
    return { state, text: state === "stretched" ? `${sizes[0]} → ${axis.size}` : sizes.join(axis.clash ? " ≠ " : " = ") };
  }
  if (axis.letter === ghost) return { state: "ghost", text: "1" };
  if (batch.includes(axis.letter)) return { state: "absent", text: axis.clash ? "" : `→ ${axis.size}` };
  return { state: "none", text: "" };
}
