// The panel of overlap: backward and the all-reduces of buckets on one axis of time.

import { choice, h, put, svg } from "../explorer.js";
import { MIB, MODELS, build, limitsOf, parseLayers, parseTimes, timeline } from "./buckets.js";
import { NETWORKS } from "./networks.js";
import { barRows, field, key, slider } from "./parts.js";
import { bytes, count, time } from "./words.js";

const PLANS = ["cap", "default", "each", "one"];
const rising = (...values) => [...new Set(values)].sort((a, b) => a - b);
const BANDWIDTHS = rising(0.25, 0.5, 1, 2, 3, 4, 6, 8, 16, 32, 64, ...NETWORKS.map(([, , bandwidth]) => bandwidth));
const LATENCIES = rising(0, 0.1, 0.2, 0.5, 1, 2, 3, 5, 8, ...NETWORKS.map(([, , , latency]) => latency));
const networkOf = (state) => NETWORKS.find(([, , bandwidth, latency]) => bandwidth === state.bandwidth && latency === state.latency);

const planOf = ({ plan, cap }) => (plan === "cap" ? cap : plan);

const parseCap = (text) => (/^\d{1,4}(\.\d{1,6})?$/.test(text.trim()) && Number(text) <= 1000 ? Number(text) : null);

/** All four plans for a state, and the layers. */
function compute(state) {
  const layers = build(parseLayers(state.layers), parseTimes(state.times, parseLayers(state.layers).length));
  const runs = PLANS.map((plan) => timeline(layers, { ...state, plan: planOf({ ...state, plan }) }));
  return { layers, runs, run: runs[PLANS.indexOf(state.plan)] };
}

/** Where the two numbers of a network come from. */
const sourced = ([, , bandwidth, latency, what, how, ...sources]) => [
  `${bandwidth} MiB per ms, ${latency} ms per all-reduce: ${what} (${how}). Source: `,
  sources.map(([who, href], at) => [at ? ", " : "", h("a", { href }, who)]), ".",
];

const verdict = ({ backward, busy, end, exposed, hidden }) => [
  "Backward takes ", h("b", {}, time(backward)), ", the all-reduces ", h("b", {}, time(busy)), ". Of those, ",
  h("b", { class: "good" }, time(hidden)), " hide behind backward and ", h("b", { class: "bad" }, time(exposed)), " stick out: the gradients are there at ", h("b", {}, time(end)), ".",
];

export function overlapPanel(change) {
  const models = choice({
    label: "Model", name: "model", options: MODELS.map(([id, name]) => [id, name]),
    pick: (id) => { const [, , layers, times] = MODELS.find(([own]) => own === id); change({ layers, times }); }, look: "dd-chips",
  });
  const networks = choice({
    label: "Network, as measured", name: "network", options: NETWORKS.map(([id, name]) => [id, name]),
    pick: (id) => { const [, , bandwidth, latency] = NETWORKS.find(([own]) => own === id); change({ bandwidth, latency }); }, look: "dd-chips",
  });
  const cap = field({
    id: "dd-cap", label: "bucket_cap_mb", size: 5, help: "MiB, from 0 to 1000",
    parse: parseCap,
    give: (value) => change({ cap: value, plan: "cap" }),
  });
  const plans = barRows({
    label: "Which buckets", name: "plan", pick: (plan) => change({ plan }),
    options: [["cap", "bucket_cap_mb=", cap.input, cap.note], ["default", "DDP's default: 1, then 25 MiB"], ["each", "one bucket per gradient"], ["one", "one bucket for all"]],
  });
  const bandwidth = slider({ label: "bandwidth", values: BANDWIDTHS, say: (n) => `${n} MiB per unit of time`, give: (value) => change({ bandwidth: value }) });
  const latency = slider({ label: "latency", values: LATENCIES, say: (n) => `${n} per all-reduce`, give: (value) => change({ latency: value }) });
  const after = h("input", { type: "checkbox", onchange: () => change({ after: after.checked }) });
  const layers = field({
    id: "dd-layers", label: "shapes of the parameters, first layer to last", size: 40, help: "Shapes such as 1024x1024+1024, layers with commas between them; at most 16.",
    parse: (text) => (parseLayers(text) ? text : null),
    give: (text) => {
      const amount = parseLayers(text).length;
      change({ layers: text, ...(parseTimes(times.input.value, amount) ? {} : { times: "1" }) });
    },
  });
  const times = field({
    id: "dd-times", label: "time that backward takes in each", size: 20, help: "Numbers with commas, no more than there are layers; the last one repeats.",
    parse: (text) => (parseTimes(text, amountNow) ? text : null), give: (text) => change({ times: text }),
  });
  let amountNow = 1;
  const source = h("p", { class: "ut-soft dd-source" });
  const said = h("p", { class: "dd-verdict" });
  const drawing = h("div", { class: "dd-time" });
  const list = h("ol", { class: "dd-buckets", tabindex: 0, "aria-label": "Buckets" });
  const element = h("div", {},
    h("section", { class: "ut-panel", "aria-label": "Model and network" }, models.element,
      h("p", { class: "ut-soft" }, "Networks as measured. A unit of time is then a millisecond:"), networks.element, source,
      h("div", { class: "dd-knobs" }, bandwidth.element, latency.element, h("label", { class: "dd-check" }, after, "no overlap: begin after backward")),
      h("details", { class: "dd-own" }, h("summary", {}, "The model's layers"),
        h("p", {}, h("label", { for: "dd-layers" }, "shapes of the parameters, first layer to last"), layers.input, layers.note),
        h("p", {}, h("label", { for: "dd-times" }, "time that backward takes in each"), times.input, times.note))),
    h("section", { class: "ut-panel", "aria-label": "Which buckets" }, h("h2", {}, "How gradients are put into buckets, and what that costs"), plans.element,
      key([["work", "backward"], ["late", "all-reduces that stick out"]])),
    h("section", { class: "ut-panel", "aria-label": "One backward" }, said, drawing,
      h("p", { class: "dd-key" }, h("span", {}, h("i", { class: "tip" }, "▼"), "the last gradient of a bucket is there"), h("span", {}, h("i", { class: "tip" }, "┄"), "it waits for the all-reduce before"), h("span", {}, h("i", { class: "late" }), "after backward")), list));

  function show(state) {
    const { layers: model, runs, run } = compute(state);
    amountNow = model.length;
    models.show(modelOf(state)?.[0]);
    cap.show(String(state.cap));
    const network = networkOf(state);
    networks.show(network?.[0]);
    put(source, network ? sourced(network) : "None of these: bandwidth and latency are yours.");
    bandwidth.show(state.bandwidth);
    latency.show(state.latency);
    after.checked = state.after;
    layers.show(state.layers);
    times.show(state.times);
    const most = Math.max(...runs.map(({ end }) => end)) || 1;
    plans.show(state.plan, runs.map(({ backward, exposed, end, buckets }) => ({
      parts: [["work", backward / most], ["late", exposed / most]],
      said: ["ends at ", h("b", {}, time(end)), ` · ${count(buckets.length, "bucket")}`],
    })));
    put(said, verdict(run));
    put(drawing, draw(model, run, Math.max(drawing.clientWidth, 240)));
    put(list, run.buckets.map((bucket, index) => row(bucket, index, run)));
  }

  function row({ members, bytes: size, limit, full, ready, from, to }, index, { grads }) {
    const why = full ? limit ? `full: its cap is ${bytes(limit)}` : "full: its cap is 0" : limit === Infinity ? "all there is" : `the rest, below the cap of ${bytes(limit)}`;
    return h("li", {},
      h("b", { class: `k${index % 3}` }, `B${index}`), h("span", { class: "dd-size" }, bytes(size, 4)),
      h("span", {}, members.map((member) => grads[member].name).join(" "), h("small", {}, why)),
      h("span", { class: "dd-when" }, `ready at ${time(ready)}, `, from > ready ? h("em", {}, `waits until ${time(from)}`) : "leaves at once", `, done at ${time(to)}`));
  }

  function say(state) {
    const { run } = compute(state);
    return `${count(run.buckets.length, "bucket")}. ${put(h("p", {}), verdict(run)).textContent}`;
  }
  return { element, show, say };
}

const TOP = 20;
const LAYER = 34;
const GAP = 40;
const REDUCE = 26;

/** Backward above, all-reduces below, and from the one to the other where each bucket is ready and leaves. */
function draw(model, { grads, buckets, backward, end }, width) {
  const x = (at) => 1 + at / (end || 1) * (width - 2);
  const low = TOP + LAYER + GAP;
  const height = low + REDUCE + 56;
  const bucketOf = grads.map((_, grad) => buckets.findIndex(({ members }) => members.includes(grad)));
  const label = (a, b, y, text, kind) => (x(b) - x(a) > 7.5 * text.length + 2 ? svg("text", { x: (x(a) + x(b)) / 2, y, class: kind }, text) : null);
  let now = 0;
  const blocks = [...model.keys()].reverse().map((layer) => {
    const [a, b] = [now, now += model[layer].time];
    const own = [...new Set(grads.map((grad, i) => (grad.layer === layer ? bucketOf[i] : -1)))].filter((i) => i >= 0);
    const strip = LAYER / own.length;
    return svg("g", {}, svg("title", {}, `layer ${layer + 1}: ${model[layer].params.map(({ name }) => name).join(", ")}`),
      own.map((bucket, i) => svg("rect", { x: x(a), y: TOP + i * strip, width: Math.max(x(b) - x(a) - 1, 0.5), height: strip, class: `stripe k${bucket % 3}` })),
      svg("rect", { x: x(a), y: TOP, width: Math.max(x(b) - x(a) - 1, 0.5), height: LAYER, class: "frame" }),
      label(a, b, TOP + LAYER / 2 + 4, `layer ${layer + 1}`) ?? label(a, b, TOP + LAYER / 2 + 4, String(layer + 1)));
  });
  // Beside each mark the buckets that are ready there, where there is room; at the right edge on its left.
  const marks = [...new Set(buckets.map(({ ready }) => ready))];
  const names = marks.map((ready, i) => {
    const own = buckets.flatMap((bucket, index) => (bucket.ready === ready ? [`B${index}`] : []));
    const text = own.length > 1 ? `${own[0]}–${own.at(-1)}` : own[0];
    const left = x(ready) + 7.3 * text.length + 8 > width;
    const room = left ? x(ready) - (i ? x(marks[i - 1]) + 30 : 0) : i + 1 < marks.length ? x(marks[i + 1]) - x(ready) : width;
    return room < 7.3 * text.length + 10 ? null : svg("text", { x: x(ready) + (left ? -6 : 6), y: TOP + LAYER + 12, class: left ? "end" : "lane" }, text);
  });
  const reduces = buckets.map(({ ready, from, to }, index) => {
    const [a, b] = [x(from), x(to)];
    const middle = Math.min(Math.max(x(backward), a), b);
    return svg("g", {}, svg("title", {}, `all-reduce of B${index}: ${time(from)} to ${time(to)}`),
      svg("path", { class: `way${from > ready ? " waits" : ""}`, d: `M${x(ready)} ${TOP + LAYER}v5L${a} ${low - 5}v5` }),
      svg("path", { class: `mark k${index % 3}`, d: `M${x(ready)} ${TOP + LAYER + 7}l-4 -7h8z` }),
      svg("rect", { x: a, y: low, width: Math.max(b - a - 1, 0.5), height: REDUCE, class: `k${index % 3}` }),
      b > middle ? svg("rect", { x: middle, y: low, width: Math.max(b - middle - 1, 0.5), height: REDUCE, class: "late" }) : null,
      label(from, to, low + REDUCE / 2 + 4, `B${index}`, "over"));
  });
  const line = (at, kind) => svg("line", { class: kind, x1: x(at), x2: x(at), y1: TOP - 6, y2: low + REDUCE + 6 });
  return svg("svg", {
    viewBox: `0 0 ${width} ${height}`, width, height, role: "img",
    "aria-label": `Backward until ${time(backward)}. ${buckets.map(({ from, to }, i) => `B${i} from ${time(from)} to ${time(to)}`).join(", ")}.`,
  },
  svg("defs", {}, svg("pattern", { id: "dd-late", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" }, svg("line", { x1: 0, x2: 0, y1: 0, y2: 6, class: "hatch" }))),
  svg("text", { x: 1, y: 11, class: "lane" }, "backward, last layer first"), blocks, line(backward, "stop"), line(end, "stop"), reduces, names,
  svg("text", { x: 1, y: low + REDUCE + 16, class: "lane" }, "all-reduces, one after another"),
  svg("text", { x: Math.max(x(backward), 145), y: low + REDUCE + 32, class: "end" }, `${time(backward)} ▸ backward ends`),
  end > backward ? svg("text", { x: width - 1, y: low + REDUCE + 48, class: "end" }, `${time(end)} ▸ last all-reduce ends`) : null);
}

/** A state as its part of the address describes it, or null. */
export function readOverlap(params) {
  const model = MODELS.find(([id]) => id === (params.get("model") ?? "equal"));
  const [layers, times] = [params.get("layers") ?? model?.[2], params.get("time") ?? (params.get("layers") ? "1" : model?.[3])];
  const shapes = layers && parseLayers(layers);
  if (!shapes || !parseTimes(times, shapes.length)) return null;
  const number = (name, fallback, most) => {
    const value = Number(params.get(name) ?? fallback);
    return value >= 0 && value <= most ? value : NaN;
  };
  const bucket = params.get("cap") ?? "4";
  const named = PLANS.slice(1).includes(bucket);
  const cap = named ? 4 : parseCap(bucket);
  const [bandwidth, latency] = [number("bandwidth", 2, 1e6), number("latency", 0.5, 1e6)];
  if (cap === null || !(bandwidth > 0) || Number.isNaN(latency)) return null;
  const known = modelOf({ layers, times });
  return {
    layers: known?.[2] ?? spread(layers), times: known?.[3] ?? spread(times), plan: named ? bucket : "cap", cap,
    bandwidth, latency, after: params.get("overlap") === "no",
  };
}

/** Layers and times as they stand in an address, whatever way they were typed. */
const tidy = ({ layers, times }) => [
  parseLayers(layers).map((params) => params.map((shape) => shape.join("x")).join("-")).join("_"),
  times.split(/[,_\s]+/).filter(Boolean).join("_"),
];
const spread = (text) => text.replaceAll("_", ", ").replaceAll("-", "+");

function modelOf(state) {
  return MODELS.find(([, , layers, times]) => String(tidy({ layers, times })) === String(tidy(state)));
}

export function writeOverlap({ layers, times, plan, cap, bandwidth, latency, after }) {
  const known = modelOf({ layers, times });
  const own = tidy({ layers, times });
  const model = known ? [["model", known[0]]] : [["layers", own[0]], ["time", own[1]]];
  return [...model, ["cap", planOf({ plan, cap })], ["bandwidth", bandwidth], ["latency", latency], ...(after ? [["overlap", "no"]] : [])];
}
