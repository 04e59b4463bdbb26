// <dataloader-explorer>: who loads which batch when, and what waits for what, as the knobs move. The
// address has the settings by their names, slow=3.7 for slow samples, and the cursor: at, how many events have
// happened, or t, a moment between two of them.

import { Explorer, h, put } from "../explorer.js";
import { CHALLENGES } from "./challenges.js";
import { RANGES, knobs } from "./knobs.js";
import { counters, happened, mostMemory, places, simulate } from "./run.js";
import { timeline } from "./timeline.js";
import { count, meanwhile, python, tell, totals, units, verdict } from "./words.js";

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

/** The cursor after so many events, and at some moment: the two ways to say where it is. */
function placed(settings, at) {
  const { events } = simulate(settings);
  const to = Math.min(at, events.length);
  return { at: to, time: to ? events[to - 1].time : 0 };
}

function moment(settings, time) {
  const run = simulate(settings);
  return { at: happened(run, time), time: Math.min(time, run.total) };
}

const TICK = 50;
const SPEED = 8;

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

  get challenges() { return CHALLENGES; }

  get pace() { return TICK; }

  /** A little further in time: so many units a second. */
  advance({ at, time }) {
    const { run } = this;
    if (at === run.events.length) return null;
    const to = Math.round(10 * Math.min(run.total, time + TICK * SPEED / 1000)) / 10;
    return { at: happened(run, to), time: to };
  }

  rewind() {
    return { at: 0, time: 0 };
  }

  read(params) {
    const given = (name) => params.get(name) ?? null;
    const names = [...Object.keys(DEFAULTS), "in_order", "drop_last", "slow", "at", "t"];
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
    const time = given("t");
    if (![...slow, at].every((text) => /^\d{1,3}$/.test(text)) || !/^\d{1,4}(\.\d)?$/.test(time ?? "0")) return null;
    state.slow = [...new Set(slow.map(Number))].filter((sample) => sample < state.samples).sort((a, b) => a - b);
    return { ...state, ...(time === null ? placed(state, Number(at)) : moment(state, Number(time))) };
  }

  write({ in_order, drop_last, slow, at, time, ...state }) {
    const pairs = Object.keys(DEFAULTS).map((name) => [name, state[name]]);
    if (!in_order) pairs.push(["in_order", "False"]);
    if (drop_last) pairs.push(["drop_last", "True"]);
    if (slow.length) pairs.push(["slow", slow.join(".")]);
    const { events } = this.run;
    if (time > (events[at - 1]?.time ?? 0)) pairs.push(["t", time]);
    else if (at < events.length) pairs.push(["at", at]);
    return pairs;
  }

  get run() {
    const { at, time, ...settings } = this.state;
    const key = JSON.stringify(settings);
    if (this.key !== key) {
      this.key = key;
      this.known = simulate(settings);
    }
    return this.known;
  }

  /** A knob moves: the cursor stays at its time, or at the end. */
  turn(part) {
    const { at, time } = this.state;
    const next = { ...this.state, ...part };
    next.slow = next.slow.filter((sample) => sample < next.samples);
    const ended = at === this.run.events.length;
    this.change({ ...next, ...(at || time ? moment(next, ended ? Infinity : time) : placed(next, 0)) });
  }

  build() {
    const tries = TRIES.map(([name, { at = 999, ...settings }]) => {
      const whole = { ...DEFAULTS, in_order: true, drop_last: false, slow: [], ...settings };
      const go = () => this.change({ ...whole, ...placed(whole, at) });
      return h("button", { type: "button", class: "ut-button", onclick: go }, name);
    });
    this.knobs = knobs((part) => this.turn(part));
    this.point = h("p", { class: "dl-verdict" });
    this.timeline = timeline((at, time) => this.change({ at, time }));
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
    const { at, time } = state;
    this.knobs.show(state);
    const [point, more] = verdict(run);
    put(this.point, h("b", {}, point), " ", more);
    const sentence = this.sentence();
    this.timeline.show(run, at, time, `${at} of ${run.events.length} events, unit ${units(time)}. ${sentence}`);
    put(this.event, h("b", {}, `Unit ${units(time)}`), h("span", { class: "ut-soft" }, ` event ${at} of ${run.events.length}`), h("br", {}), sentence);
    this.showWhere(run, at, time);
    this.showCounts(run, at, time);
    const all = totals(state);
    put(this.others, all.map((total, n) => h("li", { class: n === state.num_workers ? "here" : "" },
      h("span", {}, count(n, "worker")), h("i", { style: `--part:${total / Math.max(...all, 1)}` }), h("b", {}, total))));
    put(this.code, python(state));
  }

  /** What has just happened, or what goes on since. */
  sentence() {
    const { at, time } = this.state;
    if (time > (this.run.events[at - 1]?.time ?? 0)) return meanwhile(this.run, at, time);
    return at ? tell(this.run, at - 1) : "Nothing has happened yet.";
  }

  showWhere(run, at, time) {
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
      return row(n ? `worker ${worker}` : "main process", busy.length ? ["loads ", chips(busy), h("span", { class: "ut-soft" }, ` ${units(time - run.of[busy[0]].start)} of ${run.cost[busy[0]]}`)] : idle(),
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

  showCounts(run, at, time) {
    const { given, finished, delivered, flight, waited, memory } = counters(run, at, time);
    const { num_workers: n, prefetch_factor } = run.knobs;
    const total = run.batches.length;
    const row = (name, value, note) => h("div", {}, h("dt", {}, name), h("dd", {}, h("b", {}, value), h("span", { class: "ut-soft" }, ` ${note}`)));
    put(this.counts,
      row("given out", given, `of ${count(total, "batch", "batches")}`), row("finished", finished, `of ${total}`), row("delivered", delivered, `of ${total}`),
      n ? row("in flight", flight, `of at most ${prefetch_factor} × ${n}`) : null,
      row("consumer waited", units(waited), `of ${count(run.waited, "unit")}`),
      row("ready in memory", memory, `of at most ${mostMemory(run)}`));
  }

  say() {
    const settings = this.key;
    if (this.said === settings) return this.sentence();
    this.said = settings;
    return `${verdict(this.run).join(" ")} The epoch takes ${this.run.total} units.`;
  }
}

customElements.define("dataloader-explorer", DataloaderExplorer);
