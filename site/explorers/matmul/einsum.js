// torch.einsum: what an equation says of the shapes, and the sums, products and bmm it comes down to.
// As torch 2.13 does on CPU, operands taken from left to right. Pure functions, no DOM.

import { contiguous, elementwise, numel, permute, reshape, touched, written } from "./views.js";

const ELLIPSIS = "...";
/** Letters in torch's order: capitals first. */
const ordered = (letters) => [...letters].sort();

const no = (why, said) => ({ why, said: `einsum(): ${said}` });

class Refusal extends Error {}
const refuse = (why, said) => { throw Object.assign(new Refusal(), { refusal: no(why, said) }); };

/** One side's subscripts; `at` is where it begins in the equation. `dot` and `each` may object, in the order of reading. */
function letters(text, at, dot, each = () => {}) {
  const found = [];
  for (let i = 0; i < text.length; i += 1) {
    const letter = text[i];
    if (letter === " ") continue;
    if (letter === ".") {
      dot(found.includes(ELLIPSIS), text.slice(i, i + 3) === ELLIPSIS);
      found.push(ELLIPSIS);
      i += 2;
      continue;
    }
    if (!/[a-zA-Z]/.test(letter)) refuse(`“${letter}” is no index: indices are letters`, `invalid subscript given at index ${at + i} in the equation string, subscripts must be in [a-zA-Z]`);
    each(letter, found);
    found.push(letter);
  }
  return found;
}

/** How many operands the equation speaks of. */
export const operandsOf = (equation) => equation.split("->")[0].split(",").length;

/** { inputs, arrow, output }: the operands' letters; where the arrow stands, and the text after it. */
function read(equation, count) {
  const arrow = equation.indexOf("->");
  const left = arrow < 0 ? equation : equation.slice(0, arrow);
  const parts = left.split(",");
  let at = 0;
  const inputs = parts.map((part, operand) => {
    if (operand >= count) refuse(`the equation names ${parts.length} operands, there are ${count}`, "fewer operands were provided than specified in the equation");
    const found = letters(part, at, (twice, whole) => {
      if (twice) refuse(`two ellipses for operand ${"ABC"[operand]}`, `found '.' for operand ${operand} for which an ellipsis was already found`);
      if (!whole) refuse("an ellipsis has three dots", `found '.' for operand ${operand} that is not part of any ellipsis`);
    });
    at += part.length + 1;
    return found;
  });
  if (parts.length < count) refuse(`the equation names ${parts.length} operands, there are ${count}`, "more operands were provided than specified in the equation");
  return { inputs, arrow, output: arrow < 0 ? null : equation.slice(arrow + 2) };
}

const readOutput = (text, at, count) => letters(text, at, (twice, whole) => {
  if (twice) refuse("two ellipses in the output", "found '.' for output but an ellipsis (...) was already found");
  if (!whole) refuse("an ellipsis has three dots", "found '.' for output that is not part of any ellipsis (...)");
}, (letter, found) => {
  if (found.includes(letter)) refuse(`${letter} stands twice in the output`, `output subscript ${letter} appears more than once in the output`);
  if (!count.has(letter)) refuse(`${letter} of the output is in no operand`, `output subscript ${letter} does not appear in the equation for any input operand`);
});

/** The dims that `...` stands for get names of their own: "…0", "…1" and so on, right-aligned. */
const dotted = (index) => `…${index}`;
const spelled = (names) => names.map((name) => (name === dotted(0) ? ELLIPSIS : name.startsWith("…") ? "" : name)).join("");

function parse(equation, shapes) {
  const { inputs, arrow, output } = read(equation, shapes.length);
  const count = new Map();
  let wide = 0;
  inputs.forEach((labels, operand) => {
    const rank = shapes[operand].length;
    const own = labels.filter((label) => label !== ELLIPSIS);
    const has = own.length !== labels.length;
    if (has) wide = Math.max(wide, rank - own.length);
    for (const label of own) count.set(label, (count.get(label) ?? 0) + 1);
    const name = "ABC"[operand];
    if (has && own.length > rank) refuse(`${name} has ${own.length} letters and only ${rank} dims`, `the number of subscripts in the equation (${own.length}) is more than the number of dimensions (${rank}) for operand ${operand}`);
    if (!has && own.length !== rank) refuse(`${name} has ${own.length} ${own.length === 1 ? "letter" : "letters"} for ${rank} ${rank === 1 ? "dim" : "dims"}`, `the number of subscripts in the equation (${own.length}) does not match the number of dimensions (${rank}) for operand ${operand} and no ellipsis was given`);
  });
  const dots = Array.from({ length: wide }, (_, index) => dotted(index));
  const out = output === null
    ? [...dots, ...ordered([...count.keys()].filter((label) => count.get(label) === 1))]
    : readOutput(output, arrow + 2, count).flatMap((label) => (label === ELLIPSIS ? dots : [label]));
  const summed = [...dots.filter((label) => !out.includes(label)), ...ordered(count.keys()).filter((label) => !out.includes(label))];
  const operands = inputs.map((labels, operand) => labels.flatMap((label) => {
    if (label !== ELLIPSIS) return [label];
    const own = shapes[operand].length - (labels.length - 1);
    return dots.slice(wide - own);
  }));
  return { operands, out, summed, implicit: output === null };
}

/** Repeated letters become diagonals, missing ones dims of size 1, and all operands get one order. */
function align(views, labels, order, sizes, seen) {
  return views.map((given, operand) => {
    let { shape, strides } = given;
    const place = new Map();
    let dim = 0;
    labels[operand].forEach((label, index) => {
      const size = shape[dim];
      const name = "ABC"[operand];
      if (place.has(label)) {
        const other = place.get(label);
        if (shape[other] !== size) refuse(`${label} stands twice in ${name}, with sizes ${shape[other]} and ${size}`, `subscript ${label} is repeated for operand ${operand} but the sizes don't match, ${size} != ${shape[other]}`);
        strides = strides.map((step, at) => (at === other ? step + strides[dim] : step)).toSpliced(dim, 1);
        shape = shape.toSpliced(dim, 1);
        return;
      }
      if (size !== 1) {
        const before = sizes.get(label) ?? 1;
        if (before !== 1 && before !== size) {
          if (label.startsWith("…")) refuse(`${before} and ${size} under ... do not broadcast`, `dimension ${dim} covered by ellipsis in operand ${operand}has size ${size} which does not broadcast with previously seen ellipsis with size ${before} for the respective dimension`);
          refuse(`${label} is ${before} before and ${size} in ${name}`, `subscript ${label} has size ${size} for operand ${operand} which does not broadcast with previously seen size ${before}`);
        }
        sizes.set(label, size);
        seen.set(label, (seen.get(label) ?? 0) + 1);
      }
      place.set(label, dim);
      dim += 1;
    });
    const full = { shape: [...shape], strides: [...strides] };
    const permutation = order.map((label) => {
      if (place.has(label)) return place.get(label);
      full.shape.push(1);
      full.strides.push(1);
      return full.shape.length - 1;
    });
    return permute(full, permutation);
  });
}

/** Left times right, summed over `sum` dims, as one bmm or one mul. */
function pair(left, right, sum, order, names, steps) {
  if (!sum.length) {
    const made = elementwise([left, right]);
    steps.push({ on: "", op: `mul(${names.join(", ")})`, shape: made.shape, kernel: "mul", flops: numel(made.shape), read: touched(left) + touched(right), write: numel(made.shape) });
    return made;
  }
  const both = [], inLeft = [], inRight = [];
  let size = 1;
  left.shape.forEach((x, dim) => {
    const y = right.shape[dim];
    if (sum.includes(dim)) size *= x;
    else if (x !== 1 && y !== 1) both.push(dim);
    else if (x !== 1) inLeft.push(dim);
    else inRight.push(dim);
  });
  let [first, second, own, other] = [left, right, inLeft, inRight];
  let [one, two] = names;
  // Where all of the right's dims come first in the result, the operands change places.
  if (own.length && other.length && other.at(-1) < own[0]) {
    [first, second, own, other, one, two] = [second, first, other, own, two, one];
  }
  const span = (view, chosen) => numel(chosen.map((dim) => view.shape[dim]));
  const [batch, m, n] = [span(first, both), span(first, own), span(second, other)];
  const letter = (dims) => dims.map((dim) => order[dim]);
  /** permute and reshape to three dims; `kinds` are the dims that go into each. */
  const flatten = (view, kinds, shape, name, rest) => {
    const turned = permute(view, [...kinds.flat(), ...rest]);
    const flat = reshape(turned, shape);
    if (flat.copied) steps.push({ on: name, op: "permute(…).clone()", shape: turned.shape, copy: { on: name, elements: numel(turned.shape), read: touched(turned) } });
    steps.push({ on: name, op: `view${written(shape)}`, shape, free: true, groups: kinds.map((dims) => letter(dims.filter((dim) => view.shape[dim] !== 1))) });
    return flat;
  };
  const flatLeft = flatten(first, [both, own, sum], [batch, m, size], one, other);
  const flatRight = flatten(second, [both, sum, other], [batch, size, n], two, own);
  const done = [batch, m, n];
  steps.push({
    on: "", op: `bmm(${one}, ${two})`, shape: done, kernel: "bmm", flops: 2 * batch * m * size * n, read: touched(flatLeft) + touched(flatRight), write: numel(done),
    operands: [flatLeft.shape, flatRight.shape], groups: [both.filter((dim) => first.shape[dim] !== 1), own, other.filter((dim) => second.shape[dim] !== 1)].map(letter),
  });
  const open = [...both.map((dim) => first.shape[dim]), ...own.map((dim) => first.shape[dim]), ...sum.map(() => 1), ...other.map((dim) => second.shape[dim])];
  const back = [];
  [...both, ...own, ...sum, ...other].forEach((dim, at) => { back[dim] = at; });
  return permute(reshape(contiguous(done), open), back);
}

/** Sum dims of one operand before it meets the others, keeping them with size 1. */
function sumOut(view, dims, name, order, steps) {
  if (!dims.length) return view;
  const shape = view.shape.map((size, dim) => (dims.includes(dim) ? 1 : size));
  const said = dims.map((dim) => order[dim]).join("");
  steps.push({ on: name, op: `sum over ${said}`, shape, kernel: "sum", flops: numel(view.shape), read: touched(view), write: numel(shape) });
  return contiguous(shape);
}

/**
 * einsum(equation, *shapes): a refusal { why, said }, with the letters where only the sizes do not fit; or
 * { shape, out, summed, operands, sizes, implicit, steps }: letters of the result, letters summed away,
 * letters of each operand, their sizes, and what is done in order.
 */
export function einsum(equation, shapes) {
  try {
    return plan(equation, shapes);
  } catch (error) {
    if (error instanceof Refusal) return error.refusal;
    throw error;
  }
}

function plan(equation, shapes) {
  const { operands, out, summed, implicit } = parse(equation, shapes);
  const order = [...out, ...summed];
  const sizes = new Map();
  const seen = new Map();
  let views;
  try {
    views = align(shapes.map(contiguous), operands, order, sizes, seen);
  } catch (error) {
    if (error instanceof Refusal) Object.assign(error.refusal, { operands, out, summed, implicit });
    throw error;
  }
  const steps = [];
  operands.forEach((labels, operand) => {
    const twice = labels.filter((label, at) => labels.indexOf(label) !== at);
    if (twice.length) steps.push({ on: "ABC"[operand], op: `diagonal over ${[...new Set(twice)].join("")}`, shape: views[operand].shape.filter((_, dim) => labels.includes(order[dim])), free: true });
  });
  const names = shapes.map((_, operand) => "ABC"[operand]);
  while (views.length > 1) {
    const [a, b] = views.splice(0, 2);
    const [one, two] = names.splice(0, 2);
    const sum = [], left = [], right = [];
    for (let dim = out.length; dim < order.length; dim += 1) {
      const label = order[dim];
      const [inA, inB] = [a.shape[dim] !== 1, b.shape[dim] !== 1];
      if (inA && inB) {
        seen.set(label, seen.get(label) - 1);
        if (seen.get(label) === 1) { sum.push(dim); seen.set(label, 0); }
      } else if (seen.get(label) === 1 && (inA || inB)) {
        (inA ? left : right).push(dim);
        seen.set(label, 0);
      }
    }
    const made = pair(sumOut(a, left, one, order, steps), sumOut(b, right, two, order, steps), sum, order, [one, two], steps);
    views.unshift(made);
    names.unshift(one + two);
  }
  let shape = views[0].shape.slice(0, out.length);
  if (shapes.length === 1 && summed.length) {
    shape = sumOut(views[0], summed.map((_, at) => out.length + at), names[0], order, steps).shape.slice(0, out.length);
  }
  if (shapes.length > 1 && steps.at(-1).kernel === "bmm") steps.push({ on: "", op: `view as ${spelled(out) || "a number"}`, shape, free: true });
  if (!steps.length) steps.push({ on: "A", op: `permute to ${spelled(out) || "a number"}`, shape, free: true });
  return { shape, out, summed, operands, sizes: Object.fromEntries(order.map((label) => [label, sizes.get(label) ?? 1])), implicit, steps };
}
