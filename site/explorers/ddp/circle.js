// The panel of the ring: a row per rank, a column per piece, and the bytes that each rank sends.

import { choice, h, put } from "../explorer.js";
import { naive, pieces, ring } from "./ring.js";
import { fillBar, key, slider } from "./parts.js";
import { bytes, count } from "./words.js";

const RANKS = [2, 3, 4, 5, 6];
const SIZES = Array.from({ length: 24 }, (_, i) => i + 1);
const BYTES = 4;

export const lastStep = (ranks) => 2 * (ranks - 1);

const letters = (from) => [..."abcdef"].filter((_, rank) => from >> rank & 1).join("");

/** What happened in this step, in words. */
function story({ ranks, step }) {
  if (step === 0) return ["Start.", ` Every rank has a vector of its own, cut into ${ranks} pieces. The sum of all ${ranks} is wanted, on every rank.`];
  const half = step < ranks ? "reduce-scatter" : "all-gather";
  const does = step < ranks ? "sends one piece to the next, which adds it to its own" : "sends one finished piece to the next, where it replaces what was there";
  const now = step === ranks - 1 ? " Each rank now has one piece that holds everybody's sum." : step === lastStep(ranks) ? " Done: all ranks hold the same sum." : "";
  return [`Step ${step} of ${lastStep(ranks)}, ${half}.`, ` Every rank ${does}.${now}`];
}

export function ringPanel(change) {
  const ranks = choice({ label: "Ranks", name: "ranks", options: RANKS.map((n) => [String(n), n]), pick: (n) => change({ n: Number(n), step: 0 }) });
  const size = slider({ label: "vector", values: SIZES, say: (n) => count(n, "float32 number"), give: (value) => change({ size: value }) });
  const step = slider({ label: "step", values: [0], say: String, give: (value) => change({ step: value }) });
  const button = (text, name, to) => h("button", { type: "button", class: "ut-button", "aria-label": name, onclick: () => change((state) => ({ step: to(state) })) }, text);
  const back = button("◂ back", "One step back", (state) => Math.max(state.step - 1, 0));
  const next = button("next ▸", "Next step", (state) => (state.step < lastStep(state.n) ? state.step + 1 : 0));
  const said = h("p", { class: "dd-verdict" });
  const legend = h("p", { class: "ut-soft" }, "Letters say whose numbers are in a piece, the sums are below: rank 0 brings 1, 2, 3 and so on, rank 1 ten times that, rank 2 a hundred times. Dashed frame: sends. Thick frame: has received; + adds, = replaces. Double frame and ✓: the sum of all.");
  const grid = h("div", { class: "dd-scroll" });
  const moves = h("ul", { class: "dd-moves" });
  const costs = h("div", {});
  const element = h("div", {},
    h("section", { class: "ut-panel", "aria-label": "Ranks and vector" }, h("div", { class: "dd-knobs" }, h("div", { class: "dd-label" }, h("b", {}, "ranks"), ranks.element), size.element)),
    h("section", { class: "ut-panel", "aria-label": "The ring" },
      h("div", { class: "dd-stepper" }, back, next, step.element), said, grid, moves, legend),
    h("section", { class: "ut-panel", "aria-label": "Bytes" }, costs));

  function show({ n, size: length, step: at }) {
    const states = ring(n, length);
    ranks.show(String(n));
    size.show(length);
    step.show(at, states.map((_, i) => i));
    step.input.setAttribute("aria-valuetext", `${at} of ${lastStep(n)}`);
    next.textContent = at === lastStep(n) ? "again ↺" : "next ▸";
    const [head, rest] = story({ ranks: n, step: at });
    put(said, h("b", {}, head), rest);
    put(grid, table(states[at], n, length));
    put(moves, states[at].moves.map(({ rank, to, piece, adds, elements }) => h("li", {},
      h("b", {}, `${rank} → ${to}`), ` piece ${piece}, ${bytes(elements * BYTES)}, ${elements ? adds ? "added" : "replaces" : "nothing to send"}`)));
    put(costs, sums(states, at, n, length));
  }

  const say = ({ n, size: length, step: at }) => {
    const words = ring(n, length)[at].moves.map(({ rank, to, piece, adds }) => `rank ${rank} sends piece ${piece} to rank ${to}, ${adds ? "added" : "replaced"}`);
    return `${story({ ranks: n, step: at }).join("")} ${words.join("; ")}`.trim();
  };
  return { element, show, say };
}

function table({ moves, held, from }, ranks, size) {
  const cut = pieces(size, ranks);
  const full = 2 ** ranks - 1;
  const arrows = (rank) => {
    const move = moves.find((one) => one.rank === rank);
    return h("tr", { class: "dd-arrows", "aria-hidden": "true" }, h("th", {}), cut.map((_, piece) => h("td", {}, move?.piece === piece ? "↓" : "")));
  };
  const cell = (rank, piece) => {
    const sends = moves.some((one) => one.rank === rank && one.piece === piece);
    const gets = moves.find((one) => one.to === rank && one.piece === piece);
    const values = held[rank][piece];
    const done = from[rank][piece] === full;
    return h("td", { class: `dd-piece ${done ? "done" : from[rank][piece] === 1 << rank ? "own" : "part"}${sends ? " sends" : ""}${gets ? " gets" : ""}` },
      h("b", {}, gets ? h("span", {}, gets.adds ? "+ " : "= ") : null, values.length ? letters(from[rank][piece]) : "empty", done && values.length ? h("span", {}, " ✓") : null),
      h("small", {}, values.length > 3 ? [...values.slice(0, 2), "…"].join(" ") : values.join(" ")));
  };
  return h("table", { class: `dd-ring${ranks > 4 ? " many" : ""}`, style: `--n:${ranks}` },
    h("thead", {}, h("tr", {}, h("th", {}), cut.map(({ from: a, to: b }, piece) => h("th", { scope: "col" }, "piece ", piece, h("small", {}, b > a ? `[${a}:${b}]` : "empty"))))),
    h("tbody", {}, arrows(ranks - 1), held.map((_, rank) => [
      h("tr", {}, h("th", { scope: "row" }, "rank ", h("b", {}, rank), h("small", {}, letters(1 << rank))), cut.map((__, piece) => cell(rank, piece))),
      arrows(rank)])));
}

/** Bytes per rank: around the ring so far and in all, and by way of rank 0. */
function sums(states, at, ranks, size) {
  const other = naive(ranks, size);
  const whole = states.at(-1).sent;
  const most = Math.max(...other, ...whole) || 1;
  const bar = (parts) => { const element = h("span", { class: "dd-bar", "aria-hidden": "true" }); fillBar(element, parts); return element; };
  const [busiest, star] = [Math.max(...whole) * BYTES, other[0] * BYTES];
  return [
    h("h2", {}, "Bytes that each rank sends"),
    h("table", { class: "dd-sums" }, h("thead", {}, h("tr", {}, h("th", {}), h("th", { scope: "col" }, "around the ring"), h("th", { scope: "col" }, "all through rank 0"))),
      h("tbody", {}, whole.map((total, rank) => h("tr", {}, h("th", { scope: "row" }, `rank ${rank}`),
        h("td", {}, bar([["work", states[at].sent[rank] / most], ["rest", (total - states[at].sent[rank]) / most]]), h("span", {}, `${bytes(states[at].sent[rank] * BYTES)} of ${bytes(total * BYTES)}`)),
        h("td", {}, bar([["late", other[rank] / most]]), h("span", {}, bytes(other[rank] * BYTES))))))),
    key([["work", "sent so far"], ["rest", "still to come"], ["late", "if all send to rank 0, and it sends the sum back"]]),
    h("p", { class: "ut-soft" }, `The vector has ${bytes(size * BYTES)}. `,
      ranks === 2 ? "Between two ranks both ways send the same bytes. A third makes the difference."
        : `Both ways send ${bytes(2 * (ranks - 1) * size * BYTES)} in all, but in the ring no rank sends more than ${bytes(busiest)}, while rank 0 alone would send ${bytes(star)} and receive as much. However many ranks there are, none sends more than twice the vector in a ring; what passes through rank 0 grows with each.`),
  ];
}

export function readRing(params) {
  const whole = (name, fallback) => (/^\d{1,2}$/.test(params.get(name) ?? fallback) ? Number(params.get(name) ?? fallback) : NaN);
  const [n, size, step] = [whole("n", "4"), whole("size", "8"), whole("step", "0")];
  return RANKS.includes(n) && SIZES.includes(size) && step <= lastStep(n) ? { n, size, step } : null;
}

export const writeRing = ({ n, size, step }) => [["n", n], ["size", size], ["step", step]];
