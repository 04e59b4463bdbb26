// Shapes and strides, as far as a product needs them: which reshape is a view, and which one copies.
//
// A view is { shape, strides }; strides count elements. Pure functions, no DOM.

export const numel = (shape) => shape.reduce((product, size) => product * size, 1);

/** "(2, 3)": a shape as torch prints it. */
export const written = (shape) => `(${shape.join(", ")}${shape.length === 1 ? "," : ""})`;

/** The shape that was typed, as "2, 3", "(2, 3)", "[2 3]" or "2×3"; "" and "()" are 0-D. Or null. */
export function parseShape(text, { rank = 6, size = 99999 } = {}) {
  const bare = text.trim().replace(/^\((.*)\)$|^\[(.*)\]$/, (_, round, square) => round ?? square).trim().replace(/,$/, "");
  if (bare === "") return [];
  const sizes = bare.split(/\s*[,×x*]\s*|\s+/);
  if (sizes.length > rank || !sizes.every((part) => /^\d{1,5}$/.test(part) && Number(part) <= size)) return null;
  return sizes.map(Number);
}

/** Row-major. A size of 0 counts as 1 here, as in torch. */
export function contiguous(shape) {
  const strides = [];
  shape.reduceRight((step, size, dim) => { strides[dim] = step; return step * Math.max(size, 1); }, 1);
  return { shape, strides };
}

export const isContiguous = ({ shape, strides }) => {
  const plain = contiguous(shape).strides;
  return numel(shape) === 0 || shape.every((size, dim) => size === 1 || strides[dim] === plain[dim]);
};

export const permute = ({ shape, strides }, order) => ({ shape: order.map((dim) => shape[dim]), strides: order.map((dim) => strides[dim]) });

/** The last two dims exchanged. */
export function transposed(view) {
  const order = view.shape.map((_, dim) => dim);
  order.push(...order.splice(-2, 2).reverse());
  return permute(view, order);
}

/** Stretch to `shape`, right-aligned: new dims and dims of size 1 get stride 0. */
export function expand({ shape, strides }, to) {
  const missing = to.length - shape.length;
  return {
    shape: to,
    strides: to.map((size, dim) => (dim < missing || (shape[dim - missing] === 1 && size !== 1) ? 0 : strides[dim - missing])),
  };
}

/** How many elements of the storage a view reads: an expanded dim reads the same ones again. */
export const touched = ({ shape, strides }) => numel(shape.map((size, dim) => (strides[dim] === 0 && size > 0 ? 1 : size)));

/**
 * The same elements in another shape: a view where the strides allow it, else a copy; `copied` says which.
 * The rule is at::detail::computeStride: dims may be split, and merged where one step of the outer
 * spans the inner.
 */
export function reshape({ shape, strides }, to) {
  const plain = { ...contiguous(to), copied: false };
  if (numel(shape) === 0) return plain;
  if (shape.length === 0) return { shape: to, strides: to.map(() => 1), copied: false };
  const made = [];
  let at = to.length - 1;
  let step = strides.at(-1);
  let block = 1;
  let placed = 1;
  for (let dim = shape.length - 1; dim >= 0; dim -= 1) {
    block *= shape[dim];
    const ends = dim === 0 || (shape[dim - 1] !== 1 && strides[dim - 1] !== block * step);
    if (!ends) continue;
    while (at >= 0 && (placed < block || to[at] === 1)) {
      made[at] = placed * step;
      placed *= to[at];
      at -= 1;
    }
    if (placed !== block) return { ...plain, copied: true };
    if (dim > 0) [step, block, placed] = [strides[dim - 1], 1, 1];
  }
  return at === -1 ? { shape: to, strides: made, copied: false } : { ...plain, copied: true };
}

/** Two shapes right-aligned, as torch broadcasts them: { shape } or { dim, sizes } of the first clash from the right. */
export function broadcast(a, b) {
  const rank = Math.max(a.length, b.length);
  const shape = [];
  for (let back = 1; back <= rank; back += 1) {
    const [x, y] = [a.at(-back) ?? 1, b.at(-back) ?? 1];
    if (x !== y && x !== 1 && y !== 1) return { dim: rank - back, sizes: [x, y] };
    shape.unshift(x === 1 ? y : x);
  }
  return { shape };
}

/** The layout that an elementwise op gives its result (TensorIterator): it follows its operands' order of strides. */
export function elementwise(views) {
  const shape = views[0].shape.map((_, dim) => views.map((view) => view.shape[dim]).find((size) => size !== 1) ?? 1);
  const same = views.every((view) => view.shape.every((size, dim) => size === shape[dim]));
  if (same && views.every(isContiguous)) return contiguous(shape);
  const strides = views.map((view) => view.strides.map((step, dim) => (view.shape[dim] === 1 && shape[dim] !== 1 ? 0 : step)));
  const after = (x, y) => {
    for (const steps of strides) {
      if (steps[x] === 0 || steps[y] === 0) continue;
      if (steps[x] !== steps[y]) return Math.sign(steps[x] - steps[y]);
      if (shape[x] > shape[y]) return 1;
    }
    return 0;
  };
  const order = shape.map((_, dim) => shape.length - 1 - dim);
  for (let i = 1; i < order.length; i += 1) {
    let mine = i;
    for (let other = i - 1; other >= 0; other -= 1) {
      const way = after(order[other], order[mine]);
      if (way < 0) break;
      if (way > 0) { [order[other], order[mine]] = [order[mine], order[other]]; mine = other; }
    }
  }
  const made = [];
  order.reduce((step, dim) => { made[dim] = step; return step * Math.max(shape[dim], 1); }, 1);
  return { shape, strides: made };
}
