// <watching-explorer>: what torch.profiler recorded of a program. Lanes, own times, memory, and who belongs to whom.
// The address holds trace=step, ask=time, sort=own, at=12, the number of a call, and from and to in nanoseconds.

import { Explorer, choice, h, put } from "../explorer.js";
import { CHALLENGES } from "./challenges.js";
import { chart } from "./chart.js";
import { opened, textOf } from "./opening.js";
import { details, lines, table } from "./panels.js";
import { keepOwn, profileBy, traces } from "./profile.js";
import { QUESTIONS, answer, callText, plural } from "./words.js";

const SORTS = ["own", "total", "bytes"];

class WatchingExplorer extends Explorer {
  static parts = {
    time: [".wt-chart"],
    story: [".wt-asks", ".wt-chart"],
    names: [".wt-chart", ".wt-names"],
    call: [".wt-chart", ".wt-call"],
    lines: [".wt-lines", ".wt-chart"],
  };

  get challenges() { return CHALLENGES; }

  get pace() { return 4000; }

  /** To the next question that has an answer in this trace. */
  advance({ trace, ask }) {
    const next = QUESTIONS.slice(QUESTIONS.findIndex(([id]) => id === ask) + 1).find(([id]) => answer(profileBy(trace), id));
    return next ? this.asked(trace, next[0]) : null;
  }

  rewind({ trace }) { return this.asked(trace, "ran"); }

  /** What changes when a question is asked. */
  asked(trace, ask) {
    const { at, by } = answer(profileBy(trace), ask);
    return { ask, at, from: null, to: null, ...(by ? { sort: by } : {}) };
  }

  read(params) {
    const get = (name, usual) => params.get(name) ?? usual;
    const trace = get("trace", "");
    const profile = profileBy(trace);
    if (!profile) return null;
    const number = (name) => (/^\d{1,15}$/.test(get(name, "")) ? Number(params.get(name)) : -1);
    const [at, from, to] = ["at", "from", "to"].map(number);
    const shown = from >= 0 && to > from && to <= profile.end && to - from < profile.end;
    const ask = answer(profile, get("ask", "")) ? params.get("ask") : "";
    const sort = SORTS.includes(get("sort", "")) ? params.get("sort") : "own";
    return { trace, ask, sort, at: at < profile.calls.length ? at : -1, from: shown ? from : null, to: shown ? to : null };
  }

  write({ trace, ask, sort, at, from, to }) {
    return [["trace", trace], ...(ask ? [["ask", ask]] : []), ...(sort === "own" ? [] : [["sort", sort]]), ...(at >= 0 ? [["at", at]] : []), ...(from === null ? [] : [["from", from], ["to", to]])];
  }

  build() {
    this.choices = h("div", {});
    this.offer();
    this.file = h("input", { type: "file", id: "wt-file", accept: ".json,.gz,application/json", onclick: () => { this.file.value = ""; }, onchange: () => this.open(this.file.files[0]) });
    this.fault = h("p", { class: "no", role: "alert", hidden: true });
    this.left = h("p", { class: "ut-soft", hidden: true });
    this.asks = choice({ label: "Questions", name: "wt-ask", options: QUESTIONS.map(([id, text]) => [id, text]), look: "wt-chips", pick: (ask) => this.change(this.asked(this.state.trace, ask)) });
    this.said = h("p", { class: "wt-said" });
    this.chart = chart((part) => this.change(part));
    const go = (at) => this.chart.select(at);
    this.lines = lines(go);
    this.details = details(go);
    this.table = table((sort) => this.change({ sort }), go);
    return [
      this.choices,
      h("div", { class: "wt-own" }, h("label", { for: "wt-file" }, "Your own: open what ", h("code", {}, "prof.export_chrome_trace"), " wrote. It stays on this machine."), this.file, this.fault, this.left),
      h("section", { class: "wt-asks", "aria-label": "Questions" }, this.asks.element, this.said),
      h("section", { class: "ut-panel wt-chart", "aria-label": "Calls over time" }, this.chart.elements),
      h("div", { class: "wt-two" }, h("div", {}, this.lines.element, this.details.element), this.table.element),
    ];
  }

  /** The traces that there are. */
  offer() {
    this.tries = choice({ label: "Trace", name: "wt-trace", options: traces().map(({ id, title }) => [id, title]), look: "wt-chips wt-traces", pick: (trace) => this.change({ trace, ask: "", at: -1, from: null, to: null }) });
    put(this.choices, this.tries.element);
  }

  async open(file) {
    if (!file) return;
    const { trace, fault } = opened(await textOf(file).catch(() => ""), file.name);
    this.fault.hidden = !fault;
    put(this.fault, fault);
    if (fault) return;
    const id = keepOwn(trace);
    this.offer();
    this.change({ trace: id, ask: "", sort: "own", at: -1, from: null, to: null });
  }

  show(state) {
    const profile = profileBy(state.trace);
    this.tries.show(state.trace);
    this.asks.show(state.ask);
    QUESTIONS.forEach(([id], i) => { this.asks.element.children[i + 1].hidden = !answer(profile, id); });
    put(this.said, answer(profile, state.ask)?.said ?? "A trace answers questions. Ask one of them, or look around below.");
    this.left.hidden = !profile.left;
    put(this.left, profile.left ? `${plural(profile.left, "bar")} of this file had no begin or no duration, and were left out.` : null);
    this.chart.show(state, profile);
    this.lines.show(profile, state.at);
    this.details.show(profile, state.at);
    this.table.show(profile, state.at, profile.memory.length || state.sort !== "bytes" ? state.sort : "own");
  }

  say({ trace, ask, at }) {
    const profile = profileBy(trace);
    const said = answer(profile, ask);
    if (said && said.at === at) return said.said;
    return at >= 0 ? callText(profile, at) : "No call is selected.";
  }
}

customElements.define("watching-explorer", WatchingExplorer);
