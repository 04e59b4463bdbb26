// Tensors of a few float32 numbers, and what each operation does to flags, versions and the graph. No DOM.
// Names and rules are those of torch/csrc/autograd: VariableTypeUtils.h, variable.cpp, saved_variable.cpp.

import { Raised } from "./program.js";
import { node, operation, saved } from "./nodes.js";

const runtime = (message) => new Raised("RuntimeError", message);

export const numel = (shape) => shape.reduce((product, size) => product * size, 1);

export const valuesOf = ({ storage, offset, shape }) => storage.data.slice(offset, offset + numel(shape));

/** A tensor in memory of its own. In inference mode it has no version counter. */
export function fresh(world, data, shape) {
  return {
    storage: { data: data.map(Math.fround), size: 4 }, offset: 0, shape, inference: world.inference,
    counter: world.inference ? null : { n: 0 }, flag: false, fn: null, view: null, grad: null,
  };
}

/** A Python number in an operation with a tensor: a tensor of no dims that nobody named. */
export const wrapped = ({ number, float }) => ({
  ...fresh({ inference: false }, [number], []), storage: { data: [number], size: 8 }, number: float ? "DoubleTensor" : "LongTensor",
});

/** A view requires grad where its base does, recorded or not. */
export const requiresGrad = (t) => Boolean(t.flag || t.fn || (t.view && requiresGrad(t.view.base)));

const FORBIDDEN = "Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both the view and the inplace either both inside the";

function refuseView({ made }, fn, indirect) {
  if (made === "default") return;
  const where = made === "inference" ? "inference_mode" : "no_grad";
  const lead = fn ? `Output 0 of ${operation(fn)} is a view of a view which was created in` : "A view was created in";
  const what = indirect ? "its base or another view of its base has been" : "is being";
  const how = made === "inference" ? "inference mode" : "no_grad mode";
  const outside = made === "inference" ? "in normal mode" : "with grad mode enabled";
  throw runtime(`${lead} ${how} and ${what} modified inplace ${outside}. ${FORBIDDEN} ${where} block (if you don't want the inplace to be tracked) or both outside (if you want the inplace to be tracked).`);
}

/** grad_fn. A view whose memory was changed since gets a new one when somebody asks. */
export function gradFn(world, t) {
  const { view } = t;
  if (view && (t.fn || requiresGrad(view.base)) && view.version !== t.counter.n) {
    refuseView(view, t.fn, true);
    const { offset, shape } = t;
    const whole = view.base;
    world.looked?.push([t, t.fn, view.version]);
    t.fn = node(world, "AsStridedBackward0", [edge(world, whole)], shape, {
      apply: (grad) => [Array.from({ length: numel(whole.shape) }, (_, i) => grad[i + whole.offset - offset] ?? 0)],
    });
    view.version = t.counter.n;
  }
  return t.fn;
}

/** Where a gradient for t goes: its grad_fn, or the AccumulateGrad of a leaf that requires grad itself. */
export function edge(world, t) {
  const fn = gradFn(world, t);
  if (fn || !t.flag) return fn;
  t.accumulator ??= node(world, "AccumulateGrad", [], t.shape, { variable: t });
  return t.accumulator;
}

/** Recorded: grad mode is on, outside inference mode, and an operand with autograd's key; one requires grad. */
const records = (world, inputs) =>
  world.grad && !world.inference && inputs.some((t) => !t.inference) && inputs.some(requiresGrad);

// ── Elementwise ──

const RULES = {
  "+": { name: "AddBackward0", forward: (a, b) => a + b, back: [1, 1] },
  "-": { name: "SubBackward0", forward: (a, b) => a - b, back: [1, -1] },
  "*": { name: "MulBackward0", forward: (a, b) => a * b },
  "/": { name: "DivBackward0", forward: (a, b) => a / b },
};

const list = (shape) => `[${shape.join(", ")}]`;

function broadcast(a, b) {
  const dims = Math.max(a.shape.length, b.shape.length);
  const size = ({ shape }, dim) => shape[dim - dims + shape.length] ?? 1;
  const shape = Array(dims);
  for (let dim = dims - 1; dim >= 0; dim -= 1) {
    const [n, k] = [size(a, dim), size(b, dim)];
    if (n !== k && n !== 1 && k !== 1) throw runtime(`The size of tensor a (${n}) must match the size of tensor b (${k}) at non-singleton dimension ${dim}`);
    shape[dim] = n === 1 ? k : n;
  }
  return shape;
}

/** Where the i-th element of `shape` is found in a tensor of shape `own` that is stretched to it. */
function found(own, shape, i) {
  let [at, step, rest] = [0, 1, i];
  for (let dim = shape.length - 1, mine = own.length - 1; mine >= 0; dim -= 1, mine -= 1) {
    if (own[mine] !== 1) at += rest % shape[dim] * step;
    rest = Math.floor(rest / shape[dim]);
    step *= own[mine];
  }
  return at;
}

const each = (count, make) => Array.from({ length: count }, (_, i) => Math.fround(make(i)));

const combine = (sign, a, b, shape) => {
  const [x, y] = [valuesOf(a), valuesOf(b)];
  return each(numel(shape), (i) => RULES[sign].forward(x[found(a.shape, shape, i)], y[found(b.shape, shape, i)]));
};

/** A gradient of that shape for what was stretched to it: a sum over all that came of an element. */
function reduced(grad, shape, own) {
  const sum = Array(numel(own)).fill(0);
  grad.forEach((value, i) => { sum[found(own, shape, i)] = Math.fround(sum[found(own, shape, i)] + value); });
  return sum;
}

const times = (a, b) => each(a.length, (i) => a[i] * b[i]);

function binaryNode(world, sign, a, b, shape, inPlace) {
  const next = [edge(world, a), edge(world, b)];
  const { name, back } = RULES[sign];
  const parts = {};
  if (!back) {
    // In place the old value would be lost: a copy of it is saved.
    const original = inPlace && next[1] ? { ...fresh({ inference: false }, valuesOf(a), a.shape), named: a } : a;
    parts.self = next[1] ? saved(world, original) : null;
    parts.other = next[0] || sign === "/" ? saved(world, b) : null;
  }
  const [own, other] = [a.shape, b.shape];
  const apply = (grad, read) => {
    const x = (i) => read("self")[found(own, shape, i)];
    const y = (i) => read("other")[found(other, shape, i)];
    const by = sign === "*" ? [(i) => y(i), (i) => x(i)] : sign === "/" ? [(i) => 1 / y(i), (i) => -x(i) / (y(i) * y(i))] : back.map((factor) => () => factor);
    return next.map((to, part) => to && reduced(grad.map((g, i) => Math.fround(g * by[part](i))), shape, [own, other][part]));
  };
  return node(world, name, next, shape, { saved: parts, apply });
}

export function binary(world, sign, a, b) {
  // Python's 2 / x is x.reciprocal() * 2; a number on the left of a minus does not become a tensor.
  if (sign === "/" && a.number) return binary(world, "*", METHOD.reciprocal(world, b), a);
  const reversed = sign === "-" && a.number;
  const recorded = records(world, reversed ? [b] : [a, b]);
  const swapped = sign !== "-" && a.number ? [b, a] : [a, b];
  const shape = broadcast(...swapped);
  let fn = null;
  if (recorded && reversed) fn = node(world, "RsubBackward1", [edge(world, b)], b.shape, { apply: (grad) => [grad.map((g) => -g)] });
  else if (recorded) fn = binaryNode(world, sign, ...swapped, shape, false);
  const result = fresh(world, combine(sign, a, b, shape), shape);
  result.fn = fn;
  return result;
}

const steps = (shape) => `${shape.length}: ${shape.slice(1)}`;

export function inPlace(world, sign, self, other) {
  const recorded = records(world, [self, other]);
  let fn = null;
  if (recorded) {
    const grown = requiresGrad(self);
    if (self.view) {
      refuseView(self.view, self.fn, false);
      if (grown && !self.view.base.fn) throw runtime("a view of a leaf Variable that requires grad is being used in an in-place operation.");
    }
    if (grown && !self.fn) throw runtime("a leaf Variable that requires grad is being used in an in-place operation.");
    fn = binaryNode(world, sign, self, other, self.shape, true);
  }
  const [from, to, start, stop] = [self, other].flatMap((t) => [t.offset, t.offset + numel(t.shape)]);
  if (self.storage === other.storage && start < to && from < stop && (start !== from || stop !== to || steps(self.shape) !== steps(other.shape))) {
    throw runtime("unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation.");
  }
  const shape = broadcast(self, other);
  if (list(shape) !== list(self.shape)) throw runtime(`output with shape ${list(self.shape)} doesn't match the broadcast shape ${list(shape)}`);
  const after = combine(sign, self, other, shape);
  self.storage.data.splice(self.offset, after.length, ...after);
  if (!self.counter && !world.inference) throw runtime("Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a normal tensor before doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for more details.");
  if (self.counter) self.counter.n += 1;
  if (!fn) return self;
  if (!self.view) {
    self.fn = fn;
    return self;
  }
  // The base was changed through the view: its new node hands the slice's part to what the view recorded.
  const { base } = self.view;
  const part = from - base.offset;
  base.fn = node(world, "CopySlices", [edge(world, base), ...fn.next.slice(1)], base.shape, {
    inner: fn,
    apply: (grad, read) => {
      const rest = grad.slice();
      const [own, ...others] = fn.apply(grad.slice(part, part + after.length), read);
      rest.splice(part, after.length, ...after.map((_, i) => own?.[i] ?? 0));
      return [rest, ...others];
    },
  });
  gradFn(world, self);
  return self;
}

// ── One operand ──

function unary(world, t, name, values, shape, parts) {
  const recorded = records(world, [t]);
  const result = fresh(world, values, shape);
  if (!recorded) return result;
  result.fn = node(world, name, [edge(world, t)], shape, { apply: parts.apply });
  if (parts.saves) result.fn.saved = { [parts.saves]: saved(world, parts.saves === "result" ? result : t, parts.saves === "result" ? result.fn : null) };
  return result;
}

/** From inference tensors, outside their mode: some kernels fill their result in place, and that is counted. */
function counted(tensors, result, times = 1) {
  if (tensors.every((t) => t.inference) && result.counter) result.counter.n = times;
  return result;
}

/** Memory shared, graph cut. */
const cut = (world, t, counter) => ({
  ...fresh(world, [], t.shape), storage: t.storage, offset: t.offset, inference: t.inference, counter: counter ?? (t.inference && world.inference ? null : { n: 0 }),
});

/** Memory shared, graph kept. */
function alias(world, t, name, offset, shape) {
  const recorded = records(world, [t]);
  const result = { ...fresh(world, [], shape), storage: t.storage, offset: t.offset + offset, inference: t.inference, counter: t.inference ? null : t.counter };
  if (!t.inference) {
    const made = world.inference ? "inference" : world.grad ? "default" : "no_grad";
    const before = t.view?.made ?? "default";
    result.view = { base: t.view?.base ?? t, made: made === "default" ? before : made, version: t.counter.n };
  }
  if (!recorded) return result;
  const whole = numel(t.shape);
  result.fn = node(world, name, [edge(world, t)], shape, { apply: (grad) => [Array.from({ length: whole }, (_, i) => grad[i - offset] ?? 0)] });
  return result;
}

const mapped = (t, by) => valuesOf(t).map((value) => Math.fround(by(value)));

/** sum and mean, of all or over a dim. */
function total(world, t, name, dim, share) {
  const { shape } = t;
  if (dim === null) {
    const count = numel(shape);
    const all = valuesOf(t).reduce((a, b) => Math.fround(a + b), 0);
    return unary(world, t, `${name}Backward0`, [share ? all / count : all], [], { apply: (grad) => [Array(count).fill(share ? grad[0] / count : grad[0])] });
  }
  const most = Math.max(shape.length, 1);
  if (dim < -most || dim >= most) throw new Raised("IndexError", `Dimension out of range (expected to be in range of [${-most}, ${most - 1}], but got ${dim})`);
  const at = dim < 0 ? dim + most : dim;
  const rest = shape.map((size, d) => (d === at ? 1 : size));
  const by = share ? shape[at] ?? 1 : 1;
  const values = reduced(valuesOf(t), shape, rest).map((value) => value / by);
  return unary(world, t, `${name}Backward1`, values, shape.filter((_, d) => d !== at), { apply: (grad) => [each(numel(shape), (i) => grad[found(rest, shape, i)] / by)] });
}

export const METHOD = {
  exp: (world, t) => unary(world, t, "ExpBackward0", mapped(t, Math.exp), t.shape, { saves: "result", apply: (grad, read) => [times(grad, read("result"))] }),
  sin: (world, t) => unary(world, t, "SinBackward0", mapped(t, Math.sin), t.shape, { saves: "self", apply: (grad, read) => [times(grad, read("self").map(Math.cos))] }),
  relu: (world, t) => unary(world, t, "ReluBackward0", mapped(t, (x) => Math.max(x, 0)), t.shape, { saves: "result", apply: (grad, read) => [times(grad, read("result").map((y) => Number(y > 0)))] }),
  reciprocal: (world, t) => unary(world, t, "ReciprocalBackward0", mapped(t, (x) => 1 / x), t.shape, { saves: "result", apply: (grad, read) => [times(grad, read("result").map((y) => -y * y))] }),
  negative: (world, t) => unary(world, t, "NegBackward0", mapped(t, (x) => -x), t.shape, { apply: (grad) => [grad.map((g) => -g)] }),
  power: (world, t, n) => unary(world, t, "PowBackward0", mapped(t, (x) => x ** n), t.shape, { saves: "self", apply: (grad, read) => [times(grad, read("self").map((x) => n * x ** (n - 1)))] }),
  sum: (world, t, dim = null) => counted([t], total(world, t, "Sum", dim, false)),
  mean: (world, t, dim = null) => counted([t], total(world, t, "Mean", dim, true), 2),
  clone: (world, t) => {
    const copy = unary(world, t, "CloneBackward0", valuesOf(t), t.shape, { apply: (grad) => [grad] });
    return counted([t], copy);
  },
  // The counter is shared by detach, new with .data. An inference tensor has none to share.
  detach: (world, t) => cut(world, t, t.inference ? null : t.counter),
  data: (world, t) => cut(world, t, null),
  view: (world, t, size) => {
    const count = numel(t.shape);
    const wanted = size === -1 ? count : size;
    if (wanted !== count) throw runtime(`shape '[${size}]' is invalid for input of size ${count}`);
    return alias(world, t, "ViewBackward0", 0, [count]);
  },
  // Views cut along the first dim, so whatever they show lies in one piece.
  slice: (world, t, start, stop) => {
    if (!t.shape.length) throw new Raised("IndexError", "slice() cannot be applied to a 0-dim tensor.");
    const clamp = (i) => Math.max(0, Math.min(t.shape[0], i < 0 ? i + t.shape[0] : i));
    const size = clamp(stop) - clamp(start);
    if (size < 1) throw new Raised("Page", "That slice is empty. Slices of at least one element, please.");
    const rest = t.shape.slice(1);
    return alias(world, t, "SliceBackward0", clamp(start) * numel(rest), [size, ...rest]);
  },
  index: (world, t, i) => {
    if (!t.shape.length && i === 0) throw new Raised("IndexError", "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a 0-dim tensor to a number");
    const n = t.shape[0] ?? 0;
    if (i < -n || i >= n) throw new Raised("IndexError", `index ${i} is out of bounds for dimension 0 with size ${n}`);
    const rest = t.shape.slice(1);
    return alias(world, t, "SelectBackward0", (i < 0 ? i + n : i) * numel(rest), rest);
  },
  item: (world, t) => {
    if (numel(t.shape) !== 1) throw runtime(`a Tensor with ${numel(t.shape)} elements cannot be converted to Scalar`);
    return { number: valuesOf(t)[0], float: true };
  },
};

export function setRequiresGrad(world, t, on, assigned) {
  if ((assigned || !on) && t.fn) {
    throw runtime(on ? "you can only change requires_grad flags of leaf variables." : "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a subgraph that doesn't require differentiation use var_no_grad = var.detach().");
  }
  if (on && t.inference && !world.inference) throw runtime("Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.");
  if (on && t.inference) throw new Raised("Page", "Inference tensors that require grad have rules of their own. This page leaves them out.");
  t.flag = on;
  return t;
}

// ── Products ──

/** Rows of one times columns of the other; sizes are m × k and k × n. */
const multiplied = (a, b, m, k, n, ta = false, tb = false) => each(m * n, (i) => {
  const [row, column] = [Math.floor(i / n), i % n];
  let sum = 0;
  for (let j = 0; j < k; j += 1) sum += a[ta ? j * m + row : row * k + j] * b[tb ? column * k + j : j * n + column];
  return sum;
});

/** a @ b, as the kernel that torch.matmul takes for it: dot, mv or mm. */
export function product(world, a, b) {
  const [p, q] = [a.shape.length, b.shape.length];
  if (!p || !q) throw runtime(`both arguments to matmul need to be at least 1D, but they are ${p}D and ${q}D`);
  if (p === 1 && q === 2) {
    const row = product(world, alias(world, a, "UnsqueezeBackward0", 0, [1, ...a.shape]), b);
    const shape = [b.shape[1]];
    // squeeze_ changes the product in place: its node, and its counter.
    if (row.fn) row.fn = node(world, "SqueezeBackward4", [row.fn], shape, { apply: (grad) => [grad] });
    if (row.counter) row.counter.n += 1;
    return Object.assign(row, { shape });
  }
  const [m, k] = p === 1 ? [1, a.shape[0]] : a.shape;
  const n = q === 1 ? 1 : b.shape[1];
  if (k !== b.shape[0]) {
    if (q === 2) throw runtime(`mat1 and mat2 shapes cannot be multiplied (${m}x${k} and ${b.shape[0]}x${n})`);
    throw runtime(p === 1 ? `inconsistent tensor size, expected tensor [${k}] and src [${b.shape[0]}] to have the same number of elements, but got ${k} and ${b.shape[0]} elements respectively` : `size mismatch, got input (${m}), mat (${m}x${k}), vec (${b.shape[0]})`);
  }
  const result = fresh(world, multiplied(valuesOf(a), valuesOf(b), m, k, n), [...a.shape.slice(0, -1), ...b.shape.slice(1)]);
  if (q === 1) counted([a, b], result);
  if (!records(world, [a, b])) return result;
  const next = [edge(world, a), edge(world, b)];
  const [name, other] = q === 2 ? ["MmBackward0", "mat2"] : p === 2 ? ["MvBackward0", "vec"] : ["DotBackward0", "tensor"];
  result.fn = node(world, name, next, result.shape, {
    saved: { self: next[1] ? saved(world, a) : null, [other]: next[0] ? saved(world, b) : null },
    apply: (grad, read) => [next[0] && multiplied(grad, read(other), m, n, k, false, true), next[1] && multiplied(read("self"), grad, k, m, n, true)],
  });
  return result;
}
