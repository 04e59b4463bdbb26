// <modules-explorer>: a model to edit, and what each walk over it gives, step by step.
// The address holds model=act-ReLU*last-is-act, the statements that make it, then call=named_modules,
// remove_duplicate=False and recurse=False where that is asked, step=2 where the walk is not at its end,
// and at=block.0 for the chosen place.

import { Explorer, choice, h, put } from "../explorer.js";
import { CHALLENGES } from "./challenges.js";
import { act, at, build, pack, rows, statements, unpack } from "./graph.js";
import { CALLS, counts, given, plain, takesOnce, takesRecurse, walk } from "./walks.js";
import { line, python } from "./python.js";
import { tree } from "./tree.js";
import { editor } from "./edit.js";
import { TRIES, count, quoted, sentence, what, written } from "./words.js";

const KNOWN = new Set([...CALLS, ...CALLS.slice(0, 4).map((call) => `named_${call}`)]);

class ModulesExplorer extends Explorer {
  static parts = {
    walk: ["[aria-label=Walk]", ".mo-two"],
    duplicates: ["[aria-label=Walk]", ".mo-two"],
  };

  get challenges() { return CHALLENGES; }

  advance() {
    return this.step <= this.events.length ? { step: this.step + 1 } : null;
  }

  rewind() {
    return this.events.length ? { step: 0 } : null;
  }

  read(params) {
    if (params.get("model") === null || params.get("model") === undefined) return null;
    try {
      const root = build(unpack(params.get("model")));
      const call = params.get("call") ?? "named_modules";
      if (!KNOWN.has(call)) return null;
      const chosen = params.get("at") ?? "";
      const step = params.get("step") ?? "";
      return {
        model: pack(statements(root)), call, at: at(root, chosen) === undefined ? "" : chosen,
        once: params.get("remove_duplicate") !== "False", recurse: params.get("recurse") !== "False",
        step: /^\d{1,4}$/.test(step) ? Number(step) : Infinity,
      };
    } catch {
      return null;
    }
  }

  write({ model, call, once, recurse, at: chosen }) {
    const { events, step } = this;
    const pairs = [["model", model], ["call", call]];
    if (!once) pairs.push(["remove_duplicate", "False"]);
    if (!recurse) pairs.push(["recurse", "False"]);
    if (step <= events.length) pairs.push(["step", step]);
    if (chosen) pairs.push(["at", chosen]);
    return pairs;
  }

  get root() {
    if (this.state.model !== this.known) {
      this.known = this.state.model;
      this.made = build(unpack(this.known));
    }
    return this.made;
  }

  get events() {
    return walk(this.root, this.state);
  }

  /** 0 before the walk, then one for each of its steps, and one more at its end. */
  get step() {
    return Math.min(this.state.step, this.events.length + 1);
  }

  build() {
    const tries = h("p", { class: "ut-tries", role: "group", "aria-label": "Models to try" }, TRIES.map(([name, state]) =>
      h("button", { type: "button", class: "ut-button", onclick: () => this.change(this.read(new URLSearchParams(state))) }, name)));
    this.tree = tree((path) => this.change({ at: path }));
    this.editor = editor((path, ...list) => this.edit(path, list));
    this.facts = h("dl", { class: "ut-facts" });
    this.python = h("code", {});
    return [
      tries, this.buildWalk(),
      h("div", { class: "mo-two" },
        h("section", { class: "ut-panel", "aria-label": "Model" }, h("p", { class: "ut-soft" }, "The model. Choose a place to change it below."), this.tree.element),
        h("section", { class: "ut-panel", "aria-label": "What it gives" }, this.listHead, this.list, this.memo)),
      this.editor.element,
      h("section", { class: "ut-panel", "aria-label": "In PyTorch" }, h("p", { class: "ut-soft" }, "The same in PyTorch"), h("div", { class: "mo-python", tabindex: 0, role: "group", "aria-label": "The model in Python" }, this.python), this.facts),
    ];
  }

  buildWalk() {
    this.tallies = CALLS.map(() => h("small", {}));
    this.calls = choice({
      label: "Walk", name: "mo-call", options: CALLS.map((name, i) => [name, name, " ", this.tallies[i]]),
      pick: (name) => this.change({ call: this.named.box.checked && name !== "state_dict" ? `named_${name}` : name, step: Infinity }),
    });
    const check = (text, change) => {
      const box = h("input", { type: "checkbox", onchange: () => this.change({ ...change(box.checked), step: Infinity }) });
      return { box, element: h("label", { class: "mo-check" }, box, text) };
    };
    this.named = check("with names", (on) => ({ call: (on ? "named_" : "") + plain(this.state.call) }));
    this.named.box.checked = true;
    this.recurse = check("recurse", (on) => ({ recurse: on }));
    this.once = check("remove_duplicate", (on) => ({ once: on }));
    this.call = h("p", { class: "mo-call" });
    const go = (to, ...text) => h("button", { type: "button", class: "ut-button", onclick: () => this.change({ step: Math.max(0, to()) }) }, text);
    const sign = (text) => h("span", { "aria-hidden": "true" }, text);
    this.at = h("span", { class: "ut-soft" });
    this.sentence = h("p", { class: "mo-sentence" });
    this.listHead = h("p", { class: "ut-soft" });
    this.list = h("ol", { class: "mo-list", onkeydown: (event) => this.moved(event) });
    this.memo = h("p", { class: "mo-memo" });
    return h("section", { class: "ut-panel", "aria-label": "Walk" }, this.calls.element,
      h("p", { class: "mo-checks" }, this.named.element, this.recurse.element, this.once.element), this.call,
      h("p", { class: "mo-steps", role: "group", "aria-label": "Steps" },
        go(() => 0, "start"), go(() => this.step - 1, sign("◀ "), "back"),
        go(() => this.step + 1, "next", sign(" ▶")), go(() => Infinity, "end"), this.at), this.sentence);
  }

  // ── What somebody does ──

  edit(path, list) {
    try {
      const root = build(unpack(this.state.model));
      const said = list.map((statement) => {
        const text = line(root, statement);
        act(root, statement);
        return text;
      });
      rows(root);
      this.said = said.join("; ");
      this.change({ model: pack(statements(root)), at: path, step: Infinity });
      if (!document.activeElement?.offsetParent) this.tree.focus();
    } catch (error) {
      this.editor.refuse(error.message);
    }
  }

  /** Arrow keys in the list of what came step through the walk. */
  moved(event) {
    const from = [...this.list.children].findIndex((row) => row.contains(event.target));
    const to = { ArrowUp: from - 1, ArrowDown: from + 1, Home: 0, End: this.list.children.length - 1 }[event.key];
    const button = this.list.children[to]?.firstChild;
    if (!button || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    this.change({ step: to + 1 });
    button.focus();
  }

  // ── What is shown ──

  show(state) {
    const { root, events, step } = this;
    const { call, once, recurse } = state;
    const named = call.startsWith("named_");
    this.calls.show(plain(call));
    CALLS.forEach((name, i) => {
      const like = { call: named && name !== "state_dict" ? `named_${name}` : name, once, recurse };
      this.tallies[i].textContent = given(walk(root, like)).length;
    });
    this.named.element.hidden = call === "state_dict";
    if (call !== "state_dict") this.named.box.checked = named;
    this.recurse.element.hidden = !takesRecurse(call);
    this.recurse.box.checked = recurse;
    this.once.element.hidden = !takesOnce(call);
    this.once.box.checked = once;
    put(this.call, h("code", {}, written(state)));
    put(this.at, step > events.length ? "at the end" : `step ${step} of ${events.length}`);
    put(this.sentence, this.sentenceNow());
    this.tree.show(rows(root), events, step, state.at);
    this.showList(events, step, call);
    this.showMemo(events, step, call);
    this.editor.show(root, state.at, this.model === state.model ? "" : this.said);
    this.said = "";
    this.model = state.model;
    put(this.python, python(root));
    this.showFacts(counts(root));
  }

  sentenceNow() {
    const hidden = rows(this.root).filter(({ species }) => species === "lists").map(({ path }) => path);
    return sentence(this.events, this.step, this.state, hidden);
  }

  showList(events, step, call) {
    const { list } = this;
    while (list.children.length > events.length) list.lastChild.remove();
    while (list.children.length < events.length) {
      const to = list.children.length + 1;
      list.append(h("li", {}, h("button", { type: "button", onclick: () => this.change({ step: to }) })));
    }
    let number = 0;
    events.forEach(({ what: kind, path, object, first }, i) => {
      const button = list.children[i].firstChild;
      const passed = kind !== "given";
      const bare = !call.startsWith("named_") && call !== "state_dict";
      const why = { seen: `is ${first || "the model"}`, none: "None", unsaved: "not saved" }[kind];
      put(button, h("span", {}, passed ? "–" : `${number += 1}`),
        bare && !passed ? null : h("b", {}, passed ? path : quoted(path)), h("span", {}, passed ? "" : `${bare && object.shape ? object.species === "buffers" ? "Tensor " : "Parameter " : ""}${what(object)}`), passed ? h("em", {}, `passed over: ${why}`) : null);
      button.className = `${passed ? "passed" : ""} ${i >= step ? "later" : ""}`;
      button.tabIndex = i === Math.min(Math.max(step, 1), events.length) - 1 ? 0 : -1;
      if (i === step - 1) button.setAttribute("aria-current", "step");
      else button.removeAttribute("aria-current");
    });
    put(this.listHead, `${call === "state_dict" ? count(number, "key") : `${number} given`}${events.length > number ? `, ${count(events.length - number, "place")} passed over` : ""}`);
  }

  showMemo(events, step, call) {
    const now = step ? events[Math.min(step, events.length) - 1]?.memo : events[0]?.memo && { modules: [], tensors: [] };
    const chips = (noun, paths) => [`memo of ${noun}: {`, paths.map((path, i) => [i ? ", " : " ", h("b", {}, path || "model")]), " }"];
    put(this.memo, !now ? `${call === "state_dict" ? "state_dict()" : "remove_duplicate=False"} keeps no memo: every path counts.`
      : [h("span", {}, chips("modules", now.modules)), /param|buff/.test(call) ? h("span", {}, chips(plain(call), now.tensors)) : null]);
    this.memo.hidden = !events.length;
  }

  showFacts({ objects, numbers, trainable, named, hidden, keys, tensors }) {
    const row = (name, text) => h("div", {}, h("dt", {}, name), h("dd", {}, text));
    put(this.facts,
      row("parameters()", `${count(numbers, "number")} in ${count(objects, "tensor")}. ${trainable === numbers ? "All" : trainable || "None"} ${numbers && trainable !== numbers && trainable ? "of them " : ""}trainable.`),
      named === numbers ? null : row("by every name", `${count(named, "number")}, if a shared tensor is counted under each of its names.`),
      row("state_dict()", `${count(keys, "key")} for ${count(tensors, "tensor")}.`),
      hidden ? row("in plain lists", `${count(hidden, "number")} that no walk finds: not trained, not saved, not moved by to().`) : null);
  }

  say(state) {
    const key = JSON.stringify([state.model, state.call, state.once, state.recurse]);
    const before = this.spoken;
    this.spoken = `${key} ${this.step}`;
    if (before === this.spoken) return "";
    if (!before?.startsWith(`${key} `)) return `${written(state)}: ${this.listHead.textContent}.`;
    return this.sentenceNow();
  }
}

customElements.define("modules-explorer", ModulesExplorer);
