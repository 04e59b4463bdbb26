// The first panel: what is called and how, the keys as lanes, and the stops of the road.

import { choice, h, put } from "../explorer.js";
import { CALLS, GROUPS, MODES, TENSORS, allowed, falls, keySet, names, table } from "./road.js";
import { LANES } from "./tables.js";
import { MODE_NAMES, TENSOR_NAMES, explain } from "./words.js";

const plural = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;

/** A long name may break before its capitals. */
const broken = (name) => name.split(/(?<=[a-z])(?=[A-Z])/).flatMap((part, i) => (i ? [h("wbr", {}), part] : [part]));

const told = (state, stops) => explain(stops[state.step], state, stops[state.step + 1]?.depth > stops[state.step].depth);

export function callPanel(act) {
  const select = h("select", { id: "dp-call", onchange: () => act.call(select.value) }, Object.entries(GROUPS).map(([name, ids]) =>
    h("optgroup", { label: name }, ids.split(" ").map((id) => h("option", { value: id }, CALLS[id][0])))));
  const tensors = choice({ label: "What x is", name: "dp-x", options: TENSORS.map((id) => [id, TENSOR_NAMES[id]]), pick: act.tensor, look: "dp-chips" });
  const boxes = MODES.map((id) => h("input", { type: "checkbox", value: id, onchange: () => act.mode(id) }));
  const modes = h("fieldset", { class: "dp-chips dp-modes" }, h("legend", { class: "ut-unseen" }, "What is around it"), boxes.map((box, i) => h("label", {}, box, MODE_NAMES[MODES[i]])));
  const sets = h("dl", { class: "ut-facts dp-sets" });
  const call = h("section", { class: "ut-panel dp-call", "aria-label": "The call" },
    h("p", { class: "dp-what" }, h("label", { for: "dp-call" }, "Call"), select),
    h("div", { class: "dp-of" }, h("b", {}, "where x is"), tensors.element), h("div", { class: "dp-of" }, h("b", {}, "around it"), modes), sets);

  const head = h("p", { class: "dp-head" });
  const go = (by) => h("button", { type: "button", class: "ut-button", "aria-label": by < 0 ? "Previous stop" : "Next stop", onclick: (event) => {
    if (event.currentTarget.getAttribute("aria-disabled") !== "true") act.step(at + by);
  } }, by < 0 ? "◂" : "▸");
  const [back, next] = [go(-1), go(1)];
  const rows = h("tbody", {});
  const said = h("p", { class: "dp-said" });
  const lanes = h("section", { class: "ut-panel dp-lanes", "aria-label": "The keys" }, h("div", { class: "dp-bar" }, back, next, head), said,
    h("table", { class: "dp-table" }, h("thead", {}, h("tr", {}, h("td", {}), ["key, the highest first", "in the set", "the table has"].map((name) => h("th", { scope: "col" }, name)))), rows));

  const count = h("p", { class: "ut-soft" });
  const list = h("ol", { class: "dp-stops" });
  const end = h("p", { class: "dp-end no", hidden: true });
  const road = h("section", { class: "ut-panel dp-road", "aria-label": "The road" }, count, list, end);
  let [at, drawn] = [0, null];

  function showRoad(found) {
    if (drawn === found) return;
    drawn = found;
    const { stops, calls, error } = found;
    put(count, stops.length ? `${plural(stops.length, "stop")}, ${plural(calls.length, "call")}` : "No call: x is contiguous, and Python returns it without asking the dispatcher.");
    put(list, stops.map(({ depth, op, key, kind, call: own }, i) => {
      const first = i === 0 || stops.findIndex((stop) => stop.call === own) === i;
      return h("li", { style: `--depth:${depth}` }, h("button", { type: "button", class: first ? "first" : null, onclick: () => act.step(i) },
        first ? [h("b", {}, op), " "] : null, h("span", {}, broken(key)), " ", h("i", {}, kind)));
    }));
    end.hidden = !error;
    put(end, error && [h("b", {}, "✗ It raises. "), error]);
  }

  function showLanes(state, { stops, calls, missing }) {
    const stop = stops[at];
    const own = keySet(state);
    const { op, brings, include, exclude } = stop ? calls[stop.call] : { op: CALLS[state.call][1], ...own };
    const fallen = falls(op);
    const mine = stops.map((one, i) => ({ ...one, i })).filter((one) => stop && one.call === stop.call);
    const lane = ({ key }) => LANES.indexOf(key);
    const none = stop && missing?.call === stop.call ? lane(missing) : -1;
    const [top, bottom] = [Math.min(...mine.map(lane)), Math.max(none, ...mine.map(lane))];
    put(head, stop ? [h("b", {}, `Stop ${at + 1} of ${stops.length}`), ": ", h("code", {}, op)] : h("b", {}, "No stop"));
    put(said, stop ? told(state, stops) : null);
    put(rows, LANES.map((key, i) => {
      const bit = 1 << i;
      const here = mine.find((one) => lane(one) === i);
      const from = [brings & bit && "tensors", include & bit && "thread"].filter(Boolean).join(", ");
      const out = from && exclude & bit;
      const live = from && !out;
      const kind = table(op, key);
      const way = mine.length && i >= top && i <= bottom ? `${i > top ? "up" : ""} ${i < bottom ? "down" : ""}` : "";
      return h("tr", { class: `${live ? "live" : from ? "" : "absent"} ${live && fallen & bit ? "falls" : ""} ${here?.i === at ? "here" : ""}`, "aria-current": here?.i === at ? "step" : null },
        h("td", { class: `way ${way}` }, here ? h("b", { class: here.i < at ? "past" : null }, here.i + 1) : i === none ? h("b", { class: "none" }, "✗") : null),
        h("th", { scope: "row" }, broken(key)),
        h("td", {}, out ? [h("s", {}, from), " hidden"] : from || h("span", { class: "ut-soft" }, "no")),
        h("td", {}, kind || h("span", { class: "ut-soft" }, "nothing")));
    }));
  }

  function show(state, found) {
    at = state.step;
    if (select.value !== state.call) select.value = state.call;
    tensors.show(state.tensor);
    boxes.forEach((box, i) => {
      box.checked = state.modes.includes(MODES[i]);
      box.disabled = !allowed(state.tensor).includes(MODES[i]);
    });
    const { brings, include, exclude } = keySet(state);
    put(sets, [["x brings", brings], ["the thread adds", include], ["and hides", exclude]].map(([name, set]) => h("div", {}, h("dt", {}, name), h("dd", {}, names(set).join(", ") || "nothing"))));
    showRoad(found);
    [...list.children].forEach((item, i) => {
      if (i === at) item.firstChild.setAttribute("aria-current", "step");
      else item.firstChild.removeAttribute("aria-current");
    });
    const [item, room] = [list.children[at], list.clientHeight];
    const y = item?.offsetTop ?? 0;
    if (y < list.scrollTop || y + item?.offsetHeight > list.scrollTop + room) list.scrollTop = y - room / 3;
    back.setAttribute("aria-disabled", at === 0);
    next.setAttribute("aria-disabled", at >= found.stops.length - 1);
    showLanes(state, found);
  }

  function say(state, { stops, error }) {
    const stop = stops[state.step];
    if (!stop) return "No call reaches the dispatcher.";
    const last = state.step === stops.length - 1 && error ? ` It raises: ${error}` : "";
    return `Stop ${state.step + 1} of ${stops.length}, ${stop.op} at ${stop.key}, ${stop.kind}. ${told(state, stops)}${last}`;
  }

  const element = h("div", { class: "dp-two" }, call, lanes, road);
  return { element, show, say };
}
