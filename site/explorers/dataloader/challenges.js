// What may be tried to reach, and whether a state reaches it. No DOM.

import { simulate } from "./run.js";
import { totals } from "./words.js";

export const CHALLENGES = [
  {
    id: "hidden", goal: "One sample takes ten times as long as the others. Let a consumer of 4 units a batch wait for the first batch only, in order.",
    start: "samples=16&batch_size=2&num_workers=2&prefetch_factor=2&load=2&late=24&work=4&slow=4",
    reached(knobs) {
      const { slow, late, load, work, batch_size, in_order, num_workers } = knobs;
      if (!num_workers || !in_order || work > 4 || late < 10 * load || !slow.length || slow.some((sample) => sample < batch_size)) return false;
      const run = simulate(knobs);
      return run.batches.length > slow[0] / batch_size && run.waited === run.events.find(({ kind }) => kind === "deliver")?.time;
    },
  },
  {
    id: "useless", goal: "Make four workers no faster than one, with eight batches or more.",
    start: "samples=16&batch_size=2&num_workers=4&prefetch_factor=2&load=2&late=24&work=0",
    reached(knobs) {
      const [, one, , , four] = totals(knobs);
      return knobs.num_workers === 4 && simulate(knobs).batches.length >= 8 && one === four;
    },
  },
];
