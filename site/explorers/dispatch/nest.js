// The second panel: sizes and strides of two operands, and the loops that a kernel makes of them.

import { h, put } from "../explorer.js";
import { plan } from "./loops.js";

const TRIES = [
  ["both contiguous", "2x3x4", "12,4,1", "12,4,1"], ["one transposed", "3x4", "4,1", "1,3"], ["both transposed", "3x4", "1,3", "1,3"],
  ["plus a row", "3x4", "4,1", "0,1"], ["plus a column", "3x4", "4,1", "1,0"], ["channels last", "2x3x4x5", "60,1,15,3", "60,1,15,3"], ["every other column", "3x4", "8,2", "4,1"],
];
const NAMES = ["result", "a", "b"];
const LETTERS = "ijklm";

/** A stride times a loop variable, as Python would say it. */
const index = (strides) => strides.map(([stride, name]) => (stride === 1 ? name : stride ? `${stride}*${name}` : "")).filter(Boolean).join(" + ") || "0";

/** The loops as a program, the slowest outside. */
export function program(loops) {
  const outer = [...loops].reverse();
  const at = (which) => index(outer.map(({ strides }, i) => [strides[which], LETTERS[i]]));
  const rows = outer.map(({ size }, i) => `${"    ".repeat(i)}for ${LETTERS[i]} in range(${size}):`);
  return [...rows, `${"    ".repeat(outer.length)}result[${at(0)}] = a[${at(1)}] + b[${at(2)}]`].join("\n");
}

export function loopsPanel({ read, give }) {
  const fields = [["size", "Sizes"], ["a", "Strides of a"], ["b", "Strides of b"]].map(([name, label]) => {
    const input = h("input", { id: `dp-${name}`, type: "text", autocomplete: "off", autocapitalize: "off", spellcheck: "false", "aria-describedby": "dp-help", oninput: () => take() });
    return { name, input, element: h("span", {}, h("label", { for: `dp-${name}` }, label), input) };
  });
  const help = h("p", { id: "dp-help", class: "ut-soft" });
  const tries = h("p", { class: "ut-tries", role: "group", "aria-label": "Operands to try" }, TRIES.map(([text, size, a, b]) => h("button", { type: "button", class: "ut-button", onclick: () => {
    const { size: n, a: first, b: second } = read({ size, a, b });
    give({ size: n, a: first, b: second });
  } }, text)));
  const operands = h("section", { class: "ut-panel dp-operands", "aria-label": "The operands" }, tries, h("p", { class: "dp-fields" }, fields.map(({ element }) => element)), help);
  const [code, said, tables] = [h("pre", { class: "dp-code", tabindex: 0, role: "group", "aria-label": "The loops" }), h("p", { class: "dp-said" }), h("div", { class: "dp-tables" })];
  const nest = h("section", { class: "ut-panel dp-nest", "aria-label": "The plan" }, said, code, tables);

  function take() {
    const given = read(Object.fromEntries(fields.map(({ name, input }) => [name, input.value.replaceAll(" ", "")])));
    mark(!given);
    if (given) give({ size: given.size, a: given.a, b: given.b });
  }
  function mark(bad) {
    for (const { input } of fields) input.setAttribute("aria-invalid", bad);
    put(help, bad ? "✗ As many strides as sizes, please: sizes from 1 to 64 as 3x4, strides as 4,1." : "A stride of 0 is a dim along which an operand is broadcast.");
  }

  const grid = (title, dims, sizes, strides) => h("table", { class: "dp-table" }, h("caption", {}, title), h("tbody", {},
    [["dim", dims], ["size", sizes], ...NAMES.map((name, i) => [name, strides[i]])].filter(([, row]) => row).map(([name, row]) => h("tr", {}, h("th", { scope: "row" }, name), row.map((n) => h("td", {}, `${n}`))))));

  const planned = ({ size, a, b }) => plan([{ size, stride: a }, { size, stride: b }]);

  function words(state) {
    const { strides, loops } = planned(state);
    const n = loops.length;
    return `${state.size.length} dims, ${n === 1 ? "one loop" : `${n} loops`}. The result has strides (${strides[0].join(", ")}).`;
  }

  function show(state) {
    const { size, perm, strides, loops } = planned(state);
    const shown = { size: size.join("x"), a: `${state.a}`, b: `${state.b}` };
    let held = false;
    for (const { name, input } of fields) {
      if (document.activeElement === input) held = true;
      else input.value = shown[name];
    }
    if (!held) mark(false);
    put(said, words(state));
    put(code, program(loops));
    const pick = (row) => perm.map((d) => row[d]);
    put(tables, grid("As given", size.map((_, d) => d), size, [null, ...strides.slice(1)]), grid("Fastest first", perm, pick(size), strides.map(pick)),
      grid("Merged", loops.map(({ dims }) => dims.join("·")), loops.map((one) => one.size), NAMES.map((_, i) => loops.map((one) => one.strides[i]))));
  }

  return { elements: [operands, nest], show, say: words };
}
