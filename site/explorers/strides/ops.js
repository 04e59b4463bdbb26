// What tensor methods do to a layout: parse one as it is written in Python, apply it, write it back.
// An operation is { name, args }; one that copies says which element of the source each new one is.

import { address, channelsLast, indices, inferred, isChannelsLast, isContiguous, preserved, product, raveled, reach, rowMajor, unraveled, viewed } from "./layout.js";

const refuse = (sentence) => { throw new Error(sentence); };

/** A dimension from 0 on; `room` more may be named, for a new one. */
function dim(d, size, room = 0) {
  const dims = Math.max(size.length + room, 1);
  if (!Number.isInteger(d) || d < -dims || d >= dims) refuse(`There is no dimension ${d}: they go from ${-dims} to ${dims - 1}.`);
  return d < 0 ? d + dims : d;
}

const without = (list, ...at) => list.filter((_, d) => !at.includes(d));
const replaced = (list, at, value) => list.map((old, d) => d === at ? value : old);
const needs = (count, args, usage) => { if (args.length !== count) refuse(`It takes ${usage}.`); };

function slice(layout, d, start, stop, step) {
  const { size, stride, offset } = layout;
  if (step < 1) refuse("A step is at least 1: a tensor's strides are not negative.");
  const clamp = (i) => Math.min(Math.max(i < 0 ? i + size[d] : i, 0), size[d]);
  const from = clamp(start ?? 0);
  const to = Math.max(clamp(stop ?? size[d]), from);
  return {
    size: replaced(size, d, Math.ceil((to - from) / step)), stride: replaced(stride, d, stride[d] * step),
    offset: offset + from * stride[d],
  };
}

function select({ size, stride, offset }, d, index) {
  if (!size.length) refuse("A tensor without dimensions has nothing to select from.");
  if (index < -size[d] || index >= size[d]) refuse(`Index ${index} is outside of dimension ${d} of size ${size[d]}.`);
  const at = index < 0 ? index + size[d] : index;
  return { size: without(size, d), stride: without(stride, d), offset: offset + at * stride[d] };
}

function permute({ size, stride, offset }, dims) {
  const order = dims.map((d) => dim(d, size));
  if (order.length !== size.length || new Set(order).size !== order.length) refuse("permute names each dimension once.");
  return { size: order.map((d) => size[d]), stride: order.map((d) => stride[d]), offset };
}

function transpose(layout, a, b) {
  const [first, second] = [dim(a, layout.size), dim(b, layout.size)];
  if (!layout.size.length) return layout;
  return permute(layout, [...layout.size.keys()].map((d) => d === first ? second : d === second ? first : d));
}

function unsqueeze({ size, stride, offset }, at) {
  const d = dim(at, size, 1);
  const step = d < size.length ? size[d] * stride[d] : 1;
  return { size: [...size.slice(0, d), 1, ...size.slice(d)], stride: [...stride.slice(0, d), step, ...stride.slice(d)], offset };
}

function expand({ size, stride, offset }, target) {
  const fresh = target.length - size.length;
  if (fresh < 0) refuse(`expand keeps the ${size.length} dimensions and may add some in front.`);
  const result = { size: [], stride: [], offset };
  for (let d = target.length - 1; d >= 0; d -= 1) {
    const old = d >= fresh ? size[d - fresh] : 1;
    if (d < fresh && target[d] < 0) refuse("A new dimension has no size to keep: −1 is not allowed there.");
    const wanted = target[d] === -1 ? old : target[d];
    if (wanted < 0) refuse("A size cannot be negative.");
    if (wanted !== old && old !== 1) refuse(`Dimension ${d - fresh} has size ${old}; only size 1 expands.`);
    const kept = d >= fresh ? stride[d - fresh] : size.length ? result.size[d + 1] * result.stride[d + 1] : 0;
    result.size[d] = wanted;
    result.stride[d] = wanted === old ? kept : 0;
  }
  return result;
}

function unfold(layout, at, length, step) {
  const { size, stride, offset } = layout;
  if (!size.length) refuse("There is no dimension to unfold.");
  const d = dim(at, size);
  if (length < 0 || length > size[d]) refuse(`A window of ${length} does not fit into dimension ${d} of size ${size[d]}.`);
  if (step < 1) refuse("A step is at least 1.");
  return {
    size: [...replaced(size, d, Math.floor((size[d] - length) / step) + 1), length],
    stride: [...replaced(stride, d, stride[d] * step), stride[d]], offset,
  };
}

function diagonal({ size, stride, offset }, shift = 0, first = 0, second = 1) {
  const [a, b] = [dim(first, size), dim(second, size)];
  if (a === b || size.length < 2) refuse("A diagonal needs two dimensions.");
  const length = Math.max(shift >= 0 ? Math.min(size[a], size[b] - shift) : Math.min(size[a] + shift, size[b]), 0);
  const start = length === 0 ? 0 : shift >= 0 ? shift * stride[b] : -shift * stride[a];
  return {
    size: [...without(size, a, b), length], stride: [...without(stride, a, b), stride[a] + stride[b]], offset: offset + start,
  };
}

function index(layout, parts) {
  const named = parts.filter((part) => part !== null && part !== "...").length;
  if (parts.filter((part) => part === "...").length > 1) refuse("Only one … is possible.");
  if (named > layout.size.length) refuse(`Too many indices: ${named} for ${layout.size.length} dimensions.`);
  let d = 0;
  for (const part of parts) {
    if (part === null) layout = unsqueeze(layout, d++);
    else if (part === "...") d += layout.size.length - d - parts.slice(parts.indexOf(part) + 1).filter((p) => p !== null).length;
    else if (typeof part === "number") layout = select(layout, d, part);
    else layout = slice(layout, d++, part.start, part.stop, part.step ?? 1);
  }
  return layout;
}

/** A copy: a storage of its own. `source(i)` is the element of the original that lands at index i. */
const copy = (size, stride, source = (i) => i) => ({ size, stride, offset: 0, copied: true, source });

function flip(layout, args) {
  const dims = args.map((d) => dim(d, layout.size));
  if (new Set(dims).size !== dims.length) refuse("flip names each dimension once.");
  return copy(layout.size, preserved(layout), (i) => i.map((at, d) => dims.includes(d) ? layout.size[d] - 1 - at : at));
}

function view(layout, args) {
  const target = inferred(args, product(layout.size));
  const { stride } = viewed(layout, target);
  return stride ? { size: target, stride, offset: layout.offset } : refuse("view cannot do this without a copy. The panel “view or copy” shows what breaks.");
}

function reshape(layout, args) {
  const target = inferred(args, product(layout.size));
  const { stride } = viewed(layout, target);
  if (stride) return { size: target, stride, offset: layout.offset };
  return copy(target, rowMajor(target), (i) => unraveled(raveled(i, target), layout.size));
}

function flatten(layout, from = 0, to = -1) {
  const { size } = layout;
  const [a, b] = [dim(from, size), dim(to, size)];
  if (a > b) refuse("flatten goes from a dimension to a later one.");
  if (!size.length) return reshape(layout, [1]);
  if (a === b) return layout;
  return reshape(layout, [...size.slice(0, a), product(size.slice(a, b + 1)), ...size.slice(b + 1)]);
}

function repeat(layout, times) {
  const { size } = layout;
  const fresh = times.length - size.length;
  if (fresh < 0) refuse(`repeat takes at least ${size.length} counts.`);
  if (times.some((n) => n < 0)) refuse("A count cannot be negative.");
  const padded = [...Array(fresh).fill(1), ...size];
  const target = padded.map((n, d) => n * times[d]);
  return copy(target, rowMajor(target), (i) => i.slice(fresh).map((at, d) => at % size[d]));
}

function inChannelsLast(layout) {
  if (layout.size.length !== 4) refuse("channels_last is for four dimensions: batch, channels, height, width.");
  return isChannelsLast(layout) ? layout : copy(layout.size, channelsLast(layout.size));
}

const METHODS = {
  transpose: (x, a) => { needs(2, a, "two dimensions"); return transpose(x, ...a); },
  permute: (x, a) => permute(x, a),
  narrow(x, a) {
    needs(3, a, "a dimension, a start and a length");
    if (!x.size.length) refuse("A tensor without dimensions cannot be narrowed.");
    const d = dim(a[0], x.size);
    const start = a[1] < 0 ? a[1] + x.size[d] : a[1];
    if (start < 0 || a[2] < 0 || start + a[2] > x.size[d]) refuse(`Dimension ${d} has only the indices 0 to ${x.size[d] - 1}.`);
    return slice(x, d, start, start + a[2], 1);
  },
  select: (x, a) => { needs(2, a, "a dimension and an index"); return select(x, dim(a[0], x.size), a[1]); },
  expand: (x, a) => expand(x, a),
  unfold: (x, a) => { needs(3, a, "a dimension, a length and a step"); return unfold(x, ...a); },
  diagonal: (x, a) => diagonal(x, ...a),
  unsqueeze: (x, a) => { needs(1, a, "one dimension"); return unsqueeze(x, a[0]); },
  squeeze(x, a) {
    if (a.length > 1) refuse("It takes one dimension or none.");
    const dims = a.length ? a.map((d) => dim(d, x.size)) : [...x.size.keys()];
    const gone = dims.filter((d) => x.size[d] === 1);
    return { size: without(x.size, ...gone), stride: without(x.stride, ...gone), offset: x.offset };
  },
  flip,
  view,
  reshape,
  flatten: (x, a) => flatten(x, ...a),
  repeat,
  contiguous: (x) => isContiguous(x) ? x : copy(x.size, rowMajor(x.size)),
  channels_last: inChannelsLast,
  clone: (x) => copy(x.size, preserved(x)),
  t: (x) => x.size.length > 2 ? refuse("t() is for at most two dimensions.") : x.size.length === 2 ? transpose(x, 0, 1) : x,
  index,
};

const LISTS = new Set(["view", "reshape", "permute", "expand", "repeat", "flip"]);

const part = (text) => {
  if (text === "None") return null;
  if (/^\.{3}$|^…$/.test(text)) return "...";
  if (/^-?\d+$/.test(text)) return Number(text);
  const found = text.match(/^(-?\d+)?:(-?\d+)?(?::(-?\d+)?)?$/);
  if (!found) refuse(`“${text}” is no index that gives a view: numbers, slices, None and … are.`);
  const [start, stop, step] = found.slice(1).map((n) => n === undefined ? null : Number(n));
  return { start, stop, step };
};

/** What somebody types: "x.transpose(0, 1)", "view(-1, 2)", "[:, ::2]", "T". Throws a sentence. */
export function parse(typed) {
  const text = typed.replaceAll("−", "-").replace(/\s+/g, "").replace(/^x(?=[.[])/, "").replace(/^\./, "");
  if (/^\[.*\]$/.test(text)) return { name: "index", args: text.slice(1, -1).split(",").filter((p) => p).map(part) };
  if (text === "T") return { name: "t", args: [] };
  if (text === "mT") return { name: "transpose", args: [-2, -1] };
  const [, name, inside] = text.match(/^(\w+)\((.*)\)$/) ?? refuse("Write a method with its arguments, such as transpose(0, 1), or an index, such as [:, ::2].");
  if (/channels_last/.test(inside)) return { name: "channels_last", args: [] };
  if (!Object.hasOwn(METHODS, name) || name === "index") refuse(`${name} is not one of the methods here: ${Object.keys(METHODS).filter((n) => n !== "index").join(", ")}.`);
  if (!inside && LISTS.has(name)) refuse(`${name} needs a list of numbers; an empty one is ${name}(()).`);
  const args = inside.replace(/\w+=/g, "").replace(/[()[\]]/g, "").split(",").filter((p) => p).map((p) => {
    if (!/^-?\d+$/.test(p)) refuse(`“${p}” is no whole number.`);
    return Number(p);
  });
  return { name, args };
}

/** The methods of a chain, as typed: "x.transpose(0, 1)[1:].view(-1)" has three. */
export function chain(text) {
  const links = [""];
  let depth = 0;
  for (const letter of text.trim().replace(/^x\s*(?=[.[])/, "")) {
    if (depth === 0 && (letter === "." || letter === "[") && links.at(-1).trim()) links.push("");
    if ("([".includes(letter)) depth += 1;
    if (")]".includes(letter)) depth -= 1;
    links.push(links.pop() + letter);
  }
  return links.map((link) => link.trim());
}

const written = (p) => p === null ? "None" : typeof p === "object"
  ? `${p.start ?? ""}:${p.stop ?? ""}${p.step === null ? "" : `:${p.step}`}` : String(p);

/** As Python has it, to stand after a tensor. */
export function write({ name, args }) {
  if (name === "index") return `[${args.map(written).join(", ")}]`;
  if (name === "channels_last") return ".contiguous(memory_format=torch.channels_last)";
  return `.${name}(${args.length || !LISTS.has(name) ? args.join(", ") : "()"})`;
}

/** Shorter, of letters that an address leaves as they are; and back. */
export function pack(op) {
  const parts = op.name === "index" ? op.args.map((p) => p === "..." ? "rest" : written(p).replaceAll(":", "to")) : op.args;
  return [op.name.replace("_", "-"), ...parts].join(".");
}

export function unpack(text) {
  const [name, ...parts] = text.split(".");
  if (name !== "index") return parse(name === "channels-last" ? "contiguous(channels_last)" : `${name}((${parts}))`);
  return parse(`[${parts.map((p) => p === "rest" ? "..." : p.replaceAll("to", ":"))}]`);
}

/** The layout after one operation, with `copied` and `source` if it has a storage of its own. */
export const apply = (layout, { name, args }) => METHODS[name](layout, args);

export const MOST = { dims: 6, elements: 256, cells: 128 };

/** Why a layout over so many cells cannot be shown; null if it can. */
export function refused(layout, cells) {
  if (layout.size.length > MOST.dims) return `More than ${MOST.dims} dimensions do not fit on this page.`;
  if (product(layout.size) > MOST.elements) return `${product(layout.size)} elements: more than ${MOST.elements} do not fit on this page.`;
  if (cells > MOST.cells) return `${cells} cells: more than ${MOST.cells} do not fit on this page.`;
  const needed = reach(layout);
  return needed > cells ? `That reaches cell ${needed - 1}, and the storage ends with cell ${cells - 1}. Give it ${needed} cells.` : null;
}

/** The first tensor: every cell holds its own number. */
export const begin = (layout, cells) => ({ layout, values: Array.from({ length: cells }, (_, i) => i), copied: false });

/** One step further: the layout, what the cells of its storage hold, whether that was copied. */
export function next({ layout, values }, op) {
  const { copied = false, source, ...result } = apply(layout, op);
  const sentence = refused(result, copied ? reach(result) : values.length);
  if (sentence) refuse(sentence);
  if (!copied) return { op, layout: result, values, copied };
  const moved = [];
  for (const i of indices(result.size)) moved[address(result, i)] = values[address(layout, source(i))];
  return { op, layout: result, values: moved, copied };
}

/** From a tensor to the tensors that the methods make of it, up to the first that refuses. */
export function history({ size, stride, offset, cells, ops }) {
  const steps = [begin({ size, stride, offset }, cells)];
  for (const op of ops) {
    try {
      steps.push(next(steps.at(-1), op));
    } catch {
      break;
    }
  }
  return steps;
}
