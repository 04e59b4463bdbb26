// <sharding-explorer>: a training step of a small model that several ranks share, moment by moment. The address holds
// strategy=fsdp, ranks=4, width=8, hidden=16, blocks=2, wrap=layer|model and at=5.

import { Explorer, choice, h, put } from "../explorer.js";
import { ranksPanel } from "./card.js";
import { CHALLENGES } from "./challenges.js";
import { codeOf } from "./code.js";
import { momentPanel } from "./curve.js";
import { BLOCKS, RANKS, SIZES, STRATEGIES, bytesOf, fits, gathers, layersOf, peakOf, timeline, total } from "./moments.js";
import { NAMES, NOTES, bytes, tell } from "./words.js";

/** The nearest state that can be: ranks for two dims, a hidden unit for each. */
function settled(state) {
  let [ranks, hidden] = [state.ranks, state.hidden];
  if (!fits({ ...state, hidden: 64 })) ranks = 4;
  if (!fits({ ...state, ranks, hidden })) hidden = SIZES.find((size) => size >= ranks);
  return { ...state, ranks, hidden, wrap: gathers(state.strategy) ? state.wrap : "layer" };
}

class ShardingExplorer extends Explorer {
  static parts = {
    ranks: [".sh-time", ".sh-ranks"],
    peak: [".sh-choose", ".sh-time"],
    cuts: [".sh-choose", ".sh-ranks"],
    code: [".sh-choose", ".sh-code"],
  };

  get challenges() { return CHALLENGES; }

  get pace() { return 900; }

  advance(state) { return state.at < this.stepOf(state).moments.length - 1 ? { at: state.at + 1 } : null; }

  rewind() { return { at: 0 }; }

  /** The step is worked out once for each choice, not for each moment of it: `held[rank][at]` are bytes by part. */
  stepOf(state) {
    const key = JSON.stringify({ ...state, at: 0 });
    if (this.worked?.key !== key) {
      const moments = timeline(state);
      const held = Array.from({ length: state.ranks }, (_, rank) => moments.map((moment) => bytesOf(state, moment, rank)));
      this.worked = { key, moments, held, peak: peakOf(state, moments) };
    }
    return this.worked;
  }

  read(params) {
    const get = (name, usual) => params.get(name) ?? usual;
    const number = (name, usual) => (/^\d{1,3}$/.test(get(name, usual)) ? Number(get(name, usual)) : NaN);
    const [strategy, wrap] = [get("strategy", "fsdp"), get("wrap", "layer")];
    const [ranks, width, hidden, blocks, at] = [["ranks", "4"], ["width", "8"], ["hidden", "16"], ["blocks", "2"], ["at", "0"]].map(([name, usual]) => number(name, usual));
    const state = { strategy, ranks, width, hidden, blocks, wrap };
    const known = STRATEGIES.includes(strategy) && RANKS.includes(ranks) && SIZES.includes(width) && SIZES.includes(hidden) && BLOCKS.includes(blocks) && ["layer", "model"].includes(wrap);
    if (!params.has("strategy") || !known || !fits(state) || (wrap === "model" && !gathers(strategy)) || Number.isNaN(at)) return null;
    return { ...state, at: Math.min(at, timeline(state).length - 1) };
  }

  write({ strategy, ranks, width, hidden, blocks, wrap, at }) {
    return [["strategy", strategy], ["ranks", ranks], ["width", width], ["hidden", hidden], ["blocks", blocks], ...(wrap === "model" ? [["wrap", wrap]] : []), ...(at ? [["at", at]] : [])];
  }

  build() {
    const pick = (name, as = Number) => (value) => this.change(settled({ ...this.state, [name]: as(value), at: 0 }));
    const chips = (label, name, options) => choice({ label, name: `sh-${name}`, options, pick: pick(name, name === "strategy" || name === "wrap" ? String : Number), look: "sh-chips" });
    const size = (label, name) => {
      const value = h("b", {}, "");
      const input = h("input", { type: "range", min: 0, max: SIZES.length - 1, "aria-label": label, oninput: () => pick(name)(SIZES[input.value]) });
      return { element: h("label", { class: "sh-size" }, label, input, value), show(n) {
        input.value = SIZES.indexOf(n);
        input.setAttribute("aria-valuetext", n);
        put(value, n);
      } };
    };
    this.knobs = {
      strategy: chips("Strategy", "strategy", STRATEGIES.map((id) => [id, NAMES[id]])),
      wrap: chips("What fully_shard wraps", "wrap", [["layer", "each layer"], ["model", "only the model"]]),
      ranks: chips("Ranks", "ranks", RANKS.map((n) => [n, n])),
      blocks: chips("Blocks", "blocks", BLOCKS.map((n) => [n, n])),
      width: size("width", "width"), hidden: size("hidden", "hidden"),
    };
    const row = (label, knob) => h("div", { class: `sh-knob for-${label}` }, h("b", {}, label), knob.element);
    this.note = h("p", { class: "sh-note" });
    this.shape = h("p", { class: "ut-soft" });
    this.wrap = row("fully_shard", this.knobs.wrap);
    this.code = h("pre", { class: "sh-program", tabindex: "0" });
    this.moment = momentPanel((at) => this.change({ at }));
    this.ranks = ranksPanel();
    return [h("div", { class: "sh-two" },
      h("section", { class: "ut-panel sh-choose", "aria-label": "Who keeps what" }, this.knobs.strategy.element, this.note, this.wrap,
        row("ranks", this.knobs.ranks), row("blocks", this.knobs.blocks), h("div", { class: "sh-sizes" }, this.knobs.width.element, this.knobs.hidden.element), this.shape),
      this.moment.element, this.ranks.element,
      h("section", { class: "ut-panel sh-code", "aria-label": "In PyTorch" }, h("p", { class: "sh-head" }, "In PyTorch"), this.code))];
  }

  show(state) {
    const step = this.stepOf(state);
    for (const [name, knob] of Object.entries(this.knobs)) knob.show(typeof state[name] === "number" && !["width", "hidden"].includes(name) ? String(state[name]) : state[name]);
    for (const input of this.knobs.ranks.element.querySelectorAll("input")) input.disabled = !fits({ ...state, ranks: Number(input.value), hidden: 64 });
    put(this.note, NOTES[state.strategy]);
    this.wrap.hidden = !gathers(state.strategy);
    const [up, down] = layersOf(state);
    put(this.shape, `${2 * state.blocks} layers without bias: up is (${up.rows}, ${up.cols}), down is (${down.rows}, ${down.cols}), in float32.`);
    const code = codeOf(state);
    if (this.code.textContent !== code) put(this.code, code);
    this.moment.show(state, step);
    this.ranks.show(state, step);
  }

  say(state) {
    const { moments, held, peak: { rank } } = this.stepOf(state);
    return `Moment ${state.at + 1} of ${moments.length}. ${tell(state, moments[state.at]).join(". ")} Rank ${rank} holds ${bytes(total(held[rank][state.at]))}.`;
  }
}

customElements.define("sharding-explorer", ShardingExplorer);
