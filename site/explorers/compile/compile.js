// <compile-explorer>: a small program on its way through torch.compile, as captured from torch.
// The address holds program=loss, stage=partition, graph=1, cut=default or a budget, and the line that is held.

import { Explorer, choice, h, put } from "../explorer.js";
import { CHALLENGES } from "./challenges.js";
import { MOST_DRAWN, drawGraph, listed, spoken } from "./drawing.js";
import { linked } from "./linking.js";
import { opened } from "./opening.js";
import { STAGES, bytesText, cutOf, groups, hasAllCuts, keepOwn, late, linesOf, nodesOf, plural, programOf, programs, redone, savedBytes, settings } from "./reading.js";

const TABS = { python: "1 Python", bytecode: "2 Bytecode", dynamo: "3 Graph", joint: "4 Joint graph", partition: "5 Partition" };

class CompileExplorer extends Explorer {
  static parts = { stages: [".cp-two"], cut: [".cp-stage"] };

  get challenges() { return CHALLENGES; }

  get pace() { return 2500; }

  /** To the next stage. */
  advance({ stage }) {
    const next = STAGES[STAGES.indexOf(stage) + 1];
    return next ? { stage: next } : null;
  }

  rewind() { return { stage: STAGES[0] }; }

  read(params) {
    const program = programOf(params.get("program"));
    if (!program) return null;
    const stage = STAGES.includes(params.get("stage")) ? params.get("stage") : "python";
    const number = (name, most) => (/^[1-9]\d{0,4}$/.test(params.get(name) ?? "") && Number(params.get(name)) <= most ? Number(params.get(name)) : 0);
    const cut = params.get("cut") ?? "1.0";
    return {
      program: program.id, stage, graph: number("graph", program.frames.length) || 1, line: number("line", program.source.split("\n").length),
      cut: /^(default|0\.\d|1\.0)$/.test(cut) ? cut : "1.0",
    };
  }

  write({ program, stage, graph, cut, line }) {
    return [["program", program], ["stage", stage], ...(graph > 1 ? [["graph", graph]] : []), ...(stage === "partition" ? [["cut", cut]] : []), ...(line ? [["line", line]] : [])];
  }

  get program() { return programOf(this.state.program); }

  get frame() { return this.program.frames[this.state.graph - 1]; }

  build() {
    this.choices = h("div", {});
    this.offer();
    this.file = h("input", { type: "file", id: "cp-file", accept: ".json,application/json", onclick: () => { this.file.value = ""; }, onchange: () => this.open(this.file.files[0]) });
    this.fault = h("p", { class: "no", role: "alert", hidden: true });
    this.tabs = choice({ label: "Stage", name: "cp-stage", options: STAGES.map((stage) => [stage, TABS[stage]]), look: "ut-tabs cp-tabs", pick: (stage) => this.change({ stage }) });
    this.graphs = h("div", {});
    this.code = h("ol", { class: "cp-code", role: "listbox", "aria-label": "Lines of the program" });
    this.breaks = h("div", {});
    this.calls = h("div", {});
    this.what = h("p", { class: "cp-what" });
    this.link = h("p", { class: "cp-link" });
    this.body = h("div", {});
    this.drawing = h("div", { class: "cp-scroll", tabindex: 0, role: "group", "aria-label": "Drawing of the graph" });
    this.legend = h("p", { class: "ut-soft cp-legend" });
    this.cuts = h("div", { class: "cp-cuts" });
    this.budget = h("input", { type: "range", min: 0, max: 10, step: 1, id: "cp-budget", oninput: () => this.change({ cut: (Number(this.budget.value) / 10).toFixed(1) }) });
    this.limit = h("b", {});
    this.whole = h("button", { type: "button", class: "ut-button", onclick: () => this.change({ cut: this.state.cut === "default" ? "1.0" : "default" }) }, "default_partition");
    this.least = h("span", { class: "cp-knobs" }, h("label", { for: "cp-budget" }, "or min-cut, with activation_memory_budget"), this.budget, this.limit);
    this.knobs = h("p", { class: "cp-knobs" }, this.whole, this.least);
    // What belongs to a line lights up with it, wherever it is shown.
    for (const part of [this.code, this.body, this.drawing]) {
      linked(part, { light: (lines) => this.light(lines), hold: (line) => this.change({ line: line === this.state.line ? 0 : line }) });
    }
    return [
      this.choices,
      h("div", { class: "cp-own" }, h("label", { for: "cp-file" }, "Your own program: open what ", h("code", {}, "undertorch capture f.py"), " wrote. It stays on this machine."), this.file, this.fault),
      h("div", { class: "cp-two" },
        h("section", { class: "ut-panel", "aria-label": "Program" }, this.code, this.breaks, this.calls),
        h("section", { class: "ut-panel cp-stage", "aria-label": "Stage" }, this.tabs.element, this.graphs, this.what, this.link, this.knobs, this.cuts, this.body, this.legend, this.drawing)),
    ];
  }

  /** The programs that there are. */
  offer() {
    this.tries = choice({ label: "Program", name: "cp-program", options: programs().map(({ id, title }) => [id, title]), look: "cp-programs", pick: (program) => this.change({ program, graph: 1, line: 0 }) });
    put(this.choices, this.tries.element);
  }

  async open(file) {
    if (!file) return;
    const { program, fault } = opened(await file.text());
    this.fault.hidden = !fault;
    put(this.fault, fault);
    if (fault) return;
    const id = keepOwn(program);
    this.offer();
    this.change({ program: id, stage: "python", graph: 1, line: 0 });
  }

  show({ program, stage, graph, cut, line }) {
    const { program: told, frame } = this;
    this.tries.show(program);
    this.tabs.show(stage);
    if (this.drawn !== told) {
      [this.drawn, this.staged] = [told, null];
      this.showCode(told);
      this.picked = choice({ label: "Graph", name: "cp-graph", options: told.frames.map(({ name }, i) => [`${i + 1}`, `graph ${i + 1}: ${name}`]), look: "ut-tabs cp-graphs", pick: (n) => this.change({ graph: Number(n) }) });
      put(this.graphs, told.frames.length > 1 ? this.picked.element : null);
    }
    this.picked.show(`${graph}`);
    // A line that is held lights what is there: nothing that has the focus is drawn anew.
    const staged = `${stage} ${graph} ${stage === "partition" ? cut : ""}`;
    if (this.staged !== staged) {
      this.staged = staged;
      this.showStage(frame, stage, cut);
    }
    for (const one of this.querySelectorAll("[role=option]")) one.setAttribute("aria-selected", one.dataset.lines === `${line}`);
    this.light([]);
  }

  showStage(frame, stage, cut) {
    this.graphs.hidden = stage === "python";
    const rows = { dynamo: frame.dynamo, joint: frame.joint, partition: frame.joint }[stage];
    for (const part of [this.drawing, this.legend]) part.hidden = !rows?.length;
    for (const part of [this.knobs, this.cuts]) part.hidden = stage !== "partition" || !rows.length;
    put(this.body);
    put(this.drawing);
    if (rows && !rows.length) this.said = stage === "dynamo" ? "Dynamo put nothing of this into a graph." : "There is no backward: nothing here asked for gradients when it was compiled.";
    else this.said = this[stage](frame, this.program, cut);
    put(this.what, this.said);
  }

  /** Light what belongs to these lines; without any, to the line that is held. */
  light(lines) {
    const { line } = this.state;
    const lit = lines.length ? lines : line ? [line] : [];
    for (const one of this.querySelectorAll("[data-lines]")) one.classList.toggle("lit", one.dataset.lines.split(" ").some((own) => lit.includes(Number(own))));
    put(this.link, lit.length ? this.belongs(lit) : "Point at a line, an instruction or a node: what belongs to it lights up, and a click holds it.");
  }

  belongs(lines) {
    const where = lines.length > 1 ? `Lines ${lines.join(", ")}` : `Line ${lines[0]}`;
    const { stage } = this.state;
    if (stage === "python") return `${where}.`;
    if (stage === "bytecode") {
      const own = this.frame.own ? groups(this.frame.old).filter(({ line }) => lines.includes(line)) : [];
      return `${where}: ${plural(own.reduce((sum, { rows }) => sum + rows.length, 0), "instruction")} on the left.`;
    }
    const names = nodesOf(stage === "dynamo" ? this.frame.dynamo : this.frame.joint).filter(({ line }) => lines.includes(line)).map(({ name }) => name);
    return `${where}: ${names.length ? plural(names.length, "node") : "no node"} of this graph${names.length ? `, ${names.slice(0, 6).join(", ")}${names.length > 6 ? ", …" : ""}` : ""}.`;
  }

  showCode({ source, breaks, calls, frames }) {
    const at = new Set(breaks.map(({ line }) => line));
    put(this.code, source.split("\n").map((line, i) => h("li", { class: at.has(i + 1) ? "broken" : null, role: "option", tabindex: i ? -1 : 0, "data-lines": i + 1 }, h("code", {}, line), at.has(i + 1) ? h("b", { class: "no" }, " ✗") : null)));
    // Dynamo writes code between backticks.
    const marked = (text) => text.split("`").map((part, i) => (i % 2 ? h("code", {}, part) : part));
    put(this.breaks, breaks.map(({ line, title, why }) => h("p", { class: "cp-why" }, h("b", { class: "no" }, line ? `✗ Line ${line} breaks the graph. ` : "✗ "), h("b", {}, `${title}. `), marked(why))));
    put(this.calls, h("h2", {}, "Calls, one after the other"), h("ol", { class: "cp-calls" }, calls.map(({ call, ran, frames: made }) => {
      const why = made.map((i) => frames[i].why).find(Boolean);
      const which = `${made.length > 1 ? "graphs" : "graph"} ${made.map((i) => i + 1).join(made.length > 2 ? ", " : " and ")}`;
      return h("li", {}, h("code", {}, call), " ", made.length ? h("b", {}, `${why ? "compiled again" : "compiled"}: ${which}`) : ran ? h("b", { class: "yes" }, "guards hold, nothing compiled") : h("b", {}, "nothing compiled, and no graph ran"), why ? h("span", { class: "ut-soft" }, ` A guard failed: ${why}`) : null);
    })));
  }

  // ── Stages: each shows itself and returns the words about it ──

  python(frame, { frames, breaks }) {
    put(this.body, frames.map(({ name, guards }, i) => [
      h("h2", {}, `Guards of graph ${i + 1}: ${name}`),
      h("ul", { class: "cp-guards" }, guards.map((guard) => h("li", {}, guard))),
    ]));
    const count = plural(frames.length, "graph");
    if (breaks.some(({ line }) => line)) return `${count}: at the ✗ Dynamo stops, lets Python run, and goes on behind it with a new frame.`;
    return `${count}. Before it runs compiled code again, Dynamo checks the guards: what it took for given.`;
  }

  bytecode({ old, new: made, own, dynamo }) {
    const row = (text) => h("div", { class: /__compiled_fn|__resume_at/.test(text) ? "loud" : null }, h("code", {}, text));
    const whole = linesOf(dynamo).join(" ");
    const list = (rows, name) => h("ol", { class: "cp-bytes", role: own && name ? "listbox" : null, "aria-label": own ? name : null }, groups(rows).map(({ line, rows: texts }) =>
      h("li", own && name ? { role: "option", tabindex: -1, "data-lines": line } : { "data-lines": own && texts.some((text) => text.includes("__compiled_fn")) ? whole : null }, h("span", { class: "ut-soft" }, line || ""), h("div", {}, texts.map(row)))));
    put(this.body, h("div", { class: "cp-pair" }, h("div", {}, h("h2", {}, "What Python compiled"), list(old, "Instructions by line")), h("div", {}, h("h2", {}, "What Dynamo runs instead"), list(made))));
    return "Dynamo reads the left side one instruction at a time, with fake tensors. What it can it puts into a graph; on the right, the graph is one call.";
  }

  graph(nodes, marks, title, legend) {
    const used = nodes.map((_, i) => marks(i));
    const shown = legend.filter(([test]) => used.some(test)).map(([, text]) => h("span", {}, text));
    put(this.legend, shown);
    put(this.drawing, nodes.length > MOST_DRAWN ? listed(nodes, marks, title) : [drawGraph(nodes, marks, title), spoken(nodes)]);
  }

  dynamo({ dynamo }) {
    const nodes = nodesOf(dynamo);
    const mark = (i) => ({ corner: nodes[i].kind === "i" ? "round" : "", look: nodes[i].kind });
    this.graph(nodes, mark, "The graph that Dynamo made", [[({ look }) => look === "i", "round: an input"]]);
    return `${plural(nodes.filter(({ kind }) => kind === "c").length, "operation")}, as the program wrote them. No backward yet.`;
  }

  joint({ joint }) {
    const nodes = nodesOf(joint);
    const below = late(nodes);
    const mark = (i) => {
      const { kind } = nodes[i];
      return { corner: kind === "i" ? "round" : kind === "c" && below.has(i) ? "cut" : "", look: kind === "c" && below.has(i) ? "late" : kind };
    };
    this.graph(nodes, mark, "The joint graph", [[({ look }) => look === "i", "round: an input"], [({ look }) => look === "late", "cut corners: needs a tangent"]]);
    return "Forward and backward in one graph, in ATen operators, without in-place operations. primals are the inputs, tangents the gradients that come in, and the output holds results and gradients.";
  }

  partition(frame, _, cut) {
    const nodes = nodesOf(frame.joint);
    const made = cutOf(frame, cut);
    const kept = new Set(made.saved);
    const bytes = savedBytes(frame, made);
    const mark = (i) => {
      const { kind, bytes: own } = nodes[i];
      const where = made.where[i];
      const note = [...(kept.has(i) ? [["kept", `▾ saved${own === null ? "" : `, ${bytesText(own)}`}`]] : []), ...(where === "r" ? [["again", "↻ computed twice"]] : [])];
      const late = kind === "c" && where === "b";
      return { corner: kind === "i" ? "round" : late ? "cut" : "", look: kind !== "c" ? kind : where === "-" ? "gone" : where === "r" ? "twice" : late ? "late" : kind, double: kept.has(i), note };
    };
    this.graph(nodes, mark, "The joint graph, cut in two", [
      [({ look }) => look === "i", "round: an input"], [({ look }) => look === "late", "cut corners: runs in the backward"],
      [({ double }) => double, "second frame, ▾: saved"], [({ look }) => look === "twice", "↻: in both, computed twice"], [({ look }) => look === "gone", "dashed: in neither"],
    ]);
    this.whole.setAttribute("aria-pressed", cut === "default");
    this.least.hidden = !hasAllCuts(frame);
    this.budget.value = cut === "default" ? 10 : Math.round(Number(cut) * 10);
    put(this.limit, cut === "default" ? "" : cut);
    const rows = settings(frame);
    const most = Math.max(1, ...rows.map(([, , one]) => savedBytes(frame, one) ?? 0));
    put(this.cuts, h("table", { class: "cp-table" }, h("thead", {}, h("tr", {}, ["cut", "saved", "computed twice"].map((name) => h("th", { scope: "col" }, name)))), h("tbody", {}, rows.map(([first, words, one]) => {
      const here = one === made && (first === "default") === (cut === "default");
      const own = savedBytes(frame, one);
      const again = redone(frame, one);
      return h("tr", { class: here ? "here" : null, "aria-current": here ? "true" : null }, h("th", { scope: "row" }, here ? "▸ " : "", words),
        h("td", {}, own === null ? "depends on a size" : bytesText(own), own === null ? null : h("span", { class: "cp-bar", style: `width:${(own / most) * 6}rem` })),
        h("td", {}, again.length ? again.join(", ") : "nothing", one.wrong ? h("b", { class: "no" }, " ✗ wrong gradients") : null));
    }))));
    if (cut !== "default" && !hasAllCuts(frame)) cut = "1.0";
    const words = cut === "default" ? "default_partition saves all that the backward reads of the forward. Nothing is computed twice." : cut === "1.0" ? "What torch.compile does unless told otherwise: the cheapest cut, where cheap operators may run twice." : cut === "0.0" ? "A budget of 0: only inputs are saved, all else is computed again." : `A budget of ${cut}: it asks for ${Math.round(cut * 100)}% of the activations that the cut at 1.0 saves.`;
    const wrong = made.wrong ? " Dropout draws another mask the second time: these gradients are not eager's." : "";
    const tensors = made.saved.filter((i) => nodes[i].size).length;
    const others = made.saved.length - tensors;
    const number = others ? ` and ${plural(others, "number")}` : "";
    return `${words} Saved: ${plural(tensors, "tensor")}${number}, ${bytesText(bytes)}.${wrong}`;
  }

  say({ program, stage, graph, line }) {
    return `${programOf(program).title}, ${TABS[stage]}${this.program.frames.length > 1 ? `, graph ${graph}` : ""}. ${line ? `${this.belongs([line])} ` : ""}${this.said}`;
  }
}

customElements.define("compile-explorer", CompileExplorer);
