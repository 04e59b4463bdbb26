// <dataloader-explorer>: who loads which batch when, and what waits for what, as the knobs move. The
// address has the settings by their names, slow=3.7 for slow samples, and at: how many events have happened.

import { Explorer, h, put } from "../explorer.js";
import { RANGES, knobs } from "./knobs.js";
import { counters, mostMemory, places, simulate } from "./run.js";
import { timeline } from "./timeline.js";
import { count, python, tell, totals, verdict } from "./words.js";

const DEFAULTS = { samples: 16, batch_size: 2, num_workers: 2, prefetch_factor: 2, load: 2, late: 24, work: 4 };
const TRIES = [
  ["all even", { work: 2 }],
  ["no workers", { num_workers: 0, work: 5 }],
  ["one slow sample", { slow: [4], at: 24 }],
  ["… and in_order=False", { slow: [4], in_order: false, at: 30 }],
  ["a slow consumer", { num_workers: 3, work: 12, at: 30 }],
  ["prefetch more", { num_workers: 3, prefetch_factor: 4, work: 12, samples: 32, at: 48 }],
  ["every other batch slow", { slow: [0, 1, 4, 5, 8, 9, 12, 13], late: 7, work: 1 }],
];

const KEY = [["slow", "slow sample"], ["collate", "collate"], ["ready", "in the result queue"], ["aside", "put aside: not its turn"], ["wait", "consumer waits"]];

class DataloaderExplorer extends Explorer {
  static parts = {
    timeline: ["[aria-label=Timeline]"],
    workers: [".dl-knob:has([id^=dl-num_workers])", "[aria-label=Timeline]"],
    prefetch: [".dl-knob:has([id^=dl-prefetch_factor])", "[aria-label=Timeline]"],
    consumer: [".dl-knob:has([id^=dl-work])", "[aria-label=Timeline]"],
    slow: [".dl-samples", "[aria-label=Timeline]"],
    order: [".dl-switch", "[aria-label=Timeline]"],
    places: ["[aria-label=Timeline]", ".dl-where"],
    counts: ["[aria-label=Timeline]", ".dl-counts"],
  };

  read(params) {
    const given = (name) => params.get(name) ?? null;
    const names = [...Object.keys(DEFAULTS), "in_order", "drop_last", "slow", "at"];
    if (names.every((name) => given(name) === null)) return null;
    const state = {};
    for (const [name, [, least, most]] of Object.entries(RANGES)) {
      const text = given(name) ?? String(DEFAULTS[name]);
      if (!/^\d{1,3}$/.test(text) || text < least || text > most) return null;
      state[name] = Number(text);
    }
    for (const [name, usual] of [["in_order", "True"], ["drop_last", "False"]]) {
      const text = given(name) ?? usual;
      if (!["True", "False"].includes(text)) return null;
      state[name] = text === "True";
    }
    const slow = (given("slow") ?? "").split(".").filter((text) => text);
    const at = given("at") ?? "999";
    if (![...slow, at].every((text) => /^\d{1,3}$/.test(text))) return null;
    state.slow = [...new Set(slow.map(Number))].filter((sample) => sample < state.samples).sort((a, b) => a - b);
    return { ...state, at: Math.min(Number(at), simulate(state).events.length) };
  }

  write({ in_order, drop_last, slow, at, ...state }) {
    const pairs = Object.keys(DEFAULTS).map((name) => [name, state[name]]);
    if (!in_order) pairs.push(["in_order", "False"]);
    if (drop_last) pairs.push(["drop_last", "True"]);
    if (slow.length) pairs.push(["slow", slow.join(".")]);
    if (at < this.run.events.length) pairs.push(["at", at]);
    return pairs;
  }

  get run() {
    const { at, ...settings } = this.state;
    const key = JSON.stringify(settings);
    if (this.key !== key) {
      this.key = key;
      this.known = simulate(settings);
    }
    return this.known;
  }

  /** A knob moves: the cursor stays at its time, or at the end. */
  turn(part) {
    const { at } = this.state;
    const { events } = this.run;
    const time = at === events.length ? Infinity : at ? events[at - 1].time : -1;
    const next = { ...this.state, ...part };
    next.slow = next.slow.filter((sample) => sample < next.samples);
    this.change({ ...next, at: simulate(next).events.filter((event) => event.time <= time).length });
  }

  build() {
    const tries = TRIES.map(([name, { at = 999, ...settings }]) => {
      const whole = { ...DEFAULTS, in_order: true, drop_last: false, slow: [], ...settings };
      const go = () => this.change({ ...whole, at: Math.min(at, simulate(whole).events.length) });
      return h("button", { type: "button", class: "ut-button", onclick: go }, name);
    });
    this.knobs = knobs((part) => this.turn(part));
    this.point = h("p", { class: "dl-verdict" });
    this.timeline = timeline((at) => this.change({ at }));
    const step = (name, go) => h("button", { type: "button", class: "ut-button", onclick: go }, name);
    this.event = h("p", { class: "dl-event" });
    this.where = h("dl", { class: "dl-where" });
    this.counts = h("dl", { class: "dl-counts" });
    this.others = h("ol", { class: "dl-others" });
    this.code = h("code", {});
    return [
      h("p", { class: "ut-tries", role: "group", "aria-label": "Settings to try" }, tries),
      this.knobs.element,
      h("section", { class: "ut-panel", "aria-label": "Timeline" },
        this.point, this.timeline.element,
        h("div", { class: "dl-steps" },
          step("◀ back", () => this.timeline.go(-1)), step("step ▶", () => this.timeline.go(1)),
          step("next delivery ▶▶", () => this.timeline.jump(1)), step("to the end", () => this.timeline.go(999))),
        this.event, h("p", { class: "dl-key ut-soft" }, KEY.map(([look, words]) => h("span", {}, h("i", { class: look }), words)))),
      h("section", { class: "ut-panel dl-now", "aria-label": "At the cursor" },
        h("div", {}, h("h2", {}, "Where each batch is"), this.where), h("div", {}, h("h2", {}, "Counted"), this.counts)),
      h("section", { class: "ut-panel", "aria-label": "Other numbers of workers" },
        h("h2", {}, "The same epoch with other num_workers, in units"), this.others),
      h("p", { class: "ut-soft dl-code" }, "In PyTorch: ", this.code),
    ];
  }

  show(state) {
    const { run } = this;
    this.said ??= this.key; // what a page opens with is not announced
    const { at } = state;
    this.knobs.show(state);
    const [point, more] = verdict(run);
    put(this.point, h("b", {}, point), " ", more);
    const { time } = counters(run, at);
    const sentence = at ? tell(run, at - 1) : "Nothing has happened yet.";
    this.timeline.show(run, at, `${at} of ${run.events.length} events, unit ${time}. ${sentence}`);
    put(this.event, h("b", {}, `Unit ${time}`), h("span", { class: "ut-soft" }, ` event ${at} of ${run.events.length}`), h("br", {}), sentence);
    this.showWhere(run, at);
    this.showCounts(run, at);
    const all = totals(state);
    put(this.others, all.map((total, n) => h("li", { class: n === state.num_workers ? "here" : "" },
      h("span", {}, count(n, "worker")), h("i", { style: `--part:${total / Math.max(...all, 1)}` }), h("b", {}, total))));
    put(this.code, python(state));
  }

  showWhere(run, at) {
    const list = places(run, at);
    const { num_workers: n, in_order } = run.knobs;
    const chip = (batch, kind = "") => h("span", { class: `dl-chip w${Math.max(run.of[batch].worker, 0)} ${kind}` }, batch);
    const those = (...names) => [...list.keys()].filter((batch) => names.includes(list[batch]));
    const row = (name, ...shown) => h("div", {}, h("dt", {}, name), h("dd", {}, shown));
    const chips = (batches, kind) => batches.length ? batches.map((batch) => chip(batch, kind)) : h("span", { class: "ut-soft" }, "–");
    const of = (name, worker) => those(name).filter((batch) => run.of[batch].worker === worker);
    const plain = (name, batches) => row(name, batches.length ? `${batches.join(" ")}` : h("span", { class: "ut-soft" }, "–"));
    const [hand] = those("hand");
    const last = run.events.slice(0, at).findLast(({ kind }) => ["ask", "deliver", "stop"].includes(kind))?.kind;
    const idle = () => h("span", { class: "ut-soft" }, n && those("later").length && at ? "idle: prefetch is used up" : "idle");
    const holds = hand === undefined ? null : [h("span", { class: "ut-soft" }, " still holds "), chip(hand, "queued")];
    const workers = Array.from({ length: Math.max(n, 1) }, (_, worker) => {
      const busy = of("loading", n ? worker : -1);
      const queue = of("queued", worker);
      return row(n ? `worker ${worker}` : "main process", busy.length ? ["loads ", chips(busy)] : idle(),
        queue.length ? [h("span", { class: "ut-soft" }, " then "), chips(queue, "queued")] : null);
    });
    const aside = those("aside");
    put(this.where,
      plain(n ? "not given out" : "not asked for", those("later")),
      workers,
      n ? [row("result queue", chips(those("ready"))), in_order ? row("put aside", chips(aside, "aside")) : null] : null,
      row("consumer", last === "ask" ? [h("b", { class: "dl-waits" }, "waits"), holds] : last === "deliver" ? ["works on ", chip(hand)] : last === "stop" ? ["has finished", holds] : chips([])),
      plain("done", those("done")));
  }

  showCounts(run, at) {
    const { given, finished, delivered, flight, waited, memory } = counters(run, at);
    const { num_workers: n, prefetch_factor } = run.knobs;
    const total = run.batches.length;
    const row = (name, value, note) => h("div", {}, h("dt", {}, name), h("dd", {}, h("b", {}, value), h("span", { class: "ut-soft" }, ` ${note}`)));
    put(this.counts,
      row("given out", given, `of ${count(total, "batch", "batches")}`), row("finished", finished, `of ${total}`), row("delivered", delivered, `of ${total}`),
      n ? row("in flight", flight, `of at most ${prefetch_factor} × ${n}`) : null,
      row("consumer waited", waited, `of ${count(run.waited, "unit")}`),
      row("ready in memory", memory, `of at most ${mostMemory(run)}`));
  }

  say(state) {
    const settings = this.key;
    const sentence = state.at ? tell(this.run, state.at - 1) : "Nothing has happened yet.";
    if (this.said === settings) return sentence;
    this.said = settings;
    return `${verdict(this.run).join(" ")} The epoch takes ${this.run.total} units.`;
  }
}

customElements.define("dataloader-explorer", DataloaderExplorer);
