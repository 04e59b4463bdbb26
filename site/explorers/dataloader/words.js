// How the explorer tells an event, what sets the pace, and the settings as Python.

import { between, mostMemory, places, simulate } from "./run.js";

export const count = (n, noun, many = `${noun}s`) => `${n} ${n === 1 ? noun : many}`;
const samplesOf = (list) => list.length > 1 ? `samples ${list[0]} ${list.length > 2 ? "to" : "and"} ${list.at(-1)}` : `sample ${list[0]}`;
const ordinal = (n) => `${n}${[, "st", "nd", "rd"][n % 100 > 10 && n % 100 < 14 ? 0 : n % 10] ?? "th"}`;

/** What happens in event number `at` (from 0), in a sentence or two. */
export function tell({ knobs, batches, events, of }, at) {
  const { kind, batch, worker, time } = events[at];
  const { num_workers: n, prefetch_factor, in_order: inOrder, work } = knobs;
  const due = () => {
    const gone = new Set(events.slice(0, at).filter((event) => event.kind === "deliver").map((event) => event.batch));
    return batches.findIndex((_, i) => !gone.has(i));
  };
  switch (kind) {
    case "give": {
      const turn = inOrder ? `${batch} mod ${n} = ${worker}: its turn, busy or not.` : `It is the next in the round with fewer than ${prefetch_factor} undelivered.`;
      return `The main process gives batch ${batch} to worker ${worker}. ${turn}`;
    }
    case "start":
      return worker < 0 ? `The main process loads batch ${batch} itself, ${samplesOf(batches[batch])}. The consumer waits.`
        : `Worker ${worker} begins batch ${batch}: ${samplesOf(batches[batch])}.`;
    case "finish":
      return worker < 0 ? `The main process has collated batch ${batch}.`
        : `Worker ${worker} has loaded and collated batch ${batch}, and puts it into the result queue.`;
    case "ask":
      return due() < 0 ? "The consumer asks for one more batch." : `The consumer asks for a batch. ${inOrder || !n ? `Batch ${due()} is next.` : "Any will do."}`;
    case "take":
      return `The main process takes batch ${batch} from the result queue. ${!inOrder ? "It came first, so it goes first."
        : batch === due() ? "It is its turn." : `Batch ${due()} is next, so ${batch} is put aside.`}`;
    case "deliver":
      return `Batch ${batch} is delivered${of[batch].take < time ? "; it had been put aside" : ""}. The consumer works on it for ${count(work, "unit")}.`;
    default:
      return batches.length ? `All ${count(batches.length, "batch", "batches")} are delivered: StopIteration.` : "There is nothing to deliver: StopIteration.";
  }
}

/** At most one decimal. */
export const units = (time) => String(Math.round(time * 10) / 10);

/** What goes on between two events. */
export function meanwhile(run, at, time) {
  const { loading, waits, works } = between(run, at, time);
  return [
    ...loading.map(({ batch, worker, done, of }) => `${worker < 0 ? "The main process" : `Worker ${worker}`} is at ${units(done)} of ${of} in batch ${batch}.`),
    works ? `The consumer is at ${units(works.done)} of ${works.of} with batch ${works.batch}.` : waits !== null ? `The consumer has waited ${units(waits)}.` : "",
  ].filter(Boolean).join(" ");
}

/** The time that the same epoch takes with 0 to 4 workers. */
export const totals = (knobs) => [0, 1, 2, 3, 4].map((num_workers) => simulate({ ...knobs, num_workers }).total);

/** What sets the pace of this epoch: [the point, what follows from it]. */
export function verdict(run) {
  const { knobs, batches, events, of, total, waited } = run;
  const n = knobs.num_workers;
  if (!batches.length) return ["No batch.", `drop_last drops the last batch where it is not whole, and ${count(knobs.samples, "sample")} make no whole batch of ${knobs.batch_size}.`];
  const delivered = events.filter((event) => event.kind === "deliver");
  const share = `The consumer waits ${waited} of ${total} units.`;
  if (!n) return ["Nothing is loaded ahead.", `Only when the consumer asks does the main process load the batch. ${share}`];
  const later = n < 4 ? simulate({ ...knobs, num_workers: n + 1 }).total : null;
  const more = later === null ? "" : ` With ${n + 1} workers the epoch would take ${later === total ? `the same ${total} units` : `${later} units, not ${total}`}.`;
  const most = delivered.reduce((a, b) => (b.aside > a.aside ? b : a));
  const early = delivered.filter(({ batch }, i) => batch > i).length;
  if (knobs.in_order && most.aside) {
    const { time, batch, aside } = most;
    const there = places(run, events.indexOf(most) + 1);
    const sooner = time - Math.min(...of.filter((_, i) => there[i] === "aside").map(({ finish }) => finish));
    return [`Batch ${batch} holds the others back.`, `${count(aside, "batch", "batches")} behind it ${aside === 1 ? "is" : "are"} finished before it, up to ${count(sooner, "unit")} earlier, and must wait: the order is kept. ${share}`];
  }
  if (!knobs.in_order && early) {
    const late = delivered.reduce((worst, { batch }, i) => (i - batch > worst[1] - worst[0] ? [batch, i] : worst), [0, 0]);
    return ["Whatever is finished goes first.", `Batch ${late[0]} is delivered ${ordinal(late[1] + 1)}, not ${ordinal(late[0] + 1)}. ${share}`];
  }
  if (waited === delivered[0].time) return ["The consumer sets the pace.", `It waits ${waited} units for the first batch and never again. Up to ${count(mostMemory(run), "batch", "batches")} are in memory.${more}`];
  return ["Loading sets the pace.", `${share}${more}`];
}

/** The settings as the call that has them. */
export function python({ samples, batch_size, num_workers, prefetch_factor, in_order, drop_last }) {
  const options = [
    ["batch_size", batch_size], ["num_workers", num_workers], ["prefetch_factor", num_workers ? prefetch_factor : null],
    ["in_order", in_order ? null : "False"], ["drop_last", drop_last ? "True" : null],
  ].filter(([, value]) => value !== null);
  return `DataLoader(range(${samples}), ${options.map((pair) => pair.join("=")).join(", ")})`;
}
