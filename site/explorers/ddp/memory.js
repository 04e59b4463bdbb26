// The panel of ZeRO: bytes that one rank keeps under each stage, and what a step sends.

import { choice, h, put } from "../explorer.js";
import { OPTIMIZERS, PARTS, PRECISIONS, ledger, parseCount } from "./ledger.js";
import { barRows, field, key, slider } from "./parts.js";
import { bytes, short } from "./words.js";

const RANKS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];
const TRIES = [["124M", 124e6], ["1.5B", 1.5e9], ["7B", 7e9], ["70B", 70e9]];
const OPTIMIZER = [["sgd", "SGD"], ["momentum", "SGD, momentum"], ["adam", "Adam"]];
const PRECISION = [["fp32", "fp32"], ["mixed", "mixed, 16-bit"]];
const NAMES = { weights: "weights", gradients: "gradients", master: "fp32 master weights", state: "optimizer state" };
const TITLES = ["replicas (DDP)", "ZeRO-1: shard the optimizer", "ZeRO-2: gradients, too", "ZeRO-3: weights, too"];
const TORCH = [
  "DistributedDataParallel.",
  "ZeroRedundancyOptimizer. Beside DDP it all-reduces all gradients and then broadcasts the new weights: half as much again on the way.",
  "No class of this name. fully_shard(model, reshard_after_forward=False) comes near: weights are whole from forward to the end of backward, and gathered once.",
  "fully_shard(model), which is FSDP2.",
];

export function zeroPanel(change) {
  const params = field({
    id: "dd-params", label: "parameters", size: 9, help: "Such as 7B, 124M or 1000.", parse: parseCount, give: (value) => change({ params: value }),
  });
  const tries = TRIES.map(([name, value]) => h("button", { type: "button", class: "ut-button", onclick: () => change({ params: value }) }, name));
  const ranks = slider({ label: "ranks", values: RANKS, say: String, give: (value) => change({ ranks: value }) });
  const optimizer = choice({ label: "Optimizer", name: "optimizer", options: OPTIMIZER, pick: (value) => change({ optimizer: value }) });
  const precision = choice({ label: "Precision", name: "precision", options: PRECISION, pick: (value) => change({ precision: value }) });
  const stages = barRows({ label: "Stage", name: "stage", options: TITLES.map((title, stage) => [String(stage), h("b", {}, stage), " ", title]), pick: (stage) => change({ stage: Number(stage) }) });
  const keys = h("div", {});
  const facts = h("dl", { class: "ut-facts" });
  const head = h("p", { class: "dd-verdict" });
  const element = h("div", {},
    h("section", { class: "ut-panel", "aria-label": "Model, ranks and optimizer" },
      h("p", { class: "ut-ask" }, h("label", { for: "dd-params" }, "parameters"), params.input, h("span", { class: "ut-tries", role: "group", "aria-label": "Sizes to try" }, tries), params.note),
      h("div", { class: "dd-knobs" }, ranks.element, optimizer.element, precision.element)),
    h("section", { class: "ut-panel", "aria-label": "Bytes per rank" }, h("h2", {}, "What one rank keeps from step to step"), stages.element, keys),
    h("section", { class: "ut-panel", "aria-label": "The chosen stage" }, head, facts));

  function show(state) {
    const rows = ledger(state);
    const row = rows[state.stage];
    params.show(short(state.params));
    ranks.show(state.ranks);
    optimizer.show(state.optimizer);
    precision.show(state.precision);
    const most = rows[0].total;
    stages.show(String(state.stage), rows.map((one) => ({ parts: PARTS.map((part) => [part, one[part] / most]), said: [h("b", {}, bytes(one.total)), ` ${percent(one.total / most)}`] })));
    put(keys, key(PARTS.filter((part) => rows[0][part]).map((part) => [part, NAMES[part]])));
    put(head, h("b", {}, `Stage ${state.stage}: ${bytes(row.total)} on each rank`), state.ranks > 1 ? `, and each sends ${bytes(row.sent)} per step.` : ". There is nobody to share with.");
    const fact = (name, ...value) => h("div", {}, h("dt", {}, name), h("dd", {}, value));
    put(facts,
      PARTS.filter((part) => rows[0][part]).map((part) => fact(NAMES[part], h("b", {}, bytes(row[part])), row[part] < rows[0][part] ? ` = ${bytes(rows[0][part])} / ${state.ranks}: a shard` : ": whole, the same on every rank")),
      rows[0].state ? null : fact("optimizer state", "none: plain SGD keeps nothing"),
      fact("sent per step", row.sent ? row.calls.map(([name, size], i) => [i ? " + " : "", `${name} `, h("b", {}, bytes(size))]) : "nothing"),
      fact("in PyTorch", TORCH[state.stage]),
      fact("not counted", "activations, buffers, communication buckets", state.stage === 3 ? ", the layers whose weights are gathered just now" : "", "."));
  }

  const say = (state) => {
    const row = ledger(state)[state.stage];
    return `Stage ${state.stage}: ${bytes(row.total)} on each of ${state.ranks} ranks: ${PARTS.filter((part) => row[part]).map((part) => `${NAMES[part]} ${bytes(row[part])}`).join(", ")}. Each sends ${bytes(row.sent)} per step.`;
  };
  return { element, show, say };
}

const percent = (share) => `${share < 0.1 ? (share * 100).toPrecision(2) : Math.round(share * 100)} %`;

export function readZero(given) {
  const params = parseCount(given.get("params") ?? "7B");
  const ranks = /^\d{1,5}$/.test(given.get("ranks") ?? "8") ? Number(given.get("ranks") ?? "8") : 0;
  const [optimizer, precision, stage] = [given.get("optimizer") ?? "adam", given.get("precision") ?? "mixed", given.get("stage") ?? "0"];
  const fine = params && ranks && Object.hasOwn(OPTIMIZERS, optimizer) && Object.hasOwn(PRECISIONS, precision) && /^[0-3]$/.test(stage);
  return fine ? { params, ranks, optimizer, precision, stage: Number(stage) } : null;
}

export const writeZero = ({ params, ranks, optimizer, precision, stage }) =>
  [["params", short(params)], ["ranks", ranks], ["optimizer", optimizer], ["precision", precision], ["stage", stage]];
