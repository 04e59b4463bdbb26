// The timeline: a lane for each worker, one for what is ready, one for the consumer, and a cursor.

import { h, put, svg } from "../explorer.js";
import { COLLATE, happened } from "./run.js";

const GUTTER = 74, LANE = 26, ROW = 14, GAP = 9;

/** In which row of the lane each batch lies from `finish` to `deliver`, so that none covers another. */
function stacked(of) {
  const rows = [];
  const spans = of.map(({ finish, deliver }, batch) => ({ finish, deliver, batch })).filter(({ finish, deliver }) => deliver > finish);
  spans.sort((a, b) => a.finish - b.finish || a.batch - b.batch);
  for (const span of spans) {
    span.row = rows.findIndex((end) => end <= span.finish);
    if (span.row < 0) span.row = rows.push(0) - 1;
    rows[span.row] = span.deliver;
  }
  return { spans, rows: rows.length };
}

function nice(total, width) {
  const wanted = total / Math.max(2, width / 70);
  return [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].find((step) => step >= wanted) ?? 2000;
}

/** move(at, time) is called where somebody points or steps to: how many events have happened, and the time. */
export function timeline(move) {
  let run = null;
  let now = 0;
  let when = 0;
  let scale = 1;
  const drawing = h("div", { class: "dl-drawing" });
  const element = h("div", {
    class: "dl-timeline", role: "slider", tabindex: 0, "aria-label": "Cursor, by events", "aria-valuemin": 0,
    onkeydown: key, onpointerdown: point, onpointermove: (event) => event.buttons && point(event),
  }, drawing);

  const timeOf = (at) => (at ? run.events[at - 1].time : 0);
  function go(at) {
    const to = Math.max(0, Math.min(run.events.length, at));
    if (to !== now || when !== timeOf(to)) move(to, timeOf(to));
  }
  function slide(time) {
    const to = Math.round(10 * Math.max(0, Math.min(run.total, time))) / 10;
    const at = happened(run, to);
    if (to !== when || at !== now) move(at, to);
  }
  const delivery = (way) => {
    const places = run.events.map((event, i) => event.kind === "deliver" || event.kind === "stop" ? i + 1 : 0).filter((at) => at);
    return way > 0 ? places.find((at) => at > now) ?? run.events.length : places.findLast((at) => at < now) ?? 0;
  };
  /** Back: to the event that is before the cursor, which may be the one that happened last. */
  const before = () => (when > timeOf(now) ? now : now - 1);
  function key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const sign = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
    const to = {
      ArrowRight: now + 1, ArrowUp: now + 1, ArrowLeft: before(), ArrowDown: before(), Home: 0, End: run.events.length,
      PageUp: delivery(1), PageDown: delivery(-1),
    }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    if (sign && event.shiftKey) slide(when + sign);
    else go(to);
  }
  function point(event) {
    if (event.button > 0) return;
    if (event.type === "pointerdown") {
      element.focus({ preventScroll: true });
      element.setPointerCapture(event.pointerId);
    }
    slide((event.clientX - drawing.getBoundingClientRect().left - GUTTER) / scale);
  }

  function draw(width) {
    const { events, of, batches, cost, knobs, total } = run;
    const marks = [];
    scale = (width - GUTTER - 8) / Math.max(total, 1);
    const x = (time) => GUTTER + time * scale;
    const add = (...drawn) => marks.push(...drawn);
    const label = (y, text) => add(svg("text", { x: 0, y: y + 4 }, text));
    const number = (batch, from, to, y) => {
      const [room, digits] = [(to - from) * scale, String(batch).length];
      if (room > digits * 7.2 + 1) add(svg("text", { class: "mid", x: x((from + to) / 2), y: y + 4 }, batch));
    };
    const box = (kind, from, to, y, height) => svg("rect", { class: kind, x: x(from) + 0.5, y: y - height / 2, width: Math.max((to - from) * scale - 1, 1.5), height, rx: 2.5 });

    // Who loads: samples as strips, a slow one hatched, collate at the end.
    const lanes = Math.max(knobs.num_workers, 1);
    const loading = (lane) => of.flatMap(({ worker }, batch) => Math.max(worker, 0) === lane ? [batch] : []);
    let y = 16;
    for (let lane = 0; lane < lanes; lane += 1, y += LANE + GAP) {
      label(y, knobs.num_workers ? `worker ${lane}` : "main loads");
      add(svg("line", { class: "idle", x1: x(0), x2: x(total), y1: y, y2: y }));
      let free = 0;
      for (const batch of loading(lane)) {
        const { start } = of[batch];
        if (knobs.num_workers && (start - free) * scale > 40) add(svg("text", { class: "mid soft", x: x((free + start) / 2), y: y + 4 }, "idle"));
        free = start + cost[batch];
        add(box(`w${lane}`, start, start + cost[batch], y, LANE));
        let from = start;
        for (const sample of batches[batch]) {
          const slow = knobs.slow.includes(sample);
          const to = from + (slow ? knobs.late : knobs.load);
          if (slow) add(box("slow", from, to, y, LANE));
          if (scale * knobs.load > 5) add(svg("line", { class: "cut", x1: x(to), x2: x(to), y1: y - LANE / 2, y2: y - LANE / 2 + 5 }));
          from = to;
        }
        if (scale > 2.5) add(box("collate", from, from + COLLATE, y, LANE));
        number(batch, start, start + cost[batch] - (scale > 2.5 ? COLLATE : 0), y);
      }
    }

    // What is ready: first in the result queue, then, if it was not its turn, put aside.
    const { spans, rows } = stacked(of);
    if (rows) {
      const top = y - LANE / 2 + ROW / 2;
      label(top, "ready");
      for (const { batch, finish, deliver, row } of spans) {
        const { worker, take = deliver } = of[batch];
        const at = top + row * ROW;
        if (take > finish) add(box(`w${Math.max(worker, 0)}`, finish, take, at, ROW - 2));
        if (deliver > take) add(box(`aside w${Math.max(worker, 0)}`, take, deliver, at, ROW - 2));
        number(batch, finish, deliver, at);
      }
      y += rows * ROW + GAP;
    }

    label(y, "consumer");
    let asked = 0;
    for (const { kind, time, batch, worker } of events) {
      if (kind === "ask") asked = time;
      if (kind !== "deliver") continue;
      if (time > asked) {
        add(box("wait", asked, time, y, LANE));
        if ((time - asked) * scale > 46) add(svg("text", { class: "mid soft", x: x((asked + time) / 2), y: y + 4 }, "waits"));
      }
      if (knobs.work) add(box(`work w${Math.max(worker, 0)}`, time, time + knobs.work, y, LANE));
      else add(svg("line", { class: "tick", x1: x(time), x2: x(time), y1: y - LANE / 2, y2: y + LANE / 2 }));
      number(batch, time, time + knobs.work, y);
    }

    const bottom = y + LANE / 2 + 6;
    const step = nice(total, width - GUTTER);
    const axis = [svg("text", { x: 0, y: bottom + 15, class: "soft" }, "units")];
    for (let time = 0; time <= total; time += step) {
      axis.push(svg("line", { class: "grid", x1: x(time), x2: x(time), y1: 0, y2: bottom }),
        svg("text", { class: "mid soft", x: x(time), y: bottom + 15 }, time));
    }
    const at = x(when);
    const height = bottom + 22;
    return svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" },
      svg("defs", {}, svg("pattern", { id: "dl-hatch", width: 5, height: 5, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" }, svg("line", { x1: 0, x2: 0, y1: 0, y2: 5 }))),
      axis, marks,
      svg("rect", { class: "future", x: at, y: 0, width: Math.max(width - at, 0), height: bottom }),
      svg("line", { class: "cursor", x1: at, x2: at, y1: 0, y2: bottom }),
      svg("path", { class: "cursor", d: `M${at - 6} ${bottom + 1}h12l-6 -8z` }));
  }

  function show(next, at, time, sentence) {
    run = next;
    [now, when] = [at, time];
    element.setAttribute("aria-valuemax", run.events.length);
    element.setAttribute("aria-valuenow", at);
    element.setAttribute("aria-valuetext", sentence);
    put(drawing, draw(Math.max(drawing.clientWidth, 240)));
  }
  return { element, show, go: (way) => go(way < 0 ? before() : now + way), jump: (way) => go(delivery(way)) };
}
