// What a trace says: who ran inside whom, own times, memory, who belongs to whom. Pure functions, no DOM.
// All times are whole nanoseconds from the begin of the first call.

import { TRACES } from "./traces.js";

/** A call that waits says so by its name alone: a trace does not know what a thread does inside it. */
const WAITS = /__next__$|Synchronize|\b(get|join|wait|result|sleep)\(/;
const ENGINE = "autograd::engine::";

/**
 * A trace: { calls, memory, arrows, threads }. A call is { name, note, thread, start, end, shapes, seq }, and they come
 * by start, outer ones before inner ones. memory has [time, thread, bytes], by time; an arrow is [from, to], each the number of
 * a call or { thread, time }. Adds to each call parent, depth, own, bytes, kind, inside: the number behind the last call inside it.
 */
export function profileOf({ calls: given, memory, arrows, threads, ...rest }) {
  const calls = given.map((call) => ({ ...call, parent: -1, depth: 0, own: call.end - call.start, bytes: 0, kind: "op" }));
  const lanes = threads.map((name) => ({ name, calls: [], rows: [], busy: 0 }));
  const rows = new Map();
  const running = lanes.map(() => []);
  const operators = calls.some(({ note }) => !note);
  const until = lanes.map(() => -Infinity);
  let end = 1;
  calls.forEach((call, i) => {
    const stack = running[call.thread];
    // One that ends later than the call around it is in no trace of torch.profiler; it stands beside it then.
    while (stack.length && (calls[stack.at(-1)].end <= call.start || calls[stack.at(-1)].end < call.end)) stack.pop();
    if (stack.length) {
      call.parent = stack.at(-1);
      call.depth = stack.length;
      calls[call.parent].own -= call.end - call.start;
    }
    const around = calls[call.parent]?.kind;
    call.kind = WAITS.test(call.name) ? "wait" : call.note ? "note" : around === "back" || call.name.startsWith(ENGINE) ? "back" : "op";
    const row = rows.get(call.name) ?? { name: call.name, calls: [], total: 0, own: 0, bytes: 0, operator: !call.note };
    rows.set(call.name, row);
    row.calls.push(i);
    if (!stack.some((outer) => calls[outer].name === call.name)) row.total += call.end - call.start;
    const lane = lanes[call.thread];
    lane.calls.push(i);
    (lane.rows[call.depth] ??= []).push(i);
    if (!operators || !call.note) {
      lane.busy += Math.max(0, call.end - Math.max(call.start, until[call.thread]));
      until[call.thread] = Math.max(until[call.thread], call.end);
    }
    end = Math.max(end, call.end);
    stack.push(i);
  });
  for (const call of calls) rows.get(call.name).own += call.own;

  const at = (where) => (typeof where === "number" ? where : innermost(calls, lanes[where.thread], where.time));
  const curve = [];
  let [held, lowest, peak] = [0, 0, null];
  for (const [time, thread, bytes] of memory) {
    held += bytes;
    lowest = Math.min(lowest, held);
    const call = at({ thread, time });
    curve.push({ time, bytes, held, call });
    if (!peak || held > peak.held) peak = curve.at(-1);
    if (call < 0) continue;
    calls[call].bytes += bytes;
    rows.get(calls[call].name).bytes += bytes;
  }
  const links = new Map(arrows.map(([from, to]) => [at(to), at(from)]).filter((ends) => !ends.includes(-1)));
  const whole = calls.reduce((sum, { own }) => sum + own, 0);
  return { ...rest, calls, lanes, rows: [...rows.values()], memory: curve, peak, lowest, links, end, whole };
}

/** The innermost call of a lane that is running at a time, or -1. One that ends then is not running. */
export function innermost(calls, lane, time) {
  let [low, high] = [0, lane?.calls.length ?? 0];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (calls[lane.calls[middle]].start <= time) low = middle + 1;
    else high = middle;
  }
  let found = low ? lane.calls[low - 1] : -1;
  while (found >= 0 && calls[found].end <= time) found = calls[found].parent;
  return found;
}

/** Share of the time in which no operator runs on a lane; of a trace without operators, no call. */
export const idle = ({ end }, { busy }) => 1 - busy / end;

/** Rows by own time or by total time, the longest first. */
export const sorted = ({ rows }, by) => [...rows].sort((a, b) => b[by] - a[by]);

/** The operator with the largest own time; without operators, the call. */
export function slowest(profile) {
  const rows = sorted(profile, "own");
  return rows.find(({ operator }) => operator) ?? rows[0];
}

export const longest = ({ calls }, row) => row.calls.reduce((a, b) => (calls[b].end - calls[b].start > calls[a].end - calls[a].start ? b : a));

/** Links that a call, or one inside it, is one end of: backward, forward, and whether the backward is it. */
export function linksOf({ calls, links }, outer) {
  const inside = (i) => {
    while (i > outer) i = calls[i].parent;
    return i === outer;
  };
  return [...links].map(([back, front]) => [back, front, inside(back)]).filter(([, front, mine]) => mine !== inside(front));
}

/** The outermost call around one: in the recorded traces, the line of the program. */
export function outermost({ calls }, call) {
  while (calls[call].parent >= 0) call = calls[call].parent;
  return call;
}

// ── The traces that there are: those that were recorded, and the reader's own ──

const sums = (steps) => {
  let at = 0;
  return steps.map((step) => (at += step));
};

/** A recorded trace is columns of numbers; here with names. */
export function expanded({ names, notes, shapes, threads, calls, memory, ...rest }) {
  const [name, thread, steps, durations, shape, seq] = calls;
  const told = sums(steps).map((start, i) => ({
    name: names[name[i]], note: notes.includes(name[i]), thread: thread[i], start, end: start + durations[i], shapes: shapes[shape[i]], seq: seq[i],
  }));
  const times = sums(memory[0]);
  return {
    ...rest, calls: told, memory: times.map((time, i) => [time, memory[1][i], memory[2][i]]),
    threads: Array.from({ length: threads }, (_, i) => (i ? `thread ${i + 1}` : "main thread")),
  };
}

const known = new Map();
const own = [];

export const traces = () => [...TRACES, ...own];

/** The profile of a trace by its id, made once. */
export function profileBy(id) {
  const trace = traces().find((one) => one.id === id);
  if (!trace) return null;
  if (!known.has(id)) known.set(id, profileOf(trace.names ? expanded(trace) : trace));
  return known.get(id);
}

/** Keep one of the reader's, beside those from before. Gives its id. */
export function keepOwn(trace) {
  const id = `own${own.length ? own.length + 1 : ""}`;
  own.push({ ...trace, id });
  return id;
}
