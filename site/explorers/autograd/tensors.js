// Tensors of up to four float32 numbers, and what each operation does to flags, versions and the graph. No DOM.
// Names and rules are those of torch/csrc/autograd: VariableTypeUtils.h, variable.cpp, saved_variable.cpp.

import { Raised } from "./program.js";
import { node, operation, saved } from "./nodes.js";

const runtime = (message) => new Raised("RuntimeError", message);

export const numel = (shape) => shape[0] ?? 1;

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
};

const list = (shape) => `[${shape.join(", ")}]`;

function broadcast(a, b) {
  if (!a.shape.length || !b.shape.length) return a.shape.length ? a.shape : b.shape;
  const [n, k] = [a.shape[0], b.shape[0]];
  if (n !== k && n !== 1 && k !== 1) throw runtime(`The size of tensor a (${n}) must match the size of tensor b (${k}) at non-singleton dimension 0`);
  return [n === 1 ? k : n];
}

const at = (values, i) => values[values.length === 1 ? 0 : i];

const combine = (sign, a, b, count) => Array.from({ length: count }, (_, i) => Math.fround(RULES[sign].forward(at(a, i), at(b, i))));

const times = (a, b) => combine("*", a, b, Math.max(a.length, b.length));

function binaryNode(world, sign, a, b, shape, inPlace) {
  const next = [edge(world, a), edge(world, b)];
  const { name, back } = RULES[sign];
  const parts = {};
  if (sign === "*") {
    // In place the old value would be lost: a copy of it is saved.
    const original = inPlace && next[1] ? { ...fresh({ inference: false }, valuesOf(a), a.shape), named: a } : a;
    parts.self = next[1] ? saved(world, original) : null;
    parts.other = next[0] ? saved(world, b) : null;
  }
  return node(world, name, next, shape, {
    saved: parts,
    apply: back ? (grad) => next.map((to, i) => to && grad.map((g) => g * back[i])) : (grad, read) => [
      next[0] && times(grad, read("other")), next[1] && times(grad, read("self")),
    ],
  });
}

export function binary(world, sign, a, b) {
  // A number on the left of a minus does not become a tensor.
  const reversed = sign === "-" && a.number;
  const recorded = records(world, reversed ? [b] : [a, b]);
  const swapped = sign !== "-" && a.number ? [b, a] : [a, b];
  const shape = () => broadcast(...swapped);
  let fn = null;
  if (recorded && reversed) fn = node(world, "RsubBackward1", [edge(world, b)], b.shape, { apply: (grad) => [grad.map((g) => -g)] });
  else if (recorded) fn = binaryNode(world, sign, ...swapped, null, false);
  const result = fresh(world, [], shape());
  result.storage.data = combine(sign, valuesOf(a), valuesOf(b), numel(result.shape));
  if (fn) fn.shape = result.shape;
  result.fn = fn;
  return result;
}

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
  if (self.storage === other.storage && start < to && from < stop && (start !== from || stop !== to || self.shape.length !== other.shape.length)) {
    throw runtime("unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation.");
  }
  const shape = broadcast(self, other);
  if (list(shape) !== list(self.shape)) throw runtime(`output with shape ${list(self.shape)} doesn't match the broadcast shape ${list(shape)}`);
  const after = combine(sign, valuesOf(self), valuesOf(other), numel(shape));
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

/** From an inference tensor, outside its mode: clone and sum fill their result in place, and that is counted. */
function counted(t, result) {
  if (t.inference && result.counter) result.counter.n = 1;
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

export const METHOD = {
  exp: (world, t) => unary(world, t, "ExpBackward0", valuesOf(t).map(Math.exp), t.shape, { saves: "result", apply: (grad, read) => [times(grad, read("result"))] }),
  sin: (world, t) => unary(world, t, "SinBackward0", valuesOf(t).map(Math.sin), t.shape, { saves: "self", apply: (grad, read) => [times(grad, read("self").map(Math.cos))] }),
  sum: (world, t) => {
    const count = numel(t.shape);
    const total = unary(world, t, "SumBackward0", [valuesOf(t).reduce((a, b) => Math.fround(a + b), 0)], [], { apply: (grad) => [Array(count).fill(grad[0])] });
    return counted(t, total);
  },
  clone: (world, t) => {
    const copy = unary(world, t, "CloneBackward0", valuesOf(t), t.shape, { apply: (grad) => [grad] });
    return counted(t, copy);
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
  slice: (world, t, start, stop) => {
    if (!t.shape.length) throw new Raised("IndexError", "slice() cannot be applied to a 0-dim tensor.");
    const clamp = (i) => Math.max(0, Math.min(t.shape[0], i < 0 ? i + t.shape[0] : i));
    const size = clamp(stop) - clamp(start);
    if (size < 1) throw new Raised("Page", "That slice is empty. Slices of at least one element, please.");
    return alias(world, t, "SliceBackward0", clamp(start), [size]);
  },
  index: (world, t, i) => {
    if (!t.shape.length && i === 0) throw new Raised("IndexError", "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a 0-dim tensor to a number");
    const n = t.shape[0] ?? 0;
    if (i < -n || i >= n) throw new Raised("IndexError", `index ${i} is out of bounds for dimension 0 with size ${n}`);
    return alias(world, t, "SelectBackward0", i < 0 ? i + n : i, []);
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
