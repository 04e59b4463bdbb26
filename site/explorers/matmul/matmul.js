// <matmul-explorer>: which dims of two shapes meet, what comes out, and what torch does to get there. The
// address holds a=2x3&b=3x4, with fn=linear or eq=ij,jk->ik (and c=…), dtype, grad=ab and at, the chosen element.

import { Explorer, choice, h, put } from "../explorer.js";
import { CHALLENGES } from "./challenges.js";
import { costs } from "./costs.js";
import { operandsOf } from "./einsum.js";
import { countOf, planOf } from "./plan.js";
import { stepper } from "./stepper.js";
import { alignment, chosenElement, kernels, verdicts } from "./parts.js";
import { numel, parseShape, written } from "./views.js";
import { DTYPES } from "./words.js";

const MODES = [["matmul", "A @ B"], ["linear", "linear(A, B)"], ["einsum", "einsum"]];
const TRIES = {
  matmul: [
    ["vector · vector", "5", "5"], ["matrix × vector", "3x4", "4"], ["vector × matrix", "4", "4x3"], ["outer product", "4x1", "1x6"],
    ["batch × one matrix", "8x16x32", "32x24"], ["one matrix × batch", "16x32", "8x32x24"],
    ["attention scores", "2x8x128x64", "2x8x64x128"], ["4-D broadcast", "2x1x3x4", "1x5x4x2"], ["a weight on the left", "16x32", "8x32x24", "a"], ["no fit", "2x3x4", "3x4x5"],
  ],
  linear: [["linear layer", "8x128x512", "2048x512"], ["one vector", "4", "3x4"], ["weight the wrong way", "5x3", "3x4"]],
  einsum: [
    ["matrix product", "ij,jk->ik", "3x4", "4x5"], ["attention scores", "bqhd,bkhd->bhqk", "2x128x8x64", "2x128x8x64"],
    ["outer product", "i,j->ij", "4", "6"], ["trace", "ii", "4x4"], ["diagonal", "ii->i", "4x4"], ["all at once", "ij,ij->", "3x4", "3x4"],
    ["implicit output", "ca,ab", "3x4", "4x2"], ["size 1 in the middle", "ij,jk->ik", "3x4", "1x5"],
    ["bilinear", "bi,oij,bj->bo", "8x5", "3x5x4", "8x4"], ["ellipsis", "...ij,jk->...ik", "2x6x3x4", "4x5"],
  ],
};

class MatmulExplorer extends Explorer {
  static parts = {
    dims: ["[aria-label=Shapes]", ".mm-main"],
    element: [".mm-element"],
    runs: ["[aria-label=Shapes]", ".mm-verdict", ".mm-steps"],
    costs: ["[aria-label=Shapes]", ".mm-costs"],
  };

  get challenges() { return CHALLENGES; }

  /** To the next element of the result, in order. */
  advance(state) {
    const { plan: { shape }, at } = planOf(state);
    const dim = shape?.findLastIndex((size, d) => at[d] + 1 < size) ?? -1;
    return dim < 0 ? null : { at: at.map((i, d) => (d < dim ? i : d === dim ? i + 1 : 0)) };
  }

  rewind(state) {
    const { shape } = planOf(state).plan;
    return shape && numel(shape) > 1 ? { at: [] } : null;
  }

  read(params) {
    const eq = params.get("eq") ?? null;
    const mode = eq !== null ? "einsum" : params.get("fn") === "linear" ? "linear" : "matmul";
    const given = ["a", "b", "c"].map((name) => params.get(name) ?? null);
    if (given.every((text) => text === null)) return null;
    const needed = mode === "einsum" ? Math.min(operandsOf(eq), 3) : 2;
    const shapes = given.map((text) => (text === null ? null : parseShape(text)));
    if (shapes.slice(0, needed).includes(null) || (eq ?? "").length > 60) return null;
    const at = (params.get("at") ?? "").split(".").filter((part) => /^\d{1,5}$/.test(part)).map(Number);
    const dtype = params.get("dtype") in DTYPES ? params.get("dtype") : "float32";
    const grads = ["a", "b"].map((name) => (params.get("grad") ?? "").includes(name));
    return { mode, eq: eq ?? "ij,jk->ik", shapes: shapes.map((shape) => shape ?? [2, 3]), dtype, grads, at };
  }

  write({ mode, eq, shapes, dtype, grads, at }) {
    const sizes = shapes.slice(0, countOf({ mode, eq })).map((shape, operand) => ["abc"[operand], shape.join("x")]);
    const how = mode === "einsum" ? [["eq", eq]] : mode === "linear" ? [["fn", "linear"]] : [];
    const grad = mode === "einsum" ? "" : ["a", "b"].filter((_, operand) => grads[operand]).join("");
    return [...how, ...sizes, ["dtype", dtype], ...(grad ? [["grad", grad]] : []), ...(at.some(Boolean) ? [["at", at.join(".")]] : [])];
  }

  build() {
    this.modes = choice({ label: "Which product", name: "mode", options: MODES, pick: (mode) => this.change({ mode, at: [] }) });
    this.tries = h("p", { class: "ut-tries", role: "group", "aria-label": "Examples" });
    this.equation = h("input", {
      id: "mm-eq", type: "text", size: 22, maxlength: 60, autocomplete: "off", autocapitalize: "off", spellcheck: "false",
      "aria-describedby": "mm-help", oninput: () => this.change({ eq: this.equation.value, at: [] }),
    });
    this.equationRow = h("p", { class: "ut-ask mm-equation" }, h("label", { for: "mm-eq" }, "equation"), this.equation, h("span", { id: "mm-help", class: "ut-soft" }, "letters name dims; a letter left out of the result is summed"));
    this.fields = ["A", "B", "C"].map((name, operand) => stepper(name, (shape) => {
      this.change({ shapes: this.state.shapes.toSpliced(operand, 1, shape), at: [] });
    }, (grad) => this.change({ grads: this.state.grads.toSpliced(operand, 1, grad) })));
    this.verdict = h("p", { class: "mm-verdict" });
    this.reason = h("p", { class: "mm-reason" });
    this.table = h("div", { class: "mm-align" });
    this.element = chosenElement((at) => this.change({ at }));
    this.kernels = h("section", { class: "ut-panel mm-steps", "aria-label": "What runs" });
    this.two = h("div", { class: "mm-two" }, this.element.element, this.kernels);
    this.verdicts = h("section", { class: "ut-panel mm-functions", "aria-label": "Which functions take these shapes" });
    this.dtypes = choice({ label: "dtype", name: "dtype", options: Object.keys(DTYPES).map((name) => [name, name]), pick: (dtype) => this.change({ dtype }) });
    this.costs = h("div", {});
    this.costPanel = h("section", { class: "ut-panel mm-costs", "aria-label": "What it costs" }, h("div", { class: "mm-head" }, h("h2", {}, "What it costs"), this.dtypes.element), this.costs);
    return [
      h("div", { class: "mm-bar" }, this.modes.element, this.tries),
      h("section", { class: "ut-panel", "aria-label": "Shapes" }, this.equationRow, h("div", { class: "mm-fields" }, this.fields.map((field) => field.element))),
      h("section", { class: "ut-panel mm-main", "aria-label": "Dims" }, this.verdict, this.reason, this.table),
      this.two,
      this.verdicts, this.costPanel,
    ];
  }

  show(state) {
    const found = planOf(state);
    const { mode, shapes, plan, table } = found;
    this.modes.show(mode);
    this.showTries(mode);
    this.equationRow.hidden = mode !== "einsum";
    if (document.activeElement !== this.equation) this.equation.value = state.eq;
    this.equation.setAttribute("aria-invalid", mode === "einsum" && !plan.shape);
    this.fields.forEach((field, operand) => field.show(shapes[operand] ?? null, mode === "einsum" ? null : state.grads[operand]));
    const call = mode === "matmul" ? shapes.map(written).join(" @ ") : mode === "linear" ? `linear(${shapes.map(written).join(", ")})` : shapes.map(written).join(", ");
    put(this.verdict, h("span", {}, call), " ", h("span", { class: "arrow" }, "→"), " ",
      plan.shape ? h("strong", {}, written(plan.shape)) : h("strong", { class: "no" }, "✗ no"));
    this.reason.hidden = Boolean(plan.shape);
    put(this.reason, plan.shape ? null : [plan.why, ". ", h("span", { class: "ut-soft" }, "PyTorch: ", h("q", {}, plan.said))]);
    put(this.table, table ? alignment(table, found) : null);
    this.element.show(found, this.clientWidth);
    this.two.hidden = !plan.shape;
    this.two.classList.toggle("stacked", shapes.length !== 2);
    put(this.kernels, plan.shape ? kernels(found, state.dtype) : null);
    this.verdicts.hidden = mode === "einsum";
    put(this.verdicts, mode === "einsum" ? null : verdicts(shapes, mode));
    this.dtypes.show(state.dtype);
    this.costPanel.hidden = !plan.shape;
    put(this.costs, plan.shape ? costs(plan, shapes, state.dtype) : null);
  }

  showTries(mode) {
    if (this.tries.dataset.mode === mode) return;
    this.tries.dataset.mode = mode;
    const lead = mode === "einsum" ? ["eq", "a", "b", "c"] : ["a", "b", "grad"];
    put(this.tries, TRIES[mode].map(([name, ...values]) => h("button", {
      type: "button", class: "ut-button", onclick: () => {
        const params = new Map(lead.map((key, i) => [key, values[i]]).filter(([, value]) => value !== undefined));
        if (mode === "linear") params.set("fn", "linear");
        this.change({ ...this.read(params), dtype: this.state.dtype });
      },
    }, name)));
  }

  say(state) {
    const { plan, shapes, mode } = planOf(state);
    const given = `${mode === "einsum" ? `einsum ${state.eq} of ` : ""}${shapes.map(written).join(" and ")}`;
    if (!plan.shape) return `${given}: refused. ${plan.why}.`;
    const element = this.element.said();
    return `${given} gives ${written(plan.shape)}.${element ? ` ${element}` : ""}`;
  }
}

customElements.define("matmul-explorer", MatmulExplorer);
