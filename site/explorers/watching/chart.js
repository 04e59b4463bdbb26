// Calls over time: a lane for each thread, bars within bars, memory below, and an arrow from forward to backward.

import { h, put, svg } from "../explorer.js";
import { idle, linksOf } from "./profile.js";
import { bytesText, callText, percent, short, timeText } from "./words.js";

const ROW = 22, HEAD = 20, GAP = 10, MEMORY = 66, CURVE = 26, LETTER = 7.25;
/** Deeper calls are not drawn: a file may nest as deep as it likes. */
const MOST_ROWS = 24;
const LEAST = 100;
const KINDS = [["note", "record_function"], ["op", "operator"], ["back", "in backward"], ["wait", "waits"]];

/** look({ at, from, to }) is called where somebody acts; from and to are null for all of it. */
export function chart(look) {
  let profile, state, width = 300, places = [], bottom = 0;
  const drawing = h("div", { class: "wt-drawing" });
  const element = h("div", {
    class: "wt-time", role: "slider", tabindex: 0, "aria-label": "Calls over time", "aria-valuemin": 0, "aria-describedby": "wt-keys",
    onkeydown: key, onpointerdown: press, onpointermove: move, onpointerup: release, onpointercancel: release, onpointerleave: () => point(-1), ondblclick: (event) => into(found(event)), onwheel: wheel,
  }, drawing);
  const pointed = h("p", { class: "wt-pointed" });
  const button = (text, label, act) => h("button", { type: "button", class: "ut-button", "aria-label": label, title: label, onclick: act }, text);
  const knobs = h("p", { class: "wt-knobs", role: "group", "aria-label": "Move in the drawing" },
    button("+", "Zoom in", () => zoom(0.5)), button("−", "Zoom out", () => zoom(2)), button("◀", "Earlier", () => pan(-0.5)), button("▶", "Later", () => pan(0.5)), button("all", "Show all of it", () => frame(null, null)),
    h("span", {}), button("⇤", "Call before", () => walk("ArrowLeft")), button("⇥", "Next call", () => walk("ArrowRight")), button("↥", "The call around it", () => walk("ArrowUp")), button("↧", "The first call inside it", () => walk("ArrowDown")));
  const keys = h("p", { class: "ut-soft ut-hint", id: "wt-keys" }, "Arrow keys go from call to call, up to the call around it and down into it. + and − zoom, 0 shows all, Shift with an arrow moves on, page up and down go to another thread. Drag or pinch; Ctrl with the wheel zooms.");
  const legend = h("p", { class: "ut-soft wt-legend" }, KINDS.map(([kind, text]) => h("span", {}, h("i", { class: kind }), text)));

  const span = () => [state.from ?? 0, state.to ?? profile.end];
  const x = (time) => { const [from, to] = span(); return (time - from) / (to - from) * width; };
  const timeAt = (event) => { const [from, to] = span(); return from + (event.clientX - drawing.getBoundingClientRect().left) / width * (to - from); };

  function frame(from, to, at = state.at) {
    if (from === null) return look({ from: null, to: null, at });
    const size = Math.max(LEAST, Math.min(to - from, profile.end));
    const begin = Math.round(Math.min(Math.max(0, from - (size - (to - from)) / 2), profile.end - size));
    return size >= profile.end ? look({ from: null, to: null, at }) : look({ from: begin, to: Math.round(begin + size), at });
  }
  function zoom(by, middle) {
    const [from, to] = span();
    const call = profile.calls[state.at];
    const chosen = call && call.start < to && call.end > from ? (Math.max(call.start, from) + Math.min(call.end, to)) / 2 : (from + to) / 2;
    const around = middle ?? chosen;
    frame(around - (around - from) * by, around + (to - around) * by);
  }
  function pan(by) {
    const [from, to] = span();
    const step = Math.max(-from, Math.min(by * (to - from), profile.end - to));
    if (step) frame(from + step, to + step);
  }
  function into(i) {
    const call = profile.calls[i];
    if (call) frame(call.start - (call.end - call.start) * 0.04, call.end + (call.end - call.start) * 0.04, i);
  }
  /** Select a call; where it is out of sight, what is in sight moves. */
  function select(i) {
    const [from, to] = span();
    const { start, end } = profile.calls[i];
    if (end > from && start < to) look({ ...state, at: i });
    else frame(start + (end - start) / 2 - (to - from) / 2, start + (end - start) / 2 + (to - from) / 2, i);
  }

  function walk(name) {
    const { calls, lanes } = profile;
    const call = calls[state.at];
    if (!call) return select(lanes[0].calls[0]);
    const row = lanes[call.thread].rows[call.depth];
    const place = row.indexOf(state.at);
    const beside = (by) => { const many = lanes.length; return lanes[(call.thread + by + many) % many].calls[0]; };
    const to = {
      ArrowLeft: () => row[place - 1], ArrowRight: () => row[place + 1], Home: () => row[0], End: () => row.at(-1),
      ArrowUp: () => call.parent, ArrowDown: () => lanes[call.thread].rows[call.depth + 1]?.find((i) => calls[i].parent === state.at),
      PageUp: () => beside(-1), PageDown: () => beside(1),
    }[name]();
    return to >= 0 && to !== state.at ? select(to) : undefined;
  }
  function key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const acts = {
      "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), 0: () => frame(null, null), Enter: () => into(state.at),
      Escape: () => look({ ...state, at: -1 }),
    };
    const pans = event.shiftKey ? { ArrowLeft: -0.25, ArrowRight: 0.25 }[event.key] : undefined;
    if (pans) pan(pans);
    else if (Object.hasOwn(acts, event.key)) acts[event.key]();
    else if (/^(Arrow|Page)|^(Home|End)$/.test(event.key)) walk(event.key);
    else return;
    event.preventDefault();
  }

  // ── Pointing, dragging, pinching ──

  const fingers = new Map();
  let held = null;
  function press(event) {
    if (event.button > 0) return;
    element.focus({ preventScroll: true });
    fingers.set(event.pointerId, event);
    const times = [...fingers.values()].map(timeAt);
    held = { from: span(), moved: fingers.size > 1, x: event.clientX, spread: spread(), middle: (times[0] + times.at(-1)) / 2 };
  }
  const spread = () => { const [a, b] = [...fingers.values()]; return b ? Math.max(20, Math.abs(a.clientX - b.clientX)) : 0; };
  function move(event) {
    // A button may have been let go elsewhere.
    if (event.pointerType === "mouse" && !event.buttons) fingers.clear();
    if (!fingers.has(event.pointerId)) return heldAt(event) ?? point(found(event));
    fingers.set(event.pointerId, event);
    if (Math.abs(event.clientX - held.x) > 4 && !held.moved) {
      held.moved = true;
      element.setPointerCapture(event.pointerId);
    }
    const [from, to] = held.from;
    if (fingers.size > 1) {
      const by = held.spread / spread();
      frame(held.middle - (held.middle - from) * by, held.middle + (to - held.middle) * by);
    } else if (held.moved && to - from < profile.end) {
      const by = Math.max(-from, Math.min((held.x - event.clientX) / width * (to - from), profile.end - to));
      frame(from + by, to + by);
    }
    return undefined;
  }
  function release(event) {
    if (!fingers.delete(event.pointerId) || held.moved || event.type === "pointercancel") return;
    const i = found(event);
    if (i !== state.at) look({ ...state, at: i });
  }
  function wheel(event) {
    const [from, to] = span();
    const along = Math.abs(event.deltaX) > Math.abs(event.deltaY) ? event.deltaX : 0;
    if (!(event.ctrlKey || event.metaKey) && !(along && to - from < profile.end)) return;
    event.preventDefault();
    element.focus({ preventScroll: true });
    if (along) pan(along / width);
    else zoom(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) / 120), timeAt(event));
  }
  /** The call under a pointer, or one that is too thin to be hit, up to 4 px beside it; or -1. */
  function found(event) {
    const y = event.clientY - drawing.getBoundingClientRect().top;
    const place = places.find(({ top, end }) => y >= top && y < end);
    const row = place?.rows[Math.floor((y - place.top) / ROW)];
    if (!row) return -1;
    const time = timeAt(event);
    const reach = 4 / width * (span()[1] - span()[0]);
    const far = (i) => Math.max(profile.calls[i].start - time, time - profile.calls[i].end, 0);
    const near = row.reduce((best, i) => (best < 0 || far(i) < far(best) ? i : best), -1);
    return far(near) <= reach ? near : -1;
  }
  /** Over the curve of memory: tell what is held there. */
  function heldAt(event) {
    const y = event.clientY - drawing.getBoundingClientRect().top;
    if (!profile.memory.length || y < bottom - MEMORY || y > bottom) return null;
    const time = timeAt(event);
    point(-1);
    return put(pointed, `After ${timeText(Math.max(time, 0))}, ${bytesText(profile.memory.findLast((one) => one.time <= time)?.held ?? 0)} are held.`);
  }
  function point(i) {
    put(pointed, i >= 0 ? callText(profile, i) : state.at >= 0 ? callText(profile, state.at) : "Point at a bar, or select one.");
    drawing.querySelector(".over")?.remove();
    if (i >= 0) drawing.firstElementChild?.append(outline(i, "over"));
  }

  // ── Drawing ──

  const box = (i) => {
    const { start, end, thread, depth } = profile.calls[i];
    const left = Math.max(-3, Math.min(width + 3, x(start)));
    return { left, wide: Math.max(1, Math.min(width + 3, x(end)) - left), top: places[thread].top + depth * ROW };
  };
  function outline(i, kind) {
    const { left, wide, top } = box(i);
    return svg("rect", { class: kind, x: left - 1, y: top - 1, width: wide + 2, height: ROW, rx: 3 });
  }
  function bars(place) {
    const [from, to] = span();
    const chosen = profile.calls[state.at]?.name;
    return place.rows.map((row) => {
      let last = -1;
      return row.map((i) => {
        const call = profile.calls[i];
        if (call.end < from || call.start > to) return null;
        const { left, wide, top } = box(i);
        // What would lie within the same pixel is drawn once.
        if (left < last && left + wide < last + 1) return null;
        last = left + wide;
        const text = short(call.name);
        const inner = Math.max(left, 0);
        const room = Math.floor((Math.min(left + wide, width) - inner - 8) / LETTER);
        return [
          svg("rect", { class: `bar ${call.kind}${call.name === chosen ? " same" : ""}`, x: left, y: top, width: Math.max(wide - 1, 1), height: ROW - 2, rx: wide > 6 ? 3 : 0 }),
          room > 2 ? svg("text", { x: inner + 4, y: top + 14 }, text.length > room ? `${text.slice(0, room - 1)}…` : text) : null,
        ];
      });
    });
  }
  function arrows() {
    const ends = state.at >= 0 ? linksOf(profile, state.at).slice(0, 8) : [];
    return ends.map(([back, front]) => {
      const [a, b] = [box(front), box(back)];
      const [ax, ay, bx, by] = [a.left + a.wide / 2, a.top + ROW - 3, b.left + b.wide / 2, b.top + ROW - 3];
      const low = Math.max(ay, by) + 26;
      return [svg("path", { class: "link", d: `M${ax} ${ay}C${ax} ${low} ${bx} ${low} ${bx} ${by + 6}` }), svg("path", { class: "peak", d: `M${bx} ${by}l-5 9h10z` })];
    });
  }
  function memory(top) {
    const { memory: moves, peak, lowest, end } = profile;
    const high = Math.max(peak.held, 1);
    const y = (bytes) => (top + CURVE + (MEMORY - CURVE) * (high - bytes) / (high - lowest)).toFixed(1);
    const across = (time) => Math.round(Math.max(-5, Math.min(width + 5, x(time))));
    // Of all that happens within a pixel: the highest, then the last.
    const steps = [];
    for (const { time, held: now } of moves) {
      const [place, before] = [across(time), steps.at(-1)];
      if (before?.place === place) Object.assign(before, { most: Math.max(before.most, now), now });
      else steps.push({ place, most: now, now });
    }
    const way = steps.map(({ place, most, now }) => `H${place}V${y(most)}${most === now ? "" : `V${y(now)}`}`).join("");
    const at = x(peak.time);
    return [
      svg("text", { class: "head", x: 0, y: top + 12 }, `memory that is held${profile.device ?? ""}, peak ${bytesText(peak.held)}`),
      svg("path", { class: "held", d: `M-5 ${y(0)}${way}H${across(end)}V${y(0)}` }),
      at >= 0 && at <= width ? svg("path", { class: "peak", d: `M${at} ${y(peak.held)}l-5 -8h10z` }) : null,
    ];
  }
  function axis(height) {
    const [from, to] = span();
    const wanted = (to - from) / Math.max(2, width / 90);
    const power = 10 ** Math.floor(Math.log10(wanted));
    const step = power * [1, 2, 5, 10].find((n) => n * power >= wanted);
    const marks = [];
    for (let time = Math.ceil(from / step) * step; time <= to; time += step) {
      const at = x(time);
      const anchor = at > width - 36 ? "end" : at < 24 ? "start" : "middle";
      marks.push(svg("line", { class: "grid", x1: at, x2: at, y1: 0, y2: height }), svg("text", { class: "tick", x: at, y: height + 14, "text-anchor": anchor }, time ? timeText(time).replace(/(\.\d*?)0+ /, "$1 ").replace(". ", " ") : "0"));
    }
    return marks;
  }

  function draw() {
    const [from, to] = span();
    let y = 0;
    const zoomed = to - from < profile.end;
    if (zoomed) y = 12;
    places = profile.lanes.map((lane) => {
      const rows = lane.rows.slice(0, MOST_ROWS);
      const place = { lane, rows, head: y, top: y + HEAD, end: y + HEAD + rows.length * ROW };
      y = place.end + GAP;
      return place;
    });
    const heads = places.map(({ lane, head }) => svg("text", { class: "head", x: 0, y: head + 14 }, `${lane.name}: ${percent(idle(profile, lane))} without an operator${lane.rows.length > MOST_ROWS ? "; deeper calls are not drawn" : ""}`));
    const curve = profile.memory.length ? memory(y) : null;
    if (curve) y += MEMORY + 4;
    bottom = y;
    const whole = zoomed ? [svg("rect", { class: "all", x: 0, y: 0, width, height: 6, rx: 3 }), svg("rect", { class: "part", x: from / profile.end * width, y: 0, width: Math.max(4, (to - from) / profile.end * width), height: 6, rx: 3 })] : null;
    return svg("svg", { width, height: y + 18, viewBox: `0 0 ${width} ${y + 18}`, "aria-hidden": "true" },
      axis(bottom), whole, heads, places.map(bars), curve, arrows(), state.at >= 0 ? outline(state.at, "chosen") : null);
  }

  function show(next, told) {
    [profile, state] = [told, next];
    width = Math.max(drawing.clientWidth, 240);
    const { calls } = profile;
    element.setAttribute("aria-valuemax", calls.length);
    element.setAttribute("aria-valuenow", state.at + 1);
    element.setAttribute("aria-valuetext", state.at >= 0 ? callText(profile, state.at) : "No call is selected.");
    put(drawing, draw());
    point(-1);
    const kinds = new Set(calls.map(({ kind }) => kind));
    KINDS.forEach(([kind], i) => { legend.children[i].hidden = !kinds.has(kind); });
  }
  return { elements: [knobs, element, pointed, legend, keys], show, into, select };
}
