// Times, bytes, names and what is said of a trace. No DOM.

import { idle, outermost } from "./profile.js";

/** Nanoseconds, to three digits. */
export function timeText(ns) {
  const [size, unit] = ns >= 1e9 ? [1e9, "s"] : ns >= 1e6 ? [1e6, "ms"] : ns >= 1000 ? [1000, "µs"] : [1, "ns"];
  const n = ns / size;
  return `${n >= 100 || size === 1 ? Math.round(n) : n >= 10 ? n.toFixed(1) : n.toFixed(2)} ${unit}`;
}

export function bytesText(n) {
  const [size, unit] = Math.abs(n) >= 1 << 20 ? [1 << 20, "MiB"] : Math.abs(n) >= 1024 ? [1024, "KiB"] : [1, Math.abs(n) === 1 ? "byte" : "bytes"];
  const shown = n / size;
  return `${Number(shown.toFixed(Math.abs(shown) < 10 ? 2 : 1))} ${unit}`.replace("-", "−");
}

export const plural = (n, noun) => `${n} ${noun}${n === 1 ? "" : "s"}`;
export const percent = (part) => (part > 0 && part < 0.01 ? "< 1 %" : `${Math.round(100 * part)} %`);

/** What a bar has room for. */
export const short = (name) => name.replace(/^aten::|^autograd::engine::evaluate_function: (torch::autograd::)?|^torch::autograd::/, "").replace(/^enumerate\(DataLoader\)#.*\./, "DataLoader ");

export const whenText = (time) => (time ? `after ${timeText(time)}` : "at the begin of the trace");

/** One sentence about a call. */
export function callText({ calls, links, lanes }, i) {
  const { name, start, end, own, thread } = calls[i];
  const front = links.get(i);
  return `${name}: ${timeText(end - start)}, ${own === end - start ? "all of it" : `of which ${timeText(own)}`} its own${front === undefined ? "" : `; the backward of ${calls[front].name}`}. It begins ${whenText(start)}${lanes.length > 1 ? `, on ${lanes[thread].name}` : ""}.`;
}

/** Questions to ask of a trace, in the order of a story: id, words, and for a profile what to look at: { said, at, by } or null. */
export const QUESTIONS = [
  ["ran", "What ran?", ({ calls, rows, lanes, end }) => ({
    said: `${plural(calls.length, "call")} of ${plural(rows.length, "name")} on ${plural(lanes.length, "thread")}, in ${timeText(end)}. What stands below a bar ran inside it: the file has begins and durations alone, and who called whom follows from them.`, at: -1,
  })],
  ["time", "Where did the time go?", ({ rows, whole }) => ({
    said: `Into own time: what a call takes less what the calls inside it take. All own times together are ${timeText(whole)}, the whole. Totals count the same time again on each level, and sum to ${timeText(rows.reduce((sum, { total }) => sum + total, 0))}. So sort by own time, and look at the first operator.`, at: -1, by: "own",
  })],
  ["waits", "What waits?", (profile) => {
    const lane = profile.lanes.reduce((a, b) => (idle(profile, a) > idle(profile, b) ? a : b));
    return { said: `Look for long bars with nothing in them, and for gaps. For ${percent(idle(profile, lane))} of the time no operator runs on ${lane.name}: Python works then, or waits for somebody. A trace does not tell which; names do.`, at: -1, by: "own" };
  }],
  ["peak", "Who made the peak of memory?", (profile) => {
    const { peak, calls } = profile;
    if (!peak || peak.call < 0) return null;
    const line = outermost(profile, peak.call);
    return { said: `${bytesText(peak.held)} are held after ${timeText(peak.time)}, more than ever. ${calls[peak.call].name} took the last ${bytesText(peak.bytes)}${line === peak.call ? "." : `, within ${calls[line].name}.`} What is held was taken by many calls before.`, at: peak.call };
  }],
  ["back", "Which forward is this the backward of?", (profile) => {
    const { calls, links } = profile;
    if (!links.size) return null;
    const long = (i) => calls[i].end - calls[i].start;
    const [back, front] = [...links].reduce((a, b) => (long(b[0]) > long(a[0]) ? b : a));
    const [name, of] = [calls[back].name, calls[front].name];
    return { said: `${name} is the backward of ${of}. ${calls[back].seq >= 0 && calls[back].seq === calls[front].seq ? `Both have the sequence number ${calls[back].seq}, and` : "In the file"} an arrow leads from there to here. It takes ${timeText(long(back))}, the forward took ${timeText(long(front))}.`, at: back };
  }],
];

/** What a question shows in a trace; null where it has no answer. */
export const answer = (profile, ask) => QUESTIONS.find(([id]) => id === ask)?.[2](profile) ?? null;

/** The lines of a recorded program, each with the row of its calls, or null. */
export function linesOf({ source, rows }) {
  const byName = new Map(rows.map((row) => [row.name, row]));
  return source.split("\n").map((text) => {
    const plain = text.trim();
    const loader = plain.startsWith("for ") ? rows.find(({ name }) => name.startsWith("enumerate(DataLoader)")) : null;
    return { text, row: byName.get(plain) ?? loader ?? null };
  });
}
