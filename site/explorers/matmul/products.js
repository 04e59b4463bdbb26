// What dot, mv, mm, bmm, matmul and linear make of two shapes: the result or the reason against it, and
// the kernel that matmul comes down to. As torch 2.13 does on CPU, for contiguous operands.

import { broadcast, contiguous, expand, isContiguous, numel, reshape, touched, transposed, written } from "./views.js";

const dims = (shape) => `${shape.length}-D`;
const list = (shape) => `[${shape.join(", ")}]`;

/** A refusal: `why` in our words, `said` in torch's. `kind` is "rank", "sum" or "batch". */
const no = (kind, why, said) => ({ kind, why, said });
const yes = (shape, why = "") => ({ shape, why });

function dot(a, b) {
  if (a.length !== 1 || b.length !== 1) {
    return no("rank", `takes two vectors; these are ${dims(a)} and ${dims(b)}`, `1D tensors expected, but got ${a.length}D and ${b.length}D tensors`);
  }
  if (a[0] === b[0]) return yes([]);
  return no("sum", `takes vectors of one length; these have ${a[0]} and ${b[0]} numbers`,
    `inconsistent tensor size, expected tensor ${list(a)} and src ${list(b)} to have the same number of elements, but got ${a[0]} and ${b[0]} elements respectively`);
}

function mv(a, b) {
  if (a.length === 0) return no("rank", "takes a matrix and a vector; A is 0-D", "Dimension specified as 0 but tensor has no dimensions");
  if (a.length !== 2 || b.length !== 1) {
    return no("rank", `takes a matrix and a vector; these are ${dims(a)} and ${dims(b)}`, `vector + matrix @ vector expected, got 1, ${a.length}, ${b.length}`);
  }
  if (a[1] === b[0]) return yes([a[0]]);
  return no("sum", `a row of A has ${a[1]} numbers, B has ${b[0]}`, `size mismatch, got input (${a[0]}), mat (${a[0]}x${a[1]}), vec (${b[0]})`);
}

function mm(a, b) {
  if (a.length !== 2) return no("rank", `takes two matrices; A is ${dims(a)}`, "self must be a matrix");
  if (b.length !== 2) return no("rank", `takes two matrices; B is ${dims(b)}`, "mat2 must be a matrix");
  if (a[1] === b[0]) return yes([a[0], b[1]]);
  return no("sum", `a row of A has ${a[1]} numbers, a column of B has ${b[0]}`, `mat1 and mat2 shapes cannot be multiplied (${a[0]}x${a[1]} and ${b[0]}x${b[1]})`);
}

function bmm(a, b) {
  if (a.length !== 3) return no("rank", `takes two 3-D tensors; A is ${dims(a)}`, "batch1 must be a 3D tensor");
  if (b.length !== 3) return no("rank", `takes two 3-D tensors; B is ${dims(b)}`, "batch2 must be a 3D tensor");
  if (a[0] === b[0] && a[2] === b[1]) return yes([a[0], a[1], b[2]]);
  const said = `Expected size for first two dimensions of batch2 tensor to be: ${list([a[0], a[2]])} but got: ${list(b.slice(0, 2))}.`;
  if (a[2] !== b[1]) return no("sum", `a row of A has ${a[2]} numbers, a column of B has ${b[1]}`, said);
  return no("batch", `does not broadcast: the batches must be equal, these are ${a[0]} and ${b[0]}`, said);
}

// ── matmul: which kernel, and what is done before and after it ──

const KERNELS = { dot, mv, mm, bmm };

/** Shapes of the kernel's operands as { batch, m, k, n }. */
const SIZES = {
  dot: (a) => ({ batch: 1, m: 1, k: a[0], n: 1 }),
  mv: (a) => ({ batch: 1, m: a[0], k: a[1], n: 1 }),
  mm: (a, b) => ({ batch: 1, m: a[0], k: a[1], n: b[1] }),
  bmm: (a, b) => ({ batch: a[0], m: a[1], k: a[2], n: b[2] }),
};

/** Whether the dims of the larger operand but its last are folded into rows; `small` has 1 or 2 dims. */
function folds(large, small, first) {
  if (large.shape.length < 3 || small.shape.length > 2) return false;
  if (small.grad) return true; // else its gradient would need a batch of its own, summed afterwards
  if (first.shape.length === 2) return false;
  if (numel(large.shape) === 0) return true;
  return large.shape.slice(0, -2).every((_, dim) => large.strides[dim] === large.strides[dim + 1] * large.shape[dim + 1]);
}

const step = (on, op, view, more = {}) => ({ on, op, shape: view.shape, ...more });

const copied = (on, view) => step(on, "clone()", view, { copy: { on, elements: numel(view.shape), read: touched(view) } });

/** expand, then reshape; the steps say whether that is free. */
function fit(on, view, batch, last, steps) {
  const wide = expand(view, [...batch, ...view.shape.slice(-last.length)]);
  const stretched = numel(wide.shape) !== numel(view.shape);
  if (stretched) steps.push(step(on, `expand${written(wide.shape)}`, wide, { free: true }));
  const to = [numel(batch), ...last];
  const flat = reshape(wide, to);
  if (flat.copied) steps.push(copied(on, wide));
  if (to.length !== wide.shape.length || to.some((size, dim) => size !== wide.shape[dim])) {
    steps.push(step(on, `view${written(to)}`, flat, { free: true }));
  }
  return flat;
}

/**
 * matmul(A, B) for two views; one that needs a gradient has `grad`. { shape, kernel, operands, steps, … } or a refusal.
 * operands: the kernel's own, as views. steps: what happens in order; each is free, a copy, or the kernel.
 */
export function matmul(a, b, name = "matmul") {
  const [x, y] = [a.shape, b.shape];
  if (!x.length || !y.length) {
    return no("rank", `needs at least 1-D; ${x.length ? "B" : "A"} is 0-D. A single number is multiplied with *`,
      `both arguments to ${name} need to be at least 1D, but they are ${x.length}D and ${y.length}D`);
  }
  const steps = [];
  const run = (kernel, left, right, shape, swapped = false) => {
    const outcome = KERNELS[kernel](left.shape, right.shape);
    if (!outcome.shape) return { ...outcome, why: contraction(x, y) ?? outcome.why };
    const sizes = SIZES[kernel](left.shape, right.shape);
    steps.push(step("", swapped ? `${kernel}(B, A)` : `${kernel}(A, B)`, outcome, {
      kernel, flops: 2 * sizes.batch * sizes.m * sizes.k * sizes.n, read: touched(left) + touched(right), write: numel(outcome.shape),
    }));
    return { kernel, operands: [left, right], ...sizes, steps, shape, made: outcome.shape };
  };
  if (x.length === 1 && y.length === 1) return run("dot", a, b, []);
  if (x.length === 2 && y.length === 1) return run("mv", a, b, [x[0]]);
  if (x.length === 1 && y.length === 2) {
    const row = { shape: [1, x[0]], strides: [x[0], 1] };
    steps.push(step("A", "unsqueeze(0)", row, { free: true }));
    const plan = run("mm", row, b, [y[1]]);
    if (plan.shape) steps.push(step("", "squeeze_(0)", plan, { free: true }));
    return plan;
  }
  if (x.length === 2 && y.length === 2) return run("mm", a, b, [x[0], y[1]]);

  if (x.length === 3 && y.length === 3 && x[0] !== y[0]) {
    for (const [on, one] of [["A", a], ["B", b]]) {
      if (one.shape[0] !== 1 || !one.grad) continue;
      const flat = { shape: one.shape.slice(1), strides: one.strides.slice(1), grad: true };
      const plan = on === "A" ? matmul(flat, b) : matmul(a, flat);
      return plan.shape ? { ...plan, steps: [step(on, "squeeze(0)", flat, { free: true }), ...plan.steps] } : plan;
    }
  }
  const left = x.length >= y.length;
  const [large, small] = left ? [a, b] : [transposed(b), a];
  if (folds(large, small, a)) {
    const on = left ? "A" : "B";
    if (!left) steps.push(step(on, "mT", large, { free: true }));
    const rows = reshape(large, [numel(large.shape.slice(0, -1)), large.shape.at(-1)]);
    if (rows.copied) steps.push(copied(on, large));
    steps.push(step(on, `view${written(rows.shape)}`, rows, { free: true }));
    const matrix = small.shape.length === 2;
    const second = matrix && !left ? transposed(small) : small;
    if (second !== small) steps.push(step("A", "t()", second, { free: true }));
    const made = [...large.shape.slice(0, -1), ...(matrix ? [second.shape[1]] : [])];
    const turned = transposed(contiguous(made));
    const back = matrix && !left;
    const plan = run(matrix ? "mm" : "mv", rows, second, back ? turned.shape : made, !left);
    if (plan.shape) steps.push(step("", `view${written(made)}`, { shape: made }, { free: true }));
    if (plan.shape && back) steps.push(step("", "mT", turned, { free: true }));
    if (plan.shape && back && !isContiguous(turned)) steps.push(copied("", turned));
    return { ...plan, folded: on };
  }

  const batches = [x.slice(0, -2), y.slice(0, -2)];
  const batch = broadcast(...batches);
  if (!batch.shape) {
    const [p, q] = batch.sizes;
    return no("batch", `batch sizes ${p} and ${q} do not broadcast: they must be equal, or one of them 1`,
      `The size of tensor a (${p}) must match the size of tensor b (${q}) at non-singleton dimension ${batch.dim}`);
  }
  const [m, k] = [x.at(-2) ?? 1, x.at(-1)];
  const n = y.length > 1 ? y.at(-1) : 1;
  const shape = [...batch.shape, ...(x.length > 1 ? [m] : []), ...(y.length > 1 ? [n] : [])];
  const first = x.length > 1 ? a : { shape: [1, k], strides: [k, 1] };
  const second = y.length > 1 ? b : { shape: [y[0], 1], strides: [1, 1] };
  if (x.length === 1) steps.push(step("A", "unsqueeze(0)", first, { free: true }));
  if (y.length === 1) steps.push(step("B", "unsqueeze(1)", second, { free: true }));
  const wideA = fit("A", first, batch.shape, [m, k], steps);
  const wideB = fit("B", second, batch.shape, [y.at(-2) ?? y[0], n], steps);
  const plan = run("bmm", wideA, wideB, shape);
  if (plan.shape && (batch.shape.length !== 1 || shape.length !== 3)) steps.push(step("", `view${written(shape)}`, plan, { free: true }));
  return plan;
}

/** Which sizes do not meet, said of A and B as they were given. */
function contraction(x, y) {
  const [row, column] = [x.at(-1), y.length > 1 ? y.at(-2) : y[0]];
  if (row === column) return null;
  return `${x.length > 1 ? "a row of A" : "A"} has ${row} numbers, ${y.length > 1 ? "a column of B" : "B"} has ${column}`;
}

const wanting = (shape, grad = false) => ({ ...contiguous(shape), grad });

/** linear(A, W) without bias = matmul(A, W.t()): the weight is (out, in). */
function linear(a, w, grads = []) {
  if (!a.length || !w.length) return matmul(contiguous(a), contiguous(w), "linear");
  if (w.length > 2) return no("rank", `takes a weight of shape (out, in); B is ${dims(w)}`, `t() expects a tensor with <= 2 dimensions, but self is ${w.length}D`);
  const weight = contiguous(w);
  const plan = matmul(wanting(a, grads[0]), { ...(w.length === 2 ? transposed(weight) : weight), grad: grads[1] }, "linear");
  if (plan.shape) return w.length === 2 ? { ...plan, steps: [step("B", "t()", transposed(weight), { free: true }), ...plan.steps] } : plan;
  if (plan.kind !== "sum") return plan;
  return { ...plan, why: `B is the weight, (out, in): it takes ${w.at(-1)} numbers, A has ${a.at(-1)} in its last dim` };
}

/** What each function says of these shapes, in the order in which they grow. einsum stands apart. grads: whether A and B need one. */
export const FUNCTIONS = {
  dot, mv, mm, bmm,
  matmul: (a, b, grads = []) => matmul(wanting(a, grads[0]), wanting(b, grads[1])),
  linear,
};
