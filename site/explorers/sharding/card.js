// A card per rank: of each layer's weight, gradient and Adam state, the part that is there now.

import { h, put } from "../explorer.js";
import { PARTS, groupsOf, hasAdam, hasBucket, isFresh, layersOf, meshOf, paddingOf, pieceOf, placeOf, total } from "./moments.js";
import { bytes } from "./words.js";

const LABELS = { weights: "weights", gathered: "gathered", gradients: "gradients", adam: "Adam, 2 ×", buffers: "buffers" };
const KEY = [
  ["weights", "weights"], ["fresh", "changed by the optimizer"], ["gathered", "gathered weights"], ["own", "gradient of the own batch"], ["partial", "averaged in one half"],
  ["ready", "gradient, ready"], ["room", "room in DDP's bucket"], ["adam", "Adam's two averages"], ["buffers", "buffers of collectives"],
];

const place = ({ rows: [a, b], cols: [c, d] }, { rows, cols }) =>
  `left:${100 * a / rows}%;width:${100 * (b - a) / rows}%;top:${100 * c / cols}%;height:${100 * (d - c) / cols}%`;

/** What of layer i a rank has in a part just now: [kind, which piece], or null. */
function found(state, moment, rank, part, i) {
  switch (part) {
    case "weights": return [isFresh(state, moment, i, rank) ? "fresh" : "weights", "own"];
    case "gathered": return moment.gathered.includes(i) ? ["gathered", "whole"] : null;
    case "gradients":
      if (moment.own.includes(i)) return ["own", "whole"];
      if (moment.partial.includes(i)) return ["partial", "own"];
      return moment.reduced.includes(i) ? ["ready", "own"] : hasBucket(state) ? ["room", "own"] : null;
    case "adam": return hasAdam(state, i, rank) ? ["adam", "own"] : null;
    default: return moment.buffers.some(({ layers }) => layers.includes(i)) ? ["buffers", "whole"] : null;
  }
}

const range = ([a, b], name) => (b - a === 1 ? `${name} ${a}` : `${name}s ${a} to ${b - 1}`);

/** A piece in words: "rows 0 to 3", "columns 4 to 7", "all", "nothing". */
function words({ rows, cols }, layer) {
  if (rows[0] === rows[1] || cols[0] === cols[1]) return "nothing";
  const part = [rows[1] - rows[0] < layer.rows && range(rows, "row"), cols[1] - cols[0] < layer.cols && range(cols, "column")].filter(Boolean);
  return part.join(", ") || "all";
}

export function ranksPanel() {
  const grid = h("div", { class: "sh-cards" });
  const key = h("p", { class: "sh-key" });
  const element = h("section", { class: "ut-panel sh-ranks", "aria-label": "What each rank holds now" }, grid, key);

  function show(state, { moments, held: all }) {
    const moment = moments[state.at];
    const layers = layersOf(state);
    const mesh = meshOf(state);
    // A row is there if the step ever fills it, so that nothing jumps.
    const parts = PARTS.filter((part) => all.some((step) => step.some((held) => held[part])));
    const seen = new Set(moments.flatMap((one) => parts.flatMap((part) => layers.map((_, i) => found(state, one, 0, part, i)?.[0]))));
    const padded = all.map((_, rank) => [rank, paddingOf(state, rank)]).filter(([, size]) => size);
    const talk = moment.what ? groupsOf(state, moment.dim) : [];

    put(grid, all.map((step, rank) => {
      const held = step[state.at];
      const at = placeOf(rank, mesh);
      const where = state.strategy === "hsdp" ? `half ${at.replica}, shard ${at.shard}` : state.strategy === "fsdp_tp" ? `shard ${at.shard}, part ${at.tensor}` : "";
      const others = (talk.find((group) => group.includes(rank)) ?? []).filter((one) => one !== rank);
      return h("div", { class: "sh-card", role: "group", "aria-label": `Rank ${rank}` },
        h("p", { class: "sh-who" }, h("b", {}, `rank ${rank}`), where ? h("span", { class: "ut-soft" }, where) : null,
          others.length ? h("span", { class: "sh-talk" }, moment.kind === "broadcast" ? (moment.from === rank ? `→ ${others.join(" ")}` : `← ${moment.from}`) : `⇄ ${others.join(" ")}`) : null,
          h("b", { class: "sh-total" }, bytes(total(held)))),
        h("p", { class: "sh-row sh-names", "aria-hidden": "true" }, h("span", {}), h("span", { class: "sh-cells" }, layers.map(({ name }, i) => h("span", { class: moment.layers.includes(i) ? "now" : null }, name.slice(0, -1), h("span", {}, name.slice(-1))))), h("span", {})),
        parts.map((part) => {
          const cells = layers.map((layer, i) => {
            const what = found(state, moment, rank, part, i);
            const box = what && pieceOf(state, layer, rank)[what[1]];
            const fresh = part === "gradients" ? [...(moment.made.own ?? []), ...(moment.made.reduced ?? [])] : part === "buffers" ? (moment.made.buffers ?? []).flatMap((one) => one.layers) : [];
            return { what, box, said: box && `${layer.name} ${words(box, layer)}`, made: fresh.includes(i) };
          });
          const said = cells.map((cell) => cell.said).filter(Boolean).join("; ");
          return h("p", { class: `sh-row of-${part}` }, h("span", {}, LABELS[part]),
            h("span", { class: "sh-cells", "aria-hidden": "true" }, cells.map(({ what, box, made }, i) => h("span", { class: made ? "made" : null }, what && words(box, layers[i]) !== "nothing" ? h("i", { class: what[0], style: place(box, layers[i]) }) : null))),
            h("span", { class: "sh-bytes" }, held[part] ? bytes(held[part]) : "0"), h("span", { class: "ut-unseen" }, said ? `: ${said}` : ": nothing"));
        }));
    }));
    put(key, KEY.filter(([kind]) => seen.has(kind)).map(([kind, name]) => h("span", { class: `of-${kind}` }, h("i", { class: kind }), name)),
      padded.length ? h("span", {}, `Weights are padded to be sent, and that stays in memory: ${padded.map(([rank, size]) => `${bytes(size)} on rank ${rank}`).join(", ")}.`) : null,
      h("span", {}, `Rows of a weight lie side by side${mesh.tensor > 1 ? ", its columns one below the other" : ""}.`));
  }
  return { element, show };
}
