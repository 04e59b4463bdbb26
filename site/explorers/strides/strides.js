// <strides-explorer>: any size, stride and offset over a storage, and what tensor methods make of it.
// The address holds shape=3x4&stride=4x1&offset=0&cells=12, then ops=transpose.0.1_view.12, step=1
// where not all of them are applied, at=2x1 for the element and target=12x1 for the shape in question.

import { Explorer, h, put } from "../explorer.js";
import { CHALLENGES } from "./challenges.js";
import { address, indices, product, raveled, reach, rowMajor } from "./layout.js";
import { chain, history, next, pack, parse, refused, unpack, write } from "./ops.js";
import { memory } from "./memory.js";
import { viewPanel } from "./view.js";
import { TRIES, suggestions } from "./tries.js";
import { copiedBytes, copies, flags, numbers, python, subscript, tuple } from "./words.js";

class StridesExplorer extends Explorer {
  static parts = {
    cells: [".ut-history", "[aria-label=Storage]", "[aria-label=Elements]"],
    address: [".ut-history", "[aria-label=Storage]", ".ut-two:has(> .ut-panel)"],
    view: [".ut-history", "[aria-label='View or copy']"],
    "cells-view": [".ut-history", "[aria-label=Storage]", "[aria-label=Elements]", "[aria-label='View or copy']"],
  };

  get challenges() { return CHALLENGES; }

  get pace() { return 320; }

  /** To the next element, in order. */
  advance({ at }) {
    return at + 1 < product(this.now.layout.size) ? { at: at + 1 } : null;
  }

  rewind() {
    return product(this.now.layout.size) > 1 ? { at: 0 } : null;
  }

  read(params) {
    const list = (name, fallback) => params.get(name) === null || params.get(name) === undefined ? fallback : numbers(params.get(name));
    const size = list("shape", null);
    if (!size || size.some((n) => n < 0)) return null;
    const stride = list("stride", rowMajor(size));
    const [offset] = list("offset", [0]) ?? [];
    const valid = stride?.length === size.length && [...stride, offset].every((n) => n >= 0);
    if (!valid) return null;
    const [cells] = list("cells", [Math.max(reach({ size, stride, offset }), offset)]) ?? [];
    if (!(cells >= 0) || refused({ size, stride, offset }, cells)) return null;
    let ops;
    try {
      ops = (params.get("ops") || "").split("_").filter((text) => text).map(unpack);
    } catch {
      return null;
    }
    const steps = history({ size, stride, offset, cells, ops });
    ops = ops.slice(0, steps.length - 1);
    const step = Math.min(list("step", [ops.length])?.[0] ?? ops.length, ops.length);
    const now = steps[Math.max(step, 0)].layout;
    const index = list("at", null);
    const fits = index?.length === now.size.length && index.every((i, d) => i >= 0 && i < now.size[d]);
    return {
      size, stride, offset, cells, ops, step: Math.max(step, 0),
      at: fits ? raveled(index, now.size) : 0, target: list("target", [-1]) ?? [-1],
    };
  }

  write({ size, stride, offset, cells, ops, step, at, target }) {
    const pairs = [["shape", size.join("x")]];
    if (stride.join() !== rowMajor(size).join()) pairs.push(["stride", stride.join("x")]);
    if (offset) pairs.push(["offset", offset]);
    if (cells !== Math.max(reach({ size, stride, offset }), offset)) pairs.push(["cells", cells]);
    if (ops.length) pairs.push(["ops", ops.map(pack).join("_")]);
    if (step < ops.length) pairs.push(["step", step]);
    const now = this.steps[step].layout.size;
    if (at) pairs.push(["at", indices(now)[at].join("x")]);
    if (target.join() !== "-1") pairs.push(["target", target.join("x")]);
    return pairs;
  }

  get steps() {
    const { size, stride, offset, cells, ops } = this.state;
    const key = JSON.stringify([size, stride, offset, cells, ops]);
    if (this.key !== key) {
      this.key = key;
      this.known = history(this.state);
    }
    return this.known;
  }

  get now() {
    return this.steps[this.state.step];
  }

  build() {
    this.tries = h("p", { class: "ut-tries", role: "group", "aria-label": "Tensors to try" }, TRIES.map(([name, state]) =>
      h("button", { type: "button", class: "ut-button", onclick: () => this.change(this.read(new URLSearchParams(state))) }, name)));
    this.memory = memory((at) => this.change({ at }));
    this.view = viewPanel({ aim: (target) => this.change({ target }), call: (text) => this.call(text) });
    this.facts = h("dl", { class: "ut-facts" });
    return [
      this.tries, this.buildTensor(), this.memory.storage,
      h("div", { class: "ut-two" }, this.memory.tensor, this.memory.element), this.view.element, this.facts,
    ];
  }

  buildTensor() {
    const field = (name, width, label) => h("input", {
      type: "text", size: width, autocomplete: "off", spellcheck: "false", "aria-label": label, "aria-describedby": "ut-base-help",
      oninput: () => this.rebase(name),
    });
    this.base = {
      cells: field("cells", 3, "cells of the storage"), size: field("size", 7, "size"),
      stride: field("stride", 7, "stride"), offset: field("offset", 2, "storage offset"),
    };
    const { cells, size, stride, offset } = this.base;
    this.baseHelp = h("p", { id: "ut-base-help", class: "ut-help", "aria-live": "polite" });
    this.steppers = h("ol", { class: "ut-history" });
    this.method = h("input", {
      id: "ut-method", type: "text", size: 26, autocomplete: "off", autocapitalize: "none", spellcheck: "false",
      placeholder: "transpose(0, 1).view(-1)", "aria-describedby": "ut-method-help",
    });
    this.methodHelp = h("p", { id: "ut-method-help", class: "ut-help", "aria-live": "polite" });
    this.chips = h("p", { class: "ut-tries", role: "group", "aria-label": "Methods to try" });
    const form = h("form", { class: "ut-ask", onsubmit: (event) => { event.preventDefault(); this.call(this.method.value); } },
      h("label", { for: "ut-method" }, "x."), this.method, h("button", { type: "submit", class: "ut-button" }, "Apply"));
    return h("section", { class: "ut-panel", "aria-label": "Tensor and methods" },
      h("p", { class: "ut-base" },
        h("span", {}, h("b", {}, "x"), " = torch.arange(", cells, ")"), h("span", {}, ".as_strided("),
        h("span", {}, h("label", {}, h("i", {}, "size"), "(", size, "),")), h("span", {}, h("label", {}, h("i", {}, "stride"), "(", stride, "),")),
        h("span", {}, h("label", {}, h("i", {}, "offset"), offset, ")"))),
      this.baseHelp, h("div", { class: "ut-two" }, this.steppers, h("div", {}, form, this.methodHelp, this.chips)));
  }

  // ── What somebody does ──

  /** Somebody typed into one of the four fields of the first line. */
  rebase(name) {
    const list = numbers(this.base[name].value);
    const wanted = name === "size" || name === "stride" ? list : list?.length === 1 ? list[0] : null;
    const fail = (sentence) => {
      this.base[name].setAttribute("aria-invalid", "true");
      this.baseHelp.textContent = sentence;
    };
    if (wanted === null || [wanted].flat().some((n) => n < 0)) return fail("Whole numbers from 0 on, please, with commas between them.");
    const { state } = this;
    const made = { size: state.size, stride: state.stride, offset: state.offset, cells: state.cells, [name]: wanted };
    if (name === "size") {
      const dense = state.stride.join() === rowMajor(state.size).join();
      if (dense || made.stride.length !== made.size.length) made.stride = rowMajor(made.size);
      if (dense || reach(made) > made.cells) made.cells = Math.max(reach(made), made.offset);
    }
    if (made.stride.length !== made.size.length) return fail(`As many strides as sizes: ${made.size.length}.`);
    const sentence = refused(made, made.cells);
    if (sentence) return fail(sentence);
    const typing = this.base[name];
    this.typing = typing;
    this.change({ ...made, ops: [], step: 0, at: 0 });
    this.typing = null;
  }

  /** One method, or a chain of them: up to the first that refuses. */
  call(typed) {
    const { step, ops } = this.state;
    const [links, done] = [chain(typed), ops.slice(0, step)];
    let now = this.now;
    let wrong = null;
    while (links.length && !wrong) {
      try {
        const op = parse(links[0]);
        now = next(now, op);
        done.push(op);
        links.shift();
      } catch (error) {
        wrong = error;
      }
    }
    const applied = done.length - step;
    if (applied) this.change({ ops: done, step: done.length, at: this.follow(now) });
    if (!wrong) {
      this.method.value = "";
      return;
    }
    if (applied) this.method.value = links.join("");
    this.method.setAttribute("aria-invalid", "true");
    this.methodHelp.textContent = `${applied ? `Applied up to here. ${links[0].replace(/^\./, "")}: ` : ""}${wrong.message}`;
  }

  /** The element of another tensor that holds what the chosen one holds; else the first. */
  follow({ layout, values }) {
    const { now } = this;
    const index = indices(now.layout.size)[this.state.at];
    if (!index) return 0;
    const held = now.values[address(now.layout, index)];
    return Math.max(0, indices(layout.size).findIndex((i) => values[address(layout, i)] === held));
  }

  // ── What is shown ──

  show(state) {
    const { now } = this;
    this.showTensor(state);
    this.memory.show(this.steps, state.step, state.at);
    this.view.show(now.layout, state.target);
    this.showFacts(now.layout, now.values.length);
  }

  showTensor(state) {
    for (const name of ["cells", "size", "stride", "offset"]) {
      const input = this.base[name];
      if (input !== this.typing) input.value = [state[name]].flat().join(", ");
      input.size = Math.max(input.value.length, name === "size" || name === "stride" ? 5 : 2);
      input.setAttribute("aria-invalid", "false");
    }
    this.baseHelp.textContent = "";
    this.method.setAttribute("aria-invalid", "false");
    this.methodHelp.textContent = "";
    const { steps } = this;
    while (this.steppers.children.length > steps.length) this.steppers.lastChild.remove();
    while (this.steppers.children.length < steps.length) {
      const at = this.steppers.children.length;
      const go = () => this.change({ step: at, at: this.follow(this.steps[at]) });
      this.steppers.append(h("li", {}, h("button", { type: "button", onclick: go })));
    }
    steps.forEach(({ op, layout, copied }, at) => {
      const button = this.steppers.children[at].firstChild;
      const how = at === 0 ? "" : copied ? `copied ${copiedBytes(layout)}` : "nothing copied";
      put(button, h("b", {}, at ? write(op) : "x"), h("span", {}, `size ${tuple(layout.size)} stride ${tuple(layout.stride)}${layout.offset ? ` offset ${layout.offset}` : ""}`), h("em", { class: copied ? "copy" : "" }, how));
      button.classList.toggle("later", at > state.step);
      if (at === state.step) button.setAttribute("aria-current", "step");
      else button.removeAttribute("aria-current");
    });
    const list = suggestions(this.now.layout);
    while (this.chips.children.length < list.length) {
      const chip = h("button", { type: "button", class: "ut-button", onclick: () => this.call(chip.textContent) });
      this.chips.append(chip);
    }
    [...this.chips.children].forEach((chip, i) => {
      chip.hidden = i >= list.length;
      chip.textContent = list[i] ?? "";
    });
  }

  showFacts(layout, cells) {
    const row = (name, value, why) => h("div", {}, h("dt", {}, name), h("dd", {}, value === null ? "" : h("b", {}, value ? "Yes. " : "No. "), why));
    const { size, stride, offset, cells: first, ops, step } = this.state;
    put(this.facts, flags(layout, cells).map(([name, value, why]) => row(name, value, why)),
      row("copied", null, copies(this.steps.slice(0, step + 1))),
      row("In PyTorch", null, h("code", {}, python({ size, stride, offset }, first, ops.slice(0, step)))));
  }

  say({ at }) {
    const { layout, op, copied } = this.now;
    const key = `${this.key} ${this.state.step}`;
    const index = indices(layout.size)[at];
    const element = index ? ` ${subscript(index)} is cell ${address(layout, index)}.` : " It has no elements.";
    if (this.said === key) return element.trim();
    this.said = key;
    return `${op ? `${write(op)}, ${copied ? "a copy" : "a view"}: ` : ""}size ${tuple(layout.size)}, stride ${tuple(layout.stride)}, offset ${layout.offset}.${element}`;
  }
}

customElements.define("strides-explorer", StridesExplorer);
