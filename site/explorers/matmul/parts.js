// The parts of the page: dims under each other, the chosen element, what runs, and who takes the shapes.

import { h, put } from "../explorer.js";
import { equationOf, letters } from "./axes.js";
import { einsum } from "./einsum.js";
import { drawProduct } from "./product.js";
import { FUNCTIONS } from "./products.js";
import { numel, written } from "./views.js";
import { DTYPES, KINDS, bytes, count, letterOf } from "./words.js";

const STATES = {
  stretched: "stretched", absent: "missing, stretched", ghost: "added", dropped: "removed again", gone: "summed away",
  diagonal: "diagonal", clash: "does not fit",
};

/** The table: one column per index, a row per operand and one for the result. */
export function alignment({ axes, rows }, { plan }) {
  const letter = (axis) => h("th", { scope: "col", class: KINDS[axis.kind].look }, h("b", {}, axis.kind === "ghost" ? "+" : letterOf(axis.letter)));
  const holds = (cell) => !["none", "dropped", "gone"].includes(cell.state);
  const body = rows.map((row, at) => h("tr", {}, h("th", { scope: "row" }, row.name), row.cells.map((cell, column) => {
    const axis = axes[column];
    const later = rows.slice(at + 1, -1).some((other) => holds(other.cells[column]));
    const linked = axis.kind === "sum" && at < rows.length - 1 && later && rows.slice(0, at + 1).some((other) => holds(other.cells[column]));
    const said = STATES[cell.state];
    return h("td", { class: `${KINDS[axis.kind].look} ${cell.state}${linked ? " linked" : ""}` },
      cell.state === "none" && !linked ? null : h("span", {}, h("b", {}, cell.text), said ? h("em", { class: ["stretched", "absent", "diagonal", "clash", "ghost", "dropped"].includes(cell.state) ? "" : "ut-unseen" }, said) : null));
  })));
  const foot = h("tr", { class: "kinds" }, h("td", {}), axes.map((axis) => h("td", { class: KINDS[axis.kind].look }, KINDS[axis.kind].name)));
  if (!axes.length) return h("p", { class: "ut-soft" }, "No dims: numbers only.");
  return [
    h("div", { class: "mm-both" }, h("div", { class: "mm-scroll" }, h("table", { class: "mm-table", "aria-label": "Dims of operands and result under each other" }, h("thead", {}, h("tr", {}, h("td", {}), axes.map(letter))), h("tbody", {}, body), h("tfoot", {}, foot))), legend(axes)),
    plan.implicit ? h("p", { class: "ut-soft" }, "No arrow: the result has the letters that stand once, capitals first, in alphabetical order: ", h("code", {}, `->${plan.out.map((name) => (name.startsWith("…") ? "" : name)).join("")}`), plan.out.some((name) => name.startsWith("…")) ? " after the ellipsis." : ".") : null,
  ];
}

function legend(axes) {
  const kinds = [...new Set(axes.map((axis) => axis.kind))];
  return h("dl", { class: "mm-legend" }, kinds.map((kind) => h("div", { class: KINDS[kind].look }, h("dt", {}, KINDS[kind].name), h("dd", {}, KINDS[kind].says))));
}

// ── One element of the result ──

/** Where an element comes from: groups of letters, the operands' indices, the sizes of the matrices. */
function anatomy({ operands, out, shapes, plan, at, table }) {
  const size = Object.fromEntries(table.axes.map((axis) => [axis.letter, axis.size]));
  const summed = [...new Set(operands.flat())].filter((name) => !out.includes(name));
  const value = Object.fromEntries(out.map((name, dim) => [name, at[dim]]));
  const index = (own, shape) => own.map((name, dim) => (name in value ? (shape[dim] === 1 ? 0 : value[name]) : size[name] === 1 || shape[dim] === 1 ? 0 : letterOf(name)));
  const both = table.axes.filter((axis) => axis.kind === "batch").map((axis) => axis.letter);
  const free = (own) => out.filter((name) => own?.includes(name) && !both.includes(name));
  return { size, summed, value, index, both, rows: free(operands[0]), columns: free(operands[1]) };
}

/** The panel, with the keyboard's way through the result. pick(at) chooses. */
export function chosenElement(pick) {
  let found = null;
  let width = 0;
  let hover = null;
  let parts = null;
  let words = "";
  const drawing = h("div", { class: "mm-drawing", role: "application", tabindex: 0, "aria-label": "Element of the result", onkeydown: key, onpointerover: over, onpointerleave: away, onclick: choose });
  const formula = h("p", { class: "mm-formula" });
  const note = h("p", { class: "ut-soft" });
  const turn = (by, sign, label) => h("button", { type: "button", class: "ut-button", "aria-label": label, onclick: () => move("both", by) }, sign);
  const where = h("span", {});
  const batch = h("p", { class: "mm-batch" }, turn(-1, "‹", "Previous in the batch"), where, turn(1, "›", "Next in the batch"));
  const element = h("section", { class: "ut-panel mm-element", "aria-label": "One element" }, h("h2", {}, "One element"), drawing, batch, formula, note);

  const span = (names) => numel(names.map((name) => parts.size[name]));
  const flat = (names, value) => names.reduce((sum, name) => sum * parts.size[name] + value[name], 0);
  function spread(names, position, value) {
    const next = { ...value };
    for (const name of [...names].reverse()) {
      next[name] = position % parts.size[name];
      position = Math.floor(position / parts.size[name]);
    }
    return next;
  }
  const list = (value) => found.out.map((name) => value[name]);

  function move(group, by) {
    const names = parts[group];
    const to = flat(names, parts.value) + by;
    if (to >= 0 && to < span(names)) pick(list(spread(names, to, parts.value)));
  }
  function key(event) {
    if (!parts || event.ctrlKey || event.metaKey || event.altKey) return;
    const way = { ArrowUp: ["rows", -1], ArrowDown: ["rows", 1], ArrowLeft: ["columns", -1], ArrowRight: ["columns", 1], PageUp: ["both", -1], PageDown: ["both", 1] }[event.key];
    if (!way) return;
    event.preventDefault();
    move(...way);
  }

  // One listener for all cells: a cell is drawn anew under the pointer, and would enter itself again.
  function pointed(event) {
    const { row, column } = event.target.closest?.("[data-row]")?.dataset ?? {};
    return row === undefined || !parts ? null : spread(parts.columns, Number(column), spread(parts.rows, Number(row), parts.value));
  }
  function over(event) {
    const next = event.pointerType === "touch" ? null : pointed(event);
    if (!parts || String(next && list(next)) === String(hover && list(hover))) return;
    hover = next;
    draw();
  }
  function away() {
    if (!hover) return;
    hover = null;
    draw();
  }
  function choose(event) {
    const next = pointed(event);
    if (next) pick(list(next));
  }

  function draw() {
    const { operands, shapes, out, plan } = found;
    const value = hover ?? parts.value;
    const { rows, columns, both, summed, index } = { ...parts, ...(hover ? { index: anatomy({ ...found, at: list(hover) }).index } : {}) };
    const inner = summed.filter((name) => operands[0].includes(name) && operands[1]?.includes(name));
    const lone = summed.filter((name) => !inner.includes(name));
    const drawable = operands.length === 2;
    drawing.hidden = !drawable;
    batch.hidden = !drawable || span(both) <= 1;
    put(where, `batch ${written(both.map((name) => parts.value[name]))} of ${written(both.map((name) => parts.size[name]))}`);
    if (drawable) {
      const own = (operand) => numel([...new Set(operands[operand])].filter((name) => both.includes(name)).map((name) => shapes[operand][operands[operand].indexOf(name)]));
      const pinned = [flat(rows, parts.value), flat(columns, parts.value)];
      put(drawing, drawProduct({
        sizes: { m: span(rows), k: span(inner), n: span(columns) }, sheets: [own(0), own(1), span(both)], pinned,
        here: hover ? [flat(rows, value), flat(columns, value)] : pinned, names: ["A", "B", "result"], width: Math.min(width, 460),
      }));
    }
    const look = (name) => KINDS[(found.table.axes.find((axis) => axis.letter === name) ?? { kind: "free" }).kind].look;
    const cells = (names, shown) => names.flatMap((name, dim) => [dim ? ", " : "", h("span", { class: look(name) }, String(shown[dim]))]);
    const indices = (operand) => (drawable ? index(operands[operand], shapes[operand]) : operands[operand].map(letterOf));
    const term = (operand) => [h("b", {}, "ABC"[operand]), operands[operand].length ? ["[", cells(operands[operand], indices(operand)), "]"] : null];
    const sums = summed.filter((name) => parts.size[name] !== 1);
    const whole = (...shown) => h("span", { class: "term" }, shown);
    put(formula, whole(h("b", {}, "result"), out.length ? ["[", cells(out, drawable ? list(value) : out.map(letterOf)), "]"] : null), " = ",
      whole(sums.length ? [h("span", { class: "sum" }, "Σ", h("sub", {}, sums.map(letterOf).join(" "))), " "] : null, term(0)),
      operands.slice(1).map((_, at) => [" · ", whole(term(at + 1))]));
    const terms = span(sums);
    const stretched = operands.flatMap((own, operand) => (own.some((name, dim) => shapes[operand][dim] === 1 && parts.size[name] > 1) ? ["ABC"[operand]] : []));
    put(note, [
      terms === 1 ? "One term." : `${count(terms)} ${operands.length > 1 ? "products" : "numbers"}, added up.`,
      stretched.length ? ` ${stretched.join(" and ")}: index 0 serves for all where the size is 1.` : "",
      lone.some((name) => parts.size[name] > 1) && drawable ? ` Drawn after the sum over ${lone.map(letterOf).join(" ")}.` : "",
    ].join(""));
    words = !drawable ? "" : `result[${list(value).join(", ")}] is ${terms === 1 ? "one product" : `a sum of ${count(terms)}`}.`;
    drawing.setAttribute("aria-label", `Result, ${span(rows)} by ${span(columns)}. Arrow keys choose an element${span(both) > 1 ? ", Page Up and Page Down the batch" : ""}. ${words}`);
  }

  function show(now, wide) {
    found = now;
    width = wide > 700 ? (wide - 60) / 2 : wide - 34;
    hover = null;
    const empty = !now.plan.shape || numel(now.plan.shape) === 0;
    element.hidden = !now.plan.shape;
    parts = empty ? null : anatomy(now);
    for (const part of [drawing, batch, formula]) part.hidden = empty;
    words = "";
    if (!empty) draw();
    else put(note, "The result has no elements: one of its sizes is 0.");
  }
  return { element, show, said: () => words };
}

// ── What runs ──

const TITLES = { dot: "dot", mv: "mv", mm: "mm", bmm: "bmm", mul: "mul", sum: "sum" };

const group = (names) => names.map(letterOf).join(names.some((name) => name.length > 1) ? " " : "") || "1";

/** The kernels in a heading, and every step: free, copied or computed. */
export function kernels({ plan }, dtype) {
  const work = plan.steps.filter((step) => step.kernel);
  const names = work.map((step) => TITLES[step.kernel]);
  const copies = plan.steps.filter((step) => step.copy).map(({ copy }) => copy.on || "the result");
  const title = names.length === 0 ? "Nothing runs: a view" : names.length === 1 ? `One ${names[0]}` : names.join(", then ");
  const said = [
    plan.folded ? `${plan.folded}'s batch is folded into rows: no bmm needed.` : "",
    copies.length ? `Copied on the way: ${copies.join(" and ")}.` : work.length ? "Nothing is copied." : "",
  ].join(" ");
  const rows = plan.steps.map(({ on, op, shape, kernel, copy, groups }) => h("li", { class: kernel ? "work" : copy ? "copy" : "free" },
    h("code", {}, kernel && !on ? op : `${on}.${op}`), " ", h("span", { class: "shape" }, written(shape), groups ? ` = ${groups.map(group).join(", ")}` : null),
    h("em", {}, kernel ? "computes" : copy ? `copies ${bytes(copy.elements * DTYPES[dtype])}` : "free")));
  return [h("h2", {}, title), h("p", { class: "ut-soft" }, said), h("ol", {}, rows)];
}

// ── Who takes these shapes ──

export function verdicts(shapes, mode) {
  const rows = Object.entries(FUNCTIONS).map(([name, ask]) => [name, ask(...shapes)]);
  const equation = equationOf(letters(...shapes, mode === "linear"));
  rows.push(["einsum", einsum(equation, shapes), equation]);
  return [h("h2", {}, "Who takes these shapes"), h("table", { class: "mm-list" }, h("tbody", {}, rows.map(([name, answer, how]) => h("tr", { class: `${answer.shape ? "yes" : "no"}${name === mode ? " mine" : ""}` },
    h("th", { scope: "row" }, name),
    h("td", { class: "mark" }, h("span", { "aria-hidden": "true" }, answer.shape ? "✓" : "✗"), h("span", { class: "ut-unseen" }, answer.shape ? "yes" : "no")),
    h("td", {},
      answer.shape ? h("strong", {}, written(answer.shape)) : answer.why,
      how ? h("span", {}, answer.shape ? " " : ", with ", h("a", { href: `#${new URLSearchParams([["eq", how], ["a", shapes[0].join("x")], ["b", shapes[1].join("x")]])}` }, how)) : null,
      answer.shape ? null : h("small", {}, answer.said))))))];
}
