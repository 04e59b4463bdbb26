// The loops of an elementwise kernel, as TensorIterator plans them: dims by stride, fastest first, and merged. No DOM.
//
// Strides are in elements. An operand that is broadcast along a dim has stride 0 there.

/** Sizes that are broadcast, and each operand's strides along them; null where they do not fit. */
export function broadcast(operands) {
  const dims = Math.max(...operands.map(({ size }) => size.length));
  const size = Array.from({ length: dims }, (_, d) => operands.reduce((known, { size: own }) => {
    const n = own[d - dims + own.length] ?? 1;
    return known === null || (n !== 1 && known !== 1 && n !== known) ? null : n === 1 ? known : n;
  }, 1));
  if (size.includes(null)) return null;
  const strides = operands.map(({ size: own, stride }) => size.map((n, d) => {
    const at = d - dims + own.length;
    return at < 0 || (own[at] === 1 && n !== 1) ? 0 : stride[at];
  }));
  return { size, strides };
}

/** Which of two dims is faster: below 0 the first, above 0 the second, 0 when no operand can tell. */
function faster(a, b, size, strides) {
  for (const stride of strides) {
    // Along a broadcast dim an operand has nothing to say.
    if (!stride[a] || !stride[b]) continue;
    if (stride[a] !== stride[b]) return stride[a] - stride[b];
    if (size[a] > size[b]) return 1;
  }
  return 0;
}

/** The order of the dims, the fastest first: by insertion, from the last dim on, since a stride of 0 gives no order. */
export function order(size, strides) {
  const perm = size.map((_, d) => size.length - 1 - d);
  for (let i = 1; i < perm.length; i += 1) {
    let at = i;
    for (let j = i - 1; j >= 0; j -= 1) {
      const found = faster(perm[j], perm[at], size, strides);
      if (found > 0) {
        [perm[j], perm[at]] = [perm[at], perm[j]];
        at = j;
      } else if (found < 0) break;
    }
  }
  return perm;
}

/** The strides of a new result: dense, in the order of the loops. */
export function dense(size, perm) {
  const stride = size.map(() => 0);
  let step = 1;
  for (const d of perm) {
    stride[d] = step;
    step *= size[d];
  }
  return stride;
}

/** Loops that walk all operands in one go become one. Each is { dims, size, strides }, the fastest first. */
export function merged(size, strides, perm) {
  const loops = [];
  for (const d of perm) {
    const last = loops.at(-1);
    const own = strides.map((stride) => stride[d]);
    if (last && (size[d] === 1 || last.size === 1 || own.every((stride, i) => last.strides[i] * last.size === stride))) {
      if (last.size === 1) last.strides = own;
      last.size *= size[d];
      last.dims = [d, ...last.dims];
    } else loops.push({ dims: [d], size: size[d], strides: own });
  }
  return loops;
}

/** All of it for a new result and its operands, the result's strides first; null where they do not fit. */
export function plan(operands) {
  const fit = broadcast(operands);
  if (!fit) return null;
  const perm = order(fit.size, fit.strides);
  const result = dense(fit.size, perm);
  const strides = [result, ...fit.strides];
  return { size: fit.size, perm, strides, loops: merged(fit.size, strides, perm) };
}
