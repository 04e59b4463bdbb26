// The moment that is shown, and the bytes of the fullest rank over the whole step.

import { h, put } from "../explorer.js";
import { PARTS, alone } from "./moments.js";
import { bytes, sent, tell } from "./words.js";

const percent = (share) => `${Math.round(100 * share)} %`;

export function momentPanel(go) {
  let at = 0;
  const button = (by) => h("button", { type: "button", class: "ut-button", "aria-label": by < 0 ? "Moment before" : "Next moment", onclick: (event) => {
    if (event.currentTarget.getAttribute("aria-disabled") !== "true") go(at + by);
  } }, by < 0 ? "◂" : "▸");
  const [back, next] = [button(-1), button(1)];
  const input = h("input", { type: "range", min: 0, "aria-label": "Moment", oninput: () => go(Number(input.value)) });
  const count = h("span", { class: "ut-soft sh-count" });
  const name = h("p", { class: "sh-head" });
  const said = h("p", { class: "sh-said" });
  const bars = h("div", { class: "sh-bars", "aria-hidden": "true" });
  const most = h("p", { class: "sh-peak" });
  const sums = h("p", { class: "ut-soft" });
  const element = h("section", { class: "ut-panel sh-time", "aria-label": "One training step" },
    h("div", { class: "sh-bar" }, back, next, count), name, said, bars, input, most, sums);
  let drawn = "";

  function show(state, { key, moments, held, peak }) {
    at = state.at;
    const last = moments.length - 1;
    back.setAttribute("aria-disabled", at === 0);
    next.setAttribute("aria-disabled", at === last);
    [input.max, input.value] = [last, at];
    const [title, sentence] = tell(state, moments[at]);
    input.setAttribute("aria-valuetext", `${at + 1} of ${last + 1}: ${title}`);
    put(count, `moment ${at + 1} of ${last + 1}`);
    put(name, title);
    put(said, sentence);
    if (drawn !== key) {
      drawn = key;
      const top = Math.max(alone(state), peak.bytes);
      put(bars, moments.map((moment, i) => {
        const now = held[peak.rank][i];
        return h("span", { class: moment.what ? "talks" : null }, PARTS.filter((part) => now[part]).map((part) => h("i", { class: part, style: `height:${100 * now[part] / top}%` })).reverse());
      }));
      bars.style.setProperty("--n", moments.length);
      bars.style.setProperty("--alone", `${100 * alone(state) / top}%`);
      put(most, h("b", {}, `At most ${bytes(peak.bytes)}`), ` on rank ${peak.rank}: ${percent(peak.bytes / alone(state))} of the ${bytes(alone(state))} that one rank would need alone (the dashed line).`);
      const calls = sent(state, moments, 0);
      put(sums, "Dots are collectives. Rank 0 brings, in the whole step: ", calls.map(([kind, n, size], i) => [i ? "; " : "", h("span", { class: "sh-call" }, `${n} × ${kind}, ${bytes(size)}`)]), ".");
    }
    [...bars.children].forEach((bar, i) => bar.classList.toggle("here", i === at));
  }

  return { element, show };
}
