// How the explorer says layouts: tuples, the arithmetic of an address, what breaks a view.

import { h } from "../explorer.js";
import { address, channelsLast, isChannelsLast, isContiguous, isDense, product, rowMajor, shared, viewed } from "./layout.js";
import { write } from "./ops.js";

export const BYTES = 4;

export const tuple = (list) => `(${list.join(", ")}${list.length === 1 ? "," : ""})`.replaceAll("-", "−");
export const subscript = (index) => `x[${index.join(", ") || "()"}]`;
export const count = (n, noun) => `${n} ${noun}${n === 1 ? "" : "s"}`;

export const copiedBytes = ({ size }) => count(product(size) * BYTES, "byte");

/** What the methods so far have copied, and which of them did. */
export function copies(steps) {
  const those = steps.filter(({ copied }) => copied);
  if (!those.length) return steps.length > 1 ? "Nothing: one storage for all." : "Nothing.";
  const total = those.reduce((sum, { layout }) => sum + product(layout.size) * BYTES, 0);
  return `${count(total, "byte")}, by ${those.map(({ op }) => write(op)).join(" and ")}: ${count(those.length + 1, "storage")}.`;
}

/** What somebody types for a size: "3, 4", "(3, 4)", "3x4". Null if those are not whole numbers. */
export function numbers(text) {
  const bare = text.trim().replaceAll("−", "-").replace(/^[([]|,?[)\]]$/g, "");
  const parts = bare.split(/[,x×\s]+/).filter((part) => part);
  return parts.every((part) => /^-?\d{1,4}$/.test(part)) ? parts.map(Number) : null;
}

/** The tensor as text that torch understands. */
export function python({ size, stride, offset }, cells, ops) {
  const whole = offset === 0 && cells === product(size) && stride.join() === rowMajor(size).join();
  const laid = whole ? size.length === 1 ? "" : `.reshape(${size.join(", ") || "()"})`
    : `.as_strided((${size.join(", ")}${size.length === 1 ? "," : ""}), (${stride.join(", ")}${size.length === 1 ? "," : ""}), ${offset})`;
  return `torch.arange(${cells}.)${laid}${ops.map(write).join("")}`;
}

/** The address of one element, written out; a line per item. */
export function arithmetic({ size, stride, offset }, index) {
  const cell = address({ stride, offset }, index);
  return [
    ["offset", ...index.map((_, d) => ` + index[${d}]·stride[${d}]`)],
    [`${offset}`, ...index.map((i, d) => [" + ", h("b", {}, i), `·${stride[d]}`])],
    size.length > 1 || offset && size.length ? [`${offset}`, ...index.map((i, d) => ` + ${i * stride[d]}`)] : null,
    [h("b", {}, `cell ${cell}`), `, bytes ${cell * BYTES} to ${cell * BYTES + BYTES - 1}`],
  ].filter(Boolean);
}

/** What can be said of the whole layout: [name, true or false or null, why]. */
export function flags(layout, cells) {
  const { size, stride } = layout;
  const wanted = rowMajor(size);
  const off = [...size.keys()].reverse().find((d) => size[d] !== 1 && stride[d] !== wanted[d]);
  const contiguous = isContiguous(layout);
  const twice = shared(layout).size;
  const still = size.findIndex((n, d) => n > 1 && stride[d] === 0);
  const list = [[
    "contiguous", contiguous,
    contiguous ? product(size) ? off === undefined && size.includes(1) && stride.join() !== wanted.join() ? "The stride of a dimension of size 1 is never used." : "Walking it in order goes from cell to cell." : "An empty tensor always is."
      : `Dimension ${off} has stride ${stride[off]}; in row-major order it would be ${wanted[off]}.`,
  ]];
  if (size.length === 4) {
    const channels = isChannelsLast(layout);
    list.push(["channels_last", channels, channels ? "The channels of one pixel lie side by side." : `That would be stride ${tuple(channelsLast(size))}: the channels of one pixel side by side.`]);
  }
  list.push(
    ["dense", isDense(layout), isDense(layout) ? "In some order of its dimensions it has no gaps and no overlap." : twice ? "It overlaps." : "There are gaps between its elements."],
    ["overlap", twice > 0, !twice ? "No cell is read by two indices." : `${count(twice, "cell")} ${twice === 1 ? "is" : "are"} read by several indices${still >= 0 ? `: dimension ${still} has stride 0` : ""}. Writing in place would write there more than once.`],
    ["reads", null, `${count(new Set(reached(layout)).size, "cell")} of ${cells}`],
  );
  return list;
}

function reached({ size, stride, offset }) {
  return size.reduce((list, n, d) => list.flatMap((cell) => Array.from({ length: n }, (_, i) => cell + i * stride[d])), [offset]);
}

/** Is `target` (without −1) a view? The answer in words, and which joint breaks it, if one does. */
export function answer(layout, target) {
  const { stride, broken, dim, parts } = viewed(layout, target);
  const shape = tuple(target);
  if (stride) {
    return { stride, parts, words: [h("b", {}, "A view."), ` ${shape} gets stride ${tuple(stride)}. reshape gives the same: nothing is copied.`] };
  }
  const { size, stride: steps } = layout;
  const taken = parts[0];
  const { from, to, numel, step, wanted } = broken;
  const run = from === to ? `dimension ${from}` : `dimensions ${from} to ${to}`;
  const joint = from > 0
    ? ` There the steps break: going on into dimension ${from - 1} moves ${count(steps[from - 1], "cell")}, but ${run} end${from === to ? "s" : ""} after ${numel} × ${step} = ${wanted}.`
    : "";
  const blame = taken.length === 1 ? `Target dimension ${dim}, of size ${target[dim]}, runs beyond ${run}, which`
    : `Target dimensions ${dim} to ${taken.at(-1)}, ${product(taken.map((v) => target[v]))} elements together, run beyond ${run}, which`;
  return {
    broken, parts,
    words: [h("b", {}, "No view."), ` ${blame} ${from === to ? "has" : "have"} ${numel}.${joint} view raises; reshape copies ${product(size) * BYTES} bytes into a new storage.`],
  };
}
