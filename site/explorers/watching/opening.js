// A file of export_chrome_trace, or of another writer of Chrome's format: the trace in it, or what is wrong. No DOM.

export const MOST_BYTES = 64e6;
export const MOST_CALLS = 200_000;

const HOW = 'prof.export_chrome_trace("trace.json") writes one.';
const FEWER = "Record fewer steps: torch.profiler.schedule, with active=1.";
/** What lies in a file as a bar and is no call of the program. */
const OTHERS = ["Trace", "overhead", "python_function"];
// As floats, times of a machine that has been up for weeks have no digit to spare: they are read digit by digit.
const TIMES = /("(?:ts|dur)"\s*:\s*)(\d+(?:\.\d+)?)(?=\s*[,}])/g;

/** The text of a file, also of one that is packed by gzip; null where there is too much of it. */
export const textOf = async (file) => {
  const [a, b] = new Uint8Array(await file.slice(0, 2).arrayBuffer());
  const packed = a === 0x1f && b === 0x8b;
  const reader = (packed ? file.stream().pipeThrough(new DecompressionStream("gzip")) : file.stream()).getReader();
  const parts = [];
  let size = 0;
  for (let { done, value } = await reader.read(); !done; { done, value } = await reader.read()) {
    size += value.length;
    if (size > MOST_BYTES) return reader.cancel().then(() => null);
    parts.push(value);
  }
  return new Blob(parts).text();
};

/** { trace } or { fault }, a sentence. */
export function opened(text, title = "your trace") {
  if (text === null) return { fault: `This file has more than ${MOST_BYTES / 1e6} MB, and the page reads no more. ${FEWER}` };
  let found;
  try {
    found = JSON.parse(text.replace(TIMES, '$1"$2"'));
  } catch {
    return { fault: `This is no trace: it is not JSON, or was cut off. ${HOW}` };
  }
  const events = Array.isArray(found) ? found : found?.traceEvents;
  if (!Array.isArray(events)) return { fault: `This is no trace: it has no traceEvents. ${HOW}` };
  return traceOf(events.filter((event) => event && typeof event === "object"), title);
}

function traceOf(events, title) {
  const bars = events.filter(({ ph, cat }) => ph === "X" && !OTHERS.includes(cat));
  const base = parts(bars.find(({ ts }) => parts(ts))?.ts);
  const after = (value) => {
    const [micro, nano] = parts(value) ?? [NaN, 0];
    return (micro - base[0]) * 1000 + nano;
  };
  const made = base ? bars.map((event) => called(event, after)).filter(({ start, end }) => end >= start) : [];
  if (!made.length) return { fault: `There is no call in this trace: no event of phase X with a begin and a duration. ${HOW}` };
  if (made.length > MOST_CALLS) return { fault: `This trace has ${made.length} calls, and the page reads up to ${MOST_CALLS}. ${FEWER}` };
  made.sort((a, b) => a.start - b.start || b.end - a.end);
  const first = made[0].start;
  const threads = new Map();
  for (const { on } of made) if (!threads.has(on)) threads.set(on, threads.size);
  const names = new Map(events.flatMap((event) => (event.ph === "M" && event.name === "thread_name" && event.args?.name ? [[lane(event), `${event.args.name}`]] : [])));
  const moment = (event) => ({ thread: threads.get(lane(event)) ?? -1, time: after(event.ts) - first });
  const python = events.filter(({ ph, cat }) => ph === "X" && cat === "python_function").map((event) => called(event, after))
    .map(({ on, name, start, end }) => ({ thread: threads.get(on), name, start: start - first, end: end - first }));
  return {
    trace: {
      title, left: bars.length - made.length, python, arrows: arrowsOf(events, moment),
      calls: made.map(({ on, start, end, ...rest }) => ({ ...rest, thread: threads.get(on), start: start - first, end: end - first })),
      ...memoryOf(events, moment),
      threads: [...threads.keys()].map((on) => threadName(on, names.get(on))),
    },
  };
}

/** torch.profiler calls all threads of Python alike. The main one has the number of its process. */
function threadName(on, given) {
  const [pid, tid] = on.split(" ");
  if (given && !/^thread \d+ \(/.test(given)) return given;
  return pid === tid ? "main thread" : given ?? `thread ${tid}`;
}

const lane = ({ pid, tid }) => `${pid} ${tid}`;

function called(event, after) {
  const { name, cat, ts, dur, args } = event;
  const [micro, nano] = parts(dur) ?? [NaN, 0];
  const start = after(ts);
  const dims = Array.isArray(args?.["Input Dims"]) ? args["Input Dims"] : [];
  const seq = args?.["Sequence number"];
  return {
    name: `${name}`, note: !cat || /annotation$/.test(cat), on: lane(event), start, end: start + micro * 1000 + nano, seq: Number.isInteger(seq) ? seq : -1,
    shapes: dims.filter((one) => Number.isInteger(one?.[0])).map((one) => one.join("×")).join(", "),
  };
}

/** A time in microseconds, as text or as a number: whole ones, and the nanoseconds over. */
function parts(value) {
  const text = typeof value === "number" && value >= 0 ? value.toFixed(3) : value;
  if (typeof text !== "string" || !/^\d+(\.\d+)?$/.test(text)) return null;
  const [whole, rest = ""] = text.split(".");
  return [Number(whole), Math.round(Number(`0.${rest || 0}`) * 1000)];
}

function arrowsOf(events, moment) {
  const ends = { s: new Map(), f: new Map() };
  for (const event of events) if (Object.hasOwn(ends, event.ph)) ends[event.ph].set(`${event.cat} ${event.id}`, event);
  return [...ends.f].filter(([id]) => ends.s.has(id)).map(([id, event]) => [moment(ends.s.get(id)), moment(event)]);
}

/** Of the device that held most at a time: the CPU, where there is no other. */
function memoryOf(events, moment) {
  const devices = new Map();
  for (const event of events) {
    const bytes = event.args?.Bytes;
    const { thread, time } = moment(event);
    if (event.name !== "[memory]" || !Number.isFinite(bytes) || !Number.isFinite(time)) continue;
    const key = `${event.args["Device Type"]} ${event.args["Device Id"]}`;
    devices.set(key, devices.get(key) ?? []).get(key).push([time, thread, bytes]);
  }
  const most = (moves) => {
    let [held, top] = [0, 0];
    for (const [, , bytes] of moves) top = Math.max(top, held += bytes);
    return top;
  };
  const curves = [...devices].map(([key, moves]) => ({ device: key.startsWith("0 ") ? "" : " on the device", memory: moves.sort((a, b) => a[0] - b[0]) }));
  return curves.sort((a, b) => most(b.memory) - most(a.memory))[0] ?? { memory: [] };
}
