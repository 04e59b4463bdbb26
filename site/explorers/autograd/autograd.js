// <autograd-explorer>: a small program, line by line; what each tensor and each node of the graph is after it.
// The address holds code=… (Python, one statement a line), line=3, where that is not the last, and turn=2, where a line
// in a loop is not shown as its last turn left it.

import { Explorer, h, put } from "../explorer.js";
import { CHALLENGES } from "./challenges.js";
import { drawGraph, spoken } from "./graph.js";
import { run } from "./run.js";
import { TRIES, explain, isWrong, list, suggestions } from "./words.js";

const MOST = 2000;
const MODES = {
  on: ["●", "grad mode on"], off: ["○", "grad mode off"], inference: ["◇", "inference mode"], error: ["✗", "raises"], never: ["", "not reached"],
};
const COLUMNS = ["", "value", "requires_grad", "is_leaf", "grad_fn", "_version", ".grad", "memory"];

const clean = (code) => code.replace(/\r/g, "").replace(/\t/g, "    ").replace(/;/g, "\n").trimEnd().slice(0, MOST);

class AutogradExplorer extends Explorer {
  static parts = {
    graph: [".ag-two"],
    tensors: ["[aria-label=Program]", ".ag-said", ".ag-tensors"],
  };

  get challenges() { return CHALLENGES; }

  get pace() { return 1200; }

  /** To the next line that does something. */
  advance() {
    const shot = this.shots[this.at + 1];
    return shot ? this.place(shot) : null;
  }

  rewind() {
    return this.shots.length > 1 ? this.place(this.shots[0]) : null;
  }

  read(params) {
    const code = clean(params.get("code") ?? "");
    if (!code.trim()) return null;
    const last = code.split("\n").length - 1;
    const line = /^\d{1,3}$/.test(params.get("line") ?? "") ? Number(params.get("line")) - 1 : last;
    const turn = /^[1-9]\d?$/.test(params.get("turn") ?? "") ? Number(params.get("turn")) : null;
    return { code, line: Math.max(0, Math.min(line, last)), turn };
  }

  write({ code, line, turn }) {
    return [["code", code], ...(line < code.split("\n").length - 1 ? [["line", line + 1]] : []), ...(turn ? [["turn", turn]] : [])];
  }

  get shots() {
    if (this.ran !== this.state.code) {
      this.ran = this.state.code;
      this.known = run(this.ran);
    }
    return this.known;
  }

  /** Where in `shots` the chosen line is: the last that ran up to it, in its turn; −1 before the first. */
  get at() {
    const { line, turn } = this.state;
    const last = this.shots.findLastIndex((shot) => shot.line.at <= line);
    const then = turn ? this.shots.findIndex((shot) => shot.line.at === this.shots[last]?.line.at && shot.turn === turn) : -1;
    return then < 0 ? last : then;
  }

  /** How often the line of a shot runs. */
  turns(shot) {
    return this.shots.findLast((other) => other.line.at === shot.line.at).turn;
  }

  /** The state in which this shot is the chosen one. */
  place(shot) {
    return { line: shot.line.at, turn: shot.turn < this.turns(shot) ? shot.turn : null };
  }

  change(part) {
    super.change({ turn: null, ...part });
  }

  build() {
    this.tries = h("p", { class: "ut-tries", role: "group", "aria-label": "Programs to try" }, TRIES.map(([name, lines, line]) =>
      h("button", { type: "button", class: "ut-button", onclick: () => this.change({ code: lines.join("\n"), line: (line ?? lines.length) - 1 }) }, name)));
    this.gutter = h("ol", { class: "ag-gutter", "aria-hidden": "true", onclick: (event) => {
      const row = event.target.closest("li");
      if (row) this.change({ line: [...this.gutter.children].indexOf(row) });
    } });
    const look = () => {
      const line = this.code.value.slice(0, this.code.selectionStart).split("\n").length - 1;
      if (line !== this.state.line && document.activeElement === this.code) this.change({ line });
    };
    this.code = h("textarea", {
      wrap: "off", spellcheck: "false", autocapitalize: "none", autocomplete: "off", maxlength: MOST, "aria-label": "Program", "aria-describedby": "ag-help",
      onkeyup: look, onclick: look, onkeydown: (event) => this.key(event),
      oninput: () => {
        const before = this.code.value.slice(0, this.code.selectionStart);
        this.change({ code: this.code.value.replace(/\r/g, ""), line: before.split("\n").length - 1 });
      },
    });
    const button = (text, label, act) => h("button", { type: "button", class: "ut-button", "aria-label": label, onclick: (event) => {
      if (event.currentTarget.getAttribute("aria-disabled") !== "true") act();
    } }, text);
    this.back = button("‹ Back", "Back one line", () => this.step(-1));
    this.next = button("Step ›", "Step one line", () => this.step(1));
    this.up = button("↑", "Move this line up", () => this.move(-1));
    this.down = button("↓", "Move this line down", () => this.move(1));
    this.cut = button("✕", "Remove this line", () => this.edit((lines, line) => lines.splice(line, 1), 0));
    this.legend = h("p", { id: "ag-help", class: "ut-soft" });
    this.chips = h("p", { class: "ut-tries ag-chips", role: "group", "aria-label": "Lines to insert after this one" });
    this.opener = button("+ Insert a line", null, () => this.open(this.chips.hidden));
    this.said = h("p", {});
    this.torch = h("p", { class: "ag-torch" });
    this.mode = h("span", { class: "ut-soft" });
    this.where = h("b", {});
    this.result = h("section", { class: "ut-panel ag-said", "aria-label": "What this line did" }, h("p", { class: "ag-head" }, this.where, this.mode), this.said, this.torch);
    this.graph = h("div", { class: "ag-scroll", tabindex: 0, role: "group", "aria-label": "Drawing of the graph" });
    this.kept = h("p", { class: "ut-soft" });
    this.table = h("div", {});
    this.open(false);
    return [
      this.tries,
      h("div", { class: "ag-two" },
        h("div", {},
          h("section", { class: "ut-panel", "aria-label": "Program" },
            h("div", { class: "ag-editor" }, this.gutter, this.code),
            h("p", { class: "ag-bar" }, this.back, this.next, this.opener, h("span", { role: "group", "aria-label": "This line" }, this.up, this.down, this.cut)),
            this.legend,
            this.chips),
          this.result),
        h("section", { class: "ut-panel ag-graph", "aria-label": "Graph" }, h("h2", {}, "The graph"), this.kept, this.graph)),
      h("section", { class: "ut-panel ag-tensors", "aria-label": "Tensors" }, h("h2", {}, "The tensors"), this.table),
    ];
  }

  // ── What somebody does ──

  open(on) {
    this.chips.hidden = !on;
    this.opener.setAttribute("aria-expanded", on);
  }

  key(event) {
    if (event.key !== "Enter" || event.ctrlKey || event.metaKey || event.altKey) return;
    // Python's indentation goes on in the next line.
    const line = this.code.value.slice(0, this.code.selectionStart).split("\n").at(-1);
    event.preventDefault();
    document.execCommand("insertText", false, `\n${line.match(/^ */)[0]}${line.trimEnd().endsWith(":") ? "    " : ""}`);
  }

  /** To the next or previous line that does something. */
  step(by) {
    const shot = this.shots[this.at + by];
    if (shot) this.change(this.place(shot));
  }

  edit(act, by) {
    const lines = this.state.code.split("\n");
    act(lines, this.state.line);
    this.change({ code: lines.join("\n"), line: Math.max(0, Math.min(this.state.line + by, lines.length - 1)) });
  }

  move(by) {
    this.edit((lines, line) => lines.splice(line + by, 0, ...lines.splice(line, 1)), by);
  }

  insert(text) {
    const here = this.state.code.split("\n")[this.state.line] ?? "";
    const indent = here.match(/^ */)[0] + (here.trimEnd().endsWith(":") ? "    " : "");
    const rows = text.split("\n").map((row) => indent + row);
    if (!this.state.code.trim()) this.change({ code: rows.join("\n"), line: rows.length - 1 });
    else this.edit((lines, line) => lines.splice(line + 1, 0, ...rows), rows.length);
  }

  // ── What is shown ──

  show({ code, line }) {
    const { shots, at } = this;
    const shot = shots[at];
    const lines = code.split("\n");
    if (this.code.value !== code) this.code.value = code;
    this.code.rows = Math.max(lines.length, 3);
    const ran = new Map(shots.map((one) => [one.line.at, one]));
    const end = shots.at(-1)?.error ? shots.at(-1).line.at : Infinity;
    const modeOf = (one) => (one.error ? "error" : one.inference ? "inference" : one.grad ? "on" : "off");
    const used = new Set();
    put(this.gutter, lines.map((text, i) => {
      const idle = !text.replace(/#.*/, "").trim();
      const mode = i > end ? "never" : idle || !ran.has(i) ? null : modeOf(ran.get(i));
      if (mode) used.add(mode);
      return h("li", { class: `${mode ?? ""} ${i === line ? "here" : ""}`, title: mode ? MODES[mode][1] : null }, h("span", {}, mode ? MODES[mode][0] : ""), i + 1);
    }));
    put(this.legend, [...used].filter((mode) => mode !== "never").map((mode) => h("span", {}, h("b", {}, MODES[mode][0]), ` ${MODES[mode][1]}`)), h("span", {}, "Put the cursor on a line, or step."));
    const state = (button, off) => button.setAttribute("aria-disabled", off);
    state(this.back, at <= 0);
    state(this.next, at >= shots.length - 1);
    state(this.up, line === 0);
    state(this.down, line >= lines.length - 1);
    state(this.cut, !code.trim());
    this.showSaid(shot, line, line > end);
    const names = suggestions(shot);
    while (this.chips.children.length < names.length) {
      const chip = h("button", { type: "button", class: "ut-button", onclick: () => this.insert(chip.value) });
      this.chips.append(chip);
    }
    [...this.chips.children].forEach((chip, i) => {
      chip.hidden = i >= names.length;
      chip.value = names[i] ?? "";
      chip.textContent = chip.value.split("\n")[0];
    });
    this.showGraph(shot);
    put(this.table, shot?.tensors.length ? this.tensors(shot, shots[at - 1]) : h("p", { class: "ut-soft" }, "No names yet."));
  }

  showSaid(shot, line, beyond) {
    const found = shot ? explain(shot, this.shots[this.at - 1]) : { said: "Write a first line, or take a program from above." };
    this.words = beyond ? "Not reached: the program stopped before." : shot && shot.line.at !== line ? "Nothing runs here. Shown is what the line before left." : found.said;
    const turns = shot ? this.turns(shot) : 1;
    put(this.where, `Line ${line + 1}${turns > 1 && shot.line.at === line ? `, turn ${shot.turn} of ${turns}` : ""}`);
    put(this.mode, !shot ? "" : shot.inference ? `inference mode${shot.grad ? ", grad mode on" : ""}` : `grad mode ${shot.grad ? "on" : "off"}`);
    const bad = shot?.line.at === line && found.bad;
    this.result.classList.toggle("alarm", Boolean(bad));
    put(this.said, bad ? h("b", { class: "no" }, bad) : null, this.words);
    this.torch.hidden = !found.torch || shot.line.at !== line;
    put(this.torch, found.torch);
  }

  showGraph(shot) {
    const nodes = shot?.nodes ?? [];
    put(this.kept, nodes.length ? [h("b", {}, `${nodes.length} ${nodes.length === 1 ? "node" : "nodes"}`), ", kept alive by the names below. ", h("b", {}, `${shot.bytes} B`), " saved for backward."] : "No name holds a graph.");
    this.graph.hidden = !nodes.length;
    // From a result an arrow leads to the nodes of its inputs: that is where backward goes.
    put(this.graph, nodes.length ? [drawGraph(shot, this.graph.clientWidth || 420), spoken(shot)] : null);
  }

  tensors(shot, before) {
    const letters = [...new Set(shot.tensors.filter(({ t }) => t).map(({ memory }) => memory))];
    const cells = (row) => {
      if (!row.t) return [row.name, row.number === null ? "None" : String(row.number), "", "", "", "", "", ""];
      const { fn, grad } = row;
      const others = shot.tensors.filter((other) => other.t && other.memory === row.memory && other.name !== row.name).map(({ name, t }) => (t === row.t ? `same as ${name}` : name));
      return [
        row.name, list(row.values, row.shape), row.requires ? "True" : "False", fn.raises ? "raises" : fn.is ? "False" : "True", fn.raises ? "raises" : fn.is?.name ?? "None",
        row.version === null ? "none: inference tensor" : String(row.version), grad ? list(grad.values, row.shape) : "None",
        `${"ABCDEFGHIJKLMNOPQRSTUVWXYZ"[letters.indexOf(row.memory)] ?? "?"}${others.length ? `, with ${others.join(", ")}` : ""}`,
      ];
    };
    const old = new Map(before?.tensors.map((row) => [row.name, cells(row)]));
    const body = shot.tensors.map((row) => {
      const now = cells(row);
      const was = old.get(row.name);
      return h("tr", { class: was ? "" : "fresh" }, now.map((text, i) => {
        if (!i) return h("th", { scope: "row" }, text);
        const changed = was && was[i] !== text && i !== 7;
        const wrong = i === 6 && row.grad && isWrong(row.grad);
        const empty = ["False", "None", ""].includes(text);
        return h("td", { "data-name": COLUMNS[i], class: `${changed ? "changed" : ""} ${empty ? "ut-soft" : ""}` },
          changed ? h("span", { class: "mark" }, h("span", { "aria-hidden": "true" }, "▸"), h("span", { class: "ut-unseen" }, "changed ")) : null, text,
          wrong ? h("b", { class: "no" }, ` ✗ not ${list(row.grad.right, row.shape)}`) : null);
      }));
    });
    return h("table", { class: "ag-table" }, h("thead", {}, h("tr", {}, COLUMNS.map((name, i) => (i ? h("th", { scope: "col" }, name) : h("td", {}))))), h("tbody", {}, body));
  }

  say({ line, code }) {
    return `Line ${line + 1}: ${code.split("\n")[line].trim() || "empty"}. ${this.words}`;
  }
}

customElements.define("autograd-explorer", AutogradExplorer);
