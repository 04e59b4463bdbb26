// The storage as a strip of cells, the tensor as a grid, and one element in both, with its address.

import { h, put } from "../explorer.js";
import { address, indices, product, rowMajor } from "./layout.js";
import { write } from "./ops.js";
import { hops } from "./hops.js";
import { BYTES, arithmetic, count, subscript, tuple } from "./words.js";

/** Buttons in one stop of Tab: arrows move by one or by `across()`. */
function rove(element, across) {
  element.addEventListener("keydown", (event) => {
    const cells = [...element.querySelectorAll("button")];
    const at = cells.indexOf(event.target);
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, ArrowUp: at - across(), ArrowDown: at + across(), Home: 0, End: cells.length - 1 }[event.key];
    if (at < 0 || to === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    cells[to]?.focus();
  });
}

/** Words between the numbers that a button shows: with them its name is a sentence. */
const said = (words = "") => h("span", { class: "ut-unseen" }, words);

/** The colour of each value: the index along the first dimension of the first tensor that has two. */
function tintsOf({ layout }) {
  const dim = Math.max(0, layout.size.findIndex((n) => n > 1));
  const tints = [];
  for (const index of indices(layout.size)) tints[address(layout, index)] ??= `r${(index[dim] ?? 0) % 3}`;
  return tints;
}

const some = (list, most) => list.length > most ? `${list.slice(0, most).join(", ")} and ${list.length - most} more` : list.join(", ");

/**
 * Three panels. `pick(place)` is called when somebody chooses an element, by its place in order.
 * show(steps, step, place): the tensor after that step; mark(place): point at another for a while.
 */
export function memory(pick) {
  const state = { at: 0, places: [], cellOf: [], readers: new Map(), elements: [] };

  const storageHead = h("p", { class: "ut-head" });
  const before = h("div", { class: "ut-before" });
  const way = h("div", {});
  const strip = h("div", { class: "ut-strip", role: "group", "aria-label": "Storage, cell by cell" });
  const storage = h("section", { class: "ut-panel", "aria-label": "Storage" }, storageHead, before, way, strip,
    h("p", { class: "ut-soft" }, "Above a cell its number, below it when it is read: elements count from 0, the last dimension fastest. Dashed: not read. Double: read more than once."));

  const tensorHead = h("p", { class: "ut-head" });
  const grid = h("div", { class: "ut-grids", role: "group", "aria-label": "Elements by index" });
  const tensor = h("section", { class: "ut-panel", "aria-label": "Elements" }, tensorHead, grid);

  const name = h("p", { class: "ut-name" });
  const sum = h("ol", { class: "ut-sum" });
  const also = h("p", { class: "ut-soft" });
  const dims = h("table", { class: "ut-dims" });
  const element = h("section", { class: "ut-panel", "aria-label": "Address of the element" }, name, sum, also, dims);

  rove(strip, () => state.columns);
  rove(grid, () => state.layout.size.at(-1) ?? 1);
  for (const part of [grid, strip]) part.addEventListener("mouseleave", () => mark(state.at));

  function show(steps, step, at) {
    const { layout, values } = steps[step];
    const places = indices(layout.size);
    const cellOf = places.map((index) => address(layout, index));
    const readers = new Map();
    cellOf.forEach((cell, place) => readers.set(cell, [...readers.get(cell) ?? [], place]));
    Object.assign(state, { layout, values, places, cellOf, readers, at, tints: tintsOf(steps[0]) });
    showStorage(steps, step);
    showGrid();
    showDims();
    mark(at);
  }

  function showStorage(steps, step) {
    const { values, readers, places, tints } = state;
    const { copied, op } = steps[step];
    const copies = steps.slice(0, step + 1).filter((one) => one.copied).length;
    const letter = (n) => String.fromCharCode(65 + n);
    put(storageHead, h("b", {}, `Storage ${letter(copies)}`), ` ${count(values.length, "cell")} of ${BYTES} bytes`,
      copied ? `, new: ${write(op)} copied` : step ? ", not moved" : "");
    const old = copied ? steps[step - 1].values : [];
    const width = way.clientWidth || 300;
    state.columns = width > 620 ? 16 : width > 528 ? 12 : width > 352 ? 8 : 6;
    state.pitch = Math.min(46, Math.floor(width / state.columns));
    for (const part of [strip, before]) {
      part.style.setProperty("--pitch", `${state.pitch}px`);
      part.style.setProperty("--columns", Math.min(state.columns, Math.max(values.length, old.length, 1)));
    }
    put(before, copied ? [h("p", { class: "ut-soft" }, `Storage ${letter(copies - 1)}, before`),
      h("div", { class: "ut-strip", "aria-hidden": "true" }, old.map((value) => h("span", {}, h("b", { class: `ut-cell ${tints[value] ?? ""}` }, value))))] : null);
    while (strip.children.length > values.length) strip.lastChild.remove();
    while (strip.children.length < values.length) strip.append(stripCell(strip.children.length));
    [...strip.children].forEach((button, cell) => {
      const [, number, , box, seen, order, where] = button.children;
      const read = readers.get(cell) ?? [];
      number.textContent = cell;
      box.textContent = values[cell];
      box.className = `ut-cell ${read.length ? tints[values[cell]] ?? "" : "unread"} ${read.length > 1 ? "twice" : ""}`;
      order.textContent = read.length > 2 ? `×${read.length}` : read.join(",");
      seen.textContent = read.length > 2 ? "and is read" : read.length ? "and is read at" : "and is not read";
      where.textContent = read.length ? `as ${some(read.map((place) => subscript(places[place])), 4)}` : "";
    });
  }

  function stripCell(cell) {
    const first = () => state.readers.get(cell)?.[0];
    const choose = () => { if (first() !== undefined && state.cellOf[state.at] !== cell) pick(first()); };
    return h("button", {
      type: "button", onfocus: choose, onclick: choose,
      onmouseenter: () => { if (first() !== undefined) mark(first()); },
    }, said("cell"), h("small", {}), said("holds"), h("b", {}), said(), h("small", {}), said());
  }

  function showGrid() {
    const { layout: { size }, values, tints, cellOf, places } = state;
    put(tensorHead, h("b", {}, "Tensor"), ` size ${tuple(size)}`);
    const key = `${size.join()}.`;
    if (grid.dataset.key !== key) {
      grid.dataset.key = key;
      put(grid, blocks(size));
      state.elements = [...grid.querySelectorAll("button")];
    }
    state.elements.forEach((button, place) => {
      const cell = cellOf[place];
      const [index, value, , where] = button.children;
      index.textContent = `${subscript(places[place])} holds`;
      value.textContent = values[cell];
      where.textContent = `@${cell}`;
      button.className = `ut-cell ${tints[values[cell]] ?? ""}`;
    });
  }

  /** Tables of two dimensions, one for each index of the dimensions before them. */
  function blocks(size) {
    if (!product(size)) return h("p", { class: "ut-soft" }, `No elements: there is a 0 in size ${tuple(size)}.`);
    const [rows, columns] = [size.at(-2) ?? 1, size.at(-1) ?? 1];
    const numbers = (label) => size.length ? h("i", { "aria-hidden": "true" }, label) : null;
    let place = 0;
    return indices(size.slice(0, -2)).map((lead) => h("div", {},
      lead.length ? h("p", { class: "ut-soft" }, `x[${lead.join(", ")}, :, :]`) : null,
      h("div", { class: "ut-block", style: `--columns:${columns}`, "data-dims": Math.min(size.length, 2) },
        numbers(""), Array.from({ length: columns }, (_, j) => numbers(j)),
        Array.from({ length: rows }, (_, i) => [
          numbers(size.length > 1 ? i : ""), Array.from({ length: columns }, () => gridCell(place++))]))));
  }

  function gridCell(place) {
    const choose = () => { if (state.at !== place) pick(place); };
    return h("button", {
      type: "button", onfocus: choose, onclick: choose, onmouseenter: () => mark(place),
    }, said(), h("b", {}), said("in cell"), h("small", {}));
  }

  function showDims() {
    const { size, stride } = state.layout;
    const wanted = rowMajor(size);
    const fits = (d) => size[d] === 1 || stride[d] === wanted[d] || !product(size);
    const heads = ["dim", "size", "stride", "one step", "row-major"];
    put(dims, h("thead", {}, h("tr", {}, heads.map((head) => h("th", { scope: "col" }, head)))),
      h("tbody", {}, size.map((n, d) => h("tr", {}, h("th", { scope: "row" }, d), h("td", {}, n), h("td", {}, h("b", {}, stride[d])),
        h("td", {}, stride[d] ? `${stride[d] * BYTES} bytes on` : "stays"), h("td", {}, wanted[d], fits(d) ? " ✓" : " ✗")))));
    dims.hidden = !size.length;
  }

  /** Point at one element: in the grid, in the strip, and in words. */
  function mark(place) {
    const { layout, places, cellOf, elements, readers } = state;
    const cell = cellOf[place];
    elements.forEach((button, at) => {
      button.classList.toggle("here", at === place);
      button.classList.toggle("also", at !== place && cellOf[at] === cell);
      button.tabIndex = at === state.at ? 0 : -1;
    });
    const cells = [...strip.children];
    const chosen = cellOf[state.at] ?? 0;
    cells.forEach((button, at) => {
      button.classList.toggle("here", at === cell);
      button.tabIndex = at === chosen ? 0 : -1;
    });
    if (!places.length) {
      for (const part of [way, sum, also]) put(part);
      put(name, "Nothing to read");
      return;
    }
    const single = cells.length <= state.columns;
    const width = way.clientWidth || 300;
    const pitch = single ? state.pitch : Math.min(state.pitch, (width - 8) / cells.length);
    put(way, hops(layout, places[place], { cells: cells.length, width, ticks: single ? 0 : state.columns, place: (at) => (at + 0.5) * pitch }));
    put(name, subscript(places[place]));
    put(sum, arithmetic(layout, places[place]).map((line) => h("li", {}, line)));
    const others = readers.get(cell).filter((other) => other !== place);
    put(also, others.length ? `The same cell: ${some(others.map((other) => subscript(places[other])), 5)}.` : "");
  }

  return { storage, tensor, element, show, mark };
}
