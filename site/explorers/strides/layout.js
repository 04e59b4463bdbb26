// Sizes, strides and offsets, counted in elements: what they address, and what can be said of them.
// A layout is { size, stride, offset }. Pure functions; all is compared with torch in tests/explorers.

export const product = (numbers) => numbers.reduce((a, b) => a * b, 1);

/** The strides of a new tensor of that size: the last dimension is the fastest. */
export function rowMajor(size) {
  const stride = [];
  let step = 1;
  for (let d = size.length - 1; d >= 0; d -= 1) {
    stride[d] = step;
    step *= Math.max(size[d], 1);
  }
  return stride;
}

/** The cell of one element. */
export const address = ({ stride, offset }, index) => index.reduce((sum, i, d) => sum + i * stride[d], offset);

/** All indices, the last dimension fastest. */
export function indices(size) {
  let list = [[]];
  for (const length of size) list = list.flatMap((lead) => Array.from({ length }, (_, i) => [...lead, i]));
  return list;
}

/** The place of an index when the last dimension runs fastest, and the index of a place. */
export const raveled = (index, size) => index.reduce((place, i, d) => place * size[d] + i, 0);
export function unraveled(place, size) {
  const index = [];
  for (let d = size.length - 1; d >= 0; d -= 1) {
    index[d] = place % size[d];
    place = Math.floor(place / size[d]);
  }
  return index;
}

/** The cell after the last one that is read; 0 if none is. */
export const reach = (layout) => product(layout.size) ? address(layout, layout.size.map((n) => n - 1)) + 1 : 0;

/** Do the cells follow each other without gaps, the last dimension of `order` fastest? */
function runs({ size, stride }, order) {
  let wanted = 1;
  for (const d of [...order].reverse()) {
    if (size[d] === 1) continue;
    if (stride[d] !== wanted) return false;
    wanted *= size[d];
  }
  return true;
}

const CHANNELS_LAST = { 4: [0, 2, 3, 1], 5: [0, 2, 3, 4, 1] };

export const isContiguous = (layout) => product(layout.size) === 0 || runs(layout, layout.size.keys());

/** Only four and five dimensions can be channels_last. */
export function isChannelsLast(layout) {
  const order = CHANNELS_LAST[layout.size.length];
  return order !== undefined && runs(layout, order);
}

/** "Non-overlapping and dense": some order of the dimensions makes it contiguous. */
export function isDense(layout) {
  const { size, stride } = layout;
  const order = [...size.keys()].filter((d) => size[d] > 1).sort((a, b) => stride[b] - stride[a]);
  return product(size) === 0 || runs(layout, order);
}

/** The cells that more than one index reads. */
export function shared(layout) {
  const seen = new Set();
  const twice = new Set();
  for (const index of indices(layout.size)) {
    const cell = address(layout, index);
    (seen.has(cell) ? twice : seen).add(cell);
  }
  return twice;
}

/** The strides of a copy that keeps the order of the dimensions, as clone() and flip() do. */
export function preserved(layout) {
  const { size, stride } = layout;
  if (isDense(layout)) return stride;
  // From the smallest stride up; of equal ones the later dimension first, unless it is the longer.
  // A stride of 0 settles nothing: such a dimension stays where it is, whatever lies around it.
  const order = [...size.keys()].reverse();
  const after = (a, b) => stride[a] && stride[b] && (stride[a] - stride[b] || Math.max(0, size[a] - size[b]));
  for (let i = 1; i < order.length; i += 1) {
    for (let at = i, j = i - 1; j >= 0; j -= 1) {
      const compared = after(order[j], order[at]);
      if (compared < 0) break;
      if (compared > 0) {
        [order[j], order[at]] = [order[at], order[j]];
        at = j;
      }
    }
  }
  const result = [];
  let step = 1;
  for (const d of order) {
    result[d] = step;
    step *= size[d];
  }
  return result;
}

export function channelsLast(size) {
  const stride = [];
  let step = 1;
  for (const d of [...CHANNELS_LAST[size.length]].reverse()) {
    stride[d] = step;
    step *= size[d];
  }
  return stride;
}

/** The target with its −1 filled in; throws a sentence if it does not fit. */
export function inferred(target, total) {
  const known = product(target.filter((n) => n !== -1));
  const open = target.filter((n) => n === -1).length;
  if (open > 1) throw new Error("Only one size can be −1.");
  if (target.some((n) => n < -1)) throw new Error("A size cannot be negative.");
  if (open && known === 0) throw new Error("Beside a 0, −1 could be anything.");
  if (open ? total % known : total !== known) {
    throw new Error(`(${target.join(", ").replace("-", "−")}) has ${open ? `a multiple of ${known}` : known} elements, the tensor has ${total}.`);
  }
  return target.map((n) => n === -1 ? total / known : n);
}

/**
 * Dimensions that a step of one run of cells goes through, from the left. Each chunk is
 * { from, to, numel, step }; where one ends, `wanted` is the stride that would have joined the
 * dimension before it.
 */
export function chunks({ size, stride }) {
  const list = [];
  let to = size.length - 1;
  let numel = 1;
  for (let d = to; d >= 0; d -= 1) {
    numel *= size[d];
    const wanted = numel * stride[to];
    if (d > 0 && (size[d - 1] === 1 || stride[d - 1] === wanted)) continue;
    list.unshift({ from: d, to, numel, step: stride[to], wanted });
    to = d - 1;
    numel = 1;
  }
  return list;
}

/**
 * Can these cells be seen as `target` (without −1, of as many elements)? Gives { stride } of the view,
 * or { broken, dim }: the chunk that target dimension `dim` would have to leave.
 * `parts` are the target's dimensions that each chunk has become, from the left.
 */
export function viewed(layout, target) {
  if (product(layout.size) === 0) {
    const same = target.join() === layout.size.join();
    return { stride: same ? layout.stride : rowMajor(target), parts: [] };
  }
  if (!layout.size.length) return { stride: target.map(() => 1), parts: [] };
  const stride = [];
  const parts = [];
  let v = target.length - 1;
  for (const chunk of chunks(layout).reverse()) {
    const dims = [];
    let numel = 1;
    while (v >= 0 && (numel < chunk.numel || target[v] === 1)) {
      stride[v] = numel * chunk.step;
      numel *= target[v];
      dims.unshift(v);
      v -= 1;
    }
    parts.unshift(dims);
    if (numel !== chunk.numel) return { broken: chunk, dim: v + 1, parts };
  }
  return { stride, parts };
}
