// <compile-explorer>: a small program on its way through torch.compile, as captured from torch.
// The address holds program=loss, stage=partition, graph=1 and cut=default or a budget.

import { Explorer, choice, h, put } from "../explorer.js";
import { drawGraph, spoken } from "./drawing.js";
import { STAGES, bytesText, cutOf, late, nodesOf, plural, programOf, programs, redone, savedBytes, settings } from "./reading.js";

const TABS = { python: "1 Python", bytecode: "2 Bytecode", dynamo: "3 Graph", joint: "4 Joint graph", partition: "5 Partition" };

class CompileExplorer extends Explorer {
  static parts = { stages: [".cp-two"], cut: [".cp-stage"] };

  read(params) {
    const program = programOf(params.get("program"));
    if (!program) return null;
    const stage = STAGES.includes(params.get("stage")) ? params.get("stage") : "python";
    const graph = /^[1-9]$/.test(params.get("graph") ?? "") ? Number(params.get("graph")) : 1;
    const cut = params.get("cut") ?? "1.0";
    return { program: program.id, stage, graph: Math.min(graph, program.frames.length), cut: /^(default|0\.\d|1\.0)$/.test(cut) ? cut : "1.0" };
  }

  write({ program, stage, graph, cut }) {
    return [["program", program], ["stage", stage], ...(graph > 1 ? [["graph", graph]] : []), ...(stage === "partition" ? [["cut", cut]] : [])];
  }

  get program() { return programOf(this.state.program); }

  get frame() { return this.program.frames[this.state.graph - 1]; }

  build() {
    this.tries = choice({ label: "Program", name: "cp-program", options: programs.map(({ id, title }) => [id, title]), look: "cp-programs", pick: (program) => this.change({ program, graph: 1 }) });
    this.tabs = choice({ label: "Stage", name: "cp-stage", options: STAGES.map((stage) => [stage, TABS[stage]]), look: "ut-tabs cp-tabs", pick: (stage) => this.change({ stage }) });
    this.graphs = h("div", {});
    this.code = h("ol", { class: "cp-code" });
    this.breaks = h("div", {});
    this.calls = h("div", {});
    this.what = h("p", { class: "cp-what" });
    this.body = h("div", {});
    this.drawing = h("div", { class: "cp-scroll", tabindex: 0, role: "group", "aria-label": "Drawing of the graph" });
    this.legend = h("p", { class: "ut-soft cp-legend" });
    this.cuts = h("div", { class: "cp-cuts" });
    this.budget = h("input", { type: "range", min: 0, max: 10, step: 1, id: "cp-budget", oninput: () => this.change({ cut: (Number(this.budget.value) / 10).toFixed(1) }) });
    this.limit = h("b", {});
    this.whole = h("button", { type: "button", class: "ut-button", onclick: () => this.change({ cut: "default" }) }, "default_partition");
    this.knobs = h("p", { class: "cp-knobs" }, this.whole, h("label", { for: "cp-budget" }, "or min-cut, with activation_memory_budget"), this.budget, this.limit);
    return [
      this.tries.element,
      h("div", { class: "cp-two" },
        h("section", { class: "ut-panel", "aria-label": "Program" }, this.code, this.breaks, this.calls),
        h("section", { class: "ut-panel cp-stage", "aria-label": "Stage" }, this.tabs.element, this.graphs, this.what, this.knobs, this.cuts, this.body, this.legend, this.drawing)),
    ];
  }

  show({ program, stage, graph, cut }) {
    const { program: told, frame } = this;
    this.tries.show(program);
    this.tabs.show(stage);
    this.showCode(told);
    if (this.drawn !== program) {
      this.drawn = program;
      this.picked = choice({ label: "Graph", name: "cp-graph", options: told.frames.map(({ name }, i) => [`${i + 1}`, `graph ${i + 1}: ${name}`]), look: "ut-tabs cp-graphs", pick: (n) => this.change({ graph: Number(n) }) });
      put(this.graphs, told.frames.length > 1 ? this.picked.element : null);
    }
    this.graphs.hidden = stage === "python";
    this.picked.show(`${graph}`);
    const isGraph = stage === "dynamo" || stage === "joint" || stage === "partition";
    for (const part of [this.drawing, this.legend]) part.hidden = !isGraph;
    for (const part of [this.knobs, this.cuts]) part.hidden = stage !== "partition";
    this.said = this[stage](frame, told, cut);
    put(this.what, this.said);
  }

  showCode({ source, breaks, calls, frames }) {
    const at = new Set(breaks.map(({ line }) => line));
    put(this.code, source.split("\n").map((line, i) => h("li", { class: at.has(i + 1) ? "broken" : null }, h("code", {}, line), at.has(i + 1) ? h("b", { class: "no" }, " ✗") : null)));
    // Dynamo writes code between backticks.
    const marked = (text) => text.split("`").map((part, i) => (i % 2 ? h("code", {}, part) : part));
    put(this.breaks, breaks.map(({ line, title, why }) => h("p", { class: "cp-why" }, h("b", { class: "no" }, `✗ Line ${line} breaks the graph. `), h("b", {}, `${title}. `), marked(why))));
    put(this.calls, h("h2", {}, "Calls, one after the other"), h("ol", { class: "cp-calls" }, calls.map(({ call, frames: made }) => {
      const why = made.map((i) => frames[i].why).find(Boolean);
      const which = made.map((i) => i + 1).join(" and ");
      return h("li", {}, h("code", {}, call), " ", made.length ? h("b", {}, why ? `compiled again: graph ${which}` : `compiled: ${made.length > 1 ? "graphs" : "graph"} ${which}`) : h("b", { class: "yes" }, "guards hold, nothing compiled"), why ? h("span", { class: "ut-soft" }, ` A guard failed: ${why}`) : null);
    })));
  }

  // ── Stages: each shows itself and returns the words about it ──

  python(frame, { frames, breaks }) {
    put(this.body, frames.map(({ name, guards }, i) => [
      h("h2", {}, `Guards of graph ${i + 1}: ${name}`),
      h("ul", { class: "cp-guards" }, guards.map((guard) => h("li", {}, guard))),
    ]));
    const count = plural(frames.length, "graph");
    if (breaks.length) return `${count}: at the ✗ Dynamo stops, lets Python run, and goes on behind it with a new frame.`;
    return `${count}. Before it runs compiled code again, Dynamo checks the guards: what it took for given.`;
  }

  bytecode({ old, new: made }) {
    const list = (rows) => h("ol", { class: "cp-bytes" }, rows.map((row) => {
      const [line, text] = [row.slice(0, row.indexOf("|")), row.slice(row.indexOf("|") + 1)];
      return h("li", { class: /__compiled_fn|__resume_at/.test(text) ? "loud" : null }, h("span", { class: "ut-soft" }, line), h("code", {}, text));
    }));
    put(this.body, h("div", { class: "cp-pair" }, h("div", {}, h("h2", {}, "What Python compiled"), list(old)), h("div", {}, h("h2", {}, "What Dynamo runs instead"), list(made))));
    return "Dynamo reads the left side one instruction at a time, with fake tensors. What it can it puts into a graph; on the right, the graph is one call.";
  }

  graph(nodes, marks, title, legend) {
    put(this.body);
    const used = nodes.map((_, i) => marks(i));
    const shown = legend.filter(([test]) => used.some(test)).map(([, text]) => h("span", {}, text));
    put(this.legend, shown);
    put(this.drawing, drawGraph(nodes, marks, title), spoken(nodes));
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
    this.budget.value = cut === "default" ? 10 : Math.round(Number(cut) * 10);
    put(this.limit, cut === "default" ? "" : cut);
    const rows = settings(frame);
    const most = Math.max(1, ...rows.map(([, , one]) => savedBytes(frame, one) ?? 0));
    put(this.cuts, h("table", { class: "cp-table" }, h("thead", {}, h("tr", {}, ["cut", "saved", "computed twice"].map((name) => h("th", { scope: "col" }, name)))), h("tbody", {}, rows.map(([first, words, one]) => {
      const here = one === made && (first === "default") === (cut === "default");
      const own = savedBytes(frame, one);
      const again = redone(frame, one);
      return h("tr", { class: here ? "here" : null, "aria-current": here ? "true" : null }, h("th", { scope: "row" }, here ? "▸ " : "", words),
        h("td", {}, own === null ? "depends on s0" : bytesText(own), own === null ? null : h("span", { class: "cp-bar", style: `width:${(own / most) * 6}rem` })),
        h("td", {}, again.length ? again.join(", ") : "nothing", one.wrong ? h("b", { class: "no" }, " ✗ wrong gradients") : null));
    }))));
    const words = cut === "default" ? "default_partition saves all that the backward reads of the forward. Nothing is computed twice." : cut === "1.0" ? "What torch.compile does unless told otherwise: the cheapest cut, where cheap operators may run twice." : cut === "0.0" ? "A budget of 0: only inputs are saved, all else is computed again." : `A budget of ${cut}: it asks for ${Math.round(cut * 100)}% of the activations that the cut at 1.0 saves.`;
    const wrong = made.wrong ? " Dropout draws another mask the second time: these gradients are not eager's." : "";
    const tensors = made.saved.filter((i) => nodes[i].size).length;
    const number = tensors < made.saved.length ? " and the number s0" : "";
    return `${words} Saved: ${plural(tensors, "tensor")}${number}, ${bytesText(bytes)}.${wrong}`;
  }

  say({ program, stage, graph }) {
    return `${programOf(program).title}, ${TABS[stage]}${this.program.frames.length > 1 ? `, graph ${graph}` : ""}. ${this.said}`;
  }
}

customElements.define("compile-explorer", CompileExplorer);
